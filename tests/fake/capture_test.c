// Captures of launches into graphs, against the fake driver.
#include "tests/fake/work.h"

static cu_graph_exec finish(red_stream stream) {
  cu_graph graph;
  cu_graph_exec exec;
  cr_assert_eq(cuStreamEndCapture(stream, &graph), 0, "the capture is spoilt");
  cr_assert_eq(cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
  cr_assert_eq(cuGraphDestroy(graph), 0);
  return exec;
}

// The context that the driver's own calls need.
static void enter(cu_context *context) {
  cr_assert_eq(fake_primary_retain(context, 0), 0);
  cr_assert_eq(fake_context_set(*context), 0);
}
static void leave(void) {
  fake_context_set(NULL);
  fake_primary_release(0);
}

static void capture_works(const char *text, enum cu_capture_mode mode) {
  struct work w;
  red_stream stream;
  cu_context context;
  make(&w, "cuda:0", text);
  enter(&context);
  OK(red_stream_create(w.device, &stream));
  OK(red_prepare(w.kernel, stream, w.arguments, 2));
  spoil(&w);
  cr_assert_eq(cuStreamBeginCapture_v2(stream, mode), 0);
  OK(launch(&w, stream));
  OK(launch(&w, stream));
  cu_graph_exec exec = finish(stream);
  float b[ROWS];
  OK(red_copy_out(w.device, b, w.b, sizeof b));
  cr_expect_eq(b[0], 1, "a captured launch ran");
  for (int i = 0; i < 3; i++) {
    spoil(&w);
    cr_assert_eq(cuGraphLaunch(exec, stream), 0);
    check_result(&w);
    OK(launch(&w, stream));
    check_result(&w);
  }
  cuGraphExecDestroy(exec);
  OK(red_stream_destroy(w.device, stream));
  leave();
  drop(&w);
  nothing_lives();
}
Test(fake, capture_of_a_prepared_kernel) {
  capture_works(rowsum_text, CU_CAPTURE_GLOBAL);
}
Test(fake, capture_of_a_prepared_kernel_with_workspace) {
  capture_works(split_text, CU_CAPTURE_GLOBAL);
}
Test(fake, relaxed_capture) {
  capture_works(split_text, CU_CAPTURE_RELAXED);
}

static void capture_is_refused(const char *text, bool is_loaded) {
  struct work w;
  red_stream stream;
  cu_context context;
  cu_graph graph;
  make(&w, "cuda:0", text);
  enter(&context);
  OK(red_stream_create(w.device, &stream));
  if (is_loaded) OK(launch(&w, stream)); // has the stream's workspace, but none for captures
  cr_assert_eq(cuStreamBeginCapture_v2(stream, CU_CAPTURE_GLOBAL), 0);
  FAILS(CAPTURING, launch(&w, stream));
  SAYS("red_prepare");
  FAILS(CAPTURING, red_prepare(w.kernel, stream, w.arguments, 2));
  cr_expect_eq(cuStreamEndCapture(stream, &graph), 0, "the capture is spoilt");
  cuGraphDestroy(graph);
  OK(launch(&w, stream));
  check_result(&w);
  OK(red_stream_destroy(w.device, stream));
  leave();
  drop(&w);
}
Test(fake, capture_of_a_kernel_that_is_not_loaded) {
  capture_is_refused(rowsum_text, false);
}
Test(fake, capture_without_workspace) {
  capture_is_refused(split_text, true);
}

Test(fake, capture_with_the_callers_workspace) {
  struct work w;
  red_stream stream;
  cu_context context;
  void *workspace;
  size_t bytes;
  make(&w, "cuda:0", split_text);
  enter(&context);
  OK(red_stream_create(w.device, &stream));
  OK(red_workspace_size(w.kernel, w.arguments, 2, &bytes));
  OK(red_alloc(w.device, bytes, &workspace));
  OK(red_workspace_init(w.device, stream, workspace, bytes));
  OK(red_launch_with(w.kernel, stream, w.arguments, 2, workspace, bytes));
  check_result(&w);
  spoil(&w);
  cr_assert_eq(cuStreamBeginCapture_v2(stream, CU_CAPTURE_GLOBAL), 0);
  OK(red_launch_with(w.kernel, stream, w.arguments, 2, workspace, bytes));
  cu_graph_exec exec = finish(stream);
  for (int i = 0; i < 2; i++) {
    spoil(&w);
    cr_assert_eq(cuGraphLaunch(exec, stream), 0);
    check_result(&w);
  }
  FAILS(WORKSPACE, red_launch_with(w.kernel, stream, w.arguments, 2, workspace, bytes - 1));
  FAILS(WORKSPACE, red_launch_with(w.kernel, stream, w.arguments, 2, (char *)workspace + 8, bytes));
  FAILS(WORKSPACE, red_launch_with(w.kernel, stream, w.arguments, 2, NULL, 0));
  cuGraphExecDestroy(exec);
  OK(red_free(w.device, workspace));
  OK(red_stream_destroy(w.device, stream));
  leave();
  drop(&w);
  nothing_lives();
}

// Schedules that wait for the sizes of a launch are compiled for them by red_prepare; a captured launch that was not prepared takes one for any sizes, where that
// is loaded, and is refused where it is not: the capture stays whole.
Test(fake, capture_where_schedules_wait_for_sizes) {
  enum { A = 21847, B = 64, C = 3, SMALL = 100 };
  struct work w = {0};
  red_stream stream;
  cu_context context;
  cu_graph graph;
  int64_t x_shape[] = {A, B, C}, y_shape[] = {B, A, C};
  size_t bytes = sizeof(double) * A * B * C;
  double *x = malloc(bytes), *y = malloc(bytes);
  red_choice choice;
  cr_assert(x && y);
  for (int i = 0; i < A * B * C; i++) x[i] = i;
  OK(red_open("cuda:0", &w.device));
  OK(red_compile_text(w.device, "swap.red", "kernel swap(X: f64[a, b, c]) -> (Y: f64[b, a, c]) { for i in a, j in b, k in c { Y[j, i, k] = X[i, j, k]; } }", NULL,
                      &w.program));
  OK(red_find(w.program, NULL, &w.kernel));
  OK(red_alloc(w.device, bytes, &w.a));
  OK(red_alloc(w.device, bytes, &w.b));
  OK(red_copy_in(w.device, w.a, x, bytes));
  w.tensors[0] = red_dense(w.a, RED_F64, 3, x_shape);
  w.tensors[1] = red_dense(w.b, RED_F64, 3, y_shape);
  for (int i = 0; i < 2; i++) w.arguments[i] = red_of_tensor(&w.tensors[i]);
  enter(&context);
  OK(red_stream_create(w.device, &stream));

  cr_assert_eq(cuStreamBeginCapture_v2(stream, CU_CAPTURE_GLOBAL), 0);
  FAILS(CAPTURING, launch(&w, stream));
  SAYS("red_prepare");
  cr_expect_eq(cuStreamEndCapture(stream, &graph), 0, "the capture is spoilt");
  cuGraphDestroy(graph);

  x_shape[0] = y_shape[1] = SMALL; // loads what takes any sizes
  OK(launch(&w, stream));
  x_shape[0] = y_shape[1] = A;
  for (int is_prepared = 0; is_prepared < 2; is_prepared++) {
    if (is_prepared) {
      OK(red_prepare(w.kernel, stream, w.arguments, 2));
      OK(red_choose(w.kernel, w.arguments, 2, &choice));
      cr_expect_str_eq(choice.schedule, "units_words");
    }
    memset(y, 0, bytes);
    OK(red_copy_in(w.device, w.b, y, bytes));
    cr_assert_eq(cuStreamBeginCapture_v2(stream, CU_CAPTURE_GLOBAL), 0);
    fake_clear();
    OK(launch(&w, stream));
    cr_expect_null(strstr(fake_log(), "cuLink"), "something was compiled in a capture");
    cr_expect_null(strstr(fake_log(), "cuMem"), "something was allocated in a capture");
    cu_graph_exec exec = finish(stream);
    cr_assert_eq(cuGraphLaunch(exec, stream), 0);
    OK(red_synchronize(w.device, stream));
    OK(red_copy_out(w.device, y, w.b, bytes));
    for (int i = 0; i < A; i++)
      for (int j = 0; j < B; j++)
        for (int k = 0; k < C; k++) cr_assert_eq(y[((int64_t)j * A + i) * C + k], x[((int64_t)i * B + j) * C + k]);
    cuGraphExecDestroy(exec);
  }
  OK(red_stream_destroy(w.device, stream));
  leave();
  drop(&w);
  nothing_lives();
  free(x);
  free(y);
}

// A capture of another stream in the same thread does not stop loads and allocations of an uncaptured one.
Test(fake, loading_beside_a_capture_leaves_it_whole) {
  struct work w;
  red_stream captured, other;
  cu_context context;
  cu_graph graph;
  make(&w, "cuda:0", split_text);
  enter(&context);
  OK(red_stream_create(w.device, &captured));
  OK(red_stream_create(w.device, &other));
  cr_assert_eq(cuStreamBeginCapture_v2(captured, CU_CAPTURE_GLOBAL), 0);
  OK(launch(&w, other));
  cr_expect_eq(cuStreamEndCapture(captured, &graph), 0, "the capture is spoilt");
  cuGraphDestroy(graph);
  check_result(&w);
  OK(red_stream_destroy(w.device, captured));
  OK(red_stream_destroy(w.device, other));
  leave();
  drop(&w);
}

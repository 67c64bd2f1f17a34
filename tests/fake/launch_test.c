// red.h's GPU paths against the fake driver. Each test is a process of its own.
#include "runtime/red.h"
#include "tests/fake/fake.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char rowsum_text[] =
    "kernel rowsum(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }";
// Split over the grid: it needs workspace.
static const char split_text[] =
    "kernel split(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }\n"
    "schedule split { split j by 256 -> jo, ji; split jo into 4 -> jb, jr; bind i -> block.x; bind jb -> "
    "block.y;\n"
    "  bind ji -> thread.x; combine jb by last_block; }";
enum { ROWS = 3, COLUMNS = 2000 };

static char cache_folder[64];

static void begin(void) {
  setenv("RED_LIBCUDA", FAKE_PATH, 1);
  setenv("RED_CACHE", "off", 1);
  unsetenv("RED_CHECK");
  unsetenv("RED_DEVICE");
}
static void with_cache(void) {
  strcpy(cache_folder, "/tmp/red-fake-XXXXXX");
  cr_assert(mkdtemp(cache_folder));
  setenv("RED_CACHE", "rw", 1);
  setenv("RED_CACHE_DIR", cache_folder, 1);
}
static void end(void) {
  char command[128];
  cr_expect_str_eq(fake_findings(), "");
  if (!cache_folder[0]) return;
  snprintf(command, sizeof command, "rm -rf %s", cache_folder);
  cr_expect_eq(system(command), 0);
}
TestSuite(fake, .init = begin, .fini = end, .timeout = 120);

#define OK(expression) cr_assert_eq((expression), RED_OK, "%s: %s", #expression, red_message())
#define FAILS(error, expression)                                                                             \
  do {                                                                                                       \
    red_error got_ = (expression);                                                                           \
    cr_assert_eq(got_, RED_ERROR_##error, "%s: %s: %s", #expression, red_error_name(got_), red_message());   \
  } while (0)
#define SAYS(text) cr_expect(strstr(red_message(), text), "'%s' is not in '%s'", text, red_message())

// A kernel with its tensors on a device.
struct work {
  red_device *device;
  red_program *program;
  const red_kernel *kernel;
  void *a, *b;
  int64_t a_shape[2], b_shape[1];
  red_tensor tensors[2];
  red_argument arguments[2];
};

static void make(struct work *w, const char *device, const char *text) {
  static float values[ROWS][COLUMNS];
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++) values[i][j] = (float)(i + j % 3);
  *w = (struct work){.a_shape = {ROWS, COLUMNS}, .b_shape = {ROWS}};
  OK(red_open(device, &w->device));
  OK(red_compile_text(w->device, "k.red", text, NULL, &w->program));
  OK(red_find(w->program, NULL, &w->kernel));
  OK(red_alloc(w->device, sizeof values, &w->a));
  OK(red_alloc(w->device, ROWS * sizeof(float), &w->b));
  OK(red_copy_in(w->device, w->a, values, sizeof values));
  w->tensors[0] = red_dense(w->a, RED_F32, 2, w->a_shape);
  w->tensors[1] = red_dense(w->b, RED_F32, 1, w->b_shape);
  for (int i = 0; i < 2; i++) w->arguments[i] = red_of_tensor(&w->tensors[i]);
}

static void check_result(struct work *w) {
  float b[ROWS];
  OK(red_copy_out(w->device, b, w->b, sizeof b));
  for (int i = 0; i < ROWS; i++) {
    float expected = 0;
    for (int j = 0; j < COLUMNS; j++) expected += (float)(i + j % 3);
    cr_expect_eq(b[i], expected, "row %d: %g, not %g", i, (double)b[i], (double)expected);
  }
}

// Fills the result with ones, so that the next launch has something to do.
static void spoil(struct work *w) {
  static const float ones[ROWS] = {1, 1, 1};
  OK(red_copy_in(w->device, w->b, ones, sizeof ones));
}

static red_error launch(struct work *w, red_stream stream) {
  return red_launch(w->kernel, stream, w->arguments, 2);
}

static void drop(struct work *w) {
  OK(red_free(w->device, w->a));
  OK(red_free(w->device, w->b));
  red_release(w->program);
  red_close(w->device);
}

static void nothing_lives(void) {
  struct fake_live live = fake_live();
  cr_expect_eq(live.retained, 0, "%u contexts are retained", live.retained);
  cr_expect_eq(live.modules, 0, "%u modules", live.modules);
  cr_expect_eq(live.allocations, 0, "%u allocations", live.allocations);
  cr_expect_eq(live.streams, 0, "%u streams", live.streams);
  cr_expect_eq(live.links, 0, "%u links", live.links);
}

// Only these calls were made, however often each.
static void only_calls(const char *const *allowed) {
  char log[4096];
  snprintf(log, sizeof log, "%s", fake_log());
  for (char *save = NULL, *call = strtok_r(log, "\n", &save); call; call = strtok_r(NULL, "\n", &save)) {
    bool is_allowed = false;
    for (size_t i = 0; allowed[i]; i++) is_allowed |= strcmp(allowed[i], call) == 0;
    cr_expect(is_allowed, "%s was called", call);
  }
}
#define ONLY(...) only_calls((const char *const[]){__VA_ARGS__, NULL})

Test(fake, a_launch_and_everything_given_back) {
  struct work w;
  make(&w, "cuda:0", rowsum_text);
  OK(launch(&w, NULL));
  check_result(&w);
  drop(&w);
  nothing_lives();
}

Test(fake, an_older_driver_does_too) {
  struct work w;
  setenv("RED_LIBCUDA", FAKE_OLD_PATH, 1);
  make(&w, "cuda:0", split_text);
  for (int i = 0; i < 3; i++) {
    spoil(&w);
    OK(launch(&w, NULL));
    check_result(&w);
  }
  drop(&w);
}

Test(fake, compiling_touches_no_driver_but_of_an_open_device) {
  red_device *device;
  red_program *program;
  OK(red_open("sim", &device));
  OK(red_compile_text(device, "k.red", rowsum_text, NULL, &program));
  cr_expect_eq(fake_count(NULL), 0, "%s", fake_log());
  red_release(program);
  red_close(device);
}

// ---- Contexts

Test(fake, the_primary_context_is_retained_and_what_was_current_restored) {
  struct work w;
  cu_context current;
  make(&w, "cuda:0", rowsum_text);
  cr_expect_eq(fake_live().retained, 1);
  OK(launch(&w, NULL));
  fake_context_current(&current);
  cr_expect_null(current);
  cr_expect_eq(fake_count("cuCtxCreate_v2"), 0);
  drop(&w);
  nothing_lives();
}

Test(fake, a_current_context_of_the_device_is_used) {
  struct work w;
  cu_context own, current;
  cr_assert_eq(fake_init(0), 0);
  cr_assert_eq(cuCtxCreate_v2(&own, 0, 0), 0);
  make(&w, "cuda:0", rowsum_text);
  OK(launch(&w, NULL));
  check_result(&w);
  cr_expect_eq(fake_live().retained, 0);
  fake_context_current(&current);
  cr_expect_eq(current, own);
  fake_context_set(NULL); // another thread's state
  spoil(&w);
  OK(launch(&w, NULL));
  check_result(&w);
  fake_context_current(&current);
  cr_expect_null(current);
  drop(&w);
  nothing_lives();
}

Test(fake, a_context_of_another_device_stays_current) {
  struct work w;
  cu_context other, current;
  setenv("FAKE_CUDA", "devices=2", 1);
  cr_assert_eq(fake_init(0), 0);
  cr_assert_eq(cuCtxCreate_v2(&other, 0, 1), 0);
  make(&w, "cuda:0", rowsum_text);
  OK(launch(&w, NULL));
  check_result(&w);
  fake_context_current(&current);
  cr_expect_eq(current, other);
  cr_expect_eq(fake_live().retained, 1);
  FAILS(RANK, red_launch(w.kernel, NULL, (red_argument[]){w.arguments[0], w.arguments[0]}, 2));
  fake_context_current(&current);
  cr_expect_eq(current, other);
  fake_fail("cuLaunchKernel", 1, 999);
  FAILS(DRIVER, launch(&w, NULL));
  fake_context_current(&current);
  cr_expect_eq(current, other);
  drop(&w);
  nothing_lives();
}

Test(fake, auto_takes_the_current_contexts_device) {
  cu_context other;
  red_device *device;
  red_device_info info;
  setenv("FAKE_CUDA", "devices=2", 1);
  cr_assert_eq(fake_init(0), 0);
  cr_assert_eq(cuCtxCreate_v2(&other, 0, 1), 0);
  OK(red_open("auto", &device));
  OK(red_describe_device(device, &info));
  cr_expect_eq(info.ordinal, 1);
  cr_expect_str_eq(info.name, "cuda:1");
  red_close(device);
}

// ---- The steady path

Test(fake, later_launches_only_launch) {
  struct work w;
  cu_context context;
  make(&w, "cuda:0", rowsum_text);
  OK(launch(&w, NULL));
  cr_assert_eq(fake_primary_retain(&context, 0), 0);
  cr_assert_eq(fake_context_set(context), 0); // as in a program that uses the runtime
  fake_clear();
  for (int i = 0; i < 10; i++) OK(launch(&w, NULL));
  ONLY("cuCtxGetCurrent", "cuCtxSetCurrent", "cuLaunchKernel");
  cr_expect_eq(fake_count("cuLaunchKernel"), 10);
  cr_expect_leq(fake_count("cuCtxGetCurrent"), 10);
  fake_context_set(NULL);
  fake_primary_release(0);
  drop(&w);
}

Test(fake, later_launches_with_workspace_allocate_and_clear_nothing) {
  struct work w;
  make(&w, "cuda:0", split_text);
  size_t bytes;
  OK(red_workspace_size(w.kernel, w.arguments, 2, &bytes));
  cr_assert_gt(bytes, 0);
  OK(launch(&w, NULL));
  check_result(&w);
  fake_clear();
  for (int i = 0; i < 5; i++) OK(launch(&w, NULL));
  ONLY("cuCtxGetCurrent", "cuCtxSetCurrent", "cuStreamGetId", "cuStreamGetCaptureInfo_v2",
       "cuStreamIsCapturing", "cuLaunchKernel");
  cr_expect_eq(fake_count("cuLaunchKernel"), 5);
  check_result(&w);
  drop(&w);
  nothing_lives();
}

// More than 48 KiB of shared memory a block must be asked for: once, where the module is loaded.
Test(fake, much_shared_memory_is_asked_for_once) {
  enum { A = 130, B = 140 };
  static const char text[] = "kernel t(X: f32[a, b]) -> (Y: f32[b, a]) { for i in a, j in b { Y[j, i] = X[i, j]; } }"
                             "schedule t { tile i by 128, j by 128 -> io, jo, ii, ji; fuse io, jo -> t; bind t -> block.x; stage X at t in shared as S; "
                             "bind S.ji -> thread.x; bind Y.ji -> thread.x; }";
  static float x[A][B], y[B][A];
  const int64_t x_shape[] = {A, B}, y_shape[] = {B, A};
  struct work w = {0};
  red_choice choice;
  for (int i = 0; i < A * B; i++) x[i / B][i % B] = (float)i;
  OK(red_open("cuda:0", &w.device));
  OK(red_compile_text(w.device, "t.red", text, NULL, &w.program));
  OK(red_find(w.program, NULL, &w.kernel));
  OK(red_alloc(w.device, sizeof x, &w.a));
  OK(red_alloc(w.device, sizeof y, &w.b));
  OK(red_copy_in(w.device, w.a, x, sizeof x));
  w.tensors[0] = red_dense(w.a, RED_F32, 2, x_shape);
  w.tensors[1] = red_dense(w.b, RED_F32, 2, y_shape);
  for (int i = 0; i < 2; i++) w.arguments[i] = red_of_tensor(&w.tensors[i]);
  OK(red_choose(w.kernel, w.arguments, 2, &choice));
  cr_assert_gt(choice.shared, 48 * 1024);
  fake_clear();
  OK(launch(&w, NULL));
  cr_expect_geq(fake_count("cuFuncSetAttribute"), 1);
  OK(red_copy_out(w.device, y, w.b, sizeof y));
  for (int i = 0; i < A * B; i++) cr_assert_eq(y[i % B][i / B], (float)i);
  fake_clear();
  for (int i = 0; i < 3; i++) OK(launch(&w, NULL));
  ONLY("cuCtxGetCurrent", "cuCtxSetCurrent", "cuLaunchKernel");
  drop(&w);
  nothing_lives();
}

// Kernels that are compiled for each list of sizes: the last 64 of a kernel are kept, and 64 more that nobody holds.
Test(fake, modules_of_sizes_do_not_pile_up) {
  struct work w;
  const red_options options = {.optimize = 1, .schedule_text = "schedule rowsum { bind i -> block.x; bind j -> thread.x; }"};
  make(&w, "cuda:0", rowsum_text);
  red_release(w.program);
  OK(red_compile_text(w.device, "k.red", rowsum_text, &options, &w.program));
  OK(red_find(w.program, NULL, &w.kernel));
  for (int m = 1; m <= 150; m++) {
    float b[ROWS], expected = 0;
    for (int j = 0; j < m; j++) expected += (float)(j % 3);
    w.a_shape[1] = m;
    OK(launch(&w, NULL));
    OK(red_copy_out(w.device, b, w.b, sizeof b));
    cr_expect_eq(b[0], expected);
  }
  cr_expect_leq(fake_live().modules, 128, "%u modules", fake_live().modules);
  drop(&w);
  nothing_lives();
}

Test(fake, prepare_leaves_nothing_for_the_launch) {
  struct work w;
  make(&w, "cuda:0", split_text);
  spoil(&w);
  OK(red_prepare(w.kernel, NULL, w.arguments, 2));
  cr_expect_eq(fake_count("cuLaunchKernel"), 0);
  fake_clear();
  OK(launch(&w, NULL));
  ONLY("cuCtxGetCurrent", "cuCtxSetCurrent", "cuStreamGetId", "cuStreamGetCaptureInfo_v2",
       "cuStreamIsCapturing", "cuLaunchKernel");
  check_result(&w);
  drop(&w);
}

Test(fake, streams_do_not_share_workspace) {
  struct work w;
  red_stream streams[2];
  make(&w, "cuda:0", split_text);
  unsigned before = fake_live().allocations;
  for (int i = 0; i < 2; i++) OK(red_stream_create(w.device, &streams[i]));
  for (int i = 0; i < 4; i++) OK(launch(&w, streams[i % 2]));
  cr_expect_eq(fake_live().allocations, before + 2);
  OK(launch(&w, (red_stream)2)); // the per-thread stream has one for each thread
  cr_expect_eq(fake_live().allocations, before + 3);
  OK(launch(&w, NULL));
  OK(launch(&w, (red_stream)1)); // the same stream as NULL
  cr_expect_leq(fake_live().allocations, before + 5);
  OK(red_trim(w.device));
  cr_expect_eq(fake_live().allocations, before);
  for (int i = 0; i < 2; i++) OK(red_stream_destroy(w.device, streams[i]));
  drop(&w);
  nothing_lives();
}

// Two launches, the second of which may begin early where driver and GPU can.
static void two_launches(const char *setting, const char *library, unsigned early) {
  static char text[sizeof split_text + 16];
  const char *at = strstr(split_text, "last_block");
  struct work w;
  setenv("FAKE_CUDA", setting, 1);
  setenv("RED_LIBCUDA", library, 1);
  snprintf(text, sizeof text, "%.*ssecond_kernel; }", (int)(at - split_text), split_text);
  make(&w, "cuda:0", text);
  for (int i = 0; i < 3; i++) {
    spoil(&w);
    fake_clear();
    OK(launch(&w, NULL));
    cr_expect_eq(fake_count("cuLaunchKernel") + fake_count("cuLaunchKernelEx"), 2);
    cr_expect_eq(fake_count("cuLaunchKernelEx"), early);
    check_result(&w);
  }
  drop(&w);
}
Test(fake, launches_one_behind_another) {
  two_launches("", FAKE_PATH, 1);
}
Test(fake, launches_one_behind_another_on_an_older_gpu) {
  two_launches("arch=80", FAKE_PATH, 0);
}

// ---- Captures

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
      cr_expect_str_eq(choice.schedule, "pack");
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

// ---- Errors

Test(fake, no_driver) {
  red_device *device;
  setenv("RED_LIBCUDA", "/nowhere/libcuda.so.1", 1);
  FAILS(NO_DRIVER, red_open("cuda:0", &device));
  cr_expect_null(device);
  SAYS("/nowhere/libcuda.so.1");
  OK(red_open("auto", &device));
  red_device_info info;
  OK(red_describe_device(device, &info));
  cr_expect_str_eq(info.name, "sim");
  red_close(device);
}

Test(fake, no_device) {
  red_device *device;
  FAILS(NO_DEVICE, red_open("cuda:1", &device));
  SAYS("cuda:1");
  FAILS(NO_DEVICE, red_open("cuda:99", &device));
  const char *bad[] = {
      "cuda:", "cuda:-1", "cuda:1x", "gpu", "", "cuda0", "sim:", "sim:sm_1", "cuda:99999999999999999999"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    red_error error = red_open(bad[i], &device);
    cr_expect(error == RED_ERROR_INVALID || error == RED_ERROR_NO_DEVICE, "'%s': %s", bad[i],
              red_error_name(error));
    cr_expect_null(device);
  }
}

Test(fake, auto_without_a_gpu_is_the_simulator) {
  red_device *device;
  red_device_info info;
  setenv("FAKE_CUDA", "devices=0", 1);
  OK(red_open(NULL, &device));
  OK(red_describe_device(device, &info));
  cr_expect_str_eq(info.name, "sim");
  red_close(device);
}

static void load_says(const char *setting, int driver_error, const char *first, const char *second) {
  struct work w;
  make(&w, "cuda:0", rowsum_text);
  fake_set("driver", atoi(setting));
  if (driver_error != CU_ERROR_UNSUPPORTED_PTX_VERSION) {
    fake_fail("cuLinkAddData_v2", 1, driver_error);
    fake_fail("cuModuleLoadDataEx", 1, driver_error);
  }
  FAILS(DRIVER, launch(&w, NULL));
  cr_expect_eq(red_driver_error(), driver_error);
  SAYS(first);
  SAYS(second);
  struct fake_live live = fake_live();
  cr_expect_eq(live.links, 0);
  cr_expect_eq(live.modules, 0);
  drop(&w);
}
Test(fake, ptx_newer_than_the_driver_names_both) {
  load_says("11000", 222, "CUDA 11.0", "PTX 7.8");
}
Test(fake, code_for_another_gpu_names_both) {
  load_says("12080", 209, "CUDA 12.8", "PTX 7.8 for sm_90, cuda:0 is an sm_90");
}
Test(fake, ptx_that_the_driver_refuses_names_both) {
  load_says("12080", 218, "CUDA 12.8", "PTX");
}

Test(fake, a_failed_load_is_tried_again) {
  struct work w;
  make(&w, "cuda:0", rowsum_text);
  fake_fail("cuModuleLoadDataEx", 1, 2);
  red_error error = launch(&w, NULL);
  cr_expect(error == RED_ERROR_DRIVER || error == RED_ERROR_MEMORY, "%s", red_error_name(error));
  OK(launch(&w, NULL));
  check_result(&w);
  drop(&w);
  nothing_lives();
}

Test(fake, no_memory_for_workspace) {
  struct work w;
  make(&w, "cuda:0", split_text);
  fake_fail("cuMemAlloc_v2", 1, 2);
  FAILS(MEMORY, launch(&w, NULL));
  OK(launch(&w, NULL));
  check_result(&w);
  drop(&w);
  nothing_lives();
}

// Whatever call fails, the launch says so or works without it, and all is given back.
static red_error launch_first(struct work *w) {
  return launch(w, NULL);
}
static red_error prepare(struct work *w) {
  return red_prepare(w->kernel, NULL, w->arguments, 2);
}

static void each_call_may_fail(red_error (*first)(struct work *w)) {
  struct work w;
  char log[4096], seen[4096] = "\n";
  make(&w, "cuda:0", split_text);
  fake_clear();
  OK(first(&w));
  snprintf(log, sizeof log, "%s", fake_log());
  drop(&w);
  for (char *save = NULL, *call = strtok_r(log, "\n", &save); call; call = strtok_r(NULL, "\n", &save)) {
    char line[80];
    snprintf(line, sizeof line, "\n%s\n", call);
    if (strstr(seen, line) || strcmp(call, "cuLinkDestroy") == 0) continue; // what cannot be destroyed stays
    strcat(seen, line + 1);
    make(&w, "cuda:0", split_text);
    fake_clear();
    fake_fail(call, 1, 999);
    red_error error = first(&w);
    cr_expect(error == RED_OK || error == RED_ERROR_DRIVER, "%s: %s", call, red_error_name(error));
    if (error) cr_expect(strstr(red_message(), "999"), "%s: %s", call, red_message());
    fake_clear();
    spoil(&w);
    OK(launch(&w, NULL));
    check_result(&w);
    cu_context current;
    fake_context_current(&current);
    cr_expect_null(current, "%s leaves a context", call);
    drop(&w);
    nothing_lives();
  }
}
Test(fake, each_call_of_a_first_launch_may_fail, .timeout = 300) {
  each_call_may_fail(launch_first);
}
Test(fake, each_call_of_a_prepare_may_fail, .timeout = 300) {
  each_call_may_fail(prepare);
}

Test(fake, a_fault_of_a_kernel_comes_with_the_next_call) {
  struct work w;
  make(&w, "cuda:0", rowsum_text);
  fake_fail("cuStreamSynchronize", 1, 719);
  FAILS(DRIVER, red_synchronize(w.device, NULL));
  cr_expect_eq(red_driver_error(), 719);
  SAYS("cuStreamSynchronize: CUDA_ERROR_LAUNCH_FAILED (719)");
  drop(&w);
}

// ---- Devices of tensors

struct dltensor {
  void *data;
  int32_t device_type, device_id, ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};

Test(fake, a_dltensor_of_another_device) {
  struct work w;
  setenv("FAKE_CUDA", "devices=2", 1);
  make(&w, "cuda:0", rowsum_text);
  struct dltensor a = {w.a, 2, 0, 2, 2, 32, 1, w.a_shape, NULL, 0},
                  b = {w.b, 2, 1, 1, 2, 32, 1, w.b_shape, NULL, 0};
  red_argument arguments[] = {red_of_dltensor(&a), red_of_dltensor(&b)};
  FAILS(WRONG_DEVICE, red_launch(w.kernel, NULL, arguments, 2));
  SAYS("cuda:1");
  SAYS("cuda:0");
  b.device_type = 1;
  FAILS(WRONG_DEVICE, red_launch(w.kernel, NULL, arguments, 2));
  b.device_type = 2, b.device_id = 0;
  OK(red_launch(w.kernel, NULL, arguments, 2));
  check_result(&w);
  drop(&w);
}

Test(fake, prepare_asks_for_the_device_of_a_pointer) {
  struct work w, other;
  setenv("FAKE_CUDA", "devices=2", 1);
  make(&w, "cuda:0", rowsum_text);
  make(&other, "cuda:1", rowsum_text);
  w.tensors[1].data = other.b;
  FAILS(WRONG_DEVICE, red_prepare(w.kernel, NULL, w.arguments, 2));
  SAYS("B");
  SAYS("cuda:1");
  SAYS("cuda:0");
  w.tensors[1].data = w.b;
  OK(red_prepare(w.kernel, NULL, w.arguments, 2));
  drop(&w);
  drop(&other);
  nothing_lives();
}

Test(fake, red_check_asks_at_every_launch) {
  struct work w, other;
  setenv("FAKE_CUDA", "devices=2", 1);
  setenv("RED_CHECK", "1", 1);
  make(&w, "cuda:0", rowsum_text);
  make(&other, "cuda:1", rowsum_text);
  OK(launch(&w, NULL));
  w.tensors[0].data = other.a;
  FAILS(WRONG_DEVICE, launch(&w, NULL));
  fake_clear();
  w.tensors[0].data = w.a;
  OK(launch(&w, NULL));
  cr_expect_gt(fake_count("cuPointerGetAttribute"), 0);
  drop(&w);
  drop(&other);
}

Test(fake, two_devices_at_once) {
  struct work w[2];
  setenv("FAKE_CUDA", "devices=2", 1);
  make(&w[0], "cuda:0", split_text);
  make(&w[1], "cuda:1", split_text);
  for (int i = 0; i < 4; i++) {
    spoil(&w[i % 2]);
    OK(launch(&w[i % 2], NULL));
    check_result(&w[i % 2]);
  }
  cr_expect_eq(fake_live().retained, 2);
  drop(&w[0]);
  drop(&w[1]);
  nothing_lives();
}

// ---- Processes and threads

// The leak checker asks before it looks, where there is one: processes that end with handles open are meant
// to.
static bool leaks_are_meant;
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) {
  return leaks_are_meant;
}

Test(fake, a_child_of_fork_gets_an_error) {
  struct work w;
  make(&w, "cuda:0", rowsum_text);
  OK(launch(&w, NULL));
  pid_t child = fork();
  if (child == 0) {
    red_device *device;
    bool ok = launch(&w, NULL) == RED_ERROR_FORKED &&
              red_prepare(w.kernel, NULL, w.arguments, 2) == RED_ERROR_FORKED;
    ok &= red_synchronize(w.device, NULL) == RED_ERROR_FORKED;
    ok &= red_open("cuda:0", &device) != RED_OK;
    _exit(ok ? 0 : 1);
  }
  int status;
  waitpid(child, &status, 0);
  cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  spoil(&w);
  OK(launch(&w, NULL));
  check_result(&w);
  drop(&w);
}

Test(fake, exit_with_live_handles_is_silent) {
  pid_t child = fork();
  if (child == 0) {
    struct work w;
    make(&w, "cuda:0", split_text);
    OK(launch(&w, NULL));
    fake_clear();
    leaks_are_meant = true;
    fake_fail("cuModuleUnload", 0, 4); // CUDA_ERROR_DEINITIALIZED
    exit(fake_count(NULL));
  }
  int status;
  waitpid(child, &status, 0);
  cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
}

struct thread_state {
  struct work *w;
  int failures;
};
static void *launch_often(void *state) {
  struct thread_state *t = state;
  for (int i = 0; i < 5; i++) t->failures += launch(t->w, (red_stream)2) != RED_OK;
  return NULL;
}

Test(fake, threads_share_a_kernel_and_load_it_once) {
  enum { THREADS = 8 };
  struct work w;
  pthread_t threads[THREADS];
  struct thread_state states[THREADS];
  make(&w, "cuda:0", rowsum_text);
  for (int i = 0; i < THREADS; i++) {
    states[i] = (struct thread_state){&w, 0};
    cr_assert_eq(pthread_create(&threads[i], NULL, launch_often, &states[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    cr_expect_eq(states[i].failures, 0);
  }
  cr_expect_eq(fake_count("cuModuleLoadDataEx"), 1);
  cr_expect_eq(fake_count("cuLaunchKernel"), 5 * THREADS);
  drop(&w);
  nothing_lives();
}

// ---- Caches

Test(fake, the_second_process_neither_compiles_nor_links) {
  with_cache();
  for (int i = 0; i < 3; i++) {
    pid_t child = fork();
    if (child == 0) {
      struct work w;
      make(&w, "cuda:0", rowsum_text);
      OK(launch(&w, NULL));
      check_result(&w);
      unsigned links = fake_count("cuLinkComplete");
      drop(&w);
      exit((int)links);
    }
    int status;
    waitpid(child, &status, 0);
    cr_assert(WIFEXITED(status));
    cr_expect_eq(WEXITSTATUS(status), i == 0, "process %d linked %d times", i, WEXITSTATUS(status));
  }
}

Test(fake, another_driver_or_gpu_links_again) {
  with_cache();
  static const char *const settings[] = {"", "driver=12090", "arch=80", "arch=80 driver=13000", ""};
  static const int links[] = {1, 1, 1, 1, 0};
  for (int i = 0; i < 5; i++) {
    pid_t child = fork();
    if (child == 0) {
      struct work w;
      setenv("FAKE_CUDA", settings[i], 1);
      make(&w, "cuda:0", rowsum_text);
      OK(launch(&w, NULL));
      check_result(&w);
      leaks_are_meant = true;
      exit((int)fake_count("cuLinkComplete"));
    }
    int status;
    waitpid(child, &status, 0);
    cr_assert(WIFEXITED(status));
    cr_expect_eq(WEXITSTATUS(status), links[i], "'%s' linked %d times", settings[i], WEXITSTATUS(status));
  }
}

Test(fake, a_cache_that_cannot_be_used_is_one_warning) {
  struct work w, other;
  with_cache();
  setenv("RED_CACHE_DIR", "/dev/null/cache", 1);
  make(&w, "cuda:0", rowsum_text);
  cr_expect(strstr(red_log(w.program), "warning: the cache cannot") &&
                strstr(red_log(w.program), "/dev/null/cache"),
            "%s", red_log(w.program));
  make(&other, "cuda:0", split_text);
  cr_expect_str_eq(red_log(other.program), "");
  OK(launch(&w, NULL));
  check_result(&w);
  drop(&w);
  drop(&other);
}

// ---- Launches like one before, with tensors elsewhere

// Other tensors of the same shapes: copies of A and rooms for B, `shift` elements behind where they were made.
static void *elsewhere(struct work *w, int tensor, int shift) {
  static float values[ROWS * COLUMNS + 1];
  void *data;
  size_t bytes = (tensor ? ROWS : ROWS * COLUMNS) * sizeof(float);
  if (!tensor) OK(red_copy_out(w->device, values + shift, w->a, bytes));
  OK(red_alloc(w->device, sizeof values, &data));
  OK(red_copy_in(w->device, data, values, sizeof values));
  w->tensors[tensor].data = (char *)data + shift * (int)sizeof(float);
  return data;
}

Test(fake, tensors_elsewhere_are_found_where_they_are) {
  struct work w;
  make(&w, "cuda:0", rowsum_text);
  void *first = w.b, *second;
  OK(launch(&w, NULL));
  second = elsewhere(&w, 1, 0);
  fake_clear();
  for (int i = 0; i < 4; i++) {
    w.b = w.tensors[1].data = i % 2 ? first : second;
    spoil(&w);
    fake_clear();
    OK(launch(&w, NULL));
    ONLY("cuCtxGetCurrent", "cuCtxSetCurrent", "cuLaunchKernel");
    cr_expect_eq(fake_count("cuLaunchKernel"), 1);
    check_result(&w);
  }
  w.b = first;
  OK(red_free(w.device, second));
  drop(&w);
  nothing_lives();
}

// An address that wide loads do not take has another entry; and back again.
Test(fake, tensors_elsewhere_with_another_alignment) {
  struct work w;
  make(&w, "cuda:0", rowsum_text);
  void *aligned = w.a, *shifted;
  char entries[2][128];
  for (int i = 0; i < 4; i++) {
    red_choice choice;
    if (i == 0) {
      OK(launch(&w, NULL));
      shifted = elsewhere(&w, 0, 1);
    }
    w.tensors[0].data = i % 2 ? aligned : (char *)shifted + sizeof(float);
    spoil(&w);
    OK(launch(&w, NULL));
    check_result(&w);
    OK(red_choose(w.kernel, w.arguments, 2, &choice));
    snprintf(entries[i % 2], sizeof entries[0], "%s", choice.entry);
  }
  cr_expect_str_neq(entries[0], entries[1], "%s takes both", entries[0]);
  OK(red_free(w.device, shifted));
  drop(&w);
  nothing_lives();
}

Test(fake, tensors_elsewhere_that_may_not_be_there) {
  struct work w;
  make(&w, "cuda:0", rowsum_text);
  OK(launch(&w, NULL));
  fake_clear();
  char *a = w.a;
  w.tensors[1].data = a; // the first of A's bytes
  FAILS(OVERLAP, launch(&w, NULL));
  SAYS("A and B overlap");
  w.tensors[1].data = a + (ROWS * COLUMNS - 1) * sizeof(float); // one element
  FAILS(OVERLAP, launch(&w, NULL));
  w.tensors[1].data = a - (ROWS - 1) * sizeof(float);
  FAILS(OVERLAP, launch(&w, NULL));
  w.tensors[1].data = (char *)w.b + 2;
  FAILS(MISALIGNED, launch(&w, NULL));
  w.tensors[1].data = NULL;
  FAILS(NULL_POINTER, launch(&w, NULL));
  cr_expect_eq(fake_count("cuLaunchKernel"), 0);
  w.tensors[1].data = w.b;
  OK(launch(&w, NULL));
  check_result(&w);
  drop(&w);
  nothing_lives();
}

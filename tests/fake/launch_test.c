// red.h's GPU paths against the fake driver: contexts, the steady path, devices, processes, threads, caches.
#include "tests/fake/work.h"

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

// Large odd matrices are compiled for their sizes, and for whether their tensors start on 16 bytes: each has what the other does not need.
Test(fake, another_alignment_where_code_is_made_for_sizes) {
  enum { A = 640, B = 127, C = 129 }; // whole blocks of 64 rows
  const int64_t x_shape[] = {A, B, C}, y_shape[] = {A, C, B};
  struct work w = {0};
  size_t bytes = sizeof(float) * A * B * C;
  OK(red_open("cuda:0", &w.device));
  OK(red_compile_text(w.device, "t.red", "kernel t(X: f32[a, b, c]) -> (Y: f32[a, c, b]) { for i in a, j in b, l in c { Y[i, l, j] = X[i, j, l]; } }", NULL, &w.program));
  OK(red_find(w.program, NULL, &w.kernel));
  OK(red_alloc(w.device, bytes, &w.a));
  OK(red_alloc(w.device, bytes + sizeof(float), &w.b));
  w.tensors[0] = red_dense(w.a, RED_F32, 3, x_shape);
  w.tensors[1] = red_dense(w.b, RED_F32, 3, y_shape);
  for (int i = 0; i < 2; i++) w.arguments[i] = red_of_tensor(&w.tensors[i]);
  for (int i = 0; i < 4; i++) {
    red_choice choice;
    w.tensors[1].data = (char *)w.b + i % 2 * sizeof(float);
    fake_clear();
    OK(red_prepare(w.kernel, NULL, w.arguments, 2));
    OK(red_choose(w.kernel, w.arguments, 2, &choice));
    cr_expect(strncmp(choice.entry, i % 2 ? "t_pack" : "t_lines", 6) == 0, "%s", choice.entry);
    cr_expect_eq(fake_count("cuModuleLoadDataEx"), i < 2);
  }
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

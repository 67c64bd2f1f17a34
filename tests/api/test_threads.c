// Many threads on one device: the same program compiled by all, kernels of all kinds launched by all, messages of each thread's own.
#include "runtime/red.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8 };

static red_device *device;

static void open_device(void) {
  setenv("RED_CACHE", "off", 1);
  cr_assert_eq(red_open("sim", &device), RED_OK, "%s", red_message());
}
static void close_device(void) {
  red_close(device);
}
TestSuite(threads, .init = open_device, .fini = close_device);

static void run(void *(*function)(void *)) {
  pthread_t threads[THREADS];
  int numbers[THREADS];
  for (int i = 0; i < THREADS; i++) {
    numbers[i] = i;
    cr_assert_eq(pthread_create(&threads[i], NULL, function, &numbers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    cr_expect_null(failed, "thread %d: %s", i, (const char *)failed);
  }
}

static char *failure(const char *what) {
  char text[600];
  snprintf(text, sizeof text, "%s: %.500s", what, red_message());
  return strdup(text);
}

static const char SUM[] = "kernel rowsum(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }";

// Launches a row sum with rows of its own length and looks at the result.
static char *launch(const red_kernel *kernel, int64_t n, int64_t m) {
  float a[64], b[4];
  for (int i = 0; i < 64; i++) a[i] = (float)i;
  int64_t as[] = {n, m}, bs[] = {n};
  red_tensor A = red_dense(a, RED_F32, 2, as), B = red_dense(b, RED_F32, 1, bs);
  red_argument arguments[] = {red_of_tensor(&A), red_of_tensor(&B)};
  if (red_launch(kernel, NULL, arguments, 2)) return failure("launch");
  for (int64_t i = 0; i < n; i++) {
    float expected = 0;
    for (int64_t j = 0; j < m; j++) expected += a[i * m + j];
    if (b[i] != expected) return strdup("a wrong sum");
  }
  return NULL;
}

static void *compile_and_launch(void *state) {
  int number = *(int *)state;
  char *failed = NULL;
  for (int round = 0; round < 3 && !failed; round++) {
    red_program *program;
    const red_kernel *kernel;
    if (red_compile_text(device, "sum.red", SUM, NULL, &program)) return failure("compile");
    if (red_find(program, NULL, &kernel)) return failure("find");
    failed = launch(kernel, 2, 1 + number);
    red_release(program);
  }
  return failed;
}

Test(threads, all_compile_the_same_program) {
  run(compile_and_launch);
}

static const red_kernel *shared;

static void *launch_exact(void *state) {
  int number = *(int *)state;
  char *failed = NULL;
  for (int round = 0; round < 6 && !failed; round++) failed = launch(shared, 2, 1 + (number + round) % 8);
  return failed;
}

Test(threads, all_launch_a_kernel_compiled_for_each_size) {
  red_options options = {.schedule_text = "schedule rowsum { bind i -> block.x; bind j -> thread.x; }"};
  red_program *program;
  cr_assert_eq(red_compile_text(device, "sum.red", SUM, &options, &program), RED_OK, "%s", red_message());
  shared = red_kernel_at(program, 0);
  run(launch_exact);
  red_release(program);
}

static void *launch_generic(void *state) {
  int number = *(int *)state;
  static const red_type types[] = {RED_I32, RED_F32, RED_U32};
  int32_t x[6] = {1, 2, 3, 4, 5, 6}, y[6] = {0};
  int64_t shape[] = {2, 3}, turned[] = {3, 2};
  red_tensor X = red_dense(x, types[number % 3], 2, shape), Y = red_dense(y, types[number % 3], 2, turned);
  red_argument arguments[] = {red_of_tensor(&X), red_of_tensor(&Y)};
  if (red_launch(shared, NULL, arguments, 2)) return failure("launch");
  for (int i = 0; i < 6; i++)
    if (y[i] != x[i % 2 * 3 + i / 2]) return strdup("a wrong element");
  return NULL;
}

Test(threads, all_launch_a_kernel_of_their_types) {
  red_program *program;
  cr_assert_eq(red_compile_text(device, "swap.red", "kernel swap<T>(X: T[a, b]) -> (Y: T[b, a]) { for i in a, j in b { Y[j, i] = X[i, j]; } }", NULL, &program),
               RED_OK, "%s", red_message());
  shared = red_kernel_at(program, 0);
  run(launch_generic);
  red_release(program);
}

static void *reduce(void *state) {
  int number = *(int *)state;
  static const char *const ops[] = {"sum", "max"};
  int32_t x[6] = {1, 2, 3, 4, 5, 6}, y[2] = {0}, sums[2] = {6, 15}, peaks[2] = {3, 6};
  int64_t shape[] = {2, 3};
  int axes[] = {1};
  red_tensor X = red_dense(x, RED_I32, 2, shape), Y = red_dense(y, RED_I32, 1, shape);
  if (red_reduce(device, NULL, ops[number % 2], &X, &Y, axes, 1)) return failure("reduce");
  const int32_t *expected = number % 2 ? peaks : sums;
  return y[0] == expected[0] && y[1] == expected[1] ? NULL : strdup("a wrong result");
}

Test(threads, all_reduce) {
  run(reduce);
}

// A long sum needs workspace: each thread has its own.
static void *total(void *state) {
  (void)state;
  enum { COUNT = 200000 };
  int32_t *x = malloc(COUNT * sizeof *x), y = 0;
  int64_t shape[] = {COUNT};
  for (int i = 0; i < COUNT; i++) x[i] = 1;
  red_tensor X = red_dense(x, RED_I32, 1, shape), Y = red_dense(&y, RED_I32, 0, NULL);
  red_argument arguments[] = {red_of_tensor(&X), red_of_tensor(&Y)};
  red_error error = red_launch(shared, NULL, arguments, 2);
  free(x);
  return error ? failure("launch") : y == COUNT ? NULL : strdup("a wrong sum");
}

Test(threads, workspace_of_each_thread) {
  red_program *program;
  cr_assert_eq(red_compile_text(device, "total.red", "kernel total(A: i32[n]) -> (B: i32[]) { B[] = sum(j in n) A[j]; }", NULL, &program), RED_OK, "%s",
               red_message());
  shared = red_kernel_at(program, 0);
  run(total);
  red_release(program);
}

static void *fail_by_number(void *state) {
  int number = *(int *)state;
  char name[32], expected[200];
  red_program *program;
  const red_kernel *kernel;
  if (red_compile_text(device, "sum.red", SUM, NULL, &program)) return failure("compile");
  snprintf(name, sizeof name, "kernel%d", number);
  snprintf(expected, sizeof expected, "there is no kernel kernel%d; there are rowsum", number);
  char *failed = NULL;
  for (int round = 0; round < 100 && !failed; round++)
    if (red_find(program, name, &kernel) != RED_ERROR_NO_KERNEL || strcmp(red_message(), expected) != 0) failed = failure("message");
  red_release(program);
  return failed;
}

Test(threads, messages_are_each_threads_own) {
  run(fail_by_number);
}

// A child process gets an error from its parent's handles, and may open a simulator of its own.
Test(threads, fork_is_an_error) {
  red_program *program;
  cr_assert_eq(red_compile_text(device, "sum.red", SUM, NULL, &program), RED_OK);
  pid_t child = fork();
  if (child == 0) {
    red_program *other;
    red_device *mine;
    int wrong = red_compile_text(device, "sum.red", SUM, NULL, &other) != RED_ERROR_FORKED;
    wrong |= red_launch(red_kernel_at(program, 0), NULL, NULL, 0) != RED_ERROR_FORKED;
    wrong |= red_open("sim", &mine) != RED_OK;
    if (!wrong) red_close(mine);
    red_release(program);
    red_close(device);
    _exit(wrong);
  }
  int status;
  waitpid(child, &status, 0);
  cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  red_release(program);
}

// Many threads on one device: the same program compiled by all, kernels of all kinds launched by all, messages of each thread's own.
//
// A plain program, so that it runs under ThreadSanitizer: one line a test, 'N passed, N failed' last.
#include "runtime/red.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8 };

static red_device *device;

static int passed, failed;

static void expect(const char *test, const char *failure) {
  printf("%s: %s\n", test, failure ? failure : "ok");
  ++*(failure ? &failed : &passed);
}

// Runs the function in all threads; it returns NULL or what went wrong.
static void run(const char *test, void *(*function)(void *)) {
  pthread_t threads[THREADS];
  int numbers[THREADS];
  char *first = NULL;
  for (int i = 0; i < THREADS; i++) {
    numbers[i] = i;
    if (pthread_create(&threads[i], NULL, function, &numbers[i])) exit(2);
  }
  for (int i = 0; i < THREADS; i++) {
    void *why;
    pthread_join(threads[i], &why);
    if (why && first)
      free(why);
    else if (why)
      first = why;
  }
  expect(test, first);
  free(first);
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
  char *why = NULL;
  for (int round = 0; round < 3 && !why; round++) {
    red_program *program;
    const red_kernel *kernel;
    if (red_compile_text(device, "sum.red", SUM, NULL, &program)) return failure("compile");
    if (red_find(program, NULL, &kernel)) return failure("find");
    why = launch(kernel, 2, 1 + number);
    red_release(program);
  }
  return why;
}

static const red_kernel *shared;

static void *launch_exact(void *state) {
  int number = *(int *)state;
  char *why = NULL;
  for (int round = 0; round < 6 && !why; round++) why = launch(shared, 2, 1 + (number + round) % 8);
  return why;
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

static void *fail_by_number(void *state) {
  int number = *(int *)state;
  char name[32], expected[200];
  red_program *program;
  const red_kernel *kernel;
  if (red_compile_text(device, "sum.red", SUM, NULL, &program)) return failure("compile");
  snprintf(name, sizeof name, "kernel%d", number);
  snprintf(expected, sizeof expected, "there is no kernel kernel%d; there are rowsum", number);
  char *why = NULL;
  for (int round = 0; round < 100 && !why; round++)
    if (red_find(program, name, &kernel) != RED_ERROR_NO_KERNEL || strcmp(red_message(), expected) != 0) why = failure("message");
  red_release(program);
  return why;
}

// A child process gets an error from its parent's handles, and may open a simulator of its own.
static void test_fork(void) {
  red_program *program;
  if (red_compile_text(device, "sum.red", SUM, NULL, &program)) exit(2);
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
  expect("a child's calls are errors", WIFEXITED(status) && WEXITSTATUS(status) == 0 ? NULL : "they are not");
  red_release(program);
}

// The only kernel of a text, launched by all threads.
static void run_shared(const char *test, const char *text, const char *schedule, void *(*function)(void *)) {
  red_options options = {0};
  red_program *program;
  options.schedule_text = schedule;
  if (red_compile_text(device, "test.red", text, &options, &program)) {
    expect(test, red_message());
    return;
  }
  shared = red_kernel_at(program, 0);
  run(test, function);
  red_release(program);
}

int main(void) {
  setenv("RED_CACHE", "off", 1);
  if (red_open("sim", &device)) return 2;
  test_fork();
  run("all compile the same program", compile_and_launch);
  run_shared("a kernel compiled for each size", SUM, "schedule rowsum { bind i -> block.x; bind j -> thread.x; }", launch_exact);
  run_shared("a kernel of the tensors' types", "kernel swap<T>(X: T[a, b]) -> (Y: T[b, a]) { for i in a, j in b { Y[j, i] = X[i, j]; } }", NULL, launch_generic);
  run("the common cases", reduce);
  run_shared("workspace of each thread", "kernel total(A: i32[n]) -> (B: i32[]) { B[] = sum(j in n) A[j]; }", NULL, total);
  run("messages are each thread's own", fail_by_number);
  red_close(device);
  printf("%d passed, %d failed\n", passed, failed);
  return failed != 0;
}

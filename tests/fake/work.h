// What the tests of red.h's GPU paths against the fake driver share: a kernel with its tensors, and what is asked of the calls. Each test is a process of its own.
#ifndef RED_TESTS_FAKE_WORK_H
#define RED_TESTS_FAKE_WORK_H

#include "runtime/red.h"
#include "tests/fake/fake.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char rowsum_text[] __attribute__((unused)) =
    "kernel rowsum(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }";
// Split over the grid: it needs workspace.
static const char split_text[] __attribute__((unused)) =
    "kernel split(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }\n"
    "schedule split { split j by 256 -> jo, ji; split jo into 4 -> jb, jr; bind i -> block.x; bind jb -> "
    "block.y;\n"
    "  bind ji -> thread.x; combine jb by last_block; }";
enum { ROWS = 3, COLUMNS = 2000 };

static char cache_folder[64];

static inline void begin(void) {
  setenv("RED_LIBCUDA", FAKE_PATH, 1);
  setenv("RED_CACHE", "off", 1);
  unsetenv("RED_CHECK");
  unsetenv("RED_DEVICE");
}
static inline void with_cache(void) {
  strcpy(cache_folder, "/tmp/red-fake-XXXXXX");
  cr_assert(mkdtemp(cache_folder));
  setenv("RED_CACHE", "rw", 1);
  setenv("RED_CACHE_DIR", cache_folder, 1);
}
static inline void end(void) {
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

static inline void make(struct work *w, const char *device, const char *text) {
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

static inline void check_result(struct work *w) {
  float b[ROWS];
  OK(red_copy_out(w->device, b, w->b, sizeof b));
  for (int i = 0; i < ROWS; i++) {
    float expected = 0;
    for (int j = 0; j < COLUMNS; j++) expected += (float)(i + j % 3);
    cr_expect_eq(b[i], expected, "row %d: %g, not %g", i, (double)b[i], (double)expected);
  }
}

// Fills the result with ones, so that the next launch has something to do.
static inline void spoil(struct work *w) {
  static const float ones[ROWS] = {1, 1, 1};
  OK(red_copy_in(w->device, w->b, ones, sizeof ones));
}

static inline red_error launch(struct work *w, red_stream stream) {
  return red_launch(w->kernel, stream, w->arguments, 2);
}

static inline void drop(struct work *w) {
  OK(red_free(w->device, w->a));
  OK(red_free(w->device, w->b));
  red_release(w->program);
  red_close(w->device);
}

static inline void nothing_lives(void) {
  struct fake_live live = fake_live();
  cr_expect_eq(live.retained, 0, "%u contexts are retained", live.retained);
  cr_expect_eq(live.modules, 0, "%u modules", live.modules);
  cr_expect_eq(live.allocations, 0, "%u allocations", live.allocations);
  cr_expect_eq(live.streams, 0, "%u streams", live.streams);
  cr_expect_eq(live.links, 0, "%u links", live.links);
}

// Only these calls were made, however often each.
static inline void only_calls(const char *const *allowed) {
  char log[4096];
  snprintf(log, sizeof log, "%s", fake_log());
  for (char *save = NULL, *call = strtok_r(log, "\n", &save); call; call = strtok_r(NULL, "\n", &save)) {
    bool is_allowed = false;
    for (size_t i = 0; allowed[i]; i++) is_allowed |= strcmp(allowed[i], call) == 0;
    cr_expect(is_allowed, "%s was called", call);
  }
}
#define ONLY(...) only_calls((const char *const[]){__VA_ARGS__, NULL})

#endif

// Later launches ask the host for no memory: those of one of the thread's last kinds, and others, with workspace and without.
//
// This program counts who calls malloc. What the fake driver allocates for its simulator does not count.
#include "tests/fake/work.h"

#include <dlfcn.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);

static __thread bool counts;
static __thread int by_red;

static void count(const void *caller) {
  Dl_info who;
  if (!counts) return;
  counts = false;
  by_red += dladdr(caller, &who) && strstr(who.dli_fname, "libred");
  counts = true;
}

#define EXPORT __attribute__((visibility("default")))
EXPORT void *malloc(size_t bytes) {
  count(__builtin_return_address(0));
  return __libc_malloc(bytes);
}
EXPORT void *calloc(size_t number, size_t bytes) {
  count(__builtin_return_address(0));
  return __libc_calloc(number, bytes);
}
EXPORT void *realloc(void *memory, size_t bytes) {
  count(__builtin_return_address(0));
  return __libc_realloc(memory, bytes);
}

// Rows of ten other lengths, so that the thread has forgotten what was launched before.
static void launch_others(struct work *w) {
  for (int i = 0; i < 10; i++) {
    w->a_shape[1] = 100 + i;
    OK(launch(w, NULL));
  }
  w->a_shape[1] = COLUMNS;
}

static void check(const char *text) {
  struct work w;
  make(&w, "cuda:0", text);
  for (int round = 0; round < 2; round++) OK(launch(&w, NULL));
  launch_others(&w);
  for (int is_known = 0; is_known < 2; is_known++) {
    counts = true;
    red_error error = launch(&w, NULL);
    counts = false;
    OK(error);
    cr_expect_eq(by_red, 0, "%d allocations", by_red);
  }
  check_result(&w);
  drop(&w);
}

Test(fake, later_launches_allocate_nothing) {
  check(rowsum_text);
  check(split_text);
  struct work w;
  make(&w, "cuda:0", rowsum_text);
  counts = true;
  red_error error = launch(&w, NULL);
  counts = false;
  OK(error);
  cr_expect_gt(by_red, 0, "the first launch loads"); // and is counted
  drop(&w);
}

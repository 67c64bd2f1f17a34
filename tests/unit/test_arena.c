#include "compiler/arena.h"

#include <criterion/criterion.h>

#include <string.h>

// Memory behind a mark is given back zeroed, whatever was allocated since: in the open chunk, in new ones, in one of its own.
Test(arena, a_release_gives_back_what_came_behind_the_mark) {
  static const size_t sizes[][3] = {{16, 48, 1}, {60000, 60000, 60000}, {300000, 16, 16}, {16, 300000, 60000}, {16, 60000, 300000}};
  for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
    struct arena arena;
    arena_init(&arena);
    char *kept = arena_alloc(&arena, 100);
    memset(kept, 7, 100);
    size_t total = arena.total;
    for (int round = 0; round < 3; round++) {
      struct arena_mark mark = arena_place(&arena);
      for (int i = 0; i < 3; i++) memset(arena_alloc(&arena, sizes[n][i]), 9, sizes[n][i]);
      arena_release(&arena, mark);
      cr_expect_eq(arena.total, total);
    }
    char *again = arena_alloc(&arena, 64000);
    for (int i = 0; i < 64000; i++) cr_assert_eq(again[i], 0, "sizes %zu, byte %d", n, i);
    for (int i = 0; i < 100; i++) cr_assert_eq(kept[i], 7);
    arena_destroy(&arena);
  }
}

Test(arena, an_empty_arena_can_be_gone_back_to) {
  struct arena arena;
  arena_init(&arena);
  struct arena_mark mark = arena_place(&arena);
  arena_alloc(&arena, 100);
  arena_release(&arena, mark);
  cr_expect_eq(arena.total, 0);
  cr_expect_null(arena.chunks);
  cr_expect_eq(*(char *)arena_alloc(&arena, 1), 0);
  arena_destroy(&arena);
}

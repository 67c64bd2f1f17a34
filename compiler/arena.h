// Memory of one compilation: chunked arenas, growable lists, interned strings.
//
// Everything that a compilation builds lives in an arena and dies with it; pointers never move and nodes are never
// freed one by one. An arena belongs to one thread at a time.

#ifndef RED_COMPILER_ARENA_H
#define RED_COMPILER_ARENA_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena_chunk;
struct arena {
  struct arena_chunk *chunks;
  char *next, *end;
  size_t total; // bytes handed out by malloc, for statistics
};

// An empty arena takes no memory.
void arena_init(struct arena *arena);
void arena_destroy(struct arena *arena);
// Zeroed memory, aligned for any type. Out of memory prints one line and exits with status 3.
void *arena_alloc(struct arena *arena, size_t bytes);
#define arena_new(arena, type) ((type *)arena_alloc((arena), sizeof(type)))
#define arena_array(arena, type, count) ((type *)arena_alloc((arena), sizeof(type) * (size_t)(count)))
// A place to go back to: what was allocated since is given back, and must not be used any more.
struct arena_mark {
  struct arena_chunk *chunk;
  char *next, *end;
};
struct arena_mark arena_place(const struct arena *arena);
void arena_release(struct arena *arena, struct arena_mark mark);
char *arena_strndup(struct arena *arena, const char *text, size_t length);
char *arena_strdup(struct arena *arena, const char *text);
char *arena_printf(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(struct arena *arena, const char *format, va_list arguments);

// A growable array of pointers.
struct list {
  void **at;
  uint32_t count, capacity;
};
void list_push(struct arena *arena, struct list *list, void *item);
void list_append(struct arena *arena, struct list *list, const struct list *more);
// Puts `item` in front of index `place` (0..count).
void list_insert(struct arena *arena, struct list *list, uint32_t place, void *item);
void list_remove(struct list *list, uint32_t place);
struct list list_copy(struct arena *arena, const struct list *list);
#define list_at(list, type, index) ((type *)(list)->at[index])

// A growable text. Lives in malloc'ed memory; text_free or text_take ends it. Never NULL after the first append.
struct text {
  char *data;
  size_t length, capacity;
};
void text_append(struct text *text, const char *data, size_t length);
void text_puts(struct text *text, const char *string);
void text_printf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_free(struct text *text);

// Map from strings to pointers, in insertion order; keys are copied into the arena.
struct map_entry;
struct map {
  struct arena *arena;
  struct map_entry **buckets;
  uint32_t bucket_count, count;
};
void map_init(struct map *map, struct arena *arena);
void *map_get(const struct map *map, const char *key);
void map_set(struct map *map, const char *key, void *value);

#endif

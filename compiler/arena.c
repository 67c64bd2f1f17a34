#include "compiler/arena.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Under the sanitizers memory is given back at once, so that uses of it after that are seen.
#ifdef RED_SANITIZED
enum { MOST_SPARE = 0 };
#else
enum { MOST_SPARE = 128 };
#endif
enum { CHUNK_BYTES = 64 * 1024, ALIGNMENT = 16 };

struct arena_chunk {
  struct arena_chunk *next;
  size_t bytes;
  size_t used; // of a spare one: how much of it is not zero
};
enum { HEADER_BYTES = (sizeof(struct arena_chunk) + ALIGNMENT - 1) & ~(ALIGNMENT - 1) };

// Chunks that no arena has, for the next arena of any thread, which zeroes them: fresh ones cost a page fault for each 4 KiB, and a proof of 1024 threads takes megabytes.
// Nobody waits for the lock, which a child of fork() may find held for ever: who does not get it at once does without.
static struct {
  pthread_mutex_t lock;
  struct arena_chunk *first;
  uint32_t count;
} spare = {PTHREAD_MUTEX_INITIALIZER, NULL, 0};

static struct arena_chunk *take_spare(void) {
  if (pthread_mutex_trylock(&spare.lock)) return NULL;
  struct arena_chunk *chunk = spare.first;
  if (chunk) {
    spare.first = chunk->next;
    spare.count--;
  }
  pthread_mutex_unlock(&spare.lock);
  if (chunk) memset((char *)chunk + HEADER_BYTES, 0, chunk->used);
  return chunk;
}

// Gives up a chunk, of which `used` bytes may have been written.
static void give_up(struct arena_chunk *chunk, size_t used) {
  bool is_kept = false;
  if (chunk->bytes == CHUNK_BYTES && !pthread_mutex_trylock(&spare.lock)) {
    is_kept = spare.count + 1 <= MOST_SPARE;
    if (is_kept) {
      chunk->used = used;
      chunk->next = spare.first;
      spare.first = chunk;
      spare.count++;
    }
    pthread_mutex_unlock(&spare.lock);
  }
  if (!is_kept) free(chunk);
}

static void out_of_memory(void) {
  fputs("redc: error: out of memory\n", stderr);
  exit(3);
}

void arena_init(struct arena *arena) { memset(arena, 0, sizeof *arena); }

// How much of a chunk of the arena may have been written: of the open one, what was handed out.
static size_t used_of(const struct arena *arena, const struct arena_chunk *chunk) {
  const char *start = (const char *)chunk + HEADER_BYTES;
  return arena->end == start + chunk->bytes ? (size_t)(arena->next - start) : chunk->bytes;
}

void arena_destroy(struct arena *arena) {
  struct arena_chunk *chunk = arena->chunks;
  while (chunk) {
    struct arena_chunk *next = chunk->next;
    give_up(chunk, used_of(arena, chunk));
    chunk = next;
  }
  arena_init(arena);
}

void *arena_alloc(struct arena *arena, size_t bytes) {
  bytes = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
  if (bytes == 0) bytes = ALIGNMENT;
  if ((size_t)(arena->end - arena->next) < bytes || !arena->next) {
    size_t size = bytes > CHUNK_BYTES / 4 ? bytes : CHUNK_BYTES;
    struct arena_chunk *chunk = size == CHUNK_BYTES ? take_spare() : NULL;
    if (!chunk) chunk = calloc(1, HEADER_BYTES + size);
    if (!chunk) out_of_memory();
    chunk->bytes = size;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    arena->total += HEADER_BYTES + size;
    char *start = (char *)chunk + HEADER_BYTES;
    if (size == bytes) return start; // a large object has a chunk of its own; the open chunk stays open
    arena->next = start;
    arena->end = start + size;
  }
  void *result = arena->next;
  arena->next += bytes;
  return result;
}

struct arena_mark arena_place(const struct arena *arena) { return (struct arena_mark){arena->chunks, arena->next, arena->end}; }

void arena_release(struct arena *arena, struct arena_mark mark) {
  const char *used = arena->end == mark.end ? arena->next : mark.end; // the open chunk of then was left, or is open still
  while (arena->chunks != mark.chunk) {
    struct arena_chunk *chunk = arena->chunks;
    arena->chunks = chunk->next;
    arena->total -= HEADER_BYTES + chunk->bytes;
    give_up(chunk, used_of(arena, chunk));
  }
  if (mark.next) memset(mark.next, 0, (size_t)(used - mark.next));
  arena->next = mark.next;
  arena->end = mark.end;
}

char *arena_strndup(struct arena *arena, const char *text, size_t length) {
  char *copy = arena_alloc(arena, length + 1);
  memcpy(copy, text, length);
  return copy;
}

char *arena_strdup(struct arena *arena, const char *text) { return arena_strndup(arena, text, strlen(text)); }

char *arena_vprintf(struct arena *arena, const char *format, va_list arguments) {
  char small[256];
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(small, sizeof small, format, arguments);
  char *result = arena_alloc(arena, (size_t)length + 1);
  if ((size_t)length < sizeof small) memcpy(result, small, (size_t)length);
  else vsnprintf(result, (size_t)length + 1, format, again);
  va_end(again);
  return result;
}

char *arena_printf(struct arena *arena, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char *result = arena_vprintf(arena, format, arguments);
  va_end(arguments);
  return result;
}

void list_push(struct arena *arena, struct list *list, void *item) { list_insert(arena, list, list->count, item); }

void list_append(struct arena *arena, struct list *list, const struct list *more) {
  for (uint32_t i = 0; i < more->count; i++) list_push(arena, list, more->at[i]);
}

void list_insert(struct arena *arena, struct list *list, uint32_t place, void *item) {
  if (list->count == list->capacity) {
    uint32_t capacity = list->capacity ? 2 * list->capacity : 4;
    void **grown = arena_array(arena, void *, capacity);
    if (list->count) memcpy(grown, list->at, sizeof(void *) * list->count);
    list->at = grown;
    list->capacity = capacity;
  }
  memmove(list->at + place + 1, list->at + place, sizeof(void *) * (list->count - place));
  list->at[place] = item;
  list->count++;
}

void list_remove(struct list *list, uint32_t place) {
  memmove(list->at + place, list->at + place + 1, sizeof(void *) * (list->count - place - 1));
  list->count--;
}

struct list list_copy(struct arena *arena, const struct list *list) {
  struct list copy = {0};
  list_append(arena, &copy, list);
  return copy;
}

void text_append(struct text *text, const char *data, size_t length) {
  if (text->capacity - text->length <= length) {
    size_t capacity = text->capacity ? text->capacity : 256;
    while (capacity - text->length <= length) capacity *= 2;
    char *grown = realloc(text->data, capacity);
    if (!grown) out_of_memory();
    text->data = grown;
    text->capacity = capacity;
  }
  if (length) memcpy(text->data + text->length, data, length);
  text->length += length;
  text->data[text->length] = 0;
}

void text_puts(struct text *text, const char *string) { text_append(text, string, strlen(string)); }

void text_printf(struct text *text, const char *format, ...) {
  char small[256];
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  int length = vsnprintf(small, sizeof small, format, arguments);
  va_end(arguments);
  if ((size_t)length < sizeof small) {
    text_append(text, small, (size_t)length);
  } else {
    char *large = malloc((size_t)length + 1);
    if (!large) out_of_memory();
    vsnprintf(large, (size_t)length + 1, format, again);
    text_append(text, large, (size_t)length);
    free(large);
  }
  va_end(again);
}

void text_free(struct text *text) {
  free(text->data);
  memset(text, 0, sizeof *text);
}

struct map_entry {
  struct map_entry *next;
  const char *key;
  void *value;
  uint32_t hash;
};

static uint32_t hash_string(const char *key) { // FNV-1a
  uint32_t hash = 2166136261u;
  for (; *key; key++) hash = (hash ^ (unsigned char)*key) * 16777619u;
  return hash;
}

void map_init(struct map *map, struct arena *arena) {
  memset(map, 0, sizeof *map);
  map->arena = arena;
}

static struct map_entry *map_find(const struct map *map, const char *key, uint32_t hash) {
  if (!map->bucket_count) return NULL;
  for (struct map_entry *e = map->buckets[hash & (map->bucket_count - 1)]; e; e = e->next)
    if (e->hash == hash && strcmp(e->key, key) == 0) return e;
  return NULL;
}

void *map_get(const struct map *map, const char *key) {
  struct map_entry *entry = map_find(map, key, hash_string(key));
  return entry ? entry->value : NULL;
}

void map_set(struct map *map, const char *key, void *value) {
  uint32_t hash = hash_string(key);
  struct map_entry *entry = map_find(map, key, hash);
  if (entry) {
    entry->value = value;
    return;
  }
  if (map->count >= map->bucket_count) {
    uint32_t grown = map->bucket_count ? 2 * map->bucket_count : 16;
    struct map_entry **buckets = arena_array(map->arena, struct map_entry *, grown);
    for (uint32_t i = 0; i < map->bucket_count; i++)
      for (struct map_entry *e = map->buckets[i], *next; e; e = next) {
        next = e->next;
        e->next = buckets[e->hash & (grown - 1)];
        buckets[e->hash & (grown - 1)] = e;
      }
    map->buckets = buckets;
    map->bucket_count = grown;
  }
  entry = arena_new(map->arena, struct map_entry);
  entry->key = arena_strdup(map->arena, key);
  entry->hash = hash;
  entry->value = value;
  entry->next = map->buckets[hash & (map->bucket_count - 1)];
  map->buckets[hash & (map->bucket_count - 1)] = entry;
  map->count++;
}

// Memory of an argument of `redc run` and `redc check`: a view of any strides, with canaries around it and in
// its gaps.
#ifndef RED_COMPILER_RUN_BUFFER_H
#define RED_COMPILER_RUN_BUFFER_H

#include "compiler/ir.h"

enum { BUFFER_CANARY = 0xa5, BUFFER_POISON = 0xcc, BUFFER_CANARY_BYTES = 256 };

struct buffer {
  const char *name;
  enum type type;
  uint32_t rank;
  const int64_t *dims;
  const int64_t *strides; // in elements, any sign
  int64_t offset;         // of element (0, ..., 0) from the start, in elements
  int64_t count;          // elements
  int64_t bytes;          // from the start to behind the last element
  uint8_t *start;         // aligned to 4096
  uint8_t *memory;        // what start lies in
  size_t memory_bytes;
};

// Describes a buffer and takes its memory, which costs nothing where nobody writes. `strides` NULL:
// row-major. The arrays stay the caller's. False: `error` says why.
bool buffer_init(struct buffer *buffer, const char *name, enum type type, uint32_t rank, const int64_t *dims,
                 const int64_t *strides, int64_t offset, struct arena *arena, char *error,
                 size_t error_bytes);
// The same layout and the same bytes in memory of its own.
bool buffer_copy(struct buffer *copy, const struct buffer *buffer, char *error, size_t error_bytes);
void buffer_free(struct buffer *buffer);

// Bytes that filling the elements takes; those at stride 0 count once. INT64_MAX where that is more than
// there can be.
int64_t buffer_element_bytes(const struct buffer *buffer);
// Whether so many bytes are at most three quarters of the machine's memory; else says so.
bool buffer_memory_suffices(int64_t bytes, char *error, size_t error_bytes);

// Element (0, ..., 0).
uint8_t *buffer_data(const struct buffer *buffer);
bool buffer_is_row_major(const struct buffer *buffer);
// Fills every element, or only the canaries: 256 bytes before, behind and at both ends of each gap between
// elements.
void buffer_fill(struct buffer *buffer, int byte);
void buffer_set_canaries(struct buffer *buffer);
// Whether all canaries are as they were set; else says which is not.
bool buffer_has_canaries(const struct buffer *buffer, char *error, size_t error_bytes);
// Calls `visit` for each gap between start and the last element: no element lies in it. Elements that overlap
// leave no gaps.
void buffer_visit_gaps(const struct buffer *buffer, void (*visit)(int64_t offset, int64_t bytes, void *state),
                       void *state);

// The elements in row-major order, from or to `data`.
void buffer_scatter(struct buffer *buffer, const void *data);
void buffer_gather(const struct buffer *buffer, void *data);

// Walks the elements in row-major order: `for (buffer_walk_begin(&w, b); !w.is_done; buffer_walk_next(&w))`.
struct buffer_walk {
  const struct buffer *buffer;
  int64_t index[64];
  int64_t flat; // row-major number of the element
  uint8_t *element;
  bool is_done;
};
void buffer_walk_begin(struct buffer_walk *walk, const struct buffer *buffer);
void buffer_walk_next(struct buffer_walk *walk);

#endif

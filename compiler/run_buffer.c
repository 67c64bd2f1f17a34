#include "compiler/run_buffer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, MAX_RANK = 64 };

static bool map_memory(struct buffer *buffer, char *error, size_t error_bytes) {
  buffer->memory_bytes = (size_t)buffer->bytes + 2 * PAGE;
  void *memory = mmap(NULL, buffer->memory_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    snprintf(error, error_bytes, "%s: there is no memory for %" PRId64 " bytes", buffer->name, buffer->bytes);
    buffer->memory = NULL;
    return false;
  }
  buffer->memory = memory;
  buffer->start = buffer->memory + PAGE;
  return true;
}

// Lowest and highest element, as offsets from element (0, ..., 0).
static bool element_span(const struct buffer *buffer, int64_t *lo, int64_t *hi) {
  *lo = *hi = 0;
  for (uint32_t d = 0; d < buffer->rank; d++) {
    int64_t reach, *end = buffer->strides[d] < 0 ? lo : hi;
    if (__builtin_mul_overflow(buffer->strides[d], buffer->dims[d] - 1, &reach) ||
        __builtin_add_overflow(*end, reach, end))
      return false;
  }
  return true;
}

bool buffer_init(struct buffer *buffer, const char *name, enum type type, uint32_t rank, const int64_t *dims,
                 const int64_t *strides, int64_t offset, struct arena *arena, char *error,
                 size_t error_bytes) {
  *buffer = (struct buffer){.name = name,
                            .type = type,
                            .rank = rank,
                            .dims = dims,
                            .strides = strides,
                            .offset = offset,
                            .count = 1};
  bool overflows = false, is_empty = false;
  for (uint32_t d = 0; d < rank; d++) {
    is_empty = is_empty || dims[d] == 0;
    overflows = overflows || __builtin_mul_overflow(buffer->count, dims[d], &buffer->count);
  }
  if (is_empty) buffer->count = 0;
  if (!strides) {
    int64_t *row_major = arena_array(arena, int64_t, rank + 1), step = 1;
    for (uint32_t d = rank; d-- > 0;) {
      row_major[d] = step;
      if ((is_empty || !overflows) && __builtin_mul_overflow(step, dims[d], &step)) step = 0; // of a tensor without elements: as a launch counts them
    }
    buffer->strides = row_major;
  }
  int64_t lo = 0, hi = 0, size = type_bytes(type);
  if (!is_empty) {
    overflows = overflows || !element_span(buffer, &lo, &hi);
    if (!overflows && offset + lo < 0) {
      snprintf(error, error_bytes,
               "%s: the view begins %" PRId64 " elements before its buffer; give it offset:%" PRId64
               " or more",
               name, -(offset + lo), -lo);
      return false;
    }
    overflows = overflows || __builtin_add_overflow(hi, offset + 1, &buffer->bytes);
  } else {
    buffer->bytes = offset;
  }
  if (overflows || __builtin_mul_overflow(buffer->bytes, size, &buffer->bytes) ||
      buffer->bytes > INT64_MAX / 4) {
    snprintf(error, error_bytes, "%s: its shape and strides need more memory than there can be", name);
    return false;
  }
  return map_memory(buffer, error, error_bytes);
}

bool buffer_copy(struct buffer *copy, const struct buffer *buffer, char *error, size_t error_bytes) {
  *copy = *buffer;
  if (!map_memory(copy, error, error_bytes)) return false;
  struct buffer_walk from, to;
  if (buffer_is_row_major(buffer)) {
    memcpy(copy->start, buffer->start, (size_t)buffer->bytes);
    return true;
  }
  uint32_t size = type_bytes(buffer->type); // elements only: what lies between may be huge and untouched
  for (buffer_walk_begin(&from, buffer), buffer_walk_begin(&to, copy); !from.is_done;
       buffer_walk_next(&from), buffer_walk_next(&to))
    memcpy(to.element, from.element, size);
  return true;
}

void buffer_free(struct buffer *buffer) {
  if (buffer->memory) munmap(buffer->memory, buffer->memory_bytes);
  buffer->memory = NULL;
}

int64_t buffer_element_bytes(const struct buffer *buffer) {
  int64_t bytes = buffer->count ? type_bytes(buffer->type) : 0;
  for (uint32_t d = 0; d < buffer->rank; d++)
    if (buffer->strides[d] && __builtin_mul_overflow(bytes, buffer->dims[d], &bytes)) return INT64_MAX;
  return bytes;
}

bool buffer_memory_suffices(int64_t bytes, char *error, size_t error_bytes) {
  int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0 || bytes / page <= pages / 4 * 3) return true;
  snprintf(error, error_bytes,
           "the arguments need %" PRId64
           " MB of memory; a run may take three quarters of this machine's %" PRId64 " MB",
           bytes / 1000000, (int64_t)((double)pages * (double)page / 1e6));
  return false;
}

uint8_t *buffer_data(const struct buffer *buffer) {
  return buffer->start + buffer->offset * (int64_t)type_bytes(buffer->type);
}

bool buffer_is_row_major(const struct buffer *buffer) {
  int64_t step = 1;
  for (uint32_t d = buffer->rank; d-- > 0; step *= buffer->dims[d])
    if (buffer->count && buffer->dims[d] > 1 && buffer->strides[d] != step) return false;
  return true;
}

// --- Walks
// ------------------------------------------------------------------------------------------------------------------

void buffer_walk_begin(struct buffer_walk *walk, const struct buffer *buffer) {
  *walk = (struct buffer_walk){.buffer = buffer, .element = buffer_data(buffer), .is_done = !buffer->count};
}

void buffer_walk_next(struct buffer_walk *walk) {
  const struct buffer *b = walk->buffer;
  int64_t size = type_bytes(b->type);
  walk->flat++;
  for (uint32_t d = b->rank; d-- > 0;) {
    walk->element += b->strides[d] * size;
    if (++walk->index[d] < b->dims[d]) return;
    walk->element -= b->strides[d] * size * b->dims[d];
    walk->index[d] = 0;
  }
  walk->is_done = true;
}

// The elements as runs of consecutive bytes at nested strides: outer dimensions by falling stride. False
// where elements overlap or interleave, so that there is no such order.
struct runs {
  uint32_t rank;
  int64_t dims[MAX_RANK], strides[MAX_RANK]; // bytes, outermost first
  int64_t first;                             // offset of the first run
  int64_t bytes;                             // of each
};
static bool find_runs(const struct buffer *buffer, struct runs *runs) {
  int64_t size = type_bytes(buffer->type);
  runs->rank = 0;
  runs->first = buffer->offset * size;
  runs->bytes = size;
  for (uint32_t d = 0; d < buffer->rank; d++) {
    int64_t stride = buffer->strides[d] * size;
    if (buffer->dims[d] == 1 || stride == 0) continue;
    if (stride < 0) {
      runs->first += stride * (buffer->dims[d] - 1);
      stride = -stride;
    }
    uint32_t at = runs->rank++; // insertion by falling stride
    for (; at && runs->strides[at - 1] < stride; at--) {
      runs->strides[at] = runs->strides[at - 1];
      runs->dims[at] = runs->dims[at - 1];
    }
    runs->strides[at] = stride;
    runs->dims[at] = buffer->dims[d];
  }
  for (; runs->rank && runs->strides[runs->rank - 1] == runs->bytes; runs->rank--)
    runs->bytes *= runs->dims[runs->rank - 1];
  int64_t inner = runs->bytes; // bytes that the dimensions inside span
  for (uint32_t d = runs->rank; d-- > 0;) {
    if (runs->strides[d] < inner) return false;
    inner += runs->strides[d] * (runs->dims[d] - 1);
  }
  return true;
}

// Calls visit for each run in order, and the gap before it: [gap, run) [run, run + bytes).
static void visit_runs(const struct runs *runs,
                       void (*visit)(int64_t gap, int64_t run, int64_t bytes, void *state), void *state) {
  int64_t index[MAX_RANK] = {0}, at = runs->first, end = 0;
  for (;;) {
    visit(end, at, runs->bytes, state);
    end = at + runs->bytes;
    uint32_t d = runs->rank;
    while (d-- > 0) {
      at += runs->strides[d];
      if (++index[d] < runs->dims[d]) break;
      at -= runs->strides[d] * runs->dims[d];
      index[d] = 0;
    }
    if (d == UINT32_MAX) return;
  }
}

struct gap_visit {
  void (*visit)(int64_t offset, int64_t bytes, void *state);
  void *state;
};
static void visit_gap(int64_t gap, int64_t run, int64_t bytes, void *state) {
  (void)bytes;
  const struct gap_visit *v = state;
  if (run > gap) v->visit(gap, run - gap, v->state);
}

void buffer_visit_gaps(const struct buffer *buffer, void (*visit)(int64_t offset, int64_t bytes, void *state),
                       void *state) {
  struct runs runs;
  struct gap_visit v = {visit, state};
  if (!buffer->count) {
    if (buffer->bytes) visit(0, buffer->bytes, state);
    return;
  }
  if (find_runs(buffer, &runs)) visit_runs(&runs, visit_gap, &v);
}

struct fill {
  uint8_t *start;
  int byte;
};
static void fill_run(int64_t gap, int64_t run, int64_t bytes, void *state) {
  (void)gap;
  const struct fill *fill = state;
  memset(fill->start + run, fill->byte, (size_t)bytes);
}

void buffer_fill(struct buffer *buffer, int byte) {
  struct runs runs;
  struct fill fill = {buffer->start, byte};
  struct buffer_walk w;
  if (!buffer->count) return;
  if (find_runs(buffer, &runs)) {
    visit_runs(&runs, fill_run, &fill);
    return;
  }
  for (buffer_walk_begin(&w, buffer); !w.is_done; buffer_walk_next(&w))
    memset(w.element, byte, type_bytes(buffer->type));
}

// --- Canaries
// ---------------------------------------------------------------------------------------------------------------

static void set_gap(int64_t offset, int64_t bytes, void *state) {
  uint8_t *start = (uint8_t *)state + offset;
  size_t end = bytes < BUFFER_CANARY_BYTES ? (size_t)bytes : BUFFER_CANARY_BYTES;
  memset(start, BUFFER_CANARY, end);
  memset(start + bytes - end, BUFFER_CANARY, end);
}

void buffer_set_canaries(struct buffer *buffer) {
  memset(buffer->start - BUFFER_CANARY_BYTES, BUFFER_CANARY, BUFFER_CANARY_BYTES);
  memset(buffer->start + buffer->bytes, BUFFER_CANARY, BUFFER_CANARY_BYTES);
  buffer_visit_gaps(buffer, set_gap, buffer->start);
}

struct canary_check {
  const struct buffer *buffer;
  int64_t bad;   // offset from the start of the first byte that changed
  int64_t count; // bytes that changed
};
static void check_bytes(struct canary_check *check, int64_t offset, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i++)
    if (check->buffer->start[offset + i] != BUFFER_CANARY && check->count++ == 0) check->bad = offset + i;
}
static void check_gap(int64_t offset, int64_t bytes, void *state) {
  int64_t head = bytes < BUFFER_CANARY_BYTES ? bytes : BUFFER_CANARY_BYTES;
  int64_t tail = bytes - BUFFER_CANARY_BYTES > head ? bytes - BUFFER_CANARY_BYTES : head;
  check_bytes(state, offset, head);
  check_bytes(state, offset + tail, bytes - tail);
}

bool buffer_has_canaries(const struct buffer *buffer, char *error, size_t error_bytes) {
  struct canary_check check = {buffer, 0, 0};
  check_bytes(&check, -BUFFER_CANARY_BYTES, BUFFER_CANARY_BYTES);
  buffer_visit_gaps(buffer, check_gap, &check);
  check_bytes(&check, buffer->bytes, BUFFER_CANARY_BYTES);
  if (!check.count) return true;
  if (check.bad < 0)
    snprintf(error, error_bytes,
             "%s: %" PRId64 " bytes around it were overwritten, the first %" PRId64 " bytes before its start",
             buffer->name, check.count, -check.bad);
  else if (check.bad >= buffer->bytes)
    snprintf(error, error_bytes,
             "%s: %" PRId64 " bytes around it were overwritten, the first %" PRId64 " bytes behind its end",
             buffer->name, check.count, check.bad - buffer->bytes + 1);
  else
    snprintf(error, error_bytes,
             "%s: %" PRId64 " bytes between its elements were overwritten, the first at byte %" PRId64,
             buffer->name, check.count, check.bad);
  return false;
}

// --- Row-major copies
// ----------------------------------------------------------------------------------------------------------

void buffer_scatter(struct buffer *buffer, const void *data) {
  size_t size = type_bytes(buffer->type);
  struct buffer_walk w;
  if (buffer_is_row_major(buffer)) {
    memcpy(buffer_data(buffer), data, (size_t)buffer->count * size);
    return;
  }
  for (buffer_walk_begin(&w, buffer); !w.is_done; buffer_walk_next(&w))
    memcpy(w.element, (const char *)data + (size_t)w.flat * size, size);
}

void buffer_gather(const struct buffer *buffer, void *data) {
  size_t size = type_bytes(buffer->type);
  struct buffer_walk w;
  if (buffer_is_row_major(buffer)) {
    memcpy(data, buffer_data(buffer), (size_t)buffer->count * size);
    return;
  }
  for (buffer_walk_begin(&w, buffer); !w.is_done; buffer_walk_next(&w))
    memcpy((char *)data + (size_t)w.flat * size, w.element, size);
}

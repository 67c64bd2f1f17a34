#include "compiler/run_again.h"

#include "compiler/run_element.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct range nowhere;

struct kept_bytes {
  uint32_t count;
  uint8_t *of[]; // a tensor each
};

struct kept_bytes *bytes_keep(struct kernel_arguments *a) {
  uint32_t count = a->kernel->tensors.count;
  struct kept_bytes *bytes = calloc(1, sizeof *bytes + count * sizeof *bytes->of);
  bool ok = bytes != NULL;
  for (uint32_t t = 0; ok && t < count; t++) {
    const struct buffer *buffer = &a->tensors[t].buffer;
    bytes->count = t + 1;
    bytes->of[t] = malloc(buffer->memory_bytes + 1);
    ok = bytes->of[t] != NULL;
    if (ok) memcpy(bytes->of[t], buffer->memory, buffer->memory_bytes);
  }
  if (ok) return bytes;
  diag_error(&a->c->diag, ERROR_FILE, nowhere, "there is no memory for a copy of the arguments");
  bytes_free(bytes);
  return NULL;
}

void bytes_restore(struct kernel_arguments *a, const struct kept_bytes *bytes) {
  for (uint32_t t = 0; t < bytes->count; t++)
    memcpy(a->tensors[t].buffer.memory, bytes->of[t], a->tensors[t].buffer.memory_bytes);
}

static bool is_nan(enum type type, const uint8_t *element) {
  enum type_class class = type_class_of(type);
  return (class == CLASS_FLOAT || class == CLASS_STORAGE) && isnan(element_get(type, element).number);
}

static bool tensor_agrees(struct kernel_arguments *a, uint32_t t, const uint8_t *bytes, const char *name) {
  const struct buffer *buffer = &a->tensors[t].buffer;
  struct buffer_walk walk;
  for (buffer_walk_begin(&walk, buffer); !walk.is_done; buffer_walk_next(&walk)) {
    const uint8_t *other = bytes + (walk.element - buffer->memory);
    if (memcmp(walk.element, other, type_bytes(buffer->type)) == 0) continue;
    if (is_nan(buffer->type, walk.element) && is_nan(buffer->type, other)) continue;
    struct text mine = {0}, its = {0};
    element_print(&mine, buffer->type, walk.element);
    element_print(&its, buffer->type, other);
    diag_error(&a->c->diag, ERROR_DIFFERENCE, nowhere, "element %" PRId64 " of '%s', in row-major order, is %s, and by %s it is %s",
               walk.flat, buffer->name, mine.data, name, its.data);
    text_free(&mine);
    text_free(&its);
    return false;
  }
  return true;
}

bool bytes_agree(struct kernel_arguments *a, const struct kept_bytes *bytes, const char *name) {
  bool ok = true;
  for (uint32_t t = 0; t < bytes->count; t++)
    if (list_at(&a->kernel->tensors, struct ir_mem, t)->is_output) ok &= tensor_agrees(a, t, bytes->of[t], name);
  return ok;
}

void bytes_free(struct kept_bytes *bytes) {
  for (uint32_t t = 0; bytes && t < bytes->count; t++) free(bytes->of[t]);
  free(bytes);
}

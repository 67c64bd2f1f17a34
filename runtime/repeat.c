#include "runtime/repeat.h"

#include "runtime/dlpack.h"

#include <string.h>

enum { KEPT = 8 }; // a thread
static _Thread_local struct repeat kept[KEPT];
static _Thread_local uint32_t next; // the one to go next

// --- Arguments as numbers

struct words {
  int64_t *at, *end;
};

static bool put_dims(struct words *w, uint32_t rank, const int64_t *shape, const int64_t *strides) {
  if (rank > PLAN_MAX_RANK || (rank && !shape) || w->end - w->at < 2 * (int64_t)rank) return false;
  for (uint32_t d = 0; d < rank; d++) *w->at++ = shape[d];
  for (uint32_t d = 0; d < rank && strides; d++) *w->at++ = strides[d];
  return true;
}

static bool put_tensor(struct words *w, const red_tensor *tensor) {
  *w->at++ = (int64_t)(uintptr_t)tensor->data;
  *w->at++ = (int64_t)tensor->type << 32 | (int64_t)(tensor->strides != NULL) << 16 | (tensor->rank & 0xffff);
  return tensor->rank >= 0 && put_dims(w, (uint32_t)tensor->rank, tensor->shape, tensor->strides);
}

static bool put_dltensor(struct words *w, const struct dl_tensor *tensor) {
  *w->at++ = (int64_t)(uintptr_t)tensor->data;
  *w->at++ = (int64_t)tensor->byte_offset;
  *w->at++ = (int64_t)tensor->device_type << 32 | (uint32_t)tensor->device_id;
  *w->at++ = (int64_t)tensor->type.lanes << 48 | (int64_t)tensor->type.bits << 40 | (int64_t)tensor->type.code << 32 | (int64_t)(tensor->strides != NULL) << 16 |
             (tensor->rank & 0xffff);
  return tensor->rank >= 0 && put_dims(w, (uint32_t)tensor->rank, tensor->shape, tensor->strides);
}

static bool put_argument(struct words *w, const red_argument *argument) {
  enum { MOST = 6 }; // words beside the dimensions
  if (w->end - w->at < MOST) return false;
  *w->at++ = argument->kind;
  switch (argument->kind) {
  case ARGUMENT_TENSOR: return argument->value.pointer && put_tensor(w, argument->value.pointer);
  case ARGUMENT_DLTENSOR: return argument->value.pointer && put_dltensor(w, argument->value.pointer);
  case ARGUMENT_INTEGER:
  case ARGUMENT_FLOAT:
  case ARGUMENT_SIZE: *w->at++ = argument->value.integer; return true; // the bits of a float
  default: return false;
  }
}

uint32_t repeat_words(const red_argument *arguments, size_t count, int64_t *words) {
  struct words w = {words, words + REPEAT_WORDS};
  if (!arguments) return 0;
  for (size_t i = 0; i < count; i++)
    if (!put_argument(&w, &arguments[i])) return 0;
  return (uint32_t)(w.at - words);
}

// --- Launches

struct repeat *repeat_find(const struct red_kernel *kernel, const int64_t *words, uint32_t word_count) {
  for (uint32_t i = 0; i < KEPT; i++) {
    struct repeat *repeat = &kept[i];
    if (repeat->serial != kernel->serial || repeat->word_count != word_count) continue;
    bool is_same = true;
    for (uint32_t k = 0; k < word_count && is_same; k++) is_same = repeat->words[k] == words[k];
    if (is_same) return repeat;
  }
  return NULL;
}

static bool keep_launch(const struct call *call, const struct plan_launch_value *value, struct repeat_launch *kept_launch) {
  const struct plan_launch *launch = value->launch;
  if (launch->argument_count > REPEAT_ARGUMENTS) return false;
  *kept_launch = (struct repeat_launch){.shared = value->shared, .argument_count = launch->argument_count, .is_programmatic = launch->is_programmatic};
  kept_launch->function = call->module->functions[variant_function(call->variant, call->place, call->result.entry, launch)];
  memcpy(kept_launch->grid, value->grid, sizeof value->grid);
  memcpy(kept_launch->block, launch->block, sizeof launch->block);
  for (uint32_t a = 0; a < launch->argument_count; a++) {
    bool is_offset = launch->arguments[a].kind == PLAN_ARGUMENT_WORKSPACE;
    kept_launch->arguments[a] = value->arguments[a] - (is_offset ? value->workspace : 0);
    kept_launch->in_workspace |= (uint32_t)is_offset << a;
  }
  return true;
}

void repeat_keep(const struct red_kernel *kernel, const int64_t *words, uint32_t word_count, const struct call *call) {
  struct repeat *repeat = &kept[next];
  repeat->serial = 0;
  if (call->result.launch_count > REPEAT_LAUNCHES) return;
  for (uint32_t l = 0; l < call->result.launch_count; l++)
    if (!keep_launch(call, &call->result.launches[l], &repeat->launches[l])) return;
  memcpy(repeat->words, words, word_count * sizeof *words);
  repeat->word_count = word_count;
  repeat->launch_count = call->result.launch_count;
  repeat->workspace = call->result.workspace;
  repeat->zeroed = call->result.zeroed;
  repeat->serial = kernel->serial;
  next = (next + 1) % KEPT;
}

#include "runtime/repeat.h"

#include "runtime/dlpack.h"

#include <string.h>

enum { KEPT = 8 }; // a thread
static _Thread_local struct repeat kept[KEPT];
static _Thread_local uint32_t next; // the one to go next

// --- Arguments as numbers

struct words {
  int64_t *at, *end;
  struct repeat_key *key;
};

static bool put_address(struct words *w, uint64_t address) {
  if (w->key->tensor_count == REPEAT_TENSORS) return false;
  w->key->addresses[w->key->tensor_count++] = address;
  return true;
}

static bool put_dims(struct words *w, uint32_t rank, const int64_t *shape, const int64_t *strides) {
  if (rank > PLAN_MAX_RANK || (rank && !shape) || w->end - w->at < 2 * (int64_t)rank) return false;
  for (uint32_t d = 0; d < rank; d++) *w->at++ = shape[d];
  for (uint32_t d = 0; d < rank && strides; d++) *w->at++ = strides[d];
  return true;
}

static bool put_tensor(struct words *w, const red_tensor *tensor) {
  *w->at++ = (int64_t)tensor->type << 32 | (int64_t)(tensor->strides != NULL) << 16 | (tensor->rank & 0xffff);
  return tensor->rank >= 0 && put_address(w, (uint64_t)(uintptr_t)tensor->data) && put_dims(w, (uint32_t)tensor->rank, tensor->shape, tensor->strides);
}

static bool put_dltensor(struct words *w, const struct dl_tensor *tensor) {
  *w->at++ = (int64_t)tensor->device_type << 32 | (uint32_t)tensor->device_id;
  *w->at++ = (int64_t)tensor->type.lanes << 48 | (int64_t)tensor->type.bits << 40 | (int64_t)tensor->type.code << 32 | (int64_t)(tensor->strides != NULL) << 16 |
             (tensor->rank & 0xffff);
  uint64_t address = tensor->data ? (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset : 0;
  return tensor->rank >= 0 && put_address(w, address) && put_dims(w, (uint32_t)tensor->rank, tensor->shape, tensor->strides);
}

static bool put_argument(struct words *w, const red_argument *argument) {
  enum { MOST = 4 }; // words beside the dimensions
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

bool repeat_make_key(const red_argument *arguments, size_t count, struct repeat_key *key) {
  struct words w = {key->words, key->words + REPEAT_WORDS, key};
  key->tensor_count = 0;
  if (!arguments) return false;
  for (size_t i = 0; i < count; i++)
    if (!put_argument(&w, &arguments[i])) return false;
  key->word_count = (uint32_t)(w.at - key->words);
  return key->word_count > 0;
}

// --- Launches with tensors elsewhere

static bool overlap(const struct repeat_span *a, uint64_t a_address, const struct repeat_span *b, uint64_t b_address) {
  return (__int128)a_address + a->low < (__int128)b_address + b->high && (__int128)b_address + b->low < (__int128)a_address + a->high;
}

// Whether everything that the plan decided would be decided again.
static bool may_move(const struct repeat *repeat, const uint64_t *addresses) {
  uint32_t count = repeat->key.tensor_count;
  for (uint32_t t = 0; t < count; t++)
    if ((addresses[t] ^ repeat->key.addresses[t]) & repeat->fixed || (!addresses[t] && !repeat->spans[t].is_empty)) return false;
  for (uint32_t t = 0; t < count; t++) {
    if (!repeat->spans[t].is_output || repeat->spans[t].is_empty) continue;
    for (uint32_t u = 0; u < count; u++)
      if (u != t && !repeat->spans[u].is_empty && overlap(&repeat->spans[t], addresses[t], &repeat->spans[u], addresses[u])) return false;
  }
  return true;
}

static void move(struct repeat *repeat, const uint64_t *addresses) {
  memcpy(repeat->key.addresses, addresses, repeat->key.tensor_count * sizeof *addresses);
  for (uint32_t l = 0; l < repeat->launch_count; l++) {
    struct repeat_launch *launch = &repeat->launches[l];
    for (uint32_t a = 0; a < launch->argument_count; a++)
      if (launch->tensors[a]) launch->arguments[a] = addresses[launch->tensors[a] - 1];
  }
}

static bool is_same(const void *a, const void *b, size_t count, size_t bytes) {
  return memcmp(a, b, count * bytes) == 0;
}

const struct repeat *repeat_find(const struct red_kernel *kernel, const struct repeat_key *key) {
  for (uint32_t i = 0; i < KEPT; i++) {
    struct repeat *repeat = &kept[i];
    if (repeat->serial != kernel->serial || repeat->key.word_count != key->word_count || repeat->key.tensor_count != key->tensor_count ||
        !is_same(repeat->key.words, key->words, key->word_count, sizeof *key->words))
      continue;
    if (is_same(repeat->key.addresses, key->addresses, key->tensor_count, sizeof *key->addresses)) return repeat;
    if (!may_move(repeat, key->addresses)) continue;
    move(repeat, key->addresses);
    return repeat;
  }
  return NULL;
}

// --- Launches that were started

static bool keep_launch(const struct call *call, const struct plan_launch_value *value, struct repeat_launch *kept_launch) {
  const struct plan_launch *launch = value->launch;
  if (launch->argument_count > REPEAT_ARGUMENTS) return false;
  *kept_launch = (struct repeat_launch){.shared = value->shared, .argument_count = launch->argument_count, .is_programmatic = launch->is_programmatic};
  kept_launch->function = call->module->functions[variant_function(call->variant, call->place, call->result.entry, launch)];
  memcpy(kept_launch->grid, value->grid, sizeof value->grid);
  memcpy(kept_launch->block, launch->block, sizeof launch->block);
  for (uint32_t a = 0; a < launch->argument_count; a++) {
    const struct plan_argument *argument = &launch->arguments[a];
    bool is_offset = argument->kind == PLAN_ARGUMENT_WORKSPACE;
    kept_launch->arguments[a] = value->arguments[a] - (is_offset ? value->workspace : 0);
    kept_launch->in_workspace |= (uint32_t)is_offset << a;
    if (argument->kind == PLAN_ARGUMENT_TENSOR) kept_launch->tensors[a] = (uint8_t)(1 + argument->index);
  }
  return true;
}

// What must stay as it is of addresses: their remainders, up to the largest that the plans look at or an element is aligned to, and on which side of 2^63 they are.
static uint64_t find_fixed(const struct call *call) {
  uint64_t step = call->kernel->address_step, other = call->variant->address_step;
  if (!step || !other) return UINT64_MAX;
  if (other > step) step = other;
  for (uint32_t t = 0; t < call->plan->tensor_count; t++) {
    uint64_t bytes = plan_type_bytes(call->plan->tensors[t].type);
    if (bytes > step) step = bytes;
  }
  return (step - 1) | UINT64_C(1) << 63;
}

void repeat_keep(const struct red_kernel *kernel, const struct repeat_key *key, const struct call *call) {
  struct repeat *repeat = &kept[next];
  repeat->serial = 0;
  if (call->result.launch_count > REPEAT_LAUNCHES) return;
  for (uint32_t l = 0; l < call->result.launch_count; l++)
    if (!keep_launch(call, &call->result.launches[l], &repeat->launches[l])) return;
  for (uint32_t t = 0; t < key->tensor_count; t++) {
    struct repeat_span *span = &repeat->spans[t];
    span->is_empty = !arguments_span(&call->tensors[t], &span->low, &span->high);
    span->is_output = call->plan->tensors[t].is_output;
  }
  repeat->key.word_count = key->word_count;
  repeat->key.tensor_count = key->tensor_count;
  memcpy(repeat->key.words, key->words, key->word_count * sizeof *key->words);
  memcpy(repeat->key.addresses, key->addresses, key->tensor_count * sizeof *key->addresses);
  repeat->fixed = find_fixed(call);
  repeat->launch_count = call->result.launch_count;
  repeat->workspace = call->result.workspace;
  repeat->zeroed = call->result.zeroed;
  repeat->serial = kernel->serial;
  next = (next + 1) % KEPT;
}

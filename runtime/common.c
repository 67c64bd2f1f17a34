#define RED_BUILDING
#include "runtime/common.h"

#include "runtime/program.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum takes { TAKES_ALL, TAKES_NUMBERS, TAKES_INTEGERS, TAKES_FLOATS, TAKES_TRUTH };
static const struct {
  const char *name, *reducer;
  enum takes takes;
} ops[] = {
    {"permute", "", TAKES_ALL},       {"sum", "sum", TAKES_NUMBERS}, {"prod", "prod", TAKES_NUMBERS}, {"min", "min", TAKES_NUMBERS},
    {"max", "max", TAKES_NUMBERS},    {"any", "any", TAKES_TRUTH},   {"all", "all", TAKES_TRUTH},     {"and", "and", TAKES_INTEGERS},
    {"or", "or", TAKES_INTEGERS},     {"xor", "xor", TAKES_INTEGERS}, {"mean", "sum", TAKES_FLOATS},
};
enum { OP_PERMUTE, OP_COUNT = sizeof ops / sizeof *ops };

// ---- Keys

static bool is_row_major(const red_tensor *tensor) {
  int64_t stride = 1;
  for (int d = tensor->rank; tensor->strides && d-- > 0;) {
    if (tensor->shape[d] != 1 && tensor->strides[d] != stride) return false;
    if (__builtin_mul_overflow(stride, tensor->shape[d], &stride)) stride = INT64_MAX;
  }
  return true;
}

static red_error check_tensor(const char *name, const red_tensor *tensor) {
  if (!tensor) return error_set(RED_ERROR_INVALID, "%s is NULL", name);
  if ((unsigned)tensor->type >= RED_TYPE_COUNT) return error_set(RED_ERROR_TYPE, "%s: there is no element type number %d", name, (int)tensor->type);
  if (tensor->rank < 0 || tensor->rank > PLAN_MAX_RANK)
    return error_set(RED_ERROR_RANK, "%s: the argument has rank %d; ranks are 0 to %d", name, tensor->rank, PLAN_MAX_RANK);
  if (tensor->rank && !tensor->shape) return error_set(RED_ERROR_INVALID, "%s: the argument has rank %d and no shape", name, tensor->rank);
  return RED_OK;
}

static red_error begin_key(const red_tensor *X, const red_tensor *Y, struct common_key *key) {
  const red_tensor *tensors[2] = {X, Y};
  red_error error = check_tensor("X", X);
  if (!error) error = check_tensor("Y", Y);
  if (error) return error;
  memset(key, 0, sizeof *key);
  for (int i = 0; i < 2; i++) {
    key->types[i] = (uint8_t)tensors[i]->type;
    key->ranks[i] = (uint8_t)tensors[i]->rank;
    key->is_strided[i] = !is_row_major(tensors[i]);
  }
  return RED_OK;
}

red_error common_permute_key(const red_tensor *X, const red_tensor *Y, const int *perm, struct common_key *key) {
  bool seen[PLAN_MAX_RANK] = {false};
  red_error error = begin_key(X, Y, key);
  if (error) return error;
  if (X->rank && !perm) return error_set(RED_ERROR_INVALID, "perm is NULL");
  if (X->rank != Y->rank) return error_set(RED_ERROR_RANK, "Y: the argument has rank %d, X has rank %d", Y->rank, X->rank);
  if (X->type != Y->type)
    return error_set(RED_ERROR_TYPE, "Y: the argument has elements of type %s, X's are %s", red_type_name(Y->type), red_type_name(X->type));
  for (int d = 0; d < X->rank; d++) {
    if (perm[d] < 0 || perm[d] >= X->rank || seen[perm[d]])
      return error_set(RED_ERROR_INVALID, "perm is no permutation of %d dimensions: perm[%d] is %d%s", X->rank, d, perm[d],
                       perm[d] >= 0 && perm[d] < X->rank ? " again" : "");
    seen[perm[d]] = true;
    key->axes[d] = (uint8_t)perm[d];
  }
  return RED_OK;
}

static bool is_integer(red_type type) {
  return type >= RED_I8 && type <= RED_U64;
}

static bool is_float(red_type type) {
  return plan_type_is_float((enum plan_type)type);
}

// Whether the reduction may be asked for elements of X's type and a result of Y's.
static red_error check_types(uint8_t op, red_type x, red_type y) {
  bool taken = true, widens = x == y || (is_float(x) && is_float(y)) || (is_integer(x) && is_float(y)) ||
                              (is_integer(x) && is_integer(y) && red_type_bytes(y) > red_type_bytes(x) && (y <= RED_I64 || x >= RED_U8)) ||
                              (x == RED_BOOL && is_integer(y));
  switch (ops[op].takes) {
  case TAKES_ALL: break;
  case TAKES_NUMBERS: taken = is_integer(x) || is_float(x) || (x == RED_BOOL && y != RED_BOOL); break;
  case TAKES_INTEGERS: taken = is_integer(x); break;
  case TAKES_FLOATS: taken = is_float(x); break;
  case TAKES_TRUTH:
    taken = is_integer(x) || is_float(x) || x == RED_BOOL;
    widens = y == RED_BOOL;
    break;
  }
  if (!taken) return error_set(RED_ERROR_TYPE, "X: %s takes no elements of type %s", ops[op].name, red_type_name(x));
  if (!widens) return error_set(RED_ERROR_TYPE, "Y: the %s of elements of type %s is not kept in %s", ops[op].name, red_type_name(x), red_type_name(y));
  return RED_OK;
}

red_error common_reduce_key(const char *op, const red_tensor *X, const red_tensor *Y, const int *axes, int axis_count, struct common_key *key) {
  red_error error = begin_key(X, Y, key);
  if (error) return error;
  for (uint8_t i = 1; i < OP_COUNT && op; i++)
    if (strcmp(ops[i].name, op) == 0) key->op = i;
  if (!key->op)
    return error_set(RED_ERROR_INVALID, "there is no reduction \"%.32s\": it is sum, prod, min, max, any, all, and, or, xor or mean", op ? op : "NULL");
  if (axis_count < 0 || axis_count > X->rank || (axis_count && !axes))
    return error_set(RED_ERROR_INVALID, "%d axes cannot be reduced of rank %d", axis_count, X->rank);
  for (int i = 0; i < axis_count; i++) {
    int axis = axes[i] < 0 && axes[i] >= -X->rank ? axes[i] + X->rank : axes[i];
    if (axis < 0 || axis >= X->rank || key->axes[axis])
      return error_set(RED_ERROR_INVALID, "axis %d is %s", axes[i], axis < 0 || axis >= X->rank ? "none of X's" : "given twice");
    key->axes[axis] = 1;
  }
  if (Y->rank != X->rank && Y->rank != X->rank - axis_count)
    return error_set(RED_ERROR_RANK, "Y: the argument has rank %d; X of rank %d reduced over %d axes has rank %d, or %d where axes are kept", Y->rank, X->rank,
                     axis_count, X->rank - axis_count, X->rank);
  return check_types(key->op, X->type, Y->type);
}

// ---- Texts

struct writer {
  char *text;
  size_t used;
};

static void put(struct writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct writer *w, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(w->text + w->used, COMMON_TEXT_BYTES - w->used, format, arguments);
  va_end(arguments);
  if (length > 0) w->used += (size_t)length;
  if (w->used >= COMMON_TEXT_BYTES) w->used = COMMON_TEXT_BYTES - 1;
}

// A list over dimensions of X: those chosen, each as `format` has it with the dimension's number in place of each %d.
enum chosen { ALL, KEPT, REDUCED };
static bool is_chosen(const struct common_key *key, enum chosen chosen, int d) {
  return chosen == ALL || (chosen == REDUCED) == (key->op != OP_PERMUTE && key->axes[d]);
}
static int count_chosen(const struct common_key *key, enum chosen chosen) {
  int count = 0;
  for (int d = 0; d < key->ranks[0]; d++) count += is_chosen(key, chosen, d);
  return count;
}
static void put_axes(struct writer *w, const struct common_key *key, enum chosen chosen) { // i0 in d0, i2 in d2
  const char *separator = "";
  for (int d = 0; d < key->ranks[0]; d++) {
    if (!is_chosen(key, chosen, d)) continue;
    put(w, "%si%d in d%d", separator, d, d);
    separator = ", ";
  }
}
static void put_x(struct writer *w, const struct common_key *key, char letter) {
  for (int d = 0; d < key->ranks[0]; d++) put(w, "%s%c%d", d ? ", " : "", letter, d);
}
// What Y's dimensions are: permuted, or those kept, with `one` where a reduced one is kept.
static void put_y(struct writer *w, const struct common_key *key, char letter, int one) {
  const char *separator = "";
  for (int d = 0; d < key->ranks[0]; d++) {
    if (key->op == OP_PERMUTE)
      put(w, "%s%c%d", separator, letter, key->axes[d]);
    else if (!key->axes[d])
      put(w, "%s%c%d", separator, letter, d);
    else if (key->ranks[1] == key->ranks[0])
      put(w, "%s%d", separator, one);
    else
      continue;
    separator = ", ";
  }
}

// The type to which an element is converted before it is reduced; NULL: none.
static const char *conversion(const struct common_key *key) {
  red_type x = (red_type)key->types[0], y = (red_type)key->types[1];
  if (key->op == OP_PERMUTE || x == y || ops[key->op].takes == TAKES_TRUTH) return NULL;
  if (is_float(x)) return y == RED_F64 ? "f64" : NULL; // a store rounds to the others
  return y == RED_F16 || y == RED_BF16 ? "f32" : red_type_name(y);
}

static void put_value(struct writer *w, const struct common_key *key) {
  const char *type = conversion(key);
  bool is_truth = ops[key->op].takes == TAKES_TRUTH && key->op != OP_PERMUTE && key->types[0] != RED_BOOL;
  if (type) put(w, "%s(", type);
  if (is_truth) put(w, "(");
  put(w, "X[");
  put_x(w, key, 'i');
  put(w, "]");
  if (is_truth) put(w, is_float((red_type)key->types[0]) ? " != 0.0)" : " != 0)");
  if (type) put(w, ")");
}

void common_text(const struct common_key *key, char *text) {
  struct writer w = {text, 0};
  bool reduces = key->op != OP_PERMUTE && count_chosen(key, REDUCED);
  put(&w, "kernel %s(X: %s[", key->op == OP_PERMUTE ? "permute" : "reduce", red_type_name((red_type)key->types[0]));
  put_x(&w, key, 'd');
  put(&w, "]%s) -> (Y: %s[", key->is_strided[0] && key->ranks[0] ? " strided" : "", red_type_name((red_type)key->types[1]));
  put_y(&w, key, 'd', 1);
  put(&w, "]%s) { ", key->is_strided[1] && key->ranks[1] ? " strided" : "");
  if (count_chosen(key, KEPT)) {
    put(&w, "for ");
    put_axes(&w, key, KEPT);
    put(&w, " { ");
  }
  put(&w, "Y[");
  put_y(&w, key, 'i', 0);
  put(&w, "] = ");
  if (reduces) {
    put(&w, "%s(", ops[key->op].reducer);
    put_axes(&w, key, REDUCED);
    put(&w, ") ");
  }
  put_value(&w, key);
  if (reduces && strcmp(ops[key->op].name, "mean") == 0) {
    const char *separator = " / (";
    for (int d = 0; d < key->ranks[0]; d++) {
      if (!key->axes[d]) continue;
      put(&w, "%sd%d", separator, d);
      separator = " * ";
    }
    put(&w, ")");
  }
  put(&w, ";%s }\n", count_chosen(key, KEPT) ? " }" : "");
}

static red_error give_text(const struct common_key *key, char *text, size_t bytes, size_t *length) {
  char whole[COMMON_TEXT_BYTES];
  if (bytes && !text) return error_set(RED_ERROR_INVALID, "the place for the text is NULL");
  common_text(key, whole);
  if (bytes) snprintf(text, bytes, "%s", whole);
  if (length) *length = strlen(whole);
  return RED_OK;
}

red_error red_permute_text(const red_tensor *X, const red_tensor *Y, const int *perm, char *text, size_t bytes, size_t *length) {
  struct common_key key;
  red_error error = common_permute_key(X, Y, perm, &key);
  return error ? error : give_text(&key, text, bytes, length);
}

red_error red_reduce_text(const char *op, const red_tensor *X, const red_tensor *Y, const int *axes, int axis_count, char *text, size_t bytes,
                          size_t *length) {
  struct common_key key;
  red_error error = common_reduce_key(op, X, Y, axes, axis_count, &key);
  return error ? error : give_text(&key, text, bytes, length);
}

// ---- Kernels on a device

static _Atomic(struct common_kernel *) *bucket(struct red_device *device, const struct common_key *key) {
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < sizeof *key; i++) hash = (hash ^ ((const uint8_t *)key)[i]) * 16777619u;
  return &device->common[hash % DEVICE_BUCKETS];
}

const struct red_kernel *common_find(struct red_device *device, const struct common_key *key) {
  struct common_kernel *found = atomic_load_explicit(bucket(device, key), memory_order_acquire);
  while (found && memcmp(&found->key, key, sizeof *key) != 0) found = found->next;
  return found ? found->kernel : NULL;
}

red_error common_add(struct red_device *device, const struct common_key *key, struct red_program *program, const struct red_kernel **kernel) {
  struct common_kernel *made = malloc(sizeof *made);
  if (!made) {
    red_release(program);
    return error_memory();
  }
  pthread_mutex_lock(&device->lock);
  *kernel = common_find(device, key);
  bool is_new = !*kernel;
  if (is_new) {
    *kernel = red_kernel_at(program, 0);
    *made = (struct common_kernel){atomic_load(bucket(device, key)), *key, program, *kernel};
    atomic_store_explicit(bucket(device, key), made, memory_order_release);
  }
  pthread_mutex_unlock(&device->lock);
  if (!is_new) {
    red_release(program);
    free(made);
  }
  return RED_OK;
}

void common_close(struct red_device *device) {
  for (int i = 0; i < DEVICE_BUCKETS; i++) {
    struct common_kernel *kernel = atomic_exchange(&device->common[i], NULL);
    while (kernel) {
      struct common_kernel *next = kernel->next;
      red_release(kernel->program);
      free(kernel);
      kernel = next;
    }
  }
}

// Operations on numbers that are known in every thread.
#include "passes/prove_engine.h"

#include "compiler/arith.h"

#include <string.h>

static void wrap_all(struct prover *p, enum type type, int64_t *x) {
  switch ((int)type) {
  case TYPE_I32:
    for (uint32_t t = 0; t < p->threads; t++) x[t] = (int32_t)x[t];
    return;
  case TYPE_U32:
    for (uint32_t t = 0; t < p->threads; t++) x[t] = (uint32_t)x[t];
    return;
  case TYPE_I64:
  case TYPE_U64:
  case TYPE_INDEX: return;
  default:
    for (uint32_t t = 0; t < p->threads; t++) x[t] = arith_wrap(type, x[t]);
    return;
  }
}

// The common operations, a loop each; false for others.
#define EACH(expression)                                                                                     \
  for (uint32_t t = 0; t < n; t++) {                                                                         \
    uint64_t a = (uint64_t)A[t & ma], b = (uint64_t)B[t & mb];                                               \
    out[t] = (int64_t)(expression);                                                                          \
  }                                                                                                          \
  return true
static bool binary_loop(enum op op, enum type type, bool is_unsigned64, uint32_t n, const int64_t *A, uint32_t ma,
                        const int64_t *B, uint32_t mb, int64_t *out) {
  bool is_shift = !mb && *B >= 0 && type_is_integer(type) && *B < type_bits(type);
  switch ((int)op) {
  case OP_ADD: EACH(a + b);
  case OP_SUB: EACH(a - b);
  case OP_MUL: EACH(a * b);
  case OP_AND: EACH(a & b);
  case OP_OR: EACH(a | b);
  case OP_XOR: EACH(a ^ b);
  case OP_EQ: EACH(a == b);
  case OP_NE: EACH(a != b);
  case OP_SHL:
    if (!is_shift) return false;
    EACH(a << b);
  default: break;
  }
  if (is_unsigned64) return false;
  switch ((int)op) {
  case OP_SHR:
    if (!is_shift) return false;
    EACH((int64_t)a >> b);
  case OP_LT: EACH((int64_t)a < (int64_t)b);
  case OP_LE: EACH((int64_t)a <= (int64_t)b);
  case OP_GT: EACH((int64_t)a > (int64_t)b);
  case OP_GE: EACH((int64_t)a >= (int64_t)b);
  case OP_MIN: EACH((int64_t)a < (int64_t)b ? a : b);
  case OP_MAX: EACH((int64_t)a > (int64_t)b ? a : b);
  default: break;
  }
  if (mb || *B <= 0 || *B > INT32_MAX) return false;
  for (uint32_t t = 0; t < n; t++)
    if (A[t & ma] < 0 || A[t & ma] > INT32_MAX) return false;
  uint32_t d = (uint32_t)*B;
  bool is_power = (d & (d - 1)) == 0;
  uint32_t shift = (uint32_t)__builtin_ctz(d);
  switch ((int)op) {
  case OP_DIV:
  case OP_QUO:
    if (is_power) {
      EACH((uint32_t)a >> shift | (b & 0));
    }
    EACH((uint32_t)a / d + (b & 0));
  case OP_MOD:
  case OP_REM:
    if (is_power) {
      EACH(((uint32_t)a & (d - 1)) | (b & 0));
    }
    EACH((uint32_t)a % d + (b & 0));
  default: return false;
  }
}
#undef EACH

// Threads for which the operation has no value (a machine division by zero) get 0 and poison.
static const struct av *compute_known(struct prover *p, enum op op, enum type type,
                                      const struct av *const *args, uint32_t count) {
  bool is_number = true;
  for (uint32_t i = 0; i < count; i++) is_number &= !args[i]->known;
  uint32_t n = is_number ? 1 : p->threads;
  int64_t *out = is_number ? &(int64_t){0} : arena_array(p->scratch, int64_t, n);
  struct threads *undefined = NULL;
  bool is_done = false;
  if (count == 2) {
    is_done =
        binary_loop(op, type, args[0]->type == TYPE_U64, n, args[0]->known ? args[0]->known : &args[0]->number,
                    args[0]->known ? UINT32_MAX : 0, args[1]->known ? args[1]->known : &args[1]->number,
                    args[1]->known ? UINT32_MAX : 0, out);
    if (is_done && type != TYPE_BOOL) {
      if (is_number)
        *out = arith_wrap(type, *out);
      else
        wrap_all(p, type, out);
    }
  } else if (op == OP_CAST && type != TYPE_BOOL && type_is_integer(type)) {
    if (is_number)
      *out = arith_wrap(type, args[0]->number);
    else
      memcpy(out, args[0]->known, sizeof *out * n), wrap_all(p, type, out);
    is_done = true;
  } else if (op == OP_SELECT) {
    for (uint32_t t = 0; t < n; t++) out[t] = value_at(args[value_at(args[0], t) ? 1 : 2], t);
    is_done = true;
  }
  for (uint32_t t = 0; t < n && !is_done; t++) {
    struct value in[3], result;
    for (uint32_t i = 0; i < count && i < 3; i++) in[i] = value_int(args[i]->type, value_at(args[i], t));
    if (arith_fold(op, type, in, count, &result)) {
      out[t] = result.integer;
      continue;
    }
    if (!undefined) undefined = threads_new(p);
    if (is_number)
      memset(undefined, 0xff, sizeof *undefined);
    else
      threads_add(undefined, t);
  }
  const struct av *v = is_number ? value_number(p, type, *out) : value_known_or_number(p, type, out);
  if (!undefined) return v;
  p->has_poison = true;
  return value_poisoned(p, v, undefined, p->current);
}

// All operands known. What the latest operations gave is kept: loops do the same again.
const struct av *value_known_op(struct prover *p, enum op op, enum type type, const struct av *const *args,
                                uint32_t count) {
  struct known_result key = {.op = op, .type = type, .from = args[0]->type};
  uint64_t hash = (uint64_t)op * 64 + (uint64_t)type;
  bool is_number = true;
  for (uint32_t i = 0; i < count && i < 3; i++) {
    key.known[i] = args[i]->known;
    key.number[i] = args[i]->known ? 0 : args[i]->number;
    is_number &= !args[i]->known;
    hash = (hash ^ (uintptr_t)key.known[i] ^ (uint64_t)key.number[i]) * UINT64_C(0x9e3779b97f4a7c15);
  }
  if (is_number || count > 3) return compute_known(p, op, type, args, count);
  if (!p->known) p->known = arena_array(p->scratch, struct known_result, KNOWN_RESULTS);
  struct known_result *kept = &p->known[hash >> 32 & (KNOWN_RESULTS - 1)];
  bool is_it = kept->value && kept->op == op && kept->type == type && kept->from == key.from;
  for (uint32_t i = 0; i < 3; i++)
    is_it &= kept->known[i] == key.known[i] && kept->number[i] == key.number[i];
  if (is_it) return kept->value;
  key.value = compute_known(p, op, type, args, count);
  if (!key.value->poison) *kept = key;
  return key.value;
}

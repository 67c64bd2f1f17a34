#include "codegen/inspect_value.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_CELLS = 4 * 1024 * 1024 };

void values_init(struct values *values, struct arena *arena, uint32_t threads) {
  *values = (struct values){.arena = arena, .threads = threads, .symbol_count = 1};
}

// --- Symbols

static uint32_t hash(int op, struct cell a, struct cell b) {
  uint64_t h = 1469598103934665603u;
  const uint64_t parts[] = {(uint64_t)op, (uint64_t)a.c, a.symbol, (uint64_t)b.c, b.symbol};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) h = (h ^ parts[i] ^ (h >> 29)) * 1099511628211u;
  return (uint32_t)(h ^ (h >> 32));
}

static void grow(struct values *values) {
  uint32_t capacity = values->symbol_capacity ? values->symbol_capacity * 2 : 1024;
  struct symbol *symbols = arena_array(values->arena, struct symbol, capacity);
  if (values->symbol_count > 1) memcpy(symbols, values->symbols, sizeof *symbols * values->symbol_count);
  values->symbols = symbols;
  values->symbol_capacity = capacity;
  values->bucket_count = capacity * 2;
  values->buckets = arena_array(values->arena, uint32_t, values->bucket_count);
  for (uint32_t i = 1; i < values->symbol_count; i++) {
    uint32_t at = hash(symbols[i].op, symbols[i].a, symbols[i].b) % values->bucket_count;
    while (values->buckets[at]) at = (at + 1) % values->bucket_count;
    values->buckets[at] = i;
  }
}

static bool same(struct cell a, struct cell b) { return a.c == b.c && a.symbol == b.symbol; }

uint32_t symbol_intern(struct values *values, int op, struct cell a, struct cell b) {
  if (a.symbol == SYMBOL_VARYING || b.symbol == SYMBOL_VARYING) return SYMBOL_VARYING;
  if (values->symbol_count >= values->symbol_capacity) grow(values);
  uint32_t at = hash(op, a, b) % values->bucket_count;
  for (; values->buckets[at]; at = (at + 1) % values->bucket_count) {
    const struct symbol *known = &values->symbols[values->buckets[at]];
    if (known->op == op && same(known->a, a) && same(known->b, b)) return values->buckets[at];
  }
  uint32_t index = values->symbol_count++;
  values->symbols[index] = (struct symbol){op, a, b};
  values->buckets[at] = index;
  return index;
}

uint32_t symbol_fresh(struct values *values) {
  return symbol_intern(values, SYMBOL_FRESH, (struct cell){(int64_t)values->fresh++, 0}, (struct cell){0, 0});
}

bool symbol_is_strided(const struct values *values, uint32_t a, uint32_t b) {
  for (int depth = 0; depth < 32; depth++) {
    if (a == b || a == SYMBOL_VARYING || b == SYMBOL_VARYING) return false;
    // The lowest lane's multiple may be none at all.
    const struct symbol *x = a ? &values->symbols[a] : NULL, *y = b ? &values->symbols[b] : NULL;
    if (!x || !y) return (x ? x : y)->op == SYMBOL_FRESH;
    if (x->op == SYMBOL_SCALED && y->op == SYMBOL_SCALED) return x->a.symbol == y->a.symbol;
    if (x->op == SYMBOL_SCALED && x->a.symbol == b) return true;
    if (y->op == SYMBOL_SCALED && y->a.symbol == a) return true;
    if (x->op == CUDA_ADD && y->op != CUDA_ADD) {
      if (x->a.symbol == b || x->b.symbol == b) return true;
      return false;
    }
    if (y->op == CUDA_ADD && x->op != CUDA_ADD) return y->a.symbol == a || y->b.symbol == a;
    if (x->op != y->op || x->op != CUDA_ADD) return false;
    if (x->a.symbol == y->a.symbol)
      a = x->b.symbol, b = y->b.symbol;
    else if (x->b.symbol == y->b.symbol)
      a = x->a.symbol, b = y->a.symbol;
    else
      return false;
  }
  return false;
}

// --- Values

struct value *value_new(struct values *values, bool is_uniform) {
  struct value *value = arena_new(values->arena, struct value);
  if (!is_uniform && values->cells_made > MAX_CELLS) {
    values->is_full = true;
    *value = *value_varying(values);
    value->cells = arena_array(values->arena, struct cell, 1);
    value->cells->symbol = SYMBOL_VARYING;
    return value;
  }
  uint32_t count = is_uniform ? 1 : values->threads;
  value->is_uniform = is_uniform;
  value->cells = is_uniform || !values->spare ? arena_array(values->arena, struct cell, count) : values->spare;
  if (value->cells == values->spare) memset(values->spare, 0, sizeof *values->spare * count), values->spare = NULL;
  values->cells_made += count;
  return value;
}

// One cell where all are alike, so that few values are as large as the block.
static void shrink(struct values *values, struct value *value) {
  if (value->is_uniform) return;
  for (uint32_t t = 1; t < values->threads; t++)
    if (!same(value->cells[0], value->cells[t])) return;
  value->is_uniform = true;
  values->cells_made -= values->threads;
  values->spare = value->cells;
  value->cells = arena_new(values->arena, struct cell);
  *value->cells = *values->spare;
}

struct value *value_constant(struct values *values, int64_t c) {
  struct value *value = value_new(values, true);
  value->cells->c = value->lo = value->hi = c;
  value->is_bounded = true;
  return value;
}

struct value *value_unknown(struct values *values) {
  struct value *value = value_new(values, true);
  value->cells->symbol = symbol_fresh(values);
  return value;
}

struct value *value_varying(struct values *values) {
  struct value *value = value_new(values, true);
  value->cells->symbol = SYMBOL_VARYING;
  return value;
}

// Over the limit a value has one cell, VARYING, whatever was asked for.
static bool is_full(const struct value *value, bool wanted_uniform) { return value->is_uniform && !wanted_uniform; }

static int64_t wrap(int64_t c, struct cuda_type type) {
  if (type.kind != CUDA_INTEGER || !type.bytes || type.bytes >= 8) return c;
  unsigned bits = type.bytes * 8;
  uint64_t low = (uint64_t)c & ((UINT64_C(1) << bits) - 1);
  return type.is_signed && (low >> (bits - 1)) ? (int64_t)(low - (UINT64_C(1) << bits)) : (int64_t)low;
}

bool value_compute(enum cuda_op op, int64_t a, int64_t b, struct cuda_type type, int64_t *out) {
  uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
  bool is_signed = type.is_signed || type.kind != CUDA_INTEGER;
  unsigned bits = type.bytes && type.bytes < 8 ? type.bytes * 8 : 64;
  switch (op) {
  case CUDA_ADD: *out = (int64_t)(ua + ub); break;
  case CUDA_SUB: *out = (int64_t)(ua - ub); break;
  case CUDA_MUL: *out = (int64_t)(ua * ub); break;
  case CUDA_DIV:
    if (!b || (a == INT64_MIN && b == -1)) return false;
    *out = is_signed ? a / b : (int64_t)(ua / ub);
    break;
  case CUDA_REM:
    if (!b || (a == INT64_MIN && b == -1)) return false;
    *out = is_signed ? a % b : (int64_t)(ua % ub);
    break;
  case CUDA_SHL: *out = ub >= bits ? 0 : (int64_t)(ua << ub); break;
  case CUDA_SHR: *out = ub >= bits ? (is_signed && a < 0 ? -1 : 0) : is_signed ? a >> ub : (int64_t)(ua >> ub); break;
  case CUDA_AND: *out = a & b; break;
  case CUDA_OR: *out = a | b; break;
  case CUDA_XOR: *out = a ^ b; break;
  case CUDA_LT: *out = a < b; return true;
  case CUDA_LE: *out = a <= b; return true;
  case CUDA_GT: *out = a > b; return true;
  case CUDA_GE: *out = a >= b; return true;
  case CUDA_EQ: *out = a == b; return true;
  case CUDA_NE: *out = a != b; return true;
  case CUDA_LAND: *out = a && b; return true;
  case CUDA_LOR: *out = a || b; return true;
  case CUDA_COMMA: *out = b; return true;
  case CUDA_NEG: case CUDA_NOT: case CUDA_LNOT: case CUDA_NO_OP: return false;
  }
  *out = wrap(*out, type);
  return true;
}

static struct cell scale(struct values *values, struct cell x, int64_t factor) {
  if (!factor) return (struct cell){0, x.symbol == SYMBOL_VARYING ? SYMBOL_VARYING : 0};
  if (factor == 1) return x;
  struct cell result = {(int64_t)((uint64_t)x.c * (uint64_t)factor), 0};
  if (x.symbol == SYMBOL_VARYING) return x;
  const struct symbol *known = &values->symbols[x.symbol];
  if (known->op == SYMBOL_SCALED)
    result.symbol = symbol_intern(values, SYMBOL_SCALED, known->a, (struct cell){(int64_t)((uint64_t)known->b.c * (uint64_t)factor), 0});
  else
    result.symbol = symbol_intern(values, SYMBOL_SCALED, (struct cell){0, x.symbol}, (struct cell){factor, 0});
  return result;
}

// What a multiple of `by` is divided by it; false where the symbol is not known to be one.
static bool divide(struct values *values, uint32_t symbol, int64_t by, uint32_t *quotient) {
  const struct symbol known = values->symbols[symbol];
  if (known.op == SYMBOL_SCALED && known.b.c % by == 0) {
    *quotient = scale(values, known.a, known.b.c / by).symbol;
    return true;
  }
  uint32_t a, b;
  if (known.op != CUDA_ADD || !divide(values, known.a.symbol, by, &a) || !divide(values, known.b.symbol, by, &b)) return false;
  *quotient = symbol_intern(values, CUDA_ADD, (struct cell){0, a < b ? a : b}, (struct cell){0, a < b ? b : a});
  return true;
}

// x / by and x % by where x is a multiple of `by` and a known rest, neither negative, as indices are.
static bool divide_rest(struct values *values, enum cuda_op op, struct cell x, struct cell by, struct cell *result) {
  int64_t divisor = op == CUDA_SHR && by.c >= 0 && by.c < 31 ? INT64_C(1) << by.c : op == CUDA_AND ? by.c + 1 : by.c;
  uint32_t quotient;
  if ((op != CUDA_DIV && op != CUDA_REM && op != CUDA_SHR && op != CUDA_AND) || by.symbol || divisor < 1 || x.c < 0) return false;
  if ((op == CUDA_AND && (divisor & by.c)) || !divide(values, x.symbol, divisor, &quotient)) return false;
  *result = op == CUDA_REM || op == CUDA_AND ? (struct cell){x.c % divisor, 0} : (struct cell){x.c / divisor, quotient};
  return true;
}

// are_apart: each thread has other operands, so that what is not known of the result has no symbol that another thread could have too.
static struct cell combine(struct values *values, enum cuda_op op, struct cell a, struct cell b, struct cuda_type type, bool are_apart) {
  int64_t known;
  struct cell divided;
  if (!a.symbol && !b.symbol && value_compute(op, a.c, b.c, type, &known)) return (struct cell){known, 0};
  if (a.symbol == SYMBOL_VARYING || b.symbol == SYMBOL_VARYING) return (struct cell){0, SYMBOL_VARYING};
  if (op == CUDA_ADD) {
    struct cell sum = {(int64_t)((uint64_t)a.c + (uint64_t)b.c), 0};
    if (!a.symbol || !b.symbol)
      sum.symbol = a.symbol | b.symbol;
    else
      sum.symbol = symbol_intern(values, CUDA_ADD, (struct cell){0, a.symbol < b.symbol ? a.symbol : b.symbol},
                                 (struct cell){0, a.symbol < b.symbol ? b.symbol : a.symbol});
    return sum;
  }
  if (op == CUDA_SUB) {
    struct cell difference = {(int64_t)((uint64_t)a.c - (uint64_t)b.c), a.symbol};
    if (a.symbol == b.symbol)
      difference.symbol = 0;
    else if (b.symbol)
      difference.symbol = symbol_intern(values, CUDA_SUB, (struct cell){0, a.symbol}, (struct cell){0, b.symbol});
    return difference;
  }
  if (op == CUDA_MUL && !b.symbol) return scale(values, a, b.c);
  if (op == CUDA_MUL && !a.symbol) return scale(values, b, a.c);
  if (op == CUDA_SHL && !b.symbol && b.c >= 0 && b.c < 62) return scale(values, a, INT64_C(1) << b.c);
  bool is_test = op == CUDA_LT || op == CUDA_LE || op == CUDA_GT || op == CUDA_GE || op == CUDA_EQ || op == CUDA_NE;
  if (is_test && a.symbol == b.symbol && value_compute(op, a.c, b.c, type, &known)) return (struct cell){known, 0};
  if (op == CUDA_COMMA) return b;
  if (a.symbol && divide_rest(values, op, a, b, &divided)) return divided;
  return (struct cell){0, are_apart ? SYMBOL_VARYING : symbol_intern(values, (int)op, a, b)};
}

static void bound(struct value *result, enum cuda_op op, const struct value *a, const struct value *b) {
  if (!a->is_bounded || !b->is_bounded) return;
  int64_t corners[4], lo, hi;
  result->is_bounded = true;
  switch (op) {
  case CUDA_ADD:
    if (__builtin_add_overflow(a->lo, b->lo, &lo) || __builtin_add_overflow(a->hi, b->hi, &hi)) result->is_bounded = false;
    else result->lo = lo, result->hi = hi;
    return;
  case CUDA_SUB:
    if (__builtin_sub_overflow(a->lo, b->hi, &lo) || __builtin_sub_overflow(a->hi, b->lo, &hi)) result->is_bounded = false;
    else result->lo = lo, result->hi = hi;
    return;
  case CUDA_MUL:
    for (int i = 0; i < 4; i++)
      if (__builtin_mul_overflow(i & 1 ? a->hi : a->lo, i & 2 ? b->hi : b->lo, &corners[i])) {
        result->is_bounded = false;
        return;
      }
    result->lo = result->hi = corners[0];
    for (int i = 1; i < 4; i++) {
      if (corners[i] < result->lo) result->lo = corners[i];
      if (corners[i] > result->hi) result->hi = corners[i];
    }
    return;
  case CUDA_DIV:
    if (b->lo != b->hi || b->lo <= 0) break;
    result->lo = a->lo / b->lo, result->hi = a->hi / b->lo;
    return;
  case CUDA_REM:
    if (b->lo != b->hi || b->lo <= 0) break;
    result->lo = a->lo < 0 ? 1 - b->lo : 0, result->hi = b->lo - 1;
    return;
  case CUDA_AND:
    if (b->lo != b->hi || b->lo < 0) break;
    result->lo = 0, result->hi = b->lo;
    return;
  case CUDA_LT: case CUDA_LE: case CUDA_GT: case CUDA_GE: case CUDA_EQ: case CUDA_NE: case CUDA_LAND: case CUDA_LOR:
    result->lo = 0, result->hi = 1;
    return;
  case CUDA_COMMA:
    result->lo = b->lo, result->hi = b->hi;
    return;
  case CUDA_SHL: case CUDA_SHR: case CUDA_OR: case CUDA_XOR: case CUDA_NEG: case CUDA_NOT: case CUDA_LNOT: case CUDA_NO_OP: break;
  }
  result->is_bounded = false;
}

static void inherit(struct value *result, const struct value *a, const struct value *b) {
  result->flags = a->flags | (b ? b->flags : 0);
  result->blame = a->flags ? a->blame : b ? b->blame : a->blame;
  result->base = a->base ? a->base : b ? b->base : NULL;
}

static bool is_varying(const struct value *value) { return value->is_uniform && value->cells->symbol == SYMBOL_VARYING; }

struct value *value_binary(struct values *values, enum cuda_op op, const struct value *a, const struct value *b, struct cuda_type type) {
  bool uniform = (a->is_uniform && b->is_uniform) || is_varying(a) || is_varying(b);
  struct value *result = value_new(values, uniform);
  uint32_t count = is_full(result, uniform) ? 0 : uniform ? 1 : values->threads;
  if (is_varying(a) || is_varying(b)) result->cells->symbol = SYMBOL_VARYING, count = 0;
  bool are_apart = count > 1 && (value_agreement(a, NULL, count) == AGREE_NONE || value_agreement(b, NULL, count) == AGREE_NONE);
  for (uint32_t t = 0; t < count; t++) result->cells[t] = combine(values, op, value_cell(a, t), value_cell(b, t), type, are_apart);
  shrink(values, result);
  inherit(result, a, b);
  bound(result, op, a, b);
  return result;
}

struct value *value_convert(struct values *values, const struct value *a, struct cuda_type type) {
  if (type.kind == CUDA_POINTER || type.kind == CUDA_RECORD || (type.kind == CUDA_INTEGER && type.bytes >= 8)) return (struct value *)a;
  if (type.kind == CUDA_FLOAT && value_agreement(a, NULL, values->threads) == AGREE_NONE) {
    struct value *varying = value_varying(values);
    inherit(varying, a, NULL);
    return varying;
  }
  struct value *result = value_new(values, a->is_uniform);
  uint32_t count = is_full(result, a->is_uniform) ? 0 : a->is_uniform ? 1 : values->threads;
  for (uint32_t t = 0; t < count; t++) {
    struct cell x = a->cells[t];
    if (type.kind == CUDA_INTEGER) // an unknown part is taken to fit
      result->cells[t] = (struct cell){x.symbol ? x.c : wrap(x.c, type), x.symbol};
    else
      result->cells[t] = (struct cell){0, symbol_intern(values, SYMBOL_CAST, x, (struct cell){0, 0})};
  }
  shrink(values, result);
  inherit(result, a, NULL);
  result->is_bounded = a->is_bounded && type.kind == CUDA_INTEGER;
  result->lo = a->lo, result->hi = a->hi;
  return result;
}

static void join_bounds(struct value *result, const struct value *a, const struct value *b) {
  result->is_bounded = a->is_bounded && b->is_bounded;
  result->lo = a->lo < b->lo ? a->lo : b->lo;
  result->hi = a->hi > b->hi ? a->hi : b->hi;
}

struct value *value_select(struct values *values, const uint8_t *mask, const struct value *a, const struct value *b) {
  struct value *result = value_new(values, false);
  uint32_t count = is_full(result, false) ? 0 : values->threads;
  for (uint32_t t = 0; t < count; t++) result->cells[t] = value_cell(mask[t] ? a : b, t);
  shrink(values, result);
  inherit(result, a, b);
  join_bounds(result, a, b);
  return result;
}

struct value *value_merge(struct values *values, const struct value *a, const struct value *b) {
  if (a == b) return (struct value *)a;
  bool uniform = a->is_uniform && b->is_uniform;
  struct value *result = value_new(values, uniform);
  uint32_t count = is_full(result, uniform) ? 0 : uniform ? 1 : values->threads;
  bool are_apart = count > 1 && (value_agreement(a, NULL, count) == AGREE_NONE || value_agreement(b, NULL, count) == AGREE_NONE);
  for (uint32_t t = 0; t < count; t++) {
    struct cell x = value_cell(a, t), y = value_cell(b, t);
    result->cells[t] = same(x, y) ? x : (struct cell){0, are_apart ? SYMBOL_VARYING : symbol_intern(values, SYMBOL_MERGE, x, y)};
  }
  shrink(values, result);
  inherit(result, a, b);
  join_bounds(result, a, b);
  return result;
}

struct value *value_repeat(struct values *values, const struct value *before, const struct value *after) {
  if (before == after) return (struct value *)before;
  bool uniform = before->is_uniform && after->is_uniform, is_step = true;
  uint32_t count = uniform ? 1 : values->threads;
  int64_t step = value_cell(after, 0).c - value_cell(before, 0).c;
  for (uint32_t t = 0; t < count; t++) {
    struct cell x = value_cell(before, t), y = value_cell(after, t);
    is_step = is_step && x.symbol == y.symbol && x.symbol != SYMBOL_VARYING && y.c - x.c == step;
  }
  if (!is_step) return uniform ? value_unknown(values) : value_varying(values);
  struct value *rounds = value_unknown(values);
  struct value *result = value_binary(values, CUDA_ADD, before, rounds, (struct cuda_type){0});
  result->is_bounded = false;
  return result;
}

enum agreement value_agreement(const struct value *value, const uint8_t *mask, uint32_t threads) {
  if (value->is_uniform) return value->cells->symbol == SYMBOL_VARYING ? AGREE_NONE : AGREE_BLOCK;
  enum agreement found = AGREE_BLOCK;
  const struct cell *of_block = NULL, *of_warp = NULL;
  for (uint32_t t = 0; t < threads; t++) {
    if (t % 32 == 0) of_warp = NULL;
    if (mask && !mask[t]) continue;
    const struct cell *cell = &value->cells[t];
    if (cell->symbol == SYMBOL_VARYING || (of_warp && !same(*of_warp, *cell))) return AGREE_NONE;
    if (of_block && !same(*of_block, *cell)) found = AGREE_WARP;
    of_block = of_warp = cell;
  }
  return found;
}

bool value_is_known(const struct value *value, const uint8_t *mask, uint32_t threads) {
  if (value->is_uniform) return value->cells->symbol == 0;
  for (uint32_t t = 0; t < threads; t++)
    if (mask[t] && value->cells[t].symbol) return false;
  return true;
}

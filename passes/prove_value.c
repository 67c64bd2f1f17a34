// What is known of a value in every thread (struct av), and arithmetic on it.
//
// symbol + known[t] stays of that form under sums, products with a number, and divisions that the symbol's factor allows. Numbers and
// symbols wrap at the type's width alike, so that equal forms are equal values whatever overflows.
#include "passes/prove_engine.h"

#include "compiler/arith.h"

#include <string.h>

// --- Bounds ---------------------------------------------------------------------------------------------------------

void type_bounds(enum type type, int64_t *lo, int64_t *hi) {
  uint32_t bits = type_bits(type);
  *lo = INT64_MIN, *hi = INT64_MAX; // 64 bits, and what is no integer: nothing is said
  if (type == TYPE_BOOL) *lo = 0, *hi = 1;
  else if (!type_is_integer(type) || bits == 64) return;
  else if (type_is_signed(type)) *lo = -(INT64_C(1) << (bits - 1)), *hi = (INT64_C(1) << (bits - 1)) - 1;
  else *lo = 0, *hi = (INT64_C(1) << bits) - 1;
}

static bool fits(enum type type, int64_t lo, int64_t hi) {
  int64_t least, most;
  type_bounds(type, &least, &most);
  if (type == TYPE_U64) least = 0; // what is below may stand for what is above
  return lo >= least && hi <= most;
}

static void known_bounds(const struct prover *p, const int64_t *known, int64_t *lo, int64_t *hi) {
  int64_t least = known[0], most = known[0];
  for (uint32_t t = 1; t < p->threads; t++) {
    least = known[t] < least ? known[t] : least;
    most = known[t] > most ? known[t] : most;
  }
  *lo = least, *hi = most;
}

void value_bounds(struct prover *p, const struct av *v, int64_t *lo, int64_t *hi) {
  if (v->lo > v->hi) {
    struct av *cached = (struct av *)v;
    known_bounds(p, v->known, &cached->lo, &cached->hi);
  }
  *lo = v->lo, *hi = v->hi;
}

// Bounds of the symbol alone; false where symbol + number may have wrapped.
static bool base_bounds(struct prover *p, const struct av *v, int64_t *lo, int64_t *hi) {
  int64_t least = v->number, most = v->number;
  if (v->known) known_bounds(p, v->known, &least, &most);
  value_bounds(p, v, lo, hi);
  return !__builtin_sub_overflow(*lo, most, lo) && !__builtin_sub_overflow(*hi, least, hi) && fits(v->type, *lo, *hi);
}

// Division of the truncating kind by something positive.
static void divide_bounds(int64_t alo, int64_t ahi, int64_t blo, int64_t bhi, int64_t *lo, int64_t *hi) {
  *lo = alo >= 0 ? alo / bhi : alo / blo;
  *hi = ahi >= 0 ? ahi / blo : ahi / bhi;
}

static void op_bounds(struct prover *p, enum op op, enum type type, const struct av *const *args, uint32_t count, int64_t *lo, int64_t *hi) {
  int64_t least, most, a[3] = {0}, b[3] = {0}, x, y;
  type_bounds(type, &least, &most);
  *lo = least, *hi = most;
  if (type != TYPE_BOOL && !type_is_integer(type)) return;
  for (uint32_t i = 0; i < count && i < 3; i++) value_bounds(p, args[i], &a[i], &b[i]);
  bool no_sign = type != TYPE_U64 || (a[0] >= 0 && (count < 2 || a[1] >= 0));
  bool good = true;
  switch ((int)op) {
  case OP_ADD: good = !__builtin_add_overflow(a[0], a[1], &x) && !__builtin_add_overflow(b[0], b[1], &y); break;
  case OP_SUB: good = !__builtin_sub_overflow(a[0], b[1], &x) && !__builtin_sub_overflow(b[0], a[1], &y); break;
  case OP_MUL: {
    int64_t corners[4];
    good = !__builtin_mul_overflow(a[0], a[1], &corners[0]) && !__builtin_mul_overflow(a[0], b[1], &corners[1]) &&
           !__builtin_mul_overflow(b[0], a[1], &corners[2]) && !__builtin_mul_overflow(b[0], b[1], &corners[3]);
    if (!good) break;
    x = y = corners[0];
    for (int i = 1; i < 4; i++) {
      if (corners[i] < x) x = corners[i];
      if (corners[i] > y) y = corners[i];
    }
    break;
  }
  case OP_NEG: good = a[0] != INT64_MIN && b[0] != INT64_MIN; if (good) x = -b[0], y = -a[0]; break;
  case OP_ABS: good = a[0] != INT64_MIN && b[0] != INT64_MIN && no_sign; if (good) x = a[0] > 0 ? a[0] : b[0] < 0 ? -b[0] : 0, y = -a[0] > b[0] ? -a[0] : b[0]; break;
  case OP_MIN: good = no_sign; x = a[0] < a[1] ? a[0] : a[1], y = b[0] < b[1] ? b[0] : b[1]; break;
  case OP_MAX: good = no_sign; x = a[0] > a[1] ? a[0] : a[1], y = b[0] > b[1] ? b[0] : b[1]; break;
  case OP_DIV:
  case OP_QUO: good = no_sign && a[1] > 0; if (good) divide_bounds(a[0], b[0], a[1], b[1], &x, &y); break;
  case OP_MOD:
  case OP_REM:
    good = no_sign && a[1] > 0;
    if (!good) break;
    x = a[0] >= 0 ? 0 : 1 - b[1], y = b[0] < 0 ? 0 : b[0] < b[1] - 1 ? b[0] : b[1] - 1;
    if (a[0] >= 0 && b[0] < a[1]) x = a[0];
    break;
  case OP_SHR: good = no_sign && a[1] == b[1] && a[1] >= 0 && a[1] < type_bits(type); if (good) x = a[0] >> a[1], y = b[0] >> a[1]; break;
  case OP_SHL: good = a[1] == b[1] && a[1] >= 0 && a[1] < 62 && !__builtin_mul_overflow(a[0], INT64_C(1) << a[1], &x) && !__builtin_mul_overflow(b[0], INT64_C(1) << a[1], &y); break;
  case OP_AND:
    good = a[0] >= 0 || a[1] >= 0;
    x = 0, y = a[0] >= 0 && a[1] >= 0 ? (b[0] < b[1] ? b[0] : b[1]) : a[0] >= 0 ? b[0] : b[1];
    break;
  case OP_OR:
  case OP_XOR:
    good = a[0] >= 0 && a[1] >= 0;
    x = 0, y = b[0] > b[1] ? b[0] : b[1];
    for (int shift = 1; shift < 64; shift *= 2) y |= (int64_t)((uint64_t)y >> shift);
    break;
  case OP_SELECT:
    x = a[1] < a[2] ? a[1] : a[2], y = b[1] > b[2] ? b[1] : b[2];
    break;
  case OP_CAST: good = args[0]->type == TYPE_BOOL || (type_is_integer(args[0]->type) && (args[0]->type != TYPE_U64 || a[0] >= 0)); x = a[0], y = b[0]; break;
  default: good = false; break;
  }
  if (good && fits(type, x, y)) *lo = x, *hi = y;
}

// --- Making ---------------------------------------------------------------------------------------------------------

struct threads *threads_new(struct prover *p) { return arena_new(p->scratch, struct threads); }

static struct av *new_value(struct prover *p, enum type type) {
  struct av *v = arena_new(p->scratch, struct av);
  v->type = type;
  return v;
}

const struct av *value_number(struct prover *p, enum type type, int64_t number) {
  struct av *v = new_value(p, type);
  v->number = v->lo = v->hi = number;
  return v;
}

const struct av *value_known(struct prover *p, enum type type, const int64_t *known) {
  struct av *v = new_value(p, type);
  v->known = known;
  v->lo = 1, v->hi = 0;
  return v;
}

const struct av *value_varying(struct prover *p, enum type type, int64_t lo, int64_t hi, const int64_t *source) {
  struct av *v = new_value(p, type);
  v->is_varying = true;
  v->lo = lo, v->hi = hi;
  v->source = source;
  return v;
}

static const struct av *affine(struct prover *p, enum type type, uint32_t base, int64_t number, const int64_t *known, int64_t lo, int64_t hi) {
  struct av *v = new_value(p, type);
  v->base = base;
  v->number = known ? 0 : number;
  v->known = known;
  v->lo = lo, v->hi = hi;
  return v;
}

// Numbers for all threads where the array says the same for all.
static const struct av *known_or_number(struct prover *p, enum type type, const int64_t *known) {
  for (uint32_t t = 1; t < p->threads; t++)
    if (known[t] != known[0]) return value_known(p, type, known);
  return value_number(p, type, known[0]);
}

// --- Symbols --------------------------------------------------------------------------------------------------------

static uint32_t find_symbol(struct prover *p, const struct symbol *s) {
  uint64_t hash = (uint64_t)s->op * 31 + (uint64_t)s->type;
  for (int i = 0; i < 3; i++) hash = hash * UINT64_C(0x9e3779b97f4a7c15) + s->args[i];
  hash = (hash ^ (uint64_t)s->number) * UINT64_C(0x9e3779b97f4a7c15);
  uint32_t *bucket = &p->buckets[hash >> 56];
  for (uint32_t i = *bucket; i; i = p->symbols[i].next) {
    const struct symbol *o = &p->symbols[i];
    if (o->op == s->op && o->type == s->type && o->number == s->number && memcmp(o->args, s->args, sizeof o->args) == 0) return i;
  }
  if (p->symbol_count == p->symbol_capacity) {
    uint32_t capacity = p->symbol_capacity ? 2 * p->symbol_capacity : 128;
    struct symbol *more = arena_array(p->scratch, struct symbol, capacity);
    if (p->symbol_count) memcpy(more, p->symbols, sizeof *more * p->symbol_count);
    else p->symbol_count = 1; // 0 is none
    p->symbols = more;
    p->symbol_capacity = capacity;
  }
  uint32_t place = p->symbol_count++;
  p->symbols[place] = *s;
  p->symbols[place].next = *bucket;
  if (!s->multiple) p->symbols[place].multiple = 1;
  *bucket = place;
  return place;
}

int64_t value_multiple(const struct prover *p, uint32_t symbol) { return symbol ? p->symbols[symbol].multiple : 0; }

const struct av *value_uniform(struct prover *p, enum type type, int64_t lo, int64_t hi) {
  if (lo == hi && (type == TYPE_BOOL || type_is_integer(type))) return value_number(p, type, lo);
  struct symbol s = {.op = OP_VAR, .type = type, .number = ++p->unique};
  return affine(p, type, find_symbol(p, &s), 0, NULL, lo, hi);
}

const struct av *value_block(struct prover *p, enum type type, uint32_t dimension, int64_t hi) {
  if (hi == 0) return value_number(p, type, 0);
  struct symbol s = {.op = OP_BLOCK, .type = type, .number = dimension};
  return affine(p, type, find_symbol(p, &s), 0, NULL, 0, hi);
}

const struct av *value_counter(struct prover *p, enum type type, int64_t multiple) {
  int64_t lo, hi;
  struct symbol s = {.op = OP_VAR, .type = type, .number = ++p->unique, .multiple = multiple};
  type_bounds(type, &lo, &hi);
  return affine(p, type, find_symbol(p, &s), 0, NULL, 0, hi);
}

static uint32_t number_symbol(struct prover *p, enum type type, int64_t number) {
  struct symbol s = {.op = OP_CONST, .type = type, .number = number, .multiple = number > 0 ? number : 1};
  return find_symbol(p, &s);
}

// One symbol for a uniform value as a whole.
static uint32_t whole_symbol(struct prover *p, const struct av *v) {
  if (!v->base) return number_symbol(p, v->type, v->number);
  if (!v->number) return v->base;
  struct symbol s = {.op = OP_ADD, .type = v->type, .args = {v->base, number_symbol(p, v->type, v->number)}};
  return find_symbol(p, &s);
}

static int64_t gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t r = a % b;
    a = b;
    b = r;
  }
  return a;
}

// What of a factor outlives wrapping.
static int64_t power_of_two_in(int64_t x) { return x & -x; }

static uint32_t op_symbol(struct prover *p, enum op op, enum type type, uint32_t a, uint32_t b, int64_t multiple) {
  bool commutes = op == OP_ADD || op == OP_MUL || op == OP_AND || op == OP_OR || op == OP_XOR || op == OP_MIN || op == OP_MAX || op == OP_EQ || op == OP_NE;
  if (commutes && b && a > b) {
    uint32_t swap = a;
    a = b;
    b = swap;
  }
  struct symbol s = {.op = op, .type = type, .args = {a, b}, .multiple = multiple};
  return find_symbol(p, &s);
}

// --- Sources --------------------------------------------------------------------------------------------------------

// Numbers such that two threads have the same one where they have the same in `a` and in `b`.
static const int64_t *join_sources(struct prover *p, const int64_t *a, const int64_t *b) {
  for (uint32_t i = 0; i < 4; i++)
    if (p->combined[i].a == a && p->combined[i].b == b) return p->combined[i].both;
  enum { SLOTS = 2 * PROVE_THREADS };
  uint16_t *table = arena_array(p->scratch, uint16_t, SLOTS);
  int64_t *both = arena_array(p->scratch, int64_t, p->threads);
  for (uint32_t t = 0; t < p->threads; t++) {
    uint64_t hash = ((uint64_t)a[t] * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)b[t]) * UINT64_C(0xff51afd7ed558ccd);
    uint32_t slot = (uint32_t)(hash >> 40) % SLOTS;
    while (table[slot] && (a[table[slot] - 1] != a[t] || b[table[slot] - 1] != b[t])) slot = (slot + 1) % SLOTS;
    if (!table[slot]) table[slot] = (uint16_t)(t + 1);
    both[t] = table[slot] - 1;
  }
  uint32_t place = p->combined_next++ % 4;
  p->combined[place].a = a, p->combined[place].b = b, p->combined[place].both = both;
  return both;
}

const int64_t *value_sources(struct prover *p, const struct av *const *args, uint32_t count, bool *is_opaque) {
  const int64_t *source = NULL;
  *is_opaque = false;
  for (uint32_t i = 0; i < count; i++) {
    if (args[i]->is_varying && !args[i]->source) *is_opaque = true;
    const int64_t *one = args[i]->is_varying ? args[i]->source : args[i]->known;
    if (*is_opaque) return NULL;
    if (!one || one == source) continue;
    source = source ? join_sources(p, source, one) : one;
  }
  return source;
}

// --- Known numbers ----------------------------------------------------------------------------------------------------

static void wrap_all(struct prover *p, enum type type, int64_t *x) {
  switch ((int)type) {
  case TYPE_I32: for (uint32_t t = 0; t < p->threads; t++) x[t] = (int32_t)x[t]; return;
  case TYPE_U32: for (uint32_t t = 0; t < p->threads; t++) x[t] = (uint32_t)x[t]; return;
  case TYPE_I64:
  case TYPE_U64:
  case TYPE_INDEX: return;
  default: for (uint32_t t = 0; t < p->threads; t++) x[t] = arith_wrap(type, x[t]); return;
  }
}

// The common operations, a loop each; false for others.
#define EACH(expression)                                                                                     \
  for (uint32_t t = 0; t < n; t++) {                                                                         \
    uint64_t a = (uint64_t)A[t & ma], b = (uint64_t)B[t & mb];                                                \
    out[t] = (int64_t)(expression);                                                                          \
  }                                                                                                          \
  return true
static bool binary_loop(enum op op, bool is_unsigned64, uint32_t n, const int64_t *A, uint32_t ma, const int64_t *B, uint32_t mb, int64_t *out) {
  switch ((int)op) {
  case OP_ADD: EACH(a + b);
  case OP_SUB: EACH(a - b);
  case OP_MUL: EACH(a * b);
  case OP_AND: EACH(a & b);
  case OP_OR: EACH(a | b);
  case OP_XOR: EACH(a ^ b);
  case OP_EQ: EACH(a == b);
  case OP_NE: EACH(a != b);
  default: break;
  }
  if (is_unsigned64) return false;
  switch ((int)op) {
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
    if (is_power) { EACH((uint32_t)a >> shift | (b & 0)); }
    EACH((uint32_t)a / d + (b & 0));
  case OP_MOD:
  case OP_REM:
    if (is_power) { EACH(((uint32_t)a & (d - 1)) | (b & 0)); }
    EACH((uint32_t)a % d + (b & 0));
  default: return false;
  }
}
#undef EACH

// Threads for which the operation has no value (a machine division by zero) get 0 and poison.
static const struct av *compute_known(struct prover *p, enum op op, enum type type, const struct av *const *args, uint32_t count) {
  bool is_number = true;
  for (uint32_t i = 0; i < count; i++) is_number &= !args[i]->known;
  uint32_t n = is_number ? 1 : p->threads;
  int64_t *out = is_number ? &(int64_t){0} : arena_array(p->scratch, int64_t, n);
  struct threads *undefined = NULL;
  bool is_done = false;
  if (count == 2) {
    is_done = binary_loop(op, args[0]->type == TYPE_U64, n, args[0]->known ? args[0]->known : &args[0]->number, args[0]->known ? UINT32_MAX : 0,
                          args[1]->known ? args[1]->known : &args[1]->number, args[1]->known ? UINT32_MAX : 0, out);
    if (is_done && type != TYPE_BOOL) {
      if (is_number) *out = arith_wrap(type, *out);
      else wrap_all(p, type, out);
    }
  } else if (op == OP_CAST && type != TYPE_BOOL && type_is_integer(type)) {
    if (is_number) *out = arith_wrap(type, args[0]->number);
    else memcpy(out, args[0]->known, sizeof *out * n), wrap_all(p, type, out);
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
    if (is_number) memset(undefined, 0xff, sizeof *undefined);
    else threads_add(undefined, t);
  }
  const struct av *v = is_number ? value_number(p, type, *out) : known_or_number(p, type, out);
  if (!undefined) return v;
  p->has_poison = true;
  return value_poisoned(p, v, undefined, p->current);
}

// All operands known. What the latest operations gave is kept: loops do the same again.
static const struct av *known_op(struct prover *p, enum op op, enum type type, const struct av *const *args, uint32_t count) {
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
  struct known_result *kept = &p->known[hash >> 56];
  bool is_it = kept->value && kept->op == op && kept->type == type && kept->from == key.from;
  for (uint32_t i = 0; i < 3; i++) is_it &= kept->known[i] == key.known[i] && kept->number[i] == key.number[i];
  if (is_it) return kept->value;
  key.value = compute_known(p, op, type, args, count);
  if (!key.value->poison) *kept = key;
  return key.value;
}

// --- symbol + known ---------------------------------------------------------------------------------------------------

static const struct av *sum(struct prover *p, enum op op, enum type type, const struct av *a, const struct av *b) {
  int64_t lo, hi;
  const struct av *args[2] = {a, b}, rests[2] = {{.type = type, .number = a->number, .known = a->known}, {.type = type, .number = b->number, .known = b->known}};
  const struct av *rest = known_op(p, op, type, (const struct av *const[]){&rests[0], &rests[1]}, 2);
  uint32_t base = a->base;
  if (b->base) {
    if (op == OP_SUB && a->base == b->base) base = 0;
    else if (op == OP_ADD && !a->base) base = b->base;
    else if (!a->base) base = op_symbol(p, OP_NEG, type, b->base, 0, power_of_two_in(value_multiple(p, b->base)));
    else base = op_symbol(p, op, type, a->base, b->base, power_of_two_in(gcd(value_multiple(p, a->base), value_multiple(p, b->base))));
  }
  if (!base) return rest;
  op_bounds(p, op, type, args, 2, &lo, &hi);
  return affine(p, type, base, rest->number, rest->known, lo, hi);
}

// a * number
static const struct av *scale(struct prover *p, enum type type, const struct av *a, int64_t factor) {
  int64_t lo, hi, least, most, x, y, multiple;
  const struct av *number = value_number(p, type, factor), *args[2] = {a, number};
  const struct av rest = {.type = type, .number = a->number, .known = a->known};
  const struct av *known = known_op(p, OP_MUL, type, (const struct av *const[]){&rest, number}, 2);
  if (factor == 0) return known;
  int64_t size = factor < 0 ? -factor : factor;
  bool is_exact = base_bounds(p, a, &least, &most) && !__builtin_mul_overflow(least, factor, &x) && !__builtin_mul_overflow(most, factor, &y) &&
                  fits(type, factor < 0 ? y : x, factor < 0 ? x : y) && !__builtin_mul_overflow(value_multiple(p, a->base), size, &multiple);
  if (!is_exact && __builtin_mul_overflow(power_of_two_in(value_multiple(p, a->base)), power_of_two_in(size), &multiple)) multiple = 1;
  uint32_t base = op_symbol(p, OP_MUL, type, a->base, number_symbol(p, type, factor), multiple);
  op_bounds(p, OP_MUL, type, args, 2, &lo, &hi);
  return affine(p, type, base, known->number, known->known, lo, hi);
}

// Quotient or remainder by a positive number that divides the symbol; NULL: it may not.
static const struct av *divide(struct prover *p, enum op op, enum type type, const struct av *a, int64_t by) {
  int64_t lo, hi, least, most, rlo = a->number, rhi;
  bool is_quotient = op == OP_QUO || op == OP_DIV, is_mask = op == OP_AND;
  if (by <= 0 || value_multiple(p, a->base) % by) return NULL;
  if (a->known) known_bounds(p, a->known, &rlo, &rhi);
  if (!is_mask && (!base_bounds(p, a, &least, &most) || least < 0 || rlo < 0)) return NULL;
  const struct av rest = {.type = type, .number = a->number, .known = a->known};
  const struct av *number = value_number(p, type, is_mask ? by - 1 : by), *args[2] = {a, number};
  const struct av *known = known_op(p, op, type, (const struct av *const[]){&rest, number}, 2);
  if (!is_quotient) return known;
  op_bounds(p, op, type, args, 2, &lo, &hi);
  uint32_t base = op_symbol(p, OP_QUO, type, a->base, number_symbol(p, type, by), value_multiple(p, a->base) / by);
  return affine(p, type, base, known->number, known->known, lo, hi);
}

static const struct av *cast(struct prover *p, enum type type, const struct av *a) {
  int64_t lo, hi, least, most;
  bool narrows = type_bits(type) <= type_bits(a->type);
  if (a->type == TYPE_BOOL || !type_is_integer(a->type) || !type_is_integer(type)) return NULL;
  if (!narrows && !base_bounds(p, a, &least, &most)) return NULL;
  const struct av rest = {.type = a->type, .number = a->number, .known = a->known}, *args[1] = {a};
  const struct av *number = &rest, *known = known_op(p, OP_CAST, type, &number, 1);
  int64_t multiple = value_multiple(p, a->base);
  op_bounds(p, OP_CAST, type, args, 1, &lo, &hi);
  uint32_t base = op_symbol(p, OP_CAST, type, a->base, 0, narrows && !(base_bounds(p, a, &least, &most) && fits(type, least, most)) ? power_of_two_in(multiple) : multiple);
  return affine(p, type, base, known->number, known->known, lo, hi);
}

static const struct av *compare(struct prover *p, enum op op, const struct av *a, const struct av *b) {
  int64_t alo, ahi, blo, bhi, x, y;
  bool is_equality = op == OP_EQ || op == OP_NE;
  if (a->type != TYPE_BOOL && !type_is_integer(a->type)) return NULL;
  if (!a->is_varying && !b->is_varying && a->base == b->base && (is_equality || (base_bounds(p, a, &x, &y) && base_bounds(p, b, &x, &y)))) {
    const struct av left = {.type = a->type, .number = a->number, .known = a->known}, right = {.type = b->type, .number = b->number, .known = b->known};
    return known_op(p, op, TYPE_BOOL, (const struct av *const[]){&left, &right}, 2);
  }
  value_bounds(p, a, &alo, &ahi);
  value_bounds(p, b, &blo, &bhi);
  if (a->type == TYPE_U64 && (alo < 0 || blo < 0)) return NULL;
  switch ((int)op) {
  case OP_LT: if (ahi < blo) return value_number(p, TYPE_BOOL, 1); if (alo >= bhi) return value_number(p, TYPE_BOOL, 0); break;
  case OP_LE: if (ahi <= blo) return value_number(p, TYPE_BOOL, 1); if (alo > bhi) return value_number(p, TYPE_BOOL, 0); break;
  case OP_GT: if (alo > bhi) return value_number(p, TYPE_BOOL, 1); if (ahi <= blo) return value_number(p, TYPE_BOOL, 0); break;
  case OP_GE: if (alo >= bhi) return value_number(p, TYPE_BOOL, 1); if (ahi < blo) return value_number(p, TYPE_BOOL, 0); break;
  case OP_EQ: if (ahi < blo || alo > bhi) return value_number(p, TYPE_BOOL, 0); break;
  case OP_NE: if (ahi < blo || alo > bhi) return value_number(p, TYPE_BOOL, 1); break;
  default: break;
  }
  return NULL;
}

static bool is_same(const struct prover *p, const struct av *a, const struct av *b) {
  if (a == b) return true;
  if (a->is_varying || b->is_varying || a->base != b->base) return false;
  if (a->known && b->known) return a->known == b->known || memcmp(a->known, b->known, sizeof *a->known * p->threads) == 0;
  return !a->known && !b->known && a->number == b->number;
}

static const struct av *select_value(struct prover *p, enum type type, const struct av *const *args) {
  const struct av *a = args[1], *b = args[2];
  int64_t lo, hi;
  if (value_is_known(args[0]) && !args[0]->known) return args[0]->number ? a : b;
  if (is_same(p, a, b)) return a;
  if (!value_is_known(args[0]) || a->is_varying || b->is_varying || a->base != b->base) return NULL;
  const struct av left = {.type = type, .number = a->number, .known = a->known}, right = {.type = type, .number = b->number, .known = b->known};
  const struct av *known = known_op(p, OP_SELECT, type, (const struct av *const[]){args[0], &left, &right}, 3);
  if (!a->base) return known;
  op_bounds(p, OP_SELECT, type, args, 3, &lo, &hi);
  return affine(p, type, a->base, known->number, known->known, lo, hi);
}

// And, or of bools of which one decides; min and max of which one always wins.
static const struct av *absorb(struct prover *p, enum op op, const struct av *a, const struct av *b) {
  int64_t alo, ahi, blo, bhi;
  value_bounds(p, a, &alo, &ahi);
  value_bounds(p, b, &blo, &bhi);
  if (a->type == TYPE_BOOL && op == OP_AND) return ahi == 0 || blo == 1 ? a : bhi == 0 || alo == 1 ? b : NULL;
  if (a->type == TYPE_BOOL && op == OP_OR) return alo == 1 || bhi == 0 ? a : blo == 1 || ahi == 0 ? b : NULL;
  if (a->type == TYPE_U64 && (alo < 0 || blo < 0)) return NULL;
  if (op == OP_MIN) return ahi <= blo ? a : bhi <= alo ? b : NULL;
  if (op == OP_MAX) return alo >= bhi ? a : blo >= ahi ? b : NULL;
  return NULL;
}

// What the form of the operands gives; NULL: nothing but what all operations have.
static const struct av *structured(struct prover *p, enum op op, enum type type, const struct av *const *args, uint32_t count) {
  bool is_integer = type_is_integer(type);
  const struct av *a = args[0], *b = count > 1 ? args[1] : NULL, *v = NULL;
  switch ((int)op) {
  case OP_SELECT: return select_value(p, type, args);
  case OP_EQ: case OP_NE: case OP_LT: case OP_LE: case OP_GT: case OP_GE: return compare(p, op, a, b);
  case OP_AND: case OP_OR: case OP_MIN: case OP_MAX:
    if (is_integer || type == TYPE_BOOL) v = absorb(p, op, a, b);
    if (v) return v;
    break;
  default: break;
  }
  for (uint32_t i = 0; i < count; i++)
    if (args[i]->is_varying) return NULL;
  if (op == OP_CAST) return cast(p, type, a);
  if (!is_integer || !b) return NULL;
  bool by_number = value_is_known(b) && !b->known, of_number = value_is_known(a) && !a->known;
  switch ((int)op) {
  case OP_ADD: case OP_SUB: return sum(p, op, type, a, b);
  case OP_MUL: return by_number ? scale(p, type, a, b->number) : of_number ? scale(p, type, b, a->number) : NULL;
  case OP_SHL: return by_number && b->number >= 0 && b->number < type_bits(type) && b->number < 62 ? scale(p, type, a, INT64_C(1) << b->number) : NULL;
  case OP_DIV: case OP_QUO: case OP_MOD: case OP_REM: return by_number && a->base ? divide(p, op, type, a, b->number) : NULL;
  case OP_AND: return by_number && a->base && b->number > 0 && b->number < INT64_MAX && !(b->number & (b->number + 1)) ? divide(p, op, type, a, b->number + 1) : NULL;
  default: return NULL;
  }
}

// --- Operations ---------------------------------------------------------------------------------------------------------

const struct av *value_poisoned(struct prover *p, const struct av *v, const struct threads *poison, const struct node *origin) {
  if (!poison && !v->poison) return v;
  struct av *copy = new_value(p, v->type);
  *copy = *v;
  copy->poison = poison;
  copy->origin = poison ? origin : NULL;
  return copy;
}

static const struct av *without_poison(struct prover *p, const struct av *v) { return value_poisoned(p, v, NULL, NULL); }

const struct av *value_bounded(struct prover *p, const struct av *v, int64_t lo, int64_t hi) {
  int64_t least, most;
  value_bounds(p, v, &least, &most);
  if (lo < least) lo = least;
  if (hi > most) hi = most;
  if ((lo == least && hi == most) || lo > hi || value_is_known(v)) return v; // empty: the branch is never taken
  struct av *copy = new_value(p, v->type);
  *copy = *v;
  copy->lo = lo, copy->hi = hi;
  return copy;
}

// Poison of the operands; a select known for a thread drops that of what it does not choose.
static const struct av *spread_poison(struct prover *p, enum op op, const struct av *v, const struct av *const *args, uint32_t count) {
  struct threads *all = NULL;
  const struct node *origin = v->origin;
  if (v->poison) all = threads_new(p), *all = *v->poison;
  for (uint32_t i = 0; i < count; i++) {
    const struct threads *one = args[i]->poison;
    if (!one) continue;
    if (!all) all = threads_new(p);
    bool chooses = op == OP_SELECT && i > 0 && value_is_known(args[0]), any = false;
    for (uint32_t t = 0; t < p->threads; t++) {
      if (!threads_has(one, t) || (chooses && (value_at(args[0], t) != 0) != (i == 1))) continue;
      threads_add(all, t);
      any = true;
    }
    if (any && !origin) origin = args[i]->origin;
  }
  return value_poisoned(p, v, origin ? all : NULL, origin);
}

const struct av *value_op(struct prover *p, enum op op, enum type type, const struct av *const *args, uint32_t count) {
  const struct av *v = NULL;
  bool is_data = type != TYPE_BOOL && !type_is_integer(type), all_known = !is_data, all_uniform = true, has_poison = false, is_opaque;
  int64_t lo, hi;
  for (uint32_t i = 0; i < count; i++) {
    bool is_number = args[i]->type == TYPE_BOOL || type_is_integer(args[i]->type);
    all_known &= is_number && value_is_known(args[i]);
    all_uniform &= value_is_uniform(args[i]);
    has_poison |= args[i]->poison != NULL;
  }
  if (all_known) v = known_op(p, op, type, args, count);
  else if (!is_data && count > 0 && count <= 3) v = structured(p, op, type, args, count);
  else if (op == OP_SELECT) v = select_value(p, type, args);
  if (v && v->type != type) v = NULL; // a comparison that returned an operand cannot be; keep types right
  if (v && v->poison && has_poison) v = without_poison(p, v); // an operand as it is: added below
  if (!v && all_uniform && count <= 3) {
    struct symbol s = {.op = op, .type = type};
    for (uint32_t i = 0; i < count; i++) s.args[i] = whole_symbol(p, args[i]);
    op_bounds(p, op, type, args, count, &lo, &hi);
    v = affine(p, type, find_symbol(p, &s), 0, NULL, lo, hi);
  }
  if (!v && is_data && !has_poison) {
    if (!p->opaque[type]) p->opaque[type] = value_varying(p, type, INT64_MIN, INT64_MAX, NULL);
    return p->opaque[type];
  }
  if (!v) {
    const int64_t *source = is_data ? NULL : value_sources(p, args, count, &is_opaque);
    op_bounds(p, op, type, args, count, &lo, &hi);
    v = value_varying(p, type, lo, hi, source);
  }
  return has_poison ? spread_poison(p, op, v, args, count) : v;
}

// --- Loops -----------------------------------------------------------------------------------------------------------

// Whether two arrays differ by the same number everywhere.
static bool is_parallel(const struct prover *p, const int64_t *a, const int64_t *b) {
  if (a == b) return true; // numbers, both, too
  if (!a || !b) return false;
  for (uint32_t t = 1; t < p->threads; t++)
    if (a[t] - a[0] != b[t] - b[0]) return false;
  return true;
}

// A value that the loop at hand carries, named by widening it: its symbol is younger than the loop.
static bool is_carried(const struct prover *p, const struct av *v, uint32_t since) {
  return !v->is_varying && v->base >= since && p->symbols[v->base].op == OP_VAR;
}

const struct av *value_refresh(struct prover *p, const struct av *v, uint32_t since) {
  if (!is_carried(p, v, since)) return v;
  struct symbol s = {.op = OP_VAR, .type = v->type, .number = ++p->unique};
  struct av *copy = new_value(p, v->type);
  *copy = *v;
  copy->base = find_symbol(p, &s);
  return copy;
}

const struct av *value_widen(struct prover *p, const struct av *before, const struct av *after, uint32_t since) {
  int64_t blo, bhi, alo, ahi;
  const struct threads *poison = before->poison;
  const struct node *origin = before->origin;
  value_bounds(p, before, &blo, &bhi);
  value_bounds(p, after, &alo, &ahi);
  bool fits_bounds = alo >= blo && ahi <= bhi, fits_poison = true;
  if (after->poison) {
    struct threads *both = threads_new(p);
    if (poison) *both = *poison;
    for (uint32_t i = 0; i < p->sets; i++) {
      fits_poison &= !(after->poison->bits[i] & ~both->bits[i]);
      both->bits[i] |= after->poison->bits[i];
    }
    poison = both;
    if (!origin) origin = after->origin;
  }
  bool is_affine = !before->is_varying && !after->is_varying && is_parallel(p, before->known, after->known);
  bool keeps_source = before->is_varying &&
                      (!before->source || (after->is_varying ? after->source == before->source : !after->known || after->known == before->source));
  bool fits_form = is_same(p, before, after) || (is_affine && is_carried(p, before, since)) || keeps_source;
  if (fits_bounds && fits_poison && fits_form) return before;
  if (!fits_bounds) { // to the end of the type, or to zero
    int64_t least, most;
    type_bounds(before->type, &least, &most);
    if (alo < blo) blo = alo >= 0 && blo >= 0 ? 0 : least;
    if (ahi > bhi) bhi = most;
  }
  const struct av *v;
  if (keeps_source) {
    v = value_varying(p, before->type, blo, bhi, before->source);
  } else if (is_same(p, before, after)) {
    v = affine(p, before->type, before->base, before->number, before->known, blo, bhi);
  } else if (is_affine) {
    struct symbol s = {.op = OP_VAR, .type = before->type, .number = ++p->unique};
    v = affine(p, before->type, find_symbol(p, &s), 0, before->known, blo, bhi);
  } else {
    const struct av *pair[2] = {before, after};
    bool is_opaque;
    v = value_varying(p, before->type, blo, bhi, before->is_varying ? NULL : value_sources(p, pair, 2, &is_opaque));
  }
  return value_poisoned(p, v, poison, origin);
}

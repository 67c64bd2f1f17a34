// Arithmetic on what is known of values.
//
// symbol + known[t] stays of that form under sums, products with a number, and divisions that the symbol's
// factor allows. Numbers and symbols wrap at the type's width alike, so that equal forms are equal values
// whatever overflows.
#include "passes/prove_engine.h"

// --- Bounds ---------------------------------------------------------------------------------------------

// Bounds of the symbol alone; false where symbol + number may have wrapped.
bool value_base_bounds(struct prover *p, const struct av *v, int64_t *lo, int64_t *hi) {
  int64_t least = v->number, most = v->number;
  if (v->known) value_known_bounds(p, v->known, &least, &most);
  value_bounds(p, v, lo, hi);
  bool good = !__builtin_sub_overflow(*lo, most, lo) && !__builtin_sub_overflow(*hi, least, hi) && bounds_fit(v->type, *lo, *hi);
  if (!v->has_base) return good;
  if (!good || v->base_lo > *lo) *lo = v->base_lo;
  if (!good || v->base_hi < *hi) *hi = v->base_hi;
  return true;
}

// The same value, of whose symbol this is known.
static const struct av *with_base(const struct av *v, int64_t lo, int64_t hi) {
  struct av *made = (struct av *)v; // by the caller, just now
  if (!v->known || !bounds_fit(v->type, lo, hi)) return v;
  made->has_base = true;
  made->base_lo = lo, made->base_hi = hi;
  return v;
}

// Division of the truncating kind by something positive.
static void divide_bounds(int64_t alo, int64_t ahi, int64_t blo, int64_t bhi, int64_t *lo, int64_t *hi) {
  *lo = alo >= 0 ? alo / bhi : alo / blo;
  *hi = ahi >= 0 ? ahi / blo : ahi / bhi;
}

// Bounds of a result of operands that are at least a[i] and at most b[i]. least, most: the type's.
static inline __attribute__((always_inline)) void bounds_in(const struct prover *p, enum op op, enum type type, int64_t least, int64_t most, const struct av *const *args,
                                                            uint32_t count, const int64_t a[3], const int64_t b[3], int64_t *lo, int64_t *hi) {
  int64_t x, y;
  *lo = least, *hi = most;
  if (type != TYPE_BOOL && !type_is_integer(type)) return;
  bool no_sign = type != TYPE_U64 || (a[0] >= 0 && (count < 2 || a[1] >= 0));
  bool good = true;
  switch ((int)op) {
  case OP_ADD:
    good = !__builtin_add_overflow(a[0], a[1], &x) && !__builtin_add_overflow(b[0], b[1], &y);
    break;
  case OP_SUB:
    good = !__builtin_sub_overflow(a[0], b[1], &x) && !__builtin_sub_overflow(b[0], a[1], &y);
    break;
  case OP_MUL: {
    int64_t corners[4];
    good = !__builtin_mul_overflow(a[0], a[1], &corners[0]) &&
           !__builtin_mul_overflow(a[0], b[1], &corners[1]) &&
           !__builtin_mul_overflow(b[0], a[1], &corners[2]) &&
           !__builtin_mul_overflow(b[0], b[1], &corners[3]);
    if (!good) break;
    x = y = corners[0];
    for (int i = 1; i < 4; i++) {
      if (corners[i] < x) x = corners[i];
      if (corners[i] > y) y = corners[i];
    }
    break;
  }
  case OP_NEG:
    good = a[0] != INT64_MIN && b[0] != INT64_MIN;
    if (good) x = -b[0], y = -a[0];
    break;
  case OP_ABS:
    good = a[0] != INT64_MIN && b[0] != INT64_MIN && no_sign;
    if (good) x = a[0] > 0 ? a[0] : b[0] < 0 ? -b[0] : 0, y = -a[0] > b[0] ? -a[0] : b[0];
    break;
  case OP_MIN:
    good = no_sign;
    x = a[0] < a[1] ? a[0] : a[1], y = b[0] < b[1] ? b[0] : b[1];
    break;
  case OP_MAX:
    good = no_sign;
    x = a[0] > a[1] ? a[0] : a[1], y = b[0] > b[1] ? b[0] : b[1];
    break;
  case OP_DIV:
  case OP_QUO:
    good = no_sign && a[1] > 0;
    if (good) divide_bounds(a[0], b[0], a[1], b[1], &x, &y);
    break;
  case OP_MOD:
  case OP_REM:
    good = no_sign && (a[1] > 0 || (op == OP_REM && a[0] >= 0));
    if (good && a[1] <= 0) { // has the sign of what is divided
      x = 0, y = b[0];
      break;
    }
    if (!good) break;
    x = a[0] >= 0 ? 0 : 1 - b[1], y = b[0] < 0 ? 0 : b[0] < b[1] - 1 ? b[0] : b[1] - 1;
    if (a[0] >= 0 && b[0] < a[1]) x = a[0];
    break;
  case OP_SHR:
    good = no_sign && a[1] == b[1] && a[1] >= 0 && a[1] < type_bits(type);
    if (good) x = a[0] >> a[1], y = b[0] >> a[1];
    break;
  case OP_SHL:
    good = a[1] == b[1] && a[1] >= 0 && a[1] < 62 && !__builtin_mul_overflow(a[0], INT64_C(1) << a[1], &x) &&
           !__builtin_mul_overflow(b[0], INT64_C(1) << a[1], &y);
    break;
  case OP_AND:
    good = a[0] >= 0 || a[1] >= 0;
    x = 0, y = a[0] >= 0 && a[1] >= 0 ? (b[0] < b[1] ? b[0] : b[1]) : a[0] >= 0 ? b[0] : b[1];
    break;
  case OP_OR:
  case OP_XOR:
    good = a[0] >= 0 && a[1] >= 0;
    y = b[0] < b[1] ? b[0] : b[1]; // the smaller one changes the low bits of the larger one
    for (int shift = 1; shift < 64; shift *= 2) y |= (int64_t)((uint64_t)y >> shift);
    x = (b[0] < b[1] ? a[1] : a[0]) & ~y;
    y |= b[0] < b[1] ? b[1] : b[0];
    break;
  case OP_SELECT: x = a[1] < a[2] ? a[1] : a[2], y = b[1] > b[2] ? b[1] : b[2]; break;
  case OP_CAST:
    good = args[0]->type == TYPE_BOOL ||
           (type_is_integer(args[0]->type) && (args[0]->type != TYPE_U64 || a[0] >= 0));
    x = a[0], y = b[0];
    break;
  default: good = false; break;
  }
  if (good && x >= (type == TYPE_U64 ? 0 : least) && y <= most) *lo = x, *hi = y; // as bounds_fit says
  else if (p->does_not_wrap && good && x <= most && y >= least) *lo = x > least ? x : least, *hi = y < most ? y : most;
  else if (p->does_not_wrap && (op == OP_ADD || op == OP_MUL) && a[0] >= 0 && a[1] >= 0) *lo = 0;
}

static void bounds_of(const struct prover *p, enum op op, enum type type, const struct av *const *args, uint32_t count, const int64_t a[3], const int64_t b[3], int64_t *lo, int64_t *hi) {
  int64_t least, most;
  type_bounds(type, &least, &most);
  bounds_in(p, op, type, least, most, args, count, a, b, lo, hi);
}

static void op_bounds(struct prover *p, enum op op, enum type type, const struct av *const *args,
                      uint32_t count, int64_t *lo, int64_t *hi) {
  int64_t a[3] = {0}, b[3] = {0};
  for (uint32_t i = 0; i < count && i < 3; i++) value_bounds(p, args[i], &a[i], &b[i]);
  bounds_of(p, op, type, args, count, a, b, lo, hi);
}

struct reach value_reach(struct prover *p, const struct av *v) {
  struct reach r = {0};
  int64_t lo, hi, least, most, x;
  value_bounds(p, v, &r.least, &r.most);
  if (v->is_varying && v->floor) {
    r.floor = v->floor, r.ceiling = v->ceiling;
  } else if (!v->is_varying && !v->base && v->known) {
    r.floor = r.ceiling = v->known;
  } else if (!v->is_varying && v->known && value_base_bounds(p, v, &lo, &hi)) {
    value_known_bounds(p, v->known, &least, &most);
    bool has_floor = !__builtin_add_overflow(lo, least, &x), has_ceiling = !__builtin_add_overflow(hi, most, &x);
    has_floor &= has_ceiling || r.least >= 0; // then it does not come round to what is negative
    has_ceiling &= has_floor;
    r.floor = has_floor ? v->known : NULL, r.ceiling = has_ceiling ? v->known : NULL;
    r.lo = has_floor ? lo : r.least, r.hi = has_ceiling ? hi : r.most;
  } else {
    r.lo = r.least, r.hi = r.most;
  }
  return r;
}

// A result that is not symbol + known any more keeps bounds for each thread where an operand has such.
static const struct av *with_thread_bounds(struct prover *p, enum op op, enum type type, const struct av *v, const struct av *const *args, uint32_t count) {
  bool differs = false;
  for (uint32_t i = 0; i < count; i++) differs |= args[i]->floor || (!args[i]->is_varying && args[i]->base && args[i]->known);
  if (!differs || count > 3 || !type_is_integer(type)) return v;
  int64_t *floor = arena_array(p->scratch, int64_t, p->threads), *ceiling = arena_array(p->scratch, int64_t, p->threads);
  struct av *copy = value_new(p, type);
  *copy = *v;
  int64_t least = INT64_MAX, most = INT64_MIN;
  struct reach reaches[3];
  for (uint32_t i = 0; i < count; i++) reaches[i] = value_reach(p, args[i]);
  int64_t type_least, type_most;
  type_bounds(type, &type_least, &type_most);
#define EACH(known_op, known_count)                                                                                                          \
  for (uint32_t t = 0; t < p->threads; t++) {                                                                                                \
    int64_t a[3] = {0}, b[3] = {0}, lo, hi;                                                                                                  \
    for (uint32_t i = 0; i < (known_count); i++) a[i] = reach_lo(&reaches[i], t), b[i] = reach_hi(&reaches[i], t);                           \
    bounds_in(p, known_op, type, type_least, type_most, args, known_count, a, b, &lo, &hi);                                                  \
    floor[t] = lo, ceiling[t] = hi;                                                                                                          \
    if (lo < least) least = lo;                                                                                                              \
    if (hi > most) most = hi;                                                                                                                \
  }                                                                                                                                          \
  break
  switch ((int)op) { // the common operations, a loop each
  case OP_ADD: EACH(OP_ADD, 2);
  case OP_SUB: EACH(OP_SUB, 2);
  case OP_MUL: EACH(OP_MUL, 2);
  case OP_QUO: EACH(OP_QUO, 2);
  case OP_REM: EACH(OP_REM, 2);
  case OP_AND: EACH(OP_AND, 2);
  case OP_CAST: EACH(OP_CAST, 1);
  default: EACH(op, count);
  }
#undef EACH
  p->work += p->threads;
  if (least > copy->lo) copy->lo = least;
  if (most < copy->hi) copy->hi = most;
  copy->floor = floor, copy->ceiling = ceiling;
  return copy;
}
// --- symbol + known ----------------------------------------------------------------------------------

// What of a factor outlives wrapping.
static int64_t power_of_two_in(int64_t x) {
  return x & -x;
}

static bool are_all_here(const struct prover *p) {
  for (uint32_t t = 0; t < p->threads; t++)
    if (!threads_has(&p->may, t)) return false;
  return true;
}

static const struct av *sum(struct prover *p, enum op op, enum type type, const struct av *a,
                            const struct av *b) {
  int64_t lo, hi;
  const struct av *args[2] = {a, b}, rests[2] = {{.type = type, .number = a->number, .known = a->known},
                                                 {.type = type, .number = b->number, .known = b->known}};
  const struct av *rest = value_known_op(p, op, type, (const struct av *const[]){&rests[0], &rests[1]}, 2);
  uint32_t base = a->base;
  if (b->base) {
    if (op == OP_SUB && a->base == b->base)
      base = 0;
    else if (op == OP_ADD && !a->base)
      base = b->base;
    else if (!a->base)
      base = symbol_of_op(p, OP_NEG, type, b->base, 0, power_of_two_in(value_multiple(p, b->base)));
    else
      base = symbol_of_op(p, op, type, a->base, b->base,
                          power_of_two_in(prove_gcd(value_multiple(p, a->base), value_multiple(p, b->base))));
  }
  if (!base) return rest;
  op_bounds(p, op, type, args, 2, &lo, &hi);
  const struct av *v = value_affine(p, type, base, rest->number, rest->known, lo, hi);
  int64_t least[2] = {0}, most[2] = {0}, x, y;
  if ((a->base && !value_base_bounds(p, a, &least[0], &most[0])) || (b->base && !value_base_bounds(p, b, &least[1], &most[1]))) return v;
  bool overflows = op == OP_ADD ? __builtin_add_overflow(least[0], least[1], &x) || __builtin_add_overflow(most[0], most[1], &y)
                                : __builtin_sub_overflow(least[0], most[1], &x) || __builtin_sub_overflow(most[0], least[1], &y);
  if (overflows) return v;
  if (op == OP_ADD && p->does_not_wrap && rest->known && are_all_here(p)) { // the sum is a value of the type in every thread
    int64_t own_least, own_most, type_least, type_most, bound;
    value_known_bounds(p, rest->known, &own_least, &own_most);
    type_bounds(type, &type_least, &type_most);
    if (own_least <= 0 && !__builtin_sub_overflow(type_least, own_least, &bound) && bound > x) x = bound;
    if (own_most >= 0 && !__builtin_sub_overflow(type_most, own_most, &bound) && bound < y) y = bound;
  }
  return with_base(v, x, y);
}

// a * number
static const struct av *scale(struct prover *p, enum type type, const struct av *a, int64_t factor) {
  int64_t lo, hi, least, most, x, y, multiple;
  const struct av *number = value_number(p, type, factor), *args[2] = {a, number};
  const struct av rest = {.type = type, .number = a->number, .known = a->known};
  const struct av *known = value_known_op(p, OP_MUL, type, (const struct av *const[]){&rest, number}, 2);
  if (factor == 0) return known;
  int64_t size = factor < 0 ? -factor : factor;
  bool is_exact = value_base_bounds(p, a, &least, &most) && !__builtin_mul_overflow(least, factor, &x) &&
                  !__builtin_mul_overflow(most, factor, &y) &&
                  bounds_fit(type, factor < 0 ? y : x, factor < 0 ? x : y) &&
                  !__builtin_mul_overflow(value_multiple(p, a->base), size, &multiple);
  if (!is_exact &&
      __builtin_mul_overflow(power_of_two_in(value_multiple(p, a->base)), power_of_two_in(size), &multiple))
    multiple = 1;
  uint32_t base = symbol_of_op(p, OP_MUL, type, a->base, symbol_of_number(p, type, factor), multiple);
  op_bounds(p, OP_MUL, type, args, 2, &lo, &hi);
  const struct av *v = value_affine(p, type, base, known->number, known->known, lo, hi);
  return !is_exact ? v : factor < 0 ? with_base(v, y, x) : with_base(v, x, y);
}

// Quotient or remainder by a positive number that divides the symbol; NULL: it may not.
static const struct av *divide(struct prover *p, enum op op, enum type type, const struct av *a, int64_t by) {
  int64_t lo, hi, least, most, rlo = a->number, rhi;
  bool is_quotient = op == OP_QUO || op == OP_DIV, is_mask = op == OP_AND;
  if (by <= 0 || value_multiple(p, a->base) % by) return NULL;
  if (a->known) value_known_bounds(p, a->known, &rlo, &rhi);
  if (!is_mask && (!value_base_bounds(p, a, &least, &most) || least < 0 || rlo < 0)) return NULL;
  const struct av rest = {.type = type, .number = a->number, .known = a->known};
  const struct av *number = value_number(p, type, is_mask ? by - 1 : by), *args[2] = {a, number};
  const struct av *known = value_known_op(p, op, type, (const struct av *const[]){&rest, number}, 2);
  if (!is_quotient) return known;
  op_bounds(p, op, type, args, 2, &lo, &hi);
  uint32_t base =
      symbol_of_op(p, OP_QUO, type, a->base, symbol_of_number(p, type, by), value_multiple(p, a->base) / by);
  return value_affine(p, type, base, known->number, known->known, lo, hi);
}

static const struct av *cast(struct prover *p, enum type type, const struct av *a) {
  int64_t lo, hi, least, most;
  bool narrows = type_bits(type) <= type_bits(a->type);
  if (a->type == TYPE_BOOL || !type_is_integer(a->type) || !type_is_integer(type)) return NULL;
  if (!narrows && !value_base_bounds(p, a, &least, &most)) return NULL;
  const struct av rest = {.type = a->type, .number = a->number, .known = a->known}, *args[1] = {a};
  const struct av *number = &rest, *known = value_known_op(p, OP_CAST, type, &number, 1);
  int64_t multiple = value_multiple(p, a->base);
  op_bounds(p, OP_CAST, type, args, 1, &lo, &hi);
  uint32_t base = symbol_of_op(p, OP_CAST, type, a->base, 0,
                               narrows && !(value_base_bounds(p, a, &least, &most) && bounds_fit(type, least, most))
                                   ? power_of_two_in(multiple)
                                   : multiple);
  return value_affine(p, type, base, known->number, known->known, lo, hi);
}

static const struct av *compare(struct prover *p, enum op op, const struct av *a, const struct av *b) {
  int64_t alo, ahi, blo, bhi, x, y;
  bool is_equality = op == OP_EQ || op == OP_NE;
  if (a->type != TYPE_BOOL && !type_is_integer(a->type)) return NULL;
  if (!a->is_varying && !b->is_varying && a->base == b->base &&
      (is_equality || (value_base_bounds(p, a, &x, &y) && value_base_bounds(p, b, &x, &y)))) {
    const struct av left = {.type = a->type, .number = a->number, .known = a->known},
                    right = {.type = b->type, .number = b->number, .known = b->known};
    return value_known_op(p, op, TYPE_BOOL, (const struct av *const[]){&left, &right}, 2);
  }
  value_bounds(p, a, &alo, &ahi);
  value_bounds(p, b, &blo, &bhi);
  if (a->type == TYPE_U64 && (alo < 0 || blo < 0)) return NULL;
  switch ((int)op) {
  case OP_LT:
    if (ahi < blo) return value_number(p, TYPE_BOOL, 1);
    if (alo >= bhi) return value_number(p, TYPE_BOOL, 0);
    break;
  case OP_LE:
    if (ahi <= blo) return value_number(p, TYPE_BOOL, 1);
    if (alo > bhi) return value_number(p, TYPE_BOOL, 0);
    break;
  case OP_GT:
    if (alo > bhi) return value_number(p, TYPE_BOOL, 1);
    if (ahi <= blo) return value_number(p, TYPE_BOOL, 0);
    break;
  case OP_GE:
    if (alo >= bhi) return value_number(p, TYPE_BOOL, 1);
    if (ahi < blo) return value_number(p, TYPE_BOOL, 0);
    break;
  case OP_EQ:
    if (ahi < blo || alo > bhi) return value_number(p, TYPE_BOOL, 0);
    break;
  case OP_NE:
    if (ahi < blo || alo > bhi) return value_number(p, TYPE_BOOL, 1);
    break;
  default: break;
  }
  return NULL;
}

static const struct av *select_value(struct prover *p, enum type type, const struct av *const *args) {
  const struct av *a = args[1], *b = args[2];
  int64_t lo, hi;
  if (value_is_known(args[0]) && !args[0]->known) return args[0]->number ? a : b;
  if (value_is_same(p, a, b)) return a;
  if (!value_is_known(args[0]) || a->is_varying || b->is_varying || a->base != b->base) return NULL;
  const struct av left = {.type = type, .number = a->number, .known = a->known},
                  right = {.type = type, .number = b->number, .known = b->known};
  const struct av *known =
      value_known_op(p, OP_SELECT, type, (const struct av *const[]){args[0], &left, &right}, 3);
  if (!a->base) return known;
  op_bounds(p, OP_SELECT, type, args, 3, &lo, &hi);
  return value_affine(p, type, a->base, known->number, known->known, lo, hi);
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
static const struct av *structured(struct prover *p, enum op op, enum type type, const struct av *const *args,
                                   uint32_t count) {
  bool is_integer = type_is_integer(type);
  const struct av *a = args[0], *b = count > 1 ? args[1] : NULL, *v = NULL;
  switch ((int)op) {
  case OP_SELECT: return select_value(p, type, args);
  case OP_EQ:
  case OP_NE:
  case OP_LT:
  case OP_LE:
  case OP_GT:
  case OP_GE: return compare(p, op, a, b);
  case OP_AND:
  case OP_OR:
  case OP_MIN:
  case OP_MAX:
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
  case OP_ADD:
  case OP_SUB: return sum(p, op, type, a, b);
  case OP_MUL:
    return by_number ? scale(p, type, a, b->number) : of_number ? scale(p, type, b, a->number) : NULL;
  case OP_SHL:
    return by_number && b->number >= 0 && b->number < type_bits(type) && b->number < 62
               ? scale(p, type, a, INT64_C(1) << b->number)
               : NULL;
  case OP_DIV:
  case OP_QUO:
  case OP_MOD:
  case OP_REM: return by_number && a->base ? divide(p, op, type, a, b->number) : NULL;
  case OP_AND:
    return by_number && a->base && b->number > 0 && b->number < INT64_MAX && !(b->number & (b->number + 1))
               ? divide(p, op, type, a, b->number + 1)
               : NULL;
  default: return NULL;
  }
}

// --- Operations --------------------------------------------------------------------------------------

static const struct av *without_poison(struct prover *p, const struct av *v) {
  return value_poisoned(p, v, NULL, NULL);
}

// Poison of the operands; a select known for a thread drops that of what it does not choose.
static const struct av *spread_poison(struct prover *p, enum op op, const struct av *v,
                                      const struct av *const *args, uint32_t count) {
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

const struct av *value_op(struct prover *p, enum op op, enum type type, const struct av *const *args,
                          uint32_t count) {
  const struct av *v = NULL;
  bool is_data = type != TYPE_BOOL && !type_is_integer(type), all_known = !is_data, all_uniform = true,
       has_poison = false, is_opaque;
  int64_t lo, hi;
  for (uint32_t i = 0; i < count; i++) {
    bool is_number = args[i]->type == TYPE_BOOL || type_is_integer(args[i]->type);
    all_known &= is_number && value_is_known(args[i]);
    all_uniform &= value_is_uniform(args[i]);
    has_poison |= args[i]->poison != NULL;
  }
  if (all_known)
    v = value_known_op(p, op, type, args, count);
  else if (!is_data && count > 0 && count <= 3)
    v = structured(p, op, type, args, count);
  else if (op == OP_SELECT)
    v = select_value(p, type, args);
  if (v && v->type != type) v = NULL; // a comparison that returned an operand cannot be; keep types right
  if (v && v->poison && has_poison) v = without_poison(p, v); // an operand as it is: added below
  if (!v && all_uniform && count <= 3) {
    struct symbol s = {.op = op, .type = type};
    for (uint32_t i = 0; i < count; i++) s.args[i] = symbol_of_value(p, args[i]);
    op_bounds(p, op, type, args, count, &lo, &hi);
    v = value_affine(p, type, symbol_find(p, &s), 0, NULL, lo, hi);
  }
  if (!v && is_data && !has_poison) {
    if (!p->opaque[type]) p->opaque[type] = value_varying(p, type, INT64_MIN, INT64_MAX, NULL);
    return p->opaque[type];
  }
  if (!v) {
    const int64_t *source = is_data ? NULL : value_sources(p, args, count, &is_opaque);
    op_bounds(p, op, type, args, count, &lo, &hi);
    v = with_thread_bounds(p, op, type, value_varying(p, type, lo, hi, source), args, count);
  }
  // bounds that leave one value make it known, so that conditions on it split threads
  if (!is_data && !has_poison && !v->poison && !value_is_known(v) && v->lo == v->hi) return value_number(p, type, v->lo);
  return has_poison ? spread_poison(p, op, v, args, count) : v;
}

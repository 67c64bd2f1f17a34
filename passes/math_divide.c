// Division and shifts with a meaning for all operands, out of the machine's: x / 0 is all ones, x % 0 is x,
// MIN / -1 is MIN, shift counts are modulo the width. What is known of the operands keeps this cheap: a
// divisor that is a constant, or the extent of a loop or a grid around, needs no select.
#include "passes/math_lower.h"

enum { UNKNOWN = -1 };

// What is known of an integer value: that it is in 0..2^bits - 1, or nothing (bits is UNKNOWN).
struct known_range {
  int bits;
  bool is_index; // made from threads, blocks or loop variables by the compiler, which proves that this does
                 // not overflow
};

static int bit_length(uint64_t x) {
  int bits = 0;
  for (; x; x >>= 1) bits++;
  return bits;
}

static int at_most(int a, int b) {
  return a < b ? a : b;
}

static bool is_narrow_entry(const struct math *m) {
  return m->entry && m->entry->index_type == TYPE_I32;
}

// A size that is an extent of a tensor. Others are scalars and strides, of any sign.
static bool is_extent(const struct ir_var *var) {
  return var->kind == VAR_SIZE && var->inferred && var->inferred->op == OP_DIM;
}

static struct known_range range_of(const struct math *m, const struct ir_expr *e);

// Is `e` at least `size`, an extent?
static bool is_at_least(const struct ir_expr *e, const struct ir_var *size) {
  if (e->op == OP_VAR) return e->var == size;
  if (e->op == OP_ADD)
    return ir_is_const(e->args[1]) && e->args[1]->integer >= 0 && is_at_least(e->args[0], size);
  if (e->op != OP_MUL || !ir_is_const(e->args[1]) || e->args[1]->integer <= 0) return false;
  const struct ir_expr *factor = e->args[0]; // size divided by the constant, rounded up, times the constant
  if (factor->op == OP_DIV && ir_equal(factor->args[1], e->args[1])) {
    const struct ir_expr *sum = factor->args[0];
    return sum->op == OP_ADD && ir_is_const(sum->args[1]) &&
           sum->args[1]->integer >= e->args[1]->integer - 1 && is_at_least(sum->args[0], size);
  }
  return is_at_least(factor, size);
}

// Does an assumption of the entry keep this extent below 2^31?
static bool is_bounded(const struct math *m, const struct ir_var *size) {
  for (uint32_t i = 0; m->entry && i < m->entry->assumptions.count; i++) {
    const struct ir_expr *condition = list_at(&m->entry->assumptions, struct ir_requirement, i)->condition;
    if (condition->op == OP_LE && ir_is_const(condition->args[1]) &&
        condition->args[1]->integer <= INT32_MAX && is_at_least(condition->args[0], size))
      return true;
  }
  return false;
}

static struct known_range range_of_var(const struct math *m, const struct ir_var *var) {
  for (uint32_t i = m->bounded.count; i-- > 0;) {
    const struct math_bound *bound = m->bounded.at[i];
    if (bound->var == var) return (struct known_range){bound->bits, true};
  }
  if (var->kind == VAR_SIZE && var->constant && var->constant->integer >= 0)
    return (struct known_range){bit_length((uint64_t)var->constant->integer), false};
  if (is_extent(var)) return (struct known_range){is_bounded(m, var) ? 31 : 63, false};
  // as math_note_variable left it
  if ((var->kind == VAR_LET || var->kind == VAR_AXIS) && var->mark)
    return (struct known_range){(int)(var->mark >> 1) - 1, var->mark & 1};
  return (struct known_range){UNKNOWN, false};
}

// In an entry with 32-bit indices, all extents fit: what `index` assumes of the launch.
static struct known_range range_of_cast(const struct math *m, const struct ir_expr *e) {
  const struct ir_expr *from = e->args[0];
  if (!type_is_integer(from->type) && from->type != TYPE_BOOL) return (struct known_range){UNKNOWN, false};
  struct known_range range = range_of(m, from);
  int room = (int)type_bits(e->type) - type_is_signed(e->type);
  if (range.bits <= room) return range;
  bool is_narrowed_size =
      e->type == TYPE_I32 && is_narrow_entry(m) && from->op == OP_VAR && from->var->kind == VAR_SIZE;
  return (struct known_range){is_narrowed_size ? 31 : UNKNOWN, false};
}

static struct known_range range_of_binary(const struct math *m, const struct ir_expr *e) {
  struct known_range a = range_of(m, e->args[0]), b = range_of(m, e->args[1]), unknown = {UNKNOWN, false};
  int room = (int)type_bits(e->type) - type_is_signed(e->type);
  bool is_index = a.is_index || b.is_index, both = a.bits != UNKNOWN && b.bits != UNKNOWN;
  int bits = UNKNOWN;
  switch ((int)e->op) {
  case OP_ADD: bits = both ? (a.bits > b.bits ? a.bits : b.bits) + 1 : UNKNOWN; break;
  case OP_MUL: bits = both ? a.bits + b.bits : UNKNOWN; break;
  case OP_AND:
    return (struct known_range){both ? at_most(a.bits, b.bits) : a.bits != UNKNOWN ? a.bits : b.bits, false};
  case OP_MIN: return both ? (struct known_range){at_most(a.bits, b.bits), is_index} : unknown;
  case OP_MAX: // one that is not negative is enough
    if (!both) return a.bits != UNKNOWN || b.bits != UNKNOWN ? (struct known_range){room, false} : unknown;
    return (struct known_range){a.bits > b.bits ? a.bits : b.bits, is_index};
  case OP_DIV:
  case OP_QUO: // by 0 the quotient is all ones
    if (!both || (e->op == OP_DIV && !(ir_is_const(e->args[1]) && e->args[1]->integer))) return unknown;
    if (ir_is_const(e->args[1]) && e->args[1]->integer > 0) // a divisor of b bits takes b - 1 away
      a.bits = a.bits > b.bits - 1 ? a.bits - (b.bits - 1) : 0;
    return (struct known_range){a.bits, is_index};
  case OP_MOD: return both ? (struct known_range){a.bits, is_index} : unknown;
  case OP_REM: return both ? (struct known_range){at_most(a.bits, b.bits), is_index} : unknown;
  case OP_SHR:
    if (a.bits != UNKNOWN && ir_is_const(e->args[1]) && e->args[1]->integer >= 0 && e->args[1]->integer < (int64_t)type_bits(e->type))
      a.bits = a.bits > e->args[1]->integer ? a.bits - (int)e->args[1]->integer : 0;
    return (struct known_range){a.bits, is_index};
  default: return unknown;
  }
  if (bits <= room) return (struct known_range){bits, is_index};
  return is_index && e->type == TYPE_I32 && is_narrow_entry(m) ? (struct known_range){room, true} : unknown;
}

static struct known_range range_of(const struct math *m, const struct ir_expr *e) {
  struct known_range range = {UNKNOWN, false};
  if (ir_is_const(e) && e->integer >= 0)
    range.bits = bit_length((uint64_t)e->integer);
  else if (e->op == OP_THREAD)
    range = (struct known_range){10, true};
  else if (e->op == OP_BLOCK)
    range = (struct known_range){31, true};
  else if (e->op == OP_VAR)
    range = range_of_var(m, e->var);
  else if (e->op == OP_CAST)
    range = range_of_cast(m, e);
  else if (e->op == OP_SELECT) {
    struct known_range a = range_of(m, e->args[1]), b = range_of(m, e->args[2]);
    if (a.bits != UNKNOWN && b.bits != UNKNOWN)
      range = (struct known_range){a.bits > b.bits ? a.bits : b.bits, a.is_index && b.is_index};
  } else if (e->count == 2 && type_is_integer(e->type) && op_table[e->op].rule == RULE_SAME)
    range = range_of_binary(m, e);
  enum type_class class = type_class_of(e->type);
  int width = (int)type_bits(e->type);
  if (range.bits == UNKNOWN && (class == CLASS_UNSIGNED || class == CLASS_BOOL))
    range.bits = class == CLASS_BOOL ? 1 : width;
  return range;
}

void math_note_variable(struct math *m, struct ir_var *var, const struct ir_expr *value) {
  var->mark = 0;
  if (!type_is_integer(var->type)) return;
  struct known_range range = range_of(m, value);
  if (range.bits == UNKNOWN) return;
  // a loop variable starts at `value` and stays below the type's end
  if (var->kind == VAR_AXIS)
    range = (struct known_range){(int)type_bits(var->type) - type_is_signed(var->type), true};
  var->mark = ((uint32_t)range.bits + 1) << 1 | range.is_index;
}

// --- Facts -------------------------------------------------------------------------------------------------

static bool is_nonnegative(const struct math *m, const struct ir_expr *e) {
  return range_of(m, e).bits != UNKNOWN;
}

// `e` is above 0: so is what it is a product, a minimum or a ceiling of.
void math_note_positive(struct math *m, struct ir_expr *e) {
  if (e->op == OP_CONST) return;
  list_push(m->arena, &m->positive, e);
  bool is_quotient = e->op == OP_DIV || e->op == OP_QUO;
  if (e->op == OP_CAST && type_is_integer(e->args[0]->type)) {
    if (type_bits(e->type) >= type_bits(e->args[0]->type) || is_narrow_entry(m))
      math_note_positive(m, e->args[0]);
  } else if (e->op == OP_MIN ||
             (e->op == OP_MUL && is_nonnegative(m, e->args[0]) && is_nonnegative(m, e->args[1]))) {
    math_note_positive(m, e->args[0]);
    math_note_positive(m, e->args[1]);
  } else if (is_quotient && ir_is_const(e->args[1]) && e->args[1]->integer > 0) {
    struct ir_expr *above = e->args[0]; // at least the divisor
    if (above->op == OP_ADD && ir_is_const(above->args[1]) && above->args[1]->integer < e->args[1]->integer)
      math_note_positive(m, above->args[0]);
  }
}

static bool is_bound_here(const struct math *m, const struct ir_var *var) {
  for (uint32_t i = 0; i < m->bounded.count; i++)
    if (list_at(&m->bounded, struct math_bound, i)->var == var) return true;
  return false;
}

// x >= 0, or x < E behind it: of what may begin inside a piece of memory (split_along.c).
static void note_bound(struct math *m, const struct ir_expr *condition) {
  const struct ir_expr *x = condition->args[0], *end = condition->args[1];
  if (x->op != OP_VAR || x->type != TYPE_I32 || !ir_is_const(end)) return;
  int bits = condition->op == OP_GE && end->integer >= 0 ? 31 : condition->op == OP_LT && end->integer > 0 && is_bound_here(m, x->var) ? bit_length((uint64_t)end->integer - 1) : UNKNOWN;
  if (bits == UNKNOWN || (range_of(m, x).bits != UNKNOWN && range_of(m, x).bits <= bits)) return;
  struct math_bound *bound = arena_new(m->arena, struct math_bound);
  *bound = (struct math_bound){x->var, bits};
  list_push(m->arena, &m->bounded, bound);
}

void math_note_condition(struct math *m, struct ir_expr *condition) {
  if (condition->op == OP_GE || condition->op == OP_LT) note_bound(m, condition);
  if (condition->op == OP_AND) {
    math_note_condition(m, condition->args[0]);
    math_note_condition(m, condition->args[1]);
  } else if (condition->op == OP_LT && type_is_integer(condition->args[0]->type)) {
    if (is_nonnegative(m, condition->args[0])) math_note_positive(m, condition->args[1]);
  } else if (condition->op == OP_GT && type_is_integer(condition->args[0]->type)) {
    if (is_nonnegative(m, condition->args[1])) math_note_positive(m, condition->args[0]);
  } else if (condition->op == OP_GE && type_is_integer(condition->args[0]->type)) {
    if (ir_is_const(condition->args[1]) && condition->args[1]->integer > 0) math_note_positive(m, condition->args[0]);
  }
}

static bool is_positive(const struct math *m, const struct ir_expr *e) {
  if (ir_is_const(e)) return e->integer > 0 || (type_class_of(e->type) == CLASS_UNSIGNED && e->integer);
  for (uint32_t i = 0; i < m->positive.count; i++)
    if (ir_equal(m->positive.at[i], e)) return true;
  if (e->op == OP_CAST && type_is_integer(e->args[0]->type)) {
    bool is_size = e->args[0]->op == OP_VAR && e->args[0]->var->kind == VAR_SIZE && is_narrow_entry(m);
    return (is_size || range_of(m, e).bits != UNKNOWN) && is_positive(m, e->args[0]);
  }
  if (e->op == OP_MAX) return is_positive(m, e->args[0]) || is_positive(m, e->args[1]);
  return false;
}

// Can the divisor not be -1? Where it is the ceiling of an extent divided by a constant, a sum that overflows
// is far below -1.
static bool is_not_minus_one(const struct math *m, const struct ir_expr *e) {
  if (is_positive(m, e) || is_nonnegative(m, e)) return true;
  if ((e->op != OP_DIV && e->op != OP_QUO) || !ir_is_const(e->args[1])) return false;
  const struct ir_expr *sum = e->args[0];
  enum { FEW = 1 << 20 };
  return e->args[1]->integer > 0 && e->args[1]->integer < FEW && sum->op == OP_ADD &&
         is_nonnegative(m, sum->args[0]) && ir_is_const(sum->args[1]) && sum->args[1]->integer >= 0 &&
         sum->args[1]->integer < FEW;
}

// --- Lowering ----------------------------------------------------------------------------------------------

static struct ir_expr *machine(struct math *m, bool is_quotient, struct ir_expr *a, struct ir_expr *b) {
  return ir_binary(m->arena, is_quotient ? OP_QUO : OP_REM, a, b);
}

// x / d as x * M >> s, in 32 bits, where x is known to be small: two instructions, and none where LLVM would take 16-bit ones. With M = (2^s + e) / d and
// x * e < 2^s that is exact. NULL where x is not known to be small enough.
static struct ir_expr *by_product(struct math *m, struct ir_expr *x, uint64_t d) {
  enum { MOST_BITS = 20 };
  int bits = range_of(m, x).bits;
  if (bits == UNKNOWN || bits > MOST_BITS || type_bits(x->type) != 32 || d > UINT64_C(1) << MOST_BITS) return NULL;
  uint64_t most = (UINT64_C(1) << bits) - 1;
  for (int s = 0; s < 32; s++) {
    uint64_t power = UINT64_C(1) << s, times = (power + d - 1) / d, error = times * d - power;
    if (error * most >= power) continue;
    if (times * most > UINT32_MAX) return NULL;
    struct ir_expr *product = ir_binary(m->arena, OP_MUL, ir_cast(m->arena, TYPE_U32, x), ir_int(m->arena, TYPE_U32, (int64_t)times));
    return ir_cast(m->arena, x->type, ir_binary(m->arena, OP_SHR, product, ir_int(m->arena, TYPE_U32, s)));
  }
  return NULL;
}

static struct ir_expr *by_constant(struct math *m, bool is_quotient, struct ir_expr *a, struct ir_expr *b) {
  struct arena *arena = m->arena;
  uint64_t d = (uint64_t)b->integer;
  if (d == 0)
    return is_quotient
               ? ir_int(arena, a->type,
                        type_is_signed(a->type) ? -1 : (int64_t)(UINT64_MAX >> (64 - type_bits(a->type))))
               : a;
  if (type_is_signed(a->type) && b->integer == -1)
    return is_quotient ? ir_unary(arena, OP_NEG, a) : ir_int(arena, a->type, 0);
  bool is_power = (d & (d - 1)) == 0 && (!type_is_signed(a->type) || b->integer > 0);
  if (!is_power && m->bounded.count) {
    struct ir_expr *quotient = by_product(m, a, d);
    if (quotient && is_quotient) return quotient;
    if (quotient) return ir_binary(arena, OP_SUB, a, ir_binary(arena, OP_MUL, quotient, b)); // pass `prove` knows this form
  }
  if (!is_power || !is_nonnegative(m, a)) return machine(m, is_quotient, a, b);
  if (!is_quotient) return ir_binary(arena, OP_AND, a, ir_int(arena, a->type, (int64_t)(d - 1)));
  return ir_binary(arena, OP_SHR, a, ir_int(arena, a->type, bit_length(d) - 1));
}

// The low 32 bits of a 64-bit value.
static struct ir_expr *low_half(struct arena *arena, struct ir_expr *e) {
  if (e->op == OP_CAST && type_bits(e->args[0]->type) == 32 && type_is_integer(e->args[0]->type))
    return ir_cast(arena, TYPE_U32, e->args[0]);
  if (e->op == OP_ADD || e->op == OP_SUB || e->op == OP_MUL)
    return ir_binary(arena, e->op, low_half(arena, e->args[0]), low_half(arena, e->args[1]));
  return ir_cast(arena, TYPE_U32, e);
}

// Division of 64-bit values that are known to have 32 bits: several times cheaper.
static struct ir_expr *divide_narrow(struct math *m, bool is_quotient, struct ir_expr *a, struct ir_expr *b) {
  struct ir_expr *x = low_half(m->arena, a), *y = low_half(m->arena, b);
  struct ir_expr *result = ir_is_const(y) ? by_constant(m, is_quotient, x, y) : machine(m, is_quotient, x, y);
  return ir_cast(m->arena, a->type, result);
}

static bool has_32_bits(const struct math *m, const struct ir_expr *e) {
  int bits = range_of(m, e).bits;
  return bits != UNKNOWN && bits <= 32;
}

struct ir_expr *math_divide(struct math *m, struct ir_expr *e) {
  struct arena *arena = m->arena;
  bool is_quotient = e->op == OP_DIV, is_signed = type_is_signed(e->type);
  struct ir_expr *a = e->args[0], *b = e->args[1];
  if (type_bits(e->type) == 64 && has_32_bits(m, a) && has_32_bits(m, b) && is_positive(m, b))
    return divide_narrow(m, is_quotient, a, b);
  if (ir_is_const(b)) return by_constant(m, is_quotient, a, b);
  bool not_zero = is_positive(m, b), not_minus = !is_signed || is_not_minus_one(m, b);
  if (not_zero && not_minus) return machine(m, is_quotient, a, b);
  a = math_repeatable(m, a, "dividend");
  b = math_repeatable(m, b, "divisor");
  struct ir_expr *one = ir_int(arena, e->type, 1), *ones = ir_unary(arena, OP_NOT, ir_int(arena, e->type, 0));
  struct ir_expr *by_zero =
      math_repeatable(m, ir_binary(arena, OP_EQ, b, ir_int(arena, e->type, 0)), "by_zero");
  if (not_minus) {
    bool is_one_up = !is_signed || is_nonnegative(m, b);
    struct ir_expr *safe = is_one_up ? ir_binary(arena, OP_MAX, b, one) : ir_select(arena, by_zero, one, b);
    return ir_select(arena, by_zero, is_quotient ? ones : a, machine(m, is_quotient, a, safe));
  }
  struct ir_expr *by_minus = math_repeatable(m, ir_binary(arena, OP_EQ, b, ones), "by_minus");
  struct ir_expr *safe = ir_select(arena, ir_binary(arena, OP_OR, by_zero, by_minus), one, b);
  struct ir_expr *result = machine(m, is_quotient, a, safe); // x % 1 is what x % -1 is
  if (is_quotient) result = ir_select(arena, by_minus, ir_unary(arena, OP_NEG, a), result);
  return ir_select(arena, by_zero, is_quotient ? ones : a, result);
}

struct ir_expr *math_shift(struct math *m, struct ir_expr *e) {
  struct ir_expr *count = e->args[1], *mask = ir_int(m->arena, e->type, type_bits(e->type) - 1);
  struct ir_expr *below = ir_binary(m->arena, OP_AND, count, mask);
  if (count->op == OP_AND && ir_equal(count->args[1], mask)) below = count;
  return below == count || ir_equal(below, count) ? e : ir_binary(m->arena, e->op, e->args[0], below);
}

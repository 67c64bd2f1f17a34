// redc lift: what one iteration does to a value that goes from iteration to iteration.
//
// An expression `now` over the value `old` at the iteration's begin is a step of a reduction where it is `old op operand`, under a
// condition or not. Everything else that mentions `old` is a recurrence, which the language does not have.
#include "grammar/lift_kernel.h"

static bool is_ref(const struct ir_expr *e, const struct ir_var *var) { return e->op == OP_VAR && e->var == var; }

// Conversions between integers of the same or a lower width keep sums, products and bits of the lower one.
static bool wraps_alike(enum type narrow, enum type wide) {
  return type_is_integer(narrow) && type_is_integer(wide) && type_bits(narrow) <= type_bits(wide);
}

static struct ir_expr *both(struct lift *l, struct ir_expr *a, struct ir_expr *b) {
  return a && b ? ir_binary(l->arena, OP_AND, a, b) : a ? a : b;
}

// `operand op old` or `old op operand`.
static bool match_operator(struct lift *l, struct ir_expr *now, const struct ir_var *old, struct lift_step *step) {
  enum op op = now->op;
  bool is_left = now->count == 2 && is_ref(now->args[0], old), is_right = now->count == 2 && is_ref(now->args[1], old);
  if (is_left == is_right) return false;
  struct ir_expr *other = now->args[is_left ? 1 : 0];
  if (ir_mentions(other, old)) return false;
  step->operand = other;
  switch ((int)op) {
  case OP_SUB:
    if (!is_left) return false;
    step->op = OP_ADD;
    step->operand = ir_unary(l->arena, OP_NEG, other);
    return true;
  case OP_ADD: case OP_MUL: case OP_MIN: case OP_MAX: case OP_FMIN: case OP_FMAX: case OP_AND: case OP_OR: case OP_XOR:
    step->op = op;
    return true;
  default: return false;
  }
}

static bool match(struct lift *l, struct ir_expr *now, const struct ir_var *old, struct lift_step *step, const char **advice, int depth);

// (old op x) op y, which is old op (x op y) where the operation is associative: not for floats, unless they may be reassociated.
static bool match_chain(struct lift *l, struct ir_expr *now, const struct ir_var *old, struct lift_step *step, const char **advice, int depth) {
  if (now->count != 2 || (now->op != OP_ADD && now->op != OP_SUB && now->op != OP_MUL && now->op != OP_AND && now->op != OP_OR && now->op != OP_XOR)) return false;
  bool is_left = ir_mentions(now->args[0], old);
  struct ir_expr *inner = now->args[is_left ? 0 : 1], *other = now->args[is_left ? 1 : 0];
  enum op op = now->op == OP_SUB ? OP_ADD : now->op;
  if (ir_mentions(other, old) || (now->op == OP_SUB && !is_left)) return false;
  if (!match(l, inner, old, step, advice, depth + 1) || step->op != op || step->is_last) return false;
  if (type_is_float(now->type) && !l->reassociates) {
    *advice = "make it one step, s += x + y, or give --reassociate";
    return false;
  }
  if (step->guard) {
    int64_t identity = op == OP_MUL ? 1 : op == OP_AND ? (now->type == TYPE_BOOL ? 1 : -1) : 0;
    struct ir_expr *nothing = type_is_float(now->type) ? ir_float(l->arena, now->type, (double)identity) : ir_int(l->arena, now->type, identity);
    step->operand = lift_select(l, step->guard, step->operand, nothing);
    step->guard = NULL;
  }
  step->operand = ir_binary(l->arena, now->op, step->operand, other);
  return true;
}

// select(compare(x, old), x, old) in its four spellings.
static bool match_compare(struct ir_expr *now, const struct ir_var *old, struct lift_step *step, const char **advice) {
  struct ir_expr *c = now->args[0];
  bool takes_first = is_ref(now->args[2], old);
  struct ir_expr *x = now->args[takes_first ? 1 : 2];
  if ((!takes_first && !is_ref(now->args[1], old)) || ir_mentions(x, old) || c->count != 2) return false;
  bool is_left = ir_equal(c->args[0], x) && is_ref(c->args[1], old), is_right = ir_equal(c->args[1], x) && is_ref(c->args[0], old);
  if (!is_left && !is_right) return false;
  enum op op = c->op;
  if (op != OP_LT && op != OP_LE && op != OP_GT && op != OP_GE) return false;
  bool x_is_greater = (op == OP_GT || op == OP_GE) == is_left; // the comparison holds where x is the greater
  bool is_float = type_is_float(now->type);
  // `old > x ? old : x` takes a NaN and drops what was before it: no maximum.
  if (!takes_first && is_float) {
    *advice = x_is_greater ? "a NaN would end what was found before; put the new value first (x < m ? x : m), or use fmin, or give --reassociate"
                           : "a NaN would end what was found before; put the new value first (x > m ? x : m), or use fmax, or give --reassociate";
    step->op = OP_COUNT;
  }
  bool is_max = takes_first == x_is_greater;
  step->op = is_float ? (is_max ? OP_FMAX : OP_FMIN) : (is_max ? OP_MAX : OP_MIN);
  step->operand = x;
  step->compares = takes_first && is_float;
  return true;
}

static bool match(struct lift *l, struct ir_expr *now, const struct ir_var *old, struct lift_step *step, const char **advice, int depth) {
  *step = (struct lift_step){.op = OP_COUNT};
  if (is_ref(now, old)) return true;
  if (depth > 40) return false;
  if (!ir_mentions(now, old)) {
    step->operand = now;
    step->is_last = true;
    return true;
  }
  if (match_operator(l, now, old, step)) return true;
  // fma(x, y, old)
  if (now->op == OP_FMA && is_ref(now->args[2], old) && !ir_mentions(now->args[0], old) && !ir_mentions(now->args[1], old)) {
    step->op = OP_ADD;
    step->operand = ir_binary(l->arena, OP_MUL, now->args[0], now->args[1]);
    return true;
  }
  // narrow(wide(old) op operand)
  if (now->op == OP_CAST && now->args[0]->count == 2) {
    struct ir_expr *inside = now->args[0];
    enum op op = inside->op;
    bool is_ring = op == OP_ADD || op == OP_SUB || op == OP_MUL || op == OP_AND || op == OP_OR || op == OP_XOR;
    for (int k = 0; k < 2; k++) {
      struct ir_expr *self = inside->args[k], *other = inside->args[1 - k];
      if (self->op != OP_CAST || !is_ref(self->args[0], old) || ir_mentions(other, old)) continue;
      if (is_ring && wraps_alike(now->type, inside->type) && !(op == OP_SUB && k == 1)) {
        step->op = op == OP_SUB ? OP_ADD : op;
        step->operand = lift_as(l, now->type, op == OP_SUB ? ir_unary(l->arena, OP_NEG, other) : other);
        return true;
      }
      if (type_is_float(inside->type))
        *advice = "the sum is rounded to a narrower type at every step; convert the operand, s += (float)x, or make the variable double";
    }
    // int flag = flag || c
    if (type_is_integer(now->type) && inside->type == TYPE_BOOL && (op == OP_OR || op == OP_AND)) {
      for (int k = 0; k < 2; k++) {
        struct ir_expr *self = inside->args[k], *other = inside->args[1 - k];
        bool is_old = self->op == OP_NE && is_ref(self->args[0], old) && ir_const_is(self->args[1], 0);
        if (is_old && !ir_mentions(other, old)) *advice = "make the variable bool, or write if (c) found = 1";
      }
    }
  }
  if (now->op != OP_SELECT) {
    if (now->op == OP_DIV && is_ref(now->args[0], old)) *advice = "multiply the divisors, and divide once behind the loop";
    return match_chain(l, now, old, step, advice, depth);
  }
  if (match_compare(now, old, step, advice)) return !*advice || l->reassociates;
  struct ir_expr *c = now->args[0];
  if (ir_mentions(c, old)) {
    // select(and(guard, compare), x, old)
    for (int k = 0; c->op == OP_AND && k < 2; k++) {
      if (ir_mentions(c->args[1 - k], old)) continue;
      struct ir_expr *rest = ir_select(l->arena, c->args[k], now->args[1], now->args[2]);
      if (!is_ref(now->args[2], old) || !match(l, rest, old, step, advice, depth + 1) || step->is_last) return false;
      step->guard = both(l, c->args[1 - k], step->guard);
      return true;
    }
    return false;
  }
  struct lift_step a, b;
  if (!match(l, now->args[1], old, &a, advice, depth + 1) || !match(l, now->args[2], old, &b, advice, depth + 1)) return false;
  struct ir_expr *not = ir_unary(l->arena, OP_NOT, c);
  bool a_stays = a.op == OP_COUNT && !a.is_last, b_stays = b.op == OP_COUNT && !b.is_last;
  if (a_stays && b_stays) return true;
  if (a_stays || b_stays) {
    *step = a_stays ? b : a;
    step->guard = both(l, a_stays ? not : c, step->guard);
    return true;
  }
  if (a.op != b.op || a.is_last != b.is_last || a.compares != b.compares) return false;
  *step = a;
  step->operand = ir_select(l->arena, c, a.operand, b.operand);
  if (a.guard || b.guard) {
    struct ir_expr *yes = ir_int(l->arena, TYPE_BOOL, 1);
    step->guard = ir_select(l->arena, c, a.guard ? a.guard : yes, b.guard ? b.guard : yes);
  }
  return true;
}

bool lift_match(struct lift *l, struct ir_expr *now, const struct ir_var *old, struct lift_step *step, const char **advice) {
  *advice = NULL;
  return match(l, now, old, step, advice, 0);
}

// select(guard, x, old) taken apart into what is asked, nested ones included.
static bool open_select(struct lift *l, struct ir_expr *now, const struct ir_var *old, struct list *asked, struct ir_expr **taken) {
  while (now->op == OP_SELECT && is_ref(now->args[2], old)) {
    struct list open = {0};
    list_push(l->arena, &open, now->args[0]);
    while (open.count) {
      struct ir_expr *c = open.at[open.count - 1];
      open.count--;
      if (c->op == OP_AND) {
        list_push(l->arena, &open, c->args[1]);
        list_push(l->arena, &open, c->args[0]);
      } else {
        list_push(l->arena, asked, c);
      }
    }
    now = now->args[1];
  }
  *taken = now;
  return asked->count && !ir_mentions(now, old);
}

bool lift_match_place(struct lift *l, struct ir_expr *best, const struct ir_var *old_best, struct ir_expr *place,
                      const struct ir_var *old_place, struct lift_step *step, struct ir_expr **operand, bool *is_strict) {
  struct list asked = {0}, also = {0};
  struct ir_expr *x, *p, *compare = NULL;
  *step = (struct lift_step){.op = OP_COUNT};
  if (!open_select(l, best, old_best, &asked, &x) || !open_select(l, place, old_place, &also, &p)) return false;
  if (asked.count != also.count || ir_mentions(p, old_best) || ir_mentions(x, old_place)) return false;
  for (uint32_t i = 0; i < asked.count; i++) {
    struct ir_expr *c = asked.at[i];
    if (!ir_equal(c, also.at[i]) || ir_mentions(c, old_place)) return false;
    if (!ir_mentions(c, old_best)) {
      step->guard = both(l, step->guard, c);
      continue;
    }
    if (compare) return false;
    compare = c;
  }
  if (!compare || compare->count != 2) return false;
  bool is_left = ir_equal(compare->args[0], x) && is_ref(compare->args[1], old_best);
  bool is_right = ir_equal(compare->args[1], x) && is_ref(compare->args[0], old_best);
  enum op op = compare->op;
  if ((!is_left && !is_right) || (op != OP_LT && op != OP_LE && op != OP_GT && op != OP_GE)) return false;
  step->op = (op == OP_GT || op == OP_GE) == is_left ? OP_MAX : OP_MIN;
  step->operand = x;
  *operand = p;
  *is_strict = op == OP_LT || op == OP_GT;
  return true;
}

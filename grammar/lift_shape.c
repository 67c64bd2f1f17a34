// redc lift: shapes of pointers. `A[i * m + j]` is element (i, j) of rows of m.
//
// The first run over a function gathers what axes are multiplied by in a pointer's indices: here m and 1. Sorted, each a multiple
// of the next, their quotients are the dimensions behind the first. The second run takes every index apart and proves that each part
// but the first stays inside its dimension; a pointer for which that fails has one dimension. The first extent is the least
// that holds all accesses.
#include "grammar/lift_kernel.h"

// A product: a constant and sizes.
struct product {
  int64_t factor; // above 0
  struct list vars; // struct ir_var
};

static void visit_var(struct ir_expr *e, void *state) {
  struct list *vars = state;
  if (e->op != OP_VAR || vars->count == vars->capacity) return;
  for (uint32_t i = 0; i < vars->count; i++)
    if (vars->at[i] == e->var) return;
  vars->at[vars->count++] = e->var;
}

// The variables that an expression mentions: at most 16.
static struct list vars_of(struct lift *l, struct ir_expr *e) {
  struct list vars = {.at = arena_array(l->arena, void *, 16), .capacity = 16};
  ir_visit_expr(e, visit_var, &vars);
  return vars;
}

static bool product_of(struct lift *l, struct ir_expr *e, struct product *product) {
  struct facts facts;
  facts_init(&facts, l->arena);
  struct poly p = poly_of(&facts, e), c, rest;
  struct list vars = vars_of(l, e);
  *product = (struct product){0};
  for (uint32_t i = 0; i < vars.count; i++)
    while (poly_linear(&facts, p, vars.at[i], &c, &rest) && poly_is_zero(rest) && !poly_is_zero(c)) {
      list_push(l->arena, &product->vars, vars.at[i]);
      p = c;
    }
  return poly_is_constant(p, &product->factor) && product->factor > 0;
}

// a / b where that is a product.
static struct ir_expr *quotient(struct lift *l, struct ir_expr *a, struct ir_expr *b) {
  struct product x, y;
  if (ir_const_is(b, 1)) return a;
  if (!product_of(l, a, &x) || !product_of(l, b, &y) || x.factor % y.factor) return NULL;
  for (uint32_t i = 0; i < y.vars.count; i++) {
    uint32_t k = 0;
    while (k < x.vars.count && x.vars.at[k] != y.vars.at[i]) k++;
    if (k == x.vars.count) return NULL;
    list_remove(&x.vars, k);
  }
  struct ir_expr *q = ir_int(l->arena, TYPE_I64, x.factor / y.factor);
  for (uint32_t i = 0; i < x.vars.count; i++) q = ir_binary(l->arena, OP_MUL, q, ir_ref(l->arena, x.vars.at[i]));
  return q;
}

static struct ir_expr *simplify(struct lift *l, struct ir_expr *e) {
  struct facts facts;
  facts_init(&facts, l->arena);
  struct ir_expr *simple = poly_to_expr(&facts, poly_of(&facts, e));
  return simple ? simple : e;
}

static bool is_same(struct lift *l, struct ir_expr *a, struct ir_expr *b) {
  struct facts facts;
  facts_init(&facts, l->arena);
  return prove_equal(&facts, a, b);
}

// Calls back with each axis that is open and its coefficient; false where the index is not linear in one.
static bool next_axis(struct lift *l, struct facts *facts, struct lift_scope **scope, struct poly *index, struct ir_var **axis,
                      struct ir_expr **coefficient) {
  while (*scope) {
    struct lift_scope *s = *scope;
    *scope = s->parent;
    struct poly c, rest;
    if (!s->axis || !poly_linear(facts, *index, s->axis->var, &c, &rest)) continue;
    *axis = s->axis->var;
    *coefficient = poly_to_expr(facts, c);
    *index = rest;
    (void)l;
    return *coefficient != NULL;
  }
  return false;
}

static bool is_negative(const struct ir_expr *e) {
  while (e->op == OP_MUL || e->op == OP_NEG) {
    if (e->op == OP_NEG) return true;
    e = e->args[e->args[1]->op == OP_CONST ? 1 : 0];
  }
  return e->op == OP_CONST && e->integer < 0;
}

static struct ir_expr *magnitude(struct lift *l, struct ir_expr *e) {
  return is_negative(e) ? simplify(l, ir_unary(l->arena, OP_NEG, e)) : e;
}

void lift_note_strides(struct lift *l, struct lift_symbol *array, struct ir_expr *index) {
  struct facts facts = lift_facts(l, l->scope, NULL);
  struct poly p = poly_of(&facts, index);
  struct lift_scope *scope = l->scope;
  struct ir_var *axis;
  struct ir_expr *c;
  if (!p.is_valid) array->is_flat = true;
  while (!array->is_flat && next_axis(l, &facts, &scope, &p, &axis, &c)) {
    c = magnitude(l, c);
    bool is_known = ir_const_is(c, 0);
    for (uint32_t i = 0; i < array->strides.count && !is_known; i++) is_known = is_same(l, array->strides.at[i], c);
    if (!is_known) list_push(l->arena, &array->strides, c);
  }
}

void lift_shape(struct lift *l, struct lift_symbol *array) {
  struct list sorted = {0}, tails = {0};
  struct ir_expr *one = ir_int(l->arena, TYPE_I64, 1);
  bool has_one = false;
  for (uint32_t i = 0; i < array->strides.count; i++) has_one |= ir_const_is(array->strides.at[i], 1);
  if (!has_one) list_push(l->arena, &array->strides, one);
  // Each time the one that all others are multiples of goes to the front.
  struct list left = list_copy(l->arena, &array->strides);
  while (left.count && !array->is_flat) {
    uint32_t found = UINT32_MAX;
    for (uint32_t i = 0; i < left.count && found == UINT32_MAX; i++) {
      bool divides = true;
      for (uint32_t k = 0; k < left.count; k++) divides &= k == i || quotient(l, left.at[k], left.at[i]) != NULL;
      if (divides) found = i;
    }
    if (found == UINT32_MAX) {
      array->is_flat = true;
      break;
    }
    struct ir_expr *stride = left.at[found];
    if (sorted.count) list_insert(l->arena, &tails, 0, quotient(l, stride, sorted.at[0]));
    list_insert(l->arena, &sorted, 0, stride);
    list_remove(&left, found);
  }
  array->strides = sorted;
  array->tails = tails;
  if (array->is_flat) {
    array->strides = (struct list){0};
    array->tails = (struct list){0};
  }
}

// Takes the multiples of a stride out of what is left of an index without axes.
static struct ir_expr *take_multiple(struct lift *l, struct facts *facts, struct poly *rest, struct ir_expr *stride) {
  struct product product;
  struct ir_expr *zero = ir_int(l->arena, TYPE_I64, 0);
  if (!product_of(l, stride, &product)) {
    struct poly s = poly_of(facts, stride);
    for (int sign = -1; sign <= 1; sign += 2) {
      struct poly q = poly_mul(facts, poly_constant(facts, sign), s);
      if (!poly_equal(facts, *rest, q)) continue;
      *rest = poly_constant(facts, 0);
      return ir_int(l->arena, TYPE_I64, sign);
    }
    return zero;
  }
  struct poly q = *rest, c, other;
  for (uint32_t i = 0; i < product.vars.count; i++) {
    if (!poly_linear(facts, q, product.vars.at[i], &c, &other)) return zero;
    q = c;
  }
  int64_t number;
  struct ir_expr *part = NULL;
  if (product.factor == 1) {
    part = poly_to_expr(facts, q);
  } else if (poly_is_constant(q, &number)) {
    int64_t whole = number / product.factor - (number % product.factor < 0);
    part = ir_int(l->arena, TYPE_I64, whole);
  }
  if (!part) return zero;
  *rest = poly_sub(facts, *rest, poly_of(facts, ir_binary(l->arena, OP_MUL, part, stride)));
  return part;
}

// Whether 0 <= part < extent. A constant part is: that the extent is larger becomes a requirement on the sizes.
static bool is_inside(struct facts *facts, struct ir_expr *part, struct ir_expr *extent) {
  int64_t number;
  if (poly_is_constant(poly_of(facts, part), &number) && number >= 0 && !ir_is_const(extent)) return true;
  return prove_nonnegative(facts, poly_of(facts, part)) && prove_less(facts, part, extent);
}

bool lift_take_apart(struct lift *l, struct lift_symbol *array, struct ir_expr *index, struct list *indices) {
  if (array->is_flat || !array->tails.count) {
    list_push(l->arena, indices, index);
    return true;
  }
  struct facts facts = lift_facts(l, l->scope, NULL);
  struct poly p = poly_of(&facts, index);
  uint32_t rank = array->strides.count;
  struct ir_expr **parts = arena_array(l->arena, struct ir_expr *, rank);
  for (uint32_t r = 0; r < rank; r++) parts[r] = ir_int(l->arena, TYPE_I64, 0);
  struct lift_scope *scope = l->scope;
  struct ir_var *axis;
  struct ir_expr *c;
  while (next_axis(l, &facts, &scope, &p, &axis, &c)) {
    struct ir_expr *size = magnitude(l, c);
    uint32_t r = 0;
    struct ir_expr *q = NULL;
    for (; r < rank; r++) {
      q = is_same(l, size, array->strides.at[r]) ? ir_int(l->arena, TYPE_I64, 1) : quotient(l, size, array->strides.at[r]);
      if (q && (r + 1 == rank || ir_is_const(q))) break;
    }
    if (r == rank) break;
    struct ir_expr *term = ir_binary(l->arena, OP_MUL, q, ir_ref(l->arena, axis));
    parts[r] = ir_binary(l->arena, is_negative(c) ? OP_SUB : OP_ADD, parts[r], term);
  }
  for (uint32_t r = 0; r < rank; r++)
    parts[r] = ir_binary(l->arena, OP_ADD, parts[r], r + 1 < rank ? take_multiple(l, &facts, &p, array->strides.at[r]) : poly_to_expr(&facts, p));
  struct ir_expr *one = ir_int(l->arena, TYPE_I64, 1);
  bool fits = true;
  for (uint32_t r = rank - 1; r > 0 && fits; r--) {
    struct ir_expr *extent = array->tails.at[r - 1];
    fits = is_inside(&facts, parts[r], extent);
    for (int sign = -1; sign <= 1 && !fits; sign += 2) { // `i * m + (m - 1 - j)`: one row less, and m more
      struct ir_expr *shifted = ir_binary(l->arena, sign < 0 ? OP_ADD : OP_SUB, parts[r], extent);
      if (!is_inside(&facts, shifted, extent)) continue;
      parts[r] = shifted;
      parts[r - 1] = ir_binary(l->arena, sign < 0 ? OP_SUB : OP_ADD, parts[r - 1], one);
      fits = true;
    }
  }
  if (!fits) {
    array->is_flat = l->again = true;
    return false;
  }
  for (uint32_t r = 0; r < rank; r++) list_push(l->arena, indices, simplify(l, parts[r]));
  return true;
}

// The greatest value over the axes, plus one.
static struct ir_expr *reach(struct lift *l, struct facts *facts, struct ir_expr *e) {
  struct ir_expr *least = poly_minimum_expr(facts, poly_of(facts, ir_unary(l->arena, OP_NEG, e)));
  return least ? simplify(l, ir_binary(l->arena, OP_SUB, ir_int(l->arena, TYPE_I64, 1), least)) : NULL;
}

static bool is_size_or_scalar(const struct ir_var *var, const void *state) {
  (void)state;
  return var->kind != VAR_SIZE && var->kind != VAR_SCALAR;
}

// A lower reach that a condition `a < b` gives where e is a plus a constant.
static void reach_under(struct lift *l, struct facts *facts, struct ir_expr *condition, struct ir_expr *e, struct ir_expr **best) {
  if (condition->op == OP_AND) {
    reach_under(l, facts, condition->args[0], e, best);
    reach_under(l, facts, condition->args[1], e, best);
    return;
  }
  bool is_less = condition->op == OP_LT || condition->op == OP_LE, is_greater = condition->op == OP_GT || condition->op == OP_GE;
  if ((!is_less && !is_greater) || condition->args[0]->type != TYPE_I64) return;
  struct ir_expr *a = condition->args[is_less ? 0 : 1], *b = condition->args[is_less ? 1 : 0];
  int64_t distance;
  if (!poly_is_constant(poly_sub(facts, poly_of(facts, e), poly_of(facts, a)), &distance)) return;
  if (condition->op == OP_LE || condition->op == OP_GE) distance++;
  struct ir_expr *under = reach(l, facts, ir_binary(l->arena, OP_ADD, b, ir_int(l->arena, TYPE_I64, distance - 1)));
  if (under && (!*best || prove_at_most(facts, under, *best))) *best = under;
}

bool lift_extend(struct lift *l, struct lift_symbol *array, struct ir_expr *first, struct range range) {
  struct facts facts = lift_facts(l, l->scope, NULL);
  struct ir_expr *extent = reach(l, &facts, first);
  if (extent && lift_mentions(extent, is_size_or_scalar, NULL)) extent = NULL;
  for (const struct lift_scope *s = l->scope; s; s = s->parent)
    for (uint32_t i = 0; i < s->guards.count; i++) reach_under(l, &facts, s->guards.at[i], first, &extent);
  const char *name = array->host->name;
  if (!extent) {
    lift_refuse(l, range, arena_printf(l->arena, "declare it with its bounds: %s[n], or %s[n][m]", name, name), "nothing says how many elements '%s' has", name);
    return false;
  }
  struct facts none;
  facts_init(&none, l->arena);
  if (!array->extent || prove_at_most(&none, array->extent, extent)) {
    array->extent = extent;
    array->access = range;
  } else if (!prove_at_most(&none, extent, array->extent)) {
    lift_refuse(l, range, arena_printf(l->arena, "declare it with its bounds: %s[n], or %s[n][m]", name, name), "two accesses of '%s' reach different sizes", name);
    diag_note(l->diag, array->access, "the other one");
    return false;
  }
  return true;
}

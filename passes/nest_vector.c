// Vectors that an axis may begin or end inside of: whole ones without guards, the others element by element.
//
//   for v in 0 .. 4 vector {                                   let first = o * 4 - shift
//     let x = o * 4 + v - shift                                if first >= 0 && first < n - 3 {
//     if x >= 0 { if x < n { store Y[x] = .. } }        ->       for v in 0 .. 4 vector { let x = first + v;  store Y[x] = .. }
//   }                                                          } else { for v in 0 .. 4 { let x = ..;  if x >= 0 { if x < n { .. } } } }
//
// For stages with pieces along a tensor (split_along.c), in the fast entry, where all loops from here on are vectors and x is a sum with constant multiples
// of them. In a reduction, where its accumulators are declared further out.
#include "passes/nest.h"
#include "passes/schedule.h"
#include "passes/stage.h"

// --- Derived axes -----------------------------------------------------------------------------------------------------

static bool has_division(const struct ir_expr *e) {
  bool has = e->op == OP_DIV || e->op == OP_MOD || e->op == OP_QUO || e->op == OP_REM;
  for (uint32_t i = 0; i < e->count && !has; i++) has = has_division(e->args[i]);
  return has;
}

void nest_divide_derived(struct nest *n, struct ir_stage *stage) {
  struct facts facts;
  bool has_any = false;
  for (uint32_t i = 0; i < stage->derived.count; i++) has_any |= has_division(list_at(&stage->derived, struct ir_stmt, i)->value);
  if (!has_any || stage->kind != STAGE_STORE || stage->mem->space == SPACE_LOCAL) return; // pass `edge` clamps what others are made of
  facts_init(&facts, n->arena);
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, i)->axis;
    facts_add_axis(&facts, axis->var, nest_int(n, 0), extent_inner(axis->extent));
  }
  stage->derived = list_copy(n->arena, &stage->derived);
  for (uint32_t i = 0; i < stage->derived.count; i++) {
    struct ir_stmt *let = stage->derived.at[i];
    struct poly value = has_division(let->value) ? poly_of(&facts, let->value) : (struct poly){.is_valid = false};
    struct ir_expr *e = value.is_valid ? poly_to_expr(&facts, value) : NULL;
    if (e && !has_division(e)) stage->derived.at[i] = let = ir_let(n->arena, let->var, schedule_index(n->arena, e), let->range);
    const struct ir_expr *divisor = has_division(let->value) && let->value->count == 2 ? let->value->args[1] : NULL;
    bool is_remainder = divisor && let->value->op == OP_MOD && ir_is_const(divisor) && prove_nonnegative(&facts, poly_of(&facts, let->value->args[0]));
    bool is_quotient = divisor && let->value->op == OP_DIV && ir_is_const(divisor) && divisor->integer > 0 && prove_nonnegative(&facts, poly_of(&facts, let->value->args[0]));
    if (is_remainder) facts_add_axis(&facts, let->var, nest_int(n, 0), let->value->args[1]);
    else if (is_quotient) facts_add_axis(&facts, let->var, nest_int(n, 0), nest_int(n, INT32_MAX));
    else facts_add_definition(&facts, let->var, let->value);
  }
}

// --- Axes that may begin inside a piece ---------------------------------------------------------------------------------

// Whether e stays the same inside vectors.
static bool is_same_in_vectors(struct arena *arena, const struct ir_stage *stage, struct ir_expr *e) {
  if (!mentions_axis(e)) return true;
  e = stage_in_leaves(arena, stage, e);
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    const struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, i)->axis;
    if (axis->bind == BIND_VECTOR && ir_mentions(e, axis->var)) return false;
  }
  return true;
}

// A guard x >= 0 or x < E: its x; NULL where it is another.
static struct ir_var *guarded_var(const struct ir_expr *guard) {
  bool is_start = guard->op == OP_GE && ir_const_is(guard->args[1], 0), is_end = guard->op == OP_LT && !mentions_axis(guard->args[1]);
  return (is_start || is_end) && guard->args[0]->op == OP_VAR ? guard->args[0]->var : NULL;
}

static uint32_t place_of_let(const struct ir_stage *stage, const struct ir_var *var) {
  for (uint32_t i = 0; i < stage->derived.count; i++)
    if (list_at(&stage->derived, struct ir_stmt, i)->var == var) return i;
  return UINT32_MAX;
}

// Marks: an axis that may begin inside a piece, or what is asked and made of it; what is made of these and waits for their guards.
enum { BEGINS_INSIDE = 1, WAITS = 2 };

static bool mentions_marked(const struct ir_expr *e, uint32_t least) {
  if (e->op == OP_VAR) return e->var->mark >= least;
  for (uint32_t i = 0; i < e->count; i++)
    if (mentions_marked(e->args[i], least)) return true;
  return false;
}

// Whether x may begin inside a piece: it has a guard x >= 0.
static bool starts_inside(const struct ir_stage *stage, const struct ir_var *x) {
  for (uint32_t g = 0; g < stage->guards.count; g++)
    if (list_at(&stage->guards, struct ir_expr, g)->op == OP_GE && guarded_var(stage->guards.at[g]) == x) return true;
  return false;
}

static bool divides(const struct ir_expr *e) {
  bool has = e->op != OP_VAR && e->op != OP_CONST && e->op != OP_ADD && e->op != OP_SUB && e->op != OP_MUL;
  for (uint32_t i = 0; i < e->count && !has; i++) has = divides(e->args[i]);
  return has;
}

// base + x / D < E as x < (E - base) * D, where x may begin inside a piece: it is asked with x's own ends, and what is made of x waits for all of these.
static struct ir_expr *guard_of_quotient(struct nest *n, const struct ir_stage *stage, struct ir_expr *guard) {
  struct arena *arena = n->arena;
  uint32_t place = guard->op == OP_LT && guard->args[0]->op == OP_VAR && !mentions_axis(guard->args[1]) ? place_of_let(stage, guard->args[0]->var) : UINT32_MAX;
  if (place == UINT32_MAX) return guard;
  struct ir_expr *value = list_at(&stage->derived, struct ir_stmt, place)->value, *base = NULL, *quotient = value;
  if (value->op == OP_ADD) base = value->args[0], quotient = value->args[1];
  if (quotient->op == OP_VAR) {
    place = place_of_let(stage, quotient->var);
    if (place == UINT32_MAX) return guard;
    quotient = list_at(&stage->derived, struct ir_stmt, place)->value;
  }
  bool is_quotient = quotient->op == OP_DIV && quotient->args[0]->op == OP_VAR && ir_is_const(quotient->args[1]) && quotient->args[1]->integer > 0;
  if (!is_quotient || !starts_inside(stage, quotient->args[0]->var) || (base && !is_same_in_vectors(arena, stage, base))) return guard;
  struct ir_expr *rest = base ? ir_binary(arena, OP_SUB, guard->args[1], stage_in_leaves(arena, stage, base)) : guard->args[1];
  return ir_binary(arena, OP_LT, quotient->args[0], ir_binary(arena, OP_MUL, rest, quotient->args[1]));
}

void nest_defer_derived(struct nest *n, struct ir_stage *stage) {
  struct list kept = {0}, deferred = {0};
  for (uint32_t i = 0; i < stage->derived.count; i++) list_at(&stage->derived, struct ir_stmt, i)->var->mark = 0;
  for (uint32_t g = 0; g < stage->guards.count; g++) {
    struct ir_var *x = guarded_var(stage->guards.at[g]);
    if (x && list_at(&stage->guards, struct ir_expr, g)->op == OP_GE) x->mark = BEGINS_INSIDE;
  }
  bool is_possible = stage->kind == STAGE_STORE;
  stage->guards = list_copy(n->arena, &stage->guards);
  for (uint32_t g = 0; g < stage->guards.count; g++) stage->guards.at[g] = guard_of_quotient(n, stage, stage->guards.at[g]);
  for (uint32_t i = 0; i < stage->derived.count; i++) { // in order: each is made of the ones before
    struct ir_stmt *let = stage->derived.at[i];
    bool is_made_of_one = mentions_marked(let->value, BEGINS_INSIDE), is_asked = false;
    for (uint32_t g = 0; g < stage->guards.count && is_made_of_one; g++) is_asked |= ir_mentions(stage->guards.at[g], let->var);
    if (is_made_of_one) let->var->mark = is_asked ? BEGINS_INSIDE : WAITS;
    is_possible &= !is_asked || !(divides(let->value) || mentions_marked(let->value, WAITS));
    list_push(n->arena, is_made_of_one && !is_asked ? &deferred : &kept, let);
  }
  for (uint32_t i = 0; i < stage->derived.count; i++) list_at(&stage->derived, struct ir_stmt, i)->var->mark = 0;
  if (!deferred.count) return;
  if (is_possible) {
    list_append(n->arena, &deferred, &stage->lets);
    stage->derived = kept;
    stage->lets = deferred;
    return;
  }
  for (uint32_t g = 0; g < stage->guards.count; g++) { // a guard asks one of them: they are made of what is in its range anyway
    const struct ir_expr *guard = stage->guards.at[g];
    struct ir_var *x = guarded_var(guard);
    if (!x || !starts_inside(stage, x)) continue;
    struct ir_expr *whole = x->subst ? x->subst : ir_ref(n->arena, x), *last = guard->op == OP_LT ? ir_binary(n->arena, OP_SUB, guard->args[1], nest_int(n, 1)) : NULL;
    x->subst = last ? ir_binary(n->arena, OP_MIN, whole, last) : ir_binary(n->arena, OP_MAX, whole, nest_int(n, 0));
  }
  stage->derived = list_copy(n->arena, &stage->derived);
  for (uint32_t i = 0; i < stage->derived.count; i++) {
    struct ir_stmt *let = stage->derived.at[i];
    stage->derived.at[i] = ir_let(n->arena, let->var, nest_here(n, let->value), let->range);
  }
  for (uint32_t g = 0; g < stage->guards.count; g++) {
    struct ir_var *x = guarded_var(stage->guards.at[g]);
    if (x) x->subst = NULL;
  }
}

// x in what is known here and in axes of vectors: the other derived axes as what they stand for.
static struct ir_expr *in_vectors(struct nest *n, const struct ir_stage *stage, struct ir_var *x) {
  struct ir_expr *e = ir_ref(n->arena, x);
  for (uint32_t i = stage->derived.count; i-- > 0;) {
    struct ir_stmt *let = stage->derived.at[i];
    if (let->var->subst) continue;
    let->var->subst = let->value;
    e = ir_substitute(n->arena, e);
    let->var->subst = NULL;
  }
  return e;
}

// e = step * var + what does not mention it, as it is written.
static bool step_of(const struct ir_expr *e, const struct ir_var *var, int64_t *step) {
  int64_t a, b;
  *step = 0;
  if (!ir_mentions(e, var)) return true;
  if (e->op == OP_VAR) return *step = 1, true;
  if (e->op == OP_ADD || e->op == OP_SUB)
    return step_of(e->args[0], var, &a) && step_of(e->args[1], var, &b) && !(e->op == OP_ADD ? __builtin_add_overflow(a, b, step) : __builtin_sub_overflow(a, b, step));
  if (e->op == OP_MUL && ir_is_const(e->args[1])) return step_of(e->args[0], var, &a) && !__builtin_mul_overflow(a, e->args[1]->integer, step);
  return false;
}

// Finds x = first + steps * vectors, and how far the last element of a vector lies behind its first. *first is said with what is known here.
static bool take_apart(struct nest *n, const struct work *w, uint32_t depth, struct ir_var *x, struct ir_expr **first, struct ir_expr **steps, int64_t *reach) {
  struct ir_expr *place = in_vectors(n, w->stage, x);
  *steps = nest_int(n, 0);
  *reach = 0;
  for (uint32_t d = depth; d < w->loops.count; d++) {
    struct ir_axis *axis = list_at(&w->loops, struct ir_stage_axis, d)->axis;
    int64_t step;
    if (!step_of(place, axis->var, &step) || step < 0 || step > INT32_MAX) {
      for (uint32_t k = depth; k < d; k++) list_at(&w->loops, struct ir_stage_axis, k)->axis->var->subst = NULL;
      return false;
    }
    *steps = ir_binary(n->arena, OP_ADD, *steps, ir_binary(n->arena, OP_MUL, ir_ref(n->arena, axis->var), nest_int(n, step)));
    *reach += step * (axis->extent->integer - 1);
    axis->var->subst = nest_int(n, 0);
  }
  *first = nest_here(n, place);
  for (uint32_t d = depth; d < w->loops.count; d++) list_at(&w->loops, struct ir_stage_axis, d)->axis->var->subst = NULL;
  return true;
}

// The x of a guard x < E where x may begin inside a piece and E is the same inside vectors, as guard_of_quotient makes it; NULL where it is another.
static struct ir_var *var_below_same(struct arena *arena, const struct ir_stage *stage, const struct ir_expr *guard) {
  if (guard->op != OP_LT || guard->args[0]->op != OP_VAR || !starts_inside(stage, guard->args[0]->var)) return NULL;
  return is_same_in_vectors(arena, stage, guard->args[1]) ? guard->args[0]->var : NULL;
}

struct ir_stmt *nest_test_vectors(struct nest *n, struct work *w, uint32_t depth, struct list *out, struct ir_stage *whole) {
  bool is_taken = w->stage->kind == STAGE_REDUCE ? w->first_reduction < depth : w->stage->mem->space != SPACE_LOCAL; // its accumulators are declared outside
  if (n->entry->is_general || n->in_parts || !is_taken) return NULL;
  for (uint32_t d = depth; d < w->loops.count; d++)
    if (list_at(&w->loops, struct ir_stage_axis, d)->axis->bind != BIND_VECTOR) return NULL;
  struct list kept = {0};
  struct ir_expr *condition = ir_int(n->arena, TYPE_BOOL, 1);
  struct ir_expr **firsts = arena_array(n->arena, struct ir_expr *, w->stage->derived.count + 1);
  *whole = *w->stage;
  whole->derived = list_copy(n->arena, &whole->derived);
  for (uint32_t g = 0; g < w->stage->guards.count; g++) {
    struct ir_expr *guard = w->stage->guards.at[g], *first, *steps;
    struct ir_var *x = g < w->guards_done ? NULL : guarded_var(guard) ? guarded_var(guard) : var_below_same(n->arena, w->stage, guard);
    uint32_t place = x ? place_of_let(w->stage, x) : UINT32_MAX;
    int64_t reach;
    if (place == UINT32_MAX || x->subst || !take_apart(n, w, depth, x, &first, &steps, &reach) || !reach) {
      list_push(n->arena, &kept, guard);
      continue;
    }
    if (!firsts[place]) { // the first guard of this x
      struct ir_var *var = nest_new_let(n, x->label, TYPE_INDEX), *known = nest_new_let(n, x->label, TYPE_INDEX);
      nest_emit_let(n, out, var, first, w->stage->range);
      firsts[place] = known->subst = ir_ref(n->arena, var); // known here, as other lets are
      whole->derived.at[place] = ir_let(n->arena, x, ir_binary(n->arena, OP_ADD, ir_ref(n->arena, known), steps), w->stage->range);
    }
    struct ir_expr *test = guard->op == OP_GE ? ir_binary(n->arena, OP_GE, firsts[place], nest_int(n, 0))
                                              : ir_binary(n->arena, OP_LT, firsts[place], ir_binary(n->arena, OP_SUB, nest_here(n, guard->args[1]), nest_int(n, reach)));
    condition = ir_binary(n->arena, OP_AND, condition, test);
  }
  if (ir_is_const(condition)) return NULL;
  whole->guards = kept;
  struct ir_stmt *test = ir_stmt(n->arena, IR_IF, w->stage->range);
  test->value = condition;
  list_push(n->arena, out, test);
  return test;
}

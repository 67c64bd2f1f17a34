// The guards of a stage, in the order in which they are asked.
#include "passes/nest.h"
#include "passes/stage.h"

static void find_load(struct ir_expr *e, void *state) {
  if (e->op == OP_LOAD || e->op == OP_LOAD_FLAT || (e->op == OP_VAR && e->var->kind == VAR_VALUE)) *(bool *)state = true;
}

bool nest_reads_idle(struct nest *n, const struct work *w, struct ir_expr *guard) {
  bool reads = false;
  if (w->is_active) return false;
  ir_visit_expr(guard, find_load, &reads);
  return reads && !ir_const_is(nest_active(n, w->stage), 1);
}

// At which depth a guard is known: the number of loops around it that it needs; behind all loops where it reads memory.
static uint32_t guard_depth(struct nest *n, const struct work *w, struct ir_expr *guard) {
  bool reads = false;
  guard = stage_in_leaves(n->arena, w->stage, guard);
  ir_visit_expr(guard, find_load, &reads);
  if (reads) return w->loops.count + 1;
  for (uint32_t d = w->loops.count; d-- > 0;)
    if (ir_mentions(guard, list_at(&w->loops, struct ir_stage_axis, d)->axis->var)) return d + 1;
  return 0;
}

void nest_sort_guards(struct nest *n, struct work *w) {
  struct list sorted = {0};
  for (uint32_t depth = 0; depth <= w->loops.count + 1; depth++)
    for (uint32_t i = 0; i < w->stage->guards.count; i++)
      if (guard_depth(n, w, w->stage->guards.at[i]) == depth) list_push(n->arena, &sorted, w->stage->guards.at[i]);
  w->stage->guards = sorted;
}

// In the fast entry a guard x < E is the same for all of a vector's iterations v where x = c * v + rest, and c times the vector's length divides
// both rest and E: it is tested once, in front of the vector, whose accesses then stand side by side. That it divides E is assumed
// where it is not known; the general entry takes the other sizes. So it is where x = base + y / m, as of an axis that `fuse` made: that is below E
// where base * m + y is below E * m.
static bool divides_or_assumed(struct nest *n, struct facts *facts, int64_t factor, struct ir_expr *end) {
  struct ir_expr *by = ir_int(n->arena, TYPE_I64, factor), *wide = extent_wide(n->arena, end);
  if (prove_divides(facts, by, wide)) return true;
  if (!nest_is_of_sizes(wide)) return false;
  struct ir_expr *condition = ir_binary(n->arena, OP_EQ, ir_binary(n->arena, OP_MOD, wide, by), ir_int(n->arena, TYPE_I64, 0));
  if (ir_const_is(condition, 0)) return false;
  struct ir_requirement *assumption = arena_new(n->arena, struct ir_requirement);
  *assumption = (struct ir_requirement){condition, "a vectorised axis is not made of whole vectors", n->entry->range};
  list_push(n->arena, &n->entry->assumptions, assumption);
  facts_add_condition(facts, condition);
  return true;
}

// Of a place base + y / m, or y / m, m a positive constant: base * m + y, and *end times m. Any other place as it is.
static struct ir_expr *without_quotient(struct nest *n, struct ir_expr *place, struct ir_expr **end) {
  for (uint32_t i = 0; i < 2; i++) {
    struct ir_expr *quotient = place->op == OP_ADD ? place->args[i] : place;
    if (quotient->op != OP_DIV || !ir_is_const(quotient->args[1]) || quotient->args[1]->integer < 1) continue;
    struct ir_expr *by = quotient->args[1], *y = quotient->args[0];
    *end = ir_binary(n->arena, OP_MUL, *end, by);
    return place->op == OP_ADD ? ir_binary(n->arena, OP_ADD, ir_binary(n->arena, OP_MUL, place->args[1 - i], by), y) : y;
  }
  return place;
}

// Marks the derived axes that are made of vectors.
static void mark_vector_axes(const struct ir_stage *stage) {
  for (uint32_t i = 0; i < stage->derived.count; i++) {
    struct ir_stmt *let = stage->derived.at[i];
    let->var->mark = 0;
    for (uint32_t k = 0; k < stage->axes.count; k++) {
      const struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, k)->axis;
      if (axis->bind == BIND_VECTOR && ir_mentions(let->value, axis->var)) let->var->mark = 1;
    }
    for (uint32_t k = 0; k < i; k++) {
      const struct ir_var *var = list_at(&stage->derived, struct ir_stmt, k)->var;
      if (var->mark && ir_mentions(let->value, var)) let->var->mark = 1;
    }
  }
}

// Whether an axis may begin inside a piece: nest_vector.c asks for whole vectors then, at both ends at once.
static bool has_start(const struct ir_stage *stage) {
  for (uint32_t g = 0; g < stage->guards.count; g++) {
    const struct ir_expr *guard = stage->guards.at[g];
    if (guard->op == OP_GE && ir_const_is(guard->args[1], 0) && guard->args[0]->op == OP_VAR && guard->args[0]->var->kind == VAR_LET) return true;
  }
  return false;
}

void nest_lift_vector_guards(struct nest *n, struct ir_stage *stage) {
  struct facts facts;
  mark_vector_axes(stage);
  facts_init(&facts, n->arena);
  if (n->entry->when) facts_add_condition(&facts, n->entry->when);
  for (uint32_t i = 0; i < n->entry->assumptions.count; i++)
    facts_add_condition(&facts, list_at(&n->entry->assumptions, struct ir_requirement, i)->condition);
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, i)->axis;
    facts_add_axis(&facts, axis->var, nest_int(n, 0), extent_inner(axis->extent));
  }
  for (uint32_t i = 0; i < stage->derived.count; i++) {
    struct ir_stmt *let = stage->derived.at[i];
    facts_add_definition(&facts, let->var, let->value);
  }
  bool has_own_list = false;
  for (uint32_t g = 0; g < stage->guards.count; g++) {
    struct ir_expr *guard = stage->guards.at[g], *place, *end;
    if (guard->op != OP_LT || guard->args[0]->type != TYPE_INDEX || mentions_axis(guard->args[1]) || has_start(stage)) continue;
    place = guard->args[0], end = guard->args[1];
    for (uint32_t i = stage->derived.count; i-- > 0;) {
      struct ir_stmt *let = stage->derived.at[i];
      if (!let->var->mark) continue;
      let->var->subst = let->value;
      place = nest_here(n, place);
      let->var->subst = NULL;
    }
    struct ir_expr *whole_end = end, *whole = without_quotient(n, place, &whole_end);
    bool is_lifted = false, is_stuck = false;
    for (uint32_t i = stage->axes.count; i-- > 0;) {
      struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, i)->axis;
      struct poly coefficient, rest;
      int64_t step, factor;
      if (axis->bind != BIND_VECTOR || !poly_linear(&facts, poly_of(&facts, whole), axis->var, &coefficient, &rest)) continue;
      if (!poly_is_constant(coefficient, &step) || step < 1 || __builtin_mul_overflow(step, axis->extent->integer, &factor)) continue;
      struct ir_expr *start = poly_to_expr(&facts, rest);
      if (!start || !prove_divides(&facts, ir_int(n->arena, TYPE_I64, factor), start) || !divides_or_assumed(n, &facts, factor, whole_end)) {
        is_stuck = true;
        continue;
      }
      axis->var->subst = nest_int(n, 0);
      place = nest_here(n, place);
      whole = nest_here(n, whole);
      axis->var->subst = NULL;
      is_lifted = true;
    }
    if (!is_lifted || (is_stuck && stage->kind == STAGE_STORE)) continue; // else nest_vector.c asks for all vectors at once
    if (!has_own_list) stage->guards = list_copy(n->arena, &stage->guards);
    has_own_list = true;
    stage->guards.at[g] = ir_binary(n->arena, OP_LT, place, end);
  }
  for (uint32_t i = 0; i < stage->derived.count; i++) list_at(&stage->derived, struct ir_stmt, i)->var->mark = 0;
}

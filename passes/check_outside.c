// check, reductions outside loops: one that does not mention an enclosing axis is computed outside it, also where that axis has no iteration.
//
//   for i in n { B[i] = sum(j in m) A[0, j]; }        A: f32[n, m]
//   ->
//   stage B: reduce sum_f32, axes j reduction, operand load(A, 0, j), guard n > 0
//
// Inside the loop nothing is read where it runs not once. So where the stage's own axes do not show that what it reads is there, it asks for an iteration of the
// loops that it left; of one whose range depends on another axis, by staying inside.
#include "passes/check.h"
#include "passes/stage.h"

// What is known where an expression of a stage is evaluated.
struct place {
  struct checker *c;
  const struct ir_stage *stage;
  uint32_t guards; // of the stage, that hold there
  bool is_init;    // in front of the reduction
  bool is_safe;    // all that was read so far is there
};

static void place_facts(const struct place *p, struct facts *facts) {
  struct arena *arena = p->c->arena;
  const struct ir_stage *stage = p->stage;
  facts_init(facts, arena);
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    const struct ir_stage_axis *used = stage->axes.at[i];
    if (!(p->is_init && used->is_reduction)) facts_add_axis(facts, used->axis->var, ir_int(arena, TYPE_INDEX, 0), extent_inner(used->axis->extent));
  }
  for (uint32_t i = 0; i < stage->derived.count; i++) {
    struct ir_stmt *let = stage->derived.at[i];
    if (!(p->is_init && stage_mentions_reduction(arena, stage, let->value))) facts_add_definition(facts, let->var, let->value);
  }
  for (uint32_t i = 0; i < stage->lets.count; i++) {
    struct ir_stmt *let = stage->lets.at[i];
    if (type_is_integer(let->value->type)) facts_add_definition(facts, let->var, let->value);
  }
  for (uint32_t i = 0; i < p->guards; i++)
    if (!(p->is_init && stage_mentions_reduction(arena, stage, stage->guards.at[i]))) facts_add_condition(facts, stage->guards.at[i]);
}

static bool is_inside(struct facts *facts, struct ir_expr *index, struct ir_expr *dim) {
  struct poly low = poly_of(facts, index), above = poly_sub(facts, poly_sub(facts, poly_of(facts, dim), low), poly_constant(facts, 1));
  return prove_nonnegative(facts, low) && prove_nonnegative(facts, above);
}

static void find_unsafe(struct ir_expr *e, void *state) {
  struct place *p = state;
  if (e->op != OP_LOAD || e->mem->space != SPACE_GLOBAL) return;
  for (uint32_t d = 0; d < e->count && p->is_safe; d++) {
    struct facts facts;
    struct ir_expr *index = e->args[d];
    place_facts(p, &facts);
    struct ir_expr *dim = e->mem->dims.at[d];
    while (index->op == OP_SELECT && is_inside(&facts, index->args[2], dim)) { // under ?: an element or element 0
      facts_add_condition(&facts, index->args[0]);
      index = index->args[1];
    }
    p->is_safe = is_inside(&facts, index, dim);
  }
}

static bool reads_safely(struct checker *c, const struct ir_stage *stage) {
  struct place body = {c, stage, stage->guards.count, false, true}, init = {c, stage, stage->guards.count, true, true};
  for (uint32_t i = 0; i < stage->operands.count && body.is_safe; i++) ir_visit_expr(stage->operands.at[i], find_unsafe, &body);
  if (body.is_safe) ir_visit_block(&stage->lets, find_unsafe, &body);
  for (uint32_t i = 0; i < stage->guards.count && body.is_safe; i++) {
    body.guards = i;
    ir_visit_expr(stage->guards.at[i], find_unsafe, &body);
  }
  for (uint32_t i = 0; i < stage->init.count && body.is_safe && init.is_safe; i++) ir_visit_expr(stage->init.at[i], find_unsafe, &init);
  if (stage->init.count && body.is_safe && init.is_safe) ir_visit_block(&stage->lets, find_unsafe, &init); // some are of the initial value
  return body.is_safe && init.is_safe;
}

static bool has_axis(const struct ir_stage *stage, const struct ir_axis *axis) {
  for (uint32_t i = 0; i < stage->axes.count; i++)
    if (list_at(&stage->axes, struct ir_stage_axis, i)->axis == axis) return true;
  return false;
}

bool check_outside(struct checker *c, struct ir_stage *stage, uint32_t parallel) {
  struct list maybe_empty = {0}; // struct ir_axis, around the stage and not of it
  struct facts facts;
  facts_init(&facts, c->arena);
  stage_facts(stage, &facts);
  for (uint32_t i = 0; i < parallel; i++) {
    struct ir_axis *axis = list_at(&c->axes, struct scope_axis, i)->axis;
    if (has_axis(stage, axis) || (ir_is_const(axis->extent) && axis->extent->integer > 0)) continue;
    struct poly extent = poly_of(&facts, extent_inner(axis->extent));
    if (!prove_nonnegative(&facts, poly_sub(&facts, extent, poly_constant(&facts, 1)))) list_push(c->arena, &maybe_empty, axis);
  }
  if (!maybe_empty.count || reads_safely(c, stage)) return false;
  bool has_more_axes = false;
  for (uint32_t i = 0; i < maybe_empty.count; i++) {
    struct ir_axis *axis = maybe_empty.at[i];
    if (mentions_axis(axis->extent)) axis->var->mark = 1, has_more_axes = true;
  }
  for (uint32_t i = 0; i < maybe_empty.count && !has_more_axes; i++) {
    struct ir_axis *axis = maybe_empty.at[i];
    list_insert(c->arena, &stage->guards, i, ir_binary(c->arena, OP_GT, axis->extent, ir_int(c->arena, TYPE_INDEX, 0)));
  }
  return has_more_axes;
}

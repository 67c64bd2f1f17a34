// split x by F -> o, i;  split x into P -> o, i.
//
//   stage B: axes i, j reduction                         split j by 32 -> jo, ji
//   ->
//   stage B: axes i, jo, ji; derived j = jo * 32 + ji; guard j < m
//
// Where the factor divides the extent there is no guard. A factor made of facts about the device becomes a size of the kernel.
#include <string.h>

#include "passes/scheduler.h"
#include "passes/stage.h"

// The axes of a tensor of rank 64, fused and split again.
enum { MAX_LEVELS = 72 };

// extent(x) inside a factor: the extent of the axis of that name in the stages of `axis`.
static struct ir_expr *resolve_extent(struct arena *arena, struct ir_expr *e, void *state) {
  struct list *axes = state;
  if (e->op != OP_VAR || e->var->kind != VAR_AXIS) return e;
  for (uint32_t i = 0; i < axes->count; i++) {
    struct ir_axis *axis = axes->at[i];
    if (strcmp(axis->var->label, e->var->label) == 0) return ir_cast(arena, e->type, axis->extent);
  }
  return e;
}

static void schedule_facts(struct scheduler *s, struct facts *facts) {
  facts_init(facts, s->arena);
  if (s->entry->when) facts_add_condition(facts, s->entry->when);
  for (uint32_t i = 0; i < s->entry->assumptions.count; i++)
    facts_add_condition(facts, list_at(&s->entry->assumptions, struct ir_requirement, i)->condition);
}

// Whether a later directive vectorises the axis of this name.
static bool is_vectorized(struct scheduler *s, const struct ir_directive *directive, const char *label) {
  bool is_later = false;
  for (uint32_t i = 0; i < s->entry->directives.count; i++) {
    struct ir_directive *other = s->entry->directives.at[i];
    for (uint32_t k = 0; is_later && other->kind == DIRECTIVE_VECTORIZE && k < other->axes.count; k++)
      if (strcmp(other->axes.at[k], label) == 0) return true;
    if (other == directive) is_later = true;
  }
  return false;
}

static void assume(struct scheduler *s, struct ir_expr *condition, const char *message, struct range range) {
  struct ir_requirement *assumption = arena_new(s->arena, struct ir_requirement);
  assumption->condition = condition;
  assumption->message = message;
  assumption->range = range;
  list_push(s->arena, &s->entry->assumptions, assumption);
}

static void assume_divides(struct scheduler *s, struct ir_expr *extent, struct ir_expr *factor, struct range range) {
  struct ir_expr *rest = ir_binary(s->arena, OP_MOD, ir_cast(s->arena, TYPE_I64, extent), ir_cast(s->arena, TYPE_I64, factor));
  assume(s, ir_binary(s->arena, OP_EQ, rest, ir_int(s->arena, TYPE_I64, 0)), "a vectorised axis is not made of whole vectors", range);
}

static void find_device_fact(struct ir_expr *e, void *state) {
  *(bool *)state |= e->op == OP_SMS || e->op == OP_ARCH || e->op == OP_SHARED_LIMIT;
}

static struct ir_expr *as_i64(struct arena *arena, struct ir_expr *e, void *state) {
  (void)state;
  if (e->type != TYPE_INDEX) return e;
  if (e->op == OP_CONST) return ir_int(arena, TYPE_I64, e->integer);
  if (e->op == OP_CAST) return ir_cast(arena, TYPE_I64, e->args[0]);
  return ir_make(arena, e->op, TYPE_I64, e->args, e->count);
}

// A factor made of facts about the device is computed at launch: it becomes a size of the kernel.
static struct ir_expr *as_launch_value(struct scheduler *s, struct ir_expr *factor, const char *label, struct range range) {
  bool has_fact = false;
  ir_visit_expr(factor, find_device_fact, &has_fact);
  if (!has_fact) return factor;
  struct ir_expr *value = ir_cast(s->arena, TYPE_I64, ir_rewrite_expr(s->arena, factor, as_i64, NULL));
  struct ir_var *size = NULL;
  for (uint32_t i = 0; i < s->kernel->sizes.count && !size; i++) {
    struct ir_var *other = s->kernel->sizes.at[i];
    if (other->inferred && ir_equal(other->inferred, value)) size = other;
  }
  if (!size) {
    size = ir_new_var(s->kernel, VAR_SIZE, TYPE_I64, arena_printf(s->arena, "%s_parts", label));
    size->range = range;
    size->inferred = value;
    list_push(s->arena, &s->kernel->sizes, size);
  }
  return ir_cast(s->arena, TYPE_INDEX, ir_ref(s->arena, size));
}

struct copy_read {
  const struct ir_var *var;
  bool is_found;
};

static void find_copy_read(struct ir_expr *e, void *state) {
  struct copy_read *read = state;
  read->is_found |= e->op == OP_LOAD && e->mem->space != SPACE_GLOBAL && ir_mentions(e, read->var);
}

// Whether the stage reads what was copied or kept over an axis.
static bool reads_copy(const struct ir_stage *stage, const struct ir_axis *axis) {
  struct copy_read read = {axis->var, false};
  for (uint32_t i = 0; i < stage->operands.count; i++) ir_visit_expr(stage->operands.at[i], find_copy_read, &read);
  ir_visit_block(&stage->lets, find_copy_read, &read);
  if (stage->value) ir_visit_expr(stage->value, find_copy_read, &read);
  return read.is_found;
}

// Puts the let of an axis that is now pieces in front of those that are made of it. Its pieces may be as long as another axis says that is a let itself:
// lets stand behind what they mention.
static void put_derived(struct scheduler *s, struct ir_stage *stage, struct ir_stmt *derived) {
  struct list *lets = &stage->derived;
  list_insert(s->arena, lets, 0, derived);
  for (uint32_t k = 0; k < lets->count;) {
    struct ir_stmt *let = lets->at[k];
    uint32_t last = k;
    for (uint32_t m = k + 1; m < lets->count; m++)
      if (ir_mentions(let->value, list_at(lets, struct ir_stmt, m)->var)) last = m;
    if (last == k) {
      k++;
      continue;
    }
    list_remove(lets, k);
    list_insert(s->arena, lets, last, let);
  }
}

static bool split_axis(struct scheduler *s, const struct ir_directive *directive, struct ir_axis *axis, struct range range) {
  struct arena *arena = s->arena;
  if (!scheduler_is_free(s, axis, range)) return false;
  struct ir_expr *extent = axis->extent, *factor = ir_rewrite_expr(arena, directive->factor, resolve_extent, &s->entry->axes);
  bool is_unresolved = mentions_axis(factor);
  if (is_unresolved) {
    diag_error(s->diag, ERROR_SPLIT, directive->range, "the factor asks for the extent of an axis that is not there, or that depends on another axis");
    return false;
  }
  factor = as_launch_value(s, factor, directive->names.at[0], directive->range);
  struct ir_expr *one = ir_int(arena, TYPE_INDEX, 1), *inner, *outer, *parts = factor;
  if (directive->kind == DIRECTIVE_SPLIT_INTO) {
    parts = ir_binary(arena, OP_MAX, factor, one);
    inner = ir_binary(arena, OP_DIV, ir_binary(arena, OP_ADD, extent, ir_binary(arena, OP_SUB, parts, one)), parts);
    outer = parts;
  } else {
    inner = factor;
    outer = ir_binary(arena, OP_DIV, ir_binary(arena, OP_ADD, extent, ir_binary(arena, OP_SUB, factor, one)), factor);
  }
  for (uint32_t k = 0; k < s->entry->stages.count; k++) {
    const struct ir_stage *stage = s->entry->stages.at[k];
    if (stage->derived.count < MAX_LEVELS || scheduler_place(stage, axis) == UINT32_MAX) continue;
    diag_error(s->diag, ERROR_TOO_LARGE, directive->range, "the axes of stage '%s' are split and fused %u times; at most %d are legal", stage->label, stage->derived.count + 1, MAX_LEVELS);
    diag_note(s->diag, (struct range){0}, "one split by a larger factor takes the place of several in each other");
    return false;
  }
  struct facts facts;
  struct ir_expr *shift = NULL;
  if (directive->names.count > 2) { // along a tensor: the first piece may begin before the axis
    int64_t most;
    if (!schedule_along(s->context, s->kernel, s->entry, directive, axis, factor, &shift, &most)) return false;
    if (ir_const_is(shift, 0)) shift = NULL; // an ordinary split
    else outer = ir_binary(arena, OP_DIV, ir_binary(arena, OP_ADD, extent, ir_int(arena, TYPE_INDEX, most + factor->integer - 1)), factor);
  }
  schedule_facts(s, &facts);
  if (directive->kind == DIRECTIVE_SPLIT_BY && !prove_nonnegative(&facts, poly_sub(&facts, poly_of(&facts, factor), poly_constant(&facts, 1))))
    assume(s, ir_binary(arena, OP_GE, ir_cast(arena, TYPE_I64, factor), ir_int(arena, TYPE_I64, 1)), "the factor of a split is below 1", directive->range);
  bool divides = !shift && prove_divides(&facts, parts, extent), is_exact = divides || (!shift && axis->is_guarded);
  if (!is_exact && !shift && !s->entry->is_general && !mentions_axis(extent) && is_vectorized(s, directive, directive->names.at[1])) {
    assume_divides(s, extent, parts, directive->range); // whole vectors; the general entry takes the other sizes
    is_exact = true;
  }
  if (is_exact && !axis->is_guarded && directive->kind == DIRECTIVE_SPLIT_BY) outer = ir_binary(arena, OP_DIV, extent, factor);
  struct ir_axis *o = scheduler_new_axis(s, directive->names.at[0], outer, directive->range);
  struct ir_axis *i = scheduler_new_axis(s, directive->names.at[1], inner, directive->range);
  o->is_guarded = !is_exact || axis->is_guarded;
  axis->var->kind = VAR_LET;
  struct ir_expr *whole = ir_binary(arena, OP_ADD, ir_binary(arena, OP_MUL, ir_ref(arena, o->var), inner), ir_ref(arena, i->var));
  if (shift) whole = ir_binary(arena, OP_SUB, whole, shift);
  struct ir_stmt *derived = ir_let(arena, axis->var, whole, axis->range);
  bool has_start = shift != NULL;
  struct ir_expr *guard = ir_binary(arena, OP_LT, ir_ref(arena, axis->var), extent);
  for (uint32_t k = 0; k < s->entry->stages.count; k++) {
    struct ir_stage *stage = s->entry->stages.at[k];
    uint32_t place = scheduler_place(stage, axis);
    if (place == UINT32_MAX) continue;
    bool is_reduction = list_at(&stage->axes, struct ir_stage_axis, place)->is_reduction;
    list_remove(&stage->axes, place);
    scheduler_put_axis(s, stage, place, i, is_reduction);
    scheduler_put_axis(s, stage, place, o, is_reduction);
    put_derived(s, stage, derived);
    // a copy is as large as this axis says: its places are proved by that, not by the guard of what the axis is a piece of
    if (!is_exact || (!divides && reads_copy(stage, axis))) list_insert(arena, &stage->guards, 0, guard);
    if (has_start) list_insert(arena, &stage->guards, 0, ir_binary(arena, OP_GE, ir_ref(arena, axis->var), ir_int(arena, TYPE_INDEX, 0)));
  }
  scheduler_retire(s, axis, "split", directive->range);
  return true;
}

bool scheduler_split(struct scheduler *s, const struct ir_directive *directive) {
  struct list axes = {0};
  if (!scheduler_find_axes(s, directive, 0, &axes)) return false;
  const char *outer = directive->names.at[0], *inner = directive->names.at[1];
  if (strcmp(outer, inner) == 0) {
    diag_error(s->diag, ERROR_DUPLICATE_NAME, directive->range, "both pieces are named '%s'", outer);
    return false;
  }
  if (!scheduler_name_is_new(s, outer, directive->range) || !scheduler_name_is_new(s, inner, directive->range)) return false;
  for (uint32_t i = 0; i < axes.count; i++)
    if (!split_axis(s, directive, axes.at[i], *list_at(&directive->axis_places, struct range, 0))) return false;
  return true;
}

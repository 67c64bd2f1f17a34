// schedule: applies directives to the axes of stages.
//
//   stage B: axes i parallel, j reduction         split j by 32 -> jo, ji;  bind i -> block.x;  bind ji -> thread.x;
//   ->
//   stage B: axes i (block.x), jo, ji (thread.x); derived j = jo * 32 + ji; guard j < m
//
// Requires stages as `check` left them. Applies the directives in order, each to the names that the earlier ones left; an entry
// without a schedule gets the compiler's own directives first. Breaks nothing: stages stay stages. A directive that is not
// legal is an error that says where the axis was used and what would be legal.
#include <string.h>

#include "passes/rescale.h"
#include "passes/scheduler.h"
#include "passes/stage.h"

enum { MANY_COPIES = 32, MAX_COPIES = 2048, MAX_OPERATIONS = 100000 };

static void count_operation(struct ir_expr *e, void *state) {
  (void)e;
  ++*(int64_t *)state;
}

// What a stage's body evaluates.
static int64_t operations_of(const struct ir_stage *stage) {
  int64_t operations = 0;
  ir_visit_block(&stage->lets, count_operation, &operations);
  if (stage->value) ir_visit_expr(stage->value, count_operation, &operations);
  for (uint32_t i = 0; i < stage->operands.count; i++) ir_visit_expr(stage->operands.at[i], count_operation, &operations);
  for (uint32_t i = 0; i < stage->guards.count; i++) ir_visit_expr(stage->guards.at[i], count_operation, &operations);
  return operations;
}

// Each stage's body in how many copies? Loops unrolled whole multiply. Where a schedule asks for many, the backend adds none of its own.
static bool check_unrolling(struct scheduler *s) {
  int64_t operations = 0;
  for (uint32_t n = 0; n < s->entry->stages.count; n++) {
    struct ir_stage *stage = s->entry->stages.at[n];
    int64_t copies = 1;
    for (uint32_t k = 0; k < stage->axes.count; k++) {
      struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, k)->axis;
      bool is_whole = axis->bind == BIND_VECTOR || (axis->bind == BIND_SERIAL && axis->unroll == UINT32_MAX);
      if (is_whole && ir_is_const(axis->extent)) copies *= axis->extent->integer;
      else if (axis->bind == BIND_SERIAL && axis->unroll && axis->unroll != UINT32_MAX) copies *= axis->unroll;
      if (copies <= MAX_COPIES) continue;
      diag_error(s->diag, ERROR_EXTENT, axis->bound_at, "stage '%s' would have %lld copies of its body, unrolled with '%s'; at most %d are legal", stage->label,
                 (long long)copies, axis->var->label, MAX_COPIES);
      axis_note(s->diag, axis);
      diag_note(s->diag, (struct range){0}, "legal here: unroll %s by a smaller factor, or a split outside it", axis->var->label);
      return false;
    }
    if (copies > 1) operations += copies * operations_of(stage);
    if (operations > MAX_OPERATIONS) {
      diag_error(s->diag, ERROR_TOO_LARGE, stage->range, "with stage '%s' the schedule makes %lld operations of loops unrolled whole; at most %d are legal", stage->label,
                 (long long)operations, MAX_OPERATIONS);
      diag_note(s->diag, (struct range){0}, "legal here: unroll x by a small factor, vectors of fewer elements");
      return false;
    }
    for (uint32_t k = 0; k < stage->axes.count && copies > MANY_COPIES; k++) {
      struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, k)->axis;
      if (axis->bind == BIND_SERIAL && !axis->unroll) axis->unroll = 1;
    }
  }
  return true;
}

static bool apply_cache(struct scheduler *s, const struct ir_directive *directive) {
  struct ir_hint *hint = arena_new(s->arena, struct ir_hint);
  hint->hint = directive->hint;
  for (uint32_t i = 0; i < s->kernel->tensors.count; i++)
    if (strcmp(list_at(&s->kernel->tensors, struct ir_mem, i)->name, directive->names.at[0]) == 0) hint->mem = s->kernel->tensors.at[i];
  if (hint->mem && ir_hint_of(s->entry, hint->mem) == CACHE_NORMAL) {
    list_push(s->arena, &s->entry->hints, hint);
    return true;
  }
  diag_error(s->diag, ERROR_DIRECTIVE, directive->range, hint->mem ? "'%s' has a hint already" : "no tensor is named '%s'", (const char *)directive->names.at[0]);
  return false;
}

static bool apply_blocks(struct scheduler *s, const struct ir_directive *directive) {
  enum { MOST = 32 };
  bool is_legal = ir_is_const(directive->factor) && directive->factor->integer <= MOST;
  if (is_legal && !s->entry->blocks) {
    s->entry->blocks = (uint32_t)directive->factor->integer;
    return true;
  }
  if (is_legal) diag_error(s->diag, ERROR_DIRECTIVE, directive->range, "'blocks' is given twice");
  else diag_error(s->diag, ERROR_EXTENT, directive->range, "'blocks' takes a constant from 1 to %d", MOST);
  return false;
}

bool scheduler_apply(struct scheduler *s, const struct ir_directive *directive) {
  switch (directive->kind) {
  case DIRECTIVE_SPLIT_BY: case DIRECTIVE_SPLIT_INTO: return scheduler_split(s, directive);
  case DIRECTIVE_FUSE: return scheduler_fuse(s, directive);
  case DIRECTIVE_REORDER: return scheduler_reorder(s, directive);
  case DIRECTIVE_BIND: return scheduler_bind(s, directive);
  case DIRECTIVE_UNROLL: return scheduler_unroll(s, directive);
  case DIRECTIVE_ALLREDUCE: return scheduler_allreduce(s, directive);
  case DIRECTIVE_VECTORIZE: return scheduler_vectorize(s, directive);
  case DIRECTIVE_COMBINE: return scheduler_combine(s, directive);
  case DIRECTIVE_CACHE: return apply_cache(s, directive);
  case DIRECTIVE_BLOCKS: return apply_blocks(s, directive);
  case DIRECTIVE_JOIN: return schedule_join(s->context, s->kernel, s->entry, directive);
  case DIRECTIVE_REGISTERS: return schedule_registers(s->context, s->kernel, s->entry, directive);
  case DIRECTIVE_SHARED: return schedule_shared(s->context, s->kernel, s->entry, directive);
  case DIRECTIVE_COUNT: break;
  }
  return false;
}

// Extents that the entry's condition makes constants: `when m == 2`.
static void fix_extents(struct scheduler *s, const struct ir_expr *condition) {
  if (condition->op == OP_AND && condition->type == TYPE_BOOL) {
    fix_extents(s, condition->args[0]);
    fix_extents(s, condition->args[1]);
  }
  if (condition->op != OP_EQ) return;
  bool is_turned = ir_is_const(condition->args[0]);
  struct ir_expr *size = condition->args[is_turned], *value = condition->args[!is_turned];
  if (size->op != OP_VAR || size->var->kind != VAR_SIZE || !ir_is_const(value)) return;
  size->var->subst = value;
  for (uint32_t i = 0; i < s->entry->axes.count; i++) {
    struct ir_axis *axis = s->entry->axes.at[i];
    axis->extent = ir_substitute(s->arena, axis->extent);
  }
  size->var->subst = NULL;
}

bool pass_schedule(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry) {
  struct scheduler s = {.context = context, .arena = context->arena, .diag = context->diag, .kernel = kernel, .entry = entry};
  if (entry->is_automatic) schedule_automatically(context, kernel, entry);
  if (entry->when) fix_extents(&s, entry->when);
  rescale_distances(context, entry);
  bool good = true;
  for (uint32_t i = 0; i < entry->directives.count && good; i++) {
    good = scheduler_apply(&s, entry->directives.at[i]);
    if (!good) scheduler_note_directive(&s, entry->directives.at[i]);
  }
  for (uint32_t i = 0; i < entry->directives.count; i++) {
    enum ir_directive_kind kind = list_at(&entry->directives, struct ir_directive, i)->kind;
    entry->has_copies |= kind == DIRECTIVE_SHARED || kind == DIRECTIVE_REGISTERS;
  }
  entry->directives.count = 0;
  return good && schedule_check_copies(context, entry) && scheduler_deal_copies(&s) && check_unrolling(&s);
}

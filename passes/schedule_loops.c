// reorder, bind, unroll, vectorize: the order of a stage's axes, and what each of them is.
#include "passes/scheduler.h"
#include "passes/stage.h"

// Whether the reduction axes of a stage stand in another order than before.
static bool changes_reductions(const struct ir_stage *stage, const struct list *before) {
  uint32_t next = 0;
  for (uint32_t i = 0; i < before->count; i++) {
    const struct ir_stage_axis *axis = before->at[i];
    if (!axis->is_reduction) continue;
    while (!list_at(&stage->axes, struct ir_stage_axis, next)->is_reduction) next++;
    if (stage->axes.at[next++] != axis) return true;
  }
  return false;
}

bool scheduler_reorder(struct scheduler *s, const struct ir_directive *directive) {
  uint32_t count = directive->axes.count;
  for (uint32_t i = 0; i < count; i++) {
    struct list axes = {0};
    if (!scheduler_find_axes(s, directive, i, &axes)) return false;
  }
  if (!scheduler_names_differ(s, directive)) return false;
  bool has_all = false;
  for (uint32_t n = 0; n < s->entry->stages.count; n++) {
    struct ir_stage *stage = s->entry->stages.at[n];
    struct list order = {0};
    for (uint32_t i = 0; i < count; i++) {
      const char *stage_name = directive->stages.at[i];
      struct ir_axis *axis = scheduler_axis_in_stage(stage, directive->axes.at[i]);
      if (axis && (!*stage_name || stage_is_named(stage, stage_name)))
        list_push(s->arena, &order, stage->axes.at[scheduler_place(stage, axis)]);
    }
    has_all |= order.count == count;
    uint32_t next = 0;
    struct list before = list_copy(s->arena, &stage->axes);
    for (uint32_t p = 0; p < stage->axes.count; p++)
      if (scheduler_has(&order, before.at[p])) stage->axes.at[p] = order.at[next++];
    if (stage->kind == STAGE_REDUCE && stage->reducer->is_ordered && changes_reductions(stage, &before)) {
      diag_error(s->diag, ERROR_DIRECTIVE, directive->range, "stage '%s' is an ordered reduction: its reduction axes keep their order", stage->label);
      return false;
    }
    for (uint32_t p = 0; p < stage->axes.count; p++) { // a range must follow the axes that it mentions
      struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, p)->axis;
      for (uint32_t q = p + 1; q < stage->axes.count; q++) {
        struct ir_axis *later = list_at(&stage->axes, struct ir_stage_axis, q)->axis;
        if (!ir_mentions(stage_in_leaves(s->arena, stage, axis->extent), later->var)) continue;
        diag_error(s->diag, ERROR_DIRECTIVE, directive->range, "axis '%s' has a range that depends on '%s' and must stay inside it", axis->var->label, later->var->label);
        return false;
      }
    }
  }
  if (!has_all) {
    diag_error(s->diag, ERROR_DIRECTIVE, directive->range, "no stage has all of these axes");
    scheduler_note_legal(s, "");
  }
  return has_all;
}

static bool bind_axis(struct scheduler *s, const struct ir_directive *directive, struct ir_axis *axis, struct range range) {
  enum ir_bind bind = directive->bind;
  if (!scheduler_is_free(s, axis, range)) return false;
  bool is_thread = bind >= BIND_THREAD_X;
  if (mentions_axis(axis->extent)) {
    diag_error(s->diag, ERROR_BIND, directive->range, "axis '%s' has a range that depends on another axis and cannot be bound to %s", axis->var->label, bind_name(bind));
    if (is_thread) diag_note(s->diag, (struct range){0}, "split it by a constant and bind the inner piece: split %s by 32 -> %so, %si;", axis->var->label, axis->var->label, axis->var->label);
    else diag_note(s->diag, (struct range){0}, "leave it serial, or split it by a constant and bind the inner piece to threads");
    return false;
  }
  if (is_thread && !ir_is_const(axis->extent)) {
    const struct ir_expr *size = axis->extent;
    while (size->op == OP_CAST) size = size->args[0];
    if (size->op == OP_VAR)
      diag_error(s->diag, ERROR_EXTENT, directive->range, "axis '%s' has extent '%s', unknown at compile time, and is bound to %s", axis->var->label, size->var->label, bind_name(bind));
    else
      diag_error(s->diag, ERROR_EXTENT, directive->range, "axis '%s' has an extent unknown at compile time and is bound to %s", axis->var->label, bind_name(bind));
    if (size->op == OP_VAR)
      diag_note(s->diag, (struct range){0}, "fix it with -D %s=..., or split it: split %s by 32 -> %so, %si;", size->var->label, axis->var->label, axis->var->label, axis->var->label);
    else
      diag_note(s->diag, (struct range){0}, "fix its sizes with -D, or split it: split %s by 32 -> %so, %si;", axis->var->label, axis->var->label, axis->var->label);
    return false;
  }
  if (is_thread && (axis->extent->integer > SCHEDULER_MAX_THREADS || (bind == BIND_THREAD_Z && axis->extent->integer > SCHEDULER_MAX_THREADS_Z))) {
    diag_error(s->diag, ERROR_BLOCK_SIZE, directive->range, "axis '%s' has extent %lld, and %s has at most %d threads", axis->var->label, (long long)axis->extent->integer,
               bind_name(bind), bind == BIND_THREAD_Z ? SCHEDULER_MAX_THREADS_Z : SCHEDULER_MAX_THREADS);
    diag_note(s->diag, (struct range){0}, "split it: split %s by %d -> %so, %si;", axis->var->label, bind == BIND_THREAD_Z ? 64 : 256, axis->var->label, axis->var->label);
    return false;
  }
  for (uint32_t n = 0; n < s->entry->stages.count; n++) {
    struct ir_stage *stage = s->entry->stages.at[n];
    uint32_t place = scheduler_place(stage, axis);
    if (place == UINT32_MAX) continue;
    for (uint32_t k = 0; k < stage->axes.count; k++) {
      struct ir_axis *other = list_at(&stage->axes, struct ir_stage_axis, k)->axis;
      if (other->bind != bind) continue;
      diag_error(s->diag, ERROR_BIND, directive->range, "axis '%s' and axis '%s' of stage '%s' would both be bound to %s", axis->var->label, other->var->label, stage->label, bind_name(bind));
      diag_note(s->diag, other->bound_at, "'%s' is bound here", other->var->label);
      return false;
    }
  }
  axis->bind = bind;
  axis->bound_at = directive->range;
  return true;
}

bool scheduler_bind(struct scheduler *s, const struct ir_directive *directive) {
  struct list axes = {0};
  if (!scheduler_find_axes(s, directive, 0, &axes)) return false;
  for (uint32_t i = 0; i < axes.count; i++)
    if (!bind_axis(s, directive, axes.at[i], *list_at(&directive->axis_places, struct range, 0))) return false;
  return true;
}

bool scheduler_unroll(struct scheduler *s, const struct ir_directive *directive) {
  struct list axes = {0};
  bool is_good;
  if (scheduler_unrolls_combine(s, directive, &is_good)) return is_good;
  if (!scheduler_find_axes(s, directive, 0, &axes)) return false;
  for (uint32_t i = 0; i < axes.count; i++) {
    struct ir_axis *axis = axes.at[i];
    if (!scheduler_is_free(s, axis, *list_at(&directive->axis_places, struct range, 0))) return false;
    if (!directive->factor && !ir_is_const(axis->extent) && !schedule_bound_extent(s->context, s->entry, axis)) {
      diag_error(s->diag, ERROR_EXTENT, directive->range, "axis '%s' is unrolled whole and its extent is not constant", axis->var->label);
      diag_note(s->diag, (struct range){0}, "give a factor: unroll %s by 4; or split it first", axis->var->label);
      return false;
    }
    if (!directive->factor && axis->extent->integer > SCHEDULER_MAX_UNROLL) {
      diag_error(s->diag, ERROR_EXTENT, directive->range, "axis '%s' is unrolled whole and has %lld iterations; at most %d are legal", axis->var->label,
                 (long long)axis->extent->integer, SCHEDULER_MAX_UNROLL);
      diag_note(s->diag, (struct range){0}, "give a factor: unroll %s by 4; or split it first", axis->var->label);
      return false;
    }
    if (directive->factor && (!ir_is_const(directive->factor) || directive->factor->integer > SCHEDULER_MAX_UNROLL)) {
      diag_error(s->diag, ERROR_EXTENT, directive->range, "an unroll factor is a constant from 1 to %d", SCHEDULER_MAX_UNROLL);
      return false;
    }
    axis->unroll = directive->factor ? (uint32_t)directive->factor->integer : UINT32_MAX;
    axis->bound_at = directive->range;
  }
  return true;
}

bool scheduler_vectorize(struct scheduler *s, const struct ir_directive *directive) {
  for (uint32_t n = 0; n < directive->axes.count; n++) {
    struct list axes = {0};
    struct range range = *list_at(&directive->axis_places, struct range, n);
    if (!scheduler_find_axes(s, directive, n, &axes)) return false;
    for (uint32_t i = 0; i < axes.count; i++) {
      struct ir_axis *axis = axes.at[i];
      if (!scheduler_is_free(s, axis, range)) return false;
      if (!ir_is_const(axis->extent) || axis->extent->integer > SCHEDULER_MAX_VECTOR) {
        diag_error(s->diag, ERROR_EXTENT, range, "axis '%s' is vectorised and its extent is not a constant of at most %d", axis->var->label, SCHEDULER_MAX_VECTOR);
        diag_note(s->diag, (struct range){0}, "split it first: split %s by 4 -> %so, %sv;", axis->var->label, axis->var->label, axis->var->label);
        return false;
      }
      axis->bind = BIND_VECTOR;
      axis->bound_at = directive->range;
    }
  }
  return true;
}

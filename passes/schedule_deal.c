// Copies in shared memory that no directive distributes: their elements are dealt out to the threads of the block.
#include <string.h>

#include "passes/scheduler.h"
#include "passes/stage.h"

// Whether a stage other than `stage` has the axis.
static bool is_shared_axis(const struct scheduler *s, const struct ir_stage *stage, const struct ir_axis *axis) {
  for (uint32_t n = 0; n < s->entry->stages.count; n++)
    if (s->entry->stages.at[n] != stage && scheduler_place(s->entry->stages.at[n], axis) != UINT32_MAX) return true;
  return false;
}

static const char *fresh_label(struct scheduler *s, const char *label) {
  for (uint32_t i = 0; i < s->entry->axes.count; i++)
    if (strcmp(list_at(&s->entry->axes, struct ir_axis, i)->var->label, label) == 0) return fresh_label(s, arena_printf(s->arena, "%s_", label));
  return label;
}

// A directive for the axes of one stage.
static struct ir_directive *new_directive(struct scheduler *s, const struct ir_stage *stage, enum ir_directive_kind kind, const struct list *axes) {
  struct ir_directive *directive = arena_new(s->arena, struct ir_directive);
  directive->kind = kind;
  directive->range = stage->range;
  for (uint32_t i = 0; i < axes->count; i++) {
    struct range *place = arena_new(s->arena, struct range);
    *place = stage->range;
    list_push(s->arena, &directive->stages, (void *)stage->label);
    list_push(s->arena, &directive->axes, (void *)list_at(axes, struct ir_axis, i)->var->label);
    list_push(s->arena, &directive->axis_places, place);
  }
  return directive;
}

// The axes in the order in which the tensor's dimensions mention them.
static struct list by_dimension(struct scheduler *s, const struct ir_stage *stage, const struct list *own) {
  struct list sorted = {0};
  for (uint32_t d = 0; stage->value->op == OP_LOAD && d < stage->value->count; d++) {
    const struct ir_expr *place = stage_in_leaves(s->arena, stage, stage->value->args[d]);
    for (uint32_t i = 0; i < own->count; i++)
      if (ir_mentions(place, list_at(own, struct ir_axis, i)->var) && !scheduler_has(&sorted, own->at[i])) list_push(s->arena, &sorted, own->at[i]);
  }
  return sorted.count == own->count ? sorted : *own;
}

// The threads of the block share a copy that nobody distributed: its axes are fused, and dealt out along x, then y, then z.
static bool distribute(struct scheduler *s, struct ir_stage *stage, struct list own) {
  int64_t block[3] = {1, 1, 1};
  for (uint32_t i = 0; i < s->entry->axes.count; i++) {
    struct ir_axis *axis = s->entry->axes.at[i];
    if (bind_is_thread(axis->bind) && axis->extent->integer > block[axis->bind - BIND_THREAD_X]) block[axis->bind - BIND_THREAD_X] = axis->extent->integer;
  }
  if (own.count > 1) { // neighbours in the tensor to neighbouring threads; loops whose extents a launch gives stay around
    struct list order = {0}, dealt = {0};
    own = by_dimension(s, stage, &own);
    for (uint32_t i = 0; i < own.count; i++) list_push(s->arena, ir_is_const(list_at(&own, struct ir_axis, i)->extent) ? &dealt : &order, own.at[i]);
    if (order.count && stage->mem->swizzle_bits) {
      const struct ir_axis *axis = order.at[0];
      diag_error(s->diag, ERROR_DIRECTIVE, stage->range, "the copy of '%s' is permuted, and only a launch gives the extent of its axis '%s'", stage->label, axis->var->label);
      diag_note(s->diag, axis->range, "the axis is made here; a constant factor is legal, and so is a copy without a swizzle");
      return false;
    }
    list_append(s->arena, &order, &dealt);
    if (!scheduler_apply(s, new_directive(s, stage, DIRECTIVE_REORDER, &order))) return false;
    own = dealt;
  }
  if (own.count > 1) {
    struct ir_directive *fuse = new_directive(s, stage, DIRECTIVE_FUSE, &own);
    const char *label = fresh_label(s, arena_printf(s->arena, "%s_place", stage->label));
    list_push(s->arena, &fuse->names, (void *)label);
    if (!scheduler_apply(s, fuse)) return false;
    own.count = 0;
    list_push(s->arena, &own, scheduler_axis_in_stage(stage, label));
  }
  for (uint32_t d = 0; d < 3 && own.count; d++) {
    if (block[d] == 1) continue;
    const char *outer = fresh_label(s, arena_printf(s->arena, "%s_rest", stage->label)), *inner = fresh_label(s, arena_printf(s->arena, "%s_%c", stage->label, "xyz"[d]));
    struct ir_directive *split = new_directive(s, stage, DIRECTIVE_SPLIT_BY, &own);
    split->factor = ir_int(s->arena, TYPE_INDEX, block[d]);
    list_push(s->arena, &split->names, (void *)outer);
    list_push(s->arena, &split->names, (void *)inner);
    if (!scheduler_apply(s, split)) return false;
    own.at[0] = scheduler_axis_in_stage(stage, inner);
    struct ir_directive *bind = new_directive(s, stage, DIRECTIVE_BIND, &own);
    bind->bind = (enum ir_bind)(BIND_THREAD_X + d);
    if (!scheduler_apply(s, bind)) return false;
    own.at[0] = scheduler_axis_in_stage(stage, outer);
  }
  return true;
}

// Whether each thread along the axis has elements of its own in the copy.
static bool is_of_threads(struct scheduler *s, const struct ir_stage *stage, const struct ir_axis *axis) {
  for (uint32_t i = 0; i < stage->indices.count; i++)
    if (ir_mentions(stage_in_leaves(s->arena, stage, stage->indices.at[i]), axis->var)) return true;
  return false;
}

// A copy is filled once, by threads of one block that share no axis on threads with its readers.
bool scheduler_deal_copies(struct scheduler *s) {
  for (uint32_t n = 0; n < s->entry->stages.count; n++) {
    struct ir_stage *stage = s->entry->stages.at[n];
    if (stage->kind != STAGE_STORE || stage->mem->space != SPACE_SHARED) continue;
    struct list own = {0};
    bool is_distributed = false;
    for (uint32_t i = 0; i < stage->axes.count; i++) {
      struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, i)->axis;
      bool is_own = !is_shared_axis(s, stage, axis), on_block = bind_is_block(axis->bind);
      if (is_own && on_block) {
        diag_error(s->diag, ERROR_BIND, axis->bound_at, "axis '%s' of the copy '%s' is bound to %s, and blocks share no memory", axis->var->label, stage->label, bind_name(axis->bind));
        axis_note(s->diag, axis);
        diag_note(s->diag, (struct range){0}, "legal here: bind %s -> thread.x|y|z, or a loop", axis->var->label);
        return false;
      }
      if (!is_own && bind_is_thread(axis->bind) && !is_of_threads(s, stage, axis)) {
        diag_error(s->diag, ERROR_BIND, axis->bound_at, "axis '%s' is around the copy '%s', which the block shares, and bound to %s", axis->var->label, stage->label, bind_name(axis->bind));
        diag_note(s->diag, stage->range, "the copy is made here");
        axis_note(s->diag, axis);
        diag_note(s->diag, (struct range){0}, "legal here: bind %s -> block.x|y|z, a loop, or stage ... at an axis outside it", axis->var->label);
        return false;
      }
      if (is_own) list_push(s->arena, &own, axis);
      is_distributed |= is_own && (axis->bind != BIND_SERIAL || axis->unroll);
    }
    if (!is_distributed && own.count && !distribute(s, stage, own)) return false;
  }
  return true;
}

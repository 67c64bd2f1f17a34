// allreduce, combine, unroll B.combine: how threads and blocks join their parts of a reduction.
#include <string.h>

#include "passes/scheduler.h"
#include "passes/stage.h"

// unroll B.combine by F: what combines the pieces of B that blocks left has F loads in flight a thread. Whether the directive is that; *good: whether it is legal.
bool scheduler_unrolls_combine(struct scheduler *s, const struct ir_directive *directive, bool *good) {
  const char *stage_name = directive->stages.at[0];
  struct ir_stage *found = NULL;
  *good = false;
  if (!*stage_name || strcmp(directive->axes.at[0], "combine") != 0) return false;
  for (uint32_t n = 0; n < s->entry->stages.count; n++) {
    struct ir_stage *stage = s->entry->stages.at[n];
    if (!stage_is_named(stage, stage_name)) continue;
    bool is_split = false;
    for (uint32_t k = 0; k < stage->axes.count; k++) {
      const struct ir_stage_axis *axis = stage->axes.at[k];
      if (strcmp(axis->axis->var->label, "combine") == 0) return false; // an axis of that name
      is_split |= axis->is_reduction && bind_is_block(axis->axis->bind);
    }
    if (stage->kind == STAGE_REDUCE && is_split) found = stage;
  }
  if (!found) {
    diag_error(s->diag, ERROR_DIRECTIVE, directive->range, "'%s.combine' is what combines the pieces of a reduction that blocks left, and '%s' has no reduction axis bound to blocks", stage_name, stage_name);
    diag_note(s->diag, (struct range){0}, "bind one first: bind x -> block.y;");
    return true;
  }
  if (!directive->factor || !ir_is_const(directive->factor) || directive->factor->integer < 1 || directive->factor->integer > IR_MAX_COMBINE_FLIGHT) {
    diag_error(s->diag, ERROR_EXTENT, directive->range, "'%s.combine' is unrolled by a constant from 1 to %d", stage_name, IR_MAX_COMBINE_FLIGHT);
    return true;
  }
  found->combine_flight = (uint32_t)directive->factor->integer;
  return *good = true;
}

bool scheduler_allreduce(struct scheduler *s, const struct ir_directive *directive) {
  bool found = false;
  for (uint32_t i = 0; i < directive->axes.count; i++) {
    struct list axes = {0};
    if (!scheduler_find_axes(s, directive, i, &axes)) return false;
  }
  for (uint32_t n = 0; n < s->entry->stages.count; n++) {
    struct ir_stage *stage = s->entry->stages.at[n];
    uint32_t named = 0, on_threads = 0;
    for (uint32_t k = 0; k < stage->axes.count; k++) {
      struct ir_stage_axis *axis = stage->axes.at[k];
      if (axis->is_reduction && axis->axis->bind >= BIND_THREAD_X && axis->axis->bind <= BIND_THREAD_Z) on_threads++;
      for (uint32_t i = 0; i < directive->axes.count; i++) {
        const char *stage_name = directive->stages.at[i];
        if (axis->is_reduction && strcmp(axis->axis->var->label, directive->axes.at[i]) == 0 && (!*stage_name || stage_is_named(stage, stage_name))) named++;
      }
    }
    if (named == 0) continue;
    if (named != on_threads || named != directive->axes.count) {
      if (!on_threads)
        diag_error(s->diag, ERROR_DIRECTIVE, directive->range, "'allreduce' names reduction axes bound to threads, and stage '%s' has none", stage->label);
      else
        diag_error(s->diag, ERROR_DIRECTIVE, directive->range, "'allreduce' names all reduction axes of stage '%s' that are bound to threads: it has %u, and %u %s named", stage->label, on_threads,
                   named, named == 1 ? "is" : "are");
      return false;
    }
    stage->form = directive->form;
    found = true;
  }
  if (!found) diag_error(s->diag, ERROR_DIRECTIVE, directive->range, "'allreduce' names reduction axes bound to threads");
  return found;
}

// combine x by last_block: x is a reduction axis on blocks.
bool scheduler_combine(struct scheduler *s, const struct ir_directive *directive) {
  struct list axes = {0};
  struct range range = *list_at(&directive->axis_places, struct range, 0);
  if (!scheduler_find_axes(s, directive, 0, &axes)) return false;
  bool found = false;
  for (uint32_t n = 0; n < s->entry->stages.count; n++) {
    struct ir_stage *stage = s->entry->stages.at[n];
    const char *stage_name = directive->stages.at[0];
    if (*stage_name && !stage_is_named(stage, stage_name)) continue;
    for (uint32_t k = 0; k < stage->axes.count; k++) {
      struct ir_stage_axis *axis = stage->axes.at[k];
      if (!scheduler_has(&axes, axis->axis) || !axis->is_reduction) continue;
      bool on_blocks = axis->axis->bind >= BIND_BLOCK_X && axis->axis->bind <= BIND_BLOCK_Z;
      if (!on_blocks) {
        diag_error(s->diag, ERROR_DIRECTIVE, range, "'combine' names a reduction axis bound to blocks, and '%s' is %s%s", axis->axis->var->label,
                   axis->axis->bind == BIND_SERIAL ? "a loop in each thread" : "bound to ", axis->axis->bind == BIND_SERIAL ? "" : bind_name(axis->axis->bind));
        return false;
      }
      stage->combine = directive->combine;
      found = true;
    }
  }
  if (!found)
    diag_error(s->diag, ERROR_DIRECTIVE, range, "'combine' names a reduction axis bound to blocks, and '%s' is no reduction axis", (const char *)directive->axes.at[0]);
  return found;
}

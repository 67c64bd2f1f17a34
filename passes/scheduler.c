// The axes that a directive names, and what it may do with them.
#include <string.h>

#include "passes/scheduler.h"
#include "passes/stage.h"

uint32_t scheduler_place(const struct ir_stage *stage, const struct ir_axis *axis) {
  for (uint32_t i = 0; i < stage->axes.count; i++)
    if (list_at(&stage->axes, struct ir_stage_axis, i)->axis == axis) return i;
  return UINT32_MAX;
}

bool scheduler_has(const struct list *list, const void *item) {
  for (uint32_t i = 0; i < list->count; i++)
    if (list->at[i] == item) return true;
  return false;
}

void scheduler_note_legal(struct scheduler *s, const char *stage_name) {
  struct text names = {0};
  struct list seen = {0};
  for (uint32_t i = 0; i < s->entry->stages.count; i++) {
    struct ir_stage *stage = s->entry->stages.at[i];
    if (*stage_name && !stage_is_named(stage, stage_name)) continue;
    for (uint32_t k = 0; k < stage->axes.count; k++) {
      struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, k)->axis;
      if (scheduler_has(&seen, axis)) continue;
      list_push(s->arena, &seen, axis);
      text_printf(&names, "%s%s", names.length ? ", " : "", axis->var->label);
    }
  }
  if (names.length) diag_note(s->diag, (struct range){0}, "axes here are %s", names.data);
  text_free(&names);
}

// The axes that a directive names, at its place `which`. Reports when there is none.
bool scheduler_find_axes(struct scheduler *s, const struct ir_directive *directive, uint32_t which, struct list *axes) {
  const char *stage_name = directive->stages.at[which], *label = directive->axes.at[which];
  struct range range = *list_at(&directive->axis_places, struct range, which);
  bool stage_found = !*stage_name;
  for (uint32_t i = 0; i < s->entry->stages.count; i++) {
    struct ir_stage *stage = s->entry->stages.at[i];
    if (*stage_name && !stage_is_named(stage, stage_name)) continue;
    stage_found = true;
    for (uint32_t k = 0; k < stage->axes.count; k++) {
      struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, k)->axis;
      if (strcmp(axis->var->label, label) == 0 && !scheduler_has(axes, axis)) list_push(s->arena, axes, axis);
    }
  }
  if (!stage_found) {
    diag_error(s->diag, ERROR_UNKNOWN_STAGE, range, "no stage is named '%s'", stage_name);
    struct text names = {0};
    for (uint32_t i = 0; i < s->entry->stages.count; i++)
      text_printf(&names, "%s%s", i ? ", " : "", list_at(&s->entry->stages, struct ir_stage, i)->label);
    diag_note(s->diag, (struct range){0}, "stages are %s", names.data ? names.data : "none");
    text_free(&names);
    return false;
  }
  if (axes->count == 0) {
    for (uint32_t i = 0; i < s->retired.count; i++) {
      struct retired *retired = s->retired.at[i];
      if (strcmp(retired->label, label) != 0) continue;
      diag_error(s->diag, ERROR_AXIS_USED, range, "axis '%s' was %s before; name its pieces", label, retired->how);
      diag_note(s->diag, retired->from, "axis '%s' comes from here", label);
      diag_note(s->diag, retired->where, "%s here", retired->how);
      scheduler_note_legal(s, stage_name);
      return false;
    }
    diag_error(s->diag, ERROR_UNKNOWN_AXIS, range, "no axis is named '%s'%s%s%s", label, *stage_name ? " in stage '" : "", stage_name, *stage_name ? "'" : "");
    scheduler_note_legal(s, stage_name);
    return false;
  }
  for (uint32_t a = 0; a < axes->count && *stage_name; a++) // an axis around several stages is scheduled in all of them
    for (uint32_t i = 0; i < s->entry->stages.count; i++) {
      struct ir_stage *stage = s->entry->stages.at[i];
      if (stage_is_named(stage, stage_name) || scheduler_place(stage, axes->at[a]) == UINT32_MAX) continue;
      if (directive->kind == DIRECTIVE_REORDER || directive->kind == DIRECTIVE_ALLREDUCE) continue;
      diag_error(s->diag, ERROR_DIRECTIVE, range, "axis '%s' encloses stage '%s' too and cannot be scheduled for '%s' alone; name it without a stage", label, stage->label, stage_name);
      return false;
    }
  return true;
}

void scheduler_retire(struct scheduler *s, const struct ir_axis *axis, const char *how, struct range where) {
  struct retired *retired = arena_new(s->arena, struct retired);
  retired->label = axis->var->label;
  retired->how = how;
  retired->from = axis->range;
  retired->where = where;
  list_push(s->arena, &s->retired, retired);
  for (uint32_t i = 0; i < s->entry->axes.count; i++)
    if (s->entry->axes.at[i] == axis) {
      list_remove(&s->entry->axes, i);
      return;
    }
}

// An axis that is bound, unrolled or vectorised is not taken apart.
bool scheduler_is_free(struct scheduler *s, const struct ir_axis *axis, struct range range) {
  if (axis->bind == BIND_SERIAL && !axis->unroll) return true;
  bool is_bound = axis->bind != BIND_SERIAL && axis->bind != BIND_VECTOR;
  diag_error(s->diag, ERROR_AXIS_USED, range, "axis '%s' is already %s%s", axis->var->label, is_bound ? "bound to " : axis->bind == BIND_VECTOR ? "vectorised" : "unrolled",
             is_bound ? bind_name(axis->bind) : "");
  return false;
}

bool scheduler_name_is_new(struct scheduler *s, const char *name, struct range range) {
  for (uint32_t i = 0; i < s->entry->axes.count; i++) {
    struct ir_axis *axis = s->entry->axes.at[i];
    if (strcmp(axis->var->label, name) != 0) continue;
    diag_error(s->diag, ERROR_DUPLICATE_NAME, range, "an axis is already named '%s'", name);
    diag_note(s->diag, axis->range, "here");
    return false;
  }
  return true;
}

struct ir_axis *scheduler_new_axis(struct scheduler *s, const char *label, struct ir_expr *extent, struct range range) {
  struct ir_axis *axis = arena_new(s->arena, struct ir_axis);
  axis->var = ir_new_var(s->kernel, VAR_AXIS, TYPE_INDEX, label);
  axis->var->range = range;
  axis->extent = extent;
  axis->range = range;
  list_push(s->arena, &s->entry->axes, axis);
  return axis;
}

void scheduler_put_axis(struct scheduler *s, struct ir_stage *stage, uint32_t place, struct ir_axis *axis, bool is_reduction) {
  struct ir_stage_axis *used = arena_new(s->arena, struct ir_stage_axis);
  used->axis = axis;
  used->is_reduction = is_reduction;
  list_insert(s->arena, &stage->axes, place, used);
}

// The axes of a stage that a list of names means, in the order of the names; NULL where the stage has none of that name.
struct ir_axis *scheduler_axis_in_stage(const struct ir_stage *stage, const char *label) {
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, i)->axis;
    if (strcmp(axis->var->label, label) == 0) return axis;
  }
  return NULL;
}

bool scheduler_names_differ(struct scheduler *s, const struct ir_directive *directive) {
  for (uint32_t i = 0; i < directive->axes.count; i++)
    for (uint32_t k = 0; k < i; k++)
      if (strcmp(directive->axes.at[i], directive->axes.at[k]) == 0) {
        diag_error(s->diag, ERROR_DIRECTIVE, *list_at(&directive->axis_places, struct range, i), "axis '%s' is named twice", (const char *)directive->axes.at[i]);
        return false;
      }
  return true;
}

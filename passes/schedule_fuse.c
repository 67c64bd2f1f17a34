// fuse a, b -> ab.
//
//   stage B: axes i, j                                   fuse i, j -> t
//   ->
//   stage B: axes t; derived j = t % m, i = t / m
#include "passes/scheduler.h"
#include "passes/stage.h"

static bool is_fill(const struct ir_stage *stage) { return stage->kind == STAGE_STORE && stage->mem->space != SPACE_GLOBAL; }

bool scheduler_fuse(struct scheduler *s, const struct ir_directive *directive) {
  struct arena *arena = s->arena;
  uint32_t count = directive->axes.count;
  if (!scheduler_names_differ(s, directive)) return false;
  for (uint32_t i = 0; i < count; i++) {
    struct list axes = {0};
    if (!scheduler_find_axes(s, directive, i, &axes)) return false;
    for (uint32_t k = 0; k < axes.count; k++) {
      struct ir_axis *axis = axes.at[k];
      struct range range = *list_at(&directive->axis_places, struct range, i);
      if (!scheduler_is_free(s, axis, range)) return false;
      if (mentions_axis(axis->extent)) {
        diag_error(s->diag, ERROR_DIRECTIVE, range, "axis '%s' has a range that depends on another axis and cannot be fused", axis->var->label);
        diag_note(s->diag, (struct range){0}, "split it by a constant; the inner piece can be fused");
        return false;
      }
    }
  }
  if (!scheduler_name_is_new(s, directive->names.at[0], directive->range)) return false;
  bool found = false;
  for (uint32_t k = 0; k < s->entry->stages.count; k++) {
    struct ir_stage *first = s->entry->stages.at[k];
    struct ir_axis *parts[64];
    uint32_t present = 0;
    for (uint32_t i = 0; i < count && i < 64; i++) {
      const char *stage_name = directive->stages.at[i];
      parts[i] = !*stage_name || stage_is_named(first, stage_name) ? scheduler_axis_in_stage(first, directive->axes.at[i]) : NULL;
      present += parts[i] != NULL;
    }
    if (present == 0) continue;
    if (present < count) {
      diag_error(s->diag, ERROR_DIRECTIVE, directive->range, "stage '%s' has some of these axes and not all; name those of one stage, STAGE.axis", first->label);
      scheduler_note_legal(s, "");
      return false;
    }
    found = true;
    for (uint32_t n = 0; n < s->entry->stages.count; n++) { // a copy is filled and read in the loops around it: these stay those of both
      const struct ir_stage *other = s->entry->stages.at[n];
      uint32_t common = 0;
      for (uint32_t i = 0; i < count; i++) common += scheduler_place(other, parts[i]) != UINT32_MAX;
      if (!common || common == count || (!is_fill(first) && !is_fill(other))) continue;
      diag_error(s->diag, ERROR_DIRECTIVE, directive->range, "stages '%s' and '%s' share some of these axes and not all, and one fills what is copied or kept", first->label, other->label);
      scheduler_note_legal(s, "");
      return false;
    }
    struct ir_expr *extent = ir_int(arena, TYPE_INDEX, 1);
    for (uint32_t i = 0; i < count; i++) extent = ir_binary(arena, OP_MUL, extent, parts[i]->extent);
    struct ir_axis *fused = scheduler_new_axis(s, directive->names.at[0], extent, directive->range);
    struct list derived = {0};
    struct ir_expr *rest = ir_ref(arena, fused->var);
    for (uint32_t i = count; i-- > 0;) {
      struct ir_expr *value = i == 0 ? rest : ir_binary(arena, OP_MOD, rest, parts[i]->extent);
      rest = ir_binary(arena, OP_DIV, rest, parts[i]->extent);
      list_push(arena, &derived, ir_let(arena, parts[i]->var, value, directive->range));
    }
    for (uint32_t n = k; n < s->entry->stages.count; n++) { // every stage that has these axes
      struct ir_stage *stage = s->entry->stages.at[n];
      uint32_t place = scheduler_place(stage, parts[0]);
      if (place == UINT32_MAX) continue;
      bool is_reduction = list_at(&stage->axes, struct ir_stage_axis, place)->is_reduction;
      for (uint32_t i = 0; i < count; i++) {
        struct ir_stage_axis *part = place + i < stage->axes.count ? stage->axes.at[place + i] : NULL;
        if (part && part->axis == parts[i] && part->is_reduction == is_reduction) continue;
        if (part && part->axis == parts[i])
          diag_error(s->diag, ERROR_DIRECTIVE, directive->range, "in stage '%s' axis '%s' is a reduction axis and '%s' is none; they cannot be fused", stage->label,
                     parts[is_reduction ? 0 : i]->var->label, parts[is_reduction ? i : 0]->var->label);
        else
          diag_error(s->diag, ERROR_DIRECTIVE, directive->range, "axis '%s' does not follow '%s' in stage '%s'; reorder them first", parts[i]->var->label,
                     i ? parts[i - 1]->var->label : "", stage->label);
        return false;
      }
      for (uint32_t i = 0; i < count; i++) list_remove(&stage->axes, place);
      scheduler_put_axis(s, stage, place, fused, is_reduction);
      for (uint32_t i = 0; i < derived.count; i++) list_insert(arena, &stage->derived, i, derived.at[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
      parts[i]->var->kind = VAR_LET;
      scheduler_retire(s, parts[i], "fused", directive->range);
    }
  }
  return found;
}

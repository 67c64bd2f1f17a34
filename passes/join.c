// join: independent reductions over the same axes share one loop and one read.
//
//   stage lo: reduce min_f32, axes i parallel, j reduction          stage lo: ..., axes i parallel, j reduction
//   stage hi: reduce max_f32, axes i parallel, j_2 reduction   ->   stage hi: ..., axes i parallel, j reduction
//
// Stages that neighbour each other and have an axis in common become one loop in pass `nest`; so it is enough to give the later stages the
// axes of the first, and to put them behind it.
//
// A sum of exponentials of the distances to a maximum that is joined with it becomes one stage with it: rescale.c.
#include <string.h>

#include "passes/rescale.h"
#include "passes/schedule.h"
#include "passes/stage.h"

static struct ir_stage *find_stage(struct ir_entry *entry, const char *name, uint32_t *place) {
  for (uint32_t i = 0; i < entry->stages.count; i++) {
    struct ir_stage *stage = entry->stages.at[i];
    if (stage->kind != STAGE_REDUCE || !stage_is_named(stage, name)) continue;
    *place = i;
    return stage;
  }
  return NULL;
}

static void substitute_lets(struct arena *arena, struct list *lets) {
  *lets = list_copy(arena, lets);
  for (uint32_t i = 0; i < lets->count; i++) {
    struct ir_stmt *let = lets->at[i], *copy = ir_let(arena, let->var, ir_substitute(arena, let->value), let->range);
    lets->at[i] = copy;
  }
}

static bool refuse(struct pass_context *context, const struct ir_directive *directive, const char *first, const char *second, const char *why) {
  diag_error(context->diag, ERROR_DIRECTIVE, directive->range, "'%s' and '%s' cannot be joined: %s", first, second, why);
  return false;
}

// Gives `second` the reduction axes of `first`.
static bool share_axes(struct pass_context *context, struct ir_entry *entry, const struct ir_directive *directive, struct ir_stage *first, struct ir_stage *second) {
  if (first->axes.count != second->axes.count) return refuse(context, directive, first->label, second->label, "they have different axes");
  for (uint32_t i = 0; i < first->axes.count; i++) {
    struct ir_stage_axis *a = first->axes.at[i], *b = second->axes.at[i];
    if (a->is_reduction != b->is_reduction || (!a->is_reduction && a->axis != b->axis))
      return refuse(context, directive, first->label, second->label, "their axes differ in order or in the loops around them");
    if (a->axis->bind != BIND_SERIAL || b->axis->bind != BIND_SERIAL || a->axis->unroll || b->axis->unroll) {
      if (a->axis != b->axis) return refuse(context, directive, first->label, second->label, "join them before their axes are bound or unrolled");
    }
    if (!ir_equal(a->axis->extent, b->axis->extent)) return refuse(context, directive, first->label, second->label, "their axes have different extents");
  }
  for (uint32_t i = 0; i < first->axes.count; i++) {
    struct ir_stage_axis *a = first->axes.at[i], *b = second->axes.at[i];
    if (a->axis != b->axis) b->axis->var->subst = ir_ref(context->arena, a->axis->var);
  }
  ir_substitute_list(context->arena, &second->guards);
  ir_substitute_list(context->arena, &second->operands);
  ir_substitute_list(context->arena, &second->init);
  substitute_lets(context->arena, &second->lets);
  substitute_lets(context->arena, &second->derived);
  for (uint32_t i = 0; i < first->axes.count; i++) {
    struct ir_stage_axis *a = first->axes.at[i], *b = second->axes.at[i];
    if (a->axis == b->axis) continue;
    b->axis->var->subst = NULL;
    for (uint32_t k = 0; k < entry->axes.count; k++)
      if (entry->axes.at[k] == b->axis) {
        list_remove(&entry->axes, k);
        break;
      }
    b->axis = a->axis;
  }
  return true;
}

// The stage among those at `from` to `to` that is a maximum with which `sum` is one reduction; NULL: none.
static struct ir_stage *find_maximum(const struct ir_entry *entry, uint32_t from, uint32_t to, const struct ir_stage *sum) {
  for (uint32_t i = from; i <= to; i++)
    if (rescale_fits(entry->stages.at[i], sum)) return entry->stages.at[i];
  return NULL;
}

bool schedule_join(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry, const struct ir_directive *directive) {
  uint32_t first_place = 0, joined_from = 0;
  struct ir_stage *first = NULL;
  for (uint32_t n = 0; n < directive->axes.count; n++) {
    const char *name = directive->axes.at[n];
    uint32_t place;
    struct ir_stage *stage = find_stage(entry, name, &place);
    if (!stage) {
      diag_error(context->diag, ERROR_UNKNOWN_STAGE, *list_at(&directive->axis_places, struct range, n), "no reduction is named '%s'", name);
      return false;
    }
    if (!first) {
      first = stage;
      first_place = joined_from = place;
      continue;
    }
    if (stage == first) return refuse(context, directive, first->label, stage->label, "they are one stage");
    if (place < first_place) return refuse(context, directive, first->label, stage->label, "name them in the order of the kernel");
    struct ir_stage *maximum = find_maximum(entry, joined_from, first_place, stage);
    for (uint32_t between = joined_from; between < place; between++) {
      struct ir_stage *earlier = entry->stages.at[between];
      if (earlier == maximum) continue;
      for (uint32_t k = 0; k < earlier->results.count; k++)
        if (stage_reads(stage, earlier->results.at[k])) return refuse(context, directive, first->label, stage->label, "the second needs a result that is not known before the first ends");
    }
    if (!share_axes(context, entry, directive, first, stage)) return false;
    if (maximum) {
      diag_remark(context->diag, "schedule", directive->range, "'%s' and '%s' are one reduction, which scales the sum where the maximum grows: '%s' differs from a sum of its own by rounding",
                  maximum->label, stage->label, stage->label);
      rescale_join(context, kernel, entry, maximum, stage);
      continue;
    }
    list_remove(&entry->stages, place);
    list_insert(context->arena, &entry->stages, ++first_place, stage);
  }
  return true;
}

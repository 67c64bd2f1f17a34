// The compiler's own schedule where no class takes the kernel: one thread an output, 256 threads a block, outputs in row-major order.
#include <string.h>

#include "passes/schedule.h"
#include "passes/stage.h"

enum { THREADS = 256 };

static struct ir_directive *add(struct pass_context *context, struct ir_entry *entry, enum ir_directive_kind kind, struct range range) {
  struct ir_directive *directive = arena_new(context->arena, struct ir_directive);
  directive->kind = kind;
  directive->range = range;
  list_push(context->arena, &entry->directives, directive);
  return directive;
}

static void add_axis(struct pass_context *context, struct ir_directive *directive, const char *label) {
  struct range *place = arena_new(context->arena, struct range);
  *place = directive->range;
  list_push(context->arena, &directive->stages, "");
  list_push(context->arena, &directive->axes, (void *)label);
  list_push(context->arena, &directive->axis_places, place);
}

static bool has_axis(const struct ir_stage *stage, const struct ir_axis *axis, bool parallel_only, uint32_t *place) {
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    struct ir_stage_axis *used = stage->axes.at[i];
    if (used->axis == axis && !(parallel_only && used->is_reduction)) {
      *place = i;
      return true;
    }
  }
  return false;
}

static bool reads(const struct ir_stage *consumer, const struct ir_stage *producer) {
  for (uint32_t i = 0; i < producer->results.count; i++)
    if (stage_reads(consumer, producer->results.at[i])) return true;
  return false;
}

// Directives name axes: where two axes have one name, all get names of their own.
static void make_labels_unique(struct ir_entry *entry) {
  bool is_ambiguous = false;
  for (uint32_t a = 0; a < entry->axes.count; a++)
    for (uint32_t b = a + 1; b < entry->axes.count; b++)
      is_ambiguous |= strcmp(list_at(&entry->axes, struct ir_axis, a)->var->label, list_at(&entry->axes, struct ir_axis, b)->var->label) == 0;
  for (uint32_t a = 0; a < entry->axes.count && is_ambiguous; a++) {
    struct ir_var *var = list_at(&entry->axes, struct ir_axis, a)->var;
    var->label = var->name;
  }
}

// Gives `to` the axes of `from` that stand in front of the last one that both have: then the loops around a value are those around its
// reader, and it is one variable.
static bool give_axes(struct arena *arena, const struct ir_stage *from, struct ir_stage *to) {
  uint32_t shared = 0, place, next = 0;
  bool changed = false;
  for (uint32_t i = 0; i < from->axes.count; i++)
    if (has_axis(to, list_at(&from->axes, struct ir_stage_axis, i)->axis, false, &place)) shared = i;
  for (uint32_t i = 0; i < shared; i++) {
    struct ir_axis *axis = list_at(&from->axes, struct ir_stage_axis, i)->axis;
    if (has_axis(to, axis, false, &place)) {
      next = place + 1;
      continue;
    }
    struct ir_stage_axis *given = arena_new(arena, struct ir_stage_axis);
    given->axis = axis;
    list_insert(arena, &to->axes, next++, given);
    for (uint32_t d = 0; d < from->derived.count; d++) {
      struct ir_stmt *let = from->derived.at[d];
      if (ir_mentions(let->value, axis->var)) list_insert(arena, &to->derived, 0, let);
    }
    changed = true;
  }
  return changed;
}

// `check` computes a reduction outside the axes that it does not mention. One thread an output gains nothing by that where it must keep
// the results over an axis further inside.
static void put_reductions_back(struct arena *arena, const struct list *stages) {
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t a = 0; a < stages->count; a++)
      for (uint32_t b = a + 1; b < stages->count; b++) {
        struct ir_stage *producer = stages->at[a], *consumer = stages->at[b];
        if (!reads(consumer, producer)) continue;
        changed |= give_axes(arena, consumer, producer);
        if (consumer->kind == STAGE_REDUCE) changed |= give_axes(arena, producer, consumer);
      }
  }
}

// Whether a reduction is the same for all outputs: each thread computes it, in front of its output, and it stands in no thread's way.
static bool is_same_for_all(const struct list *stages, uint32_t number) {
  const struct ir_stage *stage = stages->at[number];
  uint32_t place;
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    const struct ir_stage_axis *used = stage->axes.at[i];
    if (!used->is_reduction) return false;
    for (uint32_t k = 0; k < stages->count; k++)
      if (k != number && has_axis(stages->at[k], used->axis, false, &place)) return false;
  }
  for (uint32_t k = 0; k < stages->count; k++)
    if (k != number && reads(stage, stages->at[k])) return false;
  return stage->kind == STAGE_REDUCE;
}

// Stages that share an axis or a value are scheduled together: `group` gets a number a stage.
static uint32_t number_groups(const struct list *stages, uint32_t *group) {
  for (uint32_t i = 0; i < stages->count; i++) group[i] = i;
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t a = 0; a < stages->count; a++)
      for (uint32_t b = a + 1; b < stages->count; b++) {
        if (group[a] == group[b]) continue;
        struct ir_stage *first = stages->at[a], *second = stages->at[b];
        bool together = reads(second, first) && !is_same_for_all(stages, a);
        uint32_t place;
        for (uint32_t k = 0; k < first->axes.count && !together; k++)
          together = has_axis(second, list_at(&first->axes, struct ir_stage_axis, k)->axis, false, &place);
        if (!together) continue;
        uint32_t low = group[a] < group[b] ? group[a] : group[b], high = group[a] < group[b] ? group[b] : group[a];
        for (uint32_t k = 0; k < stages->count; k++)
          if (group[k] == high) group[k] = low;
        changed = true;
      }
  }
  return stages->count;
}

// The longest row of axes, from the outermost, that are parallel and neighbours in every stage of the group.
static struct list common_axes(struct arena *arena, const struct list *stages, const uint32_t *group, uint32_t number) {
  struct list common = {0};
  const struct ir_stage *first = stages->at[number];
  for (uint32_t i = 0; i < first->axes.count; i++) {
    struct ir_axis *axis = list_at(&first->axes, struct ir_stage_axis, i)->axis;
    bool everywhere = !mentions_axis(axis->extent);
    for (uint32_t k = 0; k < stages->count && everywhere; k++) {
      if (group[k] != number) continue;
      uint32_t place, before;
      everywhere = has_axis(stages->at[k], axis, true, &place);
      if (everywhere && common.count)
        everywhere = has_axis(stages->at[k], common.at[common.count - 1], true, &before) && before + 1 == place;
    }
    if (everywhere) list_push(arena, &common, axis);
    else if (common.count) break;
  }
  return common;
}

static bool label_is_taken(const struct ir_entry *entry, const char *label) {
  for (uint32_t i = 0; i < entry->axes.count; i++)
    if (strcmp(list_at(&entry->axes, struct ir_axis, i)->var->label, label) == 0) return true;
  for (uint32_t i = 0; i < entry->directives.count; i++) {
    const struct list *names = &list_at(&entry->directives, struct ir_directive, i)->names;
    for (uint32_t k = 0; k < names->count; k++)
      if (strcmp(names->at[k], label) == 0) return true;
  }
  return false;
}

// A name that no axis has and no earlier directive makes: `label`, with as many '_' behind it as that takes.
static const char *fresh_label(struct arena *arena, const struct ir_entry *entry, const char *label) {
  while (label_is_taken(entry, label)) label = arena_printf(arena, "%s_", label);
  return label;
}

void schedule_automatically(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry) {
  struct arena *arena = context->arena;
  make_labels_unique(entry);
  put_reductions_back(arena, &entry->stages);
  uint32_t *group = arena_array(arena, uint32_t, entry->stages.count);
  number_groups(&entry->stages, group);
  for (uint32_t g = 0; g < entry->stages.count; g++) {
    if (group[g] != g) continue;
    struct list axes = common_axes(arena, &entry->stages, group, g);
    if (axes.count == 0) continue;
    const char *label = list_at(&axes, struct ir_axis, 0)->var->label;
    if (axes.count > 1) {
      struct ir_directive *fuse = add(context, entry, DIRECTIVE_FUSE, entry->range);
      for (uint32_t i = 0; i < axes.count; i++) add_axis(context, fuse, list_at(&axes, struct ir_axis, i)->var->label);
      for (uint32_t i = 1; i < axes.count; i++) label = arena_printf(arena, "%s_%s", label, list_at(&axes, struct ir_axis, i)->var->label);
      label = fresh_label(arena, entry, label);
      list_push(arena, &fuse->names, (void *)label);
    }
    const char *outer = fresh_label(arena, entry, arena_printf(arena, "%s_block", label));
    const char *inner = fresh_label(arena, entry, arena_printf(arena, "%s_thread", label));
    struct ir_directive *split = add(context, entry, DIRECTIVE_SPLIT_BY, entry->range);
    add_axis(context, split, label);
    split->factor = ir_int(arena, TYPE_INDEX, THREADS);
    list_push(arena, &split->names, (void *)outer);
    list_push(arena, &split->names, (void *)inner);
    struct ir_directive *block = add(context, entry, DIRECTIVE_BIND, entry->range);
    add_axis(context, block, outer);
    block->bind = BIND_BLOCK_X;
    struct ir_directive *thread = add(context, entry, DIRECTIVE_BIND, entry->range);
    add_axis(context, thread, inner);
    thread->bind = BIND_THREAD_X;
  }
  if (!entry->is_general)
    diag_remark(context->diag, "schedule", entry->range, "kernel '%s' has no schedule that always applies: one thread an output, %d threads a block, in row-major order", kernel->label, THREADS);
}

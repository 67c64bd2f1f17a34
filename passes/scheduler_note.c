// What is said behind the error of a directive: where the axes that it names come from, how they were used, and what would be legal.
//
//   schedule k { bind i -> block.x;  split i by 4 -> a, b; }
//   error: axis 'i' is already bound to block.x
//   note: axis 'i' comes from here
//   note: it is bound to block.x here
//   note: legal for 'i' now: reorder
#include <string.h>

#include "passes/scheduler.h"
#include "passes/stage.h"
#include "passes/stage_load.h"

enum { MOST_AXES = 4 }; // of a directive that are told about

static const struct range nowhere;

static void add(struct text *list, const char *item) { text_printf(list, "%s%s", list->length ? ", " : "", item); }

static const char *joined(struct scheduler *s, struct text *list, const char *otherwise) {
  const char *text = arena_strdup(s->arena, list->length ? list->data : otherwise);
  text_free(list);
  *list = (struct text){0};
  return text;
}

// The dimensions from `from` to `to` that no stage with the axis has bound, as "thread.x|y"; "" where there is none.
static const char *free_dimensions(struct scheduler *s, const struct ir_axis *axis, enum ir_bind from, enum ir_bind to) {
  struct text names = {0};
  for (int b = from; b <= (int)to; b++) {
    bool is_taken = b == BIND_THREAD_Z && ir_is_const(axis->extent) && axis->extent->integer > SCHEDULER_MAX_THREADS_Z;
    for (uint32_t n = 0; n < s->entry->stages.count; n++) {
      const struct ir_stage *stage = s->entry->stages.at[n];
      is_taken |= scheduler_place(stage, axis) != UINT32_MAX && stage_bound_axis(stage, (enum ir_bind)b);
    }
    const char *name = bind_name((enum ir_bind)b);
    if (!is_taken) text_printf(&names, "%s%s", names.length ? "|" : "", names.length ? strchr(name, '.') + 1 : name);
  }
  return joined(s, &names, "");
}

// Whether a stage reduces over the axis.
static bool is_reduced(const struct scheduler *s, const struct ir_axis *axis) {
  for (uint32_t n = 0; n < s->entry->stages.count; n++) {
    const struct ir_stage *stage = s->entry->stages.at[n];
    uint32_t place = scheduler_place(stage, axis);
    if (place != UINT32_MAX && list_at(&stage->axes, struct ir_stage_axis, place)->is_reduction) return true;
  }
  return false;
}

// The directives that an axis may still have, by what is known of it alone.
static const char *legal_for(struct scheduler *s, const struct ir_axis *axis) {
  struct text list = {0};
  bool is_constant = ir_is_const(axis->extent), is_inner = mentions_axis(axis->extent);
  if (axis->bind != BIND_SERIAL || axis->unroll) {
    add(&list, "reorder");
    if (bind_is_thread(axis->bind) && is_reduced(s, axis)) add(&list, "allreduce");
    if (bind_is_block(axis->bind) && is_reduced(s, axis)) add(&list, "combine");
    return joined(s, &list, "");
  }
  add(&list, "split");
  if (!is_inner) add(&list, "fuse");
  add(&list, "reorder");
  const char *blocks = free_dimensions(s, axis, BIND_BLOCK_X, BIND_BLOCK_Z), *threads = free_dimensions(s, axis, BIND_THREAD_X, BIND_THREAD_Z);
  if (*blocks && !is_inner) add(&list, arena_printf(s->arena, "bind to %s", blocks));
  if (*threads && is_constant && axis->extent->integer <= SCHEDULER_MAX_THREADS) add(&list, arena_printf(s->arena, "bind to %s", threads));
  add(&list, is_constant && axis->extent->integer <= SCHEDULER_MAX_UNROLL ? "unroll" : "unroll by a factor");
  if (is_constant && axis->extent->integer <= SCHEDULER_MAX_VECTOR) add(&list, "vectorize");
  return joined(s, &list, "");
}

static void note_axis(struct scheduler *s, const struct ir_axis *axis) {
  axis_note(s->diag, axis);
  diag_note(s->diag, nowhere, "legal for '%s' now: %s", axis->var->label, legal_for(s, axis));
}

// The axes that the directive names and that are there.
static struct list named_axes(struct scheduler *s, const struct ir_directive *directive) {
  struct list axes = {0};
  uint32_t count = directive->kind == DIRECTIVE_SHARED ? 1 : directive->axes.count; // behind it those of a copy that is not there yet
  for (uint32_t i = 0; i < count; i++) {
    const char *stage_name = directive->stages.at[i];
    for (uint32_t n = 0; n < s->entry->stages.count; n++) {
      const struct ir_stage *stage = s->entry->stages.at[n];
      struct ir_axis *axis = scheduler_axis_in_stage(stage, directive->axes.at[i]);
      if (axis && (!*stage_name || stage_is_named(stage, stage_name)) && !scheduler_has(&axes, axis)) list_push(s->arena, &axes, axis);
    }
  }
  return axes;
}

// The reduction axes bound to threads, or to blocks, with their stages.
static const char *reductions_on(struct scheduler *s, bool (*is_there)(enum ir_bind)) {
  struct text list = {0};
  for (uint32_t n = 0; n < s->entry->stages.count; n++) {
    const struct ir_stage *stage = s->entry->stages.at[n];
    for (uint32_t i = 0; i < stage->axes.count; i++) {
      const struct ir_stage_axis *used = stage->axes.at[i];
      if (used->is_reduction && is_there(used->axis->bind)) add(&list, arena_printf(s->arena, "%s of stage '%s'", used->axis->var->label, stage->label));
    }
  }
  return joined(s, &list, "none; bind one first");
}

// The axes around the stages that read the tensor.
static const char *axes_around(struct scheduler *s, const char *tensor) {
  struct text list = {0};
  struct list seen = {0};
  for (uint32_t n = 0; n < s->entry->stages.count; n++) {
    const struct ir_stage *stage = s->entry->stages.at[n];
    for (uint32_t i = 0; i < s->kernel->tensors.count; i++) {
      const struct ir_mem *mem = s->kernel->tensors.at[i];
      if (strcmp(mem->name, tensor) != 0 || !stage_find_load(stage, mem).load) continue;
      for (uint32_t k = 0; k < stage->axes.count; k++) {
        struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, k)->axis;
        if (scheduler_has(&seen, axis)) continue;
        list_push(s->arena, &seen, axis);
        add(&list, axis->var->label);
      }
    }
  }
  return joined(s, &list, "none");
}

// Where the reductions that `join` names are, and which there are.
static void note_reductions(struct scheduler *s, const struct ir_directive *directive) {
  struct text list = {0};
  for (uint32_t n = 0; n < s->entry->stages.count; n++) {
    const struct ir_stage *stage = s->entry->stages.at[n];
    if (stage->kind != STAGE_REDUCE) continue;
    add(&list, stage->label);
    for (uint32_t i = 0, told = 0; i < directive->axes.count && !told; i++)
      if ((told = stage_is_named(stage, directive->axes.at[i]))) diag_note(s->diag, stage->range, "'%s' is here", stage->label);
  }
  diag_note(s->diag, nowhere, "legal here: reductions over the same axes, in the order of the kernel: %s", joined(s, &list, "none"));
}

// The earlier directive of the same kind, about the same tensor.
static void note_first(struct scheduler *s, const struct ir_directive *directive) {
  for (uint32_t i = 0; i < s->entry->directives.count; i++) {
    const struct ir_directive *other = s->entry->directives.at[i];
    if (other == directive) return;
    if (other->kind != directive->kind || (other->names.count && strcmp(other->names.at[0], directive->names.at[0]) != 0)) continue;
    diag_note(s->diag, other->range, "the first one is here");
    return;
  }
}

void scheduler_note_directive(struct scheduler *s, const struct ir_directive *directive) {
  struct list axes = {0};
  bool is_of_axis = false;
  switch (directive->kind) {
  case DIRECTIVE_SPLIT_BY: case DIRECTIVE_SPLIT_INTO: case DIRECTIVE_FUSE: case DIRECTIVE_REORDER: case DIRECTIVE_BIND: case DIRECTIVE_UNROLL: case DIRECTIVE_VECTORIZE:
    is_of_axis = true;
    break;
  case DIRECTIVE_ALLREDUCE: case DIRECTIVE_COMBINE: case DIRECTIVE_REGISTERS: case DIRECTIVE_SHARED: case DIRECTIVE_JOIN: case DIRECTIVE_CACHE: case DIRECTIVE_BLOCKS: case DIRECTIVE_COUNT: break;
  }
  if (directive->kind != DIRECTIVE_JOIN) axes = named_axes(s, directive);
  for (uint32_t i = 0; i < axes.count && i < MOST_AXES; i++) {
    if (is_of_axis) note_axis(s, axes.at[i]);
    else axis_note(s->diag, axes.at[i]);
  }
  if (directive->kind == DIRECTIVE_ALLREDUCE) diag_note(s->diag, nowhere, "reduction axes on threads now: %s", reductions_on(s, bind_is_thread));
  if (directive->kind == DIRECTIVE_COMBINE || (directive->kind == DIRECTIVE_UNROLL && !axes.count && strcmp(directive->axes.at[0], "combine") == 0)) diag_note(s->diag, nowhere, "reduction axes on blocks now: %s", reductions_on(s, bind_is_block));
  if (directive->kind == DIRECTIVE_REGISTERS || directive->kind == DIRECTIVE_SHARED)
    diag_note(s->diag, nowhere, "axes around what reads '%s' now: %s", (const char *)directive->names.at[0], axes_around(s, directive->names.at[0]));
  if (directive->kind == DIRECTIVE_CACHE || directive->kind == DIRECTIVE_BLOCKS) note_first(s, directive);
  if (directive->kind == DIRECTIVE_CACHE) diag_note(s->diag, nowhere, "a tensor takes one hint: evict_first, evict_last, no_allocate or streaming");
  if (directive->kind == DIRECTIVE_BLOCKS) diag_note(s->diag, nowhere, "a schedule takes one promise: blocks 2");
  if (directive->kind == DIRECTIVE_JOIN) note_reductions(s, directive);
}

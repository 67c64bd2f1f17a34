// The places of copies that `stage ... in` makes: where they are filled, and whether they still hold what is read when all directives are done.
//
//   stage A at k in registers;  stage C at i in shared;       C is filled in front of A: its loops stand outside those of k
//
// A copy has no dimension for the axes around it, so that each of their iterations fills it anew: it must be read before the next one does.
#include "passes/schedule.h"
#include "passes/stage.h"
#include "passes/stage_load.h"

// How many loops, from the outermost on, two stages share; bound axes are no loops.
static uint32_t shared_loops(const struct ir_stage *a, const struct ir_stage *b) {
  uint32_t count = 0, i = 0, k = 0;
  for (;;) {
    while (i < a->axes.count && list_at(&a->axes, struct ir_stage_axis, i)->axis->bind != BIND_SERIAL && list_at(&a->axes, struct ir_stage_axis, i)->axis->bind != BIND_VECTOR) i++;
    while (k < b->axes.count && list_at(&b->axes, struct ir_stage_axis, k)->axis->bind != BIND_SERIAL && list_at(&b->axes, struct ir_stage_axis, k)->axis->bind != BIND_VECTOR) k++;
    if (i == a->axes.count || k == b->axes.count) return count;
    if (list_at(&a->axes, struct ir_stage_axis, i)->axis != list_at(&b->axes, struct ir_stage_axis, k)->axis) return count;
    count++, i++, k++;
  }
}

static bool is_fill(const struct ir_stage *stage) { return stage->kind == STAGE_STORE && stage->mem->space != SPACE_GLOBAL; }

void schedule_insert_fill(struct arena *arena, struct ir_entry *entry, struct ir_stage *fill, uint32_t place) {
  const struct ir_stage *reader = entry->stages.at[place];
  uint32_t depth = shared_loops(fill, reader);
  while (place > 0) {
    const struct ir_stage *before = entry->stages.at[place - 1];
    if (!is_fill(before) || shared_loops(before, reader) <= depth) break;
    place--;
  }
  list_insert(arena, &entry->stages, place, fill);
}

static bool reads(const struct ir_stage *stage, const struct ir_mem *mem) { return stage_find_load(stage, mem).load != NULL; }

static bool mentions(struct arena *arena, const struct ir_stage *stage, struct ir_expr *e, const struct ir_axis *axis) {
  return ir_mentions(stage_in_leaves(arena, stage, e), axis->var);
}

// Whether what a copy holds depends on an axis that it has no dimension for.
static bool changes_with(struct arena *arena, const struct ir_stage *fill, const struct ir_axis *axis) {
  for (uint32_t i = 0; i < fill->indices.count; i++)
    if (mentions(arena, fill, fill->indices.at[i], axis)) return false;
  bool changes = mentions(arena, fill, fill->value, axis);
  for (uint32_t i = 0; i < fill->guards.count && !changes; i++) changes = mentions(arena, fill, fill->guards.at[i], axis);
  return changes;
}

static bool refuse(struct pass_context *context, const struct ir_stage *fill, const struct ir_axis *axis, const char *how) {
  bool is_shared = fill->mem->space == SPACE_SHARED;
  diag_error(context->diag, ERROR_DIRECTIVE, fill->range, "the copy of '%s' in %s has no dimension for axis '%s', which %s", fill->label, is_shared ? "shared memory" : "registers",
             axis->var->label, how);
  axis_note(context->diag, axis);
  diag_note(context->diag, (struct range){0}, "legal here: write this directive behind the ones that change its axes, or name an axis further in");
  return false;
}

// Machines copy 4 bytes and more asynchronously: narrower elements several at once.
static bool check_async(struct pass_context *context, const struct ir_stage *fill) {
  enum { LEAST = 4 };
  int64_t bytes = type_bytes(fill->mem->type), at_once = bytes;
  for (uint32_t i = 0; i < fill->axes.count; i++) {
    const struct ir_axis *axis = list_at(&fill->axes, struct ir_stage_axis, i)->axis;
    if (axis->bind == BIND_VECTOR && ir_is_const(axis->extent) && at_once < LEAST) at_once *= axis->extent->integer;
  }
  if (!fill->is_async || at_once >= LEAST || at_once == 0) return true;
  diag_error(context->diag, ERROR_DIRECTIVE, fill->range, "'by cp_async' copies 4, 8 or 16 bytes at once, and an element of '%s' has %lld", fill->label, (long long)bytes);
  diag_note(context->diag, (struct range){0}, "vectorize an axis of '%s' along which %lld or more elements are neighbours in both memories", fill->label, (long long)(LEAST / bytes));
  return false;
}

// Whether the initial value of the stage's reduction reads mem, itself or by lets.
static bool init_reads(struct arena *arena, const struct ir_stage *stage, const struct ir_mem *mem) {
  struct list needed = list_copy(arena, &stage->init);
  struct stage_load find = {.mem = mem};
  for (uint32_t i = stage->lets.count; i-- > 0;) {
    const struct ir_stmt *let = stage->lets.at[i];
    bool is_needed = false;
    for (uint32_t k = 0; k < needed.count && !is_needed; k++) is_needed = ir_mentions(needed.at[k], let->var);
    if (is_needed) list_push(arena, &needed, let->value);
  }
  for (uint32_t k = 0; k < needed.count; k++) ir_visit_expr(needed.at[k], stage_load_visit, &find);
  return find.load != NULL;
}

// An initial value is read behind the loops of its reduction, for all elements that these have: a copy that they fill holds one of them then, or none.
static bool check_init(struct pass_context *context, const struct ir_stage *fill, const struct ir_stage *reader) {
  if (reader->kind != STAGE_REDUCE || !init_reads(context->arena, reader, fill->mem)) return true;
  for (uint32_t i = 0; i < fill->axes.count; i++) {
    const struct ir_axis *axis = list_at(&fill->axes, struct ir_stage_axis, i)->axis;
    for (uint32_t k = 0; k < reader->axes.count; k++) {
      const struct ir_stage_axis *used = reader->axes.at[k];
      if (used->axis != axis || !used->is_reduction) continue;
      diag_error(context->diag, ERROR_DIRECTIVE, fill->range, "the copy of '%s' is filled inside axis '%s', over which stage '%s' reduces, and the initial value of that is read behind it",
                 fill->label, axis->var->label, reader->label);
      axis_note(context->diag, axis);
      diag_note(context->diag, (struct range){0}, "legal here: stage ... at an axis outside the reduction");
      return false;
    }
  }
  return true;
}

// Iterations of the loop that has several places in the copy are filled ahead: it stands around all that reads them, as an axis of its own.
static bool check_depth(struct pass_context *context, const struct ir_stage *fill, uint32_t loops) {
  if (fill->depth < 2) return true;
  const struct ir_expr *place = fill->indices.at[0], *counter = place->op == OP_MOD ? place->args[0] : NULL;
  uint32_t loop = 0;
  for (uint32_t i = 0; i < fill->axes.count && counter && counter->op == OP_VAR; i++) {
    const struct ir_axis *axis = list_at(&fill->axes, struct ir_stage_axis, i)->axis;
    bool is_loop = axis->bind == BIND_SERIAL || axis->bind == BIND_VECTOR;
    if (axis->var == counter->var && axis->bind == BIND_SERIAL && loop + 1 == loops) return true;
    if (axis->var == counter->var && !is_loop) {
      diag_error(context->diag, ERROR_DIRECTIVE, fill->range, "the copy of '%s' has places for %u iterations of a loop, and axis '%s' is bound", fill->label, fill->depth, axis->var->label);
      diag_note(context->diag, (struct range){0}, "split it, and leave the inner piece a loop: split %s into sms * 4 -> blocks, turns", axis->var->label);
      return false;
    }
    loop += is_loop;
  }
  diag_error(context->diag, ERROR_DIRECTIVE, fill->range, "the copy of '%s' has places for %u iterations of a loop, which is not the innermost one around all that reads it", fill->label, fill->depth);
  diag_note(context->diag, (struct range){0}, "write this directive behind the ones that change its axes");
  return false;
}

// What is filled ahead is made of the tensor: a copy that it would be made of, or that is made of it, is of another iteration.
static bool check_ahead(struct pass_context *context, const struct ir_entry *entry, const struct ir_stage *fill) {
  for (uint32_t n = 0; n < entry->stages.count && fill->depth > 1; n++) {
    const struct ir_stage *other = entry->stages.at[n];
    if (other == fill || !is_fill(other) || !(reads(other, fill->mem) || reads(fill, other->mem))) continue;
    diag_error(context->diag, ERROR_DIRECTIVE, fill->range, "the copy of '%s' has places for %u iterations of a loop, and '%s' is another copy of the same elements", fill->label, fill->depth, other->label);
    diag_note(context->diag, other->range, "that one is made here");
    return false;
  }
  return true;
}

static bool check_fill(struct pass_context *context, const struct ir_entry *entry, uint32_t place) {
  const struct ir_stage *fill = entry->stages.at[place];
  if (!check_async(context, fill)) return false;
  uint32_t last = place, loops = UINT32_MAX;
  for (uint32_t n = place + 1; n < entry->stages.count; n++) {
    if (reads(entry->stages.at[n], fill->mem)) last = n;
    if (!check_init(context, fill, entry->stages.at[n])) return false;
  }
  for (uint32_t n = place + 1; n <= last; n++) { // a loop goes on while every stage stands in it
    uint32_t common = shared_loops(fill, entry->stages.at[n]);
    if (common < loops) loops = common;
  }
  if (!check_depth(context, fill, loops) || !check_ahead(context, entry, fill)) return false;
  for (uint32_t i = 0, loop = 0; i < fill->axes.count; i++) {
    const struct ir_axis *axis = list_at(&fill->axes, struct ir_stage_axis, i)->axis;
    bool is_loop = axis->bind == BIND_SERIAL || axis->bind == BIND_VECTOR;
    if (is_loop && loop++ >= loops && changes_with(context->arena, fill, axis)) return refuse(context, fill, axis, "is not around all that reads it any more");
  }
  return true;
}

bool schedule_check_copies(struct pass_context *context, const struct ir_entry *entry) {
  for (uint32_t i = 0; i < entry->stages.count; i++)
    if (is_fill(entry->stages.at[i]) && !check_fill(context, entry, i)) return false;
  return true;
}

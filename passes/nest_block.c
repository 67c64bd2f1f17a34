// The block and the grid of a program, and the axes that are bound to them.
//
//   axis i (block.x), axis j (thread.x)   ->   block 32, grid n; let i = block.x, let j = thread.x
//
// The grid is one-dimensional unless y and z are constants below 65536; the general entry loops where it would be too large.
#include <string.h>

#include "passes/allreduce.h"
#include "passes/nest.h"
#include "passes/stage.h"

static void find_not_size(struct ir_expr *e, void *state) {
  if (e->op == OP_LOAD || (e->op == OP_VAR && e->var->kind != VAR_SIZE && e->var->kind != VAR_SCALAR)) *(bool *)state = false;
}

bool nest_is_of_sizes(struct ir_expr *e) {
  bool is_whole = true;
  ir_visit_expr(e, find_not_size, &is_whole);
  return is_whole;
}

static void assume_small(struct nest *n, struct ir_expr *value, const char *message) {
  struct ir_expr *condition = ir_binary(n->arena, OP_LE, value, ir_int(n->arena, TYPE_I64, 2147483647));
  if (ir_const_is(condition, 1)) return;
  for (uint32_t i = 0; i < n->entry->assumptions.count; i++)
    if (ir_equal(list_at(&n->entry->assumptions, struct ir_requirement, i)->condition, condition)) return;
  struct ir_requirement *assumption = arena_new(n->arena, struct ir_requirement);
  assumption->condition = condition;
  assumption->message = message;
  assumption->range = n->entry->range;
  list_push(n->arena, &n->entry->assumptions, assumption);
}

// Names the logical block axes. The grid is one-dimensional unless y and z are constants below 65536; the general entry loops where
// the grid's first dimension would pass 2^31 - 1. Returns the statement list that the program's body goes to.
static struct list *emit_blocks(struct nest *n, struct ir_expr *logical[3]) {
  struct ir_entry *entry = n->entry;
  struct ir_expr *extents[3];
  for (int d = 0; d < 3; d++) extents[d] = entry_grid_extent(n->arena, n->entry, (uint32_t)d);
  bool is_flat = false;
  for (int d = 1; d < 3; d++) is_flat |= !ir_is_const(extents[d]) || extents[d]->integer >= 65536;
  struct list *out = &entry->body;
  struct ir_expr *total = is_flat ? ir_binary(n->arena, OP_MUL, extents[0], ir_binary(n->arena, OP_MUL, extents[1], extents[2])) : extents[0];
  struct ir_expr *most = ir_int(n->arena, TYPE_I64, 2147483647), *one = ir_int(n->arena, TYPE_I64, 1);
  bool is_small = ir_is_const(total) && total->integer <= 2147483647;
  entry->grid[0] = is_small ? total : ir_binary(n->arena, OP_MIN, total, most);
  entry->grid[1] = is_flat ? one : extents[1];
  entry->grid[2] = is_flat ? one : extents[2];
  struct ir_expr *linear = ir_special(n->arena, OP_BLOCK, 0);
  if (!is_small && !entry->is_general) {
    assume_small(n, total, "the grid has more than 2147483647 blocks");
  } else if (!is_small) {
    struct ir_stmt *loop = ir_stmt(n->arena, IR_FOR, entry->range);
    loop->var = ir_new_var(n->kernel, VAR_AXIS, TYPE_INDEX, "round");
    loop->var->mark = 1;
    loop->lo = nest_int(n, 0);
    struct ir_expr *left = ir_binary(n->arena, OP_SUB, ir_cast(n->arena, TYPE_INDEX, total), linear);
    loop->hi = ir_binary(n->arena, OP_QUO, ir_binary(n->arena, OP_ADD, left, nest_int(n, 2147483646)), nest_int(n, 2147483647));
    loop->unroll = 1;
    list_push(n->arena, out, loop);
    out = &loop->body;
    linear = ir_binary(n->arena, OP_ADD, ir_binary(n->arena, OP_MUL, ir_ref(n->arena, loop->var), nest_int(n, 2147483647)), linear);
  }
  if (is_flat) {
    if (linear->op != OP_BLOCK) {
      struct ir_var *block = nest_new_let(n, "block", TYPE_INDEX);
      block->mark = 1;
      nest_emit_let(n, out, block, linear, entry->range);
      linear = ir_ref(n->arena, block);
    }
    struct ir_expr *x = ir_cast(n->arena, TYPE_INDEX, extents[0]), *y = ir_cast(n->arena, TYPE_INDEX, extents[1]);
    struct ir_expr *rest = ir_binary(n->arena, OP_DIV, linear, x);
    logical[0] = ir_binary(n->arena, OP_MOD, linear, x);
    logical[1] = ir_const_is(extents[2], 1) ? rest : ir_binary(n->arena, OP_MOD, rest, y);
    logical[2] = ir_binary(n->arena, OP_DIV, rest, y);
  } else {
    logical[0] = linear;
    for (uint32_t d = 1; d < 3; d++) logical[d] = ir_special(n->arena, OP_BLOCK, d);
  }
  for (int d = 0; d < 3; d++)
    if (ir_const_is(extents[d], 1)) logical[d] = nest_int(n, 0);
  return out;
}

void nest_assume_small_axes(struct nest *n) {
  if (n->entry->is_general) return;
  for (uint32_t i = 0; i < n->entry->stages.count; i++) {
    struct ir_stage *stage = n->entry->stages.at[i];
    for (uint32_t k = 0; k < stage->axes.count; k++) {
      struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, k)->axis;
      struct ir_expr *last = extent_wide(n->arena, axis->extent); // one that depends on another axis is bounded by the tensors that it reaches into
      if (nest_is_of_sizes(last)) assume_small(n, last, "an axis reaches 2^31");
    }
    for (uint32_t k = 0; k < stage->derived.count; k++) { // o * F + i reaches extent(o) * F - 1; pieces of pieces are put in first
      struct ir_expr *value = stage_in_leaves(n->arena, stage, list_at(&stage->derived, struct ir_stmt, k)->value);
      if (value->op == OP_MOD || value->op == OP_DIV) continue; // below what it is made of
      for (uint32_t a = 0; a < stage->axes.count; a++) {
        struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, a)->axis;
        axis->var->subst = axis->extent;
      }
      struct ir_expr *top = extent_wide(n->arena, nest_here(n, value));
      for (uint32_t a = 0; a < stage->axes.count; a++) list_at(&stage->axes, struct ir_stage_axis, a)->axis->var->subst = NULL;
      if (nest_is_of_sizes(top)) assume_small(n, top, "the last step of an axis reaches 2^31");
    }
  }
}

struct list *nest_emit_bound_axes(struct nest *n) {
  struct list *out = emit_blocks(n, n->logical);
  for (uint32_t i = 0; i < n->entry->axes.count; i++) {
    struct ir_axis *axis = n->entry->axes.at[i];
    if (axis->bind == BIND_SERIAL || axis->bind == BIND_VECTOR) continue;
    struct ir_expr *value = bind_is_block(axis->bind) ? n->logical[axis->bind - BIND_BLOCK_X] : ir_special(n->arena, OP_THREAD, (uint32_t)(axis->bind - BIND_THREAD_X));
    axis->var->kind = VAR_LET;
    axis->var->mark = bind_is_block(axis->bind);
    nest_emit_let(n, out, axis->var, value, axis->range);
    axis->var->subst = ir_ref(n->arena, axis->var);
  }
  return out;
}

// Whether the reduction stands in a loop whose range mentions axes on threads, so that groups may leave it at different times.
static bool mentions_threads(const struct ir_stage *stage, const struct ir_expr *e) {
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    const struct ir_stage_axis *axis = stage->axes.at[i];
    if (bind_is_thread(axis->axis->bind) && ir_mentions(e, axis->axis->var)) return true;
  }
  for (uint32_t i = 0; i < stage->derived.count; i++) { // the last ones are made of the first
    const struct ir_stmt *let = stage->derived.at[i];
    if (ir_mentions(e, let->var) && mentions_threads(stage, let->value)) return true;
  }
  return false;
}
static bool is_segmented(const struct work *w) {
  for (uint32_t d = 0; d < w->first_reduction; d++)
    if (mentions_threads(w->stage, list_at(&w->loops, struct ir_stage_axis, d)->axis->extent)) return true;
  return false;
}

bool nest_set_block(struct nest *n) {
  struct ir_entry *entry = n->entry;
  for (int d = 0; d < 3; d++) entry->block[d] = 1;
  for (uint32_t i = 0; i < entry->stages.count; i++)
    for (int d = 0; d < 3; d++) {
      struct ir_axis *axis = stage_bound_axis(entry->stages.at[i], (enum ir_bind)(BIND_THREAD_X + d));
      if (axis && axis->extent->integer > entry->block[d]) entry->block[d] = (uint32_t)axis->extent->integer;
    }
  uint64_t threads = (uint64_t)entry->block[0] * entry->block[1] * entry->block[2];
  if (threads <= 1024) {
    for (uint32_t i = 0; i < n->works.count; i++) { // added threads carry the identity
      struct work *w = n->works.at[i];
      if (!w->thread_axes) continue;
      struct allreduce_request request = {.thread_axes = w->thread_axes, .reducer = w->stage->reducer, .tuples = 1, .result_in_all = nest_result_in_all(n, w),
                                          .form = w->stage->form, .sm = n->context->options->target->sm, .is_segmented = is_segmented(w)};
      memcpy(request.block, entry->block, sizeof request.block);
      allreduce_widen(&request);
      memcpy(entry->block, request.block, sizeof request.block);
    }
    return true;
  }
  diag_error(n->diag, ERROR_BLOCK_SIZE, entry->range, "a block would have %u x %u x %u = %llu threads; at most 1024 are legal", entry->block[0], entry->block[1], entry->block[2],
             (unsigned long long)threads);
  for (uint32_t i = 0; i < entry->axes.count; i++) {
    struct ir_axis *axis = entry->axes.at[i];
    if (!bind_is_thread(axis->bind)) continue;
    diag_note(n->diag, axis->range, "axis '%s' of extent %lld comes from here", axis->var->label, (long long)axis->extent->integer);
    diag_note(n->diag, axis->bound_at, "it is bound to %s here", bind_name(axis->bind));
  }
  diag_note(n->diag, (struct range){0}, "legal here: split these by smaller factors, or leave one a loop");
  return false;
}

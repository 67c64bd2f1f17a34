// cut: reductions over the grid become what each block does, and what the last one does.
//
//   stage B: reduce sum_f32, axes i (block.x), kg (block.y, reduction), kr (reduction); operand load(A, kg * R + kr, i)
//   stage B: store, axes i, B[i] = sum
//   ->
//   stage B: reduce sum_f32, axes i, kg parallel, kr reduction; results sum_part
//   stage B: store, axes i, kg, sum_partial[i, kg] = sum_part
//   stage arrive: counters over y
//   stage B: reduce sum_f32, axes i, piece_o, piece_u (both reduction); operand load(sum_partial, i, piece); results sum
//   stage B: store, axes i, B[i] = sum
//
// Requires stages behind pass `schedule`. Partial values go through the workspace, a piece a block: a counter for each group of blocks that
// share outputs tells the last of them, which combines the pieces in a fixed order, several loads at once, spread over the threads that the
// reduction had; so the bits are the same in every run. Stages that do not need the result run in front of the arrival.
#include <string.h>

#include "compiler/pass.h"
#include "passes/cut.h"
#include "passes/stage.h"

enum { IN_FLIGHT = 8, WORKSPACE_ALIGNMENT = 256 };

// --- Questions ----------------------------------------------------------------------------------------------------------

static uint32_t reduced_blocks(const struct ir_stage *stage) {
  uint32_t mask = 0;
  for (uint32_t i = 0; stage->kind == STAGE_REDUCE && i < stage->axes.count; i++) {
    const struct ir_stage_axis *axis = stage->axes.at[i];
    if (axis->is_reduction && bind_is_block(axis->axis->bind)) mask |= 1u << (axis->axis->bind - BIND_BLOCK_X);
  }
  return mask;
}

static bool reads_stage(const struct ir_stage *stage, const struct ir_stage *source) {
  for (uint32_t k = 0; k < source->results.count; k++)
    if (stage_reads(stage, source->results.at[k])) return true;
  return false;
}

static bool refuse(struct cut *c, struct range range, const char *format, const char *a, const char *b) {
  diag_error(c->context->diag, ERROR_UNSUPPORTED, range, format, a, b);
  return false;
}

// --- The workspace --------------------------------------------------------------------------------------------------------

// Where the next part begins: behind the last one.
static struct ir_expr *workspace_end(struct cut *c) {
  struct arena *arena = c->arena;
  struct ir_expr *end = ir_int(arena, TYPE_I64, WORKSPACE_HEADER_BYTES), *unit = ir_int(arena, TYPE_I64, WORKSPACE_ALIGNMENT), *less = ir_int(arena, TYPE_I64, WORKSPACE_ALIGNMENT - 1);
  for (uint32_t i = 0; i < c->entry->memory.count; i++) {
    const struct ir_mem *mem = c->entry->memory.at[i];
    if (!mem->workspace || ir_const_is(mem->workspace, 0)) continue;
    struct ir_expr *bytes = ir_int(arena, TYPE_I64, type_bytes(mem->type));
    for (uint32_t d = 0; d < mem->dims.count; d++) bytes = ir_binary(arena, OP_MUL, bytes, mem->dims.at[d]);
    end = ir_binary(arena, OP_ADD, mem->workspace, ir_binary(arena, OP_MUL, ir_binary(arena, OP_DIV, ir_binary(arena, OP_ADD, bytes, less), unit), unit));
  }
  return end;
}

struct ir_mem *cut_workspace(struct cut *c, const char *label, enum type type, const struct list *dims, struct range range) {
  struct arena *arena = c->arena;
  struct ir_mem *mem = arena_new(arena, struct ir_mem);
  mem->label = label;
  mem->name = ir_fresh_name(c->kernel, label);
  mem->space = SPACE_GLOBAL;
  mem->type = type;
  mem->alignment = WORKSPACE_ALIGNMENT;
  mem->is_output = mem->is_read = true;
  mem->range = range;
  mem->workspace = workspace_end(c);
  struct ir_expr *row = ir_int(arena, TYPE_I64, 1);
  for (uint32_t d = dims->count; d-- > 0;) {
    list_insert(arena, &mem->dims, 0, dims->at[d]);
    list_insert(arena, &mem->strides, 0, row);
    row = ir_binary(arena, OP_MUL, row, dims->at[d]);
  }
  list_push(arena, &c->entry->memory, mem);
  return mem;
}

struct ir_mem *cut_counters(struct cut *c) {
  for (uint32_t i = 0; i < c->entry->memory.count; i++) {
    struct ir_mem *mem = c->entry->memory.at[i];
    if (mem->workspace && ir_const_is(mem->workspace, 0)) return mem;
  }
  struct list dims = {0};
  list_push(c->arena, &dims, ir_int(c->arena, TYPE_I64, WORKSPACE_COUNTERS));
  struct ir_mem *counters = cut_workspace(c, "counters", TYPE_U32, &dims, c->entry->range);
  counters->workspace = ir_int(c->arena, TYPE_I64, 0);
  return counters;
}

// --- Parts of a reduction ---------------------------------------------------------------------------------------------------

struct ir_axis *cut_axis(struct cut *c, const char *label, struct ir_expr *extent, enum ir_bind bind, struct range range) {
  struct ir_axis *axis = arena_new(c->arena, struct ir_axis);
  axis->var = ir_new_var(c->kernel, VAR_AXIS, TYPE_INDEX, label);
  axis->var->range = axis->range = range;
  axis->extent = extent;
  axis->bind = bind;
  list_push(c->arena, &c->entry->axes, axis);
  return axis;
}

void cut_use_axis(struct cut *c, struct list *axes, struct ir_axis *axis, bool is_reduction) {
  struct ir_stage_axis *used = arena_new(c->arena, struct ir_stage_axis);
  used->axis = axis;
  used->is_reduction = is_reduction;
  list_push(c->arena, axes, used);
}

static struct ir_expr *index_int(struct cut *c, int64_t value) { return ir_int(c->arena, TYPE_INDEX, value); }

static struct ir_expr *ceil_div(struct cut *c, struct ir_expr *a, struct ir_expr *b) {
  return ir_binary(c->arena, OP_DIV, ir_binary(c->arena, OP_ADD, a, ir_binary(c->arena, OP_SUB, b, index_int(c, 1))), b);
}

// The reducer without `update`: its operands are components.
static struct ir_reducer *combining(struct cut *c, struct ir_reducer *reducer) {
  struct arena *arena = c->arena;
  if (!reducer->update.params.count) return reducer;
  const char *name = arena_printf(arena, "%s_pieces", reducer->name);
  for (uint32_t i = 0; i < c->context->module->reducers.count; i++) {
    struct ir_reducer *other = c->context->module->reducers.at[i];
    if (strcmp(other->name, name) == 0 && !other->update.params.count) return other;
  }
  struct ir_reducer *copy = arena_new(arena, struct ir_reducer);
  *copy = *reducer;
  copy->name = name;
  copy->update = (struct ir_function){0};
  copy->combine = (struct ir_function){0};
  const struct ir_function *from = &reducer->combine;
  for (uint32_t i = 0; i < from->params.count; i++) {
    struct ir_var *param = from->params.at[i], *twin = arena_new(arena, struct ir_var);
    *twin = *param;
    list_push(arena, &copy->combine.params, twin);
    param->subst = ir_ref(arena, twin);
  }
  for (uint32_t i = 0; i < from->lets.count; i++) {
    struct ir_stmt *let = from->lets.at[i];
    struct ir_var *twin = arena_new(arena, struct ir_var);
    *twin = *let->var;
    list_push(arena, &copy->combine.lets, ir_let(arena, twin, ir_substitute(arena, let->value), let->range));
    let->var->subst = ir_ref(arena, twin);
  }
  copy->combine.results = from->results;
  ir_substitute_list(arena, &copy->combine.results);
  for (uint32_t i = 0; i < from->params.count; i++) list_at(&from->params, struct ir_var, i)->subst = NULL;
  for (uint32_t i = 0; i < from->lets.count; i++) list_at(&from->lets, struct ir_stmt, i)->var->subst = NULL;
  list_push(arena, &c->context->module->reducers, copy);
  return copy;
}

// The kept axes of a reduction, as dimensions of what it leaves in the workspace.
struct shape {
  struct list outer, inner; // struct ir_axis, outermost first, on either side of the pieces
};

static bool find_shape(struct cut *c, const struct ir_stage *stage, struct shape *shape) {
  *shape = (struct shape){0};
  struct list vectors = {0}, serials = {0};
  bool is_inside = false;
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    const struct ir_stage_axis *used = stage->axes.at[i];
    struct ir_axis *axis = used->axis;
    is_inside |= used->is_reduction && !bind_is_block(axis->bind) && !bind_is_thread(axis->bind);
    if (used->is_reduction) continue;
    if (mentions_axis(axis->extent))
      return refuse(c, axis->range, "axis '%s' has a range that depends on another axis, around the reduction '%s' over the grid", axis->var->label, stage->label);
    if (bind_is_block(axis->bind)) list_push(c->arena, &shape->outer, axis);
    else if (axis->bind == BIND_VECTOR) list_push(c->arena, &vectors, axis);
    else if (!bind_is_thread(axis->bind) && is_inside) list_push(c->arena, &serials, axis);
  }
  for (uint32_t i = 0; i < stage->axes.count; i++) { // loops around the reduction
    const struct ir_stage_axis *used = stage->axes.at[i];
    if (!used->is_reduction && bind_is_block(used->axis->bind)) continue;
    if (used->is_reduction && !bind_is_block(used->axis->bind) && !bind_is_thread(used->axis->bind)) break;
    if (!used->is_reduction && used->axis->bind == BIND_SERIAL) list_push(c->arena, &shape->outer, used->axis);
  }
  for (int b = BIND_THREAD_Z; b >= BIND_THREAD_X; b--)
    for (uint32_t i = 0; i < stage->axes.count; i++) {
      const struct ir_stage_axis *used = stage->axes.at[i];
      if (!used->is_reduction && (int)used->axis->bind == b) list_push(c->arena, &shape->inner, used->axis);
    }
  list_append(c->arena, &shape->inner, &serials);
  list_append(c->arena, &shape->inner, &vectors);
  return true;
}

// The stage's derived axes and guards that have nothing to do with its reduction.
static void keep_outer_parts(struct cut *c, const struct ir_stage *from, struct ir_stage *to) {
  for (uint32_t i = 0; i < from->derived.count; i++) {
    struct ir_stmt *let = from->derived.at[i];
    if (!stage_mentions_reduction(c->arena, from, ir_ref(c->arena, let->var))) list_push(c->arena, &to->derived, let);
  }
  for (uint32_t i = 0; i < from->guards.count; i++)
    if (!stage_mentions_reduction(c->arena, from, from->guards.at[i])) list_push(c->arena, &to->guards, from->guards.at[i]);
}

// Indices of a partial value: the kept axes around the number of the piece.
static struct list partial_indices(struct cut *c, const struct shape *shape, struct ir_expr *piece) {
  struct list indices = {0};
  for (uint32_t i = 0; i < shape->outer.count; i++) list_push(c->arena, &indices, ir_ref(c->arena, list_at(&shape->outer, struct ir_axis, i)->var));
  list_push(c->arena, &indices, piece);
  for (uint32_t i = 0; i < shape->inner.count; i++) list_push(c->arena, &indices, ir_ref(c->arena, list_at(&shape->inner, struct ir_axis, i)->var));
  return indices;
}

// How many pieces there are, and which one a block has: its axes in the order of the nest.
static struct ir_expr *pieces_of(struct cut *c, const struct ir_stage *stage, struct ir_expr **piece) {
  struct ir_expr *count = index_int(c, 1);
  *piece = index_int(c, 0);
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    const struct ir_stage_axis *used = stage->axes.at[i];
    if (!used->is_reduction || !bind_is_block(used->axis->bind)) continue;
    count = ir_binary(c->arena, OP_MUL, count, used->axis->extent);
    *piece = ir_binary(c->arena, OP_ADD, ir_binary(c->arena, OP_MUL, *piece, used->axis->extent), ir_ref(c->arena, used->axis->var));
  }
  return count;
}

// The stage that combines the pieces. Threads of the reduction take pieces in turn; where order matters, each takes neighbours.
static struct ir_stage *make_final(struct cut *c, const struct ir_stage *stage, const struct shape *shape, const struct list *partials, struct ir_expr *pieces, struct ir_axis **in_flight) {
  struct arena *arena = c->arena;
  struct ir_stage *final = arena_new(arena, struct ir_stage);
  *final = *stage;
  final->derived = final->guards = final->lets = final->axes = final->operands = (struct list){0};
  final->combine = COMBINE_AUTO;
  final->combine_flight = 0;
  final->reducer = combining(c, stage->reducer);
  keep_outer_parts(c, stage, final);
  const char *label = "piece";
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    const struct ir_stage_axis *used = stage->axes.at[i];
    if (used->is_reduction && bind_is_block(used->axis->bind)) label = used->axis->var->label;
  }
  // axes: threads that reduce, then loops over what each takes
  struct list threads = {0};
  int64_t width = 1;
  struct ir_expr *thread = index_int(c, 0);
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    const struct ir_stage_axis *used = stage->axes.at[i];
    if (!used->is_reduction || !bind_is_thread(used->axis->bind)) continue;
    struct ir_expr *extent = ir_const_is(used->axis->extent, 0) ? index_int(c, 1) : used->axis->extent; // pieces of nothing are taken too
    struct ir_axis *axis = cut_axis(c, arena_printf(arena, "%s_%s", label, used->axis->var->label), extent, used->axis->bind, stage->range);
    list_push(arena, &threads, axis);
    thread = ir_binary(arena, OP_ADD, ir_binary(arena, OP_MUL, thread, axis->extent), ir_ref(arena, axis->var));
    width *= axis->extent->integer;
  }
  struct ir_expr *steps = ceil_div(c, pieces, index_int(c, width));
  int64_t most = stage->combine_flight ? stage->combine_flight : stage->combine == COMBINE_FLAG ? cut_flag_flight(stage) : IN_FLIGHT, flight = ir_is_const(steps) && steps->integer < most ? steps->integer : most;
  if (flight < 1) flight = 1;
  struct ir_axis *outer = cut_axis(c, arena_printf(arena, "%s_o", label), ceil_div(c, steps, index_int(c, flight)), BIND_SERIAL, stage->range);
  struct ir_axis *unrolled = cut_axis(c, arena_printf(arena, "%s_u", label), index_int(c, flight), BIND_SERIAL, stage->range);
  unrolled->unroll = UINT32_MAX;
  *in_flight = unrolled;
  outer->unroll = 1;
  struct ir_expr *step = ir_binary(arena, OP_ADD, ir_binary(arena, OP_MUL, ir_ref(arena, outer->var), index_int(c, flight)), ir_ref(arena, unrolled->var));
  struct ir_var *number = ir_new_var(c->kernel, VAR_LET, TYPE_INDEX, label);
  number->range = stage->range;
  bool in_order = stage->reducer->is_ordered;
  if (in_order && width > 1) {
    struct ir_var *place = ir_new_var(c->kernel, VAR_LET, TYPE_INDEX, arena_printf(arena, "%s_step", label));
    place->range = stage->range;
    list_push(arena, &final->derived, ir_let(arena, place, step, stage->range));
    step = ir_ref(arena, place);
    list_push(arena, &final->guards, ir_binary(arena, OP_LT, step, steps));
    step = ir_binary(arena, OP_ADD, ir_binary(arena, OP_MUL, thread, steps), step);
  } else {
    step = ir_binary(arena, OP_ADD, ir_binary(arena, OP_MUL, step, index_int(c, width)), thread);
  }
  list_push(arena, &final->derived, ir_let(arena, number, step, stage->range));
  list_push(arena, &final->guards, ir_binary(arena, OP_LT, ir_ref(arena, number), pieces));
  // the nest: kept axes as they were, the pieces where the reduction's loops began, at the latest around vectors
  bool done = false;
  for (uint32_t i = 0; i <= stage->axes.count; i++) {
    const struct ir_stage_axis *used = i < stage->axes.count ? stage->axes.at[i] : NULL;
    bool begins = !used || used->axis->bind == BIND_VECTOR || (used->is_reduction && used->axis->bind == BIND_SERIAL);
    if (begins && !done) {
      done = true;
      for (uint32_t k = 0; k < threads.count; k++) cut_use_axis(c, &final->axes, threads.at[k], true);
      cut_use_axis(c, &final->axes, outer, true);
      cut_use_axis(c, &final->axes, unrolled, true);
    }
    if (used && !used->is_reduction) cut_use_axis(c, &final->axes, used->axis, false);
  }
  struct list indices = partial_indices(c, shape, ir_ref(arena, number));
  for (uint32_t k = 0; k < partials->count; k++) list_push(arena, &final->operands, ir_load(arena, partials->at[k], &indices));
  struct list initial = ir_initial_values(arena, stage); // evaluated here, without the lets of the operands
  for (uint32_t i = 0; i < stage->lets.count; i++) {
    struct ir_stmt *let = stage->lets.at[i];
    bool is_initial = false;
    for (uint32_t k = 0; k < initial.count; k++) is_initial |= initial.at[k] == let->value;
    if (!is_initial) continue;
    struct ir_var *twin = ir_new_var(c->kernel, VAR_LET, let->var->type, let->var->label);
    twin->range = let->var->range;
    list_push(arena, &final->lets, ir_let(arena, twin, ir_substitute(arena, let->value), let->range));
    let->var->subst = ir_ref(arena, twin);
  }
  ir_substitute_list(arena, &final->init);
  for (uint32_t i = 0; i < stage->lets.count; i++) list_at(&stage->lets, struct ir_stmt, i)->var->subst = NULL;
  return final;
}

// Makes `stage` the reduction of one block and appends it to `out`, the stores of its values to `stores`; returns the stage that combines them, or NULL. `kept`: the
// axes (struct ir_axis) that its value is kept over. `waits`, `clears`: stages in front of and behind the one that combines.
static struct ir_stage *cut_reduction(struct cut *c, struct ir_stage *stage, struct list *kept, struct list *out, struct list *stores, struct list *waits, struct list *clears) {
  struct arena *arena = c->arena;
  struct shape shape;
  struct list partials = {0}, values = {0};
  struct ir_expr *piece, *pieces = pieces_of(c, stage, &piece);
  bool by_flag = stage->combine == COMBINE_FLAG;
  if (!find_shape(c, stage, &shape) || (by_flag && !cut_takes_flag(c, stage))) return NULL;
  *kept = list_copy(arena, &shape.outer);
  list_append(arena, kept, &shape.inner);
  for (uint32_t k = 0; k < stage->results.count; k++) {
    struct ir_var *result = stage->results.at[k];
    struct list dims = {0};
    for (uint32_t i = 0; i < shape.outer.count; i++) list_push(arena, &dims, extent_wide(arena, list_at(&shape.outer, struct ir_axis, i)->extent));
    list_push(arena, &dims, extent_wide(arena, pieces));
    for (uint32_t i = 0; i < shape.inner.count; i++) list_push(arena, &dims, extent_wide(arena, list_at(&shape.inner, struct ir_axis, i)->extent));
    struct ir_mem *partial = cut_workspace(c, arena_printf(arena, "%s_partial", result->label), by_flag ? TYPE_U64 : result->type, &dims, stage->range);
    partial->is_polled = by_flag;
    list_push(arena, &partials, partial);
    struct ir_var *value = ir_new_var(c->kernel, VAR_VALUE, result->type, arena_printf(arena, "%s_part", result->label));
    value->range = result->range;
    list_push(arena, &values, value);
  }
  struct ir_axis *in_flight;
  struct ir_stage *final = make_final(c, stage, &shape, &partials, pieces, &in_flight);
  if (by_flag) cut_await(c, final, in_flight, waits, clears);
  for (uint32_t k = 0; k < values.count; k++) {
    struct ir_stage *store = arena_new(arena, struct ir_stage);
    store->kind = STAGE_STORE;
    store->label = stage->label;
    store->range = stage->range;
    keep_outer_parts(c, stage, store);
    for (uint32_t i = 0; i < stage->axes.count; i++) {
      const struct ir_stage_axis *used = stage->axes.at[i];
      if (!used->is_reduction || bind_is_block(used->axis->bind)) cut_use_axis(c, &store->axes, used->axis, false);
    }
    store->mem = partials.at[k];
    store->indices = partial_indices(c, &shape, piece);
    store->value = ir_ref(arena, values.at[k]);
    if (by_flag) store->value = cut_to_word(c, store->value);
    list_push(arena, stores, store);
  }
  struct list axes = {0};
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    const struct ir_stage_axis *used = stage->axes.at[i];
    cut_use_axis(c, &axes, used->axis, used->is_reduction && !bind_is_block(used->axis->bind));
  }
  stage->axes = axes;
  stage->results = values;
  stage->init = (struct list){0};
  list_push(arena, out, stage);
  return final;
}

// --- The pass -----------------------------------------------------------------------------------------------------------

// An ordered reduction keeps its order when blocks are outside threads and loops, and among blocks z is outside y outside x.
static bool is_in_block_order(struct cut *c, const struct ir_stage *stage) {
  const struct ir_axis *before = NULL;
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    const struct ir_stage_axis *axis = stage->axes.at[i];
    if (!axis->is_reduction) continue;
    if (before && bind_is_block(axis->axis->bind) && !bind_is_block(before->bind)) {
      diag_error(c->context->diag, ERROR_DIRECTIVE, axis->axis->bound_at.line ? axis->axis->bound_at : axis->axis->range,
                 "stage '%s' is an ordered reduction: axis '%s' on blocks must be outside '%s'", stage->label, axis->axis->var->label, before->var->label);
      axis_note(c->context->diag, axis->axis);
      axis_note(c->context->diag, before);
      diag_note(c->context->diag, (struct range){0}, "legal here: give each block a piece of neighbours: split x into 32 -> b, r; bind b -> block.x;");
      return false;
    }
    before = axis->axis;
  }
  return true;
}

static bool uses_blocks(const struct ir_stage *stage, uint32_t mask) {
  for (uint32_t d = 0; d < 3; d++)
    if (mask >> d & 1 && stage_bound_axis(stage, (enum ir_bind)(BIND_BLOCK_X + d))) return true;
  return false;
}

static void assume_at_most(struct cut *c, struct ir_expr *value, int64_t most, const char *message) {
  struct ir_expr *condition = ir_binary(c->arena, OP_LE, value, ir_int(c->arena, TYPE_I64, most));
  if (ir_const_is(condition, 1)) return;
  struct ir_requirement *assumption = arena_new(c->arena, struct ir_requirement);
  assumption->condition = condition;
  assumption->message = message;
  assumption->range = c->entry->range;
  list_push(c->arena, &c->entry->assumptions, assumption);
}

// What a launch must keep to: counters there are, and numbers that they reach.
static void assume_limits(struct cut *c, uint32_t mask, bool by_flag) {
  struct ir_expr *groups = ir_int(c->arena, TYPE_I64, 1), *blocks = groups;
  for (uint32_t d = 0; d < 3; d++) {
    struct ir_expr *extent = entry_grid_extent(c->arena, c->entry, d);
    if (mask >> d & 1) blocks = ir_binary(c->arena, OP_MUL, blocks, extent);
    else groups = ir_binary(c->arena, OP_MUL, groups, extent);
  }
  if (!by_flag) assume_at_most(c, groups, WORKSPACE_COUNTERS, "a reduction over the grid has more than 16384 groups of blocks");
  assume_at_most(c, blocks, INT32_MAX, "a reduction over the grid has more than 2147483647 blocks");
}

// What becomes of a stage.
struct part {
  struct ir_stage *stage;
  bool is_reduced; // over the grid, by this launch
  bool waits;      // for such a value
  bool is_next;    // of a later launch
  struct list axes; // is_reduced: struct ir_axis that its value is kept over
};

// Whether a stage uses an array that another one fills.
static void find_array(struct ir_expr *e, void *state) {
  struct ir_mem **mem = state;
  if (e->op == OP_LOAD && e->mem == *mem) *mem = NULL;
}
static bool reads_array(const struct ir_stage *stage, struct ir_mem *mem) {
  const struct list *lists[] = {&stage->guards, &stage->operands, &stage->init, &stage->indices};
  for (uint32_t l = 0; l < 4; l++)
    for (uint32_t i = 0; i < lists[l]->count; i++) ir_visit_expr(lists[l]->at[i], find_array, &mem);
  ir_visit_block(&stage->lets, find_array, &mem);
  if (stage->value) ir_visit_expr(stage->value, find_array, &mem);
  return !mem;
}

// Whether the initial value of a reduction, which is asked for where its pieces are combined, reads the array.
static bool is_read_initially(struct arena *arena, const struct ir_stage *stage, struct ir_mem *mem) {
  struct list values = ir_initial_values(arena, stage);
  for (uint32_t i = 0; i < values.count; i++) ir_visit_expr(values.at[i], find_array, &mem);
  return !mem;
}

static bool feeds(const struct ir_stage *source, const struct ir_stage *stage) {
  if (source->kind == STAGE_STORE) return source->mem->space != SPACE_GLOBAL && source != stage && reads_array(stage, source->mem);
  return source->kind == STAGE_REDUCE && reads_stage(stage, source);
}

static uint32_t used_blocks(const struct ir_stage *stage) {
  uint32_t mask = 0;
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    const struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, i)->axis;
    if (bind_is_block(axis->bind)) mask |= 1u << (axis->bind - BIND_BLOCK_X);
  }
  return mask;
}

// Which reductions this launch makes, what waits for them, and what a later launch must do. Returns the block axes reduced; 0: none.
// Of block axes that a reduction has not at all, only the first blocks along them have its value: what uses such axes is of a later launch.
static uint32_t plan_parts(struct part *parts, uint32_t count, enum combine_form *form) {
  uint32_t mask = 0, missing = 0, all = 0;
  for (uint32_t i = 0; i < count; i++) all |= used_blocks(parts[i].stage);
  for (uint32_t i = 0; i < count; i++) {
    struct part *part = &parts[i];
    uint32_t reduced = reduced_blocks(part->stage);
    bool is_behind = false; // something that is not of this launch
    for (uint32_t k = 0; k < i; k++)
      if (feeds(parts[k].stage, part->stage)) {
        part->waits |= parts[k].is_reduced || parts[k].waits;
        is_behind |= parts[k].is_next;
      }
    if (reduced && !part->waits && !is_behind && (!mask || (reduced == mask && part->stage->combine == *form && missing == (all & ~used_blocks(part->stage))))) {
      part->is_reduced = true;
      *form = part->stage->combine;
      mask = reduced;
      missing = all & ~used_blocks(part->stage);
    } else {
      part->is_next = reduced || is_behind || (part->waits && (*form == COMBINE_SECOND_KERNEL || uses_blocks(part->stage, mask | missing)));
    }
  }
  return mask;
}

// Whether the places that the stage fills are the same for all elements of the axis, a vector's: what they hold is for the readers inside the same vector.
static bool is_reused_along(const struct ir_stage *stage, const struct ir_axis *axis) {
  bool is_mentioned = false;
  for (uint32_t i = 0; i < stage->indices.count; i++) is_mentioned |= ir_mentions(stage->indices.at[i], axis->var);
  return axis->bind == BIND_VECTOR && !is_mentioned;
}

// What is copied or kept is filled on the side of the arrival where it is read, in the loops that it shares with its readers: where pieces are combined, vectors
// are taken apart into loops.
static bool place_fills(struct cut *c, struct part *parts, uint32_t count, enum combine_form form) {
  for (uint32_t i = count; i-- > 0;) {
    struct part *part = &parts[i];
    if (part->stage->kind != STAGE_STORE || part->stage->mem->space == SPACE_GLOBAL || part->waits || part->is_next) continue;
    uint32_t before = 0, behind = 0;
    const struct ir_stage *reader = NULL;
    bool has_loop = false;
    for (uint32_t k = i + 1; k < count; k++) {
      if (!feeds(part->stage, parts[k].stage)) continue;
      if (parts[k].is_next) {
        bool is_reused = false;
        for (uint32_t b = 0; b < part->stage->axes.count; b++) is_reused |= is_reused_along(part->stage, list_at(&part->stage->axes, struct ir_stage_axis, b)->axis);
        if (is_reused && before + behind > 0)
          return refuse(c, parts[k].stage->range, "stage '%s' reads the copy '%s' in the launch behind a reduction over the grid and others in front of it, inside a vector: that is not lowered by this version", parts[k].stage->label, part->stage->label);
        continue;
      }
      bool waits = parts[k].waits && !parts[k].is_reduced;
      bool is_initial = parts[k].is_reduced && form != COMBINE_SECOND_KERNEL && is_read_initially(c->arena, parts[k].stage, part->stage->mem);
      before += !waits;
      behind += waits || is_initial;
      if (!waits && !is_initial) continue;
      reader = parts[k].stage;
      for (uint32_t a = 0; a < reader->axes.count; a++)
        for (uint32_t b = 0; b < part->stage->axes.count; b++) {
          const struct ir_axis *axis = list_at(&reader->axes, struct ir_stage_axis, a)->axis;
          has_loop |= axis == list_at(&part->stage->axes, struct ir_stage_axis, b)->axis && (axis->bind == BIND_SERIAL || is_reused_along(part->stage, axis));
        }
    }
    if (behind && !before) part->waits = true;
    else if (behind && has_loop)
      return refuse(c, reader->range, "stage '%s' reads the copy '%s' behind a reduction over the grid and others in front of it, inside a loop: that is not lowered by this version", reader->label, part->stage->label);
  }
  return true;
}

// The stages of the next launch: those that are for it, and what they need that is no value of the grid. `in_next`: the pieces are combined there, under
// the guards and with the initial value of the reduction.
static bool *needed_next(struct cut *c, const struct part *parts, uint32_t count, bool in_next) {
  bool *needed = arena_array(c->arena, bool, count + 1);
  for (uint32_t i = count; i-- > 0;) {
    needed[i] = parts[i].is_next;
    for (uint32_t k = i + 1; k < count && !needed[i]; k++) needed[i] = (needed[k] || (in_next && parts[k].is_reduced)) && !parts[i].is_reduced && feeds(parts[i].stage, parts[k].stage);
  }
  return needed;
}

// Takes away reductions and arrays that nothing uses any more.
static void drop_dead(struct list *stages) {
  for (uint32_t i = stages->count; i-- > 0;) {
    const struct ir_stage *stage = stages->at[i];
    bool is_used = stage->kind == STAGE_ARRIVE || (stage->kind == STAGE_STORE && stage->mem->space == SPACE_GLOBAL);
    for (uint32_t k = i + 1; k < stages->count && !is_used; k++) is_used = feeds(stage, stages->at[k]);
    if (!is_used) list_remove(stages, i);
  }
}

static bool has_guard(const struct ir_stage *stage, const struct ir_expr *guard) {
  for (uint32_t i = 0; i < stage->guards.count; i++)
    if (ir_equal(stage->guards.at[i], guard)) return true;
  return false;
}

// Whether all stages that read the value ask this themselves.
static bool is_asked_by_readers(const struct part *parts, uint32_t count, const bool *needed, const struct ir_var *value, const struct ir_expr *guard) {
  for (uint32_t i = 0; i < count; i++)
    if (needed[i] && stage_reads(parts[i].stage, value) && !has_guard(parts[i].stage, guard)) return false;
  return true;
}

// A stage of the last block that leaves a value for later launches, wherever one of these reads it.
static struct ir_stage *keep_value(struct cut *c, const struct part *parts, uint32_t count, const bool *needed, const struct ir_stage *final, uint32_t component, const struct list *axes, struct cut_value *value) {
  struct arena *arena = c->arena;
  struct ir_stage *store = arena_new(arena, struct ir_stage);
  struct list dims = {0};
  value->var = final->results.at[component];
  value->axes = *axes;
  for (uint32_t i = 0; i < axes->count; i++) list_push(arena, &dims, extent_wide(arena, list_at(axes, struct ir_axis, i)->extent));
  value->mem = cut_workspace(c, arena_printf(arena, "%s_kept", value->var->label), value->var->type, &dims, final->range);
  store->kind = STAGE_STORE;
  store->label = final->label;
  store->range = final->range;
  store->mem = value->mem;
  store->value = ir_ref(arena, value->var);
  for (uint32_t i = 0; i < final->derived.count; i++) {
    struct ir_stmt *let = final->derived.at[i];
    if (!stage_mentions_reduction(arena, final, ir_ref(arena, let->var))) list_push(arena, &store->derived, let);
  }
  for (uint32_t i = 0; i < final->guards.count; i++) {
    struct ir_expr *guard = final->guards.at[i];
    if (!stage_mentions_reduction(arena, final, guard) && is_asked_by_readers(parts, count, needed, value->var, guard)) list_push(arena, &store->guards, guard);
  }
  for (uint32_t i = 0; i < final->axes.count; i++) {
    const struct ir_stage_axis *used = final->axes.at[i];
    if (!used->is_reduction) cut_use_axis(c, &store->axes, used->axis, false);
  }
  for (uint32_t i = 0; i < axes->count; i++) list_push(arena, &store->indices, ir_ref(arena, list_at(axes, struct ir_axis, i)->var));
  return store;
}

// A value of the grid is read in every place that has the axes which it is kept over.
static bool has_axes(const struct ir_stage *stage, const struct list *axes) {
  for (uint32_t i = 0; i < axes->count; i++) {
    bool found = false;
    for (uint32_t k = 0; k < stage->axes.count; k++) found |= list_at(&stage->axes, struct ir_stage_axis, k)->axis == axes->at[i];
    if (!found) return false;
  }
  return true;
}

// Values that the next launch reads from the workspace, with the stages that leave them there.
static bool keep_values(struct cut *c, struct part *parts, uint32_t count, const bool *needed, struct list *finals, struct list *behind, struct list *values) {
  for (uint32_t i = 0, n = 0; i < count; i++) {
    if (!parts[i].is_reduced) continue;
    const struct ir_stage *final = finals->at[n++];
    for (uint32_t k = 0; k < final->results.count; k++) {
      bool is_read = false;
      for (uint32_t s = 0; s < count; s++) {
        if (!needed[s] || !stage_reads(parts[s].stage, final->results.at[k])) continue;
        is_read = true;
        if (!has_axes(parts[s].stage, &parts[i].axes))
          return refuse(c, parts[s].stage->range, "stage '%s' reads the result of '%s', reduced over the grid, over other axes than it is kept over: that is not lowered by this version", parts[s].stage->label,
                        final->label);
      }
      if (!is_read) continue;
      struct cut_value *value = arena_new(c->arena, struct cut_value);
      list_push(c->arena, behind, keep_value(c, parts, count, needed, final, k, &parts[i].axes, value));
      list_push(c->arena, values, value);
    }
  }
  return true;
}

bool pass_cut(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry) {
  struct cut c = {.context = context, .arena = context->arena, .kernel = kernel, .entry = entry};
  struct arena *arena = c.arena;
  for (uint32_t i = 0; i < entry->stages.count; i++) {
    struct ir_stage *stage = entry->stages.at[i];
    if (reduced_blocks(stage) && stage->combine == COMBINE_ATOMIC && !cut_atomic(&c, stage)) return false;
  }
  drop_dead(&entry->stages); // no one would take the pieces of a value that nothing reads
  uint32_t count = entry->stages.count;
  struct part *parts = arena_array(arena, struct part, count + 1);
  for (uint32_t i = 0; i < count; i++) parts[i].stage = entry->stages.at[i];
  enum combine_form form = COMBINE_AUTO;
  uint32_t mask = plan_parts(parts, count, &form);
  if (!mask) return true;
  if (!place_fills(&c, parts, count, form)) return false;
  struct list before = {0}, behind = {0}, finals = {0}, next = {0}, values = {0}, stores = {0};
  bool has_next = false, in_next = form == COMBINE_SECOND_KERNEL;
  bool *needed = needed_next(&c, parts, count, in_next);
  for (uint32_t i = 0; i < count; i++) {
    struct part *part = &parts[i];
    if (part->is_reduced) {
      if (part->stage->reducer->is_ordered && !is_in_block_order(&c, part->stage)) return false;
      struct list waits = {0}, clears = {0};
      struct ir_stage *final = cut_reduction(&c, part->stage, &part->axes, &before, &stores, &waits, &clears);
      if (!final) return false;
      list_push(arena, &finals, final);
      list_append(arena, &behind, &waits);
      list_push(arena, in_next ? &next : &behind, final);
      list_append(arena, &behind, &clears);
    } else if (!part->is_next) {
      if (!part->waits) list_append(arena, &before, &stores), stores.count = 0;
      list_push(arena, part->waits ? &behind : &before, part->stage);
    }
    if (needed[i]) list_push(arena, &next, part->stage);
    has_next |= needed[i] || (part->is_reduced && in_next);
  }
  list_append(arena, &before, &stores); // behind all reductions that stand side by side: those that are joined share a loop
  if (has_next && !in_next && !keep_values(&c, parts, count, needed, &finals, &behind, &values)) return false;
  if (in_next) drop_dead(&next);
  if (has_next) cut_next_launch(&c, &next, &values);
  if (!in_next) {
    struct ir_stage *arrive = arena_new(arena, struct ir_stage);
    arrive->kind = STAGE_ARRIVE;
    arrive->label = "arrive";
    arrive->range = entry->range;
    arrive->mem = form == COMBINE_FLAG ? NULL : cut_counters(&c);
    arrive->block_axes = mask;
    list_push(arena, &before, arrive);
    list_append(arena, &before, &behind);
  }
  entry->stages = before;
  drop_dead(&entry->stages);
  cut_drop_unused(&c, entry);
  if (!in_next) assume_limits(&c, mask, form == COMBINE_FLAG);
  return true;
}

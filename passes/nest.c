// nest: stages become one thread's loop nest.
//
//   stage B: reduce sum_f32, axes i (block.x), jo, ji (thread.x); derived j = jo * 32 + ji; guard j < m; operand load(A, i, j)
//   stage B: store, axes i (block.x), B[i] = sum
//   ->
//   let i = block.x
//   let ji = thread.x
//   var acc = 0
//   for jo in 0 .. (m + 31) / 32 {
//     let j = jo * 32 + ji
//     if j < m { set acc = acc + load(A, i, j) }
//   }
//   allreduce sum = sum_f32(acc) over x
//   if thread.x == 0 { store B[i] = sum }
//
// Requires bound axes with constant thread extents. Axes that neighbouring stages share become shared loops. Output axes inside a
// reduction make its accumulator an array. A condition around a reduction over threads becomes a select, whatever it depends on,
// so that every thread takes part. Afterwards the entry is at LEVEL_PROGRAM, with its block and its grid.
#include <string.h>

#include "compiler/pass.h"
#include "passes/allreduce.h"
#include "passes/arrival.h"
#include "passes/nest.h"
#include "passes/stage.h"

enum { NO_PLACE = UINT32_MAX, MAX_LOCAL = 1024 };

static struct ir_expr *index_int(struct nest *n, int64_t value) { return ir_int(n->arena, TYPE_INDEX, value); }

// --- Small questions ------------------------------------------------------------------------------------------------

// Whether every variable in e can be named here: axes and derived axes by what replaces them.
static void find_unknown(struct ir_expr *e, void *state) {
  if (e->op == OP_VAR && !e->var->subst && (e->var->kind == VAR_AXIS || e->var->kind == VAR_LET || e->var->kind == VAR_VALUE)) *(bool *)state = true;
}
static bool is_available(struct ir_expr *e) {
  bool unknown = false;
  ir_visit_expr(e, find_unknown, &unknown);
  return !unknown;
}

static void find_load(struct ir_expr *e, void *state) {
  if (e->op == OP_LOAD || e->op == OP_LOAD_FLAT || (e->op == OP_VAR && e->var->kind == VAR_VALUE)) *(bool *)state = true;
}

// Whether e is the same in every thread of a block: made of sizes, scalars and block axes.
static void find_varying(struct ir_expr *e, void *state) {
  if (e->op == OP_THREAD || e->op == OP_LOAD || e->op == OP_LOAD_FLAT || (e->op == OP_VAR && e->var->kind != VAR_SIZE && e->var->kind != VAR_SCALAR && !e->var->mark))
    *(bool *)state = true;
}
static bool is_block_uniform(struct ir_expr *e) {
  bool varying = false;
  ir_visit_expr(e, find_varying, &varying);
  return !varying;
}

static struct ir_expr *here(struct nest *n, struct ir_expr *e) { return ir_substitute(n->arena, e); }

static void find_not_size(struct ir_expr *e, void *state) {
  if (e->op == OP_LOAD || (e->op == OP_VAR && e->var->kind != VAR_SIZE && e->var->kind != VAR_SCALAR)) *(bool *)state = false;
}

// --- Geometry -----------------------------------------------------------------------------------------------------------

static struct ir_expr *grid_extent(struct nest *n, int d) { return entry_grid_extent(n->arena, n->entry, (uint32_t)d); }

static void emit_let(struct nest *n, struct list *out, struct ir_var *var, struct ir_expr *value, struct range range) {
  list_push(n->arena, out, ir_let(n->arena, var, value, range));
}

static struct ir_var *new_let(struct nest *n, const char *label, enum type type) { return ir_new_var(n->kernel, VAR_LET, type, label); }

static void assume_small(struct nest *n, struct ir_expr *value, const char *message);

// Names the logical block axes. The grid is one-dimensional unless y and z are constants below 65536; the general entry loops where
// the grid's first dimension would pass 2^31 - 1. Returns the statement list that the program's body goes to.
static struct list *emit_blocks(struct nest *n, struct ir_expr *logical[3]) {
  struct ir_entry *entry = n->entry;
  struct ir_expr *extents[3];
  for (int d = 0; d < 3; d++) extents[d] = grid_extent(n, d);
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
    loop->lo = index_int(n, 0);
    struct ir_expr *left = ir_binary(n->arena, OP_SUB, ir_cast(n->arena, TYPE_INDEX, total), linear);
    loop->hi = ir_binary(n->arena, OP_QUO, ir_binary(n->arena, OP_ADD, left, index_int(n, 2147483646)), index_int(n, 2147483647));
    loop->unroll = 1;
    list_push(n->arena, out, loop);
    out = &loop->body;
    linear = ir_binary(n->arena, OP_ADD, ir_binary(n->arena, OP_MUL, ir_ref(n->arena, loop->var), index_int(n, 2147483647)), linear);
  }
  if (is_flat) {
    if (linear->op != OP_BLOCK) {
      struct ir_var *block = new_let(n, "block", TYPE_INDEX);
      block->mark = 1;
      emit_let(n, out, block, linear, entry->range);
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
  return out;
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

// The fast entry computes with 32-bit indices: every axis, its last step included, stays below 2^31.
static void assume_small_axes(struct nest *n) {
  if (n->entry->is_general) return;
  for (uint32_t i = 0; i < n->entry->stages.count; i++) {
    struct ir_stage *stage = n->entry->stages.at[i];
    for (uint32_t k = 0; k < stage->axes.count; k++) {
      struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, k)->axis;
      bool is_whole = true; // an extent that depends on another axis is bounded by the tensors that it reaches into
      struct ir_expr *last = extent_wide(n->arena, axis->extent);
      ir_visit_expr(last, find_not_size, &is_whole);
      if (is_whole) assume_small(n, last, "an axis reaches 2^31");
    }
    for (uint32_t k = 0; k < stage->derived.count; k++) { // o * F + i reaches extent(o) * F - 1
      struct ir_stmt *let = stage->derived.at[k];
      for (uint32_t a = 0; a < stage->axes.count; a++) {
        struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, a)->axis;
        axis->var->subst = axis->extent;
      }
      struct ir_expr *top = extent_wide(n->arena, here(n, let->value));
      for (uint32_t a = 0; a < stage->axes.count; a++) list_at(&stage->axes, struct ir_stage_axis, a)->axis->var->subst = NULL;
      bool is_whole = true;
      ir_visit_expr(top, find_not_size, &is_whole);
      if (is_whole) assume_small(n, top, "the last step of an axis reaches 2^31");
    }
  }
}

// Every bound axis becomes a let at the top. Returns the list that the rest of the program goes to.
static struct list *emit_bound_axes(struct nest *n) {
  struct list *out = emit_blocks(n, n->logical);
  for (uint32_t i = 0; i < n->entry->axes.count; i++) {
    struct ir_axis *axis = n->entry->axes.at[i];
    if (axis->bind == BIND_SERIAL || axis->bind == BIND_VECTOR) continue;
    struct ir_expr *value = bind_is_block(axis->bind) ? n->logical[axis->bind - BIND_BLOCK_X] : ir_special(n->arena, OP_THREAD, (uint32_t)(axis->bind - BIND_THREAD_X));
    axis->var->kind = VAR_LET;
    axis->var->mark = bind_is_block(axis->bind);
    emit_let(n, out, axis->var, value, axis->range);
    axis->var->subst = ir_ref(n->arena, axis->var);
  }
  return out;
}

// --- Accumulators -----------------------------------------------------------------------------------------------------

static uint32_t component_count(const struct ir_stage *stage) { return stage->reducer->identity.count; }

static struct ir_expr *identity(const struct ir_stage *stage, uint32_t component) { return stage->reducer->identity.at[component]; }

static struct ir_mem *new_local(struct nest *n, const char *label, enum type type, const struct list *axes) {
  struct ir_mem *mem = arena_new(n->arena, struct ir_mem);
  mem->label = label;
  mem->name = ir_fresh_name(n->kernel, label);
  mem->space = SPACE_LOCAL;
  mem->type = type;
  mem->alignment = type_bytes(type);
  int64_t row = 1;
  for (uint32_t i = axes->count; i-- > 0;) {
    int64_t extent = list_at(axes, struct ir_axis, i)->extent->integer;
    if (extent < 1) extent = 1; // an array has elements even where no loop runs
    list_insert(n->arena, &mem->dims, 0, ir_int(n->arena, TYPE_I64, extent));
    list_insert(n->arena, &mem->strides, 0, ir_int(n->arena, TYPE_I64, row));
    row *= extent;
  }
  list_push(n->arena, &n->entry->memory, mem);
  return mem;
}

static struct list axis_refs(struct nest *n, const struct list *axes) {
  struct list refs = {0};
  for (uint32_t i = 0; i < axes->count; i++) list_push(n->arena, &refs, here(n, ir_ref(n->arena, list_at(axes, struct ir_axis, i)->var)));
  return refs;
}

static struct ir_expr *read_accumulator(struct nest *n, struct work *w, uint32_t component) {
  if (w->inner_axes.count == 0) return ir_ref(n->arena, w->accumulators.at[component]);
  struct list refs = axis_refs(n, &w->inner_axes);
  return ir_load(n->arena, w->accumulators.at[component], &refs);
}

static void write_memory(struct nest *n, struct list *out, struct ir_mem *mem, const struct list *axes, struct ir_expr *value, struct range range) {
  struct ir_stmt *store = ir_stmt(n->arena, IR_STORE, range);
  store->mem = mem;
  store->indices = axis_refs(n, axes);
  store->value = value;
  list_push(n->arena, out, store);
}

static void write_accumulator(struct nest *n, struct work *w, struct list *out, uint32_t component, struct ir_expr *value) {
  if (w->inner_axes.count) {
    write_memory(n, out, w->accumulators.at[component], &w->inner_axes, value, w->stage->range);
    return;
  }
  struct ir_stmt *set = ir_stmt(n->arena, IR_SET, w->stage->range);
  set->var = w->accumulators.at[component];
  set->value = value;
  list_push(n->arena, out, set);
}

// Opens a loop over each axis (new loop variables); returns the innermost body. close_loops undoes the substitutions.
static struct list *open_loops(struct nest *n, struct list *out, const struct list *axes, struct range range) {
  for (uint32_t i = 0; i < axes->count; i++) {
    struct ir_axis *axis = axes->at[i];
    struct ir_stmt *loop = ir_stmt(n->arena, IR_FOR, range);
    loop->var = ir_new_var(n->kernel, VAR_AXIS, TYPE_INDEX, axis->var->label);
    loop->lo = index_int(n, 0);
    loop->hi = here(n, axis->extent);
    loop->unroll = UINT32_MAX; // it indexes a local array
    list_push(n->arena, out, loop);
    axis->var->subst = ir_ref(n->arena, loop->var);
    out = &loop->body;
  }
  return out;
}

static void close_loops(const struct list *axes) {
  for (uint32_t i = 0; i < axes->count; i++) list_at(axes, struct ir_axis, i)->var->subst = NULL;
}

static void emit_init(struct nest *n, struct work *w, struct list *out) {
  struct ir_stage *stage = w->stage;
  for (uint32_t k = 0; k < component_count(stage); k++) {
    struct ir_var *result = stage->results.at[k];
    if (w->inner_axes.count) {
      list_push(n->arena, &w->accumulators, new_local(n, result->label, result->type, &w->inner_axes));
    } else {
      struct ir_stmt *var = ir_stmt(n->arena, IR_VAR, stage->range);
      var->var = ir_new_var(n->kernel, VAR_MUTABLE, result->type, arena_printf(n->arena, "%s_acc", result->label));
      var->value = identity(stage, k);
      list_push(n->arena, out, var);
      list_push(n->arena, &w->accumulators, var->var);
    }
  }
  if (w->inner_axes.count) {
    struct list *body = open_loops(n, out, &w->inner_axes, stage->range);
    for (uint32_t k = 0; k < component_count(stage); k++) write_accumulator(n, w, body, k, identity(stage, k));
    close_loops(&w->inner_axes);
  }
}

// Lets of the stage, renamed so that a stage may be emitted anywhere; their substitutions stay set until end_lets.
static void begin_lets(struct nest *n, struct work *w, struct list *out) {
  for (uint32_t i = 0; i < w->stage->lets.count; i++) {
    struct ir_stmt *let = w->stage->lets.at[i];
    emit_let(n, out, let->var, here(n, let->value), let->range);
    let->var->subst = ir_ref(n->arena, let->var);
  }
}
static void end_lets(struct work *w) {
  for (uint32_t i = 0; i < w->stage->lets.count; i++) list_at(&w->stage->lets, struct ir_stmt, i)->var->subst = NULL;
}

// An operand that is no leaf gets a name, since combine may use it more than once.
static struct ir_expr *named(struct nest *n, struct list *out, struct ir_expr *e, const char *label, struct range range) {
  if (e->op == OP_CONST || e->op == OP_VAR) return e;
  struct ir_var *var = new_let(n, label, e->type);
  emit_let(n, out, var, e, range);
  return ir_ref(n->arena, var);
}

// Sets accumulators to new values that may all depend on all old ones.
static void set_all(struct nest *n, struct work *w, struct list *out, struct ir_expr **values) {
  uint32_t count = component_count(w->stage);
  for (uint32_t k = 0; k < count && count > 1; k++) values[k] = named(n, out, values[k], "next", w->stage->range);
  for (uint32_t k = 0; k < count; k++) write_accumulator(n, w, out, k, values[k]);
}

// One iteration: accumulator = update(accumulator, operands).
static void emit_update(struct nest *n, struct work *w, struct list *out, bool is_only) {
  struct ir_stage *stage = w->stage;
  const struct ir_reducer *reducer = stage->reducer;
  uint32_t components = component_count(stage), operands = stage->operands.count;
  bool has_update = reducer->update.params.count != 0;
  struct ir_expr **arguments = arena_array(n->arena, struct ir_expr *, components + operands), **values = arena_array(n->arena, struct ir_expr *, components);
  begin_lets(n, w, out);
  for (uint32_t k = 0; k < operands; k++) arguments[components + k] = here(n, stage->operands.at[k]);
  end_lets(w);
  if (is_only && !has_update) {
    set_all(n, w, out, arguments + components);
    return;
  }
  bool is_simple = reducer->combine.lets.count == 0 && components == 1 && !has_update;
  for (uint32_t k = 0; k < operands && !is_simple; k++) arguments[components + k] = named(n, out, arguments[components + k], "x", stage->range);
  for (uint32_t k = 0; k < components; k++) arguments[k] = w->inner_axes.count ? named(n, out, read_accumulator(n, w, k), "before", stage->range) : read_accumulator(n, w, k);
  ir_inline(n->kernel, has_update ? &reducer->update : &reducer->combine, arguments, out, stage->range, values);
  set_all(n, w, out, values);
}

// Whether a later stage needs the result in every thread, or only where the reduced coordinates are all zero: a store that uses none of
// the reduced thread axes runs there alone.
static bool result_in_all(struct nest *n, struct work *w) {
  bool seen = false;
  for (uint32_t i = 0; i < n->works.count; i++) {
    struct work *other = n->works.at[i];
    if (other == w) {
      seen = true;
      continue;
    }
    if (!seen) continue;
    bool uses = other->stage->kind == STAGE_REDUCE || other->stage->mem->space != SPACE_GLOBAL;
    for (int d = 0; d < 3; d++)
      if (w->thread_axes & (1u << d) && stage_bound_axis(other->stage, (enum ir_bind)(BIND_THREAD_X + d))) uses = true;
    if (!uses) continue;
    for (uint32_t k = 0; k < w->stage->results.count; k++) {
      struct ir_var *result = w->stage->results.at[k];
      const struct list *lists[] = {&other->stage->guards, &other->stage->operands, &other->stage->init, &other->stage->indices};
      for (uint32_t l = 0; l < 4; l++)
        for (uint32_t e = 0; e < lists[l]->count; e++)
          if (ir_mentions(lists[l]->at[e], result)) return true;
      for (uint32_t e = 0; e < other->stage->lets.count; e++)
        if (ir_mentions(list_at(&other->stage->lets, struct ir_stmt, e)->value, result)) return true;
      if (other->stage->value && ir_mentions(other->stage->value, result)) return true;
    }
  }
  return false;
}

// How many accumulators are reduced over threads side by side, with the same barriers; 0: one after another, in a loop.
static uint32_t tuples_at_once(struct nest *n, const struct work *w) {
  enum { MOST_TUPLES = 16, MOST_BYTES = 16384 };
  int64_t tuples = 1, bytes = 0;
  for (uint32_t i = 0; i < w->inner_axes.count; i++) tuples *= list_at(&w->inner_axes, struct ir_axis, i)->extent->integer;
  for (uint32_t k = 0; k < component_count(w->stage); k++) bytes += type_bytes(((struct ir_expr *)w->stage->reducer->identity.at[k])->type);
  bytes *= tuples * n->entry->block[0] * n->entry->block[1] * n->entry->block[2];
  return w->thread_axes && w->inner_axes.count && tuples <= MOST_TUPLES && bytes <= MOST_BYTES ? (uint32_t)tuples : 0;
}

// Names the elements of the inner axes by the number of one of them.
static void choose_element(struct nest *n, const struct list *axes, uint32_t element) {
  for (uint32_t i = axes->count; i-- > 0;) {
    struct ir_axis *axis = axes->at[i];
    uint32_t extent = (uint32_t)axis->extent->integer;
    axis->var->subst = index_int(n, element % extent);
    element /= extent;
  }
}

// A value over threads, with the initial value, goes into the result's variable or array.
static void finish_value(struct nest *n, struct work *w, struct list *body, struct ir_expr **values) {
  struct ir_stage *stage = w->stage;
  uint32_t components = component_count(stage);
  if (stage->init.count) {
    struct ir_expr **arguments = arena_array(n->arena, struct ir_expr *, 2 * components);
    nest_emit_initial_values(n, w, body, arguments);
    for (uint32_t k = 0; k < components; k++) arguments[components + k] = named(n, body, values[k], "reduced", stage->range);
    ir_inline(n->kernel, &stage->reducer->combine, arguments, body, stage->range, values);
  }
  bool is_array = w->kept_axes.count || w->inner_axes.count;
  for (uint32_t k = 0; k < components; k++) {
    struct ir_var *result = stage->results.at[k];
    if (is_array) {
      struct list axes = list_copy(n->arena, &w->kept_axes);
      list_append(n->arena, &axes, &w->inner_axes);
      if (w->kept.count <= k) list_push(n->arena, &w->kept, new_local(n, result->label, result->type, &axes));
      write_memory(n, body, w->kept.at[k], &axes, values[k], stage->range);
    } else {
      struct ir_var *var = new_let(n, result->label, result->type);
      emit_let(n, body, var, values[k], stage->range);
      result->subst = ir_ref(n->arena, var);
    }
  }
}

// Behind the loops: over threads, then each accumulator by itself.
static void emit_finish(struct nest *n, struct work *w, struct list *out) {
  struct ir_stage *stage = w->stage;
  uint32_t components = component_count(stage), at_once = tuples_at_once(n, w), tuples = at_once ? at_once : 1;
  struct ir_expr **values = arena_array(n->arena, struct ir_expr *, components * tuples);
  struct list *body = at_once ? out : open_loops(n, out, &w->inner_axes, stage->range);
  for (uint32_t t = 0; t < tuples; t++) {
    if (at_once) choose_element(n, &w->inner_axes, t);
    for (uint32_t k = 0; k < components; k++) values[t * components + k] = read_accumulator(n, w, k);
  }
  if (w->thread_axes) {
    struct ir_stmt *allreduce = ir_stmt(n->arena, IR_ALLREDUCE, stage->range);
    allreduce->reducer = stage->reducer;
    allreduce->thread_axes = w->thread_axes;
    allreduce->form = stage->form;
    allreduce->result_in_all = result_in_all(n, w);
    for (uint32_t i = 0; i < tuples * components; i++) {
      struct ir_var *result = stage->results.at[i % components];
      struct ir_var *var = new_let(n, arena_printf(n->arena, "%s_all", result->label), result->type);
      list_push(n->arena, &allreduce->inputs, values[i]);
      list_push(n->arena, &allreduce->results, var);
      values[i] = ir_ref(n->arena, var);
    }
    list_push(n->arena, body, allreduce);
  }
  for (uint32_t t = 0; t < tuples; t++) {
    if (at_once) choose_element(n, &w->inner_axes, t);
    finish_value(n, w, body, values + t * components);
  }
  close_loops(&w->inner_axes);
}

static bool are_open(const struct list *axes) {
  for (uint32_t i = 0; i < axes->count; i++)
    if (!list_at(axes, struct ir_axis, i)->var->subst) return false;
  return true;
}

void nest_refresh_values(struct nest *n) {
  for (uint32_t i = 0; i < n->works.count; i++) {
    struct work *w = n->works.at[i];
    for (uint32_t k = 0; k < w->kept.count; k++) {
      struct list axes = list_copy(n->arena, &w->kept_axes);
      list_append(n->arena, &axes, &w->inner_axes);
      struct list refs = axis_refs(n, &axes);
      list_at(&w->stage->results, struct ir_var, k)->subst = are_open(&axes) ? ir_load(n->arena, w->kept.at[k], &refs) : NULL;
    }
  }
}

// --- Conditions ---------------------------------------------------------------------------------------------------------

// Whether the grid, or the block, has no more along a dimension than the axis: as many, or as many but at least one where the entry assumes that
// the axis has one.
static bool is_filled(struct nest *n, const struct ir_expr *widest, const struct ir_axis *axis) {
  const struct ir_expr *extent = extent_wide(n->arena, axis->extent);
  if (ir_equal(extent, widest)) return true;
  if (widest->op != OP_MAX || !ir_equal(widest->args[0], extent) || !ir_const_is(widest->args[1], 1)) return false;
  for (uint32_t i = 0; i < n->entry->assumptions.count; i++) {
    const struct ir_expr *condition = list_at(&n->entry->assumptions, struct ir_requirement, i)->condition;
    if (condition->op == OP_GE && ir_equal(condition->args[0], extent) && ir_const_is(condition->args[1], 1)) return true;
  }
  return false;
}

// Threads and blocks that a stage leaves idle: dimensions wider than its own axis there and, for a store, dimensions it does not use.
struct ir_expr *nest_active(struct nest *n, const struct ir_stage *stage) {
  struct ir_expr *condition = ir_int(n->arena, TYPE_BOOL, 1);
  for (int b = BIND_BLOCK_X; b <= BIND_THREAD_Z; b++) {
    struct ir_axis *axis = stage_bound_axis(stage, (enum ir_bind)b);
    bool on_threads = bind_is_thread((enum ir_bind)b);
    struct ir_expr *widest = on_threads ? ir_int(n->arena, TYPE_I64, n->entry->block[b - BIND_THREAD_X]) : grid_extent(n, b - BIND_BLOCK_X);
    struct ir_expr *term = NULL;
    if (axis) {
      if (!is_filled(n, widest, axis)) term = ir_binary(n->arena, OP_LT, ir_ref(n->arena, axis->var), axis->extent);
    } else if (stage->kind == STAGE_STORE && !ir_const_is(widest, 1) &&
               (on_threads ? stage->mem->space != SPACE_LOCAL : stage->mem->space == SPACE_GLOBAL && !(n->arrived >> (b - BIND_BLOCK_X) & 1))) {
      struct ir_expr *place = NULL;
      for (uint32_t i = 0; i < n->entry->axes.count && !on_threads; i++) { // a logical block axis has the name that another stage gave it
        struct ir_axis *other = n->entry->axes.at[i];
        if ((int)other->bind == b) place = ir_ref(n->arena, other->var);
      }
      if (on_threads) place = ir_special(n->arena, OP_THREAD, (uint32_t)(b - BIND_THREAD_X));
      if (place) term = ir_binary(n->arena, OP_EQ, place, index_int(n, 0));
    }
    if (term) condition = ir_binary(n->arena, OP_AND, condition, term);
  }
  return condition;
}

// Opens nested ifs, one a condition, so that each is evaluated only where those before hold.
static struct list *open_guards(struct nest *n, struct work *w, struct list *out, uint32_t count) {
  for (uint32_t i = w->guards_done; i < count; i++) {
    struct ir_stmt *test = ir_stmt(n->arena, IR_IF, w->stage->range);
    test->value = here(n, w->stage->guards.at[i]);
    if (ir_const_is(test->value, 1)) continue;
    list_push(n->arena, out, test);
    out = &test->body;
  }
  return out;
}

// Guards, in order, that are available here and that `all` works have alike.
static uint32_t common_guards(struct nest *n, const struct list *works, uint32_t from, uint32_t to, bool uniform_only) {
  struct work *first = works->at[from];
  uint32_t count = first->guards_done;
  for (; count < first->stage->guards.count; count++) {
    struct ir_expr *guard = first->stage->guards.at[count];
    if (!is_available(guard)) break;
    if (uniform_only && !is_block_uniform(here(n, guard))) break;
    bool everywhere = true;
    for (uint32_t i = from; i < to && everywhere; i++) {
      struct work *other = works->at[i];
      everywhere = other->guards_done == first->guards_done && count < other->stage->guards.count && ir_equal(other->stage->guards.at[count], guard);
    }
    if (!everywhere) break;
  }
  return count;
}

// --- The nest -----------------------------------------------------------------------------------------------------------

struct list nest_emit_derived(struct nest *n, const struct list *works, struct list *out) {
  struct list emitted = {0};
  for (uint32_t i = 0; i < works->count; i++) {
    struct work *w = works->at[i];
    for (uint32_t k = 0; k < w->stage->derived.count; k++) {
      struct ir_stmt *let = w->stage->derived.at[k];
      if (let->var->subst || !is_available(let->value)) continue;
      struct ir_expr *value = here(n, let->value);
      if (value->op == OP_VAR || value->op == OP_CONST) {
        let->var->subst = value;
      } else {
        struct ir_var *var = new_let(n, let->var->label, TYPE_INDEX);
        var->mark = is_block_uniform(value);
        emit_let(n, out, var, value, let->range);
        let->var->subst = ir_ref(n->arena, var);
      }
      list_push(n->arena, &emitted, let->var);
    }
  }
  return emitted;
}

void nest_forget(const struct list *vars) {
  for (uint32_t i = 0; i < vars->count; i++) list_at(vars, struct ir_var, i)->subst = NULL;
}

static void emit_works(struct nest *n, const struct list *works, uint32_t depth, struct list *out);

static void emit_leaf(struct nest *n, struct work *w, struct list *out) {
  struct ir_stage *stage = w->stage;
  nest_refresh_values(n);
  struct ir_expr *on = w->is_active ? ir_int(n->arena, TYPE_BOOL, 1) : here(n, nest_active(n, stage));
  bool has_loop = w->first_reduction < w->loops.count;
  if (stage->kind == STAGE_REDUCE && !has_loop) emit_init(n, w, out);
  struct list *body = out;
  if (!ir_const_is(on, 1)) {
    struct ir_stmt *test = ir_stmt(n->arena, IR_IF, stage->range);
    test->value = on;
    list_push(n->arena, body, test);
    body = &test->body;
  }
  body = open_guards(n, w, body, stage->guards.count);
  if (stage->kind == STAGE_REDUCE) {
    emit_update(n, w, body, !has_loop);
    if (!has_loop) emit_finish(n, w, out);
    return;
  }
  begin_lets(n, w, body);
  struct ir_stmt *store = ir_stmt(n->arena, stage->is_atomic ? IR_ATOMIC : IR_STORE, stage->range);
  store->atomic = stage->atomic;
  store->mem = stage->mem;
  for (uint32_t i = 0; i < stage->indices.count; i++) list_push(n->arena, &store->indices, here(n, stage->indices.at[i]));
  store->value = here(n, stage->value);
  end_lets(w);
  list_push(n->arena, body, store);
}

// --- Copies in shared memory ----------------------------------------------------------------------------------------------

struct find_mem {
  const struct ir_mem *mem;
  bool is_found;
};
static void find_mem(struct ir_expr *e, void *state) {
  struct find_mem *find = state;
  if (e->op == OP_LOAD && e->mem == find->mem) find->is_found = true;
}
static bool reads_mem(const struct ir_stage *stage, const struct ir_mem *mem) {
  struct find_mem find = {.mem = mem};
  const struct list *lists[] = {&stage->operands, &stage->init, &stage->guards, &stage->indices};
  for (uint32_t l = 0; l < 4; l++)
    for (uint32_t i = 0; i < lists[l]->count; i++) ir_visit_expr(lists[l]->at[i], find_mem, &find);
  ir_visit_block(&stage->lets, find_mem, &find);
  if (stage->value) ir_visit_expr(stage->value, find_mem, &find);
  return find.is_found;
}
static bool is_copy(const struct ir_stage *stage) { return stage->kind == STAGE_STORE && stage->mem->space == SPACE_SHARED; }

// Whether one of works[first_from..first_to) fills a copy that one of works[from..to) reads.
static bool passes_copy(const struct list *works, uint32_t first_from, uint32_t first_to, uint32_t from, uint32_t to) {
  for (uint32_t a = first_from; a < first_to; a++) {
    const struct ir_stage *fill = list_at(works, struct work, a)->stage;
    for (uint32_t b = from; is_copy(fill) && b < to; b++)
      if (b != a && reads_mem(list_at(works, struct work, b)->stage, fill->mem)) return true;
  }
  return false;
}

// In front of what reads a copy, and of what fills one again in the next iteration of a loop around both.
static void emit_barrier(struct nest *n, const struct list *works, uint32_t from, uint32_t to, uint32_t depth, struct list *out) {
  bool is_read = passes_copy(works, 0, from, from, to);
  bool is_filled_again = depth > 0 && passes_copy(works, from, to, to, works->count);
  if (is_read || is_filled_again) list_push(n->arena, out, ir_stmt(n->arena, IR_BARRIER, list_at(works, struct work, from)->stage->range));
}

static bool has_collective(const struct list *works, uint32_t from, uint32_t to, uint32_t depth) {
  if (passes_copy(works, from, to, from, to)) return true;
  for (uint32_t i = from; i < to; i++) {
    struct work *w = works->at[i];
    if (w->thread_axes && w->first_reduction >= depth) return true;
  }
  return false;
}

// One loop over the axis that works[from..to) share at `depth`.
static void emit_loop(struct nest *n, const struct list *works, uint32_t from, uint32_t to, uint32_t depth, struct list *out) {
  struct list run = {0};
  for (uint32_t i = from; i < to; i++) list_push(n->arena, &run, works->at[i]);
  for (uint32_t i = 0; i < run.count; i++) {
    struct work *w = run.at[i];
    if (w->stage->kind == STAGE_REDUCE && w->first_reduction == depth) emit_init(n, w, out);
  }
  struct list *body = out;
  struct work *first = run.at[0];
  uint32_t before = first->guards_done;
  nest_refresh_values(n);
  // the accumulators of this loop are declared: what is inside needs no thread that its condition leaves out
  bool uniform_only = has_collective(&run, 0, run.count, depth + 1);
  uint32_t done = common_guards(n, &run, 0, run.count, uniform_only);
  body = open_guards(n, first, body, done);
  for (uint32_t i = 0; i < run.count; i++) list_at(&run, struct work, i)->guards_done = done;
  struct ir_axis *axis = list_at(&first->loops, struct ir_stage_axis, depth)->axis;
  struct ir_stmt *loop = ir_stmt(n->arena, IR_FOR, axis->range);
  loop->var = ir_new_var(n->kernel, VAR_AXIS, TYPE_INDEX, axis->var->label);
  loop->lo = index_int(n, 0);
  loop->hi = here(n, axis->extent);
  loop->unroll = axis->bind == BIND_VECTOR ? UNROLL_VECTOR : axis->unroll;
  for (uint32_t i = 0; i < run.count; i++) { // a loop that indexes an array kept in registers is unrolled whole
    struct work *w = run.at[i];
    for (uint32_t k = 0; k < w->inner_axes.count; k++)
      if (w->inner_axes.at[k] == axis && axis->bind != BIND_VECTOR) loop->unroll = UINT32_MAX;
    for (uint32_t k = 0; k < w->kept_axes.count; k++)
      if (w->kept_axes.at[k] == axis && axis->bind != BIND_VECTOR) loop->unroll = UINT32_MAX;
  }
  list_push(n->arena, body, loop);
  axis->var->subst = ir_ref(n->arena, loop->var);
  emit_works(n, &run, depth + 1, &loop->body);
  axis->var->subst = NULL;
  for (uint32_t i = 0; i < run.count; i++) list_at(&run, struct work, i)->guards_done = before;
  for (uint32_t i = 0; i < run.count; i++) {
    struct work *w = run.at[i];
    if (w->stage->kind == STAGE_REDUCE && w->first_reduction == depth) emit_finish(n, w, out);
  }
}

static struct ir_axis *loop_at(const struct work *w, uint32_t depth) {
  return depth < w->loops.count ? list_at(&w->loops, struct ir_stage_axis, depth)->axis : NULL;
}

// Where the run of works that share a loop with works[from] ends.
static uint32_t run_end(const struct list *works, uint32_t from, uint32_t depth) {
  struct ir_axis *axis = loop_at(works->at[from], depth);
  uint32_t to = from + 1;
  while (axis && to < works->count && loop_at(works->at[to], depth) == axis) to++;
  return to;
}

static void emit_works(struct nest *n, const struct list *works, uint32_t depth, struct list *out) {
  struct list derived = nest_emit_derived(n, works, out);
  nest_refresh_values(n);
  uint32_t before = list_at(works, struct work, 0)->guards_done;
  bool same_before = true;
  for (uint32_t i = 0; i < works->count; i++) same_before &= list_at(works, struct work, i)->guards_done == before;
  if (same_before) { // conditions that everything here shares stand around it
    uint32_t done = common_guards(n, works, 0, works->count, has_collective(works, 0, works->count, depth));
    out = open_guards(n, works->at[0], out, done);
    for (uint32_t i = 0; i < works->count; i++) list_at(works, struct work, i)->guards_done = done;
  }
  for (uint32_t i = 0; i < works->count;) {
    uint32_t to = run_end(works, i, depth);
    emit_barrier(n, works, i, to, depth, out);
    struct work *first = works->at[i];
    struct list *inside = out;
    bool opens = to == i + 1 && first->stage->kind == STAGE_STORE && !first->is_active && loop_at(first, depth);
    struct ir_expr *on = opens ? here(n, nest_active(n, first->stage)) : NULL;
    if (opens && !ir_const_is(on, 1) && is_available(on)) { // a store alone in its loops: who makes it is known around them
      struct ir_stmt *test = ir_stmt(n->arena, IR_IF, first->stage->range);
      test->value = on;
      list_push(n->arena, out, test);
      inside = &test->body;
      first->is_active = true;
    }
    if (loop_at(works->at[i], depth)) emit_loop(n, works, i, to, depth, inside);
    else emit_leaf(n, works->at[i], out);
    if (inside != out) first->is_active = false;
    i = to;
  }
  if (same_before)
    for (uint32_t i = 0; i < works->count; i++) list_at(works, struct work, i)->guards_done = before;
  nest_forget(&derived);
}

// Numbers the loops that emit_works will open, so that two stages share a loop exactly when they have the same number at a depth.
static void number_loops(struct nest *n, const struct list *works, uint32_t depth, uintptr_t *next) {
  for (uint32_t i = 0; i < works->count;) {
    uint32_t to = run_end(works, i, depth);
    if (loop_at(works->at[i], depth)) {
      struct list run = {0};
      uintptr_t id = (*next)++;
      for (uint32_t k = i; k < to; k++) {
        list_push(n->arena, &list_at(works, struct work, k)->loop_ids, (void *)id);
        list_push(n->arena, &run, works->at[k]);
      }
      number_loops(n, &run, depth + 1, next);
    }
    i = to;
  }
}

// At which depth a guard is known: the number of loops around it that it needs; behind all loops where it reads memory.
static uint32_t guard_depth(struct nest *n, const struct work *w, struct ir_expr *guard) {
  bool reads = false;
  for (uint32_t i = w->stage->derived.count; i-- > 0;) { // the last ones are made of the first
    struct ir_stmt *let = w->stage->derived.at[i];
    let->var->subst = let->value;
    guard = here(n, guard);
    let->var->subst = NULL;
  }
  ir_visit_expr(guard, find_load, &reads);
  if (reads) return w->loops.count + 1;
  for (uint32_t d = w->loops.count; d-- > 0;)
    if (ir_mentions(guard, list_at(&w->loops, struct ir_stage_axis, d)->axis->var)) return d + 1;
  return 0;
}

// Guards that are known further out come first; those that read memory stay last, behind the ones that keep them inside their tensors.
static void sort_guards(struct nest *n, struct work *w) {
  struct list sorted = {0};
  for (uint32_t depth = 0; depth <= w->loops.count + 1; depth++)
    for (uint32_t i = 0; i < w->stage->guards.count; i++)
      if (guard_depth(n, w, w->stage->guards.at[i]) == depth) list_push(n->arena, &sorted, w->stage->guards.at[i]);
  w->stage->guards = sorted;
}

// In the fast entry a guard x < E is the same for all of a vector's iterations v where x = c * v + rest, and c times the vector's length divides
// both rest and E: it is tested once, in front of the vector, whose accesses then stand side by side. That it divides E is assumed
// where it is not known; the general entry takes the other sizes.
static bool divides_or_assumed(struct nest *n, struct facts *facts, int64_t factor, struct ir_expr *end) {
  struct ir_expr *by = ir_int(n->arena, TYPE_I64, factor), *wide = extent_wide(n->arena, end);
  if (prove_divides(facts, by, wide)) return true;
  bool is_whole = true;
  ir_visit_expr(wide, find_not_size, &is_whole);
  if (!is_whole) return false;
  struct ir_expr *condition = ir_binary(n->arena, OP_EQ, ir_binary(n->arena, OP_MOD, wide, by), ir_int(n->arena, TYPE_I64, 0));
  struct ir_requirement *assumption = arena_new(n->arena, struct ir_requirement);
  *assumption = (struct ir_requirement){condition, "a vectorised axis is not made of whole vectors", n->entry->range};
  list_push(n->arena, &n->entry->assumptions, assumption);
  facts_add_condition(facts, condition);
  return true;
}

// Marks the derived axes that are made of vectors.
static void mark_vector_axes(const struct ir_stage *stage) {
  for (uint32_t i = 0; i < stage->derived.count; i++) {
    struct ir_stmt *let = stage->derived.at[i];
    let->var->mark = 0;
    for (uint32_t k = 0; k < stage->axes.count; k++) {
      const struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, k)->axis;
      if (axis->bind == BIND_VECTOR && ir_mentions(let->value, axis->var)) let->var->mark = 1;
    }
    for (uint32_t k = 0; k < i; k++) {
      const struct ir_var *var = list_at(&stage->derived, struct ir_stmt, k)->var;
      if (var->mark && ir_mentions(let->value, var)) let->var->mark = 1;
    }
  }
}

static void lift_vector_guards(struct nest *n, struct ir_stage *stage) {
  struct facts facts;
  mark_vector_axes(stage);
  facts_init(&facts, n->arena);
  if (n->entry->when) facts_add_condition(&facts, n->entry->when);
  for (uint32_t i = 0; i < n->entry->assumptions.count; i++)
    facts_add_condition(&facts, list_at(&n->entry->assumptions, struct ir_requirement, i)->condition);
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, i)->axis;
    facts_add_axis(&facts, axis->var, index_int(n, 0), extent_inner(axis->extent));
  }
  for (uint32_t i = 0; i < stage->derived.count; i++) {
    struct ir_stmt *let = stage->derived.at[i];
    facts_add_definition(&facts, let->var, let->value);
  }
  bool has_own_list = false;
  for (uint32_t g = 0; g < stage->guards.count; g++) {
    struct ir_expr *guard = stage->guards.at[g], *place, *end;
    if (guard->op != OP_LT || guard->args[0]->type != TYPE_INDEX || mentions_axis(guard->args[1])) continue;
    place = guard->args[0], end = guard->args[1];
    for (uint32_t i = stage->derived.count; i-- > 0;) {
      struct ir_stmt *let = stage->derived.at[i];
      if (!let->var->mark) continue;
      let->var->subst = let->value;
      place = here(n, place);
      let->var->subst = NULL;
    }
    bool is_lifted = false;
    for (uint32_t i = stage->axes.count; i-- > 0;) {
      struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, i)->axis;
      struct poly coefficient, rest;
      int64_t step, factor;
      if (axis->bind != BIND_VECTOR || !poly_linear(&facts, poly_of(&facts, place), axis->var, &coefficient, &rest)) continue;
      if (!poly_is_constant(coefficient, &step) || step < 1 || __builtin_mul_overflow(step, axis->extent->integer, &factor)) continue;
      struct ir_expr *start = poly_to_expr(&facts, rest);
      if (!start || !prove_divides(&facts, ir_int(n->arena, TYPE_I64, factor), start) || !divides_or_assumed(n, &facts, factor, end)) continue;
      axis->var->subst = index_int(n, 0);
      place = here(n, place);
      axis->var->subst = NULL;
      is_lifted = true;
    }
    if (!is_lifted) continue;
    if (!has_own_list) stage->guards = list_copy(n->arena, &stage->guards);
    has_own_list = true;
    stage->guards.at[g] = ir_binary(n->arena, OP_LT, place, end);
  }
  for (uint32_t i = 0; i < stage->derived.count; i++) list_at(&stage->derived, struct ir_stmt, i)->var->mark = 0;
}

// Decides over which loops a result must be kept in an array: those of its own that a reader does not share.
static bool plan_results(struct nest *n, struct work *w) {
  uint32_t shared = w->first_reduction;
  for (uint32_t i = 0; i < n->works.count; i++) {
    struct work *other = n->works.at[i];
    bool reads = false;
    for (uint32_t k = 0; k < w->stage->results.count; k++) reads |= other != w && stage_reads(other->stage, w->stage->results.at[k]);
    if (!reads) continue;
    uint32_t depth = 0;
    while (depth < w->loop_ids.count && depth < other->loop_ids.count && w->loop_ids.at[depth] == other->loop_ids.at[depth]) depth++;
    if (depth < shared) shared = depth;
  }
  int64_t elements = 1;
  for (uint32_t d = 0; d < w->loops.count; d++) {
    struct ir_stage_axis *loop = w->loops.at[d];
    bool is_inner = d > w->first_reduction && !loop->is_reduction, is_kept = d >= shared && d < w->first_reduction;
    if (!is_inner && !is_kept) continue;
    if (!ir_is_const(loop->axis->extent) || __builtin_mul_overflow(elements, loop->axis->extent->integer, &elements) || elements > MAX_LOCAL) {
      diag_error(n->diag, is_inner ? ERROR_EXTENT : ERROR_UNSUPPORTED, loop->axis->range,
                 "stage '%s' keeps its result over axis '%s' in registers, which takes a constant extent of at most %d elements in all", w->stage->label, loop->axis->var->label, MAX_LOCAL);
      diag_note(n->diag, (struct range){0}, "split '%s' by a constant, bind it to threads or blocks, or put it outside the reduction's axes", loop->axis->var->label);
      return false;
    }
    list_push(n->arena, is_inner ? &w->inner_axes : &w->kept_axes, loop->axis);
  }
  return true;
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

// --- The pass

static bool set_block(struct nest *n) {
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
      struct allreduce_request request = {.thread_axes = w->thread_axes, .reducer = w->stage->reducer, .tuples = 1, .result_in_all = result_in_all(n, w),
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
    if (bind_is_thread(axis->bind)) diag_note(n->diag, axis->bound_at, "axis '%s' of extent %lld is bound here", axis->var->label, (long long)axis->extent->integer);
  }
  return false;
}

// An ordered reduction keeps its order when threads are outside serial axes, and among threads z is outside y outside x.
static bool is_in_thread_order(struct nest *n, const struct ir_stage *stage) {
  const struct ir_axis *before = NULL;
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    struct ir_stage_axis *axis = stage->axes.at[i];
    if (!axis->is_reduction) continue;
    bool is_serial = !bind_is_thread(axis->axis->bind);
    if (before && !is_serial && (!bind_is_thread(before->bind) || before->bind < axis->axis->bind)) {
      diag_error(n->diag, ERROR_DIRECTIVE, axis->axis->bound_at.line ? axis->axis->bound_at : axis->axis->range,
                 "stage '%s' is an ordered reduction: axis '%s' on threads must be outside '%s'", stage->label, axis->axis->var->label, before->var->label);
      const char *whole = axis->axis->var->label;
      for (uint32_t k = 0; k < stage->derived.count; k++)
        if (ir_mentions(list_at(&stage->derived, struct ir_stmt, k)->value, axis->axis->var)) whole = list_at(&stage->derived, struct ir_stmt, k)->var->label;
      diag_note(n->diag, (struct range){0}, "give each thread a piece of neighbours: split %s into 32 -> t, s; bind t -> thread.x;", whole);
      return false;
    }
    before = axis->axis;
  }
  return true;
}

// Launches one behind another overlap from sm_90 on: a later one waits for what it reads, an earlier one lets it begin.
static void order_launches(struct nest *n) {
  enum { OVERLAP_SM = 90 };
  const struct list *entries = &n->kernel->entries;
  uint32_t place = 0, lets = 0;
  while (entries->at[place] != n->entry) place++;
  if (n->context->options->target->sm < OVERLAP_SM) return;
  while (lets < n->entry->body.count && list_at(&n->entry->body, struct ir_stmt, lets)->kind == IR_LET) lets++;
  if (place + 1 < entries->count && list_at(entries, struct ir_entry, place + 1)->launch)
    list_insert(n->arena, &n->entry->body, lets, ir_stmt(n->arena, IR_GRID_READY, n->entry->range));
  if (n->entry->launch) list_insert(n->arena, &n->entry->body, lets, ir_stmt(n->arena, IR_GRID_WAIT, n->entry->range));
}

bool pass_nest(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry) {
  struct nest n = {.context = context, .arena = context->arena, .diag = context->diag, .kernel = kernel, .entry = entry};
  struct list runs = {0}, arrivals = {0}; // struct list of struct work, what an arrival is not among; struct ir_stage
  list_push(n.arena, &runs, arena_new(n.arena, struct list));
  for (uint32_t i = 0; i < entry->stages.count; i++) {
    struct work *w = arena_new(n.arena, struct work);
    w->stage = entry->stages.at[i];
    if (w->stage->kind == STAGE_ARRIVE) {
      list_push(n.arena, &arrivals, w->stage);
      list_push(n.arena, &runs, arena_new(n.arena, struct list));
      continue;
    }
    for (uint32_t k = 0; k < w->stage->axes.count; k++) {
      struct ir_stage_axis *axis = w->stage->axes.at[k];
      axis->axis->var->mark = 0;
      if (bind_is_thread(axis->axis->bind)) {
        if (axis->is_reduction) w->thread_axes |= 1u << (axis->axis->bind - BIND_THREAD_X);
      } else if (!bind_is_block(axis->axis->bind)) {
        list_push(n.arena, &w->loops, axis);
      }
    }
    w->first_reduction = w->loops.count;
    for (uint32_t d = w->loops.count; d-- > 0;)
      if (list_at(&w->loops, struct ir_stage_axis, d)->is_reduction) w->first_reduction = d;
    for (uint32_t k = 0; k < w->stage->results.count; k++) list_at(&w->stage->results, struct ir_var, k)->mark = 0;
    for (uint32_t k = 0; k < w->stage->derived.count; k++) list_at(&w->stage->derived, struct ir_stmt, k)->var->mark = 0;
    for (uint32_t k = 0; k < w->stage->lets.count; k++) list_at(&w->stage->lets, struct ir_stmt, k)->var->mark = 0;
    list_push(n.arena, &n.works, w);
    list_push(n.arena, runs.at[runs.count - 1], w);
    if (!entry->is_general) lift_vector_guards(&n, w->stage);
    sort_guards(&n, w);
    nest_find_outer_guards(&n, w);
  }
  if (!set_block(&n)) return false;
  assume_small_axes(&n);
  uintptr_t next = 1;
  for (uint32_t i = 0; i < runs.count; i++) number_loops(&n, runs.at[i], 0, &next);
  for (uint32_t i = 0; i < n.works.count; i++) {
    struct work *w = n.works.at[i];
    if (w->stage->kind == STAGE_REDUCE && !plan_results(&n, w)) return false;
    if (w->stage->kind == STAGE_REDUCE && w->stage->reducer->is_ordered && !is_in_thread_order(&n, w->stage)) return false;
  }
  struct list *body = emit_bound_axes(&n);
  for (uint32_t i = 0; i < runs.count; i++) {
    if (i) {
      body = arrival_emit(kernel, entry, arrivals.at[i - 1], n.logical, body);
      n.arrived = list_at(&arrivals, struct ir_stage, i - 1)->block_axes;
    }
    if (list_at(&runs, struct list, i)->count) emit_works(&n, runs.at[i], 0, body);
  }
  for (uint32_t i = 0; i < entry->axes.count; i++) list_at(&entry->axes, struct ir_axis, i)->var->subst = NULL;
  for (uint32_t i = 0; i < n.works.count; i++) {
    struct ir_stage *stage = list_at(&n.works, struct work, i)->stage;
    for (uint32_t k = 0; k < stage->results.count; k++) list_at(&stage->results, struct ir_var, k)->subst = NULL;
  }
  order_launches(&n);
  entry->stages.count = entry->axes.count = 0;
  entry->level = LEVEL_PROGRAM;
  return true;
}

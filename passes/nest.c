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
#include "compiler/pass.h"
#include "passes/arrival.h"
#include "passes/nest.h"
#include "passes/stage.h"
#include "passes/stage_load.h"

enum { MAX_LOCAL = 1024, FEW_PARTS = 4 };

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

static bool is_reduced(const struct ir_stage *stage, const struct ir_axis *axis) {
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    const struct ir_stage_axis *used = stage->axes.at[i];
    if (used->axis == axis && used->is_reduction) return true;
  }
  return false;
}

// Threads and blocks that a stage leaves idle: dimensions wider than its own axis there and, for a store, dimensions it does not use.
static struct ir_expr *active(struct nest *n, const struct ir_stage *stage, bool is_around) {
  struct ir_expr *condition = ir_int(n->arena, TYPE_BOOL, 1);
  for (int b = BIND_BLOCK_X; b <= BIND_THREAD_Z; b++) {
    struct ir_axis *axis = stage_bound_axis(stage, (enum ir_bind)b);
    bool on_threads = bind_is_thread((enum ir_bind)b);
    struct ir_expr *widest = on_threads ? ir_int(n->arena, TYPE_I64, n->entry->block[b - BIND_THREAD_X]) : entry_grid_extent(n->arena, n->entry, (uint32_t)b - BIND_BLOCK_X);
    struct ir_expr *term = NULL;
    if (axis) {
      if (!(is_around && is_reduced(stage, axis)) && !is_filled(n, widest, axis)) term = ir_binary(n->arena, OP_LT, ir_ref(n->arena, axis->var), axis->extent);
    } else if (stage->kind == STAGE_STORE && !ir_const_is(widest, 1) &&
               (on_threads ? stage->mem->space != SPACE_LOCAL : stage->mem->space == SPACE_GLOBAL && !(n->arrived >> (b - BIND_BLOCK_X) & 1))) {
      struct ir_expr *place = NULL;
      for (uint32_t i = 0; i < n->entry->axes.count && !on_threads; i++) { // a logical block axis has the name that another stage gave it
        struct ir_axis *other = n->entry->axes.at[i];
        if ((int)other->bind == b) place = ir_ref(n->arena, other->var);
      }
      if (on_threads) place = ir_special(n->arena, OP_THREAD, (uint32_t)(b - BIND_THREAD_X));
      if (place) term = ir_binary(n->arena, OP_EQ, place, nest_int(n, 0));
    }
    if (term) condition = ir_binary(n->arena, OP_AND, condition, term);
  }
  return condition;
}

struct ir_expr *nest_active(struct nest *n, const struct ir_stage *stage) { return active(n, stage, false); }
struct ir_expr *nest_active_around(struct nest *n, const struct ir_stage *stage) { return active(n, stage, true); }

// Opens nested ifs, one a condition, so that each is evaluated only where those before hold.
static struct list *open_guards(struct nest *n, struct work *w, struct list *out, uint32_t count) {
  for (uint32_t i = w->guards_done; i < count; i++) {
    struct ir_stmt *test = ir_stmt(n->arena, IR_IF, w->stage->range);
    test->value = nest_here(n, w->stage->guards.at[i]);
    if (ir_const_is(test->value, 1)) continue;
    list_push(n->arena, out, test);
    out = &test->body;
  }
  return out;
}

static bool has_guard(const struct ir_stage *stage, const struct ir_expr *guard) {
  for (uint32_t i = 0; i < stage->guards.count; i++)
    if (ir_equal(stage->guards.at[i], guard)) return true;
  return false;
}

// Whether a value of the work, kept in an array, is read where the guard may not hold: around all of it, the guard would leave the array unwritten.
static bool is_read_outside(struct nest *n, const struct work *w, const struct ir_expr *guard) {
  if (w->stage->kind != STAGE_REDUCE || (!w->kept_axes.count && !w->inner_axes.count && !w->is_read_later)) return false;
  for (uint32_t i = 0; i < n->works.count; i++) {
    const struct work *other = n->works.at[i];
    bool reads = false;
    for (uint32_t k = 0; k < w->stage->results.count; k++) reads |= other != w && stage_reads(other->stage, w->stage->results.at[k]);
    if (reads && !has_guard(other->stage, guard)) return true;
  }
  return false;
}

// Guards, in order, that are available here and that `all` works have alike. `depth`: of the loops around them.
static uint32_t common_guards(struct nest *n, const struct list *works, uint32_t from, uint32_t to, uint32_t depth, bool uniform_only) {
  struct work *first = works->at[from];
  uint32_t count = first->guards_done;
  for (; count < first->stage->guards.count; count++) {
    struct ir_expr *guard = first->stage->guards.at[count];
    if (!is_available(guard) || nest_reads_idle(n, first, guard)) break;
    if (uniform_only && !is_block_uniform(nest_here(n, guard))) break;
    bool everywhere = true;
    for (uint32_t i = from; i < to && everywhere; i++) {
      struct work *other = works->at[i];
      everywhere = other->guards_done == first->guards_done && count < other->stage->guards.count && ir_equal(other->stage->guards.at[count], guard) &&
                   (other->first_reduction < depth || !is_read_outside(n, other, guard));
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
      struct ir_expr *value = nest_here(n, let->value);
      if (value->op == OP_VAR || value->op == OP_CONST) {
        let->var->subst = value;
      } else {
        struct ir_var *var = nest_new_let(n, let->var->label, TYPE_INDEX);
        var->mark = is_block_uniform(value);
        nest_emit_let(n, out, var, value, let->range);
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
  struct ir_expr *on = w->is_active ? ir_int(n->arena, TYPE_BOOL, 1) : nest_here(n, nest_active(n, stage));
  bool has_loop = w->first_reduction < w->loops.count;
  if (stage->kind == STAGE_REDUCE && !has_loop) nest_emit_init(n, w, out);
  struct list *body = out;
  if (!ir_const_is(on, 1)) {
    struct ir_stmt *test = ir_stmt(n->arena, IR_IF, stage->range);
    test->value = on;
    list_push(n->arena, body, test);
    body = &test->body;
  }
  body = open_guards(n, w, body, stage->guards.count);
  if (stage->kind == STAGE_REDUCE) {
    nest_emit_update(n, w, body, !has_loop);
    if (!has_loop) nest_emit_finish(n, w, out);
    return;
  }
  nest_begin_lets(n, w, body);
  struct ir_stmt *store = ir_stmt(n->arena, stage->is_atomic ? IR_ATOMIC : stage->is_async ? IR_COPY : IR_STORE, stage->range);
  store->count = stage->is_async;
  store->atomic = stage->atomic;
  store->mem = stage->mem;
  for (uint32_t i = 0; i < stage->indices.count; i++) list_push(n->arena, &store->indices, nest_here(n, stage->indices.at[i]));
  store->value = nest_here(n, stage->value);
  nest_end_lets(w);
  list_push(n->arena, body, store);
}

// --- Copies in shared memory ----------------------------------------------------------------------------------------------

static bool is_copy(const struct ir_stage *stage) { return stage->kind == STAGE_STORE && stage->mem->space == SPACE_SHARED; }

// Whether one of works[first_from..first_to) fills a copy, asynchronously where that is asked, that one of works[from..to) reads.
static bool passes_some(const struct list *works, uint32_t first_from, uint32_t first_to, uint32_t from, uint32_t to, bool is_async) {
  for (uint32_t a = first_from; a < first_to; a++) {
    const struct ir_stage *fill = list_at(works, struct work, a)->stage;
    for (uint32_t b = from; is_copy(fill) && (fill->is_async || !is_async) && b < to; b++)
      if (b != a && stage_find_load(list_at(works, struct work, b)->stage, fill->mem).load) return true;
  }
  return false;
}

static bool passes_copy(const struct list *works, uint32_t first_from, uint32_t first_to, uint32_t from, uint32_t to) {
  return passes_some(works, first_from, first_to, from, to, false);
}

// In front of what reads a copy, and of what fills one again in the next iteration of a loop around both. A thread's own asynchronous copies have
// landed when it comes to the barrier.
static void emit_barrier(struct nest *n, const struct list *works, uint32_t from, uint32_t to, uint32_t depth, struct list *out) {
  bool is_read = passes_copy(works, 0, from, from, to);
  bool is_filled_again = depth > 0 && passes_copy(works, from, to, to, works->count);
  if (passes_some(works, 0, from, from, to, true)) list_push(n->arena, out, ir_stmt(n->arena, IR_COPY_WAIT, list_at(works, struct work, from)->stage->range));
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

// Copies that have a place for each of several iterations of the axis: fills of these are made ahead.
static bool is_filled_ahead(const struct work *w, const struct ir_axis *axis) {
  const struct ir_stage *stage = w->stage;
  if (!is_copy(stage) || stage->depth < 2) return false;
  const struct ir_expr *place = stage->indices.at[0];
  return place->op == OP_MOD && place->args[0]->op == OP_VAR && place->args[0]->var == axis->var;
}

// What a fill does for the iteration `at`, where there is one; *block is for the iteration `counter`.
static void emit_ahead(struct nest *n, const struct list *block, struct ir_var *counter, struct ir_expr *at, struct ir_expr *is_there, struct range range, struct list *out) {
  if (ir_const_is(is_there, 0)) return;
  if (!ir_const_is(is_there, 1)) {
    struct ir_stmt *test = ir_stmt(n->arena, IR_IF, range);
    test->value = is_there;
    list_push(n->arena, out, test);
    out = &test->body;
  }
  if (!ir_is_const(at)) {
    struct ir_var *next = nest_new_let(n, counter->label, TYPE_INDEX);
    nest_emit_let(n, out, next, at, range);
    at = ir_ref(n->arena, next);
  }
  counter->subst = at;
  struct list made = ir_clone_block(n->kernel, block);
  counter->subst = NULL;
  list_append(n->arena, out, &made);
}

static void emit_mark(struct nest *n, enum ir_stmt_kind kind, uint32_t count, struct range range, struct list *out) {
  struct ir_stmt *mark = ir_stmt(n->arena, kind, range);
  mark->count = count;
  list_push(n->arena, out, mark);
}

// The body of a loop, in which the works that is_filled_ahead finds fill places of later iterations, and what stands in front of it in `out`:
//
//   fill 0; commit; fill 1; commit              depth 3: two iterations ahead
//   for x in 0 .. n {
//     wait for all but one; barrier
//     if x < n - 2 { fill x + 2 }; commit
//     what reads place x % 3
//   }
//
// The barrier stands between the last reading of a place, an iteration earlier, and what fills it again.
static void emit_pipeline(struct nest *n, const struct list *run, uint32_t depth, const struct ir_axis *axis, struct ir_stmt *loop, struct list *out) {
  struct list rest = {0}, fills = {0};
  uint32_t most = 0, least = UINT32_MAX;
  for (uint32_t i = 0; i < run->count; i++) {
    struct work *w = run->at[i];
    bool is_ahead = is_filled_ahead(w, axis);
    list_push(n->arena, is_ahead ? &fills : &rest, w);
    if (is_ahead && w->stage->depth > most) most = w->stage->depth;
    if (is_ahead && w->stage->is_async && w->stage->depth < least) least = w->stage->depth;
  }
  struct ir_expr *first = axis->var->subst;
  struct range range = list_at(&fills, struct work, 0)->stage->range;
  struct list *blocks = arena_array(n->arena, struct list, fills.count);
  struct ir_var **counters = arena_array(n->arena, struct ir_var *, fills.count);
  for (uint32_t i = 0; i < fills.count; i++) {
    struct list one = {0};
    list_push(n->arena, &one, fills.at[i]);
    counters[i] = nest_new_let(n, axis->var->label, TYPE_INDEX);
    axis->var->subst = ir_ref(n->arena, counters[i]);
    emit_works(n, &one, depth + 1, &blocks[i]);
  }
  axis->var->subst = first;
  bool comes_again = depth > 0; // then all that it read has been read, and all that it copied has landed
  if (comes_again) emit_mark(n, IR_BARRIER, 0, range, out);
  for (uint32_t p = 0; p + 1 < most; p++) {
    for (uint32_t i = 0; i < fills.count; i++) {
      uint32_t later = most - list_at(&fills, struct work, i)->stage->depth;
      if (p < later) continue;
      struct ir_expr *at = nest_int(n, p - later);
      emit_ahead(n, &blocks[i], counters[i], at, ir_binary(n->arena, OP_GT, loop->hi, at), range, out);
    }
    if (least != UINT32_MAX) emit_mark(n, IR_COPY_COMMIT, 0, range, out);
  }
  list_push(n->arena, out, loop);
  if (least != UINT32_MAX) emit_mark(n, IR_COPY_WAIT, least - 2, range, &loop->body);
  emit_mark(n, IR_BARRIER, 0, range, &loop->body);
  for (uint32_t i = 0; i < fills.count; i++) {
    struct ir_expr *ahead = nest_int(n, list_at(&fills, struct work, i)->stage->depth - 1);
    struct ir_expr *is_there = ir_binary(n->arena, OP_GT, ir_binary(n->arena, OP_SUB, loop->hi, ahead), first); // x + ahead may be no index where it is not
    emit_ahead(n, &blocks[i], counters[i], ir_binary(n->arena, OP_ADD, first, ahead), is_there, range, &loop->body);
  }
  if (least != UINT32_MAX) emit_mark(n, IR_COPY_COMMIT, 0, range, &loop->body);
  emit_works(n, &rest, depth + 1, &loop->body);
  if (comes_again && least != UINT32_MAX) emit_mark(n, IR_COPY_WAIT, 0, range, out);
}

static bool has_pipeline(const struct list *run, const struct ir_axis *axis) {
  for (uint32_t i = 0; i < run->count; i++)
    if (is_filled_ahead(run->at[i], axis)) return true;
  return false;
}

// One loop over the axis that works[from..to) share at `depth`.
static void emit_loop(struct nest *n, const struct list *works, uint32_t from, uint32_t to, uint32_t depth, struct list *out) {
  struct work *only = works->at[from];
  struct ir_stage whole, *stage = only->stage;
  struct ir_stmt *whole_test = to == from + 1 ? nest_test_vectors(n, only, depth, out, &whole) : NULL;
  if (whole_test) {
    only->stage = &whole;
    emit_loop(n, works, from, to, depth, &whole_test->body);
    only->stage = stage;
    n->in_parts = true;
    emit_loop(n, works, from, to, depth, &whole_test->otherwise);
    n->in_parts = false;
    whole_test->otherwise = ir_clone_block(n->kernel, &whole_test->otherwise); // what the body says is said twice: under names of its own
    return;
  }
  struct list run = {0};
  for (uint32_t i = from; i < to; i++) list_push(n->arena, &run, works->at[i]);
  for (uint32_t i = 0; i < run.count; i++) {
    struct work *w = run.at[i];
    if (w->stage->kind == STAGE_REDUCE && w->first_reduction == depth) nest_emit_init(n, w, out);
  }
  struct narrowed *narrowed = arena_array(n->arena, struct narrowed, run.count);
  for (uint32_t i = 0; i < run.count; i++) nest_begin_narrow(n, run.at[i], depth, out, &narrowed[i]);
  struct list *body = out;
  struct work *first = run.at[0];
  uint32_t before = first->guards_done;
  nest_refresh_values(n);
  // the accumulators of this loop are declared: what is inside needs no thread that its condition leaves out
  bool uniform_only = has_collective(&run, 0, run.count, depth + 1);
  uint32_t done = common_guards(n, &run, 0, run.count, depth + 1, uniform_only);
  body = open_guards(n, first, body, done);
  for (uint32_t i = 0; i < run.count; i++) list_at(&run, struct work, i)->guards_done = done;
  struct ir_axis *axis = list_at(&first->loops, struct ir_stage_axis, depth)->axis;
  struct ir_stmt *loop = ir_stmt(n->arena, IR_FOR, axis->range);
  loop->var = ir_new_var(n->kernel, VAR_AXIS, TYPE_INDEX, axis->var->label);
  loop->lo = nest_int(n, 0);
  loop->hi = nest_here(n, axis->extent);
  loop->unroll = axis->bind != BIND_VECTOR ? axis->unroll : n->in_parts ? (ir_is_const(axis->extent) && axis->extent->integer <= FEW_PARTS ? UINT32_MAX : 1) : UNROLL_VECTOR;
  for (uint32_t i = 0; i < run.count; i++) { // a loop that indexes an array kept in registers is unrolled whole
    struct work *w = run.at[i];
    if (!nest_fits_registers(w)) continue;
    for (uint32_t k = 0; k < w->inner_axes.count; k++)
      if (w->inner_axes.at[k] == axis && axis->bind != BIND_VECTOR) loop->unroll = UINT32_MAX;
    for (uint32_t k = 0; k < w->kept_axes.count; k++)
      if (w->kept_axes.at[k] == axis && axis->bind != BIND_VECTOR) loop->unroll = UINT32_MAX;
  }
  axis->var->subst = ir_ref(n->arena, loop->var);
  if (!n->entry->is_general && has_pipeline(&run, axis)) { // the general entry fills each place when it comes to it
    emit_pipeline(n, &run, depth, axis, loop, body);
  } else {
    list_push(n->arena, body, loop);
    emit_works(n, &run, depth + 1, &loop->body);
  }
  axis->var->subst = NULL;
  for (uint32_t i = 0; i < run.count; i++) list_at(&run, struct work, i)->guards_done = before;
  for (uint32_t i = 0; i < run.count; i++) {
    struct work *w = run.at[i];
    nest_end_narrow(n, w, out, &narrowed[i]);
    if (w->stage->kind == STAGE_REDUCE && w->first_reduction == depth) nest_emit_finish(n, w, out);
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
    uint32_t done = common_guards(n, works, 0, works->count, depth, has_collective(works, 0, works->count, depth));
    out = open_guards(n, works->at[0], out, done);
    for (uint32_t i = 0; i < works->count; i++) list_at(works, struct work, i)->guards_done = done;
  }
  for (uint32_t i = 0; i < works->count;) {
    uint32_t to = run_end(works, i, depth);
    emit_barrier(n, works, i, to, depth, out);
    struct work *first = works->at[i];
    struct list *inside = out;
    bool opens = to == i + 1 && first->stage->kind == STAGE_STORE && !first->is_active && loop_at(first, depth);
    struct ir_expr *on = opens ? nest_here(n, nest_active(n, first->stage)) : NULL;
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

// Decides over which loops a result must be kept in an array: those of its own that a reader does not share.
static bool plan_results(struct nest *n, struct work *w) {
  uint32_t shared = w->first_reduction;
  for (uint32_t i = 0; i < n->works.count; i++) {
    struct work *other = n->works.at[i];
    bool reads = false;
    for (uint32_t k = 0; k < w->stage->results.count; k++) reads |= other != w && stage_reads(other->stage, w->stage->results.at[k]);
    if (!reads) continue;
    w->is_read_later |= other->run != w->run;
    uint32_t depth = 0;
    while (depth < w->loop_ids.count && depth < other->loop_ids.count && w->loop_ids.at[depth] == other->loop_ids.at[depth]) depth++;
    if (depth < shared) shared = depth;
  }
  int64_t elements = 1;
  for (uint32_t d = 0; d < w->loops.count; d++) {
    struct ir_stage_axis *loop = w->loops.at[d];
    bool is_inner = d > w->first_reduction && !loop->is_reduction, is_kept = d >= shared && d < w->first_reduction;
    if (!is_inner && !is_kept) continue;
    if (!ir_is_const(loop->axis->extent) || __builtin_mul_overflow(elements, loop->axis->extent->integer > 0 ? loop->axis->extent->integer : 1, &elements) || elements > MAX_LOCAL) {
      diag_error(n->diag, is_inner ? ERROR_EXTENT : ERROR_UNSUPPORTED, loop->axis->range,
                 "stage '%s' keeps its result over axis '%s' in registers, which takes a constant extent of at most %d elements in all", w->stage->label, loop->axis->var->label, MAX_LOCAL);
      axis_note(n->diag, loop->axis);
      diag_note(n->diag, (struct range){0}, "legal here: split '%s' by a constant, bind it to threads or blocks, or put it outside the reduction's axes", loop->axis->var->label);
      return false;
    }
    list_push(n->arena, is_inner ? &w->inner_axes : &w->kept_axes, loop->axis);
  }
  return true;
}

// --- The pass

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
      axis_note(n->diag, axis->axis);
      axis_note(n->diag, before);
      diag_note(n->diag, (struct range){0}, "legal here: give each thread a piece of neighbours: split %s into 32 -> t, s; bind t -> thread.x;", whole);
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
    w->run = runs.count - 1;
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
    nest_divide_derived(&n, w->stage);
    nest_defer_derived(&n, w->stage);
    if (!entry->is_general) nest_lift_vector_guards(&n, w->stage);
    nest_sort_guards(&n, w);
    nest_find_outer_guards(&n, w);
  }
  if (!nest_set_block(&n)) return false;
  nest_assume_small_axes(&n);
  uintptr_t next = 1;
  for (uint32_t i = 0; i < runs.count; i++) number_loops(&n, runs.at[i], 0, &next);
  for (uint32_t i = 0; i < n.works.count; i++) {
    struct work *w = n.works.at[i];
    if (w->stage->kind == STAGE_REDUCE && !plan_results(&n, w)) return false;
    if (w->stage->kind == STAGE_REDUCE && w->stage->reducer->is_ordered && !is_in_thread_order(&n, w->stage)) return false;
  }
  struct list *body = nest_emit_bound_axes(&n);
  for (uint32_t i = 0; i < runs.count; i++) {
    if (i) {
      int64_t bytes, most;
      body = arrival_emit(kernel, entry, arrivals.at[i - 1], n.logical, body);
      if (entry_exceeds_shared(entry, context, &bytes, &most)) { // copies may have all that there is
        diag_error(context->diag, ERROR_SHARED_LIMIT, list_at(&arrivals, struct ir_stage, i - 1)->range,
                   "with the word in which blocks see who arrives last a block takes %lld bytes of shared memory; at most %lld are legal", (long long)bytes, (long long)most);
        diag_note(context->diag, (struct range){0}, "legal here: smaller copies of tensors in shared memory, or another way to combine");
        return false;
      }
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
  entry->bound = list_copy(n.arena, &entry->axes);
  entry->stages.count = entry->axes.count = 0;
  entry->level = LEVEL_PROGRAM;
  return true;
}

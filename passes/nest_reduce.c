// A reduction inside one thread: its accumulators, an iteration, and what follows its loops.
//
//   var acc = 0                                  nest_emit_init
//   for j in .. { set acc = acc + load(A, j) }   nest_emit_update, inside
//   allreduce sum = sum_f32(acc) over x          nest_emit_finish
//
// Parallel loops inside the reduction make the accumulator an array; those around it that a reader does not share, the result. One that is read behind
// an arrival outlives the guards around it as an array of one element.
#include "passes/nest.h"
#include "passes/stage.h"

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
  for (uint32_t i = 0; i < axes->count; i++) list_push(n->arena, &refs, nest_here(n, ir_ref(n->arena, list_at(axes, struct ir_axis, i)->var)));
  return refs;
}

struct ir_expr *nest_read_accumulator(struct nest *n, struct work *w, uint32_t component) {
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

void nest_write_accumulator(struct nest *n, struct work *w, struct list *out, uint32_t component, struct ir_expr *value) {
  if (w->inner_axes.count) {
    write_memory(n, out, w->accumulators.at[component], &w->inner_axes, value, w->stage->range);
    return;
  }
  struct ir_stmt *set = ir_stmt(n->arena, IR_SET, w->stage->range);
  set->var = w->accumulators.at[component];
  set->value = value;
  list_push(n->arena, out, set);
}

static int64_t element_count(const struct list *axes) {
  int64_t count = 1;
  for (uint32_t i = 0; i < axes->count; i++) count *= list_at(axes, struct ir_axis, i)->extent->integer;
  return count;
}

static bool has_axis(const struct list *axes, const struct ir_axis *axis) {
  for (uint32_t i = 0; i < axes->count; i++)
    if (axes->at[i] == axis) return true;
  return false;
}

// A thread has no more than 256 registers. Copies of loops take the backend longer, with the square of their number.
bool nest_fits_registers(const struct work *w) {
  enum { MOST_ELEMENTS = 256, MOST_LOOPS = 64 };
  bool is_inside = false, has_loop = false;
  for (uint32_t d = 0; d < w->loops.count; d++) {
    const struct ir_axis *axis = list_at(&w->loops, struct ir_stage_axis, d)->axis;
    bool is_of_array = has_axis(&w->kept_axes, axis) || has_axis(&w->inner_axes, axis);
    has_loop |= is_inside && !is_of_array && axis->bind != BIND_VECTOR && axis->unroll != UINT32_MAX;
    is_inside |= is_of_array;
  }
  return element_count(&w->kept_axes) * element_count(&w->inner_axes) <= (has_loop ? MOST_LOOPS : MOST_ELEMENTS);
}

// Opens a loop over each inner axis of the work (new loop variables); returns the innermost body. nest_close_loops undoes the substitutions.
struct list *nest_open_loops(struct nest *n, struct list *out, const struct work *w) {
  bool is_whole = nest_fits_registers(w);
  for (uint32_t i = 0; i < w->inner_axes.count; i++) {
    struct ir_axis *axis = w->inner_axes.at[i];
    struct ir_stmt *loop = ir_stmt(n->arena, IR_FOR, w->stage->range);
    loop->var = ir_new_var(n->kernel, VAR_AXIS, TYPE_INDEX, axis->var->label);
    loop->lo = nest_int(n, 0);
    loop->hi = nest_here(n, axis->extent);
    if (is_whole) loop->unroll = UINT32_MAX; // it indexes a local array
    list_push(n->arena, out, loop);
    axis->var->subst = ir_ref(n->arena, loop->var);
    out = &loop->body;
  }
  return out;
}

void nest_close_loops(const struct list *axes) {
  for (uint32_t i = 0; i < axes->count; i++) list_at(axes, struct ir_axis, i)->var->subst = NULL;
}

void nest_emit_init(struct nest *n, struct work *w, struct list *out) {
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
    struct list *body = nest_open_loops(n, out, w);
    for (uint32_t k = 0; k < component_count(stage); k++) nest_write_accumulator(n, w, body, k, identity(stage, k));
    nest_close_loops(&w->inner_axes);
  }
}

// Lets of the stage, renamed so that a stage may be emitted anywhere; their substitutions stay set until end_lets.
void nest_begin_lets(struct nest *n, struct work *w, struct list *out) {
  for (uint32_t i = 0; i < w->stage->lets.count; i++) {
    struct ir_stmt *let = w->stage->lets.at[i];
    struct ir_expr *value = nest_here(n, let->value), *outer = let->var->subst; // an axis of another stage too, under other conditions
    struct ir_var *var = outer ? nest_new_let(n, let->var->label, let->var->type) : let->var;
    nest_emit_let(n, out, var, value, let->range);
    let->var->subst = ir_ref(n->arena, var);
    list_push(n->arena, &w->outer_lets, outer);
  }
}
void nest_end_lets(struct work *w) {
  for (uint32_t i = 0; i < w->stage->lets.count; i++) list_at(&w->stage->lets, struct ir_stmt, i)->var->subst = w->outer_lets.at[i];
  w->outer_lets.count = 0;
}

// An operand that is no leaf gets a name, since combine may use it more than once.
static struct ir_expr *named(struct nest *n, struct list *out, struct ir_expr *e, const char *label, struct range range) {
  if (e->op == OP_CONST || e->op == OP_VAR) return e;
  struct ir_var *var = nest_new_let(n, label, e->type);
  nest_emit_let(n, out, var, e, range);
  return ir_ref(n->arena, var);
}

// Sets accumulators to new values that may all depend on all old ones.
static void set_all(struct nest *n, struct work *w, struct list *out, struct ir_expr **values) {
  uint32_t count = component_count(w->stage);
  for (uint32_t k = 0; k < count && count > 1; k++) values[k] = named(n, out, values[k], "next", w->stage->range);
  for (uint32_t k = 0; k < count; k++) nest_write_accumulator(n, w, out, k, values[k]);
}

void nest_emit_update(struct nest *n, struct work *w, struct list *out, bool is_only) {
  struct ir_stage *stage = w->stage;
  const struct ir_reducer *reducer = stage->reducer;
  uint32_t components = component_count(stage), operands = stage->operands.count;
  bool has_update = reducer->update.params.count != 0;
  struct ir_expr **arguments = arena_array(n->arena, struct ir_expr *, components + operands), **values = arena_array(n->arena, struct ir_expr *, components);
  nest_begin_lets(n, w, out);
  for (uint32_t k = 0; k < operands; k++) arguments[components + k] = nest_here(n, stage->operands.at[k]);
  nest_end_lets(w);
  // of the language's own reducers; one of a program may do more to a value than keep it beside the identity
  if (is_only && !has_update && !reducer->range.line) {
    set_all(n, w, out, arguments + components);
    return;
  }
  bool is_simple = reducer->combine.lets.count == 0 && components == 1 && !has_update;
  for (uint32_t k = 0; k < operands && !is_simple; k++) arguments[components + k] = named(n, out, arguments[components + k], "x", stage->range);
  for (uint32_t k = 0; k < components; k++) arguments[k] = w->inner_axes.count ? named(n, out, nest_read_accumulator(n, w, k), "before", stage->range) : nest_read_accumulator(n, w, k);
  ir_inline(n->kernel, has_update ? &reducer->update : &reducer->combine, arguments, out, stage->range, values);
  set_all(n, w, out, values);
}

bool nest_result_in_all(struct nest *n, struct work *w) {
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
    for (uint32_t k = 0; k < w->stage->results.count; k++)
      if (stage_reads(other->stage, w->stage->results.at[k])) return true;
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
    axis->var->subst = nest_int(n, element % extent);
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
  bool is_array = w->kept_axes.count || w->inner_axes.count || (w->guards_done && w->is_read_later); // these guards end in front of the arrival
  for (uint32_t k = 0; k < components; k++) {
    struct ir_var *result = stage->results.at[k];
    if (is_array) {
      struct list axes = list_copy(n->arena, &w->kept_axes);
      list_append(n->arena, &axes, &w->inner_axes);
      if (w->kept.count <= k) list_push(n->arena, &w->kept, new_local(n, result->label, result->type, &axes));
      write_memory(n, body, w->kept.at[k], &axes, values[k], stage->range);
    } else {
      struct ir_var *var = nest_new_let(n, result->label, result->type);
      nest_emit_let(n, body, var, values[k], stage->range);
      result->subst = ir_ref(n->arena, var);
    }
  }
}

void nest_emit_finish(struct nest *n, struct work *w, struct list *out) {
  struct ir_stage *stage = w->stage;
  uint32_t components = component_count(stage), at_once = tuples_at_once(n, w), tuples = at_once ? at_once : 1;
  struct ir_expr **values = arena_array(n->arena, struct ir_expr *, components * tuples);
  struct list *body = at_once ? out : nest_open_loops(n, out, w);
  for (uint32_t t = 0; t < tuples; t++) {
    if (at_once) choose_element(n, &w->inner_axes, t);
    for (uint32_t k = 0; k < components; k++) values[t * components + k] = nest_read_accumulator(n, w, k);
  }
  if (w->thread_axes) {
    struct ir_stmt *allreduce = ir_stmt(n->arena, IR_ALLREDUCE, stage->range);
    allreduce->reducer = stage->reducer;
    allreduce->thread_axes = w->thread_axes;
    allreduce->form = stage->form;
    allreduce->result_in_all = nest_result_in_all(n, w);
    for (uint32_t i = 0; i < tuples * components; i++) {
      struct ir_var *result = stage->results.at[i % components];
      struct ir_var *var = nest_new_let(n, arena_printf(n->arena, "%s_all", result->label), result->type);
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
  nest_close_loops(&w->inner_axes);
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

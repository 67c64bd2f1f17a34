// stage ... in registers: a tensor that several stages read is read once.
//
//   stage peak: operand load(X, i, j)                stage X: store X_kept[jo, jv] = load(X, i, j)
//   stage total: operand load(X, i, j) - peak   ->   stage peak: operand load(X_kept, jo, jv)
//                                                    stage total: operand load(X_kept, jo, jv) - peak
//
// The stages must run over the same pieces: axes of the same names, extents and bindings inside the axis where the tensor is kept, so that the
// element that a thread reads in one stage is the one that it read in the other. Serial axes among them become the array's dimensions
// and loops that are unrolled whole, under a guard where only a bound of their extent is known. With `depth 2` the array has the first two steps of the
// outermost of these loops alone. The others are in shared memory, where each thread has words of its own:
//
//   stage X: store X_rest[jo, jt, jv] = load(X, i, j)      at step jo + 2
//   stage peak: let rest = load(X_rest, max(jo - 2, 0), jt, jv);  operand select(jo < 2, load(X_kept, min(jo, 1), jv), rest)
#include <string.h>

#include "passes/schedule.h"
#include "passes/stage.h"
#include "passes/stage_load.h"

enum { MAX_BOUND = 256, MAX_KEPT = 1024 };

struct keeper {
  struct pass_context *context;
  struct arena *arena;
  struct ir_kernel *kernel;
  struct ir_entry *entry;
  const struct ir_directive *directive;
  struct ir_mem *tensor, *kept;
  struct ir_mem *rest; // in shared memory; NULL: all are kept in registers
  struct ir_axis *at;
  struct list lets; // struct ir_stmt: those of the first stage that its element depends on, in order
  int64_t depth;    // steps of the outermost loop that are kept; 0: all
};

// The size that an extent depends on, and the constants that it may be compared with.
struct seen {
  struct ir_var *size;
  int64_t constants[8];
  uint32_t size_count, count;
};

static void see(struct ir_expr *e, void *state) {
  struct seen *seen = state;
  if (e->op == OP_VAR && e->var->kind == VAR_SIZE && e->var != seen->size) {
    seen->size = e->var;
    seen->size_count++;
  }
  if (e->op == OP_CONST && type_is_integer(e->type) && seen->count < sizeof seen->constants / sizeof *seen->constants) seen->constants[seen->count++] = e->integer;
}

// The largest extent found where the entry's condition holds, by trying what it compares sizes with: no bound below it can be proved. 0: none was found.
static int64_t attained(struct arena *arena, const struct ir_entry *entry, struct ir_expr *extent) {
  struct seen seen = {0};
  int64_t most = 0;
  if (!entry->when) return 0;
  ir_visit_expr(extent, see, &seen);
  if (seen.size_count != 1) return 0;
  seen.count = 0;
  ir_visit_expr(entry->when, see, &seen);
  if (seen.size_count != 1) return 0;
  for (uint32_t i = 0; i < seen.count; i++) {
    struct arena_mark mark = arena_place(arena);
    seen.size->subst = ir_int(arena, seen.size->type, seen.constants[i]);
    const struct ir_expr *holds = ir_substitute(arena, entry->when), *value = ir_substitute(arena, extent);
    seen.size->subst = NULL;
    if (ir_const_is(holds, true) && ir_is_const(value) && value->integer > most) most = value->integer;
    arena_release(arena, mark);
  }
  return most;
}

// Whether a guard of the stage holds only where the axis is below its extent: the axis is the outer piece of a split, of extent (E + F - 1) / F, and the guard is x < E,
// with x = axis * F + the inner piece.
static bool is_guarded(const struct ir_stage *stage, const struct ir_axis *axis) {
  const struct ir_expr *extent = axis->extent;
  if (extent->op != OP_DIV || !ir_is_const(extent->args[1]) || extent->args[0]->op != OP_ADD || !ir_const_is(extent->args[0]->args[1], extent->args[1]->integer - 1)) return false;
  for (uint32_t g = 0; g < stage->guards.count; g++) {
    const struct ir_expr *guard = stage->guards.at[g];
    if (guard->op != OP_LT || guard->args[0]->op != OP_VAR || !ir_equal(guard->args[1], extent->args[0]->args[0])) continue;
    for (uint32_t d = 0; d < stage->derived.count; d++) {
      const struct ir_stmt *let = stage->derived.at[d];
      const struct ir_expr *x = let->value, *outer = x->op == OP_ADD ? x->args[0] : NULL;
      if (let->var != guard->args[0]->var || !outer || outer->op != OP_MUL || outer->args[0]->op != OP_VAR || outer->args[0]->var != axis->var) continue;
      if (ir_equal(outer->args[1], extent->args[1]) && x->args[1]->op == OP_VAR && x->args[1]->var->kind == VAR_AXIS) return true;
    }
  }
  return false;
}

bool schedule_bound_extent(struct pass_context *context, struct ir_entry *entry, struct ir_axis *axis) {
  struct arena *arena = context->arena;
  struct facts facts;
  facts_init(&facts, arena);
  if (entry->when) facts_add_condition(&facts, entry->when);
  struct ir_expr *extent = extent_inner(axis->extent);
  int64_t least = attained(arena, entry, extent), low = least > 1 ? least : 1, high = MAX_BOUND;
  if (low > high || !prove_at_most(&facts, extent, ir_int(arena, TYPE_INDEX, high))) return false;
  if (least && prove_at_most(&facts, extent, ir_int(arena, TYPE_INDEX, low))) high = low; // a proof that fails takes far longer than one that succeeds
  while (low < high) { // the least bound that can be proved
    int64_t middle = (low + high) / 2;
    if (prove_at_most(&facts, extent, ir_int(arena, TYPE_INDEX, middle))) high = middle;
    else low = middle + 1;
  }
  struct ir_expr *guard = ir_binary(arena, OP_LT, ir_ref(arena, axis->var), axis->extent);
  for (uint32_t n = 0; n < entry->stages.count; n++) {
    struct ir_stage *stage = entry->stages.at[n];
    for (uint32_t i = 0; i < stage->axes.count; i++)
      if (list_at(&stage->axes, struct ir_stage_axis, i)->axis == axis && !is_guarded(stage, axis)) list_insert(arena, &stage->guards, 0, guard);
  }
  axis->extent = ir_int(arena, TYPE_INDEX, high);
  return true;
}

static bool refuse(struct keeper *k, const struct ir_stage *stage, const char *why) {
  diag_error(k->context->diag, ERROR_DIRECTIVE, k->directive->range, "'%s' cannot be kept in registers for stage '%s': %s", k->tensor->label, stage->label, why);
  return false;
}

// The axes of a stage inside `at` that are not around other readers: its own pieces.
static struct list own_axes(struct keeper *k, const struct ir_stage *stage) {
  struct list own = {0};
  bool is_inside = false;
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    struct ir_stage_axis *axis = stage->axes.at[i];
    if (axis->axis == k->at) is_inside = true;
    else if (is_inside) list_push(k->arena, &own, axis->axis);
  }
  return own;
}

// Whether the stage runs over the same pieces and reads the same element as the first.
static bool matches(struct keeper *k, const struct ir_stage *first, const struct list *pieces, struct ir_expr *load, const struct ir_stage *stage, struct ir_expr *other) {
  struct list own = own_axes(k, stage);
  if (own.count != pieces->count) return refuse(k, stage, "it does not run over the same axes as the first stage that reads it");
  for (uint32_t i = 0; i < own.count; i++) {
    struct ir_axis *a = pieces->at[i], *b = own.at[i];
    if (strcmp(a->var->label, b->var->label) != 0 || a->bind != b->bind || !ir_equal(a->extent, b->extent))
      return refuse(k, stage, arena_printf(k->arena, "axis '%s' differs from axis '%s' of stage '%s' in name, extent or binding", b->var->label, a->var->label, first->label));
  }
  bool same = true;
  struct ir_expr *expected = stage_in_leaves(k->arena, first, load), *found = stage_in_leaves(k->arena, stage, other);
  for (uint32_t i = 0; i < own.count; i++)
    if (own.at[i] != pieces->at[i]) list_at(&own, struct ir_axis, i)->var->subst = ir_ref(k->arena, list_at(pieces, struct ir_axis, i)->var);
  same = ir_equal(ir_substitute(k->arena, found), expected);
  for (uint32_t i = 0; i < own.count; i++) list_at(&own, struct ir_axis, i)->var->subst = NULL;
  if (!same) return refuse(k, stage, "it reads another element");
  for (uint32_t i = 0; i < first->guards.count; i++)
    if (!stage_asks(k->arena, stage, first, first->guards.at[i]))
      return refuse(k, stage, arena_printf(k->arena, "stage '%s', which reads it first, does so under a condition, or in a range, that this one has not", first->label));
  return true;
}

static struct list serial_axes(struct keeper *k, const struct list *axes) {
  struct list serial = {0};
  for (uint32_t i = 0; i < axes->count; i++) {
    struct ir_axis *axis = axes->at[i];
    if (axis->bind == BIND_SERIAL || axis->bind == BIND_VECTOR) list_push(k->arena, &serial, axis);
  }
  return serial;
}

// The axis of which only the first k->depth steps are kept: the outermost loop; NULL: there is none.
static struct ir_axis *partial_axis(const struct keeper *k, const struct list *serial) {
  for (uint32_t i = 0; i < serial->count && k->depth; i++)
    if (list_at(serial, struct ir_axis, i)->bind == BIND_SERIAL) return serial->at[i];
  return NULL;
}

static int64_t kept_extent(const struct keeper *k, const struct list *serial, const struct ir_axis *axis) {
  int64_t extent = axis->extent->integer > 0 ? axis->extent->integer : 1;
  return axis == partial_axis(k, serial) && k->depth < extent ? k->depth : extent;
}

// The axes of a stage that are on threads, x last.
static struct list thread_axes(struct keeper *k, const struct ir_stage *stage) {
  struct list found = {0};
  for (int bind = BIND_THREAD_Z; bind >= BIND_THREAD_X; bind--)
    for (uint32_t i = 0; i < stage->axes.count; i++) {
      struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, i)->axis;
      if (axis->bind == (enum ir_bind)bind) list_push(k->arena, &found, axis);
    }
  return found;
}

// Where in the rest a stage finds its element: `step` of what is not kept, other loops, threads, vectors.
static struct list rest_indices(struct keeper *k, const struct ir_stage *stage, const struct list *serial, struct ir_expr *step) {
  const struct ir_axis *partial = partial_axis(k, serial);
  struct list indices = {0}, threads = thread_axes(k, stage);
  list_push(k->arena, &indices, step);
  for (uint32_t i = 0; i < serial->count; i++) {
    const struct ir_axis *axis = serial->at[i];
    if (axis != partial && axis->bind == BIND_SERIAL) list_push(k->arena, &indices, ir_ref(k->arena, axis->var));
  }
  for (uint32_t i = 0; i < threads.count; i++) list_push(k->arena, &indices, ir_ref(k->arena, list_at(&threads, struct ir_axis, i)->var));
  for (uint32_t i = 0; i < serial->count; i++) {
    const struct ir_axis *axis = serial->at[i];
    if (axis->bind == BIND_VECTOR) list_push(k->arena, &indices, ir_ref(k->arena, axis->var));
  }
  return indices;
}

// What the stage reads instead of the tensor. What is read of shared memory stands alone: *rest_let, a let in front of the others, or NULL.
static struct ir_expr *load_kept(struct keeper *k, const struct ir_stage *stage, const struct list *serial, struct ir_stmt **rest_let) {
  struct list indices = {0};
  const struct ir_axis *partial = k->rest ? partial_axis(k, serial) : NULL;
  for (uint32_t i = 0; i < serial->count; i++) {
    const struct ir_axis *axis = serial->at[i];
    struct ir_expr *index = ir_ref(k->arena, axis->var);
    if (axis == partial) index = ir_binary(k->arena, OP_MIN, index, ir_int(k->arena, TYPE_INDEX, k->depth - 1));
    list_push(k->arena, &indices, index);
  }
  struct ir_expr *kept = ir_load(k->arena, k->kept, &indices);
  *rest_let = NULL;
  if (!partial) return kept;
  struct ir_expr *depth = ir_int(k->arena, TYPE_INDEX, k->depth), *step = ir_ref(k->arena, partial->var);
  struct list rest = rest_indices(k, stage, serial, ir_binary(k->arena, OP_MAX, ir_binary(k->arena, OP_SUB, step, depth), ir_int(k->arena, TYPE_INDEX, 0)));
  struct ir_var *var = ir_new_var(k->kernel, VAR_LET, k->tensor->type, k->rest->label);
  *rest_let = ir_let(k->arena, var, ir_load(k->arena, k->rest, &rest), stage->range);
  return ir_select(k->arena, ir_binary(k->arena, OP_LT, step, depth), kept, ir_ref(k->arena, var));
}

static void use_kept(struct keeper *k, struct ir_stage *stage) {
  struct list own = own_axes(k, stage), serial = serial_axes(k, &own);
  struct ir_stmt *rest_let;
  struct load_replacement replace = {k->tensor, load_kept(k, stage, &serial, &rest_let)};
  load_replace_list(k->arena, &stage->operands, &replace);
  load_replace_list(k->arena, &stage->guards, &replace);
  ir_rewrite_block(k->arena, &stage->lets, load_replace, &replace);
  if (stage->value) stage->value = ir_rewrite_expr(k->arena, stage->value, load_replace, &replace);
  if (!rest_let) return;
  stage->lets = list_copy(k->arena, &stage->lets);
  list_insert(k->arena, &stage->lets, 0, rest_let);
}

// Constant extents for the array's dimensions, and loops that are unrolled whole.
static bool bound_axes(struct keeper *k, const struct ir_stage *stage, const struct list *serial) {
  int64_t elements = 1;
  if (k->directive->numbers.count && !k->depth) return refuse(k, stage, "with depth 0 no step would be");
  if (k->depth && !partial_axis(k, serial)) return refuse(k, stage, "a thread has no loop over it of which it could keep some steps");
  for (uint32_t i = 0; i < serial->count; i++) {
    struct ir_axis *axis = serial->at[i];
    if (!ir_is_const(axis->extent) && !schedule_bound_extent(k->context, k->entry, axis))
      return refuse(k, stage, arena_printf(k->arena, "the extent of axis '%s' has no constant bound; state one in `when`", axis->var->label));
    if (axis->bind == BIND_SERIAL) {
      axis->unroll = UINT32_MAX;
      if (!axis->bound_at.line) axis->bound_at = k->directive->range;
    }
    elements *= axis->extent->integer > 0 ? axis->extent->integer : 1;
    if (elements > MAX_KEPT) return refuse(k, stage, "that would take more than 1024 elements a thread");
  }
  return true;
}

static void make_array(struct keeper *k, const struct list *serial) {
  struct ir_mem *mem = arena_new(k->arena, struct ir_mem);
  mem->label = arena_printf(k->arena, "%s_kept", k->tensor->label);
  mem->name = ir_fresh_name(k->kernel, mem->label);
  mem->space = SPACE_LOCAL;
  mem->type = k->tensor->type;
  mem->alignment = type_bytes(mem->type);
  mem->range = k->directive->range;
  int64_t row = 1;
  for (uint32_t i = serial->count; i-- > 0;) {
    const struct ir_axis *axis = serial->at[i];
    int64_t extent = kept_extent(k, serial, axis);
    list_insert(k->arena, &mem->dims, 0, ir_int(k->arena, TYPE_I64, extent));
    list_insert(k->arena, &mem->strides, 0, ir_int(k->arena, TYPE_I64, row));
    row *= extent;
  }
  list_push(k->arena, &k->entry->memory, mem);
  k->kept = mem;
}

static void add_dimension(struct keeper *k, struct ir_mem *mem, int64_t extent, int64_t *row) {
  list_insert(k->arena, &mem->dims, 0, ir_int(k->arena, TYPE_I64, extent));
  list_insert(k->arena, &mem->strides, 0, ir_int(k->arena, TYPE_I64, *row));
  *row = extent > 0 && *row <= MAX_KEPT * MAX_KEPT ? *row * extent : *row;
}

// What registers do not hold, in shared memory: an element for each step, thread and element of a vector.
static bool make_rest(struct keeper *k, const struct ir_stage *first, const struct list *serial) {
  const struct ir_axis *partial = partial_axis(k, serial);
  if (!partial || partial->extent->integer <= k->depth) return true;
  struct ir_mem *mem = arena_new(k->arena, struct ir_mem);
  struct list threads = thread_axes(k, first);
  int64_t row = 1, total, most;
  mem->label = arena_printf(k->arena, "%s_rest", k->tensor->label);
  mem->name = ir_fresh_name(k->kernel, mem->label);
  mem->space = SPACE_SHARED;
  mem->type = k->tensor->type;
  mem->alignment = 16;
  mem->range = k->directive->range;
  for (uint32_t i = serial->count; i-- > 0;) {
    const struct ir_axis *axis = serial->at[i];
    if (axis->bind == BIND_VECTOR) add_dimension(k, mem, axis->extent->integer, &row);
  }
  for (uint32_t i = threads.count; i-- > 0;) {
    const struct ir_axis *axis = threads.at[i];
    if (!ir_is_const(axis->extent)) return refuse(k, first, arena_printf(k->arena, "axis '%s' on threads has no constant extent", axis->var->label));
    add_dimension(k, mem, axis->extent->integer, &row);
  }
  for (uint32_t i = serial->count; i-- > 0;) {
    const struct ir_axis *axis = serial->at[i];
    if (axis != partial && axis->bind == BIND_SERIAL) add_dimension(k, mem, axis->extent->integer > 0 ? axis->extent->integer : 1, &row);
  }
  add_dimension(k, mem, partial->extent->integer - k->depth, &row);
  list_push(k->arena, &k->entry->memory, mem);
  if (entry_exceeds_shared(k->entry, k->context, &total, &most)) {
    diag_error(k->context->diag, ERROR_SHARED_LIMIT, k->directive->range, "with what registers do not hold of '%s' a block takes %lld bytes of shared memory; at most %lld are legal",
               k->tensor->label, (long long)total, (long long)most);
    return false;
  }
  k->rest = mem;
  return true;
}

// The stage that fills the array, or the rest: the first reader's axes (serial ones of its own), derived axes and guards.
static struct ir_stage *make_stage(struct keeper *k, const struct ir_stage *first, struct ir_expr *load, bool is_rest) {
  struct ir_stage *stage = arena_new(k->arena, struct ir_stage);
  stage->kind = STAGE_STORE;
  stage->label = k->tensor->label;
  stage->range = k->directive->range;
  struct list pieces = own_axes(k, first), all = serial_axes(k, &pieces), serial = {0};
  const struct ir_axis *partial = partial_axis(k, &all);
  struct ir_axis *moved = NULL;
  for (uint32_t i = 0; i < first->axes.count; i++) {
    struct ir_stage_axis *source = first->axes.at[i], *used = arena_new(k->arena, struct ir_stage_axis);
    *used = *source;
    used->is_reduction = false;
    bool is_piece = false;
    for (uint32_t p = 0; p < pieces.count; p++) is_piece |= pieces.at[p] == source->axis;
    if (is_piece) {
      struct ir_axis *axis = arena_new(k->arena, struct ir_axis);
      *axis = *source->axis;
      axis->var = ir_new_var(k->kernel, VAR_AXIS, TYPE_INDEX, source->axis->var->label);
      axis->var->range = source->axis->var->range;
      source->axis->var->subst = ir_ref(k->arena, axis->var);
      if (source->axis == partial) {
        int64_t extent = partial->extent->integer; // of 0 there is an element, and no step
        axis->extent = ir_int(k->arena, TYPE_INDEX, is_rest ? extent - k->depth : extent < k->depth ? extent : k->depth);
        if (is_rest) source->axis->var->subst = ir_binary(k->arena, OP_ADD, source->axis->var->subst, ir_int(k->arena, TYPE_INDEX, k->depth));
        moved = axis;
      }
      list_push(k->arena, &k->entry->axes, axis);
      used->axis = axis;
      if (axis->bind == BIND_SERIAL || axis->bind == BIND_VECTOR) list_push(k->arena, &serial, axis);
    }
    list_push(k->arena, &stage->axes, used);
  }
  struct list renamed = {0};
  for (uint32_t i = 0; i < first->derived.count; i++) {
    struct ir_stmt *let = first->derived.at[i];
    struct ir_var *var = ir_new_var(k->kernel, VAR_LET, TYPE_INDEX, let->var->label);
    var->range = let->var->range;
    list_push(k->arena, &stage->derived, ir_let(k->arena, var, ir_substitute(k->arena, let->value), let->range));
    let->var->subst = ir_ref(k->arena, var);
    list_push(k->arena, &renamed, let->var);
  }
  stage->guards = first->guards;
  ir_substitute_list(k->arena, &stage->guards);
  for (uint32_t i = 0; i < k->lets.count; i++) {
    struct ir_stmt *let = k->lets.at[i];
    struct ir_var *var = ir_new_var(k->kernel, VAR_LET, let->var->type, let->var->label);
    var->range = let->var->range;
    list_push(k->arena, &stage->lets, ir_let(k->arena, var, ir_substitute(k->arena, let->value), let->range));
    let->var->subst = ir_ref(k->arena, var);
    list_push(k->arena, &renamed, let->var);
  }
  stage->mem = is_rest ? k->rest : k->kept;
  if (is_rest) stage->indices = rest_indices(k, stage, &serial, ir_ref(k->arena, moved->var));
  for (uint32_t i = 0; !is_rest && i < serial.count; i++) list_push(k->arena, &stage->indices, ir_ref(k->arena, list_at(&serial, struct ir_axis, i)->var));
  stage->value = ir_substitute(k->arena, load);
  for (uint32_t i = 0; i < pieces.count; i++) list_at(&pieces, struct ir_axis, i)->var->subst = NULL;
  for (uint32_t i = 0; i < renamed.count; i++) list_at(&renamed, struct ir_var, i)->subst = NULL;
  return stage;
}

static void find_kept(struct ir_expr *e, void *state) { *(bool *)state |= e->op == OP_LOAD && e->mem->space != SPACE_GLOBAL; }

// The lets that the element depends on go into the stage that fills. Not where it depends on what is kept itself: that need not be there yet.
static bool find_lets(struct keeper *k, const struct ir_stage *first, struct ir_expr *load) {
  bool is_kept = false;
  ir_visit_expr(load, find_kept, &is_kept);
  for (uint32_t i = first->lets.count; i-- > 0;) {
    struct ir_stmt *let = first->lets.at[i];
    bool is_needed = ir_mentions(load, let->var);
    for (uint32_t n = 0; n < k->lets.count; n++) is_needed |= ir_mentions(list_at(&k->lets, struct ir_stmt, n)->value, let->var);
    if (!is_needed) continue;
    list_insert(k->arena, &k->lets, 0, let);
    ir_visit_expr(let->value, find_kept, &is_kept);
  }
  return !is_kept || refuse(k, first, "which element it reads depends on a tensor that is kept or copied itself");
}

static void find_other_value(struct ir_expr *e, void *state) {
  if (e->op == OP_LOAD || (e->op == OP_VAR && e->var->kind == VAR_VALUE)) *(bool *)state = true;
}

// The axis that the directive names: of several, that of the first stage that reads the tensor.
static struct ir_axis *find_at(const struct keeper *k) {
  const char *stage_name = k->directive->stages.at[0];
  struct ir_axis *found = NULL;
  for (uint32_t n = k->entry->stages.count; n-- > 0;) {
    const struct ir_stage *stage = k->entry->stages.at[n];
    if (*stage_name && !stage_is_named(stage, stage_name)) continue;
    bool reads = stage_find_load(stage, k->tensor).load != NULL;
    for (uint32_t i = 0; i < stage->axes.count; i++) {
      struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, i)->axis;
      if (strcmp(axis->var->label, k->directive->axes.at[0]) == 0 && (reads || !found)) found = axis;
    }
  }
  return found;
}

bool schedule_registers(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry, const struct ir_directive *directive) {
  struct keeper k = {.context = context, .arena = context->arena, .kernel = kernel, .entry = entry, .directive = directive};
  for (uint32_t i = 0; i < kernel->tensors.count; i++)
    if (strcmp(list_at(&kernel->tensors, struct ir_mem, i)->name, directive->names.at[0]) == 0) k.tensor = kernel->tensors.at[i];
  if (directive->numbers.count) k.depth = (int64_t)(uintptr_t)directive->numbers.at[0];
  if (k.tensor) k.at = find_at(&k);
  if (!k.tensor || !k.at) {
    diag_error(context->diag, ERROR_UNKNOWN_AXIS, *list_at(&directive->axis_places, struct range, 0), "no axis is named '%s'", (const char *)directive->axes.at[0]);
    return false;
  }
  struct ir_stage *first = NULL;
  struct ir_expr *load = NULL;
  struct list pieces = {0};
  uint32_t first_place = 0;
  for (uint32_t n = 0; n < entry->stages.count; n++) {
    struct ir_stage *stage = entry->stages.at[n];
    struct stage_load find = stage_find_load(stage, k.tensor);
    bool is_inside = false;
    for (uint32_t i = 0; i < stage->axes.count; i++) is_inside |= list_at(&stage->axes, struct ir_stage_axis, i)->axis == k.at;
    if (!find.load || !is_inside) continue;
    if (find.differs) return refuse(&k, stage, "it reads several elements of it");
    if (stage->kind == STAGE_STORE && stage->mem->space != SPACE_GLOBAL) return refuse(&k, stage, "it is kept or copied already");
    bool is_guarded = false; // a guard that reads memory or a value may differ from stage to stage
    for (uint32_t i = 0; i < stage->guards.count; i++) ir_visit_expr(stage->guards.at[i], find_other_value, &is_guarded);
    if (is_guarded) return refuse(&k, stage, "a guard around it depends on values");
    if (first) {
      if (!matches(&k, first, &pieces, load, stage, find.load)) return false;
      continue;
    }
    first = stage;
    first_place = n;
    load = find.load;
    pieces = own_axes(&k, stage);
  }
  if (!first) {
    diag_error(context->diag, ERROR_DIRECTIVE, directive->range, "no stage inside '%s' reads '%s'", k.at->var->label, k.tensor->label);
    return false;
  }
  for (uint32_t n = first_place; n < entry->stages.count; n++) { // the same bounds in every stage
    struct ir_stage *stage = entry->stages.at[n];
    struct stage_load find = stage_find_load(stage, k.tensor);
    struct list own = own_axes(&k, stage), serial = serial_axes(&k, &own);
    if (find.load && !bound_axes(&k, stage, &serial)) return false;
  }
  if (!find_lets(&k, first, load)) return false;
  struct list serial = serial_axes(&k, &pieces);
  const struct ir_axis *partial = partial_axis(&k, &serial);
  if (partial && partial->extent->integer == k.depth + 1 && k.depth > 1) k.depth--; // the last step may be one of few threads: all have words of the one before
  make_array(&k, &serial);
  if (!make_rest(&k, first, &serial)) return false;
  struct ir_stage *fill = make_stage(&k, first, load, false), *rest = k.rest ? make_stage(&k, first, load, true) : NULL;
  for (uint32_t n = first_place; n < entry->stages.count; n++) {
    struct ir_stage *stage = entry->stages.at[n];
    struct stage_load find = stage_find_load(stage, k.tensor);
    bool is_inside = false;
    for (uint32_t i = 0; i < stage->axes.count; i++) is_inside |= list_at(&stage->axes, struct ir_stage_axis, i)->axis == k.at;
    if (find.load && is_inside) use_kept(&k, stage);
  }
  if (rest) schedule_insert_fill(k.arena, entry, rest, first_place);
  schedule_insert_fill(k.arena, entry, fill, first_place);
  return true;
}

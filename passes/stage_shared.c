// stage ... in shared: the part of a tensor that stages inside an axis read is copied to shared memory first.
//
//   stage Y: store, axes t (block.x), ii, ji; derived i = .. + ii, j = .. + ji; guards i < a, j < b; Y[j, i] = load(X, i, j)
//   ->
//   stage S: store, axes t (block.x), ii_2, ji_2; derived i_2 = .. + ii_2, ..; guards i_2 < a, j_2 < b; S[ii_2, ji_2] = load(X, i_2, j_2)
//   stage Y: store, axes t (block.x), ii, ji; derived i = .. + ii, j = .. + ji; guards i < a, j < b; Y[j, i] = load(S, ii, ji)
//
// The copy has an axis for each axis inside `at` that the place in the tensor depends on, in the order of the reader's nest. Its
// guards are those of the reader that can be said in its axes, and where these are not all, what keeps it inside the tensor: so all that is
// read was written. Where nothing binds its axes, the threads that the block has share the work. Pass `nest` puts barriers around it.
#include <string.h>

#include "passes/schedule.h"
#include "passes/stage.h"
#include "passes/stage_load.h"

// A kernel declares at most STATIC_LIMIT bytes; one larger copy is asked for at launch. MOST_UNITS is more than any block may have.
enum { MOST_UNITS = 1 << 18 };

struct sharer {
  struct pass_context *context;
  struct arena *arena;
  struct ir_kernel *kernel;
  struct ir_entry *entry;
  const struct ir_directive *directive;
  struct ir_mem *tensor, *copy;
  const char *at;     // label of the axis
  struct list own;    // struct ir_axis: of the first reader, inside `at`, that the copy has too
  struct list axes;   // struct ir_axis: the copy's, one for each
  struct list readers; // struct ir_stage, in order
  struct ir_expr *place; // `depth`: which of the places in the copy an iteration has; NULL elsewhere
  struct ir_expr *phase; // `along`: by how much the part's first element lies behind the start of the copy; NULL elsewhere
  int64_t bytes;         // `along`: of the copy
  bool has_other_axes; // inside `at`, which the copy has not
};

static bool refuse(struct sharer *s, const struct ir_stage *stage, const char *why) {
  diag_error(s->context->diag, ERROR_DIRECTIVE, s->directive->range, "'%s' cannot be staged in shared memory for stage '%s': %s", s->tensor->label, stage->label, why);
  return false;
}

// --- The reader -------------------------------------------------------------------------------------------------------

// The place of `at` among the stage's axes; UINT32_MAX: it has none.
static uint32_t place_of_at(const struct sharer *s, const struct ir_stage *stage) {
  for (uint32_t i = 0; i < stage->axes.count; i++)
    if (strcmp(list_at(&stage->axes, struct ir_stage_axis, i)->axis->var->label, s->at) == 0) return i;
  return UINT32_MAX;
}

// Finds s->own: the axes inside `at` that the place in the tensor mentions, in the order of the nest.
static bool find_own(struct sharer *s, const struct ir_stage *stage, const struct ir_expr *load) {
  uint32_t at = place_of_at(s, stage);
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, i)->axis;
    bool is_mentioned = false;
    for (uint32_t d = 0; d < load->count; d++) is_mentioned |= ir_mentions(stage_in_leaves(s->arena, stage, load->args[d]), axis->var);
    if (!is_mentioned) {
      s->has_other_axes |= i > at;
    } else if (i > at) {
      list_push(s->arena, &s->own, axis);
    } else if (axis->bind >= BIND_THREAD_X && axis->bind <= BIND_THREAD_Z) {
      return refuse(s, stage, arena_printf(s->arena, "axis '%s' outside '%s' is bound to threads, which share one copy", axis->var->label, s->at));
    }
  }
  for (uint32_t i = 0; i < stage->guards.count; i++) {
    const struct ir_expr *guard = stage->guards.at[i];
    if (guard->count != 2 || !mentions_axis(guard->args[1])) continue;
    for (uint32_t k = 0; k < s->own.count; k++)
      if (ir_mentions(stage_in_leaves(s->arena, stage, guard->args[0]), list_at(&s->own, struct ir_axis, k)->var))
        return refuse(s, stage, "an axis of what it reads has a range that depends on another axis");
  }
  for (uint32_t i = 0; i < s->own.count; i++) {
    struct ir_axis *axis = s->own.at[i];
    if (axis->bind >= BIND_BLOCK_X && axis->bind <= BIND_BLOCK_Z)
      return refuse(s, stage, arena_printf(s->arena, "axis '%s' inside '%s' is bound to blocks, which share no memory", axis->var->label, s->at));
    if (mentions_axis(axis->extent))
      return refuse(s, stage, arena_printf(s->arena, "axis '%s' has a range that depends on another axis", axis->var->label));
    if (!ir_is_const(axis->extent) && !schedule_bound_extent(s->context, s->entry, axis)) {
      refuse(s, stage, arena_printf(s->arena, "the extent of axis '%s' has no constant bound", axis->var->label));
      diag_note(s->context->diag, (struct range){0}, "split it by a constant outside '%s', or state a bound in `when`", s->at);
      return false;
    }
  }
  return true;
}

// --- The copy ---------------------------------------------------------------------------------------------------------

static uint64_t number(const struct sharer *s, enum ir_shared_number which) { return (uintptr_t)s->directive->numbers.at[which]; }

static void add_dimension(struct sharer *s, int64_t extent, int64_t stride) {
  list_insert(s->arena, &s->copy->dims, 0, ir_int(s->arena, TYPE_I64, extent));
  list_insert(s->arena, &s->copy->strides, 0, ir_int(s->arena, TYPE_I64, stride));
}

// `depth D`: iteration x of the axis `at` has place x % D, pieces of 16 bytes apart. Returns the bytes of all.
static int64_t add_places(struct sharer *s, int64_t elements) {
  enum { PIECE = 16 };
  int64_t bytes = type_bytes(s->tensor->type), depth = (int64_t)number(s, SHARED_DEPTH);
  if (depth == 1) return elements * bytes;
  int64_t stride = (elements * bytes + PIECE - 1) / PIECE * PIECE;
  add_dimension(s, depth, stride / bytes);
  return stride * depth;
}

static void find_place(struct sharer *s, const struct ir_stage *reader) {
  int64_t depth = (int64_t)number(s, SHARED_DEPTH);
  struct ir_axis *at = list_at(&reader->axes, struct ir_stage_axis, place_of_at(s, reader))->axis;
  if (depth > 1) s->place = ir_binary(s->arena, OP_MOD, ir_ref(s->arena, at->var), ir_int(s->arena, TYPE_INDEX, depth));
}

// The places of the axes that the directive names.
enum { AXIS_AT, AXIS_OF_UNIT, AXIS_OF_PAD };

// The axis that a unit or a pad lies along, as a place in s->own; UINT32_MAX: none.
static uint32_t place_along(const struct sharer *s, uint32_t which) {
  for (uint32_t i = 0; i < s->own.count && s->directive->axes.count > which; i++)
    if (strcmp(list_at(&s->own, struct ir_axis, i)->var->label, s->directive->axes.at[which]) == 0) return i;
  return UINT32_MAX;
}

static bool has_no_axis(struct sharer *s, uint32_t which) {
  diag_error(s->context->diag, ERROR_UNKNOWN_AXIS, *list_at(&s->directive->axis_places, struct range, which), "the copy of '%s' has no axis '%s'", s->tensor->label,
             (const char *)s->directive->axes.at[which]);
  return false;
}

static bool check_layout(struct sharer *s, int64_t units) {
  struct diag *diag = s->context->diag;
  struct range range = s->directive->range;
  uint64_t bits = number(s, SHARED_BITS), base = number(s, SHARED_BASE), shift = number(s, SHARED_SHIFT);
  if (bits && (bits > 10 || base > 20 || shift < 1 || shift > 20)) {
    diag_error(diag, ERROR_DIRECTIVE, range, "a swizzle has at most 10 bits, a base up to 20 and a shift from 1 to 20");
    return false;
  }
  if (bits && units % ((int64_t)1 << (bits + base))) {
    diag_error(diag, ERROR_DIRECTIVE, range, "swizzle %u,%u,%u permutes groups of %lld units, and the copy of '%s' has %lld units, not a multiple", (unsigned)bits,
               (unsigned)base, (unsigned)shift, (long long)1 << (bits + base), s->tensor->label, (long long)units);
    return false;
  }
  return true;
}

static void begin_memory(struct sharer *s) {
  struct ir_mem *mem = s->copy = arena_new(s->arena, struct ir_mem);
  mem->label = s->directive->names.at[1];
  mem->name = ir_fresh_name(s->kernel, mem->label);
  mem->space = SPACE_SHARED;
  mem->type = s->tensor->type;
  mem->alignment = 16;
  mem->range = s->directive->range;
}

// One copy may be larger than what a kernel can declare, or is left of it.
static bool add_memory(struct sharer *s, int64_t units, int64_t own) {
  struct diag *diag = s->context->diag;
  struct ir_mem *mem = s->copy;
  int64_t declared = entry_shared_bytes(s->entry, false), most = s->context->options->target ? s->context->options->target->shared_limit : STATIC_LIMIT;
  int64_t before = entry_shared_bytes(s->entry, true), total = before + own;
  mem->is_dynamic = declared + own > STATIC_LIMIT && before == declared;
  declared += mem->is_dynamic ? 0 : own;
  if (units <= MOST_UNITS) list_push(s->arena, &s->entry->memory, mem);
  if (units <= MOST_UNITS && declared > STATIC_LIMIT) {
    entry_ask_for_largest(s->entry);
    declared = entry_shared_bytes(s->entry, false);
  }
  if (declared > STATIC_LIMIT) total = declared, most = STATIC_LIMIT;
  if (units > MOST_UNITS || total > most) {
    diag_error(diag, ERROR_SHARED_LIMIT, s->directive->range, "with the copy of '%s' a block takes %lld bytes of shared memory%s; at most %lld are legal", s->tensor->label, (long long)total,
               units > MOST_UNITS ? " or more" : "", (long long)most);
    diag_note(diag, (struct range){0}, "split the axes inside '%s' by smaller factors", s->at);
    return false;
  }
  return true;
}

static bool make_memory(struct sharer *s) {
  struct diag *diag = s->context->diag;
  struct range range = s->directive->range;
  struct ir_mem *mem = s->copy;
  uint32_t along = place_along(s, AXIS_OF_UNIT), padded = place_along(s, AXIS_OF_PAD);
  int64_t unit = (int64_t)number(s, SHARED_UNIT), pad = (int64_t)number(s, SHARED_PAD), row = 1, units = 1, bytes = type_bytes(s->tensor->type);
  if (unit > 1 && along == UINT32_MAX) return has_no_axis(s, AXIS_OF_UNIT);
  if (s->directive->axes.count > AXIS_OF_PAD && padded == UINT32_MAX) return has_no_axis(s, AXIS_OF_PAD);
  if (padded == UINT32_MAX) padded = s->own.count - 1;
  if (unit > 1 && ((unit & (unit - 1)) || unit * bytes > 16)) {
    diag_error(diag, ERROR_DIRECTIVE, range, "a unit is a power of two of elements and at most 16 bytes");
    return false;
  }
  if (unit > 1) add_dimension(s, unit, 1);
  for (uint32_t i = s->own.count; i-- > 0;) {
    struct ir_axis *axis = s->own.at[i];
    int64_t extent = axis->extent->integer;
    if (i == along && unit > 1 && extent % unit) {
      diag_error(diag, ERROR_DIRECTIVE, range, "a unit of %lld does not divide the %lld iterations of axis '%s'", (long long)unit, (long long)extent, axis->var->label);
      return false;
    }
    if (i == along && unit > 1) extent /= unit;
    if (__builtin_mul_overflow(units, extent > 0 ? extent : 1, &units) || units > MOST_UNITS) units = MOST_UNITS + 1;
    add_dimension(s, extent > 0 ? extent : 1, row * unit);
    row = (extent > 0 && units <= MOST_UNITS ? row * extent : row) + (i == padded ? pad : 0);
  }
  mem->unit = unit > 1 ? (uint32_t)unit : 0;
  mem->swizzle_bits = (uint32_t)number(s, SHARED_BITS);
  mem->swizzle_base = (uint32_t)number(s, SHARED_BASE);
  mem->swizzle_shift = (uint32_t)number(s, SHARED_SHIFT);
  if (!check_layout(s, units)) return false;
  return add_memory(s, units, add_places(s, row * unit));
}

// Indices of the copy for the places that `axes` stand at.
static struct list copy_indices(struct sharer *s, const struct list *axes) {
  struct list indices = {0};
  uint32_t along = place_along(s, AXIS_OF_UNIT);
  if (s->place) list_push(s->arena, &indices, s->place);
  else if (s->phase) list_push(s->arena, &indices, ir_int(s->arena, TYPE_INDEX, 0));
  struct ir_expr *rest = NULL;
  for (uint32_t i = 0; i < axes->count; i++) {
    struct ir_expr *place = ir_ref(s->arena, list_at(axes, struct ir_axis, i)->var);
    if (i == along && s->copy->unit > 1) {
      struct ir_expr *unit = ir_int(s->arena, TYPE_INDEX, s->copy->unit);
      rest = ir_binary(s->arena, OP_MOD, place, unit);
      place = ir_binary(s->arena, OP_DIV, place, unit);
    }
    list_push(s->arena, &indices, place);
  }
  if (rest) list_push(s->arena, &indices, rest);
  if (!s->phase) return indices;
  for (uint32_t i = 0; i < axes->count; i++) list_at(&s->own, struct ir_axis, i)->var->subst = ir_ref(s->arena, list_at(axes, struct ir_axis, i)->var);
  list_push(s->arena, &indices, ir_substitute(s->arena, s->phase));
  for (uint32_t i = 0; i < axes->count; i++) list_at(&s->own, struct ir_axis, i)->var->subst = NULL;
  return indices;
}

// --- The stage that fills it ------------------------------------------------------------------------------------------

static void find_unavailable(struct ir_expr *e, void *state) {
  if (e->op == OP_LOAD || (e->op == OP_VAR && (e->var->kind == VAR_VALUE || e->var->mark))) *(bool *)state = true;
}
static bool is_available(struct ir_expr *e) {
  bool unavailable = false;
  ir_visit_expr(e, find_unavailable, &unavailable);
  return !unavailable;
}

// The copy's own axes and the ones around it; variables of other axes are marked.
static void give_axes(struct sharer *s, const struct ir_stage *reader, struct ir_stage *fill) {
  uint32_t at = place_of_at(s, reader);
  for (uint32_t i = 0; i < reader->axes.count; i++) {
    struct ir_stage_axis *source = reader->axes.at[i];
    bool on_threads = source->axis->bind >= BIND_THREAD_X && source->axis->bind <= BIND_THREAD_Z;
    source->axis->var->mark = i > at || on_threads;
    if (i > at || on_threads) continue;
    struct ir_stage_axis *used = arena_new(s->arena, struct ir_stage_axis);
    used->axis = source->axis;
    list_push(s->arena, &fill->axes, used);
  }
  for (uint32_t i = 0; i < s->own.count; i++) {
    struct ir_axis *source = s->own.at[i], *axis = arena_new(s->arena, struct ir_axis);
    struct ir_stage_axis *used = arena_new(s->arena, struct ir_stage_axis);
    axis->var = ir_new_var(s->kernel, VAR_AXIS, TYPE_INDEX, source->var->label);
    axis->var->range = s->directive->range;
    axis->extent = source->extent;
    axis->range = s->directive->range;
    list_push(s->arena, &s->entry->axes, axis);
    list_push(s->arena, &s->axes, axis);
    used->axis = axis;
    list_push(s->arena, &fill->axes, used);
    source->var->mark = 0;
    source->var->subst = ir_ref(s->arena, axis->var);
  }
}

// Derived axes that can be said in the copy's; those that differ from the reader's get variables of their own.
static void give_derived(struct sharer *s, const struct ir_stage *reader, struct ir_stage *fill) {
  for (uint32_t i = 0; i < reader->derived.count; i++) {
    struct ir_stmt *let = reader->derived.at[i];
    let->var->mark = !is_available(let->value);
    if (let->var->mark) continue;
    struct ir_expr *value = ir_substitute(s->arena, let->value);
    if (value == let->value) {
      list_push(s->arena, &fill->derived, let);
      continue;
    }
    struct ir_var *var = ir_new_var(s->kernel, VAR_LET, TYPE_INDEX, let->var->label);
    var->range = let->var->range;
    list_push(s->arena, &fill->derived, ir_let(s->arena, var, value, let->range));
    let->var->subst = ir_ref(s->arena, var);
  }
}

// Whether the place is never negative because no axis of the source, now derived from pieces, is.
static bool is_nonnegative(struct sharer *s, const struct ir_stage *fill, struct ir_expr *place) {
  struct facts facts;
  struct ir_expr *zero = ir_int(s->arena, TYPE_INDEX, 0), *most = ir_int(s->arena, TYPE_INDEX, INT64_MAX / 4);
  facts_init(&facts, s->arena);
  for (uint32_t i = 0; i < fill->axes.count; i++) facts_add_axis(&facts, list_at(&fill->axes, struct ir_stage_axis, i)->axis->var, zero, most);
  for (uint32_t i = 0; i < fill->derived.count; i++) facts_add_axis(&facts, list_at(&fill->derived, struct ir_stmt, i)->var, zero, most);
  return prove_at_most(&facts, zero, place);
}

// What keeps the fill inside the tensor where the guards that it has do not.
static void add_bounds(struct sharer *s, struct ir_stage *fill, struct ir_expr *load) {
  struct ir_expr *zero = ir_int(s->arena, TYPE_INDEX, 0);
  for (uint32_t d = 0; d < load->count; d++) {
    struct facts facts;
    facts_init(&facts, s->arena);
    if (s->entry->when) facts_add_condition(&facts, s->entry->when);
    for (uint32_t i = 0; i < s->entry->assumptions.count; i++)
      facts_add_condition(&facts, list_at(&s->entry->assumptions, struct ir_requirement, i)->condition);
    stage_facts(fill, &facts);
    struct ir_expr *place = load->args[d], *extent = ir_cast(s->arena, TYPE_INDEX, s->tensor->dims.at[d]);
    if (!prove_at_most(&facts, zero, place) && !is_nonnegative(s, fill, place)) list_push(s->arena, &fill->guards, ir_binary(s->arena, OP_GE, place, zero));
    if (!prove_less(&facts, place, extent)) list_push(s->arena, &fill->guards, ir_binary(s->arena, OP_LT, place, extent));
  }
}

// Whether each other reader has this guard of the first one, its axes inside `at` named alike: else the copy must hold what they read without it.
static bool is_guard_of_all(struct sharer *s, const struct ir_stage *first, struct ir_expr *guard) {
  struct ir_expr *wanted = stage_in_leaves(s->arena, first, guard);
  for (uint32_t n = 0; n < s->readers.count; n++) {
    const struct ir_stage *other = s->readers.at[n];
    bool has_it = other == first;
    for (uint32_t i = 0; i < other->axes.count; i++) {
      struct ir_axis *axis = list_at(&other->axes, struct ir_stage_axis, i)->axis;
      for (uint32_t k = 0; k < first->axes.count; k++) {
        struct ir_axis *twin = list_at(&first->axes, struct ir_stage_axis, k)->axis;
        if (axis != twin && strcmp(axis->var->label, twin->var->label) == 0) axis->var->subst = ir_ref(s->arena, twin->var);
      }
    }
    for (uint32_t i = 0; i < other->guards.count && !has_it; i++)
      has_it = ir_equal(ir_substitute(s->arena, stage_in_leaves(s->arena, other, other->guards.at[i])), wanted);
    for (uint32_t i = 0; i < other->axes.count; i++) list_at(&other->axes, struct ir_stage_axis, i)->axis->var->subst = NULL;
    if (!has_it) return false;
  }
  return true;
}

// Machines without asynchronous copies make ordinary ones: the result is the same.
static bool is_async(const struct sharer *s) {
  enum { ASYNC_SM = 80 };
  const struct target *target = s->context->options->target;
  if (number(s, SHARED_ASYNC) && target->sm < ASYNC_SM)
    diag_remark(s->context->diag, "schedule", s->directive->range, "copies of '%s' go through registers: 'by cp_async' takes sm_80, and the target is %s", s->tensor->label, target->name);
  return number(s, SHARED_ASYNC) && target->sm >= ASYNC_SM;
}

static struct ir_stage *make_fill(struct sharer *s, const struct ir_stage *reader, struct ir_expr *load) {
  struct ir_stage *fill = arena_new(s->arena, struct ir_stage);
  struct list guards = {0}; // of all readers
  for (uint32_t i = 0; i < reader->guards.count; i++)
    if (is_guard_of_all(s, reader, reader->guards.at[i])) list_push(s->arena, &guards, reader->guards.at[i]);
  fill->kind = STAGE_STORE;
  fill->label = s->copy->label;
  fill->range = s->directive->range;
  give_axes(s, reader, fill);
  give_derived(s, reader, fill);
  bool is_within = !s->has_other_axes && guards.count == reader->guards.count; // it runs over the same elements as the reader, which stays inside the tensor
  for (uint32_t i = 0; i < guards.count; i++) {
    // a bound that another axis makes is not needed: more of the tensor than is read may be copied, and the proof need not compare two runs of it
    const struct ir_expr *guard = guards.at[i];
    bool is_dependent = guard->op == OP_LT && mentions_axis(guard->args[1]);
    if (!is_dependent && is_available(guards.at[i])) list_push(s->arena, &fill->guards, ir_substitute(s->arena, guards.at[i]));
    else is_within = false;
  }
  for (uint32_t i = 0; i < reader->lets.count; i++) list_at(&reader->lets, struct ir_stmt, i)->var->mark = 1; // evaluated in the reader alone
  bool is_sayable = true;
  for (uint32_t d = 0; d < load->count; d++) is_sayable &= is_available(load->args[d]);
  fill->mem = s->copy;
  fill->is_async = is_async(s);
  fill->indices = copy_indices(s, &s->axes);
  fill->value = ir_substitute(s->arena, load);
  for (uint32_t i = 0; i < s->own.count; i++) list_at(&s->own, struct ir_axis, i)->var->subst = NULL;
  for (uint32_t i = 0; i < reader->derived.count; i++) list_at(&reader->derived, struct ir_stmt, i)->var->subst = NULL;
  for (uint32_t i = 0; i < reader->axes.count; i++) list_at(&reader->axes, struct ir_stage_axis, i)->axis->var->mark = 0;
  for (uint32_t i = 0; i < reader->derived.count; i++) list_at(&reader->derived, struct ir_stmt, i)->var->mark = 0;
  for (uint32_t i = 0; i < reader->lets.count; i++) list_at(&reader->lets, struct ir_stmt, i)->var->mark = 0;
  if (!is_sayable) {
    refuse(s, reader, "the place that it reads depends on more than axes");
    return NULL;
  }
  if (!is_within) add_bounds(s, fill, fill->value);
  return fill;
}

// --- Copies along their tensors ---------------------------------------------------------------------------------------
//
//   stage X at t in shared as S along 16: the part is runs of X, one for each iteration of the axes that are none of the run. Of each, the pieces of 16
//   elements, counted from the start of X, that hold it are copied whole, as they lie:
//   S[row, piece * 16 + element] = X[min(first(row) + piece, last) * 16 + element], where `first` holds the run's first element and `last` is the tensor's last;
//   max(.., 0) of it where an axis moves runs towards the start, since iterations that there are not would begin in front of it.
//   Readers find (row, i, j) at phase(row) + i * stride + j, with the strides of the tensor. So no piece is guarded, and each is one access on either side.

static bool refuse_along(struct sharer *s, const struct ir_stage *stage, const char *why) { return refuse(s, stage, arena_printf(s->arena, "copies along a tensor hold runs of it, and %s", why)); }

// How the axes of the part move the place in the tensor.
struct run {
  struct poly offset;
  int64_t *strides; // of s->own, in the tensor
  bool *is_row;     // of s->own: it does not lie in the run
  int64_t last;     // elements from the first of a run to its last
  int64_t rows;
};

// Memory has a place for each iteration, and one where there is none.
static int64_t extent_of(const struct ir_axis *axis) { return axis->extent->integer > 0 ? axis->extent->integer : 1; }

static bool find_run(struct sharer *s, const struct ir_stage *reader, struct facts *facts, struct ir_expr *load, struct run *run) {
  uint32_t count = s->own.count;
  run->offset = schedule_offset(s->arena, facts, reader, s->tensor, load->args);
  run->strides = arena_array(s->arena, int64_t, count + 1);
  run->is_row = arena_array(s->arena, bool, count + 1);
  run->rows = 1;
  for (uint32_t i = 0; i < count; i++) {
    struct ir_axis *axis = s->own.at[i];
    struct poly coefficient, rest;
    run->is_row[i] = true;
    if (!run->offset.is_valid || !poly_linear(facts, run->offset, axis->var, &coefficient, &rest) || !poly_is_constant(coefficient, &run->strides[i]) || run->strides[i] < 0)
      return refuse_along(s, reader, arena_printf(s->arena, "axis '%s' does not move it by a constant", axis->var->label));
  }
  for (int64_t length = 1;; run->last = length - 1) { // axes whose steps follow one another
    uint32_t next = count;
    for (uint32_t i = 0; i < count && next == count; i++)
      if (run->is_row[i] && run->strides[i] == length) next = i;
    if (next == count) break;
    run->is_row[next] = false;
    if (__builtin_mul_overflow(length, extent_of(s->own.at[next]), &length) || length > MOST_UNITS) return refuse_along(s, reader, "this one is too long");
  }
  for (uint32_t i = 0; i < count; i++)
    if (run->is_row[i] && (__builtin_mul_overflow(run->rows, extent_of(s->own.at[i]), &run->rows) || run->rows > MOST_UNITS)) return refuse_along(s, reader, "there are too many");
  return true;
}

static void add_axis_of_run(struct sharer *s, struct ir_stage *fill, const char *label, struct ir_expr *extent, struct ir_var **var) {
  struct ir_axis *axis = arena_new(s->arena, struct ir_axis);
  struct ir_stage_axis *used = arena_new(s->arena, struct ir_stage_axis);
  axis->var = *var = ir_new_var(s->kernel, VAR_AXIS, TYPE_INDEX, label);
  axis->var->range = axis->range = s->directive->range;
  axis->extent = extent;
  list_push(s->arena, &s->entry->axes, axis);
  used->axis = axis;
  list_push(s->arena, &fill->axes, used);
}

// The place in the tensor of an element of a piece, in the fill. A tensor without elements is not read.
static struct ir_expr *place_in_run(struct sharer *s, struct ir_stage *fill, struct ir_expr *first, bool may_precede, int64_t pieces, struct ir_var *piece_var,
                                    struct ir_var *element) {
  struct arena *arena = s->arena;
  struct ir_expr *factor = ir_int(arena, TYPE_INDEX, pieces), *one = ir_int(arena, TYPE_INDEX, 1), *total = ir_int(arena, TYPE_I64, 1);
  for (uint32_t d = 0; d < s->tensor->dims.count; d++) total = ir_binary(arena, OP_MUL, total, s->tensor->dims.at[d]);
  struct ir_expr *elements = ir_is_const(total) ? ir_int(arena, TYPE_INDEX, total->integer) : ir_cast(arena, TYPE_INDEX, total);
  if (may_precede) // division rounds towards 0, and the first piece begins at or in front of the place
    first = ir_binary(arena, OP_SUB, first, ir_binary(arena, OP_AND, first, ir_int(arena, TYPE_INDEX, pieces - 1)));
  struct ir_expr *piece = ir_binary(arena, OP_ADD, ir_binary(arena, OP_DIV, first, factor), ir_ref(arena, piece_var));
  if (may_precede) piece = ir_binary(arena, OP_MAX, piece, ir_int(arena, TYPE_INDEX, 0));
  for (uint32_t d = 0; d < s->tensor->dims.count && (s->entry->is_general || ir_is_const(total)); d++) {
    struct ir_expr *is_there = ir_binary(arena, OP_GT, ir_cast(arena, TYPE_INDEX, s->tensor->dims.at[d]), ir_int(arena, TYPE_INDEX, 0));
    if (!ir_const_is(is_there, 1)) list_push(arena, &fill->guards, is_there); // pieces along a tensor are there where it has no element
  }
  if (s->entry->is_general) { // pieces need not be whole there
    struct ir_expr *place = ir_binary(arena, OP_ADD, ir_binary(arena, OP_MUL, piece, factor), ir_ref(arena, element));
    return ir_binary(arena, OP_MIN, place, ir_binary(arena, OP_SUB, elements, one));
  }
  if (ir_is_const(total) && total->integer % pieces) { // the last piece is not whole
    struct ir_var *place = ir_new_var(s->kernel, VAR_LET, TYPE_INDEX, "place");
    place->range = s->directive->range;
    list_push(arena, &fill->derived, ir_let(arena, place, ir_binary(arena, OP_ADD, ir_binary(arena, OP_MUL, piece, factor), ir_ref(arena, element)), s->directive->range));
    list_push(arena, &fill->guards, ir_binary(arena, OP_LT, ir_ref(arena, place), elements));
    return ir_ref(arena, place);
  }
  struct ir_requirement *assumption = arena_new(arena, struct ir_requirement);
  struct ir_expr *rest = ir_binary(arena, OP_MOD, total, ir_int(arena, TYPE_I64, pieces)), *whole = ir_binary(arena, OP_EQ, rest, ir_int(arena, TYPE_I64, 0));
  if (!ir_is_const(total)) whole = ir_binary(arena, OP_AND, ir_binary(arena, OP_GT, total, ir_int(arena, TYPE_I64, 0)), whole);
  *assumption = (struct ir_requirement){whole, arena_printf(arena, "'%s' is not made of whole pieces", s->tensor->label), s->directive->range};
  list_push(arena, &s->entry->assumptions, assumption);
  struct ir_expr *last = ir_binary(arena, OP_SUB, ir_binary(arena, OP_DIV, elements, factor), one);
  return ir_binary(arena, OP_ADD, ir_binary(arena, OP_MUL, ir_binary(arena, OP_MIN, piece, last), factor), ir_ref(arena, element));
}

static bool has_negative_term(struct poly offset) {
  for (uint32_t i = 0; i < offset.count; i++)
    if (offset.terms[i].coefficient < 0) return true;
  return false;
}

// The copy's layout and the stage that fills it; NULL after an error.
static struct ir_stage *make_run(struct sharer *s, const struct ir_stage *reader, struct ir_expr *load) {
  struct arena *arena = s->arena;
  int64_t pieces = (int64_t)number(s, SHARED_PHASE), pad = (int64_t)number(s, SHARED_PAD);
  struct ir_expr *factor = ir_int(arena, TYPE_INDEX, pieces), *zero = ir_int(arena, TYPE_INDEX, 0), *start = zero, *first = zero;
  struct facts facts;
  struct run run = {.last = 0};
  facts_init(&facts, arena);
  if (s->entry->when) facts_add_condition(&facts, s->entry->when);
  for (uint32_t i = 0; i < s->entry->assumptions.count; i++) facts_add_condition(&facts, list_at(&s->entry->assumptions, struct ir_requirement, i)->condition);
  stage_facts(reader, &facts);
  if (pieces & (pieces - 1)) return refuse(s, reader, "copies along a tensor are made of pieces of a power of two"), NULL;
  if (number(s, SHARED_UNIT) > 1 || number(s, SHARED_BITS) || s->directive->axes.count > AXIS_OF_PAD) return refuse_along(s, reader, "their layout is that of the tensor, with a pad behind each"), NULL;
  if (s->tensor->is_strided) return refuse_along(s, reader, "it has strides of its own"), NULL;
  for (uint32_t i = 0; i < reader->lets.count; i++) list_at(&reader->lets, struct ir_stmt, i)->var->mark = 1; // evaluated in the reader alone
  bool is_sayable = true;
  for (uint32_t d = 0; d < load->count; d++) is_sayable &= is_available(load->args[d]);
  for (uint32_t i = 0; i < reader->lets.count; i++) list_at(&reader->lets, struct ir_stmt, i)->var->mark = 0;
  if (!is_sayable) return refuse(s, reader, "the place that it reads depends on more than axes"), NULL;
  if (!find_run(s, reader, &facts, load, &run)) return NULL;
  struct list in_run = {0};
  for (uint32_t i = 0; i < s->own.count; i++)
    if (!run.is_row[i]) list_push(arena, &in_run, s->own.at[i]);
  start = schedule_start(arena, &facts, reader, &in_run, s->tensor, load->args, factor);
  first = schedule_start(arena, &facts, reader, &in_run, s->tensor, load->args, NULL);
  if (!start || !first) return refuse_along(s, reader, "where one starts is no sum of products of axes"), NULL;
  s->phase = ir_binary(arena, OP_AND, start, ir_int(arena, TYPE_INDEX, pieces - 1));
  int64_t most_phase = ir_is_const(s->phase) ? s->phase->integer : pieces - 1, count = (run.last + most_phase) / pieces + 1 + pad, row = count * pieces, units; // what pads is copied too
  if (__builtin_mul_overflow(row, run.rows, &units) || units > MOST_UNITS) return refuse_along(s, reader, "they do not fit"), NULL;
  // the copy: a dimension for all of it, those of the readers' axes, and the place in a run
  struct ir_mem *mem = s->copy;
  if (number(s, SHARED_DEPTH) == 1) add_dimension(s, 1, units);
  s->bytes = add_places(s, units);
  int64_t behind = units - 1, stride = row;
  for (uint32_t i = s->own.count; i-- > 0;) {
    int64_t extent = extent_of(s->own.at[i]), by = run.is_row[i] ? stride : run.strides[i];
    list_insert(arena, &mem->dims, 1, ir_int(arena, TYPE_I64, extent));
    list_insert(arena, &mem->strides, 1, ir_int(arena, TYPE_I64, by));
    behind -= (extent - 1) * by;
    if (run.is_row[i]) stride *= extent;
  }
  list_push(arena, &mem->dims, ir_int(arena, TYPE_I64, behind + 1));
  list_push(arena, &mem->strides, ir_int(arena, TYPE_I64, 1));
  // its fill: the axes around, rows, pieces, elements
  struct ir_stage *fill = arena_new(arena, struct ir_stage);
  fill->kind = STAGE_STORE;
  fill->label = mem->label;
  fill->range = s->directive->range;
  fill->mem = mem;
  fill->is_async = is_async(s);
  uint32_t at = place_of_at(s, reader);
  for (uint32_t i = 0; i <= at; i++) {
    struct ir_stage_axis *source = reader->axes.at[i], *used = arena_new(arena, struct ir_stage_axis);
    if (source->axis->bind >= BIND_THREAD_X && source->axis->bind <= BIND_THREAD_Z) continue;
    used->axis = source->axis;
    list_push(arena, &fill->axes, used);
  }
  struct ir_var *piece, *element, *var;
  list_push(arena, &fill->indices, s->place ? s->place : zero);
  for (uint32_t i = 0; i < s->own.count; i++) {
    struct ir_axis *own = s->own.at[i];
    if (run.is_row[i]) {
      add_axis_of_run(s, fill, own->var->label, own->extent, &var);
      own->var->subst = ir_ref(arena, var);
    }
    list_push(arena, &fill->indices, run.is_row[i] ? own->var->subst : zero);
  }
  first = ir_substitute(arena, first);
  for (uint32_t i = 0; i < s->own.count; i++) list_at(&s->own, struct ir_axis, i)->var->subst = NULL;
  add_axis_of_run(s, fill, "piece", ir_int(arena, TYPE_INDEX, count), &piece);
  add_axis_of_run(s, fill, "element", factor, &element);
  list_push(arena, &fill->indices, ir_binary(arena, OP_ADD, ir_binary(arena, OP_MUL, ir_ref(arena, piece), factor), ir_ref(arena, element)));
  struct list places = {0};
  for (uint32_t d = 0; d + 1 < s->tensor->dims.count; d++) list_push(arena, &places, zero);
  list_push(arena, &places, place_in_run(s, fill, first, has_negative_term(run.offset), pieces, piece, element));
  fill->value = ir_load(arena, s->tensor, &places);
  return fill;
}

// --- Reading the copy -------------------------------------------------------------------------------------------------

// Another reader's axes in the order of s->own, where it reads the same part in the same way.
static bool match_axes(struct sharer *s, const struct ir_stage *first, struct ir_expr *load, const struct ir_stage *stage, struct ir_expr *other, struct list *axes) {
  uint32_t at = place_of_at(s, stage);
  if (list_at(&stage->axes, struct ir_stage_axis, at)->axis != list_at(&first->axes, struct ir_stage_axis, place_of_at(s, first))->axis)
    return refuse(s, stage, arena_printf(s->arena, "its axis '%s' is not that of stage '%s'", s->at, first->label));
  for (uint32_t i = 0; i < s->own.count; i++) {
    struct ir_axis *own = s->own.at[i], *found = NULL;
    for (uint32_t k = at + 1; k < stage->axes.count && !found; k++) {
      struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, k)->axis;
      if (strcmp(axis->var->label, own->var->label) == 0) found = axis;
    }
    if (found && !ir_is_const(found->extent)) schedule_bound_extent(s->context, s->entry, found);
    if (!found || !ir_equal(found->extent, own->extent))
      return refuse(s, stage, arena_printf(s->arena, "it has no axis '%s' of the extent that stage '%s' has", own->var->label, first->label));
    list_push(s->arena, axes, found);
  }
  struct ir_expr *expected = stage_in_leaves(s->arena, first, load), *found = stage_in_leaves(s->arena, stage, other);
  for (uint32_t i = 0; i < axes->count; i++)
    if (axes->at[i] != s->own.at[i]) list_at(axes, struct ir_axis, i)->var->subst = ir_ref(s->arena, list_at(&s->own, struct ir_axis, i)->var);
  bool same = ir_equal(ir_substitute(s->arena, found), expected);
  for (uint32_t i = 0; i < axes->count; i++) list_at(axes, struct ir_axis, i)->var->subst = NULL;
  return same || refuse(s, stage, arena_printf(s->arena, "it reads another element than stage '%s' does", first->label));
}

// What is read of shared memory stands alone, as a let in front of the others.
static bool use_copy(struct sharer *s, struct ir_stage *stage, const struct list *axes) {
  struct list indices = copy_indices(s, axes);
  struct ir_var *var = ir_new_var(s->kernel, VAR_LET, s->tensor->type, arena_printf(s->arena, "%s_s", s->tensor->label));
  struct load_replacement replace = {s->tensor, ir_ref(s->arena, var)};
  for (uint32_t i = 0; i < stage->guards.count; i++) {
    struct stage_load find = {.mem = s->tensor};
    ir_visit_expr(stage->guards.at[i], stage_load_visit, &find);
    if (find.load) return refuse(s, stage, "a condition around its body reads it");
  }
  load_replace_list(s->arena, &stage->operands, &replace);
  load_replace_list(s->arena, &stage->init, &replace);
  load_replace_list(s->arena, &stage->indices, &replace);
  stage->lets = list_copy(s->arena, &stage->lets);
  for (uint32_t i = 0; i < stage->lets.count; i++) {
    struct ir_stmt *let = stage->lets.at[i];
    stage->lets.at[i] = ir_let(s->arena, let->var, ir_rewrite_expr(s->arena, let->value, load_replace, &replace), let->range);
  }
  if (stage->value) stage->value = ir_rewrite_expr(s->arena, stage->value, load_replace, &replace);
  list_insert(s->arena, &stage->lets, 0, ir_let(s->arena, var, ir_load(s->arena, s->copy, &indices), stage->range));
  return true;
}

bool schedule_shared(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry, const struct ir_directive *directive) {
  struct sharer s = {.context = context, .arena = context->arena, .kernel = kernel, .entry = entry, .directive = directive, .at = directive->axes.at[0]};
  struct ir_stage *first = NULL, *fill = NULL;
  struct ir_expr *load = NULL;
  uint32_t first_place = 0;
  bool found_at = false;
  for (uint32_t i = 0; i < kernel->tensors.count; i++)
    if (strcmp(list_at(&kernel->tensors, struct ir_mem, i)->name, directive->names.at[0]) == 0) s.tensor = kernel->tensors.at[i];
  for (uint32_t n = 0; n < entry->stages.count; n++) {
    if (stage_is_named(entry->stages.at[n], directive->names.at[1])) {
      diag_error(context->diag, ERROR_DUPLICATE_NAME, directive->range, "a stage is already named '%s'", (const char *)directive->names.at[1]);
      return false;
    }
  }
  for (uint32_t n = 0; n < entry->stages.count; n++)
    if (place_of_at(&s, entry->stages.at[n]) != UINT32_MAX && stage_find_load(entry->stages.at[n], s.tensor).load) list_push(s.arena, &s.readers, entry->stages.at[n]);
  for (uint32_t n = 0; n < entry->stages.count; n++) {
    struct ir_stage *stage = entry->stages.at[n];
    if (stage == fill || place_of_at(&s, stage) == UINT32_MAX) continue;
    found_at = true;
    struct stage_load find = stage_find_load(stage, s.tensor);
    if (!find.load) continue;
    if (find.differs) return refuse(&s, stage, "it reads several elements of it");
    if (stage->is_async) return refuse(&s, stage, "it copies from the tensor by itself, asynchronously");
    struct list axes = {0};
    if (!first) {
      first = stage;
      first_place = n;
      load = find.load;
      if (!find_own(&s, stage, load)) return false;
      find_place(&s, stage);
      begin_memory(&s);
      if (number(&s, SHARED_PHASE) <= 1) {
        if (!make_memory(&s)) return false;
        fill = make_fill(&s, stage, load);
      } else {
        fill = make_run(&s, stage, load);
        if (fill && !add_memory(&s, 1, s.bytes)) return false;
      }
      if (!fill) return false;
      fill->depth = (uint32_t)number(&s, SHARED_DEPTH);
      axes = s.own;
    } else if (!match_axes(&s, first, load, stage, find.load, &axes)) {
      return false;
    }
    if (!use_copy(&s, stage, &axes)) return false;
  }
  if (!found_at) {
    diag_error(context->diag, ERROR_UNKNOWN_AXIS, *list_at(&directive->axis_places, struct range, 0), "no axis is named '%s'", s.at);
    return false;
  }
  if (!first) {
    diag_error(context->diag, ERROR_DIRECTIVE, directive->range, "no stage inside '%s' reads '%s'", s.at, s.tensor ? s.tensor->label : "");
    return false;
  }
  schedule_insert_fill(s.arena, entry, fill, first_place);
  return true;
}

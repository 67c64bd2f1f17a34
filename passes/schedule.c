// schedule: applies directives to the axes of stages.
//
//   stage B: axes i parallel, j reduction         split j by 32 -> jo, ji;  bind i -> block.x;  bind ji -> thread.x;
//   ->
//   stage B: axes i (block.x), jo, ji (thread.x); derived j = jo * 32 + ji; guard j < m
//
// Requires stages as `check` left them. Applies the directives in order, each to the names that the earlier ones left; an entry
// without a schedule gets the compiler's own directives first. Breaks nothing: stages stay stages. A directive that is not
// legal is an error that says where the axis was used and what would be legal.
#include <string.h>

#include "compiler/pass.h"
#include "passes/schedule.h"
#include "passes/stage.h"

enum { MAX_UNROLL = 1024, MANY_COPIES = 32, MAX_COPIES = 2048, MAX_OPERATIONS = 100000, MAX_LEVELS = 64 };

// An axis that a directive took away.
struct retired {
  const char *label;
  const char *how;
  struct range where;
};

struct scheduler {
  struct pass_context *context;
  struct arena *arena;
  struct diag *diag;
  struct ir_kernel *kernel;
  struct ir_entry *entry;
  struct list retired; // struct retired
};

// --- Names ------------------------------------------------------------------------------------------------------------

static uint32_t place_of(const struct ir_stage *stage, const struct ir_axis *axis) {
  for (uint32_t i = 0; i < stage->axes.count; i++)
    if (list_at(&stage->axes, struct ir_stage_axis, i)->axis == axis) return i;
  return UINT32_MAX;
}

static bool list_has(const struct list *list, const void *item) {
  for (uint32_t i = 0; i < list->count; i++)
    if (list->at[i] == item) return true;
  return false;
}

static void note_legal(struct scheduler *s, const char *stage_name) {
  struct text names = {0};
  struct list seen = {0};
  for (uint32_t i = 0; i < s->entry->stages.count; i++) {
    struct ir_stage *stage = s->entry->stages.at[i];
    if (*stage_name && !stage_is_named(stage, stage_name)) continue;
    for (uint32_t k = 0; k < stage->axes.count; k++) {
      struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, k)->axis;
      if (list_has(&seen, axis)) continue;
      list_push(s->arena, &seen, axis);
      text_printf(&names, "%s%s", names.length ? ", " : "", axis->var->label);
    }
  }
  if (names.length) diag_note(s->diag, (struct range){0}, "axes here are %s", names.data);
  text_free(&names);
}

// The axes that a directive names, at its place `which`. Reports when there is none.
static bool find_axes(struct scheduler *s, const struct ir_directive *directive, uint32_t which, struct list *axes) {
  const char *stage_name = directive->stages.at[which], *label = directive->axes.at[which];
  struct range range = *list_at(&directive->axis_places, struct range, which);
  bool stage_found = !*stage_name;
  for (uint32_t i = 0; i < s->entry->stages.count; i++) {
    struct ir_stage *stage = s->entry->stages.at[i];
    if (*stage_name && !stage_is_named(stage, stage_name)) continue;
    stage_found = true;
    for (uint32_t k = 0; k < stage->axes.count; k++) {
      struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, k)->axis;
      if (strcmp(axis->var->label, label) == 0 && !list_has(axes, axis)) list_push(s->arena, axes, axis);
    }
  }
  if (!stage_found) {
    diag_error(s->diag, ERROR_UNKNOWN_STAGE, range, "no stage is named '%s'", stage_name);
    struct text names = {0};
    for (uint32_t i = 0; i < s->entry->stages.count; i++)
      text_printf(&names, "%s%s", i ? ", " : "", list_at(&s->entry->stages, struct ir_stage, i)->label);
    diag_note(s->diag, (struct range){0}, "stages are %s", names.data ? names.data : "none");
    text_free(&names);
    return false;
  }
  if (axes->count == 0) {
    for (uint32_t i = 0; i < s->retired.count; i++) {
      struct retired *retired = s->retired.at[i];
      if (strcmp(retired->label, label) != 0) continue;
      diag_error(s->diag, ERROR_AXIS_USED, range, "axis '%s' was %s before; name its pieces", label, retired->how);
      diag_note(s->diag, retired->where, "%s here", retired->how);
      note_legal(s, stage_name);
      return false;
    }
    diag_error(s->diag, ERROR_UNKNOWN_AXIS, range, "no axis is named '%s'%s%s%s", label, *stage_name ? " in stage '" : "", stage_name, *stage_name ? "'" : "");
    note_legal(s, stage_name);
    return false;
  }
  for (uint32_t a = 0; a < axes->count && *stage_name; a++) // an axis around several stages is scheduled in all of them
    for (uint32_t i = 0; i < s->entry->stages.count; i++) {
      struct ir_stage *stage = s->entry->stages.at[i];
      if (stage_is_named(stage, stage_name) || place_of(stage, axes->at[a]) == UINT32_MAX) continue;
      if (directive->kind == DIRECTIVE_REORDER || directive->kind == DIRECTIVE_ALLREDUCE) continue;
      diag_error(s->diag, ERROR_DIRECTIVE, range, "axis '%s' encloses stage '%s' too and cannot be scheduled for '%s' alone; name it without a stage", label, stage->label, stage_name);
      return false;
    }
  return true;
}

static void retire(struct scheduler *s, const struct ir_axis *axis, const char *how, struct range where) {
  struct retired *retired = arena_new(s->arena, struct retired);
  retired->label = axis->var->label;
  retired->how = how;
  retired->where = where;
  list_push(s->arena, &s->retired, retired);
  for (uint32_t i = 0; i < s->entry->axes.count; i++)
    if (s->entry->axes.at[i] == axis) {
      list_remove(&s->entry->axes, i);
      return;
    }
}

static const char *bind_name(enum ir_bind bind) {
  static const char *const names[] = {"serial", "block.x", "block.y", "block.z", "thread.x", "thread.y", "thread.z", "vector"};
  return names[bind];
}

// An axis that is bound, unrolled or vectorised is not taken apart.
static bool is_free(struct scheduler *s, const struct ir_axis *axis, struct range range) {
  if (axis->bind == BIND_SERIAL && !axis->unroll) return true;
  diag_error(s->diag, ERROR_AXIS_USED, range, "axis '%s' is already %s%s", axis->var->label, axis->bind == BIND_SERIAL ? "unrolled" : "bound to ",
             axis->bind == BIND_SERIAL ? "" : bind_name(axis->bind));
  diag_note(s->diag, axis->bound_at, "here");
  return false;
}

static bool name_is_new(struct scheduler *s, const char *name, struct range range) {
  for (uint32_t i = 0; i < s->entry->axes.count; i++) {
    struct ir_axis *axis = s->entry->axes.at[i];
    if (strcmp(axis->var->label, name) != 0) continue;
    diag_error(s->diag, ERROR_DUPLICATE_NAME, range, "an axis is already named '%s'", name);
    diag_note(s->diag, axis->range, "here");
    return false;
  }
  return true;
}

// --- split and fuse -----------------------------------------------------------------------------------------------

// extent(x) inside a factor: the extent of the axis of that name in the stages of `axis`.
static struct ir_expr *resolve_extent(struct arena *arena, struct ir_expr *e, void *state) {
  struct list *axes = state;
  if (e->op != OP_VAR || e->var->kind != VAR_AXIS) return e;
  for (uint32_t i = 0; i < axes->count; i++) {
    struct ir_axis *axis = axes->at[i];
    if (strcmp(axis->var->label, e->var->label) == 0) return ir_cast(arena, e->type, axis->extent);
  }
  return e;
}

static struct ir_axis *new_axis(struct scheduler *s, const char *label, struct ir_expr *extent, struct range range) {
  struct ir_axis *axis = arena_new(s->arena, struct ir_axis);
  axis->var = ir_new_var(s->kernel, VAR_AXIS, TYPE_INDEX, label);
  axis->var->range = range;
  axis->extent = extent;
  axis->range = range;
  list_push(s->arena, &s->entry->axes, axis);
  return axis;
}

static void put_axis(struct scheduler *s, struct ir_stage *stage, uint32_t place, struct ir_axis *axis, bool is_reduction) {
  struct ir_stage_axis *used = arena_new(s->arena, struct ir_stage_axis);
  used->axis = axis;
  used->is_reduction = is_reduction;
  list_insert(s->arena, &stage->axes, place, used);
}

static void schedule_facts(struct scheduler *s, struct facts *facts) {
  facts_init(facts, s->arena);
  if (s->entry->when) facts_add_condition(facts, s->entry->when);
  for (uint32_t i = 0; i < s->entry->assumptions.count; i++)
    facts_add_condition(facts, list_at(&s->entry->assumptions, struct ir_requirement, i)->condition);
}

// Whether a later directive vectorises the axis of this name.
static bool is_vectorized(struct scheduler *s, const struct ir_directive *directive, const char *label) {
  bool is_later = false;
  for (uint32_t i = 0; i < s->entry->directives.count; i++) {
    struct ir_directive *other = s->entry->directives.at[i];
    for (uint32_t k = 0; is_later && other->kind == DIRECTIVE_VECTORIZE && k < other->axes.count; k++)
      if (strcmp(other->axes.at[k], label) == 0) return true;
    if (other == directive) is_later = true;
  }
  return false;
}

static void assume(struct scheduler *s, struct ir_expr *condition, const char *message, struct range range) {
  struct ir_requirement *assumption = arena_new(s->arena, struct ir_requirement);
  assumption->condition = condition;
  assumption->message = message;
  assumption->range = range;
  list_push(s->arena, &s->entry->assumptions, assumption);
}

static void assume_divides(struct scheduler *s, struct ir_expr *extent, struct ir_expr *factor, struct range range) {
  struct ir_expr *rest = ir_binary(s->arena, OP_MOD, ir_cast(s->arena, TYPE_I64, extent), ir_cast(s->arena, TYPE_I64, factor));
  assume(s, ir_binary(s->arena, OP_EQ, rest, ir_int(s->arena, TYPE_I64, 0)), "a vectorised axis is not made of whole vectors", range);
}

static void find_device_fact(struct ir_expr *e, void *state) {
  *(bool *)state |= e->op == OP_SMS || e->op == OP_ARCH || e->op == OP_SHARED_LIMIT;
}

static struct ir_expr *as_i64(struct arena *arena, struct ir_expr *e, void *state) {
  (void)state;
  if (e->type != TYPE_INDEX) return e;
  if (e->op == OP_CONST) return ir_int(arena, TYPE_I64, e->integer);
  if (e->op == OP_CAST) return ir_cast(arena, TYPE_I64, e->args[0]);
  return ir_make(arena, e->op, TYPE_I64, e->args, e->count);
}

// A factor made of facts about the device is computed at launch: it becomes a size of the kernel.
static struct ir_expr *as_launch_value(struct scheduler *s, struct ir_expr *factor, const char *label, struct range range) {
  bool has_fact = false;
  ir_visit_expr(factor, find_device_fact, &has_fact);
  if (!has_fact) return factor;
  struct ir_expr *value = ir_cast(s->arena, TYPE_I64, ir_rewrite_expr(s->arena, factor, as_i64, NULL));
  struct ir_var *size = NULL;
  for (uint32_t i = 0; i < s->kernel->sizes.count && !size; i++) {
    struct ir_var *other = s->kernel->sizes.at[i];
    if (other->inferred && ir_equal(other->inferred, value)) size = other;
  }
  if (!size) {
    size = ir_new_var(s->kernel, VAR_SIZE, TYPE_I64, arena_printf(s->arena, "%s_parts", label));
    size->range = range;
    size->inferred = value;
    list_push(s->arena, &s->kernel->sizes, size);
  }
  return ir_cast(s->arena, TYPE_INDEX, ir_ref(s->arena, size));
}

static void count_operation(struct ir_expr *e, void *state) {
  (void)e;
  ++*(int64_t *)state;
}

// What a stage's body evaluates.
static int64_t operations_of(const struct ir_stage *stage) {
  int64_t operations = 0;
  ir_visit_block(&stage->lets, count_operation, &operations);
  if (stage->value) ir_visit_expr(stage->value, count_operation, &operations);
  for (uint32_t i = 0; i < stage->operands.count; i++) ir_visit_expr(stage->operands.at[i], count_operation, &operations);
  for (uint32_t i = 0; i < stage->guards.count; i++) ir_visit_expr(stage->guards.at[i], count_operation, &operations);
  return operations;
}

// Each stage's body in how many copies? Loops unrolled whole multiply. Where a schedule asks for many, the backend adds none of its own.
static bool check_unrolling(struct scheduler *s) {
  int64_t operations = 0;
  for (uint32_t n = 0; n < s->entry->stages.count; n++) {
    struct ir_stage *stage = s->entry->stages.at[n];
    int64_t copies = 1;
    for (uint32_t k = 0; k < stage->axes.count; k++) {
      struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, k)->axis;
      bool is_whole = axis->bind == BIND_VECTOR || (axis->bind == BIND_SERIAL && axis->unroll == UINT32_MAX);
      if (is_whole && ir_is_const(axis->extent)) copies *= axis->extent->integer;
      else if (axis->bind == BIND_SERIAL && axis->unroll && axis->unroll != UINT32_MAX) copies *= axis->unroll;
      if (copies <= MAX_COPIES) continue;
      diag_error(s->diag, ERROR_EXTENT, axis->bound_at, "stage '%s' would have %lld copies of its body, unrolled with '%s'; at most %d are legal", stage->label,
                 (long long)copies, axis->var->label, MAX_COPIES);
      return false;
    }
    if (copies > 1) operations += copies * operations_of(stage);
    if (operations > MAX_OPERATIONS) {
      diag_error(s->diag, ERROR_TOO_LARGE, stage->range, "with stage '%s' the schedule makes %lld operations of loops unrolled whole; at most %d are legal", stage->label,
                 (long long)operations, MAX_OPERATIONS);
      diag_note(s->diag, (struct range){0}, "legal here: unroll x by a small factor, vectors of fewer elements");
      return false;
    }
    for (uint32_t k = 0; k < stage->axes.count && copies > MANY_COPIES; k++) {
      struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, k)->axis;
      if (axis->bind == BIND_SERIAL && !axis->unroll) axis->unroll = 1;
    }
  }
  return true;
}

struct copy_read {
  const struct ir_var *var;
  bool is_found;
};

static void find_copy_read(struct ir_expr *e, void *state) {
  struct copy_read *read = state;
  read->is_found |= e->op == OP_LOAD && e->mem->space != SPACE_GLOBAL && ir_mentions(e, read->var);
}

// Whether the stage reads what was copied or kept over an axis.
static bool reads_copy(const struct ir_stage *stage, const struct ir_axis *axis) {
  struct copy_read read = {axis->var, false};
  for (uint32_t i = 0; i < stage->operands.count; i++) ir_visit_expr(stage->operands.at[i], find_copy_read, &read);
  ir_visit_block(&stage->lets, find_copy_read, &read);
  if (stage->value) ir_visit_expr(stage->value, find_copy_read, &read);
  return read.is_found;
}

// Puts the let of an axis that is now pieces in front of those that are made of it. Its pieces may be as long as another axis says that is a let itself:
// lets stand behind what they mention.
static void put_derived(struct scheduler *s, struct ir_stage *stage, struct ir_stmt *derived) {
  struct list *lets = &stage->derived;
  list_insert(s->arena, lets, 0, derived);
  for (uint32_t k = 0; k < lets->count;) {
    struct ir_stmt *let = lets->at[k];
    uint32_t last = k;
    for (uint32_t m = k + 1; m < lets->count; m++)
      if (ir_mentions(let->value, list_at(lets, struct ir_stmt, m)->var)) last = m;
    if (last == k) {
      k++;
      continue;
    }
    list_remove(lets, k);
    list_insert(s->arena, lets, last, let);
  }
}

static bool split_axis(struct scheduler *s, const struct ir_directive *directive, struct ir_axis *axis, struct range range) {
  struct arena *arena = s->arena;
  if (!is_free(s, axis, range)) return false;
  struct ir_expr *extent = axis->extent, *factor = ir_rewrite_expr(arena, directive->factor, resolve_extent, &s->entry->axes);
  bool is_unresolved = mentions_axis(factor);
  if (is_unresolved) {
    diag_error(s->diag, ERROR_SPLIT, directive->range, "the factor asks for the extent of an axis that is not there, or that depends on another axis");
    return false;
  }
  factor = as_launch_value(s, factor, directive->names.at[0], directive->range);
  struct ir_expr *one = ir_int(arena, TYPE_INDEX, 1), *inner, *outer, *parts = factor;
  if (directive->kind == DIRECTIVE_SPLIT_INTO) {
    parts = ir_binary(arena, OP_MAX, factor, one);
    inner = ir_binary(arena, OP_DIV, ir_binary(arena, OP_ADD, extent, ir_binary(arena, OP_SUB, parts, one)), parts);
    outer = parts;
  } else {
    inner = factor;
    outer = ir_binary(arena, OP_DIV, ir_binary(arena, OP_ADD, extent, ir_binary(arena, OP_SUB, factor, one)), factor);
  }
  for (uint32_t k = 0; k < s->entry->stages.count; k++) {
    const struct ir_stage *stage = s->entry->stages.at[k];
    if (stage->derived.count < MAX_LEVELS || place_of(stage, axis) == UINT32_MAX) continue;
    diag_error(s->diag, ERROR_TOO_LARGE, directive->range, "the axes of stage '%s' are split and fused %u times; at most %d are legal", stage->label, stage->derived.count + 1, MAX_LEVELS);
    diag_note(s->diag, (struct range){0}, "one split by a larger factor takes the place of several in each other");
    return false;
  }
  struct facts facts;
  struct ir_expr *shift = NULL;
  if (directive->names.count > 2) { // along a tensor: the first piece may begin before the axis
    int64_t most;
    if (!schedule_along(s->context, s->kernel, s->entry, directive, axis, factor, &shift, &most)) return false;
    if (ir_const_is(shift, 0)) shift = NULL; // an ordinary split
    else outer = ir_binary(arena, OP_DIV, ir_binary(arena, OP_ADD, extent, ir_int(arena, TYPE_INDEX, most + factor->integer - 1)), factor);
  }
  schedule_facts(s, &facts);
  if (directive->kind == DIRECTIVE_SPLIT_BY && !prove_nonnegative(&facts, poly_sub(&facts, poly_of(&facts, factor), poly_constant(&facts, 1))))
    assume(s, ir_binary(arena, OP_GE, ir_cast(arena, TYPE_I64, factor), ir_int(arena, TYPE_I64, 1)), "the factor of a split is below 1", directive->range);
  bool divides = !shift && prove_divides(&facts, parts, extent), is_exact = divides || (!shift && axis->is_guarded);
  if (!is_exact && !shift && !s->entry->is_general && !mentions_axis(extent) && is_vectorized(s, directive, directive->names.at[1])) {
    assume_divides(s, extent, parts, directive->range); // whole vectors; the general entry takes the other sizes
    is_exact = true;
  }
  if (is_exact && !axis->is_guarded && directive->kind == DIRECTIVE_SPLIT_BY) outer = ir_binary(arena, OP_DIV, extent, factor);
  struct ir_axis *o = new_axis(s, directive->names.at[0], outer, directive->range);
  struct ir_axis *i = new_axis(s, directive->names.at[1], inner, directive->range);
  o->is_guarded = !is_exact || axis->is_guarded;
  axis->var->kind = VAR_LET;
  struct ir_expr *whole = ir_binary(arena, OP_ADD, ir_binary(arena, OP_MUL, ir_ref(arena, o->var), inner), ir_ref(arena, i->var));
  if (shift) whole = ir_binary(arena, OP_SUB, whole, shift);
  struct ir_stmt *derived = ir_let(arena, axis->var, whole, axis->range);
  bool has_start = shift != NULL;
  struct ir_expr *guard = ir_binary(arena, OP_LT, ir_ref(arena, axis->var), extent);
  for (uint32_t k = 0; k < s->entry->stages.count; k++) {
    struct ir_stage *stage = s->entry->stages.at[k];
    uint32_t place = place_of(stage, axis);
    if (place == UINT32_MAX) continue;
    bool is_reduction = list_at(&stage->axes, struct ir_stage_axis, place)->is_reduction;
    list_remove(&stage->axes, place);
    put_axis(s, stage, place, i, is_reduction);
    put_axis(s, stage, place, o, is_reduction);
    put_derived(s, stage, derived);
    // a copy is as large as this axis says: its places are proved by that, not by the guard of what the axis is a piece of
    if (!is_exact || (!divides && reads_copy(stage, axis))) list_insert(arena, &stage->guards, 0, guard);
    if (has_start) list_insert(arena, &stage->guards, 0, ir_binary(arena, OP_GE, ir_ref(arena, axis->var), ir_int(arena, TYPE_INDEX, 0)));
  }
  retire(s, axis, "split", directive->range);
  return true;
}

static bool apply_split(struct scheduler *s, const struct ir_directive *directive) {
  struct list axes = {0};
  if (!find_axes(s, directive, 0, &axes)) return false;
  const char *outer = directive->names.at[0], *inner = directive->names.at[1];
  if (strcmp(outer, inner) == 0) {
    diag_error(s->diag, ERROR_DUPLICATE_NAME, directive->range, "both pieces are named '%s'", outer);
    return false;
  }
  if (!name_is_new(s, outer, directive->range) || !name_is_new(s, inner, directive->range)) return false;
  for (uint32_t i = 0; i < axes.count; i++)
    if (!split_axis(s, directive, axes.at[i], *list_at(&directive->axis_places, struct range, 0))) return false;
  return true;
}

// The axes of a stage that a list of names means, in the order of the names; NULL where the stage has none of that name.
static struct ir_axis *axis_in_stage(const struct ir_stage *stage, const char *label) {
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, i)->axis;
    if (strcmp(axis->var->label, label) == 0) return axis;
  }
  return NULL;
}

static bool names_differ(struct scheduler *s, const struct ir_directive *directive) {
  for (uint32_t i = 0; i < directive->axes.count; i++)
    for (uint32_t k = 0; k < i; k++)
      if (strcmp(directive->axes.at[i], directive->axes.at[k]) == 0) {
        diag_error(s->diag, ERROR_DIRECTIVE, *list_at(&directive->axis_places, struct range, i), "axis '%s' is named twice", (const char *)directive->axes.at[i]);
        return false;
      }
  return true;
}

static bool is_fill(const struct ir_stage *stage) { return stage->kind == STAGE_STORE && stage->mem->space != SPACE_GLOBAL; }

static bool apply_fuse(struct scheduler *s, const struct ir_directive *directive) {
  struct arena *arena = s->arena;
  uint32_t count = directive->axes.count;
  if (!names_differ(s, directive)) return false;
  for (uint32_t i = 0; i < count; i++) {
    struct list axes = {0};
    if (!find_axes(s, directive, i, &axes)) return false;
    for (uint32_t k = 0; k < axes.count; k++) {
      struct ir_axis *axis = axes.at[k];
      struct range range = *list_at(&directive->axis_places, struct range, i);
      if (!is_free(s, axis, range)) return false;
      if (mentions_axis(axis->extent)) {
        diag_error(s->diag, ERROR_DIRECTIVE, range, "axis '%s' has a range that depends on another axis and cannot be fused", axis->var->label);
        diag_note(s->diag, (struct range){0}, "split it by a constant; the inner piece can be fused");
        return false;
      }
    }
  }
  if (!name_is_new(s, directive->names.at[0], directive->range)) return false;
  bool found = false;
  for (uint32_t k = 0; k < s->entry->stages.count; k++) {
    struct ir_stage *first = s->entry->stages.at[k];
    struct ir_axis *parts[64];
    uint32_t present = 0;
    for (uint32_t i = 0; i < count && i < 64; i++) {
      const char *stage_name = directive->stages.at[i];
      parts[i] = !*stage_name || stage_is_named(first, stage_name) ? axis_in_stage(first, directive->axes.at[i]) : NULL;
      present += parts[i] != NULL;
    }
    if (present == 0) continue;
    if (present < count) {
      diag_error(s->diag, ERROR_DIRECTIVE, directive->range, "stage '%s' has some of these axes and not all; name those of one stage, STAGE.axis", first->label);
      note_legal(s, "");
      return false;
    }
    found = true;
    for (uint32_t n = 0; n < s->entry->stages.count; n++) { // a copy is filled and read in the loops around it: these stay those of both
      const struct ir_stage *other = s->entry->stages.at[n];
      uint32_t common = 0;
      for (uint32_t i = 0; i < count; i++) common += place_of(other, parts[i]) != UINT32_MAX;
      if (!common || common == count || (!is_fill(first) && !is_fill(other))) continue;
      diag_error(s->diag, ERROR_DIRECTIVE, directive->range, "stages '%s' and '%s' share some of these axes and not all, and one fills what is copied or kept", first->label, other->label);
      note_legal(s, "");
      return false;
    }
    struct ir_expr *extent = ir_int(arena, TYPE_INDEX, 1);
    for (uint32_t i = 0; i < count; i++) extent = ir_binary(arena, OP_MUL, extent, parts[i]->extent);
    struct ir_axis *fused = new_axis(s, directive->names.at[0], extent, directive->range);
    struct list derived = {0};
    struct ir_expr *rest = ir_ref(arena, fused->var);
    for (uint32_t i = count; i-- > 0;) {
      struct ir_expr *value = i == 0 ? rest : ir_binary(arena, OP_MOD, rest, parts[i]->extent);
      rest = ir_binary(arena, OP_DIV, rest, parts[i]->extent);
      list_push(arena, &derived, ir_let(arena, parts[i]->var, value, directive->range));
    }
    for (uint32_t n = k; n < s->entry->stages.count; n++) { // every stage that has these axes
      struct ir_stage *stage = s->entry->stages.at[n];
      uint32_t place = place_of(stage, parts[0]);
      if (place == UINT32_MAX) continue;
      bool is_reduction = list_at(&stage->axes, struct ir_stage_axis, place)->is_reduction;
      for (uint32_t i = 0; i < count; i++) {
        struct ir_stage_axis *part = place + i < stage->axes.count ? stage->axes.at[place + i] : NULL;
        if (part && part->axis == parts[i] && part->is_reduction == is_reduction) continue;
        if (part && part->axis == parts[i])
          diag_error(s->diag, ERROR_DIRECTIVE, directive->range, "in stage '%s' axis '%s' is a reduction axis and '%s' is none; they cannot be fused", stage->label,
                     parts[is_reduction ? 0 : i]->var->label, parts[is_reduction ? i : 0]->var->label);
        else
          diag_error(s->diag, ERROR_DIRECTIVE, directive->range, "axis '%s' does not follow '%s' in stage '%s'; reorder them first", parts[i]->var->label,
                     i ? parts[i - 1]->var->label : "", stage->label);
        return false;
      }
      for (uint32_t i = 0; i < count; i++) list_remove(&stage->axes, place);
      put_axis(s, stage, place, fused, is_reduction);
      for (uint32_t i = 0; i < derived.count; i++) list_insert(arena, &stage->derived, i, derived.at[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
      parts[i]->var->kind = VAR_LET;
      retire(s, parts[i], "fused", directive->range);
    }
  }
  return found;
}

// --- reorder, bind, unroll, allreduce -------------------------------------------------------------------------------

// Whether the reduction axes of a stage stand in another order than before.
static bool changes_reductions(const struct ir_stage *stage, const struct list *before) {
  uint32_t next = 0;
  for (uint32_t i = 0; i < before->count; i++) {
    const struct ir_stage_axis *axis = before->at[i];
    if (!axis->is_reduction) continue;
    while (!list_at(&stage->axes, struct ir_stage_axis, next)->is_reduction) next++;
    if (stage->axes.at[next++] != axis) return true;
  }
  return false;
}

static bool apply_reorder(struct scheduler *s, const struct ir_directive *directive) {
  uint32_t count = directive->axes.count;
  for (uint32_t i = 0; i < count; i++) {
    struct list axes = {0};
    if (!find_axes(s, directive, i, &axes)) return false;
  }
  if (!names_differ(s, directive)) return false;
  bool has_all = false;
  for (uint32_t n = 0; n < s->entry->stages.count; n++) {
    struct ir_stage *stage = s->entry->stages.at[n];
    struct list order = {0};
    for (uint32_t i = 0; i < count; i++) {
      const char *stage_name = directive->stages.at[i];
      struct ir_axis *axis = axis_in_stage(stage, directive->axes.at[i]);
      if (axis && (!*stage_name || stage_is_named(stage, stage_name)))
        list_push(s->arena, &order, stage->axes.at[place_of(stage, axis)]);
    }
    has_all |= order.count == count;
    uint32_t next = 0;
    struct list before = list_copy(s->arena, &stage->axes);
    for (uint32_t p = 0; p < stage->axes.count; p++)
      if (list_has(&order, before.at[p])) stage->axes.at[p] = order.at[next++];
    if (stage->kind == STAGE_REDUCE && stage->reducer->is_ordered && changes_reductions(stage, &before)) {
      diag_error(s->diag, ERROR_DIRECTIVE, directive->range, "stage '%s' is an ordered reduction: its reduction axes keep their order", stage->label);
      return false;
    }
    for (uint32_t p = 0; p < stage->axes.count; p++) { // a range must follow the axes that it mentions
      struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, p)->axis;
      for (uint32_t q = p + 1; q < stage->axes.count; q++) {
        struct ir_axis *later = list_at(&stage->axes, struct ir_stage_axis, q)->axis;
        if (!ir_mentions(stage_in_leaves(s->arena, stage, axis->extent), later->var)) continue;
        diag_error(s->diag, ERROR_DIRECTIVE, directive->range, "axis '%s' has a range that depends on '%s' and must stay inside it", axis->var->label, later->var->label);
        return false;
      }
    }
  }
  if (!has_all) {
    diag_error(s->diag, ERROR_DIRECTIVE, directive->range, "no stage has all of these axes");
    note_legal(s, "");
  }
  return has_all;
}

static bool bind_axis(struct scheduler *s, const struct ir_directive *directive, struct ir_axis *axis, struct range range) {
  enum ir_bind bind = directive->bind;
  if (!is_free(s, axis, range)) return false;
  bool is_thread = bind >= BIND_THREAD_X;
  if (mentions_axis(axis->extent)) {
    diag_error(s->diag, ERROR_BIND, directive->range, "axis '%s' has a range that depends on another axis and cannot be bound to %s", axis->var->label, bind_name(bind));
    if (is_thread) diag_note(s->diag, (struct range){0}, "split it by a constant and bind the inner piece: split %s by 32 -> %so, %si;", axis->var->label, axis->var->label, axis->var->label);
    else diag_note(s->diag, (struct range){0}, "leave it serial, or split it by a constant and bind the inner piece to threads");
    return false;
  }
  if (is_thread && !ir_is_const(axis->extent)) {
    const struct ir_expr *size = axis->extent;
    while (size->op == OP_CAST) size = size->args[0];
    if (size->op == OP_VAR)
      diag_error(s->diag, ERROR_EXTENT, directive->range, "axis '%s' has extent '%s', unknown at compile time, and is bound to %s", axis->var->label, size->var->label, bind_name(bind));
    else
      diag_error(s->diag, ERROR_EXTENT, directive->range, "axis '%s' has an extent unknown at compile time and is bound to %s", axis->var->label, bind_name(bind));
    if (size->op == OP_VAR)
      diag_note(s->diag, (struct range){0}, "fix it with -D %s=..., or split it: split %s by 32 -> %so, %si;", size->var->label, axis->var->label, axis->var->label, axis->var->label);
    else {
      diag_note(s->diag, axis->range, "'%s' is declared here", axis->var->label);
      diag_note(s->diag, (struct range){0}, "fix its sizes with -D, or split it: split %s by 32 -> %so, %si;", axis->var->label, axis->var->label, axis->var->label);
    }
    return false;
  }
  if (is_thread && (axis->extent->integer > 1024 || (bind == BIND_THREAD_Z && axis->extent->integer > 64))) {
    diag_error(s->diag, ERROR_BLOCK_SIZE, directive->range, "axis '%s' has extent %lld, and %s has at most %d threads", axis->var->label, (long long)axis->extent->integer,
               bind_name(bind), bind == BIND_THREAD_Z ? 64 : 1024);
    diag_note(s->diag, (struct range){0}, "split it: split %s by %d -> %so, %si;", axis->var->label, bind == BIND_THREAD_Z ? 64 : 256, axis->var->label, axis->var->label);
    return false;
  }
  for (uint32_t n = 0; n < s->entry->stages.count; n++) {
    struct ir_stage *stage = s->entry->stages.at[n];
    uint32_t place = place_of(stage, axis);
    if (place == UINT32_MAX) continue;
    for (uint32_t k = 0; k < stage->axes.count; k++) {
      struct ir_axis *other = list_at(&stage->axes, struct ir_stage_axis, k)->axis;
      if (other->bind != bind) continue;
      diag_error(s->diag, ERROR_BIND, directive->range, "axis '%s' and axis '%s' of stage '%s' would both be bound to %s", axis->var->label, other->var->label, stage->label, bind_name(bind));
      diag_note(s->diag, other->bound_at, "'%s' is bound here", other->var->label);
      struct text free_places = {0};
      for (int b = is_thread ? BIND_THREAD_X : BIND_BLOCK_X; b <= (is_thread ? BIND_THREAD_Z : BIND_BLOCK_Z); b++) {
        bool taken = false;
        for (uint32_t m = 0; m < stage->axes.count; m++) taken |= (int)list_at(&stage->axes, struct ir_stage_axis, m)->axis->bind == b;
        if (!taken) text_printf(&free_places, "%s%s", free_places.length ? ", " : "", bind_name((enum ir_bind)b));
      }
      if (free_places.length) diag_note(s->diag, (struct range){0}, "free in this stage: %s", free_places.data);
      text_free(&free_places);
      return false;
    }
  }
  axis->bind = bind;
  axis->bound_at = directive->range;
  return true;
}

static bool apply_bind(struct scheduler *s, const struct ir_directive *directive) {
  struct list axes = {0};
  if (!find_axes(s, directive, 0, &axes)) return false;
  for (uint32_t i = 0; i < axes.count; i++)
    if (!bind_axis(s, directive, axes.at[i], *list_at(&directive->axis_places, struct range, 0))) return false;
  return true;
}

// unroll B.combine by F: what combines the pieces of B that blocks left has F loads in flight a thread. Whether the directive is that; *good: whether it is legal.
static bool unrolls_combine(struct scheduler *s, const struct ir_directive *directive, bool *good) {
  const char *stage_name = directive->stages.at[0];
  struct ir_stage *found = NULL;
  *good = false;
  if (!*stage_name || strcmp(directive->axes.at[0], "combine") != 0) return false;
  for (uint32_t n = 0; n < s->entry->stages.count; n++) {
    struct ir_stage *stage = s->entry->stages.at[n];
    if (!stage_is_named(stage, stage_name)) continue;
    bool is_split = false;
    for (uint32_t k = 0; k < stage->axes.count; k++) {
      const struct ir_stage_axis *axis = stage->axes.at[k];
      if (strcmp(axis->axis->var->label, "combine") == 0) return false; // an axis of that name
      is_split |= axis->is_reduction && bind_is_block(axis->axis->bind);
    }
    if (stage->kind == STAGE_REDUCE && is_split) found = stage;
  }
  if (!found) {
    diag_error(s->diag, ERROR_DIRECTIVE, directive->range, "'%s.combine' is what combines the pieces of a reduction that blocks left, and '%s' has no reduction axis bound to blocks", stage_name, stage_name);
    diag_note(s->diag, (struct range){0}, "bind one first: bind x -> block.y;");
    return true;
  }
  if (!directive->factor || !ir_is_const(directive->factor) || directive->factor->integer < 1 || directive->factor->integer > IR_MAX_COMBINE_FLIGHT) {
    diag_error(s->diag, ERROR_EXTENT, directive->range, "'%s.combine' is unrolled by a constant from 1 to %d", stage_name, IR_MAX_COMBINE_FLIGHT);
    return true;
  }
  found->combine_flight = (uint32_t)directive->factor->integer;
  return *good = true;
}

static bool apply_unroll(struct scheduler *s, const struct ir_directive *directive) {
  struct list axes = {0};
  bool is_good;
  if (unrolls_combine(s, directive, &is_good)) return is_good;
  if (!find_axes(s, directive, 0, &axes)) return false;
  for (uint32_t i = 0; i < axes.count; i++) {
    struct ir_axis *axis = axes.at[i];
    if (!is_free(s, axis, *list_at(&directive->axis_places, struct range, 0))) return false;
    if (!directive->factor && !ir_is_const(axis->extent) && !schedule_bound_extent(s->context, s->entry, axis)) {
      diag_error(s->diag, ERROR_EXTENT, directive->range, "axis '%s' is unrolled whole and its extent is not constant", axis->var->label);
      diag_note(s->diag, (struct range){0}, "give a factor: unroll %s by 4; or split it first", axis->var->label);
      return false;
    }
    if (!directive->factor && axis->extent->integer > MAX_UNROLL) {
      diag_error(s->diag, ERROR_EXTENT, directive->range, "axis '%s' is unrolled whole and has %lld iterations; at most %d are legal", axis->var->label,
                 (long long)axis->extent->integer, MAX_UNROLL);
      diag_note(s->diag, (struct range){0}, "give a factor: unroll %s by 4; or split it first", axis->var->label);
      return false;
    }
    if (directive->factor && (!ir_is_const(directive->factor) || directive->factor->integer > MAX_UNROLL)) {
      diag_error(s->diag, ERROR_EXTENT, directive->range, "an unroll factor is a constant from 1 to %d", MAX_UNROLL);
      return false;
    }
    axis->unroll = directive->factor ? (uint32_t)directive->factor->integer : UINT32_MAX;
    axis->bound_at = directive->range;
  }
  return true;
}

static bool apply_allreduce(struct scheduler *s, const struct ir_directive *directive) {
  bool found = false;
  for (uint32_t i = 0; i < directive->axes.count; i++) {
    struct list axes = {0};
    if (!find_axes(s, directive, i, &axes)) return false;
  }
  for (uint32_t n = 0; n < s->entry->stages.count; n++) {
    struct ir_stage *stage = s->entry->stages.at[n];
    uint32_t named = 0, on_threads = 0;
    for (uint32_t k = 0; k < stage->axes.count; k++) {
      struct ir_stage_axis *axis = stage->axes.at[k];
      if (axis->is_reduction && axis->axis->bind >= BIND_THREAD_X && axis->axis->bind <= BIND_THREAD_Z) on_threads++;
      for (uint32_t i = 0; i < directive->axes.count; i++) {
        const char *stage_name = directive->stages.at[i];
        if (axis->is_reduction && strcmp(axis->axis->var->label, directive->axes.at[i]) == 0 && (!*stage_name || stage_is_named(stage, stage_name))) named++;
      }
    }
    if (named == 0) continue;
    if (named != on_threads || named != directive->axes.count) {
      if (!on_threads)
        diag_error(s->diag, ERROR_DIRECTIVE, directive->range, "'allreduce' names reduction axes bound to threads, and stage '%s' has none", stage->label);
      else
        diag_error(s->diag, ERROR_DIRECTIVE, directive->range, "'allreduce' names all reduction axes of stage '%s' that are bound to threads: it has %u, and %u %s named", stage->label, on_threads,
                   named, named == 1 ? "is" : "are");
      return false;
    }
    stage->form = directive->form;
    found = true;
  }
  if (!found) diag_error(s->diag, ERROR_DIRECTIVE, directive->range, "'allreduce' names reduction axes bound to threads");
  return found;
}

// combine x by last_block: x is a reduction axis on blocks.
static bool apply_combine(struct scheduler *s, const struct ir_directive *directive) {
  struct list axes = {0};
  struct range range = *list_at(&directive->axis_places, struct range, 0);
  if (!find_axes(s, directive, 0, &axes)) return false;
  bool found = false;
  for (uint32_t n = 0; n < s->entry->stages.count; n++) {
    struct ir_stage *stage = s->entry->stages.at[n];
    const char *stage_name = directive->stages.at[0];
    if (*stage_name && !stage_is_named(stage, stage_name)) continue;
    for (uint32_t k = 0; k < stage->axes.count; k++) {
      struct ir_stage_axis *axis = stage->axes.at[k];
      if (!list_has(&axes, axis->axis) || !axis->is_reduction) continue;
      bool on_blocks = axis->axis->bind >= BIND_BLOCK_X && axis->axis->bind <= BIND_BLOCK_Z;
      if (!on_blocks) {
        diag_error(s->diag, ERROR_DIRECTIVE, range, "'combine' names a reduction axis bound to blocks, and '%s' is %s%s", axis->axis->var->label,
                   axis->axis->bind == BIND_SERIAL ? "a loop in each thread" : "bound to ", axis->axis->bind == BIND_SERIAL ? "" : bind_name(axis->axis->bind));
        return false;
      }
      stage->combine = directive->combine;
      found = true;
    }
  }
  if (!found)
    diag_error(s->diag, ERROR_DIRECTIVE, range, "'combine' names a reduction axis bound to blocks, and '%s' is no reduction axis", (const char *)directive->axes.at[0]);
  return found;
}

static bool apply_cache(struct scheduler *s, const struct ir_directive *directive) {
  struct ir_hint *hint = arena_new(s->arena, struct ir_hint);
  hint->hint = directive->hint;
  for (uint32_t i = 0; i < s->kernel->tensors.count; i++)
    if (strcmp(list_at(&s->kernel->tensors, struct ir_mem, i)->name, directive->names.at[0]) == 0) hint->mem = s->kernel->tensors.at[i];
  if (hint->mem && ir_hint_of(s->entry, hint->mem) == CACHE_NORMAL) {
    list_push(s->arena, &s->entry->hints, hint);
    return true;
  }
  diag_error(s->diag, ERROR_DIRECTIVE, directive->range, hint->mem ? "'%s' has a hint already" : "no tensor is named '%s'", (const char *)directive->names.at[0]);
  return false;
}

static bool apply_blocks(struct scheduler *s, const struct ir_directive *directive) {
  enum { MOST = 32 };
  bool is_legal = ir_is_const(directive->factor) && directive->factor->integer <= MOST;
  if (is_legal && !s->entry->blocks) {
    s->entry->blocks = (uint32_t)directive->factor->integer;
    return true;
  }
  if (is_legal) diag_error(s->diag, ERROR_DIRECTIVE, directive->range, "'blocks' is given twice");
  else diag_error(s->diag, ERROR_EXTENT, directive->range, "'blocks' takes a constant from 1 to %d", MOST);
  return false;
}

static bool apply_vectorize(struct scheduler *s, const struct ir_directive *directive) {
  for (uint32_t n = 0; n < directive->axes.count; n++) {
    struct list axes = {0};
    struct range range = *list_at(&directive->axis_places, struct range, n);
    if (!find_axes(s, directive, n, &axes)) return false;
    for (uint32_t i = 0; i < axes.count; i++) {
      struct ir_axis *axis = axes.at[i];
      if (!is_free(s, axis, range)) return false;
      if (!ir_is_const(axis->extent) || axis->extent->integer > 64) {
        diag_error(s->diag, ERROR_EXTENT, range, "axis '%s' is vectorised and its extent is not a constant of at most 64", axis->var->label);
        diag_note(s->diag, (struct range){0}, "split it first: split %s by 4 -> %so, %sv;", axis->var->label, axis->var->label, axis->var->label);
        return false;
      }
      axis->bind = BIND_VECTOR;
      axis->bound_at = directive->range;
    }
  }
  return true;
}

static bool apply(struct scheduler *s, const struct ir_directive *directive) {
  switch (directive->kind) {
  case DIRECTIVE_SPLIT_BY: case DIRECTIVE_SPLIT_INTO: return apply_split(s, directive);
  case DIRECTIVE_FUSE: return apply_fuse(s, directive);
  case DIRECTIVE_REORDER: return apply_reorder(s, directive);
  case DIRECTIVE_BIND: return apply_bind(s, directive);
  case DIRECTIVE_UNROLL: return apply_unroll(s, directive);
  case DIRECTIVE_ALLREDUCE: return apply_allreduce(s, directive);
  case DIRECTIVE_VECTORIZE: return apply_vectorize(s, directive);
  case DIRECTIVE_COMBINE: return apply_combine(s, directive);
  case DIRECTIVE_CACHE: return apply_cache(s, directive);
  case DIRECTIVE_BLOCKS: return apply_blocks(s, directive);
  case DIRECTIVE_JOIN: return schedule_join(s->context, s->kernel, s->entry, directive);
  case DIRECTIVE_REGISTERS: return schedule_registers(s->context, s->kernel, s->entry, directive);
  case DIRECTIVE_SHARED: return schedule_shared(s->context, s->kernel, s->entry, directive);
  case DIRECTIVE_COUNT: break;
  }
  return false;
}

// --- Copies in shared memory --------------------------------------------------------------------------------------------

static bool is_thread(enum ir_bind bind) { return bind >= BIND_THREAD_X && bind <= BIND_THREAD_Z; }

// Whether a stage other than `stage` has the axis.
static bool is_shared_axis(const struct scheduler *s, const struct ir_stage *stage, const struct ir_axis *axis) {
  for (uint32_t n = 0; n < s->entry->stages.count; n++)
    if (s->entry->stages.at[n] != stage && place_of(s->entry->stages.at[n], axis) != UINT32_MAX) return true;
  return false;
}

static const char *fresh_label(struct scheduler *s, const char *label) {
  for (uint32_t i = 0; i < s->entry->axes.count; i++)
    if (strcmp(list_at(&s->entry->axes, struct ir_axis, i)->var->label, label) == 0) return fresh_label(s, arena_printf(s->arena, "%s_", label));
  return label;
}

// A directive for the axes of one stage.
static struct ir_directive *new_directive(struct scheduler *s, const struct ir_stage *stage, enum ir_directive_kind kind, const struct list *axes) {
  struct ir_directive *directive = arena_new(s->arena, struct ir_directive);
  directive->kind = kind;
  directive->range = stage->range;
  for (uint32_t i = 0; i < axes->count; i++) {
    struct range *place = arena_new(s->arena, struct range);
    *place = stage->range;
    list_push(s->arena, &directive->stages, (void *)stage->label);
    list_push(s->arena, &directive->axes, (void *)list_at(axes, struct ir_axis, i)->var->label);
    list_push(s->arena, &directive->axis_places, place);
  }
  return directive;
}

// The axes in the order in which the tensor's dimensions mention them.
static struct list by_dimension(struct scheduler *s, const struct ir_stage *stage, const struct list *own) {
  struct list sorted = {0};
  for (uint32_t d = 0; stage->value->op == OP_LOAD && d < stage->value->count; d++) {
    const struct ir_expr *place = stage_in_leaves(s->arena, stage, stage->value->args[d]);
    for (uint32_t i = 0; i < own->count; i++)
      if (ir_mentions(place, list_at(own, struct ir_axis, i)->var) && !list_has(&sorted, own->at[i])) list_push(s->arena, &sorted, own->at[i]);
  }
  return sorted.count == own->count ? sorted : *own;
}

// The threads of the block share a copy that nobody distributed: its axes are fused, and dealt out along x, then y, then z.
static bool distribute(struct scheduler *s, struct ir_stage *stage, struct list own) {
  int64_t block[3] = {1, 1, 1};
  for (uint32_t i = 0; i < s->entry->axes.count; i++) {
    struct ir_axis *axis = s->entry->axes.at[i];
    if (is_thread(axis->bind) && axis->extent->integer > block[axis->bind - BIND_THREAD_X]) block[axis->bind - BIND_THREAD_X] = axis->extent->integer;
  }
  if (own.count > 1) { // neighbours in the tensor to neighbouring threads; loops whose extents a launch gives stay around
    struct list order = {0}, dealt = {0};
    own = by_dimension(s, stage, &own);
    for (uint32_t i = 0; i < own.count; i++) list_push(s->arena, ir_is_const(list_at(&own, struct ir_axis, i)->extent) ? &dealt : &order, own.at[i]);
    if (order.count && stage->mem->swizzle_bits) {
      const struct ir_axis *axis = order.at[0];
      diag_error(s->diag, ERROR_DIRECTIVE, stage->range, "the copy of '%s' is permuted, and only a launch gives the extent of its axis '%s'", stage->label, axis->var->label);
      diag_note(s->diag, axis->range, "the axis is made here; a constant factor is legal, and so is a copy without a swizzle");
      return false;
    }
    list_append(s->arena, &order, &dealt);
    if (!apply(s, new_directive(s, stage, DIRECTIVE_REORDER, &order))) return false;
    own = dealt;
  }
  if (own.count > 1) {
    struct ir_directive *fuse = new_directive(s, stage, DIRECTIVE_FUSE, &own);
    const char *label = fresh_label(s, arena_printf(s->arena, "%s_place", stage->label));
    list_push(s->arena, &fuse->names, (void *)label);
    if (!apply(s, fuse)) return false;
    own.count = 0;
    list_push(s->arena, &own, axis_in_stage(stage, label));
  }
  for (uint32_t d = 0; d < 3 && own.count; d++) {
    if (block[d] == 1) continue;
    const char *outer = fresh_label(s, arena_printf(s->arena, "%s_rest", stage->label)), *inner = fresh_label(s, arena_printf(s->arena, "%s_%c", stage->label, "xyz"[d]));
    struct ir_directive *split = new_directive(s, stage, DIRECTIVE_SPLIT_BY, &own);
    split->factor = ir_int(s->arena, TYPE_INDEX, block[d]);
    list_push(s->arena, &split->names, (void *)outer);
    list_push(s->arena, &split->names, (void *)inner);
    if (!apply(s, split)) return false;
    own.at[0] = axis_in_stage(stage, inner);
    struct ir_directive *bind = new_directive(s, stage, DIRECTIVE_BIND, &own);
    bind->bind = (enum ir_bind)(BIND_THREAD_X + d);
    if (!apply(s, bind)) return false;
    own.at[0] = axis_in_stage(stage, outer);
  }
  return true;
}

// A copy is filled once, by threads of one block that share no axis on threads with its readers.
static bool finish_copies(struct scheduler *s) {
  for (uint32_t n = 0; n < s->entry->stages.count; n++) {
    struct ir_stage *stage = s->entry->stages.at[n];
    if (stage->kind != STAGE_STORE || stage->mem->space != SPACE_SHARED) continue;
    struct list own = {0};
    bool is_distributed = false;
    for (uint32_t i = 0; i < stage->axes.count; i++) {
      struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, i)->axis;
      bool is_own = !is_shared_axis(s, stage, axis), on_block = axis->bind >= BIND_BLOCK_X && axis->bind <= BIND_BLOCK_Z;
      if (is_own && on_block) {
        diag_error(s->diag, ERROR_BIND, axis->bound_at, "axis '%s' of the copy '%s' is bound to %s, and blocks share no memory", axis->var->label, stage->label, bind_name(axis->bind));
        return false;
      }
      if (!is_own && is_thread(axis->bind)) {
        diag_error(s->diag, ERROR_BIND, axis->bound_at, "axis '%s' is around the copy '%s', which the block shares, and bound to %s", axis->var->label, stage->label, bind_name(axis->bind));
        diag_note(s->diag, stage->range, "the copy is made here");
        return false;
      }
      if (is_own) list_push(s->arena, &own, axis);
      is_distributed |= is_own && (axis->bind != BIND_SERIAL || axis->unroll);
    }
    if (!is_distributed && own.count && !distribute(s, stage, own)) return false;
  }
  return true;
}

// Extents that the entry's condition makes constants: `when m == 2`.
static void fix_extents(struct scheduler *s, const struct ir_expr *condition) {
  if (condition->op == OP_AND && condition->type == TYPE_BOOL) {
    fix_extents(s, condition->args[0]);
    fix_extents(s, condition->args[1]);
  }
  if (condition->op != OP_EQ) return;
  bool is_turned = ir_is_const(condition->args[0]);
  struct ir_expr *size = condition->args[is_turned], *value = condition->args[!is_turned];
  if (size->op != OP_VAR || size->var->kind != VAR_SIZE || !ir_is_const(value)) return;
  size->var->subst = value;
  for (uint32_t i = 0; i < s->entry->axes.count; i++) {
    struct ir_axis *axis = s->entry->axes.at[i];
    axis->extent = ir_substitute(s->arena, axis->extent);
  }
  size->var->subst = NULL;
}

bool pass_schedule(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry) {
  struct scheduler s = {.context = context, .arena = context->arena, .diag = context->diag, .kernel = kernel, .entry = entry};
  if (entry->is_automatic) schedule_automatically(context, kernel, entry);
  if (entry->when) fix_extents(&s, entry->when);
  bool good = true;
  for (uint32_t i = 0; i < entry->directives.count && good; i++) good = apply(&s, entry->directives.at[i]);
  for (uint32_t i = 0; i < entry->directives.count; i++) {
    enum ir_directive_kind kind = list_at(&entry->directives, struct ir_directive, i)->kind;
    entry->has_copies |= kind == DIRECTIVE_SHARED || kind == DIRECTIVE_REGISTERS;
  }
  entry->directives.count = 0;
  return good && schedule_check_copies(context, entry) && finish_copies(&s) && check_unrolling(&s);
}

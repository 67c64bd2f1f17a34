#include "passes/stage.h"
#include "compiler/pass.h"

#include <string.h>

struct ir_expr *extent_inner(struct ir_expr *extent) {
  if (extent->op != OP_MAX) return extent;
  if (ir_const_is(extent->args[0], 0)) return extent->args[1];
  return ir_const_is(extent->args[1], 0) ? extent->args[0] : extent;
}

void stage_facts(const struct ir_stage *stage, struct facts *facts) {
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, i)->axis;
    facts_add_axis(facts, axis->var, ir_int(facts->arena, TYPE_INDEX, 0), extent_inner(axis->extent));
  }
  for (uint32_t i = 0; i < stage->derived.count; i++) {
    struct ir_stmt *let = stage->derived.at[i];
    facts_add_definition(facts, let->var, let->value);
  }
  for (uint32_t i = 0; i < stage->guards.count; i++) facts_add_condition(facts, stage->guards.at[i]);
}

void stage_facts_renamed(struct ir_kernel *kernel, const struct ir_stage *stage, struct facts *facts, struct list *indices) {
  struct arena *arena = kernel->names.arena;
  struct ir_expr *zero = ir_int(arena, TYPE_INDEX, 0);
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, i)->axis;
    struct ir_var *twin = arena_new(arena, struct ir_var);
    *twin = *axis->var;
    twin->subst = NULL;
    struct ir_expr *extent = ir_substitute(arena, extent_inner(axis->extent));
    facts_add_axis(facts, twin, zero, extent);
    axis->var->subst = ir_ref(arena, twin);
  }
  for (uint32_t i = 0; i < stage->derived.count; i++) {
    struct ir_stmt *let = stage->derived.at[i];
    let->var->subst = ir_substitute(arena, let->value);
  }
  for (uint32_t i = 0; i < stage->guards.count; i++) facts_add_condition(facts, ir_substitute(arena, stage->guards.at[i]));
  for (uint32_t i = 0; i < indices->count; i++) indices->at[i] = ir_substitute(arena, indices->at[i]);
  for (uint32_t i = 0; i < stage->axes.count; i++)
    list_at(&stage->axes, struct ir_stage_axis, i)->axis->var->subst = NULL;
  for (uint32_t i = 0; i < stage->derived.count; i++) list_at(&stage->derived, struct ir_stmt, i)->var->subst = NULL;
}

struct ir_expr *stage_in_leaves(struct arena *arena, const struct ir_stage *stage, struct ir_expr *e) {
  for (uint32_t i = stage->derived.count; i-- > 0;) { // the last ones are made of the first
    struct ir_stmt *let = stage->derived.at[i];
    let->var->subst = let->value;
    e = ir_substitute(arena, e);
    let->var->subst = NULL;
  }
  return e;
}

static bool names_reduction(const struct ir_stage *stage, const struct ir_expr *e) {
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    const struct ir_stage_axis *axis = stage->axes.at[i];
    if (axis->is_reduction && ir_mentions(e, axis->axis->var)) return true;
  }
  return false;
}

bool stage_mentions_reduction(struct arena *arena, const struct ir_stage *stage, struct ir_expr *e) {
  if (names_reduction(stage, e) || names_reduction(stage, stage_in_leaves(arena, stage, e))) return true;
  for (uint32_t i = 0; i < stage->derived.count; i++) { // in leaves, what it names may be gone: x && false
    struct ir_stmt *let = stage->derived.at[i];
    if (ir_mentions(e, let->var) && names_reduction(stage, stage_in_leaves(arena, stage, ir_ref(arena, let->var)))) return true;
  }
  return false;
}

bool stage_asks(struct arena *arena, const struct ir_stage *stage, const struct ir_stage *other, struct ir_expr *guard) {
  struct ir_expr *expected = stage_in_leaves(arena, other, guard);
  bool found = false;
  for (uint32_t i = 0; i < stage->axes.count; i++)
    for (uint32_t k = 0; k < other->axes.count; k++) {
      struct ir_axis *a = list_at(&stage->axes, struct ir_stage_axis, i)->axis, *b = list_at(&other->axes, struct ir_stage_axis, k)->axis;
      if (a != b && strcmp(a->var->label, b->var->label) == 0) a->var->subst = ir_ref(arena, b->var);
    }
  for (uint32_t i = 0; i < stage->guards.count && !found; i++) found = ir_equal(ir_substitute(arena, stage_in_leaves(arena, stage, stage->guards.at[i])), expected);
  for (uint32_t i = 0; i < stage->axes.count; i++) list_at(&stage->axes, struct ir_stage_axis, i)->axis->var->subst = NULL;
  return found;
}

bool stage_is_named(const struct ir_stage *stage, const char *name) {
  size_t length = strlen(name);
  for (const char *at = stage->label; at;) {
    const char *comma = strchr(at, ',');
    size_t part = comma ? (size_t)(comma - at) : strlen(at);
    if (part == length && memcmp(at, name, length) == 0) return true;
    at = comma ? comma + 1 : NULL;
  }
  return false;
}

bool stage_reads(const struct ir_stage *stage, const struct ir_var *value) {
  const struct list *lists[] = {&stage->guards, &stage->operands, &stage->init, &stage->indices};
  for (uint32_t l = 0; l < 4; l++)
    for (uint32_t e = 0; e < lists[l]->count; e++)
      if (ir_mentions(lists[l]->at[e], value)) return true;
  for (uint32_t e = 0; e < stage->lets.count; e++)
    if (ir_mentions(list_at(&stage->lets, struct ir_stmt, e)->value, value)) return true;
  return stage->value && ir_mentions(stage->value, value);
}

bool mentions_axis(const struct ir_expr *e) {
  if (e->op == OP_VAR) return e->var->kind != VAR_SIZE && e->var->kind != VAR_SCALAR;
  for (uint32_t i = 0; i < e->count; i++)
    if (mentions_axis(e->args[i])) return true;
  return false;
}

struct ir_expr *extent_wide(struct arena *arena, struct ir_expr *e) {
  if (e->op == OP_CONST) return ir_int(arena, TYPE_I64, e->integer);
  if (e->op == OP_ADD || e->op == OP_SUB || e->op == OP_MUL || e->op == OP_DIV || e->op == OP_MOD || e->op == OP_MIN || e->op == OP_MAX || (e->op == OP_AND && e->type == TYPE_INDEX))
    return ir_binary(arena, e->op, extent_wide(arena, e->args[0]), extent_wide(arena, e->args[1]));
  return ir_cast(arena, TYPE_I64, e);
}

struct ir_axis *stage_bound_axis(const struct ir_stage *stage, enum ir_bind bind) {
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, i)->axis;
    if (axis->bind == bind) return axis;
  }
  return NULL;
}

struct ir_expr *entry_grid_extent(struct arena *arena, const struct ir_entry *entry, uint32_t dimension) {
  struct ir_expr *extent = NULL, *one = ir_int(arena, TYPE_I64, 1);
  bool needs_one = false; // there is something to do even where the extent is 0
  for (uint32_t i = 0; i < entry->stages.count; i++) {
    const struct ir_stage *stage = entry->stages.at[i];
    struct ir_axis *axis = stage_bound_axis(stage, (enum ir_bind)(BIND_BLOCK_X + dimension));
    needs_one |= stage->kind == STAGE_ARRIVE && stage->block_axes >> dimension & 1;
    needs_one |= stage->kind == STAGE_STORE && stage->mem->space == SPACE_GLOBAL && !axis;
    if (!axis) continue;
    struct ir_expr *wide = extent_wide(arena, axis->extent);
    if (!extent) extent = wide;
    else if (!ir_equal(extent, wide)) extent = ir_binary(arena, OP_MAX, extent, wide);
  }
  if (!extent) return one;
  if (!needs_one) return extent;
  struct facts facts;
  facts_init(&facts, arena);
  if (entry->when) facts_add_condition(&facts, entry->when);
  for (uint32_t i = 0; i < entry->assumptions.count; i++)
    facts_add_condition(&facts, list_at(&entry->assumptions, struct ir_requirement, i)->condition);
  return !prove_at_most(&facts, one, extent) ? ir_binary(arena, OP_MAX, extent, one) : extent;
}

// Bytes of an object of shared memory; -1: not a number.
static int64_t object_bytes(const struct ir_mem *mem) {
  if (!mem->dims.count) return type_bytes(mem->type);
  const struct ir_expr *dim = mem->dims.at[0], *stride = mem->strides.at[0];
  return ir_is_const(dim) && ir_is_const(stride) ? dim->integer * stride->integer * type_bytes(mem->type) : -1;
}

int64_t entry_shared_bytes(const struct ir_entry *entry, bool with_dynamic) {
  int64_t bytes = 0;
  for (uint32_t i = 0; i < entry->memory.count; i++) {
    const struct ir_mem *mem = entry->memory.at[i];
    if (mem->space != SPACE_SHARED || (mem->is_dynamic && !with_dynamic)) continue;
    int64_t own = object_bytes(mem), alignment = mem->alignment > type_bytes(mem->type) ? mem->alignment : type_bytes(mem->type);
    if (own >= 0) bytes = (bytes + alignment - 1) / alignment * alignment + own;
  }
  return bytes;
}

void entry_ask_for_largest(struct ir_entry *entry) {
  struct ir_mem *largest = NULL;
  for (uint32_t i = 0; i < entry->memory.count; i++) {
    struct ir_mem *mem = entry->memory.at[i];
    if (mem->space != SPACE_SHARED) continue;
    if (!largest || object_bytes(mem) > object_bytes(largest)) largest = mem;
    mem->is_dynamic = false;
  }
  if (largest) largest->is_dynamic = true;
}

bool entry_exceeds_shared(struct ir_entry *entry, const struct pass_context *context, int64_t *bytes, int64_t *most) {
  if (entry_shared_bytes(entry, false) > STATIC_LIMIT) entry_ask_for_largest(entry);
  int64_t declared = entry_shared_bytes(entry, false);
  bool is_declared = declared > STATIC_LIMIT;
  *bytes = is_declared ? declared : entry_shared_bytes(entry, true);
  *most = !is_declared && context->options->target ? context->options->target->shared_limit : STATIC_LIMIT;
  return *bytes > *most;
}

const char *bind_name(enum ir_bind bind) {
  static const char *const names[] = {"serial", "block.x", "block.y", "block.z", "thread.x", "thread.y", "thread.z", "vector"};
  return names[bind];
}

void axis_note(struct diag *diag, const struct ir_axis *axis) {
  diag_note(diag, axis->range, "axis '%s' comes from here", axis->var->label);
  if (axis->bind == BIND_VECTOR) diag_note(diag, axis->bound_at, "it is vectorised here");
  else if (axis->bind != BIND_SERIAL) diag_note(diag, axis->bound_at, "it is bound to %s here", bind_name(axis->bind));
  else if (axis->unroll && axis->bound_at.line) diag_note(diag, axis->bound_at, "it is unrolled here");
}

void stage_note_reductions(struct diag *diag, const struct ir_stage *stage, bool (*is_there)(enum ir_bind)) {
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    const struct ir_stage_axis *used = stage->axes.at[i];
    if (used->is_reduction && is_there(used->axis->bind)) axis_note(diag, used->axis);
  }
}

// Entries: what each level may hold; stages and their axes.
#include "compiler/verify.h"

// ---- Stages

static bool has_axis(const struct ir_entry *entry, const struct ir_axis *axis) {
  for (uint32_t i = 0; i < entry->axes.count; i++)
    if (entry->axes.at[i] == axis) return true;
  return false;
}

// The stage's axes become visible.
static void check_stage_axes(struct verifier *v, const struct ir_stage *stage) {
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    const struct ir_stage_axis *axis = list_at(&stage->axes, struct ir_stage_axis, i);
    if (!axis->axis || !has_axis(v->entry, axis->axis)) {
      verify_fault(v, v->range, "a stage has an axis that the entry does not list");
      continue;
    }
    const char *name = axis->axis->var->name;
    if (stage->kind == STAGE_STORE && axis->is_reduction)
      verify_fault(v, v->range, "axis '%s' is a reduction axis of a store", name);
    for (uint32_t j = 0; j < i; j++)
      if (list_at(&stage->axes, struct ir_stage_axis, j)->axis == axis->axis)
        verify_fault(v, v->range, "axis '%s' stands twice in a stage", name);
    verify_declare(v, name, axis->axis->var, true);
  }
}

static void check_extents(struct verifier *v, const struct ir_stage *stage) {
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    const struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, i)->axis;
    if (!axis || !has_axis(v->entry, axis)) continue;
    if (axis->extent && ir_mentions(axis->extent, axis->var))
      verify_fault(v, v->range, "the extent of axis '%s' mentions the axis itself", axis->var->name);
    verify_typed(v, axis->extent, PLACE_STAGE, TYPE_INDEX,
                 arena_printf(&v->scratch, "the extent of axis '%s'", axis->var->name));
  }
}

static void check_init(struct verifier *v, const struct ir_stage *stage) {
  for (uint32_t i = 0; i < stage->init.count; i++)
    for (uint32_t j = 0; j < stage->axes.count; j++) {
      const struct ir_stage_axis *axis = list_at(&stage->axes, struct ir_stage_axis, j);
      if (axis->is_reduction && axis->axis && stage->init.at[i] &&
          ir_mentions(stage->init.at[i], axis->axis->var))
        verify_fault(v, v->range, "'init' mentions the reduction axis '%s'", axis->axis->var->name);
    }
}

// Operands are what `update` takes behind the state, or the components themselves.
static void check_operands(struct verifier *v, const struct ir_stage *stage) {
  const struct ir_reducer *reducer = stage->reducer;
  uint32_t components = reducer->identity.count;
  if (!reducer->update.params.count) {
    verify_matching(v, &stage->operands, &reducer->identity, PLACE_STAGE, "operand");
    return;
  }
  uint32_t expected = reducer->update.params.count - components;
  if (stage->operands.count != expected) {
    verify_fault(v, v->range, "the number of operands is %u, not %u", stage->operands.count, expected);
    return;
  }
  for (uint32_t i = 0; i < expected; i++)
    verify_typed(v, list_at(&stage->operands, struct ir_expr, i), PLACE_STAGE,
                 list_at(&reducer->update.params, struct ir_var, components + i)->type,
                 arena_printf(&v->scratch, "operand %u", i + 1));
}

static void check_reduce(struct verifier *v, const struct ir_stage *stage) {
  const struct ir_reducer *reducer = stage->reducer;
  if (!verify_has_reducer(v, reducer)) {
    verify_fault(v, v->range, "a reducer that the module does not list");
    return;
  }
  if (reducer->update.params.count && reducer->update.params.count <= reducer->identity.count)
    return; // told there
  check_operands(v, stage);
  if (stage->form > FORM_TREE) verify_fault(v, v->range, "a stage asks for no known form");
  if (stage->combine >= COMBINE_COUNT) verify_fault(v, v->range, "a stage asks for no known way to combine blocks");
  if (stage->combine_flight > IR_MAX_COMBINE_FLIGHT) verify_fault(v, v->range, "a stage asks for more than %d loads of what blocks left", IR_MAX_COMBINE_FLIGHT);
  if (stage->init.count) {
    verify_matching(v, &stage->init, &reducer->identity, PLACE_STAGE, "init");
    check_init(v, stage);
  }
  if (stage->results.count != reducer->identity.count) {
    verify_fault(v, v->range, "the number of results is %u, not %u", stage->results.count,
                 reducer->identity.count);
    return;
  }
  for (uint32_t i = 0; i < stage->results.count; i++) {
    const struct ir_var *result = list_at(&stage->results, struct ir_var, i);
    enum type type = list_at(&reducer->identity, struct ir_expr, i)->type;
    if (result->kind != VAR_VALUE)
      verify_fault(v, v->range, "result '%s' is not of the kind of a stage's result", result->name);
    if (result->type != type)
      verify_fault(v, v->range, "result '%s' has type %s, not %s", result->name, type_name(result->type),
                   type_name(type));
  }
}

static void check_arrive(struct verifier *v, const struct ir_stage *stage) {
  if (stage->mem && (!verify_is_visible(v, stage->mem->name, stage->mem) || stage->mem->type != TYPE_U32))
    verify_fault(v, v->range, "blocks are counted in no memory object of type u32");
  if (!stage->block_axes || stage->block_axes > 7 || stage->axes.count || stage->guards.count)
    verify_fault(v, v->range, "an arrival is over block axes, and has none of its own");
}

static void check_stage(struct verifier *v, const struct ir_stage *stage) {
  struct range around = v->range;
  uint32_t outside = v->scope.count;
  const char *name = arena_printf(&v->scratch, "stage '%s'", stage->label ? stage->label : "");
  if (stage->range.line) v->range = stage->range;
  struct range range = v->range;
  v->statement = name;
  check_stage_axes(v, stage);
  for (uint32_t i = 0; i < stage->derived.count; i++)
    verify_let(v, list_at(&stage->derived, struct ir_stmt, i), PLACE_STAGE, true);
  v->statement = name;
  v->range = range;
  check_extents(v, stage);
  for (uint32_t i = 0; i < stage->guards.count; i++)
    verify_typed(v, list_at(&stage->guards, struct ir_expr, i), PLACE_STAGE, TYPE_BOOL, "a guard");
  for (uint32_t i = 0; i < stage->lets.count; i++)
    verify_let(v, list_at(&stage->lets, struct ir_stmt, i), PLACE_STAGE, true);
  v->statement = name;
  v->range = range;
  if (stage->kind == STAGE_REDUCE)
    check_reduce(v, stage);
  else if (stage->kind == STAGE_ARRIVE)
    check_arrive(v, stage);
  else
    verify_store(v, stage->mem, &stage->indices, false, stage->value, PLACE_STAGE);
  if (stage->kind == STAGE_STORE && stage->is_async) verify_copy(v, stage->mem, stage->value);
  verify_leave_scope(v, outside);
  for (uint32_t i = 0; stage->kind == STAGE_REDUCE && i < stage->results.count; i++) {
    const struct ir_var *result = list_at(&stage->results, struct ir_var, i);
    verify_declare(v, result->name, result, false);
  }
  v->range = around;
  v->statement = NULL;
}

static void check_axis(struct verifier *v, const struct ir_axis *axis) {
  if (axis->var->kind != VAR_AXIS || axis->var->type != TYPE_INDEX)
    verify_fault(v, axis->range, "the variable of axis '%s' is no axis of type index", axis->var->name);
  if (axis->bind > BIND_VECTOR)
    verify_fault(v, axis->range, "axis '%s' is bound to nothing known", axis->var->name);
  uint32_t outside = v->scope.count;
  verify_declare(v, axis->var->name, axis->var, false);
  verify_leave_scope(v, outside);
}

// ---- Levels

static void check_memory(struct verifier *v, const struct ir_mem *mem) {
  verify_declare(v, mem->name, mem, false);
  if (mem->space == SPACE_GLOBAL && !mem->workspace)
    verify_fault(v, mem->range, "memory object '%s' is global and no part of the workspace", mem->name);
  if (mem->workspace && mem->space != SPACE_GLOBAL)
    verify_fault(v, mem->range, "memory object '%s' is a part of the workspace and not global", mem->name);
  if (mem->is_polled && (!mem->workspace || mem->type != TYPE_U64))
    verify_fault(v, mem->range, "memory object '%s' is polled, and no part of the workspace of type u64", mem->name);
  if (mem->workspace) verify_typed(v, mem->workspace, PLACE_PLAN, TYPE_I64, "a place in the workspace");
  for (uint32_t i = 0; mem->space == SPACE_LOCAL && i < mem->dims.count; i++)
    if (!ir_is_const(list_at(&mem->dims, struct ir_expr, i)))
      verify_fault(v, mem->range, "local array '%s' has no constant size", mem->name);
  int64_t elements = 1;
  for (uint32_t i = 0; !mem->workspace && i < mem->dims.count; i++) {
    const struct ir_expr *dim = mem->dims.at[i];
    if (!ir_is_const(dim)) continue;
    if (dim->integer >= 1 && !__builtin_mul_overflow(elements, dim->integer, &elements) && elements <= INT32_MAX) continue;
    verify_fault(v, mem->range, "array '%s' has an extent of %lld; its elements must be 1 to 2147483647", mem->name, (long long)dim->integer);
    break;
  }
  if (v->entry->index_type != TYPE_INDEX && mem->type == TYPE_INDEX)
    verify_fault(v, mem->range, "memory object '%s' has type index behind the pass that replaces it",
                 mem->name);
  verify_mem(v, mem);
}

static void check_stages_level(struct verifier *v, const struct ir_entry *entry) {
  if (entry->index_type != TYPE_INDEX)
    verify_fault(v, v->range, "stages with index type %s", type_name(entry->index_type));
  if (entry->body.count)
    verify_fault(v, v->range, "stages and a program in one entry");
  if (entry->block[0] || entry->block[1] || entry->block[2] || entry->grid[0] || entry->grid[1] ||
      entry->grid[2])
    verify_fault(v, v->range, "stages with a block or grid");
  for (uint32_t i = 0; i < entry->directives.count; i++) {
    const struct ir_directive *directive = list_at(&entry->directives, struct ir_directive, i);
    bool is_shared = directive->kind == DIRECTIVE_SHARED;
    if (is_shared && (directive->names.count != 2 || !directive->axes.count || directive->axis_places.count != directive->axes.count ||
                      directive->numbers.count != SHARED_NUMBERS))
      verify_fault(v, directive->range, "a directive `shared` without its names, axes or numbers");
    if (!directive->factor) continue;
    v->statement = "directive";
    if (verify_expr(v, directive->factor, PLACE_DIRECTIVE, false) &&
        !type_is_integer(directive->factor->type))
      verify_fault(v, directive->range, "a factor of type %s", type_name(directive->factor->type));
    v->statement = NULL;
  }
  for (uint32_t i = 0; i < entry->axes.count; i++) check_axis(v, list_at(&entry->axes, struct ir_axis, i));
  for (uint32_t i = 0; i < entry->memory.count; i++)
    check_memory(v, list_at(&entry->memory, struct ir_mem, i));
  for (uint32_t i = 0; i < entry->stages.count; i++)
    check_stage(v, list_at(&entry->stages, struct ir_stage, i));
}

static void check_block(struct verifier *v, const struct ir_entry *entry) {
  uint64_t threads = 1;
  for (uint32_t i = 0; i < 3; i++) {
    if (entry->block[i] < 1 || entry->block[i] > 1024) {
      verify_fault(v, v->range, "a block of %u by %u by %u threads", entry->block[0], entry->block[1],
                   entry->block[2]);
      return;
    }
    threads *= entry->block[i];
  }
  if (threads > 1024) verify_fault(v, v->range, "a block of %u threads", (unsigned)threads);
}

static void check_program_level(struct verifier *v, const struct ir_entry *entry) {
  if (entry->stages.count || entry->directives.count || entry->axes.count)
    verify_fault(v, v->range, "a program with stages, axes or directives");
  check_block(v, entry);
  for (uint32_t i = 0; i < 3; i++)
    verify_typed(v, entry->grid[i], PLACE_PLAN, TYPE_I64, arena_printf(&v->scratch, "grid.%c", "xyz"[i]));
  for (uint32_t i = 0; i < entry->memory.count; i++)
    check_memory(v, list_at(&entry->memory, struct ir_mem, i));
  verify_body(v, &entry->body);
}

void verify_entry(struct verifier *v, const struct ir_entry *entry, bool is_first) {
  uint32_t outside = v->scope.count, declared = v->declared.count;
  struct range around = v->range;
  v->entry = entry;
  if (entry->range.line) v->range = entry->range;
  if (!entry->name || !*entry->name)
    verify_fault(v, v->range, "an entry without a name");
  else if (map_get(&v->entry_names, entry->name))
    verify_fault(v, v->range, "the name of the entry is declared twice");
  else
    map_set(&v->entry_names, entry->name, (void *)1);
  if (entry->launch && is_first) verify_fault(v, v->range, "a launch without the one before it");
  if (entry->is_general && is_first) verify_fault(v, v->range, "a general entry without the one before it");
  if (entry->index_type != TYPE_INDEX && entry->index_type != TYPE_I32 && entry->index_type != TYPE_I64)
    verify_fault(v, v->range, "index type %s",
                 entry->index_type < TYPE_COUNT ? type_name(entry->index_type) : "?");
  if (entry->when) verify_typed(v, entry->when, PLACE_PLAN, TYPE_BOOL, "'when'");
  for (uint32_t i = 0; i < entry->assumptions.count; i++)
    verify_condition(v, list_at(&entry->assumptions, struct ir_requirement, i), "an assumption");
  if (entry->blocks > 32) verify_fault(v, v->range, "%u blocks a multiprocessor", entry->blocks);
  for (uint32_t i = 0; i < entry->hints.count; i++) {
    const struct ir_hint *hint = list_at(&entry->hints, struct ir_hint, i);
    if (!hint->mem || hint->mem->space != SPACE_GLOBAL || hint->mem->workspace || hint->hint >= CACHE_COUNT)
      verify_fault(v, v->range, "a hint of no known kind, or for no tensor");
  }
  switch (entry->level) {
  case LEVEL_STAGES: check_stages_level(v, entry); break;
  case LEVEL_PROGRAM: check_program_level(v, entry); break;
  }
  verify_leave_scope(v, outside);
  verify_forget(v, declared);
  v->range = around;
  v->entry = NULL;
}

// Entries of IR text: directives, axes, stages and programs.
#include "compiler/read.h"

struct ir_requirement *read_condition(struct reader *r) {
  struct ir_requirement *requirement = arena_new(r->arena, struct ir_requirement);
  requirement->condition = read_expr(r);
  requirement->message = read_string(r, "a message");
  requirement->range = read_range(r);
  return requirement;
}

struct ir_mem *read_mem(struct reader *r, enum ir_space space) {
  struct ir_mem *mem = arena_new(r->arena, struct ir_mem);
  struct range place = r->scan.token.range;
  mem->space = space;
  mem->name = mem->label = read_name(r, "the name of a memory object");
  struct symbol *symbol = read_declare(r, mem->name, place);
  if (symbol) symbol->mem = mem;
  if (r->scan.token.kind == TOKEN_STRING) mem->label = read_string(r, "a label");
  read_expect(r, ':');
  mem->type = read_type(r);
  read_exprs(r, '[', ']', &mem->dims);
  read_expect_word(r, "strides");
  read_exprs(r, '[', ']', &mem->strides);
  read_expect_word(r, "align");
  mem->alignment = read_uint(r, "an alignment in bytes");
  mem->is_output = read_accept_word(r, "out");
  mem->is_read = read_accept_word(r, "read");
  mem->is_strided = read_accept_word(r, "strided");
  if (read_accept_word(r, "parameter")) mem->parameter = read_uint(r, "the number of a parameter");
  if (space == SPACE_GLOBAL && read_accept_word(r, "at")) mem->workspace = read_expr(r);
  mem->is_polled = read_accept_word(r, "polled");
  mem->is_dynamic = read_accept_word(r, "dynamic");
  if (read_accept_word(r, "unit")) mem->unit = read_uint(r, "the elements of a unit");
  if (read_accept_word(r, "swizzle")) {
    mem->swizzle_bits = read_uint(r, "the bits of a swizzle");
    read_expect(r, ',');
    mem->swizzle_base = read_uint(r, "the lowest bit of a swizzle");
    read_expect(r, ',');
    mem->swizzle_shift = read_uint(r, "the shift of a swizzle");
  }
  mem->range = read_range(r);
  return mem;
}

// ---- Directives

static void read_name_list(struct reader *r, const char *keyword, struct list *out) {
  if (!read_accept_word(r, keyword)) return;
  read_expect(r, '(');
  while (!r->failed && !read_at(r, ')')) {
    if (out->count) read_expect(r, ',');
    list_push(r->arena, out, (void *)(uintptr_t)read_name(r, "a name"));
  }
  read_expect(r, ')');
}

static void read_places(struct reader *r, struct list *out) {
  if (!read_accept_word(r, "places")) return;
  read_expect(r, '(');
  while (!r->failed && !read_at(r, ')')) {
    if (out->count) read_expect(r, ',');
    struct range *place = arena_new(r->arena, struct range);
    *place = read_range(r);
    if (!place->line) read_expect_word(r, "none");
    list_push(r->arena, out, place);
  }
  read_expect(r, ')');
}

static void read_numbers(struct reader *r, struct list *out) {
  if (!read_accept_word(r, "numbers")) return;
  read_expect(r, '(');
  while (!r->failed && !read_at(r, ')')) {
    if (out->count) read_expect(r, ',');
    list_push(r->arena, out, (void *)(uintptr_t)read_uint(r, "a number"));
  }
  read_expect(r, ')');
}

static enum ir_bind read_bind(struct reader *r) {
  if (!read_accept_word(r, "bind")) return BIND_SERIAL;
  return (enum ir_bind)read_choice(r, ir_bind_names, BIND_VECTOR + 1, "what an axis is bound to");
}

static enum combine_form read_combine(struct reader *r) {
  if (!read_accept_word(r, "combine")) return COMBINE_AUTO;
  return (enum combine_form)read_choice(r, ir_combine_names, COMBINE_COUNT, "how blocks are combined");
}

static struct ir_directive *read_directive(struct reader *r) {
  struct ir_directive *directive = arena_new(r->arena, struct ir_directive);
  directive->kind =
      (enum ir_directive_kind)read_choice(r, ir_directive_names, DIRECTIVE_COUNT, "a kind of directive");
  read_name_list(r, "stages", &directive->stages);
  bool names_no_stage = directive->stages.count == 0;
  read_name_list(r, "axes", &directive->axes);
  for (uint32_t i = 0; names_no_stage && i < directive->axes.count; i++)
    list_push(r->arena, &directive->stages, (void *)(uintptr_t) "");
  read_places(r, &directive->axis_places);
  read_name_list(r, "names", &directive->names);
  r->in_directive = true;
  if (read_accept_word(r, "factor")) directive->factor = read_expr(r);
  r->in_directive = false;
  directive->bind = read_bind(r);
  directive->form = read_form(r);
  directive->combine = read_combine(r);
  if (read_accept_word(r, "hint")) directive->hint = (enum cache_hint)read_choice(r, ir_hint_names, CACHE_COUNT, "a hint");
  read_numbers(r, &directive->numbers);
  directive->range = read_range(r);
  return directive;
}

// ---- Axes and stages

// An axis's extent may mention what stages declare further down: it is read when the entry's end is reached.
struct late_extent {
  struct ir_axis *axis;
  struct scanner scan;
};

static struct ir_axis *read_axis(struct reader *r, struct list *extents) {
  struct ir_axis *axis = arena_new(r->arena, struct ir_axis);
  struct range place;
  axis->var = read_var(r, VAR_AXIS, &place);
  struct symbol *symbol = r->failed ? NULL : read_declare(r, axis->var->name, place);
  if (symbol) *symbol = (struct symbol){.var = axis->var, .axis = axis};
  read_expect_word(r, "extent");
  struct late_extent *late = arena_new(r->arena, struct late_extent);
  *late = (struct late_extent){axis, r->scan};
  list_push(r->arena, extents, late);
  read_skip_expr(r);
  axis->bind = read_bind(r);
  axis->unroll = read_unroll(r);
  axis->is_guarded = read_accept_word(r, "guarded");
  axis->range = read_range(r);
  if (read_accept_word(r, "bound")) {
    if (r->scan.token.kind != TOKEN_RANGE) read_expected(r, "a place");
    axis->bound_at = read_range(r);
  }
  read_inherit_range(axis->var, axis->range);
  return axis;
}

static void read_late_extents(struct reader *r, const struct list *extents) {
  struct scanner here = r->scan;
  for (uint32_t i = 0; !r->failed && i < extents->count; i++) {
    struct late_extent *late = list_at(extents, struct late_extent, i);
    r->scan = late->scan;
    late->axis->extent = read_expr(r);
  }
  if (!r->failed) r->scan = here;
}

static void read_stage_axes(struct reader *r, struct list *out) {
  static const char *const words[] = {"parallel", "reduction"};
  read_expect(r, '(');
  while (!r->failed && !read_at(r, ')')) {
    if (out->count) read_expect(r, ',');
    struct token token = r->scan.token;
    struct symbol *symbol = read_known(r, "an axis");
    if (symbol && !symbol->axis) read_fail(r, token.range, "'%s' is no axis", token.text);
    struct ir_stage_axis *axis = arena_new(r->arena, struct ir_stage_axis);
    axis->is_reduction = read_choice(r, words, 2, "what the axis is in the stage") == 1;
    if (r->failed) return;
    axis->axis = symbol->axis;
    list_push(r->arena, out, axis);
  }
  read_expect(r, ')');
}

static void read_stage_item(struct reader *r, struct ir_stage *stage) {
  bool reduces = stage->kind == STAGE_REDUCE;
  if (read_accept_word(r, "axes")) {
    read_stage_axes(r, &stage->axes);
  } else if (read_accept_word(r, "derive")) {
    list_push(r->arena, &stage->derived, read_definition(r, IR_LET, true));
  } else if (read_accept_word(r, "guards")) {
    read_exprs(r, '(', ')', &stage->guards);
  } else if (read_accept_word(r, "let")) {
    list_push(r->arena, &stage->lets, read_definition(r, IR_LET, true));
  } else if (reduces && read_accept_word(r, "reducer")) {
    stage->reducer = read_known_reducer(r);
  } else if (reduces && read_accept_word(r, "operands")) {
    read_exprs(r, '(', ')', &stage->operands);
  } else if (reduces && read_accept_word(r, "init")) {
    read_exprs(r, '(', ')', &stage->init);
  } else if (reduces && read_at_word(r, "form")) {
    stage->form = read_form(r);
  } else if (reduces && read_at_word(r, "combine")) {
    stage->combine = read_combine(r);
  } else if (reduces && read_accept_word(r, "combine_flight")) {
    stage->combine_flight = read_uint(r, "a number of loads");
  } else if (stage->kind == STAGE_ARRIVE && read_accept_word(r, "arrive")) {
    if (read_accept_word(r, "in")) read_expect_word(r, "order");
    else stage->mem = read_known_mem(r);
    read_expect_word(r, "over");
    for (bool more = true; more;) {
      more = false;
      for (uint32_t i = 0; i < 3; i++)
        if (read_accept_word(r, (const char *const[]){"x", "y", "z"}[i])) {
          stage->block_axes |= 1u << i;
          more = true;
        }
    }
  } else if (reduces && read_accept_word(r, "results")) {
    uint32_t first = stage->results.count;
    read_vars(r, VAR_VALUE, true, &stage->results);
    for (uint32_t i = first; !r->failed && i < stage->results.count; i++)
      read_inherit_range(list_at(&stage->results, struct ir_var, i), stage->range);
  } else if (stage->kind == STAGE_STORE && read_accept_word(r, "atomic")) {
    if (stage->mem) read_fail(r, r->scan.token.range, "a stage has one store");
    stage->is_atomic = true;
    stage->atomic = (enum ir_atomic)read_choice(r, ir_atomic_names, ATOMIC_COUNT, "an atomic operation");
    stage->mem = read_known_mem(r);
    read_exprs(r, '[', ']', &stage->indices);
    read_expect_word(r, "by");
    stage->value = read_expr(r);
  } else if (stage->kind == STAGE_STORE && (read_at_word(r, "depth") || read_at_word(r, "async") || read_at_word(r, "store"))) {
    if (read_accept_word(r, "depth")) stage->depth = read_uint(r, "how many iterations have a place in a copy");
    stage->is_async = read_accept_word(r, "async");
    read_expect_word(r, "store");
    if (stage->mem) read_fail(r, r->scan.token.range, "a stage has one store");
    read_store(r, &stage->mem, &stage->indices, &stage->value);
  } else {
    read_expected(
        r,
        reduces
            ? "a part of a stage (axes, derive, guards, let, reducer, operands, init, form, combine, combine_flight, results) or '}'"
        : stage->kind == STAGE_ARRIVE
            ? "a part of a stage (arrive) or '}'"
            : "a part of a stage (axes, derive, guards, let, store) or '}'");
  }
}

static struct ir_stage *read_stage(struct reader *r) {
  static const char *const kinds[] = {[STAGE_REDUCE] = "reduce", [STAGE_STORE] = "store", [STAGE_ARRIVE] = "arrive"};
  struct ir_stage *stage = arena_new(r->arena, struct ir_stage);
  stage->kind = (enum ir_stage_kind)read_choice(r, kinds, 3, "a kind of stage");
  stage->label = read_string(r, "the label of the stage");
  stage->range = read_range(r);
  read_expect(r, '{');
  while (!r->failed && !read_at(r, '}')) read_stage_item(r, stage);
  if (stage->kind == STAGE_REDUCE ? !stage->reducer : stage->kind == STAGE_STORE ? !stage->mem : !stage->block_axes)
    read_expected(r, stage->kind == STAGE_REDUCE ? "the stage's reducer" : stage->kind == STAGE_STORE ? "the stage's store" : "what the stage counts in");
  read_expect(r, '}');
  return stage;
}

// ---- Entries

static void read_once(struct reader *r, struct ir_expr **slot, const char *what) {
  if (*slot) read_fail(r, r->scan.token.range, "%s is given twice", what);
  *slot = read_expr(r);
}

static void read_grid(struct reader *r, struct ir_entry *entry) {
  static const char *const axes[] = {"x", "y", "z"};
  uint32_t axis = read_choice(r, axes, 3, "an axis of the grid");
  read_once(r, &entry->grid[axis], "this axis of the grid");
}

static void read_entry_item(struct reader *r, struct ir_entry *entry, struct list *extents) {
  if (read_accept_word(r, "when")) {
    read_once(r, &entry->when, "'when'");
  } else if (read_accept_word(r, "assume")) {
    list_push(r->arena, &entry->assumptions, read_condition(r));
  } else if (read_accept_word(r, "directive")) {
    list_push(r->arena, &entry->directives, read_directive(r));
  } else if (read_accept_word(r, "cache")) {
    struct ir_hint *hint = arena_new(r->arena, struct ir_hint);
    hint->mem = read_known_mem(r);
    hint->hint = (enum cache_hint)read_choice(r, ir_hint_names, CACHE_COUNT, "a hint");
    list_push(r->arena, &entry->hints, hint);
  } else if (read_accept_word(r, "blocks")) {
    entry->blocks = read_uint(r, "a number of blocks");
  } else if (read_accept_word(r, "axis")) {
    list_push(r->arena, &entry->axes, read_axis(r, extents));
  } else if (read_accept_word(r, "stage")) {
    list_push(r->arena, &entry->stages, read_stage(r));
  } else if (read_accept_word(r, "block")) {
    for (uint32_t i = 0; i < 3; i++) entry->block[i] = read_uint(r, "a number of threads");
  } else if (read_accept_word(r, "grid")) {
    read_grid(r, entry);
  } else if (read_accept_word(r, "shared")) {
    list_push(r->arena, &entry->memory, read_mem(r, SPACE_SHARED));
  } else if (read_accept_word(r, "local")) {
    list_push(r->arena, &entry->memory, read_mem(r, SPACE_LOCAL));
  } else if (read_accept_word(r, "global")) {
    list_push(r->arena, &entry->memory, read_mem(r, SPACE_GLOBAL));
  } else if (read_accept_word(r, "body")) {
    read_block(r, &entry->body);
  } else {
    read_expected(
        r,
        "a part of an entry (when, assume, cache, blocks, directive, axis, stage, block, grid, shared, local, global, body) or '}'");
  }
}

void read_entry(struct reader *r) {
  static const char *const levels[] = {[LEVEL_STAGES] = "stages", [LEVEL_PROGRAM] = "program"};
  struct ir_entry *entry = arena_new(r->arena, struct ir_entry);
  struct list extents = {0};
  map_init(&r->stage_vars, r->arena);
  r->entry_names.count = 0;
  entry->name = read_name(r, "the name of an entry");
  entry->level = (enum ir_level)read_choice(r, levels, 2, "the level of the entry");
  read_expect_word(r, "index");
  entry->index_type = read_type(r);
  entry->schedule = read_accept_word(r, "schedule") ? read_string(r, "the name of a schedule") : "";
  entry->is_automatic = read_accept_word(r, "automatic");
  entry->is_general = read_accept_word(r, "general");
  if (read_accept_word(r, "launch")) entry->launch = read_uint(r, "which launch it is");
  entry->range = read_range(r);
  read_expect(r, '{');
  while (!r->failed && !read_accept(r, '}')) read_entry_item(r, entry, &extents);
  read_late_extents(r, &extents);
  // The next entry may use the same names.
  for (uint32_t i = 0; i < r->entry_names.count; i++)
    map_set(&r->symbols, list_at(&r->entry_names, const char, i), NULL);
  list_push(r->arena, &r->kernel->entries, entry);
}

// check, statements: scopes, axes, and the stages that statements become.
#include "passes/check.h"

#include <string.h>

#include "passes/stage.h"

struct scope_mark check_enter(struct checker *c) {
  return (struct scope_mark){c->symbols.count, c->axes.count, c->guards.count};
}

void check_leave(struct checker *c, struct scope_mark mark) {
  c->symbols.count = mark.symbols;
  c->axes.count = mark.axes;
  c->guards.count = mark.guards;
}

// --- Axes -------------------------------------------------------------------------------------------------------------

static void find_unsteady(struct ir_expr *e, void *state) {
  if (e->op == OP_LOAD || (e->op == OP_VAR && (e->var->kind == VAR_LET || e->var->kind == VAR_VALUE) && e->var->mark))
    *(bool *)state = true;
}

// A bound of a range: an i64 expression of sizes, integer scalars and enclosing axes, as an index.
static struct ir_expr *check_range_end(struct checker *c, const struct ast_expr *e) {
  struct ir_expr *end = check_expr(c, e, TYPE_I64);
  if (!end) return NULL;
  bool is_unsteady = false;
  ir_visit_expr(end, find_unsteady, &is_unsteady);
  if (!type_is_integer(end->type) || end->type == TYPE_U64 || is_unsteady) {
    diag_error(c->diag, ERROR_RANGE, e->range, "a range is made of sizes, integer scalars and enclosing axes%s%s",
               is_unsteady ? ", not of a value computed or read" : ", not of a value of type ",
               is_unsteady ? "" : type_name(end->type));
    return NULL;
  }
  return check_as_index(c, ir_cast(c->arena, TYPE_I64, end));
}

static bool push_axis(struct checker *c, const struct ast_axis *source) {
  struct ir_expr *zero = ir_int(c->arena, TYPE_INDEX, 0);
  struct ir_expr *lo = source->lo ? check_range_end(c, source->lo) : zero, *hi = check_range_end(c, source->hi);
  if (!lo || !hi) return false;
  struct ir_expr *extent = ir_binary(c->arena, OP_SUB, hi, lo);
  struct facts facts;
  check_facts(c, &facts, false);
  if (!prove_nonnegative(&facts, poly_of(&facts, extent))) {
    if (ir_is_const(extent)) {
      diag_error(c->diag, ERROR_RANGE, source->range, "axis '%s' has the negative extent %lld", source->name.text,
                 (long long)extent->integer);
      return false;
    }
    extent = ir_binary(c->arena, OP_MAX, extent, zero);
  }
  uint32_t errors = c->diag->error_count;
  struct symbol *symbol = check_declare(c, SYMBOL_AXIS, &source->name, false);
  if (c->diag->error_count != errors) return false;
  struct scope_axis *scope = arena_new(c->arena, struct scope_axis);
  struct ir_axis *axis = arena_new(c->arena, struct ir_axis);
  scope->axis = axis;
  scope->lo = lo;
  scope->hi = hi;
  axis->extent = extent;
  axis->range = source->range;
  bool is_shifted = !ir_const_is(lo, 0);
  if (is_shifted) scope->var = ir_new_var(c->kernel, VAR_LET, TYPE_INDEX, source->name.text);
  axis->var = ir_new_var(c->kernel, VAR_AXIS, TYPE_INDEX, source->name.text);
  axis->var->range = source->name.range;
  if (is_shifted) {
    scope->var->range = source->name.range;
    scope->derived = ir_let(c->arena, scope->var, ir_binary(c->arena, OP_ADD, ir_ref(c->arena, axis->var), lo), source->range);
  } else {
    scope->var = axis->var;
  }
  symbol->value = ir_cast(c->arena, TYPE_I64, ir_ref(c->arena, scope->var));
  list_push(c->arena, &c->axes, scope);
  list_push(c->arena, &c->entry->axes, axis);
  return true;
}

bool check_push_axes(struct checker *c, const struct list *axes) {
  bool good = true;
  for (uint32_t i = 0; i < axes->count; i++) good &= push_axis(c, axes->at[i]);
  return good;
}

// --- Stages -----------------------------------------------------------------------------------------------------------

// Rewrites prototypes of lets: in guards they are replaced by their values; elsewhere by the stage's own copies.
static struct ir_expr *expand_lets(struct arena *arena, struct ir_expr *e, void *state) {
  struct checker *c = state;
  if (e->op == OP_VAR && e->var->kind == VAR_LET && e->var->mark) {
    struct ir_stmt *let = c->lets.at[e->var->mark - 1];
    return ir_rewrite_expr(arena, let->value, expand_lets, state);
  }
  return e;
}

// The size of e with lets put in.
static struct let_size expanded_size(struct checker *c, const struct ir_expr *e) {
  struct let_size size = {1, 1};
  if (e->op == OP_VAR && e->var->kind == VAR_LET && e->var->mark) return *list_at(&c->let_sizes, struct let_size, e->var->mark - 1);
  for (uint32_t i = 0; i < e->count; i++) {
    struct let_size operand = expanded_size(c, e->args[i]);
    size.nodes += operand.nodes;
    if (operand.depth >= size.depth) size.depth = operand.depth + 1;
  }
  enum { MUCH = 1 << 30 }; // stays there
  if (size.nodes > MUCH) size.nodes = MUCH;
  return size;
}

static void mark_lets(struct ir_expr *e, void *state) {
  (void)state;
  if (e->op == OP_VAR && e->var->kind == VAR_LET && e->var->mark && !e->var->subst) e->var->subst = e; // used; replaced by the copy below
}

static void visit_list(const struct list *exprs, void (*visit)(struct ir_expr *, void *), void *state) {
  for (uint32_t i = 0; i < exprs->count; i++) ir_visit_expr(exprs->at[i], visit, state);
}

// The stage gets its own copies of the lets that its expressions use.
static void add_lets(struct checker *c, struct ir_stage *stage) {
  visit_list(&stage->operands, mark_lets, c);
  visit_list(&stage->init, mark_lets, c);
  visit_list(&stage->indices, mark_lets, c);
  if (stage->value) ir_visit_expr(stage->value, mark_lets, c);
  for (uint32_t i = c->lets.count; i-- > 0;) { // a let names earlier ones only
    struct ir_stmt *let = c->lets.at[i];
    if (let->var->subst) ir_visit_expr(let->value, mark_lets, c);
  }
  for (uint32_t i = 0; i < c->lets.count; i++) {
    struct ir_stmt *let = c->lets.at[i];
    if (!let->var->subst) continue;
    struct ir_expr *value = ir_substitute(c->arena, let->value);
    struct ir_var *copy = ir_new_var(c->kernel, VAR_LET, let->var->type, let->var->label);
    copy->range = let->var->range;
    list_push(c->arena, &stage->lets, ir_let(c->arena, copy, value, let->range));
    let->var->subst = ir_ref(c->arena, copy);
  }
  ir_substitute_list(c->arena, &stage->operands);
  ir_substitute_list(c->arena, &stage->init);
  ir_substitute_list(c->arena, &stage->indices);
  if (stage->value) stage->value = ir_substitute(c->arena, stage->value);
  for (uint32_t i = 0; i < c->lets.count; i++) list_at(&c->lets, struct ir_stmt, i)->var->subst = NULL;
}


static void mark_axes(struct ir_expr *e, void *state) {
  struct checker *c = state;
  if (e->op != OP_VAR) return;
  if (e->var->kind == VAR_VALUE && e->var->mark) {
    struct ir_stage *producer = c->stages_of_values.at[e->var->mark - 1];
    for (uint32_t i = 0; i < producer->axes.count; i++) {
      struct ir_stage_axis *axis = producer->axes.at[i];
      if (!axis->is_reduction) axis->axis->var->mark = 1;
    }
  }
  for (uint32_t i = 0; i < c->axes.count; i++) {
    struct scope_axis *axis = c->axes.at[i];
    if (axis->var == e->var) axis->axis->var->mark = 1;
  }
}

// The stage's axes, and what they derive: those of the scope that are marked, and those that their ranges mention.
static void set_axes(struct checker *c, struct ir_stage *stage, uint32_t parallel) {
  stage->axes.count = stage->derived.count = 0;
  for (uint32_t i = c->axes.count; i-- > 0;) {
    struct scope_axis *axis = c->axes.at[i];
    if (stage->kind == STAGE_STORE || i >= parallel) axis->axis->var->mark = 1;
    if (!axis->axis->var->mark) continue;
    ir_visit_expr(axis->lo, mark_axes, c);
    ir_visit_expr(axis->hi, mark_axes, c);
  }
  for (uint32_t i = 0; i < c->axes.count; i++) {
    struct scope_axis *axis = c->axes.at[i];
    if (!axis->axis->var->mark) continue;
    struct ir_stage_axis *used = arena_new(c->arena, struct ir_stage_axis);
    used->axis = axis->axis;
    used->is_reduction = i >= parallel;
    list_push(c->arena, &stage->axes, used);
    if (axis->derived) list_push(c->arena, &stage->derived, axis->derived);
  }
}

void check_add_stage(struct checker *c, struct ir_stage *stage, uint32_t parallel) {
  enum { MOST_NODES = 20000, MOST_LEVELS = 1000 };
  add_lets(c, stage);
  for (uint32_t i = 0; i < c->guards.count; i++) {
    struct let_size size = expanded_size(c, c->guards.at[i]);
    if (size.nodes > MOST_NODES || size.depth > MOST_LEVELS) {
      diag_error(c->diag, ERROR_NESTING, stage->range, "a condition around this is too large with the lets that it names put in");
      diag_note(c->diag, (struct range){0}, "legal are %d operations, nested %d levels; select the value instead: condition ? value : ...", MOST_NODES, MOST_LEVELS);
      return;
    }
    list_push(c->arena, &stage->guards, ir_rewrite_expr(c->arena, c->guards.at[i], expand_lets, c));
  }
  for (uint32_t i = 0; i < c->axes.count; i++) list_at(&c->axes, struct scope_axis, i)->axis->var->mark = 0;
  if (stage->kind == STAGE_REDUCE) { // a reduction that does not mention an enclosing axis is computed outside it
    visit_list(&stage->operands, mark_axes, c);
    visit_list(&stage->init, mark_axes, c);
    visit_list(&stage->guards, mark_axes, c);
    ir_visit_block(&stage->lets, mark_axes, c);
  }
  set_axes(c, stage, parallel);
  while (stage->kind == STAGE_REDUCE && check_outside(c, stage, parallel)) set_axes(c, stage, parallel);
  for (uint32_t i = 0; i < c->axes.count; i++) list_at(&c->axes, struct scope_axis, i)->axis->var->mark = 0;
  for (uint32_t i = 0; i < stage->results.count; i++) {
    list_push(c->arena, &c->stages_of_values, stage);
    list_at(&stage->results, struct ir_var, i)->mark = c->stages_of_values.count;
  }
  list_push(c->arena, &c->entry->stages, stage);
}

// --- Writes -----------------------------------------------------------------------------------------------------------

// Whether different iterations write different elements: mixed-radix reasoning. An axis is determined by a dimension when its
// coefficient is larger than everything that smaller, already chained terms can reach; axes determined elsewhere are constants.
static bool is_injective(struct facts *facts, const struct list *axes, const struct list *indices, struct scope_axis **loose) {
  bool determined[64] = {false};
  if (axes->count > 64) return false;
  for (uint32_t i = 0; i < axes->count; i++) { // an axis of one iteration needs no place
    struct scope_axis *axis = axes->at[i];
    determined[i] = ir_const_is(axis->axis->extent, 1) || ir_const_is(axis->axis->extent, 0);
  }
  for (bool progress = true; progress;) {
    progress = false;
    for (uint32_t d = 0; d < indices->count; d++) {
      struct poly index = poly_of(facts, indices->at[d]);
      struct poly coefficients[64], rest = index, reach = poly_constant(facts, 0);
      bool has[64] = {false}, good = true;
      for (uint32_t i = 0; i < axes->count && good; i++) {
        struct scope_axis *axis = axes->at[i];
        good = poly_split(facts, rest, axis->var, &coefficients[i], &rest);
        has[i] = good && !determined[i] && !poly_is_zero(coefficients[i]);
      }
      for (uint32_t i = 0; i < axes->count && good; i++) // a coefficient or the rest may not hide an axis in mod or div
        for (uint32_t k = 0; k < axes->count; k++) {
          struct ir_expr *e = poly_to_expr(facts, rest);
          if (!e || (!determined[k] && ir_mentions(e, list_at(axes, struct scope_axis, k)->var))) good = false;
        }
      uint32_t left = 0;
      for (uint32_t i = 0; i < axes->count; i++) left += has[i];
      bool chained[64] = {false};
      while (good && left) {
        uint32_t found = axes->count;
        for (uint32_t i = 0; i < axes->count && found == axes->count; i++) {
          if (!has[i] || chained[i]) continue;
          struct poly one = poly_constant(facts, 1);
          struct poly plus = poly_sub(facts, poly_sub(facts, coefficients[i], reach), one);
          struct poly minus = poly_sub(facts, poly_sub(facts, poly_constant(facts, 0), coefficients[i]), poly_add(facts, reach, one));
          if (prove_nonnegative(facts, plus)) found = i;
          else if (prove_nonnegative(facts, minus)) {
            coefficients[i] = poly_sub(facts, poly_constant(facts, 0), coefficients[i]);
            found = i;
          }
        }
        for (uint32_t i = found; i < axes->count; i++) { // the smallest one first
          if (!has[i] || chained[i] || !prove_nonnegative(facts, poly_sub(facts, coefficients[found], coefficients[i]))) continue;
          struct poly gap = poly_sub(facts, poly_sub(facts, coefficients[i], reach), poly_constant(facts, 1));
          if (prove_nonnegative(facts, gap)) found = i;
        }
        if (found == axes->count) break;
        chained[found] = true;
        if (--left == 0) break;
        struct scope_axis *axis = axes->at[found];
        struct poly last = poly_sub(facts, poly_sub(facts, poly_of(facts, axis->hi), poly_of(facts, axis->lo)), poly_constant(facts, 1));
        struct ir_expr *bound = poly_minimum_expr(facts, poly_sub(facts, poly_constant(facts, 0), last)); // -max(extent - 1)
        if (!bound) break;
        reach = poly_add(facts, reach, poly_mul(facts, coefficients[found], poly_sub(facts, poly_constant(facts, 0), poly_of(facts, bound))));
      }
      if (!good || left) continue;
      for (uint32_t i = 0; i < axes->count; i++)
        if (chained[i]) determined[i] = progress = true;
    }
  }
  for (uint32_t i = 0; i < axes->count; i++)
    if (!determined[i]) {
      *loose = axes->at[i];
      return false;
    }
  return true;
}

static void check_injective(struct checker *c, const struct ast_expr *target, struct ir_mem *mem, const struct list *indices) {
  struct facts facts;
  check_facts(c, &facts, false);
  struct scope_axis *loose = NULL;
  if (is_injective(&facts, &c->axes, indices, &loose)) return;
  const char *name = loose ? loose->var->label : "?";
  diag_error(c->diag, ERROR_WRITTEN_TWICE, target->range, "iterations that differ in axis '%s' can write one element of '%s'", name, mem->label);
  if (loose) diag_note(c->diag, loose->axis->range, "axis '%s' is declared here", name);
  diag_note(c->diag, (struct range){0}, "each axis must be determined by the indices, as in '%s[..., %s, ...]'; to combine iterations, reduce over '%s'",
            mem->label, name, name);
}

// Whether two stores reach one element in one iteration only, in which their conditions exclude each other: `if` and its `else`.
static bool is_otherwise(struct checker *c, const struct ir_stage *first, const struct ir_stage *second) {
  for (uint32_t d = 0; d < first->indices.count; d++)
    if (!ir_equal(first->indices.at[d], second->indices.at[d])) return false;
  for (uint32_t i = 0; i < first->axes.count || i < second->axes.count; i++)
    if (i >= first->axes.count || i >= second->axes.count ||
        list_at(&first->axes, struct ir_stage_axis, i)->axis != list_at(&second->axes, struct ir_stage_axis, i)->axis)
      return false;
  uint32_t same = 0; // conditions around both
  while (same < first->guards.count && same < second->guards.count && first->guards.at[same] == second->guards.at[same]) same++;
  for (uint32_t a = same; a < first->guards.count; a++) {
    struct ir_expr *otherwise = ir_unary(c->arena, OP_NOT, first->guards.at[a]);
    for (uint32_t b = same; b < second->guards.count; b++)
      if (ir_equal(otherwise, second->guards.at[b])) return true;
  }
  return false;
}

// Whether two stores are to places that differ by a constant, of one dimension.
static bool are_other_constants(const struct ir_stage *first, const struct ir_stage *second) {
  for (uint32_t d = 0; d < first->indices.count; d++) {
    const struct ir_expr *a = first->indices.at[d], *b = second->indices.at[d];
    if (ir_is_const(a) && ir_is_const(b) && a->integer != b->integer) return true;
  }
  return false;
}

bool check_overlaps(struct checker *c) {
  for (uint32_t a = 0; a < c->entry->stages.count; a++)
    for (uint32_t b = a + 1; b < c->entry->stages.count; b++) {
      struct ir_stage *first = c->entry->stages.at[a], *second = c->entry->stages.at[b];
      if (first->kind != STAGE_STORE || second->kind != STAGE_STORE || first->mem != second->mem || are_other_constants(first, second)) continue;
      if (is_otherwise(c, first, second)) continue;
      struct facts facts;
      facts_init(&facts, c->arena);
      stage_facts(first, &facts);
      struct list renamed = list_copy(c->arena, &second->indices);
      stage_facts_renamed(c->kernel, second, &facts, &renamed);
      bool is_disjoint = false;
      for (uint32_t d = 0; d < renamed.count && !is_disjoint; d++)
        is_disjoint = prove_less(&facts, first->indices.at[d], renamed.at[d]) || prove_less(&facts, renamed.at[d], first->indices.at[d]);
      if (is_disjoint) continue;
      diag_error(c->diag, ERROR_WRITTEN_TWICE, second->range, "two statements can write one element of '%s'", first->mem->label);
      diag_note(c->diag, first->range, "the other one is here");
      return false;
    }
  return true;
}

// --- Statements -----------------------------------------------------------------------------------------------------

static const char *joined_label(struct checker *c, const struct list *names) {
  const char *label = NULL;
  for (uint32_t i = 0; i < names->count; i++) {
    const char *name = list_at(names, struct ast_name, i)->text;
    if (strcmp(name, "_") != 0) label = label ? arena_printf(c->arena, "%s,%s", label, name) : name;
  }
  return label ? label : "_";
}

static bool check_let(struct checker *c, const struct ast_let *let) {
  struct list values = {0};
  const char *label = c->label;
  c->label = joined_label(c, &let->names);
  if (let->value->kind == AST_REDUCE) c->result_names = &let->names;
  bool good = check_values(c, let->value, NULL, 0, &values);
  c->result_names = NULL;
  c->label = label;
  if (good && values.count != let->names.count) {
    diag_error(c->diag, ERROR_ARGUMENTS, let->range, "%u name%s for %u value%s", let->names.count, let->names.count == 1 ? "" : "s",
               values.count, values.count == 1 ? "" : "s");
    good = false;
  }
  for (uint32_t i = 0; i < let->names.count; i++) {
    const struct ast_name *name = let->names.at[i];
    if (strcmp(name->text, "_") == 0) continue;
    struct symbol *symbol = check_declare(c, SYMBOL_LET, name, true);
    if (!good) continue; // a use of the name says nothing more
    struct ir_expr *value = values.at[i];
    if (value->op == OP_VAR || value->op == OP_CONST) {
      symbol->value = value;
      continue;
    }
    struct ir_var *var = arena_new(c->arena, struct ir_var); // a prototype: stages get copies with names of their own
    var->kind = VAR_LET;
    var->type = value->type;
    var->name = var->label = name->text;
    var->range = name->range;
    list_push(c->arena, &c->lets, ir_let(c->arena, var, value, let->range));
    struct let_size *size = arena_new(c->arena, struct let_size);
    *size = expanded_size(c, value);
    list_push(c->arena, &c->let_sizes, size);
    var->mark = c->lets.count;
    symbol->value = ir_ref(c->arena, var);
  }
  return good;
}

static struct ir_expr *fold_value(struct checker *c, enum ast_assign_op operation, struct ir_expr *before, struct ir_expr *value, struct range range) {
  static const enum op ops[] = {
      [AST_ASSIGN_ADD] = OP_ADD, [AST_ASSIGN_SUB] = OP_SUB, [AST_ASSIGN_MUL] = OP_MUL, [AST_ASSIGN_AND] = OP_AND, [AST_ASSIGN_OR] = OP_OR,
      [AST_ASSIGN_XOR] = OP_XOR, [AST_ASSIGN_MIN] = OP_MIN, [AST_ASSIGN_MAX] = OP_MAX, [AST_ASSIGN_FMIN] = OP_FMIN, [AST_ASSIGN_FMAX] = OP_FMAX,
  };
  enum op op = ops[operation];
  char letter = before->type == TYPE_BOOL ? 'b' : type_is_integer(before->type) ? 'i' : type_is_float(before->type) ? 'f' : '?';
  if (!strchr(op_table[op].properties, letter)) {
    diag_error(c->diag, ERROR_TYPE_MISMATCH, range, "'%s' does not fold values of type %s", ast_assign_spelling(operation), type_name(before->type));
    return NULL;
  }
  return ir_binary(c->arena, op, before, value);
}

static bool check_assign(struct checker *c, const struct ast_stmt *s) {
  struct list mems = {0}, targets = {0}, index_lists = {0}, values = {0}, names = {0};
  enum type wants[64];
  bool good = true;
  if (s->targets.count > 64) {
    diag_error(c->diag, ERROR_ARGUMENTS, s->range, "at most 64 targets");
    return false;
  }
  for (uint32_t i = 0; i < s->targets.count; i++) {
    const struct ast_expr *target = s->targets.at[i];
    struct ir_mem *mem = NULL;
    struct list *indices = arena_new(c->arena, struct list);
    wants[i] = TYPE_F32;
    if (target->kind != AST_NAME) {
      mem = check_tensor(c, target);
      if (mem && !mem->is_output) {
        diag_error(c->diag, ERROR_WRITE_INPUT, target->range, "'%s' is an input and cannot be written", mem->label);
        mem = NULL;
      }
      if (!mem || !check_indices(c, target, mem, indices)) good = false;
      else check_injective(c, target, mem, indices);
      if (mem) wants[i] = type_computed(mem->type);
      struct ast_name *name = arena_new(c->arena, struct ast_name);
      name->text = target->name.text;
      list_push(c->arena, &names, name);
    }
    list_push(c->arena, &mems, mem);
    list_push(c->arena, &index_lists, indices);
    struct ir_expr *load = mem && indices->count == mem->dims.count ? ir_load(c->arena, mem, indices) : NULL;
    if (load) list_push(c->arena, &targets, load);
  }
  if (!good) return false;
  // a statement that assigns an output again is a stage of its own: B#2
  const char *label = joined_label(c, &names);
  uint32_t number = 1;
  for (uint32_t i = 0; i < c->entry->stages.count; i++) {
    struct ir_stage *stage = c->entry->stages.at[i];
    for (uint32_t k = 0; k < mems.count; k++) number += stage->kind == STAGE_STORE && stage->mem == mems.at[k];
  }
  if (number > 1) label = arena_printf(c->arena, "%s#%u", label, number);
  const char *outer = c->label;
  c->label = label;
  c->targets = &targets;
  good = check_values(c, s->value, wants, s->targets.count, &values);
  c->targets = NULL;
  c->label = outer;
  if (!good) return false;
  if (values.count != s->targets.count) {
    diag_error(c->diag, ERROR_ARGUMENTS, s->range, "%u target%s for %u value%s", s->targets.count, s->targets.count == 1 ? "" : "s",
               values.count, values.count == 1 ? "" : "s");
    return false;
  }
  for (uint32_t i = 0; i < values.count; i++) {
    struct ir_mem *mem = mems.at[i];
    if (!mem) continue;
    const char *place = arena_printf(c->arena, "'%s'", mem->label);
    struct ir_expr *value = values.at[i];
    if (s->operation != AST_ASSIGN_SET) {
      struct ir_expr *before = ir_cast(c->arena, wants[i], ir_load(c->arena, mem, index_lists.at[i]));
      value = check_convert(c, value, wants[i], s->value->range, place);
      value = value ? fold_value(c, s->operation, before, value, s->range) : NULL;
    }
    value = value ? check_convert(c, value, mem->type, s->value->range, place) : NULL;
    if (!value) {
      good = false;
      continue;
    }
    struct ir_stage *stage = arena_new(c->arena, struct ir_stage);
    stage->kind = STAGE_STORE;
    stage->label = label;
    stage->range = s->range;
    stage->mem = mem;
    stage->indices = *(struct list *)index_lists.at[i];
    stage->value = value;
    check_add_stage(c, stage, c->axes.count);
  }
  return good;
}

bool check_statements(struct checker *c, const struct list *statements) {
  bool good = true;
  for (uint32_t i = 0; i < statements->count; i++) {
    const struct ast_stmt *s = statements->at[i];
    struct scope_mark mark = check_enter(c);
    switch (s->kind) {
    case AST_FOR:
      if (check_push_axes(c, &s->axes)) good &= check_statements(c, &s->body);
      else good = false;
      check_leave(c, mark);
      break;
    case AST_IF: {
      struct ir_expr *condition = check_condition(c, s->condition);
      if (!condition) {
        good = false;
        break;
      }
      list_push(c->arena, &c->guards, condition);
      good &= check_statements(c, &s->body);
      check_leave(c, mark);
      if (s->otherwise.count) {
        list_push(c->arena, &c->guards, ir_unary(c->arena, OP_NOT, condition));
        good &= check_statements(c, &s->otherwise);
        check_leave(c, mark);
      }
      break;
    }
    case AST_LET: good &= check_let(c, s->let); break;
    case AST_ASSIGN: good &= check_assign(c, s); break;
    }
  }
  return good;
}

// check, reductions: the language's reducers, the user's, and the stage that a reduction becomes.
#include "passes/check.h"

#include <math.h>
#include <string.h>

#include "compiler/suggest.h"

// --- The language's own reducers ----------------------------------------------------------------------------------

enum identity { IDENTITY_ZERO, IDENTITY_ONE, IDENTITY_ONES, IDENTITY_LOWEST, IDENTITY_HIGHEST };
static const struct builtin {
  const char *name;
  enum op op;
  enum identity identity;
  const char *takes; // as op_info.properties
} builtins[] = {
    {"sum", OP_ADD, IDENTITY_ZERO, "if"},     {"prod", OP_MUL, IDENTITY_ONE, "if"},      {"min", OP_MIN, IDENTITY_HIGHEST, "if"},
    {"max", OP_MAX, IDENTITY_LOWEST, "if"},   {"fmin", OP_FMIN, IDENTITY_HIGHEST, "f"},  {"fmax", OP_FMAX, IDENTITY_LOWEST, "f"},
    {"any", OP_OR, IDENTITY_ZERO, "b"},       {"all", OP_AND, IDENTITY_ONES, "b"},       {"and", OP_AND, IDENTITY_ONES, "i"},
    {"or", OP_OR, IDENTITY_ZERO, "i"},        {"xor", OP_XOR, IDENTITY_ZERO, "i"},
};

static int64_t lowest_integer(enum type type) {
  return type_is_signed(type) ? (int64_t)((uint64_t)-1 << (type_bits(type) - 1)) : 0;
}
static int64_t highest_integer(enum type type) {
  uint32_t bits = type_bits(type);
  if (type_is_signed(type)) return (int64_t)(((uint64_t)1 << (bits - 1)) - 1);
  return bits == 64 ? -1 : (int64_t)(((uint64_t)1 << bits) - 1);
}

static struct ir_expr *identity_of(struct arena *arena, enum identity identity, enum type type) {
  bool is_float = type_is_float(type);
  switch (identity) {
  case IDENTITY_ZERO: return is_float ? ir_float(arena, type, 0) : ir_int(arena, type, 0);
  case IDENTITY_ONE: return is_float ? ir_float(arena, type, 1) : ir_int(arena, type, 1);
  case IDENTITY_ONES: return ir_int(arena, type, type == TYPE_BOOL ? 1 : type_is_signed(type) ? -1 : highest_integer(type));
  case IDENTITY_LOWEST: return is_float ? ir_float(arena, type, -INFINITY) : ir_int(arena, type, lowest_integer(type));
  case IDENTITY_HIGHEST: return is_float ? ir_float(arena, type, INFINITY) : ir_int(arena, type, highest_integer(type));
  }
  return NULL;
}

static struct ir_reducer *find_reducer(struct checker *c, const char *name) {
  struct list *reducers = &c->context->module->reducers;
  for (uint32_t i = 0; i < reducers->count; i++)
    if (strcmp(list_at(reducers, struct ir_reducer, i)->name, name) == 0) return reducers->at[i];
  return NULL;
}

static const char *instance_name(struct checker *c, const char *name, const enum type *types, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) name = arena_printf(c->arena, "%s_%s", name, type_name(types[i]));
  return name;
}

// A reducer without functions yet, its combine's parameters declared.
static struct ir_reducer *new_reducer(struct checker *c, struct ir_kernel *names, const char *name, const enum type *types, uint32_t count) {
  struct ir_reducer *reducer = arena_new(c->arena, struct ir_reducer);
  map_init(&names->names, c->arena);
  reducer->name = name;
  for (uint32_t side = 0; side < 2; side++)
    for (uint32_t i = 0; i < count; i++)
      list_push(c->arena, &reducer->combine.params, ir_new_var(names, VAR_LET, types[i], side ? "b" : "a"));
  list_push(c->arena, &c->context->module->reducers, reducer);
  return reducer;
}

static struct ir_expr *param(struct checker *c, const struct ir_reducer *reducer, uint32_t place) {
  return ir_ref(c->arena, reducer->combine.params.at[place]);
}

static bool builtin_takes(const struct builtin *builtin, enum type type) {
  char letter = type == TYPE_BOOL ? 'b' : type_is_integer(type) ? 'i' : type_is_float(type) ? 'f' : '?';
  return strchr(builtin->takes, letter) != NULL;
}

// sum, min, ... of one value or, component by component, of several.
static struct ir_reducer *builtin_reducer(struct checker *c, const struct builtin *builtin, const struct ast_expr *e, const enum type *types, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (!builtin_takes(builtin, types[i])) {
      diag_error(c->diag, ERROR_REDUCER, e->range, "'%s' reduces %s, not values of type %s", builtin->name,
                 strcmp(builtin->takes, "if") == 0 ? "integers and floats" : strcmp(builtin->takes, "f") == 0 ? "floats" : strcmp(builtin->takes, "i") == 0 ? "integers" : "bools",
                 type_name(types[i]));
      if (types[i] == TYPE_BOOL && builtin->op == OP_ADD)
        diag_note(c->diag, (struct range){0}, "to count, write sum(...) i32(...); to ask whether one is true, write any(...)");
      return NULL;
    }
  const char *name = instance_name(c, builtin->name, types, count);
  struct ir_reducer *reducer = find_reducer(c, name);
  if (reducer) return reducer;
  struct ir_kernel names = {0};
  reducer = new_reducer(c, &names, name, types, count);
  reducer->is_commutative_bitwise = true;
  for (uint32_t i = 0; i < count; i++) {
    list_push(c->arena, &reducer->identity, identity_of(c->arena, builtin->identity, types[i]));
    list_push(c->arena, &reducer->combine.results, ir_binary(c->arena, builtin->op, param(c, reducer, i), param(c, reducer, count + i)));
  }
  return reducer;
}

// argmin and argmax of (value, index): NaN above (below) all, then the value, then the lower index; the identity's -1 loses every tie.
static struct ir_reducer *arg_reducer(struct checker *c, bool is_max, const struct ast_expr *e, const enum type *types, uint32_t count) {
  const char *spelling = is_max ? "argmax" : "argmin";
  if (count != 2 || !type_is_integer(types[1]) || (!type_is_float(types[0]) && !type_is_integer(types[0]))) {
    diag_error(c->diag, ERROR_REDUCER, e->range, "'%s' takes (value, index): a number and an integer", spelling);
    return NULL;
  }
  const char *name = instance_name(c, spelling, types, count);
  struct ir_reducer *reducer = find_reducer(c, name);
  if (reducer) return reducer;
  struct ir_kernel names = {0};
  reducer = new_reducer(c, &names, name, types, count);
  reducer->is_commutative_bitwise = !type_is_float(types[0]); // among NaN the first one's payload is kept
  struct arena *arena = c->arena;
  struct ir_expr *av = param(c, reducer, 0), *ai = param(c, reducer, 1), *bv = param(c, reducer, 2), *bi = param(c, reducer, 3);
  struct ir_expr *wins = ir_binary(arena, is_max ? OP_GT : OP_LT, av, bv), *ties = ir_binary(arena, OP_EQ, av, bv);
  if (type_is_float(types[0])) {
    struct ir_expr *a_nan = ir_unary(arena, OP_ISNAN, av), *b_nan = ir_unary(arena, OP_ISNAN, bv);
    wins = ir_binary(arena, OP_OR, wins, ir_binary(arena, OP_AND, a_nan, ir_unary(arena, OP_NOT, b_nan)));
    ties = ir_binary(arena, OP_OR, ties, ir_binary(arena, OP_AND, a_nan, b_nan));
  }
  enum type order = type_bits(types[1]) == 64 ? TYPE_U64 : type_bits(types[1]) == 32 ? TYPE_U32 : type_bits(types[1]) == 16 ? TYPE_U16 : TYPE_U8;
  struct ir_expr *first = ir_binary(arena, OP_LE, ir_cast(arena, order, ai), ir_cast(arena, order, bi));
  struct ir_var *keep = ir_new_var(&names, VAR_LET, TYPE_BOOL, "keep");
  list_push(arena, &reducer->combine.lets, ir_let(arena, keep, ir_binary(arena, OP_OR, wins, ir_binary(arena, OP_AND, ties, first)), (struct range){0}));
  list_push(arena, &reducer->combine.results, ir_select(arena, ir_ref(arena, keep), av, bv));
  list_push(arena, &reducer->combine.results, ir_select(arena, ir_ref(arena, keep), ai, bi));
  list_push(arena, &reducer->identity, identity_of(arena, is_max ? IDENTITY_LOWEST : IDENTITY_HIGHEST, types[0]));
  list_push(arena, &reducer->identity, ir_int(arena, types[1], type_is_signed(types[1]) ? -1 : highest_integer(types[1])));
  return reducer;
}

// --- The user's -------------------------------------------------------------------------------------------------------

static const struct ast_reducer *find_source(struct checker *c, const char *name) {
  for (uint32_t i = 0; i < c->ast->reducers.count; i++) {
    const struct ast_reducer *source = c->ast->reducers.at[i];
    if (strcmp(source->name.text, name) == 0) return source;
  }
  return NULL;
}

static void declare_state(struct checker *c, const struct ast_reducer *source, const struct ast_name *name, const struct list *vars, uint32_t from) {
  struct symbol *symbol = check_declare(c, SYMBOL_STATE, name, false);
  for (uint32_t i = 0; i < source->components.count; i++) {
    list_push(c->arena, &symbol->field_names, (void *)list_at(&source->components, struct ast_component, i)->name.text);
    list_push(c->arena, &symbol->fields, ir_ref(c->arena, vars->at[from + i]));
  }
  if (source->components.count == 1) { // a single value needs no component
    symbol->kind = SYMBOL_LET;
    symbol->value = symbol->fields.at[0];
  }
}

// The lets and results of a function's body, whose parameters are declared; results have the components' types.
static bool check_function(struct checker *sub, const struct ast_expr *body, const enum type *types, uint32_t count, struct ir_function *function) {
  struct list values = {0};
  sub->lets.count = sub->let_sizes.count = 0;
  sub->entry->stages.count = 0;
  if (!check_values(sub, body, types, count, &values)) return false;
  if (sub->entry->stages.count) {
    diag_error(sub->diag, ERROR_REDUCER, body->range, "a reducer's functions cannot contain a reduction");
    return false;
  }
  if (values.count != count) {
    diag_error(sub->diag, ERROR_REDUCER, body->range, "the reducer has %u component%s and this gives %u", count, count == 1 ? "" : "s", values.count);
    return false;
  }
  for (uint32_t i = 0; i < count; i++) {
    struct ir_expr *value = check_convert(sub, values.at[i], types[i], body->range, arena_printf(sub->arena, "component %u", i));
    if (!value) return false;
    list_push(sub->arena, &function->results, value);
  }
  for (uint32_t i = 0; i < sub->lets.count; i++) { // prototypes become the function's own lets
    struct ir_stmt *let = sub->lets.at[i];
    struct ir_expr *value = ir_substitute(sub->arena, let->value);
    struct ir_var *var = ir_new_var(sub->kernel, VAR_LET, let->var->type, let->var->label);
    list_push(sub->arena, &function->lets, ir_let(sub->arena, var, value, let->range));
    let->var->subst = ir_ref(sub->arena, var);
  }
  for (uint32_t i = 0; i < count; i++) function->results.at[i] = ir_substitute(sub->arena, function->results.at[i]);
  for (uint32_t i = 0; i < sub->lets.count; i++) list_at(&sub->lets, struct ir_stmt, i)->var->subst = NULL;
  return true;
}

static struct ir_reducer *user_reducer(struct checker *c, const struct ast_reducer *source, const struct ast_expr *e, const enum type *operands, uint32_t operand_count) {
  uint32_t count = source->components.count;
  enum type types[64];
  if (count > 32) {
    diag_error(c->diag, ERROR_REDUCER, source->name.range, "a reducer has at most 32 components");
    return NULL;
  }
  struct checker sub = {.context = c->context, .arena = c->arena, .diag = c->diag, .ast = c->ast, .source = c->source};
  struct ir_kernel names = {0};
  struct ir_entry scratch = {0};
  sub.kernel = &names;
  sub.entry = &scratch;
  // A type parameter is the type of the first operand that has it. Where `update` says what operands there are, as many as components, they are those; otherwise
  // the parameters are the types of the operands in their order.
  bool has_own_operands = source->update && operand_count != count;
  for (uint32_t i = 0; i < source->type_params.count; i++) {
    const struct ast_name *parameter = source->type_params.at[i];
    struct type_binding *binding = arena_new(c->arena, struct type_binding);
    binding->name = parameter->text;
    uint32_t place = has_own_operands ? i : 0;
    for (uint32_t k = count; !has_own_operands && k-- > 0;)
      if (strcmp(list_at(&source->components, struct ast_component, k)->type.text, parameter->text) == 0) place = k;
    if (place >= operand_count) place = 0;
    binding->type = operands[place];
    list_push(c->arena, &sub.types, binding);
  }
  for (uint32_t i = 0; i < count; i++)
    if (!check_type(&sub, &list_at(&source->components, struct ast_component, i)->type, &types[i])) return NULL;
  for (uint32_t i = 0; i < count; i++)
    if (type_class_of(types[i]) == CLASS_STORAGE || type_class_of(types[i]) == CLASS_MOVED) {
      diag_error(c->diag, ERROR_REDUCER, list_at(&source->components, struct ast_component, i)->type.range,
                 "a component computes in f32 or f64, not %s", type_name(types[i]));
      return NULL;
    }
  uint32_t expected = source->update ? source->update_params.count - 1 : count;
  if (operand_count != expected) {
    diag_error(c->diag, ERROR_ARGUMENTS, e->range, "'%s' takes %u operand%s, not %u", source->name.text, expected, expected == 1 ? "" : "s", operand_count);
    return NULL;
  }
  const char *name = instance_name(c, source->name.text, types, count);
  if (source->update) name = instance_name(c, arena_printf(c->arena, "%s_of", name), operands, operand_count);
  struct ir_reducer *reducer = find_reducer(c, name);
  if (reducer && reducer->identity.count == 0) {
    diag_error(c->diag, ERROR_REDUCER, e->range, "'%s' has errors, as said where it was used first", source->name.text);
    return NULL;
  }
  if (reducer) return reducer;
  uint32_t errors = c->diag->error_count;
  reducer = new_reducer(c, &names, name, types, count);
  reducer->is_ordered = source->is_ordered;
  reducer->range = source->range;
  struct list identity = {0};
  if (check_values(&sub, source->identity, types, count, &identity) && identity.count != count)
    diag_error(c->diag, ERROR_REDUCER, source->identity->range, "the identity has %u component%s, the reducer %u", identity.count, identity.count == 1 ? "" : "s", count);
  for (uint32_t i = 0; i < identity.count && i < count; i++) {
    struct ir_expr *value = identity.at[i];
    value = check_convert(&sub, value, types[i], source->identity->range, "the identity");
    if (value && value->op != OP_CONST)
      diag_error(c->diag, ERROR_REDUCER, source->identity->range, "the identity must be constant");
    list_push(c->arena, &reducer->identity, value ? value : ir_int(c->arena, TYPE_I32, 0));
  }
  declare_state(&sub, source, source->combine_params.at[0], &reducer->combine.params, 0);
  declare_state(&sub, source, source->combine_params.at[1], &reducer->combine.params, count);
  check_function(&sub, source->combine, types, count, &reducer->combine);
  if (source->update) {
    sub.symbols.count = 0;
    for (uint32_t i = 0; i < count; i++) list_push(c->arena, &reducer->update.params, ir_new_var(&names, VAR_LET, types[i], "s"));
    declare_state(&sub, source, source->update_params.at[0], &reducer->update.params, 0);
    for (uint32_t i = 0; i < operand_count; i++) {
      const struct ast_name *operand = source->update_params.at[i + 1];
      struct ir_var *var = ir_new_var(&names, VAR_LET, operands[i], operand->text);
      list_push(c->arena, &reducer->update.params, var);
      check_declare(&sub, SYMBOL_LET, operand, false)->value = ir_ref(c->arena, var);
    }
    check_function(&sub, source->update, types, count, &reducer->update);
  }
  if (c->diag->error_count == errors) return reducer;
  diag_note(c->diag, e->range, "in '%s' as it is used here", source->name.text);
  reducer->identity.count = 0;
  return NULL;
}

// --- A reduction ------------------------------------------------------------------------------------------------------

static struct ir_reducer *choose_reducer(struct checker *c, const struct ast_expr *e, const enum type *types, uint32_t count) {
  const struct ast_reducer *source = find_source(c, e->name.text);
  if (source) return user_reducer(c, source, e, types, count);
  for (uint32_t i = 0; i < count; i++)
    if (type_class_of(types[i]) == CLASS_MOVED) {
      diag_error(c->diag, ERROR_MOVE_ONLY, e->range, "a value of type %s can only be moved, not reduced", type_name(types[i]));
      return NULL;
    }
  if (strcmp(e->name.text, "argmax") == 0) return arg_reducer(c, true, e, types, count);
  if (strcmp(e->name.text, "argmin") == 0) return arg_reducer(c, false, e, types, count);
  for (uint32_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
    if (strcmp(builtins[i].name, e->name.text) == 0) return builtin_reducer(c, &builtins[i], e, types, count);
  diag_error(c->diag, ERROR_UNKNOWN_NAME, e->name.range, "unknown reducer '%s'", e->name.text);
  struct suggestion near = suggest(e->name.text);
  for (uint32_t i = 0; i < sizeof builtins / sizeof *builtins; i++) suggest_consider(&near, builtins[i].name);
  suggest_consider(&near, "argmin");
  suggest_consider(&near, "argmax");
  for (uint32_t i = 0; i < c->ast->reducers.count; i++) suggest_consider(&near, list_at(&c->ast->reducers, struct ast_reducer, i)->name.text);
  if (near.best) diag_note(c->diag, (struct range){0}, "did you mean '%s'?", near.best);
  diag_note(c->diag, (struct range){0}, "reducers are sum prod min max fmin fmax any all and or xor argmin argmax, and those declared by `reducer`");
  return NULL;
}

// The guard of a reduction with an initial value says which elements count. That it is the reduction's own shows by the axis that it names; all of
// its other conditions are those around it, under which alone the initial value may be read. One that never holds names it as what no iteration is.
static struct ir_expr *name_axis(struct checker *c, struct ir_expr *guard, const struct scope_axis *axis) {
  struct ir_expr *inside = ir_binary(c->arena, OP_GE, ir_ref(c->arena, axis->var), axis->lo);
  if (ir_const_is(guard, 0)) return ir_binary(c->arena, OP_LT, ir_ref(c->arena, axis->var), axis->lo);
  return ir_binary(c->arena, OP_AND, inside, guard);
}

static bool reduce(struct checker *c, const struct ast_expr *e, const enum type *want, uint32_t wanted, struct list *values) {
  const struct list *names = c->result_names;
  c->result_names = NULL;
  struct scope_mark mark = check_enter(c);
  uint32_t parallel = c->axes.count;
  struct ir_stage *stage = arena_new(c->arena, struct ir_stage);
  stage->kind = STAGE_REDUCE;
  stage->label = c->label ? c->label : "_";
  stage->range = e->range;
  bool good = check_push_axes(c, &e->axes);
  if (good && e->guard) {
    struct ir_expr *guard = check_condition(c, e->guard);
    if (guard && e->init && c->axes.count > parallel) guard = name_axis(c, guard, c->axes.at[parallel]);
    if (guard) list_push(c->arena, &c->guards, guard);
    else good = false;
  }
  // a literal operand of a user's reducer takes the component's type
  enum type declared[32];
  const struct ast_reducer *source = find_source(c, e->name.text);
  if (source && !source->update && source->components.count <= 32 && source->type_params.count == 0) {
    for (uint32_t i = 0; good && i < source->components.count; i++)
      good = check_type(c, &list_at(&source->components, struct ast_component, i)->type, &declared[i]);
    want = declared;
    wanted = source->components.count;
  }
  struct list operands = {0};
  good = good && check_values(c, e->args.at[0], want, wanted, &operands);
  enum type types[64];
  if (good && operands.count > 64) {
    diag_error(c->diag, ERROR_REDUCER, e->range, "at most 64 operands");
    good = false;
  }
  for (uint32_t i = 0; good && i < operands.count; i++) types[i] = list_at(&operands, struct ir_expr, i)->type;
  stage->reducer = good ? choose_reducer(c, e, types, operands.count) : NULL;
  if (!stage->reducer) {
    check_leave(c, mark);
    return false;
  }
  bool has_update = stage->reducer->update.params.count != 0;
  for (uint32_t i = 0; i < operands.count; i++) {
    struct ir_expr *operand = operands.at[i];
    if (!has_update)
      operand = check_convert(c, operand, list_at(&stage->reducer->identity, struct ir_expr, i)->type, e->args.count ? list_at(&e->args, struct ast_expr, 0)->range : e->range, "the reducer's component");
    if (!operand) good = false;
    list_push(c->arena, &stage->operands, operand);
  }
  if (strncmp(e->name.text, "arg", 3) == 0 && !source && good && !type_is_signed(types[1])) {
    struct facts facts;
    check_facts(c, &facts, false);
    for (uint32_t i = parallel; i < c->axes.count; i++) {
      struct scope_axis *axis = c->axes.at[i];
      if (ir_is_const(axis->axis->extent) && axis->axis->extent->integer > 0 && !e->guard) continue;
      diag_error(c->diag, ERROR_REDUCER, e->range, "'%s' with an unsigned index over a range that may be empty: -1 is no index then", e->name.text);
      diag_note(c->diag, (struct range){0}, "take a signed index, i32(...), or give the sizes of the range by -D");
      good = false;
      break;
    }
  }
  // the initial value belongs to the scope around the reduction
  struct list inner_axes = c->axes, inner_guards = c->guards;
  c->axes = list_copy(c->arena, &c->axes);
  c->guards = list_copy(c->arena, &c->guards);
  c->axes.count = mark.axes;
  c->guards.count = mark.guards;
  if (good && e->init) {
    uint32_t components = stage->reducer->identity.count;
    enum type init_types[64];
    for (uint32_t i = 0; i < components; i++) init_types[i] = list_at(&stage->reducer->identity, struct ir_expr, i)->type;
    struct list init = {0};
    uint32_t symbols = c->symbols.count;
    c->symbols.count = mark.symbols;
    good = check_values(c, e->init, init_types, components, &init);
    c->symbols.count = symbols;
    if (good && init.count != components) {
      diag_error(c->diag, ERROR_ARGUMENTS, e->init->range, "the reducer has %u component%s, `init` %u", components, components == 1 ? "" : "s", init.count);
      good = false;
    }
    for (uint32_t i = 0; good && i < init.count; i++) {
      struct ir_expr *value = check_convert(c, init.at[i], init_types[i], e->init->range, "`init`");
      if (!value) good = false;
      list_push(c->arena, &stage->init, value);
    }
  }
  c->axes = inner_axes;
  c->guards = inner_guards;
  if (good) {
    uint32_t components = stage->reducer->identity.count;
    for (uint32_t i = 0; i < components; i++) {
      const char *label = names && i < names->count ? list_at(names, struct ast_name, i)->text : e->name.text;
      if (strcmp(label, "_") == 0) label = e->name.text;
      struct ir_var *result = ir_new_var(c->kernel, VAR_VALUE, list_at(&stage->reducer->identity, struct ir_expr, i)->type, label);
      result->range = e->range;
      list_push(c->arena, &stage->results, result);
    }
    check_add_stage(c, stage, parallel);
    for (uint32_t i = 0; i < components; i++) list_push(c->arena, values, ir_ref(c->arena, stage->results.at[i]));
  }
  check_leave(c, mark);
  return good;
}

// Under ?:, && or || the conditions there are those around the reduction: where one does not hold nothing is read, and nobody uses the value.
bool check_reduce(struct checker *c, const struct ast_expr *e, const enum type *want, uint32_t wanted, struct list *values) {
  struct list selected = c->selected;
  uint32_t guards = c->guards.count;
  list_append(c->arena, &c->guards, &selected);
  c->selected = (struct list){0};
  bool good = reduce(c, e, want, wanted, values);
  c->selected = selected;
  c->guards.count = guards;
  return good;
}

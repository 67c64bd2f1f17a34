// redc lift: values. Expressions of the host become expressions over parameters, axes and elements.
#include "grammar/lift_kernel.h"

#include <stdarg.h>
#include <string.h>

void lift_refuse(struct lift *l, struct range range, const char *advice, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const char *reason = arena_vprintf(l->arena, format, arguments);
  va_end(arguments);
  diag_error(l->diag, ERROR_LIFT, range, "'%s' is not lifted: %s", l->function->name, reason);
  if (advice) diag_note(l->diag, (struct range){0}, "%s", advice);
  l->is_refused = true;
}

struct ir_var *lift_var(struct lift *l, enum ir_var_kind kind, enum type type, const char *name, struct range range) {
  struct ir_var *var = arena_new(l->arena, struct ir_var);
  var->kind = kind;
  var->type = type;
  var->label = name;
  var->name = arena_printf(l->arena, "%s.%u", name, l->count++);
  var->range = range;
  return var;
}

struct facts lift_facts(struct lift *l, const struct lift_scope *scope, const struct list *more) {
  struct facts facts;
  struct list scopes = {0};
  facts_init(&facts, l->arena);
  for (; scope; scope = scope->parent) list_insert(l->arena, &scopes, 0, (void *)scope);
  for (uint32_t i = 0; i < scopes.count; i++) {
    const struct lift_scope *s = scopes.at[i];
    if (s->axis) facts_add_axis(&facts, s->axis->var, s->axis->lo, s->axis->hi);
    for (uint32_t k = 0; k < s->guards.count; k++) facts_add_condition(&facts, s->guards.at[k]);
  }
  for (uint32_t i = 0; more && i < more->count; i++) {
    const struct lift_axis *axis = more->at[i];
    facts_add_axis(&facts, axis->var, axis->lo, axis->hi);
  }
  return facts;
}

// ---- Walking

struct mention {
  bool (*is_one)(const struct ir_var *var, const void *state);
  const void *state;
  bool is_found;
};

static void visit_mention(struct ir_expr *e, void *state) {
  struct mention *m = state;
  if (e->op == OP_VAR && m->is_one(e->var, m->state)) m->is_found = true;
}

bool lift_mentions(const struct ir_expr *e, bool (*is_one)(const struct ir_var *var, const void *state), const void *state) {
  struct mention m = {is_one, state, false};
  ir_visit_expr((struct ir_expr *)e, visit_mention, &m);
  return m.is_found;
}

bool lift_mentions_var(const struct ir_expr *e, const struct ir_var *var) { return ir_mentions(e, var); }

uint32_t lift_size(const struct ir_expr *e, uint32_t limit) {
  uint32_t size = 1;
  for (uint32_t i = 0; i < e->count && size < limit; i++) size += lift_size(e->args[i], limit - size);
  return size;
}

struct lift_item *lift_definition(const struct list *items, const struct ir_var *var) {
  for (uint32_t i = 0; i < items->count; i++) {
    struct lift_item *item = items->at[i];
    if (item->kind == ITEM_LET && item->var == var) return item;
    for (uint32_t k = 0; item->kind == ITEM_REDUCE && k < item->results.count; k++)
      if (item->results.at[k] == var) return item;
    struct lift_item *below = item->kind == ITEM_FOR ? lift_definition(&item->items, var) : NULL;
    if (below) return below;
  }
  return NULL;
}

struct expansion {
  struct lift *l;
  const struct list *items;
  uint32_t count; // of nodes made
};

static struct ir_expr *expand_one(struct arena *arena, struct ir_expr *e, void *state) {
  struct expansion *x = state;
  if (e->op != OP_VAR || e->var->kind != VAR_LET || x->l->is_refused) return e;
  struct lift_item *item = lift_definition(x->items, e->var);
  if (!item || item->kind != ITEM_LET) return e;
  x->count += lift_size(item->value, LIFT_MAX_NODES);
  if (x->count > LIFT_MAX_NODES) {
    lift_refuse(x->l, item->range, "compute parts of it outside the branch or the loop", "an expression is longer than %d operations when written out", LIFT_MAX_NODES);
    return e;
  }
  return ir_rewrite_expr(arena, item->value, expand_one, state);
}

struct ir_expr *lift_expand(struct lift *l, struct ir_expr *e, const struct list *items) {
  struct expansion x = {l, items, 0};
  return ir_rewrite_expr(l->arena, e, expand_one, &x);
}

struct replacement {
  const struct list *vars, *values;
};

static struct ir_expr *replace_one(struct arena *arena, struct ir_expr *e, void *state) {
  (void)arena;
  const struct replacement *r = state;
  for (uint32_t i = 0; e->op == OP_VAR && i < r->vars->count; i++)
    if (r->vars->at[i] == e->var) return r->values->at[i];
  return e;
}

struct ir_expr *lift_replace(struct lift *l, struct ir_expr *e, const struct list *vars, const struct list *values) {
  struct replacement r = {vars, values};
  return ir_rewrite_expr(l->arena, e, replace_one, &r);
}

struct ir_expr *lift_all(struct lift *l, const struct list *conditions) {
  struct ir_expr *all = NULL;
  for (uint32_t i = 0; i < conditions->count; i++)
    all = all ? ir_binary(l->arena, OP_AND, all, conditions->at[i]) : conditions->at[i];
  return all;
}

// ---- Naming

static bool is_entry(const struct ir_var *var, const void *state) {
  (void)state;
  return var->kind == VAR_MUTABLE;
}

static void visit_written(struct ir_expr *e, void *state) {
  if (e->op == OP_LOAD && e->mem->is_output) *(bool *)state = true;
}

// Whether the value reads an element of an output: only the statement that writes it may.
static bool reads_output(struct ir_expr *e) {
  bool does = false;
  ir_visit_expr(e, visit_written, &does);
  return does;
}

struct ir_expr *lift_named(struct lift *l, const char *name, struct ir_expr *value, struct range range) {
  bool is_small = value->op == OP_VAR || value->op == OP_CONST || (value->type == TYPE_I64 && lift_size(value, 8) < 8) ||
                  (value->op == OP_CAST && (value->args[0]->op == OP_VAR || value->args[0]->op == OP_CONST));
  if (is_small || l->finds_shapes || l->scope->guards.count || lift_mentions(value, is_entry, NULL) || reads_output(value)) return value;
  struct lift_item *let = lift_item(l, ITEM_LET, range);
  let->var = lift_var(l, VAR_LET, value->type, name, range);
  let->value = value;
  list_push(l->arena, &l->scope->items, let);
  return ir_ref(l->arena, let->var);
}

// ---- Values

struct ir_expr *lift_select(struct lift *l, struct ir_expr *c, struct ir_expr *a, struct ir_expr *b) {
  struct ir_expr *not = ir_unary(l->arena, OP_NOT, c);
  for (; a->op == OP_SELECT; a = a->args[ir_equal(a->args[0], c) ? 1 : 2])
    if (!ir_equal(a->args[0], c) && !ir_equal(a->args[0], not)) break;
  for (; b->op == OP_SELECT; b = b->args[ir_equal(b->args[0], c) ? 2 : 1])
    if (!ir_equal(b->args[0], c) && !ir_equal(b->args[0], not)) break;
  return not->op == OP_NOT || c->op != OP_NOT ? ir_select(l->arena, c, a, b) : ir_select(l->arena, not, b, a);
}

struct ir_expr *lift_as(struct lift *l, enum type type, struct ir_expr *e) {
  if (e->type == type) return e;
  if (e->op == OP_CAST && e->type == TYPE_I64 && e->args[0]->type == type) return e->args[0];
  if (type == TYPE_F16 || type == TYPE_BF16) type = TYPE_F32; // the store rounds
  return e->type == type ? e : ir_cast(l->arena, type, e);
}

// Types whose values count: wide ones are kept as i64.
static bool is_counting(enum type type) { return type_is_integer(type) && type_bits(type) >= 32; }

// Whether a value of an unsigned type is what its i64 arithmetic says: it never went below zero.
static bool is_faithful(struct lift *l, enum type type, struct ir_expr *wide) {
  if (type_is_signed(type)) return true;
  struct facts facts = lift_facts(l, l->scope, NULL);
  return prove_nonnegative(&facts, poly_of(&facts, wide));
}

static struct ir_expr *variable(struct lift *l, const struct host_expr *e, bool is_index) {
  struct lift_symbol *symbol = e->var->symbol;
  symbol->is_used = true;
  if (symbol->host->is_parameter && is_counting(symbol->host->type)) {
    if (is_index) symbol->is_size = true;
    if (symbol->is_size) return ir_ref(l->arena, symbol->size);
    struct ir_expr *scalar = ir_ref(l->arena, symbol->scalar);
    return symbol->host->type == TYPE_U64 ? scalar : ir_cast(l->arena, TYPE_I64, scalar);
  }
  if (symbol->host->is_parameter) return ir_ref(l->arena, symbol->scalar);
  if (!symbol->value) lift_refuse(l, e->range, NULL, "'%s' is used %s", e->var->name, symbol->no_value ? symbol->no_value : "before it has a value");
  return is_index && symbol->value && symbol->exact_for == symbol->value ? symbol->exact : symbol->value;
}

static struct ir_expr *operation(struct lift *l, const struct host_expr *e, bool is_index) {
  struct ir_expr *args[3] = {0};
  bool is_wide = true, is_const = true;
  bool is_arithmetic = e->op == OP_ADD || e->op == OP_SUB || e->op == OP_MUL || e->op == OP_DIV || e->op == OP_MOD || e->op == OP_NEG;
  bool is_compare = op_table[e->op].rule == RULE_COMPARE;
  bool is_logic = (e->op == OP_AND || e->op == OP_OR || e->op == OP_NOT) && e->type == TYPE_BOOL;
  for (uint32_t i = 0; i < e->args.count; i++) {
    const struct host_expr *argument = e->args.at[i];
    args[i] = lift_value(l, argument, is_index && is_arithmetic);
    if (!args[i]) return NULL;
    is_wide &= args[i]->type == TYPE_I64 && is_counting(argument->type);
    is_const &= ir_is_const(args[i]);
  }
  enum type operands = list_at(&e->args, struct host_expr, 0)->type;
  // Comparisons are exact in i64, where one side counts: the prover of bounds sees through them.
  if (is_compare && operands != TYPE_U64 && is_counting(operands) && (args[0]->type == TYPE_I64 || args[1]->type == TYPE_I64))
    for (uint32_t i = 0; i < 2; i++) args[i] = args[i]->type == TYPE_I64 ? args[i] : ir_cast(l->arena, TYPE_I64, args[i]);
  if (is_compare && args[0]->type == TYPE_I64 && args[1]->type == TYPE_I64) return ir_binary(l->arena, e->op, args[0], args[1]);
  if (is_arithmetic && is_wide && is_counting(e->type)) {
    struct ir_expr *wide = e->op == OP_NEG ? ir_unary(l->arena, OP_NEG, args[0]) : ir_binary(l->arena, e->op, args[0], args[1]);
    bool may_wrap = e->type == TYPE_U32 && e->op == OP_MUL && !is_const;
    if (is_index || (!may_wrap && is_faithful(l, e->type, wide))) return wide;
  }
  if (!is_logic)
    for (uint32_t i = 0; i < e->args.count; i++) args[i] = lift_as(l, operands, args[i]);
  enum type result = op_table[e->op].rule == RULE_PREDICATE || is_compare ? TYPE_BOOL : e->type;
  return ir_make(l->arena, e->op, result, args, e->args.count);
}

static struct ir_expr *select_value(struct lift *l, const struct host_expr *e, bool is_index) {
  struct ir_expr *condition = lift_value(l, e->args.at[0], false);
  struct ir_expr *a = condition ? lift_value(l, e->args.at[1], is_index) : NULL;
  struct ir_expr *b = a ? lift_value(l, e->args.at[2], is_index) : NULL;
  if (!b) return NULL;
  bool is_wide = is_counting(e->type) && a->type == TYPE_I64 && b->type == TYPE_I64;
  // The clamp of an index is a min or a max, which the prover of bounds knows.
  if (is_wide && (condition->op == OP_LT || condition->op == OP_LE || condition->op == OP_GT || condition->op == OP_GE)) {
    bool is_less = condition->op == OP_LT || condition->op == OP_LE;
    if (ir_equal(condition->args[0], a) && ir_equal(condition->args[1], b)) return ir_binary(l->arena, is_less ? OP_MIN : OP_MAX, a, b);
    if (ir_equal(condition->args[0], b) && ir_equal(condition->args[1], a)) return ir_binary(l->arena, is_less ? OP_MAX : OP_MIN, a, b);
  }
  if (!is_wide) {
    a = lift_as(l, e->type, a);
    b = lift_as(l, e->type, b);
  }
  return ir_select(l->arena, condition, a, b);
}

static struct ir_expr *cast_value(struct lift *l, const struct host_expr *e, bool is_index) {
  const struct host_expr *inside = e->args.at[0];
  struct ir_expr *a = lift_value(l, inside, is_index && is_counting(e->type));
  if (!a) return NULL;
  bool is_wide = a->type == TYPE_I64 && is_counting(inside->type);
  if (is_wide && is_counting(e->type)) {
    if (is_index || is_faithful(l, e->type, a)) return a;
    return ir_cast(l->arena, e->type, a);
  }
  if (e->type == TYPE_F16 || e->type == TYPE_BF16) return ir_cast(l->arena, e->type, lift_as(l, TYPE_F32, a));
  return lift_as(l, e->type, a);
}

static struct ir_expr *value(struct lift *l, const struct host_expr *e, bool is_index) {
  switch (e->kind) {
  case HOST_INT:
    if (is_counting(e->type) && (e->integer >= 0 || type_is_signed(e->type))) return ir_int(l->arena, TYPE_I64, e->integer);
    return ir_int(l->arena, e->type, e->integer);
  case HOST_FLOAT: return ir_float(l->arena, e->type == TYPE_F64 ? TYPE_F64 : TYPE_F32, e->number);
  case HOST_VAR: return variable(l, e, is_index);
  case HOST_ACCESS: {
    struct list indices = {0};
    return lift_access(l, e, &indices) ? lift_read(l, e->var->symbol, &indices, e->range) : NULL;
  }
  case HOST_OP: return operation(l, e, is_index);
  case HOST_SELECT: return select_value(l, e, is_index);
  case HOST_CAST: return cast_value(l, e, is_index);
  }
  return NULL;
}

struct ir_expr *lift_value(struct lift *l, const struct host_expr *e, bool is_index) {
  struct ir_expr *v = value(l, e, is_index);
  if (v && lift_size(v, LIFT_MAX_NODES) >= LIFT_MAX_NODES) {
    lift_refuse(l, e->range, "compute parts of it outside the branch or the loop", "an expression is longer than %d operations when written out", LIFT_MAX_NODES);
    return NULL;
  }
  return v && is_index && v->type != TYPE_I64 && type_is_integer(v->type) ? ir_cast(l->arena, TYPE_I64, v) : v;
}

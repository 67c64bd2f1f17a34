// redc lift: statements, and what a loop is once its body has run with symbols.
//
// A loop that is done is taken apart, whatever the order of its statements was:
//
//   - a scalar of the outside that an iteration changes by `old op operand` is a reduction over the loop;
//   - so is an element whose indices do not mention the loop: `B[i] += A[i][j]` in a loop over j. Where loops stand between, the
//     loop moves inside them: `for k, for j: B[j] += A[k][j]` is `for j: B[j] = sum(k in n) A[k, j]`;
//   - what writes an element of its own in each iteration stays in a parallel loop.
//
// Anything else carries a value from one iteration to the next, and is refused.
#include "grammar/lift_kernel.h"

#include <math.h>

struct lift_item *lift_item(struct lift *l, enum lift_item_kind kind, struct range range) {
  struct lift_item *item = arena_new(l->arena, struct lift_item);
  item->kind = kind;
  item->range = range;
  return item;
}

// ---- What statements assign to

// Adds to `scalars` and `arrays` (struct lift_symbol) what the statements assign to and do not declare.
static void find_assigned(struct lift *l, const struct list *statements, struct list *scalars, struct list *arrays, struct list *declared) {
  for (uint32_t i = 0; i < statements->count; i++) {
    const struct host_stmt *s = statements->at[i];
    if (s->kind == HOST_DECLARE) list_push(l->arena, declared, s->var);
    if (s->kind == HOST_ASSIGN) {
      struct host_var *var = s->target->var;
      struct list *into = var->is_array ? arrays : scalars;
      bool is_known = false;
      for (uint32_t k = 0; k < into->count; k++) is_known |= into->at[k] == var->symbol;
      for (uint32_t k = 0; k < declared->count; k++) is_known |= declared->at[k] == var;
      if (!is_known) list_push(l->arena, into, var->symbol);
    }
    find_assigned(l, &s->body, scalars, arrays, declared);
    find_assigned(l, &s->otherwise, scalars, arrays, declared);
  }
}

// ---- Pieces of a reduction's body

struct needs {
  struct arena *arena;
  struct list vars; // struct ir_var
};

static void visit_needed(struct ir_expr *e, void *state) {
  struct needs *needs = state;
  if (e->op != OP_VAR || (e->var->kind != VAR_LET && e->var->kind != VAR_VALUE)) return;
  for (uint32_t i = 0; i < needs->vars.count; i++)
    if (needs->vars.at[i] == e->var) return;
  list_push(needs->arena, &needs->vars, e->var);
}

static bool is_in(const struct list *list, const void *item) {
  for (uint32_t i = 0; i < list->count; i++)
    if (list->at[i] == item) return true;
  return false;
}

static void gather_item(struct lift *l, const struct lift_item *item, const struct list *items, const struct list *hidden, struct list *lets);

// Appends to `lets` the items below `items` that the expression needs, those first that others need; none of what `hidden` defines.
static void gather_beside(struct lift *l, struct ir_expr *e, const struct list *items, const struct list *hidden, struct list *lets) {
  struct needs needs = {.arena = l->arena};
  const struct list nothing = {0};
  ir_visit_expr(e, visit_needed, &needs);
  for (uint32_t i = 0; i < needs.vars.count; i++) {
    if (lift_definition(hidden, needs.vars.at[i])) continue;
    struct lift_item *item = lift_definition(items, needs.vars.at[i]);
    if (!item || is_in(lets, item)) continue;
    gather_item(l, item, items, &nothing, lets);
    list_push(l->arena, lets, item);
  }
}

// The same for what an item needs, but for the lets of its own body: those stand there already.
static void gather_item(struct lift *l, const struct lift_item *item, const struct list *items, const struct list *hidden, struct list *lets) {
  struct list inside = list_copy(l->arena, hidden);
  if (item->kind == ITEM_LET) gather_beside(l, item->value, items, hidden, lets);
  list_append(l->arena, &inside, &item->lets);
  for (uint32_t k = 0; k < item->operands.count; k++) gather_beside(l, item->operands.at[k], items, &inside, lets);
  for (uint32_t k = 0; k < item->conditions.count; k++) gather_beside(l, item->conditions.at[k], items, &inside, lets);
  for (uint32_t k = 0; k < item->lets.count; k++) gather_item(l, item->lets.at[k], items, &inside, lets);
  for (uint32_t k = 0; k < item->axes.count; k++) {
    const struct lift_axis *axis = item->axes.at[k];
    gather_beside(l, axis->lo, items, hidden, lets);
    gather_beside(l, axis->hi, items, hidden, lets);
  }
}

static void gather(struct lift *l, struct ir_expr *e, const struct list *items, struct list *lets) {
  const struct list nothing = {0};
  gather_beside(l, e, items, &nothing, lets);
}

struct defined {
  const struct list *items;
};

static bool is_reduced_below(const struct ir_var *var, const void *state) {
  const struct defined *d = state;
  return var->kind == VAR_VALUE && lift_definition(d->items, var) != NULL;
}

static bool is_carried(const struct ir_var *var, const void *scope_of_loop) {
  const struct lift_scope *scope = scope_of_loop;
  for (uint32_t i = 0; i < scope->carried.count; i++)
    if (list_at(&scope->carried, struct lift_carried, i)->entry == var) return true;
  for (uint32_t i = 0; i < scope->entries.count; i++)
    if (list_at(&scope->entries, struct lift_entry, i)->entry == var) return true;
  return false;
}

static const char *reducer_name(enum op op, enum type type) {
  switch ((int)op) {
  case OP_ADD: return "sum";
  case OP_MUL: return "prod";
  case OP_MIN: return "min";
  case OP_MAX: return "max";
  case OP_FMIN: return "fmin";
  case OP_FMAX: return "fmax";
  case OP_AND: return type == TYPE_BOOL ? "all" : "and";
  case OP_OR: return type == TYPE_BOOL ? "any" : "or";
  case OP_XOR: return type == TYPE_BOOL ? NULL : "xor";
  default: return NULL;
  }
}

static bool rounds(enum op op, enum type type) { return type_is_float(type) && (op == OP_ADD || op == OP_MUL); }

// Whether the value leaves every other unchanged.
static bool is_identity(enum op op, const struct ir_expr *e) {
  if (e->op != OP_CONST) return false;
  bool is_float = type_is_float(e->type);
  switch ((int)op) {
  case OP_ADD: return is_float ? e->number == 0 : e->integer == 0;
  case OP_OR: case OP_XOR: return e->integer == 0;
  case OP_MUL: return is_float ? e->number == 1 : e->integer == 1;
  case OP_AND: return e->integer == (e->type == TYPE_BOOL ? 1 : -1);
  case OP_FMIN: return e->number == INFINITY;
  case OP_FMAX: return e->number == -INFINITY;
  default: return false;
  }
}

static void note_order(struct lift *l, const char *name, struct range range) {
  if (l->reassociates || l->keeps_order) return;
  l->keeps_order = true;
  l->ordered = range;
  l->ordered_name = name;
}

static bool refuse_order(struct lift *l, const char *name, struct range range, const char *reason) {
  lift_refuse(l, range, "a float reduction is reassociated only where --reassociate or #pragma red reassociate says so; or begin with 0 and add once behind the loop",
              "the order in which C adds to '%s' cannot be kept: %s", name, reason);
  return false;
}

// A reduction over the loop of `child`, and the loops of `inner` inside it, of operand under guard. Lets and reductions that it needs are
// taken from the items of `child`. Gives the item; it is not in any list yet.
static struct lift_item *make_reduction(struct lift *l, struct lift_scope *child, const char *name, struct range range, struct lift_step *step, const struct list *guards) {
  enum type type = step->operand->type;
  struct lift_item *r = lift_item(l, ITEM_REDUCE, range);
  r->op = step->op;
  r->reducer = reducer_name(step->op, type);
  if (!r->reducer) {
    lift_refuse(l, range, NULL, "what the loop does to '%s' is no reduction of the language", name);
    return NULL;
  }
  list_push(l->arena, &r->axes, child->axis);
  struct list conditions = list_copy(l->arena, guards);
  if (step->guard) list_push(l->arena, &conditions, step->guard);
  struct ir_expr *operand = step->operand;
  // A reduction of a reduction by the same operation is one over both axes.
  struct lift_item *below = operand->op == OP_VAR && operand->var->kind == VAR_VALUE ? lift_definition(&child->items, operand->var) : NULL;
  struct list lets = {0};
  bool joins = below && below->op == step->op && step->op != OP_COUNT && !below->lets.count && (!rounds(step->op, type) || l->reassociates || below->start);
  if (below && below->start && rounds(step->op, type) && !l->reassociates && !joins) {
    if (below->op == step->op && step->op != OP_COUNT) joins = true;
    else {
      refuse_order(l, name, range, "the loops inside add one by one to what is there");
      return NULL;
    }
  }
  if (joins) {
    list_append(l->arena, &r->axes, &below->axes);
    list_append(l->arena, &conditions, &below->conditions);
    operand = below->operands.at[0];
    lets = list_copy(l->arena, &below->lets);
  }
  struct defined defined = {&child->items};
  for (uint32_t i = 0; i < conditions.count; i++) {
    struct ir_expr *c = lift_expand(l, lift_expand(l, conditions.at[i], &child->items), &lets);
    if (!lift_mentions(c, is_reduced_below, &defined)) {
      list_push(l->arena, &r->conditions, c);
      continue;
    }
    // A guard that needs a reduction of the body selects instead.
    struct ir_expr *nothing = step->op == OP_MUL || step->op == OP_AND ? ir_int(l->arena, TYPE_I64, step->op == OP_MUL ? 1 : -1) : ir_int(l->arena, TYPE_I64, 0);
    if (step->op != OP_ADD && step->op != OP_MUL && step->op != OP_AND && step->op != OP_OR && step->op != OP_XOR) {
      lift_refuse(l, range, NULL, "a condition of '%s' needs a reduction of its own", name);
      return NULL;
    }
    operand = ir_select(l->arena, c, operand, type_is_float(type) ? ir_float(l->arena, type, (double)nothing->integer) : type == TYPE_BOOL ? ir_int(l->arena, type, step->op == OP_AND) : ir_int(l->arena, type, nothing->integer));
  }
  struct list needed = {0};
  gather(l, operand, &child->items, &needed);
  for (uint32_t i = 0; i < lets.count; i++) {
    struct lift_item *let = lets.at[i];
    if (let->value) gather(l, let->value, &child->items, &needed);
    for (uint32_t k = 0; k < let->operands.count; k++) gather(l, let->operands.at[k], &child->items, &needed);
  }
  r->lets = needed;
  list_append(l->arena, &r->lets, &lets);
  list_push(l->arena, &r->operands, operand);
  list_push(l->arena, &r->results, lift_var(l, VAR_VALUE, type, name, range));
  return r;
}

// What the value is behind the loop: `before op result`.
static struct ir_expr *finish_value(struct lift *l, const struct lift_step *step, struct ir_expr *before, struct ir_expr *result) {
  struct ir_expr *b = lift_as(l, result->type, before);
  if (is_identity(step->op, b)) return result;
  if (!step->compares) return ir_binary(l->arena, step->op, b, result);
  return ir_select(l->arena, ir_binary(l->arena, step->op == OP_FMAX ? OP_GT : OP_LT, result, b), result, b);
}

static bool is_placeholder(const struct ir_expr *e) { return e->op == OP_VAR && e->var->kind == VAR_MUTABLE; }

static bool any_placeholder(const struct ir_var *var, const void *state) {
  (void)state;
  return var->kind == VAR_MUTABLE;
}

// Puts a reduction of `name` into the open scope; gives the value behind the loop, or NULL after a refusal.
static struct ir_expr *reduce(struct lift *l, struct lift_scope *child, const char *name, struct range range, struct lift_step *step, const struct list *guards, struct ir_expr *before) {
  enum type type = step->operand->type;
  if (!before) {
    lift_refuse(l, range, "give it a value first", "'%s' has no value before the loop", name);
    return NULL;
  }
  before = lift_as(l, type, before);
  struct lift_item *r = make_reduction(l, child, name, range, step, guards);
  if (!r) return NULL;
  if (rounds(step->op, type)) {
    bool goes_on = is_placeholder(before);
    if (!goes_on && !is_identity(step->op, before) && !l->reassociates) {
      refuse_order(l, name, range, "it does not begin with 0 (a product: with 1)");
      return NULL;
    }
    if (goes_on) r->start = before->var;
    note_order(l, name, range);
  }
  list_append(l->arena, &r->conditions, &l->scope->guards);
  list_push(l->arena, &l->scope->items, r);
  return finish_value(l, step, before, ir_ref(l->arena, r->results.at[0]));
}

// ---- Scalars behind a loop

static struct range place_of(const struct lift_carried *c, const struct lift_scope *child) {
  (void)c;
  return child->axis->range;
}

static bool carried_refused(struct lift *l, const char *name, struct range range, const char *advice) {
  lift_refuse(l, range, advice, "'%s' carries a value from one iteration of the loop to the next that is no reduction", name);
  return false;
}

// The type's values when nothing was found yet.
static bool has_constant(const struct ir_expr *e, double number) { return e->op == OP_CONST && type_is_float(e->type) && e->number == number; }

// Two scalars that move together: argmax, argmin. Gives false where they are none; a refusal sets l->is_refused.
static bool finish_place(struct lift *l, struct lift_scope *child, struct lift_carried *best, struct lift_carried *place) {
  struct lift_step step;
  struct ir_expr *p;
  bool is_strict;
  if (!type_is_integer(place->entry->type)) return false;
  if (!lift_match_place(l, best->symbol->value, best->entry, place->symbol->value, place->entry, &step, &p, &is_strict)) return false;
  const char *name = step.op == OP_MAX ? "argmax" : "argmin";
  if (!best->before || !place->before) return false;
  if (lift_mentions(best->before, any_placeholder, NULL) || lift_mentions(place->before, any_placeholder, NULL)) {
    lift_refuse(l, child->axis->range, "write the search over one loop", "'%s' is searched by several loops", place->symbol->host->name);
    return true;
  }
  // The lower index wins a tie: that is the first one where indices grow, the last one where they fall.
  struct facts facts = lift_facts(l, child, NULL);
  struct poly c, rest;
  int64_t factor = 0;
  struct poly index = poly_of(&facts, lift_expand(l, p->op == OP_CAST ? p->args[0] : p, &child->items));
  bool is_linear = poly_linear(&facts, index, child->axis->var, &c, &rest) && poly_is_constant(c, &factor) && factor;
  if (!is_linear || (factor > 0) != is_strict) {
    lift_refuse(l, child->axis->range,
                !is_linear ? "keep the loop's own index, and look others up behind the loop" : is_strict ? "count up, or compare with >= (<= for a minimum)" : "count down, or compare with > (< for a minimum)",
                !is_linear ? "'%s' is not the index of the search" : "of equal values the last one would win in '%s', and the language takes the lower index", place->symbol->host->name);
    return true;
  }
  struct lift_item *r = lift_item(l, ITEM_REDUCE, child->axis->range);
  r->reducer = name;
  r->op = OP_COUNT;
  list_push(l->arena, &r->axes, child->axis);
  struct ir_expr *x = step.operand, *guard = step.guard;
  enum type type = x->type, place_type = place->entry->type;
  if (type_is_float(type)) { // comparisons of C pass over NaN
    struct ir_expr *number = ir_unary(l->arena, OP_NOT, ir_make(l->arena, OP_ISNAN, TYPE_BOOL, &x, 1));
    guard = guard ? ir_binary(l->arena, OP_AND, guard, number) : number;
  }
  struct defined defined = {&child->items};
  if (guard) {
    guard = lift_expand(l, guard, &child->items);
    if (lift_mentions(guard, is_reduced_below, &defined)) {
      lift_refuse(l, child->axis->range, "search in a loop of its own, over values that were stored", "the search in '%s' needs a reduction in every iteration", place->symbol->host->name);
      return true;
    }
    list_push(l->arena, &r->conditions, guard);
  }
  list_append(l->arena, &r->conditions, &l->scope->guards);
  enum type counted = type_is_signed(place_type) ? place_type : TYPE_I64;
  gather(l, x, &child->items, &r->lets);
  gather(l, p, &child->items, &r->lets);
  list_push(l->arena, &r->operands, x);
  list_push(l->arena, &r->operands, lift_as(l, counted, p));
  list_push(l->arena, &r->results, lift_var(l, VAR_VALUE, type, best->symbol->host->name, child->axis->range));
  list_push(l->arena, &r->results, lift_var(l, VAR_VALUE, counted, place->symbol->host->name, child->axis->range));
  list_push(l->arena, &l->scope->items, r);
  // Exactly C's: the first value stays unless a better one was found.
  struct ir_expr *found = ir_ref(l->arena, r->results.at[0]), *at = lift_as(l, place_type, ir_ref(l->arena, r->results.at[1]));
  struct ir_expr *before = lift_as(l, type, best->before);
  struct ir_expr *is_better = ir_binary(l->arena, step.op == OP_MAX ? (is_strict ? OP_GT : OP_GE) : (is_strict ? OP_LT : OP_LE), found, before);
  if (!is_strict) { // an empty search finds the identity, which may equal the first value
    struct ir_expr *none = ir_int(l->arena, counted, -1);
    is_better = ir_binary(l->arena, OP_AND, is_better, ir_binary(l->arena, OP_NE, ir_ref(l->arena, r->results.at[1]), none));
  }
  bool starts_at_end = has_constant(before, step.op == OP_MAX ? -INFINITY : INFINITY);
  best->symbol->value = starts_at_end ? found : ir_select(l->arena, is_better, found, before);
  place->symbol->value = ir_select(l->arena, is_better, at, lift_as(l, place_type, place->before));
  return true;
}

// A scalar behind the loop.
static bool finish_scalar(struct lift *l, struct lift_scope *child, struct lift_carried *c) {
  struct lift_symbol *symbol = c->symbol;
  const char *name = symbol->host->name, *advice;
  struct range range = place_of(c, child);
  struct ir_expr *now = symbol->value;
  if (!now) {
    symbol->no_value = "behind a loop that leaves it without a value";
    return true;
  }
  now = lift_as(l, c->entry->type, now);
  struct lift_step step;
  if (!lift_match(l, now, c->entry, &step, &advice)) return carried_refused(l, name, range, advice);
  if (step.op == OP_COUNT && !step.is_last) {
    symbol->value = c->before;
    return true;
  }
  if ((step.operand && lift_mentions(step.operand, is_carried, child)) || (step.guard && lift_mentions(step.guard, is_carried, child)))
    return carried_refused(l, name, range, "it depends on another value that the loop carries");
  if (step.is_last) {
    // found = constant, under a condition
    struct defined defined = {&child->items};
    struct ir_expr *k = lift_expand(l, step.operand, &child->items);
    bool is_fixed = !ir_mentions(k, child->axis->var) && !lift_mentions(k, is_reduced_below, &defined);
    if (!step.guard || !is_fixed) {
      lift_refuse(l, range, "declare it inside the loop if it is not needed behind it", "behind the loop '%s' holds what its last iteration left there", name);
      symbol->value = NULL;
      return false;
    }
    if (!c->before) return carried_refused(l, name, range, "give it a value before the loop");
    struct lift_step any = {.op = OP_OR, .operand = step.guard};
    struct list none = {0};
    struct ir_expr *found = reduce(l, child, name, range, &any, &none, ir_int(l->arena, TYPE_BOOL, 0));
    if (!found) return false;
    symbol->value = ir_select(l->arena, found, k, lift_as(l, k->type, c->before));
    return true;
  }
  struct list none = {0};
  symbol->value = reduce(l, child, name, range, &step, &none, c->before);
  if (!symbol->value) return false;
  symbol->value = lift_named(l, name, symbol->value, range);
  return true;
}

static bool finish_scalars(struct lift *l, struct lift_scope *child) {
  bool ok = true;
  bool *is_done = arena_array(l->arena, bool, child->carried.count + 1);
  for (uint32_t i = 0; i < child->carried.count; i++)
    for (uint32_t k = 0; k < child->carried.count; k++) {
      struct lift_carried *best = child->carried.at[i], *place = child->carried.at[k];
      if (i == k || is_done[k] || is_done[i] || !best->symbol->value || !place->symbol->value) continue;
      struct ir_expr *value = best->symbol->value;
      if (!finish_place(l, child, best, place)) continue;
      if (l->is_refused) return false;
      is_done[i] = is_done[k] = true;
      (void)value;
    }
  for (uint32_t i = 0; i < child->carried.count; i++)
    if (!is_done[i]) ok &= finish_scalar(l, child, child->carried.at[i]);
  return ok;
}

// ---- Elements behind a loop

static void replace_in_items(struct lift *l, struct list *items, const struct list *vars, const struct list *values) {
  for (uint32_t i = 0; i < items->count; i++) {
    struct lift_item *item = items->at[i];
    if (item->value) item->value = lift_replace(l, item->value, vars, values);
    struct list *lists[] = {&item->guards, &item->conditions, &item->operands, &item->indices};
    for (size_t n = 0; n < sizeof lists / sizeof *lists; n++)
      for (uint32_t k = 0; k < lists[n]->count; k++) lists[n]->at[k] = lift_replace(l, lists[n]->at[k], vars, values);
    replace_in_items(l, &item->lets, vars, values);
    replace_in_items(l, &item->items, vars, values);
  }
}

// The indices mention the loop's axis so that each iteration has elements of its own: one of them is factor * axis plus what no
// inner loop changes.
static bool is_own(struct lift *l, struct lift_scope *child, const struct list *indices, const struct list *inner) {
  struct facts facts = lift_facts(l, child, inner);
  for (uint32_t i = 0; i < indices->count; i++) {
    struct poly c, rest;
    int64_t factor;
    bool has_inner = false;
    for (uint32_t k = 0; inner && k < inner->count; k++) has_inner |= ir_mentions(indices->at[i], list_at(inner, struct lift_axis, k)->var);
    if (!has_inner && poly_linear(&facts, poly_of(&facts, indices->at[i]), child->axis->var, &c, &rest) && poly_is_constant(c, &factor) && factor) return true;
  }
  return false;
}

static bool mentions_axis(const struct list *indices, const struct ir_var *axis) {
  for (uint32_t i = 0; i < indices->count; i++)
    if (ir_mentions(indices->at[i], axis)) return true;
  return false;
}

// Whether an element that the store writes in one iteration can be the one read in another: false where some index differs for certain.
static bool may_meet(struct lift *l, struct lift_scope *child, const struct lift_store *store, const struct lift_entry *entry) {
  struct lift_axis *axis = arena_new(l->arena, struct lift_axis), *other = child->axis;
  *axis = *other;
  axis->var = lift_var(l, VAR_AXIS, TYPE_I64, other->var->label, other->range);
  struct list more = list_copy(l->arena, &entry->more), vars = {0}, values = {0};
  list_push(l->arena, &more, axis);
  list_push(l->arena, &vars, other->var);
  list_push(l->arena, &values, ir_ref(l->arena, axis->var));
  for (uint32_t i = 0; i < store->axes.count; i++) {
    const struct lift_axis *inner = store->axes.at[i];
    struct lift_axis *fresh = arena_new(l->arena, struct lift_axis);
    *fresh = *inner;
    fresh->var = lift_var(l, VAR_AXIS, TYPE_I64, inner->var->label, inner->range);
    fresh->lo = lift_replace(l, inner->lo, &vars, &values);
    fresh->hi = lift_replace(l, inner->hi, &vars, &values);
    list_push(l->arena, &vars, inner->var);
    list_push(l->arena, &values, ir_ref(l->arena, fresh->var));
    list_push(l->arena, &more, fresh);
  }
  struct facts facts = lift_facts(l, child, &more);
  for (uint32_t i = 0; i < store->item->indices.count; i++) {
    struct ir_expr *a = lift_replace(l, store->item->indices.at[i], &vars, &values), *b = entry->indices.at[i];
    if (prove_less(&facts, a, b) || prove_less(&facts, b, a)) return false;
    // factor * axis + rest on both sides: the same element only in the same iteration.
    struct poly c, d, rest, other_rest;
    int64_t factor;
    bool is_linear = poly_linear(&facts, poly_of(&facts, a), axis->var, &c, &rest) && poly_linear(&facts, poly_of(&facts, b), other->var, &d, &other_rest);
    if (is_linear && poly_equal(&facts, c, d) && poly_is_constant(c, &factor) && factor && poly_equal(&facts, rest, other_rest)) return false;
  }
  return true;
}

static struct list *items_of(struct list *items, const struct ir_var *axis) {
  for (uint32_t i = 0; i < items->count; i++) {
    struct lift_item *item = items->at[i];
    if (item->kind != ITEM_FOR) continue;
    if (item->axis->var == axis) return &item->items;
    struct list *below = items_of(&item->items, axis);
    if (below) return below;
  }
  return NULL;
}

// `identity op result` is the result: no sum is -0.
static struct ir_expr *drop_identity(struct arena *arena, struct ir_expr *e, void *state) {
  (void)arena;
  (void)state;
  bool drops = e->count == 2 && is_identity(e->op, e->args[0]) && e->args[1]->op == OP_VAR && e->args[1]->var->kind == VAR_VALUE;
  return drops ? e->args[1] : e;
}

// What reductions go on with is known now: nothing, a placeholder further out, or a value, which changes C's order of additions.
static bool settle_starts(struct lift *l, struct list *items, const struct ir_var *entry, struct ir_expr *value) {
  for (uint32_t i = 0; i < items->count; i++) {
    struct lift_item *item = items->at[i];
    if (item->kind == ITEM_STORE && !item->is_dead) item->value = ir_rewrite_expr(l->arena, item->value, drop_identity, NULL);
    if (!settle_starts(l, &item->items, entry, value)) return false;
    if (item->kind != ITEM_REDUCE || item->start != entry) continue;
    item->start = is_placeholder(value) ? value->var : NULL;
    if (item->start || is_identity(item->op, value) || l->reassociates) continue;
    return refuse_order(l, list_at(&item->results, struct ir_var, 0)->label, item->range, "it does not begin with 0 (a product: with 1)");
  }
  return true;
}

// Decides what an element read in the loop held when the iteration began: what it held before the loop, or (left as it is, for the
// accumulation to find) what the iteration before left there.
static bool finish_entry(struct lift *l, struct lift_scope *child, struct lift_entry *entry) {
  bool is_accumulated = false;
  for (uint32_t i = 0; i < child->items.count; i++) {
    struct list stores = lift_stores(l, child->items.at[i]);
    for (uint32_t k = 0; k < stores.count; k++) {
      struct lift_store *store = stores.at[k];
      if (store->item->array != entry->array) continue;
      struct list all = list_copy(l->arena, &store->axes);
      list_append(l->arena, &all, &entry->more);
      struct facts facts = lift_facts(l, child, &all);
      bool is_same = lift_same_indices(&facts, &store->item->indices, &entry->indices);
      if (is_same && is_own(l, child, &entry->indices, &store->axes)) continue;
      if (is_same && !mentions_axis(&entry->indices, child->axis->var)) {
        is_accumulated = true;
        continue;
      }
      if (!may_meet(l, child, store, entry)) continue;
      lift_refuse(l, entry->range, "write to an array of its own", "it reads an element of '%s' that another iteration of the loop over '%s' writes (carried dependence)", entry->array->host->name, child->axis->var->label);
      diag_note(l->diag, store->item->range, "written here");
      return false;
    }
  }
  if (is_accumulated) return true;
  struct list *into = &child->items;
  if (entry->more.count) {
    struct lift_axis *innermost = entry->more.at[entry->more.count - 1];
    struct list *below = items_of(&child->items, innermost->var);
    if (below) into = below;
  }
  struct ir_expr *value = lift_read_in(l, child->parent, child, &entry->more, entry->array, &entry->indices, entry->range, into);
  if (!value) return false;
  struct list vars = {0}, values = {0};
  list_push(l->arena, &vars, entry->entry);
  list_push(l->arena, &values, value);
  replace_in_items(l, &child->items, &vars, &values);
  for (uint32_t i = 0; i < child->carried.count; i++) {
    struct lift_symbol *symbol = list_at(&child->carried, struct lift_carried, i)->symbol;
    if (symbol->value) symbol->value = lift_replace(l, symbol->value, &vars, &values);
  }
  bool ok = settle_starts(l, &child->items, entry->entry, value);
  entry->entry = NULL;
  return ok;
}

static bool is_entry_of(const struct ir_var *var, const void *state) { return var == state; }

static bool finish_scope(struct lift *l, struct lift_scope *child);

// A store under guards becomes one without, which keeps what the element held where they are false.
static bool keep_elsewhere(struct lift *l, struct lift_item *store) {
  struct list guards = l->scope->guards;
  l->scope->guards = (struct list){0}; // what is read may not rely on them
  struct ir_expr *old = lift_read(l, store->array, &store->indices, store->range);
  l->scope->guards = guards;
  if (!old) return false;
  store->value = lift_select(l, lift_all(l, &store->guards), store->value, lift_as(l, store->value->type, old));
  store->guards = (struct list){0};
  return true;
}

// A store whose element is the same in every iteration: a reduction over the loop, inside the loops that stand around the store.
static bool finish_accumulation(struct lift *l, struct lift_scope *child, struct lift_store *store, uint32_t others) {
  struct lift_item *item = store->item;
  const char *name = item->array->host->name, *advice = NULL;
  struct lift_entry *entry = NULL;
  struct list all = list_copy(l->arena, &store->axes);
  struct facts facts = lift_facts(l, child, &all);
  for (uint32_t i = 0; i < child->entries.count; i++) {
    struct lift_entry *e = child->entries.at[i];
    if (e->entry && e->array == item->array && lift_same_indices(&facts, &e->indices, &item->indices)) entry = e;
  }
  if (!entry || others) {
    lift_refuse(l, item->range, others ? "compute the value in a local variable and store it once behind the loop" : "store it once, behind the loop or before it",
                others ? "the loop over '%s' changes an element of '%s' in several ways" : "every iteration of the loop over '%s' overwrites the same element of '%s'", child->axis->var->label, name);
    return false;
  }
  struct lift_step step;
  struct ir_expr *now = lift_as(l, item->array->mem->type, item->value);
  if (!lift_match(l, now, entry->entry, &step, &advice)) return carried_refused(l, name, item->range, advice);
  if (step.is_last || step.op == OP_COUNT) {
    lift_refuse(l, item->range, "store it once, behind the loop or before it", "every iteration of the loop over '%s' overwrites the same element of '%s'", child->axis->var->label, name);
    return false;
  }
  bool depends = lift_mentions(step.operand, is_carried, child) || (step.guard && lift_mentions(step.guard, is_carried, child));
  for (uint32_t i = 0; i < store->guards.count; i++) depends |= lift_mentions(store->guards.at[i], is_carried, child);
  if (depends) return carried_refused(l, name, item->range, "it depends on another value that the loop carries");
  for (uint32_t i = 0; i < store->axes.count; i++) {
    struct lift_axis *axis = store->axes.at[i];
    if (!ir_mentions(axis->lo, child->axis->var) && !ir_mentions(axis->hi, child->axis->var)) continue;
    lift_refuse(l, axis->range, "run it over the whole range and put the bound into an if", "the loop over '%s' goes around a loop whose range depends on it, and changes '%s'", child->axis->var->label, name);
    return false;
  }
  // The loops around the store, as loops of the parent.
  struct lift_scope *outer = l->scope;
  for (uint32_t i = 0; i < store->axes.count; i++) {
    struct lift_scope *scope = arena_new(l->arena, struct lift_scope);
    scope->parent = l->scope;
    scope->axis = store->axes.at[i];
    list_push(l->arena, &scope->written, item->array);
    l->scope = scope;
  }
  child->parent = l->scope;
  struct ir_expr *before = lift_read(l, item->array, &item->indices, item->range);
  if (before && type_class_of(item->array->host->type) == CLASS_STORAGE) {
    lift_refuse(l, item->range, "accumulate in a float, and store it once", "'%s' is of a storage type, which rounds at every step", name);
    before = NULL;
  }
  struct ir_expr *after = before ? reduce(l, child, name, item->range, &step, &store->guards, before) : NULL;
  bool ok = after != NULL;
  if (ok) {
    struct lift_item *fresh = lift_item(l, ITEM_STORE, item->range);
    fresh->array = item->array;
    fresh->indices = item->indices;
    fresh->value = after;
    if (l->scope == outer) fresh->guards = list_copy(l->arena, &outer->guards);
    if (fresh->guards.count && lift_was_written(l, fresh->array, &fresh->indices)) {
      ok = keep_elsewhere(l, fresh);
    }
    lift_append(l, l->scope, fresh);
    item->is_dead = true;
    while (ok && l->scope != outer) {
      struct lift_scope *done = l->scope;
      l->scope = done->parent;
      ok = finish_scope(l, done);
    }
  }
  l->scope = outer;
  child->parent = outer;
  return ok;
}

static bool finish_arrays(struct lift *l, struct lift_scope *child) {
  for (uint32_t i = 0; i < child->entries.count; i++)
    if (!finish_entry(l, child, child->entries.at[i])) return false;
  struct list accumulations = {0};
  for (uint32_t i = 0; i < child->items.count; i++) {
    struct list stores = lift_stores(l, child->items.at[i]);
    for (uint32_t k = 0; k < stores.count; k++) {
      struct lift_store *store = stores.at[k];
      if (!mentions_axis(&store->item->indices, child->axis->var)) list_push(l->arena, &accumulations, store);
    }
  }
  for (uint32_t i = 0; i < accumulations.count; i++) {
    struct lift_store *store = accumulations.at[i];
    uint32_t others = 0;
    for (uint32_t k = 0; k < accumulations.count; k++) {
      struct lift_store *other = accumulations.at[k];
      if (k == i || other->item->array != store->item->array) continue;
      struct list all = list_copy(l->arena, &store->axes);
      list_append(l->arena, &all, &other->axes);
      struct facts facts = lift_facts(l, child, &all);
      others += lift_same_indices(&facts, &store->item->indices, &other->item->indices);
    }
    if (!finish_accumulation(l, child, store, others)) return false;
  }
  return true;
}

// What is left of the loop: the stores of its own iterations.
static bool finish_parallel(struct lift *l, struct lift_scope *child) {
  struct lift_item *loop = lift_item(l, ITEM_FOR, child->axis->range);
  loop->axis = child->axis;
  loop->items = child->items;
  loop->guards = list_copy(l->arena, &l->scope->guards);
  struct list stores = lift_stores(l, loop);
  if (!stores.count) return true;
  for (uint32_t i = 0; i < stores.count; i++) {
    struct lift_store *store = stores.at[i];
    struct list parts = list_copy(l->arena, &store->item->indices);
    list_append(l->arena, &parts, &store->guards);
    list_push(l->arena, &parts, store->item->value);
    for (uint32_t k = 0; k < parts.count; k++) {
      struct ir_expr *e = parts.at[k]; // no let has a carried value in it
      for (uint32_t c = 0; c < child->carried.count; c++) {
        struct lift_carried *carried = child->carried.at[c];
        if (!lift_mentions(e, is_entry_of, carried->entry)) continue;
        lift_refuse(l, store->item->range, "what depends on earlier iterations (a scan, a running index) has no counterpart; compute an index from the loops' variables",
                    "it uses what '%s' holds in the middle of the loop (carried dependence)", carried->symbol->host->name);
        return false;
      }
      for (uint32_t n = 0; n < child->entries.count; n++) {
        struct lift_entry *entry = child->entries.at[n];
        if (!entry->entry || !lift_mentions(e, is_entry_of, entry->entry)) continue;
        lift_refuse(l, store->item->range, NULL, "it uses an element of '%s' in the middle of the loop that changes it (carried dependence)", entry->array->host->name);
        return false;
      }
    }
  }
  lift_append(l, l->scope, loop);
  return true;
}

// Ends a loop whose parent is open.
static bool finish_scope(struct lift *l, struct lift_scope *child) {
  return finish_arrays(l, child) && finish_scalars(l, child) && finish_parallel(l, child) && !l->is_refused;
}

// ---- Statements

static bool run_loop(struct lift *l, const struct host_stmt *s) {
  struct ir_expr *lo = lift_value(l, s->lo, true), *hi = lo ? lift_value(l, s->hi, true) : NULL;
  if (!hi) return false;
  if (lo->type != TYPE_I64 || hi->type != TYPE_I64 || lift_mentions(lo, any_placeholder, NULL) || lift_mentions(hi, any_placeholder, NULL)) {
    lift_refuse(l, s->range, NULL, "the loop's range changes while loops run");
    return false;
  }
  struct lift_axis *axis = arena_new(l->arena, struct lift_axis);
  axis->var = lift_var(l, VAR_AXIS, TYPE_I64, s->var->name, s->var->range);
  axis->range = s->range;
  axis->lo = lo;
  axis->hi = hi;
  struct ir_expr *value = ir_ref(l->arena, axis->var);
  if (s->step != 1) { // lo + step * axis
    int64_t step = s->step < 0 ? -s->step : s->step;
    struct ir_expr *span = s->step < 0 ? ir_binary(l->arena, OP_SUB, lo, hi) : ir_binary(l->arena, OP_SUB, hi, lo);
    span = ir_binary(l->arena, OP_ADD, span, ir_int(l->arena, TYPE_I64, step - 1));
    axis->lo = ir_int(l->arena, TYPE_I64, 0);
    axis->hi = ir_binary(l->arena, OP_DIV, span, ir_int(l->arena, TYPE_I64, step));
    value = ir_binary(l->arena, OP_ADD, lo, ir_binary(l->arena, OP_MUL, ir_int(l->arena, TYPE_I64, s->step), value));
  }
  struct list scalars = {0}, arrays = {0}, declared = {0};
  find_assigned(l, &s->body, &scalars, &arrays, &declared);
  struct lift_scope *child = arena_new(l->arena, struct lift_scope);
  child->parent = l->scope;
  child->axis = axis;
  child->written = arrays;
  struct lift_symbol *counter = s->var->symbol;
  for (uint32_t i = 0; i < scalars.count; i++) {
    struct lift_symbol *symbol = scalars.at[i];
    if (symbol == counter) {
      lift_refuse(l, s->range, NULL, "the loop's variable '%s' is assigned to in its body", s->var->name);
      return false;
    }
    struct lift_carried *c = arena_new(l->arena, struct lift_carried);
    c->symbol = symbol;
    c->before = symbol->value;
    c->entry = lift_var(l, VAR_MUTABLE, symbol->host->type, symbol->host->name, symbol->host->range);
    symbol->value = ir_ref(l->arena, c->entry);
    list_push(l->arena, &child->carried, c);
  }
  l->scope = child;
  counter->value = value;
  bool ok = lift_run(l, &s->body);
  counter->value = NULL;
  counter->no_value = "behind its loop";
  l->scope = child->parent;
  if (!ok) return false;
  if (!l->finds_shapes) return finish_scope(l, child);
  return true;
}

static bool run_branch(struct lift *l, const struct host_stmt *s) {
  struct ir_expr *asked = lift_value(l, s->value, false), *c = asked;
  if (!c) return false;
  // Guards stand without lets: reductions have them in front of their bodies.
  for (struct lift_scope *scope = l->scope; scope; scope = scope->parent) c = lift_expand(l, c, &scope->items);
  struct list scalars = {0}, arrays = {0}, declared = {0};
  find_assigned(l, &s->body, &scalars, &arrays, &declared);
  find_assigned(l, &s->otherwise, &scalars, &arrays, &declared);
  struct ir_expr **before = arena_array(l->arena, struct ir_expr *, scalars.count + 1), **then = arena_array(l->arena, struct ir_expr *, scalars.count + 1);
  for (uint32_t i = 0; i < scalars.count; i++) before[i] = list_at(&scalars, struct lift_symbol, i)->value;
  struct list *guards = &l->scope->guards;
  list_push(l->arena, guards, c);
  bool ok = lift_run(l, &s->body);
  guards->count--;
  for (uint32_t i = 0; i < scalars.count; i++) {
    struct lift_symbol *symbol = scalars.at[i];
    then[i] = symbol->value;
    symbol->value = before[i];
  }
  if (ok && s->otherwise.count) {
    list_push(l->arena, guards, ir_unary(l->arena, OP_NOT, c));
    ok = lift_run(l, &s->otherwise);
    guards->count--;
  }
  for (uint32_t i = 0; ok && i < scalars.count; i++) {
    struct lift_symbol *symbol = scalars.at[i];
    struct ir_expr *a = then[i], *b = symbol->value;
    if (!a || !b) {
      symbol->value = NULL;
      symbol->no_value = "behind an if that gives it a value in one case only";
      continue;
    }
    if (a->type != b->type) {
      a = lift_as(l, symbol->host->type, a);
      b = lift_as(l, symbol->host->type, b);
    }
    symbol->value = lift_select(l, asked, a, b);
  }
  return ok;
}

static bool run_store(struct lift *l, const struct host_stmt *s) {
  struct lift_symbol *array = s->target->var->symbol;
  struct ir_expr *value = lift_value(l, s->value, false);
  struct list indices = {0};
  if (!value || !lift_access(l, s->target, &indices)) return false;
  value = lift_as(l, array->mem->type, value);
  if (l->finds_shapes) return true;
  struct lift_item *store = lift_item(l, ITEM_STORE, s->range);
  store->array = array;
  store->indices = indices;
  store->value = value;
  store->guards = list_copy(l->arena, &l->scope->guards);
  // Under a condition, what was written before stays where it does not hold.
  if (store->guards.count && lift_was_written(l, array, &indices)) {
    if (!keep_elsewhere(l, store)) return false;
  }
  lift_append(l, l->scope, store);
  return true;
}

static bool run_scalar(struct lift *l, struct lift_symbol *symbol, const struct host_expr *e, struct range range) {
  struct ir_expr *value = lift_value(l, e, false);
  if (!value) return false;
  bool is_wide = value->type == TYPE_I64 && type_is_integer(symbol->host->type) && type_bits(symbol->host->type) >= 32;
  if (!is_wide) value = lift_as(l, symbol->host->type, value);
  symbol->value = lift_named(l, symbol->host->name, value, range);
  symbol->exact_for = NULL;
  if (!is_wide && symbol->host->type == TYPE_U32) {
    symbol->exact = lift_value(l, e, true);
    symbol->exact_for = symbol->value;
  }
  return true;
}

static bool run_one(struct lift *l, const struct host_stmt *s) {
  switch (s->kind) {
  case HOST_BLOCK: return lift_run(l, &s->body);
  case HOST_DECLARE:
    s->var->symbol->value = NULL;
    s->var->symbol->no_value = NULL;
    return !s->value || run_scalar(l, s->var->symbol, s->value, s->range);
  case HOST_ASSIGN: return s->target->kind == HOST_ACCESS ? run_store(l, s) : run_scalar(l, s->target->var->symbol, s->value, s->range);
  case HOST_FOR: return run_loop(l, s);
  case HOST_IF: return run_branch(l, s);
  }
  return false;
}

bool lift_run(struct lift *l, const struct list *statements) {
  for (uint32_t i = 0; i < statements->count; i++)
    if (!run_one(l, statements->at[i])) return false;
  return true;
}

// redc lift: elements of arrays. What is read after it was written is what was written; what is written twice is written once.
#include "grammar/lift_kernel.h"

// What an index must not have in it.
struct index_faults {
  const struct ir_var *carried; // a value of the middle of a loop
  bool has_product;             // of two axes
};

static bool is_axis(const struct ir_var *var, const void *state) {
  (void)state;
  return var->kind == VAR_AXIS;
}

static void visit_index(struct ir_expr *e, void *state) {
  struct index_faults *faults = state;
  if (e->op == OP_VAR && e->var->kind == VAR_MUTABLE) faults->carried = e->var;
  if (e->op == OP_MUL && lift_mentions(e->args[0], is_axis, NULL) && lift_mentions(e->args[1], is_axis, NULL)) faults->has_product = true;
}

static bool check_index(struct lift *l, const struct host_expr *e, struct ir_expr *index) {
  struct index_faults faults = {0};
  ir_visit_expr(index, visit_index, &faults);
  if (l->finds_shapes) return true;
  if (faults.carried)
    lift_refuse(l, e->range, "compute the index from the loops' variables", "an index of '%s' uses what '%s' holds in the middle of a loop (carried dependence)", e->var->name, faults.carried->label);
  else if (faults.has_product)
    lift_refuse(l, e->range, "indices are sums of loop variables times constants or sizes", "an index of '%s' multiplies loop variables (not affine)", e->var->name);
  return !l->is_refused;
}

bool lift_access(struct lift *l, const struct host_expr *e, struct list *indices) {
  struct lift_symbol *array = e->var->symbol;
  array->is_accessed = true;
  for (uint32_t i = 0; i < e->args.count; i++) {
    struct ir_expr *index = lift_value(l, e->args.at[i], true);
    if (!index) return false;
    if (index->type != TYPE_I64) {
      lift_refuse(l, e->range, NULL, "an index of '%s' is no integer", e->var->name);
      return false;
    }
    if (!check_index(l, e, index)) return false;
    list_push(l->arena, indices, index);
  }
  if (!e->var->is_pointer) return true;
  if (e->args.count == 1) {
    struct ir_expr *index = indices->at[0];
    if (l->finds_shapes) {
      lift_note_strides(l, array, index);
      return true;
    }
    *indices = (struct list){0};
    if (!lift_take_apart(l, array, index, indices)) return false;
  }
  return l->finds_shapes || lift_extend(l, array, indices->at[0], e->range);
}

bool lift_same_indices(struct facts *facts, const struct list *a, const struct list *b) {
  for (uint32_t i = 0; i < a->count; i++)
    if (!prove_equal(facts, a->at[i], b->at[i])) return false;
  return a->count == b->count;
}

// ---- Stores below an item

static void find_stores(struct lift *l, struct lift_item *item, struct lift_store *around, struct list *found) {
  if (item->is_dead) return;
  struct lift_store here = *around;
  here.axes = list_copy(l->arena, &around->axes);
  here.loops = list_copy(l->arena, &around->loops);
  here.guards = list_copy(l->arena, &around->guards);
  if (item->kind == ITEM_STORE || item->kind == ITEM_FOR) list_append(l->arena, &here.guards, &item->guards);
  if (item->kind == ITEM_STORE) {
    struct lift_store *store = arena_new(l->arena, struct lift_store);
    *store = here;
    store->item = item;
    list_push(l->arena, found, store);
  } else if (item->kind == ITEM_FOR) {
    list_push(l->arena, &here.axes, item->axis);
    list_push(l->arena, &here.loops, item);
    for (uint32_t i = 0; i < item->items.count; i++) find_stores(l, item->items.at[i], &here, found);
  }
}

struct list lift_stores(struct lift *l, struct lift_item *item) {
  struct list found = {0};
  struct lift_store none = {0};
  find_stores(l, item, &none, &found);
  return found;
}

// ---- Is it the same element?

enum same { SAME_NEVER, SAME_ALWAYS, SAME_PERHAPS };

// Which iteration of the store's own loops writes the element `wanted`: vars and values, where it is one for certain. `facts` are
// those of the reader.
static enum same solve(struct lift *l, struct facts *facts, const struct lift_store *store, const struct list *wanted, struct list *vars, struct list *values) {
  const struct list *indices = &store->item->indices;
  struct list left = list_copy(l->arena, &store->axes);
  for (bool moves = true; moves && left.count;) {
    moves = false;
    for (uint32_t i = 0; i < indices->count && !moves; i++) {
      struct ir_expr *index = lift_replace(l, indices->at[i], vars, values);
      struct poly p = poly_of(facts, index), c, rest, rest_of;
      struct lift_axis *only = NULL;
      uint32_t mentioned = 0, place = 0;
      for (uint32_t k = 0; k < left.count; k++) {
        struct lift_axis *axis = left.at[k];
        if (!ir_mentions(index, axis->var)) continue;
        only = axis;
        place = k;
        mentioned++;
      }
      int64_t factor;
      if (mentioned != 1 || !poly_linear(facts, p, only->var, &c, &rest) || !poly_is_constant(c, &factor) || (factor != 1 && factor != -1)) continue;
      rest_of = poly_sub(facts, poly_of(facts, wanted->at[i]), rest);
      if (factor < 0) rest_of = poly_sub(facts, poly_constant(facts, 0), rest_of);
      struct ir_expr *value = poly_to_expr(facts, rest_of);
      if (!value) continue;
      list_push(l->arena, vars, only->var);
      list_push(l->arena, values, value);
      list_remove(&left, place);
      moves = true;
    }
  }
  enum same same = left.count ? SAME_PERHAPS : SAME_ALWAYS;
  for (uint32_t i = 0; i < indices->count; i++) {
    struct ir_expr *index = lift_replace(l, indices->at[i], vars, values), *other = wanted->at[i];
    bool has_axis = false;
    for (uint32_t k = 0; k < left.count; k++) has_axis |= ir_mentions(index, list_at(&left, struct lift_axis, k)->var);
    if (has_axis || prove_equal(facts, index, other)) continue;
    if (prove_less(facts, index, other) || prove_less(facts, other, index)) return SAME_NEVER;
    same = SAME_PERHAPS;
  }
  for (uint32_t i = 0; i < store->axes.count && !left.count; i++) {
    struct lift_axis *axis = store->axes.at[i];
    struct ir_expr *x = ir_ref(l->arena, axis->var), *lo = lift_replace(l, axis->lo, vars, values), *hi = lift_replace(l, axis->hi, vars, values);
    x = lift_replace(l, x, vars, values);
    if (prove_less(facts, x, lo) || prove_at_most(facts, hi, x)) return SAME_NEVER;
    if (!prove_at_most(facts, lo, x) || !prove_less(facts, x, hi)) same = SAME_PERHAPS;
  }
  return same;
}

static bool is_among(struct ir_expr *e, const struct list *list) {
  for (uint32_t i = 0; i < list->count; i++)
    if (ir_equal(e, list->at[i])) return true;
  return false;
}

// ---- Reading

struct cloning {
  struct lift *l;
  const struct list *vars, *values;
  const struct list *items; // where reductions may be defined
  struct list made;         // struct lift_item
  struct list from, to;     // struct ir_var: results, and those of the clones
};

static struct ir_expr *clone_expr(struct cloning *c, struct ir_expr *e);

static struct lift_item *clone_reduce(struct cloning *c, struct lift_item *item) {
  struct lift *l = c->l;
  struct lift_item *copy = lift_item(l, item->kind, item->range);
  *copy = *item;
  copy->axes = copy->conditions = copy->operands = copy->results = copy->lets = (struct list){0};
  struct list inner_vars = list_copy(l->arena, c->vars), inner_values = list_copy(l->arena, c->values);
  struct cloning inside = {.l = l, .vars = &inner_vars, .values = &inner_values, .items = c->items};
  for (uint32_t i = 0; i < item->axes.count; i++) {
    const struct lift_axis *axis = item->axes.at[i];
    struct lift_axis *fresh = arena_new(l->arena, struct lift_axis);
    *fresh = *axis;
    fresh->var = lift_var(l, VAR_AXIS, TYPE_I64, axis->var->label, axis->range);
    fresh->lo = lift_replace(l, axis->lo, &inner_vars, &inner_values);
    fresh->hi = lift_replace(l, axis->hi, &inner_vars, &inner_values);
    list_push(l->arena, &inner_vars, axis->var);
    list_push(l->arena, &inner_values, ir_ref(l->arena, fresh->var));
    list_push(l->arena, &copy->axes, fresh);
  }
  for (uint32_t i = 0; i < item->lets.count; i++) {
    struct lift_item *let = item->lets.at[i], *fresh;
    if (let->kind == ITEM_REDUCE) {
      struct cloning deeper = inside;
      fresh = clone_reduce(&deeper, let);
      for (uint32_t k = 0; k < let->results.count; k++) {
        list_push(l->arena, &inner_vars, let->results.at[k]);
        list_push(l->arena, &inner_values, ir_ref(l->arena, fresh->results.at[k]));
      }
    } else {
      fresh = lift_item(l, ITEM_LET, let->range);
      fresh->var = lift_var(l, VAR_LET, let->var->type, let->var->label, let->range);
      fresh->value = lift_replace(l, let->value, &inner_vars, &inner_values);
      list_push(l->arena, &inner_vars, let->var);
      list_push(l->arena, &inner_values, ir_ref(l->arena, fresh->var));
    }
    list_push(l->arena, &copy->lets, fresh);
  }
  for (uint32_t i = 0; i < item->conditions.count; i++) list_push(l->arena, &copy->conditions, clone_expr(c, lift_replace(l, item->conditions.at[i], &inner_vars, &inner_values)));
  for (uint32_t i = 0; i < item->operands.count; i++) list_push(l->arena, &copy->operands, clone_expr(c, lift_replace(l, item->operands.at[i], &inner_vars, &inner_values)));
  for (uint32_t i = 0; i < item->results.count; i++) {
    const struct ir_var *result = item->results.at[i];
    list_push(l->arena, &copy->results, lift_var(l, VAR_VALUE, result->type, result->label, item->range));
  }
  return copy;
}

static struct ir_expr *clone_ref(struct arena *arena, struct ir_expr *e, void *state) {
  struct cloning *c = state;
  if (e->op != OP_VAR || e->var->kind != VAR_VALUE) return e;
  for (uint32_t i = 0; i < c->from.count; i++)
    if (c->from.at[i] == e->var) return ir_ref(arena, c->to.at[i]);
  struct lift_item *item = lift_definition(c->items, e->var);
  if (!item) return e;
  struct lift_item *copy = clone_reduce(c, item);
  list_push(arena, &c->made, copy);
  for (uint32_t i = 0; i < item->results.count; i++) {
    list_push(arena, &c->from, item->results.at[i]);
    list_push(arena, &c->to, copy->results.at[i]);
  }
  return clone_ref(arena, e, state);
}

static struct ir_expr *clone_expr(struct cloning *c, struct ir_expr *e) {
  struct ir_expr *expanded = lift_expand(c->l, e, c->items);
  struct ir_expr *renamed = ir_rewrite_expr(c->l->arena, expanded, clone_ref, c);
  return lift_replace(c->l, renamed, c->vars, c->values);
}

static bool is_written_in(const struct lift_scope *scope, const struct lift_symbol *array) {
  for (uint32_t i = 0; i < scope->written.count; i++)
    if (scope->written.at[i] == array) return true;
  return false;
}

// The placeholder for what the element holds when an iteration of the scope's loop begins.
static struct ir_expr *entry_of(struct lift *l, struct lift_scope *scope, struct lift_scope *inner, const struct list *more, struct lift_symbol *array, const struct list *indices, struct range range) {
  struct facts facts = lift_facts(l, inner, more);
  for (uint32_t i = 0; i < scope->entries.count; i++) {
    struct lift_entry *known = scope->entries.at[i];
    if (known->array == array && lift_same_indices(&facts, &known->indices, indices)) return ir_ref(l->arena, known->entry);
  }
  struct lift_entry *entry = arena_new(l->arena, struct lift_entry);
  entry->array = array;
  entry->indices = list_copy(l->arena, indices);
  entry->range = range;
  entry->entry = lift_var(l, VAR_MUTABLE, array->mem->type, array->host->name, range);
  for (struct lift_scope *s = inner; s != scope; s = s->parent) list_insert(l->arena, &entry->more, 0, s->axis);
  if (more) list_append(l->arena, &entry->more, more);
  list_push(l->arena, &scope->entries, entry);
  return ir_ref(l->arena, entry->entry);
}

struct ir_expr *lift_read_in(struct lift *l, struct lift_scope *scope, struct lift_scope *inner, const struct list *more,
                             struct lift_symbol *array, const struct list *indices, struct range range, struct list *into) {
  struct facts facts = lift_facts(l, inner, more);
  struct list conditions = {0}, values_under = {0};
  struct ir_expr *value = NULL;
  for (uint32_t i = scope->items.count; i-- > 0 && !value;) {
    struct lift_item *item = scope->items.at[i];
    struct list stores = lift_stores(l, item);
    for (uint32_t k = stores.count; k-- > 0 && !value;) {
      struct lift_store *store = stores.at[k];
      if (store->item->array != array) continue;
      struct list vars = {0}, values = {0};
      enum same same = solve(l, &facts, store, indices, &vars, &values);
      if (same == SAME_NEVER) continue;
      if (same == SAME_PERHAPS) {
        lift_refuse(l, range, "read only what was written for all of these indices, or nothing of it", "an element of '%s' is read of which it is not clear whether it was written before", array->host->name);
        diag_note(l->diag, store->item->range, "here");
        return NULL;
      }
      struct cloning c = {.l = l, .vars = &vars, .values = &values, .items = store->loops.count ? &list_at(&store->loops, struct lift_item, 0)->items : &(struct list){0}};
      struct ir_expr *written = clone_expr(&c, store->item->value);
      struct ir_expr *guard = NULL;
      for (uint32_t g = 0; g < store->guards.count; g++) {
        struct ir_expr *one = clone_expr(&c, store->guards.at[g]);
        bool holds = false;
        for (struct lift_scope *s = inner; s && !holds; s = s->parent) holds = is_among(one, &s->guards);
        if (!holds) guard = guard ? ir_binary(l->arena, OP_AND, guard, one) : one;
      }
      for (uint32_t m = c.made.count; m-- > 0;) list_insert(l->arena, into, into == &scope->items ? into->count : 0, c.made.at[m]);
      if (into == &scope->items && c.made.count > 1) { // appended the wrong way round
        for (uint32_t a = into->count - c.made.count, b = into->count - 1; a < b; a++, b--) {
          void *swap = into->at[a];
          into->at[a] = into->at[b];
          into->at[b] = swap;
        }
      }
      if (!guard) {
        value = written;
      } else {
        list_push(l->arena, &conditions, guard);
        list_push(l->arena, &values_under, written);
      }
    }
  }
  if (!value && scope->axis && is_written_in(scope, array)) value = entry_of(l, scope, inner, more, array, indices, range);
  if (!value && scope->parent) value = lift_read_in(l, scope->parent, inner, more, array, indices, range, into);
  if (!value && !l->is_refused) value = ir_load(l->arena, array->mem, indices);
  for (uint32_t i = conditions.count; value && i-- > 0;) value = ir_select(l->arena, conditions.at[i], values_under.at[i], value);
  return value;
}

struct ir_expr *lift_read(struct lift *l, struct lift_symbol *array, const struct list *indices, struct range range) {
  if (l->finds_shapes || !array->host->is_written) return ir_load(l->arena, array->mem, indices);
  return lift_read_in(l, l->scope, l->scope, NULL, array, indices, range, &l->scope->items);
}

bool lift_was_written(struct lift *l, struct lift_symbol *array, const struct list *indices) {
  struct facts facts = lift_facts(l, l->scope, NULL);
  for (struct lift_scope *scope = l->scope; scope; scope = scope->parent)
    for (uint32_t i = 0; i < scope->items.count; i++) {
      struct list stores = lift_stores(l, scope->items.at[i]), vars = {0}, values = {0};
      for (uint32_t k = 0; k < stores.count; k++) {
        struct lift_store *store = stores.at[k];
        vars.count = values.count = 0;
        if (store->item->array == array && solve(l, &facts, store, indices, &vars, &values) == SAME_ALWAYS) return true;
      }
    }
  return false;
}

// ---- Writing

// Whether `later` writes every element that `earlier` does.
static bool covers(struct lift *l, struct lift_scope *scope, const struct lift_store *later, const struct lift_store *earlier) {
  if (later->item->array != earlier->item->array) return false;
  struct facts facts = lift_facts(l, scope, &earlier->axes);
  struct list vars = {0}, values = {0};
  if (solve(l, &facts, later, &earlier->item->indices, &vars, &values) != SAME_ALWAYS) return false;
  for (uint32_t i = 0; i < later->guards.count; i++)
    if (!is_among(lift_replace(l, later->guards.at[i], &vars, &values), &earlier->guards)) return false;
  return true;
}

void lift_append(struct lift *l, struct lift_scope *scope, struct lift_item *item) {
  struct list now = lift_stores(l, item);
  for (uint32_t i = 0; i < scope->items.count; i++) {
    struct list before = lift_stores(l, scope->items.at[i]);
    for (uint32_t k = 0; k < before.count; k++)
      for (uint32_t n = 0; n < now.count; n++) {
        struct lift_store *earlier = before.at[k];
        if (covers(l, scope, now.at[n], earlier)) earlier->item->is_dead = true;
      }
  }
  list_push(l->arena, &scope->items, item);
}

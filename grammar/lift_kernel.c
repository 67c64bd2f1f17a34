// redc lift: a function from its tree to the text of a kernel.
#include "grammar/lift_kernel.h"

#include <string.h>

// ---- Symbols

static struct lift_symbol *new_symbol(struct lift *l, struct host_var *host) {
  struct lift_symbol *symbol = arena_new(l->arena, struct lift_symbol);
  symbol->host = host;
  symbol->no_value = NULL;
  host->symbol = symbol;
  list_push(l->arena, &l->symbols, symbol);
  if (host->is_array) {
    symbol->mem = arena_new(l->arena, struct ir_mem);
    symbol->mem->name = symbol->mem->label = host->name;
    symbol->mem->type = type_class_of(host->type) == CLASS_STORAGE ? TYPE_F32 : host->type;
    symbol->mem->is_output = host->is_written;
  } else if (host->is_parameter) {
    symbol->scalar = lift_var(l, VAR_SCALAR, host->type, host->name, host->range);
    symbol->size = lift_var(l, VAR_SIZE, TYPE_I64, host->name, host->range);
  }
  return symbol;
}

static void declare_locals(struct lift *l, const struct list *statements) {
  for (uint32_t i = 0; i < statements->count; i++) {
    const struct host_stmt *s = statements->at[i];
    if (s->var && !s->var->symbol) new_symbol(l, s->var);
    declare_locals(l, &s->body);
    declare_locals(l, &s->otherwise);
  }
}

// The dimensions that declarations give.
static bool declare_dimensions(struct lift *l) {
  for (uint32_t i = 0; i < l->symbols.count; i++) {
    struct lift_symbol *symbol = l->symbols.at[i];
    if (!symbol->mem) continue;
    symbol->mem->dims = (struct list){0};
    for (uint32_t k = 0; k < symbol->host->dims.count; k++) {
      const struct host_expr *bound = symbol->host->dims.at[k];
      struct ir_expr *extent = bound ? lift_value(l, bound, true) : NULL;
      if (bound && !extent) return false;
      if (extent && extent->type != TYPE_I64) {
        lift_refuse(l, bound->range, NULL, "a bound of '%s' is no integer", symbol->host->name);
        return false;
      }
      list_push(l->arena, &symbol->mem->dims, extent);
    }
    list_append(l->arena, &symbol->mem->dims, &symbol->tails);
  }
  return true;
}

// Two pointers of one function may name the same memory, unless restrict says that they do not.
static bool check_aliases(struct lift *l) {
  const struct list *parameters = &l->function->parameters;
  bool ok = true;
  for (uint32_t i = 0; i < parameters->count; i++) {
    const struct host_var *out = parameters->at[i];
    if (!out->is_array || !out->is_written || !out->is_pointer || out->is_restrict || out->dims.count != 1) continue;
    for (uint32_t k = 0; k < parameters->count; k++) {
      const struct host_var *other = parameters->at[k];
      if (other == out || !other->is_array || other->is_restrict) continue;
      bool may = other->type == out->type || type_bits(other->type) == 8 || type_bits(out->type) == 8;
      if (!may) continue;
      lift_refuse(l, out->range, arena_printf(l->arena, "say that it does not: %s *restrict %s (__restrict in C++)", out->type == TYPE_F32 ? "float" : out->type == TYPE_F64 ? "double" : "T", out->name),
                  "pointer '%s' is written to and may name the same memory as '%s' (aliasing)", out->name, other->name);
      ok = false;
      break;
    }
  }
  return ok;
}

// ---- What is needed

struct marking {
  struct lift *l;
  struct list *needed; // struct ir_var
};

static void need_expr(struct marking *m, struct ir_expr *e);

static void need_item(struct marking *m, struct lift_item *item) {
  if (item->value) need_expr(m, item->value);
  struct list *lists[] = {&item->guards, &item->conditions, &item->operands, &item->indices};
  for (size_t n = 0; n < sizeof lists / sizeof *lists; n++)
    for (uint32_t i = 0; i < lists[n]->count; i++) need_expr(m, lists[n]->at[i]);
  for (uint32_t i = 0; i < item->axes.count; i++) {
    const struct lift_axis *axis = item->axes.at[i];
    need_expr(m, axis->lo);
    need_expr(m, axis->hi);
  }
  if (item->axis) {
    need_expr(m, item->axis->lo);
    need_expr(m, item->axis->hi);
  }
  for (uint32_t i = 0; i < item->lets.count; i++) need_item(m, item->lets.at[i]);
}

static void visit_needed(struct ir_expr *e, void *state) {
  struct marking *m = state;
  if (e->op != OP_VAR || (e->var->kind != VAR_LET && e->var->kind != VAR_VALUE)) return;
  for (uint32_t i = 0; i < m->needed->count; i++)
    if (m->needed->at[i] == e->var) return;
  list_push(m->l->arena, m->needed, e->var);
  struct lift_item *item = lift_definition(&m->l->items, e->var);
  if (item) need_item(m, item);
}

static void need_expr(struct marking *m, struct ir_expr *e) { ir_visit_expr(e, visit_needed, m); }

// Whether anything of the list is a live store; marks needs along the way.
static bool need_stores(struct marking *m, struct list *items) {
  bool has_store = false;
  for (uint32_t i = 0; i < items->count; i++) {
    struct lift_item *item = items->at[i];
    if (item->is_dead) continue;
    if (item->kind == ITEM_FOR && !need_stores(m, &item->items)) item->is_dead = true;
    if (item->is_dead || (item->kind != ITEM_STORE && item->kind != ITEM_FOR)) continue;
    has_store = true;
    need_item(m, item);
  }
  return has_store;
}

static bool is_needed(const struct list *needed, const struct lift_item *item) {
  for (uint32_t i = 0; i < needed->count; i++) {
    if (item->kind == ITEM_LET && needed->at[i] == item->var) return true;
    for (uint32_t k = 0; item->kind == ITEM_REDUCE && k < item->results.count; k++)
      if (item->results.at[k] == needed->at[i]) return true;
  }
  return false;
}

static void drop_unneeded(struct list *items, const struct list *needed) {
  for (uint32_t i = 0; i < items->count; i++) {
    struct lift_item *item = items->at[i];
    if (item->kind == ITEM_LET || item->kind == ITEM_REDUCE) item->is_dead |= !is_needed(needed, item);
    drop_unneeded(&item->items, needed);
  }
}

// ---- Reads of outputs

struct reading {
  struct lift *l;
  const struct lift_item *store;
  struct facts facts;
  const struct ir_expr *wrong;
  struct list seen; // struct lift_item: definitions that were looked into
};

static void visit_reading(struct ir_expr *e, void *state);

static void read_item(struct reading *r, struct lift_item *item) {
  for (uint32_t i = 0; i < r->seen.count; i++)
    if (r->seen.at[i] == item) return;
  list_push(r->l->arena, &r->seen, item);
  if (item->value) ir_visit_expr(item->value, visit_reading, r);
  for (uint32_t i = 0; i < item->operands.count; i++) ir_visit_expr(item->operands.at[i], visit_reading, r);
  for (uint32_t i = 0; i < item->conditions.count; i++) ir_visit_expr(item->conditions.at[i], visit_reading, r);
  for (uint32_t i = 0; i < item->lets.count; i++) read_item(r, item->lets.at[i]);
}

static void visit_reading(struct ir_expr *e, void *state) {
  struct reading *r = state;
  if (e->op == OP_VAR && (e->var->kind == VAR_VALUE || e->var->kind == VAR_LET)) {
    struct lift_item *item = lift_definition(&r->l->items, e->var);
    if (item) read_item(r, item);
    return;
  }
  if (e->op != OP_LOAD || !e->mem->is_output) return;
  struct list indices = {.at = (void **)e->args, .count = e->count};
  if (e->mem != r->store->array->mem || !lift_same_indices(&r->facts, &indices, &r->store->indices)) r->wrong = e;
}

// An output is read only where the same statement writes: nothing else knows whether it has been written yet.
static bool check_reads(struct lift *l) {
  for (uint32_t i = 0; i < l->items.count; i++) {
    struct list stores = lift_stores(l, l->items.at[i]);
    for (uint32_t k = 0; k < stores.count; k++) {
      struct lift_store *store = stores.at[k];
      struct reading r = {.l = l, .store = store->item, .facts = lift_facts(l, NULL, &store->axes)};
      ir_visit_expr(store->item->value, visit_reading, &r);
      for (uint32_t g = 0; g < store->guards.count; g++) ir_visit_expr(store->guards.at[g], visit_reading, &r);
      if (!r.wrong) continue;
      lift_refuse(l, store->item->range, "write the result to an array of its own",
                  "it needs an old element of '%s', other than the one that this statement writes; another thread may have written it by then", r.wrong->mem->name);
      return false;
    }
  }
  return true;
}

// ---- Nothing is left of the middle of a loop

static bool is_placeholder(const struct ir_var *var, const void *state) {
  (void)state;
  return var->kind == VAR_MUTABLE;
}

static bool check_placeholders(struct lift *l, const struct list *items) {
  for (uint32_t i = 0; i < items->count; i++) {
    struct lift_item *item = items->at[i];
    if (item->is_dead) continue;
    bool has_one = item->value && lift_mentions(item->value, is_placeholder, NULL);
    struct list *lists[] = {&item->guards, &item->conditions, &item->operands, &item->indices};
    for (size_t n = 0; n < sizeof lists / sizeof *lists; n++)
      for (uint32_t k = 0; k < lists[n]->count; k++) has_one |= lift_mentions(lists[n]->at[k], is_placeholder, NULL);
    if (has_one) {
      lift_refuse(l, item->range, "write to an array of its own, or in a loop of its own", "it uses a value of the middle of the loop that changes it (carried dependence)");
      return false;
    }
    if (!check_placeholders(l, &item->lets) || !check_placeholders(l, &item->items)) return false;
  }
  return true;
}

// ---- Running

static bool run(struct lift *l) {
  struct lift_scope top = {0};
  l->scope = &top;
  bool ok = declare_dimensions(l) && lift_run(l, &l->function->body);
  l->items = top.items;
  return ok;
}

// What the first run learned, for the next one.
static void reset(struct lift *l) {
  for (uint32_t i = 0; i < l->symbols.count; i++) {
    struct lift_symbol *symbol = l->symbols.at[i];
    symbol->value = NULL;
    symbol->no_value = NULL;
    symbol->extent = NULL;
    if (symbol->is_flat) symbol->tails = (struct list){0};
  }
  l->again = l->is_refused = l->keeps_order = false;
}

static bool find_shapes(struct lift *l) {
  struct diag quiet, *diag = l->diag;
  diag_init(&quiet, l->arena);
  quiet.sources = diag->sources;
  l->diag = &quiet;
  l->finds_shapes = true;
  run(l);
  l->diag = diag;
  l->finds_shapes = false;
  for (uint32_t i = 0; i < l->symbols.count; i++) {
    struct lift_symbol *symbol = l->symbols.at[i];
    if (symbol->mem && symbol->host->is_pointer && symbol->host->dims.count == 1) lift_shape(l, symbol);
  }
  reset(l);
  return true;
}

bool lift_function(struct diag *diag, const struct host_function *function, bool reassociates, struct text *out) {
  struct lift lift = {.diag = diag, .arena = diag->arena, .function = function, .reassociates = reassociates || function->reassociates}, *l = &lift;
  for (uint32_t i = 0; i < function->parameters.count; i++) new_symbol(l, function->parameters.at[i]);
  declare_locals(l, &function->body);
  if (!check_aliases(l)) return false;
  find_shapes(l);
  bool ok = run(l);
  for (int round = 0; !ok && l->again && round < 16; round++) { // a pointer became flat: each does once
    reset(l);
    ok = run(l);
  }
  if (!ok) return false;
  struct list needed = {0};
  struct marking m = {l, &needed};
  if (!need_stores(&m, &l->items)) {
    lift_refuse(l, function->range, NULL, "it assigns nothing to an array");
    return false;
  }
  drop_unneeded(&l->items, &needed);
  for (uint32_t i = 0; i < l->symbols.count; i++) {
    struct lift_symbol *symbol = l->symbols.at[i];
    if (symbol->mem && symbol->extent) symbol->mem->dims.at[0] = symbol->extent;
  }
  if (!check_placeholders(l, &l->items) || !check_reads(l)) return false;
  lift_print(l, out);
  if (l->keeps_order && !l->is_refused)
    diag_remark(diag, "lift", l->ordered, "float additions to '%s' keep C's order, so that one thread makes all of them; --reassociate lets threads share them", l->ordered_name);
  return !l->is_refused;
}

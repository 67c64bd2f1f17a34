// An unrolled loop that divides what it moves reads for all of its iterations first.
//
//   for v in 0 .. 8 unroll whole {                         for v in 0 .. 8 unroll whole { let i = b + v;  store ahead[v] = load(X, i) }
//     let i = b + v                                  ->    for v in 0 .. 8 unroll whole {
//     store Y[i] = div(load(X, i), total)                    let i = b + v
//   }                                                        store Y[i] = div(load(ahead, v), total)
//                                                          }
//
// A division has a branch for what is rare, and ptxas takes no load in front of one: a thread would have one load in flight.
#include "passes/edge.h"

enum { MOST_STEPS = 32, MOST_VALUES = 64 };

struct ahead {
  struct arena *arena;
  struct ir_kernel *kernel;
  struct ir_entry *entry;
  struct ir_stmt *loop;
  struct list first; // struct ir_stmt: what the new loop does
  struct list loads; // struct ir_expr: the loads of one element, as the loop has them
  struct list mems;  // struct ir_mem: where they are kept
  struct list bases; // struct ir_stmt: lets that are made of no load
  int64_t steps;
};

struct found {
  bool divides, loads, is_odd; // is_odd: something other than an element of an input
};

static void find(struct ir_expr *e, void *state) {
  struct found *found = state;
  found->divides |= (e->op == OP_DIV || e->op == OP_SQRT) && type_is_float(e->type);
  if (e->op == OP_LOAD) found->loads = true, found->is_odd |= e->mem->space != SPACE_GLOBAL || e->mem->is_output || e->mem->workspace;
  found->is_odd |= e->op == OP_LOAD_FLAT || e->op == OP_AWAIT || (e->op == OP_VAR && e->var->kind == VAR_MUTABLE);
}

static bool is_moving(const struct list *block) {
  struct found found = {0};
  bool stores = false;
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i];
    bool is_access = stmt->kind == IR_STORE || stmt->kind == IR_STORE_WIDE || stmt->kind == IR_LOAD_WIDE;
    if ((!is_access && stmt->kind != IR_LET) || (is_access && (stmt->mem->space != SPACE_GLOBAL || stmt->mem->workspace))) return false;
    if (stmt->kind == IR_LOAD_WIDE) found.loads = true, found.is_odd |= stmt->mem->is_output;
    else stores |= is_access;
    if (stmt->value) ir_visit_expr(stmt->value, find, &found);
    for (uint32_t k = 0; k < stmt->inputs.count; k++) ir_visit_expr(stmt->inputs.at[k], find, &found);
    for (uint32_t k = 0; k < stmt->indices.count; k++) ir_visit_expr(stmt->indices.at[k], find, &found);
  }
  return found.divides && found.loads && stores && !found.is_odd;
}

static struct ir_mem *make_array(struct ahead *a, const struct ir_mem *source) {
  struct ir_mem *mem = arena_new(a->arena, struct ir_mem);
  mem->label = arena_printf(a->arena, "%s_ahead", source->label);
  mem->name = ir_fresh_name(a->kernel, mem->label);
  mem->space = SPACE_LOCAL;
  mem->type = source->type;
  mem->alignment = (uint32_t)type_bytes(source->type);
  mem->range = a->loop->range;
  list_push(a->arena, &mem->dims, ir_int(a->arena, TYPE_I64, a->steps));
  list_push(a->arena, &mem->strides, ir_int(a->arena, TYPE_I64, 1));
  list_push(a->arena, &a->entry->memory, mem);
  return mem;
}

static struct list step_index(struct ahead *a) {
  struct list indices = {0};
  list_push(a->arena, &indices, ir_ref(a->arena, a->loop->var));
  return indices;
}

static void keep(struct ahead *a, struct ir_mem *mem, struct ir_expr *value) {
  struct ir_stmt *store = ir_stmt(a->arena, IR_STORE, a->loop->range);
  store->mem = mem;
  store->indices = step_index(a);
  store->value = value;
  list_push(a->arena, &a->first, store);
}

// Whether all that the place depends on is known where only `bases` are.
static bool is_placed(const struct ahead *a, const struct ir_expr *index) {
  for (uint32_t i = 0; i < a->loop->body.count; i++) {
    const struct ir_stmt *stmt = a->loop->body.at[i];
    bool is_base = false;
    for (uint32_t k = 0; k < a->bases.count; k++) is_base |= a->bases.at[k] == stmt;
    if (is_base) continue;
    if (stmt->kind == IR_LET && ir_mentions(index, stmt->var)) return false;
    for (uint32_t k = 0; k < stmt->results.count; k++)
      if (ir_mentions(index, stmt->results.at[k])) return false;
  }
  return true;
}

static struct ir_expr *take_load(struct arena *arena, struct ir_expr *e, void *state) {
  struct ahead *a = state;
  if (e->op != OP_LOAD || e->mem->space != SPACE_GLOBAL) return e;
  struct found found = {0};
  for (uint32_t i = 0; i < e->count; i++) {
    ir_visit_expr(e->args[i], find, &found);
    if (found.loads || !is_placed(a, e->args[i])) return e;
  }
  struct list index = step_index(a);
  for (uint32_t i = 0; i < a->loads.count; i++)
    if (ir_equal(a->loads.at[i], e)) return ir_load(arena, a->mems.at[i], &index);
  struct ir_mem *mem = make_array(a, e->mem);
  list_push(arena, &a->loads, e);
  list_push(arena, &a->mems, mem);
  keep(a, mem, e);
  return ir_load(arena, mem, &index);
}

// Lets that are made of no load, in their order.
static void find_bases(struct ahead *a) {
  for (uint32_t i = 0; i < a->loop->body.count; i++) {
    struct ir_stmt *stmt = a->loop->body.at[i];
    struct found found = {0};
    if (stmt->kind != IR_LET || stmt->value->type != TYPE_INDEX) continue;
    ir_visit_expr(stmt->value, find, &found);
    if (!found.loads && is_placed(a, stmt->value)) list_push(a->arena, &a->bases, stmt);
  }
}

static void count_load(struct ir_expr *e, void *state) { *(int64_t *)state += e->op == OP_LOAD; }

static int64_t count_loads(const struct list *block) {
  int64_t count = 0;
  ir_visit_block(block, count_load, &count);
  for (uint32_t i = 0; i < block->count; i++) count += list_at(block, struct ir_stmt, i)->kind == IR_LOAD_WIDE ? list_at(block, struct ir_stmt, i)->results.count : 0;
  return count;
}

static struct ir_stmt *load_ahead(struct ahead *a) {
  struct list rest = {0};
  find_bases(a);
  a->first = list_copy(a->arena, &a->bases);
  for (uint32_t i = 0; i < a->loop->body.count; i++) {
    struct ir_stmt *stmt = a->loop->body.at[i];
    bool is_free = stmt->kind == IR_LOAD_WIDE;
    struct list index = step_index(a), one = {0};
    for (uint32_t k = 0; k < stmt->indices.count && is_free; k++) is_free = is_placed(a, stmt->indices.at[k]);
    if (!is_free) {
      list_push(a->arena, &one, stmt);
      ir_rewrite_block(a->arena, &one, take_load, a);
      list_append(a->arena, &rest, &one);
      continue;
    }
    struct ir_stmt *load = arena_new(a->arena, struct ir_stmt);
    *load = *stmt;
    load->results = (struct list){0};
    list_push(a->arena, &a->first, load);
    for (uint32_t k = 0; k < stmt->results.count; k++) {
      struct ir_var *result = stmt->results.at[k], *var = ir_new_var(a->kernel, VAR_LET, result->type, result->label);
      struct ir_mem *mem = make_array(a, stmt->mem);
      list_push(a->arena, &load->results, var);
      list_push(a->arena, &rest, ir_let(a->arena, result, ir_load(a->arena, mem, &index), stmt->range));
      keep(a, mem, ir_ref(a->arena, var));
    }
  }
  a->loop->body = rest;
  struct ir_stmt *loop = ir_stmt(a->arena, IR_FOR, a->loop->range);
  struct ir_var *var = ir_new_var(a->kernel, VAR_AXIS, TYPE_INDEX, a->loop->var->label);
  loop->var = var;
  loop->lo = a->loop->lo;
  loop->hi = a->loop->hi;
  loop->unroll = a->loop->unroll;
  a->loop->var->subst = ir_ref(a->arena, var);
  loop->body = ir_clone_block(a->kernel, &a->first);
  a->loop->var->subst = NULL;
  return loop;
}

static void visit_block(struct arena *arena, struct ir_kernel *kernel, struct ir_entry *entry, struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i];
    bool is_whole = stmt->kind == IR_FOR && stmt->unroll == UINT32_MAX && ir_const_is(stmt->lo, 0) && ir_is_const(stmt->hi) && stmt->hi->integer > 1 && stmt->hi->integer <= MOST_STEPS;
    if (is_whole && is_moving(&stmt->body) && stmt->hi->integer * count_loads(&stmt->body) <= MOST_VALUES) {
      struct ahead a = {.arena = arena, .kernel = kernel, .entry = entry, .loop = stmt, .steps = stmt->hi->integer};
      list_insert(arena, block, i++, load_ahead(&a));
      continue;
    }
    visit_block(arena, kernel, entry, &stmt->body);
    visit_block(arena, kernel, entry, &stmt->otherwise);
  }
}

void edge_ahead(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry) {
  if (!entry->is_general) visit_block(context->arena, kernel, entry, &entry->body);
}

// Blocks whose threads are all inside run without predicates.
//
//   let i = block.x * 64 + thread.x                 if block.x * 64 + 63 < a {
//   if i < a { store S[thread.x] = load(X, i) }       store S[thread.x] = load(X, i)
//   barrier                                           barrier
//   ...                                        ->     ...
//                                                   } else {
//                                                     if i < a { store S[thread.x] = load(X, i) }
//                                                     barrier
//                                                     ...
//                                                   }
//
// For entries that copy to shared memory, or that store tensors under a guard in a loop that is unrolled: there each guard is a branch that ends
// the loads in flight. A guard x < E counts where E is the same in the whole block and so is a bound of x: from the extents of the
// block and of loops. Where those hold, vectors that they make whole stand without the elements beside them. Requires LEVEL_PROGRAM before pass `index`. Doubles the program.
#include "passes/edge.h"

struct blocks {
  struct arena *arena;
  struct ir_kernel *kernel;
  struct ir_entry *entry;
  struct list defs;    // struct ir_stmt, LET and FOR, by var->mark - 1
  uint32_t outside;    // the first so many are in front of the place where the program is doubled
  struct list guards;  // struct ir_stmt, IF: those that the condition makes needless
  struct list shorter; // struct ir_stmt, IF, and struct ir_expr in turn: what is left of its condition
  struct list limits;  // const struct ir_expr, of the guards around: v < number, or e > v where e is the same in all threads of a block
  struct ir_expr *all; // the condition
};

static const struct ir_stmt *definition(const struct blocks *b, const struct ir_var *var) {
  const struct ir_stmt *stmt = var->mark && var->mark <= b->defs.count ? b->defs.at[var->mark - 1] : NULL;
  return stmt && stmt->var == var ? stmt : NULL;
}

// Whether e is the same in all threads of a block and known where the program is doubled.
static bool is_uniform(const struct blocks *b, const struct ir_expr *e) {
  if (e->op == OP_VAR) {
    if (e->var->kind == VAR_SIZE || e->var->kind == VAR_SCALAR) return true;
    const struct ir_stmt *stmt = definition(b, e->var);
    return stmt && stmt->kind == IR_LET && e->var->mark <= b->outside && is_uniform(b, stmt->value);
  }
  if (e->op == OP_THREAD || e->op == OP_LOAD || e->op == OP_LOAD_FLAT || op_table[e->op].rule == RULE_SHUFFLE) return false;
  for (uint32_t i = 0; i < e->count; i++)
    if (!is_uniform(b, e->args[i])) return false;
  return true;
}

// What e is below by a guard around it, by name or by what the name stands for; NULL: nothing.
static struct ir_expr *limit_of(const struct blocks *b, const struct ir_expr *e) {
  for (uint32_t i = b->limits.count; i-- > 0;) {
    const struct ir_expr *limit = b->limits.at[i], *var = limit->args[limit->op == OP_GT];
    const struct ir_stmt *stmt = definition(b, var->var);
    if ((e->op == OP_VAR && e->var == var->var) || (stmt && stmt->kind == IR_LET && ir_equal(stmt->value, e))) return limit->args[limit->op == OP_LT];
  }
  return NULL;
}

// The largest value of e in a block, or a bound of it; NULL: not known.
static struct ir_expr *upper(struct blocks *b, struct ir_expr *e) {
  struct arena *arena = b->arena;
  struct ir_expr *limit = limit_of(b, e);
  if (limit) return ir_binary(arena, OP_SUB, limit, ir_int(arena, e->type, 1));
  if (is_uniform(b, e)) return e;
  struct ir_expr *x = e->count ? upper(b, e->args[0]) : NULL, *y = e->count > 1 ? e->args[1] : NULL;
  switch ((int)e->op) {
  case OP_THREAD: return ir_int(arena, e->type, (int64_t)b->entry->block[e->dimension] - 1);
  case OP_VAR: {
    const struct ir_stmt *stmt = definition(b, e->var);
    if (!stmt) return NULL;
    if (stmt->kind == IR_LET) return upper(b, stmt->value);
    struct ir_expr *end = upper(b, stmt->hi);
    return end ? ir_binary(arena, OP_SUB, end, ir_int(arena, end->type, 1)) : NULL;
  }
  case OP_ADD: case OP_MIN: case OP_MAX: {
    struct ir_expr *z = upper(b, y);
    return x && z ? ir_binary(arena, e->op, x, z) : NULL;
  }
  case OP_MUL: return x && ir_is_const(y) && y->integer >= 0 ? ir_binary(arena, OP_MUL, x, y) : NULL;
  case OP_SUB: return x && ir_is_const(y) ? ir_binary(arena, OP_SUB, x, y) : NULL;
  case OP_DIV: case OP_QUO: return x && ir_is_const(y) && y->integer > 0 ? ir_binary(arena, e->op, x, y) : NULL;
  case OP_MOD: case OP_REM:
    if (!ir_is_const(y) || y->integer <= 0) return NULL;
    if (x && ir_is_const(x) && x->integer >= 0 && x->integer < y->integer) return x;
    return ir_int(arena, e->type, y->integer - 1);
  default: return NULL;
  }
}

static void number_defs(struct blocks *b, const struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i];
    if (stmt->kind == IR_LET || stmt->kind == IR_FOR) {
      list_push(b->arena, &b->defs, stmt);
      stmt->var->mark = b->defs.count;
    } else if (stmt->kind == IR_VAR) {
      stmt->var->mark = 0;
    }
    for (uint32_t k = 0; k < stmt->results.count; k++) list_at(&stmt->results, struct ir_var, k)->mark = 0;
    number_defs(b, &stmt->body);
    number_defs(b, &stmt->otherwise);
  }
}

// The condition under which the guard holds in all threads of a block; NULL: there is none.
static struct ir_expr *block_condition(struct blocks *b, const struct ir_stmt *stmt) {
  const struct ir_expr *c = stmt->value;
  if (stmt->kind != IR_IF || c->op != OP_LT || c->args[0]->type != TYPE_INDEX || !is_uniform(b, c->args[1])) return NULL;
  struct ir_expr *most = upper(b, c->args[0]), *condition = most ? ir_binary(b->arena, OP_LT, most, c->args[1]) : NULL;
  return condition && !ir_const_is(condition, 0) ? condition : NULL;
}

// x + c < E as x and E - c, where c and E are constants.
static bool take_apart(const struct ir_expr *condition, const struct ir_expr **x, int64_t *end) {
  if (condition->op != OP_LT || !ir_is_const(condition->args[1])) return false;
  *x = condition->args[0], *end = condition->args[1]->integer;
  if ((*x)->op != OP_ADD || !ir_is_const((*x)->args[1])) return true;
  bool is_known = !__builtin_sub_overflow(*end, (*x)->args[1]->integer, end);
  *x = (*x)->args[0];
  return is_known;
}

static bool is_implied(const struct ir_expr *by, const struct ir_expr *condition) {
  const struct ir_expr *x, *y;
  int64_t end, least;
  if (ir_equal(by, condition)) return true;
  return take_apart(by, &x, &least) && take_apart(condition, &y, &end) && ir_equal(x, y) && least <= end;
}

static bool is_implied_by_all(const struct blocks *b, const struct ir_expr *condition) {
  for (const struct ir_expr *e = b->all; e; e = e->op == OP_AND ? e->args[0] : NULL)
    if (is_implied(e->op == OP_AND ? e->args[1] : e, condition)) return true;
  return false;
}

// Adds the limits of variables that the condition sets.
static void add_limits(struct blocks *b, struct ir_expr *c) {
  for (; c->op == OP_AND; c = c->args[0]) add_limits(b, c->args[1]);
  bool is_less = c->op == OP_LT && c->args[0]->op == OP_VAR && c->args[0]->type == TYPE_INDEX && ir_is_const(c->args[1]);
  bool is_greater = c->op == OP_GT && c->args[1]->op == OP_VAR && c->args[1]->type == TYPE_INDEX && is_uniform(b, c->args[0]); // of pass nest: what is filled ahead
  if (is_less || is_greater) list_push(b->arena, &b->limits, c);
}

// Looks for guards in what the statement holds: of a variable that it tests there are fewer values there.
static void find_inside(struct blocks *b, const struct ir_stmt *stmt, void (*find)(struct blocks *, const struct list *)) {
  uint32_t count = b->limits.count;
  if (stmt->kind == IR_IF) add_limits(b, stmt->value);
  find(b, &stmt->body);
  b->limits.count = count;
  find(b, &stmt->otherwise);
}

static void find_guards(struct blocks *b, const struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i];
    struct ir_expr *condition = stmt->kind == IR_IF && !stmt->otherwise.count ? block_condition(b, stmt) : NULL;
    if (condition) {
      bool is_new = true;
      for (const struct ir_expr *e = b->all; e && is_new; e = e->op == OP_AND ? e->args[0] : NULL)
        is_new = !ir_equal(e->op == OP_AND ? e->args[1] : e, condition);
      if (is_new) b->all = b->all ? ir_binary(b->arena, OP_AND, b->all, condition) : condition;
      list_push(b->arena, &b->guards, stmt);
    }
    find_inside(b, stmt, find_guards);
  }
}

// The condition without what holds in the whole block, given the rest.
static struct ir_expr *without_needless(struct blocks *b, struct ir_expr *c) {
  if (c->op == OP_AND) {
    struct ir_expr *x = without_needless(b, c->args[0]), *y = without_needless(b, c->args[1]);
    return x == c->args[0] && y == c->args[1] ? c : ir_const_is(x, 1) ? y : ir_const_is(y, 1) ? x : ir_binary(b->arena, OP_AND, x, y);
  }
  if (c->op != OP_LT || c->args[0]->type != TYPE_INDEX || !is_uniform(b, c->args[1])) return c;
  uint32_t place = 0; // what it says itself does not count, and what is left out no longer does
  while (place < b->limits.count && b->limits.at[place] != c) place++;
  bool is_limit = place < b->limits.count;
  if (is_limit) b->limits.at[place] = b->limits.at[--b->limits.count];
  struct ir_expr *most = upper(b, c->args[0]), *condition = most ? ir_binary(b->arena, OP_LT, most, c->args[1]) : NULL;
  if (condition && is_implied_by_all(b, condition)) return ir_int(b->arena, TYPE_BOOL, 1);
  if (is_limit) list_push(b->arena, &b->limits, c);
  return c;
}

// Vectors that are whole where the condition holds: what stands beside them, element by element, is for the others.
static void find_vectors(struct blocks *b, const struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i];
    if (stmt->kind == IR_IF && stmt->value->op == OP_AND) {
      uint32_t count = b->limits.count;
      add_limits(b, stmt->value);
      struct ir_expr *less = without_needless(b, stmt->value);
      b->limits.count = count;
      if (less != stmt->value) list_push(b->arena, &b->shorter, stmt), list_push(b->arena, &b->shorter, less);
    }
    struct ir_expr *condition = stmt->kind == IR_IF && stmt->otherwise.count ? block_condition(b, stmt) : NULL;
    if (condition && is_implied_by_all(b, condition)) list_push(b->arena, &b->guards, stmt);
    find_inside(b, stmt, find_vectors);
  }
}

static void drop_guards(struct blocks *b, struct list *block) {
  struct list out = {0};
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i];
    bool is_dropped = false;
    drop_guards(b, &stmt->body);
    drop_guards(b, &stmt->otherwise);
    for (uint32_t k = 0; k < b->shorter.count && stmt->kind == IR_IF; k += 2)
      if (b->shorter.at[k] == stmt) stmt->value = b->shorter.at[k + 1];
    for (uint32_t k = 0; k < b->guards.count && stmt->kind == IR_IF; k++) is_dropped |= b->guards.at[k] == stmt;
    if (is_dropped) list_append(b->arena, &out, &stmt->body);
    else list_push(b->arena, &out, stmt);
  }
  *block = out;
}

// Whether a tensor is stored to under a guard in a loop that is unrolled whole.
static bool has_guarded_stores(const struct list *block, bool in_loop, bool in_guard) {
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = block->at[i];
    bool is_store = (stmt->kind == IR_STORE || stmt->kind == IR_STORE_WIDE) && stmt->mem->space == SPACE_GLOBAL;
    if (is_store && in_loop && in_guard) return true;
    bool loops = in_loop || (stmt->kind == IR_FOR && stmt->unroll == UINT32_MAX);
    if (has_guarded_stores(&stmt->body, loops, in_guard || stmt->kind == IR_IF)) return true;
  }
  return false;
}

void edge_blocks(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry) {
  struct blocks b = {.arena = context->arena, .kernel = kernel, .entry = entry};
  bool is_wanted = has_guarded_stores(&entry->body, false, false);
  for (uint32_t i = 0; i < entry->memory.count; i++) is_wanted |= list_at(&entry->memory, struct ir_mem, i)->space == SPACE_SHARED;
  for (uint32_t i = 0; i < entry->memory.count; i++) // blocks that combine what they reduced: their loops are split
    if (list_at(&entry->memory, struct ir_mem, i)->workspace) return;
  if (!is_wanted || entry->is_general) return;
  uint32_t first = 0;
  while (first < entry->body.count && list_at(&entry->body, struct ir_stmt, first)->kind == IR_LET) first++;
  b.outside = first;
  number_defs(&b, &entry->body);
  find_guards(&b, &entry->body);
  if (b.all) find_vectors(&b, &entry->body);
  if (!b.all || ir_const_is(b.all, 1)) {
    if (b.all) drop_guards(&b, &entry->body);
    return;
  }
  struct ir_stmt *test = ir_stmt(b.arena, IR_IF, entry->range);
  struct list rest = {0};
  for (uint32_t i = first; i < entry->body.count; i++) list_push(b.arena, &rest, entry->body.at[i]);
  test->value = b.all;
  test->otherwise = ir_clone_block(kernel, &rest);
  drop_guards(&b, &rest);
  test->body = rest;
  entry->body.count = first;
  list_push(b.arena, &entry->body, test);
}

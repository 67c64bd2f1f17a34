// What the launch before left in the workspace, and a loop reads at one place, is read once, in front of the loop.
//
//   for i in 0 .. n { store Y[i, j] = exp(X[i, j] - load(peak_kept, j)) }   ->   let peak = load(peak_kept, j)
//                                                                                for i in 0 .. n { store Y[i, j] = exp(X[i, j] - peak) }
//
// Behind a store the backends would read it again. All of it lies inside the workspace, so that where the loop does not come to it what is read is not used. What stands under a condition
// on something that is not of the loop, or on what its place is made of, stays there: it may have been written under that condition alone.
#include "passes/edge.h"

struct lift {
  struct arena *arena;
  struct ir_kernel *kernel;
  const struct ir_entry *entry;
  const struct ir_stmt *loop; // FOR
  struct list *out;           // struct ir_stmt: what stands in front of it
  struct list conditions;     // struct ir_expr: those of the loop around the statement at hand
};

static bool is_written(const struct list *block, const struct ir_mem *mem) {
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = block->at[i];
    if ((stmt->kind == IR_STORE || stmt->kind == IR_STORE_WIDE || stmt->kind == IR_ATOMIC) && stmt->mem == mem) return true;
    if (is_written(&stmt->body, mem) || is_written(&stmt->otherwise, mem)) return true;
  }
  return false;
}

static bool is_kept(const struct lift *l, const struct ir_mem *mem) { return mem->workspace && !ir_const_is(mem->workspace, 0) && !is_written(&l->entry->body, mem); }

// What values are made of, through the lets in front of them.
struct sources {
  struct arena *arena;
  const struct list *block; // struct ir_stmt: where lets are looked for
  struct list vars;         // struct ir_var
};

static const struct ir_stmt *find_let(const struct list *block, const struct ir_var *var) {
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = block->at[i], *inside;
    if (stmt->kind == IR_LET && stmt->var == var) return stmt;
    if ((inside = find_let(&stmt->body, var)) || (inside = find_let(&stmt->otherwise, var))) return inside;
  }
  return NULL;
}

static void add_source(struct ir_expr *e, void *state) {
  struct sources *sources = state;
  if (e->op != OP_VAR || e->var->kind == VAR_SIZE) return;
  for (uint32_t i = 0; i < sources->vars.count; i++)
    if (sources->vars.at[i] == e->var) return;
  list_push(sources->arena, &sources->vars, e->var);
}

// The variables that stand in e, and those that they are made of.
static struct list sources_of(const struct lift *l, struct ir_expr *const *e, uint32_t count) {
  struct sources sources = {l->arena, &l->entry->body, {0}};
  for (uint32_t i = 0; i < count; i++) ir_visit_expr(e[i], add_source, &sources);
  for (uint32_t i = 0; i < sources.vars.count; i++) {
    const struct ir_var *var = sources.vars.at[i];
    const struct ir_stmt *let = var->kind == VAR_LET ? find_let(sources.block, var) : NULL;
    if (let) ir_visit_expr(let->value, add_source, &sources);
  }
  return sources.vars;
}

// Whether a condition around the statement at hand asks about what the place is made of.
static bool is_asked_about(const struct lift *l, struct ir_expr *const *place, uint32_t count) {
  if (!l->conditions.count) return false;
  struct list asked = sources_of(l, (struct ir_expr *const *)l->conditions.at, l->conditions.count), used = sources_of(l, place, count);
  for (uint32_t i = 0; i < used.count; i++)
    for (uint32_t k = 0; k < asked.count; k++)
      if (used.at[i] == asked.at[k]) return true;
  return false;
}

static struct ir_expr *lift_load(struct arena *arena, struct ir_expr *e, void *state) {
  struct lift *l = state;
  if (e->op != OP_LOAD || !is_kept(l, e->mem)) return e;
  for (uint32_t i = 0; i < e->count; i++)
    if (!edge_is_fixed(l->loop, e->args[i])) return e;
  if (is_asked_about(l, e->args, e->count)) return e;
  for (uint32_t i = 0; i < l->out->count; i++) {
    const struct ir_stmt *let = l->out->at[i];
    if (let->kind == IR_LET && ir_equal(let->value, e)) return ir_ref(arena, let->var);
  }
  struct ir_var *var = ir_new_var(l->kernel, VAR_LET, e->type, e->mem->label);
  list_push(arena, l->out, ir_let(arena, var, e, l->loop->range));
  return ir_ref(arena, var);
}

static void lift_block(struct lift *l, struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i];
    bool is_fixed_place = stmt->kind == IR_LOAD_WIDE && is_kept(l, stmt->mem);
    for (uint32_t d = 0; d < stmt->indices.count && is_fixed_place; d++) is_fixed_place = edge_is_fixed(l->loop, stmt->indices.at[d]);
    if (is_fixed_place && !is_asked_about(l, (struct ir_expr *const *)stmt->indices.at, stmt->indices.count)) {
      list_push(l->arena, l->out, stmt);
      list_remove(block, i--);
      continue;
    }
    if (stmt->kind == IR_IF && !edge_moves_in(l->loop, stmt->value)) continue;
    if (stmt->kind != IR_FOR && stmt->kind != IR_IF) {
      struct list one = {0};
      list_push(l->arena, &one, stmt);
      ir_rewrite_block(l->arena, &one, lift_load, l);
      block->at[i] = one.at[0];
    }
    if (stmt->kind == IR_IF) list_push(l->arena, &l->conditions, stmt->value);
    lift_block(l, &stmt->body);
    lift_block(l, &stmt->otherwise);
    if (stmt->kind == IR_IF) l->conditions.count--;
  }
}

static void lift_loops(struct arena *arena, struct ir_kernel *kernel, const struct ir_entry *entry, struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i];
    if (stmt->kind == IR_FOR) {
      struct list out = {0};
      struct lift l = {arena, kernel, entry, stmt, &out, {0}};
      lift_block(&l, &stmt->body);
      for (uint32_t k = 0; k < out.count; k++) list_insert(arena, block, i++, out.at[k]);
    }
    lift_loops(arena, kernel, entry, &stmt->body);
    lift_loops(arena, kernel, entry, &stmt->otherwise);
  }
}

void edge_kept(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry) {
  if (entry->launch) lift_loops(context->arena, kernel, entry, &entry->body);
}

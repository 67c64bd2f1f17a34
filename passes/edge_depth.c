// A loop of which the first steps read one array and the others another one is two loops.
//
//   for j in 0 .. 8 unroll whole {                            for j in 0 .. 2 unroll whole { set acc = acc + load(X_kept, min(j, 1)) }
//     set acc = acc + select(j < 2,                    ->     for j in 2 .. 8 unroll whole { set acc = acc + load(X_rest, max(j - 2, 0)) }
//                 load(X_kept, min(j, 1)), load(X_rest, max(j - 2, 0)))
//   }
//
// Both arms of a select are evaluated, and where guards leave steps out the array that is not chosen need not hold what it is asked for.
#include "passes/edge.h"

struct split {
  const struct ir_var *var;
  int64_t at;     // 0: none found
  int64_t extent; // of the loop
  bool is_behind; // the part that is rewritten is that behind `at`
};

static void find_array(struct ir_expr *e, void *state) {
  *(bool *)state |= (e->op == OP_LOAD || e->op == OP_LOAD_FLAT) && e->mem->space != SPACE_GLOBAL;
}

// Whether e chooses between arrays by whether the loop's variable is below a constant.
static bool is_choice(const struct split *s, struct ir_expr *e) {
  if (e->op != OP_SELECT) return false;
  const struct ir_expr *c = e->args[0];
  bool reads = false;
  if (c->op != OP_LT || c->args[0]->op != OP_VAR || c->args[0]->var != s->var || !ir_is_const(c->args[1])) return false;
  if (c->args[1]->integer < 1 || c->args[1]->integer >= s->extent || (s->at && s->at != c->args[1]->integer)) return false;
  ir_visit_expr(e->args[1], find_array, &reads);
  ir_visit_expr(e->args[2], find_array, &reads);
  return reads;
}

static void find_choice(struct ir_expr *e, void *state) {
  struct split *s = state;
  if (is_choice(s, e)) s->at = e->args[0]->args[1]->integer;
}

static struct ir_expr *choose(struct arena *arena, struct ir_expr *e, void *state) {
  const struct split *s = state;
  (void)arena;
  return is_choice(s, e) ? e->args[s->is_behind ? 2 : 1] : e;
}

static void split_block(struct arena *arena, struct ir_kernel *kernel, struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i];
    split_block(arena, kernel, &stmt->body);
    split_block(arena, kernel, &stmt->otherwise);
    if (stmt->kind != IR_FOR || !ir_const_is(stmt->lo, 0) || !ir_is_const(stmt->hi)) continue;
    struct split s = {.var = stmt->var, .extent = stmt->hi->integer};
    ir_visit_block(&stmt->body, find_choice, &s);
    if (!s.at) continue;
    struct ir_stmt *behind = ir_stmt(arena, IR_FOR, stmt->range);
    behind->var = ir_new_var(kernel, VAR_AXIS, TYPE_INDEX, stmt->var->label);
    behind->var->range = stmt->var->range;
    behind->lo = ir_int(arena, TYPE_INDEX, s.at);
    behind->hi = stmt->hi;
    behind->unroll = stmt->unroll;
    stmt->var->subst = ir_ref(arena, behind->var);
    behind->body = ir_clone_block(kernel, &stmt->body);
    stmt->var->subst = NULL;
    stmt->hi = ir_int(arena, TYPE_INDEX, s.at);
    ir_rewrite_block(arena, &stmt->body, choose, &s);
    s.var = behind->var, s.is_behind = true;
    ir_rewrite_block(arena, &behind->body, choose, &s);
    list_insert(arena, block, ++i, behind);
  }
}

void edge_depths(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry) { split_block(context->arena, kernel, &entry->body); }

// The initial value of a reduction, `init = x`: combined with what was reduced, behind the loops.
//
//   stage sum: init load(A, p), guards (ge(p, 0), lt(p, n), lt(i, n))      var init = 0
//   ->                                                                     if i < n { if p >= 0 { if p < n { set init = load(A, p) } } }
//                                                                          let sum = init + sum_acc
//
// What it reads is inside its tensor only where the conditions around the reduction hold. Those that mention an axis reduced over are the
// reduction's own and say which elements count, not whether the initial value does.
#include "passes/nest.h"
#include "passes/stage.h"

static void find_let(struct ir_expr *e, void *state) {
  const struct list *lets = state;
  if (e->op != OP_VAR || e->var->kind != VAR_LET || e->var->subst) return;
  for (uint32_t i = lets->count; i-- > 0;)
    if (list_at(lets, struct ir_stmt, i)->var == e->var) e->var->subst = e;
}

// The lets that the initial value needs, as new variables behind the loops; the others may mention the loops' axes. Until end_lets.
static void begin_lets_of_init(struct nest *n, struct work *w, struct list *out) {
  struct list *lets = &w->stage->lets;
  for (uint32_t k = 0; k < w->stage->init.count; k++) ir_visit_expr(w->stage->init.at[k], find_let, lets);
  for (uint32_t i = lets->count; i-- > 0;) {
    struct ir_stmt *let = lets->at[i];
    if (let->var->subst) ir_visit_expr(let->value, find_let, lets);
  }
  for (uint32_t i = 0; i < lets->count; i++) {
    struct ir_stmt *let = lets->at[i];
    if (!let->var->subst) continue;
    struct ir_var *copy = ir_new_var(n->kernel, VAR_LET, let->var->type, let->var->label);
    copy->range = let->var->range;
    list_push(n->arena, out, ir_let(n->arena, copy, ir_substitute(n->arena, let->value), let->range));
    let->var->subst = ir_ref(n->arena, copy);
  }
}

static void end_lets(struct work *w) {
  for (uint32_t i = 0; i < w->stage->lets.count; i++) list_at(&w->stage->lets, struct ir_stmt, i)->var->subst = NULL;
}

void nest_find_outer_guards(struct nest *n, struct work *w) {
  struct ir_stage *stage = w->stage;
  if (stage->kind != STAGE_REDUCE || !stage->init.count) return;
  for (uint32_t g = 0; g < stage->guards.count; g++) {
    bool is_outer = !stage_mentions_reduction(n->arena, stage, stage->guards.at[g]);
    if (is_outer) list_push(n->arena, &w->outer_guards, stage->guards.at[g]);
  }
}

// A value that is kept in an array is read there.
static void find_read(struct ir_expr *e, void *state) {
  *(bool *)state |= e->op == OP_LOAD || e->op == OP_LOAD_FLAT || (e->op == OP_VAR && e->var->kind == VAR_VALUE && e->var->subst && e->var->subst->op == OP_LOAD);
}

// Whether the initial value reads memory: only then it matters where it is computed.
static bool reads_memory(const struct work *w) {
  bool reads = false;
  for (uint32_t k = 0; k < w->stage->init.count; k++) ir_visit_expr(w->stage->init.at[k], find_read, &reads);
  for (uint32_t i = 0; i < w->stage->lets.count && !reads; i++) ir_visit_expr(list_at(&w->stage->lets, struct ir_stmt, i)->value, find_read, &reads);
  return reads;
}

void nest_emit_initial_values(struct nest *n, struct work *w, struct list *out, struct ir_expr **arguments) {
  struct ir_stage *stage = w->stage;
  uint32_t components = stage->reducer->identity.count;
  struct list self = {0};
  list_push(n->arena, &self, w);
  struct list derived = nest_emit_derived(n, &self, out);
  nest_refresh_values(n);
  struct list *body = out;
  struct ir_var **vars = NULL;
  struct ir_expr *active = w->is_active ? ir_int(n->arena, TYPE_BOOL, 1) : ir_substitute(n->arena, nest_active_around(n, stage));
  if (reads_memory(w) && (w->outer_guards.count || !ir_const_is(active, 1))) {
    vars = arena_array(n->arena, struct ir_var *, components);
    for (uint32_t k = 0; k < components; k++) {
      struct ir_stmt *var = ir_stmt(n->arena, IR_VAR, stage->range);
      vars[k] = var->var = ir_new_var(n->kernel, VAR_MUTABLE, ((struct ir_expr *)stage->init.at[k])->type, "init");
      var->value = stage->reducer->identity.at[k];
      list_push(n->arena, out, var);
    }
    for (uint32_t g = 0; g <= w->outer_guards.count; g++) { // each is asked only where those before it hold
      struct ir_stmt *test = ir_stmt(n->arena, IR_IF, stage->range);
      test->value = g ? ir_substitute(n->arena, w->outer_guards.at[g - 1]) : active;
      if (ir_const_is(test->value, 1)) continue;
      list_push(n->arena, body, test);
      body = &test->body;
    }
  }
  begin_lets_of_init(n, w, body);
  for (uint32_t k = 0; k < components; k++) {
    struct ir_expr *value = ir_substitute(n->arena, stage->init.at[k]);
    if (!vars && (value->op == OP_CONST || value->op == OP_VAR)) {
      arguments[k] = value;
      continue;
    }
    struct ir_stmt *stmt = ir_stmt(n->arena, vars ? IR_SET : IR_LET, stage->range);
    stmt->var = vars ? vars[k] : ir_new_var(n->kernel, VAR_LET, value->type, "init");
    stmt->value = value;
    list_push(n->arena, body, stmt);
    arguments[k] = ir_ref(n->arena, stmt->var);
  }
  end_lets(w);
  nest_forget(&derived);
}

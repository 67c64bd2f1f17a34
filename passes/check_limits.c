// How large a kernel and its schedules may be. What the passes and LLVM take grows faster than these, and all that a kernel of this kind is for ends far below.
#include <string.h>

#include "passes/check.h"

enum {
  MOST_STAGES = 512,       // reductions and stores of a kernel
  MOST_OPERATIONS = 32000, // of a kernel; a call of a function counts as many
  MANY_STAGES = 64,        // above these the compiler's own schedule is the plain one, which copies no body
  MANY_OPERATIONS = 2000,
  CALL_OPERATIONS = 40,
  MOST_PARAMETERS = 256,
  MOST_SCHEDULES = 256,
  MOST_DIRECTIVES = 512,
};

struct count {
  const struct ast_file *ast;
  uint64_t stages, operations, most; // `most`: counting ends above
  uint64_t around;                   // operations of the conditions around a statement: each of its stages asks them
};

static void count_expr(struct count *n, const struct ast_expr *e);

static void count_exprs(struct count *n, const struct list *list) {
  for (uint32_t i = 0; i < list->count; i++) count_expr(n, list->at[i]);
}

static void count_lets(struct count *n, const struct list *lets) {
  for (uint32_t i = 0; i < lets->count; i++) count_expr(n, list_at(lets, struct ast_let, i)->value);
}

// A reducer of the user's stands in the code wherever pieces are combined.
static void count_reducer(struct count *n, const struct ast_expr *e) {
  for (uint32_t i = 0; i < n->ast->reducers.count; i++) {
    const struct ast_reducer *reducer = n->ast->reducers.at[i];
    if (strcmp(reducer->name.text, e->name.text) != 0) continue;
    struct count body = {.ast = n->ast, .most = n->most};
    count_expr(&body, reducer->combine);
    if (reducer->update) count_expr(&body, reducer->update);
    n->operations += 2 * body.operations;
    return;
  }
}

// The parser limits how deeply expressions nest.
static void count_expr(struct count *n, const struct ast_expr *e) {
  if (!e || n->operations > n->most) return;
  n->operations += e->kind == AST_CALL ? CALL_OPERATIONS : 1;
  if (e->kind == AST_REDUCE) {
    n->stages++;
    count_reducer(n, e);
    count_expr(n, e->guard);
    count_expr(n, e->init);
    for (uint32_t i = 0; i < e->axes.count; i++) n->operations++;
  }
  count_lets(n, &e->lets);
  count_exprs(n, &e->args);
}

static void count_statements(struct count *n, const struct list *body) {
  for (uint32_t i = 0; i < body->count && n->operations <= n->most; i++) {
    const struct ast_stmt *stmt = body->at[i];
    uint64_t before = n->operations, around = n->around, stages = n->stages;
    n->operations += 1 + stmt->axes.count;
    count_expr(n, stmt->condition);
    n->around += stmt->condition ? n->operations - before : 0;
    count_statements(n, &stmt->body);
    count_statements(n, &stmt->otherwise);
    n->around = around;
    if (stmt->let) count_expr(n, stmt->let->value);
    n->stages += stmt->targets.count;
    count_exprs(n, &stmt->targets);
    count_expr(n, stmt->value);
    if (!stmt->condition && !stmt->body.count) n->operations += (n->stages - stages) * around;
  }
}

static bool refuse(struct checker *c, struct range range, const char *kernel, const char *what, uint64_t most) {
  diag_error(c->diag, ERROR_TOO_LARGE, range, "kernel '%s' has too many %s: at most %llu are legal", kernel, what, (unsigned long long)most);
  diag_note(c->diag, (struct range){0}, "several kernels, each with a part of them, are compiled much faster");
  return false;
}

bool check_limits(struct checker *c, const struct ast_kernel *source, const struct list *schedules) {
  const char *name = source->name.text;
  if ((uint64_t)source->inputs.count + source->outputs.count > MOST_PARAMETERS) return refuse(c, source->name.range, name, "parameters", MOST_PARAMETERS);
  struct count n = {.ast = c->ast, .most = MOST_OPERATIONS};
  count_statements(&n, &source->body);
  if (n.operations > n.most) return refuse(c, source->name.range, name, "operations", MOST_OPERATIONS);
  if (n.stages > MOST_STAGES) return refuse(c, source->name.range, name, "reductions and assignments", MOST_STAGES);
  c->is_large = n.operations > MANY_OPERATIONS || n.stages > MANY_STAGES;
  if (schedules->count > MOST_SCHEDULES) return refuse(c, source->name.range, name, "schedules", MOST_SCHEDULES);
  for (uint32_t i = 0; i < schedules->count; i++) {
    const struct ast_schedule *schedule = schedules->at[i];
    if (schedule->directives.count <= MOST_DIRECTIVES) continue;
    diag_error(c->diag, ERROR_TOO_LARGE, schedule->range, "the schedule has %u directives; at most %d are legal", schedule->directives.count, MOST_DIRECTIVES);
    return false;
  }
  return true;
}

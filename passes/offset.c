#include "passes/offset.h"

void lets_collect(struct lets *lets, struct arena *arena, const struct list *block) {
  lets->arena = arena;
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i];
    if (stmt->kind == IR_LET) list_push(arena, &lets->stmts, stmt);
    if (stmt->var && stmt->kind != IR_SET) stmt->var->mark = stmt->kind == IR_LET ? lets->stmts.count : 0;
    for (uint32_t k = 0; k < stmt->results.count; k++) list_at(&stmt->results, struct ir_var, k)->mark = 0;
    lets_collect(lets, arena, &stmt->body);
    lets_collect(lets, arena, &stmt->otherwise);
  }
}

static struct ir_expr *value_of(const struct lets *lets, struct ir_expr *e) {
  if (e->op != OP_VAR || !e->var->mark || e->var->mark > lets->stmts.count) return e;
  const struct ir_stmt *let = lets->stmts.at[e->var->mark - 1];
  return let->var == e->var ? let->value : e;
}

// Whether a, perhaps behind a summand *rest_of_a, and b are quotient and remainder of one expression, and a step of the quotient moves as far as that
// many of the remainder.
static bool is_one_axis(const struct lets *lets, const struct offset_term *a, const struct offset_term *b, struct ir_expr **whole, struct ir_expr **rest_of_a) {
  struct ir_expr *sum = value_of(lets, a->index), *rest = value_of(lets, b->index);
  if (rest->op != OP_MOD && rest->op != OP_REM) return false;
  uint32_t parts = sum->op == OP_ADD ? 2 : 1;
  for (uint32_t i = 0; i < parts; i++) {
    struct ir_expr *quotient = parts == 2 ? value_of(lets, sum->args[i]) : sum;
    if ((quotient->op != OP_DIV && quotient->op != OP_QUO) || !ir_equal(quotient->args[0], rest->args[0]) || !ir_equal(quotient->args[1], rest->args[1])) continue;
    struct facts facts;
    facts_init(&facts, lets->arena);
    struct poly step = poly_mul(&facts, poly_of(&facts, rest->args[1]), poly_of(&facts, b->stride)), outer = poly_of(&facts, a->stride);
    *whole = quotient->args[0];
    *rest_of_a = parts == 2 ? sum->args[1 - i] : NULL;
    return step.is_valid && outer.is_valid && poly_equal(&facts, step, outer);
  }
  return false;
}

uint32_t offset_terms(const struct lets *lets, const struct ir_mem *mem, struct ir_expr *const *indices, uint32_t count, struct offset_term *terms) {
  for (uint32_t d = 0; d < count; d++) terms[d] = (struct offset_term){indices[d], mem->strides.at[d]};
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t a = 0; a < count && !changed; a++)
      for (uint32_t b = 0; b < count && !changed; b++) {
        struct ir_expr *whole, *rest_of_a;
        if (a == b || !is_one_axis(lets, &terms[a], &terms[b], &whole, &rest_of_a)) continue;
        terms[b].index = whole;
        if (rest_of_a) terms[a].index = rest_of_a;
        for (uint32_t d = a; !rest_of_a && d + 1 < count; d++) terms[d] = terms[d + 1];
        count -= !rest_of_a;
        changed = true;
      }
  }
  return count;
}

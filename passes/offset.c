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

// Whether `e` is numerator / denominator or a sum that has it; *others are the other summands, NULL where there are none.
static bool has_quotient(const struct lets *lets, struct ir_expr *e, struct ir_expr *numerator, struct ir_expr *denominator, int depth, struct ir_expr **others) {
  e = value_of(lets, e);
  if (e->op == OP_DIV || e->op == OP_QUO) {
    *others = NULL;
    return ir_equal(e->args[0], numerator) && ir_equal(e->args[1], denominator);
  }
  if (e->op != OP_ADD || depth == 0) return false;
  for (uint32_t i = 0; i < 2; i++) {
    if (!has_quotient(lets, e->args[i], numerator, denominator, depth - 1, others)) continue;
    *others = *others ? ir_binary(lets->arena, OP_ADD, *others, e->args[1 - i]) : e->args[1 - i];
    return true;
  }
  return false;
}

// Whether a, perhaps beside other summands, and b are quotient and remainder of one expression, and a step of the quotient moves as far as that many of
// the remainder.
static bool is_one_axis(const struct lets *lets, const struct offset_term *a, const struct offset_term *b, struct ir_expr **whole, struct ir_expr **others) {
  enum { MOST_SUMS = 8 };
  struct ir_expr *rest = value_of(lets, b->index);
  if (rest->op != OP_MOD && rest->op != OP_REM) return false;
  if (!has_quotient(lets, a->index, rest->args[0], rest->args[1], MOST_SUMS, others)) return false;
  struct facts facts;
  facts_init(&facts, lets->arena);
  struct poly step = poly_mul(&facts, poly_of(&facts, rest->args[1]), poly_of(&facts, b->stride)), outer = poly_of(&facts, a->stride);
  *whole = rest->args[0];
  return step.is_valid && outer.is_valid && poly_equal(&facts, step, outer);
}

// e + less, where e is a sum that has -less: without both. NULL where it is none.
static struct ir_expr *without(const struct lets *lets, struct ir_expr *e, const struct ir_expr *less, int depth) {
  for (struct ir_expr *value; (value = value_of(lets, e)) != e;) e = value;
  if (depth == 0 || (e->op != OP_ADD && e->op != OP_SUB)) return NULL;
  if (e->op == OP_SUB && ir_equal(e->args[1], less)) return e->args[0];
  struct ir_expr *first = without(lets, e->args[0], less, depth - 1);
  if (first) return ir_binary(lets->arena, e->op, first, e->args[1]);
  struct ir_expr *second = e->op == OP_ADD ? without(lets, e->args[1], less, depth - 1) : NULL;
  return second ? ir_binary(lets->arena, OP_ADD, e->args[0], second) : NULL;
}

// Whether b is what is taken away in a: the phase of a copy, and of the pieces that fill it.
static bool is_taken_away(const struct lets *lets, struct offset_term *a, const struct offset_term *b) {
  enum { MOST_SUMS = 4 };
  if (b->index->op != OP_AND || !ir_equal(a->stride, b->stride)) return false;
  struct ir_expr *left = without(lets, a->index, b->index, MOST_SUMS);
  if (left) a->index = left;
  return left != NULL;
}

uint32_t offset_terms(const struct lets *lets, const struct ir_mem *mem, struct ir_expr *const *indices, uint32_t count, struct offset_term *terms) {
  for (uint32_t d = 0; d < count; d++) terms[d] = (struct offset_term){indices[d], mem->strides.at[d]};
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t a = 0; a < count && !changed; a++)
      for (uint32_t b = 0; b < count && !changed; b++) {
        struct ir_expr *whole, *others;
        if (a != b && is_taken_away(lets, &terms[a], &terms[b])) {
          for (uint32_t d = b; d + 1 < count; d++) terms[d] = terms[d + 1];
          count--;
          changed = true;
          break;
        }
        if (a == b || !is_one_axis(lets, &terms[a], &terms[b], &whole, &others)) continue;
        terms[b].index = whole;
        if (others) terms[a].index = others;
        for (uint32_t d = a; !others && d + 1 < count; d++) terms[d] = terms[d + 1];
        count -= !others;
        changed = true;
      }
  }
  return count;
}

// The prover: what it must be able to prove, and that whatever it proves is true for every value of the axes and sizes.
#include <criterion/criterion.h>
#include <string.h>

#include "compiler/poly_model.h"

// A scope: sizes n and m, axes i in n and j in m, a 64-bit value w and a 32-bit value v that are read.
struct scope {
  struct arena arena;
  struct ir_kernel kernel;
  struct ir_var *n, *m, *i, *j, *w, *v;
  struct facts facts;
};

static struct ir_expr *number(struct scope *s, int64_t value) { return ir_int(&s->arena, TYPE_I64, value); }
static struct ir_expr *ref(struct scope *s, struct ir_var *var) { return ir_cast(&s->arena, TYPE_I64, ir_ref(&s->arena, var)); }
static struct ir_expr *op(struct scope *s, enum op op, struct ir_expr *a, struct ir_expr *b) { return ir_binary(&s->arena, op, a, b); }
static struct ir_expr *add(struct scope *s, struct ir_expr *a, struct ir_expr *b) { return op(s, OP_ADD, a, b); }
static struct ir_expr *sub(struct scope *s, struct ir_expr *a, struct ir_expr *b) { return op(s, OP_SUB, a, b); }
static struct ir_expr *mul(struct scope *s, struct ir_expr *a, struct ir_expr *b) { return op(s, OP_MUL, a, b); }

static void scope_begin(struct scope *s) {
  memset(s, 0, sizeof *s);
  arena_init(&s->arena);
  map_init(&s->kernel.names, &s->arena);
  s->n = ir_new_var(&s->kernel, VAR_SIZE, TYPE_I64, "n");
  s->m = ir_new_var(&s->kernel, VAR_SIZE, TYPE_I64, "m");
  s->i = ir_new_var(&s->kernel, VAR_AXIS, TYPE_INDEX, "i");
  s->j = ir_new_var(&s->kernel, VAR_AXIS, TYPE_INDEX, "j");
  s->w = ir_new_var(&s->kernel, VAR_SCALAR, TYPE_I64, "w");
  s->v = ir_new_var(&s->kernel, VAR_SCALAR, TYPE_I32, "v");
  facts_init(&s->facts, &s->arena);
  struct ir_expr *zero = ir_int(&s->arena, TYPE_INDEX, 0);
  facts_add_axis(&s->facts, s->i, zero, ir_cast(&s->arena, TYPE_INDEX, ir_ref(&s->arena, s->n)));
  facts_add_axis(&s->facts, s->j, zero, ir_cast(&s->arena, TYPE_INDEX, ir_ref(&s->arena, s->m)));
}
static void scope_end(struct scope *s) { arena_destroy(&s->arena); }

#define YES(e) cr_expect(prove_nonnegative(&s.facts, poly_of(&s.facts, (e))), "not proved: " #e)
#define NO(e) cr_expect_not(prove_nonnegative(&s.facts, poly_of(&s.facts, (e))), "proved: " #e)

Test(poly, an_axis_stays_in_its_range) {
  struct scope s;
  scope_begin(&s);
  struct ir_expr *i = ref(&s, s.i), *j = ref(&s, s.j), *n = ref(&s, s.n), *m = ref(&s, s.m), *one = number(&s, 1);
  YES(i);
  YES(sub(&s, sub(&s, n, i), one));
  NO(sub(&s, i, one));
  NO(sub(&s, n, add(&s, i, number(&s, 2))));
  YES(sub(&s, sub(&s, mul(&s, n, m), add(&s, mul(&s, i, m), j)), one)); // row-major
  NO(sub(&s, sub(&s, mul(&s, n, m), add(&s, mul(&s, i, n), j)), one));
  YES(sub(&s, n, one)); // the scope is only entered where the range is not empty
  scope_end(&s);
}

Test(poly, min_max_div_and_mod_are_opened) {
  struct scope s;
  scope_begin(&s);
  struct ir_expr *i = ref(&s, s.i), *n = ref(&s, s.n), *w = ref(&s, s.w), *one = number(&s, 1), *zero = number(&s, 0);
  struct ir_expr *clamped = op(&s, OP_MIN, op(&s, OP_MAX, w, zero), sub(&s, n, one));
  YES(clamped);
  YES(sub(&s, sub(&s, n, clamped), one));
  YES(sub(&s, i, op(&s, OP_DIV, i, number(&s, 2))));
  YES(sub(&s, number(&s, 3), op(&s, OP_MOD, i, number(&s, 4))));
  YES(op(&s, OP_MOD, add(&s, i, one), n));
  YES(sub(&s, sub(&s, n, op(&s, OP_MOD, add(&s, i, one), n)), one));
  NO(op(&s, OP_MOD, w, number(&s, 4))); // a remainder of a negative value is negative
  NO(sub(&s, number(&s, 2), op(&s, OP_MOD, i, number(&s, 4))));
  struct ir_expr *steps = op(&s, OP_DIV, add(&s, i, number(&s, 255)), number(&s, 256)); // ceil(i / 256)
  facts_add_condition(&s.facts, op(&s, OP_LE, n, number(&s, 4097)));
  YES(sub(&s, number(&s, 16), steps)); // i <= 4096
  NO(sub(&s, number(&s, 15), steps));
  scope_end(&s);
}

Test(poly, conditions_count) {
  struct scope s;
  scope_begin(&s);
  struct ir_expr *w = ref(&s, s.w), *n = ref(&s, s.n), *zero = number(&s, 0), *one = number(&s, 1);
  NO(w);
  struct ir_expr *inside = op(&s, OP_AND, op(&s, OP_GE, w, zero), op(&s, OP_LT, w, n));
  facts_add_condition(&s.facts, inside);
  YES(w);
  cr_expect(prove_less(&s.facts, w, n));
  cr_expect_not(prove_less(&s.facts, w, sub(&s, n, one)));
  scope_end(&s);
}

Test(poly, a_negated_condition_counts) {
  struct scope s;
  scope_begin(&s);
  struct ir_expr *w = ref(&s, s.w), *n = ref(&s, s.n), *zero = number(&s, 0), *one = number(&s, 1), *i = ref(&s, s.i);
  struct ir_expr *outside = op(&s, OP_OR, op(&s, OP_LT, w, zero), op(&s, OP_GE, w, n));
  facts_add_condition(&s.facts, ir_unary(&s.arena, OP_NOT, outside));
  YES(w);
  cr_expect(prove_less(&s.facts, w, n));
  facts_add_condition(&s.facts, op(&s, OP_NE, i, zero));
  YES(sub(&s, i, one));
  scope_end(&s);
}

// w is any 64-bit value: what the machine computes of it may have wrapped, and says nothing about w itself.
Test(poly, arithmetic_that_may_wrap_is_not_opened) {
  struct scope s;
  scope_begin(&s);
  struct ir_expr *w = ref(&s, s.w), *n = ref(&s, s.n), *zero = number(&s, 0), *one = number(&s, 1);
  facts_add_condition(&s.facts, op(&s, OP_GE, w, zero));
  facts_add_condition(&s.facts, op(&s, OP_LE, add(&s, w, one), n)); // true for w = 2^63 - 1
  cr_expect_not(prove_less(&s.facts, w, n));
  struct ir_expr *v = ir_ref(&s.arena, s.v), *next = ir_binary(&s.arena, OP_ADD, v, ir_int(&s.arena, TYPE_I32, 1));
  facts_add_condition(&s.facts, op(&s, OP_GE, ref(&s, s.v), zero));
  YES(ref(&s, s.v));
  YES(add(&s, ref(&s, s.v), one));              // widened, then added
  NO(ir_cast(&s.arena, TYPE_I64, next));        // added in 32 bits
  scope_end(&s);
}

Test(poly, unsigned_comparisons_say_what_they_say) {
  struct scope s;
  scope_begin(&s);
  struct ir_expr *w = ref(&s, s.w);
  facts_add_condition(&s.facts, ir_binary(&s.arena, OP_GT, ir_cast(&s.arena, TYPE_U64, w), ir_int(&s.arena, TYPE_U64, 5)));
  NO(w); // -1 is the largest
  scope_end(&s);
}

Test(poly, an_index_and_an_i64_of_one_arithmetic_are_one_value) {
  struct scope s;
  scope_begin(&s);
  struct ir_expr *n = ref(&s, s.n), *wide = op(&s, OP_DIV, n, number(&s, 2));
  struct ir_expr *narrow = ir_binary(&s.arena, OP_DIV, ir_cast(&s.arena, TYPE_INDEX, ir_ref(&s.arena, s.n)), ir_int(&s.arena, TYPE_INDEX, 2));
  cr_expect(prove_equal(&s.facts, wide, narrow));
  scope_end(&s);
}

Test(poly, counterexamples_are_found_where_all_facts_hold) {
  struct scope s;
  scope_begin(&s);
  struct ir_expr *i = ref(&s, s.i), *j = ref(&s, s.j), *n = ref(&s, s.n), *m = ref(&s, s.m), *w = ref(&s, s.w), *one = number(&s, 1), *zero = number(&s, 0);
#define REFUTED(e) cr_expect(poly_refute(&s.facts, poly_of(&s.facts, (e))), "not refuted: " #e)
#define KEPT(e) cr_expect_not(poly_refute(&s.facts, poly_of(&s.facts, (e))), "refuted: " #e)
  REFUTED(sub(&s, i, one));
  REFUTED(sub(&s, sub(&s, n, i), number(&s, 2)));
  REFUTED(sub(&s, i, j)); // i at its first, j at its last
  REFUTED(sub(&s, op(&s, OP_MOD, i, number(&s, 8)), number(&s, 7)));
  REFUTED(sub(&s, op(&s, OP_DIV, n, number(&s, 16)), n));
  KEPT(i);
  KEPT(sub(&s, sub(&s, n, i), one));
  KEPT(op(&s, OP_DIV, i, number(&s, 4)));
  facts_add_condition(&s.facts, op(&s, OP_LE, n, m));
  KEPT(sub(&s, m, n));
  REFUTED(sub(&s, sub(&s, m, n), one));
  facts_add_condition(&s.facts, op(&s, OP_GE, w, number(&s, 5))); // a value that is read is 0 in all that is tried
  KEPT(sub(&s, m, add(&s, n, one)));
  KEPT(sub(&s, w, number(&s, 6)));
  KEPT(sub(&s, zero, one));
  scope_end(&s);
}

Test(poly, divisibility) {
  struct scope s;
  scope_begin(&s);
  struct ir_expr *n = ref(&s, s.n), *m = ref(&s, s.m), *four = number(&s, 4);
  cr_expect(prove_divides(&s.facts, four, mul(&s, n, number(&s, 8))));
  cr_expect_not(prove_divides(&s.facts, four, n));
  cr_expect(prove_divides(&s.facts, m, mul(&s, n, m)));
  cr_expect_not(prove_divides(&s.facts, m, add(&s, mul(&s, n, m), number(&s, 1))));
  facts_add_condition(&s.facts, op(&s, OP_EQ, op(&s, OP_MOD, n, four), number(&s, 0)));
  cr_expect(prove_divides(&s.facts, four, n));
  cr_expect(prove_divides(&s.facts, number(&s, 2), n));
  cr_expect_not(prove_divides(&s.facts, number(&s, 8), n));
  scope_end(&s);
}

Test(poly, a_minimum_is_an_expression_of_sizes) {
  struct scope s;
  scope_begin(&s);
  struct ir_expr *i = ref(&s, s.i), *n = ref(&s, s.n), *m = ref(&s, s.m), *w = ref(&s, s.w), *zero = number(&s, 0);
  struct ir_expr *least = poly_minimum_expr(&s.facts, poly_of(&s.facts, sub(&s, m, i)));
  struct text text = {0};
  cr_assert(least);
  ir_print_expr(least, &text);
  cr_expect_str_eq(text.data, "add(add(mul(n, -1:i64), 1:i64), m)");
  text_free(&text);
  cr_expect_null(poly_minimum_expr(&s.facts, poly_of(&s.facts, w)));
  struct ir_expr *clamped = op(&s, OP_MIN, op(&s, OP_MAX, w, zero), sub(&s, n, number(&s, 3)));
  cr_expect(poly_minimum_expr(&s.facts, poly_of(&s.facts, clamped)));
  scope_end(&s);
}

// ---- Whatever is proved is true

static uint32_t state;
static uint32_t next(uint32_t below) {
  state = state * 1664525u + 1013904223u;
  return (state >> 8) % below;
}

static struct ir_expr *random_expr(struct scope *s, int depth) {
  static const enum op ops[] = {OP_ADD, OP_SUB, OP_MUL, OP_MIN, OP_MAX, OP_DIV, OP_MOD, OP_ADD, OP_SUB};
  if (depth == 0 || next(5) == 0) {
    switch (next(6)) {
    case 0: return ref(s, s->i);
    case 1: return ref(s, s->j);
    case 2: return ref(s, s->n);
    case 3: return ref(s, s->m);
    case 4: return ref(s, s->v);
    default: return number(s, (int64_t)next(7) - 3);
    }
  }
  struct ir_expr *a = random_expr(s, depth - 1), *b = random_expr(s, depth - 1);
  if (next(12) == 0) return ir_select(&s->arena, ir_binary(&s->arena, OP_LT, a, b), a, b);
  return op(s, ops[next(sizeof ops / sizeof *ops)], a, b);
}

static int64_t divide(int64_t a, int64_t b) { return b == 0 ? -1 : a / b; }

static int64_t value_of(const struct scope *s, const struct ir_expr *e, const int64_t *values) {
  const struct ir_var *const vars[] = {s->n, s->m, s->i, s->j, s->v};
  int64_t a = e->count > 0 ? value_of(s, e->args[0], values) : 0, b = e->count > 1 ? value_of(s, e->args[1], values) : 0;
  switch ((int)e->op) {
  case OP_CONST: return e->integer;
  case OP_VAR:
    for (int k = 0; k < 5; k++)
      if (e->var == vars[k]) return values[k];
    break;
  case OP_CAST: return a;
  case OP_ADD: return a + b;
  case OP_SUB: return a - b;
  case OP_NEG: return -a;
  case OP_MUL: return a * b;
  case OP_MIN: return a < b ? a : b;
  case OP_MAX: return a > b ? a : b;
  case OP_DIV: case OP_QUO: return divide(a, b);
  case OP_MOD: case OP_REM: return b == 0 ? a : a % b;
  case OP_LT: return a < b;
  case OP_LE: return a <= b;
  case OP_GT: return a > b;
  case OP_GE: return a >= b;
  case OP_EQ: return a == b;
  case OP_NE: return a != b;
  case OP_AND: return a & b;
  case OP_OR: return a | b;
  case OP_NOT: return !a;
  case OP_SELECT: return a ? b : value_of(s, e->args[2], values);
  default: break;
  }
  cr_assert(false, "operation %d in a test's expression", (int)e->op);
  return 0;
}

static void check_truth(struct scope *s, struct ir_expr *e, struct ir_expr *condition, uint32_t seed) {
  int64_t v[5]; // n, m, i, j, v
  for (v[0] = 1; v[0] < 5; v[0]++)
    for (v[1] = 1; v[1] < 5; v[1]++)
      for (v[2] = 0; v[2] < v[0]; v[2]++)
        for (v[3] = 0; v[3] < v[1]; v[3]++)
          for (v[4] = -4; v[4] <= 6; v[4] += 2) {
            if (condition && !value_of(s, condition, v)) continue;
            if (value_of(s, e, v) >= 0) continue;
            struct text text = {0};
            ir_print_expr(e, &text);
            cr_assert(false, "seed %u: proved %s >= 0, and it is %lld for n=%lld m=%lld i=%lld j=%lld v=%lld", seed, text.data, (long long)value_of(s, e, v),
                     (long long)v[0], (long long)v[1], (long long)v[2], (long long)v[3], (long long)v[4]);
          }
}

Test(poly, whatever_is_proved_is_true, .timeout = 120) {
  uint32_t proved = 0;
  for (uint32_t seed = 0; seed < 30000; seed++) {
    struct scope s;
    scope_begin(&s);
    state = seed * 2654435761u + 12345;
    struct ir_expr *condition = NULL;
    if (seed % 2) {
      static const enum op ops[] = {OP_LT, OP_LE, OP_GT, OP_GE, OP_EQ, OP_NE};
      condition = ir_binary(&s.arena, ops[next(6)], random_expr(&s, 1), random_expr(&s, 1));
      if (next(3) == 0) condition = ir_unary(&s.arena, OP_NOT, condition);
      facts_add_condition(&s.facts, condition);
    }
    struct ir_expr *e = random_expr(&s, 3);
    if (prove_nonnegative(&s.facts, poly_of(&s.facts, e))) {
      proved++;
      cr_assert_not(poly_refute(&s.facts, poly_of(&s.facts, e)), "seed %u: proved and refuted", seed);
      check_truth(&s, e, condition, seed);
    }
    scope_end(&s);
  }
  cr_expect_gt(proved, 3000, "only %u of 30000 proved: the test says little", proved);
}

Test(poly, what_is_linear_hides_no_axis) {
  struct scope s;
  scope_begin(&s);
  struct ir_expr *x = ir_ref(&s.arena, s.i), *rest = ir_binary(&s.arena, OP_MOD, x, ir_int(&s.arena, TYPE_INDEX, 2));
  struct poly coefficient, left, p = poly_of(&s.facts, ir_binary(&s.arena, OP_ADD, ir_binary(&s.arena, OP_MUL, x, ir_int(&s.arena, TYPE_INDEX, 4)), rest));
  int64_t by;
  cr_expect(poly_split(&s.facts, p, s.i, &coefficient, &left) && poly_is_constant(coefficient, &by) && by == 4);
  cr_expect(!poly_linear(&s.facts, p, s.i, &coefficient, &left));
  cr_expect(poly_linear(&s.facts, p, s.j, &coefficient, &left) && poly_is_zero(coefficient));
  scope_end(&s);
}

// No value of the axes gives less than poly_minimum_expr says.
Test(poly, a_minimum_is_never_passed, .timeout = 120) {
  uint32_t found = 0;
  for (uint32_t seed = 0; seed < 20000; seed++) {
    struct scope s;
    scope_begin(&s);
    state = seed * 2246822519u + 777;
    struct ir_expr *e = random_expr(&s, 3), *least = poly_minimum_expr(&s.facts, poly_of(&s.facts, e));
    if (least) {
      found++;
      check_truth(&s, sub(&s, e, least), NULL, seed);
    }
    scope_end(&s);
  }
  cr_expect_gt(found, 2000, "only %u of 20000 found: the test says little", found);
}

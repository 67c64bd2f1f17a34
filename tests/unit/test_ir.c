// The builders of IR expressions simplify as they build: never to another value. Substitution, rewriting, inlining, clones.
#include <criterion/criterion.h>
#include <string.h>

#include "compiler/arith.h"

enum { VARS = 3 };
struct scope {
  struct arena arena;
  struct ir_kernel kernel;
  struct ir_var *vars[VARS];
};

static void scope_begin(struct scope *s, enum type type) {
  memset(s, 0, sizeof *s);
  arena_init(&s->arena);
  map_init(&s->kernel.names, &s->arena);
  for (int k = 0; k < VARS; k++) s->vars[k] = ir_new_var(&s->kernel, VAR_LET, type, "x");
}
static void scope_end(struct scope *s) { arena_destroy(&s->arena); }

static uint32_t state;
static uint32_t next(uint32_t below) {
  state = state * 1664525u + 1013904223u;
  return (state >> 8) % below;
}

static int64_t interesting(enum type type) {
  uint32_t bits = type_bits(type);
  switch (next(8)) {
  case 0: return 0;
  case 1: return 1;
  case 2: return -1;
  case 3: return (int64_t)((uint64_t)1 << (bits - 1));       // the least of a signed type
  case 4: return (int64_t)(((uint64_t)1 << (bits - 1)) - 1); // the largest
  case 5: return 2;
  case 6: return (int64_t)bits;
  default: return (int64_t)next(200) - 100;
  }
}

// The same tree twice: as it is written, and as the builders make it.
struct pair {
  struct ir_expr *plain, *simple;
};

static struct pair make(struct scope *s, enum op op, enum type type, struct pair a, struct pair b) {
  struct ir_expr *plain[2] = {a.plain, b.plain}, *simple[2] = {a.simple, b.simple};
  uint32_t count = op_table[op].operands;
  return (struct pair){ir_raw(&s->arena, op, type, plain, count), ir_make(&s->arena, op, type, simple, count)};
}

static struct pair random_bool(struct scope *s, enum type type, int depth);

static struct pair random_pair(struct scope *s, enum type type, int depth) {
  static const enum op integer_ops[] = {OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_MOD, OP_AND, OP_OR, OP_XOR, OP_SHL, OP_SHR, OP_MIN, OP_MAX, OP_ADD, OP_MUL};
  static const enum op float_ops[] = {OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_MIN, OP_MAX, OP_FMIN, OP_FMAX};
  if (depth == 0 || next(4) == 0) {
    struct ir_expr *leaf;
    if (next(2)) leaf = ir_ref(&s->arena, s->vars[next(VARS)]);
    else if (type_is_float(type)) leaf = ir_float(&s->arena, type, (double[]){0.0, -0.0, 1.0, -1.0, 2.5}[next(5)]);
    else leaf = ir_int(&s->arena, type, arith_wrap(type, interesting(type)));
    return (struct pair){leaf, leaf};
  }
  struct pair a = random_pair(s, type, depth - 1), b = next(5) ? random_pair(s, type, depth - 1) : a;
  if (next(8) == 0) {
    struct pair c = random_bool(s, type, depth - 1);
    struct ir_expr *plain[3] = {c.plain, a.plain, b.plain};
    return (struct pair){ir_raw(&s->arena, OP_SELECT, type, plain, 3), ir_select(&s->arena, c.simple, a.simple, b.simple)};
  }
  if (next(8) == 0) return make(s, OP_NEG, type, a, a);
  return make(s, type_is_float(type) ? float_ops[next(8)] : integer_ops[next(14)], type, a, b);
}

static struct pair random_bool(struct scope *s, enum type type, int depth) {
  static const enum op compares[] = {OP_EQ, OP_NE, OP_LT, OP_LE, OP_GT, OP_GE};
  struct pair a = random_pair(s, type, depth > 0 ? depth - 1 : 0), b = next(4) ? random_pair(s, type, 0) : a;
  struct pair result = make(s, compares[next(6)], TYPE_BOOL, a, b);
  if (next(3) == 0) result = make(s, OP_NOT, TYPE_BOOL, result, result);
  if (depth > 0 && next(3) == 0) result = make(s, next(2) ? OP_AND : OP_OR, TYPE_BOOL, result, random_bool(s, type, depth - 1));
  return result;
}

// False where an operation leaves its result open.
static bool evaluate(const struct scope *s, const struct ir_expr *e, const struct value *values, struct value *out) {
  struct value args[3];
  if (e->op == OP_CONST) {
    *out = type_is_float(e->type) ? value_float(e->type, e->number) : value_int(e->type, e->integer);
    return true;
  }
  if (e->op == OP_VAR) {
    for (int k = 0; k < VARS; k++)
      if (e->var == s->vars[k]) *out = values[k];
    return true;
  }
  for (uint32_t i = 0; i < e->count; i++)
    if (!evaluate(s, e->args[i], values, &args[i])) return false;
  return arith_fold(e->op, e->type, args, e->count, out);
}

static bool is_same(struct value a, struct value b) {
  if (a.type != b.type) return false;
  if (!type_is_float(a.type)) return a.integer == b.integer;
  return (a.number != a.number && b.number != b.number) || memcmp(&a.number, &b.number, sizeof a.number) == 0;
}

static void compare(struct scope *s, enum type type, struct pair pair, uint32_t seed) {
  for (int round = 0; round < 12; round++) {
    struct value values[VARS], plain, simple;
    for (int k = 0; k < VARS; k++)
      values[k] = type_is_float(type) ? value_float(type, (double[]){0.0, -0.0, 1.0, -3.0, 1e30, 0.0 / 0.0, 1.0 / 0.0}[next(7)])
                                      : value_int(type, interesting(type));
    if (!evaluate(s, pair.plain, values, &plain)) continue;
    cr_assert(evaluate(s, pair.simple, values, &simple));
    if (is_same(plain, simple)) continue;
    struct text was = {0}, is = {0};
    ir_print_expr(pair.plain, &was);
    ir_print_expr(pair.simple, &is);
    cr_assert(false, "seed %u: %s became %s, which has another value", seed, was.data, is.data);
  }
}

static const enum type types[] = {TYPE_I8, TYPE_U8, TYPE_I16, TYPE_U16, TYPE_I32, TYPE_U32, TYPE_I64, TYPE_U64, TYPE_INDEX, TYPE_F32, TYPE_F64};
enum { TYPES = sizeof types / sizeof *types };

Test(ir, builders_keep_values) {
  uint32_t simpler = 0;
  for (uint32_t seed = 0; seed < 40000; seed++) {
    struct scope s;
    enum type type = types[seed % TYPES];
    scope_begin(&s, type);
    state = seed * 2654435761u + 99;
    struct pair pair = next(3) ? random_pair(&s, type, 3) : random_bool(&s, type, 3);
    simpler += !ir_equal(pair.plain, pair.simple);
    compare(&s, type, pair, seed);
    scope_end(&s);
  }
  cr_expect_gt(simpler, 5000, "only %u of 40000 were simplified: the test says little", simpler);
}

Test(ir, casts_there_and_back_keep_values) {
  for (uint32_t seed = 0; seed < 20000; seed++) {
    struct scope s;
    enum type type = types[next(TYPES)];
    scope_begin(&s, type);
    state = seed * 40503u + 5;
    struct ir_expr *leaf = ir_ref(&s.arena, s.vars[0]);
    struct pair pair = {leaf, leaf};
    for (int k = 0; k < 3; k++) {
      enum type to = types[next(TYPES)];
      pair = (struct pair){ir_raw(&s.arena, OP_CAST, to, &pair.plain, 1), ir_cast(&s.arena, to, pair.simple)};
    }
    compare(&s, type, pair, seed);
    scope_end(&s);
  }
}

Test(ir, substitution_leaves_the_original) {
  struct scope s;
  scope_begin(&s, TYPE_I32);
  struct ir_expr *x = ir_ref(&s.arena, s.vars[0]), *y = ir_ref(&s.arena, s.vars[1]);
  struct ir_expr *sum = ir_binary(&s.arena, OP_ADD, ir_binary(&s.arena, OP_MUL, x, y), x);
  s.vars[0]->subst = ir_int(&s.arena, TYPE_I32, 3);
  struct ir_expr *copy = ir_substitute(&s.arena, sum);
  s.vars[0]->subst = NULL;
  cr_expect(ir_mentions(sum, s.vars[0]));
  cr_expect_not(ir_mentions(copy, s.vars[0]));
  cr_expect(ir_mentions(copy, s.vars[1]));
  s.vars[1]->subst = ir_int(&s.arena, TYPE_I32, 4);
  cr_expect(ir_const_is(ir_substitute(&s.arena, copy), 15), "what is constant is folded on the way");
  scope_end(&s);
}

Test(ir, fresh_names_differ) {
  struct scope s;
  scope_begin(&s, TYPE_I32);
  cr_expect_str_neq(s.vars[0]->name, s.vars[1]->name);
  cr_expect_str_eq(s.vars[0]->label, s.vars[1]->label);
  scope_end(&s);
}

// combine (a, b) = { let d = a - b; (d * d, d) }: results after lets, in variables of their own each time.
Test(ir, inlining_twice_gives_two_lets) {
  struct scope s;
  scope_begin(&s, TYPE_I32);
  struct ir_function function = {0};
  struct ir_var *a = ir_new_var(&s.kernel, VAR_LET, TYPE_I32, "a"), *b = ir_new_var(&s.kernel, VAR_LET, TYPE_I32, "b"),
                *d = ir_new_var(&s.kernel, VAR_LET, TYPE_I32, "d");
  list_push(&s.arena, &function.params, a);
  list_push(&s.arena, &function.params, b);
  struct ir_expr *difference = ir_binary(&s.arena, OP_SUB, ir_ref(&s.arena, a), ir_ref(&s.arena, b)), *again = ir_ref(&s.arena, d);
  list_push(&s.arena, &function.lets, ir_let(&s.arena, d, difference, (struct range){0}));
  list_push(&s.arena, &function.results, ir_binary(&s.arena, OP_MUL, again, again));
  list_push(&s.arena, &function.results, again);
  struct list out = {0};
  struct ir_expr *arguments[2] = {ir_ref(&s.arena, s.vars[0]), ir_ref(&s.arena, s.vars[1])}, *first[2], *second[2];
  ir_inline(&s.kernel, &function, arguments, &out, (struct range){0}, first);
  ir_inline(&s.kernel, &function, arguments, &out, (struct range){0}, second);
  cr_assert_eq(out.count, 2);
  const struct ir_stmt *one = out.at[0], *two = out.at[1];
  cr_expect_neq(one->var, two->var);
  cr_expect_str_neq(one->var->name, two->var->name);
  cr_expect(ir_mentions(first[0], one->var) && ir_mentions(second[0], two->var));
  cr_expect(ir_mentions(one->value, s.vars[0]));
  cr_expect_not(ir_mentions(first[0], d));
  scope_end(&s);
}

Test(ir, a_clone_has_variables_of_its_own) {
  struct scope s;
  scope_begin(&s, TYPE_I32);
  struct ir_var *d = ir_new_var(&s.kernel, VAR_LET, TYPE_I32, "d"), *u = ir_new_var(&s.kernel, VAR_LET, TYPE_I32, "u");
  struct list block = {0};
  struct ir_expr *x = ir_ref(&s.arena, s.vars[0]), *both = ir_ref(&s.arena, d);
  list_push(&s.arena, &block, ir_let(&s.arena, d, ir_binary(&s.arena, OP_ADD, x, x), (struct range){0}));
  list_push(&s.arena, &block, ir_let(&s.arena, u, ir_binary(&s.arena, OP_MUL, both, x), (struct range){0}));
  struct list clone = ir_clone_block(&s.kernel, &block);
  cr_assert_eq(clone.count, 2);
  const struct ir_stmt *first = clone.at[0], *second = clone.at[1];
  cr_expect_neq(first->var, d);
  cr_expect(ir_mentions(second->value, first->var), "uses follow the clone's own variables");
  cr_expect_not(ir_mentions(second->value, d));
  cr_expect(ir_mentions(second->value, s.vars[0]), "variables from outside stay");
  scope_end(&s);
}

// Pass math: what it leaves means the same, costs what the operands need, and declines where it must.
#include "compiler/arith.h"
#include "tests/unit/program.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

static struct program *begin(void) {
  struct program *p = malloc(sizeof *p);
  program_begin(p, "k", 64, "");
  return p;
}
static void end(struct program *p) {
  program_end(p);
  free(p);
}

static void run(struct program *p) {
  cr_assert(pass_math(&p->context, p->kernel, p->entry));
}

// The statements of the entry, an expression each, "name = value; " where it is a LET.
static const char *body(struct program *p, const struct list *block) {
  struct text text = {0};
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = list_at(block, struct ir_stmt, i);
    if (i) text_puts(&text, "; ");
    if (stmt->kind == IR_LET) text_printf(&text, "%s = ", stmt->var->name);
    if (stmt->kind == IR_SET) text_printf(&text, "%s := ", stmt->var->name);
    if (stmt->value) ir_print_expr(stmt->value, &text);
    if (stmt->body.count) text_printf(&text, "{%s}", body(p, &stmt->body));
  }
  const char *copy = arena_strdup(&p->arena, text.data ? text.data : "");
  text_free(&text);
  return copy;
}

static void expect_body(struct program *p, const char *wanted) {
  const char *got = body(p, &p->entry->body);
  cr_expect(strcmp(got, wanted) == 0, "\n  got    %s\n  wanted %s", got, wanted);
}

static struct ir_expr *binary(struct program *p, enum op op, struct ir_expr *a, struct ir_expr *b) {
  return program_op(p, op, a->type, 2, a, b, NULL);
}
static struct ir_expr *cast(struct program *p, enum type type, struct ir_expr *a) {
  return program_op(p, OP_CAST, type, 1, a, NULL, NULL);
}
static struct ir_expr *scalar(struct program *p, const char *name, enum type type) {
  return ir_ref(&p->arena, program_scalar(p, name, type));
}
static struct ir_expr *extent(struct program *p, const char *name) {
  struct ir_var *size = program_size(p, name);
  size->inferred = ir_fact(&p->arena, OP_DIM, program_tensor(p, "T", TYPE_F32, false), 0);
  return ir_ref(&p->arena, size);
}
static struct ir_expr *thread(struct program *p) {
  return program_special(p, OP_THREAD, 0);
}

// A statement that computes `value` for a variable that nothing reads.
static void compute(struct program *p, struct ir_expr *value) {
  program_let(p, "r", value);
}

// --- Meaning -----------------------------------------------------------------------------------------------

// Evaluates expressions of variables whose `subst` is a constant; machine division must be defined.
static struct value evaluate(const struct ir_expr *e) {
  if (e->op == OP_VAR) return evaluate(e->var->subst);
  if (e->op == OP_CONST) return value_int(e->type, e->integer);
  struct value args[3], out = {0};
  for (uint32_t i = 0; i < e->count; i++) args[i] = evaluate(e->args[i]);
  if (e->op == OP_SELECT) return args[0].integer ? args[1] : args[2];
  cr_assert(e->op != OP_DIV && e->op != OP_MOD, "%s is left", op_table[e->op].spelling);
  if (e->op == OP_SHL || e->op == OP_SHR)
    cr_assert(args[1].integer >= 0 && args[1].integer < type_bits(e->type), "a count of %lld",
              (long long)args[1].integer);
  cr_assert(arith_fold(e->op, e->type, args, e->count, &out), "%s is undefined", op_table[e->op].spelling);
  return out;
}

static struct value last_value(struct program *p, struct arena *arena) {
  struct value value = {0};
  for (uint32_t i = 0; i < p->entry->body.count; i++) {
    struct ir_stmt *stmt = list_at(&p->entry->body, struct ir_stmt, i);
    value = evaluate(stmt->value);
    stmt->var->subst = ir_int(arena, value.type, value.integer);
  }
  return value;
}

static const enum op integer_ops[] = {OP_DIV, OP_MOD, OP_SHL, OP_SHR};

static void check_value(struct program *p, struct ir_expr *a, struct ir_expr *b, enum op op, int64_t x,
                        int64_t y) {
  enum type type = a->type;
  struct arena arena;
  arena_init(&arena);
  struct value vx = value_int(type, x), vy = value_int(type, y), wanted;
  a->var->subst = ir_int(&arena, type, vx.integer);
  if (b->op == OP_VAR) b->var->subst = ir_int(&arena, type, vy.integer);
  cr_assert(arith_binary(op, type, vx, vy, &wanted));
  struct value got = last_value(p, &arena);
  cr_assert(got.integer == wanted.integer && got.type == type, "%s.%s(%lld, %lld) is %lld",
            op_table[op].spelling, type_name(type), (long long)x, (long long)y, (long long)got.integer);
  arena_destroy(&arena);
}

Test(math, eight_bits_mean_the_same_for_all_operands) {
  static const enum type types[] = {TYPE_I8, TYPE_U8};
  for (int t = 0; t < 2; t++)
    for (int o = 0; o < 4; o++) {
      struct program *p = begin();
      struct ir_expr *a = scalar(p, "a", types[t]), *b = scalar(p, "b", types[t]);
      compute(p, binary(p, integer_ops[o], a, b));
      run(p);
      for (int x = 0; x < 256; x++)
        for (int y = 0; y < 256; y++) check_value(p, a, b, integer_ops[o], x, y);
      end(p);
    }
}

Test(math, eight_bits_mean_the_same_for_each_constant) {
  static const enum type types[] = {TYPE_I8, TYPE_U8};
  for (int t = 0; t < 2; t++)
    for (int o = 0; o < 4; o++)
      for (int y = 0; y < 256; y++) {
        struct program *p = begin();
        struct ir_expr *a = scalar(p, "a", types[t]);
        struct ir_expr *b = program_int(p, types[t], value_int(types[t], y).integer);
        compute(p, binary(p, integer_ops[o], a, b));
        run(p);
        for (int x = 0; x < 256; x++) check_value(p, a, b, integer_ops[o], x, y);
        end(p);
      }
}

Test(math, wide_types_mean_the_same_at_their_ends) {
  static const enum type types[] = {TYPE_I16, TYPE_U16, TYPE_I32, TYPE_U32, TYPE_I64, TYPE_U64};
  static const int64_t ends[] = {
      0,  1,  -1, 2,         -2,        3,         7,         -7,        31,    32,        33,
      63, 64, 65, INT16_MIN, INT16_MAX, INT32_MIN, INT32_MAX, INT64_MIN, 65536, INT64_MAX, -65536};
  enum { ENDS = sizeof ends / sizeof *ends };
  for (int t = 0; t < 6; t++)
    for (int o = 0; o < 4; o++) {
      struct program *p = begin();
      struct ir_expr *a = scalar(p, "a", types[t]), *b = scalar(p, "b", types[t]);
      compute(p, binary(p, integer_ops[o], a, b));
      run(p);
      for (int x = 0; x < ENDS; x++)
        for (int y = 0; y < ENDS; y++) check_value(p, a, b, integer_ops[o], ends[x], ends[y]);
      end(p);
    }
}

// --- Division ----------------------------------------------------------------------------------------------

Test(math, any_divisor_needs_selects) {
  struct program *p = begin();
  compute(p, binary(p, OP_DIV, scalar(p, "a", TYPE_I32), scalar(p, "k", TYPE_I32)));
  run(p);
  expect_body(p, "by_zero = eq(k, 0:i32); by_minus = eq(k, -1:i32); r = select(by_zero, -1:i32, "
                 "select(by_minus, neg(a), quo(a, select(or(by_zero, by_minus), 1:i32, k))))");
  end(p);
}

Test(math, an_operand_that_is_read_twice_is_computed_once) {
  struct program *p = begin();
  struct ir_mem *A = program_tensor(p, "A", TYPE_U32, false);
  compute(p, binary(p, OP_MOD, program_load(p, A, thread(p)), scalar(p, "k", TYPE_U32)));
  run(p);
  expect_body(p, "dividend = load_flat(A, thread.x:i32); by_zero = eq(k, 0:u32); "
                 "r = select(by_zero, dividend, rem(dividend, max(k, 1:u32)))");
  end(p);
}

Test(math, equal_divisions_of_a_statement_are_one) {
  struct program *p = begin();
  struct ir_expr *a = scalar(p, "a", TYPE_U32), *k = scalar(p, "k", TYPE_U32);
  compute(p, binary(p, OP_ADD, binary(p, OP_DIV, a, k), binary(p, OP_DIV, a, k)));
  run(p);
  cr_expect(p->entry->body.count == 2);
  end(p);
}

Test(math, a_positive_constant_needs_none) {
  struct program *p = begin();
  struct ir_expr *a = scalar(p, "a", TYPE_I32);
  compute(p, binary(p, OP_DIV, a, program_int(p, TYPE_I32, 10)));
  compute(p, binary(p, OP_MOD, a, program_int(p, TYPE_I32, 8))); // a may be negative
  compute(p, binary(p, OP_DIV, thread(p), program_int(p, TYPE_I32, 8)));
  compute(p, binary(p, OP_MOD, thread(p), program_int(p, TYPE_I32, 8)));
  run(p);
  expect_body(p, "r = quo(a, 10:i32); r_2 = rem(a, 8:i32); r_3 = shr(thread.x:i32, 3:i32); "
                 "r_4 = and(thread.x:i32, 7:i32)");
  end(p);
}

// for j in 0..m { j % m }, where m is an extent.
Test(math, the_extent_of_a_loop_around_needs_none) {
  struct program *p = begin();
  struct ir_expr *m = cast(p, TYPE_I32, extent(p, "m"));
  struct ir_stmt *loop = program_stmt(p, IR_FOR);
  loop->var = ir_new_var(p->kernel, VAR_AXIS, TYPE_I32, "j");
  loop->lo = program_int(p, TYPE_I32, 0);
  loop->hi = m;
  p->block = &loop->body;
  compute(p, binary(p, OP_MOD, ir_ref(&p->arena, loop->var), m));
  p->block = &p->entry->body;
  run(p);
  expect_body(p, "{r = rem(j, cast.i32(m))}");
  end(p);
}

// if i < a * b { i / b }, where a and b are extents.
Test(math, a_factor_of_an_extent_above_an_index_needs_none) {
  struct program *p = begin();
  struct ir_expr *a = cast(p, TYPE_I32, extent(p, "a")), *b = cast(p, TYPE_I32, extent(p, "b"));
  struct ir_expr *i = program_let(
      p, "i",
      binary(p, OP_ADD, binary(p, OP_MUL, program_special(p, OP_BLOCK, 0), program_int(p, TYPE_I32, 64)),
             thread(p)));
  struct ir_stmt *branch = program_stmt(p, IR_IF);
  branch->value = program_op(p, OP_LT, TYPE_BOOL, 2, i, binary(p, OP_MUL, a, b), NULL);
  p->block = &branch->body;
  compute(p, binary(p, OP_DIV, i, b));
  p->block = &branch->otherwise;
  compute(p, binary(p, OP_DIV, i, b));
  p->block = &p->entry->body;
  run(p);
  cr_expect_str_eq(body(p, &branch->body), "r = quo(i, cast.i32(b))");
  cr_expect_str_eq(body(p, &branch->otherwise),
                   "by_zero = eq(cast.i32(b), 0:i32); "
                   "r_2 = select(by_zero, -1:i32, quo(i, max(cast.i32(b), 1:i32)))");
  end(p);
}

// A size that is a scalar may be negative, an extent may be 0.
Test(math, sizes_are_guarded_as_far_as_they_need) {
  struct program *p = begin();
  struct ir_expr *n = ir_ref(&p->arena, program_size(p, "n")), *m = extent(p, "m");
  struct ir_expr *a = scalar(p, "a", TYPE_I64);
  compute(p, binary(p, OP_MOD, a, n));
  compute(p, binary(p, OP_MOD, a, m));
  run(p);
  expect_body(p, "by_zero = eq(n, 0:i64); by_minus = eq(n, -1:i64); "
                 "r = select(by_zero, a, rem(a, select(or(by_zero, by_minus), 1:i64, n))); "
                 "by_zero_2 = eq(m, 0:i64); r_2 = select(by_zero_2, a, rem(a, max(m, 1:i64)))");
  end(p);
}

Test(math, wide_division_of_narrow_values_is_narrow) {
  struct program *p = begin();
  struct ir_expr *i = cast(p, TYPE_I64, thread(p)), *a = scalar(p, "a", TYPE_I64);
  compute(p, binary(p, OP_MOD, binary(p, OP_ADD, i, i), program_int(p, TYPE_I64, 5)));
  compute(p, binary(p, OP_MOD, binary(p, OP_ADD, i, a), program_int(p, TYPE_I64, 5))); // a may be anything
  run(p);
  expect_body(p, "r = cast.i64(rem(add(cast.u32(thread.x:i32), cast.u32(thread.x:i32)), 5:u32)); "
                 "r_2 = rem(add(cast.i64(thread.x:i32), a), 5:i64)");
  end(p);
}

// --- Shifts ------------------------------------------------------------------------------------------------

Test(math, counts_of_shifts_are_below_the_width) {
  struct program *p = begin();
  struct ir_expr *a = scalar(p, "a", TYPE_U32), *c = scalar(p, "c", TYPE_U32);
  compute(p, binary(p, OP_SHL, a, c));
  compute(p, binary(p, OP_SHR, a, program_int(p, TYPE_U32, 33)));
  compute(p, binary(p, OP_SHR, a, binary(p, OP_AND, c, program_int(p, TYPE_U32, 31)))); // already is
  run(p);
  expect_body(p, "r = shl(a, and(c, 31:u32)); r_2 = shr(a, 1:u32); r_3 = shr(a, and(c, 31:u32))");
  end(p);
}

// --- Contraction -------------------------------------------------------------------------------------------

struct floats {
  struct ir_expr *a, *b, *c, *d;
};
static struct floats floats(struct program *p, enum type type) {
  return (struct floats){scalar(p, "a", type), scalar(p, "b", type), scalar(p, "c", type),
                         scalar(p, "d", type)};
}

static void sums(struct program *p, enum type type) {
  struct floats f = floats(p, type);
  struct ir_expr *ab = binary(p, OP_MUL, f.a, f.b), *cd = binary(p, OP_MUL, f.c, f.d);
  compute(p, binary(p, OP_ADD, ab, f.c));
  compute(p, binary(p, OP_ADD, f.c, ab));
  compute(p, binary(p, OP_ADD, ab, cd));
  compute(p, binary(p, OP_SUB, ab, f.c));
  compute(p, binary(p, OP_SUB, f.c, ab));
  compute(p, binary(p, OP_ADD, program_op(p, OP_NEG, type, 1, ab, NULL, NULL), f.c));
  run(p);
}

Test(math, products_that_feed_sums_become_fma) {
  static const enum type types[] = {TYPE_F32, TYPE_F64};
  for (int t = 0; t < 2; t++) {
    struct program *p = begin();
    sums(p, types[t]);
    expect_body(p, "r = fma(a, b, c); r_2 = fma(a, b, c); r_3 = fma(a, b, mul(c, d)); "
                   "r_4 = fma(a, b, neg(c)); r_5 = fma(neg(a), b, c); r_6 = fma(neg(a), b, c)");
    end(p);
  }
}

Test(math, contraction_can_be_off_and_leaves_integers) {
  struct program *p = begin();
  p->options.no_contract = true;
  sums(p, TYPE_F32);
  cr_expect(strstr(body(p, &p->entry->body), "fma") == NULL);
  end(p);
  p = begin();
  sums(p, TYPE_I32);
  cr_expect(strstr(body(p, &p->entry->body), "fma") == NULL);
  end(p);
}

Test(math, a_product_with_one_reader_is_taken_through_its_let) {
  struct program *p = begin();
  struct floats f = floats(p, TYPE_F32);
  struct ir_mem *A = program_tensor(p, "A", TYPE_F32, false);
  struct ir_expr *t = program_let(p, "t", binary(p, OP_MUL, program_load(p, A, thread(p)), f.b));
  compute(p, binary(p, OP_SUB, f.c, t));
  run(p);
  expect_body(p, "t_factor = load_flat(A, thread.x:i32); r = fma(neg(t_factor), b, c)");
  end(p);
}

Test(math, a_product_with_two_readers_stays) {
  struct program *p = begin();
  struct floats f = floats(p, TYPE_F32);
  struct ir_expr *t = program_let(p, "t", binary(p, OP_MUL, f.a, f.b));
  compute(p, binary(p, OP_ADD, t, f.c));
  compute(p, t);
  run(p);
  expect_body(p, "t = mul(a, b); r = add(t, c); r_2 = t");
  end(p);
}

// A variable that changes between product and sum is read where the product was.
Test(math, factors_keep_the_value_they_had) {
  struct program *p = begin();
  struct floats f = floats(p, TYPE_F32);
  struct ir_var *v = program_var(p, "v", f.a);
  struct ir_expr *t = program_let(p, "t", binary(p, OP_MUL, ir_ref(&p->arena, v), f.b));
  struct ir_stmt *set = program_stmt(p, IR_SET);
  set->var = v;
  set->value = f.d;
  compute(p, binary(p, OP_ADD, t, f.c));
  run(p);
  expect_body(p, "a; t_factor = v; v := d; r = fma(t_factor, b, c)");
  end(p);
}

static struct ir_var *param(struct program *p, struct ir_function *function, const char *name) {
  struct ir_var *var = arena_new(&p->arena, struct ir_var);
  *var = (struct ir_var){.name = name, .label = name, .kind = VAR_LET, .type = TYPE_F32};
  list_push(&p->arena, &function->params, var);
  return var;
}

// combine(a, b) = a * b + b * a commutes bit for bit; its contraction does not.
Test(math, reducers_are_lowered_with_the_first_entry) {
  struct program *p = begin();
  struct ir_reducer *reducer = arena_new(&p->arena, struct ir_reducer);
  reducer->name = "r";
  reducer->is_commutative_bitwise = true;
  struct ir_expr *a = ir_ref(&p->arena, param(p, &reducer->combine, "a"));
  struct ir_expr *b = ir_ref(&p->arena, param(p, &reducer->combine, "b"));
  struct ir_expr *sum = binary(p, OP_ADD, binary(p, OP_MUL, a, b), binary(p, OP_MUL, b, a));
  list_push(&p->arena, &reducer->combine.results, program_op(p, OP_EXP2, TYPE_F32, 1, sum, NULL, NULL));
  list_push(&p->arena, &p->module.reducers, reducer);
  struct ir_entry *first = p->entry;
  program_entry(p, "second", 64);
  cr_assert(pass_math(&p->context, p->kernel, p->entry));
  cr_expect(reducer->combine.lets.count == 0, "the second entry leaves them");
  p->entry = first;
  run(p);
  const char *lets = body(p, &reducer->combine.lets);
  cr_expect(strstr(lets, "exp2_x = fma(a, b, mul(b, a)); ") == lets, "%s", lets);
  cr_expect(!reducer->is_commutative_bitwise);
  end(p);
}

// --- Functions ---------------------------------------------------------------------------------------------

Test(math, functions_become_exact_operations_with_one_read_of_the_argument) {
  static const enum op ops[] = {OP_EXP, OP_EXP2, OP_LOG, OP_LOG2, OP_SIN, OP_COS, OP_TANH, OP_ERF, OP_RSQRT};
  static const enum type types[] = {TYPE_F32, TYPE_F64};
  for (int t = 0; t < 2; t++)
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
      struct program *p = begin();
      struct ir_mem *A = program_tensor(p, "A", types[t], false);
      A->is_read = true;
      compute(p, program_op(p, ops[o], types[t], 1, program_load(p, A, thread(p)), NULL, NULL));
      for (int d = 0; d < 3; d++) p->entry->grid[d] = program_int(p, TYPE_I64, 1);
      run(p);
      const char *text = body(p, &p->entry->body);
      const char *load = strstr(text, "load_flat");
      cr_expect(load && !strstr(load + 1, "load_flat"));
      char call[16];
      snprintf(call, sizeof call, "%s(", op_table[ops[o]].spelling);
      cr_expect(strstr(text, call) == NULL, "%s is left", call);
      cr_expect(ir_verify(&p->module, "math", false), "%s", call);
      end(p);
    }
}

Test(math, equal_calls_of_a_statement_are_one) {
  struct program *p = begin();
  struct ir_expr *a = scalar(p, "a", TYPE_F32);
  compute(p, program_op(p, OP_EXP, TYPE_F32, 1, a, NULL, NULL));
  run(p);
  uint32_t once = p->entry->body.count;
  end(p);
  p = begin();
  a = scalar(p, "a", TYPE_F32);
  compute(p, binary(p, OP_ADD, program_op(p, OP_EXP, TYPE_F32, 1, a, NULL, NULL),
                    program_op(p, OP_EXP, TYPE_F32, 1, a, NULL, NULL)));
  run(p);
  cr_expect(p->entry->body.count == once);
  end(p);
}

Test(math, a_constant_power_that_is_one_operation) {
  struct program *p = begin();
  struct ir_expr *a = scalar(p, "a", TYPE_F32);
  static const double powers[] = {2, 1, 0, -1};
  for (int i = 0; i < 4; i++)
    compute(p, program_op(p, OP_POW, TYPE_F32, 2, a, ir_float(&p->arena, TYPE_F32, powers[i]), NULL));
  run(p);
  expect_body(p, "r = mul(a, a); r_2 = a; r_3 = 1.0:f32; r_4 = div(1.0:f32, a)");
  end(p);
}

Test(math, what_machines_have_is_left) {
  struct program *p = begin();
  struct ir_expr *a = scalar(p, "a", TYPE_F32);
  static const enum op ops[] = {OP_SQRT, OP_FLOOR, OP_CEIL, OP_ROUND, OP_TRUNC, OP_ABS};
  for (int i = 0; i < 6; i++) compute(p, program_op(p, ops[i], TYPE_F32, 1, a, NULL, NULL));
  run(p);
  expect_body(p, "r = sqrt(a); r_2 = floor(a); r_3 = ceil(a); r_4 = round(a); r_5 = trunc(a); r_6 = abs(a)");
  end(p);
}

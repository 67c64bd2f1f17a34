// The functions: errors against the C library's in a wider type, exact cases, and the IR against the values.
//
// Inputs are every RED_MATH_STRIDE-th float (16001 if not set), and all around each power of two. With
// RED_MATH_TABLE set, the table of docs/functions.md is printed.
#include "compiler/mathlib.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t stride(void) {
  const char *text = getenv("RED_MATH_STRIDE");
  return text && atoll(text) > 0 ? (uint64_t)atoll(text) : 16001;
}

static float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static const enum op functions[] = {OP_EXP, OP_EXP2, OP_LOG, OP_LOG2,  OP_SIN,
                                    OP_COS, OP_TANH, OP_ERF, OP_RSQRT, OP_POW};
enum { FUNCTION_COUNT = sizeof functions / sizeof *functions };

static long double reference(enum op op, long double x, long double y) {
  switch ((int)op) {
  case OP_EXP: return expl(x);
  case OP_EXP2: return exp2l(x);
  case OP_LOG: return logl(x);
  case OP_LOG2: return log2l(x);
  case OP_SIN: return sinl(x);
  case OP_COS: return cosl(x);
  case OP_TANH: return tanhl(x);
  case OP_ERF: return erfl(x);
  case OP_RSQRT: return 1 / sqrtl(x);
  default: return powl(x, y);
  }
}

// The error of `got` in units of the last place that the type has at `wanted`; infinite where one is NaN, an
// infinity or a zero of some sign and the other is another. Beyond the largest number the distance counts as
// if the exponent went on.
static double error_in_ulp(enum type type, long double wanted, double got) {
  bool is_f32 = type == TYPE_F32;
  int digits = is_f32 ? 24 : 53, lowest = is_f32 ? -125 : -1021, highest = is_f32 ? 128 : 1024;
  if (isnan(wanted) || isnan(got)) return isnan(wanted) && isnan(got) ? 0 : INFINITY;
  if (!signbit(wanted) != !signbit(got)) return INFINITY;
  long double end = ldexpl(1, highest), far = fabsl(wanted),
              near = isinf(got) ? end : fabsl((long double)got);
  if (isinf(wanted) || far > end) far = end;
  if (wanted == 0) return got == 0 ? 0 : INFINITY;
  int exponent;
  frexpl(far, &exponent);
  if (exponent < lowest) exponent = lowest;
  if (exponent > highest) exponent = highest;
  return (double)(fabsl(far - near) / ldexpl(1, exponent - digits));
}

// --- Errors
// --------------------------------------------------------------------------------------------------------------------

struct worst {
  double error, x, y;
  uint64_t samples;
};

static void sample_f32(struct worst *worst, enum op op, float x, float y) {
  double error = error_in_ulp(TYPE_F32, reference(op, x, y), (double)mathlib_f32(op, x, y));
  worst->samples++;
  if (error > worst->error || isinf(error)) *worst = (struct worst){error, x, y, worst->samples};
}

static struct worst measure_f32(enum op op) {
  struct worst worst = {0, 0, 0, 0};
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += stride())
    sample_f32(&worst, op, float_of((uint32_t)bits), 0);
  for (uint32_t exponent = 0; exponent < 512; exponent++)
    for (int32_t near = -8; near <= 8; near++)
      sample_f32(&worst, op, float_of((exponent << 23) + (uint32_t)near), 0);
  return worst;
}

static uint64_t random_bits(uint64_t *state) { // splitmix64
  uint64_t z = *state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}
static double random_unit(uint64_t *state) {
  return (double)(random_bits(state) >> 11) * 0x1p-53;
}

// Any two numbers; and those whose power is neither 0 nor infinite, x near 1 or an integral y among them.
static struct worst measure_pow_f32(void) {
  struct worst worst = {0, 0, 0, 0};
  uint64_t state = 1, count = ((uint64_t)1 << 32) / stride();
  for (uint64_t i = 0; i < count; i++) {
    float x = float_of((uint32_t)random_bits(&state)), y = float_of((uint32_t)random_bits(&state));
    if (i % 5) x = fabsf(x);
    if (i % 5 == 1) x = (float)(0.75 + 0.5 * random_unit(&state));
    double wanted = 304 * random_unit(&state) - 152;
    if (i % 4) y = (float)(wanted / log2(fabs((double)x)));
    if (i % 4 == 1) y = truncf(y);
    sample_f32(&worst, OP_POW, x, y);
  }
  return worst;
}

static void sample_f64(struct worst *worst, enum op op, double x, double y) {
  double error = error_in_ulp(TYPE_F64, reference(op, (long double)x, (long double)y), mathlib_f64(op, x, y));
  worst->samples++;
  if (error > worst->error || isinf(error)) *worst = (struct worst){error, x, y, worst->samples};
}

static double double_of(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

// Any number; numbers from -end to end, where the function is neither constant nor infinite; numbers near 1;
// and all around each power of two.
static struct worst measure_f64(enum op op, double end) {
  struct worst worst = {0, 0, 0, 0};
  uint64_t state = 3, count = ((uint64_t)1 << 30) / stride();
  for (uint64_t i = 0; i < count; i++) {
    sample_f64(&worst, op, double_of(random_bits(&state)), 0);
    sample_f64(&worst, op, end * (2 * random_unit(&state) - 1), 0);
    sample_f64(&worst, op, 2 * random_unit(&state), 0);
  }
  for (uint64_t exponent = 0; exponent < 4096; exponent++)
    for (int near = -8; near <= 8; near++)
      sample_f64(&worst, op, double_of((exponent << 52) + (uint64_t)(int64_t)near), 0);
  return worst;
}

static struct worst measure_pow_f64(void) {
  struct worst worst = {0, 0, 0, 0};
  uint64_t state = 5, count = ((uint64_t)1 << 31) / stride();
  for (uint64_t i = 0; i < count; i++) {
    double x = double_of(random_bits(&state)), y = double_of(random_bits(&state));
    if (i % 5) x = fabs(x);
    if (i % 5 == 1) x = 0.75 + 0.5 * random_unit(&state);
    double wanted = 2160 * random_unit(&state) - 1080;
    if (i % 4) y = wanted / log2(fabs(x));
    if (i % 4 == 1) y = trunc(y);
    sample_f64(&worst, OP_POW, x, y);
  }
  return worst;
}

static void check(const char *type, enum op op, struct worst worst, double bound) {
  if (getenv("RED_MATH_TABLE"))
    printf("| %s | %s | %.3f | %g | %llu |\n", op_table[op].spelling, type, worst.error, bound,
           (unsigned long long)worst.samples);
  cr_expect(worst.error <= bound, "%s of %s is off by %g ulp at %a, %a", op_table[op].spelling, type,
            worst.error, worst.x, worst.y);
}

Test(mathlib, f32_errors_are_as_stated, .timeout = 3600) {
  check("f32", OP_EXP, measure_f32(OP_EXP), 1);
  check("f32", OP_EXP2, measure_f32(OP_EXP2), 1);
  check("f32", OP_LOG, measure_f32(OP_LOG), 1);
  check("f32", OP_LOG2, measure_f32(OP_LOG2), 1);
  check("f32", OP_SIN, measure_f32(OP_SIN), 1);
  check("f32", OP_COS, measure_f32(OP_COS), 1);
  check("f32", OP_TANH, measure_f32(OP_TANH), 1);
  check("f32", OP_ERF, measure_f32(OP_ERF), 1);
  check("f32", OP_RSQRT, measure_f32(OP_RSQRT), 0.501);
  check("f32", OP_POW, measure_pow_f32(), 1);
}

Test(mathlib, f64_errors_are_as_stated, .timeout = 3600) {
  check("f64", OP_EXP, measure_f64(OP_EXP, 745), 1);
  check("f64", OP_EXP2, measure_f64(OP_EXP2, 1075), 1);
  check("f64", OP_LOG, measure_f64(OP_LOG, 4), 1);
  check("f64", OP_LOG2, measure_f64(OP_LOG2, 4), 1);
  check("f64", OP_SIN, measure_f64(OP_SIN, 100), 1);
  check("f64", OP_COS, measure_f64(OP_COS, 100), 1);
  check("f64", OP_TANH, measure_f64(OP_TANH, 19), 1);
  check("f64", OP_ERF, measure_f64(OP_ERF, 6), 1);
  check("f64", OP_RSQRT, measure_f64(OP_RSQRT, 4), 0.501);
  check("f64", OP_POW, measure_pow_f64(), 1);
}

// --- Exact cases
// ---------------------------------------------------------------------------------------------------------------

static const double edges[] = {0.0,
                               -0.0,
                               1.0,
                               -1.0,
                               0.5,
                               -0.5,
                               2,
                               -2,
                               3,
                               -3,
                               1.5,
                               -1.5,
                               INFINITY,
                               -INFINITY,
                               NAN,
                               0x1p-149,
                               -0x1p-149,
                               0x1p-126,
                               0x1.fffffep127,
                               -0x1.fffffep127,
                               16777215,
                               -16777215,
                               16777216,
                               0x1.fffffep-1,
                               0x1.000002p0,
                               8388607.5,
                               -8388607.5};
enum { EDGE_COUNT = sizeof edges / sizeof *edges };

Test(mathlib, f32_edges) {
  for (int i = 0; i < EDGE_COUNT; i++)
    for (int k = 0; k < EDGE_COUNT; k++)
      for (int f = 0; f < FUNCTION_COUNT; f++) {
        enum op op = functions[f];
        float x = (float)edges[i], y = (float)edges[k];
        double got = (double)mathlib_f32(op, x, y);
        cr_expect(error_in_ulp(TYPE_F32, reference(op, x, y), got) <= 1, "%s(%a, %a) is %a",
                  op_table[op].spelling, x, y, got);
      }
}

Test(mathlib, what_is_exact_is_exact) {
  cr_expect(mathlib_f32(OP_EXP, 0, 0) == 1 && mathlib_f32(OP_COS, 0, 0) == 1 &&
            mathlib_f32(OP_ERF, 5, 0) == 1);
  cr_expect(mathlib_f32(OP_LOG, 1, 0) == 0 && mathlib_f32(OP_TANH, 20, 0) == 1 &&
            mathlib_f32(OP_TANH, -20, 0) == -1);
  for (int n = -149; n < 128; n++) {
    cr_expect(mathlib_f32(OP_EXP2, (float)n, 0) == ldexpf(1, n));
    cr_expect(mathlib_f32(OP_LOG2, ldexpf(1, n), 0) == n);
    cr_expect(mathlib_f32(OP_POW, 2, (float)n) == ldexpf(1, n));
  }
  for (int n = -1074; n < 1024; n++) {
    cr_expect(mathlib_f64(OP_EXP2, n, 0) == ldexp(1, n));
    cr_expect(mathlib_f64(OP_LOG2, ldexp(1, n), 0) == n);
    cr_expect(mathlib_f64(OP_POW, 2, n) == ldexp(1, n));
  }
  for (int n = 1; n < 20; n++) cr_expect(mathlib_f64(OP_POW, 3, n) == (double)powl(3, n));
}

// The ends of the numbers: the largest argument with a finite exp, the smallest with one above 0, and their
// neighbours.
Test(mathlib, f32_thresholds) {
  cr_expect(isfinite(mathlib_f32(OP_EXP, 0x1.62e42ep6f, 0)) && isinf(mathlib_f32(OP_EXP, 0x1.62e430p6f, 0)));
  cr_expect(mathlib_f32(OP_EXP, -0x1.9fe368p6f, 0) == 0x1p-149f &&
            mathlib_f32(OP_EXP, -0x1.9fe36ap6f, 0) == 0);
  cr_expect(isfinite(mathlib_f32(OP_EXP2, 0x1.fffffep6f, 0)) && isinf(mathlib_f32(OP_EXP2, 128, 0)));
  cr_expect(mathlib_f32(OP_EXP2, -0x1.2bfffep7f, 0) == 0x1p-149f && mathlib_f32(OP_EXP2, -150, 0) == 0);
}

// --- IR
// ------------------------------------------------------------------------------------------------------------------------

// Evaluates an expression of variables whose `subst` is a constant.
static struct value evaluate(const struct ir_expr *e) {
  if (e->op == OP_VAR) return evaluate(e->var->subst);
  if (e->op == OP_CONST)
    return type_is_float(e->type) ? value_float(e->type, e->number) : value_int(e->type, e->integer);
  struct value args[3], out = {0};
  for (uint32_t i = 0; i < e->count; i++) args[i] = evaluate(e->args[i]);
  cr_assert(arith_fold(e->op, e->type, args, e->count, &out), "%s", op_table[e->op].spelling);
  return out;
}

static struct ir_expr *constant(struct arena *arena, struct value v) {
  return type_is_float(v.type) ? ir_float(arena, v.type, v.number) : ir_int(arena, v.type, v.integer);
}

static struct value call(struct arena *arena, const struct ir_function *function, struct value x,
                         struct value y) {
  list_at(&function->params, struct ir_var, 0)->subst = constant(arena, x);
  if (function->params.count > 1) list_at(&function->params, struct ir_var, 1)->subst = constant(arena, y);
  for (uint32_t i = 0; i < function->lets.count; i++) {
    struct ir_stmt *let = list_at(&function->lets, struct ir_stmt, i);
    let->var->subst = constant(arena, evaluate(let->value));
  }
  return evaluate(list_at(&function->results, struct ir_expr, 0));
}

static uint64_t value_bits(struct value v) {
  uint64_t bits;
  memcpy(&bits, &v.number, sizeof bits);
  return bits;
}

static void check_ir(enum op op, enum type type) {
  uint64_t state = 7;
  struct arena arena;
  arena_init(&arena);
  for (int i = 0; i < 2000; i++) {
    const struct ir_function *function = mathlib_function(&arena, op, type);
    uint64_t a = random_bits(&state), b = random_bits(&state);
    bool is_f32 = type == TYPE_F32;
    struct value x = value_float(type, i < EDGE_COUNT ? edges[i]
                                       : i % 4 == 1   ? 40 * random_unit(&state) - 20
                                       : is_f32       ? (double)float_of((uint32_t)a)
                                                      : double_of(a));
    struct value y =
        value_float(type, i % 2 ? (is_f32 ? (double)float_of((uint32_t)b) : double_of(b)) : 1.25 * i - 60);
    struct value args[2] = {x, y}, wanted, got = call(&arena, function, x, y);
    cr_assert(mathlib_evaluate(op, type, args, &wanted));
    cr_assert(got.type == type &&
                  ((isnan(got.number) && isnan(wanted.number)) || value_bits(got) == value_bits(wanted)),
              "%s(%a, %a): IR %a, value %a", op_table[op].spelling, x.number, y.number, got.number,
              wanted.number);
    arena_destroy(&arena);
    arena_init(&arena);
  }
  arena_destroy(&arena);
}

Test(mathlib, ir_gives_the_bits_of_the_values) {
  for (int f = 0; f < FUNCTION_COUNT; f++) {
    check_ir(functions[f], TYPE_F32);
    check_ir(functions[f], TYPE_F64);
  }
}

Test(mathlib, exp_below_has_the_bits_of_exp) {
  struct arena arena;
  uint64_t state = 11;
  arena_init(&arena);
  const float ends[] = {-0.0f, -0x1p-149f, -87.33655f, -88.72f, -103.97208f, -103.9721f, -104, -105, -INFINITY, -0.34657359f, -0.34657362f};
  for (uint32_t i = 0; i < 20000; i++) {
    float x = i < sizeof ends / sizeof *ends ? ends[i] : i % 2 ? (float)(-110 * random_unit(&state)) : -fabsf(float_of((uint32_t)random_bits(&state)));
    float wanted = mathlib_f32(OP_EXP, x, 0), got = mathlib_exp_below_f32(x);
    cr_assert((isnan(x) && isnan(got)) || memcmp(&wanted, &got, sizeof got) == 0, "%a: %a, wanted %a", (double)x, (double)got, (double)wanted);
    if (i >= 1000) continue;
    struct value argument = value_float(TYPE_F32, (double)x), of_ir = call(&arena, mathlib_exp_below(&arena), argument, argument);
    cr_assert((isnan(x) && isnan(of_ir.number)) || of_ir.number == (double)wanted, "%a: IR %a, wanted %a", (double)x, of_ir.number, (double)wanted);
    arena_destroy(&arena);
    arena_init(&arena);
  }
  arena_destroy(&arena);
}

Test(mathlib, other_operations_and_types_are_none_of_its_functions) {
  struct value args[2] = {value_float(TYPE_F32, 1), value_float(TYPE_F32, 1)}, out;
  cr_expect(!mathlib_has(OP_SQRT, TYPE_F32) && !mathlib_has(OP_EXP, TYPE_I32) &&
            !mathlib_has(OP_FMA, TYPE_F32));
  cr_expect(mathlib_function(NULL, OP_SQRT, TYPE_F32) == NULL);
  cr_expect(!mathlib_evaluate(OP_SQRT, TYPE_F32, args, &out));
  cr_expect(!mathlib_evaluate(OP_EXP, TYPE_F64, args, &out)); // the arguments are f32
}

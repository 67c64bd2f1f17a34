#include "compiler/arith.h"
#include "compiler/arith_scalar.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static struct value compute(enum op op, enum type type, struct value a, struct value b) {
  struct value out = {.type = TYPE_COUNT};
  cr_assert(arith_binary(op, type, a, b, &out), "%s on %s", op_table[op].spelling, type_name(type));
  return out;
}
static int64_t integers(enum op op, enum type type, int64_t a, int64_t b) {
  return compute(op, type, value_int(type, a), value_int(type, b)).integer;
}
static double floats(enum op op, enum type type, double a, double b) {
  return compute(op, type, value_float(type, a), value_float(type, b)).number;
}
static double unary(enum op op, enum type type, double a) {
  struct value out;
  cr_assert(arith_unary(op, type, value_float(type, a), &out));
  return out.number;
}
static struct value cast(enum type to, struct value a) {
  struct value out = {.type = TYPE_COUNT};
  cr_assert(arith_cast(to, a, &out), "%s to %s", type_name(a.type), type_name(to));
  cr_assert_eq(out.type, to);
  return out;
}

// The bits of a float of a narrow format: sign, exponent of `exponent_bits`, mantissa; computed from the
// definition.
static double half_by_definition(uint32_t bits, int exponent_bits, int mantissa_bits) {
  int exponent = (int)(bits >> mantissa_bits) & ((1 << exponent_bits) - 1),
      bias = (1 << (exponent_bits - 1)) - 1;
  double mantissa = (double)(bits & ((1u << mantissa_bits) - 1)), sign = bits >> 15 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return mantissa != 0 ? (double)NAN : sign * (double)INFINITY;
  if (exponent == 0) return sign * ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * ldexp(mantissa + ldexp(1, mantissa_bits), exponent - bias - mantissa_bits);
}

Test(arith, every_f16_and_bf16_by_definition) {
  for (uint32_t bits = 0; bits < 65536; bits++) {
    double f16 = half_by_definition(bits, 5, 10), bf16 = half_by_definition(bits, 8, 7);
    double got = (double)half_to_float((uint16_t)bits), got_bf = (double)bfloat_to_float((uint16_t)bits);
    cr_assert(isnan(f16) ? isnan(got) : got == f16 && signbit(got) == signbit(f16), "f16 %04x", bits);
    cr_assert(isnan(bf16) ? isnan(got_bf) : got_bf == bf16 && signbit(got_bf) == signbit(bf16), "bf16 %04x",
              bits);
    if (!isnan(f16)) cr_assert_eq(half_from_double(f16), bits, "f16 %04x", bits);
    if (!isnan(bf16)) cr_assert_eq(bfloat_from_double(bf16), bits, "bf16 %04x", bits);
    if (isnan(f16)) cr_assert_eq(half_from_double(got), bits | 0x200, "f16 NaN %04x", bits);
  }
}

// Between two neighbours: the nearer one, at the midpoint the even one; also one double beyond the midpoint.
Test(arith, f16_and_bf16_round_to_nearest_even) {
  for (uint32_t bits = 0; bits < 0x7c00; bits++) {
    double a = half_by_definition(bits, 5, 10),
           b = bits == 0x7bff ? 65536 : half_by_definition(bits + 1, 5, 10), middle = (a + b) / 2;
    cr_assert_eq(half_from_double(middle), bits + (bits & 1), "%04x", bits);
    cr_assert_eq(half_from_double(nextafter(middle, 0)), bits);
    cr_assert_eq(half_from_double(nextafter(middle, 1e9)), bits + 1);
    cr_assert_eq(half_from_double(-nextafter(middle, 1e9)), 0x8000 | (bits + 1));
  }
  for (uint32_t bits = 0; bits < 0x7f80; bits++) {
    double a = half_by_definition(bits, 8, 7),
           b = bits == 0x7f7f ? 0x1p128 : half_by_definition(bits + 1, 8, 7), middle = (a + b) / 2;
    cr_assert_eq(bfloat_from_double(middle), bits + (bits & 1), "%04x", bits);
    cr_assert_eq(bfloat_from_double(nextafter(middle, 0)), bits);
    cr_assert_eq(bfloat_from_double(nextafter(middle, 1e39)), bits + 1);
  }
  cr_assert_eq(half_from_double(1e300), 0x7c00);
  cr_assert_eq(half_from_double(-1e300), 0xfc00);
  cr_assert_eq(half_from_double(0x1p-1074), 0);
  cr_assert_eq(half_from_double(-0.0), 0x8000);
}

// Every operation on every pair of 8-bit integers, against 128-bit arithmetic.
Test(arith, eight_bits_exhaustively) {
  for (int is_signed = 0; is_signed < 2; is_signed++) {
    enum type type = is_signed ? TYPE_I8 : TYPE_U8;
    int lo = is_signed ? -128 : 0, hi = is_signed ? 127 : 255;
    for (int a = lo; a <= hi; a++)
      for (int b = lo; b <= hi; b++) {
        int div = b == 0 ? -1 : a / b, mod = b == 0 ? a : a % b, count = b & 7;
        struct {
          enum op op;
          int value;
        } table[] = {{OP_ADD, a + b},
                     {OP_SUB, a - b},
                     {OP_MUL, a * b},
                     {OP_DIV, div},
                     {OP_MOD, mod},
                     {OP_MIN, a < b ? a : b},
                     {OP_MAX, a > b ? a : b},
                     {OP_AND, a & b},
                     {OP_OR, a | b},
                     {OP_XOR, a ^ b},
                     {OP_SHL, a * (1 << count)},
                     {OP_SHR, a >> count}};
        for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
          int wrapped = is_signed ? (int8_t)table[i].value : (uint8_t)table[i].value;
          cr_assert_eq(integers(table[i].op, type, a, b), wrapped, "%s %d %d", op_table[table[i].op].spelling,
                       a, b);
        }
        cr_assert_eq(integers(OP_LT, type, a, b), a < b);
        cr_assert_eq(integers(OP_LE, type, a, b), a <= b);
        cr_assert_eq(integers(OP_GT, type, a, b), a > b);
        cr_assert_eq(integers(OP_GE, type, a, b), a >= b);
        cr_assert_eq(integers(OP_EQ, type, a, b), a == b);
        cr_assert_eq(integers(OP_NE, type, a, b), a != b);
        struct value out, x = value_int(type, a), y = value_int(type, b);
        bool is_defined = b != 0 && !(a == -128 && b == -1);
        cr_assert_eq(arith_binary(OP_QUO, type, x, y, &out), is_defined);
        cr_assert_eq(arith_binary(OP_REM, type, x, y, &out), is_defined);
      }
  }
}

static const int64_t edges[] = {0,
                                1,
                                -1,
                                2,
                                -2,
                                3,
                                7,
                                8,
                                63,
                                64,
                                65,
                                127,
                                128,
                                255,
                                256,
                                32767,
                                32768,
                                65535,
                                2147483647,
                                -2147483648LL,
                                2147483648LL,
                                4294967295LL,
                                4294967296LL,
                                4611686018427387904LL,
                                INT64_MAX,
                                INT64_MAX - 1,
                                INT64_MIN,
                                INT64_MIN + 1};
enum { EDGES = sizeof edges / sizeof *edges };

static __int128 extend(enum type type, int64_t x) {
  return type_class_of(type) == CLASS_UNSIGNED ? (__int128)(uint64_t)x : (__int128)x;
}

Test(arith, all_widths_against_128_bits) {
  static const enum type types[] = {TYPE_I8,  TYPE_I16, TYPE_I32, TYPE_I64,  TYPE_U8,
                                    TYPE_U16, TYPE_U32, TYPE_U64, TYPE_INDEX};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++)
    for (int i = 0; i < EDGES; i++)
      for (int j = 0; j < EDGES; j++) {
        enum type type = types[t];
        int64_t a = arith_wrap(type, edges[i]), b = arith_wrap(type, edges[j]);
        __int128 x = extend(type, a), y = extend(type, b);
        cr_assert_eq(integers(OP_ADD, type, a, b), arith_wrap(type, (int64_t)(x + y)));
        cr_assert_eq(integers(OP_SUB, type, a, b), arith_wrap(type, (int64_t)(x - y)));
        cr_assert_eq(integers(OP_MUL, type, a, b),
                     arith_wrap(type, (int64_t)((unsigned __int128)x * (unsigned __int128)y)));
        cr_assert_eq(integers(OP_DIV, type, a, b), arith_wrap(type, y == 0 ? -1 : (int64_t)(x / y)));
        cr_assert_eq(integers(OP_MOD, type, a, b), arith_wrap(type, y == 0 ? a : (int64_t)(x % y)));
        cr_assert_eq(integers(OP_MIN, type, a, b), x < y ? a : b);
        cr_assert_eq(integers(OP_MAX, type, a, b), x < y ? b : a);
        int count = (int)(b & (int64_t)(type_bits(type) - 1));
        cr_assert_eq(integers(OP_SHL, type, a, b), arith_wrap(type, (int64_t)((uint64_t)a << count)));
        cr_assert_eq(integers(OP_SHR, type, a, b), arith_wrap(type, (int64_t)(x >> count)));
        struct value out;
        cr_assert(arith_unary(OP_NEG, type, value_int(type, a), &out));
        cr_assert_eq(out.integer, arith_wrap(type, (int64_t)-x));
        cr_assert(arith_unary(OP_ABS, type, value_int(type, a), &out));
        cr_assert_eq(out.integer, arith_wrap(type, (int64_t)(x < 0 ? -x : x)));
        cr_assert(arith_unary(OP_NOT, type, value_int(type, a), &out));
        cr_assert_eq(out.integer, arith_wrap(type, ~a));
      }
}

Test(arith, bool_logic) {
  struct value out, f = value_int(TYPE_BOOL, 0), t = value_int(TYPE_BOOL, 8);
  cr_assert_eq(t.integer, 1);
  cr_assert(arith_unary(OP_NOT, TYPE_BOOL, t, &out) && out.integer == 0);
  cr_assert(arith_binary(OP_AND, TYPE_BOOL, t, f, &out) && out.integer == 0);
  cr_assert(arith_binary(OP_OR, TYPE_BOOL, t, f, &out) && out.integer == 1);
  cr_assert(arith_binary(OP_XOR, TYPE_BOOL, t, t, &out) && out.integer == 0);
  cr_assert(!arith_binary(OP_ADD, TYPE_BOOL, t, t, &out));
}

Test(arith, integer_conversions) {
  cr_expect_eq(cast(TYPE_I8, value_int(TYPE_I32, 200)).integer, -56);
  cr_expect_eq(cast(TYPE_U8, value_int(TYPE_I32, -1)).integer, 255);
  cr_expect_eq(cast(TYPE_U64, value_int(TYPE_I32, -1)).integer, -1);
  cr_expect_eq(cast(TYPE_I64, value_int(TYPE_U32, -1)).integer, 4294967295LL);
  cr_expect_eq(cast(TYPE_BOOL, value_int(TYPE_I32, 256)).integer, 1);
  cr_expect_eq(cast(TYPE_I32, value_int(TYPE_BOOL, 1)).integer, 1);
  cr_expect_eq(cast(TYPE_F32, value_int(TYPE_I32, 16777217)).number, 16777216);
  cr_expect_eq(cast(TYPE_F32, value_int(TYPE_U64, -1)).number, 18446744073709551616.0);
  cr_expect_eq(cast(TYPE_F64, value_int(TYPE_I64, INT64_MIN)).number, -0x1p63);
  // One rounding: through f64 it would tie to 2^62 + 2^39.
  cr_expect_eq(cast(TYPE_F32, value_int(TYPE_I64, (1LL << 62) + (1LL << 38) + 1)).number, 0x1p62 + 0x1p39);
  struct value out;
  cr_expect(!arith_cast(TYPE_C64, value_int(TYPE_I32, 1), &out));
}

Test(arith, floats_to_integers_saturate) {
  static const enum type types[] = {TYPE_I8, TYPE_I16, TYPE_I32, TYPE_I64,
                                    TYPE_U8, TYPE_U16, TYPE_U32, TYPE_U64};
  static const double numbers[] = {0,
                                   -0.0,
                                   0.9,
                                   -0.9,
                                   1.5,
                                   -1.5,
                                   127.9,
                                   128,
                                   -128.9,
                                   -129,
                                   255.5,
                                   256,
                                   32768,
                                   65536,
                                   2147483647.5,
                                   2147483648.0,
                                   -2147483648.5,
                                   -2147483649.0,
                                   4294967295.5,
                                   4294967296.0,
                                   0x1p62,
                                   0x1p63,
                                   -0x1p63,
                                   0x1p64,
                                   1e300,
                                   -1e300};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    enum type type = types[t];
    bool is_signed = type_is_signed(type);
    uint32_t bits = type_bits(type);
    long double lo = is_signed ? -ldexpl(1, (int)bits - 1) : 0, hi = ldexpl(1, (int)bits - is_signed) - 1;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
      long double x = truncl((long double)numbers[i]);
      x = x < lo ? lo : x > hi ? hi : x;
      int64_t expected = x < 0 ? (int64_t)x : (int64_t)(uint64_t)x;
      cr_expect_eq(cast(type, value_float(TYPE_F64, numbers[i])).integer, expected, "%s %g", type_name(type),
                   numbers[i]);
    }
    cr_expect_eq(cast(type, value_float(TYPE_F32, (double)NAN)).integer, 0);
    cr_expect_eq(cast(type, value_float(TYPE_F32, (double)INFINITY)).integer,
                 cast(type, value_float(TYPE_F64, 1e300)).integer);
    cr_expect_eq(cast(type, value_float(TYPE_F32, -(double)INFINITY)).integer,
                 cast(type, value_float(TYPE_F64, -1e300)).integer);
  }
  cr_expect_eq(cast(TYPE_BOOL, value_float(TYPE_F32, (double)NAN)).integer, 1);
  cr_expect_eq(cast(TYPE_BOOL, value_float(TYPE_F32, -0.0)).integer, 0);
}

Test(arith, f32_rounds_in_float) {
  cr_expect_eq(floats(OP_ADD, TYPE_F32, 16777216, 1), 16777216);
  cr_expect_eq(floats(OP_ADD, TYPE_F64, 16777216, 1), 16777217);
  float third = 1.0f / 3.0f;
  cr_expect_eq(floats(OP_DIV, TYPE_F32, 1, 3), (double)third);
  cr_expect_eq(floats(OP_MUL, TYPE_F32, 0x1p-126, 0x1p-24), 0); // halfway to the least subnormal, to even
  cr_expect_eq(floats(OP_MUL, TYPE_F32, 0x1p-126, 0x1p-23), 0x1p-149);
  struct value args[3] = {value_float(TYPE_F32, 1 + 0x1p-12), value_float(TYPE_F32, 1 - 0x1p-12),
                          value_float(TYPE_F32, -1)},
               out;
  cr_assert(arith_fold(OP_FMA, TYPE_F32, args, 3, &out)); // one rounding; in two steps it is 0
  cr_expect_eq(out.number, -0x1p-24);
}

Test(arith, minimum_and_maximum) {
  static const enum type types[] = {TYPE_F32, TYPE_F64};
  double nan = (double)NAN;
  for (int t = 0; t < 2; t++) {
    cr_expect(isnan(floats(OP_MIN, types[t], nan, 1)) && isnan(floats(OP_MIN, types[t], 1, nan)));
    cr_expect(isnan(floats(OP_MAX, types[t], nan, 1)) && isnan(floats(OP_MAX, types[t], 1, nan)));
    cr_expect_eq(floats(OP_FMIN, types[t], nan, 1), 1);
    cr_expect_eq(floats(OP_FMAX, types[t], 1, nan), 1);
    cr_expect(isnan(floats(OP_FMAX, types[t], nan, nan)));
    for (int swap = 0; swap < 2; swap++) {
      double a = swap ? -0.0 : 0.0, b = swap ? 0.0 : -0.0;
      cr_expect(signbit(floats(OP_MIN, types[t], a, b)) && !signbit(floats(OP_MAX, types[t], a, b)));
      cr_expect(signbit(floats(OP_FMIN, types[t], a, b)) && !signbit(floats(OP_FMAX, types[t], a, b)));
    }
  }
}

Test(arith, comparisons_with_nan) {
  struct value nan = value_float(TYPE_F32, (double)NAN), one = value_float(TYPE_F32, 1);
  static const enum op ops[] = {OP_EQ, OP_NE, OP_LT, OP_LE, OP_GT, OP_GE};
  for (int i = 0; i < 6; i++) {
    cr_expect_eq(compute(ops[i], TYPE_F32, nan, one).integer, ops[i] == OP_NE);
    cr_expect_eq(compute(ops[i], TYPE_F32, nan, nan).integer, ops[i] == OP_NE);
    cr_expect_eq(compute(ops[i], TYPE_F32, nan, one).type, TYPE_BOOL);
  }
}

Test(arith, functions) {
  cr_expect_eq(unary(OP_ROUND, TYPE_F32, 2.5), 3);
  cr_expect_eq(unary(OP_ROUND, TYPE_F64, -2.5), -3);
  cr_expect_eq(unary(OP_FLOOR, TYPE_F32, -0.5), -1);
  cr_expect(signbit(unary(OP_CEIL, TYPE_F32, -0.5)));
  cr_expect_eq(unary(OP_TRUNC, TYPE_F64, -1.9), -1);
  cr_expect_eq(unary(OP_RSQRT, TYPE_F32, 0), (double)INFINITY);
  cr_expect_eq(unary(OP_RSQRT, TYPE_F32, -0.0), -(double)INFINITY);
  cr_expect_eq(unary(OP_EXP2, TYPE_F32, -149), 0x1p-149);
  cr_expect(isnan(unary(OP_SQRT, TYPE_F32, -1)));
  cr_expect(!signbit(unary(OP_ABS, TYPE_F64, -0.0)));
  for (int i = 0; i < 1000; i++) { // the root is rounded once
    float x = ldexpf(1.0f + (float)i * 0.00101f, i % 90 - 45);
    cr_expect_eq(unary(OP_SQRT, TYPE_F32, (double)x), (double)sqrtf(x));
    cr_expect_eq(unary(OP_EXP, TYPE_F32, (double)(float)i * 0.01),
                 (double)(float)exp((double)(float)((float)i * 0.01)));
  }
  struct value out;
  cr_expect(arith_unary(OP_ISNAN, TYPE_BOOL, value_float(TYPE_F64, (double)NAN), &out) && out.integer == 1 &&
            out.type == TYPE_BOOL);
  cr_expect(arith_unary(OP_ISINF, TYPE_BOOL, value_float(TYPE_F64, -(double)INFINITY), &out) &&
            out.integer == 1);
  cr_expect(!arith_unary(OP_SQRT, TYPE_I32, value_int(TYPE_I32, 4), &out));
  cr_expect(!arith_unary(OP_LOAD, TYPE_F32, value_float(TYPE_F32, 4), &out));
}

Test(arith, bitcasts) {
  struct value out;
  cr_assert(arith_bitcast(TYPE_I32, value_float(TYPE_F32, -2), &out) && out.integer == (int32_t)0xc0000000);
  cr_assert(arith_bitcast(TYPE_U32, value_float(TYPE_F32, -2), &out) && out.integer == 0xc0000000);
  cr_assert(arith_bitcast(TYPE_F32, value_int(TYPE_U32, 0x7f800000), &out) && isinf(out.number));
  cr_assert(arith_bitcast(TYPE_F64, value_int(TYPE_I64, 1), &out) && out.number == 0x1p-1074);
  cr_assert(arith_bitcast(TYPE_I16, value_float(TYPE_F16, -1), &out) && out.integer == (int16_t)0xbc00);
  cr_assert(arith_bitcast(TYPE_BF16, value_int(TYPE_U16, 0x3f80), &out) && out.number == 1);
  cr_assert(arith_bitcast(TYPE_F32, value_int(TYPE_U32, 0x7fc00001), &out) && isnan(out.number));
  cr_assert(!arith_bitcast(TYPE_F32, value_int(TYPE_U32, 0x7f800001), &out)); // signalling
  cr_assert(!arith_bitcast(TYPE_F64, value_int(TYPE_U32, 1), &out));          // other width
}

Test(arith, select_takes_either) {
  struct value args[3] = {value_int(TYPE_BOOL, 1), value_int(TYPE_I8, 5), value_int(TYPE_I8, 6)}, out;
  cr_assert(arith_fold(OP_SELECT, TYPE_I8, args, 3, &out) && out.integer == 5);
  args[0].integer = 0;
  cr_assert(arith_fold(OP_SELECT, TYPE_I8, args, 3, &out) && out.integer == 6);
}

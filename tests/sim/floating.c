// Floating-point instructions: rounding modes, flushing, NaN, and the narrow formats.
#include "tests/sim/eval.h"

#include <fenv.h>
#include <math.h>

#define COUNT 4096

static const uint32_t singles[] = {0,          0x80000000, 1,          0x80000001, 0x7fffff,
                                   0x807fffff, 0x800000,   0x3f800000, 0xbf800000, 0x7f7fffff,
                                   0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001,
                                   0xffffffff, 0x3f7fffff, 0x33800000, 0x4b800001, 0x40490fdb};
#define SINGLES (sizeof singles / sizeof *singles)
static const uint64_t doubles[] = {0,
                                   UINT64_C(1) << 63,
                                   1,
                                   0x000fffffffffffff,
                                   0x0010000000000000,
                                   0x3ff0000000000000,
                                   0xbff0000000000001,
                                   0x7fefffffffffffff,
                                   0x7ff0000000000000,
                                   0xfff0000000000000,
                                   0x7ff8000000000000,
                                   0x4340000000000001,
                                   0x3ca0000000000000};
#define DOUBLES (sizeof doubles / sizeof *doubles)

static float random_float(void) {
  return ldexpf((float)(int32_t)eval_random(), (int)(eval_random() % 60) - 60);
}

static void fill_singles(void) {
  for (size_t i = 0; i < COUNT; i++) {
    bool is_edge = i < SINGLES * SINGLES;
    eval_a[i] = is_edge ? singles[i % SINGLES] : float_bits(random_float());
    eval_b[i] = is_edge ? singles[i / SINGLES] : float_bits(random_float());
    eval_c[i] = is_edge ? singles[(i * 7) % SINGLES] : float_bits(random_float());
  }
}

static void fill_doubles(void) {
  for (size_t i = 0; i < COUNT; i++) {
    bool is_edge = i < DOUBLES * DOUBLES;
    eval_a[i] = is_edge ? doubles[i % DOUBLES]
                        : double_bits(ldexp((double)(int64_t)eval_random(), (int)(eval_random() % 99) - 99));
    eval_b[i] = is_edge ? doubles[i / DOUBLES]
                        : double_bits(ldexp((double)(int64_t)eval_random(), (int)(eval_random() % 99) - 99));
    eval_c[i] = is_edge ? doubles[(i * 5) % DOUBLES]
                        : double_bits(ldexp((double)(int64_t)eval_random(), (int)(eval_random() % 99) - 99));
  }
}

// The host's own rounding, through volatile so that nothing is folded.
static float host32(char what, float x, float y, float z) {
  volatile float a = x, b = y, c = z, r = 0;
  if (what == '+') r = a + b;
  if (what == '-') r = a - b;
  if (what == '*') r = a * b;
  if (what == '/') r = a / b;
  if (what == 'f') r = fmaf(a, b, c);
  if (what == 's') r = sqrtf(a);
  if (what == 'r') r = 1 / a;
  return r;
}

static double host64(char what, double x, double y, double z) {
  volatile double a = x, b = y, c = z, r = 0;
  if (what == '+') r = a + b;
  if (what == '*') r = a * b;
  if (what == '/') r = a / b;
  if (what == 'f') r = fma(a, b, c);
  if (what == 's') r = sqrt(a);
  return r;
}

static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
static const char *const mode_names[] = {"rn", "rz", "rm", "rp"};

Test(floating, single_roundings) {
  static const struct {
    char what;
    const char *name, *operands;
  } ops[] = {{'+', "add", "%or, %ar, %br"}, {'-', "sub", "%or, %ar, %br"},      {'*', "mul", "%or, %ar, %br"},
             {'/', "div", "%or, %ar, %br"}, {'f', "fma", "%or, %ar, %br, %cr"}, {'s', "sqrt", "%or, %ar"},
             {'r', "rcp", "%or, %ar"}};
  for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
    for (int mode = 0; mode < 4; mode++) {
      char line[96];
      snprintf(line, sizeof line, "%s.%s.f32 %s;", ops[k].name, mode_names[mode], ops[k].operands);
      fill_singles();
      eval(line, 32, COUNT);
      for (size_t i = 0; i < COUNT; i++) {
        fesetround(modes[mode]);
        float want = host32(ops[k].what, as_float(eval_a[i]), as_float(eval_b[i]), as_float(eval_c[i]));
        fesetround(FE_TONEAREST);
        uint64_t bits = want == want ? float_bits(want) : 0x7fffffff;
        cr_assert(eval_o[i] == bits, "%s a=%llx b=%llx c=%llx: %llx, not %llx", line,
                  (unsigned long long)eval_a[i], (unsigned long long)eval_b[i], (unsigned long long)eval_c[i],
                  (unsigned long long)eval_o[i], (unsigned long long)bits);
      }
    }
  }
}

Test(floating, double_roundings) {
  static const struct {
    char what;
    const char *name, *operands;
  } ops[] = {{'+', "add", "%od, %ad, %bd"},
             {'*', "mul", "%od, %ad, %bd"},
             {'/', "div", "%od, %ad, %bd"},
             {'f', "fma", "%od, %ad, %bd, %cd"},
             {'s', "sqrt", "%od, %ad"}};
  for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
    for (int mode = 0; mode < 4; mode++) {
      char line[96];
      snprintf(line, sizeof line, "%s.%s.f64 %s;", ops[k].name, mode_names[mode], ops[k].operands);
      fill_doubles();
      eval(line, 64, COUNT);
      for (size_t i = 0; i < COUNT; i++) {
        fesetround(modes[mode]);
        double want = host64(ops[k].what, as_double(eval_a[i]), as_double(eval_b[i]), as_double(eval_c[i]));
        fesetround(FE_TONEAREST);
        double got = as_double(eval_o[i]);
        cr_assert(want == want ? eval_o[i] == double_bits(want) : got != got, "%s a=%a b=%a: %a, not %a",
                  line, as_double(eval_a[i]), as_double(eval_b[i]), got, want);
      }
    }
  }
}

Test(floating, flush_and_saturate) {
  cr_expect(eval_one("add.ftz.f32 %or, %ar, %br;", 32, 0x007fffff, 0x007fffff, 0) == 0);
  cr_expect(eval_one("add.f32 %or, %ar, %br;", 32, 0x007fffff, 0x007fffff, 0) == 0x00fffffe);
  cr_expect(eval_one("mul.ftz.f32 %or, %ar, %br;", 32, 0x00800000, 0xbf000000, 0) == 0x80000000);
  cr_expect(eval_one("mul.f32 %or, %ar, %br;", 32, 0x00800000, 0xbf000000, 0) == 0x80400000);
  cr_expect(eval_one("fma.rn.sat.f32 %or, %ar, %br, %cr;", 32, 0x40000000, 0x40000000, 0) == 0x3f800000);
  cr_expect(eval_one("fma.rn.sat.f32 %or, %ar, %br, %cr;", 32, 0x7fc00000, 0x40000000, 0) == 0);
  cr_expect(eval_one("add.sat.f32 %or, %ar, %br;", 32, 0xc0000000, 0x3f800000, 0) == 0);
  cr_expect(eval_one("abs.ftz.f32 %or, %ar;", 32, 0x80000001, 0, 0) == 0);
}

// -0 below +0; a number wins over NaN, unless .NaN asks for the contrary.
Test(floating, minimum_and_maximum) {
  cr_expect(eval_one("min.f32 %or, %ar, %br;", 32, 0, 0x80000000, 0) == 0x80000000);
  cr_expect(eval_one("max.f32 %or, %ar, %br;", 32, 0x80000000, 0, 0) == 0);
  cr_expect(eval_one("min.f32 %or, %ar, %br;", 32, 0x7fc00000, 0x3f800000, 0) == 0x3f800000);
  cr_expect(eval_one("max.f32 %or, %ar, %br;", 32, 0xbf800000, 0xffc00001, 0) == 0xbf800000);
  cr_expect(eval_one("max.f32 %or, %ar, %br;", 32, 0x7fc00000, 0xffc00001, 0) == 0x7fffffff);
  cr_expect(eval_one("max.NaN.f32 %or, %ar, %br;", 32, 0x3f800000, 0xffc00001, 0) == 0x7fffffff);
  cr_expect(eval_one("min.NaN.f16x2 %or, %ar, %br;", 32, 0x3c007e00, 0x40004000, 0) == 0x3c007fff);
  cr_expect(eval_one("min.f16x2 %or, %ar, %br;", 32, 0x3c007e00, 0x40004000, 0) == 0x3c004000);
  cr_expect(eval_one("min.f64 %od, %ad, %bd;", 64, 0x7ff8000000000000, 0x4000000000000000, 0) ==
            0x4000000000000000);
  cr_expect(eval_one("max.xorsign.abs.f32 %or, %ar, %br;", 32, 0xc0000000, 0x3f800000, 0) == 0xc0000000);
}

// As an H200 does.
Test(floating, what_a_gpu_gave) {
  cr_expect(eval_one("abs.f32 %or, %ar;", 32, 0x7fc00000, 0, 0) == 0x7fffffff);
  cr_expect(eval_one("neg.f32 %or, %ar;", 32, 0x7fc00000, 0, 0) == 0x7fffffff);
  cr_expect(eval_one("abs.f16x2 %or, %ar;", 32, 0xf800fc01, 0, 0) == 0x78007fff);
  cr_expect(eval_one("neg.bf16x2 %or, %ar;", 32, 0xff815f80, 0, 0) == 0x7fffdf80);
  cr_expect(eval_one("mul.ftz.f32 %or, %ar, %br;", 32, 0x00800000, 0xbf7fffff, 0) == 0x80000000);
  cr_expect(eval_one("mul.rm.ftz.f32 %or, %ar, %br;", 32, 0x00800000, 0xbf7fffff, 0) == 0x80000000);
  cr_expect(eval_one("mul.ftz.f16x2 %or, %ar, %br;", 32, 0x040033ff, 0xbbffffff, 0) == 0x80007fff);
  cr_expect(eval_one("mul.ftz.sat.f16x2 %or, %ar, %br;", 32, 0x84000200, 0xbbff83ff, 0) == 0);
  cr_expect(eval_one("fma.rn.ftz.f16x2 %or, %ar, %br, %cr;", 32, 0xfe05bbff, 0xbbff8400, 0x7a000001) == 0x7fff0000);
  cr_expect(eval_one("fma.rn.ftz.f16x2 %or, %ar, %br, %cr;", 32, 0x8401b801, 0x040157ff, 0x0400bbff) == 0x0400d410);
  cr_expect(eval_one("testp.normal.f32 %op, %ar; selp.b32 %or, 1, 0, %op;", 32, 0x80000000, 0, 0) == 1);
  cr_expect(eval_one("testp.normal.f32 %op, %ar; selp.b32 %or, 1, 0, %op;", 32, 1, 0, 0) == 0);
}

// A NaN goes through operations on doubles, and conversions from and to them, with its sign and its leading bits.
Test(floating, not_a_number_as_a_gpu_has_it) {
  const uint64_t signaling = UINT64_C(0x7ff0000000000001), quiet = UINT64_C(0x7ff8000000000001);
  cr_expect(eval_one("add.f64 %od, %ad, %bd;", 64, UINT64_C(0xc0e0000000000000), signaling, 0) == quiet);
  cr_expect(eval_one("min.f64 %od, %ad, %bd;", 64, UINT64_C(0x7ff8000000000000), quiet, 0) == quiet);
  cr_expect(eval_one("neg.f64 %od, %ad;", 64, signaling, 0, 0) == quiet);
  cr_expect(eval_one("sqrt.rn.f64 %od, %ad;", 64, signaling, 0, 0) == quiet);
  cr_expect(eval_one("cvt.rni.f64.f64 %od, %ad;", 64, signaling, 0, 0) == quiet);
  cr_expect(eval_one("cvt.rn.f32.f64 %or, %ad;", 32, signaling, 0, 0) == 0x7fc00000);
  cr_expect(eval_one("cvt.rn.f16.f64 %oh, %ad;", 16, signaling, 0, 0) == 0x7e00);
  cr_expect(eval_one("cvt.f64.f32 %od, %ar;", 64, 0x7fc00000, 0, 0) == UINT64_C(0x7ff8000000000000));
  cr_expect(eval_one("cvt.ftz.f64.f32 %od, %ar;", 64, 0x7fc00000, 0, 0) == UINT64_C(0x7fffffffe0000000));
  cr_expect(eval_one("cvt.f64.f16 %od, %ah;", 64, 0xfc01, 0, 0) == UINT64_C(0xfff8040000000000));
  cr_expect(eval_one("cvt.f64.bf16 %od, %ah;", 64, 0xff81, 0, 0) == UINT64_C(0xfff8200000000000));
  cr_expect(eval_one("rsqrt.approx.ftz.f64 %od, %ad;", 64, UINT64_C(0xc3e0000000000001), 0, 0) ==
            UINT64_C(0x7fffffff00000000));
}

Test(floating, comparisons) {
  static const char *const names[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                      "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    char line[128];
    snprintf(line, sizeof line, "setp.%s.f32 %%op, %%ar, %%br; selp.b32 %%or, 1, 0, %%op;", names[k]);
    fill_singles();
    eval(line, 32, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
      float a = as_float(eval_a[i]), b = as_float(eval_b[i]);
      bool is_nan = a != a || b != b, want = false;
      switch (k % 14) {
      case 0: want = a == b; break;
      case 1: want = !is_nan && a != b; break;
      case 2: want = a < b; break;
      case 3: want = a <= b; break;
      case 4: want = a > b; break;
      case 5: want = a >= b; break;
      case 6: want = is_nan || a == b; break;
      case 7: want = is_nan || a != b; break;
      case 8: want = is_nan || a < b; break;
      case 9: want = is_nan || a <= b; break;
      case 10: want = is_nan || a > b; break;
      case 11: want = is_nan || a >= b; break;
      case 12: want = !is_nan; break;
      case 13: want = is_nan; break;
      }
      cr_assert(eval_o[i] == want, "%s %a %a", names[k], a, b);
    }
  }
}

// Out of range clamps; NaN gives zero, or the smallest integer where a side has 64 bits.
Test(floating, to_integer) {
  cr_expect(eval_one("cvt.rzi.s32.f32 %or, %ar;", 32, float_bits(-2.75f), 0, 0) == (uint32_t)-2);
  cr_expect(eval_one("cvt.rmi.s32.f32 %or, %ar;", 32, float_bits(-2.25f), 0, 0) == (uint32_t)-3);
  cr_expect(eval_one("cvt.rpi.s32.f32 %or, %ar;", 32, float_bits(2.25f), 0, 0) == 3);
  cr_expect(eval_one("cvt.rni.s32.f32 %or, %ar;", 32, float_bits(2.5f), 0, 0) == 2);
  cr_expect(eval_one("cvt.rni.s32.f32 %or, %ar;", 32, float_bits(3.5f), 0, 0) == 4);
  cr_expect(eval_one("cvt.rzi.s32.f32 %or, %ar;", 32, float_bits(1e20f), 0, 0) == 0x7fffffff);
  cr_expect(eval_one("cvt.rzi.s32.f32 %or, %ar;", 32, float_bits(-1e20f), 0, 0) == 0x80000000);
  cr_expect(eval_one("cvt.rzi.u32.f32 %or, %ar;", 32, float_bits(-5.f), 0, 0) == 0);
  cr_expect(eval_one("cvt.rzi.u32.f32 %or, %ar;", 32, float_bits(INFINITY), 0, 0) == 0xffffffff);
  cr_expect(eval_one("cvt.rzi.s32.f32 %or, %ar;", 32, 0x7fc00000, 0, 0) == 0);
  cr_expect(eval_one("cvt.rzi.s32.f64 %or, %ad;", 32, 0x7ff8000000000000, 0, 0) == 0x80000000);
  cr_expect(eval_one("cvt.rzi.u64.f32 %od, %ar;", 64, float_bits(1e19f), 0, 0) == (uint64_t)1e19f);
  cr_expect(eval_one("cvt.rzi.u8.f32 %or, %ar;", 32, float_bits(300.f), 0, 0) == 255);
  cr_expect(eval_one("cvt.rzi.s8.f32 %or, %ar;", 32, float_bits(-300.f), 0, 0) == (uint32_t)-128);
  cr_expect(eval_one("cvt.rzi.s16.f16 %oh, %ah;", 16, 0x7bff, 0, 0) == 32767);
}

Test(floating, from_integer) {
  cr_expect(eval_one("cvt.rn.f32.s32 %or, %ar;", 32, 0x01000001, 0, 0) == float_bits(16777216.f));
  cr_expect(eval_one("cvt.rp.f32.s32 %or, %ar;", 32, 0x01000001, 0, 0) == float_bits(16777218.f));
  cr_expect(eval_one("cvt.rz.f32.u64 %or, %ad;", 32, UINT64_MAX, 0, 0) == 0x5f7fffff);
  cr_expect(eval_one("cvt.rn.f32.u64 %or, %ad;", 32, UINT64_C(0x8000008000000001), 0, 0) == 0x5f000001);
  cr_expect(eval_one("cvt.rn.f64.u64 %od, %ad;", 64, UINT64_MAX, 0, 0) ==
            double_bits(18446744073709551616.0));
  cr_expect(eval_one("cvt.rz.f64.s64 %od, %ad;", 64, INT64_MAX, 0, 0) == 0x43dfffffffffffff);
  cr_expect(eval_one("cvt.rn.f16.s32 %oh, %ar;", 16, 65520, 0, 0) == 0x7c00);
  cr_expect(eval_one("cvt.rz.f16.s32 %oh, %ar;", 16, 65520, 0, 0) == 0x7bff);
  cr_expect(eval_one("cvt.rni.f32.f32 %or, %ar;", 32, float_bits(-0.5f), 0, 0) == 0x80000000);
  cr_expect(eval_one("cvt.sat.f32.f32 %or, %ar;", 32, float_bits(1.5f), 0, 0) == 0x3f800000);
}

// ---- Narrow formats
// ----------------------------------------------------------------------------------------

struct narrow {
  const char *name;
  int fraction, exponent;
};
static const struct narrow half = {"f16", 10, 5}, bfloat = {"bf16", 7, 8};

// The value of a pattern, from its definition.
static double narrow_value(struct narrow format, uint32_t bits) {
  int bias = (1 << (format.exponent - 1)) - 1,
      exponent = (int)(bits >> format.fraction) & ((1 << format.exponent) - 1);
  int fraction = (int)bits & ((1 << format.fraction) - 1);
  double magnitude = exponent ? (1 + (double)fraction / (1 << format.fraction)) * pow(2, exponent - bias)
                              : (double)fraction / (1 << format.fraction) * pow(2, 1 - bias);
  if (exponent == (1 << format.exponent) - 1) magnitude = fraction ? NAN : INFINITY;
  return bits >> 15 ? -magnitude : magnitude;
}

static void widen_all(struct narrow format) {
  char line[64];
  snprintf(line, sizeof line, "cvt.f32.%s %%or, %%ah;", format.name);
  for (uint32_t i = 0; i < 65536; i++) eval_a[i] = i;
  eval(line, 32, 65536);
  for (uint32_t i = 0; i < 65536; i++) {
    double want = narrow_value(format, i);
    uint32_t not_a_number = format.fraction == 7 ? i << 16 : 0x7fffffff; // a bf16 is the upper half, whatever it is
    cr_assert(eval_o[i] == (want == want ? float_bits((float)want) : not_a_number), "%s %x: %llx", format.name,
              i, (unsigned long long)eval_o[i]);
  }
}

// Between each number and the next: the middle, just below and just above it, in every rounding.
static void narrow_all(struct narrow format, const char *from, const char *reg, uint64_t (*bits)(double),
                       double tiny) {
  uint32_t infinity = ((1u << format.exponent) - 1) << format.fraction;
  for (int mode = 0; mode < 2; mode++) {
    char line[64];
    snprintf(line, sizeof line, "cvt.%s.%s.%s %%oh, %s;", mode_names[mode], format.name, from, reg);
    for (int side = -1; side <= 1; side++) {
      uint32_t count = (infinity - 1) & ~255u;
      for (uint32_t i = 0; i < count; i++) {
        double low = narrow_value(format, i), high = narrow_value(format, i + 1), middle = (low + high) / 2;
        eval_a[i] = bits(side == 0 ? middle : middle + side * (high - low) * tiny);
        if (i & 1) eval_a[i] = bits(-(side == 0 ? middle : middle + side * (high - low) * tiny));
      }
      eval(line, 16, count);
      for (uint32_t i = 0; i < count; i++) {
        uint32_t want = mode == 1 || side < 0 ? i : side > 0 ? i + 1 : i + (i & 1);
        want |= i & 1 ? 0x8000 : 0;
        cr_assert(eval_o[i] == want, "%s %llx: %llx, not %x", line, (unsigned long long)eval_a[i],
                  (unsigned long long)eval_o[i], want);
      }
    }
  }
}

static uint64_t single_bits(double value) {
  return float_bits((float)value);
}

Test(floating, halves_widen) {
  widen_all(half);
  widen_all(bfloat);
}

Test(floating, halves_narrow) {
  narrow_all(half, "f32", "%ar", single_bits, 1.0 / 64);
  narrow_all(half, "f64", "%ad", double_bits, 1.0 / 4096);
  narrow_all(bfloat, "f32", "%ar", single_bits, 1.0 / 64);
  cr_expect(eval_one("cvt.rn.f16.f32 %oh, %ar;", 16, 0x7fc00000, 0, 0) == 0x7fff);
  cr_expect(eval_one("cvt.rn.bf16.f32 %oh, %ar;", 16, 0xff812345, 0, 0) == 0x7fff);
  cr_expect(eval_one("cvt.rn.f16.f32 %oh, %ar;", 16, float_bits(65519.f), 0, 0) == 0x7bff);
  cr_expect(eval_one("cvt.rn.f16.f32 %oh, %ar;", 16, float_bits(65520.f), 0, 0) == 0x7c00);
  cr_expect(eval_one("cvt.rn.f16x2.f32 %or, %ar, %br;", 32, float_bits(1.f), float_bits(2.f), 0) ==
            0x3c004000);
  cr_expect(eval_one("cvt.rn.relu.bf16x2.f32 %or, %ar, %br;", 32, float_bits(-1.f), float_bits(2.f), 0) ==
            0x00004000);
}

// The result of an exact operation is the nearest number: no neighbour is nearer.
static void nearest(struct narrow format, const char *name, char what) {
  char line[64];
  if (what == 'f')
    snprintf(line, sizeof line, "fma.rn.%s %%oh, %%ah, %%bh, %%ch;", format.name);
  else
    snprintf(line, sizeof line, "%s.%s %%oh, %%ah, %%bh;", name, format.name);
  uint32_t infinity = ((1u << format.exponent) - 1) << format.fraction;
  for (size_t i = 0; i < EVAL_MOST; i++) {
    eval_a[i] = eval_random() & 0xffff, eval_b[i] = eval_random() & 0xffff,
    eval_c[i] = eval_random() & 0xffff;
    if (i & 1) eval_b[i] = (eval_a[i] ^ (eval_random() & 0x87ff)) & 0xffff;
  }
  eval(line, 16, EVAL_MOST);
  for (size_t i = 0; i < EVAL_MOST; i++) {
    long double a = narrow_value(format, (uint32_t)eval_a[i]), b = narrow_value(format, (uint32_t)eval_b[i]);
    long double c = narrow_value(format, (uint32_t)eval_c[i]);
    // Exact in the host's 64-bit significands, but for bf16 sums far apart, where rounding twice changes
    // nothing.
    long double exact = what == '+' ? a + b : what == '*' ? a * b : a * b + c;
    uint32_t got = (uint32_t)eval_o[i];
    if (exact != exact) {
      cr_assert(got == 0x7fff, "%s %llx %llx: %x", line, (unsigned long long)eval_a[i],
                (unsigned long long)eval_b[i], got);
      continue;
    }
    uint32_t magnitude = got & 0x7fff;
    cr_assert(magnitude <= infinity);
    if (magnitude == infinity) {
      double limit = narrow_value(format, infinity - 1), step = limit - narrow_value(format, infinity - 2);
      cr_assert(fabsl(exact) >= limit + step / 2, "%s overflows", line);
      continue;
    }
    long double distance = fabsl(exact - narrow_value(format, got));
    for (int side = -1; side <= 1; side += 2) {
      if (magnitude == 0 && side < 0) continue;
      uint32_t other = got + (uint32_t)side;
      if ((other & 0x7fff) >= infinity) continue;
      cr_assert(distance <= fabsl(exact - narrow_value(format, other)), "%s %llx %llx %llx: %x", line,
                (unsigned long long)eval_a[i], (unsigned long long)eval_b[i], (unsigned long long)eval_c[i],
                got);
    }
  }
}

Test(floating, halves_add_and_multiply) {
  nearest(half, "add", '+');
  nearest(half, "mul", '*');
  nearest(half, "fma", 'f');
  nearest(bfloat, "add", '+');
  nearest(bfloat, "mul", '*');
  nearest(bfloat, "fma", 'f');
}

// Two singles in one register of 64 bits, as sm_100 has them.
Test(floating, pairs_of_singles) {
  uint64_t a = float_bits(1.5f) | float_bits(-2.f) << 32, b = float_bits(3.f) | float_bits(0.25f) << 32;
  uint64_t c = float_bits(1.f) | float_bits(8.f) << 32;
  cr_expect(eval_one("fma.rn.f32x2 %od, %ad, %bd, %cd;", 64, a, b, c) ==
            (float_bits(5.5f) | float_bits(7.5f) << 32));
  cr_expect(eval_one("add.rn.f32x2 %od, %ad, %bd;", 64, a, b, 0) ==
            (float_bits(4.5f) | float_bits(-1.75f) << 32));
  cr_expect(eval_one("mul.ftz.f32x2 %od, %ad, %bd;", 64, 1, UINT64_MAX >> 1, 0) ==
            (0 | (uint64_t)0x7fffffff << 32 | 0x7fffffff));
}

Test(floating, special_functions) {
  cr_expect(eval_one("ex2.approx.f32 %or, %ar;", 32, float_bits(3.f), 0, 0) == float_bits(8.f));
  cr_expect(eval_one("lg2.approx.f32 %or, %ar;", 32, float_bits(0.125f), 0, 0) == float_bits(-3.f));
  cr_expect(eval_one("rsqrt.approx.f32 %or, %ar;", 32, float_bits(0.25f), 0, 0) == float_bits(2.f));
  cr_expect(eval_one("sin.approx.f32 %or, %ar;", 32, float_bits(1.f), 0, 0) == float_bits((float)sin(1.0)));
  cr_expect(eval_one("rcp.approx.ftz.f32 %or, %ar;", 32, 1, 0, 0) == 0x7f800000);
  cr_expect(eval_one("div.full.f32 %or, %ar, %br;", 32, float_bits(1.f), float_bits(3.f), 0) ==
            float_bits(1.f / 3.f));
  cr_expect(eval_one("tanh.approx.f32 %or, %ar;", 32, float_bits(-INFINITY), 0, 0) == float_bits(-1.f));
}

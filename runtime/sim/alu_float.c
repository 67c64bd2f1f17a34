// Single and double precision: fast handlers for the common forms, one general handler each for the rest
// (rounding modes, .ftz, .sat), and the special functions.
#include "runtime/sim/number.h"

#define HANDLER(name) static void name(struct sim_warp *warp, const struct sim_op *op, uint32_t mask)

// Fast forms: rounding to nearest, denormals kept. `isolate` cleans NaN.
#define FAST32_1(fn, expr)                                                                                   \
  HANDLER(fn) {                                                                                              \
    const sim_f32 *pa = sim_f32s(warp, op->a);                                                               \
    sim_f32 *pd = sim_f32s(warp, op->d);                                                                     \
    SIM_EACH(mask, l, {                                                                                      \
      float a = pa[l];                                                                                       \
      pd[l] = sim_canonical(expr);                                                                           \
    });                                                                                                      \
  }
#define FAST32_2(fn, expr)                                                                                   \
  HANDLER(fn) {                                                                                              \
    const sim_f32 *pa = sim_f32s(warp, op->a), *pb = sim_f32s(warp, op->b);                                  \
    sim_f32 *pd = sim_f32s(warp, op->d);                                                                     \
    SIM_EACH(mask, l, {                                                                                      \
      float a = pa[l], b = pb[l];                                                                            \
      pd[l] = sim_canonical(expr);                                                                           \
    });                                                                                                      \
  }
#define FAST32_3(fn, expr)                                                                                   \
  HANDLER(fn) {                                                                                              \
    const sim_f32 *pa = sim_f32s(warp, op->a), *pb = sim_f32s(warp, op->b), *pc = sim_f32s(warp, op->c);     \
    sim_f32 *pd = sim_f32s(warp, op->d);                                                                     \
    SIM_EACH(mask, l, {                                                                                      \
      float a = pa[l], b = pb[l], c = pc[l];                                                                 \
      pd[l] = sim_canonical(expr);                                                                           \
    });                                                                                                      \
  }
FAST32_2(add_f32, a + b)
FAST32_2(sub_f32, a - b)
FAST32_2(mul_f32, a *b)
FAST32_2(div_f32, a / b)
FAST32_3(fma_f32, fmaf(a, b, c))
FAST32_1(sqrt_f32, sqrtf(a))
FAST32_1(rcp_f32, 1.0f / a)
FAST32_2(min_f32, sim_min32(a, b, op->is_nan))
FAST32_2(max_f32, sim_max32(a, b, op->is_nan))

// abs, neg and copysign move bits. Of NaN the first two make a single's canonical one, and a double's quiet with its sign as it is.
#define BITS(fn, W, expr)                                                                                    \
  HANDLER(fn) {                                                                                              \
    const W *pa = (const W *)(void *)sim_operand(warp, op->a),                                               \
            *pb = (const W *)(void *)sim_operand(warp, op->b);                                               \
    W *pd = (W *)(void *)sim_operand(warp, op->d);                                                           \
    SIM_EACH(mask, l, {                                                                                      \
      W a = pa[l], b = pb[l];                                                                                \
      (void)b;                                                                                               \
      pd[l] = expr;                                                                                          \
    });                                                                                                      \
  }
#define SIGN32 0x80000000u
#define SIGN64 (UINT64_C(1) << 63)
static uint32_t flushed(uint32_t a, bool is_ftz) {
  return is_ftz && (a & 0x7f800000u) == 0 ? a & SIGN32 : a;
}
#define IS_NAN32(a) (((a) & ~SIGN32) > 0x7f800000u)
BITS(abs_f32, sim_u32, IS_NAN32(a) ? ~SIGN32 : flushed(a, op->is_ftz) & ~SIGN32)
BITS(neg_f32, sim_u32, IS_NAN32(a) ? ~SIGN32 : flushed(a, op->is_ftz) ^ SIGN32)
BITS(copysign_f32, sim_u32, (b & ~SIGN32) | (a & SIGN32))
#define QUIET64 (UINT64_C(1) << 51)
#define IS_NAN64(a) (((a) & ~SIGN64) > UINT64_C(0x7ff0000000000000))
BITS(abs_f64, sim_u64, IS_NAN64(a) ? a | QUIET64 : a & ~SIGN64)
BITS(neg_f64, sim_u64, IS_NAN64(a) ? a | QUIET64 : a ^ SIGN64)
BITS(copysign_f64, sim_u64, (b & ~SIGN64) | (a & SIGN64))

// What a general handler computes.
enum { ADD, SUB, MUL, DIV, FMA, SQRT, RCP, MIN, MAX };

static float compute32(unsigned what, float x, float y, float z, bool is_nan) {
  volatile float a = x, b = y, c = z, r = 0;
  switch (what) {
  case ADD: r = a + b; break;
  case SUB: r = a - b; break;
  case MUL: r = a * b; break;
  case DIV: r = a / b; break;
  case FMA: r = fmaf(a, b, c); break;
  case SQRT: r = sqrtf(a); break;
  case RCP: r = 1.0f / a; break;
  case MIN: r = sim_min32(x, y, is_nan); break;
  case MAX: r = sim_max32(x, y, is_nan); break;
  }
  return r;
}

static float saturate32(float value) {
  if (value != value || value <= 0) return 0;
  return value > 1 ? 1 : value;
}

// One operation in single precision with everything that modifiers may ask.
static float modified32(const struct sim_op *op, unsigned what, float a, float b, float c) {
  bool is_ftz = op->is_ftz;
  if (is_ftz) a = sim_flush(a), b = sim_flush(b), c = sim_flush(c);
  uint32_t sign = (sim_float_bits(a) ^ sim_float_bits(b)) & SIGN32;
  if (op->is_abs) a = fabsf(a), b = fabsf(b); // .xorsign.abs
  float r = sim_canonical(compute32(what, a, b, c, op->is_nan));
  if (op->is_abs && r == r) r = sim_float(sim_float_bits(r) | sign);
  if (is_ftz) r = sim_flush(r);
  // What is tiny before it is rounded is flushed; a product of singles is exact in a double.
  if (is_ftz && what == MUL && fabs((double)a * b) < 0x1p-126) r = copysignf(0, r);
  return op->is_saturating ? saturate32(r) : r;
}

static void general32(struct sim_warp *warp, const struct sim_op *op, uint32_t mask, unsigned what) {
  const sim_f32 *pa = sim_f32s(warp, op->a), *pb = sim_f32s(warp, op->b), *pc = sim_f32s(warp, op->c);
  sim_f32 *pd = sim_f32s(warp, op->d);
  if (op->rounding != SIM_RN) sim_rounding_set((enum sim_rounding)op->rounding);
  SIM_EACH_BIT(mask, l) pd[l] = modified32(op, what, pa[l], pb[l], pc[l]);
  if (op->rounding != SIM_RN) sim_rounding_set(SIM_RN);
}

// Two singles in a register of 64 bits.
static void pair32(struct sim_warp *warp, const struct sim_op *op, uint32_t mask, unsigned what) {
  const sim_f32 *pa = sim_f32s(warp, op->a), *pb = sim_f32s(warp, op->b), *pc = sim_f32s(warp, op->c);
  sim_f32 *pd = sim_f32s(warp, op->d);
  if (op->rounding != SIM_RN) sim_rounding_set((enum sim_rounding)op->rounding);
  SIM_EACH_BIT(mask, l) {
    for (unsigned i = 2 * l; i < 2 * l + 2; i++) pd[i] = modified32(op, what, pa[i], pb[i], pc[i]);
  }
  if (op->rounding != SIM_RN) sim_rounding_set(SIM_RN);
}

static double minmax64(double a, double b, bool is_max) {
  if (a != a || b != b) return a != a ? b : a; // of two NaNs the second
  if (a == b && a == 0) {
    uint64_t x = sim_double_bits(a), y = sim_double_bits(b);
    return sim_double(is_max ? x & y : x | y);
  }
  return is_max ? (a > b ? a : b) : a < b ? a : b;
}

static double compute64(unsigned what, double x, double y, double z) {
  volatile double a = x, b = y, c = z, r = 0;
  switch (what) {
  case ADD: r = a + b; break;
  case SUB: r = a - b; break;
  case MUL: r = a * b; break;
  case DIV: r = a / b; break;
  case FMA: r = fma(a, b, c); break;
  case SQRT: r = sqrt(a); break;
  case RCP: r = 1.0 / a; break;
  case MIN: r = minmax64(x, y, false); break;
  case MAX: r = minmax64(x, y, true); break;
  }
  return r;
}

// The result of an operation on doubles; one that is no number is the first operand that is none, or the hardware's own where all
// operands are numbers.
static double result64(double value, unsigned count, const double operands[]) {
  if (value == value) return value;
  for (unsigned i = 0; i < count; i++) {
    if (operands[i] != operands[i]) return sim_quiet(operands[i]);
  }
  return sim_double(SIM_NAN64);
}

static unsigned operand_count(unsigned what) {
  return what == FMA ? 3 : what == SQRT || what == RCP ? 1 : 2;
}

static void general64(struct sim_warp *warp, const struct sim_op *op, uint32_t mask, unsigned what) {
  const sim_f64 *pa = sim_f64s(warp, op->a), *pb = sim_f64s(warp, op->b), *pc = sim_f64s(warp, op->c);
  sim_f64 *pd = sim_f64s(warp, op->d);
  if (op->rounding != SIM_RN) sim_rounding_set((enum sim_rounding)op->rounding);
  SIM_EACH_BIT(mask, l) {
    double operands[] = {pa[l], pb[l], pc[l]}, r = compute64(what, pa[l], pb[l], pc[l]);
    bool is_chosen = what == MIN || what == MAX; // one of the two, NaN or not
    pd[l] = is_chosen ? (r == r ? r : sim_quiet(r)) : result64(r, operand_count(what), operands);
  }
  if (op->rounding != SIM_RN) sim_rounding_set(SIM_RN);
}

#define GENERAL(name, what)                                                                                  \
  HANDLER(name##_f32_general) {                                                                              \
    general32(warp, op, mask, what);                                                                         \
  }                                                                                                          \
  HANDLER(name##_f64) {                                                                                      \
    general64(warp, op, mask, what);                                                                         \
  }
GENERAL(add, ADD)
GENERAL(sub, SUB)
GENERAL(mul, MUL)
GENERAL(div, DIV)
GENERAL(fma, FMA)
GENERAL(sqrt, SQRT)
GENERAL(rcp, RCP)
GENERAL(min, MIN)
GENERAL(max, MAX)

HANDLER(add_f32x2) {
  pair32(warp, op, mask, ADD);
}
HANDLER(sub_f32x2) {
  pair32(warp, op, mask, SUB);
}
HANDLER(mul_f32x2) {
  pair32(warp, op, mask, MUL);
}
HANDLER(fma_f32x2) {
  pair32(warp, op, mask, FMA);
}

// Three-operand minimum and maximum.
HANDLER(min3_f32) {
  const sim_f32 *pa = sim_f32s(warp, op->a), *pb = sim_f32s(warp, op->b), *pc = sim_f32s(warp, op->c);
  sim_f32 *pd = sim_f32s(warp, op->d);
  SIM_EACH_BIT(mask, l) {
    float r = sim_min32(sim_min32(pa[l], pb[l], op->is_nan), pc[l], op->is_nan);
    pd[l] = op->is_ftz ? sim_flush(r) : r;
  }
}

HANDLER(max3_f32) {
  const sim_f32 *pa = sim_f32s(warp, op->a), *pb = sim_f32s(warp, op->b), *pc = sim_f32s(warp, op->c);
  sim_f32 *pd = sim_f32s(warp, op->d);
  SIM_EACH_BIT(mask, l) {
    float r = sim_max32(sim_max32(pa[l], pb[l], op->is_nan), pc[l], op->is_nan);
    pd[l] = op->is_ftz ? sim_flush(r) : r;
  }
}

// Special functions, in double and rounded once.
#define SPECIAL(fn, expr)                                                                                    \
  HANDLER(fn) {                                                                                              \
    const sim_f32 *pa = sim_f32s(warp, op->a);                                                               \
    sim_f32 *pd = sim_f32s(warp, op->d);                                                                     \
    SIM_EACH_BIT(mask, l) {                                                                                  \
      float single = op->is_ftz ? sim_flush(pa[l]) : pa[l];                                                  \
      double a = single;                                                                                     \
      float r = sim_canonical((float)(expr));                                                                \
      pd[l] = op->is_ftz ? sim_flush(r) : r;                                                                 \
    }                                                                                                        \
  }
SPECIAL(rsqrt_f32, 1.0 / sqrt(a))
SPECIAL(sin_f32, sin(a))
SPECIAL(cos_f32, cos(a))
SPECIAL(lg2_f32, log2(a))
SPECIAL(ex2_f32, exp2(a))
SPECIAL(tanh_f32, tanh(a))

HANDLER(rsqrt_f64) {
  const sim_f64 *pa = sim_f64s(warp, op->a);
  sim_f64 *pd = sim_f64s(warp, op->d);
  SIM_EACH_BIT(mask, l) {
    double a = pa[l];
    pd[l] = result64((double)(1.0L / sqrtl((long double)a)), 1, &a);
  }
}

// Reciprocals of the upper word: the lower word of the result is zero, denormals are flushed, NaN is the canonical single's word.
HANDLER(rcp_ftz_f64) {
  const sim_f64 *pa = sim_f64s(warp, op->a);
  sim_f64 *pd = sim_f64s(warp, op->d);
  SIM_EACH_BIT(mask, l) {
    double a = sim_double(sim_double_bits(pa[l]) & UINT64_C(0xffffffff00000000));
    if (fabs(a) < 0x1p-1022) a = copysign(0, a);
    double r = op->sub ? 1.0 / sqrt(a) : 1.0 / a;
    if (fabs(r) < 0x1p-1022) r = copysign(0, r);
    pd[l] = sim_double(r == r ? sim_double_bits(r) & UINT64_C(0xffffffff00000000) : (uint64_t)SIM_NAN32 << 32);
  }
}

#define ROWS(name, fn)                                                                                       \
  {name, SIM_F32, fn##_f32}, {name ".general", SIM_F32, fn##_f32_general}, {                                 \
    name, SIM_F64, fn##_f64                                                                                  \
  }

const struct sim_alu sim_alu_float[] = {ROWS("add", add),
                                        ROWS("sub", sub),
                                        ROWS("mul", mul),
                                        ROWS("div", div),
                                        ROWS("fma", fma),
                                        ROWS("sqrt", sqrt),
                                        ROWS("rcp", rcp),
                                        ROWS("min", min),
                                        ROWS("max", max),
                                        {"add", SIM_F32X2, add_f32x2},
                                        {"sub", SIM_F32X2, sub_f32x2},
                                        {"mul", SIM_F32X2, mul_f32x2},
                                        {"fma", SIM_F32X2, fma_f32x2},
                                        {"min3", SIM_F32, min3_f32},
                                        {"max3", SIM_F32, max3_f32},
                                        {"abs", SIM_F32, abs_f32},
                                        {"abs", SIM_F64, abs_f64},
                                        {"neg", SIM_F32, neg_f32},
                                        {"neg", SIM_F64, neg_f64},
                                        {"copysign", SIM_F32, copysign_f32},
                                        {"copysign", SIM_F64, copysign_f64},
                                        {"rsqrt", SIM_F32, rsqrt_f32},
                                        {"rsqrt", SIM_F64, rsqrt_f64},
                                        {"sin", SIM_F32, sin_f32},
                                        {"cos", SIM_F32, cos_f32},
                                        {"lg2", SIM_F32, lg2_f32},
                                        {"ex2", SIM_F32, ex2_f32},
                                        {"tanh", SIM_F32, tanh_f32},
                                        {"rcp.ftz", SIM_F64, rcp_ftz_f64},
                                        {NULL, SIM_NO_TYPE, NULL}};

// Half precision: f16 and bf16, one a word or two. Each operation is done in double, where it is exact or
// rounded to odd, and rounded once to the format.
#include "runtime/sim/number.h"

#define HANDLER(name) static void name(struct sim_warp *warp, const struct sim_op *op, uint32_t mask)

enum { ADD, SUB, MUL, FMA, MIN, MAX, NEG, ABS, EX2, TANH };

static uint32_t flush_half(uint32_t bits, struct sim_format format) {
  uint32_t exponent = ((1u << format.exponent) - 1) << format.fraction;
  return bits & exponent ? bits : bits & 0x8000u;
}

// The least result that .ftz keeps: what is below the least normal number, but rounds to it where exponents have no end, is not tiny.
static double least_kept(struct sim_format format) {
  double least_normal = ldexp(1, 2 - (1 << (format.exponent - 1)));
  return least_normal * (1 - ldexp(1, -(int)format.fraction - 2));
}

// One operation on one half. `op` carries .ftz, .sat, .relu (sub bit 0), .NaN and .xorsign.abs.
static uint32_t compute(const struct sim_op *op, unsigned what, struct sim_format format, uint32_t a,
                        uint32_t b, uint32_t c) {
  if (op->is_ftz) a = flush_half(a, format), b = flush_half(b, format), c = flush_half(c, format);
  uint32_t sign = (a ^ b) & 0x8000u;
  if (op->is_abs) a &= 0x7fffu, b &= 0x7fffu; // .xorsign.abs
  uint32_t infinity = ((1u << format.exponent) - 1) << format.fraction;
  if ((what == NEG || what == ABS) && (a & 0x7fffu) > infinity) return 0x7fff;
  if (what == NEG) return a ^ 0x8000u;
  if (what == ABS) return a & 0x7fffu;
  double x = sim_widen(a, format), y = sim_widen(b, format), z = sim_widen(c, format), r = 0;
  switch (what) {
  case ADD: r = sim_add_odd(x, y); break;
  case SUB: r = sim_add_odd(x, -y); break;
  case MUL: r = x * y; break;
  case FMA: r = sim_add_odd(x * y, z); break;
  case MIN: r = sim_min32((float)x, (float)y, op->is_nan); break;
  case MAX: r = sim_max32((float)x, (float)y, op->is_nan); break;
  case EX2: r = exp2(x); break;
  case TANH: r = tanh(x); break;
  }
  uint32_t bits = sim_narrow(r, format, SIM_RN);
  if (op->is_abs && r == r) bits |= sign;
  if (op->is_ftz && fabs(r) < least_kept(format)) bits &= 0x8000u;
  double value = sim_widen(bits, format);
  if (op->is_saturating) {
    bits = value != value || value <= 0 ? 0 : value > 1 ? sim_narrow(1, format, SIM_RN) : bits;
  } else if ((op->sub & 1) && value < 0) {
    bits = 0; // .relu; NaN stays the canonical one
  }
  if ((op->sub & 1) && !op->is_saturating && bits == 0x8000u) bits = 0;
  return bits;
}

static void run(struct sim_warp *warp, const struct sim_op *op, uint32_t mask, unsigned what) {
  const sim_u32 *pa = sim_r32(warp, op->a), *pb = sim_r32(warp, op->b), *pc = sim_r32(warp, op->c);
  sim_u32 *pd = sim_r32(warp, op->d);
  bool is_pair = op->type == SIM_F16X2 || op->type == SIM_BF16X2;
  struct sim_format format = op->type == SIM_F16 || op->type == SIM_F16X2 ? sim_half : sim_bfloat;
  SIM_EACH_BIT(mask, l) {
    uint32_t a = pa[l], b = pb[l], c = pc[l];
    uint32_t low = compute(op, what, format, a & 0xffff, b & 0xffff, c & 0xffff);
    pd[l] = is_pair ? low | compute(op, what, format, a >> 16, b >> 16, c >> 16) << 16 : low;
  }
}

HANDLER(add) {
  run(warp, op, mask, ADD);
}
HANDLER(sub) {
  run(warp, op, mask, SUB);
}
HANDLER(mul) {
  run(warp, op, mask, MUL);
}
HANDLER(fma_half) {
  run(warp, op, mask, FMA);
}
HANDLER(min) {
  run(warp, op, mask, MIN);
}
HANDLER(max) {
  run(warp, op, mask, MAX);
}
HANDLER(neg) {
  run(warp, op, mask, NEG);
}
HANDLER(abs_half) {
  run(warp, op, mask, ABS);
}
HANDLER(ex2) {
  run(warp, op, mask, EX2);
}
HANDLER(tanh_half) {
  run(warp, op, mask, TANH);
}

#define ROWS(name, fn)                                                                                       \
  {name, SIM_F16, fn}, {name, SIM_BF16, fn}, {name, SIM_F16X2, fn}, {                                        \
    name, SIM_BF16X2, fn                                                                                     \
  }

const struct sim_alu sim_alu_half[] = {ROWS("add", add),        ROWS("sub", sub),         ROWS("mul", mul),
                                       ROWS("fma", fma_half),   ROWS("min", min),         ROWS("max", max),
                                       ROWS("neg", neg),        ROWS("abs", abs_half),    ROWS("ex2", ex2),
                                       ROWS("tanh", tanh_half), {NULL, SIM_NO_TYPE, NULL}};

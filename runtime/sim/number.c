// Narrow formats and roundings in software.
#include "runtime/sim/number.h"

#include <fenv.h>

const struct sim_format sim_half = {10, 5}, sim_bfloat = {7, 8}, sim_single = {23, 8};

double sim_widen(uint32_t bits, struct sim_format format) {
  uint32_t fraction = bits & ((1u << format.fraction) - 1);
  uint32_t top = (1u << format.exponent) - 1, exponent = bits >> format.fraction & top;
  bool is_negative = bits >> (format.fraction + format.exponent) & 1;
  double value;
  if (exponent == top) {
    value = fraction ? (double)NAN : (double)INFINITY;
  } else {
    int bias = (1 << (format.exponent - 1)) - 1;
    double significand = exponent ? (double)(fraction | 1u << format.fraction) : (double)fraction;
    value = ldexp(significand, (int)(exponent ? exponent : 1) - bias - (int)format.fraction);
  }
  return is_negative ? -value : value;
}

// Whether the magnitude grows by one unit: `rest` are the bits cut off, `half` half of their range.
static bool rounds_up(enum sim_rounding rounding, bool is_negative, bool is_odd, uint64_t rest,
                      uint64_t half) {
  switch (rounding) {
  case SIM_RN: return rest > half || (rest == half && is_odd);
  case SIM_RNA: return rest >= half;
  case SIM_RZ: return false;
  case SIM_RM: return is_negative && rest > 0;
  case SIM_RP: return !is_negative && rest > 0;
  }
  return false;
}

uint32_t sim_narrow(double value, struct sim_format format, enum sim_rounding rounding) {
  uint64_t bits = sim_double_bits(value);
  bool is_negative = bits >> 63;
  uint32_t sign = (uint32_t)is_negative << (format.fraction + format.exponent);
  uint32_t infinity = ((1u << format.exponent) - 1) << format.fraction;
  if (value != value) return infinity | ((1u << format.fraction) - 1);
  if (isinf(value)) return sign | infinity;
  if (value == 0) return sign;
  int exponent = (int)(bits >> 52 & 2047);
  uint64_t significand = bits & ((UINT64_C(1) << 52) - 1);
  if (exponent == 0) {
    exponent = 1;
  } else {
    significand |= UINT64_C(1) << 52;
  }
  exponent -= 1023; // of the bit at 52
  int bias = (1 << (format.exponent - 1)) - 1, least = 1 - bias;
  // Units of the result: 2^(max(exponent, least) - fraction).
  int unit = (exponent > least ? exponent : least) - (int)format.fraction;
  int cut = unit - (exponent - 52);
  uint64_t kept, rest, half;
  if (cut > 62) {
    kept = 0, rest = 1, half = 2;
  } else {
    kept = significand >> cut;
    rest = significand & ((UINT64_C(1) << cut) - 1);
    half = cut > 0 ? UINT64_C(1) << (cut - 1) : 1;
  }
  if (rounds_up(rounding, is_negative, kept & 1, rest, half)) kept++;
  if (kept >> (format.fraction + 1)) kept >>= 1, unit++;
  if (kept < UINT64_C(1) << format.fraction) return sign | (uint32_t)kept; // denormal or zero
  int biased = unit + (int)format.fraction + bias;
  if (biased >= (1 << format.exponent) - 1) {
    bool is_infinite = rounding == SIM_RN || rounding == SIM_RNA || (rounding == SIM_RP && !is_negative) ||
                       (rounding == SIM_RM && is_negative);
    return sign | (is_infinite ? infinity : infinity - 1);
  }
  return sign | (uint32_t)biased << format.fraction |
         (uint32_t)(kept & ((UINT64_C(1) << format.fraction) - 1));
}

double sim_add_odd(double a, double b) {
  double sum = a + b;
  if (!isfinite(sum)) return sum;
  double back = sum - a, error = (a - (sum - back)) + (b - back);
  if (error == 0) return sum;
  uint64_t bits = sim_double_bits(sum);
  if (bits & 1) return sum;
  // The sum was rounded: take the neighbour on the side of the error, whose last bit is one.
  bool is_up = (error > 0) == (sum > 0 || (sum == 0 && error > 0));
  return sim_double(is_up ? bits + 1 : bits - 1);
}

void sim_rounding_set(enum sim_rounding rounding) {
  int mode = FE_TONEAREST;
  if (rounding == SIM_RZ) mode = FE_TOWARDZERO;
  if (rounding == SIM_RM) mode = FE_DOWNWARD;
  if (rounding == SIM_RP) mode = FE_UPWARD;
  fesetround(mode);
}

float sim_min32(float a, float b, bool is_nan) {
  if (a != a || b != b) {
    if (is_nan || (a != a && b != b)) return sim_float(SIM_NAN32);
    return a != a ? b : a;
  }
  if (a == b) return sim_float(sim_float_bits(a) | (a == 0 ? sim_float_bits(b) & 0x80000000u : 0));
  return a < b ? a : b;
}

float sim_max32(float a, float b, bool is_nan) {
  if (a != a || b != b) {
    if (is_nan || (a != a && b != b)) return sim_float(SIM_NAN32);
    return a != a ? b : a;
  }
  if (a == b) return a == 0 ? sim_float(sim_float_bits(a) & sim_float_bits(b)) : a;
  return a > b ? a : b;
}

// The scalar functions below arith.h, inline for the loops of the reference interpreter.
#ifndef RED_COMPILER_ARITH_SCALAR_H
#define RED_COMPILER_ARITH_SCALAR_H

#include "runtime/half.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

// Truncates, saturates at the ends of a signed or unsigned integer of `bits` bits; NaN gives 0.
static inline int64_t scalar_to_signed(double x, uint32_t bits) {
  double end = ldexp(1.0, (int)bits - 1);
  if (isnan(x)) return 0;
  if (x >= end) return bits == 64 ? INT64_MAX : ((int64_t)1 << (bits - 1)) - 1;
  if (x <= -end) return bits == 64 ? INT64_MIN : -((int64_t)1 << (bits - 1));
  return (int64_t)x;
}
static inline uint64_t scalar_to_unsigned(double x, uint32_t bits) {
  if (isnan(x) || x <= -1) return 0;
  if (x >= ldexp(1.0, (int)bits)) return bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
  return (uint64_t)x;
}

// Wraps to `bits` bits and extends again.
static inline int64_t scalar_wrap(int64_t x, uint32_t bits, bool is_signed) {
  if (bits == 64) return x;
  uint64_t kept = (uint64_t)x & ((UINT64_C(1) << bits) - 1);
  return is_signed && kept >> (bits - 1) ? (int64_t)(kept | ~UINT64_C(0) << bits) : (int64_t)kept;
}

// Division that is never undefined; operands extended, the result is to be wrapped.
static inline int64_t scalar_div(int64_t a, int64_t b, bool is_signed) {
  if (b == 0) return -1;
  if (!is_signed) return (int64_t)((uint64_t)a / (uint64_t)b);
  return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}
static inline int64_t scalar_mod(int64_t a, int64_t b, bool is_signed) {
  if (b == 0) return a;
  if (!is_signed) return (int64_t)((uint64_t)a % (uint64_t)b);
  return b == -1 ? 0 : a % b;
}

// min and max propagate NaN, fmin and fmax ignore it; all order -0 below +0.
#define SCALAR_MIN_MAX(type, suffix)                                                                         \
  static inline type scalar_min_##suffix(type a, type b) {                                                   \
    return isnan(a) ? a : isnan(b) ? b : a < b || (a == b && signbit(a)) ? a : b;                            \
  }                                                                                                          \
  static inline type scalar_max_##suffix(type a, type b) {                                                   \
    return isnan(a) ? a : isnan(b) ? b : a > b || (a == b && signbit(b)) ? a : b;                            \
  }                                                                                                          \
  static inline type scalar_fmin_##suffix(type a, type b) {                                                  \
    return isnan(a) ? b : isnan(b) ? a : scalar_min_##suffix(a, b);                                          \
  }                                                                                                          \
  static inline type scalar_fmax_##suffix(type a, type b) {                                                  \
    return isnan(a) ? b : isnan(b) ? a : scalar_max_##suffix(a, b);                                          \
  }
SCALAR_MIN_MAX(float, f32)
SCALAR_MIN_MAX(double, f64)
#undef SCALAR_MIN_MAX

#endif

// Conversions between double or float and the bits of f16 and bf16.
#ifndef RED_RUNTIME_HALF_H
#define RED_RUNTIME_HALF_H

#include <stdint.h>
#include <string.h>

// A double as the bits of a 16-bit format of `mantissa` stored bits and exponent bias `bias`, to nearest,
// ties to even. NaN keeps its sign and the top of its payload and becomes quiet.
static inline uint16_t half_narrow(double x, int mantissa, int bias) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  uint32_t sign = (uint32_t)(bits >> 63) << 15;
  bits &= INT64_MAX;
  uint32_t infinity = (uint32_t)(2 * bias + 1) << mantissa;
  if (bits > UINT64_C(0x7ff0000000000000))
    return (uint16_t)(sign | infinity | 1u << (mantissa - 1) |
                      ((uint32_t)(bits >> (52 - mantissa)) & ((1u << mantissa) - 1)));
  int exponent = (int)(bits >> 52) - 1023;
  if (exponent > bias) return (uint16_t)(sign | infinity);
  if (exponent < -bias - mantissa) return (uint16_t)sign;
  uint64_t significand = (bits & UINT64_C(0xfffffffffffff)) | UINT64_C(1) << 52;
  int field = exponent + bias, shift = 52 - mantissa + (field < 1 ? 1 - field : 0);
  uint64_t kept = significand >> shift, rest = significand & ((UINT64_C(1) << shift) - 1);
  uint64_t half = UINT64_C(1) << (shift - 1);
  kept += rest > half || (rest == half && (kept & 1));
  return (uint16_t)(sign | ((field < 1 ? 0 : (uint32_t)(field - 1) << mantissa) + (uint32_t)kept));
}

static inline uint16_t half_from_double(double x) {
  return half_narrow(x, 10, 15);
}
static inline uint16_t bfloat_from_double(double x) {
  return half_narrow(x, 7, 127);
}

static inline float bfloat_to_float(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float x;
  memcpy(&x, &wide, sizeof x);
  return x;
}

static inline float half_to_float(uint16_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 31, mantissa = bits & 1023;
  float x;
  if (exponent == 0) { // zero or subnormal: mantissa units of 2^-24
    x = (float)mantissa * 0x1p-24f;
    return sign ? -x : x;
  }
  uint32_t wide = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | mantissa << 13;
  memcpy(&x, &wide, sizeof x);
  return x;
}

#endif

// Floating-point values of the narrow formats and of every rounding, in software where the host has no
// instruction.
#ifndef RED_SIM_NUMBER_H
#define RED_SIM_NUMBER_H

#include "runtime/sim/internal.h"

#include <math.h>

#define SIM_NAN16 0x7fffu
#define SIM_NAN32 0x7fffffffu
#define SIM_NAN64 UINT64_C(0xfff8000000000000)

static inline float sim_float(uint32_t bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

static inline uint32_t sim_float_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}

static inline double sim_double(uint64_t bits) {
  double value;
  memcpy(&value, &bits, 8);
  return value;
}

static inline uint64_t sim_double_bits(double value) {
  uint64_t bits;
  memcpy(&bits, &value, 8);
  return bits;
}

// NaN of a single becomes the hardware's one.
static inline float sim_canonical(float value) {
  return value == value ? value : sim_float(SIM_NAN32);
}

// A double's NaN, made quiet; its sign and its other bits stay, as the hardware has it.
static inline double sim_quiet(double nan) {
  return sim_double(sim_double_bits(nan) | UINT64_C(1) << 51);
}

// Denormals of a single become zero of their sign.
static inline float sim_flush(float value) {
  uint32_t bits = sim_float_bits(value);
  return (bits & 0x7f800000u) == 0 ? sim_float(bits & 0x80000000u) : value;
}

// Binary formats by their number of fraction bits and exponent bits.
struct sim_format {
  unsigned fraction;
  unsigned exponent;
};
extern const struct sim_format sim_half, sim_bfloat, sim_single;

// Exact value of a number of a format of at most 32 bits.
double sim_widen(uint32_t bits, struct sim_format format);
// The nearest number of the format in that rounding; NaN becomes all ones but the sign. Overflow gives
// infinity or the largest number, as the rounding says.
uint32_t sim_narrow(double value, struct sim_format format, enum sim_rounding rounding);

static inline float sim_half_value(uint32_t bits) {
  return (float)sim_widen(bits & 0xffff, sim_half);
}
static inline float sim_bfloat_value(uint32_t bits) {
  return sim_float(bits << 16);
}

// Sum and fused product rounded to odd: a later rounding to at most 51 bits gives what one rounding would
// have given.
double sim_add_odd(double a, double b);

// Host rounding for directed modes: sim_rounding_set(SIM_RN) restores. Arithmetic in between must go through
// volatile operands.
void sim_rounding_set(enum sim_rounding rounding);

// Minimum and maximum of the manual: -0 below +0; NaN loses, or wins where `is_nan`.
float sim_min32(float a, float b, bool is_nan);
float sim_max32(float a, float b, bool is_nan);

#endif

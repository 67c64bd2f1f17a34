// The functions as C that computes. The arithmetic is IEEE's, uncontracted.
#include "compiler/arith_scalar.h"
#include "compiler/mathlib.h"

typedef float v_F32;
typedef double v_F64;
typedef int32_t v_I32;
typedef uint32_t v_U32;
typedef int64_t v_I64;
typedef uint64_t v_U64;
typedef bool v_BOOL;

static inline uint32_t bits_to_U32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline float bits_to_F32(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
static inline uint64_t bits_to_U64(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline double bits_to_F64(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

#define FUNCTION1(op, T, x) static v_##T value_##op##_##T(v_##T x)
#define FUNCTION2(op, T, x, y) static v_##T value_##op##_##T(v_##T x, v_##T y)
#define PART1(name, T, T1, a) static inline v_##T part_##name(v_##T1 a)
#define PART2(name, T, T1, a, T2, b) static inline v_##T part_##name(v_##T1 a, v_##T2 b)
#define CALL1(name, a) part_##name(a)
#define CALL2(name, a, b) part_##name(a, b)
#define LET(T, name, value) const v_##T name = (value)
#define RESULT(value) return (value)
#define K(T, value) ((v_##T)(value))
#define CAST(T, a) ((v_##T)(a))
#define BITCAST(T, a) bits_to_##T(a)
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / (b))
#define NEG(a) (-(a))
#define FMA(a, b, c) _Generic((a), float : fmaf, double : fma)(a, b, c)
#define ABS(a) _Generic((a), float : fabsf, double : fabs)(a)
#define SQRT(a) _Generic((a), float : sqrtf, double : sqrt)(a)
#define TRUNC(a) _Generic((a), float : truncf, double : trunc)(a)
#define MIN(a, b) _Generic((a), float : scalar_min_f32, double : scalar_min_f64)(a, b)
#define MAX(a, b) _Generic((a), float : scalar_max_f32, double : scalar_max_f64)(a, b)
#define AND(a, b) ((a) & (b))
#define OR(a, b) ((a) | (b))
#define XOR(a, b) ((a) ^ (b))
#define SHL(a, b) ((a) << (b))
#define SHR(a, b) ((a) >> (b))
#define EQ(a, b) ((a) == (b))
#define NE(a, b) ((a) != (b))
#define LT(a, b) ((a) < (b))
#define GT(a, b) ((a) > (b))
#define SELECT(c, a, b) ((c) ? (a) : (b))

#include "compiler/mathlib_f32.def"
#include "compiler/mathlib_f64.def"

float mathlib_f32(enum op op, float a, float b) {
  switch ((int)op) {
#define M(name)                                                                                              \
  case OP_##name:                                                                                            \
    return value_##name##_F32(a);
#include "compiler/mathlib.def"
#undef M
  case OP_POW: return value_POW_F32(a, b);
  default: return NAN;
  }
}

float mathlib_exp_below_f32(float a) { return value_EXP_BELOW_F32(a); }

double mathlib_f64(enum op op, double a, double b) {
  switch ((int)op) {
#define M(name)                                                                                              \
  case OP_##name:                                                                                            \
    return value_##name##_F64(a);
#include "compiler/mathlib.def"
#undef M
  case OP_POW: return value_POW_F64(a, b);
  default: return NAN;
  }
}

bool mathlib_evaluate(enum op op, enum type type, const struct value *args, struct value *out) {
  int operands = op_table[op].operands;
  if (!mathlib_has(op, type) || args[0].type != type || args[operands - 1].type != type) return false;
  double x = args[0].number, y = args[operands - 1].number;
  *out = value_float(type,
                     type == TYPE_F32 ? (double)mathlib_f32(op, (float)x, (float)y) : mathlib_f64(op, x, y));
  return true;
}

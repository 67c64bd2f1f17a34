// Scalar arithmetic of the language: what constant folding and the reference interpreter compute.
//
// Integers wrap at their width and are kept sign- or zero-extended in 64 bits (u64 as its bits; index as i64;
// bool as 0 or 1). f32 results are computed in float, f64 in double, without contraction. Values of f16 and
// bf16 are those that the format holds, kept in `number`; nothing but conversions computes on them. ops.def
// states the rest: x / 0, saturation, NaN. Functions such as exp are the C library's in double, rounded once
// more for f32. round is C's: halves away from zero.
#ifndef RED_COMPILER_ARITH_H
#define RED_COMPILER_ARITH_H

#include "compiler/ir.h"

struct value {
  enum type type;
  union {
    int64_t integer; // BOOL, SIGNED, UNSIGNED, INDEX
    double number;   // FLOAT, STORAGE
  };
};

struct value value_int(enum type type, int64_t integer); // wrapped to the type's width
struct value value_float(enum type type, double number); // rounded to the type

// Each computes one operation and returns whether `op` is arithmetic that has a value for these operands; on
// false, *out is unchanged. False as well: QUO and REM where ops.def leaves them undefined, BITCAST where a
// signalling NaN would result, operands of types that the operation does not take.
bool arith_unary(enum op op, enum type type, struct value a,
                 struct value *out); // NEG .. TRUNC, NOT, ISNAN, ISINF, CAST, BITCAST
bool arith_binary(enum op op, enum type type, struct value a, struct value b,
                  struct value *out); // comparisons too
bool arith_compare(enum op op, struct value a, struct value b, bool *out);
bool arith_cast(enum type to, struct value a, struct value *out);
bool arith_bitcast(enum type to, struct value a, struct value *out);
// Any operation by its operands; FMA and SELECT among them. `type` is the result's.
bool arith_fold(enum op op, enum type type, const struct value *args, uint32_t count, struct value *out);

// The function of a float operation with one operand (NEG, ABS, SQRT .. ERF, FLOOR .. TRUNC); for f32 its
// result in double is rounded once more. NULL for others.
typedef double arith_function(double);
arith_function *arith_function_of(enum op op);

// Wraps to the width of an integer, bool (!= 0) or index type.
int64_t arith_wrap(enum type type, int64_t integer);
// The nearest value of the float or storage type, ties to even.
double arith_round(enum type type, double number);

#endif

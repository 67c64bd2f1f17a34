// The functions that no machine has with a stated error: exp exp2 log log2 sin cos tanh erf pow rsqrt of f32
// and f64, out of fma, add, mul, div, sqrt, bit operations, conversions of integers and selects only. All of
// these are exactly defined, so that a function has the same bits on every target, in every backend and here.
// docs/functions.md states the errors.
//
// Each function is written once (mathlib_f32.def, mathlib_f64.def) in terms of macros; mathlib_build.c makes
// them build IR and mathlib_value.c makes them compute.
#ifndef RED_COMPILER_MATHLIB_H
#define RED_COMPILER_MATHLIB_H

#include "compiler/arith.h"

// Whether `op` of `type` is one of these functions.
bool mathlib_has(enum op op, enum type type);
// As IR: as many parameters as operands, one result. Parameters are read more than once. Labels of its LETs
// begin with the name of the operation. NULL where mathlib_has is false.
const struct ir_function *mathlib_function(struct arena *arena, enum op op, enum type type);
// exp of f32 as IR, for operands that are not above 0 or a NaN: the bits of the function, in fewer operations.
const struct ir_function *mathlib_exp_below(struct arena *arena);

// As a value, bit for bit what the IR function gives (NaN aside: some NaN). False where mathlib_has is false
// or an argument is of another type.
bool mathlib_evaluate(enum op op, enum type type, const struct value *args, struct value *out);
// The same for one type; `b` is used by POW alone. `op` must be one that mathlib_has.
float mathlib_f32(enum op op, float a, float b);
double mathlib_f64(enum op op, double a, double b);
float mathlib_exp_below_f32(float a);

#endif

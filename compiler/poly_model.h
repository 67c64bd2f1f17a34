// What poly.c and poly_model.c know of an atom.
#ifndef RED_COMPILER_POLY_MODEL_H
#define RED_COMPILER_POLY_MODEL_H

#include "compiler/poly.h"

// What a polynomial is made of: a variable, or an expression that is none (min, mod, a load).
struct atom {
  struct ir_var *var;           // or NULL
  const struct ir_expr *expr;   // where var is NULL
  bool is_axis, is_defined, is_positive;
  bool is_bounded;              // is_defined: what it stands for is far from the ends of 64 bits
  struct poly lo, hi;           // is_axis: lo <= var <= hi
  struct poly value;            // is_defined
  struct poly args[2];          // of the expression, as they were when there were `known` facts; prove_opaque's
  uint32_t known;               // 0: not asked for yet
};

// Looks for sizes and axes for which all facts hold and p is negative, so that no proof can be. Those for which all facts hold are kept.
bool poly_refute(struct facts *facts, struct poly p);
// Whether p is negative for some that are kept.
bool poly_is_refuted(struct facts *facts, struct poly p);

#endif

// Polynomials over sizes and axes, and proofs that one is never negative.
//
// Bounds, disjoint ranges, injective writes and divisibility are all questions of the form "is p >= 0 for every value of
// the axes and sizes in scope". The prover eliminates axes innermost first by their range (the sign of an axis's
// coefficient chooses the end), opens min, max, division and remainder by their bounds, and accepts when every
// coefficient of what is left, a polynomial over sizes, is non-negative. It is sound, not complete.
#ifndef RED_COMPILER_POLY_H
#define RED_COMPILER_POLY_H

#include "compiler/ir.h"

enum { POLY_MAX_DEGREE = 6 };
struct poly_term {
  int64_t coefficient;
  uint32_t degree;
  uint32_t atoms[POLY_MAX_DEGREE]; // indices into facts->atoms, ascending
};
struct poly {
  bool is_valid; // false: not a polynomial of this size, or a coefficient overflowed
  uint32_t count;
  struct poly_term *terms; // sorted, no zero coefficients
};

// A polynomial, by its hash, for which a search of this depth found no proof; hash 0: none.
enum { FAILED_PROOFS = 64 };
struct failed_proof {
  uint64_t hash;
  int depth;
};

struct models;

// What is known about axes, sizes and conditions in a scope.
struct facts {
  struct arena *arena;
  struct list atoms;      // struct atom
  struct list conditions; // struct poly: each >= 0
  uint32_t steps;   // of the proof at hand
  uint32_t known;   // axes and definitions that were added
  bool is_proving;
  struct poly goal; // of the proof at hand
  bool is_refuted;  // it has a counterexample
  struct models *models; // poly_model.h; NULL: none looked for yet
  bool keeps;       // the proof at hand made what outlives it
  struct failed_proof failed[FAILED_PROOFS]; // of the proof at hand
};

void facts_init(struct facts *facts, struct arena *arena);
// Axis `var` runs lo..hi (half open) in this scope, and the scope is only entered when the range is not empty.
void facts_add_axis(struct facts *facts, struct ir_var *var, struct ir_expr *lo, struct ir_expr *hi);
// `var` stands for `value` (a derived axis, a let of integer type).
void facts_add_definition(struct facts *facts, struct ir_var *var, struct ir_expr *value);
// A condition that holds in the scope; what it says about integers is used, conjunctions are taken apart.
void facts_add_condition(struct facts *facts, const struct ir_expr *condition);
// The size is at least 1 here.
void facts_add_positive(struct facts *facts, struct ir_var *size);

struct poly poly_of(struct facts *facts, const struct ir_expr *e);
struct poly poly_constant(struct facts *facts, int64_t value);
struct poly poly_add(struct facts *facts, struct poly a, struct poly b);
struct poly poly_sub(struct facts *facts, struct poly a, struct poly b);
struct poly poly_mul(struct facts *facts, struct poly a, struct poly b);
bool poly_is_zero(struct poly p);
bool poly_is_constant(struct poly p, int64_t *value);
bool poly_equal(struct facts *facts, struct poly a, struct poly b);
// p = coefficient * var + rest, where neither mentions var; false when p is not linear in it.
bool poly_linear(struct facts *facts, struct poly p, struct ir_var *var, struct poly *coefficient, struct poly *rest);
// The same, but the rest may still hide var in a remainder, a quotient or the like.
bool poly_split(struct facts *facts, struct poly p, struct ir_var *var, struct poly *coefficient, struct poly *rest);

bool prove_nonnegative(struct facts *facts, struct poly p);
bool prove_less(struct facts *facts, const struct ir_expr *a, const struct ir_expr *b);    // a < b
bool prove_at_most(struct facts *facts, const struct ir_expr *a, const struct ir_expr *b); // a <= b
bool prove_equal(struct facts *facts, const struct ir_expr *a, const struct ir_expr *b);
// Whether b, a positive constant or size expression, divides a.
bool prove_divides(struct facts *facts, const struct ir_expr *b, const struct ir_expr *a);

// The least value of p over the axes, as an expression of sizes (i64), or NULL when the axes cannot be eliminated.
struct ir_expr *poly_minimum_expr(struct facts *facts, struct poly p);
struct ir_expr *poly_to_expr(struct facts *facts, struct poly p); // i64; NULL when invalid

#endif

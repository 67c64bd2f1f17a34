// What the files of pass `math` share: the state of its walk over one entry or reducer.
#ifndef RED_PASSES_MATH_LOWER_H
#define RED_PASSES_MATH_LOWER_H

#include "compiler/mathlib.h"
#include "compiler/pass.h"

struct math {
  struct arena *arena;
  struct ir_kernel *kernel;     // whose names new variables take
  const struct ir_entry *entry; // NULL in a reducer
  struct list *out;             // where statements in front of the current one go
  struct range range;           // of the current statement
  struct list positive;         // struct ir_expr: known to be above 0 here
  struct list bounded;          // struct math_bound: what conditions around say of variables
  struct list known;            // struct math_known: what this statement has computed so far
  const struct ir_function *functions[OP_COUNT][2]; // of f32 and f64; NULL until used
  const struct ir_function *exp_below; // as these
};

// A lowered operation of the current statement, so that equal ones are computed once.
struct math_known {
  struct ir_expr *call, *result;
};

// A variable that is in 0..2^bits - 1 here.
struct math_bound {
  const struct ir_var *var;
  int bits;
};

// The value as something that may be repeated: itself, or a variable that a LET in front of the statement
// gives it.
struct ir_expr *math_repeatable(struct math *m, struct ir_expr *e, const char *label);

// math_divide.c: DIV, MOD, SHL and SHR of integers.
struct ir_expr *math_divide(struct math *m, struct ir_expr *e);
struct ir_expr *math_shift(struct math *m, struct ir_expr *e);
// What holds where a loop's body runs, or a branch is taken, and what a LET or loop variable is known to be.
void math_note_positive(struct math *m, struct ir_expr *e);
void math_note_condition(struct math *m, struct ir_expr *condition);
void math_note_variable(struct math *m, struct ir_var *var, const struct ir_expr *value);

// math_contract.c: fuses products into the sums that they feed, in statements and in the results behind them.
// Returns whether anything changed.
bool math_contract(struct arena *arena, struct ir_kernel *kernel, struct list *block, struct list *results);

#endif

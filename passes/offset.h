// Where an access lies in its tensor.
#ifndef RED_PASSES_OFFSET_H
#define RED_PASSES_OFFSET_H

#include "compiler/poly.h"

// The lets of a program, so that a variable's value is found in one step. Uses the variables' `mark`.
struct lets {
  struct arena *arena;
  struct list stmts; // struct ir_stmt LET, by var->mark - 1
};
void lets_collect(struct lets *lets, struct arena *arena, const struct list *block);

// An offset in elements is the sum of index * stride.
struct offset_term {
  struct ir_expr *index;
  struct ir_expr *stride; // i64
};
// The terms of an access. Axes that `fuse` made one, x / m and x % m, become x again where the strides agree: then the offset needs no division,
// and it is known to move evenly along x. Returns how many terms there are, at most mem->dims.count; `terms` has room for these.
uint32_t offset_terms(const struct lets *lets, const struct ir_mem *mem, struct ir_expr *const *indices, uint32_t count, struct offset_term *terms);

#endif

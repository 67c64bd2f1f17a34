// The parts of pass `edge`.
#ifndef RED_PASSES_EDGE_H
#define RED_PASSES_EDGE_H

#include "compiler/pass.h"

// Whether the statement defines or changes a variable that e names.
bool edge_moves_in(const struct ir_stmt *stmt, const struct ir_expr *e);
// Whether e has one value in all of the loop: it reads no memory and no variable that changes, and the loop defines nothing that it names.
bool edge_is_fixed(const struct ir_stmt *loop, struct ir_expr *e);

// passes/edge_block.c: doubles the program where blocks whose threads are all inside are worth a copy without guards.
void edge_blocks(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry);
// passes/edge_depth.c: splits loops where the array that they read changes.
void edge_depths(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry);

// passes/edge_kept.c: reads what the launch before left in front of the loops that need it.
void edge_kept(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry);
// passes/edge_ahead.c: unrolled loops that divide what they move read ahead.
void edge_ahead(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry);
// passes/edge_divide.c: unrolled loops that divide by what they do not change multiply by the inverse.
void edge_divide(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry);
// Whether the block, which is in the loop, has such a division.
bool edge_divides(const struct ir_stmt *loop, const struct list *block);

#endif

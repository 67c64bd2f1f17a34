// What a stage ARRIVE becomes in a program.
#ifndef RED_PASSES_ARRIVAL_H
#define RED_PASSES_ARRIVAL_H

#include "compiler/ir.h"

// Appends the arrival to `out`; `logical`: the block's place along each logical axis. Returns the list that the last block's statements go to.
struct list *arrival_emit(struct ir_kernel *kernel, struct ir_entry *entry, const struct ir_stage *stage, struct ir_expr *const logical[3], struct list *out);

#endif

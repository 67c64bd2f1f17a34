// --explain: what the lowered kernels look like to a launch, for a person.
#ifndef RED_COMPILER_EXPLAIN_H
#define RED_COMPILER_EXPLAIN_H

#include "compiler/ir.h"

// Appends, for each entry at LEVEL_PROGRAM in the order in which a launch tries them: when it is taken, its
// grid and block, shared and local memory, how often all threads meet, and the width of its offsets.
void explain_module(const struct ir_module *module, struct text *out);

#endif

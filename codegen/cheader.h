// Kernels as a C header: what a program that links libred-rt includes to launch them, with no compiler at
// hand.
#ifndef RED_CODEGEN_CHEADER_H
#define RED_CODEGEN_CHEADER_H

#include "compiler/diag.h"
#include "runtime/plan.h"

// The header for the kernels of the plan, whose PTX (with the plan at its head) is `ptx`. It is C99 and
// C++11, and needs red.h alone. `name` is that of the header ("rowsum.h"), from which its own names are made.
// What a C function cannot take is reported. Returns whether nothing was.
bool codegen_cheader(struct diag *diag, const struct plan *plan, const struct text *ptx, const char *name,
                     struct text *out);

#endif

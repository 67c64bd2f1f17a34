// redc run --twin: the outputs of two codes of one kernel, compared bit for bit.
#ifndef RED_COMPILER_RUN_TWIN_H
#define RED_COMPILER_RUN_TWIN_H

#include "compiler/run_kernel.h"

// The bytes of all buffers, canaries and gaps too; NULL after an error that is reported.
struct twin_bytes;
struct twin_bytes *twin_keep(struct kernel_arguments *arguments);
// Makes the buffers what they were.
void twin_restore(struct kernel_arguments *arguments, const struct twin_bytes *bytes);
// Whether the outputs are, element by element, the bits of `bytes`, any NaN being as good as another; the first other one is an error.
bool twin_agrees(struct kernel_arguments *arguments, const struct twin_bytes *bytes, const char *name);
void twin_free(struct twin_bytes *bytes);

#endif

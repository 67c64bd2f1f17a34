// redc run --twin and --seeds: the outputs of several runs on the same arguments, compared bit for bit.
#ifndef RED_COMPILER_RUN_AGAIN_H
#define RED_COMPILER_RUN_AGAIN_H

#include "compiler/run_kernel.h"

// The bytes of all buffers, canaries and gaps too; NULL after an error that is reported.
struct kept_bytes;
struct kept_bytes *bytes_keep(struct kernel_arguments *arguments);
// Makes the buffers what they were.
void bytes_restore(struct kernel_arguments *arguments, const struct kept_bytes *bytes);
// Whether the outputs are, element by element, the bits of `bytes`, any NaN being as good as another; the first other one is an error.
bool bytes_agree(struct kernel_arguments *arguments, const struct kept_bytes *bytes, const char *name);
void bytes_free(struct kept_bytes *bytes);

#endif

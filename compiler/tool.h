// Programs of others that some outputs need: ptxas for cubins.
#ifndef RED_COMPILER_TOOL_H
#define RED_COMPILER_TOOL_H

#include "compiler/pass.h"

#include <sys/types.h>

// Finds a program: in the folders of PATH, then in bin/ under CUDA_HOME and CUDA_PATH. NULL: there is none.
const char *tool_find(struct arena *arena, const char *name);

// Starts a program with `in`, `out` and `err` as its standard input, output and error; -1: those of the caller. The signals that redc ignores
// are as they are by default. Returns 0, or the errno.
int tool_start(char *const *arguments, int in, int out, int err, pid_t *child);

// Runs a program, without a shell; `arguments` ends with NULL, its first is the program. Standard input is
// empty; what it prints on standard output and standard error is appended to `said`, up to 64 KiB. Returns
// its exit status, 128 + the signal that ended it, or -1 with errno where it could not be started.
int tool_run(char *const *arguments, struct text *said);

// Assembles PTX to a cubin for the target of `options`, by ptxas. A failure is reported as ERROR_TOOL with
// what ptxas said.
bool tool_ptxas(struct diag *diag, const struct compile_options *options, const struct text *ptx,
                struct text *cubin);

#endif

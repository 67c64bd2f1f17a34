// redc-clang: the program that does what needs Clang, run by `redc inspect` and `redc lift`.
#ifndef RED_COMPILER_TOOL_CLANG_H
#define RED_COMPILER_TOOL_CLANG_H

#include "compiler/diag.h"

// Finds redc-clang: beside the running program, then in ../libexec/red, then in PATH. NULL after reporting an
// error, which says for what (`command`, "redc lift") it is needed and which packages it is built with.
const char *tool_clang_find(struct diag *diag, const char *command);

// Runs redc-clang; `arguments` ends with NULL, its first is the program. Standard input and standard error are
// those of the caller. Standard output too where `out` is NULL; otherwise it is appended to `out`. Returns the
// exit status, or -1 after reporting that it could not be started or was ended by a signal.
int tool_clang_run(struct diag *diag, char *const *arguments, struct text *out);

#endif

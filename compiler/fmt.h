// `redc fmt`: one layout for .red files.
#ifndef RED_COMPILER_FMT_H
#define RED_COMPILER_FMT_H

#include "compiler/diag.h"

// Appends source `file` of `diag` to `out`, laid out anew: indentation by braces, one space where a space
// belongs, at most one blank line, trailing comments of neighbouring lines in one column. Where the lines
// break is the writer's choice and stays; so do all comments. Formatting twice changes nothing more. False,
// and nothing appended, where the source does not parse; the errors are in `diag`.
bool red_format(struct diag *diag, uint32_t file, struct text *out);

#endif

// redc inspect on PTX: what the text itself says, read by the simulator's reader.
#ifndef RED_COMPILER_INSPECT_PTX_H
#define RED_COMPILER_INSPECT_PTX_H

#include "compiler/diag.h"

// Appends a table, or a JSON object, of the entries, the collectives with their masks and the accesses with their widths. Findings are
// warnings. False after an error: the text is no PTX that the simulator reads.
bool inspect_ptx(struct diag *diag, uint32_t file, bool json, struct text *out);

#endif

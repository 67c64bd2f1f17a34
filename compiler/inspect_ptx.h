// redc inspect on PTX: what the text itself says.
#ifndef RED_COMPILER_INSPECT_PTX_H
#define RED_COMPILER_INSPECT_PTX_H

#include "compiler/diag.h"

struct inspect_registers {
  const char *entry;
  int count;
};

// Appends a table, or a JSON object, of the entries: bounds, parameters, shared memory, the collectives with their masks, the accesses with their
// widths, the loops. Findings are warnings. kernel: this entry alone; NULL: all. registers: struct inspect_registers, what ptxas gives each thread. False after an
// error: the text is no PTX.
bool inspect_ptx(struct diag *diag, uint32_t file, const char *kernel, bool json, const struct list *registers, struct text *out);

#endif

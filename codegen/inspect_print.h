// Reports of redc inspect as text.
#ifndef RED_CODEGEN_INSPECT_PRINT_H
#define RED_CODEGEN_INSPECT_PRINT_H

#include "codegen/inspect_report.h"

// A table for a person.
void inspect_print(struct diag *diag, const struct kernel_report *reports, uint32_t count, struct text *out);
// One JSON object of the file.
void inspect_json(const char *name, const struct kernel_report *reports, uint32_t count, struct text *out);

#endif

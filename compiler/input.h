// Reading whole files.
#ifndef RED_COMPILER_INPUT_H
#define RED_COMPILER_INPUT_H

#include "compiler/diag.h"

// Sources and dumps beyond this are refused: nobody writes them, and places in them fit 32 bits.
enum { INPUT_MAX_BYTES = 64 * 1024 * 1024 };

// Appends the bytes of a file to `out`; path "-" is standard input. A file that is missing, a directory,
// unreadable or too large is reported as ERROR_FILE.
bool input_read(struct diag *diag, const char *path, struct text *out);
// What diagnostics call the file.
const char *input_name(const char *path);
// Whether a source holds no zero byte; one is reported. Scanners take time quadratic in a run of them.
bool input_is_text(struct diag *diag, uint32_t file);

#endif

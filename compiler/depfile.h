// -MD: a file of dependencies for make and ninja, as C compilers write it.
#ifndef RED_COMPILER_DEPFILE_H
#define RED_COMPILER_DEPFILE_H

#include "compiler/options.h"

// "targets: inputs", each name escaped for make; with `phony` an empty rule for every input, so that one that is gone stops no build. Standard
// input is left out. `targets` stands there as it is; NULL: the outputs.
void depfile_print(const struct list *outputs, const char *targets, const struct list *inputs, bool phony, struct text *out);
// Where -MD writes for an output: its suffix replaced by .d.
const char *depfile_path(struct arena *arena, const char *output);

#endif

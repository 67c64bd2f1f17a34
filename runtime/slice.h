// PTX of many entries, taken apart: a program that was loaded has the driver assemble only the entries that launches take.
#ifndef RED_RUNTIME_SLICE_H
#define RED_RUNTIME_SLICE_H

#include "runtime/program.h"

// Whether the PTX of a variant can be taken apart: entries beside each other that share nothing but declarations.
bool slice_is_possible(const struct variant *variant);
// For program_of_variant, with the variant as `jit`.
extern const struct jit_ops slice_ops;

#endif

// One element of an argument: read, written, as text.
#ifndef RED_COMPILER_RUN_ELEMENT_H
#define RED_COMPILER_RUN_ELEMENT_H

#include "compiler/arith.h"
#include "compiler/run_buffer.h"

// Stores a number (f8 types: as their bits; c64 and c128: as the real part). `value` is of I64 or F64.
void element_set(enum type type, uint8_t *element, struct value value);
// A number of an element that has arithmetic: F64 for floats, else I64 (u64 as its bits).
struct value element_get(enum type type, const uint8_t *element);
// The shortest decimal text that reads back as the same element; f8 as hexadecimal bits.
void element_print(struct text *out, enum type type, const uint8_t *element);
// A text as a value of a scalar: decimal, hexadecimal, true and false, inf and nan. False with a message: it
// is none, or does not fit.
bool element_parse(struct value *value, enum type type, const char *text, char *error, size_t error_bytes);

// The whole array as NumPy prints it, cut off beyond 1000 elements.
void array_print(struct text *out, const struct buffer *buffer);
// "(3, 4)", in the arena.
const char *shape_text(struct arena *arena, uint32_t rank, const int64_t *dims);

#endif

// Where an argument's elements come from: the text behind `=` in --arg NAME=TEXT.
//
//   file.npy  @any/path  bf16@file.npy     a file; with a type, the bits of one that NumPy lacks
//   rand  rand(SEED)                       floats in [-1, 1), integers over their whole range, bools, random
//   bytes iota                                   the row-major number of the element const(X) X everywhere
//   1000 * i0 + i1                         an expression of the language over the indices i0, i1, ..., the
//   row-major number i and
//                                          the kernel's sizes; it is converted to the element's type
//   (nothing)                              not initialised
//
// and behind it a view: @offset:1,strides:1003:1 places element (0, ..., 0) one element behind the buffer's
// start, at these strides.
//
// rand: element e is drawn from z = mix(seed * 0x9e3779b97f4a7c15 + e), where mix is SplitMix64's: z +=
// 0x9e3779b97f4a7c15; z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9; z = (z ^ z >> 27) * 0x94d049bb133111eb; z ^= z
// >> 31. Its top b bits, as an integer times 2^(1-b) less 1, make a float (b: 53 for f64, 24 for f32, 11 for
// f16, 8 for bf16); the top bits make an integer, bool or f8; complex and other parts count 2 * e and 2 * e
// + 1.
#ifndef RED_COMPILER_RUN_SOURCE_H
#define RED_COMPILER_RUN_SOURCE_H

#include "compiler/npy.h"
#include "compiler/options.h"
#include "compiler/run_buffer.h"

enum source_kind { SOURCE_NONE, SOURCE_FILE, SOURCE_RAND, SOURCE_IOTA, SOURCE_CONST, SOURCE_FORMULA };
struct argument_source {
  const char *name; // of the argument, for messages
  enum source_kind kind;
  const char *text; // path, constant, formula
  uint64_t seed;
  bool has_type; // TYPE@path
  enum type type;
  bool has_view, has_strides;
  int64_t offset;
  uint32_t stride_count;
  int64_t strides[NPY_MAX_RANK];
  struct npy npy; // FILE, once loaded
  struct text bytes;
};

// Reads the text; what is wrong goes to the diagnostics of `c`.
bool source_parse(struct argument_source *source, struct compilation *c, const char *name, const char *text);
// FILE: reads the file and its header.
bool source_load(struct argument_source *source, struct compilation *c);
void source_free(struct argument_source *source);

// A name with a value that a formula may mention.
struct source_size {
  const char *name;
  int64_t value;
};
// Fills the elements of `buffer`, whose shape the file has. `options` is for the messages of a formula.
bool source_fill(const struct argument_source *source, const struct options *options,
                 const struct source_size *sizes, uint32_t size_count, struct buffer *buffer);

#endif

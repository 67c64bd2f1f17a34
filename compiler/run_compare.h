// Compares what a device computed with the reference.
#ifndef RED_COMPILER_RUN_COMPARE_H
#define RED_COMPILER_RUN_COMPARE_H

#include "compiler/run_buffer.h"

enum exactness {
  EXACT_BITS,   // a move: every bit, those of NaN too
  EXACT_VALUES, // no operation rounds: the same values, zeros with their sign, any NaN for a NaN
  ROUNDED,      // floats within a tolerance
};
// How an output of a checked kernel is to be compared: ROUNDED where an operation on floats that leads to
// some output can round.
enum exactness compare_exactness(const struct ir_kernel *kernel, const struct ir_entry *entry,
                                 const struct ir_mem *output);

struct comparison {
  int64_t different; // elements beyond the tolerance
  int64_t worst;     // row-major number of the worst of them
  double tolerance;  // absolute, of that element
  double distance;   // of that element, where there is one
};
// Whether `got` agrees with `want`. ROUNDED needs `wide`, the reference computed in f64 between loads and
// stores: a result may differ from either by
//
//   e * (16 + 2 * log2(steps)) * |wide| + 8 * max |want - wide| + 2 * sqrt(steps) * e * max |wide|
//
// where e is the type's rounding unit (2^-24 for f32), steps the number of evaluations that the reference
// made, and the maximum, over the whole output, measures how far rounding carries in this very program. `turned`,
// if given, is the reference with reductions in another order: max |want - turned| then counts beside max |want - wide|,
// which is small by luck where a sum of few elements is.
bool compare_buffers(const struct buffer *got, const struct buffer *want, const struct buffer *wide,
                     const struct buffer *turned, enum exactness exactness, uint64_t steps, struct comparison *result);

#endif

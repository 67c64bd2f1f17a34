// The last launches of each thread: one that is given the same arguments again is started without evaluating its plan.
//
// Programs launch the same kernels on the same buffers over and over; what depends on nothing but the kernel and its arguments need not be computed again.
// Arguments are compared whole: pointers, types, shapes, strides, scalars. Kernels that are compiled for each list of sizes are left out, since what they run
// may be dropped, and so is the simulator.
#ifndef RED_RUNTIME_REPEAT_H
#define RED_RUNTIME_REPEAT_H

#include "runtime/arguments.h"

enum { REPEAT_WORDS = 96, REPEAT_LAUNCHES = 2, REPEAT_ARGUMENTS = 24 };

struct repeat_launch {
  void *function;
  uint32_t grid[3], block[3];
  uint32_t shared, argument_count;
  bool is_programmatic;
  uint32_t in_workspace; // a bit for each argument that is an offset into workspace
  uint64_t arguments[REPEAT_ARGUMENTS];
};
struct repeat {
  uint64_t serial; // of the kernel; 0: none
  uint32_t word_count;
  int64_t words[REPEAT_WORDS]; // the arguments
  int64_t workspace, zeroed;   // bytes, as in struct plan_result
  uint32_t launch_count;
  struct repeat_launch launches[REPEAT_LAUNCHES];
};

// The arguments as numbers that are equal where the arguments are; 0: there are too many of them, or they are not legal.
uint32_t repeat_words(const red_argument *arguments, size_t count, int64_t *words);
// The launch of this kernel with these arguments, where it is among the thread's last; else NULL.
struct repeat *repeat_find(const struct red_kernel *kernel, const int64_t *words, uint32_t word_count);
// Keeps a launch that was started.
void repeat_keep(const struct red_kernel *kernel, const int64_t *words, uint32_t word_count, const struct call *call);

#endif

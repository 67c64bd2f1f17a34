// The last launches of each thread: one of the same kernel with arguments of the same types, shapes, strides and scalars is started without evaluating its plan.
//
// Programs launch the same kernels on the same kinds of buffers over and over; what depends on nothing but the kernel and its arguments need not be computed again.
// Where only tensors lie elsewhere, what their addresses decide is looked at: whether they are aligned as before, and whether an output's memory is its own. What is
// not plain then is left to the launch that evaluates. Kernels that are compiled for each list of sizes are left out, since what they run may be dropped, and so is the
// simulator.
#ifndef RED_RUNTIME_REPEAT_H
#define RED_RUNTIME_REPEAT_H

#include "runtime/arguments.h"

enum { REPEAT_WORDS = 96, REPEAT_TENSORS = 16, REPEAT_LAUNCHES = 2, REPEAT_ARGUMENTS = 24 };

// The arguments of a launch as numbers that are equal where the arguments are.
struct repeat_key {
  uint32_t word_count, tensor_count;
  int64_t words[REPEAT_WORDS];        // everything but where the tensors lie
  uint64_t addresses[REPEAT_TENSORS]; // by tensor, of element (0, ..., 0)
};
struct repeat_launch {
  void *function;
  uint32_t grid[3], block[3];
  uint32_t shared, argument_count;
  bool is_programmatic;
  uint32_t in_workspace; // a bit for each argument that is an offset into workspace
  uint64_t arguments[REPEAT_ARGUMENTS];
  uint8_t tensors[REPEAT_ARGUMENTS]; // by argument: 1 + the tensor whose address it is; 0: it is none
};
// Where a tensor's bytes are, from its address on: low to high, high exclusive.
struct repeat_span {
  int64_t low, high;
  bool is_empty, is_output;
};
struct repeat {
  uint64_t serial; // of the kernel; 0: none
  struct repeat_key key;
  uint64_t fixed; // the bits of addresses in which nothing may change
  struct repeat_span spans[REPEAT_TENSORS];
  int64_t workspace, zeroed; // bytes, as in struct plan_result
  uint32_t launch_count;
  struct repeat_launch launches[REPEAT_LAUNCHES];
};

// False: there are too many arguments, or they are not legal.
bool repeat_make_key(const red_argument *arguments, size_t count, struct repeat_key *key);
// The launch of this kernel with these arguments, where it is among the thread's last or is one of them with tensors elsewhere; else NULL. It is the thread's
// until its next launch.
const struct repeat *repeat_find(const struct red_kernel *kernel, const struct repeat_key *key);
// Keeps a launch that was started.
void repeat_keep(const struct red_kernel *kernel, const struct repeat_key *key, const struct call *call);

#endif

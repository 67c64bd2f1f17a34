// How a reduction over threads is carried out: chosen here, asked by `nest` (which widens the block for it) and by `allreduce`.
#ifndef RED_PASSES_ALLREDUCE_H
#define RED_PASSES_ALLREDUCE_H

#include "compiler/pass.h"

enum allreduce_kind {
  ALLREDUCE_COPY,    // one thread a group
  ALLREDUCE_XOR,     // groups of a power of two lanes, at a stride: butterfly
  ALLREDUCE_GUARDED, // one group of at most 32 lanes that is the whole block: shuffle down, guarded
  ALLREDUCE_WARPS,   // groups of whole warps, or one group: shuffles, a word a warp, shuffles again
  ALLREDUCE_STRIDED, // groups at a stride of at most 32 lanes, spread over whole warps: the same with a word a warp and group
  ALLREDUCE_TREE,    // any extents, in shared memory
};

struct allreduce_shape {
  uint32_t threads;        // of the block
  uint32_t extent, groups; // threads a group, groups a block
  uint32_t stride;         // lanes between neighbours of a group, where it is the same for all; else 0
};

struct allreduce_choice {
  enum allreduce_kind kind;
  struct allreduce_shape shape;
  uint32_t steps, barriers, shared_bytes; // cost
  const char *refused;                    // why not a cheaper form; NULL: there is none
};

struct allreduce_shape allreduce_shape_of(const uint32_t block[3], uint32_t thread_axes);
// The form for this block as it is. `form` may force shuffles or the tree; returns false when that is not possible, with the reason in
// choice->refused.
bool allreduce_choose(const uint32_t block[3], uint32_t thread_axes, const struct ir_reducer *reducer, bool result_in_all, enum allreduce_form form,
                      struct allreduce_choice *choice);
// Widens `block`, where that makes shuffles possible and stays within 1024 threads. The added threads carry the identity.
void allreduce_widen(uint32_t block[3], uint32_t thread_axes, const struct ir_reducer *reducer, bool result_in_all, enum allreduce_form form);

// The least power of two that is not below x.
uint32_t next_power_of_two(uint32_t x);

#endif

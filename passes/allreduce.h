// How a reduction over threads is carried out: chosen here, asked by `nest` (which widens the block for it) and by `allreduce`.
#ifndef RED_PASSES_ALLREDUCE_H
#define RED_PASSES_ALLREDUCE_H

#include "compiler/pass.h"

enum {
  ALLREDUCE_SHARED_LIMIT = 48 * 1024,   // bytes of shared memory that a block may have without asking at launch
  ALLREDUCE_TOGETHER_LIMIT = 16 * 1024, // bytes that reductions which share a barrier take
};

enum allreduce_kind {
#define F(name, asked, title) ALLREDUCE_##name,
#include "passes/allreduce_forms.def"
#undef F
  ALLREDUCE_KINDS
};

struct allreduce_shape {
  uint32_t threads;        // of the block
  uint32_t extent, groups; // threads a group, groups a block
  uint32_t stride;         // lanes between neighbours of a group, where it is the same for all; else 0
};

// What is asked for.
struct allreduce_request {
  uint32_t block[3];
  uint32_t thread_axes; // reduced ones, bit 0 x, 1 y, 2 z
  const struct ir_reducer *reducer;
  uint32_t tuples; // reduced side by side
  bool result_in_all;
  enum allreduce_form form;
  uint32_t sm;       // of the target
  bool is_segmented; // groups come here at different times: each only names its own lanes, and none waits for the block
};

// What one form would take; in cycles, as allreduce_cost.def has them.
struct allreduce_form_cost {
  const char *refused; // why it is not possible; NULL: it is
  uint32_t steps, barriers, warp_barriers, shared_bytes, conflicts, cycles;
};

struct allreduce_choice {
  enum allreduce_kind kind;
  struct allreduce_shape shape;
  bool uses_redux; // in whole warps
  struct allreduce_form_cost forms[ALLREDUCE_KINDS];
};

const char *allreduce_title(enum allreduce_kind kind);
// The cheapest form for this block as it is, of those that request->form allows; false when none of them is possible.
bool allreduce_choose(const struct allreduce_request *request, struct allreduce_choice *choice);
// Why no form that `shuffle` allows is possible.
const char *allreduce_why_no_shuffle(const struct allreduce_choice *choice);
// Way `how` to widen a block, so that other forms are possible, and what would be chosen then; false where it is none, more than twice as wide, or leaves
// the limits of a block.
enum { ALLREDUCE_WIDENINGS = 2 };
bool allreduce_wider(const struct allreduce_request *narrow, int how, struct allreduce_request *wide, struct allreduce_choice *choice);
// Blocks of so many threads that a multiprocessor holds.
uint32_t allreduce_blocks_held(uint32_t threads);
// Widens request->block where a form that this makes possible is cheaper, within 1024 threads. The added threads carry the identity.
void allreduce_widen(struct allreduce_request *request);

// The operation of redux.sync that combines as this reducer does; OP_CONST: there is none.
enum op allreduce_redux_op(const struct ir_reducer *reducer);
// Members 0..count-1 of every group, or in order every aligned run of so many, lie in one warp each: the largest such power of two.
uint32_t allreduce_in_warp(const uint32_t block[3], uint32_t thread_axes, bool in_order);
// Whether words in shared memory run along the members of a group (else along the groups), and the passes more than one that an access of
// each thread to its word takes then.
bool allreduce_member_fastest(const uint32_t block[3], uint32_t thread_axes, uint32_t bytes, uint32_t *conflicts);

// Finds the thread axes in which variables of an entry differ: their marks, bit 0 x, 1 y, 2 z.
void allreduce_find_varying(const struct ir_entry *entry);
// The axes in which an expression differs, behind that.
uint32_t allreduce_varies(const struct ir_entry *entry, const struct ir_expr *e);

// The least power of two that is not below x.
uint32_t next_power_of_two(uint32_t x);

#endif

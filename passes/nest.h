// What the files of pass nest have in common.
#ifndef RED_PASSES_NEST_H
#define RED_PASSES_NEST_H

#include "compiler/pass.h"

// A stage on its way.
struct work {
  struct ir_stage *stage;
  struct list loops;     // struct ir_stage_axis that are not bound, outermost first
  struct list loop_ids;  // of the nest tree: uintptr_t, which instance of a loop each is
  uint32_t first_reduction; // place in loops where the accumulator lives; loops.count when none
  uint32_t thread_axes;  // reduced ones
  uint32_t guards_done;  // guards already around us
  bool is_active;        // the condition of idle threads and blocks is around us
  struct list kept_axes; // struct ir_axis: parallel loops that the results are kept over, as an array
  struct list inner_axes; // struct ir_axis: parallel loops inside the reduction
  struct list accumulators; // struct ir_var MUTABLE or, with inner axes, struct ir_mem
  struct list kept;         // struct ir_mem, with kept axes
  struct list outer_guards; // struct ir_expr: those of the stage that mention no axis reduced over; in the order of its guards
};

struct nest {
  struct pass_context *context;
  struct arena *arena;
  struct diag *diag;
  struct ir_kernel *kernel;
  struct ir_entry *entry;
  struct list works; // struct work
  struct ir_expr *logical[3]; // the block's place
  uint32_t arrived;  // block axes of which only the last block is here: bit 0 x, 1 y, 2 z
  bool failed;
};

// nest.c: derived axes whose pieces are known now become lets here. Returns those emitted, for nest_forget.
struct list nest_emit_derived(struct nest *n, const struct list *works, struct list *out);
void nest_forget(const struct list *vars);
// Results kept in arrays are read at the consumer's own place: not before the loops that say which element are open.
void nest_refresh_values(struct nest *n);
// Which threads and blocks run a stage: not those of dimensions wider than its own axis there nor, for a store, of dimensions it does not use.
struct ir_expr *nest_active(struct nest *n, const struct ir_stage *stage);

// nest_init.c: the values that a reduction starts from, in arguments[0..components), behind its loops: where the conditions around the reduction hold,
// and the identity elsewhere, where nobody reads the result.
void nest_emit_initial_values(struct nest *n, struct work *w, struct list *out, struct ir_expr **arguments);
// Which guards nest_emit_initial_values asks. Before any loop is open.
void nest_find_outer_guards(struct nest *n, struct work *w);

#endif

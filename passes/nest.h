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
  uint32_t run;          // how many arrivals are in front of it
  bool is_read_later;    // behind a later arrival
  struct list kept_axes; // struct ir_axis: parallel loops that the results are kept over, as an array
  struct list inner_axes; // struct ir_axis: parallel loops inside the reduction
  struct list accumulators; // struct ir_var MUTABLE or, with inner axes, struct ir_mem
  struct list kept;         // struct ir_mem, with kept axes
  struct list outer_lets;   // struct ir_expr or NULL: what the stage's lets are called around it, between nest_begin_lets and nest_end_lets
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
  bool in_parts;     // inside vectors that are not whole
  uint32_t arrived;  // block axes of which only the last block is here: bit 0 x, 1 y, 2 z
  bool failed;
};

static inline struct ir_expr *nest_int(struct nest *n, int64_t value) { return ir_int(n->arena, TYPE_INDEX, value); }
// The expression as it can be said at the present place.
static inline struct ir_expr *nest_here(struct nest *n, struct ir_expr *e) { return ir_substitute(n->arena, e); }
static inline struct ir_var *nest_new_let(struct nest *n, const char *label, enum type type) { return ir_new_var(n->kernel, VAR_LET, type, label); }
static inline void nest_emit_let(struct nest *n, struct list *out, struct ir_var *var, struct ir_expr *value, struct range range) {
  list_push(n->arena, out, ir_let(n->arena, var, value, range));
}

// nest.c: derived axes whose pieces are known now become lets here. Returns those emitted, for nest_forget.
struct list nest_emit_derived(struct nest *n, const struct list *works, struct list *out);
void nest_forget(const struct list *vars);
// Which threads and blocks run a stage: not those of dimensions wider than its own axis there nor, for a store, of dimensions it does not use.
struct ir_expr *nest_active(struct nest *n, const struct ir_stage *stage);
// The same around a reduction: threads that take no part in it may need its value.
struct ir_expr *nest_active_around(struct nest *n, const struct ir_stage *stage);

// nest_block.c: the entry's block from the axes on threads; false after an error.
bool nest_set_block(struct nest *n);
// The fast entry computes with 32-bit indices: every axis, its last step included, stays below 2^31.
void nest_assume_small_axes(struct nest *n);
// Every bound axis becomes a let at the top, its place in the block or in the grid. Returns the list that the rest of the program goes to.
struct list *nest_emit_bound_axes(struct nest *n);
// Whether an expression is made of sizes and scalars alone.
bool nest_is_of_sizes(struct ir_expr *e);

// Whether a guard reads what some of these threads may not: its place is inside the tensor only where the stage is not idle.
bool nest_reads_idle(struct nest *n, const struct work *w, struct ir_expr *guard);
// nest_guard.c: where an axis is made of vectors, its guard is asked once for each, in the fast entry. Before the guards are sorted.
void nest_lift_vector_guards(struct nest *n, struct ir_stage *stage);
// Guards that are known further out come first; those that read memory stay last, behind the ones that keep them inside their tensors.
void nest_sort_guards(struct nest *n, struct work *w);

// nest_vector.c: quotients and remainders whose pieces say what they are: (c * q + r) / c with r below c is q.
void nest_divide_derived(struct nest *n, struct ir_stage *stage);
// Derived axes that are made of one which may begin inside a piece are made behind its guards, where they are in their ranges.
void nest_defer_derived(struct nest *n, struct ir_stage *stage);
// Where the loops from `depth` on are vectors that an axis may begin or end inside of: a test, put into `out`, of whether all of a vector is there,
// and in *whole the stage for its body. NULL where nothing is gained.
struct ir_stmt *nest_test_vectors(struct nest *n, struct work *w, uint32_t depth, struct list *out, struct ir_stage *whole);

// nest_reduce.c: whether the arrays of a reduction's values may lie in registers. Only then loops over them are unrolled whole.
bool nest_fits_registers(const struct work *w);
// In front of the loops of a reduction: its accumulators, with the identity in them.
void nest_emit_init(struct nest *n, struct work *w, struct list *out);
// One iteration: accumulator = update(accumulator, operands); the operands alone where it is the only one.
void nest_emit_update(struct nest *n, struct work *w, struct list *out, bool is_only);
// Behind the loops: over threads, then the initial value, into the stage's results.
void nest_emit_finish(struct nest *n, struct work *w, struct list *out);
// Whether a later stage needs the result in every thread, or only where the reduced coordinates are all zero: a store that uses none of
// the reduced thread axes runs there alone.
bool nest_result_in_all(struct nest *n, struct work *w);
// The lets of a stage, emitted here; their substitutions stay set until nest_end_lets.
void nest_begin_lets(struct nest *n, struct work *w, struct list *out);
void nest_end_lets(struct work *w);
// Results kept in arrays are read at the consumer's own place: not before the loops that say which element are open.
void nest_refresh_values(struct nest *n);

// nest_narrow.c: around the loops of a work from `depth` on, accumulators that cost less: 32 bits for a sum of narrow integers in 64, where none can overflow, and
// for the index of argmin and argmax, which also need not ask which index is lower where indices only grow. nest_end_narrow puts what they hold into the work's own.
// `narrowed` is scratch of the two.
struct narrowed {
  struct ir_stage *stage; // NULL: nothing was done
  struct list accumulators;
};
void nest_begin_narrow(struct nest *n, struct work *w, uint32_t depth, struct list *out, struct narrowed *narrowed);
void nest_end_narrow(struct nest *n, struct work *w, struct list *out, struct narrowed *narrowed);

// The accumulators of a work, for nest_narrow.c: loops over its inner axes (their variables stay substituted until nest_close_loops), and one element.
struct list *nest_open_loops(struct nest *n, struct list *out, const struct work *w);
void nest_close_loops(const struct list *axes);
struct ir_expr *nest_read_accumulator(struct nest *n, struct work *w, uint32_t component);
void nest_write_accumulator(struct nest *n, struct work *w, struct list *out, uint32_t component, struct ir_expr *value);

// nest_init.c: the values that a reduction starts from, in arguments[0..components), behind its loops: where the conditions around the reduction hold,
// and the identity elsewhere, where nobody reads the result.
void nest_emit_initial_values(struct nest *n, struct work *w, struct list *out, struct ir_expr **arguments);
// Which guards nest_emit_initial_values asks. Before any loop is open.
void nest_find_outer_guards(struct nest *n, struct work *w);

#endif

// Writers of the classes of schedules of reductions: each writes one `schedule`, with its reason above it.
#ifndef RED_PASSES_AUTOMATIC_WRITE_H
#define RED_PASSES_AUTOMATIC_WRITE_H

#include "passes/automatic_view.h"

// The longest run of axes, from the innermost, that are one axis to every access, and what is around it.
struct fused {
  struct list outer; // struct ir_axis: serial loops around it
  struct list inner; // struct ir_axis: become one axis
  bool is_sorted;    // the nest has these axes in this order
};
// `all`: everything becomes one axis, at the cost of a division a step where strides do not agree.
struct fused view_fuse(const struct view *view, const struct view_stage *stage, const struct list *axes, bool all);
// How many elements an access of 16 bytes holds, as far as the places of all accesses along the fused axis allow; 1: accesses of one element.
// Where the number of iterations is not known, a multiple is taken for granted: it goes into the `when`.
int view_vector(const struct view *view, int space, const struct fused *fused);

// Whether the reductions can share one loop, so that none needs another's result: writers join them.
bool view_can_join(const struct view *view);
// Whether a maximum and the sum of exponentials below it are among them, as in softmax: writers join them where what they read is not kept.
bool view_rescales(const struct view *view);

// Whether exactly one tensor is read by several stages along all axes, the same element by each: it can be kept.
bool view_keeps_one(const struct view *view);

// A row: what is reduced to one output, or to one element of each output.
struct rows_form {
  const char *name;   // of the schedule
  const char *reason; // text behind it
  const char *when;   // NULL: always
  int vector;         // elements a load
  int lanes;          // threads along a row; 1: a thread has rows of its own
  int groups;         // rows side by side in a block
  int rows;           // rows one after another in a thread, all in flight
  bool are_neighbours; // these rows lie side by side, and are loaded as one
  int flight;         // loads in flight a row; 0: the whole row
  int steps;          // flight 0: loads a thread at most, as `when` states it where the size of a row is not known
  bool fuse_all;      // see view_fuse
  int depth;          // flight 0: steps of what several stages read that stay in registers, the others in shared memory; 0: all in registers
  int parts;          // split over the grid: so many blocks a multiprocessor in all; 0: not split
  int blocks;         // so many blocks a multiprocessor must have room for; 0: any
  const char *cache;  // hint for tensors of which each element is read once; NULL: none
};
void write_rows(struct view *view, const struct rows_form *form);

// Rows of a known length, one behind another in a tensor, copied to shared memory as one run of memory.
struct staged_form {
  const char *name, *reason, *when;
  const char *tensor; // whose rows
  int rows;           // of a block
  int lanes;          // threads along a row
  int vector;         // elements that are copied at once
  int read;           // elements that a thread of several lanes reads at once
  bool fuse_all;      // as of a row
  const char *cache;  // as of a row
};
void write_staged(struct view *view, const struct staged_form *form);

// A column: outputs side by side in memory, reduced along an axis that is not.
struct columns_form {
  const char *name, *reason, *when;
  int vector;  // outputs a thread, side by side
  int apart;   // outputs a thread, `lanes` apart; 0: one
  int lanes;   // threads along outputs
  int threads; // threads along the reduction
  int flight;  // loads in flight a thread; 0: all of them
  int parts;   // as of a row
  int depth;   // as of a row, with `kept`
  int kept;    // steps a thread, as `when` states it where they are not known, if what several stages read stays in registers; 0: it does not
  int blocks;  // as of a row
  const char *cache; // as of a row
};
void write_columns(struct view *view, const struct columns_form *form);

// Element-wise work on neighbours in memory.
struct map_form {
  const char *name, *reason, *when;
  const struct fused *fused; // of the common axes
  int vector;                // elements a load
  int flight;                // loads a thread
  const char *cache;         // as of a row
};
void write_map(struct view *view, const struct map_form *form);

// One thread an output; never an access that is not as wide as an element.
void write_thread(struct view *view, const char *when, const char *reason);

// A schedule of no code, which stands for others (see PLAN_EXACT); `axis`: any one.
void write_placeholder(struct view *view, const char *name, const char *when, const char *axis, const char *reason);

// automatic_reduce.c: schedules of stages that have axes of their own, as rows. False where it wrote none.
bool automatic_rows(struct view *view);

#endif

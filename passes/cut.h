// The parts of pass `cut`.
#ifndef RED_PASSES_CUT_H
#define RED_PASSES_CUT_H

#include "compiler/pass.h"

struct cut {
  struct pass_context *context;
  struct arena *arena;
  struct ir_kernel *kernel;
  struct ir_entry *entry;
};

// A new part of the workspace behind those that there are, row-major; `dims`: struct ir_expr, i64.
struct ir_mem *cut_workspace(struct cut *c, const char *label, enum type type, const struct list *dims, struct range range);
// The entry's counters, at the start of the workspace.
struct ir_mem *cut_counters(struct cut *c);
struct ir_axis *cut_axis(struct cut *c, const char *label, struct ir_expr *extent, enum ir_bind bind, struct range range);
void cut_use_axis(struct cut *c, struct list *axes, struct ir_axis *axis, bool is_reduction);

// A value of the whole grid that the launch before left in the workspace.
struct cut_value {
  struct ir_var *var; // what stages call it
  struct ir_mem *mem;
  struct list axes; // struct ir_axis, one an index of mem
};
// passes/cut_launch.c: an entry for the launch behind c->entry, of copies of `stages` (struct ir_stage of c->entry), which read `values` (struct
// cut_value) from the workspace. It stands behind c->entry among the kernel's entries.
struct ir_entry *cut_next_launch(struct cut *c, const struct list *stages, const struct list *values);
// Takes away the axes that no stage has.
void cut_drop_unused(struct cut *c, struct ir_entry *entry);

// passes/cut_flag.c. Whether the stage's values fit words with flags, and one thread waits for each; else reports it.
bool cut_takes_flag(struct cut *c, const struct ir_stage *stage);
// Loads in flight a thread of what combines them.
uint32_t cut_flag_flight(const struct ir_stage *stage);
struct ir_expr *cut_to_word(struct cut *c, struct ir_expr *value);
// Makes `final`, whose operands are loads of words, wait for them: appends the stages in front of it to `before`, those behind it to `behind`. `unrolled`:
// its loop over the loads in flight.
void cut_await(struct cut *c, struct ir_stage *final, const struct ir_axis *unrolled, struct list *before, struct list *behind);

// passes/cut_atomic.c: makes the fold that `stage` feeds an atomic of every block. Reports and returns false where that cannot be.
bool cut_atomic(struct cut *c, struct ir_stage *stage);

#endif

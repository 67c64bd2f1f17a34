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

#endif

// What stages read of a tensor: found, and replaced by reads of a copy.
#ifndef RED_PASSES_STAGE_LOAD_H
#define RED_PASSES_STAGE_LOAD_H

#include "compiler/ir.h"

struct stage_load {
  const struct ir_mem *mem;
  struct ir_expr *load; // the first found; NULL: none
  bool differs;         // another one was found that reads another element
};

// Looks through an expression for reads of find->mem: a visitor of expressions, whose state is a struct stage_load.
void stage_load_visit(struct ir_expr *e, void *find);
// All that the stage reads of `mem`.
struct stage_load stage_find_load(const struct ir_stage *stage, const struct ir_mem *mem);

struct load_replacement {
  const struct ir_mem *mem;
  struct ir_expr *by;
};

// Makes `by` of a read of replacement->mem: a rewriter of expressions, whose state is a struct load_replacement.
struct ir_expr *load_replace(struct arena *arena, struct ir_expr *e, void *replacement);
// The same for a list of expressions, which others may share: it becomes a list of its own.
void load_replace_list(struct arena *arena, struct list *exprs, struct load_replacement *replacement);

#endif

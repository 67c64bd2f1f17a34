// Questions about stages that several passes ask.
#ifndef RED_PASSES_STAGE_H
#define RED_PASSES_STAGE_H

#include "compiler/poly.h"

// What holds inside the body of a stage: the ranges of its axes, what derived axes stand for, its guards.
void stage_facts(const struct ir_stage *stage, struct facts *facts);
// The same with every axis replaced by a new one; `*indices` (struct ir_expr) are rewritten along.
void stage_facts_renamed(struct ir_kernel *kernel, const struct ir_stage *stage, struct facts *facts, struct list *indices);
// Whether the stage's label, or one of the names of a tuple's label "V,P", is `name`.
bool stage_is_named(const struct ir_stage *stage, const char *name);
// The extent without the max(0, ...) that keeps an empty range empty.
struct ir_expr *extent_inner(struct ir_expr *extent);

// Whether a name other than a size or scalar stands in it: an axis, or what is made of axes.
bool mentions_axis(const struct ir_expr *e);
// Whether the stage reads `value`, the result of another one.
bool stage_reads(const struct ir_stage *stage, const struct ir_var *value);

#endif

// The parts of pass `schedule`.
#ifndef RED_PASSES_SCHEDULE_H
#define RED_PASSES_SCHEDULE_H

#include "compiler/pass.h"
#include "compiler/poly.h"

// passes/automatic_general.c: appends directives to an entry that has neither a user's schedule nor one of passes/automatic.h.
void schedule_automatically(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry);

// passes/join.c: lets independent reductions share their axes, so that they become one loop; makes one reduction of a maximum and the sum of exponentials below it.
// Reports and returns false where they cannot.
bool schedule_join(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry, const struct ir_directive *directive);

// Gives an axis whose extent is at most some constant, by what `when` states, that constant extent, under a guard; false where none is known.
bool schedule_bound_extent(struct pass_context *context, struct ir_entry *entry, struct ir_axis *axis);
// passes/registers.c: a stage that reads a tensor into a local array, which the stages inside an axis read instead.
bool schedule_registers(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry, const struct ir_directive *directive);

// passes/stage_shared.c: a stage that copies part of a tensor to shared memory, which the stages inside an axis read instead.
bool schedule_shared(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry, const struct ir_directive *directive);

// passes/split_along.c: an i64 expression that a polynomial became, in index arithmetic.
struct ir_expr *schedule_index(struct arena *arena, struct ir_expr *e);
// Where an access of `mem` at `indices` stands, in elements, over the leaf axes of the stage.
struct poly schedule_offset(struct arena *arena, struct facts *facts, const struct ir_stage *stage, const struct ir_mem *mem, struct ir_expr *const *indices);
// Where it stands with these axes at 0, in elements, without the terms that are multiples of the factor;
// NULL where that is no sum of products. Without a factor: all terms.
struct ir_expr *schedule_start(struct arena *arena, struct facts *facts, const struct ir_stage *stage, const struct list *axes, const struct ir_mem *mem, struct ir_expr *const *indices,
                               struct ir_expr *factor);
// By how much the pieces of `axis` that `split ... along` makes are shifted, an index expression of other axes from 0 to *most.
// Reports and returns false where they cannot be.
bool schedule_along(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry, const struct ir_directive *directive, const struct ir_axis *axis, struct ir_expr *factor,
                    struct ir_expr **shift, int64_t *most);

// passes/copies.c: puts the stage that fills a copy in front of the one at `place`, its first reader, and of copies further in.
void schedule_insert_fill(struct arena *arena, struct ir_entry *entry, struct ir_stage *fill, uint32_t place);
// Whether every copy holds what its readers want, behind all directives. Reports where one does not.
bool schedule_check_copies(struct pass_context *context, const struct ir_entry *entry);

#endif

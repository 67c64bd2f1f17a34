// Questions about stages that several passes ask.
#ifndef RED_PASSES_STAGE_H
#define RED_PASSES_STAGE_H

#include "compiler/poly.h"

// What holds inside the body of a stage: the ranges of its axes, what derived axes stand for, its guards.
void stage_facts(const struct ir_stage *stage, struct facts *facts);
// The same with every axis replaced by a new one; `*indices` (struct ir_expr) are rewritten along.
void stage_facts_renamed(struct ir_kernel *kernel, const struct ir_stage *stage, struct facts *facts, struct list *indices);
// An expression of the stage in its leaf axes: derived axes as what they stand for.
struct ir_expr *stage_in_leaves(struct arena *arena, const struct ir_stage *stage, struct ir_expr *e);
// Whether the stage has a guard of another stage, axes of equal names taken for one.
bool stage_asks(struct arena *arena, const struct ir_stage *stage, const struct ir_stage *other, struct ir_expr *guard);
// Whether e names an axis that the stage reduces over, as it is or in leaves.
bool stage_mentions_reduction(struct arena *arena, const struct ir_stage *stage, struct ir_expr *e);
// Whether the stage's label, or one of the names of a tuple's label "V,P", is `name`.
bool stage_is_named(const struct ir_stage *stage, const char *name);
// The extent without the max(0, ...) that keeps an empty range empty.
struct ir_expr *extent_inner(struct ir_expr *extent);

// An index expression over sizes, computed in 64 bits.
struct ir_expr *extent_wide(struct arena *arena, struct ir_expr *e);
// "thread.x"
const char *bind_name(enum ir_bind bind);
// Notes behind an error: where the axis comes from, and where it is bound or unrolled.
void axis_note(struct diag *diag, const struct ir_axis *axis);
// The same of the stage's reduction axes that are bound to threads, or to blocks.
void stage_note_reductions(struct diag *diag, const struct ir_stage *stage, bool (*is_there)(enum ir_bind));
static inline bool bind_is_thread(enum ir_bind bind) { return bind >= BIND_THREAD_X && bind <= BIND_THREAD_Z; }
static inline bool bind_is_block(enum ir_bind bind) { return bind >= BIND_BLOCK_X && bind <= BIND_BLOCK_Z; }
// The stage's axis that is bound there; NULL: none.
struct ir_axis *stage_bound_axis(const struct ir_stage *stage, enum ir_bind bind);
// The extent of a logical block axis: the largest among the stages, as an i64 expression of sizes. At least 1 where blocks that differ in it arrive.
struct ir_expr *entry_grid_extent(struct arena *arena, const struct ir_entry *entry, uint32_t dimension);

enum { STATIC_LIMIT = 48 * 1024 }; // bytes of shared memory that a kernel can declare
// Bytes of shared memory that a block has, each object from a multiple of its alignment on: those that the kernel declares, and what a launch asks for.
int64_t entry_shared_bytes(const struct ir_entry *entry, bool with_dynamic);
// Makes its largest object the one whose bytes a launch asks for: the least is left for the kernel to declare.
void entry_ask_for_largest(struct ir_entry *entry);
struct pass_context;
// Whether a block of the entry takes more shared memory than the target allows, what it asks for at launch included, or declares more than a kernel can; then
// `bytes` are what it takes and `most` what is legal. Asks at launch for the largest object where that helps.
bool entry_exceeds_shared(struct ir_entry *entry, const struct pass_context *context, int64_t *bytes, int64_t *most);

// Whether a name other than a size or scalar stands in it: an axis, or what is made of axes.
bool mentions_axis(const struct ir_expr *e);
// Whether the stage reads `value`, the result of another one.
bool stage_reads(const struct ir_stage *stage, const struct ir_var *value);

#endif

// What the forms of pass `allreduce` are written with.
//
// Several reductions over the same thread axes whose form passes a block barrier are carried out together, one barrier for all: each is a
// part, with its own values.
#ifndef RED_PASSES_ALLREDUCE_EMIT_H
#define RED_PASSES_ALLREDUCE_EMIT_H

#include "passes/allreduce.h"

// Shared words that reductions of an entry take turns with: neighbours never use the same, so that the barrier of one also ends the reads of
// the one before it, and the next may have its words.
struct scratch {
  struct ir_mem *mem;
  uint32_t words, turn;
};
struct scratch_pool {
  struct list objects; // struct scratch
  uint32_t turn;       // 0 or 1, of the reduction at hand
};

struct part {
  struct ir_stmt *source; // the ALLREDUCE
  const struct ir_reducer *reducer;
  uint32_t count;          // values: components of one or several tuples, which are reduced side by side
  struct ir_expr **values;
  struct ir_mem **scratch;
  struct ir_stmt **kept; // mutable variables that keep a value behind a condition
};

struct emitter {
  struct pass_context *context;
  struct arena *arena;
  struct ir_kernel *kernel;
  struct ir_entry *entry;
  struct ir_stmt *source; // of the first part
  struct allreduce_choice choice;
  struct part *parts;
  uint32_t part_count;
  bool is_segmented; // a mask names the lanes of one group alone
  struct scratch_pool *pool;
  struct list used; // struct scratch: by the reduction at hand
  struct list *out;
  struct ir_expr *linear, *lane, *warp, *mask; // made on first use
};

struct ir_expr *emit_number(struct emitter *e, int64_t value); // of the entry's index type
struct ir_expr *emit_u32(struct emitter *e, uint32_t value);
struct ir_expr *emit_binary(struct emitter *e, enum op op, struct ir_expr *a, struct ir_expr *b);
// A name for a value, unless it is a leaf.
struct ir_expr *emit_let(struct emitter *e, const char *label, struct ir_expr *value);

// Where a thread is: in the block, in its warp, its warp; and the lanes that exist in its warp.
struct ir_expr *emit_thread(struct emitter *e, uint32_t d);
struct ir_expr *emit_linear(struct emitter *e);
struct ir_expr *emit_lane(struct emitter *e);
struct ir_expr *emit_warp(struct emitter *e);
struct ir_expr *emit_existing_lanes(struct emitter *e);
// The lanes of the thread's group, a power of two at a stride of a power of two inside one warp.
struct ir_expr *emit_segment(struct emitter *e);

// Lets made inside a branch are unknown behind it: what stood before it comes back.
struct place {
  struct ir_expr *linear, *lane, *warp, *mask;
};
struct place emit_remember(const struct emitter *e);
void emit_recall(struct emitter *e, struct place place);
// Opens `if condition`; returns where to go on behind it.
struct list *emit_if(struct emitter *e, struct ir_expr *condition);
void emit_barrier(struct emitter *e);
void emit_syncwarp(struct emitter *e);

struct ir_expr *emit_shuffle(struct emitter *e, enum op op, struct ir_expr *mask, struct ir_expr *value, struct ir_expr *where,
                             const char *label);
// results = combine(a, b), tuple by tuple; the same array may be operand and result.
void emit_combine(struct emitter *e, const struct part *part, struct ir_expr **a, struct ir_expr **b, struct ir_expr **results);
struct ir_expr *emit_identity(const struct part *part, uint32_t k);

// Shared words for every value of a part, of the pool.
void emit_scratch(struct emitter *e, struct part *part, uint32_t words);
void emit_store(struct emitter *e, struct ir_mem *mem, struct ir_expr *index, struct ir_expr *value);
struct ir_expr *emit_load(struct emitter *e, struct ir_mem *mem, struct ir_expr *index, const char *label);
// Mutable variables with the part's values, and what they hold.
void emit_keep(struct emitter *e, struct part *part);
void emit_set(struct emitter *e, const struct part *part, struct ir_expr **values);
void emit_take_kept(struct emitter *e, struct part *part);

// The forms.
void allreduce_emit_xor(struct emitter *e);
void allreduce_emit_guarded(struct emitter *e);
void allreduce_emit_redux(struct emitter *e);
void allreduce_emit_warps(struct emitter *e, bool needs_barrier);
void allreduce_emit_serial(struct emitter *e, bool needs_barrier);
void allreduce_emit_tree(struct emitter *e, bool needs_barrier);

#endif

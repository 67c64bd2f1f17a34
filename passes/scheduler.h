// What the parts of pass `schedule` that apply directives share. Every function that returns false has
// reported why.
#ifndef RED_PASSES_SCHEDULER_H
#define RED_PASSES_SCHEDULER_H

#include "passes/schedule.h"

// The most iterations of an axis on threads, of one that is unrolled whole, and of a vector.
enum { SCHEDULER_MAX_THREADS = 1024, SCHEDULER_MAX_THREADS_Z = 64, SCHEDULER_MAX_UNROLL = 1024, SCHEDULER_MAX_VECTOR = 64 };

// An axis that a directive took away.
struct retired {
  const char *label;
  const char *how;
  struct range from, where; // it came from here; it was taken away here
};

struct scheduler {
  struct pass_context *context;
  struct arena *arena;
  struct diag *diag;
  struct ir_kernel *kernel;
  struct ir_entry *entry;
  struct list retired; // struct retired
};

// --- scheduler.c: axes and names
// ---------------------------------------------------------------------------------------

// Where an axis stands among those of a stage; UINT32_MAX: it has it not.
uint32_t scheduler_place(const struct ir_stage *stage, const struct ir_axis *axis);
// The stage's axis of that name; NULL where it has none.
struct ir_axis *scheduler_axis_in_stage(const struct ir_stage *stage, const char *label);
bool scheduler_has(const struct list *list, const void *item);
// Appends the axes that a directive names, at its place `which`.
bool scheduler_find_axes(struct scheduler *s, const struct ir_directive *directive, uint32_t which,
                         struct list *axes);
// Adds a note of the axes that a directive could name; of all stages where stage_name is "".
void scheduler_note_legal(struct scheduler *s, const char *stage_name);
bool scheduler_names_differ(struct scheduler *s, const struct ir_directive *directive);
bool scheduler_name_is_new(struct scheduler *s, const char *name, struct range range);
bool scheduler_is_free(struct scheduler *s, const struct ir_axis *axis, struct range range);
struct ir_axis *scheduler_new_axis(struct scheduler *s, const char *label, struct ir_expr *extent,
                                   struct range range);
void scheduler_put_axis(struct scheduler *s, struct ir_stage *stage, uint32_t place, struct ir_axis *axis,
                        bool is_reduction);
// Takes an axis from the entry; later directives that name it are told how it went and where.
void scheduler_retire(struct scheduler *s, const struct ir_axis *axis, const char *how, struct range where);

// scheduler_note.c: notes behind the error of a directive: where the axes that it names come from, where they were used, and
// what would be legal.
void scheduler_note_directive(struct scheduler *s, const struct ir_directive *directive);

// --- Directives, each in the file of its kind
// -----------------------------------------------------------------------------

bool scheduler_apply(struct scheduler *s, const struct ir_directive *directive);
bool scheduler_split(struct scheduler *s, const struct ir_directive *directive);
bool scheduler_fuse(struct scheduler *s, const struct ir_directive *directive);
bool scheduler_reorder(struct scheduler *s, const struct ir_directive *directive);
bool scheduler_bind(struct scheduler *s, const struct ir_directive *directive);
bool scheduler_unroll(struct scheduler *s, const struct ir_directive *directive);
bool scheduler_vectorize(struct scheduler *s, const struct ir_directive *directive);
bool scheduler_allreduce(struct scheduler *s, const struct ir_directive *directive);
bool scheduler_combine(struct scheduler *s, const struct ir_directive *directive);
// Whether the directive is `unroll B.combine by F`; *good: whether it is legal.
bool scheduler_unrolls_combine(struct scheduler *s, const struct ir_directive *directive, bool *good);
// Deals out what fills copies in shared memory. Each is filled once, by threads of one block that share no
// axis on threads with its readers.
bool scheduler_deal_copies(struct scheduler *s);

#endif

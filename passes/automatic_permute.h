// What the classes of schedules of permutes share: automatic_permute.c finds the axes and has tiles and runs; automatic_whole.c, automatic_units.c, automatic_planes.c, automatic_odd_runs.c and automatic_pack.c have the other classes.
#ifndef RED_PASSES_AUTOMATIC_PERMUTE_H
#define RED_PASSES_AUTOMATIC_PERMUTE_H

#include "passes/automatic_view.h"

enum { VECTOR = 16, WORD = 4, THREADS = 256, SMALLEST_SIDE = 24, MAX_GROUPS = VIEW_MAX_AXES, MOST_COPIES = 4 };

// Merged axes.
struct group {
  struct list axes;    // struct ir_axis, outermost first
  int64_t count;       // iterations; -1: known at launch
  const char *extent;  // text
  const char *name;    // after they were fused
};

struct permute {
  struct automatic *a;
  struct view view;
  struct arena *arena;
  struct text *out;
  struct view_access *store, *load; // load: the one that moves along all axes, and whose fastest axis is another one if such is there
  struct list ones;                 // struct ir_axis, of one iteration
  struct group groups[MAX_GROUPS];  // in the order of the output
  int group_count;
  struct group *fast_out, *fast_in; // fast_in NULL: no axis moves the input by one element
  struct list taken;                // const char *
  bool is_plain;                    // loads are not to be kept
};

// A `when` under construction.
struct when {
  struct permute *p;
  const char *text;
  const char *refusal; // why sizes that are known refute it; NULL: they do not
};

// How far a step of the group moves the access.
struct poly permute_stride(const struct permute *p, const struct view_access *access, const struct group *group);
// Every row of the tensor starts on so many elements.
void permute_need_alignment(struct when *w, const struct ir_mem *mem, uint32_t elements);
// The first reason is kept.
void permute_refuse(struct when *w, const char *why);
// The group's extent is a multiple of so many, or at least so many.
void permute_need_multiple(struct when *w, const struct group *group, int64_t factor);
void permute_need_least(struct when *w, const struct group *group, int64_t least);
// The head of a schedule; false where sizes refute it, which is said instead.
bool permute_begin(struct permute *p, const char *name, struct when *when, const char *reason);
void permute_end(struct permute *p);
const char *permute_fresh(struct permute *p, const char *base);
const char *permute_piece(struct permute *p, const struct group *group, const char *suffix);
const char *permute_join(struct permute *p, const char *list, const char *name); // "list, name"; list may be NULL
void permute_write_groups(struct permute *p);
// The directives that bind an axis of so many iterations to the threads of a block, more by each thread.
void permute_write_threads(struct permute *p, const char *axis, int64_t count);
// Whether a step of `a` moves the access no further than one of `b`.
bool permute_is_at_most(const struct permute *p, const struct view_access *access, const struct group *a, const struct group *b);
const char *permute_describe(struct permute *p);
int permute_copies(struct permute *p, const struct ir_mem *copies[MOST_COPIES]);
const char *permute_copy_name(struct permute *p, int number);
const char *permute_stage_name(const struct permute *p);
int64_t permute_shared_limit(const struct permute *p);

// Whether the output is written without gaps: each group moves it by all that lies inside.
bool permute_is_dense(struct permute *p);

// automatic_whole.c: the classes `whole` and `lines` (also of narrow elements, in words), each a schedule or none.
void permute_whole(struct permute *p);
// Matrices of a few bytes and halves, where all extents are known. Returns whether it wrote a schedule.
bool permute_whole_in_registers(struct permute *p);
void permute_lines(struct permute *p);
void permute_lines_of_words(struct permute *p);

// automatic_units.c: the class `units`, also in words.
void permute_units(struct permute *p);
void permute_units_in_words(struct permute *p);

// automatic_planes.c: `planes`, where all extents are known. Returns whether it wrote a schedule.
bool permute_planes(struct permute *p);

// automatic_odd_runs.c: `odd_runs`, where all extents are known.
void permute_odd_runs(struct permute *p);

// automatic_pack.c: `pack`, where all extents are known. Returns whether it wrote a schedule.
bool permute_pack(struct permute *p);
// The schedule `runs`, where all extents are known: boxes of runs of vectors of so many elements, through registers. Returns whether it wrote one.
bool permute_boxes_of_runs(struct permute *p, uint32_t vector);

#endif

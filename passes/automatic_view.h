// What the automatic scheduler knows of a kernel: its axes in one order, and how far each moves every tensor.
//
//   for i in n { let peak = max(j in m) X[i, j];  for j in m { Y[i, j] = X[i, j] - peak; } }
//   common  i           parallel axes around every stage, outermost first
//   spaces  j           axes of their own that stages have under the same names: scheduled by the same directives
//   main    X[i, j]     the access that moves most: 1 along j, m along i
#ifndef RED_PASSES_AUTOMATIC_VIEW_H
#define RED_PASSES_AUTOMATIC_VIEW_H

#include "compiler/poly.h"
#include "passes/automatic.h"

enum { VIEW_MAX_AXES = 32, VIEW_MAX_SPACES = 8 };

struct view_stage {
  struct ir_stage *stage;
  struct list own;     // struct ir_axis: those that are not common, outermost first
  struct facts facts;  // inside its body
  int space;           // -1: no axes of its own
};

struct view_access {
  struct view_stage *stage;
  struct ir_mem *mem;
  bool is_store;
  struct list indices; // struct ir_expr, over axes
  struct poly offset;  // in elements
};

struct view_space {
  struct view_stage *first; // the first stage that has these axes
  bool reduces;             // a stage reduces over them
  bool is_ordered;          // by an ordered reducer
};

struct view {
  struct automatic *a;
  struct list common;   // struct ir_axis
  struct list stages;   // struct view_stage
  struct list accesses; // struct view_access
  struct view_space spaces[VIEW_MAX_SPACES];
  int space_count;
  struct view_access *main; // of the first reduction, or of the store that moves most; NULL: nothing is read or written
  bool reduces;
  const char *extra; // a condition of every schedule that is written from now on; NULL: none
  bool is_closed;    // a schedule that always applies has been written
  bool is_dependent; // the range of an axis mentions another axis
};

// Whether the kernel is of this form: every stage runs over the common axes, and then over axes of its own that are all reduced or all kept.
bool view_make(struct automatic *a, struct view *view);

// The number of iterations where that is a constant, else -1.
int64_t view_count(const struct ir_axis *axis);
// The product of the axes' counts; -1 where one is not known.
int64_t view_product(const struct list *axes);
// How many elements a step of the axis moves the access, as a polynomial over sizes; invalid where that is not the same everywhere.
struct poly view_stride(const struct view *view, const struct view_access *access, const struct ir_axis *axis);
// Whether the access moves by exactly one element a step.
bool view_is_unit(const struct view *view, const struct view_access *access, const struct ir_axis *axis);
// Whether `outer` and `inner` are one axis to every access of the stages that have both.
bool view_can_merge(const struct view *view, const struct ir_axis *outer, const struct ir_axis *inner);
// Orders axes so that those that move the main access further come first; those that cannot be compared keep their order.
struct list view_sorted(const struct view *view, const struct view_stage *stage, const struct list *axes);

// automatic_text.c
// A name that no axis has and that this kernel's schedules have not made yet: `base`, with as many '_' behind it as that takes.
const char *view_fresh(struct view *view, struct list *taken, const char *base);
// The expression over sizes as a program spells it.
const char *view_text(const struct view *view, const struct ir_expr *e);
// "i, j, k"
const char *view_names(const struct view *view, const struct list *axes);

#endif

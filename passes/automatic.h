// The compiler's own schedules. They are text: what is written here is parsed like a user's schedule, printed by `redc schedule`, and gives
// the same kernel when it is fed back. So the automatic scheduler has no powers that the language lacks.
//
// automatic.c asks each part in turn; the first that knows the kernel writes its schedules, the best first:
//   automatic_reduce.c   reductions
//   automatic_permute.c  copies whose fastest axis moves
//   automatic_map.c      element-wise work and copies whose fastest axis stays
// What none of them knows, and sizes or strides for which no `when` of theirs holds, is left to automatic_general.c.
#ifndef RED_PASSES_AUTOMATIC_H
#define RED_PASSES_AUTOMATIC_H

#include "compiler/pass.h"

struct automatic {
  struct pass_context *context;
  struct arena *arena;
  struct ir_kernel *kernel;
  const struct ir_entry *entry; // stages as `check` leaves them, without a schedule
  const char *condition;        // on the kernel's type parameters, as text; NULL: it has none
  const char *forced;           // --class: the only class wanted; NULL: the best
  struct list legal;            // const char *: classes that take the kernel, with `forced`
  struct text *out;             // .red text: schedules under comments that give the reasons
};

// Writes the compiler's own schedules of a kernel; nothing where the general one is all that it has. `condition` is on the kernel's type
// parameters, or NULL. False after reporting that the class which --class asks for does not take the kernel.
bool automatic_schedules(struct pass_context *context, struct ir_kernel *kernel, const struct ir_entry *entry, const char *condition, struct text *out);

// With --class: notes that the class takes the kernel, and returns whether it is the one asked for.
bool automatic_takes(struct automatic *a, const char *class_name);

// Each returns whether it wrote a schedule.
bool automatic_reduce(struct automatic *a);
bool automatic_permute(struct automatic *a);
bool automatic_map(struct automatic *a);

#endif

// The neighbours of a schedule: what one change of it makes. Whether a neighbour is legal, only its compilation tells.
#ifndef RED_COMPILER_TUNE_SEARCH_H
#define RED_COMPILER_TUNE_SEARCH_H

#include "compiler/ast.h"
#include "compiler/ir.h"

// Appends the text of each neighbour (const char *, in the arena):
//   a factor of `split`, `tile`, `unroll ... by`, `blocks`, or before `sms`, twice or half as large
//   two factors of `split` or `tile`, one twice and the other half as large
//   another way to combine over the grid
//   another cache hint on an input, or none
//   a promise of 2 or 4 blocks a multiprocessor
// The schedule is as before.
void search_neighbours(struct arena *arena, struct ast_schedule *schedule, const struct ir_kernel *kernel, struct list *out);

// The schedule as text.
const char *search_text(struct arena *arena, const struct ast_schedule *schedule);

#endif

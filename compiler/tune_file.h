// The file of tuned schedules: for each kernel, sizes and device a schedule under a heading. What else is in the file stays.
//
//   // redc tune: colsum, m=10000, n=300, NVIDIA H200, sm_90
//   // 8.61 us; 9.06 us before, by the compiler's own schedule 'column_split'; 83 trials
//   schedule colsum as tuned_10000_300 when m == 10000 && n == 300 {
//     ...
//   }
#ifndef RED_COMPILER_TUNE_FILE_H
#define RED_COMPILER_TUNE_FILE_H

#include "compiler/run_program.h"

struct tune_key {
  const char *heading; // the first line, without its end: what a schedule was tuned for
  const char *kernel, *name; // of the schedule
};
// For the sizes of the program's arguments.
void tune_key_make(struct run_program *program, const char *device, struct tune_key *key);

// The condition of a tuned schedule: the sizes and types of this launch, and those parts of `when` (NULL: none) that are about more.
struct ast_expr *tune_file_when(struct run_program *program, struct ast_expr *when);

// Whether the text has the heading.
bool tune_file_has(const char *text, const struct tune_key *key);
// Appends the text with `block` (heading and schedule) in it, in place of an older one of the same name.
void tune_file_put(const char *text, const struct tune_key *key, const char *block, struct text *out);

#endif

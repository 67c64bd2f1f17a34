// The workspace of a launch in `redc run`: zeroed where the plan says so, poison behind, canaries around.
#ifndef RED_COMPILER_RUN_WORKSPACE_H
#define RED_COMPILER_RUN_WORKSPACE_H

#include "compiler/run_buffer.h"
#include "runtime/plan.h"

struct run_workspace {
  struct buffer buffer; // bytes; no memory where the launch needs none
  int64_t dims[1];
  int64_t zeroed;
};

// Makes what the launches of `result` need; nothing where they need nothing. False: `error` says why.
bool workspace_begin(struct run_workspace *workspace, const struct plan_result *result, struct arena *arena, char *error,
                     size_t error_bytes);
// Whether the launches left the zeroed part zero and everything around untouched; else says what is wrong.
bool workspace_is_intact(const struct run_workspace *workspace, char *error, size_t error_bytes);
void workspace_end(struct run_workspace *workspace);

#endif

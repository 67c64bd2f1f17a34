#include "compiler/run_workspace.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool workspace_begin(struct run_workspace *workspace, const struct plan_result *result, struct arena *arena, char *error,
                     size_t error_bytes) {
  *workspace = (struct run_workspace){.dims = {result->workspace}, .zeroed = result->zeroed};
  if (!result->workspace) return true;
  if (!buffer_memory_suffices(result->workspace, error, error_bytes) ||
      !buffer_init(&workspace->buffer, "the workspace", TYPE_U8, 1, workspace->dims, NULL, 0, arena, error, error_bytes))
    return false;
  buffer_set_canaries(&workspace->buffer);
  buffer_fill(&workspace->buffer, BUFFER_POISON);
  memset(workspace->buffer.start, 0, (size_t)workspace->zeroed);
  return true;
}

bool workspace_is_intact(const struct run_workspace *workspace, char *error, size_t error_bytes) {
  const struct buffer *buffer = &workspace->buffer;
  if (!buffer->memory) return true;
  for (int64_t i = 0; i < workspace->zeroed; i++)
    if (buffer->start[i]) {
      snprintf(error, error_bytes, "the workspace: byte %" PRId64 " of the %" PRId64 " that are zero between launches was left as %d", i,
               workspace->zeroed, buffer->start[i]);
      return false;
    }
  return buffer_has_canaries(buffer, error, error_bytes);
}

void workspace_end(struct run_workspace *workspace) {
  buffer_free(&workspace->buffer);
}

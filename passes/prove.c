// prove: what code generation relies on.
#include "compiler/pass.h"

static bool is_lowered(const struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = block->at[i];
    if (stmt->kind == IR_ALLREDUCE || !is_lowered(&stmt->body) || !is_lowered(&stmt->otherwise)) return false;
  }
  return true;
}

bool pass_prove(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry) {
  (void)kernel;
  if (is_lowered(&entry->body)) return true;
  diag_internal(context->diag, "prove", entry->range, "a reduction over threads is left");
  return false;
}

// barriers: drops barriers that shared memory does not need.
//
//   barrier                       barrier
//   barrier                 ->    let x = load_flat(s, 0)
//   let x = load_flat(s, 0)
//
// Requires LEVEL_PROGRAM without ALLREDUCE. A barrier right behind another one orders nothing new.
#include "compiler/pass.h"

static void drop_repeated(struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = block->at[i], *next = i + 1 < block->count ? block->at[i + 1] : NULL;
    drop_repeated(&stmt->body);
    drop_repeated(&stmt->otherwise);
    if (stmt->kind == IR_BARRIER && next && next->kind == IR_BARRIER) list_remove(block, i--);
  }
}

bool pass_barriers(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry) {
  (void)context, (void)kernel;
  drop_repeated(&entry->body);
  return true;
}

#include "passes/automatic.h"

void automatic_schedules(struct pass_context *context, struct ir_kernel *kernel, const struct ir_entry *entry, struct text *out) {
  struct automatic a = {.context = context, .arena = context->arena, .kernel = kernel, .entry = entry, .out = out};
  bool reduces = false;
  for (uint32_t i = 0; i < entry->stages.count; i++) reduces |= list_at(&entry->stages, struct ir_stage, i)->kind == STAGE_REDUCE;
  if (reduces) automatic_reduce(&a);
  else if (!automatic_permute(&a)) automatic_map(&a);
}

#include "passes/automatic.h"

#include <string.h>

bool automatic_takes(struct automatic *a, const char *class_name) {
  list_push(a->arena, &a->legal, (void *)class_name);
  return a->forced && strcmp(a->forced, class_name) == 0;
}

static bool refuse_class(struct automatic *a) {
  const char *names = "";
  diag_error(a->context->diag, ERROR_NO_SCHEDULE, a->kernel->range, "class '%s' does not take kernel '%s'", a->forced, a->kernel->label);
  for (uint32_t i = 0; i < a->legal.count; i++) names = arena_printf(a->arena, "%s%s%s", names, i ? ", " : "", list_at(&a->legal, const char, i));
  if (*names) diag_note(a->context->diag, (struct range){0}, "classes that do: %s", names);
  else diag_note(a->context->diag, (struct range){0}, "no class does: the kernel's stages differ too much, and it runs one thread an output");
  return false;
}

bool automatic_schedules(struct pass_context *context, struct ir_kernel *kernel, const struct ir_entry *entry, const char *condition, struct text *out) {
  struct automatic a = {.context = context, .arena = context->arena, .kernel = kernel, .entry = entry, .condition = condition, .forced = context->options->class_name, .out = out};
  bool reduces = false;
  for (uint32_t i = 0; i < entry->stages.count; i++) reduces |= list_at(&entry->stages, struct ir_stage, i)->kind == STAGE_REDUCE;
  if (reduces) automatic_reduce(&a);
  else if (!automatic_permute(&a)) automatic_map(&a);
  for (uint32_t i = 0; i < a.legal.count && a.forced; i++)
    if (strcmp(a.legal.at[i], a.forced) == 0) return true;
  return !a.forced || refuse_class(&a);
}

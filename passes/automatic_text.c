#include <string.h>

#include "passes/automatic_view.h"

static bool is_taken(const struct view *view, const struct list *taken, const char *name) {
  for (uint32_t i = 0; i < view->a->entry->axes.count; i++)
    if (strcmp(list_at(&view->a->entry->axes, struct ir_axis, i)->var->label, name) == 0) return true;
  for (uint32_t i = 0; i < taken->count; i++)
    if (strcmp(taken->at[i], name) == 0) return true;
  return false;
}

const char *view_fresh(struct view *view, struct list *taken, const char *base) {
  while (is_taken(view, taken, base)) base = arena_printf(view->a->arena, "%s_", base);
  list_push(view->a->arena, taken, (void *)base);
  return base;
}

const char *view_names(const struct view *view, const struct list *axes) {
  const char *names = "";
  for (uint32_t i = 0; i < axes->count; i++)
    names = arena_printf(view->a->arena, "%s%s%s", names, i ? ", " : "", list_at(axes, struct ir_axis, i)->var->label);
  return names;
}

// --- Expressions ------------------------------------------------------------------------------------------------------

static const char *infix(enum op op, int *binding) {
  switch ((int)op) {
  case OP_ADD: *binding = 1; return " + ";
  case OP_SUB: *binding = 1; return " - ";
  case OP_MUL: *binding = 2; return " * ";
  case OP_DIV: case OP_QUO: *binding = 2; return " / ";
  case OP_MOD: case OP_REM: *binding = 2; return " % ";
  default: return NULL;
  }
}

// A size, or the stride that is one.
static const char *size_text(const struct view *view, const struct ir_var *var) {
  const struct list *tensors = &view->a->kernel->tensors;
  for (uint32_t i = 0; i < tensors->count; i++) {
    const struct ir_mem *mem = tensors->at[i];
    for (uint32_t d = 0; d < mem->strides.count && mem->is_strided; d++) {
      const struct ir_expr *stride = mem->strides.at[d];
      if (stride->op == OP_VAR && stride->var == var && var->inferred && var->inferred->op == OP_STRIDE)
        return arena_printf(view->a->arena, "stride(%s, %u)", mem->label, d);
    }
  }
  return var->label;
}

static const char *text_of(const struct view *view, const struct ir_expr *e, int around) {
  struct arena *arena = view->a->arena;
  int binding = 0;
  while (e->op == OP_CAST) e = e->args[0];
  const char *spelling = infix(e->op, &binding);
  if (e->op == OP_CONST) return arena_printf(arena, "%lld", (long long)e->integer);
  if (e->op == OP_VAR) return size_text(view, e->var);
  if (e->op == OP_MIN || e->op == OP_MAX)
    return arena_printf(arena, "%s(%s, %s)", e->op == OP_MIN ? "min" : "max", text_of(view, e->args[0], 0), text_of(view, e->args[1], 0));
  if (e->op == OP_NEG) return arena_printf(arena, "(-%s)", text_of(view, e->args[0], 3));
  if (!spelling) return "1"; // what stands in an extent is one of the above
  return arena_printf(arena, "%s%s%s%s%s", binding < around ? "(" : "", text_of(view, e->args[0], binding), spelling, text_of(view, e->args[1], binding + 1),
                      binding < around ? ")" : "");
}

const char *view_text(const struct view *view, const struct ir_expr *e) { return text_of(view, e, 2); }

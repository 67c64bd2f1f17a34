// Expressions: each node's own rule (verify_node.c), and what may stand in which place.
#include "compiler/verify.h"

#include <string.h>

static bool is_plan(enum place place) {
  return place == PLACE_PLAN || place == PLACE_SIZES || place == PLACE_DIRECTIVE;
}

static bool is_tensor(const struct verifier *v, const struct ir_mem *mem) {
  for (uint32_t i = 0; v->kernel && i < v->kernel->tensors.count; i++)
    if (v->kernel->tensors.at[i] == mem) return true;
  return false;
}

static const char *variable_fault(struct verifier *v, const struct ir_expr *e, enum place place) {
  const struct ir_var *var = e->var;
  if (place == PLACE_DIRECTIVE && var->kind == VAR_AXIS) return NULL;
  if (!verify_is_visible(v, var->name, var))
    return arena_printf(&v->scratch, "variable '%s' is not defined here", var->name);
  if (!is_plan(place)) return NULL;
  if (var->kind != VAR_SIZE && var->kind != VAR_SCALAR)
    return arena_printf(&v->scratch, "variable '%s' is not known before the launch", var->name);
  if (var->kind == VAR_SCALAR && !type_is_integer(var->type))
    return arena_printf(&v->scratch, "scalar '%s' of type %s in an expression of the plan", var->name,
                        type_name(var->type));
  return NULL;
}

static const char *memory_fault(struct verifier *v, const struct ir_expr *e, enum place place,
                                bool is_value) {
  const char *spelling = op_table[e->op].spelling;
  if (place != PLACE_STAGE && place != PLACE_PROGRAM)
    return arena_printf(&v->scratch, "'%s' outside stages and programs", spelling);
  if (!verify_is_visible(v, e->mem->name, e->mem))
    return arena_printf(&v->scratch, "memory object '%s' is not declared here", e->mem->name);
  if (e->op == OP_LOAD_FLAT && place == PLACE_STAGE) return "'load_flat' in a stage";
  if (e->mem->space == SPACE_SHARED && !is_value)
    return arena_printf(&v->scratch,
                        "a load of shared memory ('%s') is not the whole value of let, var or set",
                        e->mem->name);
  if (e->mem->space == SPACE_GLOBAL && !e->mem->is_read)
    return arena_printf(&v->scratch, "tensor '%s' is loaded and not marked as read", e->mem->name);
  for (uint32_t i = 0; i < e->count; i++)
    if (e->args[i]->type != v->entry->index_type)
      return arena_printf(&v->scratch, "an index of '%s' has type %s, and the entry's index type is %s",
                          e->mem->name, type_name(e->args[i]->type), type_name(v->entry->index_type));
  return NULL;
}

// What is wrong with this node in this place, its operands aside.
static const char *place_fault(struct verifier *v, const struct ir_expr *e, enum place place, bool is_value) {
  const char *spelling = op_table[e->op].spelling;
  switch (op_table[e->op].rule) {
  case RULE_NONE: return e->op == OP_VAR ? variable_fault(v, e, place) : NULL;
  case RULE_SAME:
  case RULE_COMPARE:
  case RULE_SELECT:
  case RULE_CONVERT:
  case RULE_PREDICATE:
  case RULE_AWAIT: return NULL;
  case RULE_MEMORY: return memory_fault(v, e, place, is_value);
  case RULE_SPECIAL:
    if (place != PLACE_PROGRAM) return arena_printf(&v->scratch, "'%s' outside programs", spelling);
    if (e->type == v->entry->index_type) return NULL;
    return arena_printf(&v->scratch, "'%s' has type %s, and the entry's index type is %s", spelling,
                        type_name(e->type), type_name(v->entry->index_type));
  case RULE_SHUFFLE:
  case RULE_REDUX:
    if (place != PLACE_PROGRAM) return arena_printf(&v->scratch, "'%s' outside programs", spelling);
    return is_value ? NULL
                    : arena_printf(&v->scratch, "'%s' is not the whole value of let, var or set", spelling);
  case RULE_FACT:
    if (place != PLACE_PLAN && place != PLACE_DIRECTIVE)
      return arena_printf(&v->scratch, "'%s' outside expressions of the plan", spelling);
    if (!ir_op_has_mem(e->op) || is_tensor(v, e->mem)) return NULL;
    return arena_printf(&v->scratch, "'%s' of '%s', which is no tensor of the kernel", spelling,
                        e->mem->name);
  }
  return NULL;
}

static bool expr_fault(struct verifier *v, const struct ir_expr *e, const char *fault) {
  struct text text = {0};
  enum { SHOWN = 100 };
  if (e) ir_print_expr(e, &text);
  const char *shown = text.data ? text.data : "";
  verify_fault(v, v->from_user && e && e->range.line ? e->range : v->range, "%s%s%.*s%s", fault,
               e ? ", in " : "", SHOWN, shown, text.length > SHOWN ? "..." : "");
  text_free(&text);
  return false;
}

bool verify_expr(struct verifier *v, const struct ir_expr *e, enum place place, bool is_value) {
  if (!e) return expr_fault(v, e, "an expression is missing");
  if (v->depth >= IR_TEXT_MAX_DEPTH) {
    verify_fault(v, v->range, "an expression is nested more than %d deep", IR_TEXT_MAX_DEPTH);
    return false;
  }
  if (e->op >= OP_COUNT || e->type >= TYPE_COUNT) {
    verify_fault(v, v->range, "a node has operation %d and type %d, which do not exist", (int)e->op,
                 (int)e->type);
    return false;
  }
  v->depth++;
  bool good = true;
  for (uint32_t i = 0; good && i < e->count; i++) good = verify_expr(v, e->args[i], place, false);
  v->depth--;
  if (!good) return false;
  const char *fault = ir_node_fault(e, &v->scratch);
  if (!fault) fault = place_fault(v, e, place, is_value);
  bool is_lowered = v->entry && v->entry->index_type != TYPE_INDEX;
  if (!fault && is_lowered && place == PLACE_PROGRAM && e->type == TYPE_INDEX)
    fault = "type index behind the pass that replaces it";
  return fault ? expr_fault(v, e, fault) : true;
}

void verify_typed(struct verifier *v, const struct ir_expr *e, enum place place, enum type type,
                  const char *what) {
  if (verify_expr(v, e, place, false) && e->type != type)
    expr_fault(
        v, e, arena_printf(&v->scratch, "%s has type %s, not %s", what, type_name(e->type), type_name(type)));
}

void verify_matching(struct verifier *v, const struct list *exprs, const struct list *like, enum place place,
                     const char *what) {
  if (exprs->count != like->count) {
    verify_fault(v, v->range, "the number of %ss is %u, not %u", what, exprs->count, like->count);
    return;
  }
  for (uint32_t i = 0; i < exprs->count; i++)
    verify_typed(v, list_at(exprs, struct ir_expr, i), place, list_at(like, struct ir_expr, i)->type,
                 arena_printf(&v->scratch, "%s %u", what, i + 1));
}

// combine x by atomic: every block changes the output itself.
//
//   stage B: reduce sum_f32, axes kg (block.x, reduction), kr (reduction); results sum       the same with kg parallel
//   stage B: store B[0] = add(load(B, 0), sum)                                          ->   stage B: atomic add B[0] by sum, axes kg
#include "passes/cut.h"
#include "passes/stage.h"

static bool refuse(struct cut *c, const struct ir_stage *stage, const char *why) {
  diag_error(c->context->diag, ERROR_DIRECTIVE, stage->range, "stage '%s' cannot be combined by atomics: %s", stage->label, why);
  stage_note_reductions(c->context->diag, stage, bind_is_block);
  diag_note(c->context->diag, (struct range){0}, "legal here: combine ... by last_block");
  return false;
}

static bool atomic_of(enum op op, enum type type, enum ir_atomic *atomic) {
  static const struct {
    enum op op;
    enum ir_atomic atomic;
  } table[] = {{OP_ADD, ATOMIC_ADD}, {OP_MIN, ATOMIC_MIN}, {OP_MAX, ATOMIC_MAX}, {OP_AND, ATOMIC_AND}, {OP_OR, ATOMIC_OR}, {OP_XOR, ATOMIC_XOR}};
  bool is_number = type_is_integer(type) || type_is_float(type);
  for (uint32_t i = 0; i < sizeof table / sizeof *table; i++) {
    if (table[i].op != op) continue;
    *atomic = table[i].atomic;
    return is_number && type_bits(type) >= 32 && (!type_is_float(type) || op == OP_ADD);
  }
  return false;
}

// Is the combine of two values this one operation?
static bool is_operation(const struct ir_reducer *reducer, enum op op) {
  const struct ir_function *combine = &reducer->combine;
  if (combine->params.count != 2 || combine->lets.count || combine->results.count != 1 || reducer->update.params.count) return false;
  const struct ir_expr *e = combine->results.at[0];
  return e->op == op && e->count == 2 && e->args[0]->op == OP_VAR && e->args[1]->op == OP_VAR && e->args[0]->var == combine->params.at[0] &&
         e->args[1]->var == combine->params.at[1];
}

static bool is_own_element(const struct ir_stage *store, const struct ir_expr *e) {
  if (e->op != OP_LOAD || e->mem != store->mem || e->count != store->indices.count) return false;
  for (uint32_t i = 0; i < e->count; i++)
    if (!ir_equal(e->args[i], store->indices.at[i])) return false;
  return true;
}

bool cut_atomic(struct cut *c, struct ir_stage *stage) {
  struct ir_stage *store = NULL;
  struct ir_var *result = stage->results.at[0];
  for (uint32_t i = 0; i < c->entry->stages.count; i++) {
    struct ir_stage *other = c->entry->stages.at[i];
    bool reads = false;
    for (uint32_t k = 0; k < stage->results.count; k++) reads |= stage_reads(other, stage->results.at[k]);
    if (!reads) continue;
    if (store || other->kind != STAGE_STORE) return refuse(c, stage, "more than one statement uses its value");
    store = other;
  }
  if (!store || stage->results.count != 1) return refuse(c, stage, "its value is not one number that a fold such as += takes");
  struct ir_expr *value = store->value, *own = value->count == 2 ? value->args[0] : NULL, *other = own ? value->args[1] : NULL;
  if (own && own->op == OP_VAR) { // in either order
    own = value->args[1];
    other = value->args[0];
  }
  bool is_fold = own && is_own_element(store, own) && other->op == OP_VAR && other->var == result && store->lets.count == 0;
  if (!is_fold) return refuse(c, stage, "its value does not go into a fold such as B[i] += sum(...) as it is");
  if (!is_operation(stage->reducer, value->op)) return refuse(c, stage, "the fold has another operator than the reduction");
  if (stage->init.count) return refuse(c, stage, "`init` would count once a block");
  for (uint32_t i = 0; i < store->guards.count; i++)
    if (ir_mentions(store->guards.at[i], result)) return refuse(c, stage, "its value decides whether the fold is done");
  if (!atomic_of(value->op, store->mem->type, &store->atomic) || value->type != store->mem->type)
    return refuse(c, stage, "the device has no atomic of this operator and type");
  if (type_is_float(value->type) && !c->entry->is_general) // said once
    diag_remark(c->context->diag, "cut", stage->range, "stage '%s' adds floats by atomics, in the order in which blocks come: bits may differ from run to run", stage->label);
  store->is_atomic = true;
  store->value = other;
  struct list axes = {0};
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    const struct ir_stage_axis *used = stage->axes.at[i];
    bool is_piece = used->is_reduction && bind_is_block(used->axis->bind);
    cut_use_axis(c, &axes, used->axis, used->is_reduction && !is_piece);
    if (is_piece) cut_use_axis(c, &store->axes, used->axis, false);
  }
  stage->axes = axes;
  return true;
}

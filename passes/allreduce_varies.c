// In which thread axes a value differs: a loop whose bounds differ between groups lets them leave at different times, and what is inside may
// not wait for other groups.
#include "passes/allreduce.h"

// The axes of which a block has several threads.
static uint32_t wide_axes(const struct ir_entry *entry) {
  uint32_t axes = 0;
  for (uint32_t d = 0; d < 3; d++)
    if (entry->block[d] > 1) axes |= 1u << d;
  return axes;
}

// Whether threads may find different values in one place: in memory of their own, and in a tensor that some of them may have changed. A shared word
// is one value to all: a write between their reads would be a race, which pass prove refuses.
static bool is_private(const struct ir_mem *mem) { return mem->space == SPACE_LOCAL || (mem->space == SPACE_GLOBAL && mem->is_output); }

uint32_t allreduce_varies(const struct ir_entry *entry, const struct ir_expr *e) {
  uint32_t axes = 0;
  if (e->op == OP_VAR) return e->var->kind == VAR_SIZE || e->var->kind == VAR_SCALAR ? 0 : e->var->mark;
  if (e->op == OP_THREAD) return entry->block[e->dimension] > 1 ? 1u << e->dimension : 0;
  if (op_is_collective(e->op)) return wide_axes(entry);
  if ((e->op == OP_LOAD || e->op == OP_LOAD_FLAT) && is_private(e->mem)) return wide_axes(entry);
  for (uint32_t i = 0; i < e->count; i++) axes |= allreduce_varies(entry, e->args[i]);
  return axes;
}

static void clear(const struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = block->at[i];
    if (stmt->var) stmt->var->mark = 0;
    for (uint32_t k = 0; k < stmt->results.count; k++) list_at(&stmt->results, struct ir_var, k)->mark = 0;
    clear(&stmt->body);
    clear(&stmt->otherwise);
  }
}

static bool mark(struct ir_var *var, uint32_t axes) {
  bool changed = (var->mark | axes) != var->mark;
  var->mark |= axes;
  return changed;
}

// Of the results of a reduction: where all threads of a group have them, those of the other axes.
static uint32_t varies_reduced(const struct ir_entry *entry, const struct ir_stmt *stmt) {
  uint32_t axes = 0;
  for (uint32_t i = 0; i < stmt->inputs.count; i++) axes |= allreduce_varies(entry, stmt->inputs.at[i]);
  return stmt->result_in_all ? axes & ~stmt->thread_axes : axes | (stmt->thread_axes & wide_axes(entry));
}

// `around`: axes in which it differs whether a thread comes here.
static bool find(const struct ir_entry *entry, const struct list *block, uint32_t around) {
  bool changed = false;
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = block->at[i];
    uint32_t inside = around, axes = 0;
    switch (stmt->kind) {
    case IR_LET: changed |= mark(stmt->var, allreduce_varies(entry, stmt->value)); break;
    case IR_VAR:
    case IR_SET: changed |= mark(stmt->var, around | allreduce_varies(entry, stmt->value)); break;
    case IR_FOR:
      changed |= mark(stmt->var, allreduce_varies(entry, stmt->lo));
      inside |= allreduce_varies(entry, stmt->lo) | allreduce_varies(entry, stmt->hi);
      break;
    case IR_IF: inside |= allreduce_varies(entry, stmt->value); break;
    case IR_ALLREDUCE: axes = varies_reduced(entry, stmt); break;
    case IR_LOAD_WIDE:
      for (uint32_t k = 0; k < stmt->indices.count; k++) axes |= allreduce_varies(entry, stmt->indices.at[k]);
      if (is_private(stmt->mem)) axes = wide_axes(entry);
      break;
    case IR_ATOMIC: axes = wide_axes(entry); break;
    case IR_STORE:
    case IR_STORE_WIDE:
    case IR_BARRIER:
    case IR_SYNCWARP:
    case IR_FENCE: case IR_GRID_WAIT: case IR_GRID_READY: case IR_COPY: case IR_COPY_COMMIT: case IR_COPY_WAIT: break;
    }
    for (uint32_t k = 0; k < stmt->results.count; k++) changed |= mark(stmt->results.at[k], axes);
    changed |= find(entry, &stmt->body, inside);
    changed |= find(entry, &stmt->otherwise, inside);
  }
  return changed;
}

void allreduce_find_varying(const struct ir_entry *entry) {
  clear(&entry->body);
  while (find(entry, &entry->body, 0)) continue; // a loop hands on what its end changes; marks only grow
}

#include "codegen/program.h"

static void clear_expr(const struct ir_expr *e) {
  if (e->op == OP_VAR) e->var->mark = 0;
  for (uint32_t i = 0; i < e->count; i++) clear_expr(e->args[i]);
}

void codegen_clear_marks(const struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = list_at(block, struct ir_stmt, i);
    if (stmt->var) stmt->var->mark = 0;
    if (stmt->value) clear_expr(stmt->value);
    if (stmt->lo) clear_expr(stmt->lo);
    if (stmt->hi) clear_expr(stmt->hi);
    for (uint32_t k = 0; k < stmt->inputs.count; k++) clear_expr(list_at(&stmt->inputs, struct ir_expr, k));
    for (uint32_t k = 0; k < stmt->results.count; k++) list_at(&stmt->results, struct ir_var, k)->mark = 0;
    for (uint32_t k = 0; k < stmt->indices.count; k++) clear_expr(list_at(&stmt->indices, struct ir_expr, k));
    codegen_clear_marks(&stmt->body);
    codegen_clear_marks(&stmt->otherwise);
  }
}

// Elements from one index of dimension `which` to the next.
static struct ir_expr *stride_of(struct arena *arena, const struct ir_mem *mem, uint32_t which,
                                 enum type type) {
  if (mem->strides.count == mem->dims.count)
    return ir_cast(arena, type, list_at(&mem->strides, struct ir_expr, which));
  struct ir_expr *stride = ir_int(arena, type, 1);
  for (uint32_t i = which + 1; i < mem->dims.count; i++)
    stride = ir_binary(arena, OP_MUL, stride, ir_cast(arena, type, list_at(&mem->dims, struct ir_expr, i)));
  return stride;
}

struct ir_expr *codegen_offset(struct arena *arena, const struct ir_entry *entry, const struct ir_mem *mem,
                               struct ir_expr **indices, uint32_t count, bool is_flat) {
  if (is_flat && count == 1) return indices[0];
  enum type type = entry->index_type == TYPE_I32 ? TYPE_I32 : TYPE_I64;
  struct ir_expr *offset = ir_int(arena, type, 0);
  for (uint32_t i = 0; i < count && i < mem->dims.count; i++) {
    struct ir_expr *index = ir_cast(arena, type, indices[i]);
    struct ir_expr *part = ir_binary(arena, OP_MUL, index, stride_of(arena, mem, i, type));
    offset = ir_binary(arena, OP_ADD, offset, part);
  }
  return offset;
}

uint64_t codegen_element_count(const struct ir_mem *mem) {
  uint64_t count = 1;
  bool is_dense = mem->strides.count != mem->dims.count;
  for (uint32_t i = 0; i < mem->dims.count; i++) {
    const struct ir_expr *extent = list_at(&mem->dims, struct ir_expr, i);
    if (!ir_is_const(extent) || extent->integer < 1) return 0;
    if (is_dense) {
      count *= (uint64_t)extent->integer;
      continue;
    }
    const struct ir_expr *stride = list_at(&mem->strides, struct ir_expr, i);
    if (!ir_is_const(stride) || stride->integer < 0) return 0;
    count += (uint64_t)(extent->integer - 1) * (uint64_t)stride->integer;
  }
  return count;
}

uint32_t codegen_alignment(const struct ir_mem *mem) {
  uint32_t bytes = type_bytes(mem->type);
  return mem->alignment > bytes ? mem->alignment : bytes;
}

uint32_t codegen_blocks(const struct ir_entry *entry) {
  uint32_t threads = entry->block[0] * entry->block[1] * entry->block[2], most = threads ? 2048 / threads : 1;
  uint32_t blocks = entry->blocks ? entry->blocks : 1;
  return blocks < most ? blocks : most ? most : 1;
}

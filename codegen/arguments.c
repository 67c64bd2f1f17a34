// The parameters of a kernel, in the order that both backends print and a launch passes.
#include "codegen/arguments.h"

// What an entry's body mentions. Variables and objects are few, so lists do.
struct uses {
  struct arena *arena;
  struct list vars;   // struct ir_var, SCALAR and SIZE
  struct list mems;   // struct ir_mem, read or written
  struct list stored; // struct ir_mem, written
};

static bool list_has(const struct list *list, const void *item) {
  for (uint32_t i = 0; i < list->count; i++)
    if (list->at[i] == item) return true;
  return false;
}

static void add(struct uses *uses, struct list *list, void *item) {
  if (!list_has(list, item)) list_push(uses->arena, list, item);
}

static void use_expr(struct uses *uses, const struct ir_expr *e);

// An access by one index a dimension reads the strides too, or the extents that make them.
static void use_strides(struct uses *uses, const struct ir_mem *mem) {
  const struct list *facts = mem->strides.count == mem->dims.count ? &mem->strides : &mem->dims;
  for (uint32_t i = 0; i < facts->count; i++) use_expr(uses, list_at(facts, struct ir_expr, i));
}

static void use_expr(struct uses *uses, const struct ir_expr *e) {
  if (e->op == OP_VAR && (e->var->kind == VAR_SIZE || e->var->kind == VAR_SCALAR)) {
    add(uses, &uses->vars, e->var);
  } else if (e->op == OP_LOAD || e->op == OP_LOAD_FLAT) {
    add(uses, &uses->mems, e->mem);
    if (e->op == OP_LOAD) use_strides(uses, e->mem);
  }
  for (uint32_t i = 0; i < e->count; i++) use_expr(uses, e->args[i]);
}

static void use_block(struct uses *uses, const struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = list_at(block, struct ir_stmt, i);
    if (stmt->value) use_expr(uses, stmt->value);
    if (stmt->lo) use_expr(uses, stmt->lo);
    if (stmt->hi) use_expr(uses, stmt->hi);
    for (uint32_t k = 0; k < stmt->inputs.count; k++)
      use_expr(uses, list_at(&stmt->inputs, struct ir_expr, k));
    if (stmt->kind == IR_STORE || stmt->kind == IR_STORE_WIDE || stmt->kind == IR_LOAD_WIDE || stmt->kind == IR_ATOMIC || stmt->kind == IR_COPY) {
      add(uses, &uses->mems, stmt->mem);
      if (stmt->kind != IR_LOAD_WIDE) add(uses, &uses->stored, stmt->mem);
      if (!stmt->is_flat) use_strides(uses, stmt->mem);
      for (uint32_t k = 0; k < stmt->indices.count; k++)
        use_expr(uses, list_at(&stmt->indices, struct ir_expr, k));
    }
    use_block(uses, &stmt->body);
    use_block(uses, &stmt->otherwise);
  }
}

static struct codegen_argument *append(struct arena *arena, struct list *out, enum codegen_argument_kind kind,
                                       enum type type) {
  struct codegen_argument *argument = arena_new(arena, struct codegen_argument);
  argument->kind = kind;
  argument->type = type;
  list_push(arena, out, argument);
  return argument;
}

void codegen_arguments(struct arena *arena, const struct ir_kernel *kernel, const struct ir_entry *entry,
                       struct list *out) {
  struct uses uses = {.arena = arena};
  use_block(&uses, &entry->body);
  for (uint32_t i = 0; i < kernel->tensors.count; i++) {
    struct ir_mem *mem = list_at(&kernel->tensors, struct ir_mem, i);
    if (!list_has(&uses.mems, mem)) continue;
    struct codegen_argument *argument = append(arena, out, ARGUMENT_TENSOR, mem->type);
    argument->mem = mem;
    argument->is_written = list_has(&uses.stored, mem);
  }
  for (uint32_t i = 0; i < entry->memory.count; i++) {
    struct ir_mem *mem = list_at(&entry->memory, struct ir_mem, i);
    if (!mem->workspace || !list_has(&uses.mems, mem)) continue;
    struct codegen_argument *argument = append(arena, out, ARGUMENT_TENSOR, mem->type);
    argument->mem = mem;
    argument->is_written = argument->is_shared = true;
  }
  for (uint32_t i = 0; i < kernel->scalars.count; i++) {
    struct ir_var *var = list_at(&kernel->scalars, struct ir_var, i);
    if (list_has(&uses.vars, var)) append(arena, out, ARGUMENT_SCALAR, var->type)->var = var;
  }
  for (uint32_t i = 0; i < kernel->sizes.count; i++) {
    struct ir_var *var = list_at(&kernel->sizes, struct ir_var, i);
    if (list_has(&uses.vars, var) && !var->constant) append(arena, out, ARGUMENT_SIZE, TYPE_I64)->var = var;
  }
}

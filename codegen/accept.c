// Question: can both backends print this program? Asked once, so that they accept and refuse alike.
#include "codegen/program.h"

#include <string.h>

struct check {
  struct pass_context *context;
  const struct ir_entry *entry;
  bool ok;
};

static void refuse(struct check *check, struct range range, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void refuse(struct check *check, struct range range, const char *format, ...) {
  if (!check->ok) return; // one is enough
  check->ok = false;
  va_list arguments;
  va_start(arguments, format);
  const char *message = arena_vprintf(check->context->arena, format, arguments);
  va_end(arguments);
  diag_internal(check->context->diag, "codegen", range, "entry '%s': %s", check->entry->name, message);
}

static bool has_class(enum type type, const char *properties) {
  switch (type_class_of(type)) {
  case CLASS_BOOL: return strchr(properties, 'b');
  case CLASS_SIGNED:
  case CLASS_UNSIGNED: return strchr(properties, 'i');
  case CLASS_FLOAT: return strchr(properties, 'f');
  case CLASS_STORAGE:
  case CLASS_MOVED:
  case CLASS_INDEX: return false;
  }
  return false;
}

// Types that conversions and shuffles take: those with arithmetic, and f16 and bf16.
static bool is_number(enum type type) {
  return has_class(type, "if") || type_class_of(type) == CLASS_STORAGE;
}

static bool is_printable_op(enum op op) {
  switch (op) {
  case OP_CONST:
  case OP_VAR:
  case OP_ADD:
  case OP_SUB:
  case OP_MUL:
  case OP_DIV:
  case OP_MOD:
  case OP_QUO:
  case OP_REM:
  case OP_NEG:
  case OP_ABS:
  case OP_MIN:
  case OP_MAX:
  case OP_FMIN:
  case OP_FMAX:
  case OP_FMA:
  case OP_AND:
  case OP_OR:
  case OP_XOR:
  case OP_NOT:
  case OP_SHL:
  case OP_SHR:
  case OP_EQ:
  case OP_NE:
  case OP_LT:
  case OP_LE:
  case OP_GT:
  case OP_GE:
  case OP_SELECT:
  case OP_CAST:
  case OP_BITCAST:
  case OP_AWAIT:
  case OP_SQRT:
  case OP_RSQRT:
  case OP_FLOOR:
  case OP_CEIL:
  case OP_ROUND:
  case OP_TRUNC:
  case OP_ISNAN:
  case OP_ISINF:
  case OP_LOAD:
  case OP_LOAD_FLAT:
  case OP_THREAD:
  case OP_BLOCK:
  case OP_SHFL_DOWN:
  case OP_SHFL_XOR:
  case OP_SHFL_IDX:
  case OP_REDUX_ADD:
  case OP_REDUX_MIN:
  case OP_REDUX_MAX:
  case OP_REDUX_AND:
  case OP_REDUX_OR:
  case OP_REDUX_XOR: return true;
  case OP_EXP:
  case OP_EXP2:
  case OP_LOG:
  case OP_LOG2:
  case OP_SIN:
  case OP_COS:
  case OP_TANH:
  case OP_ERF:
  case OP_POW:
  case OP_DIM:
  case OP_STRIDE:
  case OP_ADDRESS:
  case OP_SMS:
  case OP_ARCH:
  case OP_SHARED_LIMIT:
  case OP_COUNT: return false;
  }
  return false;
}

static bool has_printable_types(const struct ir_expr *e) {
  const char *properties = op_table[e->op].properties;
  enum type operand = e->count ? e->args[0]->type : e->type;
  switch (op_table[e->op].rule) {
  case RULE_NONE: return e->op == OP_VAR || has_class(e->type, "bif");
  case RULE_SAME: return has_class(e->type, properties) && operand == e->type;
  case RULE_COMPARE: return has_class(operand, properties) && operand == e->args[1]->type;
  case RULE_PREDICATE: return has_class(operand, properties);
  case RULE_SELECT: return operand == TYPE_BOOL && e->args[1]->type == e->type && e->args[2]->type == e->type;
  case RULE_CONVERT:
    if (e->op == OP_BITCAST)
      return is_number(e->type) && is_number(operand) && type_bits(e->type) == type_bits(operand);
    return (is_number(e->type) || e->type == TYPE_BOOL) && (is_number(operand) || operand == TYPE_BOOL);
  case RULE_MEMORY: return e->mem && e->mem->type == e->type;
  case RULE_SPECIAL: return (e->type == TYPE_I32 || e->type == TYPE_I64) && e->dimension < 3;
  case RULE_SHUFFLE: return operand == TYPE_U32 && is_number(e->type) && e->args[1]->type == e->type;
  case RULE_REDUX: return operand == TYPE_U32 && (e->type == TYPE_I32 || e->type == TYPE_U32) && e->args[1]->type == e->type;
  case RULE_FACT: return false;
  case RULE_AWAIT: return ir_is_await(e) && operand == TYPE_U64;
  }
  return false;
}

static void check_expr(struct check *check, const struct ir_expr *e) {
  int operands = op_table[e->op].operands;
  if (operands >= 0 && e->count != (uint32_t)operands)
    refuse(check, e->range, "operation '%s' has %u operands", op_table[e->op].spelling, e->count);
  else if (!is_printable_op(e->op) || e->type == TYPE_INDEX || !has_printable_types(e))
    refuse(check, e->range, "operation '%s' of type %s reached code generation", op_table[e->op].spelling,
           type_name(e->type));
  else if (op_table[e->op].rule == RULE_REDUX && check->context->options->target->sm < 80)
    refuse(check, e->range, "operation '%s' needs sm_80 or newer", op_table[e->op].spelling);
  else if (e->op == OP_VAR && e->var->kind == VAR_VALUE)
    refuse(check, e->range, "the result '%s' of a stage reached code generation", e->var->name);
  for (uint32_t i = 0; i < e->count && check->ok; i++) check_expr(check, e->args[i]);
}

// A wide access moves 2, 4, 8 or 16 bytes, elements of its object's type.
static void check_wide(struct check *check, const struct ir_stmt *stmt) {
  bool is_load = stmt->kind == IR_LOAD_WIDE, same = true;
  uint32_t count = is_load ? stmt->results.count : stmt->inputs.count;
  for (uint32_t i = 0; i < count; i++)
    same &= stmt->mem->type == (is_load ? list_at(&stmt->results, struct ir_var, i)->type
                                        : list_at(&stmt->inputs, struct ir_expr, i)->type);
  uint32_t bytes = count * type_bytes(stmt->mem->type);
  if (!same || bytes < 1 || bytes > 16 || (bytes & (bytes - 1)) != 0)
    refuse(check, stmt->range, "a wide access of %u elements of '%s'", count, stmt->mem->name);
}

// Machines copy 4, 8 or 16 bytes asynchronously, from sm_80 on.
static void check_copy(struct check *check, const struct ir_stmt *stmt) {
  uint32_t bytes = stmt->count * type_bytes(stmt->mem->type);
  if (bytes != 4 && bytes != 8 && bytes != 16)
    refuse(check, stmt->range, "an asynchronous copy of %u bytes to '%s'", bytes, stmt->mem->name);
  else if (check->context->options->target->sm < 80)
    refuse(check, stmt->range, "asynchronous copies need sm_80 or newer");
}

static void check_block(struct check *check, const struct list *block) {
  for (uint32_t i = 0; i < block->count && check->ok; i++) {
    const struct ir_stmt *stmt = list_at(block, struct ir_stmt, i);
    if (stmt->kind == IR_ALLREDUCE) {
      refuse(check, stmt->range, "an allreduce reached code generation");
      return;
    }
    if (stmt->value) check_expr(check, stmt->value);
    if (stmt->lo) check_expr(check, stmt->lo);
    if (stmt->hi) check_expr(check, stmt->hi);
    if (stmt->kind == IR_LOAD_WIDE || stmt->kind == IR_STORE_WIDE) check_wide(check, stmt);
    if (stmt->kind == IR_COPY) check_copy(check, stmt);
    for (uint32_t k = 0; k < stmt->indices.count; k++)
      check_expr(check, list_at(&stmt->indices, struct ir_expr, k));
    for (uint32_t k = 0; k < stmt->inputs.count; k++)
      check_expr(check, list_at(&stmt->inputs, struct ir_expr, k));
    check_block(check, &stmt->body);
    check_block(check, &stmt->otherwise);
  }
}

static void check_entry(struct check *check) {
  const struct ir_entry *entry = check->entry;
  if (entry->level != LEVEL_PROGRAM) {
    refuse(check, entry->range, "it is not lowered to a program");
    return;
  }
  uint64_t threads = (uint64_t)entry->block[0] * entry->block[1] * entry->block[2];
  if (threads < 1 || threads > 1024)
    refuse(check, entry->range, "its block has %llu threads", (unsigned long long)threads);
  for (uint32_t i = 0; i < entry->memory.count; i++) {
    const struct ir_mem *mem = list_at(&entry->memory, struct ir_mem, i);
    uint64_t count = codegen_element_count(mem);
    if (mem->workspace) continue;
    if (count == 0 || count > INT32_MAX)
      refuse(check, mem->range, "array '%s' has no constant size", mem->name);
  }
  check_block(check, &entry->body);
}

bool codegen_accepts(struct pass_context *context) {
  struct check check = {.context = context, .ok = true};
  for (uint32_t k = 0; k < context->module->kernels.count; k++) {
    const struct ir_kernel *kernel = list_at(&context->module->kernels, struct ir_kernel, k);
    for (uint32_t i = 0; i < kernel->entries.count && check.ok; i++) {
      check.entry = list_at(&kernel->entries, struct ir_entry, i);
      check_entry(&check);
    }
  }
  return check.ok;
}

// The rules of one node of an expression, its operands being right: ops.def in the form of code.
#include "compiler/ir_text.h"

#include <math.h>

// The letter of a type's class in op_info.properties; 0: no operation but loads, stores and conversions takes
// it.
static char class_letter(enum type type) {
  switch (type_class_of(type)) {
  case CLASS_BOOL: return 'b';
  case CLASS_SIGNED:
  case CLASS_UNSIGNED:
  case CLASS_INDEX: return 'i';
  case CLASS_FLOAT: return 'f';
  case CLASS_STORAGE:
  case CLASS_MOVED: return 0;
  }
  return 0;
}

static bool takes(enum op op, enum type type) {
  char letter = class_letter(type);
  for (const char *c = op_table[op].properties; *c; c++)
    if (*c == letter) return true;
  return false;
}

static bool is_offset_type(enum type type) {
  return type == TYPE_INDEX || type == TYPE_I32 || type == TYPE_I64;
}

// Whether an integer constant is the value of its type: zero-extended where the type is unsigned.
static bool fits(enum type type, int64_t value) {
  if (type == TYPE_BOOL) return value == 0 || value == 1;
  uint32_t bits = type_bits(type);
  if (bits == 64) return true;
  if (type_is_signed(type)) return value >= -(INT64_C(1) << (bits - 1)) && value < INT64_C(1) << (bits - 1);
  return value >= 0 && value < INT64_C(1) << bits;
}

static const char *constant_fault(const struct ir_expr *e, struct arena *arena) {
  if (!class_letter(e->type))
    return arena_printf(arena, "a constant cannot have type %s", type_name(e->type));
  if (e->type == TYPE_F32 && !isnan(e->number) && (double)(float)e->number != e->number)
    return arena_printf(arena, "the constant %.17g is no value of f32", e->number);
  if (!type_is_float(e->type) && !fits(e->type, e->integer))
    return arena_printf(arena, "the constant %lld does not fit %s", (long long)e->integer,
                        type_name(e->type));
  return NULL;
}

static const char *memory_fault(const struct ir_expr *e, struct arena *arena) {
  const char *spelling = op_table[e->op].spelling;
  if (!e->mem) return arena_printf(arena, "'%s' names no memory object", spelling);
  if (e->op == OP_LOAD && e->count != e->mem->dims.count)
    return arena_printf(arena, "'%s' has %u dimensions, and %u indices are given", e->mem->name,
                        e->mem->dims.count, e->count);
  for (uint32_t i = 0; i < e->count; i++)
    if (!is_offset_type(e->args[i]->type))
      return arena_printf(arena, "an index of '%s' has type %s", spelling, type_name(e->args[i]->type));
  if (e->type != e->mem->type)
    return arena_printf(arena, "'%s' of '%s' has type %s, and its elements have %s", spelling, e->mem->name,
                        type_name(e->type), type_name(e->mem->type));
  return NULL;
}

static const char *fact_fault(const struct ir_expr *e, struct arena *arena) {
  const char *spelling = op_table[e->op].spelling;
  if (e->type != TYPE_I64) return arena_printf(arena, "'%s' is an i64, not %s", spelling, type_name(e->type));
  if (!ir_op_has_mem(e->op)) return NULL;
  if (!e->mem || e->mem->space != SPACE_GLOBAL) return arena_printf(arena, "'%s' names no tensor", spelling);
  if (ir_op_has_dimension(e->op) && e->dimension >= e->mem->dims.count)
    return arena_printf(arena, "'%s' has %u dimensions, and dimension %u is asked for", e->mem->name,
                        e->mem->dims.count, e->dimension);
  return NULL;
}

static bool converts(enum op op, enum type from, enum type to) {
  enum type_class a = type_class_of(from), b = type_class_of(to);
  if (a == CLASS_MOVED || b == CLASS_MOVED) return false;
  if (op == OP_BITCAST) return a != CLASS_BOOL && b != CLASS_BOOL && type_bits(from) == type_bits(to);
  if (a == CLASS_STORAGE) return b == CLASS_FLOAT;
  return b != CLASS_STORAGE || a == CLASS_FLOAT;
}

// Operands `first`..count have one type, which the operation takes.
static const char *operand_fault(const struct ir_expr *e, uint32_t first, uint32_t count,
                                 struct arena *arena) {
  const char *spelling = op_table[e->op].spelling;
  enum type type = e->args[first]->type;
  for (uint32_t i = first + 1; i < count; i++)
    if (e->args[i]->type != type)
      return arena_printf(arena, "'%s' has operands of types %s and %s", spelling, type_name(type),
                          type_name(e->args[i]->type));
  if (!takes(e->op, type))
    return arena_printf(arena, "'%s' takes no operands of type %s", spelling, type_name(type));
  return NULL;
}

static const char *result_fault(const struct ir_expr *e, enum type type, struct arena *arena) {
  if (e->type == type) return NULL;
  return arena_printf(arena, "'%s' of these operands has type %s, not %s", op_table[e->op].spelling,
                      type_name(type), type_name(e->type));
}

const char *ir_node_fault(const struct ir_expr *e, struct arena *arena) {
  const struct op_info *info = &op_table[e->op];
  const char *fault = NULL;
  if (info->operands >= 0 && e->count != (uint32_t)info->operands)
    return arena_printf(arena, "'%s' takes %d operand%s, found %u", info->spelling, info->operands,
                        info->operands == 1 ? "" : "s", e->count);
  switch (info->rule) {
  case RULE_NONE:
    if (e->op == OP_CONST) return constant_fault(e, arena);
    if (!e->var) return "a variable without its declaration";
    if (e->var->type != e->type)
      return arena_printf(arena, "'%s' is a %s, not %s", e->var->name, type_name(e->var->type),
                          type_name(e->type));
    return NULL;
  case RULE_SAME:
    fault = operand_fault(e, 0, e->count, arena);
    return fault ? fault : result_fault(e, e->args[0]->type, arena);
  case RULE_COMPARE:
  case RULE_PREDICATE:
    fault = operand_fault(e, 0, e->count, arena);
    return fault ? fault : result_fault(e, TYPE_BOOL, arena);
  case RULE_SELECT:
    if (e->args[0]->type != TYPE_BOOL)
      return arena_printf(arena, "the condition of '%s' has type %s", info->spelling,
                          type_name(e->args[0]->type));
    fault = operand_fault(e, 1, 3, arena);
    return fault ? fault : result_fault(e, e->args[1]->type, arena);
  case RULE_CONVERT:
    if (converts(e->op, e->args[0]->type, e->type)) return NULL;
    return arena_printf(arena, "'%s' cannot make %s of %s", info->spelling, type_name(e->type),
                        type_name(e->args[0]->type));
  case RULE_MEMORY: return memory_fault(e, arena);
  case RULE_SPECIAL:
    if (e->dimension > 2) return arena_printf(arena, "'%s' has dimensions x, y and z", info->spelling);
    if (is_offset_type(e->type)) return NULL;
    return arena_printf(arena, "'%s' is an index, not %s", info->spelling, type_name(e->type));
  case RULE_SHUFFLE:
    if (e->args[0]->type != TYPE_U32 || e->args[2]->type != TYPE_U32)
      return arena_printf(arena, "mask and lane of '%s' are u32", info->spelling);
    fault = operand_fault(e, 1, 2, arena);
    return fault ? fault : result_fault(e, e->args[1]->type, arena);
  case RULE_REDUX:
    if (e->args[0]->type != TYPE_U32) return arena_printf(arena, "the mask of '%s' is u32", info->spelling);
    if (e->args[1]->type != TYPE_I32 && e->args[1]->type != TYPE_U32)
      return arena_printf(arena, "'%s' takes i32 and u32, not %s", info->spelling, type_name(e->args[1]->type));
    return result_fault(e, e->args[1]->type, arena);
  case RULE_FACT: return fact_fault(e, arena);
  case RULE_AWAIT:
    if (ir_is_await(e) && e->args[0]->type == TYPE_U64) return NULL;
    return "'await' is of a u64 and a load of a polled object";
  }
  return NULL;
}

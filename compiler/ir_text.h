// What the printer and the reader of IR text share; nobody else includes it.
#ifndef RED_COMPILER_IR_TEXT_H
#define RED_COMPILER_IR_TEXT_H

#include "compiler/ir.h"

enum {
  IR_TEXT_VERSION = 1,
  // Levels of expressions and blocks that the reader takes. Passes wrap what the parser allows (AST_MAX_DEPTH, 2000) in a
  // few levels more.
  IR_TEXT_MAX_DEPTH = 4000,
};

// Spellings, by enum value.
extern const char *const ir_bind_names[BIND_VECTOR + 1];
extern const char *const ir_form_names[FORM_TREE + 1];
extern const char *const ir_directive_names[DIRECTIVE_COUNT];
extern const char *const ir_stmt_names[IR_STMT_KINDS];
extern const char *const ir_atomic_names[ATOMIC_COUNT];
extern const char *const ir_combine_names[COMBINE_COUNT];
extern const char *const ir_hint_names[CACHE_COUNT];

// The type that an operation has unless another one is spelled behind it: by its rule, from its operands.
enum type ir_inferred_type(enum op op, struct ir_expr *const *args, uint32_t count, const struct ir_mem *mem);

static inline bool ir_op_has_mem(enum op op) {
  return op == OP_LOAD || op == OP_LOAD_FLAT || op == OP_DIM || op == OP_STRIDE || op == OP_ADDRESS;
}
// Whether the dimension is an argument in the text.
static inline bool ir_op_has_dimension(enum op op) {
  return op == OP_DIM || op == OP_STRIDE;
}

// What is wrong with a node by itself, its operands being right: their number and types, the result's type, a constant
// outside its type, a dimension that the object does not have. NULL: nothing. Lives in the arena.
const char *ir_node_fault(const struct ir_expr *e, struct arena *arena);

#endif

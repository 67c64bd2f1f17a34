// One kernel that computes every operation on every type that it takes, for the tests of code generation: an
// entry for each operand type. Thread i reads element i of inputs X_T, Y_T and Z_T; result k of type R goes
// to element i * EVERY_WIDTH + k of R_R.
#ifndef RED_TESTS_UNIT_EVERY_OP_H
#define RED_TESTS_UNIT_EVERY_OP_H

#include "compiler/arith.h"
#include "tests/unit/program.h"

#include <math.h>

enum { EVERY_WIDTH = 512, EVERY_LIMIT = 1024 };

struct every_case {
  struct ir_entry *entry;
  enum op op;
  enum type operand, result;
  uint32_t slot;     // k
  bool has_constant; // the second operand is `constant` instead of Y
  struct value constant;
};

struct every {
  struct program program;
  struct ir_mem *inputs[3][TYPE_COUNT], *outputs[TYPE_COUNT];
  struct every_case cases[EVERY_LIMIT];
  uint32_t count;
  uint32_t slots[TYPE_COUNT]; // used
};

// Types that have values: all but those that can only be moved, and index.
static inline bool every_has_values(enum type type) {
  return type_class_of(type) != CLASS_MOVED && type != TYPE_INDEX;
}

static inline bool every_takes(enum op op, enum type type) {
  enum op_rule rule = op_table[op].rule;
  if (rule != RULE_SAME && rule != RULE_COMPARE && rule != RULE_SELECT && rule != RULE_PREDICATE &&
      rule != RULE_SHUFFLE)
    return false;
  if ((op >= OP_EXP && op <= OP_LOG2) || (op >= OP_SIN && op <= OP_POW)) return false;
  enum type_class class = type_class_of(type);
  if (class == CLASS_STORAGE) return rule == RULE_SELECT || rule == RULE_SHUFFLE;
  char letter = class == CLASS_BOOL ? 'b' : class == CLASS_FLOAT ? 'f' : 'i';
  return strchr(op_table[op].properties, letter) != NULL;
}

static inline bool every_converts(enum op op, enum type from, enum type to) {
  if (op == OP_CAST) return from != to;
  return from != to && from != TYPE_BOOL && to != TYPE_BOOL && type_bits(from) == type_bits(to);
}

static inline struct ir_expr *every_operand(struct every *every, uint32_t which, enum type type,
                                            struct ir_expr *i) {
  return program_load(&every->program, every->inputs[which][type], i);
}

static inline void every_store(struct every *every, enum op op, enum type operand, struct ir_expr *value,
                               struct ir_expr *i) {
  struct program *p = &every->program;
  uint32_t slot = every->slots[value->type]++;
  struct ir_expr *row = ir_binary(&p->arena, OP_MUL, i, program_int(p, i->type, EVERY_WIDTH));
  program_store(p, every->outputs[value->type],
                ir_binary(&p->arena, OP_ADD, row, program_int(p, i->type, slot)), value);
  every->cases[every->count++] = (struct every_case){
      .entry = p->entry, .op = op, .operand = operand, .result = value->type, .slot = slot};
}

// A divisor for QUO and REM: odd and positive.
static inline struct ir_expr *every_divisor(struct every *every, struct ir_expr *y) {
  struct program *p = &every->program;
  struct ir_expr *masked = ir_binary(&p->arena, OP_AND, y, program_int(p, y->type, 0x55));
  return ir_binary(&p->arena, OP_OR, masked, program_int(p, y->type, 1));
}

// Computes an operation; y stands for the second operand, NULL: Y.
static inline void every_op(struct every *every, enum op op, enum type type, struct ir_expr *i,
                            struct ir_expr *y) {
  struct program *p = &every->program;
  struct ir_expr *x = every_operand(every, 0, type, i), *z = every_operand(every, 2, type, i);
  if (!y) y = every_operand(every, 1, type, i);
  enum op_rule rule = op_table[op].rule;
  enum type result = rule == RULE_COMPARE || rule == RULE_PREDICATE ? TYPE_BOOL : type;
  struct ir_expr *value;
  if (rule == RULE_SELECT) {
    value = program_op(p, op, type, 3, every_operand(every, 0, TYPE_BOOL, i), x, y);
  } else if (rule == RULE_SHUFFLE) { // stands alone as a let
    struct ir_expr *lane = program_int(p, TYPE_U32, 5);
    if (op == OP_SHFL_DOWN) // by 5, the last lanes read themselves
      lane = ir_select(
          &p->arena,
          ir_binary(&p->arena, OP_LT, program_special(p, OP_THREAD, 0), program_int(p, TYPE_I32, 27)), lane,
          program_int(p, TYPE_U32, 0));
    value =
        program_let(p, "moved", program_op(p, op, type, 3, program_int(p, TYPE_U32, UINT32_MAX), x, lane));
  } else {
    if ((op == OP_QUO || op == OP_REM) && y->op != OP_CONST) y = every_divisor(every, y);
    value = program_op(p, op, result, (uint32_t)op_table[op].operands, x, y, z);
  }
  every_store(every, op, type, value, i);
}

// The same with constants on the right, which compilers treat apart: for integers one of a list in turn, for
// floats all.
static inline void every_constant(struct every *every, enum op op, enum type type, struct ir_expr *i) {
  static const int64_t integers[] = {0, -1, 7, 33};
  static const double floats[] = {-0.0, (double)NAN, (double)INFINITY, -2.0, 3.0};
  struct program *p = &every->program;
  bool is_float = type_is_float(type);
  for (int k = is_float ? 0 : (int)op % 4; k < (is_float ? 5 : (int)op % 4 + 1); k++) {
    struct value constant = is_float ? value_float(type, floats[k]) : value_int(type, integers[k]);
    if ((op == OP_QUO || op == OP_REM) && k < 2) constant = value_int(type, 10);
    every_op(every, op, type, i,
             is_float ? ir_float(&p->arena, type, constant.number) : program_int(p, type, constant.integer));
    every->cases[every->count - 1].has_constant = true;
    every->cases[every->count - 1].constant = constant;
  }
}

// The program of all operations on operands of one type.
static inline void every_entry(struct every *every, enum type type) {
  struct program *p = &every->program;
  program_entry(p, arena_printf(&p->arena, "every_%s", type_name(type)), 32);
  struct ir_expr *block = program_special(p, OP_BLOCK, 0), *thread = program_special(p, OP_THREAD, 0);
  struct ir_expr *start = ir_binary(&p->arena, OP_MUL, block, program_int(p, TYPE_I32, 32));
  struct ir_expr *i = program_let(p, "i", ir_binary(&p->arena, OP_ADD, start, thread));
  for (int op = 0; op < OP_COUNT; op++)
    if (every_takes((enum op)op, type)) {
      every_op(every, (enum op)op, type, i, NULL);
      if (op_table[op].operands == 2 && type != TYPE_BOOL) every_constant(every, (enum op)op, type, i);
    }
  for (int to = 0; to < TYPE_COUNT; to++)
    for (int op = OP_CAST; op <= OP_BITCAST; op++)
      if (every_has_values((enum type)to) && every_converts((enum op)op, type, (enum type)to))
        every_store(
            every, (enum op)op, type,
            program_op(p, (enum op)op, (enum type)to, 1, every_operand(every, 0, type, i), NULL, NULL), i);
}

static inline void every_begin(struct every *every) {
  memset(every, 0, sizeof *every);
  struct program *p = &every->program;
  program_begin(p, "every", 32, NULL);
  p->kernel->entries.count = 0;
  for (int type = 0; type < TYPE_COUNT; type++)
    if (every_has_values((enum type)type)) {
      const char *name = type_name((enum type)type);
      for (int k = 0; k < 3; k++)
        every->inputs[k][type] =
            program_tensor(p, arena_printf(&p->arena, "%c_%s", "XYZ"[k], name), (enum type)type, false);
      every->outputs[type] = program_tensor(p, arena_printf(&p->arena, "R_%s", name), (enum type)type, true);
    }
  for (int type = 0; type < TYPE_COUNT; type++)
    if (every_has_values((enum type)type)) every_entry(every, (enum type)type);
}

#endif

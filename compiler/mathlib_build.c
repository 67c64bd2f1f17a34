// The functions as IR.
#include "compiler/mathlib.h"

#include <assert.h>
#include <math.h>
#include <string.h>

struct builder {
  struct arena *arena;
  const char *name; // of the operation, in front of the labels
  struct ir_function *function;
};

typedef struct ir_expr *node;

static node let(struct builder *b, enum type type, const char *name, node value) {
  assert(value->type == type);
  if (value->op == OP_VAR || value->op == OP_CONST) return value;
  struct ir_var *var = arena_new(b->arena, struct ir_var);
  var->name = var->label = arena_printf(b->arena, "%s_%s", b->name, name);
  var->kind = VAR_LET;
  var->type = type;
  struct range nowhere = {0};
  list_push(b->arena, &b->function->lets, ir_let(b->arena, var, value, nowhere));
  return ir_ref(b->arena, var);
}

static node unary(struct builder *b, enum op op, node a) {
  return ir_unary(b->arena, op, a);
}
static node binary(struct builder *b, enum op op, node a, node c) {
  assert(a->type == c->type);
  return ir_binary(b->arena, op, a, c);
}
static node fused(struct builder *b, node x, node y, node z) {
  node args[3] = {x, y, z};
  return ir_make(b->arena, OP_FMA, x->type, args, 3);
}
static node bitcast(struct builder *b, enum type type, node a) {
  assert(type_bits(type) == type_bits(a->type));
  return ir_make(b->arena, OP_BITCAST, type, &a, 1);
}

#define FUNCTION1(op, T, x) static node build_##op##_##T(struct builder *b, node x)
#define FUNCTION2(op, T, x, y) static node build_##op##_##T(struct builder *b, node x, node y)
#define PART1(name, T, T1, a1) static node part_##name(struct builder *b, node a1)
#define PART2(name, T, T1, a1, T2, a2) static node part_##name(struct builder *b, node a1, node a2)
#define CALL1(name, a1) part_##name(b, a1)
#define CALL2(name, a1, a2) part_##name(b, a1, a2)
#define LET(T, name, value) node name = let(b, TYPE_##T, #name, value)
#define RESULT(value) return (value)
#define K(T, value) K_##T(value)
#define K_F32(value) ir_float(b->arena, TYPE_F32, value)
#define K_F64(value) ir_float(b->arena, TYPE_F64, value)
#define K_I32(value) ir_int(b->arena, TYPE_I32, value)
#define K_U32(value) ir_int(b->arena, TYPE_U32, value)
#define K_I64(value) ir_int(b->arena, TYPE_I64, value)
#define K_U64(value) ir_int(b->arena, TYPE_U64, (int64_t)(value))
#define CAST(T, a1) ir_cast(b->arena, TYPE_##T, a1)
#define BITCAST(T, a1) bitcast(b, TYPE_##T, a1)
#define ADD(a1, a2) binary(b, OP_ADD, a1, a2)
#define SUB(a1, a2) binary(b, OP_SUB, a1, a2)
#define MUL(a1, a2) binary(b, OP_MUL, a1, a2)
#define DIV(a1, a2) binary(b, OP_DIV, a1, a2)
#define NEG(a1) unary(b, OP_NEG, a1)
#define FMA(a1, a2, a3) fused(b, a1, a2, a3)
#define ABS(a1) unary(b, OP_ABS, a1)
#define SQRT(a1) unary(b, OP_SQRT, a1)
#define TRUNC(a1) unary(b, OP_TRUNC, a1)
#define MIN(a1, a2) binary(b, OP_MIN, a1, a2)
#define MAX(a1, a2) binary(b, OP_MAX, a1, a2)
#define AND(a1, a2) binary(b, OP_AND, a1, a2)
#define OR(a1, a2) binary(b, OP_OR, a1, a2)
#define XOR(a1, a2) binary(b, OP_XOR, a1, a2)
#define SHL(a1, a2) binary(b, OP_SHL, a1, a2)
#define SHR(a1, a2) binary(b, OP_SHR, a1, a2)
#define EQ(a1, a2) binary(b, OP_EQ, a1, a2)
#define NE(a1, a2) binary(b, OP_NE, a1, a2)
#define LT(a1, a2) binary(b, OP_LT, a1, a2)
#define GT(a1, a2) binary(b, OP_GT, a1, a2)
#define SELECT(c, a1, a2) ir_select(b->arena, c, a1, a2)

#include "compiler/mathlib_f32.def"
#include "compiler/mathlib_f64.def"

static node build_f32(struct builder *b, enum op op, node x, node y) {
  switch ((int)op) {
#define M(name)                                                                                              \
  case OP_##name:                                                                                            \
    return build_##name##_F32(b, x);
#include "compiler/mathlib.def"
#undef M
  case OP_POW: return build_POW_F32(b, x, y);
  default: return NULL;
  }
}

static node build_f64(struct builder *b, enum op op, node x, node y) {
  switch ((int)op) {
#define M(name)                                                                                              \
  case OP_##name:                                                                                            \
    return build_##name##_F64(b, x);
#include "compiler/mathlib.def"
#undef M
  case OP_POW: return build_POW_F64(b, x, y);
  default: return NULL;
  }
}

bool mathlib_has(enum op op, enum type type) {
  if (!type_is_float(type)) return false;
  switch ((int)op) {
#define M(name)                                                                                              \
  case OP_##name:                                                                                            \
    return true;
#include "compiler/mathlib.def"
#undef M
  case OP_POW: return true;
  default: return false;
  }
}

// An empty function of f32 or f64, and a reference to each of its parameters.
static struct builder begin(struct arena *arena, enum op op, enum type type, node params[2]) {
  struct builder b = {arena, op_table[op].spelling, arena_new(arena, struct ir_function)};
  for (int i = 0; i < op_table[op].operands; i++) {
    struct ir_var *var = arena_new(arena, struct ir_var);
    var->name = var->label = i ? "y" : "x";
    var->kind = VAR_LET;
    var->type = type;
    list_push(arena, &b.function->params, var);
    params[i] = ir_ref(arena, var);
  }
  return b;
}

const struct ir_function *mathlib_function(struct arena *arena, enum op op, enum type type) {
  if (!mathlib_has(op, type)) return NULL;
  node params[2] = {NULL};
  struct builder b = begin(arena, op, type, params);
  list_push(arena, &b.function->results,
            type == TYPE_F32 ? build_f32(&b, op, params[0], params[1])
                             : build_f64(&b, op, params[0], params[1]));
  return b.function;
}

const struct ir_function *mathlib_exp_below(struct arena *arena) {
  node params[2] = {NULL};
  struct builder b = begin(arena, OP_EXP, TYPE_F32, params);
  list_push(arena, &b.function->results, build_EXP_BELOW_F32(&b, params[0]));
  return b.function;
}

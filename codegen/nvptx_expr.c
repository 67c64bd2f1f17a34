// Expressions as LLVM instructions: the language's arithmetic with nothing undefined and nothing fused.
//
// No instruction carries a fast-math flag, and nsw stands only inside offsets (see nvptx_offset). LLVM then
// prints float sums and products with .rn, which ptxas does not contract.
#include "codegen/program.h"
#include "codegen/nvptx.h"

#include <string.h>

// --- Types and calls ---------------------------------------------------------------------------------------

LLVMTypeRef nvptx_type(struct nvptx *cg, enum type type) {
  return type == TYPE_BOOL ? LLVMInt1TypeInContext(cg->llvm) : nvptx_memory_type(cg, type);
}

LLVMTypeRef nvptx_memory_type(struct nvptx *cg, enum type type) {
  if (type == TYPE_F32) return LLVMFloatTypeInContext(cg->llvm);
  if (type == TYPE_F64) return LLVMDoubleTypeInContext(cg->llvm);
  if (type == TYPE_C128) return LLVMVectorType(LLVMInt64TypeInContext(cg->llvm), 2);
  return LLVMIntTypeInContext(cg->llvm, type_bits(type));
}

LLVMValueRef nvptx_const(struct nvptx *cg, enum type type, int64_t integer) {
  return LLVMConstInt(nvptx_type(cg, type), (unsigned long long)integer, true);
}

// The bits of a float constant, so that NaNs keep theirs.
static LLVMValueRef const_float(struct nvptx *cg, enum type type, double number) {
  uint64_t bits = 0;
  float single = (float)number;
  if (type == TYPE_F32)
    memcpy(&bits, &single, sizeof single);
  else
    memcpy(&bits, &number, sizeof number);
  LLVMTypeRef integer = LLVMIntTypeInContext(cg->llvm, type_bits(type));
  return LLVMConstBitCast(LLVMConstInt(integer, bits, false), nvptx_type(cg, type));
}

static const struct {
  const char *name, *alternative;
  unsigned overloads;
} intrinsics[NVPTX_OP_COUNT] = {
#define N(name, intrinsic, alternative, overloads) [NVPTX_##name] = {intrinsic, alternative, overloads},
#include "codegen/nvptx_ops.def"
#undef N
};

LLVMValueRef nvptx_call(struct nvptx *cg, enum nvptx_op op, LLVMValueRef *args, unsigned count) {
  const char *name = intrinsics[op].name;
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  if (!id && intrinsics[op].alternative) {
    name = intrinsics[op].alternative;
    id = LLVMLookupIntrinsicID(name, strlen(name));
  }
  struct range nowhere = {0};
  if (!id) {
    nvptx_fail(cg, nowhere, "this LLVM does not know %s", intrinsics[op].name);
    return LLVMGetUndef(count ? LLVMTypeOf(args[0]) : LLVMInt32TypeInContext(cg->llvm));
  }
  LLVMTypeRef overload = count ? LLVMTypeOf(args[0]) : NULL;
  unsigned overloads = intrinsics[op].overloads;
  LLVMValueRef function = LLVMGetIntrinsicDeclaration(cg->module, id, &overload, overloads);
  LLVMTypeRef type = LLVMGlobalGetValueType(function);
  unsigned taken = LLVMCountParamTypes(type); // barrier0 takes no number
  return LLVMBuildCall2(cg->builder, type, function, args, taken < count ? taken : count, "");
}

static LLVMValueRef call1(struct nvptx *cg, enum nvptx_op op, LLVMValueRef a) {
  return nvptx_call(cg, op, &a, 1);
}

static LLVMValueRef call2(struct nvptx *cg, enum nvptx_op op, LLVMValueRef a, LLVMValueRef b) {
  LLVMValueRef args[2] = {a, b};
  return nvptx_call(cg, op, args, 2);
}

// --- Memo --------------------------------------------------------------------------------------------------

static struct nvptx_memo_slot *memo_find(struct nvptx_memo *memo, const struct ir_expr *e) {
  uint32_t at = (uint32_t)((uintptr_t)e >> 4) * 2654435761u & (memo->capacity - 1);
  while (memo->slots[at].stamp == memo->stamp && memo->slots[at].e != e) at = (at + 1) & (memo->capacity - 1);
  return &memo->slots[at];
}

static void memo_put(struct nvptx *cg, const struct ir_expr *e, LLVMValueRef value) {
  struct nvptx_memo *memo = &cg->memo;
  if (2 * memo->count >= memo->capacity) {
    struct nvptx_memo old = *memo;
    memo->capacity = old.capacity ? 2 * old.capacity : 64;
    memo->slots = arena_array(cg->context->arena, struct nvptx_memo_slot, memo->capacity);
    for (uint32_t i = 0; i < old.capacity; i++)
      if (old.slots[i].stamp == old.stamp) *memo_find(memo, old.slots[i].e) = old.slots[i];
  }
  *memo_find(memo, e) = (struct nvptx_memo_slot){e, value, memo->stamp};
  memo->count++;
}

void nvptx_memo_clear(struct nvptx *cg) {
  cg->memo.stamp++;
  cg->memo.count = 0;
}

// --- Integers ----------------------------------------------------------------------------------------------

static LLVMValueRef is_equal(struct nvptx *cg, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildICmp(cg->builder, LLVMIntEQ, a, b, "");
}

// Division and remainder for any operands: x / 0 is all ones, x % 0 is x, MIN / -1 is MIN, MIN % -1 is 0.
static LLVMValueRef divide(struct nvptx *cg, enum op op, enum type type, LLVMValueRef a, LLVMValueRef b) {
  LLVMBuilderRef builder = cg->builder;
  LLVMValueRef zero = nvptx_const(cg, type, 0), one = nvptx_const(cg, type, 1),
               ones = nvptx_const(cg, type, -1);
  LLVMValueRef by_zero = is_equal(cg, b, zero);
  if (!type_is_signed(type)) {
    LLVMValueRef safe = LLVMBuildSelect(builder, by_zero, one, b, "");
    if (op == OP_DIV) return LLVMBuildSelect(builder, by_zero, ones, LLVMBuildUDiv(builder, a, safe, ""), "");
    return LLVMBuildSelect(builder, by_zero, a, LLVMBuildURem(builder, a, safe, ""), "");
  }
  LLVMValueRef by_minus = is_equal(cg, b, ones);
  LLVMValueRef safe = LLVMBuildSelect(builder, LLVMBuildOr(builder, by_zero, by_minus, ""), one, b, "");
  if (op == OP_MOD) // x % 1 is what x % -1 is
    return LLVMBuildSelect(builder, by_zero, a, LLVMBuildSRem(builder, a, safe, ""), "");
  LLVMValueRef quotient = LLVMBuildSDiv(builder, a, safe, "");
  quotient = LLVMBuildSelect(builder, by_minus, LLVMBuildNeg(builder, a, ""), quotient, "");
  return LLVMBuildSelect(builder, by_zero, ones, quotient, "");
}

static LLVMValueRef shift_count(struct nvptx *cg, enum type type, LLVMValueRef count) {
  return LLVMBuildAnd(cg->builder, count, nvptx_const(cg, type, type_bits(type) - 1), "");
}

static LLVMValueRef integer_op(struct nvptx *cg, const struct ir_expr *e, LLVMValueRef a, LLVMValueRef b) {
  LLVMBuilderRef builder = cg->builder;
  bool is_signed = type_is_signed(e->type);
  switch ((int)e->op) {
  case OP_ADD: return LLVMBuildAdd(builder, a, b, "");
  case OP_SUB: return LLVMBuildSub(builder, a, b, "");
  case OP_MUL: return LLVMBuildMul(builder, a, b, "");
  case OP_DIV:
  case OP_MOD: return divide(cg, e->op, e->type, a, b);
  case OP_QUO: return is_signed ? LLVMBuildSDiv(builder, a, b, "") : LLVMBuildUDiv(builder, a, b, "");
  case OP_REM: return is_signed ? LLVMBuildSRem(builder, a, b, "") : LLVMBuildURem(builder, a, b, "");
  case OP_NEG: return LLVMBuildNeg(builder, a, "");
  case OP_ABS:
    return is_signed ? call2(cg, NVPTX_IABS, a, LLVMConstInt(LLVMInt1TypeInContext(cg->llvm), 0, false)) : a;
  case OP_MIN: return call2(cg, is_signed ? NVPTX_SMIN : NVPTX_UMIN, a, b);
  case OP_MAX: return call2(cg, is_signed ? NVPTX_SMAX : NVPTX_UMAX, a, b);
  case OP_AND: return LLVMBuildAnd(builder, a, b, "");
  case OP_OR: return LLVMBuildOr(builder, a, b, "");
  case OP_XOR: return LLVMBuildXor(builder, a, b, "");
  case OP_NOT: return LLVMBuildNot(builder, a, "");
  case OP_SHL: return LLVMBuildShl(builder, a, shift_count(cg, e->type, b), "");
  case OP_SHR:
    b = shift_count(cg, e->type, b);
    return is_signed ? LLVMBuildAShr(builder, a, b, "") : LLVMBuildLShr(builder, a, b, "");
  default: return NULL;
  }
}

// --- Floats ------------------------------------------------------------------------------------------------

// NaN when an operand is, else the machine's min or max, which orders -0 below +0. One instruction for f32
// from sm_80.
static LLVMValueRef nan_min_max(struct nvptx *cg, const struct ir_expr *e, LLVMValueRef a, LLVMValueRef b) {
  bool is_min = e->op == OP_MIN;
  if (e->type == TYPE_F32 && cg->context->options->target->sm >= 80)
    return call2(cg, is_min ? NVPTX_MINIMUM : NVPTX_MAXIMUM, a, b);
  LLVMValueRef unordered = LLVMBuildFCmp(cg->builder, LLVMRealUNO, a, b, "");
  LLVMValueRef number = call2(cg, is_min ? NVPTX_MINNUM : NVPTX_MAXNUM, a, b);
  return LLVMBuildSelect(cg->builder, unordered, const_float(cg, e->type, __builtin_nan("")), number, "");
}

static LLVMValueRef float_op(struct nvptx *cg, const struct ir_expr *e, LLVMValueRef *args) {
  LLVMBuilderRef builder = cg->builder;
  LLVMValueRef a = args[0], b = e->count > 1 ? args[1] : NULL;
  switch ((int)e->op) {
  case OP_ADD: return LLVMBuildFAdd(builder, a, b, "");
  case OP_SUB: return LLVMBuildFSub(builder, a, b, "");
  case OP_MUL: return LLVMBuildFMul(builder, a, b, "");
  case OP_DIV: return LLVMBuildFDiv(builder, a, b, "");
  case OP_NEG: return LLVMBuildFNeg(builder, a, "");
  case OP_ABS: return call1(cg, NVPTX_FABS, a);
  case OP_MIN:
  case OP_MAX: return nan_min_max(cg, e, a, b);
  case OP_FMIN: return call2(cg, NVPTX_MINNUM, a, b);
  case OP_FMAX: return call2(cg, NVPTX_MAXNUM, a, b);
  case OP_FMA: return nvptx_call(cg, NVPTX_FMA, args, 3);
  case OP_SQRT: return call1(cg, NVPTX_SQRT, a);
  case OP_RSQRT: return LLVMBuildFDiv(builder, const_float(cg, e->type, 1), call1(cg, NVPTX_SQRT, a), "");
  case OP_FLOOR: return call1(cg, NVPTX_FLOOR, a);
  case OP_CEIL: return call1(cg, NVPTX_CEIL, a);
  case OP_ROUND: return call1(cg, NVPTX_ROUND, a);
  case OP_TRUNC: return call1(cg, NVPTX_TRUNC, a);
  default: return NULL;
  }
}

static LLVMValueRef predicate(struct nvptx *cg, const struct ir_expr *e, LLVMValueRef a) {
  if (e->op == OP_ISNAN) return LLVMBuildFCmp(cg->builder, LLVMRealUNO, a, a, "");
  LLVMValueRef infinity = const_float(cg, e->args[0]->type, __builtin_inf());
  return LLVMBuildFCmp(cg->builder, LLVMRealOEQ, call1(cg, NVPTX_FABS, a), infinity, "");
}

static LLVMValueRef compare(struct nvptx *cg, const struct ir_expr *e, LLVMValueRef a, LLVMValueRef b) {
  static const struct {
    LLVMRealPredicate real;
    LLVMIntPredicate of_signed, of_unsigned;
  } predicates[] = {
      [OP_EQ] = {LLVMRealOEQ, LLVMIntEQ, LLVMIntEQ},   [OP_NE] = {LLVMRealUNE, LLVMIntNE, LLVMIntNE},
      [OP_LT] = {LLVMRealOLT, LLVMIntSLT, LLVMIntULT}, [OP_LE] = {LLVMRealOLE, LLVMIntSLE, LLVMIntULE},
      [OP_GT] = {LLVMRealOGT, LLVMIntSGT, LLVMIntUGT}, [OP_GE] = {LLVMRealOGE, LLVMIntSGE, LLVMIntUGE},
  };
  enum type type = e->args[0]->type;
  if (type_is_float(type)) return LLVMBuildFCmp(cg->builder, predicates[e->op].real, a, b, "");
  return LLVMBuildICmp(cg->builder,
                       type_is_signed(type) ? predicates[e->op].of_signed : predicates[e->op].of_unsigned, a,
                       b, "");
}

// --- Threads -----------------------------------------------------------------------------------------------

// A coordinate of the thread or block, with the range that LLVM may know: 0 to `extent`.
static LLVMValueRef coordinate(struct nvptx *cg, const struct ir_expr *e) {
  bool is_thread = e->op == OP_THREAD;
  uint32_t extent = is_thread ? cg->entry->block[e->dimension] : e->dimension ? 65535 : INT32_MAX;
  if (is_thread && extent <= 1) return nvptx_const(cg, e->type, 0);
  static const enum nvptx_op threads[] = {NVPTX_THREAD_X, NVPTX_THREAD_Y, NVPTX_THREAD_Z};
  static const enum nvptx_op blocks[] = {NVPTX_BLOCK_X, NVPTX_BLOCK_Y, NVPTX_BLOCK_Z};
  LLVMValueRef value = nvptx_call(cg, is_thread ? threads[e->dimension] : blocks[e->dimension], NULL, 0);
  LLVMTypeRef i32 = LLVMInt32TypeInContext(cg->llvm);
  LLVMMetadataRef bounds[2] = {LLVMValueAsMetadata(LLVMConstInt(i32, 0, false)),
                               LLVMValueAsMetadata(LLVMConstInt(i32, extent, false))};
  LLVMValueRef range = LLVMMetadataAsValue(cg->llvm, LLVMMDNodeInContext2(cg->llvm, bounds, 2));
  LLVMSetMetadata(value, LLVMGetMDKindIDInContext(cg->llvm, "range", strlen("range")), range);
  return type_bits(e->type) == 32 ? value : LLVMBuildZExt(cg->builder, value, nvptx_type(cg, e->type), "");
}

// One shuffle of 32 bits. The clamp lets a source be any lane of the warp.
static LLVMValueRef shuffle32(struct nvptx *cg, enum op op, LLVMValueRef mask, LLVMValueRef value,
                              LLVMValueRef lane) {
  LLVMValueRef args[4] = {mask, value, lane, nvptx_const(cg, TYPE_I32, 31)};
  bool is_float = LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMFloatTypeKind;
  enum nvptx_op which = op == OP_SHFL_DOWN  ? is_float ? NVPTX_SHFL_DOWN_F32 : NVPTX_SHFL_DOWN_I32
                        : op == OP_SHFL_XOR ? is_float ? NVPTX_SHFL_XOR_F32 : NVPTX_SHFL_XOR_I32
                        : is_float          ? NVPTX_SHFL_IDX_F32
                                            : NVPTX_SHFL_IDX_I32;
  return nvptx_call(cg, which, args, 4);
}

// Narrower values widen in their register, wider ones move as two halves.
static LLVMValueRef shuffle(struct nvptx *cg, const struct ir_expr *e, LLVMValueRef *args) {
  LLVMBuilderRef builder = cg->builder;
  LLVMTypeRef i32 = LLVMInt32TypeInContext(cg->llvm), i64 = LLVMInt64TypeInContext(cg->llvm);
  LLVMTypeRef type = nvptx_type(cg, e->type);
  uint32_t bits = type_bits(e->type);
  if (bits == 32) return shuffle32(cg, e->op, args[0], args[1], args[2]);
  if (bits < 32) {
    LLVMValueRef wide = shuffle32(cg, e->op, args[0], LLVMBuildZExt(builder, args[1], i32, ""), args[2]);
    return LLVMBuildTrunc(builder, wide, type, "");
  }
  LLVMValueRef whole = LLVMBuildBitCast(builder, args[1], i64, ""), thirty_two = LLVMConstInt(i64, 32, false);
  LLVMValueRef low = LLVMBuildTrunc(builder, whole, i32, "");
  LLVMValueRef high = LLVMBuildTrunc(builder, LLVMBuildLShr(builder, whole, thirty_two, ""), i32, "");
  low = LLVMBuildZExt(builder, shuffle32(cg, e->op, args[0], low, args[2]), i64, "");
  high = LLVMBuildZExt(builder, shuffle32(cg, e->op, args[0], high, args[2]), i64, "");
  whole = LLVMBuildOr(builder, low, LLVMBuildShl(builder, high, thirty_two, ""), "");
  return LLVMBuildBitCast(builder, whole, type, "");
}

// The intrinsic takes the value before the mask.
static LLVMValueRef redux(struct nvptx *cg, const struct ir_expr *e, LLVMValueRef *args) {
  bool is_signed = e->type == TYPE_I32;
  LLVMValueRef swapped[2] = {args[1], args[0]};
  enum nvptx_op which = e->op == OP_REDUX_ADD   ? NVPTX_REDUX_ADD
                        : e->op == OP_REDUX_MIN ? is_signed ? NVPTX_REDUX_MIN : NVPTX_REDUX_UMIN
                        : e->op == OP_REDUX_MAX ? is_signed ? NVPTX_REDUX_MAX : NVPTX_REDUX_UMAX
                        : e->op == OP_REDUX_AND ? NVPTX_REDUX_AND
                        : e->op == OP_REDUX_OR  ? NVPTX_REDUX_OR
                                                : NVPTX_REDUX_XOR;
  return nvptx_call(cg, which, swapped, 2);
}

// --- Dispatch ----------------------------------------------------------------------------------------------

static LLVMValueRef variable(struct nvptx *cg, const struct ir_expr *e) {
  struct ir_var *var = e->var;
  if (var->kind == VAR_SIZE && var->constant) return nvptx_expr(cg, var->constant);
  if (var->mark == 0 || var->mark > cg->value_count) {
    nvptx_fail(cg, e->range, "variable '%s' has no value here", var->name);
    return LLVMGetUndef(nvptx_type(cg, e->type));
  }
  LLVMValueRef value = cg->values[var->mark - 1];
  return var->kind == VAR_MUTABLE ? LLVMBuildLoad2(cg->builder, nvptx_type(cg, var->type), value, "") : value;
}

static LLVMValueRef load(struct nvptx *cg, const struct ir_expr *e) {
  struct ir_expr *offset =
      codegen_offset(cg->context->arena, cg->entry, e->mem, e->args, e->count, e->op == OP_LOAD_FLAT);
  return nvptx_load(cg, e->mem, nvptx_offset(cg, offset), e->range);
}

// The load is repeated while what it gives is 0. Its place is computed once, in front.
static LLVMValueRef await(struct nvptx *cg, const struct ir_expr *e) {
  const struct ir_expr *again = e->args[1];
  LLVMValueRef first = nvptx_expr(cg, e->args[0]);
  LLVMValueRef offset = nvptx_offset(cg, codegen_offset(cg->context->arena, cg->entry, again->mem, again->args, again->count, again->op == OP_LOAD_FLAT));
  LLVMBasicBlockRef before = LLVMGetInsertBlock(cg->builder), head = LLVMAppendBasicBlockInContext(cg->llvm, cg->function, "await"),
                    body = LLVMAppendBasicBlockInContext(cg->llvm, cg->function, "again"), end = LLVMAppendBasicBlockInContext(cg->llvm, cg->function, "came");
  LLVMBuildBr(cg->builder, head);
  LLVMPositionBuilderAtEnd(cg->builder, head);
  LLVMValueRef word = LLVMBuildPhi(cg->builder, LLVMTypeOf(first), "word");
  LLVMBuildCondBr(cg->builder, LLVMBuildICmp(cg->builder, LLVMIntEQ, word, LLVMConstNull(LLVMTypeOf(word)), ""), body, end);
  LLVMPositionBuilderAtEnd(cg->builder, body);
  LLVMValueRef next = nvptx_load(cg, again->mem, offset, e->range);
  LLVMBasicBlockRef last = LLVMGetInsertBlock(cg->builder);
  LLVMBuildBr(cg->builder, head);
  LLVMAddIncoming(word, &first, &before, 1);
  LLVMAddIncoming(word, &next, &last, 1);
  LLVMPositionBuilderAtEnd(cg->builder, end);
  return word;
}

static LLVMValueRef build(struct nvptx *cg, const struct ir_expr *e) {
  switch ((int)e->op) {
  case OP_CONST:
    return type_is_float(e->type) ? const_float(cg, e->type, e->number)
                                  : nvptx_const(cg, e->type, e->integer);
  case OP_VAR: return variable(cg, e);
  case OP_LOAD:
  case OP_LOAD_FLAT: return load(cg, e);
  case OP_AWAIT: return await(cg, e);
  case OP_THREAD:
  case OP_BLOCK: return coordinate(cg, e);
  default: break;
  }
  if (e->count == 0 || e->count > 3) return NULL;
  LLVMValueRef args[3] = {NULL};
  for (uint32_t i = 0; i < e->count; i++) args[i] = nvptx_expr(cg, e->args[i]);
  nvptx_debug_at(cg, e->range);
  switch ((int)e->op) {
  case OP_SELECT: return LLVMBuildSelect(cg->builder, args[0], args[1], args[2], "");
  case OP_CAST: return nvptx_convert(cg, e->type, e->args[0]->type, args[0]);
  case OP_BITCAST:
    if (type_bits(e->type) != type_bits(e->args[0]->type)) return NULL;
    return LLVMBuildBitCast(cg->builder, args[0], nvptx_type(cg, e->type), "");
  case OP_ISNAN:
  case OP_ISINF: return predicate(cg, e, args[0]);
  case OP_SHFL_DOWN:
  case OP_SHFL_XOR:
  case OP_SHFL_IDX: return shuffle(cg, e, args);
  case OP_REDUX_ADD:
  case OP_REDUX_MIN:
  case OP_REDUX_MAX:
  case OP_REDUX_AND:
  case OP_REDUX_OR:
  case OP_REDUX_XOR: return redux(cg, e, args);
  default: break;
  }
  if (op_table[e->op].rule == RULE_COMPARE) return compare(cg, e, args[0], args[1]);
  if (op_table[e->op].rule != RULE_SAME) return NULL;
  if (type_is_float(e->type)) return float_op(cg, e, args);
  return integer_op(cg, e, args[0], args[1]);
}

LLVMValueRef nvptx_expr(struct nvptx *cg, const struct ir_expr *e) {
  if (e->count && cg->memo.capacity) {
    const struct nvptx_memo_slot *known = memo_find(&cg->memo, e);
    if (known->stamp == cg->memo.stamp) return known->value;
  }
  LLVMValueRef value = cg->failed || e->type == TYPE_INDEX ? NULL : build(cg, e);
  if (!value) {
    nvptx_fail(cg, e->range, "operation '%s' of type %s reached code generation", op_table[e->op].spelling,
               type_name(e->type));
    LLVMTypeRef type = e->type == TYPE_INDEX ? LLVMInt64TypeInContext(cg->llvm) : nvptx_type(cg, e->type);
    return LLVMGetUndef(type);
  }
  if (e->count) memo_put(cg, e, value);
  return value;
}

// An offset lies inside its object, so 32-bit sums and products on the way from its root do not overflow;
// saying so lets LLVM widen the address once and see that neighbouring accesses are neighbours. Anything else
// in it is the program's own arithmetic, which wraps.
LLVMValueRef nvptx_offset(struct nvptx *cg, const struct ir_expr *e) {
  if (e->type != TYPE_I32 || (e->op != OP_ADD && e->op != OP_SUB && e->op != OP_MUL))
    return nvptx_expr(cg, e);
  LLVMValueRef a = nvptx_offset(cg, e->args[0]), b = nvptx_offset(cg, e->args[1]);
  nvptx_debug_at(cg, e->range);
  if (e->op == OP_ADD) return LLVMBuildNSWAdd(cg->builder, a, b, "");
  if (e->op == OP_SUB) return LLVMBuildNSWSub(cg->builder, a, b, "");
  return LLVMBuildNSWMul(cg->builder, a, b, "");
}

// Conversions between types: to narrower integers they wrap, from float to integer they saturate with NaN to
// 0, to a float or storage type they round to nearest, ties to even, once.
#include "codegen/nvptx.h"

#include <string.h>

static LLVMValueRef call1(struct nvptx *cg, enum nvptx_op op, LLVMValueRef a) {
  return nvptx_call(cg, op, &a, 1);
}

static LLVMValueRef bits32(struct nvptx *cg, LLVMValueRef value) {
  return LLVMBuildBitCast(cg->builder, value, LLVMInt32TypeInContext(cg->llvm), "");
}

static LLVMValueRef from_f16(struct nvptx *cg, LLVMValueRef bits) {
  LLVMValueRef half = LLVMBuildBitCast(cg->builder, bits, LLVMHalfTypeInContext(cg->llvm), "");
  return LLVMBuildFPExt(cg->builder, half, LLVMFloatTypeInContext(cg->llvm), "");
}

static LLVMValueRef from_bf16(struct nvptx *cg, LLVMValueRef bits) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(cg->llvm);
  LLVMValueRef wide = LLVMBuildZExt(cg->builder, bits, i32, "");
  wide = LLVMBuildShl(cg->builder, wide, LLVMConstInt(i32, 16, false), "");
  return LLVMBuildBitCast(cg->builder, wide, LLVMFloatTypeInContext(cg->llvm), "");
}

static LLVMValueRef to_f16(struct nvptx *cg, LLVMValueRef value) {
  LLVMValueRef half = LLVMBuildFPTrunc(cg->builder, value, LLVMHalfTypeInContext(cg->llvm), "");
  return LLVMBuildBitCast(cg->builder, half, LLVMInt16TypeInContext(cg->llvm), "");
}

// f64 to f32 so that a second rounding has the result of one: toward zero, with the last bit set when
// anything was cut off (rounding to odd).
static LLVMValueRef round_to_odd(struct nvptx *cg, LLVMValueRef value) {
  LLVMBuilderRef builder = cg->builder;
  LLVMValueRef cut = call1(cg, NVPTX_D2F_TOWARD_ZERO, value);
  LLVMValueRef back = LLVMBuildFPExt(builder, cut, LLVMDoubleTypeInContext(cg->llvm), "");
  LLVMValueRef inexact = LLVMBuildFCmp(builder, LLVMRealONE, back, value, "");
  LLVMTypeRef i32 = LLVMInt32TypeInContext(cg->llvm);
  LLVMValueRef odd = LLVMBuildOr(builder, bits32(cg, cut), LLVMBuildZExt(builder, inexact, i32, ""), "");
  return LLVMBuildBitCast(builder, odd, LLVMFloatTypeInContext(cg->llvm), "");
}

// f32 to bf16. Machines before sm_80 add half of the last place, with the place's own bit to break ties.
static LLVMValueRef to_bf16(struct nvptx *cg, LLVMValueRef value) {
  LLVMBuilderRef builder = cg->builder;
  LLVMTypeRef i16 = LLVMInt16TypeInContext(cg->llvm), i32 = LLVMInt32TypeInContext(cg->llvm);
  if (cg->context->options->target->sm >= 80) {
    LLVMValueRef narrow = LLVMBuildFPTrunc(builder, value, LLVMBFloatTypeInContext(cg->llvm), "");
    return LLVMBuildBitCast(builder, narrow, i16, "");
  }
  LLVMValueRef bits = bits32(cg, value), sixteen = LLVMConstInt(i32, 16, false);
  LLVMValueRef last =
      LLVMBuildAnd(builder, LLVMBuildLShr(builder, bits, sixteen, ""), LLVMConstInt(i32, 1, false), "");
  LLVMValueRef sum =
      LLVMBuildAdd(builder, LLVMBuildAdd(builder, bits, LLVMConstInt(i32, 0x7fff, false), ""), last, "");
  LLVMValueRef is_nan = LLVMBuildFCmp(builder, LLVMRealUNO, value, value, "");
  LLVMValueRef rounded = LLVMBuildTrunc(builder, LLVMBuildLShr(builder, sum, sixteen, ""), i16, "");
  return LLVMBuildSelect(builder, is_nan, LLVMConstInt(i16, 0x7fff, false), rounded, "");
}

static LLVMValueRef to_storage(struct nvptx *cg, enum type to, enum type from, LLVMValueRef value) {
  if (to == TYPE_F16) return to_f16(cg, value);
  return to_bf16(cg, from == TYPE_F64 ? round_to_odd(cg, value) : value);
}

// The machine's conversion truncates and saturates; for NaN only the one from f32 to 32 bits gives 0. As assembly: of its own operation LLVM makes fptosi or fptoui, which
// have no value beyond the type, and folds u16(f32(x)) of a negative i16 to what x has as bits.
static LLVMValueRef float_to_integer(struct nvptx *cg, enum type to, enum type from, LLVMValueRef value) {
  static const char *const texts[2][2][2] = {// [from f64][to 64 bits][to unsigned]
                                             {{"cvt.rzi.s32.f32 $0, $1;", "cvt.rzi.u32.f32 $0, $1;"}, {"cvt.rzi.s64.f32 $0, $1;", "cvt.rzi.u64.f32 $0, $1;"}},
                                             {{"cvt.rzi.s32.f64 $0, $1;", "cvt.rzi.u32.f64 $0, $1;"}, {"cvt.rzi.s64.f64 $0, $1;", "cvt.rzi.u64.f64 $0, $1;"}}};
  static const char *const constraints[2][2] = {{"=r,f", "=l,f"}, {"=r,d", "=l,d"}};
  LLVMBuilderRef builder = cg->builder;
  bool is_double = from == TYPE_F64, is_wide = type_bits(to) == 64, is_unsigned = !type_is_signed(to);
  const char *text = texts[is_double][is_wide][is_unsigned], *registers = constraints[is_double][is_wide];
  LLVMTypeRef operand = LLVMTypeOf(value), function = LLVMFunctionType(LLVMIntTypeInContext(cg->llvm, is_wide ? 64 : 32), &operand, 1, false);
  LLVMValueRef code = LLVMGetInlineAsm(function, (char *)text, strlen(text), (char *)registers, strlen(registers), false, false, LLVMInlineAsmDialectATT, false);
  LLVMValueRef result = LLVMBuildCall2(builder, function, code, &value, 1, "");
  if (is_double || is_wide) {
    LLVMValueRef is_nan = LLVMBuildFCmp(builder, LLVMRealUNO, value, value, "");
    result = LLVMBuildSelect(builder, is_nan, LLVMConstNull(LLVMTypeOf(result)), result, "");
  }
  uint32_t bits = type_bits(to);
  if (bits >= 32) return result;
  int64_t highest = is_unsigned ? (INT64_C(1) << bits) - 1 : (INT64_C(1) << (bits - 1)) - 1;
  LLVMValueRef high[2] = {result, nvptx_const(cg, TYPE_I32, highest)};
  result = nvptx_call(cg, is_unsigned ? NVPTX_UMIN : NVPTX_SMIN, high, 2);
  if (!is_unsigned) {
    LLVMValueRef low[2] = {result, nvptx_const(cg, TYPE_I32, -highest - 1)};
    result = nvptx_call(cg, NVPTX_SMAX, low, 2);
  }
  return LLVMBuildTrunc(builder, result, nvptx_type(cg, to), "");
}

static LLVMValueRef from_float(struct nvptx *cg, enum type to, enum type from, LLVMValueRef value) {
  switch (type_class_of(to)) {
  case CLASS_BOOL:
    return LLVMBuildFCmp(cg->builder, LLVMRealUNE, value, LLVMConstNull(LLVMTypeOf(value)), "");
  case CLASS_SIGNED:
  case CLASS_UNSIGNED: return float_to_integer(cg, to, from, value);
  case CLASS_FLOAT:
    if (to == from) return value;
    return to == TYPE_F64 ? LLVMBuildFPExt(cg->builder, value, nvptx_type(cg, to), "")
                          : LLVMBuildFPTrunc(cg->builder, value, nvptx_type(cg, to), "");
  case CLASS_STORAGE: return to_storage(cg, to, from, value);
  case CLASS_MOVED:
  case CLASS_INDEX: return NULL;
  }
  return NULL;
}

static LLVMValueRef from_integer(struct nvptx *cg, enum type to, enum type from, LLVMValueRef value) {
  LLVMBuilderRef builder = cg->builder;
  LLVMTypeRef type = to == TYPE_INDEX ? NULL : nvptx_type(cg, to);
  bool is_signed = type_is_signed(from); // bool is not
  switch (type_class_of(to)) {
  case CLASS_BOOL: return LLVMBuildICmp(builder, LLVMIntNE, value, LLVMConstNull(LLVMTypeOf(value)), "");
  case CLASS_SIGNED:
  case CLASS_UNSIGNED: return LLVMBuildIntCast2(builder, value, type, is_signed, "");
  case CLASS_FLOAT:
    return is_signed ? LLVMBuildSIToFP(builder, value, type, "") : LLVMBuildUIToFP(builder, value, type, "");
  case CLASS_STORAGE: // through f32, as every storage type
    return to_storage(cg, to, TYPE_F32, from_integer(cg, TYPE_F32, from, value));
  case CLASS_MOVED:
  case CLASS_INDEX: return NULL;
  }
  return NULL;
}

LLVMValueRef nvptx_convert(struct nvptx *cg, enum type to, enum type from, LLVMValueRef value) {
  if (to == from) return value;
  switch (type_class_of(from)) {
  case CLASS_BOOL:
  case CLASS_SIGNED:
  case CLASS_UNSIGNED: return from_integer(cg, to, from, value);
  case CLASS_FLOAT: return from_float(cg, to, from, value);
  case CLASS_STORAGE:
    return from_float(cg, to, TYPE_F32, from == TYPE_F16 ? from_f16(cg, value) : from_bf16(cg, value));
  case CLASS_MOVED:
  case CLASS_INDEX: return NULL;
  }
  return NULL;
}

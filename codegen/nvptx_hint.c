// Accesses with cache hints, as inline assembly: LLVM has no way to say them. A load of what nothing writes has no side effect; a store has.
#include "codegen/nvptx.h"

#include <string.h>

enum { POLICY_SM = 80 };

// The L2 policies take sm_80; below, such accesses stay as they are.
static bool is_policy(enum cache_hint hint) { return hint == CACHE_EVICT_FIRST || hint == CACHE_EVICT_LAST; }

bool nvptx_has_hint(const struct nvptx *cg, const struct nvptx_object *object) {
  enum cache_hint hint = ir_hint_of(cg->entry, object->mem);
  return hint != CACHE_NORMAL && (!is_policy(hint) || cg->context->options->target->sm >= POLICY_SM);
}

bool nvptx_needs_ptx74(const struct ir_module *module) {
  for (uint32_t k = 0; k < module->kernels.count; k++) {
    const struct ir_kernel *kernel = list_at(&module->kernels, struct ir_kernel, k);
    for (uint32_t i = 0; i < kernel->entries.count; i++) {
      const struct ir_entry *entry = list_at(&kernel->entries, struct ir_entry, i);
      for (uint32_t h = 0; h < entry->hints.count; h++)
        if (list_at(&entry->hints, struct ir_hint, h)->hint != CACHE_STREAMING) return true;
    }
  }
  return false;
}

static LLVMValueRef call_asm(struct nvptx *cg, LLVMTypeRef result, const char *text, const char *constraints, LLVMValueRef *operands, uint32_t count,
                             bool has_effect) {
  LLVMTypeRef types[8];
  for (uint32_t i = 0; i < count; i++) types[i] = LLVMTypeOf(operands[i]);
  LLVMTypeRef type = LLVMFunctionType(result, types, count, false);
  LLVMValueRef code = LLVMGetInlineAsm(type, (char *)text, strlen(text), (char *)constraints, strlen(constraints), has_effect, false,
                                       LLVMInlineAsmDialectATT, false);
  return LLVMBuildCall2(cg->builder, type, code, operands, count, "");
}

// ptxas 13.0 adds the uniform base of shared memory in the instruction of an asynchronous copy, and puts it where the low word of the policy
// stands that other copies still read; an H200 then says 'illegal instruction'. A base of which each thread may have another keeps to plain registers: the top bit of the
// tensor's address, always 0, where the thread's number has that bit.
static LLVMValueRef make_zero(struct nvptx *cg, const struct nvptx_object *object) {
  LLVMValueRef base = LLVMBuildPtrToInt(cg->builder, object->pointer, LLVMInt64TypeInContext(cg->llvm), "");
  const char *text = "{ .reg .b32 low, high, thread; mov.u32 thread, %tid.x; mov.b64 {low, high}, $1; shr.u32 high, high, 31; and.b32 $0, high, thread; }";
  return call_asm(cg, LLVMInt32TypeInContext(cg->llvm), text, "=r,l", &base, 1, false);
}

void nvptx_make_policy(struct nvptx *cg, struct nvptx_object *object) {
  enum cache_hint hint = ir_hint_of(cg->entry, object->mem);
  if (!is_policy(hint) || !nvptx_has_hint(cg, object)) return;
  const char *text = hint == CACHE_EVICT_FIRST ? "createpolicy.fractional.L2::evict_first.b64 $0, 1.0;" : "createpolicy.fractional.L2::evict_last.b64 $0, 1.0;";
  object->policy = call_asm(cg, LLVMInt64TypeInContext(cg->llvm), text, "=l", NULL, 0, false);
  object->zero = make_zero(cg, object);
}

// The opcode's suffixes: ".cs", ".L1::no_allocate" or ".L2::cache_hint".
static const char *modifier(enum cache_hint hint) {
  return hint == CACHE_STREAMING ? ".cs" : hint == CACHE_NO_ALLOCATE ? ".L1::no_allocate" : ".L2::cache_hint";
}

struct shape {
  uint32_t words, bytes; // registers of 32 bits, bytes in memory
  const char *type;
};
static struct shape shape_of(uint32_t bytes) {
  uint32_t words = bytes < 4 ? 1 : bytes / 4;
  return (struct shape){words, bytes, bytes == 1 ? ".u8" : bytes == 2 ? ".u16" : words == 1 ? ".u32" : words == 2 ? ".v2.u32" : ".v4.u32"};
}

static LLVMValueRef address(struct nvptx *cg, LLVMValueRef place) {
  return LLVMBuildPtrToInt(cg->builder, place, LLVMInt64TypeInContext(cg->llvm), "");
}

LLVMValueRef nvptx_hinted_load(struct nvptx *cg, const struct nvptx_object *object, LLVMValueRef place, LLVMTypeRef type, uint32_t bytes) {
  struct shape shape = shape_of(bytes);
  LLVMTypeRef word = LLVMInt32TypeInContext(cg->llvm), words[4] = {word, word, word, word};
  static const char *const lists[] = {[1] = "$0", [2] = "{$0, $1}", [4] = "{$0, $1, $2, $3}"}, *const outs[] = {[1] = "=r", [2] = "=r,=r", [4] = "=r,=r,=r,=r"};
  enum cache_hint hint = ir_hint_of(cg->entry, object->mem);
  const char *kept = object->is_constant ? ".nc" : "", *mode = modifier(hint);
  const char *opcode = hint == CACHE_STREAMING ? arena_printf(cg->context->arena, "%s%s", mode, kept) : arena_printf(cg->context->arena, "%s%s", kept, mode);
  const char *text = object->policy
                         ? arena_printf(cg->context->arena, "ld.global%s%s %s, [$%u], $%u;", opcode, shape.type, lists[shape.words], shape.words, shape.words + 1)
                         : arena_printf(cg->context->arena, "ld.global%s%s %s, [$%u];", opcode, shape.type, lists[shape.words], shape.words);
  // LLVM's code generator takes assembly of registers alone for what may run anywhere, and moves it out of loops in front of the conditions that keep it inside its
  // tensor. An operand that might be a place in memory says that it reads: it is moved like a load.
  const char *constraints = arena_printf(cg->context->arena, "%s,l%s,i%s", outs[shape.words], object->policy ? ",l" : "", object->is_constant ? "" : ",~{memory}");
  LLVMValueRef operands[3] = {address(cg, place), object->policy};
  uint32_t count = object->policy ? 2 : 1;
  operands[count++] = nvptx_const(cg, TYPE_I32, 0);
  LLVMTypeRef result = shape.words == 1 ? word : LLVMStructTypeInContext(cg->llvm, words, shape.words, false);
  LLVMValueRef loaded = call_asm(cg, result, text, constraints, operands, count, !object->is_constant);
  if (bytes < 4) return LLVMBuildTrunc(cg->builder, loaded, type, "");
  if (shape.words > 1) {
    LLVMValueRef vector = LLVMGetUndef(LLVMVectorType(word, shape.words));
    for (uint32_t i = 0; i < shape.words; i++)
      vector = LLVMBuildInsertElement(cg->builder, vector, LLVMBuildExtractValue(cg->builder, loaded, i, ""), nvptx_const(cg, TYPE_I32, i), "");
    loaded = vector;
  }
  return LLVMBuildBitCast(cg->builder, loaded, type, "");
}

void nvptx_hinted_store(struct nvptx *cg, const struct nvptx_object *object, LLVMValueRef place, LLVMValueRef value, uint32_t bytes) {
  struct shape shape = shape_of(bytes);
  static const char *const lists[] = {[1] = "$1", [2] = "{$1, $2}", [4] = "{$1, $2, $3, $4}"}, *const ins[] = {[1] = "r", [2] = "r,r", [4] = "r,r,r,r"};
  LLVMTypeRef word = LLVMInt32TypeInContext(cg->llvm);
  LLVMValueRef operands[6] = {address(cg, place)};
  if (bytes < 4) {
    operands[1] = LLVMBuildZExt(cg->builder, value, word, "");
  } else if (shape.words == 1) {
    operands[1] = LLVMBuildBitCast(cg->builder, value, word, "");
  } else {
    LLVMValueRef vector = LLVMBuildBitCast(cg->builder, value, LLVMVectorType(word, shape.words), "");
    for (uint32_t i = 0; i < shape.words; i++) operands[1 + i] = LLVMBuildExtractElement(cg->builder, vector, nvptx_const(cg, TYPE_I32, i), "");
  }
  if (object->policy) operands[1 + shape.words] = object->policy;
  const char *mode = modifier(ir_hint_of(cg->entry, object->mem));
  const char *text = object->policy ? arena_printf(cg->context->arena, "st.global%s%s [$0], %s, $%u;", mode, shape.type, lists[shape.words], shape.words + 1)
                                    : arena_printf(cg->context->arena, "st.global%s%s [$0], %s;", mode, shape.type, lists[shape.words]);
  const char *constraints = arena_printf(cg->context->arena, "l,%s%s,~{memory}", ins[shape.words], object->policy ? ",l" : "");
  call_asm(cg, LLVMVoidTypeInContext(cg->llvm), text, constraints, operands, 1 + shape.words + (object->policy ? 1 : 0), true);
}

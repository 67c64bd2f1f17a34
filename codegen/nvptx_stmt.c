// Statements, loops and memory accesses of an entry.
#include "codegen/program.h"
#include "codegen/nvptx.h"

#include <string.h>

void nvptx_define(struct nvptx *cg, struct ir_var *var, LLVMValueRef value) {
  if (cg->value_count == cg->value_capacity) {
    uint32_t capacity = cg->value_capacity ? 2 * cg->value_capacity : 64;
    LLVMValueRef *values = arena_array(cg->context->arena, LLVMValueRef, capacity);
    if (cg->value_count) memcpy(values, cg->values, cg->value_count * sizeof *values);
    cg->values = values;
    cg->value_capacity = capacity;
  }
  cg->values[cg->value_count++] = value;
  var->mark = cg->value_count;
}

// Slots stand at the start of the function, where LLVM turns them into registers.
LLVMValueRef nvptx_slot(struct nvptx *cg, LLVMTypeRef type, const char *name) {
  LLVMBasicBlockRef here = LLVMGetInsertBlock(cg->builder);
  LLVMMetadataRef place = LLVMGetCurrentDebugLocation2(cg->builder);
  LLVMPositionBuilderAtEnd(cg->builder, cg->first_block);
  LLVMSetCurrentDebugLocation2(cg->builder, NULL);
  LLVMValueRef slot = LLVMBuildAlloca(cg->builder, type, name);
  LLVMPositionBuilderAtEnd(cg->builder, here);
  LLVMSetCurrentDebugLocation2(cg->builder, place);
  return slot;
}

static const struct nvptx_object *find_object(struct nvptx *cg, const struct ir_mem *mem,
                                              struct range range) {
  for (uint32_t i = 0; i < cg->objects.count; i++) {
    const struct nvptx_object *object = list_at(&cg->objects, struct nvptx_object, i);
    if (object->mem == mem) return object;
  }
  nvptx_fail(cg, range, "memory object '%s' is not among those of entry '%s'", mem->name, cg->entry->name);
  return NULL;
}

static LLVMValueRef element(struct nvptx *cg, const struct nvptx_object *object, LLVMValueRef offset) {
  LLVMTypeRef type = nvptx_memory_type(cg, object->mem->type);
  return LLVMBuildInBoundsGEP2(cg->builder, type, object->pointer, &offset, 1, "");
}

// Nothing writes what this load reads: ld.global.nc.
static void set_invariant(struct nvptx *cg, LLVMValueRef load) {
  LLVMValueRef none = LLVMMetadataAsValue(cg->llvm, LLVMMDNodeInContext2(cg->llvm, NULL, 0));
  LLVMSetMetadata(load, LLVMGetMDKindIDInContext(cg->llvm, "invariant.load", strlen("invariant.load")), none);
}

LLVMValueRef nvptx_load(struct nvptx *cg, const struct ir_mem *mem, LLVMValueRef offset, struct range range) {
  const struct nvptx_object *object = find_object(cg, mem, range);
  if (!object) return LLVMGetUndef(nvptx_type(cg, mem->type));
  LLVMValueRef value;
  if (nvptx_has_hint(cg, object)) {
    value = nvptx_hinted_load(cg, object, element(cg, object, offset), nvptx_memory_type(cg, mem->type), type_bytes(mem->type));
  } else {
    value = LLVMBuildLoad2(cg->builder, nvptx_memory_type(cg, mem->type), element(cg, object, offset), "");
    LLVMSetAlignment(value, type_bytes(mem->type));
    LLVMSetVolatile(value, mem->is_polled);
    if (object->is_constant) set_invariant(cg, value);
  }
  if (mem->type == TYPE_BOOL)
    value = LLVMBuildICmp(cg->builder, LLVMIntNE, value, LLVMConstNull(LLVMTypeOf(value)), "");
  return value;
}

void nvptx_store(struct nvptx *cg, const struct ir_mem *mem, LLVMValueRef offset, LLVMValueRef value,
                 struct range range) {
  const struct nvptx_object *object = find_object(cg, mem, range);
  if (!object) return;
  LLVMTypeRef type = nvptx_memory_type(cg, mem->type);
  if (mem->type == TYPE_BOOL) value = LLVMBuildZExt(cg->builder, value, type, "");
  if (LLVMTypeOf(value) != type) {
    nvptx_fail(cg, range, "the value stored to '%s' is not of its type", mem->name);
    return;
  }
  if (nvptx_has_hint(cg, object)) {
    nvptx_hinted_store(cg, object, element(cg, object, offset), value, type_bytes(mem->type));
    return;
  }
  LLVMValueRef store = LLVMBuildStore(cg->builder, value, element(cg, object, offset));
  LLVMSetAlignment(store, type_bytes(mem->type));
  LLVMSetVolatile(store, mem->is_polled);
}

// --- Wide accesses: several neighbours in one, aligned to its size -----------------------------------------

// What a wide access moves: elements of 32 bits and more as they are; narrower ones packed in words, since
// LLVM splits a vector of many bytes.
struct pack {
  LLVMTypeRef type; // of the whole
  uint32_t words;   // 0: elements stand for themselves
  uint32_t word_bits, element_bits;
};

static struct pack pack_of(struct nvptx *cg, const struct ir_mem *mem, uint32_t count) {
  struct pack pack = {.element_bits = type_bits(mem->type)};
  uint32_t bits = count * pack.element_bits;
  if (pack.element_bits >= 32) {
    LLVMTypeRef element = nvptx_memory_type(cg, mem->type);
    pack.type = count == 1 ? element : LLVMVectorType(element, count);
    return pack;
  }
  pack.word_bits = bits < 32 ? bits : 32;
  pack.words = bits / pack.word_bits;
  pack.type = LLVMIntTypeInContext(cg->llvm, pack.word_bits);
  if (pack.words > 1) pack.type = LLVMVectorType(pack.type, pack.words);
  return pack;
}

static LLVMValueRef word_at(struct nvptx *cg, const struct pack *pack, LLVMValueRef whole, uint32_t which) {
  return pack->words > 1 ? LLVMBuildExtractElement(cg->builder, whole, nvptx_const(cg, TYPE_I32, which), "")
                         : whole;
}

// Element `i` of what was loaded.
static LLVMValueRef unpack(struct nvptx *cg, const struct pack *pack, LLVMValueRef whole, uint32_t i) {
  if (!pack->words)
    return LLVMGetTypeKind(pack->type) == LLVMVectorTypeKind
               ? LLVMBuildExtractElement(cg->builder, whole, nvptx_const(cg, TYPE_I32, i), "")
               : whole;
  uint32_t per_word = pack->word_bits / pack->element_bits;
  LLVMValueRef word = word_at(cg, pack, whole, i / per_word);
  LLVMValueRef shift = LLVMConstInt(LLVMTypeOf(word), i % per_word * pack->element_bits, false);
  LLVMTypeRef type = LLVMIntTypeInContext(cg->llvm, pack->element_bits);
  return LLVMBuildTrunc(cg->builder, LLVMBuildLShr(cg->builder, word, shift, ""), type, "");
}

// What is to be stored, from its elements.
static LLVMValueRef pack_up(struct nvptx *cg, const struct pack *pack, LLVMValueRef *elements,
                            uint32_t count) {
  if (!pack->words && LLVMGetTypeKind(pack->type) != LLVMVectorTypeKind) return elements[0];
  uint32_t per_word = pack->words ? pack->word_bits / pack->element_bits : 1;
  LLVMValueRef whole = LLVMGetUndef(pack->type);
  for (uint32_t i = 0; i < count; i += per_word) {
    LLVMValueRef word = elements[i];
    if (pack->words)
      word = LLVMBuildZExt(cg->builder, word, LLVMIntTypeInContext(cg->llvm, pack->word_bits), "");
    for (uint32_t k = 1; k < per_word; k++) {
      LLVMValueRef part = LLVMBuildZExt(cg->builder, elements[i + k], LLVMTypeOf(word), "");
      LLVMValueRef shift = LLVMConstInt(LLVMTypeOf(word), k * pack->element_bits, false);
      word = LLVMBuildOr(cg->builder, word, LLVMBuildShl(cg->builder, part, shift, ""), "");
    }
    if (pack->words == 1) return word;
    whole = LLVMBuildInsertElement(cg->builder, whole, word, nvptx_const(cg, TYPE_I32, i / per_word), "");
  }
  return whole;
}

static LLVMValueRef wide_place(struct nvptx *cg, const struct nvptx_object *object,
                               const struct ir_stmt *stmt) {
  struct ir_expr **indices = (struct ir_expr **)stmt->indices.at;
  const struct ir_expr *offset =
      codegen_offset(cg->context->arena, cg->entry, stmt->mem, indices, stmt->indices.count, stmt->is_flat);
  return element(cg, object, nvptx_offset(cg, offset));
}

static void build_load_wide(struct nvptx *cg, const struct ir_stmt *stmt) {
  const struct ir_mem *mem = stmt->mem;
  const struct nvptx_object *object = find_object(cg, mem, stmt->range);
  if (!object) return;
  uint32_t count = stmt->results.count;
  struct pack pack = pack_of(cg, mem, count);
  LLVMValueRef wide;
  if (nvptx_has_hint(cg, object)) {
    wide = nvptx_hinted_load(cg, object, wide_place(cg, object, stmt), pack.type, count * type_bytes(mem->type));
  } else {
    wide = LLVMBuildLoad2(cg->builder, pack.type, wide_place(cg, object, stmt), "");
    LLVMSetAlignment(wide, count * type_bytes(mem->type));
    LLVMSetVolatile(wide, mem->is_polled);
    if (object->is_constant) set_invariant(cg, wide);
  }
  for (uint32_t i = 0; i < count; i++) {
    LLVMValueRef value = unpack(cg, &pack, wide, i);
    if (mem->type == TYPE_BOOL)
      value = LLVMBuildICmp(cg->builder, LLVMIntNE, value, LLVMConstNull(LLVMTypeOf(value)), "");
    nvptx_define(cg, list_at(&stmt->results, struct ir_var, i), value);
  }
}

static void build_store_wide(struct nvptx *cg, const struct ir_stmt *stmt) {
  const struct ir_mem *mem = stmt->mem;
  const struct nvptx_object *object = find_object(cg, mem, stmt->range);
  if (!object) return;
  uint32_t count = stmt->inputs.count;
  LLVMValueRef *elements = arena_array(cg->context->arena, LLVMValueRef, count);
  for (uint32_t i = 0; i < count; i++) {
    elements[i] = nvptx_expr(cg, list_at(&stmt->inputs, struct ir_expr, i));
    if (mem->type == TYPE_BOOL)
      elements[i] = LLVMBuildZExt(cg->builder, elements[i], nvptx_memory_type(cg, mem->type), "");
  }
  struct pack pack = pack_of(cg, mem, count);
  nvptx_debug_at(cg, stmt->range);
  LLVMValueRef whole = pack_up(cg, &pack, elements, count);
  if (nvptx_has_hint(cg, object)) {
    nvptx_hinted_store(cg, object, wide_place(cg, object, stmt), whole, count * type_bytes(mem->type));
    return;
  }
  LLVMValueRef store = LLVMBuildStore(cg->builder, whole, wide_place(cg, object, stmt));
  LLVMSetAlignment(store, count * type_bytes(mem->type));
  LLVMSetVolatile(store, mem->is_polled);
}

static LLVMBasicBlockRef new_block(struct nvptx *cg, const char *name) {
  return LLVMAppendBasicBlockInContext(cg->llvm, cg->function, name);
}

// Hangs the unrolling that the program asks for on a loop's backward branch. A loop's identity is a node that
// refers to itself.
static void add_unroll(struct nvptx *cg, LLVMValueRef branch, uint32_t unroll) {
  if (unroll == 0) return;
  LLVMMetadataRef parts[2];
  const char *name = unroll == 1                                       ? "llvm.loop.unroll.disable"
                     : unroll == UINT32_MAX || unroll == UNROLL_VECTOR ? "llvm.loop.unroll.full"
                                                                       : "llvm.loop.unroll.count";
  unsigned count = 0;
  parts[count++] = LLVMMDStringInContext2(cg->llvm, name, strlen(name));
  if (unroll > 1 && unroll < UNROLL_VECTOR)
    parts[count++] = LLVMValueAsMetadata(LLVMConstInt(LLVMInt32TypeInContext(cg->llvm), unroll, false));
  LLVMMetadataRef self = LLVMTemporaryMDNode(cg->llvm, NULL, 0);
  LLVMMetadataRef loop[2] = {self, LLVMMDNodeInContext2(cg->llvm, parts, count)};
  LLVMMetadataRef node = LLVMMDNodeInContext2(cg->llvm, loop, 2);
  LLVMMetadataReplaceAllUsesWith(self, node);
  LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(cg->llvm, "llvm.loop", strlen("llvm.loop")),
                  LLVMMetadataAsValue(cg->llvm, node));
}

static void build_for(struct nvptx *cg, const struct ir_stmt *stmt) {
  LLVMValueRef lo = nvptx_expr(cg, stmt->lo), hi = nvptx_expr(cg, stmt->hi);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(cg->builder);
  LLVMBasicBlockRef head = new_block(cg, "head"), body = new_block(cg, "loop"), end = new_block(cg, "end");
  LLVMBuildBr(cg->builder, head);
  LLVMPositionBuilderAtEnd(cg->builder, head);
  LLVMValueRef counter = LLVMBuildPhi(cg->builder, LLVMTypeOf(lo), stmt->var->name);
  bool is_signed = type_is_signed(stmt->var->type);
  LLVMValueRef more = LLVMBuildICmp(cg->builder, is_signed ? LLVMIntSLT : LLVMIntULT, counter, hi, "");
  LLVMBuildCondBr(cg->builder, more, body, end);
  LLVMPositionBuilderAtEnd(cg->builder, body);
  nvptx_define(cg, stmt->var, counter);
  nvptx_block(cg, &stmt->body);
  // the counter is below hi, so the next one exists
  LLVMValueRef one = LLVMConstInt(LLVMTypeOf(lo), 1, false);
  nvptx_debug_at(cg, stmt->range);
  LLVMValueRef next = is_signed ? LLVMBuildNSWAdd(cg->builder, counter, one, "")
                                : LLVMBuildNUWAdd(cg->builder, counter, one, "");
  LLVMBasicBlockRef last = LLVMGetInsertBlock(cg->builder);
  add_unroll(cg, LLVMBuildBr(cg->builder, head), stmt->unroll);
  LLVMAddIncoming(counter, &lo, &before, 1);
  LLVMAddIncoming(counter, &next, &last, 1);
  LLVMPositionBuilderAtEnd(cg->builder, end);
}

static void build_if(struct nvptx *cg, const struct ir_stmt *stmt) {
  LLVMValueRef condition = nvptx_expr(cg, stmt->value);
  LLVMBasicBlockRef yes = new_block(cg, "then"), end = new_block(cg, "end");
  LLVMBasicBlockRef no = stmt->otherwise.count ? new_block(cg, "else") : end;
  LLVMBuildCondBr(cg->builder, condition, yes, no);
  LLVMPositionBuilderAtEnd(cg->builder, yes);
  nvptx_block(cg, &stmt->body);
  LLVMBuildBr(cg->builder, end);
  if (stmt->otherwise.count) {
    LLVMPositionBuilderAtEnd(cg->builder, no);
    nvptx_block(cg, &stmt->otherwise);
    LLVMBuildBr(cg->builder, end);
  }
  LLVMPositionBuilderAtEnd(cg->builder, end);
}

static void build_barrier(struct nvptx *cg) {
  LLVMValueRef name = nvptx_const(cg, TYPE_I32, 0);
  nvptx_call(cg, NVPTX_BARRIER, &name, 1);
}

static void build_store(struct nvptx *cg, const struct ir_stmt *stmt) {
  LLVMValueRef value = nvptx_expr(cg, stmt->value);
  nvptx_debug_at(cg, stmt->range);
  const struct ir_expr *offset =
      codegen_offset(cg->context->arena, cg->entry, stmt->mem, (struct ir_expr **)stmt->indices.at,
                     stmt->indices.count, stmt->is_flat);
  nvptx_store(cg, stmt->mem, nvptx_offset(cg, offset), value, stmt->range);
}

// --- Fences, atomics and asynchronous copies: inline assembly, since LLVM 19 aborts on fences, prints every order as relaxed and gives copies no hints ---

static LLVMValueRef build_asm(struct nvptx *cg, LLVMTypeRef result, const char *text, const char *constraints,
                              LLVMValueRef *operands, uint32_t count) {
  LLVMTypeRef types[3];
  for (uint32_t i = 0; i < count; i++) types[i] = LLVMTypeOf(operands[i]);
  LLVMTypeRef type = LLVMFunctionType(result, types, count, false);
  LLVMValueRef code = LLVMGetInlineAsm(type, (char *)text, strlen(text), (char *)constraints, strlen(constraints), true,
                                       false, LLVMInlineAsmDialectATT, false);
  return LLVMBuildCall2(cg->builder, type, code, operands, count, "");
}

static void build_order(struct nvptx *cg, const char *text) {
  build_asm(cg, LLVMVoidTypeInContext(cg->llvm), text, "~{memory}", NULL, 0);
}

// The suffix of an atomic's type: bits for logic, signs where they matter.
static const char *atomic_type(const struct ir_stmt *stmt) {
  enum type type = stmt->mem->type;
  bool is_wide = type_bits(type) == 64, is_logic = stmt->atomic == ATOMIC_AND || stmt->atomic == ATOMIC_OR || stmt->atomic == ATOMIC_XOR;
  bool is_signed = type_is_signed(type) && (stmt->atomic == ATOMIC_MIN || stmt->atomic == ATOMIC_MAX);
  if (type_is_float(type)) return is_wide ? "f64" : "f32";
  if (is_logic) return is_wide ? "b64" : "b32";
  return is_signed ? (is_wide ? "s64" : "s32") : is_wide ? "u64" : "u32";
}

static void build_atomic(struct nvptx *cg, const struct ir_stmt *stmt) {
  static const char *const names[] = {
      [ATOMIC_ADD] = "add", [ATOMIC_MIN] = "min", [ATOMIC_MAX] = "max", [ATOMIC_AND] = "and",
      [ATOMIC_OR] = "or",   [ATOMIC_XOR] = "xor", [ATOMIC_INC] = "inc",
  };
  const struct nvptx_object *object = find_object(cg, stmt->mem, stmt->range);
  if (!object) return;
  enum type type = stmt->mem->type;
  char letter = type_is_float(type) ? (type_bits(type) == 64 ? 'd' : 'f') : type_bits(type) == 64 ? 'l' : 'r';
  LLVMValueRef value = nvptx_expr(cg, stmt->value);
  LLVMValueRef operands[2] = {LLVMBuildPtrToInt(cg->builder, wide_place(cg, object, stmt), LLVMInt64TypeInContext(cg->llvm), ""), value};
  bool has_result = stmt->results.count;
  const char *text = arena_printf(cg->context->arena, "%s.relaxed.gpu.global.%s.%s %s;", has_result ? "atom" : "red", names[stmt->atomic],
                                  atomic_type(stmt), has_result ? "$0, [$1], $2" : "[$0], $1");
  const char *constraints = has_result ? arena_printf(cg->context->arena, "=%c,l,%c,~{memory}", letter, letter)
                                       : arena_printf(cg->context->arena, "l,%c,~{memory}", letter);
  LLVMValueRef old = build_asm(cg, has_result ? nvptx_type(cg, type) : LLVMVoidTypeInContext(cg->llvm), text, constraints, operands, 2);
  if (has_result) nvptx_define(cg, stmt->results.at[0], old);
}

// The address in shared memory, of 32 bits.
static LLVMValueRef copy_target(struct nvptx *cg, const struct nvptx_object *to, const struct nvptx_object *from, const struct ir_stmt *stmt) {
  LLVMTypeRef word = LLVMInt32TypeInContext(cg->llvm);
  if (!from->zero) return LLVMBuildPtrToInt(cg->builder, wide_place(cg, to, stmt), word, "");
  const struct ir_expr *offset = codegen_offset(cg->context->arena, cg->entry, stmt->mem, (struct ir_expr **)stmt->indices.at, stmt->indices.count, stmt->is_flat);
  LLVMValueRef base = LLVMBuildOr(cg->builder, LLVMBuildPtrToInt(cg->builder, to->pointer, word, ""), from->zero, ""); // a sum would be taken apart
  LLVMValueRef elements = LLVMBuildIntCast2(cg->builder, nvptx_offset(cg, offset), word, false, "");
  return LLVMBuildAdd(cg->builder, base, LLVMBuildMul(cg->builder, elements, LLVMConstInt(word, type_bytes(stmt->mem->type), false), ""), "");
}

// 16 bytes go past the first level of caches, which shared memory makes needless.
static void build_copy(struct nvptx *cg, const struct ir_stmt *stmt) {
  const struct ir_expr *source = stmt->value;
  const struct nvptx_object *to = find_object(cg, stmt->mem, stmt->range), *from = find_object(cg, source->mem, source->range);
  if (!to || !from) return;
  const struct ir_expr *offset = codegen_offset(cg->context->arena, cg->entry, source->mem, source->args, source->count, source->op == OP_LOAD_FLAT);
  LLVMValueRef place = element(cg, from, nvptx_offset(cg, offset));
  uint32_t bytes = stmt->count * type_bytes(stmt->mem->type);
  LLVMValueRef operands[3] = {copy_target(cg, to, from, stmt), LLVMBuildPtrToInt(cg->builder, place, LLVMInt64TypeInContext(cg->llvm), ""), from->policy};
  bool has_policy = from->policy != NULL;
  const char *text = arena_printf(cg->context->arena, "cp.async.%s.shared.global%s [$0], [$1], %u%s;", bytes == 16 ? "cg" : "ca", has_policy ? ".L2::cache_hint" : "", bytes,
                                  has_policy ? ", $2" : "");
  build_asm(cg, LLVMVoidTypeInContext(cg->llvm), text, has_policy ? "r,l,l,~{memory}" : "r,l,~{memory}", operands, has_policy ? 3 : 2);
}

static void build_copy_wait(struct nvptx *cg, uint32_t groups) {
  build_order(cg, groups ? arena_printf(cg->context->arena, "cp.async.wait_group %u;", groups) : "cp.async.wait_all;");
}

static void build_stmt(struct nvptx *cg, const struct ir_stmt *stmt) {
  nvptx_memo_clear(cg);
  nvptx_debug_at(cg, stmt->range);
  switch (stmt->kind) {
  case IR_LET: nvptx_define(cg, stmt->var, nvptx_expr(cg, stmt->value)); break;
  case IR_VAR: {
    LLVMValueRef value = nvptx_expr(cg, stmt->value);
    LLVMValueRef slot = nvptx_slot(cg, nvptx_type(cg, stmt->var->type), stmt->var->name);
    LLVMBuildStore(cg->builder, value, slot);
    nvptx_define(cg, stmt->var, slot);
    break;
  }
  case IR_SET: {
    LLVMValueRef value = nvptx_expr(cg, stmt->value);
    if (stmt->var->mark == 0)
      nvptx_fail(cg, stmt->range, "variable '%s' is set before it is declared", stmt->var->name);
    else
      LLVMBuildStore(cg->builder, value, cg->values[stmt->var->mark - 1]);
    break;
  }
  case IR_STORE: build_store(cg, stmt); break;
  case IR_LOAD_WIDE: build_load_wide(cg, stmt); break;
  case IR_STORE_WIDE: build_store_wide(cg, stmt); break;
  case IR_ATOMIC: build_atomic(cg, stmt); break;
  case IR_COPY: build_copy(cg, stmt); break;
  case IR_COPY_COMMIT: build_order(cg, "cp.async.commit_group;"); break;
  case IR_COPY_WAIT: build_copy_wait(cg, stmt->count); break;
  case IR_FENCE: build_order(cg, "fence.acq_rel.gpu;"); break;
  case IR_GRID_WAIT: build_order(cg, "griddepcontrol.wait;"); break;
  case IR_GRID_READY: build_order(cg, "griddepcontrol.launch_dependents;"); break;
  case IR_FOR: build_for(cg, stmt); break;
  case IR_IF: build_if(cg, stmt); break;
  case IR_BARRIER: build_barrier(cg); break;
  case IR_SYNCWARP: {
    LLVMValueRef mask = nvptx_expr(cg, stmt->value);
    nvptx_call(cg, NVPTX_SYNCWARP, &mask, 1);
    break;
  }
  case IR_ALLREDUCE: nvptx_fail(cg, stmt->range, "allreduce reached code generation"); break;
  }
}

void nvptx_block(struct nvptx *cg, const struct list *block) {
  for (uint32_t i = 0; i < block->count && !cg->failed; i++)
    build_stmt(cg, list_at(block, struct ir_stmt, i));
}

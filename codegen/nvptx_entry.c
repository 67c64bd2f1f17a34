// An entry as an LLVM function: its signature, what the driver must know of it, and its memory objects.
#include "codegen/program.h"
#include "codegen/arguments.h"
#include "codegen/nvptx.h"

#include <string.h>

enum { KERNEL_CONVENTION = 71 /* ptx_kernel */, SHARED = 3, GLOBAL = 1 };

static unsigned attribute_kind(const char *name) {
  return LLVMGetEnumAttributeKindForName(name, strlen(name));
}

// Adds a parameter attribute that LLVM 19 and 22 may or may not both know.
static void add_attribute(struct nvptx *cg, unsigned place, const char *name, uint64_t value) {
  unsigned kind = attribute_kind(name);
  if (kind) LLVMAddAttributeAtIndex(cg->function, place, LLVMCreateEnumAttribute(cg->llvm, kind, value));
}

static void add_text_attribute(struct nvptx *cg, const char *name, const char *value) {
  LLVMAttributeRef attribute =
      LLVMCreateStringAttribute(cg->llvm, name, (unsigned)strlen(name), value, (unsigned)strlen(value));
  LLVMAddAttributeAtIndex(cg->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, attribute);
}

static void annotate(struct nvptx *cg, const char *key, uint32_t value) {
  LLVMMetadataRef parts[3] = {
      LLVMValueAsMetadata(cg->function), LLVMMDStringInContext2(cg->llvm, key, strlen(key)),
      LLVMValueAsMetadata(LLVMConstInt(LLVMInt32TypeInContext(cg->llvm), value, false))};
  LLVMMetadataRef node = LLVMMDNodeInContext2(cg->llvm, parts, 3);
  LLVMAddNamedMetadataOperand(cg->module, "nvvm.annotations", LLVMMetadataAsValue(cg->llvm, node));
}

// The block's exact size and one block a multiprocessor at least: with the size alone ptxas spares registers
// for full occupancy and serialises the loads. LLVM 19 reads the annotations, 22 the attributes.
static void add_bounds(struct nvptx *cg) {
  const uint32_t *block = cg->entry->block;
  annotate(cg, "kernel", 1);
  annotate(cg, "reqntidx", block[0]);
  annotate(cg, "reqntidy", block[1]);
  annotate(cg, "reqntidz", block[2]);
  annotate(cg, "minctasm", codegen_blocks(cg->entry));
  add_text_attribute(cg, "nvvm.reqntid",
                     arena_printf(cg->context->arena, "%u,%u,%u", block[0], block[1], block[2]));
  add_text_attribute(cg, "nvvm.minctasm", arena_printf(cg->context->arena, "%u", codegen_blocks(cg->entry)));
  add_attribute(cg, (unsigned)LLVMAttributeFunctionIndex, "nounwind", 0);
}

static LLVMTypeRef argument_type(struct nvptx *cg, const struct codegen_argument *argument) {
  if (argument->kind == ARGUMENT_TENSOR) return LLVMPointerTypeInContext(cg->llvm, GLOBAL);
  return nvptx_memory_type(cg, argument->type);
}

static void add_object(struct nvptx *cg, const struct ir_mem *mem, LLVMValueRef pointer, bool is_constant) {
  struct nvptx_object *object = arena_new(cg->context->arena, struct nvptx_object);
  object->mem = mem;
  object->pointer = pointer;
  object->is_constant = is_constant;
  nvptx_make_policy(cg, object);
  list_push(cg->context->arena, &cg->objects, object);
}

static void define_argument(struct nvptx *cg, const struct codegen_argument *argument, unsigned place) {
  LLVMValueRef value = LLVMGetParam(cg->function, place);
  if (argument->kind != ARGUMENT_TENSOR) {
    LLVMSetValueName2(value, argument->var->name, strlen(argument->var->name));
    if (argument->type == TYPE_BOOL)
      value = LLVMBuildICmp(cg->builder, LLVMIntNE, value, LLVMConstNull(LLVMTypeOf(value)), "");
    nvptx_define(cg, argument->var, value);
    return;
  }
  LLVMSetValueName2(value, argument->mem->name, strlen(argument->mem->name));
  if (!argument->is_shared) { // else LLVM would move its loads across fences
    add_attribute(cg, place + 1, "noalias", 0);
    add_attribute(cg, place + 1, "nocapture", 0);
  }
  add_attribute(cg, place + 1, "align", codegen_alignment(argument->mem));
  if (!argument->is_written) add_attribute(cg, place + 1, "readonly", 0);
  add_object(cg, argument->mem, value, !argument->is_written);
}

static void define_memory(struct nvptx *cg, const struct ir_mem *mem) {
  uint64_t count = codegen_element_count(mem);
  LLVMTypeRef type = LLVMArrayType2(nvptx_memory_type(cg, mem->type), count);
  if (mem->space == SPACE_LOCAL) {
    LLVMValueRef slot = nvptx_slot(cg, type, mem->name);
    LLVMSetAlignment(slot, codegen_alignment(mem));
    add_object(cg, mem, slot, false);
    return;
  }
  const char *name = arena_printf(cg->context->arena, "%s_%s", cg->entry->name, mem->name);
  if (mem->is_dynamic) type = LLVMArrayType2(nvptx_memory_type(cg, mem->type), 0);
  LLVMValueRef array = LLVMAddGlobalInAddressSpace(cg->module, type, name, SHARED);
  if (!mem->is_dynamic) {
    LLVMSetLinkage(array, LLVMInternalLinkage);
    LLVMSetInitializer(array, LLVMGetUndef(type));
  }
  LLVMSetAlignment(array, codegen_alignment(mem));
  add_object(cg, mem, array, false);
}

bool nvptx_entry(struct nvptx *cg, struct ir_kernel *kernel, struct ir_entry *entry) {
  struct arena *arena = cg->context->arena;
  cg->kernel = kernel;
  cg->entry = entry;
  struct list arguments = {0};
  codegen_arguments(arena, kernel, entry, &arguments);
  LLVMTypeRef *types = arena_array(arena, LLVMTypeRef, arguments.count + 1);
  for (uint32_t i = 0; i < arguments.count; i++)
    types[i] = argument_type(cg, list_at(&arguments, struct codegen_argument, i));
  LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(cg->llvm), types, arguments.count, false);
  cg->function = LLVMAddFunction(cg->module, entry->name, type);
  LLVMSetFunctionCallConv(cg->function, KERNEL_CONVENTION);
  add_bounds(cg);
  nvptx_debug_entry(cg);

  cg->first_block = LLVMAppendBasicBlockInContext(cg->llvm, cg->function, "entry");
  cg->last_slot = NULL;
  cg->objects.count = 0;
  cg->value_count = 0;
  codegen_clear_marks(&entry->body);
  LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(cg->llvm, cg->function, "body");
  LLVMPositionBuilderAtEnd(cg->builder, body);
  for (uint32_t i = 0; i < arguments.count; i++)
    define_argument(cg, list_at(&arguments, struct codegen_argument, i), i);
  for (uint32_t i = 0; i < entry->memory.count; i++)
    if (!list_at(&entry->memory, struct ir_mem, i)->workspace)
      define_memory(cg, list_at(&entry->memory, struct ir_mem, i));
  nvptx_block(cg, &entry->body);
  LLVMBuildRetVoid(cg->builder);
  LLVMPositionBuilderAtEnd(cg->builder, cg->first_block);
  LLVMBuildBr(cg->builder, body);
  return !cg->failed;
}

// The NVPTX backend's own header: what its files share. Nothing outside codegen/nvptx*.c sees LLVM.
//
//   nvptx.c          a module: LLVM once a process, target machine, passes, PTX, errors
//   nvptx_entry.c    an entry: signature, attributes, memory objects
//   nvptx_stmt.c     statements, loops, accesses
//   nvptx_expr.c     expressions
//   nvptx_convert.c  conversions between types
//   nvptx_hint.c     accesses with cache hints
//   nvptx_debug.c    line tables
//   nvptx_ops.def    every LLVM intrinsic in use
//   nvptx_select.h   PTX from what LLVM made of it
#ifndef RED_CODEGEN_NVPTX_H
#define RED_CODEGEN_NVPTX_H

#include "codegen/codegen.h"

#include <llvm-c/Core.h>
#include <llvm-c/DebugInfo.h>

enum nvptx_op {
#define N(name, intrinsic, alternative, overloads) NVPTX_##name,
#include "codegen/nvptx_ops.def"
#undef N
  NVPTX_OP_COUNT
};

// Results of one statement's expressions, so that a node with several parents is computed once. Open
// addressing.
struct nvptx_memo {
  struct nvptx_memo_slot {
    const struct ir_expr *e;
    LLVMValueRef value;
    uint32_t stamp; // in use when equal to the memo's
  } * slots;
  uint32_t capacity, count, stamp;
};

// A memory object as the entry sees it: pointer to its first element, and whether nothing writes it
// meanwhile.
struct nvptx_object {
  const struct ir_mem *mem;
  LLVMValueRef pointer;
  bool is_constant;
  LLVMValueRef policy; // of its cache hint; NULL: none
  LLVMValueRef zero;   // with a policy: 0 in each thread, which ptxas cannot know; see nvptx_make_policy
};

struct nvptx {
  struct pass_context *context;
  LLVMContextRef llvm;
  LLVMModuleRef module;
  LLVMBuilderRef builder;
  uint32_t level; // of optimization
  bool failed; // an error was reported; what is built is not used

  const struct ir_kernel *kernel;
  const struct ir_entry *entry;
  LLVMValueRef function;
  LLVMValueRef last_slot; // in the first block, which holds the allocas; NULL: none yet
  LLVMBasicBlockRef first_block;
  LLVMValueRef *values; // by ir_var.mark - 1; the slot of a mutable variable
  uint32_t value_count, value_capacity;
  struct list objects; // struct nvptx_object
  struct nvptx_memo memo;

  LLVMDIBuilderRef debug; // NULL: no line tables
  LLVMMetadataRef *files; // by index of diag->sources, NULL until used
  LLVMMetadataRef unit, subprogram;
  uint32_t subprogram_file;
};

// Reports an internal error of the backend, once an entry.
void nvptx_fail(struct nvptx *cg, struct range range, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// The LLVM type of a value in registers: bool is i1, f16 and bf16 are their 16 bits, c128 two 64-bit halves.
LLVMTypeRef nvptx_type(struct nvptx *cg, enum type type);
// The same in memory: bool is i8.
LLVMTypeRef nvptx_memory_type(struct nvptx *cg, enum type type);
LLVMValueRef nvptx_const(struct nvptx *cg, enum type type, int64_t integer);
// Calls an intrinsic of nvptx_ops.def; the first argument's type is its overload.
LLVMValueRef nvptx_call(struct nvptx *cg, enum nvptx_op op, LLVMValueRef *args, unsigned count);
// A slot in the entry's first block.
LLVMValueRef nvptx_slot(struct nvptx *cg, LLVMTypeRef type, const char *name);

bool nvptx_entry(struct nvptx *cg, struct ir_kernel *kernel, struct ir_entry *entry);
void nvptx_define(struct nvptx *cg, struct ir_var *var, LLVMValueRef value);
void nvptx_block(struct nvptx *cg, const struct list *block);

LLVMValueRef nvptx_expr(struct nvptx *cg, const struct ir_expr *e);
// An offset in elements: sums and products in it do not overflow.
LLVMValueRef nvptx_offset(struct nvptx *cg, const struct ir_expr *e);
// Begins a statement: nothing computed before it is reused.
void nvptx_memo_clear(struct nvptx *cg);
LLVMValueRef nvptx_load(struct nvptx *cg, const struct ir_mem *mem, LLVMValueRef offset, struct range range);
void nvptx_store(struct nvptx *cg, const struct ir_mem *mem, LLVMValueRef offset, LLVMValueRef value,
                 struct range range);
LLVMValueRef nvptx_convert(struct nvptx *cg, enum type to, enum type from, LLVMValueRef value);

// Whether the accesses of an object have a cache hint that the target knows.
bool nvptx_has_hint(const struct nvptx *cg, const struct nvptx_object *object);
// Whether some entry has hints that PTX knows from 7.4 on.
bool nvptx_needs_ptx74(const struct ir_module *module);
// "7.8"
const char *nvptx_ptx_version(const struct nvptx *cg);
// Makes object->policy, and object->zero, where the hint takes one.
void nvptx_make_policy(struct nvptx *cg, struct nvptx_object *object);
// An access of 1 to 16 bytes by its hint: `type` is an integer, float or vector of so many bytes.
LLVMValueRef nvptx_hinted_load(struct nvptx *cg, const struct nvptx_object *object, LLVMValueRef place, LLVMTypeRef type, uint32_t bytes);
void nvptx_hinted_store(struct nvptx *cg, const struct nvptx_object *object, LLVMValueRef place, LLVMValueRef value, uint32_t bytes);

void nvptx_debug_begin(struct nvptx *cg);
void nvptx_debug_entry(struct nvptx *cg);
void nvptx_debug_at(struct nvptx *cg, struct range range);
void nvptx_debug_end(struct nvptx *cg);

#endif

// What a kernel is called with: the signature that CUDA and PTX share and that the plan passes.
//
//   tensors   those that the entry's body mentions, in the kernel's order: a global pointer each, `const`
//             unless the entry writes it, never overlapping one that is written
//   workspace the parts of it that the entry's body mentions, in the entry's order: a global pointer each, which other
//             blocks write while this one runs
//   scalars   those mentioned, in the kernel's order, each of its own type (bool: one byte, where not 0 is
//             true; f16 and bf16: their 16 bits)
//   sizes     those mentioned that no -D fixed, in the kernel's order, as i64
#ifndef RED_CODEGEN_ARGUMENTS_H
#define RED_CODEGEN_ARGUMENTS_H

#include "compiler/ir.h"

enum codegen_argument_kind { ARGUMENT_TENSOR, ARGUMENT_SCALAR, ARGUMENT_SIZE };
struct codegen_argument {
  enum codegen_argument_kind kind;
  enum type type;     // of the tensor's elements, of the scalar; I64 for a size
  struct ir_mem *mem; // TENSOR
  struct ir_var *var; // SCALAR, SIZE
  bool is_written;    // TENSOR: this entry stores to it
  bool is_shared;     // TENSOR: a part of the workspace, through which blocks exchange values
};

// Appends the parameters (struct codegen_argument, in the arena) of an entry at LEVEL_PROGRAM to `out`.
void codegen_arguments(struct arena *arena, const struct ir_kernel *kernel, const struct ir_entry *entry,
                       struct list *out);

#endif

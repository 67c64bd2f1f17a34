// What both backends ask of a program: whether they can print it, and its accesses as flat offsets.
#ifndef RED_CODEGEN_PROGRAM_H
#define RED_CODEGEN_PROGRAM_H

#include "compiler/pass.h"

// Whether both backends can print every entry of the module. What they cannot (an allreduce, a mathematical
// function or an index type that no pass lowered) is an internal error that names it.
bool codegen_accepts(struct pass_context *context);

// Sets the mark of every variable that the block names to 0.
void codegen_clear_marks(const struct list *block);

// The offset of an access to `mem` in the entry's index type: indices[0] where it is flat already, else the
// sum of indices times strides (row-major where the object has none).
struct ir_expr *codegen_offset(struct arena *arena, const struct ir_entry *entry, const struct ir_mem *mem,
                               struct ir_expr **indices, uint32_t count, bool is_flat);
// Elements that a shared or local array takes: up to the last one that its strides reach. 0: not constant.
uint64_t codegen_element_count(const struct ir_mem *mem);
// Blocks of the entry that a multiprocessor must be able to hold: at least 1, at most what 2048 threads make.
uint32_t codegen_blocks(const struct ir_entry *entry);
// Bytes that the first element of an object is aligned to.
uint32_t codegen_alignment(const struct ir_mem *mem);

#endif

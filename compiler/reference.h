// The meaning of a program: the checked kernel, interpreted on the CPU, in order, with the declared types.
#ifndef RED_COMPILER_REFERENCE_H
#define RED_COMPILER_REFERENCE_H

#include "compiler/arith.h"

struct reference_tensor {
  void *data;             // element (0, ..., 0), on the host
  const int64_t *strides; // in elements, any sign; NULL: row-major
};
struct reference_input {
  const struct reference_tensor *tensors; // of the kernel, in order
  const struct value *scalars;            // of the kernel, in order, each of its type
  const int64_t *sizes;                   // of the kernel, in order
  bool is_wide; // f32 is computed in f64 and rounded only where it is stored, f64 in f32: how far rounding
                // carries, for a tolerance
  bool is_turned; // reductions that are not ordered go from their last element to the first
  void (*progress)(uint64_t elements, void *state); // called now and then, or NULL
  void *progress_state;
};
struct reference_count {
  uint64_t elements; // evaluations of a stage's body
};

// Runs `entry`, which is at LEVEL_STAGES and as pass `check` made it, on the tensors' memory, unless no output has an element: stages in
// order, each over its axes in nest order; a body is evaluated only where its guards hold; reductions start
// from init or the identity. False, with a message in `error`: an access left its tensor (which `check`
// excludes), a value is not known, the memory is not enough. `count` may be NULL.
bool reference_run(const struct ir_kernel *kernel, const struct ir_entry *entry,
                   const struct reference_input *input, struct reference_count *count, char *error,
                   size_t error_bytes);

// The expression without a storage type's way to a float and back, which changes no bit but for a signalling
// NaN's: a copy is a move. f16(f32(x)) is x where x is an f16.
const struct ir_expr *reference_unwrap(const struct ir_expr *e);

// An integer expression over sizes alone, such as a dimension of a tensor. False where it mentions anything
// else.
bool reference_size(const struct ir_kernel *kernel, const struct ir_expr *e, const int64_t *sizes,
                    int64_t *out);

#endif

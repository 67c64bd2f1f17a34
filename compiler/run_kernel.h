// A kernel with its arguments, for redc run: sizes, scalars and buffers, resolved and filled.
#ifndef RED_COMPILER_RUN_KERNEL_H
#define RED_COMPILER_RUN_KERNEL_H

#include "compiler/arith.h"
#include "compiler/run_options.h"
#include "compiler/run_source.h"

struct tensor_argument {
  struct argument_source source;
  bool is_given;
  struct buffer buffer;
};
struct kernel_arguments {
  struct options *options;
  struct compilation *c;
  const struct ir_kernel *kernel;
  struct tensor_argument *tensors; // as many as the kernel has
  struct value *scalars;
  bool *has_scalar;
  int64_t *sizes;
  bool *has_size;
  struct map given;    // --size: int64_t by name
  bool copies_outputs; // each output will be copied twice, for --check
};

// Reads --size NAME=N into `arguments`, before arguments_prepare.
bool arguments_add_size(struct kernel_arguments *arguments, const char *text);
// Assigns the --arg texts to the kernel's names, loads files, finds every size, makes and fills every buffer.
// Outputs without a value are 0xCC. False after an error. arguments_free is needed in any case.
bool arguments_prepare(struct kernel_arguments *arguments, const struct ir_kernel *kernel,
                       const struct list *args);
void arguments_free(struct kernel_arguments *arguments);
// The place of a tensor by its label; -1 after an error that lists the names.
int64_t arguments_find_tensor(const struct kernel_arguments *arguments, const char *option, const char *name);

#endif

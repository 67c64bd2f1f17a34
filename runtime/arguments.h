// The arguments of a launch, from what users give to what a plan evaluates.
#ifndef RED_RUNTIME_ARGUMENTS_H
#define RED_RUNTIME_ARGUMENTS_H

#include "runtime/program.h"

// One launch, on the stack of its caller: nothing is allocated. Only what counts is filled in.
struct call {
  struct red_kernel *kernel;      // after types are resolved
  struct variant *variant;        // what runs
  bool is_pinned;                 // it is an instance, held for this launch
  const struct plan_kernel *plan; // of the variant
  uint32_t place;                 // of the kernel in the variant
  struct module *module;
  struct plan_input input; // points to the arrays below
  void *workspace;
  size_t workspace_bytes;
  struct plan_tensor_value tensors[PROGRAM_MAX_TENSORS];
  union plan_number scalars[PROGRAM_MAX_SCALARS];
  int64_t sizes[PLAN_MAX_SIZES];
  struct plan_result result;
};

// Sorts the arguments into tensors, scalars and sizes of the kernel, and checks counts, types and devices. Scalars of a generic kernel wait until its types are known.
red_error arguments_take(const struct red_kernel *kernel, const red_argument *arguments, size_t count, struct call *call);
// A tensor of either kind; `name` is for messages.
red_error arguments_tensor(const struct red_device *device, const red_argument *argument, const char *name, struct plan_tensor_value *value);
// Bytes that a tensor spans: from `low` (0 or negative) to `high`, as offsets from its address. False: nothing, it has no element.
bool arguments_span(const struct plan_tensor_value *value, int64_t *low, int64_t *high);

#endif

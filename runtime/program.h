// Programs and their kernels.
#ifndef RED_RUNTIME_PROGRAM_H
#define RED_RUNTIME_PROGRAM_H

#include "runtime/variant.h"

enum { PROGRAM_MAX_TENSORS = 256, PROGRAM_MAX_SCALARS = 256, PROGRAM_MAX_TYPES = 8, KERNEL_MAX_INSTANCES = 64 };

// A kernel with some sizes fixed.
struct instance {
  struct variant *variant;
  int64_t *sizes; // all of the kernel's
  uint32_t pins;  // launches that are under way, and captures for ever
  uint64_t used;
};

// One of three kinds. Compiled: `variant` is there. Compiled for each new list of sizes, where a schedule needs that: `instances`. Generic, its types being
// the launch's: `typed`, a kernel of one of the other kinds for each list of types.
struct red_kernel {
  struct red_program *program;
  const char *name;
  const struct plan_kernel *plan; // what it takes; of a generic kernel the types that are parameters are those of some instance
  struct variant *variant;        // NULL: compiled at launch
  uint32_t place;                 // among the kernels of `variant`
  const char *const *shapes;      // by tensor: "n, m"

  pthread_mutex_t lock; // instances; typed where it grows
  struct instance *instances; // room for KERNEL_MAX_INSTANCES, or NULL: none yet
  uint32_t instance_count;
  uint64_t clock;

  uint32_t type_count;                  // type parameters that the launch decides; 0: not generic
  const char *types[PROGRAM_MAX_TYPES]; // their names
  const int8_t *type_of;                // by tensor: which parameter its type is; -1: none
  _Atomic(struct typed *) typed;

  const void *unit; // what the compiler knows of it
};
struct typed {
  struct typed *next;
  enum plan_type types[PROGRAM_MAX_TYPES];
  struct red_kernel kernel;
};

// What compiles the kernels that are compiled at launch: the compiler, which this layer does not know.
struct jit_ops {
  // The kernel with its type parameters given: fills in plan, and variant and place where no size is needed.
  red_error (*type)(void *jit, struct red_kernel *generic, const enum plan_type *types, struct red_kernel *kernel);
  // The kernel with all sizes given, by plan->sizes; `place` of the variant is 0.
  red_error (*size)(void *jit, struct red_kernel *kernel, const int64_t *sizes, struct variant **variant);
  void (*destroy)(void *jit);
};

struct red_program {
  struct red_device *device;
  struct variant *variant; // all kernels; NULL: each has its own
  struct red_kernel *kernels;
  uint32_t kernel_count;
  char *log;
  const struct jit_ops *ops;
  void *jit;
  struct plan memory; // of texts: plan_alloc
};

// An empty program with room for kernels; NULL: no memory.
struct red_program *program_create(struct red_device *device, uint32_t kernel_count);
// Fills in shapes of a kernel whose plan is there; checks what a launch can hold.
red_error kernel_finish(struct red_kernel *kernel);
// Starts a kernel: everything that needs no plan.
void kernel_init(struct red_kernel *kernel, struct red_program *program, const char *name);
// Makes all kernels of a variant, which the program then holds.
red_error program_of_variant(struct variant *variant, struct red_program **program);
// An expression of a plan as a person writes it, in the plan's memory; NULL: no memory.
const char *describe_expr(struct plan *memory, const struct plan_kernel *kernel, const struct plan_expr *expr);

// The variant that a launch with these types or sizes takes, where the kernel has none of its own. kernel_resize pins the instance until kernel_unpin.
red_error kernel_retype(struct red_kernel *kernel, const enum plan_type *types, bool may_compile, struct red_kernel **typed);
red_error kernel_resize(struct red_kernel *kernel, const int64_t *sizes, bool may_compile, struct variant **variant);
void kernel_unpin(struct red_kernel *kernel, const struct variant *variant);

#endif

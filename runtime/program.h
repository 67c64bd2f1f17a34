// Programs and their kernels.
#ifndef RED_RUNTIME_PROGRAM_H
#define RED_RUNTIME_PROGRAM_H

#include "runtime/variant.h"

enum { PROGRAM_MAX_TENSORS = 256, PROGRAM_MAX_SCALARS = 256, PROGRAM_MAX_TYPES = 8, KERNEL_MAX_INSTANCES = 64 };

// An entry of a kernel that is compiled when a launch first takes it.
enum slot_state {
  SLOT_NEW,      // not compiled yet
  SLOT_COMPILED, // `variant` is there
  SLOT_EXACT,    // compiled for each list of sizes: among the kernel's instances
  SLOT_ABSENT,   // the compiler found that no launch can take it
};
struct slot {
  _Atomic int state;
  struct variant *variant;
};
// What of a launch code may be compiled for.
struct fixed {
  const int64_t *sizes; // by plan->sizes
  bool is_aligned;      // every tensor starts on 16 bytes
};
// An exact entry with all sizes fixed.
struct instance {
  struct variant *variant;
  uint32_t entry; // by its place in the kernel's plan
  int64_t *sizes; // all of the kernel's
  bool is_aligned;
  uint32_t pins;  // launches that are under way, and captures for ever
  uint64_t used;
};

// One of three kinds. Loaded: `variant` is there, with all entries. Compiled at launch, entry by entry: `slots`. Generic, its types being the launch's: `typed`,
// a kernel of the second kind for each list of types.
struct red_kernel {
  uint64_t serial; // no other kernel of the process has or had it
  struct red_program *program;
  const char *name;
  const struct plan_kernel *plan; // what it takes, and what entries there are; of a generic kernel the types that are parameters are those of some instance
  struct variant *variant;        // NULL: compiled at launch
  uint32_t place;                 // among the kernels of `variant`
  const char *const *shapes;      // by tensor: "n, m"
  uint32_t address_step;          // plan_address_step of `plan`

  struct slot *slots;    // by entry
  pthread_mutex_t lock;  // of slots that change, instances, typed where it grows
  struct instance *instances; // room for KERNEL_MAX_INSTANCES, or NULL: none yet
  uint32_t instance_count;
  uint64_t clock;

  uint32_t type_count;                  // type parameters that the launch decides; 0: not generic
  const char *types[PROGRAM_MAX_TYPES]; // their names
  const int8_t *type_of;                // by tensor, then by scalar: which parameter its type is; -1: none
  _Atomic(struct typed *) typed;

  const void *unit; // what the compiler knows of it
};
struct typed {
  struct typed *next;
  enum plan_type types[PROGRAM_MAX_TYPES];
  struct red_kernel kernel;
};

// What makes code at launch: the compiler, which this layer does not know, or slice.c.
struct jit_ops {
  // The kernel with its type parameters given: fills in plan, shapes and slots. NULL where no kernel is generic.
  red_error (*type)(void *jit, struct red_kernel *generic, const enum plan_type *types, struct red_kernel *kernel);
  // An entry of the kernel, by its place in the plan, as a variant with one kernel of one entry. `fixed`: for such launches alone; NULL: for all.
  // *state becomes SLOT_COMPILED, or SLOT_EXACT where `fixed` is NULL and needed, or SLOT_ABSENT.
  red_error (*entry)(void *jit, struct red_kernel *kernel, uint32_t entry, const struct fixed *fixed, enum slot_state *state, struct variant **variant);
  // All entries of all kernels in one text; NULL after an error. No function: the program's variant has it.
  struct variant *(*whole)(void *jit);
  void (*destroy)(void *jit);
};

struct red_program {
  struct red_device *device;
  struct variant *variant; // whose plan the kernels' are; NULL: none
  _Atomic(struct variant *) whole; // of red_ptx
  struct red_kernel *kernels;
  uint32_t kernel_count;
  char *log;
  const struct jit_ops *ops;
  void *jit;
  struct plan memory; // of texts: plan_alloc
};

// An empty program with room for kernels; NULL: no memory.
struct red_program *program_create(struct red_device *device, uint32_t kernel_count);
// Fills in what follows from a kernel's plan, slots too where it has no variant; checks what a launch can hold.
red_error kernel_finish(struct red_kernel *kernel);
// Starts a kernel: everything that needs no plan.
void kernel_init(struct red_kernel *kernel, struct red_program *program, const char *name);
// A program of all kernels of a variant's plan, which it then holds: loaded, or compiled at launch where `ops` is not NULL; `more` is room for further kernels.
// After an error the variant is released, and `jit` is not destroyed.
red_error program_of_variant(struct variant *variant, const struct jit_ops *ops, void *jit, uint32_t more, struct red_program **program);
// An expression of a plan as a person writes it, in the plan's memory; NULL: no memory.
const char *describe_expr(struct plan *memory, const struct plan_kernel *kernel, const struct plan_expr *expr);

// --- Kernels that are compiled at launch. Without `may_compile` what is not there is RED_ERROR_CAPTURING.

// The kernel of these types.
red_error kernel_retype(struct red_kernel *kernel, const enum plan_type *types, bool may_compile, struct red_kernel **typed);
// The state of an entry, and its variant where it is compiled.
red_error kernel_entry(struct red_kernel *kernel, uint32_t entry, bool may_compile, enum slot_state *state, struct variant **variant);
// The instance of an exact entry, pinned until kernel_unpin. Without `may_replace` none makes room for another: RED_ERROR_LIMIT where there are KERNEL_MAX_INSTANCES.
red_error kernel_resize(struct red_kernel *kernel, uint32_t entry, const struct fixed *fixed, bool may_compile, bool may_replace, struct variant **variant);
void kernel_unpin(struct red_kernel *kernel, const struct variant *variant);

#endif

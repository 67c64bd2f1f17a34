// The just-in-time compiler behind red_compile_text: programs with their options, and the keys under which what they compile to is found again.
//
// A program is compiled whole where that can be done once and for all. Otherwise each of its kernels is a unit of its own: one that is compiled for each
// list of types (a type parameter without -D), or of sizes (a schedule that needs an extent as a constant).
#ifndef RED_COMPILER_JIT_H
#define RED_COMPILER_JIT_H

#include "compiler/pipeline.h"
#include "runtime/program.h"

struct jit_text {
  char *name, *text; // name: what messages call it
  size_t length;
};
struct jit {
  struct red_device *device;
  struct jit_text program, schedules; // schedules.text NULL: none
  char **defines;                     // NAME=VALUE
  size_t define_count;
  const struct target *target;
  char *schedule; // only this one; NULL: all
  uint32_t optimize;
  bool no_contract, debug;
  struct text key;      // all of the above, and which compiler this is
  pthread_mutex_t lock; // of the program's memory, while types are added
};

// A kernel on its own.
struct jit_unit {
  const char *label; // of the kernel in the source
  const char *name;  // of the instance of it; NULL: there is one
  uint32_t type_count;
  const char *types[PROGRAM_MAX_TYPES]; // type parameters given beside the options' definitions
  enum plan_type values[PROGRAM_MAX_TYPES];
};

// What differs between two builds of the compiler: the linker's build identifier, or the version alone where there is none. Lives for ever.
const char *jit_identity(void);

// compiler/jit_compile.c. Each sets the thread's error.

// The whole program. JIT_PARTS where its kernels must be compiled on their own.
#define JIT_PARTS ((red_error)-1)
red_error jit_whole(struct jit *jit, struct variant **variant);
// One kernel; `sizes` (by its plan) fixed where they are not NULL. JIT_PARTS where a size is missing.
red_error jit_part(struct jit *jit, const struct jit_unit *unit, const struct plan_kernel *plan, const int64_t *sizes, struct variant **variant);
// What kernels take, without code: calls `found` for each kernel of the checked program, with a plan that has no entries, in `memory`. Only the unit's
// kernel where it is not NULL; else those that have all their types.
typedef red_error jit_found(void *state, const struct ir_kernel *kernel, const struct plan_kernel *plan);
red_error jit_check(struct jit *jit, const struct jit_unit *unit, struct plan *memory, jit_found *found, void *state);
// The syntax tree: a compilation that has parsed the texts and nothing more. The caller destroys it, also after an error.
red_error jit_parse(struct jit *jit, struct compilation *c);
// Whether a kernel has a type parameter that the options do not define.
bool jit_is_generic(const struct jit *jit, const struct ast_kernel *kernel);
bool jit_defines(const struct jit *jit, const char *name);

#endif

// The just-in-time compiler behind red_compile_text: programs with their options, and the keys under which what they compile to is found again.
//
// red_compile_text parses and checks: that gives a plan whose entries have no code, and every error of schedules that users wrote. The code of an entry is made when
// a launch first takes it, from the same texts. Both are kept, in memory and on disk.
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
  bool no_contract, debug, batch_invariant;
  struct text key;      // all of the above, and which compiler this is
  pthread_mutex_t lock; // of the program's memory, while types are added, and of `checked`
  struct compilation *checked; // what red_compile_text has checked and nothing has lowered: the first entry's code is made of it. NULL: none
};

// A kernel of the program.
struct jit_unit {
  const char *name; // of the kernel in the plan: the label in the source, and behind it the types that the options give to its type parameters
  uint32_t type_count;
  const char *types[PROGRAM_MAX_TYPES]; // type parameters given beside the options' definitions, in a generic kernel
  enum plan_type values[PROGRAM_MAX_TYPES];
};

// What differs between two builds of the compiler: the linker's build identifier, or the version alone where there is none. Lives for ever.
const char *jit_identity(void);

// Appends a field to a key, behind its length. NULL is no empty string.
void jit_key_field(struct text *key, const void *data, size_t size);
void jit_key_string(struct text *key, const char *string);

// compiler/jit_compile.c. Each sets the thread's error.

// The plan of all kernels that have their types, without code: a variant that is never loaded. `generic`: how many others there are. The variant is NULL where no
// kernel has all its types.
red_error jit_interface(struct jit *jit, uint32_t *generic, struct variant **variant);
// The plan of one kernel, in `memory`.
red_error jit_check(struct jit *jit, const struct jit_unit *unit, struct plan *memory, const struct plan_kernel **plan);
// The code of one entry, as struct jit_ops has it.
red_error jit_entry(struct jit *jit, const struct jit_unit *unit, const struct plan_kernel *plan, uint32_t entry, const struct fixed *fixed, enum slot_state *state,
                    struct variant **variant);
// The code of all entries.
red_error jit_whole(struct jit *jit, struct variant **variant);
// The syntax tree: a compilation that has parsed the texts and nothing more. The caller destroys it, also after an error.
red_error jit_parse(struct jit *jit, struct compilation *c);
// Ends `checked`.
void jit_forget(struct jit *jit);
// Whether a kernel has a type parameter that the options do not define.
bool jit_is_generic(const struct jit *jit, const struct ast_kernel *kernel);
bool jit_defines(const struct jit *jit, const char *name);

#endif

// The verifier, shared by verify*.c; nobody else includes it.
#ifndef RED_COMPILER_VERIFY_H
#define RED_COMPILER_VERIFY_H

#include "compiler/ir_text.h"

// A name of the kernel, entry or function being checked. Stays when its scope ends, so that names are unique
// there.
struct known_name {
  const char *name;
  const void *object; // struct ir_var or struct ir_mem
  bool is_visible;
};

// What an expression may be made of, by its place.
enum place {
  PLACE_PLAN,      // condition, grid: sizes, scalars and facts
  PLACE_SIZES,     // dimensions and strides: sizes and scalars
  PLACE_DIRECTIVE, // as PLAN, and extents by the name of an axis
  PLACE_PURE,      // reducers: their own variables
  PLACE_STAGE,     // stages: tensors and variables
  PLACE_PROGRAM,   // programs: memory, variables and the thread's place
};

struct verifier {
  const struct ir_module *module;
  struct diag *diag;
  const char *pass;
  bool from_user;
  struct arena scratch;
  uint32_t faults;
  // Where we are, for messages
  const struct ir_kernel *kernel;
  const struct ir_entry *entry;
  const struct ir_reducer *reducer;
  const char *statement; // "let 'x'"; in scratch; NULL: none
  struct range range;    // of the statement, or of what is around it

  struct map names;       // struct known_name
  struct list declared;   // struct known_name: all of them
  struct list scope;      // struct known_name: those visible, innermost last
  struct map entry_names; // of the module
  uint32_t depth;
};

// ---- verify.c
void verify_fault(struct verifier *v, struct range range, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Makes a name visible until the scope is cut back. A variable that stages share is declared by each
// (may_repeat).
void verify_declare(struct verifier *v, const char *name, const void *object, bool may_repeat);
void verify_leave_scope(struct verifier *v, uint32_t count);
// Takes back all declarations but the first `count`: the next entry may use the same names.
void verify_forget(struct verifier *v, uint32_t count);
bool verify_is_visible(const struct verifier *v, const char *name, const void *object);
void verify_mem(struct verifier *v, const struct ir_mem *mem);
void verify_condition(struct verifier *v, const struct ir_requirement *requirement, const char *what);
bool verify_has_reducer(const struct verifier *v, const struct ir_reducer *reducer);

// ---- verify_expr.c
// Reports the first fault of an expression. is_value: it is the whole value of LET, VAR or SET.
bool verify_expr(struct verifier *v, const struct ir_expr *e, enum place place, bool is_value);
// The same, and that it has this type; `what` names it in the message.
void verify_typed(struct verifier *v, const struct ir_expr *e, enum place place, enum type type,
                  const char *what);
// Expressions of the types of others; `what` names one of them.
void verify_matching(struct verifier *v, const struct list *exprs, const struct list *like, enum place place,
                     const char *what);

// ---- verify_stmt.c, verify_entry.c
void verify_let(struct verifier *v, const struct ir_stmt *s, enum place place, bool may_repeat);
// Whether a shared object may be filled from the load by an asynchronous copy.
void verify_copy(struct verifier *v, const struct ir_mem *mem, const struct ir_expr *value);
void verify_store(struct verifier *v, const struct ir_mem *mem, const struct list *indices, bool is_flat,
                  const struct ir_expr *value, enum place place);
void verify_body(struct verifier *v, const struct list *block);
void verify_entry(struct verifier *v, const struct ir_entry *entry, bool is_first);

#endif

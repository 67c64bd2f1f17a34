// What the files of `check` share: one kernel under construction, its scopes, and the steps between the files.
#ifndef RED_PASSES_CHECK_H
#define RED_PASSES_CHECK_H

#include "compiler/ast.h"
#include "compiler/pass.h"
#include "compiler/poly.h"

enum symbol_kind {
  SYMBOL_SIZE,   // value
  SYMBOL_SCALAR, // value
  SYMBOL_TENSOR, // mem
  SYMBOL_AXIS,   // value (i64)
  SYMBOL_LET,    // value: a reference to a VAR_LET or VAR_VALUE
  SYMBOL_STATE,  // parameter of a reducer's function: fields
};
struct symbol {
  const char *name;
  uint32_t place;          // in checker.symbols, while its scope is open
  struct symbol *shadowed; // the one of the same name before it; NULL: none
  enum symbol_kind kind;
  struct range range;
  struct ir_expr *value;
  struct ir_mem *mem;
  struct list field_names; // SYMBOL_STATE: const char *
  struct list fields;      // SYMBOL_STATE: struct ir_expr
};

// An axis of the scope around a statement or a reduction's body.
struct scope_axis {
  struct ir_axis *axis;
  struct ir_stmt *derived; // the source's axis from `axis` where its range does not begin at 0; else NULL
  struct ir_var *var;      // what the source's name stands for
  struct ir_expr *lo, *hi; // index
};

struct type_binding {
  const char *name;
  enum type type;
};

struct checker {
  struct pass_context *context;
  struct arena *arena;
  struct diag *diag;
  const struct ast_file *ast;
  const struct ast_kernel *source;
  struct ir_kernel *kernel;
  struct ir_entry *entry;
  bool is_first_entry; // requirements are collected once
  bool is_large;       // the compiler's own schedule copies no body
  struct list types;   // struct type_binding
  struct list symbols; // struct symbol: innermost last
  struct map newest;   // the last symbol declared of each name; its scope may have ended
  struct list axes;    // struct scope_axis: outermost first
  struct list guards;  // struct ir_expr
  struct list selected; // struct ir_expr: conditions of ?:, && and || around the expression
  struct list lets;    // struct ir_stmt: prototypes, in order; var->mark is place + 1
  struct list let_sizes; // struct let_size, beside `lets`
  struct list stages_of_values; // struct ir_stage of each VAR_VALUE; var->mark is place + 1
  const char *label;   // of the stage of the statement under construction
  const struct list *result_names; // struct ast_name: of the let whose value is the next reduction; NULL: none
  const struct list *targets; // struct ir_expr LOAD: elements that the statement writes; NULL outside one
};

// What a let's value is when the lets that it names are put in: conditions around statements are written out like that.
struct let_size {
  uint64_t nodes;
  uint32_t depth;
};

enum { NO_TYPE = -1 };

// check.c
struct symbol *check_find(struct checker *c, const char *name);
// Reports that no name in scope, or no tensor, is `name`.
void check_unknown(struct checker *c, const char *what, const char *name, struct range range, bool tensors_only);
struct symbol *check_declare(struct checker *c, enum symbol_kind kind, const struct ast_name *name, bool may_hide);
bool check_type(struct checker *c, const struct ast_name *name, enum type *type);
// Facts of the current scope; with_selected adds the conditions of enclosing ?:.
// Whether the kernel and its schedules are small enough to be compiled in a few seconds; reports.
bool check_limits(struct checker *c, const struct ast_kernel *source, const struct list *schedules);
void check_facts(struct checker *c, struct facts *facts, bool with_selected);
void check_require(struct checker *c, struct ir_expr *condition, struct range range, const char *message);

// check_expr.c. Each returns NULL after reporting an error. `want` is the type that the place asks of a literal, or NO_TYPE.
struct ir_expr *check_expr(struct checker *c, const struct ast_expr *e, int want);
struct ir_expr *check_condition(struct checker *c, const struct ast_expr *e);
// One or more values: a tuple, a tuple's reduction, a block that ends in one, or one expression.
bool check_values(struct checker *c, const struct ast_expr *e, const enum type *want, uint32_t wanted, struct list *values);
struct ir_mem *check_tensor(struct checker *c, const struct ast_expr *access);
bool check_indices(struct checker *c, const struct ast_expr *access, struct ir_mem *mem, struct list *indices);
// An i64 expression of sizes and axes as an index expression.
struct ir_expr *check_as_index(struct checker *c, struct ir_expr *e);
// `value` stored to, or combined as, `type`: float to float and integer to an integer type that holds all its values.
struct ir_expr *check_convert(struct checker *c, struct ir_expr *value, enum type type, struct range range, const char *place);
enum type type_computed(enum type stored); // f32 for f16 and bf16

// check_reduce.c
bool check_reduce(struct checker *c, const struct ast_expr *e, const enum type *want, uint32_t wanted, struct list *values);

// check_outside.c: lets a reduction outside loops that may have no iteration ask for one where it needs that to read: by a guard, or by marking
// axes that it must stay inside for that. Returns whether it marked any. `stage` has its axes; those before place `parallel` of the scope are around it.
bool check_outside(struct checker *c, struct ir_stage *stage, uint32_t parallel);

// check_stage.c
bool check_push_axes(struct checker *c, const struct list *axes);
struct scope_mark {
  uint32_t symbols, axes, guards;
};
struct scope_mark check_enter(struct checker *c);
void check_leave(struct checker *c, struct scope_mark mark);
// Completes a stage whose expressions are set: lets that it needs, derived axes, guards, and its axes, of which those before place
// `parallel` of the scope are parallel and the rest reduction axes. Appends it to the entry.
void check_add_stage(struct checker *c, struct ir_stage *stage, uint32_t parallel);
bool check_statements(struct checker *c, const struct list *statements);
bool check_overlaps(struct checker *c);

// check_schedule.c
bool check_schedule(struct checker *c, const struct ast_schedule *schedule);

#endif

// Makes the launch plan of a module: runtime/plan.h from IR.
#ifndef RED_COMPILER_PLAN_BUILD_H
#define RED_COMPILER_PLAN_BUILD_H

#include "compiler/ir.h"
#include "runtime/plan.h"

// One argument of a compiled kernel, in the order of its parameters; one of the four.
struct plan_parameter {
  struct ir_mem *tensor;   // its pointer
  struct ir_var *scalar;   // VAR_SCALAR
  struct ir_expr *integer; // an i64 over sizes and facts
  struct ir_mem *workspace; // a part of the workspace
};
// The parameters of an entry at LEVEL_PROGRAM: a list of struct plan_parameter.
typedef struct list plan_parameters_function(struct arena *arena, struct ir_kernel *kernel,
                                             struct ir_entry *entry);

// Fills `plan` (of plan_init) from every kernel of the module, whose entries are at LEVEL_PROGRAM. What a
// plan cannot express is reported to module->diag; returns whether there was no such thing. The caller
// destroys the plan either way.
bool plan_build(struct plan *plan, struct ir_module *module, plan_parameters_function *parameters);

#endif

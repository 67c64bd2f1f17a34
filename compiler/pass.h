// What every pass gets, and the table of passes.
#ifndef RED_COMPILER_PASS_H
#define RED_COMPILER_PASS_H

#include "compiler/ir.h"

struct target {
  const char *name;        // "sm_90"
  uint32_t sm;             // 90
  const char *ptx_version; // "7.8"
  const char *driver;      // lowest CUDA driver, "11.8"
  uint32_t shared_limit;   // bytes of shared memory that a block may have
};
// All legal targets, lowest first; NULL name ends the table.
const struct target *target_table(void);
const struct target *target_find(const char *name); // NULL: unknown

struct define { // -D NAME=VALUE
  const char *name;
  bool is_type;
  int64_t integer;
  enum type type;
};

struct compile_options {
  const struct target *target;
  struct list defines;      // struct define
  const char *schedule;     // --schedule: only this one; NULL: all
  const char *class_name;   // --class: the compiler's own schedule of this class (classes.def), and no other; NULL: as it likes
  bool is_plain;            // the compiler's own schedules are one thread an output
  bool is_at_launch;        // a just-in-time compiler will know sizes: schedules may wait for them (see PLAN_EXACT)
  int64_t sms;              // multiprocessors of the device, where a just-in-time compiler compiles for the sizes of a launch; 0: a launch tells
  bool no_contract;         // --fp-contract=off
  uint32_t optimize;        // LLVM level 0..3
  bool debug;               // -G
  bool batch_invariant;     // --batch-invariant: the order of additions in an output does not depend on how many there are
  bool all_entries;         // --all-entries: CUDA of every entry
};

struct pass_context {
  struct arena *arena; // lives as long as the module
  struct diag *diag;
  struct ir_module *module;
  const struct compile_options *options;
  struct text *explain; // --explain: passes append what they chose and why, as text for a person; NULL: not asked
  struct text *schedules; // `redc schedule`: `check` appends the text of the compiler's own schedules; NULL: not asked
  bool is_from_ir;      // the module came as IR text: a proof that fails is its author's fault
};

// A pass works on one entry of one kernel; it may append entries behind it (they are processed after it). Returns false
// after reporting an error.
typedef bool pass_function(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry);

// P(name, description): the order in which an entry is lowered. `check` comes before them, from the syntax tree.
#define P(name, description) pass_function pass_##name;
#include "passes/passes.def"
#undef P

struct pass {
  const char *name, *description;
  pass_function *run;
};
extern const struct pass pass_table[]; // NULL name ends the table

struct ast_file;
// passes/check.c: from the syntax tree to stages. Appends kernels to context->module.
bool pass_check(struct pass_context *context, const struct ast_file *ast);

#endif

// The compiler as a library: one compilation, from source text to output text.
//
//   struct compilation c;
//   struct text ptx = {0};
//   compilation_init(&c);
//   c.options.target = target_find("sm_90");
//   if (!compilation_parse_file(&c, "rowsum.red") || !compilation_lower(&c) || !compilation_emit(&c,
//   EMIT_PTX, &ptx))
//     ... diag_print(&c.diag, ...)
//   text_free(&ptx);
//   compilation_destroy(&c);
//
// No global state: compilations in several threads are independent; one compilation belongs to one thread at
// a time. Nothing here prints or exits; what went wrong is in `diag`. After a function returned false only
// diag and destroy are of use.
#ifndef RED_COMPILER_PIPELINE_H
#define RED_COMPILER_PIPELINE_H

#include "compiler/ast.h"
#include "compiler/pass.h"
#include "runtime/plan.h"

enum emit_kind { EMIT_AST, EMIT_IR, EMIT_CUDA, EMIT_LLVM, EMIT_PTX, EMIT_CUBIN, EMIT_HEADER };

// Wall time of a part of the compilation. A part that runs several times is added up.
struct phase {
  const char *name;
  double seconds;
};

struct compilation {
  struct arena arena; // everything below lives here
  struct diag diag;
  struct ast_file ast;
  struct ir_module module;

  // Set between init and the first parse.
  struct compile_options options; // init: sm_75, level 3; lists in `arena`
  bool reads_ir;                  // the input is IR text, not a program
  const char *from;       // reads_ir: the pass that the text was dumped after; NULL: its heading says it
  const char *stop_after; // the last pass to run; NULL: all
  bool verify_each;       // verify, print, read back and compare after each pass; in debug builds always
  bool wants_explain;     // passes append to `explain`
  // Called by compilation_run after the parse of a program ("parse"), and after `check` and each pass, also
  // after one that failed; may report errors. NULL: none.
  void (*after_step)(struct compilation *c, const char *step, void *state);
  void *after_step_state;

  const char *header_name; // EMIT_HEADER: the header's name, from which its own names are made; NULL: that of the first source
  struct text *schedules; // `check` appends the compiler's own schedules; NULL: not asked
  struct text explain;
  struct list phases;           // struct phase, in the order of the first run
  const char *volatile running; // the part that runs now, for a crash report; NULL: none
};

void compilation_init(struct compilation *c);
void compilation_destroy(struct compilation *c);

// Parses a file ("-": standard input) or a text (copied). May be called several times: all of it is one
// program, so that schedules can stand in a file of their own. IR text is read by one call only.
bool compilation_parse_file(struct compilation *c, const char *path);
bool compilation_parse_text(struct compilation *c, const char *name, const char *text, size_t length);
// From the syntax tree to stages. Nothing to do for IR text.
bool compilation_check(struct compilation *c);
// Checks, if that has not been done, and runs all passes (those behind `from`, up to `stop_after`).
bool compilation_lower(struct compilation *c);
// Appends the output to `out`. AST needs a parse; IR a check; the others a lowering by all passes.
bool compilation_emit(struct compilation *c, enum emit_kind kind, struct text *out);

// CUDA with the range that each line comes from: struct range, in the arena; line 0: no origin.
bool compilation_emit_cuda(struct compilation *c, struct text *out, struct list *lines);

// Makes the launch plan of the lowered kernels: the one that stands as comments in front of the PTX. `plan`
// is of plan_init; the caller destroys it either way.
bool compilation_plan(struct compilation *c, struct plan *plan);

// All of it: parses the files (const char *), runs what `kind` needs, emits.
bool compilation_run(struct compilation *c, const struct list *paths, enum emit_kind kind, struct text *out);

// The dump after a pass: IR text under a heading that names the pass, which the reader takes for a comment.
void compilation_dump(const struct compilation *c, const char *pass, struct text *out);
// Whether `name` is `check` or a pass of pass_table.
bool pipeline_has_pass(const char *name);
// Adds the time since `start` (pipeline_now) to a phase.
void pipeline_count(struct compilation *c, const char *phase, double start);
double pipeline_now(void); // seconds, monotonic

#endif

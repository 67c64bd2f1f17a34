// A function of C or C++ as redc lift sees it: what grammar/lift.cpp makes of Clang's nodes. Nothing of Clang is in it.
//
// Conversions that C makes silently are written out as HOST_CAST, compound assignments as plain ones, conditions are bool. What
// cannot be lifted whatever stands around it (a call, a break, a local array) is refused when the tree is made.
#ifndef RED_GRAMMAR_LIFT_TREE_H
#define RED_GRAMMAR_LIFT_TREE_H

#include "compiler/ir.h"

struct host_expr;

// A parameter or a local variable.
struct host_var {
  const char *name;
  struct range range;
  enum type type;     // of the value, or of an element
  bool is_parameter;
  bool is_array;      // parameters only: A[i], A[i][j], ...
  bool is_pointer;    // is_array: declared as a pointer or with an empty first bound; dims.at[0] is NULL
  bool is_restrict;   // is_array
  struct list dims;   // is_array: struct host_expr; NULL where the declaration does not say
  // Scratch of the analysis:
  bool is_written;       // an array that the function assigns to
  struct lift_symbol *symbol;
};

enum host_expr_kind {
  HOST_INT,    // integer, of an integer type or bool
  HOST_FLOAT,  // number
  HOST_VAR,    // var
  HOST_ACCESS, // var [ args... ]
  HOST_OP,     // op (an operation of a value, OP_ADD for example) of args; comparisons and logic are bool
  HOST_SELECT, // args[0] ? args[1] : args[2]
  HOST_CAST,   // args[0] converted to type
};
struct host_expr {
  enum host_expr_kind kind;
  struct range range;
  enum type type;
  int64_t integer;
  double number;
  enum op op;
  struct host_var *var;
  struct list args; // struct host_expr
};

enum host_stmt_kind {
  HOST_BLOCK,  // body
  HOST_DECLARE, // var, value or NULL
  HOST_ASSIGN, // target (HOST_VAR or HOST_ACCESS) = value
  HOST_FOR,    // for (var = lo; var < hi; var += step) body; step negative: var > hi
  HOST_IF,     // if (value) body else otherwise
};
struct host_stmt {
  enum host_stmt_kind kind;
  struct range range;
  struct host_var *var;
  struct host_expr *target, *value;
  struct host_expr *lo, *hi;
  int64_t step;                // never 0
  struct list body, otherwise; // struct host_stmt
};

// One directive of `#pragma red`: its text in the language, without the semicolon.
struct host_pragma {
  const char *text;
  struct range range;
};

struct host_function {
  const char *name;
  struct range range;       // of the name
  struct list parameters;   // struct host_var
  struct list body;         // struct host_stmt
  struct list pragmas;      // struct host_pragma: directives
  bool reassociates;        // #pragma red reassociate
  bool is_refused;          // an error was reported
};

// How the host source is read.
struct host_options {
  struct list arguments; // const char *: for Clang: -I, -D, -std and the like
  const char *build;     // -p: where compile_commands.json is; NULL: none
};

#ifdef __cplusplus
extern "C" {
#endif

// grammar/lift.cpp: reads source `file` of `diag`, whose path is `path`, and appends its marked functions (struct host_function) to
// `functions`. False after an error of Clang or of the arguments; refusals of functions are reported and marked, the rest is read.
bool host_read(struct diag *diag, const char *path, uint32_t file, const struct host_options *options, struct list *functions);

#ifdef __cplusplus
}
#endif
#endif

// CUDA kernels as `redc inspect` sees them: what Clang's nodes become at the door, in plain C structs.
//
// Everything lives in one arena. Expressions are trees in the order in which they stand; casts that change no value are left out.
// What has no place in the analysis is EXPR_UNKNOWN with its operands, so that every access below it is still seen.
#ifndef RED_CODEGEN_INSPECT_MODEL_H
#define RED_CODEGEN_INSPECT_MODEL_H

#ifdef __cplusplus
extern "C" {
#endif

#include "compiler/diag.h"

enum cuda_kind { CUDA_VOID, CUDA_INTEGER, CUDA_FLOAT, CUDA_POINTER, CUDA_RECORD };
struct cuda_type {
  enum cuda_kind kind;
  uint32_t bytes;   // of a value; an array's: all of it
  uint32_t pointee; // bytes of an element: of a pointer or an array
  bool is_signed, is_volatile, is_const, is_restrict, is_array;
  const char *spelling;
};

enum cuda_space { SPACE_LOCAL, SPACE_SHARED, SPACE_PARAMETER, SPACE_DEVICE };
struct cuda_variable {
  const char *name;
  struct cuda_type type;
  enum cuda_space space;
  bool is_dynamic; // extern __shared__
  uint32_t number; // among those of the module
  struct range range;
};

// Operators: O(NAME, spelling).
#define CUDA_OPS(O)                                                                                                            \
  O(ADD, "+") O(SUB, "-") O(MUL, "*") O(DIV, "/") O(REM, "%") O(SHL, "<<") O(SHR, ">>") O(AND, "&") O(OR, "|") O(XOR, "^")     \
  O(LT, "<") O(LE, "<=") O(GT, ">") O(GE, ">=") O(EQ, "==") O(NE, "!=") O(LAND, "&&") O(LOR, "||") O(NEG, "-") O(NOT, "~")     \
  O(LNOT, "!") O(COMMA, ",")
enum cuda_op {
#define O(name, spelling) CUDA_##name,
  CUDA_OPS(O)
#undef O
      CUDA_NO_OP
};

enum cuda_expr_kind {
  EXPR_INTEGER,  // integer
  EXPR_VARIABLE, // variable
  EXPR_BUILTIN,  // builtin
  EXPR_UNARY,    // op, a
  EXPR_BINARY,   // op, a, b
  EXPR_ASSIGN,   // a = b, or a op= b
  EXPR_STEP,     // ++ and --: op ADD or SUB, a; is_postfix
  EXPR_CHOICE,   // a ? b : c
  EXPR_CAST,     // a, to the type
  EXPR_CALL,     // name or function; operands
  EXPR_INDEX,    // a[b]
  EXPR_DEREF,    // *a
  EXPR_ADDRESS,  // &a
  EXPR_MEMBER,   // a.name
  EXPR_UNKNOWN,  // operands
};
enum cuda_builtin { BUILTIN_THREAD, BUILTIN_BLOCK, BUILTIN_BLOCK_DIM, BUILTIN_GRID_DIM, BUILTIN_WARP_SIZE };

struct cuda_function;
struct cuda_expr {
  enum cuda_expr_kind kind;
  enum cuda_op op;
  enum cuda_builtin builtin;
  uint32_t dimension; // of a builtin: 0 x, 1 y, 2 z
  bool is_postfix;
  struct cuda_type type;
  struct range range;
  int64_t integer;
  const char *name;
  struct cuda_variable *variable;
  struct cuda_function *function; // of a call, where its body is known
  struct cuda_expr *a, *b, *c;
  struct cuda_expr **operands;
  uint32_t operand_count;
};

enum cuda_stmt_kind { STMT_EXPR, STMT_DECLARE, STMT_IF, STMT_LOOP, STMT_BLOCK, STMT_RETURN, STMT_BREAK, STMT_CONTINUE };
struct cuda_stmt {
  enum cuda_stmt_kind kind;
  struct range range;
  struct cuda_expr *expr;         // value, condition (NULL: true), returned or initial value
  struct cuda_variable *variable; // DECLARE
  struct cuda_stmt *first;        // LOOP: what stands in front
  struct cuda_expr *step;         // LOOP
  struct cuda_stmt *body, *other; // IF, LOOP
  struct list stmts;              // BLOCK: struct cuda_stmt
  bool tests_last;                // LOOP: do ... while
};

struct cuda_function {
  const char *name;
  struct range range;
  bool is_kernel;
  struct list parameters; // struct cuda_variable
  struct cuda_stmt *body;
  int64_t bound_threads, bound_blocks; // __launch_bounds__; 0: not given
};

// A launch in host code whose grid.y or grid.z is no constant below 65536.
struct cuda_launch {
  const char *kernel;
  struct range range;
  char dimension; // 'y', 'z'
  const char *text;
};

struct cuda_module {
  struct list functions; // struct cuda_function, kernels and others with a body
  struct list variables; // struct cuda_variable, all
  struct list launches;  // struct cuda_launch
};

struct inspect_request {
  const char *path, *name; // the file, and how messages call it
  uint32_t file;           // its source in diag
  const char *const *arguments; // more of the compiler: -I, -D, --cuda-path=
  uint32_t argument_count;
};
// Reads CUDA through Clang, without a toolkit (codegen/inspect.cpp). False after an error.
bool inspect_read(struct diag *diag, const struct inspect_request *request, struct cuda_module *module);

#ifdef __cplusplus
}
#endif
#endif

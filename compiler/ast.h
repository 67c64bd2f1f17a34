// The syntax tree of a .red file: what the parser builds and `check` reads. Names are not resolved here.
//
// Nodes live in the compilation's arena. Names are interned nowhere: compare with strcmp. Every node has its range.
// `depth` of an expression or statement is 1 + the largest depth below; the parser refuses more than AST_MAX_DEPTH, so
// that recursion over a tree is bounded.
#ifndef RED_COMPILER_AST_H
#define RED_COMPILER_AST_H

#include "compiler/diag.h"

enum { AST_MAX_DEPTH = 2000 };

struct ast_name {
  const char *text;
  struct range range;
};

// Operators, in the order of binding, loosest first: X(NAME, spelling, precedence).
// C's, but & ^ | bind tighter than comparisons.
#define AST_BINARY_OPERATORS(X)                                                                                      \
  X(OR_ELSE, "||", 1) X(AND_THEN, "&&", 2)                                                                           \
  X(EQ, "==", 3) X(NE, "!=", 3) X(LT, "<", 4) X(LE, "<=", 4) X(GT, ">", 4) X(GE, ">=", 4)                            \
  X(BIT_OR, "|", 5) X(BIT_XOR, "^", 6) X(BIT_AND, "&", 7) X(SHL, "<<", 8) X(SHR, ">>", 8)                            \
  X(ADD, "+", 9) X(SUB, "-", 9) X(MUL, "*", 10) X(DIV, "/", 10) X(MOD, "%", 10)
#define AST_UNARY_OPERATORS(X) X(NEG, "-") X(NOT, "!") X(BIT_NOT, "~")

enum ast_binary_op {
#define X(name, spelling, precedence) AST_##name,
  AST_BINARY_OPERATORS(X)
#undef X
};
enum ast_unary_op {
#define X(name, spelling) AST_##name,
  AST_UNARY_OPERATORS(X)
#undef X
};

enum ast_expr_kind {
  AST_INT,     // integer
  AST_FLOAT,   // number (and its spelling in name)
  AST_NAME,    // name
  AST_ACCESS,  // name [ args... ]; `P[]` has none
  AST_CALL,    // name ( args... ): functions and conversions
  AST_FIELD,   // args[0] . name
  AST_UNARY,   // unary, args[0]
  AST_BINARY,  // binary, args[0], args[1]
  AST_TERNARY, // args[0] ? args[1] : args[2]
  AST_TUPLE,   // ( args..., ) with two or more
  AST_REDUCE,  // name ( axes if guard; init = init ) body: args[0] is the body
  AST_BLOCK,   // { lets... args[0] }
};

struct ast_axis { // `j in m`, `j in lo..hi`
  struct ast_name name;
  struct ast_expr *lo; // NULL: 0
  struct ast_expr *hi; // the extent where lo is NULL
  struct range range;
};

struct ast_let { // let a = value;  let (a, _, b) = value;
  struct list names; // struct ast_name; "_" discards
  bool is_tuple;     // written with parentheses
  struct ast_expr *value;
  struct range range;
};

struct ast_expr {
  enum ast_expr_kind kind;
  struct range range;
  uint32_t depth;
  struct ast_name name; // see the kinds
  struct list args;     // struct ast_expr
  uint64_t integer;
  double number;
  enum ast_unary_op unary;
  enum ast_binary_op binary;
  struct list axes;       // AST_REDUCE: struct ast_axis
  struct ast_expr *guard; // AST_REDUCE, may be NULL
  struct ast_expr *init;  // AST_REDUCE, may be NULL
  struct list lets;       // AST_BLOCK: struct ast_let
};

enum ast_stmt_kind { AST_FOR, AST_IF, AST_LET, AST_ASSIGN };

// What an assignment does: `=` or a fold. X(NAME, spelling).
#define AST_ASSIGN_OPERATORS(X)                                                                                      \
  X(SET, "=") X(ADD, "+=") X(SUB, "-=") X(MUL, "*=") X(AND, "&=") X(OR, "|=") X(XOR, "^=") X(MIN, "min=")            \
  X(MAX, "max=") X(FMIN, "fmin=") X(FMAX, "fmax=")
enum ast_assign_op {
#define X(name, spelling) AST_ASSIGN_##name,
  AST_ASSIGN_OPERATORS(X)
#undef X
};

struct ast_stmt {
  enum ast_stmt_kind kind;
  struct range range;
  uint32_t depth; // 1 + the largest depth of statements and expressions below
  struct list axes;             // AST_FOR: struct ast_axis
  struct ast_expr *condition;   // AST_IF
  struct list body;             // AST_FOR, AST_IF: struct ast_stmt
  struct list otherwise;        // AST_IF: struct ast_stmt
  struct ast_let *let;          // AST_LET
  struct list targets;          // AST_ASSIGN: struct ast_expr of kind AST_ACCESS, or AST_NAME "_"
  bool is_tuple;                // AST_ASSIGN: targets written with parentheses
  enum ast_assign_op operation; // AST_ASSIGN
  struct ast_expr *value;       // AST_ASSIGN
};

struct ast_param { // A: f32[n, m] strided(p, 1);  alpha: f32;  n: size
  struct ast_name name, type;
  bool is_tensor;
  struct list dims;    // struct ast_expr
  bool is_strided;     // `strided`
  bool has_strides;    // `strided(...)`
  struct list strides; // struct ast_expr; NULL entries for `_`
  struct range range;
};

struct ast_kernel {
  struct ast_name name;
  struct list type_params; // struct ast_name
  struct list inputs, outputs; // struct ast_param
  struct list body;            // struct ast_stmt
  struct range range;
};

struct ast_component {
  struct ast_name name, type;
};

struct ast_reducer {
  struct ast_name name;
  bool is_ordered;
  struct list type_params; // struct ast_name
  struct list components;  // struct ast_component
  struct ast_expr *identity;
  struct list combine_params; // struct ast_name: two
  struct ast_expr *combine;   // AST_BLOCK
  struct list update_params;  // struct ast_name: state, then operands
  struct ast_expr *update;    // AST_BLOCK or NULL
  struct range range;
};

struct ast_ref { // `j`, `peak.j`, `S.ii`
  struct ast_name stage; // text NULL: none
  struct ast_name axis;
  struct range range;
};

enum ast_directive_kind {
  AST_SPLIT,     // refs[0]; value: factor (by) or parts (into, is_into); names: outer, inner; tensor: along which pieces lie, or text NULL
  AST_FUSE,      // refs: two or more; names[0]
  AST_TILE,      // refs; values: a factor each; names: outers, then inners
  AST_REORDER,   // refs
  AST_BIND,      // refs[0]; word: "block" or "thread", dimension 'x' 'y' 'z'
  AST_UNROLL,    // refs[0]; value: factor or NULL
  AST_VECTORIZE, // refs
  AST_STAGE,     // `stage X at t in shared as S unit 2 along ii swizzle 5,0,6 depth 2 by copy`
  AST_CACHE,     // names[0]; word: evict_first evict_last no_allocate streaming
  AST_BLOCKS,    // value
  AST_JOIN,      // names
  AST_ALLREDUCE, // refs; word: shuffle tree auto
  AST_COMBINE,   // refs[0]; word: last_block flag second_kernel atomic
};

struct ast_directive {
  enum ast_directive_kind kind;
  struct range range;
  struct list refs;   // struct ast_ref
  struct list names;  // struct ast_name
  struct list values; // struct ast_expr
  struct ast_expr *value;
  bool is_into;
  struct ast_name word; // see the kinds; AST_STAGE: "registers" or "shared"
  char dimension;
  struct ast_name tensor; // AST_STAGE: X; AST_SPLIT: after `along`, or text NULL
  // AST_STAGE only:
  struct ast_ref at;      // t
  struct ast_name alias;  // S; text NULL: none
  struct ast_expr *unit, *phase, *pad, *depth; // NULL: not given; phase: after `along`
  struct ast_ref along, pad_along;     // of unit and pad; axis.text NULL: none
  struct list swizzle;                 // struct ast_expr: B, M, S, or none
  struct ast_name by;                  // copy cp_async bulk; text NULL: none
};

struct ast_schedule {
  struct ast_name kernel;
  struct ast_name name;  // after `as`; text NULL: none
  struct ast_expr *when; // NULL: always
  struct list directives; // struct ast_directive
  struct range range;
};

struct ast_file {
  struct list kernels;   // struct ast_kernel
  struct list reducers;  // struct ast_reducer
  struct list schedules; // struct ast_schedule
};

// grammar/red.y: parses source `file` of `diag`, appends to `ast`. Returns whether there was no error. Syntax errors are
// reported to `diag`, several a file (it resumes at the next `;`, `}` or item). ast lives in diag->arena.
bool red_parse(struct diag *diag, uint32_t file, struct ast_file *ast);

// compiler/ast_print.c: prints the tree as .red text that parses to the same tree.
void ast_print(const struct ast_file *ast, struct text *out);
void ast_print_expr(const struct ast_expr *expr, struct text *out);
void ast_print_directive(const struct ast_directive *directive, struct text *out); // with its ';'
const char *ast_assign_spelling(enum ast_assign_op operation);
const char *ast_binary_spelling(enum ast_binary_op op);
const char *ast_unary_spelling(enum ast_unary_op op);

#endif

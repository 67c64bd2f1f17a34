// The reader of IR text, shared by read*.c; nobody else includes it.
//
// The first error ends the reading: it is reported, `failed` is set and the rest of the text reads as its
// end, so that every loop stops. Functions that give a pointer then give NULL.
#ifndef RED_COMPILER_READ_H
#define RED_COMPILER_READ_H

#include "compiler/ir_text.h"

enum token_kind {
  TOKEN_END,
  TOKEN_NAME,
  TOKEN_STRING,
  TOKEN_NUMBER,
  TOKEN_RANGE,
  TOKEN_DOTS,
  TOKEN_PUNCTUATION
};

struct token {
  enum token_kind kind;
  bool is_quoted; // a name in backquotes: never a keyword
  char punctuation;
  const char *text;   // of a name or string, without quotes; of a number, as written
  struct range range; // where it stands in the dump
  struct range place; // RANGE: what it says
};

// Where the scanner stands; a copy can be gone back to.
struct scanner {
  const char *at, *end, *line_start;
  uint32_t line;
  struct token token; // the current one
};

// What a name of a kernel or function stands for: one of these.
struct symbol {
  struct ir_var *var;
  struct ir_mem *mem;
  struct ir_axis *axis; // beside var, for the axes of stages
};

struct reader {
  struct ir_module *module;
  struct arena *arena;
  struct diag *diag;
  uint32_t file;     // of the dump
  struct list files; // of the dump's sources, as numbers in diag
  struct scanner scan;
  struct map operations;    // spelling to 1 + enum op
  struct map reducers;      // struct ir_reducer
  struct list entry_names;  // const char *, declared in the entry being read
  struct map symbols;       // struct symbol, of the kernel or function being read
  struct map stage_vars;    // struct ir_var that stages of the entry being read define
  struct ir_kernel *kernel; // NULL in a reducer
  uint32_t depth;
  bool in_directive; // extent(x) is an expression
  bool failed;
};

// ---- read_scan.c
void read_fail(struct reader *r, struct range range, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// "expected WHAT, found ..." at the current token.
void read_expected(struct reader *r, const char *what);
void read_advance(struct reader *r);
bool read_at_word(const struct reader *r, const char *word);
bool read_at(const struct reader *r, char punctuation);
bool read_accept_word(struct reader *r, const char *word);
bool read_accept(struct reader *r, char punctuation);
void read_expect_word(struct reader *r, const char *word);
void read_expect(struct reader *r, char punctuation);
const char *read_name(struct reader *r, const char *what);
const char *read_string(struct reader *r, const char *what);
uint32_t read_uint(struct reader *r, const char *what);
// A range if one stands here; else one without a place.
struct range read_range(struct reader *r);
// One of `count` words, which may be of the form a.b; `what` names the choice in the message.
uint32_t read_choice(struct reader *r, const char *const *words, uint32_t count, const char *what);
// Counts a level of nesting; false after reporting that there are too many. read_leave ends it.
bool read_enter(struct reader *r);
void read_leave(struct reader *r);

// ---- read_expr.c
struct ir_expr *read_expr(struct reader *r);
// Expressions between brackets, separated by commas.
void read_exprs(struct reader *r, char open, char close, struct list *out);
enum type read_type(struct reader *r);
// Goes past an expression without reading it.
void read_skip_expr(struct reader *r);

// ---- read_stmt.c
// Declares a name; reports one that is taken.
struct symbol *read_declare(struct reader *r, const char *name, struct range place);
struct symbol *read_known(struct reader *r, const char *what);
struct ir_mem *read_known_mem(struct reader *r);
struct ir_reducer *read_known_reducer(struct reader *r);
// `name "label": type @range`. `place` becomes the place of the name in the dump. Not declared yet.
struct ir_var *read_var(struct reader *r, enum ir_var_kind kind, struct range *place);
void read_declare_var(struct reader *r, struct ir_var *var, struct range place);
// A statement's variables have its range where they have none of their own.
void read_inherit_range(struct ir_var *var, struct range around);
void read_vars(struct reader *r, enum ir_var_kind kind, bool declare, struct list *out);
uint32_t read_unroll(struct reader *r);
enum allreduce_form read_form(struct reader *r);
// let x: type = value, behind the keyword. Stages of an entry may define one variable each for itself
// (is_stage).
struct ir_stmt *read_definition(struct reader *r, enum ir_stmt_kind kind, bool is_stage);
// M[indices] = value, behind the keyword.
void read_store(struct reader *r, struct ir_mem **mem, struct list *indices, struct ir_expr **value);
// { statements }
void read_block(struct reader *r, struct list *out);

// ---- read_entry.c
void read_entry(struct reader *r);
struct ir_mem *read_mem(struct reader *r, enum ir_space space);
struct ir_requirement *read_condition(struct reader *r);

#endif

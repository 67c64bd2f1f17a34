// The PTX reader: text to a tree, with every piece in one arena. It checks syntax only; what the names and
// modifiers mean is decode.c's matter. grammar/ptx.l and grammar/ptx.y define ptx_read.
#ifndef RED_SIM_PTX_H
#define RED_SIM_PTX_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_error;

// Memory of one tree: chunks that are freed together. An allocation that fails sets `failed` and leaves
// through `out`, which ptx_read owns: only the reader allocates here.
struct ptx_arena {
  jmp_buf *out;
  struct ptx_chunk *chunks;
  size_t used;
  size_t size;
  bool failed;
};

// Zeroed memory of `bytes`, aligned to 16.
void *ptx_alloc(struct ptx_arena *arena, size_t bytes);
// A copy of `length` bytes with a final zero.
char *ptx_copy(struct ptx_arena *arena, const char *text, size_t length);
void ptx_arena_free(struct ptx_arena *arena);

// A place in the text, both from 1.
struct ptx_place {
  int line;
  int column;
};

enum ptx_operand_kind {
  PTX_NAME,    // a register or symbol: text, plus value as an offset in bytes when it is a symbol
  PTX_INTEGER, // value
  PTX_F32,     // value: the bits of 0fXXXXXXXX
  PTX_F64,     // value: the bits of 0dXXXXXXXXXXXXXXXX or of a decimal constant
  PTX_LIST,    // items: { ... } or ( ... )
  PTX_ADDRESS, // items[0] plus value
  PTX_NOT,     // !items[0]
  PTX_PAIR,    // items[0] | items[1]
  PTX_GENERIC, // generic(text) + value, in initialisers
};

struct ptx_operand {
  enum ptx_operand_kind kind;
  struct ptx_place place;
  const char *text;          // PTX_NAME, PTX_GENERIC
  const char *component;     // "x" of %tid.x; NULL where there is none
  uint64_t value;            // bits, or the offset in bytes of a name or an address
  struct ptx_operand *items; // first of a chain linked by next
  size_t count;              // items in the chain
  struct ptx_operand *next;  // in the list that holds this operand
  struct ptx_operand *last;  // end of the chain that starts here, kept up to date in its first element only
};

// One dotted word of an instruction or a declaration, without its dot; .align carries its value.
struct ptx_dot {
  const char *text;
  uint64_t value;
  struct ptx_dot *next;
  struct ptx_dot *last;
};

struct ptx_instruction {
  const char *opcode;
  struct ptx_dot *modifiers;
  const char *guard; // the predicate after @, or NULL
  bool guard_is_negated;
  struct ptx_operand *operands;
  size_t operand_count;
};

// A variable of any state space: registers (name<count> declares count of them), parameters, module
// variables.
struct ptx_variable {
  struct ptx_place place;
  const char *space;    // "reg", "param", "local", "shared", "global", "const"
  const char *linkage;  // "extern", "visible", "weak", "common", or NULL
  struct ptx_dot *dots; // type, vector length, alignment, pointer attributes
  const char *name;
  uint64_t range; // N of name<N>; 0 for one variable
  bool has_range;
  bool is_array;
  bool is_open_array;  // name[]
  bool is_overflowing; // the product of the dimensions does not fit
  uint64_t elements;   // product of the dimensions; 1 for a scalar
  struct ptx_operand *initial;
  struct ptx_variable *next;
  struct ptx_variable *last;
};

enum ptx_statement_kind {
  PTX_INSTRUCTION,
  PTX_LABEL,
  PTX_VARIABLE,
  PTX_OPEN,    // {
  PTX_CLOSE,   // }
  PTX_TARGETS, // label: .branchtargets a, b;
  PTX_PROTOTYPE,
};

struct ptx_function;

struct ptx_statement {
  enum ptx_statement_kind kind;
  struct ptx_place place;
  int loc; // index into ptx_unit.locs of the last .loc, or -1
  const char *label;
  struct ptx_instruction *instruction;
  struct ptx_variable *variables;
  struct ptx_operand *targets;
  struct ptx_function *prototype;
  struct ptx_statement *next;
  struct ptx_statement *last;
};

// .maxntid, .reqntid, .minnctapersm, .maxnreg and others with up to three numbers.
struct ptx_tuning {
  const char *text;
  uint64_t value[3];
  int count;
  struct ptx_place place;
  struct ptx_tuning *next;
  struct ptx_tuning *last;
};

struct ptx_function {
  struct ptx_place place;
  bool is_entry;
  bool has_body;
  const char *linkage;
  const char *name;
  struct ptx_variable *results;
  struct ptx_variable *parameters;
  struct ptx_tuning *tuning;
  struct ptx_statement *body;
  struct ptx_function *next;
};

// A .loc: file number, line and column, and where it was inlined (file 0 when it was not).
struct ptx_loc {
  uint32_t file;
  uint32_t line;
  uint32_t column;
  uint32_t inlined_file;
  uint32_t inlined_line;
  uint32_t inlined_column;
};

struct ptx_file {
  uint64_t number;
  const char *name;
  struct ptx_file *next;
};

// Everything one text holds.
struct ptx_unit {
  struct ptx_arena arena;
  int version_major;
  int version_minor;
  const char *target;
  uint64_t address_size;
  struct ptx_function *functions;
  struct ptx_function *last_function;
  struct ptx_variable *variables;
  struct ptx_file *files;
  struct ptx_loc *locs;
  size_t loc_count;
  size_t loc_room;
  int loc; // the one in force, or -1
  struct sim_error *error;
  bool failed; // error holds the first message
};

// Reads `length` bytes. On success returns the tree, to be freed with ptx_unit_free; else NULL, with the
// first error's line, column and message in *error.
struct ptx_unit *ptx_read(const char *text, size_t length, struct sim_error *error);
void ptx_unit_free(struct ptx_unit *unit);

// Records the first error of a unit; later ones are dropped.
#if defined __GNUC__
__attribute__((format(printf, 3, 4)))
#endif
void ptx_fail(struct ptx_unit *unit, struct ptx_place place, const char *format, ...);

// Constructors that grammar/ptx.y calls, one for each production. A list is a chain whose first element knows
// the last; *_append(list, item) returns the first element.
struct ptx_operand *ptx_operand_new(struct ptx_unit *unit, struct ptx_place place, enum ptx_operand_kind kind,
                                    const char *text, uint64_t value);
struct ptx_operand *ptx_operand_wrap(struct ptx_unit *unit, struct ptx_place place,
                                     enum ptx_operand_kind kind, struct ptx_operand *items, uint64_t value);
struct ptx_operand *ptx_operand_append(struct ptx_operand *list, struct ptx_operand *item);
struct ptx_dot *ptx_dot_append(struct ptx_unit *unit, struct ptx_dot *list, const char *text, uint64_t value);
struct ptx_variable *ptx_variable_new(struct ptx_unit *unit, struct ptx_place place, const char *name);
struct ptx_variable *ptx_variable_dimension(struct ptx_variable *variable, bool is_open, uint64_t extent);
struct ptx_variable *ptx_variable_append(struct ptx_variable *list, struct ptx_variable *item);
struct ptx_variable *ptx_variable_finish(struct ptx_variable *list, const char *linkage, const char *space,
                                         struct ptx_dot *dots);
struct ptx_statement *ptx_statement_new(struct ptx_unit *unit, struct ptx_place place,
                                        enum ptx_statement_kind kind);
struct ptx_statement *ptx_statement_append(struct ptx_statement *list, struct ptx_statement *item);
struct ptx_tuning *ptx_tuning_append(struct ptx_tuning *list, struct ptx_tuning *item);
struct ptx_function *ptx_function_new(struct ptx_unit *unit, struct ptx_place place, bool is_entry,
                                      struct ptx_variable *results, const char *name,
                                      struct ptx_variable *parameters);
void ptx_unit_add_function(struct ptx_unit *unit, struct ptx_function *function, const char *linkage);
void ptx_unit_add_variables(struct ptx_unit *unit, struct ptx_variable *list);
void ptx_unit_add_file(struct ptx_unit *unit, uint64_t number, const char *name);
void ptx_unit_add_loc(struct ptx_unit *unit, struct ptx_loc loc);

#endif

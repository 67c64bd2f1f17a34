// The CUDA backend's own header: what its files share.
//
//   cuda.c           a module: header, helpers, kernels; the text and the range of each line
//   cuda_stmt.c      statements, declarations, comments
//   cuda_expr.c      expressions, with as few parentheses as C needs
//   cuda_number.c    constants and conversions
//   cuda_names.c     names that C++ and CUDA leave free
//   cuda_uses.c      which variables are used, and which are indices
//   cuda_helpers.def device functions printed where used
#ifndef RED_CODEGEN_CUDA_H
#define RED_CODEGEN_CUDA_H

#include "codegen/codegen.h"

enum cuda_helper {
#define H(name, needs, code) CUDA_##name,
#include "codegen/cuda_helpers.def"
#undef H
  CUDA_HELPER_COUNT
};

// How an expression's place binds, loosest first: what stands there is put in parentheses when it binds less.
enum cuda_place {
  PLACE_ANY,
  PLACE_CONDITION, // ?:
  PLACE_OR_ELSE,   // ||
  PLACE_AND_ALSO,  // &&
  PLACE_OR,
  PLACE_XOR,
  PLACE_AND,
  PLACE_EQUAL,
  PLACE_LESS,
  PLACE_SHIFT,
  PLACE_SUM,
  PLACE_PRODUCT,
  PLACE_UNARY,
  PLACE_PRIMARY,
};

// What is known of a variable of the entry; by ir_var.mark - 1.
struct cuda_var {
  struct ir_var *var;
  const char *name;  // as printed; NULL until declared
  bool is_live;      // something that counts depends on it
  bool is_index;     // computed from coordinates, counters, sizes and constants alone
  bool is_in_offset; // part of an offset or a bound, so that it does not overflow
};

struct cuda_object {
  const struct ir_mem *mem;
  const char *name;
  bool is_loaded; // by the entry
  bool is_constant; // nothing writes it
};

struct cuda {
  struct pass_context *context;
  const struct ir_kernel *kernel;
  const struct ir_entry *entry;
  struct text text;                // finished lines of kernels
  struct list lines;               // struct range: one for each of them
  struct text line;                // the line being written
  int depth;                       // of indentation
  struct range here;               // of the line being written
  uint32_t shown_file, shown_line; // the source line that was last shown as a comment
  struct list shown;               // struct range: lines shown in this entry
  bool helpers[CUDA_HELPER_COUNT]; // to be printed
  struct list wides;               // const char *: structs of wide accesses, to be printed
  bool hex;                        // print unsigned constants as bits
  bool in_comparison;              // with an index
  struct list vars;                // struct cuda_var
  struct list objects;             // struct cuda_object
  struct list products;            // struct ir_expr: those that are part of an offset
  struct map names;                // printed in this entry
  struct map globals;              // kernels printed
};

void cuda_line_end(struct cuda *cg);

void cuda_entry(struct cuda *cg, const struct ir_kernel *kernel, const struct ir_entry *entry);

// Finds the variables of the entry, what is live and what is an index.
void cuda_find_uses(struct cuda *cg, const struct list *block);
struct cuda_var *cuda_var(struct cuda *cg, struct ir_var *var);
const struct cuda_object *cuda_object(struct cuda *cg, const struct ir_mem *mem);
// Whether a sum or product of an index type cannot overflow, so that it is printed as it is.
bool cuda_is_plain(struct cuda *cg, const struct ir_expr *e, bool in_offset);

// A name like `label` that no keyword, macro or function has, new among `taken`, which gets it.
const char *cuda_name(struct cuda *cg, struct map *taken, const char *label, const char *fallback);

// Appends an expression to cg->line. exposed: its value may reach a sum, so a product must not stay open to
// fusing.
void cuda_expr(struct cuda *cg, const struct ir_expr *e, enum cuda_place place, bool exposed);
// An offset in elements.
void cuda_offset(struct cuda *cg, const struct ir_expr *e);
// A bound of a loop: no index in it overflows.
void cuda_bound(struct cuda *cg, const struct ir_expr *e);
// The value of a variable. trusted: one that was of type index, in which nothing overflows.
void cuda_value(struct cuda *cg, const struct ir_expr *e, bool in_offset, bool trusted);
void cuda_constant(struct cuda *cg, const struct ir_expr *e, enum cuda_place place, bool is_mask);
void cuda_convert(struct cuda *cg, const struct ir_expr *e, enum cuda_place place);
void cuda_bitcast(struct cuda *cg, const struct ir_expr *e, enum cuda_place place);
// Functions for the accesses of objects whose cache hint the target knows; `bytes` of type `type`.
bool cuda_has_hint(const struct cuda *cg, const struct ir_mem *mem);
const char *cuda_hinted_load(struct cuda *cg, const struct ir_mem *mem, bool is_constant, const char *type, uint32_t bytes);
const char *cuda_hinted_store(struct cuda *cg, const struct ir_mem *mem, const char *type, uint32_t bytes);
// The function that copies so many bytes of `source` to shared memory asynchronously: void *to, const void *from.
const char *cuda_copy(struct cuda *cg, const struct ir_mem *source, uint32_t bytes);
const char *cuda_helper(struct cuda *cg, enum cuda_helper helper);
// "int"; in memory a bool is "unsigned char".
const char *cuda_type(enum type type);
const char *cuda_memory_type(enum type type);

#endif

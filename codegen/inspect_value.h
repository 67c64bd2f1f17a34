// Values in redc inspect: an integer a thread, as far as it is known.
//
// A cell is c + symbol: symbol 0 is nothing, so that the value is c; another one stands for something that is not known, the same
// wherever the symbol is the same. So a difference between lanes is known even where a base is not. VARYING is not known and not
// comparable. Symbols are interned: the same operation on the same operands gives the same symbol.
#ifndef RED_CODEGEN_INSPECT_VALUE_H
#define RED_CODEGEN_INSPECT_VALUE_H

#include "codegen/inspect_model.h"

#define SYMBOL_VARYING UINT32_MAX

struct cell {
  int64_t c;
  uint32_t symbol;
};

enum value_flag {
  VALUE_ACTIVEMASK = 1, // made from __activemask()
  VALUE_SHIFT = 2,      // made by a shift of 32 or more
  VALUE_OVERFLOW = 4,   // passed 32 bits
  VALUE_VOTE = 8,       // made by a vote or match: names lanes that are known to come
};

// Never changed once made.
struct value {
  struct cell *cells; // one, or one a thread
  bool is_uniform;    // one
  unsigned flags;
  struct range blame;                // where the flags come from
  const struct cuda_variable *base;  // what an address points into; NULL: not known
  bool is_bounded;                   // lo and hi hold
  int64_t lo, hi;                    // over all threads of all blocks
};

enum symbol_op { SYMBOL_FRESH = 1000, SYMBOL_SCALED, SYMBOL_LOAD, SYMBOL_MERGE, SYMBOL_CAST };
struct symbol {
  int op; // enum cuda_op or symbol_op
  struct cell a, b;
};
struct values {
  struct arena *arena;
  uint32_t threads;
  struct symbol *symbols;
  uint32_t symbol_count, symbol_capacity;
  uint32_t *buckets, bucket_count;
  uint64_t fresh;
  size_t cells_made;
  struct cell *spare; // for a thread each, not in use; NULL: none
  bool is_full; // over a limit: new values are VARYING, and nothing should be concluded from them
};

void values_init(struct values *values, struct arena *arena, uint32_t threads);
uint32_t symbol_intern(struct values *values, int op, struct cell a, struct cell b);
// A new one, known to nobody.
uint32_t symbol_fresh(struct values *values);
// Whether two cells are apart by a multiple of something that is not known, as neighbours in a column are.
bool symbol_is_strided(const struct values *values, uint32_t a, uint32_t b);

struct value *value_new(struct values *values, bool is_uniform);
struct value *value_constant(struct values *values, int64_t c);
struct value *value_unknown(struct values *values); // uniform, fresh
struct value *value_varying(struct values *values);
static inline struct cell value_cell(const struct value *value, uint32_t thread) {
  return value->cells[value->is_uniform ? 0 : thread];
}
// a op b for every thread, in an integer type of `bytes` (0: no wrap).
struct value *value_binary(struct values *values, enum cuda_op op, const struct value *a, const struct value *b,
                           struct cuda_type type);
// The same for two numbers. False where the result is not defined.
bool value_compute(enum cuda_op op, int64_t a, int64_t b, struct cuda_type type, int64_t *out);
struct value *value_convert(struct values *values, const struct value *a, struct cuda_type type);
// `a` where the mask is set, `b` elsewhere.
struct value *value_select(struct values *values, const uint8_t *mask, const struct value *a, const struct value *b);
// What a value is after one of two ways that are not known: the same where both agree.
struct value *value_merge(struct values *values, const struct value *a, const struct value *b);
// What a loop that ran once and changed `before` to `after` makes of it after any number of rounds.
struct value *value_repeat(struct values *values, const struct value *before, const struct value *after);

enum agreement { AGREE_BLOCK, AGREE_WARP, AGREE_NONE }; // the threads of the mask have one value: all, a warp's, no
// A mask of NULL is all threads.
enum agreement value_agreement(const struct value *value, const uint8_t *mask, uint32_t threads);
// Whether it is known for all threads of the mask.
bool value_is_known(const struct value *value, const uint8_t *mask, uint32_t threads);

#endif

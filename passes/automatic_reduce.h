// What the files of schedules of reductions share: the kernel as a chooser sees it, and what each writes.
//   automatic_reduce.c    the choice between them, and what all ask
//   automatic_rows.c      rows whose length is known
//   automatic_staged.c    those copied to shared memory as one run
//   automatic_buckets.c   rows whose length a launch brings
//   automatic_columns.c   outputs side by side
#ifndef RED_PASSES_AUTOMATIC_REDUCE_H
#define RED_PASSES_AUTOMATIC_REDUCE_H

#include "passes/automatic_write.h"

enum {
  LINE = 16,            // bytes of the widest access
  WORD = 4,             // bytes of the narrowest good one
  NOMINAL_SMS = 132,    // where the sizes are known and the device is not
  SPLIT_ELEMENTS = 1 << 18, // fewer are not worth a second step
  HINT_MOST_ROWS = 512 << 20, HINT_MOST_COLUMNS = 192 << 20, // beyond, the hint costs up to 5 %
  HOT_BYTES = 6 << 20,      // what fits into the L2 beside other work: splitting costs more than idle multiprocessors
  MOST_KEPT = 33,           // see reduce_kept_blocks
};

enum reduce_class { CLASS_ROWS, CLASS_GROUP, CLASS_STAGED, CLASS_WARP, CLASS_BLOCK, CLASS_COLUMN, CLASS_BLOCK_SPLIT, CLASS_COLUMN_SPLIT, CLASS_THREAD, CLASS_COUNT };
extern const char *const reduce_class_names[CLASS_COUNT];

struct chooser {
  struct view view;
  struct arena *arena;
  int space;          // of the main access
  struct fused row;   // the reduced axes of that space
  bool fuse_all;
  int vector;         // elements a load along a row
  int bytes;          // of an element of the main access
  int64_t length;     // elements of the fused row; -1: not known
  int64_t rows;       // how many; -1: not known
  const char *length_text;
  bool stages;        // the row is read by several stages
  bool rereads;       // and not by reductions alone that share one loop
};

struct column_shape {
  struct fused kept, reduced;
  int vector;
  int64_t width, batch, depth; // elements side by side, how many such runs, and what each output reduces; -1: not known
};

static inline int64_t divide_up(int64_t a, int64_t b) { return a / b + (a % b != 0); }

static inline int64_t times(int64_t a, int64_t b) { // of sizes; saturates
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static inline int power_below(int64_t value) { // the largest power of two that is at most value, at least 1
  int power = 1;
  while (power <= 1 << 20 && power * 2 <= value) power *= 2;
  return power;
}

static inline int power_above(int64_t value) {
  int power = power_below(value);
  return power < value ? power * 2 : power;
}

static inline int at_most(int64_t value, int most) { return value > most ? most : value < 1 ? 1 : (int)value; }

// Text in the chooser's arena.
const char *reduce_say(struct chooser *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
// "n * h * w"; constants are one factor.
const char *reduce_product(struct chooser *c, const struct list *axes);
// As a factor.
const char *reduce_factor(struct chooser *c, const char *text);
// What a load along a row is.
const char *reduce_loads(struct chooser *c);
// The hint for loads of what is read once: between 16 MB and `most` bytes they gain 2 to 11 % where the cache holds what was written before. NULL: none.
const char *reduce_cache(const struct chooser *c, int64_t most);
// Blocks of `threads` that make `wanted` threads on a multiprocessor, or as many as it can have.
int reduce_room(const struct chooser *c, int wanted, int threads);
// How many blocks of `threads` a multiprocessor must have room for where each thread keeps `words` of what several stages read.
int reduce_kept_blocks(const struct chooser *c, int64_t words, int threads);
// --batch-invariant: nothing that decides on the order of additions may look at how many outputs there are.
bool reduce_is_invariant(const struct chooser *c);
// Whether threads can share the reduction at all.
bool reduce_is_shared(const struct view *view);
// Whether every reduction of the kernel can be split over the grid: one set of axes, no reduction needs another's result, and nothing that
// is stored runs over axes of its own.
bool reduce_can_split(const struct chooser *c);
// So, or in several launches.
bool reduce_can_part(const struct chooser *c);
bool reduce_wants_split(const struct chooser *c, int64_t blocks, int64_t elements);

// automatic_rows.c
enum reduce_class rows_class(const struct chooser *c);
void rows_write(struct chooser *c, enum reduce_class chosen);
// How threads take whole rows.
void rows_short(struct chooser *c, struct rows_form *form);
// Rows of known length of which a launch may bring few: several blocks a row then.
void rows_write_split(struct chooser *c);

// automatic_staged.c
bool staged_fits(struct chooser *c);  // whether blocks of rows are runs of memory
bool staged_wants(struct chooser *c); // and better copied
void staged_write(struct chooser *c);

// automatic_buckets.c
void buckets_write(struct chooser *c);
// --class, where the length is not known.
void buckets_write_forced(struct chooser *c, enum reduce_class forced);

// automatic_columns.c
struct column_shape columns_shape(struct chooser *c);
bool columns_want_split(const struct chooser *c, const struct column_shape *s);
void columns_write(struct chooser *c, const struct column_shape *s, bool is_split);
// Sizes that a launch brings.
void columns_write_buckets(struct chooser *c, const struct column_shape *s);

#endif

// Schedules of reductions: the class by what is reduced fastest, by how long a row is, and by the element's size.
//
//   rows    rows of up to two loads of 16 bytes: a thread a row, several rows a thread
//   group   rows of up to 16 loads: a group of 2 to 16 lanes a row
//   staged  rows one behind another, of a known odd length: copied to shared memory as one run, a thread a row there
//   warp    rows of up to 256 loads: a warp a row, all loads in flight
//   block   longer rows: a block a row
//   column  outputs lie side by side: 16 bytes of outputs a thread, other threads along the reduction
//   block_split, column_split   the same where blocks or columns alone leave multiprocessors idle: several blocks along the reduction
//   thread  everything else: one thread an output
//
// Figures that chose them, on an H200, rows of f32 that are not in the cache: 2^20 rows of 32 elements take 41.3 us with 8 lanes of one load of
// 16 bytes, 42.0 with 4 lanes of two, 49.0 with 2 of four, 50.2 with one of eight; 44.2 with one row a group where two rows take 41.3; 2^20 rows of
// 11 elements 18.5 with 4 lanes of 3 scalars and two rows, 22.5 with one row, 23.9 with neighbouring rows in one thread; rows of 1001 elements take
// the same time with scalar loads, 32 in flight, as with loads of 16 bytes.
#include <string.h>

#include "passes/automatic_write.h"
#include "passes/stage.h"
#include "runtime/plan.h"

enum {
  LINE = 16,            // bytes of the widest access
  WORD = 4,             // bytes of the narrowest good one
  GROUP_LOADS = 16,     // a row of more loads takes a warp
  WARP_LOADS = 256,     // a row of more loads takes a block
  WARP_SCALARS = 2048,  // the same where loads are elements: 16385 rows of 1025 take 18.5 us so, 20.0 a block a row
  NOMINAL_SMS = 132,    // where the sizes are known and the device is not
  SPLIT_ELEMENTS = 1 << 18, // fewer are not worth a second step
  HINT_BYTES = 16 << 20,    // what is read once and is more leaves the cache to others
  HINT_BYTES_COLUMNS = 8 << 20, // 300 x 10000: 8.4 us with it, 9.0 without
  HINT_MOST_ROWS = 512 << 20, HINT_MOST_COLUMNS = 192 << 20, // beyond, the hint costs up to 5 %
  WHOLE_ROW = 128,          // outputs that one block takes side by side
  NARROW_BYTES = 64,        // of outputs a tile: two sectors
  ENOUGH_TILES = 40,        // 1000 x 1000 columns: 2.84 us in 63 tiles, 4.43 split
  MIDDLE_DEPTH = 4096,
  HOT_BYTES = 6 << 20,      // what fits into the L2 beside other work: splitting costs more than idle multiprocessors
};

enum class { CLASS_ROWS, CLASS_GROUP, CLASS_STAGED, CLASS_WARP, CLASS_BLOCK, CLASS_COLUMN, CLASS_BLOCK_SPLIT, CLASS_COLUMN_SPLIT, CLASS_THREAD, CLASS_COUNT };
static const char *const class_names[CLASS_COUNT] = {"rows", "group", "staged", "warp", "block", "column", "block_split", "column_split", "thread"};

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

// --- Numbers ---------------------------------------------------------------------------------------------------------

static int64_t divide_up(int64_t a, int64_t b) { return a / b + (a % b != 0); }

static int64_t times(int64_t a, int64_t b) { // of sizes; saturates
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static int power_below(int64_t value) { // the largest power of two that is at most value, at least 1
  int power = 1;
  while (power <= 1 << 20 && power * 2 <= value) power *= 2;
  return power;
}

static int power_above(int64_t value) {
  int power = power_below(value);
  return power < value ? power * 2 : power;
}

static int at_most(int64_t value, int most) { return value > most ? most : value < 1 ? 1 : (int)value; }

// How many lanes share a row of `loads` loads. Lanes left over cost issue slots, not bandwidth; several loads a lane cost coalescing, where
// they are wide; a shuffle a doubling counts where the loads are single elements.
static int choose_lanes(int64_t loads, bool is_wide) {
  static const int wide_cost[] = {0, 0, 20, 100, 190};
  int best = 1;
  int64_t best_cost = INT64_MAX;
  for (int lanes = 1, doublings = 0; lanes <= 32; lanes *= 2, doublings++) {
    int64_t each = divide_up(loads, lanes), wasted = loads > 1 << 20 ? 0 : 150 * (each * lanes - loads) / loads;
    int64_t cost = is_wide ? wasted + (each <= 4 ? wide_cost[each] : 200 + each) : wasted + 10 * (each - 1) + (each > 6 ? 30 : 0) + 60 * doublings / each + (lanes < 4 ? 50 : 0);
    if (cost > best_cost) continue;
    best = lanes;
    best_cost = cost;
  }
  return best;
}

// --- Rows of known length ----------------------------------------------------------------------------------------------

static const char *say(struct chooser *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static const char *say(struct chooser *c, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const char *text = arena_vprintf(c->arena, format, arguments);
  va_end(arguments);
  return text;
}

static const char *loads_text(struct chooser *c) {
  return c->vector > 1 ? say(c, "loads of %d elements, %d bytes", c->vector, c->vector * c->bytes) : say(c, "loads of an element, %d bytes", c->bytes);
}

// So many groups a block that the device's multiprocessors all get some, where the number of rows is known.
static int spread(const struct chooser *c, int most, int rows_each) {
  if (c->rows < 0) return most;
  return at_most(power_below(c->rows / ((int64_t)NOMINAL_SMS * rows_each)), most);
}

// Short rows of odd lengths that several stages read, and perhaps write, an element at a time: neighbours in memory by more lanes at once, 3 elements each. An H200,
// softmax: 4194305 rows of 5 elements 70.8 us with 2 lanes, 83.2 with 4, 120 with one; 1048577 of 17 58.0 with 8, 72.7 with 4, 85.8 with 16; 262145 of 65 44.4 with 16, 52.5 with 8.
static int kept_lanes(const struct chooser *c, int64_t loads, int lanes) {
  while (c->rereads && c->vector == 1 && c->bytes == WORD && loads >= 5 && lanes < 8 && divide_up(loads, lanes) > 3) lanes *= 2;
  return lanes;
}

static enum class class_of_length(const struct chooser *c) {
  int64_t loads = divide_up(c->length, c->vector), bytes = times(c->length, c->bytes);
  if (times(c->length, c->vector) <= 1 || (bytes < LINE && c->bytes < 4)) return CLASS_ROWS; // narrow elements: loads of one are too many
  if (kept_lanes(c, loads, 1) > 1 && choose_lanes(loads, false) == 1) return CLASS_GROUP;
  if (bytes <= 2 * LINE && (c->vector > 1 || choose_lanes(loads, false) == 1)) return CLASS_ROWS;
  if (c->vector == 1 && choose_lanes(loads, false) == 1) return CLASS_ROWS;
  if (choose_lanes(loads, c->vector > 1) < 32) return CLASS_GROUP;
  int64_t most = c->vector == 1 ? WARP_SCALARS : WARP_LOADS;
  return loads <= most ? CLASS_WARP : CLASS_BLOCK;
}

static void known_rows(struct chooser *c, struct rows_form *form) {
  int64_t loads = divide_up(c->length, c->vector);
  form->lanes = 1;
  form->groups = 256;
  form->rows = loads <= 4 ? 4 : 2;
  if (c->stages || loads > 16) form->rows = 1;
  bool is_small = c->rows >= 0 && c->rows < (int64_t)NOMINAL_SMS * 256 * form->rows;
  if (is_small) form->rows = 1, form->groups = at_most(power_above(c->rows / NOMINAL_SMS), 256) < 32 ? 32 : at_most(power_above(c->rows / NOMINAL_SMS), 256);
  int side = 1; // rows that are whole loads
  while (side < 16 && side * (c->length % LINE) * c->bytes % LINE) side *= 2;
  if (!is_small && times(c->length, c->bytes) < LINE && !c->row.outer.count && (c->rows < 0 || c->rows % side == 0) && c->view.common.count && !c->view.is_dependent) {
    form->are_neighbours = true;
    form->rows = side;
    form->vector = 1;
    form->reason = say(c, "%s elements a row, fewer than 16 bytes: a thread takes %d neighbouring rows", c->length_text, form->rows);
    return;
  }
  form->reason = say(c, "%s elements a row: a thread a row, %d row%s a thread, %s", c->length_text, form->rows, form->rows > 1 ? "s" : "", loads_text(c));
}

// Blocks of `threads` that make `wanted` threads on a multiprocessor, or as many as it can have.
static int room_for(const struct chooser *c, int wanted, int threads) {
  const struct target *target = c->view.a->context->options->target;
  uint32_t sm = target ? target->sm : 80;
  int most = sm == 75 ? 1024 : sm == 86 || sm == 87 || sm == 89 || sm >= 120 ? 1536 : 2048;
  return at_most((wanted < most ? wanted : most) / threads, 32);
}

// A row that several stages read stays in registers, `words` of it in each thread: how many blocks of `threads` a multiprocessor must have room for, so that enough
// is in flight beside what they compute. An H200, softmax: 16384 rows of 1024 elements, 32 words a lane, 33.5 us with room for 1024 threads and 42.3 without; 4096 rows
// of 4096, 16 words a thread, 34.1 with room for 1536, 39.1 for 1024, 38.5 without; 262145 rows of 65, 5 words, 44.4 with room for 2048 and 46.7 without. One word more than 32, for
// rows of an odd length: 16385 rows of 1025 elements 37.7, read twice 58.1; 1025 of 16385 42.4 with 512 threads, 58.2 with 1024 of 17 words.
enum { MOST_KEPT = 33 };
static int kept_blocks(const struct chooser *c, int64_t words, int threads) { return room_for(c, words > 16 ? 1024 : words > 8 ? 1536 : 2048, threads); }

static int64_t words_of(const struct chooser *c, int64_t elements) { return divide_up(times(elements, c->bytes < WORD ? WORD : c->bytes), WORD); }

static void known_group(struct chooser *c, struct rows_form *form) {
  int64_t loads = divide_up(c->length, c->vector);
  int lanes = kept_lanes(c, loads, choose_lanes(loads, c->vector > 1));
  form->lanes = lanes < 2 ? 2 : lanes;
  int64_t each = divide_up(loads, form->lanes);
  form->rows = c->stages ? 1 : each == 1 ? 4 : each <= 3 ? 2 : 1;
  form->groups = 256 / form->lanes;
  int64_t needed = (int64_t)NOMINAL_SMS * form->groups * form->rows;
  if (c->rows >= 0 && c->rows < needed) {
    form->rows = 1;
    form->groups = spread(c, form->groups, 1);
    while (form->groups * form->lanes < 32) form->groups *= 2;
  }
  if (c->rereads) form->blocks = kept_blocks(c, words_of(c, each * c->vector), form->lanes * form->groups);
  form->reason = say(c, "%s elements a row: %d lanes a row, %lld load%s a lane and %d row%s in flight, %s", c->length_text, form->lanes, (long long)each, each == 1 ? "" : "s", form->rows,
                     form->rows == 1 ? "" : "s", loads_text(c));
}

static void known_warp(struct chooser *c, struct rows_form *form) {
  int64_t loads = divide_up(c->length, c->vector), each = divide_up(loads, 32);
  form->lanes = 32;
  form->rows = c->stages ? 1 : each == 1 ? 4 : each <= 3 || (c->vector == 1 && each <= 6) ? 2 : 1;
  if (c->rows >= 0 && c->rows < (int64_t)NOMINAL_SMS * 8 * form->rows) form->rows = 1;
  form->groups = spread(c, 8, form->rows);
  if (form->groups == 1 && c->rows != 1) form->groups = 2;
  if (each > (c->rereads ? MOST_KEPT : 32)) form->flight = 8;
  if (c->rereads && !form->flight) form->blocks = kept_blocks(c, words_of(c, each * c->vector), form->lanes * form->groups);
  form->reason = say(c, "%s elements a row: a warp a row, %lld load%s a lane, %s", c->length_text, (long long)each, each == 1 ? "" : "s", loads_text(c));
}

// Rows too long for registers. An H200: softmax of 257 rows of 65537 elements 74.5 us with 1024 threads, 4 loads in flight and room for two blocks, 92.3 with 512 and 8;
// argmax of 1025 rows of 16385 19.6 us with 512 threads and room for three blocks, 22.0 with 256; sums of 257 rows of 65537 bytes 11.2 us with 16 loads in flight, 15.1 with 8.
static void block_in_flight(const struct chooser *c, struct rows_form *form) {
  bool is_heavy = list_at(&c->view.stages, struct view_stage, 0)->stage->kind == STAGE_REDUCE && list_at(&c->view.stages, struct view_stage, 0)->stage->reducer->identity.count > 1;
  if (c->rereads) {
    form->lanes = 1024;
    form->flight = 4;
    form->blocks = room_for(c, 2048, form->lanes);
  } else if (is_heavy && form->lanes >= 256) {
    form->lanes = 512;
    form->blocks = room_for(c, 1536, form->lanes);
  } else if (c->vector * c->bytes < WORD) {
    form->flight = 16;
  }
}

static void known_block(struct chooser *c, struct rows_form *form) {
  int64_t loads = divide_up(c->length, c->vector);
  form->groups = form->rows = 1;
  form->lanes = at_most(power_above(loads / 4), 256);
  if (c->rows >= 0 && c->rows < NOMINAL_SMS * 2) form->lanes = at_most(power_above(loads / 8), c->rows < NOMINAL_SMS ? 1024 : 512);
  if (form->lanes < 64) form->lanes = 64;
  int64_t each = divide_up(loads, form->lanes);
  if (each > (c->vector == 1 ? 32 : 16)) form->flight = 8;
  // 1024 rows of 16384 elements: 36.8 us with 512 threads and room for two blocks, 47.6 without, 54.7 with 256 threads of 64 words.
  int64_t words = words_of(c, c->length);
  if (c->rereads && words > 32 * 32 && words <= MOST_KEPT * 1024) {
    form->lanes = at_most(power_above(divide_up(words, words > 32 * 512 ? MOST_KEPT : 32)), 1024);
    form->flight = 0;
    each = divide_up(loads, form->lanes);
    form->blocks = kept_blocks(c, words_of(c, each * c->vector), form->lanes);
  }
  if (c->stages && form->flight && divide_up(loads, 1024) * c->vector * (c->bytes < 4 ? 4 : c->bytes) <= 256) { // the row fits into registers
    form->lanes = 1024;
    form->flight = 0;
    each = divide_up(loads, form->lanes);
  }
  if (form->flight) block_in_flight(c, form);
  form->reason = say(c, "%s elements a row: a block of %d threads a row, %lld load%s a thread%s, %s", c->length_text, form->lanes, (long long)each, each == 1 ? "" : "s",
                     form->flight ? say(c, ", %d in flight", form->flight) : "", loads_text(c));
}

static void known_split(struct chooser *c, struct rows_form *form) {
  form->groups = form->rows = 1;
  form->lanes = at_most(power_below(c->length / ((int64_t)c->vector * 8)), 512);
  if (form->lanes < 32) form->lanes = 32;
  form->flight = c->vector * c->bytes < WORD ? 16 : 8;
  form->parts = c->rows == 1 ? 4 : 2;
  if (c->rereads && view_rescales(&c->view) && form->lanes == 512) { // softmax of 17 rows of 1048577 elements: 96.2 us, 124.5 with two blocks a multiprocessor
    form->parts = 8;
    form->blocks = room_for(c, 1536, form->lanes);
    if (c->vector > 1) form->flight = 2;
  }
  form->reason = say(c, "%s elements a row, few rows: several blocks of %d threads a row, %s, %d in flight", c->length_text, form->lanes, loads_text(c), form->flight);
}

// Loads of 16 MB to `most` bytes that are read once gain 2 to 11 % where the cache holds what was written before.
static const char *choose_cache(const struct chooser *c, int64_t most) {
  int64_t each = view_product(&c->view.main->stage->own), bytes;
  if (c->rows < 0 || each < 0 || __builtin_mul_overflow(c->rows, each, &bytes) || __builtin_mul_overflow(bytes, c->bytes, &bytes)) return NULL;
  return bytes >= (most == HINT_MOST_COLUMNS ? HINT_BYTES_COLUMNS : HINT_BYTES) && bytes <= most ? "evict_first" : NULL;
}

static void write_known_rows(struct chooser *c, enum class chosen) {
  struct rows_form form = {.name = class_names[chosen], .vector = c->vector, .rows = 1, .groups = 1, .lanes = 1, .fuse_all = c->fuse_all};
  switch (chosen) {
  case CLASS_ROWS: known_rows(c, &form); break;
  case CLASS_GROUP: known_group(c, &form); break;
  case CLASS_WARP: known_warp(c, &form); break;
  case CLASS_BLOCK: known_block(c, &form); break;
  case CLASS_BLOCK_SPLIT: known_split(c, &form); break;
  case CLASS_STAGED: case CLASS_COLUMN: case CLASS_COLUMN_SPLIT: case CLASS_THREAD: case CLASS_COUNT: break;
  }
  form.cache = choose_cache(c, HINT_MOST_ROWS);
  write_rows(&c->view, &form);
}

// Whether threads can share the reduction at all.
static bool is_shared(const struct view *view) {
  for (int s = 0; s < view->space_count; s++)
    if (view->spaces[s].is_ordered) return false;
  return true;
}

// Whether blocks of rows are runs of memory that one stage reads, each element once, and nothing else moves with the rows and along them.
static bool are_runs(struct chooser *c) {
  enum { ASYNC_SM = 80 };
  const struct view_access *main = c->view.main;
  struct facts *facts = &main->stage->facts;
  if (c->view.a->context->options->target->sm < ASYNC_SM || c->length < 1 || c->row.outer.count || c->stages || c->view.space_count != 1 || !is_shared(&c->view)) return false;
  if (main->is_store || main->mem->is_output || main->mem->is_strided || !c->view.common.count || c->view.is_dependent || main->stage->stage->guards.count) return false;
  struct fused kept = view_fuse(&c->view, main->stage, &c->view.common, false);
  if (kept.outer.count || !kept.is_sorted || !c->row.is_sorted) return false;
  struct poly rest = main->offset;
  const struct list *lists[] = {&c->row.inner, &kept.inner};
  struct poly step = poly_constant(facts, 1); // each axis moves as far as all those inside it
  for (uint32_t l = 0; l < 2; l++)
    for (uint32_t i = lists[l]->count; i-- > 0;) {
      struct ir_axis *axis = lists[l]->at[i];
      struct poly stride, left;
      if (!poly_linear(facts, rest, axis->var, &stride, &left) || !poly_equal(facts, stride, step)) return false;
      rest = left;
      step = poly_mul(facts, step, poly_of(facts, axis->extent));
    }
  if (!poly_is_zero(rest)) return false;
  for (uint32_t i = 0; i < c->view.accesses.count; i++) {
    const struct view_access *access = c->view.accesses.at[i];
    bool moves_along = false, moves_across = false;
    if (access == main) continue;
    if (access->mem == main->mem && access->stage == main->stage && poly_equal(facts, access->offset, main->offset)) continue;
    if (access->mem == main->mem) return false;
    for (uint32_t l = 0; l < 2; l++)
      for (uint32_t k = 0; k < lists[l]->count; k++) {
        struct poly stride = view_stride(&c->view, access, lists[l]->at[k]);
        *(l ? &moves_across : &moves_along) |= !stride.is_valid || !poly_is_zero(stride);
      }
    if (moves_along && moves_across) return false;
  }
  return true;
}

// Rows of an odd number of elements, which loads of 16 bytes do not fit, that come from memory: copies of 16 bytes fit their run. Without the hint that only
// sizes known here allow it gains nothing. An H200, 2^20 rows, staged and with lanes, in parts of the time that reading takes: f32, 25 elements 0.99 and 0.88, 27
// 0.99 and 0.91, 31 1.00 and 0.94, 33 1.00 and 0.95, 37 0.99 and 0.99, 41 0.99 and 0.99, 49 1.00 and 0.83, 57 1.00 and 0.92, 65 1.00 and 0.97, but 21 0.98 and 1.00,
// 75 0.99 and 1.00; f16, 33 0.97 and 0.64, 65 0.95 and 0.59, 127 0.97 and 0.82.
static bool wants_staged(struct chooser *c) {
  int64_t least = c->bytes == 4 ? 23 : 33, most = c->bytes == 4 ? 73 : c->bytes < 4 ? 127 : 39;
  if (c->view.a->context->options->batch_invariant || c->vector > 1 || c->length < least || c->length > most || !choose_cache(c, HINT_MOST_ROWS)) return false;
  return c->rows * c->length * c->bytes % LINE == 0 && are_runs(c);
}

static void write_known_staged(struct chooser *c) {
  struct staged_form form = {.name = class_names[CLASS_STAGED], .tensor = c->view.main->mem->label, .lanes = 1, .rows = 64, .vector = LINE / c->bytes, .read = 1, .fuse_all = c->fuse_all};
  if (c->vector * c->bytes == LINE) form.lanes = 8, form.rows = 32, form.read = c->vector; // a thread a row would read one bank with others
  form.cache = choose_cache(c, HINT_MOST_ROWS);
  form.reason = say(c, "%s elements a row: %d rows are copied to shared memory as one run, %d bytes at a time, %s", c->length_text, form.rows, form.vector * c->bytes,
                    form.lanes == 1 ? "and a thread adds up a row" : say(c, "and %d lanes add up a row", form.lanes));
  write_staged(&c->view, &form);
}

// --batch-invariant: nothing that decides on the order of additions may look at how many outputs there are.
static bool is_invariant(const struct chooser *c) { return c->view.a->context->options->batch_invariant; }

// Whether every reduction of the kernel can be split over the grid: one set of axes, no reduction needs another's result, and nothing that
// is stored runs over axes of its own.
static bool can_split(const struct chooser *c) {
  if (is_invariant(c) && c->view.common.count) return false; // as many blocks as the other rows leave
  for (uint32_t i = 0; i < c->view.stages.count; i++) {
    const struct view_stage *stage = c->view.stages.at[i];
    if (stage->space >= 0 && (stage->space != c->space || stage->stage->kind != STAGE_REDUCE)) return false;
  }
  return view_can_join(&c->view) && !c->view.is_dependent;
}

// Whether it can be split in several launches, a value of the grid ending each: softmax reads three times, and with the whole device.
static bool can_launch(const struct chooser *c) {
  if ((is_invariant(c) && c->view.common.count) || c->view.is_dependent || !c->view.reduces) return false;
  bool reduces = false;
  for (uint32_t i = 0; i < c->view.stages.count; i++) {
    const struct view_stage *stage = c->view.stages.at[i];
    if (stage->space >= 0 && stage->space != c->space) return false;
    if (stage->space < 0 && stage->stage->kind == STAGE_REDUCE) return false;
    reduces |= stage->space >= 0 && stage->stage->kind == STAGE_REDUCE;
  }
  return reduces;
}

static bool can_part(const struct chooser *c) { return can_split(c) || can_launch(c); }

static bool wants_split(const struct chooser *c, int64_t blocks, int64_t elements) {
  if (!can_split(c)) return can_launch(c) && blocks < NOMINAL_SMS && elements >= SPLIT_ELEMENTS && (blocks < NOMINAL_SMS / 2 || times(elements, c->bytes) > HOT_BYTES);
  return blocks < 2 * NOMINAL_SMS && elements >= SPLIT_ELEMENTS && (blocks < NOMINAL_SMS / 2 || times(elements, c->bytes) > HOT_BYTES);
}

// --- Rows whose length a launch brings ------------------------------------------------------------------------------------

struct row_bucket {
  const char *name;
  int loads; // at most so many loads a row; 0: any
  int lanes, groups, rows, steps, flight;
  int parts; // more than 0: only where rows are few and long
  int few;   // more than 0: only where there are at most so many rows a multiprocessor
};
static const struct row_bucket wide_buckets[] = {
    {"rows_1", 1, 1, 256, 4, 1, 0, 0, 0},
    {"rows_2", 2, 1, 256, 4, 2, 0, 0, 0},
    {"group_4", 4, 4, 64, 4, 1, 0, 0, 0},
    {"group_8", 8, 8, 32, 4, 1, 0, 0, 0},
    {"group_16", 16, 16, 16, 4, 1, 0, 0, 0},
    {"warp_few", 256, 32, 2, 1, 8, 0, 0, 4},
    {"warp_32", 32, 32, 8, 4, 1, 0, 0, 0},
    {"warp_64", 64, 32, 8, 2, 2, 0, 0, 0},
    {"warp_128", 128, 32, 8, 1, 4, 0, 0, 0},
    {"warp_256", 256, 32, 8, 1, 8, 0, 0, 0},
    {"block_split", 0, 512, 1, 1, 0, 8, 2, 0},
    {"block", 0, 256, 1, 1, 0, 4, 0, 0},
};
static const struct row_bucket narrow_buckets[] = {
    {"rows_odd", 4, 1, 256, 4, 4, 0, 0, 0},
    {"rows_odd_6", 6, 1, 256, 2, 6, 0, 0, 0},
    {"group_odd_12", 12, 4, 64, 2, 3, 0, 0, 0},
    {"group_odd_24", 24, 8, 32, 2, 3, 0, 0, 0},
    {"group_odd_40", 40, 8, 32, 1, 5, 0, 0, 0}, // an H200 at 33: 38.7 us, with two rows 41.3
    {"group_odd_64", 64, 16, 16, 1, 4, 0, 0, 0},
    {"warp_odd_128", 128, 32, 8, 2, 4, 0, 0, 0},
    {"warp_odd", 2048, 32, 8, 1, 0, 8, 0, 0},
    {"block_split_odd", 0, 512, 1, 1, 0, 8, 4, 0},
    {"block_odd", 0, 256, 1, 1, 0, 8, 0, 0},
};

// "n * h * w"; constants are one factor.
static const char *product_text(struct chooser *c, const struct list *axes) {
  int64_t constant = 1;
  const char *text = "";
  for (uint32_t i = 0; i < axes->count; i++) {
    const struct ir_axis *axis = axes->at[i];
    if (view_count(axis) >= 0) constant = times(constant, view_count(axis));
    else text = say(c, "%s%s%s", text, *text ? " * " : "", view_text(&c->view, axis->extent));
  }
  if (!*text) return say(c, "%lld", (long long)constant);
  return constant == 1 ? text : say(c, "%s * %lld", text, (long long)constant);
}

static const char *parenthesized(struct chooser *c, const char *text) { return strchr(text, ' ') ? say(c, "(%s)", text) : text; }

// What --class takes where the length is not known: no bounds.
static const struct row_bucket forced_buckets[] = {
    [CLASS_ROWS] = {"rows", 0, 1, 256, 1, 0, 4, 0, 0},
    [CLASS_GROUP] = {"group", 0, 8, 32, 2, 0, 2, 0, 0},
    [CLASS_WARP] = {"warp", 0, 32, 8, 1, 0, 8, 0, 0},
    [CLASS_BLOCK] = {"block", 0, 256, 1, 1, 0, 4, 0, 0},
    [CLASS_BLOCK_SPLIT] = {"block_split", 0, 256, 1, 1, 0, 4, 2, 0},
};

static void write_bucket(struct chooser *c, const struct row_bucket *bucket, bool is_wide, const char *name, const char *extra) {
  struct rows_form form = {.name = name, .vector = is_wide ? c->vector : 1, .lanes = bucket->lanes, .groups = bucket->groups, .rows = c->stages ? 1 : bucket->rows,
                           .flight = bucket->flight, .steps = bucket->steps, .parts = bucket->parts, .fuse_all = c->fuse_all};
  if (c->view.is_dependent && !form.flight) form.flight = 4;
  const char *most = bucket->loads ? say(c, "%s <= %d", c->length_text, bucket->loads * form.vector) : "", *multiple = "";
  if (form.vector > 1 && !c->view.a->forced) multiple = say(c, "%s %% %d == 0", c->length_text, form.vector);
  if (form.parts && !c->view.a->forced) { // few and long
    const char *rows = c->view.common.count ? product_text(c, &c->view.common) : NULL, *all = product_text(c, &c->view.main->stage->own);
    most = rows ? say(c, "%s < %ssms && %s * %s >= %d", rows, can_split(c) ? "2 * " : "", all, rows, SPLIT_ELEMENTS) : say(c, "%s >= %d", all, SPLIT_ELEMENTS);
  }
  if (bucket->few && !c->view.a->forced) most = say(c, "%s && %s <= %d * sms", most, product_text(c, &c->view.common), bucket->few);
  form.when = say(c, "%s%s%s%s%s", extra, *extra && (*multiple || *most) ? " && " : "", multiple, *multiple && *most ? " && " : "", most);
  int vector = c->vector;
  c->vector = form.vector;
  form.reason = say(c, "%s elements a row: %d lane%s, %d row%s a block, %s", c->length_text, form.lanes, form.lanes > 1 ? "s" : "", form.groups * form.rows, form.groups * form.rows > 1 ? "s" : "", loads_text(c));
  c->vector = vector;
  write_rows(&c->view, &form);
}

// Rows of 8 bytes, where a launch brings as many: `when m == 2` makes m a constant, and a thread takes neighbouring rows by loads of 16 bytes. An H200, 2^20
// rows of two floats: 6.43 us with two rows a thread, 6.50 with four, and 7.5 with a row a thread.
static void write_near_rows(struct chooser *c) {
  enum { ROW_BYTES = 8 };
  if (c->row.inner.count != 1 || c->row.outer.count || c->bytes > ROW_BYTES || c->stages || !c->view.common.count || c->view.is_dependent || c->vector == 1) return;
  const struct ir_expr *extent = list_at(&c->row.inner, struct ir_axis, 0)->extent;
  while (extent->op == OP_CAST) extent = extent->args[0];
  if (extent->op != OP_VAR) return;
  struct chooser near = *c;
  struct rows_form form = {.name = "rows_near", .lanes = 1, .groups = 1, .fuse_all = c->fuse_all};
  near.length = ROW_BYTES / c->bytes;
  near.vector = near.length > 1 ? (int)near.length : 1;
  known_rows(&near, &form);
  if (!form.are_neighbours) return;
  form.when = say(c, "%s == %d && %s %% %d == 0", c->length_text, (int)near.length, parenthesized(c, product_text(c, &c->view.common)), form.rows);
  write_rows(&c->view, &form);
}

static void write_unknown_rows(struct chooser *c, const char *extra) {
  if (!*extra) write_near_rows(c);
  for (uint32_t wide = c->vector > 1; wide < 2; wide--) { // wide ones first; then, whatever the length, loads of an element
    const struct row_bucket *buckets = wide ? wide_buckets : narrow_buckets;
    size_t count = wide ? sizeof wide_buckets / sizeof *wide_buckets : sizeof narrow_buckets / sizeof *narrow_buckets;
    for (size_t b = 0; b < count; b++) {
      if (c->view.is_dependent && buckets[b].loads) continue; // ranges that depend on a row's place: a block a row
      if (buckets[b].parts && (!can_part(c) || c->rows >= 2 * NOMINAL_SMS)) continue;
      if (buckets[b].loads && !c->view.common.count) continue; // one row
      if (buckets[b].few && is_invariant(c)) continue;
      write_bucket(c, &buckets[b], wide, buckets[b].name, extra);
    }
  }
}

// Rows of known length of which a launch may bring few: several blocks a row then.
static void write_known_split(struct chooser *c) {
  int64_t all = view_product(&c->view.main->stage->own);
  if (c->rows >= 0 || all < SPLIT_ELEMENTS / 16 || !can_part(c) || !c->view.common.count) return;
  const char *rows = product_text(c, &c->view.common), *extra = c->view.extra;
  const char *few = say(c, can_split(c) ? "%s < 2 * sms" : "%s < sms", rows);
  if (all < SPLIT_ELEMENTS) few = say(c, "%s && %s >= %lld", few, rows, (long long)divide_up(SPLIT_ELEMENTS, all));
  c->view.extra = extra ? say(c, "%s && %s", extra, few) : few;
  write_known_rows(c, CLASS_BLOCK_SPLIT);
  c->view.extra = extra;
}

static enum class known_class(const struct chooser *c) {
  int64_t all = view_product(&c->view.main->stage->own);
  enum class chosen = class_of_length(c);
  if (c->view.is_dependent) return CLASS_BLOCK;
  bool is_long = chosen == CLASS_BLOCK || chosen == CLASS_WARP || c->row.outer.count;
  bool is_few = c->rows >= 0 && (c->rows <= NOMINAL_SMS || c->row.outer.count); // more would be split into one piece each
  if (is_long && is_few && all > 0 && wants_split(c, c->rows, times(c->rows, all))) return CLASS_BLOCK_SPLIT;
  return c->view.common.count ? chosen : CLASS_BLOCK;
}

// --- Columns ---------------------------------------------------------------------------------------------------------

struct column_shape {
  struct fused kept, reduced;
  int vector;
  int64_t width, batch, depth; // elements side by side, how many such runs, and what each output reduces; -1: not known
};

static struct column_shape column_shape(struct chooser *c) {
  struct column_shape s = {0};
  s.kept = view_fuse(&c->view, c->view.main->stage, &c->view.common, false);
  s.reduced = view_fuse(&c->view, c->view.main->stage, &c->view.main->stage->own, false);
  s.vector = view_vector(&c->view, -1, &s.kept);
  // Narrow elements are loaded as words, though what is stored of them is wider: sums of bytes in 64 bits, 256 x 65536, 8.5 us so and 10.1 with loads of two.
  int words = WORD / c->bytes;
  int64_t width = view_product(&s.kept.inner);
  if (s.vector > 1 && s.vector < words && c->view.reduces && (width < 0 || width % words == 0)) s.vector = words;
  s.width = view_product(&s.kept.inner);
  s.batch = view_product(&s.kept.outer);
  s.depth = view_product(&s.reduced.inner);
  return s;
}

// 32 lanes, 512 bytes of a row, where much is read; fewer where that leaves too few pieces.
static int column_lanes(const struct chooser *c, const struct column_shape *s) {
  int64_t bytes = times(times(s->batch, s->width), times(s->depth, c->bytes)), vectors = divide_up(s->width, s->vector);
  bool is_narrow = s->vector * c->bytes < LINE;
  int lanes = bytes >= 100 << 20 || is_narrow ? 32 : bytes >= 24 << 20 ? 16 : 8;
  if (vectors > 16 && s->width <= WHOLE_ROW && !(is_narrow && vectors > 32)) return (int)vectors; // whole rows, with no lane left over
  return vectors <= 32 ? power_above(vectors) : lanes;
}

static int64_t tiles_of(const struct column_shape *s, int lanes, int vector) { return times(s->batch < 1 ? 1 : s->batch, divide_up(s->width, (int64_t)lanes * vector)); }

// Lanes along outputs of blocks that share no output: narrower tiles until the device is full.
static int whole_lanes(const struct column_shape *s) {
  int lanes = at_most(power_above(divide_up(s->width, s->vector)), 32);
  while (lanes > 8 && tiles_of(s, lanes, s->vector) < NOMINAL_SMS / 2) lanes /= 2;
  return lanes;
}

static bool wants_split_columns(const struct chooser *c, const struct column_shape *s) {
  if (s->batch < 0 || s->width <= 0 || s->depth <= 0) return false;
  int64_t tiles = times(s->batch, divide_up(s->width, (int64_t)column_lanes(c, s) * s->vector)), all = view_product(&c->view.main->stage->own);
  int64_t narrow = times(s->batch, divide_up(times(s->width, c->bytes), NARROW_BYTES)); // as many tiles as the array has at the least width
  int64_t whole = tiles_of(s, whole_lanes(s), s->vector); // 4096 x 4096: 18.9 us by 128 blocks of whole columns, 20.0 split; 16384 x 1024: 18.8 and 19.9
  bool is_wide = s->vector * c->bytes >= LINE;
  bool is_heavy = c->rereads && view_rescales(&c->view);
  if (is_wide && !is_heavy && ((whole >= NOMINAL_SMS * 7 / 8 && whole <= NOMINAL_SMS) || whole >= 2 * NOMINAL_SMS - 8)) return false;
  if (narrow >= ENOUGH_TILES && times(times(s->batch, s->width), times(all, c->bytes)) <= HOT_BYTES) return false;
  return s->depth >= 64 && wants_split(c, tiles, times(times(s->batch, s->width), all));
}

// Columns of softmax that registers do not hold: an output a thread, and many threads. An H200, 65537 x 257: 92.1 us with 9 blocks a multiprocessor, 107 with 4 or 5, 126 with two
// of 4 outputs a thread; 4097 x 4097: 79.0 with 4, 112 with two.
static void heavy_columns(const struct chooser *c, const struct column_shape *s, struct columns_form *form) {
  form->vector = 1;
  form->lanes = 32;
  form->threads = at_most(power_below(divide_up(s->depth, 8)), 16);
  form->flight = 8;
  form->blocks = room_for(c, 1536, form->lanes * form->threads);
}

static void write_split_columns(struct chooser *c, const struct column_shape *s) {
  struct columns_form form = {.name = "column_split", .vector = s->vector, .lanes = 32, .threads = 8, .flight = 8, .parts = 2};
  if (s->batch > 0 && s->width > 0 && s->depth > 0) {
    form.lanes = column_lanes(c, s);
    bool is_narrow = s->vector * c->bytes < LINE; // more loads in flight for as many bytes
    int block = s->width <= WHOLE_ROW || is_narrow || form.lanes == 8 ? 512 : 256; // 300 x 10000: 8.35 us with 512 threads, 8.5 with 256
    form.threads = at_most(power_below(divide_up(s->depth, 8)), block / form.lanes);
    if (s->width <= WHOLE_ROW) form.parts = form.lanes >= 8 && !is_narrow ? 1 : 3;
    if (s->depth / form.threads >= (form.lanes == 8 ? 128 : 256) && (is_narrow || c->bytes >= 4)) form.flight = 16;
  }
  // 5000 x 20000: 94.7 us with four blocks of 256 threads a multiprocessor, 96.1 with two
  if (s->batch > 0 && s->width > 0 && form.lanes * form.threads == 256 && form.lanes == 32 && times(times(s->batch, s->width), times(s->depth, c->bytes)) >= 100 << 20) form.parts = 4;
  if (c->rereads && view_rescales(&c->view) && s->width >= 32) {
    heavy_columns(c, s, &form);
    form.parts = 8;
  } else if (c->rereads && view_rescales(&c->view) && s->width > 0 && form.lanes * form.threads == 512) { // softmax, 1048576 x 16: 72.3 us, 87.5 with 16 loads of 4 outputs in flight
    if (form.vector > 2) form.lanes *= form.vector / 2, form.threads /= form.vector / 2, form.vector = 2;
    form.flight = 4;
    form.parts = 6;
    form.blocks = room_for(c, 1536, 512);
  }
  if (can_split(c) && c->bytes == 1 && s->vector == 1 && s->batch > 0 && s->width > 1 && s->width < 8 && form.threads >= 16) { // 4194305 x 5 bytes: 13.7 us with 5 lanes, 21.8 with 8
    form.lanes = (int)s->width;
    form.threads = power_below(640 / s->width);
    form.parts = 2;
  }
  form.cache = choose_cache(c, HINT_MOST_COLUMNS);
  form.reason = say(c, "outputs lie side by side, too few to fill the device: %d of them a thread, %d threads along them, %d and several blocks along the reduction, loads of %d bytes, %d in flight",
                    form.vector, form.lanes, form.threads, form.vector * c->bytes, form.flight);
  write_columns(&c->view, &form);
}

// Columns that several stages read, whole in the registers of a block, an output a thread. An H200, softmax over the first axis: 65 x 262145 41.6 us with 128 lanes and 2
// threads a column, 48.6 with 32 and 4, 81.8 read twice; 257 x 65537 53.1 and 69.3, 1025 x 16385 66.2 and 102.1 read twice.
static bool write_kept_columns(struct chooser *c, const struct column_shape *s) {
  enum { LEAST_DEPTH = 17, MOST_STEPS = 33, THREADS = 1024, LANES = 32 };
  int words = c->bytes < 4 ? 1 : c->bytes / 4;
  struct columns_form form = {.name = "column", .vector = 1, .lanes = LANES};
  if (!c->rereads || s->depth < LEAST_DEPTH || s->width < LANES || s->reduced.outer.count || c->view.space_count != 1 || c->view.is_dependent) return false;
  form.threads = at_most(power_above(divide_up(s->depth * words, MOST_STEPS)), THREADS / LANES);
  form.lanes = at_most(256 / form.threads, 128);
  if (form.lanes < LANES) form.lanes = LANES;
  form.kept = at_most(divide_up(s->depth, form.threads), MOST_STEPS + 1);
  if (form.kept * words > MOST_STEPS || tiles_of(s, form.lanes, 1) < NOMINAL_SMS) return false;
  form.blocks = kept_blocks(c, form.kept * words, form.lanes * form.threads);
  form.reason = say(c, "outputs lie side by side, and several stages read what each is made of: %d threads along them and %d along the reduction, each with %d loads of %d bytes that it keeps", form.lanes,
                    form.threads, form.kept, c->bytes);
  write_columns(&c->view, &form);
  return true;
}

static void write_known_columns(struct chooser *c, const struct column_shape *s, bool is_split) {
  struct columns_form form = {.name = "column", .vector = s->vector, .lanes = 32};
  int64_t batch = s->batch < 1 ? 1 : s->batch, depth = s->depth < 0 ? 4096 : s->depth;
  if (is_split) {
    write_split_columns(c, s);
    return;
  }
  if (write_kept_columns(c, s)) return;
  if (c->rereads && s->depth == 1) form.vector = 1; // softmax of 16777216 x 1: 55.0 us, 75.4 with four outputs a thread
  if (s->width >= 0) { // narrower tiles until the device is full
    form.lanes = whole_lanes(s);
    while (form.vector > 1 && form.vector * c->bytes > 2 && times(batch, divide_up(s->width, (int64_t)form.lanes * form.vector)) < 60 && form.lanes * form.vector * c->bytes > 64) form.vector /= 2;
  }
  int64_t tiles = s->width < 0 ? 1 << 20 : times(batch, divide_up(s->width, (int64_t)form.lanes * form.vector));
  int block = tiles <= NOMINAL_SMS ? 512 : 256;
  form.threads = at_most(power_below(divide_up(depth, 4)), block / form.lanes);
  // elements as loads: 33 x 524289 19.9 us with a thread a column, 22.2 with 8; 129 x 131073 20.0 and 21.5
  if (depth <= 32 || (form.vector == 1 && depth <= 160 && times(batch, s->width) >= 1 << 17)) form.threads = 1;
  if (form.threads == 1) { // whole threads: the block is as wide as it can be
    form.lanes = s->width < 0 ? 256 : at_most(power_above(divide_up(s->width, (int64_t)form.vector)), 256);
    if (form.lanes < 32) form.lanes = 32;
    while (form.lanes > 32 && s->width >= 0 && times(batch, divide_up(s->width, (int64_t)form.lanes * form.vector)) < NOMINAL_SMS) form.lanes /= 2;
    while (form.vector > 1 && s->width >= 0 && times(batch, divide_up(s->width, (int64_t)form.lanes * form.vector)) < NOMINAL_SMS) form.vector /= 2;
  }
  form.flight = 8;
  if (form.threads == 1 && form.vector == 1 && depth <= 8 && times(batch, s->width) >= 1 << 20) form.apart = 4; // 1 x 8388607: 19.0 us, 24.2 with one output a thread
  if (c->rereads && view_rescales(&c->view) && s->width >= 32 && depth > 32 * 33) heavy_columns(c, s, &form);
  form.cache = choose_cache(c, HINT_MOST_COLUMNS);
  form.reason = say(c, "outputs lie side by side: %d of them a thread, %d threads along them and %d along the reduction, loads of %d bytes", form.vector, form.lanes, form.threads,
                    form.vector * c->bytes);
  write_columns(&c->view, &form);
}

struct column_bucket {
  const char *name;
  bool is_wide; // 16 bytes of outputs a thread
  int most;     // at most so many loads side by side; 0: any
  int lanes, threads, flight, parts;
  int below;    // only where fewer MiB than that are read, MIDDLE_DEPTH a column or more; 0: any
};
// An H200, 300 x 10000: 8.8 us with 8 lanes, 9.2 with 32; 1000 x 10000: 14.6 with 16 lanes, 15.1 with 32.
static const struct column_bucket column_buckets[] = {
    {"column_split_1", true, 1, 1, 512, 16, 3, 0},
    {"column_split_2", true, 2, 2, 256, 16, 3, 0},
    {"column_split_4", true, 4, 4, 128, 16, 3, 0},
    {"column_split_8", true, 8, 8, 64, 16, 1, 0},
    {"column_split_16", true, 16, 16, 32, 16, 1, 0},
    {"column_split_low", true, 0, 8, 64, 16, 2, 24},
    {"column_split_middle", true, 0, 16, 16, 16, 2, 100},
    {"column_split", true, 0, 32, 8, 8, 2, 0},
    {"column_narrow", true, 15, 8, 32, 8, 0, 0},
    {"column", true, 0, 32, 8, 8, 0, 0},
    {"column_split_odd_1", false, 1, 1, 512, 16, 3, 0},
    {"column_split_odd_2", false, 2, 2, 256, 16, 3, 0},
    {"column_split_odd_4", false, 4, 4, 128, 16, 3, 0},
    {"column_split_odd_8", false, 8, 8, 64, 16, 3, 0},
    {"column_split_odd_16", false, 16, 16, 32, 16, 3, 0},
    {"column_split_odd", false, 0, 32, 16, 16, 2, 0},
    {"column_narrow_odd", false, 8, 8, 32, 8, 0, 0},
    {"column_odd", false, 0, 32, 8, 8, 0, 0},
};

// Conditions, joined by "&&"; empty ones are left out.
static const char *both(struct chooser *c, const char *a, const char *b) { return *a && *b ? say(c, "%s && %s", a, b) : *a ? a : b; }

static void write_unknown_columns(struct chooser *c, const struct column_shape *s) {
  const char *width = product_text(c, &s->kept.inner), *all = product_text(c, &c->view.main->stage->own), *outputs = product_text(c, &c->view.common);
  const char *times = parenthesized(c, width);
  const char *deep = s->depth < 0 ? say(c, "%s > 32", product_text(c, &s->reduced.inner)) : "";
  bool taken[2] = {false, false};
  if (!is_invariant(c) && s->width < 0 && 8 * c->bytes < NARROW_BYTES && s->vector > 1) { // fits into the L2: narrow tiles and no second step
    int vector = NARROW_BYTES / (8 * c->bytes);
    struct columns_form form = {.name = "column_small", .vector = vector > s->vector ? s->vector : vector, .lanes = 8, .threads = 64, .flight = 16};
    const char *multiple = say(c, "%s %% %d == 0 && %s >= %d", times, form.vector, width, ENOUGH_TILES * NARROW_BYTES / c->bytes);
    form.when = both(c, both(c, deep, multiple), say(c, "%s * %s <= %d", all, outputs, HOT_BYTES / c->bytes));
    form.reason = say(c, "outputs lie side by side, and little is read: %d of them a thread, 8 threads along them and 64 along the reduction, 16 loads in flight", form.vector);
    write_columns(&c->view, &form);
  }
  if (*deep && s->vector > 1) { // few rows: threads side by side take 16 bytes each of all of them
    struct columns_form form = {.name = "column_shallow", .vector = s->vector, .lanes = 256, .threads = 1, .flight = 4};
    form.when = both(c, say(c, "%s <= 32", product_text(c, &s->reduced.inner)), s->width < 0 ? say(c, "%s %% %d == 0 && %s >= %d", times, form.vector, width, 1024 * form.vector) : "");
    form.reason = say(c, "outputs lie side by side, and few are added: %d of them a thread, 256 threads along them, loads of %d bytes", form.vector, form.vector * c->bytes);
    write_columns(&c->view, &form);
  }
  if (*deep && s->width < 0) {
    struct columns_form form = {.name = "column_shallow_odd", .vector = 1, .apart = 4, .lanes = 256, .threads = 1, .flight = 1};
    form.when = say(c, "%s <= 8 && %s >= %d", product_text(c, &s->reduced.inner), width, 4096);
    form.reason = say(c, "outputs lie side by side, and very few are added: 4 of them a thread, 256 threads along them, loads of %d bytes", c->bytes);
    write_columns(&c->view, &form);
  }
  if (*deep && s->width < 0) {
    struct columns_form form = {.name = "column_low_odd", .vector = 1, .lanes = 256, .threads = 1, .flight = 8};
    form.when = say(c, "%s <= 160 && %s >= %d%s", product_text(c, &s->reduced.inner), width, 1 << 17, s->vector > 1 ? say(c, " && %s %% %d != 0", times, s->vector) : "");
    form.reason = say(c, "outputs lie side by side, many of them, and few are added: one a thread, 256 threads along them, loads of %d bytes", c->bytes);
    write_columns(&c->view, &form);
  }
  for (size_t b = 0; b < sizeof column_buckets / sizeof *column_buckets; b++) {
    const struct column_bucket *bucket = &column_buckets[b];
    struct columns_form form = {.name = bucket->name, .vector = bucket->is_wide ? s->vector : 1, .lanes = bucket->lanes, .threads = bucket->threads, .flight = bucket->flight,
                                .parts = bucket->parts};
    int most = bucket->most * form.vector;
    if (is_invariant(c) && most) continue;
    if (bucket->below && (s->width >= 0 || is_invariant(c))) continue;
    if ((bucket->is_wide && s->vector == 1) || (bucket->parts && !can_part(c)) || (most && s->width > most)) continue;
    if (s->width >= 0 && ((!bucket->is_wide && s->vector > 1) || taken[bucket->parts > 0])) continue; // the width is known: one of each kind
    taken[bucket->parts > 0] = true;
    const char *when = deep;
    if (form.vector > 1 && s->width < 0) when = both(c, when, say(c, "%s %% %d == 0", times, form.vector));
    if (most && s->width < 0) when = both(c, when, say(c, "%s <= %d", width, most));
    if (bucket->below) when = both(c, when, say(c, "%s >= %d && %s * %s < %d", product_text(c, &s->reduced.inner), MIDDLE_DEPTH, all, outputs, (bucket->below << 20) / c->bytes));
    if (bucket->parts) when = both(c, when, say(c, "%s * %s >= %d && %s < %d * sms", all, outputs, SPLIT_ELEMENTS, outputs, (can_split(c) ? 2 : 1) * bucket->lanes * form.vector));
    form.when = when;
    form.reason = say(c, "outputs lie side by side: %d of them a thread, %d thread%s along them, %d%s along the reduction, loads of %d bytes", form.vector, form.lanes, form.lanes > 1 ? "s" : "",
                      form.threads, form.parts ? " and several blocks" : "", form.vector * c->bytes);
    write_columns(&c->view, &form);
    if (c->view.is_closed) return;
  }
}

// --- The choice ------------------------------------------------------------------------------------------------------

static bool moves_by_one(const struct chooser *c, const struct list *axes) {
  for (uint32_t i = axes->count; i-- > 0;) {
    if (view_count(axes->at[i]) == 1) continue;
    if (view_is_unit(&c->view, c->view.main, axes->at[i])) return true;
  }
  return false;
}

// A row of few elements behind each outer step is fused with it: a division a load costs less than short rows.
static bool prefers_one_axis(const struct chooser *c) {
  int64_t inner = view_product(&c->row.inner), outer = view_product(&c->row.outer);
  return c->row.outer.count && !c->view.is_dependent && inner >= 0 && inner < 512 && outer != 1;
}

static void describe(struct chooser *c) {
  struct view_stage *stage = c->view.main->stage;
  c->space = stage->space;
  c->row = view_fuse(&c->view, stage, &stage->own, false);
  c->fuse_all = prefers_one_axis(c);
  if (c->fuse_all) c->row = view_fuse(&c->view, stage, &stage->own, true);
  c->vector = view_vector(&c->view, c->space, &c->row);
  c->bytes = (int)type_bytes(c->view.main->mem->type);
  c->length = view_product(&c->row.inner);
  c->rows = c->view.a->context->options->batch_invariant && c->view.common.count ? -1 : view_product(&c->view.common);
  c->length_text = "";
  for (uint32_t i = 0; i < c->row.inner.count; i++)
    c->length_text = say(c, "%s%s%s", c->length_text, i ? " * " : "", view_text(&c->view, list_at(&c->row.inner, struct ir_axis, i)->extent));
  if (c->row.inner.count > 1) c->length_text = c->length >= 0 ? say(c, "%lld", (long long)c->length) : say(c, "(%s)", c->length_text);
  int readers = 0;
  for (uint32_t i = 0; i < c->view.stages.count; i++) readers += list_at(&c->view.stages, struct view_stage, i)->space == c->space;
  c->stages = readers > 1;
  c->rereads = c->stages && !view_can_join(&c->view);
  for (uint32_t i = 0; i < c->view.stages.count; i++) {
    const struct view_stage *other = c->view.stages.at[i];
    c->rereads |= c->stages && other->space == c->space && other->stage->kind == STAGE_STORE;
  }
}

// --class: the classes that take the kernel, and the text of the one asked for.
static void write_forced(struct chooser *c) {
  struct automatic *a = c->view.a;
  bool is_shared_class = is_shared(&c->view);
  for (int class = CLASS_ROWS; class <= CLASS_BLOCK_SPLIT && is_shared_class; class++) {
    if (class == CLASS_COLUMN || (class == CLASS_BLOCK_SPLIT && !can_part(c))) continue;
    if (class != CLASS_BLOCK && class != CLASS_BLOCK_SPLIT && (c->view.is_dependent || !c->view.common.count)) continue;
    if (class == CLASS_STAGED && !are_runs(c)) continue;
    if (!automatic_takes(a, class_names[class])) continue;
    if (class == CLASS_STAGED) write_known_staged(c);
    else if (c->length > 0) write_known_rows(c, (enum class)class);
    else write_bucket(c, &forced_buckets[class], c->vector > 1, class_names[class], "");
  }
  if (is_shared_class && c->view.common.count && !c->view.is_dependent && automatic_takes(a, class_names[CLASS_COLUMN])) {
    struct column_shape shape = column_shape(c);
    write_known_columns(c, &shape, false);
  }
  if (is_shared_class && c->view.common.count && can_part(c) && automatic_takes(a, class_names[CLASS_COLUMN_SPLIT])) {
    struct column_shape shape = column_shape(c);
    write_known_columns(c, &shape, true);
  }
  automatic_takes(a, class_names[CLASS_THREAD]);
}

// A view whose kept axis may be the fast one, as only a launch tells: columns then.
static void write_turned(struct chooser *c) {
  const struct view_access *main = c->view.main;
  if (!c->view.common.count || c->view.is_dependent || !main->mem->is_strided || moves_by_one(c, &main->stage->own)) return;
  struct ir_axis *kept = c->view.common.at[c->view.common.count - 1], *reduced = c->row.inner.at[c->row.inner.count - 1];
  struct poly along = view_stride(&c->view, main, kept), across = view_stride(&c->view, main, reduced);
  struct ir_expr *stride = along.is_valid ? poly_to_expr(&main->stage->facts, along) : NULL, *other = across.is_valid ? poly_to_expr(&main->stage->facts, across) : NULL;
  if (!stride || stride->op != OP_VAR || (other && ir_is_const(other))) return;
  c->view.extra = say(c, "%s == 1", view_text(&c->view, stride));
  if (other && other->op == OP_VAR) c->view.extra = say(c, "%s && %s != 1", c->view.extra, view_text(&c->view, other));
  struct column_shape shape = column_shape(c);
  shape.vector = 1;
  write_known_columns(c, &shape, false);
  c->view.extra = NULL;
}

static void write_rows_of_any_length(struct chooser *c) {
  write_turned(c);
  if (c->length > 0) {
    enum class chosen = known_class(c);
    if (wants_staged(c)) {
      write_known_staged(c);
      return;
    }
    if (chosen == CLASS_BLOCK || chosen == CLASS_WARP) write_known_split(c);
    write_known_rows(c, chosen);
  } else if (c->length < 0) {
    write_unknown_rows(c, "");
  }
}

// Where a just-in-time compiler will know the sizes, what reads much waits for them: known extents choose lanes, loads and tails better. An H200, sizes known
// and not: 2^20 rows of 11 elements 14.3 and 16.8 us, 2^20 of 100 94.9 and 100.0, columns of 100 x 10^6 94.9 and 97.6.
static void write_sizes_of_launch(struct chooser *c) {
  enum { LEAST_BYTES = 8 << 20 };
  const struct list *axes[] = {&c->view.common, &c->view.main->stage->own};
  const char *axis = NULL;
  for (uint32_t l = 0; l < 2; l++)
    for (uint32_t i = 0; i < axes[l]->count; i++)
      if (view_count(axes[l]->at[i]) < 0) axis = list_at(axes[l], struct ir_axis, i)->var->label;
  if (!axis || c->view.is_dependent || is_invariant(c)) return;
  const char *kept = product_text(c, &c->view.common), *reduced = product_text(c, &c->view.main->stage->own);
  write_placeholder(&c->view, PLAN_EXACT, say(c, "%s * %s >= %d", kept, reduced, LEAST_BYTES / c->bytes), axis, "much is read: chosen when a launch has brought the sizes");
}

bool automatic_rows(struct view *view) {
  struct chooser c = {.view = *view, .arena = view->a->arena};
  describe(&c);
  if (!view->a->forced && view->a->context->options->is_at_launch) write_sizes_of_launch(&c);
  if (view->a->forced) {
    write_forced(&c);
  } else if (is_shared(&c.view)) {
    bool is_column = c.view.common.count && !moves_by_one(&c, &c.view.main->stage->own) && moves_by_one(&c, &c.view.common) && !c.view.is_dependent;
    struct column_shape shape = {0};
    if (is_column) shape = column_shape(&c);
    if (is_column && shape.depth >= 0 && shape.width >= 0 && !is_invariant(&c)) write_known_columns(&c, &shape, wants_split_columns(&c, &shape));
    else if (is_column) write_unknown_columns(&c, &shape);
    else write_rows_of_any_length(&c);
  }
  if (!c.view.is_closed && (!view->a->forced || strcmp(view->a->forced, class_names[CLASS_THREAD]) == 0))
    write_thread(&c.view, NULL, "one thread an output, outputs in row-major order");
  return true;
}

bool automatic_reduce(struct automatic *a) {
  struct view view;
  if (view_make(a, &view) && view.main) return automatic_rows(&view);
  automatic_takes(a, class_names[CLASS_THREAD]);
  return false;
}

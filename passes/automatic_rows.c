// Schedules of rows whose length is known: lanes, loads in flight and blocks by what was measured.
#include "passes/automatic_reduce.h"

enum {
  WARP_LOADS = 256,     // a row of more loads takes a block
  WARP_SCALARS = 2048,  // the same where loads are elements: 16385 rows of 1025 take 18.5 us so, 20.0 a block a row
  FEW_SCALARS = 12 << 20,  // of one row
};

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

// Rows of bytes one by one: 65537 rows of 257 12.4 us with 16 lanes of 17 loads, 14.1 with a warp a row.
static bool are_bytes_of_half_warps(const struct chooser *c, int64_t loads) { return c->bytes == 1 && c->vector == 1 && !c->stages && loads > 224 && loads <= 320; }

static enum reduce_class class_of_length(const struct chooser *c) {
  int64_t loads = divide_up(c->length, c->vector), bytes = times(c->length, c->bytes);
  if (times(c->length, c->vector) <= 1 || (bytes < LINE && c->bytes < 4)) return CLASS_ROWS; // narrow elements: loads of one are too many
  if (kept_lanes(c, loads, 1) > 1 && choose_lanes(loads, false) == 1) return CLASS_GROUP;
  if (bytes <= 2 * LINE && (c->vector > 1 || choose_lanes(loads, false) == 1)) return CLASS_ROWS;
  if (c->vector == 1 && choose_lanes(loads, false) == 1) return CLASS_ROWS;
  if (choose_lanes(loads, c->vector > 1) < 32 || are_bytes_of_half_warps(c, loads)) return CLASS_GROUP;
  int64_t most = c->vector == 1 ? WARP_SCALARS : WARP_LOADS;
  return loads <= most ? CLASS_WARP : CLASS_BLOCK;
}

void rows_short(struct chooser *c, struct rows_form *form) {
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
    form->reason = reduce_say(c, "%s elements a row, fewer than 16 bytes: a thread takes %d neighbouring rows", c->length_text, form->rows);
    return;
  }
  form->reason = reduce_say(c, "%s elements a row: a thread a row, %d row%s a thread, %s", c->length_text, form->rows, form->rows > 1 ? "s" : "", reduce_loads(c));
}

static int64_t words_of(const struct chooser *c, int64_t elements) { return divide_up(times(elements, c->bytes < WORD ? WORD : c->bytes), WORD); }

static void known_group(struct chooser *c, struct rows_form *form) {
  int64_t loads = divide_up(c->length, c->vector);
  int lanes = kept_lanes(c, loads, choose_lanes(loads, c->vector > 1));
  form->lanes = are_bytes_of_half_warps(c, loads) ? 16 : lanes < 2 ? 2 : lanes;
  int64_t each = divide_up(loads, form->lanes);
  form->rows = c->stages ? 1 : each == 1 ? 4 : each <= 3 ? 2 : 1;
  form->groups = 256 / form->lanes;
  int64_t needed = (int64_t)NOMINAL_SMS * form->groups * form->rows;
  if (c->rows >= 0 && c->rows < needed) {
    form->rows = 1;
    form->groups = spread(c, form->groups, 1);
    while (form->groups * form->lanes < 32) form->groups *= 2;
  }
  if (c->rereads) form->blocks = reduce_kept_blocks(c, words_of(c, each * c->vector), form->lanes * form->groups);
  form->reason = reduce_say(c, "%s elements a row: %d lanes a row, %lld load%s a lane and %d row%s in flight, %s", c->length_text, form->lanes, (long long)each, each == 1 ? "" : "s", form->rows,
                     form->rows == 1 ? "" : "s", reduce_loads(c));
}

static void known_warp(struct chooser *c, struct rows_form *form) {
  int64_t loads = divide_up(c->length, c->vector), each = divide_up(loads, 32);
  form->lanes = 32;
  form->rows = c->stages ? 1 : each == 1 ? 4 : each <= 3 || (c->vector == 1 && each <= 6) ? 2 : 1;
  if (c->rows >= 0 && c->rows < (int64_t)NOMINAL_SMS * 8 * form->rows) form->rows = 1;
  form->groups = spread(c, 8, form->rows);
  if (form->groups == 1 && c->rows != 1) form->groups = 2;
  if (each > (c->rereads ? MOST_KEPT : 32)) form->flight = 8;
  // Without exponentials, elements one by one take no room: 16383 rows of 1023, layer normalisation, 36.8 us without and 39.4 with room for 1024 threads.
  bool is_light = c->vector == 1 && each > 16 && !view_rescales(&c->view);
  if (c->rereads && !form->flight && !is_light) form->blocks = reduce_kept_blocks(c, words_of(c, each * c->vector), form->lanes * form->groups);
  form->reason = reduce_say(c, "%s elements a row: a warp a row, %lld load%s a lane, %s", c->length_text, (long long)each, each == 1 ? "" : "s", reduce_loads(c));
}

// Rows too long for registers. An H200: softmax of 257 rows of 65537 elements 74.5 us with 1024 threads, 4 loads in flight and room for two blocks, 92.3 with 512 and 8;
// argmax of 1025 rows of 16385 19.6 us with 512 threads and room for three blocks, 22.0 with 256; sums of 257 rows of 65537 bytes 11.2 us with 16 loads in flight, 15.1 with 8.
static void block_in_flight(const struct chooser *c, struct rows_form *form) {
  bool is_heavy = list_at(&c->view.stages, struct view_stage, 0)->stage->kind == STAGE_REDUCE && list_at(&c->view.stages, struct view_stage, 0)->stage->reducer->identity.count > 1;
  if (c->rereads) {
    form->lanes = 1024;
    form->flight = 4;
    form->blocks = reduce_room(c, 2048, form->lanes);
  } else if (is_heavy && form->lanes >= 256) {
    form->lanes = 512;
    form->blocks = reduce_room(c, 1536, form->lanes);
  } else if (c->vector * c->bytes < WORD) {
    form->flight = 16;
  }
}

// Rows that registers hold with the shared memory of a multiprocessor, not alone: one block each. An H200, softmax of 257 rows of 65537 elements: 59.7 us with 32 words a
// thread in registers and 33 in shared memory, 60.0 with 40 and 25, 64.9 with 16 and 49, 78.7 read again.
static bool keep_with_shared(const struct chooser *c, struct rows_form *form) {
  enum { THREADS = 1024, WORDS = 32, SPARE = 4096 };
  const struct target *target = c->view.a->context->options->target;
  int64_t each = divide_up(divide_up(c->length, c->vector), THREADS), depth = WORDS / c->vector;
  if (!c->rereads || !target || c->bytes != WORD || times(each, c->vector) <= MOST_KEPT || !view_keeps_one(&c->view)) return false;
  if (times(each - depth, (int64_t)c->vector * c->bytes * THREADS) > (int64_t)target->shared_limit - SPARE) return false;
  form->lanes = THREADS;
  form->flight = 0;
  form->depth = (int)depth;
  form->blocks = 1;
  return true;
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
    form->blocks = reduce_kept_blocks(c, words_of(c, each * c->vector), form->lanes);
  }
  bool is_shared = form->flight && keep_with_shared(c, form);
  if (is_shared) each = divide_up(loads, form->lanes);
  if (c->stages && form->flight && divide_up(loads, 1024) * c->vector * (c->bytes < 4 ? 4 : c->bytes) <= 256) { // the row fits into registers
    form->lanes = 1024;
    form->flight = 0;
    each = divide_up(loads, form->lanes);
  }
  if (form->flight) block_in_flight(c, form);
  form->reason = reduce_say(c, "%s elements a row: a block of %d threads a row, %lld load%s a thread%s, %s", c->length_text, form->lanes, (long long)each, each == 1 ? "" : "s",
                     form->flight ? reduce_say(c, ", %d in flight", form->flight) : is_shared ? reduce_say(c, ", %d kept in registers and the others in shared memory", form->depth) : "", reduce_loads(c));
}

static void known_split(struct chooser *c, struct rows_form *form) {
  form->groups = form->rows = 1;
  form->lanes = at_most(power_below(c->length / ((int64_t)c->vector * 8)), 512);
  if (form->lanes < 32) form->lanes = 32;
  form->flight = c->vector * c->bytes < WORD ? 16 : 8;
  form->parts = c->rows == 1 ? 4 : 2;
  // a sum of 8388607 elements: 12.6 us, 14.2 with 512 threads and 8 loads in flight
  if (c->rows == 1 && !c->stages && c->vector == 1 && c->bytes == WORD && form->lanes == 512 && c->length <= FEW_SCALARS) form->lanes = 256, form->flight = 16;
  if (c->rereads && view_rescales(&c->view) && form->lanes == 512 && c->vector == 1) { // softmax of 17 rows of 1048577 elements: 77.2 us, 79.8 with 8 loads in flight and three blocks
    form->parts = 4;
    form->flight = 16;
    form->blocks = reduce_room(c, 1024, form->lanes);
  } else if (c->rereads && view_rescales(&c->view) && form->lanes == 512) {
    form->parts = 8;
    form->blocks = reduce_room(c, 1536, form->lanes);
    form->flight = 2;
  }
  form->reason = reduce_say(c, "%s elements a row, few rows: several blocks of %d threads a row, %s, %d in flight", c->length_text, form->lanes, reduce_loads(c), form->flight);
}

void rows_write(struct chooser *c, enum reduce_class chosen) {
  struct rows_form form = {.name = reduce_class_names[chosen], .vector = c->vector, .rows = 1, .groups = 1, .lanes = 1, .fuse_all = c->fuse_all};
  switch (chosen) {
  case CLASS_ROWS: rows_short(c, &form); break;
  case CLASS_GROUP: known_group(c, &form); break;
  case CLASS_WARP: known_warp(c, &form); break;
  case CLASS_BLOCK: known_block(c, &form); break;
  case CLASS_BLOCK_SPLIT: known_split(c, &form); break;
  case CLASS_STAGED: case CLASS_COLUMN: case CLASS_COLUMN_SPLIT: case CLASS_THREAD: case CLASS_COUNT: break;
  }
  form.cache = reduce_cache(c, HINT_MOST_ROWS);
  write_rows(&c->view, &form);
}

void rows_write_split(struct chooser *c) {
  int64_t all = view_product(&c->view.main->stage->own);
  if (c->rows >= 0 || all < SPLIT_ELEMENTS / 16 || !reduce_can_part(c) || !c->view.common.count) return;
  const char *rows = reduce_product(c, &c->view.common), *extra = c->view.extra;
  const char *few = reduce_say(c, reduce_can_split(c) ? "%s < 2 * sms" : "%s < sms", rows);
  if (all < SPLIT_ELEMENTS) few = reduce_say(c, "%s && %s >= %lld", few, rows, (long long)divide_up(SPLIT_ELEMENTS, all));
  c->view.extra = extra ? reduce_say(c, "%s && %s", extra, few) : few;
  rows_write(c, CLASS_BLOCK_SPLIT);
  c->view.extra = extra;
}

enum reduce_class rows_class(const struct chooser *c) {
  int64_t all = view_product(&c->view.main->stage->own);
  enum reduce_class chosen = class_of_length(c);
  if (c->view.is_dependent) return CLASS_BLOCK;
  bool is_long = chosen == CLASS_BLOCK || chosen == CLASS_WARP || c->row.outer.count;
  bool is_few = c->rows >= 0 && (c->rows <= NOMINAL_SMS || c->row.outer.count); // more would be split into one piece each
  if (is_long && is_few && all > 0 && reduce_wants_split(c, c->rows, times(c->rows, all))) return CLASS_BLOCK_SPLIT;
  return c->view.common.count ? chosen : CLASS_BLOCK;
}

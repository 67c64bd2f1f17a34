// Schedules of columns: outputs lie side by side in memory, and what is reduced does not.
#include "passes/automatic_reduce.h"

enum {
  WHOLE_ROW = 128,          // outputs that one block takes side by side
  NARROW_BYTES = 64,        // of outputs a tile: two sectors
  ENOUGH_TILES = 40,        // 1000 x 1000 columns: 2.84 us in 63 tiles, 4.43 split
  MIDDLE_DEPTH = 4096,
};

struct column_shape columns_shape(struct chooser *c) {
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

bool columns_want_split(const struct chooser *c, const struct column_shape *s) {
  if (s->batch < 0 || s->width <= 0 || s->depth <= 0) return false;
  int64_t tiles = times(s->batch, divide_up(s->width, (int64_t)column_lanes(c, s) * s->vector)), all = view_product(&c->view.main->stage->own);
  int64_t narrow = times(s->batch, divide_up(times(s->width, c->bytes), NARROW_BYTES)); // as many tiles as the array has at the least width
  int64_t whole = tiles_of(s, whole_lanes(s), s->vector); // 4096 x 4096: 18.9 us by 128 blocks of whole columns, 20.0 split; 16384 x 1024: 18.8 and 19.9
  bool is_wide = s->vector * c->bytes >= LINE;
  bool is_heavy = c->rereads && view_rescales(&c->view);
  if (is_wide && !is_heavy && ((whole >= NOMINAL_SMS * 7 / 8 && whole <= NOMINAL_SMS) || whole >= 2 * NOMINAL_SMS - 8)) return false;
  if (narrow >= ENOUGH_TILES && times(times(s->batch, s->width), times(all, c->bytes)) <= HOT_BYTES) return false;
  return s->depth >= 64 && reduce_wants_split(c, tiles, times(times(s->batch, s->width), all));
}

// Whether what threads add up has several parts, as argmax has.
static bool has_parts(const struct chooser *c) {
  const struct ir_stage *stage = list_at(&c->view.stages, struct view_stage, 0)->stage;
  return stage->kind == STAGE_REDUCE && stage->reducer->identity.count > 1;
}

// Columns of softmax that registers do not hold: an output a thread, and registers for eight loads in flight. An H200, 65537 x 257: 85.3 us with room for 1024 threads, 88.9 for 1536,
// 93.9 with one block of 1024; 84.1 to 87.8 with 64 lanes, whole rows, 4 or 6 blocks a multiprocessor; 4097 x 4097: 83.0 and 85.9.
static void heavy_columns(const struct chooser *c, const struct column_shape *s, struct columns_form *form) {
  form->vector = 1;
  form->lanes = 32;
  form->threads = at_most(power_below(divide_up(s->depth, 8)), 16);
  form->flight = 8;
  form->blocks = reduce_room(c, 1024, form->lanes * form->threads);
}

static bool can_split_bytes(const struct chooser *c, const struct column_shape *s, const struct columns_form *form) {
  return reduce_can_split(c) && !c->stages && !has_parts(c) && c->bytes == 1 && form->vector == 4 && (form->lanes == 16 || form->lanes == 32) && s->depth / (256 / form->lanes) >= 1024;
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
  } else if (c->rereads && view_rescales(&c->view) && s->width > 0 && form.lanes * form.threads == 512) { // softmax, 1048576 x 16: 60.6 us, 63.5 with 4 loads in flight and three blocks
    if (form.vector > 2) form.lanes *= form.vector / 2, form.threads /= form.vector / 2, form.vector = 2;
    form.flight = 8;
    form.parts = 4;
    form.blocks = reduce_room(c, 1024, 512);
  }
  if (reduce_can_split(c) && c->bytes == 1 && s->vector == 1 && s->batch > 0 && s->width > 1 && s->width < 8 && form.threads >= 16) { // 4194305 x 5 bytes: 13.7 us with 5 lanes, 21.8 with 8
    form.lanes = (int)s->width;
    form.threads = power_below(640 / s->width);
    form.parts = 2;
  }
  // bytes by words: 262144 x 64 15.0 us, 17.2 with 512 threads, 16 loads in flight and three blocks a multiprocessor; 16384 x 1024 13.4 and 14.6
  if (can_split_bytes(c, s, &form)) form.threads = 256 / form.lanes, form.flight = 32, form.parts = 4;
  form.cache = reduce_cache(c, HINT_MOST_COLUMNS);
  form.reason = reduce_say(c, "outputs lie side by side, too few to fill the device: %d of them a thread, %d threads along them, %d and several blocks along the reduction, loads of %d bytes, %d in flight",
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
  form.blocks = reduce_kept_blocks(c, form.kept * words, form.lanes * form.threads);
  form.reason = reduce_say(c, "outputs lie side by side, and several stages read what each is made of: %d threads along them and %d along the reduction, each with %d loads of %d bytes that it keeps", form.lanes,
                    form.threads, form.kept, c->bytes);
  write_columns(&c->view, &form);
  return true;
}

// Longer ones, in registers and shared memory: 8 of them, a sector of each row, in one of two blocks of a multiprocessor. An H200, softmax of 4096 x 4096 over the first axis:
// 58.1 us with 40 of 64 words in registers, 59.3 with 32, 90.4 read twice by several blocks.
static bool write_deep_columns(struct chooser *c, const struct column_shape *s) {
  enum { LANES = 8, THREADS = 64, WORDS = 40, SPARE = 4096 };
  const struct target *target = c->view.a->context->options->target;
  struct columns_form form = {.name = "column", .vector = 1, .lanes = LANES, .threads = THREADS, .depth = WORDS, .blocks = 2};
  int64_t each = divide_up(s->depth, THREADS);
  if (!c->rereads || !target || c->bytes != WORD || s->width <= 0 || s->width % LANES || each <= WORDS || s->reduced.outer.count || c->view.space_count != 1) return false;
  if (!view_keeps_one(&c->view) || tiles_of(s, LANES, 1) < 2 * NOMINAL_SMS || times(each - WORDS, LANES * THREADS * WORD) > (int64_t)target->shared_limit / 2 - SPARE) return false;
  form.kept = (int)each;
  form.reason = reduce_say(c, "outputs lie side by side, and several stages read what each is made of: %d threads along them and %d along the reduction, each with %d loads of %d bytes, %d kept in registers and the others in shared memory",
                           form.lanes, form.threads, form.kept, c->bytes, form.depth);
  write_columns(&c->view, &form);
  return true;
}

void columns_write(struct chooser *c, const struct column_shape *s, bool is_split) {
  struct columns_form form = {.name = "column", .vector = s->vector, .lanes = 32};
  int64_t batch = s->batch < 1 ? 1 : s->batch, depth = s->depth < 0 ? 4096 : s->depth;
  if ((!is_split || !c->view.a->forced) && write_deep_columns(c, s)) return;
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
  // rows of an odd length: 1023 x 16383 21.5 us, 24.9 with 32 lanes, 8 threads a column and 8 loads in flight
  if (form.vector == 1 && form.threads > 1 && c->bytes == WORD && !c->stages && !has_parts(c) && depth > 160 && tiles_of(s, 64, 1) >= NOMINAL_SMS && s->width >= 0) form.lanes = 64, form.threads = 4, form.flight = 16;
  form.cache = reduce_cache(c, HINT_MOST_COLUMNS);
  form.reason = reduce_say(c, "outputs lie side by side: %d of them a thread, %d threads along them and %d along the reduction, loads of %d bytes", form.vector, form.lanes, form.threads,
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
static const char *both(struct chooser *c, const char *a, const char *b) { return *a && *b ? reduce_say(c, "%s && %s", a, b) : *a ? a : b; }

void columns_write_buckets(struct chooser *c, const struct column_shape *s) {
  const char *width = reduce_product(c, &s->kept.inner), *all = reduce_product(c, &c->view.main->stage->own), *outputs = reduce_product(c, &c->view.common);
  const char *times = reduce_factor(c, width);
  const char *deep = s->depth < 0 ? reduce_say(c, "%s > 32", reduce_product(c, &s->reduced.inner)) : "";
  bool taken[2] = {false, false};
  if (!reduce_is_invariant(c) && s->width < 0 && 8 * c->bytes < NARROW_BYTES && s->vector > 1) { // fits into the L2: narrow tiles and no second step
    int vector = NARROW_BYTES / (8 * c->bytes);
    struct columns_form form = {.name = "column_small", .vector = vector > s->vector ? s->vector : vector, .lanes = 8, .threads = 64, .flight = 16};
    const char *multiple = reduce_say(c, "%s %% %d == 0 && %s >= %d", times, form.vector, width, ENOUGH_TILES * NARROW_BYTES / c->bytes);
    form.when = both(c, both(c, deep, multiple), reduce_say(c, "%s * %s <= %d", all, outputs, HOT_BYTES / c->bytes));
    form.reason = reduce_say(c, "outputs lie side by side, and little is read: %d of them a thread, 8 threads along them and 64 along the reduction, 16 loads in flight", form.vector);
    write_columns(&c->view, &form);
  }
  if (*deep && s->vector > 1) { // few rows: threads side by side take 16 bytes each of all of them
    struct columns_form form = {.name = "column_shallow", .vector = s->vector, .lanes = 256, .threads = 1, .flight = 4};
    form.when = both(c, reduce_say(c, "%s <= 32", reduce_product(c, &s->reduced.inner)), s->width < 0 ? reduce_say(c, "%s %% %d == 0 && %s >= %d", times, form.vector, width, 1024 * form.vector) : "");
    form.reason = reduce_say(c, "outputs lie side by side, and few are added: %d of them a thread, 256 threads along them, loads of %d bytes", form.vector, form.vector * c->bytes);
    write_columns(&c->view, &form);
  }
  if (*deep && s->width < 0) {
    struct columns_form form = {.name = "column_shallow_odd", .vector = 1, .apart = 4, .lanes = 256, .threads = 1, .flight = 1};
    form.when = reduce_say(c, "%s <= 8 && %s >= %d", reduce_product(c, &s->reduced.inner), width, 4096);
    form.reason = reduce_say(c, "outputs lie side by side, and very few are added: 4 of them a thread, 256 threads along them, loads of %d bytes", c->bytes);
    write_columns(&c->view, &form);
  }
  if (*deep && s->width < 0) {
    struct columns_form form = {.name = "column_low_odd", .vector = 1, .lanes = 256, .threads = 1, .flight = 8};
    form.when = reduce_say(c, "%s <= 160 && %s >= %d%s", reduce_product(c, &s->reduced.inner), width, 1 << 17, s->vector > 1 ? reduce_say(c, " && %s %% %d != 0", times, s->vector) : "");
    form.reason = reduce_say(c, "outputs lie side by side, many of them, and few are added: one a thread, 256 threads along them, loads of %d bytes", c->bytes);
    write_columns(&c->view, &form);
  }
  if (*deep && s->width < 0 && !c->stages) { // all loads at once: 10 x 1000 1.44 us in a graph, 1.72 with a loop of eight
    struct columns_form form = {.name = "column_few", .vector = 1, .lanes = 128, .threads = 1, .kept = 16};
    form.when = reduce_say(c, "%s <= 16", reduce_product(c, &s->reduced.inner));
    form.reason = reduce_say(c, "outputs lie side by side, and very few are added: one a thread, 128 threads along them, all loads of %d bytes in flight", c->bytes);
    write_columns(&c->view, &form);
  }
  for (size_t b = 0; b < sizeof column_buckets / sizeof *column_buckets; b++) {
    const struct column_bucket *bucket = &column_buckets[b];
    struct columns_form form = {.name = bucket->name, .vector = bucket->is_wide ? s->vector : 1, .lanes = bucket->lanes, .threads = bucket->threads, .flight = bucket->flight,
                                .parts = bucket->parts};
    int most = bucket->most * form.vector;
    if (reduce_is_invariant(c) && most) continue;
    if (bucket->below && (s->width >= 0 || reduce_is_invariant(c))) continue;
    if ((bucket->is_wide && s->vector == 1) || (bucket->parts && !reduce_can_part(c)) || (most && s->width > most)) continue;
    if (s->width >= 0 && ((!bucket->is_wide && s->vector > 1) || taken[bucket->parts > 0])) continue; // the width is known: one of each kind
    taken[bucket->parts > 0] = true;
    const char *when = deep;
    if (form.vector > 1 && s->width < 0) when = both(c, when, reduce_say(c, "%s %% %d == 0", times, form.vector));
    if (most && s->width < 0) when = both(c, when, reduce_say(c, "%s <= %d", width, most));
    if (bucket->below) when = both(c, when, reduce_say(c, "%s >= %d && %s * %s < %d", reduce_product(c, &s->reduced.inner), MIDDLE_DEPTH, all, outputs, (bucket->below << 20) / c->bytes));
    if (bucket->parts) when = both(c, when, reduce_say(c, "%s * %s >= %d && %s < %d * sms", all, outputs, SPLIT_ELEMENTS, outputs, (reduce_can_split(c) ? 2 : 1) * bucket->lanes * form.vector));
    form.when = when;
    form.reason = reduce_say(c, "outputs lie side by side: %d of them a thread, %d thread%s along them, %d%s along the reduction, loads of %d bytes", form.vector, form.lanes, form.lanes > 1 ? "s" : "",
                      form.threads, form.parts ? " and several blocks" : "", form.vector * c->bytes);
    write_columns(&c->view, &form);
    if (c->view.is_closed) return;
  }
}

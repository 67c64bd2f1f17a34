// Schedules of rows whose length a launch brings: one for each range of lengths, with a condition.
#include "passes/automatic_reduce.h"

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

// What --class takes where the length is not known: no bounds.
static const struct row_bucket forced_buckets[] = {
    [CLASS_ROWS] = {"rows", 0, 1, 256, 1, 0, 4, 0, 0},
    [CLASS_GROUP] = {"group", 0, 8, 32, 2, 0, 2, 0, 0},
    [CLASS_WARP] = {"warp", 0, 32, 8, 1, 0, 8, 0, 0},
    [CLASS_BLOCK] = {"block", 0, 256, 1, 1, 0, 4, 0, 0},
    [CLASS_BLOCK_SPLIT] = {"block_split", 0, 256, 1, 1, 0, 4, 2, 0},
};

static void write_bucket(struct chooser *c, const struct row_bucket *bucket, bool is_wide, const char *name) {
  struct rows_form form = {.name = name, .vector = is_wide ? c->vector : 1, .lanes = bucket->lanes, .groups = bucket->groups, .rows = c->stages ? 1 : bucket->rows,
                           .flight = bucket->flight, .steps = bucket->steps, .parts = bucket->parts, .fuse_all = c->fuse_all};
  if (c->view.is_dependent && !form.flight) form.flight = 4;
  const char *most = bucket->loads ? reduce_say(c, "%s <= %d", c->length_text, bucket->loads * form.vector) : "", *multiple = "";
  if (form.vector > 1 && !c->view.a->forced) multiple = reduce_say(c, "%s %% %d == 0", c->length_text, form.vector);
  if (form.parts && !c->view.a->forced) { // few and long
    const char *rows = c->view.common.count ? reduce_product(c, &c->view.common) : NULL, *all = reduce_product(c, &c->view.main->stage->own);
    most = rows ? reduce_say(c, "%s < %ssms && %s * %s >= %d", rows, reduce_can_split(c) ? "2 * " : "", all, rows, SPLIT_ELEMENTS) : reduce_say(c, "%s >= %d", all, SPLIT_ELEMENTS);
  }
  if (bucket->few && !c->view.a->forced) most = reduce_say(c, "%s && %s <= %d * sms", most, reduce_product(c, &c->view.common), bucket->few);
  form.when = reduce_say(c, "%s%s%s", multiple, *multiple && *most ? " && " : "", most);
  int vector = c->vector;
  c->vector = form.vector;
  form.reason = reduce_say(c, "%s elements a row: %d lane%s, %d row%s a block, %s", c->length_text, form.lanes, form.lanes > 1 ? "s" : "", form.groups * form.rows, form.groups * form.rows > 1 ? "s" : "", reduce_loads(c));
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
  rows_short(&near, &form);
  if (!form.are_neighbours) return;
  form.when = reduce_say(c, "%s == %d && %s %% %d == 0", c->length_text, (int)near.length, reduce_factor(c, reduce_product(c, &c->view.common)), form.rows);
  write_rows(&c->view, &form);
}

void buckets_write(struct chooser *c) {
  write_near_rows(c);
  for (uint32_t wide = c->vector > 1; wide < 2; wide--) { // wide ones first; then, whatever the length, loads of an element
    const struct row_bucket *buckets = wide ? wide_buckets : narrow_buckets;
    size_t count = wide ? sizeof wide_buckets / sizeof *wide_buckets : sizeof narrow_buckets / sizeof *narrow_buckets;
    for (size_t b = 0; b < count; b++) {
      if (c->view.is_dependent && buckets[b].loads) continue; // ranges that depend on a row's place: a block a row
      if (buckets[b].parts && (!reduce_can_part(c) || c->rows >= 2 * NOMINAL_SMS)) continue;
      if (buckets[b].loads && !c->view.common.count) continue; // one row
      if (buckets[b].few && reduce_is_invariant(c)) continue;
      write_bucket(c, &buckets[b], wide, buckets[b].name);
    }
  }
}

void buckets_write_forced(struct chooser *c, enum reduce_class forced) { write_bucket(c, &forced_buckets[forced], c->vector > 1, reduce_class_names[forced]); }

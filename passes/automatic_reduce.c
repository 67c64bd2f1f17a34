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
#include "passes/automatic_reduce.h"

#include <string.h>

#include "passes/stage.h"
#include "runtime/plan.h"

enum {
  HINT_BYTES = 16 << 20,    // what is read once and is more leaves the cache to others
  HINT_BYTES_COLUMNS = 8 << 20, // 300 x 10000: 8.4 us with it, 9.0 without
};

const char *const reduce_class_names[CLASS_COUNT] = {"rows", "group", "staged", "warp", "block", "column", "block_split", "column_split", "thread"};

const char *reduce_say(struct chooser *c, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const char *text = arena_vprintf(c->arena, format, arguments);
  va_end(arguments);
  return text;
}

const char *reduce_product(struct chooser *c, const struct list *axes) {
  int64_t constant = 1;
  const char *text = "";
  for (uint32_t i = 0; i < axes->count; i++) {
    const struct ir_axis *axis = axes->at[i];
    if (view_count(axis) >= 0) constant = times(constant, view_count(axis));
    else text = reduce_say(c, "%s%s%s", text, *text ? " * " : "", view_text(&c->view, axis->extent));
  }
  if (!*text) return reduce_say(c, "%lld", (long long)constant);
  return constant == 1 ? text : reduce_say(c, "%s * %lld", text, (long long)constant);
}

const char *reduce_factor(struct chooser *c, const char *text) { return strchr(text, ' ') ? reduce_say(c, "(%s)", text) : text; }

const char *reduce_loads(struct chooser *c) {
  return c->vector > 1 ? reduce_say(c, "loads of %d elements, %d bytes", c->vector, c->vector * c->bytes) : reduce_say(c, "loads of an element, %d bytes", c->bytes);
}

const char *reduce_cache(const struct chooser *c, int64_t most) {
  int64_t each = view_product(&c->view.main->stage->own), bytes;
  if (c->rows < 0 || each < 0 || __builtin_mul_overflow(c->rows, each, &bytes) || __builtin_mul_overflow(bytes, c->bytes, &bytes)) return NULL;
  return bytes >= (most == HINT_MOST_COLUMNS ? HINT_BYTES_COLUMNS : HINT_BYTES) && bytes <= most ? "evict_first" : NULL;
}

int reduce_room(const struct chooser *c, int wanted, int threads) {
  const struct target *target = c->view.a->context->options->target;
  uint32_t sm = target ? target->sm : 80;
  int most = sm == 75 ? 1024 : sm == 86 || sm == 87 || sm == 89 || sm >= 120 ? 1536 : 2048;
  return at_most((wanted < most ? wanted : most) / threads, 32);
}

// A row that several stages read stays in registers, `words` of it in each thread: how many blocks of `threads` a multiprocessor must have room for, so that enough
// is in flight beside what they compute. An H200, softmax: 16384 rows of 1024 elements, 32 words a lane, 33.5 us with room for 1024 threads and 42.3 without; 4096 rows
// of 4096, 16 words a thread, 34.1 with room for 1536, 39.1 for 1024, 38.5 without; 262145 rows of 65, 5 words, 44.4 with room for 2048 and 46.7 without. One word more than 32, for
// rows of an odd length: 16385 rows of 1025 elements 37.7, read twice 58.1; 1025 of 16385 42.4 with 512 threads, 58.2 with 1024 of 17 words.
int reduce_kept_blocks(const struct chooser *c, int64_t words, int threads) { return reduce_room(c, words > 16 ? 1024 : words > 8 ? 1536 : 2048, threads); }

bool reduce_is_shared(const struct view *view) {
  for (int s = 0; s < view->space_count; s++)
    if (view->spaces[s].is_ordered) return false;
  return true;
}

bool reduce_is_invariant(const struct chooser *c) { return c->view.a->context->options->batch_invariant; }

bool reduce_can_split(const struct chooser *c) {
  if (reduce_is_invariant(c) && c->view.common.count) return false; // as many blocks as the other rows leave
  for (uint32_t i = 0; i < c->view.stages.count; i++) {
    const struct view_stage *stage = c->view.stages.at[i];
    if (stage->space >= 0 && (stage->space != c->space || stage->stage->kind != STAGE_REDUCE)) return false;
  }
  return view_can_join(&c->view) && !c->view.is_dependent;
}

// Whether it can be split in several launches, a value of the grid ending each: softmax reads three times, and with the whole device.
static bool can_launch(const struct chooser *c) {
  if ((reduce_is_invariant(c) && c->view.common.count) || c->view.is_dependent || !c->view.reduces) return false;
  bool reduces = false;
  for (uint32_t i = 0; i < c->view.stages.count; i++) {
    const struct view_stage *stage = c->view.stages.at[i];
    if (stage->space >= 0 && stage->space != c->space) return false;
    if (stage->space < 0 && stage->stage->kind == STAGE_REDUCE) return false;
    reduces |= stage->space >= 0 && stage->stage->kind == STAGE_REDUCE;
  }
  return reduces;
}

bool reduce_can_part(const struct chooser *c) { return reduce_can_split(c) || can_launch(c); }

bool reduce_wants_split(const struct chooser *c, int64_t blocks, int64_t elements) {
  if (!reduce_can_split(c)) return can_launch(c) && blocks < NOMINAL_SMS && elements >= SPLIT_ELEMENTS && (blocks < NOMINAL_SMS / 2 || times(elements, c->bytes) > HOT_BYTES);
  return blocks < 2 * NOMINAL_SMS && elements >= SPLIT_ELEMENTS && (blocks < NOMINAL_SMS / 2 || times(elements, c->bytes) > HOT_BYTES);
}

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
    c->length_text = reduce_say(c, "%s%s%s", c->length_text, i ? " * " : "", view_text(&c->view, list_at(&c->row.inner, struct ir_axis, i)->extent));
  if (c->row.inner.count > 1) c->length_text = c->length >= 0 ? reduce_say(c, "%lld", (long long)c->length) : reduce_say(c, "(%s)", c->length_text);
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
  bool is_shared_class = reduce_is_shared(&c->view);
  for (int class = CLASS_ROWS; class <= CLASS_BLOCK_SPLIT && is_shared_class; class++) {
    if (class == CLASS_COLUMN || (class == CLASS_BLOCK_SPLIT && !reduce_can_part(c))) continue;
    if (class != CLASS_BLOCK && class != CLASS_BLOCK_SPLIT && (c->view.is_dependent || !c->view.common.count)) continue;
    if (class == CLASS_STAGED && !staged_fits(c)) continue;
    if (!automatic_takes(a, reduce_class_names[class])) continue;
    if (class == CLASS_STAGED) staged_write(c);
    else if (c->length > 0) rows_write(c, (enum reduce_class)class);
    else buckets_write_forced(c, (enum reduce_class)class);
  }
  if (is_shared_class && c->view.common.count && !c->view.is_dependent && automatic_takes(a, reduce_class_names[CLASS_COLUMN])) {
    struct column_shape shape = columns_shape(c);
    columns_write(c, &shape, false);
  }
  if (is_shared_class && c->view.common.count && reduce_can_part(c) && automatic_takes(a, reduce_class_names[CLASS_COLUMN_SPLIT])) {
    struct column_shape shape = columns_shape(c);
    columns_write(c, &shape, true);
  }
  automatic_takes(a, reduce_class_names[CLASS_THREAD]);
}

// A view whose kept axis may be the fast one, as only a launch tells: columns then.
static void write_turned(struct chooser *c) {
  const struct view_access *main = c->view.main;
  if (!c->view.common.count || c->view.is_dependent || !main->mem->is_strided || moves_by_one(c, &main->stage->own)) return;
  struct ir_axis *kept = c->view.common.at[c->view.common.count - 1], *reduced = c->row.inner.at[c->row.inner.count - 1];
  struct poly along = view_stride(&c->view, main, kept), across = view_stride(&c->view, main, reduced);
  struct ir_expr *stride = along.is_valid ? poly_to_expr(&main->stage->facts, along) : NULL, *other = across.is_valid ? poly_to_expr(&main->stage->facts, across) : NULL;
  if (!stride || stride->op != OP_VAR || (other && ir_is_const(other))) return;
  c->view.extra = reduce_say(c, "%s == 1", view_text(&c->view, stride));
  if (other && other->op == OP_VAR) c->view.extra = reduce_say(c, "%s && %s != 1", c->view.extra, view_text(&c->view, other));
  struct column_shape shape = columns_shape(c);
  shape.vector = 1;
  columns_write(c, &shape, false);
  c->view.extra = NULL;
}

static void write_rows_of_any_length(struct chooser *c) {
  write_turned(c);
  if (c->length > 0) {
    enum reduce_class chosen = rows_class(c);
    if (staged_wants(c)) {
      staged_write(c);
      return;
    }
    if (chosen == CLASS_BLOCK || chosen == CLASS_WARP) rows_write_split(c);
    rows_write(c, chosen);
  } else if (c->length < 0) {
    buckets_write(c);
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
  if (!axis || c->view.is_dependent || reduce_is_invariant(c)) return;
  const char *kept = reduce_product(c, &c->view.common), *reduced = reduce_product(c, &c->view.main->stage->own);
  write_placeholder(&c->view, PLAN_EXACT, reduce_say(c, "%s * %s >= %d", kept, reduced, LEAST_BYTES / c->bytes), axis, "much is read: chosen when a launch has brought the sizes");
}

bool automatic_rows(struct view *view) {
  struct chooser c = {.view = *view, .arena = view->a->arena};
  describe(&c);
  if (!view->a->forced && view->a->context->options->is_at_launch) write_sizes_of_launch(&c);
  if (view->a->forced) {
    write_forced(&c);
  } else if (reduce_is_shared(&c.view)) {
    bool is_column = c.view.common.count && !moves_by_one(&c, &c.view.main->stage->own) && moves_by_one(&c, &c.view.common) && !c.view.is_dependent;
    struct column_shape shape = {0};
    if (is_column) shape = columns_shape(&c);
    if (is_column && shape.depth >= 0 && shape.width >= 0 && !reduce_is_invariant(&c)) columns_write(&c, &shape, columns_want_split(&c, &shape));
    else if (is_column) columns_write_buckets(&c, &shape);
    else write_rows_of_any_length(&c);
  }
  if (!c.view.is_closed && (!view->a->forced || strcmp(view->a->forced, reduce_class_names[CLASS_THREAD]) == 0))
    write_thread(&c.view, NULL, "one thread an output, outputs in row-major order");
  return true;
}

bool automatic_reduce(struct automatic *a) {
  struct view view;
  if (view_make(a, &view) && view.main) return automatic_rows(&view);
  automatic_takes(a, reduce_class_names[CLASS_THREAD]);
  return false;
}

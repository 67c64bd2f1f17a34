// Schedules of copies and element-wise work whose axes stand in another order in what is read than in what is written.
//
// Axes of one iteration are left out; neighbours that move every tensor alike become one (view_can_merge), so that (64, 1, 64, 64) -> (3, 0, 2, 1) is
// the transpose that it is. What is left decides the class:
//
//   tile    the fastest axis of the input, J, is not that of the output, I: tiles of I by J go through shared memory. A thread reads 16 bytes along J
//           of as many neighbours along I as make a word, transposes them in registers and writes words; then it reads 16 bytes along I.
//           Words lie [j][i], and 16-byte pieces of a row are permuted by j's place among 16-byte pieces: no bank conflicts on either side.
//   places  the same as tiles with accesses of one element, for extents or addresses that are no multiples of 16 bytes
//   runs    the fastest axis stays: runs of 16-byte pieces, in blocks that take neighbours in the order of the input and of the output; of sizes that are
//           known boxes like those of automatic_pack.c
//   gather  small fast axes: 16 bytes written at a time, read element by element through the cache
//
// and the classes of automatic_whole.c, automatic_units.c, automatic_planes.c, automatic_odd_runs.c and automatic_pack.c.
//
// Numbers below were measured on an H200 with hand-written kernels: tiles of 128 bytes and more on either side, 16 or 32 KiB a block, 256 threads,
// everything of a thread in flight; output rows fastest among blocks, and an axis that is slower than these on no side faster still.
#include <string.h>

#include "passes/automatic_permute.h"
#include "passes/stage.h"
#include "runtime/plan.h"

enum { LANES = 8, LONGER_SIDE_BYTES = 16 * 1024 };

// --- Merging ------------------------------------------------------------------------------------------------------

static struct ir_axis *last_axis(const struct group *group) { return group->axes.at[group->axes.count - 1]; }

// How far a step of the group moves the access.
struct poly permute_stride(const struct permute *p, const struct view_access *access, const struct group *group) {
  return view_stride(&p->view, access, last_axis(group));
}

static bool moves_all(const struct permute *p, const struct view_access *access) {
  for (int g = 0; g < p->group_count; g++) {
    struct poly stride = permute_stride(p, access, &p->groups[g]);
    if (!stride.is_valid || poly_is_zero(stride)) return false;
  }
  return true;
}

static struct group *fastest(struct permute *p, const struct view_access *access) {
  for (int g = 0; g < p->group_count; g++)
    if (view_is_unit(&p->view, access, last_axis(&p->groups[g]))) return &p->groups[g];
  return NULL;
}

// The axes in the order of the output's dimensions, where each index is an axis.
static bool collect_axes(struct permute *p, struct list *axes) {
  const struct ir_stage *stage = p->a->entry->stages.at[0];
  for (uint32_t d = 0; d < p->store->indices.count; d++) {
    const struct ir_expr *index = p->store->indices.at[d];
    if (index->op == OP_CONST) continue;
    bool is_axis = false;
    for (uint32_t i = 0; i < stage->axes.count && index->op == OP_VAR; i++) {
      struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, i)->axis;
      if (axis->var != index->var) continue;
      for (uint32_t k = 0; k < d; k++)
        if (ir_equal(p->store->indices.at[k], index)) return false; // a diagonal
      list_push(p->arena, view_count(axis) == 1 ? &p->ones : axes, axis);
      is_axis = true;
    }
    if (!is_axis) return false;
  }
  for (uint32_t i = 0; i < stage->axes.count; i++) { // an axis of one iteration that a constant may stand for
    struct ir_axis *axis = list_at(&stage->axes, struct ir_stage_axis, i)->axis;
    bool is_known = false;
    for (uint32_t k = 0; k < axes->count; k++) is_known |= axes->at[k] == axis;
    for (uint32_t k = 0; k < p->ones.count; k++) is_known |= p->ones.at[k] == axis;
    if (!is_known && view_count(axis) != 1) return false;
    if (!is_known) list_push(p->arena, &p->ones, axis);
  }
  return true;
}

static const char *extent_text(struct permute *p, const struct list *axes) {
  const char *text = "";
  for (uint32_t i = 0; i < axes->count; i++) text = arena_printf(p->arena, "%s%s%s", text, i ? " * " : "", view_text(&p->view, list_at(axes, struct ir_axis, i)->extent));
  return text;
}

static bool find_groups(struct permute *p) {
  struct list axes = {0};
  if (!collect_axes(p, &axes)) return false;
  for (uint32_t i = 0; i < axes.count; i++) {
    struct poly stride = view_stride(&p->view, p->store, axes.at[i]);
    if (!stride.is_valid) return false;
    struct group *last = p->group_count ? &p->groups[p->group_count - 1] : NULL;
    if (last && view_can_merge(&p->view, last_axis(last), axes.at[i])) {
      list_push(p->arena, &last->axes, axes.at[i]);
    } else {
      if (p->group_count == MAX_GROUPS) return false;
      list_push(p->arena, &p->groups[p->group_count++].axes, axes.at[i]);
    }
  }
  for (int g = 0; g < p->group_count; g++) {
    p->groups[g].count = view_product(&p->groups[g].axes);
    p->groups[g].extent = extent_text(p, &p->groups[g].axes);
  }
  return p->group_count > 1;
}

static bool find_accesses(struct permute *p) {
  const struct ir_stage *stage = p->a->entry->stages.at[0];
  if (p->a->entry->stages.count != 1 || stage->kind != STAGE_STORE || stage->guards.count || p->view.is_dependent) return false;
  for (uint32_t i = 0; i < p->view.accesses.count; i++) {
    struct view_access *access = p->view.accesses.at[i];
    if (access->is_store) p->store = access;
  }
  return p->store != NULL;
}

static void find_load(struct permute *p) {
  p->fast_out = fastest(p, p->store);
  for (uint32_t i = 0; i < p->view.accesses.count; i++) {
    struct view_access *access = p->view.accesses.at[i];
    if (access->is_store || access->mem->is_output || !moves_all(p, access)) continue;
    struct group *fast = fastest(p, access);
    if (p->load && !(p->fast_in == p->fast_out && fast != p->fast_out)) continue;
    p->load = access;
    p->fast_in = fast;
  }
}

// --- Conditions ---------------------------------------------------------------------------------------------------

static void add_condition(struct when *w, const char *condition) { w->text = w->text ? arena_printf(w->p->arena, "%s && %s", w->text, condition) : condition; }

void permute_refuse(struct when *w, const char *why) {
  if (!w->refusal) w->refusal = why;
}

void permute_need_multiple(struct when *w, const struct group *group, int64_t factor) {
  if (factor == 1) return;
  if (group->count >= 0 && group->count % factor)
    permute_refuse(w, arena_printf(w->p->arena, "%lld iterations of (%s) are no multiple of %lld", (long long)group->count, view_names(&w->p->view, &group->axes), (long long)factor));
  if (group->count < 0)
    add_condition(w, arena_printf(w->p->arena, "%s%s%s %% %lld == 0", group->axes.count > 1 ? "(" : "", group->extent, group->axes.count > 1 ? ")" : "", (long long)factor));
}

void permute_need_least(struct when *w, const struct group *group, int64_t least) {
  if (group->count >= 0 && group->count < least)
    permute_refuse(w, arena_printf(w->p->arena, "(%s) has %lld iterations, fewer than %lld", view_names(&w->p->view, &group->axes), (long long)group->count, (long long)least));
  if (group->count < 0)
    add_condition(w, arena_printf(w->p->arena, "%s >= %lld", group->extent, (long long)least));
}

// Every row of the tensor starts on so many elements.
void permute_need_alignment(struct when *w, const struct ir_mem *mem, uint32_t elements) {
  uint32_t bytes = elements * type_bytes(mem->type);
  if (elements == 1) return;
  if (mem->alignment < bytes) add_condition(w, arena_printf(w->p->arena, "aligned(%s, %u)", mem->label, bytes));
  for (uint32_t d = 0; d < mem->strides.count; d++) {
    const struct ir_expr *stride = mem->strides.at[d];
    if (ir_const_is(stride, 1) || (!mem->is_strided && !ir_is_const(stride))) continue; // a product of extents
    if (ir_is_const(stride) && mem->is_strided && stride->integer % elements)
      permute_refuse(w, arena_printf(w->p->arena, "stride %lld of '%s' is no multiple of %u", (long long)stride->integer, mem->label, elements));
    if (!ir_is_const(stride))
      add_condition(w, arena_printf(w->p->arena, "stride(%s, %u) %% %u == 0", mem->label, d, elements));
  }
}

bool permute_begin(struct permute *p, const char *name, struct when *when, const char *reason) {
  const char *condition = p->a->condition;
  if (when->refusal) {
    text_printf(p->out, "// no schedule '%s': %s\n", name, when->refusal);
    return false;
  }
  p->taken.count = 0;
  text_printf(p->out, "// %s: %s\n", name, reason);
  text_printf(p->out, "schedule %s as %s", p->a->kernel->label, name);
  p->view.is_closed |= !when->text;
  if (condition || when->text)
    text_printf(p->out, " when %s%s%s", condition ? condition : "", condition && when->text ? " && " : "", when->text ? when->text : "");
  text_puts(p->out, " {\n");
  return true;
}

// Above 48 MiB loads that the L2 keeps longest leave more of it to what is written: 1 to 7 % of 128 MiB; from 16 MiB on those that it drops first do, 1 %.
// Boxes through shared memory lose by it, 3 % at the median of 113 permutes of ranks 3 to 6: where runs of the output end inside sectors these have to stay.
static const char *cache_hint(const struct permute *p) {
  int64_t bytes = type_bytes(p->load->mem->type);
  for (int g = 0; g < p->group_count; g++)
    if (p->groups[g].count < 0 || __builtin_mul_overflow(bytes, p->groups[g].count, &bytes)) return "evict_last";
  if (p->is_plain && bytes >= 48 << 20) return NULL;
  return bytes >= 48 << 20 ? "evict_last" : bytes >= 16 << 20 ? "evict_first" : NULL;
}

void permute_end(struct permute *p) {
  const char *hint = cache_hint(p);
  for (uint32_t i = 0; i < p->view.accesses.count && hint; i++) {
    const struct view_access *access = p->view.accesses.at[i];
    bool is_seen = access->is_store || access->mem->is_output || !moves_all(p, access);
    for (uint32_t k = 0; k < i; k++) is_seen |= list_at(&p->view.accesses, struct view_access, k)->mem == access->mem;
    if (!is_seen) text_printf(p->out, "  cache %s by %s;\n", access->mem->label, hint);
  }
  text_puts(p->out, "}\n");
}

// --- Directives -----------------------------------------------------------------------------------------------------

const char *permute_fresh(struct permute *p, const char *base) { return view_fresh(&p->view, &p->taken, base); }
const char *permute_piece(struct permute *p, const struct group *group, const char *suffix) { return permute_fresh(p, arena_printf(p->arena, "%s%s", group->name, suffix)); }

// Brings the axes into the order of the output, those of one iteration first, and makes each group one axis.
void permute_write_groups(struct permute *p) {
  const struct ir_stage *stage = p->a->entry->stages.at[0];
  struct list order = list_copy(p->arena, &p->ones);
  for (int g = 0; g < p->group_count; g++) list_append(p->arena, &order, &p->groups[g].axes);
  bool is_sorted = true;
  for (uint32_t i = 0; i < order.count; i++) is_sorted &= list_at(&stage->axes, struct ir_stage_axis, i)->axis == order.at[i];
  if (!is_sorted) text_printf(p->out, "  reorder %s;\n", view_names(&p->view, &order));
  for (int g = 0; g < p->group_count; g++) {
    struct group *group = &p->groups[g];
    group->name = list_at(&group->axes, struct ir_axis, 0)->var->label;
    if (group->axes.count == 1) continue;
    const char *name = group->name;
    for (uint32_t i = 1; i < group->axes.count; i++) name = arena_printf(p->arena, "%s_%s", name, list_at(&group->axes, struct ir_axis, i)->var->label);
    group->name = permute_fresh(p, name);
    text_printf(p->out, "  fuse %s -> %s;\n", view_names(&p->view, &group->axes), group->name);
  }
}

const char *permute_join(struct permute *p, const char *list, const char *name) { return list ? arena_printf(p->arena, "%s, %s", list, name) : name; }

bool permute_is_at_most(const struct permute *p, const struct view_access *access, const struct group *a, const struct group *b) {
  struct facts *facts = &access->stage->facts;
  struct poly x = permute_stride(p, access, a), y = permute_stride(p, access, b);
  return x.is_valid && y.is_valid && prove_nonnegative(facts, poly_sub(facts, y, x));
}

// Names of the groups but two: those that lie inside both sides' tiles, the neighbours in memory of which are best taken next, and the others.
static void sort_batch(struct permute *p, const struct group *rows_in, const struct group *rows_out, const char **outside, const char **inside) {
  *outside = *inside = NULL;
  for (int g = 0; g < p->group_count; g++) {
    const struct group *group = &p->groups[g];
    if (group == rows_in || group == rows_out) continue;
    bool is_inside = permute_is_at_most(p, p->load, group, rows_in) && permute_is_at_most(p, p->store, group, rows_out);
    if (is_inside) *inside = permute_join(p, *inside, group->name);
    else *outside = permute_join(p, *outside, group->name);
  }
}

static int64_t power_up(int64_t n) {
  int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

static int log2_of(int64_t n) {
  int log = 0;
  while (n >> (log + 1)) log++;
  return log;
}

const char *permute_describe(struct permute *p) {
  const char *text = "";
  for (int g = 0; g < p->group_count; g++) text = arena_printf(p->arena, "%s(%s)", text, view_names(&p->view, &p->groups[g].axes));
  return text;
}

// --- Copies in shared memory ----------------------------------------------------------------------------------------

// The tensors, at most MOST_COPIES, that tiles of are copied: those that move along all axes, and whose fastest axis is that of the input.
int permute_copies(struct permute *p, const struct ir_mem *copies[MOST_COPIES]) {
  int count = 0;
  for (uint32_t i = 0; i < p->view.accesses.count; i++) {
    struct view_access *access = p->view.accesses.at[i];
    if (access->is_store || access->mem->is_output || !moves_all(p, access) || fastest(p, access) != p->fast_in) continue;
    bool is_seen = false;
    for (int k = 0; k < count; k++) is_seen |= copies[k] == access->mem;
    if (is_seen) continue;
    if (count == MOST_COPIES) return 0;
    copies[count++] = access->mem;
  }
  return count;
}

const char *permute_copy_name(struct permute *p, int number) {
  const char *name = number ? arena_printf(p->arena, "S%d", number + 1) : "S";
  for (uint32_t i = 0; i < p->a->kernel->tensors.count; i++) // a stage of that name would be the output's
    if (strcmp(list_at(&p->a->kernel->tensors, struct ir_mem, i)->label, name) == 0) return arena_printf(p->arena, "%s_", name);
  return name;
}

// A tile of I by J elements and what it takes.
struct tile {
  const char *name;
  int64_t i, j;
  uint32_t vector_in, vector_out, unit; // elements
  int64_t least_i, least_j;             // extents from which on it is taken
  const char *only;                     // another condition; NULL: none
  uint32_t blocks;                      // so many at once a multiprocessor, at least; 0: nothing is said
  const char *tile_axis, *ii, *ji;      // axes, after write_tile
};

// Splits the two axes and binds tiles to blocks.
static void write_tile(struct permute *p, struct tile *t) {
  struct group *i = p->fast_out, *j = p->fast_in;
  const char *outside, *inside;
  permute_write_groups(p);
  const char *io = permute_piece(p, i, "_tile"), *jo = permute_piece(p, j, "_tile");
  t->ii = permute_piece(p, i, "_in"), t->ji = permute_piece(p, j, "_in"), t->tile_axis = permute_fresh(p, "tile");
  sort_batch(p, i, j, &outside, &inside);
  bool is_wide = inside && type_bytes(p->load->mem->type) < WORD; // beside a batch that is inside of both, the other order is 1 % faster for these
  const char *order = permute_join(p, permute_join(p, outside, is_wide ? jo : io), is_wide ? io : jo);
  if (inside) order = permute_join(p, order, inside);
  text_printf(p->out, "  split %s by %lld -> %s, %s;  split %s by %lld -> %s, %s;\n", i->name, (long long)t->i, io, t->ii, j->name, (long long)t->j, jo, t->ji);
  text_printf(p->out, "  reorder %s, %s, %s;\n  fuse %s -> %s;  bind %s -> block.x;\n", order, t->ji, t->ii, order, t->tile_axis, t->tile_axis);
}

// `count` iterations of one thread each, of the axis, among the block's threads.
void permute_write_threads(struct permute *p, const char *axis, int64_t count) {
  int64_t threads = count < THREADS ? count : THREADS;
  if (count == threads) {
    text_printf(p->out, "  bind %s -> thread.x;\n", axis);
    return;
  }
  const char *outer = permute_fresh(p, arena_printf(p->arena, "%s_more", axis)), *inner = permute_fresh(p, arena_printf(p->arena, "%s_thread", axis));
  text_printf(p->out, "  split %s by %lld -> %s, %s;  bind %s -> thread.x;  unroll %s;\n", axis, (long long)threads, outer, inner, inner, outer);
}

// The output's side: 16 bytes along I a thread, neighbouring threads along I.
static void write_output(struct permute *p, const struct tile *t) {
  const char *stage = p->a->entry->stages.count ? list_at(&p->a->entry->stages, struct ir_stage, 0)->label : "";
  const char *all = permute_fresh(p, "out"), *part = t->ii, *vector = NULL;
  int64_t count = t->i * t->j / t->vector_out;
  if (t->vector_out > 1) {
    part = permute_fresh(p, arena_printf(p->arena, "%s_part", t->ii)), vector = permute_fresh(p, arena_printf(p->arena, "%s_vector", t->ii));
    text_printf(p->out, "  split %s.%s by %u -> %s, %s;  ", stage, t->ii, t->vector_out, part, vector);
  } else {
    text_puts(p->out, "  ");
  }
  text_printf(p->out, "fuse %s.%s, %s.%s -> %s;\n", stage, t->ji, stage, part, all);
  permute_write_threads(p, all, count);
  if (vector) text_printf(p->out, "  vectorize %s;\n", vector);
}

// --- tile -----------------------------------------------------------------------------------------------------------

// The copy's side: a thread reads 16 bytes along J of the rows that make a unit; neighbouring threads along J, then along I.
static void write_fill(struct permute *p, const struct tile *t, const char *copy) {
  int64_t rows = t->i / t->unit, columns = t->j / t->vector_in;
  const char *row = t->ii, *all = permute_fresh(p, arena_printf(p->arena, "%s_fill", copy)), *unit = NULL, *vector = NULL;
  const char *far = permute_fresh(p, arena_printf(p->arena, "%s_far", copy)), *near = permute_fresh(p, arena_printf(p->arena, "%s_near", copy)), *part = t->ji;
  if (t->unit > 1) {
    row = permute_fresh(p, arena_printf(p->arena, "%s_row", copy)), unit = permute_fresh(p, arena_printf(p->arena, "%s_unit", copy));
    text_printf(p->out, "  split %s.%s by %u -> %s, %s;\n", copy, t->ii, t->unit, row, unit);
  }
  if (t->vector_in > 1) {
    part = permute_fresh(p, arena_printf(p->arena, "%s_part", copy)), vector = permute_fresh(p, arena_printf(p->arena, "%s_vector", copy));
    text_printf(p->out, "  split %s.%s by %u -> %s, %s;\n", copy, t->ji, t->vector_in, part, vector);
  }
  const char *inner = arena_printf(p->arena, "%s%s%s%s", unit ? ", " : "", unit ? unit : "", vector ? ", " : "", vector ? vector : "");
  if (columns > LANES)
    text_printf(p->out, "  split %s.%s by %d -> %s, %s;  reorder %s, %s.%s, %s%s;  fuse %s, %s.%s, %s -> %s;\n", copy, part, LANES, far, near, far, copy, row, near, inner, far, copy, row, near, all);
  else
    text_printf(p->out, "  reorder %s.%s, %s.%s%s;  fuse %s.%s, %s.%s -> %s;\n", copy, row, copy, part, inner, copy, row, copy, part, all);
  permute_write_threads(p, all, rows * columns);
  if (unit || vector) text_printf(p->out, "  vectorize %s%s%s;\n", unit ? unit : "", unit && vector ? ", " : "", vector ? vector : "");
}

// Whether the slowest axis of the output is not that of the input. An H200, 128 MiB in parts of a copy's speed, loads that the L2 keeps longest and plain ones: transposes
// of u8 0.921 and 0.934, of f16 0.951 and 0.963, of f32 0.950 and 0.970; three axes reversed, u8 0.913 and 0.928, f32 0.960 and 0.976.
static bool moves_slowest(const struct permute *p) {
  for (int g = 1; g < p->group_count; g++)
    if (!permute_is_at_most(p, p->load, &p->groups[g], &p->groups[0])) return true;
  return false;
}

static bool try_tile(struct permute *p, struct tile t) {
  const struct ir_mem *out = p->store->mem, *copies[MOST_COPIES];
  struct when when = {.p = p};
  int count = permute_copies(p, copies);
  if ((t.vector_in == 1 && type_bytes(p->load->mem->type) < VECTOR) || (t.vector_out == 1 && type_bytes(out->type) < VECTOR)) permute_refuse(&when, "rows are odd numbers of elements");
  permute_need_multiple(&when, p->fast_out, t.vector_out > t.unit ? t.vector_out : t.unit);
  permute_need_multiple(&when, p->fast_in, t.vector_in);
  permute_need_least(&when, p->fast_out, t.least_i);
  permute_need_least(&when, p->fast_in, t.least_j);
  if (t.only) add_condition(&when, t.only);
  for (int k = 0; k < count; k++) permute_need_alignment(&when, copies[k], t.vector_in);
  permute_need_alignment(&when, out, t.vector_out);
  uint32_t bytes = type_bytes(p->load->mem->type) * t.unit;
  // lanes of a warp are along J first: with fewer of these, there are more along I, and fewer bits to tell apart
  int bits = log2_of(power_up(t.j / t.vector_in < LANES ? t.j / t.vector_in : LANES)), base = log2_of(VECTOR / bytes) + 3 - bits, shift = log2_of(t.i / t.unit) + log2_of(t.vector_in) - base;
  const char *reason = arena_printf(p->arena, "%s, the fastest axis moves: tiles of %lld by %lld through shared memory in units of %u bytes, swizzle %d,%d,%d, %u bytes at a time in and %u out", permute_describe(p),
                                    (long long)t.i, (long long)t.j, bytes, bits, base, shift, t.vector_in * type_bytes(p->load->mem->type), t.vector_out * type_bytes(p->store->mem->type));
  if (!permute_begin(p, t.name, &when, reason)) return false;
  write_tile(p, &t);
  for (int k = 0; k < count; k++) {
    text_printf(p->out, "  stage %s at %s in shared as %s", copies[k]->label, t.tile_axis, permute_copy_name(p, k));
    if (t.unit > 1) text_printf(p->out, " unit %u along %s", t.unit, t.ii);
    if (bits) text_printf(p->out, " swizzle %d,%d,%d", bits, base, shift);
    text_puts(p->out, ";\n");
  }
  for (int k = 0; k < count; k++) write_fill(p, &t, permute_copy_name(p, k));
  write_output(p, &t);
  if (t.blocks) text_printf(p->out, "  blocks %u;\n", t.blocks);
  p->is_plain = moves_slowest(p);
  permute_end(p);
  p->is_plain = false;
  return true;
}

// The tile for elements of so many bytes, made smaller where an extent is; accesses of 4 to 16 bytes, as extents that are known allow, or of 4.
static struct tile tile_for(struct permute *p, const char *name, uint32_t in, uint32_t out, int64_t most_i, bool is_words) {
  struct tile t = {.name = name, .vector_in = VECTOR / in, .vector_out = VECTOR / out, .unit = in < 4 ? 4 / in : 1};
  t.i = in == 1 ? 256 : in == 2 ? 128 : in == 4 ? 64 : in == 8 ? 64 : 32;
  t.j = in == 1 ? 128 : in == 2 ? 128 : in == 4 ? 64 : 32;
  while (is_words ? t.vector_in > 1 && t.vector_in * in > WORD : p->fast_in->count >= 0 && t.vector_in * in > WORD && p->fast_in->count % t.vector_in) t.vector_in /= 2;
  while (is_words ? t.vector_out > 1 && t.vector_out * out > WORD : p->fast_out->count >= 0 && t.vector_out * out > WORD && p->fast_out->count % t.vector_out) t.vector_out /= 2;
  if (t.vector_out < t.unit) t.vector_out = t.unit;
  int64_t narrowest = t.vector_out > t.unit ? t.vector_out : t.unit, bytes = t.i * t.j * in;
  if (p->fast_out->count >= 0 && power_up(p->fast_out->count) < most_i) most_i = power_up(p->fast_out->count);
  if (p->fast_in->count >= 0 && p->fast_in->count < t.j) t.j = (p->fast_in->count + t.vector_in - 1) / t.vector_in * t.vector_in;
  if (t.i > most_i) t.i = most_i > narrowest ? most_i : narrowest;
  if (bytes > LONGER_SIDE_BYTES) bytes = LONGER_SIDE_BYTES;
  // where one side is short the other is longer
  while (p->fast_out->count >= 0 && t.i * 2 <= power_up(p->fast_out->count) && t.i * t.j * in * 2 <= bytes && t.i < 1024) t.i *= 2;
  while (p->fast_in->count >= 0 && t.j * 2 <= p->fast_in->count && t.i * t.j * in * 2 <= bytes && t.j < 1024) t.j *= 2;
  if (in < WORD && t.i * t.j * in == 32 * 1024) t.blocks = 3; // registers for two alone cost 2 % on an H200
  return t;
}

static void write_tiles(struct permute *p, int64_t smallest) {
  uint32_t in = type_bytes(p->load->mem->type), out = type_bytes(p->store->mem->type);
  struct tile whole = tile_for(p, "tile", in, out, INT64_MAX, false);
  whole.least_i = p->fast_out->count < 0 ? whole.i / 2 + 1 : 1;
  whole.least_j = p->fast_in->count < 0 ? smallest : 1;
  try_tile(p, whole);
  if (p->fast_out->count >= 0 || p->view.is_closed) return; // else a short side gets tiles of its own
  struct tile narrow = tile_for(p, "tile_narrow", in, out, whole.i / 2, false);
  narrow.least_i = smallest;
  narrow.least_j = whole.least_j;
  try_tile(p, narrow);
  if (in >= WORD && out >= WORD) return;
  struct tile words = tile_for(p, "tile_words", in, out, whole.i / 2, true);
  words.least_i = words.least_j = smallest;
  try_tile(p, words);
}

// --- places ---------------------------------------------------------------------------------------------------------

// Tiles by single elements: rows of the copy are padded to an odd number of words.
static void write_places(struct permute *p, int64_t smallest) {
  const struct ir_mem *copies[MOST_COPIES];
  uint32_t in = type_bytes(p->load->mem->type);
  int64_t side = in == 16 ? 32 : 64;
  struct tile t = {.name = "places", .i = side, .j = side, .vector_in = 1, .vector_out = 1, .unit = 1};
  if (in == 8) t.j = 32;
  struct when when = {.p = p};
  int count = permute_copies(p, copies);
  permute_need_least(&when, p->fast_out, smallest);
  permute_need_least(&when, p->fast_in, smallest);
  const char *reason = arena_printf(p->arena, "%s, the fastest axis moves, and rows are not known to be made of 16-byte pieces: tiles of %lld by %lld, an element at a time", permute_describe(p),
                                    (long long)t.i, (long long)t.j);
  if (!permute_begin(p, t.name, &when, reason)) return;
  write_tile(p, &t);
  for (int k = 0; k < count; k++)
    text_printf(p->out, "  stage %s at %s in shared as %s pad %u;\n", copies[k]->label, t.tile_axis, permute_copy_name(p, k), in < 4 ? 4 / in : 1);
  for (int k = 0; k < count; k++) {
    const char *copy = permute_copy_name(p, k), *all = permute_fresh(p, arena_printf(p->arena, "%s_fill", copy));
    text_printf(p->out, "  reorder %s.%s, %s.%s;  fuse %s.%s, %s.%s -> %s;\n", copy, t.ii, copy, t.ji, copy, t.ii, copy, t.ji, all);
    permute_write_threads(p, all, t.i * t.j);
  }
  write_output(p, &t);
  permute_end(p);
}

// --- runs -----------------------------------------------------------------------------------------------------------

// The groups beside the kept one that move the output and the input least.
static bool find_near(struct permute *p, struct group **near_out, struct group **near_in) {
  *near_out = *near_in = NULL;
  for (int g = 0; g < p->group_count; g++) {
    struct group *group = &p->groups[g];
    if (group == p->fast_out) continue;
    if (!*near_out || permute_is_at_most(p, p->store, group, *near_out)) *near_out = group;
    if (!*near_in || permute_is_at_most(p, p->load, group, *near_in)) *near_in = group;
  }
  return *near_out && *near_in;
}

// Runs along the kept axis: `lanes` pieces of `vector` elements side by side, of neighbours in the output and in the input.
static void try_runs(struct permute *p, const char *name, uint32_t vector, int64_t lanes, int64_t least) {
  struct group *run = p->fast_out, *near_out, *near_in;
  struct when when = {.p = p};
  if (!find_near(p, &near_out, &near_in)) return;
  permute_need_multiple(&when, run, vector);
  permute_need_least(&when, run, least);
  for (uint32_t i = 0; i < p->view.accesses.count; i++) {
    struct view_access *access = p->view.accesses.at[i];
    if (view_is_unit(&p->view, access, last_axis(run))) permute_need_alignment(&when, access->mem, vector);
  }
  int64_t rows = 1; // pieces of two a thread
  while (rows * 2 * lanes <= 2 * THREADS) rows *= 2;
  int64_t out_rows = near_out == near_in ? rows : rows > 4 ? rows / 4 : rows, in_rows = rows / out_rows;
  if (near_out->count >= 0 && power_up(near_out->count) < out_rows) out_rows = power_up(near_out->count);
  if (near_in->count >= 0 && power_up(near_in->count) < in_rows) in_rows = power_up(near_in->count);
  const char *reason = arena_printf(p->arena, "%s, the fastest axis stays: runs of %u bytes, %lld of a row at a time, %lld rows of the output by %lld of the input", permute_describe(p),
                                    vector * type_bytes(p->store->mem->type), (long long)lanes, (long long)out_rows, (long long)in_rows);
  if (!permute_begin(p, name, &when, reason)) return;
  permute_write_groups(p);
  const char *outside = NULL, *part = run->name, *element = NULL, *threads = permute_fresh(p, "piece"), *block = permute_fresh(p, "tile");
  const char *out_tile = permute_piece(p, near_out, "_tile"), *out_row = permute_piece(p, near_out, "_row"), *in_tile = NULL, *in_row = NULL;
  int64_t pieces = run->count >= 0 ? run->count / vector : -1, count = lanes * out_rows;
  for (int g = 0; g < p->group_count; g++)
    if (&p->groups[g] != run && &p->groups[g] != near_out && &p->groups[g] != near_in) outside = permute_join(p, outside, p->groups[g].name);
  if (vector > 1) {
    part = permute_piece(p, run, "_part"), element = permute_piece(p, run, "_element");
    text_printf(p->out, "  split %s by %u -> %s, %s;\n", run->name, vector, part, element);
  }
  const char *far = NULL, *lane = part;
  if (pieces != lanes) {
    far = permute_piece(p, run, "_far"), lane = permute_piece(p, run, "_lane");
    text_printf(p->out, "  split %s by %lld -> %s, %s;\n", part, (long long)lanes, far, lane);
  }
  text_printf(p->out, "  split %s by %lld -> %s, %s;", near_out->name, (long long)out_rows, out_tile, out_row);
  const char *blocks = permute_join(p, outside, out_tile), *rows_text = out_row;
  if (near_in != near_out) {
    in_tile = permute_piece(p, near_in, "_tile"), in_row = permute_piece(p, near_in, "_row");
    text_printf(p->out, "  split %s by %lld -> %s, %s;", near_in->name, (long long)in_rows, in_tile, in_row);
    blocks = permute_join(p, blocks, in_tile);
    rows_text = permute_join(p, in_row, out_row);
    count *= in_rows;
  }
  if (far) blocks = permute_join(p, blocks, far);
  text_printf(p->out, "\n  reorder %s, %s, %s%s%s;\n", blocks, rows_text, lane, element ? ", " : "", element ? element : "");
  if (strchr(blocks, ',')) text_printf(p->out, "  fuse %s -> %s;  bind %s -> block.x;\n", blocks, block, block);
  else text_printf(p->out, "  bind %s -> block.x;\n", blocks);
  text_printf(p->out, "  fuse %s, %s -> %s;\n", rows_text, lane, threads);
  permute_write_threads(p, threads, count);
  if (element) text_printf(p->out, "  vectorize %s;\n", element);
  permute_end(p);
}

// Whether runs of 64 bytes, 32 of the output by 4 of the input in a block, are as fast as boxes or faster: where both axes beside them are long. An H200,
// f16 [36, 40, 40, 40, 32] to (3, 1, 0, 2, 4): 0.82 of a copy with boxes and 0.92; f32 [30, 31, 34, 35, 16] to (2, 1, 3, 0, 4): 0.93 and 1.01; f64 [24, 24, 24, 24, 8] to
// (3, 1, 0, 2, 4): 0.98 and 0.96.
static bool tiles_fill_runs(struct permute *p, uint32_t vector) {
  enum { PIECES = 4, LONG = 30 };
  struct group *near_out, *near_in;
  return p->fast_out->count == PIECES * (int64_t)vector && find_near(p, &near_out, &near_in) && near_out->count >= LONG && near_in->count >= LONG;
}

static void write_runs(struct permute *p) {
  uint32_t bytes = 1;
  for (uint32_t i = 0; i < p->view.accesses.count; i++) {
    struct view_access *access = p->view.accesses.at[i];
    if (view_is_unit(&p->view, access, last_axis(p->fast_out)) && type_bytes(access->mem->type) > bytes) bytes = type_bytes(access->mem->type);
  }
  uint32_t vector = VECTOR / bytes;
  if (p->fast_out->count >= 0) {
    while (vector > 1 && p->fast_out->count % vector) vector /= 2;
    int64_t pieces = p->fast_out->count / vector;
    if (tiles_fill_runs(p, vector) || !permute_boxes_of_runs(p, vector)) try_runs(p, "runs", vector, pieces <= 32 ? pieces : 32, 1);
    if (vector > 1 && !p->view.is_closed) try_runs(p, "runs_unaligned", 1, p->fast_out->count <= 32 ? p->fast_out->count : 32, 1);
    return;
  }
  try_runs(p, "runs_long", vector, 16, 12 * (int64_t)vector);
  try_runs(p, "runs", vector, 4, 1);
  try_runs(p, "runs_unaligned", 1, 32, 24);
  try_runs(p, "runs_short", 1, 4, 1);
}

// --- gather ---------------------------------------------------------------------------------------------------------

// All axes in the order of the output as one: 16 bytes of it a thread.
static void try_gather(struct permute *p, const char *name, uint32_t vector) {
  struct when when = {.p = p};
  struct group all = {.count = 1};
  for (int g = 0; g < p->group_count; g++) {
    list_append(p->arena, &all.axes, &p->groups[g].axes);
    if (all.count < 0 || p->groups[g].count < 0 || __builtin_mul_overflow(all.count, p->groups[g].count, &all.count)) all.count = -1;
  }
  all.extent = extent_text(p, &all.axes);
  permute_need_multiple(&when, &all, vector);
  permute_need_alignment(&when, p->store->mem, vector);
  const char *reason = arena_printf(p->arena, "%s, fast axes are short: %u bytes written at a time, read one by one", permute_describe(p), vector * type_bytes(p->store->mem->type));
  if (!permute_begin(p, name, &when, reason)) return;
  permute_write_groups(p);
  const char *names = NULL;
  for (int g = 0; g < p->group_count; g++) names = permute_join(p, names, p->groups[g].name);
  const char *flat = permute_fresh(p, "place"), *part = flat, *element = NULL, *block = permute_fresh(p, "block"), *thread = permute_fresh(p, "thread");
  text_printf(p->out, "  fuse %s -> %s;\n", names, flat);
  if (vector > 1) {
    part = permute_fresh(p, "part"), element = permute_fresh(p, "element");
    text_printf(p->out, "  split %s by %u -> %s, %s;\n", flat, vector, part, element);
  }
  text_printf(p->out, "  split %s by %d -> %s, %s;  bind %s -> block.x;  bind %s -> thread.x;\n", part, THREADS, block, thread, block, thread);
  if (element) text_printf(p->out, "  vectorize %s;\n", element);
  permute_end(p);
}

static void write_gather(struct permute *p) {
  uint32_t vector = VECTOR / type_bytes(p->store->mem->type);
  if (vector > 1) try_gather(p, "gather", vector);
  if (!p->view.is_closed) try_gather(p, "gather_unaligned", 1);
}

enum { LEAST_USED = 87 }; // per cent of the tiles' elements that are to be there

// The share of the tiles' elements along an axis that are there.
static double used(int64_t count, int64_t side) { return (double)count / (double)((count + side - 1) / side * side); }

// The elements along an axis that tiles of so many cover, of an extent that a launch brings.
static const char *rounded(struct permute *p, const struct group *group, int64_t side) {
  return arena_printf(p->arena, "((%s + %lld) / %lld * %lld)", group->extent, (long long)side - 1, (long long)side, (long long)side);
}

// Whether tiles of 16-byte pieces fit well: both fast axes are long and made of such pieces, and little of the tiles hangs over.
static bool fits_tiles(struct permute *p) {
  // an H200, f16 [32, 32, 32, 32, 32] to (3, 1, 4, 0, 2): 0.76 of a copy with tiles of 32 by 32, 0.93 as boxes; f64 [24, 24, 24, 24, 24] to (3, 2, 4, 0, 1): 0.88 and 0.95
  enum { SHORTEST = 64, LINE = 128, SECTOR = 32, PIECE = 8, LEAST = 6 * 1024 }; // bytes
  int64_t in = type_bytes(p->load->mem->type), out = type_bytes(p->store->mem->type), i = p->fast_out->count, j = p->fast_in->count;
  if (i * out < SHORTEST || j * in < SHORTEST || i < SMALLEST_SIDE || j < SMALLEST_SIDE) return false;
  if ((i * out < LINE && i * out % SECTOR) || (j * in < LINE && j * in % SECTOR)) return false;
  struct tile t = tile_for(p, "tile", (uint32_t)in, (uint32_t)out, INT64_MAX, false);
  if ((i < t.i ? i : t.i) * (j < t.j ? j : t.j) * in < LEAST) return false;
  return t.vector_in * in >= PIECE && t.vector_out * out >= PIECE && i % t.vector_out == 0 && j % t.vector_in == 0 && 100 * used(i, t.i) * used(j, t.j) >= LEAST_USED;
}

// Whether runs of 16 bytes fit: the kept axis is long and made of such pieces.
static bool fits_runs(const struct permute *p) {
  enum { SHORTEST = 64 }; // bytes
  int64_t bytes = p->fast_out->count * type_bytes(p->store->mem->type);
  return bytes >= SHORTEST && bytes % VECTOR == 0;
}

// --- Sizes that a launch brings ---------------------------------------------------------------------------------------

// Where a just-in-time compiler will know the sizes, large arrays that no tiles or runs of 16 bytes fit wait for them.
static void write_exact(struct permute *p, bool is_moved) {
  enum { LEAST_BYTES = 32 << 20 };
  uint32_t in = type_bytes(p->load->mem->type), out = type_bytes(p->store->mem->type);
  struct when when = {.p = p};
  const char *elements = NULL, *axis = NULL;
  for (int g = 0; g < p->group_count; g++) {
    const struct group *group = &p->groups[g];
    elements = elements ? arena_printf(p->arena, "%s * %s", elements, group->extent) : group->extent;
    for (uint32_t i = 0; i < group->axes.count && !axis; i++)
      if (view_count(list_at(&group->axes, struct ir_axis, i)) < 0) axis = list_at(&group->axes, struct ir_axis, i)->var->label;
  }
  if (is_moved) {
    struct tile large = tile_for(p, "tile_large", in, out, INT64_MAX, false);
    large.least_i = large.i, large.least_j = large.j;
    // beyond 2^31 bytes, 64-bit places need sizes that are known; of tiles that hang over, boxes of known sizes are faster: an H200, f64 [202, 202, 204] to (1, 2, 0)
    // 0.81 of a copy and 0.98, c128 [45, 45, 45, 47] to (1, 2, 3, 0) 0.80 and 1.04, [44, 44, 44, 48] 0.89 and 0.98
    large.only = arena_printf(p->arena, "%s < %lld && 100 * (%s) * (%s) >= %d * %s * %s", elements, (1LL << 31) / (in > out ? in : out), p->fast_out->extent, p->fast_in->extent,
                              LEAST_USED, rounded(p, p->fast_out, large.i), rounded(p, p->fast_in, large.j));
    try_tile(p, large);
  } else if (p->group_count < 4) { // of more axes, boxes of known sizes are faster: c128 [20, 20, 20, 20, 26] to (3, 0, 2, 1, 4) 0.94 of a copy and 0.86, f64 [24, 24, 24, 24, 24] to (3, 1, 0, 2, 4) 0.92 and 0.86
    try_runs(p, "runs_large", VECTOR / (in > out ? in : out), 16, 12 * (int64_t)(VECTOR / (in > out ? in : out)));
  }
  add_condition(&when, arena_printf(p->arena, "%s >= %d", elements, LEAST_BYTES / (int)in));
  const char *reason = arena_printf(p->arena, "%s, the rest of what is large: chosen when a launch has brought the sizes", permute_describe(p));
  if (!axis || !permute_begin(p, PLAN_EXACT, &when, reason)) return;
  text_printf(p->out, "  bind %s -> thread.x;\n}\n", axis);
}

// Whether the class is to be written: the one that is asked for, or else any.
static bool takes(struct automatic *a, const char *class_name) { return automatic_takes(a, class_name) || !a->forced; }

bool automatic_permute(struct automatic *a) {
  size_t before = a->out->length;
  struct permute p = {.a = a, .arena = a->arena, .out = a->out};
  const struct ir_mem *copies[MOST_COPIES];
  if (!view_make(a, &p.view) || !find_accesses(&p) || !find_groups(&p)) return false;
  for (int g = 0; g < p.group_count; g++)
    if (p.groups[g].count == 0) return false; // nothing is moved
  find_load(&p);
  if (!p.load || !p.fast_out || (p.fast_in == p.fast_out && p.group_count < 3)) return false;
  bool is_moved = p.fast_in && p.fast_in != p.fast_out && permute_copies(&p, copies), is_kept = p.fast_in == p.fast_out, is_known = true;
  for (int g = 0; g < p.group_count; g++) is_known &= p.groups[g].count >= 0;
  // An H200, 128 MiB of odd matrices, in parts of a copy's speed: lines of f32 0.95 and pack 0.69, of f64 0.82 and 0.92, of c128 0.96; lines of words of u8 0.94
  // and 0.69, of f16 0.96 and 0.85. Runs, units in words and pack: of three, f64 0.94 and 0.89, f32 0.93 and 0.82, f16 0.87 and 0.65, u8 0.81 and 0.52; of five, f64 0.89
  // and 0.93, f32 0.90 and 0.80, f16 0.70 and 0.77, u8 0.73 and 0.74; of seven, f32 0.88 and 0.86, u8 0.71 and 0.57; of nine, f16 0.79 and 0.65; of two and six 0.69 to 0.87 and 0.80 to
  // 0.95. Two to four planes, planes and pack: of u8 0.97 to 1.00 and 0.75 to 0.90, of f16 0.97 to 0.99 and 0.81 to 0.93.
  bool wants_lines = is_known && is_moved && (a->forced || !fits_tiles(&p));
  int64_t element = type_bytes(p.load->mem->type);
  if (wants_lines && takes(a, "lines") && (a->forced || element != 8)) permute_lines(&p);
  if (wants_lines && takes(a, "lines") && (a->forced || (element <= 2 && p.fast_in->count >= SMALLEST_SIDE && p.fast_out->count >= SMALLEST_SIDE))) permute_lines_of_words(&p);
  if (is_known && is_moved && takes(a, "planes") && (a->forced || (element <= 2 && (p.fast_in->count <= 4 || p.fast_out->count <= 4)))) permute_planes(&p);
  if (is_known && is_moved && takes(a, "whole")) permute_whole_in_registers(&p);
  if (is_known && is_kept && takes(a, "units") && (a->forced || (p.fast_out->count % 2 && (p.fast_out->count == 3 || element == 4 || (element < 4 && p.fast_out->count != 5))))) permute_units_in_words(&p);
  if (is_known && is_kept && takes(a, "odd_runs")) permute_odd_runs(&p);
  if (is_known && p.fast_in && !p.view.is_closed && takes(a, "pack") && (a->forced || !(is_moved ? fits_tiles(&p) : fits_runs(&p)))) permute_pack(&p);
  if (!is_known && p.fast_in && !a->forced && a->context->options->is_at_launch && (is_moved || is_kept)) write_exact(&p, is_moved);
  if (is_moved && takes(a, "tile")) write_tiles(&p, SMALLEST_SIDE);
  bool is_gathered = element >= 4 && p.fast_in && p.fast_in->count >= 0 && p.fast_out->count >= 0 && p.fast_in->count <= 64 && p.fast_out->count <= 64 && p.fast_in->count * p.fast_out->count <= 64;
  if (is_moved && !p.view.is_closed && takes(a, "whole") && (a->forced || !is_gathered)) permute_whole(&p); // words of small matrices come from the cache as fast
  if (is_moved && !p.view.is_closed && takes(a, "places")) write_places(&p, SMALLEST_SIDE);
  if (is_kept && !p.view.is_closed && takes(a, "units")) permute_units(&p);
  if (is_kept && !p.view.is_closed && takes(a, "runs")) write_runs(&p);
  if (!p.view.is_closed && takes(a, "gather")) write_gather(&p);
  return a->out->length > before;
}

#include "passes/automatic_write.h"

#include <string.h>

#include "passes/rescale.h"
#include "passes/stage.h"
#include "passes/stage_load.h"

enum { VECTOR_BYTES = 16, KEPT_BYTES = 256, THREADS = 256, SERIAL_FLIGHT = 8, MAX_WHOLE = 16 };

// --- Shapes ----------------------------------------------------------------------------------------------------------

struct fused view_fuse(const struct view *view, const struct view_stage *stage, const struct list *axes, bool all) {
  struct fused fused = {.is_sorted = true};
  bool is_ordered = stage->space >= 0 && view->spaces[stage->space].is_ordered;
  struct list sorted = is_ordered ? *axes : view_sorted(view, stage, axes);
  for (uint32_t i = 0; i < sorted.count; i++) fused.is_sorted &= sorted.at[i] == axes->at[i];
  bool is_free = true; // no range among them depends on another axis
  for (uint32_t i = 0; i < sorted.count; i++) is_free &= !mentions_axis(list_at(&sorted, struct ir_axis, i)->extent);
  uint32_t first = sorted.count ? sorted.count - 1 : 0;
  while (first > 0 && is_free && (all || view_count(sorted.at[first - 1]) == 1 || view_count(sorted.at[first]) == 1 || view_can_merge(view, sorted.at[first - 1], sorted.at[first]))) first--;
  if (!is_free) fused.is_sorted = true, sorted = *axes;
  for (uint32_t i = 0; i < sorted.count; i++) list_push(view->a->arena, i < first ? &fused.outer : &fused.inner, sorted.at[i]);
  return fused;
}

// The innermost axis that has more than one iteration.
static struct ir_axis *fastest(const struct fused *fused) {
  for (uint32_t i = fused->inner.count; i-- > 1;)
    if (view_count(fused->inner.at[i]) != 1) return fused->inner.at[i];
  return fused->inner.count ? fused->inner.at[0] : NULL;
}

// Whether every term of the place but those of the fused axis is a multiple of `vector`, as far as constants tell.
static bool is_aligned(const struct view *view, const struct view_access *access, const struct fused *fused, int vector) {
  struct facts *facts = &access->stage->facts;
  struct poly rest = access->offset;
  for (uint32_t i = 0; i < fused->inner.count; i++) {
    struct poly stride = view_stride(view, access, fused->inner.at[i]), left;
    if (!stride.is_valid || !poly_linear(facts, rest, list_at(&fused->inner, struct ir_axis, i)->var, &stride, &left)) return false;
    rest = left;
  }
  const struct list *axes[] = {&view->common, &access->stage->own};
  for (uint32_t l = 0; l < 2; l++)
    for (uint32_t i = 0; i < axes[l]->count; i++) { // an axis of one iteration moves nothing
      struct ir_axis *axis = axes[l]->at[i];
      struct poly stride, left;
      if (view_count(axis) == 1 && poly_linear(facts, rest, axis->var, &stride, &left)) rest = left;
    }
  for (uint32_t i = 0; i < rest.count; i++) {
    bool is_of_axes_alone = true; // a term with a size in it is a stride, and assumed to be a multiple
    struct poly one = {true, 1, &rest.terms[i]};
    struct ir_expr *term = poly_to_expr(facts, one);
    for (uint32_t s = 0; s < view->a->kernel->sizes.count; s++) is_of_axes_alone &= !ir_mentions(term, view->a->kernel->sizes.at[s]);
    if (is_of_axes_alone && rest.terms[i].coefficient % vector) return false;
  }
  return true;
}

int view_vector(const struct view *view, int space, const struct fused *fused) {
  struct ir_axis *axis = fastest(fused);
  if (!axis || mentions_axis(axis->extent)) return 1;
  int bytes = 0;
  for (uint32_t i = 0; i < view->accesses.count; i++) {
    struct view_access *access = view->accesses.at[i];
    if ((space >= 0 && access->stage->space != space) || !view_is_unit(view, access, axis)) continue;
    int size = (int)type_bytes(access->mem->type);
    if (size > bytes) bytes = size;
  }
  if (!bytes || bytes >= VECTOR_BYTES) return 1;
  int vector = VECTOR_BYTES / bytes;
  int64_t count = view_product(&fused->inner);
  while (vector > 1 && count >= 0 && count % vector) vector /= 2;
  for (uint32_t i = 0; i < view->accesses.count && vector > 1; i++) {
    struct view_access *access = view->accesses.at[i];
    if ((space >= 0 && access->stage->space != space) || !view_is_unit(view, access, axis)) continue;
    while (vector > 1 && !is_aligned(view, access, fused, vector)) vector /= 2;
  }
  return vector;
}

// --- Text ------------------------------------------------------------------------------------------------------------

struct writer {
  struct view *view;
  struct arena *arena;
  struct text *out;
  struct list taken; // const char *
  bool rescales;     // see begin
  const struct view_stage **joined; // by stages: the first of those that each is joined with; NULL: it is not
};

// `rescales`: a maximum and the sum of exponentials below it are one reduction, since what they read is not kept.
static struct writer begin(struct view *view, const char *name, const char *when, const char *reason, bool rescales) {
  struct writer w = {.view = view, .arena = view->a->arena, .out = view->a->out, .rescales = rescales};
  const char *condition = view->a->condition;
  if (rescales && view_rescales(view)) reason = arena_printf(w.arena, "%s; a maximum and the sum of exponentials below it in one pass", reason);
  if (view->extra) when = when && *when ? arena_printf(w.arena, "%s && %s", view->extra, when) : view->extra;
  text_printf(w.out, "// %s: %s\n", name, reason);
  text_printf(w.out, "schedule %s as %s", view->a->kernel->label, name);
  if (when && !*when) when = NULL;
  view->is_closed |= !when;
  diag_remark(view->a->context->diag, "schedule", view->a->kernel->range, "the compiler's own schedule '%s': %s", name, reason);
  if (when || condition) text_printf(w.out, " when %s%s%s", condition ? condition : "", condition && when ? " && " : "", when ? when : "");
  text_puts(w.out, " {\n");
  return w;
}

static void end(struct writer *w) { text_puts(w->out, "}\n"); }

static const char *piece(struct writer *w, const char *axis, const char *suffix) {
  return view_fresh(w->view, &w->taken, arena_printf(w->arena, "%s%s", axis, suffix));
}

// Makes one axis of several; returns its name.
static const char *write_fuse(struct writer *w, const struct list *axes) {
  const char *name = list_at(axes, struct ir_axis, 0)->var->label;
  if (axes->count == 1) return name;
  for (uint32_t i = 1; i < axes->count; i++) name = arena_printf(w->arena, "%s_%s", name, list_at(axes, struct ir_axis, i)->var->label);
  name = view_fresh(w->view, &w->taken, name);
  text_printf(w->out, "  fuse %s -> %s;\n", view_names(w->view, axes), name);
  return name;
}

static void write_split(struct writer *w, const char *axis, int factor, const char *outer, const char *inner) {
  text_printf(w->out, "  split %s by %d -> %s, %s;\n", axis, factor, outer, inner);
}

static void write_bind(struct writer *w, const char *axis, const char *place) { text_printf(w->out, "  bind %s -> %s;\n", axis, place); }

// The nest's order of a space's axes, and its innermost ones as one; returns that one's name.
static const char *write_space(struct writer *w, const struct fused *fused) {
  if (!fused->is_sorted)
    text_printf(w->out, "  reorder %s%s%s;\n", view_names(w->view, &fused->outer), fused->outer.count ? ", " : "", view_names(w->view, &fused->inner));
  return write_fuse(w, &fused->inner);
}

// Deals the steps of a reduction to the blocks of the grid in turn: as many pieces as make `each` blocks a multiprocessor, beside the blocks that
// run over `kept` (NULL: one block). Returns the name of what a block does.
static const char *write_parts(struct writer *w, const char *axis, const char *steps, int each, const char *kept, const char **part) {
  const char *turn = piece(w, axis, "_turn"), *blocks = arena_printf(w->arena, "%d * sms", each);
  *part = piece(w, axis, "_part");
  if (kept) blocks = arena_printf(w->arena, "%s / max(1, %s)", blocks, kept);
  text_printf(w->out, "  split %s by max(1, min(extent(%s), %s)) -> %s, %s;\n", steps, steps, blocks, turn, *part);
  write_bind(w, *part, "block.z");
  text_printf(w->out, "  combine %s by last_block;\n", *part);
  return turn;
}

// --- Joins and registers -----------------------------------------------------------------------------------------------

// The name of a stage that no other reduction has; NULL: there is none.
static const char *own_name(const struct view *view, const struct view_stage *stage) {
  const char *label = stage->stage->label, *comma = strchr(label, ',');
  if (comma) label = arena_strndup(view->a->arena, label, (size_t)(comma - label));
  for (uint32_t i = 0; i < view->stages.count; i++) {
    struct view_stage *other = view->stages.at[i];
    if (other != stage && other->stage->kind == STAGE_REDUCE && stage_is_named(other->stage, label)) return NULL;
  }
  return label;
}

static bool needs(const struct ir_stage *stage, const struct ir_stage *producer) {
  for (uint32_t i = 0; i < producer->results.count; i++)
    if (stage_reads(stage, producer->results.at[i])) return true;
  return false;
}

// Whether the stage needs a result of an earlier one, other than as a sum of exponentials that is joined with its maximum; `rescales`: such are.
static bool needs_result(const struct view_stage *stage, const struct view_stage *earlier, bool rescales) {
  return needs(stage->stage, earlier->stage) && !(rescales && stage->space == earlier->space && rescale_fits(earlier->stage, stage->stage));
}

bool view_rescales(const struct view *view) {
  for (uint32_t k = 0; k < view->stages.count; k++)
    for (uint32_t i = 0; i < k; i++) {
      const struct view_stage *first = view->stages.at[i], *second = view->stages.at[k];
      if (first->own.count && first->space == second->space && own_name(view, first) && own_name(view, second) && rescale_fits(first->stage, second->stage)) return true;
    }
  return false;
}

bool view_can_join(const struct view *view) {
  const struct view_stage *first = NULL;
  uint32_t count = 0;
  for (uint32_t i = 0; i < view->stages.count; i++) {
    const struct view_stage *stage = view->stages.at[i];
    if (stage->stage->kind != STAGE_REDUCE || !stage->own.count) continue;
    if (first && stage->space != first->space) return false;
    for (uint32_t e = 0; e < i; e++)
      if (needs_result(stage, view->stages.at[e], true)) return false;
    first = stage;
    count++;
  }
  for (uint32_t i = 0; i < view->stages.count && count > 1; i++) {
    const struct view_stage *stage = view->stages.at[i];
    if (stage->stage->kind == STAGE_REDUCE && stage->own.count && !own_name(view, stage)) return false;
  }
  return count > 0;
}

// Reductions over the same axes share one loop where none needs the result of one outside it.
static void write_joins(struct writer *w) {
  const struct list *stages = &w->view->stages;
  const struct view_stage **joined = w->joined = arena_array(w->arena, const struct view_stage *, stages->count + 1);
  for (uint32_t i = 0; i < stages->count; i++) {
    struct view_stage *first = stages->at[i];
    const char *names = own_name(w->view, first);
    if (joined[i] || first->stage->kind != STAGE_REDUCE || !first->own.count || !names) continue;
    uint32_t count = 1;
    joined[i] = first;
    for (uint32_t k = i + 1; k < stages->count; k++) {
      struct view_stage *other = stages->at[k];
      const char *name = own_name(w->view, other);
      bool is_free = !joined[k] && other->stage->kind == STAGE_REDUCE && other->space == first->space && name;
      for (uint32_t e = i; e < k && is_free; e++) is_free = !needs_result(other, stages->at[e], w->rescales && joined[e] == first);
      if (!is_free) continue;
      joined[k] = first;
      names = arena_printf(w->arena, "%s, %s", names, name);
      count++;
    }
    if (count > 1) text_printf(w->out, "  join %s;\n", names);
  }
}

struct reads {
  const struct ir_mem *mem;
  struct ir_expr *load;
  bool differs;
};

static void find_read(struct ir_expr *e, void *state) {
  struct reads *reads = state;
  if (e->op != OP_LOAD || e->mem != reads->mem) return;
  if (!reads->load) reads->load = e;
  else if (!ir_equal(reads->load, e)) reads->differs = true;
}

// Whether several stages of one space, and no others, read the tensor, each one element of it under no condition.
static bool is_read_again(const struct view *view, const struct ir_mem *mem) {
  int readers = 0, space = -1;
  for (uint32_t i = 0; i < view->stages.count; i++) {
    const struct view_stage *stage = view->stages.at[i];
    struct reads reads = {.mem = mem};
    for (uint32_t k = 0; k < stage->stage->operands.count; k++) ir_visit_expr(stage->stage->operands.at[k], find_read, &reads);
    for (uint32_t k = 0; k < stage->stage->init.count; k++) ir_visit_expr(stage->stage->init.at[k], find_read, &reads);
    ir_visit_block(&stage->stage->lets, find_read, &reads);
    if (stage->stage->value) ir_visit_expr(stage->stage->value, find_read, &reads);
    if (!reads.load) continue;
    if (reads.differs || stage->space < 0 || stage->stage->guards.count || (readers && stage->space != space)) return false;
    space = stage->space;
    readers++;
  }
  return readers > 1;
}

// Whether the element read moves along all axes of the space: what does not is small and stays in the cache.
static bool moves_along_all(const struct view *view, const struct ir_mem *mem) {
  for (uint32_t i = 0; i < view->accesses.count; i++) {
    const struct view_access *access = view->accesses.at[i];
    if (access->mem != mem || access->is_store) continue;
    for (uint32_t k = 0; k < view->common.count; k++) {
      struct poly stride = view_stride(view, access, view->common.at[k]);
      if (!stride.is_valid || poly_is_zero(stride)) return false;
    }
  }
  return true;
}

bool view_keeps_one(const struct view *view) {
  const struct list *tensors = &view->a->kernel->tensors;
  int count = 0;
  for (uint32_t i = 0; i < tensors->count; i++) {
    const struct ir_mem *mem = tensors->at[i];
    int readers = 0;
    for (uint32_t k = 0; k < view->stages.count; k++) readers += stage_find_load(list_at(&view->stages, struct view_stage, k)->stage, mem).load != NULL;
    if (readers < 2 || mem->is_output || !moves_along_all(view, mem)) continue;
    if (!is_read_again(view, mem)) return false;
    count++;
  }
  return count == 1 && !view->is_dependent;
}

// Tensors that several stages read are kept in registers inside the axis `at`, `elements` of each a thread; of `depth` steps alone where that is not 0.
static void write_registers(struct writer *w, const char *at, int64_t elements, int depth) {
  const struct list *tensors = &w->view->a->kernel->tensors;
  int64_t bytes = 0;
  for (uint32_t i = 0; i < tensors->count && !w->view->is_dependent; i++) {
    const struct ir_mem *mem = tensors->at[i];
    int64_t size = elements * (type_bytes(mem->type) < 4 ? 4 : type_bytes(mem->type));
    if (mem->is_output || !is_read_again(w->view, mem) || !moves_along_all(w->view, mem) || bytes + size > KEPT_BYTES) continue;
    bytes += size;
    text_printf(w->out, "  stage %s at %s in registers", mem->label, at);
    text_printf(w->out, depth ? " depth %d;\n" : ";\n", depth);
  }
}

// Whether the stages that read the tensor are joined and read each element at once. An H200, mean and variance of 2^24 elements: 20.03 us with the hint that this
// allows and 20.13 without (1024 rows), 20.06 and 20.19 (16384 columns); softmax and layer normalisation, which write as much, gain nothing.
static bool is_read_at_once(const struct writer *w, const struct ir_mem *mem) {
  const struct view_stage *group = NULL;
  for (uint32_t i = 0; i < w->view->stages.count; i++) {
    const struct view_stage *stage = w->view->stages.at[i];
    if (!stage_find_load(stage->stage, mem).load) continue;
    if (!w->joined || !w->joined[i] || (group && w->joined[i] != group)) return false;
    group = w->joined[i];
  }
  return group && is_read_again(w->view, mem);
}

// Whether each element of the tensor is read once, and none is written.
static bool is_read_once(const struct writer *w, const struct ir_mem *mem) {
  const struct view_access *first = NULL;
  bool is_once = is_read_at_once(w, mem);
  for (uint32_t k = 0; k < w->view->accesses.count; k++) {
    const struct view_access *access = w->view->accesses.at[k];
    if (access->mem != mem) continue;
    if (access->is_store || (first && !is_once) || !moves_along_all(w->view, mem)) return false;
    for (uint32_t o = 0; o < access->stage->own.count; o++) {
      struct poly stride = view_stride(w->view, access, access->stage->own.at[o]);
      if (!stride.is_valid || poly_is_zero(stride)) return false;
    }
    first = access;
  }
  return first;
}

// How caches keep tensors of which each element is read once.
static void write_cache(struct writer *w, const char *hint) {
  const struct list *tensors = &w->view->a->kernel->tensors;
  for (uint32_t i = 0; i < tensors->count && hint; i++) {
    const struct ir_mem *mem = tensors->at[i];
    if (is_read_once(w, mem)) text_printf(w->out, "  cache %s by %s;\n", mem->label, hint);
  }
}

// --- Rows ------------------------------------------------------------------------------------------------------------

// The kept axes onto blocks, groups of threads and rows of a thread; returns the innermost one's name, NULL where there is none.
static const char *write_kept(struct writer *w, const struct rows_form *form) {
  if (!w->view->common.count) return NULL;
  const char *row = write_fuse(w, &w->view->common), *groups = form->lanes == 1 ? "thread.x" : "thread.y", *at = row;
  if (form->groups * form->rows == 1) {
    write_bind(w, row, "block.x");
    return row;
  }
  const char *block = piece(w, row, "_block"), *inside = row, *several = NULL;
  if (form->groups > 1 && form->rows > 1) {
    inside = piece(w, row, "_tile");
    write_split(w, row, form->groups * form->rows, block, inside);
    several = piece(w, row, "_row");
    at = piece(w, row, "_group");
    if (form->are_neighbours) write_split(w, inside, form->rows, at, several);
    else write_split(w, inside, form->groups, several, at);
  } else {
    at = form->groups > 1 ? piece(w, row, "_group") : NULL;
    several = form->rows > 1 ? piece(w, row, "_row") : NULL;
    write_split(w, row, form->groups * form->rows, block, at ? at : several);
  }
  write_bind(w, block, "block.x");
  if (at) write_bind(w, at, groups);
  if (several) text_printf(w->out, "  %s %s;\n", form->are_neighbours ? "vectorize" : "unroll", several);
  return at ? at : several;
}

// One space's axes onto lanes, loads and vectors. Returns how many elements a thread has, 0 where that has no bound.
static int64_t write_row(struct writer *w, int space, const struct rows_form *form, const char *row) {
  struct view_stage *stage = w->view->spaces[space].first;
  struct fused fused = view_fuse(w->view, stage, &stage->own, form->fuse_all);
  int vector = view_vector(w->view, space, &fused);
  if (vector > form->vector) vector = form->vector;
  const char *axis = write_space(w, &fused), *rest = axis;
  int64_t count = view_product(&fused.inner), steps = 0;
  if (vector > 1) {
    const char *element = piece(w, axis, "_v");
    rest = piece(w, axis, "_vec");
    write_split(w, axis, vector, rest, element);
    text_printf(w->out, "  vectorize %s;\n", element);
  }
  if (form->lanes > 1) {
    const char *outer = piece(w, axis, "_step"), *lane = piece(w, axis, "_lane");
    write_split(w, rest, form->lanes, outer, lane);
    write_bind(w, lane, "thread.x");
    rest = outer;
  }
  int64_t reach = (int64_t)vector * form->lanes;
  bool is_bounded = form->flight == 0 && !mentions_axis(list_at(&fused.inner, struct ir_axis, 0)->extent);
  if (form->are_neighbours) {
    text_printf(w->out, "  vectorize %s;\n", rest);
    return count;
  }
  if (is_bounded && count >= 0) steps = (count + reach - 1) / reach;
  if (is_bounded && !form->parts && (count < 0 || steps <= 64 || form->depth)) {
    if (steps != 1) text_printf(w->out, "  unroll %s;\n", rest);
    return fused.outer.count ? 0 : (count < 0 ? form->steps : steps) * vector;
  }
  const char *loop = piece(w, axis, "_loop"), *load = piece(w, axis, "_load");
  write_split(w, rest, form->flight ? form->flight : SERIAL_FLIGHT, loop, load);
  text_printf(w->out, "  unroll %s;\n", load);
  const char *part, *kept = row ? arena_printf(w->arena, "extent(%s)", row) : NULL;
  if (form->parts && !fused.outer.count) write_parts(w, axis, loop, form->parts, kept, &part);
  else if (form->parts) write_parts(w, list_at(&fused.outer, struct ir_axis, 0)->var->label, list_at(&fused.outer, struct ir_axis, 0)->var->label, form->parts, kept, &part);
  return 0;
}

void write_rows(struct view *view, const struct rows_form *form) {
  struct writer w = begin(view, form->name, form->when, form->reason, form->flight || form->parts);
  write_joins(&w);
  const char *at = write_kept(&w, form);
  int64_t elements = 0;
  for (int s = 0; s < view->space_count; s++) {
    int64_t kept = write_row(&w, s, form, at);
    if (s == 0 || kept > elements) elements = kept;
  }
  if (at && elements && form->rows == 1) write_registers(&w, at, form->depth ? (int64_t)form->depth * form->vector : elements, form->depth);
  if (form->blocks > 1) text_printf(w.out, "  blocks %d;\n", form->blocks);
  write_cache(&w, form->cache);
  end(&w);
}

// --- Rows as one run of memory -----------------------------------------------------------------------------------------

void write_staged(struct view *view, const struct staged_form *form) {
  struct writer w = begin(view, form->name, form->when, form->reason, false);
  struct view_stage *stage = view->spaces[0].first;
  struct fused fused = view_fuse(view, stage, &stage->own, form->fuse_all);
  write_joins(&w);
  const char *row = write_fuse(&w, &view->common), *block = piece(&w, row, "_block"), *group = piece(&w, row, "_group");
  write_split(&w, row, form->rows, block, group);
  write_bind(&w, block, "block.x");
  write_bind(&w, group, form->lanes == 1 ? "thread.x" : "thread.y");
  const char *axis = write_space(&w, &fused), *copy = piece(&w, form->tensor, "_rows"), *run = piece(&w, axis, "_run");
  const char *vector = piece(&w, axis, "_copy"), *element = piece(&w, axis, "_v"), *turn = piece(&w, axis, "_turn"), *thread = piece(&w, axis, "_thread");
  text_printf(w.out, "  stage %s at %s in shared as %s by cp_async;\n", form->tensor, block, copy);
  text_printf(w.out, "  fuse %s.%s, %s.%s -> %s;\n", copy, group, copy, axis, run);
  write_split(&w, run, form->vector, vector, element);
  text_printf(w.out, "  vectorize %s;\n", element);
  write_split(&w, vector, form->rows * form->lanes, turn, thread);
  if (form->lanes == 1) {
    write_bind(&w, thread, "thread.x");
  } else {
    const char *across = piece(&w, axis, "_y"), *along = piece(&w, axis, "_x"), *step = piece(&w, axis, "_step"), *lane = piece(&w, axis, "_lane");
    write_split(&w, thread, form->lanes, across, along);
    write_bind(&w, along, "thread.x");
    write_bind(&w, across, "thread.y");
    const char *rest = axis;
    if (form->read > 1) {
      const char *part = piece(&w, axis, "_part");
      rest = piece(&w, axis, "_vec");
      write_split(&w, axis, form->read, rest, part);
      text_printf(w.out, "  vectorize %s;\n", part);
    }
    write_split(&w, rest, form->lanes, step, lane);
    write_bind(&w, lane, "thread.x");
    text_printf(w.out, "  unroll %s;\n", step);
  }
  text_printf(w.out, "  unroll %s;\n", turn);
  write_cache(&w, form->cache);
  end(&w);
}

// --- Columns ---------------------------------------------------------------------------------------------------------

void write_columns(struct view *view, const struct columns_form *form) {
  int64_t depth = view_product(&view->main->stage->own);
  bool is_short = form->kept || (depth >= 0 && (depth + form->threads - 1) / form->threads <= MAX_WHOLE && !form->parts); // whole loops over the same places: read once as it is
  struct writer w = begin(view, form->name, form->when, form->reason, !is_short);
  write_joins(&w);
  struct fused kept = view_fuse(view, view->main->stage, &view->common, false);
  if (!kept.is_sorted) {
    text_printf(w.out, "  reorder %s%s%s;\n", view_names(view, &kept.outer), kept.outer.count ? ", " : "", view_names(view, &kept.inner));
  }
  const char *batch = kept.outer.count ? write_fuse(&w, &kept.outer) : NULL, *output = write_fuse(&w, &kept.inner), *rest = output, *element = NULL;
  if (form->vector > 1) {
    element = piece(&w, output, "_v");
    rest = piece(&w, output, "_vec");
    write_split(&w, output, form->vector, rest, element);
  }
  const char *block = piece(&w, output, "_block"), *lane = piece(&w, output, "_lane"), *tile = lane;
  if (form->apart > 1) tile = piece(&w, output, "_tile");
  write_split(&w, rest, form->lanes * (form->apart > 1 ? form->apart : 1), block, tile);
  if (form->apart > 1) {
    element = piece(&w, output, "_more");
    write_split(&w, tile, form->lanes, element, lane);
  }
  write_bind(&w, block, "block.x");
  if (batch) write_bind(&w, batch, "block.y");
  write_bind(&w, lane, "thread.x");
  for (int s = 0; s < view->space_count; s++) {
    struct view_stage *stage = view->spaces[s].first;
    struct fused fused = view_fuse(view, stage, &stage->own, false);
    const char *axis = write_space(&w, &fused), *steps = axis, *thread = NULL;
    if (form->threads > 1) {
      thread = piece(&w, axis, "_thread");
      steps = piece(&w, axis, "_step");
      write_split(&w, axis, form->threads, steps, thread);
      write_bind(&w, thread, "thread.y");
    }
    int64_t count = view_product(&fused.inner), each = count < 0 ? -1 : (count + form->threads - 1) / form->threads;
    const char *loop = steps, *load = NULL;
    bool is_whole = form->kept || (each >= 0 && each <= MAX_WHOLE && !form->parts);
    if (!is_whole) {
      loop = piece(&w, axis, "_loop");
      load = piece(&w, axis, "_load");
      write_split(&w, steps, form->flight ? form->flight : SERIAL_FLIGHT, loop, load);
    }
    const char *part = NULL;
    if (form->parts) {
      const char *blocks = arena_printf(w.arena, batch ? "(extent(%s) * extent(%s))" : "extent(%s)", block, batch);
      loop = write_parts(&w, axis, loop, form->parts, blocks, &part);
    }
    if (element) {
      text_puts(w.out, "  reorder ");
      if (batch) text_printf(w.out, "%s, ", batch);
      text_printf(w.out, "%s, %s, ", block, lane);
      if (part) text_printf(w.out, "%s, ", part);
      if (fused.outer.count) text_printf(w.out, "%s, ", view_names(view, &fused.outer));
      if (thread) text_printf(w.out, "%s, ", thread);
      text_printf(w.out, "%s%s%s, %s;\n", loop, load ? ", " : "", load ? load : "", element);
    }
    if (!is_whole || each != 1) text_printf(w.out, "  unroll %s;\n", is_whole ? loop : load);
    // how threads combine must not depend on how many outputs each has
    if (thread && view->a->context->options->batch_invariant) text_printf(w.out, "  allreduce %s by tree;\n", thread);
  }
  if (element) text_printf(w.out, "  %s %s;\n", form->apart > 1 ? "unroll" : "vectorize", element);
  if (form->kept) write_registers(&w, lane, (int64_t)(form->depth ? form->depth : form->kept) * form->vector, form->depth);
  if (form->blocks > 1) text_printf(w.out, "  blocks %d;\n", form->blocks);
  write_cache(&w, form->cache);
  end(&w);
}

// --- Element-wise work -------------------------------------------------------------------------------------------------

void write_map(struct view *view, const struct map_form *form) {
  struct writer w = begin(view, form->name, form->when, form->reason, false);
  const struct fused *fused = form->fused;
  if (!fused->is_sorted)
    text_printf(w.out, "  reorder %s%s%s;\n", view_names(view, &fused->outer), fused->outer.count ? ", " : "", view_names(view, &fused->inner));
  const char *batch = fused->outer.count ? write_fuse(&w, &fused->outer) : NULL, *axis = write_fuse(&w, &fused->inner), *rest = axis;
  if (form->vector > 1) {
    const char *element = piece(&w, axis, "_v");
    rest = piece(&w, axis, "_vec");
    write_split(&w, axis, form->vector, rest, element);
    text_printf(w.out, "  vectorize %s;\n", element);
  }
  const char *block = piece(&w, axis, "_block"), *thread = piece(&w, axis, "_thread"), *tile = thread;
  if (form->flight > 1) tile = piece(&w, axis, "_tile");
  write_split(&w, rest, THREADS * form->flight, block, tile);
  if (form->flight > 1) {
    const char *load = piece(&w, axis, "_load");
    write_split(&w, tile, THREADS, load, thread);
    text_printf(w.out, "  unroll %s;\n", load);
  }
  write_bind(&w, block, "block.x");
  if (batch) write_bind(&w, batch, "block.y");
  write_bind(&w, thread, "thread.x");
  write_cache(&w, form->cache);
  end(&w);
}

void write_placeholder(struct view *view, const char *name, const char *when, const char *axis, const char *reason) {
  struct writer w = begin(view, name, when, reason, false);
  write_bind(&w, axis, "thread.x");
  end(&w);
}

// --- One thread an output --------------------------------------------------------------------------------------------------

void write_thread(struct view *view, const char *when, const char *reason) {
  struct writer w = begin(view, "thread", when, reason, false);
  if (view->common.count) {
    const char *output = write_fuse(&w, &view->common), *block = piece(&w, output, "_block"), *thread = piece(&w, output, "_thread");
    write_split(&w, output, THREADS, block, thread);
    write_bind(&w, block, "block.x");
    write_bind(&w, thread, "thread.x");
  }
  for (int s = 0; s < view->space_count; s++) { // several loads in flight
    struct ir_axis *axis = view->spaces[s].first->own.at[view->spaces[s].first->own.count - 1];
    const char *label = axis->var->label;
    int64_t count = view_count(axis);
    if (!view->spaces[s].reduces || mentions_axis(axis->extent) || count == 1) continue;
    if (count > 1 && count <= MAX_WHOLE) {
      text_printf(w.out, "  unroll %s;\n", label);
      continue;
    }
    const char *loop = piece(&w, label, "_loop"), *load = piece(&w, label, "_load");
    write_split(&w, label, SERIAL_FLIGHT, loop, load);
    text_printf(w.out, "  unroll %s;\n", load);
  }
  end(&w);
}

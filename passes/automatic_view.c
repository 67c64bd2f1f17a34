#include "passes/automatic_view.h"

#include <string.h>

#include "passes/stage.h"

int64_t view_count(const struct ir_axis *axis) { return ir_is_const(axis->extent) ? axis->extent->integer : -1; }

int64_t view_product(const struct list *axes) {
  int64_t product = 1;
  for (uint32_t i = 0; i < axes->count; i++) {
    int64_t count = view_count(axes->at[i]);
    if (count < 0 || __builtin_mul_overflow(product, count, &product)) return -1;
  }
  return product;
}

// --- Axes -------------------------------------------------------------------------------------------------------------

static int place_of(const struct ir_stage *stage, const struct ir_axis *axis, bool *is_reduction) {
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    const struct ir_stage_axis *used = stage->axes.at[i];
    if (used->axis != axis) continue;
    if (is_reduction) *is_reduction = used->is_reduction;
    return (int)i;
  }
  return -1;
}

// The parallel axes that stand first, in the same order, in every stage.
static void find_common(struct view *view) {
  const struct list *stages = &view->a->entry->stages;
  const struct ir_stage *first = stages->at[0];
  for (uint32_t p = 0; p < first->axes.count; p++) {
    const struct ir_stage_axis *used = first->axes.at[p];
    bool everywhere = !used->is_reduction && !mentions_axis(used->axis->extent);
    for (uint32_t i = 1; i < stages->count && everywhere; i++) {
      bool is_reduction = false;
      everywhere = place_of(stages->at[i], used->axis, &is_reduction) == (int)p && !is_reduction;
    }
    if (!everywhere) return;
    list_push(view->a->arena, &view->common, used->axis);
  }
}

static bool same_axes(const struct list *a, const struct list *b) {
  if (a->count != b->count) return false;
  for (uint32_t i = 0; i < a->count; i++) {
    const struct ir_axis *x = a->at[i], *y = b->at[i];
    if (x != y && (strcmp(x->var->label, y->var->label) != 0 || !ir_equal(x->extent, y->extent) || mentions_axis(x->extent))) return false;
  }
  return true;
}

static bool share_a_name(const struct list *a, const struct list *b) {
  for (uint32_t i = 0; i < a->count; i++)
    for (uint32_t k = 0; k < b->count; k++)
      if (strcmp(list_at(a, struct ir_axis, i)->var->label, list_at(b, struct ir_axis, k)->var->label) == 0) return true;
  return false;
}

// Puts the stage into the space of its axes' names. Names that mean different axes in two spaces cannot be scheduled apart.
static bool find_space(struct view *view, struct view_stage *stage) {
  bool reduces = stage->stage->kind == STAGE_REDUCE;
  if (!stage->own.count) return true;
  for (int s = 0; s < view->space_count && stage->space < 0; s++)
    if (same_axes(&view->spaces[s].first->own, &stage->own)) stage->space = s;
  if (stage->space < 0) {
    for (int s = 0; s < view->space_count; s++)
      if (share_a_name(&view->spaces[s].first->own, &stage->own)) return false;
    if (share_a_name(&view->common, &stage->own) || view->space_count == VIEW_MAX_SPACES) return false;
    stage->space = view->space_count++;
    view->spaces[stage->space].first = stage;
  }
  struct view_space *space = &view->spaces[stage->space];
  space->reduces |= reduces;
  space->is_ordered |= reduces && stage->stage->reducer->is_ordered;
  return true;
}

static bool add_stage(struct view *view, struct ir_stage *source) {
  struct view_stage *stage = arena_new(view->a->arena, struct view_stage);
  stage->stage = source;
  stage->space = -1;
  for (uint32_t i = view->common.count; i < source->axes.count; i++) {
    const struct ir_stage_axis *used = source->axes.at[i];
    if (used->is_reduction != (source->kind == STAGE_REDUCE)) return false;
    view->is_dependent |= mentions_axis(used->axis->extent);
    list_push(view->a->arena, &stage->own, used->axis);
  }
  if (stage->own.count + view->common.count > VIEW_MAX_AXES) return false;
  facts_init(&stage->facts, view->a->arena);
  stage_facts(source, &stage->facts);
  list_push(view->a->arena, &view->stages, stage);
  view->reduces |= source->kind == STAGE_REDUCE;
  return find_space(view, stage);
}

// --- Accesses -----------------------------------------------------------------------------------------------------

struct collector {
  struct view *view;
  struct view_stage *stage;
};

static void add_access(struct collector *c, struct ir_mem *mem, struct ir_expr *const *indices, uint32_t count, bool is_store) {
  if (mem->space != SPACE_GLOBAL) return;
  struct view_access *access = arena_new(c->view->a->arena, struct view_access);
  struct facts *facts = &c->stage->facts;
  access->stage = c->stage;
  access->mem = mem;
  access->is_store = is_store;
  access->offset = poly_constant(facts, 0);
  for (uint32_t d = 0; d < count; d++) {
    struct ir_expr *index = ir_substitute(c->view->a->arena, indices[d]);
    list_push(c->view->a->arena, &access->indices, index);
    access->offset = poly_add(facts, access->offset, poly_mul(facts, poly_of(facts, index), poly_of(facts, mem->strides.at[d])));
  }
  list_push(c->view->a->arena, &c->view->accesses, access);
}

static void collect_load(struct ir_expr *e, void *state) {
  if (e->op == OP_LOAD) add_access(state, e->mem, e->args, e->count, false);
}

static void collect_list(struct collector *c, const struct list *exprs) {
  for (uint32_t i = 0; i < exprs->count; i++) ir_visit_expr(exprs->at[i], collect_load, c);
}

// The accesses of a stage, their indices over axes alone.
static void collect(struct view *view, struct view_stage *stage) {
  struct collector c = {view, stage};
  const struct ir_stage *source = stage->stage;
  const struct list *lists[] = {&source->derived, &source->lets};
  for (uint32_t l = 0; l < 2; l++)
    for (uint32_t i = 0; i < lists[l]->count; i++) {
      struct ir_stmt *let = lists[l]->at[i];
      ir_visit_expr(let->value, collect_load, &c);
      if (type_is_integer(let->var->type)) let->var->subst = ir_substitute(view->a->arena, let->value);
    }
  collect_list(&c, &source->guards);
  collect_list(&c, &source->operands);
  if (source->value) ir_visit_expr(source->value, collect_load, &c);
  if (source->kind == STAGE_STORE) add_access(&c, source->mem, (struct ir_expr *const *)source->indices.at, source->indices.count, true);
  for (uint32_t l = 0; l < 2; l++)
    for (uint32_t i = 0; i < lists[l]->count; i++) list_at(lists[l], struct ir_stmt, i)->var->subst = NULL;
}

static bool is_linear(const struct ir_expr *e, const struct ir_var *var) {
  switch ((int)e->op) {
  case OP_VAR: case OP_CONST: return true;
  case OP_ADD: case OP_SUB: case OP_NEG: case OP_MUL: case OP_CAST:
    for (uint32_t i = 0; i < e->count; i++)
      if (!is_linear(e->args[i], var)) return false;
    return true;
  default: return !ir_mentions(e, var);
  }
}

struct poly view_stride(const struct view *view, const struct view_access *access, const struct ir_axis *axis) {
  struct facts *facts = &access->stage->facts;
  struct poly none = {0}, stride, rest;
  (void)view;
  for (uint32_t d = 0; d < access->indices.count; d++)
    if (!is_linear(access->indices.at[d], axis->var)) return none;
  return poly_linear(facts, access->offset, axis->var, &stride, &rest) ? stride : none;
}

bool view_is_unit(const struct view *view, const struct view_access *access, const struct ir_axis *axis) {
  int64_t stride;
  return poly_is_constant(view_stride(view, access, axis), &stride) && stride == 1;
}

static bool has_axis(const struct view *view, const struct view_stage *stage, const struct ir_axis *axis) {
  for (uint32_t i = 0; i < view->common.count; i++)
    if (view->common.at[i] == axis) return true;
  for (uint32_t i = 0; i < stage->own.count; i++)
    if (stage->own.at[i] == axis) return true;
  return false;
}

bool view_can_merge(const struct view *view, const struct ir_axis *outer, const struct ir_axis *inner) {
  if (mentions_axis(outer->extent) || mentions_axis(inner->extent)) return false;
  for (uint32_t i = 0; i < view->accesses.count; i++) {
    struct view_access *access = view->accesses.at[i];
    if (!has_axis(view, access->stage, outer) || !has_axis(view, access->stage, inner)) continue;
    struct facts *facts = &access->stage->facts;
    struct poly a = view_stride(view, access, outer), b = view_stride(view, access, inner);
    if (!a.is_valid || !b.is_valid || !poly_equal(facts, a, poly_mul(facts, b, poly_of(facts, inner->extent)))) return false;
  }
  return true;
}

// Moves the main access further a step than `other`?
static bool moves_further(const struct view *view, const struct view_stage *stage, const struct ir_axis *axis, const struct ir_axis *other) {
  for (uint32_t i = 0; i < view->accesses.count; i++) {
    struct view_access *access = view->accesses.at[i];
    if (access->stage != stage || access->is_store) continue;
    struct poly a = view_stride(view, access, axis), b = view_stride(view, access, other);
    if (!a.is_valid || !b.is_valid || poly_is_zero(a) || poly_is_zero(b)) continue;
    return prove_nonnegative(&access->stage->facts, poly_sub(&access->stage->facts, a, b)) && !poly_equal(&access->stage->facts, a, b);
  }
  return false;
}

struct list view_sorted(const struct view *view, const struct view_stage *stage, const struct list *axes) {
  struct list sorted = {0};
  for (uint32_t i = 0; i < axes->count; i++) {
    uint32_t place = sorted.count;
    while (place > 0 && moves_further(view, stage, axes->at[i], sorted.at[place - 1])) place--;
    list_insert(view->a->arena, &sorted, place, axes->at[i]);
  }
  return sorted;
}

// The access of the stage that moves along most axes.
static struct view_access *widest(const struct view *view, const struct view_stage *stage, bool stores_too) {
  struct view_access *best = NULL;
  uint32_t most = 0;
  for (uint32_t i = 0; i < view->accesses.count; i++) {
    struct view_access *access = view->accesses.at[i];
    uint32_t moved = 0;
    if (access->stage != stage || (access->is_store && !stores_too)) continue;
    const struct list *lists[] = {&view->common, &stage->own};
    for (uint32_t l = 0; l < 2; l++)
      for (uint32_t k = 0; k < lists[l]->count; k++) {
        struct poly stride = view_stride(view, access, lists[l]->at[k]);
        moved += stride.is_valid && !poly_is_zero(stride);
      }
    if (best && moved <= most) continue;
    best = access;
    most = moved;
  }
  return best;
}

bool view_make(struct automatic *a, struct view *view) {
  *view = (struct view){.a = a};
  if (!a->entry->stages.count) return false;
  find_common(view);
  for (uint32_t i = 0; i < a->entry->stages.count; i++)
    if (!add_stage(view, a->entry->stages.at[i])) return false;
  for (uint32_t i = 0; i < view->stages.count; i++) collect(view, view->stages.at[i]);
  uint32_t most = 0; // axes of its own
  for (uint32_t i = 0; i < view->stages.count; i++) {
    struct view_stage *stage = view->stages.at[i];
    bool is_first = !view->main && (!view->reduces || (stage->stage->kind == STAGE_REDUCE && stage->own.count));
    if (!is_first && (view->reduces || stage->own.count <= most)) continue;
    view->main = widest(view, stage, !view->reduces);
    most = stage->own.count;
  }
  return true;
}

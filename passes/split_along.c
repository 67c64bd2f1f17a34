// split x by F along A -> o, i: pieces begin where A's accesses stand on multiples of F elements.
//
//   stage Y: store, axes r, x; Y[r, x] = ..               Y: u8[n, 127], split x by 4 along Y -> o, i
//   ->
//   stage Y: store, axes r, o, i; derived x = o * 4 + i - (r * 127 & 3); guards x >= 0, x < 127
//
// The shift is where the access stands at x = 0, without what is a multiple of F, modulo F. So the place in memory is a multiple of F, plus i: pieces of
// words may be vectorised, and pieces of 32 lanes fill lines, though rows begin anywhere. The first piece and the last are not whole.
#include <string.h>

#include "passes/offset.h"
#include "passes/schedule.h"
#include "passes/stage.h"
#include "passes/stage_load.h"

static bool refuse(struct pass_context *context, const struct ir_directive *directive, const struct ir_mem *mem, const char *why) {
  diag_error(context->diag, ERROR_SPLIT, directive->range, "pieces cannot lie along '%s': %s", mem->label, why);
  return false;
}

// Where the stage's only access of the tensor stands; NULL: it has none, or several.
static struct ir_expr *const *find_access(const struct ir_stage *stage, const struct ir_mem *mem) {
  bool writes = stage->kind == STAGE_STORE && stage->mem == mem;
  struct stage_load find = stage_find_load(stage, mem);
  if (find.differs || (find.load && writes)) return NULL;
  if (writes) return (struct ir_expr *const *)stage->indices.at;
  return find.load ? find.load->args : NULL;
}

static struct ir_expr *as_index(struct arena *arena, struct ir_expr *e, void *state) {
  (void)state;
  if (e->type == TYPE_INDEX) return e;
  if (e->op == OP_VAR) return ir_cast(arena, TYPE_INDEX, e);
  if (e->op == OP_CONST) return ir_int(arena, TYPE_INDEX, e->integer);
  if (e->op == OP_CAST) return e->args[0]->type == TYPE_INDEX ? e->args[0] : ir_cast(arena, TYPE_INDEX, e->args[0]);
  if (e->type == TYPE_BOOL || e->op == OP_LOAD) return e; // a comparison of indices stays one
  for (uint32_t i = e->op == OP_SELECT; i < e->count; i++)
    if (e->args[i]->type != TYPE_INDEX) return e;
  return ir_make(arena, e->op, TYPE_INDEX, e->args, e->count);
}

struct ir_expr *schedule_index(struct arena *arena, struct ir_expr *e) { return ir_cast(arena, TYPE_INDEX, ir_rewrite_expr(arena, e, as_index, NULL)); }

struct poly schedule_offset(struct arena *arena, struct facts *facts, const struct ir_stage *stage, const struct ir_mem *mem, struct ir_expr *const *indices) {
  struct lets none = {.arena = arena};
  struct poly offset = poly_constant(facts, 0);
  struct ir_expr **leaves = arena_array(arena, struct ir_expr *, mem->dims.count + 1);
  struct offset_term *terms = arena_array(arena, struct offset_term, mem->dims.count + 1);
  for (uint32_t d = 0; d < mem->dims.count; d++) leaves[d] = ir_substitute(arena, stage_in_leaves(arena, stage, indices[d]));
  uint32_t count = offset_terms(&none, mem, leaves, mem->dims.count, terms);
  for (uint32_t t = 0; t < count; t++) offset = poly_add(facts, offset, poly_mul(facts, poly_of(facts, terms[t].index), poly_of(facts, terms[t].stride)));
  return offset;
}

static void find_read(struct ir_expr *e, void *state) {
  if (e->op == OP_LOAD || e->op == OP_LOAD_FLAT || (e->op == OP_VAR && (e->var->kind == VAR_VALUE || e->var->kind == VAR_MUTABLE))) *(bool *)state = true;
}

struct ir_expr *schedule_start(struct arena *arena, struct facts *facts, const struct ir_stage *stage, const struct list *axes, const struct ir_mem *mem, struct ir_expr *const *indices,
                               struct ir_expr *factor) {
  struct poly rest = poly_constant(facts, 0);
  for (uint32_t i = 0; i < axes->count; i++) list_at(axes, struct ir_axis, i)->var->subst = ir_int(arena, TYPE_INDEX, 0);
  struct poly offset = schedule_offset(arena, facts, stage, mem, indices);
  for (uint32_t i = 0; i < axes->count; i++) list_at(axes, struct ir_axis, i)->var->subst = NULL;
  for (uint32_t i = 0; offset.is_valid && i < offset.count; i++) {
    struct poly term = {true, 1, &offset.terms[i]};
    struct ir_expr *expr = poly_to_expr(facts, term);
    if (!factor || !expr || !prove_divides(facts, factor, expr)) rest = poly_add(facts, rest, term);
  }
  struct ir_expr *start = offset.is_valid ? poly_to_expr(facts, rest) : NULL;
  bool reads = false;
  if (start) ir_visit_expr(start, find_read, &reads);
  if (reads) return NULL; // known where it is read alone
  return start ? schedule_index(arena, start) : NULL;
}

static void find_value(struct ir_expr *e, void *state) {
  *(bool *)state |= e->op == OP_LOAD || (e->op == OP_VAR && e->var->kind == VAR_VALUE);
}

// An axis that the shift depends on, with a range that depends on the axis that is split: neither is known without the other; NULL: there is none.
static const struct ir_axis *find_circle(struct arena *arena, const struct ir_stage *stage, const struct ir_axis *axis, struct ir_expr *start) {
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    const struct ir_axis *other = list_at(&stage->axes, struct ir_stage_axis, i)->axis;
    if (ir_mentions(start, other->var) && ir_mentions(stage_in_leaves(arena, stage, other->extent), axis->var)) return other;
  }
  return NULL;
}

// An axis of an ordered reduction, inside the one that is split, that the shift depends on: its iterations would stand in different pieces, in another order; NULL: none.
static const struct ir_axis *find_disorder(const struct ir_stage *stage, const struct ir_axis *axis, struct ir_expr *start) {
  bool is_inside = false;
  for (uint32_t i = 0; stage->kind == STAGE_REDUCE && stage->reducer->is_ordered && i < stage->axes.count; i++) {
    const struct ir_stage_axis *other = stage->axes.at[i];
    if (is_inside && other->is_reduction && ir_mentions(start, other->axis->var)) return other->axis;
    is_inside |= other->axis == axis;
  }
  return NULL;
}

// Whether a place is made of what is read or computed, not of axes and sizes alone.
static bool depends_on_values(const struct ir_stage *stage, const struct ir_mem *mem, struct ir_expr *const *indices) {
  bool depends = false;
  for (uint32_t d = 0; d < mem->dims.count; d++) {
    ir_visit_expr(indices[d], find_value, &depends);
    for (uint32_t i = 0; i < stage->lets.count; i++) depends |= ir_mentions(indices[d], list_at(&stage->lets, struct ir_stmt, i)->var);
  }
  return depends;
}

bool schedule_along(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry, const struct ir_directive *directive, const struct ir_axis *axis, struct ir_expr *factor,
                    struct ir_expr **shift, int64_t *most) {
  struct arena *arena = context->arena;
  const struct ir_stage *stage = NULL;
  const struct ir_mem *mem = NULL;
  for (uint32_t i = 0; i < kernel->tensors.count; i++)
    if (strcmp(list_at(&kernel->tensors, struct ir_mem, i)->name, directive->names.at[2]) == 0) mem = kernel->tensors.at[i];
  if (!mem) {
    diag_error(context->diag, ERROR_DIRECTIVE, directive->range, "no tensor is named '%s'", (const char *)directive->names.at[2]);
    return false;
  }
  for (uint32_t n = 0; n < entry->stages.count; n++) {
    const struct ir_stage *other = entry->stages.at[n];
    for (uint32_t k = 0; k < other->axes.count; k++) {
      if (list_at(&other->axes, struct ir_stage_axis, k)->axis != axis) continue;
      if (stage) return refuse(context, directive, mem, arena_printf(arena, "axis '%s' is one of stages '%s' and '%s'", axis->var->label, stage->label, other->label));
      stage = other;
    }
  }
  struct ir_expr *const *indices = stage ? find_access(stage, mem) : NULL;
  if (!indices) return refuse(context, directive, mem, arena_printf(arena, "the stage of axis '%s' does not read or write it once", axis->var->label));
  if (depends_on_values(stage, mem, indices)) return refuse(context, directive, mem, "which element it is depends on a value");
  if (!ir_is_const(factor) || factor->integer > 1 << 20 || (factor->integer & (factor->integer - 1))) return refuse(context, directive, mem, "the factor is no power of two");
  if (mentions_axis(axis->extent)) return refuse(context, directive, mem, arena_printf(arena, "axis '%s' has a range that depends on another axis", axis->var->label));
  struct facts facts;
  facts_init(&facts, arena);
  if (entry->when) facts_add_condition(&facts, entry->when);
  for (uint32_t i = 0; i < entry->assumptions.count; i++) facts_add_condition(&facts, list_at(&entry->assumptions, struct ir_requirement, i)->condition);
  stage_facts(stage, &facts);
  struct list only = {0};
  list_push(arena, &only, (void *)axis);
  struct ir_expr *start = schedule_start(arena, &facts, stage, &only, mem, indices, factor);
  if (!start) return refuse(context, directive, mem, "its place is no sum of products of axes");
  const struct ir_axis *circle = find_circle(arena, stage, axis, start);
  if (circle)
    return refuse(context, directive, mem, arena_printf(arena, "where they begin depends on axis '%s', whose range depends on axis '%s'", circle->var->label, axis->var->label));
  const struct ir_axis *disorder = find_disorder(stage, axis, start);
  if (disorder)
    return refuse(context, directive, mem, arena_printf(arena, "where they begin depends on axis '%s', and stage '%s' is an ordered reduction", disorder->var->label, stage->label));
  *shift = ir_binary(arena, OP_AND, start, ir_int(arena, TYPE_INDEX, factor->integer - 1));
  int64_t step = factor->integer; // the shift is a multiple of it
  while (step > 1 && (factor->integer % step || !prove_divides(&facts, ir_int(arena, TYPE_INDEX, step), start))) step--;
  *most = ir_is_const(*shift) ? (*shift)->integer : factor->integer - step;
  return true;
}

// rescale: a maximum and the sum of the exponentials of the distances to it become one reduction, so that what they read is read once.
//
//   stage peak: reduce max_f32, x                     stage peak,total: reduce rescaled_exp_f32 (m, s), x
//   stage total: reduce sum_f32, exp(x - peak)   ->
//   ... total ...                                     ... s == 0 ? s : s + (m - m) ...
//
// A pair (m, s) stands for s * exp(m): m is the largest x so far and s the sum of exp(x - m). Of two pairs the one with the smaller m is scaled
// by exp(smaller - larger), which is at most 1:
//
//   identity (-inf, 0)    combine(a, b): d = b.m - a.m, e = exp(-|d|), (max(a.m, b.m), d > 0 ? a.s * e + b.s : a.s + b.s * e)
//
// In real numbers the results are those of the two stages, since exp(x - m) * exp(m - n) = exp(x - n), and combine is associative and commutative. In floats
// `m` has the same bits, and `s` differs by rounding alone: each scaling rounds the exponential and the product, and there is one for each new maximum. What
// is not finite agrees: where m is equal on both sides d is 0, so that no -inf - -inf makes a NaN of elements that are -inf beside finite ones, and those add 0
// since exp(-inf) is 0; a NaN makes both NaN; and where the maximum is infinite, of +inf or of nothing but -inf, exp(m - m) is a NaN among the summands: s + (m - m)
// is that. A sum of no elements stays 0: every summand that the largest x gives is 1, so that s is 0 only there.
#include "passes/rescale.h"

#include <math.h>
#include <string.h>

#include "passes/stage.h"

// --- Is it one? -------------------------------------------------------------------------------------------------------------

enum { MOST_NODES = 2000 };

struct comparison {
  const struct ir_stage *first, *second;
  uint32_t budget; // of nodes: lets may make a tree that is much larger than the program
};

// What a let of the stage stands for, else the expression itself.
static const struct ir_expr *resolve(const struct ir_stage *stage, const struct ir_expr *e) {
  const struct list *lists[] = {&stage->derived, &stage->lets};
  for (bool again = true; again && e->op == OP_VAR && e->var->kind == VAR_LET;) {
    again = false;
    for (uint32_t l = 0; l < 2 && !again; l++)
      for (uint32_t i = 0; i < lists[l]->count && !again; i++) {
        const struct ir_stmt *let = lists[l]->at[i];
        if (let->var == e->var) e = let->value, again = true;
      }
  }
  return e;
}

// Whether an axis of the first stage and one of the second are the same one, or at the same place.
static bool is_same_axis(const struct comparison *c, const struct ir_var *a, const struct ir_var *b) {
  for (uint32_t i = 0; i < c->first->axes.count && i < c->second->axes.count; i++)
    if (list_at(&c->first->axes, struct ir_stage_axis, i)->axis->var == a) return list_at(&c->second->axes, struct ir_stage_axis, i)->axis->var == b;
  return a == b;
}

static bool is_same(struct comparison *c, const struct ir_expr *a, const struct ir_expr *b) {
  if (!c->budget) return false;
  c->budget--;
  a = resolve(c->first, a);
  b = resolve(c->second, b);
  if (a->op != b->op || a->type != b->type || a->count != b->count) return false;
  if (a->op == OP_VAR) return is_same_axis(c, a->var, b->var);
  if (!a->count) return ir_equal(a, b);
  if ((a->op == OP_LOAD || a->op == OP_LOAD_FLAT) && a->mem != b->mem) return false;
  for (uint32_t i = 0; i < a->count; i++)
    if (!is_same(c, a->args[i], b->args[i])) return false;
  return true;
}

// Whether the stage combines one float by the operation, from this identity.
static bool reduces_by(const struct ir_stage *stage, enum op op, double identity) {
  if (stage->kind != STAGE_REDUCE || stage->results.count != 1 || stage->operands.count != 1 || stage->init.count) return false;
  const struct ir_reducer *reducer = stage->reducer;
  const struct ir_expr *result = reducer->combine.results.at[0], *from = reducer->identity.at[0];
  if (reducer->update.params.count || reducer->combine.lets.count || result->op != op || !type_is_float(result->type)) return false;
  for (uint32_t i = 0; i < 2; i++)
    if (result->args[i]->op != OP_VAR || result->args[i]->var != reducer->combine.params.at[i]) return false;
  return from->op == OP_CONST && from->number == identity;
}

// Whether e is x - peak, the first stage's maximum of x, or minus the absolute value of that.
static bool is_distance(struct comparison *c, const struct ir_expr *e) {
  if (e->op == OP_NEG && e->args[0]->op == OP_ABS) e = resolve(c->second, e->args[0]->args[0]);
  if (e->op != OP_SUB) return false;
  const struct ir_expr *peak = resolve(c->second, e->args[1]);
  return peak->op == OP_VAR && peak->var == c->first->results.at[0] && is_same(c, c->first->operands.at[0], e->args[0]);
}

bool rescale_fits(const struct ir_stage *first, const struct ir_stage *second) {
  struct comparison c = {first, second, MOST_NODES};
  if (!reduces_by(first, OP_MAX, -INFINITY) || !reduces_by(second, OP_ADD, 0)) return false;
  if (first->axes.count != second->axes.count || first->guards.count != second->guards.count) return false;
  for (uint32_t i = 0; i < first->axes.count; i++) {
    const struct ir_stage_axis *a = first->axes.at[i], *b = second->axes.at[i];
    if (a->is_reduction != b->is_reduction || (!a->is_reduction && a->axis != b->axis) || !ir_equal(a->axis->extent, b->axis->extent)) return false;
  }
  for (uint32_t i = 0; i < first->guards.count; i++)
    if (!is_same(&c, first->guards.at[i], second->guards.at[i])) return false;
  const struct ir_expr *exponential = resolve(second, second->operands.at[0]);
  if ((exponential->op != OP_EXP && exponential->op != OP_EXP2) || exponential->type != list_at(&first->results, struct ir_var, 0)->type) return false;
  return is_distance(&c, resolve(second, exponential->args[0]));
}

// --- Exponents that are not above 0 -----------------------------------------------------------------------------------------

struct distances {
  struct comparison comparison;
  struct arena *arena;
};

static struct ir_expr *mark_distance(struct arena *arena, struct ir_expr *e, void *state) {
  struct distances *d = state;
  if ((e->op != OP_EXP && e->op != OP_EXP2) || e->args[0]->op == OP_NEG) return e;
  if (!is_distance(&d->comparison, resolve(d->comparison.second, e->args[0]))) return e;
  return ir_unary(arena, e->op, ir_unary(arena, OP_NEG, ir_unary(arena, OP_ABS, e->args[0])));
}

// Whether the second stage runs over elements that the first has the maximum of, and no others.
static bool covers(struct comparison *c) {
  if (!reduces_by(c->first, OP_MAX, -INFINITY) || c->first->axes.count != c->second->axes.count || c->first->guards.count != c->second->guards.count) return false;
  for (uint32_t i = 0; i < c->first->axes.count; i++) {
    const struct ir_stage_axis *a = c->first->axes.at[i], *b = c->second->axes.at[i];
    if ((!a->is_reduction && a->axis != b->axis) || !ir_equal(a->axis->extent, b->axis->extent)) return false;
  }
  for (uint32_t i = 0; i < c->first->guards.count; i++)
    if (!is_same(c, c->first->guards.at[i], c->second->guards.at[i])) return false;
  return true;
}

void rescale_distances(struct pass_context *context, struct ir_entry *entry) {
  struct arena *arena = context->arena;
  for (uint32_t k = 1; k < entry->stages.count; k++)
    for (uint32_t i = 0; i < k; i++) {
      struct ir_stage *stage = entry->stages.at[k];
      struct distances d = {{entry->stages.at[i], stage, MOST_NODES}, arena};
      if (!covers(&d.comparison)) continue;
      ir_rewrite_block(arena, &stage->lets, mark_distance, &d);
      stage->operands = list_copy(arena, &stage->operands);
      for (uint32_t n = 0; n < stage->operands.count; n++) stage->operands.at[n] = ir_rewrite_expr(arena, stage->operands.at[n], mark_distance, &d);
      if (stage->value) stage->value = ir_rewrite_expr(arena, stage->value, mark_distance, &d);
    }
}

// --- One stage ----------------------------------------------------------------------------------------------------------------

struct builder {
  struct arena *arena;
  struct ir_kernel names;
  struct ir_reducer *reducer;
  enum op exponential;
  enum type type;
};

static struct ir_expr *let(struct builder *b, struct list *lets, const char *label, struct ir_expr *value) {
  struct ir_var *var = ir_new_var(&b->names, VAR_LET, value->type, label);
  list_push(b->arena, lets, ir_let(b->arena, var, value, (struct range){0}));
  return ir_ref(b->arena, var);
}

// (am, as) and (bm, bs) as one pair; `bs` NULL: 1.
static void build(struct builder *b, struct ir_function *function, struct ir_expr *am, struct ir_expr *as, struct ir_expr *bm, struct ir_expr *bs) {
  struct arena *arena = b->arena;
  struct ir_expr *zero = ir_float(arena, b->type, 0), *one = bs ? bs : ir_float(arena, b->type, 1);
  struct ir_expr *d = let(b, &function->lets, "d", ir_select(arena, ir_binary(arena, OP_EQ, am, bm), zero, ir_binary(arena, OP_SUB, bm, am)));
  struct ir_expr *e = let(b, &function->lets, "e", ir_unary(arena, b->exponential, ir_unary(arena, OP_NEG, ir_unary(arena, OP_ABS, d))));
  struct ir_expr *rises = ir_binary(arena, OP_ADD, ir_binary(arena, OP_MUL, as, e), one);
  struct ir_expr *stays = ir_binary(arena, OP_ADD, as, bs ? ir_binary(arena, OP_MUL, bs, e) : e);
  list_push(arena, &function->results, ir_binary(arena, OP_MAX, am, bm));
  list_push(arena, &function->results, ir_select(arena, ir_binary(arena, OP_GT, d, zero), rises, stays));
}

static struct ir_reducer *make_reducer(struct pass_context *context, enum op exponential, enum type type) {
  struct builder b = {.arena = context->arena, .exponential = exponential, .type = type};
  const char *name = arena_printf(b.arena, "rescaled_%s_%s", op_table[exponential].spelling, type_name(type));
  for (uint32_t i = 0; i < context->module->reducers.count; i++) {
    struct ir_reducer *known = context->module->reducers.at[i];
    if (strcmp(known->name, name) != 0) continue;
    if (known->identity.count == 2) return known;
    name = arena_printf(b.arena, "%s_", name); // a user's
    i = UINT32_MAX;
  }
  struct ir_reducer *reducer = b.reducer = arena_new(b.arena, struct ir_reducer);
  static const char *const labels[] = {"am", "as", "bm", "bs"};
  map_init(&b.names.names, b.arena);
  reducer->name = name;
  reducer->is_commutative_bitwise = true;
  list_push(b.arena, &reducer->identity, ir_float(b.arena, type, -INFINITY));
  list_push(b.arena, &reducer->identity, ir_float(b.arena, type, 0));
  for (uint32_t i = 0; i < 4; i++) list_push(b.arena, &reducer->combine.params, ir_new_var(&b.names, VAR_LET, type, labels[i]));
  struct ir_expr *combined[4], *updated[3];
  for (uint32_t i = 0; i < 4; i++) combined[i] = ir_ref(b.arena, reducer->combine.params.at[i]);
  build(&b, &reducer->combine, combined[0], combined[1], combined[2], combined[3]);
  static const char *const operands[] = {"m", "s", "x"};
  for (uint32_t i = 0; i < 3; i++) list_push(b.arena, &reducer->update.params, ir_new_var(&b.names, VAR_LET, type, operands[i]));
  for (uint32_t i = 0; i < 3; i++) updated[i] = ir_ref(b.arena, reducer->update.params.at[i]);
  build(&b, &reducer->update, updated[0], updated[1], updated[2], NULL);
  list_push(b.arena, &context->module->reducers, reducer);
  return reducer;
}

static void substitute(struct arena *arena, struct ir_stage *stage) {
  ir_substitute_list(arena, &stage->guards);
  ir_substitute_list(arena, &stage->operands);
  ir_substitute_list(arena, &stage->init);
  ir_substitute_list(arena, &stage->indices);
  stage->lets = list_copy(arena, &stage->lets);
  for (uint32_t i = 0; i < stage->lets.count; i++) {
    const struct ir_stmt *old = stage->lets.at[i];
    stage->lets.at[i] = ir_let(arena, old->var, ir_substitute(arena, old->value), old->range);
  }
  if (stage->value) stage->value = ir_substitute(arena, stage->value);
}

void rescale_join(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry, struct ir_stage *first, struct ir_stage *second) {
  struct arena *arena = context->arena;
  struct ir_var *peak = first->results.at[0], *total = second->results.at[0];
  enum op exponential = resolve(second, second->operands.at[0])->op;
  struct ir_var *sum = ir_new_var(kernel, VAR_VALUE, total->type, total->label);
  sum->range = total->range;
  first->reducer = make_reducer(context, exponential, total->type);
  first->label = arena_printf(arena, "%s,%s", first->label, second->label);
  first->results = (struct list){0};
  list_push(arena, &first->results, peak);
  list_push(arena, &first->results, sum);
  for (uint32_t i = entry->stages.count; i-- > 0;)
    if (entry->stages.at[i] == second) list_remove(&entry->stages, i);
  struct ir_expr *s = ir_ref(arena, sum), *m = ir_ref(arena, peak);
  total->subst = ir_select(arena, ir_binary(arena, OP_EQ, s, ir_float(arena, sum->type, 0)), s, ir_binary(arena, OP_ADD, s, ir_binary(arena, OP_SUB, m, m)));
  for (uint32_t i = 0; i < entry->stages.count; i++) substitute(arena, entry->stages.at[i]);
  total->subst = NULL;
}

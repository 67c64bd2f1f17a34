// Accumulators of a reduction that cost less inside its loops than those of its type.
//
// A sum of bytes or of 16-bit integers in 64 bits adds up 32 bits in its innermost loops, where these are of constant extents and so few that none overflows:
//
//   for jo { for jv in 0 .. 16 {                      for jo { var part: i32 = 0
//     set acc = acc + i64(load(A, ..))        ->        for jv in 0 .. 16 { set part = part + i32(load(A, ..)) }
//   } }                                                 set acc = acc + i64(part) }
//
// argmin and argmax of an index that grows in every step of the thread need not compare indices: what comes later wins only by its value. NaN comes before all
// values, the first of them before the others, and anything wins against the identity, whose index is -1:
//
//   update((v, i), (x, j)) = !(v >= x) && !isnan(v) || i < 0 ? (x, j) : (v, i)
//
// In the entry whose axes are below 2^31 such an index takes 32 bits there.
#include <string.h>

#include "passes/nest.h"
#include "passes/stage.h"

static struct ir_expr *resolve(const struct ir_stage *stage, struct ir_expr *e) {
  for (uint32_t i = stage->lets.count; i-- > 0 && e->op == OP_VAR;) {
    struct ir_stmt *let = stage->lets.at[i];
    if (let->var == e->var) e = let->value;
  }
  return e;
}

static bool has_axis(const struct list *axes, const struct ir_axis *axis) {
  for (uint32_t i = 0; i < axes->count; i++)
    if (axes->at[i] == axis) return true;
  return false;
}

// --- Sums -----------------------------------------------------------------------------------------------------------------------

// How many values of a type of up to 16 bits add up without overflow in an i32; 0: the type is another one.
static int64_t most_terms(enum type type) {
  if (!type_is_integer(type) || type == TYPE_INDEX || type_bits(type) > 16) return 0;
  return type_bits(type) == 8 ? 1 << 23 : 1 << 15;
}

// The narrow value that a sum of 64 bits adds up; NULL: it is another reduction.
static struct ir_expr *narrow_operand(const struct ir_stage *stage) {
  const struct ir_reducer *reducer = stage->reducer;
  if (reducer->identity.count != 1 || stage->operands.count != 1 || reducer->update.params.count || reducer->combine.lets.count) return NULL;
  const struct ir_expr *sum = reducer->combine.results.at[0];
  struct ir_expr *operand = stage->operands.at[0];
  bool is_sum = sum->op == OP_ADD && (sum->type == TYPE_I64 || sum->type == TYPE_U64);
  for (uint32_t i = 0; i < 2 && is_sum; i++) is_sum = sum->args[i]->op == OP_VAR && sum->args[i]->var == reducer->combine.params.at[i];
  if (!is_sum || !ir_const_is(reducer->identity.at[0], 0) || operand->op != OP_CAST) return NULL;
  operand = operand->args[0];
  while (operand->op == OP_CAST && type_is_integer(operand->type) && most_terms(operand->args[0]->type)) operand = operand->args[0]; // i64(i32(x))
  return most_terms(operand->type) ? operand : NULL;
}

static bool is_narrow_enough(const struct work *w, uint32_t depth, const struct ir_expr *operand) {
  int64_t terms = 1;
  for (uint32_t d = 0; d < w->loops.count; d++) {
    const struct ir_axis *axis = list_at(&w->loops, struct ir_stage_axis, d)->axis;
    if (d < depth && has_axis(&w->inner_axes, axis)) return false; // it would add up all accumulators for each
    if (d < depth) continue;
    if (!ir_is_const(axis->extent) || axis->extent->integer < 1 || __builtin_mul_overflow(terms, axis->extent->integer, &terms)) return false;
  }
  return terms > 1 && terms <= most_terms(operand->type);
}

static struct ir_stage *narrow_sum(struct nest *n, struct work *w, struct ir_expr *operand) {
  struct arena *arena = n->arena;
  struct ir_stage *stage = arena_new(arena, struct ir_stage);
  *stage = *w->stage;
  stage->reducer = arena_new(arena, struct ir_reducer);
  stage->reducer->name = "narrow";
  stage->operands = stage->results = (struct list){0};
  struct ir_expr *params[2];
  for (uint32_t i = 0; i < 2; i++) {
    struct ir_var *param = nest_new_let(n, i ? "b" : "a", TYPE_I32);
    list_push(arena, &stage->reducer->combine.params, param);
    params[i] = ir_ref(arena, param);
  }
  list_push(arena, &stage->reducer->identity, ir_int(arena, TYPE_I32, 0));
  list_push(arena, &stage->reducer->combine.results, ir_binary(arena, OP_ADD, params[0], params[1]));
  list_push(arena, &stage->operands, ir_cast(arena, TYPE_I32, operand));
  list_push(arena, &stage->results, ir_new_var(n->kernel, VAR_VALUE, TYPE_I32, arena_printf(arena, "%s_part", list_at(&w->stage->results, struct ir_var, 0)->label)));
  return stage;
}

// --- argmin and argmax ------------------------------------------------------------------------------------------------------------

static bool is_arg(const struct ir_stage *stage, bool *is_max) {
  const struct ir_reducer *reducer = stage->reducer;
  *is_max = strncmp(reducer->name, "argmax_", 7) == 0;
  return !reducer->range.line && reducer->identity.count == 2 && stage->operands.count == 2 && (*is_max || strncmp(reducer->name, "argmin_", 7) == 0);
}

// The index, of type index, from which the operand is made without loss below 2^31; NULL: it is made of something else.
static struct ir_expr *index_operand(const struct ir_stage *stage) {
  struct ir_expr *e = resolve(stage, stage->operands.at[1]);
  while (e->op == OP_CAST && type_is_integer(e->type) && type_bits(e->type) >= 32) e = resolve(stage, e->args[0]);
  return e->type == TYPE_INDEX && e->op != OP_CAST ? e : NULL;
}

// The index over loops alone; what derived axes are known as here stays.
static struct ir_expr *in_leaves(struct nest *n, const struct ir_stage *stage, struct ir_expr *index) {
  struct ir_expr **known = arena_array(n->arena, struct ir_expr *, stage->derived.count + 1);
  for (uint32_t i = 0; i < stage->derived.count; i++) known[i] = list_at(&stage->derived, struct ir_stmt, i)->var->subst;
  index = stage_in_leaves(n->arena, stage, index);
  for (uint32_t i = 0; i < stage->derived.count; i++) list_at(&stage->derived, struct ir_stmt, i)->var->subst = known[i];
  return index;
}

// Whether each iteration of the work's loops from `depth` on, in the order of the nest, has a larger index than those before it.
static bool only_grows(struct nest *n, const struct work *w, uint32_t depth, struct ir_expr *index) {
  struct facts facts;
  facts_init(&facts, n->arena);
  stage_facts(w->stage, &facts);
  struct poly rest = poly_of(&facts, in_leaves(n, w->stage, index)), reach = poly_constant(&facts, 0), one = poly_constant(&facts, 1);
  for (uint32_t d = w->loops.count; d-- > depth;) {
    const struct ir_stage_axis *loop = w->loops.at[d];
    struct poly step, left;
    if (!rest.is_valid || !poly_linear(&facts, rest, loop->axis->var, &step, &left)) return false;
    rest = left;
    if (!loop->is_reduction) { // another accumulator
      if (!poly_is_zero(step)) return false;
      continue;
    }
    if (!prove_nonnegative(&facts, poly_sub(&facts, poly_sub(&facts, step, reach), one))) return false;
    struct poly last = poly_sub(&facts, poly_of(&facts, extent_inner(loop->axis->extent)), one);
    reach = poly_add(&facts, reach, poly_mul(&facts, step, last));
  }
  return true;
}

static struct ir_stage *narrow_arg(struct nest *n, struct work *w, struct ir_expr *index, bool is_max) {
  struct arena *arena = n->arena;
  struct ir_stage *stage = arena_new(arena, struct ir_stage);
  struct ir_expr *lowest = w->stage->reducer->identity.at[0], *value = w->stage->operands.at[0];
  *stage = *w->stage;
  struct ir_reducer *reducer = stage->reducer = arena_new(arena, struct ir_reducer);
  reducer->name = "growing";
  stage->operands = stage->results = (struct list){0};
  list_push(arena, &reducer->identity, lowest);
  list_push(arena, &reducer->identity, ir_int(arena, TYPE_I32, -1));
  const enum type types[4] = {lowest->type, TYPE_I32, lowest->type, TYPE_I32};
  static const char *const labels[4] = {"v", "i", "x", "j"};
  struct ir_expr *p[4];
  for (uint32_t k = 0; k < 4; k++) {
    struct ir_var *param = nest_new_let(n, labels[k], types[k]);
    list_push(arena, &reducer->update.params, param);
    p[k] = ir_ref(arena, param);
  }
  struct ir_expr *loses = ir_unary(arena, OP_NOT, ir_binary(arena, is_max ? OP_GE : OP_LE, p[0], p[2]));
  if (type_is_float(types[0])) loses = ir_binary(arena, OP_AND, loses, ir_unary(arena, OP_NOT, ir_unary(arena, OP_ISNAN, p[0])));
  struct ir_var *takes = nest_new_let(n, "takes", TYPE_BOOL);
  list_push(arena, &reducer->update.lets, ir_let(arena, takes, ir_binary(arena, OP_OR, loses, ir_binary(arena, OP_LT, p[1], ir_int(arena, TYPE_I32, 0))), w->stage->range));
  for (uint32_t k = 0; k < 2; k++) {
    const struct ir_var *result = w->stage->results.at[k];
    list_push(arena, &reducer->update.results, ir_select(arena, ir_ref(arena, takes), p[2 + k], p[k]));
    list_push(arena, &stage->results, ir_new_var(n->kernel, VAR_VALUE, types[k], arena_printf(arena, "%s_part", result->label)));
  }
  list_push(arena, &stage->operands, value);
  list_push(arena, &stage->operands, ir_cast(arena, TYPE_I32, index));
  return stage;
}

// --- Around loops -------------------------------------------------------------------------------------------------------------------

void nest_begin_narrow(struct nest *n, struct work *w, uint32_t depth, struct list *out, struct narrowed *narrowed) {
  bool is_max;
  if (w->stage->kind != STAGE_REDUCE || depth < w->first_reduction) return;
  struct ir_expr *operand = narrow_operand(w->stage), *index = !n->entry->is_general && depth == w->first_reduction && is_arg(w->stage, &is_max) ? index_operand(w->stage) : NULL;
  bool is_sum = operand && is_narrow_enough(w, depth, operand);
  if (!is_sum && (!index || !only_grows(n, w, depth, index))) return;
  narrowed->stage = w->stage;
  narrowed->accumulators = w->accumulators;
  w->stage = is_sum ? narrow_sum(n, w, operand) : narrow_arg(n, w, index, is_max);
  w->accumulators = (struct list){0};
  nest_emit_init(n, w, out);
}

void nest_end_narrow(struct nest *n, struct work *w, struct list *out, struct narrowed *narrowed) {
  if (!narrowed->stage) return;
  uint32_t components = w->stage->reducer->identity.count;
  struct list *body = nest_open_loops(n, out, w);
  struct ir_expr *parts[2];
  for (uint32_t k = 0; k < components; k++) parts[k] = nest_read_accumulator(n, w, k);
  w->stage = narrowed->stage;
  w->accumulators = narrowed->accumulators;
  for (uint32_t k = 0; k < components; k++) {
    struct ir_expr *before = nest_read_accumulator(n, w, k), *part = ir_cast(n->arena, before->type, parts[k]);
    nest_write_accumulator(n, w, body, k, components == 1 ? ir_binary(n->arena, OP_ADD, before, part) : part);
  }
  nest_close_loops(&w->inner_axes);
}

// math: lowers division, shifts and functions to what machines do; contracts products and sums to fma.
//
//   set total = add(total, mul(x, y))     set total = fma(x, y, total)
//   store B[i] = div(a, k)                let by_zero: bool = eq(k, 0)
//                                         let by_minus: bool = eq(k, -1)
//                                   ->    store B[i] = select(by_zero, -1, select(by_minus, neg(a), quo(a,
//                                                      select(or(by_zero, by_minus), 1, k))))
//   let s: u32 = shl(x, c)                let s: u32 = shl(x, and(c, 31))
//   let r: f32 = log2(v)                  let log2_small: bool = lt(v, 0x1p-126)
//                                         ...
//                                         let r: f32 = select(and(gt(v, 0), lt(v, inf)), log2_y, log2_odd)
//
// Requires LEVEL_PROGRAM without type index. Afterwards no DIV or MOD of integers and none of mathlib's
// functions is left, the counts of shifts are below the width, and, unless contraction is off, no float ADD
// or SUB that the program had takes a product. Keeps the order of statements; puts LETs in front of those
// that need them. The module's reducers are lowered together with its first entry, for the passes that inline
// them later. Breaks nothing. Linear in the program and in the length of the expansions.
//
// Contraction comes first: the expansions of functions are exact as they are written. Small integers need
// nothing here: backends wrap each operation at its width. Divisions by sizes stay QUO and REM.
#include "passes/math_lower.h"

#include <string.h>

static bool is_repeatable(const struct ir_expr *e) {
  if (e->op == OP_CAST) return type_is_integer(e->type) && is_repeatable(e->args[0]);
  return e->op == OP_CONST || e->op == OP_VAR || e->op == OP_THREAD || e->op == OP_BLOCK;
}

struct ir_expr *math_repeatable(struct math *m, struct ir_expr *e, const char *label) {
  if (is_repeatable(e)) return e;
  struct ir_var *var = ir_new_var(m->kernel, VAR_LET, e->type, label);
  var->range = e->range;
  math_note_variable(m, var, e);
  list_push(m->arena, m->out, ir_let(m->arena, var, e, m->range));
  return ir_ref(m->arena, var);
}

// pow(x, n) where that is one operation, more exact than the function; else NULL.
static struct ir_expr *plain_power(struct arena *arena, struct ir_expr *x, const struct ir_expr *y) {
  if (y->number == 2) return ir_binary(arena, OP_MUL, x, x);
  if (y->number == 1) return x;
  if (y->number == 0) return ir_float(arena, x->type, 1);
  return y->number == -1 ? ir_binary(arena, OP_DIV, ir_float(arena, x->type, 1), x) : NULL;
}

// -|x|, which is not above 0, or a NaN.
static bool is_not_positive(const struct ir_expr *e) { return e->op == OP_NEG && e->args[0]->op == OP_ABS; }

// A function's expansion, its LETs in front of the statement.
static struct ir_expr *expand(struct math *m, struct ir_expr *e) {
  const struct ir_function **function = &m->functions[e->op][e->type == TYPE_F64];
  if (e->op == OP_EXP && e->type == TYPE_F32 && is_not_positive(e->args[0])) {
    function = &m->exp_below;
    if (!*function) *function = mathlib_exp_below(m->arena);
  }
  if (!*function) *function = mathlib_function(m->arena, e->op, e->type);
  struct ir_expr *arguments[2], *result;
  if (e->op == OP_POW && e->args[1]->op == OP_CONST) {
    arguments[0] = math_repeatable(m, e->args[0], "pow_x");
    result = plain_power(m->arena, arguments[0], e->args[1]);
    if (result) return result;
  }
  for (uint32_t i = 0; i < e->count; i++)
    arguments[i] =
        math_repeatable(m, e->args[i], arena_printf(m->arena, "%s_%c", op_table[e->op].spelling, "xy"[i]));
  ir_inline(m->kernel, *function, arguments, m->out, m->range, &result);
  return result;
}

static struct ir_expr *lower_call(struct math *m, struct ir_expr *e) {
  for (uint32_t i = 0; i < m->known.count; i++) {
    struct math_known *known = list_at(&m->known, struct math_known, i);
    if (ir_equal(known->call, e)) return known->result;
  }
  struct math_known *known = arena_new(m->arena, struct math_known);
  known->call = e;
  known->result = type_is_integer(e->type) ? math_divide(m, e) : expand(m, e);
  list_push(m->arena, &m->known, known);
  return known->result;
}

static struct ir_expr *lower_node(struct arena *arena, struct ir_expr *e, void *state) {
  (void)arena;
  switch ((int)e->op) {
  case OP_DIV:
  case OP_MOD: return type_is_integer(e->type) ? lower_call(state, e) : e;
  case OP_SHL:
  case OP_SHR: return math_shift(state, e);
  default: return mathlib_has(e->op, e->type) ? lower_call(state, e) : e;
  }
}

static struct ir_expr *lower_expr(struct math *m, struct ir_expr *e) {
  return e ? ir_rewrite_expr(m->arena, e, lower_node, m) : NULL;
}

static void lower_exprs(struct math *m, struct list *exprs) {
  for (uint32_t i = 0; i < exprs->count; i++) exprs->at[i] = lower_expr(m, exprs->at[i]);
}

static void lower_block(struct math *m, struct list *block) {
  struct list out = {0}, *around = m->out;
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = list_at(block, struct ir_stmt, i);
    m->out = &out;
    m->range = stmt->range;
    m->known.count = 0;
    stmt->value = lower_expr(m, stmt->value);
    stmt->lo = lower_expr(m, stmt->lo);
    stmt->hi = lower_expr(m, stmt->hi);
    lower_exprs(m, &stmt->indices);
    lower_exprs(m, &stmt->inputs);
    uint32_t facts = m->positive.count, bounds = m->bounded.count;
    if (stmt->kind == IR_LET) math_note_variable(m, stmt->var, stmt->value);
    if (stmt->kind == IR_FOR) {
      math_note_variable(m, stmt->var, stmt->lo);
      if (ir_is_const(stmt->lo) && stmt->lo->integer >= 0) math_note_positive(m, stmt->hi);
    }
    if (stmt->kind == IR_IF) math_note_condition(m, stmt->value);
    lower_block(m, &stmt->body);
    m->positive.count = facts;
    m->bounded.count = bounds;
    lower_block(m, &stmt->otherwise);
    list_push(m->arena, &out, stmt);
  }
  *block = out;
  m->out = around;
}

static void clear_marks(const struct list *block) {
  for (uint32_t i = 0; i < block->count; i++) {
    struct ir_stmt *stmt = list_at(block, struct ir_stmt, i);
    if (stmt->var) stmt->var->mark = 0;
    clear_marks(&stmt->body);
    clear_marks(&stmt->otherwise);
  }
}

// A reducer's function: the names of its variables are its own, so that they come from a kernel made for it.
static void lower_function(struct pass_context *context, struct ir_function *function, bool *contracted) {
  struct ir_kernel names = {0};
  map_init(&names.names, context->arena);
  for (uint32_t i = 0; i < function->params.count; i++)
    ir_fresh_name(&names, list_at(&function->params, struct ir_var, i)->name);
  for (uint32_t i = 0; i < function->lets.count; i++)
    ir_fresh_name(&names, list_at(&function->lets, struct ir_stmt, i)->var->name);
  if (!context->options->no_contract)
    *contracted |= math_contract(context->arena, &names, &function->lets, &function->results);
  struct math m = {.arena = context->arena, .kernel = &names};
  clear_marks(&function->lets);
  lower_block(&m, &function->lets);
  m.out = &function->lets;
  m.known.count = 0;
  lower_exprs(&m, &function->results);
}

static void lower_reducers(struct pass_context *context) {
  for (uint32_t i = 0; i < context->module->reducers.count; i++) {
    struct ir_reducer *reducer = list_at(&context->module->reducers, struct ir_reducer, i);
    bool contracted = false, unused = false;
    lower_function(context, &reducer->combine, &contracted);
    lower_function(context, &reducer->update, &unused);
    if (contracted) reducer->is_commutative_bitwise = false; // a * b + c * d rounds one of the products only
  }
}

static bool is_first_entry(const struct pass_context *context, const struct ir_entry *entry) {
  const struct ir_kernel *kernel = list_at(&context->module->kernels, struct ir_kernel, 0);
  return kernel->entries.at[0] == entry;
}

bool pass_math(struct pass_context *context, struct ir_kernel *kernel, struct ir_entry *entry) {
  if (is_first_entry(context, entry)) lower_reducers(context);
  if (!context->options->no_contract) math_contract(context->arena, kernel, &entry->body, NULL);
  struct math m = {.arena = context->arena, .kernel = kernel, .entry = entry};
  clear_marks(&entry->body);
  if (entry->when) math_note_condition(&m, entry->when);
  for (uint32_t i = 0; i < entry->assumptions.count; i++)
    math_note_condition(&m, list_at(&entry->assumptions, struct ir_requirement, i)->condition);
  for (int d = 0; d < 3; d++) { // a block that runs belongs to a grid that is not empty
    struct list unused = {0};
    m.out = &unused;
    if (!entry->grid[d]) continue;
    math_note_positive(&m, entry->grid[d]);
    math_note_positive(&m, lower_expr(&m, entry->grid[d])); // as the body has it
  }
  lower_block(&m, &entry->body);
  return true;
}

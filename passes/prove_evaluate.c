// Expressions, for all threads, and what conditions say of the bounds of their operands.
#include "passes/prove_engine.h"

#include <stdarg.h>
#include <string.h>

const char *prove_thread_name(struct prover *p, uint32_t t) {
  if (p->warps == 1) return arena_printf(p->scratch, "lane %u", t);
  return arena_printf(p->scratch, "lane %u of warp %u", t % 32, t / 32);
}

// --- Faults ------------------------------------------------------------------------------------------

// Where a barrier in front of this statement would be passed by all threads of the block.
static void find_place(const struct node *node, struct proof_fault *fault) {
  const struct node *at = node;
  for (const struct node *outer = node->parent; outer; outer = outer->parent)
    if (outer->is_divergent) at = outer;
  fault->block = at->block;
  fault->place = at->place;
}

bool prove_fault(struct prover *p, enum proof_kind kind, const struct node *other, const char *other_message,
                 const char *format, ...) {
  struct node *node = p->current;
  if (p->is_stopped || node->faults & 1u << kind) return false;
  node->faults |= 1u << kind;
  struct proof_fault *fault = arena_new(p->arena, struct proof_fault);
  fault->kind = kind;
  fault->range = node->stmt->range;
  fault->statement = ir_stmt_title(node->stmt, p->arena);
  va_list arguments;
  va_start(arguments, format);
  fault->message = arena_vprintf(p->arena, format, arguments);
  va_end(arguments);
  if (other) {
    fault->other = other->stmt->range;
    fault->other_message = other_message;
  }
  find_place(node, fault);
  list_push(p->arena, &p->proof->faults, fault);
  if (p->proof->faults.count >= p->limit) p->is_stopped = true;
  return false;
}

void prove_clean(struct prover *p, const struct av *v, const char *what) {
  if (!v->poison) return;
  for (uint32_t t = 0; t < p->threads; t++) {
    if (!threads_has(&p->may, t) || !threads_has(v->poison, t)) continue;
    prove_fault(p, PROOF_POISON, v->origin, "the value comes from here",
                "%s uses, as %s, a value that a lane outside its mask gave or that no operation has",
                prove_thread_name(p, t), what);
    return;
  }
}

// --- Facts -------------------------------------------------------------------------------------------

static bool is_number_type(enum type type) {
  return type_is_integer(type);
}

static void add_fact(struct prover *p, const struct ir_expr *e, int64_t lo, int64_t hi) {
  if (e->op == OP_CONST) return;
  if (p->fact_count == p->fact_capacity) {
    uint32_t capacity = p->fact_capacity ? 2 * p->fact_capacity : 32;
    struct fact *more = arena_array(p->scratch, struct fact, capacity);
    for (uint32_t i = 0; i < p->fact_count; i++) more[i] = p->facts[i];
    p->facts = more;
    p->fact_capacity = capacity;
  }
  p->facts[p->fact_count++] = (struct fact){e, lo, hi};
}

// What e <= most, e an index, whose arithmetic does not wrap, says of the parts of the sum that it is: o * 8 + i <= most and 0 <= i give
// o <= most / 8. Bounds for all threads that are here.
static void assume_parts(struct prover *p, struct ir_expr *e, int64_t most, int depth) {
  int64_t lo, hi;
  if (e->op == OP_VAR) {
    bool is_sum = e->var->was_index && e->var->mark && e->var->mark <= p->slot_count && p->slots[e->var->mark - 1].definition;
    if (!is_sum) return;
    e = p->slots[e->var->mark - 1].definition;
  }
  if (depth == 0 || most < 0 || e->count != 2) return;
  for (uint32_t i = 0; i < 2; i++) {
    struct ir_expr *part = e->args[i], *other = e->args[1 - i];
    int64_t room = most;
    value_bounds(p, prove_eval(p, other), &lo, &hi);
    if (e->op == OP_ADD && lo >= 0) room = most - lo;
    else if (e->op == OP_MUL && lo == hi && lo > 0) room = most / lo;
    else continue;
    value_bounds(p, prove_eval(p, part), &lo, &hi);
    if (part->op == OP_CONST || lo < 0 || hi <= room || room < 0) continue;
    add_fact(p, part, INT64_MIN, room);
    assume_parts(p, part, room, depth - 1);
  }
}

static void assume_less(struct prover *p, struct ir_expr *a, struct ir_expr *b, int64_t gap) { // a + gap <= b
  int64_t alo, ahi, blo, bhi;
  value_bounds(p, prove_eval(p, a), &alo, &ahi);
  value_bounds(p, prove_eval(p, b), &blo, &bhi);
  if (a->type == TYPE_U64 && (alo < 0 || blo < 0)) return;
  if (bhi != INT64_MIN && bhi - gap < ahi) {
    add_fact(p, a, INT64_MIN, bhi - gap);
    if (a->op == OP_VAR) {
      bool before = p->does_not_wrap;
      p->does_not_wrap = true;
      assume_parts(p, a, bhi - gap, 6);
      p->does_not_wrap = before;
    }
  }
  if (alo != INT64_MAX && alo + gap > blo) add_fact(p, b, alo + gap, INT64_MAX);
}

static void assume_equal(struct prover *p, struct ir_expr *a, struct ir_expr *b) {
  int64_t lo, hi;
  value_bounds(p, prove_eval(p, b), &lo, &hi);
  add_fact(p, a, lo, hi);
  value_bounds(p, prove_eval(p, a), &lo, &hi);
  add_fact(p, b, lo, hi);
}

static struct ir_expr *definition(const struct prover *p, struct ir_expr *e) {
  while (e->op == OP_VAR && e->var->mark && e->var->mark <= p->slot_count &&
         p->slots[e->var->mark - 1].definition)
    e = p->slots[e->var->mark - 1].definition;
  return e;
}

static void find_changing(struct ir_expr *e, void *state) {
  bool changes = e->op == OP_LOAD || e->op == OP_LOAD_FLAT || op_is_collective(e->op) ||
                 (e->op == OP_VAR && e->var->kind == VAR_MUTABLE);
  if (changes) *(bool *)state = true;
}

bool prove_is_constant_in_time(struct ir_expr *e) {
  bool changes = false;
  ir_visit_expr(e, find_changing, &changes);
  return !changes;
}

void prove_assume(struct prover *p, struct ir_expr *condition, bool truth) {
  struct ir_expr *e = definition(p, condition);
  if (!prove_is_constant_in_time(e)) return;
  if (e->type != TYPE_BOOL || e->count == 0 || e->count > 2) return;
  struct ir_expr *a = e->args[0], *b = e->count > 1 ? e->args[1] : NULL;
  if (e->op == OP_NOT) prove_assume(p, a, !truth);
  if (e->op == (truth ? OP_AND : OP_OR)) prove_assume(p, a, truth), prove_assume(p, b, truth);
  if (!b || !is_number_type(a->type)) return;
  switch ((int)e->op) {
  case OP_LT: truth ? assume_less(p, a, b, 1) : assume_less(p, b, a, 0); return;
  case OP_LE: truth ? assume_less(p, a, b, 0) : assume_less(p, b, a, 1); return;
  case OP_GT: truth ? assume_less(p, b, a, 1) : assume_less(p, a, b, 0); return;
  case OP_GE: truth ? assume_less(p, b, a, 0) : assume_less(p, a, b, 1); return;
  case OP_EQ:
    if (truth) assume_equal(p, a, b);
    return;
  case OP_NE:
    if (!truth) assume_equal(p, a, b);
    return;
  default: return;
  }
}

static const struct av *apply_facts(struct prover *p, const struct ir_expr *e, const struct av *v) {
  for (uint32_t i = 0; i < p->fact_count; i++) {
    const struct fact *fact = &p->facts[i];
    bool is_it =
        fact->expr == e || (fact->expr->op == e->op && (e->op != OP_VAR || fact->expr->var == e->var) &&
                            ir_equal(fact->expr, e));
    if (is_it) v = value_bounded(p, v, fact->lo, fact->hi);
  }
  return v;
}

// --- Leaves ------------------------------------------------------------------------------------------

static const struct av *eval_constant(struct prover *p, const struct ir_expr *e) {
  int64_t bits;
  memcpy(&bits, &e->number, sizeof bits);
  return value_number(p, e->type, e->type == TYPE_BOOL || type_is_integer(e->type) ? e->integer : bits);
}

static const struct av *eval_thread(struct prover *p, const struct ir_expr *e) {
  int64_t last = (int64_t)p->entry->block[e->dimension] - 1;
  if (last == 0) return value_number(p, e->type, 0);
  if (!p->is_enumerated) return value_varying(p, e->type, 0, last, NULL);
  return value_known(p, e->type, p->coordinate[e->dimension]);
}

static const struct av *eval_block(struct prover *p, const struct ir_expr *e) {
  struct ir_expr *extent = p->entry->grid[e->dimension];
  int64_t lo = 0, hi = INT32_MAX;
  if (extent) value_bounds(p, prove_eval(p, extent), &lo, &hi);
  if (hi > INT32_MAX) hi = INT32_MAX;
  return value_block(p, e->type, e->dimension, hi > 0 ? hi - 1 : 0);
}

// A value of memory: the same where it is read from the same place, if nothing changes it meanwhile.
static const struct av *loaded(struct prover *p, const struct ir_mem *mem, enum type type,
                               const struct av *const *indices, uint32_t count) {
  int64_t lo, hi;
  bool is_opaque = mem->space == SPACE_LOCAL || (mem->space == SPACE_GLOBAL && mem->is_output),
       is_uniform = !is_opaque;
  const int64_t *source = NULL;
  for (uint32_t i = 0; i < count; i++) is_uniform &= value_is_uniform(indices[i]);
  type_bounds(type, &lo, &hi);
  if (is_uniform) return value_uniform(p, type, lo, hi);
  if (!is_opaque) source = value_sources(p, indices, count, &is_opaque);
  return value_varying(p, type, lo, hi, is_opaque ? NULL : source);
}

static const struct av *eval_load(struct prover *p, struct ir_expr *e) {
  const struct av **indices = arena_array(p->scratch, const struct av *, e->count + 1);
  for (uint32_t i = 0; i < e->count; i++) indices[i] = prove_eval(p, e->args[i]);
  return prove_loaded(p, e->mem, e->type, indices, e->count, e->op == OP_LOAD_FLAT, 1);
}

const struct av *prove_loaded(struct prover *p, struct ir_mem *mem, enum type type,
                              const struct av *const *indices, uint32_t count, bool is_flat,
                              uint32_t elements) {
  for (uint32_t i = 0; i < count; i++) prove_clean(p, indices[i], "an index");
  const struct av *index = mem->space != SPACE_GLOBAL ? memory_access(p, mem, indices, count, is_flat, false, elements) : NULL;
  const struct av *value = loaded(p, mem, type, indices, count);
  return mem->space == SPACE_LOCAL ? memory_kept(p, mem, index, elements, value) : value;
}

// --- Operations --------------------------------------------------------------------------------------

static const struct av *eval_select(struct prover *p, struct ir_expr *e) {
  const struct av *args[3] = {prove_eval(p, e->args[0])};
  uint32_t facts = p->fact_count;
  bool helps = type_is_integer(e->type) && !(value_is_known(args[0]) && !args[0]->known);
  for (int i = 1; i <= 2; i++) {
    if (helps) prove_assume(p, e->args[0], i == 1);
    args[i] = prove_eval(p, e->args[i]);
    p->fact_count = facts;
  }
  return value_op(p, OP_SELECT, e->type, args, 3);
}

// The backend tests whether the operands of a 64-bit division fit 32 bits, and branches.
static bool is_branching_division(const struct ir_expr *e) {
  bool divides = e->op == OP_DIV || e->op == OP_MOD || e->op == OP_QUO || e->op == OP_REM;
  return divides && type_is_integer(e->type) && type_bits(e->type) == 64 && e->args[1]->op != OP_CONST;
}

static const struct av *eval_op(struct prover *p, struct ir_expr *e) {
  const struct av *few[4],
      **args = e->count <= 4 ? few : arena_array(p->scratch, const struct av *, e->count);
  for (uint32_t i = 0; i < e->count; i++) args[i] = prove_eval(p, e->args[i]);
  if (p->has_poison && is_branching_division(e))
    prove_clean(p, args[0], "an operand of a 64-bit division"),
        prove_clean(p, args[1], "an operand of a 64-bit division");
  return value_op(p, e->op, e->type, args, e->count);
}

static const struct ir_expr *without_casts(const struct ir_expr *e) {
  while (e->op == OP_CAST && type_is_integer(e->type) && type_is_integer(e->args[0]->type) && type_bits(e->type) == 32 && type_bits(e->args[0]->type) == 32) e = e->args[0];
  return e;
}

// x - (x * M >> s) * d where that is x % d for all values of x: so pass `math` divides what is small by numbers. NULL: it is something else.
static const struct av *eval_remainder(struct prover *p, struct ir_expr *e) {
  const struct ir_expr *whole = e->op == OP_SUB && type_is_integer(e->type) && type_bits(e->type) == 32 ? without_casts(e->args[1]) : NULL;
  if (!whole || whole->op != OP_MUL || !ir_is_const(whole->args[1])) return NULL;
  const struct ir_expr *shift = without_casts(whole->args[0]), *product = shift->op == OP_SHR && ir_is_const(shift->args[1]) ? without_casts(shift->args[0]) : NULL;
  if (!product || product->op != OP_MUL || product->type != TYPE_U32 || !ir_is_const(product->args[1]) || !ir_equal(without_casts(product->args[0]), without_casts(e->args[0]))) return NULL;
  int64_t d = whole->args[1]->integer, times = product->args[1]->integer, s = shift->args[1]->integer, lo, hi, up, error, most;
  const struct av *args[2] = {prove_eval(p, e->args[0])};
  value_bounds(p, args[0], &lo, &hi);
  if (lo < 0 || d <= 0 || times <= 0 || s < 0 || s > 31 || __builtin_mul_overflow(times, hi, &most) || most > UINT32_MAX) return NULL;
  if (__builtin_mul_overflow(times, d, &up) || (error = up - (INT64_C(1) << s)) < 0 || __builtin_mul_overflow(error, hi, &most) || most >= INT64_C(1) << s) return NULL;
  args[1] = value_number(p, e->type, d);
  return value_op(p, OP_REM, e->type, args, 2);
}

const struct av *prove_eval(struct prover *p, struct ir_expr *e) {
  const struct av *v;
  switch ((int)e->op) {
  case OP_CONST: return eval_constant(p, e);
  case OP_VAR:
    v = e->var->mark && e->var->mark <= p->slot_count ? p->slots[e->var->mark - 1].value : NULL;
    if (!v) { // of a branch that is not taken
      int64_t lo, hi;
      type_bounds(e->type, &lo, &hi);
      v = value_varying(p, e->type, lo, hi, NULL);
    }
    break;
  case OP_THREAD: v = eval_thread(p, e); break;
  case OP_BLOCK: v = eval_block(p, e); break;
  case OP_LOAD:
  case OP_LOAD_FLAT: v = eval_load(p, e); break;
  case OP_AWAIT: // another block's value
    prove_eval(p, e->args[0]);
    v = prove_eval(p, e->args[1]);
    break;
  case OP_SHFL_DOWN:
  case OP_SHFL_XOR:
  case OP_SHFL_IDX: v = prove_shuffle(p, e); break;
  case OP_REDUX_ADD:
  case OP_REDUX_MIN:
  case OP_REDUX_MAX:
  case OP_REDUX_AND:
  case OP_REDUX_OR:
  case OP_REDUX_XOR: v = prove_redux(p, e); break;
  case OP_DIM:
  case OP_STRIDE:
  case OP_ADDRESS:
  case OP_SMS:
  case OP_ARCH:
  case OP_SHARED_LIMIT: v = value_uniform(p, e->type, INT64_MIN, INT64_MAX); break;
  case OP_SELECT: v = eval_select(p, e); break;
  case OP_SUB:
    v = eval_remainder(p, e);
    if (!v) v = eval_op(p, e);
    break;
  default: v = eval_op(p, e); break;
  }
  return p->fact_count && is_number_type(e->type) ? apply_facts(p, e, v) : v;
}

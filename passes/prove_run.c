// Statements, for all threads at once.
//
// Conditions known for each thread split the threads; a uniform one that is not known is followed both ways,
// from copies of what is known of memory; one that varies leaves open who comes. Loops of few iterations that
// touch shared memory or hold a collective run as they would. Others run an iteration from what holds before,
// then from what any iteration may find (values widened until nothing changes), twice at least, so that every
// pair of successive iterations has been seen; once where that pair is one of a loop inside, which is all that
// an iteration does.
#include "passes/prove_engine.h"

#include <string.h>

enum { DEFAULT_FAULTS = 8, EXACT_TRIPS = 256 };
// Statements times threads, about 5 ns each: of a loop that runs as it would, of one of at most EXACT_TRIPS,
// and of everything.
static const uint64_t EXACT_WORK = 1 << 18, EXACT_FEW_WORK = 1 << 21, MOST_WORK = 1 << 26;
static const size_t MOST_MEMORY = (size_t)1 << 28; // bytes

static void run_block(struct prover *p, const struct list *nodes);

// --- Variables ---------------------------------------------------------------------------------------

static struct slot *slot_of(struct prover *p, const struct ir_var *var) {
  return &p->slots[var->mark - 1];
}

static void define(struct prover *p, const struct ir_var *var, const struct av *value,
                   struct ir_expr *definition) {
  struct slot *slot = slot_of(p, var);
  slot->value = value;
  slot->definition = definition;
}

static const struct av *opaque(struct prover *p, enum type type) {
  int64_t lo, hi;
  type_bounds(type, &lo, &hi);
  return value_varying(p, type, lo, hi, NULL);
}

static const struct av **save(struct prover *p, const struct list *vars) {
  const struct av **values = arena_array(p->scratch, const struct av *, vars->count + 1);
  for (uint32_t i = 0; i < vars->count; i++) {
    const struct ir_var *var = vars->at[i];
    const struct av *value = slot_of(p, var)->value;
    values[i] = value ? value : opaque(p, var->type); // declared inside
  }
  return values;
}

static void restore(struct prover *p, const struct list *vars, const struct av *const *values) {
  for (uint32_t i = 0; i < vars->count; i++) slot_of(p, vars->at[i])->value = values[i];
}

// --- Control flow ------------------------------------------------------------------------------------

static bool is_empty(const struct prover *p, const struct threads *s) {
  for (uint32_t i = 0; i < p->sets; i++)
    if (s->bits[i]) return false;
  return true;
}

static bool is_same_everywhere(const struct prover *p, const int64_t *source) {
  for (uint32_t t = 1; source && t < p->threads; t++)
    if (source[t] != source[0]) return false;
  return source != NULL;
}

// Puts a condition that is not known for each thread in force. False where they are too many.
static bool push_unknown(struct prover *p, const struct av *condition, bool truth) {
  if (p->unknown_count == sizeof p->unknowns / sizeof *p->unknowns)
    return prove_fault(p, PROOF_LIMIT, NULL, NULL, "statements are nested too deep to prove");
  bool is_uniform = value_is_uniform(condition);
  const int64_t *source = is_uniform ? NULL : condition->is_varying ? condition->source : condition->known;
  p->unknowns[p->unknown_count++] =
      (struct unknown){is_uniform, source, is_uniform ? condition->base : 0, truth};
  return true;
}

// The threads of `may` for which a known condition has this truth.
static struct threads those(const struct prover *p, const struct av *condition, bool truth) {
  struct threads all = p->may;
  for (uint32_t t = 0; t < p->threads; t++)
    if ((value_at(condition, t) != 0) != truth) all.bits[t / 64] &= ~(UINT64_C(1) << (t % 64));
  return all;
}

// The parts of a condition that must all hold, each evaluated; those known for each thread take threads away,
// others go in force. Returns whether some part is not known.
static bool enter_conjunction(struct prover *p, struct ir_expr *e, bool *is_divergent) {
  struct ir_expr *definition = e;
  while (definition->op == OP_VAR && definition->var->mark && definition->var->mark <= p->slot_count &&
         slot_of(p, definition->var)->definition)
    definition = slot_of(p, definition->var)->definition;
  if (definition->op == OP_AND && definition->type == TYPE_BOOL && prove_is_constant_in_time(definition)) {
    bool first = enter_conjunction(p, definition->args[0], is_divergent);
    return enter_conjunction(p, definition->args[1], is_divergent) || first;
  }
  const struct av *value = prove_eval(p, e);
  if (value_is_known(value)) {
    p->may = those(p, value, true);
    if (value->known) *is_divergent = true;
    return false;
  }
  if (!value_is_uniform(value) && !is_same_everywhere(p, value->is_varying ? value->source : value->known))
    *is_divergent = true;
  push_unknown(p, value, true);
  return true;
}

// What conditions in force, base + number < limit or its contrary, say of the base.
static void bound_base(const struct prover *p, uint32_t base, int64_t *lo, int64_t *hi) {
  for (uint32_t i = 0; i < p->unknown_count; i++) {
    const struct symbol *condition = p->unknowns[i].is_uniform && p->unknowns[i].symbol ? &p->symbols[p->unknowns[i].symbol] : NULL;
    if (!condition || condition->op != OP_LT || p->symbols[condition->args[1]].op != OP_CONST) continue;
    const struct symbol *left = &p->symbols[condition->args[0]];
    bool is_sum = left->op == OP_ADD && left->args[0] == base && p->symbols[left->args[1]].op == OP_CONST;
    int64_t limit, least, most, number = is_sum ? p->symbols[left->args[1]].number : 0;
    if (!is_sum && condition->args[0] != base) continue;
    if (__builtin_add_overflow(*lo, number, &least) || __builtin_add_overflow(*hi, number, &most) || !bounds_fit(p->symbols[base].type, least, most)) continue; // it may wrap
    if (__builtin_sub_overflow(p->symbols[condition->args[1]].number, number, &limit)) continue;
    if (p->unknowns[i].truth && limit - 1 < *hi) *hi = limit - 1;
    if (!p->unknowns[i].truth && limit > *lo) *lo = limit;
  }
  int64_t multiple = p->symbols[base].multiple;
  if (multiple > 1 && *lo > 0 && *lo < INT64_MAX - multiple) *lo = (*lo + multiple - 1) / multiple * multiple;
}

// The same of base - limit, `limit` a symbol that is not known, from bounds of the base.
static void bound_distance(const struct prover *p, uint32_t base, int64_t base_lo, int64_t base_hi, uint32_t limit, int64_t *lo, int64_t *hi) {
  *lo = INT64_MIN / 2, *hi = INT64_MAX / 2;
  for (uint32_t i = 0; i < p->unknown_count; i++) {
    const struct symbol *condition = p->unknowns[i].is_uniform && p->unknowns[i].symbol ? &p->symbols[p->unknowns[i].symbol] : NULL;
    if (!condition || condition->op != OP_LT || condition->args[1] != limit) continue;
    const struct symbol *left = &p->symbols[condition->args[0]];
    bool is_sum = left->op == OP_ADD && left->args[0] == base && p->symbols[left->args[1]].op == OP_CONST;
    int64_t least, most, number = is_sum ? p->symbols[left->args[1]].number : 0;
    if (!is_sum && condition->args[0] != base) continue;
    if (__builtin_add_overflow(base_lo, number, &least) || __builtin_add_overflow(base_hi, number, &most) || !bounds_fit(p->symbols[base].type, least, most)) continue; // it may wrap
    if (p->unknowns[i].truth && -number - 1 < *hi) *hi = -number - 1;
    if (!p->unknowns[i].truth && -number > *lo) *lo = -number;
  }
}

// Whether a uniform condition base + number < limit follows from those in force: 1 it does, 0 its contrary does, -1 neither.
static int follows(struct prover *p, struct ir_expr *condition) {
  if (condition->op != OP_LT || !type_is_integer(condition->args[0]->type)) return -1;
  const struct av *x = prove_eval(p, condition->args[0]), *limit = prove_eval(p, condition->args[1]);
  int64_t lo, hi;
  bool is_far = value_is_uniform(limit) && limit->base && !limit->number; // only how far it is from the base is known
  if (!value_is_uniform(x) || !x->base || x->poison || (!is_far && (!value_is_known(limit) || limit->known))) return -1;
  value_bounds(p, x, &lo, &hi);
  if (__builtin_sub_overflow(lo, x->number, &lo) || __builtin_sub_overflow(hi, x->number, &hi)) return -1;
  if (is_far) bound_distance(p, x->base, lo, hi, limit->base, &lo, &hi);
  else bound_base(p, x->base, &lo, &hi);
  if (__builtin_add_overflow(lo, x->number, &lo) || __builtin_add_overflow(hi, x->number, &hi)) return -1;
  return hi < limit->number ? 1 : lo >= limit->number ? 0 : -1;
}

// What is already known of a uniform condition on the way here: 1 true, 0 false, -1 nothing.
static int decided(struct prover *p, struct ir_expr *e, const struct av *condition) {
  for (uint32_t i = 0; i < p->unknown_count && condition->base && !condition->number; i++)
    if (p->unknowns[i].is_uniform && p->unknowns[i].symbol == condition->base) return p->unknowns[i].truth;
  return follows(p, e);
}

static void run_side(struct prover *p, struct node *node, bool truth) {
  uint32_t facts = p->fact_count;
  prove_assume(p, node->stmt->value, truth);
  if (!is_empty(p, &p->may)) run_block(p, truth ? &node->body : &node->otherwise);
  p->fact_count = facts;
}

static uint32_t *copy_order(struct prover *p, const struct node *node) {
  if (!node->has_syncwarp || !p->memory.order) return NULL;
  uint32_t *order = arena_array(p->scratch, uint32_t, p->threads * 32);
  memcpy(order, p->memory.order, sizeof *order * p->threads * 32);
  return order;
}

// The threads that are here for which a condition base + number < limit, the base the same for all and known by its bounds, or its distance from the limit, only, is decided by
// their own number: it holds for *yes and not for *no. False where there are none.
static bool find_decided(struct prover *p, struct ir_expr *condition, struct threads *yes, struct threads *no) {
  memset(yes, 0, sizeof *yes);
  memset(no, 0, sizeof *no);
  if (condition->op != OP_LT || !type_is_integer(condition->args[0]->type)) return false;
  const struct av *x = prove_eval(p, condition->args[0]), *limit = prove_eval(p, condition->args[1]);
  bool is_sum = !x->is_varying && x->base && x->known;
  bool is_far = is_sum && value_is_uniform(limit) && limit->base && !limit->number; // only how far it is from the base is known
  if ((!is_sum && !(x->is_varying && x->floor)) || x->poison || (!is_far && (!value_is_known(limit) || limit->known))) return false;
  struct reach reach = value_reach(p, x);
  int64_t base_lo, base_hi, least = 0, most = 0;
  if (is_sum) value_known_bounds(p, x->known, &least, &most);
  value_bounds(p, x, &base_lo, &base_hi);
  if (__builtin_sub_overflow(base_lo, most, &base_lo) || __builtin_sub_overflow(base_hi, least, &base_hi)) return false; // facts hold for threads that are here
  if (is_far && !value_base_bounds(p, x, &base_lo, &base_hi)) return false;
  if (is_far) bound_distance(p, x->base, base_lo, base_hi, limit->base, &base_lo, &base_hi);
  else if (is_sum) bound_base(p, x->base, &base_lo, &base_hi);
  bool is_any = false;
  for (uint32_t t = 0; t < p->threads; t++) {
    if (!threads_has(&p->may, t)) continue;
    int64_t lo, hi;
    int64_t known = is_sum ? x->known[t] : 0;
    if (__builtin_add_overflow(base_lo, known, &lo)) continue;
    if (__builtin_add_overflow(base_hi, known, &hi)) hi = INT64_MAX;
    if (hi < limit->number || (!is_far && reach_hi(&reach, t) < limit->number)) threads_add(yes, t);
    else if (lo >= limit->number || (!is_far && reach_lo(&reach, t) >= limit->number)) threads_add(no, t);
    else continue;
    is_any = true;
  }
  return is_any;
}

static void leave_out(struct threads *from, const struct threads *those) {
  for (uint32_t i = 0; i < PROVE_SETS; i++) from->bits[i] &= ~those->bits[i];
}

// A guard around accesses of shared memory is decided for some threads: where it holds these come first, and surely.
static void run_decided(struct prover *p, struct node *node) {
  struct threads yes, no;
  if (!node->has_shared || node->has_collective || node->otherwise.count || !find_decided(p, node->stmt->value, &yes, &no)) return;
  leave_out(&p->may, &no);
  if (node->sets.count) return;
  struct threads rest = p->may;
  leave_out(&rest, &yes);
  p->may = yes;
  run_side(p, node, true);
  p->may = rest;
}

static void run_undecided_if(struct prover *p, struct node *node) {
  const struct av *condition = prove_eval(p, node->stmt->value);
  struct threads all = p->may;
  uint32_t unknowns = p->unknown_count;
  prove_clean(p, condition, "a condition");
  int known = value_is_known(condition) && !condition->known ? condition->number != 0
              : value_is_uniform(condition)                  ? decided(p, node->stmt->value, condition)
                                                             : -1;
  if (known >= 0) {
    run_side(p, node, known);
    return;
  }
  const struct av **before = save(p, &node->sets), **then;
  bool is_uniform = value_is_uniform(condition);
  // without a barrier or another side, what is done perhaps is done in the same epoch
  bool splits_memory = is_uniform && (node->has_sync || (node->has_shared && node->otherwise.count));
  struct memory other = {0};
  if (splits_memory) other = memory_copy(p, &p->memory);
  bool restores_order = !is_uniform && !value_is_known(condition) && node->has_syncwarp;
  uint32_t *order = restores_order ? copy_order(p, node) : NULL;
  if (is_uniform) {
    push_unknown(p, condition, true);
  } else if (value_is_known(condition)) {
    node->is_divergent = true;
    p->may = those(p, condition, true);
  } else {
    enter_conjunction(p, node->stmt->value, &node->is_divergent);
  }
  run_side(p, node, true);
  then = save(p, &node->sets);
  restore(p, &node->sets, before);
  p->unknown_count = unknowns;
  p->may = all;
  if (restores_order) p->memory.order = order;
  if (splits_memory) {
    struct memory swap = p->memory;
    p->memory = other;
    other = swap;
  }
  if (value_is_known(condition))
    p->may = those(p, condition, false);
  else
    push_unknown(p, condition, false);
  run_side(p, node, false);
  p->unknown_count = unknowns;
  p->may = all;
  if (restores_order) p->memory.order = order;
  if (splits_memory) memory_merge(p, &p->memory, &other);
  for (uint32_t i = 0; i < node->sets.count; i++) {
    struct slot *slot = slot_of(p, node->sets.at[i]);
    const struct av *args[3] = {condition, then[i], slot->value ? slot->value : before[i]};
    slot->value = then[i] == args[2] ? then[i] : value_op(p, OP_SELECT, then[i]->type, args, 3);
  }
}

static void run_if(struct prover *p, struct node *node) {
  struct threads all = p->may;
  run_decided(p, node);
  if (!is_empty(p, &p->may)) run_undecided_if(p, node);
  p->may = all;
}

// --- Loops -------------------------------------------------------------------------------------------

// A loop whose trips are known for each thread: each as it is.
static void run_exactly(struct prover *p, struct node *node, const struct av *lo, const struct av *hi) {
  struct threads all = p->may;
  enum type type = node->stmt->var->type;
  if (lo->known || hi->known) node->is_divergent = true;
  for (int64_t trip = 0; !p->is_stopped; trip++) {
    const struct av *place =
        value_op(p, OP_ADD, type, (const struct av *const[]){lo, value_number(p, type, trip)}, 2);
    const struct av *runs = value_op(p, OP_LT, TYPE_BOOL, (const struct av *const[]){place, hi}, 2);
    p->may = all;
    p->may = those(p, runs, true);
    if (is_empty(p, &p->may)) break;
    const struct av **before = runs->known ? save(p, &node->sets) : NULL;
    define(p, node->stmt->var, place, NULL);
    node->has_met_itself |= trip > 0;
    run_block(p, &node->body);
    for (uint32_t i = 0; before && i < node->sets.count; i++) { // those that have left keep theirs
      struct slot *slot = slot_of(p, node->sets.at[i]);
      if (slot->value != before[i])
        slot->value = value_op(p, OP_SELECT, before[i]->type,
                               (const struct av *const[]){runs, slot->value, before[i]}, 3);
    }
  }
  p->may = all;
}

// The loop variable `trip` iterations after the one with that `counter`, which counts from lo.
static const struct av *iteration(struct prover *p, const struct av *lo, const struct av *hi,
                                  const struct av *counter, int64_t trip) {
  int64_t least, most, hi_lo, hi_hi;
  value_bounds(p, lo, &least, &most);
  value_bounds(p, hi, &hi_lo, &hi_hi);
  if (hi_hi != INT64_MIN) hi_hi--;
  if (lo->is_varying) return value_varying(p, lo->type, least, hi_hi < least ? least : hi_hi, lo->source);
  const struct av *done =
      value_op(p, OP_ADD, lo->type, (const struct av *const[]){counter, value_number(p, lo->type, trip)}, 2);
  const struct av *number = value_op(p, OP_ADD, lo->type, (const struct av *const[]){done, lo}, 2);
  if (!__builtin_add_overflow(least, trip, &most) && most <= hi_hi) least = most;
  return value_bounded(p, number, least, hi_hi < least ? least : hi_hi);
}

// Runs the body until what the variables hold at its head says what they hold at its end. Where every
// iteration passes a block barrier, only neighbours meet, and the counter of the next is this one's plus one;
// else it is any other.
static void run_symbolically(struct prover *p, struct node *node, const struct av *lo, const struct av *hi) {
  const struct av *bounds[2] = {lo, hi};
  bool is_relevant = node->has_shared || node->has_collective,
       is_uniform = value_is_uniform(lo) && value_is_uniform(hi), is_opaque;
  uint32_t unknowns = p->unknown_count, since = p->symbol_count, facts = p->fact_count;
  int64_t lo_lo, lo_hi, hi_lo, hi_hi;
  value_bounds(p, lo, &lo_lo, &lo_hi);
  value_bounds(p, hi, &hi_lo, &hi_hi);
  if (hi_hi <= lo_lo) return;
  bool may_be_empty = hi_lo <= lo_hi, merges = node->has_shared || node->has_sync;
  bool restores_order = !is_uniform && node->has_syncwarp;
  uint32_t *order = restores_order ? copy_order(p, node) : NULL;
  struct memory ended = {0};
  bool has_ended = merges && may_be_empty;
  if (has_ended) ended = memory_copy(p, &p->memory);
  if (!is_uniform) {
    const int64_t *source = value_sources(p, bounds, 2, &is_opaque);
    if (!is_same_everywhere(p, source)) node->is_divergent = true;
    push_unknown(p, value_varying(p, TYPE_BOOL, 0, 1, source), true);
  } else if (may_be_empty) {
    push_unknown(p, value_uniform(p, TYPE_BOOL, 0, 1), true);
  }
  const struct av **head = save(p, &node->sets);
  if (!is_relevant) { // nothing here asks what a variable holds
    for (uint32_t i = 0; i < node->sets.count; i++)
      head[i] = value_poisoned(p, opaque(p, ((struct ir_var *)node->sets.at[i])->type), head[i]->poison,
                               head[i]->origin);
    restore(p, &node->sets, head);
  }
  // iterations from what any iteration may find; floats never matter to memory
  uint32_t general = node->only_float_sets || !is_relevant ? 1 : 0, needed = is_relevant ? 2 : 1, trip = 0;
  int64_t period = loop_period(p, node);
  const struct node *inner = is_relevant && is_uniform && period == 1 ? loop_met_inside(p, node) : NULL;
  bool had_passed = p->memory.has_passed, all_pass = true;
  const struct av *counter = value_counter(p, lo->type, period);
  for (uint32_t round = 0; !p->is_stopped; round++) {
    p->memory.has_passed = false;
    define(p, node->stmt->var, iteration(p, lo, hi, counter, trip), NULL);
    run_block(p, &node->body);
    bool is_chained = p->memory.has_passed;
    all_pass &= is_chained;
    if (is_chained)
      trip++;
    else
      trip = 0, counter = value_counter(p, lo->type, period);
    if (is_relevant && round == 0) needed = inner && inner->has_met_itself ? 1 : is_chained ? (uint32_t)period + 1 : 2;
    p->fact_count = facts;
    bool is_stable = true;
    for (uint32_t i = 0; i < node->sets.count; i++) {
      struct slot *slot = slot_of(p, node->sets.at[i]);
      const struct av *wider = value_widen(p, head[i], slot->value ? slot->value : head[i], since);
      is_stable &= wider == head[i];
      head[i] = value_refresh(p, wider, since);
    }
    restore(p, &node->sets, head);
    if (round == 0 && is_stable)
      general = 1;
    else if (round > 0)
      general = is_stable ? general + 1 : 0;
    bool is_last = is_stable && general >= needed;
    if (merges && !has_ended) {
      ended = memory_copy(p, &p->memory);
      has_ended = true;
    } else if (merges && is_last) {
      memory_merge(p, &p->memory, &ended);
    } else if (merges) {
      struct memory copy = memory_copy(p, &p->memory);
      memory_merge(p, &ended, &copy);
    }
    if (is_last) break;
  }
  node->has_met_itself = true;
  p->memory.has_passed = had_passed || (all_pass && !may_be_empty);
  p->unknown_count = unknowns;
  if (restores_order) p->memory.order = order;
  if (!is_uniform) // each thread left when its own trips were over
    for (uint32_t i = 0; i < node->sets.count; i++) {
      struct slot *slot = slot_of(p, node->sets.at[i]);
      int64_t least, most;
      value_bounds(p, slot->value, &least, &most);
      slot->value = value_poisoned(p, value_varying(p, slot->value->type, least, most, NULL),
                                   slot->value->poison, slot->value->origin);
    }
}

static void run_for(struct prover *p, struct node *node) {
  const struct av *lo = prove_eval(p, node->stmt->lo), *hi = prove_eval(p, node->stmt->hi);
  bool is_relevant = node->has_shared || node->has_collective;
  prove_clean(p, lo, "a loop's bound");
  prove_clean(p, hi, "a loop's bound");
  if (!is_relevant && !node->has_local && !p->has_poison && node->only_float_sets) return; // nothing to see
  if (is_relevant && !p->is_never_exact && value_is_known(lo) && value_is_known(hi)) {
    int64_t lo_lo, lo_hi, hi_lo, hi_hi, trips;
    value_bounds(p, lo, &lo_lo, &lo_hi);
    value_bounds(p, hi, &hi_lo, &hi_hi);
    bool is_countable = !__builtin_sub_overflow(hi_hi, lo_lo, &trips);
    uint64_t step = (uint64_t)node->size * p->threads;
    bool is_known = !lo->known && !hi->known; // else threads leave one by one, and what they hold matters
    if (is_countable && (trips <= 1 || !is_known || loop_iterations_differ(p, node)) &&
        (trips <= 1 || (uint64_t)trips <= (trips <= EXACT_TRIPS ? EXACT_FEW_WORK : EXACT_WORK) / step)) {
      run_exactly(p, node, lo, hi);
      return;
    }
  }
  run_symbolically(p, node, lo, hi);
}

// --- Statements --------------------------------------------------------------------------------------

static const struct av **eval_all(struct prover *p, const struct list *exprs) {
  const struct av **values = arena_array(p->scratch, const struct av *, exprs->count + 1);
  for (uint32_t i = 0; i < exprs->count; i++) values[i] = prove_eval(p, exprs->at[i]);
  return values;
}

static void run_store(struct prover *p, struct node *node) {
  struct ir_stmt *stmt = node->stmt;
  const struct av **indices = eval_all(p, &stmt->indices);
  for (uint32_t i = 0; i < stmt->indices.count; i++) prove_clean(p, indices[i], "an index");
  bool is_wide = stmt->kind == IR_STORE_WIDE, is_local = stmt->mem->space == SPACE_LOCAL && !is_wide;
  const struct av *value = stmt->value ? prove_eval(p, stmt->value) : NULL, *index = NULL;
  if (value && !is_local) prove_clean(p, value, "a value to store");
  for (uint32_t i = 0; i < stmt->inputs.count; i++)
    prove_clean(p, prove_eval(p, stmt->inputs.at[i]), "a value to store");
  if (stmt->mem->space != SPACE_GLOBAL)
    index = memory_access(p, stmt->mem, indices, stmt->indices.count, stmt->is_flat, true, is_wide ? stmt->inputs.count : 1);
  if (value && is_local) memory_keep(p, stmt->mem, index, 1, value);
}

static void run_load_wide(struct prover *p, struct node *node) {
  struct ir_stmt *stmt = node->stmt;
  const struct av **indices = eval_all(p, &stmt->indices);
  const struct av *value = prove_loaded(p, stmt->mem, stmt->mem->type, indices, stmt->indices.count,
                                        stmt->is_flat, stmt->results.count);
  for (uint32_t i = 0; i < stmt->results.count; i++) {
    int64_t lo, hi;
    value_bounds(p, value, &lo, &hi);
    define(p, stmt->results.at[i], value_is_uniform(value) ? value_uniform(p, value->type, lo, hi) : value,
           NULL);
  }
}

// What an atomic returns differs from thread to thread.
static void run_atomic(struct prover *p, struct node *node) {
  struct ir_stmt *stmt = node->stmt;
  const struct av **indices = eval_all(p, &stmt->indices);
  prove_clean(p, prove_eval(p, stmt->value), "the operand of an atomic");
  for (uint32_t i = 0; i < stmt->indices.count; i++) prove_clean(p, indices[i], "an index");
  if (stmt->mem->space != SPACE_GLOBAL) prove_fault(p, PROOF_LIMIT, NULL, NULL, "atomics of shared memory are not proved");
  for (uint32_t i = 0; i < stmt->results.count; i++) define(p, stmt->results.at[i], opaque(p, stmt->mem->type), NULL);
}

static void run_stmt(struct prover *p, struct node *node) {
  struct ir_stmt *stmt = node->stmt;
  struct node *outer = p->current;
  p->current = node;
  p->work += p->threads;
  if (p->work > MOST_WORK || p->scratch->total > MOST_MEMORY) {
    prove_fault(p, PROOF_LIMIT, NULL, NULL, "loops and threads are too many to prove");
    p->is_stopped = true;
  }
  switch (stmt->kind) {
  case IR_LET:
    p->does_not_wrap = stmt->var->was_index;
    define(p, stmt->var, prove_eval(p, stmt->value), stmt->value);
    p->does_not_wrap = false;
    break;
  case IR_VAR:
  case IR_SET: define(p, stmt->var, prove_eval(p, stmt->value), NULL); break;
  case IR_STORE:
  case IR_STORE_WIDE: run_store(p, node); break;
  case IR_LOAD_WIDE: run_load_wide(p, node); break;
  case IR_FOR: run_for(p, node); break;
  case IR_IF: run_if(p, node); break;
  case IR_BARRIER: prove_barrier(p); break;
  case IR_SYNCWARP: prove_syncwarp(p, stmt->value); break;
  case IR_ATOMIC: run_atomic(p, node); break;
  case IR_COPY: prove_copy(p, stmt); break;
  case IR_COPY_COMMIT: prove_copy_commit(p); break;
  case IR_COPY_WAIT: prove_copy_wait(p, stmt->count); break;
  case IR_FENCE:
  case IR_GRID_WAIT:
  case IR_GRID_READY: break;
  case IR_ALLREDUCE: prove_fault(p, PROOF_LIMIT, NULL, NULL, "a reduction over threads is left"); break;
  }
  p->current = outer;
}

static void run_block(struct prover *p, const struct list *nodes) {
  for (uint32_t i = 0; i < nodes->count && !p->is_stopped; i++) run_stmt(p, nodes->at[i]);
}

// --- The whole ---------------------------------------------------------------------------------------

static bool has_shared(const struct ir_entry *entry) {
  for (uint32_t i = 0; i < entry->memory.count; i++)
    if (list_at(&entry->memory, struct ir_mem, i)->space == SPACE_SHARED) return true;
  return false;
}

bool proof_is_needed(const struct ir_entry *entry) {
  return entry->memory.count > 0 || prove_is_collective(&entry->body);
}

static void begin(struct prover *p) {
  static const struct ir_stmt nothing;
  const struct ir_kernel *kernel = p->kernel;
  struct list parameters = list_copy(p->scratch, &kernel->sizes);
  struct node *start = arena_new(p->scratch, struct node);
  start->stmt = (struct ir_stmt *)&nothing;
  p->current = start;
  list_append(p->scratch, &parameters, &kernel->scalars);
  for (uint32_t i = 0; i < parameters.count; i++) prove_number_var(p, parameters.at[i]);
  prove_new_nodes(p, &p->entry->body, NULL, &start->body);
  p->slots = arena_array(p->scratch, struct slot, p->slot_count + 1);
  for (uint32_t i = 0; i < parameters.count; i++) {
    struct ir_var *var = parameters.at[i];
    int64_t lo, hi;
    type_bounds(var->type, &lo, &hi);
    if (var->kind == VAR_SIZE) lo = 0;
    define(p, var,
           var->constant && ir_is_const(var->constant) ? value_number(p, var->type, var->constant->integer)
                                                       : value_uniform(p, var->type, lo, hi),
           NULL);
  }
  for (uint32_t t = 0; t < p->threads; t++) threads_add(&p->may, t);
  for (uint32_t d = 0; p->is_enumerated && d < 3; d++) {
    const uint32_t *block = p->entry->block;
    int64_t *places = arena_array(p->scratch, int64_t, p->threads);
    for (uint32_t t = 0; t < p->threads; t++)
      places[t] = d == 0 ? t % block[0] : d == 1 ? t / block[0] % block[1] : t / block[0] / block[1];
    p->coordinate[d] = places;
  }
  memory_begin(p);
  if (p->entry->when) prove_assume(p, p->entry->when, true);
  for (uint32_t i = 0; i < p->entry->assumptions.count; i++)
    prove_assume(p, list_at(&p->entry->assumptions, struct ir_requirement, i)->condition, true);
  run_block(p, &start->body);
}

static void collect(struct prover *p) {
  for (uint32_t i = 0; i < p->nodes.count; i++) {
    const struct node *node = p->nodes.at[i];
    if (node->stmt->kind == IR_BARRIER || node->stmt->kind == IR_SYNCWARP) {
      struct proof_barrier *barrier = arena_new(p->arena, struct proof_barrier);
      *barrier = (struct proof_barrier){node->block, node->place, node->is_required};
      list_push(p->arena, &p->proof->barriers, barrier);
    }
    if (!node->is_reached) continue;
    struct proof_collective *collective = arena_new(p->arena, struct proof_collective);
    *collective = (struct proof_collective){node->collective, node->stmt->range, p->warps, node->masks,
                                            node->has_segments};
    list_push(p->arena, &p->proof->collectives, collective);
  }
}

// Whether there are faults, all of them reads of words that perhaps nothing wrote.
static bool are_unwritten(const struct list *faults) {
  for (uint32_t i = 0; i < faults->count; i++)
    if (list_at(faults, struct proof_fault, i)->kind != PROOF_UNWRITTEN) return false;
  return faults->count > 0;
}

bool proof_run(struct arena *arena, const struct ir_kernel *kernel, struct ir_entry *entry, uint32_t limit,
               struct proof *proof) {
  struct arena scratch;
  *proof = (struct proof){0};
  uint64_t threads = (uint64_t)entry->block[0] * entry->block[1] * entry->block[2];
  if (threads == 0 || threads > PROVE_THREADS) {
    struct proof_fault *fault = arena_new(arena, struct proof_fault);
    *fault = (struct proof_fault){.kind = PROOF_LIMIT,
                                  .range = entry->range,
                                  .statement = "block",
                                  .message = "a block has 1 to 1024 threads"};
    list_push(arena, &proof->faults, fault);
    return false;
  }
  struct proof first = {0};
  // A second time without loops as they would run, where they are too long, or where one that did reads what one that is too long wrote perhaps.
  for (int round = 0; round < 2; round++) {
    arena_init(&scratch);
    struct prover *p = arena_new(&scratch, struct prover);
    p->arena = arena;
    p->scratch = &scratch;
    p->kernel = kernel;
    p->entry = entry;
    p->proof = proof;
    p->limit = limit ? limit : DEFAULT_FAULTS;
    p->is_never_exact = round == 1;
    p->is_enumerated = has_shared(entry) || prove_is_collective(&entry->body);
    p->threads = p->is_enumerated ? (uint32_t)threads : 1;
    p->warps = (p->threads + 31) / 32;
    p->sets = (p->threads + 63) / 64;
    begin(p);
    collect(p);
    uint64_t work = proof->work + p->work;
    bool is_too_large = p->work > MOST_WORK || scratch.total > MOST_MEMORY;
    arena_destroy(&scratch);
    bool is_kept = round == 1 && first.faults.count && (is_too_large || proof->faults.count);
    bool goes_on = round == 0 && (is_too_large || are_unwritten(&proof->faults));
    if (goes_on && !is_too_large) first = *proof;
    if (goes_on) *proof = (struct proof){0};
    if (is_kept) *proof = first;
    proof->work = work;
    if (!goes_on) break;
  }
  return proof->faults.count == 0;
}

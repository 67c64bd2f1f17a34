// Shuffles, warp barriers, block barriers: who takes part, and what a shuffle gives to whom.
//
// A mask must name its own lane, only lanes that exist and come, and the same lanes as the masks of those
// that it names. What a lane gets from one outside its mask is poison: harmless until it is used.
#include "passes/prove_engine.h"

#include <string.h>

// --- Who takes part ----------------------------------------------------------------------------------

static uint32_t lanes_of_warp(const struct prover *p, uint32_t warp) {
  uint32_t left = p->threads - warp * 32;
  return left >= 32 ? UINT32_MAX : (1u << left) - 1;
}

static const char *lane_name(struct prover *p, uint32_t warp, uint32_t lanes) {
  return prove_thread_name(p, warp * 32 + (uint32_t)__builtin_ctz(lanes));
}

// A condition around us that may hold for one lane of the mask and not for another.
static bool is_split(struct prover *p, uint32_t warp, uint32_t lane, uint32_t mask) {
  for (uint32_t i = 0; i < p->unknown_count; i++) {
    const struct unknown *u = &p->unknowns[i];
    if (u->is_uniform) continue;
    for (uint32_t other = 0; other < 32; other++) {
      if (!(mask >> other & 1) || other == lane) continue;
      if (!u->source || u->source[warp * 32 + other] != u->source[warp * 32 + lane])
        return prove_fault(p, PROOF_DIVERGENT, NULL, NULL,
                           "%s stands under a condition or in a loop that may differ between %s and lane %u, "
                           "which its mask 0x%08x names",
                           p->current->collective, prove_thread_name(p, warp * 32 + lane), other, mask),
               true;
    }
  }
  return false;
}

// The mask of every thread that is here, checked; false after a fault.
static bool check_masks(struct prover *p, const struct av *mask) {
  struct node *node = p->current;
  if (!node->masks) node->masks = arena_array(p->arena, uint32_t, p->warps);
  node->is_reached = true;
  prove_clean(p, mask, "a mask");
  if (!value_is_known(mask))
    return prove_fault(p, PROOF_MASK, NULL, NULL, "the mask of %s cannot be told from the thread's number",
                       node->collective);
  for (uint32_t warp = 0; warp < p->warps; warp++) {
    uint32_t exist = lanes_of_warp(p, warp), here = threads_warp(&p->may, warp) & exist, seen = 0;
    for (uint32_t lane = 0; lane < 32; lane++) {
      if (!(here >> lane & 1)) continue;
      uint32_t m = (uint32_t)value_at(mask, warp * 32 + lane);
      const char *name = node->collective;
      if (!seen)
        node->masks[warp] = m;
      else if (m != node->masks[warp])
        node->has_segments = true;
      if (seen >> lane & 1) continue; // checked with the first lane that names it
      if (!(m >> lane & 1))
        return prove_fault(p, PROOF_MASK, NULL, NULL, "%s executes %s and is not in its own mask 0x%08x",
                           prove_thread_name(p, warp * 32 + lane), name, m);
      if (m & ~exist)
        return prove_fault(p, PROOF_MASK, NULL, NULL,
                           "the mask 0x%08x of %s names lane %u of warp %u, which the block does not have", m,
                           name, (uint32_t)__builtin_ctz(m & ~exist), warp);
      if (m & ~here)
        return prove_fault(p, PROOF_DIVERGENT, NULL, NULL,
                           "the mask 0x%08x of %s names %s, which does not come here", m, name,
                           lane_name(p, warp, m & ~here));
      for (uint32_t other = 0; other < 32; other++)
        if (m >> other & 1 && (uint32_t)value_at(mask, warp * 32 + other) != m)
          return prove_fault(p, PROOF_MASK, NULL, NULL,
                             "%s has the mask 0x%08x at %s, lane %u of the same mask has 0x%08x",
                             prove_thread_name(p, warp * 32 + lane), m, name, other,
                             (uint32_t)value_at(mask, warp * 32 + other));
      if (is_split(p, warp, lane, m)) return false;
      seen |= m;
    }
  }
  return true;
}

// --- Shuffles ----------------------------------------------------------------------------------------

// The lane that `lane` reads, over a whole warp.
static uint32_t source_lane(enum op op, uint32_t lane, uint32_t operand) {
  operand &= 31;
  switch ((int)op) {
  case OP_SHFL_DOWN: return lane + operand > 31 ? lane : lane + operand;
  case OP_SHFL_XOR: return lane ^ operand;
  default: return operand;
  }
}

// A source that is not known: every lane that it may be has to be in the mask.
static const struct av *shuffle_unknown(struct prover *p, struct ir_expr *e, const struct av *mask,
                                        const struct av *value) {
  int64_t lo, hi;
  struct threads *poison = NULL;
  for (uint32_t t = 0; t < p->threads; t++) {
    if (!threads_has(&p->may, t) || (uint32_t)value_at(mask, t) == UINT32_MAX) continue;
    if (!poison) poison = threads_new(p);
    threads_add(poison, t);
  }
  for (uint32_t t = 0; value->poison && t < p->threads; t++) {
    bool reaches = false;
    for (uint32_t u = t / 32 * 32; u < t / 32 * 32 + 32 && u < p->threads; u++)
      reaches |= threads_has(value->poison, u);
    if (!reaches) continue;
    if (!poison) poison = threads_new(p);
    threads_add(poison, t);
  }
  if (poison) p->has_poison = true;
  value_bounds(p, value, &lo, &hi);
  return value_poisoned(p, value_varying(p, e->type, lo, hi, NULL), poison, p->current);
}

// The value with each thread's taken from another thread, without poison.
static const struct av *moved(struct prover *p, enum op op, const struct av *value, const uint16_t *from) {
  int64_t lo, hi;
  const int64_t *held = value->is_varying ? value->source : value->known;
  bool is_broadcast = op == OP_SHFL_IDX; // those who read one lane have one value
  value_bounds(p, value, &lo, &hi);
  if (value_is_uniform(value)) return value_poisoned(p, value, NULL, NULL);
  if (!held && !is_broadcast) return value_varying(p, value->type, lo, hi, NULL);
  int64_t *numbers = arena_array(p->scratch, int64_t, p->threads);
  for (uint32_t t = 0; t < p->threads; t++) numbers[t] = held ? held[from[t]] : from[t];
  if (value->is_varying) return value_varying(p, value->type, lo, hi, numbers);
  if (value_is_known(value)) return value_known(p, value->type, numbers);
  struct av *permuted = arena_new(p->scratch, struct av);
  *permuted = *value;
  permuted->known = numbers;
  permuted->poison = NULL;
  return permuted;
}

const struct av *prove_shuffle(struct prover *p, struct ir_expr *e) {
  static const char *const names[] = {"shfl_down", "shfl_xor", "shfl_idx"};
  int64_t lo, hi;
  p->current->collective = names[e->op == OP_SHFL_DOWN ? 0 : e->op == OP_SHFL_XOR ? 1 : 2];
  const struct av *mask = prove_eval(p, e->args[0]), *value = prove_eval(p, e->args[1]),
                  *operand = prove_eval(p, e->args[2]);
  bool is_good = check_masks(p, mask);
  prove_clean(p, operand, "the lane or offset of a shuffle");
  value_bounds(p, value, &lo, &hi);
  if (!is_good) return value_varying(p, e->type, lo, hi, NULL);
  if (!value_is_known(operand)) return shuffle_unknown(p, e, mask, value);
  uint16_t from[PROVE_THREADS]; // the thread whose value each thread gets; itself where it is not here
  struct threads *poison = NULL;
  const struct node *origin = value->poison ? value->origin : p->current;
  for (uint32_t t = 0; t < p->threads; t++) {
    from[t] = (uint16_t)t;
    if (!threads_has(&p->may, t)) continue;
    uint32_t m = (uint32_t)value_at(mask, t),
             lane = source_lane(e->op, t % 32, (uint32_t)value_at(operand, t));
    bool is_outside = !(m >> lane & 1);
    if (!is_outside) from[t] = (uint16_t)(t / 32 * 32 + lane);
    if (!is_outside && !(value->poison && threads_has(value->poison, from[t]))) continue;
    if (!poison) poison = threads_new(p);
    threads_add(poison, t);
    if (is_outside) origin = p->current;
  }
  if (poison) p->has_poison = true;
  return value_poisoned(p, moved(p, e->op, value, from), poison, origin);
}

// A reduction of a warp: every lane of a mask gives its value to all of them, so that poison in one is poison in all. Threads hold the
// same where their warps and masks are the same.
const struct av *prove_redux(struct prover *p, struct ir_expr *e) {
  int64_t lo, hi, *source = arena_array(p->scratch, int64_t, p->threads);
  p->current->collective = op_table[e->op].spelling;
  const struct av *mask = prove_eval(p, e->args[0]), *value = prove_eval(p, e->args[1]);
  bool is_good = check_masks(p, mask);
  type_bounds(e->type, &lo, &hi);
  if (!is_good) return value_varying(p, e->type, lo, hi, NULL);
  if (e->op == OP_REDUX_MIN || e->op == OP_REDUX_MAX) value_bounds(p, value, &lo, &hi);
  struct threads *poison = NULL;
  for (uint32_t t = 0; t < p->threads; t++) {
    uint32_t m = threads_has(&p->may, t) ? (uint32_t)value_at(mask, t) : 0, poisoned = value->poison ? threads_warp(value->poison, t / 32) : 0;
    source[t] = (int64_t)(t / 32) << 32 | m; // the masks of a warp name each other's lanes or share none
    if (!m) source[t] = -1 - (int64_t)t;
    if (!(m & poisoned)) continue;
    if (!poison) poison = threads_new(p);
    threads_add(poison, t);
  }
  if (poison) p->has_poison = true;
  return value_poisoned(p, value_varying(p, e->type, lo, hi, source), poison, value->origin);
}

// --- Barriers ----------------------------------------------------------------------------------------

void prove_syncwarp(struct prover *p, struct ir_expr *mask) {
  p->current->collective = "syncwarp";
  const struct av *value = prove_eval(p, mask);
  if (!check_masks(p, value)) return;
  uint32_t *masks = arena_array(p->scratch, uint32_t, p->threads);
  for (uint32_t t = 0; t < p->threads; t++)
    masks[t] = threads_has(&p->may, t) ? (uint32_t)value_at(value, t) : 0;
  memory_syncwarp(p, masks);
}

void prove_barrier(struct prover *p) {
  p->current->collective = "barrier";
  p->current->is_reached = true;
  for (uint32_t t = 0; t < p->threads; t++) {
    if (threads_has(&p->may, t)) continue;
    prove_fault(p, PROOF_DIVERGENT, NULL, NULL, "%s of the block does not come to this barrier",
                prove_thread_name(p, t));
    return;
  }
  for (uint32_t i = 0; i < p->unknown_count; i++) {
    const struct unknown *u = &p->unknowns[i];
    if (u->is_uniform) continue;
    bool same = u->source != NULL;
    for (uint32_t t = 1; same && t < p->threads; t++) same = u->source[t] == u->source[0];
    if (same) continue;
    prove_fault(
        p, PROOF_DIVERGENT, NULL, NULL,
        "this barrier stands under a condition or in a loop that may differ between threads of the block");
    return;
  }
  memory_barrier(p);
}

// Runs a warp: sets of lanes that stand at one instruction, one set at a time, in a seeded order.
#include "runtime/sim/internal.h"

#include <stdio.h>

// Instructions that a set of lanes runs before another ready one gets its turn.
#define SPLIT_SLICE 2048
// Strong reads, after which it is likely that it spins.
#define SPINS 8

// ---- Splits
// ------------------------------------------------------------------------------------------------

static void diverge(struct sim_warp *warp, uint32_t a, uint32_t b) {
  if (!warp->has_diverged) {
    warp->has_diverged = true;
    for (unsigned l = 0; l < SIM_LANES; l++) warp->groups[l] = warp->live | 1u << l;
  }
  SIM_EACH_BIT(a, l) warp->groups[l] &= ~b;
  SIM_EACH_BIT(b, k) warp->groups[k] &= ~a;
}

struct sim_split *sim_split_cut(struct sim_warp *warp, struct sim_split *split, uint32_t mask) {
  struct sim_split *cut = &warp->splits[warp->split_count++];
  *cut = *split;
  cut->mask = mask;
  cut->state = SIM_READY;
  split->mask &= ~mask;
  diverge(warp, split->mask, mask);
  return cut;
}

void sim_split_remove(struct sim_warp *warp, struct sim_split *split) {
  uint32_t index = (uint32_t)(split - warp->splits), last = warp->split_count - 1;
  warp->splits[index] = warp->splits[last];
  warp->split_count = last;
  if (warp->running == last) warp->running = index;
}

void sim_lanes_meet(struct sim_warp *warp, uint32_t mask) {
  if (!warp->has_diverged) return;
  if (mask == warp->live) {
    warp->has_diverged = false;
    return;
  }
  SIM_EACH_BIT(mask, l) warp->groups[l] = mask;
}

// Two ready splits at one place become one. Joins below the meeting point are those of the first.
void sim_splits_merge(struct sim_warp *warp) {
  for (uint32_t i = 0; i < warp->split_count; i++) {
    struct sim_split *a = &warp->splits[i];
    if (a->state != SIM_READY) continue;
    for (uint32_t k = i + 1; k < warp->split_count; k++) {
      struct sim_split *b = &warp->splits[k];
      if (b->state != SIM_READY || b->pc != a->pc || b->frame != a->frame || b->local != a->local) continue;
      a->mask |= b->mask;
      if (b->join_count < a->join_count) {
        memcpy(a->joins, b->joins, sizeof a->joins);
        a->join_count = b->join_count;
      }
      sim_split_remove(warp, b);
      k--;
    }
  }
}

void sim_lanes_exit(struct sim_warp *warp, struct sim_split *split, uint32_t mask) {
  warp->live &= ~mask;
  split->mask &= ~mask;
  if (split->mask == 0) sim_split_remove(warp, split);
  if (warp->split_count == 0) return;
  sim_collective_recheck(warp);
  sim_barrier_recheck(warp);
}

void sim_lane_story(const struct sim_warp *warp, uint32_t lane, char *text, size_t size) {
  if (!(warp->exists >> lane & 1)) {
    snprintf(text, size, "is not of this block");
    return;
  }
  for (uint32_t i = 0; i < warp->split_count; i++) {
    const struct sim_split *split = &warp->splits[i];
    if (!(split->mask >> lane & 1)) continue;
    const char *what = "is";
    if (split->state == SIM_WAIT_COLLECTIVE) what = "waits";
    if (split->state == SIM_WAIT_ALIGNED || split->state == SIM_WAIT_BARRIER) what = "waits at the barrier";
    snprintf(text, size, "%s at line %d", what, warp->module->ops[split->pc].line);
    return;
  }
  snprintf(text, size, "has exited");
}

// ---- Joins
// -------------------------------------------------------------------------------------------------

static uint32_t top_join(const struct sim_split *split) {
  return split->join_count ? split->joins[split->join_count - 1] : SIM_NONE;
}

static void push_join(struct sim_split *split, uint32_t join) {
  if (join == SIM_NONE || top_join(split) == join) return;
  if (split->join_count == SIM_JOINS) {
    memmove(split->joins, split->joins + 1, (SIM_JOINS - 1) * sizeof *split->joins);
    split->join_count--;
  }
  split->joins[split->join_count++] = join;
}

static bool heads_for(const struct sim_split *split, uint32_t join) {
  for (uint32_t i = 0; i < split->join_count; i++) {
    if (split->joins[i] == join) return true;
  }
  return false;
}

// At the join of a divergence: waits for lanes that are on their way, unless they wait for something
// themselves. True when the split must stop here until it is run again.
static bool reach_join(struct sim_warp *warp, struct sim_split *split) {
  uint32_t join = split->pc;
  bool is_alone = true;
  for (uint32_t i = 0; i < warp->split_count; i++) {
    struct sim_split *other = &warp->splits[i];
    if (other != split && other->state == SIM_READY && heads_for(other, join)) is_alone = false;
  }
  if (!is_alone) {
    split->state = SIM_PARKED;
    return true;
  }
  // The last one picks up all who parked here.
  split->join_count--;
  for (uint32_t i = 0; i < warp->split_count; i++) {
    struct sim_split *other = &warp->splits[i];
    if (other == split || other->state != SIM_PARKED || other->pc != join || other->frame != split->frame)
      continue;
    split->mask |= other->mask;
    bool moves = split == &warp->splits[warp->split_count - 1];
    sim_split_remove(warp, other);
    if (moves) split = other;
    i--;
  }
  warp->running = (uint32_t)(split - warp->splits);
  return false;
}

// ---- The loop
// ----------------------------------------------------------------------------------------------

// Sends lanes of a branch both ways. The lanes that go on first are drawn.
static void branch(struct sim_warp *warp, struct sim_split *split, const struct sim_op *op, uint32_t taken) {
  if (taken == split->mask) {
    split->pc = op->target;
    return;
  }
  if (taken == 0) {
    split->pc++;
    return;
  }
  warp->worker->counters.stats.divergent_branches++;
  push_join(split, op->join);
  bool is_taken_first = sim_random(&warp->rng) & 1;
  uint32_t fall = split->pc + 1, later = is_taken_first ? split->mask & ~taken : taken;
  struct sim_split *other = sim_split_cut(warp, split, later);
  other->pc = is_taken_first ? fall : op->target;
  split->pc = is_taken_first ? op->target : fall;
}

// brx.idx: lanes by their index, one after another.
static void branch_index(struct sim_warp *warp, struct sim_split *split, const struct sim_op *op) {
  const int32_t *targets = &warp->module->lists[op->target];
  uint32_t count = (uint32_t)op->immediate, lane = (uint32_t)__builtin_ctz(split->mask), same = 0;
  const sim_u32 *pa = sim_r32(warp, op->a);
  uint32_t index = pa[lane];
  SIM_EACH_BIT(split->mask, l) same |= (uint32_t)(pa[l] == index) << l;
  if (same != split->mask) {
    push_join(split, op->join);
    sim_split_cut(warp, split, split->mask & ~same);
  }
  if (index >= count) {
    struct sim_where at = {.warp = warp, .op = op, .lane = lane};
    sim_find(warp->block->launch, SIM_BAD_CALL, &at, "branch index %u of %u targets", index, count);
    index = 0;
  }
  split->pc = (uint32_t)targets[index];
}

// Lanes in which c | f is not zero, whatever the other of them holds, and is compared with zero.
static uint32_t lanes_not_zero(const struct sim_warp *warp, const struct sim_op *op) {
  uint32_t clean_c = ~*sim_poison(warp, op->c), clean_f = ~*sim_poison(warp, op->f), decided = 0;
  const sim_u32 *b = sim_r32(warp, op->b), *c = sim_r32(warp, op->c), *f = sim_r32(warp, op->f);
  SIM_EACH_BIT(*sim_poison(warp, op->a) & ~*sim_poison(warp, op->b), l) {
    if (b[l] == 0 && ((clean_c >> l & 1 && c[l]) || (clean_f >> l & 1 && f[l]))) decided |= 1u << l;
  }
  return decided;
}

// Lanes whose result a clean operand decides alone, before the operation runs: x and 0, x or ones.
static uint32_t decided_lanes(const struct sim_warp *warp, const struct sim_op *op) {
  if (op->absorbs == SIM_ABSORBS_EITHER) return lanes_not_zero(warp, op);
  uint32_t poison_a = *sim_poison(warp, op->a), poison_b = *sim_poison(warp, op->b), decided = 0;
  if (!(poison_a ^ poison_b)) return 0;
  bool is_and = op->absorbs == SIM_ABSORBS_ZERO;
  for (int side = 0; side < 2; side++) {
    int32_t clean = side ? op->b : op->a;
    uint32_t lanes = side ? poison_a & ~poison_b : poison_b & ~poison_a;
    if (op->type == SIM_PRED) {
      uint32_t value = *sim_pred(warp, clean);
      decided |= lanes & (is_and ? ~value : value);
      continue;
    }
    SIM_EACH_BIT(lanes, l) {
      unsigned bits = sim_type_bits((enum sim_type)op->type);
      uint64_t ones = bits == 64 ? UINT64_MAX : bits == 16 ? UINT16_MAX : UINT32_MAX;
      uint64_t value = (bits == 64 ? sim_r64(warp, clean)[l] : sim_r32(warp, clean)[l]) & ones;
      if (value == (is_and ? 0 : ones)) decided |= 1u << l;
    }
  }
  return decided;
}

static void spread_poison(struct sim_warp *warp, const struct sim_op *op, uint32_t mask,
                          uint32_t guard_poison, uint32_t decided) {
  uint32_t poison = *sim_poison(warp, op->a) | *sim_poison(warp, op->b) | *sim_poison(warp, op->c) |
                    *sim_poison(warp, op->f);
  poison &= ~decided;
  uint32_t *d = sim_poison(warp, op->d), *e = sim_poison(warp, op->e);
  *d = (*d & ~mask) | (poison & mask) | guard_poison;
  *e = (*e & ~mask) | (poison & mask) | guard_poison;
}

static void trap(struct sim_warp *warp, const struct sim_op *op, uint32_t mask) {
  struct sim_where at = {.warp = warp, .op = op, .lane = (uint32_t)__builtin_ctz(mask)};
  sim_find(warp->block->launch, SIM_TRAP, &at, "trap executed");
  warp->block->is_stopped = true;
}

// What follows an instruction that is no plain computation. True when the split may go on.
static bool control(struct sim_warp *warp, struct sim_split *split, const struct sim_op *op,
                    uint32_t active) {
  if (op->kind == SIM_OP_BRANCH) {
    branch(warp, split, op, active);
    return true;
  }
  if (active == 0) {
    split->pc++;
    return true;
  }
  if (op->kind == SIM_OP_EXIT || (op->kind == SIM_OP_RETURN && split->frame == 0)) {
    split->pc++;
    sim_lanes_exit(warp, split, active);
    return false;
  }
  if (op->kind == SIM_OP_TRAP) {
    trap(warp, op, active);
    return false;
  }
  // The rest concerns the whole split: lanes whose guard is false go on by themselves.
  if (active != split->mask) {
    struct sim_split *rest = sim_split_cut(warp, split, split->mask & ~active);
    rest->pc++;
  }
  switch ((enum sim_op_kind)op->kind) {
  case SIM_OP_COLLECTIVE:
    if (!sim_collective_arrive(warp, split, op, active)) return false;
    split->pc++;
    return true;
  case SIM_OP_BARRIER: return sim_barrier_arrive(warp, split, op) && warp->split_count == 1;
  case SIM_OP_CALL: return sim_call(warp, split, op);
  case SIM_OP_RETURN: return sim_return(warp, split);
  case SIM_OP_BRANCH_INDEX: branch_index(warp, split, op); return true;
  case SIM_OP_YIELD: split->pc++; return false;
  case SIM_OP_ALU:
  case SIM_OP_RUN:
  case SIM_OP_BRANCH:
  case SIM_OP_EXIT:
  case SIM_OP_TRAP: break;
  }
  return true;
}

// Runs one split until it waits, parks, ends or has used its steps. True when it spins or sleeps, as far as can be
// seen: others should run.
static bool run_split(struct sim_warp *warp, uint64_t *budget, uint64_t slice) {
  const struct sim_op *ops = warp->module->ops;
  uint64_t *threads = warp->worker->counters.threads, *warps = warp->worker->counters.warps;
  struct sim_split *split = &warp->splits[warp->running];
  warp->base[0] = warp->file + split->frame;
  warp->frame_local = split->local;
  uint64_t steps = *budget < slice ? *budget : slice, start = steps, strong = warp->worker->strong;
  bool is_spinning = false;
  while (steps > 0 && !is_spinning) {
    uint32_t pc = split->pc;
    if (split->join_count && pc == split->joins[split->join_count - 1]) {
      if (reach_join(warp, split)) break;
      split = &warp->splits[warp->running];
      continue;
    }
    const struct sim_op *op = &ops[pc];
    uint32_t mask = split->mask, guard_poison = 0;
    steps--;
    warp->clock++;
    if (op->guard != SIM_NO_GUARD) {
      uint32_t truth = *sim_pred(warp, op->guard);
      guard_poison = *sim_poison(warp, op->guard) & mask;
      if (guard_poison && op->kind != SIM_OP_ALU) {
        sim_find_poison(warp, op, guard_poison,
                        op->kind == SIM_OP_BRANCH ? "a branch condition" : "a predicate");
      }
      mask &= op->guard_is_negated ? ~truth : truth;
    }
    warps[pc]++;
    threads[pc] += sim_popcount(op->kind == SIM_OP_BRANCH ? split->mask : mask);
    if (op->kind == SIM_OP_ALU) {
      uint32_t decided = op->absorbs ? decided_lanes(warp, op) : 0;
      if (mask) op->run(warp, op, mask);
      spread_poison(warp, op, mask, guard_poison, decided);
      split->pc = pc + 1;
    } else if (op->kind == SIM_OP_RUN) {
      if (mask) op->run(warp, op, mask);
      split->pc = pc + 1;
      is_spinning = warp->worker->strong - strong >= SPINS;
    } else {
      is_spinning = op->kind == SIM_OP_YIELD;
      if (!control(warp, split, op, mask)) break;
      split = &warp->splits[warp->running];
      warp->base[0] = warp->file + split->frame;
      warp->frame_local = split->local;
    }
  }
  *budget -= start - steps;
  if (steps == 0 || is_spinning) {
    // Others may be what these lanes spin for: no one waits at a join any longer.
    for (uint32_t i = 0; i < warp->split_count; i++) {
      struct sim_split *parked = &warp->splits[i];
      if (parked->state != SIM_PARKED) continue;
      parked->state = SIM_READY;
      parked->join_count--;
    }
  }
  return is_spinning;
}

// Draws a ready split; where there is none, the parked ones become ready. False when none can run.
static bool choose(struct sim_warp *warp) {
  for (int pass = 0; pass < 2; pass++) {
    uint32_t ready = 0;
    for (uint32_t i = 0; i < warp->split_count; i++) ready += warp->splits[i].state == SIM_READY;
    if (ready > 0) {
      uint32_t drawn = ready == 1 ? 0 : (uint32_t)(sim_random(&warp->rng) % ready);
      for (uint32_t i = 0; i < warp->split_count; i++) {
        if (warp->splits[i].state != SIM_READY || drawn-- > 0) continue;
        warp->running = i;
        return true;
      }
    }
    bool is_parked = false;
    for (uint32_t i = 0; i < warp->split_count; i++) {
      if (warp->splits[i].state != SIM_PARKED) continue;
      warp->splits[i].state = SIM_READY;
      warp->splits[i].join_count--;
      is_parked = true;
    }
    if (!is_parked) return false;
    sim_splits_merge(warp);
  }
  return false;
}

bool sim_warp_run(struct sim_warp *warp, uint64_t *budget) {
  warp->is_spinning = false;
  for (uint32_t spins = 0; *budget > 0 && !warp->block->is_stopped;) {
    if (!choose(warp)) return false;
    spins = run_split(warp, budget, warp->split_count > 1 ? SPLIT_SLICE : UINT64_MAX) ? spins + 1 : 0;
    warp->is_spinning = spins > warp->split_count;
    if (warp->is_spinning) break;
  }
  return true;
}

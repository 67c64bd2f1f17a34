// Block barriers: arrival by threads, opening, and what to say of those that never open.
#include "runtime/sim/internal.h"

#include <stdio.h>

static void find(const struct sim_warp *warp, const struct sim_op *op, uint32_t lane, enum sim_kind kind,
                 const char *text) {
  struct sim_where at = {.warp = warp, .op = op, .lane = lane};
  sim_find(warp->block->launch, kind, &at, "%s", text);
}

static uint32_t live_threads(const struct sim_block *block) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < block->warp_count; i++) count += sim_popcount(block->warps[i].live);
  return count;
}

static bool is_waiting(const struct sim_split *split, uint32_t number) {
  return split->state == SIM_WAIT_BARRIER && split->barrier == number;
}

// Gives a lane's result of a reduction.
static void store_result(struct sim_warp *warp, const struct sim_op *op, uint32_t mask,
                         const struct sim_barrier *barrier) {
  if (op->sub == SIM_BAR_SYNC || op->sub == SIM_BAR_ARRIVE) return;
  if (op->sub == SIM_BAR_POPC) {
    sim_u32 *pd = sim_r32(warp, op->d);
    SIM_EACH_BIT(mask, l) pd[l] = barrier->ones;
  } else {
    bool truth = op->sub == SIM_BAR_AND ? barrier->ones == barrier->voters : barrier->ones > 0;
    sim_u32 *pd = sim_pred(warp, op->d);
    *pd = (*pd & ~mask) | (truth ? mask : 0);
  }
  *sim_poison(warp, op->d) &= ~mask;
}

// Lets all who wait at a barrier go on. `running` is the split of `warp` that has just arrived.
static void open_barrier(struct sim_block *block, uint32_t number) {
  struct sim_barrier *barrier = &block->barriers[number];
  for (uint32_t w = 0; w < block->warp_count; w++) {
    struct sim_warp *warp = &block->warps[w];
    uint32_t lanes = 0;
    for (uint32_t i = 0; i < warp->split_count; i++) {
      struct sim_split *split = &warp->splits[i];
      if (!is_waiting(split, number)) continue;
      unsigned char *saved = warp->base[0];
      warp->base[0] = warp->file + split->frame;
      store_result(warp, &warp->module->ops[split->pc], split->mask, barrier);
      warp->base[0] = saved;
      split->state = SIM_READY;
      split->pc++;
      lanes |= split->mask;
    }
    if (!lanes) continue;
    sim_clock_leave(warp, barrier);
    sim_lanes_meet(warp, lanes);
    sim_splits_merge(warp);
  }
  sim_clock_close(block, barrier);
  barrier->arrived = barrier->expected = barrier->ones = barrier->voters = 0;
}

// Threads that the manual counts for a warp's arrival where a number of threads is given: whole warps.
static uint32_t arrival(const struct sim_warp *warp, uint32_t mask, bool is_counted) {
  uint32_t count = sim_popcount(mask);
  if (is_counted && (mask >> (31 - __builtin_clz(warp->exists)) & 1))
    count += SIM_LANES - sim_popcount(warp->exists);
  return count;
}

// The split's lanes arrive; true when the barrier opened or need not be waited for.
static bool arrive(struct sim_warp *warp, struct sim_split *split, const struct sim_op *op) {
  struct sim_block *block = warp->block;
  uint32_t mask = split->mask, lane = (uint32_t)__builtin_ctz(mask);
  uint32_t number = sim_r32(warp, op->a)[lane], count = op->has_result ? sim_r32(warp, op->b)[lane] : 0;
  char text[160];
  if (number >= SIM_BARRIERS || (op->has_result && (count == 0 || count % SIM_LANES != 0))) {
    if (number >= SIM_BARRIERS) {
      snprintf(text, sizeof text, "barrier number %u is over 15", number);
    } else {
      snprintf(text, sizeof text, "barrier %u for %u threads: not a positive multiple of 32", number, count);
    }
    find(warp, op, lane, SIM_DIVERGENT_BARRIER, text);
    split->pc++;
    return true;
  }
  struct sim_barrier *barrier = &block->barriers[number];
  bool is_whole = !op->has_result;
  if (barrier->arrived == 0) {
    barrier->is_whole = is_whole;
    barrier->expected = is_whole ? block->launch->threads : count;
    barrier->pc = split->pc;
    barrier->line = op->line;
  } else if (is_whole && barrier->is_whole && barrier->pc != split->pc) {
    snprintf(text, sizeof text, "threads of the block wait at another barrier, at line %d", barrier->line);
    find(warp, op, lane, SIM_DIVERGENT_BARRIER, text);
  } else if (is_whole != barrier->is_whole || (!is_whole && barrier->expected != count)) {
    snprintf(text, sizeof text, "other threads wait at barrier %u for another number of threads, at line %d",
             number, barrier->line);
    find(warp, op, lane, SIM_DIVERGENT_BARRIER, text);
  }
  barrier->arrived += arrival(warp, mask, !barrier->is_whole);
  if (op->sub >= SIM_BAR_POPC) {
    uint32_t poison = *sim_poison(warp, op->c) & mask;
    if (poison) sim_find_poison(warp, op, poison, "the operand of a barrier");
    uint32_t truth = *sim_pred(warp, op->c) ^ (op->c_is_negated ? SIM_FULL : 0);
    barrier->ones += sim_popcount(truth & mask);
    barrier->voters += sim_popcount(mask);
  }
  warp->worker->counters.stats.barriers++;
  sim_clock_arrive(warp, barrier);
  if (op->sub == SIM_BAR_ARRIVE) {
    split->pc++;
    split->state = SIM_READY;
    if (barrier->arrived >= barrier->expected) open_barrier(block, number);
    return true;
  }
  split->state = SIM_WAIT_BARRIER;
  split->barrier = (uint8_t)number;
  if (barrier->arrived < barrier->expected) return false;
  open_barrier(block, number);
  return true;
}

// Lets the lanes of a warp that wait at an .aligned barrier arrive, once all live lanes do.
static bool arrive_aligned(struct sim_warp *warp, uint32_t pc, uint32_t frame, bool is_forced) {
  uint32_t lanes = 0;
  for (uint32_t i = 0; i < warp->split_count; i++) {
    const struct sim_split *split = &warp->splits[i];
    if (split->state == SIM_WAIT_ALIGNED && split->pc == pc && split->frame == frame) lanes |= split->mask;
  }
  if (lanes != warp->live && !is_forced) return false;
  struct sim_split *first = NULL;
  for (uint32_t i = 0; i < warp->split_count; i++) {
    struct sim_split *split = &warp->splits[i];
    if (split->state != SIM_WAIT_ALIGNED || split->pc != pc || split->frame != frame) continue;
    if (!first) {
      first = split;
      continue;
    }
    first->mask |= split->mask;
    sim_split_remove(warp, split);
    i--;
  }
  first->state = SIM_READY;
  unsigned char *saved = warp->base[0];
  warp->base[0] = warp->file + frame;
  sim_lanes_meet(warp, lanes);
  arrive(warp, first, &warp->module->ops[pc]);
  warp->base[0] = saved;
  return true;
}

// Lanes that name another barrier or number of threads than the first go apart.
static void cut_unequal(struct sim_warp *warp, struct sim_split *split, const struct sim_op *op) {
  uint32_t lane = (uint32_t)__builtin_ctz(split->mask), same = 0;
  const sim_u32 *pa = sim_r32(warp, op->a), *pb = sim_r32(warp, op->b);
  SIM_EACH_BIT(split->mask, l)
  same |= (uint32_t)(pa[l] == pa[lane] && (!op->has_result || pb[l] == pb[lane])) << l;
  if (split->mask != same) sim_split_cut(warp, split, split->mask & ~same);
}

bool sim_barrier_arrive(struct sim_warp *warp, struct sim_split *split, const struct sim_op *op) {
  uint32_t poison = (*sim_poison(warp, op->a) | *sim_poison(warp, op->b)) & split->mask;
  if (poison) sim_find_poison(warp, op, poison, "the operand of a barrier");
  cut_unequal(warp, split, op);
  if (!op->is_aligned || split->mask == warp->live) return arrive(warp, split, op);
  split->state = SIM_WAIT_ALIGNED;
  arrive_aligned(warp, split->pc, split->frame, false);
  return false;
}

void sim_barrier_recheck(struct sim_warp *warp) {
  for (uint32_t i = 0; i < warp->split_count; i++) {
    const struct sim_split *split = &warp->splits[i];
    if (split->state != SIM_WAIT_ALIGNED) continue;
    if (arrive_aligned(warp, split->pc, split->frame, false)) return;
  }
}

// An .aligned barrier that only part of a warp has come to.
static bool force_aligned(struct sim_block *block) {
  for (uint32_t w = 0; w < block->warp_count; w++) {
    struct sim_warp *warp = &block->warps[w];
    for (uint32_t i = 0; i < warp->split_count; i++) {
      const struct sim_split *split = &warp->splits[i];
      if (split->state != SIM_WAIT_ALIGNED) continue;
      uint32_t away = warp->live & ~split->mask;
      for (uint32_t k = 0; k < warp->split_count; k++) {
        if (warp->splits[k].state == SIM_WAIT_ALIGNED && warp->splits[k].pc == split->pc)
          away &= ~warp->splits[k].mask;
      }
      char story[96] = "waits", text[200];
      uint32_t other = away ? (uint32_t)__builtin_ctz(away) : 0;
      if (away) sim_lane_story(warp, other, story, sizeof story);
      snprintf(text, sizeof text, "only part of the warp comes to this barrier: lane %u %s", other, story);
      find(warp, &warp->module->ops[split->pc], (uint32_t)__builtin_ctz(split->mask), SIM_DIVERGENT_BARRIER,
           text);
      return arrive_aligned(warp, split->pc, split->frame, true);
    }
  }
  return false;
}

// A thread that does not wait at the barrier, as a sentence.
static void missing_story(const struct sim_block *block, uint32_t number, char *text, size_t size) {
  for (uint32_t pass = 0; pass < 2; pass++) {
    for (uint32_t w = 0; w < block->warp_count; w++) {
      const struct sim_warp *warp = &block->warps[w];
      uint32_t here = 0;
      for (uint32_t i = 0; i < warp->split_count; i++) {
        if (is_waiting(&warp->splits[i], number)) here |= warp->splits[i].mask;
      }
      uint32_t away = (pass == 0 ? warp->live : warp->exists) & ~here;
      if (!away) continue;
      char story[96];
      uint32_t lane = (uint32_t)__builtin_ctz(away);
      sim_lane_story(warp, lane, story, sizeof story);
      snprintf(text, size, "thread %u %s", w * SIM_LANES + lane, story);
      return;
    }
  }
  snprintf(text, size, "too few threads come");
}

bool sim_barrier_force(struct sim_block *block) {
  if (force_aligned(block)) return true;
  for (uint32_t number = 0; number < SIM_BARRIERS; number++) {
    struct sim_barrier *barrier = &block->barriers[number];
    struct sim_warp *warp = NULL;
    uint32_t lane = 0;
    for (uint32_t w = 0; w < block->warp_count && !warp; w++) {
      for (uint32_t i = 0; i < block->warps[w].split_count; i++) {
        if (!is_waiting(&block->warps[w].splits[i], number)) continue;
        warp = &block->warps[w];
        lane = (uint32_t)__builtin_ctz(warp->splits[i].mask);
        break;
      }
    }
    if (!warp) continue;
    char story[128], text[240];
    missing_story(block, number, story, sizeof story);
    bool is_divergent = barrier->is_whole;
    snprintf(text, sizeof text, "%u of %u threads wait at barrier %u; %s", barrier->arrived,
             barrier->expected, number, story);
    const struct sim_op *op = &warp->module->ops[barrier->pc];
    for (uint32_t i = 0; i < warp->split_count; i++) {
      if (is_waiting(&warp->splits[i], number)) op = &warp->module->ops[warp->splits[i].pc];
    }
    find(warp, op, lane, is_divergent ? SIM_DIVERGENT_BARRIER : SIM_DEADLOCK, text);
    if (!is_divergent && live_threads(block) > 0) {
      block->is_stopped = true;
      return true;
    }
    open_barrier(block, number);
    return true;
  }
  return false;
}

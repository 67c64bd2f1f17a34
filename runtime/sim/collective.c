// Warp instructions wait here until the lanes that their masks name have come.
#include "runtime/sim/collective.h"

#include <stdio.h>

static bool is_warp_barrier(const struct sim_op *op) {
  return op->sub == SIM_WARP_BARRIER;
}

// Whether the lanes of a waiting split may meet those at `pc` in `frame`.
static bool may_meet(const struct sim_warp *warp, const struct sim_split *split, uint32_t pc,
                     uint32_t frame) {
  if (split->state != SIM_WAIT_COLLECTIVE) return false;
  const struct sim_op *ops = warp->module->ops;
  if (is_warp_barrier(&ops[pc])) return is_warp_barrier(&ops[split->pc]);
  return split->pc == pc && split->frame == frame;
}

static void find_lane(struct sim_warp *warp, const struct sim_op *op, enum sim_kind kind, uint32_t lane,
                      const char *text, uint32_t number, const char *story) {
  struct sim_where at = {.warp = warp, .op = op, .lane = lane};
  sim_find(warp->block->launch, kind, &at, text, warp->masks[lane], number, story);
}

// What the masks of the lanes that run an instruction together say of each other.
static void check_masks(struct sim_warp *warp, const struct sim_op *op, uint32_t lanes) {
  SIM_EACH_BIT(lanes, l) {
    uint32_t mask = warp->masks[l];
    if (!(mask >> l & 1)) {
      find_lane(warp, op, SIM_OUTSIDE_MASK, l, "mask 0x%08x does not name lane %u, which executes it%s", l,
                "");
    }
    uint32_t absent = mask & ~warp->exists, exited = mask & warp->exists & ~warp->live;
    if (absent) {
      find_lane(warp, op, SIM_ABSENT_LANE, l, "mask 0x%08x names lane %u, which the block does not have%s",
                (uint32_t)__builtin_ctz(absent), "");
    }
    if (exited) {
      find_lane(warp, op, SIM_EXITED_LANE, l, "mask 0x%08x names lane %u, which has exited%s",
                (uint32_t)__builtin_ctz(exited), "");
    }
  }
}

static void check_unequal(struct sim_warp *warp, const struct sim_op *op, uint32_t lanes) {
  SIM_EACH_BIT(lanes, l) {
    uint32_t named = warp->masks[l] & lanes & ~(1u << l);
    SIM_EACH_BIT(named, k) {
      if (warp->masks[k] == warp->masks[l] || !(warp->masks[k] >> l & 1)) continue;
      struct sim_where at = {.warp = warp, .op = op, .lane = l};
      sim_find(warp->block->launch, SIM_UNEQUAL_MASKS, &at,
               "mask 0x%08x, but lane %u, which it names, gives 0x%08x", warp->masks[l], k, warp->masks[k]);
      return;
    }
  }
}

static void execute(struct sim_warp *warp, const struct sim_op *op, uint32_t lanes) {
  if (is_warp_barrier(op)) {
    warp->worker->counters.stats.warp_barriers++;
  } else {
    op->run(warp, op, lanes);
  }
  sim_clock_warp_sync(warp, lanes);
  sim_lanes_meet(warp, lanes);
}

// Runs the instruction at `pc` for `lanes`, who wait, and lets them go on together.
static void release(struct sim_warp *warp, uint32_t pc, uint32_t frame, uint32_t lanes) {
  const struct sim_op *op = &warp->module->ops[pc];
  unsigned char *saved = warp->base[0];
  uint32_t saved_local = warp->frame_local;
  for (uint32_t i = 0; i < warp->split_count; i++) {
    struct sim_split *split = &warp->splits[i];
    if (!may_meet(warp, split, pc, frame) || !(split->mask & lanes)) continue;
    if (split->mask & ~lanes) {
      struct sim_split *rest = sim_split_cut(warp, split, split->mask & ~lanes);
      rest->state = SIM_WAIT_COLLECTIVE;
      split = &warp->splits[i];
    }
    split->state = SIM_READY;
    split->pc++;
  }
  warp->base[0] = warp->file + frame;
  execute(warp, op, lanes);
  warp->base[0] = saved;
  warp->frame_local = saved_local;
  sim_splits_merge(warp);
}

static uint32_t waiting_at(const struct sim_warp *warp, uint32_t pc, uint32_t frame) {
  uint32_t lanes = 0;
  for (uint32_t i = 0; i < warp->split_count; i++) {
    if (may_meet(warp, &warp->splits[i], pc, frame)) lanes |= warp->splits[i].mask;
  }
  return lanes;
}

// Runs the instruction at `pc` for the first set of lanes with equal masks that is complete.
static bool try_release(struct sim_warp *warp, uint32_t pc, uint32_t frame) {
  uint32_t waiting = waiting_at(warp, pc, frame), rest = waiting;
  while (rest) {
    uint32_t mask = warp->masks[__builtin_ctz(rest)], same = 0;
    SIM_EACH_BIT(rest, l) same |= (uint32_t)(warp->masks[l] == mask) << l;
    if ((mask & warp->live & ~same) == 0) {
      const struct sim_op *op = &warp->module->ops[pc];
      check_unequal(warp, op, waiting);
      check_masks(warp, op, same);
      release(warp, pc, frame, same);
      return true;
    }
    rest &= ~same;
  }
  return false;
}

bool sim_collective_arrive(struct sim_warp *warp, struct sim_split *split, const struct sim_op *op,
                           uint32_t mask) {
  const sim_u32 *masks = sim_r32(warp, op->f);
  uint32_t first = masks[__builtin_ctz(mask)], differs = 0;
  SIM_EACH(mask, l, {
    warp->masks[l] = masks[l];
    differs |= masks[l] ^ first;
  });
  uint32_t poison = *sim_poison(warp, op->f) & mask;
  if (poison) sim_find_poison(warp, op, poison, "the mask of a warp instruction");
  if (differs == 0 && first == mask) {
    execute(warp, op, mask);
    return true;
  }
  uint32_t pc = split->pc, frame = split->frame;
  split->state = SIM_WAIT_COLLECTIVE;
  while (try_release(warp, pc, frame)) {
  }
  return false;
}

void sim_collective_recheck(struct sim_warp *warp) {
  for (uint32_t i = 0; i < warp->split_count; i++) {
    if (warp->splits[i].state != SIM_WAIT_COLLECTIVE) continue;
    if (try_release(warp, warp->splits[i].pc, warp->splits[i].frame)) i = (uint32_t)-1;
  }
}

bool sim_collective_force(struct sim_warp *warp) {
  for (uint32_t i = 0; i < warp->split_count; i++) {
    struct sim_split *split = &warp->splits[i];
    if (split->state != SIM_WAIT_COLLECTIVE) continue;
    uint32_t pc = split->pc, frame = split->frame, lanes = waiting_at(warp, pc, frame);
    const struct sim_op *op = &warp->module->ops[pc];
    bool is_unequal = false;
    SIM_EACH_BIT(lanes, l) {
      SIM_EACH_BIT(warp->masks[l] & lanes, k)
      is_unequal |= warp->masks[k] != warp->masks[l] && warp->masks[k] >> l & 1;
    }
    check_unequal(warp, op, lanes);
    if (!is_unequal) {
      uint32_t lane = (uint32_t)__builtin_ctz(split->mask), missing = warp->masks[lane] & warp->live & ~lanes;
      if (!missing) missing = warp->masks[lane] & warp->live & ~split->mask;
      char story[96] = "";
      uint32_t number = missing ? (uint32_t)__builtin_ctz(missing) : lane;
      sim_lane_story(warp, number, story, sizeof story);
      find_lane(warp, op, SIM_MISSING_LANE, lane, "mask 0x%08x names lane %u, which never comes: it %s",
                number, story);
    }
    check_masks(warp, op, lanes);
    release(warp, pc, frame, lanes);
    return true;
  }
  return false;
}

// Happens-before among the threads of a block, and with other blocks through the logs of sync.c.
#include "runtime/sim/sync.h"

#include <stdlib.h>

static bool checks_races(const struct sim_warp *warp) {
  return (warp->checks & (SIM_CHECK(SIM_RACE_SHARED) | SIM_CHECK(SIM_RACE_GLOBAL))) != 0;
}

// Whether `lane` of `warp` knows lanes of a warp of its own block by barriers and warp synchronisation.
static bool knows(const struct sim_warp *warp, uint32_t lane, uint32_t other, uint32_t lanes,
                  uint32_t epoch) {
  if (other != warp->index) return epoch <= warp->rows[other];
  lanes &= ~(1u << lane);
  if (lanes == 0 || epoch <= warp->known) return true;
  if (!warp->has_pairs) return false;
  SIM_EACH_BIT(lanes, l) {
    if (epoch > warp->pairs[lane][l]) return false;
  }
  return true;
}

static bool item_is_known(const struct sim_warp *warp, uint32_t lane, const struct sim_item *item) {
  if (item->warp == warp->index && item->mask >> lane & 1) return true;
  // Any of the lanes that learnt it will do.
  SIM_EACH_BIT(item->mask, l) {
    if (knows(warp, lane, item->warp, 1u << l, item->epoch)) return true;
  }
  return false;
}

bool sim_ordered(const struct sim_warp *warp, uint32_t lane, uint32_t id, uint32_t lanes, uint32_t epoch) {
  const struct sim_block *block = warp->block;
  uint32_t other = id - warp->first_id;
  bool is_same_block = other < block->warp_count;
  if (is_same_block && knows(warp, lane, other, lanes, epoch)) return true;
  if (block->item_count == 0) return false;
  uint64_t from = block->linear;
  if (!is_same_block) {
    from = (id - 1) / block->warp_count;
    other = (id - 1) % block->warp_count;
  } else if (other == warp->index) {
    lanes &= ~(1u << lane);
  }
  for (size_t i = block->item_count; i-- > 0;) {
    const struct sim_item *item = &block->items[i];
    if (item->is_pending || (item->scope == SIM_SCOPE_CTA && !is_same_block)) continue;
    if (!item_is_known(warp, lane, item)) continue;
    if (sim_log_covers(item->log, item->length, block->linear, from, other, lanes, epoch)) return true;
  }
  return false;
}

static void next_epoch(struct sim_warp *warp) {
  if (warp->epoch < SIM_EPOCH_LIMIT) warp->epoch++;
}

static void set_released(struct sim_warp *warp, uint32_t lane, struct sim_clock *clock) {
  struct sim_clock *old = warp->released[lane];
  if (old == clock) return;
  if (clock) clock->owners++;
  warp->released[lane] = clock;
  sim_clock_free(old);
}

void sim_clock_start(struct sim_warp *warp) {
  warp->epoch = 1;
  warp->known = 0;
  warp->has_pairs = false;
  memset(warp->rows, 0, sizeof warp->rows);
  if (warp->has_released) {
    for (uint32_t l = 0; l < SIM_LANES; l++) set_released(warp, l, NULL);
  }
  warp->has_released = false;
}

void sim_clock_end(struct sim_block *block) {
  for (uint32_t w = 0; w < block->warp_count; w++) sim_clock_start(&block->warps[w]);
  for (uint32_t i = 0; i < SIM_BARRIERS; i++) {
    sim_clock_free(block->barriers[i].released);
    block->barriers[i].released = NULL;
  }
  block->item_count = 0;
}

// ---- Clocks
// ------------------------------------------------------------------------------------------------

static bool add_part(struct sim_clock *clock, uint32_t warp, uint32_t mask, uint32_t epoch, uint32_t exists) {
  if (mask == 0 || epoch <= clock->rows[warp]) return true;
  if ((mask & exists) == exists) {
    clock->rows[warp] = epoch;
    return true;
  }
  for (size_t i = 0; i < clock->part_count; i++) {
    struct sim_part *part = &clock->parts[i];
    if (part->warp != warp || part->epoch != epoch) continue;
    part->mask |= mask;
    if ((part->mask & exists) == exists) {
      clock->rows[warp] = epoch;
      *part = clock->parts[--clock->part_count];
    }
    return true;
  }
  struct sim_part *grown = realloc(clock->parts, (clock->part_count + 1) * sizeof *grown);
  if (!grown) return false;
  clock->parts = grown;
  clock->parts[clock->part_count++] = (struct sim_part){warp, mask, epoch};
  return true;
}

static void add_reference(struct sim_clock *clock, struct sim_log *log, size_t length) {
  for (size_t i = 0; i < clock->reference_count; i++) {
    if (clock->references[i].log != log) continue;
    if (clock->references[i].length < length) clock->references[i].length = length;
    return;
  }
  struct sim_reference *grown = realloc(clock->references, (clock->reference_count + 1) * sizeof *grown);
  if (!grown) return;
  clock->references = grown;
  clock->references[clock->reference_count++] = (struct sim_reference){log, length};
}

// What lanes `mask` of a warp know now, where they know the same but for themselves; each lane's own accesses
// are added when it publishes the clock.
static struct sim_clock *clock_now(const struct sim_warp *warp, uint32_t mask, enum sim_scope scope) {
  struct sim_block *block = warp->block;
  struct sim_clock *clock = calloc(1, sizeof *clock);
  if (!clock) return NULL;
  clock->owners = 1;
  clock->scope = (uint8_t)scope;
  clock->block = block->linear;
  clock->warps = block->warp_count;
  memcpy(clock->rows, warp->rows, sizeof clock->rows);
  clock->rows[warp->index] = warp->known;
  uint32_t lane = (uint32_t)__builtin_ctz(mask);
  if (warp->has_pairs) {
    SIM_EACH_BIT(warp->exists & ~(1u << lane), l) {
      add_part(clock, warp->index, 1u << l, warp->pairs[lane][l], warp->exists);
    }
  }
  for (size_t i = 0; i < block->item_count; i++) {
    const struct sim_item *item = &block->items[i];
    if (!item->is_pending && item_is_known(warp, lane, item)) add_reference(clock, item->log, item->length);
  }
  return clock;
}

static void add_item(struct sim_block *block, struct sim_item item) {
  for (size_t i = block->item_count; i-- > 0;) {
    struct sim_item *old = &block->items[i];
    if (old->log != item.log || old->length != item.length || old->is_pending != item.is_pending ||
        old->warp != item.warp || old->scope != item.scope) {
      continue;
    }
    if (old->epoch == item.epoch) {
      old->mask |= item.mask;
      return;
    }
    if ((item.mask & ~old->mask) == 0) return; // known since earlier
  }
  if (block->item_count == block->item_room) {
    size_t room = block->item_room ? 2 * block->item_room : 8;
    struct sim_item *grown = realloc(block->items, room * sizeof *grown);
    if (!grown) return;
    block->items = grown;
    block->item_room = room;
  }
  block->items[block->item_count++] = item;
}

void sim_clock_fence(struct sim_warp *warp, uint32_t mask, enum sim_scope scope) {
  if (!checks_races(warp)) return;
  struct sim_block *block = warp->block;
  // Acquire: what was read before the fence becomes known.
  for (size_t i = 0, count = block->item_count; i < count; i++) {
    struct sim_item item = block->items[i];
    if (!item.is_pending) continue;
    uint32_t lanes = 0;
    SIM_EACH_BIT(mask, l) lanes |= (uint32_t)item_is_known(warp, l, &item) << l;
    if (!lanes) continue;
    uint8_t narrower = item.scope < scope ? item.scope : (uint8_t)scope;
    add_item(block,
             (struct sim_item){item.log, item.length, warp->index, lanes, warp->epoch, false, narrower});
  }
  // Release: what the lanes know now is what later strong writes publish.
  warp->has_released = true;
  if (!warp->has_pairs && block->item_count == 0) {
    struct sim_clock *clock = clock_now(warp, mask, scope);
    SIM_EACH_BIT(mask, l) {
      set_released(warp, l, clock);
      warp->released_epoch[l] = warp->epoch;
    }
    sim_clock_free(clock);
    return;
  }
  SIM_EACH_BIT(mask, k) {
    struct sim_clock *clock = clock_now(warp, 1u << k, scope);
    set_released(warp, k, clock);
    warp->released_epoch[k] = warp->epoch;
    sim_clock_free(clock);
  }
}

// ---- Synchronisation
// ---------------------------------------------------------------------------------------

// Adds what lanes of a warp have fenced to a joint clock, made on first use.
static void join_released(struct sim_warp *warp, uint32_t mask, struct sim_clock **joint) {
  SIM_EACH_BIT(mask, l) {
    const struct sim_clock *clock = warp->released[l];
    if (!clock) continue;
    if (!*joint) {
      *joint = calloc(1, sizeof **joint);
      if (!*joint) return;
      (*joint)->owners = 1;
      (*joint)->scope = clock->scope;
      (*joint)->block = clock->block;
      (*joint)->warps = clock->warps;
    }
    struct sim_clock *out = *joint;
    if (clock->scope > out->scope) out->scope = clock->scope;
    for (uint32_t v = 0; v < out->warps; v++) {
      if (clock->rows[v] > out->rows[v]) out->rows[v] = clock->rows[v];
    }
    for (size_t i = 0; i < clock->part_count; i++) {
      const struct sim_part *part = &clock->parts[i];
      add_part(out, part->warp, part->mask, part->epoch, warp->block->warps[part->warp].exists);
    }
    for (size_t i = 0; i < clock->reference_count; i++) {
      add_reference(out, clock->references[i].log, clock->references[i].length);
    }
    add_part(out, warp->index, 1u << l, warp->released_epoch[l], warp->exists);
  }
}

static void take_released(struct sim_warp *warp, uint32_t mask, struct sim_clock *joint) {
  if (!joint) return;
  warp->has_released = true;
  SIM_EACH_BIT(mask, l) {
    set_released(warp, l, joint);
    warp->released_epoch[l] = 0;
  }
}

void sim_clock_warp_sync(struct sim_warp *warp, uint32_t mask) {
  if (!checks_races(warp)) return;
  if ((mask & warp->exists) == warp->exists) {
    warp->known = warp->epoch;
    warp->has_pairs = false;
  } else {
    if (!warp->pairs) warp->pairs = calloc(SIM_LANES, sizeof *warp->pairs);
    if (!warp->pairs) return;
    if (!warp->has_pairs) memset(warp->pairs, 0, SIM_LANES * sizeof *warp->pairs);
    warp->has_pairs = true;
    uint32_t joint[SIM_LANES] = {0};
    SIM_EACH_BIT(mask, l) {
      for (uint32_t k = 0; k < SIM_LANES; k++) {
        if (warp->pairs[l][k] > joint[k]) joint[k] = warp->pairs[l][k];
      }
    }
    SIM_EACH_BIT(mask, b) joint[b] = warp->epoch;
    SIM_EACH_BIT(mask, a) memcpy(warp->pairs[a], joint, sizeof joint);
  }
  if (warp->has_released) {
    const struct sim_clock *first = warp->released[__builtin_ctz(mask)];
    bool is_equal = true;
    SIM_EACH_BIT(mask, l) is_equal &= warp->released[l] == first && warp->released_epoch[l] == 0;
    if (!is_equal) {
      struct sim_clock *joint = NULL;
      join_released(warp, mask, &joint);
      take_released(warp, mask, joint);
      sim_clock_free(joint);
    }
  }
  next_epoch(warp);
}

void sim_clock_arrive(struct sim_warp *warp, struct sim_barrier *barrier) {
  if (!checks_races(warp)) return;
  for (uint32_t v = 0; v < warp->block->warp_count; v++) {
    uint32_t row = v == warp->index ? warp->epoch : warp->rows[v];
    if (row > barrier->rows[v]) barrier->rows[v] = row;
  }
  if (warp->has_released) join_released(warp, warp->exists, &barrier->released);
  next_epoch(warp);
}

void sim_clock_leave(struct sim_warp *warp, const struct sim_barrier *barrier) {
  if (!checks_races(warp)) return;
  for (uint32_t v = 0; v < warp->block->warp_count; v++) {
    if (v != warp->index && barrier->rows[v] > warp->rows[v]) warp->rows[v] = barrier->rows[v];
  }
  if (barrier->rows[warp->index] > warp->known) warp->known = barrier->rows[warp->index];
  take_released(warp, warp->exists, barrier->released);
}

void sim_clock_close(struct sim_block *block, struct sim_barrier *barrier) {
  (void)block;
  memset(barrier->rows, 0, sizeof barrier->rows);
  sim_clock_free(barrier->released);
  barrier->released = NULL;
}

// Shared addresses are the block's own.
static uint64_t key_of(const struct sim_warp *warp, uint64_t address) {
  bool is_shared = address >= SIM_SHARED_BASE && address < SIM_SHARED_BASE + SIM_WINDOW;
  return is_shared ? sim_mix(address ^ sim_mix(warp->block->linear + 1)) | 1 : address & ~UINT64_C(3);
}

void sim_clock_release(struct sim_warp *warp, const struct sim_op *op, uint32_t lane, uint64_t address) {
  if (!checks_races(warp)) return;
  struct sim_sync *sync = warp->block->launch->sync;
  enum sim_scope scope = (enum sim_scope)op->scope;
  if (op->order & SIM_RELEASE) {
    struct sim_clock *clock = clock_now(warp, 1u << lane, scope);
    if (!clock) return;
    sim_log_append(sync, key_of(warp, address), clock, scope, warp->index, lane, warp->epoch);
    sim_clock_free(clock);
  } else if (warp->has_released && warp->released[lane]) {
    const struct sim_clock *clock = warp->released[lane];
    if ((enum sim_scope)clock->scope < scope) scope = (enum sim_scope)clock->scope;
    sim_log_append(sync, key_of(warp, address), clock, scope, warp->index, lane, warp->released_epoch[lane]);
  }
}

void sim_clock_acquire(struct sim_warp *warp, const struct sim_op *op, uint32_t lane, uint64_t address) {
  if (!checks_races(warp)) return;
  size_t length;
  struct sim_log *log = sim_log_find(warp->block->launch->sync, key_of(warp, address), &length);
  if (!log) return;
  bool is_pending = !(op->order & SIM_ACQUIRE);
  add_item(warp->block,
           (struct sim_item){log, length, warp->index, 1u << lane, warp->epoch, is_pending, op->scope});
}

// A block: its warps, shared memory and barriers. Blocks are used again, so that starting one allocates
// nothing.
#include "runtime/sim/internal.h"

#include <stdlib.h>

// Instructions that a warp runs before another has its turn.
#define WARP_SLICE 4096
// Rounds in which all warps spin or wait, after which another block has its turn.
#define IDLE_ROUNDS 2

void sim_block_destroy(struct sim_block *block) {
  if (!block) return;
  if (block->warps) {
    sim_clock_end(block);
    for (uint32_t w = 0; w < block->warp_count; w++) {
      struct sim_warp *warp = &block->warps[w];
      free(warp->file);
      free(warp->special);
      free(warp->frames);
      free(warp->pairs);
      sim_copies_free(warp);
      for (unsigned l = 0; l < SIM_LANES; l++) {
        free(warp->local[l]);
        free(warp->local_written[l]);
      }
    }
  }
  sim_shadow_free(&block->shadow);
  free(block->items);
  free(block->shared);
  free(block->shared_written);
  free(block->warps);
  free(block);
}

static bool warp_create(struct sim_warp *warp, struct sim_block *block, uint32_t index) {
  const struct sim_launch_state *launch = block->launch;
  const struct sim_function *function = launch->function;
  warp->block = block;
  warp->worker = block->worker;
  warp->module = launch->module;
  warp->checks = launch->checks;
  warp->index = index;
  uint32_t threads = launch->threads - index * SIM_LANES;
  warp->exists = threads >= SIM_LANES ? SIM_FULL : (1u << threads) - 1;
  warp->file_bytes = function->frame_bytes;
  warp->file = malloc(warp->file_bytes);
  warp->special = calloc(SIM_SPECIALS, SIM_SPECIAL_BYTES);
  if (!warp->file || !warp->special) return false;
  warp->base[1] = launch->module->constants;
  warp->base[2] = warp->special;
  warp->base[3] = launch->module->constants;
  return sim_local_reserve(warp, function->local_bytes);
}

struct sim_block *sim_block_create(struct sim_worker *worker) {
  struct sim_launch_state *launch = worker->launch;
  struct sim_block *block = calloc(1, sizeof *block);
  if (!block) return NULL;
  block->launch = launch;
  block->worker = worker;
  block->shared_bytes = launch->shared_bytes;
  block->shared = calloc(launch->shared_bytes + 1, 1);
  block->shared_written = calloc(launch->shared_bytes + 1, 1);
  block->warps = calloc(launch->warps, sizeof *block->warps);
  bool is_whole = block->shared && block->shared_written && block->warps &&
                  sim_shadow_create(&block->shadow, launch->shared_bytes);
  for (uint32_t w = 0; is_whole && w < launch->warps; w++) {
    block->warp_count++;
    is_whole = warp_create(&block->warps[w], block, w);
  }
  if (is_whole) return block;
  sim_block_destroy(block);
  return NULL;
}

static sim_u32 *special(struct sim_warp *warp, enum sim_special which) {
  return (sim_u32 *)(void *)(warp->special + (size_t)which * SIM_SPECIAL_BYTES + SIM_HEADER);
}

static void set_all(struct sim_warp *warp, enum sim_special which, uint32_t value) {
  sim_u32 *lanes = special(warp, which);
  for (unsigned l = 0; l < SIM_LANES; l++) lanes[l] = value;
}

// Fills the special registers; those of threads do not change from block to block.
static void fill_special(struct sim_warp *warp) {
  const struct sim_block *block = warp->block;
  const struct sim_launch_state *state = block->launch;
  const struct sim_launch *launch = state->launch;
  uint64_t used = warp->module->special_mask;
#define USES(which) (used >> SIM_SPECIAL_##which & 1)
  for (unsigned i = 0; i < 3; i++) {
    set_all(warp, (enum sim_special)(SIM_SPECIAL_NTID_X + i), launch->block[i]);
    set_all(warp, (enum sim_special)(SIM_SPECIAL_CTAID_X + i), block->index[i]);
    set_all(warp, (enum sim_special)(SIM_SPECIAL_NCTAID_X + i), launch->grid[i]);
    // Every block is a cluster of its own.
    set_all(warp, (enum sim_special)(SIM_SPECIAL_CLUSTERID_X + i), block->index[i]);
    set_all(warp, (enum sim_special)(SIM_SPECIAL_NCLUSTERID_X + i), launch->grid[i]);
    set_all(warp, (enum sim_special)(SIM_SPECIAL_CLUSTER_NCTAID_X + i), 1);
  }
  for (unsigned l = 0; l < SIM_LANES; l++) {
    uint32_t thread = warp->index * SIM_LANES + l, bit = 1u << l;
    special(warp, SIM_SPECIAL_TID_X)[l] = thread % launch->block[0];
    special(warp, SIM_SPECIAL_TID_Y)[l] = thread / launch->block[0] % launch->block[1];
    special(warp, SIM_SPECIAL_TID_Z)[l] = thread / launch->block[0] / launch->block[1];
    special(warp, SIM_SPECIAL_LANEID)[l] = l;
    special(warp, SIM_SPECIAL_LANEMASK_EQ)[l] = bit;
    special(warp, SIM_SPECIAL_LANEMASK_LT)[l] = bit - 1;
    special(warp, SIM_SPECIAL_LANEMASK_LE)[l] = bit | (bit - 1);
    special(warp, SIM_SPECIAL_LANEMASK_GE)[l] = ~(bit - 1);
    special(warp, SIM_SPECIAL_LANEMASK_GT)[l] = ~(bit | (bit - 1));
  }
  set_all(warp, SIM_SPECIAL_WARPID, warp->index);
  set_all(warp, SIM_SPECIAL_CLUSTER_NCTARANK, 1);
  set_all(warp, SIM_SPECIAL_NWARPID, 64);
  set_all(warp, SIM_SPECIAL_SMID, (uint32_t)(block->linear % state->options.sm_count));
  set_all(warp, SIM_SPECIAL_NSMID, state->options.sm_count);
  if (USES(DYNAMIC_SMEM_SIZE)) set_all(warp, SIM_SPECIAL_DYNAMIC_SMEM_SIZE, (uint32_t)launch->dynamic_shared);
  uint32_t end = state->shared_bytes, begin = end - state->reserved_shared;
  if (USES(TOTAL_SMEM_SIZE)) set_all(warp, SIM_SPECIAL_TOTAL_SMEM_SIZE, begin);
  if (USES(AGGR_SMEM_SIZE)) set_all(warp, SIM_SPECIAL_AGGR_SMEM_SIZE, end);
  if (state->reserved_shared) {
    set_all(warp, SIM_SPECIAL_RESERVED_SMEM_0, begin);
    set_all(warp, SIM_SPECIAL_RESERVED_SMEM_1, begin + state->reserved_shared / 2);
    set_all(warp, SIM_SPECIAL_RESERVED_SMEM_BEGIN, begin);
    set_all(warp, SIM_SPECIAL_RESERVED_SMEM_END, end);
    set_all(warp, SIM_SPECIAL_RESERVED_SMEM_CAP, state->reserved_shared);
  }
#undef USES
}

static void warp_start(struct sim_warp *warp) {
  struct sim_block *block = warp->block;
  const struct sim_launch_state *launch = block->launch;
  const struct sim_function *function = launch->function;
  memcpy(warp->file, launch->frame_image, function->frame_bytes);
  for (unsigned l = 0; l < SIM_LANES; l++) {
    if (warp->local_written[l]) memset(warp->local_written[l], 0, warp->local_bytes);
    warp->copy_group[l] = 0;
  }
  warp->copy_count = 0;
  warp->frame_count = 0;
  warp->live = warp->exists;
  warp->split_count = 1;
  warp->running = 0;
  warp->has_diverged = false;
  memset(&warp->splits[0], 0, sizeof warp->splits[0]);
  warp->splits[0].mask = warp->exists;
  warp->splits[0].pc = function->start;
  warp->splits[0].state = SIM_READY;
  warp->clock = 0;
  warp->rng.state = sim_mix(block->rng.state + warp->index * UINT64_C(0x9e3779b97f4a7c15));
  warp->first_id = (uint32_t)(block->linear * launch->warps + 1);
  sim_clock_start(warp);
  fill_special(warp);
}

bool sim_block_start(struct sim_block *block, uint64_t linear) {
  const struct sim_launch_state *launch = block->launch;
  const uint32_t *grid = launch->launch->grid;
  block->linear = linear;
  block->index[0] = (uint32_t)(linear % grid[0]);
  block->index[1] = (uint32_t)(linear / grid[0] % grid[1]);
  block->index[2] = (uint32_t)(linear / grid[0] / grid[1]);
  block->rng.state = sim_mix(launch->options.seed ^ sim_mix(linear + 1));
  block->is_stopped = false;
  block->generation++;
  block->item_count = 0;
  memset(block->barriers, 0, sizeof block->barriers);
  memset(block->shared_written, 0, block->shared_bytes);
  for (uint32_t w = 0; w < block->warp_count; w++) warp_start(&block->warps[w]);
  block->next_warp = (uint32_t)(sim_random(&block->rng) % block->warp_count);
  return true;
}

// Nothing can run: reports what keeps the block and lets it go on where that makes sense.
static void resolve(struct sim_block *block) {
  for (uint32_t w = 0; w < block->warp_count; w++) {
    if (sim_collective_force(&block->warps[w])) return;
  }
  if (sim_barrier_force(block)) return;
  for (uint32_t w = 0; w < block->warp_count; w++) {
    struct sim_warp *warp = &block->warps[w];
    if (warp->split_count == 0) continue;
    struct sim_where at = {.warp = warp,
                           .op = &warp->module->ops[warp->splits[0].pc],
                           .lane = (uint32_t)__builtin_ctz(warp->splits[0].mask)};
    sim_find(block->launch, SIM_DEADLOCK, &at, "no thread of the block can go on");
    break;
  }
  block->is_stopped = true;
}

bool sim_block_run(struct sim_block *block, uint64_t *budget) {
  for (unsigned idle = 0; *budget > 0 && idle < IDLE_ROUNDS;) {
    bool is_progress = false, is_done = true, is_spinning = true;
    uint32_t first = block->next_warp;
    for (uint32_t i = 0; i < block->warp_count && *budget > 0; i++) {
      uint32_t index = first + i < block->warp_count ? first + i : first + i - block->warp_count;
      struct sim_warp *warp = &block->warps[index];
      if (warp->split_count == 0) continue;
      uint64_t slice = *budget < WARP_SLICE ? *budget : WARP_SLICE, left = slice;
      sim_warp_run(warp, &left);
      *budget -= slice - left;
      is_progress |= left != slice;
      is_spinning &= left == slice || warp->is_spinning;
      block->next_warp = index + 1 < block->warp_count ? index + 1 : 0;
      if (block->is_stopped) return true;
    }
    for (uint32_t w = 0; w < block->warp_count; w++) is_done &= block->warps[w].split_count == 0;
    if (is_done) return true;
    if (!is_progress && *budget > 0) resolve(block);
    idle = is_progress && is_spinning ? idle + 1 : 0;
    if (block->is_stopped) return true;
  }
  return false;
}

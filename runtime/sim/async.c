// cp.async: the data lands when it is waited for; until then its target counts as not yet written.
#include "runtime/sim/decode.h"

#include <stdlib.h>

#define PENDING 2 // mark of a byte that a copy is to write

struct sim_copy {
  uint32_t lane;
  uint32_t group; // SIM_NONE until committed
  uint32_t target;
  uint32_t bytes;
  const struct sim_op *op;
  unsigned char data[16];
};

void sim_copies_free(struct sim_warp *warp) {
  free(warp->copies);
  warp->copies = NULL;
  warp->copy_count = warp->copy_room = 0;
}

static bool reserve(struct sim_warp *warp, size_t count) {
  if (count <= warp->copy_room) return true;
  size_t room = warp->copy_room ? 2 * warp->copy_room : 64;
  while (room < count) room *= 2;
  struct sim_copy *grown = realloc(warp->copies, room * sizeof *grown);
  if (!grown) return false;
  warp->copies = grown;
  warp->copy_room = room;
  return true;
}

void sim_run_copy(struct sim_warp *warp, const struct sim_op *op, uint32_t mask) {
  uint64_t target[SIM_LANES], source[SIM_LANES];
  unsigned char *to[SIM_LANES], *from[SIM_LANES];
  const int32_t *offset = &warp->module->lists[op->target];
  uint32_t poison = (*sim_poison(warp, op->b) | *sim_poison(warp, op->c)) & mask;
  if (poison) {
    sim_find_poison(warp, op, poison, "an address or size");
    mask &= ~poison;
  }
  mask = sim_addresses(warp, op, mask, target);
  const sim_u64 *pb = sim_r64(warp, op->b);
  const sim_u32 *pc = sim_r32(warp, op->c);
  uint64_t base = (uint32_t)offset[0] | (uint64_t)(uint32_t)offset[1] << 32;
  uint32_t reads = mask;
  SIM_EACH_BIT(mask, l) {
    source[l] = pb[l] + base;
    if (op->sub && pc[l] == 0) reads &= ~(1u << l);
  }
  uint32_t bytes = op->bytes;
  uint32_t sound = sim_access(warp, op, SIM_SPACE_GLOBAL, reads, source, bytes, SIM_READ, from);
  uint32_t written = sim_access(warp, op, SIM_SPACE_SHARED, mask, target, bytes, SIM_WRITE, to);
  if (!reserve(warp, warp->copy_count + sim_popcount(written))) {
    atomic_store(&warp->block->launch->out_of_memory, true);
    warp->block->is_stopped = true;
    return;
  }
  SIM_EACH_BIT(written, k) {
    struct sim_copy *copy = &warp->copies[warp->copy_count++];
    *copy = (struct sim_copy){
        .lane = k, .group = SIM_NONE, .target = (uint32_t)target[k], .bytes = bytes, .op = op};
    uint32_t taken = !(sound >> k & 1) ? 0 : op->sub && pc[k] < bytes ? pc[k] : bytes;
    if (taken) memcpy(copy->data, from[k], taken);
    memset(warp->block->shared_written + copy->target, PENDING, bytes);
  }
}

void sim_run_copy_commit(struct sim_warp *warp, const struct sim_op *op, uint32_t mask) {
  (void)op;
  for (size_t i = 0; i < warp->copy_count; i++) {
    struct sim_copy *copy = &warp->copies[i];
    if (copy->group == SIM_NONE && mask >> copy->lane & 1) copy->group = warp->copy_group[copy->lane];
  }
  SIM_EACH_BIT(mask, l) warp->copy_group[l]++;
}

void sim_run_copy_wait(struct sim_warp *warp, const struct sim_op *op, uint32_t mask) {
  size_t kept = 0;
  for (size_t i = 0; i < warp->copy_count; i++) {
    struct sim_copy *copy = &warp->copies[i];
    uint64_t last = warp->copy_group[copy->lane]; // groups below last - N must be done
    bool is_due = op->sub ? true : copy->group != SIM_NONE && copy->group + op->immediate < last;
    if (!(mask >> copy->lane & 1) || !is_due) {
      warp->copies[kept++] = *copy;
      continue;
    }
    struct sim_block *block = warp->block;
    memcpy(block->shared + copy->target, copy->data, copy->bytes);
    memset(block->shared_written + copy->target, 1, copy->bytes);
    if (!sim_checks(warp, SIM_RACE_SHARED)) continue;
    uint64_t offset[SIM_LANES];
    offset[copy->lane] = copy->target;
    sim_shadow_access(warp, copy->op, &block->shadow, block->generation, true, 1u << copy->lane, offset, 0,
                      copy->bytes, SIM_WRITE);
  }
  warp->copy_count = kept;
}

// ld and st, of every space, width and vector length.
#include "runtime/sim/decode.h"

static uint64_t generic_address(enum sim_space space, uint64_t address) {
  return space == SIM_SPACE_SHARED ? address + SIM_SHARED_BASE : address;
}

// One element of each lane from memory into a register, extended as its type says.
static void load_element(struct sim_warp *warp, const struct sim_op *op, uint32_t mask, int32_t slot,
                         unsigned char *const *host, unsigned offset) {
  if (op->width == 32) {
    sim_u32 *pd = sim_r32(warp, slot);
    if (op->bytes == 4) {
      SIM_EACH(mask, l, {
        uint32_t value;
        memcpy(&value, host[l] + offset, 4);
        pd[l] = value;
      });
      return;
    }
    bool is_signed = sim_type_kind((enum sim_type)op->type) == SIM_KIND_S;
    uint32_t keep = op->sub < 32 ? (1u << op->sub) - 1 : SIM_FULL;
    SIM_EACH_BIT(mask, l) {
      uint32_t value = host[l][offset];
      if (op->bytes == 2) value |= (uint32_t)host[l][offset + 1] << 8;
      if (is_signed) value = op->bytes == 2 ? (uint32_t)(int16_t)value : (uint32_t)(int8_t)value;
      pd[l] = value & keep;
    }
  } else if (op->width == 64) {
    sim_u64 *pd = sim_r64(warp, slot);
    unsigned shift = 64 - 8 * op->bytes;
    bool is_signed = sim_type_kind((enum sim_type)op->type) == SIM_KIND_S;
    SIM_EACH_BIT(mask, l) {
      uint64_t value = 0;
      memcpy(&value, host[l] + offset, op->bytes);
      pd[l] = is_signed ? (uint64_t)((int64_t)(value << shift) >> shift) : value;
    }
  } else {
    unsigned char *pd = sim_operand(warp, slot);
    SIM_EACH_BIT(mask, l) {
      memset(pd + 16 * l, 0, 16);
      memcpy(pd + 16 * l, host[l] + offset, op->bytes);
    }
  }
}

static void clear_element(struct sim_warp *warp, const struct sim_op *op, uint32_t mask, int32_t slot) {
  unsigned bytes = op->width / 8;
  unsigned char *pd = sim_operand(warp, slot);
  SIM_EACH_BIT(mask, l) memset(pd + bytes * l, 0, bytes);
}

void sim_run_ld(struct sim_warp *warp, const struct sim_op *op, uint32_t mask) {
  uint64_t address[SIM_LANES], first[SIM_LANES];
  unsigned char *host[SIM_LANES];
  uint32_t sound = sim_addresses(warp, op, mask, address);
  if (op->scope != SIM_SCOPE_WEAK) memcpy(first, address, sizeof first);
  uint32_t bytes = (uint32_t)op->bytes * op->vector;
  warp->loaded_poison = 0;
  uint32_t done = sim_access(warp, op, (enum sim_space)op->space, sound, address, bytes, SIM_READ, host);
  const int32_t *slots = &warp->module->lists[op->target];
  for (unsigned i = 0; i < op->vector; i++) {
    load_element(warp, op, done, slots[i], host, i * op->bytes);
    if (mask & ~done) clear_element(warp, op, mask & ~done, slots[i]);
    *sim_poison(warp, slots[i]) = (*sim_poison(warp, slots[i]) & ~mask) | (warp->loaded_poison & done);
  }
  if (op->scope == SIM_SCOPE_WEAK) return;
  atomic_thread_fence(memory_order_acquire);
  warp->worker->strong++;
  SIM_EACH_BIT(done, l) sim_clock_acquire(warp, op, l, generic_address((enum sim_space)op->space, first[l]));
}

static void store_element(struct sim_warp *warp, const struct sim_op *op, uint32_t mask, int32_t slot,
                          unsigned char *const *host, unsigned offset) {
  if (op->width == 32 && op->bytes == 4) {
    const sim_u32 *pa = sim_r32(warp, slot);
    SIM_EACH(mask, l, {
      uint32_t value = pa[l];
      memcpy(host[l] + offset, &value, 4);
    });
    return;
  }
  const unsigned char *pa = sim_operand(warp, slot);
  unsigned lane = op->width / 8;
  switch (op->bytes) {
  case 1: SIM_EACH_BIT(mask, l) host[l][offset] = pa[l * lane]; return;
  case 2: SIM_EACH_BIT(mask, l) memcpy(host[l] + offset, pa + l * lane, 2); return;
  case 8: SIM_EACH_BIT(mask, l) memcpy(host[l] + offset, pa + l * lane, 8); return;
  }
  SIM_EACH_BIT(mask, l) memcpy(host[l] + offset, pa + l * lane, op->bytes);
}

void sim_run_st(struct sim_warp *warp, const struct sim_op *op, uint32_t mask) {
  uint64_t address[SIM_LANES], first[SIM_LANES];
  unsigned char *host[SIM_LANES];
  const int32_t *slots = &warp->module->lists[op->target];
  uint32_t poison = 0;
  for (unsigned i = 0; i < op->vector; i++) poison |= *sim_poison(warp, slots[i]);
  uint32_t sound = sim_addresses(warp, op, mask, address);
  if (op->scope != SIM_SCOPE_WEAK) memcpy(first, address, sizeof first);
  uint32_t bytes = (uint32_t)op->bytes * op->vector;
  warp->stored_poison = poison & mask;
  uint32_t done = sim_access(warp, op, (enum sim_space)op->space, sound, address, bytes, SIM_WRITE, host);
  warp->stored_poison = 0;
  if (op->scope != SIM_SCOPE_WEAK) {
    SIM_EACH_BIT(done, l)
    sim_clock_release(warp, op, l, generic_address((enum sim_space)op->space, first[l]));
    atomic_thread_fence(memory_order_seq_cst);
  }
  for (unsigned i = 0; i < op->vector; i++) store_element(warp, op, done, slots[i], host, i * op->bytes);
}

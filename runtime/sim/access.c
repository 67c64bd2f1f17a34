// From lanes' addresses to host memory: bounds, alignment, initialisation, races, counts.
#include "runtime/sim/internal.h"

#include <inttypes.h>
#include <stdio.h>

uint32_t sim_addresses(struct sim_warp *warp, const struct sim_op *op, uint32_t mask, uint64_t *address) {
  uint64_t offset = op->immediate;
  if (op->symbol != SIM_NONE) offset += warp->block->launch->symbols[op->symbol];
  if (op->is_framed) offset += warp->frame_local;
  uint32_t poison = *sim_poison(warp, op->a) & mask;
  if (poison) {
    sim_find_poison(warp, op, poison, "an address");
    mask &= ~poison;
  }
  if (op->address_width == 32) {
    const sim_u32 *pa = sim_r32(warp, op->a);
    for (unsigned l = 0; l < SIM_LANES; l++) address[l] = (uint32_t)(pa[l] + offset);
  } else {
    const sim_u64 *pa = sim_r64(warp, op->a);
    for (unsigned l = 0; l < SIM_LANES; l++) address[l] = pa[l] + offset;
  }
  return mask;
}

static struct sim_where where(const struct sim_warp *warp, const struct sim_op *op, uint32_t lane,
                              uint64_t address, uint32_t bytes) {
  return (struct sim_where){warp, op, NULL, lane, true, address, bytes};
}

static const char *doing(enum sim_access access) {
  return access == SIM_READ ? "read" : access == SIM_WRITE ? "write" : "atomic operation";
}

// Reports lanes whose address is no multiple of the access and drops them.
static uint32_t check_alignment(struct sim_warp *warp, const struct sim_op *op, uint32_t mask,
                                const uint64_t *address, uint32_t bytes, enum sim_access access) {
  uint32_t bad = 0;
  SIM_EACH_BIT(mask, l) bad |= (uint32_t)((address[l] & (bytes - 1)) != 0) << l;
  if (!bad) return mask;
  uint32_t lane = (uint32_t)__builtin_ctz(bad);
  struct sim_where at = where(warp, op, lane, address[lane], bytes);
  sim_find(warp->block->launch, SIM_MISALIGNED, &at,
           "%s of %" PRIu32 " bytes at an address that is no multiple of %" PRIu32, doing(access), bytes,
           bytes);
  return mask & ~bad;
}

// Says how an address misses the allocation of its slot.
static void report_global(struct sim_warp *warp, const struct sim_op *op, uint32_t lane, uint64_t address,
                          uint32_t bytes, enum sim_access access) {
  struct sim_launch_state *launch = warp->block->launch;
  const struct sim_allocation *near = sim_slot(launch->memory, address);
  struct sim_where at = where(warp, op, lane, address, bytes);
  if (!near) {
    sim_find(launch, SIM_OUT_OF_BOUNDS, &at, "%s of %" PRIu32 " bytes where there is no allocation%s",
             doing(access), bytes, address < 4096 ? " (a null pointer?)" : "");
    return;
  }
  const char *name = near->name ? near->name : "an allocation";
  if (!near->is_live) {
    sim_find(launch, SIM_OUT_OF_BOUNDS, &at, "%s of %" PRIu32 " bytes in '%s', which was freed",
             doing(access), bytes, name);
  } else if (address < near->base) {
    sim_find(launch, SIM_OUT_OF_BOUNDS, &at,
             "%s of %" PRIu32 " bytes, %" PRIu64 " bytes before the start of '%s' (%" PRIu64 " bytes)",
             doing(access), bytes, near->base - address, name, near->bytes);
  } else {
    sim_find(launch, SIM_OUT_OF_BOUNDS, &at,
             "%s of %" PRIu32 " bytes at byte %" PRIu64 " of '%s', which has %" PRIu64, doing(access), bytes,
             address - near->base, name, near->bytes);
  }
}

static bool is_within(const struct sim_allocation *allocation, uint64_t address, uint32_t bytes) {
  return allocation && allocation->is_live && address >= allocation->base && bytes <= allocation->bytes &&
         address - allocation->base <= allocation->bytes - bytes;
}

// Whether all bytes are marked; `bytes` is a power of two up to 32.
static bool all_written(const unsigned char *written, uint32_t bytes) {
  static const unsigned char ones[32] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                         1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  switch (bytes) {
  case 1: return *written == 1;
  case 4: return memcmp(written, ones, 4) == 0;
  case 8: return memcmp(written, ones, 8) == 0;
  case 16: return memcmp(written, ones, 16) == 0;
  }
  return memcmp(written, ones, bytes) == 0;
}

static void mark_written(unsigned char *written, uint32_t bytes) {
  switch (bytes) {
  case 1: *written = 1; return;
  case 4: memset(written, 1, 4); return;
  case 8: memset(written, 1, 8); return;
  case 16: memset(written, 1, 16); return;
  }
  memset(written, 1, bytes);
}

static void report_unwritten(struct sim_warp *warp, const struct sim_op *op, uint32_t lane, uint64_t address,
                             uint32_t bytes, const unsigned char *written, const char *what) {
  uint32_t first = 0;
  while (first + 1 < bytes && (written[first] == 1 || written[first] == SIM_LOCAL_POISON)) first++;
  struct sim_where at = where(warp, op, lane, address, bytes);
  bool is_pending = written[first] == 2;
  sim_find(warp->block->launch, SIM_UNINITIALISED, &at,
           is_pending ? "read of %" PRIu32 " bytes of %s, of which byte %" PRIu32
                        " is still to come from an asynchronous copy"
                      : "read of %" PRIu32 " bytes of %s, of which byte %" PRIu32 " was never written",
           bytes, what, first);
}

// Lanes whose addresses lie in one allocation.
static void access_allocation(struct sim_warp *warp, const struct sim_op *op,
                              struct sim_allocation *allocation, uint32_t mask, const uint64_t *address,
                              uint32_t bytes, enum sim_access access, unsigned char **host) {
  uint64_t offset[SIM_LANES];
  unsigned char *base = allocation->host;
  SIM_EACH(mask, l, {
    offset[l] = address[l] - allocation->base;
    host[l] = base + offset[l];
  });
  struct sim_launch_state *launch = warp->block->launch;
  unsigned char *written = allocation->written;
  if (written) {
    if ((access & SIM_READ) && sim_checks(warp, SIM_UNINITIALISED)) {
      SIM_EACH_BIT(mask, l) {
        if (!all_written(written + offset[l], bytes)) {
          report_unwritten(warp, op, l, address[l], bytes, written + offset[l],
                           allocation->name ? allocation->name : "global memory");
        }
      }
    }
    if (access & SIM_WRITE) {
      SIM_EACH_BIT(mask, l) mark_written(written + offset[l], bytes);
    }
  }
  if (sim_checks(warp, SIM_RACE_GLOBAL)) {
    sim_shadow_access(warp, op, &allocation->shadow, launch->memory->generation, false, mask, offset,
                      allocation->base, bytes, access);
  }
}

static uint32_t access_global(struct sim_warp *warp, const struct sim_op *op, uint32_t mask,
                              const uint64_t *address, uint32_t bytes, enum sim_access access,
                              unsigned char **host) {
  const struct sim_memory *memory = warp->block->launch->memory;
  uint32_t rest = mask, done = 0, lost = 0;
  while (rest) {
    struct sim_allocation *allocation = sim_slot(memory, address[__builtin_ctz(rest)]);
    uint64_t slot = address[__builtin_ctz(rest)] >> SIM_SLOT_BITS;
    uint32_t here = 0, inside = 0;
    SIM_EACH(rest, l, {
      here |= (uint32_t)(address[l] >> SIM_SLOT_BITS == slot) << l;
      inside |= (uint32_t)is_within(allocation, address[l], bytes) << l;
    });
    here &= rest, inside &= here;
    if (inside && allocation->is_constant && (access & SIM_WRITE)) {
      struct sim_where at =
          where(warp, op, (uint32_t)__builtin_ctz(inside), address[__builtin_ctz(inside)], bytes);
      sim_find(warp->block->launch, SIM_READ_ONLY, &at, "write to '%s', which is constant", allocation->name);
      here &= ~inside, rest &= ~inside, inside = 0;
    }
    if (inside) access_allocation(warp, op, allocation, inside, address, bytes, access, host);
    done |= inside;
    lost |= here & ~inside;
    rest &= ~here;
  }
  if (lost) {
    uint32_t lane = (uint32_t)__builtin_ctz(lost);
    report_global(warp, op, lane, address[lane], bytes, access);
  }
  if (done) sim_count_global(&warp->worker->counters.stats, done, address, bytes, access);
  return done;
}

static void report_window(struct sim_warp *warp, const struct sim_op *op, uint32_t lost,
                          const uint64_t *address, uint32_t bytes, enum sim_access access, const char *what,
                          uint64_t size) {
  uint32_t lane = (uint32_t)__builtin_ctz(lost);
  struct sim_where at = where(warp, op, lane, address[lane], bytes);
  sim_find(warp->block->launch, SIM_OUT_OF_BOUNDS, &at,
           "%s of %" PRIu32 " bytes at byte %" PRIu64 " of %s, which has %" PRIu64, doing(access), bytes,
           address[lane], what, size);
}

static uint32_t access_shared(struct sim_warp *warp, const struct sim_op *op, uint32_t mask,
                              const uint64_t *address, uint32_t bytes, enum sim_access access,
                              unsigned char **host) {
  struct sim_block *block = warp->block;
  uint64_t size = block->shared_bytes;
  uint32_t lost = 0;
  SIM_EACH(mask, l, { lost |= (uint32_t)(bytes > size || address[l] > size - bytes) << l; });
  lost &= mask;
  if (lost) report_window(warp, op, lost, address, bytes, access, "the block's shared memory", size);
  mask &= ~lost;
  if (!mask) return 0;
  unsigned char *written = block->shared_written;
  SIM_EACH_BIT(mask, l) {
    host[l] = block->shared + address[l];
    unsigned char *marks = written + address[l];
    if ((access & SIM_READ) && sim_checks(warp, SIM_UNINITIALISED) && !all_written(marks, bytes)) {
      report_unwritten(warp, op, l, address[l], bytes, marks, "shared memory");
    }
  }
  if (access & SIM_WRITE) {
    SIM_EACH_BIT(mask, l) mark_written(written + address[l], bytes);
  }
  if (sim_checks(warp, SIM_RACE_SHARED)) {
    sim_shadow_access(warp, op, &block->shadow, block->generation, true, mask, address, 0, bytes, access);
  }
  sim_count_shared(&warp->worker->counters.stats, mask, address, bytes, access);
  return mask;
}

// A load of bytes of local memory that are not all written, or that hold poison, which it passes on: memory of a thread's own is
// where compilers keep what may never be used.
static void read_marked(struct sim_warp *warp, const struct sim_op *op, uint32_t lane, uint64_t address,
                        uint32_t bytes, const unsigned char *marks) {
  if (memchr(marks, SIM_LOCAL_POISON, bytes)) warp->loaded_poison |= 1u << lane;
  if (sim_checks(warp, SIM_UNINITIALISED) && memchr(marks, SIM_LOCAL_UNWRITTEN, bytes)) {
    report_unwritten(warp, op, lane, address, bytes, marks, "local memory");
  }
}

static uint32_t access_local(struct sim_warp *warp, const struct sim_op *op, uint32_t mask,
                             const uint64_t *address, uint32_t bytes, enum sim_access access,
                             unsigned char **host) {
  uint64_t size = warp->local_bytes;
  uint32_t lost = 0;
  SIM_EACH_BIT(mask, l) lost |= (uint32_t)(bytes > size || address[l] > size - bytes) << l;
  if (lost) report_window(warp, op, lost, address, bytes, access, "local memory", size);
  mask &= ~lost;
  SIM_EACH_BIT(mask, l) {
    host[l] = warp->local[l] + address[l];
    unsigned char *marks = warp->local_written[l] + address[l];
    if ((access & SIM_READ) && !all_written(marks, bytes)) read_marked(warp, op, l, address[l], bytes, marks);
    if (!(access & SIM_WRITE)) continue;
    mark_written(marks, bytes);
    if (warp->stored_poison >> l & 1) memset(marks, SIM_LOCAL_POISON, bytes);
  }
  if (access & SIM_READ) warp->worker->counters.stats.local_loads++;
  if (access & SIM_WRITE) warp->worker->counters.stats.local_stores++;
  return mask;
}

static uint32_t access_parameters(struct sim_warp *warp, const struct sim_op *op, uint32_t mask,
                                  const uint64_t *address, uint32_t bytes, enum sim_access access,
                                  unsigned char **host) {
  struct sim_launch_state *launch = warp->block->launch;
  uint64_t size = launch->function->entry.parameter_bytes;
  uint32_t lost = 0;
  SIM_EACH_BIT(mask, l) lost |= (uint32_t)(bytes > size || address[l] > size - bytes) << l;
  if (lost) report_window(warp, op, lost, address, bytes, access, "the kernel's parameters", size);
  mask &= ~lost;
  if (mask && (access & SIM_WRITE)) {
    uint32_t lane = (uint32_t)__builtin_ctz(mask);
    struct sim_where at = where(warp, op, lane, address[lane], bytes);
    sim_find(launch, SIM_READ_ONLY, &at, "write to the kernel's parameters");
    return 0;
  }
  SIM_EACH_BIT(mask, l) host[l] = launch->parameters + address[l];
  warp->worker->counters.stats.constant_loads++;
  return mask;
}

static enum sim_space space_of(uint64_t address, uint64_t *base) {
  *base = 0;
  if (address >= SIM_CODE_BASE || address < SIM_SHARED_BASE) return SIM_SPACE_GLOBAL;
  *base = address & ~(SIM_WINDOW - 1);
  if (address < SIM_LOCAL_BASE) return SIM_SPACE_SHARED;
  return address < SIM_PARAM_BASE ? SIM_SPACE_LOCAL : SIM_SPACE_PARAM;
}

// Generic addresses: lanes by the space that they point into. Rewrites them to offsets in it.
static uint32_t access_generic(struct sim_warp *warp, const struct sim_op *op, uint32_t mask,
                               uint64_t *address, uint32_t bytes, enum sim_access access,
                               unsigned char **host) {
  uint32_t done = 0;
  while (mask) {
    uint64_t base;
    enum sim_space space = space_of(address[__builtin_ctz(mask)], &base);
    uint32_t here = 0;
    SIM_EACH_BIT(mask, l) {
      uint64_t other;
      here |= (uint32_t)(space_of(address[l], &other) == space) << l;
    }
    SIM_EACH_BIT(here, k) address[k] -= base;
    done |= sim_access(warp, op, space, here, address, bytes, access, host);
    mask &= ~here;
  }
  return done;
}

uint32_t sim_access(struct sim_warp *warp, const struct sim_op *op, enum sim_space space, uint32_t mask,
                    uint64_t *address, uint32_t bytes, enum sim_access access, unsigned char **host) {
  if (!mask) return 0;
  if (space == SIM_SPACE_GENERIC) return access_generic(warp, op, mask, address, bytes, access, host);
  uint64_t low = 0;
  SIM_EACH(mask, l, { low |= address[l]; });
  if (low & (bytes - 1)) mask = check_alignment(warp, op, mask, address, bytes, access);
  if (!mask) return 0;
  uint32_t poison = access & SIM_WRITE && space != SIM_SPACE_LOCAL ? warp->stored_poison & mask : 0;
  if (poison) sim_find_poison(warp, op, poison, "a stored value");
  switch (space) {
  case SIM_SPACE_SHARED: return access_shared(warp, op, mask, address, bytes, access, host);
  case SIM_SPACE_LOCAL: return access_local(warp, op, mask, address, bytes, access, host);
  case SIM_SPACE_PARAM: return access_parameters(warp, op, mask, address, bytes, access, host);
  case SIM_SPACE_CONST: warp->worker->counters.stats.constant_loads++; break;
  case SIM_SPACE_GLOBAL:
  case SIM_SPACE_GENERIC: break;
  }
  return access_global(warp, op, mask, address, bytes, access, host);
}

// Counts what a warp's access costs: sectors and lines of global memory, passes of the banks of shared
// memory.
#include "runtime/sim/internal.h"

#define SECTOR_BITS 5

// Adds `value` to a sorted set unless it is there.
static unsigned insert(uint64_t *set, unsigned count, uint64_t value) {
  unsigned at = count;
  while (at > 0 && set[at - 1] > value) at--;
  if (at > 0 && set[at - 1] == value) return count;
  for (unsigned i = count; i > at; i--) set[i] = set[i - 1];
  set[at] = value;
  return count + 1;
}

// Sectors and lines of lanes that lie within 4 KiB: a bit a sector.
static void count_near(uint32_t mask, const uint64_t *address, uint32_t bytes, uint64_t least,
                       unsigned *sectors, unsigned *lines) {
  uint64_t bits[3] = {0}, base = least >> 7 << 7;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    unsigned lane = (unsigned)__builtin_ctz(rest);
    uint64_t first = (address[lane] - base) >> SECTOR_BITS,
             last = (address[lane] + bytes - 1 - base) >> SECTOR_BITS;
    for (; first <= last; first++) bits[first >> 6] |= UINT64_C(1) << (first & 63);
  }
  for (unsigned i = 0; i < 3; i++) {
    *sectors += (unsigned)__builtin_popcountll(bits[i]);
    uint64_t fours = bits[i] | bits[i] >> 1;
    fours |= fours >> 2;
    *lines += (unsigned)__builtin_popcountll(fours & UINT64_C(0x1111111111111111));
  }
}

static void count_far(uint32_t mask, const uint64_t *address, uint32_t bytes, unsigned *sectors,
                      unsigned *lines) {
  uint64_t set[SIM_LANES * 2];
  unsigned count = 0;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    unsigned lane = (unsigned)__builtin_ctz(rest);
    uint64_t first = address[lane] >> SECTOR_BITS, last = (address[lane] + bytes - 1) >> SECTOR_BITS;
    count = insert(set, count, first);
    if (last != first) count = insert(set, count, last);
  }
  *sectors = count;
  *lines = 0;
  for (unsigned i = 0; i < count; i++) *lines += i == 0 || set[i] >> 2 != set[i - 1] >> 2;
}

void sim_count_global(struct sim_stats *stats, uint32_t mask, const uint64_t *address, uint32_t bytes,
                      enum sim_access access) {
  uint64_t least = UINT64_MAX, most = 0;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    uint64_t at = address[__builtin_ctz(rest)];
    if (at < least) least = at;
    if (at > most) most = at;
  }
  unsigned sectors = 0, lines = 0;
  if (most - least < 4096) {
    count_near(mask, address, bytes, least, &sectors, &lines);
  } else {
    count_far(mask, address, bytes, &sectors, &lines);
  }
  stats->global_lines += lines;
  if (access & SIM_READ) {
    stats->global_loads++;
    stats->global_sectors_loaded += sectors;
    stats->global_bytes_loaded += (uint64_t)sim_popcount(mask) * bytes;
  }
  if (access & SIM_WRITE) {
    stats->global_stores++;
    stats->global_sectors_stored += sectors;
    stats->global_bytes_stored += (uint64_t)sim_popcount(mask) * bytes;
  }
}

// Passes that one group of lanes needs: the most different words any bank is asked for.
static unsigned group_passes(uint32_t mask, const uint64_t *address, uint32_t bytes) {
  uint32_t first[32], used = 0, more[32];
  unsigned counts[32], extra = 0, most = 0;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    uint64_t at = address[__builtin_ctz(rest)];
    uint32_t word = (uint32_t)(at >> 2), last = (uint32_t)((at + bytes - 1) >> 2);
    for (; word <= last; word++) {
      unsigned bank = word & 31;
      if (!(used >> bank & 1)) {
        used |= 1u << bank;
        first[bank] = word;
        counts[bank] = 1;
      } else if (first[bank] != word) {
        bool is_known = false;
        for (unsigned i = 0; i < extra; i++) is_known |= more[i] == word;
        if (is_known) continue;
        if (extra < 32) more[extra++] = word;
        counts[bank]++;
      }
      if (counts[bank] > most) most = counts[bank];
    }
  }
  return most;
}

void sim_count_shared(struct sim_stats *stats, uint32_t mask, const uint64_t *address, uint32_t bytes,
                      enum sim_access access) {
  // Accesses of 8 and 16 bytes go by halves and quarters of a warp.
  unsigned lanes = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8;
  uint32_t group = lanes == 32 ? SIM_FULL : (1u << lanes) - 1;
  for (unsigned first = 0; first < SIM_LANES; first += lanes) {
    uint32_t part = mask & group << first;
    if (!part) continue;
    unsigned passes = group_passes(part, address, bytes);
    stats->shared_wavefronts += passes;
    stats->shared_conflicts += passes - 1;
  }
  if (access & SIM_READ) stats->shared_loads++;
  if (access & SIM_WRITE) stats->shared_stores++;
}

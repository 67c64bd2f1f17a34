// redc inspect: accesses of global and shared memory. How far the lanes of a warp are apart, and who touched an element of shared memory before.
#include "codegen/inspect_run.h"

#include <inttypes.h>
#include <stdlib.h>

enum { MAX_SHARED_BYTES = 256 * 1024 };

static struct inspect_access *access_of(struct run *run, struct range range, bool writes) {
  struct list *accesses = &run->report->accesses;
  for (uint32_t i = 0; i < accesses->count; i++) {
    struct inspect_access *known = list_at(accesses, struct inspect_access, i);
    if (known->range.line == range.line && known->range.column == range.column && known->range.end_column == range.end_column &&
        known->writes == writes)
      return known;
  }
  struct inspect_access *access = arena_new(run->diag->arena, struct inspect_access);
  access->range = range;
  list_push(run->diag->arena, accesses, access);
  return access;
}

static int compare_integers(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

// Distinct values of `all`.
static uint32_t count_distinct(int64_t *all, uint32_t count) {
  uint32_t distinct = 0;
  qsort(all, count, sizeof *all, compare_integers);
  for (uint32_t i = 0; i < count; i++) distinct += i == 0 || all[i] != all[i - 1];
  return distinct;
}

static int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b < 0); }

static void count_sectors(struct inspect_access *access, int64_t lowest) {
  int64_t sectors[INSPECT_WARP * 2], bytes[INSPECT_WARP];
  uint32_t count = 0, lanes = 0;
  for (uint32_t lane = 0; lane < INSPECT_WARP; lane++) {
    if (!(access->lanes >> lane & 1)) continue;
    int64_t at = access->offsets[lane] + lowest, last = at + (int64_t)access->bytes - 1;
    sectors[count++] = floor_divide(at, 32);
    sectors[count++] = floor_divide(last, 32);
    bytes[lanes++] = at;
  }
  access->sectors = count_distinct(sectors, count);
  access->least_sectors = (count_distinct(bytes, lanes) * access->bytes + 31) / 32;
}

// How often the banks are passed over for lanes `from` to `to`: the most distinct words of one bank.
static uint32_t count_conflicts(const struct inspect_access *access, int64_t lowest, uint32_t from, uint32_t to) {
  uint32_t most = 1;
  for (int64_t bank = 0; bank < 32; bank++) {
    int64_t words[INSPECT_WARP * 4];
    uint32_t count = 0;
    for (uint32_t lane = from; lane < to; lane++) {
      if (!(access->lanes >> lane & 1)) continue;
      int64_t at = access->offsets[lane] + lowest;
      for (int64_t word = floor_divide(at, 4); word <= floor_divide(at + (int64_t)access->bytes - 1, 4) && count < INSPECT_WARP * 4; word++)
        if ((word % 32 + 32) % 32 == bank) words[count++] = word;
    }
    uint32_t distinct = count ? count_distinct(words, count) : 0;
    if (distinct > most) most = distinct;
  }
  return most;
}

static void measure_access(struct run *run, struct inspect_access *access, int64_t lowest) {
  if (access->space == SPACE_SHARED) {
    // Lanes are served in halves or quarters where an access is wider than four bytes.
    uint32_t together = access->bytes <= 4 ? 32 : access->bytes <= 8 ? 16 : 8;
    access->conflicts = 1;
    for (uint32_t lane = 0; lane < INSPECT_WARP; lane += together) {
      uint32_t found = count_conflicts(access, lowest, lane, lane + together);
      if (found > access->conflicts) access->conflicts = found;
    }
    if (access->conflicts > 1)
      run_find(run, FINDING_BANK_CONFLICT, access->range, "%s: %" PRIu32 " lanes of a warp meet in one bank", access->text, access->conflicts);
    return;
  }
  count_sectors(access, lowest);
  if (!access->is_atomic && access->sectors >= 2 * access->least_sectors && access->sectors > 2)
    run_find(run, FINDING_UNCOALESCED, access->range, "%s: a warp touches %" PRIu32 " sectors of 32 bytes; %" PRIu32 " hold as much", access->text,
         access->sectors, access->least_sectors);
}

// Fills the record from the first warp with most lanes.
static void record_access(struct run *run, struct inspect_access *access, const struct value *address, const uint8_t *mask) {
  uint32_t best = 0, best_lanes = 0;
  for (uint32_t warp = 0; warp * 32 < run->threads; warp++) {
    uint32_t lanes = 0;
    for (uint32_t t = warp * 32; t < warp * 32 + 32 && t < run->threads; t++) lanes |= (uint32_t)mask[t] << (t % 32);
    if (__builtin_popcount(lanes) > __builtin_popcount(best_lanes)) best = warp, best_lanes = lanes;
  }
  if (!best_lanes || __builtin_popcount(best_lanes) <= __builtin_popcount(access->lanes)) return;
  access->lanes = best_lanes;
  access->is_known = true;
  uint32_t lowest_lane = (uint32_t)__builtin_ctz(best_lanes);
  struct cell base = value_cell(address, best * 32 + lowest_lane);
  bool strided = false, whole = true;
  for (uint32_t lane = 0; lane < INSPECT_WARP; lane++) {
    if (!(best_lanes >> lane & 1)) continue;
    struct cell cell = value_cell(address, best * 32 + lane);
    if (cell.symbol != base.symbol || cell.symbol == SYMBOL_VARYING) {
      access->is_known = false;
      strided = strided || symbol_is_strided(&run->values, base.symbol, cell.symbol);
    }
    access->offsets[lane] = cell.c - (access->space == SPACE_SHARED ? 0 : base.c);
    // What an object begins with is aligned; a symbol that is more than the object's address may be anything.
    whole = whole && (cell.c % (int64_t)(access->bytes ? access->bytes : 1)) == 0;
  }
  bool only_base = address->base && base.symbol != SYMBOL_VARYING && (base.symbol == 0 || run->values.symbols[base.symbol].op == SYMBOL_FRESH);
  if (!whole && only_base && access->is_known && (access->bytes & (access->bytes - 1)) == 0 && access->bytes > 1)
    run_find(run, FINDING_MISALIGNED, access->range, "%s: %" PRIu32 " bytes at an offset that is no multiple of %" PRIu32, access->text, access->bytes,
         access->bytes);
  if (access->is_known)
    measure_access(run, access, access->space == SPACE_SHARED ? 0 : only_base ? base.c : 0);
  else if (strided && access->space != SPACE_SHARED)
    run_find(run, FINDING_UNCOALESCED, access->range, "%s: the lanes of a warp are apart by a size that is not known here", access->text);
}

// Bytes of shared memory that are told apart.
static int64_t grain_of(const struct cuda_variable *variable) {
  uint32_t element = variable->type.is_array ? variable->type.pointee : variable->type.bytes;
  return element && element < 4 ? 1 : 4;
}

static struct shadow_word *shadow_of(struct run *run, const struct cuda_variable *variable) {
  struct shadow_word **shadow = &run->shadows[variable->number];
  if (!*shadow) *shadow = arena_array(run->arena, struct shadow_word, (size_t)(MAX_SHARED_BYTES / grain_of(variable)));
  return *shadow;
}

static void report_race(struct run *run, const struct cuda_variable *variable, struct range now, struct range before, uint32_t thread,
                        uint32_t other, bool writes_now) {
  const char *text = inspect_text(run->diag, now);
  enum finding_kind kind = thread / 32 == other / 32 ? FINDING_WARP_SYNCHRONOUS : FINDING_SHARED_RACE;
  run_find(run, kind, now, "%s: thread %" PRIu32 " %s a place in '%s' that thread %" PRIu32 " %s on line %" PRIu32, text, thread_of(run, thread),
           writes_now ? "writes" : "reads", variable->name, thread_of(run, other), writes_now ? "accesses" : "writes", before.line);
}

static void touch_word(struct run *run, const struct cuda_variable *variable, struct shadow_word *word, uint32_t thread, bool writes,
                       struct range range) {
  uint32_t warp = thread / 32, block_now = run->block_barriers, warp_now = run->warp_barriers[warp];
  if (word->writer && word->writer != thread + 1u && word->write_block == block_now) {
    uint32_t other = word->writer - 1u;
    if (other / 32 != warp || word->write_warp == warp_now) report_race(run, variable, range, word->write_range, thread, other, writes);
  }
  if (writes && word->reader && (word->many_readers || word->reader != thread + 1u) && word->read_block == block_now) {
    uint32_t other = word->reader - 1u;
    if (other != thread && (other / 32 != warp || word->read_warp == warp_now)) report_race(run, variable, range, word->read_range, thread, other, true);
  }
  if (writes) {
    word->writer = (uint16_t)(thread + 1);
    word->write_block = block_now, word->write_warp = warp_now, word->write_range = range;
  } else {
    // A reader of another warp, or another lane, is worth keeping beside the thread that writes next.
    word->many_readers = word->reader && word->read_block == block_now && word->reader != thread + 1u;
    word->reader = (uint16_t)(thread + 1);
    word->read_block = block_now, word->read_warp = warp_now, word->read_range = range;
  }
}

static void touch_shared(struct run *run, const struct value *address, uint32_t bytes, const uint8_t *mask, bool writes, struct range range) {
  const struct cuda_variable *variable = address->base;
  if (!variable || variable->space != SPACE_SHARED) return;
  struct shadow_word *words = shadow_of(run, variable);
  int64_t grain = grain_of(variable);
  for (uint32_t t = 0; t < run->threads; t++) {
    if (!mask[t]) continue;
    struct cell cell = value_cell(address, t);
    if (cell.symbol || cell.c < 0 || cell.c + (int64_t)bytes > MAX_SHARED_BYTES) continue;
    for (int64_t word = cell.c / grain; word <= (cell.c + (int64_t)bytes - 1) / grain; word++) touch_word(run, variable, &words[word], t, writes, range);
  }
}

void run_access(struct run *run, const struct cuda_expr *at, const struct value *address, const uint8_t *mask, bool reads, bool writes,
                          bool is_atomic, uint32_t bytes) {
  const struct cuda_variable *base = address->base;
  if (is_empty(run, mask) || (base && base->space == SPACE_LOCAL)) return;
  struct inspect_access *access = access_of(run, at->range, writes);
  if (!access->text) access->text = inspect_text(run->diag, at->range);
  access->variable = base ? base->name : "?";
  access->space = base ? base->space : SPACE_DEVICE;
  access->reads |= reads, access->writes |= writes, access->is_atomic |= is_atomic;
  access->bytes = bytes ? bytes : at->type.bytes;
  if (address->flags & VALUE_OVERFLOW)
    run_find(run, FINDING_OVERFLOW, address->blame, "%s: part of the index is computed in 32 bits and leaves them at the given sizes", access->text);
  record_access(run, access, address, mask);
  if (is_atomic) return;
  // A read and a write of one statement: the reads of all lanes come first, so both are told apart.
  if (reads) touch_shared(run, address, access->bytes, mask, false, at->range);
  if (writes) touch_shared(run, address, access->bytes, mask, true, at->range);
}

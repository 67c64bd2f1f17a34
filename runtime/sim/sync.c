// Logs of released clocks by address. Shards of a hash table, each with a lock.
#include "runtime/sim/sync.h"

#include <stdlib.h>

#define SHARDS 64
#define MOST_DEPTH 8 // references followed from log to log

// One release: the clock, the lane that released it with its own epoch, and the entry before of the same
// block.
struct entry {
  struct sim_clock clock;
  uint32_t warp;
  uint32_t lane;
  uint32_t own_epoch;
  size_t previous; // index + 1
};

// The last entry of each block: open addressing.
struct last {
  uint64_t block;
  size_t entry; // index + 1
};

struct sim_log {
  uint64_t key;
  struct sim_log *next;
  pthread_mutex_t lock;
  struct entry *entries;
  size_t count;
  size_t room;
  struct last *last;
  size_t last_room;
  size_t last_count;
  struct reference {
    struct sim_reference to;
    size_t entry;
  } * references;
  size_t reference_count;
  size_t reference_room;
};

struct sim_sync {
  struct shard {
    pthread_mutex_t lock;
    struct sim_log *logs[64];
  } shards[SHARDS];
  atomic_size_t count; // of logs
};

struct sim_sync *sim_sync_create(void) {
  struct sim_sync *sync = calloc(1, sizeof *sync);
  if (!sync) return NULL;
  for (int i = 0; i < SHARDS; i++) pthread_mutex_init(&sync->shards[i].lock, NULL);
  return sync;
}

static void log_free(struct sim_log *log) {
  for (size_t i = 0; i < log->count; i++) {
    free(log->entries[i].clock.parts);
    free(log->entries[i].clock.references);
  }
  pthread_mutex_destroy(&log->lock);
  free(log->entries);
  free(log->last);
  free(log->references);
  free(log);
}

void sim_sync_destroy(struct sim_sync *sync) {
  if (!sync) return;
  for (int i = 0; i < SHARDS; i++) {
    for (int k = 0; k < 64; k++) {
      for (struct sim_log *log = sync->shards[i].logs[k], *next; log; log = next) {
        next = log->next;
        log_free(log);
      }
    }
    pthread_mutex_destroy(&sync->shards[i].lock);
  }
  free(sync);
}

void sim_clock_free(struct sim_clock *clock) {
  if (!clock || --clock->owners > 0) return;
  free(clock->parts);
  free(clock->references);
  free(clock);
}

// The log of a key; `create` makes it. NULL when there is none or memory is short.
static struct sim_log *find(struct sim_sync *sync, uint64_t key, bool create) {
  uint64_t hash = sim_mix(key);
  struct shard *shard = &sync->shards[hash % SHARDS];
  struct sim_log **bucket = &shard->logs[hash / SHARDS % 64];
  pthread_mutex_lock(&shard->lock);
  struct sim_log *log = *bucket;
  while (log && log->key != key) log = log->next;
  if (!log && create && (log = calloc(1, sizeof *log))) {
    log->key = key;
    pthread_mutex_init(&log->lock, NULL);
    log->next = *bucket;
    *bucket = log;
    atomic_fetch_add(&sync->count, 1);
  }
  pthread_mutex_unlock(&shard->lock);
  return log;
}

struct sim_log *sim_log_find(struct sim_sync *sync, uint64_t key, size_t *length) {
  if (atomic_load(&sync->count) == 0) return NULL;
  struct sim_log *log = find(sync, key, false);
  if (!log) return NULL;
  pthread_mutex_lock(&log->lock);
  *length = log->count;
  pthread_mutex_unlock(&log->lock);
  return log;
}

static struct last *find_last(struct sim_log *log, uint64_t block) {
  if (log->last_room == 0) return NULL;
  size_t at = sim_mix(block) & (log->last_room - 1);
  while (log->last[at].entry && log->last[at].block != block) at = (at + 1) & (log->last_room - 1);
  return &log->last[at];
}

static bool grow_last(struct sim_log *log) {
  if (2 * (log->last_count + 1) <= log->last_room) return true;
  size_t room = log->last_room ? 2 * log->last_room : 16;
  struct last *grown = calloc(room, sizeof *grown);
  if (!grown) return false;
  for (size_t i = 0; i < log->last_room; i++) {
    if (!log->last[i].entry) continue;
    size_t at = sim_mix(log->last[i].block) & (room - 1);
    while (grown[at].entry) at = (at + 1) & (room - 1);
    grown[at] = log->last[i];
  }
  free(log->last);
  log->last = grown;
  log->last_room = room;
  return true;
}

static void add_references(struct sim_log *log, const struct sim_clock *clock, size_t entry) {
  for (size_t i = 0; i < clock->reference_count; i++) {
    const struct sim_reference *to = &clock->references[i];
    if (to->log == log) continue; // shorter than the log is now
    bool is_known = false;
    for (size_t k = 0; k < log->reference_count && !is_known; k++) {
      is_known = log->references[k].to.log == to->log && log->references[k].to.length >= to->length;
    }
    if (is_known) continue;
    if (log->reference_count == log->reference_room) {
      size_t room = log->reference_room ? 2 * log->reference_room : 4;
      struct reference *grown = realloc(log->references, room * sizeof *grown);
      if (!grown) return;
      log->references = grown;
      log->reference_room = room;
    }
    log->references[log->reference_count++] = (struct reference){*to, entry};
  }
}

void sim_log_append(struct sim_sync *sync, uint64_t key, const struct sim_clock *clock, enum sim_scope scope,
                    uint32_t warp, uint32_t lane, uint32_t own_epoch) {
  struct sim_log *log = find(sync, key, true);
  if (!log) return;
  pthread_mutex_lock(&log->lock);
  struct last *last = find_last(log, clock->block);
  size_t previous = last ? last->entry : 0;
  if (previous) {
    const struct entry *old = &log->entries[previous - 1];
    bool is_same =
        old->warp == warp && old->lane == lane && old->own_epoch == own_epoch && old->clock.scope == scope &&
        memcmp(old->clock.rows, clock->rows, sizeof clock->rows) == 0 &&
        old->clock.part_count == clock->part_count && old->clock.reference_count == clock->reference_count;
    if (is_same) {
      pthread_mutex_unlock(&log->lock);
      return;
    }
  }
  if (log->count == log->room) {
    size_t room = log->room ? 2 * log->room : 4;
    struct entry *grown = realloc(log->entries, room * sizeof *grown);
    if (grown) {
      log->entries = grown;
      log->room = room;
    }
  }
  if (log->count < log->room && grow_last(log)) {
    struct entry *entry = &log->entries[log->count];
    *entry = (struct entry){
        .clock = *clock, .warp = warp, .lane = lane, .own_epoch = own_epoch, .previous = previous};
    entry->clock.scope = (uint8_t)scope;
    entry->clock.parts = NULL;
    entry->clock.references = NULL;
    entry->clock.reference_count = 0;
    if (clock->part_count) {
      entry->clock.parts = malloc(clock->part_count * sizeof *clock->parts);
      if (entry->clock.parts)
        memcpy(entry->clock.parts, clock->parts, clock->part_count * sizeof *clock->parts);
      if (!entry->clock.parts) entry->clock.part_count = 0;
    }
    log->count++;
    last = find_last(log, clock->block);
    if (!last->entry) log->last_count++;
    *last = (struct last){clock->block, log->count};
    add_references(log, clock, log->count);
  }
  pthread_mutex_unlock(&log->lock);
}

// Whether one release covers the lanes at the epoch.
static bool entry_covers(const struct entry *entry, uint32_t warp, uint32_t lanes, uint32_t epoch) {
  const struct sim_clock *clock = &entry->clock;
  if (warp < clock->warps && epoch <= clock->rows[warp]) return true;
  if (warp == entry->warp && epoch <= entry->own_epoch) lanes &= ~(1u << entry->lane);
  for (size_t i = 0; i < clock->part_count && lanes; i++) {
    const struct sim_part *part = &clock->parts[i];
    if (part->warp == warp && epoch <= part->epoch) lanes &= ~part->mask;
  }
  return lanes == 0;
}

static bool covers(struct sim_log *log, size_t length, uint64_t reader, uint64_t block, uint32_t warp,
                   uint32_t lanes, uint32_t epoch, int depth) {
  struct sim_reference next[16];
  size_t next_count = 0;
  bool is_covered = false;
  pthread_mutex_lock(&log->lock);
  const struct last *last = find_last(log, block);
  for (size_t at = last ? last->entry : 0; at && !is_covered; at = log->entries[at - 1].previous) {
    const struct entry *entry = &log->entries[at - 1];
    if (at > length || (entry->clock.scope == SIM_SCOPE_CTA && reader != block)) continue;
    is_covered = entry_covers(entry, warp, lanes, epoch);
  }
  for (size_t i = 0; i < log->reference_count && !is_covered && next_count < 16; i++) {
    if (log->references[i].entry <= length) next[next_count++] = log->references[i].to;
  }
  pthread_mutex_unlock(&log->lock);
  for (size_t i = 0; i < next_count && !is_covered && depth < MOST_DEPTH; i++) {
    is_covered = covers(next[i].log, next[i].length, reader, block, warp, lanes, epoch, depth + 1);
  }
  return is_covered;
}

bool sim_log_covers(struct sim_log *log, size_t length, uint64_t reader, uint64_t block, uint32_t warp,
                    uint32_t lanes, uint32_t epoch) {
  return covers(log, length, reader, block, warp, lanes, epoch, 0);
}

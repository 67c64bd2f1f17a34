// Releases and acquires: what a strong write publishes of its thread's past, kept by address, and how it is
// asked.
//
// A clock covers accesses of one block: all lanes of warp v up to epoch rows[v], and what the parts add. A
// log is the history of one address: clocks in the order in which strong writes published them. Who reads the
// address strongly learns the log up to its present length; an item of a block remembers that, and which
// lanes learnt it when. After the acquire fence that makes it valid, whoever is ordered behind those lanes
// knows it too.
#ifndef RED_SIM_SYNC_H
#define RED_SIM_SYNC_H

#include "runtime/sim/internal.h"

struct sim_log;

// Lanes `mask` of a warp up to an epoch.
struct sim_part {
  uint32_t warp;
  uint32_t mask;
  uint32_t epoch;
};

// A log up to some length, which the owner of a clock knew: what it publishes includes that.
struct sim_reference {
  struct sim_log *log;
  size_t length;
};

struct sim_clock {
  uint32_t owners; // reference count; clocks in a log are never changed
  uint8_t scope;   // enum sim_scope
  uint64_t block;
  uint32_t warps;
  uint32_t rows[SIM_LANES];
  struct sim_part *parts;
  size_t part_count;
  struct sim_reference *references;
  size_t reference_count;
};

struct sim_item {
  struct sim_log *log;
  size_t length;
  uint32_t warp; // of the block: the lanes of it that learnt this, and when
  uint32_t mask;
  uint32_t epoch;
  bool is_pending; // no fence has followed yet
  uint8_t scope;   // enum sim_scope: the narrower of the read's and the fence's
};

void sim_clock_free(struct sim_clock *clock);
// Appends a copy of the clock to the log of an address; besides, it covers `lane` of `warp` up to
// `own_epoch`. A release like the block's last one is not repeated.
void sim_log_append(struct sim_sync *sync, uint64_t key, const struct sim_clock *clock, enum sim_scope scope,
                    uint32_t warp, uint32_t lane, uint32_t own_epoch);
// The log of an address, or NULL, and its present length.
struct sim_log *sim_log_find(struct sim_sync *sync, uint64_t key, size_t *length);
// Whether the log, up to `length`, covers an access: of lanes `lanes` of `warp` of `block` at `epoch`, for a
// reader in block `reader`.
bool sim_log_covers(struct sim_log *log, size_t length, uint64_t reader, uint64_t block, uint32_t warp,
                    uint32_t lanes, uint32_t epoch);

#endif

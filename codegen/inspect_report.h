// What is found out about one kernel.
#ifndef RED_CODEGEN_INSPECT_REPORT_H
#define RED_CODEGEN_INSPECT_REPORT_H

#include "codegen/inspect_model.h"

enum { INSPECT_WARP = 32, INSPECT_MAX_THREADS = 1024, INSPECT_MAX_WARPS = INSPECT_MAX_THREADS / INSPECT_WARP };

enum finding_kind {
#define F(name, ...) FINDING_##name,
#include "codegen/inspect_findings.def"
#undef F
  FINDING_COUNT
};
const char *finding_name(enum finding_kind kind);
const char *finding_why(enum finding_kind kind);
const char *finding_fix(enum finding_kind kind);
bool finding_is_performance(enum finding_kind kind);

struct finding {
  enum finding_kind kind;
  struct range range;
  const char *message;
};

// A global or shared access: the first warp that makes it with the most lanes.
struct inspect_access {
  struct range range;
  const char *text;     // as it stands in the source
  const char *variable; // what it goes to; "?" where that is not known
  enum cuda_space space;
  bool reads, writes, is_atomic;
  uint32_t bytes;            // a lane
  uint32_t lanes;            // that take part, a bit each
  bool is_known;             // how far the lanes are apart
  int64_t offsets[INSPECT_WARP]; // in bytes, from the lowest lane's object or address
  uint32_t sectors, least_sectors; // global: 32-byte sectors of the warp, and the fewest that hold as many bytes
  uint32_t conflicts;              // shared: words of one bank, 1 without a conflict
};

// A shuffle, vote, match, reduce or barrier.
struct inspect_collective {
  struct range range;
  const char *name, *mask_text; // mask_text NULL: it takes none
  bool is_block;                // a barrier of the block
  bool is_known;                // the masks
  uint32_t warp_count;
  uint32_t masks[INSPECT_MAX_WARPS];   // of the lowest lane that arrives
  uint32_t arrived[INSPECT_MAX_WARPS]; // the lanes that execute it
  bool has_sources;                    // a shuffle whose offsets are known in warp 0
  int32_t sources[INSPECT_WARP];       // the lane that each lane of warp 0 reads; -1: takes no part
};

struct inspect_loop {
  struct range range;
  const char *text;
  int64_t trips; // -1: not known
};

struct kernel_report {
  const struct cuda_function *kernel;
  uint32_t block[3];
  bool block_is_assumed; // neither given nor bounded
  struct list accesses, collectives, loops, findings;
  struct list shared; // struct cuda_variable
  int64_t shared_bytes;
  // What was run: the whole block and all rounds, or where that is too much, some warps, and a loop's first rounds.
  uint32_t warps[INSPECT_MAX_WARPS], warp_count, block_warps;
  uint32_t max_rounds; // of a loop; more are taken as one more that is like all of them
  bool is_incomplete;  // even that was more than the analysis follows
  int registers;      // 0: not known
};

struct inspect_sizes {
  uint32_t block[3]; // 0: not given
  int64_t grid[3];   // 0: not given
  struct map values; // int64_t by the name of a parameter
};

// Runs the kernel's integers for every thread of one block, everything else unknown, and fills the report.
void inspect_kernel(struct diag *diag, const struct cuda_module *module, const struct cuda_function *kernel,
                    const struct inspect_sizes *sizes, struct kernel_report *report);
// The text of a range, one line.
const char *inspect_text(const struct diag *diag, struct range range);

#endif

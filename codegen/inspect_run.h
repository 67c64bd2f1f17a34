// What the files that run a kernel have in common.
#ifndef RED_CODEGEN_INSPECT_RUN_H
#define RED_CODEGEN_INSPECT_RUN_H

#include "codegen/inspect_report.h"
#include "codegen/inspect_value.h"

#include <string.h>

// The last accesses of an element of shared memory, for races. Threads are counted from 1.
struct shadow_word {
  uint16_t writer, reader;
  bool many_readers;
  uint32_t write_block, write_warp, read_block, read_warp; // barriers passed by then
  struct range write_range, read_range;
};

struct frame {
  const struct range *call; // in the kernel; NULL: the kernel's own
  uint8_t *returned;
  struct value *result;
};
struct loop_exits {
  uint8_t *broke, *continued;
};

struct run {
  struct diag *diag;   // what the report keeps is in its arena
  struct arena *arena; // of this run alone
  const struct inspect_sizes *sizes;
  struct kernel_report *report;
  struct values values;
  uint32_t threads; // that are run: all of the block, or those of report->warps
  uint32_t max_rounds; // of a loop whose rounds are known
  struct value **variables; // by number; NULL: not assigned yet
  uint32_t variable_count;
  struct shadow_word **shadows; // of shared variables, by number
  uint32_t block_barriers;
  uint32_t warp_barriers[INSPECT_MAX_WARPS];
  struct frame *frame;
  struct loop_exits *loop;
  uint32_t steps, depth, conditions; // conditions: enclosing ones that are not known
  const struct range *warp_differs, *block_differs; // the innermost unknown condition that differs inside a warp, a block
  const struct range *may_have_left;               // a return that some threads may have taken
};

// The number in the block of a thread that is run.
static inline uint32_t thread_of(const struct run *run, uint32_t t) { return run->report->warps[t / INSPECT_WARP] * INSPECT_WARP + t % INSPECT_WARP; }
static inline bool is_empty(const struct run *run, const uint8_t *mask) { return !memchr(mask, 1, run->threads); }

// A finding, once for a place.
void run_find(struct run *run, enum finding_kind kind, struct range range, const char *format, ...) __attribute__((format(printf, 4, 5)));

// inspect_memory.c: the threads of the mask access what `at` names, `bytes` each (0: as its type says). Records it, and looks for races.
void run_access(struct run *run, const struct cuda_expr *at, const struct value *address, const uint8_t *mask, bool reads, bool writes,
                bool is_atomic, uint32_t bytes);

// inspect_collective.c: a call of a warp's or block's function, by its name; NULL: it is none.
const struct collective_rule *collective_rule_of(const char *name);
// The threads of the mask call it. Returns what the call gives.
struct value *run_collective(struct run *run, const struct collective_rule *rule, const struct cuda_expr *call, struct value *const *operands, const uint8_t *mask);

#endif

// Launches in the simulator, for redc run and redc check.
#ifndef RED_COMPILER_RUN_SIM_H
#define RED_COMPILER_RUN_SIM_H

#include "compiler/run_buffer.h"
#include "compiler/run_options.h"
#include "runtime/plan.h"
#include "runtime/sim/sim.h"

// What all launches did together.
struct simulation_counts {
  uint64_t instructions;    // of warps
  uint64_t sectors;         // of 32 bytes, loaded and stored
  uint64_t bytes;           // that lanes asked for
  uint64_t accesses;        // of global memory
  uint64_t shared_passes;   // of the banks
  uint64_t shared_conflicts; // passes more than needed
  uint64_t barriers, shuffles, atomics, blocks;
};

struct simulation {
  struct compilation *c; // its diagnostics and arena
  struct sim_module *module;
  struct sim_memory *memory;
  struct sim_options options;
  enum stats stats;
  struct text printed;    // statistics
  uint64_t finding_total; // over all launches
  struct simulation_counts counts;
};

// Parses the PTX; false after an error.
bool simulation_begin(struct simulation *simulation, struct compilation *c, const char *ptx, size_t length,
                      const char *name, const struct run_options *options);
void simulation_end(struct simulation *simulation);
// Puts a buffer into the simulator's memory, where it stays until the end. Returns the address of element (0,
// ..., 0), 0 after an error. Bytes between the elements count as never written; the elements too unless
// `is_initialised`.
uint64_t simulation_map(struct simulation *simulation, const struct buffer *buffer, bool is_initialised);
// Runs one launch. Findings are printed on standard error. False: it did not run, or something was found.
bool simulation_launch(struct simulation *simulation, const struct sim_launch *launch);
// Lays out the arguments of a plan's launch and runs it. `twin`: the path of other code under the plan, which may lack the entry; NULL: the plan's own.
bool simulation_launch_plan(struct simulation *simulation, const struct plan_launch_value *value, const char *twin);

#endif

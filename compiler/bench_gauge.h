// Measures codes of one kernel on the same arguments: times on a GPU, counts in the simulator. What redc
// bench and redc tune share.
#ifndef RED_COMPILER_BENCH_GAUGE_H
#define RED_COMPILER_BENCH_GAUGE_H

#include "compiler/bench_gpu.h"
#include "compiler/run_program.h"
#include "compiler/run_sim.h"
#include "compiler/run_verify.h"

struct gauge {
  struct run_program program;
  struct run_options common; // --arg, --seed, --jobs
  bool is_simulated;
  uint32_t rounds;
  // From gauge_begin on:
  char device[128];                  // "NVIDIA H200, sm_90", or "simulator, sm_75"
  int64_t bytes_read, bytes_written; // by a launch at least: each element of a tensor once
  struct cuda_run cuda;
  struct gpu_clock clock;
  uint64_t *addresses;    // of the tensors, on a GPU
  struct buffer *initial; // outputs that the kernel reads, as they were; one a tensor
  bool is_open;
};

// What one code does.
struct measurement {
  const char *schedule; // "" for the compiler's own entry that has no name
  const char *entry;
  uint32_t launches;
  uint32_t grid[PLAN_MAX_LAUNCHES][3], block[PLAN_MAX_LAUNCHES][3];
  struct quantiles time;           // microseconds, of a GPU
  struct simulation_counts counts; // of the simulator
  // What tuning minimises: the median in microseconds; in the simulator sectors, plus a quarter of the warps'
  // instructions and of the shared memory's passes, over the part of the device that the blocks fill, plus
  // 1000 a launch.
  double cost;
};

// Options that both commands have: those of the compiler that choose code, --arg, --size, --kernel, --seed,
// --jobs, --device, --repeats. False: argv[*at] is none of them.
bool gauge_take_option(struct gauge *gauge, int argc, char **argv, int *at);
// Refuses options of redc that have no meaning for subcommand `name`, and a command line without a program.
void gauge_check_options(struct gauge *gauge, const char *name, bool has_output);
// Reads the program, finds its kernel, makes the arguments (`rand` for a tensor and 1 for a scalar that have
// none) and opens the device.
bool gauge_begin(struct gauge *gauge, const char *verb);
// Measures the kernel with these schedules in front of the program's (NULL: none). `expectation`, where not
// NULL, is what the outputs are compared with; of verify_begin. `is_quiet`: what keeps a code from running is
// not reported; wrong results and faults of the compiler are.
bool gauge_measure(struct gauge *gauge, const char *schedules, struct expectation *expectation, bool is_quiet,
                   struct measurement *result);
void gauge_end(struct gauge *gauge);

#endif

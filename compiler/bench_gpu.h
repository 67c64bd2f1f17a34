// Kernels on a GPU, timed by events: in turn, with a cold L2.
#ifndef RED_COMPILER_BENCH_GPU_H
#define RED_COMPILER_BENCH_GPU_H

#include "compiler/run_cuda.h"

// A kernel that is ready to be launched.
struct gpu_kernel {
  cu_module module;
  struct plan plan;
  struct plan_result *result; // what a launch does; in the run's arena
  cu_function functions[PLAN_MAX_LAUNCHES];
  cu_pointer workspace; // 0: none
  double *times;        // of gpu_time: microseconds, one a round
};

// Loads PTX with its plan, evaluated for `input`, and gives it the workspace that it needs. False after an
// error. gpu_kernel_free in any case.
bool gpu_kernel_load(struct cuda_run *run, struct gpu_kernel *kernel, const struct text *ptx,
                     const char *name, const struct plan_input *input);
// Starts its launches on the null stream.
bool gpu_kernel_start(struct cuda_run *run, struct gpu_kernel *kernel);
void gpu_kernel_free(struct cuda_run *run, struct gpu_kernel *kernel);

// What evicts everything from L2 (a kernel of red that reads eight times its bytes), and two events.
struct gpu_clock {
  cu_event begin, end;
  cu_pointer memory; // that is read, `bytes` of it
  int64_t bytes;
  struct gpu_kernel flush;
};
bool gpu_clock_begin(struct cuda_run *run, struct gpu_clock *clock);
void gpu_clock_end(struct cuda_run *run, struct gpu_clock *clock);

// Runs the kernels in turn, `rounds` times, after a round that does not count. While L2 is flushed in front
// of a launch the host is ahead, so that no time of the host's is in the figures.
bool gpu_time(struct cuda_run *run, struct gpu_clock *clock, struct gpu_kernel *const *kernels,
              uint32_t count, uint32_t rounds);

struct quantiles {
  double median, p20, p80, best;
};
struct quantiles quantiles_of(double *times, uint32_t count); // sorts them

// Compiles a kernel of this program's own, `rows` of `row` floats: "read" and "flush" write the sum of each row,
// "copy" all elements; what "flush" reads stays in L2 as that of any load does.
bool gpu_kernel_own(struct cuda_run *run, struct gpu_kernel *kernel, const char *name, int64_t rows,
                    int64_t row, cu_pointer from, cu_pointer to);

#endif

// Launches on a GPU, for redc run.
#ifndef RED_COMPILER_RUN_CUDA_H
#define RED_COMPILER_RUN_CUDA_H

#include "compiler/pipeline.h"
#include "compiler/run_buffer.h"
#include "runtime/driver.h"
#include "runtime/plan.h"

struct cuda_run {
  struct compilation *c; // its diagnostics and arena
  const struct driver *driver;
  cu_device device;
  cu_context before; // current when it began; made current again
  cu_module module;
  struct list mapped; // struct mapped_buffer
  int multiprocessors;
  bool has_context;
  bool keeps_context; // set behind cuda_run_begin: the primary context lives on for the next run of this process
};

// Opens device `ordinal` and makes its primary context current. False after an error; where there is no driver, a note says what may be done instead.
bool cuda_run_begin(struct cuda_run *run, struct compilation *c, int ordinal, const char *instead);
extern const char cuda_run_instead[]; // of what runs a program
// The newest target that the device runs.
const struct target *cuda_run_target(struct cuda_run *run);
bool cuda_run_load(struct cuda_run *run, const char *ptx);
// Copies a buffer, with the bytes around its elements, to the device, aligned as it is here. Returns the address of element (0, ..., 0), 0 after an
// error.
uint64_t cuda_run_map(struct cuda_run *run, const struct buffer *buffer);
// Launches and waits.
bool cuda_run_launch(struct cuda_run *run, const struct plan_launch_value *value);
// Copies every buffer back.
bool cuda_run_collect(struct cuda_run *run);
// Copies one buffer that was mapped: to the device, or back.
bool cuda_run_copy(struct cuda_run *run, const struct buffer *buffer, bool is_back);
// Reports the failure of a driver's call; returns false.
bool cuda_run_fail(struct cuda_run *run, const char *call, cu_result error);
// Whether the device takes more work from this process: a kernel's fault ends that.
bool cuda_run_is_sound(struct cuda_run *run);
void cuda_run_end(struct cuda_run *run);

#endif

// A program of which one kernel is compiled and launched on arguments: what redc run, bench and tune share.
#ifndef RED_COMPILER_RUN_PROGRAM_H
#define RED_COMPILER_RUN_PROGRAM_H

#include "compiler/run_kernel.h"
#include "runtime/plan.h"

struct run_program {
  struct compilation c; // to the stages: what the reference runs, and the names
  struct options options;
  const char *kernel_name; // --kernel; NULL: the only one
  struct list sizes;       // const char *: --size
  struct text *texts;      // of the inputs
  const struct ir_kernel *kernel;
  const struct ir_entry *entry; // its first, at the stages
  struct kernel_arguments arguments;
  int64_t multiprocessors; // of the device
  bool keeps_all;          // all entries are compiled, not those of the schedule alone that a launch of these arguments takes
  const char *notes;       // why entries that were not compiled were passed over, one a line
  struct text printed;     // for standard output
};

// Nothing read yet; the simulator's device, which stands for a large one.
void program_init(struct run_program *program);
void program_destroy(struct run_program *program);
// Reports an error; returns false.
bool program_refuse(struct run_program *program, enum diag_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Takes --kernel or --size. False: argv[*at] is neither.
bool program_take_option(struct run_program *program, int argc, char **argv, int *at);

// The steps, in this order; each is false after an error. `verb` says what is done with the kernel.
bool program_read(struct run_program *program);
bool program_find_kernel(struct run_program *program, const char *verb);
// PTX of the kernel; sizes are fixed only where a schedule needs it. `schedules`: text parsed in front of the
// program, or NULL. Prints the diagnostics of the compilation unless `is_quiet`.
bool program_compile(struct run_program *program, const char *schedules, bool is_quiet, struct text *ptx);
// Appends the compiler's own schedules of the program's kernels, as text.
bool program_own_schedules(struct run_program *program, struct text *out);
// What the plan evaluates: the buffers at their addresses on the device.
void program_plan_input(struct run_program *program, const uint64_t *addresses, struct plan_input *input);
// What no device may be asked for.
bool program_check_requirements(struct run_program *program);

#endif

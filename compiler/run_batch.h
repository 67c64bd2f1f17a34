// redc run --batch: many runs by a few worker processes, each of which keeps its device.
#ifndef RED_COMPILER_RUN_BATCH_H
#define RED_COMPILER_RUN_BATCH_H

#include <stdbool.h>

// What a worker keeps from one run to the next.
struct batch_session {
  bool is_lost; // the device takes no more work from this process: a new worker goes on
};

// Runs one case, argv as of redc run; returns its exit status.
typedef int batch_case(int argc, char **argv, struct batch_session *session);

// Whether the command line of redc run asks for a batch.
bool batch_is_asked(int argc, char **argv);
// Runs the whole batch. Returns the exit status: 1 where a case failed.
int batch_run(int argc, char **argv, batch_case *run_case);

#endif

// A libcuda.so.1 for tests: it counts and logs calls, fails where it is told to, and runs kernels in the
// simulator, whose device memory no host pointer reaches. RED_LIBCUDA names it. A test program may also link
// it, to control it with the functions below.
//
// It is strict where a driver is: no call before cuInit or after fork; contexts, streams and modules must
// exist and fit together; PTX newer than the driver, or for a newer GPU, does not load; what is unsafe during
// a capture fails and spoils the capture.
//
// FAKE_CUDA, words separated by spaces, sets it up for a whole process:
//   devices=2 arch=80 sms=108 driver=11040   what there is
//   fail=CALL:ERROR[:N]                      call N (1: the first, the default; 0: all) of CALL gives the
//   error log=FILE                                 each call is a line at the end of the file
#ifndef RED_TESTS_FAKE_H
#define RED_TESTS_FAKE_H

#include "runtime/driver.h"

#define FAKE_EXPORT __attribute__((visibility("default")))

// The nth call from now on (1: the next; 0: each) of `call`, such as "cuMemAlloc_v2", returns the error and
// does nothing else.
FAKE_EXPORT void fake_fail(const char *call, unsigned nth, cu_result error);
// How often `call` was called since fake_clear; NULL: all calls together.
FAKE_EXPORT unsigned fake_count(const char *call);
// The calls since fake_clear, one name a line. Lives until the next call of this function.
FAKE_EXPORT const char *fake_log(void);
// Forgets the log and planned failures. Contexts, memory and modules stay.
FAKE_EXPORT void fake_clear(void);
// What exists: contexts retained or created, modules, allocations, streams, links, graphs, events.
struct fake_live {
  unsigned retained, contexts, modules, allocations, streams, links, graphs, events;
};
FAKE_EXPORT struct fake_live fake_live(void);
// What the simulator found so far, one finding a line; "" where nothing. Lives until the next call.
FAKE_EXPORT const char *fake_findings(void);
// A setting by its word, as in FAKE_CUDA: fake_set("driver", 12000).
FAKE_EXPORT void fake_set(const char *name, int value);

// Calls of the driver that red itself does not use, for test programs.
typedef struct cu_graph_exec_opaque *cu_graph_exec;
FAKE_EXPORT cu_result cuCtxCreate_v2(cu_context *context, unsigned flags, cu_device device);
FAKE_EXPORT cu_result cuCtxDestroy_v2(cu_context context);
FAKE_EXPORT cu_result cuStreamBeginCapture_v2(cu_stream stream, enum cu_capture_mode mode);
FAKE_EXPORT cu_result cuStreamEndCapture(cu_stream stream, cu_graph *graph);
FAKE_EXPORT cu_result cuGraphInstantiateWithFlags(cu_graph_exec *exec, cu_graph graph,
                                                  unsigned long long flags);
FAKE_EXPORT cu_result cuGraphLaunch(cu_graph_exec exec, cu_stream stream);
FAKE_EXPORT cu_result cuGraphDestroy(cu_graph graph);
FAKE_EXPORT cu_result cuGraphExecDestroy(cu_graph_exec exec);

// The functions that red looks up.
#define X(member, symbol, parameters) FAKE_EXPORT cu_result fake_##member parameters __asm__(symbol);
DRIVER_FUNCTIONS(X)
DRIVER_OPTIONAL(X)
#undef X

#endif

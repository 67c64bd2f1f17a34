// What the fake driver keeps.
#ifndef RED_TESTS_FAKE_STATE_H
#define RED_TESTS_FAKE_STATE_H

#include "runtime/sim/sim.h"
#include "tests/fake/fake.h"

#include <pthread.h>
#include <stdbool.h>

enum { MAX_DEVICES = 8 };
enum { // CUresult
  FAKE_INVALID_VALUE = 1,
  FAKE_NOT_INITIALIZED = 3,
  FAKE_INVALID_DEVICE = 101,
  FAKE_INVALID_CONTEXT = 201,
  FAKE_INVALID_HANDLE = 400,
  FAKE_NOT_FOUND = 500,
  FAKE_LAUNCH_FAILED = 719,
  FAKE_CAPTURE_UNSUPPORTED = 900,
  FAKE_CAPTURE_INVALIDATED = 901,
  FAKE_CAPTURE_IMPLICIT = 906,
};

struct cu_context_opaque {
  cu_device device;
  bool is_primary, is_alive;
  unsigned retained; // primary
  cu_result sticky;  // what a kernel's fault left: every later call in the context gives it
  struct cu_context_opaque *next; // of those created
};
struct cu_module_opaque {
  struct cu_context_opaque *context;
  struct sim_module *sim;
  struct cu_function_opaque *functions;
};
struct cu_function_opaque {
  struct cu_module_opaque *module;
  const struct sim_entry *entry;
  int dynamic_shared;
  struct cu_function_opaque *next;
};
// One recorded launch or fill.
struct fake_work {
  struct cu_function_opaque *function; // NULL: a fill
  unsigned grid[3], block[3], shared;
  unsigned char *parameters;
  cu_pointer pointer;
  unsigned char value;
  size_t bytes;
  struct fake_work *next;
};
struct cu_graph_opaque {
  struct fake_work *first, **end;
  struct cu_graph_opaque *next;
};
struct cu_stream_opaque {
  struct cu_context_opaque *context;
  bool waits_for_null;
  unsigned long long id;
  enum cu_capture_status capture;
  enum cu_capture_mode mode;
  pthread_t capturer;
  struct cu_graph_opaque *graph;
  struct cu_stream_opaque *next;
};
struct cu_event_opaque {
  struct cu_context_opaque *context;
  bool is_recorded;
  double time; // of the device's clock
};
struct fake_allocation {
  cu_pointer start;
  size_t bytes;
  cu_device device;
  struct fake_allocation *next;
};

struct fake_state {
  pthread_mutex_t lock;
  int device_count, arch, multiprocessors, driver_version;
  struct sim_memory *memory;
  struct cu_context_opaque primary[MAX_DEVICES];
  struct fake_allocation *allocations;
  struct cu_stream_opaque *streams;
  struct cu_context_opaque *contexts; // created, also those destroyed
  struct cu_graph_opaque *graphs;     // and copies that can be launched; what a program does not destroy stays here
  struct fake_live live;
  unsigned long long next_id;
  double clock; // microseconds of work done: a microsecond a launch, and what its instructions and sectors take
};
extern struct fake_state fake;
extern _Thread_local struct cu_context_opaque *fake_current;

// Begins a call: logs it, and gives the error that was planned for it, or that comes of a missing cuInit.
// `needs` says what else must be there. Where the answer is 0 the lock is held, and fake_leave ends the call.
enum fake_needs { NEEDS_NOTHING, NEEDS_INIT, NEEDS_CONTEXT };
cu_result fake_enter(const char *call, enum fake_needs needs);
cu_result fake_leave(cu_result error);
void fake_initialise(void);
// Adds the findings of a launch.
void fake_keep_findings(const struct sim_report *report);

// Does work now, or, where the stream is captured, puts it into the graph.
cu_result fake_submit(cu_stream stream, const struct fake_work *work);
cu_result fake_do(const struct fake_work *work);
// The error of a call that is not allowed while a capture goes on that this thread must respect; the captures
// are spoilt by it.
cu_result fake_unsafe(void);
// 0 where the stream is one of the current context.
cu_result fake_check_stream(cu_stream stream);
// Is it a stream of the list, not one of the three that are no pointers?
bool fake_is_object(cu_stream stream);

#endif

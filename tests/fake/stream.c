// Streams, launches, captures and graphs of the fake driver. Work is done when it is submitted.
#include "tests/fake/state.h"

#include <stdlib.h>
#include <string.h>

#define ENTER(call, needs)                                                                                   \
  do {                                                                                                       \
    cu_result enter_error = fake_enter(call, needs);                                                         \
    if (enter_error) return enter_error;                                                                     \
  } while (0)

static _Thread_local enum cu_capture_mode thread_mode = CU_CAPTURE_GLOBAL;

bool fake_is_object(cu_stream stream) {
  return (uintptr_t)stream > 2;
}

static bool is_legacy(cu_stream stream) {
  return (uintptr_t)stream <= 1;
}

cu_result fake_check_stream(cu_stream stream) {
  if (!fake_is_object(stream)) return 0;
  struct cu_stream_opaque *at = fake.streams;
  while (at && at != stream) at = at->next;
  return at && at->context == fake_current ? 0 : FAKE_INVALID_HANDLE;
}

// A capture that the mode of this thread and its own forbid unsafe calls in.
static bool forbids(const struct cu_stream_opaque *stream) {
  if (stream->capture != CU_CAPTURE_ACTIVE) return false;
  bool is_mine = pthread_equal(stream->capturer, pthread_self());
  if (thread_mode == CU_CAPTURE_RELAXED) return false;
  if (stream->mode == CU_CAPTURE_RELAXED) return false;
  return is_mine || (thread_mode == CU_CAPTURE_GLOBAL && stream->mode == CU_CAPTURE_GLOBAL);
}

cu_result fake_unsafe(void) {
  cu_result error = 0;
  for (struct cu_stream_opaque *at = fake.streams; at; at = at->next) {
    if (!forbids(at)) continue;
    at->capture = CU_CAPTURE_INVALIDATED;
    error = FAKE_CAPTURE_UNSUPPORTED;
  }
  return error;
}

// The error of using the legacy stream while a stream that waits for it is captured.
static cu_result implicit(bool spoils) {
  cu_result error = 0;
  for (struct cu_stream_opaque *at = fake.streams; at; at = at->next) {
    if (at->capture == CU_CAPTURE_NONE || !at->waits_for_null || at->context != fake_current) continue;
    if (spoils) at->capture = CU_CAPTURE_INVALIDATED;
    error = FAKE_CAPTURE_IMPLICIT;
  }
  return error;
}

// --- Work

cu_result fake_do(const struct fake_work *work) {
  if (!work->function)
    return sim_fill(fake.memory, work->pointer, work->value, work->bytes) ? 0 : FAKE_INVALID_VALUE;
  struct sim_launch launch = {.entry = work->function->entry,
                              .grid = {work->grid[0], work->grid[1], work->grid[2]},
                              .block = {work->block[0], work->block[1], work->block[2]},
                              .dynamic_shared = work->shared,
                              .parameters = work->parameters,
                              .parameter_bytes = work->function->entry->parameter_bytes};
  struct sim_report report;
  enum sim_result result = sim_launch(work->function->module->sim, fake.memory, &launch, NULL, &report);
  if (result != SIM_OK) {
    fake_keep_findings(&report);
    work->function->module->context->sticky = FAKE_LAUNCH_FAILED;
  }
  const struct sim_stats *stats = &report.stats;
  fake.clock += 1 + 1e-3 * (double)(stats->warp_instructions + stats->global_sectors_loaded + stats->global_sectors_stored);
  sim_report_free(&report);
  return 0; // as a driver: the next call says it
}

static void free_graph(struct cu_graph_opaque *graph) {
  for (struct fake_work *at = graph->first, *next; at; at = next) {
    next = at->next;
    free(at->parameters);
    free(at);
  }
  struct cu_graph_opaque **link = &fake.graphs;
  while (*link != graph) link = &(*link)->next;
  *link = graph->next;
  free(graph);
  fake.live.graphs--;
}

static struct cu_graph_opaque *make_graph(void) {
  struct cu_graph_opaque *graph = calloc(1, sizeof *graph);
  if (!graph) abort();
  graph->end = &graph->first;
  graph->next = fake.graphs;
  fake.graphs = graph;
  fake.live.graphs++;
  return graph;
}

static void record(struct cu_graph_opaque *graph, const struct fake_work *work) {
  struct fake_work *copy = malloc(sizeof *copy);
  if (!copy) abort();
  *copy = *work;
  copy->next = NULL;
  if (work->function) {
    size_t bytes = work->function->entry->parameter_bytes;
    copy->parameters = malloc(bytes + 1);
    if (!copy->parameters) abort();
    memcpy(copy->parameters, work->parameters, bytes);
  }
  *graph->end = copy;
  graph->end = &copy->next;
}

cu_result fake_submit(cu_stream stream, const struct fake_work *work) {
  cu_result error = fake_check_stream(stream);
  if (!error && is_legacy(stream)) error = implicit(true);
  if (error) return error;
  if (!fake_is_object(stream) || stream->capture == CU_CAPTURE_NONE) return fake_do(work);
  if (stream->capture == CU_CAPTURE_INVALIDATED) return FAKE_CAPTURE_INVALIDATED;
  record(stream->graph, work);
  return 0;
}

static cu_result launch(cu_function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, cu_stream stream, void **parameters, void **extra) {
  const struct sim_entry *entry = function->entry;
  bool is_legal = !extra && gx && gy && gz && bx && by && bz && gx <= INT32_MAX && gy <= 65535 &&
                  gz <= 65535 && (unsigned long long)bx * by * bz <= 1024 &&
                  (int)shared <= function->dynamic_shared;
  if (!is_legal) return FAKE_INVALID_VALUE;
  if (function->module->context != fake_current) return FAKE_INVALID_HANDLE;
  struct fake_work work = {
      function, {gx, gy, gz}, {bx, by, bz}, shared, calloc(1, entry->parameter_bytes + 1), 0, 0, 0, NULL};
  if (!work.parameters) return CU_ERROR_OUT_OF_MEMORY;
  for (size_t i = 0; i < entry->parameter_count; i++)
    memcpy(work.parameters + entry->parameters[i].offset, parameters[i], entry->parameters[i].size);
  cu_result error = fake_submit(stream, &work);
  free(work.parameters);
  return error;
}

cu_result fake_launch(cu_function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared, cu_stream stream, void **parameters, void **extra) {
  ENTER("cuLaunchKernel", NEEDS_CONTEXT);
  return fake_leave(launch(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra));
}

#ifndef FAKE_OLD
// The one attribute that red gives lets a launch begin before the one in front of it has ended, from sm_90
// on; here none does.
cu_result fake_launch_ex(const struct cu_launch_config *config, cu_function function, void **parameters,
                         void **extra) {
  ENTER("cuLaunchKernelEx", NEEDS_CONTEXT);
  for (unsigned i = 0; i < config->attribute_count; i++)
    if (config->attributes[i].id != CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION || fake.arch < 90)
      return fake_leave(FAKE_INVALID_VALUE);
  const unsigned *grid = config->grid, *block = config->block;
  return fake_leave(launch(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], config->shared,
                           config->stream, parameters, extra));
}
#endif

cu_result fake_fill(cu_pointer pointer, unsigned char value, size_t bytes, cu_stream stream) {
  ENTER("cuMemsetD8Async", NEEDS_CONTEXT);
  return fake_leave(
      fake_submit(stream, &(struct fake_work){.pointer = pointer, .value = value, .bytes = bytes}));
}

// --- Streams

cu_result fake_stream_create(cu_stream *stream, unsigned flags) {
  ENTER("cuStreamCreate", NEEDS_CONTEXT);
  struct cu_stream_opaque *made = calloc(1, sizeof *made);
  if (!made) return fake_leave(CU_ERROR_OUT_OF_MEMORY);
  *made = (struct cu_stream_opaque){.context = fake_current,
                                    .waits_for_null = !(flags & CU_STREAM_NON_BLOCKING),
                                    .id = fake.next_id++,
                                    .next = fake.streams};
  fake.streams = *stream = made;
  fake.live.streams++;
  return fake_leave(0);
}

cu_result fake_stream_destroy(cu_stream stream) {
  ENTER("cuStreamDestroy_v2", NEEDS_CONTEXT);
  cu_result error = fake_is_object(stream) ? fake_check_stream(stream) : FAKE_INVALID_HANDLE;
  if (error) return fake_leave(error);
  struct cu_stream_opaque **at = &fake.streams;
  while (*at != stream) at = &(*at)->next;
  *at = stream->next;
  if (stream->graph) free_graph(stream->graph);
  free(stream);
  fake.live.streams--;
  return fake_leave(0);
}

cu_result fake_stream_synchronize(cu_stream stream) {
  ENTER("cuStreamSynchronize", NEEDS_CONTEXT);
  cu_result error = fake_check_stream(stream);
  if (!error && fake_is_object(stream) && stream->capture != CU_CAPTURE_NONE) {
    stream->capture = CU_CAPTURE_INVALIDATED;
    error = FAKE_CAPTURE_UNSUPPORTED;
  }
  if (!error && is_legacy(stream)) error = implicit(true);
  return fake_leave(error);
}

#ifndef FAKE_OLD
cu_result fake_stream_id(cu_stream stream, unsigned long long *id) {
  ENTER("cuStreamGetId", NEEDS_CONTEXT);
  cu_result error = fake_check_stream(stream);
  if (!error && fake_is_object(stream) && stream->capture != CU_CAPTURE_NONE) error = FAKE_CAPTURE_UNSUPPORTED; // as drivers do
  if (!error)
    *id = fake_is_object(stream) ? stream->id
          : is_legacy(stream)    ? 1
                                 : 2 + (unsigned long long)(uintptr_t)&thread_mode;
  return fake_leave(error);
}

cu_result fake_stream_is_capturing(cu_stream stream, enum cu_capture_status *status) {
  ENTER("cuStreamIsCapturing", NEEDS_CONTEXT);
  cu_result error = fake_check_stream(stream);
  if (!error && is_legacy(stream)) error = implicit(false);
  if (!error) *status = fake_is_object(stream) ? stream->capture : CU_CAPTURE_NONE;
  return fake_leave(error);
}

cu_result fake_stream_capture(cu_stream stream, enum cu_capture_status *status, uint64_t *id, cu_graph *graph,
                              const void **dependencies, size_t *count) {
  ENTER("cuStreamGetCaptureInfo_v2", NEEDS_CONTEXT);
  cu_result error = fake_check_stream(stream);
  if (!error && is_legacy(stream)) error = implicit(false);
  if (error) return fake_leave(error);
  *status = fake_is_object(stream) ? stream->capture : CU_CAPTURE_NONE;
  if (*status == CU_CAPTURE_ACTIVE) {
    if (id) *id = (uint64_t)(uintptr_t)stream->graph;
    if (graph) *graph = stream->graph;
    if (dependencies) *dependencies = NULL;
    if (count) *count = 0;
  }
  return fake_leave(0);
}

cu_result fake_capture_mode(enum cu_capture_mode *mode) {
  ENTER("cuThreadExchangeStreamCaptureMode", NEEDS_INIT);
  enum cu_capture_mode before = thread_mode;
  thread_mode = *mode;
  *mode = before;
  return fake_leave(0);
}
#endif

// --- Captures and graphs

struct cu_graph_exec_opaque {
  struct cu_graph_opaque copy; // first, so that one is the other
};

cu_result cuStreamBeginCapture_v2(cu_stream stream, enum cu_capture_mode mode) {
  ENTER("cuStreamBeginCapture_v2", NEEDS_CONTEXT);
  cu_result error = fake_is_object(stream) ? fake_check_stream(stream) : FAKE_CAPTURE_UNSUPPORTED;
  if (!error && stream->capture != CU_CAPTURE_NONE) error = FAKE_INVALID_VALUE;
  if (error) return fake_leave(error);
  stream->capture = CU_CAPTURE_ACTIVE;
  stream->mode = mode;
  stream->capturer = pthread_self();
  stream->graph = make_graph();
  return fake_leave(0);
}

cu_result cuStreamEndCapture(cu_stream stream, cu_graph *graph) {
  ENTER("cuStreamEndCapture", NEEDS_CONTEXT);
  *graph = NULL;
  cu_result error = fake_is_object(stream) ? fake_check_stream(stream) : FAKE_INVALID_HANDLE;
  if (!error && stream->capture == CU_CAPTURE_NONE) error = FAKE_INVALID_VALUE;
  if (error) return fake_leave(error);
  bool is_whole = stream->capture == CU_CAPTURE_ACTIVE;
  if (is_whole)
    *graph = stream->graph;
  else
    free_graph(stream->graph);
  stream->graph = NULL;
  stream->capture = CU_CAPTURE_NONE;
  return fake_leave(is_whole ? 0 : FAKE_CAPTURE_INVALIDATED);
}

cu_result cuGraphInstantiateWithFlags(cu_graph_exec *exec, cu_graph graph, unsigned long long flags) {
  ENTER("cuGraphInstantiateWithFlags", NEEDS_CONTEXT);
  if (flags || !graph) return fake_leave(FAKE_INVALID_VALUE);
  struct cu_graph_opaque *copy = make_graph();
  for (const struct fake_work *at = graph->first; at; at = at->next) record(copy, at);
  *exec = (struct cu_graph_exec_opaque *)copy;
  return fake_leave(0);
}

cu_result cuGraphLaunch(cu_graph_exec exec, cu_stream stream) {
  ENTER("cuGraphLaunch", NEEDS_CONTEXT);
  cu_result error = 0;
  for (const struct fake_work *at = exec->copy.first; at && !error; at = at->next)
    error = fake_submit(stream, at);
  return fake_leave(error);
}

cu_result cuGraphDestroy(cu_graph graph) {
  ENTER("cuGraphDestroy", NEEDS_INIT);
  free_graph(graph);
  return fake_leave(0);
}

cu_result cuGraphExecDestroy(cu_graph_exec exec) {
  ENTER("cuGraphExecDestroy", NEEDS_INIT);
  free_graph(&exec->copy);
  return fake_leave(0);
}

// --- Events: of a clock that runs while work is done

cu_result fake_event_create(cu_event *event, unsigned flags) {
  ENTER("cuEventCreate", NEEDS_CONTEXT);
  struct cu_event_opaque *made = calloc(1, sizeof *made);
  if (flags || !made) {
    free(made);
    return fake_leave(FAKE_INVALID_VALUE);
  }
  made->context = fake_current;
  fake.live.events++;
  *event = made;
  return fake_leave(0);
}

cu_result fake_event_destroy(cu_event event) {
  ENTER("cuEventDestroy_v2", NEEDS_CONTEXT);
  free(event);
  fake.live.events--;
  return fake_leave(0);
}

cu_result fake_event_record(cu_event event, cu_stream stream) {
  ENTER("cuEventRecord", NEEDS_CONTEXT);
  cu_result error = event->context == fake_current ? fake_check_stream(stream) : FAKE_INVALID_HANDLE;
  if (!error && is_legacy(stream)) error = implicit(true);
  if (error) return fake_leave(error);
  event->is_recorded = true;
  event->time = fake.clock;
  return fake_leave(0);
}

cu_result fake_event_synchronize(cu_event event) {
  ENTER("cuEventSynchronize", NEEDS_CONTEXT);
  cu_result error = event->context == fake_current ? fake_unsafe() : FAKE_INVALID_HANDLE;
  return fake_leave(error);
}

cu_result fake_event_elapsed(float *milliseconds, cu_event begin, cu_event end) {
  ENTER("cuEventElapsedTime", NEEDS_CONTEXT);
  if (!begin->is_recorded || !end->is_recorded) return fake_leave(FAKE_INVALID_HANDLE);
  *milliseconds = (float)((end->time - begin->time) * 1e-3);
  return fake_leave(0);
}

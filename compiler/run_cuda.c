#include "compiler/run_cuda.h"

#include <string.h>

enum { PAGE = 4096 };
static const struct range nowhere;

struct mapped_buffer {
  const struct buffer *buffer;
  cu_pointer allocation, base; // base: of buffer->memory, so that buffer->start lies on a page
};

bool cuda_run_fail(struct cuda_run *run, const char *call, cu_result error) {
  char text[512];
  driver_error_text(run->driver, call, error, text, sizeof text);
  diag_error(&run->c->diag, ERROR_TOOL, nowhere, "%s", text);
  return false;
}

#define CALL(run, member, ...)                                                                                       \
  do {                                                                                                               \
    cu_result error_ = (run)->driver->member(__VA_ARGS__);                                                           \
    if (error_) return cuda_run_fail((run), #member, error_);                                                                 \
  } while (0)

const char cuda_run_instead[] = "--device=sim runs the same PTX without a GPU";

bool cuda_run_begin(struct cuda_run *run, struct compilation *c, int ordinal, const char *instead) {
  const char *why;
  *run = (struct cuda_run){.c = c, .driver = driver_open(&why)};
  if (!run->driver) {
    diag_error(&c->diag, ERROR_TOOL, nowhere, "%s", why);
    diag_note(&c->diag, nowhere, "%s", instead);
    return false;
  }
  int count = 0;
  CALL(run, device_count, &count);
  if (ordinal >= count) {
    diag_error(&c->diag, ERROR_TOOL, nowhere, "there is no CUDA device %d; the driver sees %d", ordinal, count);
    return false;
  }
  cu_context primary;
  CALL(run, device_get, &run->device, ordinal);
  CALL(run, device_attribute, &run->multiprocessors, CU_MULTIPROCESSORS, run->device);
  CALL(run, context_current, &run->before);
  CALL(run, primary_retain, &primary, run->device);
  run->has_context = true;
  CALL(run, context_set, primary);
  return true;
}

const struct target *cuda_run_target(struct cuda_run *run) {
  int major = 0, minor = 0;
  const struct target *best = NULL;
  cu_result error = run->driver->device_attribute(&major, CU_MAJOR, run->device);
  if (!error) error = run->driver->device_attribute(&minor, CU_MINOR, run->device);
  if (error) {
    cuda_run_fail(run, "cuDeviceGetAttribute", error);
    return NULL;
  }
  for (const struct target *target = target_table(); target->name; target++)
    if ((int)target->sm <= 10 * major + minor) best = target;
  if (!best) diag_error(&run->c->diag, ERROR_TARGET, nowhere, "the device is an sm_%d%d, older than every target", major, minor);
  return best;
}

bool cuda_run_load(struct cuda_run *run, const char *ptx) {
  enum { LOG_BYTES = 4096 };
  char *log = arena_alloc(&run->c->arena, LOG_BYTES);
  enum cu_jit_option options[] = {CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BYTES};
  void *values[] = {log, (void *)(uintptr_t)LOG_BYTES};
  cu_result error = run->driver->module_load(&run->module, ptx, 2, options, values);
  if (!error) return true;
  run->module = NULL;
  cuda_run_fail(run, "cuModuleLoadDataEx", error);
  if (*log) diag_note(&run->c->diag, nowhere, "%s", log);
  return false;
}

uint64_t cuda_run_map(struct cuda_run *run, const struct buffer *buffer) {
  struct mapped_buffer *mapped = arena_new(&run->c->arena, struct mapped_buffer);
  mapped->buffer = buffer;
  cu_result error = run->driver->alloc(&mapped->allocation, buffer->memory_bytes + PAGE);
  if (error) {
    cuda_run_fail(run, "cuMemAlloc_v2", error);
    return 0;
  }
  uint64_t lead = (uint64_t)(buffer->start - buffer->memory);
  uint64_t start = (mapped->allocation + lead + PAGE - 1) & ~(uint64_t)(PAGE - 1);
  mapped->base = start - lead;
  list_push(&run->c->arena, &run->mapped, mapped);
  error = run->driver->copy_in(mapped->base, buffer->memory, buffer->memory_bytes);
  if (error) {
    cuda_run_fail(run, "cuMemcpyHtoD_v2", error);
    return 0;
  }
  return start + (uint64_t)(buffer_data(buffer) - buffer->start);
}

bool cuda_run_launch(struct cuda_run *run, const struct plan_launch_value *value) {
  enum { STATIC_LIMIT = 48 * 1024 };
  cu_function function;
  CALL(run, module_function, &function, run->module, value->launch->function);
  if (value->shared > STATIC_LIMIT) CALL(run, function_set, function, CU_FUNCTION_DYNAMIC_SHARED, (int)value->shared);
  void *parameters[PLAN_MAX_ARGUMENTS + 1];
  for (uint32_t i = 0; i < value->launch->argument_count; i++) parameters[i] = (void *)(uintptr_t)&value->arguments[i];
  cu_result error = driver_launch(run->driver, function, value, NULL, parameters);
  if (error) return cuda_run_fail(run, "launch", error);
  CALL(run, synchronize);
  return true;
}

bool cuda_run_collect(struct cuda_run *run) {
  for (uint32_t i = 0; i < run->mapped.count; i++) {
    struct mapped_buffer *mapped = run->mapped.at[i];
    CALL(run, copy_out, mapped->buffer->memory, mapped->base, mapped->buffer->memory_bytes);
  }
  return true;
}

bool cuda_run_copy(struct cuda_run *run, const struct buffer *buffer, bool is_back) {
  for (uint32_t i = 0; i < run->mapped.count; i++) {
    struct mapped_buffer *mapped = run->mapped.at[i];
    if (mapped->buffer != buffer) continue;
    if (is_back) CALL(run, copy_out, buffer->memory, mapped->base, buffer->memory_bytes);
    else CALL(run, copy_in, mapped->base, buffer->memory, buffer->memory_bytes);
  }
  return true;
}

bool cuda_run_is_sound(struct cuda_run *run) {
  return !run->has_context || run->driver->synchronize() == 0;
}

void cuda_run_end(struct cuda_run *run) {
  if (!run->driver) return;
  for (uint32_t i = 0; i < run->mapped.count; i++) run->driver->free(list_at(&run->mapped, struct mapped_buffer, i)->allocation);
  if (run->module) run->driver->module_unload(run->module);
  if (!run->has_context) return;
  run->driver->context_set(run->before);
  if (!run->keeps_context) run->driver->primary_release(run->device);
}

// GPUs, through the driver.
#include "runtime/arguments.h"
#include "runtime/cache.h"
#include "runtime/driver.h"
#include "runtime/repeat.h"

#include "red_version.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOG_BYTES = 8192, STATIC_SHARED_LIMIT = 48 * 1024 };

struct cuda {
  const struct driver *driver;
  cu_device device;
  cu_context context;
  bool is_primary; // retained here, to be released
  int version;
};

static struct cuda *cuda_of(const struct red_device *device) {
  return device->state;
}

static red_error fail(const struct driver *driver, const char *call, cu_result error) {
  char text[1024];
  driver_error_text(driver, call, error, text, sizeof text);
  return error_set_driver(error, text);
}

// ---- Contexts

// What was current before; `is_other`: it was another context than the device's.
struct entered {
  cu_context before;
  bool is_other;
};

static red_error enter(const struct cuda *cuda, struct entered *entered) {
  cu_result error = cuda->driver->context_current(&entered->before);
  if (error) return fail(cuda->driver, "cuCtxGetCurrent", error);
  entered->is_other = entered->before != cuda->context;
  if (!entered->is_other) return RED_OK;
  error = cuda->driver->context_set(cuda->context);
  return error ? fail(cuda->driver, "cuCtxSetCurrent", error) : RED_OK;
}

static void leave(const struct cuda *cuda, const struct entered *entered) {
  if (entered->is_other) cuda->driver->context_set(entered->before);
}

// Between these, work that a capture in this thread would forbid is allowed: it belongs to no stream that is captured.
static red_error enter_relaxed(const struct cuda *cuda, struct entered *entered, enum cu_capture_mode *mode) {
  red_error error = enter(cuda, entered);
  *mode = CU_CAPTURE_RELAXED;
  if (!error && cuda->driver->capture_mode) cuda->driver->capture_mode(mode);
  return error;
}

static void leave_relaxed(const struct cuda *cuda, const struct entered *entered, enum cu_capture_mode *mode) {
  if (cuda->driver->capture_mode) cuda->driver->capture_mode(mode);
  leave(cuda, entered);
}

// Runs a call of the driver in the device's context and turns its result into an error.
#define IN_CONTEXT(cuda, symbol, expression)                                                                                         \
  do {                                                                                                                               \
    struct entered entered_;                                                                                                         \
    enum cu_capture_mode mode_;                                                                                                      \
    red_error entering_ = enter_relaxed((cuda), &entered_, &mode_);                                                                  \
    if (entering_) return entering_;                                                                                                 \
    cu_result result_ = (expression);                                                                                                \
    leave_relaxed((cuda), &entered_, &mode_);                                                                                        \
    return result_ ? fail((cuda)->driver, symbol, result_) : RED_OK;                                                                 \
  } while (0)

// ---- Memory and streams

static red_error cuda_alloc(struct red_device *device, size_t bytes, void **pointer) {
  struct cuda *cuda = cuda_of(device);
  cu_pointer address = 0;
  struct entered entered;
  enum cu_capture_mode mode;
  red_error error = enter_relaxed(cuda, &entered, &mode);
  if (error) return error;
  cu_result result = cuda->driver->alloc(&address, bytes);
  leave_relaxed(cuda, &entered, &mode);
  if (result == CU_ERROR_OUT_OF_MEMORY) return error_set(RED_ERROR_MEMORY, "%s has no room for %zu bytes", device->name, bytes);
  if (result) return fail(cuda->driver, "cuMemAlloc_v2", result);
  *pointer = (void *)(uintptr_t)address;
  return RED_OK;
}

static red_error cuda_free(struct red_device *device, void *pointer) {
  struct cuda *cuda = cuda_of(device);
  IN_CONTEXT(cuda, "cuMemFree_v2", cuda->driver->free((cu_pointer)(uintptr_t)pointer));
}

static red_error cuda_copy_in(struct red_device *device, void *to, const void *from, size_t bytes) {
  struct cuda *cuda = cuda_of(device);
  IN_CONTEXT(cuda, "cuMemcpyHtoD_v2", cuda->driver->copy_in((cu_pointer)(uintptr_t)to, from, bytes));
}

static red_error cuda_copy_out(struct red_device *device, void *to, const void *from, size_t bytes) {
  struct cuda *cuda = cuda_of(device);
  IN_CONTEXT(cuda, "cuMemcpyDtoH_v2", cuda->driver->copy_out(to, (cu_pointer)(uintptr_t)from, bytes));
}

static red_error cuda_zero(struct red_device *device, red_stream stream, void *pointer, size_t bytes) {
  struct cuda *cuda = cuda_of(device);
  IN_CONTEXT(cuda, "cuMemsetD8Async", cuda->driver->fill((cu_pointer)(uintptr_t)pointer, 0, bytes, (cu_stream)stream));
}

static red_error cuda_stream_create(struct red_device *device, red_stream *stream) {
  struct cuda *cuda = cuda_of(device);
  IN_CONTEXT(cuda, "cuStreamCreate", cuda->driver->stream_create((cu_stream *)stream, CU_STREAM_NON_BLOCKING));
}

static red_error cuda_stream_destroy(struct red_device *device, red_stream stream) {
  struct cuda *cuda = cuda_of(device);
  IN_CONTEXT(cuda, "cuStreamDestroy_v2", cuda->driver->stream_destroy((cu_stream)stream));
}

static red_error cuda_synchronize(struct red_device *device, red_stream stream) {
  struct cuda *cuda = cuda_of(device);
  IN_CONTEXT(cuda, "cuStreamSynchronize", cuda->driver->stream_synchronize((cu_stream)stream));
}

// A number that no other thread of the process has or had.
static uint64_t thread_number(void) {
  static _Atomic uint64_t last;
  static _Thread_local uint64_t number;
  if (!number) number = atomic_fetch_add(&last, 1) + 1;
  return number;
}

static red_error query_stream(const struct cuda *cuda, cu_stream stream, struct stream_state *state) {
  const struct driver *driver = cuda->driver;
  enum cu_capture_status status = CU_CAPTURE_NONE;
  uint64_t capture = 0;
  unsigned long long id = 0;
  cu_result error = 0;
  state->id = state->handle = (uint64_t)(uintptr_t)stream;
  state->capture = 0;
  // The legacy stream cannot be captured, and must not be asked while another stream is.
  if (!stream || stream == CU_STREAM_LEGACY) {
    state->id = state->handle = 1; // as drivers number it
    return RED_OK;
  }
  if (stream == CU_STREAM_PER_THREAD) // one handle, a stream for each thread
    state->id = state->handle = UINT64_C(1) << 63 | thread_number();
  if (driver->stream_capture) {
    error = driver->stream_capture(stream, &status, &capture, NULL, NULL, NULL);
    if (error) return fail(driver, "cuStreamGetCaptureInfo_v2", error);
  } else if (driver->stream_is_capturing) {
    error = driver->stream_is_capturing(stream, &status);
    if (error) return fail(driver, "cuStreamIsCapturing", error);
  }
  if (status != CU_CAPTURE_NONE) { // its id may not be asked for
    state->capture = capture ? capture : 1;
  } else if (stream != CU_STREAM_PER_THREAD && driver->stream_id) {
    error = driver->stream_id(stream, &id);
    if (error) return fail(driver, "cuStreamGetId", error);
    state->id = id;
  }
  return RED_OK;
}

static red_error cuda_stream_state(struct red_device *device, red_stream stream, struct stream_state *state) {
  const struct cuda *cuda = cuda_of(device);
  struct entered entered;
  red_error error = enter(cuda, &entered);
  if (error) return error;
  error = query_stream(cuda, (cu_stream)stream, state);
  leave(cuda, &entered);
  return error;
}

// ---- Which device a pointer belongs to

static red_error check_pointer(const struct red_device *device, const struct cuda *cuda, const char *name, cu_pointer address) {
  unsigned type = 0, managed = 0;
  int ordinal = device->info.ordinal;
  cu_result error = cuda->driver->pointer_get(&type, CU_POINTER_MEMORY_TYPE, address);
  if (error && error != CU_ERROR_INVALID_VALUE) return fail(cuda->driver, "cuPointerGetAttribute", error);
  if (error) return error_set(RED_ERROR_WRONG_DEVICE, "%s: the driver knows no memory at 0x%" PRIx64 "; the kernel runs on %s", name, address, device->name);
  if (type != CU_MEMORY_DEVICE) return RED_OK; // pinned host memory
  if (!cuda->driver->pointer_get(&managed, CU_POINTER_IS_MANAGED, address) && managed) return RED_OK;
  error = cuda->driver->pointer_get(&ordinal, CU_POINTER_ORDINAL, address);
  if (error) return fail(cuda->driver, "cuPointerGetAttribute", error);
  if (ordinal == device->info.ordinal) return RED_OK;
  return error_set(RED_ERROR_WRONG_DEVICE, "%s: the tensor lies on cuda:%d, the kernel runs on %s", name, ordinal, device->name);
}

static red_error cuda_check_pointer(struct red_device *device, const char *name, uint64_t address) {
  const struct cuda *cuda = cuda_of(device);
  struct entered entered;
  red_error error = enter(cuda, &entered);
  if (error) return error;
  error = check_pointer(device, cuda, name, address);
  leave(cuda, &entered);
  return error;
}

// ---- Loading

// The number behind a directive of the PTX: "7.8" of .version, "90" of .target sm_90; "?" where there is none. `text` has room for `bytes`.
static const char *directive(const char *ptx, const char *name, char *text, size_t bytes) {
  const char *found = strstr(ptx, name);
  size_t length = found ? strspn(found + strlen(name), "0123456789.") : 0;
  snprintf(text, bytes, "%.*s", length ? (int)length : 1, length ? found + strlen(name) : "?");
  return text;
}

// Which code and which GPU do not fit together, for the errors that are about this.
static void append_versions(const struct red_device *device, const struct variant *variant, cu_result error, char *text, size_t bytes) {
  char version[16], target[16];
  size_t used = strlen(text);
  if (error != CU_ERROR_NO_BINARY_FOR_GPU && error != CU_ERROR_INVALID_PTX && error != CU_ERROR_UNSUPPORTED_PTX_VERSION) return;
  snprintf(text + used, bytes - used, "; the code is PTX %s for sm_%s, %s is an sm_%d", directive(variant->ptx, "\n.version ", version, sizeof version),
           directive(variant->ptx, "\n.target sm_", target, sizeof target), device->name, device->info.arch);
}

// PTX to a cubin, by the driver's linker. *cubin is of malloc.
static red_error link_ptx(const struct red_device *device, const struct variant *variant, void **cubin, size_t *bytes) {
  const struct driver *driver = cuda_of(device)->driver;
  char log[LOG_BYTES] = "";
  enum cu_jit_option options[] = {CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BYTES};
  void *values[] = {log, (void *)(uintptr_t)sizeof log};
  cu_link linker = NULL;
  void *image = NULL;
  const char *call = "cuLinkCreate_v2";
  cu_result error = driver->link_create(2, options, values, &linker);
  if (error) return fail(driver, call, error);
  call = "cuLinkAddData_v2";
  error = driver->link_add(linker, CU_JIT_INPUT_PTX, variant->ptx, variant->ptx_bytes + 1, variant->name, 0, NULL, NULL);
  if (!error) {
    call = "cuLinkComplete";
    error = driver->link_complete(linker, &image, bytes);
  }
  *cubin = error ? NULL : malloc(*bytes + 1);
  if (*cubin) memcpy(*cubin, image, *bytes);
  driver->link_destroy(linker);
  if (!error) return *cubin ? RED_OK : error_memory();
  char text[1024 + LOG_BYTES];
  driver_error_text(driver, call, error, text, 1024);
  append_versions(device, variant, error, text, 1024);
  size_t used = strlen(text);
  if (*log) snprintf(text + used, sizeof text - used, "\n%s: %s", variant->name, log);
  return error_set_driver(error, text);
}

// The cubin of a variant: from the disk, or linked and put there.
static red_error find_cubin(const struct red_device *device, const struct variant *variant, void **cubin, size_t *bytes) {
  const struct cuda *cuda = cuda_of(device);
  const struct red_cache_field fields[] = {
      {"cubin", 5},
      {RED_VERSION, strlen(RED_VERSION)},
      {&device->info.arch, sizeof device->info.arch},
      {&cuda->version, sizeof cuda->version},
      {variant->ptx, variant->ptx_bytes},
  };
  const struct red_cache_key key = {fields, sizeof fields / sizeof *fields};
  if (red_cache_get(&key, cubin, bytes) == 0) return RED_OK;
  red_error error = link_ptx(device, variant, cubin, bytes);
  if (!error) red_cache_put(&key, *cubin, *bytes);
  return error;
}

static void cuda_unload(struct red_device *device, struct module *module) {
  const struct cuda *cuda = cuda_of(device);
  struct entered entered;
  enum cu_capture_mode mode;
  if (module->handle && !enter_relaxed(cuda, &entered, &mode)) {
    cuda->driver->synchronize();
    cuda->driver->module_unload(module->handle);
    leave_relaxed(cuda, &entered, &mode);
  }
  free(module->functions);
  free(module);
}

// Dynamic shared memory beyond what every kernel may have is allowed once, here: as much as the device has.
static red_error allow_shared(const struct red_device *device, const struct plan_launch *launch, cu_function function) {
  const struct driver *driver = cuda_of(device)->driver;
  int fixed = 0;
  const struct plan_expr *shared = &launch->shared;
  if (!shared->count || (shared->count == 1 && shared->codes[0].op == PLAN_OP_CONST && shared->codes[0].operand == 0)) return RED_OK;
  cu_result error = driver->function_get(&fixed, CU_FUNCTION_STATIC_SHARED, function);
  if (error) return fail(driver, "cuFuncGetAttribute", error);
  if (device->info.shared - fixed <= STATIC_SHARED_LIMIT) return RED_OK;
  error = driver->function_set(function, CU_FUNCTION_DYNAMIC_SHARED, (int)device->info.shared - fixed);
  return error ? fail(driver, "cuFuncSetAttribute", error) : RED_OK;
}

static red_error find_functions(const struct red_device *device, const struct variant *variant, struct module *module) {
  const struct driver *driver = cuda_of(device)->driver;
  const struct plan *plan = &variant->plan;
  uint32_t number = 0;
  for (uint32_t k = 0; k < plan->kernel_count; k++)
    for (uint32_t e = 0; e < plan->kernels[k].entry_count; e++)
      for (uint32_t l = 0; l < plan->kernels[k].entries[e].launch_count; l++) {
        const struct plan_launch *launch = &plan->kernels[k].entries[e].launches[l];
        cu_function function;
        cu_result result = driver->module_function(&function, module->handle, launch->function);
        if (result) return fail(driver, "cuModuleGetFunction", result);
        red_error error = allow_shared(device, launch, function);
        if (error) return error;
        module->functions[number++] = function;
      }
  return RED_OK;
}

static red_error load_cubin(const struct red_device *device, const struct variant *variant, struct module *module) {
  const struct driver *driver = cuda_of(device)->driver;
  void *cubin;
  size_t bytes;
  red_error error = find_cubin(device, variant, &cubin, &bytes);
  if (error) return error;
  cu_module handle = NULL;
  cu_result result = driver->module_load(&handle, cubin, 0, NULL, NULL);
  free(cubin);
  if (result) return fail(driver, "cuModuleLoadDataEx", result);
  module->handle = handle;
  return find_functions(device, variant, module);
}

static red_error cuda_load(struct red_device *device, const struct variant *variant, struct module **out) {
  const struct cuda *cuda = cuda_of(device);
  struct entered entered;
  enum cu_capture_mode mode;
  struct module *module = calloc(1, sizeof *module);
  if (module) module->functions = calloc(variant->function_count + 1, sizeof *module->functions);
  if (!module || !module->functions) {
    free(module);
    return error_memory();
  }
  red_error error = enter_relaxed(cuda, &entered, &mode);
  if (!error) {
    error = load_cubin(device, variant, module);
    leave_relaxed(cuda, &entered, &mode);
  }
  if (error)
    cuda_unload(device, module);
  else
    *out = module;
  return error;
}

// ---- Launches

static red_error run_all(const struct cuda *cuda, const struct call *call, cu_stream stream) {
  void *parameters[PLAN_MAX_ARGUMENTS];
  for (uint32_t l = 0; l < call->result.launch_count; l++) {
    const struct plan_launch_value *value = &call->result.launches[l];
    const struct plan_launch *launch = value->launch;
    uint32_t number = variant_function(call->variant, call->place, call->result.entry, launch);
    for (uint32_t a = 0; a < launch->argument_count; a++) parameters[a] = (void *)(uintptr_t)&value->arguments[a];
    cu_result error = driver_launch(cuda->driver, call->module->functions[number], value, stream, parameters);
    if (error) return fail(cuda->driver, "cuLaunchKernel", error);
  }
  return RED_OK;
}

static red_error cuda_run(struct red_device *device, struct call *call, red_stream stream) {
  const struct cuda *cuda = cuda_of(device);
  struct entered entered;
  if (call->result.workspace) plan_place_workspace(&call->result, (uint64_t)(uintptr_t)call->workspace);
  red_error error = enter(cuda, &entered);
  if (error) return error;
  error = run_all(cuda, call, (cu_stream)stream);
  leave(cuda, &entered);
  return error;
}

static red_error run_launches(const struct cuda *cuda, const struct repeat *repeat, uint64_t workspace, cu_stream stream) {
  for (uint32_t l = 0; l < repeat->launch_count; l++) {
    const struct repeat_launch *launch = &repeat->launches[l];
    uint64_t placed[REPEAT_ARGUMENTS];
    void *parameters[REPEAT_ARGUMENTS];
    for (uint32_t a = 0; a < launch->argument_count; a++) {
      bool is_offset = launch->in_workspace >> a & 1;
      placed[a] = launch->arguments[a] + (is_offset ? workspace : 0);
      parameters[a] = &placed[a];
    }
    struct driver_shape shape = {{launch->grid[0], launch->grid[1], launch->grid[2]}, {launch->block[0], launch->block[1], launch->block[2]}, launch->shared, launch->is_programmatic};
    cu_result error = driver_start(cuda->driver, launch->function, &shape, stream, parameters);
    if (error) return fail(cuda->driver, "cuLaunchKernel", error);
  }
  return RED_OK;
}

static red_error cuda_run_again(struct red_device *device, const struct repeat *repeat, void *workspace, red_stream stream) {
  const struct cuda *cuda = cuda_of(device);
  struct entered entered;
  red_error error = enter(cuda, &entered);
  if (error) return error;
  error = run_launches(cuda, repeat, (uint64_t)(uintptr_t)workspace, (cu_stream)stream);
  leave(cuda, &entered);
  return error;
}

// ---- Opening

static void cuda_close(struct red_device *device) {
  struct cuda *cuda = cuda_of(device);
  if (cuda->is_primary) cuda->driver->primary_release(cuda->device);
  free(cuda);
}

static const struct backend backend = {
    .close = cuda_close,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .copy_in = cuda_copy_in,
    .copy_out = cuda_copy_out,
    .zero = cuda_zero,
    .stream_create = cuda_stream_create,
    .stream_destroy = cuda_stream_destroy,
    .synchronize = cuda_synchronize,
    .stream_state = cuda_stream_state,
    .load = cuda_load,
    .unload = cuda_unload,
    .check_pointer = cuda_check_pointer,
    .run = cuda_run,
    .run_again = cuda_run_again,
};

static red_error open_driver(const struct red_device *device, const struct driver **driver) {
  static _Atomic int opened_in = -1; // the fork generation in which the driver was started
  const char *why;
  int none = -1;
  if (!atomic_compare_exchange_strong(&opened_in, &none, (int)device->fork_generation) && none != (int)device->fork_generation) {
    return error_set(RED_ERROR_FORKED, "the CUDA driver was started before fork(); it cannot be used in the child process");
  }
  *driver = driver_open(&why);
  return *driver ? RED_OK : error_set(RED_ERROR_NO_DRIVER, "%s", why);
}

// The context that is current where it belongs to the device wanted (any: -1, which is then found); else the primary one of the device.
static red_error take_context(struct cuda *cuda, int *ordinal, int count) {
  const struct driver *driver = cuda->driver;
  cu_context current = NULL;
  cu_device device;
  if (!driver->context_current(&current) && current && !driver->context_device(&device))
    for (int i = 0; i < count; i++) {
      cu_device candidate;
      if (driver->device_get(&candidate, i) || candidate != device || (*ordinal >= 0 && *ordinal != i)) continue;
      cuda->device = device;
      cuda->context = current;
      *ordinal = i;
      return RED_OK;
    }
  if (*ordinal < 0) *ordinal = 0;
  cu_result error = driver->device_get(&cuda->device, *ordinal);
  if (error) return fail(driver, "cuDeviceGet", error);
  error = driver->primary_retain(&cuda->context, cuda->device);
  if (error) return fail(driver, "cuDevicePrimaryCtxRetain", error);
  cuda->is_primary = true;
  return RED_OK;
}

static red_error describe(const struct cuda *cuda, struct red_device *device) {
  const struct driver *driver = cuda->driver;
  int major = 0, minor = 0, shared = 0;
  cu_result error = driver->device_attribute(&major, CU_MAJOR, cuda->device);
  if (!error) error = driver->device_attribute(&minor, CU_MINOR, cuda->device);
  if (!error) error = driver->device_attribute(&shared, CU_SHARED_OPTIN, cuda->device);
  if (!error) error = driver->device_attribute(&device->info.multiprocessors, CU_MULTIPROCESSORS, cuda->device);
  if (error) return fail(driver, "cuDeviceGetAttribute", error);
  if (driver->device_name(device->model, sizeof device->model, cuda->device)) snprintf(device->model, sizeof device->model, "unknown GPU");
  device->info.arch = 10 * major + minor;
  device->info.shared = shared;
  device->info.driver_version = cuda->version;
  return RED_OK;
}

red_error device_cuda_open(struct red_device *device, int ordinal) {
  int count = 0;
  const struct driver *driver;
  red_error error = open_driver(device, &driver);
  if (error) return error;
  cu_result result = driver->device_count(&count);
  if (result) return fail(driver, "cuDeviceGetCount", result);
  if (ordinal >= count || !count)
    return error_set(RED_ERROR_NO_DEVICE, "there is no device cuda:%d; the driver sees %d", ordinal < 0 ? 0 : ordinal, count);
  struct cuda *cuda = calloc(1, sizeof *cuda);
  if (!cuda) return error_memory();
  cuda->driver = driver;
  driver->driver_version(&cuda->version);
  error = take_context(cuda, &ordinal, count);
  if (!error) error = describe(cuda, device);
  if (error) {
    if (cuda->is_primary) driver->primary_release(cuda->device);
    free(cuda);
    return error;
  }
  snprintf(device->name, sizeof device->name, "cuda:%d", ordinal);
  device->info.ordinal = ordinal;
  device->backend = &backend;
  device->state = cuda;
  return RED_OK;
}

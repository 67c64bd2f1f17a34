// Devices, contexts, memory and modules of the fake driver.
#include "tests/fake/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTER(call, needs)                                                                                   \
  do {                                                                                                       \
    cu_result enter_error = fake_enter(call, needs);                                                         \
    if (enter_error) return enter_error;                                                                     \
  } while (0)

// --- Without a context

cu_result fake_init(unsigned flags) {
  ENTER("cuInit", NEEDS_NOTHING);
  if (!flags) fake_initialise();
  return fake_leave(flags ? FAKE_INVALID_VALUE : 0);
}

cu_result fake_driver_version(int *version) {
  ENTER("cuDriverGetVersion", NEEDS_NOTHING);
  *version = fake.driver_version;
  return fake_leave(0);
}

// Those that tests look for.
static const struct {
  cu_result error;
  const char *name, *text;
} error_table[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain."},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static cu_result find_error(cu_result error, const char **name, bool wants_text) {
  *name = NULL;
  for (size_t i = 0; i < sizeof error_table / sizeof *error_table; i++)
    if (error_table[i].error == error) *name = wants_text ? error_table[i].text : error_table[i].name;
  return *name ? 0 : FAKE_INVALID_VALUE;
}

cu_result fake_error_name(cu_result error, const char **name) {
  ENTER("cuGetErrorName", NEEDS_NOTHING);
  return fake_leave(find_error(error, name, false));
}

cu_result fake_error_string(cu_result error, const char **text) {
  ENTER("cuGetErrorString", NEEDS_NOTHING);
  return fake_leave(find_error(error, text, true));
}

cu_result fake_device_count(int *count) {
  ENTER("cuDeviceGetCount", NEEDS_INIT);
  *count = fake.device_count;
  return fake_leave(0);
}

static bool is_device(cu_device device) {
  return device >= 0 && device < fake.device_count && device < MAX_DEVICES;
}

cu_result fake_device_get(cu_device *device, int ordinal) {
  ENTER("cuDeviceGet", NEEDS_INIT);
  *device = ordinal;
  return fake_leave(is_device(ordinal) ? 0 : FAKE_INVALID_DEVICE);
}

cu_result fake_device_name(char *name, int length, cu_device device) {
  ENTER("cuDeviceGetName", NEEDS_INIT);
  if (length < 1 || !is_device(device)) return fake_leave(FAKE_INVALID_VALUE);
  snprintf(name, (size_t)length, "fake GPU");
  return fake_leave(0);
}

cu_result fake_device_attribute(int *value, enum cu_attribute attribute, cu_device device) {
  ENTER("cuDeviceGetAttribute", NEEDS_INIT);
  if (!is_device(device)) return fake_leave(FAKE_INVALID_DEVICE);
  switch (attribute) {
  case CU_MULTIPROCESSORS: *value = fake.multiprocessors; break;
  case CU_MAJOR: *value = fake.arch / 10; break;
  case CU_MINOR: *value = fake.arch % 10; break;
  case CU_SHARED_OPTIN: *value = 232448; break;
  case CU_L2_BYTES: *value = 32768; break;
  default: return fake_leave(FAKE_INVALID_VALUE);
  }
  return fake_leave(0);
}

// --- Contexts

cu_result fake_primary_retain(cu_context *context, cu_device device) {
  ENTER("cuDevicePrimaryCtxRetain", NEEDS_INIT);
  if (!is_device(device)) return fake_leave(FAKE_INVALID_DEVICE);
  struct cu_context_opaque *primary = &fake.primary[device];
  if (!primary->is_alive)
    *primary = (struct cu_context_opaque){.device = device, .is_primary = true, .is_alive = true};
  primary->retained++;
  fake.live.retained++;
  *context = primary;
  return fake_leave(0);
}

cu_result fake_primary_release(cu_device device) {
  ENTER("cuDevicePrimaryCtxRelease_v2", NEEDS_INIT);
  if (!is_device(device) || !fake.primary[device].retained) return fake_leave(FAKE_INVALID_CONTEXT);
  fake.live.retained--;
  fake.primary[device].is_alive = --fake.primary[device].retained > 0;
  return fake_leave(0);
}

cu_result fake_context_current(cu_context *context) {
  ENTER("cuCtxGetCurrent", NEEDS_INIT);
  *context = fake_current;
  return fake_leave(0);
}

cu_result fake_context_set(cu_context context) {
  ENTER("cuCtxSetCurrent", NEEDS_INIT);
  if (context && !context->is_alive) return fake_leave(FAKE_INVALID_CONTEXT);
  fake_current = context;
  return fake_leave(0);
}

cu_result fake_context_device(cu_device *device) {
  ENTER("cuCtxGetDevice", NEEDS_CONTEXT);
  *device = fake_current->device;
  return fake_leave(0);
}

cu_result cuCtxCreate_v2(cu_context *context, unsigned flags, cu_device device) {
  ENTER("cuCtxCreate_v2", NEEDS_INIT);
  struct cu_context_opaque *made = calloc(1, sizeof *made);
  if (flags || !made || !is_device(device)) {
    free(made);
    return fake_leave(FAKE_INVALID_VALUE);
  }
  *made = (struct cu_context_opaque){.device = device, .is_alive = true, .next = fake.contexts};
  fake.contexts = made;
  fake.live.contexts++;
  fake_current = *context = made;
  return fake_leave(0);
}

// The object stays, so that later use is an error and no crash.
cu_result cuCtxDestroy_v2(cu_context context) {
  ENTER("cuCtxDestroy_v2", NEEDS_INIT);
  if (!context || !context->is_alive || context->is_primary) return fake_leave(FAKE_INVALID_CONTEXT);
  context->is_alive = false;
  fake.live.contexts--;
  if (fake_current == context) fake_current = NULL;
  return fake_leave(0);
}

cu_result fake_synchronize(void) {
  ENTER("cuCtxSynchronize", NEEDS_CONTEXT);
  return fake_leave(fake_unsafe());
}

// --- Memory

static struct fake_allocation **find_allocation(cu_pointer pointer) {
  struct fake_allocation **at = &fake.allocations;
  while (*at && (pointer < (*at)->start || pointer - (*at)->start >= (*at)->bytes)) at = &(*at)->next;
  return at;
}

cu_result fake_alloc(cu_pointer *pointer, size_t bytes) {
  ENTER("cuMemAlloc_v2", NEEDS_CONTEXT);
  cu_result error = bytes ? fake_unsafe() : FAKE_INVALID_VALUE;
  if (error) return fake_leave(error);
  struct fake_allocation *made = malloc(sizeof *made);
  if (made)
    *made = (struct fake_allocation){sim_alloc(fake.memory, bytes, NULL, false), bytes, fake_current->device,
                                     fake.allocations};
  if (!made || !made->start) {
    free(made);
    return fake_leave(CU_ERROR_OUT_OF_MEMORY);
  }
  fake.allocations = made;
  fake.live.allocations++;
  *pointer = made->start;
  return fake_leave(0);
}

cu_result fake_free(cu_pointer pointer) {
  ENTER("cuMemFree_v2", NEEDS_CONTEXT);
  if (!pointer) return fake_leave(0);
  cu_result error = fake_unsafe();
  struct fake_allocation **at = find_allocation(pointer), *gone = *at;
  if (!error && (!gone || gone->start != pointer)) error = FAKE_INVALID_VALUE;
  if (error) return fake_leave(error);
  sim_free(fake.memory, pointer);
  *at = gone->next;
  free(gone);
  fake.live.allocations--;
  return fake_leave(0);
}

cu_result fake_copy_in(cu_pointer to, const void *from, size_t bytes) {
  ENTER("cuMemcpyHtoD_v2", NEEDS_CONTEXT);
  cu_result error = fake_unsafe();
  if (!error && bytes && !sim_write(fake.memory, to, from, bytes)) error = FAKE_INVALID_VALUE;
  return fake_leave(error);
}

cu_result fake_copy_out(void *to, cu_pointer from, size_t bytes) {
  ENTER("cuMemcpyDtoH_v2", NEEDS_CONTEXT);
  cu_result error = fake_unsafe();
  if (!error && bytes && !sim_read(fake.memory, from, to, bytes)) error = FAKE_INVALID_VALUE;
  return fake_leave(error);
}

cu_result fake_pointer_get(void *value, enum cu_pointer_attribute attribute, cu_pointer pointer) {
  ENTER("cuPointerGetAttribute", NEEDS_INIT);
  const struct fake_allocation *found = *find_allocation(pointer);
  if (!found) return fake_leave(FAKE_INVALID_VALUE);
  switch (attribute) {
  case CU_POINTER_MEMORY_TYPE: *(unsigned *)value = CU_MEMORY_DEVICE; break;
  case CU_POINTER_IS_MANAGED: *(unsigned *)value = 0; break;
  case CU_POINTER_ORDINAL: *(int *)value = found->device; break;
  default: return fake_leave(FAKE_INVALID_VALUE);
  }
  return fake_leave(0);
}

// --- Code

// A cubin: this head, then the PTX that it comes from. It has zero bytes, as a real one has.
struct fake_cubin {
  char magic[8];
  uint32_t arch;
  uint32_t reserved;
  uint64_t bytes; // of the PTX
};
static const char cubin_magic[8] = "\x7f"
                                   "ELF\0fk";

struct cu_link_opaque {
  char *ptx;
  size_t bytes;
  struct fake_cubin *cubin;
  char *log;
  size_t log_bytes;
};

// The number of the PTX version, 78 for 7.8, that a driver takes at most.
static int newest_ptx(int driver) {
  int major = driver / 1000, minor = driver % 1000 / 10;
  return major <= 10 ? 63 + minor : 10 * (major - 4) + minor;
}

// 0 where this device loads the PTX; what is wrong goes to the log.
static cu_result judge_ptx(const char *ptx, size_t bytes, char *log, size_t log_bytes) {
  struct sim_error error;
  int major = 0, minor = 0;
  const char *version = strstr(ptx, "\n.version");
  if (log_bytes) *log = 0;
  if (version) sscanf(version, "\n.version %d.%d", &major, &minor);
  if (10 * major + minor > newest_ptx(fake.driver_version)) {
    snprintf(log, log_bytes, "ptxas application ptx input, line 1; fatal   : Unsupported .version %d.%d",
             major, minor);
    return CU_ERROR_UNSUPPORTED_PTX_VERSION;
  }
  struct sim_module *module = sim_module_parse(ptx, bytes, "ptx", &error);
  if (!module) {
    snprintf(log, log_bytes, "ptxas application ptx input, line %d; error   : %s", error.line, error.message);
    return CU_ERROR_INVALID_PTX;
  }
  bool fits = sim_module_target(module) <= fake.arch;
  sim_module_destroy(module);
  return fits ? 0 : CU_ERROR_NO_BINARY_FOR_GPU;
}

static void find_log(unsigned count, const enum cu_jit_option *options, void **values, char **log,
                     size_t *bytes) {
  *log = NULL;
  *bytes = 0;
  for (unsigned i = 0; i < count; i++) {
    if (options[i] == CU_JIT_ERROR_LOG) *log = values[i];
    if (options[i] == CU_JIT_ERROR_LOG_BYTES) *bytes = (size_t)(uintptr_t)values[i];
  }
  if (!*log) *bytes = 0;
}

cu_result fake_link_create(unsigned count, enum cu_jit_option *options, void **values, cu_link *link) {
  ENTER("cuLinkCreate_v2", NEEDS_CONTEXT);
  cu_result error = fake_unsafe();
  if (error) return fake_leave(error);
  struct cu_link_opaque *made = calloc(1, sizeof *made);
  if (!made) return fake_leave(CU_ERROR_OUT_OF_MEMORY);
  find_log(count, options, values, &made->log, &made->log_bytes);
  fake.live.links++;
  *link = made;
  return fake_leave(0);
}

cu_result fake_link_add(cu_link link, enum cu_jit_input type, void *data, size_t bytes, const char *name,
                        unsigned count, enum cu_jit_option *options, void **values) {
  (void)name, (void)options, (void)values;
  ENTER("cuLinkAddData_v2", NEEDS_CONTEXT);
  // PTX must end with a zero byte that counts.
  if (type != CU_JIT_INPUT_PTX || count || !bytes || ((char *)data)[bytes - 1])
    return fake_leave(FAKE_INVALID_VALUE);
  cu_result error = judge_ptx(data, bytes - 1, link->log, link->log_bytes);
  if (error) return fake_leave(error);
  free(link->ptx);
  link->ptx = strdup(data);
  link->bytes = bytes - 1;
  return fake_leave(link->ptx ? 0 : CU_ERROR_OUT_OF_MEMORY);
}

cu_result fake_link_complete(cu_link link, void **cubin, size_t *bytes) {
  ENTER("cuLinkComplete", NEEDS_CONTEXT);
  if (!link->ptx || link->cubin) return fake_leave(FAKE_INVALID_VALUE);
  *bytes = sizeof *link->cubin + link->bytes;
  link->cubin = malloc(*bytes);
  if (!link->cubin) return fake_leave(CU_ERROR_OUT_OF_MEMORY);
  *link->cubin = (struct fake_cubin){.arch = (uint32_t)fake.arch, .bytes = link->bytes};
  memcpy(link->cubin->magic, cubin_magic, sizeof cubin_magic);
  memcpy(link->cubin + 1, link->ptx, link->bytes);
  *cubin = link->cubin;
  return fake_leave(0);
}

cu_result fake_link_destroy(cu_link link) {
  ENTER("cuLinkDestroy", NEEDS_CONTEXT);
  free(link->ptx);
  free(link->cubin);
  free(link);
  fake.live.links--;
  return fake_leave(0);
}

// The PTX of an image that loads on this device.
static cu_result open_image(const void *image, char *log, size_t log_bytes, const char **ptx, size_t *bytes) {
  if (memcmp(image, cubin_magic, 4) == 0) {
    struct fake_cubin head;
    memcpy(&head, image, sizeof head);
    *ptx = (const char *)image + sizeof head;
    *bytes = head.bytes;
    return (int)head.arch / 10 == fake.arch / 10 && (int)head.arch <= fake.arch ? 0
                                                                                : CU_ERROR_NO_BINARY_FOR_GPU;
  }
  *ptx = image;
  *bytes = strlen(image);
  return judge_ptx(*ptx, *bytes, log, log_bytes);
}

cu_result fake_module_load(cu_module *module, const void *image, unsigned count, enum cu_jit_option *options,
                           void **values) {
  ENTER("cuModuleLoadDataEx", NEEDS_CONTEXT);
  const char *ptx;
  char *log;
  size_t bytes, log_bytes;
  find_log(count, options, values, &log, &log_bytes);
  cu_result error = fake_unsafe();
  if (!error) error = open_image(image, log, log_bytes, &ptx, &bytes);
  if (error) return fake_leave(error);
  struct cu_module_opaque *made = calloc(1, sizeof *made);
  if (!made) return fake_leave(CU_ERROR_OUT_OF_MEMORY);
  made->context = fake_current;
  made->sim = sim_module_parse(ptx, bytes, "ptx", NULL);
  if (!made->sim) {
    free(made);
    return fake_leave(CU_ERROR_INVALID_PTX);
  }
  fake.live.modules++;
  *module = made;
  return fake_leave(0);
}

cu_result fake_module_unload(cu_module module) {
  ENTER("cuModuleUnload", NEEDS_CONTEXT);
  if (module->context != fake_current) return fake_leave(FAKE_INVALID_CONTEXT);
  while (module->functions) {
    struct cu_function_opaque *gone = module->functions;
    module->functions = gone->next;
    free(gone);
  }
  sim_module_destroy(module->sim);
  free(module);
  fake.live.modules--;
  return fake_leave(0);
}

cu_result fake_module_function(cu_function *function, cu_module module, const char *name) {
  ENTER("cuModuleGetFunction", NEEDS_CONTEXT);
  const struct sim_entry *entry = sim_module_find(module->sim, name);
  if (!entry) return fake_leave(FAKE_NOT_FOUND);
  struct cu_function_opaque *made = malloc(sizeof *made);
  if (!made) return fake_leave(CU_ERROR_OUT_OF_MEMORY);
  *made = (struct cu_function_opaque){module, entry, 48 * 1024 - (int)entry->shared_bytes, module->functions};
  module->functions = *function = made;
  return fake_leave(0);
}

cu_result fake_function_get(int *value, enum cu_function_attribute attribute, cu_function function) {
  ENTER("cuFuncGetAttribute", NEEDS_CONTEXT);
  switch (attribute) {
  case CU_FUNCTION_STATIC_SHARED: *value = (int)function->entry->shared_bytes; break;
  case CU_FUNCTION_DYNAMIC_SHARED: *value = function->dynamic_shared; break;
  }
  return fake_leave(0);
}

cu_result fake_function_set(cu_function function, enum cu_function_attribute attribute, int value) {
  ENTER("cuFuncSetAttribute", NEEDS_CONTEXT);
  bool fits = attribute == CU_FUNCTION_DYNAMIC_SHARED && value >= 0 &&
              value + (int)function->entry->shared_bytes <= 232448;
  if (fits) function->dynamic_shared = value;
  return fake_leave(fits ? 0 : FAKE_INVALID_VALUE);
}

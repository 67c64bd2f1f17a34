// The CUDA driver API through dlopen: the types and functions that red uses, declared here, so that no toolkit is needed to build.
//
// Nothing is loaded before driver_open. RED_LIBCUDA names another library than libcuda.so.1. Thread rule: driver_open may be called
// from any thread; what it returns lives until the process ends, and is never unloaded, since at exit the driver may be gone first.
#ifndef RED_RUNTIME_DRIVER_H
#define RED_RUNTIME_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int cu_result; // CUresult: 0 is success
typedef int cu_device;
typedef struct cu_context_opaque *cu_context;
typedef struct cu_module_opaque *cu_module;
typedef struct cu_function_opaque *cu_function;
typedef struct cu_stream_opaque *cu_stream;
typedef struct cu_event_opaque *cu_event;
typedef struct cu_link_opaque *cu_link; // CUlinkState
typedef struct cu_graph_opaque *cu_graph;
typedef uint64_t cu_pointer; // CUdeviceptr

enum cu_attribute { CU_MULTIPROCESSORS = 16, CU_L2_BYTES = 38, CU_MAJOR = 75, CU_MINOR = 76, CU_SHARED_OPTIN = 97 };
enum cu_function_attribute { CU_FUNCTION_STATIC_SHARED = 1, CU_FUNCTION_DYNAMIC_SHARED = 8 };
enum cu_pointer_attribute { CU_POINTER_MEMORY_TYPE = 2, CU_POINTER_IS_MANAGED = 8, CU_POINTER_ORDINAL = 9 };
enum cu_memory_type { CU_MEMORY_HOST = 1, CU_MEMORY_DEVICE = 2 };
enum cu_jit_option { CU_JIT_ERROR_LOG = 5, CU_JIT_ERROR_LOG_BYTES = 6 };
enum cu_jit_input { CU_JIT_INPUT_PTX = 1 };
enum cu_stream_flag { CU_STREAM_NON_BLOCKING = 1 };
enum cu_capture_mode { CU_CAPTURE_GLOBAL, CU_CAPTURE_THREAD_LOCAL, CU_CAPTURE_RELAXED };
enum cu_capture_status { CU_CAPTURE_NONE, CU_CAPTURE_ACTIVE, CU_CAPTURE_INVALIDATED };
// Errors that this code looks at by number.
enum {
  CU_ERROR_INVALID_VALUE = 1,
  CU_ERROR_OUT_OF_MEMORY = 2,
  CU_ERROR_NO_BINARY_FOR_GPU = 209,
  CU_ERROR_INVALID_PTX = 218,
  CU_ERROR_UNSUPPORTED_PTX_VERSION = 222
};
// Streams that are no pointers.
#define CU_STREAM_LEGACY ((cu_stream)(uintptr_t)1)
#define CU_STREAM_PER_THREAD ((cu_stream)(uintptr_t)2)

// A launch with attributes, as the driver lays it out.
enum cu_launch_attribute_id { CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION = 6 };
struct cu_launch_attribute {
  int id;
  char padding[4];
  union {
    char bytes[64];
    int is_allowed; // PROGRAMMATIC_STREAM_SERIALIZATION
  } value;
};
struct cu_launch_config {
  unsigned grid[3], block[3], shared;
  cu_stream stream;
  struct cu_launch_attribute *attributes;
  unsigned attribute_count;
};

// X(member, symbol, parameters)
#define DRIVER_FUNCTIONS(X)                                                                                          \
  X(init, "cuInit", (unsigned flags))                                                                                \
  X(driver_version, "cuDriverGetVersion", (int *version))                                                            \
  X(error_name, "cuGetErrorName", (cu_result error, const char **name))                                              \
  X(error_string, "cuGetErrorString", (cu_result error, const char **text))                                          \
  X(device_count, "cuDeviceGetCount", (int *count))                                                                  \
  X(device_get, "cuDeviceGet", (cu_device *device, int ordinal))                                                     \
  X(device_name, "cuDeviceGetName", (char *name, int length, cu_device device))                                      \
  X(device_attribute, "cuDeviceGetAttribute", (int *value, enum cu_attribute attribute, cu_device device))           \
  X(primary_retain, "cuDevicePrimaryCtxRetain", (cu_context * context, cu_device device))                            \
  X(primary_release, "cuDevicePrimaryCtxRelease_v2", (cu_device device))                                             \
  X(context_current, "cuCtxGetCurrent", (cu_context * context))                                                      \
  X(context_set, "cuCtxSetCurrent", (cu_context context))                                                            \
  X(context_device, "cuCtxGetDevice", (cu_device * device))                                                          \
  X(synchronize, "cuCtxSynchronize", (void))                                                                         \
  X(link_create, "cuLinkCreate_v2", (unsigned count, enum cu_jit_option *options, void **values, cu_link *link))     \
  X(link_add, "cuLinkAddData_v2",                                                                                    \
    (cu_link link, enum cu_jit_input type, void *data, size_t bytes, const char *name, unsigned count,               \
     enum cu_jit_option *options, void **values))                                                                    \
  X(link_complete, "cuLinkComplete", (cu_link link, void **cubin, size_t *bytes))                                    \
  X(link_destroy, "cuLinkDestroy", (cu_link link))                                                                   \
  X(module_load, "cuModuleLoadDataEx",                                                                               \
    (cu_module * module, const void *image, unsigned count, enum cu_jit_option *options, void **values))             \
  X(module_unload, "cuModuleUnload", (cu_module module))                                                             \
  X(module_function, "cuModuleGetFunction", (cu_function * function, cu_module module, const char *name))            \
  X(function_get, "cuFuncGetAttribute", (int *value, enum cu_function_attribute attribute, cu_function function))    \
  X(function_set, "cuFuncSetAttribute", (cu_function function, enum cu_function_attribute attribute, int value))     \
  X(alloc, "cuMemAlloc_v2", (cu_pointer * pointer, size_t bytes))                                                    \
  X(free, "cuMemFree_v2", (cu_pointer pointer))                                                                      \
  X(copy_in, "cuMemcpyHtoD_v2", (cu_pointer to, const void *from, size_t bytes))                                     \
  X(copy_out, "cuMemcpyDtoH_v2", (void *to, cu_pointer from, size_t bytes))                                          \
  X(fill, "cuMemsetD8Async", (cu_pointer pointer, unsigned char value, size_t bytes, cu_stream stream))              \
  X(pointer_get, "cuPointerGetAttribute", (void *value, enum cu_pointer_attribute attribute, cu_pointer pointer))    \
  X(stream_create, "cuStreamCreate", (cu_stream * stream, unsigned flags))                                           \
  X(stream_destroy, "cuStreamDestroy_v2", (cu_stream stream))                                                        \
  X(stream_synchronize, "cuStreamSynchronize", (cu_stream stream))                                                   \
  X(event_create, "cuEventCreate", (cu_event * event, unsigned flags))                                               \
  X(event_destroy, "cuEventDestroy_v2", (cu_event event))                                                            \
  X(event_record, "cuEventRecord", (cu_event event, cu_stream stream))                                               \
  X(event_synchronize, "cuEventSynchronize", (cu_event event))                                                       \
  X(event_elapsed, "cuEventElapsedTime", (float *milliseconds, cu_event begin, cu_event end))                        \
  X(launch, "cuLaunchKernel",                                                                                        \
    (cu_function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,             \
     unsigned shared, cu_stream stream, void **parameters, void **extra))

// Those that older drivers lack; NULL there.
#define DRIVER_OPTIONAL(X)                                                                                           \
  X(stream_capture, "cuStreamGetCaptureInfo_v2",                                                                     \
    (cu_stream stream, enum cu_capture_status * status, uint64_t * id, cu_graph * graph, const void **dependencies,  \
     size_t *count))                                                                                                 \
  X(launch_ex, "cuLaunchKernelEx",                                                                                   \
    (const struct cu_launch_config *config, cu_function function, void **parameters, void **extra))                  \
  X(stream_id, "cuStreamGetId", (cu_stream stream, unsigned long long *id))                                          \
  X(capture_mode, "cuThreadExchangeStreamCaptureMode", (enum cu_capture_mode * mode))                                \
  X(stream_is_capturing, "cuStreamIsCapturing", (cu_stream stream, enum cu_capture_status * status))

struct driver {
#define X(member, symbol, parameters) cu_result (*member) parameters;
  DRIVER_FUNCTIONS(X)
  DRIVER_OPTIONAL(X)
#undef X
};

// The driver, loaded and initialised; NULL where there is none, or it does not start: *why (static or of the driver) says it.
const struct driver *driver_open(const char **why);
// "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory", in `text`. 209, 218 and 222 get a sentence with both versions.
void driver_error_text(const struct driver *driver, const char *call, cu_result error, char *text, size_t bytes);

// What a launch takes beside its function and arguments.
struct driver_shape {
  uint32_t grid[3], block[3];
  uint32_t shared; // bytes of dynamic shared memory
  bool is_programmatic;
};
// A launch. One that is programmatic may begin before the launch in front of it has ended, where the driver knows how.
cu_result driver_start(const struct driver *driver, cu_function function, const struct driver_shape *shape, cu_stream stream, void **parameters);
// The same of a plan's launch.
struct plan_launch_value;
cu_result driver_launch(const struct driver *driver, cu_function function, const struct plan_launch_value *value, cu_stream stream, void **parameters);

#endif

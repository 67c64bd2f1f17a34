// The CUDA driver API through dlopen: the types and functions that red uses, declared here, so that no toolkit is needed to build.
//
// Nothing is loaded before driver_open. RED_LIBCUDA names another library than libcuda.so.1. Thread rule: driver_open may be called
// from any thread; what it returns lives until the process ends, and is never unloaded, since at exit the driver may be gone first.
#ifndef RED_RUNTIME_DRIVER_H
#define RED_RUNTIME_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef int cu_result; // CUresult: 0 is success
typedef int cu_device;
typedef struct cu_context_opaque *cu_context;
typedef struct cu_module_opaque *cu_module;
typedef struct cu_function_opaque *cu_function;
typedef struct cu_stream_opaque *cu_stream;
typedef uint64_t cu_pointer; // CUdeviceptr

enum cu_attribute { CU_MULTIPROCESSORS = 16, CU_MAJOR = 75, CU_MINOR = 76, CU_SHARED_OPTIN = 97 };
enum cu_function_attribute { CU_FUNCTION_DYNAMIC_SHARED = 8 };
enum cu_jit_option { CU_JIT_ERROR_LOG = 5, CU_JIT_ERROR_LOG_BYTES = 6 };

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
  X(synchronize, "cuCtxSynchronize", (void))                                                                         \
  X(module_load, "cuModuleLoadDataEx",                                                                               \
    (cu_module * module, const void *image, unsigned count, enum cu_jit_option *options, void **values))             \
  X(module_unload, "cuModuleUnload", (cu_module module))                                                             \
  X(module_function, "cuModuleGetFunction", (cu_function * function, cu_module module, const char *name))            \
  X(function_set, "cuFuncSetAttribute", (cu_function function, enum cu_function_attribute attribute, int value))     \
  X(alloc, "cuMemAlloc_v2", (cu_pointer * pointer, size_t bytes))                                                    \
  X(free, "cuMemFree_v2", (cu_pointer pointer))                                                                      \
  X(copy_in, "cuMemcpyHtoD_v2", (cu_pointer to, const void *from, size_t bytes))                                     \
  X(copy_out, "cuMemcpyDtoH_v2", (void *to, cu_pointer from, size_t bytes))                                          \
  X(launch, "cuLaunchKernel",                                                                                        \
    (cu_function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,             \
     unsigned shared, cu_stream stream, void **parameters, void **extra))

struct driver {
#define X(member, symbol, parameters) cu_result (*member) parameters;
  DRIVER_FUNCTIONS(X)
#undef X
};

// The driver, loaded and initialised; NULL where there is none, or it does not start: *why (static or of the driver) says it.
const struct driver *driver_open(const char **why);
// "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory", in `text`. 209, 218 and 222 get a sentence with both versions.
void driver_error_text(const struct driver *driver, const char *call, cu_result error, char *text, size_t bytes);

#endif

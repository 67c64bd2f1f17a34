// The types of runtime/driver.h against the toolkit's cuda.h, where one is found: numbers, sizes, and that
// each function takes what red calls it with. What differs does not compile; names are compared when it runs.
#include <cuda.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <type_traits>

// Names that both headers have: the toolkit's values are kept first.
enum { NON_BLOCKING = CU_STREAM_NON_BLOCKING, INPUT_PTX = CU_JIT_INPUT_PTX };
static const CUstream legacy = CU_STREAM_LEGACY, per_thread = CU_STREAM_PER_THREAD;
#undef CU_STREAM_LEGACY
#undef CU_STREAM_PER_THREAD
#define CU_STREAM_NON_BLOCKING OWN_STREAM_NON_BLOCKING
#define CU_JIT_INPUT_PTX OWN_JIT_INPUT_PTX
#include "runtime/driver.h"

#define SAME(own, theirs)                                                                                    \
  static_assert(static_cast<long long>(own) == static_cast<long long>(theirs), #theirs)
SAME(OWN_STREAM_NON_BLOCKING, NON_BLOCKING);
SAME(OWN_JIT_INPUT_PTX, INPUT_PTX);
SAME(CU_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(CU_L2_BYTES, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SAME(CU_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(CU_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(CU_SHARED_OPTIN, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME(CU_FUNCTION_STATIC_SHARED, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME(CU_FUNCTION_DYNAMIC_SHARED, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(CU_POINTER_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(CU_POINTER_IS_MANAGED, CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME(CU_POINTER_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME(CU_MEMORY_HOST, CU_MEMORYTYPE_HOST);
SAME(CU_MEMORY_DEVICE, CU_MEMORYTYPE_DEVICE);
SAME(CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BUFFER);
SAME(CU_JIT_ERROR_LOG_BYTES, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME(CU_CAPTURE_GLOBAL, CU_STREAM_CAPTURE_MODE_GLOBAL);
SAME(CU_CAPTURE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME(CU_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(CU_CAPTURE_NONE, CU_STREAM_CAPTURE_STATUS_NONE);
SAME(CU_CAPTURE_ACTIVE, CU_STREAM_CAPTURE_STATUS_ACTIVE);
SAME(CU_CAPTURE_INVALIDATED, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
SAME(CU_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(CU_ERROR_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(CU_ERROR_INVALID_PTX, CUDA_ERROR_INVALID_PTX);
SAME(CU_ERROR_UNSUPPORTED_PTX_VERSION, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SAME(sizeof(cu_pointer), sizeof(CUdeviceptr));
SAME(sizeof(cu_device), sizeof(CUdevice));

// Do both go the same way into a function? Pointers may point to types of other names, but not to ones of
// another size.
template <class A> using pointed = std::remove_pointer_t<A>;
template <class A, class B> constexpr bool pass_alike() {
  if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>) {
    using P = pointed<A>;
    using Q = pointed<B>;
    constexpr bool opaque =
        std::is_void_v<P> || std::is_void_v<Q> || std::is_class_v<P> || std::is_class_v<Q>;
    if constexpr (opaque)
      return true;
    else
      return sizeof(P) == sizeof(Q);
  } else {
    return std::is_pointer_v<A> == std::is_pointer_v<B> && sizeof(A) == sizeof(B);
  }
}
template <class A, class B> struct alike;
template <class... A, class... B> struct alike<cu_result (*)(A...), CUresult (*)(B...)> {
  static constexpr bool check() {
    if constexpr (sizeof...(A) != sizeof...(B))
      return false;
    else
      return (pass_alike<A, B>() && ...);
  }
};

static int failures, checked;
static void compare(const char *own, const char *theirs) {
  checked++;
  if (!strcmp(own, theirs)) return;
  printf("FAILED %s is called %s by cuda.h\n", own, theirs);
  failures++;
}

enum {
#define X(member, symbol, parameters) ROW_##member,
  DRIVER_FUNCTIONS(X) DRIVER_OPTIONAL(X)
#undef X
      ROWS
};
static const char *const symbols[] = {
#define X(member, symbol, parameters) symbol,
    DRIVER_FUNCTIONS(X) DRIVER_OPTIONAL(X)
#undef X
};

#define TEXT(x) TEXT_(x)
#define TEXT_(x) #x
#define CHECK(member, name)                                                                                  \
  static_assert(alike<decltype(driver::member), decltype(&name)>::check(), #name " takes other parameters"); \
  compare(symbols[ROW_##member], TEXT(name))

int main() {
  CHECK(init, cuInit);
  CHECK(driver_version, cuDriverGetVersion);
  CHECK(error_name, cuGetErrorName);
  CHECK(error_string, cuGetErrorString);
  CHECK(device_count, cuDeviceGetCount);
  CHECK(device_get, cuDeviceGet);
  CHECK(device_name, cuDeviceGetName);
  CHECK(device_attribute, cuDeviceGetAttribute);
  CHECK(primary_retain, cuDevicePrimaryCtxRetain);
  CHECK(primary_release, cuDevicePrimaryCtxRelease);
  CHECK(context_current, cuCtxGetCurrent);
  CHECK(context_set, cuCtxSetCurrent);
  CHECK(context_device, cuCtxGetDevice);
  CHECK(synchronize, cuCtxSynchronize);
  CHECK(link_create, cuLinkCreate);
  CHECK(link_add, cuLinkAddData);
  CHECK(link_complete, cuLinkComplete);
  CHECK(link_destroy, cuLinkDestroy);
  CHECK(module_load, cuModuleLoadDataEx);
  CHECK(module_unload, cuModuleUnload);
  CHECK(module_function, cuModuleGetFunction);
  CHECK(function_get, cuFuncGetAttribute);
  CHECK(function_set, cuFuncSetAttribute);
  CHECK(alloc, cuMemAlloc);
  CHECK(free, cuMemFree);
  CHECK(copy_in, cuMemcpyHtoD);
  CHECK(copy_out, cuMemcpyDtoH);
  CHECK(fill, cuMemsetD8Async);
  CHECK(pointer_get, cuPointerGetAttribute);
  CHECK(stream_create, cuStreamCreate);
  CHECK(stream_destroy, cuStreamDestroy);
  CHECK(stream_synchronize, cuStreamSynchronize);
  CHECK(event_create, cuEventCreate);
  CHECK(event_destroy, cuEventDestroy);
  CHECK(event_record, cuEventRecord);
  CHECK(event_synchronize, cuEventSynchronize);
#if CUDA_VERSION < 13000
  CHECK(event_elapsed, cuEventElapsedTime);
#else
  checked++; // a later function has the name there
#endif
  CHECK(launch, cuLaunchKernel);
#if CUDA_VERSION >= 12000 && CUDA_VERSION < 13000
  CHECK(stream_capture, cuStreamGetCaptureInfo);
#else
  checked++; // the older function is no longer declared, or not yet
#endif
#if CUDA_VERSION >= 12000
  CHECK(stream_id, cuStreamGetId);
#else
  checked++;
#endif
#if CUDA_VERSION >= 11080
  CHECK(launch_ex, cuLaunchKernelEx);
  SAME(CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
  static_assert(sizeof(cu_launch_attribute) == sizeof(CUlaunchAttribute) &&
                    offsetof(cu_launch_attribute, value) == offsetof(CUlaunchAttribute, value),
                "");
  static_assert(sizeof(cu_launch_config) == sizeof(CUlaunchConfig) &&
                    offsetof(cu_launch_config, block) == offsetof(CUlaunchConfig, blockDimX) &&
                    offsetof(cu_launch_config, shared) == offsetof(CUlaunchConfig, sharedMemBytes) &&
                    offsetof(cu_launch_config, stream) == offsetof(CUlaunchConfig, hStream) &&
                    offsetof(cu_launch_config, attributes) == offsetof(CUlaunchConfig, attrs) &&
                    offsetof(cu_launch_config, attribute_count) == offsetof(CUlaunchConfig, numAttrs),
                "");
#else
  checked++;
#endif
  CHECK(capture_mode, cuThreadExchangeStreamCaptureMode);
  CHECK(stream_is_capturing, cuStreamIsCapturing);
  if (reinterpret_cast<uintptr_t>(legacy) != reinterpret_cast<uintptr_t>(CU_STREAM_LEGACY) ||
      reinterpret_cast<uintptr_t>(per_thread) != reinterpret_cast<uintptr_t>(CU_STREAM_PER_THREAD)) {
    printf("FAILED the streams that are no pointers\n");
    failures++;
  }
  if (checked != ROWS) printf("FAILED %d of %d functions are compared\n", checked, ROWS);
  return failures || checked != ROWS;
}

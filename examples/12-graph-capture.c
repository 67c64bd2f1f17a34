// A launch captured into a CUDA graph, which is then launched several times. red_prepare does everything that a capture forbids; the captured launch has
// workspace of its own. The graph functions are the driver's: this program looks them up itself, so that it builds without the CUDA toolkit. On the
// simulator, which has no graphs, it launches directly.
//
//   cc 12-graph-capture.c $(pkg-config --cflags --libs red) -ldl -o capture && ./capture
//
#include <red.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1 << 20, ROUNDS = 5 };

static const char text[] = "kernel total(A: f32[n], B: f32[]) -> (C: f32[]) { C[] = B[] + sum(j in n) A[j]; }";

static void check(red_error error) {
  if (!error) return;
  fprintf(stderr, "%s: %s\n", red_error_name(error), red_message());
  exit(1);
}

static void check_driver(const char *call, int result) {
  if (!result) return;
  fprintf(stderr, "%s: CUresult %d\n", call, result);
  exit(1);
}

static void *find(const char *symbol) {
  static void *driver;
  const char *name = getenv("RED_LIBCUDA"); // as red finds it
  if (!driver) driver = dlopen(name && *name ? name : "libcuda.so.1", RTLD_NOW);
  void *found = driver ? dlsym(driver, symbol) : NULL;
  if (!found) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  return found;
}

// Makes the context of a GPU current, which the driver's own calls need: the primary one, which red uses too.
static void make_current(int ordinal) {
  int (*get)(int *, int), (*retain)(void **, int), (*set)(void *), gpu;
  void *context;
  *(void **)&get = find("cuDeviceGet");
  *(void **)&retain = find("cuDevicePrimaryCtxRetain");
  *(void **)&set = find("cuCtxSetCurrent");
  check_driver("cuDeviceGet", get(&gpu, ordinal));
  check_driver("cuDevicePrimaryCtxRetain", retain(&context, gpu));
  check_driver("cuCtxSetCurrent", set(context));
}

// Captures one launch and launches the graph ROUNDS times.
static void launch_graph(const red_kernel *kernel, red_stream stream, const red_argument *arguments, size_t count) {
  int (*begin)(void *, int), (*end)(void *, void **), (*instantiate)(void **, void *, unsigned long long), (*launch)(void *, void *);
  void *graph, *executable;
  *(void **)&begin = find("cuStreamBeginCapture_v2");
  *(void **)&end = find("cuStreamEndCapture");
  *(void **)&instantiate = find("cuGraphInstantiateWithFlags");
  *(void **)&launch = find("cuGraphLaunch");
  check_driver("cuStreamBeginCapture", begin(stream, 0));
  check(red_launch(kernel, stream, arguments, count));
  check_driver("cuStreamEndCapture", end(stream, &graph));
  check_driver("cuGraphInstantiate", instantiate(&executable, graph, 0));
  for (int round = 0; round < ROUNDS; round++) check_driver("cuGraphLaunch", launch(executable, stream));
}

int main(void) {
  static float a[COUNT];
  float b = 1, c = 0;
  for (int i = 0; i < COUNT; i++) a[i] = (float)(i % 2);

  red_device *device;
  red_program *program;
  const red_kernel *total;
  red_stream stream;
  red_device_info info;
  check(red_open("auto", &device));
  check(red_describe_device(device, &info));
  check(red_compile_text(device, "total.red", text, NULL, &program));
  check(red_find(program, "total", &total));
  check(red_stream_create(device, &stream));

  void *A, *B, *C;
  check(red_alloc(device, sizeof a, &A));
  check(red_alloc(device, sizeof b, &B));
  check(red_alloc(device, sizeof c, &C));
  check(red_copy_in(device, A, a, sizeof a));
  check(red_copy_in(device, B, &b, sizeof b));

  const int64_t shape[] = {COUNT};
  red_tensor tensor_a = red_dense(A, RED_F32, 1, shape), tensor_b = red_dense(B, RED_F32, 0, NULL), tensor_c = red_dense(C, RED_F32, 0, NULL);
  red_argument arguments[] = {red_of_tensor(&tensor_a), red_of_tensor(&tensor_b), red_of_tensor(&tensor_c)};
  check(red_prepare(total, stream, arguments, 3));
  if (info.ordinal >= 0) {
    make_current(info.ordinal);
    launch_graph(total, stream, arguments, 3);
  } else {
    check(red_launch(total, stream, arguments, 3));
  }
  check(red_synchronize(device, stream));
  check(red_copy_out(device, &c, C, sizeof c));
  printf("%s: the sum is %g\n", info.name, c);

  check(red_stream_destroy(device, stream));
  check(red_free(device, A));
  check(red_free(device, B));
  check(red_free(device, C));
  red_release(program);
  red_close(device);
  return c != 1 + COUNT / 2;
}

// red.h on a GPU: every launch is repeated on the simulator, and the bytes of all outputs must agree; then streams, captures, workspace, contexts and bad input.
//
//   build/tests/gpu/gpu_api [device]       # cuda:0 unless another is named; status 77: there is none
//
// One line a test, 'N passed, N failed' last. Values are small integers, so that every order of a sum
// gives the same bits.
#include "runtime/driver.h"
#include "runtime/red.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TENSORS = 6, MAX_RANK = 5 };

static const struct driver *driver;
static red_device *gpu, *sim;
static int passed, failed;

static void result(const char *test, int ok, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void result(const char *test, int ok, const char *format, ...) {
  va_list arguments;
  printf("%s: ", test);
  if (ok) {
    printf("ok\n");
  } else {
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
  }
  fflush(stdout);
  ++*(ok ? &passed : &failed);
}

// ---- The same launch on both devices

struct tensor_case {
  red_type type;
  int rank;
  int64_t shape[MAX_RANK];
};
struct launch_case {
  const char *name, *text, *schedule;
  int tensor_count; // outputs last; all start from the same bytes
  struct tensor_case tensors[MAX_TENSORS];
};

#define ROWSUM(type) "kernel k(A: " type "[n, m]) -> (B: " type "[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }"
#define COLSUM(type) "kernel k(A: " type "[m, n]) -> (B: " type "[n]) { for i in n { B[i] = sum(j in m) A[j, i]; } }"
#define ROWS(type, n, m) 2, {{type, 2, {n, m}}, {type, 1, {n}}}
#define COLUMNS(type, m, n) 2, {{type, 2, {m, n}}, {type, 1, {n}}}
static const struct launch_case cases[] = {
    {"row sums 1000 x 10", ROWSUM("f32"), NULL, ROWS(RED_F32, 1000, 10)},
    {"row sums 1000 x 11", ROWSUM("f32"), NULL, ROWS(RED_F32, 1000, 11)},
    {"row sums 300 x 1000", ROWSUM("f32"), NULL, ROWS(RED_F32, 300, 1000)},
    {"row sums 7 x 4099", ROWSUM("f32"), NULL, ROWS(RED_F32, 7, 4099)},
    {"row sums of doubles", ROWSUM("f64"), NULL, ROWS(RED_F64, 33, 257)},
    {"row sums of i64", ROWSUM("i64"), NULL, ROWS(RED_I64, 33, 257)},
    {"rows, exact, 11", ROWSUM("f32"), "schedule k { bind i -> block.x; bind j -> thread.x; }", ROWS(RED_F32, 50, 11)},
    {"rows, exact, 100", ROWSUM("f32"), "schedule k { bind i -> block.x; bind j -> thread.x; }", ROWS(RED_F32, 50, 100)},
    {"column sums 1000 x 1000", COLSUM("f32"), NULL, COLUMNS(RED_F32, 1000, 1000)},
    {"column sums 5000 x 64", COLSUM("f32"), NULL, COLUMNS(RED_F32, 5000, 64)},
    {"column sums 777 x 33", COLSUM("i32"), NULL, COLUMNS(RED_I32, 777, 33)},
    {"one long sum", "kernel k(A: f32[n]) -> (B: f32[]) { B[] = sum(j in n) A[j]; }", NULL, 2, {{RED_F32, 1, {1000003}}, {RED_F32, 0, {0}}}},
    {"empty reduction", ROWSUM("f32"), NULL, ROWS(RED_F32, 9, 0)},
    {"no output", ROWSUM("f32"), NULL, ROWS(RED_F32, 0, 9)},
    {"argmax", "kernel k(A: i32[n, m]) -> (V: i32[n], P: i32[n]) { for i in n { (V[i], P[i]) = argmax(j in m) (A[i, j], i32(j)); } }", NULL, 3,
     {{RED_I32, 2, {40, 1000}}, {RED_I32, 1, {40}}, {RED_I32, 1, {40}}}},
    {"softmax",
     "kernel k(X: f32[n, m]) -> (Y: f32[n, m]) { for i in n { let peak = max(j in m) X[i, j]; let total = sum(j in m) exp(X[i, j] - peak);"
     " for j in m { Y[i, j] = exp(X[i, j] - peak) / total; } } }",
     NULL, 2, {{RED_F32, 2, {20, 300}}, {RED_F32, 2, {20, 300}}}},
    {"transpose of f32", "kernel k<T>(X: T[a, b]) -> (Y: T[b, a]) { for i in a, j in b { Y[j, i] = X[i, j]; } }", NULL, 2,
     {{RED_F32, 2, {512, 256}}, {RED_F32, 2, {256, 512}}}},
    {"transpose of halves", "kernel k<T>(X: T[a, b]) -> (Y: T[b, a]) { for i in a, j in b { Y[j, i] = X[i, j]; } }", NULL, 2,
     {{RED_F16, 2, {130, 258}}, {RED_F16, 2, {258, 130}}}},
    {"transpose of bytes", "kernel k<T>(X: T[a, b]) -> (Y: T[b, a]) { for i in a, j in b { Y[j, i] = X[i, j]; } }", NULL, 2,
     {{RED_U8, 2, {64, 192}}, {RED_U8, 2, {192, 64}}}},
    {"permute of rank 4", "kernel k(X: f32[n, c, h, w]) -> (Y: f32[n, h, w, c]) { for b in n, k in c, p in h, q in w { Y[b, p, q, k] = X[b, k, p, q]; } }", NULL, 2,
     {{RED_F32, 4, {4, 3, 31, 29}}, {RED_F32, 4, {4, 31, 29, 3}}}},
    {"fold", "kernel k(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] += sum(j in m) A[i, j]; } }", NULL, ROWS(RED_F32, 100, 77)},
};

static size_t bytes_of(const struct tensor_case *tensor) {
  size_t bytes = red_type_bytes(tensor->type);
  for (int d = 0; d < tensor->rank; d++) bytes *= (size_t)tensor->shape[d];
  return bytes;
}

// Small integers of the element's type.
static void fill(const struct tensor_case *tensor, unsigned seed, void *data) {
  size_t count = bytes_of(tensor) / red_type_bytes(tensor->type);
  for (size_t i = 0; i < count; i++) {
    int value = (int)(((unsigned)i + seed) * 2654435761u >> 28) - 8;
    switch ((int)tensor->type) {
    case RED_F32: ((float *)data)[i] = (float)value; break;
    case RED_F64: ((double *)data)[i] = value; break;
    case RED_I32: ((int32_t *)data)[i] = value; break;
    case RED_I64: ((int64_t *)data)[i] = value; break;
    case RED_F16: ((uint16_t *)data)[i] = (uint16_t)(0x3c00 + (value & 15)); break;
    default: ((uint8_t *)data)[i] = (uint8_t)value; break;
    }
  }
}

struct placed {
  void *data[MAX_TENSORS];
  red_tensor tensors[MAX_TENSORS];
  red_argument arguments[MAX_TENSORS];
};

static red_error place(red_device *device, const struct launch_case *c, struct placed *placed) {
  for (int t = 0; t < c->tensor_count; t++) {
    size_t bytes = bytes_of(&c->tensors[t]);
    void *host = malloc(bytes + 16);
    fill(&c->tensors[t], (unsigned)t, host);
    red_error error = red_alloc(device, bytes, &placed->data[t]);
    if (!error) error = red_copy_in(device, placed->data[t], host, bytes);
    free(host);
    if (error) return error;
    placed->tensors[t] = red_dense(placed->data[t], c->tensors[t].type, c->tensors[t].rank, c->tensors[t].shape);
    placed->arguments[t] = red_of_tensor(&placed->tensors[t]);
  }
  return RED_OK;
}

static red_error launch_on(red_device *device, const struct launch_case *c, struct placed *placed, int launches) {
  red_options options = {0};
  red_program *program;
  const red_kernel *kernel;
  options.schedule_text = c->schedule;
  red_error error = red_compile_text(device, "case.red", c->text, &options, &program);
  if (error) return error;
  error = red_find(program, NULL, &kernel);
  if (!error) error = place(device, c, placed);
  for (int i = 0; i < launches && !error; i++) error = red_launch(kernel, NULL, placed->arguments, (size_t)c->tensor_count);
  if (!error) error = red_synchronize(device, NULL);
  red_release(program);
  return error;
}

// The byte at which a tensor differs; -1: nowhere; -2: a call failed.
static long long difference(const struct placed *a, const struct placed *b, int tensor, size_t bytes) {
  char *x = malloc(bytes + 1), *y = malloc(bytes + 1);
  long long at = -1;
  if (red_copy_out(gpu, x, a->data[tensor], bytes) || red_copy_out(sim, y, b->data[tensor], bytes)) at = -2;
  for (size_t i = 0; i < bytes && at == -1; i++)
    if (x[i] != y[i]) at = (long long)i;
  free(x);
  free(y);
  return at;
}

static void test_case(const struct launch_case *c) {
  struct placed on_gpu = {0}, on_sim = {0};
  red_error error = launch_on(gpu, c, &on_gpu, 2);
  if (!error) error = launch_on(sim, c, &on_sim, 2);
  long long at = -1;
  int tensor = 0;
  for (int t = 0; t < c->tensor_count && !error && at == -1; t++) {
    at = difference(&on_gpu, &on_sim, t, bytes_of(&c->tensors[t]));
    tensor = t;
  }
  if (error)
    result(c->name, 0, "%s: %s", red_error_name(error), red_message());
  else
    result(c->name, at == -1, "tensor %d differs from the simulator's at byte %lld", tensor, at);
  for (int t = 0; t < c->tensor_count; t++) {
    red_free(gpu, on_gpu.data[t]);
    red_free(sim, on_sim.data[t]);
  }
}

// ---- What only a GPU has

static const struct launch_case total = {"total", "kernel k(A: f32[n]) -> (B: f32[]) { B[] = sum(j in n) A[j]; }", NULL, 2,
                                         {{RED_F32, 1, {1 << 20}}, {RED_F32, 0, {0}}}};

static const red_kernel *compile_total(red_program **program) {
  if (red_compile_text(gpu, "total.red", total.text, NULL, program)) return NULL;
  return red_kernel_at(*program, 0);
}

static float expected_total(void) {
  float *a = malloc(bytes_of(&total.tensors[0])), sum = 0;
  fill(&total.tensors[0], 0, a);
  for (int i = 0; i < 1 << 20; i++) sum += a[i]; // integers below 2^24: exact
  free(a);
  return sum;
}

static void *symbol(const char *name) {
  const char *library = getenv("RED_LIBCUDA");
  void *handle = dlopen(library && *library ? library : "libcuda.so.1", RTLD_NOW);
  return handle ? dlsym(handle, name) : NULL;
}

// A capture without red_prepare is refused and stays intact; with it, the graph gives the sum each time.
static void test_capture(void) {
  struct placed placed = {0};
  red_program *program;
  const red_kernel *kernel = compile_total(&program);
  red_stream stream = NULL;
  int (*begin)(void *, int), (*end)(void *, void **), (*instantiate)(void **, void *, unsigned long long), (*run)(void *, void *);
  void *graph = NULL, *executable = NULL;
  *(void **)&begin = symbol("cuStreamBeginCapture_v2");
  *(void **)&end = symbol("cuStreamEndCapture");
  *(void **)&instantiate = symbol("cuGraphInstantiateWithFlags");
  *(void **)&run = symbol("cuGraphLaunch");
  if (!kernel || place(gpu, &total, &placed) || red_stream_create(gpu, &stream) || !begin || !end || !instantiate || !run) {
    result("capture", 0, "cannot begin: %s", red_message());
    return;
  }
  cu_context primary;
  cu_device device;
  driver->device_get(&device, 0); // the driver's own calls need a context that is current
  driver->primary_retain(&primary, device);
  driver->context_set(primary);
  begin(stream, 0);
  red_error early = red_launch(kernel, stream, placed.arguments, 2);
  int ended = end(stream, &graph);
  result("a captured launch without red_prepare", early == RED_ERROR_CAPTURING && ended == 0, "%s, capture ended with %d", red_error_name(early), ended);
  red_error error = red_prepare(kernel, stream, placed.arguments, 2);
  begin(stream, 0);
  if (!error) error = red_launch(kernel, stream, placed.arguments, 2);
  if (!error) error = red_launch(kernel, stream, placed.arguments, 2);
  ended = end(stream, &graph);
  if (!error && !ended) ended = instantiate(&executable, graph, 0);
  float sum = 0, expected = expected_total();
  for (int i = 0; i < 10 && !error && !ended; i++) {
    red_launch(kernel, stream, placed.arguments, 2); // direct ones between them
    ended = run(executable, stream);
  }
  if (!error) error = red_synchronize(gpu, stream);
  if (!error) error = red_copy_out(gpu, &sum, placed.data[1], sizeof sum);
  result("a captured launch", !error && !ended && sum == expected, "%s, CUresult %d, sum %g of %g: %s", red_error_name(error), ended, sum, expected, red_message());
  red_stream_destroy(gpu, stream);
  red_release(program);
  driver->context_set(NULL);
  driver->primary_release(device);
}

// Sums on several streams at once, each with workspace that red keeps.
static void test_streams(void) {
  enum { STREAMS = 4, ROUNDS = 50 };
  struct placed placed[STREAMS] = {0};
  red_stream streams[STREAMS];
  red_program *program;
  const red_kernel *kernel = compile_total(&program);
  red_error error = kernel ? RED_OK : RED_ERROR_COMPILE;
  float expected = expected_total();
  int wrong = 0;
  for (int s = 0; s < STREAMS && !error; s++) {
    error = place(gpu, &total, &placed[s]);
    if (!error) error = red_stream_create(gpu, &streams[s]);
  }
  for (int i = 0; i < ROUNDS && !error; i++)
    for (int s = 0; s < STREAMS && !error; s++) error = red_launch(kernel, streams[s], placed[s].arguments, 2);
  for (int s = 0; s < STREAMS && !error; s++) {
    float sum = 0;
    error = red_synchronize(gpu, streams[s]);
    if (!error) error = red_copy_out(gpu, &sum, placed[s].data[1], sizeof sum);
    wrong += sum != expected;
    red_stream_destroy(gpu, streams[s]);
  }
  result("four streams", !error && !wrong, "%s, %d wrong: %s", red_error_name(error), wrong, red_message());
  red_release(program);
}

static void test_workspace(void) {
  struct placed placed = {0};
  red_program *program;
  const red_kernel *kernel = compile_total(&program);
  size_t bytes = 0;
  void *workspace = NULL;
  float sum = 0, expected = expected_total();
  red_error error = kernel ? place(gpu, &total, &placed) : RED_ERROR_COMPILE;
  if (!error) error = red_workspace_size(kernel, placed.arguments, 2, &bytes);
  if (!error) error = red_alloc(gpu, bytes, &workspace);
  if (!error) error = red_workspace_init(gpu, NULL, workspace, bytes);
  for (int i = 0; i < 3 && !error; i++) error = red_launch_with(kernel, NULL, placed.arguments, 2, workspace, bytes);
  if (!error) error = red_copy_out(gpu, &sum, placed.data[1], sizeof sum);
  result("workspace of the caller", !error && bytes && sum == expected, "%s, %zu bytes, %g of %g: %s", red_error_name(error), bytes, sum, expected, red_message());
  error = bytes ? red_launch_with(kernel, NULL, placed.arguments, 2, workspace, bytes - 1) : RED_OK;
  result("workspace that is too small", error == RED_ERROR_WORKSPACE, "%s", red_error_name(error));
  red_release(program);
}

// Nothing is current before, and nothing after; a context that is current stays so.
static void test_contexts(void) {
  cu_context before = NULL, after = NULL, primary = NULL;
  cu_device device;
  red_device *other = NULL;
  driver->context_current(&before);
  red_error error = red_open("cuda:0", &other);
  driver->context_current(&after);
  result("the current context is put back", !error && before == after, "%s", red_error_name(error));
  red_close(other);
  driver->device_get(&device, 0);
  driver->primary_retain(&primary, device);
  driver->context_set(primary);
  struct placed placed = {0};
  error = place(gpu, &total, &placed);
  driver->context_current(&after);
  result("a context that is current stays so", !error && after == primary, "%s", red_error_name(error));
  driver->context_set(NULL);
  driver->primary_release(device);
}

static void test_bad_input(void) {
  red_program *program;
  const red_kernel *kernel = compile_total(&program);
  struct placed placed = {0};
  static float host[16];
  int64_t shape[] = {16};
  red_error error = kernel ? place(gpu, &total, &placed) : RED_ERROR_COMPILE;
  placed.tensors[0] = red_dense(host, RED_F32, 1, shape); // pageable memory of the host
  if (!error) error = red_prepare(kernel, NULL, placed.arguments, 2);
  result("a pointer of the host", error == RED_ERROR_WRONG_DEVICE, "%s: %s", red_error_name(error), red_message());
  placed.tensors[0] = red_dense(placed.data[0], RED_F64, 1, total.tensors[0].shape);
  error = red_launch(kernel, NULL, placed.arguments, 2);
  result("a wrong type", error == RED_ERROR_TYPE, "%s", red_error_name(error));
  placed.tensors[0] = red_dense((char *)placed.data[0] + 4, RED_F32, 1, (int64_t[]){1000});
  error = red_launch(kernel, NULL, placed.arguments, 2);
  if (!error) error = red_synchronize(gpu, NULL);
  result("a base that is not aligned to 16 bytes", !error, "%s: %s", red_error_name(error), red_message());
  red_release(program);
  error = red_load(gpu, "bad.ptx", "no PTX", 6, &program);
  result("a text without a plan", error == RED_ERROR_PLAN, "%s", red_error_name(error));
}

// The same kernel on the same buffers under two shapes in turn, and with a scalar that changes: none is taken for another.
static void test_repeated(void) {
  static const char text[] = "kernel k(A: f32[n, m], s: f32) -> (B: f32[n]) { for i in n { B[i] = s * sum(j in m) A[i, j]; } }";
  const struct launch_case c = {"", text, NULL, 2, {{RED_F32, 2, {64, 64}}, {RED_F32, 1, {64}}}};
  static float a[64 * 64], b[64];
  struct placed placed = {0};
  red_program *program;
  int wrong = 0;
  red_error error = red_compile_text(gpu, "scaled.red", text, NULL, &program);
  if (!error) error = place(gpu, &c, &placed);
  fill(&c.tensors[0], 0, a);
  for (int i = 0; i < 12 && !error; i++) {
    int64_t shape[] = {i % 2 ? 64 : 32, 64}, rows[] = {shape[0]};
    float scale = (float)(1 + i / 4);
    placed.tensors[0].shape = shape;
    placed.tensors[1].shape = rows;
    red_argument arguments[] = {placed.arguments[0], red_float(scale), placed.arguments[1]};
    memset(b, 0, sizeof b);
    error = red_copy_in(gpu, placed.data[1], b, sizeof b);
    if (!error) error = red_launch(red_kernel_at(program, 0), NULL, arguments, 3);
    if (!error) error = red_copy_out(gpu, b, placed.data[1], sizeof b);
    for (int r = 0; r < 64; r++) {
      float sum = 0;
      for (int j = 0; j < 64; j++) sum += a[64 * r + j];
      wrong += b[r] != (r < shape[0] ? scale * sum : 0);
    }
  }
  result("repeated launches", !error && !wrong, "%s, %d wrong: %s", red_error_name(error), wrong, red_message());
  red_release(program);
}

static void test_common(void) {
  struct launch_case c = {"", "", NULL, 2, {{RED_F32, 3, {33, 20, 17}}, {RED_F32, 3, {17, 33, 20}}}};
  struct placed on_gpu = {0}, on_sim = {0};
  const int perm[] = {2, 0, 1}, axes[] = {0, 2};
  red_error error = place(gpu, &c, &on_gpu);
  if (!error) error = place(sim, &c, &on_sim);
  if (!error) error = red_permute(gpu, NULL, &on_gpu.tensors[0], &on_gpu.tensors[1], perm);
  if (!error) error = red_permute(sim, NULL, &on_sim.tensors[0], &on_sim.tensors[1], perm);
  result("red_permute", !error && difference(&on_gpu, &on_sim, 1, bytes_of(&c.tensors[1])) == -1, "%s: %s", red_error_name(error), red_message());
  int64_t kept[] = {20};
  red_tensor sums = red_dense(on_gpu.data[1], RED_F32, 1, kept), sums_of_sim = red_dense(on_sim.data[1], RED_F32, 1, kept);
  error = red_reduce(gpu, NULL, "sum", &on_gpu.tensors[0], &sums, axes, 2);
  if (!error) error = red_reduce(sim, NULL, "sum", &on_sim.tensors[0], &sums_of_sim, axes, 2);
  result("red_reduce", !error && difference(&on_gpu, &on_sim, 1, 80) == -1, "%s: %s", red_error_name(error), red_message());
}

int main(int argc, char **argv) {
  const char *why;
  driver = driver_open(&why);
  if (!driver) {
    printf("skipped: %s\n", why);
    return 77;
  }
  if (red_open(argc > 1 ? argv[1] : "cuda:0", &gpu) || red_open("sim", &sim)) {
    printf("%s\n", red_message());
    return 1;
  }
  red_device_info info;
  red_describe_device(gpu, &info);
  printf("%s, sm_%d, driver for CUDA %d.%d\n", info.model, info.arch, info.driver_version / 1000, info.driver_version % 1000 / 10);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) test_case(&cases[i]);
  test_repeated();
  test_common();
  test_capture();
  test_streams();
  test_workspace();
  test_contexts();
  test_bad_input();
  red_close(gpu);
  red_close(sim);
  printf("%d passed, %d failed\n", passed, failed);
  return failed != 0;
}

// What a launch costs the host: red_launch beside the bare calls of the driver, on the same kernel, arguments and stream, in one run, in turn.
//
//   build/tests/bench/bench_launch            # needs a GPU
//   build/tests/bench/bench_launch jit 0 3    # the just-in-time times of these kernels alone, by their place
//   build/tests/bench/bench_launch red 3 first    # one of them compiled and loaded, in microseconds: for profilers, also where RED_LIBCUDA names the driver of the tests
//
// Prints microseconds a launch (median of rounds), launch plus synchronisation, the time from text to a loaded kernel over the driver's own time for the same
// PTX, from the disk cache to a loaded kernel over loading the same cubin, and launches a second of eight threads.
#include "runtime/arguments.h"
#include "runtime/driver.h"
#include "runtime/red.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 41, LAUNCHES = 500, SYNCHRONISED = 200, THREADS = 8, THREAD_LAUNCHES = 20000, MAX_TENSORS = 8, OUTPUTS = 32 };

static const struct driver *driver;
static red_device *device;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec; // microseconds
}

static void check(red_error error) {
  if (!error) return;
  fprintf(stderr, "%s: %s\n", red_error_name(error), red_message());
  exit(1);
}

static void check_driver(const char *call, cu_result result) {
  if (!result) return;
  char text[512];
  driver_error_text(driver, call, result, text, sizeof text);
  fprintf(stderr, "%s\n", text);
  exit(1);
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static double median(double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, compare);
  return values[count / 2];
}

// ---- Kernels

struct shape {
  int rank;
  int64_t extents[3];
};
static const struct work {
  const char *name, *text;
  int tensor_count;
  struct shape shapes[MAX_TENSORS];
} works[] = {
    {"row sums 1000 x 10", "kernel k(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }", 2, {{2, {1000, 10}}, {1, {1000}}}},
    {"row sums 1000 x 1000", "kernel k(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }", 2, {{2, {1000, 1000}}, {1, {1000}}}},
    {"column sums 10 x 1000", "kernel k(A: f32[m, n]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[j, i]; } }", 2, {{2, {10, 1000}}, {1, {1000}}}},
    {"column sums 1000 x 1000", "kernel k(A: f32[m, n]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[j, i]; } }", 2, {{2, {1000, 1000}}, {1, {1000}}}},
    {"permute 16 x 32 x 64", "kernel k(X: f32[a, b, c]) -> (Y: f32[c, a, b]) { for i in a, j in b, l in c { Y[l, i, j] = X[i, j, l]; } }", 2,
     {{3, {16, 32, 64}}, {3, {64, 16, 32}}}},
    {"six tensors", "kernel k(A: f32[n], B: f32[n], C: f32[n], D: f32[n], E: f32[n]) -> (F: f32[n]) { for i in n { F[i] = A[i] + B[i] * C[i] - D[i] * E[i]; } }", 6,
     {{1, {4096}}, {1, {4096}}, {1, {4096}}, {1, {4096}}, {1, {4096}}, {1, {4096}}}},
    {"permute (1, 0, 2), 128 MiB", "kernel k(X: f32[a, b, c]) -> (Y: f32[b, a, c]) { for i in a, j in b, l in c { Y[j, i, l] = X[i, j, l]; } }", 2,
     {{3, {256, 512, 256}}, {3, {512, 256, 256}}}},
    {"transposition 4096, f16", "kernel k(X: f16[a, b]) -> (Y: f16[b, a]) { for i in a, j in b { Y[j, i] = X[i, j]; } }", 2, {{2, {4096, 4096}}, {2, {4096, 4096}}}},
    {"odd 2048 x 127 x 129", "kernel k(X: f32[a, b, c]) -> (Y: f32[a, c, b]) { for i in a, j in b, l in c { Y[i, l, j] = X[i, j, l]; } }", 2,
     {{3, {2048, 127, 129}}, {3, {2048, 129, 127}}}},
    {"softmax 1000 x 1000",
     "kernel k(X: f32[n, m]) -> (Y: f32[n, m]) { for i in n { let p = max(j in m) X[i, j]; let s = sum(j in m) exp(X[i, j] - p); for j in m { Y[i, j] = exp(X[i, j] - p) / s; } } }", 2,
     {{2, {1000, 1000}}, {2, {1000, 1000}}}},
};
enum { WORKS = sizeof works / sizeof *works, LAUNCHED = 6 }; // of the later ones no launch is timed

// A kernel with its arguments, for red and for bare calls.
struct ready {
  red_program *program;
  const red_kernel *kernel;
  red_tensor tensors[MAX_TENSORS];
  red_argument arguments[MAX_TENSORS];
  size_t count;
  struct variant *variant;
  struct call call; // evaluated: grids and arguments
};

static void make_arguments(const struct work *work, struct ready *ready) {
  ready->count = (size_t)work->tensor_count;
  red_type type = strstr(work->text, "f16") ? RED_F16 : RED_F32;
  for (int t = 0; t < work->tensor_count; t++) {
    const struct shape *shape = &work->shapes[t];
    size_t bytes = red_type_bytes(type);
    void *data;
    for (int d = 0; d < shape->rank; d++) bytes *= (size_t)shape->extents[d];
    check(red_alloc(device, bytes, &data));
    void *zeros = calloc(1, bytes);
    check(red_copy_in(device, data, zeros, bytes));
    free(zeros);
    ready->tensors[t] = red_dense(data, type, shape->rank, shape->extents);
    ready->arguments[t] = red_of_tensor(&ready->tensors[t]);
  }
}

static void compile(const struct work *work, struct ready *ready) {
  check(red_compile_text(device, "bench.red", work->text, NULL, &ready->program));
  check(red_find(ready->program, NULL, &ready->kernel));
}

// The variant that launches take, and what they pass, for the bare calls.
static void evaluate(struct ready *ready) {
  red_choice choice;
  check(red_choose(ready->kernel, ready->arguments, ready->count, &choice));
  for (uint32_t e = 0; e < ready->kernel->plan->entry_count; e++)
    if (strcmp(ready->kernel->plan->entries[e].name, choice.entry) == 0) ready->variant = ready->kernel->slots[e].variant;
  for (uint32_t i = 0; i < ready->kernel->instance_count && !ready->variant; i++) { // compiled for these sizes
    struct variant *variant = ready->kernel->instances[i].variant;
    for (uint32_t e = 0; e < variant->plan.kernels[0].entry_count; e++)
      if (strcmp(variant->plan.kernels[0].entries[e].name, choice.entry) == 0) ready->variant = variant;
  }
  if (!ready->variant) {
    fprintf(stderr, "the entry %s is not found\n", choice.entry);
    exit(1);
  }
  check(arguments_take(ready->kernel, ready->arguments, ready->count, &ready->call));
  if (plan_evaluate(&ready->variant->plan.kernels[0], &ready->call.input, &ready->call.result) != PLAN_OK) {
    fprintf(stderr, "%s\n", ready->call.result.message);
    exit(1);
  }
  if (ready->call.result.workspace) { // of its own, zeroed
    void *workspace;
    check(red_alloc(device, (size_t)ready->call.result.workspace, &workspace));
    check(red_workspace_init(device, NULL, workspace, (size_t)ready->call.result.workspace));
    plan_place_workspace(&ready->call.result, (uint64_t)(uintptr_t)workspace);
  }
}

static void launch_bare(const struct ready *ready, cu_stream stream) {
  const struct module *module = variant_module(ready->variant);
  for (uint32_t l = 0; l < ready->call.result.launch_count; l++) {
    const struct plan_launch_value *value = &ready->call.result.launches[l];
    void *parameters[PLAN_MAX_ARGUMENTS];
    const uint32_t *block = value->launch->block;
    for (uint32_t a = 0; a < value->launch->argument_count; a++) parameters[a] = (void *)(uintptr_t)&value->arguments[a];
    check_driver("cuLaunchKernel", driver->launch(module->functions[l], value->grid[0], value->grid[1], value->grid[2], block[0], block[1], block[2],
                                                  value->shared, stream, parameters, NULL));
  }
}

// ---- Launches

static void make_outputs(const red_tensor *output, void **outputs) {
  size_t bytes = 4;
  for (int d = 0; d < output->rank; d++) bytes *= (size_t)output->shape[d];
  for (int i = 0; i < OUTPUTS; i++) check(red_alloc(device, bytes, &outputs[i]));
}

static void bench_launches(const struct work *work) {
  struct ready *ready = calloc(1, sizeof *ready);
  double red[ROUNDS], bare[ROUNDS], changing[ROUNDS], red_wall[ROUNDS], bare_wall[ROUNDS];
  void *outputs[OUTPUTS];
  red_stream stream;
  check(red_stream_create(device, &stream));
  make_arguments(work, ready);
  compile(work, ready);
  check(red_prepare(ready->kernel, stream, ready->arguments, ready->count));
  evaluate(ready);
  red_tensor *output = &ready->tensors[ready->count - 1];
  void *first_output = output->data;
  make_outputs(output, outputs);
  for (int round = -2; round < ROUNDS; round++) { // two to warm up
    int r = round < 0 ? 0 : round;
    double start = now();
    for (int i = 0; i < LAUNCHES; i++) launch_bare(ready, stream);
    bare[r] = (now() - start) / LAUNCHES;
    check(red_synchronize(device, stream));
    start = now();
    for (int i = 0; i < LAUNCHES; i++) check(red_launch(ready->kernel, stream, ready->arguments, ready->count));
    red[r] = (now() - start) / LAUNCHES;
    check(red_synchronize(device, stream));
    start = now();
    for (int i = 0; i < LAUNCHES; i++) { // arguments that no recent launch had
      output->data = outputs[i % OUTPUTS];
      check(red_launch(ready->kernel, stream, ready->arguments, ready->count));
    }
    changing[r] = (now() - start) / LAUNCHES;
    output->data = first_output;
    check(red_synchronize(device, stream));
    start = now();
    for (int i = 0; i < SYNCHRONISED; i++) {
      launch_bare(ready, stream);
      driver->stream_synchronize(stream);
    }
    bare_wall[r] = (now() - start) / SYNCHRONISED;
    start = now();
    for (int i = 0; i < SYNCHRONISED; i++) {
      check(red_launch(ready->kernel, stream, ready->arguments, ready->count));
      driver->stream_synchronize(stream);
    }
    red_wall[r] = (now() - start) / SYNCHRONISED;
  }
  double b = median(bare, ROUNDS), m = median(red, ROUNDS), c = median(changing, ROUNDS), bw = median(bare_wall, ROUNDS), mw = median(red_wall, ROUNDS);
  printf("%-24s  bare %6.2f us  red_launch %6.2f us  over it %5.2f us  with changing arguments %5.2f us | with synchronisation: bare %6.2f us  red %6.2f us  ratio %.3f\n", work->name, b, m,
         m - b, c - b, bw, mw, mw / bw);
  fflush(stdout);
}

// ---- Just in time, in processes of their own

static const char *self;

// Text to loaded kernel in this process, with nothing compiled before; microseconds. The second of two kernels where `later`.
static int child_red(const struct work *work, bool later) {
  static const char WARM[] = "kernel warm(A: i32[n]) -> (B: i32[n]) { for i in n { B[i] = A[i] + 1; } }";
  struct ready *ready = calloc(1, sizeof *ready);
  make_arguments(work, ready);
  if (later) {
    struct work warm = {"", WARM, 2, {{1, {64}}, {1, {64}}}};
    struct ready *first = calloc(1, sizeof *first);
    make_arguments(&warm, first);
    compile(&warm, first);
    first->tensors[0].type = first->tensors[1].type = RED_I32;
    check(red_prepare(first->kernel, NULL, first->arguments, first->count));
  }
  double start = now();
  compile(work, ready);
  check(red_prepare(ready->kernel, NULL, ready->arguments, ready->count));
  printf("%.1f\n", now() - start);
  return 0;
}

// The driver's own time for the PTX of the same kernel: linked and loaded, in this process, where red did nothing of the kind before.
static int child_bare(const char *path, bool is_cubin, bool later) {
  static const char WARM[] = ".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry warm() { ret; }\n";
  FILE *file = fopen(path, "rb");
  static char text[1 << 22];
  size_t bytes = file ? fread(text, 1, sizeof text - 1, file) : 0;
  cu_context context;
  cu_device ordinal;
  cu_link link;
  cu_module module;
  void *cubin;
  size_t cubin_bytes;
  check_driver("cuDeviceGet", driver->device_get(&ordinal, 0));
  check_driver("cuDevicePrimaryCtxRetain", driver->primary_retain(&context, ordinal));
  check_driver("cuCtxSetCurrent", driver->context_set(context));
  if (later) check_driver("cuModuleLoadDataEx", driver->module_load(&module, WARM, 0, NULL, NULL));
  double start = now();
  if (!is_cubin) {
    check_driver("cuLinkCreate", driver->link_create(0, NULL, NULL, &link));
    check_driver("cuLinkAddData", driver->link_add(link, CU_JIT_INPUT_PTX, text, bytes + 1, "bench", 0, NULL, NULL));
    check_driver("cuLinkComplete", driver->link_complete(link, &cubin, &cubin_bytes));
    check_driver("cuModuleLoadDataEx", driver->module_load(&module, cubin, 0, NULL, NULL));
  } else {
    check_driver("cuModuleLoadDataEx", driver->module_load(&module, text, 0, NULL, NULL));
  }
  printf("%.1f\n", now() - start);
  return 0;
}

// Runs this program again and reads the number that it prints.
static double ask(const char *environment, const char *arguments) {
  char command[4096];
  double value;
  snprintf(command, sizeof command, "%s '%s' %s", environment, self, arguments);
  FILE *pipe = popen(command, "r");
  if (!pipe || fscanf(pipe, "%lf", &value) != 1) {
    fprintf(stderr, "%s failed\n", command);
    exit(1);
  }
  pclose(pipe);
  return value;
}

// Medians over PAIRS of red's time, the driver's and their difference. The two are asked in turn: a machine's speed drifts by more than what is told apart here.
struct beside {
  double red, bare, over;
};

static struct beside ask_beside(const char *environment, const char *red_arguments, const char *bare_arguments) {
  enum { PAIRS = 9 };
  double red[PAIRS], bare[PAIRS], over[PAIRS];
  for (int i = 0; i < PAIRS; i++) {
    red[i] = ask(environment, red_arguments);
    bare[i] = ask(environment, bare_arguments);
    over[i] = red[i] - bare[i];
  }
  return (struct beside){median(red, PAIRS) / 1e3, median(bare, PAIRS) / 1e3, median(over, PAIRS) / 1e3};
}

static void write_file(const char *path, const void *data, size_t bytes) {
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(data, 1, bytes, file) != bytes || fclose(file) != 0) {
    perror(path);
    exit(1);
  }
}

static void bench_jit(int place, const char *folder) {
  char ptx[512], cubin[512], cached[600];
  struct ready *ready = calloc(1, sizeof *ready);
  make_arguments(&works[place], ready);
  compile(&works[place], ready);
  evaluate(ready);
  snprintf(ptx, sizeof ptx, "%s/bench.ptx", folder);
  snprintf(cubin, sizeof cubin, "%s/bench.cubin", folder);
  write_file(ptx, ready->variant->ptx, ready->variant->ptx_bytes);
  cu_link link;
  void *image;
  size_t bytes;
  cu_context before;
  check_driver("cuCtxGetCurrent", driver->context_current(&before));
  check_driver("cuLinkCreate", driver->link_create(0, NULL, NULL, &link));
  check_driver("cuLinkAddData", driver->link_add(link, CU_JIT_INPUT_PTX, ready->variant->ptx, ready->variant->ptx_bytes + 1, "bench", 0, NULL, NULL));
  check_driver("cuLinkComplete", driver->link_complete(link, &image, &bytes));
  write_file(cubin, image, bytes);

  static const char OFF[] = "CUDA_CACHE_DISABLE=1 RED_CACHE=off";
  char red[32], bare[1200];
  snprintf(red, sizeof red, "red %d first", place);
  snprintf(bare, sizeof bare, "bare '%s' ptx first", ptx);
  struct beside first = ask_beside(OFF, red, bare);
  snprintf(cached, sizeof cached, "CUDA_CACHE_DISABLE=1 RED_CACHE=rw RED_CACHE_DIR='%s'", folder);
  ask(cached, red); // fills the cache
  snprintf(bare, sizeof bare, "bare '%s' cubin first", cubin);
  struct beside disk = ask_beside(cached, red, bare);
  snprintf(red, sizeof red, "red %d later", place);
  snprintf(bare, sizeof bare, "bare '%s' ptx later", ptx);
  struct beside later = ask_beside(OFF, red, bare);
  printf("%-24s  first JIT: red %7.2f ms  driver %7.2f ms  over it %6.2f ms | later: %7.2f  %7.2f  %6.2f | from disk: %6.2f  cubin %6.2f  over it %6.2f\n",
         works[place].name, first.red, first.bare, first.over, later.red, later.bare, later.over, disk.red, disk.bare, disk.over);
  fflush(stdout);
}

// ---- Threads

struct thread {
  pthread_t thread;
  struct ready *ready;
  red_stream stream;
  pthread_barrier_t *barrier;
  bool is_bare;
  cu_context context;
};

static void *launch_many(void *state) {
  struct thread *t = state;
  if (t->is_bare) driver->context_set(t->context);
  pthread_barrier_wait(t->barrier);
  for (int i = 0; i < THREAD_LAUNCHES; i++) {
    if (t->is_bare)
      launch_bare(t->ready, t->stream);
    else
      check(red_launch(t->ready->kernel, t->stream, t->ready->arguments, t->ready->count));
    if (i % 64 == 63) driver->stream_synchronize(t->stream);
  }
  return NULL;
}

// Launches a second of `count` threads, each with a kernel and a stream of its own.
static double run_threads(struct thread *threads, int count, bool is_bare) {
  pthread_barrier_t barrier;
  cu_context context;
  driver->context_current(&context);
  pthread_barrier_init(&barrier, NULL, (unsigned)count + 1);
  for (int i = 0; i < count; i++) {
    threads[i].barrier = &barrier;
    threads[i].is_bare = is_bare;
    threads[i].context = context;
    pthread_create(&threads[i].thread, NULL, launch_many, &threads[i]);
  }
  double start = now(); // before the threads can start
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < count; i++) pthread_join(threads[i].thread, NULL);
  double seconds = 1e-6 * (now() - start);
  pthread_barrier_destroy(&barrier);
  return (double)count * THREAD_LAUNCHES / seconds;
}

static void bench_threads(void) {
  static struct thread threads[THREADS];
  for (int i = 0; i < THREADS; i++) {
    struct work work = works[i % LAUNCHED];
    char text[512]; // kernels of different texts
    snprintf(text, sizeof text, "// %d\n%s", i, work.text);
    work.text = text;
    threads[i].ready = calloc(1, sizeof *threads[i].ready);
    make_arguments(&works[i % LAUNCHED], threads[i].ready);
    compile(&work, threads[i].ready);
    check(red_stream_create(device, &threads[i].stream));
    check(red_prepare(threads[i].ready->kernel, threads[i].stream, threads[i].ready->arguments, threads[i].ready->count));
    evaluate(threads[i].ready);
  }
  for (int count = 1; count <= THREADS; count *= 2) {
    double bare = run_threads(threads, count, true), red = run_threads(threads, count, false);
    printf("%d thread%s  bare %8.0f launches/s  red %8.0f launches/s  ratio %.3f\n", count, count == 1 ? " " : "s", bare, red, red / bare);
    fflush(stdout);
  }
}

int main(int argc, char **argv) {
  const char *why;
  self = argv[0];
  driver = driver_open(&why);
  if (!driver) {
    printf("skipped: %s\n", why);
    return 77;
  }
  if (argc == 5 && strcmp(argv[1], "bare") == 0) return child_bare(argv[2], strcmp(argv[3], "cubin") == 0, strcmp(argv[4], "later") == 0);
  check(red_open("cuda:0", &device));
  red_device_info info;
  check(red_describe_device(device, &info));
  if (argc == 4 && strcmp(argv[1], "red") == 0) return child_red(&works[atoi(argv[2]) % WORKS], strcmp(argv[3], "later") == 0);
  printf("%s, driver for CUDA %d.%d\n", info.model, info.driver_version / 1000, info.driver_version % 1000 / 10);
  cu_context context;
  cu_device ordinal;
  check_driver("cuDeviceGet", driver->device_get(&ordinal, 0));
  check_driver("cuDevicePrimaryCtxRetain", driver->primary_retain(&context, ordinal));
  check_driver("cuCtxSetCurrent", driver->context_set(context));
  bool is_jit = argc > 1 && strcmp(argv[1], "jit") == 0;
  for (int i = 0; i < LAUNCHED && !is_jit; i++) bench_launches(&works[i]);
  if (!is_jit) bench_threads();
  char folder[] = "/tmp/bench-launch-XXXXXX";
  if (!mkdtemp(folder)) return 1;
  for (int i = 0; i < WORKS; i++) {
    bool is_asked = argc <= 2;
    for (int k = 2; k < argc; k++) is_asked |= atoi(argv[k]) == i;
    if (is_asked) bench_jit(i, folder);
  }
  char command[64];
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command) != 0;
}

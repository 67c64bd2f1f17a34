#include "compiler/bench_gpu.h"

#include <stdlib.h>
#include <string.h>

enum { STATIC_LIMIT = 48 * 1024, FLUSH_ROW = 4096 };
static const struct range nowhere;

#define CALL(run, member, ...)                                                                               \
  do {                                                                                                       \
    cu_result error_ = (run)->driver->member(__VA_ARGS__);                                                   \
    if (error_) return cuda_run_fail((run), #member, error_);                                                \
  } while (0)

// --- Kernels

// Memory for the launches: zero where they want it so.
static bool give_workspace(struct cuda_run *run, struct gpu_kernel *kernel) {
  struct plan_result *result = kernel->result;
  if (!result->workspace) return true;
  CALL(run, alloc, &kernel->workspace, (size_t)result->workspace);
  if (result->zeroed) CALL(run, fill, kernel->workspace, 0, (size_t)result->zeroed, NULL);
  plan_place_workspace(result, kernel->workspace);
  return true;
}

bool gpu_kernel_load(struct cuda_run *run, struct gpu_kernel *kernel, const struct text *ptx,
                     const char *name, const struct plan_input *input) {
  char error[512];
  memset(kernel, 0, sizeof *kernel);
  kernel->result = arena_new(&run->c->arena, struct plan_result);
  plan_init(&kernel->plan);
  if (!plan_parse(&kernel->plan, ptx->data, ptx->length, error, sizeof error)) {
    diag_internal(&run->c->diag, "plan", nowhere, "%s", error);
    return false;
  }
  const struct plan_kernel *found = plan_find(&kernel->plan, name);
  if (!found || plan_evaluate(found, input, kernel->result) != PLAN_OK) {
    diag_error(&run->c->diag, ERROR_ARGUMENT, nowhere, "%s",
               found ? kernel->result->message : "the plan has no such kernel");
    return false;
  }
  cu_module before = run->module;
  bool ok = cuda_run_load(run, ptx->data);
  kernel->module = ok ? run->module : NULL;
  run->module = before;
  if (!ok || !give_workspace(run, kernel)) return false;
  for (uint32_t i = 0; i < kernel->result->launch_count; i++) {
    const struct plan_launch_value *launch = &kernel->result->launches[i];
    CALL(run, module_function, &kernel->functions[i], kernel->module, launch->launch->function);
    if (launch->shared > STATIC_LIMIT)
      CALL(run, function_set, kernel->functions[i], CU_FUNCTION_DYNAMIC_SHARED, (int)launch->shared);
  }
  return true;
}

bool gpu_kernel_start(struct cuda_run *run, struct gpu_kernel *kernel) {
  for (uint32_t i = 0; i < kernel->result->launch_count; i++) {
    const struct plan_launch_value *launch = &kernel->result->launches[i];
    void *parameters[PLAN_MAX_ARGUMENTS + 1];
    for (uint32_t k = 0; k < launch->launch->argument_count; k++)
      parameters[k] = (void *)(uintptr_t)&launch->arguments[k];
    cu_result error = driver_launch(run->driver, kernel->functions[i], launch, NULL, parameters);
    if (error) return cuda_run_fail(run, "launch", error);
  }
  return true;
}

void gpu_kernel_free(struct cuda_run *run, struct gpu_kernel *kernel) {
  if (kernel->workspace) run->driver->free(kernel->workspace);
  if (kernel->module) run->driver->module_unload(kernel->module);
  if (kernel->result) plan_destroy(&kernel->plan);
  free(kernel->times);
  memset(kernel, 0, sizeof *kernel);
}

// --- Kernels of our own

static const char READ[] =
    "kernel read(X: f32[r, c]) -> (S: f32[r]) { for i in r { S[i] = sum(j in c) X[i, j]; } }\n";
static const char COPY[] =
    "kernel copy(X: f32[r, c]) -> (S: f32[r, c]) { for i in r, j in c { S[i, j] = X[i, j]; } }\n";

static void define(struct compilation *c, const char *name, int64_t value) {
  struct define *d = arena_new(&c->arena, struct define);
  *d = (struct define){.name = name, .integer = value};
  list_push(&c->arena, &c->options.defines, d);
}

bool gpu_kernel_own(struct cuda_run *run, struct gpu_kernel *kernel, const char *name, int64_t rows,
                    int64_t row, cu_pointer from, cu_pointer to) {
  bool is_copy = strcmp(name, "copy") == 0;
  const char *text = is_copy ? COPY : READ;
  struct compilation code;
  struct text ptx = {0};
  compilation_init(&code);
  code.options.target = run->c->options.target;
  if (strcmp(name, "flush") != 0) define(&code, "r", rows); // not known: no cache hint, under which old lines would stay
  define(&code, "c", row);
  bool ok = compilation_parse_text(&code, name, text, strlen(text)) && compilation_lower(&code) &&
            compilation_emit(&code, EMIT_PTX, &ptx);
  if (!ok)
    diag_internal(&run->c->diag, "bench", nowhere, "the kernel '%s' of redc bench does not compile", name);
  int64_t dims[] = {rows, row}, sizes[] = {rows, row};
  struct plan_tensor_value tensors[] = {{PLAN_F32, 2, dims, NULL, from},
                                        {PLAN_F32, is_copy ? 2 : 1, dims, NULL, to}};
  const struct target *target = code.options.target;
  struct plan_input input = {tensors, NULL, sizes, {run->multiprocessors, target->sm, target->shared_limit}};
  ok = ok && gpu_kernel_load(run, kernel, &ptx, is_copy ? "copy" : "read", &input);
  text_free(&ptx);
  compilation_destroy(&code);
  return ok;
}

// --- Time

bool gpu_clock_begin(struct cuda_run *run, struct gpu_clock *clock) {
  int l2 = 0;
  memset(clock, 0, sizeof *clock);
  CALL(run, device_attribute, &l2, CU_L2_BYTES, run->device);
  int64_t rows = ((int64_t)l2 * 8 + FLUSH_ROW * 4 - 1) / (FLUSH_ROW * 4);
  clock->bytes = rows * FLUSH_ROW * 4;
  if (rows) {
    CALL(run, alloc, &clock->memory, (size_t)(clock->bytes + rows * 4));
    CALL(run, fill, clock->memory, 0, (size_t)clock->bytes, NULL);
    if (!gpu_kernel_own(run, &clock->flush, "flush", rows, FLUSH_ROW, clock->memory,
                        clock->memory + (uint64_t)clock->bytes))
      return false;
  }
  CALL(run, event_create, &clock->begin, 0);
  CALL(run, event_create, &clock->end, 0);
  return true;
}

void gpu_clock_end(struct cuda_run *run, struct gpu_clock *clock) {
  if (clock->begin) run->driver->event_destroy(clock->begin);
  if (clock->end) run->driver->event_destroy(clock->end);
  gpu_kernel_free(run, &clock->flush);
  if (clock->memory) run->driver->free(clock->memory);
  memset(clock, 0, sizeof *clock);
}

static bool time_once(struct cuda_run *run, struct gpu_clock *clock, struct gpu_kernel *kernel,
                      double *microseconds) {
  float milliseconds = 0;
  if (clock->memory && !gpu_kernel_start(run, &clock->flush)) return false;
  CALL(run, event_record, clock->begin, NULL);
  if (!gpu_kernel_start(run, kernel)) return false;
  CALL(run, event_record, clock->end, NULL);
  CALL(run, event_synchronize, clock->end);
  CALL(run, event_elapsed, &milliseconds, clock->begin, clock->end);
  *microseconds = milliseconds * 1e3;
  return true;
}

bool gpu_time(struct cuda_run *run, struct gpu_clock *clock, struct gpu_kernel *const *kernels,
              uint32_t count, uint32_t rounds) {
  for (uint32_t k = 0; k < count; k++) {
    free(kernels[k]->times);
    kernels[k]->times = calloc(rounds + 1, sizeof *kernels[k]->times);
    if (kernels[k]->times) continue;
    diag_error(&run->c->diag, ERROR_FILE, nowhere, "out of memory");
    return false;
  }
  for (uint32_t round = 0; round <= rounds; round++) // the first is overwritten by the second
    for (uint32_t k = 0; k < count; k++)
      if (!time_once(run, clock, kernels[k], &kernels[k]->times[round ? round - 1 : 0])) return false;
  return true;
}

static int order(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

struct quantiles quantiles_of(double *times, uint32_t count) {
  qsort(times, count, sizeof *times, order);
  double middle = count % 2 ? times[count / 2] : (times[count / 2 - 1] + times[count / 2]) / 2;
  return (struct quantiles){middle, times[count / 5], times[count - 1 - count / 5], times[0]};
}

// Any bytes as a PTX file with a plan: a plan that is read must print and read back as the same text, and must survive being
// evaluated for tensors of any shape.
#include "runtime/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void evaluate(const struct plan_kernel *kernel, int64_t extent) {
  static struct plan_result result;
  struct plan_tensor_value *tensors = calloc(kernel->tensor_count + 1, sizeof *tensors);
  union plan_number *scalars = calloc(kernel->scalar_count + 1, sizeof *scalars);
  int64_t dims[PLAN_MAX_RANK], sizes[PLAN_MAX_SIZES];
  for (uint32_t i = 0; i < PLAN_MAX_RANK; i++) dims[i] = extent;
  for (uint32_t i = 0; i < PLAN_MAX_SIZES; i++) sizes[i] = extent;
  for (uint32_t i = 0; i < kernel->tensor_count; i++)
    tensors[i] = (struct plan_tensor_value){kernel->tensors[i].type, kernel->tensors[i].rank, dims, NULL, 4096 + 64 * i};
  struct plan_input input = {.tensors = tensors, .scalars = scalars, .sizes = sizes, .facts = {132, 90, 232448}};
  plan_evaluate(kernel, &input, &result);
  free(tensors);
  free(scalars);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct plan plan, again;
  char error[256];
  plan_init(&plan);
  if (plan_parse(&plan, (const char *)data, size, error, sizeof error)) {
    char *first = plan_print(&plan);
    plan_init(&again);
    if (!plan_parse(&again, first, strlen(first), error, sizeof error)) {
      fprintf(stderr, "printed:\n%s\nrefused: %s\n", first, error);
      abort();
    }
    char *second = plan_print(&again);
    if (strcmp(first, second) != 0) {
      fprintf(stderr, "printed:\n%s\nread and printed again:\n%s\n", first, second);
      abort();
    }
    for (uint32_t i = 0; i < plan.kernel_count; i++)
      for (int64_t extent = 0; extent < 3; extent++) evaluate(&plan.kernels[i], extent == 2 ? INT64_MAX : 7 * extent);
    free(first);
    free(second);
    plan_destroy(&again);
  }
  plan_destroy(&plan);
  return 0;
}

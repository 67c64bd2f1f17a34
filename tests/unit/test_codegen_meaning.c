// Every operation on every type means what the language says, seen by simulating the PTX of both backends.
#include "codegen/arguments.h"
#include "runtime/sim/sim.h"
#include "tests/unit/codegen_check.h"
#include "tests/unit/every_values.h"

enum { COUNT = 1280 };

// The tensor's device address.
static uint64_t address_of(const struct every *every, uint64_t inputs[3][TYPE_COUNT], const uint64_t *outputs,
                           const struct ir_mem *mem) {
  for (int type = 0; type < TYPE_COUNT; type++) {
    if (every->outputs[type] == mem) return outputs[type];
    for (int which = 0; which < 3; which++)
      if (every->inputs[which][type] == mem) return inputs[which][type];
  }
  return 0;
}

static void run_entry(struct every *every, const struct sim_module *module, struct sim_memory *memory,
                      const struct ir_entry *entry, uint64_t inputs[3][TYPE_COUNT], const uint64_t *outputs) {
  struct list arguments = {0};
  codegen_arguments(&every->program.arena, every->program.kernel, entry, &arguments);
  uint64_t parameters[3 * TYPE_COUNT + TYPE_COUNT];
  for (uint32_t k = 0; k < arguments.count; k++)
    parameters[k] = address_of(every, inputs, outputs, list_at(&arguments, struct codegen_argument, k)->mem);
  struct sim_launch launch = {.entry = sim_module_find(module, entry->name),
                              .grid = {COUNT / 32, 1, 1},
                              .block = {32, 1, 1},
                              .parameters = parameters,
                              .parameter_bytes = arguments.count * sizeof *parameters};
  cr_assert(launch.entry, "no entry %s", entry->name);
  cr_assert(launch.entry->parameter_count == arguments.count);
  struct sim_options options = {.jobs = 2};
  struct sim_report report;
  enum sim_result result = sim_launch(module, memory, &launch, &options, &report);
  char line[1024] = "";
  if (report.finding_count) sim_finding_print(&report.findings[0], line, sizeof line);
  cr_assert(result == SIM_OK, "%s: %s %s", entry->name, report.error, line);
  sim_report_free(&report);
}

static int wrong_cases(struct every *every, const char *ptx, const char *what) {
  struct sim_error error;
  struct sim_module *module = sim_module_parse(ptx, strlen(ptx), what, &error);
  cr_assert(module, "%s:%d:%d: %s", what, error.line, error.column, error.message);
  struct every_values values;
  every_values_begin(&values, COUNT);
  struct sim_memory *memory = sim_memory_create();
  uint64_t inputs[3][TYPE_COUNT], outputs[TYPE_COUNT];
  for (int type = 0; type < TYPE_COUNT; type++) {
    if (!every_has_values((enum type)type)) continue;
    uint64_t bytes = (uint64_t)COUNT * type_bytes((enum type)type);
    for (int which = 0; which < 3; which++) {
      inputs[which][type] = sim_alloc(memory, bytes, type_name((enum type)type), true);
      cr_assert(sim_write(memory, inputs[which][type], values.inputs[which][type], bytes));
    }
    outputs[type] = sim_alloc(memory, bytes * EVERY_WIDTH, type_name((enum type)type), false);
  }
  const struct list *entries = &every->program.kernel->entries;
  for (uint32_t k = 0; k < entries->count; k++)
    run_entry(every, module, memory, list_at(entries, struct ir_entry, k), inputs, outputs);
  for (int type = 0; type < TYPE_COUNT; type++)
    if (every_has_values((enum type)type))
      cr_assert(sim_read(memory, outputs[type], values.outputs[type],
                         (uint64_t)COUNT * EVERY_WIDTH * type_bytes((enum type)type)));
  int wrong = every_wrong_cases(every, &values, what);
  sim_memory_destroy(memory);
  sim_module_destroy(module);
  every_values_end(&values);
  return wrong;
}

static void check_nvptx(const char *target, uint32_t level) {
  struct every *every = malloc(sizeof *every);
  every_begin(every);
  struct text ptx = check_ptx(&every->program, target, level);
  char what[40];
  snprintf(what, sizeof what, "%s -O%u", target, level);
  cr_expect(wrong_cases(every, ptx.data, what) == 0);
  text_free(&ptx);
  program_end(&every->program);
  free(every);
}

Test(codegen_meaning, ptx_of_sm_75_unoptimised, .timeout = 100) {
  check_nvptx("sm_75", 0);
}
Test(codegen_meaning, ptx_of_sm_75, .timeout = 100) {
  check_nvptx("sm_75", 3);
}
Test(codegen_meaning, ptx_of_sm_80, .timeout = 100) {
  check_nvptx("sm_80", 1);
}
Test(codegen_meaning, ptx_of_sm_90_unoptimised, .timeout = 100) {
  check_nvptx("sm_90", 0);
}
Test(codegen_meaning, ptx_of_sm_90, .timeout = 100) {
  check_nvptx("sm_90", 3);
}

static void check_cuda(const char *target) {
  if (!check_tool("nvcc")) {
    fprintf(stderr, "nvcc was not found: CUDA is not compiled\n");
    return;
  }
  struct every *every = malloc(sizeof *every);
  every_begin(every);
  struct text cuda = {0}, ptx = {0};
  cr_assert(codegen_cuda(&every->program.context, &cuda, NULL));
  char command[200];
  snprintf(command, sizeof command, "nvcc -Werror all-warnings -arch=%s -ptx -o - %%s 2>&1", target);
  cr_assert(check_run(command, ".cu", cuda.data, &ptx) == 0, "%s", ptx.data);
  cr_expect(wrong_cases(every, ptx.data, "cuda") == 0);
  text_free(&ptx);
  text_free(&cuda);
  program_end(&every->program);
  free(every);
}

Test(codegen_meaning, cuda_of_sm_75, .timeout = 100) {
  check_cuda("sm_75");
}
Test(codegen_meaning, cuda_of_sm_90, .timeout = 100) {
  check_cuda("sm_90");
}

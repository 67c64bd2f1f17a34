#include "compiler/bench_gauge.h"

#include "compiler/run_element.h"
#include "compiler/run_workspace.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DEFAULT_ROUNDS = 30, MOST_ROUNDS = 10000 };

// --- Command line

bool gauge_take_option(struct gauge *gauge, int argc, char **argv, int *at) {
  struct run_program *program = &gauge->program;
  struct compilation *c = &program->c;
  const char *value;
  int64_t number;
  if (run_take_value(c, "--device", argc, argv, at, &value)) {
    if (value && strcmp(value, "cuda") != 0 && strcmp(value, "sim") != 0)
      program_refuse(program, ERROR_USAGE, "--device takes cuda or sim, not '%s'", value);
    gauge->is_simulated = value && strcmp(value, "sim") == 0;
  } else if (run_take_value(c, "--repeats", argc, argv, at, &value)) {
    if (value && run_parse_integer(c, "--repeats", value, 1, MOST_ROUNDS, &number))
      gauge->rounds = (uint32_t)number;
  } else if (run_take_value(c, "--arg", argc, argv, at, &value)) {
    if (value) list_push(&c->arena, &gauge->common.args, (void *)(uintptr_t)value);
  } else if (run_take_value(c, "--seed", argc, argv, at, &value)) {
    if (value && run_parse_integer(c, "--seed", value, 0, INT64_MAX, &number))
      gauge->common.seed = (uint64_t)number;
  } else if (run_take_value(c, "--jobs", argc, argv, at, &value)) {
    if (value && run_parse_integer(c, "--jobs", value, 1, 1024, &number))
      gauge->common.jobs = (uint32_t)number;
  } else {
    return program_take_option(program, argc, argv, at);
  }
  return true;
}

void gauge_check_options(struct gauge *gauge, const char *name, bool has_output) {
  struct run_program *program = &gauge->program;
  const struct compilation *c = &program->c;
  const struct options *options = &program->options;
  if (options->action != ACTION_COMPILE || has_output || options->has_emit || c->stop_after || c->reads_ir ||
      options->save_temps || options->dependencies || options->print_after.count)
    program_refuse(
        program, ERROR_USAGE,
        "redc %s writes no code: --emit and options about passes are for redc alone; see redc %s --help",
        name, name);
  options_check_one_target(&program->options);
  if (!options->inputs.count)
    program_refuse(program, ERROR_USAGE, "redc %s needs a program; see redc %s --help", name, name);
}

// --- Arguments

static bool is_given(const struct list *args, const char *name) {
  size_t length = strlen(name);
  for (uint32_t i = 0; i < args->count; i++)
    if (strncmp(args->at[i], name, length) == 0 && list_at(args, const char, i)[length] == '=') return true;
  return false;
}

// Values for what no --arg gives.
static void fill_in(struct gauge *gauge) {
  struct arena *arena = &gauge->program.c.arena;
  const struct ir_kernel *kernel = gauge->program.kernel;
  struct list *args = &gauge->common.args;
  for (uint32_t i = 0; i < kernel->tensors.count; i++) {
    const struct ir_mem *mem = kernel->tensors.at[i];
    const char *name = mem->label ? mem->label : mem->name;
    if ((!mem->is_output || mem->is_read) && !is_given(args, name))
      list_push(arena, args, (void *)(uintptr_t)arena_printf(arena, "%s=rand(%u)", name, i + 1));
  }
  for (uint32_t i = 0; i < kernel->scalars.count; i++) {
    const struct ir_var *var = kernel->scalars.at[i];
    const char *name = var->label ? var->label : var->name;
    if (!is_given(args, name))
      list_push(arena, args,
                (void *)(uintptr_t)arena_printf(arena, "%s=%s", name, var->type == TYPE_BOOL ? "true" : "1"));
  }
}

static void count_bytes(struct gauge *gauge) {
  const struct run_program *program = &gauge->program;
  for (uint32_t t = 0; t < program->kernel->tensors.count; t++) {
    const struct ir_mem *mem = program->kernel->tensors.at[t];
    int64_t bytes = program->arguments.tensors[t].buffer.count * (int64_t)type_bytes(mem->type);
    if (!mem->is_output || mem->is_read) gauge->bytes_read += bytes;
    if (mem->is_output) gauge->bytes_written += bytes;
  }
}

static bool keep_outputs(struct gauge *gauge) {
  struct run_program *program = &gauge->program;
  char error[256];
  gauge->initial = arena_array(&program->c.arena, struct buffer, program->kernel->tensors.count + 1);
  for (uint32_t t = 0; t < program->kernel->tensors.count; t++) {
    const struct ir_mem *mem = program->kernel->tensors.at[t];
    if (mem->is_output && mem->is_read &&
        !buffer_copy(&gauge->initial[t], &program->arguments.tensors[t].buffer, error, sizeof error))
      return program_refuse(program, ERROR_FILE, "%s", error);
  }
  return true;
}

// Makes the outputs what they were before the first launch.
static void restore_outputs(struct gauge *gauge) {
  struct run_program *program = &gauge->program;
  for (uint32_t t = 0; t < program->kernel->tensors.count; t++) {
    const struct ir_mem *mem = program->kernel->tensors.at[t];
    struct buffer *buffer = &program->arguments.tensors[t].buffer;
    if (!mem->is_output) continue;
    if (mem->is_read)
      memcpy(buffer->memory, gauge->initial[t].memory, buffer->memory_bytes);
    else
      buffer_fill(buffer, BUFFER_POISON);
  }
}

// --- Devices

static bool open_gpu(struct gauge *gauge) {
  struct run_program *program = &gauge->program;
  struct cuda_run *cuda = &gauge->cuda;
  char name[96] = "";
  gauge->is_open = true;
  if (!cuda_run_begin(cuda, &program->c, 0, cuda_run_instead)) return false;
  const struct target *target = cuda_run_target(cuda);
  if (!target) return false;
  if (!program->options.targets.count) program->c.options.target = target;
  program->multiprocessors = cuda->multiprocessors;
  cu_result error = cuda->driver->device_name(name, sizeof name, cuda->device);
  if (error) return cuda_run_fail(cuda, "cuDeviceGetName", error);
  snprintf(gauge->device, sizeof gauge->device, "%s, %s", name, program->c.options.target->name);
  return gpu_clock_begin(cuda, &gauge->clock);
}

static bool map_tensors(struct gauge *gauge) {
  struct run_program *program = &gauge->program;
  uint32_t count = program->kernel->tensors.count;
  gauge->addresses = arena_array(&program->c.arena, uint64_t, count + 1);
  for (uint32_t t = 0; t < count; t++)
    if (!(gauge->addresses[t] = cuda_run_map(&gauge->cuda, &program->arguments.tensors[t].buffer)))
      return false;
  return true;
}

bool gauge_begin(struct gauge *gauge, const char *verb) {
  struct run_program *program = &gauge->program;
  if (!gauge->rounds) gauge->rounds = DEFAULT_ROUNDS;
  for (uint32_t i = 0; i < program->sizes.count; i++)
    if (!arguments_add_size(&program->arguments, list_at(&program->sizes, const char, i))) return false;
  program->arguments.copies_outputs = true;
  if (!program_read(program) || !program_find_kernel(program, verb)) return false;
  if (!gauge->is_simulated && !open_gpu(gauge)) return false;
  if (gauge->is_simulated)
    snprintf(gauge->device, sizeof gauge->device, "simulator, %s", program->c.options.target->name);
  fill_in(gauge);
  if (!arguments_prepare(&program->arguments, program->kernel, &gauge->common.args) ||
      !program_check_requirements(program))
    return false;
  count_bytes(gauge);
  return keep_outputs(gauge) && (gauge->is_simulated || map_tensors(gauge));
}

void gauge_end(struct gauge *gauge) {
  for (uint32_t t = 0; gauge->initial && t < gauge->program.kernel->tensors.count; t++)
    buffer_free(&gauge->initial[t]);
  if (!gauge->is_open) return;
  if (gauge->cuda.has_context) gpu_clock_end(&gauge->cuda, &gauge->clock);
  cuda_run_end(&gauge->cuda);
}

// --- Measuring

static void describe(struct gauge *gauge, const struct plan_result *plan, struct measurement *result) {
  struct arena *arena = &gauge->program.c.arena;
  result->schedule = arena_strdup(arena, plan->entry->schedule);
  result->entry = arena_strdup(arena, plan->entry->name);
  result->launches = plan->launch_count;
  for (uint32_t i = 0; i < plan->launch_count; i++)
    for (int d = 0; d < 3; d++) {
      result->grid[i][d] = plan->launches[i].grid[d];
      result->block[i][d] = plan->launches[i].launch->block[d];
    }
}

static double simulated_cost(const struct gauge *gauge, const struct measurement *m) {
  double blocks = m->launches ? (double)m->counts.blocks / m->launches : 1,
         filled = blocks / (double)gauge->program.multiprocessors;
  double work = (double)m->counts.sectors + 0.25 * (double)(m->counts.instructions + m->counts.shared_passes);
  return work / (filled < 1 && filled > 0 ? filled : 1) + 1000.0 * m->launches;
}

// The launches in the simulator, on the program's buffers.
static bool simulate(struct gauge *gauge, struct simulation *s, const struct plan_kernel *kernel,
                     struct measurement *result) {
  struct run_program *program = &gauge->program;
  struct plan_input input;
  struct plan_result *plan = arena_new(&program->c.arena, struct plan_result);
  struct run_workspace workspace = {0};
  char error[256];
  uint64_t *addresses = arena_array(&program->c.arena, uint64_t, program->kernel->tensors.count + 1);
  for (uint32_t t = 0; t < program->kernel->tensors.count; t++) {
    const struct tensor_argument *tensor = &program->arguments.tensors[t];
    if (!(addresses[t] = simulation_map(s, &tensor->buffer, tensor->source.kind != SOURCE_NONE)))
      return false;
  }
  program_plan_input(program, addresses, &input);
  if (plan_evaluate(kernel, &input, plan) != PLAN_OK)
    return program_refuse(program, ERROR_ARGUMENT, "%s", plan->message);
  bool ok = workspace_begin(&workspace, plan, &program->c.arena, error, sizeof error) ||
            program_refuse(program, ERROR_ARGUMENT, "%s", error);
  if (ok && workspace.buffer.memory) {
    uint64_t address = simulation_map(s, &workspace.buffer, true);
    ok = address != 0;
    plan_place_workspace(plan, address);
  }
  for (uint32_t i = 0; ok && i < plan->launch_count; i++)
    ok = simulation_launch_plan(s, &plan->launches[i], NULL);
  if (ok && !workspace_is_intact(&workspace, error, sizeof error))
    ok = program_refuse(program, ERROR_FINDINGS, "%s", error);
  workspace_end(&workspace);
  describe(gauge, plan, result);
  result->counts = s->counts;
  result->cost = simulated_cost(gauge, result);
  return ok;
}

static bool measure_simulated(struct gauge *gauge, const struct text *ptx, struct measurement *result) {
  struct run_program *program = &gauge->program;
  struct simulation s = {0};
  char error[512];
  struct plan plan;
  plan_init(&plan);
  restore_outputs(gauge);
  bool ok = plan_parse(&plan, ptx->data, ptx->length, error, sizeof error) &&
            simulation_begin(&s, &program->c, ptx->data, ptx->length, "the code", &gauge->common);
  const struct plan_kernel *found = ok ? plan_find(&plan, program->kernel->name) : NULL;
  ok = found && simulate(gauge, &s, found, result);
  if (s.finding_total)
    program_refuse(program, ERROR_FINDINGS, "the simulator found %" PRIu64 " faults in kernel '%s'",
                   s.finding_total, program->kernel->name);
  simulation_end(&s);
  plan_destroy(&plan);
  return ok;
}

// Copies the outputs to the device, or back.
static bool copy_outputs(struct gauge *gauge, bool is_back) {
  const struct run_program *program = &gauge->program;
  for (uint32_t t = 0; t < program->kernel->tensors.count; t++)
    if (list_at(&program->kernel->tensors, struct ir_mem, t)->is_output &&
        !cuda_run_copy(&gauge->cuda, &program->arguments.tensors[t].buffer, is_back))
      return false;
  return true;
}

// One launch on fresh outputs, whose results are kept, then the timed ones.
static bool measure_on_gpu(struct gauge *gauge, const struct text *ptx, bool wants_outputs,
                           struct measurement *result) {
  struct run_program *program = &gauge->program;
  struct cuda_run *cuda = &gauge->cuda;
  struct gpu_kernel kernel;
  struct plan_input input;
  program_plan_input(program, gauge->addresses, &input);
  bool ok = gpu_kernel_load(cuda, &kernel, ptx, program->kernel->name, &input);
  if (ok && wants_outputs) {
    restore_outputs(gauge);
    ok = copy_outputs(gauge, false) && gpu_kernel_start(cuda, &kernel) && copy_outputs(gauge, true);
  }
  if (ok) {
    describe(gauge, kernel.result, result);
    ok = gpu_time(cuda, &gauge->clock, (struct gpu_kernel *[]){&kernel}, 1, gauge->rounds);
  }
  if (ok) {
    result->time = quantiles_of(kernel.times, gauge->rounds);
    result->cost = result->time.median;
  }
  gpu_kernel_free(cuda, &kernel);
  return ok;
}

bool gauge_measure(struct gauge *gauge, const char *schedules, struct expectation *expectation, bool is_quiet,
                   struct measurement *result) {
  struct run_program *program = &gauge->program;
  struct diag *diag = &program->c.diag;
  struct text ptx = {0};
  uint32_t diagnostics = diag->diagnostics.count, errors = diag->error_count, warnings = diag->warning_count;
  memset(result, 0, sizeof *result);
  bool ok = program_compile(program, schedules, is_quiet, &ptx);
  if (ok)
    ok = gauge->is_simulated ? measure_simulated(gauge, &ptx, result)
                             : measure_on_gpu(gauge, &ptx, expectation != NULL, result);
  if (ok && expectation) ok = verify_outputs(program, expectation);
  bool is_wrong = false; // results are never passed over in silence
  for (uint32_t i = diagnostics; i < diag->diagnostics.count; i++) {
    const struct diagnostic *d = diag->diagnostics.at[i];
    is_wrong |= d->kind == DIAG_ERROR && (d->code == ERROR_DIFFERENCE || d->code == ERROR_FINDINGS);
  }
  if (!ok && is_quiet && !diag->internal && !is_wrong) {
    diag->diagnostics.count = diagnostics;
    diag->error_count = errors;
    diag->warning_count = warnings;
    diag->last = NULL;
  }
  text_free(&ptx);
  return ok;
}

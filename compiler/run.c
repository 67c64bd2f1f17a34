// redc run: compiles a program, runs one kernel of it on a device, compares with the reference.
#include "compiler/run.h"

#include "compiler/driver.h"
#include "compiler/input.h"
#include "compiler/output.h"
#include "compiler/plan_build.h"
#include "compiler/reference.h"
#include "compiler/run_batch.h"
#include "compiler/run_cuda.h"
#include "compiler/run_compare.h"
#include "compiler/run_element.h"
#include "compiler/run_kernel.h"
#include "compiler/run_progress.h"
#include "compiler/run_sim.h"
#include "compiler/run_twin.h"
#include "compiler/run_workspace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] =
    "Usage: redc run [options] FILE.red... --arg NAME=VALUE... [--out NAME=FILE.npy...]\n"
    "Compile a program and run one of its kernels.\n\n"
    "Arguments:\n"
    "  --arg NAME=VALUE        value of a tensor or a scalar; see below\n"
    "  --size NAME=N           a size's value at launch; -D NAME=N fixes it when the kernel\n"
    "                          is compiled; files say it by their shape\n"
    "  --out NAME=FILE.npy     write a tensor after the run, whole or not at all\n"
    "  --print NAME            print a tensor after the run\n\n"
    "Running:\n"
    "  --device=auto|cuda|sim|ref\n"
    "                          the GPU, the simulator, or the reference interpreter; auto:\n"
    "                          the GPU where there is one, otherwise the simulator\n"
    "  --kernel NAME           which kernel, where there are several\n"
    "  --entry NAME            this entry of the launch plan, not the first that fits\n"
    "  --check                 compare with the reference: integers and moves exactly,\n"
    "                          floats within what rounding can do\n"
    "  --twin FILE.ptx         run this code too, with the program's launch plan: what nvcc\n"
    "                          makes of the CUDA of --emit=cuda; its outputs must be the same\n"
    "                          bit for bit\n"
    "  --seed N                orders of blocks, warps and lanes in the simulator\n"
    "  --jobs N                host threads of the simulator\n"
    "  --stats[=json]          print what the simulator counted\n"
    "  --batch=FILE            run many: each line of FILE (- is standard input) has the arguments\n"
    "                          of one, behind those given here; quotes as in a shell, # comments\n"
    "  --timeout N             seconds that one of a batch may take; --jobs N: of them at a time\n"
    "  --help                  print this text\n\n"
    "Options of redc for compilation and messages apply too: -D --arch --schedule -O -G\n"
    "--fp-contract --diagnostics --color --error-limit -Werror --remarks.\n\n"
    "A tensor's VALUE is one of these:\n"
    "  a.npy  @PATH  bf16@a.npy    a file; with a type, the bits of one NumPy lacks\n"
    "  rand  rand(SEED)            floats in [-1, 1), integers over their whole range\n"
    "  iota                        0, 1, 2, ... in row-major order\n"
    "  const(X)                    X everywhere\n"
    "  1000*i0 + i1                a formula over the indices i0, i1, ..., the row-major\n"
    "                              number i, and the sizes\n"
    "and a view behind it: iota@offset:1,strides:1003:1 (in elements).\n\n"
    "Exit status: 0 all is well; 1 an error, a finding of the simulator, or a difference\n"
    "from the reference; 2 the command line is not legal; 3 a fault of the compiler.\n";

enum device { DEVICE_AUTO, DEVICE_CUDA, DEVICE_SIM, DEVICE_REF };

struct run {
  struct compilation c; // to the stages: what the reference runs, and the names
  struct options options;
  struct run_options common;
  const char *kernel_name;
  enum device device;
  int64_t multiprocessors; // of the device; the simulator's stands for a large one
  bool checks;
  const char *twin; // path of --twin, or NULL
  bool is_twin;     // it is what runs
  struct list sizes;  // const char *: --size
  struct text *texts; // of the inputs
  const struct ir_kernel *kernel;
  const struct ir_entry *entry; // its first, at the stages
  struct kernel_arguments arguments;
  struct run_workspace workspace; // of the launches
  struct text out; // for standard output
  struct batch_session *session; // of a batch; NULL: none
};

static const struct range nowhere;

static bool refuse(struct run *run, enum diag_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool refuse(struct run *run, enum diag_code code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const char *message = arena_vprintf(&run->c.arena, format, arguments);
  va_end(arguments);
  diag_error(&run->c.diag, code, nowhere, "%s", message);
  return false;
}

// --- Command line
// ---------------------------------------------------------------------------------------------------------------

static bool take_device(struct run *run, const char *value) {
  static const char *const names[] = {"auto", "cuda", "sim", "ref"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(names[i], value) == 0) {
      run->device = (enum device)i;
      return true;
    }
  return refuse(run, ERROR_USAGE, "--device takes auto, cuda, sim or ref, not '%s'", value);
}

static bool take_option(struct run *run, int argc, char **argv, int *at) {
  const char *value;
  struct compilation *c = &run->c;
  if (run_take_option(&run->common, c, argc, argv, at)) return true;
  if (run_take_value(c, "--kernel", argc, argv, at, &value)) {
    run->kernel_name = value;
  } else if (run_take_value(c, "--size", argc, argv, at, &value)) {
    if (value) list_push(&c->arena, &run->sizes, (void *)(uintptr_t)value);
  } else if (run_take_value(c, "--device", argc, argv, at, &value)) {
    if (value) take_device(run, value);
  } else if (run_take_value(c, "--batch", argc, argv, at, &value)) {
    refuse(run, ERROR_USAGE, "--batch stands on the command line itself, not in a file of arguments");
  } else if (run_take_value(c, "--twin", argc, argv, at, &value)) {
    run->twin = value;
  } else if (run_take_flag("--check", argc, argv, at)) {
    run->checks = true;
  } else {
    return false;
  }
  return true;
}

// Whether there is something to run. Errors are in the diagnostics.
static bool parse_command_line(struct run *run, int argc, char **argv) {
  struct compilation *c = &run->c;
  if (!options_expand(&c->diag, argc, argv, &argc, &argv)) return false;
  for (int at = 1; at < argc;)
    if (!take_option(run, argc, argv, &at) && options_take(&run->options, argc, argv, &at) == OPTION_NOT_ONE)
      list_push(&c->arena, &run->options.inputs, argv[at++]);
  if (run->common.wants_help || run->options.action == ACTION_HELP) {
    run->common.wants_help = true;
    return !c->diag.error_count;
  }
  if (run->options.action != ACTION_COMPILE || run->options.has_output || run->options.has_emit ||
      c->stop_after || c->reads_ir || run->options.save_temps || run->options.dependencies || run->options.print_after.count)
    refuse(run, ERROR_USAGE,
           "redc run writes no code: -o, --emit, --print-after, --stop-after, --from, --save-temps and "
           "options that only "
           "print are for redc alone; see redc run --help");
  options_check_one_target(&run->options);
  if (run->twin && run->device == DEVICE_AUTO) run->device = DEVICE_SIM;
  if (run->twin && run->device != DEVICE_SIM)
    refuse(run, ERROR_USAGE, "--twin is for the simulator: --device=sim");
  if (!run->options.inputs.count) refuse(run, ERROR_USAGE, "redc run needs a program; see redc run --help");
  run->arguments = (struct kernel_arguments){.options = &run->options, .c = c};
  for (uint32_t i = 0; i < run->sizes.count; i++)
    arguments_add_size(&run->arguments, list_at(&run->sizes, const char, i));
  return !c->diag.error_count;
}

// --- Program
// --------------------------------------------------------------------------------------------------------------------

static bool read_program(struct run *run) {
  const struct list *inputs = &run->options.inputs;
  bool ok = true;
  run->texts = arena_array(&run->c.arena, struct text, inputs->count + 1);
  for (uint32_t i = 0; i < inputs->count; i++) {
    const char *path = list_at(inputs, const char, i);
    ok &= input_read(&run->c.diag, path, &run->texts[i]) &&
          compilation_parse_text(&run->c, input_name(path), run->texts[i].data ? run->texts[i].data : "",
                                 run->texts[i].length);
  }
  return ok && compilation_check(&run->c);
}

static bool find_kernel(struct run *run) {
  const char *names = "";
  struct list *kernels = &run->c.module.kernels;
  for (uint32_t i = 0; i < kernels->count; i++) {
    const struct ir_kernel *kernel = list_at(kernels, struct ir_kernel, i);
    names = arena_printf(&run->c.arena, "%s%s%s", names, i ? ", " : "", kernel->name);
    if (run->kernel_name ? strcmp(kernel->name, run->kernel_name) == 0 : kernels->count == 1)
      run->kernel = kernel;
  }
  if (!run->kernel && run->kernel_name)
    return refuse(run, ERROR_USAGE, "there is no kernel '%s'; there are %s", run->kernel_name, names);
  if (!run->kernel) return refuse(run, ERROR_USAGE, "say which kernel to run with --kernel: %s", names);
  if (!run->kernel->entries.count)
    return refuse(run, ERROR_USAGE, "kernel '%s' has no entry", run->kernel->name);
  run->entry = list_at(&run->kernel->entries, struct ir_entry, 0);
  return true;
}

// Whether all that was reported is that an axis bound to threads has no constant extent.
static bool needs_exact_sizes(const struct compilation *c) {
  for (uint32_t i = 0; i < c->diag.diagnostics.count; i++) {
    const struct diagnostic *d = list_at(&c->diag.diagnostics, struct diagnostic, i);
    if (d->kind == DIAG_ERROR && d->code != ERROR_EXTENT) return false;
  }
  return c->diag.error_count > 0;
}

// The other kernels of the program are not compiled.
static void keep_kernel(struct ir_module *module, const char *name) {
  for (uint32_t i = module->kernels.count; i-- > 0;)
    if (strcmp(list_at(&module->kernels, struct ir_kernel, i)->name, name) != 0)
      list_remove(&module->kernels, i);
}

// Compiles to PTX; `exact`: with every size of the kernel fixed.
static bool compile(struct run *run, struct compilation *code, bool exact, struct text *ptx) {
  compilation_init(code);
  code->options = run->c.options;
  code->verify_each = run->c.verify_each;
  code->diag.error_limit = run->c.diag.error_limit;
  code->diag.warnings_are_errors = run->c.diag.warnings_are_errors;
  code->options.defines = list_copy(&code->arena, &run->c.options.defines);
  for (uint32_t i = 0; exact && i < run->kernel->sizes.count; i++) {
    const struct ir_var *size = list_at(&run->kernel->sizes, struct ir_var, i);
    if (size->constant || (size->inferred && size->inferred->op == OP_STRIDE)) continue;
    struct define *define = arena_new(&code->arena, struct define);
    *define =
        (struct define){.name = size->label ? size->label : size->name, .integer = run->arguments.sizes[i]};
    list_push(&code->arena, &code->options.defines, define);
  }
  bool ok = true;
  for (uint32_t i = 0; ok && i < run->options.inputs.count; i++)
    ok = compilation_parse_text(code, input_name(list_at(&run->options.inputs, const char, i)),
                                run->texts[i].data ? run->texts[i].data : "", run->texts[i].length);
  ok = ok && compilation_check(code);
  if (ok) keep_kernel(&code->module, run->kernel->name);
  return ok && compilation_lower(code) && compilation_emit(code, EMIT_PTX, ptx);
}

// PTX of the program, with the diagnostics of its compilation printed. Sizes are fixed only where a schedule
// needs it.
static bool compile_program(struct run *run, struct text *ptx) {
  struct compilation code;
  bool ok = compile(run, &code, false, ptx);
  if (!ok && needs_exact_sizes(&code)) {
    compilation_destroy(&code);
    text_free(ptx);
    *ptx = (struct text){0};
    ok = compile(run, &code, true, ptx);
  }
  struct options printing = run->options;
  printing.compilation = &code;
  driver_print_diagnostics(&printing);
  run->c.diag.internal |= code.diag.internal;
  compilation_destroy(&code);
  return ok;
}

// --- Devices
// --------------------------------------------------------------------------------------------------------------------

// Runs the reference on `buffers`, one a tensor.
static bool run_reference(struct run *run, const struct buffer *const *buffers, bool is_wide,
                          uint64_t *elements) {
  const struct ir_kernel *kernel = run->kernel;
  char error[512];
  struct reference_count count;
  struct progress progress;
  struct reference_tensor *tensors =
      arena_array(&run->c.arena, struct reference_tensor, kernel->tensors.count + 1);
  for (uint32_t t = 0; t < kernel->tensors.count; t++)
    tensors[t] = (struct reference_tensor){buffer_data(buffers[t]), buffers[t]->strides};
  struct reference_input input = {.tensors = tensors,
                                  .scalars = run->arguments.scalars,
                                  .sizes = run->arguments.sizes,
                                  .is_wide = is_wide,
                                  .progress = progress_update,
                                  .progress_state = &progress};
  progress_begin(&progress, "reference");
  bool ok = reference_run(kernel, run->entry, &input, &count, error, sizeof error);
  progress_end(&progress);
  *elements = count.elements;
  if (!ok) diag_internal(&run->c.diag, "reference", nowhere, "%s", error);
  return ok;
}

static enum plan_type plan_type_of(enum type type) {
  enum plan_type found = PLAN_I64;
  plan_type_find(type_name(type), strlen(type_name(type)), &found);
  return found;
}

// What the plan evaluates: the buffers at their addresses on the device.
static void make_plan_input(struct run *run, const uint64_t *addresses, struct plan_input *input) {
  const struct ir_kernel *kernel = run->kernel;
  struct plan_tensor_value *tensors =
      arena_array(&run->c.arena, struct plan_tensor_value, kernel->tensors.count + 1);
  union plan_number *scalars = arena_array(&run->c.arena, union plan_number, kernel->scalars.count + 1);
  for (uint32_t t = 0; t < kernel->tensors.count; t++) {
    const struct buffer *buffer = &run->arguments.tensors[t].buffer;
    tensors[t] = (struct plan_tensor_value){plan_type_of(buffer->type), buffer->rank, buffer->dims,
                                            buffer->strides, addresses[t]};
  }
  for (uint32_t i = 0; i < kernel->scalars.count; i++) {
    const struct value *value = &run->arguments.scalars[i];
    if (type_is_float(value->type) || type_class_of(value->type) == CLASS_STORAGE)
      scalars[i].number = value->number;
    else
      scalars[i].integer = value->integer;
  }
  const struct target *target = run->c.options.target;
  *input =
      (struct plan_input){tensors, scalars, run->arguments.sizes, {run->multiprocessors, target->sm, target->shared_limit}};
}

// Only the entry of --entry.
static bool choose_entry(struct run *run, struct plan_kernel *kernel) {
  const char *names = "";
  if (!run->common.entry) return true;
  for (uint32_t i = 0; i < kernel->entry_count; i++) {
    names = arena_printf(&run->c.arena, "%s%s%s", names, i ? ", " : "", kernel->entries[i].name);
    if (strcmp(kernel->entries[i].name, run->common.entry) != 0) continue;
    kernel->entries += i;
    kernel->entry_count = 1;
    return true;
  }
  return refuse(run, ERROR_USAGE, "kernel '%s' has no entry '%s'; it has %s", kernel->name, run->common.entry,
                names);
}

// Lays the arguments out as the entry's parameters and launches.
static bool launch(struct run *run, struct simulation *simulation, const struct plan_launch_value *value) {
  const struct sim_entry *entry = sim_module_find(simulation->module, value->launch->function);
  bool is_there = entry && entry->parameter_count == value->launch->argument_count;
  if (!is_there && run->is_twin)
    return refuse(run, ERROR_ARGUMENT, "'%s' has no entry '%s' with %" PRIu32 " parameters", run->twin, value->launch->function,
                  value->launch->argument_count);
  if (!is_there) {
    diag_internal(&run->c.diag, "plan", nowhere, "the PTX has no entry '%s' with %" PRIu32 " parameters",
                  value->launch->function, value->launch->argument_count);
    return false;
  }
  char *blob = arena_alloc(&run->c.arena, entry->parameter_bytes + 8);
  for (uint32_t i = 0; i < value->launch->argument_count; i++) {
    const struct sim_parameter *parameter = &entry->parameters[i];
    if (parameter->size != value->launch->arguments[i].bytes) {
      diag_internal(&run->c.diag, "plan", nowhere,
                    "parameter %" PRIu32 " of '%s' has %zu bytes, the plan passes %" PRIu32, i, entry->name,
                    parameter->size, value->launch->arguments[i].bytes);
      return false;
    }
    memcpy(blob + parameter->offset, &value->arguments[i], parameter->size);
  }
  struct sim_launch launched = {.entry = entry,
                                .dynamic_shared = value->shared,
                                .parameters = blob,
                                .parameter_bytes = entry->parameter_bytes};
  for (int d = 0; d < 3; d++) {
    launched.grid[d] = value->grid[d];
    launched.block[d] = value->launch->block[d];
  }
  if (run->common.stats == STATS_TEXT)
    text_printf(&simulation->printed,
                "%s: grid %" PRIu32 " %" PRIu32 " %" PRIu32 ", block %" PRIu32 " %" PRIu32 " %" PRIu32 "\n",
                entry->name, launched.grid[0], launched.grid[1], launched.grid[2], launched.block[0],
                launched.block[1], launched.block[2]);
  return simulation_launch(simulation, &launched);
}

static bool begin_workspace(struct run *run, const struct plan_result *result) {
  char error[256];
  workspace_end(&run->workspace); // of another code of the kernel
  return workspace_begin(&run->workspace, result, &run->c.arena, error, sizeof error) ||
         refuse(run, ERROR_ARGUMENT, "%s", error);
}

static bool launch_all(struct run *run, struct simulation *simulation, struct plan_kernel *kernel,
                       const uint64_t *addresses) {
  struct plan_input input;
  struct plan_result *result = arena_new(&run->c.arena, struct plan_result);
  make_plan_input(run, addresses, &input);
  if (!choose_entry(run, kernel)) return false;
  if (plan_evaluate(kernel, &input, result) != PLAN_OK)
    return refuse(run, ERROR_ARGUMENT, "%s", result->message);
  if (run->common.stats == STATS_TEXT) text_puts(&simulation->printed, result->notes);
  bool ok = begin_workspace(run, result);
  if (ok && run->workspace.buffer.memory) {
    const struct buffer *buffer = &run->workspace.buffer;
    uint64_t address = simulation_map(simulation, buffer, true);
    ok = address && sim_mark(simulation->memory, address + (uint64_t)run->workspace.zeroed,
                             (uint64_t)(buffer->bytes - run->workspace.zeroed), false);
    plan_place_workspace(result, address);
  }
  for (uint32_t i = 0; ok && i < result->launch_count; i++)
    ok = launch(run, simulation, &result->launches[i]);
  return ok;
}

// The PTX that was emitted, or another one, under the plan of the one that was emitted, in the simulator.
static bool simulate(struct run *run, struct simulation *simulation, const struct text *ptx,
                     const struct text *code, const char *name) {
  char error[512];
  struct plan plan;
  plan_init(&plan);
  if (!plan_parse(&plan, ptx->data, ptx->length, error, sizeof error)) {
    diag_internal(&run->c.diag, "plan", nowhere, "%s", error);
    return false;
  }
  bool ok = simulation_begin(simulation, &run->c, code->data, code->length, name, &run->common);
  uint64_t *addresses = arena_array(&run->c.arena, uint64_t, run->kernel->tensors.count + 1);
  for (uint32_t t = 0; ok && t < run->kernel->tensors.count; t++) {
    const struct tensor_argument *tensor = &run->arguments.tensors[t];
    addresses[t] = simulation_map(simulation, &tensor->buffer, tensor->source.kind != SOURCE_NONE);
    ok = addresses[t] != 0;
  }
  const struct plan_kernel *found = ok ? plan_find(&plan, run->kernel->name) : NULL;
  if (ok && !found)
    diag_internal(&run->c.diag, "plan", nowhere, "the plan has no kernel '%s'", run->kernel->name);
  ok = found && launch_all(run, simulation, &plan.kernels[found - plan.kernels], addresses);
  plan_destroy(&plan);
  return ok;
}

// The requirements of the kernel, from the stages: what no device may be asked for. The plan's entries do not
// matter here.
static struct list no_parameters(struct arena *arena, struct ir_kernel *kernel, struct ir_entry *entry) {
  (void)arena, (void)kernel, (void)entry;
  return (struct list){0};
}
static bool check_requirements(struct run *run) {
  struct plan plan;
  struct plan_input input;
  struct plan_result *result = arena_new(&run->c.arena, struct plan_result);
  uint64_t *addresses = arena_array(&run->c.arena, uint64_t, run->kernel->tensors.count + 1);
  for (uint32_t t = 0; t < run->kernel->tensors.count; t++)
    addresses[t] = (uint64_t)(uintptr_t)buffer_data(&run->arguments.tensors[t].buffer);
  make_plan_input(run, addresses, &input);
  plan_init(&plan);
  bool ok = plan_build(&plan, &run->c.module, no_parameters);
  const struct plan_kernel *kernel = ok ? plan_find(&plan, run->kernel->name) : NULL;
  enum plan_status status = kernel ? plan_evaluate(kernel, &input, result) : PLAN_LIMIT;
  if (status != PLAN_OK && status != PLAN_LIMIT) ok = refuse(run, ERROR_ARGUMENT, "%s", result->message);
  plan_destroy(&plan);
  return ok;
}

// The PTX on a GPU, for its architecture unless --arch says another.
static bool run_on_gpu(struct run *run, struct cuda_run *cuda) {
  struct text ptx = {0};
  char error[512];
  struct plan plan;
  plan_init(&plan);
  const struct target *target = cuda_run_target(cuda);
  if (!target) return false;
  if (strcmp(run->c.options.target->name, "sm_75") == 0) run->c.options.target = target;
  run->multiprocessors = cuda->multiprocessors;
  bool ok = compile_program(run, &ptx) && plan_parse(&plan, ptx.data, ptx.length, error, sizeof error) && cuda_run_load(cuda, ptx.data);
  uint64_t *addresses = arena_array(&run->c.arena, uint64_t, run->kernel->tensors.count + 1);
  for (uint32_t t = 0; ok && t < run->kernel->tensors.count; t++) {
    addresses[t] = cuda_run_map(cuda, &run->arguments.tensors[t].buffer);
    ok = addresses[t] != 0;
  }
  const struct plan_kernel *found = ok ? plan_find(&plan, run->kernel->name) : NULL;
  struct plan_input input;
  struct plan_result *result = arena_new(&run->c.arena, struct plan_result);
  if (found) {
    struct plan_kernel *kernel = &plan.kernels[found - plan.kernels];
    make_plan_input(run, addresses, &input);
    ok = choose_entry(run, kernel);
    if (ok && plan_evaluate(kernel, &input, result) != PLAN_OK) ok = refuse(run, ERROR_ARGUMENT, "%s", result->message);
    ok = ok && begin_workspace(run, result);
    if (ok && run->workspace.buffer.memory) {
      uint64_t address = cuda_run_map(cuda, &run->workspace.buffer);
      ok = address != 0;
      plan_place_workspace(result, address);
    }
    for (uint32_t i = 0; ok && i < result->launch_count; i++) ok = cuda_run_launch(cuda, &result->launches[i]);
    ok = ok && cuda_run_collect(cuda);
  }
  plan_destroy(&plan);
  text_free(&ptx);
  return ok && found;
}

static bool check_canaries(struct run *run) {
  char error[256];
  bool ok = true;
  for (uint32_t t = 0; t < run->kernel->tensors.count; t++)
    if (!buffer_has_canaries(&run->arguments.tensors[t].buffer, error, sizeof error))
      ok = refuse(run, ERROR_FINDINGS, "%s", error);
  if (!workspace_is_intact(&run->workspace, error, sizeof error)) ok = refuse(run, ERROR_FINDINGS, "%s", error);
  return ok;
}

static bool simulate_code(struct run *run, const struct text *ptx, const struct text *code, const char *name) {
  struct simulation simulation = {0};
  bool ok = simulate(run, &simulation, ptx, code, name);
  if (simulation.finding_total)
    refuse(run, ERROR_FINDINGS, "the simulator found %" PRIu64 " faults in kernel '%s'",
           simulation.finding_total, run->kernel->name);
  text_append(&run->out, simulation.printed.data, simulation.printed.length);
  simulation_end(&simulation);
  return ok;
}

// What the code of --twin makes of the arguments, which are then as before; NULL after an error.
static struct twin_bytes *run_twin(struct run *run, const struct text *ptx) {
  struct text code = {0};
  struct twin_bytes *before = twin_keep(&run->arguments), *after = NULL;
  run->is_twin = true;
  if (before && input_read(&run->c.diag, run->twin, &code) && simulate_code(run, ptx, &code, input_name(run->twin)) &&
      check_canaries(run))
    after = twin_keep(&run->arguments);
  run->is_twin = false;
  if (before) twin_restore(&run->arguments, before);
  twin_free(before);
  text_free(&code);
  return after;
}

static bool run_on_device(struct run *run) {
  const struct ir_kernel *kernel = run->kernel;
  const char *why;
  if (run->device == DEVICE_AUTO && driver_open(&why)) run->device = DEVICE_CUDA;
  if (run->device == DEVICE_CUDA) {
    struct cuda_run cuda;
    bool ok = cuda_run_begin(&cuda, &run->c, 0);
    cuda.keeps_context = ok && run->session;
    ok = ok && run_on_gpu(run, &cuda);
    if (run->session) run->session->is_lost = !cuda_run_is_sound(&cuda);
    cuda_run_end(&cuda);
    return ok;
  }
  if (run->device == DEVICE_REF) {
    uint64_t elements;
    const struct buffer **buffers =
        arena_array(&run->c.arena, const struct buffer *, kernel->tensors.count + 1);
    for (uint32_t t = 0; t < kernel->tensors.count; t++) buffers[t] = &run->arguments.tensors[t].buffer;
    return run_reference(run, buffers, false, &elements);
  }
  struct text ptx = {0};
  const char *name =
      arena_printf(&run->c.arena, "%s.ptx", input_name(list_at(&run->options.inputs, const char, 0)));
  bool ok = compile_program(run, &ptx);
  struct twin_bytes *twin = NULL;
  if (ok && run->twin) ok = (twin = run_twin(run, &ptx)) != NULL;
  ok = ok && simulate_code(run, &ptx, &ptx, name);
  if (ok && twin) ok = twin_agrees(&run->arguments, twin, run->twin);
  twin_free(twin);
  text_free(&ptx);
  return ok;
}

// --- Results
// --------------------------------------------------------------------------------------------------------------------

// The row-major number of an element as its indices: "3, 17".
static const char *index_text(struct run *run, const struct buffer *buffer, int64_t flat) {
  const char *text = "";
  for (uint32_t d = buffer->rank; d-- > 0; flat /= buffer->dims[d])
    text = arena_printf(&run->c.arena, "%" PRId64 "%s%s", flat % buffer->dims[d], *text ? ", " : "", text);
  return text;
}

static const char *element_text(struct run *run, const struct buffer *buffer, int64_t flat) {
  struct text text = {0};
  const uint8_t *element = buffer_data(buffer);
  for (uint32_t d = buffer->rank; d-- > 0; flat /= buffer->dims[d])
    element += flat % buffer->dims[d] * buffer->strides[d] * (int64_t)type_bytes(buffer->type);
  element_print(&text, buffer->type, element);
  const char *copy = arena_strdup(&run->c.arena, text.data);
  text_free(&text);
  return copy;
}

static bool compare_output(struct run *run, uint32_t t, const struct buffer *want, const struct buffer *wide,
                           uint64_t steps) {
  const struct ir_mem *mem = list_at(&run->kernel->tensors, struct ir_mem, t);
  const struct buffer *got = &run->arguments.tensors[t].buffer;
  struct comparison result;
  enum exactness exactness = compare_exactness(run->kernel, run->entry, mem);
  if (compare_buffers(got, want, wide, exactness, steps, &result)) return true;
  refuse(run, ERROR_DIFFERENCE, "%" PRId64 " of %" PRId64 " elements of '%s' differ from the reference",
         result.different, got->count, got->name);
  if (exactness == ROUNDED)
    diag_note(&run->c.diag, nowhere, "the worst is %s[%s] = %s, expected %s within %.3g", got->name,
              index_text(run, got, result.worst), element_text(run, got, result.worst),
              element_text(run, want, result.worst), result.tolerance);
  else
    diag_note(&run->c.diag, nowhere, "the %s is %s[%s] = %s, expected %s",
              exactness == EXACT_BITS ? "first" : "worst", got->name, index_text(run, got, result.worst),
              element_text(run, got, result.worst), element_text(run, want, result.worst));
  return false;
}

// The outputs as they were before the run, for the reference to write to.
struct expectation {
  struct buffer *want, *wide; // one a tensor; those of inputs are not used
};

static bool copy_outputs(struct run *run, struct expectation *expectation) {
  uint32_t count = run->kernel->tensors.count;
  char error[256];
  expectation->want = arena_array(&run->c.arena, struct buffer, count + 1);
  expectation->wide = arena_array(&run->c.arena, struct buffer, count + 1);
  for (uint32_t t = 0; t < count; t++) {
    const struct buffer *buffer = &run->arguments.tensors[t].buffer;
    if (list_at(&run->kernel->tensors, struct ir_mem, t)->is_output &&
        (!buffer_copy(&expectation->want[t], buffer, error, sizeof error) ||
         !buffer_copy(&expectation->wide[t], buffer, error, sizeof error)))
      return refuse(run, ERROR_FILE, "%s", error);
  }
  return true;
}

static void free_outputs(struct run *run, struct expectation *expectation) {
  for (uint32_t t = 0; expectation->want && t < run->kernel->tensors.count; t++) {
    buffer_free(&expectation->want[t]);
    buffer_free(&expectation->wide[t]);
  }
}

static bool compare_with_reference(struct run *run, const struct expectation *expectation) {
  uint32_t count = run->kernel->tensors.count;
  const struct buffer **want = arena_array(&run->c.arena, const struct buffer *, count + 1);
  const struct buffer **wide = arena_array(&run->c.arena, const struct buffer *, count + 1);
  bool rounds = false, ok = true;
  for (uint32_t t = 0; t < count; t++) {
    struct ir_mem *mem = list_at(&run->kernel->tensors, struct ir_mem, t);
    const struct buffer *buffer = &run->arguments.tensors[t].buffer;
    want[t] = mem->is_output ? &expectation->want[t] : buffer;
    wide[t] = mem->is_output ? &expectation->wide[t] : buffer;
    rounds = rounds || (mem->is_output && compare_exactness(run->kernel, run->entry, mem) == ROUNDED);
  }
  uint64_t elements = 0;
  if (!run_reference(run, want, false, &elements) || (rounds && !run_reference(run, wide, true, &elements)))
    return false;
  for (uint32_t t = 0; t < count; t++)
    if (list_at(&run->kernel->tensors, struct ir_mem, t)->is_output)
      ok &= compare_output(run, t, want[t], wide[t], elements);
  return ok;
}

static bool print_tensors(struct run *run) {
  for (uint32_t i = 0; i < run->common.prints.count; i++) {
    int64_t t =
        arguments_find_tensor(&run->arguments, "--print", list_at(&run->common.prints, const char, i));
    if (t < 0) return false;
    if (run->common.prints.count > 1)
      text_printf(&run->out, "%s:\n", list_at(&run->common.prints, const char, i));
    array_print(&run->out, &run->arguments.tensors[t].buffer);
  }
  return true;
}

// Names and paths of --out, before anything runs.
static bool check_outs(struct run *run) {
  const char *name, *path;
  for (uint32_t i = 0; i < run->common.outs.count; i++)
    if (!run_split(&run->c, "--out", list_at(&run->common.outs, const char, i), &name, &path) ||
        arguments_find_tensor(&run->arguments, "--out", name) < 0)
      return false;
  for (uint32_t i = 0; i < run->common.prints.count; i++)
    if (arguments_find_tensor(&run->arguments, "--print", list_at(&run->common.prints, const char, i)) < 0)
      return false;
  return true;
}

static bool write_outs(struct run *run) {
  bool ok = true;
  for (uint32_t i = 0; ok && i < run->common.outs.count; i++) {
    const char *name, *path;
    run_split(&run->c, "--out", list_at(&run->common.outs, const char, i), &name, &path);
    const struct buffer *buffer =
        &run->arguments.tensors[arguments_find_tensor(&run->arguments, "--out", name)].buffer;
    char *data = malloc((size_t)buffer->count * type_bytes(buffer->type) + 1);
    if (!data) return refuse(run, ERROR_FILE, "out of memory");
    struct text file = {0};
    buffer_gather(buffer, data);
    npy_print(&file, buffer->type, buffer->rank, buffer->dims, data);
    ok = output_write(&run->c.diag, path, file.data, file.length);
    text_free(&file);
    free(data);
  }
  return ok;
}

static bool run_kernel(struct run *run) {
  struct expectation expectation = {0};
  run->arguments.copies_outputs = run->checks;
  if (!read_program(run) || !find_kernel(run) ||
      !arguments_prepare(&run->arguments, run->kernel, &run->common.args) || !check_outs(run))
    return false;
  bool ok = check_requirements(run) && (!run->checks || copy_outputs(run, &expectation));
  ok = ok && run_on_device(run);
  if (ok) ok = check_canaries(run);
  if (ok && run->checks) ok = compare_with_reference(run, &expectation);
  if (!run->c.diag.internal) print_tensors(run);
  free_outputs(run, &expectation);
  return ok && write_outs(run);
}

static int run_one(int argc, char **argv, struct batch_session *session) {
  struct run run = {.device = DEVICE_AUTO, .multiprocessors = 132, .session = session};
  if (session) run.common.jobs = 1; // the cases of a batch are what runs side by side
  int status = EXIT_USAGE;
  compilation_init(&run.c);
  options_init(&run.options, &run.c);
  if (parse_command_line(&run, argc, argv)) {
    bool ok = true;
    if (run.common.wants_help)
      text_puts(&run.out, HELP);
    else
      ok = run_kernel(&run);
    if (run.out.length) ok &= output_write(&run.c.diag, "-", run.out.data, run.out.length);
    status = run_status(&run.c, ok);
  }
  driver_print_diagnostics(&run.options);
  for (uint32_t i = 0; run.texts && i < run.options.inputs.count; i++) text_free(&run.texts[i]);
  arguments_free(&run.arguments);
  workspace_end(&run.workspace);
  text_free(&run.out);
  compilation_destroy(&run.c);
  return status;
}

int redc_run(int argc, char **argv) {
  return batch_is_asked(argc, argv) ? batch_run(argc, argv, run_one) : run_one(argc, argv, NULL);
}

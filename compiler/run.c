// redc run: compiles a program, runs one kernel of it on a device, compares with the reference.
#include "compiler/run.h"

#include "compiler/driver.h"
#include "compiler/input.h"
#include "compiler/output.h"
#include "compiler/run_batch.h"
#include "compiler/run_cuda.h"
#include "compiler/run_element.h"
#include "compiler/run_sim.h"
#include "compiler/run_again.h"
#include "compiler/run_verify.h"
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
    "  --seed N                which order of blocks, warps and lanes the simulator takes\n"
    "  --seeds N               run under N orders, those of --seed and after it; the outputs\n"
    "                          must be the same bit for bit\n"
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
  struct run_program program;
  struct run_options common;
  enum device device;
  bool checks;
  int64_t seeds;    // orders of the simulator to run under
  const char *twin; // path of --twin, or NULL
  bool is_twin;     // it is what runs
  struct run_workspace workspace; // of the launches
  struct batch_session *session; // of a batch; NULL: none
};

static const struct range nowhere;

// --- Command line
// ---------------------------------------------------------------------------------------------------------------

static bool take_device(struct run *run, const char *value) {
  static const char *const names[] = {"auto", "cuda", "sim", "ref"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(names[i], value) == 0) {
      run->device = (enum device)i;
      return true;
    }
  return program_refuse(&run->program, ERROR_USAGE, "--device takes auto, cuda, sim or ref, not '%s'", value);
}

static bool take_option(struct run *run, int argc, char **argv, int *at) {
  const char *value;
  struct compilation *c = &run->program.c;
  if (run_take_option(&run->common, c, argc, argv, at) || program_take_option(&run->program, argc, argv, at)) return true;
  if (run_take_value(c, "--device", argc, argv, at, &value)) {
    if (value) take_device(run, value);
  } else if (run_take_value(c, "--batch", argc, argv, at, &value)) {
    program_refuse(&run->program, ERROR_USAGE, "--batch stands on the command line itself, not in a file of arguments");
  } else if (run_take_value(c, "--twin", argc, argv, at, &value)) {
    run->twin = value;
  } else if (run_take_value(c, "--seeds", argc, argv, at, &value)) {
    if (value) run_parse_integer(c, "--seeds", value, 1, 1000000, &run->seeds);
  } else if (run_take_flag("--check", argc, argv, at)) {
    run->checks = true;
  } else {
    return false;
  }
  return true;
}

// Whether there is something to run. Errors are in the diagnostics.
static bool parse_command_line(struct run *run, int argc, char **argv) {
  struct compilation *c = &run->program.c;
  if (!options_expand(&c->diag, argc, argv, &argc, &argv)) return false;
  for (int at = 1; at < argc;)
    if (!take_option(run, argc, argv, &at) && options_take(&run->program.options, argc, argv, &at) == OPTION_NOT_ONE)
      list_push(&c->arena, &run->program.options.inputs, argv[at++]);
  if (run->common.wants_help || run->program.options.action == ACTION_HELP) {
    run->common.wants_help = true;
    return !c->diag.error_count;
  }
  if (run->program.options.action != ACTION_COMPILE || run->program.options.has_output || run->program.options.has_emit ||
      c->stop_after || c->reads_ir || run->program.options.save_temps || run->program.options.dependencies || run->program.options.print_after.count)
    program_refuse(&run->program, ERROR_USAGE,
           "redc run writes no code: -o, --emit, --print-after, --stop-after, --from, --save-temps and "
           "options that only "
           "print are for redc alone; see redc run --help");
  options_check_one_target(&run->program.options);
  const char *simulated = run->twin ? "--twin" : run->seeds > 1 ? "--seeds" : NULL;
  if (simulated && run->device == DEVICE_AUTO) run->device = DEVICE_SIM;
  if (simulated && run->device != DEVICE_SIM)
    program_refuse(&run->program, ERROR_USAGE, "%s is for the simulator: --device=sim", simulated);
  if (!run->program.options.inputs.count) program_refuse(&run->program, ERROR_USAGE, "redc run needs a program; see redc run --help");
  for (uint32_t i = 0; i < run->program.sizes.count; i++)
    arguments_add_size(&run->program.arguments, list_at(&run->program.sizes, const char, i));
  return !c->diag.error_count;
}

// --- Devices
// --------------------------------------------------------------------------------------------------------------------

// Only the entry of --entry.
static bool choose_entry(struct run *run, struct plan_kernel *kernel) {
  const char *names = "";
  if (!run->common.entry) return true;
  for (uint32_t i = 0; i < kernel->entry_count; i++) {
    names = arena_printf(&run->program.c.arena, "%s%s%s", names, i ? ", " : "", kernel->entries[i].name);
    if (strcmp(kernel->entries[i].name, run->common.entry) != 0) continue;
    kernel->entries += i;
    kernel->entry_count = 1;
    return true;
  }
  return program_refuse(&run->program, ERROR_USAGE, "kernel '%s' has no entry '%s'; it has %s", kernel->name, run->common.entry,
                names);
}

static bool begin_workspace(struct run *run, const struct plan_result *result) {
  char error[256];
  workspace_end(&run->workspace); // of another code of the kernel
  return workspace_begin(&run->workspace, result, &run->program.c.arena, error, sizeof error) ||
         program_refuse(&run->program, ERROR_ARGUMENT, "%s", error);
}

// Why entries were passed over: those that were not compiled, and those that were.
static void print_notes(struct run *run, const char *notes, struct text *out) {
  text_puts(out, run->program.notes);
  for (const char *line = notes; *line; line += strcspn(line, "\n") + (line[strcspn(line, "\n")] == '\n')) {
    const char *copy = arena_printf(&run->program.c.arena, "%.*s\n", (int)strcspn(line, "\n"), line);
    if (!strstr(run->program.notes, copy)) text_puts(out, copy);
  }
}

static bool launch_all(struct run *run, struct simulation *simulation, struct plan_kernel *kernel,
                       const uint64_t *addresses) {
  struct plan_input input;
  struct plan_result *result = arena_new(&run->program.c.arena, struct plan_result);
  program_plan_input(&run->program, addresses, &input);
  if (!choose_entry(run, kernel)) return false;
  if (plan_evaluate(kernel, &input, result) != PLAN_OK)
    return program_refuse(&run->program, ERROR_ARGUMENT, "%s", result->message);
  if (run->common.stats == STATS_TEXT) print_notes(run, result->notes, &simulation->printed);
  bool ok = begin_workspace(run, result);
  if (ok && run->workspace.buffer.memory) {
    const struct buffer *buffer = &run->workspace.buffer;
    uint64_t address = simulation_map(simulation, buffer, true);
    ok = address && sim_mark(simulation->memory, address + (uint64_t)run->workspace.zeroed,
                             (uint64_t)(buffer->bytes - run->workspace.zeroed), false);
    plan_place_workspace(result, address);
  }
  for (uint32_t i = 0; ok && i < result->launch_count; i++)
    ok = simulation_launch_plan(simulation, &result->launches[i], run->is_twin ? run->twin : NULL);
  return ok;
}

// The PTX that was emitted, or another one, under the plan of the one that was emitted, in the simulator.
static bool simulate(struct run *run, struct simulation *simulation, const struct run_options *order,
                     const struct text *ptx, const struct text *code, const char *name) {
  char error[512];
  struct plan plan;
  plan_init(&plan);
  if (!plan_parse(&plan, ptx->data, ptx->length, error, sizeof error)) {
    diag_internal(&run->program.c.diag, "plan", nowhere, "%s", error);
    return false;
  }
  bool ok = simulation_begin(simulation, &run->program.c, code->data, code->length, name, order);
  uint64_t *addresses = arena_array(&run->program.c.arena, uint64_t, run->program.kernel->tensors.count + 1);
  for (uint32_t t = 0; ok && t < run->program.kernel->tensors.count; t++) {
    const struct tensor_argument *tensor = &run->program.arguments.tensors[t];
    addresses[t] = simulation_map(simulation, &tensor->buffer, tensor->source.kind != SOURCE_NONE);
    ok = addresses[t] != 0;
  }
  const struct plan_kernel *found = ok ? plan_find(&plan, run->program.kernel->name) : NULL;
  if (ok && !found)
    diag_internal(&run->program.c.diag, "plan", nowhere, "the plan has no kernel '%s'", run->program.kernel->name);
  ok = found && launch_all(run, simulation, &plan.kernels[found - plan.kernels], addresses);
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
  if (strcmp(run->program.c.options.target->name, "sm_75") == 0) run->program.c.options.target = target;
  run->program.multiprocessors = cuda->multiprocessors;
  bool ok = program_compile(&run->program, NULL, false, &ptx) && plan_parse(&plan, ptx.data, ptx.length, error, sizeof error) && cuda_run_load(cuda, ptx.data);
  uint64_t *addresses = arena_array(&run->program.c.arena, uint64_t, run->program.kernel->tensors.count + 1);
  for (uint32_t t = 0; ok && t < run->program.kernel->tensors.count; t++) {
    addresses[t] = cuda_run_map(cuda, &run->program.arguments.tensors[t].buffer);
    ok = addresses[t] != 0;
  }
  const struct plan_kernel *found = ok ? plan_find(&plan, run->program.kernel->name) : NULL;
  struct plan_input input;
  struct plan_result *result = arena_new(&run->program.c.arena, struct plan_result);
  if (found) {
    struct plan_kernel *kernel = &plan.kernels[found - plan.kernels];
    program_plan_input(&run->program, addresses, &input);
    ok = choose_entry(run, kernel);
    if (ok && plan_evaluate(kernel, &input, result) != PLAN_OK) ok = program_refuse(&run->program, ERROR_ARGUMENT, "%s", result->message);
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
  for (uint32_t t = 0; t < run->program.kernel->tensors.count; t++)
    if (!buffer_has_canaries(&run->program.arguments.tensors[t].buffer, error, sizeof error))
      ok = program_refuse(&run->program, ERROR_FINDINGS, "%s", error);
  if (!workspace_is_intact(&run->workspace, error, sizeof error)) ok = program_refuse(&run->program, ERROR_FINDINGS, "%s", error);
  return ok;
}

static bool simulate_order(struct run *run, const struct run_options *order, const struct text *ptx, const struct text *code, const char *name) {
  struct simulation simulation = {0};
  bool ok = simulate(run, &simulation, order, ptx, code, name);
  if (simulation.finding_total)
    program_refuse(&run->program, ERROR_FINDINGS, "the simulator found %" PRIu64 " faults in kernel '%s'",
                   simulation.finding_total, run->program.kernel->name);
  text_append(&run->program.printed, simulation.printed.data, simulation.printed.length);
  simulation_end(&simulation);
  return ok && check_canaries(run);
}

// Under every order that was asked for; the statistics are the first one's.
static bool simulate_code(struct run *run, const struct text *ptx, const struct text *code, const char *name) {
  struct kernel_arguments *arguments = &run->program.arguments;
  struct run_options order = run->common;
  if (run->seeds == 1) return simulate_order(run, &order, ptx, code, name);
  struct kept_bytes *before = bytes_keep(arguments), *first = NULL;
  bool ok = before && simulate_order(run, &order, ptx, code, name) && (first = bytes_keep(arguments));
  const char *first_name = arena_printf(&run->program.c.arena, "seed %" PRIu64, order.seed);
  order.stats = STATS_NONE;
  for (int64_t i = 1; ok && i < run->seeds; i++) {
    order.seed++;
    bytes_restore(arguments, before);
    ok = simulate_order(run, &order, ptx, code, name);
    if (ok && !bytes_agree(arguments, first, first_name))
      ok = program_refuse(&run->program, ERROR_DIFFERENCE, "seed %" PRIu64 " gives other outputs than %s", order.seed, first_name);
  }
  bytes_free(before);
  bytes_free(first);
  return ok;
}

// What the code of --twin makes of the arguments, which are then as before; NULL after an error.
static struct kept_bytes *run_twin(struct run *run, const struct text *ptx) {
  struct text code = {0};
  struct kept_bytes *before = bytes_keep(&run->program.arguments), *after = NULL;
  run->is_twin = true;
  if (before && input_read(&run->program.c.diag, run->twin, &code) && simulate_code(run, ptx, &code, input_name(run->twin)))
    after = bytes_keep(&run->program.arguments);
  run->is_twin = false;
  if (before) bytes_restore(&run->program.arguments, before);
  bytes_free(before);
  text_free(&code);
  return after;
}

static bool run_on_device(struct run *run) {
  const struct ir_kernel *kernel = run->program.kernel;
  const char *why;
  if (run->device == DEVICE_AUTO && driver_open(&why)) run->device = DEVICE_CUDA;
  if (run->device == DEVICE_CUDA) {
    struct cuda_run cuda;
    bool ok = cuda_run_begin(&cuda, &run->program.c, 0, cuda_run_instead);
    cuda.keeps_context = ok && run->session;
    ok = ok && run_on_gpu(run, &cuda);
    if (run->session) run->session->is_lost = !cuda_run_is_sound(&cuda);
    cuda_run_end(&cuda);
    return ok;
  }
  if (run->device == DEVICE_REF) {
    uint64_t elements;
    const struct buffer **buffers =
        arena_array(&run->program.c.arena, const struct buffer *, kernel->tensors.count + 1);
    for (uint32_t t = 0; t < kernel->tensors.count; t++) buffers[t] = &run->program.arguments.tensors[t].buffer;
    return verify_reference(&run->program, buffers, VERIFY_PLAIN, &elements);
  }
  struct text ptx = {0};
  const char *name =
      arena_printf(&run->program.c.arena, "%s.ptx", input_name(list_at(&run->program.options.inputs, const char, 0)));
  bool ok = program_compile(&run->program, NULL, false, &ptx);
  struct kept_bytes *twin = NULL;
  if (ok && run->twin) ok = (twin = run_twin(run, &ptx)) != NULL;
  ok = ok && simulate_code(run, &ptx, &ptx, name);
  if (ok && twin) ok = bytes_agree(&run->program.arguments, twin, run->twin);
  bytes_free(twin);
  text_free(&ptx);
  return ok;
}

// --- Results
// --------------------------------------------------------------------------------------------------------------------

static bool print_tensors(struct run *run) {
  for (uint32_t i = 0; i < run->common.prints.count; i++) {
    int64_t t =
        arguments_find_tensor(&run->program.arguments, "--print", list_at(&run->common.prints, const char, i));
    if (t < 0) return false;
    if (run->common.prints.count > 1)
      text_printf(&run->program.printed, "%s:\n", list_at(&run->common.prints, const char, i));
    array_print(&run->program.printed, &run->program.arguments.tensors[t].buffer);
  }
  return true;
}

// Names and paths of --out, before anything runs.
static bool check_outs(struct run *run) {
  const char *name, *path;
  for (uint32_t i = 0; i < run->common.outs.count; i++)
    if (!run_split(&run->program.c, "--out", list_at(&run->common.outs, const char, i), &name, &path) ||
        arguments_find_tensor(&run->program.arguments, "--out", name) < 0)
      return false;
  for (uint32_t i = 0; i < run->common.prints.count; i++)
    if (arguments_find_tensor(&run->program.arguments, "--print", list_at(&run->common.prints, const char, i)) < 0)
      return false;
  return true;
}

static bool write_outs(struct run *run) {
  bool ok = true;
  for (uint32_t i = 0; ok && i < run->common.outs.count; i++) {
    const char *name, *path;
    run_split(&run->program.c, "--out", list_at(&run->common.outs, const char, i), &name, &path);
    const struct buffer *buffer =
        &run->program.arguments.tensors[arguments_find_tensor(&run->program.arguments, "--out", name)].buffer;
    char *data = malloc((size_t)buffer->count * type_bytes(buffer->type) + 1);
    if (!data) return program_refuse(&run->program, ERROR_FILE, "out of memory");
    struct text file = {0};
    buffer_gather(buffer, data);
    npy_print(&file, buffer->type, buffer->rank, buffer->dims, data);
    ok = output_write(&run->program.c.diag, path, file.data, file.length);
    text_free(&file);
    free(data);
  }
  return ok;
}

static bool run_kernel(struct run *run) {
  struct expectation expectation = {0};
  run->program.arguments.copies_outputs = run->checks;
  run->program.keeps_all = run->common.entry != NULL;
  if (!program_read(&run->program) || !program_find_kernel(&run->program, "run") ||
      !arguments_prepare(&run->program.arguments, run->program.kernel, &run->common.args) || !check_outs(run))
    return false;
  bool ok = program_check_requirements(&run->program) && (!run->checks || verify_begin(&run->program, &expectation));
  ok = ok && run_on_device(run);
  if (ok) ok = check_canaries(run);
  if (ok && run->checks) ok = verify_outputs(&run->program, &expectation);
  if (!run->program.c.diag.internal) print_tensors(run);
  verify_end(&run->program, &expectation);
  return ok && write_outs(run);
}

static int run_one(int argc, char **argv, struct batch_session *session) {
  struct run run = {.device = DEVICE_AUTO, .seeds = 1, .session = session};
  if (session) run.common.jobs = 1; // the cases of a batch are what runs side by side
  int status = EXIT_USAGE;
  program_init(&run.program);
  if (parse_command_line(&run, argc, argv)) {
    bool ok = true;
    if (run.common.wants_help)
      text_puts(&run.program.printed, HELP);
    else
      ok = run_kernel(&run);
    if (run.program.printed.length) ok &= output_write(&run.program.c.diag, "-", run.program.printed.data, run.program.printed.length);
    status = run_status(&run.program.c, ok);
  }
  driver_print_diagnostics(&run.program.options);
  workspace_end(&run.workspace);
  program_destroy(&run.program);
  return status;
}

int redc_run(int argc, char **argv) {
  return batch_is_asked(argc, argv) ? batch_run(argc, argv, run_one) : run_one(argc, argv, NULL);
}

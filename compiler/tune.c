// redc tune: tries the neighbours of the schedule that a launch takes, and writes the best one as a schedule to keep with the program.
//
// From one schedule to the next: all neighbours are measured, and the best of them is where it goes on, until none is better. Each is compared
// with the reference before it counts.
#include "compiler/bench_gauge.h"
#include "compiler/driver.h"
#include "compiler/input.h"
#include "compiler/output.h"
#include "compiler/subcommands.h"
#include "compiler/tune_file.h"
#include "compiler/tune_search.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char HELP[] =
    "Usage: redc tune [options] FILE.red... -D NAME=N... -o KEPT.red\n"
    "Measure the neighbours of the schedule that a launch of these sizes takes, on the GPU, and\n"
    "write the fastest as a schedule that is kept with the program: loads in flight, threads,\n"
    "rows and lanes, blocks, pieces of a reduction over the grid and how they are combined,\n"
    "cache hints, tiles. Each is compared with the reference. Given in front of the program,\n"
    "the file changes nothing for other sizes. Where it has the schedule of these sizes and\n"
    "this device already, nothing is tried.\n\n"
    "  -o PATH              the file, written whole or not at all; what else is in it stays;\n"
    "                       standard output if not given\n"
    "  -D NAME=N            a size, fixed when the kernel is compiled\n"
    "  --size NAME=N        a size's value at launch; the kernel is compiled for any\n"
    "  --arg NAME=VALUE     a tensor or scalar, as in redc run; rand and 1 if not given\n"
    "  --kernel NAME        which kernel, where there are several\n"
    "  --trials N           try at most N schedules; 400 if not given\n"
    "  --repeats N          how often each is timed; 30 if not given\n"
    "  --again              try even where the file has it already\n"
    "  --device=cuda|sim    sim: by what the simulator counts, without a GPU\n"
    "  --seed N  --jobs N   order of blocks, and host threads, of the simulator\n"
    "  --help               print this text\n\n"
    "Options of redc that choose code and messages apply too: --arch --schedule --class -O.\n\n"
    "Examples:\n"
    "  redc tune colsum.red -D m=10000 -D n=300 -o colsum.schedule.red\n"
    "  redc bench colsum.schedule.red colsum.red -D m=10000 -D n=300\n"
    "  redc tune permute.red -D T=f16 --size a=4096 --size b=4096 --size c=1 -o permute.schedule.red\n\n"
    "Exit status: 0 the schedule is written, or was there; 1 an error, such as no GPU; 2 the\n"
    "command line is not legal; 3 a fault of the compiler.\n";

enum { DEFAULT_TRIALS = 400, MOST_TRIALS = 1000000 };
static const double WORTH = 0.995; // of the cost before: what is less of a gain is noise

struct tune {
  struct gauge gauge;
  int64_t most_trials;
  bool wants_help, again;
  const char *output; // "-": standard output
  struct tune_key key;
  struct expectation expectation;
  struct list tried;  // const char *: texts of schedules
  uint32_t trials;
  bool is_broken;     // the device takes no more work
  const char *text;   // the best so far
  struct measurement best, first;
};

// --- Command line

static bool parse(struct tune *tune, int argc, char **argv) {
  struct run_program *program = &tune->gauge.program;
  struct compilation *c = &program->c;
  const char *value;
  if (!options_expand(&c->diag, argc, argv, &argc, &argv)) return false;
  for (int at = 1; at < argc;) {
    if (run_take_flag("--again", argc, argv, &at)) tune->again = true;
    else if (run_take_flag("--help", argc, argv, &at)) tune->wants_help = true;
    else if (run_take_value(c, "--trials", argc, argv, &at, &value)) {
      if (value) run_parse_integer(c, "--trials", value, 1, MOST_TRIALS, &tune->most_trials);
    } else if (!gauge_take_option(&tune->gauge, argc, argv, &at) && options_take(&program->options, argc, argv, &at) == OPTION_NOT_ONE)
      list_push(&c->arena, &program->options.inputs, argv[at++]);
  }
  tune->output = program->options.output;
  if (tune->wants_help || c->diag.error_count) return !c->diag.error_count;
  gauge_check_options(&tune->gauge, "tune", false);
  return !c->diag.error_count;
}

// --- Where it starts

static const struct ast_schedule *find_schedule(const struct ast_file *ast, const char *kernel, const char *name) {
  for (uint32_t i = 0; i < ast->schedules.count; i++) {
    const struct ast_schedule *schedule = ast->schedules.at[i];
    if (strcmp(schedule->kernel.text, kernel) == 0 && strcmp(schedule->name.text ? schedule->name.text : "", name) == 0) return schedule;
  }
  return NULL;
}

static struct ast_schedule *parse_schedule(struct tune *tune, const char *text, const char *name) {
  struct compilation *c = &tune->gauge.program.c;
  struct ast_file *ast = arena_new(&c->arena, struct ast_file);
  size_t length = strlen(text);
  char *copy = arena_alloc(&c->arena, length + 2); // ends with the two zeros that the scanner wants
  memcpy(copy, text, length);
  if (!red_parse(&c->diag, diag_add_source(&c->diag, "schedules", copy, length), ast)) return NULL;
  return (struct ast_schedule *)(uintptr_t)find_schedule(ast, tune->gauge.program.kernel->label, name);
}

// The schedule that the launch took, under its new name and for these sizes alone.
static bool find_start(struct tune *tune) {
  struct run_program *program = &tune->gauge.program;
  struct arena *arena = &program->c.arena;
  const char *name = tune->first.schedule;
  const struct ast_schedule *found = program->c.options.class_name ? NULL : find_schedule(&program->c.ast, program->kernel->label, name);
  if (!found) {
    struct text own = {0};
    if (program_own_schedules(program, &own) && own.length) found = parse_schedule(tune, own.data, name);
    text_free(&own);
  }
  if (!found) return program_refuse(program, ERROR_NO_SCHEDULE, "kernel '%s' runs by '%s' here, which is no schedule that could be changed", program->kernel->label, tune->first.entry);
  struct ast_schedule *schedule = arena_new(arena, struct ast_schedule);
  *schedule = *found;
  schedule->name.text = tune->key.name;
  schedule->when = tune_file_when(program, found->when);
  tune->text = search_text(arena, schedule);
  return true;
}

// --- Trials

static bool is_tried(const struct tune *tune, const char *text) {
  for (uint32_t i = 0; i < tune->tried.count; i++)
    if (strcmp(tune->tried.at[i], text) == 0) return true;
  return false;
}

static const char *cost_text(struct tune *tune, double cost) {
  struct arena *arena = &tune->gauge.program.c.arena;
  return tune->gauge.is_simulated ? arena_printf(arena, "cost %.0f", cost) : arena_printf(arena, "%.2f us", cost);
}

static void show_progress(struct tune *tune) {
  if (!isatty(STDERR_FILENO)) return;
  fprintf(stderr, "\rtuning %s: %" PRIu32 " tried, best %s, %.2f times as fast as before\033[K", tune->gauge.program.kernel->name, tune->trials,
          cost_text(tune, tune->best.cost), tune->best.cost > 0 ? tune->first.cost / tune->best.cost : 1);
  fflush(stderr);
}
static void end_progress(void) {
  if (isatty(STDERR_FILENO)) fputs("\r\033[K", stderr);
}

// Whether the schedule runs, is right and is what the launch takes.
static bool try_schedule(struct tune *tune, const char *text, struct measurement *m) {
  struct gauge *gauge = &tune->gauge;
  list_push(&gauge->program.c.arena, &tune->tried, (void *)(uintptr_t)text);
  tune->trials++;
  bool ok = gauge_measure(gauge, text, &tune->expectation, true, m);
  tune->is_broken = gauge->program.c.diag.error_count > 0 || (!ok && !gauge->is_simulated && !cuda_run_is_sound(&gauge->cuda));
  show_progress(tune);
  return ok && strcmp(m->schedule, tune->key.name) == 0;
}

// Moves to the best neighbour; false where there is no better one, or no trial left.
static bool improve(struct tune *tune) {
  struct run_program *program = &tune->gauge.program;
  struct ast_schedule *schedule = parse_schedule(tune, tune->text, tune->key.name);
  struct list texts = {0};
  const char *chosen = NULL;
  struct measurement m, best = tune->best;
  if (!schedule) return false;
  search_neighbours(&program->c.arena, schedule, program->kernel, &texts);
  for (uint32_t i = 0; i < texts.count && tune->trials < tune->most_trials && !tune->is_broken; i++) {
    const char *text = texts.at[i];
    if (is_tried(tune, text) || !try_schedule(tune, text, &m) || m.cost >= best.cost) continue;
    best = m;
    chosen = text;
  }
  if (tune->is_broken || !chosen || best.cost > WORTH * tune->best.cost) return false;
  tune->text = chosen;
  tune->best = best;
  return tune->trials < tune->most_trials;
}

// What a launch takes as it is, which must run and be right; then the same as the schedule of these sizes.
static bool begin(struct tune *tune) {
  struct gauge *gauge = &tune->gauge;
  struct run_program *program = &gauge->program;
  if (!verify_begin(program, &tune->expectation) || !gauge_measure(gauge, NULL, &tune->expectation, false, &tune->first) || !find_start(tune)) return false;
  program->c.options.schedule = program->c.options.class_name = NULL; // candidates stand in front of all others
  if (!gauge_measure(gauge, tune->text, &tune->expectation, false, &tune->best)) return false;
  if (strcmp(tune->best.schedule, tune->key.name) == 0) return true;
  return program_refuse(program, ERROR_NO_SCHEDULE, "schedule '%s' of kernel '%s' is not what these sizes take", tune->key.name, program->kernel->label);
}

static bool search(struct tune *tune) {
  const char *start = tune->text;
  struct measurement first = tune->best;
  while (improve(tune)) continue;
  end_progress();
  if (tune->is_broken) return tune->gauge.program.c.diag.error_count > 0 ? false : program_refuse(&tune->gauge.program, ERROR_TOOL, "the device takes no more work after a schedule that it could not run");
  if (tune->gauge.is_simulated || tune->text == start) return true;
  struct measurement again, before; // noise chose, too: once more, beside what was there before
  if (!gauge_measure(&tune->gauge, start, NULL, false, &before) || !gauge_measure(&tune->gauge, tune->text, NULL, false, &again)) return false;
  tune->best = again;
  if (again.cost < WORTH * before.cost) return true;
  tune->text = start;
  tune->best = before.cost < first.cost ? before : first;
  return true;
}

// --- The result

static bool write_result(struct tune *tune, const char *old) {
  struct run_program *program = &tune->gauge.program;
  struct arena *arena = &program->c.arena;
  struct text out = {0};
  const char *before = *tune->first.schedule ? arena_printf(arena, "schedule '%s'", tune->first.schedule) : "the schedule without a name";
  const char *block = arena_printf(arena, "%s\n// %s; %s before, by %s; %" PRIu32 " trials\n%s", tune->key.heading, cost_text(tune, tune->best.cost), cost_text(tune, tune->first.cost),
                                   before, tune->trials, tune->text);
  tune_file_put(old, &tune->key, block, &out);
  bool ok = output_write(&program->c.diag, tune->output, out.data, out.length);
  text_free(&out);
  if (ok && strcmp(tune->output, "-") != 0)
    text_printf(&program->printed, "%s: %s, %s before, %.2f times as fast; %" PRIu32 " trials\n", tune->output, cost_text(tune, tune->best.cost), cost_text(tune, tune->first.cost),
                tune->best.cost > 0 ? tune->first.cost / tune->best.cost : 1, tune->trials);
  return ok;
}

// The file as it is; "" where there is none.
static bool read_output(struct tune *tune, struct text *old) {
  if (strcmp(tune->output, "-") == 0 || access(tune->output, F_OK) != 0) return true;
  return input_read(&tune->gauge.program.c.diag, tune->output, old);
}

static bool run_tune(struct tune *tune) {
  struct run_program *program = &tune->gauge.program;
  struct text old = {0};
  bool ok = gauge_begin(&tune->gauge, "tune") && read_output(tune, &old);
  const char *text = old.data ? old.data : "";
  if (ok) tune_key_make(program, tune->gauge.device, &tune->key);
  if (ok && !tune->again && tune_file_has(text, &tune->key))
    text_printf(&program->printed, "%s has schedule '%s' for these sizes and this device: nothing tried\n", tune->output, tune->key.name);
  else
    ok = ok && begin(tune) && search(tune) && write_result(tune, text);
  if (program->kernel) verify_end(program, &tune->expectation);
  text_free(&old);
  return ok;
}

int redc_tune(int argc, char **argv) {
  struct tune tune = {.most_trials = DEFAULT_TRIALS};
  struct run_program *program = &tune.gauge.program;
  int status = EXIT_USAGE;
  program_init(program);
  if (parse(&tune, argc, argv)) {
    bool ok = true;
    if (tune.wants_help) text_puts(&program->printed, HELP);
    else ok = run_tune(&tune);
    if (program->printed.length) ok &= output_write(&program->c.diag, "-", program->printed.data, program->printed.length);
    status = run_status(&program->c, ok);
  }
  driver_print_diagnostics(&program->options);
  gauge_end(&tune.gauge);
  program_destroy(program);
  return status;
}

#include "compiler/driver.h"

#include "compiler/crash.h"
#include "compiler/depfile.h"
#include "compiler/output.h"
#include "compiler/subcommands.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const struct subcommand subcommand_table[] = {
#define S(name, function, help) {#name, function, help},
#include "compiler/subcommands.def"
#undef S
    {NULL, NULL, NULL},
};

void driver_print_diagnostics(const struct options *options) {
  struct diag_style style = options->style;
  struct text text = {0};
  style.color = options_use_color(options);
  diag_print(&options->compilation->diag, &style, &text);
  output_write_all(STDERR_FILENO, text.data, text.length); // where that fails there is no place to say so
  text_free(&text);
}

int driver_status(const struct compilation *c) {
  return c->diag.internal ? EXIT_INTERNAL : c->diag.error_count ? EXIT_USER : EXIT_OK;
}

// ---- Steps: --print-after and --save-temps

struct steps {
  const struct options *options;
  struct text printed; // what goes to standard output
  uint32_t number;     // of the next file; 0 is the syntax tree
};

static bool is_printed(const struct options *options, const char *pass) {
  for (uint32_t i = 0; i < options->print_after.count; i++) {
    const char *name = list_at(&options->print_after, const char, i);
    if (strcmp(name, "each") == 0 || strcmp(name, pass) == 0) return true;
  }
  return false;
}

static void save(const struct steps *steps, const char *name, const char *suffix, const struct text *text) {
  struct compilation *c = steps->options->compilation;
  const char *path =
      arena_printf(&c->arena, "%s/%02u-%s%s", steps->options->save_temps, steps->number, name, suffix);
  output_write(&c->diag, path, text->data, text->length);
}

// Called by the pipeline when a step is done.
static void after_step(struct compilation *c, const char *step, void *state) {
  struct steps *steps = state;
  bool is_tree = strcmp(step, "parse") == 0, saves = steps->options->save_temps;
  bool prints = !is_tree && is_printed(steps->options, step);
  double start = pipeline_now();
  struct text dump = {0};
  steps->number += !is_tree;
  if (is_tree && saves)
    ast_print(&c->ast, &dump);
  else if (prints || saves)
    compilation_dump(c, step, &dump);
  if (prints) text_append(&steps->printed, dump.data, dump.length);
  if (saves) save(steps, step, is_tree ? emit_suffix(EMIT_AST) : emit_suffix(EMIT_IR), &dump);
  text_free(&dump);
  pipeline_count(c, "dump", start);
}

// The code in every form.
static bool save_code(struct steps *steps) {
  static const enum emit_kind kinds[] = {EMIT_CUDA, EMIT_LLVM, EMIT_PTX};
  struct compilation *c = steps->options->compilation;
  bool ok = true;
  steps->number++;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    struct text text = {0};
    ok &= compilation_emit(c, kinds[i], &text);
    if (ok) save(steps, "codegen", emit_suffix(kinds[i]), &text);
    text_free(&text);
  }
  return ok;
}

static bool make_folder(struct compilation *c, const char *path) {
  if (mkdir(path, 0777) == 0 || errno == EEXIST) return true;
  diag_error(&c->diag, ERROR_FILE, (struct range){0}, "cannot make folder '%s': %s", path, strerror(errno));
  return false;
}

// ---- Compiling

static void print_phases(const struct compilation *c) {
  struct text text = {0};
  double total = 0;
  for (uint32_t i = 0; i < c->phases.count; i++) total += list_at(&c->phases, struct phase, i)->seconds;
  for (uint32_t i = 0; i < c->phases.count; i++) {
    const struct phase *phase = list_at(&c->phases, struct phase, i);
    text_printf(&text, "%10.3f ms %5.1f %%  %s\n", 1e3 * phase->seconds,
                total > 0 ? 100 * phase->seconds / total : 0, phase->name);
  }
  text_printf(&text, "%10.3f ms 100.0 %%  total\n", 1e3 * total);
  output_write_all(STDERR_FILENO, text.data, text.length);
  text_free(&text);
}

// Runs the pipeline and its observers.
static bool compile(struct steps *steps, struct text *out) {
  const struct options *options = steps->options;
  struct compilation *c = options->compilation;
  if (options->save_temps && !make_folder(c, options->save_temps)) return false;
  if (options->print_after.count || options->save_temps) {
    c->after_step = after_step;
    c->after_step_state = steps;
  }
  bool is_code = options->emit != EMIT_AST && options->emit != EMIT_IR;
  return compilation_run(c, &options->inputs, options->emit, out) &&
         (!is_code || !options->save_temps || save_code(steps)) && !c->diag.error_count;
}

// Compiles and writes. What --print-after printed comes out even where a later pass failed; the output only
// when all went well.
static bool compile_and_write(const struct options *options) {
  struct compilation *c = options->compilation;
  struct steps steps = {.options = options};
  struct text out = {0}, *printed = &steps.printed;
  bool ok = compile(&steps, &out);
  double start = pipeline_now();
  bool is_standard = strcmp(options->output, "-") == 0, has_code = !c->wants_explain || options->has_output;
  text_append(printed, c->explain.data, c->explain.length);
  if (ok && is_standard && has_code) text_append(printed, out.data, out.length);
  if (printed->length) ok &= output_write(&c->diag, "-", printed->data, printed->length);
  if (ok && !is_standard) ok = output_write(&c->diag, options->output, out.data, out.length);
  pipeline_count(c, "write", start);
  text_free(printed);
  text_free(&out);
  return ok;
}

static void print_information(const struct options *options, struct text *out) {
  switch (options->action) {
  case ACTION_COMPILE: break;
  case ACTION_HELP: help_print(out); break;
  case ACTION_VERSION: help_print_version(out); break;
  case ACTION_LIST_TARGETS: help_print_targets(out); break;
  case ACTION_LIST_PASSES: help_print_passes(out); break;
  case ACTION_EXPLAIN_ERROR: help_print_error(options->explain_error, out); break;
  }
}

static bool inform(const struct options *options) {
  struct text text = {0};
  print_information(options, &text);
  bool ok = output_write(&options->compilation->diag, "-", text.data, text.length);
  text_free(&text);
  return ok;
}

static int run(const struct options *options) {
  struct compilation *c = options->compilation;
  bool ok = options->action == ACTION_COMPILE ? compile_and_write(options) : inform(options);
  int status = driver_status(c);
  return !ok && status == EXIT_OK ? EXIT_USER : status; // a broken pipe fails without a message
}

// The output for one of several targets: k.ptx becomes k.sm_80.ptx.
static const char *target_output(struct arena *arena, const char *output, const struct target *target) {
  const char *slash = strrchr(output, '/'), *dot = strrchr(slash ? slash : output, '.');
  if (!dot) dot = output + strlen(output);
  return arena_printf(arena, "%.*s.%s%s", (int)(dot - output), output, target->name, dot);
}

// Compiles for each target but the first, which is done, and writes their outputs. Every one is a compilation of its own; warnings are not repeated.
static int run_others(const struct options *first, int argc, char **argv, struct list *outputs) {
  int status = EXIT_OK;
  for (uint32_t i = 1; i < first->targets.count && status == EXIT_OK; i++) {
    struct compilation c;
    struct options options;
    compilation_init(&c);
    crash_watch(&c.running);
    options_init(&options, &c);
    options_parse(&options, argc, argv);
    c.options.target = first->targets.at[i];
    const char *output = target_output(&first->compilation->arena, options.output, c.options.target);
    list_push(&first->compilation->arena, outputs, (void *)(uintptr_t)output);
    options.output = output;
    status = run(&options);
    if (status != EXIT_OK) driver_print_diagnostics(&options);
    crash_watch(&first->compilation->running);
    compilation_destroy(&c);
  }
  return status;
}

// The file of -MD.
static bool write_dependencies(const struct options *options, const struct list *outputs) {
  struct compilation *c = options->compilation;
  struct text text = {0};
  const char *path = options->dependency_file ? options->dependency_file : depfile_path(&c->arena, options->output);
  depfile_print(outputs, options->dependency_targets, &options->inputs, options->phony, &text);
  bool ok = output_write(&c->diag, path, text.data, text.length);
  text_free(&text);
  return ok;
}

// What the command line asks for: one compilation, or one a target, and the file of dependencies.
static int run_all(struct options *options, int argc, char **argv) {
  struct compilation *c = options->compilation;
  const char *output = options->output;
  struct list outputs = {0};
  if (options->action != ACTION_COMPILE) return run(options);
  if (options->names_targets) options->output = target_output(&c->arena, output, options->targets.at[0]);
  list_push(&c->arena, &outputs, (void *)(uintptr_t)options->output);
  int status = run(options);
  if (status == EXIT_OK) status = run_others(options, argc, argv, &outputs);
  options->output = output;
  if (status == EXIT_OK && options->dependencies && !write_dependencies(options, &outputs)) status = driver_status(c);
  return status;
}

// Whether the command line is legal, and what it asks for is not there: native, without a driver.
static bool misses_tool(const struct diag *diag) {
  bool misses = diag->error_count > 0;
  for (uint32_t i = 0; i < diag->diagnostics.count; i++) {
    const struct diagnostic *d = diag->diagnostics.at[i];
    misses &= d->kind != DIAG_ERROR || d->code == ERROR_TOOL;
  }
  return misses;
}

int driver_main(int argc, char **argv) {
  for (const struct subcommand *s = subcommand_table; s->name; s++)
    if (argc > 1 && strcmp(argv[1], s->name) == 0) return s->run(argc - 1, argv + 1);
  struct compilation c;
  struct options options;
  compilation_init(&c);
  crash_watch(&c.running);
  options_init(&options, &c);
  int status = options_parse(&options, argc, argv) ? run_all(&options, argc, argv) : misses_tool(&c.diag) ? EXIT_USER : EXIT_USAGE;
  driver_print_diagnostics(&options);
  if (options.time_passes) print_phases(&c);
  crash_watch(NULL);
  compilation_destroy(&c);
  return status;
}

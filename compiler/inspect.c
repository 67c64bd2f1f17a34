// redc inspect: programs, CUDA and PTX explained. CUDA, and the CUDA of programs, is read by redc-clang.
#include "compiler/driver.h"
#include "compiler/input.h"
#include "compiler/inspect_page.h"
#include "compiler/inspect_ptx.h"
#include "compiler/output.h"
#include "compiler/subcommands.h"
#include "compiler/tool.h"
#include "compiler/tool_clang.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct inspect {
  struct options options;
  struct list files;   // const char *, all of one kind
  struct list passed;  // char *: arguments for redc-clang, without files
  const char *output, *kernel;
  bool json, html, warnings_are_errors, has_block, wants_help;
  struct text out;
};

static const struct range nowhere;

static bool ends(const char *text, const char *with) {
  size_t length = strlen(text), tail = strlen(with);
  return length >= tail && strcmp(text + length - tail, with) == 0;
}

static struct compilation *compilation_of(struct inspect *inspect) { return inspect->options.compilation; }

static void pass_on(struct inspect *inspect, const char *argument) {
  list_push(&compilation_of(inspect)->arena, &inspect->passed, (void *)(uintptr_t)argument);
}

static bool refuse(struct inspect *inspect, const char *format, const char *what) {
  diag_error(&compilation_of(inspect)->diag, ERROR_USAGE, nowhere, format, what);
  return false;
}

// --- Command line

static bool is_program(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (argv[i][0] != '-' && ends(argv[i], ".red")) return true;
  return false;
}

// An option of inspect alone that has a value, --name=V or --name V; hands it to redc-clang unless `kept`.
static bool take_value(struct inspect *inspect, const char *name, int argc, char **argv, int *at, const char **kept) {
  size_t length = strlen(name);
  if (strncmp(argv[*at], name, length) != 0 || (argv[*at][length] && argv[*at][length] != '=')) return false;
  const char *value = argv[*at][length] ? argv[*at] + length + 1 : *at + 1 < argc ? argv[++*at] : NULL;
  ++*at;
  if (!value) refuse(inspect, "%s needs a value; see redc inspect --help", name);
  if (kept)
    *kept = value;
  else if (value)
    pass_on(inspect, arena_printf(&compilation_of(inspect)->arena, "%s=%s", name, value));
  return true;
}

static bool parse(struct inspect *inspect, int argc, char **argv) {
  struct compilation *c = compilation_of(inspect);
  bool programs = is_program(argc, argv);
  for (int at = 1; at < argc;) {
    const char *argument = argv[at];
    if (take_value(inspect, "-o", argc, argv, &at, &inspect->output)) continue;
    if (take_value(inspect, "--block", argc, argv, &at, NULL)) {
      inspect->has_block = true;
      continue;
    }
    if (take_value(inspect, "--grid", argc, argv, &at, NULL) || take_value(inspect, "--value", argc, argv, &at, NULL)) continue;
    if (take_value(inspect, "--kernel", argc, argv, &at, &inspect->kernel)) {
      if (inspect->kernel) pass_on(inspect, arena_printf(&c->arena, "--kernel=%s", inspect->kernel));
      continue;
    }
    if (strcmp(argument, "--json") == 0 || strcmp(argument, "--html") == 0 || strcmp(argument, "--help") == 0 || strcmp(argument, "-Werror") == 0) {
      inspect->json |= argument[2] == 'j';
      inspect->html |= argument[2] == 'h' && argument[3] == 't';
      inspect->wants_help |= argument[2] == 'h' && argument[3] == 'e';
      inspect->warnings_are_errors |= argument[1] == 'W';
      at++;
    } else if (argument[0] != '-' || !argument[1]) {
      list_push(&c->arena, &inspect->files, argv[at++]);
    } else if (!programs) {
      bool takes_next = (strcmp(argument, "-I") == 0 || strcmp(argument, "-D") == 0 || strcmp(argument, "--name") == 0) && at + 1 < argc;
      pass_on(inspect, argv[at++]);
      if (takes_next) pass_on(inspect, argv[at++]);
    } else if (options_take(&inspect->options, argc, argv, &at) == OPTION_NOT_ONE) {
      refuse(inspect, "redc inspect has no option '%s'; see redc inspect --help", argv[at++]);
    }
  }
  if (inspect->wants_help) return true;
  if (!inspect->files.count && !c->diag.error_count) refuse(inspect, "redc inspect needs a file%s", "; see redc inspect --help");
  for (uint32_t i = 0; i < inspect->files.count; i++)
    if (ends(list_at(&inspect->files, const char, i), ".red") != programs)
      refuse(inspect, "programs and code are not inspected together: '%s' is of the other kind", list_at(&inspect->files, const char, i));
  if (inspect->html && !programs) refuse(inspect, "--html shows a program (.red) with its passes; %s", "for code there are the table and --json");
  return c->diag.error_count == 0;
}

// --- redc-clang

// Runs it on a file, or on the command line's own where `path` is NULL. Appends what it prints to inspect->out or `out`.
static int run_clang(struct inspect *inspect, const char *path, const char *name, const struct list *more, bool json, struct text *out) {
  struct compilation *c = compilation_of(inspect);
  const char *program = tool_clang_find(&c->diag, "redc inspect");
  struct list arguments = {0};
  if (!program) return EXIT_USER;
  list_push(&c->arena, &arguments, (void *)(uintptr_t)program);
  list_push(&c->arena, &arguments, (void *)(uintptr_t)"inspect");
  list_append(&c->arena, &arguments, &inspect->passed);
  if (more) list_append(&c->arena, &arguments, more);
  if (json) list_push(&c->arena, &arguments, (void *)(uintptr_t)"--json");
  if (inspect->wants_help) list_push(&c->arena, &arguments, (void *)(uintptr_t)"--help");
  if (inspect->warnings_are_errors) list_push(&c->arena, &arguments, (void *)(uintptr_t)"-Werror");
  if (options_use_color(&inspect->options)) list_push(&c->arena, &arguments, (void *)(uintptr_t)"--color=always");
  if (inspect->options.style.json) list_push(&c->arena, &arguments, (void *)(uintptr_t)"--diagnostics=json");
  if (name) list_push(&c->arena, &arguments, arena_printf(&c->arena, "--name=%s", name));
  if (path) list_push(&c->arena, &arguments, (void *)(uintptr_t)path);
  list_push(&c->arena, &arguments, NULL);
  int status = tool_clang_run(&c->diag, (char *const *)arguments.at, out);
  return status < 0 ? driver_status(c) : status;
}

// --- Programs

static void after_step(struct compilation *c, const char *step, void *state) {
  struct inspect_page *page = state;
  if (strcmp(step, "parse") == 0 || c->diag.error_count) return;
  struct text dump = {0};
  compilation_dump(c, step, &dump);
  struct inspect_step *made = arena_new(&c->arena, struct inspect_step);
  *made = (struct inspect_step){step, arena_strndup(&c->arena, dump.data, dump.length)};
  list_push(&c->arena, &page->steps, made);
  text_free(&dump);
}

// --block NAME=X,Y,Z for every entry that a launch of the plan starts.
static bool blocks_of(struct compilation *c, struct list *arguments) {
  struct plan plan;
  plan_init(&plan);
  bool ok = compilation_plan(c, &plan);
  for (uint32_t k = 0; ok && k < plan.kernel_count; k++)
    for (uint32_t e = 0; e < plan.kernels[k].entry_count; e++)
      for (uint32_t l = 0; l < plan.kernels[k].entries[e].launch_count; l++) {
        const struct plan_launch *launch = &plan.kernels[k].entries[e].launches[l];
        list_push(&c->arena, arguments,
                  arena_printf(&c->arena, "--block=%s=%" PRIu32 ",%" PRIu32 ",%" PRIu32, launch->function, launch->block[0], launch->block[1], launch->block[2]));
      }
  plan_destroy(&plan);
  return ok;
}

// Writes code to a new file; `path` ends with XXXXXX and a suffix.
static bool write_temporary(struct compilation *c, const struct text *code, char *path) {
  int fd = mkstemps(path, (int)strlen(strrchr(path, '.')));
  if (fd < 0) {
    diag_error(&c->diag, ERROR_FILE, nowhere, "cannot make '%s': %s", path, strerror(errno));
    return false;
  }
  int error = output_write_all(fd, code->data, code->length);
  close(fd);
  if (error) diag_error(&c->diag, ERROR_FILE, nowhere, "cannot write '%s': %s", path, strerror(error));
  return !error;
}

// The registers of every entry (struct inspect_registers), where ptxas is found and takes the PTX.
static void registers_of(struct compilation *c, const struct text *ptx, const char *target, struct list *registers) {
  char path[] = "/tmp/red-XXXXXX.ptx";
  const char *ptxas = tool_find(&c->arena, "ptxas");
  struct text said = {0};
  if (!ptxas || !write_temporary(c, ptx, path)) return;
  char *command[] = {(char *)(uintptr_t)ptxas, "-v", arena_printf(&c->arena, "-arch=%s", target), "-o", "/dev/null", path, NULL};
  bool ok = tool_run(command, &said) == 0 && said.data;
  for (const char *at = ok ? said.data : ""; (at = strstr(at, "Compiling entry function '"));) {
    at += strlen("Compiling entry function '");
    const char *used = strstr(at, "Used ");
    if (!used) break;
    struct inspect_registers *made = arena_new(&c->arena, struct inspect_registers);
    *made = (struct inspect_registers){arena_strndup(&c->arena, at, strcspn(at, "'")), (int)strtol(used + strlen("Used "), NULL, 10)};
    list_push(&c->arena, registers, made);
  }
  unlink(path);
  text_free(&said);
}

static int inspect_program(struct inspect *inspect) {
  struct compilation *c = compilation_of(inspect);
  struct inspect_page page = {.title = list_at(&inspect->files, const char, 0)};
  struct text ptx = {0}, cuda = {0}, report = {0};
  struct list lines = {0}, blocks = {0}, arguments = {0}, registers = {0};
  char path[] = "/tmp/red-XXXXXX.cu";
  int status = EXIT_USER;
  c->wants_explain = true;
  c->after_step = inspect->html ? after_step : NULL;
  c->after_step_state = &page;
  bool ok = compilation_run(c, &inspect->files, EMIT_PTX, &ptx) && compilation_emit_cuda(c, &cuda, &lines) && blocks_of(c, &blocks);
  ok = ok && write_temporary(c, &cuda, path);
  if (ok) {
    if (!inspect->has_block) list_append(&c->arena, &arguments, &blocks);
    registers_of(c, &ptx, c->options.target->name, &registers);
    for (uint32_t i = 0; i < registers.count; i++) {
      const struct inspect_registers *one = list_at(&registers, struct inspect_registers, i);
      list_push(&c->arena, &arguments, arena_printf(&c->arena, "--registers=%s=%d", one->entry, one->count));
    }
    const char *name = arena_printf(&c->arena, "%s.cu", page.title);
    status = run_clang(inspect, path, name, &arguments, inspect->html || inspect->json, inspect->html ? &report : &inspect->out);
    unlink(path);
    if (inspect->html && report.length) {
      page.cuda = cuda.data, page.ptx = ptx.data, page.cuda_lines = &lines, page.report = report.data;
      page.explain = c->explain.data ? c->explain.data : "";
      inspect_page_print(c, &page, &inspect->out);
    }
  } else {
    status = driver_status(c);
  }
  text_free(&ptx);
  text_free(&cuda);
  text_free(&report);
  return status;
}

// --- Code

static bool is_ptx(const char *path, const struct text *text) {
  static const char version[] = ".version ";
  const char *at = text->data ? text->data : "";
  if (strcmp(path, "-") != 0) return ends(path, ".ptx");
  at = strstr(at, version); // standard input has no suffix
  return at && (at == text->data || at[-1] == '\n');
}

static int inspect_one_ptx(struct inspect *inspect, const char *path, const struct text *text) {
  static const char directive[] = ".target ";
  struct compilation *c = compilation_of(inspect);
  struct list registers = {0};
  const char *data = text->data ? text->data : "", *target = strstr(data, directive);
  uint32_t file = diag_add_source(&c->diag, input_name(path), arena_strndup(&c->arena, data, text->length), text->length);
  if (!input_is_text(&c->diag, file)) return EXIT_USER;
  if (target) {
    target += strlen(directive);
    registers_of(c, text, arena_strndup(&c->arena, target, strspn(target, "abcdefghijklmnopqrstuvwxyz_0123456789")), &registers);
  }
  bool ok = inspect_ptx(&c->diag, file, inspect->kernel, inspect->json, &registers, &inspect->out);
  return ok && !c->diag.error_count ? EXIT_OK : EXIT_USER;
}

// Standard input, which is read here, as a file for redc-clang.
static int inspect_standard_input(struct inspect *inspect, const struct text *text) {
  char path[] = "/tmp/red-XXXXXX.cu";
  if (!write_temporary(compilation_of(inspect), text, path)) return EXIT_USER;
  int status = run_clang(inspect, path, input_name("-"), NULL, inspect->json, &inspect->out);
  unlink(path);
  return status;
}

static int inspect_code(struct inspect *inspect) {
  struct compilation *c = compilation_of(inspect);
  int worst = EXIT_OK;
  for (uint32_t i = 0; i < inspect->files.count; i++) {
    const char *path = list_at(&inspect->files, const char, i);
    bool is_standard_input = strcmp(path, "-") == 0;
    struct text text = {0};
    int status = EXIT_USER;
    if (is_standard_input || ends(path, ".ptx")) {
      if (!input_read(&c->diag, path, &text)) status = EXIT_USER;
      else if (is_ptx(path, &text)) status = inspect_one_ptx(inspect, path, &text);
      else status = inspect_standard_input(inspect, &text);
    } else {
      status = run_clang(inspect, path, NULL, NULL, inspect->json, &inspect->out);
    }
    text_free(&text);
    if (status > worst) worst = status;
  }
  return worst;
}

int redc_inspect(int argc, char **argv) {
  struct compilation c;
  struct inspect inspect = {.output = "-"};
  int status = EXIT_USAGE;
  compilation_init(&c);
  options_init(&inspect.options, &c);
  if (parse(&inspect, argc, argv)) {
    c.diag.warnings_are_errors |= inspect.warnings_are_errors;
    if (inspect.wants_help)
      status = run_clang(&inspect, NULL, NULL, NULL, false, &inspect.out);
    else
      status = is_program(argc, argv) ? inspect_program(&inspect) : inspect_code(&inspect);
    if (inspect.out.length && !output_write(&c.diag, inspect.output ? inspect.output : "-", inspect.out.data, inspect.out.length)) status = EXIT_USER;
  }
  driver_print_diagnostics(&inspect.options);
  text_free(&inspect.out);
  compilation_destroy(&c);
  return status;
}

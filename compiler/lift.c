// redc lift: redc-clang makes a program out of the host source; it is checked here, and written or compiled.
#include "compiler/driver.h"
#include "compiler/output.h"
#include "compiler/subcommands.h"
#include "compiler/tool_clang.h"

#include <string.h>

static const struct range nowhere;
static const char SERIAL[] = "c_order"; // the schedule of grammar/lift_print.c that keeps C's order of float additions

static const char HELP[] =
    "Usage: redc lift [options] HOST.c... [SCHEDULES.red...] [-- CLANG-ARGUMENTS]\n"
    "Make kernels out of the functions of C and C++ that are marked RED_KERNEL (red_kernel.h): loop nests over\n"
    "array parameters. Without -o the program is printed, with the source lines as comments.\n\n"
    "  -o PATH             write to PATH: a program (.red), or what redc makes of it (.h .ptx .cu ...)\n"
    "  --reassociate       float sums and products may be added up in any order, so that threads share the work\n"
    "  -I DIR, -std=STD    for Clang; further arguments of Clang, -D of macros too, stand behind --\n"
    "  -p DIR              take the arguments of compile_commands.json in DIR or in a folder above it\n"
    "  --help              print this text\n"
    "\n"
    "All options of redc are known; -D NAME=VALUE gives a size of the kernels, as there.\n"
    "- is standard input, as C.\n";

struct lifting {
  struct compilation c;
  struct options options;
  struct list host;  // const char *: files
  struct list clang; // char *: the command line of redc-clang
  const char *program; // -o PROGRAM.red, "-", or NULL: compile
  bool wants_help;
};

static bool ends_with(const char *text, const char *end) {
  size_t length = strlen(text), end_length = strlen(end);
  return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

// Whether the argument is `name`, `name=value` or `namevalue` (one letter); then its value.
static bool takes(const char *name, int argc, char **argv, int *at, const char **value) {
  size_t length = strlen(name);
  if (strncmp(argv[*at], name, length) != 0) return false;
  const char *behind = argv[*at] + length;
  if (*behind) {
    *value = behind + (*behind == '=');
  } else {
    if (*at + 1 >= argc) return false;
    *value = argv[++*at];
  }
  ++*at;
  return true;
}

static void for_clang(struct lifting *l, const char *argument) {
  list_push(&l->c.arena, &l->clang, (void *)"--host");
  list_push(&l->c.arena, &l->clang, (void *)argument);
}

// What redc would make of `-o output` and the .red files; the host file stands for the program that is to come.
static bool choose_output(struct lifting *l, const char *output, const struct list *programs) {
  struct list line = {0};
  list_push(&l->c.arena, &line, (void *)"redc");
  if (output) {
    list_push(&l->c.arena, &line, (void *)"-o");
    list_push(&l->c.arena, &line, (void *)output);
  }
  list_push(&l->c.arena, &line, (void *)"--");
  list_append(&l->c.arena, &line, programs);
  list_push(&l->c.arena, &line, l->host.at[0]);
  uint32_t count = line.count;
  list_push(&l->c.arena, &line, NULL);
  if (!options_parse(&l->options, (int)count, (char **)line.at)) return false;
  l->options.inputs.count--;
  return true;
}

// Sorts the arguments: for redc-clang, for redc, and the files of the host.
static bool parse(struct lifting *l, int argc, char **argv) {
  struct arena *arena = &l->c.arena;
  struct list programs = {0};
  const char *output = NULL;
  for (int at = 1; at < argc;) {
    char *argument = argv[at];
    const char *value;
    if (strcmp(argument, "--") == 0) {
      while (++at < argc) for_clang(l, argv[at]);
    } else if (strcmp(argument, "--help") == 0) {
      l->wants_help = true;
      return true;
    } else if (strcmp(argument, "--reassociate") == 0) {
      list_push(arena, &l->clang, argument);
      at++;
    } else if (takes("-p", argc, argv, &at, &value)) {
      list_push(arena, &l->clang, (void *)"-p");
      list_push(arena, &l->clang, (void *)value);
    } else if (takes("-I", argc, argv, &at, &value)) {
      for_clang(l, arena_printf(arena, "-I%s", value));
    } else if (strncmp(argument, "-std=", 5) == 0) {
      for_clang(l, argument);
      at++;
    } else if (takes("-o", argc, argv, &at, &value)) {
      output = value;
    } else if (argument[0] == '-' && argument[1]) {
      if (options_take(&l->options, argc, argv, &at) == OPTION_REFUSED) return false;
    } else {
      list_push(arena, ends_with(argument, ".red") ? &programs : &l->host, argument);
      at++;
    }
  }
  if (l->options.print_after.count || l->options.save_temps || l->c.stop_after) {
    diag_error(&l->c.diag, ERROR_USAGE, nowhere, "redc lift shows no passes");
    diag_note(&l->c.diag, nowhere, "write the program first, redc lift -o k.red, and give it to redc");
  }
  if (!l->host.count) diag_error(&l->c.diag, ERROR_USAGE, nowhere, "redc lift needs a source of C or C++; see redc lift --help");
  if (l->c.diag.error_count) return false;
  bool compiles = l->options.has_emit || l->c.wants_explain || (output && strcmp(output, "-") != 0 && !ends_with(output, ".red"));
  if (compiles) return choose_output(l, output, &programs);
  l->program = output ? output : "-";
  list_append(arena, &l->options.inputs, &programs);
  return true;
}

// Runs redc-clang. Returns its exit status.
static int run_clang(struct lifting *l, struct text *text) {
  struct arena *arena = &l->c.arena;
  const char *program = tool_clang_find(&l->c.diag, "redc lift");
  if (!program) return EXIT_USER;
  list_insert(arena, &l->clang, 0, (void *)"lift");
  list_insert(arena, &l->clang, 0, (void *)program);
  if (l->options.style.json) list_push(arena, &l->clang, (void *)"--json");
  else if (options_use_color(&l->options)) list_push(arena, &l->clang, (void *)"--color");
  list_append(arena, &l->clang, &l->host);
  list_push(arena, &l->clang, NULL);
  int status = tool_clang_run(&l->c.diag, (char *const *)l->clang.at, text);
  return status < 0 ? EXIT_INTERNAL : status;
}

// Errors in the program that was made: the line of the host that they come from.
static void name_host_lines(struct lifting *l, uint32_t file) {
  struct diag *diag = &l->c.diag;
  const struct source *source = list_at(&diag->sources, const struct source, file);
  for (uint32_t i = 0; i < diag->diagnostics.count; i++) {
    struct diagnostic *d = list_at(&diag->diagnostics, struct diagnostic, i);
    if (d->kind != DIAG_ERROR || !d->range.line || d->range.file != file) continue;
    for (uint32_t line = d->range.line; line-- > 0;) {
      const char *text = source->lines[line];
      text += strspn(text, " ");
      if (strncmp(text, "// ", 3) != 0) continue;
      struct diagnostic *note = arena_new(diag->arena, struct diagnostic);
      note->kind = DIAG_NOTE;
      note->message = arena_printf(diag->arena, "made from %.*s", (int)strcspn(text + 3, "\n"), text + 3);
      list_push(diag->arena, &d->notes, note);
      break;
    }
  }
}

// A kernel whose order of additions is C's takes no other schedule.
static bool keeps_order(struct lifting *l) {
  const struct list *schedules = &l->c.ast.schedules;
  bool ok = true;
  for (uint32_t i = 0; i < schedules->count; i++) {
    const struct ast_schedule *serial = schedules->at[i];
    if (!serial->name.text || strcmp(serial->name.text, SERIAL) != 0) continue;
    for (uint32_t k = 0; k < schedules->count; k++) {
      const struct ast_schedule *other = schedules->at[k];
      if (k == i || strcmp(other->kernel.text, serial->kernel.text) != 0) continue;
      diag_error(&l->c.diag, ERROR_LIFT, other->range, "a schedule may change the order of the float additions of '%s', which is C's", serial->kernel.text);
      diag_note(&l->c.diag, nowhere, "allow it with --reassociate or #pragma red reassociate");
      ok = false;
    }
  }
  return ok;
}

static bool compile(struct lifting *l, const struct text *text, struct text *out) {
  struct compilation *c = &l->c;
  uint32_t file = c->diag.sources.count;
  const char *first = list_at(&l->host, const char, 0), *slash = strrchr(first, '/');
  const char *name = arena_printf(&c->arena, "%s, lifted", strcmp(first, "-") == 0 ? "<stdin>" : slash ? slash + 1 : first);
  bool ok = compilation_parse_text(c, name, text->data ? text->data : "", text->length);
  for (uint32_t i = 0; i < l->options.inputs.count; i++) ok &= compilation_parse_file(c, list_at(&l->options.inputs, const char, i));
  ok = ok && keeps_order(l);
  if (ok && l->program) ok = compilation_check(c);
  else if (ok) ok = compilation_lower(c) && compilation_emit(c, l->options.emit, out);
  if (!ok) name_host_lines(l, file);
  return ok && !c->diag.error_count;
}

static int lift(struct lifting *l) {
  struct text text = {0}, out = {0};
  struct compilation *c = &l->c;
  int status = run_clang(l, &text);
  if (status == EXIT_OK) {
    bool ok = compile(l, &text, &out);
    const struct text *result = l->program ? &text : &out;
    if (ok && c->explain.length) ok = output_write(&c->diag, "-", c->explain.data, c->explain.length);
    if (ok && (l->program || !c->wants_explain || l->options.has_output)) ok = output_write(&c->diag, l->program ? l->program : l->options.output, result->data ? result->data : "", result->length);
    status = driver_status(c);
    if (!ok && status == EXIT_OK) status = EXIT_USER;
  }
  text_free(&text);
  text_free(&out);
  return status;
}

int redc_lift(int argc, char **argv) {
  struct lifting l = {0};
  compilation_init(&l.c);
  options_init(&l.options, &l.c);
  int status = EXIT_USAGE;
  if (parse(&l, argc, argv)) {
    if (l.wants_help) status = output_write(&l.c.diag, "-", HELP, strlen(HELP)) ? EXIT_OK : EXIT_USER;
    else status = lift(&l);
  }
  driver_print_diagnostics(&l.options);
  compilation_destroy(&l.c);
  return status;
}

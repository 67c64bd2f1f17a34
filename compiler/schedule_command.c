// redc schedule: the compiler's own schedules of a program, as text that gives the same kernels when it is fed back.
#include "compiler/driver.h"
#include "compiler/output.h"
#include "compiler/subcommands.h"

#include <string.h>

static const char HELP[] =
    "Usage: redc schedule [options] FILE.red...\n"
    "Print the schedules that the compiler gives the kernels itself, with its reasons: those that can apply to\n"
    "the sizes given with -D, the best first. Given with the program (redc FILE.red CHOSEN.red), they give the\n"
    "same code. Options are those of redc that choose what is compiled: -D, --class, --schedule, --arch.\n\n"
    "  -o PATH           write to PATH, whole or not at all; - is standard output\n"
    "  --help            print this text\n";

static bool parse(struct options *options, int argc, char **argv, bool *wants_help) {
  struct compilation *c = options->compilation;
  static const struct range nowhere;
  if (!options_expand(&c->diag, argc, argv, &argc, &argv)) return false;
  for (int at = 1; at < argc;) {
    if (strcmp(argv[at], "--help") == 0) *wants_help = true, at++;
    else if (options_take(options, argc, argv, &at) == OPTION_NOT_ONE) list_push(&c->arena, &options->inputs, argv[at++]);
  }
  if (*wants_help || c->diag.error_count) return c->diag.error_count == 0;
  if (options->action != ACTION_COMPILE || options->has_emit || c->stop_after || c->reads_ir || options->save_temps || options->dependencies ||
      options->print_after.count)
    diag_error(&c->diag, ERROR_USAGE, nowhere, "redc schedule writes no code: --emit and options about passes are for redc alone; see redc schedule --help");
  options_check_one_target(options);
  if (!options->inputs.count) diag_error(&c->diag, ERROR_USAGE, nowhere, "redc schedule needs a program; see redc schedule --help");
  return c->diag.error_count == 0;
}

static bool print_schedules(const struct options *options) {
  struct compilation *c = options->compilation;
  struct text text = {0};
  bool ok = true;
  c->schedules = &text;
  for (uint32_t i = 0; i < options->inputs.count; i++) ok &= compilation_parse_file(c, list_at(&options->inputs, const char, i));
  ok = ok && compilation_check(c);
  c->schedules = NULL;
  if (ok && text.length) ok = output_write(&c->diag, options->output, text.data, text.length);
  text_free(&text);
  return ok;
}

int redc_schedule(int argc, char **argv) {
  struct compilation c;
  struct options options;
  bool wants_help = false;
  compilation_init(&c);
  options_init(&options, &c);
  int status = parse(&options, argc, argv, &wants_help) ? EXIT_OK : EXIT_USAGE;
  if (status == EXIT_OK && wants_help) output_write(&c.diag, "-", HELP, strlen(HELP));
  else if (status == EXIT_OK && !print_schedules(&options)) status = EXIT_USER;
  if (status != EXIT_USAGE && driver_status(&c) != EXIT_OK) status = driver_status(&c);
  driver_print_diagnostics(&options);
  compilation_destroy(&c);
  return status;
}

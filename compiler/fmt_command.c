// redc fmt: files laid out anew.
#include "compiler/driver.h"
#include "compiler/fmt.h"
#include "compiler/input.h"
#include "compiler/output.h"
#include "compiler/subcommands.h"

#include <string.h>

static const char HELP[] =
    "Usage: redc fmt [options] FILE.red...\n"
    "Lay programs out in the one usual way: on standard output, or in their files.\n"
    "- is standard input.\n\n"
    "  -i, --in-place    write each file that changes, whole or not at all\n"
    "  --check           write nothing; name the files that would change, and exit with 1\n"
    "  --help            print this text\n";

struct fmt {
  struct options options; // for its diagnostics
  struct text out;        // what goes to standard output
  bool in_place, only_checks;
  bool differs; // --check: a file would change
};

// Lays one file out. A file with a syntax error is reported and left as it is.
static void format_file(struct fmt *fmt, const char *path) {
  struct diag *diag = &fmt->options.compilation->diag;
  struct text text = {0}, laid = {0};
  bool ok = input_read(diag, path, &text);
  if (ok) {
    char *copy = arena_strndup(diag->arena, text.data ? text.data : "", text.length);
    uint32_t file = diag_add_source(diag, input_name(path), copy, text.length);
    ok = input_is_text(diag, file) && red_format(diag, file, &laid);
  }
  bool is_same =
      ok && text.length == laid.length && (!text.length || memcmp(text.data, laid.data, text.length) == 0);
  if (ok && fmt->only_checks && !is_same) {
    text_printf(&fmt->out, "%s\n", input_name(path));
    fmt->differs = true;
  } else if (ok && fmt->in_place && !is_same) {
    output_write(diag, path, laid.data, laid.length);
  } else if (ok && !fmt->in_place && !fmt->only_checks) {
    text_append(&fmt->out, laid.data, laid.length);
  }
  text_free(&text);
  text_free(&laid);
}

// The files of the command line; false where there is nothing more to do.
static bool parse(struct fmt *fmt, int argc, char **argv, struct list *files) {
  struct compilation *c = fmt->options.compilation;
  static const struct range nowhere;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--help") == 0) {
      text_puts(&fmt->out, HELP);
      return false;
    } else if (strcmp(argv[i], "-i") == 0 || strcmp(argv[i], "--in-place") == 0) {
      fmt->in_place = true;
    } else if (strcmp(argv[i], "--check") == 0) {
      fmt->only_checks = true;
    } else if (argv[i][0] == '-' && argv[i][1]) {
      diag_error(&c->diag, ERROR_USAGE, nowhere, "redc fmt has no option '%s'; see redc fmt --help", argv[i]);
    } else {
      list_push(&c->arena, files, argv[i]);
    }
  }
  if (!files->count) diag_error(&c->diag, ERROR_USAGE, nowhere, "redc fmt needs a file; see redc fmt --help");
  for (uint32_t i = 0; i < files->count; i++)
    if (fmt->in_place && strcmp(list_at(files, const char, i), "-") == 0)
      diag_error(&c->diag, ERROR_USAGE, nowhere, "standard input cannot be written in place");
  return c->diag.error_count == 0;
}

int redc_fmt(int argc, char **argv) {
  struct compilation c;
  struct fmt fmt = {0};
  struct list files = {0};
  compilation_init(&c);
  options_init(&fmt.options, &c);
  int status = EXIT_OK;
  if (parse(&fmt, argc, argv, &files))
    for (uint32_t i = 0; i < files.count; i++) format_file(&fmt, list_at(&files, const char, i));
  else if (c.diag.error_count)
    status = EXIT_USAGE;
  if (fmt.out.length && !output_write(&c.diag, "-", fmt.out.data, fmt.out.length)) status = EXIT_USER;
  if (status == EXIT_OK) status = fmt.differs ? EXIT_USER : driver_status(&c);
  driver_print_diagnostics(&fmt.options);
  text_free(&fmt.out);
  compilation_destroy(&c);
  return status;
}

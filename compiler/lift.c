// redc lift: hands its arguments to redc-clang.
#include "compiler/driver.h"
#include "compiler/subcommands.h"
#include "compiler/tool_clang.h"

int redc_lift(int argc, char **argv) {
  struct compilation c;
  struct options options;
  compilation_init(&c);
  options_init(&options, &c);
  int status = EXIT_USER;
  const char *program = tool_clang_find(&c.diag, "redc lift");
  if (program) {
    char **arguments = arena_array(&c.arena, char *, argc + 2);
    arguments[0] = (char *)program;
    for (int i = 0; i < argc; i++) arguments[i + 1] = argv[i];
    status = tool_clang_run(&c.diag, arguments, NULL);
    if (status < 0) status = driver_status(&c);
  }
  driver_print_diagnostics(&options);
  compilation_destroy(&c);
  return status;
}

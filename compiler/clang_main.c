// The program redc-clang: `redc-clang inspect ...` and `redc-clang lift ...`, as redc runs it.
#include "codegen/inspect.h"
#include "compiler/driver.h"
#include "grammar/lift.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN); // a write that fails says so
  if (argc > 1 && strcmp(argv[1], "inspect") == 0) return inspect_main(argc - 1, argv + 1);
  if (argc > 1 && strcmp(argv[1], "lift") == 0) return lift_main(argc - 1, argv + 1);
  fputs("redc-clang is run by redc: see redc inspect --help and redc lift --help\n", stderr);
  return EXIT_USAGE;
}

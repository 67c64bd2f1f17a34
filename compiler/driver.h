// What redc does with its arguments.
#ifndef RED_COMPILER_DRIVER_H
#define RED_COMPILER_DRIVER_H

#include "compiler/options.h"

// Exit statuses of redc and of its subcommands.
enum { EXIT_OK = 0, EXIT_USER = 1, EXIT_USAGE = 2, EXIT_INTERNAL = 3 };

// Runs redc: a subcommand where the first argument names one, else a compilation. Returns the exit status.
// Prints on standard output and standard error; never exits.
int driver_main(int argc, char **argv);

// For subcommands: prints all diagnostics of the compilation on standard error, as `options` say.
void driver_print_diagnostics(const struct options *options);
// The exit status of a compilation that failed, or EXIT_OK.
int driver_status(const struct compilation *c);

#endif

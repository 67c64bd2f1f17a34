// Subcommands of redc: the first argument chooses.
#ifndef RED_COMPILER_SUBCOMMANDS_H
#define RED_COMPILER_SUBCOMMANDS_H

typedef int subcommand_function(int argc, char **argv);
#define S(name, function, help) subcommand_function function;
#include "compiler/subcommands.def"
#undef S

struct subcommand {
  const char *name;
  subcommand_function *run;
  const char *help;
};
extern const struct subcommand subcommand_table[]; // NULL name ends the table

#endif

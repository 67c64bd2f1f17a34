// The command line of redc: from arguments to struct options. The table of options is options.def.
#ifndef RED_COMPILER_OPTIONS_H
#define RED_COMPILER_OPTIONS_H

#include "compiler/pipeline.h"

enum option {
#define GROUP(name, title)
#define O(name, spelling, argument, form, help) OPTION_##name,
#include "compiler/options.def"
#undef O
#undef GROUP
  OPTION_COUNT
};
enum option_form { FORM_FLAG, FORM_VALUE, FORM_OPTIONAL, FORM_DIGIT };
struct option_info {
  const char *spelling, *argument;
  enum option_form form;
  const char *help;
};
extern const struct option_info option_table[OPTION_COUNT];

// What to do instead of compiling.
enum action {
  ACTION_COMPILE,
  ACTION_HELP,
  ACTION_VERSION,
  ACTION_LIST_TARGETS,
  ACTION_LIST_PASSES,
  ACTION_EXPLAIN_ERROR
};
enum color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

// What concerns the tool; what concerns the compilation goes into `compilation`.
struct options {
  struct compilation *compilation;
  enum action action;
  int explain_error;  // ACTION_EXPLAIN_ERROR: its number
  struct list inputs; // const char *
  const char *output; // "-": standard output
  bool has_output;    // -o was given
  enum emit_kind emit;
  bool has_emit;           // --emit was given
  struct diag_style style; // of diagnostics; color is filled in by option_use_color
  enum color color;
  struct list print_after; // const char *; "each"
  const char *save_temps;  // NULL: no
  bool time_passes;
  struct list targets; // struct target, of --arch: more than one where it names several
  bool names_targets;  // --arch has a list: its outputs are named after their targets, even where all of it is one
  bool dependencies;   // -MD
  const char *dependency_file, *dependency_targets; // -MF, -MT; NULL: not given
  bool phony;          // -MP
};

void options_init(struct options *options, struct compilation *compilation);
// Parses all arguments but the first, after putting in the arguments of @file. Errors go to
// compilation->diag, all of a command line together; false after one.
bool options_parse(struct options *options, int argc, char **argv);

// Whether --arch names one target at most, as all but plain compilation need; else reports it.
bool options_check_one_target(struct options *options);

enum option_taken { OPTION_TAKEN, OPTION_REFUSED, OPTION_NOT_ONE };
// For subcommands: takes the option at argv[*at], and its argument, and moves *at behind them. OPTION_REFUSED
// after reporting an error (unknown options too); OPTION_NOT_ONE: the argument is no option (a file, or -),
// *at stays.
enum option_taken options_take(struct options *options, int argc, char **argv, int *at);

// Replaces each argument @file by the arguments in the file: separated by white space; quotes of both kinds
// and the backslash as in a shell. Files may name further files. The result lives in the arena and ends with
// NULL. False after an error.
bool options_expand(struct diag *diag, int argc, char **argv, int *expanded_argc, char ***expanded_argv);

// Appends the arguments in a text, split as those of a file, to `out`: char *, in the arena.
void options_split(struct arena *arena, const char *text, size_t length, struct list *out);

// Takes the NAME=VALUE of a -D; false after reporting an error.
bool options_define(struct compilation *c, const char *text);

// compiler/help.c: the texts that --help and the like print.
void help_print(struct text *out);
void help_print_version(struct text *out);
void help_print_targets(struct text *out);
void help_print_passes(struct text *out);
void help_print_error(int number, struct text *out);

// Whether diagnostics on standard error are coloured.
bool options_use_color(const struct options *options);
const char *emit_name(enum emit_kind kind);
const char *emit_suffix(enum emit_kind kind);

#endif

// What the command lines of redc run and redc check have in common.
#ifndef RED_COMPILER_RUN_OPTIONS_H
#define RED_COMPILER_RUN_OPTIONS_H

#include "compiler/options.h"

enum stats { STATS_NONE, STATS_TEXT, STATS_JSON };
struct run_options {
  struct list args, outs, prints; // const char *
  uint64_t seed;  // of the first order
  uint32_t jobs; // 0: all processors
  enum stats stats;
  const char *entry; // NULL: not given
  bool wants_help;
};

// An option with a value, --name=V or --name V, or a flag. Where argv[*at] is `name`, moves *at behind it and
// returns true; *value is NULL after an error (a value is missing), which is reported.
bool run_take_value(struct compilation *c, const char *name, int argc, char **argv, int *at,
                    const char **value);
bool run_take_flag(const char *name, int argc, char **argv, int *at);
// Takes one of the options above. False: argv[*at] is none of them.
bool run_take_option(struct run_options *options, struct compilation *c, int argc, char **argv, int *at);
// The whole of `text` as an integer from lo to hi; false after an error that names the option.
bool run_parse_integer(struct compilation *c, const char *name, const char *text, int64_t lo, int64_t hi,
                       int64_t *out);
// NAME=VALUE, in the arena; false after an error where there is no `=` or no name.
bool run_split(struct compilation *c, const char *option, const char *text, const char **name,
               const char **value);

// The exit status after a run: that of the worst error; EXIT_USER where `ok` is false and nothing was
// reported.
int run_status(const struct compilation *c, bool ok);

#endif

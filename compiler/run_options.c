#include "compiler/run_options.h"

#include "compiler/driver.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct range nowhere;

bool run_take_flag(const char *name, int argc, char **argv, int *at) {
  if (*at >= argc || strcmp(argv[*at], name) != 0) return false;
  ++*at;
  return true;
}

bool run_take_value(struct compilation *c, const char *name, int argc, char **argv, int *at,
                    const char **value) {
  size_t length = strlen(name);
  const char *argument = argv[*at];
  if (strncmp(argument, name, length) != 0 || (argument[length] && argument[length] != '=')) return false;
  ++*at;
  *value = argument[length] ? argument + length + 1 : *at < argc ? argv[(*at)++] : "";
  if (!**value) {
    diag_error(&c->diag, ERROR_USAGE, nowhere, "%s needs a value", name);
    *value = NULL;
  }
  return true;
}

bool run_parse_integer(struct compilation *c, const char *name, const char *text, int64_t lo, int64_t hi,
                       int64_t *out) {
  char *end;
  errno = 0;
  *out = strtoll(text, &end, 10);
  bool is_number = (*text == '-' || (*text >= '0' && *text <= '9')) && !*end && !errno;
  if (is_number && *out >= lo && *out <= hi) return true;
  diag_error(&c->diag, ERROR_USAGE, nowhere, "%s takes an integer from %" PRId64 " to %" PRId64 ", not '%s'",
             name, lo, hi, text);
  return false;
}

bool run_split(struct compilation *c, const char *option, const char *text, const char **name,
               const char **value) {
  size_t length = strcspn(text, "=");
  if (!length || !text[length]) {
    diag_error(&c->diag, ERROR_USAGE, nowhere, "%s takes NAME=VALUE, not '%s'", option, text);
    return false;
  }
  *name = arena_strndup(&c->arena, text, length);
  *value = text + length + 1;
  return true;
}

bool run_take_option(struct run_options *options, struct compilation *c, int argc, char **argv, int *at) {
  const char *value;
  int64_t number;
  if (run_take_value(c, "--arg", argc, argv, at, &value)) {
    if (value) list_push(&c->arena, &options->args, (void *)(uintptr_t)value);
  } else if (run_take_value(c, "--out", argc, argv, at, &value)) {
    if (value) list_push(&c->arena, &options->outs, (void *)(uintptr_t)value);
  } else if (run_take_value(c, "--print", argc, argv, at, &value)) {
    if (value) list_push(&c->arena, &options->prints, (void *)(uintptr_t)value);
  } else if (run_take_value(c, "--seed", argc, argv, at, &value)) {
    if (value && run_parse_integer(c, "--seed", value, 0, INT64_MAX, &number))
      options->seed = (uint64_t)number;
  } else if (run_take_value(c, "--jobs", argc, argv, at, &value)) {
    if (value && run_parse_integer(c, "--jobs", value, 1, 1024, &number)) options->jobs = (uint32_t)number;
  } else if (run_take_value(c, "--entry", argc, argv, at, &value)) {
    options->entry = value;
  } else if (run_take_flag("--stats", argc, argv, at)) {
    options->stats = STATS_TEXT;
  } else if (run_take_value(c, "--stats", argc, argv, at, &value)) {
    options->stats = STATS_JSON;
    if (value && strcmp(value, "json") != 0)
      diag_error(&c->diag, ERROR_USAGE, nowhere, "--stats takes json or nothing, not '%s'", value);
  } else if (run_take_flag("--help", argc, argv, at)) {
    options->wants_help = true;
  } else {
    return false;
  }
  return true;
}

int run_status(const struct compilation *c, bool ok) {
  int status = driver_status(c);
  for (uint32_t i = 0; status == EXIT_USER && i < c->diag.diagnostics.count; i++) {
    const struct diagnostic *d = list_at(&c->diag.diagnostics, struct diagnostic, i);
    if (d->kind == DIAG_ERROR && d->code == ERROR_USAGE) status = EXIT_USAGE;
  }
  return status == EXIT_OK && !ok ? EXIT_USER : status;
}

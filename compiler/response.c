// Response files: @file on the command line.
#include "compiler/input.h"
#include "compiler/options.h"

#include <string.h>

enum { MAX_DEPTH = 10, MAX_FILES = 1000, MAX_ARGUMENTS = 100000 };

struct expansion {
  struct diag *diag;
  struct list out; // char *
  int files;       // read so far
};

static const struct range nowhere;

static bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// Puts the argument that starts at `at` (not a space) into `argument`, quotes and backslashes resolved.
// Returns its end.
static const char *next_argument(const char *at, const char *end, struct text *argument) {
  char quote = 0;
  argument->length = 0;
  text_puts(argument, "");
  for (; at < end && (quote || !is_space(*at)); at++) {
    if (quote && *at == quote)
      quote = 0;
    else if (!quote && (*at == '"' || *at == '\''))
      quote = *at;
    else if (*at == '\\' && quote != '\'' && at + 1 < end)
      text_append(argument, ++at, 1);
    else
      text_append(argument, at, 1);
  }
  return at;
}

void options_split(struct arena *arena, const char *text, size_t length, struct list *out) {
  struct text argument = {0};
  const char *at = text, *end = text + length;
  while (at < end) {
    if (is_space(*at)) {
      at++;
      continue;
    }
    at = next_argument(at, end, &argument);
    list_push(arena, out, arena_strndup(arena, argument.data, argument.length));
  }
  text_free(&argument);
}

static bool expand(struct expansion *expansion, char *argument, int depth);

static bool expand_text(struct expansion *expansion, const char *path, const struct text *text, int depth) {
  struct list arguments = {0};
  bool ok = !text->length || !memchr(text->data, 0, text->length);
  if (!ok) diag_error(expansion->diag, ERROR_USAGE, nowhere, "response file '%s' is not text", path);
  if (ok && text->length) options_split(expansion->diag->arena, text->data, text->length, &arguments);
  for (uint32_t i = 0; ok && i < arguments.count; i++) ok = expand(expansion, arguments.at[i], depth);
  return ok;
}

static bool expand_file(struct expansion *expansion, const char *path, int depth) {
  if (depth > MAX_DEPTH || ++expansion->files > MAX_FILES) {
    diag_error(expansion->diag, ERROR_USAGE, nowhere, "response files name each other without end, at '@%s'",
               path);
    return false;
  }
  struct text text = {0};
  bool ok = input_read(expansion->diag, path, &text) && expand_text(expansion, path, &text, depth);
  text_free(&text);
  return ok;
}

static bool expand(struct expansion *expansion, char *argument, int depth) {
  if (argument[0] == '@' && argument[1]) return expand_file(expansion, argument + 1, depth + 1);
  if (expansion->out.count >= MAX_ARGUMENTS) {
    diag_error(expansion->diag, ERROR_USAGE, nowhere, "more than %d arguments", MAX_ARGUMENTS);
    return false;
  }
  list_push(expansion->diag->arena, &expansion->out, argument);
  return true;
}

bool options_expand(struct diag *diag, int argc, char **argv, int *expanded_argc, char ***expanded_argv) {
  struct expansion expansion = {.diag = diag};
  if (argc > 0) list_push(diag->arena, &expansion.out, argv[0]);
  for (int i = 1; i < argc; i++)
    if (!expand(&expansion, argv[i], 0)) return false;
  *expanded_argc = (int)expansion.out.count;
  list_push(diag->arena, &expansion.out, NULL);
  *expanded_argv = (char **)expansion.out.at;
  return true;
}

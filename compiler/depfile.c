#include "compiler/depfile.h"

#include <string.h>

// A name in a rule: make reads blanks and # unless a backslash stands before them, and $ unless it is doubled.
static void print_name(struct text *out, const char *name) {
  for (; *name; name++) {
    if (*name == ' ' || *name == '\t' || *name == '#') {
      text_puts(out, "\\");
    } else if (*name == '$') {
      text_puts(out, "$");
    }
    text_append(out, name, 1);
  }
}

void depfile_print(const struct list *outputs, const char *targets, const struct list *inputs, bool phony, struct text *out) {
  if (targets) text_puts(out, targets);
  for (uint32_t i = 0; !targets && i < outputs->count; i++) {
    if (i) text_puts(out, " ");
    print_name(out, list_at(outputs, const char, i));
  }
  text_puts(out, ":");
  for (uint32_t i = 0; i < inputs->count; i++) {
    const char *input = list_at(inputs, const char, i);
    if (strcmp(input, "-") == 0) continue;
    text_puts(out, " ");
    print_name(out, input);
  }
  text_puts(out, "\n");
  for (uint32_t i = 0; phony && i < inputs->count; i++) {
    const char *input = list_at(inputs, const char, i);
    if (strcmp(input, "-") == 0) continue;
    text_puts(out, "\n");
    print_name(out, input);
    text_puts(out, ":\n");
  }
}

const char *depfile_path(struct arena *arena, const char *output) {
  const char *slash = strrchr(output, '/'), *dot = strrchr(slash ? slash : output, '.');
  int length = dot && dot != (slash ? slash + 1 : output) ? (int)(dot - output) : (int)strlen(output);
  return arena_printf(arena, "%.*s.d", length, output);
}

// redc lift, inside redc-clang: the command line. What redc gives is checked by it already; what it prints redc reads.
#include "compiler/driver.h"
#include "compiler/input.h"
#include "compiler/output.h"
#include "grammar/lift.h"
#include "grammar/lift_kernel.h"

#include <string.h>
#include <unistd.h>

struct lifting {
  struct arena arena;
  struct diag diag;
  struct host_options host;
  struct diag_style style;
  struct list files; // const char *
  bool reassociates;
};

// --reassociate, --json, --color, -p DIR, --host ARGUMENT, FILE...
static bool parse(struct lifting *l, int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    const char *a = argv[i];
    bool has_value = i + 1 < argc;
    if (strcmp(a, "--reassociate") == 0) l->reassociates = true;
    else if (strcmp(a, "--json") == 0) l->style.json = true;
    else if (strcmp(a, "--color") == 0) l->style.color = true;
    else if (strcmp(a, "-p") == 0 && has_value) l->host.build = argv[++i];
    else if (strcmp(a, "--host") == 0 && has_value) list_push(&l->arena, &l->host.arguments, argv[++i]);
    else list_push(&l->arena, &l->files, argv[i]);
  }
  return l->files.count > 0;
}

static bool lift_file(struct lifting *l, const char *path, struct text *out) {
  struct text text = {0};
  struct list functions = {0};
  bool ok = input_read(&l->diag, path, &text);
  if (ok) {
    char *copy = arena_strndup(&l->arena, text.data ? text.data : "", text.length);
    uint32_t file = diag_add_source(&l->diag, input_name(path), copy, text.length);
    ok = input_is_text(&l->diag, file) && host_read(&l->diag, path, file, &l->host, &functions);
    if (ok && !functions.count) {
      diag_error(&l->diag, ERROR_LIFT, (struct range){0}, "'%s' has no function that is marked RED_KERNEL", input_name(path));
      diag_note(&l->diag, (struct range){0}, "include <red_kernel.h> and write RED_KERNEL in front of a function with a body");
    }
  }
  for (uint32_t i = 0; ok && i < functions.count; i++) {
    const struct host_function *function = functions.at[i];
    if (out->length) text_puts(out, "\n");
    if (!function->is_refused) lift_function(&l->diag, function, l->reassociates, out);
  }
  text_free(&text);
  return ok && !l->diag.error_count;
}

int lift_main(int argc, char **argv) {
  struct lifting l = {0};
  struct text out = {0}, messages = {0};
  arena_init(&l.arena);
  diag_init(&l.diag, &l.arena);
  l.style.remarks = true;
  int status = EXIT_USAGE;
  if (parse(&l, argc, argv)) {
    bool ok = true;
    for (uint32_t i = 0; i < l.files.count; i++) ok &= lift_file(&l, list_at(&l.files, const char, i), &out);
    if (ok) ok = output_write(&l.diag, "-", out.data, out.length);
    status = l.diag.internal ? EXIT_INTERNAL : ok ? EXIT_OK : EXIT_USER;
  }
  diag_print(&l.diag, &l.style, &messages);
  output_write_all(STDERR_FILENO, messages.data, messages.length);
  text_free(&out);
  text_free(&messages);
  arena_destroy(&l.arena);
  return status;
}

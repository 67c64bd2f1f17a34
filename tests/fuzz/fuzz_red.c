// libFuzzer program: any bytes as a .red file. What parses is printed, parsed again and printed again, which
// gives the same text; and it is formatted, which keeps its meaning and, done twice, changes nothing more.
#include "compiler/ast.h"
#include "compiler/fmt.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool parse(struct diag *diag, const char *name, const char *text, size_t length,
                  struct text *printed) {
  struct ast_file ast = {0};
  if (!red_parse(diag, diag_add_source(diag, name, text, length), &ast)) return false;
  text_puts(printed, "");
  ast_print(&ast, printed);
  return true;
}

static void check(bool condition) {
  if (!condition) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct arena arena;
  struct diag diag;
  arena_init(&arena);
  diag_init(&diag, &arena);
  diag.error_limit = 20;
  char *text = malloc(size ? size : 1); // exactly as large as the input, so that a read past it is seen
  if (size) memcpy(text, data, size);
  struct text once = {0}, twice = {0}, messages = {0}, formatted = {0}, again = {0}, meaning = {0};
  if (parse(&diag, "fuzz.red", text, size, &once)) {
    check(parse(&diag, "printed.red", once.data, once.length, &twice));
    check(strcmp(once.data, twice.data) == 0);
    check(red_format(&diag, 0, &formatted));
    text_puts(&formatted, "");
    text_puts(&again, "");
    check(parse(&diag, "formatted.red", formatted.data, formatted.length, &meaning));
    check(strcmp(once.data, meaning.data) == 0);
    check(
        red_format(&diag, diag_add_source(&diag, "formatted.red", formatted.data, formatted.length), &again));
    check(formatted.length == again.length && memcmp(formatted.data, again.data, again.length) == 0);
  }
  diag_print(&diag, &(struct diag_style){0}, &messages);
  diag_print(&diag, &(struct diag_style){.json = true}, &messages);
  text_free(&once);
  text_free(&twice);
  text_free(&messages);
  text_free(&formatted);
  text_free(&again);
  text_free(&meaning);
  free(text);
  arena_destroy(&arena);
  return 0;
}

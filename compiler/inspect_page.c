#include "compiler/inspect_page.h"

#include "compiler/json.h"
#include "inspect_page_template.h" // made from inspect_page.html when red is built

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

// An array of the lines.
static void json_lines(struct text *out, const char *text) {
  text_puts(out, "[");
  for (bool first = true; *text; first = false) {
    size_t length = strcspn(text, "\n");
    if (!first) text_puts(out, ",");
    json_bytes(out, text, length);
    text += length + (text[length] == '\n');
  }
  text_puts(out, "]");
}

// Dumps have most of their lines in common: each line is written once, the steps are lists of numbers. Steps that change nothing
// are left out.
static void json_steps(const struct inspect_page *page, struct arena *arena, struct text *out) {
  struct map known;
  struct text lines = {0};
  uintptr_t count = 0;
  const char *before = "";
  map_init(&known, arena);
  text_puts(out, "\"passes\": [");
  for (uint32_t i = 0; i < page->steps.count; i++) {
    const struct inspect_step *step = list_at(&page->steps, struct inspect_step, i);
    const char *at = step->text + strcspn(step->text, "\n"); // behind the heading, which names the pass
    if (strcmp(at, before) == 0) continue;
    before = at;
    text_puts(out, i ? ",{\"name\":" : "{\"name\":");
    json_string(out, step->pass);
    text_puts(out, ",\"lines\":[");
    for (bool first = true; *at; first = false) {
      at += *at == '\n';
      size_t length = strcspn(at, "\n");
      if (!length && !at[length]) break;
      const char *line = arena_strndup(arena, at, length);
      uintptr_t number = (uintptr_t)map_get(&known, line);
      if (!number) {
        number = ++count;
        map_set(&known, line, (void *)number);
        if (count > 1) text_puts(&lines, ",");
        json_bytes(&lines, line, length);
      }
      text_printf(out, "%s%" PRIuPTR, first ? "" : ",", number - 1);
      at += length;
    }
    text_puts(out, "]}");
  }
  text_puts(out, "], \"lines\": [");
  if (lines.length) text_append(out, lines.data, lines.length);
  text_puts(out, "]");
  text_free(&lines);
}

static void json_sources(const struct diag *diag, struct text *out) {
  text_puts(out, "\"sources\": [");
  for (uint32_t i = 0; i < diag->sources.count; i++) {
    const struct source *source = list_at(&diag->sources, const struct source, i);
    text_puts(out, i ? ",{\"name\":" : "{\"name\":");
    json_string(out, source->name);
    text_puts(out, ",\"lines\":");
    json_lines(out, source->text ? source->text : "");
    text_puts(out, "}");
  }
  text_puts(out, "]");
}

static void json_remarks(const struct diag *diag, struct text *out) {
  bool first = true;
  text_puts(out, "\"remarks\": [");
  for (uint32_t i = 0; i < diag->diagnostics.count; i++) {
    const struct diagnostic *one = list_at(&diag->diagnostics, struct diagnostic, i);
    if (one->kind != DIAG_REMARK) continue;
    text_puts(out, first ? "{\"text\":" : ",{\"text\":");
    first = false;
    json_string(out, one->message);
    text_printf(out, ",\"file\":%" PRIu32 ",\"line\":%" PRIu32 "}", one->range.file, one->range.line);
  }
  text_puts(out, "]");
}

static void json_data(const struct compilation *c, const struct inspect_page *page, struct text *out) {
  struct arena arena;
  arena_init(&arena);
  text_puts(out, "{\"title\": ");
  json_string(out, page->title);
  text_puts(out, ", ");
  json_sources(&c->diag, out);
  text_puts(out, ", ");
  json_steps(page, &arena, out);
  text_puts(out, ", \"cuda\": ");
  json_lines(out, page->cuda);
  text_puts(out, ", \"cuda_ranges\": [");
  for (uint32_t i = 0; i < page->cuda_lines->count; i++) {
    const struct range *range = list_at(page->cuda_lines, const struct range, i);
    text_printf(out, "%s[%" PRIu32 ",%" PRIu32 ",%" PRIu32 "]", i ? "," : "", range->file, range->line, range->end_line);
  }
  text_puts(out, "], \"ptx\": ");
  json_lines(out, page->ptx);
  text_puts(out, ", \"explain\": ");
  json_string(out, page->explain);
  text_puts(out, ", ");
  json_remarks(&c->diag, out);
  text_printf(out, ", \"report\": %s}", page->report ? page->report : "null");
  arena_destroy(&arena);
}

void inspect_page_print(const struct compilation *c, const struct inspect_page *page, struct text *out) {
  static const char mark[] = "@DATA@";
  const char *template = (const char *)INSPECT_PAGE;
  const char *place = strstr(template, mark);
  text_append(out, template, (size_t)(place - template));
  json_data(c, page, out);
  text_puts(out, place + strlen(mark));
}

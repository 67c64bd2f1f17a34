#include "compiler/diag.h"

#include "compiler/json.h"

#include <stdlib.h>
#include <string.h>

enum {
  MAX_COLUMNS = 160,
  CUT_BEFORE = 60
}; // a longer source line is cut, with this much kept in front of the caret

void diag_init(struct diag *diag, struct arena *arena) {
  memset(diag, 0, sizeof *diag);
  diag->arena = arena;
}

uint32_t diag_add_source(struct diag *diag, const char *name, const char *text, size_t length) {
  struct source *source = arena_new(diag->arena, struct source);
  source->name = arena_strdup(diag->arena, name);
  source->text = text;
  source->length = text ? length : 0;
  if (text) {
    source->line_count = 1;
    for (size_t i = 0; i < length; i++) source->line_count += text[i] == '\n';
    source->lines = arena_array(diag->arena, const char *, source->line_count);
    uint32_t line = 0;
    source->lines[line++] = text;
    for (size_t i = 0; i < length; i++)
      if (text[i] == '\n') source->lines[line++] = text + i + 1;
  }
  list_push(diag->arena, &diag->sources, source);
  return diag->sources.count - 1;
}

struct range range_join(struct range a, struct range b) {
  if (!a.line) return b;
  if (!b.line) return a;
  a.end_line = b.end_line;
  a.end_column = b.end_column;
  return a;
}

static struct diagnostic *report(struct diag *diag, enum diag_kind kind, enum diag_code code,
                                 struct range range, const char *message) {
  struct diagnostic *diagnostic = arena_new(diag->arena, struct diagnostic);
  diagnostic->kind = kind;
  diagnostic->code = code;
  diagnostic->range = range;
  diagnostic->message = message;
  list_push(diag->arena, &diag->diagnostics, diagnostic);
  diag->last = diagnostic;
  return diagnostic;
}

static void report_error(struct diag *diag, enum diag_code code, struct range range, const char *format,
                         va_list arguments) {
  diag->error_count++;
  if (diag->error_limit && diag->error_count > diag->error_limit)
    diag->last = NULL;
  else
    report(diag, DIAG_ERROR, code, range, arena_vprintf(diag->arena, format, arguments));
}

void diag_error(struct diag *diag, enum diag_code code, struct range range, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  report_error(diag, code, range, format, arguments);
  va_end(arguments);
}

void diag_warning(struct diag *diag, enum diag_code code, struct range range, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (diag->warnings_are_errors) {
    report_error(diag, code, range, format, arguments);
  } else {
    diag->warning_count++;
    report(diag, DIAG_WARNING, code, range, arena_vprintf(diag->arena, format, arguments));
  }
  va_end(arguments);
}

void diag_remark(struct diag *diag, const char *pass, struct range range, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  struct diagnostic *remark =
      report(diag, DIAG_REMARK, 0, range, arena_vprintf(diag->arena, format, arguments));
  remark->pass = pass;
  va_end(arguments);
}

void diag_note(struct diag *diag, struct range range, const char *format, ...) {
  if (!diag->last) return; // its error was beyond the limit
  va_list arguments;
  va_start(arguments, format);
  struct diagnostic *note = arena_new(diag->arena, struct diagnostic);
  note->kind = DIAG_NOTE;
  note->range = range;
  note->message = arena_vprintf(diag->arena, format, arguments);
  list_push(diag->arena, &diag->last->notes, note);
  va_end(arguments);
}

void diag_internal(struct diag *diag, const char *pass, struct range range, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const char *what = arena_vprintf(diag->arena, format, arguments);
  va_end(arguments);
  diag->error_count++;
  diag->internal = true;
  struct diagnostic *diagnostic = report(
      diag, DIAG_ERROR, ERROR_INTERNAL, range,
      arena_printf(
          diag->arena,
          "internal error in pass '%s': %s; this is a fault of the compiler, please report it with the input",
          pass, what));
  diagnostic->pass = pass;
}

static const char *kind_name(enum diag_kind kind) {
  switch (kind) {
  case DIAG_ERROR: return "error";
  case DIAG_WARNING: return "warning";
  case DIAG_REMARK: return "remark";
  case DIAG_NOTE: return "note";
  }
  return "";
}

// The source of a range, or NULL where it has no place.
static const struct source *range_source(const struct diag *diag, struct range range) {
  if (!range.line || range.file >= diag->sources.count) return NULL;
  return list_at(&diag->sources, struct source, range.file);
}

// ---- Text

static bool is_continuation(char c) {
  return ((unsigned char)c & 0xc0) == 0x80;
}

// The source line of a range and a line of carets below it. Tabs are printed through in both, so that carets
// line up whatever the terminal's tab width; a UTF-8 character counts as one column; other bytes are shown as
// '?'.
static void print_line(const struct source *source, struct range range, bool color, struct text *out) {
  if (!source->text || range.line > source->line_count) return;
  const char *line = source->lines[range.line - 1];
  const char *end =
      range.line < source->line_count ? source->lines[range.line] - 1 : source->text + source->length;
  if (end > line && end[-1] == '\r') end--;
  size_t length = (size_t)(end - line);
  size_t first = range.column ? range.column - 1 : 0;
  if (first > length) first = length;
  size_t last = range.end_line > range.line ? length : range.end_column ? range.end_column - 1 : 0;
  if (last > length) last = length;
  if (last <= first) last = first + 1;

  size_t from = 0, to = length;
  if (length > MAX_COLUMNS) {
    if (first > CUT_BEFORE) from = first - CUT_BEFORE;
    if (length - from < MAX_COLUMNS) from = length - MAX_COLUMNS;
    if (length - from > MAX_COLUMNS) to = from + MAX_COLUMNS;
    while (from > 0 && is_continuation(line[from])) from--;
    while (to < length && is_continuation(line[to])) to++;
  }
  struct text carets = {0};
  text_printf(out, length ? "%5u | " : "%5u |", range.line);
  text_puts(&carets, from > 0 ? "   " : "");
  text_puts(out, from > 0 ? "..." : "");
  for (size_t i = from; i < to || (i == to && first == to);) {
    const char *mark = i >= first && i < last ? (i == first ? "^" : "~") : " ";
    size_t bytes = i < to ? utf8_length(line + i, end) : 0;
    if (i == to) {
      text_puts(&carets, mark);
      break;
    }
    bool plain = bytes > 1 || (bytes == 1 && line[i] >= ' ' && line[i] != 0x7f);
    if (line[i] == '\t') {
      text_puts(out, "\t");
      text_puts(&carets, i == first ? mark : "\t");
    } else {
      text_append(out, plain ? line + i : "?", plain ? bytes : 1);
      text_puts(&carets, mark);
    }
    i += bytes ? bytes : 1;
  }
  while (carets.length && (carets.data[carets.length - 1] == ' ' || carets.data[carets.length - 1] == '\t'))
    carets.data[--carets.length] = 0;
  text_puts(out, to < length ? "...\n" : "\n");
  text_printf(out, "      | %s%s%s\n", color ? "\033[1;32m" : "", carets.data, color ? "\033[0m" : "");
  text_free(&carets);
}

static const char *kind_color(enum diag_kind kind) {
  switch (kind) {
  case DIAG_ERROR: return "\033[1;31m";
  case DIAG_WARNING: return "\033[1;35m";
  case DIAG_REMARK: return "\033[1;34m";
  case DIAG_NOTE: return "\033[1;36m";
  }
  return "";
}

static void print_text(const struct diag *diag, const struct diagnostic *diagnostic, bool color,
                       struct text *out) {
  const struct source *source = range_source(diag, diagnostic->range);
  const char *bold = color ? "\033[1m" : "", *plain = color ? "\033[0m" : "";
  if (source)
    text_printf(out, "%s%s:%u:%u:%s ", bold, source->name, diagnostic->range.line, diagnostic->range.column,
                plain);
  text_printf(out, "%s%s:%s ", color ? kind_color(diagnostic->kind) : "", kind_name(diagnostic->kind), plain);
  text_printf(out, "%s%s%s", diagnostic->kind == DIAG_NOTE ? "" : bold, diagnostic->message,
              diagnostic->kind == DIAG_NOTE ? "" : plain);
  if (diagnostic->code) text_printf(out, " [E%d]", diagnostic->code);
  if (diagnostic->kind == DIAG_REMARK && diagnostic->pass) text_printf(out, " [%s]", diagnostic->pass);
  text_puts(out, "\n");
  if (source) print_line(source, diagnostic->range, color, out);
  for (uint32_t i = 0; i < diagnostic->notes.count; i++)
    print_text(diag, list_at(&diagnostic->notes, struct diagnostic, i), color, out);
}

static void print_count(uint32_t count, const char *what, struct text *out) {
  text_printf(out, "%u %s%s", count, what, count == 1 ? "" : "s");
}

static void print_summary(const struct diag *diag, struct text *out) {
  if (!diag->error_count && !diag->warning_count) return;
  if (diag->warning_count) print_count(diag->warning_count, "warning", out);
  if (diag->warning_count && diag->error_count) text_puts(out, " and ");
  if (diag->error_count) print_count(diag->error_count, "error", out);
  text_puts(out, " generated.\n");
}

// ---- JSON

static void print_json(const struct diag *diag, const struct diagnostic *diagnostic, struct text *out) {
  const struct source *source = range_source(diag, diagnostic->range);
  struct range range = source ? diagnostic->range : (struct range){0};
  text_printf(out, "{\"kind\":\"%s\",\"code\":", kind_name(diagnostic->kind));
  if (diagnostic->code)
    text_printf(out, "\"E%d\"", diagnostic->code);
  else
    text_puts(out, "null");
  text_puts(out, ",\"file\":");
  json_string(out, source ? source->name : NULL);
  text_printf(out, ",\"line\":%u,\"column\":%u,\"end_line\":%u,\"end_column\":%u,\"message\":", range.line,
              range.column, range.end_line, range.end_column);
  json_string(out, diagnostic->message);
  text_puts(out, ",\"pass\":");
  json_string(out, diagnostic->pass);
  text_puts(out, ",\"notes\":[");
  for (uint32_t i = 0; i < diagnostic->notes.count; i++) {
    if (i) text_puts(out, ",");
    print_json(diag, list_at(&diagnostic->notes, struct diagnostic, i), out);
  }
  text_puts(out, "]}");
}

// ---- Both

struct sorted {
  const struct diagnostic *diagnostic;
  uint32_t order;
};

// Those without a place first, then by file, line and column, then in the order of reporting.
static int compare(const void *left, const void *right) {
  const struct sorted *a = left, *b = right;
  const struct range *p = &a->diagnostic->range, *q = &b->diagnostic->range;
  if (!p->line != !q->line) return p->line ? 1 : -1;
  if (p->line && p->file != q->file) return p->file < q->file ? -1 : 1;
  if (p->line != q->line) return p->line < q->line ? -1 : 1;
  if (p->line && p->column != q->column) return p->column < q->column ? -1 : 1;
  return a->order < b->order ? -1 : a->order > b->order;
}

static bool is_shown(const struct diagnostic *diagnostic, const struct diag_style *style) {
  if (diagnostic->kind != DIAG_REMARK) return true;
  return style->remarks &&
         (!style->only_pass || (diagnostic->pass && strcmp(style->only_pass, diagnostic->pass) == 0));
}

void diag_print(const struct diag *diag, const struct diag_style *style, struct text *out) {
  uint32_t count = diag->diagnostics.count, errors = 0;
  struct sorted *sorted = arena_array(diag->arena, struct sorted, count);
  for (uint32_t i = 0; i < count; i++) {
    sorted[i] = (struct sorted){list_at(&diag->diagnostics, struct diagnostic, i), i};
    errors += sorted[i].diagnostic->kind == DIAG_ERROR;
  }
  qsort(sorted, count, sizeof *sorted, compare);
  for (uint32_t i = 0; i < count; i++) {
    if (!is_shown(sorted[i].diagnostic, style)) continue;
    if (style->json) {
      print_json(diag, sorted[i].diagnostic, out);
      text_puts(out, "\n");
    } else {
      print_text(diag, sorted[i].diagnostic, style->color, out);
    }
  }
  if (errors < diag->error_count) {
    struct diagnostic more = {.kind = DIAG_NOTE};
    more.message =
        arena_printf(diag->arena, "too many errors; %u more not shown", diag->error_count - errors);
    if (style->json)
      print_json(diag, &more, out);
    else
      text_puts(out, more.message);
    text_puts(out, "\n");
  }
  if (!style->json) print_summary(diag, out);
}

const char *diag_explain(int number, const char **title) {
  static const struct {
    int number;
    const char *title, *explanation;
  } table[] = {
#define E(name, number, title, explanation) {number, title, explanation},
#include "compiler/errors.def"
#undef E
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (table[i].number == number) {
      if (title) *title = table[i].title;
      return table[i].explanation;
    }
  return NULL;
}

bool diag_is_own(const struct diag *diag, struct range range) {
  return range.line && range.file < diag->sources.count && list_at(&diag->sources, struct source, range.file)->is_own;
}

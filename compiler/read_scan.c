// Tokens of IR text, and what every part of the reader asks of them.
#include "compiler/read.h"

#include <string.h>

#include "compiler/ast.h"

void read_fail(struct reader *r, struct range range, const char *format, ...) {
  if (r->failed) return;
  va_list arguments;
  va_start(arguments, format);
  const char *message = arena_vprintf(r->arena, format, arguments);
  va_end(arguments);
  diag_error(r->diag, ERROR_IR_TEXT, range, "%s", message);
  r->failed = true;
  r->scan.at = r->scan.end;
  r->scan.token.kind = TOKEN_END;
}

// ---- Scanning

static struct range place_here(const struct reader *r) {
  uint32_t column = (uint32_t)(r->scan.at - r->scan.line_start) + 1;
  return (struct range){r->scan.line, column, r->scan.line, column + 1, r->file};
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static int hex_digit(char c) {
  return is_digit(c)            ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

static char ahead(const struct reader *r, size_t offset) {
  return offset < (size_t)(r->scan.end - r->scan.at) ? r->scan.at[offset] : 0;
}

static void skip_space(struct reader *r) {
  struct scanner *s = &r->scan;
  while (s->at < s->end) {
    if (*s->at == '\n') {
      s->line++;
      s->line_start = ++s->at;
    } else if (*s->at == ' ' || *s->at == '\t' || *s->at == '\r') {
      s->at++;
    } else if (*s->at == '/' && ahead(r, 1) == '/') {
      while (s->at < s->end && *s->at != '\n') s->at++;
    } else {
      return;
    }
  }
}

// A string or quoted name; the cursor is behind the opening quote.
static void scan_quoted(struct reader *r, char quote) {
  struct scanner *s = &r->scan;
  char *text = NULL;
  size_t length = 0;
  const char *close = s->at;
  while (close < s->end && *close != quote && *close != '\n')
    close += *close == '\\' && s->end - close > 1 ? 2 : 1;
  if (close < s->end && *close == quote) text = arena_alloc(r->arena, (size_t)(close - s->at) + 1);
  while (text && s->at < close) {
    int c = (unsigned char)*s->at++;
    if (c == '\\') {
      c = (unsigned char)*s->at++;
      if (c == 'n') {
        c = '\n';
      } else if (c == 'x' && hex_digit(ahead(r, 0)) >= 0 && hex_digit(ahead(r, 1)) >= 0) {
        c = hex_digit(ahead(r, 0)) * 16 + hex_digit(ahead(r, 1));
        s->at += 2;
      } else if (c != quote && c != '\\') {
        read_fail(r, place_here(r), "unknown escape in a string");
        return;
      }
    }
    if (c == 0) {
      read_fail(r, place_here(r), "a string cannot hold a zero byte");
      return;
    }
    text[length++] = (char)c;
  }
  if (!text) {
    read_fail(r, s->token.range,
              quote == '"' ? "string without its closing quote" : "name without its closing quote");
    return;
  }
  s->at++;
  s->token.kind = quote == '"' ? TOKEN_STRING : TOKEN_NAME;
  s->token.is_quoted = true;
  s->token.text = text;
}

static void scan_number(struct reader *r) {
  struct scanner *s = &r->scan;
  const char *start = s->at;
  if (*s->at == '-') s->at++;
  if (ahead(r, 0) == '0' && ahead(r, 1) == 'x') {
    s->at += 2;
    while (hex_digit(ahead(r, 0)) >= 0) s->at++;
  } else {
    while (is_digit(ahead(r, 0))) s->at++;
    if (ahead(r, 0) == '.' && is_digit(ahead(r, 1)))
      for (s->at++; is_digit(ahead(r, 0));) s->at++;
    size_t sign = ahead(r, 1) == '-' || ahead(r, 1) == '+';
    if (ahead(r, 0) == 'e' && is_digit(ahead(r, 1 + sign)))
      for (s->at += 1 + sign; is_digit(ahead(r, 0));) s->at++;
  }
  s->token.kind = TOKEN_NUMBER;
  s->token.text = arena_strndup(r->arena, start, (size_t)(s->at - start));
}

static bool scan_uint(struct reader *r, uint32_t *value) {
  uint64_t number = 0;
  if (!is_digit(ahead(r, 0))) return false;
  for (; is_digit(ahead(r, 0)); r->scan.at++) {
    number = number * 10 + (uint64_t)(ahead(r, 0) - '0');
    if (number > UINT32_MAX) return false;
  }
  *value = (uint32_t)number;
  return true;
}

static bool scan_char(struct reader *r, char c) {
  if (ahead(r, 0) != c) return false;
  r->scan.at++;
  return true;
}

// @[file/]line:column-line:column
static void scan_range(struct reader *r) {
  struct range place = {0};
  uint32_t file = 0;
  r->scan.at++;
  bool good = scan_uint(r, &place.line);
  if (good && scan_char(r, '/')) {
    file = place.line;
    good = scan_uint(r, &place.line);
  }
  good = good && scan_char(r, ':') && scan_uint(r, &place.column) && scan_char(r, '-') &&
         scan_uint(r, &place.end_line) && scan_char(r, ':') && scan_uint(r, &place.end_column);
  if (!good || !place.line) {
    read_fail(r, r->scan.token.range, "malformed place: expected @line:column-line:column");
    return;
  }
  if (file >= r->files.count) {
    read_fail(r, r->scan.token.range, "place in source %u, which the dump does not list", file);
    return;
  }
  place.file = (uint32_t)(uintptr_t)r->files.at[file];
  r->scan.token.kind = TOKEN_RANGE;
  r->scan.token.place = place;
}

void read_advance(struct reader *r) {
  struct scanner *s = &r->scan;
  skip_space(r);
  s->token = (struct token){.kind = TOKEN_END, .range = place_here(r)};
  if (s->at == s->end) return;
  const char *start = s->at;
  char c = *s->at;
  if (is_letter(c)) {
    while (is_letter(ahead(r, 0)) || is_digit(ahead(r, 0))) s->at++;
    s->token.kind = TOKEN_NAME;
    s->token.text = arena_strndup(r->arena, start, (size_t)(s->at - start));
  } else if (is_digit(c) || (c == '-' && is_digit(ahead(r, 1)))) {
    scan_number(r);
  } else if (c == '"' || c == '`') {
    s->at++;
    scan_quoted(r, c);
  } else if (c == '@') {
    scan_range(r);
  } else if (c == '.' && ahead(r, 1) == '.') {
    s->at += 2;
    s->token.kind = TOKEN_DOTS;
  } else if (c && strchr("(){}[],:=.-", c)) {
    s->at++;
    s->token.kind = TOKEN_PUNCTUATION;
    s->token.punctuation = c;
  } else {
    read_fail(r, s->token.range, c > ' ' && c < 0x7f ? "unexpected character '%c'" : "unexpected byte 0x%02x",
              c > ' ' && c < 0x7f ? c : (unsigned char)c);
  }
  if (!r->failed) s->token.range.end_column = s->token.range.column + (uint32_t)(s->at - start);
}

// ---- Asking

void read_expected(struct reader *r, const char *what) {
  const struct token *token = &r->scan.token;
  switch (token->kind) {
  case TOKEN_END: read_fail(r, token->range, "expected %s, found the end of the text", what); return;
  case TOKEN_NAME:
  case TOKEN_NUMBER: read_fail(r, token->range, "expected %s, found '%s'", what, token->text); return;
  case TOKEN_STRING: read_fail(r, token->range, "expected %s, found a string", what); return;
  case TOKEN_RANGE: read_fail(r, token->range, "expected %s, found a place", what); return;
  case TOKEN_DOTS: read_fail(r, token->range, "expected %s, found '..'", what); return;
  case TOKEN_PUNCTUATION:
    read_fail(r, token->range, "expected %s, found '%c'", what, token->punctuation);
    return;
  }
}

bool read_at_word(const struct reader *r, const char *word) {
  const struct token *token = &r->scan.token;
  return token->kind == TOKEN_NAME && !token->is_quoted && strcmp(token->text, word) == 0;
}

bool read_at(const struct reader *r, char punctuation) {
  return r->scan.token.kind == TOKEN_PUNCTUATION && r->scan.token.punctuation == punctuation;
}

bool read_accept_word(struct reader *r, const char *word) {
  if (!read_at_word(r, word)) return false;
  read_advance(r);
  return true;
}

bool read_accept(struct reader *r, char punctuation) {
  if (!read_at(r, punctuation)) return false;
  read_advance(r);
  return true;
}

void read_expect_word(struct reader *r, const char *word) {
  if (!read_accept_word(r, word)) read_expected(r, arena_printf(r->arena, "'%s'", word));
}

void read_expect(struct reader *r, char punctuation) {
  char what[] = {'\'', punctuation, '\'', 0};
  if (!read_accept(r, punctuation)) read_expected(r, what);
}

const char *read_name(struct reader *r, const char *what) {
  const char *name = r->scan.token.text;
  if (r->scan.token.kind != TOKEN_NAME) {
    read_expected(r, what);
    return NULL;
  }
  read_advance(r);
  return name;
}

const char *read_string(struct reader *r, const char *what) {
  const char *string = r->scan.token.text;
  if (r->scan.token.kind != TOKEN_STRING) {
    read_expected(r, what);
    return NULL;
  }
  read_advance(r);
  return string;
}

uint32_t read_uint(struct reader *r, const char *what) {
  uint64_t value = 0;
  if (r->scan.token.kind != TOKEN_NUMBER) {
    read_expected(r, what);
    return 0;
  }
  for (const char *c = r->scan.token.text; *c; c++) {
    value = is_digit(*c) ? value * 10 + (uint64_t)(*c - '0') : UINT64_MAX;
    if (value > UINT32_MAX) {
      read_expected(r, arena_printf(r->arena, "%s, from 0 to %u", what, UINT32_MAX));
      return 0;
    }
  }
  read_advance(r);
  return (uint32_t)value;
}

struct range read_range(struct reader *r) {
  struct range place = r->scan.token.place;
  if (r->scan.token.kind != TOKEN_RANGE) return (struct range){0};
  read_advance(r);
  return place;
}

uint32_t read_choice(struct reader *r, const char *const *words, uint32_t count, const char *what) {
  struct token first = r->scan.token;
  const char *word = read_name(r, what);
  if (!word) return 0;
  if (read_accept(r, '.')) {
    const char *second = read_name(r, "x, y or z");
    if (!second) return 0;
    word = arena_printf(r->arena, "%s.%s", word, second);
  }
  for (uint32_t i = 0; i < count; i++)
    if (!first.is_quoted && strcmp(words[i], word) == 0) return i;
  struct text legal = {0};
  for (uint32_t i = 0; i < count; i++) text_printf(&legal, "%s%s", i ? ", " : "", words[i]);
  read_fail(r, first.range, "expected %s (%s), found '%s'", what, legal.data, word);
  text_free(&legal);
  return 0;
}

bool read_enter(struct reader *r) {
  if (r->depth >= IR_TEXT_MAX_DEPTH)
    read_fail(r, r->scan.token.range, "nested more than %d deep", IR_TEXT_MAX_DEPTH);
  if (r->failed) return false;
  r->depth++;
  return true;
}

void read_leave(struct reader *r) {
  r->depth--;
}

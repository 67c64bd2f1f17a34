#include "compiler/fmt.h"
#include "compiler/ast.h"

#include <string.h>

enum piece_kind {
  PIECE_WORD,     // name, keyword or number
  PIECE_OPERATOR, // and other punctuation
  PIECE_REMARK,   // a // comment
  PIECE_COMMENT,  // a /* */ comment
  PIECE_END,
};

// A token or comment of the source.
struct piece {
  enum piece_kind kind;
  const char *text;
  size_t length;
  uint32_t newlines; // in front of it
};

// One line of the result. The remark behind it is kept apart, so that remarks can be lined up.
struct line {
  char *code;
  size_t code_length;
  size_t code_width; // of its last line, where it holds a comment of several lines
  struct piece remark; // length 0: none
};

enum { MOST_OPEN = AST_MAX_DEPTH }; // the parser refuses more

struct formatter {
  struct arena *arena;
  struct list lines;   // struct line
  struct text code;    // of the line under way
  struct piece remark; // behind it
  bool is_started;

  char open[MOST_OPEN];              // brackets: '{' '(' '['
  uint32_t questions[MOST_OPEN + 1]; // `?` without its `:`, inside each bracket
  uint32_t open_count, brace_count;
  bool in_type_params;       // between `kernel name` and `(`
  struct piece latest;       // the last piece, comments too
  struct piece last, before; // the last piece that is no comment, and the one before it
  bool is_unary;             // the last piece is a prefix operator
  bool is_keyword;           // the last piece is a word with a meaning of its own, no name
};

// ---- Reading

// Not those of ctype.h, which depend on the locale.
static bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
static bool is_word(char c) {
  return is_digit(c) || c == '_' || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

static size_t number_length(const char *at, const char *end) {
  const char *c = at;
  while (c < end && is_word(*c)) c++;
  if (c + 1 < end && *c == '.' && is_digit(c[1]))
    for (c++; c < end && is_word(*c);) c++;
  bool is_hex = at[0] == '0' && end - at > 1 && (at[1] | 32) == 'x';
  if (c + 1 < end && (c[-1] | 32) == 'e' && !is_hex && (*c == '+' || *c == '-') && is_digit(c[1]))
    for (c++; c < end && is_word(*c);) c++;
  return (size_t)(c - at);
}

static size_t operator_length(const char *at, const char *end) {
  static const char *const pairs[] = {
      "->", "..", "||", "&&", "==", "!=", "<=", ">=", "<<", ">>", "+=", "-=", "*=", "&=", "|=", "^="};
  if (end - at >= 2)
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
      if (memcmp(at, pairs[i], 2) == 0) return 2;
  return 1;
}

// The piece at *at, which moves behind it. The text is known to parse.
static struct piece next_piece(const char **at, const char *end) {
  struct piece piece = {.kind = PIECE_END};
  const char *c = *at;
  for (; c < end && is_space(*c); c++) piece.newlines += *c == '\n';
  piece.text = c;
  if (c == end) {
    *at = c;
    return piece;
  }
  if (end - c >= 2 && c[0] == '/' && c[1] == '/') {
    piece.kind = PIECE_REMARK;
    const char *newline = memchr(c, '\n', (size_t)(end - c));
    piece.length = (size_t)((newline ? newline : end) - c);
    *at = c + piece.length;
    while (is_space(c[piece.length - 1])) piece.length--;
    return piece;
  }
  if (end - c >= 2 && c[0] == '/' && c[1] == '*') {
    piece.kind = PIECE_COMMENT;
    for (c += 2; !(c[0] == '*' && c[1] == '/');) c++;
    piece.length = (size_t)(c + 2 - piece.text);
  } else if (is_digit(*c)) {
    piece.kind = PIECE_WORD;
    piece.length = number_length(c, end);
  } else if (is_word(*c)) {
    piece.kind = PIECE_WORD;
    while (c < end && (is_word(*c) || (*c == '#' && c > piece.text))) c++;
    piece.length = (size_t)(c - piece.text);
  } else {
    piece.kind = PIECE_OPERATOR;
    piece.length = operator_length(c, end);
  }
  *at = piece.text + piece.length;
  return piece;
}

static bool piece_is(const struct piece *piece, const char *text) {
  return piece->kind <= PIECE_OPERATOR && piece->length == strlen(text) &&
         memcmp(piece->text, text, piece->length) == 0;
}

static bool piece_is_any(const struct piece *piece, const char *const *texts) {
  for (; *texts; texts++)
    if (piece_is(piece, *texts)) return true;
  return false;
}

// ---- Spaces

static bool word_is_reserved(const struct piece *piece) {
  static const char *const reserved[] = {"kernel", "reducer", "ordered", "schedule", "for",
                                         "in",     "if",      "else",    "let",      NULL};
  return piece_is_any(piece, reserved);
}

// Whether an operand ends with the last piece, so that an operator behind it takes two.
static bool ends_operand(const struct formatter *f) {
  if (f->last.kind == PIECE_WORD) return !f->is_keyword;
  return piece_is(&f->last, ")") || piece_is(&f->last, "]");
}

// Words that are not reserved are names, but for those that start a part of a reducer or a directive, and
// those that stand right behind an operand, where no name can.
static bool word_is_keyword(const struct formatter *f, const struct piece *piece) {
  static const char *const starts[] = {"identity", "combine", "update",    "split", "fuse",   "tile",
                                       "reorder",  "bind",    "unroll",    "stage", "blocks", "vectorize",
                                       "cache",    "join",    "allreduce", NULL};
  if (piece->kind != PIECE_WORD) return false;
  if (word_is_reserved(piece)) return true;
  if (f->last.kind == PIECE_WORD || piece_is(&f->last, "]")) return ends_operand(f);
  bool is_first = piece_is(&f->last, "{") || piece_is(&f->last, "}") || piece_is(&f->last, ";");
  return f->brace_count == 1 && is_first && piece_is_any(piece, starts);
}

// Whether a space stands between the last piece and this one, both on one line.
static bool needs_space(const struct formatter *f, const struct piece *piece) {
  static const char *const tight_before[] = {")", "]", "[", ",", ";", ".", "..", NULL};
  static const char *const tight_after[] = {"(", "[", ".", "..", NULL};
  static const char *const like_functions[] = {"combine", "update", "strided", NULL};
  static const char *const folds[] = {"min", "max", "fmin", "fmax", NULL};
  static const char *const targets[] = {"]", ")", "_", NULL};
  if (f->latest.kind == PIECE_COMMENT) return true;
  if (piece_is(piece, ".") && f->last.kind == PIECE_WORD && is_digit(f->last.text[0])) return true; // `1 .x`
  if (f->is_unary || piece_is_any(&f->last, tight_after) || piece_is_any(piece, tight_before)) return false;
  if (f->in_type_params) return piece_is(&f->last, ",");
  if (piece_is(&f->last, "{") && piece_is(piece, "}")) return false;
  if (piece_is(piece, "(") && f->last.kind == PIECE_WORD)
    return f->is_keyword && !piece_is_any(&f->last, like_functions);
  if (piece_is(piece, ":")) return f->questions[f->open_count] > 0;
  if (piece_is(piece, "=") && piece_is_any(&f->last, folds)) return !piece_is_any(&f->before, targets);
  return true;
}

// ---- Brackets

static void open_bracket(struct formatter *f, char bracket) {
  f->open[f->open_count++] = bracket;
  f->questions[f->open_count] = 0;
  f->brace_count += bracket == '{';
}

static void close_bracket(struct formatter *f) {
  f->open_count--;
  f->brace_count -= f->open[f->open_count] == '{';
}

// What the pieces behind need to know of this one.
static void note_piece(struct formatter *f, const struct piece *piece) {
  bool is_keyword = word_is_keyword(f, piece);
  f->is_unary = (piece_is(piece, "-") || piece_is(piece, "!") || piece_is(piece, "~")) && !ends_operand(f);
  char c = piece->kind == PIECE_OPERATOR && piece->length == 1 ? piece->text[0] : 0;
  if (c == '{' || c == '(' || c == '[') open_bracket(f, c);
  if (c == '?') f->questions[f->open_count]++;
  if (c == ':' && f->questions[f->open_count]) f->questions[f->open_count]--;
  if (c == '(') f->in_type_params = false;
  f->is_keyword = is_keyword;
  f->before = f->last;
  f->last = *piece;
}

// ---- Lines

static size_t width_of_last_line(const struct text *text) {
  size_t start = text->length;
  while (start > 0 && text->data[start - 1] != '\n') start--;
  return text->length - start;
}

static void end_line(struct formatter *f) {
  struct line *line = arena_new(f->arena, struct line);
  line->code = arena_strndup(f->arena, f->code.data ? f->code.data : "", f->code.length);
  line->code_length = f->code.length;
  line->code_width = width_of_last_line(&f->code);
  line->remark = f->remark;
  list_push(f->arena, &f->lines, line);
  f->code.length = 0;
  f->remark.length = 0;
  f->is_started = false;
}

// Whether the piece comes first on its line. An item behind another one starts a line whatever the source
// does.
static bool starts_line(const struct formatter *f, const struct piece *piece) {
  if (!f->is_started || piece->newlines || f->latest.kind == PIECE_REMARK) return true;
  return piece->kind <= PIECE_OPERATOR && f->brace_count == 0 && piece_is(&f->last, "}");
}

// Ends the line before, and puts a blank line where the source has one, but for those along braces and the
// file's edges.
static void start_line(struct formatter *f, const struct piece *piece) {
  if (f->is_started) end_line(f);
  bool is_edge = !f->lines.count || piece_is(&f->latest, "{") || piece_is(piece, "}");
  if (piece->newlines > 1 && !is_edge) end_line(f);
}

// Two spaces for each brace around the line, four more where it goes on with what the line before it began.
static void indent(struct formatter *f, const struct piece *piece) {
  static const char *const ends[] = {";", "{", "}", NULL};
  bool is_inside = f->open_count && f->open[f->open_count - 1] != '{';
  bool is_new = f->last.kind == PIECE_END || piece_is_any(&f->last, ends);
  bool goes_on = (is_inside || !is_new) && !piece_is(piece, "}");
  for (uint32_t i = 0; i < 2 * f->brace_count + (goes_on ? 4 : 0); i++) text_puts(&f->code, " ");
}

static void place(struct formatter *f, const struct piece *piece) {
  static const char *const items[] = {"kernel", "reducer", NULL};
  bool is_first = starts_line(f, piece), is_token = piece->kind <= PIECE_OPERATOR;
  if (is_first) start_line(f, piece);
  if (is_token && strchr(")]}", piece->text[0])) close_bracket(f);
  if (piece_is(piece, "<") && piece_is_any(&f->before, items)) f->in_type_params = true;
  if (piece->kind == PIECE_REMARK && !is_first) {
    f->remark = *piece;
  } else {
    if (is_first)
      indent(f, piece);
    else if (needs_space(f, piece))
      text_puts(&f->code, " ");
    text_append(&f->code, piece->text, piece->length);
  }
  if (is_token) note_piece(f, piece);
  f->latest = *piece;
  f->is_started = true;
}

// Remarks behind neighbouring lines stand in one column.
static void print_lines(const struct list *lines, struct text *out) {
  size_t column = 0;
  for (uint32_t i = 0, run_end = 0; i < lines->count; i++) {
    const struct line *line = list_at(lines, struct line, i);
    text_append(out, line->code, line->code_length);
    if (line->remark.length) {
      if (i >= run_end) {
        column = 0;
        for (run_end = i; run_end < lines->count; run_end++) {
          const struct line *other = list_at(lines, struct line, run_end);
          if (!other->remark.length) break;
          if (other->code_width > column) column = other->code_width;
        }
      }
      for (size_t width = line->code_width; width < column + 2; width++) text_puts(out, " ");
      text_append(out, line->remark.text, line->remark.length);
    }
    text_puts(out, "\n");
  }
}

bool red_format(struct diag *diag, uint32_t file, struct text *out) {
  struct ast_file ast = {0};
  if (!red_parse(diag, file, &ast)) return false;
  const struct source *source = list_at(&diag->sources, struct source, file);
  if (!source->text) return true;
  struct formatter *f = arena_new(diag->arena, struct formatter);
  f->arena = diag->arena;
  f->last.kind = f->before.kind = f->latest.kind = PIECE_END;
  const char *at = source->text, *end = at + source->length;
  for (;;) {
    struct piece piece = next_piece(&at, end);
    if (piece.kind == PIECE_END) break;
    place(f, &piece);
  }
  if (f->is_started) end_line(f);
  print_lines(&f->lines, out);
  text_free(&f->code);
  return true;
}

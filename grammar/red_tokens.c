#include "grammar/red_parser.h"
#include "grammar/red.tab.h"

// One bracket that is open: '{', '(' or '['.
struct open_bracket {
  int kind;
  struct range range;
};

int red_scan(struct red_token *token, struct red_parser *parser, void *scanner);

void red_tokens_init(struct red_parser *parser) {
  parser->open = arena_array(parser->diag->arena, struct open_bracket, AST_MAX_DEPTH);
  parser->waiting.kind = -1;
  parser->line = parser->column = 1;
}

static bool starts_item(int kind) {
  return kind == KERNEL || kind == REDUCER || kind == ORDERED || kind == SCHEDULE || kind == YYEOF;
}

static void close_bracket(struct red_parser *parser, int open) {
  if (open == '{' && !parser->brace_count) return;
  while (parser->open_count) {
    int kind = parser->open[parser->open_count - 1].kind;
    if (kind == '{' && open != '{') return; // a stray ')' or ']'
    parser->open_count--;
    parser->brace_count -= kind == '{';
    if (kind == open) return;
  }
}

static void open_bracket(struct red_parser *parser, const struct red_token *token) {
  if (parser->open_count == AST_MAX_DEPTH) {
    diag_error(parser->diag, ERROR_NESTING, token->range, "brackets nest deeper than %d levels",
               AST_MAX_DEPTH);
    parser->is_stopped = true;
    return;
  }
  parser->open[parser->open_count++] = (struct open_bracket){token->kind, token->range};
  parser->brace_count += token->kind == '{';
}

static const char *item_word(int kind) {
  return kind == KERNEL     ? "'kernel'"
         : kind == REDUCER  ? "'reducer'"
         : kind == ORDERED  ? "'ordered'"
         : kind == SCHEDULE ? "'schedule'"
                            : "end of file";
}

// An item starts, or the file ends, inside braces: reports the innermost one and arranges for all to be
// closed.
static void supply_braces(struct red_parser *parser, const struct red_token *token) {
  uint32_t innermost = parser->open_count;
  while (parser->open[innermost - 1].kind != '{') innermost--;
  diag_error(parser->diag, ERROR_SYNTAX, token->range, "unexpected %s, expected '}'", item_word(token->kind));
  diag_note(parser->diag, parser->open[innermost - 1].range, "this '{' is not closed");
  parser->supply = parser->brace_count;
  parser->open_count = parser->brace_count = 0;
}

// The next token, brackets counted.
static struct red_token next(struct red_parser *parser) {
  struct red_token token;
  if (!parser->supply) {
    if (parser->waiting.kind >= 0) {
      token = parser->waiting;
      parser->waiting.kind = -1;
      return token;
    }
    token.kind = red_scan(&token, parser, parser->scanner);
    if (token.kind == '{' || token.kind == '(' || token.kind == '[') open_bracket(parser, &token);
    if (token.kind == '}') close_bracket(parser, '{');
    if (token.kind == ')') close_bracket(parser, '(');
    if (token.kind == ']') close_bracket(parser, '[');
    if (parser->is_stopped) token.kind = YYEOF;
    if (parser->is_stopped || !starts_item(token.kind) || !parser->brace_count) return token;
    supply_braces(parser, &token);
    parser->waiting = token;
  }
  parser->supply--;
  token = (struct red_token){.kind = '}', .range = parser->waiting.range, .is_supplied = true};
  token.range.end_line = token.range.line;
  token.range.end_column = token.range.column;
  return token;
}

// red.y declares NAME and the words that may be names in a row.
static bool starts_statement(int kind) {
  return kind == FOR || kind == IF || kind == LET || (kind >= NAME && kind <= ALLREDUCE) || kind == '(' ||
         kind == '}';
}

// After an error: the ';' or '}' that ends the construct, an item, or, behind a balanced { ... } that ended
// it, a ';'.
static struct red_token skip(struct red_parser *parser) {
  parser->is_skipping = false;
  bool after_block = false;
  for (;;) {
    struct red_token token = next(parser);
    bool is_outside = parser->brace_count <= parser->skip_braces;
    if (starts_item(token.kind) || token.is_supplied) return token;
    if (after_block && starts_statement(token.kind)) {
      parser->waiting = token;
      return (struct red_token){.kind = ';', .range = token.range, .is_supplied = true};
    }
    if (token.kind == '{' && !parser->skip_braces) return token; // the body of an item whose header is wrong
    if (token.kind == '}' && parser->brace_count < parser->skip_braces) return token;
    if (token.kind == ';' && is_outside) return token;
    after_block = token.kind == '}' && is_outside;
  }
}

struct red_token red_tokens_next(struct red_parser *parser) {
  struct range *previous = &parser->lookahead.range;
  parser->previous_end = (struct range){previous->end_line, previous->end_column, previous->end_line,
                                        previous->end_column, parser->file};
  parser->lookahead = parser->is_skipping ? skip(parser) : next(parser);
  return parser->lookahead;
}

bool red_tokens_error(struct red_parser *parser) {
  const struct red_token *token = &parser->lookahead;
  if (token->is_supplied || parser->is_stopped) return false;
  uint32_t braces = parser->brace_count - (token->kind == '{');
  bool resumes = token->kind == ';' || token->kind == '}' || starts_item(token->kind);
  if (!resumes && !(token->kind == '{' && !braces)) { // the body of an item is no reason to skip
    parser->is_skipping = true;
    parser->skip_braces = braces;
  }
  if (token->is_reported) return false;
  return token->range.line != parser->garbage_line; // one report is enough for a line of garbage
}

// What the scanner, the token stream and the parser of .red files share. Nothing outside grammar/ needs it.
//
// Scanner (red.l) -> token stream (red_tokens.c) -> parser (red.y). The stream between them keeps a stack of
// open brackets: it bounds how deep they nest, supplies a '}' that is missing before an item or the end, and,
// after a syntax error, skips to a place where the parser can go on without tripping over the rest of a
// balanced { ... }.
#ifndef RED_GRAMMAR_RED_PARSER_H
#define RED_GRAMMAR_RED_PARSER_H

#include "compiler/ast.h"

#include <setjmp.h>

struct red_token {
  int kind; // as in red.tab.h
  struct range range;
  const char *text; // of a name, in the arena
  uint64_t integer; // of an integer
  bool is_reported; // a malformed number: what follows from it is not reported too
  bool is_supplied; // a '}' or ';' that is not in the source
};

struct red_parser {
  struct diag *diag;
  struct ast_file *ast;
  uint32_t file;
  void *scanner;
  jmp_buf fatal; // where flex's own fatal errors go
  const char *fatal_message;

  // The scanner's place.
  uint32_t line, column;
  uint32_t garbage_line; // of the last report of a bad character

  // The token stream.
  struct open_bracket *open; // AST_MAX_DEPTH of them
  uint32_t open_count, brace_count;
  uint32_t supply;            // how many '}' to supply before `waiting`
  struct red_token waiting;   // a token put back; kind -1: none
  struct red_token lookahead; // the one that the parser looks at
  struct range previous_end;  // the place behind the token before it
  bool is_skipping;           // after a syntax error
  uint32_t skip_braces;       // open braces around the construct that is skipped
  bool is_stopped;            // nested too deeply: nothing but the end follows
};

// Starts the stream.
void red_tokens_init(struct red_parser *parser);
// The next token for the parser.
struct red_token red_tokens_next(struct red_parser *parser);
// Tells the stream that the lookahead was a syntax error. Returns whether it is worth a report.
bool red_tokens_error(struct red_parser *parser);

#endif

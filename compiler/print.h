// The printer of IR text, shared by print*.c; nobody else includes it.
#ifndef RED_COMPILER_PRINT_H
#define RED_COMPILER_PRINT_H

#include "compiler/ir_text.h"

struct printer {
  struct text *out;
  const struct ir_module *module; // NULL for a lone expression
  struct list files;              // file numbers of ranges, in the order of their first use
  uint32_t indent;
  bool in_directive; // a VAR of kind AXIS stands for extent(x)
};

// ---- print_expr.c
// A name, in backquotes where it is no plain one; NULL as the empty name.
void print_name(struct printer *p, const char *name);
// A string with escapes between two of this quote.
void print_quoted(struct printer *p, const char *string, char quote);
// ` "label"` where it is not the name itself.
void print_label(struct printer *p, const char *name, const char *label);
// ` @line:column-line:column`, or nothing where there is no place.
void print_range(struct printer *p, struct range range);
void print_expr(struct printer *p, const struct ir_expr *e);
// Expressions separated by commas, between these two brackets.
void print_exprs(struct printer *p, const struct list *exprs, const char *brackets);

#endif

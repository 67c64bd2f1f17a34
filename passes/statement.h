// What the statements of a program say about indices.
#ifndef RED_PASSES_STATEMENT_H
#define RED_PASSES_STATEMENT_H

#include "compiler/poly.h"

// Adds what is known behind, and inside, a statement: a loop's variable runs over its range, a let is its value, a thread coordinate is below the
// block's extent.
void statement_facts(const struct ir_entry *entry, struct facts *facts, const struct ir_stmt *stmt);

#endif

#include "passes/statement.h"

void statement_facts(const struct ir_entry *entry, struct facts *facts, const struct ir_stmt *stmt) {
  if (stmt->kind == IR_FOR) {
    facts_add_axis(facts, stmt->var, stmt->lo, stmt->hi);
    return;
  }
  if (stmt->kind != IR_LET || !type_is_integer(stmt->var->type)) return;
  if (stmt->value->op == OP_THREAD) {
    struct ir_expr *extent = ir_int(facts->arena, TYPE_INDEX, entry->block[stmt->value->dimension]);
    facts_add_axis(facts, stmt->var, ir_int(facts->arena, TYPE_INDEX, 0), extent);
  } else {
    facts_add_definition(facts, stmt->var, stmt->value);
  }
}

#include "compiler/explain.h"

#include <string.h>

// What stands in a program, counted in its text, not as often as it runs.
struct tally {
  uint32_t barriers, warp_barriers, shuffles, loads, stores;
};

static void count_expr(struct ir_expr *e, void *state) {
  struct tally *tally = state;
  tally->shuffles += op_is_collective(e->op);
  tally->loads += (e->op == OP_LOAD || e->op == OP_LOAD_FLAT) && e->mem->space == SPACE_GLOBAL;
}

static void count_block(const struct list *block, struct tally *tally) {
  for (uint32_t i = 0; i < block->count; i++) {
    const struct ir_stmt *stmt = list_at(block, struct ir_stmt, i);
    tally->barriers += stmt->kind == IR_BARRIER;
    tally->warp_barriers += stmt->kind == IR_SYNCWARP;
    tally->loads += stmt->kind == IR_LOAD_WIDE && stmt->mem->space == SPACE_GLOBAL;
    tally->stores += (stmt->kind == IR_STORE || stmt->kind == IR_STORE_WIDE) && stmt->mem->space == SPACE_GLOBAL;
    count_block(&stmt->body, tally); // as deep as the parser lets programs nest
    count_block(&stmt->otherwise, tally);
  }
}

// The operator between the operands of an operation, as a program spells it, and how tight it binds; NULL:
// there is none.
static const char *infix(enum op op, int *binding) {
  static const struct {
    enum op op;
    const char *spelling;
    int binding;
  } table[] = {
      {OP_EQ, " == ", 1},  {OP_NE, " != ", 1}, {OP_LT, " < ", 1},  {OP_LE, " <= ", 1}, {OP_GT, " > ", 1},
      {OP_GE, " >= ", 1},  {OP_OR, " | ", 2},  {OP_XOR, " ^ ", 3}, {OP_AND, " & ", 4}, {OP_SHL, " << ", 5},
      {OP_SHR, " >> ", 5}, {OP_ADD, " + ", 6}, {OP_SUB, " - ", 6}, {OP_MUL, " * ", 7}, {OP_DIV, " / ", 7},
      {OP_QUO, " / ", 7},  {OP_MOD, " % ", 7}, {OP_REM, " % ", 7},
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (table[i].op == op) {
      *binding = table[i].binding;
      return table[i].spelling;
    }
  return NULL;
}

// An expression over sizes as a program would spell it. Inside an operator that binds tighter it stands in
// parentheses.
static void print_expr(const struct ir_expr *e, int around, struct text *out) {
  int binding = 0;
  const char *spelling = infix(e->op, &binding);
  if (spelling) {
    text_puts(out, binding < around ? "(" : "");
    print_expr(e->args[0], binding, out);
    text_puts(out, spelling);
    print_expr(e->args[1], binding + 1, out);
    text_puts(out, binding < around ? ")" : "");
  } else if (e->op == OP_CONST && type_is_integer(e->type)) {
    text_printf(out, "%lld", (long long)e->integer);
  } else if (e->op == OP_VAR) {
    text_puts(out, e->var->label ? e->var->label : e->var->name);
  } else if (e->count) {
    text_puts(out, op_table[e->op].spelling);
    for (uint32_t i = 0; i < e->count; i++) {
      text_puts(out, i ? ", " : "(");
      print_expr(e->args[i], 0, out);
    }
    text_puts(out, ")");
  } else {
    ir_print_expr(e, out);
  }
}

static void print_condition(struct text *out, const char *lead, const struct ir_expr *condition) {
  text_puts(out, lead);
  print_expr(condition, 0, out);
  text_puts(out, "\n");
}

// The comment above a schedule that the compiler wrote itself: "NAME: why".
static void print_reason(const struct diag *diag, const struct ir_entry *entry, struct text *out) {
  const struct source *source = diag->sources.at[entry->range.file];
  const char *at = source->text, *comment = NULL;
  for (uint32_t line = 1; at && line < entry->range.line; line++) {
    comment = at;
    at = strchr(at, '\n');
    if (at) at++;
  }
  const char *why = comment ? strstr(comment, ": ") : NULL;
  if (why) text_printf(out, "  because   %.*s\n", (int)strcspn(why + 2, "\n"), why + 2);
}

static void print_choice(const struct diag *diag, const struct ir_entry *entry, struct text *out) {
  if (diag_is_own(diag, entry->range)) {
    text_printf(out, "  schedule  the compiler's own '%s'\n", entry->schedule);
    print_reason(diag, entry, out);
  } else if (entry->is_automatic)
    text_puts(out, "  schedule  the compiler's own\n");
  else if (*entry->schedule)
    text_printf(out, "  schedule  '%s'\n", entry->schedule);
  else
    text_puts(out, "  schedule  the one without a name\n");
  if (entry->launch) text_puts(out, "  taken     behind the entry above, as its next launch\n");
  else if (entry->is_general) text_puts(out, "  taken     where the entry above cannot be\n");
  if (entry->when) print_condition(out, "  when      ", entry->when);
  for (uint32_t i = 0; i < entry->assumptions.count; i++)
    print_condition(out, "  assumes   ", list_at(&entry->assumptions, struct ir_requirement, i)->condition);
}

// Bytes of an object whose dimensions are constants; 0: they are not.
static uint64_t mem_bytes(const struct ir_mem *mem) {
  uint64_t bytes = type_bytes(mem->type);
  for (uint32_t i = 0; i < mem->dims.count; i++) {
    const struct ir_expr *dim = list_at(&mem->dims, struct ir_expr, i);
    if (!ir_is_const(dim)) return 0;
    bytes *= (uint64_t)dim->integer;
  }
  return bytes;
}

static void print_memory(const struct ir_entry *entry, enum ir_space space, const char *lead,
                         struct text *out) {
  uint64_t bytes = 0;
  struct text names = {0};
  for (uint32_t i = 0; i < entry->memory.count; i++) {
    const struct ir_mem *mem = list_at(&entry->memory, struct ir_mem, i);
    if (mem->space != space) continue;
    bytes += mem_bytes(mem);
    text_printf(&names, "%s%s", names.length ? ", " : "", mem->name);
  }
  if (names.length) text_printf(out, "  %-9s %llu bytes (%s)\n", lead, (unsigned long long)bytes, names.data);
  text_free(&names);
}

static void print_entry(const struct diag *diag, const struct ir_entry *entry, struct text *out) {
  struct tally tally = {0};
  text_printf(out, "%s:\n", entry->name);
  print_choice(diag, entry, out);
  text_puts(out, "  grid      ");
  for (uint32_t i = 0; i < 3; i++) {
    if (i) text_puts(out, " x ");
    print_expr(entry->grid[i], 0, out);
  }
  text_printf(out, "\n  block     %u x %u x %u threads\n", entry->block[0], entry->block[1], entry->block[2]);
  print_memory(entry, SPACE_SHARED, "shared", out);
  print_memory(entry, SPACE_LOCAL, "local", out);
  count_block(&entry->body, &tally);
  ir_visit_block(&entry->body, count_expr, &tally);
  text_printf(out, "  code      %u load%s, %u store%s, %u shuffle%s, %u barrier%s, %u warp barrier%s\n",
              tally.loads, tally.loads == 1 ? "" : "s", tally.stores, tally.stores == 1 ? "" : "s",
              tally.shuffles, tally.shuffles == 1 ? "" : "s", tally.barriers, tally.barriers == 1 ? "" : "s",
              tally.warp_barriers, tally.warp_barriers == 1 ? "" : "s");
  text_printf(out, "  offsets   %u bits\n", entry->index_type == TYPE_I32 ? 32 : 64);
}

void explain_module(const struct ir_module *module, struct text *out) {
  for (uint32_t k = 0; k < module->kernels.count; k++) {
    const struct ir_kernel *kernel = list_at(&module->kernels, struct ir_kernel, k);
    text_printf(out, "kernel %s: a launch takes the first of these that can be\n", kernel->label);
    for (uint32_t i = 0; i < kernel->entries.count; i++)
      print_entry(module->diag, list_at(&kernel->entries, struct ir_entry, i), out);
  }
}

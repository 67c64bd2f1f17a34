// redc lift: a lifted function as text of the language, its source lines as comments.
#include "grammar/lift_kernel.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct printer {
  struct lift *l;
  struct text *out;
  struct list active;   // const char *: names that are in scope
  struct list vars;     // struct ir_var: the variables behind them, NULL for parameters
  uint32_t indent;
  uint32_t last_line;   // of the comment before
  uint32_t last_file;
  struct ir_var *inlined; // a reduction that stands where its value is used
  struct lift_item *inlined_item;
};

// ---- Names

static bool is_active(const struct printer *p, const char *name) {
  for (uint32_t i = 0; i < p->active.count; i++)
    if (strcmp(p->active.at[i], name) == 0) return true;
  return false;
}

static bool is_word(const char *name) {
  static const char *const words[] = {"kernel", "reducer", "ordered", "schedule", "for", "in", "if", "else", "let", "_"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(words[i], name) == 0) return true;
  return false;
}

// A name for `base` that is free in this scope, and takes it for the variable (NULL: a parameter).
static const char *take_name(struct printer *p, const char *base, struct ir_var *var) {
  const char *name = is_word(base) ? arena_printf(p->l->arena, "%s_", base) : base;
  for (int n = 2; is_active(p, name); n++) name = arena_printf(p->l->arena, "%s_%d", base, n);
  list_push(p->l->arena, &p->active, (void *)name);
  list_push(p->l->arena, &p->vars, var);
  return name;
}

static void leave_scope(struct printer *p, uint32_t names) { p->active.count = p->vars.count = names; }

// The name of a variable. One that is not in scope is a fault of the analysis, and never printed unnoticed.
static const char *name_of(struct printer *p, const struct ir_var *var) {
  bool is_found = var->kind == VAR_SIZE || var->kind == VAR_SCALAR;
  for (uint32_t i = 0; i < p->vars.count; i++) is_found |= p->vars.at[i] == var;
  if (!is_found && !p->l->is_refused) {
    diag_internal(p->l->diag, "lift", var->range, "'%s' is used out of its scope", var->label);
    p->l->is_refused = true;
  }
  return var->name;
}

// ---- Expressions

enum { PRECEDENCE_SELECT = 0, PRECEDENCE_UNARY = 11, PRECEDENCE_POSTFIX = 12 };

static void print_expr(struct printer *p, const struct ir_expr *e, int outer, bool is_typed);
static void print_reduction(struct printer *p, const struct lift_item *item);

static const struct {
  enum op op;
  const char *spelling, *logic;
  int precedence, logic_precedence;
} operators[] = {
    {OP_OR, "|", "||", 5, 1},  {OP_AND, "&", "&&", 7, 2}, {OP_EQ, "==", NULL, 3, 0}, {OP_NE, "!=", NULL, 3, 0},  {OP_LT, "<", NULL, 4, 0},
    {OP_LE, "<=", NULL, 4, 0}, {OP_GT, ">", NULL, 4, 0},  {OP_GE, ">=", NULL, 4, 0}, {OP_XOR, "^", NULL, 6, 0},  {OP_SHL, "<<", NULL, 8, 0},
    {OP_SHR, ">>", NULL, 8, 0}, {OP_ADD, "+", NULL, 9, 0}, {OP_SUB, "-", NULL, 9, 0}, {OP_MUL, "*", NULL, 10, 0}, {OP_DIV, "/", NULL, 10, 0},
    {OP_MOD, "%", NULL, 10, 0},
};

// The shortest decimal that reads back to the same value, with a digit on both sides of the point.
static void print_number(struct text *out, double number, enum type type) {
  char buffer[64];
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(buffer, sizeof buffer, "%.*g", digits, number);
    if (type == TYPE_F64 ? strtod(buffer, NULL) == number : strtof(buffer, NULL) == (float)number) break;
  }
  if (!strpbrk(buffer, ".e")) strcat(buffer, ".0");
  char *exponent = strchr(buffer, 'e');
  if (exponent && exponent[1] == '+') memmove(exponent + 1, exponent + 2, strlen(exponent + 1));
  text_puts(out, buffer);
}

// A constant. `is_typed`: something beside it says the type.
static void print_constant(struct printer *p, const struct ir_expr *e, int outer, bool is_typed) {
  struct text *out = p->out;
  if (e->type == TYPE_BOOL) {
    text_puts(out, e->integer ? "(0 < 1)" : "(1 < 0)");
    return;
  }
  bool is_float = type_is_float(e->type);
  bool is_negative = is_float ? signbit(e->number) && !isnan(e->number) : e->integer < 0 && type_is_signed(e->type);
  bool is_converted = !is_typed && e->type != TYPE_I64 && e->type != TYPE_F32;
  bool is_closed = is_converted || (is_float && !isfinite(e->number)) || (is_negative && outer > 0);
  if (is_converted) text_puts(out, type_name(e->type));
  if (is_closed) text_puts(out, "(");
  if (is_float && isnan(e->number)) text_puts(out, "0.0 / 0.0");
  else if (is_float && isinf(e->number)) text_puts(out, e->number < 0 ? "-1.0 / 0.0" : "1.0 / 0.0");
  else if (is_float) print_number(out, e->number, e->type);
  else if (type_is_signed(e->type) && e->integer == INT64_MIN) text_puts(out, "-9223372036854775807 - 1");
  else if (type_is_signed(e->type)) text_printf(out, "%" PRId64, e->integer);
  else text_printf(out, "%" PRIu64, type_bits(e->type) == 64 ? (uint64_t)e->integer : (uint64_t)e->integer & ((UINT64_C(1) << type_bits(e->type)) - 1));
  if (is_closed) text_puts(out, ")");
}

static bool is_constant(const struct ir_expr *e) {
  if (e->op == OP_CONST) return true;
  return (e->op == OP_NEG || e->op == OP_SELECT) && is_constant(e->args[e->count - 1]) && (e->op == OP_NEG || is_constant(e->args[1]));
}

static void print_list(struct printer *p, struct ir_expr *const *args, uint32_t count, bool is_typed) {
  for (uint32_t i = 0; i < count; i++) {
    if (i) text_puts(p->out, ", ");
    print_expr(p, args[i], 0, is_typed);
  }
}

static void print_expr(struct printer *p, const struct ir_expr *e, int outer, bool is_typed) {
  struct text *out = p->out;
  switch ((int)e->op) {
  case OP_CONST: print_constant(p, e, outer, is_typed); return;
  case OP_VAR:
    if (p->inlined && e->var == p->inlined) print_reduction(p, p->inlined_item);
    else text_puts(out, name_of(p, e->var));
    return;
  case OP_LOAD:
    text_printf(out, "%s[", e->mem->label);
    print_list(p, e->args, e->count, true);
    text_puts(out, "]");
    return;
  case OP_CAST: {
    const struct ir_expr *inside = e->args[0];
    // f16(x) is an f32 already.
    if (e->type == TYPE_F32 && inside->op == OP_CAST && type_class_of(inside->type) == CLASS_STORAGE) {
      print_expr(p, inside, outer, is_typed);
      return;
    }
    text_printf(out, "%s(", type_name(e->type));
    print_expr(p, inside, 0, false);
    text_puts(out, ")");
    return;
  }
  case OP_NEG: case OP_NOT:
    if (outer > PRECEDENCE_UNARY) text_puts(out, "(");
    text_puts(out, e->op == OP_NEG ? "-" : e->type == TYPE_BOOL ? "!" : "~");
    print_expr(p, e->args[0], PRECEDENCE_UNARY + 1, is_typed);
    if (outer > PRECEDENCE_UNARY) text_puts(out, ")");
    return;
  case OP_SELECT:
    if (outer > PRECEDENCE_SELECT) text_puts(out, "(");
    print_expr(p, e->args[0], 1, false);
    text_puts(out, " ? ");
    print_expr(p, e->args[1], 1, is_typed || !is_constant(e->args[2]));
    text_puts(out, " : ");
    print_expr(p, e->args[2], 1, is_typed || !is_constant(e->args[1]));
    if (outer > PRECEDENCE_SELECT) text_puts(out, ")");
    return;
  default: break;
  }
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
    if (operators[i].op != e->op) continue;
    bool is_logic = e->type == TYPE_BOOL && operators[i].logic;
    int precedence = is_logic ? operators[i].logic_precedence : operators[i].precedence;
    bool asks = op_table[e->op].rule == RULE_COMPARE;
    if (outer > precedence) text_puts(out, "(");
    print_expr(p, e->args[0], precedence, (is_typed && !asks) || !is_constant(e->args[1]));
    text_printf(out, " %s ", is_logic ? operators[i].logic : operators[i].spelling);
    print_expr(p, e->args[1], precedence + 1, (is_typed && !asks) || !is_constant(e->args[0]));
    if (outer > precedence) text_puts(out, ")");
    return;
  }
  bool has_type = false;
  for (uint32_t i = 0; i < e->count; i++) has_type |= !is_constant(e->args[i]);
  text_printf(out, "%s(", op_table[e->op].spelling);
  print_list(p, e->args, e->count, has_type);
  text_puts(out, ")");
}

// ---- Statements

static void indent(struct printer *p) { text_printf(p->out, "%*s", 2 * p->indent, ""); }

// The source line as a comment, unless it stands above already.
static void print_source(struct printer *p, struct range range) {
  if (!range.line || (range.line == p->last_line && range.file == p->last_file)) return;
  p->last_line = range.line;
  p->last_file = range.file;
  const struct source *source = list_at(&p->l->diag->sources, const struct source, range.file);
  if (!source->text || range.line > source->line_count) return;
  const char *line = source->lines[range.line - 1], *end = line + strcspn(line, "\n");
  while (line < end && isspace((unsigned char)*line)) line++;
  while (end > line && (isspace((unsigned char)end[-1]) || end[-1] == '\\')) end--;
  const char *name = strrchr(source->name, '/');
  indent(p);
  text_printf(p->out, "// %s:%" PRIu32 ": ", name ? name + 1 : source->name, range.line);
  for (; line < end; line++) // the language is ASCII, outside comments too in what is made here
    text_append(p->out, (unsigned char)*line < 128 ? line : "?", 1);
  text_puts(p->out, "\n");
}

static void print_axis(struct printer *p, const struct lift_axis *axis) {
  // The range belongs to the scope around.
  struct text range = {0}, *out = p->out;
  p->out = &range;
  if (!ir_const_is(axis->lo, 0)) {
    print_expr(p, axis->lo, 1, true);
    text_puts(&range, "..");
  }
  print_expr(p, axis->hi, 1, true);
  p->out = out;
  axis->var->name = take_name(p, axis->var->label, axis->var);
  text_printf(out, "%s in %s", axis->var->name, range.data);
  text_free(&range);
}

static void print_let(struct printer *p, const struct lift_item *let);

static bool is_postfix(const struct ir_expr *e) {
  if (e->op == OP_CONST) return type_is_float(e->type) ? e->number >= 0 && isfinite(e->number) : e->integer >= 0;
  if (e->op == OP_VAR || e->op == OP_LOAD || e->op == OP_CAST) return true;
  if (e->op == OP_NEG || e->op == OP_NOT || e->op == OP_SELECT) return false;
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
    if (operators[i].op == e->op) return false;
  return true;
}

static void print_reduction(struct printer *p, const struct lift_item *item) {
  struct text *out = p->out;
  uint32_t names = p->active.count;
  text_printf(out, "%s(", item->reducer);
  for (uint32_t i = 0; i < item->axes.count; i++) {
    if (i) text_puts(out, ", ");
    print_axis(p, item->axes.at[i]);
  }
  struct ir_expr *condition = lift_all(p->l, &item->conditions);
  if (condition) {
    text_puts(out, " if ");
    print_expr(p, condition, 0, false);
  }
  text_puts(out, ") ");
  if (item->lets.count) text_puts(out, "{ ");
  for (uint32_t i = 0; i < item->lets.count; i++) {
    print_let(p, item->lets.at[i]);
    text_puts(out, " ");
  }
  if (item->operands.count > 1) {
    text_puts(out, "(");
    print_list(p, (struct ir_expr *const *)item->operands.at, item->operands.count, false);
    text_puts(out, ")");
  } else {
    const struct ir_expr *operand = item->operands.at[0];
    bool is_closed = !item->lets.count && !is_postfix(operand);
    if (is_closed) text_puts(out, "(");
    print_expr(p, operand, 0, false);
    if (is_closed) text_puts(out, ")");
  }
  if (item->lets.count) text_puts(out, " }");
  leave_scope(p, names);
}

static void print_let(struct printer *p, const struct lift_item *let) {
  struct text value = {0}, *out = p->out;
  p->out = &value;
  if (let->kind == ITEM_REDUCE) print_reduction(p, let);
  else print_expr(p, let->value, 0, false);
  p->out = out;
  if (let->kind == ITEM_LET) {
    let->var->name = take_name(p, let->var->label, let->var);
    text_printf(out, "let %s = %s;", let->var->name, value.data);
  } else if (let->results.count == 1) {
    struct ir_var *result = let->results.at[0];
    result->name = take_name(p, result->label, result);
    text_printf(out, "let %s = %s;", result->name, value.data);
  } else {
    text_puts(out, "let (");
    for (uint32_t i = 0; i < let->results.count; i++) {
      struct ir_var *result = let->results.at[i];
      result->name = take_name(p, result->label, result);
      text_printf(out, "%s%s", i ? ", " : "", result->name);
    }
    text_printf(out, ") = %s;", value.data);
  }
  text_free(&value);
}

struct counting {
  const struct ir_var *var;
  uint32_t count;
  bool is_chosen; // ?:, && or || in the expression
};

static void visit_count(struct ir_expr *e, void *state) {
  struct counting *c = state;
  c->count += e->op == OP_VAR && e->var == c->var;
  c->is_chosen |= e->op == OP_SELECT || (e->type == TYPE_BOOL && (e->op == OP_AND || e->op == OP_OR));
}

static void count_in(const struct list *items, struct counting *c) {
  for (uint32_t i = 0; i < items->count; i++) {
    const struct lift_item *item = items->at[i];
    if (item->is_dead) continue;
    if (item->value) ir_visit_expr(item->value, visit_count, c);
    const struct list *lists[] = {&item->guards, &item->conditions, &item->operands, &item->indices};
    for (size_t n = 0; n < sizeof lists / sizeof *lists; n++)
      for (uint32_t k = 0; k < lists[n]->count; k++) ir_visit_expr(lists[n]->at[k], visit_count, c);
    count_in(&item->lets, c);
    count_in(&item->items, c);
  }
}

// Whether the reduction `item` can stand in the store right behind it: its only use.
static bool can_inline(const struct printer *p, const struct lift_item *item, const struct lift_item *next) {
  if (item->kind != ITEM_REDUCE || item->results.count != 1 || !next || next->kind != ITEM_STORE || next->guards.count) return false;
  struct counting all = {.var = item->results.at[0]}, here = all;
  count_in(&p->l->items, &all);
  ir_visit_expr(next->value, visit_count, &here);
  return all.count == 1 && here.count == 1 && !here.is_chosen;
}

static bool same_guards(const struct lift_item *a, const struct lift_item *b) {
  if (a->guards.count != b->guards.count) return false;
  for (uint32_t i = 0; i < a->guards.count; i++)
    if (!ir_equal(a->guards.at[i], b->guards.at[i])) return false;
  return true;
}

static struct lift_item *next_live(const struct list *items, uint32_t from) {
  for (; from < items->count; from++) {
    struct lift_item *item = items->at[from];
    if (!item->is_dead) return item;
  }
  return NULL;
}

static void print_items(struct printer *p, const struct list *items);

static void print_loop(struct printer *p, const struct lift_item *loop) {
  uint32_t names = p->active.count;
  print_source(p, loop->range);
  indent(p);
  text_puts(p->out, "for ");
  print_axis(p, loop->axis);
  // Loops that hold nothing but a loop are one.
  for (;;) {
    struct lift_item *only = next_live(&loop->items, 0);
    uint32_t live = 0;
    for (uint32_t i = 0; i < loop->items.count; i++) live += !list_at(&loop->items, struct lift_item, i)->is_dead;
    if (live != 1 || only->kind != ITEM_FOR || only->guards.count) break;
    text_puts(p->out, ", ");
    print_axis(p, only->axis);
    loop = only;
  }
  text_puts(p->out, " {\n");
  p->indent++;
  print_items(p, &loop->items);
  p->indent--;
  indent(p);
  text_puts(p->out, "}\n");
  leave_scope(p, names);
}

static void print_store(struct printer *p, const struct lift_item *store) {
  print_source(p, store->range);
  indent(p);
  text_printf(p->out, "%s[", store->array->mem->label);
  print_list(p, (struct ir_expr *const *)store->indices.at, store->indices.count, true);
  text_puts(p->out, "] = ");
  print_expr(p, store->value, 0, true);
  text_puts(p->out, ";\n");
}

static void print_items(struct printer *p, const struct list *items) {
  const struct lift_item *before = NULL;
  bool is_open = false;
  for (uint32_t i = 0; i < items->count; i++) {
    struct lift_item *item = items->at[i];
    if (item->is_dead) continue;
    bool has_guards = (item->kind == ITEM_STORE || item->kind == ITEM_FOR) && item->guards.count;
    if (is_open && (!has_guards || !same_guards(before, item))) {
      p->indent--;
      indent(p);
      text_puts(p->out, "}\n");
      is_open = false;
    }
    if (has_guards && !is_open) {
      if (item->kind == ITEM_STORE) print_source(p, item->range);
      indent(p);
      text_puts(p->out, "if ");
      print_expr(p, lift_all(p->l, &item->guards), 1, false);
      text_puts(p->out, " {\n");
      p->indent++;
      is_open = true;
    }
    before = item;
    struct lift_item *next = next_live(items, i + 1);
    if (can_inline(p, item, next)) {
      print_source(p, item->range);
      p->inlined = item->results.at[0];
      p->inlined_item = item;
      print_store(p, next);
      p->inlined = NULL;
      while (items->at[i] != next) i++;
      before = next;
      continue;
    }
    switch (item->kind) {
    case ITEM_LET: case ITEM_REDUCE:
      print_source(p, item->range);
      indent(p);
      print_let(p, item);
      text_puts(p->out, "\n");
      break;
    case ITEM_STORE: print_store(p, item); break;
    case ITEM_FOR: print_loop(p, item); break;
    }
  }
  if (is_open) {
    p->indent--;
    indent(p);
    text_puts(p->out, "}\n");
  }
}

// ---- The kernel

static void visit_parameter(struct ir_expr *e, void *state) {
  struct lift *l = state;
  for (uint32_t i = 0; i < l->symbols.count; i++) {
    struct lift_symbol *symbol = l->symbols.at[i];
    if (e->op == OP_VAR && symbol->size && (e->var == symbol->size || e->var == symbol->scalar)) symbol->is_used = true;
    if (e->op == OP_LOAD && symbol->mem == e->mem) symbol->is_accessed = true;
  }
}

static void mark_items(struct lift *l, const struct list *items) {
  for (uint32_t i = 0; i < items->count; i++) {
    struct lift_item *item = items->at[i];
    if (item->is_dead) continue;
    if (item->kind == ITEM_STORE) item->array->is_accessed = true;
    if (item->value) ir_visit_expr(item->value, visit_parameter, l);
    struct list *lists[] = {&item->guards, &item->conditions, &item->operands, &item->indices};
    for (size_t n = 0; n < sizeof lists / sizeof *lists; n++)
      for (uint32_t k = 0; k < lists[n]->count; k++) ir_visit_expr(lists[n]->at[k], visit_parameter, l);
    for (uint32_t k = 0; k < item->axes.count + (item->axis != NULL); k++) {
      const struct lift_axis *axis = k < item->axes.count ? item->axes.at[k] : item->axis;
      ir_visit_expr(axis->lo, visit_parameter, l);
      ir_visit_expr(axis->hi, visit_parameter, l);
    }
    mark_items(l, &item->lets);
    mark_items(l, &item->items);
  }
}

// Finds out which parameters the kernel has: those that what is left mentions.
static void mark_parameters(struct lift *l) {
  for (uint32_t i = 0; i < l->symbols.count; i++) {
    struct lift_symbol *symbol = l->symbols.at[i];
    symbol->is_used = symbol->is_accessed = false;
  }
  mark_items(l, &l->items);
  for (uint32_t i = 0; i < l->symbols.count; i++) {
    struct lift_symbol *symbol = l->symbols.at[i];
    for (uint32_t k = 0; symbol->is_accessed && symbol->mem && k < symbol->mem->dims.count; k++) ir_visit_expr(symbol->mem->dims.at[k], visit_parameter, l);
  }
}

// Whether a size stands alone in some dimension: a launch finds it there.
static bool is_inferred(const struct lift *l, const struct ir_var *size) {
  for (uint32_t i = 0; i < l->symbols.count; i++) {
    const struct lift_symbol *symbol = l->symbols.at[i];
    for (uint32_t k = 0; symbol->mem && symbol->is_accessed && k < symbol->mem->dims.count; k++) {
      const struct ir_expr *extent = symbol->mem->dims.at[k];
      if (extent->op == OP_VAR && extent->var == size) return true;
    }
  }
  return false;
}

static void print_parameter(struct printer *p, const struct lift_symbol *symbol, bool *is_first) {
  text_puts(p->out, *is_first ? "" : ", ");
  *is_first = false;
  if (!symbol->mem) {
    text_printf(p->out, "%s: %s", symbol->name, symbol->is_size ? "size" : type_name(symbol->host->type));
    return;
  }
  text_printf(p->out, "%s: %s[", symbol->name, type_name(symbol->host->type));
  print_list(p, (struct ir_expr *const *)symbol->mem->dims.at, symbol->mem->dims.count, true);
  text_puts(p->out, "]");
}

static void print_head(struct printer *p) {
  struct lift *l = p->l;
  bool is_first = true;
  print_source(p, l->function->range);
  text_printf(p->out, "kernel %s(", take_name(p, l->function->name, NULL));
  leave_scope(p, p->active.count - 1); // kernels have a namespace of their own
  for (uint32_t i = 0; i < l->symbols.count; i++) {
    struct lift_symbol *symbol = l->symbols.at[i];
    if (!symbol->host->is_parameter || !(symbol->mem ? symbol->is_accessed : symbol->is_used)) continue;
    symbol->name = take_name(p, symbol->host->name, NULL);
    if (symbol->mem) symbol->mem->label = symbol->name;
    if (symbol->size) symbol->size->name = symbol->scalar->name = symbol->name;
  }
  for (uint32_t pass = 0; pass < 2; pass++) {
    for (uint32_t i = 0; i < l->symbols.count; i++) {
      struct lift_symbol *symbol = l->symbols.at[i];
      if (!symbol->name) continue;
      bool is_output = symbol->mem && symbol->host->is_written;
      if (is_output != (pass == 1) || (symbol->is_size && is_inferred(l, symbol->size))) continue;
      print_parameter(p, symbol, &is_first);
    }
    text_puts(p->out, pass == 0 ? ") -> (" : ") {\n");
    is_first = true;
  }
}

// ---- Schedules

// Whether a directive's text has the word.
static bool has_word(const char *text, const char *word) {
  size_t length = strlen(word);
  for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) {
    bool begins = at == text || (!isalnum((unsigned char)at[-1]) && at[-1] != '_');
    bool ends = !isalnum((unsigned char)at[length]) && at[length] != '_';
    if (begins && ends) return true;
  }
  return false;
}

static void find_reduced(const struct list *items, struct lift *l, struct list *names) {
  for (uint32_t i = 0; i < items->count; i++) {
    const struct lift_item *item = items->at[i];
    if (item->is_dead) continue;
    bool rounds = item->kind == ITEM_REDUCE && (item->op == OP_ADD || item->op == OP_MUL) && type_is_float(list_at(&item->results, struct ir_var, 0)->type);
    for (uint32_t k = 0; rounds && k < item->axes.count; k++) list_push(l->arena, names, (void *)list_at(&item->axes, struct lift_axis, k)->var->name);
    find_reduced(&item->lets, l, names);
    find_reduced(&item->items, l, names);
  }
}

// `bind(i, block.x)` as the language writes it: the arguments between the words that stand there.
static const char *directive_text(struct lift *l, const struct host_pragma *pragma) {
  const char *text = pragma->text, *open = strchr(text, '(');
  size_t length = strlen(text);
  static const struct {
    const char *word, *joints[6];
  } forms[] = {
      {"bind", {"", " -> "}}, {"split", {"", " by ", " -> ", ", "}}, {"unroll", {"", " by "}}, {"allreduce", {"", " by "}}, {"combine", {"", " by "}}, {"cache", {"", " by "}},
      {"fuse", {"", ", ", " -> "}}, {"reorder", {"", ", ", ", ", ", ", ", ", ", "}}, {"vectorize", {"", ", ", ", ", ", ", ", ", ", "}}, {"join", {"", ", ", ", ", ", ", ", ", ", "}},
      {"blocks", {""}},
  };
  size_t word = open ? (size_t)(open - text) : 0;
  while (word && text[word - 1] == ' ') word--;
  if (!open || length == 0 || text[length - 1] != ')') return text;
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    if (strlen(forms[i].word) != word || strncmp(forms[i].word, text, word) != 0) continue;
    struct text out = {0};
    text_printf(&out, "%s ", forms[i].word);
    const char *at = open + 1, *end = text + length - 1;
    for (size_t k = 0; at < end; k++) {
      size_t part = 0, depth = 0;
      for (; at + part < end && (depth || at[part] != ','); part++) depth += at[part] == '(' ? 1 : at[part] == ')' ? (size_t)-1 : 0;
      while (part && *at == ' ') at++, part--;
      if (k >= 6 || !forms[i].joints[k]) {
        lift_refuse(l, pragma->range, NULL, "directive '%s' takes fewer arguments", forms[i].word);
        break;
      }
      text_printf(&out, "%s%.*s", forms[i].joints[k], (int)part, at);
      at += part + (at + part < end);
    }
    const char *copy = arena_strndup(l->arena, out.data, out.length);
    text_free(&out);
    return copy;
  }
  return text;
}

// Axes of float reductions stay serial and in their order where C's order is kept.
static bool keeps_order(struct lift *l, const struct list *reduced, const struct host_pragma *pragma, const char *text) {
  for (uint32_t i = 0; i < reduced->count; i++) {
    const char *name = reduced->at[i];
    if (!has_word(text, name) || strncmp(text, "unroll ", 7) == 0) continue;
    lift_refuse(l, pragma->range, "allow it with --reassociate or #pragma red reassociate; unroll alone keeps the order", "the directive changes the order in which '%s' adds to '%s'", name, l->ordered_name);
    return false;
  }
  return true;
}

static void print_schedule(struct printer *p) {
  struct lift *l = p->l;
  const struct list *pragmas = &l->function->pragmas;
  struct list reduced = {0};
  if (l->keeps_order) find_reduced(&l->items, l, &reduced);
  if (!pragmas->count && !l->keeps_order) return;
  if (l->keeps_order) text_puts(p->out, "// C's order of float additions is kept: their axes are serial. --reassociate spreads them over threads.\n");
  text_printf(p->out, "schedule %s%s {\n", l->function->name, l->keeps_order ? " as c_order" : "");
  for (uint32_t i = 0; i < pragmas->count; i++) {
    const struct host_pragma *pragma = pragmas->at[i];
    const char *text = directive_text(l, pragma);
    if (l->keeps_order && !keeps_order(l, &reduced, pragma, text)) break;
    text_printf(p->out, "  %s;\n", text);
  }
  struct list bound = {0};
  for (uint32_t i = 0; !pragmas->count && i < l->items.count; i++) {
    const struct lift_item *item = l->items.at[i];
    if (item->is_dead || item->kind != ITEM_FOR) continue;
    const char *name = item->axis->var->name;
    bool is_known = false;
    for (uint32_t k = 0; k < bound.count; k++) is_known |= strcmp(bound.at[k], name) == 0;
    for (uint32_t k = 0; k < reduced.count; k++) is_known |= strcmp(reduced.at[k], name) == 0;
    if (is_known) continue;
    list_push(l->arena, &bound, (void *)name);
    text_printf(p->out, "  split %s by 128 -> %s_block, %s_thread;  bind %s_block -> block.x;  bind %s_thread -> thread.x;\n", name, name, name, name, name);
  }
  text_puts(p->out, "}\n");
}

void lift_print(struct lift *l, struct text *out) {
  struct printer p = {.l = l, .out = out};
  mark_parameters(l);
  print_head(&p);
  p.indent = 1;
  print_items(&p, &l->items);
  text_puts(out, "}\n");
  print_schedule(&p);
}

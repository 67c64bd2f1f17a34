// Expressions of IR text. Nodes are built as they stand, without folding, and checked one by one
// (ir_node_fault).
#include "compiler/read.h"

#include <errno.h>
#include <langinfo.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum type read_type(struct reader *r) {
  struct range place = r->scan.token.range;
  enum type type = TYPE_INDEX;
  const char *name = read_name(r, "a type");
  if (name && strcmp(name, type_name(TYPE_INDEX)) != 0 && !type_parse(name, &type))
    read_fail(r, place, "unknown type '%s'", name);
  return type;
}

// ---- Constants

static struct ir_expr *constant(struct reader *r, enum type type, struct range place) {
  struct ir_expr *e = ir_raw(r->arena, OP_CONST, type, NULL, 0);
  e->range = place;
  return e;
}

// The integer that the spelling says, in the range of i64, or of u64 for that type.
static int64_t parse_integer(struct reader *r, const char *spelling, enum type type, struct range place) {
  char *end;
  errno = 0;
  bool is_negative = *spelling == '-';
  uint64_t value = strtoull(spelling + is_negative, &end, 10);
  uint64_t limit = type == TYPE_U64 ? (is_negative ? 0 : UINT64_MAX) : (uint64_t)INT64_MAX + is_negative;
  if (*end || errno || value > limit) {
    read_fail(r, place, "'%s' is no constant of type %s", spelling, type_name(type));
    return 0;
  }
  return (int64_t)(is_negative ? 0 - value : value);
}

// Decimals, whatever the locale's decimal point is.
static double parse_decimal(struct reader *r, const char *spelling, enum type type, struct range place) {
  const char *point = strchr(spelling, '.');
  const char *local = spelling;
  if (point)
    local = arena_printf(r->arena, "%.*s%s%s", (int)(point - spelling), spelling, nl_langinfo(RADIXCHAR),
                         point + 1);
  char *end;
  double value = type == TYPE_F32 ? (double)strtof(local, &end) : strtod(local, &end);
  if (*end || strchr(spelling, 'x') || isinf(value))
    read_fail(r, place, "'%s' is no constant of type %s", spelling, type_name(type));
  return value;
}

static struct ir_expr *read_number(struct reader *r) {
  struct token token = r->scan.token;
  read_advance(r);
  read_expect(r, ':');
  enum type type = read_type(r);
  if (r->failed) return NULL;
  struct ir_expr *e = constant(r, type, token.range);
  if (type_is_float(type))
    e->number = parse_decimal(r, token.text, type, token.range);
  else
    e->integer = parse_integer(r, token.text, type, token.range);
  return e;
}

// inf, -inf, nan
static struct ir_expr *read_special_number(struct reader *r, double value) {
  struct range place = r->scan.token.range;
  read_advance(r);
  read_expect(r, ':');
  enum type type = read_type(r);
  if (!r->failed && !type_is_float(type)) read_fail(r, place, "'%s' is no float type", type_name(type));
  if (r->failed) return NULL;
  struct ir_expr *e = constant(r, type, place);
  uint64_t quiet = UINT64_C(0x7ff8000000000000);
  if (isnan(value))
    memcpy(&e->number, &quiet, sizeof quiet);
  else
    e->number = value;
  return e;
}

// bits(0x...): a float as the bits of the f64 of its value, behind the word.
static struct ir_expr *read_bits(struct reader *r, struct range place) {
  struct token token = r->scan.token;
  read_expect(r, '(');
  token = r->scan.token;
  if (token.kind != TOKEN_NUMBER || strncmp(token.text, "0x", 2) != 0 || strlen(token.text) != 18)
    read_expected(r, "0x and 16 digits");
  read_advance(r);
  read_expect(r, ')');
  read_expect(r, ':');
  enum type type = read_type(r);
  if (!r->failed && !type_is_float(type)) read_fail(r, place, "'%s' is no float type", type_name(type));
  if (r->failed) return NULL;
  struct ir_expr *e = constant(r, type, place);
  uint64_t bits = strtoull(token.text, NULL, 16);
  memcpy(&e->number, &bits, sizeof bits);
  return e;
}

static struct ir_expr *read_bool(struct reader *r, bool value) {
  struct ir_expr *e = constant(r, TYPE_BOOL, r->scan.token.range);
  e->integer = value;
  read_advance(r);
  return e;
}

// ---- Variables and calls

static struct ir_expr *read_variable(struct reader *r, struct token name) {
  struct symbol *symbol = map_get(&r->symbols, name.text);
  if (!symbol || !symbol->var) {
    read_fail(r, name.range, symbol ? "'%s' is a memory object, not a variable" : "unknown variable '%s'",
              name.text);
    return NULL;
  }
  struct ir_expr *e = ir_raw(r->arena, OP_VAR, symbol->var->type, NULL, 0);
  e->var = symbol->var;
  if (read_accept(r, ':')) e->type = read_type(r);
  return e;
}

// thread.x, block.y: behind the point.
static struct ir_expr *read_special(struct reader *r, enum op op) {
  struct token axis = r->scan.token;
  const char *letter = read_name(r, "x, y or z");
  if (!letter) return NULL;
  struct ir_expr *e = ir_raw(r->arena, op, TYPE_INDEX, NULL, 0);
  e->dimension = (uint32_t)(letter[0] - 'x');
  if (e->dimension > 2 || letter[1]) read_fail(r, axis.range, "expected x, y or z, found '%s'", letter);
  if (read_accept(r, ':')) e->type = read_type(r);
  return e;
}

// extent(x) or extent.type(x) of a directive's factor: a variable that only names the axis.
static struct ir_expr *read_extent(struct reader *r, enum type type) {
  read_expect(r, '(');
  const char *name = read_name(r, "the name of an axis");
  read_expect(r, ')');
  if (r->failed) return NULL;
  struct ir_var *var = arena_new(r->arena, struct ir_var);
  *var = (struct ir_var){.name = name, .label = name, .kind = VAR_AXIS, .type = type};
  struct ir_expr *e = ir_raw(r->arena, OP_VAR, type, NULL, 0);
  e->var = var;
  return e;
}

static bool read_separator(struct reader *r, bool *is_first) {
  if (!*is_first) read_expect(r, ',');
  *is_first = false;
  return !r->failed;
}

// An operation, from the opening parenthesis on; `type`, where not NULL, is spelled.
static struct ir_expr *read_operation(struct reader *r, enum op op, const enum type *type) {
  struct ir_mem *mem = NULL;
  uint32_t dimension = 0;
  struct list args = {0};
  bool is_first = true;
  if (op_table[op].rule == RULE_CONVERT && !type)
    read_expected(r, "'.' and the type that the conversion makes");
  read_expect(r, '(');
  if (ir_op_has_mem(op) && read_separator(r, &is_first)) mem = read_known_mem(r);
  if (ir_op_has_dimension(op) && read_separator(r, &is_first)) dimension = read_uint(r, "a dimension");
  while (!r->failed && !read_at(r, ')'))
    if (read_separator(r, &is_first)) list_push(r->arena, &args, read_expr(r));
  read_expect(r, ')');
  if (r->failed) return NULL;
  struct ir_expr **operands = (struct ir_expr **)args.at;
  enum type result = type ? *type : ir_inferred_type(op, operands, args.count, mem);
  struct ir_expr *e = ir_raw(r->arena, op, result, operands, args.count);
  if (mem) e->mem = mem;
  e->dimension = dimension;
  return e;
}

// What begins with a name that is no quoted one.
static struct ir_expr *read_named(struct reader *r) {
  struct token name = r->scan.token;
  enum type type = TYPE_INDEX;
  enum op op = (enum op)((uintptr_t)map_get(&r->operations, name.text) - 1);
  bool is_op = map_get(&r->operations, name.text) != NULL;
  read_advance(r);
  bool is_typed = read_at(r, '.');
  if (!is_typed && !read_at(r, '(')) return read_variable(r, name);
  if (strcmp(name.text, "bits") == 0) return read_bits(r, name.range);
  if (is_typed) {
    read_advance(r);
    if (is_op && op_table[op].rule == RULE_SPECIAL) return read_special(r, op);
    type = read_type(r);
  }
  if (r->in_directive && strcmp(name.text, "extent") == 0) return read_extent(r, type);
  if (!is_op || op_table[op].rule == RULE_SPECIAL || op_table[op].rule == RULE_NONE) {
    read_fail(r, name.range, "unknown operation '%s'", name.text);
    return NULL;
  }
  return read_operation(r, op, is_typed ? &type : NULL);
}

static struct ir_expr *read_leaf_or_call(struct reader *r) {
  struct token token = r->scan.token;
  if (token.kind == TOKEN_NUMBER) return read_number(r);
  if (read_accept(r, '-')) {
    if (read_at_word(r, "inf")) return read_special_number(r, -INFINITY);
    read_expected(r, "'inf' or a number");
  }
  if (token.kind != TOKEN_NAME) {
    read_expected(r, "an expression");
    return NULL;
  }
  if (token.is_quoted) {
    read_advance(r);
    return read_variable(r, token);
  }
  if (read_at_word(r, "true") || read_at_word(r, "false")) return read_bool(r, *token.text == 't');
  if (read_at_word(r, "inf")) return read_special_number(r, INFINITY);
  if (read_at_word(r, "nan")) return read_special_number(r, NAN);
  return read_named(r);
}

struct ir_expr *read_expr(struct reader *r) {
  struct range place = r->scan.token.range;
  if (!read_enter(r)) return NULL;
  struct ir_expr *e = read_leaf_or_call(r);
  read_leave(r);
  if (r->failed) return NULL;
  e->range = place;
  const char *fault = ir_node_fault(e, r->arena);
  if (fault) read_fail(r, place, "%s", fault);
  return fault ? NULL : e;
}

void read_exprs(struct reader *r, char open, char close, struct list *out) {
  bool is_first = true;
  read_expect(r, open);
  while (!r->failed && !read_at(r, close))
    if (read_separator(r, &is_first)) list_push(r->arena, out, read_expr(r));
  read_expect(r, close);
}

void read_skip_expr(struct reader *r) {
  uint32_t open = 0;
  if (read_accept(r, '-') || r->scan.token.kind != TOKEN_PUNCTUATION) read_advance(r);
  while (read_at(r, '.') || read_at(r, ':')) {
    read_advance(r);
    read_advance(r);
  }
  if (!read_at(r, '(')) return;
  do {
    if (r->scan.token.kind == TOKEN_END) read_expected(r, "')'");
    if (read_at(r, '(')) open++;
    if (read_at(r, ')')) open--;
    read_advance(r);
  } while (!r->failed && open);
  if (read_accept(r, ':')) read_advance(r); // bits(0x...):f32
}

// check, expressions: types, literals, accesses and their bounds.
#include "passes/check.h"

#include <string.h>

#include "compiler/suggest.h"

enum type type_computed(enum type stored) { return type_class_of(stored) == CLASS_STORAGE ? TYPE_F32 : stored; }

static struct ir_expr *at(struct ir_expr *e, struct range range) {
  if (e && e->range.line == 0) e->range = range;
  return e;
}

// --- Literals ---------------------------------------------------------------------------------------------------------

static bool is_literal(const struct ast_expr *e) {
  switch (e->kind) {
  case AST_INT: case AST_FLOAT: return true;
  case AST_UNARY: return e->unary != AST_NOT && is_literal(e->args.at[0]);
  case AST_BINARY: return e->binary > AST_GE && is_literal(e->args.at[0]) && is_literal(e->args.at[1]);
  case AST_NAME: case AST_ACCESS: case AST_CALL: case AST_FIELD: case AST_TERNARY: case AST_TUPLE: case AST_REDUCE: case AST_BLOCK:
    return false;
  }
  return false;
}

static bool has_decimal(const struct ast_expr *e) {
  if (e->kind == AST_FLOAT) return true;
  for (uint32_t i = 0; i < e->args.count; i++)
    if (has_decimal(e->args.at[i])) return true;
  return false;
}

// Made of sizes, axes and literals alone: i64, and f32 or f64 beside a float.
static bool is_size_like(struct checker *c, const struct ast_expr *e) {
  switch (e->kind) {
  case AST_INT: return true;
  case AST_NAME: {
    struct symbol *symbol = check_find(c, e->name.text);
    return symbol && (symbol->kind == SYMBOL_SIZE || symbol->kind == SYMBOL_AXIS);
  }
  case AST_UNARY: return is_size_like(c, e->args.at[0]);
  case AST_BINARY: return e->binary > AST_GE && is_size_like(c, e->args.at[0]) && is_size_like(c, e->args.at[1]);
  case AST_FLOAT: case AST_ACCESS: case AST_CALL: case AST_FIELD: case AST_TERNARY: case AST_TUPLE: case AST_REDUCE: case AST_BLOCK:
    return false;
  }
  return false;
}

// An integer literal, its sign included, as a constant of `type`.
static struct ir_expr *integer_literal(struct checker *c, uint64_t magnitude, bool is_negative, enum type type, struct range range) {
  if (type_is_float(type))
    return at(ir_float(c->arena, type, is_negative ? -(double)magnitude : (double)magnitude), range);
  bool fits;
  if (!type_is_integer(type)) {
    diag_error(c->diag, ERROR_LITERAL, range, "an integer literal stands where a %s is needed", type_name(type));
    return NULL;
  }
  uint32_t bits = type_bits(type);
  if (type_is_signed(type)) {
    uint64_t limit = (uint64_t)1 << (bits - 1);
    fits = is_negative ? magnitude <= limit : magnitude < limit;
  } else {
    fits = (!is_negative || magnitude == 0) && (bits == 64 || magnitude < (uint64_t)1 << bits);
  }
  if (!fits) {
    diag_error(c->diag, ERROR_LITERAL, range, "literal %s%llu does not fit type %s", is_negative ? "-" : "",
               (unsigned long long)magnitude, type_name(type));
    return NULL;
  }
  return at(ir_int(c->arena, type, (int64_t)(is_negative ? 0 - magnitude : magnitude)), range);
}

// --- Conversions --------------------------------------------------------------------------------------------------

// Whether every value of integer type `from` is one of `to`.
static bool holds_all(enum type to, enum type from) {
  if (!type_is_integer(to) || !type_is_integer(from)) return false;
  if (type_is_signed(to) == type_is_signed(from)) return type_bits(to) >= type_bits(from);
  return type_is_signed(to) && type_bits(to) > type_bits(from);
}

struct ir_expr *check_convert(struct checker *c, struct ir_expr *value, enum type type, struct range range, const char *place) {
  if (value->type == type) return value;
  bool to_float = type_is_float(type) || type_class_of(type) == CLASS_STORAGE;
  if ((to_float && type_is_float(value->type)) || holds_all(type, value->type)) return ir_cast(c->arena, type, value);
  diag_error(c->diag, ERROR_TYPE_MISMATCH, range, "%s has type %s and the value has type %s", place, type_name(type),
             type_name(value->type));
  if (type_class_of(type) != CLASS_MOVED && type_class_of(value->type) != CLASS_MOVED)
    diag_note(c->diag, (struct range){0}, "convert it: %s(...)", type_name(type));
  return NULL;
}

// Whether an index of 32 bits, where spans and axes stay below 2^31, holds the value of e.
static bool is_index_leaf(const struct ir_expr *e) {
  if (e->op == OP_CONST) return e->integer >= INT32_MIN && e->integer <= INT32_MAX;
  if (e->op == OP_CAST) {
    e = e->args[0];
    if (type_is_signed(e->type) ? type_bits(e->type) <= 32 : type_bits(e->type) < 32) return true;
  }
  return e->op == OP_VAR && (e->type == TYPE_INDEX || (e->var->kind == VAR_SIZE && e->var->inferred && e->var->inferred->op == OP_DIM));
}

struct ir_expr *check_as_index(struct checker *c, struct ir_expr *e) {
  if (e->type == TYPE_INDEX) return e;
  if (ir_is_const(e)) return ir_int(c->arena, TYPE_INDEX, e->integer);
  if (e->op == OP_CAST && e->args[0]->type == TYPE_INDEX) return e->args[0];
  switch ((int)e->op) {
  case OP_ADD: case OP_SUB: case OP_MUL: // exact modulo the width of an index
    if (e->type == TYPE_I64)
      return ir_binary(c->arena, e->op, check_as_index(c, e->args[0]), check_as_index(c, e->args[1]));
    break;
  case OP_DIV: case OP_MOD: case OP_MIN: case OP_MAX: { // exact where the operands themselves are
    struct ir_expr *a = check_as_index(c, e->args[0]), *b = check_as_index(c, e->args[1]);
    if (e->type == TYPE_I64 && is_index_leaf(a) && is_index_leaf(b)) return ir_binary(c->arena, e->op, a, b);
    break;
  }
  default: break;
  }
  return ir_cast(c->arena, TYPE_INDEX, e);
}

// --- Accesses ---------------------------------------------------------------------------------------------------------

struct ir_mem *check_tensor(struct checker *c, const struct ast_expr *access) {
  struct symbol *symbol = check_find(c, access->name.text);
  if (!symbol) {
    check_unknown(c, "tensor", access->name.text, access->name.range, true);
    return NULL;
  }
  if (symbol->kind != SYMBOL_TENSOR) {
    diag_error(c->diag, ERROR_NOT_A_VALUE, access->name.range, "'%s' is not a tensor and takes no indices", access->name.text);
    diag_note(c->diag, symbol->range, "declared here");
    return NULL;
  }
  if (symbol->mem->dims.count != access->args.count) {
    diag_error(c->diag, ERROR_RANK, access->range, "'%s' has %u dimension%s and is accessed with %u ind%s", access->name.text,
               symbol->mem->dims.count, symbol->mem->dims.count == 1 ? "" : "s", access->args.count,
               access->args.count == 1 ? "ex" : "ices");
    diag_note(c->diag, symbol->range, "declared here");
    return NULL;
  }
  return symbol->mem;
}

// The condition, or that a loop around has no iteration, where nothing is accessed.
static struct ir_expr *or_nothing_runs(struct checker *c, struct ir_expr *holds) {
  for (uint32_t i = 0; i < c->axes.count; i++) {
    struct scope_axis *axis = c->axes.at[i];
    struct facts plain;
    facts_init(&plain, c->arena);
    struct ir_expr *extent = poly_to_expr(&plain, poly_of(&plain, axis->axis->extent));
    bool depends = !extent;
    for (uint32_t k = 0; k < c->axes.count && !depends; k++)
      depends = ir_mentions(extent, list_at(&c->axes, struct scope_axis, k)->var) || ir_mentions(extent, list_at(&c->axes, struct scope_axis, k)->axis->var);
    if (!depends && ir_is_const(extent) && extent->integer <= 0) return ir_int(c->arena, TYPE_BOOL, 1);
    if (!depends && !ir_is_const(extent)) holds = ir_binary(c->arena, OP_OR, ir_binary(c->arena, OP_LE, extent, ir_int(c->arena, TYPE_I64, 0)), holds);
  }
  return holds;
}

// Proves 0 <= index < dim; where sizes alone decide, makes it a requirement. `is_selected` tells whether a condition of an
// enclosing ?: was needed.
static bool check_bound(struct checker *c, struct ir_expr *index, struct ir_mem *mem, uint32_t d, const struct ast_expr *source,
                        bool *is_selected) {
  struct ir_expr *dim = mem->dims.at[d];
  for (int selected = 0; selected < (c->selected.count ? 2 : 1); selected++) {
    struct facts facts;
    check_facts(c, &facts, selected);
    struct poly low = poly_of(&facts, index);
    struct poly high = poly_sub(&facts, poly_sub(&facts, poly_of(&facts, dim), low), poly_constant(&facts, 1));
    if (prove_nonnegative(&facts, low) && prove_nonnegative(&facts, high)) {
      *is_selected |= selected;
      return true;
    }
  }
  struct facts facts;
  check_facts(c, &facts, true);
  struct poly polys[2];
  polys[0] = poly_of(&facts, index);
  polys[1] = poly_sub(&facts, poly_sub(&facts, poly_of(&facts, dim), polys[0]), poly_constant(&facts, 1));
  struct text spelled = {0};
  ast_print_expr(source, &spelled);
  const char *what = arena_strdup(c->arena, spelled.data ? spelled.data : "");
  text_free(&spelled);
  for (int side = 0; side < 2; side++) {
    if (prove_nonnegative(&facts, polys[side])) continue;
    struct ir_expr *least = poly_minimum_expr(&facts, polys[side]);
    if (!least || ir_is_const(least)) {
      diag_error(c->diag, ERROR_BOUNDS, source->range, "index %u of '%s', %s, %s", d, mem->label, what,
                 side == 0 ? "can be negative" : "can reach the extent");
      if (least && side == 1)
        diag_note(c->diag, (struct range){0}, "it passes the last element by %lld", (long long)-least->integer);
      diag_note(c->diag, mem->range, "'%s' is declared here", mem->label);
      diag_note(c->diag, (struct range){0}, "legal are 0 up to %s, exclusive; a guard `if` or min and max keep an index inside",
                dim->op == OP_VAR ? dim->var->label : ir_is_const(dim) ? arena_printf(c->arena, "%lld", (long long)dim->integer) : "the extent");
      return false;
    }
    struct ir_expr *holds = ir_binary(c->arena, OP_GE, least, ir_int(c->arena, TYPE_I64, 0));
    check_require(c, or_nothing_runs(c, holds), source->range,
                  arena_printf(c->arena, "index %u of '%s', %s, %s for these sizes", d, mem->label, what,
                               side == 0 ? "can be negative" : "can reach the extent"));
  }
  return true;
}

bool check_indices(struct checker *c, const struct ast_expr *access, struct ir_mem *mem, struct list *indices) {
  bool good = true, is_selected = false;
  for (uint32_t d = 0; d < access->args.count; d++) {
    const struct ast_expr *source = access->args.at[d];
    struct ir_expr *index = check_expr(c, source, TYPE_I64);
    if (!index) {
      good = false;
      continue;
    }
    if (!type_is_integer(index->type)) {
      diag_error(c->diag, ERROR_TYPE_MISMATCH, source->range, "an index is an integer, not %s", type_name(index->type));
      good = false;
      continue;
    }
    if (index->type != TYPE_I64 && !holds_all(TYPE_I64, index->type)) {
      diag_error(c->diag, ERROR_TYPE_MISMATCH, source->range, "an index of type u64 must be converted: i64(...)");
      good = false;
      continue;
    }
    index = check_as_index(c, ir_cast(c->arena, TYPE_I64, index));
    if (!check_bound(c, index, mem, d, source, &is_selected)) good = false;
    list_push(c->arena, indices, index);
  }
  if (good && is_selected) { // both arms of ?: are evaluated: the arm not taken reads element 0
    struct ir_expr *taken = ir_int(c->arena, TYPE_BOOL, 1);
    for (uint32_t i = 0; i < c->selected.count; i++) taken = ir_binary(c->arena, OP_AND, taken, c->selected.at[i]);
    for (uint32_t d = 0; d < indices->count; d++) {
      struct ir_expr *dim = mem->dims.at[d];
      indices->at[d] = ir_select(c->arena, taken, indices->at[d], ir_int(c->arena, TYPE_INDEX, 0));
      check_require(c, or_nothing_runs(c, ir_binary(c->arena, OP_GE, dim, ir_int(c->arena, TYPE_I64, 1))), access->range,
                    arena_printf(c->arena, "'%s' is read under ?: and is empty", mem->label));
    }
  }
  return good;
}

static struct ir_expr *check_access(struct checker *c, const struct ast_expr *e) {
  struct ir_mem *mem = check_tensor(c, e);
  struct list indices = {0};
  if (!mem || !check_indices(c, e, mem, &indices)) return NULL;
  struct ir_expr *load = ir_load(c->arena, mem, &indices);
  load->range = e->range;
  if (mem->is_output) {
    bool is_target = false;
    for (uint32_t i = 0; c->targets && i < c->targets->count; i++) is_target |= ir_equal(c->targets->at[i], load);
    if (!is_target) {
      diag_error(c->diag, ERROR_READ_OUTPUT, e->range, "output '%s' is read at an element that this statement does not write", mem->label);
      diag_note(c->diag, (struct range){0}, "an output may be read only at the element that the same statement writes; keep other values in a `let`");
      return NULL;
    }
  }
  return at(ir_cast(c->arena, type_computed(mem->type), load), e->range);
}

// --- Operators --------------------------------------------------------------------------------------------------------

static bool is_moved(struct checker *c, const struct ir_expr *e, struct range range) {
  if (type_class_of(e->type) != CLASS_MOVED) return false;
  diag_error(c->diag, ERROR_MOVE_ONLY, range, "a value of type %s can only be moved: read and stored as it is", type_name(e->type));
  return true;
}

// Two operands of one type: literals take the other's, sizes and axes become floats beside one.
static bool check_pair(struct checker *c, const struct ast_expr *x, const struct ast_expr *y, int want, struct ir_expr **a,
                       struct ir_expr **b, struct range range) {
  bool x_literal = is_literal(x), y_literal = is_literal(y);
  if (x_literal && !y_literal) {
    *b = check_expr(c, y, want);
    if (!*b || is_moved(c, *b, y->range)) return false;
    int type = has_decimal(x) && is_size_like(c, y) ? (want == TYPE_F64 ? TYPE_F64 : TYPE_F32) : (int)(*b)->type;
    *a = check_expr(c, x, type);
  } else if (y_literal && !x_literal) {
    *a = check_expr(c, x, want);
    if (!*a || is_moved(c, *a, x->range)) return false;
    int type = has_decimal(y) && is_size_like(c, x) ? (want == TYPE_F64 ? TYPE_F64 : TYPE_F32) : (int)(*a)->type;
    *b = check_expr(c, y, type);
  } else {
    if (x_literal && want == NO_TYPE && (has_decimal(x) || has_decimal(y))) want = TYPE_F32;
    *a = check_expr(c, x, want);
    *b = check_expr(c, y, want);
  }
  if (!*a || !*b) return false;
  if (is_moved(c, *a, x->range) || is_moved(c, *b, y->range)) return false;
  if ((*a)->type == (*b)->type) return true;
  if (type_is_float((*a)->type) && is_size_like(c, y)) {
    *b = ir_cast(c->arena, (*a)->type, *b);
    return true;
  }
  if (type_is_float((*b)->type) && is_size_like(c, x)) {
    *a = ir_cast(c->arena, (*b)->type, *a);
    return true;
  }
  diag_error(c->diag, ERROR_TYPE_MISMATCH, range, "operands have types %s and %s; there is no promotion", type_name((*a)->type),
             type_name((*b)->type));
  diag_note(c->diag, (struct range){0}, "convert one of them: %s(...) or %s(...)", type_name((*a)->type), type_name((*b)->type));
  return false;
}

static const char *class_words(const char *properties) {
  if (strcmp(properties, "i") == 0) return "integers";
  if (strcmp(properties, "f") == 0) return "floats";
  if (strcmp(properties, "bi") == 0) return "integers and bools";
  return "integers and floats";
}

static bool takes(enum op op, enum type type) {
  char letter = type == TYPE_BOOL ? 'b' : type_is_integer(type) ? 'i' : type_is_float(type) ? 'f' : '?';
  return strchr(op_table[op].properties, letter) != NULL;
}

static struct ir_expr *operation(struct checker *c, enum op op, struct ir_expr **args, uint32_t count, const char *spelling, struct range range) {
  if (!takes(op, args[0]->type)) {
    diag_error(c->diag, ERROR_TYPE_MISMATCH, range, "'%s' takes %s, not %s", spelling, class_words(op_table[op].properties),
               type_name(args[0]->type));
    return NULL;
  }
  enum op_rule rule = op_table[op].rule;
  enum type type = rule == RULE_COMPARE || rule == RULE_PREDICATE ? TYPE_BOOL : args[0]->type;
  struct ir_expr *e = ir_make(c->arena, op, type, args, count);
  if (e->op == op && e->count) e->range = range;
  return e;
}

struct ir_expr *check_condition(struct checker *c, const struct ast_expr *e) {
  struct ir_expr *condition = check_expr(c, e, TYPE_BOOL);
  if (!condition) return NULL;
  if (condition->type == TYPE_BOOL) return condition;
  diag_error(c->diag, ERROR_TYPE_MISMATCH, e->range, "a condition is a bool, not %s", type_name(condition->type));
  diag_note(c->diag, (struct range){0}, "compare it: ... != 0");
  return NULL;
}

// A subexpression that is used only where `condition` holds.
static struct ir_expr *check_under(struct checker *c, struct ir_expr *condition, const struct ast_expr *e, int want) {
  list_push(c->arena, &c->selected, condition);
  struct ir_expr *result = want == TYPE_BOOL ? check_condition(c, e) : check_expr(c, e, want);
  c->selected.count--;
  return result;
}

static struct ir_expr *check_binary(struct checker *c, const struct ast_expr *e, int want) {
  const struct ast_expr *x = e->args.at[0], *y = e->args.at[1];
  static const enum op ops[] = {
      [AST_EQ] = OP_EQ, [AST_NE] = OP_NE, [AST_LT] = OP_LT, [AST_LE] = OP_LE, [AST_GT] = OP_GT, [AST_GE] = OP_GE,
      [AST_BIT_OR] = OP_OR, [AST_BIT_XOR] = OP_XOR, [AST_BIT_AND] = OP_AND, [AST_SHL] = OP_SHL, [AST_SHR] = OP_SHR,
      [AST_ADD] = OP_ADD, [AST_SUB] = OP_SUB, [AST_MUL] = OP_MUL, [AST_DIV] = OP_DIV, [AST_MOD] = OP_MOD,
  };
  if (e->binary == AST_AND_THEN || e->binary == AST_OR_ELSE) {
    struct ir_expr *a = check_condition(c, x);
    if (!a) return NULL;
    bool is_and = e->binary == AST_AND_THEN;
    struct ir_expr *b = check_under(c, is_and ? a : ir_unary(c->arena, OP_NOT, a), y, TYPE_BOOL);
    return b ? at(ir_binary(c->arena, is_and ? OP_AND : OP_OR, a, b), e->range) : NULL;
  }
  bool compares = e->binary <= AST_GE;
  struct ir_expr *args[2];
  if (!check_pair(c, x, y, compares ? NO_TYPE : want, &args[0], &args[1], e->range)) return NULL;
  return operation(c, ops[e->binary], args, 2, ast_binary_spelling(e->binary), e->range);
}

static struct ir_expr *check_unary(struct checker *c, const struct ast_expr *e, int want) {
  const struct ast_expr *x = e->args.at[0];
  if (e->unary == AST_NEG && x->kind == AST_INT)
    return integer_literal(c, x->integer, true, want == NO_TYPE || want == TYPE_BOOL ? TYPE_I64 : (enum type)want, e->range);
  if (e->unary == AST_NOT) {
    struct ir_expr *a = check_condition(c, x);
    return a ? ir_unary(c->arena, OP_NOT, a) : NULL;
  }
  struct ir_expr *a = check_expr(c, x, want);
  if (!a || is_moved(c, a, x->range)) return NULL;
  if (e->unary == AST_BIT_NOT && a->type == TYPE_BOOL) {
    diag_error(c->diag, ERROR_TYPE_MISMATCH, e->range, "'~' takes integers, not bool; write '!'");
    return NULL;
  }
  return operation(c, e->unary == AST_NEG ? OP_NEG : OP_NOT, &a, 1, ast_unary_spelling(e->unary), e->range);
}

static struct ir_expr *check_ternary(struct checker *c, const struct ast_expr *e, int want) {
  struct ir_expr *condition = check_condition(c, e->args.at[0]);
  if (!condition) return NULL;
  const struct ast_expr *x = e->args.at[1], *y = e->args.at[2];
  struct ir_expr *not = ir_unary(c->arena, OP_NOT, condition), *a, *b;
  if (is_literal(x) && !is_literal(y)) {
    b = check_under(c, not, y, want);
    a = b ? check_expr(c, x, (int)b->type) : NULL;
  } else {
    a = check_under(c, condition, x, want);
    b = a ? check_under(c, not, y, is_literal(y) ? (int)a->type : want) : NULL;
  }
  if (!a || !b) return NULL;
  if (a->type != b->type) {
    if (type_is_float(a->type) && is_size_like(c, y)) b = ir_cast(c->arena, a->type, b);
    else if (type_is_float(b->type) && is_size_like(c, x)) a = ir_cast(c->arena, b->type, a);
    else {
      diag_error(c->diag, ERROR_TYPE_MISMATCH, e->range, "the arms of ?: have types %s and %s; there is no promotion", type_name(a->type), type_name(b->type));
      diag_note(c->diag, (struct range){0}, "convert one of them: %s(...) or %s(...)", type_name(a->type), type_name(b->type));
      return NULL;
    }
  }
  if (is_moved(c, a, x->range)) return NULL;
  return at(ir_select(c->arena, condition, a, b), e->range);
}

// --- Calls ------------------------------------------------------------------------------------------------------------

static const struct function {
  const char *name;
  enum op op;
  uint32_t count;
} functions[] = {
    {"exp", OP_EXP, 1},     {"exp2", OP_EXP2, 1}, {"log", OP_LOG, 1},     {"log2", OP_LOG2, 1},   {"sqrt", OP_SQRT, 1},
    {"rsqrt", OP_RSQRT, 1}, {"abs", OP_ABS, 1},   {"sin", OP_SIN, 1},     {"cos", OP_COS, 1},     {"tanh", OP_TANH, 1},
    {"erf", OP_ERF, 1},     {"pow", OP_POW, 2},   {"fma", OP_FMA, 3},     {"floor", OP_FLOOR, 1}, {"ceil", OP_CEIL, 1},
    {"round", OP_ROUND, 1}, {"trunc", OP_TRUNC, 1}, {"min", OP_MIN, 2},   {"max", OP_MAX, 2},     {"fmin", OP_FMIN, 2},
    {"fmax", OP_FMAX, 2},   {"isnan", OP_ISNAN, 1}, {"isinf", OP_ISINF, 1},
};

static struct ir_expr *check_conversion(struct checker *c, const struct ast_expr *e, enum type type) {
  if (e->args.count != 1) {
    diag_error(c->diag, ERROR_ARGUMENTS, e->range, "a conversion takes one value, not %u", e->args.count);
    return NULL;
  }
  const struct ast_expr *source = e->args.at[0];
  struct ir_expr *a = check_expr(c, source, is_literal(source) && !(has_decimal(source) && type_is_integer(type))
                                                ? (int)type_computed(type) : NO_TYPE);
  if (!a) return NULL;
  if (type_class_of(type) == CLASS_MOVED || type_class_of(a->type) == CLASS_MOVED) {
    diag_error(c->diag, ERROR_MOVE_ONLY, e->range, "there is no conversion from %s to %s: such types can only be moved",
               type_name(a->type), type_name(type));
    return NULL;
  }
  if (type_class_of(type) == CLASS_STORAGE && !type_is_float(a->type)) a = ir_cast(c->arena, TYPE_F32, a);
  struct ir_expr *converted = ir_cast(c->arena, type, a);
  return at(ir_cast(c->arena, type_computed(type), converted), e->range);
}

static struct ir_expr *check_call(struct checker *c, const struct ast_expr *e, int want) {
  for (uint32_t i = 0; i < c->types.count; i++) {
    struct type_binding *binding = c->types.at[i];
    if (strcmp(binding->name, e->name.text) == 0) return check_conversion(c, e, binding->type);
  }
  enum type type;
  if (type_parse(e->name.text, &type)) return check_conversion(c, e, type);
  const struct function *function = NULL;
  for (uint32_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (strcmp(functions[i].name, e->name.text) == 0) function = &functions[i];
  if (!function) {
    diag_error(c->diag, ERROR_UNKNOWN_NAME, e->name.range, "unknown function '%s'", e->name.text);
    struct suggestion near = suggest(e->name.text);
    for (uint32_t i = 0; i < sizeof functions / sizeof *functions; i++) suggest_consider(&near, functions[i].name);
    if (near.best) diag_note(c->diag, (struct range){0}, "did you mean '%s'?", near.best);
    return NULL;
  }
  if (e->args.count != function->count) {
    diag_error(c->diag, ERROR_ARGUMENTS, e->range, "'%s' takes %u argument%s, not %u", function->name, function->count,
               function->count == 1 ? "" : "s", e->args.count);
    return NULL;
  }
  struct ir_expr *args[3];
  int place = op_table[function->op].rule == RULE_PREDICATE ? NO_TYPE : want;
  if (function->count == 1) {
    args[0] = check_expr(c, e->args.at[0], place == NO_TYPE && is_literal(e->args.at[0]) ? TYPE_F32 : place);
    if (!args[0] || is_moved(c, args[0], e->range)) return NULL;
  } else {
    if (!check_pair(c, e->args.at[0], e->args.at[1], place, &args[0], &args[1], e->range)) return NULL;
    if (function->count == 3) {
      args[2] = check_expr(c, e->args.at[2], (int)args[0]->type);
      if (!args[2]) return NULL;
      args[2] = check_convert(c, args[2], args[0]->type, e->range, "the third operand of 'fma'");
      if (!args[2]) return NULL;
    }
  }
  return operation(c, function->op, args, function->count, function->name, e->range);
}

// --- Names and the rest ---------------------------------------------------------------------------------------------

static struct ir_expr *check_name(struct checker *c, const struct ast_expr *e) {
  struct symbol *symbol = check_find(c, e->name.text);
  if (!symbol) {
    check_unknown(c, "name", e->name.text, e->range, false);
    return NULL;
  }
  if (symbol->kind == SYMBOL_TENSOR) {
    diag_error(c->diag, ERROR_NOT_A_VALUE, e->range, "'%s' is a tensor: give its indices, '%s[...]'", symbol->name, symbol->name);
    return NULL;
  }
  if (symbol->kind == SYMBOL_STATE) {
    diag_error(c->diag, ERROR_NOT_A_VALUE, e->range, "'%s' is a tuple: name a component, '%s.%s'", symbol->name, symbol->name,
               symbol->field_names.count ? list_at(&symbol->field_names, char, 0) : "x");
    return NULL;
  }
  if (!symbol->value) return NULL; // its declaration was refused
  return symbol->value;
}

static struct ir_expr *check_field(struct checker *c, const struct ast_expr *e) {
  const struct ast_expr *of = e->args.at[0];
  struct symbol *symbol = of->kind == AST_NAME ? check_find(c, of->name.text) : NULL;
  if (!symbol || symbol->kind != SYMBOL_STATE) {
    diag_error(c->diag, ERROR_NOT_A_VALUE, e->range, "only the tuples of a reducer's combine and update have components");
    return NULL;
  }
  for (uint32_t i = 0; i < symbol->field_names.count; i++)
    if (strcmp(symbol->field_names.at[i], e->name.text) == 0) return symbol->fields.at[i];
  diag_error(c->diag, ERROR_UNKNOWN_NAME, e->name.range, "'%s' has no component '%s'", symbol->name, e->name.text);
  return NULL;
}

struct ir_expr *check_expr(struct checker *c, const struct ast_expr *e, int want) {
  struct list values = {0};
  enum type single;
  switch (e->kind) {
  case AST_INT:
    return integer_literal(c, e->integer, false, want == NO_TYPE || want == TYPE_BOOL ? TYPE_I64 : (enum type)want, e->range);
  case AST_FLOAT:
    if (want != NO_TYPE && want != TYPE_BOOL && !type_is_float((enum type)want)) {
      diag_error(c->diag, ERROR_LITERAL, e->range, "a decimal literal stands where a value of type %s is needed", type_name((enum type)want));
      return NULL;
    }
    return at(ir_float(c->arena, want == TYPE_F64 ? TYPE_F64 : TYPE_F32, e->number), e->range);
  case AST_NAME: return check_name(c, e);
  case AST_ACCESS: return check_access(c, e);
  case AST_CALL: return check_call(c, e, want);
  case AST_FIELD: return check_field(c, e);
  case AST_UNARY: return check_unary(c, e, want);
  case AST_BINARY: return check_binary(c, e, want);
  case AST_TERNARY: return check_ternary(c, e, want);
  case AST_TUPLE:
    diag_error(c->diag, ERROR_NOT_A_VALUE, e->range, "a tuple of %u stands where one value is needed", e->args.count);
    return NULL;
  case AST_REDUCE: case AST_BLOCK:
    single = want == NO_TYPE ? TYPE_F32 : (enum type)want;
    if (!check_values(c, e, want == NO_TYPE ? NULL : &single, want == NO_TYPE ? 0 : 1, &values)) return NULL;
    if (values.count != 1) {
      diag_error(c->diag, ERROR_NOT_A_VALUE, e->range, "a tuple of %u stands where one value is needed", values.count);
      return NULL;
    }
    return values.at[0];
  }
  return NULL;
}

bool check_values(struct checker *c, const struct ast_expr *e, const enum type *want, uint32_t wanted, struct list *values) {
  if (e->kind == AST_REDUCE) return check_reduce(c, e, want, wanted, values);
  if (e->kind == AST_TUPLE) {
    for (uint32_t i = 0; i < e->args.count; i++) {
      struct ir_expr *value = check_expr(c, e->args.at[i], i < wanted ? (int)want[i] : NO_TYPE);
      if (!value) return false;
      list_push(c->arena, values, value);
    }
    return true;
  }
  if (e->kind == AST_BLOCK) {
    struct scope_mark mark = check_enter(c);
    bool good = true;
    for (uint32_t i = 0; i < e->lets.count && good; i++) {
      struct ast_stmt let = {.kind = AST_LET, .let = e->lets.at[i]};
      struct list one = {0};
      list_push(c->arena, &one, &let);
      good = check_statements(c, &one);
    }
    good = good && check_values(c, e->args.at[0], want, wanted, values);
    check_leave(c, mark);
    return good;
  }
  struct ir_expr *value = check_expr(c, e, wanted ? (int)want[0] : NO_TYPE);
  if (!value) return false;
  list_push(c->arena, values, value);
  return true;
}

#include "compiler/ast.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// How tightly an expression binds, from its operators: see AST_BINARY_OPERATORS.
enum { BINDS_TERNARY = 0, BINDS_UNARY = 11, BINDS_REDUCE = 12, BINDS_POSTFIX = 13 };

static void print_expr(const struct ast_expr *expr, int least, struct text *out);

const char *ast_assign_spelling(enum ast_assign_op operation) {
  static const char *const spellings[] = {
#define X(name, spelling) spelling,
      AST_ASSIGN_OPERATORS(X)
#undef X
  };
  return spellings[operation];
}

const char *ast_binary_spelling(enum ast_binary_op op) {
  static const char *const spellings[] = {
#define X(name, spelling, precedence) spelling,
      AST_BINARY_OPERATORS(X)
#undef X
  };
  return spellings[op];
}

const char *ast_unary_spelling(enum ast_unary_op op) {
  static const char *const spellings[] = {
#define X(name, spelling) spelling,
      AST_UNARY_OPERATORS(X)
#undef X
  };
  return spellings[op];
}

static int binary_precedence(enum ast_binary_op op) {
  static const int precedences[] = {
#define X(name, spelling, precedence) precedence,
      AST_BINARY_OPERATORS(X)
#undef X
  };
  return precedences[op];
}

static int expr_binding(const struct ast_expr *expr) {
  switch (expr->kind) {
  case AST_TERNARY: return BINDS_TERNARY;
  case AST_BINARY: return binary_precedence(expr->binary);
  case AST_UNARY: return BINDS_UNARY;
  case AST_REDUCE: return BINDS_REDUCE;
  case AST_INT:
  case AST_FLOAT:
  case AST_NAME:
  case AST_ACCESS:
  case AST_CALL:
  case AST_FIELD:
  case AST_TUPLE:
  case AST_BLOCK: return BINDS_POSTFIX;
  }
  return BINDS_POSTFIX;
}

// ---- Lists

static void print_exprs(const struct list *exprs, struct text *out) {
  for (uint32_t i = 0; i < exprs->count; i++) {
    if (i) text_puts(out, ", ");
    if (exprs->at[i])
      print_expr(list_at(exprs, struct ast_expr, i), 0, out);
    else
      text_puts(out, "_");
  }
}

static void print_names(const struct list *names, struct text *out) {
  for (uint32_t i = 0; i < names->count; i++)
    text_printf(out, "%s%s", i ? ", " : "", list_at(names, struct ast_name, i)->text);
}

static void print_axes(const struct list *axes, struct text *out) {
  for (uint32_t i = 0; i < axes->count; i++) {
    const struct ast_axis *axis = list_at(axes, struct ast_axis, i);
    text_printf(out, "%s%s in ", i ? ", " : "", axis->name.text);
    if (axis->lo) {
      print_expr(axis->lo, 0, out);
      text_puts(out, "..");
    }
    print_expr(axis->hi, 0, out);
  }
}

static void print_let(const struct ast_let *let, struct text *out) {
  text_puts(out, let->is_tuple ? "let (" : "let ");
  print_names(&let->names, out);
  text_puts(out, let->is_tuple ? ") = " : " = ");
  print_expr(let->value, 0, out);
  text_puts(out, ";");
}

// ---- Expressions

// As it was written; without a spelling, the shortest decimal that reads back as the same number.
static void print_float(const struct ast_expr *expr, struct text *out) {
  if (expr->name.text) {
    text_puts(out, expr->name.text);
    return;
  }
  char digits[32];
  for (int precision = 0; precision < 17; precision++) { // d.ddde+xx has a digit before the point by itself
    snprintf(digits, sizeof digits, "%.*e", precision, expr->number);
    if (strtod(digits, NULL) == expr->number) break;
  }
  for (char *c = digits; *c; c++) // the locale's point
    if (!strchr("0123456789e+-", *c)) *c = '.';
  text_puts(out, digits);
}

static void print_block(const struct ast_expr *block, struct text *out) {
  text_puts(out, "{ ");
  for (uint32_t i = 0; i < block->lets.count; i++) {
    print_let(list_at(&block->lets, struct ast_let, i), out);
    text_puts(out, " ");
  }
  print_expr(list_at(&block->args, struct ast_expr, 0), 0, out);
  text_puts(out, " }");
}

static void print_reduce(const struct ast_expr *expr, struct text *out) {
  text_printf(out, "%s(", expr->name.text);
  print_axes(&expr->axes, out);
  if (expr->guard) {
    text_puts(out, " if ");
    print_expr(expr->guard, 0, out);
  }
  if (expr->init) {
    text_puts(out, "; init = ");
    print_expr(expr->init, 0, out);
  }
  text_puts(out, ") ");
  print_expr(list_at(&expr->args, struct ast_expr, 0), BINDS_REDUCE, out);
}

static void print_naked(const struct ast_expr *expr, struct text *out) {
#define ARG(i) list_at(&expr->args, struct ast_expr, i)
  switch (expr->kind) {
  case AST_INT: text_printf(out, "%llu", (unsigned long long)expr->integer); break;
  case AST_FLOAT: print_float(expr, out); break;
  case AST_NAME: text_puts(out, expr->name.text); break;
  case AST_ACCESS:
    text_printf(out, "%s[", expr->name.text);
    print_exprs(&expr->args, out);
    text_puts(out, "]");
    break;
  case AST_CALL:
    text_printf(out, "%s(", expr->name.text);
    print_exprs(&expr->args, out);
    text_puts(out, ")");
    break;
  case AST_FIELD:
    if (ARG(0)->kind == AST_INT || ARG(0)->kind == AST_FLOAT) { // `1.x` is no number and no field
      text_puts(out, "(");
      print_naked(ARG(0), out);
      text_puts(out, ")");
    } else {
      print_expr(ARG(0), BINDS_POSTFIX, out);
    }
    text_printf(out, ".%s", expr->name.text);
    break;
  case AST_UNARY:
    text_puts(out, ast_unary_spelling(expr->unary));
    print_expr(ARG(0), BINDS_UNARY, out);
    break;
  case AST_BINARY: {
    int binding = binary_precedence(expr->binary);
    print_expr(ARG(0), binding, out);
    text_printf(out, " %s ", ast_binary_spelling(expr->binary));
    print_expr(ARG(1), binding + 1, out);
    break;
  }
  case AST_TERNARY:
    print_expr(ARG(0), BINDS_TERNARY + 1, out);
    text_puts(out, " ? ");
    print_expr(ARG(1), 0, out);
    text_puts(out, " : ");
    print_expr(ARG(2), 0, out);
    break;
  case AST_TUPLE:
    text_puts(out, "(");
    print_exprs(&expr->args, out);
    text_puts(out, ")");
    break;
  case AST_REDUCE: print_reduce(expr, out); break;
  case AST_BLOCK: print_block(expr, out); break;
  }
#undef ARG
}

// In parentheses where `expr` binds less than `least`.
static void print_expr(const struct ast_expr *expr, int least, struct text *out) {
  bool enclosed = expr_binding(expr) < least;
  if (enclosed) text_puts(out, "(");
  print_naked(expr, out);
  if (enclosed) text_puts(out, ")");
}

void ast_print_expr(const struct ast_expr *expr, struct text *out) {
  print_expr(expr, 0, out);
}

// ---- Statements

static void print_indent(int level, struct text *out) {
  for (int i = 0; i < level; i++) text_puts(out, "  ");
}

static void print_assign(const struct ast_stmt *stmt, struct text *out) {
  if (stmt->is_tuple) text_puts(out, "(");
  print_exprs(&stmt->targets, out);
  text_printf(out, "%s %s ", stmt->is_tuple ? ")" : "", ast_assign_spelling(stmt->operation));
  print_expr(stmt->value, 0, out);
  text_puts(out, ";");
}

static void print_stmts(const struct list *stmts, int level, struct text *out);

static void print_body(const struct list *stmts, int level, struct text *out) {
  text_puts(out, "{\n");
  print_stmts(stmts, level + 1, out);
  print_indent(level, out);
  text_puts(out, "}");
}

static void print_if(const struct ast_stmt *stmt, int level, struct text *out) {
  text_puts(out, "if ");
  print_expr(stmt->condition, 0, out);
  text_puts(out, " ");
  print_body(&stmt->body, level, out);
  if (!stmt->otherwise.count) return;
  text_puts(out, " else ");
  const struct ast_stmt *first = list_at(&stmt->otherwise, struct ast_stmt, 0);
  if (stmt->otherwise.count == 1 && first->kind == AST_IF)
    print_if(first, level, out);
  else
    print_body(&stmt->otherwise, level, out);
}

static void print_stmt(const struct ast_stmt *stmt, int level, struct text *out) {
  print_indent(level, out);
  switch (stmt->kind) {
  case AST_FOR:
    text_puts(out, "for ");
    print_axes(&stmt->axes, out);
    text_puts(out, " ");
    print_body(&stmt->body, level, out);
    break;
  case AST_IF: print_if(stmt, level, out); break;
  case AST_LET: print_let(stmt->let, out); break;
  case AST_ASSIGN: print_assign(stmt, out); break;
  }
  text_puts(out, "\n");
}

static void print_stmts(const struct list *stmts, int level, struct text *out) {
  for (uint32_t i = 0; i < stmts->count; i++) print_stmt(list_at(stmts, struct ast_stmt, i), level, out);
}

// ---- Items

static void print_type_params(const struct list *names, struct text *out) {
  if (!names->count) return;
  text_puts(out, "<");
  print_names(names, out);
  text_puts(out, ">");
}

static void print_params(const struct list *params, struct text *out) {
  text_puts(out, "(");
  for (uint32_t i = 0; i < params->count; i++) {
    const struct ast_param *param = list_at(params, struct ast_param, i);
    text_printf(out, "%s%s: %s", i ? ", " : "", param->name.text, param->type.text);
    if (!param->is_tensor) continue;
    text_puts(out, "[");
    print_exprs(&param->dims, out);
    text_puts(out, "]");
    if (param->is_strided) text_puts(out, " strided");
    if (!param->has_strides) continue;
    text_puts(out, "(");
    print_exprs(&param->strides, out);
    text_puts(out, ")");
  }
  text_puts(out, ")");
}

static void print_kernel(const struct ast_kernel *kernel, struct text *out) {
  text_printf(out, "kernel %s", kernel->name.text);
  print_type_params(&kernel->type_params, out);
  print_params(&kernel->inputs, out);
  text_puts(out, " -> ");
  print_params(&kernel->outputs, out);
  text_puts(out, " ");
  print_body(&kernel->body, 0, out);
  text_puts(out, "\n");
}

// `combine(a, b) { ... }`: a line for each let and one for the value.
static void print_reducer_part(const char *part, const struct list *params, const struct ast_expr *block,
                               struct text *out) {
  text_printf(out, "  %s(", part);
  print_names(params, out);
  text_puts(out, ") {\n");
  for (uint32_t i = 0; i < block->lets.count; i++) {
    text_puts(out, "    ");
    print_let(list_at(&block->lets, struct ast_let, i), out);
    text_puts(out, "\n");
  }
  text_puts(out, "    ");
  print_expr(list_at(&block->args, struct ast_expr, 0), 0, out);
  text_puts(out, "\n  }\n");
}

static void print_reducer(const struct ast_reducer *reducer, struct text *out) {
  text_printf(out, "%sreducer %s", reducer->is_ordered ? "ordered " : "", reducer->name.text);
  print_type_params(&reducer->type_params, out);
  text_puts(out, "(");
  for (uint32_t i = 0; i < reducer->components.count; i++) {
    const struct ast_component *component = list_at(&reducer->components, struct ast_component, i);
    text_printf(out, "%s%s: %s", i ? ", " : "", component->name.text, component->type.text);
  }
  text_puts(out, ") {\n  identity ");
  print_expr(reducer->identity, 0, out);
  text_puts(out, ";\n");
  print_reducer_part("combine", &reducer->combine_params, reducer->combine, out);
  if (reducer->update) print_reducer_part("update", &reducer->update_params, reducer->update, out);
  text_puts(out, "}\n");
}

static void print_ref(const struct ast_ref *ref, struct text *out) {
  text_printf(out, "%s%s%s", ref->stage.text ? ref->stage.text : "", ref->stage.text ? "." : "",
              ref->axis.text);
}

static void print_refs(const struct list *refs, struct text *out) {
  for (uint32_t i = 0; i < refs->count; i++) {
    if (i) text_puts(out, ", ");
    print_ref(list_at(refs, struct ast_ref, i), out);
  }
}

static void print_option(const char *word, const struct ast_expr *value, struct text *out) {
  if (!value) return;
  text_printf(out, " %s ", word);
  print_expr(value, 0, out);
}

static void print_arrow(const struct list *names, struct text *out) {
  text_puts(out, " -> ");
  print_names(names, out);
}

static void print_stage(const struct ast_directive *stage, struct text *out) {
  text_printf(out, "%s at ", stage->tensor.text);
  print_ref(&stage->at, out);
  text_printf(out, " in %s", stage->word.text);
  if (stage->alias.text) text_printf(out, " as %s", stage->alias.text);
  print_option("unit", stage->unit, out);
  if (stage->along.axis.text) {
    text_puts(out, " along ");
    print_ref(&stage->along, out);
  }
  print_option("along", stage->phase, out);
  print_option("pad", stage->pad, out);
  if (stage->pad_along.axis.text) {
    text_puts(out, " along ");
    print_ref(&stage->pad_along, out);
  }
  if (stage->swizzle.count) {
    text_puts(out, " swizzle ");
    print_exprs(&stage->swizzle, out);
  }
  print_option("depth", stage->depth, out);
  if (stage->by.text) text_printf(out, " by %s", stage->by.text);
}

static void print_tile(const struct ast_directive *tile, struct text *out) {
  for (uint32_t i = 0; i < tile->refs.count; i++) {
    if (i) text_puts(out, ", ");
    print_ref(list_at(&tile->refs, struct ast_ref, i), out);
    print_option("by", list_at(&tile->values, struct ast_expr, i), out);
  }
  print_arrow(&tile->names, out);
}

static const char *directive_word(enum ast_directive_kind kind) {
  switch (kind) {
  case AST_SPLIT: return "split";
  case AST_FUSE: return "fuse";
  case AST_TILE: return "tile";
  case AST_REORDER: return "reorder";
  case AST_BIND: return "bind";
  case AST_UNROLL: return "unroll";
  case AST_VECTORIZE: return "vectorize";
  case AST_STAGE: return "stage";
  case AST_CACHE: return "cache";
  case AST_BLOCKS: return "blocks";
  case AST_JOIN: return "join";
  case AST_ALLREDUCE: return "allreduce";
  case AST_COMBINE: return "combine";
  }
  return "";
}

void ast_print_directive(const struct ast_directive *directive, struct text *out) {
  text_printf(out, "%s ", directive_word(directive->kind));
  switch (directive->kind) {
  case AST_SPLIT:
    print_refs(&directive->refs, out);
    print_option(directive->is_into ? "into" : "by", directive->value, out);
    if (directive->tensor.text) text_printf(out, " along %s", directive->tensor.text);
    print_arrow(&directive->names, out);
    break;
  case AST_FUSE:
    print_refs(&directive->refs, out);
    print_arrow(&directive->names, out);
    break;
  case AST_TILE: print_tile(directive, out); break;
  case AST_REORDER:
  case AST_VECTORIZE: print_refs(&directive->refs, out); break;
  case AST_BIND:
    print_refs(&directive->refs, out);
    text_printf(out, " -> %s.%c", directive->word.text, directive->dimension);
    break;
  case AST_UNROLL:
    print_refs(&directive->refs, out);
    print_option("by", directive->value, out);
    break;
  case AST_STAGE: print_stage(directive, out); break;
  case AST_BLOCKS: print_expr(directive->value, 0, out); break;
  case AST_JOIN: print_names(&directive->names, out); break;
  case AST_CACHE:
    print_names(&directive->names, out);
    text_printf(out, " by %s", directive->word.text);
    break;
  case AST_ALLREDUCE:
  case AST_COMBINE:
    print_refs(&directive->refs, out);
    text_printf(out, " by %s", directive->word.text);
    break;
  }
  text_puts(out, ";");
}

static void print_schedule(const struct ast_schedule *schedule, struct text *out) {
  text_printf(out, "schedule %s", schedule->kernel.text);
  if (schedule->name.text) text_printf(out, " as %s", schedule->name.text);
  print_option("when", schedule->when, out);
  text_puts(out, " {\n");
  for (uint32_t i = 0; i < schedule->directives.count; i++) {
    print_indent(1, out);
    ast_print_directive(list_at(&schedule->directives, struct ast_directive, i), out);
    text_puts(out, "\n");
  }
  text_puts(out, "}\n");
}

// Whether an item at `a` stands before one at `b`.
static bool comes_before(const struct range *a, const struct range *b) {
  if (a->file != b->file) return a->file < b->file;
  if (a->line != b->line) return a->line < b->line;
  return a->column < b->column;
}

// In the order of the source; reducers, kernels, schedules where there is none.
void ast_print(const struct ast_file *ast, struct text *out) {
  uint32_t k = 0, r = 0, s = 0;
  for (;;) {
    const struct ast_reducer *reducer = r < ast->reducers.count ? ast->reducers.at[r] : NULL;
    const struct ast_kernel *kernel = k < ast->kernels.count ? ast->kernels.at[k] : NULL;
    const struct ast_schedule *schedule = s < ast->schedules.count ? ast->schedules.at[s] : NULL;
    const struct range *first = NULL;
    if (reducer) first = &reducer->range;
    if (kernel && (!first || comes_before(&kernel->range, first))) first = &kernel->range;
    if (schedule && (!first || comes_before(&schedule->range, first))) first = &schedule->range;
    if (!first) return;
    if (k + r + s > 0) text_puts(out, "\n");
    if (reducer && first == &reducer->range) {
      print_reducer(reducer, out);
      r++;
    } else if (kernel && first == &kernel->range) {
      print_kernel(kernel, out);
      k++;
    } else {
      print_schedule(schedule, out);
      s++;
    }
  }
}

#include "compiler/ast_build.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void *copy(struct diag *diag, const void *node, size_t bytes) {
  void *result = arena_alloc(diag->arena, bytes);
  memcpy(result, node, bytes);
  return result;
}

struct list ast_list(struct diag *diag, void *item) {
  struct list list = {0};
  return ast_list_with(diag, list, item);
}

struct list ast_list_with(struct diag *diag, struct list list, void *item) {
  list_push(diag->arena, &list, item);
  return list;
}

static uint32_t max_depth(uint32_t depth, const struct ast_expr *expr) {
  return expr && expr->depth > depth ? expr->depth : depth;
}

static uint32_t max_depth_of_exprs(uint32_t depth, const struct list *exprs) {
  for (uint32_t i = 0; i < exprs->count; i++) depth = max_depth(depth, list_at(exprs, struct ast_expr, i));
  return depth;
}

static uint32_t max_depth_of_axes(uint32_t depth, const struct list *axes) {
  for (uint32_t i = 0; i < axes->count; i++) {
    const struct ast_axis *axis = list_at(axes, struct ast_axis, i);
    depth = max_depth(max_depth(depth, axis->lo), axis->hi);
  }
  return depth;
}

static uint32_t max_depth_of_stmts(uint32_t depth, const struct list *stmts) {
  for (uint32_t i = 0; i < stmts->count; i++) {
    uint32_t other = list_at(stmts, struct ast_stmt, i)->depth;
    if (other > depth) depth = other;
  }
  return depth;
}

// The depth of a node above nodes of depth `below`; reported where it first passes the limit.
static uint32_t depth_above(struct diag *diag, uint32_t below, struct range range, const char *format) {
  if (below < AST_MAX_DEPTH) return below + 1;
  if (below == AST_MAX_DEPTH) diag_error(diag, ERROR_NESTING, range, format, AST_MAX_DEPTH);
  return AST_MAX_DEPTH + 1;
}

struct ast_expr *ast_make_expr(struct diag *diag, const struct ast_expr *node) {
  uint32_t depth = max_depth_of_exprs(0, &node->args);
  depth = max_depth_of_axes(depth, &node->axes);
  depth = max_depth(max_depth(depth, node->guard), node->init);
  for (uint32_t i = 0; i < node->lets.count; i++)
    depth = max_depth(depth, list_at(&node->lets, struct ast_let, i)->value);
  depth = depth_above(diag, depth, node->range,
                      "expression nests deeper than %d levels; name a part of it with 'let'");
  struct ast_expr leaf = {.kind = AST_INT, .range = node->range};
  struct ast_expr *expr = copy(diag, depth <= AST_MAX_DEPTH ? node : &leaf, sizeof *node);
  expr->depth = depth;
  return expr;
}

struct ast_stmt *ast_make_stmt(struct diag *diag, const struct ast_stmt *node) {
  uint32_t depth = max_depth_of_axes(0, &node->axes);
  depth = max_depth(max_depth(depth, node->condition), node->value);
  depth = max_depth_of_exprs(depth, &node->targets);
  if (node->let) depth = max_depth(depth, node->let->value);
  depth = max_depth_of_stmts(max_depth_of_stmts(depth, &node->body), &node->otherwise);
  depth = depth_above(diag, depth, node->range, "statement nests deeper than %d levels");
  struct ast_stmt leaf = {.kind = AST_FOR, .range = node->range};
  struct ast_stmt *stmt = copy(diag, depth <= AST_MAX_DEPTH ? node : &leaf, sizeof *node);
  stmt->depth = depth;
  return stmt;
}

struct ast_expr *ast_make_float(struct diag *diag, struct range range, const char *spelling) {
  struct ast_expr node = {.kind = AST_FLOAT, .range = range, .name = {spelling, range}};
  locale_t c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0); // whatever locale the host program has set
  node.number = c ? strtod_l(spelling, NULL, c) : strtod(spelling, NULL);
  if (c) freelocale(c);
  if (isinf(node.number)) {
    diag_error(diag, ERROR_NUMBER, range, "number is beyond the range of f64");
    node.number = 0;
  }
  return ast_make_expr(diag, &node);
}

struct ast_name *ast_make_name(struct diag *diag, struct range range, const char *text) {
  return copy(diag, &(struct ast_name){text, range}, sizeof(struct ast_name));
}

struct ast_axis *ast_make_axis(struct diag *diag, const struct ast_axis *node) {
  return copy(diag, node, sizeof *node);
}

struct ast_let *ast_make_let(struct diag *diag, const struct ast_let *node) {
  return copy(diag, node, sizeof *node);
}

struct ast_param *ast_make_param(struct diag *diag, const struct ast_param *node) {
  return copy(diag, node, sizeof *node);
}

struct ast_component *ast_make_component(struct diag *diag, const struct ast_component *node) {
  return copy(diag, node, sizeof *node);
}

struct ast_ref *ast_make_ref(struct diag *diag, const struct ast_ref *node) {
  return copy(diag, node, sizeof *node);
}

struct ast_kernel *ast_make_kernel(struct diag *diag, const struct ast_kernel *node) {
  return copy(diag, node, sizeof *node);
}

struct ast_reducer *ast_make_reducer(struct diag *diag, const struct ast_reducer *node) {
  return copy(diag, node, sizeof *node);
}

struct ast_schedule *ast_make_schedule(struct diag *diag, const struct ast_schedule *node) {
  return copy(diag, node, sizeof *node);
}

// Reports a word that is none of `words` (NULL at the end).
static void check_word(struct diag *diag, const struct ast_name *word, const char *const *words) {
  if (!word->text) return;
  struct text expected = {0};
  for (uint32_t i = 0; words[i]; i++) {
    if (strcmp(word->text, words[i]) == 0) {
      text_free(&expected);
      return;
    }
    text_printf(&expected, "%s'%s'", i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
  }
  diag_error(diag, ERROR_SYNTAX, word->range, "unexpected name '%s', expected %s", word->text, expected.data);
  text_free(&expected);
}

struct ast_directive *ast_make_directive(struct diag *diag, const struct ast_directive *node) {
  static const char *const caches[] = {"evict_first", "evict_last", "no_allocate", "streaming", NULL};
  static const char *const allreduces[] = {"shuffle", "tree", "auto", NULL};
  static const char *const combines[] = {"last_block", "flag", "second_kernel", "atomic", NULL};
  static const char *const copies[] = {"copy", "cp_async", "bulk", NULL};
  switch (node->kind) {
  case AST_CACHE: check_word(diag, &node->word, caches); break;
  case AST_ALLREDUCE: check_word(diag, &node->word, allreduces); break;
  case AST_COMBINE: check_word(diag, &node->word, combines); break;
  case AST_STAGE: check_word(diag, &node->by, copies); break;
  case AST_TILE:
    if (node->names.count != 2 * node->refs.count)
      diag_error(diag, ERROR_SYNTAX, node->range, "a tile of %u %s gives %u names, outer ones first, not %u",
                 node->refs.count, node->refs.count == 1 ? "axis" : "axes", 2 * node->refs.count,
                 node->names.count);
    break;
  case AST_FUSE:
    if (node->refs.count < 2) diag_error(diag, ERROR_SYNTAX, node->range, "'fuse' takes two axes or more");
    break;
  case AST_JOIN:
    if (node->names.count < 2) diag_error(diag, ERROR_SYNTAX, node->range, "'join' takes two stages or more");
    break;
  case AST_SPLIT:
  case AST_REORDER:
  case AST_BIND:
  case AST_UNROLL:
  case AST_VECTORIZE:
  case AST_BLOCKS: break;
  }
  return copy(diag, node, sizeof *node);
}

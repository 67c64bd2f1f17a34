// Makes nodes of the syntax tree, in the arena of `diag`. Constructors take a filled-in node and copy it;
// they compute its depth and report one that is nested too deeply.
#ifndef RED_COMPILER_AST_BUILD_H
#define RED_COMPILER_AST_BUILD_H

#include "compiler/ast.h"

// A list of one, and a list with one more. The list given is used up.
struct list ast_list(struct diag *diag, void *item);
struct list ast_list_with(struct diag *diag, struct list list, void *item);

// A node deeper than AST_MAX_DEPTH is reported once and replaced by a leaf of depth AST_MAX_DEPTH + 1, as is
// every node above it: the tree stays shallow enough to walk.
struct ast_expr *ast_make_expr(struct diag *diag, const struct ast_expr *node);
struct ast_stmt *ast_make_stmt(struct diag *diag, const struct ast_stmt *node);
// A decimal literal from its spelling; one beyond the range of a double is reported.
struct ast_expr *ast_make_float(struct diag *diag, struct range range, const char *spelling);

struct ast_name *ast_make_name(struct diag *diag, struct range range, const char *text);
struct ast_axis *ast_make_axis(struct diag *diag, const struct ast_axis *node);
struct ast_let *ast_make_let(struct diag *diag, const struct ast_let *node);
struct ast_param *ast_make_param(struct diag *diag, const struct ast_param *node);
struct ast_component *ast_make_component(struct diag *diag, const struct ast_component *node);
struct ast_ref *ast_make_ref(struct diag *diag, const struct ast_ref *node);
struct ast_kernel *ast_make_kernel(struct diag *diag, const struct ast_kernel *node);
struct ast_reducer *ast_make_reducer(struct diag *diag, const struct ast_reducer *node);
struct ast_schedule *ast_make_schedule(struct diag *diag, const struct ast_schedule *node);
// Checks the words of a directive (which ones a place may hold) and the count of a tile's names.
struct ast_directive *ast_make_directive(struct diag *diag, const struct ast_directive *node);

#endif

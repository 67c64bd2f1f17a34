#include "compiler/ast_build.h"
#include "compiler/fmt.h"

#include <criterion/criterion.h>

#include <glob.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct arena arena;
static struct diag diag;
static struct ast_file ast;
static struct text out, other;

static void start(void) {
  arena_init(&arena);
  diag_init(&diag, &arena);
  memset(&ast, 0, sizeof ast);
}

static void stop(void) {
  text_free(&out);
  text_free(&other);
  arena_destroy(&arena);
}

TestSuite(parse, .init = start, .fini = stop);

static bool parse_bytes(const char *text, size_t length) {
  memset(&ast, 0, sizeof ast);
  return red_parse(&diag, diag_add_source(&diag, "a.red", text, length), &ast);
}

static bool parse(const char *text) {
  return parse_bytes(text, strlen(text));
}

static const char *messages(void) {
  out.length = 0;
  text_puts(&out, "");
  diag_print(&diag, &(struct diag_style){0}, &out);
  return out.data;
}

#define PARSES(text) cr_assert(parse(text), "%s", messages())

// ---- The tree as nested lists, so that trees can be compared whatever the printer does with parentheses

static void dump_expr(const struct ast_expr *e, struct text *to);

static void dump_exprs(const struct list *exprs, struct text *to) {
  for (uint32_t i = 0; i < exprs->count; i++) {
    text_puts(to, " ");
    dump_expr(list_at(exprs, struct ast_expr, i), to);
  }
}

static void dump_let(const struct ast_let *let, struct text *to) {
  text_puts(to, let->is_tuple ? " (let*" : " (let");
  for (uint32_t i = 0; i < let->names.count; i++)
    text_printf(to, " %s", list_at(&let->names, struct ast_name, i)->text);
  text_puts(to, " ");
  dump_expr(let->value, to);
  text_puts(to, ")");
}

static void dump_axes(const struct list *axes, struct text *to) {
  for (uint32_t i = 0; i < axes->count; i++) {
    const struct ast_axis *axis = list_at(axes, struct ast_axis, i);
    text_printf(to, " (%s ", axis->name.text);
    dump_expr(axis->lo, to);
    text_puts(to, " ");
    dump_expr(axis->hi, to);
    text_puts(to, ")");
  }
}

static void dump_expr(const struct ast_expr *e, struct text *to) {
  if (!e) {
    text_puts(to, "-");
    return;
  }
  switch (e->kind) {
  case AST_INT: text_printf(to, "%llu", (unsigned long long)e->integer); return;
  case AST_FLOAT: text_printf(to, "%a", e->number); return;
  case AST_NAME: text_puts(to, e->name.text); return;
  case AST_ACCESS: text_printf(to, "([] %s", e->name.text); break;
  case AST_CALL: text_printf(to, "(call %s", e->name.text); break;
  case AST_FIELD: text_printf(to, "(. %s", e->name.text); break;
  case AST_UNARY: text_printf(to, "(u%s", ast_unary_spelling(e->unary)); break;
  case AST_BINARY: text_printf(to, "(%s", ast_binary_spelling(e->binary)); break;
  case AST_TERNARY: text_puts(to, "(?"); break;
  case AST_TUPLE: text_puts(to, "(,"); break;
  case AST_REDUCE:
    text_printf(to, "(reduce %s", e->name.text);
    dump_axes(&e->axes, to);
    text_puts(to, " ");
    dump_expr(e->guard, to);
    text_puts(to, " ");
    dump_expr(e->init, to);
    break;
  case AST_BLOCK:
    text_puts(to, "({");
    for (uint32_t i = 0; i < e->lets.count; i++) dump_let(list_at(&e->lets, struct ast_let, i), to);
    break;
  }
  dump_exprs(&e->args, to);
  text_puts(to, ")");
}

// The tree of an expression, parsed where any may stand.
static const struct ast_expr *parse_expr(const char *expr) {
  PARSES(arena_printf(&arena, "kernel k(A: f32[n]) -> (B: f32[n]) { B[0] = %s; }", expr));
  const struct ast_kernel *kernel = list_at(&ast.kernels, struct ast_kernel, 0);
  return list_at(&kernel->body, struct ast_stmt, 0)->value;
}

static const char *tree(const char *expr) {
  other.length = 0;
  dump_expr(parse_expr(expr), &other);
  return other.data;
}

#define TREE(expr, wanted) cr_assert_str_eq(tree(expr), wanted, "%s: got %s", expr, other.data)
#define PRINTS(expr, wanted)                                                                                 \
  do {                                                                                                       \
    const struct ast_expr *parsed = parse_expr(expr);                                                        \
    other.length = 0;                                                                                        \
    ast_print_expr(parsed, &other);                                                                          \
    cr_assert_str_eq(other.data, wanted, "%s: got %s", expr, other.data);                                    \
  } while (0)

Test(parse, operators_bind_as_in_c_but_bits_before_comparisons) {
  TREE("a + b * c - d", "(- (+ a (* b c)) d)");
  TREE("a - b - c", "(- (- a b) c)");
  TREE("a / b % c * d", "(* (% (/ a b) c) d)");
  TREE("a & b == c | d", "(== (& a b) (| c d))");
  TREE("a | b ^ c & d << e + f", "(| a (^ b (& c (<< d (+ e f)))))");
  TREE("a < b == c >= d", "(== (< a b) (>= c d))");
  TREE("a || b && c == d", "(|| a (&& b (== c d)))");
  TREE("a >> b << c", "(<< (>> a b) c)");
  TREE("a ? b : c ? d : e", "(? a b (? c d e))");
  TREE("a ? b ? c : d : e", "(? a (? b c d) e)");
  TREE("a || b ? c : d || e", "(? (|| a b) c (|| d e))");
  TREE("-a * !b + ~-c", "(+ (* (u- a) (u! b)) (u~ (u- c)))");
  TREE("-a.x", "(u- (. x a))");
  TREE("a - -1", "(- a (u- 1))");
  TREE("(a + b) * c", "(* (+ a b) c)");
}

Test(parse, a_reduction_takes_one_postfix_expression) {
  TREE("sum(j in m) A[i, j] / m", "(/ (reduce sum (j - m) - - ([] A i j)) m)");
  TREE("a * sum(j in m) b.x.y + 1", "(+ (* a (reduce sum (j - m) - - (. y (. x b)))) 1)");
  TREE("sum(j in m) (a * b)", "(reduce sum (j - m) - - (* a b))");
  TREE("argmax(j in m) (a, i32(j))", "(reduce argmax (j - m) - - (, a (call i32 j)))");
  TREE("sum(i in n) max(j in 0..i + 1) a - 1",
       "(- (reduce sum (i - n) - - (reduce max (j 0 (+ i 1)) - - a)) 1)");
  TREE("sum(j in m, k in 2..p if j <= k && k > 0; init = x + 1) f(j)",
       "(reduce sum (j - m) (k 2 p) (&& (<= j k) (> k 0)) (+ x 1) (call f j))");
  TREE("sum(j in m) { let x = X[j]; let (a, _) = f(x); x * a } / 2",
       "(/ (reduce sum (j - m) - - ({ (let x ([] X j)) (let* a _ (call f x)) (* x a))) 2)");
  TREE("-sum(j in m) 1", "(u- (reduce sum (j - m) - - 1))");
  TREE("P[] + f()", "(+ ([] P) (call f))");
}

Test(parse, numbers) {
  TREE("0x1fF", "511");
  TREE("18446744073709551615", "18446744073709551615");
  TREE("0xffffffffffffffff", "18446744073709551615");
  TREE("1e-12", "0x1.19799812dea11p-40");
  TREE("2.5e3", "0x1.388p+11");
  TREE("0.1", "0x1.999999999999ap-4");
  TREE("1e-999", "0x0p+0");
  TREE("sum(i in 0..n) i", "(reduce sum (i 0 n) - - i)");
  TREE("sum(i in 0 .. 1.5) i", "(reduce sum (i 0 0x1.8p+0) - - i)");
}

Test(parse, numbers_whatever_the_locale_of_the_process) {
  static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"};
  for (size_t i = 0; i < 4; i++)
    if (setlocale(LC_ALL, names[i])) break;
  struct ast_expr *number = ast_make_float(&diag, (struct range){0}, "2.5");
  cr_assert_eq(number->number, 2.5);
  number->name.text = NULL;
  ast_print_expr(number, &other);
  cr_assert_str_eq(other.data, "2.5e+00");
  setlocale(LC_ALL, "C");
}

Test(parse, numbers_without_a_spelling_read_back_exactly) {
  static const double numbers[] = {0.1, 1.0 / 3, 1e300, 5e-324, 1.7976931348623157e308, 0, 1, 123456789.125};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    struct ast_expr number = {.kind = AST_FLOAT, .number = numbers[i]};
    out.length = 0;
    ast_print_expr(&number, &out);
    const struct ast_expr *read = parse_expr(arena_strdup(&arena, out.data));
    cr_assert_eq(read->kind, AST_FLOAT, "%s", out.data);
    cr_assert_eq(read->number, numbers[i], "%s", out.data);
  }
}

Test(parse, prints_no_needless_parentheses_and_all_needful_ones) {
  PRINTS("((a)) + ((b) * (c))", "a + b * c");
  PRINTS("(a + b) * (c - d)", "(a + b) * (c - d)");
  PRINTS("a - (b - c)", "a - (b - c)");
  PRINTS("(a - b) - c", "a - b - c");
  PRINTS("(a ? b : c) ? (d ? e : f) : (g ? h : i)", "(a ? b : c) ? d ? e : f : g ? h : i");
  PRINTS("-(a + b)", "-(a + b)");
  PRINTS("-(-a)", "--a");
  PRINTS("(a & b) == c", "a & b == c");
  PRINTS("a & (b == c)", "a & (b == c)");
  PRINTS("(a == b) == c", "a == b == c");
  PRINTS("a == (b == c)", "a == (b == c)");
  PRINTS("sum(j in m) (A[j] * 2)", "sum(j in m) (A[j] * 2)");
  PRINTS("sum(j in m) (A[j])", "sum(j in m) A[j]");
  PRINTS("sum(j in m) (-1)", "sum(j in m) (-1)");
  PRINTS("(sum(j in m) A[j]).x", "(sum(j in m) A[j]).x");
  PRINTS("(1).x", "(1).x");
  PRINTS("(a + b).x", "(a + b).x");
  PRINTS("(a, b).x", "(a, b).x");
  PRINTS("sum(j in m) { let x = 1; (x) }", "sum(j in m) { let x = 1; x }");
}

// ---- Random trees: printed and parsed, they are the same

static uint32_t seed;

static uint32_t below(uint32_t limit) {
  seed = seed * 1664525u + 1013904223u;
  return (seed >> 8) % limit;
}

static struct ast_expr *random_expr(int depth);

static struct ast_expr *make(const struct ast_expr *node) {
  return ast_make_expr(&diag, node);
}

static struct list random_exprs(int depth, uint32_t count) {
  struct list list = {0};
  for (uint32_t i = 0; i < count; i++) list_push(&arena, &list, random_expr(depth));
  return list;
}

static struct ast_name random_name(void) {
  static const char *const names[] = {"a", "by", "min", "x1", "stage", "identity", "at"};
  return (struct ast_name){.text = names[below(7)]};
}

static struct list random_axes(int depth) {
  struct list list = {0};
  for (uint32_t i = 0, count = 1 + below(2); i < count; i++) {
    struct ast_axis axis = {
        .name = random_name(), .lo = below(2) ? random_expr(depth) : NULL, .hi = random_expr(depth)};
    list_push(&arena, &list, ast_make_axis(&diag, &axis));
  }
  return list;
}

static struct ast_expr *random_body(int depth) {
  if (below(2)) return random_expr(depth);
  struct list lets = {0};
  for (uint32_t i = 0, count = below(3); i < count; i++) {
    struct ast_let let = {.names =
                              ast_list(&diag, ast_make_name(&diag, (struct range){0}, random_name().text)),
                          .is_tuple = below(2),
                          .value = random_expr(depth)};
    list_push(&arena, &lets, ast_make_let(&diag, &let));
  }
  return make(&(struct ast_expr){.kind = AST_BLOCK, .lets = lets, .args = random_exprs(depth, 1)});
}

static struct ast_expr *random_expr(int depth) {
  if (depth <= 0 || below(8) == 0) {
    if (below(3) == 0) return make(&(struct ast_expr){.kind = AST_INT, .integer = below(100)});
    if (below(3) == 0) return make(&(struct ast_expr){.kind = AST_FLOAT, .number = below(100) / 8.0});
    return make(&(struct ast_expr){.kind = AST_NAME, .name = random_name()});
  }
  struct ast_expr node = {.name = random_name()};
  switch (below(10)) {
  case 0: node.kind = AST_ACCESS, node.args = random_exprs(depth - 1, below(3)); break;
  case 1: node.kind = AST_CALL, node.args = random_exprs(depth - 1, below(3)); break;
  case 2: node.kind = AST_FIELD, node.args = random_exprs(depth - 1, 1); break;
  case 3:
    node.kind = AST_UNARY, node.unary = (enum ast_unary_op)below(3), node.args = random_exprs(depth - 1, 1);
    break;
  case 4: node.kind = AST_TERNARY, node.args = random_exprs(depth - 1, 3); break;
  case 5: node.kind = AST_TUPLE, node.args = random_exprs(depth - 1, 2 + below(2)); break;
  case 6:
    node.kind = AST_REDUCE, node.axes = random_axes(depth - 2);
    node.guard = below(2) ? random_expr(depth - 2) : NULL;
    node.init = below(2) ? random_expr(depth - 2) : NULL;
    list_push(&arena, &node.args, random_body(depth - 1));
    break;
  default:
    node.kind = AST_BINARY, node.binary = (enum ast_binary_op)below(AST_MOD + 1);
    node.args = random_exprs(depth - 1, 2);
  }
  return make(&node);
}

Test(parse, random_trees_survive_printing) {
  for (seed = 1; seed < 3000000000u; seed += 1500007) {
    uint32_t first = seed;
    const struct ast_expr *expr = random_expr(7);
    struct text printed = {0}, wanted = {0};
    ast_print_expr(expr, &printed);
    dump_expr(expr, &wanted);
    const char *got = tree(printed.data);
    cr_assert_str_eq(got, wanted.data, "seed %u: %s\ngot    %s\nwanted %s", first, printed.data, got,
                     wanted.data);
    text_free(&printed);
    text_free(&wanted);
    seed = first;
  }
}

// ---- Whole files

static const struct ast_kernel *kernel(uint32_t i) {
  return list_at(&ast.kernels, struct ast_kernel, i);
}
static const struct ast_stmt *statement(uint32_t i) {
  return list_at(&kernel(0)->body, struct ast_stmt, i);
}

static const char *name_at(const struct list *names, uint32_t i) {
  return list_at(names, struct ast_name, i)->text;
}

Test(parse, parameters) {
  PARSES("kernel k<T, U>(n: size, A: T[n, m + 1] strided(p, _), B: f32[] strided, C: U[n] strided()) -> (D: "
         "i8[n]) { }");
  cr_assert_eq(kernel(0)->type_params.count, 2);
  cr_assert_eq(kernel(0)->inputs.count, 4);
  cr_assert_eq(kernel(0)->outputs.count, 1);
  const struct ast_param *n = list_at(&kernel(0)->inputs, struct ast_param, 0);
  const struct ast_param *a = list_at(&kernel(0)->inputs, struct ast_param, 1);
  const struct ast_param *b = list_at(&kernel(0)->inputs, struct ast_param, 2);
  const struct ast_param *c = list_at(&kernel(0)->inputs, struct ast_param, 3);
  cr_assert(!n->is_tensor && strcmp(n->type.text, "size") == 0);
  cr_assert(a->is_tensor && a->is_strided && a->has_strides && a->dims.count == 2 && a->strides.count == 2);
  cr_assert_not_null(a->strides.at[0]);
  cr_assert_null(a->strides.at[1]);
  cr_assert(b->is_tensor && b->is_strided && !b->has_strides && b->dims.count == 0);
  cr_assert(c->has_strides && c->strides.count == 0);
}

Test(parse, statements) {
  PARSES("kernel k() -> (B: f32[n]) {\n"
         "  for i in n, j in 1..i { B[i] = 1; }\n"
         "  if a { B[0] = 1; } else if b { } else { let c = 1; }\n"
         "  let (a, _) = f(x);\n"
         "  (V[i], _) = x;\n"
         "  P[] fmin= 1;\n"
         "  let _ = 1;\n"
         "}");
  const struct ast_stmt *loop = statement(0), *branch = statement(1), *let = statement(2),
                        *tuple = statement(3);
  cr_assert(loop->kind == AST_FOR && loop->axes.count == 2 && loop->body.count == 1);
  cr_assert_null(list_at(&loop->axes, struct ast_axis, 0)->lo);
  cr_assert_not_null(list_at(&loop->axes, struct ast_axis, 1)->lo);
  cr_assert(branch->kind == AST_IF && branch->otherwise.count == 1);
  const struct ast_stmt *second = list_at(&branch->otherwise, struct ast_stmt, 0);
  cr_assert(second->kind == AST_IF && second->otherwise.count == 1);
  cr_assert(let->kind == AST_LET && let->let->is_tuple && strcmp(name_at(&let->let->names, 1), "_") == 0);
  cr_assert(tuple->kind == AST_ASSIGN && tuple->is_tuple && tuple->targets.count == 2);
  cr_assert_eq(list_at(&tuple->targets, struct ast_expr, 1)->kind, AST_NAME);
  cr_assert_eq(statement(4)->operation, AST_ASSIGN_FMIN);
  cr_assert(!statement(5)->let->is_tuple);
}

Test(parse, every_fold) {
#define X(name, spelling) "  B[0] " spelling " 1;\n"
  PARSES("kernel k() -> (B: f32[n]) {\n" AST_ASSIGN_OPERATORS(X) "}");
#undef X
#define X(name, spelling) cr_assert_eq(statement(AST_ASSIGN_##name)->operation, AST_ASSIGN_##name);
  AST_ASSIGN_OPERATORS(X)
#undef X
}

Test(parse, reducers) {
  PARSES("ordered reducer r<T>(a: T, b: i32) {\n"
         "  identity (0, 1);\n"
         "  combine(x, y) { let z = x.a; (z, y.b) }\n"
         "  update(s, v, w) { (s.a + v, w) }\n"
         "}\n"
         "reducer s(a: f32) { identity 0; combine(x, y) { x.a + y.a } }");
  const struct ast_reducer *r = list_at(&ast.reducers, struct ast_reducer, 0);
  cr_assert(r->is_ordered && r->type_params.count == 1 && r->components.count == 2);
  cr_assert(r->identity->kind == AST_TUPLE && r->combine->kind == AST_BLOCK && r->combine->lets.count == 1);
  cr_assert(r->combine_params.count == 2 && r->update_params.count == 3 && r->update->kind == AST_BLOCK);
  const struct ast_reducer *s = list_at(&ast.reducers, struct ast_reducer, 1);
  cr_assert(!s->is_ordered && !s->update && s->update_params.count == 0);
}

static const struct ast_directive *directive(uint32_t i) {
  return list_at(&list_at(&ast.schedules, struct ast_schedule, 0)->directives, struct ast_directive, i);
}

static const struct ast_ref *ref_of(const struct list *refs, uint32_t i) {
  return list_at(refs, struct ast_ref, i);
}

Test(parse, directives) {
  PARSES("schedule k as fast when aligned(A, 16) && dense(A) && stride(A, 0) == 1 && T == f16 && bytes(T) == "
         "2 {\n"
         "  split peak.j by 4 * sms -> jo, ji;\n"
         "  split k into min(extent(B#2.k), 3) -> ko, ki;\n"
         "  fuse a, b, c -> t;\n"
         "  tile i by 32, j by n / 2 -> io, jo, ii, ji;\n"
         "  reorder a, b;\n"
         "  bind x -> block.z;\n"
         "  bind B.combine.x -> thread.y;\n"
         "  unroll a;\n"
         "  unroll a by 4;\n"
         "  vectorize a, b;\n"
         "  stage X at t in shared as S unit 2 along ii swizzle 5,0,6 depth 2 by cp_async;\n"
         "  stage X at t in registers;\n"
         "  stage Y at B#2.t in shared pad 1 by bulk;\n"
         "  cache X by evict_last;\n"
         "  blocks 2;\n"
         "  join a, B#2;\n"
         "  allreduce x, y by tree;\n"
         "  combine x by last_block;\n"
         "}");
  const struct ast_schedule *schedule = list_at(&ast.schedules, struct ast_schedule, 0);
  cr_assert_str_eq(schedule->kernel.text, "k");
  cr_assert_str_eq(schedule->name.text, "fast");
  cr_assert_eq(schedule->when->kind, AST_BINARY);
  cr_assert_eq(schedule->directives.count, 18);

  cr_assert(directive(0)->kind == AST_SPLIT && !directive(0)->is_into && directive(0)->names.count == 2);
  cr_assert_str_eq(ref_of(&directive(0)->refs, 0)->stage.text, "peak");
  cr_assert_str_eq(ref_of(&directive(0)->refs, 0)->axis.text, "j");
  cr_assert(directive(1)->kind == AST_SPLIT && directive(1)->is_into &&
            directive(1)->value->kind == AST_CALL);
  cr_assert_null(ref_of(&directive(1)->refs, 0)->stage.text);
  cr_assert(directive(2)->kind == AST_FUSE && directive(2)->refs.count == 3 &&
            directive(2)->names.count == 1);
  cr_assert(directive(3)->kind == AST_TILE && directive(3)->refs.count == 2 &&
            directive(3)->values.count == 2);
  cr_assert_eq(directive(3)->names.count, 4);
  cr_assert(directive(4)->kind == AST_REORDER && directive(4)->refs.count == 2);
  cr_assert(directive(5)->kind == AST_BIND && directive(5)->dimension == 'z');
  cr_assert_str_eq(directive(5)->word.text, "block");
  cr_assert_str_eq(ref_of(&directive(6)->refs, 0)->stage.text, "B.combine");
  cr_assert_str_eq(directive(6)->word.text, "thread");
  cr_assert(directive(7)->kind == AST_UNROLL && !directive(7)->value && directive(8)->value);
  cr_assert(directive(9)->kind == AST_VECTORIZE && directive(9)->refs.count == 2);

  const struct ast_directive *tile = directive(10), *registers = directive(11), *padded = directive(12);
  cr_assert_eq(tile->kind, AST_STAGE);
  cr_assert_str_eq(tile->tensor.text, "X");
  cr_assert_str_eq(tile->at.axis.text, "t");
  cr_assert_str_eq(tile->word.text, "shared");
  cr_assert_str_eq(tile->alias.text, "S");
  cr_assert_eq(tile->unit->integer, 2);
  cr_assert_str_eq(tile->along.axis.text, "ii");
  cr_assert_eq(list_at(&tile->swizzle, struct ast_expr, 2)->integer, 6);
  cr_assert_eq(tile->depth->integer, 2);
  cr_assert_str_eq(tile->by.text, "cp_async");
  cr_assert_str_eq(registers->word.text, "registers");
  cr_assert(!registers->alias.text && !registers->unit && !registers->pad && !registers->swizzle.count);
  cr_assert(!registers->depth && !registers->by.text && !registers->along.axis.text);
  cr_assert_str_eq(padded->at.stage.text, "B#2");
  cr_assert_eq(padded->pad->integer, 1);

  cr_assert_str_eq(directive(13)->word.text, "evict_last");
  cr_assert_eq(directive(14)->value->integer, 2);
  cr_assert_str_eq(name_at(&directive(15)->names, 1), "B#2");
  cr_assert(directive(16)->kind == AST_ALLREDUCE && directive(16)->refs.count == 2);
  cr_assert_str_eq(directive(17)->word.text, "last_block");
}

// Every word that is not reserved is a name wherever a name may stand.
Test(parse, words_are_names_where_names_stand) {
  static const char *const words[] = {
      "min",     "max",     "fmin",      "fmax",   "identity",  "combine",   "update", "init",
      "strided", "when",    "as",        "by",     "into",      "at",        "along",  "unit",
      "pad",     "swizzle", "depth",     "shared", "registers", "block",     "thread", "split",
      "fuse",    "tile",    "reorder",   "bind",   "unroll",    "vectorize", "stage",  "cache",
      "blocks",  "join",    "allreduce", "x",      "copy",      "size",      "sum",    "f32"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    struct text text = {0};
    static const char *const program =
        "kernel W<W>(W: W[W + W] strided(W), x: f32[n]) -> (W: f32[W]) {\n"
        "  for W in W, V in W..W { let W = W(W) + W.W; W[W] = W; W[] += sum(W in W if W; init = W) W; }\n"
        "  let (W, _) = W(j in n) W[W]; (W[0], W[1]) max= W ? W : -W; if W { } else { W[W] min= W; }\n"
        "}\n"
        "reducer W<W>(W: W) { identity W; combine(W, W) { let W = W; W } update(W, W) { W } }\n"
        "schedule W as W when W {\n"
        "  split W by W -> W, W; split W.W into W -> W, W; fuse W, W -> W; tile W by W, W by W -> W, W, W, "
        "W;\n"
        "  reorder W, W; bind W -> block.x; unroll W; unroll W by W; vectorize W; stage W at W in shared as "
        "W unit W\n"
        "  along W pad W depth W by copy; stage W at W in registers; cache W by streaming; blocks W; join W, "
        "W;\n"
        "  allreduce W, W by auto; combine W by flag;\n"
        "}\n";
    for (const char *c = program; *c; c++) {
      if (*c == 'W')
        text_puts(&text, words[i]);
      else
        text_append(&text, c, 1);
    }
    cr_assert(parse(arena_strdup(&arena, text.data)), "%s: %s", words[i], messages());
    text_free(&text);
  }
}

Test(parse, items_print_in_the_order_of_the_source) {
  PARSES(
      "schedule b { }\nkernel a() -> (B: f32[1]) { }\nreducer r(a: f32) { identity 0; combine(a, b) { a } }\n"
      "kernel b() -> (B: f32[1]) { }");
  ast_print(&ast, &out);
  cr_assert_str_eq(out.data, "schedule b {\n}\n\nkernel a() -> (B: f32[1]) {\n}\n\n"
                             "reducer r(a: f32) {\n  identity 0;\n  combine(a, b) {\n    a\n  }\n}\n\n"
                             "kernel b() -> (B: f32[1]) {\n}\n");
}

Test(parse, ranges_end_in_front_of_the_semicolon) {
  PARSES("schedule k {\n  bind j -> thread.x ;\n  stage X at t in\n    registers;\n}");
  struct range bind = directive(0)->range, stage = directive(1)->range;
  cr_assert(bind.line == 2 && bind.column == 3 && bind.end_line == 2 && bind.end_column == 21);
  cr_assert(stage.line == 3 && stage.column == 3 && stage.end_line == 4 && stage.end_column == 14);
  PARSES("kernel k() -> (B: f32[1]) { B[0] = (a + b) * c; }");
  const struct ast_expr *product = statement(0)->value;
  cr_assert(product->range.column == 36 && product->range.end_column == 47);
  cr_assert_eq(list_at(&product->args, struct ast_expr, 0)->range.column, 36);
}

Test(parse, an_empty_file_has_no_items) {
  PARSES("");
  PARSES("// only a comment");
  PARSES(" /* and */ /* another **/ \n");
  cr_assert(ast.kernels.count == 0 && ast.reducers.count == 0 && ast.schedules.count == 0);
  cr_assert(red_parse(&diag, diag_add_source(&diag, "none", NULL, 0), &ast));
}

// ---- Errors

static void refuse(const char *text, size_t length, enum diag_code code) {
  arena_destroy(&arena);
  start();
  diag.error_limit = 20;
  cr_assert(!parse_bytes(text, length));
  bool found = false;
  for (uint32_t i = 0; i < diag.diagnostics.count; i++)
    found |= list_at(&diag.diagnostics, struct diagnostic, i)->code == code;
  cr_assert(found, "no E%d: %s", code, messages());
}

// `head`, then `count` times `piece`, then `middle`, then `count` times `close`, then `tail`.
static void refuse_nested(const char *head, const char *piece, const char *middle, const char *close,
                          const char *tail, uint32_t count, bool fits) {
  struct text text = {0};
  text_puts(&text, head);
  for (uint32_t i = 0; i < count; i++) text_puts(&text, piece);
  text_puts(&text, middle);
  for (uint32_t i = 0; i < count; i++) text_puts(&text, close);
  text_puts(&text, tail);
  if (fits) {
    arena_destroy(&arena);
    start();
    cr_assert(parse_bytes(text.data, text.length), "%s", messages());
    out.length = 0;
    ast_print(&ast, &out);
  } else {
    refuse(text.data, text.length, ERROR_NESTING);
    cr_assert_leq(diag.error_count, 2, "%s", messages());
  }
  text_free(&text);
}

#define HEAD "kernel k() -> (B: f32[1]) { B[0] = "

Test(parse, nesting_up_to_the_limit_is_fine_and_beyond_it_refused) {
  static const struct {
    const char *head, *piece, *middle, *close, *tail;
    uint32_t levels; // of the tree, for each piece
  } cases[] = {
      {HEAD, "(", "1", ")", "; }", 1},
      {HEAD, "f(", "1", ")", "; }", 1},
      {HEAD, "-", "1", "", "; }", 1},
      {HEAD, "1 + ", "1", "", "; }", 1},
      {HEAD, "a ? b : ", "1", "", "; }", 1},
      {HEAD, "a ? ", "1", ": b", "; }", 1},
      {HEAD, "sum(j in m) ", "1", "", "; }", 1},
      {HEAD, "sum(j in m) { ", "1", " }", "; }", 2},
      {HEAD "a", ".b", "", "", "; }", 1},
      {HEAD, "1 + 2 * (3 << ", "4", ")", "; }", 3},
      {"kernel k() -> (B: f32[1]) {", "for i in n {", "", "}", "}", 1},
      {"kernel k() -> (B: f32[1]) {", "if a { } else ", "{ }", "", "}", 1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint32_t fits = (AST_MAX_DEPTH - 3) / cases[i].levels;
    refuse_nested(cases[i].head, cases[i].piece, cases[i].middle, cases[i].close, cases[i].tail, fits, true);
    refuse_nested(cases[i].head, cases[i].piece, cases[i].middle, cases[i].close, cases[i].tail, 3000, false);
    refuse_nested(cases[i].head, cases[i].piece, cases[i].middle, cases[i].close, cases[i].tail, 100000,
                  false);
  }
}

Test(parse, open_brackets_without_end) {
  static const char brackets[] = "{([";
  char *text = malloc(1 << 20);
  for (size_t i = 0; i < 3; i++) {
    memset(text, brackets[i], 1 << 20);
    refuse(text, 1 << 20, ERROR_NESTING);
    memcpy(text, HEAD, strlen(HEAD));
    refuse(text, 1 << 20, ERROR_NESTING);
  }
  static const char closers[] = "})];";
  for (size_t i = 0; i < 4; i++) {
    memset(text, closers[i], 1 << 20);
    refuse(text, 1 << 20, ERROR_SYNTAX);
    cr_assert_eq(diag.error_count, 1);
  }
  free(text);
}

Test(parse, garbage_gives_one_error_a_line) {
  char garbage[3000];
  memset(garbage, 0, sizeof garbage);
  refuse(garbage, sizeof garbage, ERROR_CHARACTER);
  cr_assert_eq(diag.error_count, 1);
  for (size_t i = 0; i < sizeof garbage; i++) garbage[i] = (char)(i % 2 ? 0x80 + i % 100 : 'a' + i % 26);
  refuse(garbage, sizeof garbage, ERROR_CHARACTER);
  cr_assert_leq(diag.error_count, 2, "%s", messages());
  garbage[1000] = garbage[2000] = '\n';
  refuse(garbage, sizeof garbage, ERROR_CHARACTER);
  cr_assert_leq(diag.error_count, 4, "%s", messages());
}

Test(parse, a_mebibyte_of_zeros_takes_no_time) {
  char *zeros = calloc(1, 1 << 20);
  refuse(zeros, 1 << 20, ERROR_CHARACTER);
  cr_assert_eq(diag.error_count, 1);
  cr_assert_not_null(strstr(messages(), "1:1: error: byte 0x00 outside a comment"));
  zeros[0] = zeros[1] = '/';
  cr_assert(parse_bytes(zeros, 1 << 20));
  free(zeros);
}

Test(parse, twenty_thousand_errors) {
  struct text text = {0};
  text_puts(&text, "kernel k() -> (B: f32[1]) {\n");
  for (int i = 0; i < 20000; i++) text_puts(&text, "B[0] = ;\n");
  text_puts(&text, "}\n");
  refuse(text.data, text.length, ERROR_SYNTAX);
  cr_assert_eq(diag.error_count, 20000);
  cr_assert_eq(diag.diagnostics.count, 20);
  cr_assert_not_null(
      strstr(messages(), "\ntoo many errors; 19980 more not shown\n20000 errors generated.\n"));
  text_free(&text);
}

Test(parse, cut_anywhere_it_reports_an_error_or_parses) {
  static const char program[] =
      "reducer r(a: f32) { identity 0; combine(a, b) { let c = a.a; c } }\n"
      "kernel k<T>(A: T[n, m] strided(p, 1)) -> (B: f32[n]) {\n"
      "  for i in n { if i > 0 { B[i] = sum(j in 0..m if j != i; init = 1.5) { A[i, j] }; } }\n"
      "}\n"
      "schedule k as s when n % 4 == 0 { stage A at i in shared as S swizzle 1,2,3; }\n";
  for (size_t length = 0; length < sizeof program - 1; length++) {
    char *copy = malloc(length ? length : 1); // no byte more than the text
    memcpy(copy, program, length);
    uint32_t errors = diag.error_count;
    bool ok = parse_bytes(copy, length);
    cr_assert_eq(ok, diag.error_count == errors);
    cr_assert_leq(diag.error_count, errors + 2, "%zu: %s", length, messages());
    diag.sources.count = diag.diagnostics.count = 0;
    free(copy);
  }
}

// ---- Printing and formatting whole files

// Parses `text`, prints it, parses and prints that, and formats it twice.
static void check_round_trip(const char *name, const char *text, size_t length) {
  struct text once = {0}, twice = {0}, formatted = {0}, again = {0}, meaning = {0};
  struct text *all[] = {&once, &twice, &formatted, &again, &meaning};
  for (size_t i = 0; i < 5; i++) text_puts(all[i], ""); // of an empty file too
  uint32_t file = diag_add_source(&diag, name, text, length);
  memset(&ast, 0, sizeof ast);
  cr_assert(red_parse(&diag, file, &ast), "%s", messages());
  ast_print(&ast, &once);
  cr_assert(parse_bytes(once.data, once.length), "%s: %s", name, messages());
  ast_print(&ast, &twice);
  cr_assert_str_eq(once.data, twice.data, "%s", name);
  cr_assert(red_format(&diag, file, &formatted), "%s: %s", name, messages());
  cr_assert(parse_bytes(formatted.data, formatted.length), "%s: %s", name, messages());
  ast_print(&ast, &meaning);
  cr_assert_str_eq(once.data, meaning.data, "%s", name);
  file = diag_add_source(&diag, name, formatted.data, formatted.length);
  cr_assert(red_format(&diag, file, &again), "%s: %s", name, messages());
  cr_assert_str_eq(formatted.data, again.data, "%s", name);
  for (size_t i = 0; i < 5; i++) text_free(all[i]);
}

static void check_file(const char *path) {
  FILE *file = fopen(path, "rb");
  cr_assert_not_null(file, "%s", path);
  struct text text = {0};
  char buffer[4096];
  for (size_t got; (got = fread(buffer, 1, sizeof buffer, file)) > 0;) text_append(&text, buffer, got);
  fclose(file);
  check_round_trip(path, text.data, text.length);
  text_free(&text);
}

Test(parse, examples_survive_printing_and_formatting) {
  glob_t found;
  cr_assert_eq(glob(RED_SOURCE_DIR "/examples/*.red", 0, NULL, &found), 0);
  for (size_t i = 0; i < found.gl_pathc; i++) check_file(found.gl_pathv[i]);
  globfree(&found);
  check_file(RED_SOURCE_DIR "/tests/fuzz/corpus/fuzz_red/programs");
  check_file(RED_SOURCE_DIR "/tests/fuzz/corpus/fuzz_red/directives");
  check_file(RED_SOURCE_DIR "/tests/fuzz/corpus/fuzz_red/formatted");
}

static const char *format(const char *text) {
  uint32_t file = diag_add_source(&diag, "a.red", text, strlen(text));
  other.length = 0;
  text_puts(&other, "");
  cr_assert(red_format(&diag, file, &other), "%s", messages());
  return other.data;
}

#define FORMATS(text, wanted)                                                                                \
  do {                                                                                                       \
    cr_assert_str_eq(format(text), wanted, "got:\n%s", other.data);                                          \
    check_round_trip("a.red", text, strlen(text));                                                           \
  } while (0)

Test(parse, formatting_spaces) {
  FORMATS("kernel  k < T , U >( A:T [ n ,m ]strided( p,_ ),e :f32 )->( B :f32[] ){}",
          "kernel k<T, U>(A: T[n, m] strided(p, _), e: f32) -> (B: f32[]) {}\n");
  FORMATS("kernel k()->(B:f32[]){B[ ]=-1+ - a*( b-~c )?x:! y;B[]min =- 1;}",
          "kernel k() -> (B: f32[]) { B[] = -1 + -a * (b - ~c) ? x : !y; B[] min= -1; }\n");
  FORMATS("kernel k()->(B:f32[]){for i in 0 .. n-1,j in m{(B[i],_)=sum ( j in m if j<= - 1;init=0 )( a,f (j) "
          ");}}",
          "kernel k() -> (B: f32[]) { for i in 0..n - 1, j in m { (B[i], _) = "
          "sum(j in m if j <= -1; init = 0) (a, f(j)); } }\n");
  FORMATS("reducer r<T>(a:T){identity(0,1);combine (a,b){(a.x,b.x)}update (s,v){s}}",
          "reducer r<T>(a: T) { identity (0, 1); combine(a, b) { (a.x, b.x) } update(s, v) { s } }\n");
  FORMATS("schedule k as s when(a==b){split B#2.i by(4)->a,b;unroll i by -1;blocks(2);stage X at t in shared "
          "as S unit "
          "2 along ii swizzle 5,0,6;split k into min (a,b)->c,d;}",
          "schedule k as s when (a == b) { split B#2.i by (4) -> a, b; unroll i by -1; blocks (2); stage X "
          "at t in shared "
          "as S unit 2 along ii swizzle 5, 0, 6; split k into min(a, b) -> c, d; }\n");
  FORMATS("schedule k when 1 .x { }", "schedule k when 1 .x {}\n");
}

Test(parse, formatting_lines_and_comments) {
  FORMATS("\n\n// first\n\n\n\n/* second\n   goes on */ kernel k() -> (B: f32[])\n{\n\n\n  B[] = 1; // one\n"
          "  let longer = 2;     // two\n\n B[] =\n3 // three   \n;\n  // last\n\n} schedule k { } // end",
          "// first\n\n/* second\n   goes on */ kernel k() -> (B: f32[])\n    {\n  B[] = 1;         // one\n"
          "  let longer = 2;  // two\n\n  B[] =\n      3  // three\n      ;\n  // last\n}\nschedule k {}  // "
          "end\n");
  FORMATS(
      "kernel k(A: f32[n],\n B: f32[n]) -> (C: f32[n]) {\nfor i in n {\nC[i] = sum(j in m) {\nlet x = 1;\n"
      "x /* why */ * f(a,\nb)\n}\n/ 2;\n}\n}",
      "kernel k(A: f32[n],\n    B: f32[n]) -> (C: f32[n]) {\n  for i in n {\n    C[i] = sum(j in m) {\n"
      "      let x = 1;\n      x /* why */ * f(a,\n          b)\n    }\n    / 2;\n  }\n}\n");
  FORMATS("", "");
  FORMATS("//x\r\n//y\r\n", "//x\n//y\n");
}

Test(parse, formatting_refuses_what_does_not_parse) {
  uint32_t file = diag_add_source(&diag, "a.red", "kernel", 6);
  cr_assert(!red_format(&diag, file, &other));
  cr_assert_eq(diag.error_count, 1);
  cr_assert_eq(other.length, 0);
}

// Pass `check` seen from its result: entries, stages, their names and axes, types and requirements. Its errors are golden tests.
#include <criterion/criterion.h>
#include <string.h>

#include "compiler/pipeline.h"

static struct compilation c;
static struct text shown;

static void begin(void) { compilation_init(&c); }
static void end(void) {
  text_free(&shown);
  compilation_destroy(&c);
}
TestSuite(check, .init = begin, .fini = end);

static void define_type(const char *name, enum type type) {
  struct define *d = arena_new(&c.arena, struct define);
  d->name = name;
  d->is_type = true;
  d->type = type;
  list_push(&c.arena, &c.options.defines, d);
}

static void define_size(const char *name, int64_t value) {
  struct define *d = arena_new(&c.arena, struct define);
  d->name = name;
  d->integer = value;
  list_push(&c.arena, &c.options.defines, d);
}

static struct ir_kernel *check(const char *text) {
  bool good = compilation_parse_text(&c, "k.red", text, strlen(text)) && compilation_check(&c);
  if (!good) {
    struct diag_style style = {0};
    diag_print(&c.diag, &style, &shown);
  }
  cr_assert(good, "%s", shown.data);
  return list_at(&c.module.kernels, struct ir_kernel, 0);
}

static struct ir_entry *entry(struct ir_kernel *kernel, uint32_t which) { return list_at(&kernel->entries, struct ir_entry, which); }
static struct ir_stage *stage(struct ir_kernel *kernel, uint32_t which) { return list_at(&entry(kernel, 0)->stages, struct ir_stage, which); }

// "i j*": the axes of a stage, reduction axes with a star.
static const char *axes(const struct ir_stage *stage) {
  const char *all = "";
  for (uint32_t i = 0; i < stage->axes.count; i++) {
    const struct ir_stage_axis *axis = stage->axes.at[i];
    all = arena_printf(&c.arena, "%s%s%s%s", all, *all ? " " : "", axis->axis->var->label, axis->is_reduction ? "*" : "");
  }
  return all;
}

static const char *spelled(const struct ir_expr *e) {
  struct text text = {0};
  ir_print_expr(e, &text);
  const char *copy = arena_strdup(&c.arena, text.data);
  text_free(&text);
  return copy;
}

static bool requires(const struct ir_kernel *kernel, const char *message) {
  for (uint32_t i = 0; i < kernel->requirements.count; i++)
    if (strcmp(list_at(&kernel->requirements, struct ir_requirement, i)->message, message) == 0) return true;
  return false;
}

Test(check, a_reduction_and_its_store_are_stages_of_one_name) {
  struct ir_kernel *k = check("kernel k(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }");
  cr_assert_eq(entry(k, 0)->stages.count, 2);
  cr_expect_str_eq(stage(k, 0)->label, "B");
  cr_expect_str_eq(stage(k, 1)->label, "B");
  cr_expect_str_eq(axes(stage(k, 0)), "i j*");
  cr_expect_str_eq(axes(stage(k, 1)), "i");
}

Test(check, a_let_names_its_stage_and_a_second_assignment_gets_a_number) {
  struct ir_kernel *k = check("kernel k(A: f32[n]) -> (B: f32[n]) {\n"
                              "  let top = max(i in n) A[i];\n"
                              "  B[0] = top;  for i in 1..n { B[i] = A[i]; }\n"
                              "}");
  cr_expect_str_eq(stage(k, 0)->label, "top");
  cr_expect_str_eq(stage(k, 1)->label, "B");
  cr_expect_str_eq(stage(k, 2)->label, "B#2");
}

Test(check, a_reduction_is_outside_the_axes_that_it_does_not_mention) {
  struct ir_kernel *k = check("kernel k(A: f32[n, m], X: f32[m]) -> (B: f32[n], C: f32[n]) {\n"
                              "  for i in n { B[i] = A[i, 0] * max(j in m) X[j]; C[i] = sum(j in m if i < 3) X[j]; }\n"
                              "}");
  cr_expect_str_eq(axes(stage(k, 0)), "j*");
  cr_expect_str_eq(axes(stage(k, 2)), "i j*", "the guard mentions i");
}

Test(check, what_depends_on_a_value_is_where_the_value_is) {
  struct ir_kernel *k = check("kernel k(A: f32[n, m], X: f32[m]) -> (B: f32[n]) {\n"
                              "  for i in n { let s = sum(j in m) A[i, j]; B[i] = max(j in m) (X[j] - s); }\n"
                              "}");
  cr_expect_str_eq(axes(stage(k, 1)), "i j*");
}

Test(check, a_triangle_takes_the_axis_that_its_range_mentions) {
  struct ir_kernel *k = check("kernel k(X: f32[n]) -> (B: f32[n]) { for i in n { B[i] = sum(j in 0..i + 1) X[j]; } }");
  cr_expect_str_eq(axes(stage(k, 0)), "i j*");
}

Test(check, a_range_that_does_not_begin_at_zero_is_derived) {
  struct ir_kernel *k = check("kernel k(X: f32[n]) -> (B: f32[n]) { for i in 2..n { B[i] = X[i]; } }");
  cr_assert_eq(stage(k, 0)->derived.count, 1);
  const struct ir_stmt *let = stage(k, 0)->derived.at[0];
  cr_expect_str_eq(let->var->label, "i");
}

Test(check, every_schedule_has_two_entries_and_the_compilers_own_closes_the_list) {
  struct ir_kernel *k = check("kernel k(A: f32[n]) -> (B: f32[n]) { for i in n { B[i] = A[i]; } }\n"
                              "schedule k as small when n < 4 { bind i -> block.x; }\n"
                              "schedule k when n < 8 { bind i -> block.x; }\n"
                              "schedule k when n < 9 { bind i -> block.x; }");
  const char *names[] = {"k_small", "k_small_general", "k", "k_general", "k_2", "k_2_general", "k_map", "k_map_general", "k_map_odd", "k_map_odd_general"};
  cr_assert_eq(k->entries.count, 10);
  for (uint32_t i = 0; i < 10; i++) {
    cr_expect_str_eq(entry(k, i)->name, names[i]);
    cr_expect_eq(entry(k, i)->is_general, i % 2 == 1);
  }
}

Test(check, a_schedule_without_a_condition_closes_the_list) {
  struct ir_kernel *k = check("kernel k(A: f32[n]) -> (B: f32[n]) { for i in n { B[i] = A[i]; } }\n"
                              "schedule k { bind i -> block.x; }\n"
                              "schedule k as never { bind i -> block.x; }");
  cr_expect_eq(k->entries.count, 2);
}

Test(check, every_type_of_a_parameter_is_a_kernel) {
  define_type("T", TYPE_F16);
  define_type("T", TYPE_I8);
  check("kernel k<T>(A: T[n]) -> (B: T[n]) { for i in n { B[i] = A[i]; } }");
  cr_assert_eq(c.module.kernels.count, 2);
  cr_expect_str_eq(list_at(&c.module.kernels, struct ir_kernel, 0)->name, "k_f16");
  cr_expect_str_eq(list_at(&c.module.kernels, struct ir_kernel, 1)->name, "k_i8");
}

Test(check, halves_are_reduced_in_f32) {
  struct ir_kernel *k = check("kernel k(A: bf16[n, m]) -> (B: bf16[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }");
  cr_expect_eq(list_at(&stage(k, 0)->results, struct ir_var, 0)->type, TYPE_F32);
  cr_expect_eq(stage(k, 1)->value->type, TYPE_BF16);
}

Test(check, a_move_of_halves_converts_nothing) {
  struct ir_kernel *k = check("kernel k(A: f16[n]) -> (B: f16[n]) { for i in n { B[i] = A[i]; } }");
  cr_expect_eq(stage(k, 0)->value->op, OP_LOAD);
}

Test(check, reducers_are_made_once_a_type) {
  check("reducer top<T>(v: T) { identity (0); combine(a, b) { a > b ? a : b } }\n"
        "kernel k(A: i32[n, m], C: u8[n, m]) -> (B: i32[n], D: u8[n], E: i32[n]) {\n"
        "  for i in n { B[i] = top(j in m) A[i, j]; D[i] = top(j in m) C[i, j]; E[i] = top(j in m) A[i, j]; }\n"
        "}");
  cr_expect_eq(c.module.reducers.count, 2);
}

Test(check, sizes_in_formulas_are_requirements) {
  struct ir_kernel *k = check("kernel k(A: f32[n * m], C: f32[n], D: f32[m]) -> (B: f32[n]) {\n"
                              "  for i in n { B[i] = sum(j in m) A[i * m + j]; }\n"
                              "}");
  cr_expect(requires(k, "dimension 0 of 'A' is not n * m"));
  cr_expect(requires(k, "dimension 0 of 'B' is not n"));
  cr_expect_eq(k->requirements.count, 2, "everything else is proved");
}

Test(check, bounds_that_sizes_decide_are_requirements_of_the_launch) {
  struct ir_kernel *k = check("kernel k(A: f32[n], P: i64[m]) -> (B: f32[m], C: f32[]) {\n"
                              "  C[] = A[3];\n"
                              "  for i in m { B[i] = A[min(max(P[i], 0), n - 1)]; }\n"
                              "}");
  cr_expect(requires(k, "index 0 of 'A', 3, can reach the extent for these sizes"));
  cr_expect(requires(k, "index 0 of 'A', min(max(P[i], 0), n - 1), can be negative for these sizes"));
}

Test(check, a_wide_value_is_clamped_before_it_is_an_index) {
  struct ir_kernel *k = check("kernel k(A: f32[n], P: i64[m]) -> (B: f32[m]) { for i in m { B[i] = A[min(max(P[i], 0), n - 1)]; } }");
  const struct ir_expr *index = stage(k, 0)->value->args[0];
  cr_expect_eq(index->op, OP_CAST, "%s", spelled(index));
  cr_expect_eq(index->args[0]->type, TYPE_I64);
}

Test(check, given_sizes_are_constants) {
  define_size("m", 12);
  struct ir_kernel *k = check("kernel k(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }");
  const struct ir_stage_axis *j = stage(k, 0)->axes.at[1];
  cr_expect(ir_const_is(j->axis->extent, 12));
  cr_expect(requires(k, "dimension 1 of 'A' is not m"));
}

Test(check, named_strides_are_taken_at_launch_and_fixed_ones_required) {
  struct ir_kernel *k = check("kernel k(A: f32[n, m] strided(p, 1)) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }");
  bool found = false;
  for (uint32_t i = 0; i < k->sizes.count; i++) {
    const struct ir_var *size = k->sizes.at[i];
    if (strcmp(size->label, "p") == 0) found = size->inferred && size->inferred->op == OP_STRIDE;
  }
  cr_expect(found);
  cr_expect(requires(k, "stride 1 of 'A' is not as declared"));
}

Test(check, a_long_chain_of_lets_is_no_deep_recursion, .timeout = 30) {
  struct text source = {0};
  text_puts(&source, "kernel k(A: f32[n]) -> (B: f32[n]) { for i in n { let x = A[i];\n");
  for (int i = 0; i < 20000; i++) text_puts(&source, "let x = x + 1;\n");
  text_puts(&source, "if x > 0 { B[i] = x; } } }");
  bool parsed = compilation_parse_text(&c, "k.red", source.data, source.length);
  if (parsed) compilation_check(&c); // accepted or refused, never a fault
  text_free(&source);
  cr_expect(parsed);
  cr_expect_not(c.diag.internal);
}

Test(check, lets_that_double_are_no_explosion, .timeout = 30) {
  struct text source = {0};
  text_puts(&source, "kernel k(A: f32[n]) -> (B: f32[n]) { for i in n { let x = A[i];\n");
  for (int i = 0; i < 60; i++) text_puts(&source, "let x = x + x;\n");
  text_puts(&source, "if x > 0 { B[i] = x; } } }");
  bool parsed = compilation_parse_text(&c, "k.red", source.data, source.length);
  if (parsed) compilation_check(&c);
  text_free(&source);
  cr_expect(parsed);
  cr_expect_not(c.diag.internal);
}

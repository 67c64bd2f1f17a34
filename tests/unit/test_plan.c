#include "compiler/plan_build.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char sample[] =
    "// red.plan version 1\n"
    "// red.plan kernel rowsum\n"
    "// red.plan size n [dim:0:0]\n"
    "// red.plan size m 11 [dim:0:1]\n"
    "// red.plan size k given\n"
    "// red.plan scalar alpha f32\n"
    "// red.plan scalar c i32\n"
    "// red.plan tensor A f32 input dense [s0] [s1]\n"
    "// red.plan tensor B f32 output strided [s0] strides [stride:1:0]\n"
    "// red.plan require [s0 100 le] \"n is at most \\\"100\\\"\"\n"
    "// red.plan entry rowsum_wide schedule wide\n"
    "// red.plan when [s0 8 ge arch 80 ge and]\n"
    "// red.plan assume [address:0 16 mod 0 eq] \"A is aligned to 16 bytes\"\n"
    "// red.plan workspace [s0 4 mul]\n"
    "// red.plan launch rowsum_wide grid [s0 7 add 8 div] [1] [1] block 32 8 1 shared [s2]\n"
    "// red.plan argument tensor 0\n"
    "// red.plan argument scalar 0\n"
    "// red.plan argument integer 8 [s0]\n"
    "// red.plan entry rowsum schedule \"\"\n"
    "// red.plan launch rowsum grid [s0] [1] [1] block 11 1 1 shared []\n"
    "// red.plan argument tensor 0\n"
    "// red.plan argument tensor 1\n"
    "// red.plan argument integer 4 [s0 a1 wrap:s8 add -1 min]\n"
    "// red.plan end\n";

static struct plan parse(const char *text) {
  struct plan plan;
  char error[256] = "";
  plan_init(&plan);
  cr_assert(plan_parse(&plan, text, strlen(text), error, sizeof error), "%s", error);
  return plan;
}

// A launch of the sample, changed by the tests.
struct launch {
  int64_t a_dims[2], a_strides[2], b_dims[1], b_strides[1], sizes[3];
  union plan_number scalars[2];
  struct plan_tensor_value tensors[2];
  struct plan_input input;
};
static void set_up(struct launch *l) {
  *l = (struct launch){
      .a_dims = {20, 11}, .a_strides = {11, 1}, .b_dims = {20}, .b_strides = {3}, .sizes = {0, 0, 1024}};
  l->scalars[0].number = 2.5;
  l->scalars[1].integer = 300;
  l->tensors[0] = (struct plan_tensor_value){PLAN_F32, 2, l->a_dims, NULL, 0x1000};
  l->tensors[1] = (struct plan_tensor_value){PLAN_F32, 1, l->b_dims, l->b_strides, 0x8004};
  l->input = (struct plan_input){l->tensors, l->scalars, l->sizes, {132, 90, 232448}};
}

static enum plan_status evaluate(struct launch *l, struct plan_result *result) {
  struct plan plan = parse(sample);
  enum plan_status status = plan_evaluate(&plan.kernels[0], &l->input, result);
  if (status == PLAN_OK && !result->notes[0]) // the name, which dies with the plan
    snprintf(result->notes, sizeof result->notes, "%s", result->entry->name);
  plan_destroy(&plan);
  return status;
}

Test(plan, prints_what_it_read) {
  struct plan plan = parse(sample);
  char *text = plan_print(&plan);
  cr_assert_str_eq(text, sample);
  free(text);
  plan_destroy(&plan);
}

Test(plan, stands_among_ptx) {
  char text[4096];
  snprintf(text, sizeof text, "%s\n.version 7.8\n.target sm_90\n// red.plans are lines with this prefix\n",
           sample);
  struct plan plan = parse(text);
  cr_assert_eq(plan.kernel_count, 1);
  cr_assert(plan_find(&plan, "rowsum") == &plan.kernels[0]);
  cr_assert_null(plan_find(&plan, "colsum"));
  plan_destroy(&plan);
}

Test(plan, names_with_any_character) {
  struct plan plan = parse(sample);
  plan.kernels[0].requirements[0].message = "\t\"q\" \\ \xc3\xa9 [x]";
  char *text = plan_print(&plan);
  struct plan again = parse(text);
  cr_assert_str_eq(again.kernels[0].requirements[0].message, "\t\"q\" \\ \xc3\xa9 [x]");
  free(text);
  plan_destroy(&plan);
  plan_destroy(&again);
}

Test(plan, first_entry_that_fits) {
  struct launch l;
  struct plan_result r;
  set_up(&l);
  cr_assert_eq(evaluate(&l, &r), PLAN_OK, "%s", r.message);
  cr_assert_str_eq(r.notes, "rowsum_wide");
  cr_assert_eq(r.sizes[0], 20);
  cr_assert_eq(r.sizes[1], 11);
  cr_assert_eq(r.launch_count, 1);
  cr_assert_eq(r.launches[0].grid[0], 3);
  cr_assert_eq(r.launches[0].shared, 1024);
  cr_assert_eq(r.workspace, 80);
  cr_assert_eq(r.launches[0].arguments[0], 0x1000);
  cr_assert_eq(r.launches[0].arguments[1], 0x40200000); // 2.5f
  cr_assert_eq(r.launches[0].arguments[2], 20);
}

Test(plan, passes_over_when_and_assumptions) {
  struct launch l;
  struct plan_result r;
  set_up(&l);
  l.tensors[0].address = 0x1008;
  cr_assert_eq(evaluate(&l, &r), PLAN_OK);
  cr_assert_str_eq(r.notes, "rowsum_wide passed over: A is aligned to 16 bytes\n");
  cr_assert_eq(r.launches[0].grid[0], 20);
  cr_assert_eq((int64_t)r.launches[0].arguments[2], -1);
  set_up(&l);
  l.a_dims[0] = l.b_dims[0] = 7;
  cr_assert_eq(evaluate(&l, &r), PLAN_OK);
  cr_assert_str_eq(r.notes, "rowsum");
  set_up(&l);
  l.input.facts.arch = 75;
  cr_assert_eq(evaluate(&l, &r), PLAN_OK);
  cr_assert_str_eq(r.notes, "rowsum");
  set_up(&l);
  l.sizes[2] = 232449;
  cr_assert_eq(evaluate(&l, &r), PLAN_OK);
  cr_assert_str_eq(r.notes,
                   "rowsum_wide passed over: 232449 bytes of shared memory, a block may have 232448\n");
}

Test(plan, empty_grids_launch_nothing) {
  struct launch l;
  struct plan_result r;
  set_up(&l);
  l.a_dims[0] = l.b_dims[0] = 0;
  l.tensors[0].address = l.tensors[1].address = 0;
  cr_assert_eq(evaluate(&l, &r), PLAN_OK, "%s", r.message);
  cr_assert_eq(r.launch_count, 0);
}

#define REFUSES(change, status, text)                                                                        \
  do {                                                                                                       \
    struct launch l;                                                                                         \
    struct plan_result r;                                                                                    \
    set_up(&l);                                                                                              \
    change;                                                                                                  \
    cr_expect_eq(evaluate(&l, &r), status);                                                                  \
    cr_expect_str_eq(r.message, text);                                                                       \
  } while (0)

Test(plan, refusals_name_names_and_numbers) {
  REFUSES(l.tensors[0].type = PLAN_F16, PLAN_TYPE_MISMATCH,
          "A: the argument has elements of type f16, the kernel's are f32");
  REFUSES(l.tensors[0].rank = 1, PLAN_RANK, "A: the argument has rank 1, the kernel's tensor has rank 2");
  REFUSES(l.a_dims[0] = -5, PLAN_SHAPE, "A: extent -5 in dimension 0 is negative");
  REFUSES(l.b_dims[0] = 19, PLAN_SHAPE,
          "B: extent 19 in dimension 0, but the kernel needs 20 (n = 20 comes from A, dimension 0)");
  REFUSES(l.a_dims[1] = 12, PLAN_SHAPE,
          "A: extent 12 in dimension 1, but the kernel needs 11 (m = 11 was given at compile time)");
  REFUSES(l.sizes[2] = -1, PLAN_SHAPE, "size k is -1, which is negative");
  REFUSES(l.tensors[0].strides = l.a_strides; l.a_strides[0] = 12, PLAN_STRIDE,
                                              "A: stride 12 in dimension 0, but the kernel needs 11 (its "
                                              "tensors are row-major; declare it `strided`)");
  REFUSES(l.tensors[0].address = 0, PLAN_NULL, "A: the address is null");
  REFUSES(l.tensors[0].address = 0x1002, PLAN_MISALIGNED,
          "A: address 0x1002 is not aligned to the element's 4 bytes");
  REFUSES(l.b_strides[0] = 0, PLAN_ALIAS, "B: the strides give two elements of an output one address");
  REFUSES(l.tensors[1].address = 0x1000 + 4 * 219, PLAN_OVERLAP,
          "A and B overlap in memory; an output may overlap nothing");
  REFUSES(l.a_dims[0] = l.b_dims[0] = 101, PLAN_REQUIREMENT, "n is at most \"100\": n = 101");
}

Test(plan, neighbours_do_not_overlap) {
  struct launch l;
  struct plan_result r;
  set_up(&l);
  l.tensors[1].address = 0x1000 + 4 * 220;
  cr_assert_eq(evaluate(&l, &r), PLAN_OK);
  l.b_strides[0] = -3; // the last element is right behind A
  l.tensors[1].address = 0x1000 + 4 * (220 + 57);
  cr_assert_eq(evaluate(&l, &r), PLAN_OK);
  l.tensors[1].address -= 4;
  cr_assert_eq(evaluate(&l, &r), PLAN_OVERLAP);
}

Test(plan, strides_of_extents_of_one_are_ignored) {
  struct launch l;
  struct plan_result r;
  set_up(&l);
  l.a_dims[0] = l.b_dims[0] = 1;
  l.tensors[0].strides = l.a_strides;
  l.a_strides[0] = -77;
  l.b_strides[0] = 0;
  cr_assert_eq(evaluate(&l, &r), PLAN_OK, "%s", r.message);
}

Test(plan, columns_of_one_buffer_do_not_overlap) {
  static const char text[] =
      "// red.plan version 1\n// red.plan kernel k\n// red.plan tensor A f32 input strided [4] [3]\n"
      "// red.plan tensor B f32 output strided [4] [3]\n// red.plan entry k schedule \"\"\n"
      "// red.plan launch k grid [1] [1] [1] block 1 1 1 shared []\n// red.plan end\n";
  struct plan plan = parse(text);
  int64_t dims[2] = {4, 3}, strides[2] = {8, 1};
  struct plan_tensor_value tensors[2] = {{PLAN_F32, 2, dims, strides, 0x1000},
                                         {PLAN_F32, 2, dims, strides, 0x100c}};
  struct plan_input input = {tensors, NULL, NULL, {1, 90, 49152}};
  struct plan_result result;
  cr_expect_eq(plan_evaluate(&plan.kernels[0], &input, &result), PLAN_OK);
  for (int i = -16; i <= 16; i++) { // by brute force
    bool overlap = false;
    for (int a = 0; a < 12; a++)
      for (int b = 0; b < 12; b++) overlap |= a / 3 * 8 + a % 3 == b / 3 * 8 + b % 3 + i;
    tensors[1].address = (uint64_t)(0x1000 + 4 * i);
    enum plan_status status = plan_evaluate(&plan.kernels[0], &input, &result);
    cr_expect_eq(status, overlap ? PLAN_OVERLAP : PLAN_OK, "%d", i);
  }
  plan_destroy(&plan);
}

static int64_t value_of(const char *expr) {
  char text[1024];
  snprintf(text, sizeof text,
           "// red.plan version 1\n// red.plan kernel k\n// red.plan size k given\n// red.plan scalar c u64\n"
           "// red.plan require [%s] x\n// red.plan entry k schedule \"\"\n"
           "// red.plan launch k grid [1] [1] [1] block 1 1 1 shared []\n// red.plan end\n",
           expr);
  struct plan plan = parse(text);
  union plan_number scalar = {.integer = -1};
  int64_t sizes[1] = {5};
  struct plan_input input = {.scalars = &scalar, .facts = {132, 90, 1000}};
  int64_t value = plan_compute(&plan.kernels[0].requirements[0].condition, &plan.kernels[0], &input, sizes);
  plan_destroy(&plan);
  return value;
}

Test(plan, expressions) {
  static const struct {
    const char *expr;
    int64_t value;
  } table[] = {
      {"7 2 sub 3 mul", 15},
      {"-7 2 div", -3},
      {"-7 2 mod", -1},
      {"7 0 div", -1},
      {"7 0 mod", 7},
      {"5 3 min", 3},
      {"5 3 max", 5},
      {"s0", 5},
      {"sms arch add", 222},
      {"shared", 1000},
      {"1 2 3 select", 2},
      {"0 2 3 select", 3},
      {"12 10 and", 8},
      {"12 10 or", 14},
      {"12 10 xor", 6},
      {"5 not", 0},
      {"0 not", 1},
      {"3 neg", -3},
      {"-3 abs", 3},
      {"3 4 shl", 48},
      {"-48 4 shr", -3},
      {"1 65 shl", 2},
      {"2 3 lt", 1},
      {"3 3 lt", 0},
      {"3 3 le", 1},
      {"4 3 gt", 1},
      {"3 3 ge", 1},
      {"3 3 eq", 1},
      {"3 3 ne", 0},
      {"300 wrap:u8", 44},
      {"200 wrap:s8", -56},
      {"9223372036854775807 1 add", INT64_MAX},
      {"-9223372036854775808 1 sub", INT64_MIN},
      {"4611686018427387904 2 mul", INT64_MAX},
      {"4611686018427387904 -3 mul", INT64_MIN},
      {"-9223372036854775808 -1 div", INT64_MAX},
      {"-9223372036854775808 -1 mod", 0},
      {"-9223372036854775808 neg", INT64_MAX},
      {"-9223372036854775808 abs", INT64_MAX},
      {"1 63 shl", INT64_MAX},
      {"a0", INT64_MAX},
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    cr_expect_eq(value_of(table[i].expr), table[i].value, "%s", table[i].expr);
}

static void is_malformed(const char *line, const char *message) {
  char text[2048], error[256] = "";
  snprintf(text, sizeof text,
           "// red.plan version 1\n// red.plan kernel k\n// red.plan tensor A f32 input dense [3]\n// "
           "red.plan scalar x f32\n"
           "// red.plan entry k schedule \"\"\n// red.plan launch k grid [1] [1] [1] block 1 1 1 shared []\n"
           "%s\n// red.plan end\n",
           line);
  struct plan plan;
  plan_init(&plan);
  cr_expect(!plan_parse(&plan, text, strlen(text), error, sizeof error), "%s", line);
  cr_expect_str_eq(error, message, "%s: %s", line, error);
  cr_expect_eq(plan.kernel_count, 0);
}

Test(plan, malformed_lines) {
  is_malformed("// red.plan version 2",
               "malformed plan, line 7: it has version 2; this runtime reads version 1");
  is_malformed("// red.plan nonsense", "malformed plan, line 7: unknown line");
  is_malformed("// red.plan require [1 add] x",
               "malformed plan, line 8: kernel k: requirement x: an operand is missing");
  is_malformed("// red.plan require [1 1] x",
               "malformed plan, line 8: kernel k: requirement x: more than one value");
  is_malformed("// red.plan require [s0] x", "malformed plan, line 8: kernel k: requirement x: no such size");
  is_malformed("// red.plan require [dim:0:1] x",
               "malformed plan, line 8: kernel k: requirement x: no such dimension");
  is_malformed("// red.plan require [dim:1:0] x",
               "malformed plan, line 8: kernel k: requirement x: no such tensor");
  is_malformed("// red.plan require [a0] x",
               "malformed plan, line 8: kernel k: requirement x: the scalar is not an integer");
  is_malformed("// red.plan require [wrap:s65] x",
               "malformed plan, line 8: kernel k: requirement x: illegal width");
  is_malformed("// red.plan require [foo] x", "malformed plan, line 7: unknown operation 'foo'");
  is_malformed("// red.plan require [9223372036854775808] x",
               "malformed plan, line 7: unknown operation '9223372036854775808'");
  is_malformed("// red.plan require [1] \"x", "malformed plan, line 7: a text is not closed");
  is_malformed("// red.plan require [1] \"x\\", "malformed plan, line 7: a text is not closed");
  is_malformed("// red.plan require [1] \"\\q\"", "malformed plan, line 7: malformed escape");
  is_malformed("// red.plan require [1", "malformed plan, line 7: ']' is missing");
  is_malformed("// red.plan require [1] x y", "malformed plan, line 7: more than the line may have");
  is_malformed("// red.plan size n [s0]", "malformed plan, line 8: kernel k: size n: no such size");
  is_malformed("// red.plan argument tensor 1", "malformed plan, line 7: 1 is out of range");
  is_malformed("// red.plan argument integer 5 [1]",
               "malformed plan, line 7: an integer argument has 4 or 8 bytes");
  is_malformed("// red.plan launch k grid [1] [1] [1] block 1024 2 1 shared []",
               "malformed plan, line 7: more than 1024 threads");
  is_malformed("// red.plan kernel k", "malformed plan, line 7: 'end' is missing");
  is_malformed("// red.plan end\n// red.plan kernel k",
               "malformed plan, line 8: kernel k stands there twice");
}

Test(plan, needs_a_plan) {
  struct plan plan;
  char error[256];
  plan_init(&plan);
  cr_assert(!plan_parse(&plan, ".version 7.8\n", 13, error, sizeof error));
  cr_assert_str_eq(error, "no plan: the text has no line that begins with '// red.plan '");
}

// However a plan is damaged, it is refused or can still be evaluated.
Test(plan, survives_damage) {
  size_t length = strlen(sample);
  struct launch l;
  static struct plan_result result;
  set_up(&l);
  for (size_t at = 0; at < length; at++)
    for (int way = 0; way < 4; way++) {
      static const char bytes[] = {0, '9', ']', ' '};
      char *text = malloc(length + 1), error[256];
      memcpy(text, sample, length + 1);
      text[at] = bytes[way];
      struct plan plan;
      plan_init(&plan);
      if (plan_parse(&plan, text, way == 0 ? at : length, error, sizeof error)) {
        const struct plan_kernel *kernel = &plan.kernels[0];
        if (plan.kernel_count && kernel->tensor_count <= 2 && kernel->scalar_count <= 2 &&
            kernel->size_count <= 3)
          plan_evaluate(kernel, &l.input, &result);
      }
      plan_destroy(&plan);
      free(text);
    }
  cr_assert(true);
}

// --- From IR
// ----------------------------------------------------------------------------------------------------------

static struct list parameters(struct arena *arena, struct ir_kernel *kernel, struct ir_entry *entry) {
  (void)entry;
  struct list list = {0};
  for (uint32_t i = 0; i < kernel->tensors.count; i++) {
    struct plan_parameter *p = arena_new(arena, struct plan_parameter);
    p->tensor = list_at(&kernel->tensors, struct ir_mem, i);
    list_push(arena, &list, p);
  }
  struct plan_parameter *p = arena_new(arena, struct plan_parameter);
  p->integer = ir_ref(arena, list_at(&kernel->sizes, struct ir_var, 0));
  list_push(arena, &list, p);
  return list;
}

Test(plan, built_from_ir) {
  struct arena arena;
  struct diag diag;
  arena_init(&arena);
  diag_init(&diag, &arena);
  struct ir_module module = {.arena = &arena, .diag = &diag};
  struct ir_mem a = {.name = "A", .label = "A", .type = TYPE_F16, .alignment = 2};
  struct ir_var n = {.name = "n", .label = "n", .kind = VAR_SIZE, .type = TYPE_I64};
  struct ir_var c = {.name = "c", .label = "c", .kind = VAR_SCALAR, .type = TYPE_U8};
  n.inferred = ir_fact(&arena, OP_DIM, &a, 0);
  list_push(&arena, &a.dims, ir_ref(&arena, &n));
  list_push(&arena, &a.strides, ir_int(&arena, TYPE_I64, 1));
  struct ir_kernel kernel = {.name = "k", .label = "k"};
  map_init(&kernel.names, &arena);
  list_push(&arena, &kernel.sizes, &n);
  list_push(&arena, &kernel.scalars, &c);
  list_push(&arena, &kernel.tensors, &a);
  struct ir_expr *sum = ir_binary(&arena, OP_ADD, ir_ref(&arena, &c), ir_int(&arena, TYPE_U8, 7));
  struct ir_requirement requirement = {
      ir_binary(&arena, OP_LT, ir_cast(&arena, TYPE_I64, sum), ir_ref(&arena, &n)), "c", {0}};
  list_push(&arena, &kernel.requirements, &requirement);
  struct ir_entry entry = {.name = "k_x", .schedule = "x", .level = LEVEL_PROGRAM, .block = {32, 1, 1}};
  entry.grid[0] = ir_binary(&arena, OP_MAX, ir_ref(&arena, &n), ir_int(&arena, TYPE_I64, 1));
  list_push(&arena, &kernel.entries, &entry);
  list_push(&arena, &module.kernels, &kernel);
  struct plan plan;
  plan_init(&plan);
  cr_assert(plan_build(&plan, &module, parameters));
  char *text = plan_print(&plan);
  cr_expect_str_eq(text, "// red.plan version 1\n"
                         "// red.plan kernel k\n"
                         "// red.plan size n [dim:0:0]\n"
                         "// red.plan scalar c u8\n"
                         "// red.plan tensor A f16 input dense [s0]\n"
                         "// red.plan require [a0 7 add wrap:u8 s0 lt] c\n"
                         "// red.plan entry k_x schedule x\n"
                         "// red.plan launch k_x grid [s0 1 max] [1] [1] block 32 1 1 shared []\n"
                         "// red.plan argument tensor 0\n"
                         "// red.plan argument integer 8 [s0]\n"
                         "// red.plan end\n");
  free(text);
  plan_destroy(&plan);
  // What has no place in a plan is reported.
  struct ir_var local = {.name = "i", .label = "i", .kind = VAR_LET, .type = TYPE_I64};
  entry.grid[0] = ir_ref(&arena, &local);
  plan_init(&plan);
  cr_assert(!plan_build(&plan, &module, parameters));
  cr_assert_eq(diag.error_count, 1);
  plan_destroy(&plan);
  arena_destroy(&arena);
}

// Two launches with a workspace: what each gets of it moves with its place, and may move again.
static const char launches[] =
    "// red.plan version 1\n"
    "// red.plan kernel total\n"
    "// red.plan size n [dim:0:0]\n"
    "// red.plan tensor A f32 input dense [s0]\n"
    "// red.plan tensor S f32 output dense\n"
    "// red.plan entry total schedule \"\"\n"
    "// red.plan workspace [s0 4 mul 65536 add]\n"
    "// red.plan zeroed [65536]\n"
    "// red.plan launch total grid [s0] [1] [1] block 32 1 1 shared []\n"
    "// red.plan argument tensor 0\n"
    "// red.plan argument workspace [65536]\n"
    "// red.plan launch total_2 grid [1] [1] [1] block 32 1 1 shared [] programmatic\n"
    "// red.plan argument tensor 1\n"
    "// red.plan argument workspace [65536 s0 add]\n"
    "// red.plan end\n";

Test(plan, a_workspace_is_placed) {
  struct plan plan = parse(launches);
  int64_t dims[1] = {20};
  struct plan_tensor_value tensors[2] = {{PLAN_F32, 1, dims, NULL, 0x1000}, {PLAN_F32, 0, NULL, NULL, 0x2000}};
  struct plan_input input = {tensors, NULL, NULL, {132, 90, 232448}};
  struct plan_result r;
  cr_assert_eq(plan_evaluate(&plan.kernels[0], &input, &r), PLAN_OK, "%s", r.message);
  cr_assert_eq(r.launch_count, 2);
  cr_assert_eq(r.workspace, 65616);
  cr_assert_eq(r.zeroed, 65536);
  cr_assert(!r.launches[0].launch->is_programmatic && r.launches[1].launch->is_programmatic);
  for (uint64_t place = 0x100000; place <= 0x300000; place += 0x100000) {
    plan_place_workspace(&r, place);
    cr_assert_eq(r.launches[0].arguments[0], 0x1000);
    cr_assert_eq(r.launches[0].arguments[1], place + 65536);
    cr_assert_eq(r.launches[1].arguments[1], place + 65556);
  }
  char *text = plan_print(&plan);
  cr_assert_str_eq(text, launches);
  free(text);
  plan_destroy(&plan);
}

Test(plan, a_workspace_argument_needs_a_workspace) {
  static const char lines[] = "// red.plan version 1\n// red.plan kernel k\n// red.plan entry k schedule \"\"\n"
                              "// red.plan launch k grid [1] [1] [1] block 1 1 1 shared []\n// red.plan argument workspace [0]\n// red.plan end\n";
  struct plan plan;
  char error[256] = "";
  plan_init(&plan);
  cr_assert(!plan_parse(&plan, lines, strlen(lines), error, sizeof error));
  cr_assert(strstr(error, "entry k has no workspace"), "%s", error);
}

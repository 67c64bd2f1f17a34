// The IR's text: what is printed reads back to the same, damaged text is refused with a message and its
// place.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "compiler/arith.h"
#include "tests/unit/ir_samples.h"

static void print_errors(const struct sample *s, struct text *out) {
  struct diag_style style = {0};
  diag_print(&s->diag, &style, out);
}

// ---- Round trips

// Checks that the module verifies and that its text, read, prints and verifies the same.
static void check_round_trip(struct sample *s) {
  struct text text = {0}, again = {0}, errors = {0};
  cr_assert(ir_verify(&s->module, "test", false), "%s", first_message(s));
  ir_print(&s->module, &text);
  struct sample back;
  bool good = sample_read(&back, text.data, text.length) && ir_verify(&back.module, "test", true);
  print_errors(&back, &errors);
  cr_assert(good, "%s\n%s", errors.data, text.data);
  ir_print(&back.module, &again);
  cr_assert_str_eq(again.data, text.data);
  text_free(&text);
  text_free(&again);
  text_free(&errors);
  sample_destroy(&back);
}

Test(ir_text, samples_read_back_to_the_same_text) {
  for (int kind = 0; kind < SAMPLE_COUNT; kind++) {
    struct sample s;
    sample_build(&s, (enum sample_kind)kind);
    check_round_trip(&s);
    sample_destroy(&s);
  }
}

Test(ir_text, samples_use_every_operation) {
  struct sample s;
  struct text text = {0};
  sample_build(&s, SAMPLE_OPERATIONS);
  ir_print(&s.module, &text);
  for (int op = 0; op < OP_COUNT; op++) {
    if (op == OP_CONST || op == OP_VAR) continue;
    char spelled[32];
    snprintf(spelled, sizeof spelled, " %s%s", op_table[op].spelling,
             op_table[op].rule == RULE_SPECIAL || op_table[op].rule == RULE_CONVERT ? "." : "(");
    char inside[32];
    snprintf(inside, sizeof inside, "(%s(", op_table[op].spelling);
    cr_expect(strstr(text.data, spelled) || strstr(text.data, inside), "no '%s'", op_table[op].spelling);
  }
  text_free(&text);
  sample_destroy(&s);
}

Test(ir_text, two_kernels_have_names_of_their_own) {
  struct sample s;
  sample_build(&s, SAMPLE_NESTS);
  build_update(&s);
  build_tuple(&s);
  check_round_trip(&s);
  sample_destroy(&s);
}

Test(ir_text, an_empty_module_is_its_head) {
  struct sample s;
  struct text text = {0};
  sample_init(&s);
  ir_print(&s.module, &text);
  cr_expect_str_eq(text.data, "red-ir 1\n");
  check_round_trip(&s);
  text_free(&text);
  sample_destroy(&s);
}

// The fields that the text leaves to be inferred come back, too.
Test(ir_text, fields_come_back) {
  struct sample s, back;
  struct text text = {0};
  sample_build(&s, SAMPLE_STAGES);
  ir_print(&s.module, &text);
  cr_assert(sample_read(&back, text.data, text.length));
  struct ir_kernel *kernel = list_at(&back.module.kernels, struct ir_kernel, 0);
  struct ir_entry *entry = list_at(&kernel->entries, struct ir_entry, 0);
  struct ir_stage *total = list_at(&entry->stages, struct ir_stage, 0);
  struct ir_stage *out = list_at(&entry->stages, struct ir_stage, 1);
  cr_expect_str_eq(kernel->label, "row sum");
  cr_expect_str_eq(list_at(&kernel->requirements, struct ir_requirement, 0)->message,
                   "k has a \"value\" \\ of\nsome kind\x01");
  cr_expect_eq(list_at(&total->derived, struct ir_stmt, 0)->var,
               list_at(&out->derived, struct ir_stmt, 0)->var, "stages share what both derive");
  cr_expect_eq(list_at(&total->axes, struct ir_stage_axis, 0)->axis,
               list_at(&out->axes, struct ir_stage_axis, 0)->axis);
  cr_expect_eq(total->reducer, list_at(&back.module.reducers, struct ir_reducer, 0));
  cr_expect_eq(list_at(&total->results, struct ir_var, 0)->kind, VAR_VALUE);
  struct ir_directive *bind = list_at(&entry->directives, struct ir_directive, 1);
  cr_expect_eq(bind->stages.count, 1);
  cr_expect_str_eq(list_at(&bind->stages, const char, 0), "");
  struct ir_directive *split = list_at(&entry->directives, struct ir_directive, 0);
  cr_expect_eq(split->factor->args[0]->var->kind, VAR_AXIS);
  cr_expect_str_eq(split->factor->args[0]->var->name, "S.j");
  cr_expect_str_eq(ir_fresh_name(kernel, "i"), "i_2", "names that were read are in use");
  text_free(&text);
  sample_destroy(&back);
  sample_destroy(&s);
}

// A statement that was read has its place in the original source, whatever sources are known beside it.
Test(ir_text, places_name_the_original_source) {
  struct sample s, back;
  struct text text = {0}, errors = {0};
  sample_build(&s, SAMPLE_STAGES);
  ir_print(&s.module, &text);
  cr_assert(sample_read(&back, text.data, text.length));
  struct ir_kernel *kernel = list_at(&back.module.kernels, struct ir_kernel, 0);
  struct ir_entry *entry = list_at(&kernel->entries, struct ir_entry, 0);
  diag_error(&back.diag, ERROR_BIND, list_at(&entry->axes, struct ir_axis, 0)->bound_at, "first");
  diag_error(&back.diag, ERROR_BIND, list_at(&back.module.reducers, struct ir_reducer, 0)->range, "second");
  print_errors(&back, &errors);
  cr_expect_str_eq(errors.data,
                   "reducers.red:4:1: error: second [E405]\nsample.red:5:3: error: first [E405]\n"
                   "2 errors generated.\n");
  text_free(&text);
  text_free(&errors);
  sample_destroy(&back);
  sample_destroy(&s);
}

// ---- Constants

static struct ir_entry *add_program(struct sample *s, struct ir_kernel **kernel) {
  *kernel = add_kernel(s, "k");
  return add_entry(s, *kernel, "k", LEVEL_PROGRAM);
}

// Reads what was printed of one constant and compares it bit by bit.
static void check_constant(enum type type, const void *bits) {
  struct sample s, back;
  struct text text = {0};
  struct ir_kernel *kernel;
  sample_init(&s);
  struct ir_entry *entry = add_program(&s, &kernel);
  struct ir_expr *e = ir_raw(&s.arena, OP_CONST, type, NULL, 0);
  memcpy(&e->number, bits, sizeof e->number);
  let(&s, kernel, &entry->body, "x", e, no_range);
  ir_print(&s.module, &text);
  cr_assert(sample_read(&back, text.data, text.length), "%s\n%s", first_message(&back), text.data);
  struct ir_kernel *read = list_at(&back.module.kernels, struct ir_kernel, 0);
  struct ir_entry *program = list_at(&read->entries, struct ir_entry, 0);
  struct ir_expr *value = list_at(&program->body, struct ir_stmt, 0)->value;
  cr_expect_eq(value->type, type);
  cr_expect_arr_eq(&value->number, bits, sizeof e->number, "%s", text.data);
  text_free(&text);
  sample_destroy(&back);
  sample_destroy(&s);
}

static void check_float(enum type type, double value) {
  check_constant(type, &value);
}

Test(ir_text, floats_keep_their_bits) {
  static const double values[] = {0.0,
                                  -0.0,
                                  1.0,
                                  0.1,
                                  1.0 / 3,
                                  1e-12,
                                  1e15,
                                  1e16,
                                  123456789.0,
                                  0.00001,
                                  0.00123,
                                  5e-324,
                                  1e308,
                                  -2.5,
                                  0x1p-149,
                                  0x1p127,
                                  3.4e38,
                                  1e-45,
                                  10.0,
                                  100.5,
                                  1e22,
                                  65504.0,
                                  INFINITY,
                                  -INFINITY,
                                  0x1.fffffep127,
                                  4503599627370497.5};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    check_float(TYPE_F64, values[i]);
    check_float(TYPE_F32, (double)(float)values[i]);
  }
  static const uint64_t nans[] = {0x7ff8000000000000, 0xfff8000000000000, 0x7ff8000020000000,
                                  0xffffffffe0000000};
  for (size_t i = 0; i < sizeof nans / sizeof *nans; i++) {
    check_constant(TYPE_F64, &nans[i]);
    check_constant(TYPE_F32, &nans[i]);
  }
  uint64_t state = 1;
  for (int i = 0; i < 500; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    double value;
    memcpy(&value, &state, sizeof value);
    if (isnan(value)) continue;
    check_float(TYPE_F64, value);
    check_float(TYPE_F32, (double)(float)value);
  }
}

Test(ir_text, integers_keep_their_bits) {
  static const int64_t values[] = {0, 1, -1, INT64_MIN, INT64_MAX, 4294967295, -128};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    check_constant(TYPE_I64, &values[i]);
    check_constant(TYPE_U64, &values[i]);
    check_constant(TYPE_INDEX, &values[i]);
  }
  check_constant(TYPE_U32, &values[5]);
  check_constant(TYPE_I8, &values[6]);
  check_constant(TYPE_BOOL, &values[0]);
  check_constant(TYPE_BOOL, &values[1]);
}

static void check_spelling(const char *expected, enum type type, double number, int64_t integer) {
  struct arena arena;
  struct text text = {0};
  arena_init(&arena);
  ir_print_expr(type_is_float(type) ? ir_float(&arena, type, number) : ir_int(&arena, type, integer), &text);
  cr_expect_str_eq(text.data, expected);
  text_free(&text);
  arena_destroy(&arena);
}

Test(ir_text, constants_are_spelled_for_people) {
  check_spelling("0.1:f32", TYPE_F32, 0.1f, 0);
  check_spelling("0.10000000149011612:f64", TYPE_F64, 0.1f, 0);
  check_spelling("100.0:f32", TYPE_F32, 100, 0);
  check_spelling("-2.5:f64", TYPE_F64, -2.5, 0);
  check_spelling("0.00001:f64", TYPE_F64, 1e-5, 0);
  check_spelling("1.5e-6:f64", TYPE_F64, 1.5e-6, 0);
  check_spelling("1e16:f64", TYPE_F64, 1e16, 0);
  check_spelling("-0.0:f32", TYPE_F32, -0.0, 0);
  check_spelling("-inf:f32", TYPE_F32, -INFINITY, 0);
  check_spelling("18446744073709551615:u64", TYPE_U64, 0, -1);
  check_spelling("-9223372036854775808:index", TYPE_INDEX, 0, INT64_MIN);
  check_spelling("true", TYPE_BOOL, 0, 1);
}

// ---- Damaged text

static char *sample_text(enum sample_kind kind) {
  struct sample s;
  struct text text = {0};
  sample_build(&s, kind);
  ir_print(&s.module, &text);
  sample_destroy(&s);
  return text.data;
}

// Whatever the text is: no crash; what reads and verifies prints to what reads to the same. Whether it was
// read.
static bool survives(const char *text, size_t length) {
  struct sample s, back;
  struct text printed = {0}, again = {0};
  bool good = sample_read(&s, text, length);
  cr_assert_eq(good, s.diag.error_count == 0, "refused without a message, or with one read");
  if (good && ir_verify(&s.module, "test", true)) {
    ir_print(&s.module, &printed);
    cr_assert(sample_read(&back, printed.data, printed.length), "%s\n%s", first_message(&back), printed.data);
    ir_print(&back.module, &again);
    cr_assert_str_eq(again.data, printed.data);
    sample_destroy(&back);
  }
  text_free(&printed);
  text_free(&again);
  sample_destroy(&s);
  return good;
}

Test(ir_text, text_cut_anywhere_is_refused) {
  for (int kind = 0; kind < SAMPLE_OPERATIONS; kind++) {
    char *text = sample_text((enum sample_kind)kind);
    size_t length = strlen(text);
    const char *kernel = strstr(text, "kernel ");
    for (size_t cut = 0; cut < length; cut++) {
      char *copy = malloc(cut + 1); // of this size, so that a read behind it is found
      memcpy(copy, text, cut);
      bool good = survives(copy, cut);
      if (text + cut > kernel + 1 && cut + 1 < length) cr_expect(!good, "cut at %zu of %zu", cut, length);
      free(copy);
    }
    free(text);
  }
}

Test(ir_text, text_with_any_byte_changed_is_survived) {
  static const char others[] = {'\0', '(', '"', '`', '\\', '9', 'x', '@', '\n', '}', '-', (char)0xff};
  for (int kind = 0; kind < SAMPLE_OPERATIONS; kind++) {
    char *text = sample_text((enum sample_kind)kind);
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
      char kept = text[i];
      for (int bit = 0; bit < 8; bit += 3) {
        text[i] = (char)(kept ^ 1 << bit);
        survives(text, length);
      }
      text[i] = others[i % sizeof others];
      survives(text, length);
      text[i] = kept;
    }
    free(text);
  }
}

Test(ir_text, lines_left_out_or_doubled_are_survived) {
  for (int kind = 0; kind < SAMPLE_OPERATIONS; kind++) {
    char *text = sample_text((enum sample_kind)kind);
    for (const char *line = text; *line;) {
      const char *next = strchr(line, '\n') + 1;
      struct text without = {0}, twice = {0};
      text_append(&without, text, (size_t)(line - text));
      text_append(&twice, text, (size_t)(next - text));
      text_puts(&without, next);
      text_puts(&twice, line);
      survives(without.data, without.length);
      survives(twice.data, twice.length);
      text_free(&without);
      text_free(&twice);
      line = next;
    }
    free(text);
  }
}

// A dump with `lines` in the body of its one entry.
static bool read_body(struct sample *s, const char *lines, struct text *text) {
  text_puts(text,
            "red-ir 1\nreducer sum { identity (0.0:f32)\n"
            "combine (a: f32, b: f32) { result (add(a, b)) } }\n"
            "kernel k { size n tensor A: f32[n] strides [1:i64] align 4 read\nentry k program index index {\n"
            "block 1 1 1 grid x n grid y 1:i64 grid z 1:i64\nbody {\n");
  text_puts(text, lines);
  text_puts(text, "\n}}}\n");
  return sample_read(s, text->data, text->length);
}

// `lines` are refused with this message, at this line (the first is 1) and column.
static void check_refused(const char *lines, uint32_t line, uint32_t column, const char *message) {
  struct sample s;
  struct text text = {0};
  cr_expect(!read_body(&s, lines, &text), "%s", lines);
  cr_expect_str_eq(first_message(&s), message);
  if (s.diag.diagnostics.count) {
    struct range range = list_at(&s.diag.diagnostics, struct diagnostic, 0)->range;
    cr_expect_eq(range.line, line + 7, "line %u: %s", range.line - 7, lines);
    cr_expect_eq(range.column, column, "column %u: %s", range.column, lines);
  }
  text_free(&text);
  sample_destroy(&s);
}

Test(ir_text, refused_statements) {
  check_refused("let x: f32 = add(1.0:f32, 2.0:f32", 2, 1, "expected ',', found '}'");
  check_refused("let x: f32 = add(1.0:f32)", 1, 14, "'add' takes 2 operands, found 1");
  check_refused("let x: f32 = add(1.0:f32, 2:i32)", 1, 14, "'add' has operands of types f32 and i32");
  check_refused("let x: f32 = sqrt(1:i32)", 1, 14, "'sqrt' takes no operands of type i32");
  check_refused("let x: f32 = frob(1:i32)", 1, 14, "unknown operation 'frob'");
  check_refused("let x: f33 = 1:i32", 1, 8, "unknown type 'f33'");
  check_refused("let x: f32 = y", 1, 14, "unknown variable 'y'");
  check_refused("let x: f32 = A", 1, 14, "'A' is a memory object, not a variable");
  check_refused("let x: f32 = load(n, 1:index)", 1, 19, "'n' is a variable, not a memory object");
  check_refused("let x: f32 = load(A)", 1, 14, "'A' has 1 dimensions, and 0 indices are given");
  check_refused("let x: f32 = load(A, true)", 1, 14, "an index of 'load' has type bool");
  check_refused("let x: i32 = 1:i32\nlet x: i32 = 1:i32", 2, 5, "name 'x' is declared twice");
  check_refused("let A: i32 = 1:i32", 1, 5, "name 'A' is declared twice");
  check_refused("let x: i32 = x", 1, 14, "unknown variable 'x'");
  check_refused("let x: i32 = 1", 2, 1, "expected ':', found '}'");
  check_refused("let x: i64 = 9223372036854775808:i64", 1, 14,
                "'9223372036854775808' is no constant of type i64");
  check_refused("let x: u64 = -1:u64", 1, 14, "'-1' is no constant of type u64");
  check_refused("let x: u8 = 256:u8", 1, 13, "the constant 256 does not fit u8");
  check_refused("let x: f32 = 1e39:f32", 1, 14, "'1e39' is no constant of type f32");
  check_refused("let x: i32 = 1.5:i32", 1, 14, "'1.5' is no constant of type i32");
  check_refused("let x: i32 = inf:i32", 1, 14, "'i32' is no float type");
  check_refused("let x: f16 = 1.0:f16", 1, 14, "'1.0' is no constant of type f16");
  check_refused("let x: f32 = bits(0x3fb999999999999a):f32", 1, 14,
                "the constant 0.10000000000000001 is no value of f32");
  check_refused("let x: i32 = cast(1:i64)", 1, 18,
                "expected '.' and the type that the conversion makes, found '('");
  check_refused("let x: i32 = bitcast.i32(1:i64)", 1, 14, "'bitcast' cannot make i32 of i64");
  check_refused("let x: i32 = add.i32(1:i64, 2:i64)", 1, 14, "'add' of these operands has type i64, not i32");
  check_refused("let x: index = thread.w", 1, 23, "expected x, y or z, found 'w'");
  check_refused("let x: index = block.x:f32", 1, 16, "'block' is an index, not f32");
  check_refused("let x: i64 = dim(A, 1)", 1, 14, "'A' has 1 dimensions, and dimension 1 is asked for");
  check_refused("let x: i64 = extent(n)", 1, 14, "unknown operation 'extent'");
  check_refused("let x: i32 = const(1:i32)", 1, 14, "unknown operation 'const'");
  check_refused("allreduce (t: f32) = prod(1.0:f32) over x", 1, 22, "unknown reducer 'prod'");
  check_refused("allreduce (t: f32) = sum(1.0:f32) over x form big", 1, 47,
                "expected a form (auto, shuffle, tree), found 'big'");
  check_refused("for k: index in 0:index, 4:index { }", 1, 24, "expected '..', found ','");
  check_refused("for k: index in 0:index .. k { }", 1, 28, "unknown variable 'k'");
  check_refused("for k: index in 0:index .. 4:index unroll 1 { }", 1, 43,
                "a factor of unrolling is at least 2 and at most 1073741823");
  check_refused("set A = 1.0:f32", 1, 5, "'A' is a memory object, not a variable");
  check_refused(
      "frob", 1, 1,
      "expected a statement (let, var, set, store, for, if, allreduce, barrier, syncwarp, load_wide, store_wide, atomic, fence, grid_wait, grid_ready, copy_async, "
      "copy_commit, copy_wait), "
      "found 'frob'");
  check_refused("let x: i32 = 1:i32 @0:1-2:3", 1, 20, "malformed place: expected @line:column-line:column");
  check_refused("let x: i32 = 1:i32 @1:1-2:3", 1, 20, "place in source 0, which the dump does not list");
  check_refused("let `x: i32 = 1:i32", 1, 5, "name without its closing quote");
  check_refused("let `x\\q`: i32 = 1:i32", 1, 9, "unknown escape in a string");
  check_refused("let `x\\x00`: i32 = 1:i32", 1, 11, "a string cannot hold a zero byte");
  check_refused("let x: i32 = $", 1, 14, "unexpected character '$'");
  check_refused("let x: i32 = \x80", 1, 14, "unexpected byte 0x80");
}

static void check_text_refused(const char *text, const char *message) {
  struct sample s;
  cr_expect(!sample_read(&s, text, strlen(text)), "%s", text);
  cr_expect_str_eq(first_message(&s), message);
  sample_destroy(&s);
}

Test(ir_text, refused_declarations) {
  check_text_refused("", "this is no IR text: it begins with 'red-ir 1'");
  check_text_refused("kernel f() {", "this is no IR text: it begins with 'red-ir 1'");
  check_text_refused("red-ir 2\n", "IR text of version 2; this compiler reads version 1");
  check_text_refused("red-ir 1 source 1 \"a\"", "expected source 0, found source 1");
  check_text_refused("red-ir 1 entry", "expected 'reducer' or 'kernel', found 'entry'");
  check_text_refused("red-ir 1 kernel k { size n size n }", "name 'n' is declared twice");
  check_text_refused("red-ir 1 kernel k { size n infer n = n infer n = n }", "size 'n' is inferred twice");
  check_text_refused("red-ir 1 kernel k { infer n = n }", "unknown name 'n': expected a size");
  check_text_refused("red-ir 1 kernel k { tensor A: f32[] strides [] align 99999999999 }",
                     "expected an alignment in bytes, from 0 to 4294967295, found '99999999999'");
  check_text_refused("red-ir 1 reducer r { identity () combine () { result () } } reducer r {",
                     "reducer 'r' is declared twice");
  check_text_refused("red-ir 1 reducer r { identity () combine () { let x: i32 = 1:i32 } }",
                     "expected 'let' or 'result', found '}'");
#define ENTRY "red-ir 1 kernel k { size n entry k stages index index { "
  check_text_refused(ENTRY "when true when true } }", "'when' is given twice");
  check_text_refused(ENTRY "grid x n grid x n } }", "this axis of the grid is given twice");
  check_text_refused(ENTRY "axis i: index extent add(1:index, j) } }", "unknown variable 'j'");
  check_text_refused(ENTRY "axis i: index extent add(1:index, } }",
                     "expected ')', found the end of the text");
  check_text_refused(ENTRY "stage store \"B\" { axes (n parallel) } }", "'n' is no axis");
  check_text_refused(ENTRY "stage store \"B\" { } }", "expected the stage's store, found '}'");
  check_text_refused(ENTRY "stage reduce \"B\" { } }", "expected the stage's reducer, found '}'");
  check_text_refused(
      ENTRY "axis i: index extent 1:index bind thread.w } }",
      "expected what an axis is bound to (serial, block.x, block.y, block.z, thread.x, thread.y, "
      "thread.z, vector), found 'thread.w'");
}

// Expressions and blocks of `depth` levels, behind the levels of the body itself.
static bool reads_depth(uint32_t depth, const char *open, const char *close, const char *inner,
                        const char *before) {
  struct text lines = {0}, text = {0};
  struct sample s;
  text_puts(&lines, before);
  for (uint32_t i = 0; i < depth; i++) text_puts(&lines, open);
  text_puts(&lines, inner);
  for (uint32_t i = 0; i < depth; i++) text_puts(&lines, close);
  bool good = read_body(&s, lines.data, &text) && ir_verify(&s.module, "test", true);
  if (good) check_round_trip(&s);
  if (!good) cr_expect(strstr(first_message(&s), "nested more than"), "%s", first_message(&s));
  text_free(&lines);
  text_free(&text);
  sample_destroy(&s);
  return good;
}

Test(ir_text, nesting_is_limited) {
  cr_expect(reads_depth(3990, "neg(", ")", "1:i32", "let x: i32 = "));
  cr_expect(!reads_depth(4010, "neg(", ")", "1:i32", "let x: i32 = "));
  cr_expect(!reads_depth(1000000, "neg(", ")", "1:i32", "let x: i32 = "));
  cr_expect(reads_depth(3990, "if true {", "}", "barrier", ""));
  cr_expect(!reads_depth(100000, "if true {", "}", "barrier", ""));
}

Test(ir_text, space_and_comments_are_free) {
  struct sample s;
  struct text text = {0};
  cr_expect(read_body(&s, "let x:i32=1:i32 // one\r\n\t let\n y\n : i32 = // two\n add (x,x)", &text), "%s",
            first_message(&s));
  check_round_trip(&s);
  text_free(&text);
  sample_destroy(&s);
}

// ---- Documentation

static char *read_whole(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  cr_assert(file, "%s", path);
  struct text text = {0};
  char buffer[4096];
  size_t got;
  while ((got = fread(buffer, 1, sizeof buffer, file)) > 0) text_append(&text, buffer, got);
  fclose(file);
  *length = text.length;
  return text.data;
}

// Each block of docs/ir.md between ```red-ir and ``` reads, verifies and prints as it stands there.
Test(ir_text, examples_of_the_documentation) {
  size_t length;
  char *text = read_whole(RED_SOURCE_DIR "/docs/ir.md", &length);
  int examples = 0;
  for (char *at = text; (at = strstr(at, "```red-ir\n"));) {
    char *start = at + strlen("```red-ir\n"), *end = strstr(start, "```");
    cr_assert(end);
    struct sample s;
    struct text printed = {0};
    *end = 0;
    bool good = sample_read(&s, start, strlen(start)) && ir_verify(&s.module, "docs", true);
    cr_expect(good, "%s\n%s", first_message(&s), start);
    if (good) {
      ir_print(&s.module, &printed);
      cr_expect_str_eq(printed.data, start);
    }
    text_free(&printed);
    sample_destroy(&s);
    at = end + 1;
    examples++;
  }
  cr_expect_geq(examples, 2, "one at each level");
  free(text);
}

// ---- Seeds

// Each sample prints as it did when the fuzzer's seeds were made from them: with reading back, this covers
// every field that they set. Where the form changes on purpose, the text shown is the new seed.
Test(ir_text, samples_print_as_the_fuzzers_seeds) {
  static const char *const names[] = {"stages", "reduce", "tuple", "update", "nests"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char path[512];
    size_t length;
    struct sample s;
    struct text printed = {0};
    snprintf(path, sizeof path, "%s/tests/fuzz/ir/%s.ir", RED_SOURCE_DIR, names[i]);
    char *text = read_whole(path, &length);
    sample_build(&s, (enum sample_kind)i);
    ir_print(&s.module, &printed);
    cr_expect_str_eq(printed.data, text, "%s\n%s", path, printed.data);
    text_free(&printed);
    free(text);
    sample_destroy(&s);
  }
}

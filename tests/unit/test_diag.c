#include "compiler/diag.h"

#include <criterion/criterion.h>

#include <string.h>

static struct arena arena;
static struct diag diag;
static struct text out;

static void start(void) {
  arena_init(&arena);
  diag_init(&diag, &arena);
}

static void stop(void) {
  text_free(&out);
  arena_destroy(&arena);
}

TestSuite(diag, .init = start, .fini = stop);

static uint32_t source(const char *name, const char *text) {
  return diag_add_source(&diag, name, text, strlen(text));
}

static struct range at(uint32_t file, uint32_t line, uint32_t column, uint32_t end_column) {
  return (struct range){line, column, line, end_column, file};
}

static const struct range nowhere;

static const char *printed(struct diag_style style) {
  out.length = 0;
  text_puts(&out, "");
  diag_print(&diag, &style, &out);
  return out.data;
}

static const char *text(void) {
  return printed((struct diag_style){0});
}
static const char *json(void) {
  return printed((struct diag_style){.json = true});
}

#define SAME(got, wanted) cr_assert_str_eq(got, wanted, "got:\n%s", got)

Test(diag, error_with_carets_and_note) {
  uint32_t file = source("rowsum.red", "\n\n\n\n\n  bind j -> thread.x;\n");
  diag_error(&diag, ERROR_EXTENT, at(file, 6, 3, 21), "axis '%s' has extent 'm'", "j");
  diag_note(&diag, nowhere, "fix it with -D m=...");
  SAME(text(), "rowsum.red:6:3: error: axis 'j' has extent 'm' [E406]\n"
               "    6 |   bind j -> thread.x;\n"
               "      |   ^~~~~~~~~~~~~~~~~~\n"
               "note: fix it with -D m=...\n"
               "1 error generated.\n");
}

Test(diag, note_with_a_place_prints_its_own_line) {
  uint32_t file = source("a.red", "one two\nthree\n");
  diag_error(&diag, ERROR_BOUNDS, at(file, 2, 1, 6), "here");
  diag_note(&diag, at(file, 1, 5, 8), "there");
  SAME(text(), "a.red:2:1: error: here [E302]\n"
               "    2 | three\n"
               "      | ^~~~~\n"
               "a.red:1:5: note: there\n"
               "    1 | one two\n"
               "      |     ^~~\n"
               "1 error generated.\n");
}

Test(diag, sorted_by_place_and_stable) {
  uint32_t first = source("a.red", "aa\nbb\n"), second = source("b.red", "cc\n");
  diag_error(&diag, ERROR_SYNTAX, at(second, 1, 1, 2), "5");
  diag_error(&diag, ERROR_SYNTAX, at(first, 2, 1, 2), "4");
  diag_error(&diag, ERROR_SYNTAX, at(first, 1, 2, 3), "2");
  diag_error(&diag, ERROR_SYNTAX, at(first, 1, 2, 3), "3");
  diag_error(&diag, ERROR_SYNTAX, at(first, 1, 1, 2), "1");
  diag_error(&diag, ERROR_USAGE, nowhere, "0");
  SAME(text(), "error: 0 [E602]\n"
               "a.red:1:1: error: 1 [E101]\n    1 | aa\n      | ^\n"
               "a.red:1:2: error: 2 [E101]\n    1 | aa\n      |  ^\n"
               "a.red:1:2: error: 3 [E101]\n    1 | aa\n      |  ^\n"
               "a.red:2:1: error: 4 [E101]\n    2 | bb\n      | ^\n"
               "b.red:1:1: error: 5 [E101]\n    1 | cc\n      | ^\n"
               "6 errors generated.\n");
}

Test(diag, many_lines_underline_the_first) {
  uint32_t file = source("a.red", "for i in n {\n}\n");
  diag_error(&diag, ERROR_SYNTAX, (struct range){1, 5, 2, 2, file}, "all");
  SAME(text(),
       "a.red:1:5: error: all [E101]\n    1 | for i in n {\n      |     ^~~~~~~~\n1 error generated.\n");
}

Test(diag, tabs_are_printed_through) {
  uint32_t file = source("a.red", "\tx\t= y\n");
  diag_error(&diag, ERROR_SYNTAX, at(file, 1, 6, 7), "y");
  diag_error(&diag, ERROR_SYNTAX, at(file, 1, 2, 5), "x");
  SAME(text(), "a.red:1:2: error: x [E101]\n    1 | \tx\t= y\n      | \t^\t~\n"
               "a.red:1:6: error: y [E101]\n    1 | \tx\t= y\n      | \t \t  ^\n2 errors generated.\n");
}

Test(diag, a_character_of_several_bytes_is_one_column) {
  uint32_t file = source("a.red", "/* \xc3\xa9\xe6\xbc\xa2 */ x\n");
  diag_error(&diag, ERROR_SYNTAX, at(file, 1, 13, 14), "x");
  SAME(text(), "a.red:1:13: error: x [E101]\n    1 | /* \xc3\xa9\xe6\xbc\xa2 */ x\n      |          ^\n"
               "1 error generated.\n");
}

Test(diag, bytes_that_are_no_text_are_shown_as_question_marks) {
  uint32_t file = source("a.red", "a\xff\x1b[31m\xc3(b\r\n");
  diag_error(&diag, ERROR_SYNTAX, at(file, 1, 10, 11), "b");
  SAME(text(), "a.red:1:10: error: b [E101]\n    1 | a??[31m?(b\n      |          ^\n1 error generated.\n");
}

Test(diag, end_of_file_and_empty_lines_have_a_caret) {
  uint32_t file = source("a.red", "\nab");
  diag_error(&diag, ERROR_SYNTAX, at(file, 1, 1, 1), "empty");
  diag_error(&diag, ERROR_SYNTAX, at(file, 2, 3, 3), "end");
  SAME(text(), "a.red:1:1: error: empty [E101]\n    1 |\n      | ^\n"
               "a.red:2:3: error: end [E101]\n    2 | ab\n      |   ^\n2 errors generated.\n");
}

Test(diag, places_outside_the_source_print_no_line) {
  uint32_t file = source("a.red", "ab\n"), missing = diag_add_source(&diag, "dump.ir", NULL, 0);
  diag_error(&diag, ERROR_SYNTAX, at(file, 9, 1, 2), "line");
  diag_error(&diag, ERROR_SYNTAX, at(file, 1, 70, 90), "column");
  diag_error(&diag, ERROR_IR_TEXT, at(missing, 3, 4, 5), "no text");
  diag_error(&diag, ERROR_SYNTAX, at(99, 1, 1, 2), "no file");
  SAME(text(), "a.red:1:70: error: column [E101]\n    1 | ab\n      |   ^\n"
               "a.red:9:1: error: line [E101]\n"
               "dump.ir:3:4: error: no text [E701]\n"
               "error: no file [E101]\n4 errors generated.\n");
}

// 400 columns with a mark at column 201: the cut keeps 160 of them, 60 in front of the mark.
Test(diag, long_lines_are_cut_around_the_caret) {
  char line[402];
  memset(line, 'x', 400);
  strcpy(line + 400, "\n");
  line[200] = '!';
  uint32_t file = source("a.red", line);
  diag_error(&diag, ERROR_SYNTAX, at(file, 1, 201, 202), "mark");
  const char *got = text(), *shown = strchr(got, '\n') + 1, *carets = strchr(shown, '\n') + 1;
  cr_assert_eq(carets - shown, 8 + 3 + 160 + 3 + 1);
  cr_assert_eq(strncmp(shown, "    1 | ...xxx", 14), 0);
  cr_assert_eq(strncmp(carets - 7, "xxx...\n", 7), 0);
  cr_assert_eq(strchr(shown, '!') - shown, strchr(carets, '^') - carets);
  cr_assert_eq(strchr(shown, '!') - shown, 8 + 3 + 60);
}

Test(diag, beyond_the_limit_errors_are_counted_and_notes_go_with_them) {
  uint32_t file = source("a.red", "a\n");
  diag.error_limit = 1;
  diag_error(&diag, ERROR_SYNTAX, at(file, 1, 1, 2), "kept");
  diag_error(&diag, ERROR_SYNTAX, at(file, 1, 1, 2), "dropped");
  diag_note(&diag, nowhere, "of the dropped one");
  diag_error(&diag, ERROR_SYNTAX, at(file, 1, 1, 2), "dropped too");
  cr_assert_eq(diag.error_count, 3);
  SAME(text(), "a.red:1:1: error: kept [E101]\n    1 | a\n      | ^\n"
               "too many errors; 2 more not shown\n3 errors generated.\n");
  const char *last = strchr(json(), '\n') + 1;
  cr_assert_not_null(strstr(last, "\"message\":\"too many errors; 2 more not shown\""), "%s", last);
}

Test(diag, warnings_are_counted_apart_or_made_errors) {
  diag_warning(&diag, ERROR_LITERAL, nowhere, "careful");
  SAME(text(), "warning: careful [E205]\n1 warning generated.\n");
  diag_error(&diag, ERROR_USAGE, nowhere, "wrong");
  diag.warnings_are_errors = true;
  diag_warning(&diag, ERROR_LITERAL, nowhere, "strict");
  cr_assert_eq(diag.error_count, 2);
  SAME(text(), "warning: careful [E205]\nerror: wrong [E602]\nerror: strict [E205]\n"
               "1 warning and 2 errors generated.\n");
}

Test(diag, remarks_on_request_and_by_pass) {
  diag_remark(&diag, "widen", nowhere, "16 bytes");
  diag_remark(&diag, "stage", nowhere, "pad 1");
  SAME(text(), "");
  SAME(printed((struct diag_style){.remarks = true}), "remark: 16 bytes [widen]\nremark: pad 1 [stage]\n");
  SAME(printed((struct diag_style){.remarks = true, .only_pass = "stage"}), "remark: pad 1 [stage]\n");
}

Test(diag, internal_errors_name_the_pass) {
  diag.error_limit = 1;
  diag_error(&diag, ERROR_USAGE, nowhere, "wrong");
  diag_internal(&diag, "prove", nowhere, "lane %d", 7);
  cr_assert(diag.internal);
  SAME(text(), "error: wrong [E602]\nerror: internal error in pass 'prove': lane 7; this is a fault of the "
               "compiler, please "
               "report it with the input [E901]\n2 errors generated.\n");
}

Test(diag, json_has_every_field_and_escapes) {
  uint32_t file = source("dir\\a.red", "abc\n");
  diag_error(&diag, ERROR_SYNTAX, at(file, 1, 2, 4), "q\"b\\n\n\t\x01\xff\xc3\xa9");
  diag_note(&diag, nowhere, "n");
  diag_remark(&diag, "widen", nowhere, "r");
  SAME(printed((struct diag_style){.json = true, .remarks = true}),
       "{\"kind\":\"remark\",\"code\":null,\"file\":null,\"line\":0,\"column\":0,\"end_line\":0,\"end_"
       "column\":0,"
       "\"message\":\"r\",\"pass\":\"widen\",\"notes\":[]}\n"
       "{\"kind\":\"error\",\"code\":\"E101\",\"file\":\"dir\\\\a.red\",\"line\":1,\"column\":2,\"end_line\":"
       "1,"
       "\"end_column\":4,\"message\":\"q\\\"b\\\\n\\n\\t\\u0001\\ufffd\xc3\xa9\",\"pass\":null,\"notes\":["
       "{\"kind\":\"note\",\"code\":null,\"file\":null,\"line\":0,\"column\":0,\"end_line\":0,\"end_column\":"
       "0,"
       "\"message\":\"n\",\"pass\":null,\"notes\":[]}]}\n");
}

Test(diag, colours_only_when_asked) {
  uint32_t file = source("a.red", "a\n");
  diag_error(&diag, ERROR_SYNTAX, at(file, 1, 1, 2), "m");
  cr_assert_null(strchr(text(), '\033'));
  SAME(printed((struct diag_style){.color = true}),
       "\033[1ma.red:1:1:\033[0m \033[1;31merror:\033[0m \033[1mm\033[0m [E101]\n"
       "    1 | a\n      | \033[1;32m^\033[0m\n1 error generated.\n");
}

Test(diag, ranges_join_from_start_to_end) {
  struct range joined = range_join((struct range){1, 2, 1, 5, 0}, (struct range){3, 1, 4, 9, 0});
  cr_assert(joined.line == 1 && joined.column == 2 && joined.end_line == 4 && joined.end_column == 9);
  cr_assert_eq(range_join(nowhere, joined).line, 1);
  cr_assert_eq(range_join(joined, nowhere).end_column, 9);
}

Test(diag, every_error_number_has_an_explanation) {
  const char *title = NULL;
  SAME(diag_explain(103, &title),
       "Integer literals fit 64 bits; a decimal literal has a digit on both sides of the point.");
  cr_assert_str_eq(title, "malformed or too large number");
  cr_assert_null(diag_explain(7, NULL));
}

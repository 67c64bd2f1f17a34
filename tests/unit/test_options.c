// The command line: what options_parse makes of it, and the helpers behind it.
#include "compiler/options.h"
#include "compiler/suggest.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct compilation c;
static struct options options;

static void begin(void) {
  compilation_init(&c);
  options_init(&options, &c);
}

static void end(void) {
  compilation_destroy(&c);
}

TestSuite(options, .init = begin, .fini = end);

// Parses a command line of words without blanks in them.
static bool parse(const char *line) {
  char *words[64] = {"redc"}, *copy = arena_strdup(&c.arena, line), *rest = copy;
  int count = 1;
  for (char *word; (word = strsep(&rest, " "));)
    if (*word) words[count++] = word;
  return options_parse(&options, count, words);
}

static const char *message(uint32_t i) {
  return i < c.diag.diagnostics.count ? list_at(&c.diag.diagnostics, struct diagnostic, i)->message
                                      : "(none)";
}

static const struct define *define(uint32_t i) {
  return list_at(&c.options.defines, struct define, i);
}

Test(options, defaults) {
  cr_assert(parse("a.red"));
  cr_assert_eq(options.action, ACTION_COMPILE);
  cr_assert_eq(options.emit, EMIT_PTX);
  cr_assert_str_eq(options.output, "-");
  cr_assert_str_eq(c.options.target->name, "sm_75");
  cr_assert_eq(c.options.optimize, 3);
  cr_assert_eq(c.diag.error_limit, 20);
  cr_assert(!c.options.no_contract && !c.options.debug && !c.reads_ir && !options.time_passes);
}

Test(options, values_stand_in_the_argument_or_behind_it) {
  cr_assert(parse("-Dn=5 -D m=6 -oa.cu --arch sm_90 --arch=sm_80 x.red y.red"));
  cr_assert_eq(c.options.defines.count, 2);
  cr_assert_str_eq(define(0)->name, "n");
  cr_assert_eq(define(0)->integer, 5);
  cr_assert_eq(define(1)->integer, 6);
  cr_assert_str_eq(options.output, "a.cu");
  cr_assert_eq(options.emit, EMIT_CUDA);
  cr_assert_str_eq(c.options.target->name, "sm_80");
  cr_assert_eq(options.inputs.count, 2);
}

Test(options, behind_two_dashes_all_is_a_file) {
  cr_assert(parse("-- -G --help"));
  cr_assert_eq(options.inputs.count, 2);
  cr_assert(!c.options.debug);
}

Test(options, definitions_reach_the_largest_size) {
  cr_assert(parse("-Dn=9223372036854775807 -Dm=0x7fffffffffffffff -Dk=0 -Dj=-0 a.red"));
  cr_assert_eq(define(0)->integer, INT64_MAX);
  cr_assert_eq(define(1)->integer, INT64_MAX);
  cr_assert_eq(define(2)->integer, 0);
  cr_assert_eq(define(3)->integer, 0);
}

Test(options, type_parameters_take_several_types) {
  cr_assert(parse("-DT=f16 -DT=f32 -DT=f16 -Dn=3 -Dn=3 a.red"));
  cr_assert_eq(c.options.defines.count, 3);
  cr_assert(define(0)->is_type && define(0)->type == TYPE_F16);
  cr_assert(define(1)->is_type && define(1)->type == TYPE_F32);
}

Test(options, bad_definitions_are_refused) {
  static const char *const bad[] = {"n",
                                    "n=",
                                    "=5",
                                    "5=5",
                                    "n=5x",
                                    "n=0x",
                                    "n= 5",
                                    "n=1e3",
                                    "n=--1",
                                    "n=-1",
                                    "n=index",
                                    "n=f17",
                                    "a-b=5",
                                    "n=9223372036854775808",
                                    "n=99999999999999999999999",
                                    "n=0x8000000000000000",
                                    "n=0b1",
                                    "n=5 "};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char *words[] = {"redc", "a.red", "-D", (char *)(uintptr_t)bad[i]};
    uint32_t errors = c.diag.error_count;
    cr_expect(!options_parse(&options, 4, words), "%s", bad[i]);
    cr_expect_eq(c.diag.error_count, errors + 1, "%s", bad[i]);
    cr_expect_eq(list_at(&c.diag.diagnostics, struct diagnostic, errors)->code, ERROR_DEFINE, "%s", bad[i]);
  }
  cr_assert_eq(c.options.defines.count, 0);
}

Test(options, contradicting_definitions_are_refused) {
  cr_assert(!parse("-Dn=4 -Dn=5 -Dn=f32 a.red"));
  cr_assert_str_eq(message(0), "-D n is given twice, as 4 and as 5");
  cr_assert_str_eq(message(1), "-D n is given an integer and a type");
}

Test(options, suffix_chooses_the_output_and_emit_comes_first) {
  static const struct {
    const char *line;
    enum emit_kind emit;
  } lines[] = {{"-o a.ptx", EMIT_PTX},
               {"-o a.cu", EMIT_CUDA},
               {"-o a.ll", EMIT_LLVM},
               {"-o a.ir", EMIT_IR},
               {"-o a.cubin", EMIT_CUBIN},
               {"-o a.ast", EMIT_AST},
               {"-o a", EMIT_PTX},
               {"-o a.b/c", EMIT_PTX},
               {"-o -", EMIT_PTX},
               {"-o a.x --emit=ir", EMIT_IR},
               {"-o a.cu --emit=llvm", EMIT_LLVM},
               {"--stop-after=check", EMIT_IR},
               {"-o a --stop-after=nest", EMIT_IR}};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    struct compilation own;
    struct compilation saved = c;
    compilation_init(&own);
    c = own;
    options_init(&options, &c);
    c.diag.arena = &c.arena;
    cr_expect(parse(arena_printf(&c.arena, "%s in.red", lines[i].line)), "%s", lines[i].line);
    cr_expect_eq(options.emit, lines[i].emit, "%s", lines[i].line);
    compilation_destroy(&c);
    c = saved;
  }
}

Test(options, all_errors_of_a_command_line_are_reported) {
  cr_assert(!parse("-G=1 -O4 -O --emit=sass --nosuch --color=red --error-limit=x --from=nothing -Wall -o"));
  cr_assert_eq(c.diag.error_count, 10);
}

Test(options, information_needs_no_input) {
  cr_assert(parse("--version --help"));
  cr_assert_eq(options.action, ACTION_VERSION);
}

Test(options, subcommands_take_options_one_by_one) {
  char *words[] = {"run", "-D", "n=4", "file", "-", "--nosuch", "-G"};
  int at = 1;
  cr_assert_eq(options_take(&options, 7, words, &at), OPTION_TAKEN);
  cr_assert_eq(at, 3);
  cr_assert_eq(options_take(&options, 7, words, &at), OPTION_NOT_ONE);
  cr_assert_eq(at, 3);
  at = 4;
  cr_assert_eq(options_take(&options, 7, words, &at), OPTION_NOT_ONE);
  at = 5;
  cr_assert_eq(options_take(&options, 7, words, &at), OPTION_REFUSED);
  cr_assert_eq(at, 6);
  cr_assert_eq(options_take(&options, 7, words, &at), OPTION_TAKEN);
  cr_assert_eq(at, 7);
}

// Writes a file into /tmp and gives its path behind an @.
static char *response(const char *text) {
  char *path = arena_strdup(&c.arena, "@/tmp/red-response-XXXXXX");
  int fd = mkstemp(path + 1);
  cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
  close(fd);
  return path;
}

Test(options, response_files_are_split_as_by_a_shell) {
  char *path = response("  a 'b c'\t\"d \\\" e\"\n\nf\\ g '' x'y'z '\\'");
  char *words[] = {"redc", path, "last"}, **out;
  static const char *const wanted[] = {"redc", "a", "b c", "d \" e", "f g", "", "xyz", "\\", "last"};
  int count;
  cr_assert(options_expand(&c.diag, 3, words, &count, &out));
  unlink(path + 1);
  cr_assert_eq(count, 9);
  for (int i = 0; i < 9; i++) cr_expect_str_eq(out[i], wanted[i]);
  cr_assert_null(out[9]);
}

Test(options, lone_at_sign_is_an_argument) {
  char *words[] = {"redc", "@"}, **out;
  int count;
  cr_assert(options_expand(&c.diag, 2, words, &count, &out));
  cr_assert_str_eq(out[1], "@");
}

static const char *nearest(const char *word, const char *a, const char *b) {
  struct suggestion s = suggest(word);
  suggest_consider(&s, a);
  suggest_consider(&s, b);
  return s.best ? s.best : "(none)";
}

Test(suggest, the_nearest_of_the_near_is_suggested) {
  cr_expect_str_eq(nearest("--emitt", "--emit", "--from"), "--emit");
  cr_expect_str_eq(nearest("nset", "check", "nest"), "nest");
  cr_expect_str_eq(nearest("bind", "bound", "bind"), "bind");
  cr_expect_str_eq(nearest("simplify", "prove", "index"), "(none)");
  cr_expect_str_eq(nearest("xy", "ab", "cd"), "(none)");
  cr_expect_str_eq(nearest("", "a", "b"), "(none)");
}

Test(suggest, long_words_are_left_alone) {
  char word[200], name[200];
  memset(word, 'a', 199);
  memset(name, 'a', 199);
  word[199] = name[199] = 0;
  cr_expect_str_eq(nearest(word, name, "b"), "(none)");
}

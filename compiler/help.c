// --help and the other texts about redc itself.
#include "codegen/codegen.h"
#include "compiler/options.h"
#include "compiler/subcommands.h"
#include "red_version.h"

#include <string.h>

enum { HELP_COLUMN = 26, LINE_WIDTH = 80 };

// A group's title, or an option of the group before.
struct help_row {
  const char *title; // NULL: an option
  enum option option;
};
static const struct help_row rows[] = {
#define GROUP(name, title) {title, OPTION_COUNT},
#define O(name, spelling, argument, form, help) {NULL, OPTION_##name},
#include "compiler/options.def"
#undef O
#undef GROUP
};

// Appends `text` wrapped at LINE_WIDTH, every line but the first indented to HELP_COLUMN, where the first
// starts.
static void wrap(struct text *out, const char *text) {
  size_t column = HELP_COLUMN;
  while (*text) {
    size_t word = strcspn(text, " ");
    if (column > HELP_COLUMN && column + 1 + word > LINE_WIDTH) {
      text_printf(out, "\n%*s", HELP_COLUMN, "");
      column = HELP_COLUMN;
    } else if (column > HELP_COLUMN) {
      text_puts(out, " ");
      column++;
    }
    text_append(out, text, word);
    column += word;
    text += word + (text[word] == ' ');
  }
  text_puts(out, "\n");
}

// One entry of a list: what it is called, then what it does.
static void print_entry(struct text *out, const char *name, const char *help) {
  bool is_long = strlen(name) > HELP_COLUMN - 4;
  text_printf(out, is_long ? "  %s\n" : "  %s", name);
  text_printf(out, "%*s", HELP_COLUMN - (is_long ? 0 : 2 + (int)strlen(name)), "");
  wrap(out, help);
}

static void print_option(struct text *out, const struct option_info *info) {
  struct text name = {0};
  bool is_long = info->spelling[1] == '-';
  text_puts(&name, info->spelling);
  switch (info->form) {
  case FORM_FLAG: break;
  case FORM_VALUE: text_printf(&name, is_long ? "=%s" : " %s", info->argument); break;
  case FORM_OPTIONAL: text_printf(&name, "[=%s]", info->argument); break;
  case FORM_DIGIT: text_puts(&name, info->argument); break;
  }
  print_entry(out, name.data, info->help);
  text_free(&name);
}

void help_print(struct text *out) {
  text_puts(out, "Usage: redc [options] FILE.red...\n"
                 "Compile kernels (small reductions and permutes) to PTX and to readable CUDA.\n\n"
                 "Several files are one program, so that schedules can stand in a file of their own.\n"
                 "- is standard input; @FILE puts in the arguments that FILE holds; after -- all\n"
                 "arguments are files. A .ir file is IR that redc wrote earlier.\n");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (rows[i].title)
      text_printf(out, "\n%s:\n", rows[i].title);
    else
      print_option(out, &option_table[rows[i].option]);
  }
  if (subcommand_table[0].name) text_puts(out, "\nSubcommands, each with a --help of its own:\n");
  for (const struct subcommand *s = subcommand_table; s->name; s++) {
    struct text name = {0};
    text_printf(&name, "redc %s", s->name);
    print_entry(out, name.data, s->help);
    text_free(&name);
  }
  text_puts(out, "\nExamples:\n"
                 "  redc rowsum.red -D m=11 -o rowsum.ptx --arch=sm_90\n"
                 "  redc rowsum.red -D m=11 --emit=cuda\n"
                 "  redc rowsum.red mine.red --schedule=mine -D m=1024 -o rowsum.cubin\n"
                 "  redc rowsum.red -D m=11 --emit=ir --print-after=each\n"
                 "  redc permute.red -D T=f16 -D T=f32 -o permute.cu\n"
                 "  redc rowsum.red -D m=11 --stop-after=nest -o step.ir && redc step.ir\n"
                 "\nExit status:\n"
                 "  0  the output is written\n"
                 "  1  an error in the input, or a file or tool that cannot be used\n"
                 "  2  the command line is not legal\n"
                 "  3  a fault of the compiler itself\n");
}

void help_print_version(struct text *out) {
  text_printf(out, "redc %s (%s)\n", RED_VERSION, codegen_llvm_version());
}

void help_print_targets(struct text *out) {
  text_printf(out, "%-10s %4s %7s %13s\n", "target", "PTX", "driver", "shared bytes");
  for (const struct target *t = target_table(); t->name; t++)
    text_printf(out, "%-10s %4s %7s %13u\n", t->name, t->ptx_version, t->driver, t->shared_limit);
}

void help_print_passes(struct text *out) {
  text_printf(out, "%-10s %s\n", "check", "resolve names and types, prove bounds; reductions become stages");
  for (const struct pass *pass = pass_table; pass->name; pass++)
    text_printf(out, "%-10s %s\n", pass->name, pass->description);
}

void help_print_error(int number, struct text *out) {
  const char *title = "", *explanation = diag_explain(number, &title);
  text_printf(out, "E%d: %s\n%s\n", number, title, explanation ? explanation : "");
}

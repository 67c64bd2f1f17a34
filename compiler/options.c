#include "compiler/options.h"
#include "compiler/depfile.h"

#include "compiler/output.h"
#include "compiler/run_cuda.h"
#include "compiler/suggest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_DEFINES = 1000 };

static const struct range nowhere;

const struct option_info option_table[OPTION_COUNT] = {
#define GROUP(name, title)
#define O(name, spelling, argument, form, help) {spelling, argument, FORM_##form, help},
#include "compiler/options.def"
#undef O
#undef GROUP
};

// In the order of enum emit_kind.
static const char *const emit_names[] = {"ast", "ir", "cuda", "llvm", "ptx", "cubin", "header", NULL};
static const char *const emit_suffixes[] = {".ast", ".ir", ".cu", ".ll", ".ptx", ".cubin", ".h", NULL};

const char *emit_name(enum emit_kind kind) {
  return emit_names[kind];
}
const char *emit_suffix(enum emit_kind kind) {
  return emit_suffixes[kind];
}

void options_init(struct options *options, struct compilation *compilation) {
  memset(options, 0, sizeof *options);
  options->compilation = compilation;
  options->output = "-";
  options->emit = EMIT_PTX;
  compilation->diag.error_limit = 20;
}

bool options_use_color(const struct options *options) {
  const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");
  switch (options->color) {
  case COLOR_ALWAYS: return true;
  case COLOR_NEVER: return false;
  case COLOR_AUTO: break;
  }
  return isatty(STDERR_FILENO) && !(no_color && *no_color) && terminal && strcmp(terminal, "dumb") != 0;
}

// ---- Values

// "a, b or c".
static const char *enumerate(struct arena *arena, const char *const *names) {
  const char *text = names[0];
  for (size_t i = 1; names[i]; i++)
    text = arena_printf(arena, "%s%s%s", text, names[i + 1] ? ", " : " or ", names[i]);
  return text;
}

// The place of `value` among the names, or -1 after an error that lists them.
static int choose(struct diag *diag, const char *spelling, const char *value, const char *const *names) {
  for (int i = 0; names[i]; i++)
    if (strcmp(names[i], value) == 0) return i;
  diag_error(diag, ERROR_USAGE, nowhere, "%s takes %s, not '%s'", spelling, enumerate(diag->arena, names),
             value);
  return -1;
}

static bool take_pass(struct diag *diag, const char *spelling, const char *value) {
  if (pipeline_has_pass(value)) return true;
  struct suggestion suggestion = suggest(value);
  suggest_consider(&suggestion, "check");
  for (const struct pass *pass = pass_table; pass->name; pass++) suggest_consider(&suggestion, pass->name);
  diag_error(diag, ERROR_USAGE, nowhere, "%s: there is no pass '%s'; see --list-passes", spelling, value);
  if (suggestion.best) diag_note(diag, nowhere, "did you mean '%s'?", suggestion.best);
  return false;
}

// --print-after=a,b: all known, or one error each.
static bool take_print_after(struct options *options, const char *spelling, const char *value) {
  struct diag *diag = &options->compilation->diag;
  bool ok = true;
  for (;;) {
    size_t length = strcspn(value, ",");
    const char *name = arena_strndup(diag->arena, value, length);
    if (strcmp(name, "each") != 0) ok &= take_pass(diag, spelling, name);
    list_push(diag->arena, &options->print_after, (void *)(uintptr_t)name);
    if (!value[length]) return ok;
    value += length + 1;
  }
}

// A whole decimal number, 0..limit; -1: it is none.
static int64_t parse_number(const char *text, int64_t limit) {
  char *end;
  if (*text < '0' || *text > '9') return -1;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  return *end || errno || value > limit ? -1 : value;
}

// The newest target that the machine's first GPU runs; NULL after an error.
static const struct target *find_native(struct compilation *c) {
  struct cuda_run cuda;
  const struct target *target = cuda_run_begin(&cuda, c, 0, "name the target in place of native, such as --arch=sm_90; see --list-targets") ? cuda_run_target(&cuda) : NULL;
  cuda_run_end(&cuda);
  return target;
}

static bool take_target(struct options *options, const char *value) {
  struct compilation *c = options->compilation;
  bool is_native = strcmp(value, "native") == 0;
  const struct target *target = is_native ? find_native(c) : target_find(value);
  if (target) {
    for (uint32_t i = 0; i < options->targets.count; i++)
      if (options->targets.at[i] == target) return true;
    list_push(&c->arena, &options->targets, (void *)(uintptr_t)target);
    c->options.target = options->targets.at[0];
    return true;
  }
  if (is_native) return false;
  const char *names = "";
  for (const struct target *t = target_table(); t->name; t++)
    names = arena_printf(&c->arena, "%s%s%s", names, *names ? ", " : "", t->name);
  diag_error(&c->diag, ERROR_TARGET, nowhere, "there is no target '%s'", value);
  diag_note(&c->diag, nowhere, "the targets are %s", names);
  return false;
}

// --arch=a,b: the last --arch counts.
static bool take_arch(struct options *options, const char *value) {
  bool ok = true;
  options->targets.count = 0;
  options->names_targets = strchr(value, ',') != NULL;
  for (;;) {
    size_t length = strcspn(value, ",");
    ok &= take_target(options, arena_strndup(&options->compilation->arena, value, length));
    if (!value[length]) return ok;
    value += length + 1;
  }
}

bool options_check_one_target(struct options *options) {
  if (options->targets.count <= 1) return true;
  diag_error(&options->compilation->diag, ERROR_USAGE, nowhere, "--arch names one target here, not %u", options->targets.count);
  return false;
}

static bool is_identifier(const char *name, size_t length) {
  for (size_t i = 0; i < length; i++) {
    char c = name[i];
    bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!is_letter && !(i && c >= '0' && c <= '9')) return false;
  }
  return length > 0;
}

static bool refuse_define(struct diag *diag, const char *name, const char *value, const char *why) {
  diag_error(diag, ERROR_DEFINE, nowhere, "-D %s: '%s' %s", name, value, why);
  return false;
}

// The integer that the value of a definition spells: decimal, or hexadecimal after 0x, as in a program.
static bool parse_define(struct diag *diag, const char *name, const char *value, int64_t *integer) {
  const char *digits = *value == '-' || *value == '+' ? value + 1 : value;
  bool is_hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
  const char *legal = is_hex ? "0123456789abcdefABCDEF" : "0123456789";
  if (is_hex) digits += 2;
  if (!*digits || digits[strspn(digits, legal)])
    return refuse_define(diag, name, value, "is neither an integer nor a type");
  errno = 0;
  unsigned long long magnitude = strtoull(digits, NULL, is_hex ? 16 : 10);
  if (errno || magnitude > INT64_MAX || (*value == '-' && magnitude))
    return refuse_define(diag, name, value, "is outside 0 to 9223372036854775807");
  *integer = (int64_t)magnitude;
  return true;
}

// An integer is given once (or again the same); a type parameter may have several types.
static bool add_define(struct compilation *c, const struct define *define) {
  for (uint32_t i = 0; i < c->options.defines.count; i++) {
    const struct define *other = list_at(&c->options.defines, struct define, i);
    if (strcmp(other->name, define->name) != 0) continue;
    if (other->is_type != define->is_type) {
      diag_error(&c->diag, ERROR_DEFINE, nowhere, "-D %s is given an integer and a type", define->name);
      return false;
    }
    if (define->is_type ? other->type == define->type : other->integer == define->integer) return true;
    if (define->is_type) continue;
    diag_error(&c->diag, ERROR_DEFINE, nowhere, "-D %s is given twice, as %lld and as %lld", define->name,
               (long long)other->integer, (long long)define->integer);
    return false;
  }
  if (c->options.defines.count >= MAX_DEFINES) {
    diag_error(&c->diag, ERROR_DEFINE, nowhere, "more than %d definitions", MAX_DEFINES);
    return false;
  }
  struct define *copy = arena_new(&c->arena, struct define);
  *copy = *define;
  list_push(&c->arena, &c->options.defines, copy);
  return true;
}

bool options_define(struct compilation *c, const char *text) {
  size_t length = strcspn(text, "=");
  struct define define = {.name = arena_strndup(&c->arena, text, length)};
  if (!is_identifier(text, length) || !text[length]) {
    diag_error(&c->diag, ERROR_DEFINE, nowhere, "-D takes NAME=INTEGER or TYPEPARAMETER=TYPE, not '%s'",
               text);
    return false;
  }
  const char *value = text + length + 1;
  define.is_type = type_parse(value, &define.type);
  return (define.is_type || parse_define(&c->diag, define.name, value, &define.integer)) &&
         add_define(c, &define);
}

static bool take_explain_error(struct options *options, const char *value) {
  struct diag *diag = &options->compilation->diag;
  int64_t number = parse_number(*value == 'E' || *value == 'e' ? value + 1 : value, 9999);
  if (number < 0 || !diag_explain((int)number, NULL)) {
    diag_error(diag, ERROR_USAGE, nowhere, "there is no error '%s'", value);
    return false;
  }
  options->action = ACTION_EXPLAIN_ERROR;
  options->explain_error = (int)number;
  return true;
}

static const char *const class_names[] = {
#define C(name, help) #name,
#include "compiler/classes.def"
#undef C
    NULL,
};

// Applies one option; `value` is NULL where none was given. The first action asked for is the one that is
// done.
static bool apply(struct options *options, enum option option, const char *value) {
  static const char *const on_off[] = {"on", "off", NULL}, *const text_json[] = {"text", "json", NULL},
                           *const colors[] = {"auto", "always", "never", NULL};
  struct compilation *c = options->compilation;
  const char *spelling = option_table[option].spelling;
  int64_t number = 0;
  int choice = 0;
  switch (option) {
  case OPTION_OUTPUT:
    options->output = value;
    options->has_output = true;
    break;
  case OPTION_EMIT:
    choice = choose(&c->diag, spelling, value, emit_names);
    options->emit = choice < 0 ? EMIT_PTX : (enum emit_kind)choice;
    options->has_emit = true;
    break;
  case OPTION_ARCH: return take_arch(options, value);
  case OPTION_DEPENDENCIES: options->dependencies = true; break;
  case OPTION_DEPENDENCY_FILE: options->dependency_file = value; break;
  case OPTION_DEPENDENCY_TARGET:
    options->dependency_targets = options->dependency_targets ? arena_printf(&c->arena, "%s %s", options->dependency_targets, value) : value;
    break;
  case OPTION_DEPENDENCY_PHONY: options->phony = true; break;
  case OPTION_DEFINE: return options_define(c, value);
  case OPTION_SCHEDULE: c->options.schedule = value; break;
  case OPTION_CLASS:
    choice = choose(&c->diag, spelling, value, class_names);
    c->options.class_name = choice < 0 ? NULL : class_names[choice];
    break;
  case OPTION_BATCH_INVARIANT: c->options.batch_invariant = true; break;
  case OPTION_ALL_ENTRIES: c->options.all_entries = true; break;
  case OPTION_OPTIMIZE: c->options.optimize = (uint32_t)(*value - '0'); break;
  case OPTION_DEBUG: c->options.debug = true; break;
  case OPTION_CONTRACT:
    choice = choose(&c->diag, spelling, value, on_off);
    c->options.no_contract = choice == 1;
    break;
  case OPTION_DIAGNOSTICS:
    choice = choose(&c->diag, spelling, value, text_json);
    options->style.json = choice == 1;
    break;
  case OPTION_COLOR:
    choice = choose(&c->diag, spelling, value, colors);
    options->color = choice < 0 ? COLOR_AUTO : (enum color)choice;
    break;
  case OPTION_ERROR_LIMIT:
    number = parse_number(value, INT32_MAX);
    if (number < 0)
      diag_error(&c->diag, ERROR_USAGE, nowhere, "%s takes a number, not '%s'", spelling, value);
    c->diag.error_limit = number < 0 ? 0 : (uint32_t)number;
    break;
  case OPTION_WERROR: c->diag.warnings_are_errors = true; break;
  case OPTION_REMARKS:
    options->style.remarks = true;
    options->style.only_pass = value;
    return !value || take_pass(&c->diag, spelling, value);
  case OPTION_EXPLAIN: c->wants_explain = true; break;
  case OPTION_PRINT_AFTER: return take_print_after(options, spelling, value);
  case OPTION_SAVE_TEMPS: options->save_temps = value; break;
  case OPTION_DEPFILE:
    options->dependency_file = value;
    options->dependencies = true;
    break;
  case OPTION_FROM:
    c->from = value;
    c->reads_ir = true;
    return take_pass(&c->diag, spelling, value);
  case OPTION_STOP_AFTER: c->stop_after = value; return take_pass(&c->diag, spelling, value);
  case OPTION_VERIFY_EACH: c->verify_each = true; break;
  case OPTION_TIME_PASSES: options->time_passes = true; break;
  case OPTION_LIST_TARGETS:
  case OPTION_LIST_PASSES:
  case OPTION_VERSION:
  case OPTION_HELP:
    if (options->action == ACTION_COMPILE)
      options->action = option == OPTION_LIST_TARGETS  ? ACTION_LIST_TARGETS
                        : option == OPTION_LIST_PASSES ? ACTION_LIST_PASSES
                        : option == OPTION_VERSION     ? ACTION_VERSION
                                                       : ACTION_HELP;
    break;
  case OPTION_EXPLAIN_ERROR: return take_explain_error(options, value);
  case OPTION_COUNT: break;
  }
  return choice >= 0 && number >= 0;
}

// ---- Arguments

// How an argument spells an option: its value is in the argument, in the next one, or absent.
struct spelled {
  enum option option; // OPTION_COUNT: none
  const char *value;  // NULL: not in the argument
};

static struct spelled match(const char *argument) {
  for (int i = 0; i < OPTION_COUNT; i++) {
    const struct option_info *info = &option_table[i];
    size_t length = strlen(info->spelling);
    bool is_long = info->spelling[1] == '-';
    if (strncmp(argument, info->spelling, length) != 0) continue;
    const char *rest = argument + length;
    if (!*rest) return (struct spelled){(enum option)i, NULL};
    if (is_long && *rest == '=') return (struct spelled){(enum option)i, rest + 1};
    if (!is_long && (info->form == FORM_VALUE || info->form == FORM_DIGIT))
      return (struct spelled){(enum option)i, rest};
  }
  return (struct spelled){OPTION_COUNT, NULL};
}

static void refuse_unknown(struct diag *diag, const char *argument) {
  size_t length = strcspn(argument, "=");
  struct suggestion suggestion = suggest(arena_strndup(diag->arena, argument, length));
  for (int i = 0; i < OPTION_COUNT; i++) suggest_consider(&suggestion, option_table[i].spelling);
  diag_error(diag, ERROR_USAGE, nowhere, "unknown option '%s'", argument);
  if (suggestion.best) diag_note(diag, nowhere, "did you mean '%s'?", suggestion.best);
}

enum option_taken options_take(struct options *options, int argc, char **argv, int *at) {
  struct diag *diag = &options->compilation->diag;
  const char *argument = argv[*at];
  if (argument[0] != '-' || !argument[1]) return OPTION_NOT_ONE;
  struct spelled spelled = match(argument);
  ++*at;
  if (spelled.option == OPTION_COUNT) {
    refuse_unknown(diag, argument);
    return OPTION_REFUSED;
  }
  const struct option_info *info = &option_table[spelled.option];
  switch (info->form) {
  case FORM_FLAG:
    if (!spelled.value) break;
    diag_error(diag, ERROR_USAGE, nowhere, "%s takes no value", info->spelling);
    return OPTION_REFUSED;
  case FORM_OPTIONAL: break;
  case FORM_VALUE:
    if (!spelled.value && *at < argc) spelled.value = argv[(*at)++];
    if (spelled.value && *spelled.value) break;
    diag_error(diag, ERROR_USAGE, nowhere, "%s needs %s", info->spelling, info->argument);
    return OPTION_REFUSED;
  case FORM_DIGIT:
    if (spelled.value && spelled.value[0] >= '0' && spelled.value[0] <= '3' && !spelled.value[1]) break;
    diag_error(diag, ERROR_USAGE, nowhere, "%s is followed by a digit, %s, not '%s'", info->spelling,
               info->argument, spelled.value ? spelled.value : "");
    return OPTION_REFUSED;
  }
  return apply(options, spelled.option, spelled.value) ? OPTION_TAKEN : OPTION_REFUSED;
}

// ---- The whole command line

static bool ends_with(const char *text, const char *end) {
  size_t length = strlen(text), end_length = strlen(end);
  return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static void refuse(struct options *options, const char *why) {
  diag_error(&options->compilation->diag, ERROR_USAGE, nowhere, "%s", why);
}

// What -o and --emit mean together.
static void choose_output(struct options *options) {
  struct compilation *c = options->compilation;
  const char *slash = strrchr(options->output, '/');
  const char *suffix = strrchr(slash ? slash : options->output, '.');
  for (int i = 0; !options->has_emit && suffix && emit_suffixes[i]; i++)
    if (strcmp(suffix, emit_suffixes[i]) == 0) {
      options->emit = (enum emit_kind)i;
      options->has_emit = true;
    }
  if (!options->has_emit && c->stop_after) {
    options->emit = EMIT_IR;
  } else if (!options->has_emit && suffix) {
    diag_error(&c->diag, ERROR_USAGE, nowhere, "the suffix of '%s' does not say what to write",
               options->output);
    diag_note(&c->diag, nowhere, "it may be %s; or say it with --emit", enumerate(&c->arena, emit_suffixes));
  }
  if (options->has_output && strcmp(options->output, "-") != 0) c->header_name = options->output;
  if (options->emit == EMIT_CUBIN && !options->has_output)
    refuse(options, "a cubin is binary: give -o PATH, or -o - for standard output");
  if (c->stop_after && options->emit != EMIT_IR && options->emit != EMIT_AST)
    refuse(options, "--stop-after leaves IR, from which only --emit=ir can be written");
}

// What -MD and several targets need of the output.
static void check_output(struct options *options) {
  bool is_file = options->has_output && strcmp(options->output, "-") != 0;
  if (!options->dependencies && (options->dependency_file || options->dependency_targets || options->phony))
    refuse(options, "-MF, -MT and -MP say how -MD writes dependencies; give -MD too");
  if (options->dependencies && !is_file && (!options->dependency_file || !options->dependency_targets))
    refuse(options, "a rule about the output needs -o PATH, or both -MF PATH and -MT TARGET");
  if (options->names_targets && !is_file) refuse(options, "several targets need -o PATH: a file each is written");
}

// The file of -MD is neither an input nor an output.
static void check_dependencies(struct options *options) {
  struct diag *diag = &options->compilation->diag;
  const char *path = options->dependency_file ? options->dependency_file : depfile_path(&options->compilation->arena, options->output);
  if (!options->dependencies || strcmp(path, "-") == 0) return;
  for (uint32_t i = 0; i < options->inputs.count; i++)
    if (output_is_same_file(options->inputs.at[i], path)) diag_error(diag, ERROR_USAGE, nowhere, "the dependencies in '%s' would replace an input", path);
  bool is_device = strncmp(path, "/dev/", 5) == 0;
  if (!is_device && (strcmp(path, options->output) == 0 || output_is_same_file(path, options->output)))
    diag_error(diag, ERROR_USAGE, nowhere, "'%s' would be both the output and the file of its dependencies", path);
}

static void check_inputs(struct options *options) {
  struct compilation *c = options->compilation;
  uint32_t standard = 0;
  if (!options->inputs.count) {
    refuse(options, "no input file");
    diag_note(&c->diag, nowhere, "usage: redc [options] FILE.red...; see redc --help");
  }
  for (uint32_t i = 0; i < options->inputs.count; i++) {
    const char *input = list_at(&options->inputs, const char, i);
    c->reads_ir |= ends_with(input, ".ir");
    standard += strcmp(input, "-") == 0;
    if (options->has_output && strcmp(options->output, "-") != 0 &&
        output_is_same_file(input, options->output))
      diag_error(&c->diag, ERROR_USAGE, nowhere, "the output '%s' would replace an input", options->output);
  }
  if (standard > 1) refuse(options, "standard input is given twice");
  if (!c->reads_ir) return;
  if (options->inputs.count > 1) refuse(options, "IR is read from one file, without others beside it");
  if (c->options.defines.count) refuse(options, "-D has no effect on IR, whose sizes are already in place");
  if (c->options.schedule)
    refuse(options, "--schedule has no effect on IR, whose schedules are already chosen");
  if (options->emit == EMIT_AST) refuse(options, "--emit=ast needs a program, not IR");
}

bool options_parse(struct options *options, int argc, char **argv) {
  struct compilation *c = options->compilation;
  bool only_files = false;
  uint32_t errors = c->diag.error_count;
  if (!options_expand(&c->diag, argc, argv, &argc, &argv)) return false;
  for (int at = 1; at < argc;) {
    if (!only_files && strcmp(argv[at], "--") == 0) {
      only_files = true;
      at++;
    } else if (only_files || options_take(options, argc, argv, &at) == OPTION_NOT_ONE) {
      list_push(&c->arena, &options->inputs, argv[at++]);
    }
  }
  if (options->action == ACTION_COMPILE && c->diag.error_count == errors) {
    choose_output(options);
    check_output(options);
    check_inputs(options);
    check_dependencies(options);
  }
  return c->diag.error_count == errors;
}

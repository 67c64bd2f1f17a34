// redc-clang inspect: the command line.
#include "codegen/inspect.h"
#include "codegen/inspect_print.h"

#include "compiler/input.h"
#include "compiler/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] =
    "Usage: redc inspect [options] FILE...\n"
    "Say what kernels do: masks of warp functions, coalescing and bank conflicts of\n"
    "every access, loops, and what is wrong. FILE is a program (.red), CUDA source\n"
    "(.cu) or PTX (.ptx); - is standard input, CUDA or PTX.\n\n"
    "  --json                  one JSON object a file\n"
    "  --html                  (.red) one page with the program, its passes, CUDA and PTX side by\n"
    "                          side; needs no network\n"
    "  -o FILE                 write there; - is standard output\n"
    "  --block X[,Y,Z]         threads of a block; otherwise __launch_bounds__, otherwise 256\n"
    "  --block KERNEL=X[,Y,Z]  of one kernel\n"
    "  --grid X[,Y,Z]          blocks of the grid, for products that can overflow\n"
    "  --value NAME=N          the value of a parameter\n"
    "  --kernel NAME           this kernel alone\n"
    "  -Werror                 exit with 1 where something is wrong\n"
    "  -I DIR -D NAME[=VALUE] --cuda-path=DIR -std=...\n"
    "                          for Clang; no CUDA toolkit is needed\n"
    "  --color=auto|always|never --diagnostics=text|json\n"
    "  --help                  print this text\n\n"
    "Findings: activemask mask-lane mask-shift divergent-collective warp-synchronous\n"
    "legacy-shuffle shared-race misaligned index-overflow grid-dimension uncoalesced\n"
    "bank-conflict. Speed alone is what the last two are about.\n\n"
    "Exit status: 0 all is well; 1 an error, or with -Werror a finding; 2 the command\n"
    "line is not legal.\n\n"
    "  redc inspect examples/01-rowsum.red -D m=11\n"
    "  redc inspect kernel.cu --block 32,4 --value n=1000\n"
    "  redc inspect examples/03-softmax.red --html -o softmax.html\n";

enum { STATUS_OK, STATUS_USER, STATUS_USAGE };

struct kernel_block {
  const char *kernel; // NULL: of all
  uint32_t block[3];
};

struct command {
  struct arena arena;
  struct diag diag;
  struct diag_style style;
  struct inspect_sizes sizes;
  struct list blocks; // struct kernel_block
  struct map registers; // int64_t by the name of a kernel, from redc
  struct list files, clang; // const char *
  const char *output, *kernel, *display;
  bool json, wants_help, warnings_are_errors;
  struct text out;
};

static const struct range nowhere;

#define usage(command, ...) diag_error(&(command)->diag, ERROR_USAGE, nowhere, __VA_ARGS__)

// --- Command line

static bool take_value(struct command *command, const char *name, int argc, char **argv, int *at, const char **value) {
  size_t length = strlen(name);
  if (strncmp(argv[*at], name, length) != 0) return false;
  if (argv[*at][length] == '=') {
    *value = argv[(*at)++] + length + 1;
    return true;
  }
  if (argv[*at][length]) return false;
  if (*at + 1 >= argc) {
    usage(command, "%s needs a value; see redc inspect --help", name);
    *value = NULL;
    ++*at;
    return true;
  }
  *value = argv[*at + 1];
  *at += 2;
  return true;
}

// X[,Y,Z] from lo to hi.
static bool parse_extents(const char *text, int64_t hi, int64_t extents[3]) {
  for (int d = 0; d < 3; d++) extents[d] = 1;
  for (int d = 0; d < 3; d++) {
    char *end;
    if (*text < '0' || *text > '9') return false;
    extents[d] = strtoll(text, &end, 10);
    if (extents[d] < 1 || extents[d] > hi) return false;
    if (!*end) return true;
    if (*end != ',') return false;
    text = end + 1;
  }
  return false;
}

static void take_block(struct command *command, const char *value) {
  const char *equal = strchr(value, '=');
  struct kernel_block *block = arena_new(&command->arena, struct kernel_block);
  int64_t extents[3];
  if (equal) block->kernel = arena_strndup(&command->arena, value, (size_t)(equal - value));
  if (!parse_extents(equal ? equal + 1 : value, INSPECT_MAX_THREADS, extents) || extents[0] * extents[1] * extents[2] > INSPECT_MAX_THREADS) {
    usage(command, "--block takes X[,Y,Z] of at most %d threads, not '%s'", INSPECT_MAX_THREADS, value);
    return;
  }
  for (int d = 0; d < 3; d++) block->block[d] = (uint32_t)extents[d];
  list_push(&command->arena, &command->blocks, block);
}

static void take_number(struct command *command, const char *option, const char *value, struct map *numbers) {
  const char *equal = strchr(value, '=');
  char *end = NULL;
  int64_t number = equal ? strtoll(equal + 1, &end, 0) : 0;
  if (!equal || equal == value || !equal[1] || *end) {
    usage(command, "%s takes NAME=N, an integer, not '%s'", option, value);
    return;
  }
  int64_t *kept = arena_new(&command->arena, int64_t);
  *kept = number;
  map_set(numbers, arena_strndup(&command->arena, value, (size_t)(equal - value)), kept);
}

static void push(struct command *command, struct list *list, const char *text) { list_push(&command->arena, list, (void *)(uintptr_t)text); }

static void take_argument(struct command *command, int argc, char **argv, int *at) {
  const char *argument = argv[*at], *value;
  if (take_value(command, "--block", argc, argv, at, &value)) {
    if (value) take_block(command, value);
  } else if (take_value(command, "--grid", argc, argv, at, &value)) {
    if (value && !parse_extents(value, INT32_MAX, command->sizes.grid)) usage(command, "--grid takes X[,Y,Z], not '%s'", value);
  } else if (take_value(command, "--value", argc, argv, at, &value)) {
    if (value) take_number(command, "--value", value, &command->sizes.values);
  } else if (take_value(command, "--registers", argc, argv, at, &value)) {
    if (value) take_number(command, "--registers", value, &command->registers);
  } else if (take_value(command, "--kernel", argc, argv, at, &value)) {
    command->kernel = value;
  } else if (take_value(command, "--name", argc, argv, at, &value)) {
    command->display = value;
  } else if (take_value(command, "-o", argc, argv, at, &value)) {
    command->output = value;
  } else if (take_value(command, "--color", argc, argv, at, &value)) {
    if (value) command->style.color = strcmp(value, "always") == 0;
  } else if (take_value(command, "--diagnostics", argc, argv, at, &value)) {
    if (value) command->style.json = strcmp(value, "json") == 0;
  } else {
    ++*at;
    if (strcmp(argument, "--json") == 0) {
      command->json = true;
    } else if (strcmp(argument, "--help") == 0) {
      command->wants_help = true;
    } else if (strcmp(argument, "-Werror") == 0) {
      command->warnings_are_errors = true;
    } else if ((strcmp(argument, "-I") == 0 || strcmp(argument, "-D") == 0) && *at < argc) {
      push(command, &command->clang, argument);
      push(command, &command->clang, argv[(*at)++]);
    } else if (strncmp(argument, "-I", 2) == 0 || strncmp(argument, "-D", 2) == 0 || strncmp(argument, "-std=", 5) == 0 ||
               strncmp(argument, "--cuda-path=", 12) == 0) {
      push(command, &command->clang, argument);
    } else if (argument[0] == '-' && argument[1]) {
      usage(command, "redc inspect has no option '%s'; see redc inspect --help", argument);
    } else {
      push(command, &command->files, argument);
    }
  }
}

// --- Files

static void choose_block(const struct command *command, const char *kernel, struct inspect_sizes *sizes) {
  for (uint32_t i = 0; i < command->blocks.count; i++) {
    const struct kernel_block *block = list_at(&command->blocks, struct kernel_block, i);
    if (!block->kernel || strcmp(block->kernel, kernel) == 0) memcpy(sizes->block, block->block, sizeof sizes->block);
  }
}

static void report_findings(struct command *command, const struct kernel_report *report) {
  for (uint32_t i = 0; i < report->findings.count; i++) {
    const struct finding *finding = list_at(&report->findings, struct finding, i);
    diag_warning(&command->diag, 0, finding->range, "%s [%s]", finding->message, finding_name(finding->kind));
    diag_note(&command->diag, nowhere, "%s", finding_why(finding->kind));
    diag_note(&command->diag, nowhere, "%s", finding_fix(finding->kind));
  }
}

static void inspect_file(struct command *command, const char *path) {
  struct text text = {0};
  struct cuda_module module = {0};
  if (!input_read(&command->diag, path, &text)) return;
  const char *name = command->display ? command->display : input_name(path);
  const char *copy = arena_strndup(&command->arena, text.data ? text.data : "", text.length);
  uint32_t file = diag_add_source(&command->diag, name, copy, text.length);
  struct inspect_request request = {path, name, file, (const char *const *)command->clang.at, command->clang.count};
  text_free(&text);
  if (!input_is_text(&command->diag, file) || !inspect_read(&command->diag, &request, &module)) return;
  struct kernel_report *reports = arena_array(&command->arena, struct kernel_report, module.functions.count + 1);
  uint32_t count = 0;
  for (uint32_t i = 0; i < module.functions.count; i++) {
    const struct cuda_function *function = list_at(&module.functions, struct cuda_function, i);
    if (!function->is_kernel || (command->kernel && strcmp(command->kernel, function->name) != 0)) continue;
    struct inspect_sizes sizes = command->sizes;
    choose_block(command, function->name, &sizes);
    inspect_kernel(&command->diag, &module, function, &sizes, &reports[count]);
    const int64_t *registers = map_get(&command->registers, function->name);
    if (registers) reports[count].registers = (int)*registers;
    report_findings(command, &reports[count++]);
  }
  if (!count) diag_error(&command->diag, ERROR_ARGUMENT, nowhere, command->kernel ? "'%s' has no kernel '%s'" : "'%s' has no kernel", name, command->kernel);
  if (command->json)
    inspect_json(name, reports, count, &command->out);
  else
    inspect_print(&command->diag, reports, count, &command->out);
}

int inspect_main(int argc, char **argv) {
  struct command command = {.output = "-"};
  arena_init(&command.arena);
  diag_init(&command.diag, &command.arena);
  map_init(&command.sizes.values, &command.arena);
  map_init(&command.registers, &command.arena);
  int status = STATUS_OK;
  for (int at = 1; at < argc;) take_argument(&command, argc, argv, &at);
  if (!command.files.count && !command.wants_help && !command.diag.error_count) usage(&command, "redc inspect needs a file; see redc inspect --help");
  if (command.diag.error_count) {
    status = STATUS_USAGE;
  } else if (command.wants_help) {
    text_puts(&command.out, HELP);
    output_write(&command.diag, "-", command.out.data, command.out.length);
  } else {
    command.diag.warnings_are_errors = command.warnings_are_errors;
    for (uint32_t i = 0; i < command.files.count; i++) inspect_file(&command, list_at(&command.files, const char, i));
    // Findings do not hold the report back.
    if (command.out.length) output_write(&command.diag, command.output, command.out.data, command.out.length);
    status = command.diag.error_count ? STATUS_USER : STATUS_OK;
  }
  struct text messages = {0};
  diag_print(&command.diag, &command.style, &messages);
  if (messages.length) fwrite(messages.data, 1, messages.length, stderr);
  text_free(&messages);
  text_free(&command.out);
  arena_destroy(&command.arena);
  return status;
}

// CUDA source of a module, for a person to read: what the PTX does, in the source's own names.
#include "codegen/cuda.h"
#include "codegen/program.h"

#include <string.h>

enum { MOST_ENTRIES = 4 }; // of a kernel that are all printed

static uint32_t count_lines(const char *text) {
  uint32_t count = 0;
  for (; *text; text++) count += *text == '\n';
  return count;
}

// Appends text that came from no place in the source.
static void append(struct cuda *cg, struct text *out, struct list *lines, const char *text) {
  text_puts(out, text);
  for (uint32_t i = count_lines(text); lines && i > 0; i--)
    list_push(cg->context->arena, lines, arena_new(cg->context->arena, struct range));
}

static void header(struct cuda *cg, struct text *out, struct list *lines) {
  const struct list *sources = &cg->context->diag->sources;
  struct text text = {0};
  text_puts(&text, "// CUDA by red");
  if (sources->count) text_printf(&text, " from %s", list_at(sources, struct source, 0)->name);
  text_puts(&text, ". Compiles with nvcc and NVRTC and needs no header.\n");
  append(cg, out, lines, text.data);
  text_free(&text);
}

static void helpers(struct cuda *cg, struct text *out, struct list *lines) {
  static const char *const code[CUDA_HELPER_COUNT] = {
#define H(name, needs, text) [CUDA_##name] = text,
#include "codegen/cuda_helpers.def"
#undef H
  };
  for (uint32_t i = 0; i < cg->wides.count; i++) {
    append(cg, out, lines, "\n");
    append(cg, out, lines, list_at(&cg->wides, char, i));
  }
  for (int i = 0; i < CUDA_HELPER_COUNT; i++)
    if (cg->helpers[i]) {
      append(cg, out, lines, "\n");
      append(cg, out, lines, code[i]);
    }
}

// --- Which entries are printed ---------------------------------------------------------------------------------------------

// Whether the compiler wrote the entry's schedule. The text of those is a source of its own, under this name in dumps too.
static bool is_own(const struct pass_context *context, const struct ir_entry *entry) {
  const struct list *sources = &context->diag->sources;
  if (entry->is_automatic || !entry->schedule || !*entry->schedule) return true;
  return entry->range.file < sources->count && strncmp(list_at(sources, struct source, entry->range.file)->name, "<schedules of ", 14) == 0;
}

// The last of the compiler's own schedules that is for wide accesses and many threads stands for all of them; NULL where the program has schedules.
static const struct ir_entry *find_example(const struct pass_context *context, const struct ir_kernel *kernel) {
  const struct ir_entry *found = NULL;
  for (uint32_t i = 0; i < kernel->entries.count; i++) {
    const struct ir_entry *entry = kernel->entries.at[i];
    if (!is_own(context, entry)) return NULL;
    if (entry->is_general || entry->launch) continue;
    bool is_plain = !entry->schedule || !*entry->schedule || strstr(entry->schedule, "_odd") || strcmp(entry->schedule, "thread") == 0;
    if (!found || !is_plain) found = entry;
  }
  return found;
}

// Fills in which entries are shown. A few are all shown; of many, those of the program's schedules or an example of the compiler's own, without what
// stands in for them where sizes reach 2^31.
static void choose_entries(const struct pass_context *context, const struct ir_kernel *kernel, bool *is_shown) {
  const struct ir_entry *example = find_example(context, kernel);
  bool is_all = context->options->all_entries || kernel->entries.count <= MOST_ENTRIES;
  for (uint32_t i = 0; i < kernel->entries.count; i++) {
    const struct ir_entry *entry = kernel->entries.at[i];
    is_shown[i] = is_all || (entry->launch ? is_shown[i - 1] : !entry->is_general && (entry == example || !is_own(context, entry)));
  }
}

// Names what is left out.
static void tell_rest(struct cuda *cg, struct text *out, struct list *lines, const struct ir_kernel *kernel, const bool *is_shown) {
  struct arena *arena = cg->context->arena;
  const char *names = "";
  uint32_t width = 0;
  bool is_any = false;
  for (uint32_t i = 0; i < kernel->entries.count; i++) {
    const struct ir_entry *entry = kernel->entries.at[i];
    is_any |= !is_shown[i];
    if (is_shown[i] || entry->is_general || entry->launch) continue;
    const char *name = entry->schedule && *entry->schedule ? entry->schedule : "one without a name";
    bool breaks = width > 80;
    width = breaks ? 0 : width + (uint32_t)strlen(name) + 2;
    names = arena_printf(arena, "%s%s%s", names, *names ? breaks ? ",\n//   " : ", " : "", name);
  }
  if (!is_any) return;
  append(cg, out, lines,
         arena_printf(arena, "//\n// Kernel %s: its other schedules, and entries of 64-bit sizes, are left out here%s%s.\n"
                             "// --schedule=NAME prints one of them, -D NAME=N those for that size, --all-entries all.\n",
                      kernel->name, *names ? ":\n//   " : "", names));
}

bool codegen_cuda(struct pass_context *context, struct text *out, struct list *lines) {
  if (!codegen_accepts(context)) return false;
  struct cuda *cg = arena_new(context->arena, struct cuda);
  cg->context = context;
  struct list shown = {0}; // bool *: one a kernel
  map_init(&cg->globals, context->arena);
  for (uint32_t k = 0; k < context->module->kernels.count; k++) {
    const struct ir_kernel *kernel = list_at(&context->module->kernels, struct ir_kernel, k);
    bool *is_shown = arena_array(context->arena, bool, kernel->entries.count + 1);
    list_push(context->arena, &shown, is_shown);
    choose_entries(context, kernel, is_shown);
    for (uint32_t i = 0; i < kernel->entries.count; i++)
      if (is_shown[i]) cuda_entry(cg, kernel, list_at(&kernel->entries, struct ir_entry, i));
  }
  header(cg, out, lines);
  for (uint32_t k = 0; k < shown.count; k++) tell_rest(cg, out, lines, list_at(&context->module->kernels, struct ir_kernel, k), shown.at[k]);
  helpers(cg, out, lines);
  text_append(out, cg->text.data ? cg->text.data : "", cg->text.length);
  if (lines) list_append(context->arena, lines, &cg->lines);
  text_free(&cg->text);
  text_free(&cg->line);
  return true;
}

// CUDA source of a module, for a person to read: what the PTX does, in the source's own names.
#include "codegen/cuda.h"
#include "codegen/program.h"

#include <string.h>

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

bool codegen_cuda(struct pass_context *context, struct text *out, struct list *lines) {
  if (!codegen_accepts(context)) return false;
  struct cuda *cg = arena_new(context->arena, struct cuda);
  cg->context = context;
  map_init(&cg->globals, context->arena);
  for (uint32_t k = 0; k < context->module->kernels.count; k++) {
    const struct ir_kernel *kernel = list_at(&context->module->kernels, struct ir_kernel, k);
    for (uint32_t i = 0; i < kernel->entries.count; i++)
      cuda_entry(cg, kernel, list_at(&kernel->entries, struct ir_entry, i));
  }
  header(cg, out, lines);
  helpers(cg, out, lines);
  text_append(out, cg->text.data ? cg->text.data : "", cg->text.length);
  if (lines) list_append(context->arena, lines, &cg->lines);
  text_free(&cg->text);
  text_free(&cg->line);
  return true;
}

// Any bytes as a program: parsed, checked, lowered and emitted in every form. Errors are fine; a crash, a leak and an
// internal error are not.
#include "compiler/pipeline.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const enum emit_kind kinds[] = {EMIT_AST, EMIT_IR, EMIT_CUDA, EMIT_PTX};
  struct compilation c;
  compilation_init(&c);
  c.options.target = target_find("sm_80");
  c.options.optimize = 1;
  c.verify_each = true;
  struct define define = {.name = "m", .integer = 11};
  list_push(&c.arena, &c.options.defines, &define);
  if (compilation_parse_text(&c, "fuzz.red", (const char *)data, size) && compilation_lower(&c)) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !c.diag.error_count; i++) {
      struct text out = {0};
      compilation_emit(&c, kinds[i], &out);
      text_free(&out);
    }
  }
  struct text messages = {0};
  struct diag_style style = {.remarks = true};
  diag_print(&c.diag, &style, &messages);
  if (c.diag.internal) {
    fprintf(stderr, "%s", messages.data);
    abort();
  }
  text_free(&messages);
  compilation_destroy(&c);
  return 0;
}

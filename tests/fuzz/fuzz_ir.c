// IR text: any bytes are read or refused with a message; what verifies prints to text that reads back to the
// same.
//
//   fuzz_ir -max_len=8192 CORPUS tests/fuzz/ir
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/ir.h"

struct reading {
  struct arena arena;
  struct diag diag;
  struct ir_module module;
};

static bool read_text(struct reading *r, const char *text, size_t length) {
  memset(r, 0, sizeof *r);
  arena_init(&r->arena);
  diag_init(&r->diag, &r->arena);
  r->module.arena = &r->arena;
  r->module.diag = &r->diag;
  return ir_read(&r->module, diag_add_source(&r->diag, "fuzz.ir", text, length));
}

static void fail(const char *what, const struct text *first, const struct text *second) {
  fprintf(stderr, "%s\n--- first\n%s\n--- second\n%s\n", what, first->data, second->data ? second->data : "");
  abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct reading one, two;
  struct text first = {0}, second = {0}, messages = {0};
  bool good = read_text(&one, (const char *)data, size);
  if (good == (one.diag.error_count != 0)) abort();
  if (good && ir_verify(&one.module, "fuzz", true)) {
    ir_print(&one.module, &first);
    if (!read_text(&two, first.data, first.length)) fail("the text is refused", &first, &second);
    if (!ir_verify(&two.module, "fuzz", true)) fail("the text does not verify", &first, &second);
    ir_print(&two.module, &second);
    if (strcmp(first.data, second.data) != 0) fail("the text differs", &first, &second);
    arena_destroy(&two.arena);
  }
  struct diag_style style = {0};
  diag_print(&one.diag, &style, &messages);
  text_free(&first);
  text_free(&second);
  text_free(&messages);
  arena_destroy(&one.arena);
  return 0;
}

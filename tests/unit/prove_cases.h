// Programs as IR text, for the tests of what proves and what places barriers.
#ifndef RED_TESTS_UNIT_PROVE_CASES_H
#define RED_TESTS_UNIT_PROVE_CASES_H

#include "compiler/pass.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

struct proved {
  struct arena arena;
  struct diag diag;
  struct ir_module module;
  struct pass_context context;
  struct text text, explain;
};

// Reads an entry of `block` ("100 1 1") with `memory` lines and a body; A is an input and B an output of n floats, n a size.
static inline struct ir_entry *proved_begin(struct proved *p, const char *block, const char *memory, const char *body) {
  memset(p, 0, sizeof *p);
  arena_init(&p->arena);
  diag_init(&p->diag, &p->arena);
  p->module.arena = &p->arena;
  p->module.diag = &p->diag;
  p->context = (struct pass_context){.arena = &p->arena, .diag = &p->diag, .module = &p->module, .explain = &p->explain, .is_from_ir = true};
  text_printf(&p->text,
              "red-ir 1\nsource 0 \"t.red\"\n\nkernel k {\n  size n\n"
              "  tensor A: f32[n] strides [1:i64] align 4 read\n  tensor B: f32[n] strides [1:i64] align 4 out read parameter 1\n"
              "  infer n = dim(A, 0)\n\n  entry k program index i32 {\n    block %s\n    grid x n\n    grid y 1:i64\n    grid z 1:i64\n%s\n"
              "    body {\n%s\n    }\n  }\n}\n",
              block, memory, body);
  uint32_t file = diag_add_source(&p->diag, "case.ir", p->text.data, p->text.length);
  bool good = ir_read(&p->module, file) && ir_verify(&p->module, "test", true);
  if (!good) {
    struct text errors = {0};
    struct diag_style style = {0};
    diag_print(&p->diag, &style, &errors);
    cr_assert(good, "%s\n%s", errors.data, p->text.data);
  }
  struct ir_kernel *kernel = p->module.kernels.at[0];
  struct ir_entry *entry = kernel->entries.at[0];
  ir_collect_names(kernel, entry);
  return entry;
}

static inline void proved_end(struct proved *p) {
  text_free(&p->text);
  text_free(&p->explain);
  arena_destroy(&p->arena);
}

static inline const char *proved_message(const struct proved *p) {
  return p->diag.diagnostics.count ? list_at(&p->diag.diagnostics, struct diagnostic, 0)->message : "none";
}

// Expects a proof, or where `message` is not NULL a first error that holds it.
static inline void expect_proof(const char *name, const char *block, const char *memory, const char *body, const char *message) {
  struct proved p;
  struct ir_entry *entry = proved_begin(&p, block, memory, body);
  bool good = pass_prove(&p.context, p.module.kernels.at[0], entry);
  cr_expect(good == (message == NULL), "%s: %s", name, proved_message(&p));
  if (message) cr_expect(strstr(proved_message(&p), message), "%s: wanted '%s', got: %s", name, message, proved_message(&p));
  cr_expect(good == (p.diag.error_count == 0), "%s", name);
  proved_end(&p);
}

#define LET(name, type, value) "let " name ": " type " = " value "\n"
#define THREAD "thread.x:i32"
#define DOWN(result, value, mask, offset) LET(result, "f32", "shfl_down(" mask ":u32, " value ", " offset ":u32)")
#define XOR(result, value, mask, offset) LET(result, "f32", "shfl_xor(" mask ":u32, " value ", " offset ":u32)")
#define OWN LET("x", "f32", "load_flat(A, " THREAD ")")
#define STORE(value) "store_flat B[" THREAD "] = " value "\n"

#endif

// Evaluates one PTX instruction over arrays: a, b and c are 64-bit words whose low bits fill registers of
// every width
// (%ah %ar %ad and so on), the result is taken from %oh, %or or %od by the width asked for.
#ifndef RED_TESTS_SIM_EVAL_H
#define RED_TESTS_SIM_EVAL_H

#include "runtime/sim/sim.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define EVAL_MOST 65536

static uint64_t eval_a[EVAL_MOST], eval_b[EVAL_MOST], eval_c[EVAL_MOST], eval_o[EVAL_MOST];

static inline uint64_t eval_random(void) {
  static uint64_t state = 88172645463325252u;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state * 0x2545f4914f6cdd1du;
}

static inline struct sim_module *eval_parse(const char *line, int width, struct sim_error *error) {
  char text[4096];
  snprintf(text, sizeof text,
           ".version 8.0\n.target sm_90\n.address_size 64\n"
           ".visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 po)\n{\n"
           ".reg .pred %%ap, %%bp, %%op, %%oq; .reg .b16 %%ah, %%bh, %%ch, %%oh; .reg .b32 %%ar, %%br, %%cr, "
           "%%or, %%t;\n"
           ".reg .b64 %%ad, %%bd, %%cd, %%od, %%x, %%y;\n"
           "mov.u32 %%t, %%ctaid.x; mov.u32 %%ar, %%tid.x; mad.lo.u32 %%t, %%t, 256, %%ar; mul.wide.u32 %%x, "
           "%%t, 8;\n"
           "ld.param.u64 %%y, [pa]; add.u64 %%y, %%y, %%x; ld.global.u64 %%ad, [%%y];\n"
           "ld.param.u64 %%y, [pb]; add.u64 %%y, %%y, %%x; ld.global.u64 %%bd, [%%y];\n"
           "ld.param.u64 %%y, [pc]; add.u64 %%y, %%y, %%x; ld.global.u64 %%cd, [%%y];\n"
           "cvt.u32.u64 %%ar, %%ad; cvt.u32.u64 %%br, %%bd; cvt.u32.u64 %%cr, %%cd;\n"
           "cvt.u16.u64 %%ah, %%ad; cvt.u16.u64 %%bh, %%bd; cvt.u16.u64 %%ch, %%cd;\n"
           "mov.b32 %%or, 0; mov.b64 %%od, 0; mov.b16 %%oh, 0;\n%s\n"
           "%s\nld.param.u64 %%y, [po]; add.u64 %%y, %%y, %%x; st.global.u64 [%%y], %%od; ret;\n}\n",
           line,
           width == 16   ? "cvt.u64.u16 %od, %oh;"
           : width == 32 ? "cvt.u64.u32 %od, %or;"
                         : "");
  return sim_module_parse(text, strlen(text), "eval.ptx", error);
}

// Fills eval_o for the first `count` elements, a multiple of 256.
static inline void eval(const char *line, int width, size_t count) {
  struct sim_error error;
  struct sim_module *module = eval_parse(line, width, &error);
  cr_assert(module, "%s: %s", line, error.message);
  struct sim_memory *memory = sim_memory_create();
  uint64_t *arrays[4] = {eval_a, eval_b, eval_c, eval_o}, addresses[4];
  for (int i = 0; i < 4; i++) addresses[i] = sim_map(memory, arrays[i], 8 * count, "array", true);
  struct sim_launch launch = {.entry = sim_module_find(module, "k"),
                              .grid = {(uint32_t)(count / 256), 1, 1},
                              .block = {256, 1, 1},
                              .parameters = addresses,
                              .parameter_bytes = sizeof addresses};
  struct sim_report report;
  enum sim_result result = sim_launch(module, memory, &launch, NULL, &report);
  char text[512] = "";
  if (report.finding_count) sim_finding_print(&report.findings[0], text, sizeof text);
  cr_assert(result == SIM_OK, "%s: %s%s", line, report.error, text);
  sim_report_free(&report);
  sim_memory_destroy(memory);
  sim_module_destroy(module);
}

// One evaluation of one element.
static inline uint64_t eval_one(const char *line, int width, uint64_t a, uint64_t b, uint64_t c) {
  for (int i = 0; i < 256; i++) eval_a[i] = a, eval_b[i] = b, eval_c[i] = c;
  eval(line, width, 256);
  return eval_o[17];
}

static inline float as_float(uint64_t bits) {
  uint32_t word = (uint32_t)bits;
  float value;
  memcpy(&value, &word, 4);
  return value;
}

static inline double as_double(uint64_t bits) {
  double value;
  memcpy(&value, &bits, 8);
  return value;
}

static inline uint64_t float_bits(float value) {
  uint32_t word;
  memcpy(&word, &value, 4);
  return word;
}

static inline uint64_t double_bits(double value) {
  uint64_t word;
  memcpy(&word, &value, 8);
  return word;
}

#endif

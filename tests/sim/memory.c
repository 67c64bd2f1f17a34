// Address spaces: allocation, copies, what counts as written, sizes over 4 GiB, variables of modules.
#include "runtime/sim/sim.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

Test(memory, copies_and_bounds) {
  struct sim_memory *memory = sim_memory_create();
  uint64_t a = sim_alloc(memory, 100, "a", false), b = sim_alloc(memory, 100, NULL, true);
  cr_assert(a && b && a % 512 == 0 && b % 512 == 0 && (b > a + (UINT64_C(1) << 39)));
  char out[100] = "";
  cr_expect(sim_write(memory, a + 10, "hello", 5) && sim_read(memory, a + 10, out, 5) &&
            strcmp(out, "hello") == 0);
  cr_expect(!sim_write(memory, a + 96, "hello", 5) && !sim_read(memory, a - 1, out, 1) &&
            !sim_read(memory, 0, out, 1));
  cr_expect(!sim_read(memory, a, out, UINT64_MAX) && sim_read(memory, a + 100, out, 0));
  cr_expect(sim_initialised(memory, a, 100) == 5 && sim_initialised(memory, b, 100) == 100);
  cr_expect(sim_fill(memory, a, 0xcc, 50) && sim_initialised(memory, a, 100) == 50);
  cr_expect(sim_mark(memory, b, 20, false) && sim_initialised(memory, b, 100) == 80);
  cr_expect(sim_mark(memory, b, 100, true) && sim_initialised(memory, b, 100) == 100);
  cr_expect(((unsigned char *)sim_host(memory, a, 100))[49] == 0xcc && !sim_host(memory, a, 101));
  cr_expect(sim_free(memory, a) && !sim_free(memory, a) && !sim_free(memory, b + 1) &&
            !sim_read(memory, a, out, 1));
  cr_expect(sim_alloc(memory, UINT64_C(1) << 40, "too much", true) == 0);
  sim_memory_destroy(memory);
  sim_memory_destroy(NULL);
}

Test(memory, host_memory) {
  _Alignas(512) static unsigned char host[1024];
  struct sim_memory *memory = sim_memory_create();
  uint64_t address = sim_map(memory, host + 36, 100, "mapped", true);
  cr_expect(address % 512 == 36);
  cr_expect(sim_fill(memory, address, 7, 100) && host[35] == 0 && host[36] == 7 && host[135] == 7 &&
            host[136] == 0);
  sim_memory_destroy(memory);
}

static struct sim_module *parse(const char *text) {
  struct sim_error error;
  struct sim_module *module = sim_module_parse(text, strlen(text), "m.ptx", &error);
  cr_assert(module, "%d: %s", error.line, error.message);
  return module;
}

// A kernel that reads and writes at both ends of 16 GiB.
Test(memory, huge) {
  struct sim_module *module =
      parse(".version 8.0\n.target sm_80\n.address_size 64\n"
            ".entry k(.param .u64 a)\n{\n.reg .b32 %r<3>;\n.reg .b64 %d<3>;\n"
            "ld.param.u64 %d1, [a];\nadd.u64 %d2, %d1, 17179869180;\nmov.u32 %r1, 77;\n"
            "st.global.u32 [%d2], %r1;\nld.global.u32 %r2, [%d2];\nst.global.u32 [%d1], %r2;\n"
            "st.global.u32 [%d2+4], %r2;\nret;\n}\n");
  struct sim_memory *memory = sim_memory_create();
  uint64_t address = sim_alloc(memory, UINT64_C(1) << 34, "huge", false);
  cr_assert(address);
  struct sim_launch launch = {.entry = sim_module_entry(module, 0),
                              .grid = {1, 1, 1},
                              .block = {1, 1, 1},
                              .parameters = &address,
                              .parameter_bytes = 8};
  struct sim_report report;
  cr_expect(sim_launch(module, memory, &launch, NULL, &report) == SIM_FOUND);
  cr_expect(report.finding_count == 1 && report.findings[0].kind == SIM_OUT_OF_BOUNDS &&
            report.findings[0].ptx_line == 14);
  cr_expect(strstr(report.findings[0].message, "at byte 17179869184 of 'huge', which has 17179869184"));
  uint32_t word = 0;
  cr_expect(sim_read(memory, address, &word, 4) && word == 77);
  sim_report_free(&report);
  sim_memory_destroy(memory);
  sim_module_destroy(module);
}

// Variables keep what kernels write, from launch to launch, and each memory has its own.
Test(memory, variables) {
  struct sim_module *module =
      parse(".version 8.0\n.target sm_80\n.address_size 64\n"
            ".global .align 4 .u32 counter = 40;\n.const .f32 table[2] = {1.5, 0f40000000};\n"
            ".entry k()\n{\n.reg .b32 %r<3>;\natom.global.add.u32 %r1, [counter], 1;\nret;\n}\n");
  struct sim_memory *one = sim_memory_create(), *other = sim_memory_create();
  struct sim_launch launch = {.entry = sim_module_entry(module, 0), .grid = {3, 1, 1}, .block = {2, 1, 1}};
  struct sim_report report;
  for (int i = 0; i < 2; i++) {
    cr_expect(sim_launch(module, one, &launch, NULL, &report) == SIM_OK);
    sim_report_free(&report);
  }
  uint64_t bytes = 0, address = sim_module_variable(one, module, "counter", &bytes);
  uint32_t word = 0;
  cr_expect(bytes == 4 && sim_read(one, address, &word, 4) && word == 52);
  cr_expect(sim_read(other, sim_module_variable(other, module, "counter", NULL), &word, 4) && word == 40);
  float table[2];
  cr_expect(sim_read(one, sim_module_variable(one, module, "table", &bytes), table, 8) && bytes == 8);
  cr_expect(table[0] == 1.5f && table[1] == 2.0f && sim_module_variable(one, module, "none", NULL) == 0);
  sim_memory_destroy(one);
  sim_memory_destroy(other);
  sim_module_destroy(module);
}

// What is freed is known by its name.
Test(memory, use_after_free) {
  struct sim_module *module =
      parse(".version 8.0\n.target sm_80\n.address_size 64\n.entry k(.param .u64 a)\n{\n.reg .b64 %d<3>;\n"
            "ld.param.u64 %d1, [a];\nst.global.u64 [%d1], %d1;\nret;\n}\n");
  struct sim_memory *memory = sim_memory_create();
  uint64_t address = sim_alloc(memory, 64, "gone", false);
  cr_assert(sim_free(memory, address));
  struct sim_launch launch = {.entry = sim_module_entry(module, 0),
                              .grid = {1, 1, 1},
                              .block = {1, 1, 1},
                              .parameters = &address,
                              .parameter_bytes = 8};
  struct sim_report report;
  cr_expect(sim_launch(module, memory, &launch, NULL, &report) == SIM_FOUND);
  cr_expect(strstr(report.findings[0].message, "in 'gone', which was freed"), "%s",
            report.findings[0].message);
  sim_report_free(&report);
  sim_memory_destroy(memory);
  sim_module_destroy(module);
}

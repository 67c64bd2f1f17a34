// What the reader and the decoder refuse, with the place and the message.
#include "runtime/sim/sim.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
#define BODY(text)                                                                                           \
  HEAD ".visible .entry k(.param .u64 k_0)\n{\n.reg .pred %p<4>;\n.reg .b16 %h<4>;\n.reg .b32 %r<4>;\n.reg " \
       ".b64 %d<4>;\n" text "\n}\n"

static void refuses(const char *text, int line, const char *message) {
  struct sim_error error;
  struct sim_module *module = sim_module_parse(text, strlen(text), "t.ptx", &error);
  cr_expect(!module, "accepted: %s", text);
  sim_module_destroy(module);
  cr_expect(error.line == line && strstr(error.message, message), "line %d: %s; wanted line %d: %s",
            error.line, error.message, line, message);
}

Test(reader, syntax) {
  refuses("hello", 1, "unexpected name");
  refuses(HEAD ".entry k(\n", 4, "unexpected end of text");
  refuses(BODY("add.u32 %r1, %r2"), 11, "unexpected '}'");
  refuses(BODY("add.u32 %r1 %r2;"), 10, "unexpected register");
  refuses(BODY("add.u32 %r1, %r2, \001;"), 10, "stray character");
  refuses(BODY("mov.u32 %r1, 0x12345678123456781;"), 10, "integer over 64 bits");
  refuses(BODY("/* never ends"), 10, "comment without end");
  refuses(HEAD ".section .debug_info {", 4, "section without end");
  refuses(BODY("mov.u32 %r1, 4 / 0;"), 10, "division by zero");
}

Test(reader, unknown_words) {
  refuses(BODY("frobnicate.u32 %r1, %r2;"), 10, "unknown instruction 'frobnicate'");
  refuses(BODY("add.wrong.u32 %r1, %r2, %r3;"), 10, "unknown modifier '.wrong' of 'add'");
  refuses(BODY("ld.global.L1::maybe.u32 %r1, [%d1];"), 10, "unknown modifier '.L1::maybe' of 'ld'");
  refuses(BODY("wmma.load.a.sync.row.m16n16k16 %r1, [%d1];"), 10, "unknown instruction 'wmma'");
  refuses(BODY("add.u99 %r1, %r2, %r3;"), 10, "'add' needs a type");
  refuses(BODY("shfl.down.b32 %r1, %r2, %r3, 31;"), 10, "without .sync");
  refuses(BODY("setp.almost.u32 %p1, %r1, %r2;"), 10, "needs a comparison");
  refuses(HEAD ".alias a, b;", 4, "'.alias' is not supported");
}

Test(reader, operands) {
  refuses(BODY("add.u32 %r1, %r2, %r9;"), 10, "'%r9' is no register");
  refuses(BODY("add.u32 %r1, %d2, %r3;"), 10, "'%d2' is a .b64 register where a .u32 value belongs");
  refuses(BODY("add.f32 %r1, %r2, 3;"), 10, "an integer constant where a .f32 value belongs");
  refuses(BODY("add.u32 %r1, %r2;"), 10, "has 2 operands");
  refuses(BODY("bra NOWHERE;"), 10, "'NOWHERE' is no label");
  refuses(BODY("ld.global.u32 %r1, %d1;"), 10, "needs an address in brackets");
  refuses(BODY("ld.global.v2.u32 %r1, [%d1];"), 10, "has 1 elements where 2 belong");
  refuses(BODY("ld.shared.u32 %r1, [k_0];"), 10, "lies in another state space");
  refuses(BODY("call missing;"), 10, "'missing' is no function");
  refuses(BODY("mul.u32 %r1, %r2, %r3;"), 10, "needs .lo, .hi or .wide");
  refuses(BODY("cvt.s32.f32 %r1, %r2;"), 10, "needs .rni");
  refuses(BODY("@%r1 ret;"), 10, "'%r1' is a .b32 register where a .pred value belongs");
  refuses(BODY("atom.global.add.b32 %r1, [%d1], %r2;"), 10, "does not take the type .b32");
}

Test(reader, declarations) {
  refuses(BODY(".reg .b32 %r1;\n.reg .b32 %q, %q;"), 11, "'%q' is declared twice");
  refuses(BODY("A:\nA:"), 11, "'A' is declared twice");
  refuses(HEAD ".global .align 4 .b8 x[4] = {1, 2, 3, 4, 5};", 4, "too many initialisers for 'x'");
  refuses(HEAD ".global .align 3 .b8 x[4];", 4, "no power of two");
  refuses(HEAD ".global .b32 x[9999999999][9999999999];", 4, "'x' is too large");
  refuses(HEAD ".global .b32 x;\n.entry x() { ret; }", 4, "'x' is declared twice");
  refuses(BODY(".reg .b32 %many<99999999>;"), 10, "too many registers");
  refuses(HEAD ".entry k() .reqnctapercluster 2, 1, 1 { ret; }", 4, "clusters");
}

// Depth is limited by a message, not by the stack.
Test(reader, depth) {
  size_t depth = 100000;
  char *text = malloc(2 * depth + 200);
  size_t at = (size_t)sprintf(text, HEAD ".entry k()\n");
  memset(text + at, '{', depth);
  memset(text + at + depth, '}', depth);
  text[at + 2 * depth] = 0;
  refuses(text, 5, "scopes or lists nest too deeply");
  at = (size_t)sprintf(text, HEAD ".global .b32 x = ");
  memset(text + at, '(', depth);
  text[at + depth] = 0;
  refuses(text, 4, "scopes or lists nest too deeply");
  free(text);
}

static const char rich[] = HEAD ".extern .shared .align 16 .b8 dynamic[];\n"
                                ".shared .align 8 .b8 fixed[100];\n"
                                ".shared .align 8 .b8 unused[1000];\n"
                                ".const .align 8 .u64 table[2] = {1, 2};\n"
                                ".visible .entry first(.param .u64 .ptr .global .align 16 a, .param .u32 b, "
                                ".param .align 8 .b8 c[24], .param .f32 d)\n"
                                ".reqntid 64, 2, 1\n.minnctapersm 1\n"
                                "{\n.reg .b32 %r<2>;\nmov.u32 %r1, fixed;\nmov.u32 %r1, dynamic;\nret;\n}\n"
                                ".entry second()\n.maxntid 128\n.maxnreg 40\n{ ret; }\n";

Test(reader, entries) {
  struct sim_error error;
  struct sim_module *module = sim_module_parse(rich, sizeof rich - 1, "rich.ptx", &error);
  cr_assert(module, "%d: %s", error.line, error.message);
  cr_expect(sim_module_entry_count(module) == 2 && sim_module_target(module) == 80);
  const struct sim_entry *first = sim_module_find(module, "first"), *second = sim_module_entry(module, 1);
  cr_assert(first && second && !sim_module_find(module, "third") && !sim_module_entry(module, 2));
  cr_expect(first->parameter_count == 4 && first->parameter_bytes == 44);
  const struct sim_parameter *p = first->parameters;
  cr_expect(strcmp(p[0].name, "a") == 0 && p[0].size == 8 && p[0].offset == 0 && p[0].is_pointer &&
            !p[1].is_pointer);
  cr_expect(p[1].offset == 8 && p[1].size == 4 && p[1].alignment == 4);
  cr_expect(p[2].offset == 16 && p[2].size == 24 && p[2].alignment == 8 && p[2].is_array);
  cr_expect(p[3].offset == 40 && p[3].is_float);
  cr_expect(first->required_block[0] == 64 && first->required_block[1] == 2 && first->minimum_blocks == 1);
  cr_expect(first->shared_bytes == 112, "%llu",
            (unsigned long long)first->shared_bytes); // up to the dynamic part
  cr_expect(second->shared_bytes == 0 && second->maximum_block[0] == 128 && second->maximum_registers == 40);
  cr_expect(sim_module_count(module, "mov") == 2 && sim_module_count(module, "ret") == 2 &&
            sim_module_count(module, "bar") == 0);
  sim_module_destroy(module);
}

// Comment blocks, debug sections and line tables are read over.
Test(reader, furniture) {
  static const char text[] =
      "// a comment\n/* a block\n comment */\n" HEAD
      ".file 1 \"dir/a.cu\", 123, 456\n.section .debug_str\n{\n$L__s0:\n.b8 1\n}\n"
      ".weak .func (.param .b32 r) f(.param .b32 a)\n;\n"
      ".entry k()\n{\n.loc 1 2 3\n.pragma \"nounroll\";\n{ .reg .b32 x; mov.b32 x, WARP_SZ; }\n"
      ".loc 1 5 6, function_name $L__s0+4, inlined_at 1 2 3\nret;\n}\n";
  struct sim_error error;
  struct sim_module *module = sim_module_parse(text, sizeof text - 1, "t", &error);
  cr_expect(module, "%d: %s", error.line, error.message);
  sim_module_destroy(module);
}

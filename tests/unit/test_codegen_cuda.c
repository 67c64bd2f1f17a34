// The CUDA text: what a person reads, and that compilers take it as the language means it.
#include "tests/unit/codegen_check.h"

#include <math.h>

// The text, to be freed; checked to have a range for each line.
static struct text cuda_of(struct program *p) {
  struct text cuda = {0};
  struct list lines = {0};
  if (!codegen_cuda(&p->context, &cuda, &lines)) {
    struct text messages = check_messages(p);
    cr_assert(false, "no CUDA: %s", messages.data);
  }
  cr_expect(check_count(cuda.data, "\n") == (int)lines.count);
  return cuda;
}

Test(codegen_cuda, rowsum_reads_like_a_person_wrote_it) {
  struct program p;
  program_rowsum(&p);
  struct text cuda = cuda_of(&p);
  cr_expect_str_eq(
      cuda.data, "// CUDA by red from test.red. Compiles with nvcc and NVRTC and needs no header.\n"
                 "\n"
                 "// kernel rowsum, schedule rowsum: blocks of 11 x 1 x 1 threads\n"
                 "extern \"C\" __global__ void __launch_bounds__(11, 1) rowsum(const float *__restrict__ A, "
                 "float *__restrict__ B) {\n"
                 "  // test.red:2: for i in n { B[i] = sum(j in 11) A[i, j]; }\n"
                 "  int i = blockIdx.x;\n"
                 "  int j = threadIdx.x;\n"
                 "  float total = A[i * 11 + j];\n"
                 "  float other = __shfl_down_sync(0x7ffu, total, 8);\n"
                 "  total = j + 8 < 11 ? total + other : total;\n"
                 "  float other_2 = __shfl_down_sync(0x7ffu, total, 4);\n"
                 "  total = j + 4 < 11 ? total + other_2 : total;\n"
                 "  float other_3 = __shfl_down_sync(0x7ffu, total, 2);\n"
                 "  total = j + 2 < 11 ? total + other_3 : total;\n"
                 "  float other_4 = __shfl_down_sync(0x7ffu, total, 1);\n"
                 "  total = j + 1 < 11 ? total + other_4 : total;\n"
                 "  if (j == 0) {\n"
                 "    B[i] = total;\n"
                 "  }\n"
                 "}\n");
  check_compiles(cuda.data, "sm_75");
  text_free(&cuda);
  program_end(&p);
}

Test(codegen_cuda, lines_know_their_source) {
  struct program p;
  program_rowsum(&p);
  struct text cuda = {0};
  struct list lines = {0};
  cr_assert(codegen_cuda(&p.context, &cuda, &lines));
  cr_expect(list_at(&lines, struct range, 0)->line == 0, "the header comes from no place");
  cr_expect(list_at(&lines, struct range, 3)->line == 1, "the signature from the kernel");
  cr_expect(list_at(&lines, struct range, 5)->line == 2);
  text_free(&cuda);
  program_end(&p);
}

// Names that C++ and CUDA take get an underscore, and stay apart from those that have one.
Test(codegen_cuda, reserved_names_get_an_underscore) {
  static const char *const names[] = {"int", "int_",        "threadIdx", "exp", "NULL",
                                      "min", "red_max_f32", "float4",    "x.y", "xor"};
  struct program p;
  program_begin(&p, "abs", 32, NULL);
  struct ir_mem *out = program_tensor(&p, "this", TYPE_F32, true);
  struct ir_expr *sum = ir_float(&p.arena, TYPE_F32, 0.5);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    sum = program_op(&p, OP_MAX, TYPE_F32, 2, sum, ir_ref(&p.arena, program_scalar(&p, names[i], TYPE_F32)),
                     NULL);
  struct ir_expr *least = program_op(&p, OP_MIN, TYPE_I32, 2, program_special(&p, OP_THREAD, 0),
                                     program_int(&p, TYPE_I32, 7), NULL);
  program_store(&p, out, least, sum);
  struct text cuda = cuda_of(&p);
  cr_expect(strstr(cuda.data, " abs_("));
  cr_expect(strstr(cuda.data, "its name in PTX is abs:"));
  cr_expect(strstr(cuda.data, "float int_,") && strstr(cuda.data, "float int__2,"));
  cr_expect(strstr(cuda.data, "*__restrict__ this_,"));
  cr_expect(strstr(cuda.data, "float red_max_f32_,"));
  cr_expect(strstr(cuda.data, "float x_y,"));
  check_compiles(cuda.data, "sm_75");
  text_free(&cuda);
  program_end(&p);
}

Test(codegen_cuda, reserved_names_are_sorted_for_their_search) {
  static const char *const names[] = {
#define R(name) #name,
#include "codegen/cuda_reserved.def"
#undef R
  };
  for (size_t i = 1; i < sizeof names / sizeof *names; i++)
    cr_expect(strcmp(names[i - 1], names[i]) < 0, "%s", names[i]);
}

// What nothing depends on is not printed: nvcc warns of it.
Test(codegen_cuda, unused_variables_and_arrays_are_left_out) {
  struct program p;
  program_begin(&p, "k", 32, NULL);
  struct ir_mem *in = program_tensor(&p, "A", TYPE_F32, false),
                *out = program_tensor(&p, "B", TYPE_F32, true);
  program_array(&p, "spare", SPACE_SHARED, TYPE_F32, 32);
  struct ir_expr *j = program_let(&p, "j", program_special(&p, OP_THREAD, 0));
  struct ir_expr *unused = program_let(&p, "unused", program_load(&p, in, j));
  struct ir_var *counter = program_var(&p, "counter", unused);
  program_set(&p, counter, ir_binary(&p.arena, OP_ADD, ir_ref(&p.arena, counter), unused));
  program_store(&p, out, j, program_load(&p, in, j));
  struct text cuda = cuda_of(&p);
  cr_expect(!strstr(cuda.data, "unused") && !strstr(cuda.data, "counter") && !strstr(cuda.data, "spare"));
  check_compiles(cuda.data, "sm_75");
  text_free(&cuda);
  program_end(&p);
}

// A product that may reach a sum, directly or through variables, selects, negation and arrays.
static void begin_products(struct program *p) {
  program_begin(p, "k", 32, NULL);
  struct arena *arena = &p->arena;
  struct ir_mem *in = program_tensor(p, "A", TYPE_F32, false), *out = program_tensor(p, "B", TYPE_F32, true);
  struct ir_mem *local = program_array(p, "keep", SPACE_LOCAL, TYPE_F32, 2);
  struct ir_expr *j = program_let(p, "j", program_special(p, OP_THREAD, 0));
  struct ir_expr *x = program_let(p, "x", program_load(p, in, j));
  struct ir_expr *y =
      program_let(p, "y", program_load(p, in, ir_binary(arena, OP_ADD, j, program_int(p, TYPE_I32, 32))));
  struct ir_expr *product = ir_binary(arena, OP_MUL, x, y);
  struct ir_var *total = program_var(p, "total", ir_binary(arena, OP_ADD, product, y));
  struct ir_expr *named = program_let(p, "named", ir_binary(arena, OP_MUL, x, x));
  program_set(p, total, ir_binary(arena, OP_SUB, ir_ref(arena, total), named));
  struct ir_expr *chosen = ir_select(arena, ir_binary(arena, OP_LT, x, y), ir_binary(arena, OP_MUL, y, y), x);
  program_set(p, total, ir_binary(arena, OP_ADD, ir_ref(arena, total), ir_unary(arena, OP_NEG, chosen)));
  program_store(p, local, program_int(p, TYPE_I32, 0), ir_binary(arena, OP_MUL, ir_ref(arena, total), x));
  program_set(
      p, total,
      ir_binary(arena, OP_ADD, ir_ref(arena, total), program_load(p, local, program_int(p, TYPE_I32, 0))));
  struct ir_expr *half = ir_binary(arena, OP_DIV, y, ir_float(arena, TYPE_F32, 2));
  program_set(p, total, ir_binary(arena, OP_ADD, ir_ref(arena, total), half));
  program_store(p, out, j, ir_binary(arena, OP_MUL, ir_ref(arena, total), y));
}

Test(codegen_cuda, no_product_is_fused_into_a_sum) {
  struct program p;
  begin_products(&p);
  struct text cuda = cuda_of(&p), ptx = {0};
  cr_expect(check_count(cuda.data, "__fmul_rn(") == 4);
  cr_expect(strstr(cuda.data, "= total * y;"), "what is only stored needs no care");
  if (check_tool("nvcc")) {
    cr_assert(check_run("nvcc -Werror all-warnings -arch=sm_90 -ptx -o - %s 2>&1", ".cu", cuda.data, &ptx) ==
              0);
    cr_expect(check_count(ptx.data, "fma.") == 0);
  } else {
    fprintf(stderr, "nvcc was not found: CUDA is not compiled\n");
  }
  text_free(&cuda);
  text_free(&ptx);
  ptx = check_ptx(&p, "sm_90", 3);
  cr_expect(check_count(ptx.data, "fma.") == 0);
  cr_expect(check_count(ptx.data, "add.rn.f32") + check_count(ptx.data, "sub.rn.f32") == 5);
  text_free(&ptx);
  program_end(&p);
}

// Loops, branches, barriers and arrays.
static void begin_statements(struct program *p) {
  program_begin(p, "k", 64, "first\n  second \\\n\tthird // comment \\\\\n");
  struct arena *arena = &p->arena;
  p->entry->index_type = TYPE_I64;
  struct ir_mem *in = program_tensor(p, "A", TYPE_F32, false), *out = program_tensor(p, "B", TYPE_F32, true);
  struct ir_mem *shared = program_array(p, "tile", SPACE_SHARED, TYPE_F32, 64),
                *flags = program_array(p, "flags", SPACE_SHARED, TYPE_BOOL, 2);
  shared->alignment = 16;
  struct ir_expr *n = ir_ref(arena, program_size(p, "n"));
  p->line = 2;
  struct ir_expr *t = program_let(p, "t", program_special(p, OP_THREAD, 0));
  struct ir_var *total = program_var(p, "total", ir_float(arena, TYPE_F32, 0));
  p->line = 3;
  struct ir_expr *steps = ir_binary(arena, OP_DIV, ir_binary(arena, OP_ADD, n, program_int(p, TYPE_I64, 63)),
                                    program_int(p, TYPE_I64, 64));
  struct ir_expr *s = program_for(p, "for", program_int(p, TYPE_I64, 0), steps, 4);
  struct ir_expr *at = ir_binary(arena, OP_ADD, ir_binary(arena, OP_MUL, s, program_int(p, TYPE_I64, 64)), t);
  struct ir_stmt *guard = program_if(p, ir_binary(arena, OP_LT, at, n));
  program_set(p, total, ir_binary(arena, OP_ADD, ir_ref(arena, total), program_load(p, in, at)));
  p->block = &guard->otherwise;
  program_set(p, total, ir_unary(arena, OP_ABS, ir_ref(arena, total)));
  p->block = &p->entry->body;
  p->line = 2;
  program_store(p, shared, t, ir_ref(arena, total));
  program_store(p, flags, program_int(p, TYPE_I64, 1),
                ir_binary(arena, OP_LT, ir_ref(arena, total), ir_float(arena, TYPE_F32, INFINITY)));
  program_stmt(p, IR_BARRIER);
  program_stmt(p, IR_SYNCWARP)->value = program_int(p, TYPE_U32, 0xffffffff);
  struct ir_expr *place = ir_binary(arena, OP_XOR, t, program_int(p, TYPE_I64, 1));
  struct ir_expr *flag = program_load(p, flags, program_int(p, TYPE_I64, 1));
  program_store(p, out, t,
                ir_select(arena, flag, program_load(p, shared, place), ir_float(arena, TYPE_F32, -NAN)));
}

Test(codegen_cuda, statements_and_comments) {
  struct program p;
  begin_statements(&p);
  struct text cuda = cuda_of(&p);
  const char *body = strstr(cuda.data, "extern");
  cr_assert(body);
  cr_expect_str_eq(body, "extern \"C\" __global__ void __launch_bounds__(64, 1) k(\n"
                         "    const float *__restrict__ A,\n"
                         "    float *__restrict__ B,\n"
                         "    long long n) {\n"
                         "  __shared__ __align__(16) float tile[64];\n"
                         "  __shared__ unsigned char flags[2];\n"
                         "  // test.red:2: second\n"
                         "  long long t = threadIdx.x;\n"
                         "  float total = 0.0f;\n"
                         "  // test.red:3: third // comment\n"
                         "  #pragma unroll 4\n"
                         "  for (long long for_ = 0; for_ < (n + 63) / 64; for_++) {\n"
                         "    if (for_ * 64 + t < n) {\n"
                         "      total = total + A[for_ * 64 + t];\n"
                         "    } else {\n"
                         "      total = fabsf(total);\n"
                         "    }\n"
                         "  }\n"
                         "  // test.red:2\n"
                         "  tile[t] = total;\n"
                         "  flags[1] = total < __int_as_float(0x7f800000);\n"
                         "  __syncthreads();\n"
                         "  __syncwarp(0xffffffffu);\n"
                         "  B[t] = flags[1] != 0 ? tile[t ^ 1] : __uint_as_float(0xffc00000u);\n"
                         "}\n");
  check_compiles(cuda.data, "sm_75");
  text_free(&cuda);
  struct text ptx = check_ptx(&p, "sm_75", 3);
  cr_expect(check_count(ptx.data, "bar.sync") + check_count(ptx.data, "barrier.sync") == 1);
  cr_expect(check_count(ptx.data, "bar.warp.sync") == 1);
  cr_expect(check_count(ptx.data, ".shared .align 16 .b8") == 1);
  check_assembles(ptx.data, "sm_75");
  text_free(&ptx);
  program_end(&p);
}

// Signed arithmetic of the program's values wraps in both backends.
Test(codegen_cuda, signed_values_wrap_through_unsigned_and_indices_are_plain) {
  struct program p;
  program_begin(&p, "k", 32, NULL);
  struct arena *arena = &p.arena;
  struct ir_mem *in = program_tensor(&p, "A", TYPE_I32, false),
                *out = program_tensor(&p, "B", TYPE_I32, true);
  struct ir_expr *i = program_let(
      &p, "i",
      ir_binary(arena, OP_ADD,
                ir_binary(arena, OP_MUL, program_special(&p, OP_BLOCK, 0), program_int(&p, TYPE_I32, 32)),
                program_special(&p, OP_THREAD, 0)));
  struct ir_expr *x = program_let(&p, "x", program_load(&p, in, i));
  struct ir_expr *square = ir_binary(arena, OP_MUL, i, i);
  program_store(&p, out, ir_binary(arena, OP_MUL, i, program_int(&p, TYPE_I32, 2)),
                ir_binary(arena, OP_SUB, ir_binary(arena, OP_MUL, x, x), program_int(&p, TYPE_I32, 7)));
  program_store(&p, out,
                ir_binary(arena, OP_ADD, ir_binary(arena, OP_MUL, i, program_int(&p, TYPE_I32, 2)),
                          program_int(&p, TYPE_I32, 1)),
                square);
  struct text cuda = cuda_of(&p);
  cr_expect(strstr(cuda.data, "  int i = (int)blockIdx.x * 32 + (int)threadIdx.x;\n"));
  cr_expect(strstr(cuda.data, "  B[i * 2] = (int)((unsigned)x * (unsigned)x - 7u);\n"));
  cr_expect(strstr(cuda.data, "  B[i * 2 + 1] = (int)((unsigned)i * (unsigned)i);\n"),
            "a value may overflow even when it is an index");
  check_compiles(cuda.data, "sm_75");
  text_free(&cuda);
  program_end(&p);
}

Test(codegen_cuda, both_backends_refuse_alike) {
  for (int backend = 0; backend < 2; backend++)
    for (int fault = 0; fault < 4; fault++) {
      struct program p;
      program_rowsum(&p);
      struct ir_mem *out = list_at(&p.kernel->tensors, struct ir_mem, 1);
      struct ir_expr *x = ir_float(&p.arena, TYPE_F32, 1), *zero = program_int(&p, TYPE_I32, 0);
      if (fault == 0) program_stmt(&p, IR_ALLREDUCE);
      if (fault == 1) program_store(&p, out, zero, program_op(&p, OP_EXP, TYPE_F32, 1, x, NULL, NULL));
      if (fault == 2) program_store(&p, out, program_int(&p, TYPE_INDEX, 0), x);
      if (fault == 3) p.entry->level = LEVEL_STAGES;
      struct text text = {0};
      bool ok = backend ? codegen_cuda(&p.context, &text, NULL) : codegen_nvptx(&p.context, NVPTX_PTX, &text);
      cr_expect_not(ok);
      cr_expect(p.diag.internal && p.diag.error_count == 1 && text.length == 0);
      text_free(&text);
      program_end(&p);
    }
}

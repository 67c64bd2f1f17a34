// The reference interpreter on programs whose answers are known without it.
#include "compiler/pipeline.h"
#include "compiler/reference.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static struct compilation c;
static char error[512];

static void begin(void) {
  compilation_init(&c);
}
static void end(void) {
  compilation_destroy(&c);
}
TestSuite(reference, .init = begin, .fini = end);

// Checks a program; its first kernel.
static const struct ir_kernel *kernel_of(const char *text) {
  bool ok = compilation_parse_text(&c, "test.red", text, strlen(text)) && compilation_check(&c);
  struct text said = {0};
  struct diag_style style = {0};
  diag_print(&c.diag, &style, &said);
  cr_assert(ok, "%s", said.data);
  text_free(&said);
  return list_at(&c.module.kernels, struct ir_kernel, 0);
}

static bool run(const struct ir_kernel *kernel, struct reference_input input, struct reference_count *count) {
  return reference_run(kernel, list_at(&kernel->entries, struct ir_entry, 0), &input, count, error,
                       sizeof error);
}

// Runs the first kernel of `text` on arrays in order, with these sizes.
#define RUN(text, extents, ...)                                                                              \
  do {                                                                                                       \
    const struct reference_tensor tensors_[] = {__VA_ARGS__};                                                \
    struct reference_input input_ = {.tensors = tensors_, .sizes = (const int64_t[]){extents}};              \
    cr_assert(run(kernel_of(text), input_, NULL), "%s", error);                                              \
  } while (0)
#define SIZES(...) __VA_ARGS__
#define ARRAY(array)                                                                                         \
  { array, NULL }

Test(reference, sums_rows_in_order) {
  float a[6] = {1, 16777216, 1, -16777216, 5, 7}, b[2] = {-1, -1};
  const struct reference_tensor tensors[] = {{a, NULL}, {b, NULL}};
  struct reference_input input = {.tensors = tensors, .sizes = (const int64_t[]){2, 3}};
  struct reference_count count;
  const struct ir_kernel *kernel =
      kernel_of("kernel k(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }");
  cr_assert(run(kernel, input, &count), "%s", error);
  cr_expect_eq(b[0], 16777216); // each 1 is lost
  cr_expect_eq(b[1], -16777204);
  cr_expect_eq(count.elements, 8);
  input.is_wide = true;
  cr_assert(run(kernel, input, NULL));
  cr_expect_eq(b[0], 16777218); // rounded once, when it is stored
}

Test(reference, reductions_go_the_other_way_unless_they_are_ordered) {
  float a[3] = {1, 1, 16777216}, b[2] = {0, 0};
  const struct reference_tensor tensors[] = {{a, NULL}, {b, NULL}};
  struct reference_input input = {.tensors = tensors, .sizes = (const int64_t[]){3}};
  const struct ir_kernel *kernel =
      kernel_of("ordered reducer total(x: f32) { identity 0; combine(a, b) { a + b } }\n"
                "kernel k(A: f32[m]) -> (B: f32[2]) { B[0] = sum(j in m) A[j]; B[1] = total(j in m) A[j]; }");
  cr_assert(run(kernel, input, NULL), "%s", error);
  cr_expect_eq(b[0], 16777218);
  cr_expect_eq(b[1], 16777218);
  input.is_turned = true;
  cr_assert(run(kernel, input, NULL), "%s", error);
  cr_expect_eq(b[0], 16777216); // each 1 is lost
  cr_expect_eq(b[1], 16777218);
}

Test(reference, later_stages_read_values) {
  float x[6] = {0, 0, 0, 1, 2, 3}, y[6];
  RUN("kernel k(X: f32[n, m]) -> (Y: f32[n, m]) { for i in n { let peak = max(j in m) X[i, j];\n"
      "let total = sum(j in m) exp(X[i, j] - peak); for j in m { Y[i, j] = exp(X[i, j] - peak) / total; } } "
      "}",
      SIZES(2, 3), ARRAY(x), ARRAY(y));
  float total = 0;
  for (int j = 0; j < 3; j++) total += (float)exp((double)(x[3 + j] - 3));
  for (int j = 0; j < 3; j++) {
    cr_expect_eq(y[j], 1.0f / 3.0f);
    cr_expect_eq(y[3 + j], (float)exp((double)(x[3 + j] - 3)) / total);
  }
}

Test(reference, ranges_depend_on_enclosing_axes) {
  int64_t a[16], b[4], s[4] = {0};
  for (int i = 0; i < 16; i++) a[i] = i;
  RUN("kernel k(A: i64[n, n]) -> (B: i64[n]) { for i in n { B[i] = sum(j in i..n) A[i, j]; } }", SIZES(4),
      ARRAY(a), ARRAY(b));
  int64_t expected[4] = {0 + 1 + 2 + 3, 5 + 6 + 7, 10 + 11, 15};
  cr_expect_arr_eq(b, expected, sizeof b);
  end();
  begin();
  // A value over an axis whose extent depends on another.
  RUN("kernel k(A: i64[n, n]) -> (S: i64[n]) { for i in n { S[i] = sum(j in 0..i + 1) { let x = A[i, j]; x * "
      "x }; } }",
      SIZES(4), ARRAY(a), ARRAY(s));
  int64_t squares[4] = {0, 16 + 25, 64 + 81 + 100, 144 + 169 + 196 + 225};
  cr_expect_arr_eq(s, squares, sizeof s);
}

Test(reference, values_over_dependent_axes) {
  int32_t a[4][3] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {1, 1, 1}}, b[4][4] = {{0}};
  RUN("kernel k(A: i32[n, m]) -> (B: i32[n, n]) { for i in n { for j in 0..i + 1 { let s = sum(k in m) (A[i, "
      "k] * A[j, k]); B[i, j] = s + 1; } } }",
      SIZES(4, 3), ARRAY(a), ARRAY(b));
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) {
      int32_t dot = 1;
      for (int k = 0; k < 3; k++) dot += a[i][k] * a[j][k];
      cr_expect_eq(b[i][j], j <= i ? dot : 0, "%d %d", i, j);
    }
}

Test(reference, guards_leave_elements_alone) {
  float a[12], b[4] = {-1, -1, -1, -1};
  for (int i = 0; i < 12; i++) a[i] = (float)i;
  RUN("kernel k(A: f32[n, m]) -> (B: f32[n]) { for i in n { if i % 2 == 0 { B[i] = sum(j in m if j <= i) "
      "A[i, j]; } } }",
      SIZES(4, 3), ARRAY(a), ARRAY(b));
  cr_expect_eq(b[0], 0);
  cr_expect_eq(b[1], -1);
  cr_expect_eq(b[2], 6 + 7 + 8);
  cr_expect_eq(b[3], -1);
}

Test(reference, an_arm_that_is_not_taken_is_not_evaluated) {
  float a[3] = {1, 2, 3}, b[3];
  RUN("kernel k(A: f32[n]) -> (B: f32[n]) { for i in n { B[i] = (i > 0 ? A[i - 1] : 0.5) + (i + 1 < n && A[i "
      "+ 1] > 2.5 ? 10.0 : 0.0); } }",
      SIZES(3), ARRAY(a), ARRAY(b));
  cr_expect_eq(b[0], 0.5f);
  cr_expect_eq(b[1], 11);
  cr_expect_eq(b[2], 2);
}

Test(reference, init_counts_once) {
  int32_t a[5] = {2, 2, 2, 2, 2}, s[1], p[1];
  RUN("kernel k(A: i32[n]) -> (S: i32[1], P: i32[1]) { S[0] = sum(i in n; init = 10) A[i]; P[0] = prod(i in "
      "n; init = 10) A[i]; }",
      SIZES(5), ARRAY(a), ARRAY(s), ARRAY(p));
  cr_expect_eq(s[0], 20);
  cr_expect_eq(p[0], 320);
}

Test(reference, folds_read_the_value_before) {
  int32_t a[6] = {1, 2, 3, 4, 5, 6}, b[2] = {100, 200};
  RUN("kernel k(A: i32[n, m]) -> (B: i32[n]) { for i in n { B[i] += sum(j in m) A[i, j]; } }", SIZES(2, 3),
      ARRAY(a), ARRAY(b));
  cr_expect_eq(b[0], 106);
  cr_expect_eq(b[1], 215);
}

Test(reference, empty_ranges) {
  float a[1] = {0}, s[2], m[2];
  RUN("kernel k(A: f32[n, m]) -> (S: f32[n], M: f32[n]) { for i in n { S[i] = sum(j in m) A[i, j]; M[i] = "
      "max(j in m) A[i, j]; } }",
      SIZES(2, 0), ARRAY(a), ARRAY(s), ARRAY(m));
  cr_expect_eq(s[1], 0);
  cr_expect_eq(m[1], -INFINITY);
}

Test(reference, tuples_are_combined_as_values) {
  float re[8], im[8], out[2];
  for (int i = 0; i < 8; i++) re[i] = im[i] = 1;
  RUN("reducer product(re: f32, im: f32) { identity (1, 0); combine(a, b) { (a.re * b.re - a.im * b.im, a.re "
      "* b.im + a.im * b.re) } }\n"
      "kernel k(A: f32[n], B: f32[n]) -> (R: f32[2]) { let (re, im) = product(i in n) (A[i], B[i]); R[0] = "
      "re; R[1] = im; }",
      SIZES(8), ARRAY(re), ARRAY(im), ARRAY(out));
  cr_expect_eq(out[0], 16);
  cr_expect_eq(out[1], 0);
}

Test(reference, swapped_components) {
  int32_t a[3] = {1, 2, 3}, out[2];
  RUN("ordered reducer turn(x: i32, y: i32) { identity (0, 0); combine(a, b) { (a.y, a.x) } update(s, v) { "
      "(s.y, s.x + v) } }\n"
      "kernel k(A: i32[n]) -> (R: i32[2]) { let (x, y) = turn(i in n) A[i]; R[0] = x; R[1] = y; }",
      SIZES(3), ARRAY(a), ARRAY(out));
  // (0,0) -> (0,1) -> (1,2) -> (2,4)
  cr_expect_eq(out[0], 2);
  cr_expect_eq(out[1], 4);
}

Test(reference, ordered_reducers_go_left_to_right) {
  enum { N = 1000 };
  static uint32_t a[N], b[N];
  uint32_t out[2], x = 1, y = 0;
  for (uint32_t i = 0; i < N; i++) {
    a[i] = 2 * i + 1;
    b[i] = i;
    uint32_t next_x = x * a[i];
    y = y * a[i] + b[i];
    x = next_x;
  }
  RUN("ordered reducer affine(a: u32, b: u32) { identity (1, 0); combine(f, g) { (f.a * g.a, f.b * g.a + "
      "g.b) } }\n"
      "kernel k(A: u32[n], B: u32[n]) -> (R: u32[2]) { let (a, b) = affine(i in n) (A[i], B[i]); R[0] = a; "
      "R[1] = b; }",
      SIZES(N), ARRAY(a), ARRAY(b), ARRAY(out));
  cr_expect_eq(out[0], x);
  cr_expect_eq(out[1], y);
}

Test(reference, argmax_takes_the_lower_index_and_nan) {
  float a[3][4] = {{1, 3, 3, 2}, {1, NAN, 9, NAN}, {-INFINITY, -INFINITY, -INFINITY, -INFINITY}}, v[3];
  int32_t p[3];
  RUN("kernel k(A: f32[n, m]) -> (V: f32[n], P: i32[n]) { for i in n { (V[i], P[i]) = argmax(j in m) (A[i, "
      "j], i32(j)); } }",
      SIZES(3, 4), ARRAY(a), ARRAY(v), ARRAY(p));
  cr_expect_eq(p[0], 1);
  cr_expect_eq(p[1], 1);
  cr_expect(isnan(v[1]));
  cr_expect_eq(p[2], 0);
}

Test(reference, small_integers_wrap_and_sums_widen) {
  int8_t a[4] = {127, 1, -128, -1}, s[1];
  int64_t w[1];
  uint8_t d[4];
  RUN("kernel k(A: i8[n]) -> (S: i8[1], W: i64[1], D: u8[n]) { S[0] = sum(i in 2) A[i]; W[0] = sum(i in n) "
      "i64(A[i]);\n"
      "for i in n { D[i] = u8(A[i] / i8(0)) >> u8(9); } }",
      SIZES(4), ARRAY(a), ARRAY(s), ARRAY(w), ARRAY(d));
  cr_expect_eq(s[0], -128);
  cr_expect_eq(w[0], -1);
  cr_expect_eq(d[0], 127); // 255 >> 1
}

Test(reference, storage_types_round_when_stored) {
  uint16_t x[3] = {0x3c00, 0x0001, 0x7bff}, y[3], z[3]; // 1, 2^-24, 65504
  RUN("kernel k(X: f16[n]) -> (Y: f16[n], Z: bf16[n]) { for i in n { Y[i] = X[i] + 0.00048828125; Z[i] = "
      "X[i] * 1.01; } }",
      SIZES(3), ARRAY(x), ARRAY(y), ARRAY(z));
  cr_expect_eq(y[0], 0x3c00); // 1 + 2^-11 ties to even
  cr_expect_eq(y[1], 0x1000); // 2^-11 + 2^-24 loses the small one
  cr_expect_eq(y[2], 0x7bff);
  cr_expect_eq(z[0], 0x3f81); // 1.01 is nearest to 1 + 2^-7
}

Test(reference, moves_keep_every_bit) {
  uint16_t h[4] = {0x7c01, 0xfe00, 0x8000, 0x1234}, g[4];
  RUN("kernel k(X: f16[a, b]) -> (Y: f16[b, a]) { for i in a, j in b { Y[j, i] = X[i, j]; } }", SIZES(2, 2),
      ARRAY(h), ARRAY(g));
  uint16_t turned[4] = {0x7c01, 0x8000, 0xfe00, 0x1234};
  cr_expect_arr_eq(g, turned, sizeof g);
  end();
  begin();
  uint32_t f[2] = {0x7f800001, 0xffc12345}, e[2];
  RUN("kernel k(X: f32[a]) -> (Y: f32[a]) { for i in a { Y[i] = X[i]; } }", SIZES(2), ARRAY(f), ARRAY(e));
  cr_expect_arr_eq(e, f, sizeof f);
  end();
  begin();
  uint64_t big[4] = {1, 2, UINT64_MAX, 4}, copy[4];
  RUN("kernel k(X: c128[a]) -> (Y: c128[a]) { for i in a { Y[i] = X[1 - i]; } }", SIZES(2), ARRAY(big),
      ARRAY(copy));
  uint64_t reversed[4] = {UINT64_MAX, 4, 1, 2};
  cr_expect_arr_eq(copy, reversed, sizeof copy);
}

Test(reference, bools_in_memory) {
  uint8_t a[4] = {0, 1, 2, 255}, b[4];
  int32_t count[1];
  RUN("kernel k(A: bool[n]) -> (B: bool[n], C: i32[1]) { for i in n { B[i] = A[i]; } C[0] = sum(i in n) "
      "i32(A[i]); }",
      SIZES(4), ARRAY(a), ARRAY(b), ARRAY(count));
  uint8_t expected[4] = {0, 1, 1, 1};
  cr_expect_arr_eq(b, expected, sizeof b);
  cr_expect_eq(count[0], 3);
}

Test(reference, strides_of_any_sign) {
  float a[6] = {1, 2, 3, 4, 5, 6}, b[4] = {0};
  const int64_t a_strides[2] = {0, -2}, b_strides[1] = {3};
  RUN("kernel k(A: f32[n, m] strided) -> (B: f32[n] strided) { for i in n { B[i] = sum(j in m) (A[i, j] * "
      "f32(j + 1)); } }",
      SIZES(2, 3, 0, 0, 0), {a + 4, a_strides}, {b, b_strides});
  cr_expect_eq(b[0], 5 + 2 * 3 + 3 * 1);
  cr_expect_eq(b[1], 0);
  cr_expect_eq(b[3], b[0]);
}

Test(reference, scalars) {
  float a[2] = {1, 2}, b[2];
  const struct reference_tensor tensors[] = {{a, NULL}, {b, NULL}};
  const struct value scalars[] = {value_float(TYPE_F32, 2.5), value_int(TYPE_I32, -1)};
  struct reference_input input = {.tensors = tensors, .sizes = (const int64_t[]){2}, .scalars = scalars};
  cr_assert(run(
      kernel_of(
          "kernel k(A: f32[n], x: f32, y: i32) -> (B: f32[n]) { for i in n { B[i] = A[i] * x + f32(y); } }"),
      input, NULL));
  cr_expect_eq(b[0], 1.5f);
  cr_expect_eq(b[1], 4);
}

// `check` proves accesses; here a tensor is made smaller afterwards.
Test(reference, reports_an_access_outside) {
  float a[4] = {0}, b[4];
  const struct reference_tensor tensors[] = {{a, NULL}, {b, NULL}};
  struct reference_input input = {.tensors = tensors, .sizes = (const int64_t[]){2, 2}};
  const struct ir_kernel *kernel =
      kernel_of("kernel k(A: f32[n, m]) -> (B: f32[n, m]) { for i in n, j in m { B[i, j] = A[i, j]; } }");
  struct ir_mem *mem = list_at(&kernel->tensors, struct ir_mem, 0);
  mem->dims.at[1] = ir_int(&c.arena, TYPE_I64, 1);
  cr_assert(!run(kernel, input, NULL));
  cr_expect_str_eq(error, "in stage 'B': A[0, 1] is outside its extents [2, 1]");
}

Test(reference, sizes_of_dimensions) {
  const struct ir_kernel *kernel =
      kernel_of("kernel k(A: f32[n, m]) -> (B: f32[n, m + 2]) { for i in n, j in m { B[i, j] = A[i, j]; } }");
  const struct ir_mem *b = list_at(&kernel->tensors, struct ir_mem, 1);
  int64_t sizes[2] = {3, 7}, out = 0;
  cr_assert(reference_size(kernel, list_at(&b->dims, struct ir_expr, 1), sizes, &out));
  cr_expect_eq(out, 9);
}

// Launches on the simulator: results, variants, and every kind of bad input.
#include "runtime/red.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static red_device *device;

static void open_device(void) {
  setenv("RED_CACHE", "off", 1);
  cr_assert_eq(red_open("sim", &device), RED_OK, "%s", red_message());
}
static void close_device(void) {
  red_close(device);
}
TestSuite(launch, .init = open_device, .fini = close_device);

static const char ROWSUM[] = "kernel rowsum(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }";

// Compiles and finds the only kernel.
static const red_kernel *compile(const char *text, const red_options *options, red_program **program) {
  const red_kernel *kernel = NULL;
  cr_assert_eq(red_compile_text(device, "test.red", text, options, program), RED_OK, "%s", red_message());
  cr_assert_eq(red_find(*program, NULL, &kernel), RED_OK, "%s", red_message());
  return kernel;
}

#define EXPECT_ERROR(call, error, message)                                                                                           \
  do {                                                                                                                               \
    red_error got_ = (call);                                                                                                         \
    cr_expect_eq(got_, error, "%s", red_error_name(got_));                                                                           \
    cr_expect_str_eq(red_message(), message);                                                                                        \
  } while (0)

Test(launch, row_sum) {
  red_program *program;
  const red_kernel *kernel = compile(ROWSUM, NULL, &program);
  float a[3][5], b[3] = {-1, -1, -1};
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 5; j++) a[i][j] = (float)(10 * i + j);
  int64_t as[] = {3, 5}, bs[] = {3};
  red_tensor A = red_dense(a, RED_F32, 2, as), B = red_dense(b, RED_F32, 1, bs);
  red_argument arguments[] = {red_of_tensor(&A), red_of_tensor(&B)};
  cr_assert_eq(red_launch(kernel, NULL, arguments, 2), RED_OK, "%s", red_message());
  for (int i = 0; i < 3; i++) cr_expect_eq(b[i], 50.0f * (float)i + 10);
  red_release(program);
}

// The first entry that a launch takes is made of what red_compile_text checked, later ones of the text: of either kernel, in either order, and of a program that
// nothing launches.
Test(launch, kernels_of_one_text) {
  static const char text[] = "kernel rowsum(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }"
                             "kernel rowmax(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = max(j in m) A[i, j]; } }";
  enum { COLUMNS = 300 };
  static float a[2][COLUMNS];
  float b[2];
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < COLUMNS; j++) a[i][j] = (float)(i + j);
  for (int order = 0; order < 3; order++) {
    red_program *program;
    cr_assert_eq(red_compile_text(device, "two.red", text, NULL, &program), RED_OK, "%s", red_message());
    for (int64_t columns = COLUMNS; columns > 0 && order < 2; columns -= 298) // 300 and 2: two entries
      for (int k = 0; k < 2; k++) {
        bool is_sum = k == order;
        const red_kernel *kernel;
        int64_t as[] = {2, columns}, bs[] = {2};
        red_tensor A = red_dense(a, RED_F32, 2, as), B = red_dense(b, RED_F32, 1, bs);
        float few[] = {0, 1, 1, 2};
        if (columns == 2) A.data = few;
        red_argument arguments[] = {red_of_tensor(&A), red_of_tensor(&B)};
        cr_assert_eq(red_find(program, is_sum ? "rowsum" : "rowmax", &kernel), RED_OK, "%s", red_message());
        cr_assert_eq(red_launch(kernel, NULL, arguments, 2), RED_OK, "%s", red_message());
        float last = (float)(columns - 1);
        for (int i = 0; i < 2; i++) cr_expect_eq(b[i], is_sum ? last * (last + 1) / 2 + (float)(i * columns) : last + (float)i);
      }
    red_release(program);
  }
}

// With the option a row's sum has the same bits however many rows there are; without it the one row is split over the grid.
Test(launch, batch_invariant) {
  enum { ROWS = 9, COLUMNS = 40000 };
  static float a[ROWS][COLUMNS];
  uint32_t bits[2][2];
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++) a[i][j] = (float)((j * 7919 + 31) % 1009) * 0.37f - 180.3f;
  for (int is_invariant = 0; is_invariant < 2; is_invariant++) {
    red_program *program;
    const red_options options = {.batch_invariant = is_invariant};
    const red_kernel *kernel = compile(ROWSUM, &options, &program);
    for (int many = 0; many < 2; many++) {
      float b[ROWS];
      int64_t as[] = {many ? ROWS : 1, COLUMNS}, bs[] = {many ? ROWS : 1};
      red_tensor A = red_dense(a, RED_F32, 2, as), B = red_dense(b, RED_F32, 1, bs);
      red_argument arguments[] = {red_of_tensor(&A), red_of_tensor(&B)};
      cr_assert_eq(red_launch(kernel, NULL, arguments, 2), RED_OK, "%s", red_message());
      for (int i = 0; many && is_invariant && i < ROWS; i++) cr_expect_eq(b[i], b[0]);
      memcpy(&bits[is_invariant][many], b, sizeof **bits);
    }
    red_release(program);
  }
  cr_expect_neq(bits[0][0], bits[0][1]);
  cr_expect_eq(bits[1][0], bits[1][1]);
}

Test(launch, bad_tensors) {
  red_program *program;
  const red_kernel *kernel = compile(ROWSUM, NULL, &program);
  float a[16] = {0}, b[4] = {7, 7, 7, 7};
  int64_t as[] = {3, 5}, bs[] = {3}, strides[] = {1, 3}, zero[] = {0};
  const red_tensor good_a = red_dense(a, RED_F32, 2, as), good_b = red_dense(b, RED_F32, 1, bs);
  red_tensor A = good_a, B = good_b;
  red_argument arguments[] = {red_of_tensor(&A), red_of_tensor(&B), red_of_tensor(&A)};
#define REFUSED(change, error, message)                                                                                              \
  do {                                                                                                                               \
    A = good_a;                                                                                                                      \
    B = good_b;                                                                                                                      \
    change;                                                                                                                          \
    EXPECT_ERROR(red_launch(kernel, NULL, arguments, 2), error, message);                                                            \
  } while (0)
  EXPECT_ERROR(red_launch(kernel, NULL, arguments, 1), RED_ERROR_COUNT, "rowsum takes 2 tensors (A, B); 1 was given");
  EXPECT_ERROR(red_launch(kernel, NULL, arguments, 3), RED_ERROR_COUNT, "rowsum takes 2 tensors (A, B); 3 were given");
  EXPECT_ERROR(red_launch(NULL, NULL, arguments, 2), RED_ERROR_INVALID, "the kernel is NULL");
  EXPECT_ERROR(red_launch(kernel, NULL, NULL, 2), RED_ERROR_INVALID, "rowsum: the arguments are NULL");
  REFUSED(A.type = RED_F64, RED_ERROR_TYPE, "rowsum: A: the argument has elements of type f64, the kernel's are f32");
  REFUSED(A.type = (red_type)99, RED_ERROR_TYPE, "A: there is no element type number 99");
  REFUSED(A.rank = 1, RED_ERROR_RANK, "rowsum: A: the argument has rank 1, the kernel's tensor has rank 2");
  REFUSED(A.rank = -1, RED_ERROR_RANK, "A: the argument has rank -1; ranks are 0 to 64");
  REFUSED(A.shape = NULL, RED_ERROR_INVALID, "A: the argument has rank 2 and no shape");
  REFUSED(B.data = NULL, RED_ERROR_NULL_POINTER, "rowsum: B: the address is null");
  REFUSED(B.data = a + 14, RED_ERROR_OVERLAP, "rowsum: A and B overlap in memory; an output may overlap nothing");
  REFUSED(A.strides = strides, RED_ERROR_STRIDE, "rowsum: A: stride 3 in dimension 1, but the kernel needs 1 (its tensors are row-major; declare it `strided`)");
  REFUSED(B.strides = zero, RED_ERROR_STRIDE, "rowsum: B: stride 0 in dimension 0, but the kernel needs 1 (its tensors are row-major; declare it `strided`)");
  A = good_a;
  B = good_b;
  bs[0] = 4;
  EXPECT_ERROR(red_launch(kernel, NULL, arguments, 2), RED_ERROR_SHAPE,
               "rowsum: B: extent 4 in dimension 0, but the kernel needs 3 (n = 3 comes from A, dimension 0)");
  bs[0] = 3;
  as[1] = -5;
  EXPECT_ERROR(red_launch(kernel, NULL, arguments, 2), RED_ERROR_SHAPE, "rowsum: A: extent -5 in dimension 1 is negative");
  as[1] = 5;
  arguments[0].kind = 77;
  EXPECT_ERROR(red_launch(kernel, NULL, arguments, 2), RED_ERROR_INVALID, "rowsum: argument 0 is of no kind that red.h makes");
  for (int i = 0; i < 4; i++) cr_expect_eq(b[i], 7);
  red_release(program);
}

Test(launch, misaligned) {
  red_program *program;
  const red_kernel *kernel = compile(ROWSUM, NULL, &program);
  _Alignas(16) float a[16], b[4];
  for (int i = 0; i < 16; i++) a[i] = (float)i;
  int64_t as[] = {3, 5}, bs[] = {3};
  red_tensor A = red_dense(a + 1, RED_F32, 2, as), B = red_dense(b + 1, RED_F32, 1, bs);
  red_argument arguments[] = {red_of_tensor(&A), red_of_tensor(&B)};
  cr_expect_eq(red_launch(kernel, NULL, arguments, 2), RED_OK, "%s", red_message());
  for (int i = 0; i < 3; i++) cr_expect_eq(b[1 + i], 25.0f * (float)i + 15);
  A.data = (char *)a + 2;
  cr_expect_eq(red_launch(kernel, NULL, arguments, 2), RED_ERROR_MISALIGNED);
  red_release(program);
}

Test(launch, no_output_element_launches_nothing) {
  red_program *program;
  const red_kernel *kernel = compile(ROWSUM, NULL, &program);
  int64_t as[] = {0, 5}, bs[] = {0};
  red_tensor A = red_dense(NULL, RED_F32, 2, as), B = red_dense(NULL, RED_F32, 1, bs);
  red_argument arguments[] = {red_of_tensor(&A), red_of_tensor(&B)};
  red_choice choice;
  cr_expect_eq(red_launch(kernel, NULL, arguments, 2), RED_OK, "%s", red_message());
  cr_expect_eq(red_choose(kernel, arguments, 2, &choice), RED_OK);
  cr_expect_eq(choice.launches, 0);
  red_release(program);
}

Test(launch, empty_reduction_stores_the_identity) {
  red_program *program;
  const red_kernel *kernel = compile(ROWSUM, NULL, &program);
  float b[3] = {7, 7, 7};
  int64_t as[] = {3, 0}, bs[] = {3};
  red_tensor A = red_dense(NULL, RED_F32, 2, as), B = red_dense(b, RED_F32, 1, bs);
  red_argument arguments[] = {red_of_tensor(&A), red_of_tensor(&B)};
  cr_expect_eq(red_launch(kernel, NULL, arguments, 2), RED_OK, "%s", red_message());
  for (int i = 0; i < 3; i++) cr_expect_eq(b[i], 0);
  red_release(program);
}

Test(launch, huge_shapes_are_refused) {
  red_program *program;
  const red_kernel *kernel = compile(ROWSUM, NULL, &program);
  float x = 0, y = 0;
  int64_t as[] = {INT64_C(1) << 40, INT64_C(1) << 40}, bs[] = {INT64_C(1) << 40};
  red_tensor A = red_dense(&x, RED_F32, 2, as), B = red_dense(&y, RED_F32, 1, bs);
  red_argument arguments[] = {red_of_tensor(&A), red_of_tensor(&B)};
  red_error error = red_launch(kernel, NULL, arguments, 2);
  cr_expect(error == RED_ERROR_REQUIREMENT || error == RED_ERROR_LIMIT || error == RED_ERROR_OVERLAP, "%s: %s", red_error_name(error), red_message());
  red_release(program);
}

Test(launch, scalars_and_sizes) {
  red_program *program;
  const red_kernel *kernel =
      compile("kernel scale(A: f32[n], s: f32, k: i8, m: size) -> (B: f32[n]) { for i in n { B[i] = A[i] * s + f32(k) + f32(m); } }", NULL, &program);
  float a[3] = {1, 2, 3}, b[3];
  int64_t shape[] = {3};
  red_tensor A = red_dense(a, RED_F32, 1, shape), B = red_dense(b, RED_F32, 1, shape);
  red_argument arguments[] = {red_of_tensor(&A), red_float(2), red_int(-3), red_size(100), red_of_tensor(&B)};
  cr_assert_eq(red_launch(kernel, NULL, arguments, 5), RED_OK, "%s", red_message());
  for (int i = 0; i < 3; i++) cr_expect_eq(b[i], 2 * a[i] - 3 + 100);
  arguments[2] = red_int(128);
  EXPECT_ERROR(red_launch(kernel, NULL, arguments, 5), RED_ERROR_SCALAR, "k: 128 does not fit i8");
  arguments[2] = red_float(1);
  EXPECT_ERROR(red_launch(kernel, NULL, arguments, 5), RED_ERROR_TYPE, "k: the argument is a float, the kernel's scalar is i8");
  arguments[2] = red_size(1);
  EXPECT_ERROR(red_launch(kernel, NULL, arguments, 5), RED_ERROR_COUNT, "scale takes 2 scalars (s, k); 1 was given");
  arguments[2] = red_int(1);
  arguments[3] = red_size(-1);
  EXPECT_ERROR(red_launch(kernel, NULL, arguments, 5), RED_ERROR_SHAPE, "scale: size m is -1, which is negative");
  red_release(program);
}

// A schedule that binds the reduction to threads compiles each row length on its own.
Test(launch, exact_sizes) {
  static const char schedule[] = "schedule rowsum { bind i -> block.x; bind j -> thread.x; }";
  red_options options = {.schedule_text = schedule};
  red_program *program;
  const red_kernel *kernel = compile(ROWSUM, &options, &program);
  cr_expect_null(red_ptx(program));
  float a[300], b[3];
  for (int i = 0; i < 300; i++) a[i] = 1;
  for (int64_t m = 1; m <= 90; m += 1) { // more than are kept
    int64_t as[] = {3, m}, bs[] = {3};
    red_tensor A = red_dense(a, RED_F32, 2, as), B = red_dense(b, RED_F32, 1, bs);
    red_argument arguments[] = {red_of_tensor(&A), red_of_tensor(&B)};
    cr_assert_eq(red_launch(kernel, NULL, arguments, 2), RED_OK, "%s", red_message());
    for (int i = 0; i < 3; i++) cr_expect_eq(b[i], (float)m);
  }
  int64_t as[] = {1, 300}, bs[] = {2};
  red_tensor A = red_dense(a, RED_F32, 2, as), B = red_dense(b, RED_F32, 1, bs);
  red_argument arguments[] = {red_of_tensor(&A), red_of_tensor(&B)};
  cr_expect_eq(red_launch(kernel, NULL, arguments, 2), RED_ERROR_SHAPE, "%s", red_message());
  red_release(program);
}

Test(launch, types_come_from_tensors) {
  red_program *program;
  const red_kernel *kernel = compile("kernel swap<T>(X: T[a, b]) -> (Y: T[b, a]) { for i in a, j in b { Y[j, i] = X[i, j]; } }", NULL, &program);
  red_parameter parameter;
  cr_expect_eq(red_describe_parameter(kernel, 0, &parameter), RED_OK);
  cr_expect_eq(parameter.type, RED_TYPE_COUNT);
  cr_expect_str_eq(parameter.shape, "a, b");
  uint16_t h[6] = {1, 2, 3, 4, 5, 6}, g[6];
  double d[6] = {1, 2, 3, 4, 5, 6}, e[6];
  int64_t xs[] = {2, 3}, ys[] = {3, 2};
  red_tensor X = red_dense(h, RED_BF16, 2, xs), Y = red_dense(g, RED_BF16, 2, ys);
  red_argument arguments[] = {red_of_tensor(&X), red_of_tensor(&Y)};
  for (int round = 0; round < 2; round++) cr_assert_eq(red_launch(kernel, NULL, arguments, 2), RED_OK, "%s", red_message());
  for (int i = 0; i < 6; i++) cr_expect_eq(g[i], h[i % 2 * 3 + i / 2]);
  X = red_dense(d, RED_F64, 2, xs);
  EXPECT_ERROR(red_launch(kernel, NULL, arguments, 2), RED_ERROR_TYPE, "swap: X has elements of type f64, Y of type bf16; both are T");
  Y = red_dense(e, RED_F64, 2, ys);
  cr_assert_eq(red_launch(kernel, NULL, arguments, 2), RED_OK, "%s", red_message());
  for (int i = 0; i < 6; i++) cr_expect_eq(e[i], d[i % 2 * 3 + i / 2]);
  red_release(program);
}

Test(launch, generic_with_scalar) {
  red_program *program;
  const red_kernel *kernel = compile("kernel scale<T>(X: T[n], s: T) -> (Y: T[n]) { for i in n { Y[i] = X[i] * s; } }", NULL, &program);
  int32_t x[3] = {1, 2, 3}, y[3];
  int64_t shape[] = {3};
  red_tensor X = red_dense(x, RED_I32, 1, shape), Y = red_dense(y, RED_I32, 1, shape);
  red_argument arguments[] = {red_of_tensor(&X), red_int(-7), red_of_tensor(&Y)};
  red_parameter parameter;
  cr_expect_eq(red_describe_parameter(kernel, 2, &parameter), RED_OK);
  cr_expect_str_eq(parameter.name, "s");
  cr_expect_eq(parameter.type, RED_TYPE_COUNT);
  cr_assert_eq(red_launch(kernel, NULL, arguments, 3), RED_OK, "%s", red_message());
  for (int i = 0; i < 3; i++) cr_expect_eq(y[i], -7 * x[i]);
  arguments[1] = red_float(1);
  cr_expect_eq(red_launch(kernel, NULL, arguments, 3), RED_ERROR_TYPE);
  red_release(program);
}

Test(launch, compile_errors_have_a_place) {
  red_program *program = (red_program *)&program;
  const char *file;
  int line, column;
  cr_expect_eq(red_compile_text(device, "bad.red", "kernel k(A: f32[n]) -> (B: f32[n]) {\n  for i in n { B[i] = C[i]; }\n}", NULL, &program), RED_ERROR_COMPILE);
  cr_expect_null(program);
  cr_expect(strstr(red_message(), "bad.red:2:23"), "%s", red_message());
  cr_expect_eq(red_place(&file, &line, &column), 1);
  cr_expect_str_eq(file, "bad.red");
  cr_expect_eq(line, 2);
  cr_expect_eq(column, 23);
  cr_expect_eq(red_compile_file(device, "/nowhere/k.red", NULL, &program), RED_ERROR_FILE);
  cr_expect_eq(red_place(NULL, NULL, NULL), 0);
}

Test(launch, strided_output_that_aliases) {
  red_program *program;
  const red_kernel *kernel = compile("kernel copy(X: f32[n] strided) -> (Y: f32[n] strided) { for i in n { Y[i] = X[i]; } }", NULL, &program);
  float x[4] = {1, 2, 3, 4}, y[4] = {0};
  int64_t shape[] = {4}, zero[] = {0}, back[] = {-1};
  red_tensor X = {x + 3, RED_F32, 1, shape, back}, Y = {y, RED_F32, 1, shape, zero};
  red_argument arguments[] = {red_of_tensor(&X), red_of_tensor(&Y)};
  EXPECT_ERROR(red_launch(kernel, NULL, arguments, 2), RED_ERROR_ALIAS, "copy: Y: the strides give two elements of an output one address");
  Y.strides = NULL;
  cr_assert_eq(red_launch(kernel, NULL, arguments, 2), RED_OK, "%s", red_message());
  for (int i = 0; i < 4; i++) cr_expect_eq(y[i], x[3 - i]);
  X.strides = zero;
  cr_assert_eq(red_launch(kernel, NULL, arguments, 2), RED_OK, "%s", red_message());
  for (int i = 0; i < 4; i++) cr_expect_eq(y[i], x[3]);
  red_release(program);
}

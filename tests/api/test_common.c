// red_permute and red_reduce: against loops over every rank and a sample of types, strides and axes; texts; bad input.
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
TestSuite(common, .init = open_device, .fini = close_device);

enum { MAX_ELEMENTS = 4096, MOST_DIMENSIONS = 64 };

// Steps through the indices of a shape; false behind the last.
static int step(int rank, const int64_t *shape, int64_t *index) {
  for (int d = rank; d-- > 0;) {
    if (++index[d] < shape[d]) return 1;
    index[d] = 0;
  }
  return 0;
}

static int64_t offset_of(int rank, const int64_t *strides, const int64_t *index) {
  int64_t offset = 0;
  for (int d = 0; d < rank; d++) offset += strides[d] * index[d];
  return offset;
}

static void dense_strides(int rank, const int64_t *shape, int64_t *strides) {
  int64_t stride = 1;
  for (int d = rank; d-- > 0; stride *= shape[d]) strides[d] = stride;
}

static void permute_one(int rank, const int64_t *shape, const int *perm, int bytes, red_type type) {
  static _Alignas(16) uint8_t x[16 * MAX_ELEMENTS], y[16 * MAX_ELEMENTS];
  int64_t turned[MOST_DIMENSIONS], xs[MOST_DIMENSIONS], ys[MOST_DIMENSIONS], index[MOST_DIMENSIONS] = {0}, there[MOST_DIMENSIONS];
  for (size_t i = 0; i < sizeof x; i++) x[i] = (uint8_t)(i * 31 + i / 256 * 7);
  memset(y, 0xee, sizeof y);
  for (int d = 0; d < rank; d++) turned[d] = shape[perm[d]];
  dense_strides(rank, shape, xs);
  dense_strides(rank, turned, ys);
  red_tensor X = red_dense(x, type, rank, shape), Y = red_dense(y, type, rank, turned);
  for (int round = 0; round < 2; round++) cr_assert_eq(red_permute(device, NULL, &X, &Y, perm), RED_OK, "%s", red_message());
  do {
    for (int d = 0; d < rank; d++) there[d] = index[perm[d]];
    int64_t from = offset_of(rank, xs, index), to = offset_of(rank, ys, there);
    cr_assert_eq(memcmp(x + from * bytes, y + to * bytes, (size_t)bytes), 0);
  } while (step(rank, shape, index));
}

Test(common, permutes_of_every_rank) {
  permute_one(0, NULL, NULL, 4, RED_F32);
  permute_one(1, (int64_t[]){33}, (int[]){0}, 2, RED_F16);
  permute_one(2, (int64_t[]){33, 65}, (int[]){1, 0}, 4, RED_F32);
  permute_one(3, (int64_t[]){5, 7, 9}, (int[]){2, 0, 1}, 8, RED_F64);
  permute_one(3, (int64_t[]){8, 16, 4}, (int[]){1, 0, 2}, 1, RED_U8);
  permute_one(4, (int64_t[]){3, 4, 5, 6}, (int[]){0, 2, 3, 1}, 16, RED_C128);
  permute_one(5, (int64_t[]){2, 3, 1, 5, 4}, (int[]){4, 2, 0, 3, 1}, 2, RED_BF16);
  int64_t shape[MOST_DIMENSIONS];
  int perm[MOST_DIMENSIONS];
  for (int d = 0; d < MOST_DIMENSIONS; d++) shape[d] = d % 8 ? 1 : 2, perm[d] = MOST_DIMENSIONS - 1 - d;
  permute_one(MOST_DIMENSIONS, shape, perm, 4, RED_F32);
}

Test(common, strided_permute) {
  float x[12], y[12] = {0};
  for (int i = 0; i < 12; i++) x[i] = (float)i;
  int64_t shape[] = {2, 3}, turned[] = {3, 2}, xs[] = {-6, 2}, ys[] = {4, 1};
  int perm[] = {1, 0};
  red_tensor X = {x + 6, RED_F32, 2, shape, xs}, Y = {y, RED_F32, 2, turned, ys};
  cr_assert_eq(red_permute(device, NULL, &X, &Y, perm), RED_OK, "%s", red_message());
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 3; j++) cr_expect_eq(y[4 * j + i], x[6 - 6 * i + 2 * j]);
}

// A sum of i32 over the axes of a mask, all 2^rank of them, kept and dropped.
Test(common, sums_over_every_set_of_axes) {
  static int32_t x[MAX_ELEMENTS];
  static int64_t y[MAX_ELEMENTS], expected[MAX_ELEMENTS];
  const int64_t shape[] = {3, 5, 4};
  for (int i = 0; i < 60; i++) x[i] = i * i - 7 * i;
  for (int mask = 0; mask < 8; mask++)
    for (int keep = 0; keep < 2; keep++) {
      int axes[3], count = 0, rank = 0;
      int64_t kept[3], strides[3] = {0}, index[3] = {0}, xs[3], outputs = 1;
      for (int d = 0; d < 3; d++) {
        if (mask >> d & 1) axes[count++] = d == 2 ? -1 : d;
        if (!(mask >> d & 1) || keep) kept[rank++] = mask >> d & 1 ? 1 : shape[d];
      }
      for (int d = 2; d >= 0; d--) {
        if (mask >> d & 1) continue;
        strides[d] = outputs;
        outputs *= shape[d];
      }
      memset(expected, 0, sizeof expected);
      dense_strides(3, shape, xs);
      do expected[offset_of(3, strides, index)] += x[offset_of(3, xs, index)];
      while (step(3, shape, index));
      red_tensor X = red_dense(x, RED_I32, 3, shape), Y = red_dense(y, RED_I64, rank, kept);
      cr_assert_eq(red_reduce(device, NULL, "sum", &X, &Y, axes, count), RED_OK, "%d: %s", mask, red_message());
      for (int64_t i = 0; i < outputs; i++) cr_assert_eq(y[i], expected[i], "mask %d", mask);
    }
}

Test(common, every_reduction) {
  static const struct {
    const char *op;
    float f;
    int32_t i;
    int has_f, has_i;
  } cases[] = {{"sum", 6, 6, 1, 1}, {"prod", 0, 0, 1, 1}, {"min", 0, 0, 1, 1},   {"max", 3, 3, 1, 1}, {"mean", 1.5f, 0, 1, 0},
               {"and", 0, 0, 0, 1}, {"or", 0, 3, 0, 1},   {"xor", 0, 0, 0, 1}};
  float f[4] = {0, 1, 2, 3}, fy;
  int32_t i[4] = {0, 1, 2, 3}, iy;
  int64_t shape[] = {4};
  int axes[] = {0};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    red_tensor X = red_dense(f, RED_F32, 1, shape), Y = red_dense(&fy, RED_F32, 0, NULL);
    red_error error = red_reduce(device, NULL, cases[c].op, &X, &Y, axes, 1);
    cr_expect_eq(error, cases[c].has_f ? RED_OK : RED_ERROR_TYPE, "%s: %s", cases[c].op, red_message());
    if (!error) cr_expect_eq(fy, cases[c].f, "%s", cases[c].op);
    X = red_dense(i, RED_I32, 1, shape);
    Y = red_dense(&iy, RED_I32, 0, NULL);
    error = red_reduce(device, NULL, cases[c].op, &X, &Y, axes, 1);
    cr_expect_eq(error, cases[c].has_i ? RED_OK : RED_ERROR_TYPE, "%s: %s", cases[c].op, red_message());
    if (!error) cr_expect_eq(iy, cases[c].i, "%s", cases[c].op);
  }
  uint8_t any = 7, all = 7;
  red_tensor X = red_dense(f, RED_F32, 1, shape), Y = red_dense(&any, RED_BOOL, 0, NULL), Z = red_dense(&all, RED_BOOL, 0, NULL);
  cr_expect_eq(red_reduce(device, NULL, "any", &X, &Y, axes, 1), RED_OK, "%s", red_message());
  cr_expect_eq(red_reduce(device, NULL, "all", &X, &Z, axes, 1), RED_OK, "%s", red_message());
  cr_expect_eq(any, 1);
  cr_expect_eq(all, 0);
}

Test(common, types_that_are_kept) {
  static const struct {
    red_type x, y;
    red_error error;
  } cases[] = {{RED_F16, RED_F32, RED_OK}, {RED_F32, RED_F16, RED_OK},         {RED_F32, RED_F64, RED_OK},          {RED_I8, RED_I64, RED_OK},
               {RED_U8, RED_I32, RED_OK},  {RED_I32, RED_F32, RED_OK},         {RED_BOOL, RED_I32, RED_OK},         {RED_F32, RED_I32, RED_ERROR_TYPE},
               {RED_I64, RED_I32, RED_ERROR_TYPE}, {RED_I8, RED_U16, RED_ERROR_TYPE}, {RED_C64, RED_C64, RED_ERROR_TYPE}, {RED_BOOL, RED_BOOL, RED_ERROR_TYPE}};
  static _Alignas(16) uint8_t x[64], y[64];
  int64_t shape[] = {2};
  int axes[] = {0};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    red_tensor X = red_dense(x, cases[c].x, 1, shape), Y = red_dense(y, cases[c].y, 0, NULL);
    red_error error = red_reduce(device, NULL, "sum", &X, &Y, axes, 1);
    cr_expect_eq(error, cases[c].error, "%s to %s: %s", red_type_name(cases[c].x), red_type_name(cases[c].y), red_message());
  }
}

Test(common, texts) {
  char text[512], small[12];
  size_t length;
  int64_t shape[] = {2, 3, 4}, y_shape[] = {2, 4}, strides[] = {1, 2, 6};
  int perm[] = {2, 0, 1}, axes[] = {1};
  red_tensor X = {NULL, RED_F16, 3, shape, strides}, Y = {NULL, RED_F16, 3, shape, NULL}, R = {NULL, RED_F32, 2, y_shape, NULL};
  cr_expect_eq(red_permute_text(&X, &Y, perm, text, sizeof text, &length), RED_OK);
  cr_expect_str_eq(text, "kernel permute(X: f16[d0, d1, d2] strided) -> (Y: f16[d2, d0, d1]) { for i0 in d0, i1 in d1, i2 in d2 { Y[i2, i0, i1] = X[i0, i1, i2]; } }\n");
  cr_expect_eq(length, strlen(text));
  cr_expect_eq(red_permute_text(&X, &Y, perm, small, sizeof small, &length), RED_OK);
  cr_expect_str_eq(small, "kernel perm");
  cr_expect_eq(red_reduce_text("mean", &X, &R, axes, 1, text, sizeof text, NULL), RED_OK);
  cr_expect_str_eq(text, "kernel reduce(X: f16[d0, d1, d2] strided) -> (Y: f32[d0, d2]) { for i0 in d0, i2 in d2 { Y[i0, i2] = sum(i1 in d1) X[i0, i1, i2] / (d1); } }\n");
}

#define REFUSED(call, error, message)                                                                                                \
  do {                                                                                                                               \
    red_error got_ = (call);                                                                                                         \
    cr_expect_eq(got_, error, "%s", red_error_name(got_));                                                                           \
    cr_expect_str_eq(red_message(), message);                                                                                        \
  } while (0)

Test(common, bad_input) {
  float x[6], y[6];
  int64_t shape[] = {2, 3}, turned[] = {3, 2};
  int again[] = {1, 1}, far[] = {0, 2}, perm[] = {1, 0}, axes[] = {0, 0}, beyond[] = {2};
  red_tensor X = red_dense(x, RED_F32, 2, shape), Y = red_dense(y, RED_F32, 2, turned), Z = red_dense(y, RED_F32, 1, shape), W = red_dense(y, RED_I32, 2, turned);
  REFUSED(red_permute(NULL, NULL, &X, &Y, perm), RED_ERROR_INVALID, "the device is NULL");
  REFUSED(red_permute(device, NULL, NULL, &Y, perm), RED_ERROR_INVALID, "X is NULL");
  REFUSED(red_permute(device, NULL, &X, &Y, NULL), RED_ERROR_INVALID, "perm is NULL");
  REFUSED(red_permute(device, NULL, &X, &Y, again), RED_ERROR_INVALID, "perm is no permutation of 2 dimensions: perm[1] is 1 again");
  REFUSED(red_permute(device, NULL, &X, &Y, far), RED_ERROR_INVALID, "perm is no permutation of 2 dimensions: perm[1] is 2");
  REFUSED(red_permute(device, NULL, &X, &Z, perm), RED_ERROR_RANK, "Y: the argument has rank 1, X has rank 2");
  REFUSED(red_permute(device, NULL, &X, &W, perm), RED_ERROR_TYPE, "Y: the argument has elements of type i32, X's are f32");
  REFUSED(red_reduce(device, NULL, "product", &X, &Z, axes, 1), RED_ERROR_INVALID,
          "there is no reduction \"product\": it is sum, prod, min, max, any, all, and, or, xor or mean");
  REFUSED(red_reduce(device, NULL, NULL, &X, &Z, axes, 1), RED_ERROR_INVALID,
          "there is no reduction \"NULL\": it is sum, prod, min, max, any, all, and, or, xor or mean");
  REFUSED(red_reduce(device, NULL, "sum", &X, &Z, axes, 2), RED_ERROR_INVALID, "axis 0 is given twice");
  REFUSED(red_reduce(device, NULL, "sum", &X, &Z, beyond, 1), RED_ERROR_INVALID, "axis 2 is none of X's");
  REFUSED(red_reduce(device, NULL, "sum", &X, &Z, axes, 3), RED_ERROR_INVALID, "3 axes cannot be reduced of rank 2");
  red_tensor scalar = red_dense(y, RED_F32, 0, NULL);
  REFUSED(red_reduce(device, NULL, "sum", &X, &scalar, axes, 1), RED_ERROR_RANK,
          "Y: the argument has rank 0; X of rank 2 reduced over 1 axes has rank 1, or 2 where axes are kept");
  int before[] = {-3}, twice[] = {1, -1};
  REFUSED(red_reduce(device, NULL, "sum", &X, &Z, before, 1), RED_ERROR_INVALID, "axis -3 is none of X's");
  REFUSED(red_reduce(device, NULL, "sum", &X, &Z, twice, 2), RED_ERROR_INVALID, "axis -1 is given twice");
  REFUSED(red_reduce(device, NULL, "sum", &X, &Z, NULL, 1), RED_ERROR_INVALID, "1 axes cannot be reduced of rank 2");
  REFUSED(red_reduce(device, NULL, "sum", &X, &Z, axes, -1), RED_ERROR_INVALID, "-1 axes cannot be reduced of rank 2");
  int negative[] = {-1, 0};
  REFUSED(red_permute(device, NULL, &X, &Y, negative), RED_ERROR_INVALID, "perm is no permutation of 2 dimensions: perm[0] is -1");
}

// What only the launch can see: shapes that do not match, memory that overlaps, addresses. Nothing of the result is written.
Test(common, bad_shapes_and_memory) {
  enum { PAD = 8, COUNT = 64 };
  float x[COUNT], y[COUNT];
  int64_t shape[] = {2, 3}, turned[] = {3, 2}, kept[] = {1, 3}, strides[] = {0, 1}, negative[] = {-2, 3};
  int perm[] = {1, 0}, axes[] = {0};
  for (int i = 0; i < COUNT; i++) x[i] = y[i] = -7;
  red_tensor X = red_dense(x + PAD, RED_F32, 2, shape), Y = red_dense(y + PAD, RED_F32, 2, turned), Z = red_dense(y + PAD, RED_F32, 1, shape + 1), bad;
#define BAD(tensor, change) (bad = (tensor), bad.change, &bad)
  REFUSED(red_permute(device, NULL, &X, BAD(Y, shape = shape), perm), RED_ERROR_SHAPE,
          "permute: Y: extent 2 in dimension 0, but the kernel needs 3 (d1 = 3 comes from X, dimension 1)");
  REFUSED(red_reduce(device, NULL, "sum", &X, BAD(Z, shape = shape), axes, 1), RED_ERROR_SHAPE,
          "reduce: Y: extent 2 in dimension 0, but the kernel needs 3 (d1 = 3 comes from X, dimension 1)");
  REFUSED(red_reduce(device, NULL, "sum", &X, BAD(Y, shape = shape), axes, 1), RED_ERROR_SHAPE, "reduce: Y: extent 2 in dimension 0, but the kernel needs 1");
  REFUSED(red_permute(device, NULL, BAD(X, shape = negative), &Y, perm), RED_ERROR_SHAPE, "permute: X: extent -2 in dimension 0 is negative");
  REFUSED(red_permute(device, NULL, &X, BAD(Y, data = x + PAD), perm), RED_ERROR_OVERLAP, "permute: X and Y overlap in memory; an output may overlap nothing");
  REFUSED(red_permute(device, NULL, &X, BAD(Y, data = x + PAD + 5), perm), RED_ERROR_OVERLAP, "permute: X and Y overlap in memory; an output may overlap nothing");
  REFUSED(red_permute(device, NULL, &X, BAD(Y, data = x + PAD - 5), perm), RED_ERROR_OVERLAP, "permute: X and Y overlap in memory; an output may overlap nothing");
  REFUSED(red_reduce(device, NULL, "sum", &X, BAD(Z, data = x + PAD - 2), axes, 1), RED_ERROR_OVERLAP,
          "reduce: X and Y overlap in memory; an output may overlap nothing");
  REFUSED(red_permute(device, NULL, &X, BAD(Y, strides = strides), perm), RED_ERROR_ALIAS, "permute: Y: the strides give two elements of an output one address");
  REFUSED(red_permute(device, NULL, BAD(X, data = NULL), &Y, perm), RED_ERROR_NULL_POINTER, "permute: X: the address is null");
  REFUSED(red_permute(device, NULL, BAD(X, shape = NULL), &Y, perm), RED_ERROR_INVALID, "X: the argument has rank 2 and no shape");
  REFUSED(red_permute(device, NULL, BAD(X, rank = -1), &Y, perm), RED_ERROR_RANK, "X: the argument has rank -1; ranks are 0 to 64");
  for (int i = 0; i < COUNT; i++) cr_expect(x[i] == -7 && y[i] == -7, "element %d was written", i);
  bad = red_dense(y + PAD, RED_F32, 2, kept); // and what is right is done
  cr_expect_eq(red_reduce(device, NULL, "sum", &X, &bad, axes, 1), RED_OK, "%s", red_message());
  cr_expect_eq(y[PAD], -14);
  cr_expect_eq(red_permute(device, NULL, &X, BAD(Y, data = x + PAD + 6), perm), RED_OK, "%s", red_message()); // right behind X
}

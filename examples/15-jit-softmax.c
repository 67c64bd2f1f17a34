// Softmax of the rows of halves, with the element type taken from the tensors at launch, and the common cases without any text: a permute and a mean.
//
//   cc 15-jit-softmax.c $(pkg-config --cflags --libs red) -lm -o softmax && ./softmax
//
#include <red.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 5, COLUMNS = 130 };

static const char text[] = "kernel softmax<T>(X: T[n, m]) -> (Y: T[n, m]) {\n"
                           "  for i in n {\n"
                           "    let peak = max(j in m) X[i, j];\n"
                           "    let total = sum(j in m) exp(X[i, j] - peak);\n"
                           "    for j in m { Y[i, j] = exp(X[i, j] - peak) / total; }\n"
                           "  }\n"
                           "}\n";

static void check(red_error error) {
  if (!error) return;
  fprintf(stderr, "%s: %s\n", red_error_name(error), red_message());
  exit(1);
}

// bf16 is the upper half of a float.
static uint16_t to_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)(bits >> 16);
}
static float from_bf16(uint16_t half) {
  uint32_t bits = (uint32_t)half << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

int main(void) {
  static uint16_t x[ROWS][COLUMNS], y[ROWS][COLUMNS], z[COLUMNS][ROWS], mean[ROWS];
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++) x[i][j] = to_bf16((float)((i * 7 + j * 3) % 16) * 0.25f);

  red_device *device;
  red_program *program;
  const red_kernel *softmax;
  check(red_open("auto", &device));
  check(red_compile_text(device, "softmax.red", text, NULL, &program));
  check(red_find(program, "softmax", &softmax));

  void *X, *Y, *Z, *M;
  check(red_alloc(device, sizeof x, &X));
  check(red_alloc(device, sizeof y, &Y));
  check(red_alloc(device, sizeof z, &Z));
  check(red_alloc(device, sizeof mean, &M));
  check(red_copy_in(device, X, x, sizeof x));
  const int64_t shape[] = {ROWS, COLUMNS}, turned[] = {COLUMNS, ROWS}, rows[] = {ROWS};
  red_tensor tensor_x = red_dense(X, RED_BF16, 2, shape), tensor_y = red_dense(Y, RED_BF16, 2, shape);
  red_tensor tensor_z = red_dense(Z, RED_BF16, 2, turned), tensor_m = red_dense(M, RED_BF16, 1, rows);
  red_argument arguments[] = {red_of_tensor(&tensor_x), red_of_tensor(&tensor_y)};
  check(red_launch(softmax, NULL, arguments, 2));
  const int perm[] = {1, 0}, axes[] = {1};
  check(red_permute(device, NULL, &tensor_y, &tensor_z, perm));
  check(red_reduce(device, NULL, "mean", &tensor_y, &tensor_m, axes, 1));
  check(red_copy_out(device, z, Z, sizeof z));
  check(red_copy_out(device, mean, M, sizeof mean));

  int wrong = 0;
  for (int i = 0; i < ROWS; i++) {
    float total = 0;
    for (int j = 0; j < COLUMNS; j++) total += expf(from_bf16(x[i][j]));
    for (int j = 0; j < COLUMNS; j++) {
      float expected = expf(from_bf16(x[i][j])) / total;
      wrong += fabsf(from_bf16(z[j][i]) - expected) > 0.01f * expected; // bf16 keeps 8 bits
    }
    wrong += fabsf(from_bf16(mean[i]) - 1.0f / COLUMNS) > 0.02f / COLUMNS;
  }
  printf("%d rows of %d: %d wrong\n", ROWS, COLUMNS, wrong);

  check(red_free(device, X));
  check(red_free(device, Y));
  check(red_free(device, Z));
  check(red_free(device, M));
  red_release(program);
  red_close(device);
  return wrong != 0;
}

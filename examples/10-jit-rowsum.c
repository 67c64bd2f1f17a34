// A row sum compiled from text and launched, by a program that needs nothing but red.h.
//
//   cc 10-jit-rowsum.c $(pkg-config --cflags --libs red) -o rowsum && ./rowsum      # RED_DEVICE=sim ./rowsum without a GPU
//
#include <red.h>

#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 100, COLUMNS = 1000 };

static const char text[] = "kernel rowsum(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }";

static void check(red_error error) {
  if (!error) return;
  fprintf(stderr, "%s: %s\n", red_error_name(error), red_message());
  exit(1);
}

int main(void) {
  static float a[ROWS][COLUMNS], b[ROWS];
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++) a[i][j] = (float)(i + j % 7);

  red_device *device;
  red_program *program;
  const red_kernel *rowsum;
  check(red_open("auto", &device));
  check(red_compile_text(device, "rowsum.red", text, NULL, &program));
  check(red_find(program, "rowsum", &rowsum));

  void *A, *B;
  check(red_alloc(device, sizeof a, &A));
  check(red_alloc(device, sizeof b, &B));
  check(red_copy_in(device, A, a, sizeof a));

  const int64_t a_shape[] = {ROWS, COLUMNS}, b_shape[] = {ROWS};
  red_tensor tensor_a = red_dense(A, RED_F32, 2, a_shape), tensor_b = red_dense(B, RED_F32, 1, b_shape);
  red_argument arguments[] = {red_of_tensor(&tensor_a), red_of_tensor(&tensor_b)};
  check(red_launch(rowsum, NULL, arguments, 2));
  check(red_copy_out(device, b, B, sizeof b)); // waits

  int wrong = 0;
  for (int i = 0; i < ROWS; i++) {
    float expected = 0;
    for (int j = 0; j < COLUMNS; j++) expected += a[i][j]; // integers: exact in any order
    wrong += b[i] != expected;
  }
  red_device_info info;
  check(red_describe_device(device, &info));
  printf("%d rows on %s (%s): %d wrong\n", ROWS, info.name, info.model, wrong);

  check(red_free(device, A));
  check(red_free(device, B));
  red_release(program);
  red_close(device);
  return wrong != 0;
}

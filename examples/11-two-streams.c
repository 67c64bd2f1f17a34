// Two kernels of one program on two streams, which a GPU may run at the same time.
//
//   cc 11-two-streams.c $(pkg-config --cflags --libs red) -o streams && ./streams
//
#include <red.h>

#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 64, COLUMNS = 512 };

static const char text[] = "kernel rows(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }\n"
                           "kernel columns(A: f32[n, m]) -> (B: f32[m]) { for j in m { B[j] = sum(i in n) A[i, j]; } }\n";

static void check(red_error error) {
  if (!error) return;
  fprintf(stderr, "%s: %s\n", red_error_name(error), red_message());
  exit(1);
}

int main(void) {
  static float a[ROWS][COLUMNS], r[ROWS], c[COLUMNS];
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++) a[i][j] = (float)(i % 5 + j % 3);

  red_device *device;
  red_program *program;
  const red_kernel *rows, *columns;
  check(red_open("auto", &device));
  check(red_compile_text(device, "sums.red", text, NULL, &program));
  check(red_find(program, "rows", &rows));
  check(red_find(program, "columns", &columns));

  void *A, *R, *C;
  check(red_alloc(device, sizeof a, &A));
  check(red_alloc(device, sizeof r, &R));
  check(red_alloc(device, sizeof c, &C));
  check(red_copy_in(device, A, a, sizeof a));

  const int64_t a_shape[] = {ROWS, COLUMNS}, r_shape[] = {ROWS}, c_shape[] = {COLUMNS};
  red_tensor tensor_a = red_dense(A, RED_F32, 2, a_shape), tensor_r = red_dense(R, RED_F32, 1, r_shape), tensor_c = red_dense(C, RED_F32, 1, c_shape);
  red_argument of_rows[] = {red_of_tensor(&tensor_a), red_of_tensor(&tensor_r)};
  red_argument of_columns[] = {red_of_tensor(&tensor_a), red_of_tensor(&tensor_c)};

  red_stream first, second; // each has workspace of its own, where a kernel needs some
  check(red_stream_create(device, &first));
  check(red_stream_create(device, &second));
  for (int round = 0; round < 3; round++) {
    check(red_launch(rows, first, of_rows, 2));
    check(red_launch(columns, second, of_columns, 2));
  }
  check(red_synchronize(device, first));
  check(red_synchronize(device, second));
  check(red_copy_out(device, r, R, sizeof r));
  check(red_copy_out(device, c, C, sizeof c));

  int wrong = 0;
  for (int i = 0; i < ROWS; i++) {
    float expected = 0;
    for (int j = 0; j < COLUMNS; j++) expected += a[i][j];
    wrong += r[i] != expected;
  }
  for (int j = 0; j < COLUMNS; j++) {
    float expected = 0;
    for (int i = 0; i < ROWS; i++) expected += a[i][j];
    wrong += c[j] != expected;
  }
  printf("%d rows and %d columns: %d wrong\n", ROWS, COLUMNS, wrong);

  check(red_stream_destroy(device, first));
  check(red_stream_destroy(device, second));
  check(red_free(device, A));
  check(red_free(device, R));
  check(red_free(device, C));
  red_release(program);
  red_close(device);
  return wrong != 0;
}

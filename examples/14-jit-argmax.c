// Two outputs: the largest element of each row and where it is. The program is a file, 04-argmax.red, read from the folder that this one runs in.
//
//   cc 14-jit-argmax.c $(pkg-config --cflags --libs red) -o argmax && ./argmax
//
#include <red.h>

#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 7, COLUMNS = 300 };

static void check(red_error error) {
  if (!error) return;
  fprintf(stderr, "%s: %s\n", red_error_name(error), red_message());
  exit(1);
}

int main(void) {
  static float a[ROWS][COLUMNS], value[ROWS];
  static int32_t place[ROWS];
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++) a[i][j] = (float)((i * 37 + j * 101) % 83);

  red_device *device;
  red_program *program;
  const red_kernel *peak;
  check(red_open("auto", &device));
  check(red_compile_file(device, "04-argmax.red", NULL, &program));
  check(red_find(program, "peak_at", &peak));

  red_kernel_info info; // what the kernel takes
  check(red_describe(peak, &info));
  for (size_t i = 0; i < info.parameter_count; i++) {
    static const char *const kinds[] = {"input", "output", "scalar", "size"};
    red_parameter parameter;
    check(red_describe_parameter(peak, i, &parameter));
    printf("%s %s: %s[%s]\n", kinds[parameter.kind], parameter.name, red_type_name(parameter.type), parameter.shape);
  }

  void *A, *V, *P;
  check(red_alloc(device, sizeof a, &A));
  check(red_alloc(device, sizeof value, &V));
  check(red_alloc(device, sizeof place, &P));
  check(red_copy_in(device, A, a, sizeof a));
  const int64_t a_shape[] = {ROWS, COLUMNS}, shape[] = {ROWS};
  red_tensor tensor_a = red_dense(A, RED_F32, 2, a_shape), tensor_v = red_dense(V, RED_F32, 1, shape), tensor_p = red_dense(P, RED_I32, 1, shape);
  red_argument arguments[] = {red_of_tensor(&tensor_a), red_of_tensor(&tensor_v), red_of_tensor(&tensor_p)};
  check(red_launch(peak, NULL, arguments, 3));
  check(red_copy_out(device, value, V, sizeof value));
  check(red_copy_out(device, place, P, sizeof place));

  int wrong = 0;
  for (int i = 0; i < ROWS; i++) {
    int best = 0;
    for (int j = 1; j < COLUMNS; j++)
      if (a[i][j] > a[i][best]) best = j; // the lower index wins a tie
    wrong += place[i] != best || value[i] != a[i][best];
    printf("row %d: %g at %d\n", i, value[i], (int)place[i]);
  }
  printf("%d wrong\n", wrong);

  check(red_free(device, A));
  check(red_free(device, V));
  check(red_free(device, P));
  red_release(program);
  red_close(device);
  return wrong != 0;
}

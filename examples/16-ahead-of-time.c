// A kernel that was compiled ahead of time: no compiler, and no LLVM, in this program.
//
//   redc 01-rowsum.red -D m=11 -o rowsum.h
//   cc 16-ahead-of-time.c $(pkg-config --cflags --libs red-rt) -o ahead && ./ahead      # RED_DEVICE=sim ./ahead without a GPU
//
// With CMake: find_package(red), red_add_kernel(rowsum.h 01-rowsum.red DEFINES m=11), and rowsum.h among the sources.
#include "rowsum.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 5, COLUMNS = 11 };

static void check(red_error error) {
  if (!error) return;
  fprintf(stderr, "%s: %s\n", red_error_name(error), red_message());
  exit(1);
}

int main(void) {
  float a[ROWS][COLUMNS], b[ROWS];
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++) a[i][j] = (float)(10 * i + j);

  red_device *device;
  void *A, *B;
  check(red_open("auto", &device));
  check(red_alloc(device, sizeof a, &A));
  check(red_alloc(device, sizeof b, &B));
  check(red_copy_in(device, A, a, sizeof a));

  // Types and sizes are the compiler's to check: a pointer to something else than float is an error here.
  check(rowsum_launch(device, NULL, ROWS, (const float *)A, (float *)B));
  check(red_copy_out(device, b, B, sizeof b)); // waits

  int wrong = 0;
  for (int i = 0; i < ROWS; i++) {
    printf("%g\n", (double)b[i]);
    wrong += b[i] != (float)(COLUMNS * 10 * i + COLUMNS * (COLUMNS - 1) / 2);
  }
  check(red_free(device, A));
  check(red_free(device, B));
  red_close(device); // the kernel belongs to the device
  return wrong != 0;
}

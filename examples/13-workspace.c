// Workspace from the caller: asked for, allocated, initialised once, given to each launch. Without it red keeps workspace for each stream itself.
//
//   cc 13-workspace.c $(pkg-config --cflags --libs red) -o workspace && ./workspace
//
#include <red.h>

#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1000003 };

static const char text[] = "kernel largest(A: i32[n]) -> (B: i32[]) { B[] = max(j in n) A[j]; }";

static void check(red_error error) {
  if (!error) return;
  fprintf(stderr, "%s: %s\n", red_error_name(error), red_message());
  exit(1);
}

int main(void) {
  static int32_t a[COUNT];
  int32_t b = 0;
  for (int i = 0; i < COUNT; i++) a[i] = (int32_t)((unsigned)i * 2654435761u >> 4);
  int32_t expected = a[0];
  for (int i = 0; i < COUNT; i++) expected = a[i] > expected ? a[i] : expected;

  red_device *device;
  red_program *program;
  const red_kernel *largest;
  check(red_open("auto", &device));
  check(red_compile_text(device, "largest.red", text, NULL, &program));
  check(red_find(program, "largest", &largest));

  void *A, *B, *workspace;
  check(red_alloc(device, sizeof a, &A));
  check(red_alloc(device, sizeof b, &B));
  check(red_copy_in(device, A, a, sizeof a));
  const int64_t shape[] = {COUNT};
  red_tensor tensor_a = red_dense(A, RED_I32, 1, shape), tensor_b = red_dense(B, RED_I32, 0, NULL);
  red_argument arguments[] = {red_of_tensor(&tensor_a), red_of_tensor(&tensor_b)};

  size_t bytes; // one vector is spread over many blocks, which combine their parts through workspace
  check(red_workspace_size(largest, arguments, 2, &bytes));
  check(red_alloc(device, bytes, &workspace));
  check(red_workspace_init(device, NULL, workspace, bytes));
  for (int round = 0; round < 3; round++) check(red_launch_with(largest, NULL, arguments, 2, workspace, bytes));
  check(red_copy_out(device, &b, B, sizeof b));
  printf("the largest of %d is %d, with %zu bytes of workspace: %s\n", COUNT, (int)b, bytes, b == expected ? "right" : "wrong");

  check(red_free(device, workspace));
  check(red_free(device, A));
  check(red_free(device, B));
  red_release(program);
  red_close(device);
  return b != expected;
}

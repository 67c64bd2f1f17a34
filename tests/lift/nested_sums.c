// call: nested_sums(m, W: i32[m], C: i32[m], E: i32[1])
// sizes: m=5; m=1; m=0
#include <red_kernel.h>

// A sum of three loops that adds in two of them, beside an element for each iteration of the middle one.
RED_KERNEL void nested_sums(int m, const int W[m], int C[m], int E[1]) {
  E[0] = 1;
  for (int i = 0; i < m; i++) C[i] = i;
  for (int a = 0; a < m; a++)
    for (int b = 0; b < m; b++) {
      C[b] += b;
      for (int c = 0; c < m; c++) E[0] += W[b] & 255;
      E[0] += W[0] & 255;
    }
}

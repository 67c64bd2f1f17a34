// call: rowsum(n, m, A: f32[n, m], B: f32[n])
// sizes: n=37 m=11; n=1 m=1; n=3 m=0; n=200 m=3
#include <red_kernel.h>

RED_KERNEL void rowsum(int n, int m, const float A[n][m], float B[n]) {
  for (int i = 0; i < n; i++) {
    float s = 0;
    for (int j = 0; j < m; j++) s += A[i][j];
    B[i] = s;
  }
}

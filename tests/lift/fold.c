// call: fold(n, m, A: f32[n, m], alpha: f32, beta: f32, B: f32[n])
// sizes: n=37 m=11; n=1 m=1
#include <red_kernel.h>

// What the output held before counts.
RED_KERNEL void fold(int n, int m, const float A[n][m], float alpha, float beta, float B[n]) {
  for (int i = 0; i < n; i++) {
    float s = 0;
    for (int j = 0; j < m; j++) s += A[i][j];
    B[i] = alpha * B[i] + beta * s;
  }
}

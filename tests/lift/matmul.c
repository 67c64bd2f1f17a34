// call: matmul(n, m, k, A: f32[n, k], B: f32[k, m], C: f32[n, m])
// sizes: n=7 m=9 k=5; n=1 m=1 k=1; n=2 m=3 k=0
#include <red_kernel.h>

// The loops in the order i, k, j.
RED_KERNEL void matmul(int n, int m, int k, const float *restrict A, const float *restrict B, float *restrict C) {
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < m; j++) C[i * m + j] = 0.0f;
    for (int l = 0; l < k; l++)
      for (int j = 0; j < m; j++) C[i * m + j] += A[i * k + l] * B[l * m + j];
  }
}

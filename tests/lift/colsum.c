// call: colsum(n, m, A: f32[n, m], B: f32[m])
// sizes: n=37 m=11; n=1 m=1; n=0 m=5; n=3 m=200
#include <red_kernel.h>

// The reduction axis is the outer loop, and the array is a pointer.
RED_KERNEL void colsum(int n, int m, const float *restrict A, float *restrict B) {
  for (int j = 0; j < m; j++) B[j] = 0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) B[j] += A[i * m + j];
}

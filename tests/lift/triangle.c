// call: triangle(n, A: f32[n, n], B: f32[n])
// sizes: n=20; n=1
#include <red_kernel.h>

// A range that depends on the outer loop, and one that steps down.
RED_KERNEL void triangle(int n, const float A[n][n], float B[n]) {
  for (int i = 0; i < n; i++) {
    float s = 0;
    for (int j = i; j >= 0; --j) s += A[i][j];
    B[i] = s;
  }
}

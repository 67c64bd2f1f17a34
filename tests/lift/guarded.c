// call: guarded(n, m, A: f32[n, m], L: i32[n], S: f32[n], C: i32[n])
// sizes: n=40 m=12; n=1 m=1
// values: few
#include <red_kernel.h>

// Sums under a condition, a count, and rows that are left as they are.
RED_KERNEL void guarded(int n, int m, const float A[n][m], const int L[n], float S[n], int C[n]) {
  for (int i = 0; i < n; i++) {
    float s = 0;
    int count = 0;
    for (int j = 0; j < m; j++) {
      if (j < L[i] && A[i][j] > 0) {
        s += A[i][j];
        count++;
      }
    }
    if (i % 3 != 0) S[i] = s;
    C[i] = count;
  }
}

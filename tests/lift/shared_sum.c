// call: shared_sum(n, p, m, A: f32[m], B: f32[n, p], C: f32[n, p], D: f32[n])
// sizes: n=3 p=4 m=5; n=300 p=2 m=1; n=1 p=1 m=0
#include <red_kernel.h>

// A reduction that mentions none of the loops around it, for two outputs.
RED_KERNEL void shared_sum(int n, int p, int m, const float A[m], const float B[n][p], float C[n][p], float D[n]) {
  for (int i = 0; i < n; i++) {
    float t = 0;
    for (int k = 0; k < p; k++) {
      float s = 0;
      for (int j = 0; j < m; j++) s += A[j];
      C[i][k] = s;
      t += s * B[i][k];
    }
    D[i] = t;
  }
}

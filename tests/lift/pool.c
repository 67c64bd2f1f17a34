// call: pool(n, m, X: f32[n, 4 * m], Y: f32[n, m], odd: f32[n, m])
// sizes: n=6 m=5; n=1 m=1
#include <math.h>
#include <red_kernel.h>

// Strides of four: as a step of the loop, and in the index.
RED_KERNEL void pool(int n, int m, const float X[n][4 * m], float Y[n][m], float odd[n][m]) {
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < m; j++) {
      float peak = -INFINITY;
      for (int k = 0; k < 4; k++) peak = fmaxf(peak, X[i][4 * j + k]);
      Y[i][j] = peak;
      odd[i][j] = 0;
      for (int k = 1; k < 4; k += 2) odd[i][j] += X[i][4 * j + k];
    }
  }
}

// call: normalize(n, m, X: f32[n, m], mean: f32[n], Y: f32[n, m])
// sizes: n=6 m=20; n=2 m=1
#include <red_kernel.h>

// A later nest reads what an earlier one wrote.
RED_KERNEL void normalize(int n, int m, const float X[n][m], float mean[n], float Y[n][m]) {
  for (int i = 0; i < n; i++) {
    mean[i] = 0;
    for (int j = 0; j < m; j++) mean[i] += X[i][j];
    mean[i] /= (float)m;
  }
  for (int r = 0; r < n; r++)
    for (int c = 0; c < m; c++) Y[r][c] = X[r][c] - mean[r];
}

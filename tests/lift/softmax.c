// call: softmax(n, m, X: f32[n, m], Y: f32[n, m])
// sizes: n=5 m=33; n=2 m=1
// tolerance: 1e-5
#include <math.h>
#include <red_kernel.h>

RED_KERNEL void softmax(int n, int m, const float X[n][m], float Y[n][m]) {
  for (int i = 0; i < n; i++) {
    float peak = -INFINITY;
    for (int j = 0; j < m; j++)
      if (X[i][j] > peak) peak = X[i][j];
    float total = 0;
    for (int j = 0; j < m; j++) {
      Y[i][j] = expf(X[i][j] - peak);
      total += Y[i][j];
    }
    for (int j = 0; j < m; j++) Y[i][j] /= total;
  }
}

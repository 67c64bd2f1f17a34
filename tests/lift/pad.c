// call: pad(n, m, X: f32[n, m], Y: f32[n, m + 2])
// sizes: n=6 m=20; n=2 m=1; n=3 m=0
#include <red_kernel.h>

RED_KERNEL void pad(int n, int m, const float X[n][m], float Y[n][m + 2]) {
  for (int i = 0; i < n; i++) {
    Y[i][0] = 0;
    Y[i][m + 1] = 0;
    for (int j = 0; j < m; j++) Y[i][j + 1] = X[i][j];
  }
}

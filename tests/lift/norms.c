// call: norms(n, m, k, X: f32[n, m, k], scale: f32, one: f32[n], two: f32[n], most: f32[n])
// sizes: n=6 m=3 k=5; n=2 m=1 k=1
// tolerance: 1e-6
#include <math.h>
#include <red_kernel.h>

RED_KERNEL void norms(int n, int m, int k, const float X[n][m][k], float scale, float one[n], float two[n], float most[n]) {
  for (int i = 0; i < n; i++) {
    float a = 0, b = 0, c = 0;
    for (int j = 0; j < m; j++)
      for (int l = 0; l < k; l++) {
        float x = fabsf(X[i][j][l]);
        a += x;
        b += x * x;
        c = fmaxf(c, x);
      }
    one[i] = a;
    two[i] = scale * sqrtf(b) + 1e-12f;
    most[i] = c;
  }
}

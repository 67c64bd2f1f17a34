// call: layernorm(n, m, X: f32[n, m], G: f32[m], H: f32[m], eps: f32, Y: f32[n, m])
// sizes: n=5 m=33; n=2 m=2
// tolerance: 1e-4
#include <math.h>
#include <red_kernel.h>

RED_KERNEL void layernorm(int n, int m, const float X[n][m], const float G[m], const float H[m], float eps, float Y[n][m]) {
  for (int i = 0; i < n; i++) {
    float sum = 0, squares = 0;
    for (int j = 0; j < m; j++) sum += X[i][j];
    float mean = sum / m;
    for (int j = 0; j < m; j++) {
      float d = X[i][j] - mean;
      squares += d * d;
    }
    float scale = 1.0f / sqrtf(squares / m + eps);
    for (int j = 0; j < m; j++) Y[i][j] = (X[i][j] - mean) * scale * G[j] + H[j];
  }
}

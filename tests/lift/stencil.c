// call: stencil(n, X: f32[n], Y: f32[n])
// sizes: n=50; n=1; n=2
#include <red_kernel.h>

RED_KERNEL void stencil(int n, const float X[n], float Y[n]) {
  for (int i = 0; i < n; i++) {
    float left = i > 0 ? X[i - 1] : 0.0f, right = 0;
    if (i + 1 < n) right = X[i + 1];
    Y[i] = 0.25f * left + 0.5f * X[i] + 0.25f * right;
  }
}

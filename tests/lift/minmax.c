// call: minmax(n, m, A: f32[n, m], lo: f32[n], hi: f32[n], spread: f32[n])
// sizes: n=37 m=11; n=1 m=1
// values: nan
#include <math.h>
#include <red_kernel.h>

// The extremes by comparison, with NaN among the values, and by fmin and fmax.
RED_KERNEL void minmax(int n, int m, const float A[n][m], float lo[n], float hi[n], float spread[n]) {
  for (int i = 0; i < n; i++) {
    float a = A[i][0], b = A[i][0], c = INFINITY, d = -INFINITY;
    for (int j = 0; j < m; j++) {
      float x = A[i][j];
      a = x < a ? x : a;
      if (x > b) b = x;
      c = fminf(c, x);
      d = fmaxf(x, d);
    }
    lo[i] = a;
    hi[i] = b;
    spread[i] = d - c;
  }
}

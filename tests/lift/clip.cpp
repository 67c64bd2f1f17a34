// call: clip(n: u32, m: u32, X: f32[n, m], lo: f32, hi: f32, Y: f32[n, m])
// sizes: n=6 m=20; n=2 m=1
#include <algorithm>
#include <red_kernel.h>

// Element-wise work in an if with an else, on unsigned counters.
extern "C" RED_KERNEL void clip(unsigned n, unsigned m, const float *X, float lo, float hi, float *__restrict Y) {
  for (unsigned i = 0; i < n; i++)
    for (unsigned j = 0; j < m; j++) {
      const unsigned at = i * m + j;
      float x = X[at];
      if (i % 2 == 0)
        x = std::min(std::max(x, lo), hi);
      else if (j > 3)
        x = -x;
      Y[at] = x;
    }
}

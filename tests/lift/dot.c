// call: dot(n, x: f32[n], y: f32[n], result: f64[1])
// sizes: n=100; n=1; n=0
#include <red_kernel.h>

// A double accumulates products of floats.
RED_KERNEL void dot(int n, const float x[n], const float y[n], double result[1]) {
  double s = 0;
  for (int i = 0; i < n; i++) s += (double)x[i] * y[i];
  result[0] = s;
}

// call: permute(a, b, c, X: f32[a, b, c], Y: f32[c, a, b])
// sizes: a=3 b=4 c=5; a=1 b=7 c=1; a=2 b=0 c=3
#include <red_kernel.h>

RED_KERNEL void permute(int a, int b, int c, const float *restrict X, float *restrict Y) {
  for (int k = 0; k < c; k++)
    for (int i = 0; i < a; i++)
      for (int j = 0; j < b; j++) Y[(k * a + i) * b + j] = X[i * b * c + j * c + k];
}

// call: argmax(n, m, A: f32[n, m], V: f32[n], P: i32[n])
// sizes: n=37 m=11; n=4 m=1; n=50 m=3
// values: nan few
#include <red_kernel.h>

RED_KERNEL void argmax(int n, int m, const float A[n][m], float V[n], int P[n]) {
  for (int i = 0; i < n; i++) {
    float best = A[i][0];
    int at = 0;
    for (int j = 1; j < m; j++)
      if (A[i][j] > best) {
        best = A[i][j];
        at = j;
      }
    V[i] = best;
    P[i] = at;
  }
}

// call: argmin_down(n, m, A: i32[n, m], P: i64[n])
// sizes: n=37 m=11; n=4 m=0; n=50 m=3
// values: few
#include <limits.h>
#include <red_kernel.h>

// The search counts down, so that `<=` finds the lowest of equal values.
RED_KERNEL void argmin_down(int n, int m, const int *A, long *restrict P) {
  for (int i = 0; i < n; i++) {
    int least = INT_MAX;
    long at = -1;
    for (int j = m - 1; j >= 0; j--) {
      int x = A[i * m + j];
      if (x <= least) {
        least = x;
        at = j;
      }
    }
    P[i] = at;
  }
}

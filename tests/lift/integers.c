// call: integers(n, m, A: u8[n, m], W: i16[m], sum: i32[n], bits: u8[n], wide: i64[n], any: i32[n])
// sizes: n=30 m=17; n=1 m=1
#include <stdint.h>
#include <red_kernel.h>

// Promotions, sums that wrap, bits, and a flag.
RED_KERNEL void integers(int n, int m, const uint8_t A[n][m], const int16_t W[m], int sum[n], uint8_t bits[n], int64_t wide[n], int any[n]) {
  for (int i = 0; i < n; i++) {
    int s = 0, found = 0;
    uint8_t b = 255, t = 0;
    int64_t w = 7;
    for (int j = 0; j < m; j++) {
      s += A[i][j] * W[j];
      b &= A[i][j] | 1;
      t += A[i][j];
      w -= (int64_t)W[j] * A[i][j] << 3;
      if (A[i][j] == 200) found = 1;
    }
    sum[i] = s;
    bits[i] = b ^ t;
    wide[i] = w;
    any[i] = found;
  }
}

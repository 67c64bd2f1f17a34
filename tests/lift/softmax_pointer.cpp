// call: softmax_pointer(X: f32[n, m], Y: f32[n, m], n: u64, m: u64)
// sizes: n=5 m=33; n=2 m=1
// tolerance: 1e-5
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <red_kernel.h>

extern "C" RED_KERNEL void softmax_pointer(const float *__restrict X, float *__restrict Y, std::size_t n, std::size_t m) {
  for (std::size_t i = 0; i < n; ++i) {
    float peak = -std::numeric_limits<float>::infinity();
    for (std::size_t j = 0; j < m; ++j) peak = std::max(peak, X[i * m + j]);
    float total = 0;
    for (std::size_t j = 0; j < m; ++j) total += std::exp(X[i * m + j] - peak);
    for (std::size_t j = 0; j < m; ++j) Y[i * m + j] = std::exp(X[i * m + j] - peak) / total;
  }
}

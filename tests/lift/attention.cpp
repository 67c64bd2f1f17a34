// call: attention(Q: f32[6, 8], K: f32[9, 8], V: f32[9, 4], O: f32[6, 4])
// sizes: n=6
// tolerance: 1e-5
#include <cmath>
#include <red_kernel.h>

constexpr int N = 6, M = 9, D = 8, E = 4;

// Fixed bounds, references to arrays, scores that are computed anew where they are needed.
extern "C" RED_KERNEL void attention(const float (&Q)[N][D], const float (&K)[M][D], const float (&V)[M][E], float (&O)[N][E]) {
  for (int i = 0; i < N; i++) {
    float total = 0;
    for (int j = 0; j < M; j++) {
      float score = 0;
      for (int d = 0; d < D; d++) score += Q[i][d] * K[j][d];
      total += std::exp(score / std::sqrt(float(D)));
    }
    for (int e = 0; e < E; e++) {
      float sum = 0;
      for (int j = 0; j < M; j++) {
        float score = 0;
        for (int d = 0; d < D; d++) score += Q[i][d] * K[j][d];
        sum += std::exp(score / std::sqrt(float(D))) * V[j][e];
      }
      O[i][e] = sum / total;
    }
  }
}

// options: --block 128
// Collectives under conditions.

__global__ void returned(const float *A, float *B, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = A[i];
  v += __shfl_xor_sync(0xffffffffu, v, 1);  // expect: divergent-collective
  B[i] = v;
}

__global__ void inside(const float *A, float *B, int n) {
  __shared__ float s[128];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    s[threadIdx.x] = A[i];
    __syncthreads();  // expect: divergent-collective
    B[i] = s[127 - threadIdx.x];
  }
}

__global__ void some(float *B) {
  __shared__ float s[128];
  s[threadIdx.x] = threadIdx.x;
  if (threadIdx.x < 64) __syncthreads();  // expect: divergent-collective
  B[threadIdx.x] = s[threadIdx.x];
}

__global__ void trips(const int *ends, const float *A, float *B) {
  float v = 0;
  for (int k = 0; k < ends[threadIdx.x]; k++) v += __shfl_xor_sync(0xffffffffu, A[k], 1);  // expect: divergent-collective
  B[threadIdx.x] = v;
}

// Right: the whole block agrees.
__global__ void uniform(const float *A, float *B, int n) {
  __shared__ float s[128];
  if (blockIdx.x % 2 == 0) {
    s[threadIdx.x] = A[threadIdx.x];
    __syncthreads();
    B[threadIdx.x] = s[127 - threadIdx.x];
  }
  if (n == 0) return;
  for (int k = 0; k < n; k++) {
    __syncthreads();
    s[threadIdx.x] = A[k * 128 + threadIdx.x];
    __syncthreads();
    B[k * 128 + threadIdx.x] = s[127 - threadIdx.x] + __shfl_xor_sync(0xffffffffu, s[threadIdx.x], 1);
  }
}

// Right: a warp agrees, and only its lanes wait for each other.
__global__ void of_a_warp(const float *A, float *B) {
  float v = A[threadIdx.x];
  if (threadIdx.x / 32 == 0) v += __shfl_xor_sync(0xffffffffu, v, 16);
  if (A[threadIdx.x / 32] > 0) v += __shfl_xor_sync(0xffffffffu, v, 1);
  B[threadIdx.x] = v;
}

// Right: idle threads take part with the identity.
__global__ void selected(const float *A, float *B, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < n ? A[i] : 0.0f;
  v += __shfl_down_sync(0xffffffffu, v, 1);
  if (i < n) B[i] = v;
}

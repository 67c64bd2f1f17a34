// options: --block 128
// Shared memory and what orders it.

__global__ void volatile_tail(const float *A, float *B) {
  __shared__ volatile float s[128];
  int t = threadIdx.x;
  s[t] = A[blockIdx.x * 128 + t];
  __syncthreads();
  if (t < 64) s[t] = s[t] + s[t + 64];
  __syncthreads();
  if (t < 32) {
    s[t] = s[t] + s[t + 32];
    s[t] = s[t] + s[t + 16];  // expect: warp-synchronous
    s[t] = s[t] + s[t + 8];   // expect: warp-synchronous
  }
  if (t == 0) B[blockIdx.x] = s[0];
}

// Right: every step is ordered.
__global__ void ordered_tail(const float *A, float *B) {
  __shared__ float s[128];
  int t = threadIdx.x;
  s[t] = A[blockIdx.x * 128 + t];
  __syncthreads();
  if (t < 64) s[t] = s[t] + s[t + 64];
  __syncthreads();
  if (t < 32) {
    float v = s[t] + s[t + 32];
    for (int k = 16; k > 0; k /= 2) v += __shfl_down_sync(0xffffffffu, v, k);
    if (t == 0) B[blockIdx.x] = v;
  }
}

__global__ void no_barrier(const float *A, float *B) {
  __shared__ float s[128];
  s[threadIdx.x] = A[threadIdx.x];
  B[threadIdx.x] = s[127 - threadIdx.x];  // expect: shared-race
}

// The second round overwrites what others still read.
__global__ void reused(const float *A, float *B, int n) {
  __shared__ float s[128];
  for (int k = 0; k < n; k++) {
    s[threadIdx.x] = A[k * 128 + threadIdx.x];  // expect: shared-race
    __syncthreads();
    B[k * 128 + threadIdx.x] = s[127 - threadIdx.x];
  }
}

// Right: two buffers in turn need one barrier a round.
__global__ void own_word(const float *A, float *B, int n) {
  __shared__ float s[128];
  for (int k = 0; k < n; k++) {
    s[threadIdx.x] = A[k * 128 + threadIdx.x];
    B[k * 128 + threadIdx.x] = s[threadIdx.x];
  }
}

__global__ void column(const float *A, float *B) {
  __shared__ float s[32][32];
  int x = threadIdx.x % 32, y = threadIdx.x / 32;
  for (int k = 0; k < 8; k++) s[y + 4 * k][x] = A[(y + 4 * k) * 32 + x];
  __syncthreads();
  for (int k = 0; k < 8; k++) B[(y + 4 * k) * 32 + x] = s[x][y + 4 * k];  // expect: bank-conflict
}

// Right: one word a row of padding.
__global__ void padded(const float *A, float *B) {
  __shared__ float s[32][33];
  int x = threadIdx.x % 32, y = threadIdx.x / 32;
  for (int k = 0; k < 8; k++) s[y + 4 * k][x] = A[(y + 4 * k) * 32 + x];
  __syncthreads();
  for (int k = 0; k < 8; k++) B[(y + 4 * k) * 32 + x] = s[x][y + 4 * k];
}

__global__ void old(const float *A, float *B) {
  float v = A[threadIdx.x];
  v += __shfl_down(v, 1);  // expect: legacy-shuffle
  if (__any(v > 0)) B[threadIdx.x] = v;  // expect: legacy-shuffle
}

// Asynchronous copies are accesses of both memories.
__global__ void copied(const float *a, float *b) {
  __shared__ float tile[256];
  __pipeline_memcpy_async(&tile[threadIdx.x * 4], &a[threadIdx.x * 4], 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  b[threadIdx.x] = tile[255 - threadIdx.x]; // expect: shared-race // expect: warp-synchronous
}
__global__ void copied_right(const float *a, float *b) {
  __shared__ float tile[256];
  __pipeline_memcpy_async(&tile[threadIdx.x * 4], &a[threadIdx.x * 4], 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  b[threadIdx.x] = tile[255 - threadIdx.x];
}
__global__ void copied_apart(const float *a, float *b) {
  __shared__ float tile[1024];
  __pipeline_memcpy_async(&tile[threadIdx.x], &a[threadIdx.x * 32], 4); // expect: uncoalesced
  __pipeline_wait_prior(0);
  b[threadIdx.x] = tile[threadIdx.x];
}

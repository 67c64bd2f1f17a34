// options: --block 8,4 --block whole=256 --block half=48
// Sub-warp sums: four groups of eight lanes in one warp.

__global__ void active(const float *A, float *B) {
  float v = A[(blockIdx.x * 4 + threadIdx.y) * 8 + threadIdx.x];
  unsigned mask = __activemask();
  v += __shfl_down_sync(mask, v, 4, 32);  // expect: activemask
  v += __shfl_down_sync(mask, v, 2, 32);  // expect: activemask
  v += __shfl_down_sync(__activemask(), v, 1, 32);  // expect: activemask
  if (threadIdx.x == 0) B[blockIdx.x * 4 + threadIdx.y] = v;
}

// The shift passes 31 in the last group.
__global__ void shifted(const float *A, float *B) {
  float v = A[(blockIdx.x * 4 + threadIdx.y) * 8 + threadIdx.x];
  unsigned mask = 0xffu << (threadIdx.y * 8 + 8);  // expect: mask-shift
  v += __shfl_down_sync(mask, v, 4, 8);  // expect: mask-lane
  if (threadIdx.x == 0) B[blockIdx.x * 4 + threadIdx.y] = v;
}

// Right: each group names itself.
__global__ void grouped(const float *A, float *B) {
  float v = A[(blockIdx.x * 4 + threadIdx.y) * 8 + threadIdx.x];
  unsigned mask = 0xffu << (threadIdx.y % 4 * 8);
  v += __shfl_down_sync(mask, v, 4, 8);
  v += __shfl_down_sync(mask, v, 2, 8);
  v += __shfl_down_sync(mask, v, 1, 8);
  if (threadIdx.x == 0) B[blockIdx.x * 4 + threadIdx.y] = v;
}

// The block has 48 threads: its second warp has sixteen lanes.
__global__ void half(const float *A, float *B) {
  float v = A[blockIdx.x * 48 + threadIdx.x];
  v += __shfl_xor_sync(0xffffffffu, v, 8);  // expect: mask-lane
  unsigned mask = threadIdx.x < 32 ? 0xffffffffu : 0xffffu;
  v += __shfl_xor_sync(mask, v, 4);
  B[blockIdx.x * 48 + threadIdx.x] = v;
}

// Right: the lanes that a vote counted.
__global__ void voted(const int *A, int *B, int n) {
  int i = blockIdx.x * 32 + threadIdx.y * 8 + threadIdx.x;
  int v = i < n ? A[i] : 0;
  unsigned mask = __ballot_sync(0xffffffffu, v > 0);
  if (v > 0) v += __shfl_sync(mask, v, __ffs(mask) - 1);
  if (i < n) B[i] = v;
}

// Right: half of the lanes, which name each other.
__global__ void whole(const float *A, float *B) {
  float v = A[blockIdx.x * 256 + threadIdx.x];
  if (threadIdx.x % 32 < 16) v += __shfl_xor_sync(0x0000ffffu, v, 8);
  B[blockIdx.x * 256 + threadIdx.x] = v;
}

// options: --block 256 --block transpose=32,8 --block transpose_padded=32,8 --grid 4096 --value rows=2000000 --value cols=5000 --value stride=4096
// Forms that are written again and again, and those that differ from them by little.
#define FULL 0xffffffffu

__device__ float warp_sum(float v) {
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_down_sync(FULL, v, offset);  // expect: divergent-collective
  return v;
}

template <class T> __device__ __forceinline__ T warp_max(T v, unsigned mask = FULL) {
#pragma unroll
  for (int offset = 16; offset; offset >>= 1) v = max(v, __shfl_xor_sync(mask, v, offset));
  return v;
}

// Right: the first warp adds what the warps left.
__device__ float block_sum(float v) {
  __shared__ float part[32];
  int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
  v = warp_sum(v);
  if (lane == 0) part[warp] = v;
  __syncthreads();
  v = threadIdx.x < blockDim.x / warpSize ? part[lane] : 0;
  if (warp == 0) v = warp_sum(v);
  return v;
}

__global__ void sum(const float *in, float *out, int n) {
  float v = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) v += in[i];
  v = block_sum(v);
  if (threadIdx.x == 0) out[blockIdx.x] = v;
}

// The second call writes what the first one's last warp may still read.
__global__ void two_sums(const float *a, const float *b, float *out) {
  __shared__ float part[32];
  for (int k = 0; k < 2; k++) {
    float v = warp_sum(k ? a[threadIdx.x] : b[threadIdx.x]);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;  // expect: shared-race
    __syncthreads();
    if (threadIdx.x < 32) {
      v = warp_sum(threadIdx.x < 8 ? part[threadIdx.x] : 0);
      if (threadIdx.x == 0) out[blockIdx.x * 2 + k] = v;
    }
  }
}

// The shuffle stands in the loop, which lanes leave one by one.
__global__ void sum_inside(const float *in, float *out, int n) {
  float v = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    v += __shfl_xor_sync(FULL, in[i], 1);  // expect: divergent-collective
  out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}

// Right: a warp takes a row, and a whole warp leaves.
__global__ void row_per_warp(const float *in, float *out, int rows, int m) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float v = -INFINITY;
  for (int j = lane; j < m; j += 32) v = fmaxf(v, in[(long long)row * m + j]);
  v = warp_max(v);
  if (lane == 0) out[row] = v;
}

// A lane a row: some lanes of the last warp leave. What is found stands in the function that is called.
__global__ void row_per_lane(const float *in, float *out, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  out[row] = warp_sum(in[row]);
}

// Right: the lanes that are there are asked for first.
__global__ void voted(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned mask = __ballot_sync(FULL, i < n);
  if (i < n) {
    float v = in[i];
    for (int offset = 16; offset > 0; offset /= 2) v += __shfl_down_sync(mask, v, offset);
    if (threadIdx.x % 32 == 0) atomicAdd(out, v);
  }
}

// The tree whose last steps were meant for lanes in step.
template <int SIZE> __global__ void tree(const float *in, float *out) {
  __shared__ float s[SIZE];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * SIZE + t];
  __syncthreads();
  for (int k = SIZE / 2; k > 32; k >>= 1) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t < 32) {
    volatile float *last = s;
    last[t] += last[t + 32];
    last[t] += last[t + 16];  // expect: warp-synchronous
    last[t] += last[t + 8];   // expect: warp-synchronous
    last[t] += last[t + 4];   // expect: warp-synchronous
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
template __global__ void tree<256>(const float *, float *);

// Right: between reading and writing, and between writing and reading.
__global__ void tree_synced(const float *in, float *out) {
  extern __shared__ float s[];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * blockDim.x + t];
  __syncthreads();
  for (int k = blockDim.x / 2; k > 32; k >>= 1) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t < 32) {
    float v = s[t];
    for (int k = 32; k > 0; k >>= 1) {
      v += s[t + k];
      __syncwarp();
      s[t] = v;
      __syncwarp();
    }
  }
  if (t == 0) out[blockIdx.x] = s[0];
}

// Interleaved steps: no race, but words of one bank.
__global__ void tree_strided(const float *in, float *out) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 256 + t];
  __syncthreads();
  for (int k = 1; k < 256; k *= 2) {
    int at = 2 * k * t;
    if (at < 256) s[at] += s[at + k];  // expect: bank-conflict
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}

__global__ void transpose(const float *in, float *out, int width, int height) {
  __shared__ float tile[32][32];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8)
    if (x < width && y + k < height) tile[threadIdx.y + k][threadIdx.x] = in[(long long)(y + k) * width + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8)
    if (x < height && y + k < width) out[(long long)(y + k) * height + x] = tile[threadIdx.x][threadIdx.y + k];  // expect: bank-conflict
}

// Right: rows of 33 words.
__global__ void transpose_padded(const float *in, float *out, int width, int height) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8)
    if (x < width && y + k < height) tile[threadIdx.y + k][threadIdx.x] = in[(long long)(y + k) * width + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8)
    if (x < height && y + k < width) out[(long long)(y + k) * height + x] = tile[threadIdx.x][threadIdx.y + k];
}

// Rows and columns fit 32 bits, their product does not.
__global__ void flat(const float *in, float *out, int rows, int cols) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  for (int j = 0; j < 4; j++) out[row] += in[rows * cols - 1 - j];  // expect: index-overflow
}

// Right: the product of the grid and the stride is below 2^31.
__global__ void pitched(const float *in, float *out, int stride) {
  out[blockIdx.x * stride + threadIdx.x] = in[blockIdx.x * stride + threadIdx.x];
}

// Right: each byte has its own place in one word, and each thread its own byte.
__global__ void bytes(const unsigned char *in, unsigned char *out) {
  __shared__ unsigned char s[256];
  s[threadIdx.x] = in[blockIdx.x * 256 + threadIdx.x];
  out[blockIdx.x * 256 + threadIdx.x] = s[threadIdx.x];
}

// A byte of the neighbour, in another warp for one lane of 32.
__global__ void next_byte(const unsigned char *in, unsigned char *out) {
  __shared__ unsigned char s[256];
  s[threadIdx.x] = in[blockIdx.x * 256 + threadIdx.x];
  __syncwarp();
  out[blockIdx.x * 256 + threadIdx.x] = s[(threadIdx.x + 1) % 256];  // expect: shared-race
}

// Sixteen lanes, of which the mask names eight.
__global__ void half_named(const float *in, float *out) {
  float v = in[threadIdx.x];
  if ((threadIdx.x & 31) < 16) v += __shfl_down_sync(0xff, v, 4, 8);  // expect: mask-lane
  out[threadIdx.x] = v;
}

// Right: the mask of a group of eight, from the lane's own number.
__global__ void groups(const float *in, float *out) {
  float v = in[threadIdx.x];
  unsigned lane = threadIdx.x & 31, mask = 0xffu << (lane & ~7u);
  for (int k = 4; k; k /= 2) v += __shfl_down_sync(mask, v, k, 8);
  if (lane % 8 == 0) out[threadIdx.x / 8] = v;
}

// The same, but from the thread's number: from the second warp on the shift is 32 or more.
__global__ void groups_of_block(const float *in, float *out) {
  float v = in[threadIdx.x];
  unsigned mask = 0xffu << (threadIdx.x & ~7u);  // expect: mask-shift
  v += __shfl_down_sync(mask, v, 4, 8);  // expect: mask-lane
  out[threadIdx.x] = v;
}

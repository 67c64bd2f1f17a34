// options: --block 256 --grid 1000000 --value width=100000
// Global memory and grids.

__global__ void rows(const float *A, float *B, int n) {
  float v = 0;
  for (int k = 0; k < n; k++) v += A[threadIdx.x * n + k];  // expect: uncoalesced
  B[threadIdx.x] = v;
}

__global__ void apart(const float *A, float *B) {
  B[blockIdx.x * 256LL + threadIdx.x] = A[(blockIdx.x * 256LL + threadIdx.x) * 8];  // expect: uncoalesced
}

// Right: neighbours side by side, and four floats a lane.
__global__ void columns(const float *A, float *B, int n) {
  float v = 0;
  for (int k = 0; k < n; k++) v += A[k * 256LL + threadIdx.x];
  float4 w = reinterpret_cast<const float4 *>(A)[threadIdx.x];
  B[threadIdx.x] = v + w.x + w.y + w.z + w.w;
}

// Right: all lanes read one word; one lane writes.
__global__ void one(const float *A, float *B) {
  if (threadIdx.x == 0) B[blockIdx.x] = A[blockIdx.x];
}

__global__ void crooked(const float *A, float4 *B) {
  B[threadIdx.x] = *reinterpret_cast<const float4 *>(A + threadIdx.x * 4 + 1);  // expect: misaligned
}

__global__ void narrow(const float *A, float *B, int width) {
  B[threadIdx.x] = A[blockIdx.x * width + threadIdx.x];  // expect: index-overflow
}

// Right: the product is 64 bits wide.
__global__ void wide(const float *A, float *B, int width) {
  B[threadIdx.x] = A[(long long)blockIdx.x * width + threadIdx.x];
}

void launch(const float *A, float *B, int n, int m) {
  columns<<<dim3(n, m), 256>>>(A, B, n);  // expect: grid-dimension
  dim3 grid(1, n);  // expect: grid-dimension
  one<<<grid, 256>>>(A, B);
  wide<<<dim3(n, 4, m < 65535 ? 1 : 2), 256>>>(A, B, n);
  rows<<<n, 256>>>(A, B, n);
}

// What memory says decides where a store goes: nothing is known of it.
__global__ void scattered(const int *A, float *B) {
  __shared__ float s[256];
  s[A[threadIdx.x] & 255] = A[threadIdx.x];
  B[A[threadIdx.x + 1] + threadIdx.x] = 1;
}

// Right: what is clamped is still side by side. And eight apart, which no clamp mends.
__global__ void clamped(const float *A, float *B) {
  B[threadIdx.x] = A[min((int)threadIdx.x, 250)];
  B[threadIdx.x] = A[max(min((int)threadIdx.x * 8, 100000), 0)];  // expect: uncoalesced
}

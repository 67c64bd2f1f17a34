// redc check --grid 5 --block 32 --arg f32[40]=i --arg f32[5] --arg u32[1]=const(0) --arg f32[1] --print 3
// [780.]
//
// last_block_unfenced.cu as it should be.
extern "C" __global__ void total(const float *in, float *part, unsigned *count, float *out) {
  __shared__ bool last;
  float x = 0;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 8; i++) x += in[blockIdx.x * 8 + i];
    part[blockIdx.x] = x;
    __threadfence();
    last = atomicAdd(count, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    __threadfence();
    x = 0;
    for (int i = 0; i < gridDim.x; i++) x += part[i];
    *out = x;
    *count = 0;
  }
}

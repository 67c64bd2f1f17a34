// redc check --grid 2 --block 128 --arg f32[256]=i --arg f32[2] --print 1
// [ 8128. 24512.]
//
// tree_unsynced.cu as it should be.
extern "C" __global__ void tree(const float *in, float *out) {
  __shared__ float part[128];
  int t = threadIdx.x;
  part[t] = in[blockIdx.x * 128 + t];
  __syncthreads();
  for (int step = 64; step >= 32; step /= 2) {
    if (t < step) part[t] += part[t + step];
    __syncthreads();
  }
  if (t < 32) {
    for (int step = 16; step > 0; step /= 2) {
      if (t < step) {
        part[t] += part[t + step];
      }
      __syncwarp();
    }
  }
  if (t == 0) out[blockIdx.x] = part[0];
}

// redc check --grid 2 --block 32 --arg f32[64]=i --arg i32[8]=i+1 --arg f32[8] --print 2
// [  0.  17.  51. 102. 170. 255. 357. 476.]
//
// group_activemask.cu as it should be.
extern "C" __global__ void group(const float *in, const int *length, float *out) {
  int row = blockIdx.x * 4 + threadIdx.x / 8, k = threadIdx.x % 8;
  float x = 0;
  if (k < length[row]) x = in[row * 8 + k];
  for (int step = 4; step > 0; step /= 2) {
    x += __shfl_down_sync(0xffffffff, x, step, 8);
  }
  if (k == 0) out[row] = x;
}

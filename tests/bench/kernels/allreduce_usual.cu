// The kernels of examples/18-allreduce.red as a pass prints them that asks the machine for its masks: beside redc's in tests/bench/instructions.py.
extern "C" __global__ void __launch_bounds__(11) elevens(float *__restrict__ A, float *__restrict__ B) {
  float red_buf0[1];
  unsigned mask[1];
  float t0[1];
  red_buf0[0] = A[((((int)blockIdx.x) * 11) + ((int)threadIdx.x))];
  mask[0] = (__activemask() & (unsigned)2047);
  t0[0] = __shfl_down_sync(mask[0], red_buf0[0], 8, 32);
  red_buf0[0] = (red_buf0[0] + t0[0]);
  t0[0] = __shfl_down_sync(mask[0], red_buf0[0], 4, 32);
  red_buf0[0] = (red_buf0[0] + t0[0]);
  t0[0] = __shfl_down_sync(mask[0], red_buf0[0], 2, 32);
  red_buf0[0] = (red_buf0[0] + t0[0]);
  t0[0] = __shfl_down_sync(mask[0], red_buf0[0], 1, 32);
  red_buf0[0] = (red_buf0[0] + t0[0]);
  red_buf0[0] = __shfl_sync(mask[0], red_buf0[0], 0, 32);
  if (((int)threadIdx.x) == 0) B[((int)blockIdx.x)] = red_buf0[0];
}
extern "C" __global__ void __launch_bounds__(32) box(float *__restrict__ A, float *__restrict__ B) {
  float red_buf0[1];
  unsigned mask[1];
  float t0[1];
  red_buf0[0] = A[((((int)threadIdx.y) * 8) + ((int)threadIdx.x))];
  mask[0] = __activemask();
  t0[0] = __shfl_down_sync(mask[0], red_buf0[0], 16, 32);
  red_buf0[0] = (red_buf0[0] + t0[0]);
  t0[0] = __shfl_down_sync(mask[0], red_buf0[0], 8, 32);
  red_buf0[0] = (red_buf0[0] + t0[0]);
  t0[0] = __shfl_down_sync(mask[0], red_buf0[0], 4, 32);
  red_buf0[0] = (red_buf0[0] + t0[0]);
  t0[0] = __shfl_down_sync(mask[0], red_buf0[0], 2, 32);
  red_buf0[0] = (red_buf0[0] + t0[0]);
  t0[0] = __shfl_down_sync(mask[0], red_buf0[0], 1, 32);
  red_buf0[0] = (red_buf0[0] + t0[0]);
  red_buf0[0] = __shfl_sync(mask[0], red_buf0[0], 0, 32);
  if ((((int)threadIdx.y) == 0 && ((int)threadIdx.x) == 0)) B[0] = red_buf0[0];
}
// A million rows of M, 128 / M rows a block.
#define MILLION(M, STEPS) extern "C" __global__ void __launch_bounds__(128) million_##M(float *__restrict__ A, float *__restrict__ B) { \
  float red_buf0[1]; unsigned mask[1]; float t0[1]; \
  red_buf0[0] = A[((((int)blockIdx.x) * 128) + (((int)threadIdx.y) * M)) + ((int)threadIdx.x)]; \
  mask[0] = (__activemask() & ((unsigned)(M == 32 ? 0xffffffffu : (1u << (M & 31)) - 1) << (((int)threadIdx.y) * M & 31))); \
  STEPS red_buf0[0] = __shfl_sync(mask[0], red_buf0[0], (((int)threadIdx.y) * M) & 31, 32); \
  if (((int)threadIdx.x) == 0) B[(((int)blockIdx.x) * (128 / M)) + ((int)threadIdx.y)] = red_buf0[0]; }
#define S(k) t0[0] = __shfl_down_sync(mask[0], red_buf0[0], k, 32); red_buf0[0] = (red_buf0[0] + t0[0]);
MILLION(2, S(1))
MILLION(4, S(2) S(1))
MILLION(8, S(4) S(2) S(1))
MILLION(16, S(8) S(4) S(2) S(1))
MILLION(32, S(16) S(8) S(4) S(2) S(1))

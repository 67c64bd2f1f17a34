// redc check --grid 3 --block 64 --arg f32[192]=(i*37)%191 --arg f32[1]=const(-1) --print 1
// [190.]
//
// A maximum by compare-and-swap whose first read is a plain one. The memory model calls that a race: a compiler may move, repeat
// or tear what is plain. maximum_volatile.cu is right.
extern "C" __global__ void maximum(const float *in, float *out) {
  float x = in[blockIdx.x * 64 + threadIdx.x];
  unsigned *word = (unsigned *)out;
  unsigned old = *word, seen; // race-global
  do {
    seen = old;
    if (__uint_as_float(seen) >= x) break;
    old = atomicCAS(word, seen, __float_as_uint(x)); // race-global
  } while (old != seen);
}

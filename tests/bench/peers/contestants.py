"""What is timed for one case: red, PyTorch eager and compiled, CuPy, cuBLAS, a kernel that only reads, and a copy."""
import os

import torch

os.environ.setdefault('CUPY_ACCELERATORS', 'cub')
try:
    import cupy
except ImportError:
    cupy = None

import red
import texts

TORCH = {'f16': torch.float16, 'bf16': torch.bfloat16, 'f32': torch.float32, 'f64': torch.float64, 'i8': torch.int8,
         'u8': torch.uint8, 'i32': torch.int32, 'i64': torch.int64, 'c128': torch.complex128}

READ_ONLY = r'''
extern "C" __global__ void __launch_bounds__(512) read_only(const float4 *x, long long n, float *out) {
  long long at = blockIdx.x * (512LL * 8) + threadIdx.x;
  float4 v[8];
#pragma unroll
  for (int k = 0; k < 8; k++) v[k] = at + k * 512 < n ? LOAD(x + at + k * 512) : make_float4(0, 0, 0, 0);
  float s = 0;
#pragma unroll
  for (int k = 0; k < 8; k++) s += v[k].x + v[k].y + v[k].z + v[k].w;
  if (s == 123.456f) *out = s;
}
'''
_readers = {}


def reader(tensor, load):
    """A call that reads every byte of the tensor, but for up to 15 behind the last 16, and writes nothing."""
    if load not in _readers:
        _readers[load] = cupy.RawKernel(READ_ONLY, 'read_only', options=(f'-DLOAD={load}',))
    kernel, flat = _readers[load], cupy.from_dlpack(tensor.reshape(-1).view(torch.uint8))
    count, out = flat.nbytes // 16, cupy.empty(1, dtype=cupy.float32)
    blocks = max(1, -(-count // 4096))

    def call():
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            kernel((blocks,), (512,), (flat, count, out))

    return call


def make_input(case):
    dtype = TORCH[case['dtype']]
    if dtype.is_floating_point or dtype.is_complex:
        own = dtype if case['dtype'] in ('f16', 'c128') else torch.float32  # large arrays of halves and of pairs have no room for a second form
        return torch.rand(case['shape'], device='cuda', dtype=own).to(dtype)
    return torch.randint(0, 100, case['shape'], device='cuda', dtype=dtype)


def compiled(function, argument):
    torch._dynamo.reset()
    call = torch.compile(function, mode='max-autotune-no-cudagraphs', dynamic=False)
    call(argument)
    return lambda: call(argument)


def outputs(case):
    """The tensors that red and PyTorch write."""
    return [torch.empty(shape, dtype=TORCH[dtype], device='cuda') for dtype, shape in texts.outputs(case)]


def eager(case, x):
    """(function of x that allocates its result, call that writes to `out` where PyTorch can)."""
    axes = case.get('axes')
    if case['what'] == 'permute':
        out = outputs(case)[0]
        view = x.permute(case['perm'])
        return (lambda x: x.permute(case['perm']).contiguous()), (lambda: out.copy_(view)), (lambda: view.contiguous())
    out = outputs(case)
    functions = {
        'sum': (lambda x: torch.sum(x, axes), lambda: torch.sum(x, axes, out=out[0])),
        'max': (lambda x: torch.amax(x, axes), lambda: torch.amax(x, axes, out=out[0])),
        'argmax': (lambda x: torch.max(x, axes[0]), lambda: torch.max(x, axes[0], out=(out[0], out[1])) if len(out) > 1 else None),
        'mean_variance': (lambda x: torch.var_mean(x, axes, correction=0), lambda: torch.var_mean(x, axes, correction=0)),
        'softmax': (lambda x: torch.softmax(x, axes[0]), lambda: torch.softmax(x, axes[0], out=out[0])),
    }
    function, call = functions[case['what']]
    return function, call, lambda: function(x)


def close(case, got, want):
    """Whether red's result is PyTorch's, within what the order of additions can do."""
    want = want if isinstance(want, (tuple, list)) else (want,)
    if case['what'] == 'mean_variance':
        want = (want[1], want[0])
    for g, w in zip(got, want):
        if g.dtype.is_floating_point and case['what'] != 'permute':
            tolerance = {'f16': 2e-2, 'bf16': 5e-2, 'f64': 1e-9}.get(case['dtype'], 2e-4)
            if not torch.allclose(g.double(), w.double(), rtol=tolerance, atol=tolerance):
                return False
        elif not torch.equal(g, w):
            return False
    return True


def contestants(case, wanted, exact=False):
    """({name: call}, bytes moved, whether red's answer is right, the schedule that red takes). `wanted`: names, see peers.py."""
    x, function_out = make_input(case), outputs(case)
    moved = x.nbytes + sum(t.nbytes for t in function_out)
    calls = {}
    defines = {f'n{d}': extent for d, extent in enumerate(case['shape'])} if exact else {}
    kernel = red.compile(texts.text(case), device='cuda:0', defines=defines)
    bound = kernel.bind(x, *function_out)
    calls['red'] = bound if case['group'] != 'small' else lambda: kernel(x, *function_out)  # a graph has a stream of its own
    function, call, plain = eager(case, x)
    bound()
    right = close(case, function_out, plain())
    if 'eager' in wanted:
        calls['eager'] = call
    if 'compiled' in wanted:
        calls['compiled'] = compiled(function, x)
    if 'cupy' in wanted and cupy and case['what'] == 'sum' and case['dtype'] == 'f32':
        cx, co = cupy.from_dlpack(x), cupy.from_dlpack(outputs(case)[0])

        def cupy_sum():
            with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
                cupy.sum(cx, axis=case['axes'], out=co)

        calls['cupy'] = cupy_sum
    if 'cublas' in wanted and case['group'] == 'columns':
        ones = torch.ones(1, case['shape'][0], device='cuda')
        calls['cublas'] = lambda: torch.mm(ones, x)
    if 'ceiling' in wanted:
        if case['what'] in ('permute', 'softmax'):
            other = torch.empty_like(x)
            calls['copy'] = lambda: other.copy_(x)
        elif cupy and x.nbytes >= 16:
            calls['read'] = reader(x, '*')
            calls['read_cs'] = reader(x, '__ldcs')
    return calls, moved, right, kernel.choose(x, *function_out).schedule

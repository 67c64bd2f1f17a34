#!/usr/bin/env python3
"""red from Python on a GPU: red.permute and red.reduce beside PyTorch's own, on many shapes, types and strides; tensors of CuPy and JAX; streams, graphs,
threads and errors.

    LIBRED=... python3 tests/gpu/tensors.py [NAME]     # only tests whose name has NAME in it
"""

import gc
import os
import random
import sys
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'runtime', 'python'))
os.environ.setdefault('XLA_PYTHON_CLIENT_PREALLOCATE', 'false')
try:
    import torch
except ImportError:
    torch = None
if not torch or not torch.cuda.is_available():
    print('needs PyTorch with a GPU')
    sys.exit(77)
import red  # noqa: E402

ROWSUM = 'kernel rowsum(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }'
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def bits(tensor):
    return tensor.clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8)


def same(ours, theirs, what):
    assert ours.shape == theirs.shape, f'{what}: {tuple(ours.shape)}, not {tuple(theirs.shape)}'
    assert torch.equal(bits(ours), bits(theirs)), f'{what}: {(bits(ours) != bits(theirs)).sum().item()} bytes differ'


def numbers(shape, dtype=torch.float32, low=-8, high=8):
    """Integers, so that sums are exact in any order."""
    low = max(low, 0) if dtype in (torch.uint8, torch.bool) else low
    return torch.randint(low, high, shape).to(device='cuda', dtype=dtype)  # a capture that failed keeps the GPU's generator


def raises(kind, text, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind as error:
        assert text in str(error), f"'{text}' is not in '{error}'"
        return error
    raise AssertionError(f'no {kind.__name__}')


@test
def permutes():
    random_ = random.Random(5)
    dtypes = [torch.uint8, torch.float16, torch.float32, torch.float64, torch.complex128, torch.bfloat16, torch.bool]
    for n in range(150):
        rank = random_.randint(1, 5)
        perm = random_.sample(range(rank), rank)
        limit = {1: 100000, 2: 600, 3: 90, 4: 40, 5: 18}[rank]
        shape = [random_.choice([1, 2, 3, 5, 31, 32, 33, 64, 65, limit]) for _ in range(rank)]
        while torch.Size(shape).numel() > 3000000:
            shape[shape.index(max(shape))] //= 2
        dtype = random_.choice(dtypes)
        x = torch.randint(0, 255, (*shape, dtype.itemsize), dtype=torch.uint8).cuda()
        x = (x > 127)[..., 0] if dtype == torch.bool else x.view(dtype)[..., 0]
        if dtype != torch.bool:
            x = x.contiguous()
        if n % 4 == 1 and rank > 1:
            x = x.transpose(0, rank - 1)
        if n % 4 == 2:
            x = x[..., ::2]
        if n % 4 == 3:
            x = x.narrow(random_.randrange(rank), 0, 1) if n % 8 == 3 else x[1:] if x.shape[0] > 1 else x
        same(red.permute(x, perm), x.permute(perm), f'permute {n}: {tuple(x.shape)} by {perm}, {dtype}, strides {x.stride()}')


@test
def large_permutes():
    for shape, perm, dtype in [((4096, 8192), (1, 0), torch.float32), ((8191, 4097), (1, 0), torch.float16), ((64, 1, 64, 64), (3, 0, 2, 1), torch.float32),
                               ((256, 128, 3, 64), (0, 2, 3, 1), torch.uint8), ((2, 3, 4, 5, 6, 7, 8), (6, 0, 5, 1, 4, 2, 3), torch.float64)]:
        x = torch.randint(0, 255, (*shape, dtype.itemsize), dtype=torch.uint8).cuda().view(dtype)[..., 0].contiguous()
        same(red.permute(x, perm), x.permute(perm), f'{shape} by {perm}')


@test
def reductions():
    random_ = random.Random(7)
    theirs = {'sum': torch.sum, 'max': torch.amax, 'min': torch.amin, 'any': torch.any, 'all': torch.all}
    for n in range(150):
        rank = random_.randint(1, 4)
        shape = [random_.choice([1, 2, 7, 32, 33, 100, 1000]) for _ in range(rank)]
        while torch.Size(shape).numel() > 4000000:
            shape[shape.index(max(shape))] //= 3
        axes = tuple(random_.sample(range(rank), random_.randint(1, rank)))
        op = random_.choice(sorted(theirs))
        dtype = torch.bool if op in ('any', 'all') else random_.choice([torch.float32, torch.float64, torch.int32, torch.int64])
        x = numbers(shape, dtype)
        if n % 3 == 1 and rank > 1:
            x = x.transpose(0, -1)
        keep = n % 2 == 0
        expected = theirs[op](x, axes, keepdim=keep)
        result = red.reduce(op, x, axes, keepdims=keep, dtype=expected.dtype if op == 'sum' else None)
        same(result, expected, f'{op} {n}: {tuple(x.shape)} over {axes}, {dtype}, strides {x.stride()}')


@test
def long_reductions():
    for shape, axes in [((1 << 26,), (0,)), ((1 << 25 | 5,), (0,)), ((3, 5000001), (1,)), ((1000003, 7), (0,)), ((100000, 64), (0,)), ((16, 64, 40001), (0, 2)), ((1 << 20, 33), (1,))]:
        x = numbers(shape, torch.int32)
        same(red.reduce('sum', x, axes, dtype=torch.int64), x.sum(axes), f'{shape} over {axes}')
        y = x.to(torch.float32)
        same(red.reduce('max', y, axes), y.amax(axes), f'max of {shape} over {axes}')
        first = red.reduce('sum', torch.rand(shape, device='cuda'), axes)
        assert torch.isfinite(first).all()


@test
def sums_have_the_same_bits_in_every_run():
    x = torch.randn(1 << 23, device='cuda')
    first = red.reduce('sum', x, 0)
    for _ in range(20):
        same(red.reduce('sum', x, 0), first, 'a sum')


@test
def empty_tensors():
    same(red.reduce('sum', numbers((5, 0)), 1), torch.zeros(5, device='cuda'), 'an empty sum')
    same(red.reduce('max', numbers((0,)), 0), torch.full((), -float('inf'), device='cuda'), 'an empty maximum')
    assert red.reduce('sum', numbers((0, 5)), 1).shape == (0,)
    assert red.permute(numbers((3, 0)), (1, 0)).shape == (0, 3)


@test
def calls_again_with_other_tensors():
    rowsum = red.compile(ROWSUM, device='cuda:0')
    for k in range(20):
        A = numbers((10 + k % 3, 100))
        B = torch.zeros(10 + k % 3, device='cuda')
        rowsum(A, B)
        same(B, A.sum(1), f'call {k}')
    bound = rowsum.bind(A, B)
    A.fill_(2)
    bound()
    same(B, A.sum(1), 'bound')
    raises(red.Error, '', rowsum, A, torch.zeros(3, device='cuda'))


@test
def streams():
    rowsum = red.compile(ROWSUM, device='cuda:0')
    A = numbers((1000, 1000))
    outs = []
    for _ in range(4):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            B = torch.zeros(1000, device='cuda')
            rowsum(A, B)
            outs.append(B + 1)
        torch.cuda.current_stream().wait_stream(stream)
    for out in outs:
        same(out, A.sum(1) + 1, 'a stream')
    stream = torch.cuda.Stream()
    B = torch.zeros(1000, device='cuda')
    torch.cuda.synchronize()
    rowsum(A, B, stream=stream)
    stream.synchronize()
    same(B, A.sum(1), 'a stream that was given')
    B.zero_()
    torch.cuda.synchronize()
    rowsum(A, B, stream=stream.cuda_stream)
    stream.synchronize()
    same(B, A.sum(1), 'the number of a stream')


@test
def graphs():
    for shape in [(1000, 100), (1, 1 << 22)]:  # the second is split over the grid
        total = red.compile(ROWSUM, device='cuda:0')
        A, B = numbers(shape), torch.zeros(shape[0], device='cuda')
        stream = torch.cuda.Stream()
        total.prepare(A, B, stream=stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            total(A, B)
        for k in range(3):
            A.fill_(k)
            B.zero_()
            graph.replay()
            torch.cuda.synchronize()
            same(B, A.sum(1), f'{shape}, replay {k}')


@test
def a_capture_that_was_not_prepared_is_an_error_and_stays_whole():
    total = red.compile(ROWSUM.replace('rowsum', 'fresh'), device='cuda:0')
    A, B = numbers((1, 1 << 22)), torch.zeros(1, device='cuda')
    graph, stream, seen = torch.cuda.CUDAGraph(), torch.cuda.Stream(), []
    with torch.cuda.graph(graph, stream=stream):
        seen.append(raises(red.Error, 'red_prepare', total, A, B).name)
        B.add_(1)
    graph.replay()
    torch.cuda.synchronize()
    assert seen == ['RED_ERROR_CAPTURING'] and B.item() == 1


@test
def threads():
    rowsum = red.compile(ROWSUM.replace('rowsum', 'threaded'), device='cuda:0')
    wrong = []

    def work(number):
        with torch.cuda.stream(torch.cuda.Stream()):
            A = numbers((number + 1, 500))
            for _ in range(50):
                B = torch.zeros(number + 1, device='cuda')
                rowsum(A, B)
                torch.cuda.current_stream().synchronize()
                if not torch.equal(B, A.sum(1)):
                    wrong.append(number)

    all_threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in all_threads:
        t.start()
    for t in all_threads:
        t.join()
    assert not wrong, wrong


@test
def wrong_devices_and_types():
    rowsum = red.compile(ROWSUM, device='cuda:0')
    A, B = numbers((3, 4)), torch.zeros(3, device='cuda')
    raises(ValueError, 'the host', rowsum, A, B.cpu())
    raises(red.Error, 'f32', rowsum, A.double(), B)
    raises(red.Error, '', rowsum, B, B)
    if torch.cuda.device_count() > 1:
        raises(ValueError, 'cuda:1', rowsum, A, B.to('cuda:1'))
        other = torch.zeros(3, device='cuda:1')
        red.compile(ROWSUM, device='cuda:1')(A.to('cuda:1'), other)
        same(other.cpu(), A.sum(1).cpu(), 'the second GPU')


@test
def cupy_arrays():
    try:
        import cupy
    except ImportError:
        return 'CuPy is not installed'
    rowsum = red.compile(ROWSUM, device='cuda:0')
    A, B = cupy.arange(12000, dtype='f4').reshape(30, 400) % 7, cupy.zeros(30, 'f4')
    rowsum(A, B)
    assert (B == A.sum(1)).all()
    with cupy.cuda.Stream(non_blocking=True) as stream:
        C = cupy.zeros(30, 'f4')
        rowsum(A, C)
        stream.synchronize()
    assert (C == B).all()
    assert (red.permute(A[::2, 1:], (1, 0)) == A[::2, 1:].T).all()
    assert (red.reduce('max', A.astype('f8'), 0) == A.max(0)).all()
    return None


@test
def jax_arrays():
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return 'JAX is not installed'
    if jax.devices()[0].platform not in ('gpu', 'cuda'):
        return 'JAX finds no GPU'
    rowsum = red.compile(ROWSUM, device='cuda:0')
    A = (jnp.arange(12000, dtype='float32').reshape(30, 400) % 7) * 2  # still being made when it is given
    B = torch.zeros(30, device='cuda')
    rowsum(A, B)
    same(B.cpu(), torch.tensor(A.sum(1).tolist()), 'a sum of JAX')
    Y = torch.empty(400, 30, device='cuda')
    red.permute(A, (1, 0), out=Y)
    same(Y.cpu(), torch.tensor(A.T.tolist()), 'a permute of JAX')
    return None


@test
def dlpack_of_torch():
    rowsum = red.compile(ROWSUM, device='cuda:0')

    class Only:
        """What shows itself through __dlpack__ alone."""

        def __init__(self, tensor, old):
            self.tensor, self.old = tensor, old

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

        def __dlpack__(self, stream=None, **more):
            if self.old and more:
                raise TypeError('no versions')
            return self.tensor.__dlpack__(stream=stream, **more)

    for old in (True, False):
        A, B = numbers((50, 300)), torch.zeros(50, device='cuda')
        rowsum(Only(A, old), Only(B, old))
        same(B, A.sum(1), f'old: {old}')
    gc.collect()


def main():
    counts = {'passed': 0, 'failed': 0, 'skipped': 0}
    for function in TESTS:
        if len(sys.argv) > 1 and sys.argv[1] not in function.__name__:
            continue
        try:
            why = function()
            torch.cuda.synchronize()
        except Exception as error:  # pylint: disable=broad-except
            counts['failed'] += 1
            print(f'FAILED {function.__name__}: {type(error).__name__}: {error}', flush=True)
        else:
            counts['skipped' if why else 'passed'] += 1
            if why:
                print(f'skipped {function.__name__}: {why}')
    print(', '.join(f'{n} {what}' for what, n in counts.items()))
    return 1 if counts['failed'] or not counts['passed'] else 0


if __name__ == '__main__':
    sys.exit(main())

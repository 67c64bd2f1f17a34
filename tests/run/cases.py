#!/usr/bin/env python3
"""Reductions and permutes whose inputs break kernels, with answers known in closed form: each runs in the simulator under all its
checks and five orders of blocks, warps and lanes (or on $RED_DEVICE), is compared with the reference, and the outputs with the
answer. Every input is a formula. Where nvcc is found, each also runs from what nvcc makes of the CUDA text, which must give the
same bits.

  REDC=build/redc RED_SOURCE_DIR=. python3 tests/run/cases.py [TEXT]     # the cases with TEXT in their names
"""

import concurrent.futures
import functools
import math
import operator
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ['RED_SOURCE_DIR'], 'tests'))
import batch  # noqa: E402
import npyfile  # noqa: E402

REDC = os.environ['REDC']
NVCC = shutil.which('nvcc') or shutil.which('nvcc', path=os.path.join(os.environ.get('CUDA_HOME', '/usr/local/cuda'), 'bin'))
SEEDS = 5  # orders of the simulator
GROUP = 40  # cases in a CUDA file
DEVICE, JOBS = os.environ.get('RED_DEVICE', 'sim'), int(os.environ.get('RED_JOBS', '2'))


def rowsum(type_='i32', op='sum'):
    return f'kernel k(A: {type_}[n, m]) -> (B: {type_}[n]) {{ for i in n {{ B[i] = {op}(j in m) A[i, j]; }} }}'


def total(type_='i32', op='sum'):
    return f'kernel k(A: {type_}[m]) -> (B: {type_}[1]) {{ B[0] = {op}(j in m) A[j]; }}'


BIND = ' schedule k {{ bind j -> thread.x; {} }}'
LANES = BIND.format('bind i -> block.x;').replace('{{', '{').replace('}}', '}')
ALONE = ' schedule k { bind j -> thread.x; }'
PERMUTE = 'kernel k<T>(X: T[{}]) -> (Y: T[{}]) {{ for {} {{ Y[{}] = X[{}]; }} }}'


def permute(shape, perm, type_, form='rand(1)'):
    """(name, program, arguments, answer): the permute, checked element by element against the input that --out X gives."""
    names = [f'd{i}' for i in range(len(shape))]
    axes = [f'x{i}' for i in range(len(shape))]
    program = PERMUTE.format(', '.join(names), ', '.join(names[p] for p in perm),
                             ', '.join(f'{x} in {d}' for x, d in zip(axes, names)), ', '.join(axes[p] for p in perm), ', '.join(axes))
    args = ['-D', f'T={type_}', '--arg', f'X={form}']
    for name, extent in zip(names, shape):
        args += ['--size', f'{name}={extent}']

    def answer(read):
        x, y = read('X'), read('Y')
        strides = [1] * len(shape)
        for d in range(len(shape) - 2, -1, -1):
            strides[d] = strides[d + 1] * shape[d + 1]
        out_shape, steps = [shape[p] for p in perm], [strides[p] for p in perm]
        offsets = [0]
        for extent, step in zip(out_shape, steps):
            offsets = [o + step * i for o in offsets for i in range(extent)]
        return all(y[n] == x[o] for n, o in enumerate(offsets))
    return f'permute {shape} {perm} {type_}', program, args, answer


def sizes(**kwargs):
    return [a for name, value in kwargs.items() for a in ('--size', f'{name}={value}')]


def array(name, expected):
    return lambda read: read(name) == [type(read(name)[0])(x) for x in expected] if expected else read(name) == []


def same(values, expected):
    return all(a == b or (a != a and b != b) for a, b in zip(values, expected)) and len(values) == len(expected)


def cases():
    yield ('A1 groups on y and z', 'kernel k(A: i32[3, 5, 19]) -> (B: i32[3, 5]) { for z in 3, y in 5 { B[z, y] = sum(r in 19) A[z, y, r]; } }'
           ' schedule k { bind r -> thread.x; bind y -> thread.y; bind z -> thread.z; }', ['--arg', 'A=1000*i0+100*i1+i2'],
           array('B', [19 * (1000 * z + 100 * y) + 171 for z in range(3) for y in range(5)]))
    for bound in ('', LANES):
        yield ('A2 max below zero' + bound, rowsum('f32', 'max') + bound, [*sizes(n=64), '-D', 'm=13', '--arg', 'A=-(1+(7*i1+i0)%13)'],
               array('B', [-1] * 64))
        yield ('A2 prod' + bound, rowsum('i32', 'prod') + bound, [*sizes(n=2), '-D', 'm=13', '--arg', 'A=i0+2'], array('B', [8192, 1594323]))
        yield ('A5 a whole warp' + bound, rowsum() + bound, [*sizes(n=6), '-D', 'm=32', '--arg', 'A=i0-i1'],
               array('B', [32 * y - 496 for y in range(6)]))
        yield ('A14 64 bits' + bound, rowsum('i64') + bound, [*sizes(n=1), '-D', 'm=32', '--arg', 'A=i == 7 ? 1099511627776 : i'],
               array('B', [1099511628265]))
        yield ('A14 u64 max' + bound, rowsum('u64', 'max') + bound, [*sizes(n=1), '-D', 'm=32', '--arg', 'A=(i << 32) + 31 - i'],
               array('B', [133143986176]))
        yield ('A14 u64 min' + bound, rowsum('u64', 'min') + bound, [*sizes(n=1), '-D', 'm=32', '--arg', 'A=(i << 32) + 31 - i'], array('B', [31]))
        yield ('A24 u32 max' + bound, rowsum('u32', 'max') + bound, [*sizes(n=2), '-D', 'm=32', '--arg', 'A=i0 == 0 ? i1 : 0'], array('B', [31, 0]))
        yield ('A24 i32 min' + bound, rowsum('i32', 'min') + bound, [*sizes(n=1), '-D', 'm=32', '--arg', 'A=i-20'], array('B', [-20]))
        yield ('A24 u32 min' + bound, rowsum('u32', 'min') + bound, [*sizes(n=2), '-D', 'm=32', '--arg', 'A=i0 == 0 ? i1 + 3 : 0'], array('B', [3, 0]))
        yield ('A24 i32 max' + bound, rowsum('i32', 'max') + bound, [*sizes(n=1), '-D', 'm=32', '--arg', 'A=i-20'], array('B', [11]))
        yield ('A32 max of -inf' + bound, rowsum('f16', 'max') + bound, [*sizes(n=3), '-D', 'm=13', '--arg', 'A=const(-inf)'],
               array('B', [-math.inf] * 3))
        yield ('A32 min of inf' + bound, rowsum('f32', 'min') + bound, [*sizes(n=3), '-D', 'm=13', '--arg', 'A=const(inf)'],
               array('B', [math.inf] * 3))
    yield ('A3 rows in one block', rowsum() + ' schedule k { bind j -> thread.x; bind i -> thread.y; }', ['-D', 'n=12', '-D', 'm=8', '--arg', 'A=8*i0+i1'],
           array('B', [64 * y + 28 for y in range(12)]))
    yield ('A6 the result in all threads', 'kernel k(A: f32[m]) -> (B: f32[m]) { let peak = max(j in m) A[j]; for j in m { B[j] = A[j] - peak; } }' + ALONE,
           ['-D', 'm=96', '--arg', 'A=(37*i)%101'], array('B', [37 * r % 101 - 100 for r in range(96)]))
    yield ('A7 one name twice', 'kernel k(A: f32[m]) -> (B: f32[2]) { let s = sum(j in m) A[j]; B[0] = s; let s = sum(j in m) (A[j] * A[j]); B[1] = s; }'
           + ALONE, ['-D', 'm=40', '--arg', 'A=i'], array('B', [780, 20540]))
    for bound in ('', ' schedule k { split i by 4 -> io, ii; split j by 32 -> jo, ji; bind ii -> thread.y; bind io -> thread.z; bind ji -> thread.x; }'):
        yield ('A9 a predicate on rows and columns' + bound, 'kernel k(A: i32[n, m] strided) -> (B: i32[12]) { for i in 12 { if i < 10 { '
               'B[i] = min(j in 64 if j < 50) A[min(i, 9), j]; } } }' + bound,
               ['-D', 'n=10', '-D', 'm=64', '--arg', 'A=i1 < 50 ? 1000 - 3 * i1 : -2147483648@strides:64:1', '--arg', 'B=-7'], array('B', [853] * 10 + [-7] * 2))
    yield ('A12 two accumulators', 'kernel k(A: i32[4, 16]) -> (B: i32[4], C: i32[4]) { for y in 4 { let s = sum(r in 16) A[y, r]; let t = max(r in 16) (A[y, r] ^ 5); '
           'B[y] = s; C[y] = t; } } schedule k { bind y -> thread.y; bind r -> thread.x; }', ['--arg', 'A=16*i0+i1'],
           lambda read: read('B') == [120, 376, 632, 888] and read('C') == [15, 31, 47, 63])
    yield ('A22 fewer threads in the second reduction', 'kernel k(A: i32[256], D: i32[50]) -> (B: i32[1], C: i32[1]) { B[0] = sum(r in 256) A[r]; '
           'C[0] = sum(r in 50) D[r]; } schedule k { bind r -> thread.x; }', ['--arg', 'A=const(1000000)', '--arg', 'D=const(1)'],
           lambda read: read('B') == [256000000] and read('C') == [50])
    yield ('A21 two reductions back to back', 'kernel k(A: i32[n, m]) -> (B: i32[n], C: i32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; C[i] = max(j in m) A[i, j]; } }'
           ' schedule k { bind j -> thread.x; }', ['-D', 'm=192', *sizes(n=8), '--arg', 'A=1000*i0+i1'],
           lambda read: read('B') == [192000 * k + 18336 for k in range(8)] and read('C') == [1000 * k + 191 for k in range(8)])
    yield ('A27 a condition on threads', 'kernel k(A: i32[32, 8]) -> (B: i32[32]) { for r in 32 { if r < 17 { B[r] = sum(x in 8) A[r, x]; } } }'
           ' schedule k { bind r -> thread.y; bind x -> thread.x; }', ['--arg', 'A=8*i0+i1', '--arg', 'B=-1'], array('B', [64 * r + 28 for r in range(17)] + [-1] * 15))
    yield ('A27 a condition on blocks', 'kernel k(A: i32[n, 100]) -> (B: i32[n]) { for i in n { if i % 2 == 0 { B[i] = sum(r in 100) A[i, r]; } } }' + LANES.replace(' j ', ' r '),
           [*sizes(n=9), '--arg', 'A=i0', '--arg', 'B=-1'], array('B', [-1 if i % 2 else 100 * i for i in range(9)]))
    yield ('A27 a condition on groups', 'kernel k(A: i32[4, 8]) -> (B: i32[4]) { for y in 4 { if y < 2 { B[y] = sum(x in 8) A[y, x]; } } }'
           ' schedule k { bind y -> thread.y; bind x -> thread.x; }', ['--arg', 'A=8*i0+i1', '--arg', 'B=-1'], array('B', [28, 92, -1, -1]))
    better = 'a.v > b.v || (a.v == b.v && a.p < b.p)'
    for order in ('vp', 'pv'):
        head = ', '.join({'v': 'v: f32', 'p': 'p: i32'}[c] for c in order)
        identity, operands, places = (', '.join(one[c] for c in order) for one in ({'v': '-1000', 'p': '99'}, {'v': 'A[j]', 'p': 'i32(j)'}, {'v': 'V[0]', 'p': 'P[0]'}))
        yield (f'A30 an argmax of one\'s own, {order}', f'reducer best({head}) {{ identity ({identity}); combine(a, b) {{ '
               f'({", ".join(f"{better} ? a.{c} : b.{c}" for c in order)}) }} }}'
               f'kernel k(A: f32[m]) -> (V: f32[1], P: i32[1]) {{ ({places}) = best(j in m) ({operands}); }}' + ALONE,
               ['-D', 'm=90', '--arg', 'A=-((11*(i+5))%17)'], lambda read: read('P') == [12] and read('V') == [0])
    for r in (13, 16, 33):
        yield (f'A32 max of -inf, {r} on 16 lanes', rowsum('f32', 'max') + ' schedule k { split j by 16 -> jo, jt; bind i -> block.x; bind jt -> thread.x; }',
               [*sizes(n=3), '-D', f'm={r}', '--arg', 'A=const(-inf)'], array('B', [-math.inf] * 3))
    for lane in (0, 5, 31, 32, 38):
        yield (f'A17 NaN at {lane}', 'kernel k(A: f32[m]) -> (V: f32[1], P: i32[1]) { (V[0], P[0]) = argmax(j in m) (A[j], i32(j)); }' + ALONE,
               ['-D', 'm=39', '--arg', f'A=i == {lane} ? 0.0 / 0.0 : f32(i)'], array('P', [lane]))
    wide = ' schedule k { split j by 1024 -> jo, jt; bind jt -> thread.x; }'
    yield ('R1 a fold of a million', 'kernel k(A: f32[m]) -> (B: f32[1]) { B[0] += sum(j in m) A[j]; }' + wide, [*sizes(m=1000000), '--arg', 'A=const(1)', '--arg', 'B=const(5)'],
           array('B', [1000005]))
    yield ('R1 overwrites', total('f32') + wide, [*sizes(m=1000000), '--arg', 'A=const(1)'], array('B', [1000000]))
    yield ('R3 into a view, whole', 'kernel k(A: i32[a, b, c]) -> (B: i32[c] strided) { for k in c { B[k] = sum(i in a, j in b) A[i, j, k]; } }'
           ' schedule k { split j by 128 -> jo, jt; bind jt -> thread.y; bind k -> thread.x; }',
           ['-D', 'c=6', *sizes(a=512, b=1024), '--arg', 'A=const(1)', '--arg', 'B=@offset:1,strides:3'], array('B', [524288] * 6))
    for n in (1, 300):
        yield (f'R5 NaN alone, {n}', rowsum('f32', 'max'), [*sizes(n=1, m=n), '--arg', 'A=0.0 / 0.0'], lambda read: same(read('B'), [math.nan]))
    yield ('R5 NaN of one row, max', rowsum('f32', 'max'), [*sizes(n=5, m=300), '--arg', 'A=i0 == 2 && i1 == 299 ? 0.0 / 0.0 : f32(i1)'],
           lambda read: same(read('B'), [299, 299, math.nan, 299, 299]))
    a, b = 1, 0
    for i in range(100003):
        a, b = a * (2 * i + 1) % 2 ** 32, (b * (2 * i + 1) + i) % 2 ** 32
    yield ('R8 composition in order', 'ordered reducer affine(a: u32, b: u32) { identity (1, 0); combine(f, g) { (f.a * g.a, f.b * g.a + g.b) } }'
           'kernel k(A: u32[n], B: u32[n]) -> (R: u32[2]) { let (a, b) = affine(i in n) (A[i], B[i]); R[0] = a; R[1] = b; }'
           ' schedule k { split i into 256 -> it, is; bind it -> thread.x; }', [*sizes(n=100003), '--arg', 'A=2*i+1', '--arg', 'B=i'], array('R', [a, b]))
    yield ('R8 argmax of zeros', 'kernel k(A: f32[m]) -> (V: f32[1], P: i32[1]) { (V[0], P[0]) = argmax(j in m) (A[j], i32(j)); }' + wide,
           [*sizes(m=100003), '--arg', 'A=const(0)'], array('P', [0]))
    yield ('R9 an empty axis in the middle', 'kernel k(A: f32[a, b, c]) -> (B: f32[a, c]) { for i in a, l in c { B[i, l] = sum(j in b) A[i, j, l]; } }',
           [*sizes(a=4, b=0, c=3), '--arg', 'A=iota'], array('B', [0] * 12))
    yield ('R9 max of nothing', rowsum('f32', 'max'), [*sizes(n=4, m=0), '--arg', 'A=iota'], array('B', [-math.inf] * 4))
    for type_ in ('f16', 'f32', 'f64'):
        for n in (1, 17, 5000):
            yield (f'R10 min of +inf, {type_} {n}', total(type_, 'min'), [*sizes(m=n), '--arg', 'A=const(inf)'], array('B', [math.inf]))
            yield (f'R10 max of -inf, {type_} {n}', total(type_, 'max'), [*sizes(m=n), '--arg', 'A=const(-inf)'], array('B', [-math.inf]))
    yield ('R13 halves do not overflow, 2^22', total('f16') + wide, [*sizes(m=1 << 22), '--arg', 'A=i < 2097152 ? 1024 : -1024'], array('B', [0]))
    yield ('R16 the fastest dimension is kept, whole', 'kernel k(A: f32[n, m]) -> (B: f32[m]) { for j in m { B[j] = sum(i in n) A[i, j]; } }'
           ' schedule k { split i by 32 -> io, it; bind it -> thread.y; bind j -> thread.x; }', ['-D', 'm=24', *sizes(n=65536), '--arg', 'A=i1+1'],
           array('B', [65536 * (j + 1) for j in range(24)]))
    yield ('R26 init, whole', 'kernel k(A: i32[m]) -> (S: i32[1], P: i32[1]) { S[0] = sum(j in m; init = 10) A[j]; P[0] = prod(j in m; init = 10) A[j]; }'
           ' schedule k { split j by 256 -> jo, jt; bind jt -> thread.x; }', [*sizes(m=70000), '--arg', 'A=const(1)'],
           lambda read: read('S') == [70010] and read('P') == [10])
    for e in range(1, 68):
        yield (f'R34 squares of {e}', total() + ALONE, ['-D', f'm={e}', '--arg', 'A=(i+1)*(i+1)'], array('B', [e * (e + 1) * (2 * e + 1) // 6]))
    for r, expected in ((33, 561), (56, 1596), (72, 2628), (256, 32896), (1000, 500500), (1024, 524800)):
        yield (f'A11 {r} threads', total() + ALONE, ['-D', f'm={r}', '--arg', 'A=i+1'], array('B', [expected]))
    for r in (256, 300):
        yield (f'A16 {r} trues', 'kernel k(A: bool[m]) -> (C: i32[1], D: bool[1]) { C[0] = sum(j in m) i32(A[j]); D[0] = any(j in m) A[j]; }',
               ['-D', f'm={r}', '--arg', 'A=const(1)'], lambda read, r=r: read('C') == [r] and read('D') == [True])
    arg = 'kernel k(A: f32[m]) -> (V: f32[1], P: i32[1]) { (V[0], P[0]) = argmax(j in m) (A[j], i32(j)); }'
    for form, r, expected in (('-((11*(i+5))%17)', 90, 12), ('const(4)', 70, 0), ('const(-inf)', 13, 0), ('i == 7 || i == 20 ? 0.0 / 0.0 : f32(i)', 40, 7)):
        for bound in ('', ALONE):
            yield (f'A17 argmax {form}{bound}', arg + bound, ['-D', f'm={r}', '--arg', f'A={form}'], array('P', [expected]))
    yield ('A21 scratch reused', 'kernel k(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } } schedule k { bind j -> thread.x; }',
           ['-D', 'm=192', *sizes(n=8), '--arg', 'A=1000*i0+i1'], array('B', [192000 * k + 18336 for k in range(8)]))
    yield ('A30 complex product', 'reducer product(re: f32, im: f32) { identity (1, 0); combine(a, b) { (a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re) } }'
           'kernel k(A: f32[m]) -> (R: f32[2]) { let (x, y) = product(j in m) (A[j], A[j]); R[0] = x; R[1] = y; }' + ALONE,
           ['-D', 'm=8', '--arg', 'A=const(1)'], array('R', [16, 0]))
    yield ('R1 fold', 'kernel k(A: f32[m]) -> (B: f32[1]) { B[0] += sum(j in m) A[j]; }', [*sizes(m=37), '--arg', 'A=i+1', '--arg', 'B=const(3)'],
           array('B', [706]))
    yield ('R3 into a view', 'kernel k(A: i32[a, b, c]) -> (B: i32[c] strided) { for k in c { B[k] = sum(i in a, j in b) A[i, j, k]; } }',
           [*sizes(a=64, b=128, c=6), '--arg', 'A=const(1)', '--arg', 'B=@offset:1,strides:3'], array('B', [8192] * 6))
    yield ('R5 NaN of one row', rowsum('f32', 'min'), [*sizes(n=5, m=300), '--arg', 'A=i0 == 2 && i1 == 299 ? 0.0 / 0.0 : f32(i1)'],
           lambda read: same(read('B'), [0, 0, math.nan, 0, 0]))
    yield ('R7 argmin finds the first NaN', arg.replace('argmax', 'argmin'), [*sizes(m=1030), '--arg', 'A=i == 130 || i == 900 ? 0.0 / 0.0 : 1.0'],
           array('P', [130]))
    for shape in ((0, 5), (4, 0), (0, 0)):
        yield (f'R9 empty {shape}', rowsum('f32'), [*sizes(n=shape[0], m=shape[1]), '--arg', 'A=iota'], array('B', [0] * shape[0]))
    yield ('R13 halves do not overflow', total('f16'), [*sizes(m=4096), '--arg', 'A=i < 2048 ? 1024 : -1024'], array('B', [0]))
    yield ('R16 the fastest dimension is kept', 'kernel k(A: f32[n, m]) -> (B: f32[m]) { for j in m { B[j] = sum(i in n) A[i, j]; } }',
           [*sizes(n=4096, m=24), '--arg', 'A=i1+1'], array('B', [4096 * (j + 1) for j in range(24)]))
    yield ('R19 spans over 2^31', 'kernel k(A: i8[n, m] strided) -> (B: i64[n]) { for i in n { B[i] = sum(j in m) i64(A[i, j]); } }',
           [*sizes(n=2, m=16), '--arg', 'A=2*i0+1@strides:2147483648:1'], array('B', [16, 48]))
    yield ('R19 one row for all', 'kernel k(A: u8[n, m] strided) -> (B: i64[m]) { for j in m { B[j] = sum(i in n) i64(A[i, j]); } }',
           [*sizes(n=700, m=70), '--arg', 'A=i1%3@strides:0:1'], array('B', [700 * (j % 3) for j in range(70)]))
    yield ('R22 column-major', 'kernel k(A: i32[n, m] strided) -> (V: i32[1], P: i32[1]) { (V[0], P[0]) = argmax(i in n, j in m) (A[i, j], i32(i * m + j)); }',
           [*sizes(n=5, m=4), '--arg', 'A=i0 == 3 && i1 == 1 ? 9 : 0@strides:1:5'], array('P', [13]))
    yield ('R24 wraps', total(), [*sizes(m=3), '--arg', 'A=const(1073741824)'], array('B', [-1073741824]))
    yield ('R24 widened', 'kernel k(A: i32[m]) -> (B: i64[1]) { B[0] = sum(j in m) i64(A[j]); }', [*sizes(m=3), '--arg', 'A=const(1073741824)'],
           array('B', [3221225472]))
    yield ('R26 init', 'kernel k(A: i32[m]) -> (S: i32[1], P: i32[1]) { S[0] = sum(j in m; init = 10) A[j]; P[0] = prod(j in m; init = 10) A[j]; }',
           [*sizes(m=7000), '--arg', 'A=const(1)'], lambda read: read('S') == [7010] and read('P') == [10])
    yield ('R29 odd sizes, unaligned', 'kernel k(A: f32[n, m] strided) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }',
           [*sizes(n=3, m=1001), '--arg', 'A=(i0+i1)%4@offset:1,strides:1003:1'], array('B', [1500, 1501, 1502]))
    for e in (3, 5, 11, 16, 31, 32):
        yield (f'R34 rows of {e} in one warp', rowsum() + ' schedule k { bind j -> thread.x; bind i -> thread.y; }',
               ['-D', 'n=4', '-D', f'm={e}', '--arg', 'A=(i1+1)*(i1+1)*(i0+1)'],
               array('B', [(i + 1) * e * (e + 1) * (2 * e + 1) // 6 for i in range(4)]))
        yield (f'R34 NaN in one row of {e}', rowsum('f32', 'max') + ' schedule k { bind j -> thread.x; bind i -> thread.y; }',
               ['-D', 'n=4', '-D', f'm={e}', '--arg', f'A=i0 == 1 && i1 == {e - 1} ? 0.0 / 0.0 : f32(i1)'],
               lambda read, e=e: same(read('B'), [e - 1, math.nan, e - 1, e - 1]))
    for type_ in ('u8', 'i16', 'f32', 'u64'):
        yield permute((3, 1, 4, 1, 1, 6), (0, 3, 2, 1, 4, 5), type_)
        yield permute((5, 77, 12), (0, 2, 1), type_)
        yield permute((4, 6, 2, 3), (0, 2, 1, 3), type_)
        yield permute((3, 5, 31, 2, 7), (3, 4, 2, 0, 1), type_)
        yield permute((6, 6), (1, 0), type_)
        yield permute((0, 64, 64), (0, 2, 1), type_)
        yield permute((2,) * 12, tuple(range(11, -1, -1)), type_)
    for type_ in ('f32', 'f16'):
        yield permute((5, 77, 124), (0, 2, 1), type_)
    yield permute((2, 300001), (1, 0), 'u8')
    yield permute((2, 3, 5, 1), (1, 0, 2, 3), 'u8')
    yield permute((9, 4100, 2, 2), (1, 0, 3, 2), 'f16')
    yield permute((2,) * 15, tuple(range(14, -1, -1)), 'u8')
    yield permute((2,) * 15, (*range(1, 15), 0), 'u8')
    yield permute((1, 1), (1, 0), 'f32')
    yield permute((2, 1), (1, 0), 'f32')
    yield permute((3, 5, 1031, 2, 7), (3, 4, 2, 0, 1), 'f32')
    yield permute((200, 72), (1, 0), 'c128')
    yield permute((7, 130, 130), (0, 2, 1), 'f64')
    yield permute((64, 0), (1, 0), 'f32')
    yield ('P27 rank 0', 'kernel k(X: f32[]) -> (Y: f32[]) { Y[] = X[]; }', ['--arg', 'X=7'], array('Y', [7]))
    yield ('P16 over NaN', 'kernel k(X: f32[n, n]) -> (Y: f32[n, n]) { for i in n, j in n { Y[j, i] = X[i, j]; } }', [*sizes(n=6), '--arg', 'X=i', '--arg', 'Y=0.0 / 0.0'],
           array('Y', [6 * i + j for j in range(6) for i in range(6)]))
    yield ('P9 a column of a strided slot', 'kernel k(X: f32[a, b]) -> (Y: f32[a, b] strided) { for i in a, j in b { Y[i, j] = X[i, j]; } }',
           [*sizes(a=24, b=1), '--arg', 'X=i', '--arg', 'Y=@offset:7,strides:40:1'], array('Y', list(range(24))))
    yield ('P20 three rounds in one block', 'kernel k(X: f32[3, 96, 96]) -> (Y: f32[3, 96, 96]) { for b in 3, i in 96, j in 96 { Y[b, j, i] = X[b, i, j]; } }'
           ' schedule k { tile i by 32, j by 32 -> io, jo, ii, ji; reorder b, io, jo, ii, ji; stage X at jo in shared as S pad 1; bind Y.ii -> thread.x; split Y.ji by 8 -> ja, jt;'
           ' bind jt -> thread.y; bind S.ji -> thread.x; split S.ii by 8 -> sa, st; bind st -> thread.y; }',
           ['--arg', 'X=i'], array('Y', [9216 * b + 96 * i + j for b in range(3) for j in range(96) for i in range(96)]))
    yield permute((33, 48), (1, 0), 'bool')
    yield permute((2, 2097), (1, 0), 'i8', 'iota')
    for type_ in ('f32', 'f16'):
        yield permute((5, 77, 124), (0, 2, 1), type_)  # P3: rows of one side alone are whole vectors
        yield permute((3, 5, 103, 2, 7), (3, 4, 2, 0, 1), type_)  # P17
    yield permute((2, 20971), (1, 0), 'u8', 'iota')  # P6: more rows than a grid has along y
    yield permute((70, 33, 34), (0, 2, 1), 'f16')
    yield permute((40, 703, 3, 5), (0, 2, 1, 3), 'f32')
    yield permute((2, 3, 5, 1), (1, 0, 2, 3), 'u8')  # P8
    yield permute((9, 410, 2, 2), (1, 0, 3, 2), 'f16')
    yield permute((2,) * 16, tuple(range(1, 16)) + (0,), 'u8')  # P12
    yield permute((1, 1), (1, 0), 'f32')  # P16
    yield permute((2, 1), (1, 0), 'f32')
    yield permute((200, 72), (1, 0), 'f64')  # P24
    yield permute((7, 130, 130), (0, 2, 1), 'f64')
    yield permute((64, 0), (1, 0), 'f32')  # P27
    yield ('P20 one block, a tile at a time', 'kernel k(X: f32[b, n, m]) -> (Y: f32[b, m, n]) { for z in b, i in n, j in m { Y[z, j, i] = X[z, i, j]; } }'
           ' schedule k { tile i by 32, j by 32 -> io, jo, ii, ji; stage X at jo in shared as S pad 1; bind S.ji -> thread.x; split S.ii by 8 -> sr, sy; bind sy -> thread.y;'
           ' bind Y.ii -> thread.x; split Y.ji by 8 -> yr, yy; bind yy -> thread.y; }', [*sizes(b=3, n=96, m=96), '--arg', 'X=i'],
           array('Y', [(z * 96 + i) * 96 + j for z in range(3) for j in range(96) for i in range(96)]))
    yield ('P9 a pitched tile', 'kernel k(X: f32[a, b]) -> (Y: f32[b, a] strided(p, 1)) { for i in a, j in b { Y[j, i] = X[i, j]; } }',
           [*sizes(a=64, b=48), '--arg', 'X=i', '--arg', 'Y=@strides:80:1'], array('Y', [i * 48 + j for j in range(48) for i in range(64)]))
    yield ('P9 into a pitch', 'kernel k(X: f32[a, b]) -> (Y: f32[b, a] strided) { for i in a, j in b { Y[j, i] = X[i, j]; } }',
           [*sizes(a=33, b=48), '--arg', 'X=i', '--arg', 'Y=@offset:3,strides:50:1'],
           array('Y', [i * 48 + j for j in range(48) for i in range(33)]))
    yield ('P14 strides over 2^31', 'kernel k(X: u8[a, b] strided) -> (Y: u8[b, a]) { for i in a, j in b { Y[j, i] = X[i, j]; } }',
           [*sizes(a=3, b=5), '--arg', 'X=i@strides:1073741824:7'], array('Y', [i * 5 + j for j in range(5) for i in range(3)]))


# How blocks are combined; `fold`: the statement must be a fold whose operator has an atomic.
FORMS = ('last_block', 'flag', 'second_kernel', 'atomic')


def over_the_grid(form):
    """The cases whose reductions are split over blocks."""
    def split(axis, pieces, threads=64, more=''):
        return (f' schedule k {{ split {axis} by {threads} -> {axis}o, {axis}t; split {axis}o into {pieces} -> {axis}b, {axis}r; bind {axis}b -> block.x;'
                f' bind {axis}t -> thread.x; combine {axis}b by {form}; {more} }}')

    fold = 'kernel k(A: f32[m]) -> (B: f32[1]) { B[0] += sum(j in m) A[j]; }'
    yield ('R1 fold', fold + split('j', 7), [*sizes(m=37), '--arg', 'A=i+1', '--arg', 'B=const(3)'], array('B', [706]))
    yield ('R1 ones', fold + split('j', 40), [*sizes(m=100000), '--arg', 'A=const(1)', '--arg', 'B=const(5)'], array('B', [100005]))
    yield ('R1 nothing', fold + split('j', 7), [*sizes(m=0), '--arg', 'A=iota', '--arg', 'B=const(5)'], array('B', [5]))
    if form == 'atomic':
        for type_, op, sign, form_, first, expected in (('i32', 'max', 'max=', '-(1+i*7%501)', -1000, -1), ('u32', 'min', 'min=', '7+i*7%501', 9, 7), ('u64', 'or', '|=', '1 << (i%40)', 0, 2 ** 40 - 1),
                                                        ('i64', 'sum', '+=', 'i', 1, 12497501), ('f64', 'sum', '+=', 'i', 1, 12497501), ('u32', 'xor', '^=', 'i', 5, functools.reduce(operator.xor, range(5000), 5))):
            yield (f'atomic {op} of {type_}', f'kernel k(A: {type_}[m]) -> (B: {type_}[1]) {{ B[0] {sign} {op}(j in m) A[j]; }}' + split('j', 9),
                   [*sizes(m=5000), '--arg', f'A={form_}', '--arg', f'B=const({first})'], array('B', [expected]))
        return
    yield ('R3 into a view', 'kernel k(A: i32[a, b, c]) -> (B: i32[c] strided) { for k in c { B[k] = sum(i in a, j in b) A[i, j, k]; } }'
           f' schedule k {{ split i into 5 -> ig, ir; bind ig -> block.y; split j by 32 -> jo, jt; bind jt -> thread.x; bind k -> block.x; combine ig by {form}; }}',
           [*sizes(a=64, b=128, c=6), '--arg', 'A=const(1)', '--arg', 'B=@offset:1,strides:3'], array('B', [8192] * 6))
    arg = 'kernel k(A: f32[m]) -> (P: i32[1]) { let (v, p) = argmax(j in m) (A[j], i32(j)); P[0] = p; }'
    yield ('R8 the lower index', arg + split('j', 33), [*sizes(m=100003), '--arg', 'A=const(0)'], array('P', [0]))
    yield ('R7 the first NaN', arg + split('j', 4), [*sizes(m=1030), '--arg', 'A=i == 130 || i == 900 ? 0.0 / 0.0 : 1.0'], array('P', [130]))
    yield ('R9 the identity of argmax', arg + split('j', 4), [*sizes(m=0), '--arg', 'A=iota'], array('P', [-1]))
    a, b = 1, 0
    for i in range(100003):
        a, b = a * (2 * i + 1) % 2 ** 32, (b * (2 * i + 1) + i) % 2 ** 32
    yield ('R8 order', 'ordered reducer affine(a: u32, b: u32) { identity (1, 0); combine(f, g) { (f.a * g.a, f.b * g.a + g.b) } }'
           'kernel k(A: u32[m], B: u32[m]) -> (R: u32[2]) { let (a, b) = affine(j in m) (A[j], B[j]); R[0] = a; R[1] = b; }'
           f' schedule k {{ split j into 37 -> g, r; split r into 64 -> t, s; bind g -> block.x; bind t -> thread.x; combine g by {form}; }}',
           [*sizes(m=100003), '--arg', 'A=2*i+1', '--arg', 'B=i'], array('R', [a, b]))
    for m in (4096, 65536):
        yield (f'R13 halves do not overflow, {m}', total('f16') + split('j', 6), [*sizes(m=m), '--arg', f'A=i < {m // 2} ? 1024 : -1024'], array('B', [0]))
    yield ('R16 the fastest dimension is kept', 'kernel k(A: f32[n, m]) -> (B: f32[m]) { for j in m { B[j] = sum(i in n) A[i, j]; } }'
           f' schedule k {{ split j by 8 -> jo, jt; split i by 32 -> i1, is; split i1 into 9 -> ig, ir; bind jo -> block.x; bind ig -> block.y; bind jt -> thread.x;'
           f' bind is -> thread.y; combine ig by {form}; }}',
           [*sizes(n=4096, m=24), '--arg', 'A=i1+1'], array('B', [4096 * (j + 1) for j in range(24)]))
    yield ('R16 four columns a thread', 'kernel k(A: f32[n, m]) -> (B: f32[m]) { for j in m { B[j] = sum(i in n) A[i, j]; } }'
           ' schedule k { split j by 4 -> jc, jv; split jc by 4 -> jo, jt; split i by 8 -> i1, is; split i1 by 4 -> i2, iu; split i2 by 3 -> ir, ig;'
           f' bind jo -> block.x; bind ig -> block.y; bind jt -> thread.x; bind is -> thread.y; reorder jo, ig, jt, is, ir, iu, jv; unroll iu; vectorize jv; combine ig by {form}; }}',
           [*sizes(n=1001, m=24), '--arg', 'A=i1+i0%2'], array('B', [1001 * j + 500 for j in range(24)]))
    yield ('R24 wraps', total() + split('j', 3, 1), [*sizes(m=3), '--arg', 'A=const(1073741824)'], array('B', [-1073741824]))
    yield ('R26 init', 'kernel k(A: i32[m]) -> (S: i32[1], P: i32[1]) { let s = sum(j in m; init = 10) A[j]; let p = prod(j in m; init = 10) A[j]; S[0] = s; P[0] = p; }'
           + split('j', 11), [*sizes(m=7000), '--arg', 'A=const(1)'], lambda read: read('S') == [7010] and read('P') == [10])
    for type_, op, form_, expected in (('f64', 'min', 'const(inf)', math.inf), ('f32', 'max', 'const(-inf)', -math.inf), ('bool', 'any', 'i == 4999', True), ('bool', 'all', 'i != 4999', False),
                                       ('i8', 'sum', 'i%3', 4999 % 256 - 256), ('u64', 'max', '(i << 32) + 31 - i', (4999 << 32) + 31 - 4999), ('u8', 'xor', 'i', functools.reduce(operator.xor, range(5000)) % 256)):
        if form == 'flag' and '64' in type_:
            continue  # a word has 32 bits beside its flag
        yield (f'{op} of {type_}', f'kernel k(A: {type_}[m]) -> (B: {type_}[1]) {{ B[0] = {op}(j in m) A[j]; }}' + split('j', 13), [*sizes(m=5000), '--arg', f'A={form_}'],
               array('B', [expected]))
    yield ('many groups', rowsum() + f' schedule k {{ bind i -> block.x; split j into 3 -> jb, jr; bind jb -> block.y; combine jb by {form}; }}', [*sizes(n=300, m=10), '--arg', 'A=i0+i1'],
           array('B', [10 * i + 45 for i in range(300)]))
    yield ('rows in a loop', rowsum('i32', 'max') + f' schedule k {{ split j by 32 -> jb, jt; bind jb -> block.x; bind jt -> thread.x; combine jb by {form}; }}', [*sizes(n=5, m=100), '--arg', 'A=i0-i1'],
           array('B', [0, 1, 2, 3, 4]))


def all_cases():
    yield from cases()
    for name, program, args, answer in cases():
        if re.match(r'A\d', name) and 'thread' in program:  # reductions over threads, with redux.sync too
            yield f'{name}, sm_90', program, [*args, '--arch', 'sm_90'], answer
    for form in FORMS:
        for name, program, args, answer in over_the_grid(form):
            yield f'{name}, {form}', program, args, answer


class Case:
    """One case in a folder of its own; its kernel has a name of its own, so that all stand in one CUDA file."""

    def __init__(self, number, case, root):
        self.name, program, self.args, self.answer = case
        self.kernel = f'case{number}'
        self.program = re.sub(r'\b(kernel|schedule) k\b', rf'\1 {self.kernel}', program)
        self.folder = f'{root}/{self.kernel}'
        self.path = f'{self.folder}/k.red'
        head = self.program.split(f'kernel {self.kernel}')[-1].split('{')[0]
        self.outs = sorted(set(a for a in ('A', 'B', 'C', 'D', 'P', 'R', 'S', 'V', 'X', 'Y') if f'{a}: ' in head))
        self.twin = None  # PTX that nvcc made of its CUDA
        os.mkdir(self.folder)
        with open(self.path, 'w', encoding='utf-8') as f:
            f.write(self.program)

    def line(self):
        """The arguments of a run; its tensors go to files of the folder."""
        line = [self.path, *self.args, '--check', '--verify-each']
        if DEVICE == 'sim':
            line += ['--seed=1', f'--seeds={SEEDS}']
        if self.twin:
            line += [f'--twin={self.twin}']
        return line + [a for out in self.outs for a in ('--out', f'{out}={self.folder}/{out}.npy')]

    def judge(self, status, output):
        """What is wrong with a run, or None."""
        if status:
            return f'{self.name}: exit status {status}\n  redc run {" ".join(self.line())}\n{output}'
        read = lambda out: npyfile.read(f'{self.folder}/{out}.npy')[2]  # noqa: E731
        return None if self.answer(read) else f'{self.name}: wrong answer: ' + ', '.join(f'{o} = {read(o)[:8]}' for o in self.outs)

    def cuda(self):
        """The CUDA text, for the sizes of the run where a schedule needs them."""
        defines, sizes = [], []
        for option, value in zip(self.args[::2], self.args[1::2]):
            if option in ('-D', '--size'):
                (defines if option == '-D' else sizes).extend(('-D', value))
            elif option == '--arch':
                defines += (option, value)
        for given in (defines, defines + sizes):
            done = subprocess.run([REDC, self.path, *given, '--emit=cuda', '--all-entries'], capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return f'namespace of_{self.kernel} {{\n{done.stdout}}}\n'
        return f'#error "{self.name}: no CUDA text"\n'


def make_twin(root, number, chosen):
    """PTX from the CUDA text of some cases. What is wrong, or None."""
    twin = f'{root}/{number}.ptx'
    with open(f'{root}/{number}.cu', 'w', encoding='utf-8') as f:
        f.writelines(c.cuda() for c in chosen)
    done = subprocess.run([NVCC, '-arch=sm_80', '-ptx', f.name, '-o', twin], capture_output=True, text=True, check=False)
    if done.returncode:
        return f'nvcc: {done.stderr}'
    for c in chosen:
        c.twin = twin
    return None


def main():
    with tempfile.TemporaryDirectory() as root:
        words = [a for a in sys.argv[1:] if not a.startswith('--')]
        chosen = [Case(i, c, root) for i, c in enumerate(c for c in all_cases() if not words or words[0] in c[0])]
        wrong = []
        if NVCC and DEVICE == 'sim':
            groups = [chosen[i:i + GROUP] for i in range(0, len(chosen), GROUP)]
            with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
                wrong += [w for w in pool.map(make_twin, [root] * len(groups), range(len(groups)), groups) if w]
        else:
            print('skipped: no case ran from the CUDA text, for want of nvcc or of the simulator')
        done = batch.run(REDC, [c.line() for c in chosen], [f'--device={DEVICE}'], JOBS, 300)
        answers = [c.judge(status, output) for c, (status, output) in zip(chosen, done)]
        wrong += [a for a in answers if a]
    print('\n'.join(wrong[:20]))
    print(f'{len(chosen) - len(wrong)} passed, {len(wrong)} failed')
    return 1 if wrong or not chosen else 0


if __name__ == '__main__':
    sys.exit(main())

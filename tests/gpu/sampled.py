#!/usr/bin/env python3
"""Many kernels launched by one process, for compute-sanitizer: the programs of the examples and the compiler's own schedules at a few sizes each.

    compute-sanitizer --tool=racecheck python3 tests/gpu/sampled.py [--seconds N]      # begins no program after N seconds
    compute-sanitizer --tool=racecheck python3 tests/gpu/sampled.py --fault=racecheck   # one kernel in which that tool must find something

Needs libred ($LIBRED) alone.
"""

import argparse
import ctypes
import math
import os
import re
import struct
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'runtime', 'python'))
import red  # noqa: E402
from kernels import evaluate, names_of, programs  # noqa: E402

SIZES = [(33, 7), (5, 1000), (257, 255), (1, 40003), (2000, 3)]
LAST_BLOCK = ('kernel k(A: i32[n, m]) -> (B: i32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }\n'
              'schedule k { split j by 32 -> jo, ji; split jo into 3 -> jb, jr; bind i -> block.x; bind jb -> block.y; bind ji -> thread.x; combine jb by last_block; }')
ROWS = 'kernel k(A: f32[n, 256]) -> (B: f32[n]) { for i in n { B[i] = sum(j in 256) A[i, j]; } } schedule k { bind i -> block.x; bind j -> thread.x; }'
TYPESTR = {'bool': 'b1', 'i8': 'i1', 'i16': 'i2', 'i32': 'i4', 'i64': 'i8', 'u8': 'u1', 'u16': 'u2', 'u32': 'u4', 'u64': 'u8', 'f16': 'f2', 'f32': 'f4', 'f64': 'f8',
           'c64': 'c8', 'c128': 'c16', 'bf16': 'V2', 'f8e4m3': 'V1', 'f8e5m2': 'V1'}
NAMES = {'bf16': 'bfloat16', 'f8e4m3': 'float8_e4m3fn', 'f8e5m2': 'float8_e5m2'}
# Two elements of each type. Integers are 0 and 1, since one may be an index.
TWO = {'f16': struct.pack('<2e', 1, -2), 'f32': struct.pack('<2f', 1, -2), 'f64': struct.pack('<2d', 1, -2), 'c64': struct.pack('<4f', 1, -2, 3, 4),
       'c128': struct.pack('<4d', 1, -2, 3, 4), 'bf16': struct.pack('<2f', 1, -2)[2:4] + struct.pack('<2f', 1, -2)[6:8], 'f8e4m3': b'\x38\xc0', 'f8e5m2': b'\x3c\xc0'}


class Type:
    def __init__(self, name):
        self.name = NAMES.get(name, '')


class Buffer:
    """Memory of the device as a dense tensor; `elements` of it are there, and `is_filled`."""

    def __init__(self, device, kind, shape, elements=None, is_filled=True):
        size = red.BYTES[red.TYPES.index(kind)]
        self.library, self.device, self.address = red.load(), device, ctypes.c_void_p()
        two = TWO.get(kind) or (0).to_bytes(size, 'little') + (1).to_bytes(size, 'little')
        count = math.prod(shape) if elements is None else elements
        data = (two * (count // 2 + 1))[:size * count]
        self.check(self.library.red_alloc(device.handle, ctypes.c_size_t(max(len(data), 1)), ctypes.byref(self.address)))
        if data and is_filled:
            self.check(self.library.red_copy_in(device.handle, self.address, data, ctypes.c_size_t(len(data))))
        self.dtype = Type(kind)
        self.__cuda_array_interface__ = {'shape': tuple(shape), 'typestr': '<' + TYPESTR[kind], 'data': (self.address.value, False), 'strides': None, 'version': 3, 'stream': None}

    def check(self, code):
        if code:
            raise red.Error(code)

    def free(self):
        self.library.red_free(self.device.handle, self.address)


def launch(device, kernel, given):
    """Whether the kernel takes the sizes."""
    tensors = [p for p in kernel.parameters if p.kind in ('input', 'output')]
    shapes = [evaluate(p.shape, given) for p in tensors]
    if any(min(s, default=1) < 0 or math.prod(s) > 1 << 22 for s in shapes):
        return False
    buffers = [Buffer(device, p.type, s) for p, s in zip(tensors, shapes)]
    others = {p.name: 1 if p.kind == 'scalar' else given[p.name] for p in kernel.parameters if p.kind in ('scalar', 'size')}
    try:
        kernel(*buffers, **others)
        device.synchronize()
        return True
    except red.Error as error:
        if error.name not in ('RED_ERROR_SHAPE', 'RED_ERROR_REQUIREMENT', 'RED_ERROR_LIMIT'):
            raise
        return False
    finally:
        for b in buffers:
            b.free()


def sample(device, seconds):
    """The status; prints how many launches there were."""
    until, count, left, wrong = time.monotonic() + seconds, 0, 0, 0
    for name, text, defines in [('last block', LAST_BLOCK, []), *programs()]:
        if time.monotonic() > until:
            left += 1
            continue
        try:
            for kernel in red.compile(text, device=device, name=name, defines=dict(d.split('=') for d in defines)).kernels.values():
                names = names_of(kernel)
                count += sum(launch(device, kernel, {n: sizes[i % 2] for i, n in enumerate(names)}) for sizes in (SIZES if names else SIZES[:1]))
        except red.Error as error:
            wrong += 1
            print(f'FAILED {name}: {error}', flush=True)
    print(f'{count} launches, {left} programs left out for want of time', flush=True)
    return 1 if wrong or not count else 0


def fault(device, tool):
    """One launch with a fault for the tool: memory that ends early, a barrier left out, an input that nothing wrote, a barrier that part of a warp skips."""
    program = red.compile(ROWS, device=device)
    kernel = next(iter(program.kernels.values()))
    a = Buffer(device, 'f32', (4, 256), 1000 if tool == 'memcheck' else None, tool != 'initcheck')
    b = Buffer(device, 'f32', (4,))
    if tool in ('racecheck', 'synccheck'):
        kernel.prepare(a, b)
        text = program.ptx
        if tool == 'racecheck':
            changed = re.sub(r'(?m)^\s*bar(rier)?\.sync.*\n', '', text)
        else:
            changed = re.sub(r'(?m)^\s*(bar(rier)?\.sync.*\n)', r'\tmov.u32 %of, %tid.x;\n\tsetp.lt.u32 %some, %of, 16;\n\t@%some \1', text)
            changed = changed.replace('\t.reg .pred', '\t.reg .pred \t%some;\n\t.reg .b32 \t%of;\n\t.reg .pred')
        if changed == text:
            print('the kernel has no barrier')
            return 1
        kernel = next(iter(red.from_ptx(changed, device=device).kernels.values()))
    try:
        kernel(a, b)
        device.synchronize()
    except red.Error as error:
        print(f'the launch failed, as it may: {error}')
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seconds', type=int, default=60)
    parser.add_argument('--fault', choices=['memcheck', 'racecheck', 'initcheck', 'synccheck'])
    options = parser.parse_args()
    device = red.open('cuda:0')
    return fault(device, options.fault) if options.fault else sample(device, options.seconds)


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
"""The simulator's arithmetic beside a GPU's, bit for bit: every operation and conversion that it knows, over special values, random bits and NaN payloads.

    REDC=build/redc python3 tests/gpu/arithmetic.py              # on a machine with a GPU of sm_90 or newer; seconds
    REDC=build/redc python3 tests/gpu/arithmetic.py --only f64   # groups or instructions with this in their name
    REDC=build/redc python3 tests/gpu/arithmetic.py --simulate   # no GPU: whether the simulator takes each, and ptxas where it is found

A group is a kernel: a thread takes three words, does each instruction of the group once and stores what it gives. redc check runs it in the simulator, the
driver on the GPU. Results are equal in every bit, the NaN's too, but for the approximate instructions, which are right to the error that the manual gives
them: the largest one seen is printed with --verbose. Integer division by zero, which the manual leaves open, is not compared.
"""

import argparse
import array
import concurrent.futures
import ctypes
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'tests'))
import npyfile  # noqa: E402

COUNT, BLOCK = 4096, 256
MOST = 40  # instructions a kernel

COMPARE = '{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}'
ROUNDING = '{.rn,.rz,.rm,.rp}'
INTEGRAL = '{.rni,.rzi,.rmi,.rpi}'
# Groups by what their words hold: (instruction with alternatives in braces, registers of its sources, of its result, error allowed). h, w, d: 16, 32, 64
# bits; p: a predicate; 1: a source that is 1 or a predicate made of it. Errors: ('ulp', N), ('relative', X), ('absolute', X, largest argument) or
# ('either', X): absolute for results below 1, relative above. mad.hi.sat.s32 is left out: ptxas 13.0 makes 2^31 - 1 of -1 - 2^31.
GROUPS = {
    'f32': [
        ('{add,sub,mul}{,.rn,.rz,.rm,.rp}{,.ftz}{,.sat}.f32', 'ww', 'w'), (f'fma{ROUNDING}{{,.ftz}}{{,.sat}}.f32', 'www', 'w'),
        (f'div{ROUNDING}{{,.ftz}}.f32', 'ww', 'w'), (f'{{sqrt,rcp}}{ROUNDING}{{,.ftz}}.f32', 'w', 'w'),
        ('{min,max}{,.ftz}{,.NaN}{,.xorsign.abs}.f32', 'ww', 'w'), ('{abs,neg}{,.ftz}.f32', 'w', 'w'), ('copysign.f32', 'ww', 'w'),
        (f'setp.{COMPARE}{{,.ftz}}.f32', 'ww', 'p'), ('set.{eq,ltu,nan}{,.ftz}.{u32,s32,f32}.f32', 'ww', 'w'),
        ('testp.{finite,infinite,number,notanumber,normal,subnormal}.f32', 'w', 'p'), ('slct{,.ftz}.b32.f32', 'www', 'w'),
        (f'cvt{INTEGRAL}{{,.ftz}}{{,.sat}}.{{u8,s8,u16,s16,u32,s32}}.f32', 'w', 'w'), (f'cvt{INTEGRAL}{{,.ftz}}.{{u64,s64}}.f32', 'w', 'd'),
        (f'cvt{INTEGRAL}{{,.ftz}}{{,.sat}}.f32.f32', 'w', 'w'), ('cvt{,.ftz}{,.sat}.f32.f32', 'w', 'w'), ('cvt{,.ftz}.f64.f32', 'w', 'd'),
        ('cvt{.rn,.rz}{,.ftz}.f16.f32', 'w', 'h'), ('cvt{.rn,.rz}{,.relu}.{f16,bf16}.f32', 'w', 'h'), ('cvt{.rn,.rz}{,.relu}.{f16x2,bf16x2}.f32', 'ww', 'w'),
    ],
    'f32 approximate': [
        ('rcp.approx{,.ftz}.f32', 'w', 'w', ('ulp', 1)), ('sqrt.approx{,.ftz}.f32', 'w', 'w', ('ulp', 2)), ('rsqrt.approx{,.ftz}.f32', 'w', 'w', ('relative', 2**-22.4)),
        ('div.full{,.ftz}.f32', 'ww', 'w', ('ulp', 2, 2.0**126)), ('div.approx{,.ftz}.f32', 'ww', 'w', ('ulp', 2, 2.0**126)), ('ex2.approx{,.ftz}.f32', 'w', 'w', ('ulp', 2)),
        ('lg2.approx{,.ftz}.f32', 'w', 'w', ('either', 2**-21.5)), ('{sin,cos}.approx{,.ftz}.f32', 'w', 'w', ('absolute', 2**-20.5, 3.14)),
        ('tanh.approx.f32', 'w', 'w', ('relative', 2**-10.9)),
    ],
    'f64': [
        (f'{{add,sub,mul}}{{,.rn,.rz,.rm,.rp}}.f64', 'dd', 'd'), (f'fma{ROUNDING}.f64', 'ddd', 'd'), (f'div{ROUNDING}.f64', 'dd', 'd'),
        (f'{{sqrt,rcp}}{ROUNDING}.f64', 'd', 'd'), ('{min,max}.f64', 'dd', 'd'), ('{abs,neg}.f64', 'd', 'd'), ('copysign.f64', 'dd', 'd'),
        (f'setp.{COMPARE}.f64', 'dd', 'p'), ('testp.{finite,infinite,number,notanumber,normal,subnormal}.f64', 'd', 'p'),
        (f'cvt{INTEGRAL}{{,.sat}}.{{u8,s8,u16,s16,u32,s32}}.f64', 'd', 'w'), (f'cvt{INTEGRAL}.{{u64,s64}}.f64', 'd', 'd'), (f'cvt{INTEGRAL}.f64.f64', 'd', 'd'),
        (f'cvt{ROUNDING}{{,.ftz}}{{,.sat}}.f32.f64', 'd', 'w'), ('cvt.rn.{f16,bf16}.f64', 'd', 'h'),
    ],
    'f64 approximate': [('{rcp,rsqrt}.approx.ftz.f64', 'd', 'd', ('relative', 2**-19.0)), ('rsqrt.approx.f64', 'd', 'd', ('relative', 2**-50.0))],
    'f16': [
        ('{add,sub,mul}{,.rn}{,.ftz}{,.sat}.f16', 'hh', 'h'), ('{add,sub,mul}{,.rn}{,.ftz}{,.sat}.f16x2', 'ww', 'w'),
        ('fma.rn{,.ftz}{,.sat,.relu}.f16', 'hhh', 'h'), ('fma.rn{,.ftz}{,.sat,.relu}.f16x2', 'www', 'w'),
        ('{min,max}{,.ftz}{,.NaN}{,.xorsign.abs}.f16', 'hh', 'h'), ('{min,max}{,.ftz}{,.NaN}{,.xorsign.abs}.f16x2', 'ww', 'w'),
        ('{abs,neg}{,.ftz}.f16', 'h', 'h'), ('{abs,neg}{,.ftz}.f16x2', 'w', 'w'), (f'setp.{COMPARE}{{,.ftz}}.f16', 'hh', 'p'), ('set.{lt,equ}.{f16,u32}.f16', 'hh', '?'),
        (f'cvt{INTEGRAL}{{,.sat}}.{{u8,s8,u32,s32}}.f16', 'h', 'w'), (f'cvt{INTEGRAL}.{{u16,s16}}.f16', 'h', 'h'), (f'cvt{INTEGRAL}.{{u64,s64}}.f16', 'h', 'd'),
        (f'cvt{INTEGRAL}.f16.f16', 'h', 'h'), ('cvt{,.ftz}{,.sat}.f32.f16', 'h', 'w'), ('cvt.f64.f16', 'h', 'd'), ('cvt.rn.bf16.f16', 'h', 'h'),
    ],
    'f16 approximate': [('ex2.approx.f16', 'h', 'h', ('relative', 2**-9.9)), ('tanh.approx.f16', 'h', 'h', ('absolute', 2**-10.9, 65504.0))],
    'bf16': [
        ('{add,sub,mul}{,.rn}.bf16', 'hh', 'h'), ('{add,sub,mul}{,.rn}.bf16x2', 'ww', 'w'), ('fma.rn{,.relu}.bf16', 'hhh', 'h'), ('fma.rn{,.relu}.bf16x2', 'www', 'w'),
        ('{min,max}{,.NaN}{,.xorsign.abs}.bf16', 'hh', 'h'), ('{min,max}{,.NaN}{,.xorsign.abs}.bf16x2', 'ww', 'w'), ('{abs,neg}.bf16', 'h', 'h'),
        ('{abs,neg}.bf16x2', 'w', 'w'), (f'setp.{COMPARE}.bf16', 'hh', 'p'), (f'cvt{INTEGRAL}.{{u32,s32}}.bf16', 'h', 'w'), (f'cvt{INTEGRAL}.{{u64,s64}}.bf16', 'h', 'd'),
        (f'cvt{INTEGRAL}.bf16.bf16', 'h', 'h'), ('cvt.f32.bf16', 'h', 'w'), ('cvt.f64.bf16', 'h', 'd'), ('cvt.rn.f16.bf16', 'h', 'h'),
    ],
    'bf16 approximate': [('ex2.approx.ftz.bf16', 'h', 'h', ('relative', 2**-7.0)), ('tanh.approx.bf16', 'h', 'h', ('absolute', 2**-8.0, 3e38))],
    'i16': [
        ('{add,sub,min,max,div,rem,mul.lo,mul.hi}.{u16,s16}', 'hh', 'h'), ('mul.wide.{u16,s16}', 'hh', 'w'), ('mad.{lo,hi}.{u16,s16}', 'hhh', 'h'),
        ('mad.wide.{u16,s16}', 'hhw', 'w'), ('sad.{u16,s16}', 'hhh', 'h'), ('{abs,neg}.s16', 'h', 'h'), ('{and,or,xor}.b16', 'hh', 'h'), ('{not,cnot}.b16', 'h', 'h'),
        ('shl.b16', 'hw', 'h'), ('shr.{b16,u16,s16}', 'hw', 'h'), ('setp.{eq,ne,lt,le,gt,ge}.{u16,s16}', 'hh', 'p'),
        ('{add,min,max}.{u16x2,s16x2}', 'ww', 'w'), (f'cvt{{,.sat}}.{{u8,s8}}.{{u16,s16}}', 'h', 'w'), ('cvt{,.sat}.{u16,s16}.{u16,s16}', 'h', 'h'),
        (f'cvt{ROUNDING}.{{f16,bf16}}.{{u16,s16}}', 'h', 'h'), (f'cvt{ROUNDING}.f32.{{u8,s8,u16,s16}}', 'h', 'w'), ('cvt.rn.f64.{u8,s8,u16,s16}', 'h', 'd'),
    ],
    'i32': [
        ('{add,sub,min,max,div,rem,mul.lo,mul.hi}.{u32,s32}', 'ww', 'w'), ('{add,sub}.sat.s32', 'ww', 'w'), ('mul.wide.{u32,s32}', 'ww', 'd'),
        ('{mad.lo,mad.hi,sad}.{u32,s32}', 'www', 'w'), ('mad.wide.{u32,s32}', 'wwd', 'd'), ('mul24.{lo,hi}.{u32,s32}', 'ww', 'w'),
        ('mad24.{lo,hi}.{u32,s32}', 'www', 'w'), ('{abs,neg}.s32', 'w', 'w'), ('{and,or,xor}.b32', 'ww', 'w'), ('{not,cnot,brev,popc,clz}.b32', 'w', 'w'),
        ('{bfind,bfind.shiftamt}.{u32,s32}', 'w', 'w'), ('shl.b32', 'ww', 'w'), ('shr.{b32,u32,s32}', 'ww', 'w'), ('shf.{l,r}.{clamp,wrap}.b32', 'www', 'w'),
        ('bfe.{u32,s32}', 'www', 'w'), ('bfi.b32', 'wwww', 'w'), ('bmsk.{clamp,wrap}.b32', 'ww', 'w'), ('prmt.b32{,.f4e,.b4e,.rc8,.ecl,.ecr,.rc16}', 'www', 'w'),
        ('lop3.b32', 'wwwL', 'w'), ('dp4a.{u32,s32}.{u32,s32}', 'www', 'w'), ('dp2a.{lo,hi}.{u32,s32}.{u32,s32}', 'www', 'w'), ('slct.b32.s32', 'www', 'w'),
        ('setp.{eq,ne,lt,le,gt,ge}.{u32,s32}', 'ww', 'p'), ('{addc,subc}.{u32,s32}', 'ww', 'w'), ('madc.{lo,hi}.{u32,s32}', 'www', 'w'),
        ('cvt{,.sat}.{u8,s8,u16,s16,u32,s32}.{u32,s32}', 'w', 'w'), ('cvt.{u64,s64}.{u32,s32}', 'w', 'd'), (f'cvt{ROUNDING}.{{f16,bf16}}.{{u32,s32}}', 'w', 'h'),
        (f'cvt{ROUNDING}{{,.sat}}.f32.{{u32,s32}}', 'w', 'w'), ('cvt.rn.f64.{u32,s32}', 'w', 'd'),
    ],
    'i64': [
        ('{add,sub,min,max,div,rem,mul.lo,mul.hi}.{u64,s64}', 'dd', 'd'), ('{mad.lo,mad.hi,sad}.{u64,s64}', 'ddd', 'd'), ('{abs,neg}.s64', 'd', 'd'),
        ('{and,or,xor}.b64', 'dd', 'd'), ('{not,cnot,brev}.b64', 'd', 'd'), ('{popc,clz}.b64', 'd', 'w'), ('{bfind,bfind.shiftamt}.{u64,s64}', 'd', 'w'),
        ('shl.b64', 'dw', 'd'), ('shr.{b64,u64,s64}', 'dw', 'd'), ('bfe.{u64,s64}', 'dww', 'd'), ('bfi.b64', 'ddww', 'd'), ('setp.{eq,ne,lt,le,gt,ge}.{u64,s64}', 'dd', 'p'),
        ('{addc,subc}.{u64,s64}', 'dd', 'd'), ('madc.{lo,hi}.{u64,s64}', 'ddd', 'd'), ('cvt{,.sat}.{u8,s8,u16,s16,u32,s32}.{u64,s64}', 'd', 'w'),
        ('cvt{,.sat}.{u64,s64}.{u64,s64}', 'd', 'd'), (f'cvt{ROUNDING}.{{f16,bf16}}.{{u64,s64}}', 'd', 'h'), (f'cvt{ROUNDING}.f32.{{u64,s64}}', 'd', 'w'),
        (f'cvt{ROUNDING}.f64.{{u64,s64}}', 'd', 'd'),
    ],
}
TABLES = (0x00, 0x80, 0x96, 0xe8, 0xca, 0x1b, 0xfe, 0xff)
FLOATS = {'f16': (10, 5), 'bf16': (7, 8), 'f32': (23, 8), 'f64': (52, 11)}


def expand(text):
    """Every choice of the alternatives in braces."""
    m = re.search(r'\{([^{}]*)\}', text)
    if not m:
        return [text]
    return [done for choice in m[1].split(',') for done in expand(text[:m.start()] + choice + text[m.end():])]


class Instruction:
    """One, with the text that carries it out in registers of its own."""

    def __init__(self, name, sources, result, error=None, table=None):
        if result == '?':
            result = 'h' if '.f16.f16' in name else 'w'
        self.name, self.sources, self.result, self.error, self.table = name, sources, result, error, table

    def text(self, number):
        names = [f'%{width}{place}' for width, place in zip(self.sources, 'abcb') if width != 'L']
        if self.table is not None:
            names.append(str(self.table))
        result = f'%{self.result}r'
        lines = [f'{self.name} {result}, {", ".join(names)};']
        carry = re.match(r'(add|sub|mad)c(.*)', self.name)
        if carry:  # a carry goes in, and one comes out that the result has in its place
            width = self.name[-2:]
            lines = [f'{"sub" if carry[1] == "sub" else "add"}.cc.u{width} {result}, {names[-1]}, {names[0]};', f'{carry[1]}c{carry[2]} {result}, {", ".join(names)};']
            if carry[1] != 'mad':
                lines[1] = lines[1].replace('c.', 'c.cc.', 1)
                lines.append(f'{carry[1]}c.u{width} {result}, {result}, 0;')
        if self.result == 'p':
            lines.append('selp.u64 %dr, 1, 0, %pr;')
        elif self.result != 'd':
            lines.append(f'cvt.u64.u{16 if self.result == "h" else 32} %dr, {result};')
        return '\n'.join('  ' + line for line in [*lines, f'st.global.b64 [%out+{8 * COUNT * number}], %dr;'])


def instructions(rows):
    for pattern, sources, result, *error in rows:
        for name in expand(pattern):
            if re.fullmatch(r'cvt\.sat\.([us]\d+)\.\1', name):  # there is none
                continue
            for table in TABLES if 'L' in sources else (None,):
                yield Instruction(name, sources, result, error[0] if error else None, table)


def kernel(parts):
    text = ['.version 8.0', '.target sm_90', '.address_size 64', '.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 o)', f'.reqntid {BLOCK}, 1, 1', '{',
            '  .reg .b16 %ha, %hb, %hc, %hr;', '  .reg .b32 %wa, %wb, %wc, %wr, %x, %y;', '  .reg .b64 %da, %db, %dc, %dr, %at, %out, %p;', '  .reg .pred %pr;',
            '  mov.u32 %x, %ctaid.x;', '  mov.u32 %y, %tid.x;', f'  mad.lo.u32 %x, %x, {BLOCK}, %y;', '  mul.wide.u32 %at, %x, 8;']
    for place in 'abc':
        text += [f'  ld.param.u64 %p, [{place}];', '  add.u64 %p, %p, %at;', f'  ld.global.b64 %d{place}, [%p];', f'  cvt.u32.u64 %w{place}, %d{place};', f'  cvt.u16.u64 %h{place}, %d{place};']
    text += ['  ld.param.u64 %out, [o];', '  add.u64 %out, %out, %at;']
    return '\n'.join(text + [part.text(number) for number, part in enumerate(parts)] + ['  ret;', '}', ''])


# ---- Words


def special_floats(fraction, exponent):
    """Zeros, denormals, the normal range's ends, halves, powers at the edges of the integers, infinities and NaNs of both kinds."""
    top, one = (1 << exponent) - 1, 1 << fraction
    bias = top >> 1
    words = [0, 1, 2, one - 1, one // 2, one, one + 1, top * one - 1, top * one - one, top * one, top * one + 1, top * one + one // 2, top * one + one // 2 + 5, top * one + one - 1]
    for power in (-24, -14, -2, -1, 0, 1, 7, 8, 15, 16, 23, 24, 31, 32, 52, 63, 64, 100):
        if 0 < bias + power < top:
            words += [(bias + power) * one, (bias + power) * one + 1, (bias + power) * one - 1, (bias + power) * one + one // 2]
    return words + [w | 1 << fraction + exponent for w in words]


def special_integers(bits):
    words = {0, 1, 2, 3, 5, 7, 10, 31, 32, 33, 63, 64, 65, 255, 256, 1 << bits - 1}
    for k in range(bits):
        words |= {1 << k, (1 << k) - 1, (1 << bits) - (1 << k)}
    return sorted(w % (1 << bits) for w in words)


def words_of(kind, rng):
    """Three columns of COUNT words of 64 bits: specials with specials, then random ones, in which narrow types have several values a word."""
    bits = {'f16': 16, 'bf16': 16, 'i16': 16, 'f32': 32, 'i32': 32, 'f64': 64, 'i64': 64}[kind]
    specials = special_floats(*FLOATS[kind]) if kind in FLOATS else special_integers(bits)

    def random_word(near):
        if kind not in FLOATS:
            return rng.getrandbits(bits) >> rng.randrange(bits) if rng.random() < 0.7 else (1 << bits) - 1 - (rng.getrandbits(bits) >> rng.randrange(bits))
        fraction, exponent = FLOATS[kind]
        power = near + rng.randrange(-3, 4) if rng.random() < 0.7 else rng.getrandbits(exponent)
        power = min(max(power, 0), (1 << exponent) - 1)
        return rng.getrandbits(1) << fraction + exponent | power << fraction | rng.getrandbits(fraction)

    def one(number):
        if number < COUNT // 2:
            return tuple(rng.choice(specials) for _ in range(3))
        if kind in FLOATS and number % 4 == 0:  # products about the least normal number
            exponent = FLOATS[kind][1]
            bias = (1 << exponent - 1) - 1
            left = rng.randrange(1, bias)
            return random_word(left), random_word(max(1, bias - left)), rng.choice(specials)
        near = rng.getrandbits(FLOATS[kind][1]) if kind in FLOATS else 0
        return random_word(near), random_word(near), random_word(near)

    columns = ([], [], [])
    for number in range(COUNT):
        rows = [one(number) for _ in range(64 // bits)]
        for place, column in enumerate(columns):
            column.append(sum(row[place] << bits * k for k, row in enumerate(rows)))
    return columns


# ---- The two machines


def simulate(redc, folder, name, parts):
    """The results of a kernel in the simulator, as bytes; raises where it finds something."""
    path = f'{folder}/{name}.ptx'
    out = f'{folder}/{name}.npy'
    kind = name.split()[0]
    arguments = [a for column in 'abc' for a in ('--arg', f'u64=@{folder}/{kind}.{column}.npy')]
    done = subprocess.run([redc, 'check', path, '--grid', str(COUNT // BLOCK), '--jobs=1', *arguments, '--arg', f'u64[{len(parts) * COUNT}]=const(0)', '--out', f'3={out}'],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f'{name}: {done.stdout.strip()[:600]}')
    with open(out, 'rb') as f:
        return f.read()[-8 * COUNT * len(parts):]


class Gpu:
    def __init__(self):
        self.cuda = ctypes.CDLL(os.environ.get('RED_LIBCUDA', 'libcuda.so.1'))
        self.context = ctypes.c_void_p()
        device = ctypes.c_int()
        self.call('cuInit', 0)
        self.call('cuDeviceGet', ctypes.byref(device), 0)
        major = ctypes.c_int()
        self.call('cuDeviceGetAttribute', ctypes.byref(major), 75, device)
        if major.value < 9:
            raise OSError('the GPU is older than sm_90')
        self.call('cuDevicePrimaryCtxRetain', ctypes.byref(self.context), device)

    def call(self, name, *args):
        error = getattr(self.cuda, name)(*args)
        if error:
            raise RuntimeError(f'{name}: error {error}')

    def load(self, text):
        """A kernel's function; from any thread."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call('cuCtxSetCurrent', self.context)
        self.call('cuModuleLoadDataEx', ctypes.byref(module), ctypes.c_char_p(text.encode()), 0, None, None)
        self.call('cuModuleGetFunction', ctypes.byref(function), module, b'k')
        return function

    def run(self, function, columns, results):
        self.call('cuCtxSetCurrent', self.context)
        pointers = [ctypes.c_uint64() for _ in range(4)]
        for pointer, data in zip(pointers, [*columns, bytes(8 * COUNT * results)]):
            self.call('cuMemAlloc_v2', ctypes.byref(pointer), ctypes.c_size_t(len(data)))
            self.call('cuMemcpyHtoD_v2', pointer, ctypes.c_char_p(data), ctypes.c_size_t(len(data)))
        arguments = (ctypes.c_void_p * 4)(*[ctypes.addressof(p) for p in pointers])
        self.call('cuLaunchKernel', function, COUNT // BLOCK, 1, 1, BLOCK, 1, 1, 0, None, arguments, None)
        out = ctypes.create_string_buffer(8 * COUNT * results)
        self.call('cuMemcpyDtoH_v2', out, pointers[3], ctypes.c_size_t(len(out)))
        for pointer in pointers:
            self.call('cuMemFree_v2', pointer)
        return out.raw


# ---- Comparing


def value_of(word, kind):
    """The number of a word of a format."""
    if kind == 'f64':
        return struct.unpack('<d', struct.pack('<Q', word))[0]
    if kind == 'f32':
        return struct.unpack('<f', struct.pack('<I', word & 0xffffffff))[0]
    if kind == 'bf16':
        return struct.unpack('<f', struct.pack('<I', (word & 0xffff) << 16))[0]
    return struct.unpack('<e', struct.pack('<H', word & 0xffff))[0]


def ordered(word, kind):
    """Words in the order of their numbers, neighbours one apart."""
    fraction, exponent = FLOATS[kind]
    sign = 1 << fraction + exponent
    word &= 2 * sign - 1
    return sign - word if word & sign else word


def is_open(instruction, operands):
    """Whether the manual leaves the result open."""
    name = instruction.name
    if re.match(r'(div|rem)\.[us]', name):
        return operands[1] % (1 << int(name[-2:])) == 0
    if re.match(r'bf[ei]\.[usb]64', name):  # places and lengths are at most 255
        return any(word % 2**32 > 255 for word in operands[1:])
    if re.match(r'(add|sub|mul|div|fma)\b.*f64', name):  # which of several NaNs it is
        return sum(value_of(word, 'f64') != value_of(word, 'f64') for word in operands[:len(instruction.sources)]) > 1
    return False


def error_of(instruction, kind, operands, ours, theirs):
    """How far apart two results of an approximate instruction are, in parts of what is allowed; None where nothing is said."""
    what, allowed, *largest = instruction.error
    x, y = value_of(ours, kind), value_of(theirs, kind)
    if largest and not abs(value_of(operands[1 if 'div' in instruction.name else 0], kind)) <= largest[0]:
        return None
    if x != x or y != y:
        return 0.0 if ours == theirs else float('inf')
    if what == 'either':
        return abs(x - y) / (allowed * max(1.0, abs(x))) if x != y else 0.0
    if what == 'ulp':
        return abs(ordered(ours, kind) - ordered(theirs, kind)) / allowed
    if x == y:
        return 0.0
    if abs(x) == float('inf') or abs(y) == float('inf'):
        return float('inf')
    least = 2.0**(2 - 2**(FLOATS[kind][1] - 1))  # the least normal number: denormals have fewer bits
    return abs(x - y) / (allowed if what == 'absolute' else allowed * max(abs(x), least))


def kind_of_difference(ours, theirs, result):
    """nan, zero or value: what differs, for the reader."""
    kind = result if result in FLOATS else None
    if kind:
        x, y = value_of(ours, kind), value_of(theirs, kind)
        if x != x and y != y:
            return 'NaN'
        if x == y == 0:
            return 'zero'
    return 'value'


def result_format(instruction):
    types = re.findall(r'\.(f16x2|bf16x2|f16|bf16|f32|f64|[usb]\d+(?:x2)?)', instruction.name)
    return types[0] if types and instruction.result != 'p' else None


def compare(kind, instruction, columns, ours, theirs):
    """(differences, lines about them, the largest error)."""
    count, worst, shown = 0, 0.0, {}
    for number, (x, y) in enumerate(zip(ours, theirs)):
        if x == y:
            continue
        operands = [column[number] for column in columns]
        if instruction.error:
            error = error_of(instruction, kind, operands, x, y)
            if error is not None:
                worst = max(worst, error)
            if error is None or error <= 1:
                continue
        elif is_open(instruction, operands):
            continue
        count += 1
        key = kind_of_difference(x, y, result_format(instruction))
        shown.setdefault(key, [0, operands, x, y])[0] += 1
    width = {'h': 4, 'w': 8, 'd': 16}
    lines = []
    for key, (times, operands, x, y) in shown.items():
        given = ' '.join(f'{operand % (1 << 4 * width[w]):0{width[w]}x}' for operand, w in zip([*operands, operands[1]], instruction.sources) if w in width)
        digits = width.get(instruction.result, 1)
        lines.append(f'    {key} {times} times, such as {given}: simulator {x:0{digits}x}, GPU {y:0{digits}x}')
    return count, lines, worst


def pieces(only):
    """(name of the kernel, kind of its words, instructions)."""
    for group, rows in GROUPS.items():
        every = [i for i in instructions(rows) if not only or only in group or only in i.name]
        for start in range(0, len(every), MOST):
            yield f'{group} {start // MOST}', group.split()[0], every[start:start + MOST]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--redc', default=os.environ.get('REDC', os.path.join(ROOT, 'build', 'redc')))
    p.add_argument('--only', default='')
    p.add_argument('--simulate', action='store_true')
    p.add_argument('--verbose', action='store_true')
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--jobs', type=int, default=min(8, os.cpu_count()))
    a = p.parse_args()
    gpu = None
    if not a.simulate:
        try:
            gpu = Gpu()
        except OSError as error:
            print(f'skipped: no GPU here: {error}')
            return 77
    every = list(pieces(a.only))
    passed = failed = 0
    ptxas = shutil.which('ptxas') or shutil.which('ptxas', path='/usr/local/cuda/bin')
    with tempfile.TemporaryDirectory(prefix='red-arithmetic-') as folder, concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        columns = {}
        for kind in {kind for _, kind, _ in every}:
            columns[kind] = words_of(kind, random.Random(f'{a.seed} {kind}'))
            for letter, column in zip('abc', columns[kind]):
                npyfile.write(f'{folder}/{kind}.{letter}.npy', '<u8', [COUNT], column)
        for name, _, parts in every:
            with open(f'{folder}/{name}.ptx', 'w', encoding='utf-8') as f:
                f.write(kernel(parts))
        loading = [pool.submit(gpu.load, kernel(parts)) for _, _, parts in every] if gpu else []
        simulating = [pool.submit(simulate, a.redc, folder, name, parts) for name, _, parts in every]
        for number, (name, kind, parts) in enumerate(every):
            try:
                ours = simulating[number].result()
                if gpu:
                    theirs = gpu.run(loading[number].result(), [struct.pack(f'<{COUNT}Q', *column) for column in columns[kind]], len(parts))
                elif ptxas:
                    subprocess.run([ptxas, '-arch=sm_90', f'{folder}/{name}.ptx', '-o', f'{folder}/{name}.cubin'], check=True)
            except (RuntimeError, subprocess.CalledProcessError) as error:
                print(f'FAILED {error}')
                failed += len(parts)
                continue
            if not gpu:
                passed += len(parts)
                continue
            for place, instruction in enumerate(parts):
                span = slice(8 * COUNT * place, 8 * COUNT * (place + 1))
                x, y = array.array('Q', ours[span]), array.array('Q', theirs[span])
                count, lines, worst = compare(kind, instruction, columns[kind], x, y) if x != y else (0, [], 0.0)
                passed, failed = passed + (count == 0), failed + (count != 0)
                if count:
                    table = '' if instruction.table is None else f' {instruction.table:#x}'
                    print('\n'.join([f'FAILED {instruction.name}{table}: {count} of {COUNT} results', *lines]))
                elif a.verbose and instruction.error:
                    print(f'{instruction.name}: at most {worst:.2f} of the error allowed')
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())

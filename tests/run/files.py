#!/usr/bin/env python3
"""redc run and files: .npy in and out, shapes from files, outputs whole or absent, and refusals that name both sides."""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ['RED_SOURCE_DIR'], 'tests'))
import npyfile  # noqa: E402

REDC = os.environ['REDC']
ROWSUM = 'kernel rowsum(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }'
COPY = 'kernel copy<T>(A: T[n]) -> (B: T[n]) { for i in n { B[i] = A[i]; } }'
failures = []


def redc(*args):
    return subprocess.run([REDC, 'run', *args], capture_output=True, text=True, timeout=120)


def expect(name, condition, detail=''):
    if not condition:
        failures.append(f'{name}: {detail}')


def program(text):
    with open('p.red', 'w', encoding='utf-8') as f:
        f.write(text)
    return 'p.red'


def shape_comes_from_the_file():
    for version, fortran, descr in [(1, False, '<f4'), (2, True, '<f4'), (3, False, '>f4')]:
        rows = [[10 * i + j for j in range(5)] for i in range(3)]
        flat = [rows[i][j] for j in range(5) for i in range(3)] if fortran else [x for row in rows for x in row]
        npyfile.write('a.npy', descr, (3, 5), flat, fortran, version)
        done = redc(program(ROWSUM), '--arg', 'A=a.npy', '--out', 'B=b.npy', '--check')
        expect('shape', done.returncode == 0, done.stderr)
        expect('shape', npyfile.read('b.npy') == ('<f4', (3,), [float(sum(row)) for row in rows]), (version, fortran, descr))
        os.remove('b.npy')


def every_type_passes_through():
    values = {'b1': [True, False, True], 'i1': [-128, 0, 127], 'i2': [-5, 6, 32767], 'i4': [-2**31, 1, 2], 'i8': [-2**63, 1, 2**63 - 1],
              'u1': [0, 1, 255], 'u2': [0, 1, 65535], 'u4': [0, 1, 2**32 - 1], 'u8': [0, 1, 2**64 - 1], 'f2': [0.5, -1.0, 65504.0],
              'f4': [0.25, -0.0, 2.0**100], 'f8': [0.1, 1e-300, -3.0]}
    names = {'b1': 'bool', 'i1': 'i8', 'i2': 'i16', 'i4': 'i32', 'i8': 'i64', 'u1': 'u8', 'u2': 'u16', 'u4': 'u32', 'u8': 'u64', 'f2': 'f16',
             'f4': 'f32', 'f8': 'f64'}
    for kind, name in names.items():
        descr = ('|' if kind[1] == '1' else '<') + kind
        npyfile.write('a.npy', descr, (3,), values[kind])
        done = redc(program(COPY), '-D', f'T={name}', '--arg', 'A=a.npy', '--out', 'B=b.npy', '--check')
        expect(name, done.returncode == 0, done.stderr)
        expect(name, npyfile.read('b.npy') == (descr, (3,), values[kind]), name)
        with open('a.npy', 'rb') as a, open('b.npy', 'rb') as b:
            expect(name, a.read()[-3:] == b.read()[-3:], name)


def bits_of_types_that_numpy_lacks():
    npyfile.write('a.npy', '<u2', (2,), [0x3f80, 0x7fc1])
    done = redc(program(COPY), '-D', 'T=bf16', '--arg', 'A=a.npy')
    expect('bf16', done.returncode == 1 and "note: where they are the bits of a bf16, say A=bf16@a.npy" in done.stderr, done.stderr)
    expect('bf16', 'a.npy has elements of type uint16, the kernel\'s are bf16' in done.stderr, done.stderr)
    done = redc(program(COPY), '-D', 'T=bf16', '--arg', 'A=bf16@a.npy', '--out', 'B=b.npy', '--print', 'B', '--check')
    expect('bf16', done.returncode == 0 and done.stdout == '[ 1. nan]\n', done.stdout + done.stderr)
    expect('bf16', npyfile.read('b.npy') == ('<u2', (2,), [0x3f80, 0x7fc1]))
    npyfile.write('a.npy', '|u1', (2,), [1, 254])
    done = redc(program(COPY), '-D', 'T=f8e5m2', '--arg', 'A=f8e5m2@a.npy', '--print', 'B', '--check')
    expect('f8', done.returncode == 0 and done.stdout == '[0x01 0xfe]\n', done.stdout + done.stderr)


def both_sides_are_named():
    npyfile.write('a.npy', '<f8', (3, 5), range(15))
    done = redc(program(ROWSUM), '--arg', 'A=a.npy')
    expect('type', done.returncode == 1 and "a.npy has elements of type float64, the kernel's are f32" in done.stderr, done.stderr)
    npyfile.write('a.npy', '<f4', (3, 5), range(15))
    done = redc(program(ROWSUM), '--arg', 'A=a.npy', '--size', 'm=4')
    expect('shape', done.returncode == 1 and 'a.npy has shape (3, 5), the kernel needs (3, 4)' in done.stderr, done.stderr)
    npyfile.write('a.npy', '<f4', (15,), range(15))
    done = redc(program(ROWSUM), '--arg', 'A=a.npy')
    expect('rank', done.returncode == 1 and "a.npy has shape (15,), the kernel's tensor has rank 2" in done.stderr, done.stderr)
    with open('a.npy', 'r+b') as f:
        f.truncate(150)
    done = redc(program(ROWSUM), '--arg', 'A=a.npy')
    expect('cut', done.returncode == 1 and 'a.npy: the file is cut off: 38 bytes of elements are missing' in done.stderr, done.stderr)


def outputs_are_whole_or_absent():
    program(ROWSUM)
    done = redc('p.red', '--size', 'n=2', '--size', 'm=3', '--arg', 'A=iota', '--out', 'B=missing/b.npy')
    expect('folder', done.returncode == 1 and 'missing/b.npy' in done.stderr, done.stderr)
    with open('b.npy', 'w', encoding='utf-8') as f:
        f.write('old')
    done = redc('p.red', '--size', 'n=2', '--size', 'm=3', '--arg', 'A=iota + q', '--out', 'B=b.npy')
    with open('b.npy', encoding='utf-8') as f:
        expect('old output', done.returncode == 1 and f.read() == 'old', done.stderr)
    done = redc('p.red', '--size', 'n=2', '--size', 'm=3', '--arg', 'A=iota@strides:4:1', '--out', 'B=b.npy')
    with open('b.npy', encoding='utf-8') as f:
        expect('old output', done.returncode == 1 and f.read() == 'old', done.stderr)
    expect('no leftovers', sorted(os.listdir('.')) == ['a.npy', 'b.npy', 'p.red'], os.listdir('.'))


def program_from_standard_input():
    done = subprocess.run([REDC, 'run', '-', '--size', 'n=2', '--size', 'm=3', '--arg', 'A=iota', '--print', 'B', '--check'], input=ROWSUM,
                          capture_output=True, text=True, timeout=60)
    expect('stdin', done.returncode == 0 and done.stdout == '[ 3. 12.]\n', done.stderr)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for test in (shape_comes_from_the_file, every_type_passes_through, bits_of_types_that_numpy_lacks, both_sides_are_named,
                     outputs_are_whole_or_absent, program_from_standard_input):
            test()
        os.chdir('/')
    print('\n'.join(failures))
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
"""Kernels that redc lift makes agree with the functions that they are made of.

    lift.py [--redc PATH] [--only TEXT]

Each file of tests/lift is compiled for the host and lifted. Its head says how the function is called and for which sizes; the arrays are
random. The kernel runs in the simulator, which finds every faulty access. Without a `tolerance` line the results are the same bit
for bit, since C's order of float additions is kept; with --reassociate, and where a file gives a tolerance, they agree within it.

    // call: NAME(n, A: f32[n, m], eps: f32, ...)   arguments in C's order; without a type an int that is a size
    // sizes: n=3 m=4; n=1 m=0                      one run each
    // values: nan few                              NaN among the floats; few different values
    // tolerance: 1e-5

The programs of docs/lift.md are lifted too.
"""

import argparse
import concurrent.futures
import ctypes
import glob
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

import npyfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CTYPES = {'i8': ctypes.c_int8, 'i16': ctypes.c_int16, 'i32': ctypes.c_int32, 'i64': ctypes.c_int64, 'u8': ctypes.c_uint8,
          'u16': ctypes.c_uint16, 'u32': ctypes.c_uint32, 'u64': ctypes.c_uint64, 'f32': ctypes.c_float, 'f64': ctypes.c_double}
REASSOCIATED = 1e-4


class Host:
    """What the head of a file says."""

    def __init__(self, path):
        self.path = path
        with open(path, encoding='utf-8') as f:
            text = f.read()
        head = dict(re.findall(r'^// (call|sizes|values|tolerance): (.*)$', text, flags=re.M))
        self.name, arguments = re.fullmatch(r'(\w+)\((.*)\)', head['call']).groups()
        self.arguments = []  # (name, type or None, [dimension] or None)
        for one in re.findall(r'[^,\[\]]+(?:\[[^\]]*\])?', arguments):
            m = re.fullmatch(r'\s*(\w+)(?:: (\w+)(?:\[(.*)\])?)?', one)
            self.arguments.append((m[1], m[2], [d.strip() for d in m[3].split(',')] if m[3] else None))
        self.sizes = [{k: int(v) for k, v in re.findall(r'(\w+)=(\d+)', run)} for run in head['sizes'].split(';')]
        self.values = head.get('values', '').split()
        self.tolerance = float(head.get('tolerance', 0))


def random_values(host, kind, count, draw):
    few = 'few' in host.values
    if kind[0] == 'f':
        values = [draw.randint(-2, 2) / 2 if few else draw.uniform(-1, 1) for _ in range(count)]
        if 'nan' in host.values:
            values = [math.nan if draw.random() < 0.15 else v for v in values]
        return values
    lo = 0 if kind[0] == 'u' else -100
    return [draw.randint(lo // 30, 5) if few else draw.randint(lo, 255 if kind[0] == 'u' else 100) for _ in range(count)]


def differs(got, want, tolerance):
    if math.isnan(want) or math.isnan(got):
        return math.isnan(want) != math.isnan(got)
    if got == want:
        return False
    return tolerance == 0 or abs(got - want) > tolerance * max(1.0, abs(want))


def run_once(host, redc, program, function, sizes, folder, draw, tolerance):
    """Runs one call on the host and in the simulator; the complaint, or None."""
    line = [redc, 'run', program, '--device=sim', '--kernel', host.name, '--fp-contract=off']
    line += [f'--size={k}={v}' for k, v in sizes.items()]
    values, arrays, call = [], {}, []
    with open(program, encoding='utf-8') as f:
        head = re.search(r'^kernel .*$', f.read(), flags=re.M)[0]
    used = set(re.findall(r'(\w+): ', head))
    line = [a for a in line if not a.startswith('--size=') or re.search(rf'\b{a[7:].split("=")[0]}\b', head)]
    for name, kind, dims in host.arguments:
        if dims is None and name in sizes:
            call.append(CTYPES[kind or 'i32'](sizes[name]))
            continue
        if dims is None:
            value = random_values(host, kind, 1, draw)[0]
            value = CTYPES[kind](value if not math.isnan(value) else 0.5)
            call.append(value)
            line.append(f'--arg={name}={value.value!r}')
            continue
        shape = [eval(d, {}, sizes) for d in dims]  # pylint: disable=eval-used
        count = math.prod(shape)
        values = random_values(host, kind, count, draw)
        array = (CTYPES[kind] * max(count, 1))(*values)
        path = os.path.join(folder, f'{name}.npy')
        npyfile.write(path, f'<{kind[0]}{int(kind[1:]) // 8}', shape, list(array)[:count])
        arrays[name] = (array, path + '.out', count)
        call.append(array)
        if name in used:
            line += [f'--arg={name}={path}', f'--out={name}={path}.out']
    function(*call)
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        return f'{" ".join(line)}\n{done.stderr}'
    for name, (array, path, count) in arrays.items():
        if not os.path.exists(path):
            continue
        _, _, got = npyfile.read(path)
        for i in range(count):
            if differs(got[i], array[i], tolerance):
                return f'{name}[{i}] is {got[i]!r}, and {array[i]!r} in C, for {sizes}'
        os.unlink(path)
    return None


def test_file(path, redc):
    """[complaint or None], one a run."""
    host, found = Host(path), []
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, 'host.so')
        compiler = 'g++' if path.endswith('.cpp') else 'gcc'
        subprocess.run([compiler, '-O1', '-ffp-contract=off', '-shared', '-fPIC', '-w', f'-I{ROOT}/runtime', path, '-o', library, '-lm'], check=True)
        function = getattr(ctypes.CDLL(library), host.name)
        function.restype = None
        for extra in ([], ['--reassociate']):
            program = os.path.join(folder, f'lifted{len(extra)}.red')
            done = subprocess.run([redc, 'lift', path, '-o', program] + extra, capture_output=True, text=True, check=False)
            if done.returncode:
                found.append(done.stderr)
                continue
            draw = random.Random(os.path.basename(path) + str(extra))
            tolerance = max(host.tolerance, REASSOCIATED if extra else 0)
            for sizes in host.sizes:
                found.append(run_once(host, redc, program, function, sizes, folder, draw, tolerance))
    return found


def test_database(redc):
    """Arguments of compile_commands.json, of a folder above: [complaint or None]."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ('include', 'source', 'build'):
            os.mkdir(os.path.join(folder, name))
        with open(os.path.join(folder, 'include', 'width.h'), 'w', encoding='utf-8') as f:
            f.write('#include <red_kernel.h>\n#define WIDTH (2 * HALF)\n')
        with open(os.path.join(folder, 'source', 'k.c'), 'w', encoding='utf-8') as f:
            f.write('#include "width.h"\nRED_KERNEL void k(const float A[WIDTH], float B[WIDTH]) {\n'
                    '  for (int i = 0; i < WIDTH; i++) B[i] = A[i];\n}\n')
        commands = [{'directory': os.path.join(folder, 'build'), 'file': '../source/k.c',
                     'command': 'cc -O2 -DHALF=21 -I../include -Wall -MD -MF k.d -o k.o -c ../source/k.c'}]
        with open(os.path.join(folder, 'build', 'compile_commands.json'), 'w', encoding='utf-8') as f:
            json.dump(commands, f)
        found = []
        for arguments, wants in ((['-p', 'build'], True), ([], False), (['--', '-DHALF=21', '-Iinclude'], True)):
            done = subprocess.run([redc, 'lift', 'source/k.c'] + arguments, cwd=folder, capture_output=True, text=True, check=False)
            is_right = (done.returncode == 0 and 'A: f32[42]' in done.stdout) if wants else done.returncode == 1
            found.append(None if is_right else f'{arguments}: {done.stdout}{done.stderr}')
        return found


def test_document(redc):
    """The programs of docs/lift.md: lifted, with the text that follows, or refused: [complaint or None]."""
    with open(os.path.join(ROOT, 'docs', 'lift.md'), encoding='utf-8') as f:
        text = f.read()
    found = []
    for refused, source, want in re.findall(r'^```c( refused)?\n(.*?)^```\n(?:```red\n(.*?)^```\n)?', text, flags=re.M | re.S):
        done = subprocess.run([redc, 'lift', '-'], input='#include <red_kernel.h>\n' + source, capture_output=True, text=True, check=False)
        got = re.sub(r'^ *//.*\n', '', done.stdout, flags=re.M)
        is_right = done.returncode == 1 if refused else done.returncode == 0 and (not want or got == want)
        found.append(None if is_right else f'{source}{got}{done.stderr}')
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--redc', default=os.path.join(ROOT, 'build', 'redc'))
    parser.add_argument('--only', default='')
    parser.add_argument('-j', '--jobs', type=int, default=os.cpu_count())
    options = parser.parse_args()
    options.redc = os.path.abspath(options.redc)
    if not os.path.exists(os.path.join(os.path.dirname(options.redc), 'redc-clang')):
        print('skipped: redc-clang was not built (Clang was not found)')
        return 77
    if not shutil.which('gcc') or not shutil.which('g++'):
        print('skipped: no gcc')
        return 77
    files = sorted(f for f in glob.glob(os.path.join(ROOT, 'tests', 'lift', '*.c*')) if options.only in f)
    good = bad = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = list(zip(files, pool.map(lambda f: test_file(f, options.redc), files)))
        results.append(('compile_commands.json', test_database(options.redc)))
        results.append(('docs/lift.md', test_document(options.redc)))
        for path, found in results:
            for complaint in found:
                good, bad = good + (complaint is None), bad + (complaint is not None)
                if complaint:
                    print(f'FAILED: {os.path.basename(path)}: {complaint}')
    print(f'{good} passed, {bad} failed')
    return 1 if bad or not good else 0


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
"""Compiles random kernels under random schedules: each must give code that verifies after every pass, and that ptxas takes where it is
found, or an error of the user's. An internal error, a crash, a sanitizer's report or a hang is a failure.

    python3 tests/sweep_compile.py --redc build/redc [--count N] [--seed N] [--keep DIR] [--ptxas PART]

Case number K of seed S is the same everywhere; a failure prints its number, the command, the program and what redc said.
"""

import argparse
import concurrent.futures
import os
import random
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TIMEOUT = 120  # seconds; sanitizers take most of a minute for the largest
EXTENTS = [1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 19, 31, 32, 33, 40, 48, 56, 64, 72, 90, 96, 100, 128, 192, 255, 256, 300, 512, 1000, 1024]
INTEGERS = ['i8', 'i16', 'i32', 'i64', 'u8', 'u16', 'u32', 'u64']
FLOATS = ['f16', 'bf16', 'f32', 'f64']
REDUCERS = {'sum': INTEGERS + FLOATS, 'prod': INTEGERS + FLOATS, 'min': INTEGERS + FLOATS, 'max': INTEGERS + FLOATS, 'fmin': FLOATS,
            'fmax': FLOATS, 'any': ['bool'], 'all': ['bool'], 'and': INTEGERS, 'or': INTEGERS, 'xor': INTEGERS}
USER = '''reducer spread(lo: f32, hi: f32) {
  identity (1000.0, -1000.0);
  combine(a, b) { (fmin(a.lo, b.lo), fmax(a.hi, b.hi)) }
}
reducer count(n: i32) { identity (0); combine(a, b) { a + b } update(s, x) { s + (x > 0 ? 1 : 0) } }
ordered reducer affine(a: u32, b: u32) { identity (1, 0); combine(f, g) { (f.a * g.a, f.b * g.a + g.b) } }
'''


class Case:
    """One program: the kernel's text, its axes by nest, and the schedule's directives as they grow."""

    def __init__(self, seed, number):
        self.random = random.Random(f'{seed}/{number}')
        self.defines = {}
        self.directives = []
        self.is_fold = False
        self.fresh = 0
        self.places = []

    def pick(self, *items):
        return self.random.choice(items)

    def chance(self, part):
        return self.random.random() < part

    def size(self, name, small=False):
        """Gives a size a constant most of the time."""
        if self.chance(0.75):
            self.defines[name] = self.random.choice(EXTENTS[:12] if small else EXTENTS)
        if self.chance(0.02):
            self.defines[name] = 0

    def name(self):
        self.fresh += 1
        return f'p{self.fresh}'

    def kernel(self):
        kept, reduced = self.random.randint(0, 2), self.random.randint(0, 2)
        if not kept + reduced:
            kept = 1
        self.kept = [f'i{k}' for k in range(kept)]
        self.reduced = [f'j{k}' for k in range(reduced)]
        dims = [f'n{k}' for k in range(kept)] + [f'm{k}' for k in range(reduced)]
        self.sizes = dims
        for dim in dims:
            self.size(dim, small=len(dims) > 2)
        axes = self.kept + self.reduced
        self.rank = len(axes)
        order = list(range(len(axes)))
        self.random.shuffle(order)
        operand = f"A[{', '.join(axes[k] for k in order)}]"
        shape = ', '.join(dims[k] for k in order)
        out_dims, out = ', '.join(dims[:kept]), ', '.join(self.kept)
        loops = f"for {', '.join(f'{a} in {d}' for a, d in zip(self.kept, dims))} " if kept else ''
        ranges = ', '.join(f'{a} in {d}' for a, d in zip(self.reduced, dims[kept:]))
        guard = ''
        if reduced and self.chance(0.2):
            guard = f" if {self.reduced[0]} {self.pick('<', '<=', '!=', '>')} {self.pick('3', self.kept[0] if kept else '2')}"
        strided = ' strided' if self.chance(0.15) else ''
        if not reduced:
            type_ = self.random.choice(FLOATS[2:] + INTEGERS + ['bool', 'c64', 'f8e4m3'])
            body = f'B[{out}] = {operand};'
            outputs = f'B: {type_}[{out_dims}]'
        else:
            kind = self.pick('plain', 'plain', 'plain', 'fold', 'init', 'arg', 'pair', 'user', 'count', 'ordered', 'chain', 'back', 'under')
            type_, body, outputs = self.reduction(kind, ranges, guard, operand, out, out_dims, loops)
        inner = body if not loops else f'{loops}{{ {body} }}'
        if kept and self.chance(0.1):
            inner = f'{loops}{{ if {self.kept[0]} % 2 == 0 {{ {body} }} }}'
        self.type = type_
        return f'kernel k(A: {type_}[{shape}]{strided}) -> ({outputs}) {{\n  {inner}\n}}\n'

    def reduction(self, kind, ranges, guard, operand, out, out_dims, loops):
        reducer = self.random.choice(sorted(REDUCERS))
        type_ = self.random.choice(REDUCERS[reducer])
        target = f'B[{out}]'
        if kind == 'fold' and type_ != 'bool':
            self.is_fold = True
            return type_, f'{target} {self.pick("+=", "*=", "min=", "max=")} {reducer}({ranges}{guard}) {operand};', f'B: {type_}[{out_dims}]'
        if kind == 'init' and type_ != 'bool':
            return type_, f'{target} = {reducer}({ranges}{guard}; init = 3) {operand};', f'B: {type_}[{out_dims}]'
        if kind == 'arg':
            type_ = self.pick('f32', 'f16', 'i32', 'u8', 'f64')
            arg = self.pick('argmin', 'argmax')
            return type_, f'({target}, P[{out}]) = {arg}({ranges}{guard}) ({operand}, i32({self.reduced[0]}));', f'B: {type_}[{out_dims}], P: i32[{out_dims}]'
        if kind == 'pair':
            type_ = self.pick('f32', 'i32', 'f64')
            return type_, f'({target}, P[{out}]) = sum({ranges}{guard}) ({operand}, {operand} * {operand});', f'B: {type_}[{out_dims}], P: {type_}[{out_dims}]'
        if kind == 'user':
            return 'f32', f'({target}, P[{out}]) = spread({ranges}{guard}) ({operand}, {operand});', f'B: f32[{out_dims}], P: f32[{out_dims}]'
        if kind == 'count':
            return 'f32', f'{target} = count({ranges}{guard}) {operand};', f'B: i32[{out_dims}]'
        if kind == 'ordered':
            return 'u32', f'({target}, _) = affine({ranges}{guard}) ({operand}, {operand});', f'B: u32[{out_dims}]'
        if kind == 'chain':
            body = f'let a = max({ranges}) {operand}; let b = sum({ranges}{guard}) ({operand} - a); {target} = a * b;'
            return 'f32', body, f'B: f32[{out_dims}]'
        if kind == 'back' and loops:  # the result is used over the same axes again
            again = ', '.join(part for part in ranges.split(', '))
            index = ', '.join(filter(None, [out, ', '.join(self.reduced)]))
            dims = ', '.join(filter(None, [out_dims, ', '.join(f'm{k}' for k in range(len(self.reduced)))]))
            return 'f32', f'let a = max({ranges}) {operand}; for {again} {{ C[{index}] = {operand} - a; }}', f'C: f32[{dims}]'
        if kind == 'under':
            return 'f32', f'let a = sum({ranges}{guard}) {operand}; {target} = a > 0 ? sqrt(a) : 1 / a;', f'B: f32[{out_dims}]'
        return type_, f'{target} = {reducer}({ranges}{guard}) {operand};', f'B: {type_}[{out_dims}]'

    def schedule(self):
        """Directives that are often, not always, legal."""
        axes = list(self.kept + self.reduced)
        extents = dict(zip(axes, [f'n{k}' for k in range(len(self.kept))] + [f'm{k}' for k in range(len(self.reduced))]))
        constant = {a: self.defines.get(extents[a]) for a in axes}
        if len(self.reduced) > 1 and self.chance(0.2):
            self.directives.append(f'fuse {self.reduced[0]}, {self.reduced[1]} -> jj')
            both = [constant[a] for a in self.reduced]
            axes = self.kept + ['jj']
            constant['jj'] = both[0] * both[1] if None not in both else None
        for axis in list(axes):
            while self.chance(0.35):
                factor = self.random.choice([1, 2, 3, 4, 8, 16, 32, 33, 64, 128])
                o, i = self.name(), self.name()
                by = self.chance(0.8)
                self.directives.append(f'split {axis} {"by" if by else "into"} {factor} -> {o}, {i}')
                place = axes.index(axis)
                axes[place:place + 1] = [o, i]
                constant[o], constant[i] = (None, factor) if by else (factor, None)
                if constant[axis] is not None:
                    constant[o if by else i] = -(-constant[axis] // factor)
                axis = self.pick(o, i)
        self.random.shuffle(self.directives) if self.chance(0.02) else None
        if self.chance(0.2) and len(axes) > 1:
            order = list(axes)
            self.random.shuffle(order)
            self.directives.append(f"reorder {', '.join(order)}")
        self.bind(axes, constant)
        return self.directives

    def bind(self, axes, constant):
        threads, blocks = ['thread.x', 'thread.y', 'thread.z'], ['block.x', 'block.y', 'block.z']
        self.random.shuffle(threads)
        if self.chance(0.3):
            threads = threads[:1]
        total, reduced = 1, []
        for axis in sorted(axes, key=lambda a: self.random.random()):
            extent = constant.get(axis)
            if threads and extent is not None and total * max(extent, 1) <= 1024 and self.chance(0.7):
                total *= max(extent, 1)
                self.directives.append(f'bind {axis} -> {threads.pop()}')
                reduced.append(axis)
            elif blocks and axis in self.kept and self.chance(0.6):
                self.directives.append(f'bind {axis} -> {blocks.pop(0)}')
            elif self.chance(0.2):
                self.directives.append(f'unroll {axis}' + ('' if extent is not None and extent <= 64 else ' by 4'))
            elif extent is not None and extent in (2, 4, 8) and self.chance(0.3):
                self.directives.append(f'vectorize {axis}')
        if reduced and self.chance(0.1):
            self.directives.append(f"allreduce {', '.join(reduced)} by {self.pick('shuffle', 'tree', 'auto')}")

    def text(self):
        kernel = self.kernel()
        text = USER + kernel
        if not self.chance(0.1):
            when = ' when n0 > 3' if self.kept and self.chance(0.2) else ''
            text += f'schedule k{when} {{\n' + ''.join(f'  {d};\n' for d in self.schedule()) + '}\n'
        return text

    def data(self):
        """Small integers, so that sums are exact in every type."""
        return 'A=i % 3' if self.type in ('bool', 'u8', 'u16', 'u32', 'u64') else 'A=i % 5 - 2'

    def arguments(self):
        return [f'-D{name}={value}' for name, value in sorted(self.defines.items())]


def run(command, folder):
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors='replace', timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return -1, f'no end within {TIMEOUT} seconds'
    return done.returncode, done.stderr + done.stdout


def check(options, number, ptxas):
    """A failure as text or None, and whether code came out."""
    case = Case(options.seed, number)
    text = case.text()
    arch = case.pick('sm_75', 'sm_80', 'sm_86', 'sm_90')
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        with open(os.path.join(folder, 'k.red'), 'w', encoding='utf-8') as f:
            f.write(text)
        emit = case.pick('ptx', 'ptx', 'ptx', 'cuda')
        command = [options.redc, 'k.red', *case.arguments(), f'--arch={arch}', '--verify-each', f'--emit={emit}', '-o', 'out.ptx']
        status, said = run(command, folder)
        wrong = None
        if status not in (0, 1) or 'internal error' in said or 'Sanitizer' in said or 'runtime error' in said:
            wrong = f'exit status {status}'
        elif status == 1 and 'error:' not in said:
            wrong = 'exit status 1 and no error'
        elif status == 1 and not ('k.red:' in said and '^' in said):
            wrong = 'an error without a place'
        elif status == 0 and emit == 'ptx' and ptxas and case.chance(options.ptxas):
            assembled, said = run([ptxas, f'-arch={arch}', 'out.ptx', '-o', 'out.cubin'], folder)
            if assembled:
                wrong = 'ptxas refuses the code'
        if not wrong and status == 0 and emit == 'ptx' and case.chance(options.run):
            sizes = [word for name in sorted(case.sizes) if name not in case.defines for word in ('--size', f'{name}={case.pick(1, 2, 5, 9)}')]
            command = [options.redc, 'run', 'k.red', '--device=sim', '--check', *case.arguments(), *sizes, '--arg', case.data()]
            if case.is_fold:
                command += ['--arg', 'B=1']
            status, said = run(command, folder)
            if status and 'no schedule fits' not in said:
                wrong = f'exit status {status} of redc run'
            status = 0
        if wrong:
            return f'case {number}: {wrong}\n{" ".join(command)}\n{text}\n{said[:3000]}', status == 0
        return None, status == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--redc', default=os.path.join(ROOT, 'build', 'redc'))
    parser.add_argument('--count', type=int, default=300)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--only', type=int, help='this case alone')
    parser.add_argument('--ptxas', type=float, default=0.3, help='the part of the results that ptxas gets, 0 to 1')
    parser.add_argument('--run', type=float, default=0, help='the part of them that runs in the simulator and is compared with the reference')
    parser.add_argument('--scratch', help='where the temporary folders go')
    parser.add_argument('-j', '--jobs', type=int, default=os.cpu_count())
    options = parser.parse_args()
    options.redc = os.path.abspath(options.redc)
    if not os.path.exists(options.redc):
        sys.exit(f'{options.redc} is not there')
    home = os.environ.get('CUDA_HOME', '/usr/local/cuda')
    ptxas = shutil.which('ptxas') or shutil.which('ptxas', path=os.path.join(home, 'bin'))
    numbers = range(options.count) if options.only is None else [options.only]
    failures, compiled = [], 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for failure, is_code in pool.map(lambda n: check(options, n, ptxas), numbers):
            compiled += is_code
            if failure:
                failures.append(failure)
                print(failure, flush=True)
    print(f'{len(numbers)} cases: {compiled} compiled, {len(numbers) - compiled - len(failures)} refused, {len(failures)} failed'
          + ('' if ptxas else '; no ptxas found'))
    if len(numbers) > 100 and compiled < len(numbers) // 3:
        print('too few of them compile for this to test much')
        return 1
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())

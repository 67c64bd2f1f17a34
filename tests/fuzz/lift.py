#!/usr/bin/env python3
"""Random functions of C: what redc lift takes of them computes what C computes.

    lift.py [--redc PATH] [--count N] [--seed N]

The functions write to several arrays and read them again, accumulate in variables and in elements, in loops of any order, under conditions. Most are
refused, which is always right here; those that are taken run by the reference interpreter and must agree in every element. All
values are integers, so that no order of additions matters.
"""

import argparse
import ctypes
import os
import random
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'tests'))
import npyfile  # pylint: disable=wrong-import-position

SHAPES = {'A': 'nm', 'W': 'm', 'V': 'n', 'B': 'n', 'C': 'm', 'D': 'nm', 'E': ''}
INPUTS, OUTPUTS = 'AWV', 'BCDE'
HEAD = ('#include <red_kernel.h>\n'
        'RED_KERNEL void k(int n, int m, const int A[n][m], const int W[m], const int V[n], int B[n], int C[m], int D[n][m], int E[1]) {\n')


class Maker:
    """One function."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.counters = 0
        self.scalars = []
        self.loops = []  # (name, 'n' or 'm')
        self.outputs = self.draw.sample(OUTPUTS, self.draw.randint(1, 3))
        self.folds = {name: self.draw.choice(['+=', '+=', '^=']) for name in OUTPUTS}  # mixed ones are refused

    def index(self, size):
        fitting = [name for name, extent in self.loops if extent == size]
        if fitting and self.draw.random() < 0.97:
            return self.draw.choice(fitting)
        return '0'

    def element(self, array):
        if array == 'E':
            return 'E[0]'
        return array + ''.join(f'[{self.index(s)}]' for s in SHAPES[array])

    def value(self, depth=2):
        roll = self.draw.random()
        if depth == 0 or roll < 0.5:
            return self.element(self.draw.choice(INPUTS if self.draw.random() < 0.93 else self.outputs))
        if roll < 0.6:
            return str(self.draw.randint(-3, 9))
        if roll < 0.64 and self.scalars:
            return self.draw.choice(self.scalars)
        if roll < 0.7 and self.loops:
            return self.draw.choice(self.loops)[0]
        if roll < 0.78:
            return f'({self.condition()} ? {self.value(depth - 1)} : {self.value(depth - 1)})'
        return f'({self.value(depth - 1)} {self.draw.choice("++-*^&")} {self.value(depth - 1)})'

    def condition(self):
        if self.loops and self.draw.random() < 0.6:
            return f'{self.draw.choice(self.loops)[0]} {self.draw.choice(["<", ">", "!="])} {self.draw.randint(0, 3)}'
        return f'{self.value(1)} {self.draw.choice(["<", ">", "=="])} {self.value(1)}'

    def assign(self):
        if self.scalars and self.draw.random() < 0.5:
            name = self.draw.choice(self.scalars)
            kind = self.draw.random()
            if kind < 0.75:
                return f'{name} {self.draw.choice(["+=", "+=", "+=", "-=", "^="])} {self.value()};'
            if kind < 0.98:
                x = self.value(1)
                return f'if ({x} {self.draw.choice("<>")} {name}) {name} = {x};'
            return f'{name} = {self.value()};'
        name = self.draw.choice(self.outputs)
        element = self.element(name)
        is_own = all(f'[{loop}]' in element for loop, _ in self.loops)
        return f'{element} {"=" if is_own and self.draw.random() < 0.6 else self.folds[name]} {self.value()};'

    def loop(self, depth, indent):
        self.counters += 1
        name, size = f'{"ij"[self.counters % 2]}{self.counters}' if self.draw.random() < 0.5 else 'pq'[depth % 2] + str(depth), self.draw.choice('nm')
        head = self.draw.choice([f'for (int {name} = 0; {name} < {size}; {name}++)'] * 4 + [f'for (int {name} = {size} - 1; {name} >= 0; {name}--)', f'for (int {name} = 1; {name} < {size}; {name}++)'])
        self.loops.append((name, size))
        body = self.block(depth - 1, indent + 1)
        self.loops.pop()
        return [head + ' {'] + body + ['}']

    def block(self, depth, indent):
        lines, declared = [], 0
        for _ in range(self.draw.choice([1, 1, 2, 2, 3])):
            roll = self.draw.random()
            if roll < 0.25:
                self.counters += 1
                lines.append(f'int s{self.counters} = {self.value() if self.draw.random() < 0.5 else 0};')
                self.scalars.append(f's{self.counters}')
                declared += 1
            if roll < 0.55 and depth:
                lines += self.loop(depth, indent)
            elif roll < 0.65:
                lines += [f'if ({self.condition()}) {{'] + self.block(depth - 1 if depth else 0, indent + 1) + ['}'] if depth else [self.assign()]
            else:
                lines.append(self.assign())
        if self.loops or declared:
            lines.append(self.assign())
        del self.scalars[len(self.scalars) - declared:]
        return ['  ' + line for line in lines]

    def text(self):
        lines = []
        for _ in range(self.draw.randint(1, 3)):
            lines += ['  ' + line for line in self.loop(3, 1)]
        return HEAD + '\n'.join(lines) + '\n}\n'


def compare(redc, source, program, folder, seed):
    """The complaint, or None."""
    library = os.path.join(folder, f'k{seed}.so')  # a name of its own: the loader knows libraries by their names
    subprocess.run(['gcc', '-O1', '-fwrapv', '-shared', '-fPIC', '-w', f'-I{ROOT}/runtime', source, '-o', library], check=True)
    function = ctypes.CDLL(library).k
    draw = random.Random(seed)
    for n, m in ((3, 4), (5, 2)):
        sizes = {'n': n, 'm': m}
        with open(program, encoding='utf-8') as f:
            head = next(line for line in f if line.startswith('kernel '))
        line = [redc, 'run', program, '--device=ref'] + [f'--size={k}={v}' for k, v in sizes.items() if k in head.replace('kernel', '')]
        arrays = {}
        for name, shape in SHAPES.items():
            dims = [sizes[s] for s in shape] or [1]
            count = dims[0] * (dims[1] if len(dims) > 1 else 1)
            arrays[name] = (ctypes.c_int32 * count)(*[draw.randint(-4, 4) for _ in range(count)])
            if f'{name}: ' in head:
                path = os.path.join(folder, name + '.npy')
                npyfile.write(path, '<i4', dims, list(arrays[name]))
                line += [f'--arg={name}={path}', f'--out={name}={path}.out']
        function(n, m, *arrays.values())
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stderr
        for name in OUTPUTS:
            if f'{name}: ' not in head:
                continue
            _, _, got = npyfile.read(os.path.join(folder, name + '.npy.out'))
            if got != list(arrays[name]):
                return f'{name} is {got}, and {list(arrays[name])} in C, for {sizes}'
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--redc', default=os.path.join(ROOT, 'build', 'redc'))
    parser.add_argument('--count', type=int, default=100)
    parser.add_argument('--seed', type=int, default=1)
    options = parser.parse_args()
    if not os.path.exists(os.path.join(os.path.dirname(os.path.abspath(options.redc)), 'redc-clang')):
        print('skipped: redc-clang was not built (Clang was not found)')
        return 77
    good = bad = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, 'k.c'), os.path.join(folder, 'k.red')
        for seed in range(options.seed, options.seed + options.count):
            with open(source, 'w', encoding='utf-8') as f:
                f.write(Maker(seed).text())
            done = subprocess.run([options.redc, 'lift', source, '-o', program], capture_output=True, text=True, check=False)
            complaint = None
            if done.returncode == 1 and 'error: internal' not in done.stderr:
                refused += 1
                continue
            complaint = compare(options.redc, source, program, folder, seed) if done.returncode == 0 else done.stderr
            good, bad = good + (complaint is None), bad + (complaint is not None)
            if complaint:
                with open(source, encoding='utf-8') as f:
                    print(f'FAILED: seed {seed}\n{f.read()}{complaint}')
    print(f'{refused} functions were refused')
    print(f'{good} passed, {bad} failed')
    return 1 if bad or not good else 0


if __name__ == '__main__':
    sys.exit(main())

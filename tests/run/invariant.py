#!/usr/bin/env python3
"""--batch-invariant: an output has the same bits whatever the number of outputs beside it and wherever it stands, with sizes known and unknown.

All rows hold the same numbers, whose sum depends on the order of additions; each output of each run must be the bits of the others."""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ['RED_SOURCE_DIR'], 'tests'))
import npyfile  # noqa: E402

REDC = os.environ['REDC']
ROWS = ('rows', 'kernel k(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }', 'i1')
COLUMNS = ('columns', 'kernel k(A: f32[m, n]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[j, i]; } }', 'i0')
MOMENTS = ('moments', 'kernel k(A: f32[n, m]) -> (B: f32[n]) { for i in n { let s = sum(j in m) A[i, j]; let q = sum(j in m) { let x = A[i, j]; x * x };'
           ' B[i] = q / m - s * s / m / m; } }', 'i1')
SOFTMAX = ('softmax', 'kernel k(A: f32[n, m]) -> (B: f32[n]) { for i in n { let p = max(j in m) A[i, j]; let s = sum(j in m) exp(A[i, j] - p); B[i] = p + log(s); } }', 'i1')
CASES = [(ROWS, m) for m in (3, 30, 129, 1000, 4001, 40000)] + [(COLUMNS, m) for m in (5, 40, 700, 9001)] + [(MOMENTS, 4096), (SOFTMAX, 1000)]


def bits(folder, program, formula, n, m, options):
    """The different values, as bits, of the outputs of one run."""
    source, out = os.path.join(folder, 'k.red'), os.path.join(folder, 'b.npy')
    with open(source, 'w', encoding='utf-8') as f:
        f.write(program)
    value = f'A=f32(({formula} * 7919 + 31) % 1009) * 0.37 - 180.3'
    done = subprocess.run([REDC, 'run', source, *options, '--arg', value, '--out', f'B={out}', '--device=sim', '--check'], capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise SystemExit(f'{program} {options} n={n} m={m}\n{done.stderr}')
    return {float(x).hex() for x in npyfile.read(out)[2]}


def main():
    failed, passed, differs = 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for (name, program, formula), m in CASES:
            counts = (1, 3, 8, 70) if m < 20000 else (1, 3, 9)
            found, usual = set(), set()
            for n in counts:
                for given in ('--size', '-D')[:1 if n == 1 and name == 'columns' else 2]:  # a column that -D makes the only one is a row
                    options = [given, f'n={n}', '--size', f'm={m}']
                    found |= bits(folder, program, formula, n, m, options + ['--batch-invariant'])
            passed += len(found) == 1
            if len(found) != 1:
                failed += 1
                print(f'FAILED {name}, m={m}: {sorted(found)}')
            if m >= 9001:  # where the usual schedules do depend on it
                for n in counts:
                    usual |= bits(folder, program, formula, n, m, ['-D', f'n={n}', '-D', f'm={m}'])
                differs += len(usual) > 1
        for n in (1, 400):  # few rows are split over the grid, many are not
            usual = set() if n == 1 else usual
            usual |= bits(folder, ROWS[1], ROWS[2], n, 3000, ['-D', f'n={n}', '-D', 'm=3000'])
        differs += len(usual) > 1
    if not differs:
        failed += 1
        print('FAILED without the option, too, nothing depends on the number of rows: the test sees nothing')
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())

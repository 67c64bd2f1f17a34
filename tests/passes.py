#!/usr/bin/env python3
"""Every pass can be looked at and gone on from: for each program and each pass, `--stop-after=PASS` and then compiling that
IR gives the code that compiling the program gives; and every dump verifies, and reads back as it was printed.

    passes.py [--redc PATH] [FILE.red...]

Programs: those below, and FILEs. Comments and line tables may differ: IR knows lines of the program, not their text.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAMS = {
    'serial': ('kernel rowsum(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }', []),
    'shuffle': ('kernel rowsum(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }\n'
                'schedule rowsum { bind i -> block.x; bind j -> thread.x; }', ['-D', 'm=11']),
    'warps': ('kernel rowsum(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }\n'
              'schedule rowsum { bind i -> block.x; split j by 192 -> jo, ji; bind ji -> thread.x; }', []),
    'tree': ('kernel best(A: f32[n, m]) -> (V: f32[n], P: i32[n]) {\n'
             '  for i in n { (V[i], P[i]) = argmax(j in m) (A[i, j], i32(j)); } }\n'
             'schedule best { bind i -> block.x; bind j -> thread.x; allreduce j by tree; }', ['-D', 'm=96']),
    'stages': ('kernel scaled(X: f32[n, m]) -> (Y: f32[n, m]) {\n  for i in n {\n'
                '    let peak = max(j in m) X[i, j];\n    let total = sum(j in m) (X[i, j] - peak);\n'
                '    for j in m { Y[i, j] = (X[i, j] - peak) / total; } } }', []),
    'permute': ('kernel permute<T>(X: T[a, b, c]) -> (Y: T[b, a, c]) { for i in a, j in b, k in c { Y[j, i, k] = X[i, j, k]; } }',
                ['-D', 'T=f16', '-D', 'T=f32']),
    'tile': ('kernel transpose<T>(X: T[a, b]) -> (Y: T[b, a]) { for i in a, j in b { Y[j, i] = X[i, j]; } }\n'
             'schedule transpose { tile i by 32, j by 32 -> io, jo, ii, ji; bind io -> block.y; bind jo -> block.x;\n'
             'stage X at jo in shared as S unit 2 along ii swizzle 4,0,5; bind Y.ji -> thread.x; }', ['-D', 'T=f16', '-D', 'T=f32']),
    'columns': ('kernel colsum(A: f32[m, n]) -> (B: f32[n]) { for i in n { B[i] = sum(k in m) A[k, i]; } }\n'
                'schedule colsum { split i by 4 -> ic, iv; split ic by 8 -> io, ii; split k by 8 -> k1, ks; split k1 by 8 -> k2, ku;\n'
                'split k2 by max(1, 2 * sms / extent(io)) -> kr, kg; bind io -> block.x; bind kg -> block.y; bind ii -> thread.x; bind ks -> thread.y;\n'
                'reorder io, kg, ii, ks, kr, ku, iv; unroll ku; vectorize iv; cache A by streaming; blocks 2; }', []),
    'launches': ('reducer moments(n: f32, s: f32) { identity (0, 0); combine(a, b) { (a.n + b.n, a.s + b.s) } update(a, x) { (a.n + 1, a.s + x) } }\n'
                 'kernel centre(A: f32[n]) -> (B: f32[n], S: f32[]) { let (c, s) = moments(j in n) A[j]; S[] += sum(q in n) A[q];\n'
                 'for i in n { B[i] = A[i] - s / c; } }\n'
                 'schedule centre { split j by 256 -> jo, ji; bind jo -> block.x; bind ji -> thread.x; split q by 256 -> qo, qi; bind qo -> block.x;\n'
                 'bind qi -> thread.x; combine qo by atomic; split i by 128 -> io, ii; bind io -> block.x; bind ii -> thread.x; }', []),
    'second': ('kernel total(A: f32[n]) -> (S: f32[]) { S[] = sum(k in n) A[k]; }\n'
               'schedule total { split k by 64 -> kb, kt; bind kb -> block.x; bind kt -> thread.x; combine kb by second_kernel; }', []),
    'halves': ('kernel mean(A: f16[n, m]) -> (B: f16[n]) { for i in n { B[i] = sum(j in m) A[i, j] / m; } }', []),
    'guards': ('kernel even(A: i32[n, m]) -> (B: i32[n]) { for i in n { if i % 2 == 0 { B[i] = sum(j in m if j <= i) A[i, j]; } } }', []),
    'when': ('kernel copy(A: f32[n]) -> (B: f32[n]) { for i in n { B[i] = A[i]; } }\n'
             'schedule copy as wide when n % 4 == 0 { split i by 128 -> io, ii; bind io -> block.x; bind ii -> thread.x; }', []),
}


def run(redc, args):
    result = subprocess.run([redc, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    if result.returncode:
        raise RuntimeError(f'redc {" ".join(args)}\n{result.stderr}')
    return result.stdout


def bare(text):
    """Code without comments, blank lines and line tables; registers keep their names."""
    text = re.sub(r'//[^\n]*|\n\s*\.(loc|file)\b[^\n]*', '', text)
    return [line.strip() for line in text.splitlines() if line.strip()]


def first_difference(a, b):
    for i, (x, y) in enumerate(zip(a, b)):
        if x != y:
            return f'line {i + 1}: "{x}" became "{y}"'
    return f'{len(a)} lines became {len(b)}'


def check(redc, source, args, passes):
    """What is wrong with one program, as lines."""
    wanted = {kind: bare(run(redc, [source, *args, f'--emit={kind}', '--verify-each'])) for kind in ('cuda', 'ptx')}
    wrong = []
    for name in passes:
        step = os.path.splitext(source)[0] + f'.{name}.ir'
        run(redc, [source, *args, f'--stop-after={name}', '-o', step])
        for kind, code in wanted.items():
            got = bare(run(redc, [step, f'--emit={kind}', '--verify-each']))
            if got != code:
                wrong.append(f'{kind} from the IR after {name}: {first_difference(code, got)}')
        again = run(redc, [step, f'--stop-after={name}'])
        with open(step, encoding='utf-8') as f:
            if f.read() != again:
                wrong.append(f'the IR after {name} does not print as it was read')
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('files', nargs='*')
    parser.add_argument('--redc', default=os.path.join(ROOT, 'build', 'redc'))
    options = parser.parse_args()
    redc = os.path.abspath(options.redc)
    passes = [line.split()[0] for line in run(redc, ['--list-passes']).splitlines()]
    programs = dict(PROGRAMS)
    for path in options.files:
        with open(path, encoding='utf-8') as f:
            programs[os.path.basename(path)] = (f.read(), [])
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix='red-passes-') as folder:
        for name, (text, args) in programs.items():
            source = os.path.join(folder, re.sub(r'\.red$', '', name) + '.red')
            with open(source, 'w', encoding='utf-8') as f:
                f.write(text)
            try:
                wrong = check(redc, source, args, passes)
            except (RuntimeError, subprocess.TimeoutExpired) as e:
                wrong = [str(e)]
            passed, failed = passed + (not wrong), failed + bool(wrong)
            if wrong:
                print(f'FAILED  {name}', *wrong, sep='\n        ', flush=True)
    print(f'{passed} passed, {failed} failed')
    return 1 if failed or not passed else 0


if __name__ == '__main__':
    sys.exit(main())

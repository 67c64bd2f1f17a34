#!/usr/bin/env python3
"""redc tune, on the fake driver and in the simulator: what it writes is legal, better, taken by a launch, found again, and never half written.

    tune.py --redc PATH --fake PATH
"""

import json
import os
import re
import sys

from driven import expect, run_tests

COLSUM = 'kernel colsum(A: f32[m, n]) -> (B: f32[n]) { for i in n { B[i] = sum(k in m) A[k, i]; } }\n'
FOLD = '''kernel fold<T>(A: T[n, m], x: f32) -> (B: T[n]) { for i in n { B[i] += x * sum(j in m) f32(A[i, j]); } }
schedule fold as slow { bind i -> block.x;  split j by 32 -> jo, jt;  bind jt -> thread.x; }
'''


def read(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


def write(path, text):
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)


def figure(text):
    """(after, before, trials) of the second line of a block."""
    m = re.search(r'^// (?:cost )?([\d.]+)(?: us)?; (?:cost )?([\d.]+)(?: us)? before, by .*; (\d+) trials$', text, re.M)
    return float(m[1]), float(m[2]), int(m[3])


def on_gpu(r):
    command = ['tune', 'colsum.red', '-D', 'n=64', '-D', 'm=100', '-o', 'kept.red', '--repeats', '2', '--trials', '25']
    done = r.run(*command)
    expect('status', done.returncode == 0 and not done.stderr, done)
    text = read('kept.red')
    calls = r.calls()
    for made, ended in [('cuModuleLoadDataEx', 'cuModuleUnload'), ('cuMemAlloc_v2', 'cuMemFree_v2'), ('cuEventCreate', 'cuEventDestroy_v2')]:
        expect(f'given back: {made}', calls.count(made) == calls.count(ended) > 0, (calls.count(made), calls.count(ended)))
    after, before, trials = figure(text)
    expect('better', after < before and trials == 25, text)
    expect('heading', text.startswith('// redc tune: colsum, m=100, n=64, fake GPU, sm_90\n'), text)
    expect('condition', 'schedule colsum as tuned_100_64 when m == 100 && n == 64 {' in text, text)
    done = r.run('bench', 'kept.red', 'colsum.red', '-D', 'n=64', '-D', 'm=100', '--json')
    got = json.loads(done.stdout)
    expect('taken', got['schedule'] == 'tuned_100_64', got)
    expect('figure', abs(got['us'] - after) < 0.01, (got, text))
    done = r.run(*command)
    expect('no trials', done.returncode == 0 and 'nothing tried' in done.stdout and 'cuLaunchKernel' not in r.calls() and read('kept.red') == text, done)
    done = r.run(*command, '--again')
    expect('again', 'trials' in done.stdout and read('kept.red').count('schedule colsum') == 1, done)
    write('kept.red', '// mine\n' + read('kept.red') + 'kernel other(A: f32[4]) -> (B: f32[4]) { for i in 4 { B[i] = A[i]; } }\n')
    r.run('tune', 'colsum.red', '-D', 'n=64', '-D', 'm=101', '-o', 'kept.red', '--repeats', '1', '--trials', '3')
    text = read('kept.red')
    expect('two sizes', text.startswith('// mine\n') and text.count('schedule colsum') == 2 and text.count('kernel other') == 1, text)
    done = r.run('tune', 'colsum.red', '-D', 'n=64', '-D', 'm=101', '-o', 'kept.red', '--repeats', '1', '--trials', '3', setting='arch=80')
    text = read('kept.red')
    expect('another device', 'm=101, n=64, fake GPU, sm_80' in text and text.count('schedule colsum') == 2, text)
    for m in (100, 101):
        got = json.loads(r.run('bench', 'kept.red', 'colsum.red', '--kernel', 'colsum', '-D', 'n=64', '-D', f'm={m}', '--json').stdout)
        expect(f'each size its own: {m}', got['schedule'] == f'tuned_{m}_64', got)


def faults(r):
    command = ['tune', 'colsum.red', '-D', 'n=64', '-D', 'm=100', '-o', 'fault.red', '--repeats', '1', '--trials', '3']
    write('fault.red', '// as it was\n')
    for call in ('cuMemAlloc_v2', 'cuModuleLoadDataEx', 'cuLaunchKernel', 'cuEventRecord', 'cuMemcpyDtoH_v2'):
        done = r.run(*command, setting=f'fail={call}:999:0')
        expect(f'{call} fails', done.returncode == 1 and '(999)' in done.stderr and read('fault.red') == '// as it was\n', done)
    done = r.run(*command, library='/nonexistent/libcuda.so')
    expect('no GPU', done.returncode == 1 and '--device=sim' in done.stderr, done)
    done = r.run('tune', 'colsum.red', '-D', 'n=64', '-D', 'm=100', '-o', 'nowhere/kept.red', '--repeats', '1', '--trials', '2')
    expect('no folder', done.returncode == 1 and 'nowhere' in done.stderr, done)


def simulated(r):
    write('fold.red', FOLD)
    done = r.run('tune', 'fold.red', '-D', 'T=f16', '--size', 'n=9', '--size', 'm=70', '--device=sim', '--trials', '15', '-o', 'fold.kept.red')
    expect('simulated', done.returncode == 0, done)
    text = read('fold.kept.red')
    expect('types', 'schedule fold as tuned_f16_9_70 when T == f16 && n == 9 && m == 70 {' in text and "by schedule 'slow'" in text, text)
    after, before, _ = figure(text)
    expect('cheaper', after <= before, text)
    done = r.run('run', 'fold.kept.red', 'fold.red', '-D', 'T=f16', '--size', 'n=9', '--size', 'm=70', '--device=sim', '--check', '--stats',
                 '--arg', 'A=rand', '--arg', 'B=rand', '--arg', 'x=2')
    expect('runs', done.returncode == 0 and 'fold_f16_tuned_f16_9_70' in done.stdout, done)
    done = r.run('tune', 'colsum.red', '-D', 'n=64', '-D', 'm=10', '--device=sim', '--trials', '2')
    expect('standard output', done.returncode == 0 and done.stdout.startswith('// redc tune: colsum, m=10, n=64, simulator, sm_75\n'), done)


if __name__ == '__main__':
    sys.exit(run_tests(__doc__, {'colsum.red': COLSUM}, [on_gpu, faults, simulated]))

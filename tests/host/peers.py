#!/usr/bin/env python3
"""tests/bench/peers without a GPU: every case compiles and has a schedule that takes it; cliffs.py finds what is slower than its neighbours, and nothing else."""
import json
import os
import subprocess
import sys
import tempfile

PEERS = os.path.join(os.environ['RED_SOURCE_DIR'], 'tests', 'bench', 'peers')
LIBRED = os.path.join(os.environ['RED_BUILD_DIR'], 'libred.so.0')

sys.path.insert(0, PEERS)
import cases  # noqa: E402

failures, passed = [], 0


def expect(name, condition, detail):
    global passed
    passed += bool(condition)
    if not condition:
        failures.append(f'FAILED {name}: {detail}')


def run(script, *arguments):
    return subprocess.run([sys.executable, os.path.join(PEERS, script), *arguments], env=dict(os.environ, LIBRED=LIBRED), capture_output=True, text=True, timeout=500)


def row(step, delta, us, axis=0, **more):
    a, b = 2**step + delta, 2**(24 - step) + delta
    cold = {'red': dict(us=us, p20=us, p80=us, best=us), 'read': dict(us=16.0, p20=16, p80=16, best=16)}
    return dict(dict(group='sweep', name=f'{a} x {b} over {axis}', what='sum', dtype='f32', shape=[a, b], axes=[axis], step=step, delta=delta, bytes=1 << 26, right=True,
                     schedule='column', cold=cold), **more)


def found(rows, *arguments):
    with open('rows.json', 'w', encoding='utf-8') as file:
        json.dump(rows, file)
    return run('cliffs.py', 'rows.json', *arguments)


def main():
    if os.environ.get('RED_SANITIZED') == '1' or not os.path.exists(LIBRED):
        print('no libred.so that Python can load was built')
        return 77
    groups = ['sweep', 'sweep_types', 'sweep_operators', 'sweep_sample', 'columns', 'rows', 'small', 'permutes', 'sets', 'orders', 'large']
    dry = run('peers.py', *groups, '--dry-run', '--every', '11')
    expect('dry run', dry.returncode == 0 and 'FAILED' not in dry.stdout, dry.stdout[-500:] + dry.stderr[-500:])
    points = [(case['step'], case['delta'], case['axes'][0]) for case in cases.GROUPS['sweep']()]
    expect('both directions of 25 shapes and of their odd neighbours', len(set(points)) == len(points) == 2 * (3 * 25 - 2), len(points))
    rows = [row(step, delta, 20, axis) for step in range(25) for delta in (0, 1) for axis in (0, 1)]
    even = found(rows)
    expect('no cliff', even.returncode == 0 and even.stdout == '100 points, 0 cliffs, 0 wrong\n', even.stdout + even.stderr)
    slow = found([row(7, 1, 31, 1) if r['step'] == 7 and r['delta'] and r['axes'] == [1] else r for r in rows], '--table', '--lowest', '1', '--svg', 'rows.svg')
    expect('a cliff', slow.returncode == 1 and '100 points, 1 cliffs' in slow.stdout and 'CLIFF 0.65 of' in slow.stdout and '129 x 131073 over 1 (column)' in slow.stdout, slow.stdout)
    expect('the lowest', 'LOW sum f32 129 x 131073 over 1 (column): 31.0 us, 2165 GB/s, 0.52 of its ceiling' in slow.stdout, slow.stdout)
    expect('the table', '| sum f32 | last axis | 50 |' in slow.stdout, slow.stdout)
    with open('rows.svg', encoding='utf-8') as file:
        drawn = file.read()
    expect('the picture', drawn.count('<circle') == 100 and drawn.count('<polyline') == 4, drawn[:200])
    other = found([*rows, row(7, 0, 100, 0, dtype='f64')])
    expect('other types are no neighbours', other.returncode == 0, other.stdout)
    wrong = found([*rows, row(7, 0, 20, right=False)])
    expect('a wrong answer', wrong.returncode == 1 and '1 wrong' in wrong.stdout, wrong.stdout)
    expect('nothing measured', found([]).returncode == 1, '')
    print('\n'.join([*failures, f'{passed} passed, {len(failures)} failed']))
    return 1 if failures else 0


if __name__ == '__main__':
    with tempfile.TemporaryDirectory(prefix='red-peers-') as folder:
        os.chdir(folder)
        status = main()
        os.chdir('/')
    sys.exit(status)

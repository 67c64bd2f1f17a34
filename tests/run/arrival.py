#!/usr/bin/env python3
"""The simulator notices when the last block of a reduction over the grid may come too early: each fence, barrier and count of the arrival is broken in
turn, in the IR behind pass `barriers`, and the code of it runs beside that of the program. A mutant must be refused by `prove`, be reported, or leave
another result or a counter that is not zero."""

import os
import re
import subprocess
import sys
import tempfile

REDC = os.environ['REDC']
PROGRAM = '''kernel k(A: f32[m, n]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[j, i]; } }
schedule k { split i by 4 -> io, ii; split j by 16 -> j1, js; split j1 into 5 -> jb, jr; bind io -> block.x; bind jb -> block.y; bind ii -> thread.x;
  bind js -> thread.y; combine jb by last_block; }
'''
ARGUMENTS = ['--size', 'm=300', '--size', 'n=8', '--arg', 'A=i0%7+i1']


def run(args):
    return subprocess.run([REDC, *args], capture_output=True, text=True, timeout=120)


def mutants(ir):
    lines = ir.split('\n')
    place = next(i for i, line in enumerate(lines) if 'atomic_flat' in line)
    for i in range(place - 4, place + 7):
        if re.match(r'\s*(fence|barrier)\b', lines[i]):
            yield f'line {i + 1} without {lines[i].strip()}', '\n'.join(lines[:i] + lines[i + 1:])
    line = lines[place]
    yield 'one block more is waited for', '\n'.join(lines[:place] + [line.replace('4:u32', '5:u32')] + lines[place + 1:])
    yield 'the counter is not reset', '\n'.join(lines[:place] + [line.replace(' = inc ', ' = add ').replace(' by 4:u32', ' by 1:u32')] + lines[place + 1:])
    test = next(i for i in range(place, len(lines)) if re.match(r'\s*if eq\(arrived', lines[i]))
    yield 'the last but one combines', '\n'.join(lines[:test] + [lines[test].replace('4:u32', '3:u32')] + lines[test + 1:])


def notices(folder, name, text):
    path, code = os.path.join(folder, 'm.ir'), os.path.join(folder, 'm.ptx')
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)
    done = run([path, '-o', code])
    if done.returncode:
        return 'refused'
    for seed in range(1, 9):
        done = run(['run', os.path.join(folder, 'k.red'), *ARGUMENTS, '--device=sim', '--seed', str(seed), '--twin', code])
        if done.returncode:
            return done.stderr.strip().split('\n')[0]
    return None


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        source, dump = os.path.join(folder, 'k.red'), os.path.join(folder, 'k.ir')
        with open(source, 'w', encoding='utf-8') as f:
            f.write(PROGRAM)
        done = run([source, '--stop-after=barriers', '-o', dump])
        if done.returncode:
            print(done.stderr)
            return 1
        with open(dump, encoding='utf-8') as f:
            ir = f.read()
        if notices(folder, 'unchanged', ir):
            print('the unchanged program fails:', notices(folder, 'unchanged', ir))
            return 1
        count = 0
        for name, text in mutants(ir):
            count += 1
            how = notices(folder, name, text) if text != ir else None
            if '-v' in sys.argv:
                print(f'{name}: {how}')
            if not how:
                failed += 1
                print(f'{name}: nobody noticed')
    print(f'{count - failed} mutants noticed, {failed} not')
    return 1 if failed or count < 7 else 0


if __name__ == '__main__':
    sys.exit(main())

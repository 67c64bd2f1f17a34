#!/usr/bin/env python3
"""Ninja takes the files that redc -MD writes: what is built anew is what depends on the file that changed, and one that went away is no error with -MP."""
import os
import shutil
import subprocess
import sys
import tempfile
import time

RULES = """
rule read
  command = {redc} $in $more -D m=16 -o $out -MD -MF $out.d -MP
  depfile = $out.d
  deps = gcc
rule keep
  command = {redc} $in -D m=16 -o $out -MD
  depfile = other.d
build k.ptx: read k.red
  more = @args
build other.cu: keep other.red
"""
KERNEL = 'kernel {}(A: f32[n, m]) -> (B: f32[n]) {{ for i in n {{ B[i] = sum(j in m) A[i, j]; }} }}\n'


def put(folder, name, text):
    time.sleep(0.02)  # newer than what was built
    with open(os.path.join(folder, name), 'w') as f:
        f.write(text)


def main():
    ninja, wrong = shutil.which('ninja'), []
    if not ninja:
        print('skipped: ninja was not found')
        return 77
    with tempfile.TemporaryDirectory(prefix='red-ninja-') as folder:
        files = {'k.red': KERNEL.format('k'), 'other.red': KERNEL.format('other'), 's.red': 'schedule k { bind i -> block.x; }\n', 'args': 's.red\n',
                 'build.ninja': RULES.format(redc=os.environ['REDC'])}
        for name, text in files.items():
            put(folder, name, text)

        def step(title, wanted):
            done = subprocess.run([ninja, '-v', '-C', folder], capture_output=True, text=True, check=False)
            built = {target for target in ('k.ptx', 'other.cu') if f'-o {target}' in done.stdout}
            if done.returncode or built != wanted:
                wrong.append(f'{title}: built {sorted(built)}, not {sorted(wanted)}; {done.stdout[-300:]}{done.stderr[-300:]}')

        step('at first', {'k.ptx', 'other.cu'})
        step('again', set())
        for name, wanted in (('s.red', {'k.ptx'}), ('k.red', {'k.ptx'}), ('other.red', {'other.cu'})):
            put(folder, name, files[name])
            step(f'{name} changed', wanted)
        put(folder, 't.red', 'schedule k { unroll j by 4; }\n')
        put(folder, 'args', 't.red\n')
        os.remove(os.path.join(folder, 's.red'))
        step('s.red gone', {'k.ptx'})
    print('\n'.join([*wrong, f'{6 - len(wrong)} passed, {len(wrong)} failed']))
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())

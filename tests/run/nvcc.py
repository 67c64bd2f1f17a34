#!/usr/bin/env python3
"""What `redc check` says of kernels that nvcc compiled: tests/sim/nvcc holds faulty ones and their right twins.

Each NAME.cu begins with the command that runs it and what that prints. A line that ends with "// KIND" is where a finding of
that kind belongs; "// shuffle" is the line that a finding of poison names as its origin. NAME.ptx is what nvcc made of it, so
that the test runs everywhere; where nvcc is found, it also runs what that nvcc makes.

  REDC=build/redc RED_SOURCE_DIR=. python3 tests/run/nvcc.py [--update]     # --update writes the .ptx files anew
"""
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

REDC = os.environ['REDC']
FOLDER = os.path.join(os.environ['RED_SOURCE_DIR'], 'tests', 'sim', 'nvcc')
NVCC = shutil.which('nvcc') or shutil.which('nvcc', path=os.path.join(os.environ.get('CUDA_HOME', '/usr/local/cuda'), 'bin'))
SEEDS = range(1, 6)


def compile_to(path, out):
    """PTX of a .cu file; the names of files in it have no folder."""
    subprocess.run([NVCC, '-arch=sm_75', '-ptx', '-lineinfo', path, '-o', out], check=True)
    with open(out, encoding='utf-8') as f:
        text = f.read()
    with open(out, 'w', encoding='utf-8') as f:
        f.write(re.sub(r'(?m)^(\t\.file\t\d+ )".*/([^/"]+)"', r'\1"\2"', text))


def check(name, source, ptx):
    """What is wrong with what is said of one PTX file."""
    lines = source.split('\n')
    command = shlex.split(lines[0].removeprefix('// redc check'))
    prints = lines[1].removeprefix('// ')
    wanted = {}
    for number, line in enumerate(lines, 1):
        mark = re.search(r'; // ([a-z-]+)$', line)
        if mark:
            wanted.setdefault(mark[1], set()).add(number)
    origins = wanted.pop('shuffle', set())
    wrong = []
    for seed in SEEDS:
        done = subprocess.run([REDC, 'check', ptx, *command, f'--seed={seed}', '--jobs=1'], capture_output=True, text=True, check=False)
        found = [re.match(r'(\S+):(\d+):\d+: ([a-z-]+): ', l) for l in done.stderr.splitlines()]
        where = f'{ptx}, seed {seed}'
        if any(f is None for f in found):
            wrong.append(f'{where}: a line that is no finding: {done.stderr}')
            continue
        if done.returncode != (1 if wanted else 0):
            wrong.append(f'{where}: exit status {done.returncode}\n{done.stderr}')
        if not wanted and done.stdout.strip() != prints:
            wrong.append(f'{where}: printed {done.stdout.strip()}, not {prints}')
        for f, line in zip(found, done.stderr.splitlines()):
            # what stands in a function of CUDA's headers is named with the place of its call
            inlined = re.search(r'; inlined at (\S+):(\d+):\d+;', line)
            file, number = inlined.groups() if inlined else (f[1], f[2])
            if os.path.basename(file) != f'{name}.cu' or int(number) not in wanted.get(f[3], ()):
                wrong.append(f'{where}: not expected: {line}')
            origin = re.search(r'; the shuffle: \S*?([^/\s]+):(\d+):\d+, ', line)
            if f[3] == 'poison' and (not origin or origins and int(origin[2]) not in origins and origin[1] == f'{name}.cu'):
                wrong.append(f'{where}: not where the value comes from: {line}')
        missing = set(wanted) - {f[3] for f in found}
        if missing:
            wrong.append(f'{where}: no finding {", ".join(sorted(missing))}')
    return wrong


def main():
    sources = sorted(glob.glob(os.path.join(FOLDER, '*.cu')))
    wrong, runs = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        for path in sources:
            name = os.path.basename(path)[:-3]
            stored = os.path.join(FOLDER, f'{name}.ptx')
            if '--update' in sys.argv:
                compile_to(path, stored)
            with open(path, encoding='utf-8') as f:
                source = f.read()
            made = [stored]
            if NVCC:
                made.append(os.path.join(scratch, f'{name}.ptx'))
                compile_to(path, made[-1])
            for ptx in made:
                runs += 1
                wrong += check(name, source, ptx)
    if not NVCC:
        print('skipped: nvcc was not found; what is stored was run')
    print('\n'.join(wrong))
    print(f'{runs - len({w.split(",")[0] for w in wrong})} passed, {len({w.split(",")[0] for w in wrong})} failed')
    return 1 if wrong or not sources else 0


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
"""How much of the compiler the generated cases of differential.py reach: lines of passes/ and codegen/, by gcov.

  tests/fuzz/coverage.py [--count 2000] [--seed 1] [--build build/coverage]     # builds redc with --coverage, runs cases, prints a table

docs/fuzzing.md says what the cases are.
"""
import argparse
import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FOLDERS = ('passes', 'codegen')


def build(folder, jobs):
    subprocess.run(['cmake', '-S', ROOT, '-B', folder, '-G', 'Ninja', '-DCMAKE_BUILD_TYPE=None', '-DCMAKE_C_FLAGS=--coverage -O0',
                    '-DCMAKE_EXE_LINKER_FLAGS=--coverage -Wl,-u,__gcov_dump,-u,__gcov_reset', '-DBUILD_TESTING=OFF'], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(['ninja', '-C', folder, f'-j{jobs}', 'redc'], check=True, stdout=subprocess.DEVNULL)


def measure(folder):
    """Lines reached and lines of each source file."""
    found = {}
    for data in glob.glob(os.path.join(folder, '**', '*.gcda'), recursive=True):
        done = subprocess.run(['gcov', '-n', data], cwd=folder, capture_output=True, text=True, check=False)
        for path, percent, count in re.findall(r"File '(.*?)'\nLines executed:([\d.]+)% of (\d+)", done.stdout):
            path = os.path.relpath(os.path.join(folder, path) if not os.path.isabs(path) else path, ROOT)
            if path.startswith(tuple(f'{f}/' for f in FOLDERS)) and path.endswith('.c'):
                found[path] = (round(float(percent) * int(count) / 100), int(count))
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--count', type=int, default=2000)
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--build', default=os.path.join(ROOT, 'build', 'coverage'))
    p.add_argument('--jobs', type=int, default=os.cpu_count())
    a = p.parse_args()
    build(a.build, a.jobs)
    for data in glob.glob(os.path.join(a.build, '**', '*.gcda'), recursive=True):
        os.remove(data)
    subprocess.run([sys.executable, os.path.join(HERE, 'differential.py'), '--redc', os.path.join(a.build, 'redc'), f'--count={a.count}', f'--seed={a.seed}',
                    f'--jobs={a.jobs}', '--nvcc=8', '--most-faults=1000000', '--no-reduction'], check=False)
    found = measure(a.build)
    print('| file | lines | reached |\n| --- | ---: | ---: |')
    for path, (reached, count) in sorted(found.items()):
        print(f'| {path} | {count} | {100 * reached / max(count, 1):.0f} % |')
    reached, count = (sum(x[i] for x in found.values()) for i in (0, 1))
    print(f'| all | {count} | {100 * reached / max(count, 1):.0f} % |')
    return 0 if found else 1


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
"""How much of the compiler the generated cases of differential.py reach: lines of passes/, codegen/ and the front end, by gcov.

  tests/fuzz/coverage.py [--count 2000] [--seed 1] [--build build/coverage]     # builds redc with --coverage, runs cases, prints a table
  tests/fuzz/coverage.py --missed FILE ...                                      # and writes each line that was not reached to FILE

Each case is run as `differential.py --bulk` does, and compiled once more for what a run does not make: CUDA text, a header for C, --explain and
--remarks, in turn. docs/fuzzing.md says what the cases are.
"""
import argparse
import concurrent.futures
import glob
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from differential import features  # noqa: E402
from generate import Case  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(HERE))
FOLDERS = ('passes', 'codegen', 'grammar', 'compiler')
WRITES = (['--emit=cuda', '--all-entries'], ['--explain', '--remarks'], ['--emit=header'], ['--emit=ptx', '--verify-each', '--remarks'])
BESIDES = ('grammar/lift', 'grammar/ptx', 'compiler/lift', 'compiler/inspect', 'compiler/tune', 'compiler/bench', 'compiler/jit', 'compiler/npy', 'compiler/run', 'compiler/cache')  # no part of a compilation


def build(folder, jobs):
    subprocess.run(['cmake', '-S', ROOT, '-B', folder, '-G', 'Ninja', '-DCMAKE_BUILD_TYPE=None', '-DCMAKE_C_FLAGS=--coverage -O0',
                    '-DCMAKE_EXE_LINKER_FLAGS=--coverage -Wl,-u,__gcov_dump,-u,__gcov_reset', '-DBUILD_TESTING=OFF'], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(['ninja', '-C', folder, f'-j{jobs}', 'redc'], check=True, stdout=subprocess.DEVNULL)


def measure(folder):
    """Of each source file, how often each line was reached."""
    found = {}
    for data in glob.glob(os.path.join(folder, '**', '*.gcda'), recursive=True):
        done = subprocess.run(['gcov', '--json-format', '--stdout', data], cwd=folder, capture_output=True, check=False)
        for text in done.stdout.splitlines():
            for file in json.loads(text)['files']:
                path = os.path.relpath(os.path.join(folder, file['file']), ROOT)
                if path.startswith(tuple(f'{f}/' for f in FOLDERS)) and path.endswith('.c') and not path.startswith(BESIDES):
                    lines = found.setdefault(path, {})
                    for line in file['lines']:
                        lines[line['line_number']] = lines.get(line['line_number'], 0) + line['count']
    return found


def compile_one(redc, number, features):
    """A case compiled for what a run does not make."""
    case = Case(number, features)
    with tempfile.TemporaryDirectory(prefix='red-coverage-') as folder:
        paths = []
        for i, text in enumerate(case.files()):
            paths.append(os.path.join(folder, f'k{i}.red'))
            with open(paths[-1], 'w') as f:
                f.write(text)
        arguments = case.arguments()
        kept = [a for i, a in enumerate(arguments) if a == '-D' or a.startswith('--arch') or (i and arguments[i - 1] == '-D')] + case.options
        subprocess.run([redc, *paths, *kept, '-O0', *WRITES[number % len(WRITES)]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300, check=False)


def show(title, lines):
    reached, count = sum(1 for file in lines for n in file.values() if n), sum(len(file) for file in lines)
    print(f'| {title} | {count} | {100 * reached / max(count, 1):.1f} % |')


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--count', type=int, default=2000)
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--build', default=os.path.join(ROOT, 'build', 'coverage'))
    p.add_argument('--jobs', type=int, default=os.cpu_count())
    p.add_argument('--missed', help='write the lines that were not reached to this file')
    a = p.parse_args()
    build(a.build, a.jobs)
    for data in glob.glob(os.path.join(a.build, '**', '*.gcda'), recursive=True):
        os.remove(data)
    redc = os.path.join(a.build, 'redc')
    subprocess.run([sys.executable, os.path.join(HERE, 'differential.py'), '--redc', redc, f'--count={a.count}', f'--seed={a.seed}',
                    f'--jobs={a.jobs}', '--bulk', '--most-faults=1000000', '--no-reduction'], check=False)
    beyond = features(redc)
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        list(pool.map(lambda n: compile_one(redc, n, beyond), range(a.seed * 1000000, a.seed * 1000000 + a.count)))
    found = measure(a.build)
    print('| of | lines | reached |\n| --- | ---: | ---: |')
    for path in sorted(found):
        show(path, [found[path]])
    for folder in FOLDERS:
        show(f'all of {folder}', [lines for path, lines in found.items() if path.startswith(folder)])
    show('passes and codegen', [lines for path, lines in found.items() if path.startswith(FOLDERS[:2])])
    if a.missed:
        with open(a.missed, 'w') as out:
            for path in sorted(found):
                with open(os.path.join(ROOT, path), errors='replace') as f:
                    text = f.read().split('\n')
                out.writelines(f'{path}:{n}: {text[n - 1]}\n' for n in sorted(found[path]) if not found[path][n] and n <= len(text))
    return 0 if found else 1


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
"""redc inspect on kernels that are wrong and on their right twins: kernels.py --redc build/redc

In tests/inspect/kernels/*.cu and *.ptx, a comment `// expect: KIND` ends each line on which exactly that must be found; nothing else may be
found anywhere. The first line gives the options. The CUDA that red prints for every example must have no finding but of speed, its PTX none; the same for random
kernels under random and automatic schedules (--random FROM COUNT).
"""
import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'fuzz'))
from generate import Case  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SPEED = {'uncoalesced', 'bank-conflict'}


def found_by(redc, arguments):
    run = subprocess.run([redc, 'inspect', '--json', *arguments], cwd=ROOT, capture_output=True, text=True)
    if run.returncode:
        return None, run.stderr
    if arguments[-1].endswith('.ptx'):
        return {(int(line), kind) for line, kind in re.findall(r'^\S+:(\d+):\d+: warning: .*\[(\S+)\]$', run.stderr, re.M)}, ''
    kernels = json.loads(run.stdout)['kernels']
    return {(finding['line'], finding['kind']) for kernel in kernels for finding in kernel['findings']}, ''


def check_file(redc, path):
    with open(path, encoding='utf-8') as file:
        lines = file.read().splitlines()
    expected = {(number, kind) for number, line in enumerate(lines, 1) for kind in re.findall(r'// expect: (\S+)', line)}
    options = re.match(r'// options:(.*)', lines[0])[1].split()
    found, error = found_by(redc, [*options, path])
    if found is None:
        return [f'{path}: {error}']
    wrong = [f'{path}:{line}: {kind} was not found' for line, kind in sorted(expected - found)]
    return wrong + [f'{path}:{line}: {kind} was found' for line, kind in sorted(found - expected)]


def check_output(redc, name, arguments):
    """What red prints has no finding, but for speed in its CUDA. A program that may be refused is none."""
    found, error = found_by(redc, ['--all-entries', *arguments])
    if found is None:
        return [] if re.search(r'\[E[1-4]\d\d\]', error) and 'internal' not in error else [f'{name}: {error}']
    wrong = [f'{name}: line {line} of its CUDA: {kind}' for line, kind in sorted(found) if kind not in SPEED]
    with tempfile.TemporaryDirectory() as folder:
        ptx = os.path.join(folder, 'k.ptx')
        subprocess.run([redc, *arguments, '-o', ptx], cwd=ROOT, check=True, capture_output=True)
        found, error = found_by(redc, [ptx])
    if found is None:
        return [*wrong, f'{name}: its PTX: {error}']
    return wrong + [f'{name}: line {line} of its PTX: {kind}' for line, kind in sorted(found)]


def check_random(redc, number):
    case = Case(number, ('shared', 'combine', 'grid', 'cache', 'blocks'))
    words = case.arguments()
    options = [word for at, name in enumerate(words) if name == '-D' for word in ('-D', words[at + 1])]
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, f'k{i}.red') for i in range(len(case.files()))]
        for path, text in zip(paths, case.files()):
            with open(path, 'w', encoding='utf-8') as file:
                file.write(text)
        return check_output(redc, f'random kernel {number}', [*paths, *options])


def check_example(redc, path):
    """The options that the example's own comments give it, over all its kernels."""
    with open(path, encoding='utf-8') as file:
        text = file.read()
    commands = re.findall(r'^// redc (\S+\.red.*)$', text, re.M)
    options = []
    for command in commands[:1]:
        options = [word for pair in re.findall(r'-D (\S+)', command) for word in ('-D', pair)]
    return check_output(redc, path, [path, *options])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--redc', default=os.path.join(ROOT, 'build', 'redc'))
    parser.add_argument('--random', nargs=2, type=int, default=(1, 3), metavar=('FROM', 'COUNT'), help='which random kernels')
    arguments = parser.parse_args()
    redc = os.path.abspath(arguments.redc)
    if not os.path.exists(os.path.join(os.path.dirname(redc), 'redc-clang')):
        print('skipped: redc-clang was not built')
        return 77
    passed = failed = 0
    checks = [(check_file, (redc, path)) for path in sorted(glob.glob(os.path.join(HERE, 'kernels', '*.*')))]
    checks += [(check_example, (redc, path)) for path in sorted(glob.glob(os.path.join(ROOT, 'examples', '*.red')))]
    checks += [(check_random, (redc, arguments.random[0] + number)) for number in range(arguments.random[1])]
    for check, what in checks:
        wrong = check(*what)
        failed += bool(wrong)
        passed += not wrong
        for line in wrong:
            print(line)
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())

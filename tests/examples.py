#!/usr/bin/env python3
"""Runs what the examples say about themselves, and gives what they compile to to ptxas and nvcc.

A comment line of examples/*.red that starts with "// redc " is a command; it is run in a folder that holds a copy of the
examples and must succeed. Each example has at least one that compiles. Each of those is compiled once more to PTX and to CUDA
for the lowest and for the newest target, and these go through ptxas and `nvcc -Werror all-warnings` where they are found.
"""

import argparse
import concurrent.futures
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VERBS = ('run', 'check', 'schedule', 'tune', 'bench', 'inspect', 'lift')


def find_tool(name):
    """A tool of the CUDA toolkit, or None."""
    home = os.environ.get('CUDA_HOME', '/usr/local/cuda')
    return shutil.which(name) or shutil.which(name, path=os.path.join(home, 'bin'))


def targets_of(text):
    """The plain targets that a text names, in order: sm_90 yes, sm_90a no."""
    return sorted({int(n) for n in re.findall(r'\bsm_([0-9]+)\b', text)})


def own_targets():
    with open(os.path.join(ROOT, 'compiler', 'targets.def'), encoding='utf-8') as f:
        return targets_of('\n'.join(re.findall(r'^G\("(\w+)"', f.read(), flags=re.M)))


def tool_targets(tool, option):
    done = subprocess.run([tool, option], capture_output=True, text=True, check=False)
    return targets_of(done.stdout)


def commands_of(path):
    """The arguments of each "// redc ..." line. A command ends where a comment of its own begins, "  # ..."."""
    with open(path, encoding='utf-8') as f:
        for line in f:
            m = re.match(r'\s*// redc (.*)', line)
            if m:
                yield shlex.split(m[1], comments=True)


def compile_arguments(arguments):
    """The arguments without those that say what is written where and for what."""
    out, skip = [], False
    for a in arguments:
        if skip:
            skip = False
        elif a in ('-o', '--emit', '--arch'):
            skip = True
        elif not re.match(r'--(emit|arch|print|out)\b|-o', a):
            out.append(a)
    return out


class Checker:
    def __init__(self, redc, folder):
        self.redc, self.folder = redc, folder
        self.passed, self.failed, self.skipped = 0, 0, 0
        self.own = own_targets()
        self.ptxas, self.nvcc = find_tool('ptxas'), find_tool('nvcc')
        self.pairs = {}
        for tool, option in ((self.ptxas, '--help'), (self.nvcc, '--list-gpu-code')):
            if tool:
                known = tool_targets(tool, option)
                both = [t for t in self.own if t in known]
                # The lowest that both know, and our newest on the newest that the tool knows.
                self.pairs[tool] = [(both[0], both[0]), (self.own[-1], known[-1])]

    def step(self, what, command):
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode or what.startswith(('ptxas', 'nvcc')) and (done.stdout + done.stderr).strip():
            return f'FAILED {what}\n  $ {shlex.join(command)}\n{done.stdout}{done.stderr}'
        return None

    def jobs(self):
        for path in sorted(glob.glob(os.path.join(self.folder, '*.red'))):
            name = os.path.basename(path)
            commands = list(commands_of(path))
            compiles = [c for c in commands if c and c[0] not in VERBS]
            if not compiles:
                yield lambda name=name: f'FAILED {name}: no comment line "// redc ..." that compiles it'
            for c in commands:
                yield lambda c=c, name=name: self.step(f'{name}: redc', [self.redc] + c)
            # One command may differ from the next in what is written alone.
            programs = {tuple(compile_arguments(c)): None for c in compiles}
            for number, c in enumerate(programs):
                stem = f'{name}-{number}'
                for emit, tool in (('ptx', self.ptxas), ('cuda', self.nvcc)):
                    for own, its in self.pairs.get(tool, []):
                        yield lambda a=(stem, list(c), emit, tool, own, its): self.assemble(*a)

    def assemble(self, stem, arguments, emit, tool, own, its):
        out = f'{stem}-{own}.{"ptx" if emit == "ptx" else "cu"}'
        wrong = self.step(f'{stem}: redc --emit={emit} --arch=sm_{own}',
                          [self.redc] + arguments + [f'--emit={emit}', f'--arch=sm_{own}', '-o', out])
        if wrong:
            return wrong
        cubin = f'{out}-{its}.cubin'
        if emit == 'ptx':
            return self.step(f'ptxas {out}', [tool, f'-arch=sm_{its}', out, '-o', cubin])
        return self.step(f'nvcc {out}', [tool, '-Werror', 'all-warnings', f'-arch=sm_{its}', '-cubin', out, '-o', cubin])

    def run(self, jobs):
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for wrong in pool.map(lambda job: job(), self.jobs()):
                if wrong:
                    self.failed += 1
                    print(wrong, flush=True)
                else:
                    self.passed += 1
        for name, tool in (('ptxas', self.ptxas), ('nvcc', self.nvcc)):
            if tool:
                print(f'{name}: {tool}, ' + ', '.join(f'sm_{a} on sm_{b}' for a, b in self.pairs[tool]))
            else:
                self.skipped += 1
                print(f'skipped: {name} was not found')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--redc', default=os.path.join(ROOT, 'build', 'redc'))
    parser.add_argument('-j', '--jobs', type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix='red-examples-') as scratch:
        folder = os.path.join(scratch, 'examples')
        shutil.copytree(os.path.join(ROOT, 'examples'), folder)
        checker = Checker(os.path.abspath(options.redc), folder)
        checker.run(options.jobs)
    if not checker.passed + checker.failed:
        print('FAILED no examples')
        checker.failed = 1
    print(f'{checker.passed} passed, {checker.failed} failed, {checker.skipped} skipped')
    return 1 if checker.failed else 0


if __name__ == '__main__':
    sys.exit(main())

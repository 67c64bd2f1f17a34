#!/usr/bin/env python3
"""Everything that needs a GPU, in one run. Needs no LLVM and no network: what was built elsewhere is in the folder $RED_BUILD.

    python3 tests/gpu.py --pack .gpu          # where red was built: the folder to take along (a compressed archive)
    RED_BUILD=.gpu python3 tests/gpu.py       # where the GPU is: all parts
    RED_BUILD=.gpu python3 tests/gpu.py examples tensors

Each part is a line; what failed is printed in front of it. The last line is "N passed, N failed, N skipped", over all parts. nvcc, PyTorch, CuPy, JAX and
compute-sanitizer are used where they are found. At most three processes hold the GPU at once.
"""

import argparse
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
JOBS = 3
PARTS = {}
PACKED = ['redc', 'libred.so.0', 'libred-rt.so.0']


class Context:
    """Where what was built lies, and counts."""

    def __init__(self, build, scratch):
        self.build, self.scratch = build, scratch
        self.env = dict(os.environ, REDC=f'{build}/redc', LIBRED=build, RED_BUILD_DIR=build, RED_SOURCE_DIR=ROOT, RED_DEVICE='cuda', RED_JOBS=str(JOBS),
                        RED_CACHE_DIR=f'{scratch}/cache', PYTHONPATH=f'{ROOT}/runtime/python', LD_LIBRARY_PATH=f'{build}:' + os.environ.get('LD_LIBRARY_PATH', ''),
                        PYTHONUNBUFFERED='1')
        self.total = [0, 0, 0]

    def run(self, command, timeout=300, cwd=None, **env):
        """(status, output); a command that does not end has status 124."""
        try:
            done = subprocess.run(command, cwd=cwd or ROOT, env={**self.env, **env}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  errors='replace', timeout=timeout, check=False)
            return done.returncode, done.stdout
        except FileNotFoundError:
            return 127, f'{command[0]} was not found'
        except subprocess.TimeoutExpired as late:
            return 124, (late.stdout or b'').decode(errors='replace') + f'\nno end after {timeout} s\n'


def part(function):
    PARTS[function.__name__] = function
    return function


def from_counts(status, output):
    """(passed, failed, skipped, text) of a script whose last line counts; its other lines are shown where something failed."""
    lines = output.strip().splitlines() or ['no output']
    found = {what: int(n) for n, what in re.findall(r'(\d+) (passed|failed|skipped)', lines[-1])}
    if status == 77:
        return 0, 0, 1, lines[-1]
    passed, failed, skipped = (found.get(k, 0) for k in ('passed', 'failed', 'skipped'))
    if status and not failed:
        failed = 1
    if not passed + failed + skipped:
        failed = 1
    quiet = [line for line in lines[:-1] if line.startswith(('skipped', 'FAILED'))]
    return passed, failed, skipped, '\n'.join(lines[:-1][-60:] if failed else quiet)


def script(context, *command, timeout=300):
    return from_counts(*context.run([sys.executable, *command], timeout=timeout))


# ---- Parts: each returns (passed, failed, skipped, text)


@part
def machine(context):
    """The GPU and the tools."""
    _, gpu = context.run(['nvidia-smi', '--query-gpu=name,driver_version,memory.total', '--format=csv,noheader'])
    _, compiler = context.run([f'{context.build}/redc', '--version'])
    nvcc = shutil.which('nvcc')
    _, toolkit = context.run([nvcc, '--version']) if nvcc else (0, 'no nvcc')
    status_run, run = context.run([f'{context.build}/redc', 'run', 'examples/01-rowsum.red', '-D', 'm=11', '--size', 'n=4', '--arg', 'A=1000*i0+i1', '--check',
                                   '--device=cuda'])
    print(f'{gpu.strip()}; {compiler.strip()}; {toolkit.strip().splitlines()[-1]}')
    return (1, 0, 0, '') if status_run == 0 else (0, 1, 0, run)


@part
def examples(context):
    """The C examples, against the shared libraries; Python's."""
    compiler = shutil.which('cc') or shutil.which('gcc') or shutil.which('clang')
    if not compiler:
        return 0, 0, 1, 'there is no C compiler'
    passed, failed, texts = 0, 0, []
    folder = f'{context.scratch}/examples'
    shutil.copytree(f'{ROOT}/examples', folder)
    for library in ('red', 'red-rt'):
        os.symlink(f'{context.build}/lib{library}.so.0', f'{folder}/lib{library}.so')
    context.run([f'{context.build}/redc', '01-rowsum.red', '-D', 'm=11', '-o', 'rowsum.h'], cwd=folder)
    for path in sorted(glob.glob(f'{folder}/*.c')):
        name = os.path.basename(path)[:-2]
        library = 'red-rt' if 'ahead-of-time' in name else 'red'
        status, said = context.run([compiler, '-std=c11', '-D_GNU_SOURCE', '-O2', '-Wall', '-I.', f'-I{ROOT}/runtime', f'{name}.c', '-o', name, '-L.', f'-l{library}', '-ldl', '-lm', '-lpthread'],
                                   cwd=folder)
        if status == 0:
            status, said = context.run([f'./{name}'], cwd=folder, timeout=120)
        passed, failed = passed + (status == 0), failed + (status != 0)
        if status:
            texts.append(f'FAILED {name}: status {status}\n{said}')
    skipped = 0
    for path in sorted(glob.glob(f'{folder}/*.py')):
        status, said = context.run([sys.executable, path], cwd=folder)
        passed, failed, skipped = passed + (status == 0), failed + (status not in (0, 77)), skipped + (status == 77)
        if status:
            texts.append(f'{"skipped" if status == 77 else "FAILED"} {os.path.basename(path)}: {said}')
    return passed, failed, skipped, '\n'.join(texts)


def run_lines():
    """The arguments of each "// redc run" line of the examples and of the language reference's programs, on a GPU."""
    for path in sorted(glob.glob(f'{ROOT}/examples/*.red')):
        with open(path, encoding='utf-8') as f:
            for m in re.finditer(r'^// redc run (.*)', f.read(), flags=re.M):
                arguments = [a for a in shlex.split(m[1], comments=True) if not a.startswith(('--device', '--seed', '--jobs', '--stats'))]
                yield [f'{ROOT}/examples/{a}' if a.endswith('.red') else a for a in arguments]


def documented(folder):
    """The programs of docs/language.md and README.md that say how they are run."""
    number = 0
    for page in ('docs/language.md', 'README.md'):
        with open(f'{ROOT}/{page}', encoding='utf-8') as f:
            for m in re.finditer(r'^```red ([^\n]*; *run[^\n]*)\n(.*?)^```', f.read(), flags=re.M | re.S):
                compile_arguments, _, run_arguments = m[1].partition(';')
                number += 1
                path = f'{folder}/{number}.red'
                with open(path, 'w', encoding='utf-8') as out:
                    out.write(m[2])
                arguments = shlex.split(compile_arguments) + shlex.split(run_arguments.strip().removeprefix('run'))
                if not any(a.startswith('--device') for a in arguments):
                    yield [path, *arguments]


def batch(context, lines, *common, wrapper=()):
    """Runs the lines by redc run --batch on the GPU."""
    with tempfile.NamedTemporaryFile('w', suffix='.txt') as f:
        f.write(''.join(shlex.join(line) + '\n' for line in lines))
        f.flush()
        status, said = context.run([*wrapper, f'{context.build}/redc', 'run', f'--batch={f.name}', '--timeout=60', f'--jobs={1 if wrapper else JOBS}', '--device=cuda',
                                    '--check', *common], timeout=400)
    return status, said


def failures_of(said, lines):
    """What a batch printed of the runs that failed."""
    texts, keep = [], False
    for text in said.splitlines():
        head = re.match(r'(\d+): (.*)', text)
        if head:
            keep = head[2] != 'ok'
            if keep:
                texts.append(f'FAILED {shlex.join(lines[int(head[1]) - 1])}: {head[2]}')
        elif keep:
            texts.append(text)
    return texts


@part
def programs(context):
    """Every run that the examples and the documents name, compared with the reference."""
    os.makedirs(f'{context.scratch}/docs')
    lines = [*run_lines(), *documented(f'{context.scratch}/docs')]
    status, said = batch(context, lines)
    passed, failed, skipped, text = from_counts(status, said)
    return passed, failed, skipped, '\n'.join(failures_of(said, lines)) or (text if failed else '')


@part
def cases(context):
    """Inputs that break kernels, with answers in closed form."""
    return script(context, 'tests/run/cases.py', timeout=400)


@part
def tensors(context):
    """red.permute, red.reduce, streams, graphs and threads beside PyTorch; CuPy; JAX."""
    return script(context, 'tests/gpu/tensors.py', timeout=400)


@part
def backends(context):
    """PTX from LLVM and from nvcc, bit by bit."""
    return script(context, 'tests/gpu/backends.py', timeout=400)


@part
def arithmetic(context):
    """The simulator's arithmetic beside the GPU's, bit by bit."""
    status, said = context.run([sys.executable, 'tests/gpu/arithmetic.py', '--jobs=8', '--verbose'], timeout=200)
    passed, failed, skipped, text = from_counts(status, said)
    return passed, failed, skipped, '\n'.join(said.splitlines()[:-1][:400]) if failed else text


@part
def fuzz(context):
    """Random programs under random schedules, at fixed seeds."""
    total = [0, 0, 0]
    texts = []
    for seed in (1, 2):
        result = script(context, 'tests/fuzz/differential.py', f'--redc={context.build}/redc', '--device=cuda', f'--seed={seed}', '--count=250', f'--jobs={JOBS}', timeout=300)
        total = [a + b for a, b in zip(total, result)]
        texts += [result[3]] if result[1] else []
    return (*total, '\n'.join(texts))


@part
def sanitizer(context):
    """A sample under compute-sanitizer's four tools."""
    tool = shutil.which('compute-sanitizer') or shutil.which('compute-sanitizer', path='/usr/local/cuda/bin')
    if not tool:
        return 0, 0, 4, 'skipped: compute-sanitizer was not found'
    lines = list(run_lines())
    lines += [[path, '--size', 'n=70', '--size', 'm=130', '--arg', 'A=i0-i1'] for path in write_sample(context.scratch)]
    passed, failed, skipped, texts = 0, 0, 0, []
    for name in ('memcheck', 'racecheck', 'initcheck', 'synccheck'):
        status, said = batch(context, lines, wrapper=[tool, f'--tool={name}', '--target-processes=all', '--error-exitcode=9'])
        refused = re.search(r'.*(?:not supported|Unable to|unsupported).*', said) if 'passed' not in said or status == 0 and 'ERROR SUMMARY' not in said else None
        if refused:
            skipped += 1
            texts.append(f'skipped {name}: {refused[0].strip()}')
        elif status == 0 and 'ERROR SUMMARY: 0 errors' in said or status == 0 and name == 'racecheck' and ' 0 hazards' in said:
            passed += 1
        else:
            failed += 1
            wanted = [line for line in said.splitlines() if line.startswith('=========')]
            texts.append('\n'.join([f'FAILED {name}: status {status}', *wanted[:40], *failures_of(said, lines)[:20]]))
    return passed, failed, skipped, '\n'.join(texts)


SAMPLE = ['kernel k(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }',
          'kernel k(A: f32[n, m]) -> (B: f32[m]) { for j in m { B[j] = max(i in n) A[i, j]; } }',
          'kernel k(A: i32[n, m]) -> (B: i32[1]) { B[0] = sum(i in n, j in m) A[i, j]; }',
          'kernel k(A: f32[n, m]) -> (B: f32[m, n]) { for i in n, j in m { B[j, i] = A[i, j]; } }',
          'kernel k(A: u8[n, m]) -> (B: u8[m, n]) { for i in n, j in m { B[j, i] = A[i, j]; } }',
          'kernel k(A: i32[n, m]) -> (B: i32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }\n'
          'schedule k { split j by 32 -> jo, ji; split jo into 3 -> jb, jr; bind i -> block.x; bind jb -> block.y; bind ji -> thread.x; combine jb by last_block; }']


def write_sample(folder):
    for number, text in enumerate(SAMPLE):
        path = f'{folder}/sample{number}.red'
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        yield path


# ---- The folder to take along


def pack(build, folder):
    """An archive of what was built, without symbols."""
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(f'{folder}/red.tar.xz', 'w:xz') as archive:
        for name in PACKED:
            copy = f'{scratch}/{name}'
            shutil.copy(os.path.realpath(f'{build}/{name}'), copy)
            subprocess.run(['strip', '--strip-unneeded', copy], check=True)
            archive.add(copy, name)
    print(f'{folder}/red.tar.xz: {os.path.getsize(f"{folder}/red.tar.xz") >> 20} MiB')


def unpack(build, scratch):
    """The folder with redc in it."""
    if not os.path.exists(f'{build}/red.tar.xz'):
        return os.path.abspath(build)
    with tarfile.open(f'{build}/red.tar.xz') as archive:
        archive.extractall(f'{scratch}/build')  # of our own making
    for library in ('libred', 'libred-rt'):
        os.symlink(f'{library}.so.0', f'{scratch}/build/{library}.so')
    return f'{scratch}/build'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--pack', metavar='FOLDER')
    parser.add_argument('--build', default=os.environ.get('RED_BUILD', f'{ROOT}/build'))
    parser.add_argument('parts', nargs='*', metavar='PART', help=', '.join(PARTS))
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f'there is no part {", ".join(sorted(unknown))}; there are {", ".join(PARTS)}')
    if options.pack:
        pack(options.build, options.pack)
        return 0
    with tempfile.TemporaryDirectory(prefix='red-gpu-') as scratch:
        context = Context(unpack(options.build, scratch), scratch)
        for name, function in PARTS.items():
            if options.parts and name not in options.parts:
                continue
            start = time.monotonic()
            passed, failed, skipped, text = function(context)
            context.total = [a + b for a, b in zip(context.total, (passed, failed, skipped))]
            if text:
                print(text)
            print(f'{"FAILED" if failed else "ok" if passed else "skip":6} {name:10} {passed} passed, {failed} failed, {skipped} skipped, {time.monotonic() - start:.0f} s',
                  flush=True)
    print('{} passed, {} failed, {} skipped'.format(*context.total))
    return 1 if context.total[1] else 0


if __name__ == '__main__':
    sys.exit(main())

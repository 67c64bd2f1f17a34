#!/usr/bin/env python3
"""Everything that needs a GPU, in one run. Needs no LLVM and no network: what was built elsewhere is in the folder $RED_BUILD.

    python3 tests/gpu.py --pack .gpu          # where red was built: the folder to take along (a compressed archive)
    RED_BUILD=.gpu python3 tests/gpu.py       # where the GPU is: all parts
    RED_BUILD=.gpu python3 tests/gpu.py examples tensors

The parts run beside each other, on $RED_JOBS processors (else all of them) together, and about six minutes on sixteen. Each is a line when it has ended,
with what failed in front of it. The last line is "N passed, N failed, N skipped", over all parts. nvcc, PyTorch, CuPy, JAX and compute-sanitizer are used where
they are found; a tool that the machine refuses is named, and counted as skipped.
"""

import argparse
import concurrent.futures
import glob
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
JOBS = int(os.environ.get('RED_JOBS', os.cpu_count() or 1))
PARTS = {}
PACKED = ['redc', 'libred.so.0', 'libred-rt.so.0', 'tests/gpu/gpu_api', 'tests/bench/bench_launch']
NEEDED = 3  # of them; the others are taken along where they were built


def share(of_sixteen):
    """How many processes a part may have that has so many of sixteen processors: each holds a context on the GPU."""
    return max(1, JOBS * of_sixteen // 16)


class Context:
    """Where what was built lies, and counts."""

    def __init__(self, build, scratch):
        self.build, self.scratch = build, scratch
        self.env = dict(os.environ, REDC=f'{build}/redc', LIBRED=build, RED_BUILD_DIR=build, RED_SOURCE_DIR=ROOT, RED_DEVICE='cuda',
                        RED_CACHE_DIR=f'{scratch}/cache', PYTHONPATH=f'{ROOT}/runtime/python', LD_LIBRARY_PATH=f'{build}:' + os.environ.get('LD_LIBRARY_PATH', ''),
                        PYTHONUNBUFFERED='1')

    def run(self, command, timeout=300, cwd=None, **env):
        """(status, output); a command that does not end is ended with all that it started, and has status 124."""
        try:
            with subprocess.Popen(command, cwd=cwd or ROOT, env={**self.env, **env}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace',
                                  start_new_session=True) as process:
                try:
                    said = process.communicate(timeout=timeout)[0]
                    return process.returncode, said
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    return 124, process.communicate()[0] + f'\nno end after {timeout} s\n'
        except FileNotFoundError:
            return 127, f'{command[0]} was not found'


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


def script(context, *command, timeout=300, **env):
    return from_counts(*context.run([sys.executable, *command], timeout=timeout, **env))


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


def batch(context, lines, *common):
    """Runs the lines by redc run --batch on the GPU."""
    with tempfile.NamedTemporaryFile('w', suffix='.txt') as f:
        f.write(''.join(shlex.join(line) + '\n' for line in lines))
        f.flush()
        status, said = context.run([f'{context.build}/redc', 'run', f'--batch={f.name}', '--timeout=60', f'--jobs={share(2)}', '--device=cuda', '--check', *common],
                                   timeout=300)
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
    return script(context, 'tests/run/cases.py', RED_JOBS=str(share(3)))


@part
def api(context):
    """red.h from C, every launch beside the simulator's."""
    program = next((p for p in (f'{context.build}/gpu_api', f'{context.build}/tests/gpu/gpu_api') if os.path.exists(p)), None)
    if not program:
        return 0, 0, 1, 'skipped api: gpu_api was not built'
    status, said = context.run([program])
    passed, failed, skipped, text = from_counts(status, said)
    return passed, failed, skipped, '\n'.join(line for line in text.splitlines() if not line.endswith(': ok')) if failed else ''


@part
def tensors(context):
    """red.permute, red.reduce, streams, graphs and threads beside PyTorch; CuPy; JAX."""
    return script(context, 'tests/gpu/tensors.py')


@part
def backends(context):
    """PTX from LLVM and from nvcc, bit by bit."""
    return script(context, 'tests/gpu/backends.py', RED_JOBS=str(share(4)))


@part
def arithmetic(context):
    """The simulator's arithmetic beside the GPU's, bit by bit."""
    status, said = context.run([sys.executable, 'tests/gpu/arithmetic.py', f'--jobs={share(2)}', '--verbose'])
    passed, failed, skipped, text = from_counts(status, said)
    return passed, failed, skipped, '\n'.join(said.splitlines()[:-1][:400]) if failed else text


@part
def fuzz(context):
    """Random programs under random schedules, at fixed seeds."""
    return script(context, 'tests/fuzz/differential.py', f'--redc={context.build}/redc', '--device=cuda', '--count=1000', f'--jobs={share(5)}', '--no-reduction', '--most-faults=5')


def of_sanitizer(context, command, name):
    """(passed, failed, skipped, text) of one tool: it sees the fault in one kernel, and none in many."""
    def run(*arguments):
        return context.run([*command, f'--tool={name}', '--error-exitcode=9', sys.executable, 'tests/gpu/sampled.py', *arguments], timeout=200, RED_CACHE='off')

    def found(said):
        return [int(n) for n in re.findall(r'SUMMARY: (\d+) (?:error|hazard)', said)]

    def lines(said):
        return '\n'.join([line for line in said.splitlines() if line.startswith(('=========', 'FAILED', 'Traceback')) or 'rror' in line][:30])

    status, said = run(f'--fault={name}')
    if not found(said):
        refused = re.search(r'(?i)^=========.*(?:not supported|unable|unsupported|failed|denied|error).*', said, flags=re.M)
        if refused:
            return 0, 0, 2, f'skipped {name}: {refused[0].strip("= ")}'
        return 0, 1, 1, f'FAILED {name}: status {status} and no summary of a kernel with a fault\n{said[-2000:]}'
    if not any(found(said)):
        return 0, 1, 1, f'FAILED {name}: it sees nothing in a kernel with a fault\n{lines(said)}'
    status, said = run('--seconds=100')
    if status == 0 and found(said) and not any(found(said)):
        return 2, 0, 0, ''
    return 1, 1, 0, f'FAILED {name}: status {status}\n{lines(said)}'


@part
def sanitizer(context):
    """compute-sanitizer's four tools."""
    tool = shutil.which('compute-sanitizer') or shutil.which('compute-sanitizer', path='/usr/local/cuda/bin')
    names = ('memcheck', 'racecheck', 'initcheck', 'synccheck')
    if not tool:
        return 0, 0, len(names), 'skipped: compute-sanitizer was not found'
    with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
        results = list(pool.map(lambda name: of_sanitizer(context, [tool], name), names))
    return (*(sum(r[i] for r in results) for i in range(3)), '\n'.join(r[3] for r in results if r[3]))


# ---- The folder to take along


def pack(build, folder):
    """An archive of what was built, without symbols."""
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(f'{folder}/red.tar.xz', 'w:xz') as archive:
        for number, name in enumerate(PACKED):
            if number >= NEEDED and not os.path.exists(f'{build}/{name}'):
                continue
            copy = f'{scratch}/{os.path.basename(name)}'
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


def timed(name, context):
    """(result, seconds) of a part."""
    start = time.monotonic()
    try:
        result = PARTS[name](context)
    except Exception as error:  # pylint: disable=broad-except
        result = 0, 1, 0, f'FAILED {name}: {type(error).__name__}: {error}'
    return result, time.monotonic() - start


def report(name, result, seconds):
    """Prints a part's lines; its counts."""
    passed, failed, skipped, text = result
    if text:
        print(text)
    print(f'{"FAILED" if failed else "ok" if passed else "skip":6} {name:10} {passed} passed, {failed} failed, {skipped} skipped, {seconds:.0f} s', flush=True)
    return [passed, failed, skipped]


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
    names = [name for name in PARTS if not options.parts or name in options.parts]
    total, began = [0, 0, 0], time.monotonic()
    with tempfile.TemporaryDirectory(prefix='red-gpu-') as scratch, concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
        context = Context(unpack(options.build, scratch), scratch)
        if 'machine' in names:  # the first, so that a machine without a GPU is said to be one
            total = report('machine', *timed('machine', context))
        waiting = {pool.submit(timed, name, context): name for name in names if name != 'machine'}
        for done in concurrent.futures.as_completed(waiting):
            total = [a + b for a, b in zip(total, report(waiting[done], *done.result()))]
    print('{} passed, {} failed, {} skipped'.format(*total) + f', {time.monotonic() - began:.0f} s')
    return 1 if total[1] else 0


if __name__ == '__main__':
    sys.exit(main())

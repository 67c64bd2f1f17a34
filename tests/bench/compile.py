#!/usr/bin/env python3
"""How long redc takes and how much memory: one small kernel, then files of 100 and 1,000 kernels.

Wall time of a whole process, median of the runs, and its peak resident memory; beside it `nvcc -ptx` on the CUDA that redc prints,
where nvcc is found. Nothing here passes or fails.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KERNEL = 'kernel k{0}(A: f32[n, m]) -> (B: f32[n]) {{ for i in n {{ B[i] = {0}.0 + sum(j in m) A[i, j]; }} }}\n'


def measure(command, runs):
    """(milliseconds, MiB) of the command: median time, largest resident size."""
    times, peak = [], 0
    for _ in range(runs):
        start = time.perf_counter()
        # Not subprocess.run: wait4 gives the memory of this one process.
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        error = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        times.append(time.perf_counter() - start)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f'{" ".join(command)}: exit {process.returncode}\n{error.decode()}')
        peak = max(peak, usage.ru_maxrss)
    return statistics.median(times) * 1e3, peak / 1024


def report(name, redc, source, nvcc, folder, runs):
    command = [redc, source, '-D', 'm=11', '--arch=sm_90']
    mine, memory = measure(command + ['--emit=ptx', '-o', '-'], runs)
    line = f'{name:14} {mine:9.1f} ms {memory:7.1f} MiB'
    if nvcc:
        cuda = os.path.join(folder, name + '.cu')
        subprocess.run(command + ['--emit=cuda', '--all-entries', '-o', cuda], check=True)
        theirs, _ = measure([nvcc, '-ptx', '-arch=sm_90', cuda, '-o', os.path.join(folder, name + '.ptx')],
                            min(runs, 3))
        line += f'   nvcc -ptx {theirs:9.1f} ms, {theirs / mine:.1f} times as long'
    print(line, flush=True)
    return mine


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--redc', default=os.path.join(ROOT, 'build', 'redc'))
    options = parser.parse_args()
    redc, nvcc = os.path.abspath(options.redc), shutil.which('nvcc') or shutil.which('/usr/local/cuda/bin/nvcc')
    with tempfile.TemporaryDirectory(prefix='red-bench-') as folder:
        version, _ = measure([redc, '--version'], 50)
        print(f'{"--version":14} {version:9.1f} ms')
        report('rowsum', redc, os.path.join(ROOT, 'examples', '01-rowsum.red'), nvcc, folder, 50)
        times = []
        for kernels, runs in ((100, 5), (1000, 3)):
            source = os.path.join(folder, f'{kernels}.red')
            with open(source, 'w', encoding='utf-8') as f:
                f.writelines(KERNEL.format(k) for k in range(kernels))
            times.append(report(f'{kernels}-kernels', redc, source, nvcc, folder, runs))
        print(f'ten times the kernels take {times[1] / times[0]:.1f} times as long')


if __name__ == '__main__':
    main()

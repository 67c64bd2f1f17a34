#!/usr/bin/env python3
"""Machine instructions of the reductions over threads of examples/18-allreduce.red, beside those of a pass that asks the machine for its masks.

    python3 tests/bench/instructions.py --redc build/redc      # needs nvcc, for ptxas too

Both are compiled for sm_90; instructions are counted up to the last EXIT, behind which there is only padding.
"""
import argparse
import os
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXIT, SHUFFLES, VOTE = 0x94D, (0x389, 0x589, 0x989, 0xF89), 0x806


def kernels(path):
    """Instructions, shuffles, votes and bytes of shared memory of each kernel of a cubin."""
    with open(path, 'rb') as f:
        data = f.read()
    start, = struct.unpack_from('<Q', data, 0x28)
    size, count, names = struct.unpack_from('<HHH', data, 0x3A)
    headers = [struct.unpack_from('<IIQQQQIIQQ', data, start + i * size) for i in range(count)]
    found, shared = {}, {}
    for header in headers:
        place = headers[names][4] + header[0]
        name = data[place:data.index(b'\0', place)].decode()
        if name.startswith('.text.'):
            words = [struct.unpack_from('<Q', data, header[4] + i)[0] & 0xFFF for i in range(0, header[5], 16)]
            used = words[:len(words) - words[::-1].index(EXIT)]
            found[name[6:]] = len(used), sum(w in SHUFFLES for w in used), used.count(VOTE)
        if name.startswith('.nv.shared.') and 'reserved' not in name:
            shared[name[11:]] = header[5]
    return {name: (*numbers, shared.get(name, 0)) for name, numbers in found.items()}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--redc', default=os.path.join(ROOT, 'build', 'redc'))
    a = p.parse_args()
    nvcc = shutil.which('nvcc') or shutil.which('nvcc', path='/usr/local/cuda/bin')
    if not nvcc:
        print('skipped: nvcc was not found')
        return 77
    ours = {}
    with tempfile.TemporaryDirectory() as folder:
        cubin = os.path.join(folder, 'k.cubin')
        subprocess.run([nvcc, '-cubin', '-arch=sm_90', os.path.join(ROOT, 'tests/bench/kernels/allreduce_usual.cu'), '-o', cubin], check=True)
        usual = kernels(cubin)
        env = dict(os.environ, PATH=os.environ.get('PATH', '') + os.pathsep + os.path.dirname(nvcc))
        for m in (2, 4, 8, 16, 32):
            subprocess.run([a.redc, os.path.join(ROOT, 'examples/18-allreduce.red'), '-D', f'm={m}', '-D', 'n=1048576', '--arch=sm_90', '-o', cubin], check=True, env=env)
            made = kernels(cubin)
            ours.update(elevens=made['elevens'], box=made['box'])
            ours[f'million_{m}'] = made['million']
    print('| kernel | instructions | shuffles | votes | shared bytes | the usual pass: instructions | shuffles | votes |\n| --- | --- | --- | --- | --- | --- | --- | --- |')
    more = 0
    for name, (count, shuffles, votes, shared) in ours.items():
        other = usual[name]
        more += count >= other[0] or shared > 0
        print(f'| {name} | {count} | {shuffles} | {votes} | {shared} | {other[0]} | {other[1]} | {other[2]} |')
    return 1 if more else 0


if __name__ == '__main__':
    sys.exit(main())

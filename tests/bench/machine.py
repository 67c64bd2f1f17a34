#!/usr/bin/env python3
"""Machine instructions and registers of two compilations of the same programs, entry by entry, behind ptxas.

    for f in examples/*.red; do redc $f --arch=sm_90 -o before/$(basename $f).ptx; done      # and with another redc into after/
    python3 tests/bench/machine.py before after                                             # needs ptxas

Padding is not counted. A loop's instructions are those between a branch and the earlier place that it goes to.
"""
import argparse
import concurrent.futures
import math
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

NOP, BRANCH = 0x918, 0x947


def entries(path, log):
    """{entry: (instructions, of them in loops, registers)} of a cubin and of what ptxas -v said of it."""
    registers, entry = {}, None
    for line in log.splitlines():
        entry = line.split("'")[1] if 'Compiling entry function' in line else entry
        used = re.search(r'Used (\d+) registers', line)
        if used:
            registers[entry] = int(used[1])
    with open(path, 'rb') as f:
        data = f.read()
    start, = struct.unpack_from('<Q', data, 0x28)
    size, count, names = struct.unpack_from('<HHH', data, 0x3A)
    headers = [struct.unpack_from('<IIQQQQIIQQ', data, start + i * size) for i in range(count)]
    found = {}
    for header in headers:
        place = headers[names][4] + header[0]
        name = data[place:data.index(b'\0', place)].decode()
        if not name.startswith('.text.'):
            continue
        words = [struct.unpack_from('<QQ', data, header[4] + i) for i in range(0, header[5], 16)]
        in_loop = [False] * (len(words) + 1)
        for at, (low, high) in enumerate(words):
            if low & 0xFFF != BRANCH:
                continue
            words_on = (low >> 34 | (high & 0x3FFFF) << 30) << 8 | low >> 16 & 0xFF  # of 4 bytes, from the next instruction; signed
            distance = words_on - (1 << 56) if words_on >> 55 else words_on
            goal = at + 1 + distance // 4
            if 0 <= goal < at:  # not the branch to itself behind the end
                in_loop[goal:at + 1] = [True] * (at + 1 - goal)
        used = [at for at, (low, _) in enumerate(words) if low & 0xFFF != NOP]
        found[name[6:]] = len(used), sum(in_loop[at] for at in used), registers.get(name[6:], 0)
    return found


def assemble(job):
    ptxas, arch, ptx = job
    with tempfile.TemporaryDirectory() as folder:
        cubin = os.path.join(folder, 'k.cubin')
        done = subprocess.run([ptxas, '-v', f'-arch={arch}', ptx, '-o', cubin], capture_output=True, text=True)
        if done.returncode:
            return ptx, done.stderr.splitlines()[0] if done.stderr else 'ptxas failed'
        return ptx, entries(cubin, done.stderr)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('before')
    p.add_argument('after')
    p.add_argument('--arch', default='sm_90')
    p.add_argument('--jobs', type=int, default=2)
    p.add_argument('--worst', type=int, default=12, help='entries to print')
    a = p.parse_args()
    ptxas = shutil.which('ptxas') or shutil.which('ptxas', path='/usr/local/cuda/bin')
    if not ptxas:
        print('skipped: ptxas was not found')
        return 77
    names = sorted(set(n for n in os.listdir(a.before) if n.endswith('.ptx')) & set(os.listdir(a.after)))
    jobs = [(ptxas, a.arch, os.path.join(folder, n)) for n in names for folder in (a.before, a.after)]
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        made = dict(pool.map(assemble, jobs))
    rows, bad = [], 0
    for n in names:
        both = [made[os.path.join(folder, n)] for folder in (a.before, a.after)]
        for folder, one in zip((a.before, a.after), both):
            if isinstance(one, str):
                print(f'{folder}/{n}: {one}')
                bad += 1
        if not any(isinstance(one, str) for one in both):
            rows += [(f'{n[:-4]} {entry}', both[0][entry], both[1][entry]) for entry in both[0] if entry in both[1]]
    if not rows:
        return 1
    ratio = lambda row, k: row[2][k] / row[1][k] if row[1][k] else 1.0
    for k, what in enumerate(('instructions', 'instructions in loops', 'registers')):
        before, after = sum(row[1][k] for row in rows), sum(row[2][k] for row in rows)
        mean = math.exp(sum(math.log(max(ratio(row, k), 0.01)) for row in rows) / len(rows))
        print(f'{what}: {before} and {after}, {after / max(before, 1):.4f}; geometric mean over {len(rows)} entries {mean:.4f}')
        for row in sorted(rows, key=lambda row: -ratio(row, k))[:a.worst]:
            if ratio(row, k) > 1:
                print(f'    {row[0]}: {row[1][k]} and {row[2][k]}, {ratio(row, k):.3f}')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())

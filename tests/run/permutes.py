#!/usr/bin/env python3
"""Permutes under the compiler's own schedules, in the simulator: every byte is compared with the reference, and what lies around the tensors
is intact. Permutations of ranks 1 to 5 with extents from {1, 2, 3, 5, 31, 32, 33, 64}, sampled; elements of 1 to 16 bytes; sizes given at
compile time and at launch; offsets of 0 to 15 bytes; pitched rows. Tiles have no bank conflicts, but where
a short side is no power of two."""

import concurrent.futures
import os
import random
import subprocess
import sys
import tempfile

REDC = os.environ['REDC']
EXTENTS = (1, 2, 3, 5, 31, 32, 33, 64)
BYTES = {'u8': 1, 'f16': 2, 'f32': 4, 'f64': 8, 'c128': 16}
MOST = 60000  # elements


def program(perm, strided):
    rank = len(perm)
    suffix = (' strided(' + ', '.join([f'p{d}' for d in range(rank - 1)] + ['1']) + ')') if strided else ''
    return (f"kernel k<T>(X: T[{', '.join(f'n{d}' for d in range(rank))}]{suffix}) -> (Y: T[{', '.join(f'n{p}' for p in perm)}]) {{\n"
            f"  for {', '.join(f'a{d} in n{d}' for d in range(rank))} {{ Y[{', '.join(f'a{p}' for p in perm)}] = X[{', '.join(f'a{d}' for d in range(rank))}]; }}\n}}\n")


def sample(random_, pick):
    rank = random_.randint(1, 5)
    perm = list(range(rank))
    random_.shuffle(perm)
    while True:
        shape = [random_.choice(EXTENTS) for _ in range(rank)]
        total = 1
        for extent in shape:
            total *= extent
        if total <= MOST:
            break
    type_ = random_.choice(sorted(BYTES))
    offsets = [random_.randrange(16) // BYTES[type_] for _ in range(2)] if pick % 2 else [0, 0]
    return perm, shape, type_, offsets, pick % 3 == 0, pick % 4 < 2


# Shapes whose class is known: (permutation, shape, type, class; two where sizes given at compile time have the first).
CHOSEN = [([1, 0], [64, 128], 'f32', 'tile'), ([1, 0], [128, 256], 'f16', 'tile'), ([1, 0], [128, 256], 'u8', 'tile'), ([1, 0], [72, 144], 'u8', 'tile'), ([1, 0], [70, 146], 'u8', 'places'), ([1, 0], [130, 66], 'f16', 'tile'),
          ([1, 0], [64, 66], 'f64', 'pack|tile'), ([1, 0], [33, 65], 'c128', 'pack|tile'), ([0, 2, 1], [3, 64, 128], 'f16', 'tile'), ([2, 1, 0], [64, 5, 72], 'f32', 'pack|tile'),
          ([0, 2, 3, 1], [2, 64, 8, 16], 'f32', 'tile'), ([0, 3, 1, 2], [2, 8, 16, 64], 'u8', 'tile'),
          ([1, 0, 2], [20, 12, 64], 'f32', 'runs'), ([1, 0, 2], [20, 12, 64], 'u8', 'runs'), ([1, 0, 2], [20, 12, 33], 'f16', 'runs')]

# rows of odd lengths, as many as make whole blocks: blocks of whole lines, where the output begins on 16 bytes
LINES = [([0, 2, 1], [64, 35, 33], 'f32')]

# Where the class is asked for: rows of odd lengths and short runs, words that begin on multiples in memory; class:schedule.
WORDS = [([0, 2, 1], [16, 127, 129], 'u8', 'lines:lines'), ([0, 2, 1], [8, 127, 129], 'f16', 'lines:lines'), ([0, 2, 1], [48, 33, 47], 'u8', 'lines:lines'), ([1, 0, 2], [601, 32, 3], 'u8', 'units:units_words'),
         ([1, 0, 2], [401, 32, 3], 'f16', 'units:units_words'), ([1, 0, 2], [150, 64, 3], 'f32', 'units:units_words'), ([1, 0, 2], [333, 32, 5], 'u8', 'units:units_words'), ([1, 0, 2], [65, 40, 3], 'f64', 'units:units_words'), ([1, 0, 2], [254, 48, 3], 'f16', 'units:units_words'),
         ([0, 2, 1, 3], [2, 150, 48, 3], 'u8', 'units:units_words'), ([1, 0, 2], [131, 56, 7], 'f16', 'units:units_words'), ([1, 0, 2], [90, 72, 6], 'f32', 'units:units_words'), ([0, 2, 1], [3, 4112, 3], 'u8', 'planes:planes'), ([0, 2, 1], [5, 3, 512], 'u8', 'planes:planes'),
         ([0, 2, 1], [2, 4, 2048], 'f16', 'planes:planes'), ([2, 0, 1], [40, 200, 3], 'f16', 'planes:planes'), ([0, 3, 1, 2], [2, 31, 64, 3], 'u8', 'planes:planes'), ([1, 0], [6, 40000], 'u8', 'planes:planes'), ([0, 2, 1], [3, 130, 2], 'f64', 'planes:planes'),
         ([0, 2, 1], [1003, 3, 8], 'u8', 'whole:whole_registers'), ([0, 2, 1], [700, 8, 3], 'u8', 'whole:whole_registers'), ([0, 2, 1], [600, 5, 4], 'f16', 'whole:whole_registers'), ([0, 2, 1], [300, 8, 8], 'u8', 'whole:whole_registers')]

# Runs that begin anywhere, whole, in pieces, and short ones in boxes that hang over; (permutation, shape, type).
ODD = [([1, 0, 2], [3, 5, 8099], 'u8'), ([1, 0, 2], [2, 2, 20011], 'u8'), ([0, 2, 1, 3], [2, 2, 2, 9001], 'f16'), ([3, 2, 1, 0, 4], [7, 6, 5, 7, 35], 'u8'), ([1, 0, 2], [51, 60, 89], 'u8'), ([1, 0, 2], [51, 70, 189], 'u8'), ([2, 1, 0, 3], [5, 6, 7, 263], 'f32'),
       ([0, 2, 1, 3], [2, 13, 11, 91], 'f64'), ([1, 0, 2], [40, 2, 501], 'f16'), ([1, 0, 2], [16, 7, 513], 'f16'), ([2, 0, 1, 3], [290, 1, 370, 7], 'u8'), ([1, 0, 2], [400, 600, 5], 'u8'), ([0, 2, 1, 3], [1, 3, 2, 4099], 'f64')]

# Boxes of bytes and halves as words, where the class is asked for.
CELLS = [([3, 2, 0, 1], [12, 32, 7, 98], 'u8'), ([4, 3, 5, 0, 1, 2], [4, 5, 8, 3, 14, 20], 'u8'), ([3, 2, 1, 4, 0], [26, 7, 4, 6, 82], 'u8'),
         ([3, 2, 4, 1, 0], [56, 5, 3, 7, 36], 'f16'), ([1, 0], [98, 1530], 'u8'), ([2, 1, 0], [130, 9, 71], 'f16')]

# Runs of three, where both tensors begin on 16 bytes; else boxes.
UNITS = [([1, 0, 2], [201, 128, 3], 'u8'), ([1, 0, 2], [100, 64, 3], 'f16')]

# Small matrices of bytes and halves, where both tensors begin on 16 bytes; else boxes.
WHOLE = [([0, 2, 1], [4003, 3, 8], 'u8'), ([0, 2, 1], [1001, 3, 8], 'f16')]

# Boxes through shared memory: kept and moved short axes, odd matrices, tiles that hang over, words of several rows; (permutation, shape, type).
PACKED = [([5, 1, 2, 4, 0, 3], [9, 2, 3, 24, 6, 16], 'f32'), ([2, 5, 4, 0, 3, 1], [3, 26, 4, 23, 13, 6], 'u8'), ([3, 0, 1, 2, 4], [8, 3, 4, 21, 49], 'u8'),
          ([0, 2, 1], [9, 127, 129], 'u8'), ([0, 2, 1], [5, 127, 129], 'f16'), ([0, 2, 1], [3, 127, 129], 'f32'), ([0, 2, 1], [4003, 3, 8], 'u8'),
          ([0, 2, 1], [1001, 3, 8], 'f16'), ([1, 0, 2], [201, 128, 3], 'u8'), ([1, 0, 2], [100, 64, 3], 'f16'), ([1, 0, 2], [99, 50, 3], 'f32'),
          ([2, 1, 0, 3], [17, 9, 13, 47], 'f32'), ([3, 2, 1, 4, 0], [26, 7, 4, 6, 82], 'u8'), ([2, 1, 0], [40, 9, 5], 'c128'), ([1, 0], [98, 1530], 'u8'),
          ([1, 2, 0], [35, 31, 331], 'f64'), ([2, 1, 0, 3], [35, 10, 5, 21], 'f32')]


def run(case):
    perm, shape, type_, offsets, is_strided, is_fixed, wanted = case
    with tempfile.TemporaryDirectory(prefix='red-permutes-') as folder:
        path = os.path.join(folder, 'k.red')
        with open(path, 'w', encoding='utf-8') as f:
            f.write(program(perm, is_strided))
        args = [REDC, 'run', path, '-D', f'T={type_}', '--check', '--device=sim', '--jobs=1', '--stats']
        if wanted and ':' in wanted:
            forced, wanted = wanted.split(':')
            args.append(f'--class={forced}')
        for d, extent in enumerate(shape):
            args += ['-D' if is_fixed else '--size', f'n{d}={extent}']
        where = [f'offset:{offsets[0]}'] if offsets[0] else []
        if is_strided:
            pitch, strides = 1, []
            for extent in reversed(shape):
                strides.insert(0, str(pitch))
                pitch = pitch * extent + (4 if pitch == 1 else 0)
            where.append('strides:' + ':'.join(strides))
        args += ['--arg', 'X=iota' + ('@' + ','.join(where) if where else '')]
        if offsets[1]:
            args += ['--arg', f'Y=@offset:{offsets[1]}']
        result = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    title = f'{perm} of {shape} {type_} offsets {offsets}{" strided" if is_strided else ""}{" fixed" if is_fixed else ""}'
    if result.returncode:
        return f'{title}: {result.stderr.strip()[:400]}'
    entry = next((line.split(':')[0] for line in result.stdout.splitlines() if ': grid' in line), '')
    conflicts = [line.split()[1] for line in result.stdout.splitlines() if line.startswith('shared_conflicts')]
    if '_tile' in entry and (wanted or not is_fixed) and conflicts != ['0']:  # sides that are known may be short and odd
        return f'{title}: {entry} has {conflicts} bank conflicts'
    if wanted and f'_{wanted.split("|")[0 if is_fixed else -1]}' not in entry:
        return f'{title}: class {wanted} was expected, and {entry} was launched'
    return None


def main():
    random_ = random.Random(20)
    cases = [(*sample(random_, pick), None) for pick in range(int(os.environ.get('RED_PERMUTES', '36')))]
    cases += [(perm, shape, type_, [0, 0], False, is_fixed, wanted) for perm, shape, type_, wanted in CHOSEN for is_fixed in (True, False)]
    cases += [(perm, shape, type_, [0, 0], False, True, wanted) for perm, shape, type_, wanted in WORDS]
    cases += [(perm, shape, type_, [0, 0], False, True, 'odd_runs:odd_runs') for perm, shape, type_ in ODD]
    cases += [(perm, shape, type_, offsets, False, True, None) for perm, shape, type_ in ODD[:4] for offsets in ([1, 0], [0, 1])]
    cases += [(perm, shape, type_, [0, 0], False, True, 'pack:pack_words') for perm, shape, type_ in CELLS]
    cases += [(perm, shape, type_, offsets, False, True, 'lines' if (perm, shape, type_) in LINES and not offsets[1] else 'units' if (perm, shape, type_) in UNITS and offsets == [0, 0] else 'whole' if (perm, shape, type_) in WHOLE and offsets == [0, 0] else 'pack') for perm, shape, type_ in PACKED for offsets in ([0, 0], [1, 0], [0, 1])]
    cases += [([1, 0], [64, 128], 'f32', [1, 0], False, False, 'places'), ([1, 0], [64, 128], 'f32', [0, 0], True, False, 'tile'),
              ([3, 0, 2, 1], [32, 1, 8, 64], 'f32', [0, 0], False, True, 'tile')]  # axes of one iteration hide that it is a transpose
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [answer for answer in pool.map(run, cases) if answer]
    for answer in wrong:
        print('FAILED', answer)
    print(f'{len(cases) - len(wrong)} passed, {len(wrong)} failed')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())

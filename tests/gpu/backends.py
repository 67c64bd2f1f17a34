#!/usr/bin/env python3
"""Both backends on a GPU: what nvcc makes of the CUDA of --emit=cuda, launched under the same plan, gives the same bits as the PTX.

    LIBRED=... REDC=... python3 tests/gpu/backends.py [NAME]     # only programs whose name has NAME in it

Needs PyTorch for its tensors, and nvcc.
"""

import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'runtime', 'python'))
REDC = os.environ.get('REDC', os.path.join(ROOT, 'build', 'redc'))
NVCC = shutil.which('nvcc') or shutil.which('nvcc', path=os.path.join(os.environ.get('CUDA_HOME', '/usr/local/cuda'), 'bin'))
try:
    import torch
except ImportError:
    torch = None
if not torch or not torch.cuda.is_available() or not NVCC:
    print('needs PyTorch with a GPU, and nvcc')
    sys.exit(77)
import red  # noqa: E402
from kernels import SIZES, evaluate, names_of, programs  # noqa: E402

TYPES = {'bool': torch.bool, 'i8': torch.int8, 'i16': torch.int16, 'i32': torch.int32, 'i64': torch.int64, 'u8': torch.uint8, 'u16': torch.uint16,
         'u32': torch.uint32, 'u64': torch.uint64, 'f16': torch.float16, 'bf16': torch.bfloat16, 'f32': torch.float32, 'f64': torch.float64,
         'f8e4m3': torch.float8_e4m3fn, 'f8e5m2': torch.float8_e5m2, 'c64': torch.complex64, 'c128': torch.complex128}


def build(folder, program):
    """(name, PTX by LLVM, PTX by nvcc under the same plan), or (name, None, what went wrong)."""
    name, text, defines = program
    stem = os.path.join(folder, name.replace('.', '-'))
    with open(stem + '.red', 'w', encoding='utf-8') as f:
        f.write(text)
    arguments = [a for d in defines for a in ('-D', d)]
    major, minor = torch.cuda.get_device_capability()
    arch = f'sm_{10 * major + minor}' if f'sm_{10 * major + minor} ' in subprocess.run([REDC, '--list-targets'], capture_output=True, text=True).stdout else 'sm_90'
    for command in ([REDC, stem + '.red', *arguments, f'--arch={arch}', '-o', stem + '.ptx'],
                    [REDC, stem + '.red', *arguments, '--all-entries', f'--arch={arch}', '-o', stem + '.cu'],
                    [NVCC, '-Werror', 'all-warnings', f'-arch={arch}', '-ptx', stem + '.cu', '-o', stem + '.nvcc.ptx']):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return name, None, done.stdout + done.stderr
    with open(stem + '.ptx', encoding='utf-8') as f:
        ours = f.read()
    with open(stem + '.nvcc.ptx', encoding='utf-8') as f:
        theirs = f.read()
    plan = [line for line in ours.splitlines(True) if line.startswith('// red.plan')]
    return name, ours, ''.join(plan) + theirs


def values(kind, shape, generator):
    """Small numbers, some negative where the type has them, so that sums differ by order only where they are inexact."""
    if kind == 'bool':
        return torch.randint(0, 2, shape, generator=generator, device='cuda').to(torch.bool)
    if kind[0] in 'iu':
        low = 0 if kind[0] == 'u' else -50
        return torch.randint(low, 50, shape, generator=generator, device='cuda', dtype=torch.int64).to(torch.int32).to(TYPES[kind])
    numbers = torch.randn(shape, generator=generator, device='cuda') * 4
    return numbers.to(TYPES[kind])


def bits(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def compare(name, ours, theirs):
    """(launches compared, what differs)."""
    left, right = red.from_ptx(ours, device='cuda:0', name=name), red.from_ptx(theirs, device='cuda:0', name=name + ' by nvcc')
    count, entries = 0, set()
    for kernel in left.kernels.values():
        names = names_of(kernel)
        for sizes in SIZES if names else SIZES[:1]:
            given = {n: sizes[i % 2] for i, n in enumerate(names)}
            generator = torch.Generator('cuda').manual_seed(1)
            try:
                shapes = [evaluate(p.shape, given) for p in kernel.parameters if p.kind in ('input', 'output')]
            except (SyntaxError, NameError, TypeError) as error:
                return count, f'the shapes of {kernel.name} cannot be told: {error}'
            if any(min(s, default=1) < 0 or torch.Size(s).numel() > 1 << 26 for s in shapes):
                continue
            tensors = [values(p.type, s, generator) for p, s in zip([p for p in kernel.parameters if p.kind in ('input', 'output')], shapes)]
            others = {p.name: 1 if p.kind == 'scalar' else given[p.name] for p in kernel.parameters if p.kind in ('scalar', 'size')}
            outputs = [i for i, p in enumerate([p for p in kernel.parameters if p.kind in ('input', 'output')]) if p.kind == 'output']
            copies = [t.clone() if i in outputs else t for i, t in enumerate(tensors)]
            try:
                entries.add(kernel.choose(*tensors, **others).entry)
                kernel(*tensors, **others)
            except red.Error as error:
                if error.name in ('RED_ERROR_SHAPE', 'RED_ERROR_REQUIREMENT', 'RED_ERROR_LIMIT'):
                    continue  # sizes that the kernel does not take
                return count, f'{kernel.name} at {given}: {error}'
            right[kernel.name](*copies, **others)
            torch.cuda.synchronize()
            count += 1
            for i in outputs:
                if not torch.equal(bits(tensors[i]), bits(copies[i])):
                    where = (bits(tensors[i]) != bits(copies[i])).nonzero()[0].item()
                    return count, f'{kernel.name} at {given}: output {i} differs, first in byte {where}'
    return count, '' if count else 'no sizes that it takes were found'


def main():
    chosen = [p for p in programs() if len(sys.argv) < 2 or sys.argv[1] in p[0]]
    failed, launches = 0, 0
    with tempfile.TemporaryDirectory(prefix='red-backends-') as folder, concurrent.futures.ThreadPoolExecutor(int(os.environ.get('RED_JOBS', os.cpu_count()))) as pool:
        for name, ours, theirs in pool.map(lambda p: build(folder, p), chosen):
            count, wrong = compare(name, ours, theirs) if ours else (0, theirs)
            launches += count
            if wrong:
                failed += 1
                print(f'FAILED {name}: {wrong}')
    print(f'{launches} launches compared')
    print(f'{len(chosen) - failed} passed, {failed} failed')
    return 1 if failed or not chosen else 0


if __name__ == '__main__':
    sys.exit(main())

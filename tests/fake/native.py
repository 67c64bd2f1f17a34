#!/usr/bin/env python3
"""redc --arch=native, and lists of targets: with drivers of every capability, and without one.

    native.py --redc PATH --fake PATH
"""

import glob
import os
import sys

from driven import Driven, expect, run_tests

COPY = 'kernel k(A: f32[n]) -> (B: f32[n]) { for i in n { B[i] = A[i]; } }\n'
TARGETS = [75, 80, 86, 87, 89, 90]


def compile_for(driven: Driven, arch, *more, **settings):
    """The finished process, and {name of an output: its .target}."""
    for path in glob.glob('out*'):
        os.remove(path)
    done = driven.run('k.red', f'--arch={arch}', '-o', 'out.ptx', *more, **settings)
    outputs = {}
    for path in sorted(glob.glob('out*.ptx')):
        with open(path, encoding='utf-8') as f:
            outputs[path] = next((line.split()[1] for line in f if line.startswith('.target')), None)
    return done, outputs


def each_capability(driven):
    for sm in [75, 76, 80, 86, 87, 88, 89, 90, 99, 100, 103, 120]:
        best = max(t for t in TARGETS if t <= sm)
        done, outputs = compile_for(driven, 'native', setting=f'arch={sm}')
        expect(f'native on sm_{sm}', done.returncode == 0 and not done.stderr and outputs == {'out.ptx': f'sm_{best}'}, (done, outputs))
        done, outputs = compile_for(driven, 'sm_75,native', setting=f'arch={sm}')
        expect(f'sm_75,native on sm_{sm}', done.returncode == 0 and not done.stderr and
               outputs == {f'out.sm_{t}.ptx': f'sm_{t}' for t in {75, best}}, (done, outputs))


def devices_that_cannot(driven):
    done, outputs = compile_for(driven, 'sm_80,native', setting='arch=70')
    expect('sm_70', done.returncode == 2 and 'the device is an sm_70, older than every target' in done.stderr and not outputs, (done, outputs))
    done, outputs = compile_for(driven, 'native', setting='devices=0')
    expect('no device', done.returncode == 1 and '[E504]' in done.stderr and not outputs, (done, outputs))
    done, outputs = compile_for(driven, 'native', setting='fail=cuInit:100')
    expect('no cuInit', done.returncode == 1 and '[E504]' in done.stderr and not outputs, (done, outputs))


def no_driver(driven):
    missing = '/nowhere/libcuda.so'
    for arch in ('native', 'sm_75,native', 'native,sm_75'):
        done, outputs = compile_for(driven, arch, library=missing)
        expect(f'{arch} without a driver', done.returncode == 1 and 'error: no CUDA driver: /nowhere/libcuda.so' in done.stderr and '[E504]' in done.stderr and
               'note: name the target in place of native, such as --arch=sm_90; see --list-targets' in done.stderr and not outputs, (done, outputs))
    done = driven.run('run', 'k.red', '--size', 'n=4', '--arg', 'A=1', '--device=cuda', library=missing)
    expect('run', done.returncode == 1 and 'note: --device=sim runs the same PTX without a GPU' in done.stderr, done)
    done, outputs = compile_for(driven, 'sm_75,sm_90', library=missing)
    expect('targets need no driver', done.returncode == 0 and len(outputs) == 2 and not driven.calls(), (done, outputs))


def lists(driven):
    for arch, found in {'sm_80': ['out.ptx'], 'sm_80,sm_80': ['out.sm_80.ptx'], 'native,sm_90,native': ['out.sm_90.ptx'],
                        'sm_90,sm_75,sm_90': ['out.sm_75.ptx', 'out.sm_90.ptx'], ','.join(f'sm_{t}' for t in TARGETS): [f'out.sm_{t}.ptx' for t in TARGETS]}.items():
        done, outputs = compile_for(driven, arch, setting='arch=90')
        expect(arch, done.returncode == 0 and list(outputs) == found, (done, outputs))
    for arch in ('sm_80,sm_1', 'sm_80,', ',sm_80', 'sm_80, sm_90', 'sm_80;sm_90', 'SM_80', 'native,nativ'):
        done, outputs = compile_for(driven, arch)
        expect(arch, done.returncode == 2 and 'error: there is no target' in done.stderr and 'note: the targets are sm_75, sm_80' in done.stderr and not outputs, (done, outputs))
    done, outputs = compile_for(driven, 'sm_80', '--arch=sm_75,sm_90')
    expect('the last --arch counts', done.returncode == 0 and list(outputs) == ['out.sm_75.ptx', 'out.sm_90.ptx'], (done, outputs))
    done, outputs = compile_for(driven, 'sm_75,sm_90', '--arch=sm_80')
    expect('the last --arch counts, alone', done.returncode == 0 and list(outputs) == ['out.ptx'], (done, outputs))
    done, outputs = compile_for(driven, 'sm_75,sm_90', '-MD', '-MP')
    with open('out.d', encoding='utf-8') as f:
        expect('dependencies of both', f.read().startswith('out.sm_75.ptx out.sm_90.ptx: k.red\n'), done)
    done = driven.run('k.red', '--arch=sm_75,sm_75')
    expect('a list needs -o', done.returncode == 2 and 'several targets need -o PATH' in done.stderr, done)


sys.exit(run_tests(__doc__, {'k.red': COPY}, [each_capability, devices_that_cannot, no_driver, lists]))

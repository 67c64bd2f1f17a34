#!/usr/bin/env python3
"""redc run --device=cuda against the fake driver: right results, everything given back, and each call's failure is a message.

    run_cuda.py --redc PATH --fake PATH
"""

import sys

from driven import Driven, expect, run_tests

ROWSUM = '''kernel rowsum(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }
schedule rowsum { bind i -> block.x; bind j -> thread.x; }
'''
class Runner:
    """redc run of a small kernel."""

    def __init__(self, driven: Driven):
        self.driven = driven

    def run(self, setting='', *more):
        """The finished process and the calls that it made."""
        done = self.driven.run('run', 'k.red', '-D', 'm=11', '--size', 'n=4', '--arg', 'A=1000*i0+i1', '--device=cuda', '--print', 'B', *more, setting=setting)
        return done, self.driven.calls()


def whole_run(r):
    done, calls = r.run('', '--check')
    expect('result', done.returncode == 0 and '55' in done.stdout and '33055' in done.stdout, done)
    for made, ended in [('cuDevicePrimaryCtxRetain', 'cuDevicePrimaryCtxRelease_v2'), ('cuModuleLoadDataEx', 'cuModuleUnload'),
                        ('cuMemAlloc_v2', 'cuMemFree_v2')]:
        expect(made, calls.count(made) == calls.count(ended) > 0, calls)
    expect('context', calls.count('cuCtxSetCurrent') == 2, calls)


def each_call_may_fail(r):
    _, calls = r.run()
    ours = sorted(set(calls) - {'cuGetErrorName', 'cuGetErrorString', 'cuDriverGetVersion', 'cuModuleUnload', 'cuMemFree_v2',
                                'cuDevicePrimaryCtxRelease_v2'})
    expect('calls', len(ours) > 8, ours)
    for call in ours:
        for nth in range(1, min(calls.count(call), 3) + 1):
            done, after = r.run(f'fail={call}:999:{nth}')
            name = f'{call} fails at call {nth}'
            is_cleaning = call == 'cuCtxSetCurrent' and nth == 2
            expect(name, done.returncode == (0 if is_cleaning else 1), done)
            if not is_cleaning:
                expect(name, 'CUDA_ERROR_UNKNOWN (999)' in done.stderr, done.stderr)
            expect(name, after.count('cuMemAlloc_v2') - (call == 'cuMemAlloc_v2') == after.count('cuMemFree_v2'), after)
            expect(name, after.count('cuDevicePrimaryCtxRetain') - (call == 'cuDevicePrimaryCtxRetain') ==
                   after.count('cuDevicePrimaryCtxRelease_v2'), after)


def messages(r):
    done, _ = r.run('driver=11000 arch=90')
    expect('222', done.returncode == 1 and '(222)' in done.stderr and 'CUDA 11.0' in done.stderr and '7.8' in done.stderr, done.stderr)
    done, _ = r.run('fail=cuModuleLoadDataEx:209')
    expect('209', done.returncode == 1 and '(209)' in done.stderr and 'another GPU' in done.stderr, done.stderr)
    done, _ = r.run('arch=80')
    expect('sm_80', done.returncode == 0, done.stderr)
    done, _ = r.run('arch=70')
    expect('sm_70', done.returncode == 1 and 'sm_70' in done.stderr, done.stderr)
    done, _ = r.run('devices=0')
    expect('no device', done.returncode == 1 and 'the driver sees 0' in done.stderr, done.stderr)


def main(driven):
    runner = Runner(driven)
    for test in (whole_run, each_call_may_fail, messages):
        test(runner)


if __name__ == '__main__':
    sys.exit(run_tests(__doc__, {'k.red': ROWSUM}, [main]))

#!/usr/bin/env python3
"""redc bench against the fake driver: figures of a clock that is known, everything given back, and each call's failure is a message.

    bench.py --redc PATH --fake PATH
"""

import json
import sys

from driven import Driven, expect, run_tests

PROGRAM = '''kernel rowsum(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }
kernel copy(A: f32[n, m]) -> (B: f32[n, m]) { for i in n, j in m { B[i, j] = A[i, j]; } }
'''
class Runner:
    """redc bench of a small kernel."""

    def __init__(self, driven: Driven):
        self.driven = driven

    def run(self, setting='', *more, library=None):
        """The finished process and the calls that it made."""
        done = self.driven.run('bench', 'k.red', '-D', 'm=64', '--size', 'n=40', '--repeats', '3', *(more or ('--kernel', 'rowsum')), setting=setting, library=library)
        return done, self.driven.calls()


def given_back(name, calls):
    for made, ended in [('cuDevicePrimaryCtxRetain', 'cuDevicePrimaryCtxRelease_v2'), ('cuModuleLoadDataEx', 'cuModuleUnload'),
                        ('cuMemAlloc_v2', 'cuMemFree_v2'), ('cuEventCreate', 'cuEventDestroy_v2')]:
        expect(f'{name}: {made}', calls.count(made) == calls.count(ended) > 0, calls)


def whole_run(r):
    done, calls = r.run('', '--kernel', 'rowsum', '--json')
    expect('status', done.returncode == 0 and not done.stderr, done)
    got = json.loads(done.stdout)
    expect('names', (got['kernel'], got['device'], got['ceiling']) == ('rowsum', 'fake GPU, sm_90', 'read'), got)
    expect('bytes', (got['bytes_read'], got['bytes_written'], got['repeats']) == (40 * 64 * 4, 160, 3), got)
    expect('time', got['p20'] == got['us'] == got['p80'] == got['best'] > 1, got)
    expect('rate', abs(got['gbps'] - (10240 + 160) / got['us'] * 1e-3) < 0.02, got)
    expect('percent', abs(got['percent'] - 100 * got['gbps'] / got['ceiling_gbps']) < 0.5, got)
    given_back('rowsum', calls)
    done, calls = r.run('', '--kernel', 'copy', '--json')
    got = json.loads(done.stdout)
    expect('copy', got['ceiling'] == 'copy' and got['bytes_written'] == got['bytes_read'] == 10240, got)
    given_back('copy', calls)
    done, _ = r.run('')
    expect('text', all(word in done.stdout for word in ('rowsum on fake GPU, sm_90', 'time ', 'GB/s by a kernel that only reads')), done)
    done, _ = r.run('', '--kernel', 'rowsum', '--arch=sm_80')
    expect('arch', 'fake GPU, sm_80' in done.stdout, done)


def each_call_may_fail(r):
    _, calls = r.run()
    ours = sorted(set(calls) - {'cuGetErrorName', 'cuGetErrorString', 'cuDriverGetVersion', 'cuModuleUnload', 'cuMemFree_v2',
                                'cuDevicePrimaryCtxRelease_v2', 'cuEventDestroy_v2'})
    expect('calls', len(ours) > 12, ours)
    for call in ours:
        for nth in range(1, min(calls.count(call), 4) + 1):
            done, after = r.run(f'fail={call}:999:{nth}')
            name = f'{call} fails at call {nth}'
            is_cleaning = call == 'cuCtxSetCurrent' and nth == 2
            expect(name, done.returncode == (0 if is_cleaning else 1), done)
            if not is_cleaning:
                expect(name, 'CUDA_ERROR_UNKNOWN (999)' in done.stderr and not done.stdout, done)
            for made, ended in [('cuMemAlloc_v2', 'cuMemFree_v2'), ('cuEventCreate', 'cuEventDestroy_v2'), ('cuModuleLoadDataEx', 'cuModuleUnload')]:
                expect(f'{name}: {made}', after.count(made) - (call == made) == after.count(ended), after)


def no_gpu(r):
    done, _ = r.run(library='/nonexistent/libcuda.so')
    expect('no driver', done.returncode == 1 and 'no CUDA driver' in done.stderr and '--device=sim' in done.stderr, done)
    done, _ = r.run('devices=0')
    expect('no device', done.returncode == 1 and 'no CUDA device' in done.stderr, done)


def main(driven):
    r = Runner(driven)
    whole_run(r)
    each_call_may_fail(r)
    no_gpu(r)


if __name__ == '__main__':
    sys.exit(run_tests(__doc__, {'k.red': PROGRAM}, [main]))

#!/usr/bin/env python3
"""red beside its peers on one GPU, in one run: peers.py [GROUP...] [--peers LIST] [--flush read|write] [--json FILE] [--svg FILE]

Groups: columns rows small permutes sweep sweep_types sweep_operators sweep_sample sets orders large. For each case, all contestants in turn on the same buffers, L2 cold, timed by CUDA
events; `small` also inside a graph and on the wall. Prints a line a case: microseconds, GB/s, red's ratio to the ceiling of that
case (a kernel that only reads, or a copy) and to the best peer (above 1: red is faster). Needs PyTorch, CuPy for CuPy's own rows and
the ceiling of reductions, and libred.so where runtime/python/red.py finds it (LIBRED names it).
"""
import argparse
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', '..', '..', 'runtime', 'python')]

import cases  # noqa: E402

CEILINGS = ('read', 'read_cs', 'copy')


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('groups', nargs='*', default=['columns', 'rows', 'permutes', 'small'], help=' '.join(cases.GROUPS))
    parser.add_argument('--peers', default='eager,compiled,cupy,cublas,ceiling', help='any of eager,compiled,cupy,cublas,ceiling')
    parser.add_argument('--dtypes', default='', help='only these element types: f32,f16')
    parser.add_argument('--only', default='', help='only cases whose name holds this')
    parser.add_argument('--every', type=int, default=1, help='every N-th case')
    parser.add_argument('--flush', choices=('read', 'write'), default='read')
    parser.add_argument('--repeats', type=int, default=30)
    parser.add_argument('--exact', action='store_true', help='compile red for the exact sizes')
    parser.add_argument('--seconds', type=float, default=570, help='stop before a case that begins later than this')
    parser.add_argument('--dry-run', action='store_true', help='no GPU: print which schedule each case takes, and its grid and block')
    parser.add_argument('--json')
    parser.add_argument('--svg')
    chosen = parser.parse_args()
    for group in chosen.groups:
        if group not in cases.GROUPS:
            parser.error(f'no group {group!r}; there are {" ".join(cases.GROUPS)}')
    return chosen


def line(kind, row):
    times = row[kind]
    ceiling = min((times[name]['us'] for name in CEILINGS if name in times), default=None)
    peers = {name: t['us'] for name, t in times.items() if name != 'red' and name not in CEILINGS}
    red = times['red']['us']
    label = f'{row["group"]:9s} {cases.full_name(row):50s} {kind:5s}'
    text = f'{label} red {red:9.2f} us ({times["red"]["p20"]:.2f}..{times["red"]["p80"]:.2f}) {row["bytes"] / red / 1e3:7.1f} GB/s'
    if ceiling:
        text += f'  ceiling {ceiling / red:5.2f}'
        row[kind + '_ceiling_ratio'] = ceiling / red
    if peers:
        best = min(peers, key=peers.get)
        row[kind + '_peer_ratio'] = peers[best] / red
        text += f'  best peer {peers[best] / red:5.2f} ({best})  ' + ' '.join(f'{name} {t:.2f}' for name, t in peers.items())
    return text + ('' if row['right'] else '  WRONG')


def selected(chosen):
    todo = [case for group in chosen.groups for case in cases.GROUPS[group]()]
    return [c for c in todo if chosen.only in c['name'] and (not chosen.dtypes or c['dtype'] in chosen.dtypes.split(','))][::chosen.every]


class Shape:
    """A tensor without elements: enough to be asked which schedule it takes. `place`: no two overlap."""

    def __init__(self, dtype, shape, place=0):
        # bf16 has no name among array interfaces: its bytes are those of f16, and so are its schedules
        kind = {'f16': '<f2', 'bf16': '<f2', 'f32': '<f4', 'f64': '<f8', 'i8': '|i1', 'u8': '|u1', 'c128': '<c16', 'i32': '<i4', 'i64': '<i8'}[dtype]
        self.__array_interface__ = dict(shape=tuple(shape), typestr=kind, data=(place + 1 << 40, False), version=3)


def dry_run(chosen):
    """Compiles every case's program for the simulator's device, and prints the launch that it would be."""
    import red
    import texts
    failed = 0
    for case in selected(chosen):
        case['dtype'] = 'f16' if case['dtype'] == 'bf16' else case['dtype']
        text, defines = texts.text(case), {f'n{d}': extent for d, extent in enumerate(case['shape'])} if chosen.exact else {}
        label = f'{case["group"]:9s} {case["what"]:13s} {case["dtype"]:4s} {case["name"]:28s}'
        try:
            program = red.compile(text, device='sim', defines=defines)
            choice = program.choose(Shape(case['dtype'], case['shape']), *(Shape(t, s, place) for place, (t, s) in enumerate(texts.outputs(case), 1)))
            grid, block = ('x'.join(map(str, size)) for size in (choice.grid, choice.block))
            print(f'{label} {choice.schedule:24s} grid {grid}, block {block}')
            program.close()
        except red.Error as error:
            failed += 1
            print(f'{label} FAILED {str(error)[:300]}')
    return 1 if failed else 0


def main():
    chosen = arguments()
    if chosen.dry_run:
        return dry_run(chosen)
    import torch
    import contestants
    import measure
    begin, rows, wanted = time.time(), [], set(chosen.peers.split(','))
    print(f'# {torch.cuda.get_device_name()}, PyTorch {torch.__version__}, flush by {chosen.flush}, {chosen.repeats} repeats', flush=True)
    todo = selected(chosen)
    for index, case in enumerate(todo):
        if time.time() - begin > chosen.seconds:
            print(f'# out of time: {len(todo) - index} cases not measured', flush=True)
            break
        row = dict(case)
        try:
            calls, row['bytes'], row['right'], row['schedule'] = contestants.contestants(case, wanted, chosen.exact)
            row['cold'] = measure.in_turn(calls, chosen.repeats, chosen.flush)
            print(line('cold', row), flush=True)
            if case['group'] == 'small':
                row['graph'] = measure.in_graph({name: call for name, call in calls.items() if name not in CEILINGS})
                print(line('graph', row), flush=True)
                row['wall'] = measure.on_the_wall({name: call for name, call in calls.items() if name not in CEILINGS})
                print(line('wall', row), flush=True)
            rows.append(row)
        except Exception as error:  # one case that a contestant refuses must not end the others
            print(f'{case["group"]:9s} {case["what"]:8s} {case["dtype"]:4s} {case["name"]:28s} FAILED {str(error)[:300]}', flush=True)
            rows.append(dict(case, failed=str(error)))
        calls = None
        torch.cuda.empty_cache()
    if chosen.json:
        with open(chosen.json, 'w') as file:
            json.dump(rows, file, indent=0)
    if chosen.svg:
        import plot
        with open(chosen.svg, 'w') as file:
            file.write(plot.ratios(rows))
    failed = sum('failed' in row or not row['right'] for row in rows)
    print(f'{len(rows) - failed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())

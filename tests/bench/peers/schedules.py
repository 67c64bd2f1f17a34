#!/usr/bin/env python3
"""The schedules of a program beside each other, in one process: schedules.py FILE.red:m=10000,n=300 ... [--only WORD] [--graph] [--launch-sizes] [--json FILE]

Each FILE.red, with sizes, is compiled once for each schedule that it has, and once for the compiler's own choice with these sizes ("auto") and with sizes that only a
launch tells ("auto, any size"). All are launched in turn on the same buffers, L2 cold (peers.py says how), with --graph also inside a graph of 20, and the results are compared with those of
"auto". Prints a line for each, fastest first: microseconds, the time of a kernel that only reads the inputs over it (of a copy, where the output is as large as the input), the
schedule, grid and block.
"""
import argparse
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', '..', '..', 'runtime', 'python')]


def job(text):
    path, _, sizes = text.partition(':')
    return path, {name: int(value) for name, value in (pair.split('=') for pair in sizes.split(','))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('jobs', nargs='+', type=job, metavar='FILE.red:NAME=N,...')
    parser.add_argument('--only', default='', help='only schedules whose name matches this regular expression')
    parser.add_argument('--repeats', type=int, default=20)
    parser.add_argument('--lines', type=int, default=1000, help='print at most so many of each')
    parser.add_argument('--graph', action='store_true')
    parser.add_argument('--launch-sizes', action='store_true', help='compile for any size')
    parser.add_argument('--json')
    options = parser.parse_args()
    import torch
    import contestants
    import measure
    import red
    results = []
    for path, sizes in options.jobs:
        tensors = other = None  # what the last one took is given back
        with open(path, encoding='utf-8') as file:
            text = file.read()
        names = [name for name in re.findall(r'(?m)^schedule \w+ as (\w+)', text) if re.search(options.only, name)]
        head = text.split('\nschedule ')[0]
        programs, refused = {'auto': red.compile(head, device='cuda:0', defines=sizes), 'auto, any size': red.compile(head, device='cuda:0')}, []
        for name in names:
            try:
                programs[name] = red.compile(text, device='cuda:0', schedule=name, defines={} if options.launch_sizes else sizes)
            except red.Error as error:
                refused.append(f'{name}: {str(error)[:150]}')
        first = programs['auto']
        (kernel,) = first.kernels.values()
        tensors = []
        for parameter in kernel.parameters:
            if parameter.kind in ('input', 'output'):
                shape = [int(eval(extent, {}, dict(sizes))) for extent in parameter.shape.strip('[]').split(',') if extent.strip()]  # pylint: disable=eval-used
                tensors.append(contestants.make_input(dict(dtype=parameter.type, shape=shape)))
        results_at = [i for i, p in enumerate(p for p in kernel.parameters if p.kind in ('input', 'output')) if p.kind == 'output']
        calls, direct, choices, wanted = {}, {}, {}, None
        for name, program in programs.items():
            try:
                choices[name] = program.choose(*tensors)
                calls[name] = program.bind(*tensors)
                direct[name] = lambda program=program: program(*tensors)
                for i in results_at:
                    tensors[i].fill_(-1)
                for _ in range(2):
                    calls[name]()
                torch.cuda.synchronize()
                got = [tensors[i].clone() for i in results_at]
                wanted = wanted or got
                if not all(torch.allclose(a.double(), b.double(), rtol=2e-4, atol=2e-4) for a, b in zip(got, wanted)):
                    refused.append(f'{name}: WRONG')
            except red.Error as error:
                calls.pop(name, None)
                refused.append(f'{name}: {str(error)[:150]}')
        timed = dict(calls)
        if contestants.cupy and tensors[0].nbytes >= 16:
            timed['read'], timed['read_cs'] = contestants.reader(tensors[0], '*'), contestants.reader(tensors[0], '__ldcs')
        is_copy = len(tensors) == 2 and tensors[0].nbytes == tensors[1].nbytes
        if is_copy:
            other = torch.empty_like(tensors[0])
            timed['copy'] = lambda other=other, source=tensors[0]: other.copy_(source)
        cold = measure.in_turn(timed, options.repeats, 'read')
        ceiling = min((cold[name]['us'] for name in (('copy',) if is_copy else ('read', 'read_cs')) if name in cold), default=None)
        graph = {}
        if options.graph:
            graph = measure.in_graph(direct, names=list(direct))
        order = sorted(calls, key=lambda name: (graph or cold)[name]['us'])
        print(f'# {os.path.basename(path)} {sizes}: ceiling {ceiling or 0:.2f} us', flush=True)
        for name in order[:options.lines] + [name for name in order[options.lines:] if name.startswith('auto')]:
            choice = choices[name]
            beside = f'{ceiling / cold[name]["us"]:.3f}' if ceiling else '     '
            inside = f' graph {graph[name]["us"]:.2f}' if graph else ''
            grid, block = ('x'.join(map(str, size)) for size in (choice.grid, choice.block))
            print(f'{cold[name]["us"]:8.2f} {beside}{inside} {name}{" = " + choice.schedule if choice.schedule != name else ""} grid {grid} block {block}', flush=True)
        for line in refused:
            print('  ' + line)
        results.append(dict(file=path, sizes=sizes, cold=cold, graph=graph, ceiling=ceiling, refused=refused))
    if options.json:
        with open(options.json, 'w', encoding='utf-8') as file:
            json.dump(results, file)
    return 1 if any(result['refused'] for result in results) else 0


if __name__ == '__main__':
    sys.exit(main())

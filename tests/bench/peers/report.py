#!/usr/bin/env python3
"""Tables of docs/performance.md from the JSON of peers.py: report.py RUN.json... > tables.md

`ceiling` is the time of the kernel that only reads (or of the copy) over red's, `peer` the best peer's time over red's: above 1, red is
faster.
"""
import json
import statistics
import sys

from cases import full_name

CEILINGS = ('read', 'read_cs', 'copy')


def table(group, rows, kind):
    peers = sorted({name for row in rows for name in row[kind]} - {'red', *CEILINGS})
    print(f'| {group}{"" if kind == "cold" else ", " + kind} | red, us | GB/s | ceiling | peer | ' + ' | '.join(f'{p}, us' for p in peers) + ' |')
    print('|---' * (5 + len(peers)) + '|')
    ceilings = []
    for row in rows:
        times = {name: value['us'] for name, value in row[kind].items()}
        red = times['red']
        ceiling = min((times[name] for name in CEILINGS if name in times), default=None)
        best = min((times[name] for name in peers if name in times), default=None)
        if ceiling:
            ceilings.append(ceiling / red)
        cells = [full_name(row), f'{red:.2f}', f'{row["bytes"] / red / 1e3:.0f}', f'{ceiling / red:.2f}' if ceiling else '', f'{best / red:.2f}' if best else '']
        print('| ' + ' | '.join(cells + [f'{times[p]:.2f}' if p in times else '' for p in peers]) + ' |')
    if len(ceilings) > 3:
        print(f'\nMedian of the ceiling ratios {statistics.median(ceilings):.2f}, lowest {min(ceilings):.2f}.')
    print()


def main():
    rows = [row for path in sys.argv[1:] for row in json.load(open(path, encoding='utf-8')) if 'cold' in row]
    for group in dict.fromkeys(row['group'] for row in rows):
        chosen = [row for row in rows if row['group'] == group]
        for kind in ('cold', 'graph', 'wall'):
            if kind in chosen[0]:
                table(group, chosen, kind)


if __name__ == '__main__':
    main()

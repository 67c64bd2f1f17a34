#!/usr/bin/env python3
"""No cliffs: sweep points that are much slower than their neighbours: cliffs.py RUN.json... [--svg FILE] [--table] [--lowest N] [--least 0.667] [--lines N]

RUN.json: what `peers.py sweep sweep_types sweep_operators --json RUN.json` wrote. A point's neighbours are those of the same type, operator and
axis at the same step of the sweep and at the steps beside it, odd extents too. It is a cliff where its bandwidth is below two thirds of the best of them. --table
prints a row for each type and operator, --lowest the N points that are furthest below the ceiling of their run. Exits with 1 where there is a cliff, a wrong answer, or nothing to look at.
"""
import argparse
import collections
import json
import statistics
import sys
from xml.sax.saxutils import escape

CEILINGS = ('read', 'read_cs', 'copy')


def bandwidth(row):
    return row['bytes'] / row['cold']['red']['us'] / 1e3


def ceiling_of(row):
    """The best of the kernels that only read or only copy, in GB/s of what red moves; None: not measured."""
    times = [row['cold'][name]['us'] for name in CEILINGS if name in row['cold']]
    return row['bytes'] / min(times) / 1e3 if times else None


def kind_of(row):
    return row['what'], row['dtype'], row['axes'][0]


def points(rows):
    """{kind: rows} of those that were measured in a sweep."""
    found = collections.defaultdict(list)
    for row in rows:
        if 'step' in row and 'cold' in row and 'red' in row['cold']:
            found[kind_of(row)].append(row)
    return found


def cliffs(rows, least):
    """(part of the neighbours' best, row, the best neighbour) of each point below `least`, the worst first."""
    found = []
    for group in points(rows).values():
        steps = sorted({row['step'] for row in group})
        for row in group:
            at = steps.index(row['step'])
            near = [other for other in group if other is not row and other['step'] in steps[max(at - 1, 0):at + 2]]
            best = max(near, key=bandwidth, default=row)
            if bandwidth(row) < least * bandwidth(best):
                found.append((bandwidth(row) / bandwidth(best), row, best))
    return sorted(found, key=lambda cliff: cliff[0])


def describe(row):
    ceiling = ceiling_of(row)
    beside = f', {bandwidth(row) / ceiling:.2f} of its ceiling' if ceiling else ''
    return f'{row["what"]} {row["dtype"]} {row["name"]} ({row.get("schedule", "?")}): {row["cold"]["red"]["us"]:.1f} us, {bandwidth(row):.0f} GB/s{beside}'


def print_table(rows, least):
    print('| what | over | points | GB/s, median | lowest | at | ceiling, median | lowest | at | cliffs |')
    print('|---' * 10 + '|')
    for (what, dtype, axis), group in points(rows).items():
        rates = sorted((bandwidth(row), row['name']) for row in group)
        ratios = sorted((bandwidth(row) / ceiling_of(row), row['name']) for row in group if ceiling_of(row))
        ratio = f'{statistics.median(r for r, _ in ratios):.2f} | {ratios[0][0]:.2f} | {ratios[0][1]}' if ratios else ' | | '
        print(f'| {what} {dtype} | {("first axis", "last axis")[axis]} | {len(group)} | {statistics.median(r for r, _ in rates):.0f} | {rates[0][0]:.0f} | {rates[0][1]} | {ratio} | {len(cliffs(group, least))} |')


STYLE = ('text{font:12px sans-serif;fill:#222}.grid{stroke:#ccc}.even{fill:#2a78c4;stroke:#2a78c4}.odd{fill:#c46a2a;stroke:#c46a2a}.ceiling{stroke:#888;fill:none;stroke-dasharray:4 3}'
         'polyline{fill:none;stroke-width:1.5}@media(prefers-color-scheme:dark){text{fill:#ddd}.grid{stroke:#444}}')


def svg(rows):
    """A panel for each type, operator and axis: GB/s over the first extent, powers of two and their odd neighbours."""
    groups = sorted(points(rows).items())
    width, height, left, top, columns = 380, 190, 46, 34, 3
    wanted_rows = -(-len(groups) // columns)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {columns * width} {wanted_rows * height + top}" role="img">', f'<style>{STYLE}</style>',
             '<text x="8" y="18">GB/s over log2 of the first extent: powers of two (blue), odd neighbours (orange), ceiling (dashed)</text>']
    most = max((max(bandwidth(row), ceiling_of(row) or 0) for _, group in groups for row in group), default=1)
    for number, ((what, dtype, axis), group) in enumerate(groups):
        x0, y0 = number % columns * width + left, top + number // columns * height
        wide, high, last = width - left - 12, height - 52, max(row['step'] for row in group) or 1
        place = lambda step, rate: (x0 + step / last * wide, y0 + 16 + high - rate / most * high)  # noqa: E731
        parts.append(f'<text x="{x0}" y="{y0 + 10}">{escape(f"{what} {dtype} over {axis}")}</text>')
        for tick in (0, most / 2, most):
            _, y = place(0, tick)
            parts.append(f'<line class="grid" x1="{x0}" x2="{x0 + wide}" y1="{y:.1f}" y2="{y:.1f}"/><text x="{x0 - 4}" y="{y + 4:.1f}" text-anchor="end">{tick:.0f}</text>')
        for step in range(0, last + 1, 4):
            parts.append(f'<text x="{place(step, 0)[0]:.1f}" y="{y0 + 16 + high + 14}" text-anchor="middle">{step}</text>')
        even = sorted((row for row in group if not row['delta']), key=lambda row: row['step'])
        parts.append(f'<polyline class="even" points="{" ".join("%.1f,%.1f" % place(row["step"], bandwidth(row)) for row in even)}"/>')
        if all(ceiling_of(row) for row in even):
            parts.append(f'<polyline class="ceiling" points="{" ".join("%.1f,%.1f" % place(row["step"], ceiling_of(row)) for row in even)}"/>')
        for row in group:
            x, y = place(row['step'], bandwidth(row))
            parts.append(f'<circle class="{"odd" if row["delta"] else "even"}" cx="{x:.1f}" cy="{y:.1f}" r="2.2"><title>{escape(describe(row))}</title></circle>')
    return '\n'.join(parts + ['</svg>', ''])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('runs', nargs='+')
    parser.add_argument('--svg')
    parser.add_argument('--table', action='store_true')
    parser.add_argument('--lowest', type=int, default=0)
    parser.add_argument('--least', type=float, default=2 / 3)
    parser.add_argument('--lines', type=int, default=1000, help='print at most so many cliffs')
    options = parser.parse_args()
    rows = []
    for path in options.runs:
        with open(path, encoding='utf-8') as file:
            rows += json.load(file)
    count = sum(len(group) for group in points(rows).values())
    wrong = [row for row in rows if 'step' in row and not row.get('right')]
    found = cliffs(rows, options.least)
    if options.table:
        print_table(rows, options.least)
    for row in wrong[:options.lines]:
        print(f'WRONG {row["what"]} {row["dtype"]} {row["name"]} {row.get("failed", "")[:200]}')
    for part, row, best in found[:options.lines]:
        print(f'CLIFF {part:.2f} of {best["name"]} ({bandwidth(best):.0f} GB/s): {describe(row)}')
    measured = [row for group in points(rows).values() for row in group if ceiling_of(row)]
    for row in sorted(measured, key=lambda row: bandwidth(row) / ceiling_of(row))[:options.lowest]:
        print(f'LOW {describe(row)}')
    if options.svg:
        with open(options.svg, 'w', encoding='utf-8') as file:
            file.write(svg(rows))
    print(f'{count} points, {len(found)} cliffs, {len(wrong)} wrong')
    return 1 if found or wrong or not count else 0


if __name__ == '__main__':
    sys.exit(main())

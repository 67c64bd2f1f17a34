#!/usr/bin/env python3
"""The reductions of cases.py under every class of the compiler's own schedules that takes them, not the one that it would choose alone: the same answers. And what
`redc schedule` prints of a class, given with the program, makes the same code.

  REDC=build/redc RED_SOURCE_DIR=. python3 tests/run/classes.py [TEXT]     # the cases with TEXT in their names
"""

import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.join(os.environ['RED_SOURCE_DIR'], 'tests')
sys.path[:0] = [HERE, os.path.join(HERE, 'run')]
import batch  # noqa: E402
import cases  # noqa: E402

REDUCES = re.compile(r'\b(sum|prod|min|max|any|all|count|argmin|argmax|reducer)\b')


class Case(cases.Case):
    """A case under one class."""

    def __init__(self, number, case, root, name):
        super().__init__(number, (f'{case[0]}, {name}', case[1], [*case[2], '--class', name], case[3]), root)
        self.class_name = name

    def line(self):
        return [part for part in super().line() if not part.startswith('--seeds')]

    def options(self):
        """Those of the run that choose the code."""
        pairs = zip(self.args[::2], self.args[1::2])
        return [word for option, value in pairs if option in ('-D', '--arch') for word in (option, value)]

    def code(self, *more):
        done = subprocess.run([cases.REDC, self.path, *self.options(), *more, '--emit=ptx', '-o', '-'], capture_output=True, text=True, check=False)
        kept = [line for line in done.stdout.splitlines() if not re.match(r'\s*(//|\.loc|\.file)', line)]
        return '\n'.join(kept) if done.returncode == 0 else f'exit status {done.returncode}: {done.stderr}'

    def fed_back(self):
        """What is wrong with the class's schedules as a text of their own, or None."""
        done = subprocess.run([cases.REDC, 'schedule', self.path, *self.options(), '--class', self.class_name], capture_output=True, text=True, check=False)
        if done.returncode:
            return f'{self.name}: redc schedule: {done.stderr}'
        path = f'{self.folder}/schedule.red'
        with open(path, 'w', encoding='utf-8') as file:
            file.write(done.stdout)
        own, given = self.code('--class', self.class_name), self.code(path)
        return None if own == given and '.entry' in own else f'{self.name}: {path} makes other code than the class'


def classes_of(case, root, number):
    """The classes that take the program of a case: what is said where a class of permutes is asked for."""
    probe = cases.Case(number, case, root)
    options = [word for option, value in zip(probe.args[::2], probe.args[1::2]) if option in ('-D', '--arch') for word in (option, value)]
    done = subprocess.run([cases.REDC, 'schedule', probe.path, *options, '--class=tile'], capture_output=True, text=True, check=False)
    found = re.search(r'classes that do: (.*)', done.stderr)
    return found[1].split(', ') if found else []


def main():
    words = [a for a in sys.argv[1:] if not a.startswith('--')]
    wrong, seen = [], set()
    with tempfile.TemporaryDirectory() as root:
        free = [c for c in cases.cases() if 'schedule' not in c[1] and REDUCES.search(c[1]) and (not words or words[0] in c[0])]
        pairs = [(c, name) for number, c in enumerate(free) for name in classes_of(c, root, 100000 + number)]
        chosen = [Case(number, c, root, name) for number, (c, name) in enumerate(pairs)]
        seen = {c.class_name for c in chosen}
        done = batch.run(cases.REDC, [c.line() for c in chosen], [f'--device={cases.DEVICE}'], cases.JOBS, 300)
        wrong += [a for a in (c.judge(status, output) for c, (status, output) in zip(chosen, done)) if a]
        fed = chosen[::4] if cases.DEVICE == 'sim' else []
        wrong += [a for a in (c.fed_back() for c in fed) if a]
    missing = {'thread', 'rows', 'group', 'warp', 'block', 'column', 'block_split', 'column_split'} - seen
    if missing and not words:
        wrong.append(f'no case ran under {", ".join(sorted(missing))}')
    print('\n'.join(wrong[:20]))
    print(f'{len(chosen) + len(fed) - len(wrong)} passed, {len(wrong)} failed')
    return 1 if wrong or not chosen else 0


if __name__ == '__main__':
    sys.exit(main())

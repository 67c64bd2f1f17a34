#!/usr/bin/env python3
"""Every error of compiler/errors.def is shown by a golden case, and every number that a golden case or a page names exists."""
import glob
import os
import re
import sys

ROOT = os.environ['RED_SOURCE_DIR']
# A fault of the compiler, by its nature without a case; and what tests/badinput.py shows, with programs that golden cases may not need.
NOT_SHOWN = {901, 504}


def main():
    with open(os.path.join(ROOT, 'compiler', 'errors.def'), encoding='utf-8') as f:
        errors = {int(number): name for name, number in re.findall(r'^E\((\w+), (\d+),', f.read(), flags=re.M)}
    shown, wrong = set(), []
    for path in glob.glob(os.path.join(ROOT, 'tests', 'golden', '**', '*.test'), recursive=True) + glob.glob(os.path.join(ROOT, 'docs', '*.md')):
        with open(path, encoding='utf-8') as f:
            text = f.read()
        named = {int(n) for n in re.findall(r'\[E(\d+)\]|"code": ?"E(\d+)"|\bE([1-9]\d\d)\b', text) for n in n if n}
        wrong += [f'{os.path.relpath(path, ROOT)}: there is no error E{n}' for n in sorted(named - set(errors))]
        if path.endswith('.test'):
            shown |= {int(n) for n in re.findall(r'\[E(\d+)\]', text)}
    wrong += [f'no golden case shows E{n} ({errors[n]})' for n in sorted(set(errors) - shown - NOT_SHOWN)]
    print('\n'.join(wrong))
    print(f'{len(errors) - len(wrong)} passed, {len(wrong)} failed')
    return 1 if wrong or not errors else 0


if __name__ == '__main__':
    sys.exit(main())

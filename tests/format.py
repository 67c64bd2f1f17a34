#!/usr/bin/env python3
"""redc fmt over every program of the repository: examples, tests, pages, inputs of fuzzers.

    format.py [--redc PATH] [--sample N]

What fmt writes holds the same words and comments in their order, is left as it is by fmt, and is the same tree (--emit=ast). Each program is tried
as it stands, on one line as far as comments allow, and with comments between any two words, by a seed. What does not parse is refused. Of
N programs, as they stand, the PTX is the same too, but for places in the source.
"""

import argparse
import concurrent.futures
import glob
import os
import random
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'golden'))
import run as golden  # noqa: E402

WORD = re.compile(r'//[^\n]*|/\*.*?\*/|0[xX][0-9a-fA-F]+|[0-9]+\.[0-9]+(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+|[A-Za-z_0-9]+|\.\.|->|<<|>>|[<>=!]=|&&|\|\||[-+*&|^]=|\s+|.', re.S)
PLACES = re.compile(r'^\s*(?:\.loc|\.file)\b.*\n', re.M)


def words(text):
    """The words and comments of a program; a comment as its lines, without what indents them."""
    return [tuple(line.strip() for line in w.splitlines()) if w.startswith(('//', '/*')) else w for w in WORD.findall(text) if not w.isspace()]


def one_line(text):
    return ''.join(w + '\n' if w.startswith('//') else w if not w.isspace() else ' ' for w in WORD.findall(text))


def commented(text, seed):
    draw, out = random.Random(seed), []
    for number, word in enumerate(WORD.findall(text)):
        out.append(word)
        kind = draw.randrange(12)
        if word.isspace() and kind < 4:
            out.append((f'// remark {number}\n', f'/* remark {number} */', f'/* remark\n     {number} */\n', f'\n\n// remark {number}\n\n')[kind])
    return ''.join(out)


def programs():
    """{text: where it stands}"""
    found = {}

    def add(text, where):
        found.setdefault(text, where)
    for folder, _, names in os.walk(ROOT):
        if os.path.relpath(folder, ROOT).split(os.sep)[0] in ('build', '.git'):
            continue
        for name in names:
            path = os.path.join(folder, name)
            where = os.path.relpath(path, ROOT)
            if not name.endswith(('.red', '.test', '.md', '.py', '.c', '.h')) and 'corpus' not in folder:
                continue
            with open(path, encoding='utf-8', errors='surrogateescape', newline='') as f:
                text = f.read()
            if name.endswith('.red') or 'corpus/fuzz_red' in folder:
                add(text, where)
            elif name.endswith('.test'):
                for case in golden.parse(path, False)[1]:
                    for section in case.all('input'):
                        if (section.name or 'input.red').endswith('.red') or section.name == 'stdin':
                            add(section.text(), f'{where}: {case.title}')
            elif name.endswith('.md'):
                for body in re.findall(r'```red[^\n]*\n(.*?)```', text, re.S):
                    add(body, where)
            elif name.endswith('.py'):
                for body in re.findall(r"'''((?:(?!''').)*?\bkernel\b.*?)'''", text, re.S):
                    add(body, where)
    return found


class Formatter:
    def __init__(self, redc):
        self.redc = redc

    def run(self, arguments, text):
        done = subprocess.run([self.redc] + arguments, input=text.encode('utf-8', 'surrogateescape'), capture_output=True, timeout=120, check=False)
        return done.returncode, done.stdout.decode('utf-8', 'surrogateescape'), done.stderr.decode('utf-8', 'surrogateescape')

    def check(self, text, compiles):
        """What is wrong; None: nothing. False: it does not parse."""
        status, tree, _ = self.run(['--emit=ast', '-'], text)
        formatted_status, out, said = self.run(['fmt', '-'], text)
        if formatted_status != 0:
            if formatted_status != 1 or out or 'error' not in said:
                return f'fmt ends with {formatted_status}'
            return 'fmt refuses what parses' if status == 0 else False
        if words(out) != words(text):
            a, b = words(text), words(out)
            at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            return f'words are not the same: {a[at:at + 3]} and {b[at:at + 3]}'
        if self.run(['fmt', '-'], out)[1] != out:
            return 'fmt changes what it wrote'
        if any(line != line.rstrip() for line in out.splitlines() if not line.rstrip().startswith(('//', '*'))):
            return 'a line ends with space'
        if status == 0 and self.run(['--emit=ast', '-'], out)[1] != tree:
            return 'another tree'
        if compiles:
            before, after = (self.run(['-', '-D', 'T=f16', '--emit=ptx'], t) for t in (text, out))
            if before[0] != after[0] or PLACES.sub('', before[1]) != PLACES.sub('', after[1]):
                return 'another PTX'
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--redc', default=os.path.join(ROOT, 'build', 'redc'))
    parser.add_argument('--sample', type=int, default=40)
    options = parser.parse_args()
    formatter = Formatter(os.path.abspath(options.redc))
    tasks, found = [], programs()
    draw = random.Random(1)
    sample = set(draw.sample(sorted(found), min(options.sample, len(found))))
    for text, where in found.items():
        tasks.append((where, text, text in sample))
        if len(text) < 20000 and '\0' not in text:
            tasks.append((where + ', on one line', one_line(text), False))
            tasks.append((where + ', with comments', commented(text, len(text)), False))
    passed = refused = 0
    failures = []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for (where, text, _), wrong in zip(tasks, pool.map(lambda t: formatter.check(t[1], t[2]), tasks)):
            passed += not wrong
            refused += wrong is False
            if wrong:
                failures.append(f'FAILED {where}: {wrong}\n{text if len(text) < 600 else ""}')
    if passed - refused < 500:
        failures.append(f'FAILED: only {passed - refused} programs that parse')
    print('\n'.join(failures[:20] + [f'{refused} of them do not parse', f'{passed} passed, {len(failures)} failed']))
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())

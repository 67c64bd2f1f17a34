#!/usr/bin/env python3
"""Each line of the code of every example knows the source that it came from.

PTX: every instruction of an entry stands behind a .loc of its entry, whose file is named and whose line and column are a place of that file,
in the kernel or a schedule or reducer of it. CUDA: every statement of a kernel stands behind a comment "// FILE:LINE", which names such a place.
"""
import glob
import os
import re
import shlex
import subprocess
import sys

REDC = os.environ['REDC']
ROOT = os.environ['RED_SOURCE_DIR']
VERBS = ('run', 'check', 'schedule', 'tune', 'bench', 'inspect', 'lift')


def commands(path):
    """What the example says of itself, without what is written where: the options that choose the code."""
    found = set()
    with open(path, encoding='utf-8') as f:
        for line in f:
            m = re.match(r'\s*// redc (.*)', line)
            words = shlex.split(m[1], comments=True) if m else []
            if not words or words[0] in VERBS:
                continue
            kept = [w for i, w in enumerate(words) if w.startswith('-D') or words[i - 1] == '-D']
            found.add(tuple(kept))
    return sorted(found)


def is_place(name, file, lines, number, column=1):
    """Whether there is program text at a place: not in a comment or an empty line. Column 0 is the whole line. What stands in the compiler's own
    schedules, which are texts without a file, has a line."""
    column = max(column, 1)
    if re.match(r'<schedules of \w+>', file):
        return number > 0
    if os.path.basename(file) != name or not 1 <= number <= len(lines):
        return False
    text = lines[number - 1].split('//')[0].rstrip()
    return 1 <= column <= len(text)


def check_ptx(name, text, lines):
    files, inside, place, seen, wrong = {}, None, None, 0, []
    for number, line in enumerate(text.split('\n'), 1):
        stripped = line.strip()
        m = re.match(r'\.file\s+(\d+) "(.*?)"', stripped)
        if m:
            files[m[1]] = m[2]
    for number, line in enumerate(text.split('\n'), 1):
        stripped = line.strip()
        entry = re.match(r'\.visible \.entry (\w+)', stripped)
        if entry:
            inside, place = entry[1], None
        if inside is None or not stripped or stripped.startswith(('//', '.visible', '.param', '.reg', '.shared', '.local', '.maxntid', '.reqntid', '.minnctapersm', ')', '{', '$', '.pragma')):
            continue
        if stripped.startswith('}'):
            inside = None
            continue
        loc = re.match(r'\.loc\s+(\d+) (\d+) (\d+)', stripped)
        if loc:
            place = loc.groups()
            if not is_place(name, files.get(place[0], ''), lines, int(place[1]), int(place[2])):
                wrong.append(f'PTX line {number}: {stripped} is no place of {name}')
            continue
        seen += 1
        if place is None:
            wrong.append(f'PTX line {number}, entry {inside}: no .loc before {stripped}')
    return seen, wrong


def check_cuda(name, text, lines):
    inside, place, seen, wrong = False, None, 0, []
    for number, line in enumerate(text.split('\n'), 1):
        stripped = line.strip()
        if 'extern "C" __global__' in line:
            inside, place, in_body = True, None, line.rstrip().endswith('{')
            continue
        if not inside or not stripped:
            continue
        if not in_body:
            in_body = stripped.endswith('{')
            continue
        if line.startswith('}'):
            inside = False
            continue
        comment = re.match(r'// (.*?):(\d+)(: |$)', stripped)
        if comment:
            place = int(comment[2])
            if not is_place(name, comment[1], lines, place):
                wrong.append(f'CUDA line {number}: {stripped} is no place of {name}')
            continue
        if stripped == '}' or stripped.startswith(('#pragma', '//')) or re.match(r'(extern )?__shared__|\w[\w ]*\w \w+\[\d+\]( = \{\})?;$', stripped):
            continue
        seen += 1
        if place is None:
            wrong.append(f'CUDA line {number}: nothing says where it comes from: {stripped}')
    return seen, wrong


def main():
    passed, wrong = 0, []
    for path in sorted(glob.glob(os.path.join(ROOT, 'examples', '*.red'))):
        with open(path, encoding='utf-8') as f:
            lines = f.read().split('\n')
        for options in commands(path):
            for emit, check in (('ptx', check_ptx), ('cuda', check_cuda)):
                done = subprocess.run([REDC, path, *options, f'--emit={emit}'], capture_output=True, text=True, check=False)
                seen, faults = check(os.path.basename(path), done.stdout, lines)
                if done.returncode or not seen:
                    faults.append(f'{emit}: exit status {done.returncode}, {seen} lines: {done.stderr}')
                passed += not faults
                wrong += [f'{os.path.basename(path)} {" ".join(options)}: {w}' for w in faults[:5]]
    print('\n'.join(wrong))
    print(f'{passed} passed, {len(wrong)} failed')
    return 1 if wrong or not passed else 0


if __name__ == '__main__':
    sys.exit(main())

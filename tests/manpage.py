#!/usr/bin/env python3
"""Tests that docs/redc.1 says what redc --help says; --update rewrites the generated part of the page.

    manpage.py [--redc PATH] [--update]

The options, subcommands, examples and exit statuses of the page, between two marks, are made from --help. The page must
also format without a warning, where man is installed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, 'docs', 'redc.1')
BEGIN, END = '.\\" --- from redc --help\n', '.\\" --- end\n'


def sections(text):
    """[(title, [(name, help)] or [line])] of the help text, without what stands before the first title."""
    found = []
    for line in text.splitlines():
        title = re.fullmatch(r'(\S.*):', line)
        if title:
            found.append((title[1], []))
        elif found and line.strip():
            found[-1][1].append(line)
    return found


def entries(lines):
    """[[name, help]] of a list: two spaces, a name, two or more spaces, its help; deeper lines go on."""
    found = []
    for line in lines:
        entry = re.fullmatch(r'  (\S.*?)(?:  +(.*))?', line)
        if entry:
            found.append([entry[1], entry[2] or ''])
        else:
            found[-1][1] = (found[-1][1] + ' ' + line.strip()).strip()
    return found


def escape(text):
    text = text.replace('\\', '\\e').replace('-', '\\-')
    return '\\&' + text if text[:1] in ('.', "'") else text


def name(text):
    """An option: what is typed in bold, what is put in in italics."""
    m = re.fullmatch(r'(-D|-o) (.+)|(--?[A-Za-z-]+)(\[?=?)([^\]]*)(\]?)', text)
    if not m or text.startswith('-O'):
        return f'\\fB{escape(text)}\\fR'
    if m[1]:
        return f'\\fB{escape(m[1])}\\fR \\fI{escape(m[2])}\\fR'
    return f'\\fB{escape(m[3])}\\fR{m[4]}\\fI{escape(m[5])}\\fR{m[6]}' if m[5] else f'\\fB{escape(m[3])}\\fR'


def generate(text):
    out = ['.SH OPTIONS\n']
    for title, lines in sections(text):
        if title == 'Examples':
            out += ['.SH EXAMPLES\n', '.nf\n'] + [escape(line.strip()) + '\n' for line in lines] + ['.fi\n']
        elif title == 'Exit status':
            out.append('.SH EXIT STATUS\n')
            out += [f'.TP\n{escape(a)}\n{escape(b)}\n' for a, b in entries(lines)]
        else:
            subcommands = title.startswith('Subcommands')
            out.append('.SH SUBCOMMANDS\n' if subcommands else f'.SS {escape(title)}\n')
            out += [f'.TP\n{name(a)}\n{escape(b)}\n' for a, b in entries(lines)]
    return ''.join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--redc', default=os.path.join(ROOT, 'build', 'redc'))
    parser.add_argument('--update', action='store_true')
    options = parser.parse_args()
    text = subprocess.run([options.redc, '--help'], stdout=subprocess.PIPE, check=True, text=True).stdout
    with open(PAGE, encoding='utf-8') as f:
        page = f.read()
    head, rest = page.split(BEGIN)
    old, tail = rest.split(END)
    new = generate(text)
    if options.update:
        with open(PAGE, 'w', encoding='utf-8') as f:
            f.write(head + BEGIN + new + END + tail)
    elif old != new:
        print('docs/redc.1 does not say what redc --help says: run tests/manpage.py --update')
        return 1
    missing = [o for o in re.findall(r'(?m)^  (-\S+)', text) if escape(re.split(r'[=\[]', o)[0]) not in new]
    if missing or new.count('.TP') < 20:
        print('the page lacks', *missing)
        return 1
    if shutil.which('man'):
        env = dict(os.environ, MANWIDTH='80', LC_ALL='C', MANROFFSEQ='')
        said = subprocess.run(['man', '--warnings', '-l', PAGE], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env, text=True)
        if said.returncode or said.stderr:
            print(said.stderr)
            return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())

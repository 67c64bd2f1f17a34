#!/usr/bin/env python3
"""Tests that the man pages say what the help texts say; --update rewrites them.

    manpage.py [--redc PATH] [--update]

The options, subcommands, examples and exit statuses of docs/redc.1, between two marks, are made from redc --help; docs/redc-NAME.1 is made whole
from redc NAME --help. Those of commands that this build lacks (they need Clang) are left as they are. All pages must format without a
warning, where man is installed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, 'docs', 'redc.1')
SUBCOMMANDS = os.path.join(ROOT, 'compiler', 'subcommands.def')
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
    """[[name, help]] of a list: two spaces, a name, two or more spaces, its help; deeper lines go on. A name may be several, with two spaces between."""
    found = []
    for line in lines:
        entry = re.fullmatch(r'  (\S.*?) {2,}(\S(?:(?! {2}).)*)', line) or re.fullmatch(r'  (\S.*)()', line)
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


def named(text):
    """What a list of a command is of: options in bold and what they take in italics, or what is typed in bold."""
    if not text.startswith('-'):
        return f'\\fB{escape(text)}\\fR'
    words = []
    for word in text.split():
        option, rest = re.fullmatch(r'(-[A-Za-z-]+|)(.*)', word).groups()
        words.append((f'\\fB{escape(option)}\\fR' if option else '') + (f'\\fI{escape(rest)}\\fR' if rest else ''))
    return ' '.join(words)


def options(lines):
    return ''.join(f'.TP\n{named(a)}\n{escape(b)}\n' if b else f'.TP\n{named(a)}\n' for a, b in entries(lines))


def literal(lines):
    return '.nf\n' + ''.join(escape(line.strip()) + '\n' for line in lines) + '.fi\n'


def command_page(command, summary, text):
    """The page of redc COMMAND. Its help text is usage lines and a description, then paragraphs and lists, apart by empty lines: a list has two spaces in
    front of each entry and a title above it or none, one of command lines is of examples."""
    usage, first, blocks = [], [], [block.split('\n') for block in text.strip('\n').split('\n\n')]
    for line in blocks[0]:
        (usage if line.startswith(('Usage: ', '       ')) and not first else first).append(line)
    out = [f'.TH {escape(f"redc-{command}").upper()} 1\n.SH NAME\nredc\\-{command} \\- {escape(summary)}\n.SH SYNOPSIS\n',
           literal([line.removeprefix('Usage: ') for line in usage]), '.SH DESCRIPTION\n']
    out += [escape(line) + '\n' for line in first]
    for lines in blocks[1:]:
        at = next((i for i, line in enumerate(lines) if line.startswith('  ')), len(lines))
        before, listed, after = lines[:at], lines[at:], []
        while listed and not listed[-1].startswith('  '):
            after.insert(0, listed.pop())
        status = re.fullmatch(r'(Exit status): (.*)', ' '.join(before))
        title = re.fullmatch(r'([A-Z][a-z ]+):', before[0]) if len(before) == 1 else None
        is_of_commands = listed and all(line.startswith('  redc ') for line in listed)
        if status:
            out.append(f'.SH EXIT STATUS\n{escape(status[2])}\n')
        elif title or is_of_commands:
            out.append(f'.SH {escape(title[1] if title else "Examples").upper()}\n')
        elif not before and listed[0].startswith('  -'):
            out.append('.SH OPTIONS\n')
        elif before:
            out.append('.PP\n' + ''.join(escape(line) + '\n' for line in before))
        if listed:
            out.append(literal(listed) if is_of_commands else options(listed))
        if after:
            out.append('.PP\n' + ''.join(escape(line) + '\n' for line in after))
    return ''.join(out) + '.SH SEE ALSO\n.BR redc (1),\n.BR red\\-lang (7)\n'


def pages(redc):
    """(path, what it should hold or None where this build cannot say) of each page."""
    text = subprocess.run([redc, '--help'], stdout=subprocess.PIPE, check=True, text=True).stdout
    with open(PAGE, encoding='utf-8') as f:
        head, rest = f.read().split(BEGIN)
    yield PAGE, head + BEGIN + generate(text) + END + rest.split(END)[1]
    with open(SUBCOMMANDS, encoding='utf-8') as f:
        rows = re.findall(r'^S\((\w+), \w+, "(.*)"\)', f.read(), re.M)
    for command, summary in rows:
        said = subprocess.run([redc, command, '--help'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if said.returncode and '[E504]' not in said.stderr:
            raise RuntimeError(f'redc {command} --help: {said.stderr}')
        yield os.path.join(ROOT, 'docs', f'redc-{command}.1'), None if said.returncode else command_page(command, summary, said.stdout)
    yield os.path.join(ROOT, 'docs', 'red-lang.7'), None


def lacks(text, page):
    """Options of the help text that the page does not have."""
    return [o for o in re.findall(r'(?m)^  (-\S+)', text) if escape(re.split(r'[=\[,]', o)[0]) not in page]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--redc', default=os.path.join(ROOT, 'build', 'redc'))
    parser.add_argument('--update', action='store_true')
    chosen = parser.parse_args()
    wrong = 0
    for path, wanted in pages(chosen.redc):
        held, short = None, os.path.relpath(path, ROOT)
        if os.path.exists(path):
            with open(path, encoding='utf-8') as f:
                held = f.read()
        if wanted and chosen.update:
            held = wanted
            with open(path, 'w', encoding='utf-8') as f:
                f.write(wanted)
        if held is None or wanted not in (None, held):
            print(f'{short} does not say what the help text says: run tests/manpage.py --update')
            wrong = 1
            continue
        command = re.fullmatch(r'redc-?(\w*)\.1', os.path.basename(path))
        if wanted:
            text = subprocess.run([chosen.redc, *filter(None, [command[1]]), '--help'], stdout=subprocess.PIPE, check=True, text=True).stdout
            missing = lacks(text, held)
            if missing or held.count('.TP') < (1 if command[1] else 20):
                print(short, 'lacks', *missing)
                wrong = 1
        if shutil.which('man'):
            env = dict(os.environ, MANWIDTH='80', LC_ALL='C', MANROFFSEQ='')
            said = subprocess.run(['man', '--warnings', '-l', path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env, text=True)
            if said.returncode or said.stderr:
                print(short, said.stderr)
                wrong = 1
    return wrong


if __name__ == '__main__':
    sys.exit(main())

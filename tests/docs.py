#!/usr/bin/env python3
"""Tests what docs/language.md, docs/allreduce.md, docs/tuning.md and README.md show.

A fenced block whose first word is `red` is a program. What follows on that line says what becomes of it:

    ```red [ARGUMENTS] [error E302] [; run ARGUMENTS]

It is compiled by redc with the arguments, to PTX and to CUDA, without a message; or refused with that error and no other. After
"; run", `redc run` runs it in the simulator and compares it with the reference. `red more` stands for the program before, with this
block behind it. A block `message` has lines that the block before it makes redc print, `output` lines that its run prints,
and `cuda COMMAND` is a part, line for line, of what the command prints; --update writes it anew. A block `c` is a program that compiles. Each line of a block `sh` that begins with build/redc must succeed.

The language's types, functions, reducers, directives with the words of their forms, reserved words, and what schedules may ask about must all be named in
docs/language.md and docs/red-lang.7.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILES = ('docs/language.md', 'docs/allreduce.md', 'docs/tuning.md', 'README.md')


def read(name):
    with open(os.path.join(ROOT, name), encoding='utf-8') as f:
        return f.read()


def blocks_of(text):
    """(line, info, body) of each fenced block."""
    info, body, start = None, [], 0
    for number, line in enumerate(text.split('\n'), 1):
        if line.startswith('```'):
            if info is None:
                info, body, start = line[3:].strip(), [], number
            else:
                yield start, info, '\n'.join(body) + '\n'
                info = None
        elif info is not None:
            body.append(line)
    if info is not None:
        yield start, 'unterminated', ''


def words_of_the_language():
    """What the reference must name, each with the file that says so."""
    def all_of(name, section, pattern):
        text = re.search(section, read(name), re.S)
        found = re.findall(pattern, text[0]) if text else []
        if not found:
            raise SystemExit(f'docs.py: {name} has nothing that fits {section}')
        return [(word, name) for word in found]
    return (all_of('compiler/types.def', r'T\(BOOL.*', r'^T\(\w+, "(\w+)", (?!INDEX)'.replace('^', r'(?m:^)'))
            + all_of('passes/check_expr.c', r'functions\[\] = \{.*?\n\};', r'\{"(\w+)"')
            + all_of('passes/check_reduce.c', r'builtins\[\] = \{.*?\n\};', r'\{"(\w+)"')
            + all_of('grammar/red.y', r'\{"a directive",.*?\}', r'\b([A-Z]+)\b')
            + all_of('grammar/red.y', r'%token KERNEL.*?"\'_\'"', r'"\'(\w+)\'"')
            + all_of('compiler/ast_build.c', r'caches\[\] = .*?copies\[\] = .*?;', r'"(\w+)"')
            + all_of('passes/check_schedule.c', r'static struct ir_expr \*schedule_call.*?\n\}', r'strcmp\(name, "(\w+)"')
            + all_of('passes/check_schedule.c', r'device_facts\[\] = \{.*?;', r'"(\w+)"'))


class Checker:
    def __init__(self, redc, folder, update):
        self.redc, self.folder, self.update = redc, folder, update
        self.passed = self.failed = 0
        os.mkdir(os.path.join(folder, 'build'))
        os.symlink(redc, os.path.join(folder, 'build', 'redc'))
        os.symlink(os.path.join(ROOT, 'examples'), os.path.join(folder, 'examples'))

    def call(self, arguments):
        return subprocess.run([self.redc] + arguments, cwd=self.folder, capture_output=True, text=True, check=False, timeout=120)

    def say(self, place, wrong, done=None):
        if wrong:
            self.failed += 1
            print(f'FAILED {place}: {wrong}')
            if done:
                print(done.stdout[-2000:] + done.stderr[-2000:], end='')
        else:
            self.passed += 1

    def has_lines(self, place, body, text, what):
        lines = [line.rstrip() for line in text.split('\n')]
        missing = [line for line in body.strip('\n').split('\n') if line.rstrip() not in lines]
        self.say(place, f'{what} lacks: {missing[0]}\n{text[-2000:]}' if missing else None)

    def program(self, place, info, text):
        """Returns what redc printed on standard error, and what the run printed."""
        compiles, _, runs = info.partition(';')
        arguments = shlex.split(compiles)
        expected = None
        if 'error' in arguments:
            at = arguments.index('error')
            expected = arguments[at + 1]
            del arguments[at:at + 2]
        name = os.path.join(self.folder, 'program.red')
        with open(name, 'w', encoding='utf-8') as f:
            f.write(text)
        said = printed = ''
        for emit in ('ptx', 'cuda'):
            done = self.call(['program.red', f'--emit={emit}', '-o', f'program.{emit}'] + arguments)
            said = done.stderr
            numbers = set(re.findall(r'\[(E\d+)\]', done.stderr))
            if expected:
                wrong = numbers != {expected} or done.returncode != 1
                self.say(place, f'expected error {expected} alone, exit status {done.returncode}' if wrong else None, done)
            else:
                wrong = done.returncode or '--explain' not in arguments and '--remarks' not in info and done.stderr
                self.say(place, f'--emit={emit} gives exit status {done.returncode} and messages' if wrong else None, done)
        if runs.strip():
            words = shlex.split(runs)
            if words.pop(0) != 'run':
                self.say(place, 'only "run" may follow the semicolon')
                return said, printed
            done = self.call(['run', 'program.red', '--device=sim', '--check'] + arguments + words)
            printed = done.stdout
            self.say(place, f'the run gives exit status {done.returncode}' if done.returncode else None, done)
        return said, printed

    def excerpt(self, name, place, command, body):
        """Compares a block `cuda`, or writes it anew: from its first line on to the next one that is its last."""
        done = self.call(shlex.split(command)[1:])
        if self.update and body not in done.stdout:
            lines, old = done.stdout.split('\n'), body.strip('\n').split('\n')
            if old[0] in lines and old[-1] in lines[lines.index(old[0]):]:
                start = lines.index(old[0])
                new = '\n'.join(lines[start:lines.index(old[-1], start) + 1]) + '\n'
                text = read(name).replace(body, new)
                with open(os.path.join(ROOT, name), 'w', encoding='utf-8') as f:
                    f.write(text)
                body = new
        wrong = done.returncode or body not in done.stdout
        self.say(place, 'redc prints something else; see --update' if wrong else None, done)

    def document(self, name):
        program = said = printed = ''
        shown = 0
        for line, info, body in blocks_of(read(name)):
            place = f'{name}:{line}'
            kind, _, rest = info.partition(' ')
            if kind == 'red':
                shown += 1
                if rest.split()[:1] == ['more']:
                    rest = rest.partition('more')[2]
                    text = program + body
                else:
                    program = text = body
                said, printed = self.program(place, rest, text)
            elif kind == 'message':
                self.has_lines(place, body, said, 'the message')
            elif kind == 'output':
                self.has_lines(place, body, printed, 'the output')
            elif kind == 'cuda':
                self.excerpt(name, place, rest, body)
            elif kind == 'sh':
                for command in body.split('\n'):
                    if command.startswith('build/redc'):
                        done = self.call(shlex.split(command, comments=True)[1:])
                        self.say(place, f'`{command}` gives exit status {done.returncode}' if done.returncode else None, done)
            elif kind == 'c':  # a whole program
                done = subprocess.run(['cc', '-std=c11', '-Wall', '-Werror', '-fsyntax-only', '-I', os.path.join(ROOT, 'runtime'), '-x', 'c', '-'], input=body,
                                      capture_output=True, text=True, check=False)
                self.say(place, f'the C compiler gives exit status {done.returncode}' if done.returncode else None, done)
            elif kind:
                self.say(place, f'a block of unknown kind: {info}')
        self.say(name, None if shown else 'shows no program')

    def reference(self):
        text = read('docs/language.md')
        manual = re.sub(r'\\f.|\\&', ' ', read('docs/red-lang.7'))
        for word, where in words_of_the_language():
            word = word.lower()
            for page, held in (('docs/language.md', text), ('docs/red-lang.7', manual)):
                named = re.search(rf'(?<!\w){re.escape(word)}(?!\w)', held)
                self.say(page, None if named else f"does not name '{word}' of {where}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--redc', default=os.path.join(ROOT, 'build', 'redc'))
    parser.add_argument('--update', action='store_true', help='write the excerpts of CUDA anew')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix='red-docs-') as folder:
        checker = Checker(os.path.abspath(options.redc), folder, options.update)
        for name in FILES:
            if os.path.exists(os.path.join(ROOT, name)):
                checker.document(name)
            else:
                checker.say(name, 'is missing')
        checker.reference()
    print(f'{checker.passed} passed, {checker.failed} failed')
    return 1 if checker.failed else 0


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
"""Every error of the compiler, and every message that it is reported with, is expected by a test.

    messages.py [--list]

Reads the sources: the numbers of compiler/errors.def, and each string with a space in a call of a function that reports errors
(REPORTERS). A message is met where its text, with anything in the places of its conversions, stands in what a case of tests/golden
or a page of docs expects, or a part of it between conversions in a string of another test. What is met nowhere fails, unless UNREACHED
says why; one that is met, or gone, has no place there. --explain-error says of each number what the table has. A call of diag_error whose format is no string stands in a function that is a reporter.
"""

import argparse
import ast
import glob
import io
import os
import re
import subprocess
import sys
import tokenize

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'golden'))
import run as golden  # noqa: E402

SOURCES = ('grammar/red*.[ylc]', 'passes/*.c', 'compiler/*.c', 'codegen/cheader.c')
# Of commands and texts that have tests of their own kind: lifting and inspecting, measuring, tuning, the library.
OTHERS = ('compiler/lift', 'compiler/inspect', 'compiler/bench', 'compiler/tune', 'compiler/jit', 'compiler/reference')
REPORTERS = ('diag_error', 'diag_warning', 'diag_note', 'refuse', 'refuse_along', 'refuse_define', 'refuse_size', 'program_refuse', 'say_why',
             'prove_fault', 'report_race', 'read_fail', 'verify_fault', 'expr_fault', 'has_no_axis')
# Functions that hand a format, or a message made elsewhere, to diag_error.
WRAPPERS = ('diag_error', 'depth_above', 'refuse', 'report', 'read_fail', 'verify_fault', 'program_refuse', 'prove_fault')
MEMORY, FAULT, VERIFIED, READ = 'out of memory', 'a fault of the compiler, not of a program', 'the verifier refuses such IR before', 'the reader takes no such text'
PROOF = 'what is proved here goes wrong by faults of the compiler alone; tests/mutation.py makes such faults'
UNREACHED = {
    "a header cannot give '%s' of kernel '%s' its shape: it is no expression of sizes": FAULT,
    'some files of the cache cannot be removed: %s': 'root can remove every file',
    "an expression of the launch mentions a variable of the kernel's body": VERIFIED,
    'an expression of the launch mentions memory that is no tensor': VERIFIED,
    'an expression of the launch is not of integers': VERIFIED,
    'an expression of the launch uses an operation that only kernels have': VERIFIED,
    'there is no memory for a copy of the arguments': MEMORY,
    'cannot start a worker: %s': 'no process left',
    'there is no memory for the simulator': MEMORY,
    '%s: the simulator has no room for %d bytes': MEMORY,
    '%s cannot be launched: %s': FAULT,
    "%d of %d elements of '%s' differ from the reference": FAULT,
    '%s needs %s, which is neither beside redc nor in PATH': 'a build without Clang',
    'it is built with redc where Clang is found: install %s, then configure and build anew': 'a build without Clang',
    'a stage asks for no known way to combine blocks': READ,
    'an arrival is over block axes, and has none of its own': READ,
    'a hint of no known kind, or for no tensor': READ,
    'an atomic has one memory object and at most one result': READ,
    'an asynchronous copy has one offset or one index a dimension on both sides': READ,
    'file is larger than 1 GiB': 'redc reads at most 64 MiB; for texts of the library',
    'the threads of a group do not come to this reduction together: it stands': 'an axis inside another one on the same threads is refused before',
    'legal here: a bound or condition that mentions serial and block axes only': 'goes with the one before',
    "no class does: the kernel's stages differ too much, and it runs one thread an output": 'every kernel that is known has class thread',
    "stage '%s' reads the result of '%s', reduced over the grid, over other axes than it is kept over: that is not lowered by this version": 'no directive is known that leads there',
    'its place is no sum of products of axes': 'no index is known whose bounds are proved and that is none',
    'where one starts is no sum of products of axes': 'no index is known whose bounds are proved and that is none',
    "axis '%s' on threads has no constant extent": 'an axis of another extent is not bound to threads',
    'the copy is here': PROOF,
    'the value comes from here': PROOF,
    'the other access is here': PROOF,
    'may have read': PROOF,
    'statements are nested too deep to prove': PROOF,
    'atomics of shared memory are not proved': PROOF,
    'loops and threads are too many to prove': PROOF,
    'a reduction over threads is left': PROOF,
}

TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|[A-Za-z_]\w*|[0-9][\w.]*|\s+|.', re.S)
CONVERSION = re.compile(r'%%|%[-+ #0]*[0-9*]*(?:\.[0-9*]+)?(?:hh|h|ll|l|z|j|t)?[diuoxXcsfFeEgGap]|%(?=PRI)')
ESCAPES = {'\\n': '\n', '\\t': '\t', '\\"': '"', '\\\\': '\\'}


def unescape(text):
    return re.sub(r'\\.', lambda m: ESCAPES.get(m[0], m[0]), text)


def tokens_of(path):
    """[(text, line)] of a C source without comments and white space."""
    with open(path, encoding='utf-8') as f:
        text = f.read()
    out, line = [], 1
    for m in TOKEN.finditer(text):
        if not m[0].isspace() and not m[0].startswith(('//', '/*')):
            out.append((m[0], line))
        line += m[0].count('\n')
    return out


def arguments_of(tokens, at):
    """The arguments of a call, lists of tokens; `at` is its parenthesis."""
    depth, out = 0, [[]]
    for t in tokens[at:]:
        if t[0] in '([{':
            depth += 1
            if depth == 1:
                continue
        elif t[0] in ')]}':
            depth -= 1
            if depth == 0:
                return out
        elif t[0] == ',' and depth == 1:
            out.append([])
            continue
        out[-1].append(t)
    return out


def strings_of(argument):
    """[(string, line)] that an argument holds, neighbours joined; a PRId64 between them is the end of a conversion."""
    out, piece = [], None
    for text, line in argument + [(';', 0)]:
        if text.startswith('"'):
            piece = ((piece[0] if piece else '') + unescape(text[1:-1]), piece[1] if piece else line)
        elif piece and re.match(r'PRI[diuxX]\w+$', text):
            piece = (piece[0] + 'd', piece[1])
        else:
            if piece:
                out.append(piece)
            piece = None
    return out


def messages():
    """{message: (file, line)} of all that is reported, and what is wrong with the calls."""
    found, wrong = {}, []
    for path in sorted(p for pattern in SOURCES for p in glob.glob(os.path.join(ROOT, pattern))):
        name = os.path.relpath(path, ROOT)
        if name.startswith(OTHERS):
            continue
        tokens = tokens_of(path)
        for i, (text, line) in enumerate(tokens[:-1]):
            if text not in REPORTERS or tokens[i + 1][0] != '(':
                continue
            arguments = arguments_of(tokens, i + 1)
            for argument in arguments:
                for string, at in strings_of(argument):
                    if ' ' in string.strip():
                        found.setdefault(string, (name, at))
            is_definition = any(a and a[-1][0] in ('format', 'why', 'message') and len(a) > 1 for a in arguments)
            if text == 'diag_error' and not is_definition and len(arguments) > 3 and not strings_of(arguments[3]):
                function = function_around(tokens, i)
                if function not in WRAPPERS:
                    wrong.append(f'{name}:{line}: the format of diag_error is no string, and {function} is no reporter')
    return found, wrong


def function_around(tokens, at):
    """The name of the function whose body holds the token."""
    depth = 0
    for i in range(at, 0, -1):
        if tokens[i][0] == '}':
            depth += 1
        elif tokens[i][0] == '{':
            depth -= 1
            if depth < 0 and tokens[i - 1][0] == ')':
                inner = 0
                for k in range(i - 1, 0, -1):
                    inner += (tokens[k][0] == ')') - (tokens[k][0] == '(')
                    if not inner:
                        if tokens[k - 1][0] not in ('if', 'for', 'while', 'switch'):
                            return tokens[k - 1][0]
                        depth += 1
                        break
            elif depth < 0:
                depth += 1
    return '?'


def pieces_of(message):
    """The text between conversions, unescaped."""
    out, at = [], 0
    for m in CONVERSION.finditer(message):
        if m[0] == '%%':
            continue
        out.append(message[at:m.start()].replace('%%', '%'))
        at = m.end()
    return out + [message[at:].replace('%%', '%')]


def expected_texts():
    """What golden cases and pages expect."""
    out = []
    for path in glob.glob(os.path.join(ROOT, 'tests/golden/**/*.test'), recursive=True):
        for case in golden.parse(path, False)[1]:
            out += [s.text() for s in case.sections if s.kind in ('stderr', 'stdout', 'contains') or s.name == 'stderr']
    for path in glob.glob(os.path.join(ROOT, 'docs/*.md')):
        with open(path, encoding='utf-8') as f:
            out += re.findall(r'```message\n(.*?)```', f.read(), re.S)
    return '\n'.join(out)


def test_strings():
    """Strings of the tests that are programs."""
    out = []
    for path in glob.glob(os.path.join(ROOT, 'tests/**/*.c'), recursive=True):
        out += [s for text, line in tokens_of(path) if text.startswith('"') for s, _ in strings_of([(text, line)])]
    for path in glob.glob(os.path.join(ROOT, 'tests/**/*.py'), recursive=True):
        if os.path.samefile(path, __file__):
            continue
        with open(path, 'rb') as f:
            tokens = tokenize.tokenize(io.BytesIO(f.read()).readline)
            for token in tokens:
                if token.type == tokenize.STRING and not token.string.lower().startswith(('f', 'rf', 'fr')):
                    value = ast.literal_eval(token.string)
                    out.append(value if isinstance(value, str) else value.decode('utf-8', 'replace'))
                elif token.type == tokenize.STRING:
                    out.append(token.string)
    return [s for s in out if ' ' in s.strip() and len(s) >= 10 or re.fullmatch(r'\[?E[0-9]{3}\]?', s)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--redc', default=os.path.join(ROOT, 'build', 'redc'))
    parser.add_argument('--list', action='store_true', help='print every message and where it is met')
    options = parser.parse_args()
    found, wrong = messages()
    text, strings = expected_texts(), test_strings()
    with open(os.path.join(ROOT, 'compiler/errors.def'), encoding='utf-8') as f:
        table = re.findall(r'(?m)^E\((\w+), (\d+), ("(?:\\.|[^"\\])*"), ("(?:\\.|[^"\\])*")\)$', f.read())
    for name, number, title, explanation in table:
        for spelled in (number, 'E' + number):
            said = subprocess.run([options.redc, f'--explain-error={spelled}'], capture_output=True, text=True, check=False)
            if (said.returncode, said.stdout) != (0, f'E{number}: {unescape(title[1:-1])}\n{unescape(explanation[1:-1])}\n'):
                wrong.append(f'--explain-error={spelled} says: {said.stdout}{said.stderr}')
        if f'[E{number}]' not in text and not any(f'E{number}' in s for s in strings) and f'E{number}' not in UNREACHED:
            wrong.append(f'compiler/errors.def: no golden case expects E{number} ({name})')
    met = len(table)
    for message, (name, line) in sorted(found.items(), key=lambda item: item[1]):
        pieces = pieces_of(message)
        where = None
        if re.search('[^\n]*?'.join(re.escape(p) for p in pieces), text):
            where = 'golden'
        elif any(p in s or len(s) >= 10 and s in p for p in pieces if len(p) >= 9 for s in strings):
            where = 'test'
        met += where is not None or message in UNREACHED
        if options.list:
            print(f'{where or "-":7} {name}:{line}: {message}')
        if not where and message not in UNREACHED:
            wrong.append(f'{name}:{line}: no test expects "{message}"')
        elif where and message in UNREACHED:
            wrong.append(f'{name}:{line}: "{message}" is expected by a test; take it from UNREACHED')
    wrong += [f'UNREACHED has "{m}", which nothing reports' for m in UNREACHED if m not in found and not re.fullmatch(r'E\d+', m)]
    print('\n'.join(wrong + [f'{met} passed, {len(wrong)} failed']))
    return 1 if wrong or not met else 0


if __name__ == '__main__':
    sys.exit(main())

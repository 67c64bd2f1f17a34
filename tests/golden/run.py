#!/usr/bin/env python3
"""Golden tests of redc: each *.test file holds cases, each case says what redc is given and what must come out.

    === title of the case
    --- args                 arguments of redc, shell quoting, several lines allowed
    $FILE -D m=11 --emit=ptx
    --- input                the program; or "--- input name.red", several times; "--- input stdin" is standard input
    ...
    --- exit                 expected exit status; 0 when the section is missing
    --- stdout               exact text; unchecked when the section is missing
    --- stderr               exact text; must be empty when the section is missing and the exit status is 0
    --- output name          exact text of a file that redc wrote
    --- count                "TEXT N", or ">= N TEXT" with one of == != >= <= > <: how often TEXT stands in the output
    --- contains             each line must stand in the output
    --- absent               no line may stand in the output
    --- needs                the case is skipped where one is missing: "llvm 19" (see --llvm), "ptxas" or another program

count, contains and absent look at standard output; "--- count stderr" or "--- count name" at standard error or at a
file that redc wrote, which may be a pattern (*-prove.ir) that fits one file. count skips comments and matches whole words, so that `ld.global` counts `ld.global.v4.f32` too,
and `bar` does not count `foobar`. redc runs in an empty folder that holds the inputs: $FILE is the name of the first,
$ROOT the root of the source tree. Blank lines at the end of a section do not count. A line of a section that itself
starts with "=== ", "--- " or a backslash has a backslash before it. Text before the first case is a comment.

A case must check something: stdout, stderr, output, count, contains, absent or an exit status other than 0.
"""

import argparse
import concurrent.futures
import difflib
import fnmatch
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEADER = re.compile(r'--- ([a-z]+)(?: +(\S+))?\s*$')
ONCE = {'args', 'exit', 'stdout', 'stderr', 'needs'}
NAMED = {'input', 'output', 'count', 'contains', 'absent'}
CHECKS = {'stdout', 'stderr', 'output', 'count', 'contains', 'absent'}
COMPARE = {'==': lambda a, b: a == b, '!=': lambda a, b: a != b, '>=': lambda a, b: a >= b,
           '<=': lambda a, b: a <= b, '>': lambda a, b: a > b, '<': lambda a, b: a < b}
# The status that sanitizers end with, so that it is never taken for one of redc's own.
SANITIZER_EXIT = 99


class Refused(Exception):
    """A test file that cannot mean anything."""


class Section:
    def __init__(self, kind, name):
        self.kind, self.name, self.lines = kind, name, []

    def text(self):
        lines = list(self.lines)
        while lines and not lines[-1].strip():
            lines.pop()
        return ''.join(line + '\n' for line in lines)

    def words(self):
        return [line.strip() for line in self.lines if line.strip()]


class Case:
    def __init__(self, title, line):
        self.title, self.line, self.sections = title, line, []

    def find(self, kind):
        return next((s for s in self.sections if s.kind == kind), None)

    def all(self, kind):
        return [s for s in self.sections if s.kind == kind]


def parse(path, update):
    """The leading comment and the cases of a file."""
    with open(path, encoding='utf-8', errors='surrogateescape', newline='') as f:
        lines = f.read().split('\n')
    if lines and lines[-1] == '':
        lines.pop()
    comment, cases, section = [], [], None

    def refuse(number, why):
        raise Refused(f'{path}:{number}: {why}')

    for number, line in enumerate(lines, 1):
        if line.startswith('=== '):
            cases.append(Case(line[4:].strip(), number))
            section = None
        elif not cases:
            if line.startswith('--- '):
                refuse(number, 'a section before the first "=== title"')
            comment.append(line)
        elif line.startswith('--- '):
            m = HEADER.match(line)
            if not m or m[1] not in ONCE | NAMED:
                refuse(number, f'unknown section "{line}"')
            if m[2] and m[1] in ONCE:
                refuse(number, f'a section "{m[1]}" has no name')
            if m[1] == 'output' and not m[2]:
                refuse(number, 'a section "output" needs the name of the file')
            if m[2] and ('/' in m[2] or m[2] in ('.', '..')):
                refuse(number, f'"{m[2]}" is not a bare file name')
            if any(s.kind == m[1] and s.name == m[2] for s in cases[-1].sections):
                refuse(number, f'a second section "{line[4:]}"')
            section = Section(m[1], m[2])
            cases[-1].sections.append(section)
        elif section is None:
            if line.strip():
                refuse(number, 'text outside a section')
        else:
            section.lines.append(line[1:] if line.startswith('\\') else line)
    if not cases:
        refuse(len(lines) or 1, 'no case ("=== title") in the file')
    titles = set()
    for case in cases:
        if not case.title:
            refuse(case.line, 'a case without a title')
        if case.title in titles:
            refuse(case.line, f'a second case "{case.title}"')
        titles.add(case.title)
        if not case.find('args') or not case.find('args').words():
            refuse(case.line, f'"{case.title}" has no args')
        for kind in ('input', 'count', 'contains', 'absent', 'needs'):
            for s in case.all(kind):
                if kind != 'input' and not s.words():
                    refuse(case.line, f'"{case.title}" has an empty section "{kind}"')
        status = expected_exit(case, path)
        if not update and status == 0 and not any(s.kind in CHECKS for s in case.sections):
            refuse(case.line, f'"{case.title}" checks nothing')
        for s in case.all('count'):
            for line in s.words():
                if not parse_count(line):
                    refuse(case.line, f'"{case.title}": cannot read the count "{line}"')
        for s in case.all('needs'):
            for line in s.words():
                if not re.fullmatch(r'llvm [0-9]+|[a-z-]+', line):
                    refuse(case.line, f'"{case.title}": unknown need "{line}"')
    return comment, cases


def expected_exit(case, path):
    s = case.find('exit')
    if not s:
        return 0
    if not re.fullmatch(r'[0-9]+\n', s.text()):
        raise Refused(f'{path}:{case.line}: "{case.title}": an exit status is one number')
    return int(s.text())


def parse_count(line):
    """(operator, number, text) of one line of a count section."""
    m = re.fullmatch(r'(==|!=|>=|<=|>|<) *([0-9]+) +(.+)', line)
    if m:
        return m[1], int(m[2]), m[3].strip()
    m = re.fullmatch(r'(.+?) +([0-9]+)', line)
    return ('==', int(m[2]), m[1].strip()) if m else None


def strip_comments(text):
    return re.sub(r'/\*.*?\*/|//[^\n]*', ' ', text, flags=re.S)


def count(text, wanted):
    before = r'(?<![\w.$%])' if re.match(r'\w', wanted) else ''
    after = r'(?!\w)' if re.search(r'\w$', wanted) else ''
    return len(re.findall(before + re.escape(wanted) + after, strip_comments(text)))


class Result:
    def __init__(self):
        self.status, self.stdout, self.stderr, self.files, self.timed_out = None, '', '', {}, False


def execute(case, options):
    """Runs redc on the case in a folder of its own."""
    result = Result()
    with tempfile.TemporaryDirectory(prefix='red-golden-') as folder:
        first, given = None, None
        for s in case.all('input'):
            if s.name == 'stdin':
                given = s.text()
                continue
            name = s.name or 'input.red'
            first = first or name
            with open(os.path.join(folder, name), 'w', encoding='utf-8', errors='surrogateescape', newline='') as f:
                f.write(s.text())
        args = shlex.split(' '.join(case.find('args').words()))
        args = [a.replace('$FILE', first or '$FILE').replace('$ROOT', ROOT) for a in args]
        env = {k: v for k, v in os.environ.items() if not k.startswith(('RED_', 'XDG_'))}
        env.update(HOME=folder, LC_ALL='C', TERM='dumb',
                   ASAN_OPTIONS=f'exitcode={SANITIZER_EXIT}:' + env.get('ASAN_OPTIONS', ''),
                   LSAN_OPTIONS=f'exitcode={SANITIZER_EXIT}:' + env.get('LSAN_OPTIONS', ''),
                   UBSAN_OPTIONS=f'exitcode={SANITIZER_EXIT}:print_stacktrace=1:' + env.get('UBSAN_OPTIONS', ''))
        process = subprocess.Popen([options.redc] + args, cwd=folder, env=env, start_new_session=True,
                                   stdin=subprocess.PIPE if given is not None else subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            data = given.encode('utf-8', 'surrogateescape') if given is not None else None
            out, err = process.communicate(data, timeout=options.timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            result.timed_out = True

        def clean(data):
            text = data.decode('utf-8', 'surrogateescape')
            return text.replace(folder + '/', '').replace(folder, '.').replace(ROOT, '$ROOT')

        result.status, result.stdout, result.stderr = process.returncode, clean(out), clean(err)
        for name in {s.name for s in case.sections if s.kind in CHECKS and s.name not in (None, 'stdout', 'stderr')}:
            found = [f for f in os.listdir(folder) if fnmatch.fnmatchcase(f, name)]
            if len(found) == 1:
                with open(os.path.join(folder, found[0]), 'rb') as f:
                    result.files[name] = clean(f.read())
    return result


def diff(what, wanted, got):
    a, b = wanted.splitlines(), got.splitlines()
    return '\n'.join(difflib.unified_diff(a, b, f'expected {what}', f'actual {what}', lineterm=''))



def same(wanted, got):
    """Is it the same text, but for blank lines at the end?"""
    def lines(text):
        out = text.split('\n')
        while out and not out[-1].strip():
            out.pop()
        return out
    return lines(wanted) == lines(got)


def check(case, path, result, options):
    """What is wrong, as lines to print; empty when the case passes."""
    if result.timed_out:
        return [f'still running after {options.timeout} s']
    wrong = []
    wanted = expected_exit(case, path)
    if result.status != wanted:
        how = f'killed by {signal.Signals(-result.status).name}' if result.status < 0 else f'exit {result.status}'
        wrong.append(f'{how}, expected exit {wanted}')
        if not case.find('stderr') and result.stderr:
            wrong.append(result.stderr.rstrip())
    stderr_is_checked = any(s.kind == 'stderr' or s.name == 'stderr' for s in case.sections)
    if not stderr_is_checked and result.status == 0 and wanted == 0 and result.stderr:
        wrong.append(diff('stderr', '', result.stderr))
    texts = {None: result.stdout, 'stdout': result.stdout, 'stderr': result.stderr, **result.files}
    for s in case.sections:
        if s.kind in ('stdout', 'stderr'):
            if not same(s.text(), texts[s.kind]):
                wrong.append(diff(s.kind, s.text(), texts[s.kind]))
        elif s.kind in CHECKS:
            if s.name not in texts:
                wrong.append(f'redc wrote no file "{s.name}", or several')
                continue
            text, where = texts[s.name], s.name or 'stdout'
            if s.kind == 'output' and not same(s.text(), text):
                wrong.append(diff(where, s.text(), text))
            for line in s.words() if s.kind == 'count' else []:
                op, number, what = parse_count(line)
                seen = count(text, what)
                if not COMPARE[op](seen, number):
                    wrong.append(f'{where}: "{what}" stands {seen} times, expected {op} {number}')
            for line in s.words() if s.kind in ('contains', 'absent') else []:
                if (line in text) != (s.kind == 'contains'):
                    wrong.append(f'{where}: "{line}" {"is missing" if s.kind == "contains" else "must not stand there"}')
    return wrong


def update(case, result):
    """Makes the exact sections of the case say what happened."""
    def put(kind, text, always):
        s = case.find(kind)
        if not s and always:
            s = Section(kind, None)
            case.sections.append(s)
        if s:
            s.lines = text.rstrip('\n').split('\n') if text else []

    says_nothing = not any(s.kind in CHECKS for s in case.sections)
    put('exit', f'{result.status}\n', result.status != 0)
    put('stdout', result.stdout, says_nothing and result.status == 0)
    stderr_is_checked = any(s.name == 'stderr' for s in case.sections)
    put('stderr', result.stderr, bool(result.stderr) and not stderr_is_checked)
    for s in case.all('output'):
        s.lines = result.files.get(s.name, '').rstrip('\n').split('\n')


def write(path, comment, cases):
    def escape(line):
        return '\\' + line if line.startswith(('=== ', '--- ', '\\')) else line

    out = list(comment)
    for case in cases:
        if out and out[-1].strip():
            out.append('')
        out.append('=== ' + case.title)
        for s in case.sections:
            out.append('--- ' + s.kind + (' ' + s.name if s.name else ''))
            out += [escape(line) for line in s.text().splitlines()]
    with open(path, 'w', encoding='utf-8', errors='surrogateescape', newline='') as f:
        f.write('\n'.join(out) + '\n')


def needs_of(case):
    needs = case.find('needs')
    return needs.words() if needs else []


def is_there(need, options):
    """Is the LLVM version the one asked for, or the program to be found where redc finds it?"""
    if need.startswith('llvm '):
        return need == f'llvm {options.llvm}'
    homes = [os.path.join(os.environ[k], 'bin') for k in ('CUDA_HOME', 'CUDA_PATH') if k in os.environ]
    beside = os.path.dirname(os.path.abspath(options.redc))
    return shutil.which(need) or shutil.which(need, path=beside) or any(shutil.which(need, path=home) for home in homes)


def run_file(path, options):
    """(passed, failed, skipped, text to print) of one file."""
    start = time.monotonic()
    name = os.path.relpath(path, ROOT) if os.path.abspath(path).startswith(ROOT + os.sep) else path
    passed, failed, skipped, report = 0, 0, 0, []
    try:
        comment, cases = parse(path, options.update)
    except (Refused, OSError, ValueError) as e:
        return 0, 1, 0, f'refused {name}\n  {e}'
    for case in cases:
        if options.only and options.only not in case.title:
            continue
        missing = next((need for need in needs_of(case) if not is_there(need, options)), None)
        if missing:
            skipped += 1
            report.append(f'skipped {name}:{case.line}: {case.title}: needs {missing}')
            continue
        try:
            result = execute(case, options)
        except (OSError, ValueError) as e:
            failed += 1
            report.append(f'--- {name}:{case.line}: {case.title}\n{e}')
            continue
        if options.update and not result.timed_out and 0 <= result.status != SANITIZER_EXIT:
            update(case, result)
        wrong = check(case, path, result, options)
        if wrong:
            failed += 1
            report.append(f'--- {name}:{case.line}: {case.title}\n' + '\n'.join(wrong))
        else:
            passed += 1
    if options.update:
        write(path, comment, cases)
    head = f'{"FAILED" if failed else "ok":7} {name}: {passed} passed'
    head += f', {failed} failed' if failed else ''
    head += f', {skipped} skipped' if skipped else ''
    return passed, failed, skipped, '\n'.join([f'{head}, {time.monotonic() - start:.2f} s'] + report)


def find_tests(paths):
    for path in paths:
        if os.path.isdir(path):
            for folder, folders, files in sorted(os.walk(path)):
                folders.sort()
                for name in sorted(files):
                    if name.endswith('.test'):
                        yield os.path.join(folder, name)
        else:
            yield path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('paths', nargs='*', default=[os.path.join(ROOT, 'tests', 'golden')], help='files or folders')
    parser.add_argument('--redc', default=os.path.join(ROOT, 'build', 'redc'))
    parser.add_argument('--update', action='store_true', help='rewrite stdout, stderr, exit and output sections')
    parser.add_argument('--only', metavar='TEXT', help='only the cases with TEXT in the title')
    parser.add_argument('--llvm', default='19', help='the LLVM version that redc was built with')
    parser.add_argument('--timeout', type=float, default=90, metavar='S', help='seconds a case may take')
    parser.add_argument('-j', '--jobs', type=int, default=2)
    options = parser.parse_args()
    options.redc = os.path.abspath(options.redc)
    if not os.access(options.redc, os.X_OK):
        sys.exit(f'{options.redc}: not a program; build it, or give --redc')
    files = list(find_tests(options.paths))
    if not files:
        sys.exit('no *.test file')
    passed = failed = skipped = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for p, f, s, text in pool.map(lambda path: run_file(path, options), files):
            passed, failed, skipped = passed + p, failed + f, skipped + s
            print(text, flush=True)
    if not passed + failed + skipped:
        sys.exit('no case ran')
    print(f'{passed} passed, {failed} failed, {skipped} skipped')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
"""Inputs, command lines and file systems that are wrong: redc says what is wrong, with exit status 1 or 2, within five
seconds, never by a signal, and leaves nothing half-written.

    badinput.py [--redc PATH] [--only TEXT]

Each case runs in an empty folder that holds good.red. Files that a case makes are made before redc runs; after it the
folder must hold the same files with the same content, unless the case says what else.
"""

import argparse
import os
import random
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SECONDS = 5
NOBODY = 65534
GOOD = 'kernel rowsum(A: f32[n, m]) -> (B: f32[n]) {\n  for i in n { B[i] = sum(j in m) A[i, j]; }\n}\n'
HEAD = 'kernel k(A: f32[n]) -> (B: f32[n]) {\n  for i in n { B[i] = '
TAIL = '; }\n}\n'
cases = []


class Case:
    """args: of redc. files: name -> content to make. says: what standard error must hold (a list: all of it; None: it
    must be empty). exit: the status wanted. keeps: the folder must be as before. setup(folder): more to make.
    before(): runs in the child. stdout: where standard output goes; 'closed' and 'broken' are a closed descriptor and a
    pipe that nobody reads. status 0 cases are those that must work in spite of all."""

    def __init__(self, title, args, says='', files=None, exit=1, stdin=None, setup=None, before=None, stdout=None,
                 env=None, limit=64 * 1024):
        self.title, self.args, self.says, self.files, self.exit, self.stdin = title, args, says, files or {}, exit, stdin
        self.setup, self.before, self.stdout, self.env, self.limit = setup, before, stdout, env or {}, limit
        cases.append(self)


def source(title, text, says='', exit=1, args=(), **more):
    """A case whose program is wrong."""
    Case(title, ['in.red', '-o', 'out.ptx', *args], says, {'in.red': text}, exit, **more)


def garbage(length, seed):
    return random.Random(seed).randbytes(length)


# ---- Programs

source('empty file', '', 'no kernel')
source('blank lines and comments alone', '\n\n// nothing\n/* here */\n', 'no kernel')
source('a schedule alone', 'schedule k { unroll j; }\n')
source('4 KiB of random bytes', garbage(4096, 1))
source('1 MiB of random bytes', garbage(1 << 20, 2))
source('1 MiB of zero bytes', b'\0' * (1 << 20))
source('a zero byte in the middle', GOOD.replace('sum', 's\0m'))
source('1 MiB of letters', 'a' * (1 << 20))
source('1 MiB of digits', HEAD + '9' * (1 << 20) + TAIL)
source('1 MiB of spaces', ' ' * (1 << 20), 'no kernel')
source('1 MiB in one comment that does not end', '/*' + 'x' * (1 << 20))
source('a line of 1 MiB with an error at its end', HEAD + ' ' * (1 << 20) + '?' + TAIL)
for brace in '{([<':
    source(f'1 MiB of {brace}', brace * (1 << 20))
    source(f'1 MiB of {brace} in a kernel', HEAD + brace * (1 << 20) + TAIL)
source('10,000 terms', HEAD + ' + '.join(['A[i]'] * 10000) + TAIL, 'deep')
DEEP = 100000
source('parentheses 100,000 deep', HEAD + '(' * DEEP + '1.0' + ')' * DEEP + TAIL, 'deep')
source('signs 100,000 deep', HEAD + '- ' * DEEP + '1.0' + TAIL, 'deep')
source('calls 100,000 deep', HEAD + 'exp(' * DEEP + '1.0' + ')' * DEEP + TAIL, 'deep')
source('indices 100,000 deep', HEAD + 'A[' * DEEP + 'i' + ']' * DEEP + TAIL, 'deep')
source('conditions 100,000 deep', HEAD + 'i < 1 ? 1.0 : ' * DEEP + '1.0' + TAIL, 'deep')
source('blocks 100,000 deep', HEAD + 'sum(j in n) { let x = ' * DEEP + '1.0' + '; x }' * DEEP + TAIL, 'deep')
source('statements 100,000 deep',
       'kernel k(A: f32[n]) -> (B: f32[n]) {\n' + 'if n > 0 { ' * DEEP + '}' * DEEP + '}\n', 'deep')
source('30,000 signs', 'kernel k(A: f32[n]) -> (B: f32[n]) { for i in n { B[i] = ' + '-' * 30000 + 'A[i]; } }\n', 'the text nests too deeply here')
source('4,000 errors', 'kernel k(A: f32[n]) -> (B: f32[n]) { for i in n {\n' + 'let x = nothing;\n' * 4000 + '} }\n', 'more not shown')
source('4,000 errors, all printed', 'kernel k(A: f32[n]) -> (B: f32[n]) { for i in n {\n' + 'let x = nothing;\n' * 4000 + '} }\n',
       '4000 errors', args=['--error-limit=0'], limit=1 << 24)
source('20,000 syntax errors', 'kernel k(A: f32[n]) -> (B: f32[n]) { for i in n {\n' + 'B[i] = ;\n' * 20000 + '} }\n', 'more not shown')
source('an extent of 2^63', 'kernel k(A: f32[9223372036854775808]) -> (B: f32[1]) { B[0] = A[0]; }\n')
source('an extent of 2^64', 'kernel k(A: f32[18446744073709551616]) -> (B: f32[1]) { B[0] = A[0]; }\n')
source('an extent of 2^62 in each of two axes',
       'kernel k(A: f32[4611686018427387904, 4611686018427387904]) -> (B: f32[1]) { B[0] = A[0, 0]; }\n')
source('a negative extent', 'kernel k(A: f32[0 - 5]) -> (B: f32[1]) { B[0] = 1; }\n')

# ---- Programs too large, and as large as they may be


def large(title, text, legal, *, says='E505'):
    """What is refused at once, and what is still compiled."""
    Case(title, ['in.red', '-o', 'out.ptx'], [*([says] if isinstance(says, str) else says), 'at most'], {'in.red': text})
    Case(f'not too large: {title}', ['in.red', '-o', '/dev/null'], None, {'in.red': legal}, exit=0)


def body(lines, value='0', head='A: f32[n]'):
    return f'kernel k({head}) -> (B: f32[n]) {{ for i in n {{\n' + ''.join(lines) + f'B[i] = {value};\n}} }}\n'


def lets(count):
    return body([f'let x{i} = {f"x{i - 1}" if i else "A[i]"} * 1.5 + {i % 7};\n' for i in range(count)], f'x{count - 1}')


def calls(count):
    return body([f'let x{i} = {f"x{i - 1}" if i else "A[i]"} + sin(A[i]);\n' for i in range(count)], f'x{count - 1}')


def stores(count):
    return f'kernel k(A: f32[n]) -> (B: f32[n, {count}]) {{ for i in n {{\n' + ''.join(f'B[i, {i}] = A[i] + {i};\n' for i in range(count)) + '} }\n'


def outputs(count):
    return f'kernel k(A: f32[n]) -> ({", ".join(f"B{i}: f32[n]" for i in range(count))}) {{ for i in n {{\n' + ''.join(f'B{i}[i] = A[i];\n' for i in range(count)) + '} }\n'


def arms(count):
    return 'kernel k(A: f32[n]) -> (B: f32[n]) { for i in n {\nif i < 0 { B[i] = 1; }\n' + ''.join(f'else if i == {i} {{ B[i] = {i}; }}\n' for i in range(count)) + '} }\n'


def nested(count):
    return 'kernel k(A: f32[n]) -> (B: f32[1]) { B[0] = ' + ''.join(f'sum(j{i} in 1) ' for i in range(count)) + 'A[0]; }\n'


def splits(count):
    return body([], 'A[i]') + 'schedule k {\n' + ''.join(f'split {f"o{i - 1}" if i else "i"} by 2 -> o{i}, i{i};\n' for i in range(count)) + '}\n'


def halves(count):
    names, out = ['i'], []
    for _ in range(count):
        name = names.pop(0)
        out.append(f'split {name} by 2 -> {name}o, {name}i;\n')
        names += [f'{name}o', f'{name}i']
    return body([], 'A[i]') + 'schedule k {\n' + ''.join(out) + '}\n'


def alternatives(count):
    return body([], 'A[i]') + ''.join(f'schedule k as s{i} when n == {i} {{ bind i -> block.x; }}\n' for i in range(count))


def unrolled(terms, copies=1024):
    return body([], f'sum(j in m) ({" + ".join(["A[i, j]"] * terms)})', 'A: f32[n, m]') + f'schedule k {{ split j by {copies} -> jo, ji;  unroll ji; }}\n'


def chained(count, schedule=''):
    return body([f'let x{i} = sum(j in m) (A[i, j] * {f"x{i - 1}" if i else "2"});\n' for i in range(count)], f'x{count - 1}', 'A: f32[n, m]') + schedule


large('100,000 lets', lets(100000), lets(1000))
large('10,000 calls', calls(10000), calls(50), says='too many operations: at most 32000')
large('20,000 stores to one output', stores(20000), stores(512))
large('513 stores to one output', stores(513), stores(512), says='too many reductions and assignments: at most 512')
large('3,000 outputs', outputs(3000), outputs(120), says='too many parameters: at most 256')
large('1,000 arms of an if', arms(1000), arms(30))
large('1,000 nested reductions', nested(1000), nested(500))
large('5,000 splits', splits(5000), splits(40), says='the schedule has 5000 directives')
large('100 splits in each other', splits(100), splits(32))
large('300 splits of halves', halves(300), halves(48))
large('5,000 schedules', alternatives(5000), alternatives(40), says=['too many schedules: at most 256', 'several kernels, each with a part of them, are compiled much faster'])
large('1,024 copies of 200 terms', unrolled(200), unrolled(4, 64))
large('1,000 reductions, one behind another', chained(1000), chained(150))

# ---- The command line

Case('no argument at all', [], 'no input file', exit=2)
Case('a size of 2^63 by -D', ['good.red', '-D', 'm=9223372036854775808'], 'outside', exit=2)
Case('a negative size by -D', ['good.red', '-D', 'm=-1'], 'outside', exit=2)
Case('an unknown target', ['good.red', '--arch=sm_1'], ['sm_1', 'sm_75', 'sm_90'], exit=2)
Case('the largest sizes', ['good.red', '-D', 'm=9223372036854775807', '-D', 'n=9223372036854775807'])
Case('2,000 definitions', ['good.red'] + [f'-Dx{i}={i}' for i in range(2000)], 'definitions', exit=2)
Case('an argument of 100,000 bytes', ['good.red', '--' + 'x' * 100000], 'unknown option', exit=2, limit=1 << 18)
Case('an argument that is not UTF-8', ['good.red', b'--\xff\xfe'], 'unknown option', exit=2)
Case('a response file that names itself', ['@loop'], 'without end', {'loop': '@loop\n'}, exit=2)
Case('response files that fan out', ['@a'], 'without end', {'a': '@b\n' * 1000, 'b': '@c\n' * 1000, 'c': ''}, exit=2)
Case('a response file of random bytes', ['@r'], 'is not text', {'r': garbage(4096, 3) + b'\0'}, exit=2)

Case('a batch of random bytes', ['run', '--batch=b'], 'is not text', {'b': garbage(4096, 4) + b'\0'}, exit=2)
Case('a program with a byte 0', ['in.red'], 'byte 0x00: this is not a text file', {'in.red': GOOD + '\0'})
Case('a program of 65 MiB', ['in.red'], "': it has more than 64 MiB", setup=lambda d: os.truncate(make(d, 'in.red'), 65 << 20))

# ---- Tools that are missing or fail


def tool(folder, name, script):
    path = os.path.join(folder, name)
    with open(path, 'w', encoding='utf-8') as f:
        f.write(script)
    os.chmod(path, 0o755)


NO_TOOLS = {'PATH': '', 'CUDA_HOME': '', 'CUDA_PATH': ''}
Case('no ptxas', ['good.red', '-o', 'out.cubin'], ['a cubin needs ptxas, which is neither in PATH nor in $CUDA_HOME/bin', 'PTX needs no tool: --emit=ptx', 'E504'], env=NO_TOOLS)
Case('a ptxas that fails', ['good.red', '-o', 'out.cubin'], ['ptxas\' failed with status 3', 'it said: no such chip', 'E504'], setup=lambda d: tool(d, 'ptxas', '#!/bin/sh\necho no such chip\nexit 3\n'), env={**NO_TOOLS, 'PATH': '.'})
Case('a ptxas that is no program', ['good.red', '-o', 'out.cubin'], "cannot run '", setup=lambda d: tool(d, 'ptxas', '#!/nowhere/sh\n'), env={**NO_TOOLS, 'PATH': '.'})

Case('no folder for a tool to work in', ['good.red', '-o', 'out.cubin'], "cannot make a folder in '/nowhere'", setup=lambda d: tool(d, 'ptxas', '#!/bin/sh\n'),
     env={**NO_TOOLS, 'PATH': '.', 'TMPDIR': '/nowhere'})

# ---- Arguments in files


def npy(header, version=b'\x01\x00', data=b''):
    text = header.encode()
    return b'\x93NUMPY' + version + len(text).to_bytes(2, 'little') + text + data


def array(title, content, says):
    Case(title, ['run', 'good.red', '--size', 'm=1', '--arg', 'A=a.npy'], says, {'a.npy': content})


array('an array of a newer format', npy('', b'\x09\x00'), 'version 9.0 of the .npy format is not known')
array('an array without its header', npy('', b'\x02\x00')[:10], 'the file is cut off in its header')
array('an array whose header is no dictionary', npy('{1: 2}'), 'malformed header: no key')
array('an array of another type', npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1)}", data=bytes(8)), 'a.npy has elements of type float64, the kernel\'s are f32')

Case('an array that is called one of another type', ['run', 'good.red', '--size', 'm=1', '--arg', 'A=f64@a.npy'], 'its elements are of type f32, not f64',
     {'a.npy': npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1)}", data=bytes(4))})

# ---- Files that cannot be read

Case('a missing file', ['missing.red'], ['missing.red', 'No such file'])
Case('a folder as input', ['.'], 'Is a directory')
Case('a file of 65 MiB', ['big.red'], '64 MiB', setup=lambda d: os.truncate(make(d, 'big.red'), 65 << 20))
Case('an input without end', ['/dev/zero'], '64 MiB')
Case('a file without permission', ['secret.red'], 'Permission denied', {'secret.red': GOOD},
     setup=lambda d: os.chmod(os.path.join(d, 'secret.red'), 0), before=lambda: leave_root())
Case('standard input closed', ['-'], 'Bad file descriptor', before=lambda: os.close(0))

# ---- Outputs that cannot be written

Case('a full device', ['good.red', '--emit=ast', '-o', '/dev/full'], 'No space left')
Case('standard output to a full device', ['good.red', '--emit=ast'], 'No space left', stdout='/dev/full')
Case('help to a full device', ['--help'], 'No space left', stdout='/dev/full')
Case('standard output closed', ['good.red', '--emit=ast'], 'Bad file descriptor', stdout='closed')
Case('standard output and standard error closed', ['good.red', '--emit=ast'], None, stdout='closed', before=lambda: os.close(2))
Case('a pipe that nobody reads', ['good.red', '--emit=ast'], None, stdout='broken')
Case('a folder as output', ['good.red', '--emit=ast', '-o', 'd'], 'Is a directory', setup=lambda d: os.mkdir(os.path.join(d, 'd')))
Case('output in a folder that is missing', ['good.red', '--emit=ast', '-o', 'no/out.ast'], 'No such file')
Case('output below a file', ['good.red', '-o', 'good.red/out.ast'], 'Not a directory')
Case('output in a folder without permission', ['good.red', '-o', 'd/out.ast'], 'Permission denied',
     setup=lambda d: os.mkdir(os.path.join(d, 'd'), 0o555), before=lambda: leave_root())
Case('output over a file without permission', ['good.red', '-o', 'out.ast'], 'Permission denied', {'out.ast': 'old'},
     setup=lambda d: os.chmod(os.path.join(d, 'out.ast'), 0o444), before=lambda: leave_root())
Case('a disk that fills up, over an old output', ['good.red', '-o', 'out.ast'], 'File too large', {'out.ast': 'old'},
     before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16)))
Case('a disk that fills up, for a new output', ['good.red', '-o', 'out.ast'], 'File too large',
     before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16)))
Case('an error in the program, over an old output', ['bad.red', '-o', 'out.ptx'], 'error', {'bad.red': 'kernel', 'out.ptx': 'old'})
Case('the output would replace the input', ['good.red', '--emit=ast', '-o', './good.red'], 'replace', exit=2)
Case('temporary files below a file', ['good.red', '-D', 'm=4', '-o', 'out.ptx', '--save-temps=good.red'], 'Not a directory')

# ---- Tools

Case('a cubin without ptxas', ['good.red', '-D', 'm=4', '-o', 'out.cubin'], 'ptxas', {'out.cubin': 'old'},
     env={'PATH': '/nowhere', 'CUDA_HOME': '', 'CUDA_PATH': ''})
Case('a cubin by a ptxas that fails', ['good.red', '-D', 'm=4', '-o', 'out.cubin'], ['status 3', 'it is broken'],
     {'ptxas': '#!/bin/sh\necho it is broken >&2\nexit 3\n'}, setup=lambda d: os.chmod(os.path.join(d, 'ptxas'), 0o755),
     env={'PATH': '.:/bin:/usr/bin'})
Case('a cubin by a ptxas that is no program', ['good.red', '-D', 'm=4', '-o', 'out.cubin'], 'cannot run',
     {'ptxas': b'\x7fELF nonsense'}, setup=lambda d: os.chmod(os.path.join(d, 'ptxas'), 0o755), env={'PATH': '.'})
Case('a cubin by a ptxas that writes nothing', ['good.red', '-D', 'm=4', '-o', 'out.cubin'], 'No such file',
     {'ptxas': '#!/bin/sh\nexit 0\n'}, setup=lambda d: os.chmod(os.path.join(d, 'ptxas'), 0o755), env={'PATH': '.:/bin:/usr/bin'})

# ---- IR text

Case('IR that is empty', ['in.ir'], '--from', {'in.ir': ''})
Case('IR that is empty, after a pass', ['in.ir', '--from=check'], '', {'in.ir': ''})
Case('IR of random bytes', ['in.ir', '--from=nest'], '', {'in.ir': garbage(1 << 16, 4)})
Case('IR 1 MiB of {', ['in.ir', '--from=nest'], '', {'in.ir': '{' * (1 << 20)})
Case('IR 1 MiB of (', ['in.ir', '--from=nest'], '', {'in.ir': '(' * (1 << 20)})
Case('IR that names an unknown pass', ['in.ir'], 'no pass', {'in.ir': '// after nothing\n'})
Case('a program in place of IR', ['good.red', '--from=check'])


def make(folder, name, content=b''):
    path = os.path.join(folder, name)
    with open(path, 'wb') as f:
        f.write(content if isinstance(content, bytes) else content.encode())
    return path


def leave_root():
    if os.geteuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def snapshot(folder):
    """What the folder holds: name -> content of files, None for folders."""
    found = {}
    for base, folders, files in os.walk(folder):
        for name in folders:
            found[os.path.relpath(os.path.join(base, name), folder)] = None
        for name in files:
            path = os.path.join(base, name)
            size = os.path.getsize(path)
            found[os.path.relpath(path, folder)] = size if size > 1 << 24 else open(path, 'rb').read()
    return found


def describe(before, after):
    for name in sorted(set(before) | set(after)):
        if name not in after:
            yield f'{name} is gone'
        elif name not in before:
            yield f'{name} was left behind'
        elif before[name] != after[name]:
            yield f'{name} was changed'


def run(case, redc, folder):
    """What is wrong with how redc behaves, as lines."""
    os.chmod(folder, 0o777)
    make(folder, 'good.red', GOOD)
    for name, content in case.files.items():
        make(folder, name, content)
    if case.setup:
        case.setup(folder)
    before = snapshot(folder)
    out = subprocess.PIPE
    if case.stdout == 'broken':
        end, out = os.pipe()
        os.close(end)
    elif case.stdout not in (None, 'closed'):
        out = os.open(case.stdout, os.O_WRONLY)

    def child():
        if case.stdout == 'closed':
            os.close(1)
        if case.before:
            case.before()

    env = {k: v for k, v in os.environ.items() if not k.startswith('RED_')}
    env.update({'LC_ALL': 'C', 'TMPDIR': folder, 'ASAN_OPTIONS': 'exitcode=99', 'UBSAN_OPTIONS': 'exitcode=99', **case.env})
    start = time.monotonic()
    process = subprocess.Popen([redc, *case.args], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=out,
                               stderr=subprocess.PIPE, preexec_fn=child, start_new_session=True)
    if out != subprocess.PIPE:
        os.close(out)
    try:
        output, said = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return [f'still running after {SECONDS} s']
    said = said.decode('utf-8', 'replace')
    wrong = []
    if process.returncode < 0:
        wrong.append(f'killed by {signal.Signals(-process.returncode).name}')
    elif process.returncode != case.exit:
        wrong.append(f'exit {process.returncode}, expected {case.exit}')
    if case.says is None:
        if said:
            wrong.append('it should say nothing')
    else:
        wanted = ['error', *(case.says if isinstance(case.says, list) else [case.says])]
        wrong += [f'the message does not hold "{word}"' for word in wanted if word not in said]
    if len(said) > case.limit:
        wrong.append(f'the message has {len(said)} bytes')
    if output:
        wrong.append('there is something on standard output')
    wrong += describe(before, snapshot(folder))
    if wrong:
        wrong.append(said[:2000].rstrip())
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--redc', default=os.path.join(ROOT, 'build', 'redc'))
    parser.add_argument('--only', metavar='TEXT', help='only the cases with TEXT in the title')
    options = parser.parse_args()
    redc = os.path.abspath(options.redc)
    if not os.access(redc, os.X_OK):
        sys.exit(f'{redc}: not a program; build it, or give --redc')
    # a case that gives up root runs a copy, since the build folder may lie where only root can go
    with tempfile.TemporaryDirectory(prefix='red-badinput-') as place:
        os.chmod(place, 0o755)
        redc = shutil.copy(redc, place)
        passed, failed = run_all(options, redc)
    print(f'{passed} passed, {failed} failed')
    return 1 if failed or not passed else 0


def run_all(options, redc):
    passed = failed = 0
    for case in cases:
        if options.only and options.only not in case.title:
            continue
        with tempfile.TemporaryDirectory(prefix='red-badinput-') as folder:
            wrong = run(case, redc, folder)
            for name in os.listdir(folder):
                os.chmod(os.path.join(folder, name), stat.S_IRWXU)
        if wrong:
            failed += 1
            print(f'FAILED  {case.title}', *wrong, sep='\n        ', flush=True)
        else:
            passed += 1
    return passed, failed


if __name__ == '__main__':
    sys.exit(main())

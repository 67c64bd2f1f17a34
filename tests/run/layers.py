#!/usr/bin/env python3
"""No include points upward: which folder may see which, and who may see LLVM and Clang."""

import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# First pattern that fits the file; the patterns of what it may include with quotes.
RULES = [
    (r'grammar/ptx', r'runtime/|grammar/ptx|red_version\.h'),
    (r'grammar/lift', r'grammar/|compiler/|runtime/plan\.h|red_text\.h|red_kernel_text\.h'),
    (r'grammar/', r'grammar/red|compiler/|runtime/plan\.h'),
    (r'passes/', r'passes/|compiler/|runtime/plan\.h'),
    (r'codegen/inspect', r'codegen/|compiler/|runtime/|red_version\.h'),
    (r'codegen/', r'codegen/|compiler/|runtime/plan\.h'),
    (r'runtime/', r'runtime/|red_version\.h|red_kernel\.h'),
    (r'compiler/', r''),
]
CLANG = r'(grammar/lift|codegen/inspect|compiler/clang_)'
FOREIGN = [(r'llvm-c/', r'codegen/nvptx'), (r'llvm/', CLANG), (r'clang-c/|clang/', CLANG)]


def problems():
    folders = ('grammar', 'compiler', 'passes', 'codegen', 'runtime', 'runtime/sim')
    files = [f for d in folders for f in glob.glob(os.path.join(ROOT, d, '*')) if re.search(r'\.([chly]|cpp|def)$', f)]
    for path in sorted(files):
        name = os.path.relpath(path, ROOT)
        allowed = next(may for file, may in RULES if name.startswith(file))
        with open(path, encoding='utf-8') as f:
            lines = f.readlines()
        for number, line in enumerate(lines, 1):
            m = re.match(r'\s*#\s*include\s*(["<])([^">]+)', line)
            if not m:
                continue
            for library, owner in FOREIGN:
                if re.match(library, m[2]) and not re.match(owner, name):
                    yield f'{name}:{number}: only {owner}* may include {m[2]}'
            is_foreign = any(re.match(library, m[2]) for library, _ in FOREIGN)
            if m[1] == '"' and not is_foreign and not re.match(allowed, m[2]):
                yield f'{name}:{number}: may not include {m[2]}'
    if not files:
        yield 'no source file'


def main():
    wrong = list(problems())
    print('\n'.join(wrong))
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())

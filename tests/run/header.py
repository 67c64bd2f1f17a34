#!/usr/bin/env python3
"""redc -o k.h: what it writes is C99 and C++11 without a warning, and its arithmetic is the plan's."""

import glob
import os
import shutil
import subprocess
import sys
import tempfile

REDC, SOURCE = os.environ['REDC'], os.environ['RED_SOURCE_DIR']
COMPILERS = [['gcc', '-std=c99'], ['clang', '-std=c99'], ['g++', '-std=c++11', '-xc++'], ['clang++', '-std=c++11', '-xc++']]
WARNINGS = ['-Wall', '-Wextra', '-pedantic', '-Wshadow', '-Werror', '-I', os.path.join(SOURCE, 'runtime')]
# Names that C takes, names that the header takes, every kind of parameter.
ODD = '''
kernel plain(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }
kernel int(A: f32[n, m] strided(p, 1), C: f32[n, m] strided(_, 1), double: f32, u: u64, b: bool) -> (device: f32[n, m]) {
  for i in n, j in m { device[i, j] = b ? A[i, j] + C[i, j] * double : f32(u); }
}
kernel window(X: f16[n + 2*r], r: size) -> (Y: f16[n]) { for i in n { Y[i] = X[i + r]; } }
kernel any(A: f32[n, m] strided, stream: i64) -> (B: f32[n], stdin: i32[n]) {
  for i in n { B[i] = sum(j in m) A[i, j]; }
  for i in n { stdin[i] = i32(stream); }
}
kernel red(A: f32[n]) -> (B: f32[n]) { for i in n { B[i] = A[i]; } }
kernel red_image(A: f32[n]) -> (B: f32[n]) { for i in n { B[i] = A[i]; } }
kernel scalar(red_handle: f64[]) -> (B: f64[]) { B[] = red_handle[]; }
kernel halves(A: bf16[n]) -> (B: bool[n], C: f64[n]) { for i in n { B[i] = A[i] > 0.0; } for i in n { C[i] = f64(A[i]); } }
'''
ARITHMETIC = r'''
#include "odd.h"
#include <stdio.h>
static int64_t saturate(__int128 v) { return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (int64_t)v; }
static int failures;
static void expect(const char *op, int64_t a, int64_t b, int64_t is, __int128 should) {
  if (is == saturate(should)) return;
  printf("%s %lld %lld: %lld\n", op, (long long)a, (long long)b, (long long)is);
  failures++;
}
int main(void) {
  static const int64_t values[] = {0, 1, -1, 2, -2, 3, 7, -7, 3037000499, 3037000500, -3037000500, INT64_MAX, INT64_MAX - 1, INT64_MIN, INT64_MIN + 1,
                                   INT64_MAX / 2, INT64_MAX / 2 + 1, INT64_MIN / 2, INT64_MIN / 2 - 1, INT64_MAX / 3, (int64_t)1 << 32, -((int64_t)1 << 32)};
  for (unsigned i = 0; i < sizeof values / sizeof *values; i++)
    for (unsigned j = 0; j < sizeof values / sizeof *values; j++) {
      int64_t a = values[i], b = values[j];
      expect("add", a, b, red_ahead_add(a, b), (__int128)a + b);
      expect("sub", a, b, red_ahead_sub(a, b), (__int128)a - b);
      expect("mul", a, b, red_ahead_mul(a, b), (__int128)a * b);
      expect("div", a, b, red_ahead_div(a, b), b ? (__int128)a / b : -1);
      expect("mod", a, b, red_ahead_mod(a, b), b ? (__int128)a % b : a);
      expect("shl", a, b, red_ahead_shl(a, b), (__int128)a * ((__int128)1 << (b & 63)));
      expect("neg", a, b, red_ahead_neg(a), -(__int128)a);
      expect("abs", a, b, red_ahead_abs(a), a < 0 ? -(__int128)a : a);
    }
  return failures != 0;
}
'''
failures, passed = [], 0


def expect(name, done):
    global passed
    if done.returncode or done.stdout or done.stderr:
        failures.append(f'FAILED {name}\n{done.stdout}{done.stderr}')
    else:
        passed += 1


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def compiles(header):
    with open('unit.c', 'w', encoding='utf-8') as f:
        f.write(f'#include "{header}"\n#include "{header}"\nint main(void) {{ return 0; }}\n')
    for compiler in COMPILERS:
        if shutil.which(compiler[0]):
            expect(f'{header}: {" ".join(compiler)}', run(*compiler, *WARNINGS, '-fsyntax-only', 'unit.c'))


def main():
    with tempfile.TemporaryDirectory(prefix='red-header-') as folder:
        os.chdir(folder)
        with open('odd.red', 'w', encoding='utf-8') as f:
            f.write(ODD)
        expect('odd.red', run(REDC, 'odd.red', '-o', 'odd.h'))
        compiles('odd.h')
        for path in sorted(glob.glob(os.path.join(SOURCE, 'examples', '*.red'))):
            header = os.path.basename(path).replace('.red', '.h')
            done = run(REDC, path, '-D', 'm=8', '-o', header)
            if done.returncode:  # a type parameter, or another size
                done = run(REDC, path, '-D', 'T=f32', '-o', header)
            expect(path, done)
            if not done.returncode:
                compiles(header)
        with open('arithmetic.c', 'w', encoding='utf-8') as f:
            f.write(ARITHMETIC)
        expect('arithmetic', run('cc', '-std=gnu99', '-fsanitize=undefined', '-fno-sanitize-recover=all', '-I', os.path.join(SOURCE, 'runtime'),
                                 'arithmetic.c', '-o', 'arithmetic'))
        expect('arithmetic', run('./arithmetic'))
        os.chdir('/')
    print('\n'.join(failures + [f'{passed} passed, {len(failures)} failed, 0 skipped']))
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
"""The kernels and schedules that show the language, whole: each runs in the simulator under all its checks, over sizes that take each of its
schedules and the compiler's own, and agrees with the reference. Where nvcc is found each also runs from what nvcc makes of its CUDA text, with the same bits.

  REDC=build/redc RED_SOURCE_DIR=. python3 tests/run/programs.py [TEXT]     # the programs with TEXT in their names
"""
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ['RED_SOURCE_DIR'], 'tests'))
import batch  # noqa: E402

REDC = os.environ['REDC']
NVCC = shutil.which('nvcc') or shutil.which('nvcc', path=os.path.join(os.environ.get('CUDA_HOME', '/usr/local/cuda'), 'bin'))

ROWS = 'kernel rows(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }\n'
SOFTMAX = """kernel softmax(X: f32[n, m]) -> (Y: f32[n, m]) {
  for i in n { let top = max(j in m) X[i, j];  let all = sum(j in m) exp(X[i, j] - top);  for j in m { Y[i, j] = exp(X[i, j] - top) / all; } }
}
"""
COLUMNS = 'kernel columns(A: f32[m, n]) -> (B: f32[n]) { for i in n { B[i] = sum(k in m) A[k, i]; } }\n'
TRANSPOSE = 'kernel transpose<T>(X: T[a, b]) -> (Y: T[b, a]) { for i in a, j in b { Y[j, i] = X[i, j]; } }\n'
# name: (program, arguments of each run)
PROGRAMS = {
    'rows': (ROWS + 'schedule rows { bind i -> block.x;  bind j -> thread.x; }', ['-D n=5 -D m=11 --arg A=rand(1)', '-D n=3 -D m=1000 --arg A=rand(2)']),
    'rows, the compiler\'s own': (ROWS, ['--size n=5 --size m=11 --arg A=rand(1)', '--size n=2 --size m=4099 --arg A=rand(2)']),
    'softmax': (SOFTMAX + """schedule softmax as block when m <= 8192 && m % 4 == 0 {
  bind i -> block.x;  split j by 4 -> jc, jv;  split jc by 256 -> jo, jt;  bind jt -> thread.x;  vectorize jv;  unroll jo;  stage X at i in registers;
}""", ['-D n=3 -D m=1028 --arg X=rand(1)', '-D n=3 -D m=7 --arg X=rand(2)', '--size n=2 --size m=36 --arg X=rand(3)']),
    'layernorm': ("""reducer moments(mean: f32, m2: f32, count: f32) {
  identity (0, 0, 0);
  combine(a, b) { let c = a.count + b.count; let d = b.mean - a.mean; let w = c > 0 ? b.count / c : 0; (a.mean + d * w, a.m2 + b.m2 + d * d * a.count * w, c) }
  update(a, x) { let c = a.count + 1; let d = x - a.mean; let mu = a.mean + d / c; (mu, a.m2 + d * (x - mu), c) }
}
kernel layernorm(X: f16[n, m], G: f16[m], H: f16[m], eps: f32) -> (Y: f16[n, m]) {
  for i in n {
    let (mean, m2, count) = moments(j in m) X[i, j];
    let r = rsqrt(m2 / m + eps);
    for j in m { Y[i, j] = (X[i, j] - mean) * r * G[j] + H[j]; }
  }
}""", ['--size n=3 --size m=128 --arg X=rand(1) --arg G=rand(2) --arg H=rand(3) --arg eps=1e-5', '-D n=2 -D m=77 --arg X=rand(4) --arg G=rand(5) --arg H=rand(6) --arg eps=1e-5']),
    'peak': ('kernel peak(A: f32[n, m]) -> (V: f32[n], P: i32[n]) { for i in n { (V[i], P[i]) = argmax(j in m) (A[i, j], i32(j)); } }',
             ['--size n=4 --size m=100 --arg A=rand(1)', '-D n=3 -D m=33 --arg A=i%5']),
    'fold': ('kernel fold(A: f32[n, m], alpha: f32, beta: f32) -> (B: f32[n]) { for i in n { B[i] = alpha * B[i] + beta * sum(j in m) A[i, j]; } }',
             ['--size n=4 --size m=100 --arg A=rand(1) --arg B=rand(2) --arg alpha=0.5 --arg beta=2', '-D n=3 -D m=5 --arg A=rand(3) --arg B=rand(4) --arg alpha=1 --arg beta=-1']),
    'matvec': ('kernel matvec(A: f32[n, m], x: f32[m]) -> (y: f32[n]) { for i in n { y[i] = sum(j in m) (A[i, j] * x[j]); } }',
               ['--size n=4 --size m=100 --arg A=rand(1) --arg x=rand(2)', '-D n=3 -D m=1025 --arg A=rand(3) --arg x=rand(4)']),
    'triangle': ('kernel triangle(A: f32[n, n]) -> (B: f32[n]) { for i in n { B[i] = sum(j in 0..i + 1) A[i, j]; } }', ['--size n=37 --arg A=rand(1)', '-D n=70 --arg A=rand(2)']),
    'even': ('kernel even(A: f32[n, m]) -> (B: f32[n]) { for i in n { if i % 2 == 0 { B[i] = sum(j in m if j <= i) A[i, j]; } } }',
             ['--size n=37 --size m=20 --arg A=rand(1)', '-D n=5 -D m=64 --arg A=rand(2)']),
    'norms': ('kernel norms(X: f32[n, m], s: f32) -> (N: f32[n]) { for i in n { let ss = sum(j in m) { let x = X[i, j]; x * x };  N[i] = s * sqrt(ss) + 1e-12; } }',
              ['--size n=7 --size m=65 --arg X=rand(1) --arg s=3', '-D n=2 -D m=300 --arg X=rand(2) --arg s=0.5']),
    'permute': ('kernel permute<T>(X: T[a, b, c]) -> (Y: T[b, a, c]) { for i in a, j in b, k in c { Y[j, i, k] = X[i, j, k]; } }',
                ['-D T=f32 --size a=5 --size b=6 --size c=8 --arg X=rand(1)', '-D T=f16 -D a=3 -D b=4 -D c=7 --arg X=rand(2)', '-D T=f8e4m3 -D a=3 -D b=4 -D c=16 --arg X=rand(3)']),
    'channels': ("""kernel channels(X: f32[n, c, h, w], bias: f32[c]) -> (Y: f16[n, h, w, c]) {
  for b in n, k in c, p in h, q in w { Y[b, p, q, k] = X[b, k, p, q] + bias[k]; }
}""", ['--size n=2 --size c=3 --size h=5 --size w=7 --arg X=rand(1) --arg bias=rand(2)', '-D n=1 -D c=64 -D h=4 -D w=32 --arg X=rand(3) --arg bias=rand(4)']),
    'pad': ('kernel pad(X: f32[n, m]) -> (Y: f32[n, m + 2]) { for i in n { Y[i, 0] = 0;  Y[i, m + 1] = 0;  for j in m { Y[i, j + 1] = X[i, j]; } } }',
            ['--size n=4 --size m=9 --arg X=rand(1)', '-D n=3 -D m=64 --arg X=rand(2)']),
    'compose': ("""ordered reducer affine(a: u32, b: u32) { identity (1, 0);  combine(f, g) { (f.a * g.a, f.b * g.a + g.b) } }
kernel compose(A: u32[n], B: u32[n]) -> (R: u32[2]) { let (a, b) = affine(i in n) (A[i], B[i]);  R[0] = a;  R[1] = b; }""",
                ['--size n=1000 --arg A=rand(1) --arg B=rand(2)', '-D n=37 --arg A=2*i+1 --arg B=i']),
    'columns': (COLUMNS + """schedule columns as column when n % 4 == 0 && n >= 32 && m * n >= 262144 {
  split i by 4 -> ic, iv;  split ic by 8 -> io, ii;  split k by 8 -> k1, ku;  split k1 by 32 -> k2, ks;
  split k2 into min(extent(k2), max(1, 4 * sms / extent(io))) -> kg, kr;
  bind io -> block.x;  bind kg -> block.y;  bind ii -> thread.x;  bind ks -> thread.y;
  reorder io, kg, ii, ks, kr, ku, iv;
  unroll ku;  vectorize iv;  combine kg by last_block;
}""", ['--size m=8192 --size n=32 --arg A=rand(1)', '-D m=2048 -D n=128 --arg A=rand(2)', '--size m=40 --size n=33 --arg A=rand(3)']),
    'transpose': (TRANSPOSE + """schedule transpose as tile when bytes(T) == 2 && a % 8 == 0 && b % 8 == 0 {
  tile i by 64, j by 64 -> io, jo, ii, ji;  fuse io, jo -> t;  bind t -> block.x;
  stage X at t in shared as S unit 2 along ii swizzle 5,0,6;
  split S.ii by 2 -> sr, su;  split S.ji by 8 -> sc, sv;  split sc by 4 -> sd, se;
  reorder sd, sr, se, su, sv;  fuse sd, sr, se -> st;  bind st -> thread.x;  vectorize su, sv;
  split Y.ii by 8 -> yc, yv;  split Y.ji by 32 -> yr, yt;
  reorder yr, yt, yc, yv;  fuse yt, yc -> yn;  bind yn -> thread.x;  vectorize yv;  unroll yr;
}""", ['-D T=f16 -D a=72 -D b=136 --arg X=rand(1)', '-D T=bf16 --size a=64 --size b=200 --arg X=rand(2)', '-D T=f32 --size a=33 --size b=65 --arg X=rand(3)']),
}


def main():
    chosen = {name: p for name, p in PROGRAMS.items() if all(text in name for text in sys.argv[1:])}
    wrong = twins = runs = 0
    with tempfile.TemporaryDirectory() as root:
        lines, known, titles, cuda = [], [], [], []
        for number, (name, (program, arguments)) in enumerate(chosen.items()):
            path = f'{root}/p{number}.red'
            with open(path, 'w', encoding='utf-8') as f:
                f.write(program + '\n')
            for n, args in enumerate(arguments):
                args = shlex.split(args)
                lines.append([path, *args])
                titles.append(f'{name}: {arguments[n]}')
                args = ['-D' if a == '--size' else a for a in args]  # what a launch compiles for its sizes
                known.append([path, *args])
                defines = [a for i, a in enumerate(args) if a == '-D' or (i and args[i - 1] == '-D')]
                made = subprocess.run([REDC, path, *defines, '--emit=cuda'], capture_output=True, text=True, check=False) if NVCC else None
                cuda.append(made.stdout if made and made.returncode == 0 else None)
        for title, (status, said) in zip(titles, batch.run(REDC, lines, ['--check', '--device=sim'], 2)):
            runs += 1
            wrong += status != 0
            if status:
                print(f'{title}: status {status}\n{said}')
        both = []
        for number, (line, text) in enumerate(zip(known, cuda)):
            if not text:
                continue
            path = f'{root}/{number}.cu'
            with open(path, 'w', encoding='utf-8') as f:
                f.write(text)
            done = subprocess.run([NVCC, '-arch=sm_80', '-ptx', path, '-o', path + '.ptx'], capture_output=True, text=True, check=False)
            if done.returncode:
                wrong += 1
                print(f'{titles[number]}: nvcc refuses the CUDA text\n{done.stderr}')
                continue
            both.append((titles[number], [*line, f'--twin={path}.ptx']))
        for (title, _), (status, said) in zip(both, batch.run(REDC, [line for _, line in both], ['--device=sim', '--arch=sm_80'], 2)):
            twins += 1
            wrong += status != 0
            if status:
                print(f'{title}: beside nvcc: status {status}\n{said}')
    if NVCC:
        print(f'{twins} of {runs} runs from the CUDA text too, with the same bits')
    else:
        print('skipped: nvcc was not found, so nothing ran from the CUDA text')
    print(f'{runs + twins - wrong} passed, {wrong} failed')
    return 1 if wrong or not runs or (NVCC and not twins) else 0


if __name__ == '__main__':
    sys.exit(main())

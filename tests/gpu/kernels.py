"""Programs for a GPU's tests, and the extents of their parameters."""

import glob
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Launched at each of these, where the kernel takes them: every size has the first value, or the second, in turn.
SIZES = [(8, 8), (33, 7), (5, 1000), (1000, 5), (64, 4096), (3000, 96), (1, 100003), (100003, 1), (257, 255)]
# Programs without a schedule: the compiler's own, in each of its classes.
OWN = {
    'rows': 'kernel rows(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }',
    'rows-f16': 'kernel rows(A: f16[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) f32(A[i, j]); } }',
    'columns': 'kernel columns(A: f32[m, n]) -> (B: f32[n]) { for i in n { B[i] = sum(k in m) A[k, i]; } }',
    'total': 'kernel total(A: f32[n, m]) -> (B: f32[1]) { B[0] = sum(i in n, j in m) A[i, j]; }',
    'middle': 'kernel middle(A: i32[n, m, 3]) -> (B: i32[n, 3]) { for i in n, k in 3 { B[i, k] = max(j in m) A[i, j, k]; } }',
    'argmin': 'kernel lowest(A: f32[n, m]) -> (V: f32[n], P: i32[n]) { for i in n { (V[i], P[i]) = argmin(j in m) (A[i, j], i32(j)); } }',
    'transpose-u8': 'kernel t(X: u8[n, m]) -> (Y: u8[m, n]) { for i in n, j in m { Y[j, i] = X[i, j]; } }',
    'transpose-f32': 'kernel t(X: f32[n, m]) -> (Y: f32[m, n]) { for i in n, j in m { Y[j, i] = X[i, j]; } }',
    'permute': 'kernel p(X: bf16[n, m, 6]) -> (Y: bf16[6, n, m]) { for i in n, j in m, k in 6 { Y[k, i, j] = X[i, j, k]; } }',
    'functions': 'kernel f(X: f32[n, m]) -> (Y: f32[n, m]) { for i in n, j in m { Y[i, j] = exp(X[i, j] / 8) + log(abs(X[i, j]) + 1) * sin(X[i, j]); } }',
    'norm': 'kernel norm(X: f32[n, m]) -> (Y: f32[n]) { for i in n { Y[i] = sqrt(sum(j in m) (X[i, j] * X[i, j])); } }',
}


def programs():
    """(name, text, [-D arguments])."""
    for path in sorted(glob.glob(os.path.join(ROOT, 'examples', '*.red'))):
        with open(path, encoding='utf-8') as f:
            text = f.read()
        line = next((m[1] for m in re.finditer(r'^// redc (?!run|check)(.*)', text, flags=re.M)), '')
        yield os.path.basename(path), text, re.findall(r'-D\s*(\S+)', line)
    for name, text in OWN.items():
        yield name, text, []


def evaluate(shape, sizes):
    """The extents of a parameter's "n, m + 2"."""
    parts = [p for p in shape.split(',') if p.strip()]
    return tuple(int(eval(p.replace('/', '//'), {'__builtins__': {}, 'min': min, 'max': max}, sizes)) for p in parts)  # pylint: disable=eval-used


def names_of(kernel):
    found = []
    for p in kernel.parameters:
        found += [n for n in re.findall(r'[A-Za-z_]\w*', p.shape) if n not in ('min', 'max')] + ([p.name] if p.kind == 'size' else [])
    return list(dict.fromkeys(found))

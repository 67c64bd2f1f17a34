#!/usr/bin/env python3
"""Minimax polynomials for compiler/mathlib*.def, coefficients rounded one after another to the working precision.

Needs mpmath. `minimax.py NAME` prints the coefficients and the largest weighted error; without a name, all of them.
"""
import sys
from mpmath import mp, mpf, matrix, lu_solve, cos, pi, log, exp, sin, erfc, erf, sqrt, floor, fabs, ldexp, frexp, expm1, log1p, atanh, tanh

mp.prec = 200


def round_to(x, bits):
    """The nearest number with `bits` significant bits."""
    if x == 0:
        return x
    m, e = frexp(x)
    return ldexp(mp.nint(ldexp(m, bits)), e - bits)


def remez(f, weight, powers, lo, hi):
    """Coefficients c of sum c[i] x^powers[i] with minimal max |weight(x) (p(x) - f(x))| on lo..hi, and that error."""
    n = len(powers)
    nodes = [(lo + hi) / 2 - (hi - lo) / 2 * cos(pi * i / n) for i in range(n + 1)]
    grid_size = 24 * (n + 1)
    grid = [(lo + hi) / 2 - (hi - lo) / 2 * cos(pi * i / grid_size) for i in range(grid_size + 1)]
    values = [(x, f(x), weight(x)) for x in grid]
    coefficients, worst = None, None
    for _ in range(40):
        a, b = matrix(n + 1, n + 1), matrix(n + 1, 1)
        for i, x in enumerate(nodes):
            w = weight(x)
            for k, power in enumerate(powers):
                a[i, k] = x**power
            a[i, n] = (-1) ** i / w
            b[i] = f(x)
        solution = lu_solve(a, b)
        coefficients, level = [solution[k] for k in range(n)], fabs(solution[n])
        errors = [w * (sum(c * x**p for c, p in zip(coefficients, powers)) - y) for x, y, w in values]
        worst = max(fabs(e) for e in errors)
        # one extremum for each run of errors of one sign
        runs = []
        for (x, _, _), e in zip(values, errors):
            if runs and (runs[-1][1] > 0) == (e > 0):
                if fabs(e) > fabs(runs[-1][1]):
                    runs[-1] = (x, e)
            else:
                runs.append((x, e))
        while len(runs) > n + 1:
            if len(runs) == n + 2:
                runs.pop(0 if fabs(runs[0][1]) < fabs(runs[-1][1]) else -1)
            else:
                k = min(range(len(runs) - 1), key=lambda i: max(fabs(runs[i][1]), fabs(runs[i + 1][1])))
                del runs[k:k + 2]
        if len(runs) < n + 1:
            break
        nodes = [x for x, _ in runs]
        if worst < level * mpf(1.0001):
            break
    return coefficients, worst


def fit(f, powers, lo, hi, bits, weight=None, fixed=(), relative_to=None):
    """Rounds the coefficients in the order of their weight in the sum, each time fitting the rest anew.

    fixed: (power, value) terms that are given. bits: a number, or one for each power.
    """
    lo, hi = mpf(lo), mpf(hi)
    weight = weight or (lambda x: 1 / fabs(relative_to(x) if relative_to else f(x)))
    done = list(fixed)
    left = list(powers)
    bits = dict(zip(powers, bits if isinstance(bits, (list, tuple)) else [bits] * len(powers)))
    rest = lambda x: f(x) - sum(c * x**p for p, c in done)
    while left:
        coefficients, _ = remez(rest, weight, left, lo, hi)
        done.append((left[0], round_to(coefficients[0], bits[left[0]])))
        left.pop(0)
    # the error of what came out
    n = 2000
    worst = max(fabs(weight(x) * (sum(c * x**p for p, c in done) - f(x)))
                for x in ((lo + hi) / 2 - (hi - lo) / 2 * cos(pi * i / n) for i in range(n + 1)))
    return [c for p, c in done if p in powers], worst


def hexadecimal(x):
    """As a C literal."""
    return float(x).hex().replace('0000000p', 'p') if x == mpf(float(x)) else repr(x)


def shown(name, coefficients, worst):
    print(f'{name}: error 2^{float(mp.log(worst, 2)):.2f}')
    for c in coefficients:
        print('   ', hexadecimal(c), f'// {mp.nstr(c, 12)}')


ln2 = log(mpf(2))
FITS = {}
def named(g):
    FITS[g.__name__] = g
    return g

HALF = float(ln2) / 2 * 1.0001
def safe(g, limit, at=mpf(2)**-40):
    return lambda x: g(x) if fabs(x) > at else limit(x)

# f32

@named
def exp_f32():  # exp(r) = 1 + r + r^2 q(r)
    return fit(exp, [2, 3, 4, 5, 6], -HALF, HALF, 24, fixed=[(0, mpf(1)), (1, mpf(1))])


@named
def exp2_f32():  # 2^r = 1 + r q(r)
    return fit(lambda r: exp(r * ln2), [1, 2, 3, 4, 5, 6], -0.5, 0.5, 24, fixed=[(0, mpf(1))])


def log_rest(f):  # log(1 + f) = f - f^2/2 + f^3 q(f)
    return (log1p(f) - f + f * f / 2) / f**3 if fabs(f) > mpf(2)**-40 else mpf(1) / 3 - f / 4


ROOT = (sqrt(mpf(0.5)) - 1, sqrt(mpf(2)) - 1)


@named
def log_f32():
    return fit(log_rest, range(0, 9), *ROOT, 24, weight=lambda f: fabs(f**3 / log1p(f)) + mpf(2)**-30)


@named
def log2_f32():  # log2(1 + f) = f / ln 2 + f^2 q(f)
    q = lambda f: (log1p(f) - f) / f**2 / ln2 if fabs(f) > mpf(2)**-40 else (-1 + 2 * f / 3) / 2 / ln2
    return fit(q, range(0, 10), *ROOT, 24, weight=lambda f: fabs(f**2 / log1p(f)) + mpf(2)**-30)


QUARTER = float(pi / 4) * 1.0001


@named
def sin_f32():  # sin(r) = r + r z q(z), z = r^2
    q = lambda z: (sin(sqrt(z)) / sqrt(z) - 1) / z if z > mpf(2)**-60 else -mpf(1) / 6
    return fit(q, range(0, 4), 0, QUARTER**2, 24, weight=lambda z: z * sqrt(z) / sin(sqrt(z)) + mpf(2)**-30 if z else mpf(2)**-30)


@named
def cos_f32():  # cos(r) = 1 - z/2 + z^2 q(z)
    q = lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2 if z > mpf(2)**-40 else mpf(1) / 24 - z / 720
    return fit(q, range(0, 4), 0, QUARTER**2, 24, weight=lambda z: z * z + mpf(2)**-30)


@named
def erf_near_f32():  # erf(x) = x + x q(x^2), up to 1
    q = lambda z: erf(sqrt(z)) / sqrt(z) - 1 if z > mpf(2)**-60 else 2 / sqrt(pi) - 1
    return fit(q, range(0, 8), 0, 1, 24, weight=lambda z: sqrt(z) / erf(sqrt(z)) if z else mpf(1))


@named
def erf_far_f32():  # erf(x) = 1 - exp(-x q(x)), from 1
    return fit(lambda x: -log(erfc(x)) / x, range(0, 8), 1, 4, 24, weight=lambda x: x * erfc(x) / erf(x))


@named
def tanh_f32():  # tanh(x) = x + x z q(z), z = x^2, below 0.6
    q = lambda z: (tanh(sqrt(z)) / sqrt(z) - 1) / z if z > mpf(2)**-60 else -mpf(1) / 3
    return fit(q, range(0, 6), 0, 0.6**2, 24, weight=lambda z: z * sqrt(z) / tanh(sqrt(z)) + mpf(2)**-30 if z else mpf(2)**-30)


def log2_tail(z):  # log2((1 + s) / (1 - s)) = s (A + z (A/3 + z q(z))), z = s^2
    A = 2 / ln2
    if z < mpf(2)**-40:
        return A / 5 + z * A / 7
    return (2 * atanh(sqrt(z)) / sqrt(z) / ln2 - A - z * A / 3) / z**2


SMALL = float(((sqrt(mpf(2)) - 1) / (sqrt(mpf(2)) + 1))**2 * 1.0001)


@named
def pow_f32():
    return fit(log2_tail, range(0, 3), 0, SMALL, 24, weight=lambda z: z * z / 3 + mpf(2)**-40)


@named
def constants_f32():
    for name, x in [('ln 2', ln2), ('1 / ln 2', 1 / ln2), ('2 / ln 2', 2 / ln2), ('2 / (3 ln 2)', 2 / ln2 / 3), ('pi / 2', pi / 2)]:
        hi = round_to(x, 24)
        print(name, hexadecimal(hi), hexadecimal(round_to(x - hi, 24)))
    hi = round_to(ln2, 15)
    print('ln 2, 15 bits', hexadecimal(hi), hexadecimal(round_to(ln2 - hi, 24)))
    return [], mpf(1)


if __name__ == '__main__':
    for name in sys.argv[1:] or FITS:
        shown(name, *FITS[name]())

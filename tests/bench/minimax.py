#!/usr/bin/env python3
"""Near-minimax polynomials for compiler/mathlib*.def, coefficients rounded one after another to the working precision.

Needs mpmath. `minimax.py NAME` prints the coefficients and the largest weighted error; without a name, all of them.
"""
import sys
from mpmath import mp, mpf, matrix, lu_solve, cos, pi, log, exp, sin, erfc, erf, sqrt, floor, fabs, ldexp, frexp, expm1, log1p, atanh

mp.prec = 300


def round_to(x, bits):
    """The nearest number with `bits` significant bits."""
    if x == 0:
        return x
    m, e = frexp(x)
    return ldexp(mp.nint(ldexp(m, bits)), e - bits)


def least_squares(f, weight, powers, lo, hi):
    """Coefficients c of sum c[i] x^powers[i] near f in the weighted square mean over Chebyshev's nodes of lo..hi.

    That is within a small factor of the best largest error, and stands being done again with coefficients fixed.
    """
    n = len(powers)
    count = 6 * n + 20
    a, b = matrix(n, n), matrix(n, 1)
    for i in range(count):
        x = (lo + hi) / 2 - (hi - lo) / 2 * cos(pi * (i + mpf(0.5)) / count)
        w, y = weight(x)**2, f(x)
        row = [x**p for p in powers]
        for k in range(n):
            b[k] += w * row[k] * y
            for j in range(n):
                a[k, j] += w * row[k] * row[j]
    solution = lu_solve(a, b)
    return [solution[k] for k in range(n)]


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
        coefficients = least_squares(rest, weight, left, lo, hi)
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
    return fit(q, range(0, 8), 0, 1, 24, weight=lambda z: sqrt(z) / erf(sqrt(z)) if z else sqrt(pi) / 2)


@named
def erf_far_f32():  # erf(x) = 1 - exp(-x q(x)), from 1
    return fit(lambda x: -log(erfc(x)) / x, range(0, 8), 1, 4, 24, weight=lambda x: x * erfc(x) / erf(x))


def log2_tail(z):  # log2((1 + s) / (1 - s)) = s (A + z (A/3 + z q(z))), z = s^2
    A = 2 / ln2
    if z < mpf(2)**-40:
        return A / 5 + z * A / 7
    return (2 * atanh(sqrt(z)) / sqrt(z) / ln2 - A - z * A / 3) / z**2


SMALL = float(((sqrt(mpf(2)) - 1) / (sqrt(mpf(2)) + 1))**2 * 1.0001)


@named
def pow_f32():
    return fit(log2_tail, range(0, 3), 0, SMALL, 24, weight=lambda z: z * z / 3 + mpf(2)**-40)


# f64

@named
def exp_f64():  # exp(r) = 1 + r + r^2 q(r)
    q = lambda r: (expm1(r) - r) / r**2 if fabs(r) > mpf(2)**-40 else mpf(1) / 2 + r / 6
    return fit(q, range(0, 11), -HALF, HALF, 53, weight=lambda r: fabs(r**2 / expm1(r)) + mpf(2)**-60)


def atanh_rest(s):  # log((1 + s) / (1 - s)) = 2 s + s z q(z), z = s^2
    z = s * s
    return (2 * atanh(s) / s - 2) / z if z > mpf(2)**-40 else mpf(2) / 3 + 2 * z / 5


@named
def log_f64():
    return fit(lambda z: atanh_rest(sqrt(z)), range(0, 8), 0, SMALL, 53, weight=lambda z: z / 2 + mpf(2)**-60)


@named
def sin_f64():
    q = lambda z: (sin(sqrt(z)) / sqrt(z) - 1) / z if z > mpf(2)**-60 else -mpf(1) / 6
    return fit(q, range(0, 6), 0, QUARTER**2, 53, weight=lambda z: z * sqrt(z) / sin(sqrt(z)) + mpf(2)**-60 if z else mpf(2)**-60)


@named
def cos_f64():
    q = lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2 if z > mpf(2)**-40 else mpf(1) / 24 - z / 720
    return fit(q, range(0, 6), 0, QUARTER**2, 53, weight=lambda z: z * z + mpf(2)**-60)


@named
def erf_near_f64():
    q = lambda z: erf(sqrt(z)) / sqrt(z) - 1 if z > mpf(2)**-60 else 2 / sqrt(pi) - 1
    return fit(q, range(0, 13), 0, 1, 53, weight=lambda z: sqrt(z) / erf(sqrt(z)) if z else sqrt(pi) / 2)


@named
def erf_far_f64():
    return fit(lambda x: -log(erfc(x)) / x, range(0, 18), 1, 6, 53, weight=lambda x: x * erfc(x) / erf(x))


@named
def pow_f64():
    return fit(log2_tail, range(0, 9), 0, SMALL, 53, weight=lambda z: z * z / 3 + mpf(2)**-80)


def constants(digits):
    for name, x in [('ln 2', ln2), ('1 / ln 2', 1 / ln2), ('2 / ln 2', 2 / ln2), ('2 / (3 ln 2)', 2 / ln2 / 3), ('pi / 2', pi / 2)]:
        high = round_to(x, digits)
        print(name, hexadecimal(high), hexadecimal(round_to(x - high, digits)))
    few = digits * 5 // 8
    high = round_to(ln2, few)
    print(f'ln 2, {few} bits', hexadecimal(high), hexadecimal(round_to(ln2 - high, digits)))
    return [], mpf(1)


@named
def constants_f32():
    return constants(24)


@named
def constants_f64():
    return constants(53)


@named
def two_over_pi():
    mp.prec = 1400
    bits = int(floor(ldexp(2 / pi, 64 * 19)))
    mp.prec = 300
    print(' '.join(f'0x{bits >> 64 * (18 - i) & (2**64 - 1):016x}' for i in range(19)))
    return [], mpf(1)


if __name__ == '__main__':
    for name in sys.argv[1:] or FITS:
        shown(name, *FITS[name]())

"""The shapes that are measured. A case is a dict: group, name, what (sum, max, argmax, mean, softmax, permute, copy), dtype, shape, and axes or perm."""

ELEMENT = {'f16': 2, 'bf16': 2, 'f32': 4, 'f64': 8, 'i8': 1, 'u8': 1, 'i32': 4, 'i64': 8, 'c128': 16}


def reduction(group, name, shape, axes, dtype='f32', what='sum'):
    return dict(group=group, name=name, what=what, dtype=dtype, shape=tuple(shape), axes=tuple(axes))


def permutation(group, name, shape, perm, dtype='f32'):
    return dict(group=group, name=name, what='permute', dtype=dtype, shape=tuple(shape), perm=tuple(perm))


def full_name(case):
    """What tells a case from the others of its group."""
    if case['what'] == 'permute':
        return f'{case["name"]} {list(case["shape"])} -> {list(case["perm"])} {case["dtype"]}'
    more = '' if case['what'] == 'sum' else f' {case["what"]}'
    return f'{case["name"]}{more}{"" if case["dtype"] == "f32" else " " + case["dtype"]}'


def columns():
    """Sums over the first axis of [n][m]."""
    for m, n in ((300, 10000), (1000, 10000), (1000, 100000), (5000, 20000), (100, 1000000), (32, 3000000), (16, 6000000),
                 (8, 12000000), (4, 25000000)):
        yield reduction('columns', f'{m} x {n}', (n, m), (0,))


def rows():
    """Sums over the last axis."""
    for n in (2, 4, 8, 11, 16, 32, 33, 64, 100, 256, 1000, 4096):
        count = 1048576 if n <= 1000 else 131072
        yield reduction('rows', f'{count} x {n}', (count, n), (1,))


def small():
    for m, n in ((1000, 10), (1000, 1000)):
        for axis in (1, 0):
            yield reduction('small', f'{m}x{n} dims={1 if axis else 2}', (n, m), (axis,))


def permutes(mebibytes=128, dtypes=('f32', 'f16', 'u8', 'f64', 'c128')):
    for dtype in dtypes:
        size = ELEMENT[dtype]
        for mb in (16, 32, 64, 128):
            total = mb * 2**20 // size
            yield permutation('permutes', f'{mb}MB', (total // (64 * 256), 256, 64), (1, 0, 2), dtype)
        total = mebibytes * 2**20 // size
        yield permutation('permutes', 'bT', (32, 1024, total // 32768), (0, 2, 1), dtype)
        yield permutation('permutes', 'T', (total // 4096, 4096), (1, 0), dtype)
        yield permutation('permutes', 'rev3', (512, 256, total // 131072), (2, 1, 0), dtype)
        yield permutation('permutes', 'nchw-nhwc', (32, 64, 128, total // 262144), (0, 2, 3, 1), dtype)
        yield permutation('permutes', 'nhwc-nchw', (32, 128, total // 262144, 64), (0, 3, 1, 2), dtype)
        yield permutation('permutes', 'odd', (total // (127 * 129), 127, 129), (0, 2, 1), dtype)
        yield permutation('permutes', 'k=3', (total // 3072, 1024, 3), (1, 0, 2), dtype)
        yield permutation('permutes', '[N,3,8]', (total // 24, 3, 8), (0, 2, 1), dtype)


def sweep_points(exponent, steps, deltas, dtype='f32', what='sum'):
    """(2^step, 2^(exponent - step)), each extent `delta` more, reduced over either axis. cliffs.py compares points of neighbouring steps."""
    for step in steps:
        for delta in deltas:
            a, b = 2**step + delta, 2**(exponent - step) + delta
            for axis in (0, 1):
                if a >= 1 and b >= 1:
                    yield dict(reduction('sweep', f'{a} x {b} over {axis}', (a, b), (axis,), dtype, what), step=step, delta=delta)


def sweep(exponent=24):
    """Sums of f32: every shape both ways, and its odd neighbours."""
    yield from sweep_points(exponent, range(exponent + 1), (0, 1, -1))


def sweep_types(exponent=24):
    for dtype in ('f16', 'bf16', 'f64', 'i8', 'i32', 'i64'):
        yield from sweep_points(exponent, range(0, exponent + 1, 2), (0, 1), dtype)


def sweep_operators(exponent=24):
    for what in ('max', 'argmax', 'mean_variance', 'softmax'):
        yield from sweep_points(exponent, range(0, exponent + 1, 2), (0, 1), 'f32', what)


def sweep_sample(exponent=24, count=40):
    """Of all of them, as many as there is time to compile by PyTorch."""
    points = [*sweep(exponent), *sweep_types(exponent), *sweep_operators(exponent)]
    for index in range(count):
        yield points[index * len(points) // count + index % 7]


def permute_sets():
    """Ranks 4 to 6 with extents of 5 to 100, 64 MiB and more, from a fixed generator."""
    import random
    generator = random.Random(20)
    for index in range(24):
        rank = 4 + index % 3
        dtype = ('f32', 'f16', 'f64', 'u8')[index % 4]
        wanted = 2**26 / ELEMENT[dtype]
        while True:
            shape = [generator.randint(5, 100) for _ in range(rank)]
            count = 1
            for extent in shape:
                count *= extent
            if wanted <= count <= 4 * wanted:
                break
        perm = list(range(rank))
        while perm == sorted(perm):
            generator.shuffle(perm)
        yield permutation('sets', f'rank {rank}', shape, perm, dtype)


def permute_orders(mebibytes=64):
    """All permutations of ranks 2 to 5 but the identity, with extents even, odd and skewed (one long axis, the others 2 to 8)."""
    import itertools
    import random
    generator = random.Random(7)
    for rank in (2, 3, 4, 5):
        for index, perm in enumerate(itertools.permutations(range(rank))):
            if perm == tuple(range(rank)):
                continue
            dtype = ('f32', 'u8', 'f16', 'f64', 'c128')[index % 5]
            count = mebibytes * 2**20 // ELEMENT[dtype]
            side = round(count ** (1 / rank))
            even = [side // 2 * 2] * (rank - 1)
            odd = [side | 1] * (rank - 1)
            skewed = [generator.randint(2, 8) for _ in range(rank)]
            place = generator.randrange(rank)
            skewed[place] = 1
            skewed[place] = -(-count // product(skewed))
            yield permutation('orders', 'even', even + [count // product(even) // 2 * 2], perm, dtype)
            yield permutation('orders', 'odd', odd + [count // product(odd) | 1], perm, dtype)
            yield permutation('orders', 'skewed', skewed, perm, dtype)


def product(extents):
    count = 1
    for extent in extents:
        count *= extent
    return count


def large():
    """Permutes of more than 2^31 elements, so that offsets need 64 bits."""
    yield permutation('large', '2^31 T', (65536, 32800), (1, 0), 'u8')
    yield permutation('large', '2^31 T', (65536, 32800), (1, 0), 'f32')
    yield permutation('large', '2^31 last kept', (4100, 8192, 64), (1, 0, 2), 'f16')
    yield permutation('large', '2^31 bT', (32, 1024, 65600), (0, 2, 1), 'f32')
    yield permutation('large', '2^31 odd', (131100, 127, 129), (0, 2, 1), 'f32')


GROUPS = {'columns': columns, 'rows': rows, 'small': small, 'permutes': permutes, 'sweep': sweep, 'sweep_types': sweep_types, 'sweep_operators': sweep_operators,
          'sweep_sample': sweep_sample, 'sets': permute_sets, 'orders': permute_orders, 'large': large}

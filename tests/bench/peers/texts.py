"""The .red program of a case, as a user would write it: no schedule, all sizes taken from the tensors."""

NAMES = 'abcdefgh'


def axes_text(indices):
    return ', '.join(f'{NAMES[d]} in n{d}' for d in indices)


def reduction_text(case):
    rank, axes, dtype = len(case['shape']), case['axes'], case['dtype']
    kept = [d for d in range(rank) if d not in axes]
    sizes = lambda dims: ', '.join(f'n{d}' for d in dims)
    letters = lambda dims: ', '.join(NAMES[d] for d in dims)
    read, over, place = f'X[{letters(range(rank))}]', axes_text(axes), letters(kept)
    source, result = f'{dtype}[{sizes(range(rank))}]', sizes(kept)
    wide = {'i8': 'i64', 'i32': 'i64'}.get(dtype, dtype)
    value = f'{wide}({read})' if wide != dtype else read
    what, size = case['what'], ' * '.join(f'n{d}' for d in axes)
    if what == 'sum':
        outputs, body = f'Y: {wide}[{result}]', f'Y[{place}] = sum({over}) {value};'
    elif what == 'max':
        outputs, body = f'Y: {dtype}[{result}]', f'Y[{place}] = max({over}) {read};'
    elif what == 'argmax':
        outputs = f'Y: {dtype}[{result}], Z: i64[{result}]'
        body = f'(Y[{place}], Z[{place}]) = argmax({over}) ({read}, {NAMES[axes[0]]});'
    elif what == 'mean_variance':
        outputs = f'Y: f32[{result}], Z: f32[{result}]'
        body = (f'let s = sum({over}) {read}; let q = sum({over}) {{ let x = {read}; x * x }}; let m = s / ({size}); '
                f'Y[{place}] = m; Z[{place}] = q / ({size}) - m * m;')
    else:
        outputs = f'Y: {source}'
        body = (f'let peak = max({over}) {read}; let total = sum({over}) exp({read} - peak); '
                f'for {over} {{ Y[{letters(range(rank))}] = exp({read} - peak) / total; }}')
    loop = f'for {axes_text(kept)} {{ {body} }}' if kept else body
    return f'kernel bench(X: {source}) -> ({outputs}) {{ {loop} }}\n'


def permutation_text(case):
    rank, perm = len(case['shape']), case['perm']
    sizes = lambda dims: ', '.join(f'n{d}' for d in dims)
    letters = lambda dims: ', '.join(NAMES[d] for d in dims)
    return (f'kernel bench(X: {case["dtype"]}[{sizes(range(rank))}]) -> (Y: {case["dtype"]}[{sizes(perm)}]) '
            f'{{ for {axes_text(range(rank))} {{ Y[{letters(perm)}] = X[{letters(range(rank))}]; }} }}\n')


def outputs(case):
    """(element type, shape) of each."""
    shape, axes, dtype, what = case['shape'], case.get('axes', ()), case['dtype'], case['what']
    if what == 'permute':
        return [(dtype, [shape[d] for d in case['perm']])]
    if what == 'softmax':
        return [(dtype, shape)]
    kept = [extent for d, extent in enumerate(shape) if d not in axes]
    types = {'sum': [{'i8': 'i64', 'i32': 'i64'}.get(dtype, dtype)], 'max': [dtype], 'argmax': [dtype, 'i64'], 'mean_variance': ['f32', 'f32']}
    return [(t, kept) for t in types[what]]


def text(case):
    return permutation_text(case) if case['what'] == 'permute' else reduction_text(case)

"""Reading and writing .npy files without NumPy, for the tests of redc run."""

import ast
import struct

FORMATS = {'b1': '?', 'i1': 'b', 'i2': 'h', 'i4': 'i', 'i8': 'q', 'u1': 'B', 'u2': 'H', 'u4': 'I', 'u8': 'Q', 'f2': 'e',
           'f4': 'f', 'f8': 'd'}


def write(path, descr, shape, values, fortran=False, version=1):
    """values: in the order of the file."""
    header = repr({'descr': descr, 'fortran_order': fortran, 'shape': tuple(shape)}).encode()
    size = 10 if version == 1 else 12
    header += b' ' * (-(size + len(header) + 1) % 64) + b'\n'
    order = '>' if descr[0] == '>' else '<'
    data = struct.pack(f'{order}{len(values)}{FORMATS[descr[1:]]}', *values)
    with open(path, 'wb') as f:
        f.write(b'\x93NUMPY' + bytes([version, 0]) + struct.pack('<H' if version == 1 else '<I', len(header)) + header + data)


def read(path):
    """(descr, shape, values in row-major order) of a file in C order."""
    with open(path, 'rb') as f:
        data = f.read()
    assert data[:8] == b'\x93NUMPY\x01\x00', data[:8]
    length, = struct.unpack('<H', data[8:10])
    assert (10 + length) % 64 == 0
    header = ast.literal_eval(data[10:10 + length].decode())
    assert header['fortran_order'] is False
    count = 1
    for n in header['shape']:
        count *= n
    kind = header['descr'][1:]
    if kind in ('c8', 'c16'):
        parts = struct.unpack(f'<{2 * count}{"f" if kind == "c8" else "d"}', data[10 + length:])
        return header['descr'], header['shape'], [complex(*pair) for pair in zip(parts[::2], parts[1::2])]
    values = struct.unpack(f'<{count}{FORMATS[kind]}', data[10 + length:])
    return header['descr'], header['shape'], list(values)

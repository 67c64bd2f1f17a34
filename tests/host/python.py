#!/usr/bin/env python3
"""runtime/python/red.py: on the simulator with Python's own buffers (and NumPy where it is installed), and on the fake driver with tensors that show
themselves through DLPack, in both forms, and through __cuda_array_interface__."""

import array
import ctypes
import os
import subprocess
import sys
import tempfile

SOURCE, BUILD = os.environ['RED_SOURCE_DIR'], os.environ['RED_BUILD_DIR']
if os.environ.get('RED_SANITIZED') == '1':
    print('a sanitized library cannot be loaded into Python')
    sys.exit(77)
CACHE = tempfile.TemporaryDirectory(prefix='red-python-')
os.environ.update(RED_CACHE_DIR=CACHE.name, RED_LIBCUDA=os.environ['RED_FAKE'], FAKE_CUDA='devices=2', LIBRED=BUILD)
sys.path.insert(0, os.path.join(SOURCE, 'runtime', 'python'))
import red  # noqa: E402

ROWSUM = 'kernel rowsum(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }'
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def raises(kind, text, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind as error:
        assert text in str(error), f"'{text}' is not in '{error}'"
        return error
    raise AssertionError(f'no {kind.__name__} with {text}')


def matrix(rows, columns, values=None, kind='f'):
    flat = array.array(kind, values if values is not None else range(rows * columns))
    return memoryview(flat).cast('B').cast(kind, [rows, columns])


# ---- The simulator


@test
def a_launch():
    rowsum = red.compile(ROWSUM, device='sim')
    B = array.array('f', [0] * 3)
    rowsum(matrix(3, 4), B)
    assert list(B) == [6, 22, 38], B
    bound = rowsum.bind(matrix(3, 4, [1] * 12), B)
    bound()
    assert list(B) == [4, 4, 4], B


@test
def a_file_and_what_is_told_about_it():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'k.red')
        with open(path, 'w', encoding='utf-8') as f:
            f.write(ROWSUM + ' kernel twice(s: f32, X: i32[n], r: size) -> (Y: f32[n]) { for i in n { Y[i] = f32(X[i]) * s + f32(r); } }')
        program = red.compile(path, device='sim')
    assert list(program.kernels) == ['rowsum', 'twice']
    raises(TypeError, '2 kernels, rowsum, twice', program, 1)
    twice = program['twice']
    assert sorted((p.name, p.kind, p.type) for p in twice.parameters) == [('X', 'input', 'i32'), ('Y', 'output', 'f32'), ('r', 'size', 'i64'),
                                                                        ('s', 'scalar', 'f32')]
    for arguments, named in [((1.5, array.array('i', [1, 2]), 3), {}), ((array.array('i', [1, 2]),), {'r': 3, 's': 1.5})]:
        Y = array.array('f', [0, 0])
        twice(*arguments, Y, **named)
        assert list(Y) == [4.5, 6], Y
    assert program.ptx.startswith('// red.plan')
    choice = program['rowsum'].choose(matrix(3, 4), array.array('f', [0] * 3))
    assert choice.launches == 1 and choice.grid[0] >= 1 and choice.entry.startswith('rowsum'), choice
    assert twice.schedules and program['rowsum'].requirements
    again = red.from_ptx(program.ptx, device='sim')
    B = array.array('f', [0] * 3)
    again['rowsum'](matrix(3, 4), B)
    assert list(B) == [6, 22, 38] and list(again.kernels) == list(program.kernels)
    assert raises(red.Error, '', red.from_ptx, '.version 7.0', device='sim').name == 'RED_ERROR_PLAN'
    program.close()
    program.close()


@test
def large_permutes_wait_for_their_sizes():
    swap = red.compile('kernel swap(X: f64[a, b, c]) -> (Y: f64[b, a, c]) { for i in a, j in b, k in c { Y[j, i, k] = X[i, j, k]; } }', device='sim')

    def schedule(a, b, c):
        X, Y = (memoryview(bytearray(8 * a * b * c)).cast('d', shape) for shape in ([a, b, c], [b, a, c]))
        choice = swap.choose(X, Y)
        assert swap.choose(X, Y).schedule == choice.schedule
        return choice.schedule

    assert schedule(21847, 64, 3) == 'units_words' and schedule(64, 65600, 1) == 'tile'  # where an axis of one iteration hides a transpose
    assert schedule(11, 64, 3).startswith('runs') and schedule(1024, 64, 64).startswith('runs')
    assert 'sizes_of_launch' not in swap.ptx

    turn = red.compile('kernel turn(X: f64[a, b]) -> (Y: f64[b, a]) { for j in b, i in a { Y[j, i] = X[i, j]; } }', device='sim')

    def turned(a, b):
        return turn.choose(*(memoryview(bytearray(8 * a * b)).cast('d', shape) for shape in ([a, b], [b, a]))).schedule

    # tiles that are full need no sizes; of a fourth tile for 10 of 202 elements nothing comes
    assert turned(256, 32768) == 'tile_large' and turned(202, 41208) == 'pack'


@test
def defines_and_type_parameters():
    copy = red.compile('kernel copy<T>(A: T[n]) -> (B: T[n]) { for i in n { B[i] = A[i]; } }', device='sim')
    for kind in 'bBhHiIqQfd':
        B = array.array(kind, [0, 0])
        copy(array.array(kind, [1, 2]), B)
        assert list(B) == [1, 2], kind
    fixed = red.compile(ROWSUM, device='sim', defines={'m': 4})
    raises(red.Error, '', fixed, matrix(3, 5), array.array('f', [0] * 3))


@test
def sums_that_do_not_depend_on_the_number_of_rows():
    columns = 40000
    row = [((j * 7919 + 31) % 1009) * 0.37 - 180.3 for j in range(columns)]
    found = {}
    for is_invariant in (False, True):
        rowsum = red.compile(ROWSUM, device='sim', batch_invariant=is_invariant)
        for n in (1, 9):
            A, B = matrix(n, columns, row * n), array.array('f', [0] * n)
            rowsum(A, B)
            found[is_invariant, n] = B[0]
            assert not is_invariant or set(B) == {B[0]}
        rowsum.close()
    assert found[True, 1] == found[True, 9] and found[False, 1] != found[False, 9], found


@test
def errors_of_programs_have_a_place():
    error = raises(red.Error, "unknown name 'x'", red.compile, 'kernel k(A: f32[n]) -> (B: f32[n]) { for i in n {\n  B[i] = x; } }', device='sim', name='k.red')
    assert error.name == 'RED_ERROR_COMPILE' and error.place == ('k.red', 2, 10), error.place


@test
def errors_of_arguments():
    rowsum, B = red.compile(ROWSUM, device='sim'), array.array('f', [7] * 3)
    assert raises(red.Error, 'rank', rowsum, B, B).name == 'RED_ERROR_RANK'
    assert raises(red.Error, '', rowsum, matrix(4, 4), B).name == 'RED_ERROR_SHAPE'
    assert raises(red.Error, '', rowsum, matrix(3, 4, kind='i'), B).name == 'RED_ERROR_TYPE'
    raises(TypeError, 'takes 2 tensors (A, B), not 1', rowsum, B)
    raises(TypeError, 'no parameter takes 5', rowsum, matrix(3, 4), 5, B)
    raises(TypeError, 'no parameter takes q', rowsum, matrix(3, 4), B, q=1)
    raises(ValueError, 'the tensor for B cannot be written', rowsum, matrix(3, 4), memoryview(B).toreadonly())
    raises(TypeError, "are unknown to red", rowsum, array.array('u', 'ab'), B)
    raises(ValueError, 'GPU memory', rowsum, Interface(8, (3, 4)), B)
    assert list(B) == [7] * 3


@test
def numbers_that_do_not_fit():
    program = red.compile('kernel k(A: f32[n], s: i8, u: u64, m: size) -> (B: f32[n]) { for i in n { B[i] = A[i] + f32(s) + f32(u) + f32(m); } }', device='sim')
    A, B = array.array('f', [1, 2]), array.array('f', [7, 7])
    for s, u, m, kind, text in [(2.5, 0, 1, TypeError, 's takes an integer, not 2.5'), (128, 0, 1, red.Error, '128 does not fit i8'), (2**64 - 1, 0, 1, OverflowError, 'does not fit i8'),
                                (0, -1, 1, OverflowError, 'u = -1 does not fit u64'), (0, 2**64, 1, OverflowError, 'does not fit u64'), (0, 0, 2**64 + 4, OverflowError, 'm = 18446744073709551620'),
                                (0, 0, 2.5, TypeError, 'm takes an integer'), (0, 0, -1, red.Error, 'negative')]:
        raises(kind, text, program, A, s, u, m, B)
    assert list(B) == [7, 7]
    program(A, -3.0, 0, 10, B)
    assert list(B) == [8, 9], B


@test
def scalars_of_the_type_of_the_tensors():
    scale = red.compile('kernel scale<T>(X: T[n], s: T) -> (Y: T[n]) { for i in n { Y[i] = X[i] * s; } }', device='sim')
    assert [p.type for p in scale['scale'].parameters] == [None] * 3
    for kind, s in [('i', -3), ('Q', 2**63 + 1), ('B', 5), ('f', 2.5), ('d', 3)]:
        Y = array.array(kind, [0, 0])
        scale(array.array(kind, [0, 1]), s, Y)
        assert list(Y) == [0, s], (kind, Y)
    raises(red.Error, 'is a float', scale, array.array('i', [1]), 2.5, array.array('i', [0]))


@test
def programs_that_are_closed():
    program, B = red.compile(ROWSUM, device='sim'), array.array('f', [0] * 3)
    kernel, bound, bind = program['rowsum'], program.bind(matrix(3, 4), B), program.bind
    program.close()
    raises(ValueError, 'closed', program, matrix(3, 4), B)
    for call, arguments in [(kernel, (matrix(3, 4), B)), (bind, (matrix(3, 4), B)), (bound, ()), (kernel.choose, (matrix(3, 4), B))]:
        raises(red.Error, 'the kernel is NULL', call, *arguments)
    assert list(B) == [0] * 3


@test
def children_of_fork():
    rowsum, B = red.compile(ROWSUM, device='sim'), array.array('f', [0] * 3)
    child = os.fork()
    if not child:
        status = 1
        try:
            status = 2 if raises(red.Error, 'before fork()', rowsum, matrix(3, 4), B).name != 'RED_ERROR_FORKED' else 3
            red.compile(ROWSUM, device='sim')(matrix(3, 4), B)
            status = 0 if list(B) == [6, 22, 38] else 4
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


@test
def texts_and_options_that_are_none():
    raises(ValueError, 'zero byte', red.compile, ROWSUM + '\0 }', device='sim')
    raises(ValueError, 'zero byte', red.compile, ROWSUM, device='sim', defines={'m': '3\0'})
    raises(ValueError, 'it is 0 to 3', red.compile, ROWSUM, device='sim', optimize=-1)
    raises(ValueError, 'it is 0 to 3', red.compile, ROWSUM, device='sim', optimize=2**32 - 1)


@test
def permute_and_reduce():
    X, Y = matrix(3, 4), matrix(4, 3)
    assert red.permute(X, (1, 0), out=Y) is Y and Y.tolist() == [[0, 4, 8], [1, 5, 9], [2, 6, 10], [3, 7, 11]]
    assert red.permute(X, (-1, -2), out=matrix(4, 3, [0] * 12)).tolist() == Y.tolist()
    for op, axes, expected in [('sum', 1, [6, 22, 38]), ('max', 0, [8, 9, 10, 11]), ('min', -1, [0, 4, 8])]:
        out = array.array('f', [0] * len(expected))
        assert list(red.reduce(op, X, axes, out=out)) == expected, (op, axes)
    assert list(red.reduce('sum', X, keepdims=True, out=matrix(1, 1, [0])).tolist()) == [[66]]
    raises(ValueError, 'no permutation', red.permute, X, (0, 0), out=Y)
    raises(ValueError, 'axes (2,)', red.reduce, 'sum', X, 2, out=Y)
    raises(TypeError, 'out=', red.permute, X, (1, 0))
    raises(red.Error, '', red.reduce, 'median', X, 1, out=array.array('f', [0] * 3))


@test
def numpy_arrays():
    try:
        import numpy as np
    except ImportError:
        return 'NumPy is not installed'
    rowsum = red.compile(ROWSUM, device='sim')
    A, B = np.arange(12, dtype='f4').reshape(3, 4), np.zeros(3, 'f4')
    rowsum(A, B)
    assert B.tolist() == [6, 22, 38]
    assert red.permute(A, (1, 0)).tolist() == A.T.tolist()
    assert red.permute(A.T, (1, 0)).tolist() == A.tolist()
    assert red.permute(A[::-1, ::2], (1, 0)).tolist() == A[::-1, ::2].T.tolist()
    assert red.reduce('sum', A.astype('f8'), keepdims=True).tolist() == [[66]]
    assert red.reduce('sum', A.astype('i1'), axes=1, dtype='i8').tolist() == [6, 22, 38]
    half = red.reduce('max', A.astype('f2'), axes=0)
    assert half.dtype == np.float16 and half.tolist() == [8, 9, 10, 11]
    raises(TypeError, 'the other byte order', rowsum, A.astype('>f4'), B)
    raises(ValueError, 'cannot be written', rowsum, A, np.broadcast_to(np.float32(0), 3))
    raises(TypeError, 'masked', rowsum, np.ma.masked_array(A, A > 3), B)
    assert red.reduce('sum', A, axes=np.int64(1)).tolist() == [6, 22, 38]
    scale = red.compile('kernel scale<T>(X: T[n], s: T) -> (Y: T[n]) { for i in n { Y[i] = X[i] * s; } }', device='sim')
    for kind, s in [('f4', np.float32(2.5)), ('f2', np.float16(2.5)), ('i8', np.int64(-3)), ('u1', np.uint8(200))]:
        X, Y = np.arange(2, dtype=kind), np.zeros(2, kind)
        scale(X, s, Y)
        assert Y.tolist() == [0, s], (kind, Y)
    try:
        import ml_dtypes
    except ImportError:
        return 'ml_dtypes is not installed'
    x = A.astype(ml_dtypes.bfloat16)
    assert red.permute(x, (1, 0)).tolist() == x.T.tolist()
    x = A.astype(ml_dtypes.float8_e4m3fn)
    assert red.permute(x, (1, 0)).view('u1').tolist() == x.T.view('u1').tolist()
    return None


# ---- Tensors on the fake GPU: 256-byte blocks of its memory


def device_memory(ordinal, values, kind='f'):
    """The address of a copy of the values."""
    lib, device = red.load(), red.open(f'cuda:{ordinal}')
    data = array.array(kind, values)
    address = ctypes.c_void_p()
    lib.red_alloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p)]
    lib.red_copy_in.argtypes = lib.red_copy_out.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    assert lib.red_alloc(device.handle, max(256, len(data) * data.itemsize), ctypes.byref(address)) == 0
    assert lib.red_copy_in(device.handle, address, data.buffer_info()[0], len(data) * data.itemsize) == 0
    return address.value


def read(ordinal, address, count, kind='f'):
    data = array.array(kind, [0] * count)
    assert red.load().red_copy_out(red.open(f'cuda:{ordinal}').handle, data.buffer_info()[0], address, count * data.itemsize) == 0
    return list(data)


class Interface:
    """A tensor of __cuda_array_interface__."""

    def __init__(self, address, shape, typestr='<f4', strides=None, read_only=False, **more):
        self.__cuda_array_interface__ = {'data': (address, read_only), 'shape': shape, 'typestr': typestr, 'strides': strides, 'version': 3, **more}


class Managed(ctypes.Structure):
    _fields_ = [('tensor', red._DLTensor), ('manager', ctypes.c_void_p), ('deleter', ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [('head', red._VersionedHead), ('tensor', red._DLTensor)]


class Dlpack:
    """A tensor of __dlpack__. It keeps the streams that it was asked for."""

    def __init__(self, address, shape, versioned, ordinal=0, device_type=2, flags=0, offset=0, code=2, bits=32, major=1):
        self.versioned, self.streams, self.place = versioned, [], (device_type, ordinal)
        self.shape = shape
        self.extents = (ctypes.c_int64 * len(shape))(*shape)
        self.managed = Versioned() if versioned else Managed()
        if versioned:
            self.managed.head.major, self.managed.head.flags = major, flags
        t = self.managed.tensor
        t.data, t.device_type, t.device_id, t.ndim, t.code, t.bits, t.lanes, t.shape = address - offset, device_type, ordinal, len(shape), code, bits, 1, self.extents
        t.byte_offset = offset
        self.name = b'dltensor_versioned' if versioned else b'dltensor'

    def __dlpack_device__(self):
        return self.place

    def capsule(self):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.managed), self.name, None)

    def __dlpack__(self, *, stream=None, **more):
        if more and not self.versioned:
            raise TypeError('max_version is unknown')
        assert not self.versioned or more.get('max_version', (0,))[0] >= 1
        self.streams.append(stream)
        return self.capsule()


@test
def both_forms_of_capsules():
    rowsum = red.compile(ROWSUM, device='cuda:0')
    for versioned in (False, True):
        for offset in (0, 64):
            a, b = device_memory(0, range(12)), device_memory(0, [0] * 3)
            A, B = Dlpack(a, (3, 4), versioned, offset=offset), Dlpack(b, (3,), versioned)
            rowsum(A, B)
            assert read(0, b, 3) == [6, 22, 38], (versioned, offset)
            assert A.streams == B.streams == [1], A.streams  # no stream is the legacy default stream, whose number is 1
    raises(ValueError, 'cannot be written', rowsum, A, Dlpack(b, (3,), True, flags=1))
    raises(ValueError, 'cannot be written', rowsum, A, Dlpack(b, (3,), True, flags=2))
    raises(TypeError, 'DLPack 2.0 is newer', rowsum, A, Dlpack(b, (3,), True, major=2))
    B.name = b'used_dltensor'
    raises(TypeError, 'not used yet', rowsum, A, B)


@test
def streams():
    lib, device = red.load(), red.open('cuda:0')
    rowsum = red.compile(ROWSUM, device='cuda:0')
    stream = ctypes.c_void_p()
    lib.red_stream_create.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]
    assert lib.red_stream_create(device.handle, ctypes.byref(stream)) == 0
    a, b = device_memory(0, range(12)), device_memory(0, [0] * 3)

    class OfTorch:
        cuda_stream = stream.value

    class OfCupy:
        ptr = stream.value

    class OfProtocol:
        def __cuda_stream__(self):
            return (0, stream.value)

    for given, number in [(None, 1), (0, 1), (1, 1), (2, 2), (stream.value, stream.value), (OfTorch(), stream.value), (OfCupy(), stream.value),
                          (OfProtocol(), stream.value)]:
        A, B = Dlpack(a, (3, 4), True), Dlpack(b, (3,), False)
        rowsum(A, B, stream=given)
        assert A.streams == [number] and B.streams == [number], (given, A.streams)
        device.synchronize(given)
    assert read(0, b, 3) == [6, 22, 38]


@test
def cuda_array_interface():
    rowsum = red.compile(ROWSUM, device='cuda:0')
    a, b = device_memory(0, range(12)), device_memory(0, [0] * 3)
    rowsum(Interface(a, (3, 4)), Interface(b, (3,)))
    assert read(0, b, 3) == [6, 22, 38]
    red.reduce('sum', Interface(a, (4, 3), strides=(4, 16)), 0, out=Interface(b, (3,)))
    assert read(0, b, 3) == [6, 22, 38]
    fake = ctypes.CDLL(os.environ['RED_FAKE'])
    fake.fake_count.argtypes, before = [ctypes.c_char_p], fake.fake_count(b'cuStreamSynchronize') + fake.fake_count(b'cuCtxSynchronize')
    rowsum(Interface(a, (3, 4), stream=1), Interface(b, (3,)))  # the same stream: nothing to wait for
    assert fake.fake_count(b'cuStreamSynchronize') + fake.fake_count(b'cuCtxSynchronize') == before
    rowsum(Interface(a, (3, 4), stream=2), Interface(b, (3,)))
    assert fake.fake_count(b'cuStreamSynchronize') + fake.fake_count(b'cuCtxSynchronize') == before + 1
    raises(ValueError, 'no multiples of the 4 bytes', rowsum, Interface(a, (3, 4), strides=(17, 4)), Interface(b, (3,)))
    raises(TypeError, 'masked', rowsum, Interface(a, (3, 4), mask=1), Interface(b, (3,)))
    raises(TypeError, 'gives no address', rowsum, Interface(a, (3, 4), data=None), Interface(b, (3,)))
    raises(ValueError, 'rank 2 with 1 strides', rowsum, Interface(a, (3, 4), strides=(4,)), Interface(b, (3,)))
    raises(TypeError, "type '<V3'", rowsum, Interface(a, (3, 4), '<V3'), Interface(b, (3,)))
    raises(ValueError, 'cannot be written', rowsum, Interface(a, (3, 4)), Interface(b, (3,), read_only=True))
    raises(ValueError, 'host memory', rowsum, matrix(3, 4), Interface(b, (3,)))


@test
def two_devices():
    rowsum = red.compile(ROWSUM, device='cuda:0')
    other = red.compile(ROWSUM, device='cuda:1')
    a, b = device_memory(1, range(12)), device_memory(1, [0] * 3)
    other(Dlpack(a, (3, 4), True, 1), Dlpack(b, (3,), True, 1))
    assert read(1, b, 3) == [6, 22, 38]
    error = raises(red.Error, 'cuda:1', rowsum, Dlpack(a, (3, 4), True, 1), Dlpack(b, (3,), True, 1))
    assert error.name == 'RED_ERROR_WRONG_DEVICE' and 'cuda:0' in str(error), str(error)
    red.reduce('max', Dlpack(a, (3, 4), False, 1), -1, out=Dlpack(b, (3,), True, 1))
    assert read(1, b, 3) == [3, 7, 11]


@test
def other_processes():
    """What a process without a library, or with another one, says."""
    code = 'import sys; sys.path.insert(0, sys.argv[1]); import red; red.load(sys.argv[2]); red.open("sim")'
    path = os.path.join(SOURCE, 'runtime', 'python')
    done = subprocess.run([sys.executable, '-c', code, path, BUILD], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([sys.executable, '-c', code, path, '/nowhere'], capture_output=True, text=True)
    assert done.returncode == 1 and '/nowhere' in done.stderr, done.stderr


def main():
    failed, skipped = 0, 0
    for function in TESTS:
        try:
            why = function()
        except Exception as error:  # pylint: disable=broad-except
            import traceback
            failed += 1
            print(f'FAILED {function.__name__}: {type(error).__name__}: {error}')
            traceback.print_exc(file=sys.stdout)
        else:
            if why:
                skipped += 1
                print(f'skipped {function.__name__}: {why}')
    print(f'{len(TESTS) - failed - skipped} passed, {failed} failed, {skipped} skipped')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())

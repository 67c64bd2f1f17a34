"""red from Python: compile small reductions and permutes, and launch them on the tensors of PyTorch, CuPy, JAX or NumPy.

    import red, torch
    rowsum = red.compile('kernel rowsum(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }', device='cuda:0')
    A, B = torch.rand(1000, 300, device='cuda'), torch.empty(1000, device='cuda')
    rowsum(A, B)                      # on PyTorch's current stream
    again = rowsum.bind(A, B)         # everything looked up once
    again()
    Y = red.permute(A, (1, 0))
    s = red.reduce('sum', A, axes=1)

It needs ctypes and libred alone. A tensor is anything with __dlpack__ (both forms of capsules), __cuda_array_interface__, __array_interface__ or Python's
buffer protocol; those in host memory run on the simulator (device='sim').

libred is found by load(path), else by $LIBRED (a file, or a folder that holds libred.so), else in the tree that this file is installed in, else by the
system's linker.

Streams. stream=None is the current stream of the library that the first tensor comes from (PyTorch, CuPy), else the legacy default stream. A stream may
also be an integer (a cudaStream_t), or an object with `cuda_stream` (PyTorch), `ptr` (CuPy) or `__cuda_stream__`. Launches are asynchronous: tensors
must live until they have ended, which the allocators of PyTorch and CuPy see to for tensors of the same stream.

Threads. Everything may be used from any thread.
"""

import collections
import ctypes
import ctypes.util
import functools
import glob
import os
import sys
import threading
from numbers import Integral, Real

__all__ = ['Error', 'Device', 'Program', 'Kernel', 'Parameter', 'Choice', 'compile', 'from_ptx', 'load', 'open', 'permute', 'reduce', 'version']

Parameter = collections.namedtuple('Parameter', 'name kind type rank is_strided shape')
Choice = collections.namedtuple('Choice', 'schedule entry launches grid block shared workspace notes')

TYPES = ('bool', 'i8', 'i16', 'i32', 'i64', 'u8', 'u16', 'u32', 'u64', 'f16', 'bf16', 'f32', 'f64', 'f8e4m3', 'f8e5m2', 'c64', 'c128')
BYTES = (1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 1, 1, 8, 16)
KINDS = ('input', 'output', 'scalar', 'size')
# Names of types in NumPy, PyTorch and JAX.
BY_NAME = {'bool': 0, 'int8': 1, 'int16': 2, 'int32': 3, 'int64': 4, 'uint8': 5, 'uint16': 6, 'uint32': 7, 'uint64': 8, 'float16': 9, 'bfloat16': 10,
           'float32': 11, 'float64': 12, 'float8_e4m3fn': 13, 'float8_e5m2': 14, 'complex64': 15, 'complex128': 16}
# Kinds and bytes of array interfaces, formats of the buffer protocol.
BY_TYPESTR = {'b1': 0, 'i1': 1, 'i2': 2, 'i4': 3, 'i8': 4, 'u1': 5, 'u2': 6, 'u4': 7, 'u8': 8, 'f2': 9, 'f4': 11, 'f8': 12, 'c8': 15, 'c16': 16}
BY_FORMAT = {'?': 0, 'e': 9, 'f': 11, 'd': 12, 'Zf': 15, 'Zd': 16}
SIGNED, UNSIGNED = {1: 1, 2: 2, 4: 3, 8: 4}, {1: 5, 2: 6, 4: 7, 8: 8}
MAX_RANK = 64


# ---- The library


class _Tensor(ctypes.Structure):
    _fields_ = [('data', ctypes.c_void_p), ('type', ctypes.c_int), ('rank', ctypes.c_int), ('shape', ctypes.POINTER(ctypes.c_int64)),
                ('strides', ctypes.POINTER(ctypes.c_int64))]


class _Value(ctypes.Union):
    _fields_ = [('pointer', ctypes.c_void_p), ('integer', ctypes.c_int64), ('number', ctypes.c_double)]


class _Argument(ctypes.Structure):
    _fields_ = [('kind', ctypes.c_int), ('value', _Value)]


ARGUMENT_TENSOR, ARGUMENT_DLTENSOR, ARGUMENT_INT, ARGUMENT_FLOAT, ARGUMENT_SIZE = range(5)


class _Options(ctypes.Structure):
    _fields_ = [('arch', ctypes.c_char_p), ('defines', ctypes.POINTER(ctypes.c_char_p)), ('define_count', ctypes.c_size_t),
                ('schedule_text', ctypes.c_char_p), ('schedule_file', ctypes.c_char_p), ('schedule', ctypes.c_char_p), ('optimize', ctypes.c_int),
                ('no_contract', ctypes.c_int), ('debug', ctypes.c_int), ('batch_invariant', ctypes.c_int)]


class _DeviceInfo(ctypes.Structure):
    _fields_ = [('name', ctypes.c_char_p), ('model', ctypes.c_char_p), ('arch', ctypes.c_int), ('multiprocessors', ctypes.c_int),
                ('shared', ctypes.c_int64), ('ordinal', ctypes.c_int), ('driver_version', ctypes.c_int)]


class _Parameter(ctypes.Structure):
    _fields_ = [('name', ctypes.c_char_p), ('kind', ctypes.c_int), ('type', ctypes.c_int), ('rank', ctypes.c_int), ('is_strided', ctypes.c_int),
                ('shape', ctypes.c_char_p)]


class _KernelInfo(ctypes.Structure):
    _fields_ = [('name', ctypes.c_char_p), ('parameter_count', ctypes.c_size_t), ('requirement_count', ctypes.c_size_t),
                ('schedule_count', ctypes.c_size_t)]


class _Choice(ctypes.Structure):
    _fields_ = [('schedule', ctypes.c_char_p), ('entry', ctypes.c_char_p), ('launches', ctypes.c_int), ('grid', ctypes.c_uint32 * 3),
                ('block', ctypes.c_uint32 * 3), ('shared', ctypes.c_uint32), ('workspace', ctypes.c_size_t), ('notes', ctypes.c_char * 512)]


_P, _S, _I, _Z = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_size_t
_O = ctypes.POINTER
# Functions of red.h: result and arguments.
_FUNCTIONS = {
    'red_error_name': (_S, [_I]), 'red_message': (_S, []), 'red_driver_error': (_I, []), 'red_place': (_I, [_O(_S), _O(_I), _O(_I)]),
    'red_version': (_S, []), 'red_open': (_I, [_S, _O(_P)]), 'red_describe_device': (_I, [_P, _O(_DeviceInfo)]),
    'red_synchronize': (_I, [_P, _P]), 'red_compile_text': (_I, [_P, _S, _S, _O(_Options), _O(_P)]),
    'red_compile_file': (_I, [_P, _S, _O(_Options), _O(_P)]), 'red_load': (_I, [_P, _S, _S, _Z, _O(_P)]), 'red_release': (None, [_P]), 'red_log': (_S, [_P]), 'red_ptx': (_S, [_P]),
    'red_kernel_count': (_Z, [_P]), 'red_kernel_at': (_P, [_P, _Z]), 'red_describe': (_I, [_P, _O(_KernelInfo)]),
    'red_describe_parameter': (_I, [_P, _Z, _O(_Parameter)]), 'red_describe_requirement': (_I, [_P, _Z, _O(_S)]),
    'red_describe_schedule': (_I, [_P, _Z, _O(_S), _O(_S)]), 'red_launch': (_I, [_P, _P, _O(_Argument), _Z]),
    'red_prepare': (_I, [_P, _P, _O(_Argument), _Z]), 'red_workspace_size': (_I, [_P, _O(_Argument), _Z, _O(_Z)]),
    'red_choose': (_I, [_P, _O(_Argument), _Z, _O(_Choice)]), 'red_permute': (_I, [_P, _P, _O(_Tensor), _O(_Tensor), _O(_I)]),
    'red_reduce': (_I, [_P, _P, _S, _O(_Tensor), _O(_Tensor), _O(_I), _I])}

_lock = threading.RLock()
_library = None


def _installed():
    """libred.so beside this file, which is PREFIX/share/red/python/red.py; None: it is not installed so."""
    prefix = os.path.abspath(os.path.join(os.path.dirname(__file__), '..', '..', '..'))
    found = [path for folder in ('lib', 'lib64', 'lib/*') for path in sorted(glob.glob(os.path.join(prefix, folder, 'libred.so.0')))]
    return found[0] if found else None


def load(path=None):
    """Loads libred from a file, or from a folder that holds libred.so; before anything else is called, and once."""
    global _library
    with _lock:
        if _library:
            if path:
                raise RuntimeError(f'libred is loaded already, from {_library._name}')
            return _library
        path = path or os.environ.get('LIBRED')
        if path and os.path.isdir(path):
            path = os.path.join(path, 'libred.so')
        path = path or _installed() or ctypes.util.find_library('red') or 'libred.so.0'
        library = ctypes.CDLL(os.fspath(path))
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        _library = library
        return library


class Error(Exception):
    """A call that failed. `name` is of red.h's table (RED_ERROR_SHAPE), `code` its number, `driver_error` the CUresult of RED_ERROR_DRIVER, `place` the
    (file, line, column) in a .red text, or None."""

    def __init__(self, code):
        library = load()
        super().__init__((library.red_message() or b'').decode(errors='replace'))
        self.code = code
        self.name = library.red_error_name(code).decode()
        self.driver_error = library.red_driver_error()
        file, line, column = ctypes.c_char_p(), ctypes.c_int(), ctypes.c_int()
        has_place = library.red_place(ctypes.byref(file), ctypes.byref(line), ctypes.byref(column))
        self.place = ((file.value or b'').decode(errors='replace'), line.value, column.value) if has_place else None


def _check(code):
    if code:
        raise Error(code)


def version():
    """The version of libred."""
    return load().red_version().decode()


def _text(value):
    return value.decode(errors='replace') if value else ''


# ---- Devices

_devices = {}


def _forget_devices():
    """A child of fork() cannot use its parent's devices: it opens its own."""
    global _lock
    _lock = threading.RLock()  # which another thread may have held
    _devices.clear()


os.register_at_fork(after_in_child=_forget_devices)


class Device:
    """A GPU ('cuda:0') or the simulator ('sim'). Made by open; lives as long as the process."""

    def __init__(self, name):
        self.handle = ctypes.c_void_p()
        _check(load().red_open(name and name.encode(), ctypes.byref(self.handle)))
        info = _DeviceInfo()
        _check(load().red_describe_device(self.handle, ctypes.byref(info)))
        self.name, self.model, self.arch = _text(info.name), _text(info.model), info.arch
        self.multiprocessors, self.shared, self.ordinal, self.driver_version = info.multiprocessors, info.shared, info.ordinal, info.driver_version

    def __repr__(self):
        return f'<red device {self.name}: {self.model}, sm_{self.arch}>'

    def synchronize(self, stream=None):
        """Waits until the stream has done all its work."""
        _check(load().red_synchronize(self.handle, _handle_of(stream)))


def open(name=None):  # pylint: disable=redefined-builtin
    """The device of a name; None or 'auto': what $RED_DEVICE says, else the first GPU, else the simulator. Always the same object for a name."""
    if isinstance(name, Device):
        return name
    name = 'auto' if name is None else str(name)
    with _lock:
        if name not in _devices:
            device = Device(name)
            _devices[name] = _devices.setdefault(device.name, device)
        return _devices[name]


# ---- Streams


def _handle_of(stream):
    """A stream as a number."""
    if stream is None:
        return 0
    for name in ('cuda_stream', 'ptr'):
        if hasattr(stream, name):
            return int(getattr(stream, name))
    if hasattr(stream, '__cuda_stream__'):
        return int(stream.__cuda_stream__()[1])
    return int(stream)


def _current_stream(tensor, ordinal):
    """The current stream of the library that the tensor comes from."""
    root = type(tensor).__module__.partition('.')[0]
    torch, cupy = sys.modules.get('torch'), sys.modules.get('cupy')
    if torch and isinstance(tensor, torch.Tensor):
        raw = getattr(torch._C, '_cuda_getCurrentRawStream', None)  # a tenth of the time of the public way
        return raw(ordinal) if raw else torch.cuda.current_stream(ordinal).cuda_stream
    if cupy and root == 'cupy':
        return cupy.cuda.get_current_stream().ptr
    return 0


def _dlpack_stream(handle):
    """The number that __dlpack__ wants: 1 is the legacy default stream, 2 the one of each thread, 0 is not allowed."""
    return handle or 1


# ---- Tensors


class _View:
    """A tensor as red sees it: the argument, and what must live as long."""

    __slots__ = ('kind', 'address', 'tensor', 'keep', 'is_read_only')

    def __init__(self, kind, address, tensor, keep, is_read_only=False):
        self.kind, self.address, self.tensor, self.keep, self.is_read_only = kind, address, tensor, keep, is_read_only


def _view(data, kind, shape, strides, keep, is_read_only=False):
    """A view of a plain description: strides in elements, or None."""
    rank = len(shape)
    if rank > MAX_RANK:
        raise ValueError(f'a tensor of rank {rank}; at most {MAX_RANK} are possible')
    if strides is not None and len(strides) != rank:
        raise ValueError(f'a tensor of rank {rank} with {len(strides)} strides')
    array = ctypes.c_int64 * rank
    shapes = array(*shape)
    tensor = _Tensor(data, kind, rank, shapes, array(*strides) if strides is not None else None)
    return _View(ARGUMENT_TENSOR, ctypes.addressof(tensor), tensor, keep, is_read_only)


def _in_elements(strides, kind, what):
    if strides is None:
        return None
    if any(s % BYTES[kind] for s in strides):
        raise ValueError(f'{what}: strides {tuple(strides)} in bytes are no multiples of the {BYTES[kind]} bytes of {TYPES[kind]}')
    return [s // BYTES[kind] for s in strides]


def _type_of_typestr(typestr, what):
    order, kind = typestr[0], BY_TYPESTR.get(typestr[1:])
    if kind is None:
        raise TypeError(f"{what}: elements of type '{typestr}' are unknown to red")
    if order == ('>' if sys.byteorder == 'little' else '<') and BYTES[kind] > 1:
        raise TypeError(f"{what}: elements of type '{typestr}' have the other byte order")
    return kind


def _from_interface(owner, interface):
    """__cuda_array_interface__ and __array_interface__: one form of description."""
    what = type(owner).__name__
    # NumPy's interface calls the types of ml_dtypes V2 and V1; their names say more.
    dtype = getattr(owner, 'dtype', None)
    kind = BY_NAME.get(getattr(dtype, 'name', None)) if interface['typestr'][1] == 'V' else None
    if kind is None:
        kind = _type_of_typestr(interface['typestr'], what)
    masked = sys.modules.get('numpy.ma')
    if interface.get('mask') is not None or (masked and isinstance(owner, masked.MaskedArray)):
        raise TypeError(f'{what}: masked arrays are not possible')
    if not isinstance(interface.get('data'), tuple):
        raise TypeError(f'{what}: its interface gives no address')
    data, is_read_only = interface['data']
    return _view(data, kind, interface['shape'], _in_elements(interface.get('strides'), kind, what), owner, is_read_only)


class _Buffer(ctypes.Structure):  # Py_buffer
    _fields_ = [('buf', ctypes.c_void_p), ('obj', ctypes.py_object), ('len', ctypes.c_ssize_t), ('itemsize', ctypes.c_ssize_t),
                ('readonly', ctypes.c_int), ('ndim', ctypes.c_int), ('format', ctypes.c_char_p), ('shape', ctypes.POINTER(ctypes.c_ssize_t)),
                ('strides', ctypes.POINTER(ctypes.c_ssize_t)), ('suboffsets', ctypes.POINTER(ctypes.c_ssize_t)), ('internal', ctypes.c_void_p)]


class _HeldBuffer:
    """A buffer that is released with this object."""

    def __init__(self, owner):
        strided_and_format = 0x0018 | 0x0004
        self.buffer = _Buffer()
        ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(owner), ctypes.byref(self.buffer), strided_and_format)
        self.is_held = True

    def __del__(self):
        if getattr(self, 'is_held', False):
            ctypes.pythonapi.PyBuffer_Release(ctypes.byref(self.buffer))


def _from_buffer(owner):
    held = _HeldBuffer(owner)
    buffer, what = held.buffer, type(owner).__name__
    letters = (buffer.format or b'B').decode()
    code = letters.lstrip('@=<') if sys.byteorder == 'little' else letters.lstrip('@=>')
    kind = BY_FORMAT.get(code)
    if kind is None and len(code) == 1 and code in 'bhilqn':
        kind = SIGNED.get(buffer.itemsize)
    elif kind is None and len(code) == 1 and code in 'BHILQN':
        kind = UNSIGNED.get(buffer.itemsize)
    if kind is None or BYTES[kind] != buffer.itemsize:
        raise TypeError(f"{what}: elements of format '{letters}' are unknown to red")
    strides = _in_elements(buffer.strides[:buffer.ndim] if buffer.strides else None, kind, what)
    shape = buffer.shape[:buffer.ndim] if buffer.ndim else ()
    return _view(buffer.buf, kind, shape, strides, (owner, held), bool(buffer.readonly))


# DLPack. The capsule is only looked into, and kept: whoever made it frees the tensor when the capsule goes.
class _DLTensor(ctypes.Structure):
    _fields_ = [('data', ctypes.c_void_p), ('device_type', ctypes.c_int32), ('device_id', ctypes.c_int32), ('ndim', ctypes.c_int32),
                ('code', ctypes.c_uint8), ('bits', ctypes.c_uint8), ('lanes', ctypes.c_uint16), ('shape', ctypes.POINTER(ctypes.c_int64)),
                ('strides', ctypes.POINTER(ctypes.c_int64)), ('byte_offset', ctypes.c_uint64)]


class _VersionedHead(ctypes.Structure):
    _fields_ = [('major', ctypes.c_uint32), ('minor', ctypes.c_uint32), ('manager', ctypes.c_void_p), ('deleter', ctypes.c_void_p),
                ('flags', ctypes.c_uint64)]


DL_CPU, DL_CUDA, DL_CUDA_HOST, DL_CUDA_MANAGED = 1, 2, 3, 13
DL_READ_ONLY, DL_IS_COPIED = 1, 2
DLPACK_MAJOR = 1


def _capsule_pointer(capsule, name):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(capsule, name)


def _is_capsule(capsule, name):
    valid = ctypes.pythonapi.PyCapsule_IsValid
    valid.restype, valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
    return bool(valid(capsule, name))


def _from_dlpack(owner, stream, on_gpu):
    number = _dlpack_stream(stream) if on_gpu else None
    try:
        capsule = owner.__dlpack__(stream=number, max_version=(DLPACK_MAJOR, 0))
    except TypeError:
        capsule = owner.__dlpack__(stream=number)
    flags = 0
    if _is_capsule(capsule, b'dltensor_versioned'):
        address = _capsule_pointer(capsule, b'dltensor_versioned')
        head = _VersionedHead.from_address(address)
        if head.major > DLPACK_MAJOR:
            raise TypeError(f'{type(owner).__name__}: DLPack {head.major}.{head.minor} is newer than red knows')
        flags = head.flags
        address += ctypes.sizeof(_VersionedHead)
    elif _is_capsule(capsule, b'dltensor'):
        address = _capsule_pointer(capsule, b'dltensor')
    else:
        raise TypeError(f'{type(owner).__name__}.__dlpack__ gives no tensor that was not used yet')
    tensor = _DLTensor.from_address(address)
    return _View(ARGUMENT_DLTENSOR, address, tensor, (owner, capsule), bool(flags & (DL_READ_ONLY | DL_IS_COPIED)))


_torch_types = {}


def _torch_type(dtype):
    if dtype not in _torch_types:
        name = str(dtype).partition('.')[2]
        if name not in BY_NAME:
            raise TypeError(f"PyTorch's type {dtype} is unknown to red")
        _torch_types[dtype] = BY_NAME[name]
    return _torch_types[dtype]


def _from_torch(tensor):
    if tensor.is_conj() or tensor.is_neg():
        raise TypeError('a PyTorch tensor with a pending conjugation or negation: resolve it first (resolve_conj, resolve_neg)')
    return _view(tensor.data_ptr(), _torch_type(tensor.dtype), tensor.shape, tensor.stride(), tensor)


def _is_torch(value):
    torch = sys.modules.get('torch')
    return torch is not None and isinstance(value, torch.Tensor)


def _ordinal_of(value):
    """The GPU that a tensor lies on; None: host memory, or not known."""
    if _is_torch(value):
        return value.get_device() if value.is_cuda else None
    if hasattr(value, '__dlpack_device__'):
        kind, ordinal = value.__dlpack_device__()
        return int(ordinal) if int(kind) in (DL_CUDA, DL_CUDA_MANAGED) else None
    device = getattr(value, 'device', None)
    return getattr(device, 'id', 0) if hasattr(value, '__cuda_array_interface__') else None


def _is_tensor(value):
    if isinstance(value, (bool, int, float)):
        return False
    if any(hasattr(value, name) for name in ('__dlpack__', '__cuda_array_interface__')) or _is_torch(value):
        return True
    if hasattr(value, '__array_interface__'):  # a scalar of NumPy has one too, and no memory to give
        numpy = sys.modules.get('numpy')
        return numpy is None or not isinstance(value, numpy.generic)
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


def _look(value, device, stream):
    """A tensor as a view. Where its data are still being made on another stream, waits for them."""
    on_gpu = device.ordinal >= 0
    if _is_torch(value):
        if value.is_cuda != on_gpu or (on_gpu and value.get_device() != device.ordinal):
            where = f'cuda:{value.get_device()}' if value.is_cuda else 'the host'
            raise ValueError(f'a tensor lies on {where}, the kernel is for {device.name}')
        return _from_torch(value)
    if on_gpu and hasattr(value, '__dlpack__'):
        return _from_dlpack(value, stream, True)
    if on_gpu and hasattr(value, '__cuda_array_interface__'):
        interface = value.__cuda_array_interface__
        producer = interface.get('stream')
        if producer is not None and producer != _dlpack_stream(stream):
            device.synchronize(producer)
        return _from_interface(value, interface)
    if not on_gpu and hasattr(value, '__array_interface__'):
        return _from_interface(value, value.__array_interface__)
    if not on_gpu and hasattr(value, '__dlpack__'):
        return _from_dlpack(value, stream, False)
    if not on_gpu and not hasattr(value, '__cuda_array_interface__'):
        return _from_buffer(value)
    raise ValueError(f'a {type(value).__name__} lies in {"host" if on_gpu else "GPU"} memory, the kernel is for {device.name}')


# ---- Programs


def _is_path(program):
    return isinstance(program, os.PathLike) or ('{' not in program and '\n' not in program and program.endswith('.red'))


def _encode(text):
    """A text or a path for libred, where a zero byte would end it."""
    if text is None:
        return None
    data = os.fspath(text).encode()
    if b'\0' in data:
        raise ValueError('a text for red has a zero byte in it')
    return data


def compile(program, *, device=None, name='<string>', defines=None, arch=None, schedule=None, schedule_text=None, schedule_file=None, optimize=None,
            contract=True, debug=False, batch_invariant=False):  # pylint: disable=redefined-builtin
    """Compiles a .red text, or the file of a name that ends with .red. defines={'m': 11, 'T': 'f16'} gives sizes and type parameters; `schedule` chooses
    one schedule by name; batch_invariant=True: how an output is summed depends neither on how many outputs there are nor on its place. Returns a Program, which can be called like its kernel where there is one."""
    device = open(device)
    texts = []
    for key, values in (defines or {}).items():
        texts += [_encode(f'{key}={value}') for value in (values if isinstance(values, (list, tuple)) else [values])]
    if optimize not in (None, 0, 1, 2, 3):
        raise ValueError(f'optimize is {optimize}; it is 0 to 3')
    options = _Options(_encode(arch), (ctypes.c_char_p * len(texts))(*texts), len(texts), _encode(schedule_text), _encode(schedule_file),
                       _encode(schedule), 0 if optimize is None else optimize + 1, not contract, bool(debug), bool(batch_invariant))
    handle = ctypes.c_void_p()
    if _is_path(program):
        _check(load().red_compile_file(device.handle, _encode(program), ctypes.byref(options), ctypes.byref(handle)))
    else:
        _check(load().red_compile_text(device.handle, _encode(name), _encode(program), ctypes.byref(options), ctypes.byref(handle)))
    return Program(device, handle)


def from_ptx(text, *, device=None, name='<ptx>'):
    """A Program from PTX that redc wrote, with its plan in it: nothing is compiled but by the driver."""
    device, data, handle = open(device), text.encode() if isinstance(text, str) else text, ctypes.c_void_p()
    _check(load().red_load(device.handle, _encode(name), data, len(data), ctypes.byref(handle)))
    return Program(device, handle)


class Program:
    """Compiled kernels: program['rowsum'], program.kernels. It stays loaded until close(), which must not come before its launches have ended."""

    def __init__(self, device, handle):
        library = load()
        self.device, self.handle = device, handle
        self.log = _text(library.red_log(handle))
        self.kernels = {}
        for i in range(library.red_kernel_count(handle)):
            kernel = Kernel(self, ctypes.c_void_p(library.red_kernel_at(handle, i)))
            self.kernels[kernel.name] = kernel
        if len(self.kernels) == 1:
            (only,) = self.kernels.values()
            self.bind, self.prepare, self.choose, self.workspace_size = only.bind, only.prepare, only.choose, only.workspace_size

    def __getitem__(self, name):
        return self.kernels[name]

    def __call__(self, *arguments, **options):
        if self.handle is None:
            raise ValueError('the program is closed')
        if len(self.kernels) != 1:
            raise TypeError(f'the program has {len(self.kernels)} kernels, {", ".join(self.kernels)}: take one, program[name]')
        (only,) = self.kernels.values()
        return only(*arguments, **options)

    @property
    def ptx(self):
        """The PTX, or None where a kernel is compiled at its launch only."""
        text = load().red_ptx(self.handle)
        return None if text is None else text.decode()

    def close(self):
        """Unloads the program. What is called of its kernels from then on is an Error."""
        handle, kernels, self.handle, self.kernels = self.handle, self.kernels, None, {}
        for kernel in kernels.values():
            kernel.handle.value = None  # in bound functions too
        if handle:
            load().red_release(handle)


class Kernel:
    """A kernel: call it with its tensors (inputs, then outputs) and scalars in the order of its declaration. Numbers are the scalars, then the sizes that a
    launch must give; both may be given by name."""

    def __init__(self, program, handle):
        library, info = load(), _KernelInfo()
        _check(library.red_describe(handle, ctypes.byref(info)))
        self.program, self.device, self.handle, self.name = program, program.device, handle, _text(info.name)
        self.parameters = []
        for i in range(info.parameter_count):
            p = _Parameter()
            _check(library.red_describe_parameter(handle, i, ctypes.byref(p)))
            kind = TYPES[p.type] if p.type < len(TYPES) else None
            self.parameters.append(Parameter(_text(p.name), KINDS[p.kind], kind, p.rank, bool(p.is_strided), _text(p.shape)))
        self._tensors = [p for p in self.parameters if p.kind in ('input', 'output')]
        self._numbers = [p for kind in ('scalar', 'size') for p in self.parameters if p.kind == kind]
        self._counts = (info.requirement_count, info.schedule_count)
        self._cache = threading.local()

    def __repr__(self):
        return f'<red kernel {self.name} on {self.device.name}>'

    @property
    def requirements(self):
        """What must hold of the sizes, as sentences."""
        out, texts = ctypes.c_char_p(), []
        for i in range(self._counts[0]):
            _check(load().red_describe_requirement(self.handle, i, ctypes.byref(out)))
            texts.append(_text(out.value))
        return texts

    @property
    def schedules(self):
        """(schedule, entry) in the order in which a launch tries them."""
        schedule, entry, found = ctypes.c_char_p(), ctypes.c_char_p(), []
        for i in range(self._counts[1]):
            _check(load().red_describe_schedule(self.handle, i, ctypes.byref(schedule), ctypes.byref(entry)))
            found.append((_text(schedule.value), _text(entry.value)))
        return found

    def _number(self, parameter, value):
        argument, kind = _Argument(), 'i64' if parameter.kind == 'size' else parameter.type
        if (kind is not None and kind[0] in 'bf' and kind != 'bool') or (kind is None and isinstance(value, Real) and not isinstance(value, Integral)):
            argument.kind, argument.value.number = ARGUMENT_FLOAT, float(value)
            return argument
        whole = int(value)
        if whole != value:
            raise TypeError(f'{self.name}: {parameter.name} takes an integer, not {value}')
        low, high = {'u64': (0, 2**64), None: (-2**63, 2**64)}.get(kind, (-2**63, 2**63))  # narrower types are for libred to say
        if not low <= whole < high:
            raise OverflowError(f'{self.name}: {parameter.name} = {whole} does not fit {kind or "64 bits"}')
        argument.kind = ARGUMENT_SIZE if parameter.kind == 'size' else ARGUMENT_INT
        argument.value.integer = whole - 2**64 if whole >= 2**63 else whole
        return argument

    def _arguments(self, arguments, named, stream):
        """The array for a launch, what must live as long as it is used, and the stream."""
        tensors = [a for a in arguments if _is_tensor(a)]
        numbers = [a for a in arguments if not _is_tensor(a)]
        if stream is None and tensors and self.device.ordinal >= 0:
            stream = _current_stream(tensors[0], self.device.ordinal)
        stream = _handle_of(stream)
        if len(tensors) != len(self._tensors):
            names = ', '.join(p.name for p in self._tensors)
            raise TypeError(f'{self.name} takes {len(self._tensors)} tensors ({names}), not {len(tensors)}')
        views = [_look(tensor, self.device, stream) for tensor in tensors]
        for view, parameter in zip(views, self._tensors):
            if view.is_read_only and parameter.kind == 'output':
                raise ValueError(f'{self.name}: the tensor for {parameter.name} cannot be written')
        given, named = [], dict(named)
        for parameter in self._numbers:
            if parameter.name in named:
                given.append(self._number(parameter, named.pop(parameter.name)))
            elif numbers:
                given.append(self._number(parameter, numbers.pop(0)))
            else:
                raise TypeError(f'{self.name}: {parameter.kind} {parameter.name} is missing')
        if numbers or named:
            extra = ', '.join([str(number) for number in numbers] + list(named))
            raise TypeError(f'{self.name}: no parameter takes {extra}')
        array = (_Argument * (len(views) + len(given)))()
        for i, view in enumerate(views):
            array[i].kind, array[i].value.pointer = view.kind, view.address
        for i, number in enumerate(given, len(views)):
            array[i] = number
        return array, views, stream

    def __call__(self, *arguments, stream=None, **named):
        """Launches, without waiting."""
        if not named and self._launch_again(arguments, stream):
            return
        array, views, handle = self._arguments(arguments, named, stream)
        _check(load().red_launch(self.handle, handle, array, len(array)))
        if not named and self.device.ordinal >= 0 and arguments and all(_is_torch(a) for a in arguments):
            self._remember(arguments, array, views)

    # PyTorch tensors of known types, shapes and strides: only their addresses are put into arguments that are there. A thread has its own.
    def _remember(self, arguments, array, views):
        known = self._cache.__dict__.setdefault('known', {})
        if len(known) >= 256:
            known.clear()
        launch = functools.partial(load().red_launch, self.handle)
        key = tuple([(a.dtype, a.shape, a.stride(), a.get_device()) for a in arguments])
        known[key] = (launch, array, len(array), [view.tensor for view in views])
        for view in views:
            view.keep = None

    def _launch_again(self, arguments, stream):
        known = self._cache.__dict__.get('known')
        if not known:
            return False
        try:
            found = known.get(tuple([(a.dtype, a.shape, a.stride(), a.get_device()) for a in arguments]))
        except (AttributeError, TypeError):
            return False
        if found is None or any(a.is_neg() or a.is_conj() for a in arguments):
            return False
        launch, array, count, tensors = found
        for tensor, argument in zip(tensors, arguments):
            tensor.data = argument.data_ptr()
        handle = _current_stream(arguments[0], self.device.ordinal) if stream is None else _handle_of(stream)
        error = launch(handle, array, count)
        if error:
            raise Error(error)
        return True

    def bind(self, *arguments, stream=None, **named):
        """A function without arguments that launches the kernel on these tensors and this stream (the one that is current now), as cheaply as there is."""
        array, views, handle = self._arguments(arguments, named, stream)
        _check(load().red_prepare(self.handle, handle, array, len(array)))
        # A function object of its own, without the conversions that argtypes cost.
        function = type(load().red_launch)(('red_launch', load()))
        function.restype = ctypes.c_int
        launch = functools.partial(function, self.handle, ctypes.c_void_p(handle), ctypes.byref(array), ctypes.c_size_t(len(array)))

        def bound():
            error = launch()
            if error:
                raise Error(error)

        bound.keep = (views, array)
        return bound

    def prepare(self, *arguments, stream=None, **named):
        """Does all that a first launch does, but the launch. Before a capture of the stream."""
        array, _views, handle = self._arguments(arguments, named, stream)
        _check(load().red_prepare(self.handle, handle, array, len(array)))

    def choose(self, *arguments, **named):
        """What a launch would do, as a Choice."""
        array, _views, _handle = self._arguments(arguments, named, 0)
        c = _Choice()
        _check(load().red_choose(self.handle, array, len(array), ctypes.byref(c)))
        return Choice(_text(c.schedule), _text(c.entry), c.launches, tuple(c.grid), tuple(c.block), c.shared, c.workspace, _text(c.notes))

    def workspace_size(self, *arguments, **named):
        """Bytes of workspace that a launch needs."""
        array, _views, _handle = self._arguments(arguments, named, 0)
        size = ctypes.c_size_t()
        _check(load().red_workspace_size(self.handle, array, len(array), ctypes.byref(size)))
        return size.value


# ---- Common cases


def _device_of(tensor):
    ordinal = _ordinal_of(tensor)
    return open('sim' if ordinal is None else f'cuda:{ordinal}')


def _as_tensor(view, what):
    """A view as red_tensor: what red_permute and red_reduce take."""
    if view.kind == ARGUMENT_TENSOR:
        return view.tensor
    t = view.tensor
    codes = {0: SIGNED, 1: UNSIGNED, 2: {2: 9, 4: 11, 8: 12}, 4: {2: 10}, 5: {8: 15, 16: 16}, 6: {1: 0}, 8: {1: 13}, 10: {1: 13}, 12: {1: 14}}
    kind = codes.get(t.code, {}).get(t.bits / 8)
    if kind is None or t.lanes != 1:
        raise TypeError(f'{what}: DLPack type {t.code}, {t.bits} bits, {t.lanes} lanes is unknown to red')
    return _Tensor(t.data and t.data + t.byte_offset, kind, t.ndim, t.shape, t.strides)


def _new_like(X, shape, dtype):
    """An empty tensor of X's library, on X's device."""
    root = type(X).__module__.partition('.')[0]
    dtype = getattr(X, 'dtype', None) if dtype is None else dtype
    if _is_torch(X):
        return sys.modules['torch'].empty(shape, dtype=dtype, device=X.device)
    if root == 'cupy':
        with X.device:
            return sys.modules['cupy'].empty(shape, dtype)
    if root == 'numpy':
        return sys.modules['numpy'].empty(shape, dtype)
    raise TypeError(f'no empty {type(X).__name__} can be made: give the result as out=')


def _shape_of(X):
    for name in ('__cuda_array_interface__', '__array_interface__'):
        if hasattr(X, name):
            return tuple(getattr(X, name)['shape'])
    if hasattr(X, 'shape'):
        return tuple(X.shape)
    tensor = _from_buffer(X).tensor
    return tuple(tensor.shape[:tensor.rank])


def _common(X, out, stream):
    device = _device_of(X)
    if stream is None and device.ordinal >= 0:
        stream = _current_stream(X, device.ordinal)
    stream = _handle_of(stream)
    x, y = _look(X, device, stream), _look(out, device, stream)
    if y.is_read_only:
        raise ValueError('the result cannot be written')
    return device, stream, x, y


def permute(X, perm, out=None, stream=None):
    """Y = X with dimension perm[d] as dimension d, as numpy.transpose has it, but with its elements moved. Returns Y."""
    perm = tuple(int(p) for p in perm)
    shape = _shape_of(X)
    if sorted(p % len(shape) if -len(shape) <= p < len(shape) else p for p in perm) != list(range(len(shape))):
        raise ValueError(f'{perm} is no permutation of {len(shape)} dimensions')
    perm = [p % len(shape) for p in perm]
    if out is None:
        out = _new_like(X, tuple(shape[p] for p in perm), None)
    device, stream, x, y = _common(X, out, stream)
    _check(load().red_permute(device.handle, stream, ctypes.byref(_as_tensor(x, 'X')), ctypes.byref(_as_tensor(y, 'out')),
                              (ctypes.c_int * len(perm))(*perm)))
    return out


def reduce(op, X, axes=None, keepdims=False, out=None, dtype=None, stream=None):
    """The reduction of X over axes (a number, or several; None: all) by 'sum', 'prod', 'min', 'max', 'any', 'all', 'and', 'or', 'xor' or 'mean'. `dtype`
    is the type of the result, X's where it is None. Returns it."""
    shape = _shape_of(X)
    axes = range(len(shape)) if axes is None else (axes,) if hasattr(axes, '__index__') else axes
    axes = [int(a) for a in axes]
    if any(not -len(shape) <= a < len(shape) for a in axes) or len({a % len(shape) for a in axes}) != len(axes):
        raise ValueError(f'axes {tuple(axes)} of {len(shape)} dimensions')
    if out is None:
        gone = {a % len(shape) for a in axes}
        kept = [1 if d in gone else extent for d, extent in enumerate(shape) if keepdims or d not in gone]
        out = _new_like(X, tuple(kept), dtype)
    device, stream, x, y = _common(X, out, stream)
    _check(load().red_reduce(device.handle, stream, op.encode(), ctypes.byref(_as_tensor(x, 'X')), ctypes.byref(_as_tensor(y, 'out')),
                             (ctypes.c_int * len(axes))(*axes), len(axes)))
    return out

#!/usr/bin/env python3
"""Reductions over threads on a GPU: each form beside the others, with the shared memory, registers and occupancy of each.

  tests/bench/allreduce.py --redc build/redc                       # 1048576 rows of 2 to 1024, f32 and i32, one and many groups a block
  tests/bench/allreduce.py --redc build/redc --extents 11,33 --types f32 --groups 1,8
  tests/bench/allreduce.py --redc build/redc --list                # what would run; needs no GPU
  tests/bench/allreduce.py --redc build/redc --ptxas               # the same table without a GPU: registers and shared memory by ptxas -v
  tests/bench/allreduce.py --redc build/redc --redc other/redc --pack cases.json    # what would run, compiled, with the forms that either compiler takes
  tests/bench/allreduce.py --from cases.json                       # on a machine with a GPU alone

A case is `B[i] = sum(j in m) A[i, j]`, rows on thread.y and blocks, j whole on thread.x (or j on thread.y and rows on thread.x: "stride"), under
allreduce j by auto, shuffle and tree. Needs Python, libcuda.so.1 and redc. The forms of a shape take turns on the same data, in L2 where they fit: --repeat
rounds, of which each launches a kernel --batch times between two events; the table has the median of the rounds. Every result is checked.
--decide adds the lines of passes/allreduce_measured.def, which set the table of costs, passes/allreduce_cost.def. The whole takes a minute.
"""
import argparse
import ctypes
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

ATTRIBUTE_SHARED, ATTRIBUTE_REGISTERS = 1, 4
MAJOR, MINOR = 75, 76


def program(type_, form, groups, is_strided):
    row, member = ("x", "y") if is_strided else ("y", "x")
    return (f"kernel rows(A: {type_}[n, m]) -> (B: {type_}[n]) {{ for i in n {{ B[i] = sum(j in m) A[i, j]; }} }}\n"
            f"schedule rows {{ split i by {groups} -> io, ii;  bind io -> block.x;  bind ii -> thread.{row};  bind j -> thread.{member};"
            f"  allreduce j by {form}; }}\n")


class Case:
    def __init__(self, rows, extent, type_, groups, is_strided, form, **packed):
        self.rows, self.extent, self.type, self.groups, self.is_strided, self.form = rows, extent, type_, groups, is_strided, form
        self.time = self.registers = self.shared = self.blocks = None
        self.__dict__.update(packed)

    def compile(self, redc, arch, folder):
        """False where the form is refused."""
        path = os.path.join(folder, "k.red")
        with open(path, "w") as f:
            f.write(program(self.type, self.form, self.groups, self.is_strided))
        options = [redc, path, "-D", f"n={self.rows}", "-D", f"m={self.extent}", f"--arch={arch}"]
        done = subprocess.run([*options, "-o", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            return False
        self.ptx = done.stdout
        told = subprocess.run([*options, "--explain"], stdout=subprocess.PIPE, text=True).stdout
        self.taken = re.search(r"form +(.*)", told).group(1)
        self.cycles = int(re.search(r"cost +(\d+)", told).group(1))
        launch = re.search(r"red.plan launch (\w+) grid \[(\d+)\] \[1\] \[1\] block (\d+) (\d+) (\d+) shared \[\]", self.ptx)
        self.entry, self.grid, self.block = launch.group(1), int(launch.group(2)), [int(x) for x in launch.groups()[2:]]
        return True

    def shape(self):
        return self.type, self.extent, self.groups, self.is_strided

    def decided(self):
        """The line of passes/allreduce_measured.def."""
        lanes = self.block[1 if self.is_strided else 0]
        return f"M({self.extent}, {self.groups}, {str(self.is_strided).lower()}, {FORMS.get(self.taken, 'OTHER')}, {lanes}, {round(100 * self.time)})"

    def row(self):
        show = lambda x, f: "" if x is None else f.format(x)  # noqa: E731
        bandwidth = None if self.time is None else (self.rows * (self.extent + 1) * 4) / self.time / 1000
        return (f"| {self.type} | {self.extent} | {self.groups}{' stride' if self.is_strided else ''} | {self.form} | {self.taken} | "
                f"{'x'.join(map(str, self.block))} | {self.cycles} | {show(self.time, '{:.2f}')} | {show(bandwidth, '{:.0f}')} | "
                f"{show(self.registers, '{}')} | {show(self.shared, '{}')} | {show(self.blocks, '{}')} |")


FORMS = {"none: one thread a group": "COPY", "shuffle xor": "XOR", "shuffle down, each combine guarded": "GUARDED", "redux.sync": "REDUX",
         "shuffles in each warp, shared words for each warp, shuffles again": "WARPS", "tree in shared memory": "TREE",
         "a shared word a thread, one barrier, read one after the other": "SERIAL"}
HEAD = ("| type | extent | groups | by | form | block | cycles in the table | us | GB/s | registers | shared bytes | blocks an sm |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")


class Gpu:
    def __init__(self):
        self.cuda = ctypes.CDLL(os.environ.get("RED_LIBCUDA", "libcuda.so.1"))
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, 256, device)
        self.name = name.value.decode()
        numbers = [ctypes.c_int(), ctypes.c_int()]
        for number, which in zip(numbers, (MAJOR, MINOR)):
            self.call("cuDeviceGetAttribute", ctypes.byref(number), which, device)
        self.sm = 10 * numbers[0].value + numbers[1].value
        self.events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for event in self.events:
            self.call("cuEventCreate", ctypes.byref(event), 0)

    def call(self, name, *args):
        error = getattr(self.cuda, name)(*args)
        if error:
            raise RuntimeError(f"{name}: error {error}")

    def allocate(self, words, pattern):
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(4 * words))
        self.call("cuMemsetD32_v2", pointer, ctypes.c_uint(pattern), ctypes.c_size_t(words))
        return pointer

    def load(self, case):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(case.ptx.encode()))
        self.call("cuModuleGetFunction", ctypes.byref(function), module, case.entry.encode())
        for key, which in (("shared", ATTRIBUTE_SHARED), ("registers", ATTRIBUTE_REGISTERS)):
            value = ctypes.c_int()
            self.call("cuFuncGetAttribute", ctypes.byref(value), which, function)
            setattr(case, key, value.value)
        blocks, threads = ctypes.c_int(), case.block[0] * case.block[1] * case.block[2]
        self.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(blocks), function, threads, ctypes.c_size_t(0))
        case.blocks = blocks.value
        return module, function

    def launch(self, case, function, arguments, times):
        for _ in range(times):
            self.call("cuLaunchKernel", function, case.grid, 1, 1, *case.block, 0, None, arguments, None)

    def measure(self, cases, repeat, batch):
        """Cases of one shape, in turn; sets their times."""
        first = cases[0]
        one = 0x3F800000 if first.type == "f32" else 1
        a, b = self.allocate(first.rows * first.extent, one), self.allocate(first.rows, 0xCCCCCCCC)
        arguments = (ctypes.c_void_p * 2)(ctypes.addressof(a), ctypes.addressof(b))
        loaded = [(case, *self.load(case)) for case in cases]
        times = {id(case): [] for case in cases}
        for case, _, function in loaded:
            self.call("cuMemsetD32_v2", b, ctypes.c_uint(0xCCCCCCCC), ctypes.c_size_t(first.rows))
            self.launch(case, function, arguments, 1)
            out = ((ctypes.c_float if case.type == "f32" else ctypes.c_int32) * case.rows)()
            self.call("cuMemcpyDtoH_v2", out, b, ctypes.c_size_t(4 * case.rows))
            if set(out) != {case.extent}:
                raise RuntimeError(f"{case.row()}: wrong")
        for turn in range(repeat):
            for k in range(len(loaded)):
                case, _, function = loaded[(k + turn) % len(loaded)]
                self.launch(case, function, arguments, 2)
                self.call("cuEventRecord", self.events[0], None)
                self.launch(case, function, arguments, batch)
                self.call("cuEventRecord", self.events[1], None)
                self.call("cuEventSynchronize", self.events[1])
                ms = ctypes.c_float()
                self.call("cuEventElapsedTime", ctypes.byref(ms), self.events[0], self.events[1])
                times[id(case)].append(1000 * ms.value / batch)
        for case in cases:
            case.time = statistics.median(times[id(case)])
        for pointer in (a, b):
            self.call("cuMemFree_v2", pointer)
        for _, module, _ in loaded:
            self.call("cuModuleUnload", module)


def ask_ptxas(case, arch, folder):
    path = os.path.join(folder, "k.ptx")
    with open(path, "w") as f:
        f.write(case.ptx)
    said = subprocess.run(["ptxas", "-v", f"-arch={arch}", path, "-o", os.devnull], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    case.registers = int(re.search(r"Used (\d+) registers", said).group(1))
    shared = re.search(r"(\d+) bytes smem", said)
    case.shared = int(shared.group(1)) if shared else 0


def compiled(a, shape):
    """The cases of a shape: one of each form and block."""
    taken = set()
    type_, extent, groups, is_strided = shape
    with tempfile.TemporaryDirectory() as folder:
        for redc, form in itertools.product(a.redc or ["build/redc"], ("auto", "shuffle", "tree")):
            case = Case(a.rows, extent, type_, groups, is_strided, form)
            if not case.compile(redc, a.arch, folder) or (case.taken, *case.block) in taken:
                continue
            taken.add((case.taken, *case.block))
            if a.ptxas:
                ask_ptxas(case, a.arch, folder)
            yield case


def shapes(a):
    for type_ in a.types.split(","):
        for extent in map(int, a.extents.split(",")):
            for groups in ([int(g) for g in a.groups.split(",")] if a.groups else sorted({1, max(1, 256 // extent)})):
                for is_strided in (False, True) if groups > 1 else (False,):
                    if groups * extent <= 1024:
                        yield type_, extent, groups, is_strided


def cases(a):
    """Lists of the cases of one shape each."""
    if a.from_:
        with open(a.from_) as f:
            every = [Case(type_=packed.pop("type"), **packed) for packed in json.load(f)]
        for _, same in itertools.groupby(every, Case.shape):
            yield list(same)
    else:
        for shape in shapes(a):
            yield list(compiled(a, shape))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--redc", action="append", help="build/redc when not given; of several, the forms that any of them takes")
    p.add_argument("--rows", type=int, default=1048576)
    p.add_argument("--extents", default="2,4,8,11,16,20,31,32,33,48,64,100,128,256,512,1000,1024")
    p.add_argument("--types", default="f32,i32")
    p.add_argument("--groups", help="rows a block; 1 and what makes about 256 threads when not given")
    p.add_argument("--arch", help="the GPU's when not given; sm_90 without one")
    p.add_argument("--repeat", type=int, default=9, help="rounds")
    p.add_argument("--batch", type=int, default=5, help="launches between two events")
    p.add_argument("--list", action="store_true")
    p.add_argument("--ptxas", action="store_true")
    p.add_argument("--pack", metavar="FILE")
    p.add_argument("--from", dest="from_", metavar="FILE")
    p.add_argument("--decide", action="store_true")
    a = p.parse_args()
    gpu = None if a.list or a.ptxas or a.pack else Gpu()
    if gpu:
        print(f"{gpu.name}, sm_{gpu.sm}; {a.rows} rows; medians of {a.repeat} rounds of {a.batch} launches\n")
    a.arch = a.arch or (f"sm_{min(gpu.sm, 90)}" if gpu else "sm_90")
    print(HEAD)
    every = []
    for same in cases(a):
        if gpu:
            gpu.measure(same, a.repeat, a.batch)
        for case in same:
            print(case.row(), flush=True)
        every += same
    if a.pack:
        with open(a.pack, "w") as f:
            json.dump([case.__dict__ for case in every], f)
    if a.decide:
        print("\n" + "\n".join(case.decided() for case in every if case.type == "f32" and case.groups > 1))
    return 0


if __name__ == "__main__":
    sys.exit(main())

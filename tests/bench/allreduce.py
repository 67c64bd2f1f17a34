#!/usr/bin/env python3
"""Reductions over threads on a GPU: each form beside the others, with the shared memory, registers and occupancy of each.

  tests/bench/allreduce.py --redc build/redc                       # 1048576 rows of 2 to 1024, f32 and i32, one and many groups a block
  tests/bench/allreduce.py --redc build/redc --extents 11,33 --types f32 --groups 1,8
  tests/bench/allreduce.py --redc build/redc --list                # what would run; needs no GPU
  tests/bench/allreduce.py --redc build/redc --ptxas               # the same table without a GPU: registers and shared memory by ptxas -v

A case is `B[i] = sum(j in m) A[i, j]`, rows on thread.y and blocks, j whole on thread.x (or j on thread.y and rows on thread.x: "stride"), under
allreduce j by auto, shuffle and tree. Needs Python, redc and libcuda.so.1. Times are medians of --repeat launches behind --warm ones, by events,
of data in L2 where they fit; every result is checked. The times set the table of costs, passes/allreduce_cost.def.
"""
import argparse
import ctypes
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
    def __init__(self, a, extent, type_, groups, is_strided, form):
        self.rows, self.extent, self.type, self.groups, self.is_strided, self.form = a.rows, extent, type_, groups, is_strided, form
        self.redc, self.arch = a.redc, a.arch
        self.time = self.registers = self.shared = self.blocks = None

    def compile(self, folder):
        """False where the form is refused."""
        path = os.path.join(folder, "k.red")
        with open(path, "w") as f:
            f.write(program(self.type, self.form, self.groups, self.is_strided))
        options = [self.redc, path, "-D", f"n={self.rows}", "-D", f"m={self.extent}", f"--arch={self.arch}"]
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

    def row(self):
        show = lambda x, f: "" if x is None else f.format(x)  # noqa: E731
        bandwidth = None if self.time is None else (self.rows * (self.extent + 1) * 4) / self.time / 1000
        return (f"| {self.type} | {self.extent} | {self.groups}{' stride' if self.is_strided else ''} | {self.form} | {self.taken} | "
                f"{'x'.join(map(str, self.block))} | {self.cycles} | {show(self.time, '{:.2f}')} | {show(bandwidth, '{:.0f}')} | "
                f"{show(self.registers, '{}')} | {show(self.shared, '{}')} | {show(self.blocks, '{}')} |")


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

    def measure(self, case, warm, repeat):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        one = 0x3F800000 if case.type == "f32" else 1
        a, b = self.allocate(case.rows * case.extent, one), self.allocate(case.rows, 0xCCCCCCCC)
        self.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(case.ptx.encode()))
        self.call("cuModuleGetFunction", ctypes.byref(function), module, case.entry.encode())
        values = {}
        for key, which in (("shared", ATTRIBUTE_SHARED), ("registers", ATTRIBUTE_REGISTERS)):
            value = ctypes.c_int()
            self.call("cuFuncGetAttribute", ctypes.byref(value), which, function)
            values[key] = value.value
        blocks, threads = ctypes.c_int(), case.block[0] * case.block[1] * case.block[2]
        self.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(blocks), function, threads, ctypes.c_size_t(0))
        case.shared, case.registers, case.blocks = values["shared"], values["registers"], blocks.value
        arguments = (ctypes.c_void_p * 2)(ctypes.addressof(a), ctypes.addressof(b))
        times = []
        for i in range(warm + repeat):
            self.call("cuEventRecord", self.events[0], None)
            self.call("cuLaunchKernel", function, case.grid, 1, 1, *case.block, 0, None, arguments, None)
            self.call("cuEventRecord", self.events[1], None)
            self.call("cuEventSynchronize", self.events[1])
            ms = ctypes.c_float()
            self.call("cuEventElapsedTime", ctypes.byref(ms), self.events[0], self.events[1])
            times.append(1000 * ms.value)
        case.time = statistics.median(times[warm:])
        out = ((ctypes.c_float if case.type == "f32" else ctypes.c_int32) * case.rows)()
        self.call("cuMemcpyDtoH_v2", out, b, ctypes.c_size_t(4 * case.rows))
        wrong = sum(x != case.extent for x in out)
        for pointer in (a, b):
            self.call("cuMemFree_v2", pointer)
        self.call("cuModuleUnload", module)
        if wrong:
            raise RuntimeError(f"{case.row()}: {wrong} of {case.rows} rows are wrong")


def ask_ptxas(case, folder):
    path = os.path.join(folder, "k.ptx")
    with open(path, "w") as f:
        f.write(case.ptx)
    said = subprocess.run(["ptxas", "-v", f"-arch={case.arch}", path, "-o", os.devnull], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    case.registers = int(re.search(r"Used (\d+) registers", said).group(1))
    shared = re.search(r"(\d+) bytes smem", said)
    case.shared = int(shared.group(1)) if shared else 0


def cases(a):
    for type_ in a.types.split(","):
        for extent in map(int, a.extents.split(",")):
            for groups in ([int(g) for g in a.groups.split(",")] if a.groups else sorted({1, max(1, 256 // extent)})):
                for is_strided in (False, True) if groups > 1 else (False,):
                    if groups * extent > 1024:
                        continue
                    taken = set()
                    for form in ("auto", "shuffle", "tree"):
                        case = Case(a, extent, type_, groups, is_strided, form)
                        with tempfile.TemporaryDirectory() as folder:
                            if not case.compile(folder) or (case.taken, *case.block) in taken:
                                continue
                            taken.add((case.taken, *case.block))
                            if a.ptxas:
                                ask_ptxas(case, folder)
                        yield case


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--redc", default="build/redc")
    p.add_argument("--rows", type=int, default=1048576)
    p.add_argument("--extents", default="2,4,8,11,16,20,31,32,33,48,64,100,128,256,512,1000,1024")
    p.add_argument("--types", default="f32,i32")
    p.add_argument("--groups", help="rows a block; 1 and what makes about 256 threads when not given")
    p.add_argument("--arch", help="the GPU's when not given; sm_90 without one")
    p.add_argument("--warm", type=int, default=5)
    p.add_argument("--repeat", type=int, default=21)
    p.add_argument("--list", action="store_true")
    p.add_argument("--ptxas", action="store_true")
    a = p.parse_args()
    gpu = None if a.list or a.ptxas else Gpu()
    if gpu:
        print(f"{gpu.name}, sm_{gpu.sm}; {a.rows} rows; medians of {a.repeat} launches\n")
    a.arch = a.arch or (f"sm_{min(gpu.sm, 90)}" if gpu else "sm_90")
    print(HEAD)
    for case in cases(a):
        if gpu:
            gpu.measure(case, a.warm, a.repeat)
        print(case.row(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

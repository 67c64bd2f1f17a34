#!/usr/bin/env python3
"""Does pass `prove` notice? Breaks the program that reductions over threads became, one place at a time, and asks.

    tests/mutation.py --redc build/redc                 # a short sample
    tests/mutation.py --redc build/redc --all           # every mutant of every kernel
    tests/mutation.py --redc build/redc --only 100/1/x  # of one, by extent/groups/axes or name

Kernels: reductions over a spread of extents, groups and subsets of thread axes (see sweep.py), with the result in one thread or in
all and in a loop, by shuffles, redux.sync, words read in a row and by the tree; and programs of several reductions. Each mask, offset, barrier, number in a condition or index and identity of the IR
behind pass `barriers` is changed in turn. A mutant is
    rejected    by prove, or by the verifier
    identical   its PTX is that of the unchanged program
    different   it writes other values in the simulator
    equal       it writes the same: sums of random data over the whole range of their type, so that no input can be left out or counted
                twice unseen (an odd lane takes a copy, a guard that lets lanes through that nothing reads); listed with --verbose
    reported    the simulator finds a fault that prove did not
    surviving   it writes the same values where the data could not tell; listed
The last two make the exit status 1. Of operators whose result does not depend on every input (max, and, any ...), whose programs are
the same but for the operator, only masks, barriers and identities are changed.
"""
import argparse
import collections
import concurrent.futures
import os
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sweep  # noqa: E402

# (extent, groups, axes, (operator, type), form, result in every thread)
KERNELS = [
    (11, 1, "x", ("sum", "f32"), "", False), (32, 1, "x", ("sum", "u32"), "", False), (100, 1, "x", ("sum", "i32"), "", False),
    (8, 3, "x", ("sum", "i32"), "", True), (48, 1, "x", ("min", "i32"), "tree", False), (96, 1, "x", ("sum", "f32"), "", True),
    (24, 1, "xy", ("sum", "i32"), "", True), (5, 3, "x", ("max", "i32"), "", False), (64, 2, "x", ("sum", "f32"), "", True),
    (90, 1, "x", ("argmax", "f32"), "", False), (1, 5, "x", ("sum", "i32"), "", False), (2, 1, "x", ("prod", "u64"), "", False),
    (3, 2, "y", ("sum", "f32"), "", False), (7, 5, "y", ("max", "f32"), "", True), (16, 2, "y", ("xor", "u32"), "", False),
    (13, 1, "xyz", ("sum", "i32"), "", False), (30, 1, "xz", ("min", "i64"), "", True), (31, 1, "x", ("and", "u16"), "", True),
    (33, 1, "x", ("or", "i16"), "", False), (33, 1, "x", ("sum", "f64"), "", True), (56, 1, "x", ("sum", "i32"), "", False),
    (72, 2, "x", ("any", "bool"), "", False), (127, 1, "x", ("all", "bool"), "", False), (128, 3, "x", ("max", "i8"), "", True),
    (160, 5, "x", ("min", "u8"), "", False), (192, 1, "xy", ("fmax", "f32"), "", False), (255, 1, "x", ("sum", "i32"), "", True),
    (256, 1, "xyz", ("sum", "f32"), "", True), (300, 1, "x", ("pair", "i32"), "", False), (512, 2, "x", ("sum", "i32"), "", False),
    (1000, 1, "x", ("max", "f32"), "", False), (1024, 1, "x", ("sum", "i32"), "", True), (19, 2, "yz", ("sum", "i32"), "tree", False),
    (64, 1, "x", ("sum", "f32"), "tree", True), (40, 3, "x", ("argmin", "i32"), "tree", False), (10, 5, "z", ("sum", "f32"), "tree", True),
]
# The same for sm_90, where integers of at most 32 bits go through redux.sync.
REDUX = [(32, 1, "x", ("sum", "i32"), "", False), (20, 1, "x", ("sum", "u32"), "", True), (100, 1, "x", ("sum", "i32"), "", False),
         (256, 1, "x", ("sum", "u32"), "", True), (64, 2, "x", ("xor", "u32"), "", False), (160, 3, "x", ("max", "i8"), "", True),
         (96, 1, "x", ("and", "u16"), "", False), (1024, 1, "x", ("sum", "i32"), "", False), (128, 1, "x", ("any", "bool"), "", False)]
# Words read one after the other, and warps that hold lanes of several groups.
SPREAD = [(6, 32, "y", ("sum", "f32"), "", False), (6, 32, "y", ("sum", "i32"), "", True), (16, 8, "y", ("sum", "i32"), "", False),
          (64, 16, "y", ("sum", "u32"), "", True), (96, 8, "y", ("sum", "i32"), "shuffle", False), (40, 8, "y", ("sum", "f32"), "", True),
          (64, 4, "y", ("min", "i32"), "", False)]
KERNELS = KERNELS[:7] + [k + ("sm_90",) for k in REDUX[:3]] + SPREAD[:2] + KERNELS[7:] + [k + ("sm_90",) for k in REDUX[3:]] + SPREAD[2:]
# Programs of their own: (name, text, operator)
BLOCK_ROWS = "schedule k { bind i -> block.x; bind j -> thread.x; %s }"
PROGRAMS = [
    ("segments", "kernel k(A: i32[16, 9, 8]) -> (B: i32[16, 9]) { for i in 16, q in 0..min(i / 2 + 1, 9) { B[i, q] = sum(j in 8) A[i, q, j]; } }\n"
                 "schedule k { bind i -> thread.y; bind j -> thread.x; }", ("sum", "i32")),
    ("segments at a stride", "kernel k(A: i32[8, 5, 4]) -> (B: i32[8, 5]) { for i in 8, q in 0..min(i / 2 + 1, 5) { let s = sum(j in 4) A[i, q, j]; B[i, q] = s; } }\n"
                             "schedule k { bind i -> thread.x; bind j -> thread.y; }", ("sum", "i32")),
    ("together", "kernel k(A: i32[200]) -> (B: i32[1], V: i32[1], P: i32[200]) { let s = sum(j in 200) A[j]; let t = xor(j in 200) A[j]; B[0] = s + t; "
                 "let u = sum(j in 200) (A[j] ^ s); for j in 200 { P[j] = u; } V[0] = u; }\nschedule k { bind j -> thread.x; }", ("sum", "i32")),
    ("together by trees", "kernel k(A: i32[80]) -> (B: i32[80], V: i32[80]) { let s = sum(j in 80) A[j]; let t = xor(j in 80) A[j]; for j in 80 { B[j] = s; V[j] = t; } }\n"
                          "schedule k { bind j -> thread.x; allreduce s.j by tree; allreduce t.j by tree; }", ("sum", "i32")),
    ("in order", "ordered reducer affine(a: u32, b: u32) { identity (1, 0); combine(f, g) { (f.a * g.a, f.b * g.a + g.b) } }\n"
                 "kernel k(A: u32[70]) -> (B: u32[1], V: u32[1]) { (B[0], V[0]) = affine(j in 70) (A[j] | 1, A[j] >> 3); }\n"
                 "schedule k { bind j -> thread.x; allreduce j by tree; }", ("sum", "u32")),
    ("in a loop", "kernel k(A: u32[5, 64]) -> (B: u32[5, 64]) { for q in 5 { let s = sum(j in 64) A[q, j]; let t = sum(j in 64) (A[q, j] ^ s); let u = sum(j in 64) (A[q, j] ^ t); "
                  "for j in 64 { B[q, j] = u; } } }\nschedule k { bind j -> thread.x; }", ("sum", "u32")),
]
SHORT = 14
LINEAR = ("sum", "xor", "pair")
NUMBER = r"(-?\d+):([iu]\d+)"


def program(kernel):
    extent, groups, axes, operator, form, in_all = kernel[:6]
    text = sweep.program(extent, groups, axes, operator, form=form)
    if not in_all:
        return text
    # in every thread, and in a loop of three rounds: for q in 3 { let s = op(..) A[q, ..]; for .. { B[q, ..] = s; } }
    m = re.match(r"kernel k\(A: (\w+)\[(.*?)\]\) -> \(B: .*?\) \{ (?:for (.*?) \{ )?B\[.*?\] = (.*?);", text)
    type_, dims, outer, call = m.groups()
    call = call.replace("A[", "A[q, ")
    inner, place = re.search(r"\((r. in .*?)\) A\[(.*?)\]", call).groups()
    loops = "q in 3" + (", " + outer if outer else "")
    body = f"for {loops} {{ let s = {call}; for {inner} {{ B[{place}] = s; }} }}"
    return f"kernel k(A: {type_}[3, {dims}]) -> (B: {type_}[3, {dims}]) {{ {body} }}\n" + text[text.index("schedule k"):]


def run(args, timeout=60):
    done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)
    return done.returncode, done.stdout.decode(errors="replace")


def code(ptx):
    """PTX without comments and line tables."""
    return re.sub(r"//[^\n]*|\n\s*\.(loc|file)\b[^\n]*", "", ptx)


class Subject:
    """A kernel, its IR and what it computes."""

    def __init__(self, redc, kernel, folder):
        self.redc, self.folder = redc, folder
        is_own = len(kernel) == 3
        self.operator = kernel[2] if is_own else kernel[3]
        self.arch = "--arch=" + (kernel[6] if len(kernel) > 6 else "sm_75")
        self.name = kernel[0] if is_own else f"{kernel[0]}/{kernel[1]}/{kernel[2]} {kernel[3][0]} {kernel[3][1]} {kernel[4]}{' all' if kernel[5] else ''} {self.arch}"
        source = os.path.join(folder, "k.red")
        with open(source, "w") as f:
            f.write(kernel[1] if is_own else program(kernel))
        status, output = run([redc, source, self.arch, "--stop-after=barriers", "--emit=ir", "-o", os.path.join(folder, "k.ir")])
        if status:
            raise RuntimeError(f"{self.name}: {output}")
        with open(os.path.join(folder, "k.ir")) as f:
            self.ir = f.read()
        self.data = [self.arguments(seed) for seed in (1, 2)]
        self.outputs = [i for i, (name, _, _) in enumerate(re.findall(r"tensor (\w+): (\w+)\[(.*?)\]", self.ir)) if name != "A"]
        self.ptx = None
        kind, self.values = self.try_ir("base", self.ir)
        if kind != "ran":
            raise RuntimeError(f"{self.name}: the unchanged program is {kind}: {self.values}")

    def arguments(self, seed):
        """Random over the whole range; where the operator is not linear, all near its identity, which a wrong identity then beats."""
        (operator, of), out = self.operator, []
        some = f"(i * 7 + {seed}) % 13"
        top = {"u8": 240, "i64": 9223372036854775000, "f32": 7, "i32": 2147483600}.get(of, 0)
        data = {"min": f"{top} + {some}", "argmin": f"{top} + {some}", "max": f"{some} - 120", "fmax": f"{some} - 120", "argmax": f"{some} - 120",
                "and": "65535", "or": "0", "any": "i < 0", "all": "i >= 0", "prod": f"1 + {some}", "pair": f"{some} * 2 + 1"}.get(operator, f"rand({seed})")
        for name, type_, dims in re.findall(r"tensor (\w+): (\w+)\[(.*?)\]", self.ir):
            shape = ",".join(re.findall(r"(\d+):i64", dims)) or "1"
            out += ["--arg", f"{type_}[{shape}]={data if name == 'A' else 'const(0)'}"]
        return out

    def try_ir(self, name, text):
        """('rejected', why), ('identical', ''), ('reported', what) or ('ran', values)."""
        ir, ptx = (os.path.join(self.folder, f"{name}.{suffix}") for suffix in ("ir", "ptx"))
        with open(ir, "w") as f:
            f.write(text)
        status, output = run([self.redc, ir, self.arch, "-o", ptx])
        if status not in (0, 1):
            return "broken", output
        if status:
            return "rejected", output
        with open(ptx) as f:
            made = code(f.read())
        if self.ptx is None:
            self.ptx = made
        elif made == self.ptx:
            return "identical", ""
        values = b""
        for seed, arguments in enumerate(self.data):
            files = [os.path.join(self.folder, f"{name}.{i}.npy") for i in self.outputs]
            out = [a for i, path in zip(self.outputs, files) for a in ("--out", f"{i}={path}")]
            status, output = run([self.redc, "check", ptx, "--grid", "1", f"--seed={seed}", "--jobs=1", *arguments, *out])
            if "takes another number of arguments" in output or "of 'parameter " in output:  # it lost its tensors, or left them
                return "different", output
            if status:
                return "reported", output
            for path in files:
                with open(path, "rb") as f:
                    values += f.read()
        return "ran", values


def mutants(ir, is_linear):
    """(place, what, text): every mutant of the body of the first entry."""
    lines = ir.split("\n")
    begin = next(i for i, line in enumerate(lines) if line.strip() == "body {")
    end = next(i for i in range(begin, len(lines)) if lines[i] == "    }")
    for i in range(begin + 1, end):
        line = re.sub(r" @\d+:\d+.*", "", lines[i])

        def with_line(new):
            return "\n".join(lines[:i] + ([] if new is None else [new]) + lines[i + 1:])

        if line.strip() == "barrier" or line.strip().startswith("syncwarp"):
            yield i, "dropped", with_line(None)
        if re.search(r"load_flat\(A|store_flat [BVP]\b|for q", line):  # device memory is not what prove looks at
            continue
        spans = [m for m in re.finditer(NUMBER, line)]
        for m in spans:
            value, type_ = int(m.group(1)), m.group(2)
            is_mask = type_ == "u32" and (value > 32 or re.search(r"(shfl_\w+|redux_\w+|syncwarp)[( ]+$", line[:m.start()]) or re.search(r"mask|segment", line.split(":")[0]))
            if is_mask:
                new = {value & (value - 1), value << 1 & 0xffffffff, value >> 1, value | value + 1, value ^ 1 << value.bit_length() - 1 if value else 1, 0xffffffff, 0}
                new = {x & 0xffffffff for x in new}
            elif re.search(r"let partial\w* .*select\(inside, \w+, $", line[:m.start()]):  # an identity
                if value == -1:  # of an index, which loses every tie whatever it is
                    continue
                new = {value // 2, 0, 1, 2} if value != 0 else {1, 2}
            elif not is_linear:
                continue
            else:
                new = {value + 1, value - 1, value * 2, value // 2, 0, 1024}
                if type_[0] == "u":
                    new = {x for x in new if x >= 0}
            for x in sorted(new - {value}):
                yield i, f"{value} -> {x}", with_line(lines[i][:m.start()] + f"{x}:{type_}" + lines[i][m.end():])
        for m in re.finditer(r"(?<=, )(-?(?:\d+\.\d+(?:e-?\d+)?|inf)):(f32|f64)(?=\))|(?<=, )(true|false)(?=\))", line):
            text = m.group(0)
            new = text.replace("true", "false") if "true" in text else text.replace("false", "true") if "false" in text else "0.25:" + m.group(2)
            yield i, f"{text} -> {new}", with_line(lines[i][:m.start()] + new + lines[i][m.end():])


def test_kernel(redc, kernel, most):
    """Counts, and lists of what survived and of what only the simulator reports."""
    counts, survivors, equal, reported = collections.Counter(), [], [], []
    with tempfile.TemporaryDirectory(prefix="red-mutation-") as folder:
        subject = Subject(redc, kernel, folder)
        every = list(mutants(subject.ir, subject.operator[0] in LINEAR))
        if most and len(every) > most:
            every = random.Random(1).sample(every, most)
        for place, what, text in every:
            kind, found = subject.try_ir("mutant", text)
            if kind == "ran":
                kind = "different" if found != subject.values else "equal" if subject.operator[0] in LINEAR else "surviving"
            counts[kind] += 1
            where = f"{subject.name}: {what} in:{subject.ir.splitlines()[place].split(' @')[0].rstrip()}"
            if kind == "surviving":
                survivors.append(where)
            if kind == "equal":
                equal.append(where)
            if kind in ("reported", "broken"):
                reported.append(where.strip() + "\n    " + found.strip().split("\n")[0])
    return counts, survivors, equal, reported


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--redc", default="build/redc")
    p.add_argument("--all", action="store_true")
    p.add_argument("--only")
    p.add_argument("--most", type=int, help="mutants a kernel; a sample of 25 without --all")
    p.add_argument("--verbose", action="store_true")
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    a = p.parse_args()
    redc = os.path.abspath(a.redc)
    chosen = [k for k in KERNELS + PROGRAMS if a.only in (k[0], f"{k[0]}/{k[1]}/{k[2]}")] if a.only else KERNELS + PROGRAMS if a.all else KERNELS[:SHORT] + PROGRAMS
    most = a.most if a.most is not None else 0 if a.all or a.only else 25
    counts, survivors, equal, reported = collections.Counter(), [], [], []
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for one, left, same, found in pool.map(lambda k: test_kernel(redc, k, most), chosen):
            counts += one
            survivors += left
            equal += same
            reported += found
    for what, lines in (("equal", equal if a.verbose else []), ("surviving", survivors), ("reported", reported)):
        for line in lines:
            print(f"{what:10}{line}")
    total = sum(counts.values())
    print(f"{len(chosen)} kernels, {total} mutants: " + ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())))
    return 1 if not total or survivors or reported else 0


if __name__ == "__main__":
    sys.exit(main())

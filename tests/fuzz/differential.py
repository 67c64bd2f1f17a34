#!/usr/bin/env python3
"""Differential fuzzing: random kernels under random schedules, run in the simulator, against the reference.

  tests/fuzz/differential.py --redc build/redc                 # 200 cases of seed 1
  tests/fuzz/differential.py --redc build/redc --seed 7 --count 5000 --jobs 2
  tests/fuzz/differential.py --redc build/redc --count 5000 --device=cuda --jobs 16    # on a machine with a GPU
  tests/fuzz/differential.py --redc build/redc --endless       # until a fault is found or it is stopped
  tests/fuzz/differential.py --redc build/redc --one 12345     # prints one case and runs it

A case is a kernel, a schedule, sizes and arguments, made from one number. redc may refuse the schedule (exit 1 with a message); it
may not fail otherwise, and what runs must agree with the reference with every check of the simulator on, at two levels of
optimisation, from two starting seeds of the lanes' order. Where nvcc is found (--nvcc N), every N-th case also runs from the
CUDA text, bit for bit. A failing case is reduced (directives, statements, sizes) and printed as a .red file with the command that shows it.
"""
import argparse
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import batch  # noqa: E402

INTS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
FLOATS = ["f32", "f64"]
STORED = ["f16", "bf16"]


class Axis:
    def __init__(self, name, extent, parallel, depends=False):
        self.name, self.extent, self.parallel, self.depends = name, extent, parallel, depends


class Case:
    """One program; directives are kept apart so that they can be dropped one by one."""

    def __init__(self, number):
        self.number = number
        self.r = random.Random(number)
        self.sizes, self.inputs, self.outputs, self.scalars, self.prelude = {}, [], [], [], []
        self.body, self.directives, self.when = [], [], ""
        self.make()

    # --- Kernels ---------------------------------------------------------------------------------------------

    def size(self, name, choices):
        self.sizes[name] = self.r.choice(choices)
        return name

    def tensor(self, name, type_, dims):
        strided = " strided" if self.r.random() < 0.1 else ""
        self.inputs.append((name, type_, dims, strided))
        return name

    def computed(self, type_):
        return "f32" if type_ in STORED else type_

    def reducers(self, type_):
        if type_ == "bool":
            return ["any", "all"]
        if type_ in INTS:
            return ["sum", "prod", "min", "max", "and", "or", "xor"]
        return ["sum", "min", "max", "fmin", "fmax"]

    def value(self, access, type_):
        """An expression of the element's type."""
        r, t = self.r, self.computed(type_)
        if t == "bool" or r.random() < 0.5:
            return access
        other = r.choice(["2", "3", access])
        if t in FLOATS:
            return r.choice([f"({access} * {other})", f"({access} + 0.5)", f"max({access}, 0.25)", f"({access} > 0.0 ? {access} : -{access})",
                             f"abs({access})", f"({access} - 1.5)"])
        return r.choice([f"({access} + {other})", f"({access} * {other})", f"({access} ^ {other})", f"({access} / {other})", f"({access} % 5)",
                         f"({access} >> 1)", f"max({access}, 3)", f"({access} < 7 ? {access} : 1)"])

    def reduction(self, axes, operand, type_, extra=""):
        t = self.computed(type_)
        name = self.r.choice(self.reducers(t))
        init = ""
        if self.r.random() < 0.15 and t != "bool":
            init = f"; init = {'1.5' if t in FLOATS else '3'}"
        binder = ", ".join(f"{a} in {e}" for a, e in axes)
        return f"{name}({binder}{extra}{init}) {operand}"

    def make(self):
        r = self.r
        small, reduced = [1, 2, 3, 4, 5, 7, 8, 13, 16, 33], [1, 2, 3, 5, 8, 11, 16, 31, 32, 33, 48, 64, 70, 100, 129]
        type_ = r.choice(["f32"] * 4 + ["i32"] * 3 + FLOATS + INTS + STORED + ["bool"])
        rank = r.choice([0, 1, 1, 1, 2, 2, 3])
        out_axes = [(a, self.size(s, small)) for a, s in zip("ikl", "npq")][:rank]
        red_axes = [(a, self.size(s, reduced if i == 0 else [1, 2, 3, 5, 8]))
                    for i, (a, s) in enumerate(zip("jh", "mt"))][:r.choice([1, 1, 1, 2])]
        out_type = self.computed(type_) if r.random() < 0.8 or type_ not in STORED else type_
        index = [a for a, _ in out_axes]
        order = index + [a for a, _ in red_axes]
        if r.random() < 0.4:
            r.shuffle(order)
        extent = dict(out_axes + red_axes)
        self.tensor("A", type_, [extent[a] for a in order])
        access = f"A[{', '.join(order)}]"
        self.all_axes = [Axis(a, self.sizes[s], True) for a, s in out_axes] + [Axis(a, self.sizes[s], False) for a, s in red_axes]
        target = f"B[{', '.join(index)}]"
        dims = [s for _, s in out_axes]
        kind = r.choice(["sum", "sum", "sum", "two", "mean", "arg", "map", "guard", "fold", "triangle", "tuple", "user"])
        if type_ == "bool" and kind in ("two", "mean", "arg", "map", "fold", "tuple", "user"):
            kind = "sum"
        if kind == "arg":
            if len(red_axes) == 2:
                kind = "sum"
            else:
                self.outputs = [("V", self.computed(type_), dims), ("P", "i64", dims)]
                i = ", ".join(index)
                statements = [f"(V[{i}], P[{i}]) = {r.choice(['argmax', 'argmin'])}(j in m) ({access}, j);"]
        if kind == "map":
            self.outputs = [("B", out_type, [extent[a] for a in index + [a for a, _ in red_axes]])]
            self.all_axes = [Axis(a.name, a.extent, True) for a in self.all_axes]
            every = index + [a for a, _ in red_axes]
            statements = [f"B[{', '.join(every)}] = {self.value(access, type_)};"]
            out_axes = out_axes + red_axes
        elif kind != "arg":
            self.outputs = [("B", out_type, dims)]
        value = self.value(access, type_)
        t = self.computed(type_)
        if kind == "sum":
            statements = [f"{target} = {self.reduction(red_axes, value, type_)};"]
        elif kind == "guard":
            test = r.choice([f"{red_axes[0][0]} % 3 != 1", f"{red_axes[0][0]} < 9"] + ([f"{red_axes[0][0]} <= {index[0]}"] if index else []))
            statements = [f"{target} = {self.reduction(red_axes, value, type_, ' if ' + test)};"]
            if index and r.random() < 0.5:
                statements = [f"if {index[0]} % 2 == 0 {{ {statements[0]} }}"]
        elif kind == "triangle":
            if not index or len(red_axes) == 2:
                statements = [f"{target} = {self.reduction(red_axes, value, type_)};"]
            else:
                bound = f"0..min({index[0]} + 1, m)"
                self.all_axes[-1].depends = True
                statements = [f"{target} = {self.reduction([(red_axes[0][0], bound)], value, type_)};"]
        elif kind == "fold":
            op = r.choice(["+=", "*=", "min=", "max="])
            statements = [f"{target} {op} {self.reduction(red_axes, value, type_)};"]
        elif kind == "mean":
            self.scalars.append(("alpha", t))
            statements = [f"let s = {self.reduction(red_axes, value, type_)};", f"{target} = s * alpha;"]
        elif kind == "two":
            statements = [f"let s = {self.reduction(red_axes, value, type_)};",
                          f"let u = {self.reduction(red_axes, '(' + value + (' - s' if t in FLOATS or t[0] == 'i' else ' ^ s') + ')', type_)};",
                          f"{target} = u + s;"]
        elif kind == "tuple":
            statements = [f"let (s, u) = {r.choice(['sum', 'max', 'min'])}({', '.join(f'{a} in {e}' for a, e in red_axes)}) ({access}, {value});",
                          f"{target} = s - u;"]
        elif kind == "user":
            self.prelude.append(f"reducer pair(a: {t}, b: {t}) {{ identity (0, 0); combine(x, y) {{ let s = x.a + y.a; (s, x.b + y.b) }} "
                                f"update(x, v) {{ (x.a + v, x.b + v * v) }} }}")
            statements = [f"let (s, u) = pair({', '.join(f'{a} in {e}' for a, e in red_axes)}) {value};", f"{target} = s + u;"]
        self.statements = statements
        self.loops = out_axes
        self.schedule()

    # --- Schedules ---------------------------------------------------------------------------------------------

    def schedule(self):
        """Directives that are plausible; redc decides whether they are legal."""
        r = self.r
        axes = [Axis(a.name, a.extent, a.parallel, a.depends) for a in self.all_axes]
        free_threads, free_blocks, threads = ["x", "y", "z"], ["x", "y", "z"], 1
        r.shuffle(free_threads)
        fresh = 0
        if r.random() < 0.12:
            return
        for _ in range(r.randrange(1, 9)):
            candidates = [a for a in axes if a.extent is not None]
            if not candidates:
                break
            a = r.choice(candidates)
            action = r.choice(["split", "split", "thread", "thread", "thread", "block", "unroll", "into", "vectorize", "reorder", "fuse"])
            if action in ("split", "into"):
                factor = r.choice([2, 3, 4, 5, 8, 16, 32])
                o, i = Axis(f"x{fresh}", None, a.parallel, a.depends), Axis(f"y{fresh}", None, a.parallel)
                fresh += 1
                if action == "split":
                    o.extent, i.extent = -(-a.extent // factor), factor
                    self.directives.append(f"split {a.name} by {factor} -> {o.name}, {i.name};")
                else:
                    o.extent, i.extent = factor, -(-a.extent // factor)
                    self.directives.append(f"split {a.name} into {factor} -> {o.name}, {i.name};")
                at = axes.index(a)
                axes[at:at + 1] = [o, i]
            elif action == "thread" and free_threads and threads * a.extent <= 1024:
                threads *= a.extent
                self.directives.append(f"bind {a.name} -> thread.{free_threads.pop()};")
                a.extent = None
            elif action == "block" and free_blocks and a.parallel:
                self.directives.append(f"bind {a.name} -> block.{free_blocks.pop(0)};")
                a.extent = None
            elif action == "unroll":
                self.directives.append(f"unroll {a.name}{r.choice(['', ' by 2', ' by 4'])};")
                a.extent = None
            elif action == "vectorize" and a.extent <= 8:
                self.directives.append(f"vectorize {a.name};")
                a.extent = None
            elif action == "reorder" and len(axes) > 1:
                some = r.sample(axes, r.randrange(2, len(axes) + 1))
                self.directives.append(f"reorder {', '.join(x.name for x in some)};")
            elif action == "fuse" and len(axes) > 1:
                at = r.randrange(len(axes) - 1)
                x, y = axes[at], axes[at + 1]
                if x.extent is None or y.extent is None or x.parallel != y.parallel or x.depends or y.depends:
                    continue
                both = Axis(f"f{fresh}", x.extent * y.extent, x.parallel)
                fresh += 1
                self.directives.append(f"fuse {x.name}, {y.name} -> {both.name};")
                axes[at:at + 2] = [both]

    # --- Text ------------------------------------------------------------------------------------------------

    def text(self):
        inputs = [f"{n}: {t}[{', '.join(d)}]{s}" for n, t, d, s in self.inputs] + [f"{n}: {t}" for n, t in self.scalars]
        outputs = [f"{n}: {t}[{', '.join(d)}]" for n, t, d in self.outputs]
        body = " ".join(self.statements)
        if self.loops:
            body = f"for {', '.join(f'{a} in {e}' for a, e in self.loops)} {{ {body} }}"
        lines = self.prelude + [f"kernel k({', '.join(inputs)}) -> ({', '.join(outputs)}) {{ {body} }}"]
        if self.directives:
            lines.append(f"schedule k {{ {' '.join(self.directives)} }}")
        return "\n".join(lines) + "\n"

    def arguments(self):
        out = []
        for name, value in self.sizes.items():
            out += ["-D", f"{name}={value}"]
        for name, type_, _, _ in self.inputs:
            out += ["--arg", f"{name}=rand({self.number % 1000 + 1})"]
        for name, type_ in self.scalars:
            out += ["--arg", f"{name}={'0.75' if type_ in FLOATS else '3'}"]
        for name, type_, _ in self.outputs:
            if any(s.split(" ")[1] in ("+=", "*=", "min=", "max=") for s in self.statements if s.startswith(f"{name}[")):
                out += ["--arg", f"{name}=rand(9)"]
        return out


def fold_target(case):
    return any(op in s for s in case.statements for op in (" += ", " *= ", " min= ", " max= "))


def run(command, timeout=60):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)
        return done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired:
        return -999, "timed out"


LEVELS = ((3, 1), (0, 2))  # -O and --seed of each run of a case


def lines_of(case, path):
    """The arguments of its runs, behind options that are the same for all; writes the file."""
    with open(path, "w") as f:
        f.write(case.text())
    arguments = case.arguments()
    if fold_target(case) and not any(a.startswith("B=") for a in arguments):
        arguments += ["--arg", "B=rand(9)"]
    return [[path, *arguments, f"-O{level}", f"--seed={seed}"] for level, seed in LEVELS]


def judge(code, output, level):
    """'ok', 'refused', or what is wrong."""
    if code == 0:
        return "ok"
    if code == 1 and any(f"[E{n}" in output for n in "1234") and "internal" not in output:
        return "refused"
    return f"exit {code} at -O{level}"


def verdict(redc, case, device="sim"):
    with tempfile.TemporaryDirectory() as folder:
        for line, (level, _) in zip(lines_of(case, os.path.join(folder, "case.red")), LEVELS):
            code, output = run([redc, "run", *line, "--check", f"--device={device}", "--jobs=1"])
            kind = judge(code, output, level)
            if kind != "ok":
                return kind, output.replace(folder + "/", "")
    return "ok", ""


def verdicts(redc, numbers, device, jobs):
    """(number, verdict, output) of each case, run side by side."""
    with tempfile.TemporaryDirectory(prefix="red-differential-") as folder:
        lines = [line for n in numbers for line in lines_of(Case(n), os.path.join(folder, f"{n}.red"))]
        results = batch.run(redc, lines, ["--check", f"--device={device}"], jobs, timeout=60)
        for number in numbers:
            kind, said = "ok", ""
            for (level, _), (code, output) in zip(LEVELS, [next(results) for _ in LEVELS]):
                if kind == "ok":
                    kind, said = judge(code, output, level), output
            yield number, kind, said.replace(folder + "/", "")


def reduce_case(redc, case, kind):
    """Drops directives and shrinks sizes while the fault stays."""
    def still(c):
        return verdict(redc, c)[0].split(" at ")[0] == kind.split(" at ")[0]
    changed = True
    while changed:
        changed = False
        for i in range(len(case.directives)):
            kept = case.directives
            case.directives = kept[:i] + kept[i + 1:]
            if still(case):
                changed = True
                break
            case.directives = kept
        for name in case.sizes:
            for smaller in (1, 2, 3, case.sizes[name] // 2):
                before = case.sizes[name]
                if smaller >= before or smaller < 1:
                    continue
                case.sizes[name] = smaller
                if still(case):
                    changed = True
                    break
                case.sizes[name] = before
    return case


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--redc", default="build/redc")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=200)
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--endless", action="store_true")
    p.add_argument("--one", type=int)
    p.add_argument("--device", default="sim", help="sim, or cuda on a machine with a GPU")
    a = p.parse_args()
    if a.one is not None:
        case = Case(a.one)
        print(case.text())
        print(" ".join(case.arguments()))
        print(*verdict(a.redc, case, a.device))
        return 0
    counts = {"ok": 0, "refused": 0}
    faults, first = [], a.seed * 1000000
    while True:
        for number, kind, output in verdicts(a.redc, range(first, first + a.count), a.device, a.jobs):
            if kind in counts:
                counts[kind] += 1
                continue
            faults.append((number, kind, output))
            case = Case(number)
            if a.device == "sim":
                case = reduce_case(a.redc, case, kind)
                kind, output = verdict(a.redc, case)
            print(f"// case {number}: {kind}\n// redc run case.red {' '.join(case.arguments())} --check --device=sim")
            print(case.text() + "\n".join("// " + l for l in output.splitlines()[:12]), flush=True)
            if len(faults) >= 20:
                break
        first += a.count
        if not a.endless or faults:
            break
        print(f"{counts['ok']} agreed, {counts['refused']} refused", file=sys.stderr)
    print(f"{counts['ok']} agreed, {counts['refused']} refused by the compiler")
    print(f"{counts['ok'] + counts['refused']} passed, {len(faults)} failed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Reductions over threads at every extent: 1 to 1024, groups 1, 2, 3, 5, the seven subsets of thread axes.

  tests/sweep.py --redc build/redc                  # a sample of 300 shapes
  tests/sweep.py --redc build/redc --all            # every shape once; operators and types rotate
  tests/sweep.py --redc build/redc --sample 5000 --device=cuda --jobs 16    # on a machine with a GPU: about a minute

Each shape is a kernel whose reduced axes lie on some of thread.x, y and z and whose kept axes on the others, run and compared with
the reference: exactly, since the data are small integers. A shape that does not fit a block (more than 1024 threads, z above 64)
is left out and counted.
"""
import argparse
import itertools
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import batch  # noqa: E402

OPERATORS = [("sum", "i32"), ("max", "f32"), ("min", "i64"), ("sum", "f64"), ("xor", "u32"), ("prod", "u64"), ("max", "i8"), ("and", "u16"),
             ("sum", "f32"), ("fmin", "f64"), ("or", "i16"), ("min", "u8"), ("any", "bool"), ("all", "bool"), ("argmax", "f32"),
             ("argmin", "i32"), ("fmax", "f32"), ("pair", "i32")]
SUBSETS = ["x", "y", "z", "xy", "xz", "yz", "xyz"]
PAIR = "reducer pair(a: i32, b: i32) { identity (0, 1); combine(x, y) { (x.a + y.a, x.b * y.b) } }\n"


def split(extent, parts):
    """Extents of `parts` axes whose product is `extent`, as even as its factors allow; None when it is none for z."""
    out = []
    for left in range(parts, 1, -1):
        best = max(d for d in range(1, int(extent ** (1 / left) + 1e-9) + 1) if extent % d == 0)
        out.append(best)
        extent //= best
    return out + [extent]


def shapes():
    """(extent, groups, subset, operator): every extent with every group count and subset once, operators rotating."""
    rotate = itertools.cycle(range(len(OPERATORS)))
    for extent in range(1, 1025):
        for groups in (1, 2, 3, 5):
            for subset in SUBSETS:
                yield extent, groups, subset, OPERATORS[next(rotate)]


def program(extent, groups, subset, operator, form=""):
    """The text of the kernel, or None where it does not fit a block."""
    name, type_ = operator
    kept = [a for a in "xyz" if a not in subset]
    if groups > 1 and not kept:
        return None
    reduced_extents = dict(zip(sorted(subset, reverse=True), split(extent, len(subset))))
    kept_extents = {a: 1 for a in kept}
    if kept:
        kept_extents[kept[0]] = groups
    every = {**reduced_extents, **kept_extents}
    threads = every["x"] * every["y"] * every["z"]
    if threads > 1024 or every["z"] > 64:
        return None
    axes = [a for a in "zyx"]
    inner = [f"r{a} in {reduced_extents[a]}" for a in axes if a in subset]
    outer = [f"k{a} in {kept_extents[a]}" for a in axes if a not in subset]
    dims = ", ".join(str(every[a]) for a in axes)
    access = "A[" + ", ".join(f"r{a}" if a in subset else f"k{a}" for a in axes) + "]"
    where = ", ".join(f"k{a}" for a in axes if a not in subset)
    shape = ", ".join(str(kept_extents[a]) for a in axes if a not in subset)
    linear = "0"
    for a in axes:
        if a in subset:
            linear = f"{linear} * {reduced_extents[a]} + r{a}"
    loop = f"for {', '.join(outer)} " if outer else ""
    if name in ("argmax", "argmin"):
        outputs, body = f"V: {type_}[{shape}], P: i32[{shape}]", f"(V[{where}], P[{where}]) = {name}({', '.join(inner)}) ({access}, i32({linear}));"
    elif name == "pair":
        outputs, body = f"V: i32[{shape}], P: i32[{shape}]", f"(V[{where}], P[{where}]) = pair({', '.join(inner)}) ({access}, {access});"
    else:
        outputs, body = f"B: {type_}[{shape}]", f"B[{where}] = {name}({', '.join(inner)}) {access};"
    if loop:
        body = f"{loop}{{ {body} }}"
    binds = " ".join(f"bind {'r' if a in subset else 'k'}{a} -> thread.{a};" for a in axes)
    if form:
        binds += f" allreduce {', '.join('r' + a for a in axes if a in subset)} by {form};"
    return (PAIR if name == "pair" else "") + f"kernel k(A: {type_}[{dims}]) -> ({outputs}) {{ {body} }}\nschedule k {{ {binds} }}\n"


def arguments_of(shape):
    """What the case takes behind its file."""
    formula = "i % 3 == 1" if shape[3][1] == "bool" else "(i * 7 + 3) % 11" if shape[3][0] not in ("prod", "pair") else "1 + (i % 5) / 4"
    return ["--arg", f"A={formula}"]


def run_shapes(redc, chosen, common, form, jobs):
    """(shape, whether it passed, the program and what was said) of each."""
    with tempfile.TemporaryDirectory(prefix="red-sweep-") as folder:
        lines, texts = [], []
        for number, shape in enumerate(chosen):
            path = os.path.join(folder, f"{number}.red")
            texts.append(program(*shape, form))
            with open(path, "w") as f:
                f.write(texts[-1])
            lines.append([path, *arguments_of(shape)])
        for shape, text, (status, output) in zip(chosen, texts, batch.run(redc, lines, common, jobs)):
            yield shape, status == 0, text + output.replace(folder + "/", "")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--redc", default="build/redc")
    p.add_argument("--sample", type=int, default=300)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--all", action="store_true")
    p.add_argument("--device", default="sim")
    p.add_argument("--order", type=int, default=3, help="seed of the simulator's orders")
    p.add_argument("--option", action="append", default=[], help="an option for redc run, such as --option=--arch=sm_90")
    p.add_argument("--form", default="", help="shuffle or tree: force it")
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    a = p.parse_args()
    every = [s for s in shapes() if program(*s)]
    chosen = every if a.all else random.Random(a.seed).sample(every, min(a.sample, len(every)))
    passed = failed = 0
    common = ["--check", f"--device={a.device}", f"--seed={a.order}", *a.option]
    for done, (shape, ok, output) in enumerate(run_shapes(a.redc, chosen, common, a.form, a.jobs)):
        if ok:
            passed += 1
        else:
            failed += 1
            if failed <= 10:
                print(f"{shape}\n{output}", flush=True)
        if sys.stderr.isatty() and done % 20 == 0:
            print(f"\r{done} of {len(chosen)}", end="", file=sys.stderr)
    print(f"{len(every)} shapes fit a block; {len(chosen)} were run")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

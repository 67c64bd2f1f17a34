#!/usr/bin/env python3
"""Reductions over threads at every extent: 1 to 1024, groups 1, 2, 3, 5 and 2 x 3, the seven subsets of thread axes, every operator and type.

  tests/sweep.py --redc build/redc                  # a sample of 300 shapes
  tests/sweep.py --redc build/redc --all            # every shape once; operators and types rotate
  tests/sweep.py --redc build/redc --bits 100       # random floats, stored by every thread: are all of a group's the same bits?
  tests/sweep.py --redc build/redc --sample 5000 --device=cuda --jobs 16    # on a machine with a GPU: about a minute

Each shape is a kernel whose reduced axes lie on some of thread.x, y and z and whose kept axes on the others, run and compared with
the reference: exactly, since the data are small integers. A shape that does not fit a block (more than 1024 threads, z above 64)
is left out and counted. Kinds of kernel rotate, too:
    plain    one reduction, stored once
    all      in a loop of three rounds, stored by every thread: each has the same bits
    several  three, of which the third needs the first; stored once and by every thread
    guarded  in a loop under a condition on its round, which is the same for all threads, and over the elements under one that is not
    kept     under a condition on a kept axis, which differs between the groups of a block
"""
import argparse
import itertools
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import batch  # noqa: E402

INTEGERS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
FLOATS = ["f16", "bf16", "f32", "f64"]
OPERATORS = [(name, type_) for type_ in INTEGERS for name in ("sum", "prod", "min", "max", "and", "or", "xor", "argmin")]
OPERATORS += [(name, type_) for type_ in FLOATS for name in ("sum", "prod", "min", "max", "fmin", "fmax", "argmax")]
OPERATORS += [("any", "bool"), ("all", "bool"), ("pair", "i32"), ("affine", "u32"), ("spread", "f32")]
random.Random(1).shuffle(OPERATORS)
TUPLES = {"argmax": None, "argmin": None, "pair": "i32", "affine": "u32", "spread": "f32"}  # and the type of their second component
KINDS = ["plain", "all", "plain", "several", "plain", "guarded", "plain", "kept"]
SUBSETS = ["x", "y", "z", "xy", "xz", "yz", "xyz"]
GROUPS = (1, 2, 3, 5, 6)  # 6: 2 x 3 where two axes are kept
REDUCERS = """reducer pair(a: i32, b: i32) { identity (0, 1); combine(x, y) { (x.a + y.a, x.b * y.b) } }
ordered reducer affine(a: u32, b: u32) { identity (1, 0); combine(f, g) { (f.a * g.a, f.b * g.a + g.b) } }
reducer spread(lo: f32, hi: f32) { identity (1e9, -1e9); combine(x, y) { (min(x.lo, y.lo), max(x.hi, y.hi)) } }
"""


def split(extent, parts):
    """Extents of `parts` axes whose product is `extent`, as even as its factors allow; None when it is none for z."""
    out = []
    for left in range(parts, 1, -1):
        best = max(d for d in range(1, int(extent ** (1 / left) + 1e-9) + 1) if extent % d == 0)
        out.append(best)
        extent //= best
    return out + [extent]


def shapes():
    """(extent, groups, subset, operator, kind): every extent with every group count and subset once, operators and kinds rotating."""
    operators, kinds = itertools.cycle(OPERATORS), itertools.cycle(KINDS)
    for extent in range(1, 1025):
        for groups in GROUPS:
            for subset in SUBSETS:
                yield extent, groups, subset, next(operators), next(kinds)


def program(extent, groups, subset, operator, kind="plain", form=""):
    """The text of the kernel, or None where it does not fit a block."""
    name, type_ = operator
    kept = [a for a in "xyz" if a not in subset]
    if groups > 1 and not kept or groups == 6 and len(kept) < 2:
        return None
    reduced_extents = dict(zip(sorted(subset, reverse=True), split(extent, len(subset))))
    kept_extents = {a: 1 for a in kept}
    if groups == 6:
        kept_extents.update(zip(kept, (2, 3)))
    elif kept:
        kept_extents[kept[0]] = groups
    every = {**reduced_extents, **kept_extents}
    threads = every["x"] * every["y"] * every["z"]
    if threads > 1024 or every["z"] > 64:
        return None
    axes = [a for a in "zyx"]
    inner = ", ".join(f"r{a} in {reduced_extents[a]}" for a in axes if a in subset)
    outer = [f"k{a} in {kept_extents[a]}" for a in axes if a not in subset]
    dims = ", ".join(str(every[a]) for a in axes)
    place = ", ".join(f"r{a}" if a in subset else f"k{a}" for a in axes)
    where = ", ".join(f"k{a}" for a in axes if a not in subset)
    shape = ", ".join(str(kept_extents[a]) for a in axes if a not in subset)
    linear = "0"
    for a in axes:
        if a in subset:
            linear = f"{linear} * {reduced_extents[a]} + r{a}"
    tensor = f"A: {type_}[{dims}]"
    if name in TUPLES:
        second = TUPLES[name] or "i32"
        outputs = f"V: {type_}[{shape}], P: {second}[{shape}]"
        body = f"(V[{where}], P[{where}]) = {name}({inner}) (A[{place}], {f'i32({linear})' if TUPLES[name] is None else f'A[{place}]'});"
    elif kind == "all":
        tensor, outputs = f"A: {type_}[3, {dims}]", f"B: {type_}[3, {dims}]"
        body = f"let s = {name}({inner}) A[q, {place}]; for {inner} {{ B[q, {place}] = s; }}"
        outer.insert(0, "q in 3")
    elif kind == "several" and type_ != "bool":
        outputs = f"B: {type_}[{shape}], C: {type_}[{shape}], D: {type_}[{dims}]"
        body = (f"let s = {name}({inner}) A[{place}]; let t = min({inner}) A[{place}]; B[{where}] = s; C[{where}] = t; "
                f"let u = max({inner}) (A[{place}] < s ? A[{place}] : s); for {inner} {{ D[{place}] = u; }}")
    elif kind == "guarded":
        tensor, outputs = f"A: {type_}[3, {dims}]", f"B: {type_}[{', '.join(['3'] + [shape] * bool(shape))}]"
        body = f"if q != 1 {{ B[{', '.join(['q'] + [where] * bool(where))}] = {name}({inner} if ({linear}) % 3 != 1) A[q, {place}]; }}"
        outer.insert(0, "q in 3")
    elif kind == "kept" and kept:
        outputs, body = f"B: {type_}[{shape}]", f"if k{kept[0]} % 2 == 0 {{ B[{where}] = {name}({inner}) A[{place}]; }}"
    else:
        outputs, body = f"B: {type_}[{shape}]", f"B[{where}] = {name}({inner}) A[{place}];"
    if outer:
        body = f"for {', '.join(outer)} {{ {body} }}"
    binds = " ".join(f"bind {'r' if a in subset else 'k'}{a} -> thread.{a};" for a in axes)
    if form:
        binds += f" allreduce {', '.join('r' + a for a in axes if a in subset)} by {form};"
    return (REDUCERS if TUPLES.get(name) else "") + f"kernel k({tensor}) -> ({outputs}) {{ {body} }}\nschedule k {{ {binds} }}\n"


def arguments_of(shape):
    """What the case takes behind its file: data whose results are exact."""
    name, type_ = shape[3]
    formula = "(i * 7 + 3) % 11"
    if type_ == "bool":
        formula = "i % 3 == 1"
    elif name in ("prod", "pair"):
        formula = "1 + (i % 5) / 4"
    elif name == "sum" and type_ in ("f16", "bf16", "i8", "u8"):
        formula = "(i % 8) / 7"
    return ["--arg", f"A={formula}"]


def run_shapes(redc, chosen, common, form, jobs):
    """(shape, whether it passed, the program and what was said) of each."""
    with tempfile.TemporaryDirectory(prefix="red-sweep-") as folder:
        lines, texts = [], []
        for number, shape in enumerate(chosen):
            path = os.path.join(folder, f"{number}.red")
            texts.append(program(*shape, form=form))
            with open(path, "w") as f:
                f.write(texts[-1])
            lines.append([path, *arguments_of(shape)])
        for shape, text, (status, output) in zip(chosen, texts, batch.run(redc, lines, common, jobs)):
            yield shape, status == 0, text + output.replace(folder + "/", "")


def same_bits(path, extent, groups, subset):
    """Whether what the threads of each group stored, B[3, z, y, x], is one value."""
    text = program(extent, groups, subset, ("sum", "f32"), "all")
    dims = [int(x) for x in text.split("-> (B: f32[")[1].split("]")[0].split(",")]
    with open(path, "rb") as f:
        data = f.read()
    count = dims[0] * dims[1] * dims[2] * dims[3]
    size = int(data[data.index(b"descr") :].split(b"'")[2][2:])
    data = data[-size * count:]
    found = {}
    for number in range(count):
        place, rest = [], number
        for extent_of in reversed(dims):
            place.append(rest % extent_of)
            rest //= extent_of
        key = (place[3], *(place[k] for k, a in enumerate("xyz") if a not in subset))
        found.setdefault(key, set()).add(data[size * number:size * (number + 1)])
    return len(found) == 3 * groups and all(len(values) == 1 for values in found.values())


def run_bits(a, every):
    """Sums and products of random floats over a sample of shapes, whose result every thread stores."""
    rng = random.Random(a.seed)
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="red-bits-") as folder:
        chosen, lines = rng.sample(every, min(a.bits, len(every))), []
        for number, (extent, groups, subset, *_) in enumerate(chosen):
            operator = rng.choice(["sum", "prod"]), rng.choice(FLOATS)
            with open(f"{folder}/{number}.red", "w") as f:
                f.write(program(extent, groups, subset, operator, "all", a.form))
            lines.append([f"{folder}/{number}.red", "--arg", f"A=rand({number})", "--out", f"B={folder}/{number}.npy"])
        for number, (status, output) in enumerate(batch.run(a.redc, lines, [f"--device={a.device}", f"--seed={a.order}", *a.option], a.jobs)):
            if status == 0 and same_bits(f"{folder}/{number}.npy", *chosen[number][:3]):
                passed += 1
            else:
                failed += 1
                print(f"{chosen[number]}: {output or 'threads of a group have different bits'}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--redc", default="build/redc")
    p.add_argument("--sample", type=int, default=300)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--all", action="store_true")
    p.add_argument("--bits", type=int, metavar="N")
    p.add_argument("--device", default="sim")
    p.add_argument("--order", type=int, default=3, help="seed of the simulator's orders")
    p.add_argument("--option", action="append", default=[], help="an option for redc run, such as --option=--arch=sm_90")
    p.add_argument("--form", default="", help="shuffle or tree: force it")
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    a = p.parse_args()
    every = [s for s in shapes() if program(*s)]
    if a.bits:
        return run_bits(a, every)
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
    print(f"{len(every)} of {sum(1 for _ in shapes())} shapes fit a block; {len(chosen)} were run")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Programs of kinds that generate.py's own hardly meet: folds of the grid by atomics, asynchronous copies, triangles whose groups have lanes of their own,
what the compiler schedules by itself (permutes, rows and columns of known sizes, classes asked for), conversions between all types, and arithmetic of indices.

fill(case) makes the whole of a case, spoil(case) puts a wrong word into its schedules or indices: that is refused, or the answer is the same.
"""
import math
import random
import re

INTS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
FOLDS = {"i32": "sum min max and or xor", "i64": "sum min max and or xor", "u32": "sum min max and or xor", "u64": "sum min max and or xor", "f32": "sum", "f64": "sum"}
SIGNS = {"sum": "+=", "min": "min=", "max": "max=", "and": "&=", "or": "|=", "xor": "^="}
CLASSES = ["thread", "rows", "group", "staged", "warp", "block", "column", "block_split", "column_split", "map", "tile", "lines", "whole", "planes", "odd_runs", "pack", "places", "units",
           "runs", "gather"]
ARCHITECTURES = ["sm_80", "sm_86", "sm_90"]


def give(case, **sizes):
    """Sizes of the program, by -D or at launch."""
    for name, value in sizes.items():
        case.sizes[name] = value
        if case.aim.random() < 0.25:
            case.dynamic.add(name)


def put_input(case, name, type_, dims, axes, value=None, strided=""):
    case.inputs[name] = {"type": type_, "axes": axes, "dims": dims, "index": ", ".join(axes), "strided": strided}
    case.values[name] = value or case.element(type_)


def put_output(case, name, type_, dims, value=None):
    case.outputs[name] = {"type": type_, "dims": dims, "strided": ""}
    if value:
        case.values[name] = value


def put_schedule(case, directives, when="", name=""):
    schedule = case.new_schedule()
    schedule.name, schedule.when, schedule.directives = name, when, [d for d in directives if d]
    case.schedules.append(schedule)


def atomics(case):
    """Folds whose reductions are spread over the grid and combined by atomics."""
    r = case.aim
    type_ = r.choice(list(FOLDS))
    word = r.choice(FOLDS[type_].split())
    give(case, n=r.choice([1, 2, 5, 33]), m=r.choice([1, 7, 64, 100, 300]))
    put_input(case, "A1", type_, ["n", "m"], ["i", "j"])
    put_output(case, "B1", type_, ["n"], "rand(9)")
    group = case.new_group([("i", "n", 0)])
    guard = r.choice(["", "", " if j % 3 != 1"])
    value = r.choice(["A1[i, j]", "A1[i, j]", "(A1[i, j] + 1)", "max(A1[i, j], 1)"])
    line = f"B1[i] {SIGNS[word]} {word}(j in m{guard}) {value};"
    group.lines.append(r.choice([line] * 4 + [f"if i % 2 == 0 {{ {line} }}"]))
    case.groups.append(group)
    width, pieces = r.choice([4, 32, 33, 64]), r.choice([2, 3, 8])
    bind = r.choice(["bind i -> block.x;", "bind i -> block.x;", "bind i -> block.z;", "split i by 4 -> ib, ii; bind ib -> block.x; bind ii -> thread.y;", ""])
    if r.random() < 0.5:
        cut = [f"split j by {width} -> jo, jt;", f"split jo into {pieces} -> jb, jr;", r.choice(["", "unroll jr by 2;"])]
    else:
        cut = [f"split j by {width} -> jb, jt;"]
    put_schedule(case, [*cut, "bind jt -> thread.x;" if r.random() < 0.9 else "", bind, "bind jb -> block.y;", "combine jb by atomic;"])


def copies(case):
    """Rows copied to shared memory asynchronously, in vectors, as one run or as they lie."""
    r = case.aim
    type_ = r.choice(["f32", "f32", "f16", "bf16", "i32", "f64", "u8", "i64", "u32"])
    number = "f32" if type_ in ("f16", "bf16") else type_
    rows, m = r.choice([2, 4, 8, 16]), r.choice([3, 8, 16, 31, 32, 33, 40])
    give(case, n=rows * r.choice([1, 2, 3]) + r.choice([0, 0, 0, 1]))
    case.sizes["m"] = m
    put_input(case, "A1", type_, ["n", "m"], ["i", "j"])
    is_map, group = r.random() < 0.4, case.new_group([("i", "n", 0)])
    if is_map:
        put_output(case, "B1", number, ["n", "m"])
        group.lines.append("for j in m { B1[i, j] = A1[i, j] + A1[i, m - 1 - j]; }" if r.random() < 0.3 else "for j in m { B1[i, j] = A1[i, j] + 1; }")
    else:
        put_output(case, "B1", number, ["n"])
        group.lines.append(r.choice(["B1[i] = sum(j in m) A1[i, j];", "let v1 = max(j in m) A1[i, j]; B1[i] = sum(j in m) (A1[i, j] - v1);"]))
    case.groups.append(group)
    vector, how = r.choice([2, 4, 4, 8, 16]), r.choice([" by cp_async"] * 3 + [" by copy"])
    out = [f"split i by {rows} -> io, it;", "bind io -> block.x;", r.choice(["bind it -> thread.x;", "bind it -> thread.y;", ""])]
    if r.random() < 0.2:
        out.append("cache A1 by evict_first;")
    form = r.randrange(4)
    if form == 0:
        out += [f"stage A1 at io in shared as S{how};", "fuse S.it, S.j -> sf;", f"split sf by {vector} -> sc, sv;", f"split sc by {r.choice([16, 32, 64])} -> so, st;", "bind st -> thread.x;",
                "vectorize sv;", r.choice(["unroll so;", ""])]
    elif form == 1:
        out += [f"stage A1 at io in shared as S{r.choice(['', ' pad 1', ' swizzle 1,0,2'])}{how};", f"split S.j by {vector} -> sc, sv;", "vectorize sv;",
                r.choice(["bind sc -> thread.x;", "fuse S.it, sc -> st; bind st -> thread.x;", ""])]
    elif form == 2:
        out += [f"stage A1 at io in shared as S along {r.choice([4, 8, 16])}{how};", "bind S.piece -> thread.x;", r.choice(["vectorize S.element;", ""])]
    else:
        out += [f"stage A1 at io in shared{how};"]
    if r.random() < 0.3:
        out.append(r.choice(["unroll B1.j by 2;", "split B1.j by 4 -> b1, b2; vectorize b2;", "split B1.j by 8 -> b1, b2; bind b2 -> thread.y;"]))
    ahead = random.Random(case.number + (3 << 40))
    if ahead.random() < 0.5:  # blocks take rows in turn, and fill those of later turns ahead
        out[1] = ahead.choice(["split io by 2 -> turn, g; reorder g, turn; bind g -> block.x;", "split io into 2 -> g, turn; bind g -> block.x;", "split io by 1 -> turn, g; reorder g, turn; bind g -> block.x;"])
        out = [d.replace("stage A1 at io", "stage A1 at turn").replace(how + ";", f" depth {depth}{how};") for depth in [ahead.choice([2, 2, 3, 4, 8])] for d in out]
    put_schedule(case, out)
    case.arch = r.choice(ARCHITECTURES)


def triangles(case):
    """Reductions inside ranges that differ between groups of lanes."""
    r = case.aim
    give(case, n=r.choice([1, 5, 17, 37]), m=r.choice([1, 8, 20]))
    case.sizes["p"] = r.choice([1, 2, 3, 4, 8, 8, 16, 32, 33])
    type_ = r.choice(["f32", "i32", "i64", "u8"])
    put_input(case, "A1", type_, ["n", "m", "p"], ["i", "q", "j"])
    put_output(case, "B1", type_, ["n", "m"], "rand(9)")
    group = case.new_group([("i", "n", 0)])
    word = r.choice(["sum", "max", "min", "prod"]) if type_ != "f32" else r.choice(["sum", "max", "fmin"])
    span = r.choice(["0..min(i + 1, m)", "min(i, m)..m", "0..min(i / 2, m)"])
    if r.random() < 0.3:
        group.lines.append(f"for q in {span} {{ let v1 = {word}(j in p) A1[i, q, j]; B1[i, q] = {word}(j in p) (A1[i, q, j] - v1); }}")
    else:
        group.lines.append(f"for q in {span} {{ B1[i, q] = {word}(j in p) A1[i, q, j]; }}")
    case.groups.append(group)
    rows = r.choice([2, 4, 16])
    out = [f"split i by {rows} -> io, ii;", "bind io -> block.x;", *r.choice([["bind ii -> thread.y;", "bind j -> thread.x;"]] * 3 + [["bind ii -> thread.x;", "bind j -> thread.y;"]])]
    if r.random() < 0.2:
        out.append(f"allreduce j by {r.choice(['shuffle', 'tree', 'auto'])};")
    put_schedule(case, out)
    case.arch = r.choice([None, *ARCHITECTURES])


def own(case):
    """What the compiler schedules by itself, for sizes that it knows mostly."""
    r = case.aim
    kind = r.choice(["permute", "permute", "permute", "rows", "columns", "batch"])
    moved = ["f32", "f16", "u8", "i16", "f64", "c64", "c128", "i8", "bool", "bf16", "f8e4m3"]
    group = case.new_group([])
    if kind in ("permute", "batch"):
        type_ = r.choice(moved)
        rank = 3 if kind == "batch" else r.choice([2, 3, 3, 4, 5])
        if kind == "batch":
            extents = [r.choice([17, 40, 130]), r.choice([3, 5, 7, 9, 16]), r.choice([3, 4, 9, 11, 33])]
            order = [0, 2, 1]
        else:
            most = {2: [8, 33, 64, 65, 100, 128], 3: [1, 3, 8, 16, 31, 32, 40], 4: [1, 2, 3, 5, 8, 12, 16], 5: [1, 2, 3, 4, 6]}[rank]
            extents, order = [r.choice(most) for _ in range(rank)], list(range(rank))
            r.shuffle(order)
            if rank > 2 and r.random() < 0.3:  # runs of an odd length that stay
                order.sort(key=lambda k: k == rank - 1)
                extents[-1] = r.choice([3, 5, 7, 23, 35, 89, 129, 263, 1001])
        while math.prod(extents) > 12000:
            extents[extents.index(max(extents))] //= 2
        sizes = [f"d{k}" for k in range(rank)]
        for name, value in zip(sizes, extents):
            case.sizes[name] = value
            if r.random() < 0.15:
                case.dynamic.add(name)
        axes = [f"a{k}" for k in range(rank)]
        put_input(case, "A1", type_, sizes, axes, strided=r.choice([""] * 6 + [" strided"]))
        put_output(case, "B1", type_, [sizes[k] for k in order])
        group.loops = [(a, s, 0) for a, s in zip(axes, sizes)]
        group.lines.append(f"B1[{', '.join(axes[k] for k in order)}] = A1[{', '.join(axes)}];")
        classes = ["map", "tile", "lines", "whole", "planes", "odd_runs", "pack", "pack", "places", "units", "runs", "gather"]
    else:
        type_ = r.choice(["f32", "f32", "f16", "bf16", "i32", "f64", "i64", "u8", "i8"])
        number = "f32" if type_ in ("f16", "bf16") else type_
        long_, short = r.choice([2, 3, 8, 33, 64, 100, 257, 1000, 2048, 5000]), r.choice([1, 2, 3, 16, 33, 64, 200])
        while long_ * short > 12000:
            short //= 2
        case.sizes["m"], case.sizes["n"] = long_, short
        for name in "mn":
            if r.random() < 0.25:
                case.dynamic.add(name)
        is_row = kind == "rows"
        put_input(case, "A1", type_, ["n", "m"] if is_row else ["m", "n"], ["i", "j"] if is_row else ["j", "i"], strided=r.choice([""] * 6 + [" strided", " strided(_, 1)"]))
        place = "A1[i, j]" if is_row else "A1[j, i]"
        put_output(case, "B1", number, ["n"])
        group.loops = [("i", "n", 0)]
        form = r.choice(["one", "one", "two", "mean", "arg", "soft", "fold"])
        if form == "arg":
            put_output(case, "B2", "i64", ["n"])
            group.lines.append(f"(B1[i], B2[i]) = {r.choice(['argmax', 'argmin'])}(j in m) ({place}, j);")
        elif form == "two":
            group.lines += [f"let (v1, v2) = {r.choice(['sum', 'max'])}(j in m) ({place}, {place} - 1);", "B1[i] = v1 - v2;"]
        elif form == "mean" and number in ("f32", "f64"):
            group.lines += [f"let v1 = sum(j in m) {place} / m;", f"B1[i] = sum(j in m) {{ let d = {place} - v1; d * d }};"]
        elif form == "soft" and number in ("f32", "f64"):
            put_output(case, "B2", number, ["n", "m"] if is_row else ["m", "n"])
            group.lines += [f"let v1 = max(j in m) {place};", f"let v2 = sum(j in m) exp({place} - v1);", f"for j in m {{ {place.replace('A1', 'B2')} = exp({place} - v1) / v2; }}", "B1[i] = v2;"]
        elif form == "fold":
            case.values["B1"] = "rand(9)"
            group.lines.append(f"B1[i] {r.choice(['+=', 'max='])} sum(j in m) {place};")
        else:
            group.lines.append(f"B1[i] = {r.choice(['sum', 'sum', 'max', 'min', 'prod' if number in INTS else 'fmax'])}(j in m) {place};")
        classes = CLASSES[:10]
    case.groups.append(group)
    if r.random() < 0.6:
        case.options.append(f"--class={r.choice(classes)}")
    case.arch = r.choice([None, "sm_80", "sm_90"])


def conversions(case):
    """Every type to every other, by calls and by stores."""
    r = case.aim
    give(case, n=r.choice([1, 7, 33, 64]))
    every = ["bool", *INTS, "f32", "f64", "f16", "bf16"]
    group = case.new_group([("i", "n", 0)])
    for k in range(r.choice([1, 2, 3])):
        from_, to = r.choice(every), r.choice(every)
        put_input(case, f"A{k}", from_, ["n"], ["i"], r.choice([None, None, "iota", "i*3%11"]) if from_ not in ("bool", "f16", "bf16") else None)
        value = f"{to}(A{k}[i])"
        if from_ in INTS and r.random() < 0.4:
            by = r.choice(["0", "1", "3", "7", "10", "64", "100", f"A{k}[i]"] + (["-1", "-7"] if from_[0] == "i" else []))
            value = f"{to}(A{k}[i] {r.choice('/%')} {by})"
        elif from_ not in ("bool", *INTS) and r.random() < 0.3:
            value = f"{to}(A{k}[i] * {r.choice(['100', '1e9', '-3.5', '1e-9'])})"
        if r.random() < 0.2:
            value = f"{r.choice(every)}({value})"
            to = value.split("(")[0]
        put_output(case, f"B{k}", to, ["n"])
        group.lines.append(f"B{k}[i] = {value};")
    case.groups.append(group)
    put_schedule(case, r.choice([["split i by 4 -> io, iv;", "vectorize iv;", "split io by 8 -> ib, it;", "bind ib -> block.x;", "bind it -> thread.x;"], ["unroll i by 3;"], ["bind i -> block.x;"]]))


def indices(case):
    """Arithmetic of indices: quotients, remainders, and places that hold in a tensor by guards."""
    r = case.aim
    give(case, n=r.choice([1, 5, 16, 33]))
    case.sizes["m"] = r.choice([4, 12, 24, 60])
    by = r.choice([2, 3, 4, 5, 6, 7, 12])
    put_input(case, "A1", "f32", [f"m / {by} + 1", str(by)], ["j", "i"])
    put_input(case, "A2", "i32", ["n", "m"], ["i", "j"])
    group = case.new_group([("i", "n", 0)])
    if r.random() < 0.5:
        put_output(case, "B1", "f32", ["n", "m"])
        group.lines.append(f"for j in m {{ B1[i, j] = A1[j / {by}, j % {by}] * f32(A2[i, j] % {r.choice([3, 10, 100])}); }}")
    else:
        put_output(case, "B1", "f32", ["n"])
        group.lines.append(f"B1[i] = sum(j in m if (i + j) % {r.choice([2, 3])} == 0) (A1[(j + {r.choice([0, 0, 1])}) / {by}, (i + j) % {by}] + f32(i32(j) / {r.choice([3, 7])} + A2[i, j] % 2));")
    case.groups.append(group)
    put_schedule(case, r.choice([[], ["bind i -> block.x;", f"split j by {by} -> jo, ji;", "bind jo -> thread.x;", "unroll ji;"],
                                 ["split j by 4 -> jo, jv;", "vectorize jv;", "fuse i, jo -> t;", "split t by 32 -> tb, tt;", "bind tb -> block.x;", "bind tt -> thread.x;"],
                                 ["bind i -> block.x;", "split j into 8 -> jo, ji;", "bind jo -> thread.x;", "unroll ji by 2;"]]))


KINDS = [atomics, copies, copies, triangles, own, own, own, conversions, indices]


def fill(case):
    case.aim.choice(KINDS)(case)


def spoil(case):
    """One word of the directives, or of the indices, in another's place."""
    r = case.aim
    lines = [line for s in case.schedules for line in s.directives]
    words = sorted(set(re.findall(r"[A-Za-z_]\w*|\d+", " ".join(lines) + case.body())))
    if lines and r.random() < 0.75:
        schedule = r.choice([s for s in case.schedules if s.directives])
        table, at = schedule.directives, r.randrange(len(schedule.directives))
        found = list(re.finditer(r"\w+", table[at]))
    else:
        table = r.choice(case.groups).lines
        if not table:
            return
        at = r.randrange(len(table))
        found = [m for m in re.finditer(r"\w+", table[at]) if table[at][:m.start()].count("[") > table[at][:m.start()].count("]")]
        words = [w for w in words if w in case.sizes or re.fullmatch(r"[ijhklqa]\d*|\d", w)]
    if found and words:
        m = r.choice(found)
        table[at] = table[at][:m.start()] + r.choice(words) + table[at][m.end():]

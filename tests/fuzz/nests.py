"""Programs of kinds where faults were found together: reductions in each other whose loops are cut and reordered, pieces along tensors, loops without
iterations beside others, and copies that only some of their readers' conditions let them fill. fill(case) makes the whole of a case.
"""
import math

from aimed import ARCHITECTURES, put_input, put_output, put_schedule

TYPES = ["i32", "i32", "i32", "f32", "u8", "i64", "f64"]
ORDERED = {"u32": "affine", "i64": "latest"}


class Axis:
    """An axis or a piece of one, with the extent that is known of it, or None."""

    def __init__(self, name, extent, reduces=False):
        self.name, self.extent, self.reduces, self.used = name, extent, reduces, False


class Nest:
    """Writes directives for the axes of one nest."""

    def __init__(self, case, axes):
        self.r, self.axes, self.out, self.count = case.aim, axes, [], 0
        self.threads, self.blocks, self.lanes = ["x", "y", "z"], ["x", "y", "z"], 1

    def put(self, text):
        self.out.append(text)

    def cut(self, along=()):
        r, free = self.r, [a for a in self.axes if not a.used]
        if not free:
            return
        axis, n = r.choice(free), self.count
        self.count += 1
        o, i = Axis(f"c{n}", None, axis.reduces), Axis(f"d{n}", None, axis.reduces)
        if along and r.random() < 0.6:
            factor = r.choice([2, 4, 8, 16, 32])
            self.put(f"split {axis.name} by {factor} along {r.choice(along)} -> {o.name}, {i.name};")
            i.extent = factor
        elif r.random() < 0.5:
            factor = r.choice([2, 3, 4, 8, 16, 32])
            o.extent, i.extent = None if axis.extent is None else -(-axis.extent // factor), factor
            self.put(f"split {axis.name} by {factor} -> {o.name}, {i.name};")
        else:
            parts = r.choice([1, 2, 3, 4, 16])
            o.extent, i.extent = parts, None if axis.extent is None else -(-axis.extent // parts)
            self.put(f"split {axis.name} into {parts} -> {o.name}, {i.name};")
        at = self.axes.index(axis)
        self.axes[at:at + 1] = [o, i]

    def reorder(self):
        some = [a for a in self.axes if self.r.random() < 0.8]
        if len(some) < 2:
            return
        order = list(some)
        self.r.shuffle(order)
        self.put(f"reorder {', '.join(a.name for a in order)};")
        places = iter(order)
        self.axes = [next(places) if a in some else a for a in self.axes]

    def fuse(self):
        at = self.r.randrange(max(len(self.axes) - 1, 1))
        pair = self.axes[at:at + 2]
        if len(pair) < 2 or pair[0].used or pair[1].used or pair[0].reduces != pair[1].reduces:
            return
        both = Axis(f"f{self.count}", None if None in (pair[0].extent, pair[1].extent) else pair[0].extent * pair[1].extent, pair[0].reduces)
        self.count += 1
        self.put(f"fuse {pair[0].name}, {pair[1].name} -> {both.name};")
        self.axes[at:at + 2] = [both]

    def use(self):
        r, free = self.r, [a for a in self.axes if not a.used]
        if not free:
            return
        axis, form = r.choice(free), r.random()
        if form < 0.45 and self.threads and axis.extent is not None and axis.extent <= 64 and self.lanes * max(axis.extent, 1) <= 512:
            self.put(f"bind {axis.name} -> thread.{self.threads.pop(r.randrange(len(self.threads)))};")
            self.lanes *= max(axis.extent, 1)
        elif form < 0.65 and self.blocks:
            self.put(f"bind {axis.name} -> block.{self.blocks.pop(0)};")
            if axis.reduces and r.random() < 0.7:
                self.put(f"combine {axis.name} by {r.choice(['last_block', 'flag', 'flag', 'second_kernel'])};")
        elif form < 0.8:
            self.put(f"unroll {axis.name}{r.choice(['', ' by 2', ' by 3'])};" if (axis.extent or 99) <= 16 else f"unroll {axis.name} by 2;")
        elif (axis.extent or 99) <= 8:
            self.put(f"vectorize {axis.name};")
        else:
            return
        axis.used = True

    def write(self, cuts, along=(), keep=()):
        """`keep`: tensors that are kept or copied at some axis."""
        r = self.r
        for _ in range(r.choice(cuts)):
            self.cut(along)
        kept = r.random() < 0.6 if keep else False
        early = r.random() < 0.4
        if kept and early:
            self.keep(keep)
        if r.random() < 0.6:
            self.reorder()
        if r.random() < 0.2:
            self.fuse()
        for _ in range(r.choice([0, 1, 2, 2, 3, 4])):
            self.use()
        if kept and not early:
            self.keep(keep)
        if r.random() < 0.15:
            self.reorder()
        return self.out

    def keep(self, tensors):
        r = self.r
        where = r.choice(["registers", "shared", "shared pad 1", "shared along 4", "shared swizzle 2,0,3", "shared by cp_async", "shared depth 2"])
        self.put(f"stage {r.choice(tensors)} at {r.choice(self.axes).name} in {where};")


def sizes(case, most=12000, dynamic=0.2, **choices):
    r = case.aim
    for name, some in choices.items():
        case.sizes[name] = r.choice(some)
    while math.prod(max(v, 1) for v in case.sizes.values()) > most:
        name = max(case.sizes, key=case.sizes.get)
        case.sizes[name] = max(case.sizes[name] // 2, 1)
    for name in choices:
        if r.random() < dynamic:
            case.dynamic.add(name)


def known(case, size):
    return None if size in case.dynamic else case.sizes[size]


def word(r, type_):
    return r.choice(["sum", "sum", "max", "min"] + (["xor", "or", "prod"] if type_ in ("i32", "u8", "i64") else []))


def nested(case):
    """Values of reductions in each other, kept over axes that later ones share in part."""
    r, type_ = case.aim, case.aim.choice(TYPES)
    sizes(case, n=[1, 2, 3, 4, 7], p=[0, 1, 2, 3, 5, 33], m=[1, 1, 2, 3, 5, 31, 64], t=[0, 1, 2, 3])
    put_input(case, "A1", type_, ["n", "p", "m", "t"], ["i", "k", "j", "h"])
    put_input(case, "A2", type_, ["n", "p", "m"], ["i", "k", "j"])
    put_input(case, "A3", type_, ["n", "p"], ["i", "k"])
    group, values, is_deep = case.new_group([("i", "n", 0), ("k", "p", 0)]), ["A3[i, k]"], False
    for number in range(r.choice([1, 2, 2, 3, 4])):
        v, a, b = r.choice(values), word(r, type_), word(r, type_)
        forms = [f"{a}(j in m) A2[i, k, j]", f"{a}(j in m) (A2[i, k, j] - {v})", f"{a}(j in m) ({v})", f"{a}(j in m if A2[i, k, j] > 3) ({v})", f"{a}(j in m; init = {v}) A2[i, k, j]",
                 f"{a}(h in t) ({v})", f"{a}(j in m if i % 3 != 1) (A2[i, k, j])"]
        deep = [f"{a}(j in m) {b}(h in t) A1[i, k, j, h]", f"{a}(j in m) {b}(h in t) (A1[i, k, j, h] - {v})", f"{a}(j in m, h in t) A1[i, k, j, h]", f"{a}(j in m) {b}(h in t) ({v})",
                f"{a}(j in m if (j & 1) == 0) {b}(h in t if h != 1) A1[i, k, j, h]"]
        is_now_deep = r.random() < 0.5
        is_deep |= is_now_deep
        group.lines.append(f"let v{number} = {r.choice(deep if is_now_deep else forms)};")
        values.append(f"v{number}")
    put_output(case, "B1", type_, ["p", "n"])
    line = f"B1[k, i] = {' + '.join(r.sample(values, min(2, len(values))))};"
    group.lines.append(line if r.random() < 0.8 else f"if (i + k) % 3 != 1 {{ {line} }}")
    if r.random() < 0.3:
        put_output(case, "B2", type_, ["n", "p", "m"])
        group.lines.append(f"for j in m {{ B2[i, k, j] = A2[i, k, j] + {values[-1]}; }}")
    case.groups.append(group)
    axes = [Axis("i", known(case, "n")), Axis("k", known(case, "p")), Axis("j", known(case, "m"), True)] + ([Axis("h", known(case, "t"), True)] if is_deep else [])
    put_schedule(case, Nest(case, axes).write([1, 2, 2, 3, 4], keep=["A1", "A2", "A3"] if r.random() < 0.25 else []))


def along(case):
    """Pieces along tensors, of pieces, with later cuts, in reductions whose order or ties matter."""
    r = case.aim
    kind = r.choice(["sum", "arg", "ordered", "map", "fold", "two"])
    type_ = {"ordered": r.choice(list(ORDERED)), "arg": r.choice(["f32", "i32", "u8"])}.get(kind) or r.choice(["i32", "f32", "u8", "f16", "i64"])
    number = "f32" if type_ == "f16" else type_
    sizes(case, n=[1, 2, 7], m=[0, 1, 5, 24, 33, 64, 100], dynamic=0.3)
    turned = r.random() < 0.2
    dims = r.choice([["n", "m"], ["n", "m"], ["n", "m + 1"]])
    strided = r.choice(["", "", "", " strided"]) if len(dims[1]) == 1 else ""
    put_input(case, "A1", type_, dims[::-1] if turned else dims, ["j", "i"] if turned else ["i", "j"], r.choice([None, "i%3", "const(1)"]), strided)
    at = "A1[j, i]" if turned else "A1[i, j]"
    group = case.new_group([("i", "n", 0)])
    tensors = ["A1"]
    if kind == "map":
        put_output(case, "B1", type_, ["n", "m"])
        group.lines.append(f"for j in m {{ B1[i, j] = {at}; }}")
        tensors.append("B1")
    elif kind == "arg":
        put_output(case, "B1", "i64", ["n"])
        group.lines.append(f"(_, B1[i]) = {r.choice(['argmax', 'argmin'])}(j in m) ({at}, {r.choice(['j', 'j', 'm - j'])});")
    elif kind == "ordered":
        case.reducers.append(ORDERED[type_])
        put_output(case, "B1", type_, ["n"])
        if type_ == "u32":
            group.lines.append(f"let (v1, v2) = affine(j in m) ({at} + 3, {at}); B1[i] = v1 + v2;")
        else:
            group.lines.append(f"B1[i] = latest(j in m) {at};")
    else:
        put_output(case, "B1", number, ["n"], "rand(9)" if kind == "fold" else None)
        line = f"B1[i] {'+=' if kind == 'fold' else '='} {word(r, number)}(j in m{r.choice(['', '', ' if j % 3 != 1'])}) {at};"
        group.lines.append(f"let v1 = max(j in m) {at}; B1[i] = sum(j in m) ({at} - v1);" if kind == "two" else line)
    case.groups.append(group)
    axes = [Axis("i", known(case, "n")), Axis("j", known(case, "m"), kind != "map")]
    if kind == "two" and r.random() < 0.7:
        axes[1].name = r.choice(["v1.j", "B1.j"])
    put_schedule(case, Nest(case, axes).write([1, 2, 3, 3, 4], along=tensors, keep=["A1"]))


def empty(case):
    """Loops without iterations beside others, and reductions outside them."""
    r, type_ = case.aim, case.aim.choice(["i32", "f32", "i64"])
    sizes(case, n=[0, 0, 1, 3, 8], m=[0, 1, 2, 5, 40], q=[0, 1, 4, 33], dynamic=0.6)
    put_input(case, "A1", type_, ["n", "m"], ["i", "j"])
    put_input(case, "A2", type_, ["q"], ["h"])
    put_output(case, "B1", type_, ["n"])
    put_output(case, "B2", type_, ["m"])
    put_output(case, "B3", type_, ["n", "q"])
    put_output(case, "B4", type_, [])
    a, b = word(r, type_), word(r, type_)
    first, second = case.new_group([("i", "n", 0)]), case.new_group([("j", "m", 0)])
    first.lines += r.sample([f"B1[i] = {a}(j in m) A1[0, j];", f"B1[i] = {a}(j in m; init = A1[n - 1, 0]) A1[i, j];", f"let x = A1[i, 0]; B1[i] = {a}(h in q) (A2[h] + x);",
                             f"let x = A1[n - 1, 0]; B1[i] = {a}(h in q) (A2[h] + x);", f"B1[i] = {a}(j in m) {b}(h in q) (A2[h] - A1[0, j]);", f"B1[i] = {a}(h in 3) A2[h];",
                             f"B1[i] = i > 0 ? A1[i - 1, 0] : {a}(h in q) A2[h];", f"if m > 2 {{ B1[i] = {a}(h in q) A1[i, m - 2]; }}"], 1)
    first.lines += r.sample([f"for h in q {{ B3[i, h] = {b}(j in m) A1[0, j]; }}", f"for h in q {{ B3[i, h] = {b}(j in m) (A1[i, j] + A2[0]); }}", f"for h in 0..min(i, q) {{ B3[i, h] = {b}(j in m) A1[i, j]; }}",
                             f"for h in q {{ B3[i, h] = h > 0 ? A2[h - 1] : 3; }}", ""], 1)
    second.lines += r.sample([f"B2[j] = {b}(h in q) A2[h];", f"B2[j] = {b}(i in n) A1[i, 0];", f"B2[j] = {b}(i in n) A1[i, m - 1 - j];", "B2[j] = 1;", f"B2[j] = {b}(h in q) (A1[n - 1, j] - A2[h]);"], 1)
    case.groups += r.sample([first, second], r.choice([1, 2, 2]))
    if r.random() < 0.4:
        last = case.new_group([])
        last.lines.append(r.choice([f"B4[] = {a}(h in q) A2[h];", f"B4[] = {a}(i in n, j in m) A1[i, j];", f"B4[] = {a}(i in n) {b}(j in m) A1[0, j];"]))
        case.groups.append(last)
    if r.random() < 0.75:
        used = " ".join(line for g in case.groups for line in g.lines)
        axes = [Axis("i", known(case, "n"))] if "[i" in used else []
        axes += [Axis(name, known(case, size), True) for name, size in (("j", "m"), ("h", "q")) if f"{name} in" in used or (name == "j" and second in case.groups)]
        put_schedule(case, Nest(case, axes).write([0, 1, 2, 3], keep=["A1", "A2"] if r.random() < 0.4 else []))


def kept(case):
    """Copies and kept tensors whose readers stand under conditions, in ranges, and over axes that are cut apart."""
    r, type_ = case.aim, case.aim.choice(["i32", "f32", "u8", "i64", "f16"])
    number = "f32" if type_ == "f16" else type_
    sizes(case, n=[1, 2, 5, 8, 33], m=[1, 2, 7, 16, 31, 64], dynamic=0.2)
    put_input(case, "A1", type_, ["n", "m"], ["i", "j"])
    put_input(case, "A2", type_, ["m"], ["j"])
    group = case.new_group([("i", "n", 0)])
    axes = [Axis("i", known(case, "n")), Axis("j", known(case, "m"), True)]
    names = iter(f"B{k}" for k in range(1, 9))

    def out(dims):
        name = next(names)
        put_output(case, name, number, dims)
        return name
    for k in range(r.choice([2, 2, 3])):
        a = word(r, number)
        form = r.choice(["value", "sum", "guarded", "inside", "part", "map", "map", "branch", "turned"])
        x = r.choice(["A1[i, j]", "A1[i, j]", "A2[j]", "(A1[i, j] + A2[j])"])
        if form == "value":
            group.lines.append(f"let v{k} = {a}(j in m) {x};")
            group.lines.append(f"{out(['n'])}[i] = v{k} + 1;")
        elif form == "sum":
            group.lines.append(f"{out(['n'])}[i] = {a}(j in m; init = {r.choice(['1', 'A1[i, 0]' if case.sizes['m'] else '1'])}) {x};")
        elif form == "guarded":
            group.lines.append(f"if i % 3 != 1 {{ {out(['n'])}[i] = {a}(j in m) {x}; }}")
        elif form == "inside":
            group.lines.append(f"{out(['n'])}[i] = {a}(j in m if {r.choice(['j <= i', 'A2[j] > 3', '(j & 1) == 0'])}) {x};")
        elif form == "part":
            group.lines.append(f"{out(['n'])}[i] = {a}(j in {r.choice(['0..min(i + 1, m)', 'min(i, m)..m', '0..m / 2'])}) {x};")
        elif form == "map":
            group.lines.append(f"for j in m {{ {out(['n', 'm'])}[i, j] = {x}; }}")
            axes[1].reduces = False
        elif form == "branch":
            name = out(["n"])
            group.lines.append(f"if i % 2 == 0 {{ {name}[i] = {a}(j in m) {x}; }} else {{ {name}[i] = {a}(j in m) A1[i, m - 1 - j]; }}")
        else:
            group.lines.append(f"for j in m {{ {out(['n', 'm'])}[i, j] = A1[i, m - 1 - j]; }}")
            axes[1].reduces = False
    case.groups.append(group)
    nest = Nest(case, axes)
    if r.random() < 0.3:
        case.dynamic.add("m")
    put_schedule(case, nest.write([0, 1, 2, 2, 3], keep=["A1", "A1", "A2"]), "m <= 64" if r.random() < 0.5 else "")
    case.arch = r.choice([None, *ARCHITECTURES])


def fill(case):
    case.aim.choice([nested, nested, along, along, empty, kept, kept])(case)

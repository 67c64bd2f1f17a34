"""Random programs of the language under random schedules, with sizes and arguments: class Case.

A case is made from one number. Its kernel is legal but for bounds that cannot be proved, now and then; its schedules are plausible, and redc
decides which are legal. Values are made so that a right answer is near the reference's: what is discontinuous (comparisons, rounding to
integers, an index of a maximum) looks only at elements as they were read, integers and constants, and floats are kept from overflowing.

Pieces are kept apart, so that a failing case can be reduced: see Case.smaller().
"""
import random
import re

import aimed
import nests

INTS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
FLOATS = ["f32", "f64"]
STORED = ["f16", "bf16"]
MOVED = ["f8e4m3", "f8e5m2", "c64", "c128"]
COMPUTING = ["bool", *INTS, *FLOATS]
SMALL = [1, 1, 2, 3, 4, 5, 7, 8, 13, 16, 33]
MOST_ELEMENTS = 1 << 18
LONG = [1, 2, 3, 5, 8, 11, 16, 31, 32, 33, 48, 64, 70, 100, 128, 129]

REDUCERS = {
    "pair": "reducer pair<T>(a: T, b: T) { identity (0, 0); combine(x, y) { let s = x.a + y.a; (s, x.b + y.b) } "
            "update(x, v) { (x.a + v, x.b + v * v) } }",
    "absmax": "reducer absmax<T>(m: T) { identity 0; combine(a, b) { max(abs(a), abs(b)) } }",
    "welford": "reducer welford(mean: f32, m2: f32, count: f32) { identity (0, 0, 0); combine(a, b) { let c = a.count + b.count; "
               "let d = b.mean - a.mean; let w = c > 0 ? b.count / c : 0; (a.mean + d * w, a.m2 + b.m2 + d * d * a.count * w, c) } "
               "update(a, x) { let c = a.count + 1; let d = x - a.mean; let mu = a.mean + d / c; (mu, a.m2 + d * (x - mu), c) } }",
    "affine": "ordered reducer affine(a: u32, b: u32) { identity (1, 0); combine(f, g) { (f.a * g.a, f.b * g.a + g.b) } }",
    "latest": "ordered reducer latest<T>(x: T) { identity 0; combine(a, b) { b != 0 ? b : a } }",
    "turned": "reducer turned(re: i32, im: i32) { identity (1, 0); combine(a, b) { (a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re) } }",
    "counted": "reducer counted(n: i32, total: i64) { identity (0, 0); combine(a, b) { (a.n + b.n, a.total + b.total) } "
               "update(s, x, wanted) { (s.n + (wanted ? 1 : 0), s.total + (wanted ? i64(x) : 0)) } }",
}


def computed(type_):
    return "f32" if type_ in STORED else type_


class Axis:
    """An axis of the generator's own book-keeping while it writes a schedule. extent: None where only a launch knows it."""

    def __init__(self, name, extent, parallel, depends=False):
        self.name, self.extent, self.parallel, self.depends, self.used = name, extent, parallel, depends, False


class Scope:
    """What an expression may use: index names, elements as read (exact), and named values that may be rounded."""

    def __init__(self, axes, values=()):
        self.axes, self.values = list(axes), list(values)  # (name, size, lower) and (name, type)


class Group:
    """Statements inside one nest of loops, with the outputs that they write."""

    def __init__(self, loops):
        self.loops, self.lines = loops, []


class Schedule:
    def __init__(self):
        self.name, self.when, self.directives, self.own_file = "", "", [], False

    def text(self, kernel):
        named = f" as {self.name}" if self.name else ""
        condition = f" when {self.when}" if self.when else ""
        return f"schedule {kernel}{named}{condition} {{ {' '.join(self.directives)} }}"


class Case:
    def __init__(self, number, features=()):
        self.number, self.features = number, features
        self.r, self.more = random.Random(number), random.Random(number + (1 << 40))
        self.name = f"k{number}"
        self.sizes, self.dynamic, self.fixed = {}, set(), set()
        self.inputs, self.outputs, self.scalars = {}, {}, {}
        self.reducers, self.groups, self.schedules, self.parameters = [], [], [], {}
        self.order, self.count = [], 0
        self.values = {}  # --arg of tensors
        self.options, self.arch = [], None
        self.aim = random.Random(number + (2 << 40))
        if random.Random(number + (3 << 40)).random() < 0.25:
            nests.fill(self)
        elif self.aim.random() < 0.3:
            aimed.fill(self)
        else:
            self.kernel()
            self.arch = self.aim.choice([None] * 4 + aimed.ARCHITECTURES)
        if self.aim.random() < 0.05:
            aimed.spoil(self)

    def chance(self, p):
        return self.r.random() < p

    @staticmethod
    def new_group(loops):
        return Group(loops)

    @staticmethod
    def new_schedule():
        return Schedule()

    def fresh(self, stem):
        self.count += 1
        return f"{stem}{self.count}"

    # --- Sizes and tensors ----------------------------------------------------------------------------------------

    def size(self, name, choices):
        if name not in self.sizes:
            self.sizes[name] = 0 if self.chance(0.015) else self.r.choice(choices)
            others = 1
            for size in self.sizes.values():
                others *= size or 1
            if others > MOST_ELEMENTS:  # one thread may have them all to itself, in the simulator
                self.sizes[name] = 2
            if self.are_dynamic and self.chance(0.7):
                self.dynamic.add(name)
        return name

    def element(self, type_):
        """How a tensor is filled."""
        if self.chance(0.85):
            return f"rand({self.number % 1000 + self.r.randrange(9)})"
        if type_ == "bool":
            return "i%3==0"
        return self.r.choice(["i%7", "iota" if type_ not in ("f16", "bf16") else "i%50", "i*3%11", "const(1)"]) if self.chance(0.9) or type_ not in FLOATS else "const(-0.0)"

    def load(self, axes, type_=None):
        """An element of an input at the axes: (text, type as computed)."""
        r = self.r
        known = [n for n, t in self.inputs.items() if t["axes"] == [a for a, _, _ in axes] and (type_ is None or t["type"] == type_)]
        if known and self.chance(0.6):
            name = r.choice(known)
        else:
            name = self.fresh("A")
            self.inputs[name] = self.tensor(name, axes, type_ or self.any_type())
        tensor = self.inputs[name]
        return f"{name}[{tensor['index']}]", computed(self.parameters.get(tensor["type"], tensor["type"]))

    def any_type(self):
        r = self.r
        if self.parameters and self.chance(0.5):
            return "T"
        return r.choice(["f32"] * 5 + ["i32"] * 3 + FLOATS + INTS + STORED * 2 + ["bool"])

    def tensor(self, name, axes, type_):
        """A new tensor whose dimensions hold the axes."""
        r = self.r
        order = list(axes)
        if self.chance(0.3):
            r.shuffle(order)
        dims, index = [], []
        for a, size, _ in order:
            form = r.random()
            if form < 0.06:
                dims.append(f"{size} + 2"), index.append(f"{a} + 1")
            elif form < 0.1:
                dims.append(size), index.append(f"{size} - 1 - {a}")
            else:
                dims.append(size), index.append(a)
        if len(order) == 2 and self.chance(0.06):
            dims, index = [f"{order[0][1]} * {order[1][1]}"], [f"{order[0][0]} * {order[1][1]} + {order[1][0]}"]
        strided, value = "", self.element(self.parameters.get(type_, type_))
        if dims and self.chance(0.12):
            if self.chance(0.3):
                strided = f" strided({', '.join(['_'] * (len(dims) - 1) + ['1'])})"
            else:
                strided = " strided"
                if len(dims) <= 2 and all(d in self.sizes for d in dims):
                    inner = self.sizes[dims[-1]]
                    strides = [r.choice([inner + 3, 2 * inner, inner]), 1] if len(dims) == 2 else [r.choice([1, 2, 3])]
                    value += f"@offset:{r.choice([0, 1, 4])},strides:{':'.join(map(str, strides))}"
        self.values[name] = value
        return {"type": type_, "axes": [a for a, _, _ in axes], "dims": dims, "index": ", ".join(index), "strided": strided}

    def output(self, type_, dims, is_read=False):
        name = self.fresh("B")
        strided = ""
        if dims and self.chance(0.06) and all(d in self.sizes for d in dims) and len(dims) == 1:
            strided = " strided"
            self.values[name] = f"{'rand(9)' if is_read else ''}@strides:{self.r.choice([1, 2, 3])}"
        elif is_read:
            self.values[name] = "rand(9)"
        self.outputs[name] = {"type": type_, "dims": dims, "strided": strided}
        return name

    def scalar(self, type_):
        name = self.fresh("s")
        self.scalars[name] = (type_, {"f": "0.75", "b": "true"}.get(type_[0], "3"))
        return name

    # --- Expressions ----------------------------------------------------------------------------------------------

    def literal(self, type_):
        return self.r.choice(["0.5", "1.5", "2", "0.25", "3"] if type_ in FLOATS else ["1", "2", "3", "5", "7"])

    def exact(self, type_, scope):
        """An element as read, an axis or an integer: nothing that was rounded."""
        r = self.r
        ints = [v for v, t in scope.values if t == type_ and t in INTS]
        if ints and self.chance(0.3):
            return r.choice(ints)
        if type_ == "i64" and scope.axes and self.chance(0.2):
            return r.choice(scope.axes)[0]
        return self.load(scope.axes, type_ if type_ in COMPUTING else None)[0]

    def condition(self, scope, depth=1):
        r = self.r
        form = r.random()
        if depth > 0 and form < 0.15:
            return f"(({self.condition(scope, depth - 1)}) {r.choice(['&&', '||', '==', '!='])} ({self.condition(scope, depth - 1)}))"
        if form < 0.25:
            return f"!({self.condition(scope, 0)})"
        if form < 0.5 and scope.axes:
            a = r.choice(scope.axes)[0]
            return r.choice([f"{a} % 3 != 1", f"{a} < 9", f"{a} >= 2", f"({a} & 1) == 0"])
        if form < 0.6:
            return self.exact("bool", scope)
        type_ = r.choice(["f32", "i32", "u8", "i64", "f64"])
        x = self.exact(type_, scope)
        if type_ in FLOATS and self.chance(0.2):
            return f"{r.choice(['isnan', 'isinf'])}({x})"
        return f"{x} {r.choice(['<', '<=', '>', '>=', '==', '!='])} {self.literal(type_)}"

    def value(self, type_, scope, depth=2):
        """An expression of a type that computes."""
        r = self.r
        named = [v for v, t in scope.values if t == type_]
        if depth <= 0 or self.chance(0.25):
            if named and self.chance(0.7):
                return r.choice(named)
            if type_ == "f32" and self.chance(0.3):
                stored = r.choice(STORED)
                return self.load(scope.axes, stored)[0]
            return self.load(scope.axes, type_)[0]
        x = self.value(type_, scope, depth - 1)
        y = self.literal(type_) if type_ != "bool" and self.chance(0.4) else self.value(type_, scope, depth - 1)
        if type_ == "bool":
            return r.choice([f"({x} && {y})", f"({x} || {y})", f"!{x}", f"({x} ^ {y})", f"({x} & {y})", f"({x} | {y})", f"({x} == {y})",
                             f"({self.condition(scope)})"])
        if self.chance(0.12):
            return f"({self.condition(scope)} ? {x} : {y})"
        if type_ in FLOATS:
            return r.choice([f"({x} + {y})", f"({x} - {y})", f"({x} * {y})", f"({x} / (abs({y}) + 1))", f"max({x}, {y})", f"min({x}, {y})",
                             f"fmax({x}, {y})", f"fmin({x}, {y})", f"abs({x})", f"-{x}", f"fma({x}, {y}, {x})", f"exp(-abs({x}))",
                             f"exp2(min({x}, 1))", f"log(abs({x}) + 1)", f"log2(abs({x}) + 2)", f"sqrt(abs({x}) + 0.5)", f"rsqrt(abs({x}) + 0.5)",
                             f"sin(min(max({x}, -9), 9))", f"cos(min(max({x}, -9), 9))", f"tanh({x})", f"erf({x})", f"pow(abs({x}) + 0.5, 1.5)",
                             f"{r.choice(['floor', 'ceil', 'trunc', 'round'])}({self.exact(type_, scope)} * 4)",
                             f"{type_}({self.exact(r.choice(INTS), scope)} % 9)", f"{type_}({self.exact(r.choice(FLOATS), scope)})",
                             f"{type_}(f16({self.exact(type_, scope)}))"])
        return r.choice([f"({x} + {y})", f"({x} - {y})", f"({x} * {y})", f"({x} / {y})", f"({x} % {y})", f"({x} & {y})", f"({x} | {y})",
                         f"({x} ^ {y})", f"({x} << {y})", f"({x} >> {r.choice([y, '1', '3'])})", f"max({x}, {y})", f"min({x}, {y})", f"~{x}",
                         f"-{x}", f"abs({x})", f"{type_}({self.exact(r.choice(INTS), scope)})", f"{type_}({self.exact(r.choice(FLOATS), scope)} * 9)",
                         f"{type_}({self.condition(scope)})"])

    # --- Reductions -----------------------------------------------------------------------------------------------

    def red_axes(self, count=None):
        r = self.r
        count = count or r.choice([1, 1, 1, 2])
        return [("j", self.size("m", LONG), 0), ("h", self.size("t", [1, 2, 3, 5, 8]), 0)][:count]

    def binder(self, axes, scope, plain=False):
        """'j in m, h in 0..t' with, now and then, ranges that are no plain size."""
        out = []
        for a, size, _ in axes:
            form = self.r.random()
            if plain or form > 0.2:
                out.append(f"{a} in {size}")
            elif form < 0.04 or not scope.axes:
                out.append(f"{a} in {self.r.choice([low for low in (0, 1, 2) if low <= self.sizes[size]])}..{size}")
            elif form < 0.1:
                out.append(f"{a} in 0..min({scope.axes[0][0]} + 1, {size})"), self.dependent.add(a)
            elif form < 0.15:
                out.append(f"{a} in min({scope.axes[-1][0]}, {size})..{size}"), self.dependent.add(a)
            else:
                out.append(f"{a} in 0..{size} / 2")
        return ", ".join(out)

    def reduction(self, type_, scope, plain=False):
        """A reduction of one value."""
        r = self.r
        axes = self.red_axes()
        inner = Scope(scope.axes + axes, scope.values)
        init = ""
        if type_ == "bool":
            name, body = r.choice(["any", "all"]), self.condition(inner)
        elif type_ in INTS:
            name, body = r.choice(["sum", "sum", "prod", "min", "max", "and", "or", "xor"]), self.value(type_, inner)
        else:
            name, body = r.choice(["sum"] * 4 + ["min", "max", "fmin", "fmax", "prod"]), self.value(type_, inner)
            if name == "prod":
                body = f"(1 + 0.01 * tanh({body}))"
        if type_ in ("i32", "f32", "i64") and self.chance(0.06):
            name = "absmax" if type_ != "i64" or self.chance(0.5) else "latest"
            self.reducers.append(name)
        if type_ != "bool" and self.chance(0.12) and name != "absmax":  # whose identity is none to what is negative
            init = f"; init = {self.literal(type_) if self.chance(0.5) or not scope.values else self.value(type_, scope, 0)}"
        guard = f" if {self.condition(inner)}" if self.chance(0.15) and not plain else ""
        if type_ != "bool" and len(axes) == 2 and self.chance(0.3) and name in ("sum", "min", "max"):
            first, second = axes
            return f"{name}({first[0]} in {first[1]}{init}) {r.choice(['sum', 'max', 'min'])}({second[0]} in {second[1]}) ({body})"
        if self.chance(0.15) and type_ != "bool":
            x = self.fresh("x")
            body = f"{{ let {x} = {body}; {x if name == 'prod' and type_ in FLOATS else r.choice([x, f'{x} + {x}', f'max({x}, {self.literal(type_)})'])} }}"
        else:
            body = f"({body})"
        return f"{name}({self.binder(axes, scope, plain)}{guard}{init}) {body}"

    # --- Groups of statements ---------------------------------------------------------------------------------------

    def target(self, type_, group, extra=(), is_read=False):
        axes = [*group.loops, *extra]
        order = list(axes)
        if self.chance(0.25):
            self.r.shuffle(order)
        stored = type_
        if type_ == "f32" and self.chance(0.2):
            stored = self.r.choice(STORED)
        name = self.output(stored, [s for _, s, _ in order], is_read)
        return f"{name}[{', '.join(a for a, _, _ in order)}]"

    def named(self, text, type_, group, scope):
        name = self.fresh("v")
        group.lines.append(f"let {name} = {text};")
        scope.values.append((name, type_))
        return name

    def statement(self, group, scope):
        r = self.r
        type_ = r.choice(["f32"] * 6 + ["i32"] * 3 + ["f64", "i64", "u32", "u8", "i16", "bool"])
        number = type_ if type_ != "bool" else "i32"
        kind = r.choice(["sum"] * 4 + ["chain", "chain", "map", "map", "fold", "tuple", "arg", "user", "guard", "branch", "join", "softmax", "gather",
                                       "pad", "move", "ordered", "count", "mean", "scalar", "asked"])
        if kind == "asked" and type_ == "bool":
            word, more = r.choice(["&&", "||"]), self.condition(scope)
            group.lines.append(f"{self.target(type_, group)} = ({more}) {word} {self.reduction(type_, scope)};")
        elif kind == "asked":
            other = self.reduction(type_, scope) if self.chance(0.3) else self.literal(type_)
            group.lines.append(f"{self.target(type_, group)} = {self.condition(scope)} ? {self.reduction(type_, scope)} : {other};")
        elif kind == "sum" and self.more.random() < 0.2:  # more bits than it adds up
            axes = self.red_axes()
            x, t = self.load(scope.axes + axes, self.more.choice(["i8", "u8", "i16", "u16"]))
            wide = "u64" if t[0] == "u" and self.more.random() < 0.5 else "i64"
            group.lines.append(f"{self.target(wide, group)} = sum({self.binder(axes, scope)}) {wide}({x});")
        elif kind == "sum":
            group.lines.append(f"{self.target(type_, group)} = {self.reduction(type_, scope)};")
        elif kind == "chain":
            first = self.named(self.reduction(number, scope), number, group, scope)
            inner = Scope(scope.axes, scope.values)
            second = self.named(self.reduction(number, inner), number, group, scope)
            group.lines.append(f"{self.target(number, group)} = {r.choice([f'{first} + {second}', f'max({first}, {second})', self.value(number, scope)])};")
        elif kind in ("map", "softmax"):
            if kind == "softmax":
                number = "f32"
                x, _ = self.load(scope.axes + self.red_axes(1), "f32")
                peak = self.named(f"max(j in m) {x}", "f32", group, scope)
                power = self.more.choice(["exp", "exp", "exp2"])
                total = self.named(f"sum(j in m) {power}({x} - {peak})", "f32", group, scope)
                value = f"{power}({x} - {peak}) / {total}"
                self.rescaled.append((peak, total))
                self.shared.append(x.split("[")[0])
                extra = self.red_axes(1)
            else:
                extra = self.red_axes()
                value = self.value(number, Scope(scope.axes + extra, scope.values))
            loops = self.binder(extra, scope, self.more.random() < 0.6)
            group.lines.append(f"for {loops} {{ {self.target(number, group, extra)} = {value}; }}")
            self.mapped |= {a for a, _, _ in extra}
        elif kind == "fold":
            op = r.choice(["+=", "min=", "max=", "+=", "-="] + (["*=", "^=", "&=", "|="] if number in INTS else ["fmin=", "fmax="]))
            group.lines.append(f"{self.target(number, group, is_read=True)} {op} {self.reduction(number, scope)};")
        elif kind == "tuple":
            a, b = self.fresh("v"), self.fresh("v")
            axes = self.red_axes()
            inner = Scope(scope.axes + axes, scope.values)
            drop = self.chance(0.2)
            group.lines.append(f"let ({a}, {'_' if drop else b}) = {r.choice(['sum', 'max', 'min'])}({self.binder(axes, scope)}) "
                               f"({self.value(number, inner)}, {self.value(number, inner)});")
            scope.values += [(a, number)] + ([] if drop else [(b, number)])
            group.lines.append(f"{self.target(number, group)} = {a}{'' if drop else f' - {b}'};")
        elif kind == "arg":
            x, t = self.load(scope.axes + self.red_axes(1), r.choice(["f32", "i32", "f16", "u8", "f64", "i64"]))
            which, index = r.choice(["argmax", "argmin"]), r.choice(["j", "i32(j)", "j"])
            place = self.target("i64" if index == "j" else "i32", group)
            if self.more.random() < 0.2:  # indices that do not grow
                index = index.replace("j", self.more.choice(["m - 1 - j", "j * 7 % 5 + 10 * j / 3", "j / 2"]))
            value = "_" if self.chance(0.3) else self.target(t, group).replace("_", "")
            group.lines.append(f"({value}, {place}) = {which}({self.binder(self.red_axes(1), scope)}) ({x}, {index});")
        elif kind == "user":
            a, b = self.fresh("v"), self.fresh("v")
            axes = self.red_axes()
            inner = Scope(scope.axes + axes, scope.values)
            if self.chance(0.3):
                self.reducers.append("welford")
                c = self.fresh("v")
                group.lines.append(f"let ({a}, {b}, {c}) = welford({self.binder(axes, scope)}) {self.load(inner.axes, 'f32')[0]};")
                group.lines.append(f"{self.target('f32', group)} = {b} / ({c} + 1) + {a};")
                return
            if self.chance(0.3):
                self.reducers.append("turned")
                group.lines.append(f"let ({a}, {b}) = turned({self.binder(axes, scope)}) ({self.value('i32', inner, 1)}, {self.value('i32', inner, 1)});")
                group.lines.append(f"{self.target('i32', group)} = {a} ^ {b};")
                return
            self.reducers.append("pair")
            group.lines.append(f"let ({a}, {b}) = pair({self.binder(axes, scope)}) ({self.value(number, inner, 1)});")
            group.lines.append(f"{self.target(number, group)} = {a} + {b};")
        elif kind == "count":
            self.reducers.append("counted")
            a, b = self.fresh("v"), self.fresh("v")
            axes = self.red_axes()
            inner = Scope(scope.axes + axes, [])
            group.lines.append(f"let ({a}, {b}) = counted({self.binder(axes, scope)}) ({self.exact('i32', inner)}, {self.condition(inner)});")
            group.lines.append(f"{self.target('i64', group)} = {b} + i64({a});")
        elif kind == "ordered":
            self.reducers.append("affine")
            a, b = self.fresh("v"), self.fresh("v")
            axes = self.red_axes(1)
            group.lines.append(f"let ({a}, {b}) = affine({self.binder(axes, scope, True)}) "
                               f"({self.load(scope.axes + axes, 'u32')[0]}, {self.load(scope.axes + axes, 'u32')[0]});")
            group.lines.append(f"({self.target('u32', group)}, {self.target('u32', group)}) = ({a}, {b});")
        elif kind == "guard":
            group.lines.append(f"if {self.condition(scope)} {{ {self.target(type_, group)} = {self.reduction(type_, scope)}; }}")
        elif kind == "branch":
            where = self.target(number, group)
            last = f"else if {self.condition(scope)} {{ {where} = {self.value(number, scope)}; }} " if self.chance(0.3) else ""
            group.lines.append(f"if {self.condition(scope)} {{ {where} = {self.reduction(number, scope)}; }} {last}"
                               f"else {{ {where} = {self.value(number, scope)}; }}")
        elif kind == "join":
            axes = self.red_axes(1)
            names = []
            for _ in range(r.choice([2, 2, 3])):
                names.append(self.named(f"{r.choice(['sum', 'min', 'max'])}({axes[0][0]} in {axes[0][1]}) ({self.value(number, Scope(scope.axes + axes, []), 1)})",
                                        number, group, scope))
            self.joins.append(names)
            group.lines.append(f"{self.target(number, group)} = {' + '.join(names)};")
        elif kind == "gather":
            axes = self.red_axes(1)
            place, _ = self.load(scope.axes + axes, r.choice(["i32", "u8", "i64", "i16"]))
            table = self.fresh("A")
            size = self.size("w", [1, 2, 3, 9, 40])
            self.inputs[table] = {"type": number, "axes": None, "dims": [size], "index": "", "strided": ""}
            self.values[table] = self.element(number)
            index = f"{table}[min(max(i64({place}), 0), {size} - 1)]"
            if self.more.random() < 0.25:
                p = self.fresh("x")
                group.lines.append(f"{self.target(number, group)} = sum({axes[0][0]} in {axes[0][1]}) {{ let {p} = i64({place}); {table}[min(max({p}, 0), {size} - 1)] }};")
                return
            if self.chance(0.3):
                index = f"(i64({place}) >= 0 && i64({place}) < {size} ? {table}[i64({place})] : {self.literal(number)})"
            group.lines.append(f"{self.target(number, group)} = sum({axes[0][0]} in {axes[0][1]}) ({index});")
        elif kind == "pad":
            axes = self.red_axes(1)
            name = self.output(number, [s for _, s, _ in group.loops] + ["m + 2"])
            at = "".join(f"{a}, " for a, _, _ in group.loops)
            group.lines += [f"{name}[{at}0] = {self.literal(number)};", f"{name}[{at}m + 1] = {self.value(number, scope, 1)};",
                            f"for j in m {{ {name}[{at}j + 1] = {self.value(number, Scope(scope.axes + axes, scope.values), 1)}; }}"]
            self.mapped.add("j")
        elif kind == "move":
            moved = r.choice(MOVED + STORED + ["f32", "u8", "bool", "i64"])
            extra = self.red_axes()
            axes = scope.axes + extra
            r.shuffle(axes)
            x = self.load(axes, moved)[0]
            order = [*group.loops, *extra]
            r.shuffle(order)
            name = self.output(moved, [s for _, s, _ in order])
            group.lines.append(f"for {', '.join(f'{a} in {s}' for a, s, _ in extra)} {{ {name}[{', '.join(a for a, _, _ in order)}] = {x}; }}")
            self.mapped |= {a for a, _, _ in extra}
        elif kind == "mean":
            s = self.named(self.reduction("f32", scope, True), "f32", group, scope)
            group.lines.append(f"{self.target('f32', group)} = {s} / (m + 1) * {self.scalar('f32')};")
        elif kind == "scalar":
            s = self.scalar(number)
            group.lines.append(f"{self.target(number, group)} = {self.value(number, Scope(scope.axes, scope.values + [(s, number)]))} + {s};")

    def kernel(self):
        r = self.r
        self.are_dynamic = self.chance(0.35)
        self.dependent, self.mapped, self.joins, self.shared, self.rescaled = set(), set(), [], [], []
        if self.chance(0.15):
            self.parameters["T"] = r.choice(["f32", "f16", "bf16", "f64", "i32", "u8", "i64"])
        every = []
        for number in range(r.choice([1, 1, 1, 1, 2])):
            rank = r.choice([0, 1, 1, 1, 1, 2, 2, 3])
            axes = [(a, self.size(s, SMALL), 0) for a, s in zip("ikl", "npq")][:rank]
            group = Group(axes)
            scope = Scope(axes)
            for _ in range(r.choice([1, 1, 1, 2, 2, 3])):
                self.statement(group, scope)
            self.groups.append(group)
            every += [a for a in axes if a not in every]
        for _ in range(r.choice([0, 1, 1, 1, 1, 1, 2, 2])):
            self.schedule(every)
        self.size("m", LONG)

    # --- Schedules ------------------------------------------------------------------------------------------------

    def known(self, size):
        return None if size in self.dynamic - self.fixed else self.sizes.get(size)

    def condition_of_launch(self):
        r = self.r
        words = self.words()
        size = r.choice(sorted(s for s in self.sizes if s in words) or ["sms"])
        terms = [f"{size} % 4 == 0", f"{size} >= 2", f"{size} <= 256", f"{size} <= 64", "sms >= 4", "arch >= 75", "shared >= 4096", f"min({size}, 3) < 3",
                 f"!({size} > 7)", f"({size} > 3 ? 1 : 0) == 1"]
        for name, t in self.inputs.items():
            if name not in words:
                continue
            terms += [f"aligned({name}, 16)", f"dense({name})", f"bytes({t['type']}) <= 4"] + ([f"stride({name}, 0) > 0"] if t["dims"] else [])
        if self.parameters:
            terms += ["T == f16", "bytes(T) == 4", "T != f64"]
        return r.choice([" && ", " && ", " || "]).join(r.choice(terms) for _ in range(r.choice([1, 1, 2, 3])))

    def used_tensors(self, with_outputs=True):
        words = self.words()
        return sorted(n for n in (*self.inputs, *(self.outputs if with_outputs else ())) if n in words)

    def schedule(self, outer):
        r = self.r
        s = Schedule()
        s.own_file = self.chance(0.2)
        if self.schedules or self.chance(0.3):
            s.name = f"v{len(self.schedules)}"
            s.when = self.condition_of_launch() if self.chance(0.7) else ""
        self.fixed = set()
        free = sorted(size for size in self.dynamic if size in self.words() and self.sizes.get(size))
        if s.name and free and self.chance(0.3):  # a size that this schedule knows, or a wrong one
            size = r.choice(free)
            self.fixed = {size}
            term = f"{size} == {self.sizes[size] + (1 if self.chance(0.1) else 0)}"
            s.when = f"{term} && {s.when}" if s.when and "||" not in s.when else term
        self.schedules.append(s)
        axes = [Axis(a, self.known(n), True) for a, n, _ in outer]
        axes += [Axis(a, self.known(n), a in self.mapped, a in self.dependent) for a, n in (("j", "m"), ("h", "t")) if a in self.words()]
        put = s.directives.append
        threads, blocks = ["x", "y", "z"], ["x", "y", "z"]
        self.made, self.free_threads, self.thread_count, self.over_grid = 0, threads, 1, []
        if self.joins and self.chance(0.6):
            put(f"join {', '.join(self.joins[0])};")
        if self.rescaled and self.more.random() < 0.6:
            put(f"join {', '.join(self.rescaled[0])};")
        style = r.random()
        if "shared" in self.features and len([a for a in axes if a.parallel]) > 1 and self.more.random() < 0.15:
            self.tile_through_shared(axes, blocks, put)
        elif style < 0.35 and outer:
            # a row a block, or some rows a block, and lanes along the reduction
            j = next((a for a in axes if a.name == "j"), None)
            put(f"bind {outer[0][0]} -> block.x;")
            axes[0].used = True
            blocks.remove("x")
            if j:
                width = r.choice([4, 8, 16, 32, 32, 64, 100, 128])
                if self.chance(0.3):
                    put("split j by 4 -> jc, jv;"), put(f"split jc by {width} -> jo, jt;"), put("bind jt -> thread.x;"), put("vectorize jv;")
                else:
                    put(f"split j by {width} -> jo, jt;"), put("bind jt -> thread.x;")
                threads.remove("x")
                self.thread_count *= width
                if self.shared and self.chance(0.7):
                    put(f"stage {r.choice(self.shared)} at {outer[0][0]} in registers{self.kept_depth()};")
                    s.when = s.when or "m <= 512"
                    s.name = s.name or "kept"
                axes.remove(j)
                over_grid = "combine" in self.features and not j.parallel and self.more.random() < 0.4
                if over_grid:
                    blocks.remove("y")
                    forms = ["last_block", "flag", "second_kernel"] + ["atomic"] * (3 if re.search(r"(?:min|max|[-+&|^])= ", self.body()) else 1)
                    put("bind jo -> block.y;"), put(f"combine jo by {self.more.choice(forms)};")
                else:
                    axes.append(Axis("jo", None, j.parallel))
        elif style < 0.5 and outer:
            # columns: an output axis inside the reduction
            a = axes[0]
            put(f"split {a.name} by {r.choice([2, 4])} -> ac, av;"), put(f"split ac by {r.choice([4, 8, 32])} -> ao, at;")
            put("bind ao -> block.x;"), put("bind at -> thread.x;")
            threads.remove("x"), blocks.remove("x")
            if self.chance(0.8):
                put("reorder j, av;")
            put(r.choice(["vectorize av;", "unroll av;", "unroll j by 4;"]))
            axes.pop(0)
        for _ in range(r.choice([0, 1, 2, 3, 4, 6, 8])):
            self.directive(axes, blocks, put)

    def kept_depth(self):
        """Of how many steps registers hold what they keep; shared memory has the others."""
        return f" depth {self.more.choice([1, 1, 2, 3, 7])}" if self.more.random() < 0.3 else ""

    def tile_through_shared(self, axes, blocks, put):
        """Tiles of two parallel axes, copied to shared memory, with the copy's axes and the output's scheduled on their own."""
        m = self.more
        a, b = m.sample([x for x in axes if x.parallel], 2)
        f, g = m.choice([2, 4, 8, 16, 32]), m.choice([4, 8, 16, 32])
        tensors = self.used_tensors(False)
        if not tensors:
            return
        ahead = ""
        put(f"tile {a.name} by {f}, {b.name} by {g} -> ao, bo, ai, bi;")
        if m.random() < 0.6:
            put("fuse ao, bo -> t;")
            if m.random() < 0.3:  # blocks take tiles in turn, and fill those of later turns ahead
                put(m.choice(["split t by 3 -> turn, g;  reorder g, turn;", "split t into 3 -> g, turn;", "split t by 2 -> g, turn;"])), put("bind g -> block.x;")
                at, ahead = "turn", m.choice(["", " depth 2", " depth 2", " depth 3", " depth 8"])
            else:
                put("bind t -> block.x;")
                at = "t"
        else:
            put("bind ao -> block.x;"), put("bind bo -> block.y;")
            blocks.remove("y")
            at = m.choice(["ao", "bo", "bo"])
        blocks.remove("x")
        layout = m.choice(["", "", " unit 2 along ai", " unit 2 along bi", " unit 4 along bi", " unit 8 along ai"]) + \
            m.choice(["", " pad 1", " pad 2", " pad 1 along ai", " swizzle 2,0,2", " swizzle 1,1,2", " swizzle 5,0,5"])
        layout += ahead + (" by cp_async" if "async" in self.features and m.random() < (0.7 if ahead else 0.3) else "")
        put(f"stage {m.choice(tensors)} at {at} in shared as S{layout};")
        form = m.randrange(4)
        if form == 1:
            put("bind S.bi -> thread.x;"), put(f"split S.ai by {m.choice([1, 2, 4])} -> sr, sy;"), put("bind sy -> thread.y;")
            if m.random() < 0.5:
                put("unroll sr;")
        elif form == 2:
            put("split S.ai by 2 -> sr, su;"), put(f"split S.bi by {m.choice([2, 4])} -> sc, sv;"), put("reorder sr, sc, su, sv;")
            put("fuse sr, sc -> st;"), put("bind st -> thread.x;"), put(m.choice(["vectorize su, sv;", "vectorize sv;"]))
        elif form == 3:
            put("fuse S.ai, S.bi -> st;"), put("split st by 32 -> sr, sx;"), put("bind sx -> thread.x;")
        outputs = [o for o in self.outputs if o in self.words()]
        y = m.choice(["", "", f"{m.choice(outputs)}."])
        if m.random() < 0.5:
            put(f"bind {y}ai -> thread.x;"), put(f"split {y}bi by {m.choice([1, 2, 4])} -> yr, yy;"), put("bind yy -> thread.y;")
        elif m.random() < 0.6:
            put(f"split {y}ai by {m.choice([2, 4])} -> yc, yv;"), put(f"fuse {m.choice([f'{y}bi, yc', f'yc, {y}bi'])} -> yn;")
            put("bind yn -> thread.x;"), put("vectorize yv;")
        self.free_threads.clear()
        for axis in (a, b):
            axes.remove(axis)

    def stage_names(self):
        return sorted(w for w in self.words() if re.fullmatch(r"[Bv]\d+", w))

    def directive(self, axes, blocks, put):
        r = self.r
        candidates = [a for a in axes if not a.used]
        if not candidates:
            return
        a = r.choice(candidates)
        extra = [f for f in self.features for _ in range(2)]
        action = r.choice(["split"] * 3 + ["thread"] * 4 + ["block"] * 2 + ["unroll", "into", "into", "vectorize", "reorder", "fuse", "tile", "allreduce",
                                                                           "registers"] + extra)
        n = self.made
        self.made += 1
        own = self.stage_names() if a.name in "jh" and self.more.random() < 0.12 else []
        if own:  # an axis of one stage
            own = f"{self.more.choice(own)}.{a.name}"
            put(self.more.choice([f"unroll {own} by 2;", f"split {own} by 4 -> g{n}, w{n};", f"split {own} into 3 -> g{n}, w{n};", f"vectorize {own};"]))
            return
        if action == "into" and self.more.random() < 0.15:  # vectors in pieces of a launch's length
            put(f"split {a.name} into {self.more.choice([2, 3])} -> g{n}, w{n};"), put(f"split w{n} by 4 -> c{n}, z{n};"), put(f"vectorize z{n};")
            axes[axes.index(a):axes.index(a) + 1] = [Axis(f"g{n}", None, a.parallel), Axis(f"c{n}", None, a.parallel)]
            return
        if action in ("split", "into"):
            o, i = Axis(f"x{n}", None, a.parallel, a.depends), Axis(f"y{n}", None, a.parallel)
            if action == "split":
                factor = r.choice([2, 3, 4, 5, 8, 16, 32, 32, 64])
                o.extent, i.extent = a.extent and -(-a.extent // factor), factor
                text = str(factor) if self.chance(0.9) else f"min({factor}, {factor} * sms)"
            else:
                factor = r.choice([2, 3, 4, 8, 16, 32])
                o.extent, i.extent = factor, a.extent and -(-a.extent // factor)
                text = str(factor)
                if self.chance(0.2):
                    text, o.extent = f"min(extent({a.name}), {factor} * max(1, sms / 100))", None
            along = ""
            if action == "split" and factor & (factor - 1) == 0 and text == str(factor) and self.more.random() < 0.15:  # one piece more at most
                along, o.extent = f" along {self.more.choice(self.used_tensors())}", a.extent and (a.extent + 2 * factor - 2) // factor
            put(f"split {a.name} {'by' if action == 'split' else 'into'} {text}{along} -> {o.name}, {i.name};")
            at = axes.index(a)
            axes[at:at + 1] = [o, i]
        elif action == "tile" and len(candidates) > 1:
            b = r.choice([x for x in candidates if x is not a])
            f, g = r.choice([2, 4, 8, 32]), r.choice([2, 4, 8, 32])
            names = [f"p{n}", f"q{n}", f"r{n}", f"u{n}"]
            put(f"tile {a.name} by {f}, {b.name} by {g} -> {', '.join(names)};")
            made = [Axis(names[0], a.extent and -(-a.extent // f), a.parallel), Axis(names[1], b.extent and -(-b.extent // g), b.parallel),
                    Axis(names[2], f, a.parallel), Axis(names[3], g, b.parallel)]
            axes.remove(b)
            at = axes.index(a)
            axes[at:at + 1] = made
        elif action == "thread" and self.free_threads and (a.extent or self.chance(0.1)) and self.thread_count * (a.extent or 1) <= 1024:
            self.thread_count *= a.extent or 1
            dimension = r.choice([d for d in self.free_threads if d != "z" or (a.extent or 1) <= 64] or [None])
            if dimension:
                self.free_threads.remove(dimension)
                put(f"bind {a.name} -> thread.{dimension};")
                a.used = True
        elif action == "block" and blocks and (a.parallel or "grid" in self.features or self.chance(0.05)):
            put(f"bind {a.name} -> block.{blocks.pop(0)};")
            a.used = True
            if not a.parallel:
                self.over_grid.append(a.name)
        elif action == "unroll":
            put(f"unroll {a.name}{r.choice(['', ' by 2', ' by 4', ' by 3'])};")
            a.used = True
        elif action == "vectorize" and (a.extent or 99) <= 16:
            put(f"vectorize {a.name};")
            a.used = True
        elif action == "reorder" and len(axes) > 1:
            put(f"reorder {', '.join(x.name for x in r.sample(axes, r.randrange(2, min(len(axes), 4) + 1)))};")
        elif action == "fuse" and len(axes) > 1:
            at = r.randrange(len(axes) - 1)
            x, y = axes[at], axes[at + 1]
            if x.used or y.used or x.parallel != y.parallel:
                return
            both = Axis(f"f{n}", x.extent and y.extent and x.extent * y.extent, x.parallel)
            put(f"fuse {x.name}, {y.name} -> {both.name};")
            axes[at:at + 2] = [both]
        elif action == "allreduce":
            bound = [x.name for x in axes if x.used and not x.parallel]
            if bound:
                put(f"allreduce {', '.join(r.sample(bound, r.randrange(1, len(bound) + 1)))} by {r.choice(['shuffle', 'tree', 'auto', 'auto'])};")
        elif action == "registers" and self.used_tensors(False) and self.chance(0.3):
            put(f"stage {r.choice(self.used_tensors(False))} at {r.choice(axes).name} in registers{self.kept_depth()};")
        elif action in ("shared", "async") and self.used_tensors(False):
            swizzle = r.choice(["", "", " pad 1", f" pad 3 along {r.choice(axes).name}", " swizzle 2,0,3", " swizzle 5,0,5"])
            asynchronous = " by cp_async" if "async" in self.features and self.more.random() < 0.5 else ""
            along = self.more.choice([" along 4", " along 16", " along 8 pad 1"]) if self.more.random() < 0.15 else ""
            depth = self.more.choice([" depth 2", " depth 3", " depth 5"]) if self.more.random() < 0.25 else ""
            put(f"stage {r.choice(self.used_tensors(self.more.random() < 0.05))} at {r.choice(axes).name} in shared{along or swizzle}{depth}{asynchronous};")
        elif action == "combine" and (self.over_grid or self.more.random() < 0.1):
            put(f"combine {self.more.choice(self.over_grid or [a.name])} by {r.choice(['last_block', 'flag', 'second_kernel', 'atomic'])};")
            stages = sorted(set(re.findall(r"let (\w+) = \w+\(", " ".join(line for group in self.groups for line in group.lines))))
            if stages and self.more.random() < 0.3:
                put(f"unroll {self.more.choice(stages)}.combine by {self.more.choice([1, 2, 3, 16, 64])};")
        elif action == "cache":
            put(f"cache {r.choice(self.used_tensors())} by {r.choice(['evict_first', 'evict_last', 'no_allocate', 'streaming'])};")
        elif action == "blocks":
            put(f"blocks {r.choice([1, 2, 4])};")

    # --- Text -----------------------------------------------------------------------------------------------------

    def body(self):
        out = []
        for group in self.groups:
            text = " ".join(group.lines)
            if group.loops and group.lines:
                text = f"for {', '.join(f'{a} in {s}' for a, s, _ in group.loops)} {{ {text} }}"
            out.append(text)
        return " ".join(t for t in out if t)

    def words(self):
        """The words of the statements."""
        return set(re.findall(r"\w+", self.body()))

    def kernel_text(self):
        body, words = self.body(), self.words()
        inputs = [f"{n}: {t['type']}[{', '.join(t['dims'])}]{t['strided']}" for n, t in self.inputs.items() if n in words]
        inputs += [f"{n}: {t}" for n, (t, _) in self.scalars.items() if n in words]
        outputs = [f"{n}: {t['type']}[{', '.join(t['dims'])}]{t['strided']}" for n, t in self.outputs.items() if n in words]
        inputs += [f"{s}: size" for s in self.orphans(body, inputs + outputs)]
        return f"kernel {self.name}{'<T>' if self.parameters else ''}({', '.join(inputs)}) -> ({', '.join(outputs)}) {{ {body} }}"

    def files(self):
        """The texts of the program's files: the program, and one with schedules of their own where there are such."""
        words = self.words()
        reducers = [REDUCERS[n] for n in dict.fromkeys(self.reducers) if n in words]
        own = [s.text(self.name) for s in self.schedules if s.own_file]
        return ["\n".join([*reducers, self.kernel_text()] + [s.text(self.name) for s in self.schedules if not s.own_file]) + "\n"] + \
            (["\n".join(own) + "\n"] if own else [])

    def orphans(self, body, parameters):
        """Sizes that no dimension gives alone, nor names where -D gives them."""
        dims = [(re.search(r"\[(.*?)\]", p) or [None, ""])[1] for p in parameters]
        alone = {d.strip() for dim in dims for d in dim.split(",")}
        named = set(re.findall(r"\w+", " ".join(dims)))
        words = named | set(re.findall(r"\w+", body))
        return [s for s in self.sizes if s in words and s not in (alone if s in self.dynamic else named)]

    def text(self):
        return "\n".join(self.files())

    def arguments(self):
        words = set(re.findall(r"\w+", self.kernel_text()))
        out = []
        for name, value in self.sizes.items():
            if name in words:
                out += ["--size" if name in self.dynamic else "-D", f"{name}={value}"]
        for name, type_ in self.parameters.items():
            out += ["-D", f"{name}={type_}"]
        for name, value in self.values.items():
            if name in words:
                out += ["--arg", f"{name}={value}"]
        for name, (_, value) in self.scalars.items():
            if name in words:
                out += ["--arg", f"{name}={value}"]
        asynchronous = any(" by cp_async" in d for s in self.schedules for d in s.directives)
        if self.arch or asynchronous:
            out.append(f"--arch={self.arch or 'sm_80'}")
        return out + self.options

    # --- Reduction of a failing case --------------------------------------------------------------------------------

    def smaller(self):
        """Functions that each make the case smaller and return a function that undoes it."""
        def drop(items, at):
            kept = items[at]

            def do():
                del items[at]
                return lambda: items.insert(at, kept)
            return do

        def put(table, key, value):
            def do():
                before = table[key]
                table[key] = value
                return lambda: table.__setitem__(key, before)
            return do
        for at in range(len(self.schedules)):
            yield drop(self.schedules, at)
        if len(self.groups) > 1:
            for at in range(len(self.groups)):
                yield drop(self.groups, at)
        for group in self.groups:
            for at in reversed(range(len(group.lines))):
                yield drop(group.lines, at)
        for schedule in self.schedules:
            for at in reversed(range(len(schedule.directives))):
                yield drop(schedule.directives, at)
            if schedule.when:
                yield put(schedule.__dict__, "when", "")
            if schedule.own_file:
                yield put(schedule.__dict__, "own_file", False)
        for name, value in self.sizes.items():
            for smaller in (1, 2, 3, 4, value // 2, value - 1):
                if 0 < smaller < value:
                    yield put(self.sizes, name, smaller)
            if name in self.dynamic:
                def fix(name=name):
                    self.dynamic.discard(name)
                    return lambda: self.dynamic.add(name)
                yield fix
        for group in self.groups:
            for at, line in enumerate(group.lines):
                for shorter in shorten(line):
                    yield put(group.lines, at, shorter)


def shorten(line):
    """The line with one parenthesis or call replaced by one of its operands."""
    for m in re.finditer(r"\(", line):
        depth, end = 0, None
        for at in range(m.start(), len(line)):
            depth += {"(": 1, ")": -1}.get(line[at], 0)
            if depth == 0:
                end = at
                break
        if end is None:
            continue
        inside = line[m.start() + 1:end]
        if " in " in inside:
            continue
        start = m.start()
        while start > 0 and (line[start - 1].isalnum() or line[start - 1] == "_"):
            start -= 1
        parts = re.split(r",| [-+*/%&|^?:<>=!]+ ", inside)
        for part in parts:
            part = part.strip()
            if part and part.count("(") == part.count(")") and part.count("[") == part.count("]") and len(part) < end + 1 - start:
                yield line[:start] + part + line[end + 1:]

#!/usr/bin/env python3
"""Differential fuzzing: random kernels under random schedules, run in the simulator, against the reference.

  tests/fuzz/differential.py --redc build/redc                 # 200 cases of seed 1
  tests/fuzz/differential.py --redc build/redc --seed 7 --count 5000 --jobs 2
  tests/fuzz/differential.py --redc build/redc --count 5000 --device=cuda --jobs 16    # on a machine with a GPU
  tests/fuzz/differential.py --redc build/redc --endless       # until a fault is found or it is stopped
  tests/fuzz/differential.py --redc build/redc --one 12345     # prints one case and runs it

A case (generate.py) is a kernel, schedules, sizes and arguments, made from one number. redc may refuse it (exit 1 with a message); it may not
fail otherwise, and what runs must agree with the reference with every check of the simulator on, at two levels of optimisation, under two orders
of the lanes. Where nvcc is found, every N-th case (--nvcc N, 0: none) also runs from the CUDA text, which must give the same bits as the PTX. A
failing case is reduced (schedules, directives, statements, expressions, sizes) and printed as a .red file with the command that shows it.
"""
import argparse
import collections
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
import batch  # noqa: E402
from generate import Case  # noqa: E402

NVCC = shutil.which("nvcc") or shutil.which("nvcc", path=os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin"))
OPTIMISED = 16
# What may be refused by this version: a program that uses it, to ask.
PROBES = {
    "shared": "schedule k { bind i -> block.x; stage A at i in shared; }",
    "async": "schedule k { bind i -> block.x; stage A at i in shared by cp_async; }",
    "combine": "schedule k { split j by 32 -> jo, jt; bind jt -> thread.x; bind jo -> block.x; combine jo by last_block; }",
    "grid": "schedule k { split j by 32 -> jo, jt; bind jt -> thread.x; bind jo -> block.x; }",
    "cache": "schedule k { cache A by streaming; }",
    "blocks": "schedule k { blocks 2; }",
}


def run(command, timeout=300):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout, close_fds=False)
        return done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired:
        return -999, "timed out"


def features(redc):
    """The directives beyond the common ones that this redc lowers."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for name, schedule in PROBES.items():
            path = os.path.join(folder, "k.red")
            with open(path, "w") as f:
                f.write("kernel k(A: f32[n, m]) -> (B: f32[n]) { for i in n { B[i] = sum(j in m) A[i, j]; } }\n" + schedule)
            if run([redc, path, "-D", "m=64", "-D", "n=4", "-o", os.devnull])[0] == 0:
                found.append(name)
    return tuple(found)


class Runner:
    def __init__(self, options):
        self.redc, self.device, self.reduces = options.redc, options.device, not options.no_reduction
        self.bulk = options.bulk
        self.features = features(options.redc)
        self.folder = tempfile.mkdtemp(prefix="red-differential-")

    def case(self, number):
        return Case(number, self.features)

    def levels(self, number):
        """The levels of optimisation at which a case runs, and the seed of the simulator's order in each. In bulk it is one: nearly all of
        the time of -O3 goes into LLVM, so that one case in OPTIMISED has it."""
        if self.device != "sim":
            return ((3, 1),)
        if self.bulk:
            return ((3 if number % OPTIMISED == 0 else 0, number % 5 + 1),)
        return ((3, 1), (0, 2))

    def write(self, case, folder):
        paths = []
        for i, text in enumerate(case.files()):
            paths.append(os.path.join(folder, f"{case.name}{'' if i == 0 else '-schedules'}.red"))
            with open(paths[-1], "w") as f:
                f.write(text)
        return paths

    def is_refused(self, code, output):
        """The number of the error by which a case is refused, as it may be."""
        m = re.search(r"\[E([1-4]\d\d|502|505|604)\]", output)
        return m[1] if code == 1 and m and "internal" not in output else None

    def verdict(self, case, extra=()):
        """('ok', ''), ('refused', error number), or what is wrong and the output."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            paths, arguments = self.write(case, folder), case.arguments()
            for first, (level, seed) in enumerate(self.levels(case.number)):
                command = [self.redc, "run", *paths, *arguments, "--check", f"--device={self.device}", f"-O{level}", f"--seed={seed}", "--jobs=1", *extra]
                code, output = run(command)
                if code == 0:
                    continue
                refused = self.is_refused(code, output)
                if refused and first == 0:
                    return "refused", refused
                return f"exit {code} at -O{level}", output.replace(folder + "/", "")
        return "ok", ""

    def verdicts(self, numbers, jobs):
        """verdict() of many cases, by a few processes."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            lines = []
            for number in numbers:
                case = self.case(number)
                line = [*self.write(case, folder), *case.arguments()]
                lines += [line + [f"-O{level}", f"--seed={seed}"] for level, seed in self.levels(number)]
            results = batch.run(self.redc, lines, ["--check", f"--device={self.device}"], jobs, timeout=300)
            for number in numbers:
                kind, said = "ok", ""
                for first, (level, _) in enumerate(self.levels(number)):
                    code, output = next(results)
                    refused = self.is_refused(code, output)
                    if kind == "ok" and code:
                        kind, said = ("refused", refused) if refused and first == 0 else (f"exit {code} at -O{level}", output.replace(folder + "/", ""))
                yield kind, said

    # --- The other backend ----------------------------------------------------------------------------------------

    def cuda(self, case, folder):
        """The CUDA text of a case in a namespace of its own, or None where its code depends on what only a launch knows."""
        paths = self.write(case, folder)
        arguments = case.arguments()
        defines = [a for i, a in enumerate(arguments) if a == "-D" or i and arguments[i - 1] == "-D" or a.startswith("--class=")]
        code, text = run([self.redc, *paths, *defines, "--emit=cuda", "--all-entries"])
        return f"namespace of_{case.name} {{\n{text}}}\n" if code == 0 else None

    def nvcc(self, texts, out):
        path = out + ".cu"
        with open(path, "w") as f:
            f.write("".join(texts))
        return run([NVCC, "-arch=sm_75", "-ptx", path, "-o", out], timeout=600)

    def twins(self, cases):
        """Runs the CUDA text of cases that are right beside their PTX: [(case, verdict, output)] of those that differ."""
        wrong = []
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            texts = [(c, self.cuda(c, folder)) for c in cases]
            texts = [(c, t) for c, t in texts if t]
            if not texts:
                return wrong, 0
            out = os.path.join(folder, "all.ptx")
            code, said = self.nvcc([t for _, t in texts], out)
            if code:
                for c, t in texts:
                    code, said = self.nvcc([t], out)
                    if code:
                        wrong.append((c, "nvcc refuses the CUDA text", said))
                return wrong, len(texts)
            for c, _ in texts:
                kind, output = self.twin(c, folder, out)
                if kind != "ok":
                    wrong.append((c, kind, output))
        return wrong, len(texts)

    def twin(self, case, folder, ptx):
        command = [self.redc, "run", *self.write(case, folder), *case.arguments(), "--device=sim", "--seed=3", "--jobs=1", f"--twin={ptx}"]
        code, output = run(command)
        return ("ok", "") if code == 0 else (f"exit {code} beside nvcc", output.replace(folder + "/", ""))

    def one_twin(self, case):
        """verdict() for the other backend."""
        wrong, _ = self.twins([case])
        return wrong[0][1:] if wrong else ("ok", "")

    # --- Faults -----------------------------------------------------------------------------------------------------

    def reduce(self, case, kind, output, judge):
        """Makes a failing case smaller while it fails alike."""
        def sign(kind, output):
            m = re.search(r"internal error[^\n]*|error: [^\n]*|\S+: (?:race|poison|out-of|misaligned|uninit|missing|outside|unequal|divergent)[a-z-]*", output)
            return kind.split(" at ")[0], re.sub(r"\d+|'[^']*'", "", m[0])[:50] if m else ""
        wanted, until, changed = sign(kind, output), time.monotonic() + 180, True
        while changed and time.monotonic() < until:
            changed = False
            for make in list(case.smaller()):
                undo = make()
                if case.body() and sign(*judge(case)) == wanted:
                    changed = True
                    break
                undo()
        return case

    def show(self, number, kind, output, judge):
        case = self.case(number)
        if self.reduces:
            case = self.reduce(case, kind, output, judge)
        kind, output = judge(case)
        quoted = " ".join(f"'{a}'" if re.search(r"[^\w=.@:-]", a) else a for a in case.arguments())
        print(f"// case {number}: {kind}\n// redc run case.red {quoted} --check --device=sim --jobs=1")
        print("\n".join(case.files()) + "\n".join("// " + line for line in output.splitlines()[:12]), flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--redc", default="build/redc")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=200)
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--nvcc", type=int, default=8, metavar="N")
    p.add_argument("--bulk", action="store_true", help=f"one level of optimisation a case: -O0, and -O3 in one of {OPTIMISED}; no nvcc")
    p.add_argument("--endless", action="store_true")
    p.add_argument("--most-faults", type=int, default=20, metavar="N", help="stop after so many")
    p.add_argument("--no-reduction", action="store_true", help="print failing cases as they are")
    p.add_argument("--one", type=int)
    p.add_argument("--device", default="sim", help="sim, or cuda on a machine with a GPU")
    a = p.parse_args()
    runner = Runner(a)
    every = a.nvcc if NVCC and a.device == "sim" and not a.bulk else 0
    if a.one is not None:
        case = runner.case(a.one)
        print("\n".join(case.files()))
        print(" ".join(case.arguments()))
        print(*runner.verdict(case), sep="\n")
        if every:
            print(*runner.one_twin(case), sep="\n")
        return 0
    counts, refused, both, faults, first = collections.Counter(), collections.Counter(), 0, 0, a.seed * 1000000
    print(f"beyond the common directives: {', '.join(runner.features) or 'none'}", file=sys.stderr)
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        while True:
            numbers = range(first, first + a.count)
            right = []
            for number, (kind, output) in zip(numbers, runner.verdicts(numbers, a.jobs)):
                if kind in ("ok", "refused"):
                    counts[kind] += 1
                    refused.update([output] if kind == "refused" else [])
                    if kind == "ok" and every and number % every == 0:
                        right.append(runner.case(number))
                    continue
                faults += 1
                runner.show(number, kind, output, runner.verdict)
                if faults >= a.most_faults:
                    break
            parts = [right[i:i + 25] for i in range(0, len(right), 25)]
            for wrong, count in pool.map(runner.twins, parts):
                both += count
                for case, kind, output in wrong:
                    faults += 1
                    runner.show(case.number, kind, output, runner.one_twin)
            first += a.count
            if not a.endless or faults >= a.most_faults:
                break
            print(f"{time.strftime('%H:%M:%S')} next {first}: {counts['ok']} agreed, {both} of them by both backends, {counts['refused']} refused ({refused['412']} unproved), {faults} faults",
                  file=sys.stderr, flush=True)
    shutil.rmtree(runner.folder, ignore_errors=True)
    why = ", ".join(f"E{n}: {c}" for n, c in refused.most_common())
    print(f"{counts['ok']} agreed, {counts['refused']} refused by the compiler ({why})")
    if every:
        print(f"{both} ran from the CUDA text too, with the same bits")
    elif a.device == "sim" and not a.bulk:
        print("skipped: nvcc was not found, so no case ran from the CUDA text")
    print(f"{counts['ok'] + counts['refused']} passed, {faults} failed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""The compiler's own schedules on random programs: right answers, no refusal, and the same code when they are fed back.

  tests/fuzz/automatic.py --redc build/redc                    # 150 cases of seed 1
  tests/fuzz/automatic.py --redc build/redc --seed 7 --count 2000 --jobs 2
  tests/fuzz/automatic.py --redc build/redc --one 12345        # prints one case and runs it

A case is a program of generate.py without schedules, free or under one class (--class). What runs must agree with the reference with every
check of the simulator on. A program may not be refused, nor may a schedule that the compiler chose fail to be lowered; a class may decline a
kernel. Where every kernel has schedules as text (`redc schedule`), the program with that text beside it must give the same PTX.
"""
import argparse
import concurrent.futures
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from generate import Case  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def classes():
    """The names of classes.def."""
    with open(os.path.join(ROOT, "compiler", "classes.def")) as f:
        return [line.split("(")[1].split(",")[0] for line in f if line.startswith("C(")]


def run(command, timeout=120):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)
        return done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired:
        return -999, "timed out"


class Own:
    """A program, the class that it is compiled for (None: as the compiler likes), and its arguments."""

    def __init__(self, number):
        self.case = Case(number)
        self.case.schedules, self.case.options, self.case.arch = [], [], None
        r = random.Random(number + 1)
        self.name = r.choice([None] * 4 + classes())
        self.options = [f"--class={self.name}"] if self.name else ["--remarks=schedule"]
        self.arch = ["--arch=sm_80"] if number % 2 or self.name == "staged" else []  # asynchronous copies take it

    def defines(self):
        arguments = self.case.arguments()
        return [a for i, a in enumerate(arguments) if a == "-D" or (i and arguments[i - 1] == "-D")]


def verdict(redc, own, folder):
    """('ok' or 'declined', '') or what is wrong and the output."""
    path = os.path.join(folder, f"{own.case.name}.red")
    with open(path, "w") as f:
        f.write(own.case.text())
    for level, seed in ((3, 1), (0, 2)):
        code, output = run([redc, "run", path, *own.case.arguments(), *own.options, *own.arch, "--check", "--device=sim", f"-O{level}", f"--seed={seed}", "--jobs=1"])
        if code == 1 and own.name and "does not take kernel" in output:
            return "declined", ""
        if code == 1 and any(f"[E{n}" in output for n in (("1", "2", "302") if own.name else "1234")) and "internal" not in output and "<schedules" not in output:
            return "refused", ""  # the program itself
        if code == 1 and "for these sizes" in output and "[E604]" in output:
            return "refused", ""  # the program at these sizes
        if code:
            return f"exit {code} at -O{level}", output
        if "plain ones take their place" in output:
            return "its schedules could not be lowered", output
    return feed_back(redc, own, folder, path)


def feed_back(redc, own, folder, path):
    chosen, defines = os.path.join(folder, f"{own.case.name}-chosen.red"), own.defines()
    code, output = run([redc, "schedule", path, *defines, *own.options[:1 if own.name else 0], *own.arch, "-o", chosen])
    if code:
        return f"exit {code} of redc schedule", output
    if not os.path.exists(chosen):
        return "ok", ""
    code, first = run([redc, path, *defines, *(own.options if own.name else []), *own.arch])
    code2, second = run([redc, path, chosen, *defines, *own.arch])
    if code or code2 or first != second:
        with open(chosen) as f:
            return "not the same code when fed back", f.read() + second[:300]
    return "ok", ""


def judge(redc, number):
    own = Own(number)
    with tempfile.TemporaryDirectory(prefix="red-automatic-") as folder:
        kind, output = verdict(redc, own, folder)
        return own, kind, output.replace(folder + "/", "")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--redc", default="build/redc")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=150)
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--one", type=int)
    a = p.parse_args()
    if a.one is not None:
        own, kind, output = judge(a.redc, a.one)
        print(own.case.text(), " ".join(own.case.arguments() + own.options), kind, output, sep="\n")
        return 0
    counts, faults, first = {}, 0, a.seed * 1000000
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for own, kind, output in pool.map(lambda n: judge(a.redc, n), range(first, first + a.count)):
            if kind in ("ok", "declined", "refused"):
                counts[kind] = counts.get(kind, 0) + 1
                continue
            faults += 1
            arguments = " ".join(own.case.arguments() + own.options)
            print(f"// case {own.case.number}: {kind}\n// redc run case.red {arguments} --check --device=sim --jobs=1\n{own.case.text()}")
            print("\n".join("// " + line for line in output.splitlines()[:14]), flush=True)
    print(f"{counts.get('ok', 0)} agreed, {counts.get('declined', 0)} declined by a class, {counts.get('refused', 0)} refused as programs")
    print(f"{sum(counts.values())} passed, {faults} failed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Nothing right is refused: pass `prove` accepts every program that reductions over threads become.

    tests/proofs.py --redc build/redc              # a 32nd of the shapes of sweep.py
    tests/proofs.py --redc build/redc --all        # all: 33,000 kernels, about a minute

Each shape of sweep.py (extents 1 to 1024, groups 1, 2, 3, 5, 2 x 3, the seven subsets of thread axes, operators and types rotating) is compiled
with the result in one thread, by the tree, and with the result in every thread in a loop; nothing is run.
"""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mutation  # noqa: E402
import sweep  # noqa: E402

A_FILE = 40


def kernels(step):
    for number, shape in enumerate(sweep.shapes()):
        if (number // (len(sweep.GROUPS) * len(sweep.SUBSETS))) % step or not sweep.program(*shape):
            continue
        yield shape + ("",), sweep.program(*shape)
        yield shape + ("tree",), sweep.program(*shape, form="tree")
        if shape[3][0] not in sweep.TUPLES:
            yield shape + ("in all",), mutation.program(shape[:4] + ("", True))


def compile_some(redc, some):
    """What redc refuses of some kernels in one file: (shape, text, message)."""
    text, lines = sweep.REDUCERS, {}
    for number, (shape, one) in enumerate(some):
        one = one.replace(sweep.REDUCERS, "").replace("kernel k(", f"kernel k{number}(").replace("schedule k ", f"schedule k{number} ")
        for line in range(text.count("\n") + 1, (text + one).count("\n") + 1):
            lines[line] = shape, one
        text += one
    with tempfile.TemporaryDirectory(prefix="red-proofs-") as folder:
        path = os.path.join(folder, "all.red")
        with open(path, "w") as f:
            f.write(text)
        done = subprocess.run([redc, path, "--emit=ir", "-o", os.devnull], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    refused = {}
    for line, message in re.findall(r"all\.red:(\d+):\d+: (.*)", done.stdout):
        shape, one = lines.get(int(line), (None, ""))
        refused.setdefault(shape, (shape, one, message))
    if done.returncode and not refused:
        refused[None] = None, text, done.stdout
    return list(refused.values()) if done.returncode else []


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--redc", default="build/redc")
    p.add_argument("--all", action="store_true")
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    a = p.parse_args()
    redc, every, refused = os.path.abspath(a.redc), list(kernels(1 if a.all else 32)), 0
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for some in pool.map(lambda i: compile_some(redc, every[i:i + A_FILE]), range(0, len(every), A_FILE)):
            for shape, text, message in some:
                refused += 1
                if refused <= 10:
                    print(f"{shape}: {message}\n{text}")
    print(f"{len(every)} kernels compiled, {refused} refused")
    return 1 if refused or not every else 0


if __name__ == "__main__":
    sys.exit(main())

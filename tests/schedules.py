#!/usr/bin/env python3
"""The compiler's own schedules at the sizes that matter: each must be lowered as it was chosen, down to the last proof.

  tests/schedules.py --redc build/redc             # a sample
  tests/schedules.py --redc build/redc --all       # every size, type and kernel
  tests/schedules.py --redc build/redc --list      # prints the choices

Nothing runs: `redc --stop-after=prove` with all sizes known, with the row's length known, and with none known. Where a schedule that the
compiler chose could not be lowered it takes plain ones with a remark, which fails the test.
"""
import argparse
import concurrent.futures
import os
import random
import re
import subprocess
import sys
import tempfile

ROWS = "kernel k(A: {t}[n, m]) -> (B: {o}[n]) {{ for i in n {{ B[i] = {op}(j in m) A[i, j]; }} }}"
COLUMNS = "kernel k(A: {t}[m, n]) -> (B: {o}[n]) {{ for i in n {{ B[i] = {op}(j in m) A[j, i]; }} }}"
MIDDLE = "kernel k(A: {t}[4, m, n]) -> (B: {o}[4, n]) {{ for b in 4, i in n {{ B[b, i] = {op}(j in m) A[b, j, i]; }} }}"
OUTER = "kernel k(A: {t}[7, n, m]) -> (B: {o}[n]) {{ for i in n {{ B[i] = {op}(b in 7, j in m) A[b, i, j]; }} }}"
ALL = "kernel k(A: {t}[n, m]) -> (B: {o}[1]) {{ B[0] = {op}(i in n, j in m) A[i, j]; }}"
STRIDED = "kernel k(A: {t}[n, m] strided) -> (B: {o}[n]) {{ for i in n {{ B[i] = {op}(j in m) A[i, j]; }} }}"
SOFTMAX = ("kernel k(A: {t}[n, m]) -> (B: {o}[n, m]) {{ for i in n {{ let p = max(j in m) A[i, j]; let s = {op}(j in m) (A[i, j] - p);"
           " for j in m {{ B[i, j] = A[i, j] - s; }} }} }}")
MOMENTS = ("kernel k(A: {t}[n, m]) -> (B: {o}[n], C: {o}[n]) {{ for i in n {{ let s = {op}(j in m) A[i, j]; let q = {op}(j in m) (A[i, j] * A[i, j]);"
           " B[i] = s; C[i] = q; }} }}")
PEAK = "kernel k(A: {t}[n, m]) -> (V: {o}[n], P: i32[n]) {{ for i in n {{ (V[i], P[i]) = argmax(j in m) (A[i, j], i32(j)); }} }}"
COPY = "kernel k(A: {t}[n, m]) -> (B: {t}[n, m]) {{ for i in n, j in m {{ B[i, j] = A[i, j]; }} }}"
BIAS = "kernel k(A: {t}[n, m], b: {t}[m]) -> (B: {o}[n, m]) {{ for i in n, j in m {{ B[i, j] = A[i, j] + b[j]; }} }}"
RUNS = "kernel k(A: {t}[6, n, m]) -> (B: {t}[n, 6, m]) {{ for a in 6, i in n, j in m {{ B[i, a, j] = A[a, i, j]; }} }}"
KERNELS = {"rows": ROWS, "columns": COLUMNS, "middle": MIDDLE, "outer": OUTER, "all": ALL, "strided": STRIDED, "softmax": SOFTMAX, "moments": MOMENTS, "peak": PEAK,
           "copy": COPY, "bias": BIAS, "runs": RUNS}
TYPES = {"f32": "f32", "f16": "f32", "bf16": "f32", "f64": "f64", "i8": "i8", "i32": "i32", "i64": "i64"}
TABLE = [(300, 10000), (1000, 10000), (1000, 100000), (5000, 20000), (100, 1000000), (32, 3000000), (16, 6000000), (8, 12000000), (4, 25000000), (1048576, 2),
         (1048576, 4), (1048576, 8), (1048576, 11), (1048576, 16), (1048576, 32), (1048576, 33), (1048576, 64), (1048576, 100), (1048576, 256), (1048576, 1000),
         (131072, 4096), (524288, 1001), (64, 4194304), (1, 268435456), (1000, 10), (10, 1000), (1000, 1000)]


def sizes():
    swept = [((1 << i) + d, (1 << (24 - i)) + e) for i in range(25) for d, e in ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1))]
    return [(n, m) for n, m in TABLE + swept if n > 0 and m > 0]


def points():
    for kernel in KERNELS:
        for type_ in TYPES:
            for n, m in sizes():
                for known in ("nm", "m", ""):
                    yield kernel, type_, n, m, known


def check(redc, folder, point):
    """(what was chosen, None or what is wrong)"""
    kernel, type_, n, m, known = point
    path = os.path.join(folder, f"{kernel}-{type_}.red")
    if not os.path.exists(path):
        part = f"{path}.{os.getpid()}.{id(point)}"
        with open(part, "w") as f:
            f.write(KERNELS[kernel].format(t=type_, o=TYPES[type_], op="sum") + "\n")
        os.rename(part, path)
    defines = [f"-D{s}={v}" for s, v in (("n", n), ("m", m)) if s in known]
    done = subprocess.run([redc, path, *defines, "--arch=sm_90", "--stop-after=prove", "--emit=ir", "--remarks=schedule"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    said = done.stderr.decode()
    chosen = ", ".join(re.findall(r"own schedule '(\w+)'", said))
    if done.returncode or "plain ones take their place" in said:
        return chosen, said
    return chosen, None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--redc", default="build/redc")
    p.add_argument("--all", action="store_true")
    p.add_argument("--sample", type=int, default=200)
    p.add_argument("--kernel", choices=sorted(KERNELS))
    p.add_argument("--list", action="store_true")
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    a = p.parse_args()
    every = [x for x in dict.fromkeys(points()) if not a.kernel or x[0] == a.kernel]
    chosen = every if a.all else random.Random(1).sample(every, min(a.sample, len(every)))
    faults = 0
    with tempfile.TemporaryDirectory(prefix="red-schedules-") as folder, concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for point, (names, wrong) in zip(chosen, pool.map(lambda x: check(a.redc, folder, x), chosen)):
            if a.list:
                print(*point[:4], f"known {point[4] or 'nothing'}:", names)
            if wrong:
                faults += 1
                print(f"// {point}\n" + "\n".join("// " + line for line in wrong.splitlines()[:6]), flush=True)
    print(f"{len(chosen) - faults} passed, {faults} failed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

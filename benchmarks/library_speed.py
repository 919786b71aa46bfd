"""Whether the library, made for a level of processors, is as fast as what Numba compiles for exactly this one.

Each in processes of its own, one after the other in turn. Printed is the ratio of the medians: below 1, the library is
faster.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys

#: Columns and points: about a second each.
SIZES = {2: 40_000, 16: 30_000, 128: 8_000, 784: 2_500}

CODE = """
import json, sys, time
import numpy as np, evertree as et
m, n, dtype = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
rng = np.random.default_rng(0)
X = (rng.normal(size=(50, m))[rng.integers(0, 50, n)] * 2 + rng.normal(size=(n, m))).astype(dtype)
warm = et.Hierarchy()
warm.insert(X[:50])
warm.refine()
h = et.Hierarchy()
times = []
for step in (lambda: h.insert(X), h.refine):
    began = time.perf_counter()
    step()
    times.append(time.perf_counter() - began)
print(json.dumps(times))
"""


def seconds(m: int, n: int, dtype: str, **environment: str) -> list[float]:
    """What insertion and refinement take in a new process."""
    command = [sys.executable, "-c", CODE, str(m), str(n), dtype]
    run = subprocess.run(command, env={**os.environ, **environment}, check=True, capture_output=True, text=True)
    found: list[float] = json.loads(run.stdout)
    return found


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="how often each is run")
    parser.add_argument("--dtype", default="float64")
    options = parser.parse_args()
    native = {"EVERTREE_KERNELS": "numba", "EVERTREE_CPU": "native"}
    print(f"Load {os.getloadavg()[0]:.1f}, {options.dtype}, Ward, median of {options.rounds} (aim: at most 1.05)")
    print("| columns | points | insertion, s | ratio | refinement, s | ratio |")
    print("| --- | --- | --- | --- | --- | --- |")
    for m, n in SIZES.items():
        seconds(m, 200, options.dtype, **native)  # compiles
        runs = [(seconds(m, n, options.dtype), seconds(m, n, options.dtype, **native)) for _ in range(options.rounds)]
        ours, theirs = ([statistics.median(run[k][part] for run in runs) for part in range(2)] for k in range(2))
        parts = [f"{own:.3f} | {own / other:.3f}" for own, other in zip(ours, theirs, strict=True)]
        print(f"| {m} | {n:,} | {' | '.join(parts)} |", flush=True)


if __name__ == "__main__":
    main()

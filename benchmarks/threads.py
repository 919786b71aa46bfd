"""Threads: seconds to insert and refine by the number of threads, and that the tree is the same.

Run with ``python -m benchmarks.threads``. The machine should be idle, and have as many processors as threads.
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np
from numpy.typing import NDArray

import evertree as et
from benchmarks import datasets

#: Points of the first insertion, which compiles, or loads, what the others use.
N_WARM = 30_000


def measure(
    x: NDArray[np.floating], linkage: str, metric: str, n_jobs: int | None
) -> tuple[float, float, et.Hierarchy]:
    """Seconds to insert all points and to refine, and the tree."""
    warm = et.Hierarchy(linkage, metric, n_jobs=n_jobs)
    warm.insert(x[:N_WARM])
    warm.refine()
    h = et.Hierarchy(linkage, metric, n_jobs=n_jobs)
    began = time.perf_counter()
    h.insert(x)
    inserted = time.perf_counter()
    h.refine()
    return inserted - began, time.perf_counter() - inserted, h


def report(name: str, x: NDArray[np.floating], linkage: str, metric: str, jobs: list[int | None]) -> None:
    """Print a line for each number of threads; the speed-up is that over one thread in the same procedure."""
    print(f"\n{name}: {x.shape[0]:,} x {x.shape[1]}, {linkage} on {metric}, load {os.getloadavg()[0]:.1f}")
    titles = ("n_jobs", "insert s", "refine s", "total s", "speed-up", "tree value", "same tree")
    print(" ".join(f"{title:>10}" for title in titles))
    alone, tree = None, None
    for n_jobs in jobs:
        inserting, refining, h = measure(x, linkage, metric, n_jobs)
        total = inserting + refining
        matrix = h.linkage_matrix()
        if n_jobs == 1:
            alone, tree = total, matrix
        speed_up = f"{alone / total:.2f}" if alone is not None and n_jobs is not None else "-"
        same = "-" if tree is None or n_jobs is None else str(bool(np.array_equal(matrix, tree)))
        cells = (str(n_jobs), f"{inserting:.1f}", f"{refining:.1f}", f"{total:.1f}", speed_up)
        print(" ".join(f"{cell:>10}" for cell in (*cells, f"{et.quality.tree_value(h):.4e}", same)), flush=True)


def main() -> None:
    """Measure what the options ask for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--points", type=float, default=1e6, help="of the mixture of Gaussians")
    parser.add_argument("--jobs", default="None,1,2", help="numbers of threads; None for the procedure for one")
    parser.add_argument("--data", nargs="*", default=["gaussians", "covtype"], help="gaussians, covtype, letter, ...")
    parser.add_argument("--linkage", default="ward")
    parser.add_argument("--metric", default="euclidean")
    datasets.add_folder(parser)
    options = parser.parse_args()
    jobs = [None if word == "None" else int(word) for word in options.jobs.split(",")]
    print(f"{os.cpu_count()} processors")
    for name in options.data:
        full_name = datasets.gaussians(int(options.points)) if name == "gaussians" else name
        if reason := datasets.missing(full_name, options.folder):
            print(f"\n{name}: skipped, {reason}")
            continue
        x, _ = datasets.load(full_name, options.folder, order=0)
        report(name, x, options.linkage, options.metric, jobs)


if __name__ == "__main__":
    main()

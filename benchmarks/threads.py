"""Threads: seconds to insert and refine by the number of threads, and that the tree is the same.

Run with ``make bench-threads``, or ``python -m benchmarks.threads``. The machine should be idle. What more processors
than it has would do is simulated: of one thread's run, the parts that threads share are dealt out to so many, in order,
and everything else stays a chain of steps that follow each other.
"""

from __future__ import annotations

import argparse
import heapq
import os
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import evertree as et
from benchmarks import datasets
from evertree.tree.parallel.threads import Threads

#: Points of the first insertion, which compiles, or loads, what the others use.
N_WARM = 100_000


class Simulation:
    """Seconds that so many threads would take, if they shared no memory or cache: their parts run one at a time."""

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self.saved = 0.0

    def __enter__(self) -> Simulation:
        self._each, self._init = Threads.each, Threads.__init__
        simulation, each, init = self, self._each, self._init

        def begin(threads: Threads, _: int) -> None:
            init(threads, simulation.n_threads)
            threads._pool._max_workers = 1

        def timed_each(threads: Threads, function: Callable[[Any], object], items: Iterable[Any], *args: Any) -> None:
            taken: list[float] = []

            def timed(item: Any) -> object:
                began = time.perf_counter()
                try:
                    return function(item)
                finally:
                    taken.append(time.perf_counter() - began)

            each(threads, timed, items, *args)
            simulation.saved += sum(taken) - simulation.makespan(taken)

        Threads.each, Threads.__init__ = timed_each, begin  # type: ignore[method-assign,assignment]
        return self

    def __exit__(self, *_: object) -> None:
        Threads.each, Threads.__init__ = self._each, self._init  # type: ignore[method-assign]

    def makespan(self, taken: list[float]) -> float:
        """Seconds for parts that threads take one after the other."""
        ends = [0.0] * self.n_threads
        for seconds in taken:
            heapq.heapreplace(ends, ends[0] + seconds)
        return max(ends)


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


def report(name: str, x: NDArray[np.floating], options: argparse.Namespace) -> None:
    """Print a line for each number of threads; the speed-up is that over one thread."""
    linkage, metric = options.linkage, options.metric
    print(f"\n{name}: {x.shape[0]:,} x {x.shape[1]}, {linkage} on {metric}, load {os.getloadavg()[0]:.1f}")
    titles = ("n_jobs", "insert s", "refine s", "total s", "speed-up", "tree value", "same tree")
    print(" ".join(f"{title:>10}" for title in titles))
    alone, tree = None, None
    for n_jobs in options.jobs:
        inserting, refining, h = measure(x, linkage, metric, n_jobs)
        total = inserting + refining
        matrix = h.linkage_matrix()
        if tree is None:
            alone, tree = total, matrix
        cells = (str(n_jobs), f"{inserting:.1f}", f"{refining:.1f}", f"{total:.1f}", f"{alone / total:.2f}")
        cells = (*cells, f"{et.quality.tree_value(h):.4e}", str(bool(np.array_equal(matrix, tree))))
        print(" ".join(f"{cell:>10}" for cell in cells), flush=True)
    for n_threads in options.simulate:
        with Simulation(n_threads) as simulation:
            h = et.Hierarchy(linkage, metric, n_jobs=1)
            began = time.perf_counter()
            h.insert(x)
            h.refine()
            total = time.perf_counter() - began
        chain = total - simulation.saved
        print(
            f"{n_threads} simulated: {total:.1f} s of one thread, of which {chain:.1f} s follow each other: at most "
            f"{total / chain:.1f} times faster",
            flush=True,
        )


def main() -> None:
    """Measure what the options ask for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--points", type=float, default=1e6, help="of the mixture of Gaussians")
    parser.add_argument("--jobs", type=int, nargs="*", help="numbers of threads; by default 1, 2, 4, … as there are")
    parser.add_argument("--simulate", type=int, nargs="*", default=[16], help="numbers of threads to simulate")
    parser.add_argument("--data", nargs="*", default=["gaussians", "covtype"], help="gaussians, covtype, letter, ...")
    parser.add_argument("--linkage", default="ward")
    parser.add_argument("--metric", default="euclidean")
    datasets.add_folder(parser)
    options = parser.parse_args()
    if options.jobs is None:
        options.jobs = [1 << k for k in range((os.cpu_count() or 1).bit_length())]
    print(f"{os.cpu_count()} processors")
    for name in options.data:
        full_name = datasets.gaussians(int(options.points)) if name == "gaussians" else name
        if reason := datasets.missing(full_name, options.folder):
            print(f"\n{name}: skipped, {reason}")
            continue
        x, _ = datasets.load(full_name, options.folder, order=0)
        report(name, x, options)


if __name__ == "__main__":
    main()

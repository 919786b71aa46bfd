"""Hundreds of columns: building, five per cent more rows, one row, memory; beside other libraries in the same run.

Run it with ``make bench-wide``, or ``python -m benchmarks.wide --quick``. MNIST and news embeddings, if they are there,
and Gaussians whose spectrum decays as that of most data. Each measurement has a process of its own. Nothing is
asserted.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import evertree as et
from benchmarks import datasets
from benchmarks.peers import agglomerative_ward, betula, birch, birch_threshold, clock, forget_peak, peak, product_ward

#: Rows that come later: one in so many, at once; and so many one by one.
LATER, SINGLY = 20, 20

#: Rows with which each system runs once before it is timed.
N_WARM = 2_500

#: More rows than this are not given to what compares all pairs.
MOST_PAIRED = 20_000


class Grown(NamedTuple):
    """Seconds to build, for later rows at once, and for a single one; and what came of it."""

    build: float
    more: float
    one: float
    note: str = ""


def decaying(n: int, n_columns: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """A mixture of fifty Gaussians, whose variance along the k-th column is 1 / k; and which each point is of."""
    rng = np.random.default_rng(0)
    spread = (1 / np.sqrt(1 + np.arange(n_columns))).astype(np.float32)
    centers = 4 * rng.standard_normal((50, n_columns), np.float32) * spread
    label = rng.integers(50, size=n)
    x = rng.standard_normal((n, n_columns), np.float32)
    x *= spread
    x += centers[label]
    return x, label


def load(name: str, folder: Path) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Points in random order, and their classes; ``gaussians100000x384`` are made."""
    if name.startswith("gaussians"):
        return decaying(*map(int, name.removeprefix("gaussians").split("x")))
    return datasets.load(name, folder, order=0)


def parts(x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Those that are there at first, those that come later at once, and those that come singly."""
    singly, later = len(x) - SINGLY, len(x) - SINGLY - len(x) // LATER
    return x[:later], x[later:singly], x[singly:]


def by_evertree(linkage: str, metric: str) -> Callable[..., Grown]:
    """Insertion and refinement, with default settings."""

    def grow(x: NDArray[Any], y: NDArray[np.int64]) -> Grown:
        first, later, singly = parts(x)
        h, lap = et.Hierarchy(linkage, metric), clock()
        h.insert(first)
        h.refine()
        build = lap()
        h.insert(later)
        h.refine()
        more, one = lap(), []
        for row in singly:
            h.insert(row[None])
            h.refine()
            one.append(lap())
        return Grown(build, more, float(np.median(one)), f"purity {et.quality.dendrogram_purity(h, y):.3f}")

    return grow


def anew(fit: Callable[[NDArray[Any]], object]) -> Callable[..., Grown]:
    """What has to start again whenever a row comes."""

    def grow(x: NDArray[Any], _: NDArray[np.int64]) -> Grown:
        lap = clock()
        fit(parts(x)[0])
        build = lap()
        return Grown(build, build, build)

    return grow


def by_summaries(make: Callable[..., Any], find: Callable[[NDArray[Any]], float] | None) -> Callable[..., Grown]:
    """What keeps summaries of points, and makes ten clusters of them."""

    def grow(x: NDArray[Any], _: NDArray[np.int64]) -> Grown:
        first, later, singly = parts(x)
        built = make(first) if find is None else make(first, find(first))
        lap = clock()
        built.add(later)
        more, one = lap(), []
        for row in singly:
            built.add(row[None])
            one.append(lap())
        return Grown(sum(built.seconds.values()), more, float(np.median(one)), built.note)

    return grow


def hdbscan(x: NDArray[Any]) -> object:
    """scikit-learn's: clusters by density, which is another question."""
    from sklearn.cluster import HDBSCAN

    return HDBSCAN(min_cluster_size=20, copy=True).fit(x)


#: By name: how to grow it, whether it compares all pairs, and on which data, if not on all.
SYSTEMS: dict[str, tuple[Callable[..., Grown], bool, str | None]] = {
    "**evertree**, Ward": (by_evertree("ward", "euclidean"), False, None),
    "**evertree**, average, cosine": (by_evertree("average", "cosine"), False, "news20"),
    "fastcluster Ward, distances by matrix products": (anew(product_ward), True, None),
    "scikit-learn AgglomerativeClustering, Ward": (anew(agglomerative_ward), True, None),
    "scikit-learn Birch, then Ward": (by_summaries(birch, birch_threshold), False, None),
    "betula-cluster, Ward": (by_summaries(betula, None), False, None),
    "scikit-learn HDBSCAN": (anew(hdbscan), True, None),
}


def measure(data: str, system: str, folder: str) -> dict[str, Any]:
    """One measurement, after a small one that loads and compiles."""
    x, y = load(data, Path(folder))
    grow = SYSTEMS[system][0]
    grow(x[:N_WARM], y[:N_WARM])
    before = forget_peak()
    found = grow(x, y)
    return found._asdict() | {"bytes": peak() - before, "data": x.nbytes}


def in_a_child(limit: float, **job: str) -> dict[str, Any]:
    """`measure`, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.wide", "--child", json.dumps(job)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"not done after {limit:.0f} s"}
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def table(data: str, options: argparse.Namespace) -> None:
    """All systems on one data set."""
    n = len(load(data, options.folder)[0])
    print(f"\n## {data}\n\n| system | building, s | 5 % more rows, s | share | one row, ms | memory, GB | |")
    print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for system, (_, is_paired, only) in SYSTEMS.items():
        if (is_paired and n > MOST_PAIRED) or (only is not None and only != data):
            continue
        found = in_a_child(options.limit, data=data, system=system, folder=str(options.folder))
        if "failed" in found:
            print(f"| {system} | {found['failed']} | | | | | |", flush=True)
            continue
        cells = (
            f"{found['build']:.2f}",
            f"{found['more']:.2f}",
            f"{found['more'] / found['build']:.2f}",
            f"{found['one'] * 1e3:.1f}",
            f"{found['bytes'] / 1e9:.2f}",
            found["note"],
        )
        print(f"| {system} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Measure what the options ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller Gaussians, and no large data set")
    parser.add_argument("--data", nargs="*", help="mnist10k, news20, mnist70k, gaussians100000x384, …")
    parser.add_argument("--limit", type=float, default=1_200.0, help="seconds for each measurement")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    datasets.add_folder(parser)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure(**json.loads(options.child))))
        return
    small, large = ["news20", "mnist10k"], ["mnist70k", "gaussians100000x384", "gaussians100000x1024"]
    names = options.data or ([*small, "gaussians5000x384"] if options.quick else small + large)
    print(f"evertree {et.__version__}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.2f}")
    for name in names:
        reason = datasets.missing(name, options.folder)
        if reason is not None:
            print(f"\n## {name}\n\nskipped: {reason}")
            continue
        table(name, options)
    print(f"\nload at the end {os.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    main()

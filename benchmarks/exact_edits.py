"""One edit of an exact tree, to the exact tree again, beside building the tree anew in the same run.

Run it with ``make bench-pairs``, or ``python -m benchmarks.exact_edits --quick``. Three kinds of data in 16 columns:
letter, if it is there, thirty Gaussians, and a single one, the hard case: its tree is chaos. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np
from numpy.typing import NDArray

import evertree as et
from benchmarks.datasets import FOLDER, load, missing
from benchmarks.live_tree import headline, seconds

#: Points for edits, at most.
N_FRESH = 400

LINKAGES = ("single", "average", "complete", "minimax", "ward")


def kinds_of_data(n: int) -> dict[str, NDArray[np.float64]]:
    """The data sets, each with this many points, or fewer if it has no more."""
    rng = np.random.default_rng(0)
    found = {}
    if missing("letter", FOLDER) is None:
        found["letter"] = load("letter", FOLDER, order=0)[0][:n]
    centers = 5 * rng.normal(size=(30, 16))
    found["30 Gaussians"] = centers[rng.integers(30, size=n)] + rng.normal(size=(n, 16))
    found["1 Gaussian"] = rng.normal(size=(n, 16))
    return found


def rebuilding(x: NDArray[np.float64], linkage: str) -> float:
    """Seconds of batch clustering, the best of two: fastcluster's, or our own for minimax."""
    if linkage == "minimax":
        return min(seconds(lambda: et.agglomerate(x, linkage)) for _ in range(2))
    import fastcluster

    by_vectors = fastcluster.linkage_vector if linkage in ("ward", "single") else fastcluster.linkage
    return min(timed(library, x, linkage) for library in (by_vectors, fastcluster.linkage))


def timed(action: object, *args: object) -> float:
    """Seconds of a call."""
    began = time.perf_counter()
    action(*args)  # type: ignore[operator]
    return time.perf_counter() - began


def edits(h: et.Hierarchy, fresh: NDArray[np.float64], limit: float) -> list[NDArray[np.float64]]:
    """Seconds of each insertion, removal and update with its refinement, as many as `limit` seconds allow."""
    rng, taken = np.random.default_rng(1), ([], [], [])
    began = time.perf_counter()
    for k in range(0, len(fresh) - 1, 2):
        keys = h.keys()
        gone, changed = (keys[i] for i in rng.choice(len(keys), 2, replace=False))
        taken[0].append(timed(h.insert, fresh[k : k + 1]) + timed(h.refine))
        taken[1].append(timed(h.remove, [gone]) + timed(h.refine))
        taken[2].append(timed(h.update, [changed], fresh[k + 1 : k + 2]) + timed(h.refine))
        if time.perf_counter() - began > limit and k >= 6:
            break
    return [np.array(times) for times in taken]


def main() -> None:
    """Run all of it, or with --quick what takes a minute."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2,000 points only")
    parser.add_argument("--sizes", type=int, nargs="+", default=[2_000, 10_000, 20_000], help="numbers of points")
    parser.add_argument("--linkages", nargs="+", choices=LINKAGES, default=LINKAGES)
    parser.add_argument("--limit", type=float, default=20.0, help="seconds for the edits of a line")
    options = parser.parse_args()
    print(f"evertree {et.__version__}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.2f}")
    headline(
        "One edit with refinement to the exact tree, in ms: median and 95 %; and how many times cheaper than batch"
    )
    print("Batch is the faster of fastcluster's functions, and our own for minimax.\n")
    print("| linkage | data | points | batch, s | insertion | removal | update | times cheaper |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for n in [2_000] if options.quick else options.sizes:
        for name, x in kinds_of_data(n + N_FRESH).items():
            for linkage in options.linkages:
                h = et.Hierarchy(linkage, search_width=None)
                h.insert(x[:-N_FRESH])
                times = edits(h, x[-N_FRESH:], options.limit)
                batch = rebuilding(x[:-N_FRESH], linkage)
                median, worst = (np.quantile(np.concatenate(times), q) for q in (0.5, 0.95))
                cells = (f"{np.median(t) * 1e3:.2f}, {np.quantile(t, 0.95) * 1e3:.1f}" for t in times)
                print(
                    f"| {linkage} | {name} | {len(x) - N_FRESH:,} | {batch:.2f} | {' | '.join(cells)} | "
                    f"{batch / median:,.0f}, {batch / worst:,.0f} |",
                    flush=True,
                )
    print(f"\nload at the end {os.getloadavg()[0]:.2f}")


if __name__ == "__main__":
    main()

"""Speed and memory of the live tree, beside other libraries in the same run. Prints tables; nothing is asserted.

Run it with ``make bench``, or ``python -m benchmarks.live_tree --quick`` for a look in a minute.
Times are the best of several repetitions where that is affordable, because machines are shared.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np
import psutil
from numpy.typing import NDArray

import evertree as et

N_COLUMNS = 16
MIB = 2**20


def mixture(n: int, seed: int = 0) -> NDArray[np.float64]:
    """A mixture of 100 Gaussians."""
    rng = np.random.default_rng(seed)
    centres = 10 * rng.normal(size=(100, N_COLUMNS))
    return centres[rng.integers(100, size=n)] + rng.normal(size=(n, N_COLUMNS))


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def headline(text: str) -> None:
    print(f"\n## {text}\n", flush=True)


def filled(x: NDArray[np.float64]) -> et.Hierarchy:
    h = et.Hierarchy("ward")
    h.insert(x)
    return h


def insertion(sizes: list[int]) -> dict[int, float]:
    """Microseconds for each point, one row or many in a Python call."""
    headline("Insertion, Ward, 16 columns, mixture of 100 Gaussians")
    print("| points | whole tree in batches, µs a point | next 2,000 one by one, µs a point | moves a point |")
    print("| --- | --- | --- | --- |")
    in_batches, singles = {}, {}
    for n in sizes:
        x, extra = mixture(n), mixture(2_000, seed=1)
        best = np.inf
        for _ in range(3 if n <= 100_000 else 1):
            h = et.Hierarchy("ward")
            parts = range(0, n, 10_000)
            best = min(best, sum(seconds(lambda i=i, h=h: h.insert(x[i : i + 10_000])) for i in parts))
        in_batches[n] = best / n * 1e6
        singles[n] = seconds(lambda h=h: [h.insert(extra[i : i + 1]) for i in range(len(extra))]) / len(extra) * 1e6
        print(f"| {n:,} | {in_batches[n]:.2f} | {singles[n]:.1f} | {h.n_moves / len(h):.2f} |", flush=True)
    low, high = (10_000, max(sizes))
    print(
        f"\nGrowth from {low:,} to {high:,} points: {in_batches[high] / in_batches[low]:.1f} times in batches, "
        f"{singles[high] / singles[low]:.1f} times one by one (aim: at most 6)."
    )
    return in_batches


def birch(n: int, in_batches: dict[int, float]) -> None:
    """Points per second beside scikit-learn's Birch, which keeps subclusters only."""
    from sklearn.cluster import Birch

    headline(f"Beside scikit-learn's Birch(n_clusters=None).partial_fit, {n:,} points in batches of 10,000")
    x = mixture(n)
    for threshold in (4.6, 4.4, 4.2, 4.0, 3.8, 3.6, 3.4, 3.2):
        model = Birch(n_clusters=None, threshold=threshold)
        taken = sum(seconds(lambda i=i, m=model: m.partial_fit(x[i : i + 10_000])) for i in range(0, n, 10_000))
        n_subclusters = len(model.subcluster_centers_)
        if n_subclusters >= 1_000:
            break
    ours = in_batches[n] * n / 1e6
    print(f"Birch: {n / taken:,.0f} points a second, threshold {threshold}, {n_subclusters:,} subclusters")
    print(f"evertree: {n / ours:,.0f} points a second, a tree over all points")
    print(f"Ratio: {taken / ours:.1f} (aim: at least 5)")


def edits(n: int) -> None:
    """One insertion, deletion and update beside a rebuild."""
    from fastcluster import linkage_vector

    headline(f"One edit in {n:,} points beside rebuilding with fastcluster's linkage_vector(method='ward')")
    x, extra = mixture(n), mixture(2_000, seed=1)
    h = filled(x)
    keys = iter(np.random.default_rng(2).permutation(n).tolist())
    verbs: dict[str, Callable[[int], object]] = {
        "insertion": lambda i: h.insert(extra[i : i + 1]),
        "deletion": lambda i: h.remove([next(keys)]),
        "update": lambda i: h.update([next(keys)], extra[i : i + 1]),
    }
    each = {
        name: min(seconds(lambda v=verb: [v(i) for i in range(500)]) for _ in range(3)) / 500
        for name, verb in verbs.items()
    }
    assert h.is_homogeneous()
    rebuild = seconds(lambda: linkage_vector(x, method="ward"))
    print(f"Rebuild: {rebuild:.1f} s")
    for name, taken in each.items():
        print(f"One {name}: {taken * 1e6:.0f} µs, {rebuild / taken:,.0f} times faster (aim: at least 100,000)")


def from_random(n: int) -> None:
    """From a random tree to a homogeneous one."""
    headline(f"From a random tree of {n:,} points to a homogeneous one")
    x = mixture(n)
    for linkage, metric in (("ward", "euclidean"), ("average", "sqeuclidean")):
        reports = []
        for _ in range(3):
            h = et.Hierarchy.random(x, linkage, metric)
            reports.append(h.refine())
        best = min(reports, key=lambda report: report.seconds)
        print(
            f"{linkage} on {metric}: {best.seconds:.2f} s (aim: under 1), {best.moves / n:.1f} moves a point, "
            f"{best.checks / n:.1f} checks a point, {best.seconds / best.checks * 1e9:.0f} ns a check"
        )
        assert h.is_homogeneous()


def memory(n: int) -> None:
    """Bytes for each point: what the columns say, and what the system says."""
    headline(f"Memory of {n:,} points, in bytes a point")
    x = mixture(n)
    filled(x[:1000])
    process = psutil.Process()
    before = process.memory_info().rss
    h = filled(x)
    after = process.memory_info().rss
    data = x.nbytes / n
    print(f"The data: {data:.0f}")
    print(f"The hierarchy, by its columns: {h.n_bytes / n:.0f} (aim: at most {2 * data + 200:.0f})")
    print(f"The hierarchy, by what the process grew: {(after - before) / n:.0f}")


def start_up() -> None:
    """Importing, the first call, and the first call of a second process."""
    headline("Start-up, in seconds")
    imports = "import time; start = time.perf_counter(); import evertree as et; print(time.perf_counter() - start)"
    call = (
        "import time; start = time.perf_counter(); import evertree as et; h = et.Hierarchy(); "
        "h.insert([[0.0, 0.0], [1.0, 1.0]]); print(time.perf_counter() - start)"
    )

    def run(code: str, cache: str) -> float:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        result = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        return float(result.stdout)

    with tempfile.TemporaryDirectory() as cache:
        print(f"import evertree: {min(run(imports, cache) for _ in range(5)):.3f} (aim: under 0.5)")
        print(f"import and first insertion, compiling: {run(call, cache):.2f}")
        print(f"import and first insertion in a second process: {min(run(call, cache) for _ in range(3)):.2f}")


def efficiency(n: int) -> None:
    """How fast the check reads statistics, beside a copy of the same memory."""
    headline(f"Kernel efficiency: a scan of all checks of a tree of {n:,} points")
    h = filled(mixture(n))
    live = h._live
    rows = 3 * (2 * n - 1) / 2  # three nodes at every second node
    n_bytes = rows * (live.tree.mean[:1].nbytes + 8 + 8 + 8)
    scan = min(seconds(h.violations) for _ in range(5))
    copy = min(seconds(lambda: live.tree.mean[: 2 * n].copy()) for _ in range(5))
    copied = 2 * n * live.tree.mean[:1].nbytes
    print(f"Statistics read: {n_bytes / scan / 1e9:.2f} GB a second, {scan / n * 1e9:.0f} ns a check")
    print(f"A plain copy of the means: {copied / copy / 1e9:.2f} GB a second")
    print(f"Ratio: {n_bytes / scan / (copied / copy):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a hundred times fewer points")
    quick = parser.parse_args().quick
    scale = 100 if quick else 1
    print(f"evertree {et.__version__}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    warm = filled(mixture(100))
    warm.update([1], mixture(1))
    warm.remove([2])
    warm.violations()
    et.Hierarchy.random(mixture(10)).refine()
    in_batches = insertion([1_000, 10_000, 100_000] if quick else [1_000, 10_000, 100_000, 1_000_000])
    birch(100_000, in_batches)
    edits(100_000 // (10 if quick else 1))
    from_random(100_000)
    memory(1_000_000 // scale)
    start_up()
    efficiency(100_000)
    if not quick:
        efficiency(1_000_000)
    print(f"\nLoad at the end: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()

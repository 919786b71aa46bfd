"""Speed and memory of the live tree, beside other libraries in the same run. Prints tables; nothing is asserted.

Run it with ``make bench``, or ``python -m benchmarks.live_tree --quick`` for a look in a minute.
Times are the best of several repetitions where that is affordable, because machines are shared.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

import evertree as et
from benchmarks import datasets
from evertree import kernels
from evertree.kernels.columns import MEAN_NODE
from tests.support.pulse import Pulse

N_COLUMNS = 16


def mixture(n: int) -> NDArray[np.float64]:
    """Points of a mixture of 100 Gaussians."""
    return datasets.mixture(n, N_COLUMNS)[0]


def seconds(work: Callable[..., object], arguments: Iterable[Any] | None = None) -> float:
    """How long it takes to call `work` once, or once with each of the arguments."""
    start = time.perf_counter()
    if arguments is None:
        work()
    else:
        for argument in arguments:
            work(argument)
    return time.perf_counter() - start


def headline(text: str) -> None:
    print(f"\n## {text}\n", flush=True)


def filled(x: NDArray[np.float64]) -> et.Hierarchy:
    h = et.Hierarchy("ward", goal="homogeneous")
    h.insert(x)
    return h


def insertion(sizes: list[int]) -> dict[int, float]:
    """Microseconds for each point, one row or many in a Python call."""
    headline("Insertion, Ward, 16 columns, mixture of 100 Gaussians")
    print("| points | in batches of 10,000, µs a point | one row a call, µs a point | moves a point |")
    print("| --- | --- | --- | --- |")
    in_batches, singles = {}, {}
    for n in sizes:
        x = mixture(n)
        batches = [x[i : i + 10_000] for i in range(0, n, 10_000)]
        best = np.inf
        for _ in range(3 if n <= 100_000 else 2):
            h = et.Hierarchy("ward", goal="homogeneous")
            best = min(best, seconds(h.insert, batches))
        in_batches[n] = best / n * 1e6
        one_by_one = et.Hierarchy("ward", goal="homogeneous")
        singles[n] = seconds(one_by_one.insert, (x[i : i + 1] for i in range(n))) / n * 1e6
        print(f"| {n:,} | {in_batches[n]:.2f} | {singles[n]:.1f} | {h.n_moves / len(h):.2f} |", flush=True)
    low, high = (10_000, max(sizes))
    print(
        f"\nGrowth from {low:,} to {high:,} points: {in_batches[high] / in_batches[low]:.1f} times in batches, "
        f"{singles[high] / singles[low]:.1f} times one by one (aim: at most 6)."
    )
    return in_batches


def overhead(n: int) -> None:
    """What Python adds to the kernels where one row is inserted a call: time, calls and files."""
    headline(f"One row a call into {n:,} points: Python beside the kernels")
    x = mixture(n + 6_000)
    h = et.Hierarchy("ward")
    h.insert(x[:n])
    in_kernels = 0.0

    kernel = kernels.statistics.one_point.insert_point

    def timed(*arguments: Any) -> Any:
        nonlocal in_kernels
        start = time.perf_counter()
        leaf = kernel(*arguments)
        in_kernels += time.perf_counter() - start
        return leaf

    rows = [x[i : i + 1] for i in range(n, len(x))]
    total = min(seconds(h.insert, rows[i : i + 1_000]) for i in range(0, 3_000, 1_000)) / 1_000
    kernels.statistics.one_point.insert_point = timed
    best = np.inf
    for i in range(3_000, 6_000, 1_000):
        in_kernels = 0.0
        seconds(h.insert, rows[i : i + 1_000])
        best = min(best, in_kernels / 1_000)
    kernels.statistics.one_point.insert_point = kernel
    calls: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and f"{os.sep}evertree{os.sep}" in frame.f_code.co_filename:
            calls.append(frame.f_code.co_filename)

    row = mixture(1)
    sys.setprofile(note)
    h.insert(row)
    sys.setprofile(None)
    print(f"One row: {total * 1e6:.1f} µs, of which kernels {best * 1e6:.1f} µs")
    print(f"Python beside them: {(total - best) * 1e6:.1f} µs (aim: at most 15)")
    in_python = [file for file in calls if f"{os.sep}kernels{os.sep}" not in file]
    print(f"{len(in_python)} calls (aim: at most 50) in {len(set(in_python))} files (aim: at most 10)")


def freeze(scale: int) -> None:
    """For how long a call keeps other threads from running."""
    headline("The longest time that a call holds the interpreter's lock, in ms (aim: at most 100)")
    print("| tree | insert | remove | update | set_linkage | cut |")
    print("| --- | --- | --- | --- | --- | --- |")
    for linkage, metric, n, other in (
        ("ward", "euclidean", 200_000, ("average", "sqeuclidean")),
        ("average", "cosine", 100_000, ("average", "sqeuclidean")),
        ("single", "euclidean", 6_000, ("complete",)),
        ("average", "euclidean", 6_000, ("complete",)),
        ("minimax", "euclidean", 3_000, ("single",)),
    ):
        count = n // scale
        x = mixture(count)
        found = []
        for part in (60, count):  # the first time compiles
            h = et.Hierarchy(linkage, metric)
            some = x[:part]
            verbs: tuple[Callable[[], object], ...] = (
                partial(h.insert, some),
                lambda h=h, part=part: h.remove(h.keys()[: part // 10]),
                lambda h=h, part=part, some=some: h.update(h.keys()[: part // 10], some[: part // 10]),
                partial(h.set_linkage, *other),
                partial(h.cut, n_clusters=10),
            )
            found = []
            for verb in verbs:
                with Pulse() as pulse:
                    verb()
                found.append(f"{pulse.longest * 1e3:.0f}")
        print(f"| {linkage} on {metric}, {count:,} points | {' | '.join(found)} |", flush=True)


def birch(n: int, in_batches: dict[int, float]) -> None:
    """Points per second beside scikit-learn's Birch, which keeps subclusters only."""
    from sklearn.cluster import Birch

    headline(f"Beside scikit-learn's Birch(n_clusters=None).partial_fit, {n:,} points in batches of 10,000")
    x = mixture(n)
    batches = [x[i : i + 10_000] for i in range(0, n, 10_000)]
    for threshold in (4.2, 4.0, 3.8, 3.6, 3.4):  # until there are 1,000 to 3,000 subclusters
        model = Birch(n_clusters=None, threshold=threshold)
        taken = seconds(model.partial_fit, batches)
        n_subclusters = len(model.subcluster_centers_)
        if n_subclusters >= 1_000:
            break
    again = Birch(n_clusters=None, threshold=threshold)
    taken = min(taken, seconds(again.partial_fit, batches))
    ours = in_batches[n] * n / 1e6
    print(f"Birch: {n / taken:,.0f} points a second, threshold {threshold}, {n_subclusters:,} subclusters")
    print(f"evertree: {n / ours:,.0f} points a second, a tree over all points")
    print(f"Ratio: {taken / ours:.1f} (aim: at least 5)")


def edits(n: int) -> None:
    """One insertion, deletion and update beside a rebuild."""
    from fastcluster import linkage_vector

    headline(f"One edit in {n:,} points beside rebuilding with fastcluster's linkage_vector(method='ward')")
    x = mixture(n + 3_000)
    h = filled(x[:n])
    keys = iter(np.random.default_rng(2).permutation(n).tolist())
    fresh = iter([x[i : i + 1] for i in range(n, len(x))])
    verbs: dict[str, Callable[[int], object]] = {
        "insertion": lambda _: h.insert(next(fresh)),
        "deletion": lambda _: h.remove([next(keys)]),
        "update": lambda _: h.update([next(keys)], next(fresh)),
    }
    each = {name: min(seconds(verb, range(500)) for _ in range(3)) / 500 for name, verb in verbs.items()}
    assert h.is_homogeneous()
    rebuild = seconds(lambda: linkage_vector(x[:n], method="ward"))
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
            h = et.Hierarchy.random(x, linkage, metric, goal="homogeneous")
            reports.append(h.refine())
        best = min(reports, key=lambda report: report.seconds)
        print(
            f"{linkage} on {metric}: {best.seconds:.2f} s (aim: under 1), {best.moves / n:.1f} moves a point, "
            f"{best.checks / n:.1f} checks a point, {best.seconds / best.checks * 1e9:.0f} ns a check"
        )
        assert h.is_homogeneous()


def deadlines(n: int) -> None:
    """How long after its time is up a refinement returns."""
    headline(f"refine(seconds=…) on a random tree of {n:,} points")
    h = et.Hierarchy.random(mixture(n), goal="homogeneous")
    for budget in (0.01, 0.05, 0.2):
        taken = seconds(lambda s: h.refine(seconds=s), [budget])
        print(f"{budget} s: back {(taken - budget) * 1e3:.1f} ms late (aim: at most 50)")


def memory(n: int) -> None:
    """Bytes for each point: what the columns say, and what the system says of a new process."""
    headline(f"Memory of {n:,} points, in bytes a point")
    code = f"""
import psutil, evertree as et
from benchmarks.live_tree import filled, mixture
x = mixture({n})
filled(x[:1000])
before = psutil.Process().memory_info().rss
h = filled(x)
print(h.n_bytes / {n}, (psutil.Process().memory_info().rss - before) / {n})
"""
    columns, resident = (float(word) for word in run(code).split())
    data = 8 * N_COLUMNS
    print(f"The data: {data}")
    print(f"The hierarchy, by its columns: {columns:.0f} (aim: at most {2 * data + 200})")
    print(f"The hierarchy, by what the process grew: {resident:.0f}")


def run(code: str, **environment: str) -> str:
    """What a program prints in a new process."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True).stdout


def start_up() -> None:
    """Importing, and the first call; `benchmarks.first_result` has more."""
    headline("Start-up, in seconds")
    imports = "import time; start = time.perf_counter(); import evertree as et; print(time.perf_counter() - start)"
    call = (
        "import time; start = time.perf_counter(); import evertree as et; h = et.Hierarchy(); "
        "h.insert([[0.0, 0.0], [1.0, 1.0]]); print(time.perf_counter() - start)"
    )
    print(f"import evertree: {min(float(run(imports)) for _ in range(5)):.3f} (aim: under 0.5)")
    print(f"import and first insertion: {min(float(run(call)) for _ in range(5)):.2f} (aim: under 0.5)")


def efficiency(n: int) -> None:
    """How fast the check reads statistics, beside a copy of the same memory."""
    headline(f"Kernel efficiency: a scan of all checks of a tree of {n:,} points")
    h = filled(mixture(n))
    live = h.state.live
    rows = 3 * (2 * n - 1) / 2  # three nodes at every second node
    n_bytes = rows * (live.tree.mean[:1].nbytes + MEAN_NODE.itemsize)
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
    et.Hierarchy.random(mixture(10), goal="homogeneous").refine()
    in_batches = insertion([1_000, 10_000, 100_000] if quick else [1_000, 10_000, 100_000, 1_000_000])
    overhead(10_000)
    freeze(10 if quick else 1)
    birch(100_000, in_batches)
    edits(100_000 // (10 if quick else 1))
    from_random(100_000)
    deadlines(1_000_000 // scale)
    memory(1_000_000 // scale)
    start_up()
    efficiency(100_000)
    if not quick:
        efficiency(1_000_000)
    print(f"\nLoad at the end: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()

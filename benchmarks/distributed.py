"""Trees on Dask: speed-up from one worker process to two, memory of each worker, growth of seconds and bytes, quality.

Run it with ``make bench-distributed``; ``python -m benchmarks.distributed speed-up --points 100000`` does a part of it.
Prints tables; nothing is asserted. Data are made, or read, by the workers, chunk by chunk. The machine should be idle.
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import psutil
from distributed import Client, LocalCluster
from numpy.typing import NDArray

import evertree as et
from benchmarks import datasets

#: With little memory, results go to disk early, so that there is room for what tasks need: as shares of the limit.
SPILL_EARLY = {
    "distributed.worker.memory.target": 0.25,
    "distributed.worker.memory.spill": 0.5,
    "distributed.worker.memory.pause": 0.75,
}

SECTIONS = ("speed-up", "memory", "growth", "quality")
LEVELS = (10, 100, 300, 1_000)
ORDERS = {"letter": 13, "shuttle": 3, "covtype": 1}
N_COLUMNS = 16
CHUNK = 200_000


def headline(text: str) -> None:
    print(f"\n## {text}\n", flush=True)


def gaussians(n: int, n_clusters: int = 100) -> Any:
    """A mixture of Gaussians as a Dask array, each chunk of which is made when it is needed."""
    chunks = [min(CHUNK, n - start) for start in range(0, n, CHUNK)]
    shape = {"chunks": (tuple(chunks), (N_COLUMNS,)), "dtype": np.float64, "meta": np.empty((0, 0))}
    return da.map_blocks(_block, n_clusters=n_clusters, **shape)


def _block(n_clusters: int, block_info: Any = None) -> NDArray[np.float64]:
    where = block_info[None]
    rng = np.random.default_rng([1, where["chunk-location"][0]])
    centres = 10 * np.random.default_rng(0).normal(size=(n_clusters, N_COLUMNS))
    n_rows = where["chunk-shape"][0]
    return centres[rng.integers(n_clusters, size=n_rows)] + rng.normal(size=(n_rows, N_COLUMNS))


@contextmanager
def workers(count: int, memory_limit: str | None = None) -> Iterator[Client]:
    """A local cluster of so many processes, which have compiled what they need."""
    options = {"n_workers": count, "threads_per_worker": 1, "dashboard_address": ":0"}
    early = dask.config.set(SPILL_EARLY if memory_limit else {})
    with early, LocalCluster(**options, memory_limit=memory_limit or 0) as cluster, Client(cluster) as client:
        with et.distributed.cluster(gaussians(1_000), client, part_size=200) as warm:
            warm.cut(n_clusters=2).compute()
        client.run(_warm_up)
        yield client


def _warm_up() -> None:
    h = et.Hierarchy()
    h.insert(np.random.default_rng(0).normal(size=(100, N_COLUMNS)))
    h.refine()


def clustered(X: Any, client: Client, part_size: int) -> et.distributed.DistributedHierarchy:
    """A tree, and beside its report what is true of it."""
    t = et.distributed.cluster(X, client, part_size=part_size)
    report = t.report
    print(
        f"{len(t):,} points, {report.parts} parts: {report.seconds:.1f} s, {report.rounds} rounds, "
        f"{report.grafts:,} grafts, {report.bytes_moved / 1e6:,.0f} MB moved, stopped by {report.stopped_by!r}",
        flush=True,
    )
    return t


def speed_up(n: int, part_size: int, folder: Path) -> None:
    """Seconds with one worker and with two."""
    headline("From one worker process to two (aim: at least 1.5)")
    data = {f"{n:,} Gaussian points": lambda: gaussians(n)}
    missing = datasets.missing("covtype", folder)
    if missing is None:
        data["covtype"] = lambda: da.from_array(datasets.load("covtype", folder)[0], chunks=(CHUNK // 2, -1))
    else:
        print(f"covtype: {missing}")
    for name, make in data.items():
        seconds = {}
        for count in (1, 2):
            with workers(count) as client:
                print(f"{name}, {count} worker{'s' if count > 1 else ''}: ", end="")
                seconds[count] = clustered(make(), client, part_size).report.seconds
        print(f"{name}: {seconds[1] / seconds[2]:.2f} times as fast with two workers", flush=True)


class Memory:
    """The most memory that each worker has had, by a look ten times a second; those that were killed count too."""

    def __init__(self) -> None:
        self.peak: dict[int, int] = {}
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        processes: dict[int, psutil.Process] = {}
        while not self._end.wait(0.1):
            # Nannies are in this process: their children are the workers.
            for pid in {process.pid for process in psutil.Process().children(recursive=True)} - processes.keys():
                processes[pid] = psutil.Process(pid)
            for pid, process in processes.items():
                try:
                    self.peak[pid] = max(self.peak.get(pid, 0), process.memory_info().rss)
                except psutil.NoSuchProcess:
                    continue


def memory(n: int, n_clusters: int, part_size: int, limit: str) -> None:
    """More points than a worker may hold."""
    headline(f"{n:,} × {N_COLUMNS} points of {n_clusters:,} Gaussians, two workers of {limit} each")
    print(f"The data: {n * N_COLUMNS * 8 / 1e6:,.0f} MB")
    with workers(2, limit) as client, Memory() as looked:
        before = psutil.Process().memory_info().rss
        t = clustered(gaussians(n, n_clusters), client, part_size)
        began = time.perf_counter()
        sizes = np.sort(da.bincount(t.cut(n_clusters=10), minlength=10).compute())
        print(f"Ten clusters of {', '.join(f'{size:,}' for size in sizes)} points, {time.perf_counter() - began:.1f} s")
        workers_now = set(client.run(os.getpid).values())
        grown = psutil.Process().memory_info().rss - before
    peaks = [f"{looked.peak[pid] / 1e6:,.0f} MB" for pid in sorted(workers_now) if pid in looked.peak]
    # What else runs beside a nanny is small.
    killed = [pid for pid, peak in looked.peak.items() if pid not in workers_now and peak > 100e6]
    print(f"Most memory of each worker: {', '.join(peaks)}; {len(killed)} restarted")
    print(f"The driver, with the scheduler, grew by {grown / 1e6:,.0f} MB")


def growth(sizes: list[int], part_size: int) -> None:
    """Seconds and bytes by the number of points, and the exponents of their growth."""
    headline("Growth with the number of points, two workers")
    seconds, moved = [], []
    for n in sizes:
        with workers(2) as client:
            report = clustered(gaussians(n), client, part_size).report
        seconds.append(report.seconds)
        moved.append(report.bytes_moved)
    for what, values in (("seconds", seconds), ("bytes moved", moved)):
        some = [(n, value) for n, value in zip(sizes, values, strict=True) if n > 2 * part_size]  # several parts
        if len(some) > 1:
            exponent, logarithm = np.polyfit(*np.log(np.array(some, float)).T, 1)
            print(f"{what}: about {np.exp(logarithm):.3g} · n^{exponent:.2f}")


def quality(part_size: int, folder: Path) -> None:
    """What trees are worth beside those of one machine, on average over some orders of the points."""
    headline("Quality beside one machine (aim: within 2 %)")
    with workers(2) as client:
        for name, n_orders in ORDERS.items():
            missing = datasets.missing(name, folder)
            if missing is not None:
                print(f"{name}: {missing}")
                continue
            runs = [
                beside_one_machine(*datasets.load(name, folder, order), client, part_size) for order in range(n_orders)
            ]
            for what in runs[0]:
                ours, theirs = np.mean([run[what] for run in runs], axis=0)
                print(f"{name}, {what}: {ours:.4g}, on one machine {theirs:.4g}: {ours / theirs - 1:+.2%}", flush=True)


def beside_one_machine(
    X: NDArray[Any], y: NDArray[np.int64], client: Client, part_size: int
) -> dict[str, tuple[float, float]]:
    """Measures of a tree in at least eight parts, and of one that never was in parts."""
    size = min(part_size, len(X) // 8)
    with clustered(da.from_array(X, chunks=(size, -1)), client, size) as t:
        ours = measures(t.to_hierarchy(), y)
    alone = et.Hierarchy()
    alone.insert(X)
    alone.refine()
    return {what: (ours[what], value) for what, value in measures(alone, y).items()}


def measures(h: et.Hierarchy, y: NDArray[np.int64]) -> dict[str, float]:
    """The purity and the value of a Ward tree, and the error within its clusters at some levels."""
    heights = h.linkage_matrix()[:, 2]
    return {
        "purity": et.quality.dendrogram_purity(h, y),
        "tree value": et.quality.tree_value(h),
        **{f"error within {k:,} clusters": float((heights[: len(h) - k] ** 2).sum() / 2) for k in LEVELS},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; all by default")
    parser.add_argument("--points", type=int, default=1_000_000, help="points of the speed-up")
    parser.add_argument("--large", type=int, default=10_000_000, help="points of the run with little memory")
    parser.add_argument("--large-clusters", type=int, default=1_000, help="Gaussians in that run")
    parser.add_argument("--memory-limit", default="1GB", help="of each worker in that run")
    parser.add_argument("--sizes", type=int, nargs="+", default=[300_000, 1_000_000, 3_000_000])
    parser.add_argument("--part-size", type=int, default=100_000, help="points; with little memory 50,000 at most")
    datasets.add_folder(parser)
    options = parser.parse_args()
    unknown = set(options.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    print(f"evertree {et.__version__}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    chosen = options.sections or SECTIONS
    if "speed-up" in chosen:
        speed_up(options.points, options.part_size, options.folder)
    if "memory" in chosen:
        memory(options.large, options.large_clusters, min(options.part_size, 50_000), options.memory_limit)
    if "growth" in chosen:
        growth(options.sizes, options.part_size)
    if "quality" in chosen:
        quality(options.part_size, options.folder)
    print(f"\nLoad at the end: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()

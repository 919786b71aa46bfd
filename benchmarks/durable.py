"""Durable hierarchies: edits per second beside SQLite's own commits, and how long opening takes.

Run with ``python -m benchmarks.durable``; ``--points`` sets the size for opening.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import evertree as et
from benchmarks import datasets

N_COLUMNS = 16
N_SINGLE = 2_000
N_BATCHED = 200_000
REPETITIONS = 5


def mixture(n: int) -> NDArray[np.float64]:
    """Points of a mixture of 100 Gaussians."""
    return datasets.mixture(n, N_COLUMNS)[0]


def fresh(folder: str) -> Iterator[Path]:
    """Names of files that are not there."""
    number = 0
    while True:
        number += 1
        yield Path(folder) / f"{number}.db"


def seconds_of_commits(path: Path, x: NDArray[np.float64]) -> float:
    """A row for each point, and a transaction for each row, with the settings of a durable hierarchy."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE points (id INTEGER PRIMARY KEY, x BLOB)")
    began = time.perf_counter()
    for i in range(len(x)):
        connection.execute("INSERT INTO points VALUES (?, ?)", (i, x[i].tobytes()))
    seconds = time.perf_counter() - began
    connection.close()
    return seconds


def seconds_of_inserts(h: et.Hierarchy, x: NDArray[np.float64], size: int) -> float:
    began = time.perf_counter()
    for start in range(0, len(x), size):
        h.insert(x[start : start + size])
    return time.perf_counter() - began


def measure_single(paths: Iterator[Path]) -> None:
    """In turns, so that all see the same moods of the machine; the best of each counts."""
    start = et.Hierarchy()
    x = mixture(10_000 + N_SINGLE)
    start.insert(x[N_SINGLE:])
    x = x[:N_SINGLE]
    commits, durable, memory = [], [], []
    for _ in range(REPETITIONS):
        commits.append(seconds_of_commits(next(paths), x))
        with et.open(next(paths), start=start) as h:
            durable.append(seconds_of_inserts(h, x, 1))
        memory.append(seconds_of_inserts(start.copy(), x, 1))
    print(f"Single inserts into 10,000 points of {N_COLUMNS} columns, best of {REPETITIONS} runs in turns:")
    for name, seconds in (("SQLite commits", commits), ("durable inserts", durable), ("in memory", memory)):
        print(f"  {name:16} {N_SINGLE / min(seconds):8,.0f} a second")
    ratios = sorted(a / b for a, b in zip(commits, durable, strict=True))
    best = min(commits) / min(durable)
    print(f"  durable / SQLite {best:8.2f} (of the best; run by run {ratios[0]:.2f} to {ratios[-1]:.2f})")


def measure_batches(paths: Iterator[Path]) -> None:
    x = mixture(N_BATCHED)
    for size in (1_000, 10_000):
        durable, memory = [], []
        for _ in range(3):
            with et.open(next(paths)) as h:
                durable.append(seconds_of_inserts(h, x, size))
            memory.append(seconds_of_inserts(et.Hierarchy(), x, size))
        print(
            f"Batches of {size:,}: {N_BATCHED / min(durable):,.0f} points a second durable, "
            f"{N_BATCHED / min(memory):,.0f} in memory"
        )


def measure_opening(paths: Iterator[Path], n_points: int) -> None:
    path = next(paths)
    x = mixture(n_points + 1_000)
    h = et.open(path)
    began = time.perf_counter()
    h.insert(x[1_000:])
    print(f"{n_points:,} points inserted in {time.perf_counter() - began:.1f} s", end="")
    began = time.perf_counter()
    h.checkpoint()
    print(f", snapshot {time.perf_counter() - began:.1f} s", end="")
    seconds_of_inserts(h, x[:1_000], 1)
    n_bytes = h.n_bytes
    del h  # as after a crash: to close it would leave a snapshot
    began = time.perf_counter()
    with et.open(path):
        print(f", opened with 1,000 edits after it in {time.perf_counter() - began:.1f} s", end="")
        began = time.perf_counter()
    print(f", closed in {time.perf_counter() - began:.1f} s", end="")
    print(f"; {path.stat().st_size / 1e6:,.0f} MB, {n_bytes / 1e6:,.0f} MB in memory")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=1_000_000, help="for opening")
    arguments = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, SQLite {sqlite3.sqlite_version}")
    with tempfile.TemporaryDirectory() as folder:
        paths = fresh(folder)
        measure_single(paths)
        measure_batches(paths)
        measure_opening(paths, arguments.points)


if __name__ == "__main__":
    main()

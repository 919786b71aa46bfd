"""A table of PostgreSQL, followed: rows a second for the load, and seconds for batches of mixed changes.

``python -m benchmarks.follow`` starts a server of its own and needs about 2 GB of memory and 1 GB of disk for a million
rows.
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np
from numpy.typing import NDArray

from benchmarks import datasets
from evertree import Hierarchy
from evertree.sql import Follower, Tick, follow
from tests.support.postgres import Server, binaries

N_COLUMNS = 16
NAMES = [f"x{k}" for k in range(N_COLUMNS)]

#: Of the changes in a batch, how many are rows that are new and rows that are gone; the others are changed.
SHARE_NEW, SHARE_GONE = 0.4, 0.2


def fill(server: Server, database: str, x: NDArray[np.float64]) -> None:
    with server.connect(database) as connection:
        connection.execute(
            f"CREATE TABLE items (id bigint PRIMARY KEY, version bigint, {', '.join(f'{n} float8' for n in NAMES)})"
        )
        with connection.cursor() as cursor, cursor.copy("COPY items FROM STDIN") as copy:
            for i, row in enumerate(x.tolist()):
                copy.write_row((i, i, *row))
        connection.execute("CREATE INDEX ON items (version)")
        connection.execute("VACUUM ANALYZE items")


class Changes:
    """Batches of changes, each in one transaction."""

    def __init__(self, server: Server, database: str, x: NDArray[np.float64], seed: int = 1) -> None:
        self._connection = server.connect(database)
        self._rng = np.random.default_rng(seed)
        self._x = x
        self._live = np.arange(len(x))
        self._next = len(x)
        self._version = len(x)

    def _near(self, count: int) -> list[list[float]]:
        """Points of the same mixture."""
        x = self._x[self._rng.integers(len(self._x), size=count)]
        return (x + self._rng.normal(scale=0.1, size=x.shape)).tolist()

    def make(self, count: int) -> None:
        """One batch of so many changes."""
        n_new, n_gone = round(SHARE_NEW * count), round(SHARE_GONE * count)
        chosen = self._rng.choice(self._live, count - n_new, replace=False)
        gone, changed = chosen[:n_gone], chosen[n_gone:]
        new = np.arange(self._next, self._next + n_new)
        self._next += n_new
        self._version += 1
        self._live = np.concatenate([np.setdiff1d(self._live, gone), new])
        marks = ", ".join(["%s"] * (N_COLUMNS + 2))
        assignments = ", ".join(f"{name} = %s" for name in NAMES)
        with self._connection.transaction(), self._connection.cursor() as cursor:
            rows = zip(new.tolist(), self._near(new.size), strict=True)
            cursor.executemany(
                f"INSERT INTO items VALUES ({marks})", [(key, self._version, *point) for key, point in rows]
            )
            rows = zip(changed.tolist(), self._near(changed.size), strict=True)
            cursor.executemany(
                f"UPDATE items SET version = %s, {assignments} WHERE id = %s",
                [(self._version, *point, key) for key, point in rows],
            )
            cursor.execute("DELETE FROM items WHERE id = ANY(%s)", [gone.tolist()])


def show(name: str, tick: Tick) -> None:
    outside = tick.seconds - tick.seconds_clustering
    print(
        f"{name}: {tick.seconds:.3f} s, of them {outside:.3f} s ({outside / tick.seconds:.0%}) outside clustering; "
        f"{tick.inserted:,} new, {tick.updated:,} changed, {tick.removed:,} gone; {tick.assigned:,} assignments, "
        f"{tick.events:,} events, {tick.moved:,} moves; load {os.getloadavg()[0]:.1f}",
        flush=True,
    )


def measure(follower: Follower, changes: Changes, n_batches: int, batch: int) -> None:
    ticks = []
    for number in range(n_batches):
        changes.make(batch)
        ticks.append(follower.poll())
        show(f"batch {number + 1}", ticks[-1])
    seconds = np.array([tick.seconds for tick in ticks])
    share = 1 - sum(tick.seconds_clustering for tick in ticks) / seconds.sum()
    print(
        f"\nA batch of {batch:,} changes: median {np.median(seconds):.3f} s, mean {seconds.mean():.3f} s, longest "
        f"{seconds.max():.3f} s (aim: under 0.5 s); {share:.0%} of it outside clustering"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--batch", type=int, default=1_000)
    parser.add_argument("--clusters", type=int, nargs="+", default=[100])
    parser.add_argument("--no-version", action="store_true", help="compare all rows in each poll")
    options = parser.parse_args()
    programs = binaries()
    if programs is None:
        raise SystemExit("PostgreSQL's server is not installed: apt install postgresql")
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} before the start")
    x = datasets.mixture(options.rows, N_COLUMNS)[0]
    Hierarchy().insert(x[:100])  # compiled kernels are read from the disk, once and for all
    server = Server(programs, "fsync=on")
    try:
        url = server.new_database()
        database = url.rpartition("/")[2]
        fill(server, database, x)
        version = None if options.no_version else "version"
        start = time.perf_counter()
        with follow(url, "items", "id", NAMES, version=version, n_clusters=options.clusters) as follower:
            taken = time.perf_counter() - start
            print(
                f"load of {options.rows:,} rows, {N_COLUMNS} columns: {taken:.1f} s, {options.rows / taken:,.0f} rows "
                f"a second (aim: 20,000); load {os.getloadavg()[0]:.1f}\n"
            )
            measure(follower, Changes(server, database, x), options.batches, options.batch)
    finally:
        server.remove()


if __name__ == "__main__":
    main()

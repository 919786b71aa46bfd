"""`Follower`: a hierarchy that follows a table, and writes its clusters beside it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from evertree.durable import DurableHierarchy
from evertree.errors import ParameterError
from evertree.hierarchy import Hierarchy
from evertree.locking import one_at_a_time
from evertree.partition import Partition
from evertree.sql.cluster_changes import ClusterChanges
from evertree.sql.database import FollowedDatabase
from evertree.sql.follow_options import FollowOptions
from evertree.sql.output_tables import FollowerState, OutputTables
from evertree.sql.polling import PollingLoop
from evertree.sql.source_table import SourceTable
from evertree.sql.tree_sync import SyncCounts, TreeSync
from evertree.tree.refine import Report


@dataclass(frozen=True)
class Tick:
    """What one poll has found and written; see `Follower.poll`.

    Attributes
    ----------
    inserted, updated, removed : int
        The numbers of points that were inserted, updated and removed.
    skipped : int
        The number of rows newly left out, because a value is missing or cannot be used.
    events : int
        The number of events of clusters: born, died, split, merged.
    moved : int
        The number of keys that moved to another cluster, other than by a split or a merger.
    assigned : int
        The number of rows of assignments that were written or deleted.
    seconds : float
        How long the poll took.
    seconds_clustering : float
        How much of that was spent on the tree and its clusters, and not on the database.
    report : Report
        The report of `Hierarchy.refine`.

    Examples
    --------
    >>> import sqlite3
    >>> db = sqlite3.connect("items.db")
    >>> with db:
    ...     _ = db.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, x REAL)")
    ...     _ = db.executemany("INSERT INTO items VALUES (?, ?)", [(1, 0.0), (2, 0.5), (3, 9.0)])
    >>> with et.follow("items.db", "items", key="id", columns=["x"], n_clusters=2) as follower:
    ...     with db:
    ...         _ = db.execute("DELETE FROM items WHERE id = 2")
    ...     tick = follower.poll()
    >>> tick.removed, tick.assigned, tick.events
    (1, 1, 0)
    >>> db.close()
    """

    inserted: int
    updated: int
    removed: int
    skipped: int
    events: int
    moved: int
    assigned: int
    seconds: float
    seconds_clustering: float
    report: Report


class Follower:
    """A hierarchy that follows a table of a database; `evertree.follow` makes it.

    Use it in a ``with`` block, or close it.

    Attributes
    ----------
    hierarchy : Hierarchy
        The tree, to read from. Do not edit it: polls undo that.
    last : Tick or None
        The result of the last poll. `evertree.follow` makes the first.

    Examples
    --------
    >>> import sqlite3
    >>> db = sqlite3.connect("items.db")
    >>> with db:
    ...     _ = db.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, x REAL, y REAL)")
    ...     _ = db.executemany("INSERT INTO items VALUES (?, ?, ?)", [(1, 0, 0), (2, 0, 1), (3, 9, 9)])
    >>> follower = et.follow("items.db", "items", key="id", columns=["x", "y"], n_clusters=2)
    >>> follower
    Follower('items' of sqlite:///items.db): 3 points
    >>> follower.close()
    >>> db.close()
    """

    def __init__(
        self,
        database: FollowedDatabase,
        options: FollowOptions,
        source: SourceTable,
        output: OutputTables,
        hierarchy: Hierarchy,
    ) -> None:
        self.hierarchy = hierarchy
        self.last: Tick | None = None
        self._lock = threading.RLock()
        self._database = database
        self._options = options
        self._source = source
        self._output = output
        self._sync = TreeSync(database, options, source, output, hierarchy)
        self._written: tuple[int, dict[str, Partition]] | None = None  # what the tables have, and since which tick
        self._is_synced = False  # whether the whole table has been compared with the tree
        self._is_closed = False

    def __repr__(self) -> str:
        content = "closed" if self._is_closed else f"{len(self.hierarchy):,} points"
        return f"Follower({self._options.table!r} of {self._database}): {content}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()

    @one_at_a_time
    def close(self) -> None:
        """Close the connections, and the store where there is one. What was written stays.

        Examples
        --------
        >>> import sqlite3
        >>> db = sqlite3.connect("items.db")
        >>> with db:
        ...     _ = db.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, x REAL)")
        ...     _ = db.executemany("INSERT INTO items VALUES (?, ?)", [(1, 0.0), (2, 0.5), (3, 9.0)])
        >>> follower = et.follow("items.db", "items", key="id", columns=["x"], n_clusters=2)
        >>> follower.close()
        >>> follower
        Follower('items' of sqlite:///items.db): closed
        >>> db.close()
        """
        self._is_closed = True
        try:
            if isinstance(self.hierarchy, DurableHierarchy):
                self.hierarchy.close()
        finally:
            self._database.close()

    @one_at_a_time
    def poll(self, full: bool = False) -> Tick:
        """Find what has changed in the table, update the tree, and write the clusters, in one transaction.

        If it fails, nothing is written, and the next poll makes up for it.

        Parameters
        ----------
        full : bool
            Compare all rows, even with versions. Without versions, every poll does that.

        Returns
        -------
        tick : Tick

        Raises
        ------
        TransientDatabaseError
            If the database cannot be reached, or is busy. Try again.
        DatabaseError
            If the database reports an error.
        ReplacedError
            If another follower has taken over the tables.

        Examples
        --------
        >>> import sqlite3
        >>> db = sqlite3.connect("items.db")
        >>> with db:
        ...     _ = db.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, x REAL)")
        ...     _ = db.executemany("INSERT INTO items VALUES (?, ?)", [(1, 0.0), (2, 0.5), (3, 9.0)])
        >>> with et.follow("items.db", "items", key="id", columns=["x"], n_clusters=2) as follower:
        ...     with db:
        ...         _ = db.execute("INSERT INTO items VALUES (4, 9.5)")
        ...     follower.poll().inserted
        1
        >>> db.close()
        """
        if self._is_closed:
            raise ParameterError("the follower must not be closed; it is: use follow() again")
        self.last = self._database.call(self._poll, full)
        return self.last

    def run(
        self,
        interval: float = 5.0,
        listen: str | None = None,
        on_tick: Callable[[Tick], object] | None = None,
        stop: threading.Event | None = None,
        full_every: float | None = None,
    ) -> None:
        """Poll until stopped.

        Ctrl-C ends it after the current poll; a second Ctrl-C rolls that poll back. When the database cannot be
        reached, it tries again, after longer and longer pauses.

        Parameters
        ----------
        interval : float
            Seconds from the end of a poll to the next one.
        listen : str, optional
            PostgreSQL only: a channel. A ``NOTIFY`` on it starts a poll at once; without one, the interval does.
        on_tick : callable, optional
            Called with each `Tick`.
        stop : threading.Event, optional
            Set it to end the loop.
        full_every : float, optional
            Seconds between polls that compare all rows, for versions that do not grow from commit to commit.

        Examples
        --------
        >>> import sqlite3, threading
        >>> db = sqlite3.connect("items.db")
        >>> with db:
        ...     _ = db.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, x REAL)")
        ...     _ = db.executemany("INSERT INTO items VALUES (?, ?)", [(1, 0.0), (2, 0.5), (3, 9.0)])
        >>> stop = threading.Event()
        >>> with et.follow("items.db", "items", key="id", columns=["x"], n_clusters=2) as follower:
        ...     follower.run(interval=0.1, on_tick=lambda tick: stop.set(), stop=stop)
        >>> db.close()
        """
        PollingLoop(self._database, self.poll, interval, listen, on_tick, stop, full_every).run()

    def _poll(self, full: bool) -> Tick:
        start = time.perf_counter()
        h, sync = self.hierarchy, self._sync
        if h.window is not None:
            raise ParameterError(
                f"the table says which points there are, so its hierarchy must have no window; it has {h.window}: lift "
                "it by keep_all(), and delete old rows from the table"
            )
        sync.counts = SyncCounts()
        with self._database.transaction() as connection:
            state = self._output.read_state(connection)
            before = self._written_partitions(connection, state)
            last_version = self._source.last_version(connection)
            if full or not self._is_synced or _has_gone_back(state.last_version, last_version):
                self._is_synced = False
                sync.compare_all(connection)
                self._is_synced = True
                report = self._refine()
            else:
                sync.compare_since(connection, state.last_version)
                report = self._remove_and_refine(connection)
            with sync.clustering():
                after = {cut.name: cut.partition(h, before[cut.name]) for cut in self._options.cuts}
                changes = {name: ClusterChanges.between(before[name], after[name]) for name in after}
                scores = self._scores(after, changes)
            state, n_assigned = self._output.write(connection, state, last_version, after, changes, scores)
        self._written = state.tick, after
        sync.unscored.clear()
        return Tick(
            **vars(sync.counts),
            events=sum(len(change.events) for change in changes.values()),
            moved=sum(len(change.moved) for change in changes.values()),
            assigned=n_assigned,
            seconds=time.perf_counter() - start,
            report=report,
        )

    def _written_partitions(self, connection: sa.Connection, state: FollowerState) -> dict[str, Partition]:
        """The clusters in the tables: known, unless it is not known whether the last poll was committed."""
        if self._written is None or self._written[0] != state.tick:
            return self._output.read_partitions(connection, state)
        return self._written[1]

    def _refine(self) -> Report:
        with self._sync.clustering():
            return self.hierarchy.refine(seconds=self._options.seconds)

    def _remove_and_refine(self, connection: sa.Connection) -> Report:
        """Remove rows that are gone from the table, and refine the tree.

        A database server needs about as long to find these rows as refining takes, so both are done at the same time.
        """
        sync = self._sync
        if self._database.kind != "postgresql" or self._options.seconds is None:
            sync.remove(connection, sync.find_removed(connection))
            return self._refine()
        with ThreadPoolExecutor(1) as executor:
            search = executor.submit(sync.find_removed, connection)
            report = self._refine()
            removed = search.result()
        sync.remove(connection, removed)
        return report

    def _scores(
        self, partitions: dict[str, Partition], changes: dict[str, ClusterChanges]
    ) -> tuple[NDArray[np.intp], list[float]]:
        """Positions and scores of the rows that are new or changed in the tree, or new in the tables.

        Every edit changes the scores of all points. Writing them all would take longer than the rest of a poll, so a
        row keeps the score of the moment that matters for an alarm: when it came or changed.
        """
        h, measure = self.hierarchy, self._options.scores
        first = next(iter(partitions))
        if measure is None or not len(h):
            return np.empty(0, np.intp), []
        positions = h.positions([key for key in dict.fromkeys(self._sync.unscored) if key in h])
        positions = np.unique(np.concatenate([positions, changes[first].new]))
        if not positions.size:
            return positions, []
        return positions, h.anomaly_scores(keys=partitions[first].keys_at(positions), measure=measure).tolist()


def _has_gone_back(last: Any, now: Any) -> bool:
    """Whether versions do not tell what is new: there are none, or the largest is smaller than it was."""
    return last is None or now is None or bool(now < last)

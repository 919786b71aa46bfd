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

from evertree.durable import DurableHierarchy
from evertree.errors import ParameterError
from evertree.hierarchy import Hierarchy
from evertree.locking import one_at_a_time
from evertree.partition import Partition
from evertree.sql.database import Database
from evertree.sql.flow import Change, keys_at, next_id
from evertree.sql.loop import Loop
from evertree.sql.rows import Decoder
from evertree.sql.scan import Known, Scan
from evertree.sql.scores import Scored
from evertree.sql.settings import SCORE, Settings
from evertree.sql.tables import State, Tables
from evertree.tree.refine import Report


@dataclass(frozen=True)
class Tick:
    """What one look at the table has found and written; see `Follower.poll`.

    Attributes
    ----------
    inserted, updated, removed : int
        Points that came, changed and left.
    skipped : int
        Rows that are newly left out, because a value is missing or cannot be used.
    events : int
        Events of clusters that were written: born, died, split, merged.
    moved : int
        Events of keys that were written: moved to another cluster, other than by a split or a merger.
    assigned : int
        Rows of assignments that were written or deleted.
    seconds : float
        How long it took.
    seconds_clustering : float
        How much of that was spent on the tree and its clusters, and not on the database.
    report : Report
        Of the refinement.

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


@dataclass(frozen=True)
class _Written:
    """What the database had after a tick."""

    tick: int
    partitions: dict[str, Partition]


class Follower:
    """A hierarchy that follows a table of a database; `evertree.follow` makes it.

    Use it in a ``with`` block, or close it.

    Attributes
    ----------
    hierarchy : Hierarchy
        The tree, for everything that can be read from it. Do not edit it: the next look would take that back.
    last : Tick or None
        What the last look has found; after `evertree.follow`, the first.

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
        database: Database,
        settings: Settings,
        tables: Tables,
        decoder: Decoder,
        hierarchy: Hierarchy,
        seconds: float | None,
        chunk: int,
        token: str,
    ) -> None:
        self.hierarchy = hierarchy
        self._lock = threading.RLock()
        self._database = database
        self._settings = settings
        self._tables = tables
        self._decoder = decoder
        self._seconds = seconds
        self._chunk = chunk
        self._token = token
        self._known = Known()
        self._written: _Written | None = None
        self._is_read = False  # whether the whole table has been compared with the tree
        self._is_closed = False
        self.last: Tick | None = None

    def __repr__(self) -> str:
        content = "closed" if self._is_closed else f"{len(self.hierarchy):,} points"
        return f"Follower({self._settings.table!r} of {self._database}): {content}"

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
        close_all(self._database, self.hierarchy)

    @one_at_a_time
    def poll(self, full: bool = False) -> Tick:
        """Look what has changed in the table, change the tree, and write the clusters. In one transaction.

        Where it fails, nothing is written, and the next one does what this one could not.

        Parameters
        ----------
        full : bool
            Compare all rows, also where there are versions. Without versions that is always so.

        Returns
        -------
        tick : Tick

        Raises
        ------
        TransientDatabaseError
            If the database cannot be reached, or is busy. Try again.
        DatabaseError
            If it refuses.
        ReplacedError
            If another follower writes the same tables now.

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

        Ctrl-C ends it when the poll that is under way is done; a second Ctrl-C ends that one too, and leaves everything
        in order. Where the database cannot be reached, it is tried again, after longer and longer pauses.

        Parameters
        ----------
        interval : float
            Seconds from the end of a poll to the next one.
        listen : str, optional
            PostgreSQL only: a channel. A poll follows each ``NOTIFY`` on it at once, and the interval if there is none.
        on_tick : callable, optional
            Called with each `Tick`.
        stop : threading.Event, optional
            Set it to end the loop.
        full_every : float, optional
            Seconds after which a poll compares all rows. For versions that do not grow from commit to commit.

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
        Loop(self._database, self.poll, interval, listen, on_tick, stop, full_every).run()

    def _poll(self, full: bool) -> Tick:
        start = time.perf_counter()
        h, tables = self.hierarchy, self._tables
        if h.window is not None:
            raise ParameterError(
                f"the table says which points there are, so its hierarchy must have no window; it has {h.window}: lift "
                "it by keep(), and delete old rows from the table"
            )
        with self._database.transaction() as connection:
            state = tables.read_state(connection, self._token)
            before = self._partitions(connection, state)
            scan = Scan(self._database, self._settings, tables, self._decoder, h, self._known, self._chunk)
            last_version = tables.last_version(connection)
            if full or not self._is_read or self._has_gone_back(state.last_version, last_version):
                self._is_read = False
                scan.everything(connection)
                self._is_read = True
                report = self._refine(scan)
            else:
                scan.since(connection, state.last_version)
                report = self._refine_and_remove(connection, scan)
            with scan.clustering():
                after = {cut.name: cut.partition(h, before[cut.name]) for cut in self._settings.cuts}
                changes = {name: Change.between(before[name], after[name]) for name in after}
                scored = self._scored(after, changes)
            state, n_assigned = self._write(connection, state, last_version, after, changes, scored)
        self._written = _Written(state.tick, after)
        self._known.unscored.clear()
        return Tick(
            inserted=scan.inserted,
            updated=scan.updated,
            removed=scan.removed,
            skipped=len(scan.skipped),
            events=sum(len(change.clusters) for change in changes.values()),
            moved=sum(len(change.moved) for change in changes.values()),
            assigned=n_assigned,
            seconds=time.perf_counter() - start,
            seconds_clustering=scan.seconds_clustering,
            report=report,
        )

    @staticmethod
    def _has_gone_back(last: Any, now: Any) -> bool:
        """Whether versions say nothing about what is new: there are none, or the largest is smaller than it was."""
        return last is None or now is None or bool(now < last)

    def _refine(self, scan: Scan) -> Report:
        with scan.clustering():
            return self.hierarchy.refine(seconds=self._seconds)

    def _refine_and_remove(self, connection: sa.Connection, scan: Scan) -> Report:
        """Refine the tree, and take out of it what is gone from the table.

        Looking for that takes a database server as long as refining takes us, so both are done at the same time.
        """
        if self._database.kind != "postgresql" or self._seconds is None:
            scan.remove_gone(connection, scan.find_gone(connection))
            return self._refine(scan)
        with ThreadPoolExecutor(1) as other:
            search = other.submit(scan.find_gone, connection)
            report = self._refine(scan)
            gone = search.result()
        scan.remove_gone(connection, gone)
        return report

    def _partitions(self, connection: sa.Connection, state: State) -> dict[str, Partition]:
        """The clusters that the database has: in memory, unless a poll may or may not have been committed."""
        if self._written is None or self._written.tick != state.tick:
            return self._tables.read_partitions(connection, state, self._chunk)
        return self._written.partitions

    def _scored(self, after: dict[str, Partition], changes: dict[str, Change]) -> Scored:
        """The scores of rows that have come or changed: those that the tree has got, and those that the tables lack."""
        measure = self._settings.scores
        if measure is None:
            return Scored.none()
        first = next(iter(after))
        return Scored.of(self.hierarchy, after[first], self._known.unscored, changes[first].new, measure)

    def _write(
        self,
        connection: sa.Connection,
        state: State,
        last_version: Any,
        after: dict[str, Partition],
        changes: dict[str, Change],
        scored: Scored,
    ) -> tuple[State, int]:
        """Write what has changed; return how far the tables are now, and how many assignments that were."""
        first = next(iter(after))
        gone = changes[first].gone
        moved = np.unique(np.concatenate([change.changed for change in changes.values()]))
        moved = moved[~np.isin(moved, scored.positions)]
        n_assigned = len(gone) + moved.size + scored.positions.size
        if not n_assigned and last_version == state.last_version:
            return state, 0
        self._tables.delete_assignments(connection, gone)
        for positions, scores in ((moved, {}), (scored.positions, {SCORE: scored.scores})):
            labels = {name: partition.labels[positions].tolist() for name, partition in after.items()}
            self._tables.write_assignments(connection, keys_at(after[first], positions), {**labels, **scores})
        next_ids = {name: next_id(partition) for name, partition in after.items()}
        state = State(state.tick + 1, state.next_event, next_ids, last_version)
        state = State(state.tick, self._tables.write_events(connection, state, changes), next_ids, last_version)
        self._tables.write_state(connection, state)
        return state, n_assigned


def close_all(database: Database, h: Hierarchy) -> None:
    """Close the file of a hierarchy that has one, and the connections to a database."""
    try:
        if isinstance(h, DurableHierarchy):
            h.close()
    finally:
        database.close()

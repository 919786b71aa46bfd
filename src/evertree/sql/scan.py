"""`Scan`: finds what has changed in a table, and changes the tree accordingly."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from evertree.errors import DimensionError, NotNumericError, listed
from evertree.hierarchy import Hierarchy
from evertree.sql.database import Database
from evertree.sql.rows import Batch, Decoder
from evertree.sql.settings import Settings
from evertree.sql.tables import Tables

logger = logging.getLogger("evertree.sql")


@dataclass
class Known:
    """What is known of a table from one look to the next, beside the tree.

    Attributes
    ----------
    left_out : set
        The keys of rows that are no points.
    numbers : array of int, optional
        The keys at the last time when all of them were read, where they are whole numbers.
    since : list
        The keys that have come since then.
    had_gone : bool
        Whether the last look at them has found that some were gone.
    unscored : list
        The keys of points that have come or changed, or were about to, and whose scores are still to be written.
    """

    left_out: set[Hashable] = field(default_factory=set)
    numbers: NDArray[np.int64] | None = None
    since: list[Any] = field(default_factory=list)
    had_gone: bool = False
    unscored: list[Hashable] = field(default_factory=list)


@dataclass(frozen=True)
class Gone:
    """What a table no longer has: keys, and keys that were left out; how many rows, and which keys, it has."""

    count: int
    keys: list[Hashable] = field(default_factory=list)
    left_out: set[Hashable] = field(default_factory=set)
    numbers: NDArray[np.int64] | None = None


class Scan:
    """One look at a table, in one transaction.

    Rows are compared with the points that the tree has, number by number, so it does not matter how often one is read,
    and what an earlier look that failed has done to the tree is simply there.

    Parameters
    ----------
    database, settings, tables, decoder
    h : Hierarchy
        It is changed.
    known : Known
        It is changed.
    chunk : int
        Rows that are in memory at a time.
    """

    def __init__(
        self,
        database: Database,
        settings: Settings,
        tables: Tables,
        decoder: Decoder,
        h: Hierarchy,
        known: Known,
        chunk: int,
    ) -> None:
        self._database = database
        self._settings = settings
        self._tables = tables
        self._decoder = decoder
        self._h = h
        self._known = known
        self._chunk = chunk
        self.inserted = self.updated = self.removed = 0
        self.skipped: list[Hashable] = []
        self._complaint: str | None = None
        self.seconds_clustering = 0.0

    def everything(self, connection: sa.Connection) -> None:
        """Compare the whole table with the tree."""
        unseen, was_out = set(self._h.keys()), set(self._known.left_out)
        self._known.left_out.clear()
        self._known.numbers = None

        def check(batch: Batch) -> None:
            twice = [key for key in batch.keys if key not in unseen and key in self._h]
            if twice:
                self._decoder.refuse_twice(twice)
            unseen.difference_update(batch.keys)

        self._read(connection, sa.select(*self._tables.columns), was_out, check)
        self._remove([key for key in unseen if key in self._h])
        if self._complaint is not None and len(self._h) == 0:
            raise NotNumericError(self._complaint)

    def since(self, connection: sa.Connection, last: Any) -> None:
        """Compare the rows from a version on with the tree. Those that are gone are not among them: see `find_gone`."""
        query = sa.select(*self._tables.columns).where(self._tables.from_version(last))
        self._read(connection, query, self._known.left_out)

    def find_gone(self, connection: sa.Connection) -> Gone:
        """Which rows are gone. Does not read the points of the tree, so that it may be refined in the meantime."""
        count = self._n_known
        if not self._known.had_gone:  # where rows leave all the time, it is not worth while to count them first
            count = self._tables.count(connection)
            if count == self._n_known:
                return Gone(count)
        there = self._database.among(connection, self._tables.key, list(self._known.left_out))
        left_out = self._known.left_out - there
        numbers = self._tables.read_numbers(connection, count)
        if numbers is None:
            return Gone(count, self._tables.gone(connection), left_out)
        before = self._numbers_before()
        gone = np.unique(before[~np.isin(before, numbers)])  # setdiff1d would look for duplicates among all of them
        return Gone(numbers.size, gone.tolist(), left_out, numbers)

    def _numbers_before(self) -> NDArray[np.int64]:
        if self._known.numbers is None:
            return np.array(self._h.keys(), np.int64)
        return np.concatenate([self._known.numbers, np.array(self._known.since, np.int64)])

    def remove_gone(self, connection: sa.Connection, gone: Gone) -> None:
        """Take rows that are gone out of the tree, and make sure that it has all others."""
        self._remove([key for key in gone.keys if key in self._h])
        self._known.left_out.difference_update(gone.left_out)
        if gone.numbers is not None:
            self._known.numbers, self._known.since = gone.numbers, []
        self._known.had_gone = gone.numbers is not None and bool(gone.keys)
        if gone.count > self._n_known:  # rows that were committed after others with a later version
            self._read(connection, self._tables.unassigned(), self._known.left_out)
        if gone.count != self._n_known:
            self.everything(connection)

    @property
    def _n_known(self) -> int:
        return len(self._h) + len(self._known.left_out)

    def _read(
        self,
        connection: sa.Connection,
        query: sa.Select[Any],
        known_out: set[Hashable],
        check: Callable[[Batch], None] = lambda _: None,
    ) -> None:
        """Apply the rows of a query."""
        for rows in self._database.stream(connection, query, self._chunk):
            batch = self._decoder.decode(rows, self._h.n_columns)
            self._complaint = self._complaint or batch.complaint
            if not batch.keys:
                self._refuse_other_lengths(rows)
            check(batch)
            self._leave_out(batch.left_out, known_out)
            self._apply(batch)

    def _refuse_other_lengths(self, rows: Sequence[Sequence[Any]]) -> None:
        """Vectors that all have become longer or shorter are no mistake in a few rows."""
        known = self._h.n_columns
        if known is None or self._settings.vector is None or 2 * len(rows) < min(len(self._h), self._chunk):
            return
        batch = self._decoder.decode(rows, None)
        if batch.keys:
            raise DimensionError(
                f"vector must have {known} numbers, as the tree has; {self._settings.vector!r} has "
                f"{batch.points.shape[1]} now: begin anew with reset=True, and another store where there is one"
            )

    def _leave_out(self, keys: list[Hashable], known_out: set[Hashable]) -> None:
        new = [key for key in keys if key not in known_out]
        self._known.left_out.update(keys)
        self._remove([key for key in keys if key in self._h])
        if new:
            self.skipped += new
            logger.warning(
                "%s of %r %s left out, because a value is missing or cannot be used: %s",
                "1 row" if len(new) == 1 else f"{len(new):,} rows",
                self._settings.table,
                "is" if len(new) == 1 else "are",
                listed(new),
            )

    def _apply(self, batch: Batch) -> None:
        """Insert what is new, and change what is different."""
        if not batch.keys:
            return
        h = self._h
        self._known.left_out.difference_update(batch.keys)
        is_known = np.fromiter((key in h for key in batch.keys), np.bool_, len(batch.keys))
        known, new = np.flatnonzero(is_known), np.flatnonzero(~is_known)
        if known.size:
            keys, points = _at(batch, known)
            places = np.flatnonzero(_differ(h.points(keys), points))
            if places.size:
                keys, points = _at(batch, known[places])
                self._known.unscored += keys  # before Ctrl-C can come
                with self.clustering():
                    h.update(keys, points)
                self.updated += places.size
        if new.size:
            keys, points = _at(batch, new)
            self._known.unscored += keys
            with self.clustering():
                h.insert(points, keys=keys)
            if self._known.numbers is not None:
                self._known.since += keys
            self.inserted += new.size

    def _remove(self, keys: list[Hashable]) -> None:
        if keys:
            with self.clustering():
                self._h.remove(keys)
            self.removed += len(keys)

    @contextmanager
    def clustering(self) -> Iterator[None]:
        """A block of work on the tree, whose time is counted."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds_clustering += time.perf_counter() - start


def _at(batch: Batch, positions: NDArray[np.intp]) -> tuple[list[Hashable], Any]:
    """Some keys of a batch and their points."""
    if positions.size == len(batch.keys):
        return batch.keys, batch.points
    keys = [batch.keys[i] for i in positions.tolist()]
    if isinstance(batch.points, list):
        return keys, [batch.points[i] for i in positions.tolist()]
    return keys, batch.points[positions]


def _differ(old: Any, new: Any) -> NDArray[np.bool_]:
    """Which points are not the same."""
    if isinstance(old, np.ndarray):
        found: NDArray[np.bool_] = (old != np.asarray(new, old.dtype)).any(axis=1)
        return found
    return np.fromiter((a != b for a, b in zip(old, new, strict=True)), np.bool_, len(old))

"""`TreeSync`: finds what has changed in a table, and makes the same changes to the tree."""

from __future__ import annotations

import logging
import time
from collections.abc import Hashable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from evertree.errors import DimensionError, NotNumericError, listed
from evertree.hierarchy import Hierarchy
from evertree.sql.database import FollowedDatabase
from evertree.sql.follow_options import FollowOptions
from evertree.sql.output_tables import OutputTables
from evertree.sql.row_decoder import RowBatch, RowDecoder
from evertree.sql.source_table import SourceTable

logger = logging.getLogger("evertree.sql")


@dataclass
class SyncCounts:
    """What one poll has done to the tree, in the words of `Tick`."""

    inserted: int = 0
    updated: int = 0
    removed: int = 0
    skipped: int = 0
    seconds_clustering: float = 0.0


@dataclass(frozen=True)
class RemovedRows:
    """What is no longer in the table: keys of points, and of rows that were skipped.

    `n_rows` is the number of rows in the table, `integer_keys` their keys where these were read.
    """

    n_rows: int
    keys: list[Hashable] = field(default_factory=list)
    skipped: Set[Hashable] = frozenset()
    integer_keys: NDArray[np.int64] | None = None


class TreeSync:
    """Keeps a tree like a table.

    Rows are compared with the points in the tree, number by number. So it does not matter how often a row is read, and
    a poll that follows a failed one just finds what that one has already done.

    Parameters
    ----------
    database, options, source, output
    h : Hierarchy
        It is edited.

    Attributes
    ----------
    counts : SyncCounts
        Of the current poll; start each with new ones.
    unscored : list
        The keys of points that were inserted or updated, or were about to be, since this list was last cleared.
    """

    def __init__(
        self,
        database: FollowedDatabase,
        options: FollowOptions,
        source: SourceTable,
        output: OutputTables,
        h: Hierarchy,
    ) -> None:
        self._database = database
        self._options = options
        self._source = source
        self._output = output
        self._decoder = RowDecoder(options, source.types, source.is_packed)
        self._h = h
        self.counts = SyncCounts()
        self.unscored: list[Hashable] = []
        self._skipped: set[Hashable] = set()  # keys of rows that are no points
        self._integer_keys: NDArray[np.int64] | None = None  # all keys, when they were last read
        self._keys_since: list[Any] = []  # inserted since then
        self._had_removals = False  # whether rows were gone in the last poll

    def compare_all(self, connection: sa.Connection) -> None:
        """Compare the whole table with the tree."""
        h, complaint = self._h, None
        unseen, skipped_before = set(h.keys()), self._skipped
        self._skipped, self._integer_keys = set(), None
        for batch in self._batches(connection, self._source.rows()):
            twice = [key for key in batch.keys if key not in unseen and key in h]
            if twice:
                raise self._decoder.duplicate_keys(twice)
            unseen.difference_update(batch.keys)
            complaint = complaint or batch.complaint
            self._apply(batch, skipped_before)
        self._remove([key for key in unseen if key in h])
        if complaint is not None and len(h) == 0:
            raise NotNumericError(complaint)

    def compare_since(self, connection: sa.Connection, last_version: Any) -> None:
        """Compare the rows from a version on with the tree; for those that are gone, see `find_removed`."""
        self._compare(connection, self._source.rows_since(last_version))

    def find_removed(self, connection: sa.Connection) -> RemovedRows:
        """Which rows are gone. It does not read the points of the tree, which may be refined at the same time."""
        n_rows = self._n_known
        if not self._had_removals:  # where rows leave all the time, counting first does not pay
            n_rows = self._source.count(connection)
            if n_rows == self._n_known:
                return RemovedRows(n_rows)
        skipped = self._skipped - self._database.existing(connection, self._source.key, list(self._skipped))
        keys = self._source.read_integer_keys(connection, n_rows)
        if keys is None:
            return RemovedRows(n_rows, self._output.removed_keys(connection), skipped)
        before = self._integer_keys_before()
        removed = np.unique(before[~np.isin(before, keys)])  # setdiff1d would sort all of them
        return RemovedRows(keys.size, removed.tolist(), skipped, keys)

    def _integer_keys_before(self) -> NDArray[np.int64]:
        if self._integer_keys is None:
            return np.array(self._h.keys(), np.int64)
        return np.concatenate([self._integer_keys, np.array(self._keys_since, np.int64)])

    def remove(self, connection: sa.Connection, rows: RemovedRows) -> None:
        """Take removed rows out of the tree, and make sure that it has all others."""
        self._remove([key for key in rows.keys if key in self._h])
        self._skipped -= rows.skipped
        if rows.integer_keys is not None:
            self._integer_keys, self._keys_since = rows.integer_keys, []
        self._had_removals = rows.integer_keys is not None and bool(rows.keys)
        if rows.n_rows > self._n_known:  # rows that were committed after others with a later version
            self._compare(connection, self._output.unassigned_rows())
        if rows.n_rows != self._n_known:
            self.compare_all(connection)

    @property
    def _n_known(self) -> int:
        return len(self._h) + len(self._skipped)

    def _compare(self, connection: sa.Connection, query: sa.Select[Any]) -> None:
        for batch in self._batches(connection, query):
            self._apply(batch, self._skipped)

    def _batches(self, connection: sa.Connection, query: sa.Select[Any]) -> Iterator[RowBatch]:
        for rows in self._database.stream(connection, query, self._options.chunk):
            batch = self._decoder.decode(rows, self._h.n_columns)
            if not batch.keys:
                self._check_length(rows)
            yield batch

    def _check_length(self, rows: Sequence[Sequence[Any]]) -> None:
        """Raise an error if all vectors have become longer or shorter: that is no mistake in a few rows."""
        n_columns = self._h.n_columns
        if n_columns is None or self._options.vector is None or 2 * len(rows) < min(len(self._h), self._options.chunk):
            return
        batch = self._decoder.decode(rows, None)
        if batch.keys:
            raise DimensionError(
                f"vector must have {n_columns} numbers, as the tree has; {self._options.vector!r} has "
                f"{batch.points.shape[1]} now: start again with reset=True, and another store where there is one"
            )

    def _apply(self, batch: RowBatch, skipped_before: Set[Hashable]) -> None:
        """Insert rows that are new, update those that are different, and remove those that can no longer be used."""
        h = self._h
        self._skip(batch.skipped, skipped_before)
        self._skipped.difference_update(batch.keys)
        is_known = np.fromiter((key in h for key in batch.keys), np.bool_, len(batch.keys))
        known, new = np.flatnonzero(is_known), np.flatnonzero(~is_known)
        if known.size:
            keys, points = batch.at(known)
            known = known[_differ(h.points(keys), points)]
        if known.size + new.size == 0:
            return
        keys, points = batch.at(np.concatenate([known, new]))
        self.unscored += keys  # before Ctrl-C can come
        with self.clustering():
            h.upsert(points, keys=keys)
        if self._integer_keys is not None:
            self._keys_since += keys[known.size :]
        self.counts.updated += known.size
        self.counts.inserted += new.size

    def _skip(self, keys: list[Hashable], skipped_before: Set[Hashable]) -> None:
        new = [key for key in keys if key not in skipped_before]
        self._skipped.update(keys)
        self._remove([key for key in keys if key in self._h])
        self.counts.skipped += len(new)
        if new:
            logger.warning(
                "%s of %r %s left out, because a value is missing or cannot be used: %s",
                "1 row" if len(new) == 1 else f"{len(new):,} rows",
                self._options.table,
                "is" if len(new) == 1 else "are",
                listed(new),
            )

    def _remove(self, keys: list[Hashable]) -> None:
        if keys:
            with self.clustering():
                self._h.remove(keys)
            self.counts.removed += len(keys)

    @contextmanager
    def clustering(self) -> Iterator[None]:
        """A block whose time is spent on the tree, and not on the database."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.counts.seconds_clustering += time.perf_counter() - start


def _differ(old: Any, new: Any) -> NDArray[np.bool_]:
    """Which points are different."""
    if isinstance(old, np.ndarray):
        different: NDArray[np.bool_] = (old != np.asarray(new, old.dtype)).any(axis=1)
        return different
    return np.fromiter((a != b for a, b in zip(old, new, strict=True)), np.bool_, len(old))

"""`OutputTables`: what a follower writes to the database: assignments, events, and its own state."""

from __future__ import annotations

import json
import secrets
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from evertree.errors import NewerFormatError, ParameterError, ReplacedError, listed
from evertree.partition import Partition
from evertree.sql.cluster_changes import ClusterChanges
from evertree.sql.database import FollowedDatabase, NativeType, quoted
from evertree.sql.follow_options import SCORE, FollowOptions
from evertree.sql.source_table import SourceTable

#: Increased when tables of an older version can no longer be read.
FORMAT = 1


@dataclass(frozen=True)
class FollowerState:
    """The row of the table ``state``: what the last poll has reached."""

    tick: int
    next_event: int
    next_ids: Mapping[str, int]
    last_version: Any


class OutputTables:
    """The three tables that a follower writes.

    Parameters
    ----------
    database : FollowedDatabase
    options : FollowOptions
    source : SourceTable

    Notes
    -----
    A random token in the table ``state`` tells which follower may write the tables.
    """

    def __init__(self, database: FollowedDatabase, options: FollowOptions, source: SourceTable) -> None:
        self._database = database
        self._options = options
        self._source = source
        self._token = secrets.token_hex(8)
        self._metadata = sa.MetaData(schema=None if options.schema is None else quoted(options.schema))
        names = [quoted(f"{options.prefix}{name}") for name in ("assignment", "events", "state")]
        max_length = database.engine.dialect.max_identifier_length
        too_long = [name for name in names if len(name.encode()) > max_length]
        if too_long:
            raise ParameterError(
                f"prefix must be so short that names have at most {max_length} bytes; it makes {listed(too_long)}"
            )
        self._assignment = sa.Table(names[0], self._metadata, *_assignment_columns(options, source.key_type))
        self._events = sa.Table(names[1], self._metadata, *_event_columns(source.key_type))
        self._state = sa.Table(names[2], self._metadata, *_state_columns(source.version_type or sa.Text()))
        self._assigned_key = self._assignment.c[options.key]

    def prepare(self, connection: sa.Connection, reset: bool) -> str | None:
        """Create the tables, or take them over from another follower; return its token."""
        inspector = sa.inspect(connection)
        tables = self._metadata.sorted_tables
        existing = [table.name for table in tables if inspector.has_table(table.name, self._options.schema)]
        # Tick 0: the first poll of the follower that created them has failed.
        is_unused = len(existing) == len(tables) and connection.scalar(sa.select(self._state.c.tick)) == 0
        if reset or is_unused:
            self._metadata.drop_all(connection)
            existing = []
        if not existing:
            self._metadata.create_all(connection, checkfirst=False)
            row = {"format": FORMAT, "tick": 0, "next_event": 0, "next_ids": "{}", "last_version": None}
            row |= {"settings": self._options.as_json(), "follower": self._token, "at": _now()}
            connection.execute(sa.insert(self._state), row)
            return None
        if len(existing) < len(tables):
            raise ParameterError(
                f"prefix must be that of a follower's three tables, or of none; {self._options.prefix!r} has only "
                f"{listed(existing)}",
                remedy="give another prefix=, or reset=True, which drops what is there",
            )
        self._check_stored(connection)
        previous = connection.scalar(sa.select(self._state.c.follower))
        connection.execute(sa.update(self._state).values(follower=self._token))
        return previous

    def give_back(self, connection: sa.Connection, previous: str) -> None:
        """Let the previous follower continue, after the start of this one has failed."""
        mine = sa.update(self._state).where(self._state.c.follower == self._token)
        connection.execute(mine.values(follower=previous))

    def _check_stored(self, connection: sa.Connection) -> None:
        stored, options = connection.execute(sa.select(self._state.c.format, self._state.c.settings)).one()
        if stored > FORMAT:
            raise NewerFormatError(
                f"the tables with the prefix {self._options.prefix!r} were written by a newer evertree, in format "
                f"{stored}; this one knows {FORMAT}: upgrade it, or choose another prefix"
            )
        self._options.check_stored(options)
        key, table = self._options.key, self._assignment.name
        kind = self._database.column_types(connection, table, self._options.schema)[key]
        if kind != self._source.key_type.name:
            raise ParameterError(
                f"key must be of the type that it had when {table!r} was made, {kind}; {key!r} is "
                f"{self._source.key_type.name} now",
                remedy="change it there too, and in the events, or give reset=True, which drops them",
            )

    def read_state(self, connection: sa.Connection) -> FollowerState:
        """What the last poll has reached; an error if another follower writes the tables."""
        columns = self._state.c
        query = sa.select(columns.follower, columns.tick, columns.next_event, columns.next_ids, columns.last_version)
        row = connection.execute(query).one_or_none()
        if row is None or row.follower != self._token:
            raise ReplacedError(
                f"another follower has taken over the tables with the prefix {self._options.prefix!r}: only one may "
                "write them. Stop one of them, or give it a prefix of its own"
            )
        return FollowerState(row.tick, row.next_event, json.loads(row.next_ids), row.last_version)

    def read_partitions(self, connection: sa.Connection, state: FollowerState) -> dict[str, Partition]:
        """The assignments as they stand in the table, by cut."""
        names = [cut.name for cut in self._options.cuts]
        keys: list[Hashable] = []
        labels: list[NDArray[np.int64]] = [np.empty((len(names), 0), np.int64)]
        query = sa.select(self._assigned_key, *(self._assignment.c[name] for name in names))
        for rows in self._database.stream(connection, query, self._options.chunk):
            chunk_keys, *chunk_labels = zip(*rows, strict=True)
            keys.extend(chunk_keys)
            labels.append(np.array(chunk_labels, np.int64))
        return {
            name: Partition.of(keys, column, next_id=state.next_ids.get(name, 0))
            for name, column in zip(names, np.concatenate(labels, axis=1), strict=True)
        }

    def write(
        self,
        connection: sa.Connection,
        state: FollowerState,
        last_version: Any,
        partitions: Mapping[str, Partition],
        changes: Mapping[str, ClusterChanges],
        scores: tuple[NDArray[np.intp], list[float]],
    ) -> tuple[FollowerState, int]:
        """Write what a poll has changed.

        Parameters
        ----------
        state : FollowerState
            As it was before the poll.
        last_version
            The largest version in the user's table now.
        partitions, changes : mapping
            The clusters of each cut, and what has changed since those in the table.
        scores : positions and scores
            The scores of points at some positions in the partitions.

        Returns
        -------
        state : FollowerState
            As it is now.
        n_assigned : int
            The number of assignments that were written or deleted.
        """
        first = next(iter(partitions))
        removed, (scored, values) = changes[first].removed, scores
        changed = np.unique(np.concatenate([change.changed for change in changes.values()]))
        changed = changed[~np.isin(changed, scored)]
        n_assigned = len(removed) + changed.size + scored.size
        if not n_assigned and last_version == state.last_version:
            return state, 0
        if removed:
            self._database.delete(connection, self._assignment, self._options.key, removed)
        for positions, score in ((changed, {}), (scored, {SCORE: values})):  # other rows keep their score
            if positions.size:
                labels = {name: partition.labels[positions].tolist() for name, partition in partitions.items()}
                rows = {self._options.key: partitions[first].keys_at(positions), **labels, **score}
                self._database.insert(connection, self._assignment, rows, upsert=self._options.key)
        next_ids = {name: partition.next_id for name, partition in partitions.items()}
        state = FollowerState(state.tick + 1, state.next_event, next_ids, last_version)
        state = replace(state, next_event=self._write_events(connection, state, changes))
        self.write_state(connection, state)
        return state, n_assigned

    def _write_events(
        self, connection: sa.Connection, state: FollowerState, changes: Mapping[str, ClusterChanges]
    ) -> int:
        """Write what has happened to clusters and keys; return the number of the next event."""
        number, at = state.next_event, _now()
        for cut, change in changes.items():
            for rows in (change.cluster_rows(), change.moved_rows()):
                count = len(rows["event"])
                if count:
                    rows["id"] = range(number, number + count)
                    for name, value in {"tick": state.tick, "at": at, "cut": cut}.items():
                        rows[name] = [value] * count
                    self._database.insert(connection, self._events, rows)
                number += count
        return number

    def write_state(self, connection: sa.Connection, state: FollowerState) -> None:
        """Write what a poll has reached."""
        values = {**vars(state), "next_ids": json.dumps(dict(state.next_ids)), "at": _now()}
        connection.execute(sa.update(self._state).values(values))

    def unassigned_rows(self) -> sa.Select[Any]:
        """The rows of the user's table without an assignment."""
        return self._source.rows().where(~sa.exists().where(self._assigned_key == self._source.key))

    def removed_keys(self, connection: sa.Connection) -> list[Hashable]:
        """The assigned keys that are no longer in the user's table."""
        key = self._assigned_key
        return list(connection.scalars(sa.select(key).where(~sa.exists().where(self._source.key == key))))


def _assignment_columns(options: FollowOptions, key_type: NativeType) -> list[sa.Column[Any]]:
    columns: list[sa.Column[Any]] = [_column(options.key, key_type, primary_key=True, autoincrement=False)]
    columns += [_column(cut.name, sa.BigInteger, nullable=False) for cut in options.cuts]
    if options.scores is not None:
        columns.append(_column(SCORE, sa.Double))  # nullable, so that an upsert can leave it out
    return columns


def _event_columns(key_type: NativeType) -> list[sa.Column[Any]]:
    return [
        _column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        _column("tick", sa.BigInteger, nullable=False),
        _column("at", sa.DateTime, nullable=False),
        _column("cut", sa.Text, nullable=False),
        _column("event", sa.Text, nullable=False),
        _column("cluster", sa.BigInteger),
        _column("others", sa.Text),
        _column("size_before", sa.BigInteger),
        _column("size_after", sa.BigInteger),
        _column("key", key_type),
        _column("from_cluster", sa.BigInteger),
        _column("to_cluster", sa.BigInteger),
    ]


def _state_columns(version_type: Any) -> list[sa.Column[Any]]:
    return [
        _column("format", sa.BigInteger, nullable=False),
        _column("settings", sa.Text, nullable=False),
        _column("follower", sa.Text, nullable=False),
        _column("tick", sa.BigInteger, nullable=False),
        _column("at", sa.DateTime, nullable=False),
        _column("last_version", version_type),
        _column("next_ids", sa.Text, nullable=False),
        _column("next_event", sa.BigInteger, nullable=False),
    ]


def _column(name: str, kind: Any, **options: Any) -> sa.Column[Any]:
    return sa.Column(quoted(name), kind, **options)


def _now() -> datetime:
    """The time in UTC, without a zone, which some databases do not have."""
    return datetime.now(UTC).replace(tzinfo=None)

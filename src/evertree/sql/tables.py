"""`Tables`: what a follower writes into the database: assignments, events, and how far it is."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.sql import quoted_name

from evertree.errors import NewerFormatError, ParameterError, ReplacedError, listed
from evertree.partition import Partition
from evertree.sql.database import INTEGERS, Database, Verbatim
from evertree.sql.flow import Change
from evertree.sql.settings import SCORE, Settings

#: Grows when tables of an older version can no longer be read.
FORMAT = 1

#: Keys that PostgreSQL puts into one value: it may have 1 GB, written with two letters for each byte.
_MOST_NUMBERS = 50_000_000


@dataclass(frozen=True)
class State:
    """How far a follower is: the row of the table ``state``."""

    tick: int
    next_event: int
    next_ids: Mapping[str, int]
    last_version: Any


class Tables:
    """The three tables of a follower, and the user's.

    Parameters
    ----------
    database : Database
    settings : Settings
    types : dict
        The columns of the user's table with their types.

    Attributes
    ----------
    key, version : column
        Of the user's table.
    columns : list of column
        What is read: the key, and then the values.
    is_packed : bool
        Whether the values are one, as `Database.packed` makes it.
    """

    def __init__(self, database: Database, settings: Settings, types: Mapping[str, str]) -> None:
        self._database = database
        self._settings = settings
        self._types = types
        self._metadata = sa.MetaData(schema=None if settings.schema is None else _quoted(settings.schema))
        names = [_quoted(f"{settings.prefix}{name}") for name in ("assignment", "events", "state")]
        self._check_names(names)
        read = [settings.key, *settings.values]
        others = [] if settings.version is None else [settings.version]
        columns: list[sa.ColumnClause[Any]] = [sa.column(_quoted(name)) for name in dict.fromkeys(read + others)]
        schema = None if settings.schema is None else _quoted(settings.schema)
        self._source = sa.table(_quoted(settings.table), *columns, schema=schema)
        self.key = self._source.c[settings.key]
        self.columns: list[sa.ColumnElement[Any]] = [self._source.c[name] for name in read]
        packed = None
        if settings.vector is None and not settings.holds_objects:
            packed = database.packed(self.columns[1:], [types[name] for name in settings.columns])
        self.is_packed = packed is not None
        if packed is not None:
            self.columns[1:] = [packed]
        self.version = self._source.c[settings.version or settings.key]  # not used where there is none
        self._has_numbers = types[settings.key] in INTEGERS
        key_type = Verbatim(types[settings.key])
        version_type = sa.Text() if settings.version is None else Verbatim(types[settings.version])
        self.assignment = sa.Table(names[0], self._metadata, *_assignment_columns(settings, key_type))
        self.events = sa.Table(names[1], self._metadata, *_event_columns(key_type))
        self.state = sa.Table(names[2], self._metadata, *_state_columns(version_type))

    def _check_names(self, names: Sequence[str]) -> None:
        longest = self._database.engine.dialect.max_identifier_length
        too_long = [name for name in names if len(name.encode()) > longest]
        if too_long:
            raise ParameterError(
                f"prefix must be so short that names have at most {longest} bytes; it makes {listed(too_long)}"
            )

    def prepare(self, connection: sa.Connection, token: str, reset: bool) -> str | None:
        """Make the tables, or take over those that are there; return the token of the follower before."""
        inspector = sa.inspect(connection)
        tables = self._metadata.sorted_tables
        there = [table.name for table in tables if inspector.has_table(table.name, self._settings.schema)]
        # Tick 0: of a follower whose first look has failed.
        is_unused = len(there) == len(tables) and connection.scalar(sa.select(self.state.c.tick)) == 0
        if reset or is_unused:
            self._metadata.drop_all(connection)
            there = []
        if not there:
            self._metadata.create_all(connection, checkfirst=False)
            start = {"format": FORMAT, "tick": 0, "next_event": 0, "next_ids": "{}", "last_version": None}
            row = {**start, "settings": self._settings.as_json(), "follower": token, "at": _now()}
            connection.execute(sa.insert(self.state), row)
            return None
        if len(there) < len(tables):
            raise ParameterError(
                f"prefix must be that of a follower's three tables, or of none; {self._settings.prefix!r} has only "
                f"{listed(there)}",
                remedy="give another prefix=, or reset=True, which drops what is there",
            )
        self._check_stored(connection)
        before = connection.scalar(sa.select(self.state.c.follower))
        connection.execute(sa.update(self.state).values(follower=token))
        return before

    def give_back(self, connection: sa.Connection, token: str, before: str) -> None:
        """Give the tables back to the follower that had them before another, which has failed."""
        mine = sa.update(self.state).where(self.state.c.follower == token)
        connection.execute(mine.values(follower=before))

    def _check_stored(self, connection: sa.Connection) -> None:
        stored, settings = connection.execute(sa.select(self.state.c.format, self.state.c.settings)).one()
        if stored > FORMAT:
            raise NewerFormatError(
                f"the tables with the prefix {self._settings.prefix!r} were written by a newer evertree, in format "
                f"{stored}; this one knows {FORMAT}: upgrade it, or choose another prefix"
            )
        self._settings.check_stored(settings)
        name = self._settings.key
        kind = self._database.column_types(connection, self.assignment.name, self._settings.schema)[name]
        if kind != self._types[name]:
            raise ParameterError(
                f"key must be of the type that it had when {self.assignment.name!r} was made, {kind}; {name!r} is "
                f"{self._types[name]} now",
                remedy="change it there too, and in the events, or give reset=True, which drops them",
            )

    def read_state(self, connection: sa.Connection, token: str) -> State:
        """How far the tables are; an error if another follower writes them."""
        columns = self.state.c
        query = sa.select(columns.follower, columns.tick, columns.next_event, columns.next_ids, columns.last_version)
        row = connection.execute(query).one_or_none()
        if row is None or row.follower != token:
            raise ReplacedError(
                f"another follower has taken over the tables with the prefix {self._settings.prefix!r}: only one may "
                "write them. Stop one of them, or give it a prefix of its own"
            )
        return State(row.tick, row.next_event, json.loads(row.next_ids), row.last_version)

    def write_state(self, connection: sa.Connection, state: State) -> None:
        """Note how far the tables are."""
        values = {
            "tick": state.tick,
            "next_event": state.next_event,
            "next_ids": json.dumps(dict(state.next_ids)),
            "last_version": state.last_version,
            "at": _now(),
        }
        connection.execute(sa.update(self.state).values(values))

    def read_partitions(self, connection: sa.Connection, state: State, chunk: int) -> dict[str, Partition]:
        """The assignments as they stand in the table, by cut."""
        names = [cut.name for cut in self._settings.cuts]
        keys: list[Hashable] = []
        labels: list[np.ndarray[Any, Any]] = [np.empty((len(names), 0), np.int64)]
        columns = [self.assignment.c[name] for name in (self._settings.key, *names)]
        for rows in self._database.stream(connection, sa.select(*columns), chunk):
            some, *ids = zip(*rows, strict=True)
            keys.extend(some)
            labels.append(np.array(ids, np.int64))
        table = np.concatenate(labels, axis=1)
        return {
            name: Partition.of(keys, column, next_id=state.next_ids.get(name, 0))
            for name, column in zip(names, table, strict=True)
        }

    def delete_assignments(self, connection: sa.Connection, gone: list[Hashable]) -> None:
        """Delete the rows of keys that have left."""
        if gone:
            self._database.delete(connection, self.assignment, self._settings.key, gone)

    def write_assignments(
        self, connection: sa.Connection, keys: list[Hashable], columns: Mapping[str, Sequence[Any]]
    ) -> None:
        """Write rows that are new, or in another cluster; columns that are not given stay as they are."""
        if keys:
            rows = {self._settings.key: keys, **columns}
            self._database.insert(connection, self.assignment, rows, upsert=self._settings.key)

    def write_events(self, connection: sa.Connection, state: State, changes: Mapping[str, Change]) -> int:
        """Write what has become of clusters and keys, by cut, and return the number of the next event."""
        number, at = state.next_event, _now()
        for cut, change in changes.items():
            for rows in (change.cluster_rows(), change.moved_rows()):
                count = len(rows["event"])
                if count:
                    rows["id"] = range(number, number + count)
                    for name, value in {"tick": state.tick, "at": at, "cut": cut}.items():
                        rows[name] = [value] * count
                    self._database.insert(connection, self.events, rows)
                number += count
        return number

    def from_version(self, last: Any) -> sa.ColumnElement[bool]:
        """Which rows have a version from `last` on, or none."""
        bound: Any = sa.literal(last)
        if self._database.kind != "sqlite" and self._settings.version is not None:
            # Of the column's own type: a real that has become a Python number is another number.
            bound = sa.cast(bound, Verbatim(self._types[self._settings.version]))
        return sa.or_(self.version >= bound, self.version.is_(None))

    def unassigned(self) -> sa.Select[Any]:
        """The rows of the user's table that have no assignment."""
        own = self.assignment.c[self._settings.key]
        return sa.select(*self.columns).where(~sa.exists().where(own == self.key))

    def read_numbers(self, connection: sa.Connection, count: int) -> NDArray[np.int64] | None:
        """The keys of the user's table, where they are whole numbers and can be read faster than they are compared."""
        if self._database.kind != "postgresql" or not self._has_numbers or count > _MOST_NUMBERS:
            return None
        return self._database.whole_numbers(connection, self.key)

    def gone(self, connection: sa.Connection) -> list[Hashable]:
        """The assigned keys that the user's table no longer has."""
        own = self.assignment.c[self._settings.key]
        return list(connection.scalars(sa.select(own).where(~sa.exists().where(self.key == own))))

    def count(self, connection: sa.Connection) -> int:
        """The number of rows of the user's table that have a key."""
        return connection.scalar(sa.select(sa.func.count(self.key))) or 0

    def last_version(self, connection: sa.Connection) -> Any:
        """The largest version in the user's table; None where it has no versions."""
        if self._settings.version is None:
            return None
        # Not max(), which some types that can be ordered do not have.
        query = sa.select(self.version).where(self.version.is_not(None)).order_by(self.version.desc()).limit(1)
        return connection.scalar(query)


def _assignment_columns(settings: Settings, key_type: Verbatim) -> list[sa.Column[Any]]:
    columns: list[sa.Column[Any]] = [_column(settings.key, key_type, primary_key=True, autoincrement=False)]
    columns += [_column(cut.name, sa.BigInteger, nullable=False) for cut in settings.cuts]
    if settings.scores is not None:
        columns.append(_column(SCORE, sa.Double))  # may be NULL, or an upsert could not leave it out
    return columns


def _event_columns(key_type: Verbatim) -> list[sa.Column[Any]]:
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
    return sa.Column(_quoted(name), kind, **options)


def _quoted(name: str) -> quoted_name:
    """A name that is always written in quotes: SQLAlchemy does not know all the words that DuckDB reserves."""
    return quoted_name(name, quote=True)


def _now() -> datetime:
    """The time in UTC, as databases without time zones have it."""
    return datetime.now(UTC).replace(tzinfo=None)

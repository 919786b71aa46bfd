"""`Database`: transactions, catalogues and bulk statements, for each of the databases that can be followed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from traceback import clear_frames
from typing import Any, ParamSpec, TypeVar

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.pool import StaticPool
from sqlalchemy.types import UserDefinedType

from evertree.errors import DatabaseError, TransientDatabaseError
from evertree.locking import Uninterrupted
from evertree.sql.credentials import make_engine, scrubbed, shown

_P = ParamSpec("_P")
_R = TypeVar("_R")

#: PostgreSQL's types of whole numbers.
INTEGERS = {"smallint", "integer", "bigint"}

#: Its types of numbers that a float64 holds, or rounds as Python does.
_PACKABLE = {"real", "double precision"} | INTEGERS

#: Rows of one statement.
AT_ONCE = 50_000

#: Values of one IN.
_LISTED_AT_ONCE = 1_000

#: Of SQLite's errors: busy, locked, input or output, full, and a file that cannot be opened.
_SQLITE_PASSES = {5, 6, 10, 13, 14}

Rows = Mapping[str, Sequence[Any]]


class Verbatim(UserDefinedType[Any]):
    """A type that a database has told the name of. Values pass as the driver has them."""

    cache_ok = True

    def __init__(self, name: str) -> None:
        self.name = name

    def get_col_spec(self, **_: Any) -> str:
        """The name, for SQLAlchemy."""
        return self.name


class Database:
    """An engine, and what the databases do differently.

    Parameters
    ----------
    url
        As `follow` has it.
    """

    def __init__(self, url: Any) -> None:
        self.engine = make_engine(url)
        self.is_own = not isinstance(url, sa.Engine)
        self.kind = self.engine.dialect.name
        self._open: sa.Connection | None = None  # in a transaction

    def __str__(self) -> str:
        return shown(self.engine.url)

    def close(self) -> None:
        """Close the connections of an engine that was made here."""
        if self.is_own:
            self.engine.dispose()

    def call(self, work: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Do some work, with every error of the database in words that have no password."""
        drivers = getattr(self.engine.dialect.dbapi, "Error", sa.exc.SQLAlchemyError)
        try:
            return work(*args, **kwargs)
        except (sa.exc.SQLAlchemyError, drivers, UnicodeError) as error:  # the last for a host that can be none
            failure = self._translated(error)
        except KeyboardInterrupt as error:
            # SQLite keeps a connection, and its lock, that was closed while a query, in a traceback, has rows left.
            clear_frames(error.__traceback__)
            raise
        finally:
            self._abandon()
        # Outside of the block, so that the error does not carry the one that may have the password.
        raise failure

    def _abandon(self) -> None:
        """Close a connection that Ctrl-C has left in a transaction: it may come just before a block begins."""
        connection, self._open = self._open, None
        if connection is not None:
            with Uninterrupted(), suppress(Exception):
                connection.invalidate()
                connection.close()

    def _translated(self, error: Exception) -> DatabaseError:
        cause = getattr(error, "orig", None) or error
        text = scrubbed(str(cause).strip() or type(cause).__name__, self.engine.url)
        names = {base.__name__ for base in type(error).__mro__ + type(cause).__mro__}
        return (TransientDatabaseError if _may_pass(cause, names) else DatabaseError)(f"{self}: {text}")

    @contextmanager
    def transaction(self, is_snapshot: bool = True) -> Iterator[sa.Connection]:
        """A transaction that is committed at the end; all its statements see the database at one moment.

        Ctrl-C comes before it or after it, or ends it: a connection that was left in the middle of something is closed.
        """
        connection, transaction = None, None
        try:
            with Uninterrupted():
                connection = self._open = self.engine.connect()
                if self.kind == "postgresql" and is_snapshot:
                    connection = connection.execution_options(isolation_level="REPEATABLE READ")
                transaction = connection.begin()
                self._begin(connection)
            yield connection
            with Uninterrupted():
                transaction.commit()
        except BaseException as error:
            with Uninterrupted(), suppress(Exception):
                if isinstance(error, Exception) or isinstance(self.engine.pool, StaticPool):
                    if transaction is not None:
                        transaction.rollback()
                elif connection is not None:
                    connection.invalidate()
            raise
        finally:
            if connection is not None:
                with Uninterrupted():
                    connection.close()
                    self._open = None

    def _begin(self, connection: sa.Connection) -> None:
        """What is said first in a transaction."""
        raw = connection.connection.dbapi_connection
        if self.kind == "sqlite" and raw is not None and not getattr(raw, "in_transaction", False):
            # Python's driver would begin only with the first write, and then might find that others were faster.
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        if self.kind == "postgresql":
            # In other zones two times of the hour that a clock is put back are equal for Python.
            connection.exec_driver_sql("SET LOCAL TimeZone = 'UTC'")

    def column_types(self, connection: sa.Connection, table: str, schema: str | None) -> dict[str, str]:
        """The columns of a table or view with their types, in the words of the database; none where there is none.

        SQLAlchemy's reflection has no words for types that it does not know, and none at all for DuckDB.
        """
        if not sa.inspect(connection).has_table(table, schema):
            return {}
        quoted = ".".join('"' + part.replace('"', '""') + '"' for part in (schema, table) if part is not None)
        if self.kind == "postgresql":
            query = sa.text(
                "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
                "WHERE attrelid = to_regclass(:name) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
            )
            found = connection.execute(query, {"name": quoted})
        elif self.kind == "duckdb":
            found = connection.execute(sa.text("SELECT name, type FROM pragma_table_info(:name)"), {"name": quoted})
        else:
            # With columns that are computed, and without those of virtual tables that are hidden.
            query = sa.text("SELECT name, type FROM pragma_table_xinfo(:name, :schema) WHERE hidden <> 1")
            found = connection.execute(query, {"name": table, "schema": schema or "main"})
        return {name: _affinity(kind) if self.kind == "sqlite" else kind for name, kind in found}

    def packed(self, columns: Sequence[sa.ColumnElement[Any]], types: Sequence[str]) -> sa.ColumnElement[Any] | None:
        """Columns of numbers as one value, the bytes of all of them (float64, big-endian), NULL where one is NULL.

        A number that becomes a Python object on its way costs more than everything else that is done for it. None where
        the database cannot do that, or the columns have other types.
        """
        if self.kind != "postgresql" or not set(types) <= _PACKABLE:
            return None
        parts: list[sa.ColumnElement[Any]] = [
            sa.func.float8send(sa.cast(column, sa.Double), type_=sa.LargeBinary) for column in columns
        ]
        return functools.reduce(lambda before, part: before.concat(part), parts)

    def whole_numbers(self, connection: sa.Connection, column: sa.ColumnElement[Any]) -> NDArray[np.int64]:
        """All values of a column of PostgreSQL's integers, without a Python object for each."""
        sent = sa.func.int8send(sa.cast(column, sa.BigInteger))
        query = sa.select(sa.func.string_agg(sent, sa.literal_column("''::bytea"), type_=sa.LargeBinary))
        raw: Any = connection.connection.driver_connection
        # By psycopg itself, which can be asked for bytes as they are: SQLAlchemy gets them in hexadecimal digits.
        with raw.cursor(binary=True) as cursor:
            # With parameters, though there are none: then psycopg takes "%%" for "%".
            (found,) = cursor.execute(str(query.compile(self.engine)), {}).fetchone()
        return np.frombuffer(found or b"", ">i8").astype(np.int64)

    def stream(self, connection: sa.Connection, query: sa.Select[Any], chunk: int) -> Iterator[Sequence[Sequence[Any]]]:
        """The rows of a query, so many at a time, without all of them in memory."""
        with connection.execute(query, execution_options={"yield_per": chunk}) as result:
            yield from result.partitions()

    def among(self, connection: sa.Connection, column: sa.ColumnElement[Any], values: Sequence[Any]) -> set[Any]:
        """Those of some values that a column has."""
        query = sa.select(column).where(column.in_(sa.bindparam("some", expanding=True)))
        found: set[Any] = set()
        for start in range(0, len(values), _LISTED_AT_ONCE):
            some = list(values[start : start + _LISTED_AT_ONCE])
            found.update(connection.scalars(query, {"some": some}))
        return found

    def insert(self, connection: sa.Connection, table: sa.Table, rows: Rows, upsert: str | None = None) -> None:
        """Write rows, given as columns; those whose value in the column `upsert` is there already are replaced."""
        construct: Any = sqlite.insert if self.kind == "sqlite" else postgresql.insert
        statement = construct(table)
        if self.kind != "sqlite":
            statement = statement.from_select(list(rows), _unnested(table, rows))
        if upsert is not None:
            others = {name: statement.excluded[name] for name in rows if name != upsert}
            statement = statement.on_conflict_do_update(index_elements=[table.c[upsert]], set_=others)
        self._execute(connection, statement, rows)

    def delete(self, connection: sa.Connection, table: sa.Table, column: str, values: Sequence[Any]) -> None:
        """Delete the rows that have one of the values in a column."""
        rows = {column: values}
        if self.kind == "sqlite":
            statement = sa.delete(table).where(table.c[column] == sa.bindparam(_bound(table, column)))
        else:
            statement = sa.delete(table).where(table.c[column].in_(_unnested(table, rows)))
        self._execute(connection, statement, rows)

    def _execute(self, connection: sa.Connection, statement: Any, rows: Rows) -> None:
        names = list(rows)
        for start in range(0, len(rows[names[0]]), AT_ONCE):
            part = [rows[name][start : start + AT_ONCE] for name in names]
            if self.kind == "sqlite":
                bound = names if statement.is_insert else [_bound(statement.table, name) for name in names]
                connection.execute(statement, [dict(zip(bound, row, strict=True)) for row in zip(*part, strict=True)])
            else:
                bound = [_bound(statement.table, name) for name in names]
                connection.execute(statement, dict(zip(bound, map(self._array, part), strict=True)))

    def _array(self, values: Sequence[Any]) -> Any:
        """Values as the driver takes an array."""
        if self.kind == "postgresql" and set(map(type, values)) == {int}:
            return f"{{{','.join(map(str, values))}}}"  # as PostgreSQL writes it: ten times as fast as psycopg's list
        return list(values)


def _may_pass(cause: BaseException, names: set[str]) -> bool:
    """Whether an error may be gone when the same is tried again."""
    code = getattr(cause, "sqlite_errorcode", None)
    if code is not None:
        return code & 0xFF in _SQLITE_PASSES
    state = getattr(cause, "sqlstate", None) or ""
    if state.startswith(("28", "3D", "42")) or "authentication failed" in str(cause):
        return False
    if state == "25P03" or "cached plan must not change" in str(cause):
        return True
    return bool(names & {"OperationalError", "InterfaceError", "TimeoutError"})


def _bound(table: sa.Table, column: str) -> str:
    """A name for the values of a column that no name of a user's column can be."""
    return f"evertree_{list(table.c.keys()).index(column)}"


def _unnested(table: sa.Table, rows: Rows) -> sa.Select[Any]:
    """Rows from an array for each column."""
    columns = []
    for name in rows:
        kind = table.c[name].type
        array = Verbatim(f"{kind.name}[]") if isinstance(kind, Verbatim) else postgresql.ARRAY(kind)
        columns.append(sa.func.unnest(sa.cast(sa.bindparam(_bound(table, name), type_=sa.types.NullType()), array)))
    return sa.select(*columns)


def _affinity(declared: str) -> str:
    """What SQLite makes of the type of a column, by its own rules."""
    kind = declared.upper()
    for words, affinity in (
        (("INT",), "INT"),  # not INTEGER: as a primary key that would take nothing but integers
        (("CHAR", "CLOB", "TEXT"), "TEXT"),
        (("BLOB",), "BLOB"),
        (("REAL", "FLOA", "DOUB"), "DOUBLE"),
        (("ANY",), "BLOB"),  # of a strict table: values as they are
    ):
        if any(word in kind for word in words):
            return affinity
    return "NUMERIC" if kind else "BLOB"

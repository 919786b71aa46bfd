"""`FollowedDatabase`: transactions, column types and bulk statements, where SQLite, PostgreSQL and DuckDB differ."""

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
from sqlalchemy.sql import quoted_name
from sqlalchemy.types import UserDefinedType

from evertree.errors import DatabaseError, TransientDatabaseError
from evertree.locking import Uninterrupted
from evertree.sql.engine import display_url, make_engine, mask_secrets

_P = ParamSpec("_P")
_R = TypeVar("_R")

#: PostgreSQL's integer types.
INTEGER_TYPES = {"smallint", "integer", "bigint"}

#: PostgreSQL's numeric types that fit in a float64, or are rounded to it as Python does.
_PACKABLE_TYPES = {"real", "double precision"} | INTEGER_TYPES

#: Rows written by one statement.
_ROWS_PER_STATEMENT = 50_000

#: Values in one IN.
_VALUES_PER_IN = 1_000

#: SQLite's codes for busy, locked, an input/output error, a full disk, and a file that cannot be opened.
_TRANSIENT_SQLITE_CODES = {5, 6, 10, 13, 14}

#: Values by name of the column.
Columns = Mapping[str, Sequence[Any]]


class NativeType(UserDefinedType[Any]):
    """A column type by the name that the database has for it. Values pass unchanged to and from the driver."""

    cache_ok = True

    def __init__(self, name: str) -> None:
        self.name = name

    def get_col_spec(self, **_: Any) -> str:
        """The name, for SQLAlchemy."""
        return self.name


class FollowedDatabase:
    """An engine, and what the supported databases do differently.

    Parameters
    ----------
    url
        As for `follow`.

    Attributes
    ----------
    engine : sqlalchemy.Engine
    kind : {"sqlite", "postgresql", "duckdb"}
    """

    def __init__(self, url: Any) -> None:
        self.engine = make_engine(url)
        self._owns_engine = not isinstance(url, sa.Engine)
        self.kind = self.engine.dialect.name
        self._open: sa.Connection | None = None  # while a transaction is open

    def __str__(self) -> str:
        return display_url(self.engine.url)

    def close(self) -> None:
        """Close the connections, unless the engine is the user's."""
        if self._owns_engine:
            self.engine.dispose()

    def call(self, work: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Call a function; errors of the database become a `DatabaseError` that shows no password."""
        driver_error = getattr(self.engine.dialect.dbapi, "Error", sa.exc.SQLAlchemyError)
        try:
            return work(*args, **kwargs)
        except (sa.exc.SQLAlchemyError, driver_error, UnicodeError) as error:  # the last: an impossible host name
            failure = self._translated(error)
        except KeyboardInterrupt as error:
            # The traceback holds queries with rows left to read, which would keep SQLite's lock after a close.
            clear_frames(error.__traceback__)
            raise
        finally:
            self._abandon()
        # Raised outside the except block: the original error, which may show the password, is not its context.
        raise failure

    def _abandon(self) -> None:
        """Close a connection that Ctrl-C has left in a transaction, as between two of its blocks."""
        connection, self._open = self._open, None
        if connection is not None:
            with Uninterrupted(), suppress(Exception):
                connection.invalidate()
                connection.close()

    def _translated(self, error: Exception) -> DatabaseError:
        cause = getattr(error, "orig", None) or error
        text = mask_secrets(str(cause).strip() or type(cause).__name__, self.engine.url)
        names = {base.__name__ for base in type(error).__mro__ + type(cause).__mro__}
        return (TransientDatabaseError if _is_transient(cause, names) else DatabaseError)(f"{self}: {text}")

    @contextmanager
    def transaction(self, is_snapshot: bool = True) -> Iterator[sa.Connection]:
        """A transaction, committed at the end. As a snapshot, all its statements see the database at one moment.

        Ctrl-C rolls it back, and closes a connection that it has left in the middle of a statement.
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
        """The first statements of a transaction."""
        raw = connection.connection.dbapi_connection
        if self.kind == "sqlite" and raw is not None and not getattr(raw, "in_transaction", False):
            # Python's driver would begin at the first write, which fails if someone else has written since the reads.
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        if self.kind == "postgresql":
            # In other zones, Python takes times in the hour before and after a clock is put back for equal.
            connection.exec_driver_sql("SET LOCAL TimeZone = 'UTC'")

    def column_types(self, connection: sa.Connection, table: str, schema: str | None) -> dict[str, str]:
        """The columns of a table or view and the database's names for their types; empty if there is no such table.

        SQLAlchemy's reflection does not know all types, and none of DuckDB's.
        """
        if not sa.inspect(connection).has_table(table, schema):
            return {}
        full_name = ".".join('"' + part.replace('"', '""') + '"' for part in (schema, table) if part is not None)
        if self.kind == "postgresql":
            query = sa.text(
                "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
                "WHERE attrelid = to_regclass(:name) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
            )
            found = connection.execute(query, {"name": full_name})
        elif self.kind == "duckdb":
            found = connection.execute(sa.text("SELECT name, type FROM pragma_table_info(:name)"), {"name": full_name})
        else:
            # Including generated columns, and without the hidden ones of virtual tables.
            query = sa.text("SELECT name, type FROM pragma_table_xinfo(:name, :schema) WHERE hidden <> 1")
            found = connection.execute(query, {"name": table, "schema": schema or "main"})
        return {name: _affinity(kind) if self.kind == "sqlite" else kind for name, kind in found}

    def pack(self, columns: Sequence[sa.ColumnElement[Any]], types: Sequence[str]) -> sa.ColumnElement[Any] | None:
        """Numeric columns as one value: their bytes (float64, big-endian), NULL if one is NULL.

        Making a Python object of each number would take longer than everything else in a poll. None if the database
        cannot do it, or the columns have other types.
        """
        if self.kind != "postgresql" or not set(types) <= _PACKABLE_TYPES:
            return None
        parts: list[sa.ColumnElement[Any]] = [
            sa.func.float8send(sa.cast(column, sa.Double), type_=sa.LargeBinary) for column in columns
        ]
        return functools.reduce(lambda before, part: before.concat(part), parts)

    def read_integers(self, connection: sa.Connection, column: sa.ColumnElement[Any]) -> NDArray[np.int64]:
        """All values of an integer column of PostgreSQL, without a Python object for each."""
        sent = sa.func.int8send(sa.cast(column, sa.BigInteger))
        query = sa.select(sa.func.string_agg(sent, sa.literal_column("''::bytea"), type_=sa.LargeBinary))
        raw: Any = connection.connection.driver_connection
        # By psycopg itself, which can transfer bytes as they are: SQLAlchemy gets them as hexadecimal digits.
        with raw.cursor(binary=True) as cursor:
            # With empty parameters: then psycopg reads "%%" as "%".
            (found,) = cursor.execute(str(query.compile(self.engine)), {}).fetchone()
        return np.frombuffer(found or b"", ">i8").astype(np.int64)

    def stream(self, connection: sa.Connection, query: sa.Select[Any], chunk: int) -> Iterator[Sequence[Sequence[Any]]]:
        """The rows of a query, `chunk` at a time, without all of them in memory."""
        with connection.execute(query, execution_options={"yield_per": chunk}) as result:
            yield from result.partitions()

    def existing(self, connection: sa.Connection, column: sa.ColumnElement[Any], values: Sequence[Any]) -> set[Any]:
        """The values that occur in a column."""
        query = sa.select(column).where(column.in_(sa.bindparam("values", expanding=True)))
        found: set[Any] = set()
        for start in range(0, len(values), _VALUES_PER_IN):
            found.update(connection.scalars(query, {"values": list(values[start : start + _VALUES_PER_IN])}))
        return found

    def insert(self, connection: sa.Connection, table: sa.Table, rows: Columns, upsert: str | None = None) -> None:
        """Insert rows; with `upsert`, rows whose value in that column exists are updated instead."""
        construct: Any = sqlite.insert if self.kind == "sqlite" else postgresql.insert
        statement = construct(table)
        if self.kind != "sqlite":
            statement = statement.from_select(list(rows), _unnested(table, rows))
        if upsert is not None:
            others = {name: statement.excluded[name] for name in rows if name != upsert}
            statement = statement.on_conflict_do_update(index_elements=[table.c[upsert]], set_=others)
        self._execute(connection, statement, rows)

    def delete(self, connection: sa.Connection, table: sa.Table, column: str, values: Sequence[Any]) -> None:
        """Delete the rows with one of the values in a column."""
        rows = {column: values}
        if self.kind == "sqlite":
            statement = sa.delete(table).where(table.c[column] == sa.bindparam(_bound(table, column)))
        else:
            statement = sa.delete(table).where(table.c[column].in_(_unnested(table, rows)))
        self._execute(connection, statement, rows)

    def _execute(self, connection: sa.Connection, statement: Any, rows: Columns) -> None:
        names = list(rows)
        for start in range(0, len(rows[names[0]]), _ROWS_PER_STATEMENT):
            part = [rows[name][start : start + _ROWS_PER_STATEMENT] for name in names]
            if self.kind == "sqlite":
                bound = names if statement.is_insert else [_bound(statement.table, name) for name in names]
                connection.execute(statement, [dict(zip(bound, row, strict=True)) for row in zip(*part, strict=True)])
            else:
                bound = [_bound(statement.table, name) for name in names]
                connection.execute(statement, dict(zip(bound, map(self._array, part), strict=True)))

    def _array(self, values: Sequence[Any]) -> Any:
        """Values as an array for the driver."""
        if self.kind == "postgresql" and set(map(type, values)) == {int}:
            return f"{{{','.join(map(str, values))}}}"  # PostgreSQL's notation: ten times as fast as a list in psycopg
        return list(values)


def quoted(name: str) -> quoted_name:
    """A name that is always written in quotes: SQLAlchemy does not know all the words that DuckDB reserves."""
    return quoted_name(name, quote=True)


def _is_transient(cause: BaseException, names: set[str]) -> bool:
    """Whether it makes sense to try again after an error."""
    code = getattr(cause, "sqlite_errorcode", None)
    if code is not None:
        return code & 0xFF in _TRANSIENT_SQLITE_CODES
    state = getattr(cause, "sqlstate", None) or ""
    if state.startswith(("28", "3D", "42")) or "authentication failed" in str(cause):
        return False
    if state == "25P03" or "cached plan must not change" in str(cause):
        return True
    return bool(names & {"OperationalError", "InterfaceError", "TimeoutError"})


def _bound(table: sa.Table, column: str) -> str:
    """The name of the parameter with the values of a column; the user's names may have any characters."""
    return f"evertree_{list(table.c.keys()).index(column)}"


def _unnested(table: sa.Table, rows: Columns) -> sa.Select[Any]:
    """Rows from one array for each column."""
    columns = []
    for name in rows:
        kind = table.c[name].type
        array = NativeType(f"{kind.name}[]") if isinstance(kind, NativeType) else postgresql.ARRAY(kind)
        columns.append(sa.func.unnest(sa.cast(sa.bindparam(_bound(table, name), type_=sa.types.NullType()), array)))
    return sa.select(*columns)


def _affinity(declared: str) -> str:
    """The type that SQLite's rules derive from the declared type of a column."""
    kind = declared.upper()
    for words, affinity in (
        (("INT",), "INT"),  # not INTEGER, which as a primary key takes nothing but integers
        (("CHAR", "CLOB", "TEXT"), "TEXT"),
        (("BLOB",), "BLOB"),
        (("REAL", "FLOA", "DOUB"), "DOUBLE"),
        (("ANY",), "BLOB"),  # of a strict table: values stay as they are
    ):
        if any(word in kind for word in words):
            return affinity
    return "NUMERIC" if kind else "BLOB"

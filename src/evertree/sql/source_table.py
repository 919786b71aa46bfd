"""`SourceTable`: queries on the user's table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from evertree.errors import ParameterError, listed
from evertree.sql.database import INTEGER_TYPES, FollowedDatabase, NativeType, quoted
from evertree.sql.follow_options import FollowOptions

#: Keys that fit in one value of PostgreSQL: 1 GB, with two hexadecimal digits for each byte.
_MAX_PACKED_KEYS = 50_000_000


class SourceTable:
    """The table or view that is followed.

    Parameters
    ----------
    database : FollowedDatabase
    options : FollowOptions
    types : mapping
        The type of each column of the table.

    Attributes
    ----------
    key : column
    key_type : NativeType
    version_type : NativeType or None
        None without a version.
    types : mapping
    is_packed : bool
        Whether `rows` have all values of a point in one, as `FollowedDatabase.pack` makes it.
    """

    def __init__(self, database: FollowedDatabase, options: FollowOptions, types: Mapping[str, str]) -> None:
        _check_columns(options, types)
        self._database = database
        self.types = types
        names = dict.fromkeys([options.key, *options.values, *([options.version] if options.version else [])])
        columns: list[sa.ColumnClause[Any]] = [sa.column(quoted(name)) for name in names]
        schema = None if options.schema is None else quoted(options.schema)
        table = sa.table(quoted(options.table), *columns, schema=schema)
        self.key = table.c[options.key]
        self.key_type = NativeType(types[options.key])
        self._version = table.c[options.version] if options.version else None
        self.version_type = NativeType(types[options.version]) if options.version else None
        values: list[sa.ColumnElement[Any]] = [table.c[name] for name in options.values]
        packed = None
        if options.vector is None and not options.has_objects:
            packed = database.pack(values, [types[name] for name in options.columns])
        self.is_packed = packed is not None
        self._columns = [self.key, *(values if packed is None else [packed])]

    def rows(self) -> sa.Select[Any]:
        """All rows: the key, and then the values of a point."""
        return sa.select(*self._columns)

    def rows_since(self, last_version: Any) -> sa.Select[Any]:
        """The rows with that version or a later one, or with none."""
        assert self._version is not None
        assert self.version_type is not None
        bound: Any = sa.literal(last_version)
        if self._database.kind != "sqlite":
            # In the column's own type: a real that has become a Python number is another number.
            bound = sa.cast(bound, self.version_type)
        return self.rows().where(sa.or_(self._version >= bound, self._version.is_(None)))

    def last_version(self, connection: sa.Connection) -> Any:
        """The largest version in the table; None without versions."""
        if self._version is None:
            return None
        # Not max(), which some types that can be ordered do not have.
        query = sa.select(self._version).where(self._version.is_not(None)).order_by(self._version.desc()).limit(1)
        return connection.scalar(query)

    def count(self, connection: sa.Connection) -> int:
        """The number of rows with a key."""
        return connection.scalar(sa.select(sa.func.count(self.key))) or 0

    def read_integer_keys(self, connection: sa.Connection, n_rows: int) -> NDArray[np.int64] | None:
        """All keys, if they are integers that can be read faster than the database can compare them; else None."""
        is_integer = self._database.kind == "postgresql" and self.key_type.name in INTEGER_TYPES
        return self._database.read_integers(connection, self.key) if is_integer and n_rows <= _MAX_PACKED_KEYS else None


def _check_columns(options: FollowOptions, types: Mapping[str, str]) -> None:
    if not types:
        where = "" if options.schema is None else f" in the schema {options.schema!r}"
        raise ParameterError(f"table must be a table or a view of the database; there is no {options.table!r}{where}")
    wanted = {
        "key": [options.key],
        "columns": options.columns,
        "vector": [options.vector],
        "version": [options.version],
    }
    for parameter, names in wanted.items():
        unknown = [name for name in names if name is not None and name not in types]
        if unknown:
            raise ParameterError(
                f"{parameter} must be of the table {options.table!r}, which has {listed(types)}; it has no "
                f"{listed(unknown)}"
            )

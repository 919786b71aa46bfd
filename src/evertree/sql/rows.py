"""`Decoder`: from the rows of a query to keys and points, and which rows cannot be points."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import DataError, DimensionError, DuplicateKeyError, NotNumericError, listed
from evertree.metrics import largest_value
from evertree.sql.settings import Settings
from evertree.sql.vectors import as_vectors

#: Types of columns that float32 holds without loss, as PostgreSQL, pgvector and DuckDB name them.
_SINGLE = ("real", "vector", "halfvec", "float")


@dataclass(frozen=True)
class Batch:
    """Rows of a table.

    Attributes
    ----------
    keys : list
        Of the rows that are points.
    points : array of shape (n, n_columns), or list of objects
    left_out : list
        The keys of the other rows: a value is missing, not finite, or no number.
    """

    keys: list[Hashable]
    points: Any
    left_out: list[Hashable]


class Decoder:
    """Makes batches of rows, which have the key first and then the values, or all of them packed."""

    def __init__(self, settings: Settings, types: dict[str, str], is_packed: bool) -> None:
        self._settings = settings
        self._is_packed = is_packed
        self._scheme = settings.scheme
        names = [types[name].lower() for name in settings.values]
        is_single = all(name.partition("(")[0].partition("[")[0] in _SINGLE for name in names)
        self._dtype = settings.dtype or np.dtype(np.float32 if is_single else np.float64)

    def decode(self, rows: Sequence[Sequence[Any]], n_columns: int | None) -> Batch:
        """A batch; `n_columns` is the length of vectors that is right, where that is known."""
        columns = list(zip(*rows, strict=True))
        if not columns:
            return Batch([], [], [])
        keys = list(columns[0])
        values = columns[1:]
        if None in keys:
            has_key = [key is not None for key in keys]
            return self.decode([row for row, is_there in zip(rows, has_key, strict=True) if is_there], n_columns)
        self._check_different(keys)
        if self._settings.holds_objects:
            return _objects(keys, values)
        points = self._points(values, n_columns)
        usable = self._usable(points)
        if usable.all():
            return Batch(keys, points, [])
        good, bad = np.flatnonzero(usable).tolist(), np.flatnonzero(~usable).tolist()
        return Batch([keys[i] for i in good], points[usable], [keys[i] for i in bad])

    def _points(self, values: Sequence[Sequence[Any]], n_columns: int | None) -> NDArray[Any]:
        if self._is_packed:
            points = _unpacked(values[0], len(self._settings.columns))
        elif self._settings.vector is not None:
            points = as_vectors(values[0], self._settings.vector, n_columns, self._settings.dtype)
        else:
            named = zip(self._settings.columns, values, strict=True)
            points = np.column_stack([_as_numbers(name, column) for name, column in named])
        with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is left out
            return np.ascontiguousarray(points, self._dtype)

    def _usable(self, points: NDArray[Any]) -> NDArray[np.bool_]:
        """Which points the metric can compare."""
        usable = (np.abs(points) <= largest_value(self._dtype)).all(axis=1)  # NaN is not
        vectors = self._scheme.vectors
        if vectors is None:
            return usable
        try:
            vectors.coordinates(points[usable])
        except DimensionError:  # the parameters of the metric are for another number of columns
            raise
        except DataError:
            for i in np.flatnonzero(usable).tolist():
                try:
                    vectors.coordinates(points[i : i + 1])
                except DataError:
                    usable[i] = False
        return usable

    def _check_different(self, keys: list[Hashable]) -> None:
        if len(set(keys)) < len(keys):
            seen: set[Hashable] = set()
            self.refuse_twice([key for key in keys if key in seen or seen.add(key)])  # type: ignore[func-returns-value]

    def refuse_twice(self, keys: Sequence[Hashable]) -> None:
        """Say that keys are not unique."""
        raise DuplicateKeyError(
            f"key must be a column without duplicates; {self._settings.key!r} of the table {self._settings.table!r} "
            f"has more than once: {listed(keys)}"
        )


def _objects(keys: list[Hashable], values: Sequence[Sequence[Any]]) -> Batch:
    """Points as they are, or tuples of several columns; a row with a NULL is left out."""
    points: list[Any] = list(values[0]) if len(values) == 1 else list(zip(*values, strict=True))
    is_missing = [any(value is None for value in row) for row in zip(*values, strict=True)]
    if not any(is_missing):
        return Batch(keys, points, [])
    kept = [i for i, is_out in enumerate(is_missing) if not is_out]
    out = [key for key, is_out in zip(keys, is_missing, strict=True) if is_out]
    return Batch([keys[i] for i in kept], [points[i] for i in kept], out)


def _unpacked(values: Sequence[bytes | None], n_columns: int) -> NDArray[np.float64]:
    """Numbers that `Database.packed` has packed, NaN for NULL."""
    missing = np.full(n_columns, np.nan, ">f8").tobytes()
    packed = b"".join([missing if value is None else value for value in values])
    return np.frombuffer(packed, ">f8").reshape(len(values), n_columns)


def _as_numbers(name: str, column: Sequence[Any]) -> NDArray[np.float64]:
    """A column of numbers, with NaN for what is none."""
    array = np.array(column)
    if array.dtype.kind in "fiub":
        return array.astype(np.float64, copy=False)
    given = [value for value in column if value is not None]
    if given and not any(isinstance(value, (numbers.Real, Decimal)) for value in given):
        raise NotNumericError(
            f"columns must hold numbers; {name!r} has values such as {given[0]!r}: leave it out, or make a number of "
            "it in a view"
        )
    is_number = [isinstance(value, (numbers.Real, Decimal)) for value in column]
    return np.array([value if is_ok else np.nan for value, is_ok in zip(column, is_number, strict=True)], np.float64)

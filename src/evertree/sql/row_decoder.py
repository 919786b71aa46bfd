"""`RowDecoder`: from the rows of a query to keys and points, and to the rows that cannot be points."""

from __future__ import annotations

import numbers
import reprlib
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import DataError, DimensionError, DuplicateKeyError, InvalidKeyError, listed
from evertree.input.metrics import LARGEST_VALUE
from evertree.sql.follow_options import FollowOptions
from evertree.sql.vector_column import as_vectors, non_vectors

#: Column types that float32 holds without loss, as PostgreSQL, pgvector and DuckDB name them.
_FLOAT32_TYPES = ("real", "vector", "halfvec", "float")


@dataclass(frozen=True)
class RowBatch:
    """Decoded rows.

    Attributes
    ----------
    keys : list
        Of the rows that are points.
    points : array of shape (n, n_columns), or list of objects
    skipped : list
        The keys of the other rows: a value is missing, not finite, or not a number.
    complaint : str, optional
        The text for an error, if no row is a point and some have values that are not numbers.
    """

    keys: list[Hashable]
    points: Any
    skipped: list[Hashable]
    complaint: str | None = None

    def at(self, positions: NDArray[np.intp]) -> tuple[list[Hashable], Any]:
        """The keys and points at some positions."""
        if positions.size == len(self.keys):
            return self.keys, self.points
        keys = [self.keys[i] for i in positions.tolist()]
        if isinstance(self.points, list):
            return keys, [self.points[i] for i in positions.tolist()]
        return keys, self.points[positions]


class RowDecoder:
    """Decodes rows that have the key first, and then the values, or all of them packed.

    Parameters
    ----------
    options : FollowOptions
    types : mapping
        The types of the columns.
    is_packed : bool
        Whether the values are packed by `FollowedDatabase.pack`.
    """

    def __init__(self, options: FollowOptions, types: Mapping[str, str], is_packed: bool) -> None:
        self._options = options
        self._is_packed = is_packed
        names = [types[name].lower().partition("(")[0].partition("[")[0] for name in options.values]
        is_single = all(name in _FLOAT32_TYPES for name in names)
        self._dtype = options.dtype or np.dtype(np.float32 if is_single else np.float64)

    def decode(self, rows: Sequence[Sequence[Any]], n_columns: int | None) -> RowBatch:
        """Decode rows; those without a key are ignored.

        `n_columns` is the length that vectors must have; None is the one that most of them have.
        """
        if any(row[0] is None for row in rows):
            rows = [row for row in rows if row[0] is not None]
        if not rows:
            return RowBatch([], [], [])
        columns = list(zip(*rows, strict=True))
        keys, values = list(columns[0]), columns[1:]
        self._check_keys(keys)
        if self._options.has_objects:
            points: Any = list(values[0]) if len(values) == 1 else list(zip(*values, strict=True))
            usable = np.array([all(value is not None for value in row) for row in zip(*values, strict=True)])
        else:
            points = self._points(values, n_columns)
            usable = self._usable(points)
        batch = RowBatch(keys, points, [])
        if usable.all():
            return batch
        skipped = batch.at(np.flatnonzero(~usable))[0]
        complaint = None if usable.any() else self._complaint(values)
        return RowBatch(*batch.at(np.flatnonzero(usable)), skipped, complaint)

    def _points(self, values: Sequence[Sequence[Any]], n_columns: int | None) -> NDArray[Any]:
        if self._is_packed:
            points = _unpacked(values[0], len(self._options.columns))
        elif self._options.vector is not None:
            points = as_vectors(values[0], self._options.vector, n_columns, self._options.dtype)
        else:
            points = np.column_stack([_as_numbers(column) for column in values])
        with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is skipped
            return np.ascontiguousarray(points, self._dtype)

    def _complaint(self, values: Sequence[Sequence[Any]]) -> str | None:
        """What is wrong with the first value that is neither missing nor a number, if there is one."""
        if self._is_packed or self._options.has_objects:
            return None
        if self._options.vector is not None:
            wrong = non_vectors(values[0], self._options.dtype)
            text = (
                f"vector must be a column of arrays, or of texts like '[1,2,3]'; {self._options.vector!r} has values "
            )
            return f"{text}such as {reprlib.repr(wrong[0])}" if wrong else None
        for name, column in zip(self._options.columns, values, strict=True):
            wrong = [value for value in column if not isinstance(value, (Decimal, numbers.Real, NoneType))]
            if wrong:
                return (
                    f"columns must hold numbers; {name!r} has values such as {reprlib.repr(wrong[0])}: leave it out, "
                    "or make a number of it in a view"
                )
        return None

    def _usable(self, points: NDArray[Any]) -> NDArray[np.bool_]:
        """Which points can be compared by the metric."""
        usable = (np.abs(points) <= LARGEST_VALUE[self._dtype]).all(axis=1)  # NaN is not
        metric = self._options.scheme.vectors
        if metric is None or not usable.any():
            return usable
        try:
            metric.coordinates(points[usable])
        except DimensionError:  # the parameters of the metric are for another number of columns
            raise
        except DataError:
            for i in np.flatnonzero(usable).tolist():
                try:
                    metric.coordinates(points[i : i + 1])
                except DataError:
                    usable[i] = False
        return usable

    def _check_keys(self, keys: list[Hashable]) -> None:
        with suppress(TypeError):
            if len(set(keys)) == len(keys):
                return
        seen: set[Hashable] = set()
        twice: list[Hashable] = []
        for key in keys:
            try:
                if key in seen:
                    twice.append(key)
                seen.add(key)
            except TypeError:
                raise InvalidKeyError(
                    "key must be a column of values that can be told apart, such as numbers or texts; "
                    f"{self._options.key!r} of the table {self._options.table!r} has {reprlib.repr(key)}"
                ) from None
        if twice:
            raise self.duplicate_keys(twice)

    def duplicate_keys(self, keys: Sequence[Hashable]) -> DuplicateKeyError:
        """The error for keys that are not unique."""
        return DuplicateKeyError(
            f"key must be a column without duplicates; {self._options.key!r} of the table {self._options.table!r} "
            f"has more than once: {listed(keys)}"
        )


def _unpacked(values: Sequence[bytes | None], n_columns: int) -> NDArray[np.float64]:
    """The inverse of `FollowedDatabase.pack`, with NaN for NULL."""
    missing = np.full(n_columns, np.nan, ">f8").tobytes()
    packed = b"".join([missing if value is None else value for value in values])
    return np.frombuffer(packed, ">f8").reshape(len(values), n_columns)


def _as_numbers(column: Sequence[Any]) -> NDArray[np.float64]:
    """A column of numbers, with NaN for anything else."""
    try:
        array = np.array(column)
    except ValueError:  # lists of several lengths
        array = np.empty(0, np.object_)
    if array.dtype.kind in "fiub" and array.ndim == 1:
        return array.astype(np.float64, copy=False)
    numeric = [value if isinstance(value, (Decimal, numbers.Real)) else np.nan for value in column]
    try:
        return np.array(numeric, np.float64)
    except (OverflowError, ValueError):
        return np.array([_as_number(value) for value in numeric])


def _as_number(value: Any) -> float:
    """A number as a float, NaN for one that is too large and for a signaling NaN."""
    try:
        return float(value)
    except (OverflowError, ValueError):
        return np.nan

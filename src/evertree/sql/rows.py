"""`Decoder`: from the rows of a query to keys and points, and which rows cannot be points."""

from __future__ import annotations

import numbers
import reprlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import DataError, DimensionError, DuplicateKeyError, InvalidKeyError, listed
from evertree.input.metrics import largest_value
from evertree.sql.settings import Settings
from evertree.sql.vectors import as_vectors, no_vectors

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
    complaint : str, optional
        Where no row is a point, and some have values that are no numbers: what an error would say of them.
    """

    keys: list[Hashable]
    points: Any
    left_out: list[Hashable]
    complaint: str | None = None


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
        """A batch; `n_columns` is the length of vectors that is right, by default the one that most of them have."""
        columns = list(zip(*rows, strict=True))
        if not columns:
            return Batch([], [], [])
        keys = list(columns[0])
        values = columns[1:]
        has_key = [key is not None for key in keys]
        if not all(has_key):
            return self.decode([row for row, is_there in zip(rows, has_key, strict=True) if is_there], n_columns)
        self._check_different(keys)
        if self._settings.holds_objects:
            return _objects(keys, values)
        points = self._points(values, n_columns)
        usable = self._usable(points)
        if usable.all():
            return Batch(keys, points, [])
        if not usable.any():
            return Batch([], points[:0], keys, self._complaint(values))
        good, bad = np.flatnonzero(usable).tolist(), np.flatnonzero(~usable).tolist()
        return Batch([keys[i] for i in good], points[usable], [keys[i] for i in bad])

    def _points(self, values: Sequence[Sequence[Any]], n_columns: int | None) -> NDArray[Any]:
        if self._is_packed:
            points = _unpacked(values[0], len(self._settings.columns))
        elif self._settings.vector is not None:
            points = as_vectors(values[0], self._settings.vector, n_columns, self._settings.dtype)
        else:
            points = np.column_stack([_as_numbers(column) for column in values])
        with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is left out
            return np.ascontiguousarray(points, self._dtype)

    def _complaint(self, values: Sequence[Sequence[Any]]) -> str | None:
        """What is wrong with the first values that are there and are no numbers, if any are."""
        name = self._settings.vector
        if self._is_packed:
            return None
        if name is not None:
            wrong = no_vectors(values[0], self._settings.dtype)
            told = f"vector must be a column of arrays, or of texts like '[1,2,3]'; {name!r} has values such as "
            return f"{told}{reprlib.repr(wrong[0])}" if wrong else None
        for name, column in zip(self._settings.columns, values, strict=True):
            wrong = [value for value in column if not isinstance(value, (Decimal, numbers.Real, NoneType))]
            if wrong:
                return (
                    f"columns must hold numbers; {name!r} has values such as {reprlib.repr(wrong[0])}: leave it out, "
                    "or make a number of it in a view"
                )
        return None

    def _usable(self, points: NDArray[Any]) -> NDArray[np.bool_]:
        """Which points the metric can compare."""
        usable = (np.abs(points) <= largest_value(self._dtype)).all(axis=1)  # NaN is not
        vectors = self._scheme.vectors
        if vectors is None or not usable.any():
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
        try:
            n_different = len(set(keys))
        except TypeError:
            wrong = next(key for key in keys if not _is_hashable(key))
            raise InvalidKeyError(
                f"key must be a column of values that can be told apart, such as numbers or texts; "
                f"{self._settings.key!r} of the table {self._settings.table!r} has {reprlib.repr(wrong)}"
            ) from None
        if n_different < len(keys):
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


def _as_numbers(column: Sequence[Any]) -> NDArray[np.float64]:
    """A column of numbers, with NaN for what is none."""
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
    """A number as a float, NaN where it is too large, or a signaling NaN."""
    try:
        return float(value)
    except (OverflowError, ValueError):
        return np.nan


def _is_hashable(key: Any) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True

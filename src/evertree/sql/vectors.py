"""Vectors in one column: arrays, lists, text like ``[1,2,3]`` (pgvector, JSON), or the bytes of floats."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import NotNumericError, ParameterError


def as_vectors(
    values: Sequence[Any], column: str, n_columns: int | None, dtype: np.dtype[Any] | None
) -> NDArray[np.float64]:
    """A row of numbers for each value, all of them NaN where it is no vector of `n_columns` numbers.

    Where that is not known yet, it is the length that most of the values have.
    """
    if any(isinstance(value, (bytes, bytearray, memoryview)) for value in values[:1]):
        values = [_from_bytes(value, column, dtype) for value in values]
    elif any(isinstance(value, str) for value in values):
        values = _from_text(values)
    try:
        table = np.array(values, np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    if table.ndim == 2 and table.shape[1] == (n_columns or table.shape[1]) and table.shape[1]:
        return table
    return _row_by_row(values, column, n_columns)


def _from_text(values: Sequence[Any]) -> Sequence[Any]:
    """Lists from their texts, None where one is none."""
    try:
        parsed: list[Any] = json.loads(f"[{','.join(values)}]")
        if len(parsed) == len(values):
            return parsed
    except (TypeError, ValueError):
        pass
    return [_parsed(value) for value in values]


def _parsed(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _from_bytes(value: Any, column: str, dtype: np.dtype[Any] | None) -> Any:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        return value
    if dtype is None:
        raise ParameterError(
            f"dtype must be 'float32' or 'float64', because the column {column!r} has bytes, which do not say; it is "
            "None"
        )
    width = dtype.itemsize
    return np.frombuffer(value, dtype.newbyteorder("<")) if len(value) % width == 0 else None


def _row_by_row(values: Sequence[Any], column: str, n_columns: int | None) -> NDArray[np.float64]:
    """Some of the values are no vectors, or not all have the same length."""
    vectors = [_one(value) for value in values]
    found = [vector for vector in vectors if vector is not None]
    given = [value for value in values if value is not None]
    if given and not found:
        raise NotNumericError(
            f"vector must be a column of arrays, or of texts like '[1,2,3]'; {column!r} has values such as {given[0]!r}"
        )
    lengths = [vector.size for vector in found]
    width = n_columns or (max(sorted(set(lengths)), key=lengths.count) if lengths else 1)
    table = np.full((len(values), width), np.nan)
    for row, vector in zip(table, vectors, strict=True):
        if vector is not None and vector.size == width:
            row[:] = vector
    return table


def _one(value: Any) -> NDArray[np.float64] | None:
    """One vector, None for anything else."""
    if value is None or isinstance(value, (str, bytes)):
        return None
    try:
        vector = np.array(value, np.float64)
    except (TypeError, ValueError):
        return None
    return vector if vector.ndim == 1 and vector.size else None

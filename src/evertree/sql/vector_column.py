"""A column of vectors: arrays, lists, texts like ``[1,2,3]`` (pgvector, JSON), or the bytes of floats."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import ParameterError

_BYTES = (bytes, bytearray, memoryview)


def as_vectors(
    values: Sequence[Any], column: str, n_columns: int | None, dtype: np.dtype[Any] | None
) -> NDArray[np.float64]:
    """An array with a row for each value; rows are NaN where a value is not a vector of `n_columns` numbers.

    None is the length that most of the values have.
    """
    first = next((value for value in values if value is not None), None)
    if isinstance(first, _BYTES) and dtype is None:
        raise ParameterError(
            f"dtype must be 'float32' or 'float64', because the column {column!r} has bytes, which do not say; it is "
            "None"
        )
    values = _decoded(values, dtype)
    try:
        with np.errstate(invalid="ignore"):  # bytes may be any NaN
            table = np.array(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        table = np.empty(0)
    if table.ndim == 2 and table.shape[1] == (n_columns or table.shape[1]) and table.shape[1]:
        return table
    return _row_by_row(values, n_columns)


def non_vectors(values: Sequence[Any], dtype: np.dtype[Any] | None) -> list[Any]:
    """The values that are neither missing nor vectors of any length."""
    decoded = _decoded(values, dtype)
    return [
        value for value, vector in zip(values, decoded, strict=True) if value is not None and _as_vector(vector) is None
    ]


def _decoded(values: Sequence[Any], dtype: np.dtype[Any] | None) -> Sequence[Any]:
    """Texts and bytes as lists and arrays, None where that is not possible; other values as they are."""
    if any(isinstance(value, _BYTES) for value in values):
        values = [_from_bytes(value, dtype) for value in values]
    if any(isinstance(value, str) for value in values):
        values = _from_texts(values)
    return values


def _from_texts(values: Sequence[Any]) -> Sequence[Any]:
    # All texts at once, which is faster, unless one of them could end in the middle of another.
    if all(isinstance(value, str) and _is_one_list(value) for value in values):
        try:
            parsed: list[Any] = json.loads(f"[{','.join(values)}]")
        except ValueError:
            parsed = []
        if len(parsed) == len(values):
            return parsed
    return [_from_text(value) if isinstance(value, str) else value for value in values]


def _from_text(text: str) -> Any:
    try:
        return json.loads(text) if _is_one_list(text) else None
    except ValueError:
        return None


def _is_one_list(text: str) -> bool:
    """Whether a text has brackets around it, and nowhere else."""
    stripped = text.strip()
    return stripped.startswith("[") and stripped.endswith("]") and text.count("[") == text.count("]") == 1


def _from_bytes(value: Any, dtype: np.dtype[Any] | None) -> Any:
    if not isinstance(value, _BYTES):
        return value
    if dtype is None or len(value) % dtype.itemsize:
        return None
    return np.frombuffer(value, dtype.newbyteorder("<"))


def _row_by_row(values: Sequence[Any], n_columns: int | None) -> NDArray[np.float64]:
    """The same for values some of which are not vectors, or have another length."""
    vectors = [_as_vector(value) for value in values]
    lengths = Counter(vector.size for vector in vectors if vector is not None)
    # Of several lengths that are equally common, the shortest.
    width = n_columns or min(lengths, key=lambda length: (-lengths[length], length), default=1)
    table = np.full((len(values), width), np.nan)
    for row, vector in zip(table, vectors, strict=True):
        if vector is not None and vector.size == width:
            row[:] = vector
    return table


def _as_vector(value: Any) -> NDArray[np.float64] | None:
    """One vector; None for anything else."""
    if value is None or isinstance(value, (str, *_BYTES)):
        return None
    try:
        with np.errstate(invalid="ignore"):
            vector = np.array(value, np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return vector if vector.ndim == 1 and vector.size else None

"""Data frames and tables of other libraries: pandas, polars, Arrow, and whatever can be exchanged for one of them.

None of these libraries is imported for it: a table is known by what it can do.
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Hashable
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import InvalidKeyError, NotNumericError, listed, name_rows
from evertree.extras import require


def is_frame(X: Any) -> bool:
    """Whether `X` is a table with names for its columns."""
    return _kind(X) is not None


def _kind(X: Any) -> str | None:
    """Which library a table is from. By its class: an instance may have a column of any name."""
    can = type(X)
    if hasattr(can, "iloc") and hasattr(can, "columns"):
        return "pandas"
    if hasattr(can, "column_names") and hasattr(can, "num_rows"):
        return "arrow"
    if hasattr(can, "get_columns") and hasattr(can, "to_series"):
        return "polars"
    return "unknown" if hasattr(can, "__dataframe__") else None


def column_names(X: Any) -> list[Any]:
    """The names of the columns of a table."""
    frame = _known(X)
    return list(frame.column_names if _kind(frame) == "arrow" else frame.columns)


def to_array(X: Any) -> NDArray[Any]:
    """A table of numbers as an array, with NaN for values that are missing; of float32 if all of it is."""
    frame = _known(X)
    names = column_names(frame)
    columns = [_column(frame, k) for k in range(len(names))]
    textual = [name for name, column in zip(names, columns, strict=True) if column.dtype.kind not in "fiub"]
    if textual:
        raise NotNumericError(
            f"X must have numbers only; these columns have other values: {listed(textual)}. Drop them, or name the one "
            "that has the keys: insert(X, keys=name)"
        )
    if not columns:
        return np.empty((len(frame), 0))
    dtype = np.float32 if all(column.dtype == np.float32 for column in columns) else np.float64
    return np.column_stack([column.astype(dtype) for column in columns])


def columns(X: Any) -> list[tuple[Any, list[Any]]]:
    """The columns of a table: the name of each and its values as Python's objects, None for those that are missing."""
    frame = _known(X)
    return [(name, _objects(frame, k)) for k, name in enumerate(column_names(frame))]


def take_keys(X: Any, name: str) -> tuple[list[Hashable], Any]:
    """The keys in the named column, or the named index, of a table; and the table without that column."""
    frame = _known(X)
    names = column_names(frame)
    if names.count(name) > 1:
        raise InvalidKeyError(f"keys must name one column of X; there are {names.count(name)} of the name {name!r}")
    if name in names:
        missing, values, rest = _split(frame, name)
    elif name in getattr(getattr(frame, "index", None), "names", ()):
        index = frame.index.get_level_values(name)
        missing, values, rest = index.isna(), index.tolist(), frame
    else:
        raise InvalidKeyError(
            f"keys must be the keys, or the name of a column or an index of X; X has no {name!r}: it has "
            f"{listed(names)}"
        )
    gone = np.flatnonzero(np.asarray(missing, np.bool_))
    if gone.size:
        raise InvalidKeyError(f"keys must all be there; {name!r} has missing values in {name_rows(gone)}")
    return values, rest


def _split(frame: Any, name: str) -> tuple[Any, list[Hashable], Any]:
    """Where a column has no values, its values, and the table without it."""
    column = frame[name]
    match _kind(frame):
        case "pandas":
            return column.isna(), column.to_list(), frame.drop(columns=[name])
        case "arrow":
            return column.is_null(), column.to_pylist(), frame.drop_columns([name])
        case _:
            return column.is_null(), column.to_list(), frame.drop([name])


def _known(X: Any) -> Any:
    """`X` itself, or what pandas makes of it where it can only be exchanged."""
    if _kind(X) != "unknown":
        return X
    pandas = require("pandas", "a data frame of a library that evertree does not know", "pandas")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this protocol will be given up: those who have no other still use it
        return pandas.api.interchange.from_dataframe(X)


def _column(frame: Any, k: int) -> NDArray[Any]:
    """A column as an array; of objects if it does not hold numbers."""
    kind = _kind(frame)
    if kind == "pandas":
        series = frame.iloc[:, k]
        return _numbers(series.to_numpy()) if isinstance(series.dtype, np.dtype) else _nullable(series)
    if kind == "arrow":
        column = frame.column(k)
        is_chunked = hasattr(type(column), "chunks")
        return _numbers(column.to_numpy() if is_chunked else column.to_numpy(zero_copy_only=False))
    return _numbers(frame.to_series(k).to_numpy())


def _objects(frame: Any, k: int) -> list[Any]:
    """A column as Python's objects, None for those that are missing."""
    match _kind(frame):
        case "pandas":
            series = frame.iloc[:, k]
            return list(series.astype(object).where(series.notna(), None))
        case "arrow":
            return list(frame.column(k).to_pylist())
        case _:
            return list(frame.to_series(k).to_list())


def _nullable(series: Any) -> NDArray[Any]:
    """A column of one of pandas's own types, which know of missing values: numbers and truth values, and no others."""
    is_number = getattr(series.dtype, "_is_numeric", False) or getattr(series.dtype, "_is_boolean", False)
    if not is_number:
        return np.empty(len(series), object)
    single = getattr(series.dtype, "numpy_dtype", None) == np.float32
    values: NDArray[Any] = series.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan)
    return values


def _numbers(column: NDArray[Any]) -> NDArray[Any]:
    """Objects that are numbers as numbers; None is one that is missing. Lists are none."""
    if column.ndim != 1:
        return np.empty(len(column), object)
    if column.dtype.kind != "O" or not all(
        value is None or isinstance(value, numbers.Number | Decimal) for value in column
    ):
        return column
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError):
        return column

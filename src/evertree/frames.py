"""Data frames and tables of other libraries: pandas, polars, Arrow, and whatever can be exchanged for one of them.

None of these libraries is imported for it: a table is known by what it can do.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import InvalidKeyError, NotNumericError, listed
from evertree.extras import require


def is_frame(X: Any) -> bool:
    """Whether `X` is a table with names for its columns."""
    return (
        hasattr(X, "column_names") or hasattr(X, "__dataframe__") or (hasattr(X, "columns") and hasattr(X, "to_numpy"))
    )


def column_names(X: Any) -> list[Any]:
    """The names of the columns of a table."""
    frame = _known(X)
    return list(frame.column_names if hasattr(frame, "column_names") else frame.columns)


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


def take_keys(X: Any, name: str) -> tuple[list[Hashable], Any]:
    """The keys in the named column, or the named index, of a table; and the table without that column."""
    frame = _known(X)
    names = column_names(frame)
    if name in names:
        column = frame[name]
        values = (
            column.to_pylist()
            if hasattr(column, "to_pylist")
            else column.tolist()
            if hasattr(column, "tolist")
            else column.to_list()
        )
        return values, _without(frame, name)
    if name in getattr(getattr(frame, "index", None), "names", ()):
        return frame.index.get_level_values(name).tolist(), frame
    raise InvalidKeyError(
        f"keys must be the keys, or the name of a column or an index of X; X has no {name!r}: it has {listed(names)}"
    )


def _known(X: Any) -> Any:
    """`X` itself, or what pandas makes of it where it can only be exchanged."""
    if hasattr(X, "column_names") or (hasattr(X, "columns") and hasattr(X, "to_numpy")):
        return X
    pandas = require("pandas", "a data frame of a library that evertree does not know", "pandas")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this protocol will be given up: those who have no other still use it
        return pandas.api.interchange.from_dataframe(X)


def _without(frame: Any, name: str) -> Any:
    if hasattr(frame, "drop_columns"):  # Arrow
        return frame.drop_columns([name])
    return frame.drop(columns=name) if hasattr(frame, "iloc") else frame.drop(name)


def _column(frame: Any, k: int) -> NDArray[Any]:
    """A column as an array; of objects if it does not hold numbers."""
    if hasattr(frame, "iloc"):
        series = frame.iloc[:, k]
        if isinstance(series.dtype, np.dtype):
            return _numbers(series.to_numpy())
        try:  # types of pandas's own, which know of missing values
            return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
        except (TypeError, ValueError):
            return np.empty(0, object)
    column = frame.column(k) if hasattr(frame, "column_names") else frame.to_series(k)
    return _numbers(np.asarray(column.to_numpy()))


def _numbers(column: NDArray[Any]) -> NDArray[Any]:
    """Objects that are numbers as numbers; None is one that is missing."""
    if column.dtype.kind != "O" or any(isinstance(value, str) for value in column):
        return column
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError):
        return column

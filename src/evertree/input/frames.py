"""Data frames of any library that narwhals supports: pandas, polars, Arrow, Modin, cuDF, DuckDB and others.

narwhals is imported only for input that may be a frame, never for an array or a list.
"""

from __future__ import annotations

import numbers
import warnings
from collections import Counter
from collections.abc import Hashable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evertree.errors import ColumnNamesError, InvalidKeyError, NotNumericError, listed, name_rows
from evertree.extras import require

if TYPE_CHECKING:
    import narwhals as nw


def is_frame(X: Any) -> bool:
    """Whether `X` is a table with named columns, in memory or lazy."""
    if isinstance(X, (np.ndarray, list, tuple)):
        return False
    import narwhals as nw

    return (
        nw.dependencies.is_into_dataframe(X)
        or isinstance(nw.from_native(X, pass_through=True), nw.LazyFrame)
        or hasattr(type(X), "__dataframe__")
    )


def column_names(X: Any) -> list[Any]:
    """The names of the columns of a frame."""
    return [name for name, _ in _columns(_in_memory(X))]


def in_order(X: Any, known: Sequence[str] | None) -> tuple[Any, tuple[str, ...] | None]:
    """A frame with its columns in the order of the known names, and its names now; None if they go by position."""
    import narwhals as nw

    frame = _in_memory(X)
    names = tuple(name for name, _ in _columns(frame))
    order = order_of(names, known)
    if order is not None and order != names:
        frame = frame[list(order)] if _is_pandas(frame) else nw.from_native(frame).select(list(order)).to_native()
    return frame, order


def order_of(names: Sequence[Any], known: Sequence[str] | None) -> tuple[str, ...] | None:
    """The order in which to read columns of these names: that of the known names or, if there are none, their own.

    As in scikit-learn, columns have names if all are text; if they are not, or not all different, they go by position,
    and there is no order.
    """
    if not names or not all(isinstance(name, str) for name in names):
        return None
    if known is None:
        return tuple(names) if len(set(names)) == len(names) else None
    _check_names(names, known)
    return tuple(known)


def _check_names(names: Sequence[str], known: Sequence[str]) -> None:
    """Refuse names that are not the known ones in another order."""
    missing = [name for name in known if name not in names]
    unknown = [name for name in names if name not in known]
    twice = [name for name, count in Counter(names).items() if count > 1]
    problems = [
        f"{what} {listed(found)}"
        for what, found in (("lacks", missing), ("has the unknown", unknown), ("has more than one", twice))
        if found
    ]
    if problems:
        raise ColumnNamesError(
            f"X must have the columns of the points before it, {listed(known)}; it {', and '.join(problems)}",
            parameter="X",
            remedy="choose or rename its columns, or pass X.to_numpy() to go by position",
        )


def to_array(X: Any) -> NDArray[Any]:
    """A frame of numbers as an array, with NaN for missing values; float32 if every column is."""
    frame = _in_memory(X)
    names_and_values = [(name, _numbers(column)) for name, column in _columns(frame)]
    others = [name for name, values in names_and_values if values is None]
    if others:
        raise NotNumericError(
            f"X must have numbers only; these columns have other values: {listed(others)}. Drop them, or name the one "
            "that has the keys: insert(X, keys=name)"
        )
    columns = [values for _, values in names_and_values if values is not None]
    if not columns:
        return np.empty((len(frame), 0))
    dtype = np.float32 if all(values.dtype == np.float32 for values in columns) else np.float64
    return np.column_stack([values.astype(dtype) for values in columns])


def columns(X: Any) -> list[tuple[Any, list[Any]]]:
    """The name of each column of a frame and its values as Python objects, None for missing ones."""
    return [(name, _objects(column)) for name, column in _columns(_in_memory(X))]


def take_keys(X: Any, name: str) -> tuple[list[Hashable], Any]:
    """The keys in the named column, or index level, of a frame; and the frame without that column."""
    import narwhals as nw

    frame = _in_memory(X)
    found = _columns(frame)
    matches = [column for other, column in found if other == name]
    if len(matches) > 1:
        raise InvalidKeyError(f"keys must name one column of X; there are {len(matches)} of the name {name!r}")
    if matches:
        column = matches[0]
        rest = frame.drop(columns=[name]) if _is_pandas(frame) else nw.from_native(frame).drop(name).to_native()
    elif _is_pandas(frame) and name in frame.index.names:
        level = frame.index.get_level_values(name).to_series()
        column, rest = nw.from_native(level, series_only=True), frame
    else:
        raise InvalidKeyError(
            f"keys must be the keys, or the name of a column or an index of X; X has no {name!r}: it has "
            f"{listed(other for other, _ in found)}"
        )
    missing = np.flatnonzero(column.is_null().to_numpy())
    if missing.size:
        raise InvalidKeyError(f"keys must all be there; {name!r} has missing values in {name_rows(missing)}")
    return column.to_list(), rest


def _in_memory(X: Any) -> Any:
    """The frame in memory: a lazy one is computed, one that narwhals does not support is converted."""
    import narwhals as nw

    X = nw.to_native(X, pass_through=True)
    if nw.dependencies.is_into_dataframe(X):
        return X
    lazy = nw.from_native(X, pass_through=True)
    if isinstance(lazy, nw.LazyFrame):
        return lazy.collect().to_native()
    if hasattr(type(X), "__arrow_c_stream__"):  # such as a record batch of Arrow
        return require("pyarrow", "a data frame in Arrow's format", "cli").table(X)
    pandas = require("pandas", "a data frame of a library that evertree does not know", "pandas")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas deprecates __dataframe__, but some frames have nothing else
        return pandas.api.interchange.from_dataframe(X)


def _columns(frame: Any) -> list[tuple[Any, nw.Series[Any]]]:
    """The names and the columns, read one by one: pandas and Arrow may repeat a name, narwhals' frames may not."""
    import narwhals as nw

    if _is_pandas(frame):
        names, columns = frame.columns, [frame.iloc[:, k] for k in range(frame.shape[1])]
    elif nw.dependencies.is_pyarrow_table(frame):
        names, columns = frame.column_names, frame.columns
    else:
        return [(column.name, column) for column in nw.from_native(frame, eager_only=True).iter_columns()]
    return [(name, nw.from_native(column, series_only=True)) for name, column in zip(names, columns, strict=True)]


def _is_pandas(frame: Any) -> bool:
    """Whether a frame is from pandas, Modin or cuDF: they have an index, and may have two columns of the same name."""
    from narwhals.dependencies import is_pandas_like_dataframe

    return is_pandas_like_dataframe(frame)


def _objects(column: nw.Series[Any]) -> list[Any]:
    """A column as Python objects, None for missing ones."""
    return [None if gone else value for value, gone in zip(column.to_list(), column.is_null().to_list(), strict=True)]


def _numbers(column: nw.Series[Any]) -> NDArray[Any] | None:
    """A column of numbers as an array, with NaN for missing ones; None if it contains anything else."""
    import narwhals as nw

    if isinstance(column.dtype, (nw.Categorical, nw.Enum)):  # numbers that only name a category
        return None
    values: NDArray[Any] = column.to_numpy()
    if values.ndim != 1:  # lists of one length, and structs
        return None
    if values.dtype.kind == "O":  # truth values and decimals with missing ones, and Python's numbers
        known = ~column.is_null().to_numpy()
        if not all(isinstance(value, (numbers.Real, Decimal)) for value in values[known]):
            return None
        objects, values = values, np.full(values.shape, np.nan)
        values[known] = objects[known].astype(np.float64)
    return values if values.dtype.kind in "fiub" else None

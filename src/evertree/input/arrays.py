"""User input, checked and converted to arrays. Nothing here changes a hierarchy, so any of it may raise."""

from __future__ import annotations

import math
import numbers
import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence, Sized
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evertree.errors import (
    DataError,
    DimensionError,
    DuplicateKeyError,
    InvalidKeyError,
    MagnitudeError,
    NotFiniteError,
    NotNumericError,
    ParameterError,
    WeightError,
    either,
    listed,
    name_rows,
)
from evertree.input import frames
from evertree.input.metrics import LARGEST, LARGEST_VALUE

#: The goals of a refinement.
GOALS = ("stable", "homogeneous")

#: Weights above this, or below its inverse, are refused, so that their sums and products stay finite.
LARGEST_WEIGHT = 1e100

#: Rows of a matrix of dissimilarities that are checked together.
_LINES_AT_ONCE = 256


def as_points(
    X: Any,
    n_columns: int | None,
    dtype: np.dtype[Any] | None,
    note_narrowing: Callable[[], object] | None = None,
) -> NDArray[Any]:
    """`X` as a finite array of shape (k, n_columns): float32 stays float32, everything else becomes float64.

    If a hierarchy already has points, they determine the number of columns and the dtype; `note_narrowing` is called if
    that rounds a value.
    """
    is_plain = type(X) is np.ndarray and X.ndim == 2 and X.shape[1] > 0 and X.dtype.char in "fd"
    points = X if is_plain else _as_matrix(X)
    if len(points) == 0 and points.shape[1] == 0:  # an empty list
        points = points.reshape(0, n_columns or 0)
    if n_columns is not None and points.shape[1] != n_columns:
        raise DimensionError(f"X must have {n_columns} columns, as the points before it had; it has {points.shape[1]}")
    wanted = dtype or (points.dtype if points.dtype == np.float32 else np.dtype(np.float64))
    if points.size == 0:
        return points.astype(wanted)
    largest = float(np.maximum.reduce(np.abs(points), axis=None))
    if not largest <= LARGEST_VALUE[wanted]:  # also refuses NaN
        _refuse_values(points, wanted, frames.column_names(X) if frames.is_frame(X) else None)
    return _converted(points, wanted, note_narrowing)


def _converted(values: NDArray[Any], dtype: np.dtype[Any], note_narrowing: Callable[[], object] | None) -> NDArray[Any]:
    """An array in C order and of a given dtype; the callback is called if that rounds a value."""
    converted = np.ascontiguousarray(values, dtype=dtype)
    if note_narrowing is not None and values.dtype.itemsize > dtype.itemsize and np.any(converted != values):
        note_narrowing()
    return converted


def as_array(X: Any) -> NDArray[Any]:
    """`X` as an array of real numbers."""
    if frames.is_frame(X):
        return frames.to_array(X)
    if hasattr(X, "toarray") and not isinstance(X, np.ndarray):
        raise NotNumericError("X must be a dense array; it is sparse: pass X.toarray() if that fits in memory")
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise NotFiniteError("X must have all its values; some are masked: fill them or drop their rows")
    try:
        points = np.asarray(X)
        if points.dtype.kind == "O" and X is not None:
            if any(isinstance(value, str) for value in points.flat):
                raise ValueError("some values are text")  # NumPy would read "1" as a number
            points = points.astype(np.float64)
    except OverflowError as error:
        raise MagnitudeError(
            f"X must have no value above {LARGEST:.3g}, because their squares overflow: {error}"
        ) from None
    except (TypeError, ValueError) as error:
        reason = _ragged_row(X) or str(error)
        raise NotNumericError(f"X must be an array of numbers, a row for each point: {reason}") from None
    if points.dtype.kind not in "fiub":
        kind = "None" if X is None else f"of type {points.dtype}"
        raise NotNumericError(f"X must be an array of real numbers, a row for each point; it is {kind}")
    if points.dtype not in (np.float32, np.float64):
        with np.errstate(over="ignore"):  # a long double may become infinite, which is refused
            points = points.astype(np.float64)
    return points


def _as_matrix(X: Any) -> NDArray[Any]:
    """`X` as a two-dimensional array of real numbers; it may have no columns only if it has no rows."""
    points = as_array(X)
    if points.ndim == 1 and points.size == 0:
        return points.reshape(0, 0)
    if points.ndim != 2:
        remedy = {
            0: "wrap a single number as [[x]]",
            1: "use X.reshape(1, -1) for one point, X.reshape(-1, 1) for many points of one column",
        }.get(points.ndim, "use X.reshape(len(X), -1)")
        raise DimensionError(f"X must have two dimensions, a row for each point; it has {points.ndim}: {remedy}")
    if points.shape[1] == 0 and len(points):
        raise DimensionError("X must have at least one column; it has none")
    return points


def _refuse_values(points: NDArray[Any], dtype: np.dtype[Any], names: list[Any] | None) -> None:
    bad = ~np.isfinite(points)
    if bad.any():
        rows, columns = np.flatnonzero(bad.any(axis=1)), np.flatnonzero(bad.any(axis=0)).tolist()
        where = f"{name_rows(rows)}, column{'s' if len(columns) > 1 else ''} "
        where += listed(columns if names is None else [names[k] for k in columns])
        raise NotFiniteError(
            f"X must be finite; it has missing values, NaN or infinity in {where}: remove or fill these"
        )
    limit = LARGEST_VALUE[dtype]
    large = (np.abs(points) > limit).any(axis=1)
    reason = "their squares overflow" if limit == LARGEST else f"the hierarchy holds {dtype.name}"
    raise MagnitudeError(
        f"X must have no value above {limit:.3g}, because {reason}; see {name_rows(np.flatnonzero(large))}: scale X"
    )


def _ragged_row(X: Any) -> str | None:
    """The first row whose length differs from that of row 0, in words; None if there is none, or no rows."""
    lengths = [len(row) for row in X if isinstance(row, Sized)] if isinstance(X, (list, tuple)) else []
    odd = next((row for row, length in enumerate(lengths) if length != lengths[0]), None)
    if odd is None:
        return None
    return f"rows must be equally long; {name_rows(np.array([odd]))} has {lengths[odd]} values, and others {lengths[0]}"


def as_weights(sample_weight: Any, count: int) -> NDArray[np.float64]:
    """`sample_weight` as an array of `count` positive numbers; ones if it is None."""
    if sample_weight is None:
        ones = np.empty(count)
        ones.fill(1.0)
        return ones
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise WeightError(f"sample_weight must be an array of numbers: {error}") from None
    if weights.shape != (count,):
        raise WeightError(f"sample_weight must have shape ({count},), one for each point; it has {weights.shape}")
    right = (weights >= 1 / LARGEST_WEIGHT) & (weights <= LARGEST_WEIGHT)
    if not right.all():
        raise WeightError(
            f"sample_weight must be positive, not zero, from {1 / LARGEST_WEIGHT:.0e} to {LARGEST_WEIGHT:.0e}; "
            f"see {name_rows(np.flatnonzero(~right))}"
        )
    return weights


def as_keys(keys: Any) -> list[Hashable]:
    """One key, or a collection of keys, as a list of distinct hashable keys."""
    if type(keys) is list and len(keys) == 1 and type(keys[0]) in (int, str):
        return keys[:]
    if isinstance(keys, (str, bytes)) or not isinstance(keys, Iterable):
        listing = [keys]
    else:
        # Times keep their type: tolist would make them integers.
        is_time = getattr(getattr(keys, "dtype", None), "kind", None) in ("m", "M")
        listing = keys.tolist() if hasattr(keys, "tolist") and not is_time else list(keys)
    if not isinstance(listing, list):  # an array without dimensions
        listing = [listing]
    clean = [key.item() if isinstance(key, np.generic) and key.dtype.kind not in "mM" else key for key in listing]
    try:
        n_different = len(set(clean))
    except TypeError as error:
        raise InvalidKeyError(f"keys must be hashable, such as numbers, strings or tuples: {error}") from None
    for key in clean:
        if key != key:
            raise InvalidKeyError(f"keys must equal themselves; {key!r} does not, so it could never be found again")
    if n_different < len(clean):
        twice = [key for key, count in Counter(clean).items() if count > 1]
        raise DuplicateKeyError(f"keys must differ; given more than once: {listed(twice)}")
    return clean


def as_column_names(names: Any) -> tuple[str, ...] | None:
    """Names of columns: None, or different texts."""
    if names is None:
        return None
    listing = [names] if isinstance(names, str) or not isinstance(names, Iterable) else list(names)
    if not listing or not all(isinstance(name, str) for name in listing) or len(set(listing)) < len(listing):
        raise ParameterError(f"column_names must be None or different strings; it is {names!r}")
    return tuple(map(str, listing))


def as_seconds(value: Any) -> float | None:
    """A time budget: None, or a non-negative number."""
    if value is None:
        return None
    if not _real(value) >= 0:
        raise ParameterError(f"seconds must be None or a non-negative number; it is {value!r}")
    return _real(value)


def as_whole_number(name: str, value: Any) -> int:
    """A non-negative integer."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 0:
        raise ParameterError(f"{name} must be a non-negative integer; it is {value!r}")
    return int(value)


def as_count(name: str, value: Any, most: int | None = None) -> int:
    """A positive integer, at most `most`."""
    if (
        isinstance(value, bool)
        or not isinstance(value, numbers.Integral)
        or not 1 <= int(value) <= (most or int(value))
    ):
        allowed = "a positive integer" if most is None else f"an integer from 1 to {most}"
        raise ParameterError(f"{name} must be {allowed}; it is {value!r}")
    return int(value)


def as_height(name: str, value: Any) -> float:
    """A non-negative number."""
    if not _real(value) >= 0:
        raise ParameterError(f"{name} must be a non-negative number; it is {value!r}")
    return _real(value)


def as_number(name: str, value: Any) -> float:
    """A finite number."""
    if not math.isfinite(_real(value)):
        raise ParameterError(f"{name} must be a finite number; it is {value!r}")
    return _real(value)


def _real(value: Any) -> float:
    """A real number as a float, infinite if it is too large; NaN for anything else."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return -math.inf if value < 0 else math.inf


def as_threads(n_jobs: Any) -> int | None:
    """How many threads `n_jobs` asks for: -1 for all processors, -2 for all but one, and so on; None for none."""
    if n_jobs is None:
        return None
    if not isinstance(n_jobs, numbers.Integral) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise ParameterError(
            f"n_jobs must be a positive integer, -1 for all processors, or None for one thread; it is {n_jobs!r}"
        )
    wanted = int(n_jobs)
    return wanted if wanted > 0 else max(n_processors() + 1 + wanted, 1)


def n_processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def as_width(search_width: Any) -> int | Literal["auto"] | None:
    """How many nodes a search keeps, None for all, or ``"auto"``."""
    if search_width is None:
        return None
    if isinstance(search_width, str) and search_width == "auto":
        return "auto"
    if not isinstance(search_width, numbers.Integral) or isinstance(search_width, bool) or search_width < 1:
        raise ParameterError(
            f"search_width must be 'auto', a positive integer, or None for all nodes; it is {search_width!r}"
        )
    return int(search_width)


def as_choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in choices:
        raise ParameterError(f"{name} must be {either(choices)}; it is {value!r}")
    return value


def as_dissimilarities(
    X: Any,
    n_live: int,
    dtype: np.dtype[Any] | None,
    changed: NDArray[np.intp] | None = None,
    note_narrowing: Callable[[], object] | None = None,
) -> NDArray[Any]:
    """Precomputed dissimilarities as a checked array: float32 stays float32, everything else becomes float64.

    For k new points its shape is (k, n_live + k): to the live points, then among the new ones. Without live points this
    is a square matrix, and a condensed one is accepted too. For `changed` points, given by their positions, it is (k,
    n_live).
    """
    matrix = as_array(X)
    if matrix.ndim == 1 and n_live == 0 and changed is None and matrix.size:  # one value is a condensed matrix
        matrix = _as_square(matrix)
    if matrix.ndim == 0:
        raise DimensionError(_expected_dissimilarities(matrix.shape, n_live, changed))
    k = len(matrix) if changed is None else changed.size
    columns = n_live + k if changed is None else n_live
    if matrix.ndim == 1 and matrix.size == 0:
        matrix = matrix.reshape(0, columns)
    if matrix.ndim == 1 and changed is not None and changed.size == 1:
        matrix = matrix.reshape(1, -1)
    if matrix.ndim != 2 or matrix.shape != (k, columns):
        raise DimensionError(_expected_dissimilarities(matrix.shape, n_live, changed))
    wanted = dtype or (matrix.dtype if matrix.dtype == np.float32 else np.dtype(np.float64))
    own = n_live + np.arange(k) if changed is None else changed
    _check_dissimilarities(matrix, own, wanted)
    return _converted(matrix, wanted, note_narrowing)


def _expected_dissimilarities(shape: tuple[int, ...], n_live: int, changed: NDArray[np.intp] | None) -> str:
    if changed is not None:
        return f"X must have shape ({changed.size}, {n_live}): from each key to all live points; it has {shape}"
    if n_live == 0:
        return f"X must be a square matrix of dissimilarities, or a condensed one; its shape is {shape}"
    return (
        f"X must have shape (k, {n_live} + k) with metric='precomputed': from the k new points to the {n_live} live "
        f"ones in the order of keys(), then among the new ones; its shape is {shape}"
    )


def _as_square(condensed: NDArray[Any]) -> NDArray[Any]:
    from scipy.spatial.distance import squareform

    n = round((1 + np.sqrt(1 + 8 * condensed.size)) / 2)
    if n * (n - 1) // 2 != condensed.size:
        raise DimensionError(
            "X must be a square matrix of dissimilarities, or a condensed one, of n (n - 1) / 2 values; "
            f"{condensed.size} values are no triangle"
        )
    return squareform(condensed, checks=False)


def _check_dissimilarities(matrix: NDArray[Any], own: NDArray[np.intp], dtype: np.dtype[Any]) -> None:
    """Refuse invalid dissimilarities; column ``own[a]`` is row a's own point. Works in parts, for mapped memory."""
    largest = min(LARGEST_VALUE[dtype], LARGEST_VALUE[matrix.dtype])
    tolerance = 1e-5 if dtype == np.float32 else 1e-9
    for start in range(0, len(matrix), _LINES_AT_ONCE):
        part = np.asarray(matrix[start : start + _LINES_AT_ONCE])
        lines = np.arange(start, start + len(part))
        for is_bad, error, what in (
            (~np.isfinite(part), NotFiniteError, "finite; it has NaN or infinity"),
            (part < 0, DataError, "not negative; some are"),
            (part > largest, MagnitudeError, f"at most {largest:.3g}; some are larger"),
        ):
            if is_bad.any():
                rows = name_rows(start + np.flatnonzero(is_bad.any(axis=1)))
                raise error(f"dissimilarities in X must be {what}: see {rows}")
        if np.any(part[np.arange(len(part)), own[lines]] != 0):
            rows = name_rows(start + np.flatnonzero(part[np.arange(len(part)), own[lines]] != 0))
            raise DataError(f"X must have zeros on its diagonal, as a point does not differ from itself: see {rows}")
        mirrored = np.asarray(matrix[:, own[lines]]).T
        among_new = part[:, own]
        off = np.abs(among_new - mirrored) > tolerance * np.maximum(among_new, mirrored)
        if off.any():
            a, b = np.argwhere(off)[0]
            raise DataError(
                f"X must be symmetric; points {start + a} and {b} have {among_new[a, b]} and {mirrored[a, b]}: "
                "use (X + X.T) / 2 if that is right"
            )

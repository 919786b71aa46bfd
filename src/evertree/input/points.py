"""Points as passed by users, converted to the input of a tree: vectors, objects or dissimilarities.

Nothing here changes a hierarchy, so any of it may raise, including a user's function.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.errors import (
    DataError,
    DimensionError,
    MagnitudeError,
    MissingExtraError,
    NotFiniteError,
    NotNumericError,
    ParameterError,
)
from evertree.input.arrays import as_array, as_dissimilarities, as_points
from evertree.input.metrics import LARGEST
from evertree.tree import Incoming, LiveTree
from evertree.tree.scheme import DISSIMILARITIES, OBJECTS, TOLERANCE, VECTORS, Scheme

#: Called with the number of pairs done and the total.
Progress = Callable[[int, int], object]

#: Seconds between two calls of a progress callback.
_PROGRESS_EVERY = 0.1

#: Pairs passed to a compiled function at a time.
_PAIRS_AT_ONCE = 1 << 20


def receive(
    scheme: Scheme,
    X: Any,
    live: LiveTree | None = None,
    n_live: int = 0,
    note_narrowing: Callable[[], object] | None = None,
) -> Incoming:
    """New points for a tree that uses `scheme` and has `n_live` points; by default for a new tree.

    Objects are not compared yet: see `compare`. If the tree holds float32 and that changes a value, `note_narrowing` is
    called.
    """
    n_columns, dtype = (None, None) if live is None else (live.n_columns, live.dtype)
    if scheme.vectors is not None:
        points = as_points(X, n_columns, dtype, note_narrowing)
        return Incoming(points, scheme.vectors.coordinates(points))
    if scheme.holds == DISSIMILARITIES:
        return Incoming(dissimilarities=as_dissimilarities(X, n_live, dtype, None, note_narrowing))
    return Incoming(_as_objects(scheme, X, live))


def compare(scheme: Scheme, new: Incoming, old: Any, progress: Progress | None = None) -> Incoming:
    """Objects with their dissimilarities to old ones and among each other; other points unchanged."""
    if scheme.holds != OBJECTS:
        return new
    n_new, n_old = len(new.points), len(old)
    n_pairs = n_new * n_old + n_new * (n_new - 1) // 2
    return Incoming(new.points, None, evaluated(scheme.metric, new.points, old, progress), n_pairs)


def receive_alone(scheme: Scheme, X: Any, live: LiveTree, leaves: NDArray[np.int32]) -> Incoming:
    """New points, compared with those at `leaves` but not with each other.

    Stored dissimilarities among them are zero and have no meaning.
    """
    if scheme.holds == VECTORS:
        return receive(scheme, X, live)
    if scheme.holds == OBJECTS:
        points = _as_objects(scheme, X, live)
        old = live.points(leaves)
        known = [evaluated(scheme.metric, points[k : k + 1], old, None)[:, : leaves.size] for k in range(len(points))]
        matrix = np.concatenate([np.empty((0, leaves.size)), *known])
    else:
        points, matrix = None, as_array(X)
        if matrix.shape == (0,):
            matrix = matrix.reshape(0, leaves.size)
        if matrix.ndim != 2 or matrix.shape[1] != leaves.size:
            raise DimensionError(
                f"X must have {leaves.size} columns, the dissimilarities to keys(); its shape is {matrix.shape}"
            )
    whole = as_dissimilarities(np.hstack([matrix, np.zeros((len(matrix), len(matrix)))]), leaves.size, live.dtype)
    return Incoming(points, None, whole)


def receive_changed(
    scheme: Scheme,
    X: Any,
    live: LiveTree,
    leaves: NDArray[np.int32],
    changed: NDArray[np.intp],
    progress: Progress | None = None,
    note_narrowing: Callable[[], object] | None = None,
) -> Incoming:
    """New values for the points at the positions `changed` among `leaves`.

    Stored dissimilarities are between each of them and all leaves.
    """
    if scheme.holds == DISSIMILARITIES:
        matrix = as_dissimilarities(X, leaves.size, live.dtype, changed, note_narrowing)
        return Incoming(dissimilarities=matrix)
    incoming = receive(scheme, X, live, note_narrowing=note_narrowing)
    points = incoming.points
    _check_rows(len(points), changed.size)
    if scheme.holds != OBJECTS:
        return incoming
    return Incoming(points, None, *_compared(live, points, leaves, changed, progress))


def receive_both(
    live: LiveTree,
    X: Any,
    leaves: NDArray[np.int32],
    position: NDArray[np.intp],
    changed: NDArray[np.intp],
    new: NDArray[np.intp],
    progress: Progress | None = None,
    note_narrowing: Callable[[], object] | None = None,
) -> tuple[Incoming, Incoming]:
    """New values for some points, and new points: the rows `changed` and `new` of X.

    The first belong to the points at `position` among `leaves`. Stored dissimilarities are between each row and all
    leaves, followed by the new points.
    """
    if live.scheme.holds == OBJECTS:
        return _both_compared(live, X, leaves, position, changed, new, progress)
    if live.scheme.holds == DISSIMILARITIES:
        return _both_known(live, X, leaves.size, position, changed, new, note_narrowing)
    whole = receive(live.scheme, X, live, note_narrowing=note_narrowing)
    _check_rows(len(whole), changed.size + new.size)
    assert whole.coordinates is not None
    return (
        Incoming(whole.points[changed], whole.coordinates[changed]),
        Incoming(whole.points[new], whole.coordinates[new]),
    )


def _both_compared(
    live: LiveTree,
    X: Any,
    leaves: NDArray[np.int32],
    position: NDArray[np.intp],
    changed: NDArray[np.intp],
    new: NDArray[np.intp],
    progress: Progress | None,
) -> tuple[Incoming, Incoming]:
    """`receive_both` of objects: each pair is evaluated once."""
    given = _as_objects(live.scheme, X, live)
    _check_rows(len(given), changed.size + new.size)
    updated, added = _picked(given, changed), _picked(given, new)
    both = np.concatenate([updated, added]) if isinstance(given, np.ndarray) else updated + added
    matrix, n_pairs = _compared(live, both, leaves, position, progress)
    return Incoming(updated, None, matrix[: changed.size]), Incoming(added, None, matrix[changed.size :], n_pairs)


def _compared(
    live: LiveTree, points: Any, leaves: NDArray[np.int32], position: NDArray[np.intp], progress: Progress | None
) -> tuple[NDArray[np.float64], int]:
    """The dissimilarities of objects to those at `leaves`, then to new ones; and the number of pairs evaluated.

    The first objects take the place of those at `position` among the leaves, and the others are new.
    """
    count, rest = len(points), np.setdiff1d(np.arange(leaves.size), position)
    matrix = np.empty((count, leaves.size + count - position.size))
    order = np.concatenate([rest, position, np.arange(leaves.size, matrix.shape[1])])
    matrix[:, order] = evaluated(live.scheme.metric, points, live.points(leaves[rest]), progress)
    return matrix, count * rest.size + count * (count - 1) // 2


def _both_known(
    live: LiveTree,
    X: Any,
    n_live: int,
    position: NDArray[np.intp],
    changed: NDArray[np.intp],
    new: NDArray[np.intp],
    note_narrowing: Callable[[], object] | None,
) -> tuple[Incoming, Incoming]:
    """`receive_both` of dissimilarities."""
    matrix, shape = as_array(X), (changed.size + new.size, n_live + new.size)
    if matrix.shape != shape:
        raise DimensionError(
            f"X must have shape {shape} with metric='precomputed': from each key to the {n_live} live points in the "
            f"order of keys(), then to the {new.size} new ones; its shape is {matrix.shape}"
        )
    updated, added = matrix[changed], matrix[new]
    if not np.allclose(updated[:, n_live:], added[:, position].T, TOLERANCE[live.dtype], 0, equal_nan=True):
        raise DataError("X must be symmetric; it is not between the points that are updated and those that are new")
    return (
        Incoming(dissimilarities=as_dissimilarities(updated, shape[1], live.dtype, position, note_narrowing)),
        Incoming(dissimilarities=as_dissimilarities(added, n_live, live.dtype, None, note_narrowing)),
    )


def _check_rows(count: int, n_keys: int) -> None:
    if count != n_keys:
        raise DimensionError(f"X must have a row for each key, {n_keys} in all; it has {count}")


def _picked(points: Any, rows: NDArray[np.intp]) -> Any:
    """Some of the points of a collection, which is an array or a list."""
    return points[rows] if isinstance(points, np.ndarray) else [points[i] for i in rows.tolist()]


def receive_again(live: LiveTree, leaves: NDArray[np.int32]) -> Incoming:
    """The points of a tree at `leaves`, with their stored dissimilarities."""
    from scipy.spatial.distance import squareform

    condensed = live.dissimilarities(leaves)
    square = squareform(condensed) if condensed.size else np.zeros((leaves.size, leaves.size))
    return Incoming(
        None if live.scheme.holds == DISSIMILARITIES else live.points(leaves), None, square.astype(live.dtype)
    )


def without_first(incoming: Incoming, count: int, n_live: int) -> Incoming:
    """Incoming points without the first `count`; stored dissimilarities are to `n_live` others and among them."""
    if count == 0:
        return incoming
    points, coordinates, matrix = incoming.points, incoming.coordinates, incoming.dissimilarities
    return Incoming(
        None if points is None else points[count:],
        None if coordinates is None else coordinates[count:],
        None if matrix is None else np.hstack([matrix[count:, :n_live], matrix[count:, n_live + count :]]),
        incoming.n_evaluated,
    )


def without_columns(incoming: Incoming, start: int, count: int) -> Incoming:
    """Incoming points whose stored dissimilarities lack those to `count` others, from position `start` on."""
    if count == 0 or incoming.dissimilarities is None:
        return incoming
    kept = np.delete(incoming.dissimilarities, np.s_[start : start + count], axis=1)
    return replace(incoming, dissimilarities=kept)


def _as_objects(scheme: Scheme, X: Any, live: LiveTree | None) -> Any:
    """Points for a function: objects as a list, vectors as an array."""
    holds_vectors = live is not None and live.n_columns is not None
    array = np.asarray(X) if hasattr(X, "__array__") else None
    is_numeric = array is not None and array.dtype.kind in "fiub"
    is_table = is_compiled(scheme.metric) and _is_table(X)
    if holds_vectors or is_table or (is_numeric and live is None):
        points = as_points(X, live.n_columns if live is not None and holds_vectors else None, None)
        # Exactly as given: a function may rely on integers.
        return np.ascontiguousarray(array) if is_numeric else points
    if hasattr(X, "columns") or (array is not None and array.ndim > 1):
        raise NotNumericError(
            "X must be a list of points with a metric of your own; it is a table: use X.to_dict('records') for dicts, "
            "X.to_numpy().tolist() for lists, or one of its columns"
        )
    if (array is not None and array.ndim == 0) or isinstance(X, (str, bytes, Mapping)) or not isinstance(X, Iterable):
        raise NotNumericError(
            f"X must be a collection of points, also with a metric of your own: wrap a single one as [x]; it is {X!r}"
        )
    if is_numeric:
        raise DimensionError(
            "X must be a list of points, as those before it were; it is an array of numbers: use list(X) if each is one"
        )
    return list(X)


def _is_table(X: Any) -> bool:
    """Whether all points are vectors of numbers of the same length."""
    try:
        return np.ndim(X) == 2 and np.asarray(X).dtype.kind in "fiub"
    except ValueError:
        return False


def is_compiled(metric: object) -> bool:
    """Whether a function was compiled by Numba."""
    return type(metric).__module__.startswith("numba.") and hasattr(metric, "py_func")


def evaluated(metric: Any, new: Any, old: Any, progress: Progress | None) -> NDArray[np.float64]:
    """The dissimilarities of new points to old ones, then among the new ones; each pair is evaluated once."""
    matrix = np.zeros((len(new), len(old) + len(new)))
    if is_compiled(metric) and isinstance(new, np.ndarray):
        _evaluate_compiled(metric, new, old, matrix, progress)
    else:
        _evaluate_each(metric, new, old, matrix, progress)
    _check_values(metric, matrix, len(old))
    return matrix


def _check_values(metric: Any, matrix: NDArray[np.float64], n_old: int) -> None:
    bad = ~((matrix >= 0) & (matrix <= LARGEST))
    if bad.any():
        a, b = np.argwhere(bad)[0]
        other = f"live point {b}" if b < n_old else f"point {b - n_old} of X"
        name = getattr(metric, "__name__", "the metric")
        kinds: list[type[DataError]] = [DataError, MagnitudeError, NotFiniteError]
        error = kinds[0 if matrix[a, b] < 0 else 1 if np.isfinite(matrix[a, b]) else 2]
        raise error(
            f"metric must give finite numbers that are not negative and at most {LARGEST:.3g}; {name} gave "
            f"{matrix[a, b]} for point {a} of X and {other}"
        )


def _evaluate_each(metric: Any, new: Any, old: Any, matrix: NDArray[np.float64], progress: Progress | None) -> None:
    """Call a Python function for each pair, with the older point first."""
    n_old, total = len(old), len(new) * len(old) + len(new) * (len(new) - 1) // 2
    done, last = 0, time.perf_counter()
    for a in range(len(new)):
        for b in range(n_old + a):
            value = metric(old[b] if b < n_old else new[b - n_old], new[a])
            if isinstance(value, (str, bytes)):
                raise NotNumericError(f"metric must give numbers; it gave {value!r}")
            try:
                matrix[a, b] = float(value)
            except (TypeError, ValueError, OverflowError):
                raise NotNumericError(f"metric must give numbers; it gave {value!r}") from None
            if progress is not None and time.perf_counter() - last >= _PROGRESS_EVERY:
                progress(done + b + 1, total)
                last = time.perf_counter()
        done += n_old + a
        matrix[:a, n_old + a] = matrix[a, n_old : n_old + a]
    if progress is not None:
        progress(total, total)


def _evaluate_compiled(metric: Any, new: Any, old: Any, matrix: NDArray[np.float64], progress: Progress | None) -> None:
    """Run a compiled function over many pairs at a time."""
    n_old, n_all = len(old), len(old) + len(new)
    x = np.ascontiguousarray(np.concatenate([np.asarray(old, np.float64).reshape(n_old, new.shape[1]), new]))
    row = kernels.pairwise.dissimilarities.compiled_row(metric)
    others = np.arange(n_all, dtype=np.int32)
    none = np.empty(0)
    try:
        row(x, none, 0, others[:0], none)
    except MissingExtraError:
        raise
    except Exception as error:  # Numba raises many kinds
        raise ParameterError(
            f"metric must be a compiled function of two arrays of float64 that gives a number: {error}"
        ) from error
    at_once = max(1, _PAIRS_AT_ONCE // max(n_all, 1))
    total = len(new) * n_old + len(new) * (len(new) - 1) // 2
    for a in range(0, len(new), at_once):
        stop = min(a + at_once, len(new))
        for line in range(a, stop):  # only pairs with older points, so that each is evaluated once
            older = n_old + line
            row(x, none, older, others[:older], matrix[line, :older])
            matrix[:line, older] = matrix[line, n_old:older]
        if progress is not None:
            progress(stop * n_old + stop * (stop - 1) // 2, total)

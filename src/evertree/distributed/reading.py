"""The points that a user gives, as checked chunks on the workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np

from evertree.distributed.chunks import Chunks, chunk_facts, error_of, read_chunk
from evertree.distributed.dask_runner import DaskRunner
from evertree.errors import DimensionError
from evertree.input import frames
from evertree.input.arrays import as_points
from evertree.tree.scheme import Scheme

#: Bytes of points that are sent with a task: Dask warns above that.
_BYTES_SENT = 4_000_000

#: Chunks that are much smaller or larger than a part are made this times as large as one: each chunk costs a task for
#: each part, and a worker keeps some thousand bytes of every task.
_CHUNK_TO_PART = 2
_TOO_SMALL, _TOO_LARGE = 8, 4


@dataclass(frozen=True)
class _Source:
    """Where chunks come from, before they are checked."""

    n_chunks: int
    n_columns: int
    dtype: np.dtype[Any]
    start: Callable[[Iterable[int]], list[Any]]  # the rows of some chunks, or handles of these


def read(
    runner: DaskRunner,
    X: Any,
    scheme: Scheme,
    part_size: int,
    like: tuple[int, np.dtype[Any]] | None = None,
    first_id: int = 0,
) -> Chunks:
    """The checked chunks of `X`. The first point has the insertion number `first_id`.

    If the tree has points already, `like` is their number of columns and their type.
    """
    source = _source(runner, X, part_size, like)
    n_columns, dtype = like or (source.n_columns, source.dtype)
    if n_columns != source.n_columns and source.n_chunks:
        raise DimensionError(f"X must have {n_columns} columns, as the points before it had; it has {source.n_columns}")
    check = partial(read_chunk, scheme, n_columns, dtype)
    # Only the task holds the rows that a chunk is made from, so that they are released when it is done.
    handles = [runner.submit("read", check, raw, 0) for raw in source.start(range(source.n_chunks))]
    facts = runner.gather([runner.submit("read-facts", chunk_facts, handle) for handle in handles])
    lengths = [n_rows for n_rows, _, _ in facts]
    first = [0, *accumulate(lengths)]
    for k, (_, _, error) in enumerate(facts):
        if error is not None:  # check again, now that the row numbers are known
            (raw,) = source.start([k])
            (numbered,) = runner.gather([runner.submit("read-facts", error_of, check, raw, first[k])])
            raise numbered
    largest = max((largest for _, largest, _ in facts), default=0.0)
    return Chunks(handles, [first_id + row for row in first[:-1]], lengths, n_columns, dtype, largest)


def in_order(X: Any, known: tuple[str, ...] | None) -> tuple[Any, tuple[str, ...] | None]:
    """A data frame with its columns in the order of the known names, and its names; anything else as it is."""
    if isinstance(X, dd.DataFrame):
        order = frames.order_of(tuple(X.columns), known)
        return X if order is None else X[list(order)], order
    return frames.in_order(X, known) if frames.is_frame(X) else (X, None)


def _source(runner: DaskRunner, X: Any, part_size: int, like: tuple[int, np.dtype[Any]] | None) -> _Source:
    if isinstance(X, da.Array):
        return _of_delayed(runner, *_array_chunks(X, part_size))
    if isinstance(X, dd.DataFrame):
        return _of_delayed(runner, X.to_delayed(), len(X.columns), frames.to_array(X._meta).dtype)
    points = as_points(X, *(like or (None, None)))
    n_rows = max(1, min(part_size, _BYTES_SENT // max(points[:1].nbytes, 1)))
    starts = range(0, len(points), n_rows)
    return _Source(
        len(starts),
        points.shape[1],
        points.dtype,
        lambda wanted: [points[starts[k] : starts[k] + n_rows] for k in wanted],
    )


def _array_chunks(X: Any, part_size: int) -> tuple[list[Any], int, np.dtype[Any]]:
    """The chunks of a Dask array, of whole rows each, and, if their lengths are known, not much larger than a part."""
    dtype = as_points(np.zeros((1,) * X.ndim, X.dtype), None, None).dtype
    X = X.rechunk({1: -1})
    rows = X.chunks[0]
    if not np.isnan(rows).any() and (
        max(rows) > _TOO_LARGE * part_size or (len(rows) > 1 and np.mean(rows) * _TOO_SMALL < part_size)
    ):
        X = X.rechunk({0: _CHUNK_TO_PART * part_size})
    return X.to_delayed().ravel().tolist(), int(X.shape[1]), dtype


def _of_delayed(runner: DaskRunner, delayed: list[Any], n_columns: int, dtype: np.dtype[Any]) -> _Source:
    return _Source(len(delayed), n_columns, dtype, lambda wanted: runner.start([delayed[k] for k in wanted]))

"""What users give as points, made into checked chunks on the workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from operator import attrgetter
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np

from evertree.distributed.chunks import Chunks, facts_of, read_chunk
from evertree.distributed.on_dask import OnDask
from evertree.errors import DimensionError
from evertree.input import frames
from evertree.input.arrays import as_points
from evertree.tree.scheme import Scheme

#: Bytes of points that are sent with a task: Dask warns of more.
_BYTES_SENT = 4_000_000

#: Chunks are made so many times as large as a part where they are much smaller or larger: each costs a task for each
#: part, and what a worker holds of a task, when it has been done, is some thousand bytes.
_ROWS_OF_CHUNK = 2
_TOO_SMALL, _TOO_LARGE = 8, 4


@dataclass(frozen=True)
class _Source:
    """Where chunks come from."""

    n_chunks: int
    n_columns: int
    dtype: np.dtype[Any]
    start: Callable[[Iterable[int]], list[Any]]  # the values of some chunks, or handles of these


def read(
    runner: OnDask,
    X: Any,
    scheme: Scheme,
    part_size: int,
    like: tuple[int, np.dtype[Any]] | None = None,
    first_id: int = 0,
) -> Chunks:
    """Chunks of `X`, of which all have been checked. The first point has the insertion number `first_id`.

    Where a tree has points already, `like` are their number of columns and their type.
    """
    source = _source(runner, X, part_size, like)
    n_columns, dtype = like or (source.n_columns, source.dtype)
    if n_columns != source.n_columns and source.n_chunks:
        raise DimensionError(f"X must have {n_columns} columns, as the points before it had; it has {source.n_columns}")
    check = partial(read_chunk, scheme, n_columns, dtype)
    # Nobody but its task holds what a chunk is made from, so that it goes when that is done.
    handles = [runner.submit("read", check, raw, 0) for raw in source.start(range(source.n_chunks))]
    facts = runner.gather([runner.submit("read-facts", attrgetter("facts"), handle) for handle in handles])
    lengths = [fact.n_rows for fact in facts]
    first = [0, *accumulate(lengths)]
    for k, fact in enumerate(facts):
        if fact.error is not None:  # once more, now that the numbers of its rows are known
            (raw,) = source.start([k])
            (again,) = runner.gather([runner.submit("read-facts", facts_of, check, raw, first[k])])
            raise again.error
    largest = max((fact.largest for fact in facts), default=0.0)
    return Chunks(handles, [first_id + row for row in first[:-1]], lengths, n_columns, dtype, largest)


def _source(runner: OnDask, X: Any, part_size: int, like: tuple[int, np.dtype[Any]] | None) -> _Source:
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
    """The chunks of a Dask array, each of whole rows, and none much larger than a part where that is known."""
    dtype = as_points(np.zeros((1,) * X.ndim, X.dtype), None, None).dtype
    X = X.rechunk({1: -1})
    rows = X.chunks[0]
    if not np.isnan(rows).any() and (
        max(rows) > _TOO_LARGE * part_size or (len(rows) > 1 and np.mean(rows) * _TOO_SMALL < part_size)
    ):
        X = X.rechunk({0: _ROWS_OF_CHUNK * part_size})
    return X.to_delayed().ravel().tolist(), int(X.shape[1]), dtype


def _of_delayed(runner: OnDask, delayed: list[Any], n_columns: int, dtype: np.dtype[Any]) -> _Source:
    return _Source(len(delayed), n_columns, dtype, lambda wanted: runner.start([delayed[k] for k in wanted]))

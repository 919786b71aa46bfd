"""Chunks of points on the workers, and what the driver knows about them. Workers need no other import for these.

If a chunk is refused, its task does not fail, because it would be tried again in vain: it returns the error, and the
driver raises that of the first such chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertree.distributed.dask_runner import Runner
from evertree.errors import EvertreeError, counting_rows_from
from evertree.input.arrays import as_points
from evertree.tree.scheme import Scheme


class Chunk(NamedTuple):
    """Some rows of the user's points; none of them if there is an error."""

    points: NDArray[Any]
    n_rows: int
    largest: float  # coordinate
    error: EvertreeError | None


#: What the driver has to know about a chunk.
chunk_facts = attrgetter("n_rows", "largest", "error")


@dataclass(frozen=True)
class Chunks:
    """Checked chunks: handles of `Chunk`, and the insertion number of the first point of each."""

    handles: list[Any]
    first: list[int]
    lengths: list[int]
    n_columns: int
    dtype: np.dtype[Any]
    largest: float

    @property
    def n_rows(self) -> int:
        """The number of points in all chunks."""
        return sum(self.lengths)

    def batches(self, runner: Runner, n_points: int, least: int) -> Iterator[Chunks]:
        """The rows in batches that double the number of points each, or have `least` rows, wherever chunks end.

        Chunks are released on the way.
        """
        begin = 0
        while begin < self.n_rows:
            end = min(begin + max(n_points, least), self.n_rows)
            yield self._rows(runner, begin, end)
            n_points, begin = n_points + end - begin, end

    def _rows(self, runner: Runner, begin: int, end: int) -> Chunks:
        """The rows from `begin` to before `end`. Chunks that have no more rows are released."""
        handles, first, lengths = [], [], []
        for k, (handle, length) in enumerate(zip(self.handles, self.lengths, strict=True)):
            row = self.first[k] - self.first[0]
            start, stop = max(begin - row, 0), min(end - row, length)
            if start < stop:
                is_whole = stop - start == length
                handles.append(handle if is_whole else runner.submit("pick", rows_of, handle, start, stop))
                first.append(self.first[k] + start)
                lengths.append(stop - start)
                self.handles[k] = None if stop == length else handle
        return replace(self, handles=handles, first=first, lengths=lengths)


def read_chunk(scheme: Scheme, n_columns: int, dtype: np.dtype[Any], X: Any, first_row: int) -> Chunk:
    """Check some rows: finite numbers, in range, that the metric accepts."""
    assert scheme.vectors is not None
    n_rows = len(X)
    with counting_rows_from(first_row):
        try:
            points = as_points(X, n_columns, dtype)
            largest = float(np.abs(scheme.vectors.coordinates(points)).max(initial=0.0))
        except EvertreeError as error:
            return Chunk(np.empty((0, n_columns), dtype), n_rows, 0.0, error)
    return Chunk(points, n_rows, largest, None)


def error_of(check: partial[Chunk], X: Any, first_row: int) -> EvertreeError | None:
    """What is wrong with some rows, if the first one has this number."""
    return check(X, first_row).error


def rows_of(chunk: Chunk, start: int, stop: int) -> Chunk:
    """Some rows of a chunk."""
    return chunk._replace(points=chunk.points[start:stop].copy(), n_rows=stop - start)

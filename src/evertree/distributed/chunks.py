"""Chunks of points: what workers have of them, and what the driver knows. Workers import nothing else for these.

A chunk that is refused is no failure of its task, which would be tried again in vain: the task gives the error back,
and the driver raises that of the first such chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertree.distributed.runner import Runner
from evertree.errors import EvertreeError, counting_rows_from
from evertree.input.arrays import as_points
from evertree.tree.scheme import Scheme


class Facts(NamedTuple):
    """What the driver has to know of a chunk."""

    n_rows: int
    largest: float  # coordinate
    error: EvertreeError | None


class Chunk(NamedTuple):
    """Some rows of what a user gave."""

    points: NDArray[Any]
    facts: Facts


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
        """How many points there are in all."""
        return sum(self.lengths)

    def batches(self, runner: Runner, n_there: int, least: int) -> Iterator[Chunks]:
        """The rows in turn, at a time as many as double what is there, or `least`, wherever chunks end.

        They are let go here.
        """
        begin = 0
        while begin < self.n_rows:
            end = min(begin + max(n_there, least), self.n_rows)
            yield self._rows(runner, begin, end)
            n_there, begin = n_there + end - begin, end

    def _rows(self, runner: Runner, begin: int, end: int) -> Chunks:
        """The rows from `begin` to before `end`. Chunks that have no more are let go."""
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
    """Check some rows: finite numbers, in range, that the metric makes something of."""
    assert scheme.vectors is not None
    n_rows = len(X)
    with counting_rows_from(first_row):
        try:
            points = as_points(X, n_columns, dtype)
            largest = float(np.abs(scheme.vectors.coordinates(points)).max(initial=0.0))
        except EvertreeError as error:
            return Chunk(np.empty((0, n_columns), dtype), Facts(n_rows, 0.0, error))
    return Chunk(points, Facts(n_rows, largest, None))


def facts_of(check: Callable[[Any, int], Chunk], X: Any, first_row: int) -> Facts:
    """What a check says of some rows, the first of which has this number."""
    return check(X, first_row).facts


def rows_of(chunk: Chunk, start: int, stop: int) -> Chunk:
    """Some rows of a chunk."""
    return Chunk(chunk.points[start:stop].copy(), chunk.facts._replace(n_rows=stop - start))

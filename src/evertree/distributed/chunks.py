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

from evertree.errors import EvertreeError, counting_rows_from
from evertree.inputs import as_points
from evertree.scheme import Scheme


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

    def batches(self, n_there: int, least: int) -> Iterator[Chunks]:
        """The chunks in turn, as many at a time as at most double what is there, or have `least` points together.

        They are let go here.
        """
        begin = 0
        while begin < len(self.handles):
            most, end = max(n_there, least), begin + 1
            while end < len(self.handles) and sum(self.lengths[begin : end + 1]) <= most:
                end += 1
            some = slice(begin, end)
            batch = replace(self, handles=self.handles[some], first=self.first[some], lengths=self.lengths[some])
            self.handles[some] = [None] * (end - begin)
            yield batch
            n_there += sum(self.lengths[some])
            begin = end


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

"""Batch clustering of points by their means, in rounds: exact, in linear memory, by several threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.linkages import Tag
from evertree.tree.parallel.threads import Threads
from evertree.tree.screening import Screening, can_screen

#: Columns from which on matrix products are faster, for 10,000 points and more, clustered or not.
FEWEST_COLUMNS = 20

#: Clusters that look for their nearest in a round, if so many wait.
_FEWEST_QUERIES = 16

#: Searches between two looks at whether to stop.
_QUERIES_AT_ONCE = 1_024

#: Points that are not divided further, but lie side by side as they come.
_FEW = 32

#: Points of a part that show in which column it is divided.
_SEVERAL = 256


def find_merges(
    tag: Tag,
    points: NDArray[np.float64],
    weights: NDArray[np.float64],
    n_threads: int,
    should_stop: Callable[[], bool],
    note_near: Callable[[NDArray[np.int32], NDArray[np.int32]], object] = lambda *_: None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
    """Merges of `points`, each cluster named by its first point, and ζ; None if it was stopped. Both are consumed.

    Where points that are near each other are listed on the way, `note_near` gets some points, and a row of others near
    each of them.
    """
    step = kernels.statistics.reciprocal
    n = len(points)
    variance, height, status = np.zeros(n), np.zeros(n), np.full(n, step.STALE, np.uint8)
    clusters = step.Clusters(points, weights, variance, np.zeros(n, np.int32), np.zeros(n))
    nearest, value = clusters.nearest, clusters.value
    merges, heights = np.empty((max(n - 1, 0), 2), np.int64), np.empty(max(n - 1, 0))
    live, equal = without_duplicates(points)
    done = len(equal)
    merges[:done], heights[:done] = equal, 0.0
    np.add.at(weights, equal[:, 0], weights[equal[:, 1]])
    live = live[order_in_space(points[live])]
    most = live.size
    with Threads(n_threads) as threads:
        search = _Search(tag, clusters, live, threads, should_stop, note_near)
        while live.size > 1:
            queries = _first_to_look(live, value, status == step.STALE, most)
            search.look(live, queries)
            if should_stop():
                return None
            step.tell_nearest(live, queries, nearest, value, status)
            if queries.size == 0:  # rounding has hidden all reciprocal pairs: take the nearest pair
                a = live[np.argmin(value[live])]
                nearest[nearest[a]] = a
            before = done
            done = step.merge_reciprocal(
                points, weights, variance, height, live, nearest, value, status, merges, heights, done
            )
            search.note_merges(merges[before:done], heights[before:done])
            live = live[status[live] != step.GONE]
            most = max(_FEWEST_QUERIES, 4 * (done - before)) if done > before else 2 * most
    return merges, heights


class _Search:
    """The search for nearest clusters: by matrix products where they pay, and otherwise by balls around tiles.

    It does not matter which: the values that decide are computed the same way.
    """

    def __init__(
        self,
        tag: Tag,
        clusters: Any,
        live: NDArray[np.int32],
        threads: Threads,
        should_stop: Callable[[], bool],
        note_near: Callable[[NDArray[np.int32], NDArray[np.int32]], object],
    ) -> None:
        self._tag, self._clusters, self._threads, self._should_stop = tag, clusters, threads, should_stop
        self._note_near = note_near
        wide = clusters.mean.shape[1] >= FEWEST_COLUMNS and live.size > 1
        self._dtypes = ["float64", "float32"] if wide and can_screen(clusters.mean, clusters.size) else []
        self._screening: Screening | None = None

    def look(self, live: NDArray[np.int32], queries: NDArray[np.int32]) -> None:
        """Find the nearest of the clusters at some positions in `live`."""
        while queries.size and not self._should_stop():
            if self._screening is None:
                if not self._dtypes:
                    self._look_by_balls(live, queries)
                    return
                self._screening = Screening(
                    self._tag, self._clusters, live, self._dtypes.pop(), self._threads, self._should_stop
                )
                if not self._should_stop():
                    self._note_near(*self._screening.listed(live))
                self._note_near = lambda *_: None
            queries = queries[~self._screening.look(live[queries])]
            if not self._screening.pays:
                self._screening = None

    def note_merges(self, merges: NDArray[np.int64], heights: NDArray[np.float64]) -> None:
        """Note that pairs of slots were merged into the first of each, at these heights."""
        if self._screening is not None:
            self._screening.note_merges(merges, heights)

    def _look_by_balls(self, live: NDArray[np.int32], queries: NDArray[np.int32]) -> None:
        step, clusters = kernels.statistics.reciprocal, self._clusters
        tiles = step.new_tiles(live.size, clusters.mean.shape[1])
        step.pack(*clusters[:3], live, tiles)
        columns = self._tag, *clusters[:3], live, tiles, queries

        def look(some: slice) -> None:
            for start in range(some.start, some.stop, _QUERIES_AT_ONCE):
                if not self._should_stop():
                    stop = min(start + _QUERIES_AT_ONCE, some.stop)
                    step.find_nearest(*columns, start, stop, np.empty(step.TILE), clusters.nearest, clusters.value)

        self._threads.each(look, self._threads.slices(queries.size))


def _first_to_look(
    live: NDArray[np.int32], value: NDArray[np.float64], is_stale: NDArray[np.bool_], most: int
) -> NDArray[np.int32]:
    """The positions of clusters that look for their nearest next: those which can be in the nearest pairs.

    Where many clusters have the same nearest one, it merges again and again, and all of them would look each time.
    """
    waiting = np.flatnonzero(is_stale[live])
    if waiting.size > most:
        waiting = np.sort(waiting[np.argpartition(value[live[waiting]], most)[:most]])
    return waiting.astype(np.int32)


def without_duplicates(points: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The first of all points at the same place, and pairs of these and each of the others there."""
    n, m = points.shape
    with np.errstate(over="ignore", invalid="ignore"):
        direction = np.random.default_rng(0).normal(size=m)
        on_a_line = np.einsum("ij,j->i", points, direction)  # equal for equal points, and rarely for others
    order = np.argsort(on_a_line, kind="stable")
    starts = np.ones(n, np.bool_)
    starts[1:] = on_a_line[order[1:]] != on_a_line[order[:-1]]
    may_be = np.flatnonzero(~starts)
    starts[may_be] = (points[order[may_be]] != points[order[may_be - 1]]).any(axis=1)
    first = order[starts][np.cumsum(starts) - 1]
    pairs = np.column_stack([first, order])[~starts]
    return np.sort(order[starts]).astype(np.int32), pairs[np.argsort(pairs[:, 1])]


def order_in_space(points: NDArray[np.float64]) -> NDArray[np.int32]:
    """The points in an order in which those close to each other are near: halves by a column of large spread."""
    order = np.arange(len(points), dtype=np.int32)
    parts = [(0, len(points))]
    while parts:
        start, stop = parts.pop()
        if stop - start > _FEW:
            some = order[start:stop]
            here = points[some[:: -(-some.size // _SEVERAL)]]
            column = points[some, int(np.argmax(here.max(axis=0) - here.min(axis=0)))]
            # Whole tiles on the left, so that a tile is not divided.
            half = max((stop - start) // (2 * _FEW) * _FEW, _FEW)
            order[start:stop] = some[np.argpartition(column, half)]
            parts += [(start, start + half), (start + half, stop)]
    return order

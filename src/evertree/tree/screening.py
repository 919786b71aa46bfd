"""The search for nearest clusters by matrix products: see `evertree.kernels.statistics.screening`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.kernels.columns import N_NEAR
from evertree.linkages import Tag
from evertree.tree.parallel.threads import Threads

#: The most rows of a block of products, and entries: half of the cache that cores share.
_ROWS = 256
_ENTRIES = 1 << 20

#: Multiplications between two looks at whether to stop: some hundredths of a second.
_AT_ONCE = 1 << 30

#: Multiplications for which threads are not worth waiting for: half a millisecond, or some if they are not by blocks.
_FEW = 1 << 24

#: Points are scaled by a power of two up to this, and sizes are as near to 1, so that no value is too large or small.
_LARGEST_SCALE = 2.0**400
_LARGEST_SIZE = 2.0**50

#: The points are at most so many times farther from 0 than from each other.
_FARTHEST = 1e8

#: Places are filled anew when fewer than this share of them are in use.
_FEWEST_IN_USE = 0.75

#: Pairs that are computed, as a share of those screened, up to which screening pays.
_MOST_COMPUTED = 0.01


#: Points that show whether products tell points apart, and what these are off by at most, in units in the last place.
_SAMPLE, _NOISE = 64, 8.0


class Screening:
    """Lists of near clusters for all that are live, kept by products of matrices.

    Parameters
    ----------
    tag
        The linkage.
    clusters
        All clusters, by slot.
    live
        The slots of those that there are.
    dtype
        The precision of the products.
    threads
        They share the work.
    should_stop
        Asked between products whether to leave everything as it is, unfinished.
    """

    def __init__(
        self,
        tag: Tag,
        clusters: Any,
        live: NDArray[np.int32],
        dtype: str,
        threads: Threads,
        should_stop: Callable[[], bool],
    ) -> None:
        self._step = kernels.statistics.screening
        self._tag, self._clusters, self._threads, self._should_stop = tag, clusters, threads, should_stop
        self._center, self._scale = _frame(clusters.mean)
        n, m = clusters.mean.shape
        self._places, self._lists = self._step.new_places(live.size, m, dtype), self._step.new_lists(n, dtype)
        self._lists.slot_of[live] = self._lists.id_of[live] = live
        self._lists.place_of[live] = np.arange(live.size)
        self._next_id = n
        self._sizes = np.array([clusters.size[live].min(), clusters.size[live].sum()])
        self._extent = np.zeros(2)
        self._room = np.empty(2 * self._step.LENGTH, np.int32), np.empty(2 * self._step.LENGTH)
        self._block = np.empty(max(min(_ENTRIES, _AT_ONCE // m), self._step.WIDE * _ROWS), dtype)
        self._bounds = np.empty(self._step.AT_ONCE, dtype)
        self._n_screened = self._n_computed = 0
        for some in self._in_slices(live.size):
            self._step.put(clusters, self._center, self._scale, live[some], self._places, self._lists)
        farthest = self._places.sq[np.isfinite(self._places.sq)].max(initial=0.0)
        self._extent[:] = 1.001 * np.sqrt(max(farthest, 0.0)), np.sqrt(np.sum((self._center * self._scale) ** 2))
        self._screen(np.arange(live.size, dtype=np.int32), is_mutual=True)

    @property
    def pays(self) -> bool:
        """Whether few pairs have to be computed beside those that are screened."""
        return self._n_computed <= _MOST_COMPUTED * self._n_screened

    def listed(self, slots: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Those of some clusters that have full lists, as at the beginning, and the slots of `N_NEAR` near each."""
        full = slots[self._lists.length[slots] == self._step.LENGTH]
        return full, self._lists.slot_of[self._lists.id[full, :N_NEAR]]

    def look(self, slots: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Find the nearest of some clusters; where the answer is False it was not found, as screening does not pay."""
        found = self._look_up(slots)
        again = np.flatnonzero(~found)
        if again.size:
            self._close_gaps()
        for start in range(0, again.size, _ROWS):
            some = again[start : start + _ROWS]
            if self._should_stop() or not self.pays:
                break
            self._list_near(slots[some])
            found[some] = self._look_up(slots[some])
            rest = some[~found[some]]  # as many others are as near, or might be
            self._settle(slots[rest])
            found[rest] = True
        return found

    def note_merges(self, merges: NDArray[np.int64], heights: NDArray[np.float64]) -> None:
        """Note that pairs of slots were merged into the first of each, at these heights."""
        for some in self._in_slices(len(merges)):
            columns = self._next_id, self._sizes, self._extent, self._places, self._lists, *self._room
            cluster = self._tag, self._clusters, self._center, self._scale
            self._step.unite(*cluster, merges[some], heights[some], *columns)
            self._next_id += len(merges[some])

    def _list_near(self, slots: NDArray[np.int32]) -> None:
        """Compare clusters with all, for new lists."""
        rows = self._lists.place_of[slots]
        self._lists.length[slots] = 0
        self._places.limit[rows] = np.inf
        self._screen(rows)

    def _look_up(self, slots: NDArray[np.int32]) -> NDArray[np.bool_]:
        found = np.zeros(slots.size, np.uint8)
        columns = self._scale**-2, self._extent, self._places, self._lists
        for some in self._in_slices(slots.size):
            self._step.look_up(self._tag, self._clusters, slots[some], *columns, found[some])
        return found.astype(np.bool_)

    def _in_slices(self, length: int) -> Iterator[slice]:
        """Slices that cover `length` clusters; until it is to stop."""
        count = _FEW // self._center.size + 1
        for start in range(0, length, count):
            if self._should_stop():
                return
            yield slice(start, start + count)

    def _screen(self, rows: NDArray[np.int32], is_mutual: bool = False) -> None:
        """Fill the lists of some places; if it is mutual, those of all."""
        limit = self._places.limit
        ears = limit if is_mutual else np.full_like(limit, -np.inf)
        for some, first, block in self._products(rows, is_mutual):
            columns = ears, self._places, self._lists, self._bounds
            self._step.screen(self._tag, block, some, first, is_mutual, *columns)
            self._n_screened += block.size

    def _settle(self, slots: NDArray[np.int32]) -> None:
        """Compute all pairs that may be as near as the nearest that is known."""
        for some, first, block in self._products(self._lists.place_of[slots]):
            self._n_computed += self._step.settle(
                self._tag, self._clusters, block, some, first, self._scale**-2, self._places
            )

    def _products(
        self, rows: NDArray[np.int32], is_mutual: bool = False
    ) -> Iterator[tuple[NDArray[np.int32], int, NDArray[Any]]]:
        """−2 ⟨x, y⟩ for the clusters in some places and all: rows, the first column, and a block.

        If it is mutual, only for later ones. It ends early if it is to stop.
        """
        point, tall, wide = self._places.point, self._step.TALL, self._step.WIDE
        for start in range(0, rows.size, _ROWS):
            some = rows[start : start + _ROWS]
            x = self._step.new_rows(-(-some.size // tall) * tall, point.shape[1], point.dtype)
            np.multiply(point[some], -2.0, out=x[: some.size])
            width = self._block.size // len(x) // wide * wide
            for first in range(int(some[0]) // wide * wide if is_mutual else 0, len(point), width):
                if self._should_stop():
                    return
                yield some, first, self._multiply(x, point[first : first + width])

    def _multiply(self, x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        block, wide = self._block[: len(x) * len(y)].reshape(len(x), len(y)), self._step.WIDE

        def multiply(some: slice) -> None:
            self._step.multiply(x, y, wide * some.start, wide * some.stop, block)

        if block.size * x.shape[1] < _FEW or self._threads.n_threads == 1:
            multiply(slice(0, len(y) // wide))
        else:
            self._threads.each(multiply, self._threads.slices(len(y) // wide))
        return block

    def _close_gaps(self) -> None:
        """Take out places that are not in use, when there are many, but for some so that rows come in threes."""
        is_used = np.isfinite(self._places.sq)
        n_used = int(np.count_nonzero(is_used))
        if n_used < _FEWEST_IN_USE * is_used.size:
            is_used[np.flatnonzero(~is_used)[: -n_used % self._step.WIDE]] = True
            point, *rest = self._places
            used = np.flatnonzero(is_used)
            kept = self._step.new_rows(used.size, point.shape[1], point.dtype)
            np.take(point, used, axis=0, out=kept, mode="clip")  # other modes make a copy
            self._places = type(self._places)(kept, *(column[is_used] for column in rest))
            in_use = np.flatnonzero(np.isfinite(self._places.sq))
            self._lists.place_of[self._places.slot[in_use]] = in_use


def can_screen(points: NDArray[np.float64], sizes: NDArray[np.float64]) -> bool:
    """Whether products of the points neither overflow nor underflow, and means are not rounded too coarsely."""
    center, scale = _frame(points)
    is_moderate = sizes.min() >= 1.0 / _LARGEST_SIZE and sizes.sum() <= _LARGEST_SIZE
    if not (is_moderate and 1.0 / _LARGEST_SCALE <= scale <= _LARGEST_SCALE):
        return False
    return float(np.abs(center).max()) * scale <= _FARTHEST


def tells_apart(points: NDArray[Any]) -> bool:
    """Whether products in single precision tell most points from those near them, by a sample.

    They do not where a few points are very far out, or clusters are very tight.
    """
    some = points[:: -(-len(points) // _SAMPLE)].astype(np.float64)
    center, scale = _frame(points)
    if not 0.0 < scale < np.inf:
        return False
    some = (some - center) * scale
    sq = np.array([np.square(some - one).sum(axis=1) for one in some])
    np.fill_diagonal(sq, np.inf)
    noise = _NOISE * points.shape[1] * np.finfo(np.float32).eps * np.square(some).sum(axis=1)
    return bool(np.median(sq.min(axis=1) - noise) > 0.0)


def _frame(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """The mean, and a power of two by which no coordinate from there exceeds 1; infinite if there is none."""
    with np.errstate(over="ignore", invalid="ignore"):
        center = points.mean(axis=0)
        largest = float(np.max(np.maximum(points.max(axis=0) - center, center - points.min(axis=0))))
    return center, 0.5 ** int(np.frexp(largest)[1]) if 0.0 < largest < np.inf else np.inf

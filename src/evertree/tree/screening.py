"""The search for nearest clusters by matrix products: see `evertree.kernels.statistics.screening`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
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

#: Places are filled anew when fewer than this share of them are in use.
_FEWEST_IN_USE = 0.75

#: Pairs that are computed, as a share of those screened, up to which screening pays.
_MOST_COMPUTED = 0.01

_NONE = np.empty(0, np.int32)


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
        self._new = _NONE
        self._block = np.empty(max(min(_ENTRIES, _AT_ONCE // m), 2 * _ROWS), dtype)
        self._bounds = np.empty(self._step.AT_ONCE, dtype)
        self._n_screened = self._n_computed = 0
        self._put(live)
        self._screen(np.arange(live.size, dtype=np.int32), live.size, only_after=True)

    @property
    def pays(self) -> bool:
        """Whether few pairs have to be computed beside those that are screened."""
        return self._n_computed <= _MOST_COMPUTED * self._n_screened

    def look(self, slots: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Find the nearest of some clusters; where the answer is False it was not found, as screening does not pay."""
        found = self._look_up_with_new(slots) if self._new.size else self._look_up(slots)
        again = np.flatnonzero(~found)
        for start in range(0, again.size, _ROWS):
            some = again[start : start + _ROWS]
            if self._should_stop() or not self.pays:
                break
            self._list_near(_NONE, slots[some])
            found[some] = self._look_up(slots[some])
            rest = some[~found[some]]  # as many others are as near, or might be
            self._settle(slots[rest])
            found[rest] = True
        return found

    def note_merges(self, merges: NDArray[np.int64]) -> None:
        """Note that pairs of slots were merged into the first of each."""
        lists, new = self._lists, merges[:, 0].astype(np.int32)
        lists.slot_of[lists.id_of[merges.ravel()]] = -1
        self._places.sq[lists.place_of[merges[:, 1]]] = np.inf
        lists.id_of[new] = np.arange(self._next_id, self._next_id + new.size)
        lists.slot_of[lists.id_of[new]] = new
        self._next_id += new.size
        self._new = new

    def _look_up_with_new(self, slots: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Compare new clusters with all, which hear of them, and then look up.

        A few clusters that had found nothing before are compared with all on that occasion.
        """
        new, self._new = self._new, _NONE
        self._close_gaps()
        self._put(new)
        others = slots[~self._look_up(slots)]
        others = others[~np.isin(others, new)]
        self._list_near(new, others if new.size + others.size <= _ROWS else _NONE)
        return self._look_up(slots)

    def _list_near(self, new: NDArray[np.int32], others: NDArray[np.int32]) -> None:
        """Compare clusters with all, for lists of their own; the rest hear of the new ones.

        If there are both kinds, they fit into one block.
        """
        slots = np.concatenate([new, others])
        rows = self._lists.place_of[slots]
        self._lists.length[slots] = 0
        self._places.limit[rows] = np.inf
        self._places.hears[rows] = -np.inf
        self._screen(rows, new.size)
        self._places.hears[rows] = self._places.limit[rows]

    def _put(self, slots: NDArray[np.int32]) -> None:
        for some in self._in_slices(slots.size):
            self._step.put(self._clusters, self._center, self._scale, slots[some], self._places, self._lists)

    def _look_up(self, slots: NDArray[np.int32]) -> NDArray[np.bool_]:
        found = np.zeros(slots.size, np.uint8)
        columns = self._scale**-2, self._places, self._lists
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

    def _screen(self, rows: NDArray[np.int32], n_new: int, only_after: bool = False) -> None:
        """Fill the lists of some places, and let others hear of the first `n_new`."""
        hears = self._places.hears
        nobody = np.full_like(hears, -np.inf) if n_new < rows.size else hears
        for some, first, block in self._products(rows, only_after):
            for part, listeners in ((slice(0, n_new), hears), (slice(n_new, None), nobody)):
                if some[part].size:
                    columns = listeners, self._places, self._lists, self._bounds
                    self._step.screen(self._tag, block[part], some[part], first, only_after, *columns)
            self._n_screened += block.size

    def _settle(self, slots: NDArray[np.int32]) -> None:
        """Compute all pairs that may be as near as the nearest that is known."""
        for some, first, block in self._products(self._lists.place_of[slots]):
            self._n_computed += self._step.settle(
                self._tag, self._clusters, block, some, first, self._scale**-2, self._places
            )

    def _products(
        self, rows: NDArray[np.int32], only_after: bool = False
    ) -> Iterator[tuple[NDArray[np.int32], int, NDArray[Any]]]:
        """−2 ⟨x, y⟩ for the clusters in some places and all, or only later ones: rows, the first column, and a block.

        It ends early if it is to stop.
        """
        point = self._places.point
        for start in range(0, rows.size, _ROWS):
            some = rows[start : start + _ROWS]
            x = np.zeros((-(-some.size // 4) * 4, point.shape[1]), point.dtype)
            np.multiply(point[some], -2.0, out=x[: some.size])
            width = self._block.size // len(x) // 2 * 2
            for first in range(int(some[0]) if only_after else 0, len(point), width):
                if self._should_stop():
                    return
                yield some, first, self._multiply(x, point[first : first + width])

    def _multiply(self, x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
        block = self._block[: len(x) * len(y)].reshape(len(x), len(y))

        def multiply(pairs: slice) -> None:
            self._step.multiply(x, y, 2 * pairs.start, 2 * pairs.stop, block)

        if block.size * x.shape[1] < _FEW or self._threads.n_threads == 1:
            multiply(slice(0, len(y) // 2))
        else:
            self._threads.each(multiply, self._threads.slices(len(y) // 2))
        return block

    def _close_gaps(self) -> None:
        """Take out places that are not in use, when there are many, but for one if the number would be odd."""
        is_used = np.isfinite(self._places.sq)
        n_used = int(np.count_nonzero(is_used))
        if n_used < _FEWEST_IN_USE * is_used.size:
            if n_used % 2:
                is_used[np.argmin(is_used)] = True
            self._places = type(self._places)(*(column[is_used] for column in self._places))
            in_use = np.flatnonzero(np.isfinite(self._places.sq))
            self._lists.place_of[self._places.slot[in_use]] = in_use


def can_screen(points: NDArray[np.float64], sizes: NDArray[np.float64]) -> bool:
    """Whether products of the points neither overflow nor underflow."""
    scale = _frame(points)[1]
    is_moderate = sizes.min() >= 1.0 / _LARGEST_SIZE and sizes.sum() <= _LARGEST_SIZE
    return bool(is_moderate and 1.0 / _LARGEST_SCALE <= scale <= _LARGEST_SCALE)


def _frame(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """The mean, and a power of two by which no coordinate from there exceeds 1; infinite if there is none."""
    with np.errstate(over="ignore", invalid="ignore"):
        center = points.mean(axis=0)
        largest = float(np.max(np.maximum(points.max(axis=0) - center, center - points.min(axis=0))))
    return center, 0.5 ** int(np.frexp(largest)[1]) if 0.0 < largest < np.inf else np.inf

"""Parallel insertion of many points, with the same result for any number of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.kernels.columns import OWN_LIST
from evertree.tree.base import PART
from evertree.tree.parallel import treelets
from evertree.tree.parallel.rounds import is_large
from evertree.tree.parallel.threads import Threads
from evertree.tree.parallel.treelets import Cut, Treelet
from evertree.tree.statistics import MeanLiveTree

#: The tree is cut into pieces of at most this share of its points, and into finer ones to route points to them.
_SHARE = 1 / 64
_FINE_SHARE = 1 / 1024

#: A tree is cut for at least one new point per this many existing points.
_FEWEST_SHARE = 8


def insert_some(live: MeanLiveTree, leaves: NDArray[np.int32], should_stop: Callable[[], bool]) -> int:
    """Insert the first of the filled leaves, many of them in parallel; return how many.

    If it is stopped, some may be missing, and the tree must be discarded.
    """
    if not _is_crowd(live, leaves.size):
        live.insert(leaves[:PART])
        return min(leaves.size, PART)
    count = min(leaves.size, live.n_points)
    live.begin_edit()
    live.homogenise()
    with Threads(live.aim.n_threads or 1) as threads:
        left = _insert_in_pieces(live, leaves[:count], threads, should_stop)
    for start in range(0, left.size, PART):
        if should_stop():
            break
        live.insert(left[start : start + PART])
    return count


def _is_crowd(live: MeanLiveTree, count: int) -> bool:
    """Whether `count` points are enough to make cutting the tree into pieces worthwhile."""
    return live.aim.is_stable and is_large(live) and _FEWEST_SHARE * count >= live.n_points


def _insert_in_pieces(
    live: MeanLiveTree, leaves: NDArray[np.int32], threads: Threads, should_stop: Callable[[], bool]
) -> NDArray[np.int32]:
    """Insert each leaf into the piece nearest to it, all pieces in parallel; return the leaves that are in none.

    Within a piece they are inserted one after the other, by search. Then the moves needed between the pieces are made.
    Once a piece is put back nothing may fail: a piece for which no memory or thread is available takes in no leaves.
    """
    pieces = treelets.cut(live, int(_SHARE * live.n_points))
    number = _route(live, leaves, pieces, threads)
    order = np.argsort(number, kind="stable")
    ends = np.searchsorted(number[order], np.arange(pieces.stops.size + 1))
    has_come = np.zeros(leaves.size, np.bool_)
    place = np.empty(live.tree.parent.size, np.int32)
    inner = np.empty(leaves.size, np.int32)
    kernels.statistics.treelets.allocate_inner(live.tree, inner)
    putting_back = threading.Lock()

    def insert_into(k: int) -> None:
        some = slice(ends[k], ends[k + 1])
        if some.start == some.stop or should_stop():
            return
        new = leaves[order[some]]
        treelet = Treelet(live, *pieces.piece(k), place, new.size)
        own = treelet.take_in(live, new, inner[some])
        for start in range(0, own.size, PART):
            if should_stop():
                return
            treelet.insert(own[start : start + PART])
        with putting_back:
            treelet.put_back(live)
            has_come[order[some]] = True

    largest_first = np.argsort(-np.diff(ends), kind="stable")
    above = pieces.above()[1]
    with suppress(MemoryError, RuntimeError):
        threads.each(insert_into, [int(k) for k in largest_first])
    live.release(inner[~has_come[order]])
    live.tree.state["n_points"][0] += np.count_nonzero(has_come)
    kernels.statistics.treelets.refresh_above(live.tree, live.work, live.tag, above)
    live.recount()
    live.homogenise()
    return leaves[~has_come]


def _route(live: MeanLiveTree, leaves: NDArray[np.int32], pieces: Cut, threads: Threads) -> NDArray[np.int64]:
    """The piece that each of the leaves belongs to, -1 for none: that of the nearest of many small clusters."""
    bottoms, inner = treelets.cut(live, int(_FINE_SHARE * live.n_points), 1).above()
    guide = Treelet(live, bottoms, inner, np.empty(live.tree.parent.size, np.int32), leaves.size)
    guests = guide.take_in(live, leaves)
    near = np.empty(leaves.size, np.int32)

    def find(some: slice, scratch: tuple[Any, Any]) -> None:
        tree, search = scratch
        search.state["notes"][0] = OWN_LIST
        kernels.shared.rounds.find_nearest(tree, search, live.tag, guests[some], near[some])

    threads.divide(find, leaves.size, threads.helpers(guide.scratch))
    return pieces.numbers_of(bottoms)[near >> 1]

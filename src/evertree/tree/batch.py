"""Batch clustering (`tab.HAC`) of the points of a tree, in slices, so that it can be stopped.

Where pairs are compared, all merges are found in a matrix of n² / 2 values, much faster than by inserting point after
point. Where values follow from means, they are found in rounds, in linear memory. The result is a stable tree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.kernels.columns import TO_FIND
from evertree.tree import reciprocal
from evertree.tree.aim import AUTO
from evertree.tree.base import LiveTree
from evertree.tree.initial import shape_from_linkage
from evertree.tree.pairwise import PairLiveTree
from evertree.tree.parallel.threads import Threads
from evertree.tree.repair import Exact, merge_order, new_exact
from evertree.tree.screening import tells_apart
from evertree.tree.statistics import MeanLiveTree

#: Entries of a matrix that are read or written between two looks at whether to stop: some hundredths of a second.
_SLICE = 20_000_000


#: Up to this many points in `reciprocal.FEWEST_COLUMNS` are clustered, and not inserted; it was measured in 64 to 784.
_MOST_POINTS = 15_000

#: As many pairs are clustered while one point is inserted and refined. It was measured in 384 and 784 columns; trees of
#: average linkage are deeper.
_WORTH_WARD, _WORTH_AVERAGE = 65_000, 250_000

#: Merges of points, each cluster named by any of its points, and their heights.
Found = tuple[NDArray[np.int64], NDArray[np.float64]]


def may_cluster(live: LiveTree, n_points: int) -> bool:
    """Whether so many points of a tree are clustered, and not inserted: there is memory, and the goal is this tree."""
    if not live.aim.is_stable:
        return False
    if isinstance(live, PairLiveTree):
        return live.fits(n_points)
    return live.aim.search_width is None or (live.aim.search_width == AUTO and live.is_cheap(n_points))


def may_be_faster(live: LiveTree, n_points: int, n_columns: int) -> bool:
    """Whether it may take less time to cluster so many points by their means than to insert and refine them."""
    is_wide = live.scheme.has_statistics and n_columns >= reciprocal.FEWEST_COLUMNS
    return is_wide and n_points <= _MOST_POINTS and live.aim.is_stable and live.aim.search_width == AUTO


def is_faster(live: LiveTree, n_points: int, coordinates: NDArray[Any] | None) -> bool:
    """Whether it does, by the coordinates of those that are new.

    To cluster takes time as the square of all points, to insert and refine as the number of new ones.
    """
    if coordinates is None or not may_be_faster(live, n_points, coordinates.shape[1]):
        return False
    worth = _WORTH_AVERAGE if live.scheme.linkage.strongly_reducible else _WORTH_WARD
    return worth * len(coordinates) >= n_points**2 and tells_apart(coordinates)


def cluster(live: LiveTree, leaves: NDArray[np.int32], should_stop: Callable[[], bool] = lambda: False) -> bool:
    """Arrange leaves, whose rows are filled, in the batch tree, whatever they were in before.

    They are all leaves of the tree. False, and the tree is as it was, if it was stopped; but lists of neighbours have
    to be found again.
    """
    leaves = leaves[np.argsort(live.tree.birth[leaves], kind="stable")]
    if isinstance(live, PairLiveTree):
        found = _find_merges(live, leaves, should_stop)
    else:
        points, weights = live.tree.mean[leaves].astype(np.float64), live.tree.size[leaves]
        assert isinstance(live, MeanLiveTree)

        def note_near(some: NDArray[np.int32], near: NDArray[np.int32]) -> None:
            live.list_neighbours(leaves[some], leaves[near])

        found = reciprocal.find_merges(live.tag, points, weights, live.aim.n_threads or 1, should_stop, note_near)
    if found is None:
        live.forget_neighbours(leaves, TO_FIND)
        return False
    merges, height = found
    n, order = leaves.size, np.argsort(height, kind="stable")
    Z = np.empty((max(n - 1, 0), 4))
    kernels.shared.nn_chain.label_merges(merges[order], height[order], np.empty(n, np.int64), Z)
    heights = Z[:, 2].copy()
    shape_from_linkage(live, leaves, Z)
    live.take_heights(heights)
    live.note_clustered()
    live.exact = new_exact(live) if live.is_to_be_exact else None
    return True


def find_slack(live: LiveTree, exact: Exact) -> None:
    """Find the slack of all nodes of a batch tree, and the values of the largest clusters, where pairs are compared.

    O(n² m). Nothing is done where there is no memory for it, or where radii are compared, which would take too long.
    """
    if live.n_points < 2 or not isinstance(live, PairLiveTree) or live.scheme.linkage.has_centers:
        return
    if not live.fits(live.n_points):
        return
    leaves = np.sort(live.leaves())
    d = _all_pairs(live, leaves)
    assert d is not None
    order, _ = merge_order(live, exact.order)
    room = np.empty(leaves.size, np.int64), live.tree.size[leaves], leaves, order, np.empty_like(live.tree.parent)
    kernels.repair.slack.find_slack(live.tree, live.tag, d, *room, exact.top, exact.slack)


def _find_merges(live: PairLiveTree, leaves: NDArray[np.int32], should_stop: Callable[[], bool]) -> Found | None:
    """The merges of batch clustering, in any order that has parts before wholes; None if it was stopped."""
    n, linkage = leaves.size, live.scheme.linkage
    found: Found = np.empty((max(n - 1, 0), 2), np.int64), np.empty(max(n - 1, 0))
    done = np.zeros(2, np.int64)
    if linkage.is_spanning:
        rows = np.ascontiguousarray(leaves >> 1)
        room: list[Any] = [np.empty(n, dtype) for dtype in (np.int32, np.int32, np.float64, np.int32, np.float64)]

        def merge(stop: int) -> None:
            kernels.pairwise.spanning_tree.grow(live.tree.pairs, rows, *room, *found, done, stop)

        live.note_evaluated(n * (n - 1) // 2)
        return found if _in_slices(merge, n - 1, n * max(live.n_columns or 1, 4), should_stop) else None
    d = _all_pairs(live, leaves, should_stop)
    if d is None:
        return None
    live.list_neighbours(leaves, d)
    chain, alive = np.empty(n, np.int64), np.empty(n, np.int64)
    if linkage.has_centers:
        radii = np.empty((n, n)), np.empty(n, np.int64)

        def merge(stop: int) -> None:
            kernels.shared.nn_chain.merge_by_radius(d, *radii, chain, alive, *found, done, stop)
    else:
        size = live.tree.size[leaves]

        def merge(stop: int) -> None:
            kernels.shared.nn_chain.merge_by_recurrence(live.tag, d, size, chain, alive, *found, done, stop)

    return found if _in_slices(merge, n - 1, 4 * n, should_stop) else None


def _all_pairs(
    live: PairLiveTree, leaves: NDArray[np.int32], should_stop: Callable[[], bool] = lambda: False
) -> NDArray[np.float64] | None:
    """The dissimilarity of every pair of leaves, condensed, by several threads if wanted; None if it was stopped."""
    n, rows = leaves.size, np.ascontiguousarray(leaves >> 1)
    d = np.empty(n * (n - 1) // 2)
    step = _step(n * max(live.n_columns or 1, 4))

    def fill(start: int) -> None:
        if not should_stop():
            kernels.pairwise.pairs.fill_condensed(live.tree.pairs, rows, d, start, start + step)

    starts = range(0, n - 1, step)
    if live.aim.n_threads is None or len(starts) == 1:
        for start in starts:
            fill(start)
    else:
        with Threads(live.aim.n_threads) as threads:
            threads.each(fill, starts)
    if should_stop():
        return None
    live.note_evaluated(d.size)
    return d


def _step(cost: int) -> int:
    """How many steps of a given cost are made between two looks at whether to stop."""
    return max(_SLICE // max(cost, 1), 1)


def _in_slices(work: Callable[[int], None], count: int, cost: int, should_stop: Callable[[], bool]) -> bool:
    """Do a number of steps of a given cost, each call of `work` up to a step; False if it was stopped."""
    step = _step(cost)
    for start in range(0, count, step):
        if should_stop():
            return False
        work(min(start + step, count))
    return True

"""Which part each point belongs to, and the way of the points from chunks to parts."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.distributed.chunks import Chunk, Chunks
from evertree.distributed.dask_runner import DaskRunner
from evertree.distributed.sampling import RoutingTree
from evertree.distributed.subtrees import Subtrees, from_live_nodes, live_nodes, to_live
from evertree.kernels.columns import NULL
from evertree.tree import Aim, Incoming
from evertree.tree.scheme import Scheme

#: Points that are searched for, and distances that are held, at a time, to bound memory.
_AT_ONCE = 16_384
_DISTANCES_AT_ONCE = 1 << 20

#: The insertion number of points that are only searched for: younger than all in the tree.
_YOUNG = 1 << 60


class GroupedPoints(NamedTuple):
    """Points by group, and in each group by insertion number."""

    ids: NDArray[np.int64]
    points: NDArray[Any]
    starts: NDArray[np.int64]  # (n_groups + 1,) where each group begins

    def rows(self, begin: int, end: int) -> slice:
        """Where the points of some groups are."""
        return slice(int(self.starts[begin]), int(self.starts[end]))

    def pick(self, begin: int, end: int) -> GroupedPoints:
        """Copies of the points of some groups: views would keep the whole chunk in memory."""
        some = self.rows(begin, end)
        starts = self.starts[begin : end + 1] - some.start
        return GroupedPoints(self.ids[some].copy(), self.points[some].copy(), starts)


def shuffle(
    runner: DaskRunner, chunks: Chunks, routing: Any, part_of: NDArray[np.intp], scheme: Scheme, aim: Aim
) -> list[Any]:
    """For each part, the handles of the `GroupedPoints` that chunks have for its groups.

    Parameters
    ----------
    routing
        The handle of a `RoutingTree`.
    part_of
        The part of each of its groups.
    """
    routed = [
        runner.submit("route", route, chunk, first, routing, scheme, aim)
        for chunk, first in zip(chunks.handles, chunks.first, strict=True)
    ]
    starts = [runner.submit("route-count", attrgetter("starts"), handle) for handle in routed]
    groups = np.searchsorted(part_of, np.arange(int(part_of[-1]) + 2)).tolist()
    parts: list[Any] = [[] for _ in groups[:-1]]
    for k, counted in enumerate(runner.in_order(starts)):
        for part, begin, end in zip(parts, groups[:-1], groups[1:], strict=True):
            if counted[end] > counted[begin]:
                part.append(runner.submit("pick", GroupedPoints.pick, routed[k], begin, end))
        routed[k] = chunks.handles[k] = None  # released when all points have been picked
    return parts


def route(chunk: Chunk, first: int, routing: RoutingTree, scheme: Scheme, aim: Aim) -> GroupedPoints:
    """The points of a chunk, with insertion numbers from `first` on, by group."""
    group = find_groups(chunk.points, routing, scheme, aim)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(routing.roots.size + 1))
    return GroupedPoints(first + order, chunk.points[order], starts)


def find_groups(points: NDArray[Any], routing: RoutingTree, scheme: Scheme, aim: Aim) -> NDArray[np.int64]:
    """The group in which each point would be inserted; above all groups, the group with the smallest ζ."""
    place = find_places(points, routing.tree, scheme, aim)
    group = routing.group[place].astype(np.int64)
    above = np.flatnonzero(group == NULL)
    if above.size:
        group[above] = find_nearest(points[above], routing.tree, routing.roots, scheme, aim)
    return group


def find_places(points: NDArray[Any], tree: Subtrees, scheme: Scheme, aim: Aim) -> NDArray[np.int64]:
    """The node of a tree beside which each point would be inserted."""
    assert scheme.vectors is not None
    live = to_live(tree, scheme, aim, min(_AT_ONCE, len(points)))
    place = np.empty(len(points), np.int64)
    for start in range(0, len(points), _AT_ONCE):
        some = points[start : start + _AT_ONCE]
        incoming = Incoming(some, coordinates=scheme.vectors.coordinates(some))
        births = np.arange(_YOUNG, _YOUNG + len(some))
        leaves = live.add_leaves(incoming, np.ones(len(some)), births, np.empty(0, np.int32))
        u = live.find_places(leaves)[0].astype(np.int64)
        place[start : start + _AT_ONCE] = from_live_nodes(tree, u)
        live.release(leaves)
    return place


def find_nearest(
    points: NDArray[Any], tree: Subtrees, nodes: NDArray[np.int64], scheme: Scheme, aim: Aim
) -> NDArray[np.intp]:
    """Which of some nodes of a tree has the smallest ζ to each of some points."""
    from scipy.spatial.distance import cdist

    assert scheme.vectors is not None
    live, u = to_live(tree, scheme, aim), live_nodes(tree, nodes)
    size, variance, mean = live.tree.size[u], live.tree.variance[u], live.tree.mean[u].astype(np.float64)
    coordinates = scheme.vectors.coordinates(points).astype(np.float64)
    best = np.empty(len(points), np.intp)
    at_once = max(1, _DISTANCES_AT_ONCE // nodes.size)
    for start in range(0, len(points), at_once):
        some = slice(start, start + at_once)
        sq_dist = cdist(coordinates[some], mean, "sqeuclidean")
        value = kernels.shared.linkage_values.value_of_means(live.tag, size, variance, 1.0, 0.0, sq_dist)
        best[some] = np.argmin(value, axis=1)
    return best

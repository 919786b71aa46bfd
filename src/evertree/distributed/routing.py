"""Every point to the part that it belongs to, by the tree over the sample; and from the chunks to the parts."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.distributed.chunks import Chunk, Chunks
from evertree.distributed.on_dask import OnDask
from evertree.distributed.pieces import Piece, inflate, live_nodes
from evertree.distributed.sampling import Plan, Points
from evertree.kernels.columns import NULL
from evertree.tree import Aim, Incoming
from evertree.tree.scheme import Scheme

#: Points that are looked up, and distances that are held, at a time, to bound memory.
_AT_ONCE = 16_384
_DISTANCES_AT_ONCE = 1 << 20

#: The insertion number of points that are only looked up: younger than all that are there.
_YOUNG = 1 << 60


class Routed(NamedTuple):
    """The points of a chunk, those of the same group side by side, by ascending number."""

    ids: NDArray[np.int64]
    points: NDArray[Any]
    starts: NDArray[np.int64]  # (n_groups + 1,) where each group begins

    def group(self, number: int) -> Points:
        """The points of one group."""
        some = slice(int(self.starts[number]), int(self.starts[number + 1]))
        return Points(self.ids[some], self.points[some])


def shuffle(
    runner: OnDask, chunks: Chunks, plan: Any, part_of: NDArray[np.intp], scheme: Scheme, aim: Aim
) -> list[Any]:
    """For each part, the handles of what the chunks have for it: `Routed` to its groups, counted in the part.

    Parameters
    ----------
    plan
        The handle of a `Plan`.
    part_of
        The part of each of its groups.
    """
    routed = [
        runner.submit("route", route, chunk, first, plan, scheme, aim)
        for chunk, first in zip(chunks.handles, chunks.first, strict=True)
    ]
    starts = [runner.submit("route-count", attrgetter("starts"), handle) for handle in routed]
    groups = np.searchsorted(part_of, np.arange(int(part_of[-1]) + 2)).tolist()
    parts: list[Any] = [[] for _ in groups[:-1]]
    for k, counted in enumerate(runner.in_turn(starts)):
        for part, begin, end in zip(parts, groups[:-1], groups[1:], strict=True):
            if counted[end] > counted[begin]:
                part.append(runner.submit("pick", pick, routed[k], begin, end))
        routed[k] = chunks.handles[k] = None  # let them go when all has been picked
    return parts


def route(chunk: Chunk, first: int, plan: Plan, scheme: Scheme, aim: Aim) -> Routed:
    """Sort the points of a chunk, whose first has the number `first`, by group."""
    group = find_groups(chunk.points, plan, scheme, aim)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(plan.roots.size + 1))
    return Routed(first + order, chunk.points[order], starts)


def pick(routed: Routed, begin: int, end: int) -> Routed:
    """The points of some groups."""
    some = slice(int(routed.starts[begin]), int(routed.starts[end]))
    # Copies: a view would keep the whole chunk in memory.
    return Routed(routed.ids[some].copy(), routed.points[some].copy(), routed.starts[begin : end + 1] - some.start)


def find_groups(points: NDArray[Any], plan: Plan, scheme: Scheme, aim: Aim) -> NDArray[np.int64]:
    """The group that holds the place of each point; for a place above all groups, the group with the smallest ζ."""
    place = find_places(points, plan.piece, scheme, aim)
    group = plan.group[place].astype(np.int64)
    above = np.flatnonzero(group == NULL)
    if above.size:
        group[above] = find_nearest(points[above], plan.piece, plan.roots, scheme, aim)
    return group


def find_places(points: NDArray[Any], piece: Piece, scheme: Scheme, aim: Aim) -> NDArray[np.int64]:
    """The node of a piece of one subtree beside which each point would be inserted."""
    assert scheme.vectors is not None
    live = inflate(piece, scheme, aim, min(_AT_ONCE, len(points)))
    place = np.empty(len(points), np.int64)
    for start in range(0, len(points), _AT_ONCE):
        some = points[start : start + _AT_ONCE]
        incoming = Incoming(some, coordinates=scheme.vectors.coordinates(some))
        births = np.arange(_YOUNG, _YOUNG + len(some))
        leaves = live.add_leaves(incoming, np.ones(len(some)), births, np.empty(0, np.int32))
        u = live.find_places(leaves)[0].astype(np.int64)
        place[start : start + _AT_ONCE] = np.where(u % 2 == 0, u >> 1, piece.n_leaves + (u >> 1))
        live.release(leaves)
    return place


def find_nearest(
    points: NDArray[Any], piece: Piece, nodes: NDArray[np.int64], scheme: Scheme, aim: Aim
) -> NDArray[np.intp]:
    """Which of some nodes of a piece has the smallest ζ to each of some points."""
    from scipy.spatial.distance import cdist

    assert scheme.vectors is not None
    live, u = inflate(piece, scheme, aim), live_nodes(piece, nodes)
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

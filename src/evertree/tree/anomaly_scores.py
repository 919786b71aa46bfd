"""Anomaly scores: how far points of a tree, or new points, stand apart from the others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.kernels.columns import NULL
from evertree.tree.base import LiveTree, contiguous
from evertree.tree.incoming import Incoming
from evertree.tree.statistics import MeanLiveTree

#: With at least this many points per scored point, only the ancestors of the scored points are visited.
_POINTS_PER_PATH = 64


class Scores(NamedTuple):
    """What stands apart most on the path from each point to the root.

    For a new point, `node` is the one that stands apart together with it, NULL if the point stands apart alone. If
    nothing stands apart, because all nodes above are at height 0, the score is 0 and both nodes are NULL.
    """

    score: NDArray[np.float64]
    weight: NDArray[np.float64]  # of the point itself
    node: NDArray[np.int32]
    size: NDArray[np.float64]  # the weight of what stands apart
    beside: NDArray[np.int32]  # the node that it joins
    size_beside: NDArray[np.float64]
    height: NDArray[np.float64]  # at which they join


def score_live(live: LiveTree, leaves: NDArray[np.int32], measure: str) -> Scores:
    """Scores of the points at `leaves`. O(n); for a few points, O(depth) each."""
    tree = live.tree
    is_few = leaves.size * _POINTS_PER_PATH < live.n_points
    nodes = _above(tree.parent, leaves) if is_few else live.nodes()
    score, node = np.empty(tree.parent.size), np.empty(tree.parent.size, np.int32)
    kernels.shared.anomaly_scores.score_leaves(tree, live.tag, nodes, _code(measure), score, node)
    apart, weight = node[leaves], tree.size[leaves]
    joins = np.flatnonzero(apart != NULL)
    above = tree.parent[apart[joins]]
    beside, size, value = np.full_like(leaves, NULL), weight.copy(), np.zeros(leaves.size)
    beside[joins] = np.where(tree.left[above] == apart[joins], tree.right[above], tree.left[above])
    size[joins], value[joins] = tree.size[apart[joins]], live.linkage_values(above)
    return _in_units(live, measure, score[leaves], weight, apart, size, beside, value)


def score_new(
    live: LiveTree, leaves: NDArray[np.int32], incoming: Incoming, births: NDArray[np.int64], measure: str
) -> Scores:
    """Scores of points that are not in the tree, whose live points are at `leaves`, each as if it were inserted alone.

    With statistics, each point descends greedily, O(m) per node visited. Otherwise it is placed where it would be
    inserted, which compares points.
    """
    count = len(incoming)
    score, value = np.empty(count), np.empty(count)
    node, beside = np.empty(count, np.int32), np.empty(count, np.int32)
    found = score, node, beside, value
    start = 0
    if isinstance(live, MeanLiveTree):
        kernels.shared.anomaly_scores.score_points(
            live.tree, live.tag, contiguous(incoming.stored), _code(measure), *found
        )
        return _in_units(live, measure, score, np.ones(count), node, _sizes(live, node) + 1.0, beside, value)
    for some in incoming.parts():
        own = slice(start, start + len(some))
        with live.guests(some, births[own], leaves) as (host, guests):
            places, values = host.find_places(guests)
            columns = [column[own] for column in found]
            kernels.shared.anomaly_scores.score_places(host.tree, host.tag, places, values, _code(measure), *columns)
        start = own.stop
    return _in_units(live, measure, score, np.ones(count), node, _sizes(live, node) + 1.0, beside, value)


def _above(parent: NDArray[np.int32], leaves: NDArray[np.int32]) -> NDArray[np.int32]:
    """The nodes above some leaves, children first, as `score_leaves` takes them."""
    paths: list[list[int]] = []
    seen = {NULL}
    for leaf in leaves.tolist():
        path = []
        u = parent.item(leaf)
        while u not in seen:
            seen.add(u)
            path.append(u)
            u = parent.item(u)
        paths.append(path)
    return np.array([u for path in reversed(paths) for u in path], np.int32)


def _in_units(
    live: LiveTree,
    measure: str,
    score: NDArray[np.float64],
    weight: NDArray[np.float64],
    node: NDArray[np.int32],
    size: NDArray[np.float64],
    beside: NDArray[np.int32],
    value: NDArray[np.float64],
) -> Scores:
    if measure == "jump":
        score = live.scheme.zeta(score)  # kernels know heights up to a factor
    return Scores(score, weight, node, size, beside, _sizes(live, beside), live.scheme.height(value))


def _sizes(live: LiveTree, nodes: NDArray[np.int32]) -> NDArray[np.float64]:
    return np.where(nodes == NULL, 0.0, live.tree.size[nodes])


def _code(measure: str) -> np.int64:
    return np.int64(
        kernels.shared.anomaly_scores.DISPLACEMENT if measure == "displacement" else kernels.shared.anomaly_scores.JUMP
    )

"""Flat clusters and the last merges of a tree that lies in parts.

The merges of a tree have an order: by height, at equal heights the top before the parts, these by number, and within
each parents before children. A cut undoes the first so many. Of a part these are the first of its own, so that a number
is all that it has to be told.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.distributed.parts import STRIDE, Part, subtrees
from evertree.distributed.pieces import Piece, inflate, join, split
from evertree.distributed.refining import Forest
from evertree.distributed.runner import Runner
from evertree.kernels.columns import NULL
from evertree.tree import Aim, MeanLiveTree
from evertree.tree.scheme import Scheme


class Heights(NamedTuple):
    """Heights of merges in a part, in SciPy's units."""

    merges: NDArray[np.float64]  # of the first in the order of merges
    of_roots: NDArray[np.float64]
    roots: Piece  # an atom for each subtree


class PartCut(NamedTuple):
    """The first merges of a part, undone. Nodes are its clusters, and after these the merges, in their order."""

    birth: NDArray[np.int64]  # (c,) the smallest number of a point in each cluster, in the order of leaves
    n_points: NDArray[np.int64]  # (c,)
    roots: NDArray[np.int64]  # the node of each subtree
    children: NDArray[np.int64]  # (n_splits, 2)
    height: NDArray[np.float64]  # (n_splits,) in SciPy's units


class Labels(NamedTuple):
    """Numbers of points, ascending, and the cluster of each."""

    ids: NDArray[np.int64]
    labels: NDArray[np.int64]


class Cut(NamedTuple):
    """All merges that a cut undoes, and what is left."""

    parts: list[PartCut]
    numbers: list[NDArray[np.int64]]  # for each part, the label of each of its clusters
    places: list[tuple[int, int]]  # of each leaf of the top: which of the parts, and which subtree of it
    children: NDArray[np.int32]  # of the top
    opened: NDArray[np.intp]  # unions of the top that are undone, in the order of merges
    height: NDArray[np.float64]  # of all unions of the top

    @property
    def n_splits(self) -> list[int]:
        """How many merges of each part are undone."""
        return [part.height.size for part in self.parts]


def cut(runner: Runner, forest: Forest, n_clusters: int | None, height: float | None) -> Cut:
    """Cut a tree of at least one point into so many clusters, or at a height."""
    scheme, aim, parts, top = forest.scheme, forest.aim, list(forest.handles.values()), forest.top
    position = {number: i for i, number in enumerate(forest.handles)}
    places = [(position[i // STRIDE], i % STRIDE) for i in top.ids.tolist()]
    most = None if n_clusters is None else n_clusters - 1
    known = runner.gather([runner.submit("heights", find_heights, part, scheme, aim, most, height) for part in parts])
    of_top = _top_heights(scheme, aim, top.children, places, known)
    # Parents come after children in a piece, and before them in the order of merges.
    order = np.lexsort([-np.arange(of_top.size), -of_top])
    if height is not None:
        opened, n_splits = order[of_top[order] > height], [one.merges.size for one in known]
    else:
        sources = [of_top[order], *(one.merges for one in known)]
        source = np.repeat(np.arange(len(sources)), [one.size for one in sources])
        chosen = source[np.argsort(-np.concatenate(sources), kind="stable")[:most]]
        counts = np.bincount(chosen, minlength=len(sources)).tolist()
        opened, n_splits = order[: counts[0]], counts[1:]
    cuts = runner.gather(
        [runner.submit("cut", cut_part, part, scheme, aim, count) for part, count in zip(parts, n_splits, strict=True)]
    )
    return Cut(cuts, _numbers(top.children, places, cuts, opened), places, top.children, opened, of_top)


def linkage_matrix(found: Cut) -> NDArray[np.float64]:
    """The merges that a cut undoes, as SciPy's matrix over the clusters that are left."""
    n_clusters = 1 + max((int(numbers.max(initial=-1)) for numbers in found.numbers), default=-1)
    heights = np.concatenate([found.height[found.opened], *(part.height for part in found.parts)])
    rank = np.empty(heights.size, np.int64)
    rank[np.argsort(-heights, kind="stable")] = np.arange(heights.size)[::-1]  # the last merge is undone first
    begins = np.cumsum([found.opened.size, *found.n_splits])
    nodes = [
        np.concatenate([numbers, n_clusters + rank[begin : begin + part.height.size]])
        for part, numbers, begin in zip(found.parts, found.numbers, begins.tolist(), strict=False)
    ]
    number = _top_nodes(found, nodes, n_clusters + rank[: found.opened.size])
    children = [number[found.children[found.opened]].reshape(-1, 2)]
    children += [node[part.children].reshape(-1, 2) for node, part in zip(nodes, found.parts, strict=True)]
    Z = np.empty((heights.size, 4))
    Z[rank, :2] = np.sort(np.concatenate(children), axis=1)
    Z[rank, 2] = heights
    count = np.zeros(n_clusters + heights.size, np.int64)
    for part, numbers in zip(found.parts, found.numbers, strict=True):
        np.add.at(count, numbers, part.n_points)
    for j, (a, b) in enumerate(Z[:, :2].astype(np.int64).tolist()):
        count[n_clusters + j] = count[a] + count[b]
    Z[:, 3] = count[n_clusters:]
    return Z


def find_heights(part: Part, scheme: Scheme, aim: Aim, most: int | None, above: float | None) -> Heights:
    """The heights of the first merges of a part: at most so many, or those above a height."""
    piece = part.piece
    live = inflate(piece, scheme, aim)
    order, height = _merges(piece, live)
    merges = height[order][:most]
    by_node = np.concatenate([np.zeros(piece.n_leaves), height])
    roots = split(piece, live, np.zeros(len(piece.children), np.bool_), 0)
    return Heights(merges if above is None else merges[merges > above], by_node[piece.roots()], roots)


def cut_part(part: Part, scheme: Scheme, aim: Aim, n_splits: int) -> PartCut:
    """Undo the first merges of a part."""
    piece = part.piece
    order, height = _merges(piece, inflate(piece, scheme, aim))
    undone = order[:n_splits]
    clusters = _clusters(piece, undone)
    first, stop = piece.stretches()
    number = np.full(piece.n_nodes, -1, np.int64)
    number[clusters] = np.arange(clusters.size)
    number[piece.n_leaves + undone] = clusters.size + np.arange(undone.size)
    birth = np.minimum.reduceat(piece.ids, first[clusters]) if clusters.size else np.empty(0, np.int64)
    children = number[piece.children[undone]].reshape(-1, 2)
    return PartCut(birth, stop[clusters] - first[clusters], number[piece.roots()], children, height[undone])


def label_part(part: Part, scheme: Scheme, aim: Aim, n_splits: int, numbers: NDArray[np.int64]) -> Labels:
    """The label of each point of a part, `numbers` being those of its clusters."""
    piece = part.piece
    order, _ = _merges(piece, inflate(piece, scheme, aim))
    clusters = _clusters(piece, order[:n_splits])
    first, stop = piece.stretches()
    labels = np.repeat(numbers, stop[clusters] - first[clusters])
    by_id = np.argsort(piece.ids)
    return Labels(piece.ids[by_id], labels[by_id])


def _merges(piece: Piece, live: MeanLiveTree) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The order of the merges of a piece, inflated, and the height of each of its unions, made monotone."""
    unions = 2 * np.arange(len(piece.children), dtype=np.int32) + 1
    height = live.tree.height.copy()
    kernels.shared.heights.make_monotone(live.tree, unions, height)
    found = live.scheme.height(height[unions])
    return np.lexsort([-np.arange(unions.size), -found]), found


def _clusters(piece: Piece, undone: NDArray[np.intp]) -> NDArray[np.intp]:
    """The nodes that are left when some unions are undone, in the order of their leaves."""
    is_left = np.zeros(piece.n_nodes, np.bool_)
    is_left[piece.roots()] = True
    is_left[piece.children[undone].ravel()] = True
    is_left[piece.n_leaves + undone] = False
    nodes = np.flatnonzero(is_left)
    return nodes[np.argsort(piece.stretches()[0][nodes])]


def _top_heights(
    scheme: Scheme, aim: Aim, children: NDArray[np.int32], places: list[tuple[int, int]], known: list[Heights]
) -> NDArray[np.float64]:
    """The heights of the unions of the top, in SciPy's units, none below a height under it."""
    roots = [subtrees(one.roots) for one in known]
    live = inflate(join(children, [roots[part][tree] for part, tree in places]), scheme, aim)
    zeta = live.tree.height[2 * np.arange(len(children)) + 1]
    height = [float(known[part].of_roots[tree]) for part, tree in places]
    for own, (a, b) in zip(scheme.height(zeta).tolist(), children.tolist(), strict=True):
        height.append(max(own, height[a], height[b]))
    return np.array(height[len(places) :])


def _numbers(
    children: NDArray[np.int32], places: list[tuple[int, int]], cuts: list[PartCut], opened: NDArray[np.intp]
) -> list[NDArray[np.int64]]:
    """The label of each cluster of each part, by first appearance: by the smallest number of a point in it.

    A subtree that is not cut is in one cluster with what the top has merged it with.
    """
    births = [part.birth.copy() for part in cuts]
    nodes = [int(cuts[part].roots[tree]) for part, tree in places]
    is_whole = [node < births[part].size for node, (part, _) in zip(nodes, places, strict=True)]
    k, is_open = len(places), set(opened.tolist())
    birth = [
        int(births[part][node]) if whole else NULL
        for node, whole, (part, _) in zip(nodes, is_whole, places, strict=True)
    ]
    for a, b in children.tolist():
        birth.append(min(birth[a], birth[b]))
    for j in range(len(children) - 1, -1, -1):
        if j not in is_open:
            for child in children[j].tolist():
                birth[child] = birth[k + j]
    for leaf, (part, _) in enumerate(places):
        if is_whole[leaf]:
            births[part][nodes[leaf]] = birth[leaf]
    every = np.unique(np.concatenate(births))
    return [np.searchsorted(every, one) for one in births]


def _top_nodes(found: Cut, nodes: list[NDArray[np.int64]], of_opened: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers in a linkage matrix of all nodes of the top; those that are not undone are in a cluster."""
    k = len(found.places)
    number = np.empty(k + len(found.children), np.int64)
    number[:k] = [nodes[part][found.parts[part].roots[tree]] for part, tree in found.places]
    for j, a in enumerate(found.children[:, 0].tolist()):
        number[k + j] = number[a]  # the cluster that all below it are in, unless it is undone
    number[k + found.opened] = of_opened
    return number

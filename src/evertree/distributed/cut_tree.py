"""Flat clusters and the upper merges of a tree in parts.

Merges are ordered by height, the highest first; at equal heights the top tree comes before the parts, these by number,
and in each parents come before children. A cut undoes the first merges. In each part these are the first of its own, so
that all it needs is their number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.distributed.dask_runner import Runner
from evertree.distributed.distributed_tree import DistributedTree
from evertree.distributed.parts import Part
from evertree.distributed.subtrees import STRIDE, Subtrees, collapse, join, to_live
from evertree.kernels.columns import NULL
from evertree.tree import Aim, MeanLiveTree
from evertree.tree.scheme import Scheme


class PartHeights(NamedTuple):
    """Heights in a part, in SciPy's units."""

    merges: NDArray[np.float64]  # of the first merges, in order
    of_roots: NDArray[np.float64]
    roots: Subtrees  # a stub for each subtree


class PartCut(NamedTuple):
    """A part cut into clusters. Its nodes are the clusters, then the merges that were undone, in order."""

    birth: NDArray[np.int64]  # (c,) the smallest insertion number in each cluster, in the order of leaves
    n_points: NDArray[np.int64]  # (c,)
    roots: NDArray[np.int32]  # the root of each subtree
    children: NDArray[np.int32]  # (n_splits, 2)
    height: NDArray[np.float64]  # (n_splits,) in SciPy's units


class TreeCut(NamedTuple):
    """A tree cut into clusters."""

    parts: list[PartCut]
    labels: list[NDArray[np.int64]]  # for each part, the label of each of its clusters
    places: list[tuple[int, int]]  # of each leaf of the top tree: which of the parts, and which subtree of it
    children: NDArray[np.int32]  # of the top tree
    opened: NDArray[np.intp]  # unions of the top tree that are undone, in order
    height: NDArray[np.float64]  # of all unions of the top tree

    @property
    def n_splits(self) -> list[int]:
        """The number of merges of each part that are undone."""
        return [part.height.size for part in self.parts]


def cut_tree(runner: Runner, tree: DistributedTree, n_clusters: int | None, height: float | None) -> TreeCut:
    """Cut a tree of at least one point into `n_clusters` clusters, or at a height."""
    scheme, aim, parts, top = tree.scheme, tree.aim, list(tree.handles.values()), tree.top
    position = {number: i for i, number in enumerate(tree.handles)}
    places = [(position[i // STRIDE], i % STRIDE) for i in top.ids.tolist()]
    most = None if n_clusters is None else n_clusters - 1
    known = runner.gather([runner.submit("heights", find_heights, part, scheme, aim, most, height) for part in parts])
    of_top = _top_heights(scheme, aim, top.children, places, known)
    # Parents come after children in postorder, and before them in the order of merges.
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
    return TreeCut(cuts, _labels(top.children, places, cuts, opened), places, top.children, opened, of_top)


def upper_merges(found: TreeCut) -> NDArray[np.float64]:
    """The merges that a cut undoes, as SciPy's linkage matrix over its clusters."""
    n_clusters = 1 + max((int(labels.max(initial=-1)) for labels in found.labels), default=-1)
    heights = np.concatenate([found.height[found.opened], *(part.height for part in found.parts)])
    rank = np.empty(heights.size, np.int64)
    rank[np.argsort(-heights, kind="stable")] = np.arange(heights.size)[::-1]  # the last merge is undone first
    begins = np.cumsum([found.opened.size, *found.n_splits])
    nodes = [
        np.concatenate([labels, n_clusters + rank[begin : begin + part.height.size]])
        for part, labels, begin in zip(found.parts, found.labels, begins.tolist(), strict=False)
    ]
    number = _top_nodes(found, nodes, n_clusters + rank[: found.opened.size])
    children = [number[found.children[found.opened]].reshape(-1, 2)]
    children += [node[part.children].reshape(-1, 2) for node, part in zip(nodes, found.parts, strict=True)]
    Z = np.empty((heights.size, 4))
    Z[rank, :2] = np.sort(np.concatenate(children), axis=1)
    Z[rank, 2] = heights
    count = np.zeros(n_clusters + heights.size, np.int64)
    for part, labels in zip(found.parts, found.labels, strict=True):
        np.add.at(count, labels, part.n_points)
    for j, (a, b) in enumerate(Z[:, :2].astype(np.int64).tolist()):
        count[n_clusters + j] = count[a] + count[b]
    Z[:, 3] = count[n_clusters:]
    return Z


def find_heights(part: Part, scheme: Scheme, aim: Aim, most: int | None, above: float | None) -> PartHeights:
    """The heights of the first merges of a part: at most `most`, or those above a height."""
    subtrees = part.subtrees
    live = to_live(subtrees, scheme, aim)
    order, height = _merges(subtrees, live)
    merges = height[order][:most]
    by_node = np.concatenate([np.zeros(subtrees.n_leaves), height])
    roots = collapse(subtrees, live, np.zeros(len(subtrees.children), np.bool_), 0)
    return PartHeights(merges if above is None else merges[merges > above], by_node[subtrees.roots()], roots)


def cut_part(part: Part, scheme: Scheme, aim: Aim, n_splits: int) -> PartCut:
    """Undo the first merges of a part."""
    subtrees = part.subtrees
    order, height = _merges(subtrees, to_live(subtrees, scheme, aim))
    undone = order[:n_splits]
    clusters, number = subtrees.cut_below(undone)
    first, stop = subtrees.leaf_ranges()
    birth = np.minimum.reduceat(subtrees.ids, first[clusters]) if clusters.size else np.empty(0, np.int64)
    children = number[subtrees.children[undone]].reshape(-1, 2)
    return PartCut(birth, stop[clusters] - first[clusters], number[subtrees.roots()], children, height[undone])


def label_part(
    part: Part, scheme: Scheme, aim: Aim, n_splits: int, labels: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The keys of a part, ascending, and the label of each, given those of its clusters."""
    subtrees = part.subtrees
    order, _ = _merges(subtrees, to_live(subtrees, scheme, aim))
    clusters, _ = subtrees.cut_below(order[:n_splits])
    first, stop = subtrees.leaf_ranges()
    of_leaves = np.repeat(labels, stop[clusters] - first[clusters])
    by_id = np.argsort(subtrees.ids)
    return subtrees.ids[by_id], of_leaves[by_id]


def _merges(subtrees: Subtrees, live: MeanLiveTree) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The order of the merges of a live tree, and the height of each of its unions, made monotone."""
    unions = 2 * np.arange(len(subtrees.children), dtype=np.int32) + 1
    height = live.tree.height.copy()
    kernels.shared.heights.make_monotone(live.tree, unions, height)
    found = live.scheme.height(height[unions])
    return np.lexsort([-np.arange(unions.size), -found]), found


def _top_heights(
    scheme: Scheme, aim: Aim, children: NDArray[np.int32], places: list[tuple[int, int]], known: list[PartHeights]
) -> NDArray[np.float64]:
    """The heights of the unions of the top tree, in SciPy's units, made monotone."""
    roots = [one.roots.split() for one in known]
    live = to_live(join(children, [roots[part][tree] for part, tree in places]), scheme, aim)
    zeta = live.tree.height[2 * np.arange(len(children)) + 1]
    height = [float(known[part].of_roots[tree]) for part, tree in places]
    for own, (a, b) in zip(scheme.height(zeta).tolist(), children.tolist(), strict=True):
        height.append(max(own, height[a], height[b]))
    return np.array(height[len(places) :])


def _labels(
    children: NDArray[np.int32], places: list[tuple[int, int]], cuts: list[PartCut], opened: NDArray[np.intp]
) -> list[NDArray[np.int64]]:
    """The label of each cluster of each part, by first appearance: by its smallest insertion number.

    A subtree that is not cut is in one cluster with those that the top tree merges it with.
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


def _top_nodes(found: TreeCut, nodes: list[NDArray[np.int64]], of_opened: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number in a linkage matrix of each node of the top tree, or of the cluster that it is in."""
    k = len(found.places)
    number = np.empty(k + len(found.children), np.int64)
    number[:k] = [nodes[part][found.parts[part].roots[tree]] for part, tree in found.places]
    for j, a in enumerate(found.children[:, 0].tolist()):
        number[k + j] = number[a]  # the cluster that all below it are in, unless it is undone
    number[k + found.opened] = of_opened
    return number

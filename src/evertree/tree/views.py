"""Reading a tree: heights, SciPy's matrix, flat clusters, the induced ultrametric. None of it changes the tree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.columns import NOISE
from evertree.errors import ParameterError
from evertree.tree.live import LiveTree


@dataclass(frozen=True)
class Merges:
    """The inner nodes from the lowest to the highest, children before parents: the merges of a dendrogram."""

    nodes: NDArray[np.int32]  # all nodes, children first
    inner: NDArray[np.int32]  # the inner nodes in order of height
    height: NDArray[np.float64]  # by node, in SciPy's units


def find_merges(live: LiveTree, monotone: bool = True) -> Merges:
    """Heights, made monotone by a running maximum, and the order of merges that they give. O(n m + n log n).

    Without that, children may come after parents.
    """
    nodes = live.nodes()
    height = np.empty(live.tree.parent.size)
    height[nodes] = live.scheme.height(live.linkage_values(nodes))
    if monotone:
        kernels.heights.make_monotone(live.tree, nodes, height)
    inner = nodes[nodes % 2 == 1]
    # Stable: at equal heights children stay before parents.
    return Merges(nodes, inner[np.argsort(height[inner], kind="stable")], height)


def linkage_matrix(live: LiveTree, leaves: NDArray[np.int32]) -> NDArray[np.float64]:
    """SciPy's Z, in which leaf i is ``leaves[i]``."""
    merges = find_merges(live)
    n, inner = leaves.size, merges.inner
    number = np.empty(live.tree.parent.size, np.int64)
    number[leaves] = np.arange(n)
    number[inner] = n + np.arange(inner.size)
    pairs = np.sort(np.column_stack([number[live.tree.left[inner]], number[live.tree.right[inner]]]), axis=1)
    _, first, stop = _spans(live, merges.nodes)
    return np.column_stack([pairs, merges.height[inner], stop[inner] - first[inner]]).astype(np.float64)


def cut(
    live: LiveTree, leaves: NDArray[np.int32], n_clusters: int | None, height: float | None, min_size: int
) -> NDArray[np.int64]:
    """The cluster of each of `leaves`, numbered by first appearance; NOISE for those in pieces below `min_size`.

    All merges above a height are undone. Or, of the merges of two clusters of at least `min_size` points each, the
    highest, so that there are `n_clusters` such clusters; or all of them, where neither is given.
    """
    merges = find_merges(live)
    _, first, stop = _spans(live, merges.nodes)
    count = stop - first
    is_split = np.zeros(live.tree.parent.size, np.bool_)
    if height is not None:
        is_split[merges.inner[merges.height[merges.inner] > height]] = True
    else:
        left, right = live.tree.left[merges.inner], live.tree.right[merges.inner]
        candidates = merges.inner[np.minimum(count[left], count[right]) >= min_size]
        most = candidates.size + 1 if leaves.size >= min_size else 0
        if n_clusters is not None and n_clusters > most:
            raise ParameterError(
                f"n_clusters must be at most {most}, as many as have {min_size} points or more; it is {n_clusters}"
            )
        n_splits = candidates.size if n_clusters is None else n_clusters - 1
        is_split[candidates[candidates.size - n_splits :]] = True
        kernels.cut.split_above(live.tree, merges.nodes, is_split)
    cluster = np.empty(live.tree.parent.size, np.int32)
    kernels.cut.find_clusters(live.tree, merges.nodes, is_split, cluster)
    found = cluster[leaves]
    return _numbered(found, count[found] < min_size)


def _numbered(cluster: NDArray[np.int32], is_noise: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Clusters numbered by first appearance, without those that are noise."""
    labels = np.full(cluster.size, NOISE, np.int64)
    _, first_seen, inverse = np.unique(cluster[~is_noise], return_index=True, return_inverse=True)
    rank = np.empty(first_seen.size, np.int64)
    rank[np.argsort(first_seen)] = np.arange(first_seen.size)
    labels[~is_noise] = rank[inverse]
    return labels


def cophenetic(live: LiveTree, leaves: NDArray[np.int32], monotone: bool) -> NDArray[np.float64]:
    """The height at which each pair of `leaves` meets, condensed (the matrix U of the paper's section 5.2).

    Ward's values and distances differ in their units, so for Ward the heights are those of average linkage on the
    dissimilarities, as in the paper. O(n²).
    """
    n = leaves.size
    merges = find_merges(live, monotone)
    condensed = np.empty(n * (n - 1) // 2)
    if n < 2:
        return condensed
    ordered, first, stop = _spans(live, merges.nodes)
    position = np.empty(live.tree.parent.size, np.int64)
    position[leaves] = np.arange(n)
    height = merges.height
    if live.scheme.linkage.name == "ward":
        d = live.dissimilarities(leaves)
        kernels.ultrametric.average_heights(live.tree, merges.inner, first, stop, ordered, position, d, height)
        if monotone:
            kernels.heights.make_monotone(live.tree, merges.nodes, height)
    kernels.ultrametric.spread_heights(live.tree, merges.inner, first, stop, ordered, position, height, condensed)
    return condensed


def purity(live: LiveTree, leaves: NDArray[np.int32], classes: NDArray[np.int64]) -> float:
    """Dendrogram purity for the given class numbers of `leaves`. O(n log n)."""
    nodes = live.nodes()
    ordered, first, stop = _spans(live, nodes)
    class_of = np.empty(live.tree.parent.size, np.int64)
    class_of[leaves] = classes
    counts = np.bincount(classes)
    n_pairs = float((counts * (counts - 1.0) / 2).sum())
    if n_pairs == 0:
        return 1.0
    zeros = np.zeros_like(counts)
    total = kernels.purity.sum_purity(live.tree, nodes, first, stop, class_of[ordered], zeros, zeros.copy())
    return float(total) / n_pairs


def _spans(live: LiveTree, nodes: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """All leaves in postorder, and for each node where those below it begin and end."""
    leaves = np.empty((nodes.size + 1) // 2, np.int32)
    first = np.empty(live.tree.parent.size, np.int32)
    stop = np.empty(live.tree.parent.size, np.int32)
    kernels.traverse.find_spans(live.tree, nodes, leaves, first, stop)
    return leaves, first, stop

"""The statistics of a cluster from those of its two parts (`eq.SufficientStatisticRecursion`)."""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import MeanTree
from evertree.kernels.compile import inline, kernel
from evertree.kernels.shared.linkage_values import linkage_value, value_of_sq
from evertree.kernels.shared.topology import children, is_leaf
from evertree.kernels.signatures import AnyLinkage, Ints
from evertree.kernels.statistics.means import merge_means
from evertree.kernels.statistics.sketches import merge_sketches

#: Exceeds what a radius can lose to rounding.
ROUNDED_UP = 1.0 + 1e-12


@inline
def merge_children(linkage, tree, u):
    """Compute row `u` of size, mean, variance, height, radius and birth from the children of `u`. O(m)."""
    a, b = children(tree, u)
    if tree.size[a] < tree.size[b]:  # a small step from the heavier one to the mean of both is more exact
        a, b = b, a
    size = tree.size[a] + tree.size[b]
    rest, share = tree.size[a] / size, tree.size[b] / size
    sq, sq_length = merge_means(tree.mean, u, a, b, share)
    length, distance = np.sqrt(sq_length), np.sqrt(sq)  # the mean of the union lies between those of the parts
    rounding = np.float64(np.finfo(tree.mean.dtype).eps) * length
    merge_sketches(tree, u, a, b, share, length, distance)
    tree.size[u] = size
    tree.variance[u] = rest * tree.variance[a] + share * tree.variance[b] + rest * share * sq
    tree.height[u] = value_of_sq(linkage, tree, a, b, sq)
    tree.radius[u] = rounding + ROUNDED_UP * max(tree.radius[a] + share * distance, tree.radius[b] + rest * distance)
    tree.birth[u] = min(tree.birth[a], tree.birth[b])


@inline
def merge_after_move(linkage, tree, v):
    """After a move, `v` is a new union, and its parent the same union of other parts: only its height changes. O(m)."""
    merge_children(linkage, tree, v)
    g = tree.parent[v]
    a, b = children(tree, g)
    tree.height[g] = linkage_value(linkage, tree, a, b)


@kernel
def merge_all(tree: MeanTree, linkage: AnyLinkage, nodes: Ints) -> None:
    """Compute the statistics of the inner nodes among `nodes`, children first. O(n m)."""
    for u in nodes:
        if not is_leaf(u):
            merge_children(linkage, tree, u)

"""Heights of nodes, and sums over them."""

from __future__ import annotations

import numpy as np

from evertree.kernels.compile import kernel
from evertree.kernels.linkage_values import average_value
from evertree.kernels.pair_values import value_between
from evertree.kernels.topology import is_leaf


@kernel
def make_monotone(tree, nodes, height):
    """Raise ``height[u]`` of each of `nodes`, which come children first, to that of its children. O(n)."""
    for u in nodes:
        if not is_leaf(u):
            height[u] = max(height[u], height[tree.left[u]], height[tree.right[u]])


@kernel
def sum_value_of_pairs(tree, average, nodes):
    """Σ over pairs of w_i w_j d(i, j) · (size of the node at which i and j meet), for all `nodes`. O(n² m).

    `average` is the tag of average linkage.
    """
    total = 0.0
    for u in nodes:
        if not is_leaf(u):
            a, b = tree.left[u], tree.right[u]
            total += tree.size[a] * tree.size[b] * tree.size[u] * value_between(average, tree, np.int64(a), np.int64(b))
    return total


@kernel
def sum_value(tree, nodes):
    """Σ over pairs of w_i w_j |x_i − x_j|² · (size of the node at which i and j meet), for all `nodes`. O(n m).

    The pairs that meet at a node are those between its children, so their sum is the average linkage of the children
    (`eq.AverageLinkSimple`) times both sizes.
    """
    total = 0.0
    for u in nodes:
        if not is_leaf(u):
            a, b = tree.left[u], tree.right[u]
            total += tree.size[a] * tree.size[b] * tree.size[u] * average_value(tree, a, b)
    return total

"""Heights of nodes, and sums over them."""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import AnyTree, Tree
from evertree.kernels.compile import kernel
from evertree.kernels.shared.partner_search import value_up_to
from evertree.kernels.shared.topology import is_leaf
from evertree.kernels.signatures import AverageLinkage, Floats, Ints


@kernel
def make_monotone(tree: Tree, nodes: Ints, height: Floats) -> None:
    """Raise ``height[u]`` of each of `nodes`, children first, to that of its children. O(n)."""
    for u in nodes:
        if not is_leaf(u):
            height[u] = max(height[u], height[tree.left[u]], height[tree.right[u]])


@kernel
def sum_value(tree: AnyTree, average: AverageLinkage, nodes: Ints) -> float:
    """Σ over pairs of w_i w_j d(i, j) · (size of the node at which i and j meet), for all `nodes`.

    The pairs that meet at a node are those between its children, so their sum is the average linkage of the children
    times both sizes: `average` is its tag. In a `MeanTree` dissimilarities are squared distances. O(n m) there, and
    O(n² m) in a `PairTree`.
    """
    total = 0.0
    for u in nodes:
        if not is_leaf(u):
            a, b = np.int64(tree.left[u]), np.int64(tree.right[u])
            total += tree.size[a] * tree.size[b] * tree.size[u] * value_up_to(average, tree, a, b, np.inf)
    return total

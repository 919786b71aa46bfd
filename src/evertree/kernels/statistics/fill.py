"""Points become leaves: fill all their columns in a tree of means, in one pass."""

from __future__ import annotations

from evertree.kernels.columns import TO_FIND, MeanTree, Search, Worklist
from evertree.kernels.compile import kernel
from evertree.kernels.shared.neighbours import forget_leaves
from evertree.kernels.shared.topology import new_leaf
from evertree.kernels.signatures import DataMatrix, Floats, Ints, LongInts


@kernel
def fill_leaves(
    tree: MeanTree, work: Worklist, search: Search, leaves: Ints, x: DataMatrix, weights: Floats, births: LongInts
) -> None:
    """Write the rows of `leaves`: row i of `x` with its weight and insertion number. O(m) each."""
    for i in range(leaves.size):
        u = leaves[i]
        for k in range(x.shape[1]):
            tree.mean[u, k] = x[i, k]
        tree.size[u] = weights[i]
        tree.birth[u] = births[i]
        tree.variance[u] = 0.0
        tree.height[u] = 0.0
        tree.radius[u] = 0.0
    work.state["inserted"][0] += leaves.size
    if search.fresh.size > 0:
        forget_leaves(search, leaves, TO_FIND)


@kernel
def add_leaves(
    tree: MeanTree, work: Worklist, search: Search, leaves: Ints, x: DataMatrix, weights: Floats, births: LongInts
) -> None:
    """Fill `leaves` with unused leaves, and write their rows as `fill_leaves` does."""
    for i in range(leaves.size):
        leaves[i] = new_leaf(tree)
    fill_leaves(tree, work, search, leaves, x, weights, births)

"""Points become leaves: fill all their columns in a tree of means, in one pass."""

from __future__ import annotations

from evertree.kernels.columns import TO_FIND, MeanTree, Search, Worklist
from evertree.kernels.compile import inline, kernel
from evertree.kernels.shared.neighbours import forget_leaf
from evertree.kernels.shared.topology import new_leaf
from evertree.kernels.signatures import DataMatrix, Floats, Ints, LongInts
from evertree.kernels.statistics.sketches import sketch_leaf


@inline
def fill_leaf(tree, work, search, u, x, weight, birth):
    """Write the row of leaf `u`: its point, weight and insertion number. O(m)."""
    for k in range(x.size):
        tree.mean[u, k] = x[k]
    sketch_leaf(tree, u)
    tree.size[u] = weight
    tree.birth[u] = birth
    tree.variance[u] = 0.0
    tree.height[u] = 0.0
    tree.radius[u] = 0.0
    work.state["inserted"][0] += 1
    forget_leaf(search, u, TO_FIND)


@kernel
def fill_leaves(
    tree: MeanTree, work: Worklist, search: Search, leaves: Ints, x: DataMatrix, weights: Floats, births: LongInts
) -> None:
    """Write the rows of `leaves`: row i of `x` with its weight and insertion number."""
    for i in range(leaves.size):
        fill_leaf(tree, work, search, leaves[i], x[i], weights[i], births[i])


@kernel
def add_leaves(
    tree: MeanTree, work: Worklist, search: Search, leaves: Ints, x: DataMatrix, weights: Floats, births: LongInts
) -> None:
    """Fill `leaves` with unused leaves, and write their rows as `fill_leaves` does."""
    for i in range(leaves.size):
        leaves[i] = new_leaf(tree)
    fill_leaves(tree, work, search, leaves, x, weights, births)

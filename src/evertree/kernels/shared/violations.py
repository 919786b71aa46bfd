"""Checks of the whole tree, in memory order. They read only the tree, and ignore the worklist."""

from __future__ import annotations

from evertree.kernels.columns import NULL, AnyTree
from evertree.kernels.compile import kernel
from evertree.kernels.shared.check import find_near, is_inverted
from evertree.kernels.signatures import AnyLinkage, Ints


@kernel
def find_violations(tree: AnyTree, linkage: AnyLinkage, found: Ints) -> int:
    """Fill `found` with the nodes at which homogeneity is violated; return how many there are.

    O(n m) with statistics; O(n² m) at most for pairs.
    """
    count = 0
    for row in range(tree.state["inner_top"][0]):
        v = 2 * row + 1
        if tree.parent[v] <= NULL:  # the root, or a free node
            continue
        if find_near(linkage, tree, linkage.tolerance, v) != NULL:
            found[count] = v
            count += 1
    return count


#: Checks that hold within δ make a Ward tree that is monotone within 2 δ, and both heights have rounding errors of
#: their own.
SLACK_OF_MONOTONICITY = 4.0


@kernel
def find_inversions(tree: AnyTree, linkage: AnyLinkage, found: Ints) -> int:
    """Fill `found` with the nodes that are above their parent (`def.treeMonotonicity`); return how many. O(n m)."""
    tolerance = SLACK_OF_MONOTONICITY * linkage.tolerance
    count = 0
    for row in range(tree.state["inner_top"][0]):
        v = 2 * row + 1
        if tree.parent[v] <= NULL:
            continue
        if is_inverted(linkage, tree, tolerance, v):
            found[count] = v
            count += 1
    return count

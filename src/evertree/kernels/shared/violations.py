"""Checks of the whole tree, in the order of memory. They read the tree alone and know nothing of a worklist."""

from __future__ import annotations

from evertree.kernels.columns import NULL
from evertree.kernels.compile import kernel
from evertree.kernels.shared.check import find_near, is_inverted


@kernel
def find_violations(tree, linkage, found):
    """Fill `found` with the nodes at which homogeneity is violated; return how many there are.

    O(n m) with statistics; O(n² m) at most for pairs.
    """
    count = 0
    for row in range(tree.state["inner_top"][0]):
        v = 2 * row + 1
        if tree.parent[v] <= NULL:  # the root, or a node that is free
            continue
        if find_near(linkage, tree, linkage.tolerance, v) != NULL:
            found[count] = v
            count += 1
    return count


#: Checks that hold within δ make a Ward tree that is monotone within 2 δ, and the two heights have their own rounding.
SLACK_OF_MONOTONICITY = 4.0


@kernel
def find_inversions(tree, linkage, found):
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

"""Checks of the whole tree, in the order of memory. They read the tree alone and know nothing of a worklist."""

from __future__ import annotations

from evertree.columns import INNER_TOP, NULL
from evertree.kernels.compile import kernel
from evertree.kernels.linkage_values import exceeds, linkage_value, nearer_child
from evertree.kernels.topology import sibling


@kernel
def find_violations(tree, linkage, found):
    """Fill `found` with the nodes at which homogeneity is violated; return how many there are. O(n m)."""
    count = 0
    for row in range(tree.state[INNER_TOP]):
        v = 2 * row + 1
        if tree.parent[v] <= NULL:  # the root, or a node that is free
            continue
        near = nearer_child(linkage, tree, linkage.tolerance, tree.left[v], tree.right[v], sibling(tree, v))
        if near != NULL:
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
    for row in range(tree.state[INNER_TOP]):
        v = 2 * row + 1
        if tree.parent[v] <= NULL:
            continue
        a, b, c = tree.left[v], tree.right[v], sibling(tree, v)
        height = linkage_value(linkage, tree, a, b)
        height_of_parent = linkage_value(linkage, tree, v, c)
        if exceeds(linkage, tree, tolerance, height, a, b, height_of_parent, v, c):
            found[count] = v
            count += 1
    return count

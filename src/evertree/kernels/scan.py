"""Checks of the whole tree. They read the tree alone and know nothing of a worklist."""

from __future__ import annotations

from evertree.columns import NULL
from evertree.kernels.compile import kernel
from evertree.kernels.linkage_values import exceeds, linkage_value, nearer_child
from evertree.kernels.topology import is_leaf, sibling


@kernel
def find_violations(tree, linkage, nodes, found):
    """Fill `found` with those of `nodes` at which homogeneity is violated; return how many. O(m) for each node."""
    count = 0
    for v in nodes:
        if is_leaf(v) or tree.parent[v] == NULL:
            continue
        near = nearer_child(linkage, tree, linkage.tolerance, tree.left[v], tree.right[v], sibling(tree, v))
        if near != NULL:
            found[count] = v
            count += 1
    return count


#: Checks that hold within δ make a Ward tree that is monotone within 2 δ, and the two heights have their own rounding.
SLACK_OF_MONOTONICITY = 4.0


@kernel
def find_inversions(tree, linkage, nodes, found):
    """Fill `found` with those of `nodes` that are above their parent (`def.treeMonotonicity`); return how many."""
    tolerance = SLACK_OF_MONOTONICITY * linkage.tolerance
    count = 0
    for v in nodes:
        if is_leaf(v) or tree.parent[v] == NULL:
            continue
        a, b, c = tree.left[v], tree.right[v], sibling(tree, v)
        height = linkage_value(linkage, tree, a, b)
        height_of_parent = linkage_value(linkage, tree, v, c)
        if exceeds(linkage, tree, tolerance, height, a, b, height_of_parent, v, c):
            found[count] = v
            count += 1
    return count

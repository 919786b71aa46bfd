"""The ultrametric that a tree induces (the matrix U of the paper's section 5.2). All in O(n²), the size of the result.

Leaves are numbered in postorder; ``position`` is the position of each among the live keys. The pairs that meet at a
node with children a and b are the range of a times the range of b.
"""

from __future__ import annotations

from evertree.kernels.columns import Tree
from evertree.kernels.compile import inline, kernel
from evertree.kernels.signatures import Floats, Ints, LongInts


@inline
def condensed_index(n, i, j):
    """The index of the pair i ≠ j in SciPy's condensed matrix."""
    if i > j:
        i, j = j, i
    return n * i - i * (i + 1) // 2 + (j - i - 1)


@kernel
def average_heights(
    tree: Tree,
    inner: Ints,
    first: Ints,
    stop: Ints,
    leaves: Ints,
    position: LongInts,
    dissimilarity: Floats,
    height: Floats,
) -> None:
    """Fill ``height[u]`` for each of `inner` with the average linkage (`eq.AverageLinkage`) between its children."""
    n = leaves.size
    for u in inner:
        a, b = tree.left[u], tree.right[u]
        total = 0.0
        for i in range(first[a], stop[a]):
            row = 0.0
            for j in range(first[b], stop[b]):
                d = dissimilarity[condensed_index(n, position[leaves[i]], position[leaves[j]])]
                row += tree.size[leaves[j]] * d
            total += tree.size[leaves[i]] * row
        height[u] = total / tree.size[a] / tree.size[b]


@kernel
def spread_heights(
    tree: Tree,
    inner: Ints,
    first: Ints,
    stop: Ints,
    leaves: Ints,
    position: LongInts,
    height: Floats,
    condensed: Floats,
) -> None:
    """Fill the condensed matrix with the height of the node at which each pair meets."""
    n = leaves.size
    for u in inner:
        a, b = tree.left[u], tree.right[u]
        for i in range(first[a], stop[a]):
            for j in range(first[b], stop[b]):
                condensed[condensed_index(n, position[leaves[i]], position[leaves[j]])] = height[u]

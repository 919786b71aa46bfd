"""Dendrogram purity, exactly, in O(n log n) whatever the number of classes."""

from __future__ import annotations

from evertree.kernels.columns import NULL, Tree
from evertree.kernels.compile import inline, kernel
from evertree.kernels.shared.topology import is_leaf, sibling
from evertree.kernels.signatures import Ints, LongInts


@inline
def heavy_child(tree, first, stop, u):
    """The child of `u` with more leaves."""
    a, b = tree.left[u], tree.right[u]
    return a if stop[a] - first[a] >= stop[b] - first[b] else b


@kernel
def sum_purity(
    tree: Tree, nodes: Ints, first: Ints, stop: Ints, classes: LongInts, n_of_class: LongInts, n_of_light: LongInts
) -> float:
    """Σ over pairs of the same class of the share of that class in the node at which the pair meets.

    `nodes` are in postorder, ``classes[i]`` is the class of the i-th leaf among them; `n_of_class` and `n_of_light` are
    zeros, one for each class. Each heavy path (always into the child with more leaves) is climbed once from its bottom,
    and at every node on it the leaves of the other child are added to the counts: each leaf is added O(log n) times.
    """
    total = 0.0
    for top in nodes:
        p = tree.parent[top]
        if p != NULL and heavy_child(tree, first, stop, p) == top:
            continue  # within a path: its top comes later
        u = top
        while not is_leaf(u):
            u = heavy_child(tree, first, stop, u)
        n_of_class[classes[first[u]]] += 1
        while u != top:
            p = tree.parent[u]
            light = sibling(tree, u)
            for i in range(first[light], stop[light]):
                n_of_light[classes[i]] += 1
            weighted_pairs = 0.0
            for i in range(first[light], stop[light]):
                c = classes[i]
                if n_of_light[c] > 0:
                    both = n_of_class[c] + n_of_light[c]
                    weighted_pairs += float(n_of_class[c]) * n_of_light[c] * both
                    n_of_class[c] = both
                    n_of_light[c] = 0
            total += weighted_pairs / (stop[p] - first[p])
            u = p
        for i in range(first[top], stop[top]):
            n_of_class[classes[i]] = 0
    return total

"""Flat clusters from a tree."""

from __future__ import annotations

from evertree.columns import NULL
from evertree.kernels.compile import kernel


@kernel
def split_above(tree, nodes, is_split):
    """Note that every node above one that is divided is divided too. O(n). `nodes` are all nodes, children first."""
    for u in nodes:
        p = tree.parent[u]
        if is_split[u] and p != NULL:
            is_split[p] = True


@kernel
def find_clusters(tree, nodes, is_split, cluster):
    """Fill ``cluster[u]`` with the topmost node above u that no split divides. O(n).

    `nodes` are all nodes, children first; ``is_split[u]`` says that u is divided.
    """
    for i in range(nodes.size - 1, -1, -1):
        u = nodes[i]
        p = tree.parent[u]
        cluster[u] = u if p == NULL or is_split[p] else cluster[p]

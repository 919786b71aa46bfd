"""Flat clusters from a tree."""

from __future__ import annotations

from evertree.kernels.columns import NULL
from evertree.kernels.compile import kernel


@kernel
def split_above(tree, nodes, is_split):
    """Note that every node above one that is divided is divided too. O(n). `nodes` are all nodes, children first."""
    for u in nodes:
        p = tree.parent[u]
        if is_split[u] and p != NULL:
            is_split[p] = True

"""Flat clusters from a tree."""

from __future__ import annotations

from evertree.kernels.columns import NULL, Tree
from evertree.kernels.compile import kernel
from evertree.kernels.signatures import Bools, Ints


@kernel
def split_above(tree: Tree, nodes: Ints, is_split: Bools) -> None:
    """Mark every node above a split node as split too. O(n). `nodes` are all nodes, children first."""
    for u in nodes:
        p = tree.parent[u]
        if is_split[u] and p != NULL:
            is_split[p] = True

"""Parts of the work on a `PairTree` that threads do at the same time, each with its own room to work in."""

from __future__ import annotations

import numpy as np

from evertree.columns import BLOCK
from evertree.kernels.compile import free_kernel
from evertree.kernels.pair_point import point_to_union
from evertree.kernels.pairs import evaluate
from evertree.kernels.search_pairs import add_members
from evertree.kernels.topology import is_leaf


@free_kernel
def measure_ahead(tree, linkage, rows, others, nodes, ahead):
    """Fill each line of `ahead` with the linkage between one of `rows`, which is about to come, and every node.

    `others` are the rows of the leaves in the tree, and of those that come with it; `nodes` are all in the tree,
    children first. O(n m) for each.
    """
    pairs = tree.pairs
    for t in range(0, others.size, BLOCK):
        some = others[t : t + BLOCK]
        for r in range(rows.size):
            evaluate(pairs, rows[r], some, pairs.block)
            for s in range(some.size):
                ahead[r, 2 * some[s]] = pairs.block[s]
    for u in nodes:
        if not is_leaf(u):
            a, b = tree.left[u], tree.right[u]
            for r in range(rows.size):
                ahead[r, u] = point_to_union(linkage, tree, a, b, ahead[r, a], ahead[r, b])


@free_kernel
def measure_members(tree, linkage, a, rows, start, stop):
    """Add members of `a` to its linkage to the leaves from row `start` to `stop`. See `search_pairs.add_members`."""
    add_members(linkage, tree, np.int64(a), rows, np.int64(start), np.int64(stop))

"""Work on a `PairTree` that threads share, each with its own workspace."""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import BLOCK, PairTree
from evertree.kernels.compile import inline, kernel
from evertree.kernels.pairwise.pairs import bounds, evaluate, measure_pivots
from evertree.kernels.pairwise.point import point_to_union
from evertree.kernels.pairwise.search import add_members
from evertree.kernels.shared.topology import is_leaf
from evertree.kernels.signatures import AnyLinkage, FloatCube, Ints

#: Points measured together: the data of more would not fit into the cache.
TOGETHER = 8


@inline
def evaluate_ahead(pairs, rows, others, ahead):
    """Fill `ahead` with the dissimilarities between `rows` and `others`. O(m) each."""
    for t in range(0, others.size, BLOCK):
        some = others[t : t + BLOCK]
        for r in range(rows.size):
            evaluate(pairs, rows[r], some, pairs.block)
            for s in range(some.size):
                for bound in range(ahead.shape[1]):
                    ahead[r, bound, 2 * some[s]] = pairs.block[s]


@inline
def bound_ahead(pairs, rows, others, ahead):
    """Fill `ahead` with bounds on the dissimilarities between `rows` and `others`; those to pivots are exact."""
    for r in range(rows.size):
        for t in range(others.size):
            ahead[r, 0, 2 * others[t]], ahead[r, 1, 2 * others[t]] = bounds(pairs, rows[r], others[t])
    evaluate_ahead(pairs, rows, pairs.pivots[: pairs.state["n_pivots"][0]], ahead)


@inline
def unite_ahead(linkage, tree, nodes, ahead):
    """Fill `ahead` for the inner nodes among `nodes` from the leaves (`eq.Recurrence`). O(n) per row."""
    for u in nodes:
        if not is_leaf(u):
            a, b = tree.left[u], tree.right[u]
            for r in range(ahead.shape[0]):
                for bound in range(ahead.shape[1]):
                    z_a, z_b = ahead[r, bound, a], ahead[r, bound, b]
                    ahead[r, bound, u] = point_to_union(linkage, tree, a, b, z_a, z_b)


@kernel
def measure_ahead(
    tree: PairTree, linkage: AnyLinkage, rows: Ints, others: Ints, mates: Ints, nodes: Ints, ahead: FloatCube
) -> None:
    """Fill `ahead` with bounds on the linkage between each of `rows`, about to be inserted, and every node.

    `mates` are all rows inserted together with these, `others` are the mates and the rows of the leaves in the tree;
    `nodes` are all nodes of the tree, children first. If there is room for one number instead of two bounds, it is
    exact. O(n) each, or O(n m) if exact.
    """
    pairs = tree.pairs
    for r in range(mates.size):  # each thread needs all of them, and computes the same
        measure_pivots(pairs, mates[r])
    for t in range(0, rows.size, TOGETHER):
        some, known = rows[t : t + TOGETHER], ahead[t : t + TOGETHER]
        if ahead.shape[1] == 2:
            bound_ahead(pairs, some, others, known)
        else:
            evaluate_ahead(pairs, some, others, known)
        unite_ahead(linkage, tree, nodes, known)


@kernel
def measure_members(tree: PairTree, linkage: AnyLinkage, a: int, rows: Ints, start: int, stop: int) -> None:
    """Add members of `a` to its linkage to the leaves from row `start` to `stop`. See `search_pairs.add_members`."""
    add_members(linkage, tree, np.int64(a), rows, np.int64(start), np.int64(stop))

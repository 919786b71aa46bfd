"""Pieces: clusters of the old tree that may go elsewhere.

Others then differ by them from old clusters, and values follow as with the point of the edit.
"""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import NULL, MeanTree, PairTree
from evertree.kernels.compile import choose, step
from evertree.kernels.pairwise.pairs import collect_rows, evaluate_leaves
from evertree.kernels.pairwise.search import with_member, without_members
from evertree.kernels.repair.rules import bound_of_union, follows_pieces

#: A cluster of more points is not compared with all others only because it may go elsewhere.
LARGEST_PIECE = 4


def _no_piece(linkage, tree, run, q):
    pass


def _piece_of_pairs(linkage, tree, run, q):
    j = run.state["n_pieces"][0]
    if follows_pieces(linkage) and j < run.piece_size.size and run.n_points[q] <= LARGEST_PIECE:
        measure_piece(linkage, tree, run, q, j)


#: Make old cluster `q` a piece, if there is room and it is small.
make_piece = choose("tree", {MeanTree: _no_piece, PairTree: _piece_of_pairs})


@step
def measure_piece(linkage, tree, run, q, j):
    """Compare old cluster `q` with all nodes of the old tree, and count it as piece `j`. O(|q| n m)."""
    rows = tree.pairs.rows[: collect_rows(tree, q, tree.pairs.rows)]
    run.piece_size[j] = compare_with_all(linkage, tree, run, rows, run.piece_value[j])
    run.state["n_pieces"][0] = j + 1
    n_points = run.n_points[q]
    p = q
    while p != NULL:
        run.n_points[p] -= n_points
        run.had[p] |= 1 << j
        p = run.parent[p]
    run.n_members[q], run.above[q], run.has[q] = 0, NULL, 1 << j


@step
def compare_with_all(linkage, tree, run, rows, value):
    """Fill `value` with ζ between the points of `rows` and every old node; return their size. O(n m) each."""
    pairs = tree.pairs
    run.state["patience"][0] -= rows.size * tree.state["n_points"][0]
    size = 0.0
    for i in rows:
        size += tree.size[2 * i]
    for u in range(0, 2 * tree.state["leaf_top"][0], 2):
        value[u] = without_members(linkage)
    for i in rows:
        share = tree.size[2 * i] / size
        start = np.int64(0)
        while start < tree.state["leaf_top"][0]:
            count, start = evaluate_leaves(tree, np.int64(i), start, np.int64(NULL))
            for k in range(count):
                u = 2 * pairs.some[k]
                value[u] = with_member(linkage, value[u], pairs.block[k], share)
    for u in run.order:
        a, b = run.left[u], run.right[u]
        value[u] = bound_of_union(linkage, value[a], value[b], run.size[a], run.size[b])
    return size

"""Incremental hierarchical clustering, IHC: insertion by local homogeneity (`tab.Insert`), then AHC (`tab.OHC`)."""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import NULL, UNLIMITED, AnyTree, MeanTree, PairTree, Worklist
from evertree.kernels.compile import choose, inline, kernel
from evertree.kernels.pairwise.path import take_in
from evertree.kernels.pairwise.point import measure_point, nearer_to_point
from evertree.kernels.shared.due_queue import note_due
from evertree.kernels.shared.homogenise import homogenise
from evertree.kernels.shared.linkage_values import nearer_child
from evertree.kernels.shared.topology import attach, is_leaf
from evertree.kernels.shared.worklist import push, refresh_up
from evertree.kernels.signatures import AnyLinkage, Ints


def _prepare_means(linkage, tree, i):
    pass


def _prepare_pairs(linkage, tree, i):
    if tree.state["root"][0] != NULL:
        measure_point(linkage, tree, i, True)


def _nearer_by_means(linkage, tree, k, i):
    return nearer_child(linkage, tree, linkage.tolerance, k, np.int64(i))


def _hang_by_means(linkage, tree, work, i, k):
    p = attach(tree, i, k)
    push(tree, work, i)
    push(tree, work, k)
    refresh_up(linkage, tree, work, np.int64(p), np.int64(NULL))
    note_due(tree, work, np.int64(i))  # at the height that their parent has now
    note_due(tree, work, np.int64(k))


#: Compute what insertion of leaf `i` needs to know about every node.
prepare = choose("tree", {MeanTree: _prepare_means, PairTree: _prepare_pairs})

#: The child of `k` that is closer to leaf `i` than to its own sibling, the closer of the two; NULL if none is.
nearer_to = choose("tree", {MeanTree: _nearer_by_means, PairTree: nearer_to_point})

#: Attach leaf `i` beside `k`; recompute its path; queue the dirty checks.
hang = choose("tree", {MeanTree: _hang_by_means, PairTree: take_in})


@inline
def find_place(tree, linkage, i):
    """The node K beside which leaf `i` belongs (`tab.Insert`).

    Start at the root. While K would be inhomogeneous with `i` as its sibling, go to its child that is closer to `i`.
    """
    k = tree.state["root"][0]
    while not is_leaf(k):
        near = nearer_to(linkage, tree, k, i)
        if near == NULL:
            break
        k = near
    return k


@inline
def insert_leaf(tree, work, linkage, i):
    """Insert leaf `i`, whose row is filled, where it belongs."""
    tree.state["n_points"][0] += 1
    prepare(linkage, tree, i)
    if tree.state["root"][0] == NULL:
        tree.state["root"][0] = i
    else:
        hang(linkage, tree, work, i, find_place(tree, linkage, i))


@inline
def insert_leaf_by_descent(tree, work, linkage, i):
    """Insert leaf `i` where it belongs, and make the tree homogeneous."""
    insert_leaf(tree, work, linkage, i)
    # As int64: literals would trigger another compilation.
    homogenise(tree, work, linkage, np.int64(UNLIMITED), np.int64(UNLIMITED))


@kernel
def insert_leaves(tree: AnyTree, work: Worklist, linkage: AnyLinkage, leaves: Ints) -> None:
    """Insert `leaves` one after the other, making the tree homogeneous after each."""
    for i in leaves:
        insert_leaf_by_descent(tree, work, linkage, i)

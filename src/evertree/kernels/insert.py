"""Incremental hierarchical clustering, IHC: insertion by local homogeneity (`tab.Insert`), then AHC (`tab.OHC`)."""

from __future__ import annotations

import numpy as np

from evertree.columns import N_POINTS, NULL, ROOT, UNLIMITED
from evertree.kernels.compile import inline, kernel
from evertree.kernels.homogenise import homogenise
from evertree.kernels.linkage_values import nearer_child
from evertree.kernels.topology import attach, is_leaf
from evertree.kernels.worklist import push, refresh


@inline
def find_place(tree, linkage, i):
    """The node K beside which leaf `i` belongs (`tab.Insert`). O(m) for each level.

    Start at the root. While K would be inhomogeneous with `i` as its sibling, go to its child that is closer to `i`.
    """
    k = tree.state[ROOT]
    while not is_leaf(k):
        near = nearer_child(linkage, tree, linkage.tolerance, tree.left[k], tree.right[k], np.int64(i))
        if near == NULL:
            break
        k = near
    return k


@inline
def insert_leaf(tree, work, linkage, i):
    """Hang leaf `i`, whose row is filled, where it belongs; compute its path anew; note the dirty checks."""
    tree.state[N_POINTS] += 1
    if tree.state[ROOT] == NULL:
        tree.state[ROOT] = i
        return
    k = find_place(tree, linkage, i)
    u = attach(tree, i, k)
    push(work, k)
    while u != NULL:
        refresh(tree, work, u)
        u = tree.parent[u]


@kernel
def insert_leaves(tree, work, linkage, leaves):
    """Insert `leaves` one after the other, making the tree homogeneous after each."""
    for i in leaves:
        insert_leaf(tree, work, linkage, i)
        # As int64, or literals would have it compiled once more.
        homogenise(tree, work, linkage, np.int64(UNLIMITED), np.int64(UNLIMITED))

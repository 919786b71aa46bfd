"""Deletion of points."""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import NULL, STALE, UNLIMITED, WAITS, MeanTree, PairTree, Search, Worklist
from evertree.kernels.compile import inline, kernel
from evertree.kernels.pairwise.path import let_go
from evertree.kernels.shared.homogenise import homogenise
from evertree.kernels.shared.neighbours import forget_leaf
from evertree.kernels.shared.topology import detach, hangs, sibling
from evertree.kernels.shared.worklist import push, refresh
from evertree.kernels.signatures import AnyLinkage, Ints


@inline
def mark_path(tree, work, u):
    """Mark `u` and its ancestors as stale, up to one that is already marked; count the stale children of each."""
    from_stale_child = False
    while u != NULL:
        was_stale = work.mark[u] & STALE
        work.mark[u] |= STALE
        if from_stale_child:
            work.mark[u] += WAITS
        if was_stale:
            return
        from_stale_child = True
        u = tree.parent[u]


@inline
def refresh_path(linkage, tree, work, u):
    """Recompute `u` and its ancestors, up to one that still waits for another child."""
    while u != NULL and work.mark[u] & STALE and work.mark[u] < WAITS:
        work.mark[u] &= 255 - STALE
        refresh(linkage, tree, work, u)
        u = tree.parent[u]
        if u != NULL:
            work.mark[u] -= WAITS


@kernel
def detach_leaves_of_pairs(tree: PairTree, work: Worklist, linkage: AnyLinkage, leaves: Ints) -> None:
    """Take `leaves` out of a tree of pairs one by one. O(n m) each, and more if a height must be recomputed.

    This happens if a point was decisive for the height, and always for minimax linkage: then the pairs of the node are
    compared, unless bounds decide. The leaves themselves stay allocated.
    """
    for i in leaves:
        let_go(linkage, tree, work, i)
        tree.state["n_points"][0] -= 1


@inline
def note_detached(tree, work, s):
    """Note what follows from the loss of a sibling of `s`, if it is in the tree: checks, and a path to recompute."""
    if hangs(tree, s):
        push(tree, work, s)
        push(tree, work, sibling(tree, s))
        mark_path(tree, work, tree.parent[s])


@inline
def refresh_above(linkage, tree, work, s):
    """Recompute the path above `s`, if it is in the tree."""
    if hangs(tree, s):
        refresh_path(linkage, tree, work, tree.parent[s])


@inline
def detach_leaf(tree, work, search, linkage, i):
    """As `detach_leaves`, for one."""
    forget_leaf(search, i, 0)
    s = detach(tree, i)
    tree.state["n_points"][0] -= 1
    note_detached(tree, work, s)
    refresh_above(linkage, tree, work, s)
    homogenise(tree, work, linkage, np.int64(UNLIMITED), np.int64(UNLIMITED))


@kernel
def detach_leaves(
    tree: MeanTree, work: Worklist, search: Search, linkage: AnyLinkage, leaves: Ints, siblings: Ints
) -> None:
    """Take `leaves` out of the tree, and make the moves that follow.

    O(m) for each node above any of them, no matter how many are below it, and more for moves.

    `siblings` is workspace for as many nodes. The leaves themselves stay allocated.
    """
    for i in range(leaves.size):
        forget_leaf(search, leaves[i], 0)
        siblings[i] = detach(tree, leaves[i])
    tree.state["n_points"][0] -= leaves.size
    # A sibling that is no longer attached was detached or freed later in the loop, and then the node that took its
    # place is among the siblings too.
    for s in siblings:
        note_detached(tree, work, s)
    for s in siblings:
        refresh_above(linkage, tree, work, s)
    homogenise(tree, work, linkage, np.int64(UNLIMITED), np.int64(UNLIMITED))

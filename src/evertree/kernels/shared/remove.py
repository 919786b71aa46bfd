"""Deletion of points."""

from __future__ import annotations

from evertree.kernels.columns import NULL, STALE, WAITS, MeanTree, PairTree, Worklist
from evertree.kernels.compile import inline, kernel
from evertree.kernels.pairwise.path import let_go
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


@kernel
def detach_leaves(tree: MeanTree, work: Worklist, linkage: AnyLinkage, leaves: Ints, siblings: Ints) -> None:
    """Take `leaves` out of the tree. O(m) for each node above any of them, no matter how many are below it.

    `siblings` is workspace for as many nodes. The leaves themselves stay allocated.
    """
    for i in range(leaves.size):
        siblings[i] = detach(tree, leaves[i])
    tree.state["n_points"][0] -= leaves.size
    # A sibling that is no longer attached was detached or freed later in the loop, and then the node that took its
    # place is among the siblings too.
    for s in siblings:
        if hangs(tree, s):
            push(work, s)
            push(work, sibling(tree, s))
            mark_path(tree, work, tree.parent[s])
    for s in siblings:
        if hangs(tree, s):
            refresh_path(linkage, tree, work, tree.parent[s])

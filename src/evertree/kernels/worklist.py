"""The worklist: which checks may have changed."""

from __future__ import annotations

from evertree.columns import NULL, PENDING, QUEUED
from evertree.kernels.compile import inline, kernel
from evertree.kernels.statistics import merge_children
from evertree.kernels.topology import is_leaf, sibling


@inline
def push(work, u):
    """Note that the check at `u` may have changed. No node and leaves have no check. O(1)."""
    if u == NULL or is_leaf(u) or work.mark[u] & QUEUED:
        return
    work.mark[u] |= QUEUED
    work.stack[work.state[PENDING]] = u
    work.state[PENDING] += 1


@inline
def pop(work):
    """Take the node that came last. O(1)."""
    work.state[PENDING] -= 1
    u = work.stack[work.state[PENDING]]
    work.mark[u] &= 255 - QUEUED
    return u


@inline
def refresh(tree, work, u):
    """Compute the statistics of `u` from its children; the checks that read them are at `u` and beside it. O(m)."""
    merge_children(tree, u)
    push(work, u)
    push(work, sibling(tree, u))


@kernel
def push_bottom_up(work, nodes):
    """Note all of `nodes`, which come children first, so that the lowest are checked first."""
    for i in range(nodes.size - 1, -1, -1):
        push(work, nodes[i])

"""The worklist: which checks may have changed."""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import NULL, QUEUED, Tree, Worklist
from evertree.kernels.compile import inline, kernel, short_step, step
from evertree.kernels.shared.due_queue import note_due
from evertree.kernels.shared.topology import is_leaf, sibling
from evertree.kernels.signatures import Ints
from evertree.kernels.statistics.merge import merge_children


@short_step
def push(tree, work, u):
    """Note that the check at `u` may have changed, and a blocking pair with it may have arisen. O(1).

    Leaves have no check, and NULL has neither.
    """
    note_due(tree, work, u)
    if u != NULL and not is_leaf(u) and not work.mark[u] & QUEUED:
        put_back(work, u)


@inline
def put_back(work, u):
    """Put inner node `u`, which was popped, on the stack again. O(1)."""
    work.mark[u] |= QUEUED
    work.stack[work.state["pending"][0]] = u
    work.state["pending"][0] += 1


@inline
def pop(work):
    """Pop the node that was pushed last. O(1)."""
    work.state["pending"][0] -= 1
    u = work.stack[work.state["pending"][0]]
    work.mark[u] &= 255 - QUEUED
    return np.int64(u)


@inline
def pop_lowest(tree, work):
    """Pop the node whose parent is the smallest cluster. Linear in the number of nodes waiting."""
    lowest = 0
    for k in range(1, work.state["pending"][0]):
        p, q = tree.parent[work.stack[k]], tree.parent[work.stack[lowest]]
        if p <= NULL or (q > NULL and tree.size[p] < tree.size[q]):
            lowest = k
    last = work.state["pending"][0] - 1
    work.stack[lowest], work.stack[last] = work.stack[last], work.stack[lowest]
    return pop(work)


@inline
def refresh(linkage, tree, work, u):
    """Compute the statistics of `u` from its children; queue the checks that read them, at `u` and beside it. O(m)."""
    merge_children(linkage, tree, u)
    push(tree, work, u)
    push(tree, work, sibling(tree, u))


@step
def refresh_up(linkage, tree, work, u, stop):
    """Recompute `u` and all above it, up to the child of `stop`; queue the dirty checks. O(m depth)."""
    while u != stop:
        refresh(linkage, tree, work, u)
        u = np.int64(tree.parent[u])


@kernel
def push_bottom_up(tree: Tree, work: Worklist, nodes: Ints) -> None:
    """Queue all of `nodes`, given children first, so that the lowest are checked first."""
    for i in range(nodes.size - 1, -1, -1):
        push(tree, work, nodes[i])

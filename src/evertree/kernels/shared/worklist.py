"""The worklist: which checks may have changed."""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import DUE, LOST, NULL, QUEUED, Worklist
from evertree.kernels.compile import inline, kernel, short_step, step
from evertree.kernels.shared.topology import is_leaf, sibling
from evertree.kernels.signatures import Ints
from evertree.kernels.statistics.merge import merge_children


@inline
def note_recent(recent, u):
    """Add `u` to a list of what is to be done, if that is complete and has room. O(1)."""
    count = recent[0]
    if count == recent.size - 1:
        recent[0] = LOST
    elif count != LOST:
        recent[count + 1] = u
        recent[0] = count + 1


@step
def next_recent(recent, flag, start):
    """The first of those in a list whose flag is set, in memory order from `start` on and then from 0; NULL if none is.

    The others are dropped. O(N_RECENT).
    """
    count, best, first = 0, np.int64(NULL), np.int64(NULL)
    for k in range(1, recent[0] + 1):
        u = np.int64(recent[k])
        if flag[u]:
            count += 1
            recent[count] = u
            if first == NULL or u < first:
                first = u
            if u >= start and (best == NULL or u < best):
                best = u
    recent[0] = count
    return first if best == NULL else best


@inline
def note_due(work, u):
    """Note that a blocking pair with `u` may have arisen. O(1)."""
    if u != NULL and work.due[u] != DUE:
        if not work.due[u]:
            work.state["due"][0] += 1
        work.due[u] = DUE
        note_recent(work.recent, u)


@inline
def clear_due(work, u):
    """Note that `u` has been searched."""
    work.due[u] = 0
    work.state["due"][0] -= 1
    if work.state["due"][0] == 0:
        work.recent[0] = 0


@short_step
def push(work, u):
    """Note that the check at `u` may have changed, and a blocking pair with it may have arisen. O(1).

    Leaves have no check, and NULL has neither.
    """
    note_due(work, u)
    if u == NULL or is_leaf(u) or work.mark[u] & QUEUED:
        return
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
    push(work, u)
    push(work, sibling(tree, u))


@step
def refresh_up(linkage, tree, work, u, stop):
    """Recompute `u` and all above it, up to the child of `stop`; queue the dirty checks. O(m depth)."""
    while u != stop:
        refresh(linkage, tree, work, u)
        u = np.int64(tree.parent[u])


@kernel
def push_bottom_up(work: Worklist, nodes: Ints) -> None:
    """Queue all of `nodes`, given children first, so that the lowest are checked first."""
    for i in range(nodes.size - 1, -1, -1):
        push(work, nodes[i])

"""Values of pairs of the largest clusters, which are kept from edit to edit: each such cluster has a slot."""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import NULL
from evertree.kernels.compile import inline, step
from evertree.kernels.pairwise.check import LARGEST_ERROR
from evertree.kernels.pairwise.path import ERROR_OF_RECURRENCE
from evertree.kernels.repair.events import next_level
from evertree.kernels.repair.rules import bound_of_union, unites_exactly
from evertree.kernels.repair.state import SLOTS_EACH, VACANT

#: The clusters that have slots may become more by this factor.
MORE_SLOTS = 1.25


@step
def present_value(linkage, run, p, q):
    """ζ of two old clusters that are still there, be it in others, and its error; infinite if it is unknown."""
    s, t = run.top.slot[p], run.top.slot[q]
    if s != NULL and t != NULL and run.top.error[s, t] <= LARGEST_ERROR:
        return run.top.value[s, t], run.top.error[s, t]
    return known_value(linkage, run, p, q)


@step
def known_value(linkage, run, p, q):
    """ζ of two nodes of the old tree, and its error; infinite if it is unknown."""
    s, t = run.slot[p], run.slot[q]
    if s == NULL or t == NULL:
        return 0.0, np.inf
    if not run.top.error[s, t] <= LARGEST_ERROR:
        first = p if run.rank[p] < run.rank[q] else q
        if not run.is_followed[first]:
            follow_values(linkage, run, first)
    return run.top.value[s, t], run.top.error[s, t]


@step
def follow_values(linkage, run, p):
    """Find ζ between old node `p` and those that were born after it had merged, from values to their parts.

    O(n_slots).
    """
    top, s = run.top, run.slot[p]
    run.is_followed[p] = 1
    if not unites_exactly(linkage):
        return
    for k in range(run.rank[p] + 1, run.order.size):
        u = run.order[k]
        a, b, t = run.slot[run.left[u]], run.slot[run.right[u]], run.slot[u]
        if a == NULL or b == NULL or t == NULL or top.error[s, t] <= LARGEST_ERROR:
            continue
        error = max(top.error[s, a], top.error[s, b])
        if error <= LARGEST_ERROR:
            top.value[s, t] = top.value[t, s] = bound_of_union(
                linkage, top.value[s, a], top.value[s, b], run.size[run.left[u]], run.size[run.right[u]]
            )
            top.error[s, t] = top.error[t, s] = error


@inline
def note_value(run, u, v, value, error):
    """Keep ζ of two nodes, if both have slots."""
    if run.top.node.size > 0:
        s, t = run.top.slot[u], run.top.slot[v]
        if s != NULL and t != NULL:
            run.top.value[s, t] = run.top.value[t, s] = value
            run.top.error[s, t] = run.top.error[t, s] = error


@step
def give_slot(run, u):
    """Give node `u` a slot, if one is free. O(n_slots)."""
    top = run.top
    for s in range(top.node.size):
        if top.node[s] == NULL:
            top.node[s], top.slot[u] = u, s
            for t in range(top.node.size):
                top.error[s, t] = top.error[t, s] = np.inf
            return


@inline
def has_slots_now(run):
    """Whether all clusters are to have slots from now on: no merge up to the level from which on they do is left."""
    n_top = run.top.node.size // SLOTS_EACH
    if run.top.level[0] == -np.inf:
        return run.state["n_alive"][0] <= n_top
    first = run.event[0] if run.state["n_events"][0] > 0 else np.inf
    return min(next_level(run), first) > run.top.level[0] and run.state["n_alive"][0] <= MORE_SLOTS * n_top


@inline
def is_known(linkage, tree, run, c, u):
    """Whether ζ of two clusters that are alive need not be computed; if so, it is noted."""
    value, error = 0.0, np.inf
    for a, b in ((c, u), (u, c)):
        if run.row[a] != NULL and run.is_exact[run.row[a], b] != 0:
            value, error = run.value[run.row[a], b], ERROR_OF_RECURRENCE
    if not error <= LARGEST_ERROR and not run.is_new[c] and not run.is_new[u]:
        value, error = present_value(linkage, run, c, u)
    if not error <= LARGEST_ERROR:
        return False
    note_value(run, c, u, value, error)
    return True


@inline
def set_value(run, c, u, value):
    """Write ζ to the rows of two clusters, if they have rows."""
    for a, b in ((c, u), (u, c)):
        if run.row[a] != NULL:
            run.value[run.row[a], b] = value
            run.is_exact[run.row[a], b] = 1


@inline
def raise_bound(run, c, u, bound):
    """Write a lower bound on ζ(c, u) to the row of `c`, if it has one that says less."""
    if run.row[c] != NULL:
        run.value[run.row[c], u] = max(run.value[run.row[c], u], bound)


@inline
def vacate(run, u):
    """Node `u` becomes another cluster, without a slot; that of the old one stays as it is."""
    if run.top.slot[u] != NULL:
        run.top.node[run.top.slot[u]] = VACANT
        run.top.slot[u] = NULL


@step
def free_slots(run):
    """Free the slots of old clusters that are no longer there. O(n_slots)."""
    for s in range(run.top.node.size):
        if run.top.node[s] == VACANT:
            run.top.node[s] = NULL

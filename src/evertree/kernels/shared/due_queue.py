"""The queue of the nodes that are due for a search: the lowest merges first, as in batch clustering.

A graft changes the clusters above it. Were these searched before, it would be in vain. Parents need only roughly be
in order: there is a list for each *level*, a quarter of an octave of heights, and what is due comes and goes in O(1).
"""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import BITS_BELOW_LEVELS, DUE, N_LEVELS, NULL, Tree, Worklist
from evertree.kernels.compile import inline, kernel, short_step
from evertree.kernels.shared.topology import hangs
from evertree.kernels.signatures import Ints, ShortInts


@short_step
def level_of(tree, u):
    """The level of the parent of `u`. O(1)."""
    p = tree.parent[u]
    if not tree.height[p] > 0.0:
        return np.int64(0)
    return np.float64(tree.height[p]).view(np.int64) >> BITS_BELOW_LEVELS


@inline
def link(work, u, level):
    """Put `u` first in the list of a level. O(1)."""
    after = work.first[level]
    work.level[u] = level
    work.earlier[u] = NULL
    work.later[u] = after
    if after != NULL:
        work.earlier[after] = u
    work.first[level] = u
    work.state["lowest"][0] = min(work.state["lowest"][0], level)


@inline
def unlink(work, u):
    """Take `u` out of its list. O(1)."""
    before, after = work.earlier[u], work.later[u]
    if before == NULL:
        work.first[work.level[u]] = after
    else:
        work.later[before] = after
    if after != NULL:
        work.earlier[after] = before


@short_step
def note_due(tree, work, u):
    """Note that a blocking pair with `u`, if it is below the root, may have arisen. O(1)."""
    if u == NULL or tree.parent[u] <= NULL:
        return
    level = level_of(tree, u)
    was_due = work.due[u]
    work.due[u] = DUE
    if not was_due:
        work.state["due"][0] += 1
    elif work.level[u] == level:
        return
    else:
        unlink(work, u)
    link(work, u, level)


@inline
def clear_due(work, u):
    """Note that `u`, which is due, has been searched. O(1)."""
    unlink(work, u)
    work.due[u] = 0
    work.state["due"][0] -= 1


@short_step
def is_to_be_searched(tree, work, u, level):
    """Whether `u`, which is due on a level, is to be searched now.

    If its parent has risen it goes to the list of a higher level; if it left the tree or became the root it is not due.
    """
    if not hangs(tree, u) or u == tree.state["root"][0]:
        clear_due(work, u)
        return False
    now = level_of(tree, u)
    if now > level:
        unlink(work, u)
        link(work, u, now)
        return False
    return True


@inline
def next_due(tree, work):
    """A node on the lowest level on which any is due; NULL if there is none. It stays due."""
    while work.state["due"][0] > 0:
        level = work.state["lowest"][0]
        u = np.int64(work.first[level])
        if u == NULL:
            work.state["lowest"][0] += 1
        elif is_to_be_searched(tree, work, u, level):
            return u
    return np.int64(NULL)


@kernel
def note_each(tree: Tree, work: Worklist, nodes: Ints) -> None:
    """Note that blocking pairs with `nodes` may have arisen. O(1) each."""
    for u in nodes:
        note_due(tree, work, np.int64(u))


@kernel
def list_lowest(tree: Tree, work: Worklist, nodes: Ints) -> int:
    """Fill `nodes` with those that are due, from the lowest level on, until it is full; return how many."""
    count, level = 0, np.int64(work.state["lowest"][0])
    while count < nodes.size and level < N_LEVELS:
        u = np.int64(work.first[level])
        while u != NULL and count < nodes.size:
            after = np.int64(work.later[u])
            if is_to_be_searched(tree, work, u, level):
                nodes[count] = u
                count += 1
            u = after
        level += 1
    return count


@inline
def clear_all_due(work):
    """Empty the queue. Linear in the number of nodes that are due."""
    if work.state["due"][0] == 0:
        return
    for level in range(work.state["lowest"][0], N_LEVELS):
        u = np.int64(work.first[level])
        while u != NULL:
            work.due[u] = 0
            u = np.int64(work.later[u])
        work.first[level] = NULL
    work.state["due"][0] = 0


@kernel
def queue_flagged(tree: Tree, work: Worklist, nodes: Ints) -> None:
    """Make the queue anew, of those of `nodes` that are flagged as due: the first of them come last on a level."""
    work.first[:] = NULL
    work.state["due"][0] = 0
    for u in nodes:
        if work.due[u] and tree.parent[u] > NULL:
            work.state["due"][0] += 1
            link(work, np.int64(u), level_of(tree, np.int64(u)))


@kernel
def queue_again(work: Worklist, nodes: Ints, levels: ShortInts) -> None:
    """Make the queue as it was when `list_queue` filled `nodes` and `levels`."""
    work.first[:] = NULL
    for k in range(nodes.size - 1, -1, -1):
        work.due[nodes[k]] = DUE
        link(work, np.int64(nodes[k]), np.int64(levels[k]))
    work.state["due"][0] = nodes.size


@kernel
def list_queue(work: Worklist, nodes: Ints, levels: ShortInts) -> None:
    """Fill `nodes` with all in the queue, in order, and `levels` with where they are."""
    count = 0
    for level in range(N_LEVELS):
        u = work.first[level]
        while u != NULL:
            nodes[count], levels[count] = u, level
            count += 1
            u = work.later[u]

"""Lists of near points, which searches fill along the way and follow later: the tree needs no other index."""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import (
    BOTH_LISTS,
    LOST,
    NO_LIST,
    NULL,
    TO_EXCHANGE,
    TO_FIND,
    MeanTree,
    PairTree,
    Search,
    Tree,
)
from evertree.kernels.compile import choose, inline, kernel, short_step, step
from evertree.kernels.pairwise.pairs import dissimilarity
from evertree.kernels.shared.due_queue import note_due
from evertree.kernels.shared.topology import hangs
from evertree.kernels.signatures import Floats, IntMatrix, Ints
from evertree.kernels.statistics.means import sq_dist

#: A leaf that is nearer than all before by this factor shows that they were the wrong ones. As each time the distance
#: falls by it, this ends.
NEARER = 0.9


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


@short_step
def note_in(near, near_value, row, j, value):
    """Put leaf `j` on the list in a row if it is nearer than the last there; return whether it is by far the nearest.

    O(N_NEAR).
    """
    k = near.shape[1] - 1
    before = np.float64(near_value[row, 0])
    # As it will be stored, so that what is as far as another is not nearer; beyond the largest number, all are equal.
    value = np.float64(near_value.dtype.type(min(value, np.float64(np.finfo(near_value.dtype).max))))
    if not value < near_value[row, k]:
        return False
    for t in range(near.shape[1]):
        if near[row, t] == j:
            return False
    while k > 0 and near_value[row, k - 1] > value:
        near[row, k] = near[row, k - 1]
        near_value[row, k] = near_value[row, k - 1]
        k -= 1
    near[row, k] = j
    near_value[row, k] = value
    return value < NEARER * before


@inline
def note_one(search, i, j, value):
    """As `note_in`, for the list of leaf `i`."""
    return note_in(search.near, search.near_value, i >> 1, j, value)


@inline
def note_near(search, i, j, value):
    """Put leaves `i` and `j` on each other's lists, at distance `value`. O(N_NEAR)."""
    note_one(search, i, j, value)
    note_one(search, j, i, value)


@inline
def note_met(search, i, j, value):
    """Note that leaf `i` has met leaf `j`, on the lists that ``notes`` selects. O(N_NEAR)."""
    if search.state["notes"][0] != NO_LIST:
        note_one(search, i, j, value)
    if search.state["notes"][0] == BOTH_LISTS:
        note_one(search, j, i, value)


@inline
def note_found(search, i, j, value):
    """The same in a search for a partner of `i`. If one is by far the nearest to the other, that went the wrong way.

    Then its list is to ask again, among the right points, and the leaf is to search again.
    """
    if search.state["notes"][0] == BOTH_LISTS:
        if note_one(search, i, j, value):
            set_fresh(search, i >> 1, TO_EXCHANGE)
        if note_one(search, j, i, value):
            set_fresh(search, j >> 1, TO_EXCHANGE)
    else:
        note_met(search, i, j, value)


@inline
def set_fresh(search, row, steps):
    """Set how many steps the list of a row is from being good."""
    if steps > 0 and search.fresh[row] == 0:
        note_recent(search.recent, row)
    search.state["fresh"][0] += steps - np.int64(search.fresh[row])
    search.fresh[row] = steps
    if search.state["fresh"][0] == 0:
        search.recent[0] = 0


@inline
def forget_near(search, i, steps):
    """Empty the list of leaf `i`, which holds another point now. O(N_NEAR)."""
    row = i >> 1
    for k in range(search.near.shape[1]):
        search.near[row, k] = NULL
        search.near_value[row, k] = np.inf
    set_fresh(search, row, steps)


def _between_means(tree, i, j):
    return np.sqrt(sq_dist(tree.mean, i, j))


def _between_points(tree, i, j):
    return dissimilarity(tree.pairs, i >> 1, j >> 1)


#: How far two leaves are from each other: what lists are sorted by.
between = choose("tree", {MeanTree: _between_means, PairTree: _between_points})


@inline
def may_enter(search, i, least):
    """Whether a point that is at least that far from leaf `i` may enter its list."""
    return least < search.near_value[i >> 1, search.near.shape[1] - 1]


@inline
def begin_search(search):
    """Begin a search: a new stamp marks the nodes that it has seen."""
    search.state["stamp"][0] += 1
    if search.state["stamp"][0] == 2**31 - 1:
        for u in range(search.seen.size):
            search.seen[u] = 0
        search.state["stamp"][0] = 1
    return search.state["stamp"][0]


@step
def ask_neighbours(tree, search, i):
    """Drop removed points from the list of leaf `i`, and offer it the neighbours of its neighbours. O(N_NEAR² m)."""
    stamp = begin_search(search)
    search.seen[i] = stamp
    count = 0
    for k in range(search.near.shape[1]):
        j = np.int64(search.near[i >> 1, k])
        if j != NULL and hangs(tree, j):
            search.seen[j] = stamp
            search.stack[count] = j
            count += 1
    forget_near(search, i, np.int64(search.fresh[i >> 1]))
    for c in range(count):  # another point may have replaced a removed one
        j = np.int64(search.stack[c])
        note_one(search, i, j, between(tree, i, j))
    for c in range(count):
        row = search.stack[c] >> 1
        for k in range(search.near.shape[1]):
            j = np.int64(search.near[row, k])
            if j != NULL and search.seen[j] != stamp and hangs(tree, j):
                search.seen[j] = stamp
                note_near(search, i, j, between(tree, i, j))


@inline
def improve_lists(linkage, tree, work, search, find, max_steps):
    """Take up to `max_steps` steps towards good lists for all points; `find` fills an empty list. Return how many.

    A list that is not empty improves when neighbours of neighbours are asked, and twice is enough. If that was needed,
    the leaf is due for a search.
    """
    end = tree.state["leaf_top"][0]
    row = search.state["fresh_row"][0]
    steps = 0
    while search.state["fresh"][0] > 0 and steps < max_steps:
        if row >= end:
            row = 0
        if search.recent[0] != LOST:
            row = next_recent(search.recent, search.fresh, row)
            if row == NULL:
                search.recent[0], row = LOST, 0
                continue
        if search.fresh[row] > 0:
            i = np.int64(2 * row)
            if not hangs(tree, i):
                set_fresh(search, row, 0)
            else:
                if search.fresh[row] == TO_FIND:
                    set_fresh(search, row, find(linkage, tree, search, i))
                else:
                    if search.fresh[row] == TO_EXCHANGE:
                        note_due(tree, work, i)
                    ask_neighbours(tree, search, i)
                    set_fresh(search, row, np.int64(search.fresh[row]) - 1)
                steps += 1
        row += 1
    search.state["fresh_row"][0] = row
    return steps


@inline
def forget_leaf(search, i, steps):
    """Empty the list of leaf `i`, if there are lists: it holds another point now, and leaves near it must ask again."""
    if search.fresh.size > 0:
        for k in range(search.near.shape[1]):
            j = search.near[i >> 1, k]
            if j != NULL and search.fresh[j >> 1] == 0:
                set_fresh(search, j >> 1, 1)
        forget_near(search, i, steps)


@kernel
def list_near(search: Search, leaves: Ints, condensed: Floats) -> None:
    """Fill the lists of `leaves` from the values of all pairs of them, in SciPy's order. O(n²)."""
    for i in leaves:
        forget_near(search, i, 0)
    t = 0
    for a in range(leaves.size):
        for b in range(a + 1, leaves.size):
            note_near(search, leaves[a], leaves[b], condensed[t])
            t += 1


@kernel
def list_some(tree: MeanTree, search: Search, leaves: Ints, near: IntMatrix) -> None:
    """Fill the lists of `leaves` from rows of others that are near them. O(m) each."""
    for i in range(leaves.size):
        forget_near(search, leaves[i], 0)
        for j in near[i]:
            note_one(search, leaves[i], j, between(tree, leaves[i], j))


@kernel
def forget_leaves(search: Search, leaves: Ints, steps: int) -> None:
    """Empty the lists of `leaves`."""
    for i in leaves:
        forget_leaf(search, i, steps)


@kernel
def forget_all(tree: Tree, search: Search, steps: int) -> None:
    """Empty all lists."""
    for row in range(tree.state["leaf_top"][0]):
        forget_near(search, 2 * row, steps if tree.state["root"][0] != NULL and hangs(tree, 2 * row) else 0)

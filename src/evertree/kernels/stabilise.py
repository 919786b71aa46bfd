"""Refinement towards a stable tree: moves, and while none is wanted, grafts that resolve blocking pairs."""

from __future__ import annotations

import numpy as np

from evertree.columns import (
    CHECKS,
    CURSOR,
    DUE,
    FRESH,
    GOAL,
    GRAFTS,
    GRAFTS_BEFORE,
    GUARDED,
    INNER_TOP,
    IS_EXACT,
    LEAF_TOP,
    MOVES,
    N_POINTS,
    NEXT_NODE,
    NULL,
    PENDING,
    ROOT,
    SEARCHES,
    STABLE,
    STABLE_FROM_BELOW,
    TO_EXCHANGE,
    UNLIMITED,
    MeanTree,
    PairTree,
)
from evertree.kernels.compile import choose, inline, kernel
from evertree.kernels.graft import graft, is_lighter, meet_if_blocking
from evertree.kernels.homogenise import homogenise
from evertree.kernels.insert import hang
from evertree.kernels.neighbours import forget_near, improve_lists
from evertree.kernels.pair_check import BUSY
from evertree.kernels.search_means import find_near_means, partner_by_means, place_by_means
from evertree.kernels.search_pairs import find_near_points, partner_by_pairs, place_by_pairs
from evertree.kernels.topology import hangs
from evertree.kernels.worklist import clear_due, note_due

#: Grafts for each point before the guard acts.
GRAFTS_PER_POINT = 20
FEWEST_GRAFTS = 1000

#: The node that `a` would rather merge with, and ζ.
find_partner = choose("tree", {MeanTree: partner_by_means, PairTree: partner_by_pairs})

#: Fill the list of neighbours of a leaf.
find_near = choose("tree", {MeanTree: find_near_means, PairTree: find_near_points})

#: The node beside which a new leaf belongs.
find_place = choose("tree", {MeanTree: place_by_means, PairTree: place_by_pairs})


@inline
def next_due(tree, work, search):
    """The next node that is due for a search, in the order of memory; NULL if there is none."""
    u = search.state[NEXT_NODE]
    search.state[NEXT_NODE] = NULL
    if hangs(tree, u) and work.due[u]:
        return u
    end = 2 * max(tree.state[LEAF_TOP], tree.state[INNER_TOP])
    u = work.state[CURSOR]
    while work.state[DUE] > 0:
        if u >= end:
            u = 0
        if work.due[u]:
            if hangs(tree, u) and u != tree.state[ROOT]:
                work.state[CURSOR] = u + 1
                return np.int64(u)
            clear_due(work, u)
        u += 1
    work.state[CURSOR] = u
    return np.int64(NULL)


@inline
def quota_of_grafts(tree):
    """So many grafts may be made before the guard acts."""
    return GRAFTS_PER_POINT * tree.state[N_POINTS] + FEWEST_GRAFTS


@inline
def guard_level(tree, work):
    """How often the quota of grafts has been used up since no node was due.

    From the first time on, moves come lowest first, which ends for certain in exact arithmetic; from the second on the
    tolerance is ten times wider each time.
    """
    level = (work.state[GRAFTS] - work.state[GRAFTS_BEFORE]) // quota_of_grafts(tree)
    if level > 0:
        work.state[GOAL] = STABLE_FROM_BELOW
    return level


@inline
def note_stable(tree, work):
    """No node is due: the guard counts from here, and notes whether it had to act."""
    if work.state[GRAFTS] - work.state[GRAFTS_BEFORE] >= quota_of_grafts(tree):
        work.state[GUARDED] += 1
    work.state[GRAFTS_BEFORE] = work.state[GRAFTS]
    work.state[GOAL] = STABLE


@kernel
def stabilise(tree, work, search, linkage, max_steps, max_moves):
    """Refine until no check is pending and no node is due for a search, or a limit is reached.

    A step is a check, a search, or one towards a good list of neighbours. Grafts count as moves.
    """
    last_move = work.state[MOVES] + work.state[GRAFTS] + max_moves
    steps = 0
    while steps < max_steps:
        moves_left = last_move - work.state[MOVES] - work.state[GRAFTS]
        if moves_left <= 0:
            return
        if work.state[PENDING] > 0:
            checks_before = work.state[CHECKS]
            homogenise(tree, work, linkage, np.int64(max_steps - steps), np.int64(moves_left))
            steps += work.state[CHECKS] - checks_before
            if work.state[PENDING] > 0:
                return
            continue
        if search.state[FRESH] > 0 and not search.state[IS_EXACT]:
            steps += improve_lists(linkage, tree, search, find_near, max_steps - steps)
            continue
        a = next_due(tree, work, search)
        if a == NULL:
            note_stable(tree, work)
            return
        q, value = find_partner(linkage, tree, search, a, tree.height[tree.parent[a]])
        if q == BUSY:
            search.state[NEXT_NODE] = a
            return
        steps += 1
        work.state[SEARCHES] += 1
        clear_due(work, a)
        if q == NULL:
            continue
        tolerance = linkage.tolerance * 10.0 ** max(guard_level(tree, work) - 1, 0)
        top = meet_if_blocking(linkage, tree, search, tolerance, a, q, value)
        if top != NULL:
            if is_lighter(tree, q, a):
                a, q = q, a
            graft(linkage, tree, work, a, q, top)
            work.state[GRAFTS] += 1


@kernel
def insert_by_search(tree, work, search, linkage, leaves):
    """Insert `leaves` one after the other, each where a search finds that it belongs; make the moves that follow."""
    for leaf in leaves:
        i = np.int64(leaf)
        tree.state[N_POINTS] += 1
        if tree.state[ROOT] == NULL:
            tree.state[ROOT] = i
            forget_near(search, i, TO_EXCHANGE)
            note_due(work, i)
        else:
            hang(linkage, tree, work, i, find_place(linkage, tree, search, i))
        # As int64, or literals would have it compiled once more.
        homogenise(tree, work, linkage, np.int64(UNLIMITED), np.int64(UNLIMITED))


@kernel
def find_blocked(tree, search, linkage, nodes, blocked):
    """Fill ``blocked[i]`` with whether ``nodes[i]`` is in a blocking pair, by exhaustive search. O(n m) for each."""
    for i in range(nodes.size):
        a = np.int64(nodes[i])
        blocked[i] = False
        if tree.parent[a] != NULL:
            q, value = find_partner(linkage, tree, search, a, tree.height[tree.parent[a]])
            if q != NULL:
                blocked[i] = meet_if_blocking(linkage, tree, search, linkage.tolerance, a, q, value) != NULL

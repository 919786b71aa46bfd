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
from evertree.kernels.graft import graft, is_blocking, is_lighter
from evertree.kernels.homogenise import homogenise
from evertree.kernels.insert import hang
from evertree.kernels.neighbours import forget_near, improve_lists
from evertree.kernels.pair_check import BUSY
from evertree.kernels.search_means import find_near_means, partner_by_means, place_by_means
from evertree.kernels.search_pairs import find_near_points, partner_by_pairs, place_by_pairs
from evertree.kernels.topology import hangs
from evertree.kernels.worklist import note_due

#: Grafts for each point before the guard acts: first the smallest blocking pair is taken, then the tolerance grows.
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
    """Take the next node that is due for a search, in the order of memory; NULL if there is none."""
    u = search.state[NEXT_NODE]
    search.state[NEXT_NODE] = NULL
    if hangs(tree, u) and u != tree.state[ROOT]:
        if work.due[u]:
            work.due[u] = 0
            work.state[DUE] -= 1
        return u
    end = 2 * max(tree.state[LEAF_TOP], tree.state[INNER_TOP])
    u = work.state[CURSOR]
    found = np.int64(NULL)
    while work.state[DUE] > 0 and found == NULL:
        if u >= end:
            u = 0
        if work.due[u]:
            work.due[u] = 0
            work.state[DUE] -= 1
            if hangs(tree, u) and u != tree.state[ROOT]:
                found = np.int64(u)
        u += 1
    work.state[CURSOR] = u
    return found


@inline
def quota_of_grafts(tree):
    """So many grafts may be made before the guard acts."""
    return GRAFTS_PER_POINT * tree.state[N_POINTS] + FEWEST_GRAFTS


@inline
def find_smallest(linkage, tree, search, tolerance):
    """The blocking pair with the smallest ζ of all, by exhaustive search; NULL if there is none. O(n² m)."""
    best, partner, smallest = np.int64(NULL), np.int64(NULL), np.inf
    for u in range(2 * max(tree.state[LEAF_TOP], tree.state[INNER_TOP])):
        a = np.int64(u)
        if tree.parent[a] <= NULL:
            continue
        q, value = find_partner(linkage, tree, search, a, min(tree.height[tree.parent[a]], smallest))
        if q >= 0 and is_blocking(linkage, tree, tolerance, a, q, value):
            best, partner, smallest = a, q, value
    return best, partner, smallest


@inline
def find_pair(linkage, tree, work, search, level):
    """The next node that is due, and the one that it would rather merge with.

    Where exact searches have not ended for long, the blocking pair with the smallest ζ of all: this ends for certain.
    """
    if level > 0 and search.state[IS_EXACT]:
        tolerance = linkage.tolerance * 10.0 ** (level - 1)
        work.state[GOAL] = STABLE_FROM_BELOW
        a, q, _ = find_smallest(linkage, tree, search, tolerance)
        if a == NULL:
            for u in range(work.due.size):
                work.due[u] = 0
            work.state[DUE] = 0
        return a, q
    a = next_due(tree, work, search)
    if a == NULL:
        return a, a
    q, value = find_partner(linkage, tree, search, a, tree.height[tree.parent[a]])
    if q >= 0 and not is_blocking(linkage, tree, linkage.tolerance * 10.0**level, a, q, value):
        q = np.int64(NULL)
    return a, q


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
        level = (work.state[GRAFTS] - work.state[GRAFTS_BEFORE]) // quota_of_grafts(tree)
        a, q = find_pair(linkage, tree, work, search, level)
        if a == NULL:
            note_stable(tree, work)
            return
        if q == BUSY:
            search.state[NEXT_NODE] = a
            note_due(work, a)
            return
        steps += 1
        work.state[SEARCHES] += 1
        if q != NULL:
            if is_lighter(tree, q, a):
                a, q = q, a
            graft(linkage, tree, work, a, q)
            work.state[GRAFTS] += 1


@kernel
def insert_by_search(tree, work, search, linkage, leaves):
    """Insert `leaves` one after the other, each where a search finds that it belongs, and make the moves that follow."""
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
            blocked[i] = q != NULL and is_blocking(linkage, tree, linkage.tolerance, a, q, value)

"""Refinement towards a stable tree: moves and, when none is needed, grafts that resolve blocking pairs."""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import (
    EVERYWHERE,
    NULL,
    STABLE,
    STABLE_FROM_BELOW,
    TO_EXCHANGE,
    UNLIMITED,
    AnyTree,
    MeanTree,
    PairTree,
    Search,
    Worklist,
)
from evertree.kernels.compile import choose, inline, kernel
from evertree.kernels.pairwise.check import BUSY
from evertree.kernels.pairwise.search import (
    find_near_points,
    is_stable_if_monotone,
    partner_by_pairs,
    place_by_pairs,
)
from evertree.kernels.shared.check import is_blocking
from evertree.kernels.shared.due_queue import clear_all_due, clear_due, next_due
from evertree.kernels.shared.graft import meeting_node, resolve
from evertree.kernels.shared.homogenise import homogenise
from evertree.kernels.shared.insert import hang
from evertree.kernels.shared.neighbours import forget_near, improve_lists
from evertree.kernels.signatures import AnyLinkage, Bools, Ints
from evertree.kernels.statistics.search import find_near_means, partner_by_means, place_by_means

#: Grafts per point before the guard acts.
GRAFTS_PER_POINT = 20
FEWEST_GRAFTS = 1000

#: This many checks take as long as a search.
STEPS_OF_SEARCH = 64

#: The node in a blocking pair with `a`, and ζ.
find_partner = choose("tree", {MeanTree: partner_by_means, PairTree: partner_by_pairs})

#: Fill the list of neighbours of a leaf.
fill_list = choose("tree", {MeanTree: find_near_means, PairTree: find_near_points})

#: The node beside which a new leaf belongs.
search_place = choose("tree", {MeanTree: place_by_means, PairTree: place_by_pairs})


def _columns_of_means(tree):
    return tree.mean.shape[1]


def _columns_of_pairs(tree):
    return 0  # a long search pauses by itself


#: Number of columns of the points, if the time of an exhaustive search depends on it.
n_columns = choose("tree", {MeanTree: _columns_of_means, PairTree: _columns_of_pairs})


@inline
def steps_of_search(tree, search):
    """About how many checks take as long as a search."""
    if search.state["reach"][0] == EVERYWHERE:
        return STEPS_OF_SEARCH + tree.state["n_points"][0] * n_columns(tree) // STEPS_OF_SEARCH
    return STEPS_OF_SEARCH


@inline
def note_steps(work, steps):
    """Count steps that are no checks."""
    work.state["other_steps"][0] += steps
    return steps


@inline
def quota_of_grafts(tree):
    """Number of grafts that may be made before the guard acts."""
    return GRAFTS_PER_POINT * tree.state["n_points"][0] + FEWEST_GRAFTS


@inline
def guard_level(tree, work):
    """How often the quota of grafts has been used up since no node was due.

    From the first time on, the lowest moves are made first, which is certain to terminate in exact arithmetic; from the
    second on, the tolerance becomes ten times wider each time.
    """
    level = (work.state["grafts"][0] - work.state["grafts_before"][0]) // quota_of_grafts(tree)
    if level > 0:
        work.state["goal"][0] = STABLE_FROM_BELOW
    return level


@inline
def note_stable(tree, work):
    """Note that no node is due: the guard counts from here, and records whether it had to act."""
    if work.state["grafts"][0] - work.state["grafts_before"][0] >= 2 * quota_of_grafts(tree):
        work.state["guarded"][0] += 1
    work.state["grafts_before"][0] = work.state["grafts"][0]
    work.state["goal"][0] = STABLE


@inline
def needs_lists(linkage, search):
    """Whether lists of neighbours are to be improved before they are followed."""
    is_followed = search.state["reach"][0] != EVERYWHERE and not is_stable_if_monotone(linkage)
    return is_followed and search.state["fresh"][0] > 0


@inline
def next_search(linkage, tree, work):
    """The next node to be searched; NULL if there is none, which is noted: the tree is stable as far as is known."""
    if is_stable_if_monotone(linkage):
        clear_all_due(work)
    a = next_due(tree, work)
    if a == NULL:
        note_stable(tree, work)
    return a


@kernel
def stabilise(
    tree: AnyTree, work: Worklist, search: Search, linkage: AnyLinkage, max_steps: int, max_moves: int
) -> None:
    """Refine until no check is pending and no node is due for a search, or a limit is reached.

    A check is one step; a search, a graft or an improvement of a list of neighbours takes about as long as
    STEPS_OF_SEARCH of them. Grafts count as moves.
    """
    last_move = work.state["moves"][0] + work.state["grafts"][0] + max_moves
    steps = 0
    while steps < max_steps:
        moves_left = last_move - work.state["moves"][0] - work.state["grafts"][0]
        if moves_left <= 0:
            break
        if work.state["pending"][0] > 0:
            checks_before = work.state["checks"][0]
            homogenise(tree, work, linkage, np.int64(max_steps - steps), np.int64(moves_left))
            steps += work.state["checks"][0] - checks_before
            if work.state["pending"][0] > 0:
                return
            continue
        if needs_lists(linkage, search):
            n_lists = (max_steps - steps - 1) // STEPS_OF_SEARCH + 1
            steps += note_steps(work, STEPS_OF_SEARCH * improve_lists(linkage, tree, work, search, fill_list, n_lists))
            continue
        a = next_search(linkage, tree, work)
        if a == NULL:
            return
        q, value = find_partner(linkage, tree, search, a, tree.height[tree.parent[a]])
        if q == BUSY:  # as if it had not begun: when it pauses depends on the clock
            return
        steps += note_steps(work, steps_of_search(tree, search))
        work.state["searches"][0] += 1
        clear_due(work, a)
        if q == NULL:
            continue
        level = guard_level(tree, work)
        if level > 1 and not is_blocking(linkage, tree, linkage.tolerance * 10.0 ** (level - 1), a, q, value):
            continue
        if resolve(linkage, tree, work, search, a, q):
            steps += note_steps(work, STEPS_OF_SEARCH)
            if work.state["grafts"][0] == search.state["stop_at"][0]:
                break
    if max_steps > 0 and work.state["pending"][0] == 0 and not needs_lists(linkage, search):
        next_search(linkage, tree, work)  # so that it does not matter which limit was reached


@inline
def insert_leaf_by_search(tree, work, search, linkage, i):
    """Insert leaf `i` where a search finds that it belongs, and make the moves that follow."""
    tree.state["n_points"][0] += 1
    if tree.state["root"][0] == NULL:
        tree.state["root"][0] = i
        forget_near(search, i, TO_EXCHANGE)
    else:
        hang(linkage, tree, work, i, search_place(linkage, tree, search, i))
    # As int64: literals would trigger another compilation.
    homogenise(tree, work, linkage, np.int64(UNLIMITED), np.int64(UNLIMITED))


@kernel
def insert_by_search(tree: AnyTree, work: Worklist, search: Search, linkage: AnyLinkage, leaves: Ints) -> None:
    """Insert `leaves` one after the other, each where a search finds that it belongs."""
    for leaf in leaves:
        insert_leaf_by_search(tree, work, search, linkage, np.int64(leaf))


@kernel
def find_blocked(tree: AnyTree, search: Search, linkage: AnyLinkage, nodes: Ints, blocked: Bools) -> None:
    """Fill ``blocked[i]`` with whether ``nodes[i]`` is in a blocking pair, by exhaustive search. O(n m) each."""
    for i in range(nodes.size):
        a = np.int64(nodes[i])
        blocked[i] = False
        if tree.parent[a] != NULL:
            q, _ = find_partner(linkage, tree, search, a, tree.height[tree.parent[a]])
            blocked[i] = q != NULL and meeting_node(tree, search, a, q) != NULL

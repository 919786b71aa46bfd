"""Rounds, for threads: all search a tree that does not change, and then their results are applied.

The results of a round do not depend on how it is divided among threads.
"""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import DUE, INSIDE, NULL, UNLIMITED, MeanTree, Search, Worklist
from evertree.kernels.compile import kernel
from evertree.kernels.shared.check import is_blocking
from evertree.kernels.shared.due_queue import clear_due, note_due
from evertree.kernels.shared.graft import resolve
from evertree.kernels.shared.homogenise import homogenise
from evertree.kernels.shared.neighbours import begin_search, between, forget_near, note_in, note_one
from evertree.kernels.shared.partner_search import climb, value_up_to
from evertree.kernels.shared.stabilise import fill_list, find_partner, guard_level
from evertree.kernels.shared.topology import hangs
from evertree.kernels.signatures import AnyLinkage, Bytes, DataMatrix, IntMatrix, Ints
from evertree.kernels.statistics.search import descend_means, partner_beyond, usual_width


@kernel
def find_partners(tree: MeanTree, search: Search, linkage: AnyLinkage, nodes: Ints, partners: Ints) -> None:
    """Fill `partners` with the node in a blocking pair with each of `nodes`; NULL if none was found."""
    for k in range(nodes.size):
        a = np.int64(nodes[k])
        partners[k], _ = find_partner(linkage, tree, search, a, tree.height[tree.parent[a]])


@kernel
def search_outside(
    tree: MeanTree, work: Worklist, search: Search, linkage: AnyLinkage, nodes: Ints, piece: Ints, root: int
) -> None:
    """Search for blocking pairs of `nodes`, of the piece below `root`, with others, where it was searched.

    ``piece[u]`` is the number of the piece of `u`. Nodes in such a pair are due for a search of the whole tree; the
    others are not due any more. They are not counted: others may do the same elsewhere.
    """
    for u in nodes:
        if work.due[u] == INSIDE and tree.parent[u] > NULL:
            a, limit = np.int64(u), tree.height[tree.parent[u]]
            q, _ = climb(linkage, tree, search, a, limit, piece)
            if q == NULL:
                q, _ = partner_beyond(linkage, tree, search, a, limit, np.int64(root))
            work.due[u] = 0 if q == NULL else DUE


@kernel
def graft_found(
    tree: MeanTree,
    work: Worklist,
    search: Search,
    linkage: AnyLinkage,
    nodes: Ints,
    partners: Ints,
) -> None:
    """Make the grafts that `find_partners` found, one after the other, and the moves that follow each.

    A graft that is no longer needed, because of those before it, is not made, and its node is searched again later. If
    the tree has not changed since the search, that would find the same again: then an impossible graft is given up.
    """
    for k in range(nodes.size):
        clear_due(work, np.int64(nodes[k]))
    work.state["searches"][0] += nodes.size
    grafts_before = work.state["grafts"][0]
    for k in range(nodes.size):
        a, q = np.int64(nodes[k]), np.int64(partners[k])
        if q == NULL or not hangs(tree, a) or tree.state["root"][0] == a:
            continue
        if work.state["grafts"][0] > grafts_before:
            note_due(tree, work, a)
        if not hangs(tree, q) or tree.state["root"][0] == q:
            continue
        value = value_up_to(linkage, tree, a, q, np.inf)
        tolerance = linkage.tolerance * 10.0 ** max(guard_level(tree, work) - 1, 0)
        if not is_blocking(linkage, tree, tolerance, a, q, value):
            continue
        if resolve(linkage, tree, work, search, a, q):
            homogenise(tree, work, linkage, np.int64(UNLIMITED), np.int64(UNLIMITED))


@kernel
def fill_lists(tree: MeanTree, search: Search, linkage: AnyLinkage, rows: Ints, steps: Bytes) -> None:
    """Fill the empty lists of neighbours of leaves by row, and `steps` with the number of steps left for each."""
    for k in range(rows.size):
        i = np.int64(2 * rows[k])
        forget_near(search, i, np.int64(search.fresh[i >> 1]))
        steps[k] = fill_list(linkage, tree, search, i)


@kernel
def ask_lists(tree: MeanTree, search: Search, rows: Ints, near: IntMatrix, near_value: DataMatrix) -> None:
    """Fill rows of `near` with the neighbours of leaves by row, and their neighbours. O(N_NEAR² m) each.

    As `evertree.kernels.shared.neighbours.ask_neighbours`, but no list changes.
    """
    for r in range(rows.size):
        i = np.int64(2 * rows[r])
        for k in range(near.shape[1]):
            near[r, k] = NULL
            near_value[r, k] = np.inf
        stamp = begin_search(search)
        search.seen[i] = stamp
        count = 0
        for k in range(near.shape[1]):
            j = np.int64(search.near[i >> 1, k])
            if j != NULL and hangs(tree, j):
                search.seen[j] = stamp
                search.stack[count] = j
                count += 1
                note_in(near, near_value, r, j, between(tree, i, j))
        for c in range(count):
            row = search.stack[c] >> 1
            for k in range(near.shape[1]):
                j = np.int64(search.near[row, k])
                if j != NULL and search.seen[j] != stamp and hangs(tree, j):
                    search.seen[j] = stamp
                    note_in(near, near_value, r, j, between(tree, i, j))


@kernel
def share_lists(search: Search, rows: Ints, near: IntMatrix, near_value: DataMatrix, turn: int, n_turns: int) -> None:
    """Give `rows` the lists in `near`, and offer each leaf to its neighbours; change one in `n_turns` lists only."""
    for r in range(rows.size):
        if rows[r] % n_turns == turn:
            for k in range(near.shape[1]):
                search.near[rows[r], k] = near[r, k]
                search.near_value[rows[r], k] = near_value[r, k]
    for r in range(rows.size):
        for k in range(near.shape[1]):
            j = np.int64(near[r, k])
            if j != NULL and (j >> 1) % n_turns == turn:
                note_one(search, j, np.int64(2 * rows[r]), np.float64(near_value[r, k]))


@kernel
def find_nearest(tree: MeanTree, search: Search, linkage: AnyLinkage, leaves: Ints, near: Ints) -> None:
    """Fill `near` with the leaf of the tree that a descent finds nearest to each of `leaves`, which are detached."""
    for k in range(leaves.size):
        i = np.int64(leaves[k])
        forget_near(search, i, 0)
        descend_means(linkage, tree, search, i, np.inf, np.int64(NULL), usual_width(search))
        near[k] = search.near[i >> 1, 0]

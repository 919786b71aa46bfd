"""Anytime hierarchical clustering, AHC (`tab.OHC`), on a worklist of the nodes that may violate homogeneity."""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import HOMOGENEOUS, NULL, STABLE_FROM_BELOW, AnyTree, Worklist
from evertree.kernels.compile import inline, kernel
from evertree.kernels.dispatch import by_property
from evertree.kernels.pairwise.check import BUSY
from evertree.kernels.shared.check import find_near, is_inverted, update_after_move
from evertree.kernels.shared.partner_search import value_up_to
from evertree.kernels.shared.topology import sibling, swap_with_uncle
from evertree.kernels.shared.worklist import pop, pop_lowest, push, put_back
from evertree.kernels.signatures import AnyLinkage


@inline
def guarded_tolerance(linkage, work):
    """The tolerance of the linkage, ten times wider for each quota of moves used up.

    The procedure terminates in exact arithmetic (`thm.Convergence`). Should rounding ever cause a cycle, the tolerance
    grows until no move is needed: no input can loop forever.
    """
    moves = work.state["moves"][0] - work.state["moves_before"][0]
    return linkage.tolerance * 10.0 ** (moves // work.state["quota"][0])


def _may_always(linkage, tree, tolerance, v, near):
    """Strongly reducible linkages: no move breaks a merge of batch clustering."""
    return True


def _may_towards_batch(linkage, tree, tolerance, v, near):
    """Whether `near` and the sibling are a blocking pair, or the move breaks the higher child of a parent below it.

    Ward, for example, is reducible, but not strongly: other moves may break a merge of batch clustering, and a graft
    would undo them.
    """
    c = sibling(tree, v)
    highest = max(tree.height[near], tree.height[c])
    if value_up_to(linkage, tree, np.int64(near), np.int64(c), np.inf) >= highest - tolerance * highest:
        return True
    return tree.height[v] >= tree.height[c] and is_inverted(linkage, tree, tolerance, v)


#: Whether the move that joins `near`, a child of `v`, with the sibling of `v` leads towards a stable tree.
may_move = by_property("strongly_reducible", {True: _may_always, False: _may_towards_batch})


def _push_none(linkage, tree, work, g):
    pass


def _push_beyond(linkage, tree, work, g):
    if work.state["goal"][0] != HOMOGENEOUS:
        push(tree, work, tree.parent[g])
        push(tree, work, sibling(tree, g))


#: Queue the checks that read the changed height of `g`, in addition to those that read its parts: `may_move` does.
push_readers = by_property("strongly_reducible", {True: _push_none, False: _push_beyond})


@inline
def make_move(linkage, tree, work, v, near):
    """Join `near`, a child of `v`, with the sibling of `v`: one NNI move. Queue the checks that it makes dirty."""
    g, c = tree.parent[v], sibling(tree, v)
    far = sibling(tree, near)
    swap_with_uncle(tree, far)
    update_after_move(linkage, tree, v, near)
    push_readers(linkage, tree, work, g)
    push(tree, work, near)
    push(tree, work, far)
    push(tree, work, c)
    push(tree, work, g)
    push(tree, work, v)


@inline
def note_empty(work):
    """Note that the worklist is empty: the guard counts from here, and records whether it had to act."""
    if work.state["moves"][0] - work.state["moves_before"][0] >= work.state["quota"][0]:
        work.state["guarded"][0] += 1
    work.state["moves_before"][0] = work.state["moves"][0]


@kernel
def homogenise(tree: AnyTree, work: Worklist, linkage: AnyLinkage, max_checks: int, max_moves: int) -> None:
    """Refine until the worklist is empty, or a limit is reached.

    `tab.OHC`: find a node at which local homogeneity is violated; swap its child `far`, the one with the larger
    dissimilarity to its sibling, with that sibling; repeat until there is none. With statistics, each check is O(m) and
    a move changes those of one node.
    """
    last_check = work.state["checks"][0] + max_checks
    last_move = work.state["moves"][0] + max_moves
    while work.state["pending"][0] > 0 and work.state["checks"][0] < last_check and work.state["moves"][0] < last_move:
        v = pop_lowest(tree, work) if work.state["goal"][0] == STABLE_FROM_BELOW else pop(work)
        if tree.parent[v] <= NULL:  # the root, or a node that was freed
            continue
        tolerance = guarded_tolerance(linkage, work)
        near = find_near(linkage, tree, tolerance, v)
        if near == BUSY:
            put_back(work, v)  # as if it had not been popped: when it pauses depends on the clock
            break
        work.state["checks"][0] += 1
        if near != NULL and (work.state["goal"][0] == HOMOGENEOUS or may_move(linkage, tree, tolerance, v, near)):
            make_move(linkage, tree, work, v, near)
            work.state["moves"][0] += 1
    if work.state["pending"][0] == 0:
        note_empty(work)

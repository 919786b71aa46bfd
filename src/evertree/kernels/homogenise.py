"""Anytime hierarchical clustering, AHC (`tab.OHC`), on a worklist of the nodes that may violate homogeneity."""

from __future__ import annotations

from evertree.columns import GUARDED, MOVES, NULL, PENDING, QUOTA
from evertree.kernels.compile import inline, kernel
from evertree.kernels.linkage_values import nearer_child
from evertree.kernels.statistics import merge_children
from evertree.kernels.topology import sibling, swap_with_uncle
from evertree.kernels.worklist import pop, push

UNLIMITED = 1 << 62


@inline
def guarded_tolerance(linkage, work):
    """The tolerance of the linkage, ten times wider for every quota of moves that has been used up.

    The procedure ends in exact arithmetic (`thm.Convergence`). Should rounding ever make it go round in circles, the
    tolerance grows until nothing is worth a move: no input can loop.
    """
    return linkage.tolerance * 10.0 ** (work.state[MOVES] // work.state[QUOTA])


@inline
def make_move(tree, work, v, near):
    """Join `near`, a child of `v`, with the sibling of `v`: one NNI move, and the checks that it makes dirty. O(m)."""
    g, c = tree.parent[v], sibling(tree, v)
    far = tree.right[v] if tree.left[v] == near else tree.left[v]
    swap_with_uncle(tree, far)
    merge_children(tree, v)
    push(work, near)
    push(work, far)
    push(work, c)
    push(work, g)
    push(work, v)


@kernel
def homogenise(tree, work, linkage, max_checks, max_moves):
    """Refine until the worklist is empty, or a limit is reached. Returns the checks and the moves made.

    `tab.OHC`: find a node at which local homogeneity is violated; swap its child with the larger dissimilarity to its
    sibling, `far`, with that sibling; go on until there is none. O(m) for each check; a move changes the statistics of
    one node.
    """
    checks = 0
    moves = 0
    while work.state[PENDING] > 0 and checks < max_checks and moves < max_moves:
        v = pop(work)
        if tree.parent[v] <= NULL:  # the root, or a node that was given back
            continue
        checks += 1
        tolerance = guarded_tolerance(linkage, work)
        near = nearer_child(linkage, tree, tolerance, tree.left[v], tree.right[v], sibling(tree, v))
        if near != NULL:
            make_move(tree, work, v, near)
            moves += 1
            work.state[MOVES] += 1
    if work.state[PENDING] == 0:
        if work.state[MOVES] >= work.state[QUOTA]:
            work.state[GUARDED] += 1
        work.state[MOVES] = 0
    return checks, moves

"""Insertion and removal of points and clusters in a `PairTree`: changes of heights and cross values above them."""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import NULL, PairTree
from evertree.kernels.compile import inline, kernel, step
from evertree.kernels.dispatch import linkage_may_define
from evertree.kernels.pairwise.check import (
    LEFT,
    RIGHT,
    child_at,
    cross,
    cross_error,
    forget_cross,
    set_cross,
    side_of,
    strengthen,
)
from evertree.kernels.pairwise.pairs import is_pivot
from evertree.kernels.pairwise.point import is_known, judge_bounds, make_known, measure_point
from evertree.kernels.pairwise.search import is_stable_if_monotone
from evertree.kernels.pairwise.values import value_between
from evertree.kernels.shared.due_queue import note_due
from evertree.kernels.shared.topology import attach, detach, is_leaf, sibling
from evertree.kernels.shared.worklist import push
from evertree.kernels.signatures import AnyLinkage, Floats, Ints

#: The error of a height that a recurrence gave over many merges: see `evertree.kernels.pairwise.check`.
ERROR_OF_RECURRENCE = 10.0


@linkage_may_define
def changed(linkage, tree, value, is_exact, error, x, y, i, comes):
    """Update what is known about ζ(x, y) when node `i` joins or leaves x. O(1).

    Returns a lower bound, whether it is exact, and its error.
    """
    return 0.0, False, 0.0


@linkage_may_define
def changed_height(linkage, tree, w, x, y, i, comes):
    """The height of w = (x, y) when node `i` joins or leaves x; NaN if it has to be computed from pairs."""
    error = np.float64(tree.error[w])
    value, is_exact, error_after = changed(linkage, tree, tree.height[w], True, error, x, y, i, comes)
    if not is_exact:
        make_known(linkage, tree, i, y)
        value, is_exact, error_after = changed(linkage, tree, tree.height[w], True, error, x, y, i, comes)
    tree.error[w] = error_after
    return value if is_exact else np.nan


@inline
def change_cross(linkage, tree, work, v, side, x, y, i, comes):
    """Change a cross value of `v`, which is ζ(x, y), when node `i` joins or leaves x; queue the check if it fell."""
    before, is_exact = cross(tree, v, side)
    value, is_exact, error = changed(linkage, tree, before, is_exact, cross_error(tree, v, side), x, y, i, comes)
    set_cross(tree, v, side, value, is_exact, error)
    if value < before:
        push(tree, work, v)


@step
def change_path(linkage, tree, work, i, x, comes, top):
    """Change heights and cross values from `x`, which `i` joins or leaves, up to `top`, or the root. Usually O(depth).

    The shape of the tree has not changed yet. A height that has to be computed from pairs becomes NaN. A check is
    queued if a cross value fell or a height rose: others that held still hold.
    """
    while x != top and tree.parent[x] != NULL:
        w, y = np.int64(tree.parent[x]), np.int64(sibling(tree, x))
        height = changed_height(linkage, tree, w, x, y, i, comes)
        if not is_leaf(y):
            strengthen(linkage, tree, y)
            for side in (LEFT, RIGHT):
                change_cross(linkage, tree, work, y, side, x, np.int64(child_at(tree, y, side)), i, comes)
        if tree.parent[w] != NULL:
            strengthen(linkage, tree, w)
            change_cross(linkage, tree, work, w, side_of(tree, w, x), x, np.int64(sibling(tree, w)), i, comes)
        if not height <= tree.height[w]:
            push(tree, work, w)
        tree.height[w] = height
        x = w


@linkage_may_define
def recompute_height(linkage, tree, u):
    """Compute the height of `u` from pairs. O(|a| |b| m) at most, for its children a and b."""
    tree.height[u] = value_between(linkage, tree, np.int64(tree.left[u]), np.int64(tree.right[u]))
    tree.error[u] = 1.0


@linkage_may_define
def checks_all(linkage, comes):
    """Whether a check may have relied on the height of the parent, which changes on the whole path."""
    return True


@step
def refresh_path(linkage, tree, work, u, comes, top):
    """Update size, birth and NaN heights from `u` up to `top`, or the root; queue checks, and note what is due."""
    above = np.int64(NULL) if top == NULL else np.int64(tree.parent[top])
    while u != above:
        a, b = tree.left[u], tree.right[u]
        tree.size[u] = tree.size[a] + tree.size[b]
        tree.birth[u] = min(tree.birth[a], tree.birth[b])
        if np.isnan(tree.height[u]):
            recompute_height(linkage, tree, np.int64(u))
        if checks_all(linkage, comes):
            push(tree, work, u)
            push(tree, work, sibling(tree, u))
        if not is_stable_if_monotone(linkage):
            note_due(tree, work, u)
            note_due(tree, work, sibling(tree, u))
        u = np.int64(tree.parent[u])


@linkage_may_define
def point_cross(linkage, tree, u):
    """The linkage between the point and a node as a cross value: a lower bound, and whether it is exact."""
    return tree.pairs.lower[u], is_known(tree.pairs, u)


@linkage_may_define
def hang_point(linkage, tree, i, k, p):
    """Set the height of the new node `p`, whose children are `k` and `i`."""
    make_known(linkage, tree, i, k)
    tree.height[p] = tree.pairs.lower[k]
    tree.error[p] = 1.0


@step
def hang_on(linkage, tree, work, i, k, top):
    """Attach `i`, whose linkage to every node is known, beside `k`; update nodes up to `top`, queue dirty checks.

    `top` is NULL for the root. Nodes above it contain `i` already, and do not change.
    """
    above, error_above = 0.0, 0.0  # ζ between k and its sibling
    if tree.parent[k] != NULL:
        above, error_above = tree.height[tree.parent[k]], np.float64(tree.error[tree.parent[k]])
    change_path(linkage, tree, work, np.int64(i), np.int64(k), np.int64(1), np.int64(top))
    p = attach(tree, i, k)
    hang_point(linkage, tree, i, k, p)
    if not is_leaf(i):
        forget_cross(tree, i)
    if not is_leaf(k):
        for side in (LEFT, RIGHT):
            value, is_exact = point_cross(linkage, tree, child_at(tree, k, side))
            set_cross(tree, k, side, value, is_exact, 1.0)
    if tree.parent[p] != NULL:
        set_cross(tree, p, LEFT, above, True, error_above)
        value, is_exact = point_cross(linkage, tree, sibling(tree, p))
        set_cross(tree, p, RIGHT, value, is_exact, 1.0)
    tree.pairs.state["paused_node"][0] = NULL
    tree.pairs.state["measured"][0] = NULL
    push(tree, work, i)
    push(tree, work, k)
    push(tree, work, p)
    push(tree, work, sibling(tree, p))
    refresh_path(linkage, tree, work, np.int64(p), np.int64(1), np.int64(top))
    note_due(tree, work, np.int64(i))  # at the height that their parent has now
    note_due(tree, work, np.int64(k))


@step
def cut_off(linkage, tree, work, i, top):
    """Detach `i`, whose linkage to every node is known; update nodes up to `top`, queue dirty checks.

    `top` is NULL for the root. Nodes above it will contain `i` again.
    """
    p = tree.parent[i]
    if p == top:  # its cluster will be that of the sibling
        s = detach(tree, i)
        forget_cross(tree, s)
        tree.pairs.state["paused_node"][0] = NULL
        push(tree, work, s)
        push(tree, work, sibling(tree, s))
        return
    change_path(linkage, tree, work, np.int64(i), np.int64(p), np.int64(0), np.int64(top))
    value, is_exact = cross(tree, p, 1 - side_of(tree, p, i))
    error = cross_error(tree, p, 1 - side_of(tree, p, i))
    s = detach(tree, i)
    w = tree.parent[s]
    if w != NULL and is_exact:
        tree.height[w], tree.error[w], tree.center[w] = value, error, NULL
    forget_cross(tree, s)
    tree.pairs.state["paused_node"][0] = NULL
    push(tree, work, s)
    push(tree, work, sibling(tree, s))
    refresh_path(linkage, tree, work, np.int64(w), np.int64(0), np.int64(top))


@step
def take_in(linkage, tree, work, i, k):
    """Attach leaf `i`, which has been measured, beside node `k`."""
    hang_on(linkage, tree, work, i, k, np.int64(NULL))
    judge_bounds(tree)


@step
def let_go(linkage, tree, work, i):
    """Detach leaf `i`, which is removed from the tree."""
    tree.pairs.state["paused_node"][0] = NULL
    if is_pivot(tree.pairs, i >> 1):
        tree.pairs.state["n_pivots"][0] = 0
    if tree.parent[i] == NULL:
        detach(tree, i)
        return
    measure_point(linkage, tree, i, False)
    cut_off(linkage, tree, work, i, np.int64(NULL))


@inline
def begin_node(tree, u):
    """Set size and birth of an inner node from its children; nothing else is known."""
    a, b = tree.left[u], tree.right[u]
    tree.size[u] = tree.size[a] + tree.size[b]
    tree.birth[u] = min(tree.birth[a], tree.birth[b])
    tree.center[u] = NULL
    forget_cross(tree, u)


@kernel
def take_heights(tree: PairTree, nodes: Ints, heights: Floats) -> None:
    """Give inner nodes of a batch tree, children first, their heights; compute their sizes and births. O(n).

    Such a tree is homogeneous (`prop.HAC2LSO`): no cross value is below the height.
    """
    for k in range(nodes.size):
        u = nodes[k]
        begin_node(tree, u)
        tree.height[u] = heights[k]
        for side in (LEFT, RIGHT):
            set_cross(tree, u, side, heights[k], False, 0.0)
        tree.error[u] = ERROR_OF_RECURRENCE


@kernel
def compute_all(tree: PairTree, linkage: AnyLinkage, nodes: Ints) -> None:
    """Compute sizes, births and heights of the inner nodes among `nodes`, children first. O(n² m) at most.

    Nothing is known about cross values.
    """
    for u in nodes:
        if not is_leaf(u):
            begin_node(tree, u)
            recompute_height(linkage, tree, u)

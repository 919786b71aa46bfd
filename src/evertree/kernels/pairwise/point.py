"""The linkage between one point and all nodes of a `PairTree`.

The dissimilarities between the point and all others, or bounds on them, give bounds on its linkage to every node in one
pass (`eq.Recurrence`, section 4.3). They are made exact only where they are not decisive.
"""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import BLOCK, NULL
from evertree.kernels.compile import inline, step
from evertree.kernels.dispatch import linkage_may_define
from evertree.kernels.pairwise.check import CLEAR_OF_TIES
from evertree.kernels.pairwise.pairs import (
    bounds,
    dissimilarity,
    distance,
    evaluate,
    evaluate_leaves,
    measure_pivots,
)
from evertree.kernels.shared.linkage_values import is_first
from evertree.kernels.shared.recurrence import linkage_of_union
from evertree.kernels.shared.topology import hangs, is_leaf

#: Number of points measured without bounds after bounds have failed.
PATIENCE = 50

#: If more than one in this many dissimilarities of a point had to be evaluated to find the nearest point, all are.
MANY = 4


@linkage_may_define
def point_to_union(linkage, tree, a, b, z_a, z_b):
    """The linkage between a point and a ∪ b, or what replaces it in ``pairs.lower`` and ``pairs.upper``. O(1)."""
    return linkage_of_union(linkage, z_a, z_b, 0.0, tree.size[a], tree.size[b], 1.0)


@linkage_may_define
def uses_bounds(linkage):
    """Whether bounds save evaluations when a point is placed: if it is a minimum or a maximum over pairs.

    A mean needs all pairs, and so does a radius. If bounds help, `matters` and `bound_to_start_from` say how.
    """
    return False


@inline
def bound_all(tree, i):
    """`measure_leaves` by the distances to the pivots, whose own values are exact. O(n)."""
    pairs = tree.pairs
    measure_pivots(pairs, i >> 1)
    for other in range(tree.state["leaf_top"][0]):
        u = 2 * other
        if u != i and hangs(tree, u):
            pairs.lower[u], pairs.upper[u] = bounds(pairs, i >> 1, other)
    for k in range(pairs.state["n_pivots"][0]):
        pivot = 2 * pairs.pivots[k]
        pairs.lower[pivot] = pairs.to_pivots[k]
        pairs.upper[pivot] = pairs.to_pivots[k]


@inline
def evaluate_all(tree, i):
    """`measure_leaves` exactly; this also gives the distances between `i` and the pivots. O(n m)."""
    pairs = tree.pairs
    start = np.int64(0)
    while start < tree.state["leaf_top"][0]:
        count, start = evaluate_leaves(tree, i >> 1, start, i)
        for s in range(count):
            u = 2 * pairs.some[s]
            pairs.lower[u] = pairs.block[s]
            pairs.upper[u] = pairs.block[s]
    for k in range(pairs.state["n_pivots"][0]):
        pairs.pivot[i >> 1, k] = distance(pairs, pairs.lower[2 * pairs.pivots[k]])


@step
def measure_leaves(linkage, tree, i, comes):
    """Fill ``pairs.lower`` and ``pairs.upper`` for all leaves in the tree except `i`. O(n), O(n m) without bounds.

    On removal, bounds would not tell which values the point was decisive for.
    """
    pairs = tree.pairs
    has_bounds = comes and uses_bounds(linkage) and pairs.state["n_pivots"][0] > 0 and pairs.state["unbounded"][0] == 0
    pairs.state["unbounded"][0] = max(pairs.state["unbounded"][0] - 1, 0)
    if has_bounds:
        bound_all(tree, i)
    else:
        evaluate_all(tree, i)
    pairs.state["evaluated_before"][0] = pairs.state["evaluated"][0]


@step
def measure_unions(linkage, tree):
    """Fill ``pairs.lower`` and ``pairs.upper`` of all inner nodes from those of the leaves (`eq.Recurrence`). O(n).

    They are listed from the root down, level by level: each is then loaded without waiting for another.
    """
    nodes, count, k = tree.pairs.others, 0, 0
    if not is_leaf(tree.state["root"][0]):
        nodes[0] = tree.state["root"][0]
        count = 1
    while k < count:
        for child in (tree.left[nodes[k]], tree.right[nodes[k]]):
            if not is_leaf(child):
                nodes[count] = child
                count += 1
        k += 1
    for t in range(count - 1, -1, -1):
        measure_union(linkage, tree, nodes[t])


@inline
def measure_union(linkage, tree, u):
    """Bounds on the linkage between the point and `u`, from those for its children. O(1)."""
    pairs = tree.pairs
    a, b = tree.left[u], tree.right[u]
    pairs.lower[u] = point_to_union(linkage, tree, a, b, pairs.lower[a], pairs.lower[b])
    pairs.upper[u] = point_to_union(linkage, tree, a, b, pairs.upper[a], pairs.upper[b])


@step
def measure_point(linkage, tree, i, comes):
    """Fill ``pairs.lower`` and ``pairs.upper`` with bounds on the linkage between leaf `i` and every node. O(n).

    If they are equal, they are the linkage. For a node above `i` they are meaningless.
    """
    tree.pairs.state["measured"][0] = NULL
    measure_leaves(linkage, tree, i, comes)
    measure_unions(linkage, tree)


@linkage_may_define
def matters(linkage, pairs, u, best):
    """Whether node `u` may hold a point that changes the linkage `best` found so far, if bounds are used."""
    return False


@inline
def may_be(pairs, u, value):
    """Whether the linkage between the point and `u` may be `value`."""
    return pairs.lower[u] <= value <= pairs.upper[u]


@linkage_may_define
def bound_to_start_from(linkage, pairs, u):
    """The bound on the linkage between the point and `u` from which to search for its value, if bounds are used."""
    return pairs.lower[u]


@inline
def is_known(pairs, u):
    """Whether the linkage between the point and `u` is known."""
    return pairs.lower[u] == pairs.upper[u]


@inline
def know_leaf(pairs, i, u):
    """The dissimilarity between leaf `i`, which has been measured, and leaf `u`; it is stored. O(m)."""
    if not is_known(pairs, u):
        pairs.lower[u] = dissimilarity(pairs, i >> 1, u >> 1)
        pairs.upper[u] = pairs.lower[u]
    return pairs.lower[u]


@step
def make_known(linkage, tree, i, top):
    """Make the bounds on the linkage between leaf `i` and node `top` exact, looking only where it matters."""
    pairs = tree.pairs
    if is_known(pairs, top):
        return
    best = bound_to_start_from(linkage, pairs, top)
    u = top
    while True:
        while not is_leaf(u) and matters(linkage, pairs, u, best):
            u = tree.left[u]
        if is_leaf(u) and matters(linkage, pairs, u, best):
            best = point_to_union(linkage, tree, u, u, best, know_leaf(pairs, i, u))
        while u != top and tree.right[tree.parent[u]] == u:
            u = tree.parent[u]
        if u == top:
            break
        u = tree.right[tree.parent[u]]
    pairs.lower[top] = best
    pairs.upper[top] = best


@linkage_may_define
def point_value(linkage, tree, i, u, floor):
    """ζ(i, u) if it is below `floor`, otherwise a value from `floor` up to it."""
    if tree.pairs.lower[u] < floor:
        make_known(linkage, tree, i, u)
    return tree.pairs.lower[u]


@step
def know_smaller_first(linkage, tree, i, k, floor):
    """`know_children` for a minimum or a maximum, where one of two children has the value of their union."""
    pairs = tree.pairs
    make_known(linkage, tree, i, k)
    is_left_smaller = tree.size[tree.left[k]] <= tree.size[tree.right[k]]
    small, large = (tree.left[k], tree.right[k]) if is_left_smaller else (tree.right[k], tree.left[k])
    value = pairs.lower[k]
    if matters(linkage, pairs, small, value):
        make_known(linkage, tree, i, small)
    if not may_be(pairs, small, value):
        pairs.lower[large] = value
        pairs.upper[large] = value
    for u in (small, large):
        if pairs.lower[u] < floor:
            make_known(linkage, tree, i, u)


@linkage_may_define
def know_children(linkage, tree, i, k, floor):
    """Make the linkage between the point and each child of `k` known, or known to be at least `floor`."""


@inline
def n_evaluated(tree):
    """Number of dissimilarities evaluated since the point was measured."""
    return tree.pairs.state["evaluated"][0] - tree.pairs.state["evaluated_before"][0]


@inline
def judge_bounds(tree):
    """Stop using bounds for a while if a point was compared with more than one in `MANY` of the others."""
    if n_evaluated(tree) > tree.state["n_points"][0] // 2:
        tree.pairs.state["unbounded"][0] = PATIENCE


@step
def know_rest(linkage, tree, i):
    """Evaluate all dissimilarities of leaf `i` if many were: bounds do not help, and looking at them takes longer.

    O(n m).
    """
    pairs, count = tree.pairs, 0
    if n_evaluated(tree) <= tree.state["n_points"][0] // MANY:
        return
    for other in range(tree.state["leaf_top"][0] + 1):
        u = 2 * other
        if other < tree.state["leaf_top"][0] and u != i and hangs(tree, u) and not is_known(pairs, u):
            pairs.some[count] = other
            count += 1
        if count == BLOCK or (other == tree.state["leaf_top"][0] and count > 0):
            evaluate(pairs, np.int64(i >> 1), pairs.some[:count], pairs.block)
            for s in range(count):
                pairs.lower[2 * pairs.some[s]] = pairs.upper[2 * pairs.some[s]] = pairs.block[s]
            count = 0
    measure_unions(linkage, tree)


@step
def nearer_to_point(linkage, tree, k, i):
    """The check at `k` as if leaf `i` were its sibling: the child that is closer to `i` than to its own, or NULL."""
    height = tree.height[k]
    floor = height - linkage.tolerance * height
    clear = height + CLEAR_OF_TIES * linkage.tolerance * height
    a, b = tree.left[k], tree.right[k]
    know_children(linkage, tree, i, k, clear)
    z_a = point_value(linkage, tree, i, a, clear)
    z_b = point_value(linkage, tree, i, b, clear)
    if not min(z_a, z_b) < floor:
        return NULL
    return a if is_first(tree, linkage.tolerance, a, z_a, b, z_b) else b

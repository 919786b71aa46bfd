"""Minimax linkage: the smallest radius around one of its points that covers the union (`eq.MinimaxLinkage`).

It depends only on the union of the two clusters, and has no recurrence.
"""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import ITSELF, NOTHING, NULL, SQUARE_ROOT
from evertree.kernels.compile import step
from evertree.kernels.pairwise.pairs import ROUNDING, collect_rows, copy_rows, covering_radius, evaluate_leaves
from evertree.kernels.pairwise.radius import center_of, find_radius, radius_with
from evertree.kernels.pairwise.values import NOTHING_YET, value_below
from evertree.kernels.repair.rows import unite_in_row
from evertree.kernels.shared.topology import is_leaf
from evertree.linkages import Linkage, Tag


class Minimax(Tag):
    """The tag of minimax linkage."""


LINKAGE = Linkage(
    "minimax",
    Minimax,
    reducible=True,
    strongly_reducible=True,
    nni_reducible=True,
    statistics=None,
    bounds_help=True,
    has_centers=True,
)


def definition(d, weights, a, b):
    """`eq.MinimaxLinkage`."""
    both = np.r_[a, b]
    return d[np.ix_(both, both)].max(axis=1).min()


@step
def compare(linkage, tree, a, c, floor, start, value):
    """Look for a point that covers the union within less than `floor`."""
    pairs = tree.pairs
    count = collect_rows(tree, a, pairs.rows)
    count += collect_rows(tree, c, pairs.rows[count:])
    rows, others = pairs.rows[:count], pairs.others[:count]
    copy_rows(rows, others)
    best = floor if value == NOTHING_YET else value
    value, _, row = covering_radius(pairs, rows, others, start, best)
    return value, value < floor, (row if row < count else -1)


# Between a point, or the members of a cluster, and others, the largest dissimilarity is used in place of the linkage,
# which does not follow from that of parts.


def with_member(linkage, so_far, value, share):
    """The larger one."""
    return max(so_far, value)


def without_members(linkage):
    """The maximum over nothing."""
    return 0.0


def point_to_union(linkage, tree, a, b, z_a, z_b):
    """The larger one."""
    return max(z_a, z_b)


def point_cross(linkage, tree, u):
    """Nothing is known."""
    return 0.0, False


def measured_value(linkage, tree, a, u, floor):
    """In a metric, no point covers both ends of the largest dissimilarity within less than half of it."""
    largest = tree.pairs.lower[u]
    if tree.pairs.state["triangle"][0] != NOTHING:
        part = 0.25 if tree.pairs.state["triangle"][0] == SQUARE_ROOT else 0.5
        if part * largest * (1.0 - 1e-9) >= floor:
            return floor
    return value_below(linkage, tree, a, u, floor)


def point_value(linkage, tree, i, u, floor):
    """No point covers `u` within less than its radius, and `i` reaches no less far than the farthest point of `u`."""
    if not is_leaf(u) and min(tree.height[u], tree.pairs.lower[u]) >= floor:
        return floor
    return radius_with(tree, u, i)[0]


# The height of a node is a radius around a center.


def height_after_move(linkage, tree, z_ab, z_ac, z_bc, g, a, b, c):
    """The union is the same."""
    return tree.height[g]


def floor_of_move(linkage, tree, v):
    """The other cross value is not needed: the union stays the same."""
    return 0.0


def changed_height(linkage, tree, w, x, y, i, comes):
    """With one more point, the center often stays the same."""
    if not comes or not is_leaf(i):
        return np.nan
    radius, tree.center[w] = radius_with(tree, w, i)
    return radius


def recompute_height(linkage, tree, u):
    """Radius and center."""
    find_radius(tree, u, np.inf)


def hang_point(linkage, tree, i, k, p):
    """Radius and center."""
    if is_leaf(i):
        tree.height[p], tree.center[p] = radius_with(tree, k, i)
    else:
        find_radius(tree, p, np.inf)


# -- shortcuts


def changed(linkage, tree, value, is_exact, error, x, y, i, comes):
    """A lower bound, if a point is inserted."""
    if comes and is_leaf(i):
        # No point of x ∪ y covers more within a smaller radius, and i covers nothing within less than its largest
        # value.
        return min(value, max(tree.pairs.lower[x], tree.pairs.lower[y])), False, 0.0
    return 0.0, False, 0.0


def checks_all(linkage, comes):
    """No check relies on the height of the parent, but cross values may fall on removal."""
    return not comes


# -- repairs


def bound_of_union(linkage, a, b, size_a, size_b):
    """The linkage is strongly reducible."""
    return min(a, b)


def unites_exactly(linkage):
    """Radii do not follow from those of parts."""
    return False


def bound_after(linkage, bound, size, z, z_all, near, weight, comes):
    """The point covers all within `z_all`; others that cover all must cover it, too."""
    return min(z_all, max(bound, near)) if comes else 0.0


def point_bound(linkage, tree, run, u):
    """The same for a single point."""
    z = tree.pairs.lower[u]
    if is_leaf(u):
        return z, True
    return min(z, max(tree.height[u], run.near[u])), False


def bound_by_triangle(linkage, z_u, z_v):
    """A radius is at least half of a distance."""
    return 0.5 * abs(z_u - z_v)


def n_pairs_in_one(linkage):
    """Most points are soon too far from one of the others."""
    return 50


def has_references(linkage):
    """A center, from which the others are measured."""
    return True


@step
def find_reference(linkage, tree, run, c, row):
    """The center of `c`, or one that it has, if that covers it as well. O(n m)."""
    if run.place[c] == NULL and run.reach[row] <= tree.height[c] * (1.0 + ROUNDING):  # it is just being merged
        tree.center[c] = run.reference[row]
        return
    r = c if is_leaf(c) else np.int64(center_of(tree, c))
    run.reference[row], run.reach[row] = r, tree.height[c]
    low, high = run.low[row], run.high[row]
    start = np.int64(0)
    while start < tree.state["leaf_top"][0]:
        count, start = evaluate_leaves(tree, r >> 1, start, np.int64(NULL))
        for k in range(count):
            i = 2 * tree.pairs.some[k]
            low[i] = high[i] = tree.pairs.block[k]
    for u in run.order:
        unite_in_row(run, row, u, run.left[u], run.right[u])
    for k in range(run.state["n_made"][0]):
        u = run.made[k]
        if run.is_new[u]:
            unite_in_row(run, row, u, tree.left[u], tree.right[u])


def bound_by_reference(linkage, tree, run, c, row, u):
    """Points of u do not reach the reference within less than the nearest of them; points of c not the farthest of u.

    Neither cover their own cluster within less than its radius.
    """
    far, reach = run.high[row, u], run.reach[row]
    if tree.pairs.state["triangle"][0] == ITSELF:
        over = far - reach - ROUNDING * (far + reach)
    elif tree.pairs.state["triangle"][0] == SQUARE_ROOT:
        over = max(np.sqrt(far) - np.sqrt(reach) - ROUNDING * (np.sqrt(far) + np.sqrt(reach)), 0.0) ** 2
    else:
        over = 0.0
    return min(max(over, tree.height[c]), max(run.low[row, u], tree.height[u]))


@step
def measure_nearest(linkage, tree, run):
    """How far the nearest point of each node is."""
    for k in range(0, run.near.size, 2):
        run.near[k] = tree.pairs.lower[k]
    for u in run.order:
        run.near[u] = min(run.near[tree.left[u]], run.near[tree.right[u]])

"""Single linkage: the smallest dissimilarity between two clusters (`eq.SingleLinkage`)."""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import NULL
from evertree.kernels.compile import inline, step
from evertree.kernels.pairwise.check import cross, set_cross, side_of
from evertree.kernels.pairwise.pairs import nearest
from evertree.kernels.pairwise.point import know_smaller_first
from evertree.kernels.pairwise.values import NOTHING_YET, collect_both
from evertree.kernels.shared.topology import is_leaf
from evertree.linkages import Linkage, Tag


class Single(Tag):
    """The tag of single linkage."""


LINKAGE = Linkage(
    "single",
    Single,
    reducible=True,
    strongly_reducible=True,
    nni_reducible=True,
    statistics=None,
    bounds_help=True,
    is_spanning=True,
)


def definition(d, weights, a, b):
    """`eq.SingleLinkage`."""
    return d[a, b].min()


def coefficients(linkage, size_a, size_b, size_c):
    """`tab.Recurrence`."""
    return 0.5, 0.5, 0.0, -0.5


@step
def compare(linkage, tree, a, c, floor, start, value):
    """Pairs at `floor` or above are ignored."""
    pairs = tree.pairs
    n_rows, n_others = collect_both(tree, a, c)
    rows, others = pairs.rows[:n_rows], pairs.others[:n_others]
    value, row = nearest(pairs, rows, others, start, floor if value == NOTHING_YET else value)
    return value, value < floor, (row if row < rows.size else -1)


def with_member(linkage, so_far, value, share):
    """The smaller one."""
    return min(so_far, value)


def without_members(linkage):
    """The minimum over nothing."""
    return np.inf


# -- shortcuts


def is_stable_if_monotone(linkage):
    """`thm.SingleLinkage`."""
    return True


def derive(linkage, tree, v, side):
    """The smaller of the two is the height of the parent."""
    height = tree.height[tree.parent[v]]
    other, _ = cross(tree, v, 1 - side)
    return other > height, height, 0.0


def least_cross(linkage, tree, v):
    """`prop.SingleLinkageMonotoneLSO`."""
    return tree.height[tree.parent[v]]


def floor_of_move(linkage, tree, v):
    """ζ(b ∪ c, a) is ζ(a, b), however far a and c are from each other."""
    return tree.height[v]


@inline
def raise_crosses(tree, v, least):
    """Raise the lower bounds on both cross values of `v` to `least`."""
    tree.cross_left[v] = max(tree.cross_left[v], least)
    tree.cross_right[v] = max(tree.cross_right[v], least)


def strengthen(linkage, tree, v):
    """The height of the parent is the smaller of the two."""
    raise_crosses(tree, v, tree.height[tree.parent[v]])


def inherit(linkage, tree, z_ab, z_ac, z_bc, v, a, b, c):
    """The minimum over a part is no smaller than over the whole."""
    if not is_leaf(a):  # its sibling was b
        tree.cross_left[a] = min(max(tree.cross_left[a], z_ab), z_ac)
        tree.cross_right[a] = min(max(tree.cross_right[a], z_ab), z_ac)
    if not is_leaf(b):  # its sibling was a
        tree.cross_left[b] = z_bc
        tree.cross_right[b] = z_bc
    if not is_leaf(c):  # its sibling was a ∪ b
        raise_crosses(tree, c, z_bc)
    g = tree.parent[v]  # its children were a ∪ b and c
    if tree.parent[g] != NULL:
        raise_crosses(tree, g, tree.height[tree.parent[g]])
    side = side_of(tree, g, v)
    with_ab, with_c = cross(tree, g, side)[0], cross(tree, g, 1 - side)[0]
    set_cross(tree, g, side, min(with_ab, with_c), False, 0.0)
    set_cross(tree, g, 1 - side, with_ab, False, 0.0)
    for u in (a, b, c):
        tree.exact[u] = 0


def changed(linkage, tree, value, is_exact, error, x, y, i, comes):
    """It falls to the linkage between `i` and y, or may rise if that was the minimum."""
    lower, upper = tree.pairs.lower[y], tree.pairs.upper[y]
    if comes:
        return min(value, lower), (is_exact and value <= lower) or (lower == upper and upper <= value), 0.0
    return value, is_exact and value < lower, 0.0


def checks_all(linkage, comes):
    """What a height implied before it fell is kept by `strengthen`, and where one rose, its check is queued."""
    return False


def uses_bounds(linkage):
    """Only the nearest points need to be compared."""
    return True


def matters(linkage, pairs, u, best):
    """A point may be nearer."""
    return pairs.lower[u] < best


def bound_to_start_from(linkage, pairs, u):
    """It falls from here."""
    return pairs.upper[u]


know_children = know_smaller_first

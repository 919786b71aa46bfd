"""Complete linkage: the largest dissimilarity between two clusters (`eq.CompleteLinkage`)."""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import ITSELF
from evertree.kernels.compile import step
from evertree.kernels.pairwise.check import cross, forget_cross, set_cross, side_of
from evertree.kernels.pairwise.pairs import farthest
from evertree.kernels.pairwise.point import know_smaller_first
from evertree.kernels.pairwise.values import collect_both
from evertree.linkages import Linkage, Tag


class Complete(Tag):
    """The tag of complete linkage."""


LINKAGE = Linkage(
    "complete",
    Complete,
    reducible=True,
    strongly_reducible=True,
    nni_reducible=True,
    statistics=None,
    bounds_help=True,
)


def definition(d, weights, a, b):
    """`eq.CompleteLinkage`."""
    return d[a, b].max()


def coefficients(linkage, size_a, size_b, size_c):
    """`tab.Recurrence`."""
    return 0.5, 0.5, 0.0, 0.5


@step
def compare(linkage, tree, a, c, floor, start, value):
    """One pair at `floor` or above is enough."""
    pairs = tree.pairs
    n_rows, n_others = collect_both(tree, a, c)
    rows, others = pairs.rows[:n_rows], pairs.others[:n_others]
    value, row = farthest(pairs, rows, others, start, max(value, 0.0), floor)
    is_done = value >= floor or row == rows.size
    return value, value < floor, (-1 if is_done else row)


def with_member(linkage, so_far, value, share):
    """The larger one."""
    return max(so_far, value)


def without_members(linkage):
    """The maximum over nothing."""
    return 0.0


# -- shortcuts


def derive(linkage, tree, v, side):
    """The larger of the two is the height of the parent."""
    height = tree.height[tree.parent[v]]
    other, is_exact = cross(tree, v, 1 - side)
    return is_exact and other < height, height, 0.0


def least_cross(linkage, tree, v):
    """The larger of the two exceeds the smaller by no more than the height of `v`."""
    return tree.height[tree.parent[v]] - tree.height[v] if tree.pairs.state["triangle"][0] == ITSELF else 0.0


def inherit(linkage, tree, z_ab, z_ac, z_bc, v, a, b, c):
    """The maximum over a part is no larger than over the whole."""
    tree.exact[a] = 0  # its sibling was b
    forget_cross(tree, b)
    forget_cross(tree, c)
    g = tree.parent[v]  # its children were a ∪ b and c
    side = side_of(tree, g, v)
    set_cross(tree, g, side, cross(tree, g, 1 - side)[0], False, 0.0)
    set_cross(tree, g, 1 - side, 0.0, False, 0.0)


def changed(linkage, tree, value, is_exact, error, x, y, i, comes):
    """It rises to the linkage between `i` and y, or may fall if that was the maximum."""
    lower, upper = tree.pairs.lower[y], tree.pairs.upper[y]
    if comes:
        return max(value, lower), is_exact and (upper <= value or lower == upper), 0.0
    return (value if upper < value else 0.0), is_exact and upper < value, 0.0


def checks_all(linkage, comes):
    """The height of a parent rises on insertion: checks that held by it still hold."""
    return not comes


def uses_bounds(linkage):
    """Only the farthest points need to be compared."""
    return True


def matters(linkage, pairs, u, best):
    """A point may be farther."""
    return pairs.upper[u] > best


know_children = know_smaller_first


# -- repairs


def follows_pieces(linkage):
    """The maximum over a union is that of its parts."""
    return True


def grows_with_parts(linkage):
    """The maximum over a part is no larger than over the whole."""
    return True


def bound_after(linkage, bound, size, z, z_all, near, weight, comes):
    """It is at least the value of the point, and falls only if the point was decisive."""
    if comes:
        return max(bound, z)
    return bound if z < bound else 0.0


def value_after(linkage, value, error, size, z, weight, comes):
    """The same."""
    if comes:
        return max(value, z), 0.0
    return value, (0.0 if z < value else np.inf)


def bound_by_triangle(linkage, z_u, z_v):
    """The farthest point of one cluster is that much farther than any of the other."""
    return abs(z_u - z_v)

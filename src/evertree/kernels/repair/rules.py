"""What a linkage says of bounds and values: each has its own, in its file, if it needs other than these."""

from __future__ import annotations

import numpy as np

from evertree.kernels.dispatch import linkage_may_define
from evertree.kernels.shared.recurrence import linkage_of_union


@linkage_may_define
def bound_of_union(linkage, a, b, size_a, size_b):
    """A lower bound on ζ(A ∪ B, C), for a linkage of pairs, from bounds on ζ(A, C) and ζ(B, C)."""
    return linkage_of_union(linkage, a, b, 0.0, size_a, size_b, 1.0)


@linkage_may_define
def unites_exactly(linkage):
    """Whether `bound_of_union` is exact where both bounds are."""
    return True


@linkage_may_define
def bound_after(linkage, bound, size, z, z_all, near, weight, comes):
    """A lower bound on ζ(P ± x, C), given one on ζ(P, C), the size of P, and ζ(x, C)."""
    return 0.0


@linkage_may_define
def value_after(linkage, value, error, size, z, weight, comes):
    """ζ(P ± x, C) from ζ(P, C) and its error; the error is infinite where that does not follow."""
    return 0.0, np.inf


@linkage_may_define
def point_bound(linkage, tree, run, u):
    """A lower bound on ζ between the point and old node `u`, and whether it is exact."""
    return tree.pairs.lower[u], True


@linkage_may_define
def bound_by_triangle(linkage, z_u, z_v):
    """A lower bound on ζ(u, v) from ζ between a point and each of them, where the triangle inequality holds."""
    return 0.0


@linkage_may_define
def follows_pieces(linkage):
    """Whether `bound_after` also holds for a cluster in place of the point, and `with_member` never lowers a value."""
    return False


@linkage_may_define
def grows_with_parts(linkage):
    """Whether ζ to a part of a cluster is never more than to all of it."""
    return False


@linkage_may_define
def n_pairs_in_one(linkage):
    """Of so many pairs of two clusters about one is compared: a guess, as what is compared depends on pivots."""
    return 1


@linkage_may_define
def has_references(linkage):
    """Whether active clusters have references."""
    return False


@linkage_may_define
def find_reference(linkage, tree, run, c, row):
    """Choose the reference of cluster `c`, and measure all others from it, if the linkage needs it."""


@linkage_may_define
def bound_by_reference(linkage, tree, run, c, row, u):
    """A lower bound on ζ(c, u) from the reference of `c`."""
    return 0.0


@linkage_may_define
def measure_nearest(linkage, tree, run):
    """Fill ``run.near``, if the linkage needs it."""

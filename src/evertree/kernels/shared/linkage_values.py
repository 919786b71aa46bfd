"""The value of a linkage that follows from means and variances, and the comparison on which everything relies.

ζ(a, b) is an offset, which follows from the variances, plus the squared distance between the means times a factor,
which follows from the sizes (`eq.WardLinkage`, `eq.AverageLinkSimple`): the linkage defines both.
"""

from __future__ import annotations

from typing import Any

from evertree.kernels.columns import NULL
from evertree.kernels.compile import inline, short_step
from evertree.kernels.dispatch import linkage_may_define, linkage_must_define
from evertree.kernels.shared.topology import children
from evertree.kernels.statistics.means import sq_dist, sq_dist_error


@linkage_must_define
def factor(linkage, size_a, size_b):
    """The factor of the squared distance between the means, for numbers and NumPy arrays.

    It is symmetric and positive, at most the smaller size or 1, and never decreases when a size grows.
    """


@linkage_may_define
def offset(linkage, variance_a, variance_b):
    """The term added, for numbers and NumPy arrays. It is linear and symmetric, with nonnegative coefficients."""
    return 0.0


@linkage_may_define
def height_of(linkage, value):
    """A height in the units that users see, up to a factor of the metric, from ζ; also for pairs of points."""
    return value


def value_of_means(linkage: Any, size_a: Any, variance_a: Any, size_b: Any, variance_b: Any, sq: Any) -> Any:
    """ζ from sizes, variances and the squared distance between the means, for numbers and NumPy arrays."""
    return offset(linkage, variance_a, variance_b) + factor(linkage, size_a, size_b) * sq


_value = short_step(value_of_means)


@short_step
def value_of_sq(linkage, tree, u, v, sq):
    """ζ(u, v) from the squared distance between the means of `u` and `v`. O(1)."""
    return _value(linkage, tree.size[u], tree.variance[u], tree.size[v], tree.variance[v], sq)


@short_step
def value_to_point(linkage, tree, u, sq):
    """ζ between node `u` and a point of weight 1 from the squared distance between the mean and the point. O(1)."""
    return _value(linkage, tree.size[u], tree.variance[u], 1.0, 0.0, sq)


@short_step
def least_value(linkage, tree, a, distance, lightest):
    """A lower bound on ζ between `a` and any cluster of weight at least `lightest` whose mean is at `distance`."""
    return _value(linkage, tree.size[a], tree.variance[a], lightest, 0.0, distance * distance)


@short_step
def sq_of_value(linkage, tree, u, v, value):
    """The squared distance between the means of `u` and `v` from ζ(u, v), with less accuracy. O(1)."""
    sq = max(value - offset(linkage, tree.variance[u], tree.variance[v]), 0.0)
    return sq / distance_factor(linkage, tree, u, v)


@short_step
def distance_factor(linkage, tree, u, v):
    """The factor of the squared distance between the means in ζ(u, v). O(1)."""
    return factor(linkage, tree.size[u], tree.size[v])


@inline
def linkage_value(linkage, tree, u, v):
    """ζ(u, v). O(m); reads rows `u` and `v` only."""
    return value_of_sq(linkage, tree, u, v, sq_dist(tree.mean, u, v))


@inline
def exceeds(linkage, tree, tolerance, larger, a, b, smaller, c, d):
    """Whether ζ(a, b) = `larger` is above ζ(c, d) = `smaller` by more than the tolerance, and by more than rounding.

    Without the second condition, points that differ only in their last bits could be swapped forever. A wider tolerance
    than that of the linkage allows for proportionally more rounding.
    """
    if not smaller < larger - tolerance * larger:
        return False
    margin = distance_factor(linkage, tree, a, b) * sq_dist_error(tree.mean, a, b)
    margin += distance_factor(linkage, tree, c, d) * sq_dist_error(tree.mean, c, d)
    return smaller < larger - tolerance / linkage.tolerance * margin


@inline
def is_first(tree, tolerance, a, z_a, b, z_b):
    """Whether `a`, at linkage `z_a`, comes before `b`, at `z_b`: it is closer, or as close with the older point."""
    tied = abs(z_a - z_b) <= tolerance * max(z_a, z_b)
    return tree.birth[a] < tree.birth[b] if tied else z_a < z_b


@inline
def nearer_child(linkage, tree, tolerance, v, c):
    """The check (`def.LocalStructuralOptimality`) at node `v` as if its sibling were `c`.

    NULL if its children a and b are as close to each other as either is to `c`; otherwise the one that is closer to
    `c`, ties going to the smaller birth. O(m); reads rows `v`, a, b and `c` only.
    """
    a, b = children(tree, v)
    z_ab = tree.height[v]
    z_ac = linkage_value(linkage, tree, a, c)
    z_bc = linkage_value(linkage, tree, b, c)
    if not min(z_ac, z_bc) < z_ab:  # the common case, without checking for ties
        return NULL
    near, z_near = (a, z_ac) if is_first(tree, tolerance, a, z_ac, b, z_bc) else (b, z_bc)
    return near if exceeds(linkage, tree, tolerance, z_ab, a, b, z_near, near, c) else NULL

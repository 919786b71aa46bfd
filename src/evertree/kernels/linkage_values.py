"""The linkages that follow from means and variances, and the comparison on which everything rests.

What kernels of a `MeanTree` know of a linkage is here, but for what follows from its properties in `evertree.linkages`.
Which one it is shows in the class of a tag, when a kernel is compiled.
"""

from __future__ import annotations

import math

from evertree.columns import NULL
from evertree.kernels.compile import choose, inline
from evertree.kernels.statistics import sq_dist, sq_dist_error
from evertree.kernels.topology import children
from evertree.linkages import Average, Complete, Minimax, Single, Ward


@inline
def joint_weight(a, b):
    """The harmonic sum a b / (a + b) of two weights, in an order that does not overflow."""
    return a / (a + b) * b


@inline
def ward_factor(tree, u, v):
    """|u| |v| / (|u| + |v|)."""
    return joint_weight(tree.size[u], tree.size[v])


@inline
def average_value(tree, u, v):
    """Average linkage on squared Euclidean distances (`eq.AverageLinkSimple`). O(m)."""
    return tree.variance[u] + tree.variance[v] + sq_dist(tree.mean, u, v)


# -- Ward


def _ward_of_sq(linkage, tree, u, v, sq):
    """`eq.WardLinkage`."""
    return ward_factor(tree, u, v) * sq


def _sq_of_ward(linkage, tree, u, v, value):
    return value / ward_factor(tree, u, v)


def _ward_factor(linkage, tree, u, v):
    return ward_factor(tree, u, v)


def _ward_to_point(linkage, tree, u, sq):
    return joint_weight(tree.size[u], 1.0) * sq


def _least_ward(linkage, tree, a, distance, lightest):
    return joint_weight(tree.size[a], lightest) * distance * distance


def _ward_height(linkage, value):
    return math.sqrt(2.0 * value)


# -- average


def _average_of_sq(linkage, tree, u, v, sq):
    """`eq.AverageLinkSimple`."""
    return tree.variance[u] + tree.variance[v] + sq


def _sq_of_average(linkage, tree, u, v, value):
    return max(value - tree.variance[u] - tree.variance[v], 0.0)


def _average_factor(linkage, tree, u, v):
    return 1.0


def _average_to_point(linkage, tree, u, sq):
    return tree.variance[u] + sq


def _least_average(linkage, tree, a, distance, lightest):
    return tree.variance[a] + distance * distance


def _same_height(linkage, value):
    return value


# -- all


#: ζ(u, v) from the squared distance between the means of `u` and `v`. O(1).
value_of_sq = choose("linkage", {Ward: _ward_of_sq, Average: _average_of_sq})

#: The squared distance between the means of `u` and `v` from ζ(u, v), less exact than that is. O(1).
sq_of_value = choose("linkage", {Ward: _sq_of_ward, Average: _sq_of_average})

#: What the squared distance between the means is multiplied with in ζ(u, v).
distance_factor = choose("linkage", {Ward: _ward_factor, Average: _average_factor})

#: ζ between node `u` and a point of weight 1 from the squared distance between the mean and the point. O(1).
value_to_point = choose("linkage", {Ward: _ward_to_point, Average: _average_to_point})

#: A lower bound on ζ between `a` and any cluster of at least the weight `lightest` whose mean is so far away. O(1).
least_value = choose("linkage", {Ward: _least_ward, Average: _least_average})

#: A height in the units that users see, but for a factor, from ζ; from pairs of points, too.
height_of = choose("linkage", {Ward: _ward_height, **dict.fromkeys((Average, Single, Complete, Minimax), _same_height)})


@inline
def linkage_value(linkage, tree, u, v):
    """ζ(u, v). O(m); reads rows `u` and `v` only."""
    return value_of_sq(linkage, tree, u, v, sq_dist(tree.mean, u, v))


@inline
def exceeds(linkage, tree, tolerance, larger, a, b, smaller, c, d):
    """Whether ζ(a, b) = `larger` is above ζ(c, d) = `smaller` by more than the tolerance, and by more than rounding.

    Without the second condition, points that differ in their last bits only could be swapped for ever. A wider
    tolerance than the linkage's own allows for as much more rounding.
    """
    if not smaller < larger - tolerance * larger:
        return False
    margin = distance_factor(linkage, tree, a, b) * sq_dist_error(tree.mean, a, b)
    margin += distance_factor(linkage, tree, c, d) * sq_dist_error(tree.mean, c, d)
    return smaller < larger - tolerance / linkage.tolerance * margin


@inline
def is_first(tree, tolerance, a, z_a, b, z_b):
    """Whether `a`, at linkage `z_a`, comes before `b`, at `z_b`: it is closer, or as close and has the older point."""
    tied = abs(z_a - z_b) <= tolerance * max(z_a, z_b)
    return tree.birth[a] < tree.birth[b] if tied else z_a < z_b


@inline
def nearer_child(linkage, tree, tolerance, v, c):
    """The check (`def.LocalStructuralOptimality`) at node `v` as if its sibling were `c`.

    NULL if its children a and b are as close to each other as either is to `c`; otherwise the one that is closer to
    `c`, a tie going to the smaller birth. O(m); reads rows `v`, a, b and `c` only.
    """
    a, b = children(tree, v)
    z_ab = tree.height[v]
    z_ac = linkage_value(linkage, tree, a, c)
    z_bc = linkage_value(linkage, tree, b, c)
    if not min(z_ac, z_bc) < z_ab:  # the common case, without a look at ties
        return NULL
    near, z_near = (a, z_ac) if is_first(tree, tolerance, a, z_ac, b, z_bc) else (b, z_bc)
    return near if exceeds(linkage, tree, tolerance, z_ab, a, b, z_near, near, c) else NULL

"""Average linkage: the mean dissimilarity between two clusters (`eq.AverageLinkage`)."""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import ITSELF, LEFT_IS_EXACT, RIGHT_IS_EXACT
from evertree.kernels.compile import inline, step
from evertree.kernels.pairwise.check import (
    LARGEST_ERROR,
    LEFT,
    RIGHT,
    SMALLEST_SHARE,
    child_at,
    cross,
    cross_error,
    difference,
    error_of_sum,
    forget_cross,
    set_cross,
    side_of,
)
from evertree.kernels.pairwise.pairs import find_shares, weighted_sum
from evertree.kernels.pairwise.values import collect_both, value_between
from evertree.kernels.shared.topology import is_leaf
from evertree.linkages import Linkage, Tag

#: Pairs that may be compared without a pause.
MOST_AT_ONCE = 1 << 18


class Average(Tag):
    """The tag of average linkage."""


LINKAGE = Linkage(
    "average",
    Average,
    reducible=True,
    strongly_reducible=True,
    nni_reducible=False,
    statistics="squared",
)


def factor(linkage, size_a, size_b):
    """`eq.AverageLinkSimple`: the squared distance between the means is not scaled."""
    return 1.0


def offset(linkage, variance_a, variance_b):
    """`eq.AverageLinkSimple`."""
    return variance_a + variance_b


def definition(d, weights, a, b):
    """`eq.AverageLinkage`."""
    return weights[a] / weights[a].sum() @ d[a, b] @ (weights[b] / weights[b].sum())


def coefficients(linkage, size_a, size_b, size_c):
    """`tab.Recurrence`."""
    both = size_a + size_b
    return size_a / both, size_b / both, 0.0, 0.0


@step
def compare(linkage, tree, a, c, floor, start, value):
    """All pairs are needed."""
    pairs = tree.pairs
    n_rows, n_others = collect_both(tree, a, c)
    rows, others = pairs.rows[:n_rows], pairs.others[:n_others]
    total, row = weighted_sum(tree, rows, others, start, max(value, 0.0))
    if row < rows.size:
        return total, False, row
    return total / find_shares(tree, rows, pairs.share), True, -1


def with_member(linkage, so_far, value, share):
    """The weighted sum."""
    return so_far + share * value


def without_members(linkage):
    """The sum over nothing."""
    return 0.0


# -- shortcuts


def derive(linkage, tree, v, side):
    """The mean of the two is the height of the parent."""
    other, is_exact = cross(tree, v, 1 - side)
    u, w = child_at(tree, v, side), child_at(tree, v, 1 - side)
    g = tree.parent[v]
    total = (tree.size[u] + tree.size[w]) * tree.height[g]
    rest, error = difference(total, tree.error[g], tree.size[w] * other, cross_error(tree, v, 1 - side))
    return is_exact and error <= LARGEST_ERROR, rest / tree.size[u], error


def least_cross(linkage, tree, v):
    """The larger of the two exceeds the smaller by no more than the height of `v`."""
    share = max(tree.size[tree.left[v]], tree.size[tree.right[v]]) / tree.size[v]
    return tree.height[tree.parent[v]] - share * tree.height[v] if tree.pairs.state["triangle"][0] == ITSELF else 0.0


@inline
def mean_of_union(a, size_a, error_a, b, size_b, error_b):
    """The mean over two parts from their means, and its error."""
    share_a, share_b = size_a / (size_a + size_b), size_b / (size_a + size_b)
    return share_a * a + share_b * b, error_of_sum(share_a * a, error_a, share_b * b, error_b)


@inline
def mean_of_rest(whole, size, error, part, part_size, part_error, rest_size):
    """The mean over a whole without one of its parts, and its error."""
    rest, rest_error = difference(size * whole, error, part_size * part, part_error)
    return rest / rest_size, rest_error


@inline
def means_to(linkage, tree, u, w, z_uw, error_uw):
    """ζ between each child of `u` and node `w`, from ζ(u, w), and their errors: left, right.

    The lighter child is compared, and the other value follows. Errors are infinite if that would take too long.
    """
    a, b = tree.left[u], tree.right[u]
    is_left = tree.size[a] <= tree.size[b]
    lighter, heavier = (a, b) if is_left else (b, a)
    if tree.size[lighter] * tree.size[w] > MOST_AT_ONCE:
        return 0.0, np.inf, 0.0, np.inf
    value = value_between(linkage, tree, np.int64(lighter), np.int64(w))
    size, heavy = tree.size[lighter], tree.size[heavier]
    rest, error = mean_of_rest(z_uw, size + heavy, error_uw, value, size, 1.0, heavy)
    if is_left:
        return value, 1.0, rest, error
    return rest, error, value, 1.0


@inline
def set_both(tree, v, left, left_error, right, right_error):
    """Store both cross values, if they are accurate enough."""
    forget_cross(tree, v)
    if left_error <= LARGEST_ERROR:
        set_cross(tree, v, LEFT, left, True, left_error)
    if right_error <= LARGEST_ERROR:
        set_cross(tree, v, RIGHT, right, True, right_error)


def inherit(linkage, tree, z_ab, z_ac, z_bc, v, a, b, c):
    """The mean over a union follows from the means over its parts, and over a part from the other and the whole."""
    forget_cross(tree, b)
    forget_cross(tree, tree.parent[v])
    both_exact = LEFT_IS_EXACT | RIGHT_IS_EXACT
    size_a, size_b, size_c = tree.size[a], tree.size[b], tree.size[c]
    error_ac = cross_error(tree, v, side_of(tree, v, c))
    if not is_leaf(a) and tree.exact[a] == both_exact and size_c < size_b:  # its sibling was b, and is b ∪ c
        left, left_error, right, right_error = means_to(linkage, tree, a, c, z_ac, error_ac)
        left, left_error = mean_of_union(
            tree.cross_left[a], size_b, cross_error(tree, a, LEFT), left, size_c, left_error
        )
        right, right_error = mean_of_union(
            tree.cross_right[a], size_b, cross_error(tree, a, RIGHT), right, size_c, right_error
        )
        set_both(tree, a, left, left_error, right, right_error)
    else:
        forget_cross(tree, a)
    if not is_leaf(c) and tree.exact[c] == both_exact and size_a < size_b:  # its sibling was a ∪ b, and is b
        both = size_a + size_b
        left, left_error, right, right_error = means_to(linkage, tree, c, a, z_ac, error_ac)
        left, left_error = mean_of_rest(
            tree.cross_left[c], both, cross_error(tree, c, LEFT), left, size_a, left_error, size_b
        )
        right, right_error = mean_of_rest(
            tree.cross_right[c], both, cross_error(tree, c, RIGHT), right, size_a, right_error, size_b
        )
        set_both(tree, c, left, left_error, right, right_error)
    else:
        forget_cross(tree, c)


def changed(linkage, tree, value, is_exact, error, x, y, i, comes):
    """The mean with `i`, or the mean over the rest."""
    weight, size = tree.size[i], tree.size[x]
    z = tree.pairs.lower[y]
    if comes:
        mean, error = mean_of_union(value, size, error, z, weight, 1.0)
        return mean, is_exact and error <= LARGEST_ERROR, error
    rest_size, size_error = difference(size, 1.0, weight, 1.0)
    rest, error = difference(size * value, error, weight * z, 1.0)
    error += size_error
    if is_exact and error <= LARGEST_ERROR:
        return rest / rest_size, True, error
    return 0.0, False, 0.0


# -- repairs


def follows_pieces(linkage):
    """The mean over a union follows from those over its parts."""
    return True


def bound_after(linkage, bound, size, z, z_all, near, weight, comes):
    """The mean with the point, or over the rest."""
    if comes:
        return (size * bound + weight * z) / (size + weight)
    rest, rest_size = size * bound - weight * z, size - weight
    if rest < SMALLEST_SHARE * size * bound or rest_size < SMALLEST_SHARE * size:  # rounding might lift it above ζ
        return 0.0
    return rest / rest_size


def value_after(linkage, value, error, size, z, weight, comes):
    """The same, if rounding allows it."""
    if comes:
        return mean_of_union(value, size, error, z, weight, 1.0)
    rest_size, size_error = difference(size, 1.0, weight, 1.0)
    rest, rest_error = difference(size * value, error, weight * z, 1.0)
    return rest / max(rest_size, 1e-300), rest_error + size_error


def bound_by_triangle(linkage, z_u, z_v):
    """The mean distance to the point of one cluster is no more than that of the other and the mean between them."""
    return abs(z_u - z_v)

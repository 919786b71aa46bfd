"""The check at a node of a `PairTree`, from the height and the cross values that are known, and what a move changes.

With v = (a, b) and sibling c below g, the height of g ties the two cross values ζ(a, c) and ζ(b, c) together
(`eq.Recurrence`): it is the smaller, the larger or the mean of them. So one often follows from the other.
"""

from __future__ import annotations

import numpy as np

from evertree.columns import (
    ITSELF,
    LEFT_IS_EXACT,
    NULL,
    PAUSED_NODE,
    PAUSED_ROW,
    PAUSED_SIDE,
    RIGHT_IS_EXACT,
    TRIANGLE,
)
from evertree.kernels.compile import choose, inline, step
from evertree.kernels.linkage_values import is_first
from evertree.kernels.pair_values import NOTHING_YET, compare, value_between
from evertree.kernels.pairs import note_stale
from evertree.kernels.recurrence import linkage_of_union
from evertree.kernels.topology import is_leaf, sibling
from evertree.linkages import Average, Complete, Minimax, Single

LEFT, RIGHT = 0, 1

#: Instead of a node: the check has paused, and goes on when it is made again.
BUSY = -3

#: A value above which nothing is tied with a value that violates homogeneity, in tolerances.
CLEAR_OF_TIES = 4.0

# A mean that follows from others is as exact as the largest sum that it comes from. Its *error* is that sum as a
# multiple of its own: a bound, up to a small factor, on the units in the last place by which it may be off, as rounding
# errors of parts do not add up where the parts are put together again. A mean with a large one is computed anew, and so
# is a difference that is a small part of what it is taken from.
LARGEST_ERROR = 1e4
SMALLEST_SHARE = 0.25
ERROR_OF_STEP = 0.01

#: Pairs that may be compared in one go, without a pause.
MOST_AT_ONCE = 1 << 18


@inline
def side_of(tree, v, child):
    """Which child of `v` it is."""
    return LEFT if tree.left[v] == child else RIGHT


@inline
def child_at(tree, v, side):
    """The child of `v` at a side."""
    return tree.left[v] if side == LEFT else tree.right[v]


@inline
def cross(tree, v, side):
    """What is known of ζ between the child of `v` at a side and the sibling of `v`: a lower bound, and if it is ζ."""
    if side == LEFT:
        return tree.cross_left[v], (tree.exact[v] & LEFT_IS_EXACT) != 0
    return tree.cross_right[v], (tree.exact[v] & RIGHT_IS_EXACT) != 0


@inline
def cross_error(tree, v, side):
    """The error of a cross value that is exact."""
    return np.float64(tree.error_left[v] if side == LEFT else tree.error_right[v])


@inline
def set_cross(tree, v, side, value, is_exact, error):
    """Note what is known of a cross value."""
    if side == LEFT:
        tree.cross_left[v] = value
        tree.error_left[v] = error
        tree.exact[v] = (tree.exact[v] & RIGHT_IS_EXACT) | (LEFT_IS_EXACT if is_exact else 0)
    else:
        tree.cross_right[v] = value
        tree.error_right[v] = error
        tree.exact[v] = (tree.exact[v] & LEFT_IS_EXACT) | (RIGHT_IS_EXACT if is_exact else 0)


@inline
def error_of_sum(a, error_a, b, error_b):
    """The error of a + b."""
    total = a + b
    if total == 0.0 or max(error_a, error_b) == np.inf:
        return max(error_a, error_b)
    return max(a * error_a, b * error_b) / total + ERROR_OF_STEP


@inline
def difference(total, total_error, part, part_error):
    """Total − part, and its error, which is infinite where it is a small part of the total."""
    rest = total - part
    if not rest >= SMALLEST_SHARE * total or max(total_error, part_error) == np.inf:
        return 0.0, np.inf
    if rest == 0.0:
        return 0.0, 1.0
    return rest, max(total * total_error, part * part_error) / rest + ERROR_OF_STEP


@inline
def forget_cross(tree, v):
    """Nothing is known of the cross values of `v` any more."""
    tree.cross_left[v] = 0.0
    tree.cross_right[v] = 0.0
    tree.exact[v] = 0


# What follows for one cross value from the other and the height of the parent: whether it does, the value, its error.


def _derive_single(linkage, tree, v, side):
    """The smaller of the two is the height of the parent."""
    height = tree.height[tree.parent[v]]
    other, _ = cross(tree, v, 1 - side)
    return other > height, height, 0.0


def _derive_complete(linkage, tree, v, side):
    """The larger of the two is the height of the parent."""
    height = tree.height[tree.parent[v]]
    other, is_exact = cross(tree, v, 1 - side)
    return is_exact and other < height, height, 0.0


def _derive_average(linkage, tree, v, side):
    """The mean of the two is the height of the parent."""
    other, is_exact = cross(tree, v, 1 - side)
    u, w = child_at(tree, v, side), child_at(tree, v, 1 - side)
    g = tree.parent[v]
    total = (tree.size[u] + tree.size[w]) * tree.height[g]
    rest, error = difference(total, tree.error[g], tree.size[w] * other, cross_error(tree, v, 1 - side))
    return is_exact and error <= LARGEST_ERROR, rest / tree.size[u], error


def _derive_minimax(linkage, tree, v, side):
    return False, 0.0, 0.0


#: The cross value at a side from the other one. O(1).
derive = choose(
    "linkage",
    {Single: _derive_single, Complete: _derive_complete, Average: _derive_average, Minimax: _derive_minimax},
)


@step
def settle(linkage, tree, v, floor):
    """Make each cross value of `v` known, or known to be at least `floor`; return False where it has paused."""
    state = tree.pairs.state
    c = sibling(tree, v)
    lighter = LEFT if tree.size[tree.left[v]] <= tree.size[tree.right[v]] else RIGHT
    for turn in range(2):
        side = lighter if turn == 0 else 1 - lighter
        value, is_exact = cross(tree, v, side)
        if is_exact or value >= floor:
            continue
        is_known, derived, error = derive(linkage, tree, v, side)
        if is_known:
            set_cross(tree, v, side, derived, True, error)
            continue
        start, so_far = 0, NOTHING_YET
        if state[PAUSED_NODE] == v and state[PAUSED_SIDE] == side:
            start, so_far = state[PAUSED_ROW], tree.pairs.paused[0]
        child = np.int64(child_at(tree, v, side))
        found, is_exact, row = compare(linkage, tree, child, np.int64(c), floor, np.int64(start), so_far)
        if row >= 0:
            state[PAUSED_NODE], state[PAUSED_SIDE], state[PAUSED_ROW] = v, side, row
            tree.pairs.paused[0] = found
            return False
        state[PAUSED_NODE] = NULL
        set_cross(tree, v, side, found, is_exact, 1.0)
    return True


# A lower bound on both cross values of v = (a, b) from the height of its parent, which is the smallest, the largest or
# the mean of them. By the triangle inequality, the larger exceeds the smaller by no more than the height of v.


def _least_single(linkage, tree, v):
    """`prop.SingleLinkageMonotoneLSO`."""
    return tree.height[tree.parent[v]]


def _least_complete(linkage, tree, v):
    return tree.height[tree.parent[v]] - tree.height[v] if tree.pairs.state[TRIANGLE] == ITSELF else 0.0


def _least_average(linkage, tree, v):
    share = max(tree.size[tree.left[v]], tree.size[tree.right[v]]) / tree.size[v]
    return tree.height[tree.parent[v]] - share * tree.height[v] if tree.pairs.state[TRIANGLE] == ITSELF else 0.0


def _least_minimax(linkage, tree, v):
    return 0.0


#: A lower bound on both cross values of `v`. O(1).
least_cross = choose(
    "linkage", {Single: _least_single, Complete: _least_complete, Average: _least_average, Minimax: _least_minimax}
)


def _enough_for_minimum(linkage, tree, v):
    """ζ(b ∪ c, a) is ζ(a, b), however far a and c are from each other."""
    return tree.height[v]


def _enough_for_maximum(linkage, tree, v):
    """It must be known, and is: ζ(a, c) is the height of the parent, as ζ(b, c) is smaller."""
    return np.inf


def _enough_for_mean(linkage, tree, v):
    return np.inf


def _enough_for_radius(linkage, tree, v):
    """It is not needed: the union stays the same."""
    return 0.0


#: From which value on the cross value of the far child need not be known, so that a move can be made.
floor_of_move = choose(
    "linkage",
    {
        Single: _enough_for_minimum,
        Complete: _enough_for_maximum,
        Average: _enough_for_mean,
        Minimax: _enough_for_radius,
    },
)


@step
def check_pairs(linkage, tree, tolerance, v):
    """The check (`def.LocalStructuralOptimality`) at `v`: its child that is closer to the sibling, or NULL, or BUSY.

    What it finds out it notes in the cross values.
    """
    height = tree.height[v]
    floor = height - tolerance * height
    if min(tree.cross_left[v], tree.cross_right[v]) >= floor or least_cross(linkage, tree, v) >= floor:
        return NULL
    if not settle(linkage, tree, v, height + CLEAR_OF_TIES * tolerance * height):
        return BUSY
    z_left, z_right = tree.cross_left[v], tree.cross_right[v]
    side = LEFT if is_first(tree, tolerance, tree.left[v], z_left, tree.right[v], z_right) else RIGHT
    if not min(z_left, z_right) < floor:
        return NULL
    if not settle(linkage, tree, v, floor_of_move(linkage, tree, v)):
        return BUSY
    return child_at(tree, v, side)


def _strengthen_single(linkage, tree, v):
    height = tree.height[tree.parent[v]]
    tree.cross_left[v] = max(tree.cross_left[v], height)
    tree.cross_right[v] = max(tree.cross_right[v], height)


def _strengthen_nothing(linkage, tree, v):
    pass


#: Note of both cross values of `v` what the height of its parent says, before that changes.
strengthen = choose(
    "linkage", {Single: _strengthen_single, **dict.fromkeys((Complete, Average, Minimax), _strengthen_nothing)}
)


# What is still known of the cross values after a move that made v = (b, c) with sibling a of v = (a, b) with sibling c.


def _inherit_single(linkage, tree, z_ab, z_ac, z_bc, v, a, b, c):
    """The minimum over a part is no smaller than over the whole."""
    if not is_leaf(a):  # its sibling was b
        tree.cross_left[a] = min(max(tree.cross_left[a], z_ab), z_ac)
        tree.cross_right[a] = min(max(tree.cross_right[a], z_ab), z_ac)
    if not is_leaf(b):  # its sibling was a
        tree.cross_left[b] = z_bc
        tree.cross_right[b] = z_bc
    if not is_leaf(c):  # its sibling was a ∪ b
        tree.cross_left[c] = max(tree.cross_left[c], z_bc)
        tree.cross_right[c] = max(tree.cross_right[c], z_bc)
    g = tree.parent[v]  # its children were a ∪ b and c
    if tree.parent[g] != NULL:
        strengthen(linkage, tree, g)
    side = side_of(tree, g, v)
    with_ab, with_c = cross(tree, g, side)[0], cross(tree, g, 1 - side)[0]
    set_cross(tree, g, side, min(with_ab, with_c), False, 0.0)
    set_cross(tree, g, 1 - side, with_ab, False, 0.0)
    for u in (a, b, c):
        tree.exact[u] = 0


def _inherit_complete(linkage, tree, z_ab, z_ac, z_bc, v, a, b, c):
    """The maximum over a part is no larger than over the whole."""
    tree.exact[a] = 0  # its sibling was b
    forget_cross(tree, b)
    forget_cross(tree, c)
    g = tree.parent[v]  # its children were a ∪ b and c
    side = side_of(tree, g, v)
    set_cross(tree, g, side, cross(tree, g, 1 - side)[0], False, 0.0)
    set_cross(tree, g, 1 - side, 0.0, False, 0.0)


@inline
def mean_of_union(a, size_a, error_a, b, size_b, error_b):
    """The mean over two parts from their means, and its error."""
    share_a, share_b = size_a / (size_a + size_b), size_b / (size_a + size_b)
    return share_a * a + share_b * b, error_of_sum(share_a * a, error_a, share_b * b, error_b)


@inline
def mean_of_rest(whole, size, error, part, part_size, part_error, rest_size):
    """The mean over the rest of a whole, without a part, and its error."""
    rest, rest_error = difference(size * whole, error, part_size * part, part_error)
    return rest / rest_size, rest_error


@inline
def means_to(linkage, tree, u, w, z_uw, error_uw):
    """ζ between each child of `u` and node `w`, from ζ(u, w), and their errors: left, right.

    The lighter child is compared, the other follows. Errors are infinite where that would take long.
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
    """Note both cross values, where they are not too far off."""
    forget_cross(tree, v)
    if left_error <= LARGEST_ERROR:
        set_cross(tree, v, LEFT, left, True, left_error)
    if right_error <= LARGEST_ERROR:
        set_cross(tree, v, RIGHT, right, True, right_error)


def _inherit_average(linkage, tree, z_ab, z_ac, z_bc, v, a, b, c):
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


def _inherit_nothing(linkage, tree, z_ab, z_ac, z_bc, v, a, b, c):
    for u in (a, b, c):
        forget_cross(tree, u)
    forget_cross(tree, tree.parent[v])


#: Keep what is still true of the cross values around a move. O(1); for average linkage up to MOST_AT_ONCE comparisons.
inherit = choose(
    "linkage",
    {Single: _inherit_single, Complete: _inherit_complete, Average: _inherit_average, Minimax: _inherit_nothing},
)


def _height_by_recurrence(linkage, tree, z_ab, z_ac, z_bc, g, a, b, c):
    return linkage_of_union(linkage, z_ab, z_ac, z_bc, tree.size[b], tree.size[c], tree.size[a])


def _same_height(linkage, tree, z_ab, z_ac, z_bc, g, a, b, c):
    return tree.height[g]


#: ζ(b ∪ c, a), by the recurrence; minimax linkage depends on the union alone, which is that of g.
height_after_move = choose(
    "linkage", {**dict.fromkeys((Single, Complete, Average), _height_by_recurrence), Minimax: _same_height}
)


@step
def update_pairs(linkage, tree, v, near):
    """After the swap that made `v` the union of its child `near` and its old sibling: heights and cross values.

    All heights follow from the values of the check.
    """
    b, c, a, g = near, sibling(tree, near), sibling(tree, v), tree.parent[v]
    # The columns are as before the move, and c has the side that a had.
    z_ab = tree.height[v]
    z_bc, _ = cross(tree, v, side_of(tree, v, b))
    z_ac, ac_is_exact = cross(tree, v, side_of(tree, v, c))
    error_ab = np.float64(tree.error[v])
    error_bc = cross_error(tree, v, side_of(tree, v, b))
    error_ac = cross_error(tree, v, side_of(tree, v, c))
    tree.height[g] = height_after_move(linkage, tree, z_ab, z_ac, z_bc, g, a, b, c)
    tree.height[v] = z_bc
    tree.error[v] = error_bc
    tree.error[g] = error_of_sum(tree.size[b] * z_ab, error_ab, tree.size[c] * z_ac, error_ac)
    tree.size[v] = tree.size[b] + tree.size[c]
    tree.birth[v] = min(tree.birth[b], tree.birth[c])
    tree.center[v] = NULL
    note_stale(tree, v)
    inherit(linkage, tree, z_ab, z_ac, z_bc, v, a, b, c)
    set_cross(tree, v, side_of(tree, v, b), z_ab, True, error_ab)
    set_cross(tree, v, side_of(tree, v, c), z_ac, ac_is_exact, error_ac)

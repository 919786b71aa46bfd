"""The check at a node of a `PairTree`, from the known height and cross values, and what a move changes.

With v = (a, b) and sibling c below g, the height of g ties the two cross values ζ(a, c) and ζ(b, c) together
(`eq.Recurrence`): it is the smaller, the larger or the mean of them. So one often follows from the other.
"""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import LEFT_IS_EXACT, NULL, RIGHT_IS_EXACT
from evertree.kernels.compile import inline, step
from evertree.kernels.dispatch import linkage_may_define
from evertree.kernels.pairwise.values import NOTHING_YET, compare
from evertree.kernels.shared.linkage_values import is_first
from evertree.kernels.shared.recurrence import linkage_of_union
from evertree.kernels.shared.topology import sibling

LEFT, RIGHT = 0, 1

#: Instead of a node: the check has paused, and continues when it is made again.
BUSY = -3

#: In tolerances: above this, nothing ties with a value that violates homogeneity.
CLEAR_OF_TIES = 4.0

# A mean derived from others is as exact as the largest sum that it is derived from. Its *error* is that sum as a
# multiple of its own: a bound, up to a small factor, on the units in the last place by which it may be off, as rounding
# errors of parts do not add up where the parts are put together again. A mean with a large error is recomputed, and so
# is a difference that is a small part of its minuend.
LARGEST_ERROR = 1e4
SMALLEST_SHARE = 0.25
ERROR_OF_STEP = 0.01


@inline
def side_of(tree, v, child):
    """The side of `v` that `child` is on."""
    return LEFT if tree.left[v] == child else RIGHT


@inline
def child_at(tree, v, side):
    """The child of `v` on a side."""
    return tree.left[v] if side == LEFT else tree.right[v]


@inline
def cross(tree, v, side):
    """A lower bound on ζ between the child of `v` on a side and the sibling of `v`, and whether it is exact."""
    if side == LEFT:
        return tree.cross_left[v], (tree.exact[v] & LEFT_IS_EXACT) != 0
    return tree.cross_right[v], (tree.exact[v] & RIGHT_IS_EXACT) != 0


@inline
def cross_error(tree, v, side):
    """The error of an exact cross value."""
    return np.float64(tree.error_left[v] if side == LEFT else tree.error_right[v])


@inline
def set_cross(tree, v, side, value, is_exact, error):
    """Store a cross value, or a lower bound on it."""
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
    """Total − part, and its error, which is infinite if it is a small part of the total."""
    rest = total - part
    if not rest >= SMALLEST_SHARE * total or max(total_error, part_error) == np.inf:
        return 0.0, np.inf
    if rest == 0.0:
        return 0.0, 1.0
    return rest, max(total * total_error, part * part_error) / rest + ERROR_OF_STEP


@inline
def forget_cross(tree, v):
    """Forget the cross values of `v`."""
    tree.cross_left[v] = 0.0
    tree.cross_right[v] = 0.0
    tree.exact[v] = 0


@linkage_may_define
def derive(linkage, tree, v, side):
    """Derive a cross value from the other and the height of the parent: whether it follows, its value, its error."""
    return False, 0.0, 0.0


@step
def settle(linkage, tree, v, floor):
    """Make each cross value of `v` known, or known to be at least `floor`; return False after a pause."""
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
        if state["paused_node"][0] == v and state["paused_side"][0] == side:
            start, so_far = state["paused_row"][0], tree.pairs.paused[0]
        child = np.int64(child_at(tree, v, side))
        found, is_exact, row = compare(linkage, tree, child, np.int64(c), floor, np.int64(start), so_far)
        if row >= 0:
            state["paused_node"][0], state["paused_side"][0], state["paused_row"][0] = v, side, row
            tree.pairs.paused[0] = found
            return False
        state["paused_node"][0] = NULL
        set_cross(tree, v, side, found, is_exact, 1.0)
    return True


# The height of the parent of v = (a, b) often is the smallest, the largest or the mean of the two cross values of v. By
# the triangle inequality, the larger of them exceeds the smaller by no more than the height of v.


@linkage_may_define
def least_cross(linkage, tree, v):
    """A lower bound on both cross values of `v` from the height of its parent. O(1)."""
    return 0.0


@linkage_may_define
def floor_of_move(linkage, tree, v):
    """The value above which the cross value of the far child need not be known to make a move.

    If it must be known, it often is, as the height of the parent.
    """
    return np.inf


@step
def check_pairs(linkage, tree, tolerance, v):
    """The check (`def.LocalStructuralOptimality`) at `v`: its child that is closer to the sibling, or NULL, or BUSY.

    Its results are stored in the cross values.
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


@linkage_may_define
def strengthen(linkage, tree, v):
    """Tighten both cross values of `v` by the height of its parent, before that changes."""


@linkage_may_define
def inherit(linkage, tree, z_ab, z_ac, z_bc, v, a, b, c):
    """Keep what still holds of the cross values around a move, comparing O(1) pairs.

    The move turned v = (a, b) with sibling c into v = (b, c) with sibling a.
    """
    for u in (a, b, c):
        forget_cross(tree, u)
    forget_cross(tree, tree.parent[v])


@linkage_may_define
def height_after_move(linkage, tree, z_ab, z_ac, z_bc, g, a, b, c):
    """ζ(b ∪ c, a), the height of `g`."""
    return linkage_of_union(linkage, z_ab, z_ac, z_bc, tree.size[b], tree.size[c], tree.size[a])


@step
def update_pairs(linkage, tree, v, near):
    """After the swap that made `v` the union of its child `near` and its old sibling: heights and cross values.

    All heights follow from the values of the check.
    """
    b, c, a, g = near, sibling(tree, near), sibling(tree, v), tree.parent[v]
    # The columns are as before the move, and c is on the side where a was.
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
    inherit(linkage, tree, z_ab, z_ac, z_bc, v, a, b, c)
    set_cross(tree, v, side_of(tree, v, b), z_ab, True, error_ab)
    set_cross(tree, v, side_of(tree, v, c), z_ac, ac_is_exact, error_ac)

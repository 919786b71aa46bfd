"""The check at a node, and what a move changes: chosen by the kind of tree at compile time."""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import NULL, MeanTree, PairTree
from evertree.kernels.compile import choose, inline, step
from evertree.kernels.pairwise.check import check_pairs, update_pairs
from evertree.kernels.shared.linkage_values import exceeds, nearer_child, sq_of_value, value_of_sq
from evertree.kernels.shared.topology import children, sibling
from evertree.kernels.statistics.means import sq_dist
from evertree.kernels.statistics.merge import merge_after_move
from evertree.kernels.statistics.sketches import least_sq_dist

#: A check that holds by this many tolerances holds, no matter how its values were computed.
CLEARLY = 100.0

#: From this many columns on, it pays to test whether a check clearly holds before making it.
MANY_COLUMNS = 96


@inline
def holds_clearly(linkage, tree, v):
    """Whether the check at `v` clearly holds. At most O(m), and often O(1).

    The mean of v = (a, b) lies between those of a and b, and its distance from the mean of the sibling c follows from
    the height of the parent. By the triangle inequality a and b are not much nearer to c; if that does not decide, the
    distance between one of them and c gives that of the other (Stewart's theorem).
    """
    c = sibling(tree, v)
    a, b = children(tree, v)
    if tree.size[a] > tree.size[b]:
        a, b = b, a
    share_a, share_b = tree.size[a] / tree.size[v], tree.size[b] / tree.size[v]
    sq_ab = sq_of_value(linkage, tree, a, b, tree.height[v])
    sq_vc = sq_of_value(linkage, tree, v, c, tree.height[tree.parent[v]])
    enough = tree.height[v] + CLEARLY * linkage.tolerance * tree.height[v]
    if (
        value_of_sq(linkage, tree, a, c, least_sq_dist(tree, a, c)) > enough
        and value_of_sq(linkage, tree, b, c, least_sq_dist(tree, b, c)) > enough
    ):
        return True
    from_a = np.sqrt(sq_vc) - share_b * np.sqrt(sq_ab)
    from_b = np.sqrt(sq_vc) - share_a * np.sqrt(sq_ab)
    if (
        min(from_a, from_b) > 0.0
        and value_of_sq(linkage, tree, a, c, from_a * from_a) > enough
        and value_of_sq(linkage, tree, b, c, from_b * from_b) > enough
    ):
        return True
    sq_ac = sq_dist(tree.mean, a, c)
    sq_bc = (sq_vc + share_a * share_b * sq_ab - share_a * sq_ac) / share_b
    return value_of_sq(linkage, tree, a, c, sq_ac) > enough and value_of_sq(linkage, tree, b, c, sq_bc) > enough


def _check_means(linkage, tree, tolerance, v):
    if tree.mean.shape[1] >= MANY_COLUMNS and holds_clearly(linkage, tree, v):
        return NULL
    return nearer_child(linkage, tree, tolerance, v, sibling(tree, v))


def _update_means(linkage, tree, v, near):
    merge_after_move(linkage, tree, v)


def _is_inverted_by_means(linkage, tree, tolerance, v):
    a, b = children(tree, v)
    return exceeds(linkage, tree, tolerance, tree.height[v], a, b, tree.height[tree.parent[v]], v, sibling(tree, v))


def _is_inverted_by_pairs(linkage, tree, tolerance, v):
    return tree.height[tree.parent[v]] < tree.height[v] - tolerance * tree.height[v]


#: The check (`def.LocalStructuralOptimality`) at `v`: its child that is closer to the sibling of `v` than to its own.
#: NULL if there is none; BUSY if it has paused.
find_near = choose("tree", {MeanTree: _check_means, PairTree: check_pairs})

#: Update what changed by the move that made `v` the union of its child `near` and its old sibling.
update_after_move = choose("tree", {MeanTree: _update_means, PairTree: update_pairs})

#: Whether `v` is above its parent (`def.treeMonotonicity`).
is_inverted = choose("tree", {MeanTree: _is_inverted_by_means, PairTree: _is_inverted_by_pairs})


def _exceeds_by_means(linkage, tree, tolerance, u, value, a, q):
    p = tree.parent[u]
    return exceeds(linkage, tree, tolerance, tree.height[p], u, sibling(tree, u), value, a, q)


def _exceeds_by_pairs(linkage, tree, tolerance, u, value, a, q):
    height = tree.height[tree.parent[u]]
    return value < height - tolerance * height


#: Whether the parent of `u` is higher than ζ(a, q) = `value`, by more than the tolerance and rounding.
merges_above = choose("tree", {MeanTree: _exceeds_by_means, PairTree: _exceeds_by_pairs})


@step
def is_blocking(linkage, tree, tolerance, a, q, value):
    """Whether `a` and `q`, with ζ(a, q) = `value`, both exist by then and merge later, within the tolerance.

    If neither is above the other, they are a blocking pair.
    """
    if tree.parent[a] == NULL or tree.parent[q] == NULL or tree.parent[a] == tree.parent[q]:
        return False
    highest = max(tree.height[a], tree.height[q])
    if value < highest - tolerance * highest or not merges_above(linkage, tree, tolerance, a, value, a, q):
        return False
    return merges_above(linkage, tree, tolerance, q, value, a, q)

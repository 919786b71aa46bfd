"""Values of an active cluster c to cluster u: by means they are exact, by pairs they follow from those of parts."""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import NULL, MeanTree, PairTree
from evertree.kernels.compile import choose, inline, step
from evertree.kernels.pairwise.check import LARGEST_ERROR, LEFT, RIGHT, set_cross
from evertree.kernels.pairwise.path import ERROR_OF_RECURRENCE
from evertree.kernels.pairwise.point import measure_point, point_to_union, point_value
from evertree.kernels.pairwise.search import with_member, without_members
from evertree.kernels.pairwise.values import NOTHING_YET, compare
from evertree.kernels.repair.bounds import bound_between, bound_by_base
from evertree.kernels.repair.rules import (
    bound_of_union,
    follows_pieces,
    grows_with_parts,
    measure_nearest,
    n_pairs_in_one,
    point_bound,
    unites_exactly,
)
from evertree.kernels.repair.slots import known_value, note_value, present_value
from evertree.kernels.shared.linkage_values import linkage_value
from evertree.kernels.shared.topology import is_leaf
from evertree.kernels.statistics.merge import merge_children


def _mean_to_union(linkage, tree, run, c, u):
    return linkage_value(linkage, tree, c, u), True


def _pairs_to_union(linkage, tree, run, c, u):
    a, b = tree.left[u], tree.right[u]
    row = run.row[c]
    bound = bound_of_union(linkage, run.value[row, a], run.value[row, b], tree.size[a], tree.size[b])
    if unites_exactly(linkage) and run.is_exact[row, a] != 0 and run.is_exact[row, b] != 0:
        return bound, True
    if c == run.state["point"][0]:
        return max(bound, point_bound(linkage, tree, run, u)[0]), False
    by_base, is_exact, _ = bound_by_base(linkage, tree, run, c, u)
    return (by_base, True) if is_exact else (max(bound, by_base), False)


#: ζ, or a bound on it, when the children of `u` have just been merged; and whether it is exact.
value_to_union = choose("tree", {MeanTree: _mean_to_union, PairTree: _pairs_to_union})


def _mean_of_new(linkage, tree, run, w, u, a, a_is_exact, b, b_is_exact):
    return linkage_value(linkage, tree, w, u), True


def _pairs_of_new(linkage, tree, run, w, u, a, a_is_exact, b, b_is_exact):
    c, k = tree.left[w], tree.right[w]
    bound = bound_of_union(linkage, a, b, tree.size[c], tree.size[k])
    if unites_exactly(linkage) and a_is_exact and b_is_exact:
        return bound, True
    by_base, is_exact, _ = bound_by_base(linkage, tree, run, w, u)
    return (by_base, True) if is_exact else (max(bound, by_base), False)


#: The same when `w` is the new cluster, and `a` and `b` are the values of its children.
value_of_new = choose("tree", {MeanTree: _mean_of_new, PairTree: _pairs_of_new})


def _mean_at_first(linkage, tree, run, c, u):
    return linkage_value(linkage, tree, c, u), True


def _pairs_at_first(linkage, tree, run, c, u):
    if c == run.state["point"][0]:
        return point_bound(linkage, tree, run, u)
    if run.has[c] and not run.is_new[u]:  # it is the last piece
        return run.piece_value[run.state["n_pieces"][0] - 1, u], True
    return bound_between(linkage, tree, run, c, u)


#: The same when an old cluster, or the point, becomes active.
value_at_first = choose("tree", {MeanTree: _mean_at_first, PairTree: _pairs_at_first})


def _nothing_to_compute(linkage, tree, run, c, u, floor):
    return 0.0, True, 0.0


def _compute_pairs(linkage, tree, run, c, u, floor):
    i = run.state["point"][0]
    if run.state["comes"][0] and (c == i or u == i):
        value = point_value(linkage, tree, i, u if c == i else c, floor)
        return value, value < floor, 1.0
    for a, b in ((c, u), (u, c)):
        bound, is_exact, error = bound_by_base(linkage, tree, run, a, b)
        if is_exact or bound >= floor:
            return bound, is_exact, error
    if follows_pieces(linkage):
        value, is_exact = compute_parts(linkage, tree, run, c, u, floor)
        return value, is_exact, ERROR_OF_RECURRENCE
    run.state["patience"][0] -= np.int64(run.n_leaves[c]) * run.n_leaves[u] // n_pairs_in_one(linkage)
    value, is_exact, _ = compare(linkage, tree, c, u, floor, np.int64(0), NOTHING_YET)
    return value, is_exact, 1.0


@step
def find_parts(tree, run, c, parts):
    """Fill `parts` with the old clusters that a new one consists of, and the point; return their number."""
    count, n_parts = 1, 0
    parts[parts.size - 1] = c  # what is left to look at, from the end
    while count > 0:
        u = parts[parts.size - count]
        count -= 1
        if is_leaf(u) or not run.is_new[u]:
            parts[n_parts] = u
            n_parts += 1
        else:
            parts[parts.size - count - 1] = tree.left[u]
            parts[parts.size - count - 2] = tree.right[u]
            count += 2
    return n_parts


@step
def value_of_parts(linkage, tree, run, p, q, floor):
    """ζ between two old clusters, or one and the point, up to `floor`: known, or computed and kept if it is exact."""
    i = run.state["point"][0]
    if p == i or q == i:
        return tree.pairs.lower[q if p == i else p]
    if run.rank[p] == run.rank[q]:
        return run.height[run.parent[p]]
    for turn in range(2):
        a, b = (p, q) if turn == 0 else (q, p)
        if run.has[a]:
            for k in range(1, run.state["n_pieces"][0]):
                if run.has[a] == 1 << k:
                    return run.piece_value[k, b]
    value, error = present_value(linkage, run, p, q)
    if error <= LARGEST_ERROR:
        return value
    if run.slot[p] == NULL or run.slot[q] == NULL:
        return compare_parts(linkage, tree, run, p, q, floor)[0]
    return find_value(linkage, tree, run, p, q, floor)


@inline
def compare_parts(linkage, tree, run, p, q, floor):
    """ζ between two old clusters from their points, up to `floor`, and whether it is exact; then it is kept."""
    run.state["patience"][0] -= np.int64(run.n_old[p]) * run.n_old[q]
    value, is_exact, _ = compare(linkage, tree, p, q, floor, np.int64(0), NOTHING_YET)
    if is_exact:
        note_value(run, p, q, value, 1.0)
    return value, is_exact


@inline
def was_born(run, p):
    """The position in `order` of the merge that made old node `p`; NULL for a leaf."""
    return np.int64(NULL) if is_leaf(p) else np.int64(run.rank[run.left[p]])


@step
def find_value(linkage, tree, run, p, q, floor):
    """ζ between two old clusters with slots, up to `floor`, from those of their parts; it is kept.

    Only points of parts between which it is unknown are compared.
    """
    run.waiting[0], run.waiting[1] = p, q
    count, value = 1, 0.0
    while count > 0:
        a, b = np.int64(run.waiting[2 * count - 2]), np.int64(run.waiting[2 * count - 1])
        value, error = known_value(linkage, run, a, b)
        if not error <= LARGEST_ERROR:
            if was_born(run, a) < was_born(run, b):
                a, b = b, a
            left, right = np.int64(run.left[a]), np.int64(run.right[a])
            if is_leaf(a) or run.slot[left] == NULL or run.slot[right] == NULL:
                value, is_exact = compare_parts(linkage, tree, run, a, b, floor)
                if not is_exact:
                    return value
            else:
                z_left, error_left = known_value(linkage, run, left, b)
                z_right, error_right = known_value(linkage, run, right, b)
                if grows_with_parts(linkage):
                    for z, e in ((z_left, error_left), (z_right, error_right)):
                        if e <= LARGEST_ERROR and z >= floor:
                            return z
                is_known = True
                for u, e in ((right, error_right), (left, error_left)):
                    if not e <= LARGEST_ERROR:
                        run.waiting[2 * count], run.waiting[2 * count + 1] = u, b
                        count += 1
                        is_known = False
                if not is_known:
                    continue
                value = bound_of_union(linkage, z_left, z_right, run.size[left], run.size[right])
                note_value(run, a, b, value, max(error_left, error_right))
        if grows_with_parts(linkage) and value >= floor:
            return value
        count -= 1
    return value


@step
def compute_parts(linkage, tree, run, c, u, floor):
    """`compute` for a linkage that follows from those between parts: nothing is compared twice."""
    n_parts, n_others = find_parts(tree, run, c, run.parts), find_parts(tree, run, u, run.others)
    whole = tree.size[c] * tree.size[u]
    value = without_members(linkage)
    for s in range(n_parts):
        p = np.int64(run.parts[s])
        for t in range(n_others):
            q = np.int64(run.others[t])
            z = value_of_parts(linkage, tree, run, p, q, floor)
            value = with_member(linkage, value, z, tree.size[p] * tree.size[q] / whole)
        if value >= floor:
            return value, False
    return value, value < floor


#: ζ(c, u) if it is below `floor`, otherwise a value from there up to it; whether it is exact; and its error.
compute = choose("tree", {MeanTree: _nothing_to_compute, PairTree: _compute_pairs})


def _measure_nothing(linkage, tree, run):
    pass


def _measure_pairs(linkage, tree, run):
    tree.pairs.lower[run.state["point"][0]] = 0.0
    measure_point(linkage, tree, run.state["point"][0], False)
    measure_nearest(linkage, tree, run)
    run.piece_size[0] = tree.size[run.state["point"][0]]
    for u in range(tree.pairs.lower.size):
        run.piece_value[0, u] = tree.pairs.lower[u]
    run.state["n_pieces"][0] = 1


#: Compare the point of the edit with all nodes of the old tree, where that is not done on demand.
measure = choose("tree", {MeanTree: _measure_nothing, PairTree: _measure_pairs})


def _complete_means(linkage, tree, run, w, value):
    merge_children(linkage, tree, w)


def _complete_pairs(linkage, tree, run, w, value):
    a, b = np.int64(tree.left[w]), np.int64(tree.right[w])
    tree.size[w] = tree.size[a] + tree.size[b]
    tree.birth[w] = min(tree.birth[a], tree.birth[b])
    tree.height[w] = value
    tree.center[w] = NULL
    tree.pairs.lower[w] = point_to_union(linkage, tree, a, b, tree.pairs.lower[a], tree.pairs.lower[b])
    tree.error[w] = ERROR_OF_RECURRENCE
    for c, u in ((a, b), (b, a)):
        by_base, is_exact, error = bound_by_base(linkage, tree, run, c, u)
        if is_exact and by_base == value:
            tree.error[w] = error
        if not is_leaf(c):  # a batch tree is homogeneous
            for side in (LEFT, RIGHT):
                set_cross(tree, c, side, tree.height[c], False, 0.0)


#: Compute the columns of new cluster `w`, whose children are merged at `value`.
complete_node = choose("tree", {MeanTree: _complete_means, PairTree: _complete_pairs})


def _never(tree, run):
    return False


def _past_limit(tree, run):
    return run.state["patience"][0] < 0 or tree.pairs.state["looked_at"][0] > run.state["most_looked_at"][0]


#: Whether the run takes too long.
takes_too_long = choose("tree", {MeanTree: _never, PairTree: _past_limit})

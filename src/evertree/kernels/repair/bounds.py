"""Lower bounds on the linkage of two clusters, from what the old tree knows of its nodes."""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import ITSELF, NULL, MeanTree, PairTree
from evertree.kernels.compile import choose, inline, step
from evertree.kernels.pairwise.check import LARGEST_ERROR
from evertree.kernels.pairwise.pairs import ROUNDING
from evertree.kernels.repair.rules import bound_after, bound_by_triangle, follows_pieces, value_after
from evertree.kernels.repair.slots import known_value, present_value
from evertree.kernels.repair.state import POINT


@inline
def old_bound(linkage, run, p, q):
    """A lower bound on ζ between two nodes of the old tree that are no siblings: the first to merge has it.

    Of two that merge at about the same level, either may have been the first when the bounds were found.
    """
    dies_p, dies_q = run.death[p], run.death[q]
    if abs(dies_p - dies_q) <= linkage.tolerance * max(dies_p, dies_q):
        return min(run.before[p], run.before[q])
    return run.before[p] if dies_p < dies_q else run.before[q]


@inline
def lowest_bit(bits):
    """The position of the lowest bit that is set: the exponent of the power of two."""
    return (np.float64(bits & -bits).view(np.int64) >> 52) - 1023


@inline
def base_of(run, c):
    """The old node from which cluster `c` differs by the point of the edit at most, or NULL."""
    p = run.above[c]
    return p if p != NULL and run.n_points[p] == run.n_members[c] else NULL


@step
def bound_by_base(linkage, tree, run, c, u):
    """A lower bound on ζ between cluster `c`, an old one with or without the point, and old node `u`.

    Returns it, whether it is exact, and its error.
    """
    p = np.int64(base_of(run, c))
    if p == NULL or run.is_new[u]:
        return 0.0, False, 0.0
    came, left = run.has[c] & ~run.had[p], run.had[p] & ~run.has[c]
    if run.had[p] & run.has[u] or not (came | left == 0 or follows_pieces(linkage) or (came == POINT and left == 0)):
        return 0.0, False, 0.0
    q = np.int64(run.parent[p])
    is_sibling = q != NULL and (run.left[q] == u or run.right[q] == u)
    value, error = (run.height[q], run.error[q]) if is_sibling else known_value(linkage, run, p, u)
    bound = run.height[q] if is_sibling else old_bound(linkage, run, p, u)
    size = run.size[p]
    for comes in (1, 0):
        rest = came if comes else left
        while rest != 0:
            k = lowest_bit(rest)
            rest &= rest - 1
            z, weight = run.piece_value[k, u], run.piece_size[k]
            if error <= LARGEST_ERROR:
                value, error = value_after(linkage, value, error, size, z, weight, comes)
            bound = bound_after(
                linkage, bound, size, z, max(z, run.piece_value[k, p]), near_of(run, u, p), weight, comes
            )
            size += weight if comes else -weight
    if error <= LARGEST_ERROR:
        return value, True, error
    return bound, False, 0.0


@inline
def near_of(run, u, p):
    """How far the nearest point of two old nodes is from the point of the edit."""
    return min(run.near[u], run.near[p])


@inline
def bound_between(linkage, tree, run, k, u):
    """A lower bound on ζ between two clusters that are alive, at least one of them no new one, and if it is exact."""
    if run.row[k] != NULL:
        return run.value[run.row[k], u], run.is_exact[run.row[k], u] != 0
    if run.row[u] != NULL:
        return run.value[run.row[u], k], run.is_exact[run.row[u], k] != 0
    if run.rank[k] == run.rank[u]:  # siblings, one of which is about to merge with another cluster
        return run.height[run.parent[k]], True
    if run.top.node.size > 0:
        value, error = present_value(linkage, run, k, u)
        if error <= LARGEST_ERROR:
            return value, True
    return max(old_bound(linkage, run, k, u), bound_by_distance(linkage, tree, run, k, u)), False


def _no_distance(linkage, tree, run, u, v):
    return 0.0


def _by_triangle(linkage, tree, run, u, v):
    if tree.pairs.state["triangle"][0] != ITSELF:
        return 0.0
    z_u, z_v = tree.pairs.lower[u], tree.pairs.lower[v]
    return bound_by_triangle(linkage, z_u, z_v) - ROUNDING * (z_u + z_v)


#: A lower bound on ζ between two nodes of the old tree from what is known of the point.
bound_by_distance = choose("tree", {MeanTree: _no_distance, PairTree: _by_triangle})

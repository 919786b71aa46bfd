"""Covering radius and center of nodes: minimax linkage (`eq.MinimaxLinkage`) depends only on the union of clusters."""

from __future__ import annotations

from evertree.kernels.columns import NULL, UNLIMITED
from evertree.kernels.compile import inline, step
from evertree.kernels.pairwise.pairs import collect_rows, copy_rows, covering_radius
from evertree.kernels.shared.topology import is_leaf


@step
def radius_with(tree, u, i):
    """The covering radius of node `u` and leaf `i`, which is not below it (`eq.MinimaxLinkage`), and its center.

    The dissimilarities between `i` and all leaves are known. O(1) if the center of `u` covers `i` as well.
    """
    pairs = tree.pairs
    if is_leaf(u):
        return pairs.lower[u], (u if tree.birth[u] < tree.birth[i] else i)
    best, center = pairs.lower[u], i
    around = center_of(tree, u)
    if max(tree.height[u], pairs.lower[around]) <= best:
        best, center = max(tree.height[u], pairs.lower[around]), around
    if best > tree.height[u]:  # no point of u covers u within less than that
        count = collect_rows(tree, u, pairs.others)
        pairs.others[count] = i >> 1
        n_rows = 0
        for t in range(count):
            if pairs.lower[2 * pairs.others[t]] < best:
                pairs.rows[n_rows] = pairs.others[t]
                n_rows += 1
        radius, row, _ = covering_radius(pairs, pairs.rows[:n_rows], pairs.others[: count + 1], 0, best)
        if row >= 0:
            best, center = radius, 2 * row
    return best, center


@step
def find_radius(tree, u, most):
    """Compute height and center of node `u` for minimax linkage; its radius is known to be at most `most`."""
    pairs = tree.pairs
    rows = pairs.rows[: collect_rows(tree, u, pairs.rows)]
    others = pairs.others[: rows.size]
    copy_rows(rows, others)
    pause_at = pairs.state["pause_at"][0]
    pairs.state["pause_at"][0] = UNLIMITED
    radius, row, _ = covering_radius(pairs, rows, others, 0, just_above(most))
    pairs.state["pause_at"][0] = pause_at
    tree.height[u] = radius
    tree.center[u] = 2 * row


@inline
def just_above(value):
    """A number just above `value`, below any other relevant value."""
    return value + 1e-12 * value + 1e-300


@inline
def center_of(tree, u):
    """A leaf at which the minimum of minimax linkage is reached for an inner node `u`."""
    if tree.center[u] == NULL:
        find_radius(tree, u, tree.height[u])
    return tree.center[u]

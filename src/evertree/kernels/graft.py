"""Blocking pairs and grafts.

Two clusters are a blocking pair if both are there by the time at which they would merge, and both merge later in the
tree: max(h(A), h(Q)) ≤ ζ(A, Q) < min(h(parent of A), h(parent of Q)). A graft resolves it.
"""

from __future__ import annotations

from evertree.columns import NULL, PAUSE_AT, UNLIMITED, MeanTree, PairTree
from evertree.kernels.compile import choose, inline, step
from evertree.kernels.linkage_values import exceeds
from evertree.kernels.pair_path import cut_off, hang_on
from evertree.kernels.pair_point import measure_union
from evertree.kernels.search_pairs import measure_cluster
from evertree.kernels.topology import attach, detach, sibling
from evertree.kernels.worklist import push, refresh


def _exceeds_by_means(linkage, tree, tolerance, u, value, a, q):
    p = tree.parent[u]
    return exceeds(linkage, tree, tolerance, tree.height[p], u, sibling(tree, u), value, a, q)


def _exceeds_by_pairs(linkage, tree, tolerance, u, value, a, q):
    height = tree.height[tree.parent[u]]
    return value < height - tolerance * height


#: Whether the parent of `u` is higher than ζ(a, q) = `value`, by more than the tolerance and rounding.
merges_above = choose("tree", {MeanTree: _exceeds_by_means, PairTree: _exceeds_by_pairs})


@inline
def is_below(tree, u, top):
    """Whether `u` is `top` or below it. O(depth)."""
    while u != NULL and u != top:
        u = tree.parent[u]
    return u == top


@step
def is_blocking(linkage, tree, tolerance, a, q, value):
    """Whether `a` and `q` are a blocking pair, ζ(a, q) being `value`."""
    if tree.parent[a] == NULL or tree.parent[q] == NULL or tree.parent[a] == tree.parent[q]:
        return False
    highest = max(tree.height[a], tree.height[q])
    if value < highest - tolerance * highest:
        return False
    if not merges_above(linkage, tree, tolerance, a, value, a, q):
        return False
    if not merges_above(linkage, tree, tolerance, q, value, a, q):
        return False
    return not is_below(tree, a, q) and not is_below(tree, q, a)


@inline
def climb_up(linkage, tree, work, u):
    """Compute `u` and all above it anew; note the dirty checks. O(m depth)."""
    while u != NULL:
        refresh(linkage, tree, work, u)
        u = tree.parent[u]


def _graft_means(linkage, tree, work, x, target):
    s = detach(tree, x)
    push(work, s)
    push(work, sibling(tree, s))
    climb_up(linkage, tree, work, tree.parent[s])
    p = attach(tree, x, target)
    push(work, x)
    push(work, target)
    climb_up(linkage, tree, work, p)


def _graft_pairs(linkage, tree, work, x, target):
    state = tree.pairs.state
    pause_at = state[PAUSE_AT]
    state[PAUSE_AT] = UNLIMITED
    measure_cluster(linkage, tree, x)
    state[PAUSE_AT] = pause_at
    s = sibling(tree, x)
    cut_off(linkage, tree, work, x)
    u = tree.parent[s]
    while u != NULL:  # x is not below these any more
        measure_union(linkage, tree, u)
        u = tree.parent[u]
    hang_on(linkage, tree, work, x, target)


#: Cut `x` off: its sibling takes the place of their parent. Hang it beside `target`, and note the dirty checks.
#: O(m depth) with statistics, O(|x| n m) for pairs and more where a height has to be found anew.
graft = choose("tree", {MeanTree: _graft_means, PairTree: _graft_pairs})


@inline
def is_lighter(tree, a, q):
    """Whether `a` has less weight than `q`, or as much and the older point is in `q`."""
    return tree.size[a] < tree.size[q] or (tree.size[a] == tree.size[q] and tree.birth[a] > tree.birth[q])

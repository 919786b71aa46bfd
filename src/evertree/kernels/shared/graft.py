"""Blocking pairs and grafts.

Two clusters are a blocking pair if both exist at the height at which they would merge, and both merge later in the
tree: max(h(A), h(Q)) ≤ ζ(A, Q) < min(h(parent of A), h(parent of Q)). A graft resolves it.
"""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import NULL, UNLIMITED, MeanTree, PairTree
from evertree.kernels.compile import choose, inline
from evertree.kernels.pairwise.path import cut_off, hang_on
from evertree.kernels.pairwise.point import measure_union
from evertree.kernels.pairwise.search import measure_cluster
from evertree.kernels.shared.due_queue import note_due
from evertree.kernels.shared.linkage_values import linkage_value
from evertree.kernels.shared.neighbours import begin_search
from evertree.kernels.shared.topology import attach, children, detach, sibling
from evertree.kernels.shared.worklist import push, refresh, refresh_up


@inline
def meeting_node(tree, search, a, q):
    """The smallest cluster that contains both `a` and `q`; NULL if it is one of them. O(depth)."""
    stamp = begin_search(search)
    u = a
    while u != NULL:
        search.seen[u] = stamp
        u = tree.parent[u]
    u = q
    while search.seen[u] != stamp:
        u = tree.parent[u]
    return np.int64(NULL if u in (a, q) else u)


# A graft changes no cluster at or above the node where `x` and `target` meet: only the height of this node. If that is
# the parent of `x`, the sibling takes its place, and is the same cluster once `x` is attached again.


def _graft_means(linkage, tree, work, x, target, top):
    is_parent = tree.parent[x] == top
    s = detach(tree, x)
    push(tree, work, s)
    push(tree, work, sibling(tree, s))
    if is_parent:
        top = np.int64(s)
    else:
        refresh_up(linkage, tree, work, np.int64(tree.parent[s]), top)
    p = attach(tree, x, target)
    push(tree, work, x)
    push(tree, work, target)
    refresh_up(linkage, tree, work, np.int64(p), top)
    note_due(tree, work, np.int64(x))  # at the height that their parent has now
    note_due(tree, work, np.int64(target))
    if is_parent:
        refresh(linkage, tree, work, top)
    else:
        a, b = children(tree, top)
        tree.height[top] = linkage_value(linkage, tree, a, b)
        push(tree, work, top)
        push(tree, work, sibling(tree, top))
    push(tree, work, tree.parent[top])


def _graft_pairs(linkage, tree, work, x, target, top):
    state = tree.pairs.state
    pause_at = state["pause_at"][0]
    state["pause_at"][0] = UNLIMITED  # an edit must not pause
    measure_cluster(linkage, tree, x)
    is_parent = tree.parent[x] == top
    s = np.int64(sibling(tree, x))
    cut_off(linkage, tree, work, x, top)
    if is_parent:
        top = s
    else:
        u = tree.parent[s]
        while u != top:  # x is no longer below these
            measure_union(linkage, tree, u)
            u = tree.parent[u]
    hang_on(linkage, tree, work, x, target, top)
    state["pause_at"][0] = pause_at


#: Detach `x`, whose sibling takes the place of their parent, and attach it beside `target`, which it meets at `top`.
#: Queue the dirty checks. O(m depth below top) with statistics, O(|x| n m) for pairs, and more if a height must be
#: recomputed.
graft = choose("tree", {MeanTree: _graft_means, PairTree: _graft_pairs})


@inline
def is_lighter(tree, a, q):
    """Whether `a` has less weight than `q`, or the same weight and `q` has the older point."""
    return tree.size[a] < tree.size[q] or (tree.size[a] == tree.size[q] and tree.birth[a] > tree.birth[q])


@inline
def resolve(linkage, tree, work, search, a, q):
    """Graft the lighter of two nodes beside the other; False if one is above the other, so that this is impossible."""
    top = meeting_node(tree, search, a, q)
    if top == NULL:
        return False
    x, target = (q, a) if is_lighter(tree, q, a) else (a, q)
    graft(linkage, tree, work, x, target, top)
    work.state["grafts"][0] += 1
    return True

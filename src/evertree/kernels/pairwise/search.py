"""Searches of a `PairTree` for a node in a blocking pair with a given one."""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import EVERYWHERE, GROUP, NODE_ITSELF, NULL
from evertree.kernels.compile import inline, step
from evertree.kernels.dispatch import linkage_may_define, linkage_must_define
from evertree.kernels.pairwise.check import BUSY
from evertree.kernels.pairwise.pairs import collect_rows, evaluate, evaluate_leaves, must_pause, next_leaves
from evertree.kernels.pairwise.point import know_leaf, know_rest, measure_point, measure_unions, point_value
from evertree.kernels.shared.check import is_blocking, merges_above
from evertree.kernels.shared.neighbours import begin_search, forget_near, note_one
from evertree.kernels.shared.partner_search import climb, no_pieces
from evertree.kernels.shared.topology import hangs

#: For clusters of less than one in this many points, searches go through neighbours, which is cheaper.
FEW = 32

#: Lists hold values in the dtype of the data. Values that differ by more than this, relatively, differ there too.
APART = 1e-6


@linkage_must_define
def with_member(linkage, so_far, value, share):
    """ζ between members of a cluster and a leaf, with one more member: its dissimilarity and share of the weight."""


@linkage_must_define
def without_members(linkage):
    """The same, without any members."""


@step
def add_members(linkage, tree, a, rows):
    """Add members of `a` to its linkage to every leaf, in ``pairs.lower``. O(m) per pair.

    All are compared with a block of leaves while it is in the cache.
    """
    pairs = tree.pairs
    start = np.int64(0)
    while start < tree.state["leaf_top"][0]:
        count, start = next_leaves(tree, start, NULL)
        for r in range(rows.size):
            share = tree.size[2 * rows[r]] / tree.size[a]
            evaluate(pairs, rows[r], pairs.some[:count], pairs.block)
            for s in range(count):
                u = 2 * pairs.some[s]
                pairs.lower[u] = with_member(linkage, pairs.lower[u], pairs.block[s], share)


@step
def measure_cluster(linkage, tree, a):
    """Fill ``pairs.lower`` and ``pairs.upper`` with ζ between `a` and every node; False after a pause. O(|a| n m).

    For nodes above or below `a` they are meaningless. For minimax linkage they are the largest dissimilarity.
    """
    pairs, state = tree.pairs, tree.pairs.state
    if state["measured"][0] == a:
        return True
    count = collect_rows(tree, a, pairs.rows)
    start = np.int64(0)
    if state["paused_node"][0] == a and state["paused_side"][0] == NODE_ITSELF:
        start = state["paused_row"][0]
    else:
        for row in range(tree.state["leaf_top"][0]):
            pairs.lower[2 * row] = without_members(linkage)
    state["measured"][0] = NULL
    for r in range(start, count, GROUP):
        if must_pause(pairs):
            state["paused_node"][0], state["paused_side"][0], state["paused_row"][0] = a, NODE_ITSELF, r
            return False
        some = pairs.rows[r : min(r + GROUP, count)]
        add_members(linkage, tree, a, some)
        state["looked_at"][0] += some.size * tree.state["n_points"][0]
    state["paused_node"][0] = NULL
    for row in range(tree.state["leaf_top"][0]):
        pairs.upper[2 * row] = pairs.lower[2 * row]
    measure_unions(linkage, tree)
    state["measured"][0] = a
    return True


@linkage_may_define
def measured_value(linkage, tree, a, u, floor):
    """ζ(a, u) if it is below `floor`, otherwise a value of at least `floor`, after `a` has been measured."""
    return tree.pairs.lower[u]


@step
def exhaust_pairs(linkage, tree, a, limit):
    """Test every node. See `evertree.kernels.statistics.search.descend_means`. O(|a| n m)."""
    best, smallest = np.int64(NULL), limit
    if not measure_cluster(linkage, tree, a):
        return np.int64(BUSY), limit
    height_a = tree.height[a]
    for u in range(2 * max(tree.state["leaf_top"][0], tree.state["inner_top"][0])):
        if tree.parent[u] <= NULL or u == a:
            continue
        height_p = tree.height[tree.parent[u]]
        if not height_p > height_a or not tree.height[u] < smallest:
            continue
        value = measured_value(linkage, tree, a, np.int64(u), min(smallest, height_p))
        if value < smallest and is_blocking(linkage, tree, linkage.tolerance, a, np.int64(u), value):
            best, smallest = np.int64(u), value
    return best, smallest


@step
def partner_by_pairs(linkage, tree, search, a, limit):
    """The node in a blocking pair with `a`, below `limit`, and ζ; NULL if none was found, BUSY after a pause.

    A descent would compare `a` with half of all points at once. So small clusters are searched through neighbours, and
    others among all nodes, which costs no more.
    """
    if (
        search.state["reach"][0] == EVERYWHERE
        or FEW * collect_rows(tree, a, tree.pairs.rows) >= tree.state["n_points"][0]
    ):
        return exhaust_pairs(linkage, tree, a, limit)
    return climb(linkage, tree, search, a, limit, no_pieces(search))


@step
def find_near_points(linkage, tree, search, i):
    """Fill the list of leaf `i` by comparing it with all others; return the number of steps left, 0. O(n m)."""
    pairs = tree.pairs
    start = np.int64(0)
    while start < tree.state["leaf_top"][0]:
        count, start = evaluate_leaves(tree, i >> 1, start, i)
        for s in range(count):
            note_one(search, i, 2 * pairs.some[s], pairs.block[s])
    return 0


@inline
def is_there(linkage, tree, i, u, value):
    """Whether `u`, at ζ = `value` from the new leaf `i`, exists by then and merges later, within the tolerance."""
    if value < tree.height[u] - linkage.tolerance * tree.height[u]:
        return False
    return tree.parent[u] == NULL or merges_above(linkage, tree, linkage.tolerance, u, value, i, u)


@step
def list_nearest(tree, search, i):
    """Fill the list of leaf `i`, which has been measured, and put `i` on the lists of those on it. O(n m).

    Bounds save evaluations and decide nothing: the list is the one that all values would give. Otherwise a tree would
    depend on its pivots, which are chosen again when a file is opened.
    """
    pairs, row = tree.pairs, i >> 1
    forget_near(search, i, 0)
    for other in range(tree.state["leaf_top"][0]):
        if hangs(tree, 2 * other):
            note_one(search, i, 2 * other, pairs.lower[2 * other])
    farthest = 0.0  # of as many points as fit on the list: none beyond it will be on the list
    for k in range(search.near.shape[1]):
        if search.near[row, k] != NULL:
            farthest = max(farthest, know_leaf(pairs, i, np.int64(search.near[row, k])))
    farthest += APART * farthest
    forget_near(search, i, 0)
    for other in range(tree.state["leaf_top"][0]):
        if hangs(tree, 2 * other) and pairs.lower[2 * other] <= farthest:
            note_one(search, i, 2 * other, know_leaf(pairs, i, 2 * other))
    for k in range(search.near.shape[1]):
        if search.near[row, k] != NULL:
            note_one(search, np.int64(search.near[row, k]), i, pairs.lower[search.near[row, k]])


@linkage_may_define
def is_stable_if_monotone(linkage):
    """Whether a monotone tree has no blocking pair (`thm.SingleLinkage`), so that no search, and no list, is needed."""
    return False


@step
def find_nearest_leaf(tree, i):
    """The leaf nearest to leaf `i`, which has been measured; of several, the oldest. O(n m)."""
    pairs = tree.pairs
    limit = np.inf
    for u in range(0, 2 * tree.state["leaf_top"][0], 2):
        if u != i and hangs(tree, u):
            limit = min(limit, pairs.upper[u])
    best, smallest = np.int64(NULL), np.inf
    for u in range(0, 2 * tree.state["leaf_top"][0], 2):
        if u != i and pairs.lower[u] <= limit and hangs(tree, u):
            value = know_leaf(pairs, i, u)
            limit = min(limit, value)
            if value < smallest or (value == smallest and tree.birth[u] < tree.birth[best]):
                best, smallest = np.int64(u), value
    return best


@step
def place_by_nearest(linkage, tree, i):
    """`place_by_pairs` where ζ is the smallest dissimilarity: above the nearest leaf. O(n m)."""
    u = find_nearest_leaf(tree, i)
    value = tree.pairs.lower[u]
    know_rest(linkage, tree, i)
    while tree.parent[u] != NULL and not merges_above(linkage, tree, linkage.tolerance, u, value, i, u):
        u = np.int64(tree.parent[u])
    return u


@step
def place_by_pairs(linkage, tree, search, i):
    """Measure the new leaf `i`, and find the node beside which it belongs, near the points nearest to it. O(n m).

    It is the one with the smallest ζ among those whose ζ is between their own height and that of their parent.
    """
    measure_point(linkage, tree, i, True)
    if is_stable_if_monotone(linkage):
        return place_by_nearest(linkage, tree, i)
    list_nearest(tree, search, i)
    know_rest(linkage, tree, i)
    best, smallest = np.int64(NULL), np.inf
    stamp = begin_search(search)
    for k in range(search.near.shape[1]):
        u = np.int64(search.near[i >> 1, k])
        while u != NULL and search.seen[u] != stamp and tree.height[u] < smallest:
            search.seen[u] = stamp
            p = np.int64(tree.parent[u])
            floor = smallest if p == NULL else min(smallest, tree.height[p])
            value = point_value(linkage, tree, i, u, floor)
            if value < floor and is_there(linkage, tree, i, u, value):
                best, smallest = u, value
            u = p
    return best if best != NULL else np.int64(search.near[i >> 1, 0])

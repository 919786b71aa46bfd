"""Exactly the batch tree after an edit: batch clustering (`tab.HAC`) again, in which the old tree proposes the merges.

Clusters of the old tree that the edit leaves as they are need not be compared with each other again. Of each node the
old tree knows its *slack*: a lower bound on the linkage between the node and any cluster that was alive just before it
merged, other than its sibling. So two nodes p and q that are no siblings, p being the first to merge, satisfy
ζ(p, q) >= slack[p]; for a linkage that is not strongly reducible, as long as both are alive.

The run goes up through the old merges. A merge whose two clusters are still there is made again. Clusters are *active*
if they are not of the old tree, or have lost their sibling and are past their slack: of each a row of values says how
far it is from every other cluster, or at least how far. The smallest value decides. A value that is only a bound is
computed where it would be the smallest.

The proof is in `docs/stable.md`.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertree.kernels.columns import ITSELF, NULL, AnyTree, MeanTree, PairTree, counters
from evertree.kernels.compile import choose, inline, kernel, step
from evertree.kernels.dispatch import linkage_may_define
from evertree.kernels.pairwise.check import LARGEST_ERROR, LEFT, RIGHT, set_cross
from evertree.kernels.pairwise.pairs import ROUNDING, collect_rows, evaluate_leaves
from evertree.kernels.pairwise.path import ERROR_OF_RECURRENCE
from evertree.kernels.pairwise.point import measure_point, point_value
from evertree.kernels.pairwise.search import with_member, without_members
from evertree.kernels.pairwise.values import NOTHING_YET, compare
from evertree.kernels.shared.linkage_values import linkage_value
from evertree.kernels.shared.recurrence import linkage_of_union
from evertree.kernels.shared.topology import is_leaf, new_inner, release
from evertree.kernels.signatures import (
    AnyLinkage,
    Array,
    ByteMatrix,
    Bytes,
    FloatMatrix,
    Floats,
    Ints,
    LongInts,
    described,
)
from evertree.kernels.statistics.merge import merge_children

#: A value that does not matter now is computed up to this multiple of what matters: it may matter soon.
FLOOR = 1.02

#: Whoever looks for the nearest cluster looks that far ahead: it would be soon again at the next level.
AHEAD = 1.01

#: A cluster of more points is not compared with all others only because it may go elsewhere.
LARGEST_PIECE = 8

#: Slots for each of the clusters that are alive when all of them have slots: two are for the old tree, the others for
#: what is there in its place. Values of clusters for which none is left are unknown.
SLOTS_EACH = 3

#: The clusters that have slots may become more by this factor.
MORE_SLOTS = 1.25

#: Instead of the node of a slot: its cluster is gone, but what is known of it is used until the end.
VACANT = -2

#: The bit of the point of the edit, which is the first piece.
POINT = 1

#: Of `Repair.state`.
REPAIR_STATE = counters(
    "point",  # the leaf that comes or leaves
    "comes",  # 1 if it comes, 0 if it leaves
    "n_alive",  # clusters in `alive`
    "n_active",  # those of them in `active`
    "n_late",  # entries of `late`
    "n_events",  # entries of the heap
    "n_pool",  # entries of `pool`
    "n_pieces",  # pieces so far
    "has_top",  # whether all clusters have slots from now on
    "patience",  # how many pairs of points may still be compared, bounds or not, before it takes too long
    "position",  # in `order`: the next merge of the old tree
    "n_made",  # entries of `made`
)
RepairState = Annotated[NDArray[Any], Array(REPAIR_STATE)]


@described
class Top(NamedTuple):
    """Values of pairs of the largest clusters, the last ones to merge, which would take longest to compute.

    They have *slots*. It is kept with the tree, and changed with it.
    """

    level: Floats  # (1,) those alive above it have slots; -inf if that is not decided yet, inf if nothing is known
    slot: Ints  # (capacity,) the slot of a node, or NULL
    node: Ints  # (n_slots,) the node of a slot, or NULL
    value: FloatMatrix  # (n_slots, n_slots) ζ
    error: FloatMatrix  # (n_slots, n_slots) its error; infinite if it is unknown


@described
class Repair(NamedTuple):
    """The tree before an edit, and the state of the batch run after it: mostly a row for each node."""

    parent: Ints  # of the old tree, as all before `slack`
    left: Ints
    right: Ints
    size: Floats
    height: Floats
    level: Floats  # its heights, made monotone
    error: Floats
    rank: Ints  # when a node merges: the position of its parent in `order`
    death: Floats  # the level at which it does
    before: Floats  # the slack of its nodes
    slot: Ints  # their slots
    n_points: Ints  # the number of points of its nodes, without those of pieces
    had: LongInts  # which pieces they had: a bit for each
    near: Floats  # where radii are compared, how far the nearest point of a node is from the point of the edit
    slack: Floats  # that of the new tree
    is_lost: Bytes  # whether the cluster of an old node will not be there again
    is_followed: Bytes  # whether values of the old node have been followed up
    is_new: Bytes  # whether the node is a cluster that the old tree had not
    n_old: Ints  # the number of points of an old node
    n_common: Ints  # workspace: how many of them another cluster has
    base: Ints  # for a cluster, the old node with a slot that has almost the same points, or NULL
    apart_size: Floats  # (2,) the size of those that the base has, and of those that the cluster has
    apart_value: FloatMatrix  # (2, capacity) ζ between them and every old node
    n_leaves: Ints  # the number of points of a cluster
    n_members: Ints  # the number of points of a cluster, without those of pieces
    above: Ints  # the lowest old node that had all of them, or NULL
    has: LongInts  # which pieces it has
    place: Ints  # its place in `alive`, or NULL
    row: Ints  # its row of values if it is active, or NULL
    pool: Ints  # numbers of lost nodes, to use again
    alive: Ints  # the clusters that are there
    parts: Ints  # workspace
    others: Ints
    waiting: Ints  # (2 capacity,) pairs of clusters
    late: Ints  # those that have lost their sibling and would have merged with it by now, but are not active
    active: Ints  # (n_rows,) the active ones; the place of each is its row
    nearest: Ints  # (n_rows,) for each, which cluster has its smallest value, unless that has merged
    event: Floats  # a heap: the level at which to look at a cluster
    event_node: Ints
    order: Ints  # (n_points - 1,) the inner nodes of the old tree in the order of their merges
    made: Ints  # those of the new tree
    value: FloatMatrix  # (n_rows, capacity) for each active cluster, bounds on ζ to every other
    is_exact: ByteMatrix  # (n_rows, capacity) whether that is the value
    reference: Ints  # (n_rows,) where radii are compared, a leaf of each active cluster,
    reach: Floats  # (n_rows,) how far it is from the farthest one of the cluster,
    low: FloatMatrix  # (n_rows, capacity) and from the nearest one of each other cluster,
    high: FloatMatrix  # (n_rows, capacity) and from the farthest one
    piece_size: Floats  # (n_pieces,)
    piece_value: FloatMatrix  # (n_pieces, capacity) ζ between each piece and every node of the old tree
    top: Top
    state: RepairState  # (1,)


# -- a heap of events


@inline
def comes_first(run, a, b):
    """Whether event `a` comes before event `b`."""
    return run.event[a] < run.event[b] or (run.event[a] == run.event[b] and run.event_node[a] < run.event_node[b])


@inline
def swap_events(run, a, b):
    """Exchange two events."""
    run.event[a], run.event[b] = run.event[b], run.event[a]
    run.event_node[a], run.event_node[b] = run.event_node[b], run.event_node[a]


@step
def push_event(run, level, u):
    """Look at cluster `u` when `level` is reached. O(log n)."""
    k = run.state["n_events"][0]
    run.state["n_events"][0] = k + 1
    run.event[k], run.event_node[k] = level, u
    while k > 0 and comes_first(run, k, (k - 1) >> 1):
        swap_events(run, k, (k - 1) >> 1)
        k = (k - 1) >> 1


@step
def pop_event(run):
    """The cluster of the first event, which is removed. O(log n)."""
    u = np.int64(run.event_node[0])
    last = run.state["n_events"][0] - 1
    run.state["n_events"][0] = last
    run.event[0], run.event_node[0] = run.event[last], run.event_node[last]
    k = 0
    while 2 * k + 1 < last:
        child = 2 * k + 1
        if child + 1 < last and comes_first(run, child + 1, child):
            child += 1
        if not comes_first(run, child, k):
            break
        swap_events(run, k, child)
        k = child
    return u


# -- slots


@step
def present_value(linkage, run, p, q):
    """ζ of two old clusters that are still there, be it in others, and its error; infinite if it is unknown."""
    s, t = run.top.slot[p], run.top.slot[q]
    if s != NULL and t != NULL and run.top.error[s, t] <= LARGEST_ERROR:
        return run.top.value[s, t], run.top.error[s, t]
    return known_value(linkage, run, p, q)


@step
def known_value(linkage, run, p, q):
    """ζ of two nodes of the old tree, and its error; infinite if it is unknown."""
    s, t = run.slot[p], run.slot[q]
    if s == NULL or t == NULL:
        return 0.0, np.inf
    if not run.top.error[s, t] <= LARGEST_ERROR:
        first = p if run.rank[p] < run.rank[q] else q
        if not run.is_followed[first]:
            follow_values(linkage, run, first)
    return run.top.value[s, t], run.top.error[s, t]


@step
def follow_values(linkage, run, p):
    """Find ζ between old node `p` and those that were born after it had merged, from values to their parts.

    O(n_slots).
    """
    top, s = run.top, run.slot[p]
    run.is_followed[p] = 1
    if not unites_exactly(linkage):
        return
    for k in range(run.rank[p] + 1, run.order.size):
        u = run.order[k]
        a, b, t = run.slot[run.left[u]], run.slot[run.right[u]], run.slot[u]
        if a == NULL or b == NULL or t == NULL or top.error[s, t] <= LARGEST_ERROR:
            continue
        error = max(top.error[s, a], top.error[s, b])
        if error <= LARGEST_ERROR:
            top.value[s, t] = top.value[t, s] = bound_of_union(
                linkage, top.value[s, a], top.value[s, b], run.size[run.left[u]], run.size[run.right[u]]
            )
            top.error[s, t] = top.error[t, s] = error


@inline
def note_value(run, u, v, value, error):
    """Keep ζ of two nodes, if both have slots."""
    if run.top.node.size > 0:
        s, t = run.top.slot[u], run.top.slot[v]
        if s != NULL and t != NULL:
            run.top.value[s, t] = run.top.value[t, s] = value
            run.top.error[s, t] = run.top.error[t, s] = error


@step
def give_slot(run, u):
    """Give node `u` a slot, if one is free. O(n_slots)."""
    top = run.top
    for s in range(top.node.size):
        if top.node[s] == NULL:
            top.node[s], top.slot[u] = u, s
            for t in range(top.node.size):
                top.error[s, t] = top.error[t, s] = np.inf
            return


@inline
def has_slots_now(run):
    """Whether all clusters are to have slots from now on: no merge up to the level from which on they do is left."""
    n_top = run.top.node.size // SLOTS_EACH
    if run.top.level[0] == -np.inf:
        return run.state["n_alive"][0] <= n_top
    first = run.event[0] if run.state["n_events"][0] > 0 else np.inf
    return min(next_level(run), first) > run.top.level[0] and run.state["n_alive"][0] <= MORE_SLOTS * n_top


@step
def choose_top(linkage, tree, run):
    """Give the clusters that are alive slots, and take them from those that have merged. O(n_slots²)."""
    top = run.top
    for s in range(top.node.size):
        u = np.int64(top.node[s])
        if u < 0 or run.place[u] != NULL or run.is_lost[u] or run.parent[u] == NULL or run.is_lost[run.parent[u]]:
            continue
        if is_leaf(u) or run.rank[run.left[u]] < run.state["position"][0]:  # it was there
            top.slot[u] = top.node[s] = run.slot[u] = NULL
    for t in range(run.state["n_alive"][0]):
        if top.slot[run.alive[t]] == NULL:
            give_slot(run, run.alive[t])
    n_made = run.state["n_made"][0]
    top.level[0] = max(top.level[0], tree.height[run.made[n_made - 1]] if n_made > 0 else 0.0)
    run.state["has_top"][0] = 1
    if unites_exactly(linkage):
        fill_slots(linkage, tree, run)


@inline
def is_known(linkage, tree, run, c, u):
    """Whether ζ of two clusters that are alive need not be computed; if so, it is noted."""
    value, error = 0.0, np.inf
    for a, b in ((c, u), (u, c)):
        if run.row[a] != NULL and run.is_exact[run.row[a], b] != 0:
            value, error = run.value[run.row[a], b], ERROR_OF_RECURRENCE
    if not error <= LARGEST_ERROR and not run.is_new[c] and not run.is_new[u]:
        value, error = present_value(linkage, run, c, u)
    if not error <= LARGEST_ERROR:
        return False
    note_value(run, c, u, value, error)
    return True


@inline
def set_value(run, c, u, value, is_exact):
    """Write ζ, or a bound on it, to the rows of two clusters, if they have rows."""
    if run.row[c] != NULL:
        run.value[run.row[c], u] = value
        run.is_exact[run.row[c], u] = is_exact
    if run.row[u] != NULL:
        run.value[run.row[u], c] = value
        run.is_exact[run.row[u], c] = is_exact


@inline
def vacate(run, u):
    """Node `u` becomes another cluster, without a slot; that of the old one stays as it is."""
    if run.top.slot[u] != NULL:
        run.top.node[run.top.slot[u]] = VACANT
        run.top.slot[u] = NULL


@step
def free_slots(run):
    """Free the slots of old clusters that are no longer there. O(n_slots)."""
    for s in range(run.top.node.size):
        if run.top.node[s] == VACANT:
            run.top.node[s] = NULL


# -- bounds


@linkage_may_define
def bound_of_union(linkage, a, b, size_a, size_b):
    """A lower bound on ζ(A ∪ B, C), for a linkage of pairs, from bounds on ζ(A, C) and ζ(B, C)."""
    return linkage_of_union(linkage, a, b, 0.0, size_a, size_b, 1.0)


@linkage_may_define
def unites_exactly(linkage):
    """Whether `bound_of_union` is exact where both bounds are."""
    return True


@linkage_may_define
def bound_after(linkage, bound, size, z, z_all, near, weight, comes):
    """A lower bound on ζ(P ± x, C), given one on ζ(P, C), the size of P, and ζ(x, C)."""
    return 0.0


@linkage_may_define
def value_after(linkage, value, error, size, z, weight, comes):
    """ζ(P ± x, C) from ζ(P, C) and its error; the error is infinite where that does not follow."""
    return 0.0, np.inf


@linkage_may_define
def point_bound(linkage, tree, run, u):
    """A lower bound on ζ between the point and old node `u`, and whether it is exact."""
    return tree.pairs.lower[u], True


@linkage_may_define
def bound_by_triangle(linkage, z_u, z_v):
    """A lower bound on ζ(u, v) from ζ between a point and each of them, where the triangle inequality holds."""
    return 0.0


@linkage_may_define
def follows_pieces(linkage):
    """Whether `bound_after` also holds for a cluster in place of the point, and `with_member` never lowers a value."""
    return False


@linkage_may_define
def grows_with_parts(linkage):
    """Whether ζ to a part of a cluster is never more than to all of it."""
    return False


@linkage_may_define
def n_pairs_in_one(linkage):
    """Of so many pairs of two clusters about one is compared: a guess, as what is compared depends on pivots."""
    return 1


@linkage_may_define
def has_references(linkage):
    """Whether active clusters have references."""
    return False


@linkage_may_define
def find_reference(linkage, tree, run, c, row):
    """Choose the reference of cluster `c`, and measure all others from it, if the linkage needs it."""


@linkage_may_define
def bound_by_reference(linkage, tree, run, c, row, u):
    """A lower bound on ζ(c, u) from the reference of `c`."""
    return 0.0


@linkage_may_define
def measure_nearest(linkage, tree, run):
    """Fill ``run.near``, if the linkage needs it."""


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


# -- values of an active cluster c to cluster u: by means they are exact, by pairs they follow from those of parts


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
    return 0.0, True


def _compute_pairs(linkage, tree, run, c, u, floor):
    i = run.state["point"][0]
    if run.state["comes"][0] and (c == i or u == i):
        value = point_value(linkage, tree, i, u if c == i else c, floor)
        return value, value < floor
    if follows_pieces(linkage):
        return compute_parts(linkage, tree, run, c, u, floor)
    run.state["patience"][0] -= np.int64(run.n_leaves[c]) * run.n_leaves[u] // n_pairs_in_one(linkage)
    value, is_exact, _ = compare(linkage, tree, c, u, floor, np.int64(0), NOTHING_YET)
    return value, is_exact


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


@inline
def known_of_parts(linkage, run, p, q):
    """`known_value`, also of siblings."""
    if run.rank[p] == run.rank[q]:
        return run.height[run.parent[p]], np.float64(run.error[run.parent[p]])
    return known_value(linkage, run, p, q)


@step
def find_value(linkage, tree, run, p, q, floor):
    """ζ between two old clusters with slots, up to `floor`, from those of their parts; it is kept.

    Only points of parts between which it is unknown are compared.
    """
    run.waiting[0], run.waiting[1] = p, q
    count, value = 1, 0.0
    while count > 0:
        a, b = np.int64(run.waiting[2 * count - 2]), np.int64(run.waiting[2 * count - 1])
        value, error = known_of_parts(linkage, run, a, b)
        if not error <= LARGEST_ERROR:
            if was_born(run, a) < was_born(run, b):
                a, b = b, a
            left, right = np.int64(run.left[a]), np.int64(run.right[a])
            if is_leaf(a) or run.slot[left] == NULL or run.slot[right] == NULL:
                value, is_exact = compare_parts(linkage, tree, run, a, b, floor)
                if not is_exact:
                    return value
            else:
                z_left, error_left = known_of_parts(linkage, run, left, b)
                z_right, error_right = known_of_parts(linkage, run, right, b)
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


#: ζ(c, u) if it is below `floor`, otherwise a value from there up to it; and whether it is exact.
compute = choose("tree", {MeanTree: _nothing_to_compute, PairTree: _compute_pairs})


def _measure_nothing(linkage, tree, run):
    pass


def _measure_pairs(linkage, tree, run):
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


# -- pieces: clusters of the old tree that may go elsewhere. Others then differ by them from old clusters, and values
# follow as with the point of the edit.


def _no_piece(linkage, tree, run, q):
    pass


def _piece_of_pairs(linkage, tree, run, q):
    j = run.state["n_pieces"][0]
    if follows_pieces(linkage) and j < run.piece_size.size and run.n_points[q] <= LARGEST_PIECE:
        measure_piece(linkage, tree, run, q, j)


#: Make old cluster `q` a piece, if there is room and it is small.
make_piece = choose("tree", {MeanTree: _no_piece, PairTree: _piece_of_pairs})


@step
def measure_piece(linkage, tree, run, q, j):
    """Compare old cluster `q` with all nodes of the old tree, and count it as piece `j`. O(|q| n m)."""
    rows = tree.pairs.rows[: collect_rows(tree, q, tree.pairs.rows)]
    run.piece_size[j] = compare_with_all(linkage, tree, run, rows, run.piece_value[j])
    run.state["n_pieces"][0] = j + 1
    n_points = run.n_points[q]
    p = q
    while p != NULL:
        run.n_points[p] -= n_points
        run.had[p] |= 1 << j
        p = run.parent[p]
    run.n_members[q], run.above[q], run.has[q] = 0, NULL, 1 << j


@step
def compare_with_all(linkage, tree, run, rows, value):
    """Fill `value` with ζ between the points of `rows` and every old node; return their size. O(n m) each."""
    pairs = tree.pairs
    run.state["patience"][0] -= rows.size * tree.state["n_points"][0]
    size = 0.0
    for i in rows:
        size += tree.size[2 * i]
    for u in range(0, 2 * tree.state["leaf_top"][0], 2):
        value[u] = without_members(linkage)
    for i in rows:
        share = tree.size[2 * i] / size
        start = np.int64(0)
        while start < tree.state["leaf_top"][0]:
            count, start = evaluate_leaves(tree, np.int64(i), start, np.int64(NULL))
            for k in range(count):
                u = 2 * pairs.some[k]
                value[u] = with_member(linkage, value[u], pairs.block[k], share)
    for u in run.order:
        a, b = run.left[u], run.right[u]
        value[u] = bound_of_union(linkage, value[a], value[b], run.size[a], run.size[b])
    return size


def _never(tree, run):
    return False


def _past_limit(tree, run):
    return run.state["patience"][0] < 0


#: Whether the run takes too long.
takes_too_long = choose("tree", {MeanTree: _never, PairTree: _past_limit})


# -- filling slots. A cluster often has almost the same points as an old one with a slot. Then its values follow from
# those of that one, and of the points that only one of the two has.


@inline
def may_lack_values(run, c):
    """Whether values between cluster `c`, which is alive, and others may be missing in the slots."""
    return c != run.state["point"][0] and (run.is_new[c] != 0 or run.slot[c] == NULL)


def _no_slots(linkage, tree, run):
    pass


def _fill_slots(linkage, tree, run):
    n_alive = run.state["n_alive"][0]
    for t in range(n_alive):
        c = np.int64(run.alive[t])
        run.base[c] = NULL
        if may_lack_values(run, c):
            find_base(tree, run, c)
    for t in range(n_alive):
        c = np.int64(run.alive[t])
        if may_lack_values(run, c):
            fill_slot(linkage, tree, run, c, t)
            if takes_too_long(tree, run):
                return


#: Find all values that slots lack: later ones follow from them, in this edit and in those after it.
fill_slots = choose("tree", {MeanTree: _no_slots, PairTree: _fill_slots})


@step
def fill_slot(linkage, tree, run, c, t):
    """Find what the slot of cluster `c`, which is at place `t`, lacks."""
    n_alive = run.state["n_alive"][0]
    is_measured = False
    for k in range(n_alive):
        u = np.int64(run.alive[k])
        if u == c or is_known(linkage, tree, run, c, u):
            continue
        if run.base[c] != NULL and not is_measured:
            is_measured = True
            measure_apart(linkage, tree, run, c)
            for later in range(t + 1, n_alive):
                note_to_base(linkage, tree, run, c, np.int64(run.alive[later]))
        value, error = value_by_base(linkage, tree, run, c, u)
        if not error <= LARGEST_ERROR:
            if grows_with_parts(linkage):  # comparisons often end early: it is found when it is needed
                continue
            value, _ = compute(linkage, tree, run, c, u, np.inf)
            error = 1.0
        note_value(run, c, u, value, error)
        set_value(run, c, u, value, True)


@step
def find_base(tree, run, c):
    """Fill ``run.base`` with the old node with a slot that differs least from `c`, if that is little. O(n)."""
    rows = tree.pairs.rows
    for i in range(0, 2 * tree.state["leaf_top"][0], 2):
        run.n_common[i] = 0
    count = collect_rows(tree, c, rows)
    for k in range(count):
        run.n_common[2 * rows[k]] = 1
    fewest = count // 2
    for u in run.order:
        run.n_common[u] = run.n_common[run.left[u]] + run.n_common[run.right[u]]
        n_apart = run.n_old[u] + count - 2 * run.n_common[u]
        if run.slot[u] != NULL and n_apart < fewest:
            run.base[c], fewest = u, n_apart


@step
def measure_apart(linkage, tree, run, c):
    """Compare the points that only one of cluster `c` and its base has with every old node. O(n m) each."""
    lost, gained = tree.pairs.others, tree.pairs.rows
    for i in range(0, 2 * tree.state["leaf_top"][0], 2):
        run.n_common[i] = 0
    count, n_lost, n_gained = collect_rows(tree, c, gained), 0, 0
    for k in range(count):
        run.n_common[2 * gained[k]] = 1
    for k in range(collect_rows(run, run.base[c], lost)):
        if run.n_common[2 * lost[k]]:
            run.n_common[2 * lost[k]] = 2
        else:
            lost[n_lost] = lost[k]
            n_lost += 1
    for k in range(count):
        if run.n_common[2 * gained[k]] == 1:
            gained[n_gained] = gained[k]
            n_gained += 1
    run.apart_size[0] = compare_with_all(linkage, tree, run, lost[:n_lost], run.apart_value[0])
    run.apart_size[1] = compare_with_all(linkage, tree, run, gained[:n_gained], run.apart_value[1])


@step
def after_base(linkage, run, value, error, size, lost, gained):
    """ζ of a cluster from that of its base, and from those of what it has `lost` and `gained`; and its error."""
    for comes in range(2):
        weight = run.apart_size[comes]
        if weight > 0.0 and error <= LARGEST_ERROR:
            value, error = value_after(linkage, value, error, size, gained if comes else lost, weight, comes)
            size += weight if comes else -weight
    return value, error


@step
def value_by_base(linkage, tree, run, c, u):
    """ζ(c, u) from the base of `c`, and its error; infinite if that does not follow."""
    p, i = np.int64(run.base[c]), run.state["point"][0]
    if p == NULL or u == i:
        return 0.0, np.inf
    if not run.is_new[u]:
        value, error = known_value(linkage, run, p, u)
        lost, gained = run.apart_value[0, u], run.apart_value[1, u]
    elif run.top.slot[u] != NULL:
        value, error = run.top.value[run.top.slot[u], run.slot[p]], run.top.error[run.top.slot[u], run.slot[p]]
        lost, gained = value_of_leaves(linkage, tree, run, 0, u), value_of_leaves(linkage, tree, run, 1, u)
    else:
        return 0.0, np.inf
    return after_base(linkage, run, value, error, run.size[p], lost, gained)


@step
def value_of_leaves(linkage, tree, run, side, u):
    """ζ between `u` and what a cluster has lost, or gained. O(|u|)."""
    value = without_members(linkage)
    for k in range(collect_rows(tree, u, tree.pairs.rows)):
        i = 2 * tree.pairs.rows[k]
        value = with_member(linkage, value, run.apart_value[side, i], tree.size[i] / tree.size[u])
    return value


@step
def note_to_base(linkage, tree, run, c, u):
    """Keep ζ between cluster `c` and the base of another one, which is to be filled later."""
    p, q, s = np.int64(run.base[c]), np.int64(run.base[u]), run.top.slot[c]
    if q in (NULL, p) or s == NULL:
        return
    value, error = known_value(linkage, run, p, q)
    value, error = after_base(linkage, run, value, error, run.size[p], run.apart_value[0, q], run.apart_value[1, q])
    t = run.slot[q]
    if not run.top.error[s, t] <= error:
        run.top.value[s, t] = run.top.value[t, s] = value
        run.top.error[s, t] = run.top.error[t, s] = error


# -- the run


@inline
def enter(run, u):
    """Cluster `u` is there from now on. O(1)."""
    run.place[u] = run.state["n_alive"][0]
    run.alive[run.place[u]] = u
    run.state["n_alive"][0] += 1


@inline
def leave(run, u):
    """Cluster `u` is no longer there. O(1)."""
    run.state["n_alive"][0] -= 1
    last = run.alive[run.state["n_alive"][0]]
    run.alive[run.place[u]] = last
    run.place[last] = run.place[u]
    run.place[u] = NULL


@inline
def note_made(run, u):
    """Write down that two clusters were merged into `u`."""
    run.made[run.state["n_made"][0]] = u
    run.state["n_made"][0] += 1


@inline
def give_row(run, u):
    """Make `u` active, if there is a row left; return whether there is."""
    k = run.state["n_active"][0]
    if k == run.active.size:
        return False
    run.state["n_active"][0] = k + 1
    run.active[k] = u
    run.row[u] = k
    return True


@step
def take_row(run, u):
    """Make `u` passive: the row of the last active cluster takes the place of its row. O(n)."""
    k, last = run.row[u], run.state["n_active"][0] - 1
    run.row[u] = NULL
    run.state["n_active"][0] = last
    if k != last:
        other = run.active[last]
        for t in range(run.state["n_alive"][0]):
            v = run.alive[t]
            run.value[k, v] = run.value[last, v]
            run.is_exact[k, v] = run.is_exact[last, v]
            if run.low.shape[1] > 0:
                run.low[k, v], run.high[k, v] = run.low[last, v], run.high[last, v]
        run.active[k], run.nearest[k] = other, run.nearest[last]
        run.reference[k], run.reach[k] = run.reference[last], run.reach[last]
        run.row[other] = k


@step
def lose(run, u):
    """The cluster of old node `u` is merged with another than its sibling, or has lost a point: mark those above it."""
    p = run.parent[u]
    while p != NULL and not run.is_lost[p]:
        run.is_lost[p] = 1
        run.pool[run.state["n_pool"][0]] = p
        run.state["n_pool"][0] += 1
        p = run.parent[p]


@inline
def note_union(linkage, tree, run, x, u):
    """Keep ζ between cluster `x` and `u`, whose children have just been merged, if it follows from what is kept."""
    top = run.top
    s, a, b, t = top.slot[x], top.slot[tree.left[u]], top.slot[tree.right[u]], top.slot[u]
    if s == NULL or a == NULL or b == NULL or t == NULL or top.error[s, t] <= LARGEST_ERROR:
        return
    error = max(top.error[s, a], top.error[s, b])
    if error <= LARGEST_ERROR:
        size_a, size_b = tree.size[tree.left[u]], tree.size[tree.right[u]]
        note_value(run, x, u, bound_of_union(linkage, top.value[s, a], top.value[s, b], size_a, size_b), error)


@step
def note_again(linkage, tree, run, u):
    """Keep values of old cluster `u`, which is there again, to clusters that it has not met in the old tree."""
    if run.top.slot[u] == NULL:
        give_slot(run, u)
        for t in range(run.state["n_alive"][0]):
            note_union(linkage, tree, run, run.alive[t], u)
    else:
        for t in range(run.state["n_late"][0]):
            note_union(linkage, tree, run, run.late[t], u)


@inline
def unite_in_row(run, k, u, a, b):
    """How far `u`, the union of `a` and `b`, is from the reference of a row."""
    run.low[k, u] = min(run.low[k, a], run.low[k, b])
    run.high[k, u] = max(run.high[k, a], run.high[k, b])


@step
def merge_again(linkage, tree, run, u):
    """Merge two clusters as in the old tree, into `u`. O(number of active and late clusters)."""
    a, b = np.int64(tree.left[u]), np.int64(tree.right[u])
    n_late = 0
    latest = np.inf
    for t in range(run.state["n_late"][0]):
        v = run.late[t]
        if run.place[v] != NULL and run.row[v] == NULL:
            latest = min(latest, run.before[v])
            run.late[n_late] = v
            n_late += 1
    run.state["n_late"][0] = n_late
    slack_a, slack_b = min(run.before[a], latest), min(run.before[b], latest)
    leave(run, a)
    leave(run, b)
    for k in range(run.state["n_active"][0]):
        slack_a = min(slack_a, run.value[k, a])
        slack_b = min(slack_b, run.value[k, b])
        value, is_exact = value_to_union(linkage, tree, run, np.int64(run.active[k]), np.int64(u))
        if has_references(linkage):
            unite_in_row(run, k, u, a, b)
            if not is_exact:
                value = max(value, bound_by_reference(linkage, tree, run, np.int64(run.active[k]), k, np.int64(u)))
        run.value[k, u] = value
        run.is_exact[k, u] = is_exact
        if is_exact:
            note_value(run, run.active[k], u, value, ERROR_OF_RECURRENCE)
    if run.state["has_top"][0] and unites_exactly(linkage):
        note_again(linkage, tree, run, u)
    level = run.level[u]  # rounding aside, no bound is below it
    run.slack[a], run.slack[b] = max(slack_a, level), max(slack_b, level)
    enter(run, u)
    note_made(run, u)


@step
def lower_ties(linkage, run, u, bound):
    """Lower the slack of clusters that have merged at about the level of `u` as before, and did not expect it later."""
    t = run.state["position"][0] - 1
    while t >= 0 and run.level[run.order[t]] >= run.level[u] - linkage.tolerance * run.level[u]:
        v = run.order[t]
        if not run.is_lost[v]:
            for child in (run.left[v], run.right[v]):
                run.slack[child] = min(run.slack[child], max(bound, run.level[v]))
        t -= 1


@step
def note_late(linkage, run, u):
    """The merge of old node `u` is due, and cannot be made: those of its clusters that are there are late."""
    for turn in range(2):
        v = np.int64(run.left[u] if turn == 0 else run.right[u])
        if run.place[v] != NULL and run.row[v] == NULL and not run.is_new[v]:
            run.late[run.state["n_late"][0]] = v
            run.state["n_late"][0] += 1
            push_event(run, run.before[v], v)
            lower_ties(linkage, run, u, run.before[v])


@step
def activate(linkage, tree, run, c):
    """Give old cluster `c`, or the point, a row of values. Returns whether there is one."""
    n_active = run.state["n_active"][0]
    if n_active == run.active.size:
        return False
    if not run.is_new[c]:
        make_piece(linkage, tree, run, c)
    find_reference(linkage, tree, run, c, n_active)
    least, nearest = np.inf, np.int64(NULL)
    for t in range(run.state["n_alive"][0]):
        u = np.int64(run.alive[t])
        if u != c:
            value, is_exact = value_at_first(linkage, tree, run, c, u)
            if not is_exact:
                value = max(value, bound_by_reference(linkage, tree, run, c, n_active, u))
            run.value[n_active, u] = value
            run.is_exact[n_active, u] = is_exact
            if value < least:
                least, nearest = value, u
            if run.row[u] != NULL:
                run.value[run.row[u], c] = value
                run.is_exact[run.row[u], c] = is_exact
    give_row(run, c)
    run.nearest[n_active] = nearest
    push_event(run, least, c)
    return True


@inline
def lowest_above(run, p, q):
    """The lowest old node that has all points of two old nodes. O(depth)."""
    while p != q:
        if run.rank[p] < run.rank[q]:
            p = run.parent[p]
        else:
            q = run.parent[q]
    return p


@step
def unite_base(run, w, c, k):
    """Which points the union of two clusters has."""
    run.n_leaves[w] = run.n_leaves[c] + run.n_leaves[k]
    run.n_members[w] = run.n_members[c] + run.n_members[k]
    run.has[w] = run.has[c] | run.has[k]
    if run.above[c] == NULL or run.above[k] == NULL:
        run.above[w] = run.above[c] if run.above[k] == NULL else run.above[k]
    else:
        run.above[w] = lowest_above(run, run.above[c], run.above[k])


@inline
def union_of(tree, run, c, k):
    """A node for the union of two clusters, which are its children."""
    if run.state["n_pool"][0] > 0:
        run.state["n_pool"][0] -= 1
        w = np.int64(run.pool[run.state["n_pool"][0]])
        vacate(run, w)
    else:
        w = np.int64(new_inner(tree))
    tree.left[w], tree.right[w] = c, k
    tree.parent[c] = tree.parent[k] = w
    return w


@step
def merge_new(linkage, tree, run, c, k, value):
    """Merge active cluster `c` with `k` at `value` into a new one, which is active. O(n), O(n m) by means."""
    for v in (c, k):
        if not run.is_new[v] and v != run.state["point"][0]:
            lose(run, v)
    w = union_of(tree, run, c, k)
    complete_node(linkage, tree, run, w, value)
    leave(run, c)
    leave(run, k)
    run.is_new[w], run.row[w] = 1, NULL
    unite_base(run, w, c, k)
    if run.state["has_top"][0]:
        give_slot(run, w)
    row = np.int64(run.row[c])
    if has_references(linkage):
        for t in range(run.state["n_active"][0]):
            unite_in_row(run, t, w, c, k)
        run.reach[row] = max(run.reach[row], run.high[row, k])
        find_reference(linkage, tree, run, w, row)
    least, nearest, slack_c, slack_k = np.inf, np.int64(NULL), np.inf, np.inf
    for t in range(run.state["n_alive"][0]):
        u = np.int64(run.alive[t])
        a, a_is_exact = run.value[row, u], run.is_exact[row, u] != 0
        b, b_is_exact = bound_between(linkage, tree, run, k, u)
        slack_c, slack_k = min(slack_c, a), min(slack_k, b)
        z, is_exact = value_of_new(linkage, tree, run, w, u, a, a_is_exact, b, b_is_exact)
        if not is_exact:
            z = max(z, bound_by_reference(linkage, tree, run, w, row, u))
        run.value[row, u] = z
        run.is_exact[row, u] = is_exact
        if z < least:
            least, nearest = z, u
        if is_exact:
            note_value(run, w, u, z, ERROR_OF_RECURRENCE)
        if run.row[u] != NULL:
            run.value[run.row[u], w] = z
            run.is_exact[run.row[u], w] = is_exact
    run.slack[c], run.slack[k] = max(slack_c, value), max(slack_k, value)
    run.row[c], run.row[w], run.active[row], run.nearest[row] = NULL, row, w, nearest
    enter(run, w)
    note_made(run, w)
    if run.row[k] != NULL:
        take_row(run, k)
    if run.state["n_alive"][0] > 1:
        push_event(run, least, w)


@inline
def next_level(run):
    """The level of the next merge of the old tree."""
    position = run.state["position"][0]
    return run.level[run.order[position]] if position < run.order.size else np.inf


@step
def look_at(linkage, tree, run, c, expected):
    """Merge active cluster `c` if that comes next, or else look again when it may; no value is below `expected`."""
    level = next_level(run)
    others = run.event[0] if run.state["n_events"][0] > 0 else np.inf
    row = np.int64(run.row[c])
    best = np.int64(run.nearest[row])
    if best != NULL and run.place[best] != NULL and run.is_exact[row, best] and run.value[row, best] == expected:
        if expected < level and expected <= others:
            merge_new(linkage, tree, run, c, best, expected)
        else:
            push_event(run, expected, c)
        return
    best, smallest, least, nearest = np.int64(NULL), np.inf, np.inf, np.int64(NULL)
    ahead = AHEAD * expected
    n_bounds = 0
    for t in range(run.state["n_alive"][0]):
        u = np.int64(run.alive[t])
        if u == c:
            continue
        if not run.is_exact[row, u]:
            n_bounds += 1
            continue
        value = run.value[row, u]
        if value < least:
            least, nearest = value, u
        if value < smallest and value < level and value <= others:
            best, smallest = u, value
    for t in range(run.state["n_alive"][0] if n_bounds else 0):
        u = np.int64(run.alive[t])
        if u == c or run.is_exact[row, u]:
            continue
        value = run.value[row, u]
        if value < smallest and (value < ahead or (value < level and value <= others)):
            floor = FLOOR * min(max(min(level, max(others, value)), ahead), smallest) + np.finfo(np.float64).tiny
            value, is_exact = compute(linkage, tree, run, c, u, floor)
            value = max(value, run.value[row, u])
            run.value[row, u] = value
            run.is_exact[row, u] = is_exact
            if is_exact:
                note_value(run, c, u, value, 1.0)
            if run.row[u] != NULL:
                run.value[run.row[u], c] = value
                run.is_exact[run.row[u], c] = is_exact
            if is_exact and value < smallest and value < level and value <= others:
                best, smallest = u, value
        if value < least:
            least, nearest = value, u
    if best == NULL:
        run.nearest[row] = nearest
        push_event(run, least, c)
    else:
        merge_new(linkage, tree, run, c, best, smallest)


@step
def begin(tree, run, n_nodes):
    """Write down the old tree. O(n)."""
    for u in range(n_nodes):
        run.parent[u], run.left[u], run.right[u] = tree.parent[u], tree.left[u], tree.right[u]
        run.size[u], run.height[u], run.before[u] = tree.size[u], tree.height[u], run.slack[u]
        run.is_lost[u], run.is_new[u], run.is_followed[u] = 0, 0, 0
        run.place[u], run.row[u], run.slot[u] = NULL, NULL, run.top.slot[u]
        run.n_leaves[u], run.n_members[u], run.has[u], run.above[u] = 1, 1, 0, u
        run.n_points[u], run.had[u], run.n_old[u] = 1, 0, 1
    i = run.state["point"][0]
    run.n_points[i] = run.n_members[i] = 0
    run.above[i] = NULL
    if run.state["comes"][0]:
        run.has[i] = POINT
    else:
        run.had[i] = POINT
    for k in range(run.order.size):
        u = run.order[k]
        a, b = tree.left[u], tree.right[u]
        run.rank[a] = run.rank[b] = k
        run.death[a] = run.death[b] = run.level[u]
        run.n_points[u] = run.n_members[u] = run.n_points[a] + run.n_points[b]
        run.had[u] = run.had[a] | run.had[b]
        run.n_leaves[u] = run.n_old[u] = run.n_leaves[a] + run.n_leaves[b]
    if tree.state["root"][0] != NULL:
        run.rank[tree.state["root"][0]] = run.order.size
        run.death[tree.state["root"][0]] = np.finfo(np.float64).max


def _no_errors(tree, run, n_nodes):
    pass


def _errors(tree, run, n_nodes):
    for u in range(n_nodes):
        run.error[u] = tree.error[u]


#: Write down what is known of heights that follow from pairs.
begin_errors = choose("tree", {MeanTree: _no_errors, PairTree: _errors})


@step
def join_all(tree, run):
    """Make any tree of the clusters that are there."""
    while run.state["n_alive"][0] > 1:
        c, k = np.int64(run.alive[0]), np.int64(run.alive[1])
        for v in (c, k):
            if not run.is_new[v]:
                lose(run, v)
        w = union_of(tree, run, c, k)
        run.is_new[w] = 1
        leave(run, c)
        leave(run, k)
        enter(run, w)


@step
def run_up(linkage, tree, run):
    """Merge clusters until one is left; return whether that was possible."""
    while run.state["n_alive"][0] > 1:
        if not run.state["has_top"][0] and has_slots_now(run):
            choose_top(linkage, tree, run)
        if run.state["n_events"][0] == 0 or next_level(run) <= run.event[0]:
            u = np.int64(run.order[run.state["position"][0]])
            run.state["position"][0] += 1
            if run.is_lost[u]:
                note_late(linkage, run, u)
            else:
                merge_again(linkage, tree, run, u)
            continue
        expected = run.event[0]
        u = pop_event(run)
        if run.place[u] == NULL:
            continue
        if run.row[u] != NULL:
            look_at(linkage, tree, run, u, expected)
        elif not activate(linkage, tree, run, u):
            return False
        if takes_too_long(tree, run):
            return False
    return True


@kernel
def find_levels(tree: AnyTree, order: Ints, level: Floats) -> bool:
    """Heights made monotone, of inner nodes with children first; whether each is above the one before it. O(n)."""
    last = -np.inf
    for u in order:
        level[u] = max(tree.height[u], level[tree.left[u]], level[tree.right[u]])
        if not level[u] > last:
            return False
        last = level[u]
    return True


@kernel
def repair(tree: AnyTree, linkage: AnyLinkage, run: Repair, n_nodes: int) -> int:
    """Insert the point of ``run.state`` into a batch tree, or remove it, so that it is one again.

    `order`, `level` and `slack` are those of the tree; `n_nodes` of its rows are in use. All numbers of entries are 0.
    Returns 0; or 1 if there were too few rows of values, or it took too long: then the tree is any tree of its points,
    without heights.
    """
    begin(tree, run, n_nodes)
    begin_errors(tree, run, n_nodes)
    if tree.state["root"][0] != NULL:
        measure(linkage, tree, run)
    i, comes = run.state["point"][0], run.state["comes"][0]
    for u in range(0, n_nodes, 2):
        if u != i and (tree.parent[u] > NULL or tree.state["root"][0] == u):
            enter(run, u)
    if comes:
        enter(run, i)
        run.is_new[i] = 1
        if run.state["n_alive"][0] > 1:
            activate(linkage, tree, run, np.int64(i))
    else:
        lose(run, i)
    is_done = run_up(linkage, tree, run)
    if not is_done:
        join_all(tree, run)
    root = NULL if run.state["n_alive"][0] == 0 else run.alive[0]
    if root != NULL:
        tree.parent[root] = NULL
        run.slack[root] = np.inf
    tree.state["root"][0] = root
    tree.state["n_points"][0] += 1 if comes else -1
    if not comes:
        tree.parent[i] = NULL
        vacate(run, i)
    for k in range(run.state["n_pool"][0]):
        vacate(run, run.pool[k])
        release(tree, run.pool[k])
    free_slots(run)
    return 0 if is_done else 1

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

import numpy as np

from evertree.kernels.columns import NULL, AnyTree, MeanTree, PairTree
from evertree.kernels.compile import choose, inline, kernel, step
from evertree.kernels.pairwise.check import LARGEST_ERROR
from evertree.kernels.pairwise.path import ERROR_OF_RECURRENCE
from evertree.kernels.repair.bounds import bound_between, bound_by_distance
from evertree.kernels.repair.events import next_level, pop_event, push_event
from evertree.kernels.repair.filling import choose_top, out_of_reach
from evertree.kernels.repair.pieces import make_piece
from evertree.kernels.repair.rows import clear_close, give_row, list_close, note_close, take_row, unite_in_row
from evertree.kernels.repair.rules import (
    bound_by_reference,
    bound_of_union,
    find_reference,
    has_references,
    unites_exactly,
)
from evertree.kernels.repair.slots import free_slots, give_slot, has_slots_now, note_value, vacate
from evertree.kernels.repair.state import POINT, Repair
from evertree.kernels.repair.values import (
    complete_node,
    compute,
    measure,
    takes_too_long,
    value_at_first,
    value_of_new,
    value_to_union,
)
from evertree.kernels.shared.topology import new_inner, release
from evertree.kernels.signatures import AnyLinkage, Floats, Ints

#: A value that does not matter now is computed up to this multiple of what matters: it may matter soon.
FLOOR = 1.02

#: Whether a cluster is farther than this multiple of the level is all that needs to be known of it.
FAR = 1.3

#: Whoever looks for the nearest cluster looks that far ahead: it would be soon again at the next level.
AHEAD = 1.01


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
        note_close(run, np.int64(k), np.int64(u))
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
    clear_close(run, n_active)
    for t in range(run.state["n_alive"][0]):
        u = np.int64(run.alive[t])
        if u != c:
            value, is_exact = value_at_first(linkage, tree, run, c, u)
            if not is_exact:
                value = max(value, bound_by_reference(linkage, tree, run, c, n_active, u))
            run.value[n_active, u] = value
            run.is_exact[n_active, u] = is_exact
            note_close(run, n_active, u)
            if run.row[u] != NULL:
                run.value[run.row[u], c] = value
                run.is_exact[run.row[u], c] = is_exact
                note_close(run, np.int64(run.row[u]), c)
    give_row(run, c)
    await_nearest(run, c)
    return True


@inline
def await_nearest(run, c):
    """Look at active cluster `c`, of which all values are new, at the level of the smallest one."""
    row = np.int64(run.row[c])
    if run.n_close[row] > 0:
        run.nearest[row] = run.close[row, 0]
        push_event(run, run.value[row, run.nearest[row]], c)


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
    slack_c, slack_k = np.inf, np.inf
    far = out_of_reach(linkage, value) if run.state["has_top"][0] else FAR * max(value, next_level(run))
    clear_close(run, row)
    for t in range(run.state["n_alive"][0]):
        u = np.int64(run.alive[t])
        a, a_is_exact = run.value[row, u], run.is_exact[row, u] != 0
        b, b_is_exact = bound_by_distance(linkage, tree, run, k, u) if a >= far else 0.0, False
        if b > far:
            z, is_exact = bound_of_union(linkage, a, b, tree.size[c], tree.size[k]), False
        else:
            b, b_is_exact = bound_between(linkage, tree, run, k, u)
            z, is_exact = value_of_new(linkage, tree, run, w, u, a, a_is_exact, b, b_is_exact)
        slack_c, slack_k = min(slack_c, a), min(slack_k, b)
        if not is_exact:
            z = max(z, bound_by_reference(linkage, tree, run, w, row, u))
        run.value[row, u] = z
        run.is_exact[row, u] = is_exact
        note_close(run, row, u)
        if is_exact:
            note_value(run, w, u, z, ERROR_OF_RECURRENCE)
        if run.row[u] != NULL:
            run.value[run.row[u], w] = z
            run.is_exact[run.row[u], w] = is_exact
            note_close(run, np.int64(run.row[u]), w)
    run.slack[c], run.slack[k] = max(slack_c, value), max(slack_k, value)
    run.row[c], run.row[w], run.active[row] = NULL, row, w
    enter(run, w)
    note_made(run, w)
    if run.row[k] != NULL:
        take_row(run, k)
    await_nearest(run, w)


@step
def look_at(linkage, tree, run, c, expected):
    """Merge active cluster `c` if that comes next, or else look again when it may; no value is below `expected`."""
    level = next_level(run)
    others = run.event[0] if run.state["n_events"][0] > 0 else np.inf
    row = np.int64(run.row[c])
    best = np.int64(run.nearest[row])
    if best != NULL and run.place[best] != NULL and run.is_exact[row, best] and run.value[row, best] == expected:
        merge_new(linkage, tree, run, c, best, expected)
        return
    if expected >= run.beyond[row]:
        list_close(run, row, c)
    best, smallest, least, nearest = np.int64(NULL), np.inf, run.beyond[row], np.int64(NULL)
    others, ahead = min(others, run.beyond[row]), AHEAD * expected
    n_close = 0
    for t in range(run.n_close[row]):
        u = np.int64(run.close[row, t])
        if run.place[u] == NULL or u == c:
            continue
        run.close[row, n_close] = u
        n_close += 1
        if not run.is_exact[row, u]:
            continue
        value = run.value[row, u]
        if value < least:
            least, nearest = value, u
        if value < smallest and value < level and value <= others:
            best, smallest = u, value
    run.n_close[row] = n_close
    for t in range(n_close):
        u = np.int64(run.close[row, t])
        if run.is_exact[row, u]:
            continue
        value = run.value[row, u]
        if value < smallest and (value < ahead or (value < level and value <= others)):
            floor = FLOOR * min(max(min(level, max(others, value)), ahead), smallest) + np.finfo(np.float64).tiny
            value, is_exact, error = compute(linkage, tree, run, c, u, floor)
            value = max(value, run.value[row, u])
            run.value[row, u] = value
            run.is_exact[row, u] = is_exact
            if is_exact:
                note_value(run, c, u, value, error)
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
    if not run.state["has_top"][0]:  # all merges are below its level now
        run.top.level[0] = -np.inf
    free_slots(run)
    return 0 if is_done else 1

"""Filling slots.

A cluster often has almost the same points as an old one with a slot. Then its values follow from those of that one,
and of the points that only one of the two has.
"""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import NULL, MeanTree, PairTree
from evertree.kernels.compile import choose, inline, step
from evertree.kernels.pairwise.check import LARGEST_ERROR
from evertree.kernels.pairwise.pairs import collect_rows
from evertree.kernels.pairwise.search import with_member, without_members
from evertree.kernels.repair.bounds import bound_by_distance
from evertree.kernels.repair.pieces import compare_with_all
from evertree.kernels.repair.rules import grows_with_parts, unites_exactly, value_after
from evertree.kernels.repair.slots import give_slot, is_known, known_value, note_value, raise_bound, set_value
from evertree.kernels.repair.state import SLOTS_EACH
from evertree.kernels.repair.values import compute, takes_too_long
from evertree.kernels.shared.topology import is_leaf

#: Where comparisons end early, it is enough to know of two clusters with slots that they are this many times farther
#: from each other than those that merge now: before they could merge, they will have become others.
OUT_OF_REACH = 3.0


@inline
def out_of_reach(linkage, level):
    """From here on, values between clusters with slots need not be known while merges are made at `level`."""
    return OUT_OF_REACH * level if grows_with_parts(linkage) else np.inf


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
    level = tree.height[run.made[n_made - 1]] if n_made > 0 else 0.0
    top.level[0] = max(top.level[0], level)
    if 2 * run.state["n_alive"][0] < top.node.size // SLOTS_EACH:
        top.level[0] = -np.inf  # few are left above it: next time their number decides
    run.state["has_top"][0] = 1
    if unites_exactly(linkage):
        fill_slots(linkage, tree, run, level)


@inline
def may_lack_values(run, c):
    """Whether values between cluster `c`, which is alive, and others may be missing in the slots."""
    return c != run.state["point"][0] and (run.is_new[c] != 0 or run.slot[c] == NULL)


def _no_slots(linkage, tree, run, level):
    pass


def _fill_slots(linkage, tree, run, level):
    n_alive = run.state["n_alive"][0]
    for t in range(n_alive):
        c = np.int64(run.alive[t])
        run.base[c] = NULL
        if may_lack_values(run, c):
            find_base(tree, run, c)
    for t in range(n_alive):
        c = np.int64(run.alive[t])
        if may_lack_values(run, c):
            fill_slot(linkage, tree, run, c, t, level)
            if takes_too_long(tree, run):
                return


#: Find the values that slots lack: later ones follow from them, in this edit and in those after it.
fill_slots = choose("tree", {MeanTree: _no_slots, PairTree: _fill_slots})


@step
def fill_slot(linkage, tree, run, c, t, level):
    """Find what the slot of cluster `c`, which is at place `t`, lacks at `level`, but for what is far away."""
    n_alive = run.state["n_alive"][0]
    is_measured = False
    floor = out_of_reach(linkage, level)
    for k in range(n_alive):
        u = np.int64(run.alive[k])
        if u == c or bound_by_distance(linkage, tree, run, c, u) >= floor or is_known(linkage, tree, run, c, u):
            continue
        if run.base[c] != NULL and not is_measured:
            is_measured = True
            measure_apart(linkage, tree, run, c)
            for later in range(t + 1, n_alive):
                note_to_base(linkage, tree, run, c, np.int64(run.alive[later]))
        value, error = value_by_base(linkage, tree, run, c, u)
        if not error <= LARGEST_ERROR:
            value, is_exact, error = compute(linkage, tree, run, c, u, floor)
            if not is_exact:
                raise_bound(run, c, u, value)
                raise_bound(run, u, c, value)
                continue
        note_value(run, c, u, value, error)
        set_value(run, c, u, value)


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

"""Treelets: connected pieces of a tree of means that are cut out, changed on their own, and put back.

The nodes at the bottom of a treelet are its leaves, and stand for all below them by their statistics. No two pieces
share an inner node, so that each may be changed by a different thread.
"""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import DUE, INSIDE, NULL, QUEUED, MeanTree, Search, Tree, Worklist
from evertree.kernels.compile import inline, kernel
from evertree.kernels.shared.due_queue import note_due, queue_flagged
from evertree.kernels.shared.neighbours import forget_near, note_in
from evertree.kernels.shared.topology import is_leaf, new_inner, replace_child, sibling
from evertree.kernels.shared.worklist import push, refresh
from evertree.kernels.signatures import AnyLinkage, Ints
from evertree.kernels.statistics.sketches import copy_sketch


@kernel
def find_pieces(tree: Tree, nodes: Ints, most: int, fewest: int, count: Ints, stops: Ints) -> int:
    """Cut a tree into its largest subtrees of at most `most` leaves; leave out those of fewer than `fewest`.

    `nodes` are all nodes in postorder, in which those of a subtree are contiguous. Fills ``count[u]`` with the number
    of leaves below each node, and `stops` with where the nodes of each piece end; returns the number of pieces. O(n).
    """
    n_pieces = 0
    for u in nodes:
        count[u] = 1 if is_leaf(u) else count[tree.left[u]] + count[tree.right[u]]
    for k in range(nodes.size):
        u = nodes[k]
        p = tree.parent[u]
        if fewest <= count[u] <= most and (p == NULL or count[p] > most):
            stops[n_pieces] = k + 1
            n_pieces += 1
    return n_pieces


@inline
def copy_row(source, u, target, v):
    """Copy the row of node `u` of one tree to node `v` of another. O(m)."""
    for k in range(source.mean.shape[1]):
        target.mean[v, k] = source.mean[u, k]
    copy_sketch(source, u, target, v)
    target.size[v] = source.size[u]
    target.variance[v] = source.variance[u]
    target.height[v] = source.height[u]
    target.radius[v] = source.radius[u]
    target.birth[v] = source.birth[u]


@inline
def number_in(bottoms, place, u):
    """The number of `u`, a leaf of the tree, in a treelet; NULL if it is not among the bottom nodes."""
    row = place[u] >> 1
    return np.int64(place[u]) if 0 <= row < bottoms.size and bottoms[row] == u else np.int64(NULL)


@inline
def copy_list(search, small_search, bottoms, place, row):
    """Copy the neighbours of a leaf that are in the treelet, too. O(N_NEAR)."""
    forget_near(small_search, 2 * row, 0)
    if is_leaf(bottoms[row]) and search.near.shape[0] > 0:
        outer = bottoms[row] >> 1
        for k in range(search.near.shape[1]):
            if search.near[outer, k] != NULL:
                j = number_in(bottoms, place, np.int64(search.near[outer, k]))
                if j != NULL:
                    value = np.float64(search.near_value[outer, k])
                    note_in(small_search.near, small_search.near_value, row, j, value)


@kernel
def copy_out(
    tree: MeanTree,
    work: Worklist,
    search: Search,
    bottoms: Ints,
    inner: Ints,
    place: Ints,
    small: MeanTree,
    small_work: Worklist,
    small_search: Search,
) -> None:
    """Fill the empty tree `small` with a treelet: leaf i is ``bottoms[i]``, inner node j is ``inner[j]``.

    Both are in postorder, so that the root is the last. ``place[u]`` becomes the number of `u` in the treelet. Pending
    checks, due nodes and neighbours are copied too, if they are within the treelet.
    """
    for i in range(bottoms.size):
        place[bottoms[i]] = 2 * i
    for j in range(inner.size):
        place[inner[j]] = 2 * j + 1
    root = inner[inner.size - 1]
    for i in range(bottoms.size):
        u = np.int64(bottoms[i])
        copy_row(tree, u, small, 2 * i)
        small.parent[2 * i] = place[tree.parent[u]]
        small.left[2 * i] = NULL
        small.right[2 * i] = NULL
        if small_search.near.shape[0] > 0:
            copy_list(search, small_search, bottoms, place, i)
    for j in range(inner.size):
        u = np.int64(inner[j])
        v = np.int64(2 * j + 1)
        copy_row(tree, u, small, v)
        small.parent[v] = NULL if u == root else place[tree.parent[u]]
        small.left[v] = place[tree.left[u]]
        small.right[v] = place[tree.right[u]]
    for i in range(bottoms.size):  # now that their parents are there
        if work.due[bottoms[i]]:
            note_due(small, small_work, np.int64(2 * i))
    for back in range(inner.size - 1):  # so that the lowest are checked first
        j = inner.size - 2 - back
        v = np.int64(2 * j + 1)
        if work.mark[inner[j]] & QUEUED:
            push(small, small_work, v)
        elif work.due[inner[j]]:
            note_due(small, small_work, v)
    small.state["root"][0] = place[root]
    small.state["n_points"][0] = bottoms.size
    small.state["leaf_top"][0] = bottoms.size
    small.state["inner_top"][0] = inner.size


@inline
def outer_number(bottoms, inner, v):
    """The node of the tree that corresponds to node `v` of a treelet."""
    if v == NULL:
        return np.int64(NULL)
    return np.int64(bottoms[v >> 1] if is_leaf(v) else inner[v >> 1])


@inline
def differs(tree, u, small, v, parent):
    """Whether what a blocking pair with `u` depends on has changed: `u` itself, or the height of its parent. O(m)."""
    if tree.parent[u] != parent or tree.size[u] != small.size[v] or tree.height[u] != small.height[v]:
        return True
    p = small.parent[v]
    if p != NULL and tree.height[parent] != small.height[p]:
        return True
    is_other = False
    for k in range(small.mean.shape[1]):
        is_other = is_other or tree.mean[u, k] != small.mean[v, k]
    return is_other


@inline
def flag(work, u):
    """Flag the check at `u`, and a search for it, to be counted by `count_flags`."""
    if u != NULL:
        work.due[u] = DUE
        if not is_leaf(u):
            work.mark[u] |= QUEUED


@kernel
def copy_in(
    tree: MeanTree,
    work: Worklist,
    bottoms: Ints,
    inner: Ints,
    root: int,
    small: MeanTree,
    small_work: Worklist,
    is_searched: int,
) -> None:
    """Put a treelet back, whose root was `root`. It may have more leaves and inner nodes than when it was cut out.

    What changed becomes due, because blocking pairs with nodes outside the treelet have not been searched for. If those
    within have been, that is noted. What is still pending in it stays pending. Checks that the treelet does not have,
    at its root, at its leaves and beside it, are flagged if they read what changed. Nothing is counted: `count_flags`
    does that when all treelets are back.
    """
    above = np.int64(tree.parent[root])
    top = outer_number(bottoms, inner, np.int64(small.state["root"][0]))
    is_root_pending = work.mark[root] & QUEUED
    has_other_root, has_other_children = top != root, False
    for v in range(2 * inner.size + 1):  # before anything of the tree is overwritten
        u = outer_number(bottoms, inner, v)
        if u == top:
            has_other_root = has_other_root or differs(tree, u, small, v, above)
            continue
        parent = outer_number(bottoms, inner, small.parent[v])
        if differs(tree, u, small, v, parent):
            work.due[u] = DUE
            has_other_children = has_other_children or parent == top
            s = sibling(small, v)
            if is_leaf(s):  # what it stands for has a check that reads this one
                flag(work, outer_number(bottoms, inner, s))
            if is_leaf(v):
                flag(work, u)
    for v in range(2 * inner.size + 1):
        u = outer_number(bottoms, inner, v)
        if is_searched and u != top and work.due[u] and not small_work.due[v]:  # others may flag the root
            work.due[u] = INSIDE
        tree.parent[u] = outer_number(bottoms, inner, np.int64(small.parent[v]))
        if is_leaf(v):
            continue
        tree.left[u] = outer_number(bottoms, inner, np.int64(small.left[v]))
        tree.right[u] = outer_number(bottoms, inner, np.int64(small.right[v]))
        copy_row(small, np.int64(v), tree, u)
        if small_work.mark[v] & QUEUED:
            work.mark[u] |= QUEUED
        else:
            work.mark[u] &= 255 - QUEUED
    replace_child(tree, above, root, top)
    if is_root_pending:
        work.mark[top] |= QUEUED
    if has_other_root or has_other_children:
        flag(work, top)
    if has_other_root:
        flag(work, sibling(tree, top))
        flag(work, above)


@kernel
def count_flags(tree: Tree, work: Worklist, nodes: Ints) -> None:
    """Rebuild the worklist from the flags of all `nodes`, given children first: the lowest is checked first.

    The root and detached nodes have neither check nor search.
    """
    work.state["pending"][0] = 0
    for u in range(2 * max(tree.state["leaf_top"][0], tree.state["inner_top"][0])):
        if tree.parent[u] <= NULL:
            work.mark[u] &= 255 - QUEUED
            work.due[u] = 0
    for k in range(nodes.size - 1, -1, -1):
        u = nodes[k]
        if work.mark[u] & QUEUED:
            work.stack[work.state["pending"][0]] = u
            work.state["pending"][0] += 1
    queue_flagged(tree, work, nodes)


@kernel
def copy_leaves(tree: MeanTree, leaves: Ints, small: MeanTree, own: Ints) -> None:
    """Copy `leaves` of the tree to the leaves `own` of a treelet."""
    for k in range(leaves.size):
        copy_row(tree, np.int64(leaves[k]), small, np.int64(own[k]))


@kernel
def allocate_inner(tree: Tree, inner: Ints) -> None:
    """Fill `inner` with unused inner nodes."""
    for k in range(inner.size):
        inner[k] = new_inner(tree)


@kernel
def refresh_above(tree: MeanTree, work: Worklist, linkage: AnyLinkage, nodes: Ints) -> None:
    """Recompute `nodes`, given children first, and queue the checks that read them. O(m) each."""
    for u in nodes:
        refresh(linkage, tree, work, np.int64(u))

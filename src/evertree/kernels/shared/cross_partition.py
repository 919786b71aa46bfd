"""Searches in one part for partners of nodes of other parts, and traversals of subtrees in postorder."""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import EVERYWHERE, NULL, UNLIMITED, MeanTree, Search
from evertree.kernels.compile import inline, kernel
from evertree.kernels.shared.linkage_values import distance_factor, least_value
from evertree.kernels.shared.neighbours import forget_near
from evertree.kernels.shared.topology import is_leaf, sibling
from evertree.kernels.signatures import AnyLinkage, Bools, Floats, IntMatrix, Ints, LongInts
from evertree.kernels.statistics.means import sq_dist, sq_dist_error
from evertree.kernels.statistics.search import descend_means, exhaust_means, usual_width


@kernel
def find_leaf_ranges(children: IntMatrix, n_leaves: int, first: LongInts, stop: LongInts) -> None:
    """Fill ``first[u]`` and ``stop[u]`` with the range of leaves below each node of subtrees in postorder. O(n).

    Leaves come first, then the unions of `children`, each after its children.
    """
    for u in range(n_leaves):
        first[u] = u
        stop[u] = u + 1
    for j in range(children.shape[0]):
        first[n_leaves + j] = first[children[j, 0]]
        stop[n_leaves + j] = stop[children[j, 1]]


@kernel
def open_paths(children: IntMatrix, n_leaves: int, is_wanted: Bools, is_open: Bools) -> None:
    """Set `is_open` for the unions above each wanted node, and above each union that is open already. O(n)."""
    for j in range(children.shape[0]):
        for turn in range(2):
            u = children[j, turn]
            if is_wanted[u] or (u >= n_leaves and is_open[u - n_leaves]):
                is_open[j] = True


@kernel
def find_limits(tree: MeanTree, linkage: AnyLinkage, nodes: LongInts, limit: Floats) -> None:
    """Fill `limit` with the height of the parent of each of `nodes`, minus a bound on its rounding error. O(m)."""
    for i in range(nodes.size):
        u = np.int64(nodes[i])
        v = np.int64(sibling(tree, u))
        error = distance_factor(linkage, tree, u, v) * sq_dist_error(tree.mean, u, v)
        limit[i] = tree.height[tree.parent[u]] - error


@inline
def find_below(linkage, tree, search, a, start):
    """The partner of query `a` in a blocking pair below `start`, or NULL, and ζ."""
    limit = tree.height[tree.parent[a]]
    if is_leaf(start):
        return np.int64(NULL), limit
    tree.state["root"][0] = start
    if search.state["reach"][0] == EVERYWHERE:
        return exhaust_means(linkage, tree, search, a, limit, np.int64(NULL), np.int64(UNLIMITED))
    return descend_means(linkage, tree, search, a, limit, np.int64(NULL), usual_width(search))


@kernel
def find_partners(
    tree: MeanTree,
    search: Search,
    linkage: AnyLinkage,
    queries: Ints,
    twins: LongInts,
    starts: LongInts,
    partner: Ints,
    value: Floats,
) -> None:
    """For each of `queries`, fill in its partner in a blocking pair below ``starts[i]``, or NULL, and ζ.

    A query is a leaf outside the tree with the statistics of a node of another part. Its parent, also outside, has the
    height of the parent of that node. ``twins[i]`` is the node of the tree that is the same cluster, or NULL. Leaves
    that a query visits go on its list of neighbours. O(width · depth · m) each.
    """
    root = tree.state["root"][0]
    for i in range(queries.size):
        a, twin = np.int64(queries[i]), np.int64(twins[i])
        forget_near(search, a, np.int64(0))
        parent = tree.parent[twin]
        if twin != NULL:
            tree.parent[twin] = NULL  # a node without a parent is in no blocking pair
        partner[i], value[i] = find_below(linkage, tree, search, a, np.int64(starts[i]))
        if twin != NULL:
            tree.parent[twin] = parent
    tree.state["root"][0] = root


@inline
def may_contain_partner(linkage, tree, search, a, u):
    """Whether there may be a partner of `a` in the subtree that stub `u` stands for."""
    if not tree.height[u] > tree.height[a]:
        return False
    distance = np.sqrt(sq_dist(tree.mean, a, u)) - tree.radius[u]
    limit = tree.height[tree.parent[a]]
    return distance <= 0.0 or least_value(linkage, tree, a, distance, search.lightest[0]) <= limit


@kernel
def choose_stubs(
    tree: MeanTree, search: Search, linkage: AnyLinkage, queries: Ints, owner: LongInts, own: int, stubs: IntMatrix
) -> None:
    """Fill each row of `stubs` with leaves of other owners that may contain a partner of a query, then NULL.

    ``owner[row]`` is the owner of a leaf. The leaves are those that the query visited, the nearest first; if searches
    are exhaustive, all of them. O(N_NEAR m) per query, or O(n m).
    """
    is_exact = search.state["reach"][0] == EVERYWHERE
    for i in range(queries.size):
        a = np.int64(queries[i])
        count = 0
        for k in range(tree.state["leaf_top"][0] if is_exact else search.near.shape[1]):
            u = np.int64(2 * k if is_exact else search.near[a >> 1, k])
            if u == NULL or count == stubs.shape[1]:
                break
            if owner[u >> 1] != own and may_contain_partner(linkage, tree, search, a, u):
                stubs[i, count] = u
                count += 1
        for k in range(count, stubs.shape[1]):
            stubs[i, k] = NULL

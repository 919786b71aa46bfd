"""The search through neighbours for a node in a blocking pair with a given one, in either kind of tree."""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import NULL, MeanTree, PairTree
from evertree.kernels.compile import choose, inline, step
from evertree.kernels.pairwise.values import value_below
from evertree.kernels.shared.check import is_blocking
from evertree.kernels.shared.linkage_values import linkage_value, value_of_sq
from evertree.kernels.shared.neighbours import begin_search
from evertree.kernels.shared.topology import hangs, is_leaf
from evertree.kernels.statistics.sketches import least_sq_dist

#: Members of a cluster whose neighbours are followed.
N_MEMBERS = 4


@inline
def some_member(tree, a, number):
    """A leaf below `a`: usually a different one for each number."""
    u = np.int64(a)
    bits = 12345 + 1103515245 * number
    while not is_leaf(u):
        bits = (bits * 1103515245 + 12345) & 0x7FFFFFFF
        u = np.int64(tree.left[u] if bits & 0x40000000 else tree.right[u])
    return u


def _value_of_means(linkage, tree, a, c, floor):
    if value_of_sq(linkage, tree, a, c, least_sq_dist(tree, a, c)) >= floor:
        return floor
    return linkage_value(linkage, tree, a, c)


#: ζ(a, c) if it is below `floor`, otherwise a value from `floor` up to it.
value_up_to = choose("tree", {MeanTree: _value_of_means, PairTree: value_below})


@inline
def no_pieces(search):
    """For `climb`: the tree is not in pieces."""
    return search.stack[:0]


@step
def climb(linkage, tree, search, a, limit, piece):
    """Follow the neighbours of some members of `a`, and test those of their ancestors that coexist with `a`.

    If it is known of each node in which piece of the tree it is, those in the piece of `a` are not followed. Returns
    the one with the smallest ζ, NULL if none was found below `limit`, and ζ.
    """
    stamp = begin_search(search)
    best, smallest = np.int64(NULL), limit
    root, height_a, parent_a = tree.state["root"][0], tree.height[a], tree.parent[a]
    for number in range(1 if is_leaf(a) else N_MEMBERS):
        row = some_member(tree, a, number) >> 1
        for k in range(search.near.shape[1]):
            u = np.int64(search.near[row, k])
            if u == NULL or not hangs(tree, u) or (piece.size > 0 and piece[u] == piece[a]):
                continue
            while u != root and search.seen[u] != stamp and tree.height[u] < smallest:
                search.seen[u] = stamp
                p = np.int64(tree.parent[u])
                if p == parent_a:
                    break
                if tree.height[p] > height_a:
                    floor = min(smallest, tree.height[p])
                    value = value_up_to(linkage, tree, a, u, floor)
                    if value < floor and is_blocking(linkage, tree, linkage.tolerance, a, u, value):
                        best, smallest = u, value
                u = p
    return best, smallest

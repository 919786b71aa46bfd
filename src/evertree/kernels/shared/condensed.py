"""Condensed trees: clusters of at least so many points, when points leave them, and the most stable among them.

On the way down from the root, a merge of two large clusters is a split into two; at any other merge, points of what is
too small leave, and the cluster goes on. The heights are those at which that happens; the density λ is one over the
height. These are the definitions of HDBSCAN (Campello, Moulavi, Zimek and Sander, 2015), for any tree with heights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evertree.kernels.columns import NULL, Tree
from evertree.kernels.compile import inline, kernel
from evertree.kernels.shared.topology import is_leaf
from evertree.kernels.signatures import Bools, Floats, Ints, described

#: Two stabilities are equal if they differ by less, relative to that of the larger cluster: rounding does not choose.
TIE = 1e-9


@described
class Condensed(NamedTuple):
    """The columns of a condensed tree: of its clusters, parents first, and of its points, in postorder."""

    top: Ints  # (room for the clusters,) the highest node of a cluster; 0 is the cluster of all points
    parent: Ints  # (room for the clusters,) the cluster that it split off, NULL for the first
    born: Floats  # (room for the clusters,) the height at which it did, infinite for the first
    died: Floats  # (room for the clusters,) the height at which it split itself, or at which its last points left
    stability: Floats  # (room for the clusters,) Σ over its points of λ when they leave it less λ when it was born
    left: Ints  # (n_points,) the cluster that a point left, the smallest that it was in
    left_at: Floats  # (n_points,) the height at which it did


@inline
def density(height):
    """λ: infinite for equal points."""
    return 1.0 / float(height) if height > 0.0 else np.inf


@inline
def gain(density_now, density_then, count):
    """What points that leave now add to a stability; nothing if the cluster was born at an infinite density."""
    return (density_now - density_then) * count if density_then < np.inf else 0.0


@inline
def leave(columns, c, height, first, stop):
    """Let a range of points leave cluster `c`."""
    for i in range(first, stop):
        columns.left[i] = c
        columns.left_at[i] = height


@kernel
def condense(tree: Tree, height: Floats, first: Ints, stop: Ints, fewest: int, columns: Condensed) -> int:
    """Fill the columns of the condensed tree with clusters of `fewest` points or more; return how many there are. O(n).

    `height` is monotone, by node; the leaves below node u are ``first[u]`` to ``stop[u]`` in postorder. Clusters are
    numbered level by level, of two siblings that with the older point first. A cluster of a single point, which there
    is only if `fewest` is 1, loses it at height 0.
    """
    columns.top[0], columns.parent[0], columns.born[0] = tree.state["root"][0], NULL, np.inf
    count, c = 1, 0
    while c < count:
        u, then, mass = columns.top[c], density(columns.born[c]), 0.0
        while True:
            if is_leaf(u):
                columns.died[c] = 0.0
                mass += gain(np.inf, then, 1)
                leave(columns, c, 0.0, first[u], stop[u])
                break
            a, b = tree.left[u], tree.right[u]
            if tree.birth[a] > tree.birth[b]:
                a, b = b, a
            n_a, n_b, now = stop[a] - first[a], stop[b] - first[b], density(height[u])
            columns.died[c] = height[u]
            if n_a >= fewest and n_b >= fewest:
                mass += gain(now, then, n_a + n_b)
                for child in (a, b):
                    columns.top[count], columns.parent[count], columns.born[count] = child, c, height[u]
                    count += 1
                break
            for child, size in ((a, n_a), (b, n_b)):
                if size < fewest:
                    mass += gain(now, then, size)
                    leave(columns, c, height[u], first[child], stop[child])
            if n_a < fewest and n_b < fewest:
                break
            u = a if n_a >= fewest else b
        columns.stability[c] = mass
        c += 1
    return count


@kernel
def select_stable(
    parent: Ints, stability: Floats, start: int, below: Floats, is_selected: Bools, is_inside: Bools
) -> None:
    """Select, from cluster `start` on, disjoint clusters whose stabilities have the largest sum: the excess of mass.

    A tie goes to the larger cluster. `below`, at first zeros, becomes the largest sum below each cluster, and
    `stability` the larger one of its own and that. `is_inside` says which clusters are inside a selected one. O(number
    of clusters).
    """
    for c in range(parent.size - 1, start - 1, -1):
        is_selected[c] = not below[c] > stability[c] * (1.0 + TIE)
        if not is_selected[c]:
            stability[c] = below[c]
        if c > 0:
            below[parent[c]] = float(below[parent[c]]) + float(stability[c])
    for c in range(start, parent.size):
        p = parent[c]
        is_inside[c] = p >= start and (is_inside[p] or is_selected[p])
        if is_inside[c]:
            is_selected[c] = False


@kernel
def merge_below(
    parent: Ints, born: Floats, epsilon: float, may_be_one: int, goal: Ints, is_selected: Bools, is_merged: Bools
) -> None:
    """Replace each selected cluster that was born below the height `epsilon` by the lowest above it born above that.

    If there is none, by the highest above it but the root, or by the root if all points `may_be_one` cluster. Fills
    `is_merged`, at first False, with what is selected then, and `goal` with what would replace each cluster. O(number
    of clusters).
    """
    for c in range(1, parent.size):
        p = parent[c]
        if p == 0:
            goal[c] = 0 if may_be_one else c
        else:
            goal[c] = p if born[p] > epsilon else goal[p]
        if is_selected[c]:
            is_merged[goal[c] if born[c] < epsilon else c] = True


@kernel
def find_owners(parent: Ints, is_selected: Bools, owner: Ints) -> None:
    """Fill `owner` with the smallest selected cluster that contains each cluster; NULL if there is none."""
    for c in range(parent.size):
        owner[c] = c if is_selected[c] else owner[parent[c]] if c > 0 else NULL


@kernel
def find_lowest(parent: Ints, lowest: Floats) -> None:
    """Lower ``lowest[c]`` of each cluster to the lowest of those below it."""
    for c in range(parent.size - 1, 0, -1):
        lowest[parent[c]] = min(lowest[parent[c]], lowest[c])

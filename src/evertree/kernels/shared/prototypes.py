"""The point that represents a cluster: its center, its medoid, or the point nearest to its mean.

A tie goes to the oldest point.
"""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import BLOCK, MeanTree, PairTree
from evertree.kernels.compile import kernel
from evertree.kernels.pairwise.pairs import collect_rows, copy_rows, evaluate, radius_around
from evertree.kernels.pairwise.radius import center_of, just_above
from evertree.kernels.shared.topology import is_leaf
from evertree.kernels.signatures import AnyLinkage, Floats, Ints, LinkageWithCenters, LinkageWithRecurrence
from evertree.kernels.statistics.means import sq_dist, sq_dist_error


@kernel
def find_nearest_to_mean(tree: MeanTree, linkage: AnyLinkage, nodes: Ints, rows: Ints, found: Ints) -> None:
    """Fill ``found[t]`` with the leaf below ``nodes[t]`` that is nearest to its mean. O(m) per leaf below each."""
    for t in range(nodes.size):
        count = collect_rows(tree, nodes[t], rows)
        least = np.inf
        for r in range(count):
            least = min(least, sq_dist(tree.mean, 2 * rows[r], nodes[t]))
        best = -1
        for r in range(count):
            leaf = 2 * rows[r]
            sq = sq_dist(tree.mean, leaf, nodes[t])
            is_least = sq <= least + linkage.tolerance * least or sq - least <= sq_dist_error(tree.mean, leaf, nodes[t])
            if is_least and (best < 0 or tree.birth[leaf] < tree.birth[best]):
                best = leaf
        found[t] = best


@kernel
def find_centers(tree: PairTree, linkage: LinkageWithCenters, nodes: Ints, found: Ints) -> None:
    """Fill ``found[t]`` with the leaf around which the covering radius of ``nodes[t]`` is reached."""
    pairs = tree.pairs
    for t in range(nodes.size):
        u = nodes[t]
        if is_leaf(u):
            found[t] = u
            continue
        best = center_of(tree, u)
        enough = just_above(tree.height[u] * (1.0 + linkage.tolerance))
        rows = pairs.rows[: collect_rows(tree, u, pairs.rows)]
        others = pairs.others[: rows.size]
        copy_rows(rows, others)
        for r in rows:
            leaf = 2 * r
            if tree.birth[leaf] < tree.birth[best]:
                radius, where = radius_around(pairs, r, others, enough)
                if radius < enough:
                    best = leaf
                else:
                    others[where // 2], others[where] = others[where], others[where // 2]
        found[t] = best


@kernel
def find_medoids(tree: PairTree, linkage: LinkageWithRecurrence, nodes: Ints, total: Floats, medoid: Ints) -> None:
    """Fill ``medoid[u]`` for each of `nodes`, a subtree children first, with the leaf of least total dissimilarity.

    `total`, zeros by row, becomes the weighted sum of dissimilarities to the members of the largest node done so far. A
    pair is evaluated once, at the node where it meets. O(n² m).
    """
    pairs = tree.pairs
    for u in nodes:
        if is_leaf(u):
            medoid[u] = u
            continue
        n_left = collect_rows(tree, tree.left[u], pairs.rows)
        count = n_left + collect_rows(tree, tree.right[u], pairs.rows[n_left:])
        for r in range(n_left):
            i = pairs.rows[r]
            for t in range(n_left, count, BLOCK):
                some = pairs.rows[t : min(t + BLOCK, count)]
                evaluate(pairs, i, some, pairs.block)
                for s in range(some.size):
                    total[i] += tree.size[2 * some[s]] * pairs.block[s]
                    total[some[s]] += tree.size[2 * i] * pairs.block[s]
        least = np.inf
        for r in range(count):
            least = min(least, total[pairs.rows[r]])
        best = -1
        for r in range(count):
            leaf = 2 * pairs.rows[r]
            is_least = total[pairs.rows[r]] <= least + linkage.tolerance * least
            if is_least and (best < 0 or tree.birth[leaf] < tree.birth[best]):
                best = leaf
        medoid[u] = best

"""How far points stand apart: collusive displacement and height jump, the largest on the path to the root.

On that path a cluster that contains the point, at first the point alone, joins others at a node. *Displacement* is how
many times larger the others are: the measure of robust random cut forests, "collusive" because a whole cluster may
stand apart. *Jump* is the rise in height from the cluster to the node, times how often its size doubles there. Equal
points count as one: at a node of height 0, nothing stands apart.
"""

from __future__ import annotations

import math

import numpy as np

from evertree.kernels.columns import NULL, MeanTree, Tree
from evertree.kernels.compile import inline, inline_sum, kernel
from evertree.kernels.shared.linkage_values import height_of, is_first, value_to_point
from evertree.kernels.shared.topology import is_leaf, sibling
from evertree.kernels.signatures import AnyLinkage, DataMatrix, Floats, Ints

# The measures.
DISPLACEMENT, JUMP = 0, 1

LOG2_E = 1.0 / math.log(2.0)


@inline_sum
def sq_dists_to_point(mean, a, b, points, k):
    """Squared Euclidean distances between the means of `a` and of `b` and row `k` of `points`. O(m)."""
    to_a, to_b = 0.0, 0.0
    for j in range(mean.shape[1]):
        x = np.float64(points[k, j])
        difference = np.float64(mean[a, j]) - x
        to_a += difference * difference
        difference = np.float64(mean[b, j]) - x
        to_b += difference * difference
    return to_a, to_b


@inline
def standing_apart(measure, size, size_beside, height, height_above, enough):
    """How far a cluster stands apart from the one it joins in a node above, if that may exceed `enough`."""
    if not height_above > 0.0:
        return 0.0
    ratio = size_beside / size
    if measure == DISPLACEMENT:
        return ratio
    rise = height_above - height
    # A logarithm is as expensive as a distance, and few are needed: log(1 + x) is at most x.
    if not rise * ratio * LOG2_E > enough:
        return 0.0
    return rise * math.log1p(ratio) * LOG2_E


@kernel
def score_points(
    tree: MeanTree,
    linkage: AnyLinkage,
    points: DataMatrix,
    measure: int,
    score: Floats,
    node: Ints,
    beside: Ints,
    joined: Floats,
) -> None:
    """Score points of weight 1 that are not in the tree, each as if it alone were inserted.

    Each descends from the root to the nearer child (a tie goes to the older) as long as it would join that child before
    the child's sibling does. Fills, for each point, `score`; `node`, the one that stands apart together with the point,
    NULL for the point alone; `beside`, the node that it joins; and `joined`, ζ between the two. O(m) per node visited.
    """
    for k in range(points.shape[0]):
        best, best_node, best_beside, best_value = 0.0, np.int64(NULL), np.int64(NULL), 0.0
        u, other, value, value_above, height_above = np.int64(tree.state["root"][0]), np.int64(NULL), 0.0, 0.0, 0.0
        while True:
            is_place = True
            near, far, near_value = u, u, 0.0
            if not is_leaf(u):
                a, b = np.int64(tree.left[u]), np.int64(tree.right[u])
                sq_a, sq_b = sq_dists_to_point(tree.mean, a, b, points, k)
                z_a, z_b = value_to_point(linkage, tree, a, sq_a), value_to_point(linkage, tree, b, sq_b)
                near, far, near_value = (
                    (a, b, z_a) if is_first(tree, linkage.tolerance, a, z_a, b, z_b) else (b, a, z_b)
                )
                is_place = not near_value < tree.height[u] - linkage.tolerance * tree.height[u]
            if is_place and other == NULL:
                value = value_to_point(linkage, tree, u, sq_dists_to_point(tree.mean, u, u, points, k)[0])
            own = height_of(linkage, value if is_place else tree.height[u])
            if other != NULL:
                worth = standing_apart(measure, tree.size[u] + 1.0, tree.size[other], own, height_above, best)
                if worth > best:
                    best, best_node, best_beside, best_value = worth, u, other, value_above
            if is_place:
                worth = standing_apart(measure, 1.0, tree.size[u], 0.0, own, best)
                if worth > best:
                    best, best_node, best_beside, best_value = worth, np.int64(NULL), u, value
                break
            value_above, height_above, u, other, value = tree.height[u], own, near, far, near_value
        score[k], node[k], beside[k], joined[k] = best, best_node, best_beside, best_value


@kernel
def score_places(
    tree: Tree,
    linkage: AnyLinkage,
    place: Ints,
    value: Floats,
    measure: int,
    score: Floats,
    node: Ints,
    beside: Ints,
    joined: Floats,
) -> None:
    """As `score_points`, for points whose places, the nodes beside which they would be attached, and ζ are known."""
    for k in range(place.size):
        u = np.int64(place[k])
        height = height_of(linkage, value[k])
        best = standing_apart(measure, 1.0, tree.size[u], 0.0, height, 0.0)
        best_node, best_beside, best_value = np.int64(NULL), u if best > 0.0 else np.int64(NULL), value[k]
        above = np.int64(tree.parent[u])
        while above != NULL:
            height_above = height_of(linkage, tree.height[above])
            other = np.int64(sibling(tree, u))
            worth = standing_apart(measure, tree.size[u] + 1.0, tree.size[other], height, height_above, 0.0)
            if worth >= best and worth > 0.0:  # of equal ones the highest, as in the descent
                best, best_node, best_beside, best_value = worth, u, other, tree.height[above]
            u, above, height = above, np.int64(tree.parent[above]), height_above
        score[k], node[k], beside[k], joined[k] = best, best_node, best_beside, best_value


@kernel
def score_leaves(tree: Tree, linkage: AnyLinkage, nodes: Ints, measure: int, score: Floats, node: Ints) -> None:
    """Score the points of the tree: fill ``score[u]`` and ``node[u]``, the one above or at `u` that stands apart most.

    `nodes` are all nodes, children first. NULL if nothing stands apart. O(n).
    """
    score[tree.state["root"][0]] = 0.0
    node[tree.state["root"][0]] = NULL
    for t in range(nodes.size - 1, -1, -1):
        u = nodes[t]
        if is_leaf(u):
            continue
        height = height_of(linkage, tree.height[u])
        a, b = tree.left[u], tree.right[u]
        for child, other in ((a, b), (b, a)):
            below = height_of(linkage, tree.height[child])
            worth = standing_apart(measure, tree.size[child], tree.size[other], below, height, score[u])
            score[child], node[child] = (worth, child) if worth > score[u] else (score[u], node[u])

"""Sketches of means: lower bounds on distances in many columns that read few numbers.

The sketch of a mean is what it is along a few orthonormal directions, so no two sketches are farther from each other
than the means. It follows from the sketches of the parts as the mean does from theirs
(`eq.SufficientStatisticRecursion`). Each has a *slip*, which exceeds what rounding has done to it and to its mean. A
bound only says what need not be computed: the tree is the same without sketches.
"""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import MeanTree
from evertree.kernels.compile import inline, inline_sum, kernel, step
from evertree.kernels.signatures import Ints
from evertree.kernels.statistics.means import sq_dist

#: Exceeds what the few operations that make a bound can add to it.
ROUNDED_DOWN = 1.0 - 1e-9

#: A coordinate above this may not fit into a sketch: then its slip is infinite, and bounds nothing.
LARGEST = 1e30

#: Exceeds what is lost where a coordinate is too small for a sketch.
SMALLEST = 1e-40


@inline_sum
def along(mean, u, direction, j):
    """What the mean of `u` is along direction `j`. O(m)."""
    total = 0.0
    for k in range(mean.shape[1]):
        total += np.float64(mean[u, k]) * direction[j, k]
    return total


@inline_sum
def length_of(mean, u):
    """The length of the mean of `u`. O(m)."""
    total = 0.0
    for k in range(mean.shape[1]):
        x = np.float64(mean[u, k])
        total += x * x
    return np.sqrt(total)


@inline
def slip_of(length):
    """How far a sketch may be from a mean of this length, if only its own rounding counts."""
    if not length < LARGEST:
        return np.inf
    return 4.0 * np.float64(np.finfo(np.float32).eps) * length + SMALLEST


@step
def sketch_leaf(tree, u):
    """Write the sketch of leaf `u`, if there are sketches. O(m) for each direction."""
    direction = tree.sketch.direction
    if direction.shape[0] > 0:
        slip = slip_of(length_of(tree.mean, u))
        for j in range(direction.shape[0]):
            tree.sketch.value[u, j] = along(tree.mean, u, direction, j) if slip < np.inf else 0.0
        tree.sketch.slip[u] = slip


@inline_sum
def merge_values(value, u, a, b, share):
    """Write the sketch of a ∪ b, of which b is the given share, to row `u`."""
    for j in range(value.shape[1]):
        x = np.float64(value[a, j])
        value[u, j] = x + share * (np.float64(value[b, j]) - x)


@inline
def merge_sketches(tree, u, a, b, share, length, distance):
    """Write the sketch of u = a ∪ b, if there are sketches. Both it and its mean are rounded.

    ``length`` is that of the mean, and ``distance`` is between those of the parts.
    """
    sketch = tree.sketch
    if sketch.direction.shape[0] > 0:
        merge_values(sketch.value, u, a, b, share)
        rounding = 4.0 * np.float64(np.finfo(tree.mean.dtype).eps) * (length + distance)
        sketch.slip[u] = max(sketch.slip[a], sketch.slip[b]) + rounding + slip_of(length)


@inline
def copy_sketch(source, u, target, v):
    """Copy the sketch of node `u` of one tree to node `v` of another with the same directions."""
    if source.sketch.direction.shape[0] > 0:
        for j in range(source.sketch.value.shape[1]):
            target.sketch.value[v, j] = source.sketch.value[u, j]
        target.sketch.slip[v] = source.sketch.slip[u]


@inline
def least_sq_dist(tree, u, v):
    """A lower bound on `sq_dist` between the means of `u` and `v`; 0 without sketches, or if it says nothing."""
    sketch = tree.sketch
    if sketch.direction.shape[0] == 0:
        return 0.0
    distance = ROUNDED_DOWN * np.sqrt(sq_dist(sketch.value, u, v)) - sketch.slip[u] - sketch.slip[v]
    return ROUNDED_DOWN * distance * distance if distance > 0.0 else 0.0


@kernel
def sketch_all(tree: MeanTree, nodes: Ints) -> None:
    """Write the sketches of all leaves, also those that are not in the tree yet, and of inner `nodes`, children first.

    O(m) for each leaf and direction.
    """
    for row in range(tree.state["leaf_top"][0]):
        sketch_leaf(tree, np.int64(2 * row))
    for u in nodes:
        if u & 1:
            a, b = tree.left[u], tree.right[u]
            if tree.size[a] < tree.size[b]:
                a, b = b, a
            total = tree.size[a] + tree.size[b]
            share = tree.size[b] / total if total > 0.0 else 0.0  # inner nodes may be computed later
            merge_sketches(tree, u, a, b, share, length_of(tree.mean, u), np.sqrt(sq_dist(tree.mean, a, b)))

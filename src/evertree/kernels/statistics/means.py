"""Distances between means, and the mean of a union (`eq.SufficientStatisticRecursion`)."""

from __future__ import annotations

import numpy as np

from evertree.kernels.compile import inline_sum

#: How many units in the last place a mean may be off. All arithmetic is in float64, also on float32 data.
ULPS_OF_MEANS = 4.0


@inline_sum
def sq_dist(mean, u, v):
    """Squared Euclidean distance between the means of `u` and `v`. O(m); reads two rows."""
    total = 0.0
    for k in range(mean.shape[1]):
        difference = np.float64(mean[u, k]) - np.float64(mean[v, k])
        total += difference * difference
    return total


@inline_sum
def sq_dist_error(mean, u, v):
    """How far rounding may have moved `sq_dist`. O(m); reads two rows.

    A mean is exact to some units in the last place of each coordinate. If a difference d is off by δ, its square is off
    by up to 2 d δ + δ². A column in which both means are equal adds nothing, however large its values are.
    """
    ulps = ULPS_OF_MEANS * np.float64(np.finfo(mean.dtype).eps)
    total = 0.0
    for k in range(mean.shape[1]):
        x, y = np.float64(mean[u, k]), np.float64(mean[v, k])
        if x != y:
            delta = ulps * (abs(x) + abs(y))
            total += (2.0 * abs(x - y) + delta) * delta
    return total


@inline_sum
def merge_means(mean, u, a, b, share):
    """Write the mean of a ∪ b, of which b is the given share, to row `u`.

    Returns the squared distance between the means of a and b, and the squared length of the mean of u.

    In this form the mean of equal means is that mean to the last bit: duplicates stay duplicates.
    """
    total, sq_length = 0.0, 0.0
    for k in range(mean.shape[1]):
        difference = np.float64(mean[b, k]) - np.float64(mean[a, k])
        value = np.float64(mean[a, k]) + share * difference
        mean[u, k] = value
        total += difference * difference
        sq_length += value * value
    return total, sq_length

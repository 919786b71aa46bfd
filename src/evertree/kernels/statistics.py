"""Size, mean and variance of clusters (`eq.SufficientStatisticRecursion`)."""

from __future__ import annotations

from evertree.kernels.compile import inline, inline_sum, kernel
from evertree.kernels.topology import is_leaf


@inline_sum
def sq_dist(mean, u, v):
    """Squared Euclidean distance between the means of `u` and `v`. O(m); reads two rows."""
    total = 0.0
    for k in range(mean.shape[1]):
        difference = float(mean[u, k]) - float(mean[v, k])
        total += difference * difference
    return total


@inline_sum
def sq_norm(mean, u):
    """Squared length of the mean of `u`. O(m); reads one row."""
    total = 0.0
    for k in range(mean.shape[1]):
        total += float(mean[u, k]) * float(mean[u, k])
    return total


@inline_sum
def merge_means(mean, u, a, b, share):
    """Write the mean of a ∪ b, of which b is the given share, to row `u`; return the squared distance of their means.

    In this form the mean of equal means is that mean to the last bit: duplicates stay duplicates.
    """
    total = 0.0
    for k in range(mean.shape[1]):
        difference = float(mean[b, k]) - float(mean[a, k])
        mean[u, k] = float(mean[a, k]) + share * difference
        total += difference * difference
    return total


@inline
def merge_children(tree, u):
    """Compute row `u` of size, mean, variance and birth from the children of `u`. O(m)."""
    a, b = tree.left[u], tree.right[u]
    if tree.size[a] < tree.size[b]:  # from the heavier one it is a small step to the mean of both: the more exact way
        a, b = b, a
    size = tree.size[a] + tree.size[b]
    rest, share = tree.size[a] / size, tree.size[b] / size
    sq = merge_means(tree.mean, u, a, b, share)
    tree.size[u] = size
    tree.variance[u] = rest * tree.variance[a] + share * tree.variance[b] + rest * share * sq
    tree.birth[u] = min(tree.birth[a], tree.birth[b])


@kernel
def merge_all(tree, nodes):
    """Compute the statistics of the inner nodes among `nodes`, which come children first. O(n m)."""
    for u in nodes:
        if not is_leaf(u):
            merge_children(tree, u)

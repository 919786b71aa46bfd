"""Batch clustering (`tab.HAC`) by a chain of nearest neighbours.

The chain goes from a cluster to its nearest neighbour, then to the nearest neighbour of that, and so on, until two
clusters are reciprocal nearest neighbours: these are merged. With a reducible linkage (`def.ReducibleLinkage`) their
union is no nearer to any other cluster than one of the two was, so the rest of the chain is still valid; and the
merges, sorted by height, are those of `tab.HAC`. Fewer than 3 n searches for a nearest neighbour are made.

A cluster is named by its smallest point, its *slot*. Comparisons are exact. As the predecessor in the chain wins every
tie, each link is shorter than the one before it: so the chain is finite.

Matrices of linkage values are read and written above the diagonal only, which is twice as fast as keeping both halves:
writing down a column misses the cache.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertree.kernels.columns import NULL
from evertree.kernels.compile import inline, kernel
from evertree.kernels.shared.recurrence import linkage_of_union
from evertree.kernels.signatures import FloatMatrix, Floats, LinkageWithRecurrence, LongInts, LongMatrix


@inline
def get(z, a, b):
    """The value of a pair of slots. O(1)."""
    return z[a, b] if a < b else z[b, a]


@inline
def put(z, a, b, value):
    """Set the value of a pair of slots. O(1)."""
    if a < b:
        z[a, b] = value
    else:
        z[b, a] = value


@inline
def nearest(z, alive, n_alive, x, before):
    """The slot with the smallest value beside `x`; a tie goes to `before`, then to the smaller slot. O(n)."""
    best = before
    if best == NULL:
        best = alive[0] if alive[0] != x else alive[1]
    smallest = get(z, x, best)
    for k in range(n_alive):
        c = alive[k]
        if c != x:
            value = z[c, x] if c < x else z[x, c]  # `get` compiles to slower code here
            if value < smallest:
                best, smallest = c, value
    return best


@inline
def lengthen(search, clusters, chain, length, alive, n_alive):
    """Extend the chain by `search` until its last two are reciprocal nearest neighbours; return its length."""
    if length == 0:
        chain[0] = alive[0]
        length = 1
    before = chain[length - 2] if length > 1 else NULL
    found = search(clusters, alive, n_alive, chain[length - 1], before)
    while found != before:
        before = chain[length - 1]
        chain[length] = found
        length += 1
        found = search(clusters, alive, n_alive, found, before)
    return length


@inline
def bury(alive, n_alive, b):
    """Remove slot `b` from the first `n_alive` of `alive`, which stay sorted. O(n)."""
    k = n_alive - 1
    moved = alive[k]
    while moved != b:
        k -= 1
        moved, alive[k] = alive[k], moved


@inline
def unite(linkage, z, size, alive, n_alive, a, b):
    """Put the linkage of the union of `a` and `b` with every other cluster into slot `a` (`eq.Recurrence`). O(n).

    Rounding must not bring the union nearer to a cluster than both its parts were, or the chain could become a cycle.
    """
    z_ab = z[a, b]
    for k in range(n_alive):
        c = alive[k]
        if c != a and c != b:
            z_ac, z_bc = get(z, a, c), get(z, b, c)
            value = linkage_of_union(linkage, z_ac, z_bc, z_ab, size[a], size[b], size[c])
            put(z, a, c, max(value, min(z_ac, z_bc)))
    size[a] += size[b]


@kernel
def merge_by_recurrence(
    linkage: LinkageWithRecurrence,
    d: FloatMatrix,
    size: Floats,
    chain: LongInts,
    alive: LongInts,
    merges: LongMatrix,
    height: Floats,
) -> None:
    """Merge n points until one cluster is left (`tab.HAC`), for a linkage with a recurrence (`eq.Recurrence`). O(n²).

    ``d`` (n, n) holds ζ of every two points, no NaN; it is overwritten above the diagonal, and not read elsewhere.
    ``size`` (n,) holds the weights and is overwritten. ``chain`` and ``alive`` (n,) int64 are workspace.

    Fills ``merges`` (n - 1, 2) int64 with the two slots of each merge, the smaller first, and ``height`` (n - 1,) with
    their ζ. The order is that of the chain: a cluster comes after its parts, and is never lower than they are.
    """
    n = d.shape[0]
    for i in range(n):
        alive[i] = i
    length = 0
    for i in range(n - 1):
        length = lengthen(nearest, d, chain, length, alive, n - i) - 2
        a, b = min(chain[length], chain[length + 1]), max(chain[length], chain[length + 1])
        merges[i, 0], merges[i, 1] = a, b
        height[i] = d[a, b]
        unite(linkage, d, size, alive, n - i, a, b)
        bury(alive, n - i, b)


class Radii(NamedTuple):
    """State of clusters for minimax linkage."""

    farthest: NDArray[Any]  # (n, n) in row c, the distance of each point to the farthest member of cluster c
    bound: NDArray[Any]  # (n, n) lower bounds on the linkage of each pair of clusters, above the diagonal
    ring: NDArray[np.int64]  # (n,) the next member of the same cluster; after the last one comes the first


@inline
def radius(radii, a, b):
    """ζ(A, B) = min over p of max over q of d(p, q), both from A ∪ B (`eq.MinimaxLinkage`). O(|A| + |B|)."""
    smallest = math.inf
    for slot in (a, b):
        p = slot
        while True:
            smallest = min(smallest, max(radii.farthest[a, p], radii.farthest[b, p]))
            p = radii.ring[p]
            if p == slot:
                break
    return smallest


@inline
def precedes(c, best, before):
    """Whether `c` wins a tie with `best`."""
    return best != before and (c == before or c < best)


@inline
def nearest_by_radius(radii, alive, n_alive, x, before):
    """As `nearest`, for minimax linkage. O(n), and O(|X| + |C|) for each cluster C whose bound does not rule it out.

    What is computed becomes the bound, so it is not computed again before X or C changes.
    """
    best = nearest(radii.bound, alive, n_alive, x, before)
    smallest = radius(radii, x, best)
    if smallest == get(radii.bound, x, best):
        return best
    put(radii.bound, x, best, smallest)
    for k in range(n_alive):
        c = alive[k]
        if c != x:
            bound = radii.bound[c, x] if c < x else radii.bound[x, c]
            if bound < smallest or (bound == smallest and precedes(c, best, before)):
                value = radius(radii, x, c)
                put(radii.bound, x, c, value)
                if value < smallest or (value == smallest and precedes(c, best, before)):
                    best, smallest = c, value
    return best


@inline
def unite_radii(radii, alive, n_alive, a, b):
    """Put the union of `a` and `b` into slot `a`. O(n).

    A center of A ∪ B ∪ C is in A ∪ C or in B ∪ C, and must cover all of it: ζ(A ∪ B, C) ≥ min(ζ(A, C), ζ(B, C)). The
    bound compares without rounding, because every value is one of the given dissimilarities.
    """
    for k in range(n_alive):
        c = alive[k]
        if c != a and c != b:
            put(radii.bound, a, c, min(get(radii.bound, a, c), get(radii.bound, b, c)))
    for p in range(radii.ring.size):
        radii.farthest[a, p] = max(radii.farthest[a, p], radii.farthest[b, p])
    radii.ring[a], radii.ring[b] = radii.ring[b], radii.ring[a]  # makes one ring of two


@kernel
def merge_by_radius(
    d: FloatMatrix,
    farthest: FloatMatrix,
    bound: FloatMatrix,
    ring: LongInts,
    chain: LongInts,
    alive: LongInts,
    merges: LongMatrix,
    height: Floats,
) -> None:
    """Merge n points until one cluster is left (`tab.HAC`), for minimax linkage (`eq.MinimaxLinkage`).

    ``d`` (n, n) is symmetric with zeros on its diagonal and without NaN. ``farthest`` and ``bound`` (n, n), ``ring``,
    ``chain`` and ``alive`` (n,) int64 are workspace; ``bound`` may be ``d`` itself, whose upper half is then
    overwritten; otherwise ``d`` is kept. Fills ``merges`` and ``height`` as `merge_by_recurrence` does.

    O(n²), and O(|A| + |B|) for each value ζ(A, B) that is needed: O(n³) if all were, but few are.
    """
    n = d.shape[0]
    for i in range(n):
        for j in range(n):
            farthest[i, j] = d[i, j]
        for j in range(i + 1, n):
            bound[i, j] = d[i, j]
        alive[i] = ring[i] = i
    radii = Radii(farthest, bound, ring)
    length = 0
    for i in range(n - 1):
        length = lengthen(nearest_by_radius, radii, chain, length, alive, n - i) - 2
        a, b = min(chain[length], chain[length + 1]), max(chain[length], chain[length + 1])
        merges[i, 0], merges[i, 1] = a, b
        height[i] = bound[a, b]  # the search has made it exact
        unite_radii(radii, alive, n - i, a, b)
        bury(alive, n - i, b)


@inline
def find_top(top, p):
    """The point at the top of the cluster of `p`, with path compression. O(log n)."""
    while top[p] >= 0:
        if top[top[p]] >= 0:
            top[p] = top[top[p]]
        p = top[p]
    return p


@kernel
def label_merges(merges: LongMatrix, height: Floats, top: LongInts, Z: FloatMatrix) -> None:
    """Fill SciPy's `Z` (n - 1, 4) from merges that are sorted by height, parts first. O(n log n).

    ``merges`` (n - 1, 2) names each cluster by any of its points. ``top`` (n,) int64 is workspace: a point closer to
    the top of its cluster, or at the top -1 - k if the cluster has number k.
    """
    n = top.size
    for i in range(n):
        top[i] = -1 - i
    for i in range(n - 1):
        p, q = find_top(top, merges[i, 0]), find_top(top, merges[i, 1])
        first, second = -1 - max(top[p], top[q]), -1 - min(top[p], top[q])
        Z[i, 0], Z[i, 1], Z[i, 2] = first, second, height[i]
        Z[i, 3] = (Z[first - n, 3] if first >= n else 1.0) + (Z[second - n, 3] if second >= n else 1.0)
        top[q] = p
        top[p] = -1 - (n + i)

"""Batch clustering (`tab.HAC`) by a chain of nearest neighbours.

The chain goes from a cluster to its nearest neighbour, then to the nearest neighbour of that, and so on, until two
clusters are reciprocal nearest neighbours: these are merged. With a reducible linkage (`def.ReducibleLinkage`) their
union is no nearer to any other cluster than one of the two was, so the rest of the chain is still valid; and the
merges, sorted by height, are those of `tab.HAC`. Fewer than 3 n searches for a nearest neighbour are made.

A cluster is named by its smallest point, its *slot*. Comparisons are exact. As the predecessor in the chain wins every
tie, each link is shorter than the one before it: so the chain is finite.

Linkage values are condensed as in SciPy, which is twice as fast as keeping both halves of a matrix: writing down a
column misses the cache.

Kernels make some merges a call, so that Ctrl-C takes effect soon, and continue where they stopped.
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


class Values(NamedTuple):
    """Values of pairs of slots."""

    condensed: NDArray[Any]  # (n (n - 1) / 2,) in SciPy's order
    n: int


@inline
def index(n, a, b):
    """Where the value of slots a < b is."""
    return a * (2 * n - a - 3) // 2 + b - 1


@inline
def get(z, a, b):
    """The value of a pair of slots. O(1)."""
    return z.condensed[index(z.n, min(a, b), max(a, b))]


@inline
def put(z, a, b, value):
    """Set the value of a pair of slots. O(1)."""
    z.condensed[index(z.n, min(a, b), max(a, b))] = value


@inline
def nearest(z, alive, n_alive, x, before):
    """The slot with the smallest value beside `x`; a tie goes to `before`, then to the smaller slot. O(n)."""
    best = before
    if best == NULL:
        best = alive[0] if alive[0] != x else alive[1]
    smallest = get(z, x, best)
    k = 0
    while k < n_alive and alive[k] < x:
        value = z.condensed[index(z.n, alive[k], x)]
        if value < smallest:
            best, smallest = alive[k], value
        k += 1
    row = index(z.n, x, 0)
    for j in range(k, n_alive):
        if alive[j] != x:
            value = z.condensed[row + alive[j]]
            if value < smallest:
                best, smallest = alive[j], value
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
    z_ab = get(z, a, b)
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
    d: Floats,
    size: Floats,
    chain: LongInts,
    alive: LongInts,
    merges: LongMatrix,
    height: Floats,
    done: LongInts,
    stop: int,
) -> None:
    """Merge n points until one cluster is left (`tab.HAC`), for a linkage with a recurrence (`eq.Recurrence`). O(n²).

    ``d`` holds ζ of every two points, condensed, no NaN; it is overwritten. ``size`` (n,) holds the weights and is
    overwritten. ``chain`` and ``alive`` (n,) are workspace; ``done`` (2,) has the number of merges made and the length
    of the chain, both 0 at first. Returns once `stop` merges are made.

    Fills ``merges`` (n - 1, 2) with the two slots of each merge, the smaller first, and ``height`` (n - 1,) with their
    ζ. The order is that of the chain: a cluster comes after its parts, and is never lower than they are.
    """
    n = size.size
    z = Values(d, n)
    if done[0] == 0:
        for i in range(n):
            alive[i] = i
    for i in range(done[0], min(stop, n - 1)):
        length = lengthen(nearest, z, chain, done[1], alive, n - i) - 2
        a, b = min(chain[length], chain[length + 1]), max(chain[length], chain[length + 1])
        merges[i, 0], merges[i, 1] = a, b
        height[i] = get(z, a, b)
        unite(linkage, z, size, alive, n - i, a, b)
        bury(alive, n - i, b)
        done[0], done[1] = i + 1, length


class Radii(NamedTuple):
    """State of clusters for minimax linkage."""

    farthest: NDArray[Any]  # (n, n) in row c, the distance of each point to the farthest member of cluster c
    bound: Values  # lower bounds on the linkage of each pair of clusters
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
            bound = get(radii.bound, x, c)
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


@inline
def begin_radii(radii, alive):
    """Let each point be a cluster, at the distances in ``bound``. O(n²)."""
    n = radii.ring.size
    for i in range(n):
        alive[i] = radii.ring[i] = i
        radii.farthest[i, i] = 0.0
        for j in range(i + 1, n):
            radii.farthest[i, j] = radii.farthest[j, i] = get(radii.bound, i, j)


@kernel
def merge_by_radius(
    d: Floats,
    farthest: FloatMatrix,
    ring: LongInts,
    chain: LongInts,
    alive: LongInts,
    merges: LongMatrix,
    height: Floats,
    done: LongInts,
    stop: int,
) -> None:
    """Merge n points until one cluster is left (`tab.HAC`), for minimax linkage (`eq.MinimaxLinkage`).

    ``farthest`` (n, n) and ``ring`` (n,) are workspace; everything else as for `merge_by_recurrence`.

    O(n²), and O(|A| + |B|) for each value ζ(A, B) that is needed: O(n³) if all were, but few are.
    """
    n = ring.size
    radii = Radii(farthest, Values(d, n), ring)
    if done[0] == 0:
        begin_radii(radii, alive)
    for i in range(done[0], min(stop, n - 1)):
        length = lengthen(nearest_by_radius, radii, chain, done[1], alive, n - i) - 2
        a, b = min(chain[length], chain[length + 1]), max(chain[length], chain[length + 1])
        merges[i, 0], merges[i, 1] = a, b
        height[i] = get(radii.bound, a, b)  # the search has made it exact
        unite_radii(radii, alive, n - i, a, b)
        bury(alive, n - i, b)
        done[0], done[1] = i + 1, length


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

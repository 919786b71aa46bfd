"""Replays of the merges of a tree in order of height, to see whether each was a minimum when made (`tab.HAC`).

Clusters that exist at the same time must not be closer than the height at which the first of the two is merged. So each
cluster is compared, when it is formed, with all that exist. These replays do not rely on searches and bounds.
"""

from __future__ import annotations

from evertree.kernels.columns import NULL, MeanTree
from evertree.kernels.compile import inline, kernel
from evertree.kernels.shared.check import merges_above
from evertree.kernels.shared.linkage_values import linkage_value
from evertree.kernels.shared.nn_chain import Radii, Values, begin_radii, bury, get, radius, unite, unite_radii
from evertree.kernels.shared.topology import is_leaf
from evertree.kernels.signatures import (
    AnyLinkage,
    FloatMatrix,
    Floats,
    Ints,
    LinkageWithCenters,
    LinkageWithRecurrence,
    LongInts,
    LongMatrix,
)


@kernel
def replay_means(tree: MeanTree, linkage: AnyLinkage, nodes: Ints, alive: Ints, place: Ints) -> tuple[int, int]:
    """Replay the merges of a `MeanTree`. O(n² m), with no more memory than the tree.

    `nodes` are the leaves and then the inner nodes in order of height; `alive` (n,) and `place` (capacity,) are
    workspace. Returns two clusters closer than the height at which the first of them merges, or NULL and NULL.
    """
    count = 0
    for u in nodes:
        if not is_leaf(u):
            for turn in range(2):
                child = tree.left[u] if turn == 0 else tree.right[u]
                count -= 1
                alive[place[child]] = alive[count]
                place[alive[count]] = place[child]
        for k in range(count):
            c = alive[k]
            value = linkage_value(linkage, tree, u, c)
            if not value < min(tree.height[tree.parent[u]], tree.height[tree.parent[c]]):
                continue
            u_waits = merges_above(linkage, tree, linkage.tolerance, u, value, u, c)
            if u_waits and merges_above(linkage, tree, linkage.tolerance, c, value, u, c):
                return u, c
        alive[count] = u
        place[u] = count
        count += 1
    return NULL, NULL


@inline
def is_too_close(linkage, value, death_a, death_c):
    """Whether two clusters are closer than the height at which the first of them merges."""
    first = min(death_a, death_c)
    return value < first - linkage.tolerance * first


@inline
def find_too_close(linkage, value_of, clusters, alive, n_alive, a, dies):
    """A slot among the first `n_alive` of `alive` that is too close to `a` by `value_of`; NULL for none."""
    for k in range(n_alive):
        c = alive[k]
        if c != a and is_too_close(linkage, value_of(clusters, a, c), dies[a], dies[c]):
            return c
    return NULL


@kernel
def replay_by_recurrence(
    linkage: LinkageWithRecurrence, d: Floats, size: Floats, alive: LongInts, merges: LongMatrix, death: Floats
) -> tuple[int, int, int]:
    """Replay merges of slots, as in `evertree.kernels.shared.nn_chain`, by `eq.Recurrence`. O(n²).

    ``d``, ``size`` and ``alive`` as in `merge_by_recurrence`. ``death`` (2 n - 1,) holds the height at
    which each point, and then each of `merges`, merges with another. Returns the number of merges made when two
    clusters were found to be too close, -1 if none were, and their slots.
    """
    n = size.size
    z = Values(d, n)
    dies = death[:n]
    for i in range(n):
        alive[i] = i
        c = find_too_close(linkage, get, z, alive, i, i, dies)
        if c != NULL:
            return 0, i, c
    for t in range(n - 1):
        a, b = merges[t, 0], merges[t, 1]
        unite(linkage, z, size, alive, n - t, a, b)
        bury(alive, n - t, b)
        dies[a] = death[n + t]
        c = find_too_close(linkage, get, z, alive, n - t - 1, a, dies)
        if c != NULL:
            return t + 1, a, c
    return -1, 0, 0


@kernel
def replay_by_radius(
    linkage: LinkageWithCenters,
    d: Floats,
    farthest: FloatMatrix,
    ring: LongInts,
    alive: LongInts,
    merges: LongMatrix,
    death: Floats,
) -> tuple[int, int, int]:
    """As `replay_by_recurrence`, for minimax linkage. O(n²), and O(|A| + |B|) for each pair of clusters."""
    n = ring.size
    radii = Radii(farthest, Values(d, n), ring)
    dies = death[:n]
    begin_radii(radii, alive)
    for i in range(n):
        c = find_too_close(linkage, get, radii.bound, alive, i, i, dies)
        if c != NULL:
            return 0, i, c
    for t in range(n - 1):
        a, b = merges[t, 0], merges[t, 1]
        unite_radii(radii, alive, n - t, a, b)
        bury(alive, n - t, b)
        dies[a] = death[n + t]
        c = find_too_close(linkage, radius, radii, alive, n - t - 1, a, dies)
        if c != NULL:
            return t + 1, a, c
    return -1, 0, 0

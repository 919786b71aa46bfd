"""Batch clustering (`tab.HAC`) in rounds, for linkages that follow from means.

In each round every cluster knows its nearest other cluster, and all pairs that are each other's nearest are merged.
With a reducible linkage (`def.ReducibleLinkage`) no union is nearer to a cluster than its parts were: so these merges,
sorted by height, are those of `tab.HAC`, and only clusters whose nearest was merged look again.

A cluster is named by its oldest point, its *slot*. A value is the same to the last bit whichever of the two asks. Among
equal values the pair whose slots have the smallest exclusive or comes first: the first pair of all is reciprocal, so
each round merges some; and points on a grid pair off at once, where otherwise the oldest might be nearest to all.

In many columns `screening` finds the nearest. In few, clusters that are near each other lie in the same *tile*: TILE of
them, column by column, with a ball around their means. A tile, or a group of tiles, is skipped if its ball is too far
away to matter.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from evertree.kernels.columns import NULL
from evertree.kernels.compile import inline, inline_sum, kernel
from evertree.kernels.shared.linkage_values import factor, offset
from evertree.kernels.signatures import Bytes, FloatCube, FloatMatrix, Floats, Ints, Linked, LongMatrix, described
from evertree.kernels.statistics.means import merge_means

#: Clusters in a tile, and tiles in a group.
TILE = 32
GROUP_OF_TILES = 16

#: Columns that are added between two looks at whether a tile can still matter.
COLUMNS_AT_ONCE = 16

#: Exceeds what a bound can gain by rounding.
ROUNDED_DOWN = 1.0 - 1e-9

#: Squares below this may become zero when they are multiplied: then they tie.
SMALLEST = 1e-200


# What is known of the nearest other cluster of a cluster.
KNOWN, STALE, MERGED, GONE = 0, 1, 2, 3

#: A linkage that follows from means.
LinkageOfMeans = Annotated[Any, Linked(lambda linkage: linkage.statistics is not None)]


@described
class Clusters(NamedTuple):
    """All clusters, by slot."""

    mean: FloatMatrix
    size: Floats
    variance: Floats
    nearest: Ints  # the slot of the nearest other one
    value: Floats  # and ζ


@described
class Tiles(NamedTuple):
    """The clusters of a round, tile by tile; the last tile may have fewer than TILE."""

    mean: FloatCube  # (n_tiles, m, TILE) their means
    center: FloatMatrix  # (n_tiles, m) the center of a ball around the means
    radius: Floats  # (n_tiles,) its radius
    least: FloatMatrix  # (n_tiles, 2) the smallest size and the smallest variance
    group_center: FloatMatrix  # the same three for groups of tiles
    group_radius: Floats
    group_least: FloatMatrix


def new_tiles(n_clusters: int, n_columns: int) -> Tiles:
    """Room for so many clusters."""
    n_tiles = -(-n_clusters // TILE)
    n_groups = -(-n_tiles // GROUP_OF_TILES)
    balls = [np.empty(shape) for n in (n_tiles, n_groups) for shape in ((n, n_columns), (n,), (n, 2))]
    return Tiles(np.empty((n_tiles, n_columns, TILE)), *balls)


@inline
def value_of(linkage, size_a, variance_a, size_b, variance_b, sq):
    """ζ, the same to the last bit if a and b change places."""
    large, small = max(size_a, size_b), min(size_a, size_b)
    return offset(linkage, variance_a, variance_b) + factor(linkage, large, small) * sq


@inline
def comes_before(a, b, c):
    """Whether the pair (a, b) comes before (a, c) where their values are equal."""
    return (a ^ b) < (a ^ c)


@inline
def rounding(m):
    """Exceeds what a distance in `m` columns, as a share of it, can lose or gain by rounding."""
    return (m + 16) * 2.3e-16


@inline_sum
def sq_between(x, y):
    """The squared distance between two vectors. O(m)."""
    total = 0.0
    for j in range(x.size):
        total += (x[j] - y[j]) * (x[j] - y[j])
    return total


@kernel
def pack(mean: FloatMatrix, size: Floats, variance: Floats, live: Ints, tiles: Tiles) -> None:
    """Fill the tiles with the clusters in the slots `live`, in this order. O(n m)."""
    m = mean.shape[1]
    n_tiles = tiles.center.shape[0]
    for t in range(n_tiles):
        first, stop = t * TILE, min((t + 1) * TILE, live.size)
        tiles.least[t, 0] = np.inf
        tiles.least[t, 1] = np.inf
        for j in range(m):
            total = 0.0
            for k in range(first, stop):
                x = mean[live[k], j]
                tiles.mean[t, j, k - first] = x
                total += x
            for k in range(stop, first + TILE):
                tiles.mean[t, j, k - first] = 0.0
            tiles.center[t, j] = total / (stop - first)
        farthest = 0.0
        for k in range(first, stop):
            u = live[k]
            farthest = max(farthest, sq_between(mean[u], tiles.center[t]))
            tiles.least[t, 0] = min(tiles.least[t, 0], size[u])
            tiles.least[t, 1] = min(tiles.least[t, 1], variance[u])
        tiles.radius[t] = np.sqrt(farthest) * (1.0 + rounding(m))
    for g in range(tiles.group_center.shape[0]):
        pack_group(tiles, g, g * GROUP_OF_TILES, min((g + 1) * GROUP_OF_TILES, n_tiles))


@inline
def pack_group(tiles, g, first, stop):
    """A ball around the balls of some tiles. O(m) each."""
    m = tiles.center.shape[1]
    tiles.group_least[g, 0] = np.inf
    tiles.group_least[g, 1] = np.inf
    tiles.group_radius[g] = 0.0
    for j in range(m):
        total = 0.0
        for t in range(first, stop):
            total += tiles.center[t, j]
        tiles.group_center[g, j] = total / (stop - first)
    for t in range(first, stop):
        distance = np.sqrt(sq_between(tiles.group_center[g], tiles.center[t])) * (1.0 + rounding(m))
        tiles.group_radius[g] = max(tiles.group_radius[g], (distance + tiles.radius[t]) * (1.0 + rounding(m)))
        tiles.group_least[g, 0] = min(tiles.group_least[g, 0], tiles.least[t, 0])
        tiles.group_least[g, 1] = min(tiles.group_least[g, 1], tiles.least[t, 1])


@inline
def least_beyond(linkage, x, size_a, variance_a, center, radius, least, t):
    """A lower bound on ζ between a cluster with mean `x` and all clusters in ball `t`. O(m).

    A small difference of two large distances is off by the rounding of these.
    """
    distance = np.sqrt(sq_between(x, center[t]))
    gap = max(distance - radius[t] - rounding(x.size) * (distance + radius[t]), 0.0)
    return ROUNDED_DOWN * value_of(linkage, size_a, variance_a, least[t, 0], least[t, 1], gap * gap)


@inline
def sum_of_four(e, f, g, h):
    """The sum of four squares, in the order in which all distances are summed."""
    return (e * e + f * f) + (g * g + h * h)


@inline
def add_columns(x, tile, start, stop, sums):
    """Add the squared differences in some columns between `x` and each cluster of a tile. O(TILE) a column."""
    j = start
    while j + 4 <= stop:
        a, b, c, d = tile[j], tile[j + 1], tile[j + 2], tile[j + 3]
        for k in range(TILE):
            sums[k] += sum_of_four(x[j] - a[k], x[j + 1] - b[k], x[j + 2] - c[k], x[j + 3] - d[k])
        j += 4
    while j < stop:
        a = tile[j]
        for k in range(TILE):
            e = x[j] - a[k]
            sums[k] += e * e
        j += 1


@inline
def has_any_within(sums, limit):
    """Whether one of TILE numbers is at most `limit`. The compiler vectorises a sum of integers."""
    count = 0
    for k in range(TILE):
        count += np.int64(sums[k] <= limit)
    return count > 0


@inline
def farthest_sq(linkage, size_a, variance_a, least, t, best):
    """The squared distance beyond which no cluster in tile `t` is at ζ = `best` or less."""
    large, small = max(size_a, least[t, 0]), min(size_a, least[t, 0])
    rest = best / ROUNDED_DOWN - offset(linkage, variance_a, least[t, 1])
    return rest / (ROUNDED_DOWN * factor(linkage, large, small)) + SMALLEST


@kernel
def find_nearest(
    linkage: LinkageOfMeans,
    mean: FloatMatrix,
    size: Floats,
    variance: Floats,
    live: Ints,
    tiles: Tiles,
    queries: Ints,
    start: int,
    stop: int,
    sums: Floats,
    nearest: Ints,
    value: Floats,
) -> None:
    """For the clusters at some positions in `live`, find the nearest other one. O(n m) each, less what is skipped.

    Fills ``nearest`` and ``value``, by slot, for the positions ``queries[start:stop]``. ``sums`` (TILE,) is workspace.
    """
    n_tiles, n_groups, m = tiles.center.shape[0], tiles.group_center.shape[0], mean.shape[1]
    for q in range(start, stop):
        a = np.int64(live[queries[q]])
        x, size_a, variance_a = mean[a], size[a], variance[a]
        home = queries[q] // TILE
        best, who = np.inf, np.int64(NULL)
        # From its own group outwards, and there from its own tile.
        home_group = home // GROUP_OF_TILES
        for turn in range(2 * n_groups):
            g = home_group + (turn + 1) // 2 * (1 if turn % 2 else -1)
            if g < 0 or g >= n_groups:
                continue
            bound = least_beyond(
                linkage, x, size_a, variance_a, tiles.group_center, tiles.group_radius, tiles.group_least, g
            )
            if bound > best:
                continue
            first, last = g * GROUP_OF_TILES, min((g + 1) * GROUP_OF_TILES, n_tiles)
            for s in range(-1 if g == home_group else 0, last - first):
                t = home if s < 0 else first + s
                if s >= 0 and t == home:
                    continue
                if s >= 0:
                    bound = least_beyond(linkage, x, size_a, variance_a, tiles.center, tiles.radius, tiles.least, t)
                    if bound > best:
                        continue
                for k in range(TILE):
                    sums[k] = 0.0
                limit = farthest_sq(linkage, size_a, variance_a, tiles.least, t, best)
                j = 0
                while j < m and has_any_within(sums, limit):
                    add_columns(x, tiles.mean[t], j, min(j + COLUMNS_AT_ONCE, m), sums)
                    j += COLUMNS_AT_ONCE
                if not has_any_within(sums, limit):
                    continue
                for k in range(t * TILE, min((t + 1) * TILE, live.size)):
                    c = np.int64(live[k])
                    if c != a and sums[k - t * TILE] <= limit:
                        found = value_of(linkage, size_a, variance_a, size[c], variance[c], sums[k - t * TILE])
                        if who == NULL or found < best or (found == best and comes_before(a, c, who)):
                            best, who = found, c
        nearest[a] = who
        value[a] = best


@kernel
def merge_reciprocal(
    mean: FloatMatrix,
    size: Floats,
    variance: Floats,
    height: Floats,
    live: Ints,
    nearest: Ints,
    value: Floats,
    status: Bytes,
    merges: LongMatrix,
    heights: Floats,
    done: int,
) -> int:
    """Merge all clusters that are each other's nearest into the older slot; return the number of merges after `done`.

    ``height`` and ``status`` are by slot: the height of a cluster, and whether its nearest is known, STALE or GONE. The
    value of a stale one is a lower bound on what it will be. Fills ``merges`` and ``heights``. O(n), and O(m) a merge.
    """
    for a in live:
        b = nearest[a]
        if status[a] == KNOWN and status[b] == KNOWN and a < b and nearest[b] == a:
            if size[a] < size[b]:
                heavy, light = b, a
            else:
                heavy, light = a, b
            both = size[a] + size[b]
            rest, share = size[heavy] / both, size[light] / both
            sq, _ = merge_means(mean, a, heavy, light, share)
            variance[a] = rest * variance[heavy] + share * variance[light] + rest * share * sq
            size[a] = both
            height[a] = max(value[a], height[a], height[b])  # rounding must not make it lower than its parts
            merges[done, 0], merges[done, 1], heights[done] = a, b, height[a]
            done += 1
            status[a], status[b] = MERGED, GONE
    for a in live:
        if status[a] == KNOWN and status[nearest[a]] >= MERGED:
            status[a] = STALE
    for a in live:
        if status[a] == MERGED:
            status[a] = STALE
    return done


@kernel
def tell_nearest(live: Ints, queries: Ints, nearest: Ints, value: Floats, status: Bytes) -> None:
    """Let each cluster that was found as the nearest of another know it, if that is nearer than what it knows.

    Rounding, and ties, can make a new cluster nearer than those that one knew. O(1) each.
    """
    for q in queries:
        status[live[q]] = KNOWN
    for q in queries:
        a = np.int64(live[q])
        b = np.int64(nearest[a])
        is_tied = value[a] == value[b] and status[b] == KNOWN and comes_before(b, a, np.int64(nearest[b]))
        if value[a] < value[b] or is_tied:
            nearest[b] = a
            value[b] = value[a]
            status[b] = KNOWN

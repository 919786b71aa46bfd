"""Nearest clusters by matrix products: products screen all pairs, and the few that may be nearest are computed.

‖x − y‖² is ‖x‖² + ‖y‖² − 2 ⟨x, y⟩, and inner products of many vectors with many others are what processors do fastest.
The result is off by rounding, more so the farther the points are from the origin, so it only gives a lower bound on ζ.
The values that decide are those of `reciprocal`, to the last bit: so it does not matter in which order or precision
products are summed, or how the work is divided.

Each cluster has a *list* of a few others, with lower bounds on ζ, and a *limit*: to all clusters that are not listed, ζ
is at least that. A new cluster is compared with all, and enters the lists of those to which it may be near. So lists
stay true, whatever merges, and most clusters whose nearest was merged find the next one in their list.

Clusters lie in *places*, row by row. They are named by ids, as in a linkage matrix: a new cluster has the next one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evertree.kernels.columns import NULL
from evertree.kernels.compile import inline, inline_sum, kernel, short_step, step
from evertree.kernels.shared.linkage_values import factor, offset
from evertree.kernels.signatures import Bytes, Data, DataMatrix, Floats, IntMatrix, Ints, described
from evertree.kernels.statistics.reciprocal import (
    Clusters,
    LinkageOfMeans,
    comes_before,
    rounding,
    sum_of_four,
    value_of,
)

#: Clusters in a list.
LENGTH = 16

#: Columns of a block that are screened at once.
AT_ONCE = 32

#: Rows of a matrix that stay in the fastest memory of a processor.
NEAR_AT_HAND = 32


@described
class Places(NamedTuple):
    """The clusters of a round as they are screened, in float32 or float64; where one is gone, `sq` is infinite."""

    point: DataMatrix  # (n_places, m) means, from a center near all of them, and scaled to at most 1 in each column
    sq: Data  # (n_places,) the squared length of the point, less what rounding can do to products with it
    size: Data
    variance: Data  # scaled, and less rounding
    limit: Data  # (n_places,) scaled: clusters that are not listed are not nearer
    hears: Data  # (n_places,) the limit of those who are to hear of new clusters; −∞ for the new ones themselves
    slot: Ints


@described
class Lists(NamedTuple):
    """For each slot, a list of clusters that are near, in the order of their bounds; some may be gone since."""

    id: IntMatrix  # (n_slots, LENGTH) who they are
    bound: DataMatrix  # (n_slots, LENGTH) lower bounds on ζ, scaled
    length: Ints  # (n_slots,)
    slot_of: Ints  # (n_ids,) the slot of a cluster; NULL if it is gone
    id_of: Ints  # (n_slots,) the cluster in a slot
    place_of: Ints  # (n_slots,) and its place


def new_places(n_clusters: int, m: int, dtype: str) -> Places:
    """Room for so many clusters, an even number of places; a spare one is as if its cluster were gone."""
    n = n_clusters + n_clusters % 2
    fill = np.inf, 1.0, 0.0, -np.inf, -np.inf
    sq, size, variance, limit, hears = (np.full(n, x, dtype) for x in fill)
    return Places(np.zeros((n, m), dtype), sq, size, variance, limit, hears, np.zeros(n, np.int32))


def new_lists(n_slots: int, dtype: str) -> Lists:
    """Lists of all clusters that there will be."""
    ids, bounds = np.zeros((n_slots, LENGTH), np.int32), np.zeros((n_slots, LENGTH), dtype)
    length, id_of, place_of = (np.zeros(n_slots, np.int32) for _ in range(3))
    return Lists(ids, bounds, length, np.full(2 * n_slots, NULL, np.int32), id_of, place_of)


@kernel
def put(clusters: Clusters, center: Floats, scale: float, slots: Ints, places: Places, lists: Lists) -> None:
    """Put the clusters in some slots in their places, with empty lists. O(m) each.

    A length is lowered by more than all that follows can be off: γₘ for a product of vectors with m columns, and some
    units more for its parts and the sum of all. As 2 ‖x‖ ‖y‖ ≤ ‖x‖² + ‖y‖², both have their share of that.
    """
    m = center.size
    kind = places.sq.dtype
    unit = np.float64(np.finfo(kind).eps) / 2.0
    rest = 1.0 - (1.02 * (m + 40) * unit + 4.0 * rounding(m))
    underflow = np.float64(np.finfo(kind).tiny) ** 0.6
    for a in slots:
        p = lists.place_of[a]
        sq = 0.0
        for j in range(m):
            x = (clusters.mean[a, j] - center[j]) * scale
            places.point[p, j] = x
            sq += x * x
        places.sq[p] = rest * sq - underflow
        places.size[p] = clusters.size[a]
        places.variance[p] = clusters.variance[a] * scale * scale * (1.0 - 32.0 * unit - 4.0 * rounding(m))
        places.limit[p] = np.inf
        places.hears[p] = np.inf
        places.slot[p] = a
        lists.length[a] = 0


@inline
def screened(linkage, places, a, c, product):
    """A lower bound on ζ between the clusters in two places, from −2 ⟨x, y⟩. It is scaled."""
    sq = places.sq[a] + places.sq[c] + product
    return (
        offset(linkage, places.variance[a], places.variance[c]) + factor(linkage, places.size[a], places.size[c]) * sq
    )


@inline_sum
def screen_some(linkage, places, a, first, products, limit, hears, bounds):
    """Fill in bounds for AT_ONCE places from `first` on, and count those that are below a limit of either side."""
    sq, size, variance = places.sq[a], places.size[a], places.variance[a]
    sqs, sizes = places.sq[first : first + AT_ONCE], places.size[first : first + AT_ONCE]
    variances, ears = places.variance[first : first + AT_ONCE], hears[first : first + AT_ONCE]
    count = 0
    for k in range(AT_ONCE):
        bound = offset(linkage, variance, variances[k]) + factor(linkage, size, sizes[k]) * (sq + sqs[k] + products[k])
        bounds[k] = bound
        count += np.int64(bounds[k] < max(limit, ears[k]))
    return count


@inline_sum
def products_of(x, i, y, k):
    """The inner products of four rows of a matrix from row `i` on with two of another from row `k` on. O(m)."""
    a, b, c, d, e, f = x[i], x[i + 1], x[i + 2], x[i + 3], y[k], y[k + 1]
    ae = be = ce = de = af = bf = cf = df = e[0] - e[0]
    for j in range(x.shape[1]):
        ae += a[j] * e[j]
        be += b[j] * e[j]
        ce += c[j] * e[j]
        de += d[j] * e[j]
        af += a[j] * f[j]
        bf += b[j] * f[j]
        cf += c[j] * f[j]
        df += d[j] * f[j]
    return ae, be, ce, de, af, bf, cf, df


@kernel
def multiply(x: DataMatrix, y: DataMatrix, start: int, stop: int, block: DataMatrix) -> None:
    """Fill ``block[:, start:stop]`` with the inner products of all rows of `x` with those of `y`. O(m) an entry.

    `x` has a multiple of four rows, and ``stop - start`` is even. One thread of OpenBLAS takes as long for many rows,
    and twice as long for a few, as in most rounds. Several of its threads wait for each other: long, if others work.
    """
    for first in range(start, stop, NEAR_AT_HAND):
        for i in range(0, x.shape[0], 4):
            a, b, c, d = block[i], block[i + 1], block[i + 2], block[i + 3]
            for k in range(first, min(first + NEAR_AT_HAND, stop), 2):
                a[k], b[k], c[k], d[k], a[k + 1], b[k + 1], c[k + 1], d[k + 1] = products_of(x, i, y, k)


@kernel
def screen(
    linkage: LinkageOfMeans,
    block: DataMatrix,
    rows: Ints,
    first: int,
    only_after: int,
    hears: Data,
    places: Places,
    lists: Lists,
    bounds: Data,
) -> None:
    """Enter in lists what a block of products says. O(1) an entry.

    ``block`` (n_rows, n_columns) has −2 ⟨x, y⟩ of the clusters in the places ``rows`` with those in the places from
    ``first`` on; with ``only_after``, only pairs are looked at in which the second place comes after the first. Others
    enter the list of a row if they are below its limit, and it enters the lists of those that hear of it: ``hears`` is
    that of the places, or −∞. ``bounds`` (AT_ONCE,) is workspace.
    """
    n_columns = block.shape[1]
    for i in range(rows.size):
        a = np.int64(rows[i])
        slot, limit, products = places.slot[a], places.limit[a], block[i]
        k = 0
        if only_after and a >= first:
            k = int(a + 1 - first)
        while k < n_columns:
            count = min(AT_ONCE, n_columns - k)
            if count == AT_ONCE:
                some = products[k : k + AT_ONCE]
                is_near = screen_some(linkage, places, a, first + k, some, limit, hears, bounds) > 0
            else:
                is_near = True
                for t in range(count):
                    bounds[t] = screened(linkage, places, a, first + k + t, products[k + t])
            if is_near:
                for t in range(count):
                    c = first + k + t
                    if c != a and bounds[t] < limit:
                        limit = enter(lists, slot, limit, lists.id_of[places.slot[c]], bounds[t])
                    if c != a and bounds[t] < hears[c]:
                        if not only_after and lists.length[places.slot[c]] == LENGTH:
                            drop_gone(lists, places.slot[c])
                        hears[c] = enter(lists, places.slot[c], hears[c], lists.id_of[slot], bounds[t])
                        places.limit[c] = hears[c]
            k += count
        places.limit[a] = limit
        if only_after:
            hears[a] = limit


@step
def enter(lists, slot, limit, one, bound):
    """Enter a cluster in a list, and return the limit of the list after that: the last one is dropped if it is full."""
    n = lists.length[slot]
    ids, bounds = lists.id[slot], lists.bound[slot]
    if n == LENGTH:
        n -= 1
        if bounds[n] <= bound:
            return bound
        limit = bounds[n]
    lists.length[slot] = n + 1
    while n > 0 and bounds[n - 1] > bound:
        ids[n], bounds[n] = ids[n - 1], bounds[n - 1]
        n -= 1
    ids[n], bounds[n] = one, bound
    return limit


@short_step
def drop_gone(lists, slot):
    """Take clusters that are gone from a list, and return its length. O(LENGTH)."""
    n = 0
    for k in range(lists.length[slot]):
        if lists.slot_of[lists.id[slot, k]] != NULL:
            lists.id[slot, n], lists.bound[slot, n] = lists.id[slot, k], lists.bound[slot, k]
            n += 1
    lists.length[slot] = n
    return n


@step
def exact_value(linkage, clusters, a, b):
    """ζ, bit for bit that of `reciprocal.find_nearest`. O(m)."""
    x, y = clusters.mean[a], clusters.mean[b]
    total, j = 0.0, 0
    while j + 4 <= x.size:
        total += sum_of_four(x[j] - y[j], x[j + 1] - y[j + 1], x[j + 2] - y[j + 2], x[j + 3] - y[j + 3])
        j += 4
    while j < x.size:
        e = x[j] - y[j]
        total += e * e
        j += 1
    return value_of(linkage, clusters.size[a], clusters.variance[a], clusters.size[b], clusters.variance[b], total)


@kernel
def look_up(
    linkage: LinkageOfMeans, clusters: Clusters, slots: Ints, unit: float, places: Places, lists: Lists, found: Bytes
) -> None:
    """Find the nearest clusters of some in their lists. O(m) for each that may be the nearest.

    Sets ``nearest`` and ``value`` of the clusters, and ``found[i]`` to whether no other cluster can be as near. What is
    scaled, times ``unit``, is a value.
    """
    for i in range(slots.size):
        a = np.int64(slots[i])
        n = drop_gone(lists, a)
        best, who = np.inf, np.int64(NULL)
        for k in range(n):
            if who != NULL and np.float64(lists.bound[a, k]) * unit > best:
                break
            c = np.int64(lists.slot_of[lists.id[a, k]])
            value = exact_value(linkage, clusters, a, c)
            if who == NULL or value < best or (value == best and comes_before(a, c, who)):
                best, who = value, c
        clusters.nearest[a], clusters.value[a] = who, best
        found[i] = who != NULL and best < np.float64(places.limit[lists.place_of[a]]) * unit


@kernel
def settle(
    linkage: LinkageOfMeans, clusters: Clusters, block: DataMatrix, rows: Ints, first: int, unit: float, places: Places
) -> int:
    """Compute all pairs of a block that may be as near as the nearest so far; return how many. O(1) an entry, and O(m).

    ``block``, ``rows`` and ``first`` are those of `screen`.
    """
    count = 0
    for i in range(rows.size):
        p = np.int64(rows[i])
        a = np.int64(places.slot[p])
        best, who = clusters.value[a], np.int64(clusters.nearest[a])
        for k in range(block.shape[1]):
            bound = np.float64(screened(linkage, places, p, first + k, block[i, k])) * unit
            if bound <= best and first + k != p:
                c = np.int64(places.slot[first + k])
                value = exact_value(linkage, clusters, a, c)
                count += 1
                if value < best or (value == best and comes_before(a, c, who)):
                    best, who = value, c
        clusters.nearest[a], clusters.value[a] = who, best
    return count

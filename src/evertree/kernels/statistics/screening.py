"""Nearest clusters by matrix products: products screen all pairs, and the few that may be nearest are computed.

‖x − y‖² is ‖x‖² + ‖y‖² − 2 ⟨x, y⟩, and inner products of many vectors with many others are what processors do fastest.
The result is off by rounding, more so the farther the points are from the origin, so it only gives a lower bound on ζ.
The values that decide are those of `reciprocal`, to the last bit: so it does not matter in which order or precision
products are summed, or how the work is divided.

Each cluster has a *list* of a few others, with lower bounds on ζ, and a *limit*: to all clusters that are not listed, ζ
is at least that. When two clusters merge, no union is nearer to a third than one of them was: so wherever one is listed
the union stands for it, and where none is, the union is beyond the limit, too. The list and the limit of the union
follow from theirs by the recurrence of Lance and Williams (`eq.Recurrence`). So lists stay true, and only a cluster
whose list has nothing below its limit any more is compared with all again.

Clusters lie in *places*, row by row. They are named by ids, as in a linkage matrix: a new cluster has the next one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from evertree.kernels.columns import NULL
from evertree.kernels.compile import inline, inline_sum, kernel, short_step, step, wide_kernel
from evertree.kernels.shared.linkage_values import factor, offset
from evertree.kernels.shared.recurrence import linkage_of_union
from evertree.kernels.signatures import (
    Bytes,
    Data,
    DataMatrix,
    Floats,
    IntMatrix,
    Ints,
    LongMatrix,
    address_of,
    described,
)
from evertree.kernels.statistics.reciprocal import (
    Clusters,
    LinkageOfMeans,
    comes_before,
    rounding,
    sum_of_four,
    value_of,
)

#: Clusters in a list.
LENGTH = 32

#: Columns of a block that are screened at once.
AT_ONCE = 32

#: Exceeds the size of any cluster.
LARGEST_SIZE = 1e300

#: Rows of two matrices that are multiplied together. More sums do not fit into the registers of most processors.
TALL, WIDE = 4, 3

#: Rows of a matrix that stay in the faster memory of a processor.
NEAR_AT_HAND = 36

#: Bytes of a line of a cache, and of the longest vector.
LINE = 64


@described
class Places(NamedTuple):
    """The clusters of a round as they are screened, in float32 or float64; where one is gone, `sq` is infinite."""

    point: DataMatrix  # (n_places, m or more) means, from a center near all, and scaled to at most 1 in each column
    sq: Data  # (n_places,) the squared length of the point, less what rounding can do to products with it
    size: Data
    variance: Data  # scaled, and less rounding
    limit: Data  # (n_places,) scaled: clusters that are not listed are not nearer
    slot: Ints


@described
class Lists(NamedTuple):
    """For each slot, a list of clusters that are near, in the order of their bounds; some may be in others now."""

    id: IntMatrix  # (n_slots, LENGTH) who they are
    bound: DataMatrix  # (n_slots, LENGTH) lower bounds on ζ, scaled
    length: Ints  # (n_slots,)
    into: Ints  # (n_ids,) for a cluster that has merged, one that has its points; otherwise NULL
    slot_of: Ints  # (n_ids,) the slot of a cluster that is there
    id_of: Ints  # (n_slots,) the cluster in a slot
    place_of: Ints  # (n_slots,) and its place


def new_places(n_clusters: int, m: int, dtype: str) -> Places:
    """Room for so many clusters, a multiple of WIDE; in a spare place it is as if the cluster were gone."""
    n = -(-n_clusters // WIDE) * WIDE
    sq, size, variance, limit = (np.full(n, x, dtype) for x in (np.inf, 1.0, 0.0, -np.inf))
    return Places(new_rows(n, m, dtype), sq, size, variance, limit, np.zeros(n, np.int32))


def new_rows(n: int, m: int, dtype: DTypeLike) -> NDArray[Any]:
    """Zeros in `m` columns, and as many more as fill lines: `multiply` loads whole ones."""
    per_line = LINE // np.dtype(dtype).itemsize
    n_columns = -(-m // per_line) * per_line
    room = np.zeros(n * n_columns + per_line, dtype)
    first = -address_of(room) % LINE // room.itemsize
    return room[first : first + n * n_columns].reshape(n, n_columns)


def new_lists(n_slots: int, dtype: str) -> Lists:
    """Lists of all clusters that there will be."""
    ids, bounds = np.zeros((n_slots, LENGTH), np.int32), np.zeros((n_slots, LENGTH), dtype)
    length, id_of, place_of = (np.zeros(n_slots, np.int32) for _ in range(3))
    return Lists(
        ids, bounds, length, np.full(2 * n_slots, NULL, np.int32), np.zeros(2 * n_slots, np.int32), id_of, place_of
    )


@inline
def put_one(clusters, center, scale, a, places, lists):
    """Put the cluster in slot `a` in its place. O(m).

    A length is lowered by more than all that follows can be off: γₘ for a product of vectors with m columns, and some
    units more for its parts and the sum of all. As 2 ‖x‖ ‖y‖ ≤ ‖x‖² + ‖y‖², both have their share of that.
    """
    m = center.size
    kind = places.sq.dtype
    unit = np.float64(np.finfo(kind).eps) / 2.0
    rest = 1.0 - (1.02 * (m + 40) * unit + 4.0 * rounding(m))
    underflow = np.float64(np.finfo(kind).tiny) ** 0.6
    p = lists.place_of[a]
    sq = 0.0
    for j in range(m):
        x = (clusters.mean[a, j] - center[j]) * scale
        places.point[p, j] = x
        sq += x * x
    places.sq[p] = rest * sq - underflow
    places.size[p] = clusters.size[a]
    places.variance[p] = clusters.variance[a] * scale * scale * (1.0 - 32.0 * unit - 4.0 * rounding(m))
    places.slot[p] = a


@kernel
def put(clusters: Clusters, center: Floats, scale: float, slots: Ints, places: Places, lists: Lists) -> None:
    """Put the clusters in some slots in their places, with empty lists. O(m) each."""
    for a in slots:
        put_one(clusters, center, scale, a, places, lists)
        places.limit[lists.place_of[a]] = np.inf
        lists.length[a] = 0


@inline
def screened(linkage, places, a, c, product):
    """A lower bound on ζ between the clusters in two places, from −2 ⟨x, y⟩. It is scaled."""
    sq = places.sq[a] + places.sq[c] + product
    return (
        offset(linkage, places.variance[a], places.variance[c]) + factor(linkage, places.size[a], places.size[c]) * sq
    )


@inline_sum
def screen_some(linkage, places, a, first, products, limit, ears, bounds):
    """Fill in bounds for AT_ONCE places from `first` on, and count those that are below a limit of either side."""
    sq, size, variance = places.sq[a], places.size[a], places.variance[a]
    sqs, sizes = places.sq[first : first + AT_ONCE], places.size[first : first + AT_ONCE]
    variances = places.variance[first : first + AT_ONCE]
    count = 0
    for k in range(AT_ONCE):
        bound = offset(linkage, variance, variances[k]) + factor(linkage, size, sizes[k]) * (sq + sqs[k] + products[k])
        bounds[k] = bound
        count += np.int64(bounds[k] < max(limit, ears[k]))
    return count


@inline_sum
def products_of(x, i, y, k):
    """The inner products of TALL rows of a matrix from row `i` on with WIDE of another from row `k` on. O(m).

    Of 16 registers, twelve have sums, three a part of `e`, `f` and `g`, and one that of a row of `x`: in this order.
    """
    a, b, c, d = x[i], x[i + 1], x[i + 2], x[i + 3]
    e, f, g = y[k], y[k + 1], y[k + 2]
    ae = af = ag = be = bf = bg = ce = cf = cg = de = df = dg = e[0] - e[0]
    for j in range(x.shape[1]):
        ae += a[j] * e[j]
        af += a[j] * f[j]
        ag += a[j] * g[j]
        be += b[j] * e[j]
        bf += b[j] * f[j]
        bg += b[j] * g[j]
        ce += c[j] * e[j]
        cf += c[j] * f[j]
        cg += c[j] * g[j]
        de += d[j] * e[j]
        df += d[j] * f[j]
        dg += d[j] * g[j]
    return ae, af, ag, be, bf, bg, ce, cf, cg, de, df, dg


@wide_kernel
def multiply(x: DataMatrix, y: DataMatrix, start: int, stop: int, block: DataMatrix) -> None:
    """Fill ``block[:, start:stop]`` with the inner products of all rows of `x` with those of `y`. O(m) an entry.

    The number of rows of `x` is a multiple of TALL, and ``stop - start`` of WIDE. It is fastest for `new_rows`. One
    thread of OpenBLAS is about as fast from a hundred columns on, but takes several times as long for a few rows, as in
    most rounds. Several of its threads wait for each other: long, if others work.
    """
    for first in range(start, stop, NEAR_AT_HAND):
        for i in range(0, x.shape[0], TALL):
            a, b, c, d = block[i], block[i + 1], block[i + 2], block[i + 3]
            for k in range(first, min(first + NEAR_AT_HAND, stop), WIDE):
                ae, af, ag, be, bf, bg, ce, cf, cg, de, df, dg = products_of(x, i, y, k)
                a[k], a[k + 1], a[k + 2] = ae, af, ag
                b[k], b[k + 1], b[k + 2] = be, bf, bg
                c[k], c[k + 1], c[k + 2] = ce, cf, cg
                d[k], d[k + 1], d[k + 2] = de, df, dg


@kernel
def screen(
    linkage: LinkageOfMeans,
    block: DataMatrix,
    rows: Ints,
    first: int,
    is_mutual: int,
    ears: Data,
    places: Places,
    lists: Lists,
    bounds: Data,
) -> None:
    """Enter in lists what a block of products says. O(1) an entry.

    ``block`` (n_rows, n_columns) has −2 ⟨x, y⟩ of the clusters in the places ``rows`` with those in the places from
    ``first`` on. Those below the limit of a row enter its list. If it is mutual, only pairs are looked at in which the
    second place comes after the first, and both enter each other's lists: ``ears`` is the column of limits then, and
    otherwise −∞. ``bounds`` (AT_ONCE,) is workspace.
    """
    n_columns = block.shape[1]
    for i in range(rows.size):
        a = np.int64(rows[i])
        slot, limit, products = places.slot[a], places.limit[a], block[i]
        k = 0
        if is_mutual and a >= first:
            k = int(a + 1 - first)
        while k < n_columns:
            count = min(AT_ONCE, n_columns - k)
            if count == AT_ONCE:
                some, ears_there = products[k : k + AT_ONCE], ears[first + k : first + k + AT_ONCE]
                is_near = screen_some(linkage, places, a, first + k, some, limit, ears_there, bounds) > 0
            else:
                is_near = True
                for t in range(count):
                    bounds[t] = screened(linkage, places, a, first + k + t, products[k + t])
            if is_near:
                for t in range(count):
                    c = first + k + t
                    if c != a and bounds[t] < limit:
                        limit = enter(lists, slot, limit, lists.id_of[places.slot[c]], bounds[t])
                    if c != a and bounds[t] < ears[c]:
                        places.limit[c] = enter(lists, places.slot[c], ears[c], lists.id_of[slot], bounds[t])
            k += count
        places.limit[a] = limit


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


@inline
def current(lists, one):
    """The cluster that has the points of cluster `one` now. O(1), amortised."""
    top = one
    while lists.into[top] != NULL:
        top = lists.into[top]
    while one != top:
        above = lists.into[one]
        lists.into[one] = top
        one = above
    return top


@short_step
def renew(lists, slot):
    """Let unions stand in a list for their parts, each once, and return its length. O(LENGTH²)."""
    n = 0
    for k in range(lists.length[slot]):
        one = current(lists, lists.id[slot, k])
        is_first = one != lists.id_of[slot]
        for t in range(n):
            is_first = is_first and lists.id[slot, t] != one
        if is_first:
            lists.id[slot, n], lists.bound[slot, n] = one, lists.bound[slot, k]
            n += 1
    lists.length[slot] = n
    return n


@inline
def noise_of(linkage, m, size, extent):
    """How far rounding may move ζ, scaled, between a cluster and any other. O(1).

    Also that of unions with the other, as their means are rounded: the farther they are from 0, the more. ``extent``
    has the largest length, scaled, of a cluster from the center, and that of the center from 0.
    """
    reach, off = extent[0], rounding(m) * extent[1]
    return 16.0 * factor(linkage, LARGEST_SIZE, size) * (rounding(m) * reach * reach + off * reach + off * off)


@inline
def rounded_down(bound, terms, m, unit, noise):
    """Less than a bound that is a sum of a few terms, after rounding."""
    return bound - (8.0 * unit + 4.0 * rounding(m)) * terms - noise if bound < np.inf else bound


@inline
def bound_to_union(linkage, x, y, z, size_a, size_b, sizes):
    """A lower bound on ζ(A ∪ B, C) from those on ζ(A, C) and ζ(B, C), and ζ(A, B), for a C of any size. O(1).

    By the recurrence; what it gives rises or falls with the size of C, whose least and largest size are known.
    """
    return min(
        linkage_of_union(linkage, x, y, z, size_a, size_b, sizes[0]),
        linkage_of_union(linkage, x, y, z, size_a, size_b, sizes[1]),
    )


@inline
def bound_in(lists, slot, one, limit):
    """The bound on ζ between the cluster in a slot, whose list has been renewed, and another."""
    for k in range(lists.length[slot]):
        if lists.id[slot, k] == one:
            return np.float64(lists.bound[slot, k])
    return limit


@kernel
def unite(
    linkage: LinkageOfMeans,
    clusters: Clusters,
    center: Floats,
    scale: float,
    merges: LongMatrix,
    heights: Floats,
    first_id: int,
    sizes: Floats,
    extent: Floats,
    places: Places,
    lists: Lists,
    ids: Ints,
    bounds: Floats,
) -> None:
    """Note that pairs of slots were merged into the first of each, at these heights. O(m + LENGTH²) each.

    The unions have the ids from ``first_id`` on. ``sizes`` are the least and the largest that a cluster may have,
    ``extent`` is as in `noise_of`, and ``ids`` and ``bounds`` (2 LENGTH,) are workspace.
    """
    unit, m = np.float64(np.finfo(places.sq.dtype).eps), center.size
    for k in range(merges.shape[0]):
        a, b = np.int64(merges[k, 0]), np.int64(merges[k, 1])
        p, q = lists.place_of[a], lists.place_of[b]
        size_a, size_b = np.float64(places.size[p]), np.float64(places.size[q])
        far_a, far_b = np.float64(places.limit[p]), np.float64(places.limit[q])
        z = heights[k] * scale * scale
        noise = noise_of(linkage, m, size_a + size_b, extent)
        limit = bound_to_union(linkage, far_a, far_b, z, size_a, size_b, sizes)
        limit = rounded_down(limit, abs(far_a) + abs(far_b) + z, m, unit, noise)
        renew(lists, a)
        renew(lists, b)
        count = 0
        for turn in range(2):
            one_slot, other_slot = (a, b) if turn == 0 else (b, a)
            for t in range(lists.length[one_slot]):
                one = lists.id[one_slot, t]
                if one == lists.id_of[other_slot] or (turn == 1 and bound_in(lists, a, one, np.inf) < np.inf):
                    continue
                x, y = bound_in(lists, a, one, far_a), bound_in(lists, b, one, far_b)
                bound = bound_to_union(linkage, x, y, z, size_a, size_b, sizes)
                bound = rounded_down(bound, abs(x) + abs(y) + z, m, unit, noise)
                if bound < limit:
                    s = count
                    while s > 0 and bounds[s - 1] > bound:
                        ids[s], bounds[s] = ids[s - 1], bounds[s - 1]
                        s -= 1
                    ids[s], bounds[s] = one, bound
                    count += 1
        if count > LENGTH:
            count = LENGTH
            limit = bounds[LENGTH]
        for t in range(count):
            lists.id[a, t], lists.bound[a, t] = ids[t], bounds[t]
        lists.length[a] = count
        places.limit[p] = limit
        one = np.int64(first_id + k)
        lists.into[lists.id_of[a]] = lists.into[lists.id_of[b]] = one
        lists.id_of[a], lists.slot_of[one] = one, a
        places.sq[q] = np.inf
        put_one(clusters, center, scale, a, places, lists)


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
    linkage: LinkageOfMeans,
    clusters: Clusters,
    slots: Ints,
    unit: float,
    extent: Floats,
    places: Places,
    lists: Lists,
    found: Bytes,
) -> None:
    """Find the nearest clusters of some in their lists. O(m) for each that may be the nearest.

    Sets ``nearest`` and ``value`` of the clusters, and ``found[i]`` to whether no other cluster can be as near. What is
    scaled, times ``unit``, is a value; ``extent`` is as in `noise_of`.
    """
    eps, m = np.float64(np.finfo(places.sq.dtype).eps), clusters.mean.shape[1]
    for i in range(slots.size):
        a = np.int64(slots[i])
        n = renew(lists, a)
        best, who = np.inf, np.int64(NULL)
        p = lists.place_of[a]
        limit = np.float64(places.limit[p])
        for k in range(n):
            if who != NULL and np.float64(lists.bound[a, k]) * unit > best:
                break
            c = np.int64(lists.slot_of[lists.id[a, k]])
            value = exact_value(linkage, clusters, a, c)
            if who == NULL or value < best or (value == best and comes_before(a, c, who)):
                best, who = value, c
            noise = noise_of(linkage, m, clusters.size[a], extent)
            raise_entry(lists, a, k, min(rounded_down(value / unit, value / unit, m, eps, noise), limit))
        sort_list(lists, a)
        clusters.nearest[a], clusters.value[a] = who, best
        found[i] = who != NULL and best < limit * unit


@inline
def raise_entry(lists, slot, k, bound):
    """Entry `k` of a list is at least at this bound, no more than the limit: it may merge with what is not listed."""
    lists.bound[slot, k] = max(np.float64(lists.bound[slot, k]), bound)


@inline
def sort_list(lists, slot):
    """Put a list in the order of its bounds, in which it almost is."""
    ids, bounds = lists.id[slot], lists.bound[slot]
    for k in range(1, lists.length[slot]):
        one, bound, t = ids[k], bounds[k], k
        while t > 0 and bounds[t - 1] > bound:
            ids[t], bounds[t] = ids[t - 1], bounds[t - 1]
            t -= 1
        ids[t], bounds[t] = one, bound


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

"""Dissimilarities between points and between sets of points, evaluated in blocks, and only where they matter.

Where the triangle inequality holds, the distances of all points to a few *pivots* are kept. They bound every other
distance from both sides: |ρ(i, p) − ρ(j, p)| ≤ ρ(i, j) ≤ ρ(i, p) + ρ(j, p).

A comparison of two large clusters may take long. It goes row by row, and pauses when ``PAUSE_AT`` pairs have been
considered: it returns the value so far and the next row, and continues from there when called again.
"""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import BLOCK, GROUP, SQUARE_ROOT, Pairs
from evertree.kernels.compile import inline, inline_sum, kernel, step
from evertree.kernels.pairwise.dissimilarities import call_row
from evertree.kernels.shared.topology import hangs, is_leaf
from evertree.kernels.signatures import DataMatrix, Floats, Ints

#: A block is this short if the first dissimilarities often decide.
FIRST = 8

#: How far rounding may move a bound, relative to the distances that it is computed from.
ROUNDING = 1e-11

#: How far rounding may move a distance whose square is so small that it has lost digits.
VANISHING = 1e-160


@inline
def evaluate(pairs, i, rows, out):
    """Fill `out` with the dissimilarities between row `i` and `rows`, at most a block of them."""
    call_row(pairs.row, pairs.x, pairs.params, np.int64(i), rows, out)
    pairs.state["evaluated"][0] += rows.size


@inline
def dissimilarity(pairs, i, j):
    """d(i, j) of two rows."""
    pairs.some[0] = j
    evaluate(pairs, i, pairs.some[:1], pairs.block)
    return pairs.block[0]


@inline
def next_leaves(tree, start, skip):
    """Fill ``pairs.some`` with a block of rows, from `start` on, of leaves in the tree except `skip`.

    Returns their number, and the row to continue from.
    """
    count = 0
    while count < BLOCK and start < tree.state["leaf_top"][0]:
        if 2 * start != skip and hangs(tree, 2 * start):
            tree.pairs.some[count] = start
            count += 1
        start += 1
    return count, start


@step
def evaluate_leaves(tree, i, start, skip):
    """Evaluate the dissimilarities between row `i` and a block of leaves from row `start` on, except `skip`.

    They are in ``pairs.block``, their rows in ``pairs.some``. Returns their number, and the row to continue from.
    """
    pairs = tree.pairs
    count, start = next_leaves(tree, start, skip)
    if count > 0:
        evaluate(pairs, i, pairs.some[:count], pairs.block)
    return count, start


@inline
def bounds(pairs, i, j):
    """A lower and an upper bound on d(i, j), from the pivots."""
    lower, upper = 0.0, np.inf
    for k in range(pairs.state["n_pivots"][0]):
        p, q = pairs.pivot[i, k], pairs.pivot[j, k]
        lower = max(lower, abs(p - q) - ROUNDING * (p + q) - VANISHING)
        upper = min(upper, p + q)
    upper += ROUNDING * upper + VANISHING
    if pairs.state["triangle"][0] == SQUARE_ROOT:
        return lower * lower * (1.0 - ROUNDING), upper * upper * (1.0 + ROUNDING)
    return lower, upper


@inline
def must_pause(pairs):
    """Whether it is time to pause: the limit on pairs has been reached."""
    return pairs.state["looked_at"][0] >= pairs.state["pause_at"][0]


@step
def collect_rows(tree, root, rows):
    """Fill `rows` with those of the leaves below `root`, from left to right; return their number, in linear time."""
    count = 0
    u = root
    while True:
        while not is_leaf(u):
            u = tree.left[u]
        rows[count] = u >> 1
        count += 1
        while u != root and tree.right[tree.parent[u]] == u:
            u = tree.parent[u]
        if u == root:
            return count
        u = tree.right[tree.parent[u]]


@inline
def copy_rows(rows, others):
    """Fill `others` with `rows`."""
    for r in range(rows.size):
        others[r] = rows[r]


@step
def nearest(pairs, rows, others, start, best):
    """The smallest dissimilarity between `rows` and `others`, if it is below `best`, otherwise `best`.

    Returns it and the next row. Pairs whose lower bound is not below the best so far are not evaluated.
    """
    for r in range(start, rows.size):
        if must_pause(pairs):
            return best, r
        pairs.state["looked_at"][0] += others.size
        i = rows[r]
        has_bounds = pairs.state["n_pivots"][0] > 0
        count = 0
        for t in range(others.size):
            if not has_bounds or bounds(pairs, i, others[t])[0] < best:
                pairs.some[count] = others[t]
                count += 1
            if count == BLOCK or (t == others.size - 1 and count > 0):
                evaluate(pairs, i, pairs.some[:count], pairs.block)
                for s in range(count):
                    best = min(best, pairs.block[s])
                count = 0
    return best, rows.size


@step
def farthest(pairs, rows, others, start, best, enough):
    """The largest dissimilarity between `rows` and `others`, or one that is at least `enough`, or `best` if larger.

    Returns it and the next row. Pairs whose upper bound is not above the best so far are not evaluated.
    """
    for r in range(start, rows.size):
        if best >= enough or must_pause(pairs):
            return best, r
        pairs.state["looked_at"][0] += others.size
        i = rows[r]
        has_bounds = pairs.state["n_pivots"][0] > 0
        count, room = 0, FIRST
        for t in range(others.size):
            if not has_bounds or bounds(pairs, i, others[t])[1] > best:
                pairs.some[count] = others[t]
                count += 1
            if count == room or (t == others.size - 1 and count > 0):
                evaluate(pairs, i, pairs.some[:count], pairs.block)
                for s in range(count):
                    best = max(best, pairs.block[s])
                count, room = 0, BLOCK
                if best >= enough:
                    break
    return best, rows.size


@step
def find_shares(tree, rows, share):
    """Fill `share` with the weights of `rows` as shares of their sum; return the sum."""
    total = 0.0
    for t in range(rows.size):
        total += tree.size[2 * rows[t]]
    for t in range(rows.size):
        share[t] = tree.size[2 * rows[t]] / total
    return total


@inline_sum
def dot(share, start, block, count):
    """Σ of shares times dissimilarities."""
    total = 0.0
    for s in range(count):
        total += share[start + s] * block[s]
    return total


@step
def weighted_sum(tree, rows, others, start, total):
    """`total` and, for the rows from `start` on, the sum of weights times the mean dissimilarity to `others`.

    Returns it and the next row. Some rows are compared with a block of others while it is in the cache.
    """
    pairs = tree.pairs
    find_shares(tree, others, pairs.share)
    for first in range(start, rows.size, GROUP):
        if must_pause(pairs):
            return total, first
        group = rows[first : first + GROUP]
        pairs.state["looked_at"][0] += group.size * others.size
        for r in range(group.size):
            pairs.means[r] = 0.0
        for t in range(0, others.size, BLOCK):
            some = others[t : t + BLOCK]
            for r in range(group.size):
                evaluate(pairs, group[r], some, pairs.block)
                pairs.means[r] += dot(pairs.share, t, pairs.block, some.size)
        for r in range(group.size):
            total += tree.size[2 * group[r]] * pairs.means[r]
    return total, rows.size


@inline
def find_span(pairs, rows):
    """Fill ``pairs.span`` with the smallest and the largest distance of `rows` to each pivot."""
    for k in range(pairs.state["n_pivots"][0]):
        pairs.span[0, k] = np.inf
        pairs.span[1, k] = 0.0
    for r in rows:
        for k in range(pairs.state["n_pivots"][0]):
            pairs.span[0, k] = min(pairs.span[0, k], pairs.pivot[r, k])
            pairs.span[1, k] = max(pairs.span[1, k], pairs.pivot[r, k])


@inline
def least_radius(pairs, i):
    """A lower bound on the largest dissimilarity between row `i` and the rows whose span is known."""
    lower = 0.0
    for k in range(pairs.state["n_pivots"][0]):
        p = pairs.pivot[i, k]
        slack = ROUNDING * (p + pairs.span[1, k]) + VANISHING
        lower = max(lower, p - pairs.span[0, k] - slack, pairs.span[1, k] - p - slack)
    return lower * lower * (1.0 - ROUNDING) if pairs.state["triangle"][0] == SQUARE_ROOT else lower


@inline
def radius_around(pairs, i, rows, enough):
    """The largest dissimilarity between row `i` and `rows`, or one that is at least `enough`, and its position."""
    best, where = -1.0, 0
    t, stop = 0, min(FIRST, rows.size)
    while t < rows.size and best < enough:
        evaluate(pairs, i, rows[t:stop], pairs.block)
        for s in range(stop - t):
            if pairs.block[s] > best:
                best, where = pairs.block[s], t + s
        t, stop = stop, min(stop + BLOCK, rows.size)
    pairs.state["looked_at"][0] += t
    return best, where


@step
def covering_radius(pairs, rows, others, start, best):
    """The smallest radius around one of `rows` that covers `others`, if it is below `best`, otherwise `best`.

    Returns it, its center row, or -1 if that was not found, and the next row. `others` is reordered: those too far from
    some rows come to the front, as they are likely too far from others.
    """
    center = -1
    find_span(pairs, others)
    for r in range(start, rows.size):
        if must_pause(pairs):
            return best, center, r
        pairs.state["looked_at"][0] += 1
        i = rows[r]
        if least_radius(pairs, i) >= best:
            continue
        radius, where = radius_around(pairs, i, others, best)
        if radius < best:
            best, center = radius, i
        else:
            others[where // 2], others[where] = others[where], others[where // 2]
    return best, center, rows.size


@inline
def distance(pairs, dissimilarity):
    """The distance that obeys the triangle inequality."""
    return np.sqrt(dissimilarity) if pairs.state["triangle"][0] == SQUARE_ROOT else dissimilarity


@kernel
def find_pivots(pairs: Pairs, rows: Ints) -> None:
    """Choose pivots among `rows`, each as far as possible from those before it; fill ``pairs.pivot``. O(n m).

    The first one is the last row: in tree order the first row is the oldest point, which often is the next to go.
    """
    pairs.state["n_pivots"][0] = 0
    chosen = rows[-1]
    for k in range(pairs.pivots.size):
        pairs.pivots[k] = chosen
        largest = -1.0
        for t in range(0, rows.size, BLOCK):
            some = rows[t : t + BLOCK]
            evaluate(pairs, pairs.pivots[k], some, pairs.block)
            for s in range(some.size):
                pairs.pivot[some[s], k] = distance(pairs, pairs.block[s])
                nearest_pivot = pairs.pivot[some[s], 0]
                for other in range(1, k + 1):
                    nearest_pivot = min(nearest_pivot, pairs.pivot[some[s], other])
                if nearest_pivot > largest:
                    largest, chosen = nearest_pivot, some[s]
    pairs.state["n_pivots"][0] = pairs.pivots.size


@step
def measure_pivots(pairs, row):
    """Fill the distances between a row and the pivots. O(m)."""
    count = pairs.state["n_pivots"][0]
    if count > 0:
        evaluate(pairs, row, pairs.pivots[:count], pairs.to_pivots)
    for k in range(count):
        pairs.pivot[row, k] = distance(pairs, pairs.to_pivots[k])


@inline
def is_pivot(pairs, row):
    """Whether a row is one of the pivots."""
    found = False
    for k in range(pairs.state["n_pivots"][0]):
        found |= pairs.pivots[k] == row
    return found


@kernel
def fill_condensed(pairs: Pairs, rows: Ints, condensed: Floats, start: int, stop: int) -> None:
    """Fill in the dissimilarities of all pairs of `rows`, in SciPy's order, whose first one is from `start` to `stop`.

    O(n m) for each of them. Several threads may fill parts of the same array.
    """
    done = start * (2 * rows.size - start - 1) // 2
    for r in range(start, min(stop, rows.size - 1)):
        others = rows[r + 1 :]
        call_row(pairs.row, pairs.x, pairs.params, np.int64(rows[r]), others, condensed[done : done + others.size])
        done += others.size


@kernel
def store_rows(x: DataMatrix, rows: Ints, others: Ints, matrix: DataMatrix) -> None:
    """Store line a of `matrix` as the dissimilarities between row ``rows[a]`` of a triangle and `others`."""
    for a in range(rows.size):
        for b in range(others.size):
            i, j = np.int64(max(rows[a], others[b])), np.int64(min(rows[a], others[b]))
            if i != j:
                x[0, i * (i - 1) // 2 + j] = matrix[a, b]

"""The linkage between two nodes from the dissimilarities of their members (`eq.Linkage`)."""

from __future__ import annotations

import numpy as np

from evertree.columns import PAUSE_AT, UNLIMITED
from evertree.kernels.compile import choose, inline, step
from evertree.kernels.pairs import (
    collect_rows,
    copy_rows,
    covering_radius,
    farthest,
    find_shares,
    nearest,
    weighted_sum,
)
from evertree.linkages import Average, Complete, Minimax, Single


@inline
def collect_both(tree, a, c):
    """Fill ``pairs.rows`` with the members of the one node that has fewer, ``pairs.others`` with those of the other."""
    n_rows = collect_rows(tree, a, tree.pairs.rows)
    n_others = collect_rows(tree, c, tree.pairs.others)
    if n_rows > n_others:
        n_rows = collect_rows(tree, c, tree.pairs.rows)
        n_others = collect_rows(tree, a, tree.pairs.others)
    return n_rows, n_others


# Each of these compares nodes `a` and `c`: it goes on from the row `start` with the value so far, which is
# NOTHING_YET at the beginning. It returns the linkage if that is below `floor`, otherwise a value from `floor` up to
# the linkage; whether it is the linkage; and the next row, which is -1 when it is done.

NOTHING_YET = -1.0


def _single(linkage, tree, a, c, floor, start, value):
    pairs = tree.pairs
    n_rows, n_others = collect_both(tree, a, c)
    rows, others = pairs.rows[:n_rows], pairs.others[:n_others]
    value, row = nearest(pairs, rows, others, start, floor if value == NOTHING_YET else value)
    return value, value < floor, (row if row < rows.size else -1)


def _complete(linkage, tree, a, c, floor, start, value):
    pairs = tree.pairs
    n_rows, n_others = collect_both(tree, a, c)
    rows, others = pairs.rows[:n_rows], pairs.others[:n_others]
    value, row = farthest(pairs, rows, others, start, max(value, 0.0), floor)
    is_done = value >= floor or row == rows.size
    return value, value < floor, (-1 if is_done else row)


def _average(linkage, tree, a, c, floor, start, value):
    pairs = tree.pairs
    n_rows, n_others = collect_both(tree, a, c)
    rows, others = pairs.rows[:n_rows], pairs.others[:n_others]
    total, row = weighted_sum(tree, rows, others, start, max(value, 0.0))
    if row < rows.size:
        return total, False, row
    return total / find_shares(tree, rows, pairs.share), True, -1


def _minimax(linkage, tree, a, c, floor, start, value):
    pairs = tree.pairs
    count = collect_rows(tree, a, pairs.rows)
    count += collect_rows(tree, c, pairs.rows[count:])
    rows, others = pairs.rows[:count], pairs.others[:count]
    copy_rows(rows, others)
    best = floor if value == NOTHING_YET else value
    value, _, row = covering_radius(pairs, rows, others, start, best)
    return value, value < floor, (row if row < count else -1)


#: ζ(a, c) as far as it matters. O(|a| |c| m) at most, often much less.
compare = choose("linkage", {Single: _single, Complete: _complete, Average: _average, Minimax: _minimax}, inlined=False)


@step
def value_below(linkage, tree, a, c, floor):
    """ζ(a, c) if it is below `floor`, otherwise a value from `floor` up to it, in one go."""
    pause_at = tree.pairs.state[PAUSE_AT]
    tree.pairs.state[PAUSE_AT] = UNLIMITED
    value, _, _ = compare(linkage, tree, a, c, floor, np.int64(0), NOTHING_YET)
    tree.pairs.state[PAUSE_AT] = pause_at
    return value


@inline
def value_between(linkage, tree, a, c):
    """ζ(a, c), exactly and in one go."""
    return value_below(linkage, tree, a, c, np.inf)

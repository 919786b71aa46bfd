"""The linkage between two nodes from the dissimilarities of their members (`eq.Linkage`)."""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import UNLIMITED
from evertree.kernels.compile import inline, step
from evertree.kernels.dispatch import linkage_must_define
from evertree.kernels.pairwise.pairs import collect_rows


@inline
def collect_both(tree, a, c):
    """Fill ``pairs.rows`` with the members of the node that has fewer, ``pairs.others`` with those of the other."""
    n_rows = collect_rows(tree, a, tree.pairs.rows)
    n_others = collect_rows(tree, c, tree.pairs.others)
    if n_rows > n_others:
        n_rows = collect_rows(tree, c, tree.pairs.rows)
        n_others = collect_rows(tree, a, tree.pairs.others)
    return n_rows, n_others


#: Instead of a value: the comparison of two nodes has not started.
NOTHING_YET = -1.0


@linkage_must_define
def compare(linkage, tree, a, c, floor, start, value):
    """ζ(a, c), where it matters, from pairs of members. O(|a| |c| m) at most, often much less.

    It continues from row `start` with the `value` so far, NOTHING_YET at the start. It returns ζ if that is below
    `floor`, otherwise a value from `floor` up to ζ; whether it is ζ; and the next row, -1 when done.
    """


@step
def value_below(linkage, tree, a, c, floor):
    """ζ(a, c) if it is below `floor`, otherwise a value from `floor` up to it, without a pause."""
    pause_at = tree.pairs.state["pause_at"][0]
    tree.pairs.state["pause_at"][0] = UNLIMITED
    value, _, _ = compare(linkage, tree, a, c, floor, np.int64(0), NOTHING_YET)
    tree.pairs.state["pause_at"][0] = pause_at
    return value


@inline
def value_between(linkage, tree, a, c):
    """ζ(a, c), exactly and without a pause."""
    return value_below(linkage, tree, a, c, np.inf)

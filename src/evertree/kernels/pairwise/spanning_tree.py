"""The minimum spanning tree of points by Prim's algorithm: its edges are the merges of single linkage."""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import Pairs
from evertree.kernels.compile import kernel
from evertree.kernels.pairwise.dissimilarities import call_row
from evertree.kernels.signatures import Floats, Ints, LongInts, LongMatrix


@kernel
def grow(
    pairs: Pairs,
    rows: Ints,
    left: Ints,
    left_rows: Ints,
    near: Floats,
    via: Ints,
    values: Floats,
    merges: LongMatrix,
    height: Floats,
    done: LongInts,
    stop: int,
) -> None:
    """Fill ``merges`` (n - 1, 2) with the edges, as positions in `rows`, and ``height`` with their lengths. O(n² m).

    Each edge is the shortest from the points connected so far, from the first one on, to another; ties go to the
    smaller position. ``left``, ``left_rows``, ``near``, ``via`` and ``values`` (n,) are workspace: the points that are
    not connected yet, their rows, how near the next of the others is, and which one it is. ``done`` (2,) has the number
    of edges made and the point added last, both 0 at first. Returns once there are `stop` edges.
    """
    n = rows.size
    if done[0] == 0:
        for k in range(n - 1):
            left[k] = k + 1
            left_rows[k] = rows[k + 1]
            near[k] = np.inf
            via[k] = 0
    for i in range(done[0], min(stop, n - 1)):
        count, last = n - 1 - i, done[1]
        call_row(pairs.row, pairs.x, pairs.params, np.int64(rows[last]), left_rows[:count], values[:count])
        best = 0
        for k in range(count):
            if values[k] < near[k]:
                near[k] = values[k]
                via[k] = last
            if near[k] < near[best] or (near[k] == near[best] and left[k] < left[best]):
                best = k
        merges[i, 0], merges[i, 1], height[i] = via[best], left[best], near[best]
        done[0], done[1] = i + 1, left[best]
        left[best], left_rows[best] = left[count - 1], left_rows[count - 1]
        near[best], via[best] = near[count - 1], via[count - 1]

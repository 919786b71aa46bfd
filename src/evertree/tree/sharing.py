"""`Sharing`: what a tree of pairs leaves to threads. Its result is the same without them, to the last bit.

Two things take most of the time, and each is many comparisons of points that do not depend on each other. Where points
come, the linkage between each of them and every node is needed: it is found for some points ahead, and mended where the
tree has changed when one is hung. And where a blocking pair with a large cluster is searched for, the linkage between
this cluster and every other node is needed: the kernel pauses, and goes on when threads have compared the points.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.columns import (
    AHEAD,
    EVALUATED,
    LEAF_TOP,
    LOOKED_AT,
    N_AHEAD,
    N_MEMBERS,
    N_POINTS,
    PAUSE_AT,
    PAUSED_NODE,
    PAUSED_ROW,
    PairTree,
)
from evertree.linkages import Tag
from evertree.tree.threads import Threads

#: Points that are measured ahead at once.
MOST_AHEAD = 32

#: Members of a cluster that are compared at least, before a look at the clock.
FEWEST_MEMBERS = 16


class Sharing:
    """The threads of one tree, and their room to work in.

    Parameters
    ----------
    tree
        The tree; all threads read it, and each writes to other places.
    tag
        What kernels know of the linkage.
    threads
        The threads.
    """

    def __init__(self, tree: PairTree, tag: Tag, threads: Threads) -> None:
        self._tree, self._tag, self._threads = tree, tag, threads
        self._scratch = threads.helpers(self._own_room)

    def _own_room(self) -> PairTree:
        """The same tree for one thread."""
        names = ("state", "to_pivots", "some", "block")
        own = {name: np.empty_like(getattr(self._tree.pairs, name)) for name in names}
        return self._tree._replace(pairs=self._tree.pairs._replace(**own))

    def measure_ahead(self, leaves: NDArray[np.int32], nodes: NDArray[np.int32], is_bounded: bool) -> PairTree:
        """The tree, with some leaves measured that are about to be hung one after the other; `nodes` are all in it.

        Exactly, or by bounds on their dissimilarities.
        """
        rows, others = leaves >> 1, nodes[nodes % 2 == 0] >> 1
        pairs = self._tree.pairs
        ahead = np.empty((leaves.size, 2 if is_bounded else 1, pairs.lower.size))

        def measure(some: slice, tree: PairTree) -> None:
            kernels.shared.measure_ahead(tree, self._tag, rows[some], others, rows, nodes, ahead[some])

        self._divide(measure, leaves.size)
        pairs.state[[AHEAD, N_AHEAD]] = 0, rows.size
        pairs.stale[:] = 0
        return self._tree._replace(pairs=pairs._replace(ahead=ahead))

    def measure_members(self) -> None:
        """Compare members of the cluster at which a search has paused with all leaves: as many as there is time for."""
        pairs, state = self._tree.pairs, self._tree.pairs.state
        n_points = int(self._tree.state[N_POINTS])
        count = max(int(state[PAUSE_AT] - state[LOOKED_AT]) // n_points, FEWEST_MEMBERS)
        start, stop = int(state[PAUSED_ROW]), int(state[N_MEMBERS])
        rows = pairs.rows[start : min(start + count, stop)]

        def measure(some: slice, tree: PairTree) -> None:
            kernels.shared.measure_members(tree, self._tag, state[PAUSED_NODE], rows, some.start, some.stop)

        self._divide(measure, int(self._tree.state[LEAF_TOP]))
        state[LOOKED_AT] += rows.size * n_points
        state[PAUSED_ROW] += rows.size

    def _divide(self, work: Callable[[slice, PairTree], object], length: int) -> None:
        """Do a job on so many items, all threads at the same time."""
        state = self._tree.pairs.state
        n_evaluated = []

        def do_part(some: slice, tree: PairTree) -> None:
            tree.pairs.state[:] = state
            work(some, tree)
            n_evaluated.append(int(tree.pairs.state[EVALUATED] - state[EVALUATED]))

        self._threads.divide(do_part, length, self._scratch, per_thread=1)
        state[EVALUATED] += sum(n_evaluated)

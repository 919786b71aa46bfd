"""`Sharing`: what a tree of pairs leaves to threads, which changes nothing in the result.

Some things take most of the time, and each is many comparisons of points that do not depend on each other. Where points
come, the linkage between each of them and every node is needed: it is found for some points ahead, and mended where the
tree has changed when one is hung. Where a blocking pair with a large cluster is searched for, the linkage between this
cluster and every other node is needed: the kernel pauses, and goes on when threads have compared the points. And lists
of neighbours are filled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.kernels.columns import EVERYWHERE, NODE_ITSELF, NULL, TO_FIND, UNLIMITED, PairTree, Search, Worklist
from evertree.linkages import Tag
from evertree.locking import Uninterrupted
from evertree.tree.parallel.threads import Threads

#: Points that are measured ahead at once.
MOST_AHEAD = 32

#: Points that are compared with all others at least, before a look at the clock.
FEWEST_ROWS = 16

#: A cluster with fewer pairs to compare is not worth the time that it takes to wake threads.
FEWEST_PAIRS = 1 << 17

_NONE = np.empty(0, np.int32)


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

    def __enter__(self) -> Self:
        """Let kernels leave work to the threads."""
        self._tree.pairs.state["shared_from"][0] = FEWEST_PAIRS
        return self

    def __exit__(self, *_: object) -> None:
        self._tree.pairs.state["shared_from"][0] = UNLIMITED

    def warm_up(self, search: Search) -> None:
        """Compile, or load from disk, what threads do."""
        tree = self._own_room()
        kernels.pairwise.parallel.measure_ahead(tree, self._tag, _NONE, _NONE, _NONE, _NONE, tree.pairs.ahead)
        kernels.pairwise.parallel.measure_members(tree, self._tag, 0, _NONE, 0, 0)
        kernels.shared.rounds.fill_lists(tree, search, self._tag, _NONE, _NONE.astype(np.uint8))

    def _own_room(self) -> PairTree:
        """The same tree for one thread."""
        names = ("state", "to_pivots", "some", "block")
        own = {name: np.empty_like(getattr(self._tree.pairs, name)) for name in names}
        return self._tree._replace(pairs=self._tree.pairs._replace(**own))

    def measure_ahead(self, leaves: NDArray[np.int32], nodes: NDArray[np.int32], is_bounded: bool) -> PairTree:
        """The tree, with some leaves measured that are about to be hung one after the other; `nodes` are all in it.

        Exactly, or by bounds on their dissimilarities.
        """
        rows = leaves >> 1
        others = np.concatenate([nodes[nodes % 2 == 0] >> 1, rows])
        pairs = self._tree.pairs
        ahead = np.empty((leaves.size, 2 if is_bounded else 1, pairs.lower.size))

        def measure(some: slice, tree: PairTree) -> None:
            kernels.pairwise.parallel.measure_ahead(tree, self._tag, rows[some], others, rows, nodes, ahead[some])

        self._divide(measure, leaves.size)
        pairs.state["ahead"], pairs.state["n_ahead"] = 0, rows.size
        pairs.stale[:] = 0
        return self._tree._replace(pairs=pairs._replace(ahead=ahead))

    def go_on(self, work: Worklist, search: Search) -> bool:
        """Do what the kernel has left to threads, as far as there is time; return whether there was something."""
        with Uninterrupted():  # what has been measured is noted before Ctrl-C comes, or it would be added twice
            return self._do_next(work, search)

    def _do_next(self, work: Worklist, search: Search) -> bool:
        state = self._tree.pairs.state
        if state["paused_node"][0] != NULL and state["paused_side"][0] == NODE_ITSELF:
            self._measure_members()
            return True
        if work.state["pending"][0] or not work.state["due"][0] or search.state["reach"][0] == EVERYWHERE:
            return False
        fresh = search.fresh[: int(self._tree.state["leaf_top"][0])]
        rows = np.flatnonzero((fresh == TO_FIND) & (self._tree.parent[: 2 * fresh.size : 2] > NULL)).astype(np.int32)
        if rows.size == 0:
            return False
        self._fill_lists(search, rows[: self._n_rows_in_time])
        return True

    @property
    def _n_rows_in_time(self) -> int:
        """How many points may be compared with all others before a look at the clock."""
        state = self._tree.pairs.state
        return max(
            int(state["pause_at"][0] - state["looked_at"][0]) // int(self._tree.state["n_points"][0]), FEWEST_ROWS
        )

    def _fill_lists(self, search: Search, rows: NDArray[np.int32]) -> None:
        """Fill the empty lists of neighbours of some rows."""
        own = search._replace(state=search.state.copy())  # what each thread notes there is the same, and known here
        steps = np.empty(rows.size, np.uint8)

        def fill(some: slice, tree: PairTree) -> None:
            kernels.shared.rounds.fill_lists(tree, own, self._tag, rows[some], steps[some])

        self._divide(fill, rows.size)
        search.fresh[rows] = 0
        search.state["fresh"][0] -= TO_FIND * rows.size

    def _measure_members(self) -> None:
        """Compare members of the cluster at which a search has paused with all leaves."""
        pairs, state = self._tree.pairs, self._tree.pairs.state
        start, stop = int(state["paused_row"][0]), int(state["n_members"][0])
        rows = pairs.rows[start : min(start + self._n_rows_in_time, stop)]

        def measure(some: slice, tree: PairTree) -> None:
            kernels.pairwise.parallel.measure_members(
                tree, self._tag, state["paused_node"][0], rows, some.start, some.stop
            )

        self._divide(measure, int(self._tree.state["leaf_top"][0]))
        state["looked_at"][0] += rows.size * self._tree.state["n_points"][0]
        state["paused_row"][0] += rows.size

    def _divide(self, work: Callable[[slice, PairTree], object], length: int) -> None:
        """Do a job on so many items, all threads at the same time."""
        state = self._tree.pairs.state
        n_evaluated = []

        def do_part(some: slice, tree: PairTree) -> None:
            tree.pairs.state[:] = state
            work(some, tree)
            n_evaluated.append(int(tree.pairs.state["evaluated"][0] - state["evaluated"][0]))

        self._threads.divide(do_part, length, self._scratch, per_thread=1)
        state["evaluated"][0] += sum(n_evaluated)

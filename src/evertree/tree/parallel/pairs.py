"""`Sharing`: the work that a tree of pairs leaves to threads, without a change in the result.

Most of the time is spent in three tasks, each of which consists of many independent comparisons of points. Insertion
needs the linkage between each new point and every node: it is computed ahead for several points, and updated where the
tree has changed by the time one is attached. A search for a blocking pair with a large cluster needs the linkage
between this cluster and every other node: the kernel pauses, and resumes when threads have compared the points. And
lists of neighbours are filled.
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

#: Points measured ahead at once.
MOST_AHEAD = 32

#: At least this many points are compared with all others before the clock is checked.
FEWEST_ROWS = 16

#: A cluster with fewer pairs to compare does not pay for waking threads.
FEWEST_PAIRS = 1 << 17

_NONE = np.empty(0, np.int32)


class Sharing:
    """The threads of one tree, and their workspaces.

    Parameters
    ----------
    tree
        The tree; all threads read it, and no two write to the same place.
    tag
        The linkage, as kernels see it.
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
        """Compile, or load from disk, the kernels of threads."""
        tree = self._own_room()
        kernels.pairwise.parallel.measure_ahead(tree, self._tag, _NONE, _NONE, _NONE, _NONE, tree.pairs.ahead)
        kernels.pairwise.parallel.measure_members(tree, self._tag, 0, _NONE, 0, 0)
        kernels.shared.rounds.fill_lists(tree, search, self._tag, _NONE, _NONE.astype(np.uint8))

    def _own_room(self) -> PairTree:
        """The same tree with a workspace for one thread."""
        names = ("state", "to_pivots", "some", "block")
        own = {name: np.empty_like(getattr(self._tree.pairs, name)) for name in names}
        return self._tree._replace(pairs=self._tree.pairs._replace(**own))

    def measure_ahead(self, leaves: NDArray[np.int32], nodes: NDArray[np.int32], is_bounded: bool) -> PairTree:
        """The tree, with measured leaves that are about to be attached one by one; `nodes` are all in it.

        They are measured exactly, or by bounds on their dissimilarities.
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
        """Do what the kernel has left to threads, as time permits; return whether there was anything."""
        with Uninterrupted():  # measurements are recorded before Ctrl-C is handled, or they would be added twice
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
        """Number of points that may be compared with all others before the clock is checked."""
        state = self._tree.pairs.state
        return max(
            int(state["pause_at"][0] - state["looked_at"][0]) // int(self._tree.state["n_points"][0]), FEWEST_ROWS
        )

    def _fill_lists(self, search: Search, rows: NDArray[np.int32]) -> None:
        """Fill the empty lists of neighbours of `rows`."""
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
        """Do a job on `length` items, with all threads in parallel."""
        state = self._tree.pairs.state
        n_evaluated = []

        def do_part(some: slice, tree: PairTree) -> None:
            tree.pairs.state[:] = state
            work(some, tree)
            n_evaluated.append(int(tree.pairs.state["evaluated"][0] - state["evaluated"][0]))

        self._threads.divide(do_part, length, self._scratch, per_thread=1)
        state["evaluated"][0] += sum(n_evaluated)

"""`Rounds`: refinement of a large tree, which threads share, with the same result for any number of them.

When there is much to do, a tree of means is cut into treelets (`evertree.tree.parallel.treelets`), which are refined in
parallel. The rest, mostly between them, is done in rounds: all threads search a tree that does not change; then the
grafts that they found are made.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertree import kernels
from evertree.kernels.columns import (
    DUE,
    EVERYWHERE,
    INSIDE,
    LOST,
    NO_LIST,
    NULL,
    OWN_LIST,
    QUEUED,
    TO_EXCHANGE,
    TO_FIND,
    UNLIMITED,
)
from evertree.locking import ReadWriteLock, Uninterrupted
from evertree.tree.parallel import treelets
from evertree.tree.parallel.threads import Threads
from evertree.tree.parallel.treelets import Cut, Treelet
from evertree.tree.statistics import MeanLiveTree

#: A tree of fewer points, or fewer numbers, is refined in steps.
FEWEST_POINTS, FEWEST_NUMBERS = 10_000, 1 << 20

#: When no more than this is left to do, rounds are not worth it.
FEW = 1_024

#: Treelets have at most this share of the points; a larger one, if it is so few; and at most so many.
_SHARE, _SMALLEST = 1 / 64, 16_384
_LARGEST_SHARE, _LARGEST = 1 / 16, 1 << 17

#: Pieces do not pay where a larger share of neighbours is in others: grafts between these undo what is done in each.
_MOST_ACROSS, _SAMPLE = 1 / 8, 2_000

#: The tree is cut when this many nodes are due, as a share of the points.
_DUE_SHARE = 1 / 32

#: The tree is cut again while more than one in this many nodes is pending: every other time at other boundaries.
_MANY = 50
_OTHER_CUT = 0.6

#: The treelet above the pieces extends down to pieces with this many times fewer points.
_OVERLAP = 8

#: Seconds per point that must be left to cut the tree, and that it takes to settle what is left afterwards.
_SECONDS_TO_CUT, _SECONDS_TO_SETTLE = 1e-6, 1e-7

#: Checks that one thread makes between looks at the clock.
_CHECKS_AT_ONCE = 1 << 14

#: A search, or a list, costs about as much as comparing this many numbers; the numbers of a whole round, and those
#: between two looks at whether to stop.
_NUMBERS_PER_SEARCH = 400
_NUMBERS_PER_ROUND = 1 << 27
_NUMBERS_AT_ONCE = 1 << 22
_FEWEST_PER_ROUND, _MOST_PER_ROUND = 64, 1 << 13

#: One in so many of the nodes that are due are searched before others: the lowest, as grafts below others change these.
_WAVES = 4

#: In the last seconds before a deadline, rounds are shorter by this factor.
_LAST_SECONDS, _SHORTER = 0.5, 16


class Rounds:
    """The refinement of one large tree.

    Parameters
    ----------
    live
        The tree.
    threads
        The threads.
    to_stable
        Whether it is to become stable; otherwise, homogeneous.
    lock
        The lock that lets readers in.
    """

    def __init__(self, live: MeanLiveTree, threads: Threads, to_stable: bool, lock: ReadWriteLock) -> None:
        self._live, self._threads, self._to_stable, self._lock = live, threads, to_stable, lock
        self._n_cuts = 0
        self._is_cut_in_vain = False
        self._begin()

    def _begin(self) -> None:
        """Begin with the tree as it is, with these points and numbers of nodes."""
        live = self._live
        self._forget_inside()
        self._numbering = self._current_numbering()
        self._rows, self._nodes = np.empty(0, np.int32), np.empty(0, np.int32)
        self._scratch = self._threads.helpers(live.scratch) if self._to_stable else None
        self._is_exhaustive = live.search.state["reach"][0] == EVERYWHERE
        per_search = (live.n_points if self._is_exhaustive else _NUMBERS_PER_SEARCH) * (live.n_columns or 1)
        fewest = 1 if self._is_exhaustive else _FEWEST_PER_ROUND
        self._most_per_round = int(np.clip(_NUMBERS_PER_ROUND // per_search, fewest, _MOST_PER_ROUND))

    def _current_numbering(self) -> tuple[int, ...]:
        """Numbers that change where points come or leave, or nodes are renumbered."""
        work = self._live.work.state
        return int(work["inserted"][0]), int(work["ordered_at"][0]), self._live.n_points, self._live.capacity

    def take(self, began: float, deadline: float, look: Callable[..., object]) -> float:
        """Do part of the remaining work, starting at `began`; return when it ended.

        `look` is called from time to time, with a function that it must call before it lets anyone see the tree. A long
        part stops at the deadline.
        """
        live = self._live
        if self._numbering != self._current_numbering():
            self._begin()
        n_pending, n_inserted = live.n_pending, int(live.work.state["inserted"][0])
        seconds_left = deadline - began
        has_time = seconds_left > _SECONDS_TO_CUT * live.n_points
        is_late = seconds_left < _LAST_SECONDS
        self._per_round = max(self._most_per_round // (_SHORTER if is_late else 1), 1)
        self._most_listed = _SHORTER * self._per_round if is_late else live.n_points
        self._lock.let_readers_in()
        if n_pending > 2 * live.n_points // _MANY and has_time and not self._is_cut_in_vain:
            self._refine_pieces(deadline, look)
            self._is_cut_in_vain = live.n_pending > n_pending // 2  # most of the rest is where pieces meet
        elif n_pending:
            with self._lock.access:
                live.homogenise(_CHECKS_AT_ONCE, UNLIMITED)
            self._is_cut_in_vain = self._is_cut_in_vain and live.n_pending > 0
        elif self._to_stable and live.search.state["fresh"][0] > 0 and not self._is_exhaustive:
            with self._lock.access:
                self._improve_lists()
        elif self._to_stable and live.n_due > _DUE_SHARE * live.n_points and has_time and live.cut_at != n_inserted:
            live.cut_at = n_inserted  # once, so that short calls get on
            self._refine_pieces(deadline, look)
        elif self._to_stable and live.n_due:
            with self._lock.access:
                self._search()
        if self._to_stable and live.is_at_rest:
            with self._lock.access:
                live.stabilise(1, UNLIMITED)  # which records that it is done
        return time.perf_counter()

    def _refine_pieces(self, deadline: float, look: Callable[..., object]) -> None:
        """Cut the tree into subtrees, refine each, and then what is above them.

        While checks are pending, only pieces with pending checks are refined, so that repeated short calls make
        progress too.
        """
        live, access = self._live, self._lock.access
        stop_at = deadline - _SECONDS_TO_SETTLE * live.n_points
        has_lists = self._to_stable and live.search.state["fresh"][0] == 0 and not self._is_exhaustive
        n = live.n_points
        most = min(max(int(_SHARE * n), _SMALLEST), int(_LARGEST_SHARE * n), _LARGEST)
        pieces = treelets.cut(live, int(most * _OTHER_CUT) if self._n_cuts % 2 else most)
        self._n_cuts += 1
        if has_lists and self._share_across(pieces) > _MOST_ACROSS:
            return
        place = np.empty(live.tree.parent.size, np.int32)
        is_stopped = False
        open_ones: set[Treelet] = set()
        searched: list[tuple[NDArray[np.int32], int]] = []
        putting_back = threading.Lock()

        @contextmanager
        def or_stop() -> Iterator[None]:
            nonlocal is_stopped
            try:
                yield
            except BaseException:
                is_stopped = True  # otherwise raised only after all treelets in progress are done
                raise

        def refine(piece: tuple[NDArray[np.int32], NDArray[np.int32]]) -> None:
            if is_stopped or piece[1].size == 0:
                return
            with or_stop():
                treelet = Treelet(live, *piece, place)
                if has_lists:
                    treelet.search.state["notes"][0] = NO_LIST
                open_ones.add(treelet)
                try:
                    treelet.refine(self._to_stable, lambda: is_stopped)
                finally:
                    with putting_back, access:
                        treelet.put_back(live, has_lists)
                        treelet.count(live)
                        open_ones.discard(treelet)
                if has_lists:
                    searched.append(treelet.nodes_and_root)

        def settle() -> None:
            with access:
                live.recount()

        def watch(should_stop: bool) -> None:
            nonlocal is_stopped
            now = time.perf_counter()
            is_stopped = is_stopped or should_stop or now >= stop_at
            with putting_back, or_stop():  # readers see, and may copy, a tree that does not change meanwhile
                with access:
                    for treelet in list(open_ones):
                        treelet.count(live)
                look(now, settle)

        try:
            largest_first = np.argsort(-pieces.n_leaves, kind="stable")
            todo = [pieces.piece(int(k)) for k in largest_first]
            if live.n_pending:
                todo = [piece for piece in todo if np.any(live.work.mark[piece[1][:-1]] & QUEUED)]
            else:
                todo = [piece for piece in todo if any(np.any(live.work.due[nodes]) for nodes in piece)]
            self._threads.each(refine, todo, watch)
            if not is_stopped:
                self._search_outside(searched, lambda: is_stopped, watch)
            has_lists = False  # its leaves stand for subtrees
            if not is_stopped and pieces.stops.size:
                settle()
                finer = treelets.cut(live, most // _OVERLAP)  # so that the roots of the pieces are in it
                self._threads.each(refine, [finer.above()], watch)
        finally:
            with Uninterrupted():  # otherwise checks would be lost
                self._forget_inside()
                settle()

    def _search_outside(
        self,
        pieces: list[tuple[NDArray[np.int32], int]],
        should_stop: Callable[[], bool],
        watch: Callable[[bool], object],
    ) -> None:
        """Search for blocking pairs between nodes of pieces, each with its root, and others."""
        if not pieces:
            return
        live = self._live
        assert self._scratch is not None
        piece = np.full(live.tree.parent.size, NULL, np.int32)
        for number, (nodes, _) in enumerate(pieces):
            piece[nodes] = number
        count = max(_NUMBERS_AT_ONCE // (_NUMBERS_PER_SEARCH * (live.n_columns or 1)), 1)
        parts = [(nodes[k : k + count], root) for nodes, root in pieces for k in range(0, nodes.size, count)]

        def search_for(part: tuple[NDArray[np.int32], int], scratch: tuple[Any, Any]) -> None:
            if not should_stop():
                tree, search = scratch
                search.state["notes"][0] = NO_LIST
                kernels.shared.rounds.search_outside(tree, live.work, search, live.tag, part[0], piece, part[1])

        self._threads.each_with_helper(search_for, parts, self._scratch, watch)

    def _share_across(self, pieces: Cut) -> float:
        """The share of neighbours that are in another piece, by some points."""
        live = self._live
        leaves = live.leaves()[:: -(-live.n_points // _SAMPLE)]
        near = live.search.near[leaves >> 1]
        row, column = np.nonzero(near != NULL)
        if row.size == 0:
            return 0.0
        here, there = pieces.numbers_of(leaves[row]), pieces.numbers_of(near[row, column])
        return float(np.mean(here != there))

    def _forget_inside(self) -> None:
        """Nodes that have not been searched beyond their pieces are due for any search."""
        due = self._live.work.due
        due[due == INSIDE] = DUE

    def _improve_lists(self) -> None:
        """Improve the lists of neighbours of some points by one step."""
        search = self._live.search
        assert self._scratch is not None
        rows = self._next_rows()
        if rows.size == 0:
            return
        steps = search.fresh[rows]
        near = np.empty((rows.size, search.near.shape[1]), np.int32)
        near_value = np.empty(near.shape, search.near_value.dtype)
        if steps[0] == TO_FIND:
            self._threads.divide(self._find_near(rows, steps), rows.size, self._scratch)
            near[:], near_value[:] = search.near[rows], search.near_value[rows]
        else:
            self._threads.divide(self._ask_near(rows, near, near_value), rows.size, self._scratch)
            steps -= 1

        def share(turn: int) -> None:
            kernels.shared.rounds.share_lists(search, rows, near, near_value, turn, self._threads.n_threads)

        self._threads.each(share, range(self._threads.n_threads))
        again = 2 * rows[search.fresh[rows] == TO_EXCHANGE]  # most are new, and due; others had gone the wrong way
        kernels.shared.due_queue.note_each(self._live.tree, self._live.work, again)
        search.state["fresh"][0] -= int(search.fresh[rows].sum()) - int(steps.sum())
        search.fresh[rows] = steps
        search.recent[0] = LOST

    def _next_rows(self) -> NDArray[np.int32]:
        """Some points whose lists are farthest from being good, by row in memory order."""
        live, search = self._live, self._live.search
        if self._rows.size == 0:
            fresh = search.fresh[: int(live.tree.state["leaf_top"][0])]
            fresh[live.tree.parent[: 2 * fresh.size : 2] <= NULL] = 0  # these are detached
            search.state["fresh"][0] = int(fresh.sum())
            if search.state["fresh"][0]:
                self._rows = np.flatnonzero(fresh == fresh.max()).astype(np.int32)
        rows, self._rows = self._rows[: self._per_round], self._rows[self._per_round :]
        return rows

    def _find_near(self, rows: NDArray[np.int32], steps: NDArray[np.uint8]) -> Callable[..., object]:
        def find(some: slice, scratch: tuple[Any, Any]) -> None:
            tree, search = scratch
            search.state["notes"][0] = OWN_LIST
            kernels.shared.rounds.fill_lists(tree, search, self._live.tag, rows[some], steps[some])

        return find

    def _ask_near(
        self, rows: NDArray[np.int32], near: NDArray[np.int32], near_value: NDArray[Any]
    ) -> Callable[..., object]:
        def ask(some: slice, scratch: tuple[Any, Any]) -> None:
            tree, search = scratch
            kernels.shared.rounds.ask_lists(tree, search, rows[some], near[some], near_value[some])

        return ask

    def _search(self) -> None:
        """Search for blocking pairs with the lowest of the due nodes, and make the grafts."""
        live = self._live
        assert self._scratch is not None
        nodes = self._next_due()
        partners = np.empty(nodes.size, np.int32)

        def search_for(some: slice, scratch: tuple[Any, Any]) -> None:
            tree, search = scratch
            search.state["notes"][0] = NO_LIST
            kernels.shared.rounds.find_partners(tree, search, live.tag, nodes[some], partners[some])

        self._threads.divide(search_for, nodes.size, self._scratch)
        kernels.shared.rounds.graft_found(live.tree, live.work, live.search, live.tag, nodes, partners)

    def _next_due(self) -> NDArray[np.int32]:
        """Some of the lowest of the due nodes, in memory order: those close in the tree are searched together."""
        live = self._live
        if self._nodes.size == 0:
            lowest = np.empty(min(max(live.n_due // _WAVES, _FEWEST_PER_ROUND), self._most_listed), np.int32)
            self._nodes = np.sort(lowest[: kernels.shared.due_queue.list_lowest(live.tree, live.work, lowest)])
        nodes, self._nodes = self._nodes[: self._per_round], self._nodes[self._per_round :]
        return nodes[(live.work.due[nodes] != 0) & (live.tree.parent[nodes] > NULL)]


def is_large(live: MeanLiveTree) -> bool:
    """Whether a tree is cut into pieces where there is much to do."""
    return live.n_points >= FEWEST_POINTS and live.n_points * (live.n_columns or 1) >= FEWEST_NUMBERS


def warm_up(live: MeanLiveTree) -> None:
    """Compile, or load from disk, what threads need, once per tree, so that deadlines are met: on a tiny tree."""
    if live.is_warm or not is_large(live):
        return
    live.is_warm = True
    root = live.root
    children = np.array([live.tree.left[root], live.tree.right[root]], np.int32)
    toy = Treelet(live, children, np.array([root], np.int32), np.empty(live.tree.parent.size, np.int32))
    toy.warm_up()
    pieces = treelets.cut(toy, 2, 1)
    Treelet(toy, *pieces.piece(0), np.empty(toy.tree.parent.size, np.int32)).put_back(toy)
    toy.recount()
    if live.aim.is_stable:
        tree, search = toy.scratch()
        none, steps = np.empty(0, np.int32), np.empty(0, np.uint8)
        lists = np.empty((0, search.near.shape[1]), np.int32), np.empty((0, search.near.shape[1]), live.dtype)
        kernels.shared.due_queue.list_lowest(toy.tree, toy.work, none)
        kernels.shared.due_queue.note_each(toy.tree, toy.work, none)
        kernels.shared.rounds.find_partners(tree, search, live.tag, none, none)
        kernels.shared.rounds.graft_found(toy.tree, toy.work, toy.search, toy.tag, none, none)
        kernels.shared.rounds.search_outside(tree, toy.work, search, live.tag, none, none, NULL)
        kernels.shared.rounds.fill_lists(tree, search, live.tag, none, steps)
        kernels.shared.rounds.ask_lists(tree, search, none, *lists)
        kernels.shared.rounds.share_lists(search, none, *lists, 0, 1)

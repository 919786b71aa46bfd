"""Refinement within budgets: many short kernel calls, with a look at the clock after each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evertree.kernels.columns import UNLIMITED
from evertree.locking import ReadWriteLock, Uninterrupted
from evertree.tree import LiveTree
from evertree.tree.base import REORDER_SHARE
from evertree.tree.parallel.rounds import FEW, Rounds, is_large
from evertree.tree.parallel.threads import Threads
from evertree.tree.repair import new_exact
from evertree.tree.statistics import MeanLiveTree

#: Seconds that a kernel call may take, and seconds between two calls of a progress callback.
_SLICE = 0.005
_PROGRESS_EVERY = 0.1

#: Steps of the first kernel call, times columns, where values follow from means: it takes less than a slice. And by how
#: much the next one may have more.
_FIRST_WORK = 1 << 16
_GROWTH = 4

#: Each entry of the history is at least this factor later than the one before; and when the first one is.
_LATER = 1.2
_FIRST_MOMENT = 0.001

#: Seconds per point that must be left to renumber the nodes.
_SECONDS_TO_REORDER = 1e-5


@dataclass(frozen=True)
class Report:
    """What `evertree.Hierarchy.refine` did, or, in a progress callback, has done so far.

    Attributes
    ----------
    moves : int
        Nearest neighbour interchanges made.
    checks : int
        Nodes at which homogeneity was checked.
    grafts : int
        Subtrees cut off and attached elsewhere, each to resolve a blocking pair.
    searches : int
        Nodes for which a blocking pair was searched for.
    dissimilarities : int
        Dissimilarities evaluated.
    seconds : float
        Time taken.
    pending : int
        Nodes still to be checked.
    due : int
        Nodes for which a blocking pair is still to be searched for.
    quality : float or None
        Estimated share of nodes that need no move or graft: pending and due nodes are assumed to need one as often as
        recent ones did. None as long as there are no recent ones, 1 at the end. `Hierarchy.instability` measures it.
    homogeneous : bool
        Whether the tree is known to be homogeneous: no checks are pending. A stable Ward tree need not be.
    stable : bool
        Whether no blocking pair was found: by searches of the hierarchy's width, so that there is none if they are
        exhaustive.
    certified : bool
        Whether that is a proof, so that the tree is the batch tree: with exhaustive searches, which are the default
        where they are cheap, and for single linkage.
    history : tuple of (seconds, quality, moves and grafts)
        Their values at some times since the start, at growing intervals; the last entry is the end.
    stopped_by : str or None
        ``"stable"``, ``"homogeneous"``, ``"moves"`` or ``"seconds"``; ``"guard"`` if rounding caused a cycle, so that
        the tolerance had to be widened; None while refinement is still running.

    Examples
    --------
    >>> import numpy as np, evertree as et
    >>> h = et.Hierarchy.random(np.arange(20.0).reshape(-1, 1) ** 2)
    >>> h.refine(moves=3).stopped_by
    'moves'
    >>> h.refine()
    Report(moves=..., grafts=..., stopped_by='stable', stable=True, ...)
    """

    moves: int
    grafts: int
    seconds: float
    stopped_by: str | None
    stable: bool
    certified: bool
    homogeneous: bool
    quality: float | None
    pending: int
    due: int
    checks: int
    searches: int
    dissimilarities: int
    history: tuple[tuple[float, float | None, int], ...] = field(repr=False)


class _Rate:
    """Recent rate of success."""

    def __init__(self) -> None:
        self._tries, self._hits = 0.0, 0.0

    def note(self, tries: int, hits: int) -> None:
        self._tries, self._hits = 0.8 * self._tries + tries, 0.8 * self._hits + hits

    def of(self, n_waiting: int) -> float | None:
        """How many of so many nodes will be hits; None if nothing is known yet."""
        if n_waiting == 0:
            return 0.0
        return n_waiting * self._hits / self._tries if self._tries else None


class _Steps:
    """Refinement by one thread, in short kernel calls."""

    def __init__(self, live: LiveTree, to_stable: bool, lock: ReadWriteLock) -> None:
        self._lock = lock
        self._step = live.stabilise if to_stable else live.homogenise
        # It adapts to the speed of the machine.
        self._n_steps = 256
        if to_stable:  # a comparison of two clusters may take long
            self._n_steps = max(_FIRST_WORK // (live.n_columns or 1), 1) if isinstance(live, MeanLiveTree) else 1

    def take(
        self, began: float, steps_left: int, moves_left: int, _deadline: float, _look: Callable[..., object]
    ) -> float:
        """Refine briefly from `began` on, by at most `steps_left` steps or `moves_left` moves; return when it ended."""
        self._lock.let_readers_in()
        with self._lock.access:
            self._step(min(self._n_steps, steps_left), moves_left)
        ended = time.perf_counter()
        seconds = max(ended - began, 1e-7)
        self._n_steps = max(1, min(_GROWTH * self._n_steps, int(self._n_steps * _SLICE / seconds)))
        return ended


class _Rounds:
    """Refinement of a large tree of means: in rounds, which threads share, while much is to be done; the rest in steps.

    It never goes back to rounds: where a step ends depends on the clock.
    """

    def __init__(self, live: MeanLiveTree, to_stable: bool, lock: ReadWriteLock, cleanup: ExitStack) -> None:
        self._live, self._to_stable, self._lock, self._cleanup = live, to_stable, lock, cleanup
        self._rounds: Rounds | None = None
        self._steps: _Steps | None = None

    def take(
        self, began: float, steps_left: int, moves_left: int, deadline: float, look: Callable[..., object]
    ) -> float:
        """Refine for a while from `began` on; return when it ended."""
        live = self._live
        if self._steps is None and live.n_pending + (live.n_due + live.n_unlisted if self._to_stable else 0) <= FEW:
            self._steps = _Steps(live, self._to_stable, self._lock)
            live.has_threads = False
            with self._lock.access:
                live.list_recent()
        if self._steps is not None:
            return self._steps.take(began, steps_left, moves_left, deadline, look)
        if self._rounds is None:
            live.has_threads = True
            self._cleanup.callback(setattr, live, "has_threads", False)
            threads = self._cleanup.enter_context(Threads(live.aim.n_threads or 1))
            self._rounds = Rounds(live, threads, self._to_stable, self._lock)
        return self._rounds.take(began, deadline, look)


@contextmanager
def _steps(live: LiveTree, to_stable: bool, is_exact: bool, lock: ReadWriteLock) -> Iterator[_Steps | _Rounds]:
    """What refines a tree: which it is does not depend on the number of threads. Budgets that are exact need steps."""
    if is_exact or not isinstance(live, MeanLiveTree) or not is_large(live):
        yield _Steps(live, to_stable, lock)
    else:
        with ExitStack() as cleanup:
            yield _Rounds(live, to_stable, lock, cleanup)


def run(
    live: LiveTree,
    until: str,
    seconds: float | None,
    max_moves: int | None,
    progress: Callable[[Report], object] | None,
    reorder: Callable[[float], object],
    lock: ReadWriteLock,
    max_steps: int | None = None,
    is_recorded: bool = False,
) -> Report:
    """Refine until the tree is homogeneous, or stable, or a budget is spent.

    A number of steps, other than a number of seconds or of moves, is where an earlier run has stopped. What is recorded
    is made again later, up to such a number.

    Between two kernel calls the tree is valid: this is where Ctrl-C and errors of `progress` are raised, and where
    readers are let in. `reorder` is also called there from time to time, to put the nodes in tree order when a share of
    them is not. That takes a second for a million points, and is skipped when time is short.
    """
    start = last_call = time.perf_counter()
    to_stable = until == "stable"
    with Uninterrupted(), lock.access:
        live.move_towards(until)
        if to_stable:
            live.adapt_width(live.n_points)
        if live.n_pending == 0 and live.n_guarded:
            live.rebuild()  # the guard stopped an earlier run: try again
        if to_stable:
            live.prepare_search()
    if seconds is None or seconds > _SECONDS_TO_REORDER * live.n_points:
        reorder(0.1)
    before, first_step = _counts(live), live.n_steps
    moved, grafted = _Rate(), _Rate()
    history: list[tuple[float, float | None, int]] = []

    def quality() -> float | None:
        to_move, to_graft = moved.of(live.n_pending), grafted.of(live.n_due if to_stable else 0)
        if to_move is None or to_graft is None:
            return None
        return 1.0 - min((to_move + to_graft) / max(2 * live.n_points - 1, 1), 1.0)

    def is_done() -> bool:
        return live.n_pending == 0 and live.n_guarded == 0

    def is_stable() -> bool:
        return to_stable and is_done() and live.n_due == 0

    def is_certified() -> bool:
        return is_stable() and (live.width is None or live.scheme.linkage.is_spanning)

    def note_exact() -> None:
        """An edit that comes next is one of a batch tree, also if it comes from a callback."""
        if is_certified() and live.is_to_be_exact and not live.is_exact:
            live.exact = new_exact(live)

    def report(stopped_by: str | None) -> Report:
        done = _counts(live) - before
        moment = (time.perf_counter() - start, quality(), int(done[[_MOVES, _GRAFTS]].sum()))
        return Report(
            moves=int(done[_MOVES]),
            checks=int(done[_CHECKS]),
            grafts=int(done[_GRAFTS]),
            searches=int(done[_SEARCHES]),
            dissimilarities=int(done[_EVALUATED]),
            seconds=moment[0],
            pending=live.n_pending,
            due=live.n_due if to_stable else 0,
            quality=moment[1],
            homogeneous=is_done() and (not to_stable or live.scheme.linkage.strongly_reducible),
            stable=is_stable(),
            certified=is_certified(),
            history=(*history, moment),
            stopped_by="guard" if stopped_by == until and live.n_guarded else stopped_by,
        )

    def look(now: float, prepare: Callable[[], object] | None = None) -> None:
        nonlocal last_call
        if progress is not None and now - last_call >= _PROGRESS_EVERY:
            if prepare is not None:
                prepare()
            progress(report(None))
            last_call = now

    stopped_by = None
    with _steps(live, to_stable, is_recorded or max_moves is not None, lock) as steps:
        while stopped_by is None:
            began = time.perf_counter()
            counts = _counts(live)
            n_made = int((counts - before)[[_MOVES, _GRAFTS]].sum())
            moves_left = UNLIMITED if max_moves is None else min(max_moves - n_made, UNLIMITED)
            steps_left = UNLIMITED if max_steps is None else max_steps - (live.n_steps - first_step)
            if not history or began - start >= _LATER * max(history[-1][0], _FIRST_MOMENT):
                history.append((began - start, quality(), n_made))
            if live.is_at_rest if to_stable else live.n_pending == 0:
                stopped_by = until
            elif seconds is not None and began - start >= seconds:
                stopped_by = "seconds"
            elif moves_left <= 0 or steps_left <= 0:
                stopped_by = "moves"
            else:
                deadline = np.inf if seconds is None else start + seconds
                now = steps.take(began, steps_left, moves_left, deadline, look)
                if seconds is None or seconds - (now - start) > _SECONDS_TO_REORDER * live.n_points:
                    reorder(REORDER_SHARE)  # steps end where this is due, so it does not depend on the clock
                new = _counts(live) - counts
                moved.note(int(new[_CHECKS]), int(new[_MOVES]))
                grafted.note(int(new[_SEARCHES]), int(new[_GRAFTS]))
                note_exact()
                look(now)
    note_exact()
    final = report(stopped_by)
    if progress is not None:
        progress(final)
    return final


_MOVES, _CHECKS, _GRAFTS, _SEARCHES, _EVALUATED = range(5)


def _counts(live: LiveTree) -> NDArray[np.int64]:
    """What has been done so far."""
    return np.array([live.n_moves, live.n_checks, live.n_grafts, live.n_searches, live.n_evaluated])

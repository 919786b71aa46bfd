"""Refinement within budgets: many short calls of a kernel, with a look at the clock after each."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from evertree.columns import UNLIMITED
from evertree.tree import LiveTree

#: Seconds that a call of the kernel may take, and seconds between two calls of a progress callback.
_SLICE = 0.005
_PROGRESS_EVERY = 0.1


@dataclass(frozen=True)
class Report:
    """What `evertree.Hierarchy.refine` did, or has done so far when a progress callback gets it.

    Attributes
    ----------
    moves : int
        Nearest neighbour interchanges made.
    checks : int
        Nodes at which homogeneity was checked.
    grafts : int
        Subtrees cut off and attached elsewhere: none, as the goal ``"homogeneous"`` takes moves only.
    dissimilarities : int
        Dissimilarities evaluated.
    seconds : float
        Time taken.
    pending : int
        Nodes that are still to be checked.
    homogeneous : bool
        Whether the tree is known to be homogeneous: no checks are left.
    stable : bool
        Whether the tree is known to be stable: never, as this is not looked for with the goal ``"homogeneous"``.
    stopped_by : str or None
        ``"homogeneous"``, ``"moves"`` or ``"seconds"``; ``"guard"`` if rounding made moves go round in circles, so
        that the tolerance had to be widened; None while the refinement is still going on.

    Examples
    --------
    >>> import numpy as np, evertree as et
    >>> h = et.Hierarchy.random(np.arange(20.0).reshape(-1, 1) ** 2)
    >>> h.refine(moves=3).stopped_by
    'moves'
    >>> h.refine()
    Report(moves=..., checks=..., seconds=..., pending=0, homogeneous=True, stopped_by='homogeneous', ...)
    """

    moves: int
    checks: int
    seconds: float
    pending: int
    homogeneous: bool
    stopped_by: str | None
    dissimilarities: int = 0
    grafts: int = 0
    stable: bool = False


def run(
    live: LiveTree, seconds: float | None, max_moves: int | None, progress: Callable[[Report], object] | None
) -> Report:
    """Refine until the tree is homogeneous or a budget is spent.

    Between two calls of the kernel the tree is valid: Ctrl-C and errors of `progress` may come there.
    """
    start = last_call = time.perf_counter()
    if live.n_pending == 0 and live.n_guarded:
        live.rebuild()  # the guard stopped an earlier run: try again
    checks_before, moves_before, evaluated_before = live.n_checks, live.n_moves, live.n_evaluated
    n_checks = 256  # in a slice; it adapts to the speed of the machine and the number of columns

    def report(stopped_by: str | None) -> Report:
        return Report(
            moves=live.n_moves - moves_before,
            checks=live.n_checks - checks_before,
            seconds=time.perf_counter() - start,
            pending=live.n_pending,
            homogeneous=live.n_pending == 0 and live.n_guarded == 0,
            dissimilarities=live.n_evaluated - evaluated_before,
            stopped_by="guard" if stopped_by == "homogeneous" and live.n_guarded else stopped_by,
        )

    stopped_by = None
    while stopped_by is None:
        began = time.perf_counter()
        moves_left = UNLIMITED
        if max_moves is not None:
            moves_left = min(moves_left, max_moves + moves_before - live.n_moves)
        if live.n_pending == 0:
            stopped_by = "homogeneous"
        elif seconds is not None and began - start >= seconds:
            stopped_by = "seconds"
        elif moves_left <= 0:
            stopped_by = "moves"
        else:
            live.homogenise(n_checks, moves_left)
            now = time.perf_counter()
            n_checks = max(16, min(2 * n_checks, int(n_checks * _SLICE / max(now - began, 1e-7))))
            if progress is not None and now - last_call >= _PROGRESS_EVERY:
                progress(report(None))
                last_call = now
    final = report(stopped_by)
    if progress is not None:
        progress(final)
    return final

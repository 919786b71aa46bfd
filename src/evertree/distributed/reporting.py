"""What users are told: the progress of an edit, and a report when it is done."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from evertree.errors import ParameterError

#: Seconds between two calls of a callback within a step.
_INTERVAL = 0.1


class Progress(NamedTuple):
    """The progress of a step: what a progress callback is called with.

    Attributes
    ----------
    step : str
        The name of its tasks, as in Dask's dashboard: ``"read"``, ``"route"``, ``"build"``, …
    done, total : int
        The number of its tasks that are done, and of all its tasks.
    seconds : float
        Since the edit began.

    Examples
    --------
    >>> from evertree.distributed import Progress
    >>> Progress(step="build", done=3, total=12, seconds=1.5)
    Progress(step='build', done=3, total=12, seconds=1.5)
    """

    step: str
    done: int
    total: int
    seconds: float


@dataclass(frozen=True)
class DistributedReport:
    """What the last edit of a `DistributedHierarchy` did; the first edit is `cluster`.

    Attributes
    ----------
    rounds : int
        Rounds of refinement across parts.
    moves : int
        Nearest neighbour interchanges made.
    grafts : int
        Subtrees cut off and attached elsewhere, each to resolve a blocking pair.
    parts : int
        The number of parts of the tree.
    bytes_moved : int
        Bytes that the workers sent to each other and to the driver; workers that were lost are not counted.
    seconds : float
        Time taken.
    stopped_by : str or None
        ``"stable"`` if the last round found nothing to change: then the tree is monotone, for average linkage
        homogeneous, and searches of the given width find no blocking pair. ``"rounds"`` if the limit of rounds was
        reached. None for a tree that was loaded.

    Examples
    --------
    >>> from evertree.distributed import DistributedReport
    >>> DistributedReport(rounds=3, moves=120, grafts=40, parts=2, bytes_moved=10_000, seconds=0.5, stopped_by="stable")
    DistributedReport(rounds=3, moves=120, grafts=40, parts=2, bytes_moved=10000, seconds=0.5, stopped_by='stable')
    """

    rounds: int
    moves: int
    grafts: int
    parts: int
    bytes_moved: int
    seconds: float
    stopped_by: str | None


Callback = Callable[[Progress], object]


@contextmanager
def showing(progress: Any) -> Iterator[Callback | None]:
    """What to call with each `Progress`: the user's function, or for True a bar that is shown within the block."""
    if progress is None or progress is False:
        yield None
    elif progress is True:
        with _bar() as update:
            yield update
    elif callable(progress):
        yield progress
    else:
        raise ParameterError(f"progress must be True, False, None or callable; it is {progress!r}")


class ProgressReporter:
    """Calls a callback about ten times a second, and always when a step ends."""

    def __init__(self, callback: Callback | None) -> None:
        self.callback = callback
        self._start = time.perf_counter()
        self._last = 0.0

    def report(self, step: str, done: int, total: int) -> None:
        """Some more tasks of a step are done."""
        now = time.perf_counter()
        if self.callback is not None and (done == total or now - self._last >= _INTERVAL):
            self._last = now
            self.callback(Progress(step, done, total, now - self._start))


@contextmanager
def _bar() -> Iterator[Callback]:
    """A bar on standard error if rich is installed; otherwise a line after each step."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar
    except ModuleNotFoundError:
        yield _line
        return
    columns = (TextColumn("{task.description:>8}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as drawn:
        task = drawn.add_task("")
        yield lambda now: drawn.update(task, description=now.step, completed=now.done, total=now.total)


def _line(progress: Progress) -> None:
    if progress.done == progress.total:
        text = f"{progress.seconds:8.1f} s  {progress.step}: {progress.total} tasks done"
        print(text, file=sys.stderr, flush=True)

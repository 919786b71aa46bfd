"""How far a distributed computation has come, for people who wait."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from evertree.errors import ParameterError

#: Seconds between two calls for the same step.
_EVERY = 0.1


class Progress(NamedTuple):
    """How far a step has come: what a progress callback is called with.

    Attributes
    ----------
    step : str
        The name of its tasks, as Dask's dashboard has it: ``"read"``, ``"route"``, ``"build"``, …
    done, total : int
        How many of its tasks are done, of how many.
    seconds : float
        Since the beginning.

    Examples
    --------
    >>> from evertree.distributed.progress import Progress
    >>> Progress(step="build", done=3, total=12, seconds=1.5)
    Progress(step='build', done=3, total=12, seconds=1.5)
    """

    step: str
    done: int
    total: int
    seconds: float


Callback = Callable[[Progress], object]


@contextmanager
def showing(progress: Any) -> Iterator[Callback | None]:
    """What to call with each `Progress`: what the user gave, or for True a bar that lasts as long as the block."""
    if progress is None or progress is False:
        yield None
    elif progress is True:
        with _bar() as show:
            yield show
    elif callable(progress):
        yield progress
    else:
        raise ParameterError(f"progress must be True, False, None or callable; it is {progress!r}")


class Teller:
    """Tells a callback how far steps have come: about ten times a second, and always when a step ends."""

    def __init__(self, callback: Callback | None) -> None:
        self.callback = callback
        self._start = time.perf_counter()
        self._last = 0.0

    def tell(self, step: str, done: int, total: int) -> None:
        """So many tasks of a step are done."""
        now = time.perf_counter()
        if self.callback is not None and (done == total or now - self._last >= _EVERY):
            self._last = now
            self.callback(Progress(step, done, total, now - self._start))


@contextmanager
def _bar() -> Iterator[Callback]:
    """A bar on standard error, by rich where that is installed; otherwise a line when a step is done."""
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

"""`Runner`: all that the algorithm asks of whatever runs its tasks; and `DaskRunner`, whose tasks are Dask's."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from evertree.distributed.reporting import ProgressReporter

#: How often a task that failed is tried again. Tasks return what is wrong with the data instead of raising it, so it is
#: the machine that fails.
RETRIES = 3

#: The upper nodes of many parts are larger than what Dask warns of. They are sent on purpose, once in a round.
_QUIET = {"distributed.admin.large-graph-warning-threshold": "1 GiB"}

#: Tasks that take much memory for a while.
LARGE = ("route", "build", "insert", "assemble", "rebalance", "summarise", "search", "answer", "scan")

#: Tasks that run before others that wait, because large results can go afterwards.
URGENT = ("pick",)


class Runner(Protocol):
    """Runs pure functions somewhere, and holds what they return.

    Nothing may depend on where or when a task runs. A function changes none of its arguments.
    """

    def submit(self, name: str, function: Callable[..., Any], *args: Any) -> Any:
        """A handle on what ``function(*args)`` will return; handles among `args`, or in lists there, are resolved."""

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        """The values of some handles."""


def share(runner: Runner, name: str, value: Any) -> Any:
    """A handle of a value that several tasks need, so that it is sent once."""
    return runner.submit(name, _identity, value)


class DaskRunner:
    """Runs tasks on a Dask cluster.

    A result stays where it was computed as long as its handle, a future, is held. Dask knows how each result was
    computed, even after its inputs were released: if a worker is lost, its results are computed again, from the chunks
    of the user if need be. So tasks must be pure, and their arguments small or results of other tasks.

    Parameters
    ----------
    client : distributed.Client
    reporter : ProgressReporter, optional
        Told about the tasks that are waited for.
    """

    def __init__(self, client: Any, reporter: ProgressReporter | None = None) -> None:
        self.client = client
        self.reporter = reporter or ProgressReporter(None)
        self._token = uuid.uuid4().hex[:8]
        self._numbers = itertools.count()
        self._submitted: weakref.WeakSet[Any] = weakref.WeakSet()

    def submit(self, name: str, function: Callable[..., Any], *args: Any) -> Any:
        """Start a task. The name is what the dashboard shows; arguments may be handles, or lists of these."""
        import dask  # not needed to import the algorithm

        key = f"{name}-{self._token}-{next(self._numbers)}"
        priority = 1 if name in URGENT else 0
        task = (_then_trim_memory, function) if name in LARGE else (function,)
        with dask.config.set(_QUIET):
            future = self.client.submit(*task, *args, key=key, pure=False, retries=RETRIES, priority=priority)
        self._submitted.add(future)
        return future

    def start(self, delayed: Sequence[Any]) -> list[Any]:
        """Start to compute delayed values of the user."""
        return self.client.compute(list(delayed), retries=RETRIES) if delayed else []

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        """The results of tasks, when all of them are done."""
        if self.reporter.callback is not None:
            self.wait(handles)
        return self.client.gather(list(handles))

    def wait(self, handles: Iterable[Any]) -> None:
        """Wait until some tasks are done. Their results stay where they are."""
        from distributed import as_completed

        futures = list(handles)
        for done, future in enumerate(as_completed(futures, loop=self.client.loop), start=1):
            self.reporter.report(_name_of(future), done, len(futures))

    def in_order(self, handles: Sequence[Any]) -> Iterator[Any]:
        """The results of tasks one after the other, each when it is done."""
        for done, future in enumerate(handles, start=1):
            yield future.result()
            self.reporter.report(_name_of(future), done, len(handles))

    def release(self) -> None:
        """Release all futures, also those that a traceback, as a shell keeps it, refers to."""
        for future in list(self._submitted):
            future.release()

    def bytes_sent(self) -> dict[str, int]:
        """The bytes that each live worker has ever sent, by its address."""
        return {worker: sent for worker, sent in self.client.run(_bytes_sent, on_error="ignore").items() if sent}


def _identity(value: Any) -> Any:
    return value


def _then_trim_memory(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function, and give free memory back to the system.

    The C library keeps some of it. Dask counts that as in use, and would stop giving tasks to the worker.
    """
    result = function(*args)
    with contextlib.suppress(OSError, AttributeError):  # only glibc has it
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    return result


def _name_of(future: Any) -> str:
    return str(future.key).partition("-")[0]


def _bytes_sent(dask_worker: Any) -> int:
    return int(dask_worker.transfer_outgoing_bytes_total)

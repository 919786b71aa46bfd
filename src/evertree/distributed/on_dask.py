"""`OnDask`: the runner whose tasks are Dask's."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import dask
from distributed import as_completed

from evertree.distributed.progress import Teller

#: How often a task that failed is tried again. Tasks give back what is wrong with the data instead of raising it, so
#: what fails is the machine.
RETRIES = 3

#: The upper nodes of many parts are larger than what Dask warns of. They are sent on purpose, once in a round.
_QUIET = {"distributed.admin.large-graph-warning-threshold": "1 GiB"}

#: What takes much memory for a while.
LARGE = ("route", "build", "insert", "take", "treelet", "crown", "ask", "answer", "scan")

#: What is done before other tasks that wait, because it lets large results go.
URGENT = ("pick",)


class OnDask:
    """Runs tasks on a Dask cluster.

    A result stays where it was computed for as long as its handle, a future, is held. Dask knows how each result came
    about, also of those that were let go: if a worker is lost, what it held is computed again, from the chunks of the
    user if need be. So tasks must be pure, and what they are given must be small or another's result.

    Parameters
    ----------
    client : distributed.Client
    teller : Teller, optional
        Told when tasks that are waited for are done.
    """

    def __init__(self, client: Any, teller: Teller | None = None) -> None:
        self.client = client
        self.teller = teller or Teller(None)
        self._token = uuid.uuid4().hex[:8]
        self._numbers = itertools.count()
        self._submitted: weakref.WeakSet[Any] = weakref.WeakSet()

    def submit(self, name: str, function: Callable[..., Any], *args: Any) -> Any:
        """Start a task. The name is what the dashboard shows; arguments may be handles, or lists of these."""
        key = f"{name}-{self._token}-{next(self._numbers)}"
        priority = 1 if name in URGENT else 0
        task = (_and_tidy_up, function) if name in LARGE else (function,)
        with dask.config.set(_QUIET):
            future = self.client.submit(*task, *args, key=key, pure=False, retries=RETRIES, priority=priority)
        self._submitted.add(future)
        return future

    def start(self, delayed: Sequence[Any]) -> list[Any]:
        """Start to compute delayed values of the user's."""
        return self.client.compute(list(delayed), retries=RETRIES) if delayed else []

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        """The results of tasks, when all of them are done."""
        if self.teller.callback is not None:
            self.wait(handles)
        return self.client.gather(list(handles))

    def wait(self, handles: Iterable[Any]) -> None:
        """Wait until all of some tasks are done. Their results stay where they are."""
        futures = list(handles)
        for done, future in enumerate(as_completed(futures, loop=self.client.loop), start=1):
            self.teller.tell(_name_of(future), done, len(futures))

    def in_turn(self, handles: Sequence[Any]) -> Iterator[Any]:
        """The results of tasks one after the other, each when it is done."""
        for done, future in enumerate(handles, start=1):
            yield future.result()
            self.teller.tell(_name_of(future), done, len(handles))

    def let_go(self) -> None:
        """Let go of all that it started: whoever keeps a traceback, as shells do, would keep the tasks running."""
        for future in list(self._submitted):
            future.release()

    def bytes_sent(self) -> dict[str, int]:
        """Bytes that each worker has ever sent, by its address, of those that are still there."""
        return {worker: sent for worker, sent in self.client.run(_bytes_sent, on_error="ignore").items() if sent}


def _and_tidy_up(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function, and give the memory that it does not need any more back to the machine.

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

"""`Threads`: a pool of threads that do parts of a job in parallel."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from itertools import pairwise
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from evertree.locking import Uninterrupted

_Item = TypeVar("_Item")

#: Seconds between two checks of whether a job should stop.
_LOOK_EVERY = 0.02

#: A job is divided into this many parts per thread, as some take longer than others.
PARTS_PER_THREAD = 4


class Threads:
    """A pool of threads, to be used in a ``with`` block. Kernels that release the GIL run in parallel.

    Parameters
    ----------
    n_threads
        Number of threads.
    """

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self._pool = ThreadPoolExecutor(n_threads, "evertree")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def each(
        self, function: Callable[[_Item], object], items: Iterable[_Item], look: Callable[[bool], object] | None = None
    ) -> None:
        """Call a function with each item, in order, and wait for all of them, even after an error.

        Where no thread can be started, this one does it. Meanwhile `look` is called here from time to time, and
        told whether Ctrl-C was pressed; it is raised at the end.
        """
        todo: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        for item in items:
            todo.put(item)

        def work() -> None:
            while not todo.empty():
                try:
                    item = todo.get_nowait()
                except queue.Empty:  # another thread has taken it
                    return
                function(item)

        with Uninterrupted() as held:
            running: set[Future[None]] = set()
            try:
                with suppress(RuntimeError):  # no more threads are to be had
                    for _ in range(min(self.n_threads, todo.qsize())):
                        running.add(self._pool.submit(work))
                while not running and not todo.empty():
                    function(todo.get_nowait())
                    if look is not None:
                        look(held.should_stop)
                while running:
                    some, running = wait(running, None if look is None else _LOOK_EVERY, FIRST_EXCEPTION)
                    for finished in some:
                        finished.result()
                    if look is not None:
                        look(held.should_stop)
            finally:
                while not todo.empty():
                    with suppress(queue.Empty):
                        todo.get_nowait()
                wait(running)

    def divide(self, function: Callable[..., object], length: int, helpers: queue.SimpleQueue[Any]) -> None:
        """Call a function with slices that cover `length` items, and with a helper that no other call has meanwhile."""
        self.each_with_helper(function, self.slices(length), helpers)

    def each_with_helper(
        self,
        function: Callable[..., object],
        items: Iterable[_Item],
        helpers: queue.SimpleQueue[Any],
        look: Callable[[bool], object] | None = None,
    ) -> None:
        """As `each`, but also with a helper that no other call has meanwhile."""

        def with_helper(item: _Item) -> None:
            helper = helpers.get()
            try:
                function(item, helper)
            finally:
                helpers.put(helper)

        self.each(with_helper, items, look)

    def slices(self, length: int) -> list[slice]:
        """Slices that cover `length` items."""
        n_parts = min(length, PARTS_PER_THREAD * self.n_threads)
        ends: NDArray[np.int64] = np.linspace(0, length, n_parts + 1).astype(np.int64)
        return [slice(int(start), int(stop)) for start, stop in pairwise(ends)]

    def helpers(self, make: Callable[[], Any]) -> queue.SimpleQueue[Any]:
        """One helper for each thread."""
        made: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for _ in range(self.n_threads):
            made.put(make())
        return made

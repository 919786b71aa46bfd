"""Safety against Ctrl-C and other threads: edits are all or nothing, and readers see consistent trees."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from signal import SIGINT, default_int_handler, raise_signal
from types import FrameType
from typing import Any, Concatenate, ParamSpec, TypeVar

from evertree.errors import ParameterError

try:  # the functions behind those of `signal`, which convert handlers to enums, at 3 µs a call
    from _signal import getsignal, signal  # type: ignore[import-not-found]
except ImportError:
    from signal import getsignal, signal


_main_thread = threading.main_thread().ident


def _note_main_thread() -> None:
    global _main_thread
    _main_thread = threading.get_ident()


if hasattr(os, "register_at_fork"):  # the thread that forks is the main thread of the child
    os.register_at_fork(after_in_child=_note_main_thread)

_P = ParamSpec("_P")
_R = TypeVar("_R")
_F = TypeVar("_F", bound=Callable[..., Any])
_S = TypeVar("_S", bound=Any)


class ReadWriteLock:
    """Lets threads share a hierarchy: edits wait for each other, and readers, one at a time, come between their steps.

    `edits` is held by an editing method from start to end, `access` while the tree is changed or read. A refinement
    takes `access` for each of its steps. So that readers do not starve, they wait for `access` in a queue, and an edit
    passes the queue before each step. Locks are only taken by ``with``, so that Ctrl-C never leaves one locked.
    """

    def __init__(self) -> None:
        self.edits = threading.RLock()
        self.access = threading.RLock()
        self.queue = threading.Lock()
        self.has_access: Callable[[], bool] = self.access._is_owned  # type: ignore[attr-defined]

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A block that reads the tree while nothing changes."""
        if self.has_access():
            yield
        else:
            with self.queue, self.access:
                yield

    def let_readers_in(self) -> None:
        """Let waiting readers go first."""
        if not self.has_access():
            with self.queue:
                pass


def editing(verb: Callable[Concatenate[_S, _P], _R]) -> Callable[Concatenate[_S, _P], _R]:
    """Decorate a method that changes a hierarchy: one at a time, and never during a read.

    It is refused to code that is reading the hierarchy, such as a metric, and to a progress callback while
    threads refine it.
    """

    @functools.wraps(verb)
    def edit(self: _S, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        lock = self.state.lock
        if lock.has_access():
            raise ParameterError("a metric must not edit the hierarchy that it is called for; it may read it")
        with lock.edits:
            if self.state.live.has_threads:
                raise ParameterError(
                    "a progress callback of the refinement of a large tree may read and copy the hierarchy, but not "
                    "edit it: do that when refine() has returned, which refine(seconds=...) does early"
                )
            with lock.queue:  # waiting readers go first
                pass
            return verb(self, *args, **kwargs)

    return edit


def reading(question: Callable[Concatenate[_S, _P], _R]) -> Callable[Concatenate[_S, _P], _R]:
    """Decorate a method that reads a hierarchy while nothing changes."""

    @functools.wraps(question)
    def read(self: _S, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        lock = self.state.lock
        if lock.has_access():
            return question(self, *args, **kwargs)
        with lock.queue, lock.access:
            return question(self, *args, **kwargs)

    return read


def answered_by(find: Callable[[Any, Any], Any]) -> Callable[[_F], _F]:
    """Decorate a method that has no body: ``find(state, node)``, for one node or some, is what it returns.

    As `reading`, but it takes half as long: such methods are called for each node.
    """

    def decorate(question: _F) -> _F:
        @functools.wraps(question)
        def read(self: Any, node: Any) -> Any:
            state = self.state
            lock = state.lock
            if lock.has_access():
                return find(state, node)
            with lock.queue, lock.access:
                return find(state, node)

        return read  # type: ignore[return-value]  # the same arguments

    return decorate


def one_at_a_time(verb: Callable[Concatenate[_S, _P], _R]) -> Callable[Concatenate[_S, _P], _R]:
    """Decorate methods of an object with a `_lock` that wait for each other if threads share it."""

    @functools.wraps(verb)
    def waiting(self: _S, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        with self._lock:
            return verb(self, *args, **kwargs)

    return waiting


class Uninterrupted:
    """A block that delays Ctrl-C until its end or, if nested, until the end of the outermost block."""

    __slots__ = ("_before", "_has_come", "_holds")

    def __init__(self) -> None:
        self._has_come = False
        self._holds = False

    def _note(self, _signum: int, _frame: FrameType | None) -> None:
        self._has_come = True

    @property
    def should_stop(self) -> bool:
        """Whether KeyboardInterrupt will be raised at the end, so that a long block that can be undone may stop.

        A user's own handler may do anything or nothing: it is called, but the block continues.
        """
        return self._has_come and self._before is default_int_handler

    def __enter__(self) -> Uninterrupted:
        # Only the main thread is ever interrupted. A handler of None was not installed by Python and cannot be
        # restored.
        if threading.get_ident() == _main_thread:
            self._before = getsignal(SIGINT)
            is_held = isinstance(getattr(self._before, "__self__", None), Uninterrupted)
            if self._before is not None and not is_held:
                self._holds = True
                signal(SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._holds:
            signal(SIGINT, self._before)
            if self._has_come:
                raise_signal(SIGINT)

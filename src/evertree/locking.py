"""Ctrl-C and other threads may come at any moment: an edit happens wholly or not at all, and what is read is whole."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from signal import SIGINT, default_int_handler, raise_signal
from types import FrameType
from typing import Any, Concatenate, ParamSpec, TypeVar

try:  # the functions behind those of `signal`, which look for an enum that a handler might be, at 3 µs a call
    from _signal import getsignal, signal  # type: ignore[import-not-found]
except ImportError:
    from signal import getsignal, signal


_P = ParamSpec("_P")
_R = TypeVar("_R")
_S = TypeVar("_S", bound=Any)


def one_at_a_time(verb: Callable[Concatenate[_S, _P], _R]) -> Callable[Concatenate[_S, _P], _R]:
    """Let the verbs of one object, which has a lock, wait for each other where threads share it."""

    @functools.wraps(verb)
    def waiting(self: _S, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        with self._lock:
            return verb(self, *args, **kwargs)

    return waiting


def one_edit_at_a_time(verb: Callable[Concatenate[_S, _P], _R]) -> Callable[Concatenate[_S, _P], _R]:
    """The same, for verbs that change a hierarchy: they take turns with those who read it.

    They are refused to whoever is reading it, such as a metric, and to a callback while several threads refine it.
    """

    @functools.wraps(verb)
    def waiting(self: _S, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        self._refuse_while_read()
        with self.state.lock:
            self._refuse_while_threads_refine()
            self.state.turns.let_in()
            return verb(self, *args, **kwargs)

    return waiting


def of_one_moment(question: Callable[Concatenate[_S, _P], _R]) -> Callable[Concatenate[_S, _P], _R]:
    """Let a question about an object that has `Turns` be answered while nothing changes."""

    @functools.wraps(question)
    def asking(self: _S, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        turns = self.state.turns
        if turns.is_mine:
            return question(self, *args, **kwargs)
        with turns.gate, turns.door:
            return question(self, *args, **kwargs)

    return asking


class Turns:
    """Lets others look at what one changes: each look is of one moment, and nobody waits for ever.

    Whoever looks, and whoever changes something, is alone behind the door. Who wants to look waits for it in the gate,
    and who changes something again and again has to pass the gate each time: so he does not always come first. Locks
    are taken by ``with`` alone, so that Ctrl-C never leaves one behind.
    """

    def __init__(self) -> None:
        self.gate = threading.Lock()
        self.door = threading.RLock()

    @property
    def is_mine(self) -> bool:
        """Whether this thread is behind the door."""
        return self.door._is_owned()  # type: ignore[attr-defined]

    def let_in(self) -> None:
        """Let someone who waits look first."""
        if not self.is_mine:
            with self.gate:
                pass


class Uninterrupted:
    """A block in which Ctrl-C is noted, and delivered when the block has ended; within another, when that has."""

    def __init__(self) -> None:
        self._has_come = False
        self._holds = False

    def _note(self, _signum: int, _frame: FrameType | None) -> None:
        self._has_come = True

    @property
    def should_stop(self) -> bool:
        """Whether KeyboardInterrupt will be raised at the end. A long block that can be undone need not go on.

        A handler of the user's own may do anything, or nothing: it is called, but the block goes on.
        """
        return self._has_come and self._before is default_int_handler

    def __enter__(self) -> Uninterrupted:
        # Only the main thread is ever interrupted. A handler that is None is not Python's, and cannot be put back.
        if threading.current_thread() is threading.main_thread():
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

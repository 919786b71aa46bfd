"""Ctrl-C may come at any moment; an edit must happen wholly or not at all."""

from __future__ import annotations

import threading
from signal import SIGINT, default_int_handler, raise_signal
from types import FrameType

try:  # the functions behind those of `signal`, which look for an enum that a handler might be, at 3 µs a call
    from _signal import getsignal, signal  # type: ignore[import-not-found]
except ImportError:
    from signal import getsignal, signal


class Uninterrupted:
    """A block in which Ctrl-C is noted, and delivered when the block has ended."""

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
            if self._before is not None:
                self._holds = True
                signal(SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._holds:
            signal(SIGINT, self._before)
            if self._has_come:
                raise_signal(SIGINT)

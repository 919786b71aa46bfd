"""`Pulse`: a thread that counts, to see for how long others keep it from running."""

from __future__ import annotations

import threading
import time
from typing import Self


class Pulse:
    """A block during which a second thread wakes every millisecond.

    Attributes
    ----------
    longest : float
        The longest time, in seconds, between two of its beats.
    n_beats : int
        How many there were.
    """

    def __init__(self) -> None:
        self.longest, self.n_beats = 0.0, 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def _beat(self) -> None:
        last = time.perf_counter()
        while not self._stop.wait(0.001):
            now = time.perf_counter()
            self.longest, self.n_beats, last = max(self.longest, now - last), self.n_beats + 1, now

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
